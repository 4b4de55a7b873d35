/* engine.h - a model in motion: embedding, blocks of attention and feed-forward, logits, step by step. Attention, its
   cache and RoPE are swa.h; products of matrices are quants.h. One sequence. */
#ifndef ENGINE_H_INCLUDED
#define ENGINE_H_INCLUDED
#include "model.h"
#include "nn.h"
#include <float.h>

typedef struct {
    int64_t window;   /* of the layers that have one; 0 = full attention */
    int64_t capacity; /* slots per windowed layer; 0 = as many as the window needs */
    int64_t context;  /* most positions; what full attention has to hold */
    int32_t chunk;    /* most rows of one step */
    int threads;
} setup;
typedef struct {
    const model *m;
    swa_cache cache;
    void *memory, *scratch; /* of the cache, and what it works in */
    swa_window *windows;    /* [n_layers] */
    size_t bytes, scratch_bytes;
    int32_t chunk;
    swa_status status;     /* of the step */
    int far;               /* 1 = RoPE factors for long texts */
    float *work;           /* of the arrays below, [chunk] rows each */
    float *x, *h, *y;      /* [dim] the residual stream, what a half of a block reads, and what it adds */
    float *q, *k, *v;      /* [n_heads][head_dim], twice [n_kv_heads][head_dim]; attention goes into q */
    float *gate, *up;      /* [hidden] */
    float *route, *expert; /* one row: [n_experts] weights of the experts, [dim] what one of them says */
    activations space;     /* for products; in `rounded` */
    void *rounded;
    int64_t *pos; /* positions of the rows */
} engine;

/* ---- memory ---- */

/* The cache of a setup. A layer without a window is causal; windows [n_layers] must live until the cache is made. */
static inline swa_cache_desc engine_cache(const model *m, const setup *s, swa_window *windows) {
    swa_cache_desc d = { 0 };
    d.shape.n_heads = m->n_heads;
    d.shape.n_kv_heads = m->n_kv_heads;
    d.shape.head_dim = m->head_dim;
    d.n_layers = m->n_layers;
    d.max_context = s->context;
    d.capacity = s->capacity;
    d.windows = windows;
    d.n_windows = m->n_layers;
    for (int l = 0; l < m->n_layers; l++) {
        int local = s->window > 0 && (m->layers[l].local || m->window == 0);
        windows[l] = local ? swa_window_sliding(s->window) : swa_window_causal();
    }
    return d;
}

/* Bytes of keys and values alone: what twice as many layers would add. */
static inline size_t engine_rows(const model *m, const setup *s) {
    swa_window *windows = (swa_window *)calloc((size_t)m->n_layers, sizeof *windows);
    size_t once = 0, twice = 0;
    if (windows) {
        swa_cache_desc d = engine_cache(m, s, windows);
        once = swa_cache_bytes(&d);
        d.n_layers *= 2;
        twice = swa_cache_bytes(&d);
    }
    free(windows);
    return once && twice ? twice - once : 0;
}

static inline void engine_close(engine *e) {
    free(e->memory);
    free(e->scratch);
    free(e->windows);
    free(e->work);
    free(e->pos);
    free(e->rounded);
    memset(e, 0, sizeof *e);
}

static inline int engine_arrays(engine *e, const model *m, size_t rows) {
    size_t dim = (size_t)m->dim, hidden = (size_t)m->hidden, head = (size_t)m->head_dim;
    size_t q_dim = (size_t)m->n_heads * head, kv_dim = (size_t)m->n_kv_heads * head;
    size_t most = dim > hidden ? dim : hidden, experts = (size_t)m->n_experts;
    if (q_dim > most) most = q_dim;
    e->work = (float *)calloc(rows, (3 * dim + q_dim + 2 * kv_dim + 2 * hidden + experts + dim) * sizeof(float));
    e->pos = (int64_t *)calloc(rows, sizeof *e->pos);
    e->rounded = malloc(activations_bytes(rows, most));
    if (!e->work || !e->pos || !e->rounded) return 0;
    activations_lie(&e->space, e->rounded, rows, most);
    e->x = e->work;
    e->h = e->x + rows * dim;
    e->y = e->h + rows * dim;
    e->q = e->y + rows * dim;
    e->k = e->q + rows * q_dim;
    e->v = e->k + rows * kv_dim;
    e->gate = e->v + rows * kv_dim;
    e->up = e->gate + rows * hidden;
    e->expert = e->up + rows * hidden;
    e->route = e->expert + dim;
    return 1;
}

