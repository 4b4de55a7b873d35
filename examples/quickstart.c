/* quickstart.c - the shortest whole use: one sequence, a prompt in one call, then token by token, through a ring that
   holds 64 keys. Your engine computes q, k and v; here numbers stand for them. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"

enum { LAYERS = 2, HEADS = 8, KV_HEADS = 2, DIM = 32, PROMPT = 100, ANSWER = 50 };

/* One layer of your engine, from position pos on: projections and RoPE give q, k, v; swa_attend does the rest. */
static void layer_forward(swa_cache *kv, int layer, int64_t pos, int32_t n, float *out) {
    swa_attn a = { 0 };
    float *q = rows_at(1 + (uint32_t)layer, pos, n, HEADS * DIM);
    float *k = rows_at(11 + (uint32_t)layer, pos, n, KV_HEADS * DIM);
    float *v = rows_at(21 + (uint32_t)layer, pos, n, KV_HEADS * DIM);
    a.q.p = q; /* [n][HEADS][DIM]    */
    a.k.p = k; /* [n][KV_HEADS][DIM] */
    a.v.p = v;
    a.out.p = out; /* [n][HEADS][DIM]    */
    check(swa_attend(kv, layer, &a), "swa_attend");
    free(q);
    free(k);
    free(v);
}

int main(void) {
    swa_window window = swa_window_sliding(64); /* 64 keys, the query's own included */
    swa_cache_desc d = { 0 };
    swa_cache kv;
    float *out = (float *)room(PROMPT * HEADS * DIM * sizeof *out);
    void *mem, *scratch;
    size_t bytes, scratch_bytes;
    d.shape.n_heads = HEADS;
    d.shape.n_kv_heads = KV_HEADS;
    d.shape.head_dim = DIM;
    d.n_layers = LAYERS;
    d.windows = &window;
    d.n_windows = 1;
    d.k_type = SWA_F16;          /* V as well, since v_type is 0 */
    bytes = swa_cache_bytes(&d); /* the ring; the library allocates nothing itself */
    mem = room(bytes);
    check(swa_cache_init(&kv, &d, mem, bytes), "swa_cache_init");
    scratch_bytes = swa_cache_scratch_bytes(&d, 1); /* what calls work in; one part = one thread */
    scratch = room(scratch_bytes);
    check(swa_cache_set_scratch(&kv, scratch, scratch_bytes), "swa_cache_set_scratch");
    check(swa_step_one(&kv, 0, 0, PROMPT), "swa_step_one");
    for (int l = 0; l < LAYERS; l++) layer_forward(&kv, l, 0, PROMPT, out);
    printf("prompt of %d tokens: last row begins %.6f %.6f\n", PROMPT, (double)out[(PROMPT - 1) * HEADS * DIM],
           (double)out[(PROMPT - 1) * HEADS * DIM + 1]);
    for (int64_t pos = PROMPT; pos < PROMPT + ANSWER; pos++) {
        check(swa_step_one(&kv, 0, pos, 1), "swa_step_one");
        for (int l = 0; l < LAYERS; l++) layer_forward(&kv, l, pos, 1, out);
    }
    printf("position %d: %.6f %.6f, oldest key held is %lld\n", PROMPT + ANSWER - 1, (double)out[0], (double)out[1],
           (long long)swa_cache_first(&kv, 0, 0));
    free(mem);
    free(scratch);
    free(out);
    return 0;
}
