/* mistral.h - a Mistral model from a GGUF file, and one step of it: embedding, blocks of attention and
   feed-forward, logits. Attention, its cache and RoPE are swa.h; include that first. */
#ifndef MISTRAL_H_INCLUDED
#define MISTRAL_H_INCLUDED
#include "nn.h"
#include "vocab.h"

/* ---- model: what the file holds ---- */

typedef struct {
    const float *attn_norm, *ffn_norm;   /* [dim] */
    const float *q, *k, *v;              /* [n_heads*head_dim][dim], then twice [n_kv_heads*head_dim][dim] */
    const float *o;                      /* [dim][n_heads*head_dim] */
    const float *gate, *up, *down;       /* twice [hidden][dim], then [dim][hidden] */
} layer;
typedef struct {
    int     dim, hidden, n_layers, n_heads, n_kv_heads, head_dim, rotary, n_vocab;
    int64_t window, context;             /* window 0 = full attention */
    float   eps;
    double *freq;                        /* [rotary/2] inverse frequencies */
    float  *weights;                     /* all tensors, widened to f32 */
    size_t  n_weights, n_read;           /* floats taken so far; tensors read */
    const float *embedding, *output;     /* [n_vocab][dim], often the same */
    const float *out_norm;               /* [dim] */
    layer  *layers;                      /* [n_layers] */
    vocab   vocab;
} model;

static inline int model_sizes(model *m, gguf *g) {
    enum { MAX = 1 << 20 };
    m->n_vocab = m->vocab.n;
    m->dim = (int)gguf_need_int(g, "llama.embedding_length", -1, 1, MAX);
    m->hidden = (int)gguf_need_int(g, "llama.feed_forward_length", -1, 1, MAX);
    m->n_layers = (int)gguf_need_int(g, "llama.block_count", -1, 1, 4096);
    m->n_heads = (int)gguf_need_int(g, "llama.attention.head_count", -1, 1, 4096);
    m->n_kv_heads = (int)gguf_need_int(g, "llama.attention.head_count_kv", m->n_heads, 1, m->n_heads);
    m->head_dim = (int)gguf_need_int(g, "llama.attention.key_length", m->dim / m->n_heads, 1, 4096);
    m->rotary = (int)gguf_need_int(g, "llama.rope.dimension_count", m->head_dim, 2, m->head_dim);
    m->context = gguf_need_int(g, "llama.context_length", -1, 1, INT32_MAX);
    m->window = gguf_need_int(g, "llama.attention.sliding_window", 0, 0, INT32_MAX);
    m->eps = (float)gguf_need_positive(g, "llama.attention.layer_norm_rms_epsilon", 1e-5);
    if (gguf_need_int(g, "llama.attention.value_length", m->head_dim, 1, 4096) != m->head_dim) {
        gguf_fail(g, "keys and values of different lengths are not supported");
    }
    if (m->head_dim < 2 || m->rotary % 2 != 0 || m->n_heads % m->n_kv_heads != 0) {
        gguf_fail(g, "the sizes of the attention heads do not fit together");
    }
    return g->error[0] ? -1 : 0;
}

static inline int model_rope(model *m, gguf *g) {
    const gguf_pair *scaling = gguf_find(g, "llama.rope.scaling.type");
    gguf_str kind;
    swa_yarn_desc d = { 0 };
    d.base = gguf_need_positive(g, "llama.rope.freq_base", 10000.0);
    if (scaling && (scaling->is_array || !gguf_strings(scaling, &kind) || !gguf_is(kind, "none"))) {
        return gguf_fail(g, "RoPE scaling is not supported");
    }
    m->freq = (double *)calloc((size_t)m->rotary, sizeof *m->freq);
    if (!m->freq) return gguf_fail(g, "out of memory");
    return swa_yarn(&d, m->rotary, m->freq, NULL) == SWA_OK ? 0 : gguf_fail(g, "impossible base of RoPE");
}

