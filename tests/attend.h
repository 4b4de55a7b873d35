/* attend.h - one attention case, taken through the library in every way there is: over a ring in any chunks, parts,
   batch and layout, or without a ring over rows cut into segments; and through the oracle. at_case says what is
   computed, at_how says how; the bits contract is that at_how changes nothing. */
#ifndef SWA_TEST_ATTEND_H
#define SWA_TEST_ATTEND_H
#include "test.h"
#include "oracle.h"

typedef struct {
    swa_shape shape; /* all fields filled in; see at_new */
    swa_window window;
    or_window sees; /* the same window in the oracle's words */
    swa_type k_type, v_type, tail_type;
    int64_t start; /* tokens at positions start..start+n-1 */
    int n;
    int span, span_from;                  /* > 0: of the first `span` tokens, which are one run, those from the one on
                                             all see each other */
    float scale, softcap, size;           /* size: of the entries of q */
    int sink_logits, alibi, bias, q_sink; /* 1 = on; bias 2: by distance */
    swa_type compute;                     /* as in swa_attn */
    int pick_n, pick_block;               /* with a list: entries of a token and KV head */
    const swa_window *pick_window;
    const unsigned char *absent; /* [n] 1 = no segment holds this key (without a ring only); NULL = all there */
} at_case;

typedef struct { /* rows are [n][heads][dim], a tail behind its head */
    float *q, *q_sink, *k, *v, *sink_logits, *alibi, *bias;
    int bias_n;
    int32_t *pick; /* [n][kv heads][pick_n]; NULL = no list */
} at_data;

typedef struct {
    int isa, chunk; /* chunk 0 = all at once; the first one is never shorter than the span */
    int parts;      /* 0: swa_attend or swa_attention; else the _part calls, in random order */
    int max_parts, layout, alias, put_first, audit, rewind;
    int others; /* other sequences that share the steps */
    int k_rows; /* the ring holds K as rows */
    int cuts;   /* without a ring: this many random cuts of the keys */
    int64_t capacity, origin, max_context;
    const int32_t *parents; /* the one step is a tree */
} at_how;
static inline at_how at_on(int isa) {
    at_how how;
    memset(&how, 0, sizeof how);
    how.isa = isa;
    return how;
}

/* h query heads over kv heads of K dk and V dv wide; f32 all, causal, default scale. */
static inline at_case at_new(int h, int kv, int dk, int dv, int n) {
    at_case c;
    memset(&c, 0, sizeof c);
    c.shape.n_heads = h;
    c.shape.n_kv_heads = kv;
    c.shape.head_dim = dk;
    c.shape.v_dim = dv;
    c.k_type = c.v_type = c.tail_type = SWA_F32;
    c.window = swa_window_causal();
    c.sees = or_causal();
    c.n = n;
    c.size = 4.0f;
    return c;
}
static inline void at_sliding(at_case *c, int64_t W) {
    c->window = swa_window_sliding(W);
    c->sees = or_sliding(W);
}
static inline void at_pinned(at_case *c, int64_t W, int n_sink) {
    c->window = swa_window_sinks(W, n_sink);
    c->sees = or_sliding(W);
    c->sees.pinned = n_sink;
}
static inline void at_chunked(at_case *c, int64_t chunk) {
    c->window = swa_window_chunked(chunk);
    c->sees = or_causal();
    c->sees.chunk = chunk;
}
static inline void at_span(at_case *c, int from, int span) {
    c->span = span;
    c->span_from = from;
    c->sees.span_lo = c->start + from;
    c->sees.span_hi = c->start + span;
}
/* All that K, V and a tail can be. */
enum { AT_TYPES = 7 };
static const swa_type at_types[AT_TYPES] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8, SWA_Q8_32, SWA_E4M3, SWA_E5M2 };
/* By kind: 3 has V in K and a tail (latents), 4 a tail. Types and what happens to scores are drawn. */
static inline void at_vary(at_case *c, int kind) {
    c->shape.v_in_k = kind == 3;
    c->shape.tail_dim = kind == 3 ? 16 : kind == 4 ? 8 : 0;
    c->k_type = at_types[t_int(0, AT_TYPES - 1)];
    c->tail_type = at_types[t_int(0, AT_TYPES - 1)];
    c->v_type = kind == 3 ? c->k_type : at_types[t_int(0, AT_TYPES - 1)];
    c->softcap = t_int(0, 3) ? 0.0f : 20.0f;
    c->alibi = !t_int(0, 3);
    c->bias = t_int(0, 2) ? 0 : t_int(1, 2);
    c->sink_logits = !t_int(0, 2);
}
static inline size_t at_dk(const at_case *c) { return (size_t)(c->shape.head_dim + c->shape.tail_dim); }
static inline size_t at_q_row(const at_case *c) { return (size_t)c->shape.n_heads * at_dk(c); }
static inline size_t at_k_row(const at_case *c) { return (size_t)c->shape.n_kv_heads * at_dk(c); }
static inline size_t at_v_row(const at_case *c) { return (size_t)(c->shape.n_kv_heads * c->shape.v_dim); }
static inline size_t at_o_row(const at_case *c) { return (size_t)(c->shape.n_heads * c->shape.v_dim); }
static inline float at_scale(const at_case *c) {
    int plain = !c->shape.tail_dim && !c->shape.v_in_k;
    if (c->scale > 0.0f || plain) return c->scale;
    return (float)(1.0 / sqrt((double)at_dk(c)));
}

