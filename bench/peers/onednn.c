/* onednn.c - oneDNN's product of bf16 matrices with sums in f32: what a library of matrix products reaches on the
   shapes of attention's two, with AMX where the CPU has it, and without softmax, mask or cache. So it is a limit, not
   attention. The second matrix is laid out as oneDNN likes it, outside the clock. Debian's libdnnl2, version 2.6. */
#include "peer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__has_include)
#if __has_include(<oneapi/dnnl/dnnl.h>)
#include <oneapi/dnnl/dnnl.h>
#define HAVE_ONEDNN 1
#endif
#endif
#ifndef HAVE_ONEDNN
const char *onednn_version(void) { return ""; }
const char *onednn_setup(int m, int k, int n, int threads) {
    (void)m;
    (void)k;
    (void)n;
    (void)threads;
    return "built without oneDNN's header: run bench/peers.sh";
}
double onednn_sample(void) { return 0; }
double onednn_error(void) { return 0; }
void onednn_done(void) {}
#else
#include <dlfcn.h>
#include <math.h>
#include <time.h>

/* clang-format off */
#define FUNCTIONS(F) F(dnnl_engine_create) F(dnnl_stream_create) F(dnnl_stream_wait) F(dnnl_memory_desc_init_by_tag) \
    F(dnnl_memory_desc_get_size) F(dnnl_memory_create) F(dnnl_memory_destroy) F(dnnl_matmul_desc_init) \
    F(dnnl_primitive_desc_create) F(dnnl_primitive_desc_query_md) F(dnnl_primitive_desc_destroy) \
    F(dnnl_reorder_primitive_desc_create) F(dnnl_primitive_create) F(dnnl_primitive_execute) \
    F(dnnl_primitive_destroy) F(dnnl_version)
/* clang-format on */
#define POINTER(name) static __typeof__(name) *p_##name;
FUNCTIONS(POINTER)

enum { A, B, PACKED, C, MEMORIES };
static struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    void (*set_threads)(int);
    dnnl_primitive_t product;
    dnnl_memory_t memory[MEMORIES];
    void *data[MEMORIES];
    int m, k, n, repeat;
} d;
static char version[64];

const char *onednn_version(void) { return version; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const char *load(void) {
    char path[1024];
    void *h, *omp;
    if (d.engine) return NULL;
    snprintf(path, sizeof path, "%s/onednn/libOpenCL.so.1", peer_dir());
    dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* it asks for one, and uses none here */
    snprintf(path, sizeof path, "%s/onednn/libdnnl.so.2", peer_dir());
    h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (h == NULL) h = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (h == NULL) return "libdnnl.so.2 not found: run bench/peers.sh";
#define FIND(name)                                                                                                     \
    *(void **)&p_##name = dlsym(h, #name);                                                                             \
    if (p_##name == NULL) return "not oneDNN 2: no " #name;
    FUNCTIONS(FIND)
    omp = dlopen("libgomp.so.1", RTLD_NOW);
    *(void **)&d.set_threads = omp ? dlsym(omp, "omp_set_num_threads") : NULL;
    if (d.set_threads == NULL) return "no libgomp.so.1";
    if (p_dnnl_engine_create(&d.engine, dnnl_cpu, 0) != dnnl_success
        || p_dnnl_stream_create(&d.stream, d.engine, dnnl_stream_default_flags) != dnnl_success)
        return "no CPU engine";
    snprintf(version, sizeof version, "%d.%d.%d", p_dnnl_version()->major, p_dnnl_version()->minor,
             p_dnnl_version()->patch);
    return NULL;
}

static int execute(dnnl_primitive_t p, const dnnl_exec_arg_t *args, int n) {
    return p_dnnl_primitive_execute(p, d.stream, n, args) == dnnl_success
        && p_dnnl_stream_wait(d.stream) == dnnl_success;
}
static int multiply(void) {
    dnnl_exec_arg_t args[3] = {
        { DNNL_ARG_SRC, d.memory[A] }, { DNNL_ARG_WEIGHTS, d.memory[PACKED] }, { DNNL_ARG_DST, d.memory[C] }
    };
    return execute(d.product, args, 3);
}

/* The second matrix, as the product wants it. */
static int pack(const dnnl_memory_desc_t *from, const dnnl_memory_desc_t *to) {
    dnnl_exec_arg_t args[2] = { { DNNL_ARG_FROM, d.memory[B] }, { DNNL_ARG_TO, d.memory[PACKED] } };
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t reorder;
    int ok;
    if (p_dnnl_reorder_primitive_desc_create(&pd, from, d.engine, to, d.engine, NULL) != dnnl_success) return 0;
    ok = p_dnnl_primitive_create(&reorder, pd) == dnnl_success;
    p_dnnl_primitive_desc_destroy(pd);
    if (!ok) return 0;
    ok = execute(reorder, args, 2);
    p_dnnl_primitive_destroy(reorder);
    return ok;
}
static int memory_make(int which, const dnnl_memory_desc_t *md) {
    d.data[which] = peer_alloc(p_dnnl_memory_desc_get_size(md));
    return d.data[which] && p_dnnl_memory_create(&d.memory[which], md, d.engine, d.data[which]) == dnnl_success;
}
static void fill(int which, size_t count, uint32_t seed) {
    float *x = (float *)malloc(count * sizeof *x);
    if (x == NULL) return;
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int)(seed >> 8) / 8388608.0f - 1.0f;
    }
    peer_convert(d.data[which], PEER_BF16, x, count);
    free(x);
}

