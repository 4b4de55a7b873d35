/* ggml.c - ggml's CPU backend, as prebuilt in the npm package @node-llama-cpp/linux-x64, through its C symbols.

   Three forms: flash attention as one operation over all queries, flash attention in the 512-token chunks that
   llama.cpp really runs (each over the cache rows that its window needs), and the two matrix products around a
   softmax that llama.cpp runs without flash attention. The backend picks its own CPU variant, threads belong to a
   thread pool that exists before the clock starts, queries are laid out as the kernels like them best, and storing
   new rows is not in the time (it is in ours). */
#define _GNU_SOURCE
#include "peer.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    size_t size;
    void *mem;
    bool no_alloc;
} init_params;
typedef void tensor;
static struct {
    void *(*init)(init_params);
    void (*free)(void *);
    tensor *(*new_4d)(void *, int, int64_t, int64_t, int64_t, int64_t);
    tensor *(*view_4d)(void *, tensor *, int64_t, int64_t, int64_t, int64_t, size_t, size_t, size_t, size_t);
    tensor *(*permute)(void *, tensor *, int, int, int, int);
    tensor *(*cont)(void *, tensor *);
    tensor *(*flash)(void *, tensor *, tensor *, tensor *, tensor *, float, float, float);
    tensor *(*mul_mat)(void *, tensor *, tensor *);
    tensor *(*soft_max)(void *, tensor *, tensor *, float, float);
    void *(*graph)(void *, size_t, bool);
    void (*expand)(void *, tensor *);
    void *(*alloc)(void *, void *);
    void (*buffer_free)(void *);
    int (*compute)(void *, void *);
    void (*set)(tensor *, const void *, size_t, size_t);
    void *(*data)(const tensor *);
    size_t (*tensor_overhead)(void);
    size_t (*graph_overhead)(size_t, bool);
    void (*load_all)(const char *);
    void *(*backend_init)(int, const char *);
    void *(*reg_by_name)(const char *);
    void *(*proc)(void *, const char *);
    void (*pool_params)(void *, int);
    const char *(*version)(void);
    /* of the CPU backend */
    void (*set_threads)(void *, int);
    void *(*pool_new)(void *);
    void (*pool_free)(void *);
    void (*pool_set)(void *, void *);
} G;
static void *backend;

enum { T_F32 = 0, T_F16 = 1, T_Q8_0 = 8, T_BF16 = 30, MAX_GRAPHS = 64, MAX_LAYERS = 600 };
static const int type_ids[] = { T_F32, T_F16, T_BF16, T_Q8_0 };
static size_t row_bytes(int t, int64_t n) { return (size_t)(t == T_F32 ? n * 4 : t == T_Q8_0 ? n / 32 * 34 : n * 2); }

static problem p;
static struct {
    void *context, *buffer;
    void *graph[MAX_GRAPHS];
    tensor *out;
    int n;
    int64_t first;
} run;

/* ---- the library ---- */