static inline at_data at_make(const at_case *c) {
    at_data d;
    size_t n = (size_t)c->n, h = (size_t)c->shape.n_heads;
    memset(&d, 0, sizeof d);
    d.q = t_random(n * at_q_row(c), c->size);
    d.k = t_random(n * at_k_row(c), 1.0f);
    d.v = c->shape.v_in_k ? NULL : t_random(n * at_v_row(c), 1.0f);
    if (c->q_sink) d.q_sink = t_random(n * at_q_row(c), c->size);
    if (c->sink_logits) d.sink_logits = t_random(h, 2.0f);
    if (c->alibi) {
        d.alibi = t_floats(h);
        for (size_t i = 0; i < h; i++) d.alibi[i] = 0.5f / (float)(i + 1);
    }
    if (c->bias) {
        d.bias_n = c->bias == 2 ? 1 + c->n / 3 : c->n > 5 ? c->n - 5 : 1; /* fewer than keys: the rest counts as 0 */
        d.bias = t_random(n * h * (size_t)d.bias_n, 2.0f);
    }
    return d;
}
static inline int64_t at_bias_first(const at_case *c) { return c->bias == 2 ? 0 : c->start + 2; }

/* ---- rows in the caller's layouts ---- */

typedef struct {
    float *p;
    int64_t token, head;
} at_rows_of;

/* 0 packed, 1 padded between heads and tokens, 2 head-major; the block ends with the last row's last number. */
static inline at_rows_of at_room(size_t rows, size_t heads, size_t dim, int layout) {
    at_rows_of r;
    size_t head = layout == 2 ? rows * dim : dim + 1, token = layout == 2 ? dim : heads * (dim + 1) + 3;
    if (layout == 0) {
        head = dim;
        token = heads * dim;
    }
    r.p = t_floats(rows && heads ? (rows - 1) * token + (heads - 1) * head + dim : 0);
    r.token = layout ? (int64_t)token : 0;
    r.head = layout ? (int64_t)head : 0;
    return r;
}
static inline float *at_at(const at_rows_of *r, size_t row, size_t h, size_t heads, size_t dim) {
    size_t token = r->token ? (size_t)r->token : heads * dim, head = r->head ? (size_t)r->head : dim;
    return r->p + row * token + h * head;
}
/* Numbers from..from+dim-1 of every head of src [rows][heads][whole]. */
static inline at_rows_of at_lay(const float *src, size_t rows, size_t heads, size_t whole, size_t from, size_t dim,
                                int layout) {
    at_rows_of r = at_room(rows, heads, dim, layout);
    for (size_t i = 0; i < rows; i++)
        for (size_t h = 0; h < heads; h++)
            memcpy(at_at(&r, i, h, heads, dim), src + (i * heads + h) * whole + from, dim * sizeof *src);
    return r;
}
static inline swa_in at_in(at_rows_of r) {
    swa_in in;
    in.p = r.p;
    in.token = r.token;
    in.head = r.head;
    return in;
}

