/* streaming.c - text without end (StreamingLLM, Xiao et al. 2023): four pinned first tokens and the last W, with
   positions as the cache counts them. K is stored once, rotated by absolute position; towards the sinks the query is
   rotated as if right behind the window: q_sink, at min(pos, n_sink + W - 1). Nothing is ever rotated again. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"
#include <math.h>

enum { W = 24, SINKS = 4, DIM = 16, TOKENS = 400, FULL = SINKS + W };

static double freq[DIM / 2];

static void rotate(float *x, int64_t pos) {
    check(swa_rope(x, 1, 1, DIM, &pos, freq, DIM, SWA_ROPE_HALF, 0), "swa_rope");
}

/* The same row by the paper's recipe: the cache's rows rotated anew by their place in the cache, in double. */
static double by_the_paper(int64_t pos, const float *out) {
    double o[DIM] = { 0 }, sum = 0, worst = 0;
    int64_t first = pos < FULL ? 0 : pos - W + 1, place = 0;
    float *q = rows_at(1, pos, 1, DIM);
    rotate(q, pos < FULL ? pos : FULL - 1);
    for (int64_t p = 0; p <= pos; p++) {
        double s = 0;
        float *k, *v;
        if (p >= SINKS && p < first) continue;
        k = rows_at(2, p, 1, DIM);
        v = rows_at(3, p, 1, DIM);
        rotate(k, place++);
        for (int d = 0; d < DIM; d++) s += (double)q[d] * (double)k[d];
        s = exp(s / sqrt((double)DIM));
        sum += s;
        for (int d = 0; d < DIM; d++) o[d] += s * (double)v[d];
        free(k);
        free(v);
    }
    for (int d = 0; d < DIM; d++) worst = fmax(worst, fabs(o[d] / sum - (double)out[d]));
    free(q);
    return worst;
}

int main(void) {
    swa_window window = swa_window_sinks(W, SINKS);
    swa_cache_desc d = one_layer(1, 1, DIM, &window);
    double worst = 0;
    cache c;
    c = new_cache(&d, 1);
    check(swa_yarn(&(swa_yarn_desc){ .base = 10000 }, DIM, freq, NULL), "swa_yarn");
    for (int64_t pos = 0; pos < TOKENS; pos++) {
        float *q = rows_at(1, pos, 1, DIM), *k = rows_at(2, pos, 1, DIM), *v = rows_at(3, pos, 1, DIM);
        float q_sink[DIM], out[DIM];
        swa_attn a = { 0 };
        memcpy(q_sink, q, sizeof q_sink);
        rotate(q, pos);
        rotate(k, pos);
        rotate(q_sink, pos < FULL ? pos : FULL - 1);
        a.q.p = q;
        a.q_sink.p = q_sink;
        a.k.p = k;
        a.v.p = v;
        a.out.p = out;
        check(swa_step_one(&c.kv, 0, pos, 1), "swa_step_one");
        check(swa_attend(&c.kv, 0, &a), "swa_attend");
        worst = fmax(worst, by_the_paper(pos, out));
        free(q);
        free(k);
        free(v);
    }
    printf("%d tokens through %d rows; against the paper's recipe: %s\n", TOKENS, FULL,
           worst < 1e-5 ? "equal to 1e-5" : "DIFFERENT");
    free_cache(&c);
    return 0;
}
