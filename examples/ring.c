/* ring.c - shows the slots of one layer turn: which position each holds after a step, and what a rewind does. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"

enum { W = 8, DIM = 4 };

static void step(swa_cache *kv, int64_t pos, int32_t n, int rewind) {
    swa_run run = { 0 };
    swa_attn a = { 0 };
    float *x = rows_at(1, pos, n, DIM), *out = (float *)room((size_t)n * DIM * sizeof *out);
    run.pos = pos;
    run.n = n;
    run.rewind = rewind;
    check(swa_step_begin(kv, &run, 1), "swa_step_begin");
    a.q.p = a.k.p = a.v.p = x;
    a.out.p = out;
    check(swa_attend(kv, 0, &a), "swa_attend");
    free(x);
    free(out);
}

static void show(const swa_cache *kv, const char *what) {
    int64_t slots[16], p, first = swa_cache_first(kv, 0, 0), end = swa_cache_end(kv, 0);
    for (int i = 0; i < 16; i++) slots[i] = -1;
    for (p = first; p < end; p++) slots[swa_cache_slot(kv, 0, 0, p)] = p;
    printf("%-26s", what);
    for (int i = 0; i < 16; i++)
        if (slots[i] < 0) printf("  .");
        else printf(" %2lld", (long long)slots[i]);
    printf("   next %lld\n", (long long)end);
}

int main(void) {
    swa_window window = swa_window_sliding(W);
    swa_cache_desc d = { 0 };
    cache c;
    swa_status refused;
    d.shape.n_heads = d.shape.n_kv_heads = 1;
    d.shape.head_dim = DIM;
    d.n_layers = 1;
    d.windows = &window;
    d.n_windows = 1;
    d.max_rollback = 4; /* W-1+4 = 11 slots, rounded up to 16 */
    c = new_cache(&d, 1);
    step(&c.kv, 0, 5, 0);
    show(&c.kv, "5 tokens");
    step(&c.kv, 5, 9, 0);
    show(&c.kv, "9 more, longer than W");
    step(&c.kv, 14, 6, 0);
    show(&c.kv, "6 more: the ring has turned");
    step(&c.kv, 17, 1, 1);
    show(&c.kv, "17 once more, on purpose");
    refused = swa_cache_truncate(&c.kv, 0, 8);
    printf("back to 8: %s\n", swa_status_str(refused));
    printf("smallest end that can be had: %lld; a replay for 8 begins at %lld\n",
           (long long)swa_cache_min_end(&c.kv, 0), (long long)swa_cache_replay_from(&c.kv, 0, 8));
    free_cache(&c);
    return 0;
}