/* Everything of a call but k and v: queries of `rows` rows from q (and q_sink, bias) and room for the results. */
typedef struct {
    at_rows_of out;
    float *lse;
    swa_attn a;
} at_call;
static inline at_call at_queries(const at_case *c, const at_data *d, const float *q, const float *q_sink,
                                 const float *bias, size_t rows, const at_how *how) {
    at_call call;
    swa_attn *a = &call.a;
    size_t h = (size_t)c->shape.n_heads, dk = (size_t)c->shape.head_dim, tail = (size_t)c->shape.tail_dim;
    size_t dv = (size_t)c->shape.v_dim;
    at_rows_of rq = at_lay(q, rows, h, dk + tail, 0, dk, how->layout);
    memset(a, 0, sizeof *a);
    a->compute = c->compute;
    a->q = at_in(rq);
    if (tail) a->q_tail = at_in(at_lay(q, rows, h, dk + tail, dk, tail, how->layout));
    if (q_sink) {
        a->q_sink = at_in(at_lay(q_sink, rows, h, dk + tail, 0, dk, how->layout));
        if (tail) a->q_sink_tail = at_in(at_lay(q_sink, rows, h, dk + tail, dk, tail, how->layout));
    } else t_say_sinks(a, how->audit, &c->window);
    call.out = how->alias && dk == dv ? rq : at_room(rows, h, dv, how->layout);
    a->out.p = call.out.p;
    a->out.token = call.out.token;
    a->out.head = call.out.head;
    a->lse = call.lse = t_floats(rows * h);
    a->scale = at_scale(c);
    a->softcap = c->softcap;
    a->sink_logits = d->sink_logits;
    a->alibi = d->alibi;
    if (bias) {
        a->bias = bias;
        a->bias_n = d->bias_n;
        a->bias_head = d->bias_n;
        a->bias_token = d->bias_n * c->shape.n_heads;
        a->bias_first = at_bias_first(c);
        a->bias_by_distance = c->bias == 2;
    }
    return call;
}
/* The lists of tokens from.. (n of them), at row `at` of a call of `total`; the other rows' name nothing. */
static inline void at_lists(const at_case *c, const at_data *d, size_t from, size_t n, size_t at, size_t total,
                            swa_attn *a) {
    size_t row = (size_t)(c->shape.n_kv_heads * c->pick_n);
    int32_t *to;
    if (!d->pick) return;
    to = (int32_t *)t_alloc(total * row * sizeof *to + 4);
    memset(to, 0x55, total * row * sizeof *to);
    memcpy(to + at * row, d->pick + from * row, n * row * sizeof *to);
    a->pick = to;
    a->pick_n = c->pick_n;
    a->pick_head = c->pick_n;
    a->pick_token = (int64_t)row;
    a->pick_block = c->pick_block;
    a->pick_window = c->pick_window;
}
/* Results of rows from.. (n of them) into packed out [n][heads][v_dim] and lse [n][heads]. */
static inline void at_results(const at_case *c, const at_call *call, size_t from, size_t n, float *out, float *lse) {
    size_t h = (size_t)c->shape.n_heads, dv = (size_t)c->shape.v_dim;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < h; j++)
            memcpy(out + (i * h + j) * dv, at_at(&call->out, from + i, j, h, dv), dv * sizeof *out);
    if (lse) memcpy(lse, call->lse + from * h, n * h * sizeof *lse);
}

/* A random order of 0..n-1, n <= 16. */
static inline void at_shuffle(int *order, int n) {
    for (int i = 0; i < n; i++) order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = t_int(0, i), x = order[i];
        order[i] = order[j];
        order[j] = x;
    }
}
static inline int at_run_ring(swa_cache *kv, int layer, const swa_attn *a, int parts) {
    int order[16];
    CHECK(swa_attend_explain(kv, layer, a) == NULL);
    if (!parts) return CHECK_OK(swa_attend(kv, layer, a));
    for (int phase = 0; phase < SWA_PHASES; phase++) {
        at_shuffle(order, parts);
        for (int i = 0; i < parts; i++)
            if (!CHECK_OK(swa_attend_part(kv, layer, a, phase, order[i], parts))) return 0;
    }
    return 1;
}
static inline int at_run_rows(const swa_rows *r, const swa_attn *a, int parts) {
    int order[16];
    CHECK(swa_attention_explain(r, a) == NULL);
    if (!parts) return CHECK_OK(swa_attention(r, a));
    for (int phase = 0; phase < SWA_PHASES; phase++) {
        at_shuffle(order, parts);
        for (int i = 0; i < parts; i++)
            if (!CHECK_OK(swa_attention_part(r, a, phase, order[i], parts))) return 0;
    }
    return 1;
}

