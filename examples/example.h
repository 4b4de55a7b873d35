/* example.h - what the small examples share: a look at every status, numbers to attend to, memory that is there. */
#ifndef EXAMPLE_H_INCLUDED
#define EXAMPLE_H_INCLUDED
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void check(swa_status status, const char *what) {
    if (status == SWA_OK) return;
    fprintf(stderr, "%s: %s\n", what, swa_status_str(status));
    exit(1);
}

static inline void *room(size_t bytes) {
    void *p = malloc(bytes > 0 ? bytes : 1);
    if (p != NULL) return p;
    fprintf(stderr, "out of memory: %lu bytes\n", (unsigned long)bytes);
    exit(1);
}

/* What stands for your projections and RoPE: the number at an index, in [-1, 1), the same on every machine. */
static inline float number(uint32_t seed, uint64_t index) {
    uint64_t x = (index + 1) * 0x9e3779b97f4a7c15u + seed * 0xd1b54a32d192ed03u;
    x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
    return (float)(int32_t)(uint32_t)(x >> 40) / 8388608.0f - 1.0f;
}

/* rows [n][width] of the tokens from position pos on: a token's numbers depend on its position and the seed alone. */
static inline float *rows_at(uint32_t seed, int64_t pos, int32_t n, int width) {
    float *x = (float *)room((size_t)n * (size_t)width * sizeof *x);
    for (size_t i = 0; i < (size_t)n * (size_t)width; i++) x[i] = number(seed, (uint64_t)pos * (uint64_t)width + i);
    return x;
}

/* One layer, one sequence, f32, and a window that the caller keeps. quickstart.c fills such a desc in by hand. */
static inline swa_cache_desc one_layer(int heads, int kv_heads, int head_dim, const swa_window *window) {
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    d.shape.n_heads = heads;
    d.shape.n_kv_heads = kv_heads;
    d.shape.head_dim = head_dim;
    d.n_layers = 1;
    d.windows = window;
    d.n_windows = 1;
    return d;
}

/* A cache with its memory and its scratch for `parts` parts. free_cache gives both back. */
typedef struct {
    swa_cache kv;
    void *mem, *scratch;
} cache;
static inline cache new_cache(const swa_cache_desc *d, int parts) {
    cache c;
    size_t bytes = swa_cache_bytes(d), scratch = swa_cache_scratch_bytes(d, parts);
    c.mem = room(bytes);
    c.scratch = room(scratch);
    check(swa_cache_init(&c.kv, d, c.mem, bytes), "swa_cache_init");
    check(swa_cache_set_scratch(&c.kv, c.scratch, scratch), "swa_cache_set_scratch");
    return c;
}
static inline void free_cache(cache *c) {
    free(c->mem);
    free(c->scratch);
}

/* Attends n tokens of a sequence from position pos on in one layer of a step that was begun; out [n][heads*v_dim]. q, k
   and v depend on the position and the seed alone, so that the same text gives the same numbers however it is cut. */
static inline swa_status attend_at(swa_cache *kv, const swa_shape *s, int layer, uint32_t seed, int64_t pos, int32_t n,
                                   float *out) {
    swa_attn a = { 0 };
    swa_status status;
    float *q = rows_at(seed + 100 * (uint32_t)layer, pos, n, s->n_heads * s->head_dim);
    float *k = rows_at(seed + 100 * (uint32_t)layer + 1, pos, n, s->n_kv_heads * s->head_dim);
    float *v = rows_at(seed + 100 * (uint32_t)layer + 2, pos, n, s->n_kv_heads * s->head_dim);
    a.q.p = q;
    a.k.p = k;
    a.v.p = v;
    a.out.p = out;
    status = swa_attend(kv, layer, &a);
    free(q);
    free(k);
    free(v);
    return status;
}

/* One number that stands for the bits of all n: what the runs of an example are compared by. */
static inline unsigned long bits_of(const float *x, size_t n) {
    uint32_t h = 2166136261u, u;
    for (size_t i = 0; i < n; i++) {
        memcpy(&u, &x[i], 4);
        h = (h ^ u) * 16777619u;
    }
    return (unsigned long)h;
}
#endif