/* Widens one tensor; NULL and an error if it is absent or has another shape. cols 0 = a vector. */
static inline const float *model_tensor(model *m, gguf *g, const char *name, int rows, int cols) {
    const gguf_tensor *t = gguf_need_tensor(g, name, rows, cols);
    float *out = m->weights + m->n_weights;
    if (!t) return NULL;
    gguf_widen(t, out);
    m->n_weights += t->n;
    m->n_read++;
    return out;
}

static inline const float *model_block(model *m, gguf *g, int l, const char *what, int rows, int cols) {
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s.weight", l, what);
    return model_tensor(m, g, name, rows, cols);
}

static inline int model_weights(model *m, gguf *g) {
    int q_dim = m->n_heads * m->head_dim, kv_dim = m->n_kv_heads * m->head_dim;
    size_t total = 0;
    for (size_t i = 0; i < g->n_tensors; i++) {
        if (g->tensors[i].n > SIZE_MAX / 8 - total) return gguf_fail(g, "out of memory");
        total += g->tensors[i].n;
    }
    m->weights = (float *)malloc(total * sizeof(float) + 1);
    m->layers = (layer *)calloc((size_t)m->n_layers, sizeof *m->layers);
    if (!m->weights || !m->layers) return gguf_fail(g, "out of memory");
    m->embedding = model_tensor(m, g, "token_embd.weight", m->n_vocab, m->dim);
    m->out_norm = model_tensor(m, g, "output_norm.weight", m->dim, 0);
    m->output = m->embedding;
    if (gguf_tensor_named(g, "output.weight")) {
        m->output = model_tensor(m, g, "output.weight", m->n_vocab, m->dim);
    }
    for (int l = 0; l < m->n_layers && !g->error[0]; l++) {
        layer *w = &m->layers[l];
        w->attn_norm = model_block(m, g, l, "attn_norm", m->dim, 0);
        w->q = model_block(m, g, l, "attn_q", q_dim, m->dim);
        w->k = model_block(m, g, l, "attn_k", kv_dim, m->dim);
        w->v = model_block(m, g, l, "attn_v", kv_dim, m->dim);
        w->o = model_block(m, g, l, "attn_output", m->dim, q_dim);
        w->ffn_norm = model_block(m, g, l, "ffn_norm", m->dim, 0);
        w->gate = model_block(m, g, l, "ffn_gate", m->hidden, m->dim);
        w->up = model_block(m, g, l, "ffn_up", m->hidden, m->dim);
        w->down = model_block(m, g, l, "ffn_down", m->dim, m->hidden);
    }
    if (m->n_read != g->n_tensors) gguf_fail(g, "tensors of this file (biases, experts?) are not supported");
    return g->error[0] ? -1 : 0;
}

static inline void model_free(model *m) {
    vocab_free(&m->vocab);
    free(m->freq);
    free(m->weights);
    free(m->layers);
    memset(m, 0, sizeof *m);
}

/* 0 = fine, else -1 and g->error. Keeps nothing of g. model_free in either case. */
static inline int model_init(model *m, gguf *g) {
    const gguf_pair *p = gguf_find(g, "general.architecture");
    gguf_str arch;
    memset(m, 0, sizeof *m);
    if (!p || p->is_array || !gguf_strings(p, &arch) || !gguf_is(arch, "llama")) {
        return gguf_fail(g, "general.architecture is not \"llama\"");
    }
    if (vocab_init(&m->vocab, g) != 0 || model_sizes(m, g) != 0 || model_rope(m, g) != 0) return -1;
    return model_weights(m, g);
}

/* ---- engine: one sequence in flight ---- */

typedef struct {
    int64_t window;        /* 0 = full attention */
    int64_t capacity;      /* slots per windowed layer; 0 = as many as the window needs */
    int64_t context;       /* most positions; what full attention has to hold */
    int32_t chunk;         /* most rows of one step */
    int     threads;
} setup;
typedef struct {
    const model *m;
    swa_cache cache;
    void     *memory;      /* of the cache */
    void     *scratch;     /* what attention works in, for `threads` threads */
    size_t    bytes, scratch_bytes;
    int32_t   chunk;
    float    *work;        /* of the arrays below, [chunk] rows each */
    float    *x, *h;       /* [dim] the residual stream, and what is added to it */
    float    *q, *k, *v;   /* [n_heads][head_dim], twice [n_kv_heads][head_dim]; attention's output goes into q */
    float    *gate, *up;   /* [hidden] */
    int64_t  *pos;         /* positions of the rows */
} engine;