/* ---- over a ring ---- */

static inline int at_cache(swa_cache *kv, const at_case *c, const at_how *how) {
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    d.shape = c->shape;
    d.n_layers = 1;
    d.n_seqs = 1 + how->others;
    d.windows = &c->window;
    d.n_windows = 1;
    d.k_type = c->k_type;
    d.v_type = c->v_type;
    d.tail_type = c->tail_type;
    if (how->k_rows) {
        d.k_rows = &how->k_rows;
        d.n_k_rows = 1;
    }
    d.capacity = how->capacity;
    d.isa = how->isa;
    d.audit = how->audit;
    if (c->sees.left >= OR_FAR && !c->sees.chunk) d.max_context = c->start + c->n + (how->others ? 6 * c->n + 112 : 0);
    if (how->max_context) d.max_context = how->max_context;
    if (!t_cache_new(kv, &d, how->max_parts > how->parts ? how->max_parts : how->parts)) return 0;
    for (int s = 0; s <= how->others; s++)
        if (!CHECK_OK(swa_cache_reset(kv, s, s ? s * 7 : c->start, how->origin))) return 0;
    return 1;
}
/* rows of src at `from` behind (or before) rows of other sequences, which are random. */
static inline float *at_mix(const float *src, size_t from, size_t n, size_t before, size_t total, size_t row) {
    float *x;
    if (!src) return NULL;
    x = t_random(total * row, 1.0f);
    memcpy(x + before * row, src + from * row, n * row * sizeof *x);
    return x;
}
/* Which runs this step has: ours is sequence 0, at a random place among the others, of which some sit out. Returns
   its index. */