static inline swa_status engine_open(engine *e, const model *m, const setup *s) {
    swa_cache_desc d;
    swa_status status;
    memset(e, 0, sizeof *e);
    e->m = m;
    e->chunk = s->chunk;
    e->far = s->context > m->original;
    e->windows = (swa_window *)calloc((size_t)m->n_layers, sizeof *e->windows);
    if (!e->windows) return SWA_ERR_MEMORY;
    d = engine_cache(m, s, e->windows);
    e->bytes = swa_cache_bytes(&d);
    e->scratch_bytes = swa_cache_scratch_bytes(&d, s->threads > 0 ? s->threads : 1);
    if (e->bytes == 0 || e->scratch_bytes == 0) return SWA_ERR_OVERFLOW;
    e->memory = malloc(e->bytes);
    e->scratch = malloc(e->scratch_bytes);
    if (!e->memory || !e->scratch || !engine_arrays(e, m, (size_t)s->chunk)) return SWA_ERR_MEMORY;
    status = swa_cache_init(&e->cache, &d, e->memory, e->bytes);
    return status != SWA_OK ? status : swa_cache_set_scratch(&e->cache, e->scratch, e->scratch_bytes);
}

/* ---- parts of a block ---- */

/* The first refusal of a step is what it returns. */
static inline void keep(engine *e, swa_status status) {
    if (e->status == SWA_OK) e->status = status;
}

/* Rows of out [n][dim] = x normed; w NULL: x as it is. */
static inline void normed(engine *e, float *out, const float *x, const float *w, int n, int dim) {
    if (!w) {
        if (out != x) memcpy(out, x, (size_t)n * (size_t)dim * sizeof(float));
    } else if (e->m->kind->flags & MEAN_NORM) {
        layer_norm(out, x, w, n, dim, e->m->eps);
    } else {
        keep(e, swa_rmsnorm(out, x, w, n, dim, e->m->eps));
    }
}

static inline void add_bias(float *out, const float *bias, int n, int dim) { /* bias NULL: none */
    for (int t = 0; bias && t < n; t++) add(out + (size_t)t * (size_t)dim, bias, (size_t)dim);
}

static inline void rotate(engine *e, float *x, int n, int heads, int local) {
    const model *m = e->m;
    if (!local && (m->kind->flags & LOCAL_ROPE_ONLY) && m->window > 0) return;
    keep(e, swa_rope(x, n, heads, m->head_dim, e->pos, m->freq[local][e->far], m->rotary, m->kind->pairs,
                     m->mscale[local]));
}

/* Attends layer l to its ring and to e->k, e->v; the queries e->q are replaced by the result. */
static inline void attend(engine *e, int l) {
    const model *m = e->m;
    int64_t keys = swa_cache_end(&e->cache, 0) - swa_cache_first(&e->cache, 0, l);
    swa_attn a = { 0 };
    swa_status status = SWA_OK;
    a.q.p = e->q;
    a.k.p = e->k;
    a.v.p = e->v;
    a.out.p = e->q;
    a.scale = m->scale;
    a.softcap = m->attn_cap;
    a.sink_logits = m->layers[l].sinks;
    if (keys * swa_step_tokens(&e->cache) * m->n_heads * m->head_dim > 1000000) {
        status = swa_attend(&e->cache, l, &a);
    } else {
        for (int phase = 0; phase < SWA_PHASES && status == SWA_OK; phase++) { /* too little to wake threads for */
            status = swa_attend_part(&e->cache, l, &a, phase, 0, 1);
        }
    }
    keep(e, status);
}

