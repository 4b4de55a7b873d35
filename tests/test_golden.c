/* Every case of tests/golden/ against the library, on every instruction set this machine has. The values were made
   by other people's code (tests/golden/README.md), so agreement here is agreement with Mistral's rolling cache,
   with xformers' masks, with gpt-oss, Gemma, ALiBi, YaRN and the patent's slots, not merely with ourselves. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "test.h"
#include "golden.h"

#define GOLDEN_TOL 1e-5 /* times the largest |output| of the case: the README's figure for float code */

/* ---- masks ---- */

TEST(golden_mask_plain) {
    golden_list cases = golden_cases("mask_plain");
    for (int c = 0; c < cases.n; c++) {
        golden g;
        const int32_t *S, *W, *start;
        const unsigned char *masked;
        float fill;
        if (!golden_open(&g, cases.name[c])) continue;
        S = golden_i32(&g, "S");
        W = golden_i32(&g, "W");
        start = golden_i32(&g, "start");
        masked = golden_u8(&g, "masked");
        fill = (float)golden_num(&g, "fill");
        REQUIRE(S && W && start && masked && golden_int(&g, "n") > 0);
        for (int i = 0; i < golden_int(&g, "n"); i++) {
            size_t n = (size_t)S[i] * (size_t)S[i], wrong = 0;
            const unsigned char *want = masked + start[i];
            swa_mask_desc d;
            float *f = t_floats(n);
            unsigned char *hide = (unsigned char *)t_alloc(n), *keep = (unsigned char *)t_alloc(n);
            memset(&d, 0, sizeof d);
            d.window = swa_window_sliding(W[i]);
            d.n_q = d.n_k = S + i;
            d.masked = fill;
            t_label("%s S=%d W=%d", g.name, S[i], W[i]);
            CHECK_INT(swa_mask_bytes(&d), n * sizeof(float));
            REQUIRE_OK(swa_mask(&d, f, n * sizeof(float)));
            d.type = SWA_BOOL_MASKED;
            REQUIRE_OK(swa_mask(&d, hide, n));
            d.type = SWA_BOOL_KEEP;
            REQUIRE_OK(swa_mask(&d, keep, n));
            for (size_t j = 0; j < n; j++) {
                float value = want[j] ? fill : 0.0f;
                wrong += memcmp(f + j, &value, sizeof value) != 0 || hide[j] != want[j] || keep[j] == want[j];
            }
            CHECK_INT(wrong, 0);
            if (golden_has_tensor(&g, "mask")) CHECK_BITS(f, golden_f32(&g, "mask") + start[i], n);
        }
    }
}

static uint64_t fnv1a(const float *x, size_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        for (int b = 0; b < 32; b += 8) h = (h ^ ((bits >> b) & 255u)) * 0x100000001b3u;
    }
    return h;
}
static uint64_t fnv_of(const unsigned char *p) {
    uint64_t h = 0;
    for (int b = 7; b >= 0; b--) h = h << 8 | p[b];
    return h;
}
/* m [512][512] is room. */
static void compressed_one(float *m, swa_compressed kind, int W, int head, float fill, int band, int masked,
                           uint64_t hash) {
    const size_t n = 512 * 512;
    long long hidden = 0;
    REQUIRE_OK(swa_mask_compressed(kind, W, head, SWA_F32, fill, m, n * sizeof(float)));
    for (size_t i = 0; i < n; i++) hidden += m[i] < 0.0f || m[i] > 0.0f;
    CHECK_INT(hidden, masked);
    CHECK_INT(swa_compressed_band(kind, W, head), band);
    CHECK(fnv1a(m, n) == hash);
}
TEST(golden_mask_compress) {
    golden_list cases = golden_cases("mask_compress");
    float *m = t_floats(512 * 512);
    for (int c = 0; c < cases.n; c++) {
        golden g;
        float fill;
        const int32_t *W, *head, *eff_py, *eff_cpp, *n_py, *n_cpp;
        const unsigned char *fnv_py, *fnv_cpp;
        if (!golden_open(&g, cases.name[c])) continue;
        fill = (float)golden_num(&g, "fill");
        W = golden_i32(&g, "window");
        head = golden_i32(&g, "head_size");
        eff_py = golden_i32(&g, "eff_py");
        eff_cpp = golden_i32(&g, "eff_cpp");
        n_py = golden_i32(&g, "masked_py");
        n_cpp = golden_i32(&g, "masked_cpp");
        fnv_py = golden_u8(&g, "fnv_py");
        fnv_cpp = golden_u8(&g, "fnv_cpp");
        REQUIRE(W && head && eff_py && eff_cpp && n_py && n_cpp && fnv_py && fnv_cpp);
        for (int i = 0; i < golden_int(&g, "n"); i++) {
            t_label("%s W=%d head=%d", g.name, W[i], head[i]);
            compressed_one(m, SWA_COMPRESSED_PY, W[i], head[i], fill, eff_py[i], n_py[i], fnv_of(fnv_py + 8 * i));
            compressed_one(m, SWA_COMPRESSED_CPP, W[i], head[i], fill, eff_cpp[i], n_cpp[i], fnv_of(fnv_cpp + 8 * i));
        }
    }
}
TEST(golden_mask_compress_dense) {
    golden_list cases = golden_cases("mask_compress_dense");
    const size_t n = 512 * 512;
    for (int c = 0; c < cases.n; c++) {
        golden g;
        const unsigned char *bits;
        unsigned char *py = (unsigned char *)t_alloc(n), *cpp = (unsigned char *)t_alloc(n);
        int W, head;
        size_t wrong = 0;
        if (!golden_open(&g, cases.name[c])) continue;
        bits = golden_u8(&g, "bits");
        W = golden_int(&g, "window");
        head = golden_int(&g, "head_size");
        REQUIRE(bits != NULL);
        REQUIRE_OK(swa_mask_compressed(SWA_COMPRESSED_PY, W, head, SWA_BOOL_MASKED, 0, py, n));
        REQUIRE_OK(swa_mask_compressed(SWA_COMPRESSED_CPP, W, head, SWA_BOOL_MASKED, 0, cpp, n));
        for (size_t i = 0; i < n; i++) wrong += bits[i] != (py[i] | cpp[i] << 1);
        CHECK_INT(wrong, 0);
        CHECK_INT(swa_compressed_band(SWA_COMPRESSED_PY, W, head), golden_int(&g, "eff_py"));
        CHECK_INT(swa_compressed_band(SWA_COMPRESSED_CPP, W, head), golden_int(&g, "eff_cpp"));
    }
}

