/* The stateless call against the double oracle: any shape, window, feature, element type and stride, keys cut into
   segments with holes between, lists of keys; then again on another instruction set, with other cuts and parts: the
   same bits. */
#define SWA_IMPLEMENTATION
#include "../../swa.h"
#define FUZZ_NAME "attention"
#include "fuzz.h"
#include "window.h"

enum { MOST_KEYS = 640, MOST_QUERIES = 40, SEGMENTS = 12 };

typedef struct {
    swa_shape shape;
    swa_window window;
    or_window see;
    swa_type k_type, v_type, tail_type;
    int64_t k_pos, q_pos;
    int n_k, n_q, dk, dv;
    float scale, softcap;
    float *q, *q_pinned, *k, *v, *alibi, *sinks, *bias;
    int64_t bias_first, bias_n;
    int by_distance; /* the bias's columns */
    unsigned char *absent;
    int32_t *pick; /* [n_q][kv heads or 1][pick_n]; NULL = no lists */
    int pick_n, pick_block, pick_heads;
    swa_window near; /* kind of it: see_near.left > 0 */
    or_window see_near;
} problem;

static float *noise(size_t n, float size, uint32_t *seed) {
    float *x = (float *)malloc((n + 1) * sizeof *x);
    if (!x) exit(2);
    for (size_t i = 0; i < n; i++) x[i] = size * fuzz_unit(seed);
    return x;
}
static void any_window(fuzz_in *in, problem *p) {
    static const window_kind kinds[8] = { W_CAUSAL,  W_SLIDING,   W_SLIDING, W_FLASH,
                                          W_CHUNKED, W_SYMMETRIC, W_SINKS,   W_PREFIX };
    int kind = fuzz_pick(in, 0, 7), W = fuzz_pick(in, 1, fuzz_byte(in) & 1 ? 9 : 600), b = fuzz_pick(in, 0, 20);
    window_of(kinds[kind], W, b, &p->window, &p->see);
}
static void any_shape(fuzz_in *in, problem *p) {
    static const swa_type types[3] = { SWA_F32, SWA_F16, SWA_BF16 };
    p->shape.n_kv_heads = fuzz_pick(in, 1, 3);
    p->shape.n_heads = p->shape.n_kv_heads * fuzz_pick(in, 1, 5);
    p->shape.head_dim = fuzz_pick(in, 0, 3) ? fuzz_pick(in, 1, 20) : 16 * fuzz_pick(in, 1, 3);
    p->shape.v_in_k = fuzz_pick(in, 0, 3) == 0;
    p->shape.v_dim = p->shape.v_in_k ? fuzz_pick(in, 1, p->shape.head_dim) : fuzz_pick(in, 1, 34);
    p->shape.tail_dim = fuzz_pick(in, 0, 3) == 0 ? fuzz_pick(in, 1, 18) : 0;
    p->dk = p->shape.head_dim + p->shape.tail_dim;
    p->dv = p->shape.v_dim;
    p->k_type = types[fuzz_pick(in, 0, 2)];
    p->v_type = types[fuzz_pick(in, 0, 2)];
    p->tail_type = types[fuzz_pick(in, 0, 2)];
}
static void any_problem(fuzz_in *in, problem *p) {
    static const int64_t far[6] = { 0, 1, 250, 256, (int64_t)1 << 40, INT64_MAX - 4000 };
    uint32_t seed = (uint32_t)fuzz_pick(in, 0, 65535);
    size_t nq, nk, heads;
    memset(p, 0, sizeof *p);
    any_window(in, p);
    any_shape(in, p);
    p->n_k = fuzz_pick(in, 0, fuzz_byte(in) & 1 ? 24 : MOST_KEYS);
    p->n_q = fuzz_pick(in, 0, fuzz_byte(in) & 1 ? 3 : MOST_QUERIES);
    p->k_pos = far[fuzz_pick(in, 0, p->window.n_sink || p->window.prefix ? 3 : 5)];
    p->q_pos = p->k_pos + (fuzz_pick(in, 0, 1) && p->n_k > p->n_q ? p->n_k - p->n_q : fuzz_pick(in, 0, MOST_KEYS));
    nq = (size_t)p->n_q;
    nk = (size_t)p->n_k;
    heads = (size_t)p->shape.n_heads;
    if (fuzz_pick(in, 0, 1) || p->shape.v_in_k || p->shape.tail_dim) p->scale = 0.05f * (float)fuzz_pick(in, 1, 20);
    if (fuzz_pick(in, 0, 3) == 0) p->softcap = (float)fuzz_pick(in, 1, 50);
    p->q = noise(nq * heads * (size_t)p->dk, fuzz_pick(in, 0, 1) ? 1.0f : 6.0f, &seed);
    p->k = noise(nk * (size_t)(p->shape.n_kv_heads * p->dk), 1.0f, &seed);
    p->v = noise(nk * (size_t)(p->shape.n_kv_heads * p->dv), 1.0f, &seed);
    if (fuzz_pick(in, 0, 3) == 0 && p->window.n_sink > 0) p->q_pinned = noise(nq * heads * (size_t)p->dk, 1.0f, &seed);
    if (fuzz_pick(in, 0, 3) == 0) {
        p->alibi = noise(heads, 0.5f, &seed);
        for (size_t i = 0; i < heads; i++) p->alibi[i] = fabsf(p->alibi[i]);
    }
    if (fuzz_pick(in, 0, 3) == 0) p->sinks = noise(heads, 4.0f, &seed);
    if (fuzz_pick(in, 0, 3) == 0) {
        p->bias_n = fuzz_pick(in, 1, 300);
        p->bias_first = p->k_pos + fuzz_pick(in, 0, 300);
        p->by_distance = p->bias_n % 3 == 0;
        if (p->by_distance) p->bias_first = 0;
        p->bias = noise(nq * heads * (size_t)p->bias_n, 2.0f, &seed);
    }
    p->absent = (unsigned char *)calloc(nk + 1, 1);
    for (int i = fuzz_pick(in, 0, 4); i > 1 && p->n_k > 0; i--) {
        int at = fuzz_pick(in, 0, p->n_k - 1), n = fuzz_pick(in, 1, 40);
        for (; n > 0 && at < p->n_k; n--) p->absent[at++] = 1;
    }
}
/* Lists: entries around the keys, of which some name nothing, some stand twice; for every KV head or for all. */
static void any_lists(fuzz_in *in, problem *p) {
    uint32_t seed;
    if (fuzz_pick(in, 0, 2) != 1 || p->k_pos > 256) return;
    seed = (uint32_t)fuzz_pick(in, 0, 65535);
    p->pick_block = 1 << fuzz_pick(in, 0, 7);
    p->pick_n = fuzz_pick(in, 1, p->pick_block > 8 ? 8 : 90);
    p->pick_heads = fuzz_pick(in, 0, 1) ? p->shape.n_kv_heads : 1;
    if (fuzz_pick(in, 0, 2) == 1) {
        p->see_near = or_sliding(fuzz_pick(in, 1, 60));
        p->near = swa_window_sliding(p->see_near.left + 1);
    }
    p->pick = (int32_t *)malloc((size_t)(p->n_q * p->pick_heads * p->pick_n + 1) * sizeof *p->pick);
    for (int i = 0; i < p->n_q * p->pick_heads * p->pick_n; i++) {
        const int64_t last = (p->k_pos + p->n_k) / p->pick_block + 3, first = p->k_pos / p->pick_block - 3;
        p->pick[i] = (int32_t)(first + (int64_t)((fuzz_unit(&seed) + 1.0f) * 0.5f * (float)(last - first)));
        if (i > 0 && fuzz_unit(&seed) > 0.8f) p->pick[i] = p->pick[i - 1];
    }
}
static void free_problem(problem *p) {
    free(p->pick);
    free(p->q);
    free(p->q_pinned);
    free(p->k);
    free(p->v);
    free(p->alibi);
    free(p->sinks);
    free(p->bias);
    free(p->absent);
}