static inline int at_runs(const swa_cache *kv, const at_case *c, const at_how *how, int from, int n, swa_run *runs,
                          int *n_runs) {
    int order[16], mine = 0;
    at_shuffle(order, 1 + how->others);
    *n_runs = 0;
    for (int i = 0; i <= how->others; i++) {
        swa_run r = order[i] ? t_run(order[i], swa_cache_end(kv, order[i]), t_int(0, 5)) : t_run(0, c->start + from, n);
        r.rewind = how->rewind;
        if (!order[i]) r.parents = how->parents;
        if (!order[i]) mine = *n_runs;
        if (!order[i] && c->span > from) r.prefix = c->start + c->span;
        if (r.prefix > 0 && c->span_from > 0) r.prefix_first = c->start + c->span_from;
        if (r.n > 0) runs[(*n_runs)++] = r;
    }
    return mine;
}
/* out [n][heads][v_dim], lse [n][heads] or NULL; 0 if a call was refused (counted as a failure). */
static inline int at_ring_on(swa_cache *kv, const at_case *c, const at_data *d, const at_how *how, int first, int last,
                             float *out, float *lse) {
    size_t hk = (size_t)c->shape.n_kv_heads, dk = (size_t)c->shape.head_dim, tail = (size_t)c->shape.tail_dim;
    size_t h = (size_t)c->shape.n_heads, dv = (size_t)c->shape.v_dim;
    int chunk = how->chunk ? how->chunk : c->n, n;
    for (int p = first; p < last; p += n) {
        const t_block *mark = t_.blocks;
        swa_run runs[16];
        at_call call;
        int want = p < c->span && chunk < c->span - p ? c->span - p : chunk, mine, n_runs;
        size_t at, rows, from = (size_t)p;
        float *k, *v;
        n = want < last - p ? want : last - p;
        mine = at_runs(kv, c, how, p, n, runs, &n_runs);
        if (!CHECK_OK(swa_step_begin(kv, runs, n_runs))) return 0;
        at = (size_t)runs[mine].row;
        rows = (size_t)swa_step_tokens(kv);
        call = at_queries(c, d, at_mix(d->q, from, (size_t)n, at, rows, at_q_row(c)),
                          at_mix(d->q_sink, from, (size_t)n, at, rows, at_q_row(c)),
                          at_mix(d->bias, from, (size_t)n, at, rows, h * (size_t)d->bias_n), rows, how);
        at_lists(c, d, from, (size_t)n, at, rows, &call.a);
        k = at_mix(d->k, from, (size_t)n, at, rows, at_k_row(c));
        v = at_mix(d->v, from, (size_t)n, at, rows, at_v_row(c));
        call.a.k = at_in(at_lay(k, rows, hk, dk + tail, 0, dk, how->layout));
        if (tail) call.a.k_tail = at_in(at_lay(k, rows, hk, dk + tail, dk, tail, how->layout));
        if (v) call.a.v = at_in(at_lay(v, rows, hk, dv, 0, dv, how->layout));
        if (how->put_first) {
            swa_attn put = call.a;
            memset(&put.q, 0, sizeof put.q);
            memset(&call.a.k, 0, sizeof call.a.k);
            put.mode = SWA_STORE_ONLY;
            call.a.mode = SWA_ATTEND_STORED;
            if (!at_run_ring(kv, 0, &put, how->parts)) return 0;
        }
        if (!at_run_ring(kv, 0, &call.a, how->parts)) return 0;
        at_results(c, &call, at, (size_t)n, out + from * at_o_row(c), lse ? lse + from * h : NULL);
        t_free_to(mark);
    }
    return 1;
}
static inline int at_ring(const at_case *c, const at_data *d, const at_how *how, float *out, float *lse) {
    const t_block *mark = t_.blocks;
    swa_cache kv;
    int ok = at_cache(&kv, c, how) && at_ring_on(&kv, c, d, how, 0, c->n, out, lse);
    t_free_to(mark);
    return ok;
}
/* The data with K and V as a ring of the case's types holds them (read back from a ring that forgets nothing). */
static inline at_data at_stored_by(const at_case *c, const at_data *d, int isa) {
    size_t hk = (size_t)c->shape.n_kv_heads, dk = (size_t)c->shape.head_dim, tail = (size_t)c->shape.tail_dim;
    at_case whole = *c;
    at_how how;
    at_data s = *d;
    swa_cache kv;
    swa_attn a;
    memset(&how, 0, sizeof how);
    memset(&a, 0, sizeof a);
    whole.window = swa_window_sliding(c->n);
    how.capacity = c->n;
    how.isa = isa;
    s.k = t_floats((size_t)c->n * at_k_row(c));
    s.v = d->v ? t_floats((size_t)c->n * at_v_row(c)) : NULL;
    a.mode = SWA_STORE_ONLY;
    a.k = at_in(at_lay(d->k, (size_t)c->n, hk, dk + tail, 0, dk, 0));
    if (tail) a.k_tail = at_in(at_lay(d->k, (size_t)c->n, hk, dk + tail, dk, tail, 0));
    a.v.p = d->v;
    if (at_cache(&kv, &whole, &how) && CHECK_OK(swa_step_one(&kv, 0, c->start, c->n))
        && CHECK_OK(swa_attend(&kv, 0, &a)))
        CHECK_OK(swa_cache_read(&kv, 0, 0, c->start, c->n, s.k, s.v));
    return s;
}
static inline at_data at_stored(const at_case *c, const at_data *d) { return at_stored_by(c, d, SWA_ISA_SCALAR); }

/* ---- without a ring ---- */

