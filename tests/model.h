/* model.h - a cache without a ring: what a sequence holds is an array that grows and never forgets, and beside it a
   plain picture of the slots, written token by token. A string of bytes drives it and swa.h through the same calls;
   after each call status, content, slots, views and outputs have to agree.

       md m;                                       // test_cache.c feeds random bytes, fuzz/fuzz_ring.c the fuzzer's
       if (!md_run(&m, bytes, n)) puts(m.why);     // 0 = they differ, and how

   A call is exact if every row it needs still lies in its slot, and that is read off the picture: the formula of
   the library is not repeated here. What must be refused has to leave the whole memory as it was, byte for byte. */
#ifndef SWA_TEST_MODEL_H
#define SWA_TEST_MODEL_H
#include "../swa.h"
#include "oracle.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MD_SEQS = 3, MD_LAYERS = 3, MD_SLOTS = 64, MD_LONG = 96, MD_RUN = 24, MD_GUARD = 64, MD_CONTEXT = 160 };
#define MD_MAY(status) (1u << (status))

typedef struct {
    int64_t pos;
    uint32_t id;
} md_cell;
typedef struct {
    int64_t start, end, origin;
    int64_t dirty;                     /* rows from here on were begun and never stored; INT64_MAX = none */
    uint32_t id[MD_LONG + MD_RUN];     /* of the token at start + i */
    md_cell cell[MD_LAYERS][MD_SLOTS]; /* the slots: pinned ones first, then the ring */
} md_seq;
typedef struct {
    const uint8_t *bytes;
    size_t left;
    swa_cache cache;
    swa_cache_desc desc;
    swa_shape shape; /* with the defaults filled in */
    swa_window window[MD_LAYERS];
    or_window see[MD_LAYERS];
    int64_t cap[MD_LAYERS], reach[MD_LAYERS];
    int bounded[MD_LAYERS], n_windows, seqs, parts, dk, dv;
    unsigned char *block, *mem, *before, *room, *scratch; /* room: the cache's scratch, for so many parts */
    size_t size, scratch_size;
    uint32_t next_id;
    int told;      /* the begin before was refused because of idle */
    unsigned idle; /* by sequence: the step before is theirs, and no layer was called */
    long ops, refused, rows_checked;
    md_seq seq[MD_SEQS];
    char why[240];
} md;

static inline int md_wrong(md *m, const char *format, ...) {
    va_list args;
    int n = snprintf(m->why, sizeof m->why, "op %ld: ", m->ops);
    va_start(args, format);
    vsnprintf(m->why + n, sizeof m->why - (size_t)n, format, args);
    va_end(args);
    return 0;
}
/* The next byte, 0 when they are used up; and one of lo..hi. */
static inline int md_byte(md *m) { return m->left > 0 ? (m->left--, *m->bytes++) : 0; }
static inline int md_pick(md *m, int lo, int hi) { return lo + md_byte(m) % (hi - lo + 1); }

/* Numbers i/128 with |i| <= 127, and 127 in every row: f16, bf16 and q8, also by 32, hold them exactly. */
static inline float md_value(uint32_t id, int what, int layer, int head, int d, int dim) {
    uint32_t x = id * 2654435761u ^ (uint32_t)(what * 7919 + layer * 104729 + head * 1299709 + d * 15485863);
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    if (d == (int)(id % (uint32_t)dim)) return x & 64 ? 127.0f / 128.0f : -127.0f / 128.0f;
    return (float)((int)(x % 255u) - 127) / 128.0f;
}
/* What a ring of such a type is given: fp8 (of e5m2's three bits) the three highest bits of i. */
static inline float md_held(swa_type type, float x) {
    int e;
    float m = frexpf(x, &e);
    return type == SWA_E4M3 || type == SWA_E5M2 ? ldexpf(truncf(m * 8.0f) / 8.0f, e) : x;
}
/* Row of one token: K is [head_dim | tail_dim], both with a full-scale number, so that q8 is exact in either. */
static inline void md_row(const md *m, uint32_t id, int layer, int what, int heads, float *row) {
    int hd = m->shape.head_dim, td = m->shape.tail_dim, dim = what == 2 ? m->dv : m->dk;
    const swa_type k_type = what == 1 ? m->desc.k_type : SWA_F32, tail_type = what == 1 ? m->desc.tail_type : SWA_F32;
    for (int h = 0; h < heads; h++)
        for (int d = 0; d < dim; d++)
            if (what == 2) row[h * dim + d] = md_held(m->desc.v_type, md_value(id, 2, layer, h, d, dim));
            else if (d < hd) row[h * dim + d] = md_held(k_type, md_value(id, what, layer, h, d, hd));
            else row[h * dim + d] = md_held(tail_type, md_value(id, what + 8, layer, h, d - hd, td));
}

/* ---- the slots ---- */

static inline int64_t md_mod(int64_t a, int64_t n) {
    int64_t r = a % n;
    return r < 0 ? r + n : r;
}
static inline int64_t md_slot(const md *m, int l, const md_seq *s, int64_t pos) {
    int64_t pinned = m->see[l].pinned;
    return pos < pinned ? pos : pinned + md_mod(pos - s->origin, m->cap[l]);
}
static inline int md_resident(const md *m, int layer, const md_seq *s, int64_t pos) {
    const int l = layer % m->n_windows;
    const md_cell *c;
    if (pos < s->start || pos >= s->end) return 0;
    if (m->bounded[l]) return 1;
    c = &s->cell[layer][md_slot(m, l, s, pos)];
    return c->pos == pos && c->id == s->id[pos - s->start];
}
/* Under audit a ring counts as full: whether, with as many rows as it can hold before the last one that was stored, one
   that the query at pos sees would be gone, were there positions enough. */