/* ---- element types, by the definition of their formats ---- */

static uint16_t to_bf16(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}
static float from_bf16(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
}
/* |x| < 65504: the nearest multiple of the spacing at x, ties to the even one. */
static uint16_t to_f16(float x) {
    int e;
    double a = fabs((double)x), spacing, units;
    uint32_t bits;
    (void)frexp(a, &e);
    if (e < -13) e = -13;
    spacing = ldexp(1.0, e - 11);
    units = nearbyint(a / spacing);
    if (units >= 2048) {
        units /= 2;
        e++;
    }
    bits = units < 1024 ? (uint32_t)units : (uint32_t)(e + 14) << 10 | ((uint32_t)units - 1024u);
    return (uint16_t)(bits | (x < 0 ? 0x8000u : 0));
}
static float from_f16(uint16_t h) {
    int e = h >> 10 & 31, m = h & 1023;
    float x = (float)(e ? ldexp((double)(1024 + m), e - 25) : ldexp((double)m, -24));
    return h & 0x8000 ? -x : x;
}
static size_t bytes_of(swa_type t) { return t == SWA_F32 ? 4 : 2; }
/* Rounds x to what the type holds, and writes it as the type does. */
static void store(swa_type t, float *x, unsigned char *at) {
    uint16_t h = t == SWA_F16 ? to_f16(*x) : to_bf16(*x);
    if (t == SWA_F32) {
        memcpy(at, x, 4);
        return;
    }
    memcpy(at, &h, 2);
    *x = t == SWA_F16 ? from_f16(h) : from_bf16(h);
}