/* Numbers that a type holds exactly, as that type; own code, so that swa.h's rounding is not assumed. */
static inline uint16_t at_half(float x) {
    uint32_t u;
    int e;
    memcpy(&u, &x, sizeof u);
    e = (int)(u >> 23 & 255) - 127;
    if ((u & 0x7fffffffu) == 0) return (uint16_t)(u >> 16);
    if (e < -14) return (uint16_t)((u >> 31) << 15 | (0x800000u | (u & 0x7fffffu)) >> (13 + (-14 - e)));
    return (uint16_t)((u >> 31) << 15 | (uint32_t)(e + 15) << 10 | (u & 0x7fffffu) >> 13);
}
static inline unsigned char at_fp8(float x, int e5m2) {
    const int bits = e5m2 ? 2 : 3, bias = e5m2 ? 15 : 7, sign = signbit(x) ? 128 : 0;
    int e;
    float m;
    if (!(x - x == 0.0f)) return 0x7f;
    if (x >= 0.0f && x <= 0.0f) return (unsigned char)sign;
    m = frexpf(fabsf(x), &e); /* m * 2^e, m in [1/2, 1) */
    if (e - 1 < 1 - bias) return (unsigned char)(sign | (int)ldexpf(fabsf(x), bias - 1 + bits));
    return (unsigned char)(sign | (e - 1 + bias) << bits | ((int)ldexpf(m, bits + 1) & ((1 << bits) - 1)));
}
/* A block of rows in a storage type, with strides in elements. */
static inline void *at_typed(const at_rows_of *f, size_t floats, swa_type type) {
    uint16_t *x;
    if (type == SWA_E4M3 || type == SWA_E5M2) {
        unsigned char *code = (unsigned char *)t_alloc(floats);
        for (size_t i = 0; i < floats; i++) code[i] = at_fp8(f->p[i], type == SWA_E5M2);
        return code;
    }
    if (type != SWA_F16 && type != SWA_BF16) return f->p;
    x = (uint16_t *)t_alloc(floats * sizeof *x);
    for (size_t i = 0; i < floats; i++) {
        uint32_t u;
        memcpy(&u, f->p + i, sizeof u);
        x[i] = type == SWA_BF16 ? (uint16_t)(u >> 16) : f->p[i] - f->p[i] == 0.0f ? at_half(f->p[i]) : 0x7fff;
    }
    return x;
}
/* Rows from..from+n-1 of src as one segment's k, v or tail. */
static inline const void *at_piece(const float *src, size_t from, size_t n, size_t heads, size_t whole, size_t skip,
                                   size_t dim, int layout, swa_type type, int64_t *token, int64_t *head) {
    at_rows_of r = at_lay(src + from * heads * whole, n, heads, whole, skip, dim, layout);
    size_t floats = (size_t)(at_at(&r, n - 1, heads - 1, heads, dim) - r.p) + dim;
    *token = r.token;
    *head = r.head;
    return at_typed(&r, floats, type);
}
static inline int at_is_q8(swa_type type) { return type == SWA_Q8 || type == SWA_Q8_32; }
static inline swa_kv at_segment(const at_case *c, const at_data *s, int from, int n, int layout) {
    size_t hk = (size_t)c->shape.n_kv_heads, dk = (size_t)c->shape.head_dim, tail = (size_t)c->shape.tail_dim;
    size_t dv = (size_t)c->shape.v_dim, at = (size_t)from, rows = (size_t)n;
    swa_kv kv;
    memset(&kv, 0, sizeof kv);
    /* q8 values are given as the floats they stand for. */
    kv.k_type = at_is_q8(c->k_type) ? SWA_F32 : c->k_type;
    kv.v_type = at_is_q8(c->v_type) ? SWA_F32 : c->v_type;
    kv.tail_type = at_is_q8(c->tail_type) ? SWA_F32 : c->tail_type;
    kv.pos = c->start + from;
    kv.n = n;
    kv.k = at_piece(s->k, at, rows, hk, dk + tail, 0, dk, layout, kv.k_type, &kv.k_token, &kv.k_head);
    if (tail)
        kv.tail =
            at_piece(s->k, at, rows, hk, dk + tail, dk, tail, layout, kv.tail_type, &kv.tail_token, &kv.tail_head);
    if (s->v) kv.v = at_piece(s->v, at, rows, hk, dv, 0, dv, layout, kv.v_type, &kv.v_token, &kv.v_head);
    return kv;
}
#define AT_SEGMENTS 64
/* All keys that are there, cut at `cuts` random places and around the absent ones. */
static inline int at_segments(const at_case *c, const at_data *s, const at_how *how, swa_kv *kv) {
    unsigned char *cut = (unsigned char *)t_alloc((size_t)c->n + 1);
    int n = 0;
    memset(cut, 0, (size_t)c->n + 1);
    for (int i = 0; i < how->cuts; i++) cut[t_int(0, c->n - 1)] = 1;
    for (int from = 0, to; from < c->n && n < AT_SEGMENTS; from = to) {
        for (to = from + 1; to < c->n && !cut[to] && !(c->absent && c->absent[to] != c->absent[from]); to++) {}
        if (n == AT_SEGMENTS - 1 && !c->absent) to = c->n;
        if (!c->absent || !c->absent[from]) kv[n++] = at_segment(c, s, from, to - from, how->layout);
    }
    return n;
}
/* Queries first..last-1 of the case; s as at_stored gives it. */
static inline int at_rows_some(const at_case *c, const at_data *s, const at_how *how, int first, int last, float *out,
                               float *lse) {
    const t_block *mark = t_.blocks;
    size_t h = (size_t)c->shape.n_heads;
    swa_kv kv[AT_SEGMENTS];
    swa_rows r;
    int chunk = how->chunk ? how->chunk : c->n, ok = 1;
    memset(&r, 0, sizeof r);
    r.shape = c->shape;
    r.window = c->window;
    r.isa = how->isa;
    if (c->span) {
        r.window.prefix_first = c->start + c->span_from;
        r.window.prefix = c->start + c->span;
    }
    r.kv = kv;
    r.n_kv = at_segments(c, s, how, kv);
    for (int p = first; ok && p < last; p += chunk) {
        size_t n = (size_t)(chunk < last - p ? chunk : last - p), from = (size_t)p;
        const t_block *inner = t_.blocks;
        const float *q_sink = s->q_sink ? s->q_sink + from * at_q_row(c) : NULL;
        const float *bias = s->bias ? s->bias + from * h * (size_t)s->bias_n : NULL;
        at_call call = at_queries(c, s, s->q + from * at_q_row(c), q_sink, bias, n, how);
        at_lists(c, s, from, n, 0, n, &call.a);
        r.pos = c->start + p;
        r.n_tokens = (int32_t)n;
        r.scratch_bytes = swa_attention_bytes(&r, how->parts ? how->parts : how->max_parts ? how->max_parts : 1);
        ok = CHECK(r.scratch_bytes > 0);
        r.scratch = t_alloc(r.scratch_bytes);
        ok = ok && at_run_rows(&r, &call.a, how->parts);
        if (ok) at_results(c, &call, 0, n, out + from * at_o_row(c), lse ? lse + from * h : NULL);
        t_free_to(inner);
    }
    t_free_to(mark);
    return ok;
}
static inline int at_rows(const at_case *c, const at_data *s, const at_how *how, float *out, float *lse) {
    return at_rows_some(c, s, how, 0, c->n, out, lse);
}

