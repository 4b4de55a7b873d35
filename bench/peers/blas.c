/* blas.c - attention as two sgemm per block of queries, on OpenBLAS: what anyone with a BLAS can have, and the
   strongest f32 peer in prefill. The key range of a block is cut to what its window can see; the softmax between
   the two products is vectorised; blocks are handed to the threads largest first. Built -O3 -march=native. */
#include "peer.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112, BLOCK = 256, MAX_PARTS = 64 };
typedef void (*sgemm_fn)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                         const float *b, int ldb, float beta, float *c, int ldc);
static sgemm_fn sgemm;
static problem p;
static float *out, *scores[MAX_PARTS];
static int next_task;

typedef float v16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t i16 __attribute__((vector_size(64), aligned(4), may_alias));

static v16 select16(i16 m, v16 a, v16 b) { return (v16)(((i16)a & m) | ((i16)b & ~m)); }
static v16 all16(float x) { return x - (v16){ 0 }; }

/* 2^x for x <= 0, error below one unit in the last place */
static v16 exp2_16(v16 x) {
    v16 t, f, r, floor16 = all16(-126.0f);
    x = select16(x > floor16, x, floor16);
    t = x + 12582912.0f;
    f = x - (t - 12582912.0f);
    r = f * 1.534581217e-4f + 1.339993121e-3f;
    r = r * f + 9.618488956e-3f;
    r = r * f + 5.550328777e-2f;
    r = r * f + 2.402264689e-1f;
    r = r * f + 6.931472057e-1f;
    r = r * f + 1.0f;
    return (v16)((i16)r + ((i16)t << 23));
}

/* Softmax of s[lo..hi), 0 elsewhere in s[0..ld); ld a multiple of 16. Scores are in base 2. */
static void softmax(float *s, int lo, int hi, int ld) {
    int a = lo / 16 * 16, b = (hi + 15) / 16 * 16;
    v16 max = all16(-1e30f), sum = all16(0);
    float m = -1e30f, l = 0;
    for (int j = 0; j < lo; j++) s[j] = -1e30f;
    for (int j = hi; j < b; j++) s[j] = -1e30f;
    for (int j = a; j < b; j += 16) {
        v16 x = *(v16 *)(s + j);
        max = select16(x > max, x, max);
    }
    for (int j = 0; j < 16; j++)
        if (max[j] > m) m = max[j];
    for (int j = a; j < b; j += 16) {
        v16 e = exp2_16(*(v16 *)(s + j) - m);
        e = select16(*(v16 *)(s + j) > all16(-1e29f), e, all16(0));
        sum += e;
        *(v16 *)(s + j) = e;
    }
    for (int j = 0; j < 16; j++) l += sum[j];
    for (int j = a; j < b; j += 16) *(v16 *)(s + j) *= 1 / l;
    for (int j = 0; j < a; j++) s[j] = 0;
    for (int j = b; j < ld; j++) s[j] = 0;
}

/* Queries q0..q1-1 of head h. */
static void block(float *s, int q0, int q1, int h) {
    int k0 = p.window > 0 && q0 - p.window + 1 > 0 ? (int)(q0 - p.window + 1) : 0, nk = q1 - k0;
    int ld = (nk + 15) / 16 * 16, g = h / (p.heads / p.kv_heads);
    int krow = p.kv_heads * p.dk, vrow = p.kv_heads * p.dv;
    int qrow = p.heads * p.dk, orow = p.heads * p.dv;
    sgemm(ROW_MAJOR, NO_TRANS, TRANS, q1 - q0, nk, p.dk, (float)(p.scale * 1.4426950408889634),
          p.q + (int64_t)q0 * qrow + h * p.dk, qrow, p.k + (int64_t)k0 * krow + g * p.dk, krow, 0, s, ld);
    for (int i = q0; i < q1; i++) {
        int lo = p.window > 0 && i - p.window + 1 > k0 ? (int)(i - p.window + 1) - k0 : 0;
        softmax(s + (int64_t)(i - q0) * ld, lo, i + 1 - k0, ld);
    }
    sgemm(ROW_MAJOR, NO_TRANS, NO_TRANS, q1 - q0, p.dv, nk, 1, s, ld, p.v + (int64_t)k0 * vrow + g * p.dv, vrow, 0,
          out + (int64_t)q0 * orow + h * p.dv, orow);
}

static void work(void *arg, int part, int parts) {
    int blocks = (p.n + BLOCK - 1) / BLOCK, task;
    (void)arg;
    (void)parts;
    while ((task = __atomic_fetch_add(&next_task, 1, __ATOMIC_RELAXED)) < blocks * p.heads) {
        int b = blocks - 1 - task / p.heads, q1 = (b + 1) * BLOCK;
        block(scores[part], b * BLOCK, q1 < p.n ? q1 : p.n, task % p.heads);
    }
}

static const char *load(void) {
    static char version[96];
    char path[1024], *(*config)(void), *(*core)(void);
    void (*threads)(int), *h;
    if (sgemm) return NULL;
    snprintf(path, sizeof path, "%s/openblas/libopenblas.so.0", peer_dir());
    h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (h == NULL) h = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (h == NULL) return "libopenblas.so.0 not found: run bench/peers.sh";
    *(void **)&threads = dlsym(h, "openblas_set_num_threads");
    *(void **)&config = dlsym(h, "openblas_get_config");
    *(void **)&core = dlsym(h, "openblas_get_corename");
    *(void **)&sgemm = dlsym(h, "cblas_sgemm");
    if (!threads || !config || !core || !sgemm) {
        sgemm = NULL;
        return "not an OpenBLAS";
    }
    threads(1); /* the blocks are the parallelism */
    snprintf(path, sizeof path, "%s", config() + (strncmp(config(), "OpenBLAS ", 9) == 0 ? 9 : 0));
    snprintf(version, sizeof version, "%.*s %s", (int)strcspn(path, " "), path, core());
    peer_openblas.version = version;
    return NULL;
}

static const char *setup(const problem *q) {
    const char *why = load();
    p = *q;
    if (why) return why;
    if (p.type != PEER_F32 || p.mla || p.n < BLOCK || p.pos > p.pos0) return "f32 prefill only";
    if (p.threads > MAX_PARTS) return "too many threads";
    out = (float *)peer_alloc((size_t)p.n * (size_t)(p.heads * p.dv) * 4);
    for (int i = 0; i < p.threads; i++)
        scores[i] = (float *)peer_alloc((size_t)BLOCK * (size_t)((p.window > 0 ? p.window : p.n) + BLOCK + 16) * 4);
    return NULL;
}

static double sample(void) {
    next_task = 0;
    return peer_parallel(p.threads, work, NULL);
}
static const float *result(int64_t *first) {
    *first = 0;
    return out;
}
static void done(void) {
    free(out);
    for (int i = 0; i < MAX_PARTS; i++) {
        free(scores[i]);
        scores[i] = NULL;
    }
    out = NULL;
}

peer peer_openblas = { "openblas-256-blocks", "", setup, sample, result, done };