/* e->y = attention of e->h. */
static inline void attention_half(engine *e, int l, int n) {
    const model *m = e->m;
    const layer *w = &m->layers[l];
    int heads = m->n_heads, kv_heads = m->n_kv_heads, dim = m->head_dim, whole = w->whole_norm;
    const one_product qkv[] = { { &w->q, e->q }, { &w->k, e->k }, { &w->v, e->v } };
    products(qkv, 3, e->h, n, &e->space);
    add_bias(e->q, w->q_bias, n, heads * dim);
    add_bias(e->k, w->k_bias, n, kv_heads * dim);
    add_bias(e->v, w->v_bias, n, kv_heads * dim);
    if (w->q_norm) {
        normed(e, e->q, e->q, w->q_norm, whole ? n : n * heads, whole ? heads * dim : dim);
        normed(e, e->k, e->k, w->k_norm, whole ? n : n * kv_heads, whole ? kv_heads * dim : dim);
    }
    rotate(e, e->q, n, heads, w->local);
    rotate(e, e->k, n, kv_heads, w->local);
    attend(e, l);
    product(e->y, e->q, &w->o, n, &e->space);
    add_bias(e->y, w->o_bias, n, m->dim);
}

/* gate [n] = the activation of gate, times up. */
static inline void gated(const model *m, float *gate, const float *up, size_t n) {
    int flags = m->kind->flags;
    for (size_t i = 0; i < n; i++) {
        float g = gate[i], u = up[i];
        if (flags & GELU) {
            gate[i] = 0.5f * g * (1.0f + tanhf(0.79788456f * (g + 0.044715f * g * g * g))) * u;
        } else if (flags & CLAMPED) {
            g = g < 7.0f ? g : 7.0f;
            u = u < -7.0f ? -7.0f : u < 7.0f ? u : 7.0f;
            gate[i] = g / (1.0f + expf(-1.702f * g)) * (u + 1.0f);
        } else {
            gate[i] = g / (1.0f + expf(-g)) * u;
        }
    }
}

/* Row t of e->y = what the best experts for row t of e->h say, weighed by the softmax of their scores. */
static inline void experts_row(engine *e, const layer *w, int t) {
    const model *m = e->m;
    size_t dim = (size_t)m->dim;
    const float *h = e->h + (size_t)t * dim;
    float *y = e->y + (size_t)t * dim, *score = e->route, sum = 0.0f, top = 0.0f;
    weights gate, up, down;
    const one_product both[] = { { &gate, e->gate }, { &up, e->up } };
    product(score, h, &w->router, 1, &e->space);
    add_bias(score, w->router_bias, 1, m->n_experts);
    memset(y, 0, dim * sizeof *y);
    for (int used = 0; used < m->n_used; used++) {
        int best = 0;
        float share;
        for (int i = 1; i < m->n_experts; i++) best = score[i] > score[best] ? i : best;
        if (used == 0) top = score[best];
        share = expf(score[best] - top);
        sum += share;
        score[best] = -FLT_MAX;
        gate = weights_part(&w->gate, best * m->hidden, m->hidden);
        up = weights_part(&w->up, best * m->hidden, m->hidden);
        down = weights_part(&w->down, best * m->dim, m->dim);
        products(both, 2, h, 1, &e->space);
        weights_add_row(&w->gate_bias, best, e->gate);
        weights_add_row(&w->up_bias, best, e->up);
        gated(m, e->gate, e->up, (size_t)m->hidden);
        product(e->expert, e->gate, &down, 1, &e->space);
        weights_add_row(&w->down_bias, best, e->expert);
        for (size_t i = 0; i < dim; i++) y[i] += share * e->expert[i];
    }
    for (size_t i = 0; i < dim; i++) y[i] /= sum;
}

/* e->y = feed-forward of e->h. */
static inline void feed_forward_half(engine *e, int l, int n) {
    const model *m = e->m;
    const layer *w = &m->layers[l];
    const one_product both[] = { { &w->gate, e->gate }, { &w->up, e->up } };
    if (m->kind->flags & EXPERTS) {
        for (int t = 0; t < n; t++) experts_row(e, w, t);
        return;
    }
    products(both, 2, e->h, n, &e->space);
    gated(m, e->gate, e->up, (size_t)n * (size_t)m->hidden);
    product(e->y, e->gate, &w->down, n, &e->space);
}