static inline int md_full_lost(const md *m, int layer, const md_seq *s, int64_t pos) {
    const int l = layer % m->n_windows;
    or_window w = m->see[l];
    int64_t end = s->end, k;
    if (!m->desc.audit || m->bounded[l] || pos <= w.pinned) return 0;
    while (end > s->start && !md_resident(m, layer, s, end - 1)) end--;
    k = (end - m->cap[l] < pos ? end - m->cap[l] : pos) - 1;
    w.pinned = 0;
    if (w.chunk > 0) return k >= 0 && or_sees(&w, pos, k);
    return or_sees(&w, pos + MD_LONG, k + MD_LONG); /* no place below 0 */
}
static inline int md_exact(const md *m, const md_seq *s, int64_t pos) {
    for (int layer = 0; layer < m->desc.n_layers; layer++)
        if (md_full_lost(m, layer, s, pos)) return 0;
    for (int layer = 0; layer < m->desc.n_layers; layer++)
        for (int64_t k = s->start; k < pos; k++)
            if (or_sees(&m->see[layer % m->n_windows], pos, k) && !md_resident(m, layer, s, k)) return 0;
    return 1;
}
static inline void md_empty(md_seq *s, int64_t start, int64_t origin) {
    s->start = s->end = start;
    s->origin = origin;
    s->dirty = INT64_MAX;
    memset(s->cell, 0xff, sizeof s->cell);
}
static inline void md_append(md *m, md_seq *s, int64_t n) {
    for (; n > 0; n--, s->end++) s->id[s->end - s->start] = m->next_id++;
}
/* What a layer's call writes: until then the slots hold what they held. */
static inline void md_store(const md *m, md_seq *s, int layer, int64_t pos, int64_t n) {
    const int l = layer % m->n_windows;
    for (; n > 0 && !m->bounded[l]; n--, pos++) {
        const md_cell now = { pos, s->id[pos - s->start] };
        s->cell[layer][md_slot(m, l, s, pos)] = now;
    }
}
/* What forgetting the rows from pos on may return. */
static inline unsigned md_may_rewind(const md *m, const md_seq *s, int64_t pos) {
    return pos <= s->start || pos >= s->end || md_exact(m, s, pos) ? MD_MAY(SWA_OK) : MD_MAY(SWA_ERR_LOST);
}
static inline void md_rewind(md_seq *s, int64_t pos) {
    if (pos <= s->start) md_empty(s, pos, s->origin);
    else if (pos < s->end) s->end = pos;
    if (s->dirty >= s->end) s->dirty = INT64_MAX;
}

/* ---- making the cache ---- */

static inline void md_make_window(md *m, int i) {
    int kind = md_pick(m, 0, 7), W = md_pick(m, 1, 9), sinks = md_pick(m, 1, 4);
    m->reach[i] = W;
    if (kind < 4) {
        m->window[i] = swa_window_sliding(W);
        m->see[i] = or_sliding(W);
    } else if (kind == 4) {
        m->window[i] = swa_window_flash(W - 1, 0);
        m->see[i] = or_sliding(W);
    } else if (kind == 5) {
        m->window[i] = swa_window_sinks(W, sinks);
        m->see[i] = or_sliding(W);
        m->see[i].pinned = sinks;
    } else if (kind == 6) {
        m->window[i] = swa_window_chunked(W);
        m->see[i] = or_causal();
        m->see[i].chunk = W;
    } else {
        m->window[i] = swa_window_causal();
        m->see[i] = or_causal();
        m->bounded[i] = 1;
    }
}
static inline void md_make_desc(md *m) {
    static const swa_type types[7] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8, SWA_Q8_32, SWA_E4M3, SWA_E5M2 };
    swa_cache_desc *d = &m->desc;
    int64_t most = 0;
    d->n_layers = md_pick(m, 1, MD_LAYERS);
    m->n_windows = md_pick(m, 1, d->n_layers);
    for (int i = 0; i < m->n_windows; i++) {
        md_make_window(m, i);
        if (m->bounded[i]) d->max_context = MD_CONTEXT;
        else if (m->reach[i] > most) most = m->reach[i];
    }
    d->windows = m->window;
    d->n_windows = m->n_windows;
    m->seqs = md_pick(m, 1, MD_SEQS);
    d->n_seqs = m->seqs > 1 ? m->seqs : md_pick(m, 0, 1);
    d->max_rollback = md_pick(m, 0, 5);
    if (md_pick(m, 0, 2) > 0) d->capacity = most - 1 + (d->max_rollback ? d->max_rollback : 1) + md_pick(m, 0, 9);
    d->shape.n_kv_heads = md_pick(m, 1, 2);
    d->shape.n_heads = d->shape.n_kv_heads * md_pick(m, 1, 3);
    d->shape.head_dim = md_pick(m, 1, 5);
    d->shape.v_in_k = md_pick(m, 0, 3) == 0;
    d->shape.v_dim = d->shape.v_in_k ? md_pick(m, 1, d->shape.head_dim) : md_pick(m, 0, 5);
    d->shape.tail_dim = md_pick(m, 0, 3) == 0 ? md_pick(m, 1, 3) : 0;
    d->k_type = types[md_pick(m, 0, 6)];
    d->v_type = types[md_pick(m, 0, 6)];
    d->tail_type = types[md_pick(m, 0, 6)];
    m->parts = md_pick(m, 0, 3);
    d->isa = md_pick(m, 0, SWA_ISA_AVX512);
    if (d->isa && !swa_isa_usable(d->isa)) d->isa = 0;
    d->audit = md_pick(m, 0, 3) == 0;
    m->shape = d->shape;
    if (!m->shape.v_dim) m->shape.v_dim = m->shape.head_dim;
    m->dk = m->shape.head_dim + m->shape.tail_dim;
    m->dv = m->shape.v_dim;
    for (int i = 0; i < m->n_windows; i++) {
        int64_t need = m->reach[i] - 1 + (d->max_rollback ? d->max_rollback : 1);
        m->cap[i] = d->capacity ? d->capacity : d->audit ? need : (need + 15) / 16 * 16;
    }
}
/* Memory for what m->desc says, at an odd address and between guards, and an empty cache in it. */
static inline int md_start(md *m, int shift) {
    const size_t room = swa_cache_scratch_bytes(&m->desc, m->parts ? m->parts : 1);
    m->next_id = 1;
    m->size = swa_cache_bytes(&m->desc);
    if (!m->size || !room) return md_wrong(m, "a size is 0");
    m->block = (unsigned char *)malloc(m->size + 2 * MD_GUARD + 64);
    m->before = (unsigned char *)malloc(m->size);
    m->room = (unsigned char *)malloc(room);
    if (!m->block || !m->before || !m->room) exit(2);
    memset(m->block, 0xff, m->size + 2 * MD_GUARD + 64);
    m->mem = m->block + MD_GUARD + shift;
    if (swa_cache_init(&m->cache, &m->desc, m->mem, m->size) != SWA_OK) return md_wrong(m, "init is refused");
    if (swa_cache_set_scratch(&m->cache, m->room, room) != SWA_OK) return md_wrong(m, "scratch is refused");
    for (int s = 0; s < m->seqs; s++) md_empty(&m->seq[s], 0, 0);
    return 1;
}
static inline int md_open(md *m, const uint8_t *bytes, size_t n) {
    memset(m, 0, sizeof *m);
    m->bytes = bytes;
    m->left = n;
    md_make_desc(m);
    return md_start(m, md_byte(m) & 63);
}
/* A cache of one layer, one head and f32, for exhaustive tests. */
static inline int md_open_plain(md *m, int64_t W, int64_t capacity, int seqs) {
    memset(m, 0, sizeof *m);
    m->window[0] = swa_window_sliding(W);
    m->see[0] = or_sliding(W);
    m->reach[0] = W;
    m->cap[0] = m->desc.capacity = capacity;
    m->desc.n_layers = m->desc.n_windows = m->n_windows = 1;
    m->desc.windows = m->window;
    m->desc.n_seqs = m->seqs = seqs;
    m->desc.shape.n_heads = m->desc.shape.n_kv_heads = 1;
    m->desc.shape.head_dim = m->desc.shape.v_dim = m->dk = m->dv = 2;
    m->shape = m->desc.shape;
    return md_start(m, 1);
}
static inline int md_close(md *m) {
    int ok = 1;
    if (m->block && m->mem) {
        for (unsigned char *p = m->block; p < m->mem; p++) ok &= *p == 0xff;
        for (unsigned char *p = m->mem + m->size; p < m->block + m->size + 2 * MD_GUARD + 64; p++) ok &= *p == 0xff;
    }
    free(m->block);
    free(m->before);
    free(m->room);
    free(m->scratch);
    return ok || m->why[0] ? !m->why[0] : md_wrong(m, "bytes outside the cache's memory were written");
}