/* ---- the oracle on the same case ---- */

static inline or_case at_oracle_case(const at_case *c, const at_data *s) {
    or_case o;
    memset(&o, 0, sizeof o);
    o.n_heads = c->shape.n_heads;
    o.n_kv_heads = c->shape.n_kv_heads;
    o.dk = (int)at_dk(c);
    o.dv = c->shape.v_dim;
    o.window = c->sees;
    o.q_pos = o.k_pos = c->start;
    o.n_q = o.n_k = c->n;
    o.q = s->q;
    o.q_pinned = s->q_sink;
    o.k = s->k;
    o.v = s->v;
    o.absent = c->absent;
    o.scale = at_scale(c) > 0.0f ? (double)at_scale(c) : 1.0 / sqrt((double)c->shape.head_dim);
    o.softcap = (double)c->softcap;
    o.alibi = s->alibi;
    o.sink_logits = s->sink_logits;
    o.bias = s->bias;
    o.bias_n = s->bias_n;
    o.bias_first = at_bias_first(c);
    o.bias_by_distance = c->bias == 2;
    return o;
}
static inline void at_oracle(const at_case *c, const at_data *s, double *out, double *lse) {
    const or_case o = at_oracle_case(c, s);
    or_attention(&o, out, lse, t_doubles(c->n));
}
/* One query at a position over the caller's rows, which have one KV head: all but the attention, with scratch. */
static inline void at_one_query(swa_rows *r, int heads, int dim, const swa_kv *kv, int n_kv, int64_t pos) {
    memset(r, 0, sizeof *r);
    r->shape.n_heads = heads;
    r->shape.n_kv_heads = 1;
    r->shape.head_dim = dim;
    r->window = swa_window_causal();
    r->pos = pos;
    r->n_tokens = 1;
    r->kv = kv;
    r->n_kv = n_kv;
    r->scratch_bytes = swa_attention_bytes(r, 1);
    r->scratch = t_alloc(r->scratch_bytes);
}
#endif /* SWA_TEST_ATTEND_H */