/* c [m][n] = a [m][k] times b [k][n]; NULL, or why not. */
const char *onednn_setup(int m, int k, int n, int threads) {
    const dnnl_dims_t dims[3] = { { m, k }, { k, n }, { m, n } };
    dnnl_memory_desc_t a, b, any, c;
    dnnl_matmul_desc_t desc;
    dnnl_primitive_desc_t pd;
    const char *why = load();
    int ok;
    if (why) return why;
    d.set_threads(threads);
    d.m = m;
    d.k = k;
    d.n = n;
    d.repeat = (int)(2e9 / (2.0 * m * k * n)) + 1;
    p_dnnl_memory_desc_init_by_tag(&a, 2, dims[0], dnnl_bf16, dnnl_ab);
    p_dnnl_memory_desc_init_by_tag(&b, 2, dims[1], dnnl_bf16, dnnl_ab);
    p_dnnl_memory_desc_init_by_tag(&any, 2, dims[1], dnnl_bf16, dnnl_format_tag_any);
    p_dnnl_memory_desc_init_by_tag(&c, 2, dims[2], dnnl_f32, dnnl_ab);
    if (p_dnnl_matmul_desc_init(&desc, &a, &any, NULL, &c) != dnnl_success) return "no such product";
    if (p_dnnl_primitive_desc_create(&pd, &desc, NULL, d.engine, NULL) != dnnl_success) return "no bf16 on this CPU";
    any = *p_dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    ok = p_dnnl_primitive_create(&d.product, pd) == dnnl_success;
    p_dnnl_primitive_desc_destroy(pd);
    if (!ok || !memory_make(A, &a) || !memory_make(B, &b) || !memory_make(PACKED, &any) || !memory_make(C, &c))
        return "out of memory";
    fill(A, (size_t)m * (size_t)k, 1);
    fill(B, (size_t)k * (size_t)n, 2);
    return pack(&b, &any) && multiply() ? NULL : "it does not run";
}

/* Seconds of one product, its matrices where the one before has left them. */
double onednn_sample(void) {
    double began = now();
    for (int i = 0; i < d.repeat; i++)
        if (!multiply()) return 0;
    return (now() - began) / d.repeat;
}

/* The largest error of some entries, by the root of k: entries are about that large. */
double onednn_error(void) {
    const uint16_t *a = (const uint16_t *)d.data[A], *b = (const uint16_t *)d.data[B];
    const float *c = (const float *)d.data[C];
    double worst = 0;
    for (int i = 0; i < d.m; i += d.m / 3)
        for (int j = 0; j < d.n; j += d.n / 5) {
            double sum = 0, e;
            for (int p = 0; p < d.k; p++) {
                uint32_t x = (uint32_t)a[(size_t)i * (size_t)d.k + (size_t)p] << 16;
                uint32_t y = (uint32_t)b[(size_t)p * (size_t)d.n + (size_t)j] << 16;
                float fx, fy;
                memcpy(&fx, &x, 4);
                memcpy(&fy, &y, 4);
                sum += (double)fx * (double)fy;
            }
            e = sum - (double)c[(size_t)i * (size_t)d.n + (size_t)j];
            if (e < 0) e = -e;
            if (e > worst) worst = e;
        }
    return worst / sqrt((double)d.k);
}

void onednn_done(void) {
    if (d.product) p_dnnl_primitive_destroy(d.product);
    d.product = NULL;
    for (int i = 0; i < MEMORIES; i++) {
        if (d.memory[i]) p_dnnl_memory_destroy(d.memory[i]);
        d.memory[i] = NULL;
        free(d.data[i]);
        d.data[i] = NULL;
    }
}
#endif
