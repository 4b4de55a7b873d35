/* speculative.c - a draft of five tokens is attended in one step, the target keeps a prefix of it, and
   swa_cache_truncate forgets the rejected rows, exactly. max_rollback says how many rows can always be taken back; the
   result equals decoding token by token. (run.rewind = 1 in the next step does both at once.) */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"

enum { DRAFT = 5, WINDOW = 48, TOKENS = 200, HEADS = 4, KV_HEADS = 2, DIM = 16, ROW = HEADS * DIM };

/* The target's verdict on the draft at pos: how many of its tokens are kept, 1 to DRAFT. */
static int accepted(int64_t pos) { return 1 + (int)(((uint64_t)pos * 2654435761u >> 7) % DRAFT); }

/* Tokens that were rejected had other numbers: a draft's own. */
static void attend(swa_cache *kv, int64_t pos, int32_t n, int32_t right, float *out) {
    swa_attn a = { 0 };
    float *q = rows_at(1, pos, n, HEADS * DIM), *k = rows_at(2, pos, n, KV_HEADS * DIM);
    float *v = rows_at(3, pos, n, KV_HEADS * DIM);
    for (int32_t i = right * KV_HEADS * DIM; i < n * KV_HEADS * DIM; i++) k[i] = -k[i];
    a.q.p = q;
    a.k.p = k;
    a.v.p = v;
    a.out.p = out;
    check(swa_attend(kv, 0, &a), "swa_attend");
    free(q);
    free(k);
    free(v);
}

int main(void) {
    swa_window window = swa_window_sliding(WINDOW);
    swa_cache_desc d = one_layer(HEADS, KV_HEADS, DIM, &window);
    float *out = (float *)room((TOKENS + DRAFT) * ROW * sizeof *out);
    float *plain = (float *)room((TOKENS + DRAFT) * ROW * sizeof *plain);
    int64_t pos, steps = 0;
    cache c;
    d.max_rollback = DRAFT;
    c = new_cache(&d, 1);
    for (pos = 0; pos < TOKENS; steps++) {
        int keep = accepted(pos);
        check(swa_step_one(&c.kv, 0, pos, DRAFT), "swa_step_one");
        attend(&c.kv, pos, DRAFT, keep, out + pos * ROW);
        pos += keep;
        check(swa_cache_truncate(&c.kv, 0, pos), "swa_cache_truncate");
    }
    check(swa_cache_reset(&c.kv, 0, 0, 0), "swa_cache_reset");
    for (int64_t p = 0; p < pos; p++) {
        check(swa_step_one(&c.kv, 0, p, 1), "swa_step_one");
        attend(&c.kv, p, 1, 1, plain + p * ROW);
    }
    printf("%lld tokens in %lld steps of %d: %s as token by token\n", (long long)pos, (long long)steps, DRAFT,
           memcmp(out, plain, (size_t)pos * ROW * sizeof *out) == 0 ? "the same bits" : "OTHER BITS");
    printf("what the rollback costs: %d more rows in a ring of %d\n", DRAFT - 1, WINDOW);
    free_cache(&c);
    free(out);
    free(plain);
    return 0;
}