/* ---- comparing ---- */

/* Every call goes through here: the status is one that the model allows, and a refusal leaves the memory alone, but
   for so many bytes that note it: begin and attend write down that there is no step, or no call to go on with. */
static inline int md_status(md *m, swa_status got, unsigned may, size_t noted, const char *call) {
    size_t differ = 0;
    if (!(may & MD_MAY(got)))
        return md_wrong(m, "%s gave \"%s\", the model allows %#x", call, swa_status_str(got), may);
    if (got == SWA_OK) return 1;
    m->refused++;
    if (memcmp(m->before, m->mem, m->size) == 0) return 1;
    for (size_t i = 0; i < m->size; i++) differ += m->before[i] != m->mem[i];
    return differ <= noted ? 1 : md_wrong(m, "refused %s changed the memory", call);
}
/* Before a call that the model knows to be refused. */
static inline void md_expect(md *m, unsigned may) {
    if (!(may & MD_MAY(SWA_OK))) memcpy(m->before, m->mem, m->size);
}

/* K and V of the positions [from, to) of one layer, as the host gave them; caller frees. */
static inline float *md_rows(const md *m, const md_seq *s, int layer, int what, int64_t from, int64_t to) {
    size_t width = (size_t)m->shape.n_kv_heads * (size_t)(what == 2 ? m->dv : m->dk);
    float *rows = (float *)malloc((size_t)(to - from + 1) * width * sizeof *rows);
    if (!rows) exit(2);
    for (int64_t p = from; p < to; p++)
        md_row(m, s->id[p - s->start], layer, what, m->shape.n_kv_heads, rows + (size_t)(p - from) * width);
    return rows;
}
/* V of the model's rows: the first v_dim numbers of K where the shape says so. */
static inline float *md_values(const md *m, const md_seq *s, int layer, const float *k, int64_t from, int64_t to) {
    float *v = md_rows(m, s, layer, 2, from, to);
    if (m->shape.v_in_k)
        for (int64_t i = 0; i < (to - from) * m->shape.n_kv_heads; i++)
            memcpy(v + i * m->dv, k + i * m->dk, (size_t)m->dv * sizeof *v);
    return v;
}
static inline float md_scale(const md *m) { return m->shape.tail_dim || m->shape.v_in_k ? 0.625f : 0.0f; }