/* ---- feeding a ring ---- */

/* One sequence's whole history: rows in order of position, first row at position 0. */
typedef struct {
    const float *q, *k, *v;
    const double *out;
    int n;
} history;
typedef struct {
    swa_shape shape;
    float scale, softcap;
    const float *sinks, *slopes;
} features;

static swa_attn attn_with(const features *f) {
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.scale = f->scale;
    a.softcap = f->softcap;
    a.sink_logits = f->sinks;
    a.alibi = f->slopes;
    return a;
}
/* w [n_layers] */
static int make_cache(swa_cache *kv, const features *f, const swa_window *w, int n_layers, int n_seqs, int64_t capacity,
                      int64_t room, int isa) {
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    d.shape = f->shape;
    d.n_layers = d.n_windows = n_layers;
    d.n_seqs = n_seqs;
    d.windows = w;
    d.capacity = capacity;
    d.max_context = room;
    d.isa = isa;
    return t_cache_new(kv, &d, 0);
}
/* Rows pos.. of sequence 0 through the cache's only layer; out NULL = store only. */
static int feed(swa_cache *kv, const features *f, const history *h, int pos, int n, float *out) {
    size_t hq = (size_t)f->shape.n_heads, hk = (size_t)f->shape.n_kv_heads, p = (size_t)pos;
    swa_attn a = attn_with(f);
    a.mode = out ? SWA_ATTEND : SWA_STORE_ONLY;
    a.q.p = out ? h->q + p * hq * (size_t)f->shape.head_dim : NULL;
    a.k.p = h->k + p * hk * (size_t)f->shape.head_dim;
    a.v.p = h->v + p * hk * (size_t)f->shape.v_dim;
    a.out.p = out ? out + p * hq * (size_t)f->shape.v_dim : NULL;
    return CHECK_OK(swa_step_one(kv, 0, pos, n)) && CHECK_OK(swa_attend(kv, 0, &a));
}
/* The history from row `from` on, `chunk` rows at a time, over a fresh ring; rows before `from` are only stored. */
static void through_ring(const features *f, const swa_window *w, const history *h, int from, int chunk,
                         int64_t capacity, int isa) {
    size_t row = (size_t)f->shape.n_heads * (size_t)f->shape.v_dim;
    float *out = t_floats((size_t)h->n * row);
    swa_cache kv;
    if (!make_cache(&kv, f, w, 1, 1, capacity, h->n, isa)) return;
    if (from > 0 && !feed(&kv, f, h, 0, from, NULL)) return;
    for (int p = from; p < h->n; p += chunk)
        if (!feed(&kv, f, h, p, p + chunk > h->n ? h->n - p : chunk, out)) return;
    CHECK_CLOSE(out + (size_t)from * row, h->out + (size_t)from * row, (size_t)(h->n - from) * row, GOLDEN_TOL);
}
/* The same rows without a ring: the keys in `pieces` segments, `chunk` queries a call. */
static void without_ring(const features *f, const swa_window *w, const history *h, int from, int chunk, int pieces,
                         int isa) {
    size_t hq = (size_t)f->shape.n_heads, hk = (size_t)f->shape.n_kv_heads;
    size_t dk = (size_t)f->shape.head_dim, dv = (size_t)f->shape.v_dim;
    float *out = t_floats((size_t)h->n * hq * dv);
    swa_kv kv[4];
    swa_rows r;
    memset(kv, 0, sizeof kv);
    memset(&r, 0, sizeof r);
    for (int i = 0; i < pieces; i++) {
        int lo = h->n * i / pieces, hi = h->n * (i + 1) / pieces;
        kv[i].k = h->k + (size_t)lo * hk * dk;
        kv[i].v = h->v + (size_t)lo * hk * dv;
        kv[i].pos = lo;
        kv[i].n = hi - lo;
    }
    r.shape = f->shape;
    r.window = *w;
    r.kv = kv;
    r.n_kv = pieces;
    r.isa = isa;
    for (int p = from; p < h->n; p += chunk) {
        swa_attn a = attn_with(f);
        r.pos = p;
        r.n_tokens = p + chunk > h->n ? h->n - p : chunk;
        r.scratch_bytes = swa_attention_bytes(&r, 1);
        r.scratch = t_alloc(r.scratch_bytes);
        a.q.p = h->q + (size_t)p * hq * dk;
        a.out.p = out + (size_t)p * hq * dv;
        if (!CHECK_OK(swa_attention(&r, &a))) return;
    }
    CHECK_CLOSE(out + (size_t)from * hq * dv, h->out + (size_t)from * hq * dv, (size_t)(h->n - from) * hq * dv,
                GOLDEN_TOL);
}