static inline swa_status block(engine *e, int l) {
    const model *m = e->m;
    const layer *w = &m->layers[l];
    int n = swa_step_tokens(&e->cache);
    size_t numbers = (size_t)n * (size_t)m->dim;
    normed(e, e->h, e->x, w->attn_norm, n, m->dim);
    attention_half(e, l, n);
    if (e->status != SWA_OK) return e->status;
    normed(e, e->y, e->y, w->post_attn, n, m->dim);
    add(e->x, e->y, numbers);
    if (!(m->kind->flags & PARALLEL)) normed(e, e->h, e->x, w->ffn_norm, n, m->dim);
    feed_forward_half(e, l, n);
    normed(e, e->y, e->y, w->post_ffn, n, m->dim);
    add(e->x, e->y, numbers);
    return e->status;
}

/* ---- steps ---- */

static inline void embedded(engine *e, const int32_t *ids, int32_t n) {
    const model *m = e->m;
    float scale = m->kind->flags & EMBED_SCALE ? sqrtf((float)m->dim) : 1.0f;
    for (int32_t t = 0; t < n; t++) {
        float *row = e->x + (size_t)t * (size_t)m->dim;
        weights_row(&m->embedding, ids[t], row);
        for (int i = 0; i < m->dim; i++) row[i] *= scale;
    }
}

/* Logits [n][n_vocab] of the rows of e->x from first on. */
static inline void spoken(engine *e, int32_t first, int32_t n, float *logits) {
    const model *m = e->m;
    normed(e, e->h, e->x + (size_t)first * (size_t)m->dim, m->out_norm, n, m->dim);
    product(logits, e->h, &m->output, n, &e->space);
    for (size_t i = 0; i < (size_t)n * (size_t)m->n_vocab; i++) {
        logits[i] *= m->out_scale;
        if (m->out_cap > 0.0f) logits[i] = m->out_cap * tanhf(logits[i] / m->out_cap);
    }
}

/* One step of one run: ids [run->n] are its tokens, at most e->chunk. Logits of the rows from first on go to logits
   [n - first][n_vocab]. */
static inline swa_status forward(engine *e, swa_run *run, const int32_t *ids, int32_t first, float *logits) {
    e->status = swa_step_begin(&e->cache, run, 1);
    if (e->status != SWA_OK) return e->status;
    for (int32_t t = 0; t < run->n; t++) e->pos[t] = run->pos + t;
    embedded(e, ids, run->n);
    for (int l = 0; l < e->m->n_layers; l++) {
        if (block(e, l) != SWA_OK) return e->status;
    }
    if (first < run->n) spoken(e, first, run->n - first, logits);
    return e->status;
}

/* Tokens ids [n] from position start on, a chunk a step. Logits: all = 1, of every token into [n][n_vocab]; 0, of
   the last one into [n_vocab]. progress (may be NULL) gets a line that counts, in about 16 steps. */
static inline swa_status prefill(engine *e, const int32_t *ids, int32_t n, int64_t start, int all, float *logits,
                                 FILE *progress) {
    swa_plan plan;
    swa_run run;
    int n_runs;
    swa_status status = swa_prefill_begin(&plan, NULL, &start, &n, 1, e->chunk);
    while (status == SWA_OK && swa_prefill_next(&plan, &run, &n_runs)) {
        int32_t done = (int32_t)(run.pos - start);
        int32_t first = all ? 0 : done + run.n == n ? run.n - 1 : run.n; /* no logits before the last chunk */
        float *out = all ? logits + (size_t)done * (size_t)e->m->n_vocab : logits;
        status = forward(e, &run, ids + done, first, out);
        done += run.n;
        if (progress && (done - run.n) / (n / 16 + 1) != done / (n / 16 + 1)) {
            fprintf(progress, "\rprefill: %ld of %ld tokens", (long)done, (long)n);
        }
    }
    if (progress) fprintf(progress, "\rprefill: %ld of %ld tokens\n", (long)n, (long)n);
    return status;
}

/* One token at pos; logits [n_vocab] of the token after it. */
static inline swa_status decode(engine *e, int32_t id, int64_t pos, float *logits) {
    swa_run run = { 0 };
    run.n = 1;
    run.pos = pos;
    return forward(e, &run, &id, 0, logits);
}
#endif /* ENGINE_H_INCLUDED */