/* Scratch for a stateless call; kept, for taking and giving it back with every row costs more than the rest. */
static inline void md_scratch(md *m, swa_rows *r) {
    r->scratch_bytes = swa_attention_bytes(r, 1);
    if (r->scratch_bytes > m->scratch_size) {
        free(m->scratch);
        m->scratch_size = r->scratch_bytes;
        m->scratch = (unsigned char *)malloc(m->scratch_size);
        if (!m->scratch) exit(2);
    }
    r->scratch = m->scratch;
}
/* n queries from position pos on, over segments of the caller's. */
static inline int md_attention(md *m, int l, const swa_kv *kv, int n_kv, int64_t pos, int32_t n, const float *q,
                               float *out, float *lse) {
    const swa_shape *h = &m->shape;
    swa_rows r;
    swa_attn a;
    memset(&r, 0, sizeof r);
    memset(&a, 0, sizeof a);
    r.shape = *h;
    r.window = m->window[l];
    r.pos = pos;
    r.n_tokens = n;
    r.kv = kv;
    r.n_kv = n_kv;
    r.isa = m->desc.isa;
    md_scratch(m, &r);
    a.q.p = q;
    a.q_tail.p = h->tail_dim > 0 ? q + h->head_dim : NULL;
    a.q.head = a.q_tail.head = m->dk;
    a.q.token = a.q_tail.token = (int64_t)m->dk * h->n_heads;
    a.out.p = out;
    a.lse = lse;
    a.scale = md_scale(m);
    return swa_attention_part(&r, &a, 0, 0, 1) == SWA_OK && swa_attention_part(&r, &a, 1, 0, 1) == SWA_OK;
}
/* The same over all that the sequence ever held, in one segment. */
static inline int md_stateless(md *m, int l, const md_seq *s, const float *k, const float *v, int64_t pos, int32_t n,
                               const float *q, float *out) {
    swa_kv kv;
    memset(&kv, 0, sizeof kv);
    kv.k = k;
    kv.v = v;
    kv.tail = k + m->shape.head_dim;
    kv.k_head = kv.tail_head = m->dk;
    kv.k_token = kv.tail_token = (int64_t)m->dk * m->shape.n_kv_heads;
    kv.pos = s->start;
    kv.n = (int32_t)(s->end - s->start);
    return md_attention(m, l, &kv, 1, pos, n, q, out, NULL) ? 1 : md_wrong(m, "the stateless call is refused");
}
/* One run's outputs against the definition in double, and bit for bit against the call over the unbounded rows (q8
   apart: a ring multiplies by its scale later than rows that come as numbers). */
static inline int md_outputs(md *m, int layer, const md_seq *s, int64_t pos, int32_t n, const float *q,
                             const float *out, const float *lse) {
    const swa_shape *h = &m->shape;
    int l = layer % m->n_windows, ok;
    size_t rows = (size_t)n * (size_t)h->n_heads, width = (size_t)m->dv;
    int q8 = m->desc.k_type == SWA_Q8 || m->desc.tail_type == SWA_Q8 || m->desc.v_type == SWA_Q8;
    float *k = md_rows(m, s, layer, 1, s->start, s->end), *v = md_values(m, s, layer, k, s->start, s->end);
    float *bits = (float *)malloc((rows * width + 1) * sizeof *bits);
    double *want = (double *)malloc((rows * width + rows + (size_t)(s->end - s->start) + 1) * sizeof *want);
    double *wlse = want + rows * width;
    or_case c;
    memset(&c, 0, sizeof c);
    if (!bits || !want) exit(2);
    c.n_heads = h->n_heads;
    c.n_kv_heads = h->n_kv_heads;
    c.dk = m->dk;
    c.dv = m->dv;
    c.window = m->see[l];
    c.q_pos = pos;
    c.k_pos = s->start;
    c.n_q = n;
    c.n_k = s->end - s->start;
    c.q = q;
    c.k = k;
    c.v = v;
    c.scale = md_scale(m) > 0 ? (double)md_scale(m) : 1.0 / sqrt((double)h->head_dim);
    or_attention(&c, want, wlse, wlse + rows);
    ok = md_stateless(m, l, s, k, v, pos, n, q, bits);
    for (size_t i = 0; i < rows * width && ok; i++)
        if (!(fabs((double)out[i] - want[i]) <= 1e-5))
            ok = md_wrong(m, "layer %d, position %lld: out is %g, not %g", layer,
                          (long long)(pos + (int64_t)(i / width) / h->n_heads), (double)out[i], want[i]);
    for (size_t i = 0; i < rows && ok && lse; i++)
        if (wlse[i] > -HUGE_VAL ? !(fabs((double)lse[i] - wlse[i]) <= 1e-4) : !((double)lse[i] < -1e30))
            ok = md_wrong(m, "layer %d: lse is %g, not %g", layer, (double)lse[i], wlse[i]);
    if (ok && !q8 && memcmp(bits, out, rows * width * sizeof *bits) != 0)
        ok = md_wrong(m, "layer %d, position %lld: ring and unbounded rows differ in bits", layer, (long long)pos);
    m->rows_checked += (long)rows;
    free(k);
    free(v);
    free(bits);
    free(want);
    return ok;
}