/* The cache of a setup; *window is written and must live as long as the description. */
static inline swa_cache_desc engine_cache(const model *m, const setup *s, swa_window *window) {
    swa_cache_desc d = { 0 };
    d.shape.n_heads = m->n_heads;
    d.shape.n_kv_heads = m->n_kv_heads;
    d.shape.head_dim = m->head_dim;
    d.n_layers = m->n_layers;
    d.max_context = s->context;
    if (s->window > 0) {
        *window = swa_window_sliding(s->window);
        d.windows = window;
        d.n_windows = 1;
        d.capacity = s->capacity;
    }
    return d;
}

/* Bytes of keys and values alone: what twice as many layers would add. */
static inline size_t engine_rows(const model *m, const setup *s) {
    swa_window window;
    swa_cache_desc d = engine_cache(m, s, &window);
    size_t once = swa_cache_bytes(&d);
    d.n_layers *= 2;
    return once ? swa_cache_bytes(&d) - once : 0;
}

static inline void engine_close(engine *e) {
    free(e->memory);
    free(e->scratch);
    free(e->work);
    free(e->pos);
    memset(e, 0, sizeof *e);
}

static inline swa_status engine_open(engine *e, const model *m, const setup *s) {
    swa_window window;
    swa_cache_desc d = engine_cache(m, s, &window);
    size_t dim = (size_t)m->dim, hidden = (size_t)m->hidden, head = (size_t)m->head_dim, rows = (size_t)s->chunk;
    size_t q_dim = (size_t)m->n_heads * head, kv_dim = (size_t)m->n_kv_heads * head;
    swa_status status;
    memset(e, 0, sizeof *e);
    e->m = m;
    e->chunk = s->chunk;
    e->bytes = swa_cache_bytes(&d);
    e->scratch_bytes = swa_cache_scratch_bytes(&d, s->threads > 0 ? s->threads : 1);
    if (e->bytes == 0 || e->scratch_bytes == 0) return SWA_ERR_OVERFLOW;
    e->memory = malloc(e->bytes);
    e->scratch = malloc(e->scratch_bytes);
    e->work = (float *)calloc(rows, (2 * dim + q_dim + 2 * kv_dim + 2 * hidden) * sizeof(float));
    e->pos = (int64_t *)calloc(rows, sizeof *e->pos);
    if (!e->memory || !e->scratch || !e->work || !e->pos) return SWA_ERR_MEMORY;
    e->x = e->work;
    e->h = e->x + rows * dim;
    e->q = e->h + rows * dim;
    e->k = e->q + rows * q_dim;
    e->v = e->k + rows * kv_dim;
    e->gate = e->v + rows * kv_dim;
    e->up = e->gate + rows * hidden;
    status = swa_cache_init(&e->cache, &d, e->memory, e->bytes);
    return status != SWA_OK ? status : swa_cache_set_scratch(&e->cache, e->scratch, e->scratch_bytes);
}

static inline swa_status attend(engine *e, int l) {
    swa_attn a = { 0 };
    swa_status status = SWA_OK;
    a.q.p = e->q;
    a.k.p = e->k;
    a.v.p = e->v;
    a.out.p = e->q;
    if (swa_step_tokens(&e->cache) >= 16) return swa_attend(&e->cache, l, &a);
    for (int phase = 0; phase < SWA_PHASES && status == SWA_OK; phase++) {     /* a few rows: one thread */
        status = swa_attend_part(&e->cache, l, &a, phase, 0, 1);
    }
    return status;
}

