/* naive.c - the loop that most people write, in the shape that llama2.c made popular: per head, one key at a time.
   Built -O3 -march=native -ffast-math, so that the compiler may do what it can. */
#include "peer.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static problem p;
static float *cache, *out, *att; /* [layers][K then V][keys][kv_heads][d], [n][heads][dv], [heads][keys] */
static int64_t keys;

static void attend(int layer, int t, int h) {
    int64_t pos = p.pos + t, lo = p.window > 0 ? pos - p.window + 1 : 0;
    int64_t krow = (int64_t)p.kv_heads * p.dk, vrow = (int64_t)p.kv_heads * p.dv;
    const float *kc = cache + layer * keys * (krow + vrow), *vc = kc + keys * krow;
    const float *q = p.q + ((int64_t)t * p.heads + h) * p.dk;
    float *o = out + ((int64_t)t * p.heads + h) * p.dv, *s = att + h * keys, max, sum = 0;
    int g = h / (p.heads / p.kv_heads);
    if (lo < p.pos0) lo = p.pos0;
    for (int64_t i = lo; i <= pos; i++) {
        const float *k = kc + (i - p.pos0) * krow + g * p.dk;
        float score = 0;
        for (int d = 0; d < p.dk; d++) score += q[d] * k[d];
        s[i - lo] = score * (float)p.scale;
    }
    max = s[0];
    for (int64_t i = 1; i <= pos - lo; i++)
        if (s[i] > max) max = s[i];
    for (int64_t i = 0; i <= pos - lo; i++) sum += s[i] = expf(s[i] - max);
    for (int64_t i = 0; i <= pos - lo; i++) s[i] /= sum;
    memset(o, 0, (size_t)p.dv * sizeof *o);
    for (int64_t i = lo; i <= pos; i++) {
        const float *v = vc + (i - p.pos0) * vrow + g * p.dv;
        float a = s[i - lo];
        for (int d = 0; d < p.dv; d++) o[d] += a * v[d];
    }
}

static void work(void *arg, int part, int parts) {
    (void)arg;
    for (int l = 0; l < p.layers; l++)
        for (int t = 0; t < p.n; t++)
            for (int h = part; h < p.heads; h += parts) attend(l, t, h);
}

static const char *setup(const problem *q) {
    size_t row;
    p = *q;
    if (p.type != PEER_F32 || p.mla) return "f32 only";
    if (p.n > 512) return "takes minutes";
    keys = p.pos + p.n - p.pos0;
    row = (size_t)p.kv_heads * (size_t)(p.dk + p.dv);
    cache = (float *)peer_alloc((size_t)p.layers * (size_t)keys * row * 4);
    out = (float *)peer_alloc((size_t)p.n * (size_t)(p.heads * p.dv) * 4);
    att = (float *)peer_alloc((size_t)p.heads * (size_t)keys * 4);
    for (int l = 0; l < p.layers; l++) {
        float *k = cache + (size_t)l * (size_t)keys * row;
        memcpy(k, p.k, (size_t)keys * (size_t)(p.kv_heads * p.dk) * 4);
        memcpy(k + keys * p.kv_heads * p.dk, p.v, (size_t)keys * (size_t)(p.kv_heads * p.dv) * 4);
    }
    return NULL;
}

static double sample(void) { return peer_parallel(p.threads, work, NULL) / p.layers; }
static const float *result(int64_t *first) {
    *first = 0;
    return out;
}
static void done(void) {
    free(cache);
    free(out);
    free(att);
    cache = out = att = NULL;
}

peer peer_naive = { "naive-loop", "-O3 -march=native -ffast-math", setup, sample, result, done };