/* The first row in which two arrays [n][width] of numbers differ; n = none does. */
static inline size_t md_differ(const float *a, const float *b, size_t n, size_t width) {
    for (size_t i = 0; i < n * width; i++)
        if (!(a[i] >= b[i] && a[i] <= b[i])) return i / width;
    return n;
}
/* Copy-out of the resident rows [first, to) against what was given, and of one more on either side: refused. */
static inline int md_read(md *m, int seq, int layer, int64_t first, int64_t to) {
    const md_seq *s = &m->seq[seq];
    size_t heads = (size_t)m->shape.n_kv_heads, n = (size_t)(to - first), bad;
    size_t dk = heads * (size_t)m->dk, dv = heads * (size_t)m->dv;
    float *k = md_rows(m, s, layer, 1, first, to), *v = md_values(m, s, layer, k, first, to);
    float *gk = (float *)malloc((n * dk + dk) * sizeof *gk), *gv = (float *)malloc((n * dv + dv) * sizeof *gv);
    int ok = 1;
    if (!gk || !gv) exit(2);
    if (swa_cache_read(&m->cache, seq, layer, first, (int32_t)n, gk, gv) != SWA_OK)
        ok = md_wrong(m, "seq %d layer %d: rows %lld..%lld cannot be read", seq, layer, (long long)first,
                      (long long)to - 1);
    bad = ok ? md_differ(gk, k, n, dk) : n;
    if (bad == n && ok) bad = md_differ(gv, v, n, dv);
    if (bad < n)
        ok = md_wrong(m, "seq %d layer %d: row %lld is another one", seq, layer, (long long)(first + (int64_t)bad));
    if (ok && swa_cache_read(&m->cache, seq, layer, s->end, 1, gk, NULL) == SWA_OK)
        ok = md_wrong(m, "seq %d layer %d: a row past the end can be read", seq, layer);
    if (ok && first > 0 && first > m->see[layer % m->n_windows].pinned
        && swa_cache_read(&m->cache, seq, layer, first - 1, 1, gk, NULL) == SWA_OK)
        ok = md_wrong(m, "seq %d layer %d: a lost row can be read", seq, layer);
    free(k);
    free(v);
    free(gk);
    free(gv);
    return ok;
}
/* The zero-copy views hold the resident positions and nothing else ... */
static inline int md_span_positions(md *m, int seq, int layer, int64_t first, const swa_kv *kv, int n) {
    const md_seq *s = &m->seq[seq];
    int64_t pinned = m->see[layer % m->n_windows].pinned, want = first;
    if (s->start < pinned && s->end > s->start) want = s->start;
    for (int i = 0; i < n; i++) {
        if (want == pinned || (want == s->end && want < pinned)) want = first > want ? first : want;
        if (kv[i].pos != want || kv[i].n <= 0)
            return md_wrong(m, "seq %d layer %d: span %d begins at %lld, not %lld", seq, layer, i, (long long)kv[i].pos,
                            (long long)want);
        want = kv[i].pos + kv[i].n;
    }
    if (want != s->end && !(want == pinned && first == s->end))
        return md_wrong(m, "seq %d layer %d: spans end at %lld, not %lld", seq, layer, (long long)want,
                        (long long)s->end);
    return 1;
}
/* ... and attention over them is attention: one query at the position after the last. */
static inline int md_spans(md *m, int seq, int layer, int64_t first) {
    const md_seq *s = &m->seq[seq];
    float q[6 * 8], out[6 * 5], lse[6];
    swa_kv kv[3];
    int n = swa_cache_spans(&m->cache, seq, layer, kv);
    if (n < 0 || n > 3) return md_wrong(m, "%d spans", n);
    if (!md_span_positions(m, seq, layer, first, kv, n)) return 0;
    if (s->end > INT64_MAX - 2) return 1; /* no position is left for one more query */
    md_row(m, 77u + m->next_id, layer, 0, m->shape.n_heads, q);
    if (!md_attention(m, layer % m->n_windows, kv, n, s->end, 1, q, out, lse))
        return md_wrong(m, "attention over spans is refused");
    return md_outputs(m, layer, s, s->end, 1, q, out, lse);
}
/* Everything that can be asked of one sequence. */
static inline int md_check(md *m, int seq) {
    const md_seq *s = &m->seq[seq];
    int64_t p, least = s->end;
    if (swa_cache_end(&m->cache, seq) != s->end)
        return md_wrong(m, "seq %d: end is %lld, not %lld", seq, (long long)swa_cache_end(&m->cache, seq),
                        (long long)s->end);
    if (s->dirty != INT64_MAX) return 1;
    for (p = s->end - 1; p > s->start; p--)
        if (md_exact(m, s, p)) least = p;
    if (swa_cache_min_end(&m->cache, seq) != least)
        return md_wrong(m, "seq %d: min_end is %lld, not %lld", seq, (long long)swa_cache_min_end(&m->cache, seq),
                        (long long)least);
    for (int layer = 0; layer < m->desc.n_layers; layer++) {
        int l = layer % m->n_windows;
        int64_t pinned = m->see[l].pinned, low = s->start > pinned ? s->start : pinned, first = s->end, got;
        while (first > low && md_resident(m, layer, s, first - 1)) first--;
        got = swa_cache_first(&m->cache, seq, layer);
        if (got != first)
            return md_wrong(m, "seq %d layer %d: first is %lld, not %lld", seq, layer, (long long)got,
                            (long long)first);
        for (p = s->start - 1; p <= s->end; p++) {
            int here = p < pinned ? p >= s->start && p < s->end : p >= first && p < s->end;
            int64_t slot = here ? md_slot(m, l, s, p) : -1;
            got = swa_cache_slot(&m->cache, seq, layer, p);
            if (got != slot && !(m->bounded[l] && here && got >= 0))
                return md_wrong(m, "seq %d layer %d: slot of %lld is %lld, not %lld", seq, layer, (long long)p,
                                (long long)got, (long long)slot);
        }
        if (!md_read(m, seq, layer, first, s->end)) return 0;
        if (s->start < pinned && s->end > s->start
            && !md_read(m, seq, layer, s->start, s->end < pinned ? s->end : pinned))
            return 0;
        if (s->end > s->start && !md_spans(m, seq, layer, first)) return 0;
    }
    return 1;
}

/* ---- calls ---- */

/* Where a sequence goes on: at its end, or where a step began that some layer never stored. */
static inline int64_t md_next(const md_seq *s) { return s->dirty < s->end ? s->dirty : s->end; }
/* Any position so far: where a layer needs no row (W = 1, the start of a chunk) one may go back to it. */
static inline int64_t md_far(md *m, const md_seq *s) { return s->start + md_pick(m, 0, (int)(md_next(s) - s->start)); }

/* Statuses that beginning this run may give. */
static inline unsigned md_may_run(const md *m, const swa_run *r) {
    const md_seq *s;
    int64_t start;
    if (r->seq < 0 || r->seq >= m->seqs || r->n <= 0 || r->pos < 0) return MD_MAY(SWA_ERR_ARG);
    if (r->pos > INT64_MAX - 1 - r->n) return MD_MAY(SWA_ERR_OVERFLOW);
    s = &m->seq[r->seq];
    if (r->pos > md_next(s) || (r->pos < md_next(s) && !r->rewind)) return MD_MAY(SWA_ERR_ORDER);
    start = r->pos < s->start ? r->pos : s->start;
    for (int l = 0; l < m->n_windows; l++)
        if (m->bounded[l] && r->pos + r->n - start > MD_CONTEXT) return MD_MAY(SWA_ERR_FULL);
    return md_may_rewind(m, s, r->pos);
}
typedef struct {
    swa_run run[MD_SEQS + 1];
    int n_runs;
    float *q, *k, *v, *out, *lse;
} md_step;

