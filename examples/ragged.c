/* ragged.c - three prompts of unequal length in chunks of 16, while a fourth sequence decodes in the same steps: one
   forward call per step, whatever is in it. The rows come out as if each sequence had run alone. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"

enum { SEQS = 4, HEADS = 4, KV_HEADS = 2, DIM = 16, CHUNK = 16, LONGEST = 64 };

static float last[SEQS][HEADS * DIM]; /* output of each sequence's last token */

/* Packs the runs' rows, attends, and keeps each run's last row. */
static void forward(swa_cache *kv, const swa_run *runs, int n_runs) {
    int32_t n = swa_step_tokens(kv);
    float *q = (float *)room((size_t)n * HEADS * DIM * sizeof *q);
    float *k = (float *)room((size_t)n * KV_HEADS * DIM * sizeof *k);
    float *v = (float *)room((size_t)n * KV_HEADS * DIM * sizeof *v);
    swa_attn a = { 0 };
    for (int i = 0; i < n_runs; i++)
        for (int32_t t = 0; t < runs[i].n; t++) {
            uint64_t pos = (uint64_t)(runs[i].pos + t), row = (uint64_t)(runs[i].row + t);
            uint32_t seed = (uint32_t)runs[i].seq;
            for (uint64_t d = 0; d < HEADS * DIM; d++) q[row * HEADS * DIM + d] = number(seed, pos * 1000 + d);
            for (uint64_t d = 0; d < KV_HEADS * DIM; d++) {
                k[row * KV_HEADS * DIM + d] = number(seed + 10, pos * 1000 + d);
                v[row * KV_HEADS * DIM + d] = number(seed + 20, pos * 1000 + d);
            }
        }
    a.q.p = q;
    a.out.p = q; /* out may be q itself */
    a.k.p = k;
    a.v.p = v;
    check(swa_attend(kv, 0, &a), "swa_attend");
    for (int i = 0; i < n_runs; i++)
        memcpy(last[runs[i].seq], q + (size_t)(runs[i].row + runs[i].n - 1) * HEADS * DIM, sizeof last[0]);
    free(q);
    free(k);
    free(v);
}

int main(void) {
    static const int seqs[3] = { 0, 1, 2 };
    static const int32_t lens[3] = { 40, LONGEST, 7 };
    swa_window window = swa_window_sliding(24);
    swa_cache_desc d = one_layer(HEADS, KV_HEADS, DIM, &window);
    swa_plan plan;
    swa_run runs[SEQS];
    cache together, alone;
    int n_runs, steps = 0;
    int64_t decoding = 0;
    d.n_seqs = SEQS;
    together = new_cache(&d, 1);
    check(swa_prefill_begin(&plan, seqs, NULL, lens, 3, CHUNK), "swa_prefill_begin");
    while (swa_prefill_next(&plan, runs, &n_runs)) {
        swa_run one = { 0 };
        one.seq = 3; /* the sequence that decodes joins each step with one token */
        one.pos = decoding++;
        one.n = 1;
        runs[n_runs++] = one;
        check(swa_step_begin(&together.kv, runs, n_runs), "swa_step_begin");
        forward(&together.kv, runs, n_runs);
        printf("step %d: %d runs, %d tokens\n", ++steps, n_runs, (int)swa_step_tokens(&together.kv));
    }
    alone = new_cache(&d, 1);
    for (int s = 0; s < SEQS; s++) {
        float batch[HEADS * DIM];
        swa_run run = { 0 };
        memcpy(batch, last[s], sizeof batch);
        run.seq = s;
        run.n = s < 3 ? lens[s] : (int32_t)decoding;
        check(swa_step_begin(&alone.kv, &run, 1), "swa_step_begin");
        forward(&alone.kv, &run, 1);
        printf("sequence %d, %d tokens: %s as alone in one call\n", s, (int)run.n,
               memcmp(batch, last[s], sizeof batch) == 0 ? "the same bits" : "OTHER BITS");
    }
    free_cache(&together);
    free_cache(&alone);
    return 0;
}