/* ---- one way of asking ---- */

/* One array of rows [n_k][kv heads][dim], padded between heads and rows, from the columns [from, from+dim) of x. */
static unsigned char *lay(float *x, const problem *p, int width, int from, int dim, swa_type t, int pad, int64_t *token,
                          int64_t *head) {
    size_t size = bytes_of(t), heads = (size_t)p->shape.n_kv_heads;
    size_t h1 = (size_t)(dim + pad), t1 = heads * h1 + (size_t)pad;
    unsigned char *rows = (unsigned char *)malloc(((size_t)p->n_k * t1 + 1) * size);
    if (!rows) exit(2);
    memset(rows, 0xff, ((size_t)p->n_k * t1 + 1) * size); /* NaN between the rows: nobody may look there */
    for (size_t i = 0; i < (size_t)p->n_k; i++)
        for (size_t h = 0; h < heads; h++)
            for (size_t d = 0; d < (size_t)dim; d++)
                store(t, &x[(i * heads + h) * (size_t)width + (size_t)from + d], rows + (i * t1 + h * h1 + d) * size);
    *token = (int64_t)t1;
    *head = (int64_t)h1;
    return rows;
}
/* Segments of the keys that are there, cut at the holes and wherever the input says. */
static int cut(fuzz_in *in, const problem *p, const swa_kv *whole, swa_kv *kv) {
    size_t ks = bytes_of(whole->k_type), vs = bytes_of(whole->v_type), ts = bytes_of(whole->tail_type);
    int n = 0;
    for (int at = 0; at < p->n_k;) {
        int end = at, longest = n < SEGMENTS - 6 ? fuzz_pick(in, 1, MOST_KEYS) : MOST_KEYS;
        if (p->absent[at]) {
            at++;
            continue;
        }
        while (end < p->n_k && !p->absent[end] && end - at < longest) end++;
        kv[n] = *whole;
        kv[n].k = (const char *)whole->k + (size_t)at * (size_t)whole->k_token * ks;
        kv[n].v = (const char *)whole->v + (size_t)at * (size_t)whole->v_token * vs;
        kv[n].tail = (const char *)whole->tail + (size_t)at * (size_t)whole->tail_token * ts;
        kv[n].pos = p->k_pos + at;
        kv[n++].n = end - at;
        at = end;
    }
    return n;
}
typedef struct {
    float *out, *lse;
    size_t n_out, n_lse;
} answer;