/* A copy with `gap` numbers of nothing before it: cases count their queries from 0, histories count positions. */
static const float *moved(const float *x, size_t n, size_t gap) {
    float *y = t_floats(gap + n);
    memcpy(y + gap, x, n * sizeof *y);
    return y;
}
static const double *moved_f64(const double *x, size_t n, size_t gap) {
    double *y = t_doubles(gap + n);
    memcpy(y + gap, x, n * sizeof *y);
    return y;
}

/* ---- gqa: one attention, all the features ---- */

/* The manifest's window as ours, and the mask of the case against our boolean mask. */
static swa_window gqa_window(const golden *g, int n_q, int n_k) {
    int W = golden_int(g, "window"), causal = golden_int(g, "causal");
    int right = causal ? 0 : golden_has(g, "window_right") ? golden_int(g, "window_right") : -1;
    swa_window w = right == 0 && W > 0 ? swa_window_sliding(W) : swa_window_flash(W > 0 ? W - 1 : -1, right);
    if (golden_has_tensor(g, "mask")) {
        size_t n = (size_t)n_q * (size_t)n_k;
        unsigned char *keep = (unsigned char *)t_alloc(n);
        const unsigned char *want = golden_u8(g, "mask");
        int64_t q_pos0 = n_k - n_q;
        int32_t nq = n_q, nk = n_k;
        swa_mask_desc d;
        memset(&d, 0, sizeof d);
        d.window = w;
        d.q_pos0 = &q_pos0;
        d.n_q = &nq;
        d.n_k = &nk;
        d.type = SWA_BOOL_KEEP;
        CHECK_OK(swa_mask(&d, keep, n));
        CHECK(memcmp(keep, want, n) == 0);
    }
    return w;
}
static int gqa_read(const golden *g, features *f, history *h) {
    size_t n_q = (size_t)golden_int(g, "q_len"), n_k = (size_t)golden_int(g, "kv_len"), rows, gap;
    memset(f, 0, sizeof *f);
    f->shape.n_heads = golden_int(g, "n_heads");
    f->shape.n_kv_heads = golden_int(g, "n_kv_heads");
    f->shape.head_dim = golden_int(g, "head_dim");
    f->shape.v_dim = golden_int(g, "v_dim");
    f->scale = (float)golden_num(g, "scale");
    f->softcap = (float)golden_num(g, "softcap");
    f->sinks = golden_int(g, "has_sinks") ? golden_f32(g, "sinks") : NULL;
    f->slopes = golden_int(g, "has_alibi") ? golden_narrow(g, "slopes") : NULL;
    h->n = (int)n_k;
    h->k = golden_f32(g, "k");
    h->v = golden_f32(g, "v");
    h->q = golden_f32(g, "q");
    h->out = golden_f64(g, "out");
    if (!CHECK(h->k && h->v && h->q && h->out && n_q > 0 && n_k >= n_q)) return 0;
    rows = n_q * (size_t)f->shape.n_heads;
    gap = (n_k - n_q) * (size_t)f->shape.n_heads;
    h->q = moved(h->q, rows * (size_t)f->shape.head_dim, gap * (size_t)f->shape.head_dim);
    h->out = moved_f64(h->out, rows * (size_t)f->shape.v_dim, gap * (size_t)f->shape.v_dim);
    return 1;
}
TEST_EACH_ISA(golden_gqa) {
    golden_list cases = golden_cases("gqa");
    for (int c = 0; c < cases.n; c++) {
        golden g;
        features f;
        history h;
        swa_window w;
        int n_q, from;
        if (!golden_open(&g, cases.name[c]) || !gqa_read(&g, &f, &h)) continue;
        n_q = golden_int(&g, "q_len");
        from = h.n - n_q;
        w = gqa_window(&g, n_q, h.n);
        without_ring(&f, &w, &h, from, n_q, 1, isa);
        without_ring(&f, &w, &h, from, 1, 1, isa);
        without_ring(&f, &w, &h, from, 2, 3, isa);
        if (!golden_int(&g, "causal")) continue; /* a ring holds no key that is yet to come */
        through_ring(&f, &w, &h, from, n_q, 0, isa);
        through_ring(&f, &w, &h, from, 1, 0, isa);
        through_ring(&f, &w, &h, from, 3, 0, isa);
        if (golden_int(&g, "window") > 0) through_ring(&f, &w, &h, from, 2, golden_int(&g, "window"), isa);
    }
}

/* ---- patent: slots counted from the end of the first prompt ---- */

