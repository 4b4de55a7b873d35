/* beam.c - a shared prompt is attended once and forked into beams; each step the best beams are continued and the worst
   is replaced by a copy of the best. A fork copies rows, so beams never disturb each other. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"

enum { BEAMS = 3, WINDOW = 40, PROMPT = 60, STEPS = 12, HEADS = 2, KV_HEADS = 1, DIM = 16, ROW = HEADS * DIM };

/* The token at pos of every beam, in one step: rows of all beams, packed in the order of the runs. */
static void decode(swa_cache *kv, int64_t pos, const uint32_t *seed, float *out) {
    float q[BEAMS][ROW], k[BEAMS][KV_HEADS * DIM], v[BEAMS][KV_HEADS * DIM];
    swa_run runs[BEAMS];
    swa_attn a = { 0 };
    memset(runs, 0, sizeof runs);
    for (int b = 0; b < BEAMS; b++) {
        runs[b].seq = b;
        runs[b].pos = pos;
        runs[b].n = 1;
        for (int i = 0; i < ROW; i++) q[b][i] = number(seed[b], (uint64_t)pos * ROW + (uint64_t)i);
        for (int i = 0; i < KV_HEADS * DIM; i++) {
            k[b][i] = number(seed[b] + 1, (uint64_t)pos * KV_HEADS * DIM + (uint64_t)i);
            v[b][i] = number(seed[b] + 2, (uint64_t)pos * KV_HEADS * DIM + (uint64_t)i);
        }
    }
    check(swa_step_begin(kv, runs, BEAMS), "swa_step_begin");
    a.q.p = q[0];
    a.k.p = k[0];
    a.v.p = v[0];
    a.out.p = out;
    check(swa_attend(kv, 0, &a), "swa_attend");
}

int main(void) {
    swa_window window = swa_window_sliding(WINDOW);
    swa_cache_desc d = one_layer(HEADS, KV_HEADS, DIM, &window);
    float *prompt = (float *)room(PROMPT * ROW * sizeof *prompt);
    float out[BEAMS][ROW], score[BEAMS] = { 0 };
    uint32_t seed[BEAMS];
    cache c;
    d.n_seqs = BEAMS;
    c = new_cache(&d, 1);
    check(swa_step_one(&c.kv, 0, 0, PROMPT), "swa_step_one");
    check(attend_at(&c.kv, &d.shape, 0, 1, 0, PROMPT, prompt), "swa_attend");
    for (int b = 0; b < BEAMS; b++) {
        if (b > 0) check(swa_cache_fork(&c.kv, b, 0, -1), "swa_cache_fork");
        seed[b] = 10 + (uint32_t)b; /* each beam chose another token */
    }
    for (int64_t pos = PROMPT; pos < PROMPT + STEPS; pos++) {
        int best = 0, worst = 0;
        decode(&c.kv, pos, seed, out[0]);
        for (int b = 0; b < BEAMS; b++) score[b] += out[b][0]; /* stands for the log-probability */
        for (int b = 1; b < BEAMS; b++) {
            if (score[b] > score[best]) best = b;
            if (score[b] < score[worst]) worst = b;
        }
        if (best == worst) continue;
        check(swa_cache_fork(&c.kv, worst, best, -1), "swa_cache_fork");
        score[worst] = score[best];
        seed[worst] = seed[best] + 7; /* continues another way from here */
    }
    for (int b = 0; b < BEAMS; b++)
        printf("beam %d: end %lld, score %.6f, last row %08lx\n", b, (long long)swa_cache_end(&c.kv, b),
               (double)score[b], bits_of(out[b], ROW));
    free_cache(&c);
    free(prompt);
    return 0;
}