static answer compute(fuzz_in *in, problem *p) {
    const swa_shape *s = &p->shape;
    swa_kv whole, kv[SEGMENTS + 8];
    swa_rows r;
    swa_attn a;
    answer got;
    int pad = fuzz_pick(in, 0, 3), parts = fuzz_pick(in, 1, 5);
    const int tail_at = p->n_q > 0 ? s->head_dim : 0; /* without rows that would be someone else's memory */
    unsigned char *k, *v, *tail;
    memset(&whole, 0, sizeof whole);
    memset(&r, 0, sizeof r);
    memset(&a, 0, sizeof a);
    whole.k = k = lay(p->k, p, p->dk, 0, s->head_dim, p->k_type, pad, &whole.k_token, &whole.k_head);
    whole.v = v = lay(p->v, p, p->dv, 0, p->dv, p->v_type, pad, &whole.v_token, &whole.v_head);
    whole.tail = tail =
        lay(p->k, p, p->dk, s->head_dim, s->tail_dim, p->tail_type, pad, &whole.tail_token, &whole.tail_head);
    whole.k_type = p->k_type;
    whole.v_type = p->v_type;
    whole.tail_type = p->tail_type;
    r.shape = *s;
    r.window = p->window;
    r.pos = p->q_pos;
    r.n_tokens = p->n_q;
    r.kv = kv;
    r.n_kv = cut(in, p, &whole, kv);
    r.isa = fuzz_pick(in, 0, SWA_ISA_AVX512);
    if (r.isa && !swa_isa_usable(r.isa)) r.isa = 0;
    r.scratch_bytes = swa_attention_bytes(&r, parts);
    if (!r.scratch_bytes) FUZZ_DIE("swa_attention_bytes is 0");
    r.scratch = malloc(r.scratch_bytes);
    memset(r.scratch, 0xff, r.scratch_bytes);
    a.q.p = p->q;
    a.q_tail.p = s->tail_dim ? p->q + tail_at : NULL;
    a.q_sink.p = p->q_pinned;
    if (p->q_pinned && s->tail_dim) a.q_sink_tail.p = p->q_pinned + tail_at;
    a.q.head = a.q_tail.head = a.q_sink.head = a.q_sink_tail.head = p->dk;
    a.q.token = a.q_tail.token = a.q_sink.token = a.q_sink_tail.token = (int64_t)p->dk * s->n_heads;
    a.scale = p->scale;
    a.softcap = p->softcap;
    a.alibi = p->alibi;
    a.sink_logits = p->sinks;
    a.bias = p->bias;
    a.bias_first = p->bias_first;
    a.bias_n = p->bias_n;
    a.bias_head = p->bias_n;
    a.bias_token = p->bias_n * s->n_heads;
    a.bias_by_distance = p->by_distance;
    a.pick = p->pick;
    a.pick_n = p->pick_n;
    a.pick_block = p->pick_block;
    a.pick_head = p->pick_heads > 1 ? p->pick_n : 0;
    a.pick_token = (int64_t)p->pick_heads * p->pick_n;
    if (p->see_near.left > 0) a.pick_window = &p->near;
    got.n_out = (size_t)p->n_q * (size_t)(s->n_heads * p->dv);
    got.n_lse = (size_t)p->n_q * (size_t)s->n_heads;
    a.out.p = got.out = (float *)malloc((got.n_out + 1) * sizeof(float));
    a.lse = got.lse = (float *)malloc((got.n_lse + 1) * sizeof(float));
    if (!r.scratch || !got.out || !got.lse) exit(2);
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int part = parts - 1; part >= 0; part--)
            if (swa_attention_part(&r, &a, phase, part, parts) != SWA_OK)
                FUZZ_DIE("swa_attention_part is refused: %s", swa_attention_explain(&r, &a));
    free(k);
    free(v);
    free(tail);
    free(r.scratch);
    return got;
}
/* Whether a query sees what its list does not hide. */
static int listed(const problem *p, int i, int kv, int64_t k) {
    const int64_t q = p->q_pos + i;
    const int32_t *list = p->pick + (i * p->pick_heads + (p->pick_heads > 1 ? kv : 0)) * p->pick_n;
    if (p->see_near.left > 0 && or_near(&p->see_near, q, k)) return 1;
    if (k < p->see.pinned && k <= q) return 1;
    for (int j = 0; j < p->pick_n; j++)
        if (list[j] >= 0 && k / p->pick_block == list[j]) return 1;
    return 0;
}
static void oracle_of_lists(const problem *p, or_case *c, double *out, double *lse, double *room) {
    const int heads = p->shape.n_heads, group = heads / p->shape.n_kv_heads;
    unsigned char *absent = (unsigned char *)malloc((size_t)p->n_k + 1);
    c->absent = absent;
    for (int i = 0; i < p->n_q; i++)
        for (int h = 0; h < heads; h++) {
            for (int j = 0; j < p->n_k; j++) absent[j] = p->absent[j] || !listed(p, i, h / group, p->k_pos + j);
            or_row(c, i, h, room, out + (i * heads + h) * p->dv, &lse[i * heads + h]);
        }
    free(absent);
}
static void against_oracle(const problem *p, const answer *got) {
    double *want = (double *)malloc((got->n_out + got->n_lse + (size_t)p->n_k + 1) * sizeof *want);
    double *lse = want + got->n_out, top = 0, tol;
    or_case c;
    memset(&c, 0, sizeof c);
    if (!want) exit(2);
    c.n_heads = p->shape.n_heads;
    c.n_kv_heads = p->shape.n_kv_heads;
    c.dk = p->dk;
    c.dv = p->dv;
    c.window = p->see;
    c.q_pos = p->q_pos;
    c.k_pos = p->k_pos;
    c.n_q = p->n_q;
    c.n_k = p->n_k;
    c.q = p->q;
    c.q_pinned = p->q_pinned;
    c.k = p->k;
    c.v = p->shape.v_in_k ? NULL : p->v;
    c.absent = p->absent;
    c.scale = p->scale > 0 ? (double)p->scale : 1.0 / sqrt((double)p->shape.head_dim);
    c.softcap = (double)p->softcap;
    c.alibi = p->alibi;
    c.sink_logits = p->sinks;
    c.bias = p->bias;
    c.bias_first = p->bias_first;
    c.bias_n = p->bias_n;
    c.bias_by_distance = p->by_distance;
    if (p->pick) oracle_of_lists(p, &c, want, lse, lse + got->n_lse);
    else or_attention(&c, want, lse, lse + got->n_lse);
    for (size_t i = 0; i < got->n_lse; i++)
        if (lse[i] > -HUGE_VAL && fabs(lse[i]) > top) top = fabs(lse[i]);
    tol = 1e-5 * (4 + top + 6 * c.scale * p->dk); /* what rounding a score of that size does */
    for (size_t i = 0; i < got->n_out; i++)
        if (!(fabs((double)got->out[i] - want[i]) <= tol))
            FUZZ_DIE("out[%ld] is %g, not %g (tolerance %g)", (long)i, (double)got->out[i], want[i], tol);
    for (size_t i = 0; i < got->n_lse; i++)
        if (lse[i] > -HUGE_VAL ? !(fabs((double)got->lse[i] - lse[i]) <= tol) : !((double)got->lse[i] < -1e30))
            FUZZ_DIE("lse[%ld] is %g, not %g", (long)i, (double)got->lse[i], lse[i]);
    fuzz_ops += (long)got->n_lse;
    free(want);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_in in;
    problem p;
    answer a, b;
    in.p = data;
    in.left = size;
    any_problem(&in, &p);
    any_lists(&in, &p);
    a = compute(&in, &p); /* rounds k and v to their types on the way */
    against_oracle(&p, &a);
    b = compute(&in, &p);
    if (memcmp(a.out, b.out, a.n_out * sizeof *a.out) != 0 || memcmp(a.lse, b.lse, a.n_lse * sizeof *a.lse) != 0)
        FUZZ_DIE("other segments, parts or instruction set: other bits");
    free(a.out);
    free(a.lse);
    free(b.out);
    free(b.lse);
    free_problem(&p);
    return 0;
}