/* q and k of n rows, turned to their positions. */
static inline swa_status rotate(engine *e, int n) {
    const model *m = e->m;
    swa_status status = swa_rope(e->q, n, m->n_heads, m->head_dim, e->pos, m->freq, m->rotary,
                                 SWA_ROPE_INTERLEAVED, 0);
    if (status != SWA_OK) return status;
    return swa_rope(e->k, n, m->n_kv_heads, m->head_dim, e->pos, m->freq, m->rotary, SWA_ROPE_INTERLEAVED, 0);
}

static inline swa_status block(engine *e, int l) {
    const model *m = e->m;
    const layer *w = &m->layers[l];
    int n = swa_step_tokens(&e->cache), q_dim = m->n_heads * m->head_dim, kv_dim = m->n_kv_heads * m->head_dim;
    size_t numbers = (size_t)n * (size_t)m->dim;
    swa_status status = swa_rmsnorm(e->h, e->x, w->attn_norm, n, m->dim, m->eps);
    if (status != SWA_OK) return status;
    matmul(e->q, e->h, w->q, n, q_dim, m->dim);
    matmul(e->k, e->h, w->k, n, kv_dim, m->dim);
    matmul(e->v, e->h, w->v, n, kv_dim, m->dim);
    status = rotate(e, n);
    if (status == SWA_OK) status = attend(e, l);
    if (status != SWA_OK) return status;
    matmul(e->h, e->q, w->o, n, m->dim, q_dim);
    add(e->x, e->h, numbers);
    status = swa_rmsnorm(e->h, e->x, w->ffn_norm, n, m->dim, m->eps);
    if (status != SWA_OK) return status;
    matmul(e->gate, e->h, w->gate, n, m->hidden, m->dim);
    matmul(e->up, e->h, w->up, n, m->hidden, m->dim);
    for (size_t i = 0; i < (size_t)n * (size_t)m->hidden; i++) {
        e->gate[i] = e->gate[i] / (1.0f + expf(-e->gate[i])) * e->up[i];
    }
    matmul(e->h, e->gate, w->down, n, m->dim, m->hidden);
    add(e->x, e->h, numbers);
    return SWA_OK;
}

/* One step of one run: ids [run->n] are its tokens, at most e->chunk. Logits of the rows from first on go to logits
   [n - first][n_vocab]. */
static inline swa_status forward(engine *e, swa_run *run, const int32_t *ids, int32_t first, float *logits) {
    const model *m = e->m;
    size_t dim = (size_t)m->dim;
    swa_status status = swa_step_begin(&e->cache, run, 1);
    if (status != SWA_OK) return status;
    for (int32_t t = 0; t < run->n; t++) {
        e->pos[t] = run->pos + t;
        memcpy(e->x + (size_t)t * dim, m->embedding + (size_t)ids[t] * dim, dim * sizeof(float));
    }
    for (int l = 0; l < m->n_layers; l++) {
        status = block(e, l);
        if (status != SWA_OK) return status;
    }
    if (first < run->n) {
        int32_t n = run->n - first;
        status = swa_rmsnorm(e->h, e->x + (size_t)first * dim, m->out_norm, n, m->dim, m->eps);
        if (status != SWA_OK) return status;
        matmul(logits, e->h, m->output, n, m->n_vocab, m->dim);
    }
    return SWA_OK;
}

/* Tokens ids [n] from position start on, a chunk a step. Logits: all = 1, of every token into [n][n_vocab]; 0, of
   the last one into [n_vocab]. progress (may be NULL) gets a line that counts, in about 16 steps. */
static inline swa_status prefill(engine *e, const int32_t *ids, int32_t n, int64_t start, int all, float *logits,
                                 FILE *progress) {
    swa_plan plan;
    swa_run run;
    swa_status status = swa_prefill_begin(&plan, NULL, &start, &n, 1, e->chunk);
    int n_runs;
    while (status == SWA_OK && swa_prefill_next(&plan, &run, &n_runs)) {
        int32_t done = (int32_t)(run.pos - start);
        int32_t first = all ? 0 : done + run.n == n ? run.n - 1 : run.n;     /* no logits before the last chunk */
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
#endif /* MISTRAL_H_INCLUDED */