static const char *load(void) {
    static char version[64];
    static const char *const names[] = { "libggml-base.so", "libggml.v0.5.0.so" };
    /* clang-format off */
    struct { const char *name; void *slot; } symbols[] = {
        { "ggml_init", &G.init }, { "ggml_free", &G.free }, { "ggml_new_tensor_4d", &G.new_4d },
        { "ggml_view_4d", &G.view_4d }, { "ggml_permute", &G.permute }, { "ggml_cont", &G.cont },
        { "ggml_flash_attn_ext", &G.flash }, { "ggml_mul_mat", &G.mul_mat },
        { "ggml_soft_max_ext_inplace", &G.soft_max }, { "ggml_new_graph_custom", &G.graph },
        { "ggml_build_forward_expand", &G.expand }, { "ggml_backend_alloc_ctx_tensors", &G.alloc },
        { "ggml_backend_buffer_free", &G.buffer_free }, { "ggml_backend_graph_compute", &G.compute },
        { "ggml_backend_tensor_set", &G.set }, { "ggml_get_data", &G.data },
        { "ggml_tensor_overhead", &G.tensor_overhead }, { "ggml_graph_overhead_custom", &G.graph_overhead },
        { "ggml_backend_load_all_from_path", &G.load_all }, { "ggml_backend_init_by_type", &G.backend_init },
        { "ggml_backend_reg_by_name", &G.reg_by_name }, { "ggml_backend_reg_get_proc_address", &G.proc },
        { "ggml_threadpool_params_init", &G.pool_params }, { "ggml_version", &G.version },
    };
    /* clang-format on */
    char dir[900], path[1024];
    void *reg, *h[2];
    if (backend) return NULL;
    snprintf(dir, sizeof dir, "%s/node_modules/@node-llama-cpp/linux-x64/bins/linux-x64", peer_dir());
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        h[i] = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (h[i] == NULL) return "package @node-llama-cpp/linux-x64 not found: run bench/peers.sh";
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *f = dlsym(h[0], symbols[i].name);
        if (f == NULL) f = dlsym(h[1], symbols[i].name);
        if (f == NULL) return "the package lacks a symbol: another version?";
        *(void **)symbols[i].slot = f;
    }
    G.load_all(dir);
    backend = G.backend_init(0, NULL);
    reg = G.reg_by_name("CPU");
    if (backend == NULL || reg == NULL) return "no CPU backend";
    *(void **)&G.set_threads = G.proc(reg, "ggml_backend_set_n_threads");
    *(void **)&G.pool_new = G.proc(reg, "ggml_threadpool_new");
    *(void **)&G.pool_free = G.proc(reg, "ggml_threadpool_free");
    *(void **)&G.pool_set = G.proc(reg, "ggml_backend_cpu_set_threadpool");
    if (!G.set_threads || !G.pool_new || !G.pool_free || !G.pool_set) return "no thread pool in the CPU backend";
    snprintf(version, sizeof version, "npm 3.22.1 ggml %s", G.version());
    peer_ggml_flash.version = peer_ggml_flash_512.version = peer_ggml_matmul.version = version;
    return NULL;
}

/* ---- tensors ---- */

/* dst in a ggml type; q8_0 is blocks of 32 with an f16 scale in front */
static void convert(void *dst, int type, const float *src, size_t n) {
    if (type != T_Q8_0) {
        peer_convert(dst, type == T_F32 ? PEER_F32 : type == T_F16 ? PEER_F16 : PEER_BF16, src, n);
        return;
    }
    for (size_t b = 0; b < n / 32; b++) {
        uint8_t *o = (uint8_t *)dst + b * 34;
        const float *x = src + b * 32;
        float max = 0, scale;
        for (int i = 0; i < 32; i++) {
            float a = x[i] < 0 ? -x[i] : x[i];
            if (a > max) max = a;
        }
        scale = max / 127;
        peer_convert(o, PEER_F16, &scale, 1);
        for (int i = 0; i < 32; i++) {
            float y = scale > 0 ? x[i] / scale : 0;
            ((int8_t *)o)[2 + i] = (int8_t)(y < 0 ? y - 0.5f : y + 0.5f);
        }
    }
}

/* The same rows into every layer's tensor. */
static void set_converted(tensor **t, int type, const float *src, size_t n) {
    size_t bytes = row_bytes(type, (int64_t)n);
    void *tmp = peer_alloc(bytes);
    convert(tmp, type, src, n);
    for (int l = 0; l < p.layers; l++) G.set(t[l], tmp, 0, bytes);
    free(tmp);
}

/* V as the matrix product wants it, [kv head][dv][key]; for MLA it is cut out of K. */
static void set_transposed(tensor **t, int type, int64_t keys) {
    int64_t ev = (int64_t)p.kv_heads * p.dv, row = p.mla ? (int64_t)p.kv_heads * p.dk : ev;
    float *tmp = (float *)peer_alloc((size_t)(keys * ev) * 4);
    for (int64_t j = 0; j < keys; j++)
        for (int64_t e = 0; e < ev; e++) tmp[e * keys + j] = (p.mla ? p.k : p.v)[j * row + e];
    set_converted(t, type, tmp, (size_t)(keys * ev));
    free(tmp);
}

