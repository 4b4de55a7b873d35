/* drafter.c - a drafter that has no cache of its own reads the target's (Gemma 4's assistant). Its layers have queries
   alone: swa_cache_spans gives the target's rows where they lie in the ring, swa_attention attends to them from
   positions that the target has not reached. Nothing is stored twice, and nothing is stored for a draft, so that one
   that is rejected leaves nothing to take back. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"

enum { LAYERS = 2, HEADS = 8, KV_HEADS = 2, DIM = 16, WINDOW = 32, PROMPT = 75, DRAFT = 4, ROW = HEADS * DIM };
enum { DRAFTER_HEADS = 4, DRAFTER_ROW = DRAFTER_HEADS * DIM }; /* of its own; KV heads and rows are the target's */

/* What stays the same from call to call: shape and scratch. */
static swa_rows drafter(void) {
    swa_rows rows = { 0 };
    rows.shape.n_heads = DRAFTER_HEADS;
    rows.shape.n_kv_heads = KV_HEADS;
    rows.shape.head_dim = DIM;
    rows.window = swa_window_causal();
    rows.scratch_bytes = swa_attention_bytes(&rows, 1); /* n_tokens 0: for any number of tokens and keys */
    rows.scratch = room(rows.scratch_bytes);
    return rows;
}

/* One layer of the drafter at position pos over n_kv segments of the target's rows. */
static void draft(swa_rows rows, int layer, const swa_window *window, int64_t pos, const swa_kv *kv, int n_kv,
                  float *out) {
    swa_attn a = { 0 };
    float *q = rows_at(900 + (uint32_t)layer, pos, 1, DRAFTER_ROW);
    rows.window = *window;
    rows.pos = pos;
    rows.n_tokens = 1;
    rows.kv = kv;
    rows.n_kv = n_kv;
    a.q.p = q;
    a.out.p = out;
    check(swa_attention(&rows, &a), "swa_attention");
    free(q);
}

/* The same over a copy of the rows that the ring holds: what a drafter with a cache of its own would have. */
static void draft_apart(const swa_rows *rows, swa_cache *kv, int layer, const swa_window *window, int64_t pos,
                        float *out) {
    int64_t first = swa_cache_first(kv, 0, layer), n = swa_cache_end(kv, 0) - first;
    float *k = (float *)room((size_t)n * KV_HEADS * DIM * sizeof *k);
    float *v = (float *)room((size_t)n * KV_HEADS * DIM * sizeof *v);
    swa_kv copy = { 0 };
    check(swa_cache_read(kv, 0, layer, first, (int32_t)n, k, v), "swa_cache_read");
    copy.k = k;
    copy.v = v;
    copy.pos = first;
    copy.n = (int32_t)n;
    draft(*rows, layer, window, pos, &copy, 1, out);
    free(k);
    free(v);
}

int main(void) {
    swa_window windows[LAYERS] = { swa_window_sliding(WINDOW), swa_window_causal() };
    swa_cache_desc d = one_layer(HEADS, KV_HEADS, DIM, windows);
    float *target = (float *)room(PROMPT * ROW * sizeof *target), out[DRAFTER_ROW], apart[DRAFTER_ROW];
    int same = 1, drafted = 0;
    int64_t end = 0;
    swa_rows rows = drafter();
    cache c;
    d.n_layers = d.n_windows = LAYERS;
    d.max_context = PROMPT + 3 * DRAFT;
    c = new_cache(&d, 1);
    for (int32_t n = PROMPT; end < PROMPT + 2 * DRAFT; n = 1 + (int32_t)(end % DRAFT)) { /* some are accepted */
        check(swa_step_one(&c.kv, 0, end, n), "swa_step_one");
        for (int l = 0; l < LAYERS; l++) check(attend_at(&c.kv, &d.shape, l, 1, end, n, target), "swa_attend");
        end += n;
        for (int64_t pos = end; pos < end + DRAFT; pos++, drafted++)
            for (int l = 0; l < LAYERS; l++) {
                swa_kv spans[3];
                int n_spans = swa_cache_spans(&c.kv, 0, l, spans);
                draft(rows, l, &windows[l], pos, spans, n_spans, out);
                draft_apart(&rows, &c.kv, l, &windows[l], pos, apart);
                same = same && memcmp(out, apart, sizeof out) == 0;
            }
    }
    printf("%lld tokens, %d drafted over the target's rows: %s as over a copy of them\n", (long long)end, drafted,
           same ? "the same bits" : "OTHER BITS");
    printf("the sequence still ends at %lld: the drafter has stored nothing\n", (long long)swa_cache_end(&c.kv, 0));
    free_cache(&c);
    free(rows.scratch);
    free(target);
    return same ? 0 : 1;
}
