/* hybrid.c - a model whose layers differ: two of three see a window, every third one all (gpt-oss alternates 1:1, Gemma
   3 has 5:1), with a learned sink logit per head and scores capped by tanh. One cache holds both kinds of layer, each
   with the rows that it needs; windows[] repeats from layer to layer. zoo.c has 29 real models as descs. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"
#include <math.h>

enum { LAYERS = 6, HEADS = 8, KV_HEADS = 2, DIM = 32, WINDOW = 24, TOKENS = 150, CONTEXT = 4096 };
static const float softcap = 2.0f; /* Gemma 2 has 50 on scores that are larger than ours */

typedef struct {
    float *q, *k, *v, *sinks; /* of one layer, all tokens; sinks [HEADS] */
} layer;

/* n tokens from position pos on in every layer: out [LAYERS][TOKENS][HEADS][DIM]. */
static void step(const layer *m, swa_cache *kv, int64_t pos, int32_t n, float *out) {
    check(swa_step_one(kv, 0, pos, n), "swa_step_one"); /* once for all layers */
    for (int l = 0; l < LAYERS; l++) {
        swa_attn a = { 0 };
        a.q.p = m[l].q + pos * HEADS * DIM;
        a.k.p = m[l].k + pos * KV_HEADS * DIM;
        a.v.p = m[l].v + pos * KV_HEADS * DIM;
        a.out.p = out + (l * TOKENS + pos) * HEADS * DIM;
        a.softcap = softcap;
        a.sink_logits = m[l].sinks; /* an exp more in the sum below, and no value */
        check(swa_attend(kv, l, &a), "swa_attend");
    }
}

/* The same written out in double: the largest error of one head of one token. */
static double error_of(const layer *m, int full, int pos, int head, const float *out) {
    const int first = full || pos < WINDOW ? 0 : pos - WINDOW + 1, group = head / (HEADS / KV_HEADS);
    const float *q = m->q + (pos * HEADS + head) * DIM;
    double o[DIM] = { 0 }, sum = exp((double)m->sinks[head]), worst = 0;
    for (int i = first; i <= pos; i++) {
        const float *k = m->k + (i * KV_HEADS + group) * DIM, *v = m->v + (i * KV_HEADS + group) * DIM;
        double score = 0;
        for (int d = 0; d < DIM; d++) score += (double)q[d] * (double)k[d];
        score = (double)softcap * tanh(score / sqrt((double)DIM) / (double)softcap);
        sum += exp(score);
        for (int d = 0; d < DIM; d++) o[d] += exp(score) * (double)v[d];
    }
    for (int d = 0; d < DIM; d++) worst = fmax(worst, fabs(o[d] / sum - (double)out[d]));
    return worst;
}

int main(void) {
    static float out[2][LAYERS * TOKENS * HEADS * DIM];
    const int32_t chunk[2] = { 64, 7 };
    const swa_window windows[3] = { swa_window_sliding(WINDOW), swa_window_sliding(WINDOW), swa_window_causal() };
    layer m[LAYERS];
    swa_cache_desc d = one_layer(HEADS, KV_HEADS, DIM, windows), full;
    double worst = 0;
    int same;

    d.n_layers = LAYERS;
    d.n_windows = 3;         /* layer l has windows[l % 3] */
    d.max_context = CONTEXT; /* for the layers that see all */
    full = d;
    full.windows = windows + 2;
    full.n_windows = 1;
    for (int l = 0; l < LAYERS; l++) {
        const uint32_t seed = 10 * (uint32_t)l;
        m[l].q = rows_at(seed, 0, TOKENS, HEADS * DIM);
        m[l].k = rows_at(seed + 1, 0, TOKENS, KV_HEADS * DIM);
        m[l].v = rows_at(seed + 2, 0, TOKENS, KV_HEADS * DIM);
        m[l].sinks = rows_at(seed + 3, 0, 1, HEADS);
    }
    for (int i = 0; i < 2; i++) {
        cache c = new_cache(&d, 1);
        for (int32_t pos = 0, n; pos < TOKENS; pos += n) {
            n = TOKENS - pos < chunk[i] ? TOKENS - pos : chunk[i];
            step(m, &c.kv, pos, n, out[i]);
        }
        if (i == 0)
            for (int l = 0; l < 3; l++)
                printf("layer %d keeps positions from %ld to %ld\n", l, (long)swa_cache_first(&c.kv, 0, l),
                       (long)swa_cache_end(&c.kv, 0) - 1);
        free_cache(&c);
    }
    for (int l = 0; l < LAYERS; l++)
        for (int pos = 0; pos < TOKENS; pos++)
            for (int head = 0; head < HEADS; head++)
                worst = fmax(
                    worst, error_of(&m[l], l % 3 == 2, pos, head, out[0] + ((l * TOKENS + pos) * HEADS + head) * DIM));
    same = memcmp(out[0], out[1], sizeof out[0]) == 0;
    printf("a context of %d takes %lu KB, all layers full %lu KB\n", CONTEXT, (unsigned long)swa_cache_bytes(&d) / 1024,
           (unsigned long)swa_cache_bytes(&full) / 1024);
    printf("error below 1e-6: %s; in chunks of %d and of %d: %s\n", worst < 1e-6 ? "yes" : "NO", (int)chunk[0],
           (int)chunk[1], same ? "the same bits" : "OTHER BITS");
    for (int l = 0; l < LAYERS; l++) {
        free(m[l].q);
        free(m[l].k);
        free(m[l].v);
        free(m[l].sinks);
    }
    return worst < 1e-6 && same ? 0 : 1;
}
