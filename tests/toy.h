/* toy.h - an engine of a few lines over the real cache: every layer's q, k and v come from the layer below, so that
   a wrong row in layer 0 is seen in whatever layer L makes of it. Weights and embeddings are made up on the spot;
   each row is computed by itself, so that batches and chunks cannot change its bits. A step can die anywhere. */
#ifndef SWA_TEST_TOY_H
#define SWA_TEST_TOY_H
#include "test.h"

enum { TOY_DIM = 8, TOY_HEADS = 2, TOY_HEAD_DIM = 4, TOY_DEAD = 1000 };

typedef struct {
    swa_cache_desc desc;
    swa_cache kv;
    unsigned char *mem;
    size_t bytes;
    int parts;                          /* 0 = swa_attend */
    int put_first;                      /* 0 = attend, then store */
    int rewind;                         /* of the runs that toy_run makes */
    int die_layer, die_phase, die_part; /* the call after which a step dies; die_layer -1 = it lives */
} toy;

static inline float toy_noise(uint32_t a, uint32_t b) {
    uint32_t x = a * 2654435761u + b * 2246822519u + 12345u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    x *= 3266489917u;
    x ^= x >> 16;
    return (float)(x >> 8) / 8388608.0f - 1.0f;
}
/* y = M x for one row; M depends on layer and purpose. */
static inline void toy_matvec(int layer, int what, const float *x, float *y, int rows) {
    for (int i = 0; i < rows; i++) {
        float s = 0;
        for (int j = 0; j < TOY_DIM; j++) s += toy_noise((uint32_t)(layer * 8 + what), (uint32_t)(i * 64 + j)) * x[j];
        y[i] = s;
    }
}
static inline swa_cache_desc toy_desc(const swa_window *windows, int n_windows, int n_layers, int n_seqs) {
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    d.shape.n_heads = TOY_HEADS;
    d.shape.n_kv_heads = 1;
    d.shape.head_dim = TOY_HEAD_DIM;
    d.n_layers = n_layers;
    d.n_seqs = n_seqs;
    d.windows = windows;
    d.n_windows = n_windows;
    return d;
}
/* parts: that the scratch has room for; how a step is run says t->parts. */
static inline int toy_open_parts(toy *t, const swa_cache_desc *desc, int parts) {
    memset(t, 0, sizeof *t);
    t->desc = *desc;
    t->die_layer = -1;
    t->bytes = swa_cache_bytes(desc);
    if (!t_cache_new(&t->kv, desc, parts)) return 0;
    t->mem = (unsigned char *)t->kv.mem_;
    return 1;
}
static inline int toy_open(toy *t, const swa_cache_desc *desc) { return toy_open_parts(t, desc, 1); }
/* One layer's attention; TOY_DEAD if the step dies in it. */
static inline int toy_attend(toy *t, int layer, const swa_attn *a) {
    int parts = t->parts > 0 ? t->parts : 1, got = SWA_OK;
    if (t->parts == 0 && t->die_layer < 0) return (int)swa_attend(&t->kv, layer, a);
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int part = 0; part < parts; part++) {
            got = (int)swa_attend_part(&t->kv, layer, a, phase, part, parts);
            if (got != SWA_OK) return got;
            if (layer == t->die_layer && phase == t->die_phase && part == t->die_part) return TOY_DEAD;
        }
    return got;
}
/* Through all layers: x [n_tokens][TOY_DIM] in, the last layer's rows out. The step was begun. */
static inline int toy_layers(toy *t, float *x) {
    const int32_t tokens = swa_step_tokens(&t->kv);
    const size_t n = (size_t)tokens;
    float *q = (float *)malloc(n * (TOY_DIM * 2 + TOY_HEAD_DIM * 2) * sizeof *q), *out = q + n * TOY_DIM;
    float *k = out + n * TOY_DIM, *v = k + n * TOY_HEAD_DIM;
    int got = SWA_OK;
    if (!q) exit(2);
    for (int layer = 0; layer < t->desc.n_layers && got == SWA_OK; layer++) {
        swa_attn a, put;
        for (int32_t i = 0; i < tokens; i++) {
            toy_matvec(layer, 0, x + i * TOY_DIM, q + i * TOY_DIM, TOY_DIM);
            toy_matvec(layer, 1, x + i * TOY_DIM, k + i * TOY_HEAD_DIM, TOY_HEAD_DIM);
            toy_matvec(layer, 2, x + i * TOY_DIM, v + i * TOY_HEAD_DIM, TOY_HEAD_DIM);
        }
        memset(&a, 0, sizeof a);
        a.q.p = q;
        a.k.p = k;
        a.v.p = v;
        a.out.p = out;
        t_say_sinks(&a, t->desc.audit, &t->desc.windows[layer % t->desc.n_windows]);
        put = a;
        if (t->put_first) {
            put.mode = SWA_STORE_ONLY;
            a.mode = SWA_ATTEND_STORED;
            got = toy_attend(t, layer, &put);
        }
        if (got == SWA_OK) got = toy_attend(t, layer, &a);
        for (int32_t i = 0; i < tokens * TOY_DIM && got == SWA_OK; i++) x[i] = 0.5f * x[i] + out[i];
    }
    free(q);
    return got;
}
/* Begins and runs a step. token(seq, pos) names the token at a position; x as above. */
static inline int toy_step(toy *t, swa_run *runs, int n_runs, uint32_t (*token)(int seq, int64_t pos), float *x) {
    swa_status status = swa_step_begin(&t->kv, runs, n_runs);
    if (status != SWA_OK) return (int)status;
    for (int i = 0; i < n_runs; i++)
        for (int32_t j = 0; j < runs[i].n; j++)
            for (int d = 0; d < TOY_DIM; d++)
                x[(runs[i].row + j) * TOY_DIM + d] =
                    toy_noise(token(runs[i].seq, runs[i].pos + j), (uint32_t)(1000 + d));
    return toy_layers(t, x);
}
/* A step of one run. */
static inline int toy_run(toy *t, int seq, int64_t pos, int32_t n, uint32_t (*token)(int, int64_t), float *x) {
    swa_run run = t_run(seq, pos, n);
    run.rewind = t->rewind;
    return toy_step(t, &run, 1, token, x);
}
/* The answer sheet: n rows of one sequence from position start on, token by token, in a cache that never forgets
   (the same windows and types, a ring as long as the sequence). NULL if that failed. */
static inline float *toy_cold(const swa_cache_desc *like, int seq, int64_t start, int32_t n,
                              uint32_t (*token)(int, int64_t)) {
    swa_cache_desc d = *like;
    float *x = t_floats((n + 1) * TOY_DIM);
    toy t;
    d.capacity = n + 128;
    d.max_rollback = 0;
    if (!toy_open(&t, &d) || !CHECK_OK(swa_cache_reset(&t.kv, seq, start, 0))) return NULL;
    for (int32_t i = 0; i < n; i++)
        if (!CHECK_INT(toy_run(&t, seq, start + i, 1, token, x + i * TOY_DIM), SWA_OK)) return NULL;
    return x;
}
#endif /* SWA_TEST_TOY_H */