static void set_queries(tensor *t, int64_t first, int n) /* [head][token][dk] */
{
    float *tmp = (float *)peer_alloc((size_t)n * (size_t)(p.heads * p.dk) * 4);
    for (int h = 0; h < p.heads; h++)
        for (int i = 0; i < n; i++)
            memcpy(tmp + ((int64_t)h * n + i) * p.dk, p.q + ((first + i) * p.heads + h) * p.dk, (size_t)p.dk * 4);
    G.set(t, tmp, 0, (size_t)n * (size_t)(p.heads * p.dk) * 4);
    free(tmp);
}

static void set_mask(tensor *t, int64_t first, int n, int64_t rows, int64_t lo, int64_t nk) {
    uint16_t *m = (uint16_t *)peer_alloc((size_t)(rows * nk) * 2);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < nk; j++) {
            int64_t q = p.pos + first + i, k = p.pos0 + lo + j;
            m[i * nk + j] = i < n && k <= q && (p.window <= 0 || q - k < p.window) ? 0 : 0xfc00;
        }
    G.set(t, m, 0, (size_t)(rows * nk) * 2);
    free(m);
}

/* ---- graphs ---- */

typedef struct {
    tensor *q, *mask, *out;
    void *graph;
    int64_t first, lo, nk, rows;
    int n;
} chunk;

static tensor *cache_view(void *c, tensor *cache, int type, int64_t d, int64_t row, int64_t lo, int64_t nk) {
    size_t bytes = row_bytes(type, row);
    return G.permute(
        c, G.view_4d(c, cache, d, p.kv_heads, nk, 1, row_bytes(type, d), bytes, bytes * (size_t)nk, bytes * (size_t)lo),
        0, 2, 1, 3);
}

static tensor *attention(void *c, int flash, int type, tensor *q, tensor *kc, tensor *vc, tensor *mask, int64_t lo,
                         int64_t nk) {
    int64_t ek = (int64_t)p.kv_heads * p.dk, ev = (int64_t)p.kv_heads * p.dv;
    tensor *k = cache_view(c, kc, type, p.dk, ek, lo, nk);
    if (flash) {
        tensor *v = p.mla ? cache_view(c, kc, type, p.dv, ek, lo, nk) : cache_view(c, vc, type, p.dv, ev, lo, nk);
        return G.flash(c, q, k, v, mask, (float)p.scale, 0, 0);
    } else {
        int vt = type == T_Q8_0 ? T_F16 : type;
        size_t row = row_bytes(vt, nk);
        tensor *v = G.view_4d(c, vc, nk, p.dv, p.kv_heads, 1, row, row * (size_t)p.dv, row * (size_t)ev, 0);
        tensor *s = G.soft_max(c, G.mul_mat(c, k, q), mask, (float)p.scale, 0);
        return G.cont(c, G.permute(c, G.mul_mat(c, v, s), 0, 2, 1, 3));
    }
}

/* Queries u..u+ubatch-1: their tensors and graph, over the cache rows that they can see. */
static chunk make_chunk(void *c, int flash, int type, int64_t u, int ubatch, tensor **k, tensor **v) {
    chunk x;
    int64_t lo = p.window > 0 ? p.pos + u - p.window + 1 - p.pos0 : 0;
    x.n = (int)(p.n - u < ubatch ? p.n - u : ubatch);
    x.first = u;
    x.lo = lo > 0 && ubatch < p.n ? lo / 256 * 256 : 0;
    x.nk = p.pos + u + x.n - p.pos0 - x.lo;
    x.rows = x.n == 1 ? 1 : (x.n + 15) / 16 * 16;
    x.q = G.new_4d(c, T_F32, p.dk, x.n, p.heads, 1);
    x.mask = G.new_4d(c, T_F16, x.nk, x.rows, 1, 1);
    x.out = NULL;
    x.graph = G.graph(c, (size_t)p.layers * 8 + 64, false);
    for (int l = 0; l < p.layers; l++) {
        x.out = attention(c, flash, type, x.q, k[l], v[l], x.mask, x.lo, x.nk);
        G.expand(x.graph, x.out);
    }
    return x;
}