static inline float *md_floats(int64_t n) {
    float *p = (float *)malloc((size_t)(n + 1) * sizeof *p);
    if (!p) exit(2);
    for (int64_t i = 0; i <= n; i++) p[i] = 1e30f;
    return p;
}
static inline void md_free_step(md_step *t) {
    free(t->q);
    free(t->k);
    free(t->v);
    free(t->out);
    free(t->lse);
}

/* Begins what the runs say, here and in the model. *begun says whether there is something to attend. */
static inline int md_begin(md *m, md_step *t, int *begun) {
    unsigned may = MD_MAY(SWA_OK);
    int bad = -1, seen = 0, apart, said;
    swa_status got;
    for (int i = 0; i < t->n_runs && bad < 0; i++) {
        const swa_run *r = &t->run[i];
        may = r->seq >= 0 && r->seq < m->seqs && (seen >> r->seq & 1) ? MD_MAY(SWA_ERR_ARG) : md_may_run(m, r);
        if (!(may & MD_MAY(SWA_OK))) bad = i;
        else seen |= 1 << r->seq;
    }
    apart = bad < 0 && m->idle != 0 && (m->idle & (unsigned)seen) == 0; /* it looks like a batch begun in pieces */
    if (apart) may = MD_MAY(SWA_ERR_ORDER);
    m->idle = 0;
    *begun = bad < 0 && !apart;
    md_expect(m, may);
    said = t->n_runs == 1 && swa_step_explain(&m->cache, t->run) != NULL;
    got = swa_step_begin(&m->cache, t->run, t->n_runs);
    if (!md_status(m, got, may, 12, "swa_step_begin")) return 0;
    if (apart) said = swa_step_explain(&m->cache, t->run) != NULL; /* begin has found it */
    if ((t->n_runs == 1 || apart) && said != (got != SWA_OK || m->told))
        return md_wrong(m, "swa_step_explain says otherwise");
    m->told = apart;
    for (int i = 0; i < t->n_runs && (bad < 0 || i <= bad); i++)
        if (t->run[i].status != (apart || i == bad ? got : SWA_OK))
            return md_wrong(m, "begin says \"%s\" of run %d", swa_status_str(t->run[i].status), i);
    if (!*begun) return 1;
    for (int i = 0, rows = 0; i < t->n_runs; rows += t->run[i++].n) {
        md_seq *s = &m->seq[t->run[i].seq];
        if (t->run[i].row != rows) return md_wrong(m, "row of run %d is %d", i, (int)t->run[i].row);
        md_rewind(s, t->run[i].pos);
        md_append(m, s, t->run[i].n);
    }
    return 1;
}
/* The packed rows of one layer. */
static inline void md_fill(md *m, md_step *t, int layer, swa_attn *a) {
    const swa_shape *h = &m->shape;
    int64_t n = swa_step_tokens(&m->cache);
    md_free_step(t);
    t->q = md_floats(n * h->n_heads * m->dk);
    t->k = md_floats(n * h->n_kv_heads * m->dk);
    t->v = md_floats(n * h->n_kv_heads * m->dv);
    t->out = md_floats(n * h->n_heads * m->dv);
    t->lse = md_floats(n * h->n_heads);
    for (int i = 0; i < t->n_runs; i++)
        for (int j = 0; j < t->run[i].n; j++) {
            const md_seq *s = &m->seq[t->run[i].seq];
            uint32_t id = s->id[t->run[i].pos + j - s->start];
            int64_t row = t->run[i].row + j;
            md_row(m, id, layer, 0, h->n_heads, t->q + row * h->n_heads * m->dk);
            md_row(m, id, layer, 1, h->n_kv_heads, t->k + row * h->n_kv_heads * m->dk);
            md_row(m, id, layer, 2, h->n_kv_heads, t->v + row * h->n_kv_heads * m->dv);
        }
    memset(a, 0, sizeof *a);
    a->q.p = t->q;
    a->q_tail.p = h->tail_dim > 0 ? t->q + h->head_dim : NULL;
    a->k.p = t->k;
    a->k_tail.p = h->tail_dim > 0 ? t->k + h->head_dim : NULL;
    a->q.head = a->q_tail.head = a->k.head = a->k_tail.head = m->dk;
    a->q.token = a->q_tail.token = (int64_t)m->dk * h->n_heads;
    a->k.token = a->k_tail.token = (int64_t)m->dk * h->n_kv_heads;
    if (!h->v_in_k) a->v.p = t->v;
    a->out.p = t->out;
    a->lse = t->lse;
    a->scale = md_scale(m);
}
static inline swa_status md_parts(md *m, int layer, const swa_attn *a, int parts) {
    const int said = swa_attend_explain(&m->cache, layer, a) != NULL;
    swa_status got = SWA_OK;
    if (parts == 0) got = swa_attend(&m->cache, layer, a);
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int part = parts - 1; part >= 0; part--)
            if (got == SWA_OK) got = swa_attend_part(&m->cache, layer, a, phase, part, parts);
    return said == (got != SWA_OK) ? got : SWA_ERR_BLOB; /* which attend never says */
}
/* mode 0: attend, then store. 1: put first, then attend. 2: store only. */
static inline int md_layer(md *m, md_step *t, int layer, int mode, int parts) {
    swa_attn a, b;
    unsigned may = MD_MAY(SWA_OK);
    int l = layer % m->n_windows, ok;
    md_fill(m, t, layer, &a);
    for (int i = 0; i < t->n_runs; i++) md_store(m, &m->seq[t->run[i].seq], layer, t->run[i].pos, t->run[i].n);
    if (m->desc.audit && m->window[l].n_sink > 0) { /* asked for: sinks keep their places */
        a.q_sink = a.q;
        a.q_sink_tail = a.q_tail;
    }
    b = a;
    if (mode > 0) {
        b.mode = SWA_STORE_ONLY;
        a.mode = SWA_ATTEND_STORED;
        for (int i = 0; i < t->n_runs; i++)
            if (!m->bounded[l] && t->run[i].n > m->cap[l] - (m->reach[l] - 1)) may = MD_MAY(SWA_ERR_CAPACITY);
        if (!md_status(m, md_parts(m, layer, &b, parts), MD_MAY(SWA_OK), 0, "put")) return 0;
        if (mode == 2) return 1;
    }
    md_expect(m, may);
    if (!md_status(m, md_parts(m, layer, &a, parts), may, 8, "attend")) return 0;
    if (!(may & MD_MAY(SWA_OK))) return 1;
    for (int i = 0; i < t->n_runs; i++) {
        const swa_run *r = &t->run[i];
        int64_t at = (int64_t)r->row * m->shape.n_heads;
        ok = md_outputs(m, layer, &m->seq[r->seq], r->pos, r->n, t->q + at * m->dk, t->out + at * m->dv, t->lse + at);
        if (!ok) return 0;
    }
    return 1;
}
/* Makes run r one that is refused, or may be. */
static inline void md_spoil_run(md *m, swa_run *r) {
    const int64_t end = m->seq[r->seq].end;
    int bad = md_pick(m, 0, 6);
    if (bad == 0) r->pos = end + md_pick(m, 1, 9);
    else if (bad == 1) r->pos = -1 - md_byte(m);
    else if (bad == 2) r->seq = md_pick(m, 0, 1) ? -1 : m->seqs;
    else if (bad == 3) r->pos = INT64_MAX - md_pick(m, 0, 2);
    else if (bad == 4) r->n = -md_byte(m);
    else { /* somewhere else, and it was not meant */ r->pos = end - md_pick(m, 0, 12);
        r->rewind = bad == 5;
    }
}
/* A step of some runs. kind 0 appends, 1 begins up to 9 positions before the end, 2 dies after some layer (what it
   began is dirty until it is begun again), 3 has runs that may be refused. */
