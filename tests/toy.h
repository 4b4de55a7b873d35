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
    int parts;                       /* 0 = swa_attend */
    int mode;                        /* 0 = attend, then store; 1 = put first */
    int die_layer, die_phase, die_part;   /* the call after which a step dies; die_layer -1 = it lives */
} toy;

static inline float toy_noise(uint32_t a, uint32_t b) {
    uint32_t x = a * 2654435761u + b * 2246822519u + 12345u;
    x ^= x >> 15; x *= 2246822519u; x ^= x >> 13; x *= 3266489917u; x ^= x >> 16;
    return (float)(x >> 8) / 8388608.0f - 1.0f;
}
/* y = M x for one row; M depends on layer and purpose. */
static inline void toy_matvec(int layer, int what, const float *x, float *y, int rows) {
    for (int i = 0; i < rows; i++) {
        float s = 0;
        for (int j = 0; j < TOY_DIM; j++)
            s += toy_noise((uint32_t)(layer * 8 + what), (uint32_t)(i * 64 + j)) * x[j];
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
static inline int toy_open(toy *t, const swa_cache_desc *desc) {
    memset(t, 0, sizeof *t);
    t->desc = *desc;
    t->die_layer = -1;
    t->bytes = swa_cache_bytes(desc);
    t->mem = (unsigned char *)t_alloc(t->bytes);
    return CHECK(t->bytes > 0) && CHECK_OK(swa_cache_init(&t->kv, desc, t->mem, t->bytes));
}
/* One layer's attention; TOY_DEAD if the step dies in it. */
static inline int toy_attend(toy *t, int layer, const swa_step *step, const swa_attn *a) {
    int parts = t->parts > 0 ? t->parts : 1, got = SWA_OK;
    if (t->parts == 0 && t->die_layer < 0) return (int)swa_attend(&t->kv, layer, step, a);
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int part = 0; part < parts; part++) {
            got = (int)swa_attend_part(&t->kv, layer, step, a, phase, part, parts);
            if (got != SWA_OK) return got;
            if (layer == t->die_layer && phase == t->die_phase && part == t->die_part) return TOY_DEAD;
        }
    return got;
}
/* Through all layers: x [n_tokens][TOY_DIM] in, the last layer's rows out. The step was begun. */
static inline int toy_layers(toy *t, const swa_step *step, float *x) {
    const size_t n = (size_t)step->n_tokens + 1;
    float *q = (float *)malloc(n * (TOY_DIM * 2 + TOY_HEAD_DIM * 2) * sizeof *q), *out = q + n * TOY_DIM;
    float *k = out + n * TOY_DIM, *v = k + n * TOY_HEAD_DIM;
    int got = SWA_OK;
    if (!q) exit(2);
    for (int layer = 0; layer < t->desc.n_layers && got == SWA_OK; layer++) {
        swa_attn a, put;
        for (int32_t i = 0; i < step->n_tokens; i++) {
            toy_matvec(layer, 0, x + i * TOY_DIM, q + i * TOY_DIM, TOY_DIM);
            toy_matvec(layer, 1, x + i * TOY_DIM, k + i * TOY_HEAD_DIM, TOY_HEAD_DIM);
            toy_matvec(layer, 2, x + i * TOY_DIM, v + i * TOY_HEAD_DIM, TOY_HEAD_DIM);
        }
        memset(&a, 0, sizeof a);
        a.q.p = q; a.k.p = k; a.v.p = v; a.out.p = out;
        put = a;
        if (t->mode) {
            put.q.p = NULL;
            a.k.p = NULL;
            got = toy_attend(t, layer, step, &put);
        }
        if (got == SWA_OK) got = toy_attend(t, layer, step, &a);
        for (int32_t i = 0; i < step->n_tokens * TOY_DIM && got == SWA_OK; i++) x[i] = 0.5f * x[i] + out[i];
    }
    free(q);
    return got;
}
/* Begins and runs a step. token(seq, pos) names the token at a position; x as above. */
static inline int toy_step(toy *t, swa_step *step, uint32_t (*token)(int seq, int64_t pos), float *x) {
    swa_status status = swa_step_begin(&t->kv, step);
    if (status != SWA_OK) return (int)status;
    for (int i = 0; i < step->n_runs; i++)
        for (int32_t j = 0; j < step->runs[i].n; j++)
            for (int d = 0; d < TOY_DIM; d++)
                x[(step->runs[i].row + j) * TOY_DIM + d] =
                    toy_noise(token(step->runs[i].seq, step->runs[i].pos + j), (uint32_t)(1000 + d));
    return toy_layers(t, step, x);
}
/* A step of one run. */
static inline int toy_run(toy *t, int seq, int64_t pos, int32_t n, uint32_t (*token)(int, int64_t), float *x) {
    swa_run run;
    swa_step step;
    memset(&run, 0, sizeof run);
    memset(&step, 0, sizeof step);
    run.seq = seq; run.pos = pos; run.n = n;
    step.runs = &run;
    step.n_runs = 1;
    return toy_step(t, &step, token, x);
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
    if (!toy_open(&t, &d)) return NULL;
    for (int32_t i = 0; i < n; i++)
        if (!CHECK_INT(toy_run(&t, seq, start + i, 1, token, x + i * TOY_DIM), SWA_OK)) return NULL;
    return x;
}
#endif /* SWA_TEST_TOY_H */