/* ring [n]: the position each slot holds, -1 = none. */
static void check_ring(const swa_cache *kv, int seq, const int32_t *ring, int n) {
    int64_t end = swa_cache_end(kv, seq), held = 0;
    for (int s = 0; s < n; s++) {
        if (ring[s] < 0) continue;
        CHECK_INT(swa_cache_slot(kv, seq, 0, ring[s]), s);
        held++;
    }
    CHECK_INT(end - swa_cache_first(kv, seq, 0), held);
    CHECK_INT(swa_cache_slot(kv, seq, 0, end), -1);
    CHECK_INT(swa_cache_slot(kv, seq, 0, end - held - 1), -1);
}
/* by_patent 0: slots are position mod n. Prompt in pieces of `chunk`, then one token a step. */
static void patent_run(const golden *g, const features *f, const history *h, int by_patent, int chunk, int isa) {
    int n = golden_int(g, "n"), len = golden_int(g, "prompt_len");
    size_t row = (size_t)f->shape.n_heads * (size_t)f->shape.v_dim;
    const int32_t *slots = golden_i32(g, by_patent ? "prompt_slots" : "prompt_slots_modulo");
    const int32_t *later = golden_i32(g, by_patent ? "decode_slots" : "decode_slots_modulo");
    swa_window w = swa_window_sliding(n);
    float *out = t_floats((size_t)h->n * row);
    swa_cache kv;
    if (!CHECK(slots && later) || !make_cache(&kv, f, &w, 1, 1, n, 0, isa)) return;
    REQUIRE_OK(swa_cache_reset(&kv, 0, 0, by_patent && len > n ? len - n : 0));
    for (int p = 0; p < len; p += chunk) REQUIRE(feed(&kv, f, h, p, p + chunk > len ? len - p : chunk, out));
    for (int p = 0; p < len; p++) CHECK_INT(swa_cache_slot(&kv, 0, 0, p), slots[p]);
    if (by_patent) check_ring(&kv, 0, golden_i32(g, "ring_after_prompt"), n);
    for (int i = 0; len + i < h->n; i++) {
        REQUIRE(feed(&kv, f, h, len + i, 1, out));
        CHECK_INT(swa_cache_slot(&kv, 0, 0, len + i), later[i]);
        if (by_patent) check_ring(&kv, 0, golden_i32(g, "ring_after") + i * n, n);
    }
    CHECK_CLOSE(out, h->out, (size_t)h->n * row, GOLDEN_TOL);
}
TEST_EACH_ISA(golden_patent) {
    golden_list cases = golden_cases("patent");
    for (int c = 0; c < cases.n; c++) {
        golden g;
        features f;
        history h;
        swa_window w;
        if (!golden_open(&g, cases.name[c])) continue;
        memset(&f, 0, sizeof f);
        f.shape.n_heads = golden_int(&g, "n_heads");
        f.shape.n_kv_heads = golden_int(&g, "n_kv_heads");
        f.shape.head_dim = f.shape.v_dim = golden_int(&g, "head_dim");
        f.scale = (float)golden_num(&g, "scale");
        w = swa_window_sliding(golden_int(&g, "n"));
        h.n = golden_int(&g, "prompt_len") + golden_int(&g, "decode_steps");
        h.q = golden_f32(&g, "q");
        h.k = golden_f32(&g, "k");
        h.v = golden_f32(&g, "v");
        h.out = golden_f64(&g, "out");
        REQUIRE(h.q && h.k && h.v && h.out);
        for (int by_patent = 0; by_patent < 2; by_patent++) {
            patent_run(&g, &f, &h, by_patent, h.n, isa);
            patent_run(&g, &f, &h, by_patent, 1, isa);
            patent_run(&g, &f, &h, by_patent, 2, isa);
        }
        without_ring(&f, &w, &h, 0, h.n, 1, isa);
        without_ring(&f, &w, &h, 0, 1, 2, isa);
    }
}

/* ---- mistral: the rolling cache, chunked ragged prefill, decode ---- */

#define M_LAYERS 4
#define M_SEQS   8
typedef struct {
    float *q, *k, *v;
    double *out;
} rows;
typedef struct {
    golden g;
    features f;
    int batch, n_layers, n_chunks, n_decode; /* a "round" below is a prefill chunk or a decode step */
    int W[M_LAYERS], layer[M_LAYERS];
    rows r[M_LAYERS][M_SEQS];
    history h[M_LAYERS][M_SEQS]; /* the same memory */
} mistral;

/* Where tensor `what` of a round begins. Slot tensors carry the layer when the windows differ (layer -1: never). */
static const void *m_at(const mistral *m, int round, int layer, const char *what, int type) {
    char name[96], mid[16] = "";
    int decode = round >= m->n_chunks, step = round - m->n_chunks;
    golden_tensor t;
    if (layer >= 0) snprintf(mid, sizeof mid, "m%d.", m->layer[layer]);
    if (decode) snprintf(name, sizeof name, "dec.%s%s", mid, what);
    else snprintf(name, sizeof name, "c%d.%s%s", round, mid, what);
    if (layer >= 0 && !golden_has_tensor(&m->g, name)) return m_at(m, round, -1, what, type);
    if (!golden_get(&m->g, name, &t)) return NULL;
    return (const unsigned char *)golden_data(&m->g, name, type)
         + (decode ? (size_t)step * (t.n / (size_t)m->n_decode) * golden_width(type) : 0);
}
static const int32_t *m_i32(const mistral *m, int round, int layer, const char *what) {
    return (const int32_t *)m_at(m, round, layer, what, 'i');
}
static int m_len(const mistral *m, int round, int seq) {
    return round >= m->n_chunks ? 1 : m_i32(m, round, -1, "seqlens")[seq];
}
static int m_pos(const mistral *m, int round, int seq) { return m_i32(m, round, -1, "seqpos")[seq]; }