static inline int md_do_step(md *m, int kind) {
    md_step t;
    int mode = md_pick(m, 0, 5), parts, wanted, begun, quit = kind == 2, ok;
    memset(&t, 0, sizeof t);
    parts = md_pick(m, 0, m->parts ? m->parts : 1);
    wanted = kind == 3 ? md_pick(m, 1, MD_SEQS + 1) : md_pick(m, 1, m->seqs);
    for (int i = 0, first = md_byte(m); i < wanted; i++) {
        swa_run *r = &t.run[t.n_runs];
        md_seq *s = &m->seq[(first + i) % m->seqs];
        r->seq = (first + i) % m->seqs;
        r->n = md_pick(m, 0, 3) > 0 ? md_pick(m, 1, 4) : md_pick(m, 1, MD_RUN);
        r->pos = md_next(s);
        r->rewind = kind == 1;
        if (kind == 1) r->pos = md_pick(m, 0, 3) ? r->pos - md_pick(m, 0, 9) : md_far(m, s);
        if (r->pos < 0) r->pos = 0;
        if (s->end - s->start > MD_LONG - MD_RUN && r->pos > s->start) continue; /* long enough */
        if (kind == 3 && md_pick(m, 0, 1)) md_spoil_run(m, r);
        t.n_runs++;
    }
    if (t.n_runs == 0) return 1;
    ok = md_begin(m, &t, &begun);
    if (ok && begun) {
        int layers = quit ? md_pick(m, 0, m->desc.n_layers - 1) : m->desc.n_layers;
        for (int layer = 0; ok && layer < layers; layer++) ok = md_layer(m, &t, layer, mode < 4 ? 0 : mode - 3, parts);
        for (int i = 0; quit && i < t.n_runs; i++) m->seq[t.run[i].seq].dirty = t.run[i].pos;
        for (int i = 0; layers == 0 && i < t.n_runs; i++) m->idle |= 1u << t.run[i].seq;
    }
    md_free_step(&t);
    return ok;
}
/* One run, all layers. */
static inline int md_feed(md *m, int seq, int64_t pos, int32_t n, int mode, int parts) {
    md_step t;
    int begun, ok;
    memset(&t, 0, sizeof t);
    m->ops++;
    t.n_runs = 1;
    t.run[0].seq = seq;
    t.run[0].pos = pos;
    t.run[0].n = n;
    ok = md_begin(m, &t, &begun);
    for (int layer = 0; ok && begun && layer < m->desc.n_layers; layer++) ok = md_layer(m, &t, layer, mode, parts);
    md_free_step(&t);
    return ok;
}
/* A step is over once one of its sequences is changed. */
static inline void md_changed(md *m, int seq) {
    if (m->idle >> seq & 1) m->idle = 0;
}
static inline int md_truncate(md *m, int seq, int64_t end) {
    md_seq *s = &m->seq[seq];
    unsigned may = end < 0 ? MD_MAY(SWA_ERR_ARG) : end > s->end ? MD_MAY(SWA_ERR_ORDER) : md_may_rewind(m, s, end);
    md_expect(m, may);
    if (!md_status(m, swa_cache_truncate(&m->cache, seq, end), may, 0, "swa_cache_truncate")) return 0;
    if (!(may & MD_MAY(SWA_OK))) return 1;
    md_rewind(s, end);
    md_changed(m, seq);
    return 1;
}
static inline int md_fork(md *m, int dst, int src, int64_t end) {
    md_seq *s = &m->seq[src], *d = &m->seq[dst];
    int64_t to = end == -1 ? s->end : end;
    const int emptied = m->desc.audit && end == -1 && s->end == s->start && d->end > d->start;
    unsigned may = to < 0 || emptied ? MD_MAY(SWA_ERR_ARG)
                 : to > s->end       ? MD_MAY(SWA_ERR_ORDER)
                                     : md_may_rewind(m, s, to);
    md_expect(m, may);
    if (!md_status(m, swa_cache_fork(&m->cache, dst, src, end), may, 0, "swa_cache_fork")) return 0;
    if (!(may & MD_MAY(SWA_OK))) return 1;
    if (dst != src) *d = *s;
    md_rewind(d, to);
    md_changed(m, dst);
    return 1;
}
static inline int md_do_truncate(md *m) {
    int seq = md_pick(m, 0, m->seqs - 1), how = md_pick(m, 0, 7);
    md_seq *s = &m->seq[seq];
    int64_t end = md_next(s) - md_pick(m, 0, 12);
    if (how == 0) end = s->start - md_pick(m, 0, 2);
    if (how == 2) end = md_pick(m, 0, 1) ? swa_cache_min_end(&m->cache, seq) : md_far(m, s);
    if (how == 1 && s->end < INT64_MAX - 2) end = s->end + md_pick(m, 0, 2);
    if (s->dirty < s->end && end > s->dirty && end <= s->end) end = s->dirty;
    return md_truncate(m, seq, end);
}
static inline int md_do_reset(md *m) {
    int seq = md_pick(m, 0, m->seqs - 1);
    int64_t origin = md_pick(m, 0, 3) ? md_pick(m, 0, 40) : 0;
    int64_t far[4] = { 0, m->seq[seq].end, (int64_t)1 << 40, INT64_MAX - 300 };
    int64_t start = far[md_pick(m, 0, 3)] + md_pick(m, 0, 20);
    if (start > INT64_MAX - 280 || start < 0) start = 0;
    if (swa_cache_reset(&m->cache, seq, start, origin) != SWA_OK) return md_wrong(m, "reset is refused");
    md_empty(&m->seq[seq], start, origin);
    md_changed(m, seq);
    return 1;
}
static inline int md_do_fork(md *m) {
    int src = md_pick(m, 0, m->seqs - 1), dst = md_pick(m, 0, m->seqs - 1);
    const md_seq *s = &m->seq[src];
    int64_t end = md_pick(m, 0, 2) ? s->end - md_pick(m, -1, 9) : -1;
    if (s->dirty < s->end && (end < 0 || end > s->dirty)) end = s->dirty;
    return md_fork(m, dst, src, end);
}
/* Saves one sequence or all, spoils the blob or not, and loads it. */
static inline int md_do_save(md *m) {
    int src = md_pick(m, 0, m->seqs - 1), dst = md_pick(m, 0, m->seqs - 1), all = md_pick(m, 0, 3) == 0, ok = 1;
    int spoil = md_pick(m, 0, 3);
    md_seq saved = m->seq[src];
    unsigned may = MD_MAY(SWA_OK);
    unsigned char *blob;
    size_t n;
    for (int s = 0; s < m->seqs; s++)
        if ((all || s == src) && m->seq[s].dirty < m->seq[s].end) return 1;
    if (all) src = dst = -1;
    n = swa_cache_save_bytes(&m->cache, src);
    blob = (unsigned char *)malloc(n + 1);
    if (!n || !blob) {
        free(blob);
        return md_wrong(m, "save_bytes is 0");
    }
    blob[n] = 0x5c;
    memcpy(m->before, m->mem, m->size);
    if (swa_cache_save(&m->cache, src, blob, n - 1) != SWA_ERR_MEMORY) ok = md_wrong(m, "save into too little");
    if (ok && swa_cache_save(&m->cache, src, blob, n) != SWA_OK) ok = md_wrong(m, "save is refused");
    if (ok && blob[n] != 0x5c) ok = md_wrong(m, "save wrote past the blob");
    if (ok && memcmp(m->before, m->mem, m->size) != 0) ok = md_wrong(m, "save changed the cache");
    if (spoil == 1) { blob[(size_t)(md_byte(m) * 256 + md_byte(m)) % n] ^= (unsigned char)(1 << md_pick(m, 0, 7)); }
    if (spoil == 2) n = (size_t)(md_byte(m) * 256 + md_byte(m)) % n;
    if (spoil == 1 || spoil == 2) may = MD_MAY(SWA_ERR_BLOB);
    md_expect(m, may);
    ok = ok && md_status(m, swa_cache_load(&m->cache, dst, blob, n), may, 0, "swa_cache_load");
    if (ok && !all && (may & MD_MAY(SWA_OK))) m->seq[dst] = saved;
    for (int s = 0; ok && (may & MD_MAY(SWA_OK)) && s < m->seqs; s++)
        if (all || s == dst) md_changed(m, s);
    free(blob);
    return ok;
}

/* Takes the bytes as a description of a cache and then as calls. 1 = library and model agree all along. */
static inline int md_run(md *m, const uint8_t *bytes, size_t n) {
    int ok = md_open(m, bytes, n);
    while (ok && m->left > 0) {
        int op = md_pick(m, 0, 19);
        m->ops++;
        ok = op < 8  ? md_do_step(m, 0)
           : op < 11 ? md_do_step(m, 1)
           : op < 12 ? md_do_step(m, 2)
           : op < 13 ? md_do_step(m, 3)
           : op < 15 ? md_do_truncate(m)
           : op < 16 ? md_do_reset(m)
           : op < 18 ? md_do_fork(m)
                     : md_do_save(m);
        for (int s = 0; ok && s < m->seqs; s++) ok = md_check(m, s);
    }
    return md_close(m) && ok;
}
#endif /* SWA_TEST_MODEL_H */