static const char *setup_form(const problem *q, int flash, int ubatch) {
    const char *why = load();
    chunk ch[MAX_GRAPHS];
    tensor *k[MAX_LAYERS], *v[MAX_LAYERS];
    int64_t keys = q->pos + q->n - q->pos0, ek = (int64_t)q->kv_heads * q->dk, ev = (int64_t)q->kv_heads * q->dv;
    int type = type_ids[q->type - PEER_F32], vt = !flash && type == T_Q8_0 ? T_F16 : type;
    init_params ip = { 0, NULL, true };
    void *c;
    if (why) return why;
    p = *q;
    if (p.layers > MAX_LAYERS || (p.n + ubatch - 1) / ubatch > MAX_GRAPHS) return "too many layers or chunks";
    ip.size = G.tensor_overhead() * (size_t)(p.layers * 16 + 1024);
    ip.size += MAX_GRAPHS * G.graph_overhead((size_t)p.layers * 8 + 64, false);
    c = run.context = G.init(ip);
    for (int l = 0; l < p.layers; l++) {
        k[l] = G.new_4d(c, type, ek, keys, 1, 1);
        v[l] = !flash ? G.new_4d(c, vt, keys, ev, 1, 1) : p.mla ? NULL : G.new_4d(c, type, ev, keys, 1, 1);
    }
    run.n = 0;
    for (int64_t u = 0; u < p.n; u += ubatch) {
        ch[run.n] = make_chunk(c, flash, type, u, ubatch, k, v);
        run.graph[run.n] = ch[run.n].graph;
        run.n++;
    }
    run.buffer = G.alloc(c, backend);
    if (run.buffer == NULL) return "out of memory";
    for (int i = 0; i < run.n; i++) {
        set_queries(ch[i].q, ch[i].first, ch[i].n);
        set_mask(ch[i].mask, ch[i].first, ch[i].n, ch[i].rows, ch[i].lo, ch[i].nk);
    }
    set_converted(k, type, p.k, (size_t)(keys * ek));
    if (v[0] && flash) set_converted(v, type, p.v, (size_t)(keys * ev));
    else if (v[0]) set_transposed(v, vt, keys);
    run.out = ch[run.n - 1].out;
    run.first = ch[run.n - 1].first;
    return NULL;
}

static const char *setup_flash(const problem *q) { return setup_form(q, 1, q->n); }
static const char *setup_flash_512(const problem *q) { return q->n <= 512 ? "one chunk" : setup_form(q, 1, 512); }
static const char *setup_matmul(const problem *q) { return setup_form(q, 0, q->n); }

static double sample(void) {
    char params[4096]; /* an opaque struct of about 550 bytes */
    struct timespec a, b;
    void *pool;
    memset(params, 0, sizeof params);
    G.pool_params(params, p.threads);
    pool = G.pool_new(params);
    G.pool_set(backend, pool);
    G.set_threads(backend, p.threads);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < run.n; i++) G.compute(backend, run.graph[i]);
    clock_gettime(CLOCK_MONOTONIC, &b);
    G.pool_set(backend, NULL); /* its threads would spin on the cores that we time next */
    G.pool_free(pool);
    return ((double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec)) / p.layers;
}

static const float *result(int64_t *first) {
    *first = run.first;
    return (const float *)G.data(run.out);
}

static void done(void) {
    if (run.buffer) G.buffer_free(run.buffer);
    if (run.context) G.free(run.context);
    memset(&run, 0, sizeof run);
}

peer peer_ggml_flash = { "ggml-flash", "", setup_flash, sample, result, done };
peer peer_ggml_flash_512 = { "ggml-flash-512-chunks", "", setup_flash_512, sample, result, done };
peer peer_ggml_matmul = { "ggml-matmul", "", setup_matmul, sample, result, done };