static void m_append(mistral *m, int round, int layer, int seq, size_t row) {
    char name[4][16];
    const char *part[4] = { "q", "k", "v", "out" };
    size_t dim = (size_t)m->f.shape.head_dim, hq = (size_t)m->f.shape.n_heads * dim;
    size_t hk = (size_t)m->f.shape.n_kv_heads * dim, n = (size_t)m_len(m, round, seq);
    size_t p = (size_t)m_pos(m, round, seq);
    rows *to = &m->r[layer][seq];
    const float *q, *k, *v;
    const double *out;
    for (int i = 0; i < 4; i++) snprintf(name[i], sizeof name[i], "L%d.%s", m->layer[layer], part[i]);
    q = (const float *)m_at(m, round, -1, name[0], 4);
    k = (const float *)m_at(m, round, -1, name[1], 4);
    v = (const float *)m_at(m, round, -1, name[2], 4);
    out = (const double *)m_at(m, round, -1, name[3], 8);
    REQUIRE(q && k && v && out && (int)p == m->h[layer][seq].n);
    memcpy(to->q + p * hq, q + row * hq, n * hq * sizeof *q);
    memcpy(to->k + p * hk, k + row * hk, n * hk * sizeof *k);
    memcpy(to->v + p * hk, v + row * hk, n * hk * sizeof *v);
    memcpy(to->out + p * hq, out + row * hq, n * hq * sizeof *out);
    m->h[layer][seq].n += (int)n;
}
/* Reads the case and turns its packed rounds into one history per layer and sequence. */
static int m_open(mistral *m, const char *name) {
    char word[16];
    memset(m, 0, sizeof *m);
    if (!golden_open(&m->g, name)) return 0;
    m->batch = golden_int(&m->g, "batch");
    while (golden_word(&m->g, "layers", m->n_layers, word, sizeof word)) m->n_layers++; /* those in the file */
    m->n_chunks = golden_int(&m->g, "n_chunks");
    m->n_decode = golden_int(&m->g, "decode_steps");
    if (!CHECK(m->batch > 0 && m->batch <= M_SEQS && m->n_layers > 0 && m->n_layers <= M_LAYERS)) return 0;
    m->f.shape.n_heads = golden_int(&m->g, "n_heads");
    m->f.shape.n_kv_heads = golden_int(&m->g, "n_kv_heads");
    m->f.shape.head_dim = m->f.shape.v_dim = golden_int(&m->g, "head_dim");
    m->f.scale = (float)golden_num(&m->g, "scale");
    for (int l = 0; l < m->n_layers; l++) {
        m->layer[l] = golden_item(&m->g, "layers", l);
        m->W[l] = golden_item(&m->g, "windows", m->layer[l]);
        for (int b = 0; b < m->batch; b++) {
            size_t len = (size_t)golden_item(&m->g, "prompt_lens", b) + (size_t)m->n_decode;
            size_t dim = (size_t)m->f.shape.head_dim;
            m->h[l][b].q = m->r[l][b].q = t_floats(len * (size_t)m->f.shape.n_heads * dim);
            m->h[l][b].k = m->r[l][b].k = t_floats(len * (size_t)m->f.shape.n_kv_heads * dim);
            m->h[l][b].v = m->r[l][b].v = t_floats(len * (size_t)m->f.shape.n_kv_heads * dim);
            m->h[l][b].out = m->r[l][b].out = t_doubles(len * (size_t)m->f.shape.n_heads * dim);
        }
        for (int r = 0; r < m->n_chunks + m->n_decode; r++) {
            size_t row = 0;
            for (int b = 0; b < m->batch; row += (size_t)m_len(m, r, b), b++) m_append(m, r, l, b, row);
        }
    }
    return 1;
}

/* The mask of a round: ours, built from lengths and positions alone, against theirs. In rounds of the padded class
   (decode) the columns are the ring's slots after the store, all of them visible or empty. */
static void m_check_mask(const mistral *m, int round, int layer, int padded) {
    int W = m->W[layer], n = 0;
    int64_t q0[M_SEQS], k0[M_SEQS], columns = 0;
    int32_t nq[M_SEQS], nk[M_SEQS];
    const int32_t *kv_pos = m_i32(m, round, layer, "kv_pos");
    const unsigned char *want = (const unsigned char *)m_at(m, round, layer, "mask", 'u');
    unsigned char *keep;
    swa_mask_desc d;
    memset(&d, 0, sizeof d);
    for (int b = 0; b < m->batch; b++) {
        int p = m_pos(m, round, b), len = m_len(m, round, b), before = p < W ? p : W;
        nq[b] = len;
        q0[b] = p;
        k0[b] = p - before;
        nk[b] = before + len;
        if (padded) {
            nk[b] = p + len < W ? p + len : W;
            q0[b] = nk[b] - len;
            k0[b] = 0;
        }
        n += len;
        columns += padded ? W : nk[b];
    }
    d.window = padded ? swa_window_causal() : swa_window_sliding(W);
    d.q_pos0 = q0;
    d.k_pos0 = k0;
    d.n_q = nq;
    d.n_k = nk;
    d.n_blocks = m->batch;
    d.k_padding = padded ? W : 0;
    d.type = SWA_BOOL_KEEP;
    keep = (unsigned char *)t_alloc((size_t)n * (size_t)columns);
    CHECK_INT(swa_mask_bytes(&d), (int64_t)n * columns);
    REQUIRE(kv_pos && want);
    REQUIRE_OK(swa_mask(&d, keep, (size_t)n * (size_t)columns));
    CHECK(memcmp(keep, want, (size_t)n * (size_t)columns) == 0);
    for (int b = 0, c = 0; !padded && b < m->batch; b++)
        for (int j = 0; j < nk[b]; j++, c++) CHECK_INT(kv_pos[c], k0[b] + j);
}
/* The same cells one by one through the rule itself. */
static void m_check_rule(const mistral *m, int round, int layer, int padded) {
    int W = m->W[layer], decode = round >= m->n_chunks, i = 0;
    const int32_t *kv_pos = m_i32(m, round, layer, "kv_pos");
    const int32_t *kv_seq = decode ? NULL : m_i32(m, round, layer, "kv_seq");
    const unsigned char *want = (const unsigned char *)m_at(m, round, layer, "mask", 'u');
    swa_window w = swa_window_sliding(W);
    int columns = padded ? m->batch * W : 0, wrong = 0;
    for (int b = 0; b < m->batch && !padded; b++)
        columns += m_len(m, round, b) + (m_pos(m, round, b) < W ? m_pos(m, round, b) : W);
    for (int b = 0; b < m->batch; b++)
        for (int t = 0; t < m_len(m, round, b); t++, i++)
            for (int c = 0; c < columns; c++) {
                int seq = kv_seq && !padded ? kv_seq[c] : c / W;
                int see = seq == b && kv_pos[c] >= 0 && swa_visible(&w, m_pos(m, round, b) + t, kv_pos[c]);
                wrong += want[(size_t)i * (size_t)columns + (size_t)c] != see;
            }
    CHECK_INT(wrong, 0);
}
TEST(golden_mistral_masks) {
    golden_list cases = golden_cases("mistral");
    for (int c = 0; c < cases.n; c++) {
        mistral m;
        if (!m_open(&m, cases.name[c])) continue;
        for (int r = 0; r < m.n_chunks + m.n_decode; r++) {
            char mask[64] = "PaddedKeys";
            if (r < m.n_chunks) CHECK(golden_word(&m.g, "mask_classes", r, mask, sizeof mask));
            for (int l = 0; l < m.n_layers; l++) {
                t_label("%s round %d layer %d", m.g.name, r, l);
                m_check_mask(&m, r, l, strstr(mask, "PaddedKeys") != NULL);
                m_check_rule(&m, r, l, strstr(mask, "PaddedKeys") != NULL);
            }
        }
    }
}

/* Rows of layer `layer` for positions at[b]..at[b]+n[b]-1 of every sequence that has some, packed in one step, and the
   outputs checked. */
static int m_step(const mistral *m, swa_cache *kv, int layer, int cache_layer, const int *at, const int *n, int begin) {
    size_t hq = (size_t)m->f.shape.n_heads * (size_t)m->f.shape.head_dim, total = 0, row = 0;
    size_t hk = (size_t)m->f.shape.n_kv_heads * (size_t)m->f.shape.head_dim;
    swa_run runs[M_SEQS];
    swa_attn a = attn_with(&m->f);
    float *q, *k, *v, *out;
    int n_runs = 0;
    for (int b = 0; b < m->batch; b++) {
        if (n[b] == 0) continue; /* an empty prompt */
        runs[n_runs++] = t_run(b, at[b], n[b]);
        total += (size_t)n[b];
    }
    q = t_floats(total * hq);
    k = t_floats(total * hk);
    v = t_floats(total * hk);
    out = t_floats(total * hq);
    for (int b = 0; b < m->batch; row += (size_t)n[b], b++) {
        const history *h = &m->h[layer][b];
        memcpy(q + row * hq, h->q + (size_t)at[b] * hq, (size_t)n[b] * hq * sizeof *q);
        memcpy(k + row * hk, h->k + (size_t)at[b] * hk, (size_t)n[b] * hk * sizeof *k);
        memcpy(v + row * hk, h->v + (size_t)at[b] * hk, (size_t)n[b] * hk * sizeof *v);
    }
    a.q.p = q;
    a.k.p = k;
    a.v.p = v;
    a.out.p = out;
    if (begin && !CHECK_OK(swa_step_begin(kv, runs, n_runs))) return 0;
    if (!CHECK_OK(swa_attend(kv, cache_layer, &a))) return 0;
    row = 0;
    for (int b = 0; b < m->batch; row += (size_t)n[b++])
        CHECK_CLOSE(out + row * hq, m->h[layer][b].out + (size_t)at[b] * hq, (size_t)n[b] * hq, GOLDEN_TOL);
    return 1;
}
/* The ring read in position order against their unrotated cache, before a round. */
static void m_check_unrotated(const mistral *m, const swa_cache *kv, int round, int layer) {
    int W = m->W[layer];
    size_t hk = (size_t)m->f.shape.n_kv_heads * (size_t)m->f.shape.head_dim;
    const int32_t *held = m_i32(m, round, layer, "unrotated_before");
    REQUIRE(held != NULL);
    for (int b = 0; b < m->batch; b++) {
        const int32_t *p = held + b * W;
        int n = 0;
        float *k = t_floats((size_t)W * hk), *v = t_floats((size_t)W * hk);
        while (n < W && p[n] >= 0) n++;
        CHECK_INT(swa_cache_end(kv, b) > 0 ? swa_cache_end(kv, b) - swa_cache_first(kv, b, 0) : 0, n);
        if (n == 0) continue;
        CHECK_INT(swa_cache_first(kv, b, 0), p[0]);
        CHECK_INT(swa_cache_end(kv, b), p[n - 1] + 1);
        if (!CHECK_OK(swa_cache_read(kv, b, 0, p[0], n, k, v))) continue;
        CHECK_BITS(k, m->h[layer][b].k + (size_t)p[0] * hk, (size_t)n * hk);
        CHECK_BITS(v, m->h[layer][b].v + (size_t)p[0] * hk, (size_t)n * hk);
    }
}
/* Which tokens of the round are kept, and where. */
static void m_check_slots(const mistral *m, const swa_cache *kv, int round, int layer) {
    int W = m->W[layer], row = 0, kept = 0;
    const unsigned char *to_cache =
        round >= m->n_chunks ? NULL : (const unsigned char *)m_at(m, round, layer, "to_cache_mask", 'u');
    const int32_t *flat = m_i32(m, round, layer, "cache_positions");
    const int32_t *count = m_i32(m, round, layer, "cached_elements");
    const int32_t *ring = m_i32(m, round, layer, "ring_after");
    REQUIRE(flat && count && ring && (to_cache || round >= m->n_chunks));
    for (int b = 0; b < m->batch; b++) {
        int pos = m_pos(m, round, b), len = m_len(m, round, b), held = 0;
        for (int t = 0; t < len; t++, row++) {
            int64_t slot = swa_cache_slot(kv, b, 0, pos + t);
            CHECK_INT(slot >= 0, to_cache ? to_cache[row] : 1);
            if (slot < 0) continue;
            CHECK_INT(b * W + slot, flat[kept++]);
            held++;
        }
        CHECK_INT(held, count[b]);
        if (swa_cache_end(kv, b) > 0) check_ring(kv, b, ring + b * W, W);
    }
}
/* final.LK.ring_k and ring_v: slot by slot what is in the ring at the end. */
static void m_check_final(const mistral *m, const swa_cache *kv, int layer) {
    char name[32];
    int W = m->W[layer];
    size_t hk = (size_t)m->f.shape.n_kv_heads * (size_t)m->f.shape.head_dim;
    const float *want_k, *want_v;
    float *k = t_floats(hk), *v = t_floats(hk);
    snprintf(name, sizeof name, "final.L%d.ring_k", m->layer[layer]);
    want_k = golden_f32(&m->g, name);
    snprintf(name, sizeof name, "final.L%d.ring_v", m->layer[layer]);
    want_v = golden_f32(&m->g, name);
    REQUIRE(want_k && want_v);
    for (int b = 0; b < m->batch; b++)
        for (int64_t p = swa_cache_first(kv, b, 0); p < swa_cache_end(kv, b); p++) {
            int64_t slot = swa_cache_slot(kv, b, 0, p);
            size_t at = ((size_t)b * (size_t)W + (size_t)slot) * hk;
            if (!CHECK(slot >= 0 && slot < W) || !CHECK_OK(swa_cache_read(kv, b, 0, p, 1, k, v))) return;
            CHECK_BITS(k, want_k + at, hk);
            CHECK_BITS(v, want_v + at, hk);
        }
}
/* Their schedule over rings of exactly W slots: every slot, every unrotated ring, every output. */
TEST_EACH_ISA(golden_mistral_ring) {
    golden_list cases = golden_cases("mistral");
    for (int c = 0; c < cases.n; c++) {
        mistral m;
        if (!m_open(&m, cases.name[c])) continue;
        for (int l = 0; l < m.n_layers; l++) {
            swa_cache kv;
            swa_window w = swa_window_sliding(m.W[l]);
            if (!make_cache(&kv, &m.f, &w, 1, m.batch, m.W[l], 0, isa)) continue;
            for (int r = 0; r < m.n_chunks + m.n_decode; r++) {
                int at[M_SEQS], n[M_SEQS];
                for (int b = 0; b < m.batch; b++) {
                    at[b] = m_pos(&m, r, b);
                    n[b] = m_len(&m, r, b);
                }
                t_label("%s layer %d round %d", m.g.name, l, r);
                m_check_unrotated(&m, &kv, r, l);
                if (!m_step(&m, &kv, l, 0, at, n, 1)) break;
                m_check_slots(&m, &kv, r, l);
            }
            m_check_final(&m, &kv, l);
        }
    }
}
/* Every sequence from its first token on, `chunk` tokens a step, all layers in one cache of default capacities. */
static void m_chunks(const mistral *m, int chunk, int isa) {
    swa_window w[M_LAYERS];
    swa_cache kv;
    int longest = 0;
    for (int l = 0; l < m->n_layers; l++) w[l] = swa_window_sliding(m->W[l]);
    for (int b = 0; b < m->batch; b++)
        if (m->h[0][b].n > longest) longest = m->h[0][b].n;
    if (!make_cache(&kv, &m->f, w, m->n_layers, m->batch, 0, longest, isa)) return;
    for (int p = 0; p < longest; p += chunk) {
        int at[M_SEQS], n[M_SEQS];
        for (int b = 0; b < m->batch; b++) {
            int len = m->h[0][b].n;
            at[b] = p < len ? p : len;
            n[b] = p + chunk < len ? chunk : len - at[b];
        }
        for (int l = 0; l < m->n_layers; l++)
            if (!m_step(m, &kv, l, l, at, n, l == 0)) return;
    }
}
TEST_EACH_ISA(golden_mistral_outputs) {
    golden_list cases = golden_cases("mistral");
    for (int c = 0; c < cases.n; c++) {
        mistral m;
        if (!m_open(&m, cases.name[c])) continue;
        t_label("%s one shot", m.g.name);
        m_chunks(&m, 1 << 20, isa);
        t_label("%s token by token", m.g.name);
        m_chunks(&m, 1, isa);
        t_label("%s chunks of 3", m.g.name);
        m_chunks(&m, 3, isa);
        for (int l = 0; l < m.n_layers; l++)
            for (int b = 0; b < m.batch; b++) {
                swa_window w = swa_window_sliding(m.W[l]);
                t_label("%s layer %d sequence %d, no ring", m.g.name, l, b);
                without_ring(&m.f, &w, &m.h[l][b], 0, m.h[l][b].n, 2, isa);
                without_ring(&m.f, &w, &m.h[l][b], 0, 1, 1, isa);
            }
    }
}
TEST(golden_slots) {
    golden_list cases = golden_cases("slots");
    for (int c = 0; c < cases.n; c++) {
        golden g;
        features f;
        int W, batch, row = 0, kept = 0;
        const int32_t *len, *pos, *count, *positions, *flat;
        const unsigned char *to_cache;
        swa_window w;
        swa_cache kv;
        if (!golden_open(&g, cases.name[c])) continue;
        W = golden_int(&g, "window");
        batch = golden_int(&g, "batch");
        len = golden_i32(&g, "seqlens");
        pos = golden_i32(&g, "seqpos");
        count = golden_i32(&g, "cached_elements");
        positions = golden_i32(&g, "positions");
        flat = golden_i32(&g, "cache_positions");
        to_cache = golden_u8(&g, "to_cache_mask");
        REQUIRE(len && pos && count && positions && flat && to_cache);
        memset(&f, 0, sizeof f);
        f.shape.n_heads = f.shape.n_kv_heads = f.shape.head_dim = f.shape.v_dim = 1;
        w = swa_window_sliding(W);
        if (!make_cache(&kv, &f, &w, 1, batch, W, 0, 0)) continue;
        for (int b = 0; b < batch; b++) {
            swa_attn a = attn_with(&f);
            int held = 0;
            a.mode = SWA_STORE_ONLY;
            a.k.p = a.v.p = t_random(len[b], 1.0f);
            if (!CHECK_OK(swa_cache_reset(&kv, b, pos[b], 0))) break;
            if (len[b] > 0 && (!CHECK_OK(swa_step_one(&kv, b, pos[b], len[b])) || !CHECK_OK(swa_attend(&kv, 0, &a))))
                break;
            for (int t = 0; t < len[b]; t++, row++) {
                int64_t slot = swa_cache_slot(&kv, b, 0, positions[row]);
                CHECK_INT(positions[row], pos[b] + t);
                CHECK_INT(slot >= 0, to_cache[row]);
                if (slot < 0) continue;
                CHECK_INT(b * W + slot, flat[kept++]);
                held++;
            }
            CHECK_INT(held, count[b]);
        }
    }
}

/* ---- rope ---- */

#define ROPE_TOL 4e-7 /* one rounding of cos, sin and two of the sum, times the largest |output| */

static void rope_one(const golden *g, const double *freq, double mscale, swa_rope_pairs pairs, const char *want) {
    int tokens = golden_int(g, "tokens"), heads = golden_int(g, "n_heads"), dim = golden_int(g, "head_dim");
    size_t n = (size_t)tokens * (size_t)heads * (size_t)dim;
    const float *x = golden_f32(g, "x");
    const int32_t *pos = golden_i32(g, "pos");
    float *y = t_floats(n);
    int64_t *at = (int64_t *)t_alloc((size_t)tokens * sizeof *at);
    REQUIRE(x && pos && golden_f64(g, want) && golden_count(g, "x") == n);
    for (int t = 0; t < tokens; t++) at[t] = pos[t];
    memcpy(y, x, n * sizeof *y);
    REQUIRE_OK(swa_rope(y, tokens, heads, dim, at, freq, golden_int(g, "rot_dim"), pairs, mscale));
    CHECK_CLOSE(y, golden_f64(g, want), n, ROPE_TOL);
    for (size_t i = 0; i < n; i++)
        if ((int)(i % (size_t)dim) >= golden_int(g, "rot_dim")) CHECK(memcmp(y + i, x + i, sizeof *y) == 0);
}
static void rope_freqs(const double *got, const double *want, int n) {
    for (int i = 0; i < n; i++) CHECK_NEAR(got[i], want[i], 1e-13 * fabs(want[i]));
}
TEST(golden_rope) {
    golden_list cases = golden_cases("rope");
    for (int c = 0; c < cases.n; c++) {
        golden g;
        swa_yarn_desc d;
        int half, yarn;
        double *freq, mscale = 0;
        const double *want;
        if (!golden_open(&g, cases.name[c])) continue;
        memset(&d, 0, sizeof d);
        yarn = golden_int(&g, "yarn");
        half = golden_int(&g, "rot_dim") / 2;
        d.base = golden_num(&g, "theta");
        if (yarn) {
            d.scale = golden_num(&g, "factor");
            d.original = golden_int(&g, "original_max_position");
            d.truncate = 1;
            d.beta_fast = golden_num(&g, "beta_fast");
            d.beta_slow = golden_num(&g, "beta_slow");
        }
        freq = t_doubles(half);
        want = golden_f64(&g, "inv_freq");
        REQUIRE(want != NULL);
        REQUIRE_OK(swa_yarn(&d, 2 * half, freq, &mscale));
        rope_freqs(freq, want, half);
        CHECK_NEAR(mscale, golden_num(&g, "attention_factor"), 1e-14);
        rope_one(&g, freq, mscale, SWA_ROPE_INTERLEAVED, "out_interleaved");
        rope_one(&g, freq, mscale, SWA_ROPE_HALF, "out_half");
        if (golden_has_tensor(&g, "inv_freq_notrunc")) {
            d.truncate = -1;
            REQUIRE_OK(swa_yarn(&d, 2 * half, freq, NULL));
            rope_freqs(freq, golden_f64(&g, "inv_freq_notrunc"), half);
        }
    }
}

/* ---- what is here and not run ---- */

/* A case of a kind that no test reads must not pass unseen. test_mla.c reads the last two. */
TEST(golden_all_kinds) {
    static const char *known[] = {
        "mask_plain", "mask_compress", "mask_compress_dense", "mistral",     "slots", "patent",
        "gqa",        "rope",          "mla_seed4",           "mla_deepseek"
    };
    golden_list cases = golden_cases(NULL);
    CHECK(cases.n > 0);
    for (int c = 0; c < cases.n; c++) {
        golden g;
        int found = 0;
        if (!golden_open(&g, cases.name[c])) continue;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) found |= golden_is(&g, known[i]);
        CHECK(found);
    }
}
