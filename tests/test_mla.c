/* test_mla.c - DeepSeek's latent attention: golden vectors of the published codes, a double oracle with windows, the
   paths against each other, the bits of every chunking, the cost rule, and misuse. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "test.h"
#include "golden.h"
#include "weights.h"

/* ---- a block, its cache, and steps over it ---- */

/* Besides SWA_MLA_*: with W_UQ W_UK multiplied beforehand, alone or with W_UV W_O too; and the naive path over a cache
   of expanded rows. */
enum { HALF_MERGED = SWA_MLA_ABSORBED + 1, MERGED, EXPANDED, N_PATHS };
static const char *path_name(int path) {
    static const char *const names[N_PATHS] = { "auto", "naive", "absorbed", "half merged", "merged", "expanded" };
    return names[path];
}

typedef struct {
    swa_mla m;
    swa_window window;
    int windowed, isa, audit, parts, whole, n_seqs, n_layers;
    swa_type k_type, tail_type;
    int64_t max_context, max_rollback, capacity;
} setup;
typedef struct {
    swa_cache cache;
    swa_cache_desc desc;
    setup s;
    int32_t max_tokens;
} rig;

static int rig_scratch(rig *r, size_t bytes) {
    return CHECK(bytes > 0) && CHECK_OK(swa_cache_set_scratch(&r->cache, t_alloc(bytes), bytes));
}

/* W_UQK alone is what an engine brings that keeps W_UV and W_O apart: all that it does not need is taken away. */
static int rig_merge(swa_mla *m, int path) {
    const swa_mla src = *m;
    const size_t n = swa_mla_merged_bytes(m);
    if (!CHECK(n > 0) || !CHECK_OK(swa_mla_merge(&src, t_alloc(n), n, m))) return 0;
    CHECK(m->w_uqk.p != NULL && m->w_uvo.p != NULL && m->w_uk.p == NULL && m->w_o.p == NULL);
    if (path == MERGED) return 1;
    m->w_uvo = matrix(NULL);
    m->w_uv = src.w_uv;
    if (src.w_uv.p == src.w_uk.p) m->w_uk = src.w_uk;
    m->w_o = src.w_o;
    return 1;
}
/* A cache and scratch for a setup; path EXPANDED picks the other cache shape. */
static int rig_open(rig *r, const setup *s, int path, int32_t max_tokens) {
    const int parts = s->parts > 0 ? s->parts : 1;
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    r->s = *s;
    r->max_tokens = max_tokens;
    r->s.m.path = path > SWA_MLA_ABSORBED ? SWA_MLA_AUTO : (swa_mla_path)path;
    d.shape = swa_mla_shape(&s->m, path == EXPANDED);
    d.n_layers = s->n_layers ? s->n_layers : 1;
    d.n_seqs = s->n_seqs;
    d.k_type = s->k_type;
    d.v_type = s->k_type;
    d.tail_type = s->tail_type;
    if (s->windowed) {
        d.windows = &s->window;
        d.n_windows = 1;
    }
    d.max_context = s->max_context;
    d.max_rollback = s->max_rollback;
    d.capacity = s->capacity;
    d.isa = s->isa;
    d.audit = s->audit;
    r->desc = d;
    if (!t_cache_new(&r->cache, &d, parts)) return 0;
    if ((path == MERGED || path == HALF_MERGED) && !rig_merge(&r->s.m, path)) return 0;
    if (d.n_windows > 0) r->desc.windows = &r->s.window;
    return rig_scratch(r, swa_mla_scratch_bytes(&r->s.m, &d, max_tokens, parts));
}
/* The step that is on through one layer; parts > 1 runs every part of every phase, backwards, since their order must
   not matter, or as a whole: then the parts are the threads of OpenMP, if there is any. */
static int rig_layer(rig *r, int layer, const float *h, float *out) {
    CHECK(swa_mla_explain(&r->cache, layer, &r->s.m, h, out) == NULL);
    if (r->s.parts <= 1 || r->s.whole) return CHECK_OK(swa_mla_forward(&r->cache, layer, &r->s.m, h, out));
    for (int phase = 0; phase < SWA_MLA_PHASES; phase++)
        for (int part = r->s.parts - 1; part >= 0; part--)
            if (!CHECK_OK(swa_mla_forward_part(&r->cache, layer, &r->s.m, h, out, phase, part, r->s.parts))) return 0;
    return 1;
}
static int rig_step(rig *r, swa_run *runs, int n_runs, const float *h, float *out) {
    return CHECK_OK(swa_step_begin(&r->cache, runs, n_runs)) && rig_layer(r, 0, h, out);
}
/* Tokens [from, to) of every sequence in chunks; x, out [n_seqs][n][hidden]. */
static int rig_run(rig *r, const float *x, int n, int from, int to, int chunk, float *out) {
    const size_t dim = (size_t)r->s.m.hidden, bytes = dim * sizeof(float);
    const int seqs = r->s.n_seqs > 0 ? r->s.n_seqs : 1;
    swa_run runs[16];
    for (int at = from; at < to; at += chunk) {
        int len = to - at < chunk ? to - at : chunk;
        float *h = t_floats((size_t)(len * seqs) * dim);
        memset(runs, 0, sizeof runs);
        for (int b = 0; b < seqs; b++) {
            runs[b].seq = b;
            runs[b].n = len;
            runs[b].pos = at;
            memcpy(h + (size_t)(b * len) * dim, x + (size_t)(b * n + at) * dim, (size_t)len * bytes);
        }
        if (!rig_step(r, runs, seqs, h, h)) return 0;
        for (int b = 0; b < seqs; b++)
            memcpy(out + (size_t)(b * n + at) * dim, h + (size_t)(b * len) * dim, (size_t)len * bytes);
    }
    return 1;
}

/* ---- golden: DeepSeek-V3's published code ---- */

static int deepseek_setup(const golden *g, setup *s) {
    swa_mla *m = &s->m;
    memset(s, 0, sizeof *s);
    m->hidden = golden_int(g, "dim");
    m->n_heads = golden_int(g, "n_heads");
    m->q_lora_rank = golden_int(g, "q_lora");
    m->kv_lora_rank = golden_int(g, "kv_lora");
    m->nope_dim = golden_int(g, "nope_dim");
    m->rope_dim = golden_int(g, "rope_dim");
    m->v_dim = golden_int(g, "v_dim");
    m->eps = (float)golden_num(g, "eps");
    if (m->q_lora_rank > 0) {
        m->w_dq = matrix(golden_f32(g, "wq_a"));
        m->q_norm = golden_f32(g, "q_norm_weight");
        m->w_uq = m->w_qr = matrix(golden_f32(g, "wq_b"));
    } else m->w_uq = m->w_qr = matrix(golden_f32(g, "wq"));
    m->w_dkv = m->w_kr = matrix(golden_f32(g, "wkv_a"));
    m->kv_norm = golden_f32(g, "kv_norm_weight");
    m->w_uk = m->w_uv = matrix(golden_f32(g, "wkv_b"));
    m->w_o = matrix(golden_f32(g, "wo"));
    m->freq = golden_f64(g, "freqs");
    if (golden_int(g, "yarn")) m->mscale = 0.1 * golden_num(g, "mscale") * log(golden_num(g, "rope_factor")) + 1.0;
    s->n_seqs = golden_int(g, "batch");
    s->max_context = golden_int(g, "prefill") + golden_int(g, "steps");
    return CHECK(m->w_o.p != NULL && m->freq != NULL);
}
/* The cache against the published one: [latent | rope] per token. */
static void deepseek_cache(const golden *g, rig *r, int n) {
    const int latent = r->s.m.kv_lora_rank, rope = r->s.m.rope_dim, row = latent + rope;
    const double *kv = golden_f64(g, "kv_cache"), *pe = golden_f64(g, "pe_cache");
    float *got = t_floats((size_t)n * (size_t)row);
    double *want = t_doubles((size_t)n * (size_t)row);
    for (int b = 0; kv && pe && b < r->s.n_seqs; b++) {
        for (int t = 0; t < n; t++)
            for (int d = 0; d < row; d++)
                want[t * row + d] = d < latent ? kv[(b * n + t) * latent + d] : pe[(b * n + t) * rope + d - latent];
        CHECK_OK(swa_cache_read(&r->cache, b, 0, 0, n, got, NULL));
        CHECK_CLOSE(got, want, n * row, 1e-6);
    }
}
static void deepseek_case(const golden *g, int isa) {
    setup s;
    rig r;
    if (!deepseek_setup(g, &s)) return;
    s.isa = isa;
    CHECK_NEAR(swa_mla_scale(s.m.nope_dim, s.m.rope_dim, s.m.mscale), golden_num(g, "softmax_scale"), 1e-12);
    const int n = (int)s.max_context, prefill = golden_int(g, "prefill");
    const int step = t_all() ? 1 : t_thin(isa) ? 4 : 2;
    const size_t total = (size_t)(n * s.n_seqs * s.m.hidden);
    const float *x = golden_f32(g, "x");
    const double *want = golden_f64(g, "out_naive"), *want2 = golden_f64(g, "out_absorb");
    float *once = t_floats(total), *out = t_floats(total);
    REQUIRE(x && want && want2);
    for (int p = 0; p < N_PATHS; p++) {
        const int path = p, parts[] = { 2, 3, 8 };
        t_label("%s %s", g->name, path_name(path));
        if (!rig_open(&r, &s, path, n * s.n_seqs) || !rig_run(&r, x, n, 0, n, n, once)) return;
        CHECK_CLOSE(once, want, total, 1e-5);
        CHECK_CLOSE(once, want2, total, 1e-5);
        if (path != EXPANDED) deepseek_cache(g, &r, n);
        if (!rig_open(&r, &s, path, n * s.n_seqs)) return; /* as published: one prefill, then tokens */
        if (!rig_run(&r, x, n, 0, prefill, prefill, out) || !rig_run(&r, x, n, prefill, n, 1, out)) return;
        CHECK_CLOSE(out, want, total, 1e-5);
        for (int chunk = 1; chunk < n; chunk += step) { /* and as the published code cannot */
            if (!rig_open(&r, &s, path, n * s.n_seqs) || !rig_run(&r, x, n, 0, n, chunk, out)) return;
            CHECK_CLOSE(out, want, total, 1e-5);
            if (path != SWA_MLA_AUTO) CHECK_BITS(out, once, total);
        }
        for (int i = 0; i < 3; i++) {
            s.parts = parts[i];
            if (t_leave(isa, p, i, 3)) continue;
            if (!rig_open(&r, &s, path, n * s.n_seqs) || !rig_run(&r, x, n, 0, n, 3, out)) return;
            if (path != SWA_MLA_AUTO) CHECK_BITS(out, once, total);
            else CHECK_CLOSE(out, want, total, 1e-5);
        }
        s.parts = 0;
    }
}
TEST_EACH_ISA(golden_deepseek) {
    golden_list cases = golden_cases("mla_deepseek");
    for (int i = 0; i < cases.n; i++) {
        golden g;
        if (golden_open(&g, cases.name[i])) deepseek_case(&g, isa);
    }
}

/* ---- golden: the source document's classes ---- */

static int seed4_setup(const golden *g, setup *s) {
    swa_mla *m = &s->m;
    double *freq;
    swa_yarn_desc y;
    memset(s, 0, sizeof *s);
    memset(&y, 0, sizeof y);
    m->hidden = golden_int(g, "hidden");
    m->n_heads = golden_int(g, "n_heads");
    m->q_lora_rank = golden_int(g, "q_lora");
    m->kv_lora_rank = golden_int(g, "kv_lora");
    m->nope_dim = golden_int(g, "nope_dim");
    m->rope_dim = golden_int(g, "rope_dim");
    m->v_dim = golden_int(g, "v_dim");
    m->eps = (float)golden_num(g, "eps");
    m->w_dq = matrix(golden_f32(g, "W_DQ"));
    m->w_uq = matrix(golden_f32(g, "W_UQ"));
    m->w_qr = matrix(golden_f32(g, "W_QR"));
    m->w_dkv = matrix(golden_f32(g, "W_DKV"));
    m->w_kr = matrix(golden_f32(g, "W_KR"));
    m->w_uk = matrix(golden_f32(g, "W_UK"));
    m->w_uv = matrix(golden_f32(g, "W_UV"));
    m->w_o = matrix(golden_f32(g, "W_O"));
    m->q_norm = golden_f32(g, "q_norm_weight");
    freq = t_doubles(m->rope_dim / 2);
    y.base = golden_num(g, "theta");
    m->freq = freq;
    s->n_seqs = golden_int(g, "batch");
    s->max_context = golden_int(g, "past_len") + golden_int(g, "steps");
    return CHECK_OK(swa_yarn(&y, m->rope_dim, freq, NULL)) && CHECK(m->w_o.p != NULL);
}
/* The document's cache holds the rope key unrotated; ours takes it rotated, at its own position. */
static int seed4_past(const golden *g, rig *r, int n) {
    const int latent = r->s.m.kv_lora_rank, rope = r->s.m.rope_dim;
    const float *ckv = golden_f32(g, "ckv0"), *kpe = golden_f32(g, "kpe0");
    const size_t tail = (size_t)(n * rope);
    for (int b = 0; b < r->s.n_seqs && n > 0; b++) {
        float *pe = t_floats(tail);
        int64_t *pos = (int64_t *)t_alloc((size_t)n * sizeof(int64_t));
        swa_attn a;
        memset(&a, 0, sizeof a);
        if (!CHECK(ckv && kpe)) return 0;
        memcpy(pe, kpe + (size_t)b * tail, tail * sizeof(float));
        for (int t = 0; t < n; t++) pos[t] = t;
        if (!CHECK_OK(swa_rope(pe, n, 1, rope, pos, r->s.m.freq, rope, SWA_ROPE_INTERLEAVED, 0))) return 0;
        a.mode = SWA_STORE_ONLY;
        a.k.p = ckv + (size_t)(b * n * latent);
        a.k_tail.p = pe;
        if (!CHECK_OK(swa_step_one(&r->cache, b, 0, n)) || !CHECK_OK(swa_attend(&r->cache, 0, &a))) return 0;
    }
    return 1;
}
/* steps [from, to) as one chunk; x and out [steps][batch][hidden] as the document has them. */
static int seed4_steps(rig *r, const float *x, int past, int from, int to, float *out) {
    const int n = to - from, seqs = r->s.n_seqs;
    const size_t dim = (size_t)r->s.m.hidden;
    float *h = t_floats((size_t)(n * seqs) * dim);
    swa_run runs[16];
    memset(runs, 0, sizeof runs);
    for (int b = 0; b < seqs; b++) {
        runs[b].seq = b;
        runs[b].n = n;
        runs[b].pos = past + from;
        for (int t = 0; t < n; t++)
            memcpy(h + (size_t)(b * n + t) * dim, x + (size_t)((from + t) * seqs + b) * dim, dim * sizeof(float));
    }
    if (!rig_step(r, runs, seqs, h, h)) return 0;
    for (int b = 0; b < seqs; b++)
        for (int t = 0; t < n; t++)
            memcpy(out + (size_t)((from + t) * seqs + b) * dim, h + (size_t)(b * n + t) * dim, dim * sizeof(float));
    return 1;
}
static void seed4_merged(const golden *g, const rig *r) {
    const size_t rows = (size_t)(r->s.m.n_heads * r->s.m.kv_lora_rank), q = (size_t)r->s.m.q_lora_rank;
    const size_t hid = (size_t)r->s.m.hidden;
    const float *uqk = (const float *)r->s.m.w_uqk.p, *uvo = (const float *)r->s.m.w_uvo.p;
    double *want = t_doubles(rows * (q > hid ? q : hid));
    const double *a, *b;
    if (!golden_has_tensor(g, "W_UQK")) return;
    a = golden_f64(g, "W_UQK");
    b = golden_f64(g, "W_UV_O");
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < q; j++) want[i * q + j] = a[j * rows + i];
    CHECK_CLOSE(uqk, want, rows * q, 1e-6);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < hid; j++) want[j * rows + i] = b[i * hid + j];
    CHECK_CLOSE(uvo, want, rows * hid, 1e-6);
}
static void seed4_case(const golden *g, int isa) {
    setup s;
    rig r;
    if (!seed4_setup(g, &s)) return;
    s.isa = isa;
    const int past = golden_int(g, "past_len"), steps = golden_int(g, "steps");
    const size_t total = (size_t)(steps * s.n_seqs * s.m.hidden);
    const float *x = golden_f32(g, "x");
    const double *want = golden_f64(g, "out_vanilla"), *want2 = golden_f64(g, "out_absorb");
    float *single = t_floats(total), *out = t_floats(total);
    REQUIRE(x && want && want2);
    CHECK_NEAR(swa_mla_scale(s.m.nope_dim, s.m.rope_dim, 0), golden_num(g, "scale"), 1e-12);
    for (int p = 0; p < N_PATHS - 1; p++) { /* its past is given as latents */
        t_label("%s %s", g->name, path_name(p));
        for (int chunk = 1; chunk <= steps; chunk++) {
            s.parts = chunk == 2 ? 3 : 1;
            if (!rig_open(&r, &s, p, steps * s.n_seqs) || !seed4_past(g, &r, past)) return;
            for (int at = 0; at < steps; at += chunk)
                if (!seed4_steps(&r, x, past, at, at + chunk < steps ? at + chunk : steps, out)) return;
            CHECK_CLOSE(out, want, total, 1e-5);
            CHECK_CLOSE(out, want2, total, 1e-5);
            if (chunk == 1) memcpy(single, out, total * sizeof(float));
            if (p != SWA_MLA_AUTO) CHECK_BITS(out, single, total);
        }
        if (p == MERGED) seed4_merged(g, &r);
    }
}
TEST_EACH_ISA(golden_seed4) {
    golden_list cases = golden_cases("mla_seed4");
    for (int i = 0; i < cases.n; i++) {
        golden g;
        if (golden_open(&g, cases.name[i])) seed4_case(&g, isa);
    }
}

/* ---- random blocks against a double oracle ---- */

/* Weights as the tests make them: f32 masters, and what the block is given (perhaps narrowed, split or strided). */
typedef struct {
    float *dq, *uq, *dkv, *ukv, *o;
} masters;

/* Rows first, first+n, ... of every group of `per` rows. */
static float *rows_of(const float *src, size_t groups, size_t per, size_t first, size_t n, size_t cols) {
    float *out = t_floats(groups * n * cols);
    for (size_t g = 0; g < groups; g++)
        memcpy(out + g * n * cols, src + (g * per + first) * cols, n * cols * sizeof(float));
    return out;
}
static void make_weights(setup *s, masters *w, swa_type type, int split, size_t pad) {
    swa_mla *m = &s->m;
    const size_t hid = (size_t)m->hidden, h = (size_t)m->n_heads, l = (size_t)m->kv_lora_rank;
    const size_t dn = (size_t)m->nope_dim, r = (size_t)m->rope_dim, dv = (size_t)m->v_dim;
    const size_t ql = (size_t)m->q_lora_rank, q = ql ? ql : hid;
    if (ql) w->dq = normal(ql * hid, 1 / sqrt((double)hid));
    w->uq = normal(h * (dn + r) * q, 1.5 / sqrt((double)q));
    w->dkv = normal((l + r) * hid, 1 / sqrt((double)hid));
    w->ukv = normal(h * (dn + dv) * l, 1 / sqrt((double)l));
    w->o = normal(hid * h * dv, 1 / sqrt((double)(h * dv)));
    if (ql) m->w_dq = stored(w->dq, ql, hid, type, hid + pad);
    m->w_o = stored(w->o, hid, h * dv, type, h * dv + pad);
    m->w_uq = m->w_qr = stored(w->uq, h * (dn + r), q, type, q + pad);
    m->w_dkv = m->w_kr = stored(w->dkv, l + r, hid, type, hid + pad);
    m->w_uk = m->w_uv = stored(w->ukv, h * (dn + dv), l, type, l + pad);
    if (!split) return;
    m->w_uq = stored(rows_of(w->uq, h, dn + r, 0, dn, q), h * dn, q, type, q + pad);
    if (r) m->w_qr = stored(rows_of(w->uq, h, dn + r, dn, r, q), h * r, q, type, q + pad);
    m->w_dkv = stored(rows_of(w->dkv, 1, l + r, 0, l, hid), l, hid, type, hid + pad);
    if (r) m->w_kr = stored(rows_of(w->dkv, 1, l + r, l, r, hid), r, hid, type, hid + pad);
    m->w_uk = stored(rows_of(w->ukv, h, dn + dv, 0, dn, l), h * dn, l, type, l + pad);
    m->w_uv = stored(rows_of(w->ukv, h, dn + dv, dn, dv, l), h * dv, l, type, l + pad);
}
static void make_block(setup *s, int hidden, int heads, int ql, int l, int dn, int r, int dv) {
    double *freq = t_doubles(r / 2 + 1);
    memset(s, 0, sizeof *s);
    s->m.hidden = hidden;
    s->m.n_heads = heads;
    s->m.q_lora_rank = ql;
    s->m.kv_lora_rank = l;
    s->m.nope_dim = dn;
    s->m.rope_dim = r;
    s->m.v_dim = dv;
    s->m.eps = 1e-5f;
    for (int i = 0; i < r / 2; i++) freq[i] = pow(10000.0, -2.0 * i / r);
    s->m.freq = r > 0 ? freq : NULL;
    if (ql) s->m.q_norm = t_random(ql, 1.0f);
    s->m.kv_norm = t_random(l, 1.0f);
    s->n_seqs = 1;
}

static void mul(double *y, const float *w, const double *x, size_t rows, size_t cols) {
    for (size_t i = 0; i < rows; i++) {
        y[i] = 0;
        for (size_t j = 0; j < cols; j++) y[i] += (double)w[i * cols + j] * x[j];
    }
}
static void norm(double *x, const float *w, size_t n, double eps) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    sum = 1 / sqrt(sum / (double)n + eps);
    for (size_t i = 0; w && i < n; i++) x[i] *= sum * (double)w[i];
}
static void rotate(const swa_mla *m, double *x, int64_t pos) {
    const int half = m->rope_dim / 2, apart = m->pairs == SWA_ROPE_HALF;
    const double ms = m->rope_mscale > 0 ? m->rope_mscale : 1;
    for (int i = 0; i < half; i++) {
        double *a = x + (apart ? i : 2 * i), *b = a + (apart ? half : 1), c = cos((double)pos * m->freq[i]) * ms;
        double s = sin((double)pos * m->freq[i]) * ms, t = *a;
        *a = t * c - *b * s;
        *b = t * s + *b * c;
    }
}
/* The block for tokens 0..n-1 of one sequence, in double, K and V expanded, the window asked key by key. */
static double *oracle(const setup *s, const masters *w, const float *x, int n) {
    const swa_mla *m = &s->m;
    const size_t hid = (size_t)m->hidden, h = (size_t)m->n_heads, l = (size_t)m->kv_lora_rank;
    const size_t q_in = (size_t)(m->q_lora_rank ? m->q_lora_rank : m->hidden);
    const size_t dn = (size_t)m->nope_dim, r = (size_t)m->rope_dim, dv = (size_t)m->v_dim, N = (size_t)n;
    double *in = t_doubles(hid), *cq = t_doubles(q_in), *q = t_doubles(h * (dn + r)), *row = t_doubles(l + r);
    double *out = t_doubles(N * hid);
    double *kv = t_doubles(N * h * (dn + dv)), *kr = t_doubles(N * (r + 1)), *p = t_doubles(N), *o = t_doubles(h * dv);
    double *far = t_doubles(h * (dn + r)); /* q as pinned sinks behind the window see it */
    const double scale = m->scale > 0 ? m->scale : (m->mscale > 0 ? m->mscale * m->mscale : 1) / sqrt((double)(dn + r));
    swa_window sees = s->windowed ? s->window : swa_window_causal(), near = sees;
    near.n_sink = 0;
    for (size_t t = 0; t < N; t++) {
        const int64_t from = m->sink_pos > 0 && m->sink_pos < (int64_t)t ? m->sink_pos : (int64_t)t;
        for (size_t i = 0; i < hid; i++) in[i] = (double)x[t * hid + i];
        mul(row, w->dkv, in, l + r, hid);
        norm(row, m->kv_norm, l, (double)m->eps);
        rotate(m, row + l, (int64_t)t);
        memcpy(kr + t * r, row + l, r * sizeof(double));
        mul(kv + t * h * (dn + dv), w->ukv, row, h * (dn + dv), l);
        if (m->q_lora_rank) {
            mul(cq, w->dq, in, q_in, hid);
            norm(cq, m->q_norm, q_in, (double)m->eps);
        } else memcpy(cq, in, hid * sizeof(double));
        mul(q, w->uq, cq, h * (dn + r), q_in);
        mul(far, w->uq, cq, h * (dn + r), q_in);
        for (size_t g = 0; g < h; g++) {
            double *qh = q + g * (dn + r), *fh = far + g * (dn + r), top = -1e300, sum = 0;
            rotate(m, qh + dn, (int64_t)t);
            rotate(m, fh + dn, from);
            for (size_t k = 0; k <= t; k++) {
                const double *kh = kv + (k * h + g) * (dn + dv);
                p[k] = 0;
                for (size_t d = 0; d < dn; d++) p[k] += qh[d] * kh[d];
                for (size_t d = 0; d < r; d++)
                    p[k] += (swa_visible(&near, (int64_t)t, (int64_t)k) ? qh : fh)[dn + d] * kr[k * r + d];
                p[k] = swa_visible(&sees, (int64_t)t, (int64_t)k) ? p[k] * scale : -1e300;
                if (p[k] > top) top = p[k];
            }
            for (size_t d = 0; d < dv; d++) o[g * dv + d] = 0;
            for (size_t k = 0; k <= t; k++) {
                p[k] = exp(p[k] - top);
                sum += p[k];
                for (size_t d = 0; d < dv; d++) o[g * dv + d] += p[k] * kv[(k * h + g) * (dn + dv) + dn + d];
            }
            for (size_t d = 0; d < dv; d++) o[g * dv + d] /= sum;
        }
        mul(out + t * hid, w->o, o, hid, h * dv);
    }
    return out;
}

/* Every path of a setup against the oracle, and its bits over chunkings and parts. */
static void check_setup(setup *s, const masters *w, int n, double rel, const int *chunks, int n_chunks) {
    const size_t total = (size_t)n * (size_t)s->m.hidden;
    const float *x = normal(total, 1.0);
    const double *want = oracle(s, w, x, n);
    float *out = t_floats(total), *once = t_floats(total);
    if (!CHECK(isfinite(want[0]) && isfinite(want[total - 1]))) return;
    char label[sizeof t_.label];
    rig r;
    memcpy(label, t_.label, sizeof label);
    if (!s->max_context) s->max_context = n;
    for (int p = 0; p < N_PATHS; p++) {
        const t_block *mark = t_.blocks;
        t_label("%.60s, %s", label, path_name(p));
        s->parts = 0;
        if (!rig_open(&r, s, p, n) || !rig_run(&r, x, n, 0, n, n, once)) return;
        CHECK_CLOSE(once, want, total, rel);
        for (int i = 0; i < n_chunks; i++) {
            if (t_leave(s->isa, p, i, n_chunks)) continue;
            s->parts = i % 4 == 1 ? 3 : i % 4 == 3 ? 8 : 1;
            if (!rig_open(&r, s, p, n) || !rig_run(&r, x, n, 0, n, chunks[i], out)) return;
            if (p != SWA_MLA_AUTO) CHECK_BITS(out, once, total);
            else CHECK_CLOSE(out, want, total, rel);
        }
        t_free_to(mark);
    }
    s->parts = 0;
}
TEST_EACH_ISA(oracle_shapes) {
    static const int shape[][7] = {
        /* hidden, heads, q_lora, kv_lora, nope, rope, v */
        { 40, 4, 24, 32, 16, 8, 16 }, { 33, 3, 17, 19, 7, 6, 5 },  { 24, 2, 0, 16, 4, 2, 9 },
        { 32, 5, 16, 24, 8, 0, 8 },   { 20, 17, 8, 40, 3, 4, 20 }, { 30, 2, 12, 300, 20, 4, 36 },
        { 24, 2, 0, 600, 9, 4, 7 },   { 22, 1, 1, 20, 6, 4, 10 }
    };
    static const int chunks[] = { 1, 3, 7, 16, 20 };
    for (int i = 0; i < 8; i++) {
        const int *d = shape[i];
        setup s;
        masters w;
        make_block(&s, d[0], d[1], d[2], d[3], d[4], d[5], d[6]);
        make_weights(&s, &w, SWA_F32, i % 2, (size_t)(i % 3));
        s.isa = isa;
        s.m.pairs = i & 1 ? SWA_ROPE_HALF : SWA_ROPE_INTERLEAVED;
        s.m.mscale = i == 1 ? 1.3 : 0;
        s.m.rope_mscale = i == 2 ? 1.2 : 0;
        s.m.scale = i == 4 ? 0.3 : 0;
        t_label("shape %d", i);
        check_setup(&s, &w, 37, 1e-5, chunks, 5);
    }
}
TEST_EACH_ISA(oracle_windows) {
    static const int chunks[] = { 1, 5, 64, 100, 33 };
    setup s;
    masters w;
    make_block(&s, 24, 3, 16, 32, 8, 8, 8);
    make_weights(&s, &w, SWA_F32, 0, 0);
    s.isa = isa;
    s.windowed = 1;
    s.window = swa_window_sliding(64);
    t_label("W=64");
    check_setup(&s, &w, 330, 1e-5, chunks, 5);
    s.window = swa_window_sinks(20, 3);
    s.capacity = 37; /* no multiple of 16: every tile goes through the stage */
    t_label("W=20, 3 sinks, capacity 37");
    check_setup(&s, &w, 150, 1e-5, chunks, 5);
    s.windowed = 0;
    s.capacity = 0;
    t_label("causal over two blocks");
    check_setup(&s, &w, 300, 1e-5, chunks, 5);
}
/* StreamingLLM on the block: sinks that have left the window are seen as from position sink_pos, by every path. */
TEST_EACH_ISA(oracle_sinks_rotated) {
    static const int chunks[] = { 1, 5, 64, 33 };
    static const int64_t from[] = { 19, 7, 1000 }; /* W-1, one that few queries have passed, one none has */
    for (int i = 0; i < 3; i++) {
        setup s;
        masters w;
        make_block(&s, 24, 3, 16, 32, 8, 8, 8);
        make_weights(&s, &w, SWA_F32, i & 1, 0);
        s.isa = isa;
        s.m.pairs = i & 1 ? SWA_ROPE_HALF : SWA_ROPE_INTERLEAVED;
        s.windowed = 1;
        s.window = swa_window_sinks(20, 3);
        s.m.sink_pos = from[i];
        t_label("W=20, 3 sinks from %d", (int)from[i]);
        check_setup(&s, &w, 150, 1e-5, chunks, 4);
    }
}
/* Narrow weights: the oracle has the rounded ones, so the tolerance stays. Narrow rows: the paths must still agree. */
TEST_EACH_ISA(narrow_types) {
    static const swa_type types[] = { SWA_F16, SWA_BF16 };
    static const int chunks[] = { 1, 6, 32 };
    for (int i = 0; i < 2; i++)
        for (int split = 0; split < 2; split++) {
            setup s;
            masters w;
            make_block(&s, 70, 4, 36, 32, 16, 8, 16);
            make_weights(&s, &w, types[i], split, 0);
            s.isa = isa;
            t_label("weights of type %d, split %d", (int)types[i], split);
            check_setup(&s, &w, 40, 1e-5, chunks, 3);
        }
}
TEST_EACH_ISA(narrow_caches) {
    static const struct {
        swa_type k, tail;
        double off;
    } c[] = { { SWA_F16, SWA_F16, 2e-3 },   { SWA_BF16, SWA_BF16, 2e-2 }, { SWA_Q8, SWA_BF16, 2e-2 },
              { SWA_Q8, SWA_F32, 2e-2 },    { SWA_Q8, SWA_Q8, 3e-2 },     { SWA_Q8_32, SWA_Q8_32, 2e-2 },
              { SWA_E4M3, SWA_BF16, 1e-1 }, { SWA_E5M2, SWA_E4M3, 2e-1 } };
    const int n = 70;
    setup s;
    masters w;
    make_block(&s, 48, 4, 36, 32, 16, 8, 16);
    make_weights(&s, &w, SWA_F32, 0, 0);
    s.isa = isa;
    s.max_context = n;
    const size_t total = (size_t)(n * s.m.hidden);
    const float *x = normal(total, 1.0);
    const double *want = oracle(&s, &w, x, n);
    for (int i = 0; i < 8; i++) {
        double *naive = t_doubles(total);
        for (int p = 1; p < N_PATHS; p++) {
            float *once = t_floats(total), *out = t_floats(total);
            rig r;
            t_label("cache %d, %s", i, path_name(p));
            s.k_type = c[i].k;
            s.tail_type = c[i].tail;
            if (!rig_open(&r, &s, p, n) || !rig_run(&r, x, n, 0, n, n, once)) return;
            CHECK_CLOSE(once, want, total, c[i].off);
            if (p == 1)
                for (size_t j = 0; j < total; j++) naive[j] = (double)once[j];
            else if (p != EXPANDED) CHECK_CLOSE(once, naive, total, 1e-5); /* the same rounded latents */
            for (int chunk = 1; chunk < n; chunk += 23) {
                if (t_leave(isa, i + p, chunk / 23, 3)) continue;
                s.parts = chunk == 24 ? 3 : 0;
                if (!rig_open(&r, &s, p, n) || !rig_run(&r, x, n, 0, n, chunk, out)) return;
                CHECK_BITS(out, once, total);
            }
            s.parts = 0;
        }
    }
}
/* compute Q8 over latents in q8 without a rope part: K of a naive run is expanded, so it is no int8 although q is. It
   was read as such where a CPU has integer products. */
TEST(q8_products) {
    static const int chunks[] = { 1, 13, 50 };
    const int n = 50;
    setup s;
    masters w;
    make_block(&s, 48, 4, 36, 32, 16, 0, 16);
    make_weights(&s, &w, SWA_F32, 0, 0);
    s.max_context = n;
    s.k_type = SWA_Q8;
    s.m.compute = SWA_Q8;
    const size_t total = (size_t)(n * s.m.hidden);
    const float *x = normal(total, 1.0);
    const double *want = oracle(&s, &w, x, n);
    for (int p = SWA_MLA_NAIVE; p <= SWA_MLA_ABSORBED; p++) {
        float *first = NULL;
        FOR_ISA(isa) {
            s.isa = isa;
            for (int i = 0; i < 3; i++) {
                float *out = t_floats(total);
                rig r;
                t_label("%s, %s, chunks of %d", path_name(p), swa_isa_name(isa), chunks[i]);
                if (!rig_open(&r, &s, p, n) || !rig_run(&r, x, n, 0, n, chunks[i], out)) return;
                CHECK_CLOSE(out, want, total, 5e-2);
                if (first) CHECK_BITS(out, first, total);
                first = out;
            }
        }
    }
}
/* All instruction sets, fused and separate matrices: the same bits. */
TEST(same_bits_everywhere) {
    const int n = 50;
    setup s;
    masters w;
    make_block(&s, 70, 5, 36, 40, 20, 8, 24);
    const size_t total = (size_t)(n * s.m.hidden);
    const float *x = normal(total, 1.0);
    s.max_context = n;
    for (int type = SWA_F32; type <= SWA_BF16; type++) {
        setup split = s, fused = s;
        make_weights(&split, &w, (swa_type)type, 1, 3);
        fused.m.w_dq = split.m.w_dq;
        fused.m.w_o = split.m.w_o;
        fused.m.w_uq = fused.m.w_qr = stored(w.uq, 5 * 28, 36, (swa_type)type, 36);
        fused.m.w_dkv = fused.m.w_kr = stored(w.dkv, 48, 70, (swa_type)type, 70);
        fused.m.w_uk = fused.m.w_uv = stored(w.ukv, 5 * 44, 40, (swa_type)type, 40);
        for (int p = 1; p < N_PATHS; p++) {
            float *first = NULL;
            FOR_ISA(isa) {
                float *a = t_floats(total), *b = t_floats(total);
                rig r;
                t_label("type %d, %s, %s", type, path_name(p), swa_isa_name(isa));
                split.isa = fused.isa = isa;
                if (!rig_open(&r, &split, p, n) || !rig_run(&r, x, n, 0, n, 11, a)) return;
                if (!rig_open(&r, &fused, p, n) || !rig_run(&r, x, n, 0, n, 50, b)) return;
                CHECK_BITS(a, b, total);
                if (first) CHECK_BITS(a, first, total);
                first = a;
            }
        }
    }
}

/* ---- batches, AUTO, rollback, the hook ---- */

/* Sequences at different places in one step: each gets the bits it gets alone, also when AUTO sends them two ways. */
TEST_EACH_ISA(ragged_batches) {
    static const int len[3][4] = { { 40, 3, 0, 25 }, { 1, 30, 1, 1 }, { 1, 1, 22, 6 } };
    setup s;
    masters w;
    make_block(&s, 40, 4, 24, 64, 16, 8, 16); /* S* = 64*32/96 = 21.3 */
    make_weights(&s, &w, SWA_F32, 0, 0);
    s.isa = isa;
    s.n_seqs = 4;
    s.windowed = 1;
    s.window = swa_window_sliding(29);
    for (int p = 0; p < N_PATHS; p++)
        for (int way = 0; way < 4; way++) {
            rig batch, alone;
            int64_t pos[4] = { 0, 7, 0, 100 };
            if (t_leave(isa, p, way, 2)) continue;
            s.parts = way ? 3 : 1;
            s.whole = way >= 2;
            if (!rig_open(&batch, &s, p, 80) || !rig_open(&alone, &s, p, 80)) return;
            for (int b = 0; b < 4; b++) {
                REQUIRE_OK(swa_cache_reset(&batch.cache, b, pos[b], 0));
                REQUIRE_OK(swa_cache_reset(&alone.cache, b, pos[b], 0));
            }
            if (way == 3) /* two threads, not three */
                REQUIRE(rig_scratch(&batch, swa_mla_scratch_bytes(&batch.s.m, &batch.desc, 80, 2)));
            t_label("%s, %d parts%s", path_name(p), s.parts, s.whole ? " of a whole call" : "");
            for (int i = 0; i < 3; i++) {
                const size_t dim = 40;
                float *x = normal(80 * dim, 1.0), *out = t_floats(80 * dim), *one = t_floats(80 * dim);
                swa_run runs[4];
                int n_runs = 0;
                for (int b = 0; b < 4; b++) {
                    if (len[i][b] > 0) runs[n_runs++] = t_run(b, pos[b], len[i][b]);
                    pos[b] += len[i][b];
                }
                if (!rig_step(&batch, runs, n_runs, x, out)) return;
                for (int b = 0, row = 0; b < n_runs; row += runs[b++].n) {
                    swa_run run = runs[b];
                    CHECK_INT(runs[b].row, row);
                    if (!rig_step(&alone, &run, 1, x + (size_t)row * dim, one + (size_t)row * dim)) return;
                    CHECK_BITS(out + (size_t)row * dim, one + (size_t)row * dim, (size_t)runs[b].n * dim);
                }
            }
        }
}
/* A chunk at `from` of a sequence that began at `start`, by AUTO: the bits of the path that swa_mla_choose names of so
   many cached rows, which comes back; AUTO: something failed. */
static swa_mla_path auto_is_named(const setup *s, const float *x, int n, int start, int from, int chunk, int cached) {
    const swa_mla_path path = swa_mla_choose(&s->m, cached, chunk, NULL), paths[2] = { SWA_MLA_AUTO, path };
    float *out[2];
    for (int i = 0; i < 2; i++) {
        rig r;
        out[i] = t_floats(n * 40);
        if (!rig_open(&r, s, SWA_MLA_ABSORBED, n)) return SWA_MLA_AUTO;
        CHECK_OK(swa_cache_reset(&r.cache, 0, start, 0));
        if (!rig_run(&r, x, n, start, from, from, out[i])) return SWA_MLA_AUTO;
        r.s.m.path = paths[i];
        if (!rig_scratch(&r, swa_mla_scratch_bytes(&r.s.m, &r.desc, n, 1))) return SWA_MLA_AUTO;
        if (!rig_run(&r, x, n, from, from + chunk, chunk, out[i])) return SWA_MLA_AUTO;
    }
    t_label("%d cached, %d new: %s", cached, chunk, path_name((int)path));
    CHECK_BITS(out[0] + from * 40, out[1] + from * 40, chunk * 40);
    return path;
}
TEST(auto_takes_the_named_path) {
    const int n = 60;
    setup s;
    masters w;
    make_block(&s, 40, 4, 24, 64, 16, 8, 16);
    make_weights(&s, &w, SWA_F32, 0, 0);
    s.max_context = n;
    const float *x = normal((size_t)(n * 40), 1.0);
    for (int chunk = 1; chunk < 30; chunk += 7)
        for (int from = chunk; from + chunk < n; from += 10)
            if (!CHECK(auto_is_named(&s, x, n, 0, from, chunk, from) != SWA_MLA_AUTO)) return;
}
/* Of cached rows those count that a run can see: pinned sinks too, and none from before the sequence's start. */
TEST(auto_counts_what_is_there) {
    const int n = 60;
    for (int way = 0; way < 2; way++) {
        const int start = way ? 20 : 0, from = way ? 30 : 40, cached = way ? 10 : 19 + 8;
        int paths = 0;
        setup s;
        masters w;
        make_block(&s, 40, 4, 24, 64, 16, 8, 16);
        make_weights(&s, &w, SWA_F32, 0, 0);
        s.max_context = n;
        s.windowed = !way;
        s.window = swa_window_sinks(20, 8);
        s.max_rollback = 40;
        const float *x = normal((size_t)(n * 40), 1.0);
        for (int chunk = 9; chunk < 17; chunk++) paths |= 1 << auto_is_named(&s, x, n, start, from, chunk, cached);
        CHECK_INT(paths, 1 << SWA_MLA_NAIVE | 1 << SWA_MLA_ABSORBED);
    }
}
/* Without rope nothing is rotated, for sinks neither, whatever sink_pos says; nor does audit ask for it. */
TEST(sinks_without_rope) {
    const int n = 400;
    const float *x = normal((size_t)(n * 40), 1.0);
    setup s;
    masters w;
    make_block(&s, 40, 4, 24, 64, 16, 0, 16);
    make_weights(&s, &w, SWA_F32, 0, 0);
    s.windowed = 1;
    s.window = swa_window_sinks(24, 4);
    for (int path = SWA_MLA_AUTO; path <= SWA_MLA_ABSORBED; path++) {
        float *out[4];
        for (int i = 0; i < 4; i++) {
            rig r;
            t_label("path %d, way %d", path, i);
            s.audit = i / 2;
            s.m.sink_pos = 27 * (i % 2);
            out[i] = t_floats(n * 40);
            if (!rig_open(&r, &s, path, n) || !rig_run(&r, x, n, 0, n, 200, out[i])) return;
            CHECK_BITS(out[i], out[0], n * 40);
        }
    }
}
/* Sinks that keep their places have no q of their own, on the naive path neither. */
TEST(sinks_that_keep_their_places) {
    const int n = 400;
    float *out[2] = { t_floats(n * 40), t_floats(n * 40) };
    const float *x = normal((size_t)(n * 40), 1.0);
    setup s;
    masters w;
    make_block(&s, 40, 1, 24, 64, 512, 8, 512);
    make_weights(&s, &w, SWA_F32, 0, 0);
    s.windowed = 1;
    s.window = swa_window_sinks(300, 3);
    for (int i = 0; i < 2; i++) {
        rig r;
        if (!rig_open(&r, &s, i ? SWA_MLA_NAIVE : SWA_MLA_ABSORBED, n) || !rig_run(&r, x, n, 0, n, n, out[i])) return;
    }
    for (int i = 0; i < n * 40; i++) CHECK_NEAR(out[1][i], out[0][i], 1e-4);
}
/* Keys of both paths would be split over parts, but there is room for one path's results. */
TEST(paths_of_one_step_in_parts) {
    enum { N = 820, DIM = 40 };
    const float *x = normal(2 * N * DIM, 1.0);
    float *out[2] = { t_floats(3 * DIM), t_floats(3 * DIM) }, *all = t_floats(2 * N * DIM);
    setup s;
    masters w;
    make_block(&s, DIM, 4, 24, 64, 1, 8, 1);
    make_weights(&s, &w, SWA_F32, 0, 0);
    s.max_context = 1200;
    s.n_seqs = 2;
    CHECK_INT(swa_mla_choose(&s.m, 800, 1, NULL), SWA_MLA_ABSORBED);
    CHECK_INT(swa_mla_choose(&s.m, 600, 2, NULL), SWA_MLA_NAIVE);
    for (int i = 0; i < 2; i++) {
        swa_run runs[2];
        rig r;
        s.parts = i ? 4 : 1;
        if (!rig_open(&r, &s, SWA_MLA_AUTO, 100) || !rig_run(&r, x, N, 0, 800, 50, all)) return;
        CHECK_OK(swa_cache_truncate(&r.cache, 1, 600));
        runs[0] = t_run(0, 800, 1);
        runs[1] = t_run(1, 600, 2);
        if (!rig_step(&r, runs, 2, x, out[i])) return;
    }
    CHECK_BITS(out[1], out[0], 3 * DIM);
}
/* A list of the W latest keys is the window, in any order and beside entries that name nothing; one of all keys is no
   list. Every run is absorbed then, also one that AUTO would expand. */
TEST_EACH_ISA(lists_of_keys) {
    enum { N = 60, W = 13, P = N + 9 };
    setup s;
    masters w;
    make_block(&s, 40, 4, 24, 64, 16, 8, 16);
    make_weights(&s, &w, SWA_F32, 0, 0);
    s.isa = isa;
    s.max_context = N;
    const size_t total = N * 40;
    const float *x = normal(total, 1.0);
    const swa_window near = swa_window_sliding(W);
    for (int what = 0; what < 4; what++) { /* the window: listed, near, both in part; all keys */
        static int32_t pick[N][P];
        float *once = t_floats(total), *out = t_floats(total);
        rig r;
        s.windowed = what < 3;
        s.window = near;
        s.parts = 0;
        t_label("list %d", what);
        if (!rig_open(&r, &s, SWA_MLA_ABSORBED, N) || !rig_run(&r, x, N, 0, N, N, once)) return;
        s.windowed = 0;
        for (int t = 0; t < N; t++)
            for (int j = 0; j < P; j++) {
                const int at = (j * 31 + t) % P; /* 69 and 31 have no factor in common */
                const int seen = what == 0 ? W : what == 1 ? 0 : what == 2 ? W / 2 : N;
                pick[t][at] = j < seen ? t - j : j == seen ? t + 1 : -1 - j;
            }
        for (int chunk = 1; chunk <= N; chunk += 29) {
            s.parts = chunk == 30 ? 3 : 1;
            if (!rig_open(&r, &s, SWA_MLA_AUTO, N)) return;
            for (int pos = 0; pos < N; pos += chunk) {
                const int n = pos + chunk < N ? chunk : N - pos;
                r.s.m.pick = pick[pos];
                r.s.m.pick_n = P;
                r.s.m.pick_token = P;
                if (what == 1 || what == 2) r.s.m.pick_window = &near;
                if (!rig_run(&r, x, N, pos, pos + n, n, out)) return;
            }
            CHECK_BITS(out, once, total);
        }
    }
}
static void make_windowed(setup *s, masters *w, int isa) {
    make_block(s, 40, 4, 24, 32, 16, 8, 16);
    make_weights(s, w, SWA_F32, 0, 0);
    s->isa = isa;
    s->windowed = 1;
    s->window = swa_window_sliding(17);
}
TEST_EACH_ISA(rollback) {
    const int n = 60;
    setup s;
    masters w;
    make_windowed(&s, &w, isa);
    s.max_rollback = 8;
    const size_t total = (size_t)(n * 40);
    const float *x = normal(total, 1.0), *other = normal(total, 1.0);
    for (int p = 1; p < N_PATHS; p++) {
        float *once = t_floats(total), *out = t_floats(total);
        rig r;
        t_label("%s", path_name(p));
        if (!rig_open(&r, &s, p, n) || !rig_run(&r, x, n, 0, n, n, once)) return;
        if (!rig_open(&r, &s, p, n) || !rig_run(&r, x, n, 0, 30, 30, out)) return;
        if (!rig_run(&r, other, n, 30, 38, 4, out)) return; /* drafted tokens, all of them refused */
        REQUIRE_OK(swa_cache_truncate(&r.cache, 0, 30));
        if (!rig_run(&r, x, n, 30, n, 5, out)) return;
        CHECK_BITS(out, once, total);
    }
}
/* A chunk that cannot be taken back, begun for more tokens than the scratch was sized for: it is begun again, shorter.
   Once the block has stored it, it can neither be begun again nor taken back. */
TEST_EACH_ISA(chunk_that_was_only_begun) {
    const int n = 60;
    setup s;
    masters w;
    make_windowed(&s, &w, isa);
    const size_t total = (size_t)(n * 40);
    const float *x = normal(total, 1.0);
    for (int p = 1; p < N_PATHS; p++)
        for (s.parts = 1; s.parts < 3; s.parts++) {
            float *once = t_floats(total), *out = t_floats(total);
            rig r;
            t_label("%s, parts %d", path_name(p), s.parts);
            if (!rig_open(&r, &s, p, n) || !rig_run(&r, x, n, 0, n, 20, once)) return;
            if (!rig_open(&r, &s, p, 20) || !rig_run(&r, x, n, 0, 20, 20, out)) return;
            CHECK_OK(swa_step_one(&r.cache, 0, 20, 40));
            CHECK_STATUS(swa_mla_forward_part(&r.cache, 0, &r.s.m, x, out, 0, 0, s.parts), SWA_ERR_MEMORY);
            if (!rig_run(&r, x, n, 20, n, 20, out)) return;
            CHECK_BITS(out, once, total);
            CHECK_STATUS(swa_cache_truncate(&r.cache, 0, 40), SWA_ERR_LOST);
            CHECK_STATUS(swa_cache_truncate(&r.cache, 0, 20), SWA_ERR_LOST);
        }
}
/* A tree of drafts: RoPE by its tokens' positions, every path to the bit as it is decoded alone, by every path of the
   arithmetic that decoding takes. */
TEST_EACH_ISA(trees) {
    enum { N = 9, AT = 26, HIDDEN = 40 };
    static const int32_t parents[N] = { -1, -1, 0, 2, 1, 2, 3, 6, 0 };
    for (int i = 0; i < 2 * N_PATHS; i++) {
        const int p = i % N_PATHS;
        setup s;
        masters w;
        rig tree, alone;
        swa_run run = t_run(0, AT, N);
        const float *x = normal((AT + N) * HIDDEN, 1.0), *nodes = x + AT * HIDDEN;
        float *out = t_floats(N * HIDDEN), *one = t_floats((AT + N) * HIDDEN);
        make_block(&s, HIDDEN, 4, 24, 32, 16, 8, 16);
        make_weights(&s, &w, SWA_F32, 0, 0);
        s.isa = isa;
        s.windowed = 1;
        s.window = i < N_PATHS ? swa_window_sliding(17) : swa_window_sinks(8, 3);
        if (i >= N_PATHS) s.m.sink_pos = 7;
        s.max_rollback = N;
        s.parts = 1 + i % 3;
        s.k_type = i % 2 ? SWA_F16 : SWA_F32;
        t_label("%s, %d", path_name(p), i);
        if (!rig_open(&tree, &s, p, AT) || !rig_run(&tree, x, AT, 0, AT, 1, one)) return;
        if (!rig_open(&alone, &s, p, AT) || !rig_run(&alone, x, AT, 0, AT, 1, one)) return;
        run.parents = parents;
        REQUIRE_OK(swa_step_begin(&tree.cache, &run, 1));
        if (p == SWA_MLA_NAIVE) { /* which expands keys that stand in order */
            CHECK_STATUS(swa_mla_forward(&tree.cache, 0, &tree.s.m, nodes, out), SWA_ERR_UNSUPPORTED);
            continue;
        }
        if (!rig_layer(&tree, 0, nodes, out)) return;
        for (int leaf = 0; leaf < N; leaf++) {
            int32_t path[N];
            int n = 0;
            for (int at = leaf; at >= 0; at = parents[at]) n++;
            for (int at = leaf, j = n; at >= 0; at = parents[at]) path[--j] = at;
            for (int j = 0; j < n; j++) {
                swa_run next = t_run(0, AT + j, 1);
                if (!rig_step(&alone, &next, 1, nodes + path[j] * HIDDEN, one)) return;
                CHECK_BITS(out + path[j] * HIDDEN, one, HIDDEN);
            }
            if (leaf < N - 1) CHECK_OK(swa_cache_truncate(&alone.cache, 0, AT));
            else CHECK_OK(swa_cache_commit(&tree.cache, 0, path, n));
        }
        run = t_run(0, swa_cache_end(&alone.cache, 0), 1);
        if (!rig_step(&alone, &run, 1, x, one) || !rig_step(&tree, &run, 1, x, out)) return;
        CHECK_BITS(out, one, HIDDEN);
    }
}
typedef struct {
    int calls, bad;
} hook_log;
static void hook(void *user, const swa_gemm *p) {
    hook_log *log = (hook_log *)user;
    log->calls++;
    log->bad |= p->n <= 0 || p->n_in <= 0 || p->n_out <= 0 || p->w.stride <= 0;
    for (int32_t t = 0; t < p->n; t++)
        for (int32_t o = 0; o < p->n_out; o++) {
            double sum = 0;
            for (int32_t i = 0; i < p->n_in; i++) {
                int64_t at =
                    p->transposed ? (p->row + i) * p->w.stride + p->col + o : (p->row + o) * p->w.stride + p->col + i;
                sum += (double)p->x[t * p->x_stride + i] * (double)number(p->w.type, p->w.p, (size_t)at);
            }
            p->y[t * p->y_stride + o] = (float)sum;
        }
}
TEST(gemm_hook) {
    static const int chunks[] = { 1, 4 };
    setup s;
    masters w;
    hook_log log = { 0, 0 };
    make_block(&s, 40, 4, 24, 32, 16, 8, 16);
    make_weights(&s, &w, SWA_BF16, 1, 2);
    s.m.gemm = hook;
    s.m.user = &log;
    t_label("hook");
    check_setup(&s, &w, 20, 1e-5, chunks, 2);
    CHECK(log.calls > 100);
    CHECK(!log.bad);
}
/* n rows with so many numbers between them that nobody should read. */
static float *with_gaps(const float *x, int n, int dim, int gap) {
    float *out = t_floats((size_t)(n * (dim + gap)));
    for (int i = 0; i < n; i++) memcpy(out + i * (dim + gap), x + i * dim, (size_t)dim * sizeof *out);
    return out;
}
/* W_DQ h of n tokens, as a host has it before its norm. */
static float *dq_of(const setup *s, const masters *w, const float *h, int n) {
    const size_t hidden = (size_t)s->m.hidden, rank = (size_t)s->m.q_lora_rank;
    double *in = t_doubles(hidden), *sum = t_doubles(rank);
    float *out = t_floats((size_t)n * rank);
    for (size_t t = 0; t < (size_t)n; t++) {
        for (size_t i = 0; i < hidden; i++) in[i] = (double)h[t * hidden + i];
        mul(sum, w->dq, in, rank, hidden);
        for (size_t i = 0; i < rank; i++) out[t * rank + i] = (float)sum[i];
    }
    return out;
}
/* c_q that the host has computed as the block does: the same bits, W_DQ and its norm are not asked for, and the scratch
   that was sized without it serves. */
TEST(c_q_of_the_host) {
    enum { N = 20, HIDDEN = 40, RANK = 24 };
    const float *h = normal(N * HIDDEN, 1.0);
    float *c_q, *want = t_floats(N * HIDDEN), *out = t_floats(N * HIDDEN);
    swa_run run = t_run(0, 0, N);
    setup s;
    masters w;
    hook_log log = { 0, 0 };
    rig r;
    int calls;
    make_block(&s, HIDDEN, 4, RANK, 32, 16, 8, 16);
    make_weights(&s, &w, SWA_F32, 0, 0);
    s.max_context = N;
    s.m.gemm = hook;
    s.m.user = &log;
    c_q = dq_of(&s, &w, h, N); /* by sums in the hook's order */
    CHECK_OK(swa_rmsnorm(c_q, c_q, s.m.q_norm, N, RANK, s.m.eps));
    for (int path = 0; path < N_PATHS; path++)
        for (s.parts = 1; s.parts <= 3; s.parts += 2) {
            t_label("%s, %d parts", path_name(path), s.parts);
            log.calls = 0;
            if (!rig_open(&r, &s, path, N) || !rig_step(&r, &run, 1, h, want)) return;
            calls = log.calls;
            CHECK_OK(swa_cache_reset(&r.cache, 0, 0, 0));
            r.s.m.w_dq = matrix(NULL);
            r.s.m.q_norm = NULL;
            r.s.m.c_q = c_q;
            log.calls = 0;
            if (!rig_step(&r, &run, 1, h, out)) return;
            CHECK(log.calls < calls);
            CHECK_BITS(out, want, N * HIDDEN);
            CHECK_OK(swa_cache_reset(&r.cache, 0, 0, 0));
            r.s.m.c_q = with_gaps(c_q, N, RANK, 7);
            r.s.m.c_q_token = RANK + 7;
            if (!rig_step(&r, &run, 1, h, out)) return;
            CHECK_BITS(out, want, N * HIDDEN);
        }
}
/* Where there is nothing to compare c_q with, it is taken: no c_q, no W_DQ, one that cannot be read, and zeros. */
static void c_q_not_asked(rig *r, int n, const float *h, float *out) {
    const swa_mla m = r->s.m;
    const size_t width = (size_t)(n * m.hidden);
    float *zeros = t_floats(width);
    memset(zeros, 0, width * sizeof *zeros);
    for (int way = 0; way < 5; way++) {
        swa_mla x = m;
        if (way == 0) x.c_q = NULL;
        if (way == 1) x.w_dq = matrix(NULL);
        if (way == 2) x.w_dq.type = (swa_type)77;
        if (way == 3) x.w_dq.type = SWA_OPAQUE;
        if (way == 4) x.c_q = zeros;
        t_label("nothing to ask %d", way);
        CHECK_OK(swa_cache_reset(&r->cache, 0, 0, 0));
        CHECK_OK(swa_step_one(&r->cache, 0, 0, n));
        CHECK_OK(swa_mla_forward(&r->cache, 0, &x, way == 4 ? zeros : h, out));
    }
}
/* Audit 2 compares the last token's c_q with what it should be, where it can: each way to get it wrong that a reader
   found. */
TEST(c_q_audited) {
    enum { N = 5, HIDDEN = 300, RANK = 24, WRONG = 9 };
    static const swa_type types[] = { SWA_F32, SWA_F16, SWA_BF16 };
    for (int type = 0; type < 3; type++) {
        const float *h = normal((N + 1) * HIDDEN, 1.0), *raw; /* the last one: a token of another step */
        float *c_q = t_floats((N + 1) * RANK), *out = t_floats(N * HIDDEN);
        setup s;
        masters w;
        rig r;
        make_block(&s, HIDDEN, 4, RANK, 32, 16, 8, 16);
        make_weights(&s, &w, types[type], 0, (size_t)type);
        float *weight = t_random(RANK, 1.0f);
        weight[3] = 0; /* of which c_q says nothing */
        s.m.q_norm = weight;
        s.max_context = N;
        s.audit = 2;
        s.windowed = 1;
        s.window = swa_window_causal();
        raw = dq_of(&s, &w, h, N + 1);
        CHECK_OK(swa_rmsnorm(c_q, raw, s.m.q_norm, N + 1, RANK, s.m.eps));
        if (!rig_open(&r, &s, SWA_MLA_ABSORBED, N)) return;
        for (int way = 0; way < WRONG; way++) {
            float *x = rows_of(c_q, N + 1, RANK, 0, RANK, 1);
            swa_mla *m = &r.s.m;
            if (way == 1) memcpy(x + (N - 1) * RANK, c_q + N * RANK, RANK * sizeof *x); /* of another step */
            if (way == 2) memcpy(x, raw, N * RANK * sizeof *x);                         /* no norm */
            if (way == 3) memset(x + RANK, 0, (N - 1) * RANK * sizeof *x);              /* one token's alone */
            if (way == 4) x[N * RANK - 1] = (float)NAN;
            for (int i = 0; i < RANK && way >= 7; i++) x[(N - 1) * RANK + i] *= way == 7 ? 2 : 0.5f; /* another scale */
            m->c_q = way == 5 ? h : x;
            if (way == 6) m->c_q_token = RANK + 1;
            t_label("type %d, way %d", type, way);
            CHECK_OK(swa_cache_reset(&r.cache, 0, 0, 0));
            CHECK_OK(swa_step_one(&r.cache, 0, 0, N));
            CHECK_STATUS(swa_mla_forward(&r.cache, 0, m, h, out), way ? SWA_ERR_ARG : SWA_OK);
            m->c_q_token = 0;
            if (way == 0) continue;
            m->q_norm = NULL; /* nothing to ask */
            CHECK_OK(swa_mla_forward(&r.cache, 0, m, h, out));
            m->q_norm = s.m.q_norm;
        }
        c_q_not_asked(&r, N, h, out);
    }
}
/* A block whose lists are begun by parts and not ended: refused, until they are. */
TEST(lists_not_whole) {
    enum { N = 4, TOP = 3 };
    const swa_window all = swa_window_causal();
    const float *x = normal(N * 40, 1.0);
    swa_shape shapes[2];
    int32_t list[N * TOP];
    float *out = t_floats(N * 40);
    swa_cache_desc d;
    swa_index ix;
    swa_attn keys;
    swa_cache kv;
    setup s;
    masters w;
    size_t bytes;
    make_block(&s, 40, 4, 0, 32, 16, 8, 16);
    make_weights(&s, &w, SWA_F32, 0, 0);
    memset(&d, 0, sizeof d);
    memset(&ix, 0, sizeof ix);
    memset(&keys, 0, sizeof keys);
    memset(shapes, 0, sizeof shapes);
    shapes[0] = swa_mla_shape(&s.m, 0);
    shapes[1].n_heads = shapes[1].n_kv_heads = shapes[1].v_in_k = 1;
    shapes[1].head_dim = 8;
    d.shapes = shapes;
    d.n_shapes = d.n_layers = 2;
    d.windows = &all;
    d.n_windows = 1;
    d.max_context = N;
    ix.q.p = keys.k.p = x;
    keys.mode = SWA_STORE_ONLY;
    ix.pick = list;
    ix.top = TOP;
    bytes = swa_mla_scratch_bytes(&s.m, &d, N, 1) + swa_select_bytes(&shapes[1], &ix, 1);
    if (!t_cache_new(&kv, &d, 1) || !CHECK_OK(swa_cache_set_scratch(&kv, t_alloc(bytes), bytes))) return;
    s.m.pick = list;
    s.m.pick_token = s.m.pick_n = TOP;
    CHECK_OK(swa_step_one(&kv, 0, 0, N));
    CHECK_OK(swa_attend(&kv, 1, &keys));
    CHECK_OK(swa_select_part(&kv, 1, &ix, 0, 0, 1));
    CHECK(strstr(swa_mla_explain(&kv, 0, &s.m, x, out), "swa_select_part") != NULL);
    CHECK_STATUS(swa_mla_forward(&kv, 0, &s.m, x, out), SWA_ERR_ORDER);
    CHECK_STATUS(swa_mla_forward_part(&kv, 0, &s.m, x, out, 0, 0, 1), SWA_ERR_ORDER);
    CHECK_OK(swa_select_part(&kv, 1, &ix, 1, 0, 1));
    CHECK_OK(swa_mla_forward(&kv, 0, &s.m, x, out));
}

/* ---- weights that only the host can read ---- */

/* int8 with one scale for br x bc numbers: in principle every kind that engines have. */
typedef struct {
    size_t rows, cols, br, bc;
    int8_t *q;
    float *scale;
} blocks;
typedef struct {
    int products, read, bad;
} host_log;

static float block_number(const blocks *b, size_t r, size_t c) {
    return b->scale[r / b->br * ((b->cols + b->bc - 1) / b->bc) + c / b->bc] * (float)b->q[r * b->cols + c];
}
/* The matrix w of src in blocks; src becomes what they say, so that the oracle has it too. */
static swa_matrix blocked(float *src, size_t rows, size_t cols, size_t br, size_t bc) {
    const size_t across = (cols + bc - 1) / bc, n = (rows + br - 1) / br * across;
    blocks *b = (blocks *)t_alloc(sizeof *b);
    swa_matrix w = matrix(b);
    b->rows = rows;
    b->cols = cols;
    b->br = br;
    b->bc = bc;
    b->q = (int8_t *)t_alloc(rows * cols);
    b->scale = t_floats(n);
    memset(b->scale, 0, n * sizeof *b->scale);
    for (size_t i = 0; i < rows * cols; i++) {
        float *top = &b->scale[i / cols / br * across + i % cols / bc];
        if (fabsf(src[i]) / 127 > *top) *top = fabsf(src[i]) / 127;
    }
    for (size_t i = 0; i < rows * cols; i++) {
        b->q[i] = (int8_t)lrintf(src[i] / b->scale[i / cols / br * across + i % cols / bc]);
        src[i] = block_number(b, i / cols, i % cols);
    }
    w.type = SWA_OPAQUE;
    w.block_rows = (int32_t)br;
    w.block_cols = (int32_t)bc;
    return w;
}
/* Neither the range [from, from+n) of `all` nor its ends lie inside a block. */
static int inside_block(int64_t from, int64_t n, size_t all, size_t block) {
    const size_t a = (size_t)from, b = a + (size_t)n;
    return from < 0 || b > all || a % block != 0 || (b % block != 0 && b != all);
}
static void host_product(void *user, const swa_gemm *p) {
    host_log *log = (host_log *)user;
    const blocks *b = (const blocks *)p->w.p;
    if (p->w.type != SWA_OPAQUE) { /* what swa_mla_merge has made */
        hook_log plain = { 0, 0 };
        hook(&plain, p);
        log->bad |= plain.bad;
        return;
    }
    log->products++;
    log->bad |= inside_block(p->row, p->transposed ? p->n_in : p->n_out, b->rows, b->br);
    log->bad |= inside_block(p->col, p->transposed ? p->n_out : p->n_in, b->cols, b->bc);
    REQUIRE(p->n_in <= 128);
    for (int32_t o = 0; o < p->n_out; o++) {
        float row[128]; /* written once: a number costs three divisions */
        for (int32_t i = 0; i < p->n_in; i++)
            row[i] =
                block_number(b, (size_t)(p->row + (p->transposed ? i : o)), (size_t)(p->col + (p->transposed ? o : i)));
        for (int32_t t = 0; t < p->n; t++) {
            double sum = 0;
            for (int32_t i = 0; i < p->n_in; i++) sum += (double)p->x[t * p->x_stride + i] * (double)row[i];
            p->y[t * p->y_stride + o] = (float)sum;
        }
    }
}
static void host_rows(void *user, const swa_matrix *w, int64_t row, int32_t n, float *out) {
    host_log *log = (host_log *)user;
    const blocks *b = (const blocks *)w->p;
    log->read++;
    log->bad |= w->type != SWA_OPAQUE || row < 0 || n <= 0 || (size_t)(row + n) > b->rows;
    for (size_t i = 0; i < (size_t)n * b->cols; i++) out[i] = block_number(b, (size_t)row + i / b->cols, i % b->cols);
}
/* make_weights in blocks; the matrices of a pair apart, or in one. */
static void make_blocked(setup *s, masters *w, int split, size_t br, size_t bc) {
    swa_mla *m = &s->m;
    const size_t hid = (size_t)m->hidden, h = (size_t)m->n_heads, l = (size_t)m->kv_lora_rank;
    const size_t dn = (size_t)m->nope_dim, r = (size_t)m->rope_dim, dv = (size_t)m->v_dim, q = (size_t)m->q_lora_rank;
    make_weights(s, w, SWA_F32, 0, 0);
    m->w_dq = blocked(w->dq, q, hid, br, bc);
    m->w_uq = m->w_qr = blocked(w->uq, h * (dn + r), q, br, bc);
    m->w_dkv = m->w_kr = blocked(w->dkv, l + r, hid, br, bc);
    m->w_uk = m->w_uv = blocked(w->ukv, h * (dn + dv), l, br, bc);
    m->w_o = blocked(w->o, hid, h * dv, br, bc);
    if (!split) return; /* blocks of rows that divide the heads are the same ones apart */
    m->w_uq = blocked(rows_of(w->uq, h, dn + r, 0, dn, q), h * dn, q, br, bc);
    m->w_qr = blocked(rows_of(w->uq, h, dn + r, dn, r, q), h * r, q, br, bc);
    m->w_dkv = blocked(rows_of(w->dkv, 1, l + r, 0, l, hid), l, hid, br, bc);
    m->w_kr = blocked(rows_of(w->dkv, 1, l + r, l, r, hid), r, hid, br, bc);
    m->w_uk = blocked(rows_of(w->ukv, h, dn + dv, 0, dn, l), h * dn, l, br, bc);
    m->w_uv = blocked(rows_of(w->ukv, h, dn + dv, dn, dv, l), h * dv, l, br, bc);
}
/* Every path over every kind, in parts: right, the same bits for all chunks and parts, and no block cut. */
TEST(weights_in_blocks) {
    static const struct { size_t br, bc; } kind[] = { { 1, 32 }, { 8, 8 }, { 1, 256 }, { 8, 128 }, { 4, 16 } };
    static const int chunks[] = { 1, 6, 11, 20 };
    for (int i = 0; i < 5; i++)
        for (int split = 0; split < 2; split++) {
            setup s;
            masters w;
            host_log log = { 0, 0, 0 };
            make_block(&s, 40, 4, 24, 40, 16, 8, 16);
            make_blocked(&s, &w, split, kind[i].br, kind[i].bc);
            s.m.gemm = host_product;
            s.m.rows = host_rows;
            s.m.user = &log;
            t_label("blocks of %d x %d, split %d", (int)kind[i].br, (int)kind[i].bc, split);
            check_setup(&s, &w, 37, 1e-5, t_all() ? chunks : chunks + 2 * (i % 2), t_all() ? 4 : 2);
            CHECK(log.products > 100 && log.read > 100);
            CHECK(!log.bad);
        }
}
/* With W_UQK as the host has it in place of its factors, nothing is ever asked for as f32. */
TEST(weights_in_blocks_without_rows) {
    static const int chunks[] = { 1, 6 };
    setup s;
    masters w;
    host_log log = { 0, 0, 0 };
    swa_mla plain;
    size_t n;
    make_block(&s, 40, 4, 24, 32, 16, 8, 16);
    make_weights(&s, &w, SWA_F32, 1, 0);
    n = swa_mla_merged_bytes(&s.m);
    REQUIRE_OK(swa_mla_merge(&s.m, t_alloc(n), n, &plain));
    float *uqk = t_floats(4 * 32 * 24);
    memcpy(uqk, plain.w_uqk.p, 4 * 32 * 24 * sizeof(float));
    s.m.w_uqk = blocked(uqk, 4 * 32, 24, 8, 8);
    s.m.w_qr = blocked(rows_of(w.uq, 4, 24, 16, 8, 24), 4 * 8, 24, 8, 8);
    s.m.w_uv = blocked(rows_of(w.ukv, 4, 32, 16, 16, 32), 4 * 16, 32, 8, 8);
    s.m.w_uq = s.m.w_uk = matrix(NULL);
    s.m.gemm = host_product;
    s.m.user = &log;
    s.max_context = 20;
    float *once = t_floats(20 * 40), *out = t_floats(20 * 40);
    const float *x = normal(20 * 40, 1.0);
    const double *want = oracle(&s, &w, x, 20); /* of the numbers before they were rounded */
    for (int i = 0; i < 2; i++) {
        rig r;
        s.parts = i ? 3 : 1;
        if (!rig_open(&r, &s, SWA_MLA_AUTO, 20) || !rig_run(&r, x, 20, 0, 20, chunks[i], i ? out : once)) return;
    }
    CHECK_CLOSE(once, want, 800, 3e-2);
    CHECK_BITS(once, out, 800);
    CHECK(log.products > 100 && log.read == 0);
    CHECK(!log.bad);
}
TEST(layers) {
    const int n = 24;
    setup s;
    masters w;
    float *a = t_floats(n * 40), *b = t_floats(n * 40);
    rig r, one;
    make_block(&s, 40, 4, 24, 32, 16, 8, 16);
    make_weights(&s, &w, SWA_F32, 0, 0);
    s.max_context = n;
    s.n_layers = 3;
    const float *x = normal((size_t)(n * 40), 1.0);
    if (!rig_open(&r, &s, SWA_MLA_ABSORBED, n)) return;
    s.n_layers = 1;
    if (!rig_open(&one, &s, SWA_MLA_ABSORBED, n)) return;
    for (int t = 0; t < n; t += 4) {
        swa_run run = t_run(0, t, 4);
        REQUIRE_OK(swa_step_one(&r.cache, 0, t, 4));
        for (int layer = 0; layer < 3; layer++) /* the others hold something else */
            if (!rig_layer(&r, layer, layer == 2 ? x + t * 40 : normal(160, 1.0), a + t * 40)) return;
        if (!rig_step(&one, &run, 1, x + t * 40, b + t * 40)) return;
    }
    CHECK_BITS(a, b, n * 40);
}

/* One cache whose layers hold latents and expanded rows in turn: each layer by its own shape, as in a cache alone. */
TEST(layers_of_both_shapes) {
    const int n = 24;
    setup s;
    masters w;
    rig alone[2];
    swa_cache both;
    swa_cache_desc d;
    swa_shape shapes[2];
    make_block(&s, 40, 4, 24, 32, 16, 8, 16);
    make_weights(&s, &w, SWA_F32, 0, 0);
    memset(&d, 0, sizeof d);
    s.max_context = d.max_context = n;
    for (int i = 0; i < 2; i++) shapes[i] = swa_mla_shape(&s.m, i);
    d.shapes = shapes;
    d.n_shapes = d.n_layers = 2;
    const size_t bytes = swa_mla_scratch_bytes(&s.m, &d, 6, 1);
    if (!rig_open(&alone[0], &s, SWA_MLA_AUTO, 6) || !rig_open(&alone[1], &s, EXPANDED, 6)) return;
    if (!t_cache_new(&both, &d, 1) || !CHECK_OK(swa_cache_set_scratch(&both, t_alloc(bytes), bytes))) return;
    for (int t = 0; t < n; t += 6) {
        const float *x = normal(240, 1.0);
        float a[240], b[240];
        REQUIRE_OK(swa_step_one(&both, 0, t, 6));
        for (int i = 0; i < 2; i++) {
            swa_run run = t_run(0, t, 6);
            CHECK_OK(swa_mla_forward(&both, i, &s.m, x, a));
            if (!rig_step(&alone[i], &run, 1, x, b)) return;
            CHECK_BITS(a, b, 240);
        }
    }
}

/* ---- the rule and its numbers ---- */

static swa_mla v3(void) {
    swa_mla m; /* sizes alone: nothing of what follows wants weights */
    memset(&m, 0, sizeof m);
    m.hidden = 7168;
    m.n_heads = 128;
    m.q_lora_rank = 1536;
    m.kv_lora_rank = 512;
    m.nope_dim = 128;
    m.rope_dim = 64;
    m.v_dim = 128;
    return m;
}
/* The multiply-adds of one token over n that [MLA] counts: all but W_DQ, W_DKV and the rope parts. */
static void document_macs(const swa_mla *m, int n, double macs[4]) {
    const double q = m->q_lora_rank > 0 ? m->q_lora_rank : m->hidden, h = m->n_heads, r = m->rope_dim;
    swa_mla_cost c[4];
    CHECK(swa_mla_choose(m, n - 1, 1, c) != SWA_MLA_AUTO);
    for (int i = 0; i < 4; i++)
        macs[i] = c[i].macs - m->hidden * ((double)m->q_lora_rank + m->kv_lora_rank + r) - q * h * r - n * h * r;
}
TEST(document_table) {
    const swa_mla m = v3();
    double c[4], next[4];
    document_macs(&m, 20000, c);
    CHECK_INT(c[0], 336342286336LL); /* "before" */
    CHECK_INT(c[2], 3191865344LL);   /* "after" */
    for (int n = 1; n < 60; n++) {
        document_macs(&m, n, c);
        CHECK_INT(c[2] < c[0], n >= 26); /* its crossover */
        CHECK_INT(c[1] < c[0], n >= 2);  /* and the one that it misses */
        CHECK(c[1] < c[2]);
    }
    document_macs(&m, 1, c);
    document_macs(&m, 2, next);
    CHECK_INT(c[0], 142606336 + 16809984);
    CHECK_INT(c[1], 159383552 + 131072);
    CHECK_INT(c[2], 570425344 + 131072);
    CHECK_INT(c[3], 159383552 + 32768);
    CHECK_INT(next[0] - c[0], 16809984);
    CHECK_INT(next[1] - c[1], 131072);
    CHECK_INT(next[2] - c[2], 131072);
    CHECK_INT(next[3] - c[3], 32768);
}
TEST(choice) {
    const swa_mla m = v3();
    swa_mla_cost c[4];
    CHECK_INT(swa_mla_choose(&m, 0, 1, NULL), SWA_MLA_ABSORBED); /* a tile of 16 keys would be expanded for it */
    CHECK_INT(swa_mla_choose(&m, 0, 16, NULL), SWA_MLA_NAIVE);
    CHECK_INT(swa_mla_choose(&m, 1, 1, NULL), SWA_MLA_ABSORBED);
    CHECK_INT(swa_mla_choose(&m, 102 - 64, 64, NULL), SWA_MLA_NAIVE);
    CHECK_INT(swa_mla_choose(&m, 103 - 64, 64, NULL), SWA_MLA_ABSORBED);
    CHECK_INT(swa_mla_choose(&m, 1 << 30, 170, NULL), SWA_MLA_ABSORBED);
    CHECK_INT(swa_mla_choose(&m, 1 << 30, 171, NULL), SWA_MLA_NAIVE);
    CHECK_INT(swa_mla_choose(&m, 0, 4096, NULL), SWA_MLA_NAIVE);
    CHECK_INT(swa_mla_choose(&m, -1, 1, NULL), SWA_MLA_AUTO);
    CHECK_INT(swa_mla_choose(NULL, 1, 1, NULL), SWA_MLA_AUTO);
    CHECK_INT(swa_mla_choose(&m, 4095, 1, c), SWA_MLA_ABSORBED);
    const double fixed = 7168.0 * (1536 + 512 + 64) + 1536.0 * 128 * 192 + 128.0 * 128 * 7168;
    CHECK_INT(c[0].macs, fixed + 4096.0 * 512 * 128 * 256 + 4096.0 * 128 * 320);
    CHECK_INT(c[1].macs, fixed + 512.0 * 128 * 256 + 4096.0 * 128 * 1088);
    CHECK_INT(c[2].macs, 7168.0 * 2112 + 1536.0 * 128 * 576 + 7168.0 * 128 * 512 + 4096.0 * 128 * 1088);
    CHECK_INT(c[3].macs, fixed + 512.0 * 128 * 256 + 4096.0 * 128 * 320);
    CHECK_INT(c[1].weight_bytes, 4 * (fixed + 512.0 * 128 * 256));
    CHECK_INT(c[1].cache_bytes, 4095.0 * 4 * 576);
    CHECK_INT(c[3].cache_bytes, 4095.0 * 4 * 40960);
}
/* No low-rank query, and every pair as two matrices, of which one is narrow. */
TEST(choice_without_query_rank) {
    swa_mla m = v3();
    const float weight[1] = { 0 };
    swa_mla_cost c[4];
    double macs[4];
    const double down = 7168.0 * (512 + 64), up = 7168.0 * 128 * 192, kv = 512.0 * 128 * 256, out = 128.0 * 128 * 7168;
    m.q_lora_rank = 0;
    m.w_qr = m.w_kr = m.w_uv = matrix(weight);
    m.w_uv.type = SWA_F16;
    CHECK_INT(swa_mla_choose(&m, 4095, 1, c), SWA_MLA_ABSORBED);
    CHECK_INT(c[1].macs, down + up + kv + 4096.0 * 128 * 1088 + out);
    CHECK_INT(c[1].weight_bytes, 4 * (down + up + kv + out) - 512.0 * 128 * 128 * 2);
    m.w_uv.type = SWA_OPAQUE; /* of which nobody here knows the bytes */
    swa_mla_choose(&m, 4095, 1, c);
    CHECK_INT(c[1].weight_bytes, 4 * (down + up + kv + out) - 512.0 * 128 * 128 * 4);
    m.w_uv.type = SWA_F16;
    CHECK_INT(c[2].macs, down + 7168.0 * 128 * 576 + 7168.0 * 128 * 512 + 4096.0 * 128 * 1088);
    CHECK_INT(c[2].weight_bytes, 4 * (down + 2 * 7168.0 * 128 * 512 + 7168.0 * 128 * 64));
    document_macs(&m, 10, macs);
    CHECK_INT(macs[1], 7168.0 * 128 * 128 + out + kv + 20 * 128.0 * 512);
    CHECK_INT(macs[2], 2 * 7168.0 * 128 * 512 + 20 * 128.0 * 512);
}
/* Scratch is that of the paths which runs can take: naive where the rule can say so over some history, only there. */
TEST(scratch_by_path) {
    static const int64_t cached[] = { 0, 1, 2, 5, 9, 14, 15, 16, 17, 40, 200, 1000, 1 << 20, (int64_t)1 << 40 };
    int differ = 0;
    for (int i = 0; i < 400; i++) {
        setup s;
        masters w;
        swa_cache_desc d;
        swa_mla m;
        /* the first: at 15 new tokens of 16 the two costs are equal, at 15 of 15 absorbed is cheaper */
        const int n = i == 0 ? 15 : t_int(1, 40), parts = t_int(1, 16);
        int naive = 0;
        if (i == 0) make_block(&s, 8, 1, 0, 16, 15, 2, 15);
        else make_block(&s, 8, t_int(1, 3), 0, t_int(1, 40), t_int(1, 40), 2, t_int(1, 40));
        make_weights(&s, &w, SWA_F32, 0, 0);
        memset(&d, 0, sizeof d);
        d.shape = swa_mla_shape(&s.m, 0);
        d.n_layers = 1;
        d.max_context = 100;
        for (int fresh = 1; fresh <= n; fresh++) {
            for (int c = 0; c < 14; c++) naive |= swa_mla_choose(&s.m, cached[c], fresh, NULL) == SWA_MLA_NAIVE;
            if (fresh < 16) naive |= swa_mla_choose(&s.m, 16 - fresh, fresh, NULL) == SWA_MLA_NAIVE; /* one tile */
        }
        m = s.m;
        m.path = SWA_MLA_ABSORBED;
        const size_t absorbed = swa_mla_scratch_bytes(&m, &d, n, parts);
        const size_t both = swa_mla_scratch_bytes(&s.m, &d, n, parts);
        t_label("latent %d, nope %d, v %d, %d new", m.kv_lora_rank, m.nope_dim, m.v_dim, n);
        CHECK(absorbed > 0 && both >= absorbed);
        CHECK_INT(both > absorbed, naive);
        m.path = SWA_MLA_NAIVE; /* which has no absorbed q */
        if (naive)
            CHECK_INT(both - swa_mla_scratch_bytes(&m, &d, n, parts),
                      (n * m.n_heads * m.kv_lora_rank * (int)sizeof(float) + 63) / 64 * 64);
        differ += naive;
    }
    CHECK(differ > 50 && differ < 350);
}
/* Of a cache with layers of both shapes it is the larger one's, whichever comes first. */
TEST(scratch_of_both_shapes) {
    setup s;
    masters w;
    swa_cache_desc d;
    swa_shape shapes[3];
    size_t bytes[2];
    make_block(&s, 8, 3, 0, 16, 15, 2, 15);
    make_weights(&s, &w, SWA_F32, 0, 0);
    for (int i = 0; i < 3; i++) shapes[i] = swa_mla_shape(&s.m, i == 1);
    for (int i = 0; i < 2; i++) {
        memset(&d, 0, sizeof d);
        d.shapes = shapes + i;
        d.n_shapes = d.n_layers = 2;
        d.max_context = 100;
        bytes[i] = swa_mla_scratch_bytes(&s.m, &d, 30, 2);
    }
    CHECK(bytes[0] > 0);
    CHECK_INT(bytes[1], bytes[0]);
}
/* One token of DeepSeek-V3 by 16 parts asked for 57 MiB of the naive path, which it never takes. */
TEST(scratch_of_one_token) {
    const double freq[32] = { 0 };
    const float weight[1] = { 0 };
    swa_mla m = v3();
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    d.shape = swa_mla_shape(&m, 0);
    d.n_layers = 1;
    d.max_context = 4096;
    m.w_dq = m.w_uq = m.w_qr = m.w_dkv = m.w_kr = m.w_uk = m.w_uv = m.w_o = matrix(weight);
    m.freq = freq;
    const size_t ring = swa_cache_scratch_bytes(&d, 16), one = swa_mla_scratch_bytes(&m, &d, 1, 16);
    CHECK(one > ring && one - ring < 700000); /* 128 heads of 512 + 192 + 128 numbers */
    CHECK(swa_mla_scratch_bytes(&m, &d, 512, 16) - swa_mla_scratch_bytes(&m, &d, 512, 1) > 15 * (size_t)(3 << 20));
    m.w_uqk = m.w_uvo = matrix(weight); /* merged: never naive */
    CHECK(swa_mla_scratch_bytes(&m, &d, 512, 16) < ring + 512 * 128 * (512 + 192 + 64) * sizeof(float) + 16 * 600000);
}
/* The width of the latent row must never reach the scale: 1/sqrt(192), not 1/sqrt(576). */
TEST(scale) {
    CHECK_NEAR(swa_mla_scale(128, 64, 0), 0.07216878364870322, 1e-15);
    CHECK_NEAR(swa_mla_scale(128, 64, 0.1 * log(40.0) + 1), 0.13523377, 1e-7);
    CHECK_NEAR(swa_mla_scale(128, 64, 0.1 * 0.707 * log(40.0) + 1), 0.11472138, 1e-7);
    CHECK(!(swa_mla_scale(0, 64, 0) > 0) && !(swa_mla_scale(128, -1, 0) > 0));
}

/* ---- misuse ---- */

typedef struct {
    setup s;
    rig r;
    float *h, *out;
} misuse;

static int misuse_open(misuse *u, int path) {
    masters w;
    make_block(&u->s, 40, 4, 24, 32, 16, 8, 16);
    make_weights(&u->s, &w, SWA_F32, 1, 0);
    u->s.max_context = 16;
    u->s.parts = 2;
    if (!rig_open(&u->r, &u->s, path, 4)) return 0;
    u->h = normal(160, 1.0);
    u->out = t_floats(160);
    return CHECK_OK(swa_step_one(&u->r.cache, 0, 0, 4));
}
static swa_status misuse_call(misuse *u, const swa_mla *m) {
    const int said = swa_mla_explain(&u->r.cache, 0, m, u->h, u->out) != NULL;
    const swa_status a = swa_mla_forward(&u->r.cache, 0, m, u->h, u->out);
    CHECK_INT(said, a != SWA_OK);
    if (a == SWA_OK) CHECK_OK(swa_cache_reset(&u->r.cache, 0, 0, 0)); /* stored: begin it again for the parts */
    if (a == SWA_OK) CHECK_OK(swa_step_one(&u->r.cache, 0, 0, 4));
    for (int phase = 0; phase < SWA_MLA_PHASES; phase++) /* the same from every part of every phase */
        for (int part = 0; part < 2; part++) {
            const swa_status b = swa_mla_forward_part(&u->r.cache, 0, m, u->h, u->out, phase, part, 2);
            if (b != a) return (swa_status)99;
        }
    return a;
}
static const int32_t list[2] = { 0, -1 };
static const double no_scale[4] = { -1.0, NAN, 1e39, 1e-60 }; /* the last is 0 as a float, which is the default */
TEST(misuse_of_the_desc) {
    misuse u;
    swa_mla m;
    if (!misuse_open(&u, SWA_MLA_AUTO)) return;
#define REFUSED(change, status)                                                                                        \
    do {                                                                                                               \
        m = u.r.s.m;                                                                                                   \
        change;                                                                                                        \
        CHECK_STATUS(misuse_call(&u, &m), status);                                                                     \
    } while (0)
#define INVALID(change, status)                                                                                        \
    do {                                                                                                               \
        REFUSED(change, status);                                                                                       \
        CHECK_INT(swa_mla_scratch_bytes(&m, &u.r.desc, 4, 1), 0);                                                      \
    } while (0)
#define NO_SIZES(change, status)                                                                                       \
    do {                                                                                                               \
        INVALID(change, status);                                                                                       \
        CHECK_INT(swa_mla_merged_bytes(&m), 0);                                                                        \
        CHECK_INT(swa_mla_choose(&m, 5, 1, NULL), 0);                                                                  \
    } while (0)
    NO_SIZES(m.hidden = 0, SWA_ERR_ARG);
    NO_SIZES(m.n_heads = -1, SWA_ERR_ARG);
    NO_SIZES(m.q_lora_rank = -1, SWA_ERR_ARG);
    NO_SIZES(m.kv_lora_rank = 0, SWA_ERR_ARG);
    NO_SIZES(m.nope_dim = 0, SWA_ERR_ARG);
    NO_SIZES(m.rope_dim = 7, SWA_ERR_ARG);
    NO_SIZES(m.v_dim = 0, SWA_ERR_ARG);
    INVALID(m.freq = NULL, SWA_ERR_ARG);
    INVALID(m.eps = -1.0f, SWA_ERR_ARG);
    INVALID(m.eps = (float)NAN, SWA_ERR_ARG);
    for (int i = 0; i < 4; i++) INVALID(m.scale = no_scale[i], SWA_ERR_ARG);
    INVALID(m.mscale = -1.0, SWA_ERR_ARG);
    INVALID(m.rope_mscale = HUGE_VAL, SWA_ERR_ARG);
    INVALID(m.path = (swa_mla_path)3, SWA_ERR_ARG);
    INVALID(m.eps = 0, SWA_ERR_ARG);                   /* forgotten: there are norms */
    INVALID(m.q_norm = m.kv_norm = NULL, SWA_ERR_ARG); /* forgotten: there is an eps */
    INVALID(m.w_qr.p = NULL, SWA_ERR_ARG);             /* forgotten: not taken for rows of the one before */
    INVALID(m.w_kr.p = NULL, SWA_ERR_ARG);
    INVALID(m.w_uv.p = NULL, SWA_ERR_ARG);
    INVALID((m.eps = 0, m.q_norm = NULL), SWA_ERR_ARG);
    INVALID((m.eps = 0, m.kv_norm = NULL), SWA_ERR_ARG);
    INVALID(m.sink_pos = -1, SWA_ERR_ARG);
    INVALID(m.pairs = (swa_rope_pairs)2, SWA_ERR_ARG);
    INVALID(m.w_dq.p = NULL, SWA_ERR_ARG);
    INVALID(m.w_uq.p = NULL, SWA_ERR_ARG);
    INVALID(m.w_dkv.p = NULL, SWA_ERR_ARG);
    INVALID(m.w_uk.p = NULL, SWA_ERR_ARG);
    INVALID(m.w_o.p = NULL, SWA_ERR_ARG);
    INVALID(m.w_o.stride = 5, SWA_ERR_ARG);
    INVALID(m.w_uv.type = (swa_type)17, SWA_ERR_ARG);
    INVALID(m.w_uv.type = SWA_Q8, SWA_ERR_UNSUPPORTED);
    INVALID(m.w_uv.type = SWA_E4M3, SWA_ERR_UNSUPPORTED);
    INVALID(m.w_uv.type = (swa_type)(SWA_E5M2 + 1), SWA_ERR_ARG);
    INVALID(m.q_lora_rank = 0, SWA_ERR_ARG); /* a norm of what is not there */
    NO_SIZES(m.n_heads = 1 << 30, SWA_ERR_OVERFLOW);
    NO_SIZES((m.n_heads = 1 << 20, m.v_dim = 1 << 20), SWA_ERR_OVERFLOW);
    INVALID(m.kv_lora_rank = 31, SWA_ERR_ARG); /* not this cache's shape */
    INVALID(m.rope_dim = 6, SWA_ERR_ARG);
    INVALID(m.n_heads = 3, SWA_ERR_ARG);
    m = u.r.s.m;
    m.v_dim = 15; /* of which a cache of latents knows nothing */
    CHECK(swa_mla_scratch_bytes(&m, &u.r.desc, 4, 1) > 0);
    REFUSED(m.compute = (swa_type)77, SWA_ERR_ARG);
    REFUSED(m.pick = list, SWA_ERR_ARG); /* pick_n forgotten */
    REFUSED(m.pick_n = 2, SWA_ERR_ARG);  /* entries, but no list */
    REFUSED((m.pick = list, m.pick_n = 2, m.compute = SWA_BF16), SWA_ERR_UNSUPPORTED);
    INVALID((m.pick = list, m.pick_n = 2, m.path = SWA_MLA_NAIVE), SWA_ERR_ARG);
}
/* One field that was given, and the one without which it has no use forgotten. */
TEST(misuse_of_half_a_pair) {
    misuse u;
    swa_mla m;
    if (!misuse_open(&u, SWA_MLA_AUTO)) return;
    INVALID(m.sink_pos = 9, SWA_ERR_ARG);     /* nothing is pinned here */
    INVALID(m.rows = host_rows, SWA_ERR_ARG); /* no weight is OPAQUE: its type */
    m = u.r.s.m; /* one that only the products read is enough: an engine may set both hooks always */
    m.rows = host_rows;
    m.gemm = host_product;
    m.w_dkv.type = SWA_OPAQUE;
    if (m.w_kr.p == m.w_dkv.p) m.w_kr.type = SWA_OPAQUE;
    CHECK(swa_mla_scratch_bytes(&m, &u.r.desc, 4, 2) > 0);
    u.r.s.m.rope_dim = 0;
    u.r.desc.shape = swa_mla_shape(&u.r.s.m, 0);
    m = u.r.s.m;
    m.freq = NULL;
    CHECK(swa_mla_scratch_bytes(&m, &u.r.desc, 4, 1) > 0);
    m.freq = u.r.s.m.freq; /* of which dims? */
    CHECK_INT(swa_mla_scratch_bytes(&m, &u.r.desc, 4, 1), 0);
}
TEST(misuse_of_scratch) {
    misuse u;
    swa_mla m;
    if (!misuse_open(&u, SWA_MLA_AUTO)) return;
    m = u.r.s.m;
    if (!rig_scratch(&u.r, swa_mla_scratch_bytes(&m, &u.r.desc, 4, 1))) return;
    CHECK_STATUS(swa_mla_forward_part(&u.r.cache, 0, &m, u.h, u.out, 0, 0, 2), SWA_ERR_MEMORY);
    CHECK_OK(swa_mla_forward_part(&u.r.cache, 0, &m, u.h, u.out, 0, 0, 1));
    if (!rig_scratch(&u.r, swa_cache_scratch_bytes(&u.r.desc, 1))) return; /* enough for the attention alone */
    CHECK_STATUS(misuse_call(&u, &m), SWA_ERR_MEMORY);
    CHECK_OK(swa_cache_set_scratch(&u.r.cache, NULL, 0));
    CHECK_STATUS(misuse_call(&u, &m), SWA_ERR_MEMORY);
    if (!rig_scratch(&u.r, swa_mla_scratch_bytes(&m, &u.r.desc, 4, 2))) return;
    CHECK_STATUS(misuse_call(&u, &m), SWA_OK);
    CHECK_INT(swa_mla_scratch_bytes(&m, &u.r.desc, -1, 1), 0);
    CHECK_INT(swa_mla_scratch_bytes(&m, &u.r.desc, 4, 0), 0);
    CHECK_INT(swa_mla_scratch_bytes(&m, NULL, 4, 1), 0);
    CHECK_INT(swa_mla_scratch_bytes(NULL, &u.r.desc, 4, 1), 0);
    CHECK_INT(swa_mla_shape(NULL, 0).n_heads, 0);
    m.n_heads = 1 << 20;
    m.kv_lora_rank = 2047;
    u.r.desc.shape = swa_mla_shape(&m, 0);
    CHECK_INT(swa_mla_scratch_bytes(&m, &u.r.desc, INT32_MAX, 1), 0); /* 2^31 tokens of 2^31 numbers */
    m.q_lora_rank = 1 << 20;
    m.nope_dim = 2047;
    m.rope_dim = 0;
    u.r.desc.shape = swa_mla_shape(&m, 0);
    CHECK_INT(swa_mla_scratch_bytes(&m, &u.r.desc, INT32_MAX, 1), 0); /* their queries */
    m.q_lora_rank = m.nope_dim = 1;
    m.v_dim = 2047;
    CHECK_INT(swa_mla_scratch_bytes(&m, &u.r.desc, INT32_MAX, 1), 0); /* their outputs */
}
/* A forgotten weight is told by its name. */
TEST(missing_weights) {
    static const char *const name[8] = { "w_dq:", "w_uq:", "w_qr:", "w_dkv:", "w_kr:", "w_uk:", "w_uv:", "w_o:" };
    misuse u;
    if (!misuse_open(&u, SWA_MLA_AUTO)) return;
    for (int i = 0; i < 8; i++) {
        swa_mla m = u.r.s.m;
        swa_matrix *const weight[8] = { &m.w_dq, &m.w_uq, &m.w_qr, &m.w_dkv, &m.w_kr, &m.w_uk, &m.w_uv, &m.w_o };
        const char *why;
        weight[i]->p = NULL;
        why = swa_mla_explain(&u.r.cache, 0, &m, u.h, u.out);
        t_label("%s %s", name[i], why ? why : "");
        CHECK(why != NULL && strncmp(why, name[i], strlen(name[i])) == 0);
    }
}
TEST(misuse_of_weights) {
    misuse u;
    swa_mla m, merged;
    if (!misuse_open(&u, SWA_MLA_AUTO)) return;
    INVALID(m.w_uk.type = SWA_OPAQUE, SWA_ERR_ARG);                          /* and nobody to read it */
    REFUSED((m.w_uk.type = SWA_OPAQUE, m.gemm = host_product), SWA_ERR_ARG); /* products do, the naive path cannot */
    INVALID(m.w_uk.block_rows = -1, SWA_ERR_ARG);
    INVALID(m.w_uk.block_cols = -1, SWA_ERR_ARG);
    INVALID(m.w_uk.block_rows = 32, SWA_ERR_ARG); /* heads of 16 rows begin inside a block */
    INVALID((m.w_uk.block_rows = 32, m.w_uv = m.w_uk), SWA_ERR_ARG);
    INVALID((m.w_dkv.block_rows = 64, m.w_kr = m.w_dkv), SWA_ERR_ARG);
    INVALID((m.w_qr = m.w_uq, m.w_qr.stride = 30), SWA_ERR_ARG); /* one matrix of both, two of its kind */
    INVALID((m.w_kr = m.w_dkv, m.w_kr.type = SWA_BF16), SWA_ERR_ARG);
    INVALID((m.w_uv = m.w_uk, m.w_uv.block_rows = 8), SWA_ERR_ARG);
    INVALID((m.w_uv = m.w_uk, m.w_uk.block_cols = 8), SWA_ERR_ARG);
    INVALID(m.w_uvo = m.w_o, SWA_ERR_ARG); /* without w_uqk */
    INVALID((m.w_uqk = m.w_uq, m.path = SWA_MLA_NAIVE), SWA_ERR_ARG);
    INVALID((m.w_uqk = m.w_uq, m.w_uv.p = NULL, m.w_uk.p = NULL), SWA_ERR_ARG);
    INVALID((m.w_uqk = m.w_uq, m.w_o.p = NULL), SWA_ERR_ARG);
    /* the second half of the first head's rows, as if those of all heads came first */
    INVALID((m.w_uv.p = (const float *)m.w_uk.p + m.nope_dim * m.kv_lora_rank), SWA_ERR_ARG);
    INVALID((m.w_uk.stride = m.w_uv.stride = m.kv_lora_rank + 8,
             m.w_uv.p = (const float *)m.w_uk.p + m.nope_dim * m.w_uk.stride),
            SWA_ERR_ARG);
    INVALID((m.w_uqk = m.w_uq, m.w_uq.p = NULL, m.w_qr.p = NULL), SWA_ERR_ARG);
    m = u.r.s.m; /* W_QR's rows within w_uq: any cut will do in one product, not head by head */
    m.w_uq.block_rows = 12;
    m.w_qr = m.w_uq;
    CHECK(swa_mla_scratch_bytes(&m, &u.r.desc, 4, 2) > 0);
    CHECK_STATUS(swa_mla_merge(&m, &m, SIZE_MAX, &merged), SWA_ERR_ARG);
    REFUSED((m.w_uqk = m.w_o, m.w_uq.block_rows = 12, m.w_qr = m.w_uq), SWA_ERR_ARG);
}
TEST(misuse_of_the_calls) {
    misuse u;
    swa_mla m;
    swa_mla merged;
    char mem[64];
    if (!misuse_open(&u, SWA_MLA_NAIVE)) return;
    m = u.r.s.m;
#define PART(phase, part, parts) swa_mla_forward_part(&u.r.cache, 0, &m, u.h, u.out, phase, part, parts)
    CHECK_STATUS(PART(-1, 0, 2), SWA_ERR_ORDER);
    CHECK_STATUS(PART(SWA_MLA_PHASES, 0, 2), SWA_ERR_ORDER);
    CHECK_STATUS(PART(0, -1, 2), SWA_ERR_ORDER);
    CHECK_STATUS(PART(0, 2, 2), SWA_ERR_ORDER);
    CHECK_STATUS(PART(0, 0, 0), SWA_ERR_ORDER);
    CHECK_STATUS(PART(0, 0, 3), SWA_ERR_MEMORY); /* the scratch is for two */
    CHECK_STATUS(swa_mla_forward(NULL, 0, &m, u.h, u.out), SWA_ERR_ARG);
    CHECK_STATUS(swa_mla_forward(&u.r.cache, 0, NULL, u.h, u.out), SWA_ERR_ARG);
    CHECK_STATUS(swa_mla_forward(&u.r.cache, 0, &m, NULL, u.out), SWA_ERR_ARG);
    CHECK_STATUS(swa_mla_forward(&u.r.cache, 0, &m, u.h, NULL), SWA_ERR_ARG);
    CHECK_STATUS(swa_mla_forward(&u.r.cache, 1, &m, u.h, u.out), SWA_ERR_ORDER);
    CHECK_STATUS(swa_mla_forward(&u.r.cache, -1, &m, u.h, u.out), SWA_ERR_ORDER);
    CHECK_STATUS(swa_step_one(&u.r.cache, 0, 8, 4), SWA_ERR_ORDER); /* a gap, so there is no step */
    CHECK_STATUS(swa_mla_forward(&u.r.cache, 0, &m, u.h, u.out), SWA_ERR_ORDER);
    CHECK_OK(swa_step_one(&u.r.cache, 0, 0, 4));
    CHECK_OK(swa_mla_forward(&u.r.cache, 0, &m, u.h, u.out));
    CHECK_STATUS(swa_mla_forward(&u.r.cache, 0, &m, u.h, u.out), SWA_ERR_ORDER); /* this layer has stored it */
    CHECK_OK(swa_step_one(&u.r.cache, 0, 4, 2)); /* thrown away before its rows are attended: that phase asks again */
    for (int phase = 0; phase < 4; phase++) {
        CHECK_OK(PART(phase, 0, 1));
        if (phase > 0) CHECK_STATUS(PART(phase, 0, 1), SWA_ERR_ORDER);
    }
    CHECK_OK(swa_cache_truncate(&u.r.cache, 0, 4));
    CHECK_STATUS(PART(4, 0, 1), SWA_ERR_ORDER);
    CHECK_STATUS(swa_mla_merge(&m, mem, sizeof mem, &merged), SWA_ERR_ARG); /* the path is naive */
    m.path = SWA_MLA_AUTO;
    CHECK_STATUS(swa_mla_merge(NULL, mem, sizeof mem, &merged), SWA_ERR_ARG);
    CHECK_STATUS(swa_mla_merge(&m, NULL, sizeof mem, &merged), SWA_ERR_ARG);
    CHECK_STATUS(swa_mla_merge(&m, mem, sizeof mem, NULL), SWA_ERR_ARG);
    CHECK_STATUS(swa_mla_merge(&m, mem, sizeof mem, &merged), SWA_ERR_MEMORY);
    m.w_uqk = m.w_uq;
    CHECK_STATUS(swa_mla_merge(&m, mem, SIZE_MAX, &merged), SWA_ERR_ARG); /* it is merged already */
    m.w_uqk.p = NULL;
    m.gemm = host_product;
    m.w_o.type = SWA_OPAQUE;
    CHECK_STATUS(swa_mla_merge(&m, mem, SIZE_MAX, &merged), SWA_ERR_ARG); /* and no rows */
    if (!misuse_open(&u, EXPANDED)) return;
    m = u.r.s.m;
    CHECK_OK(misuse_call(&u, &m));
    REFUSED(m.path = SWA_MLA_ABSORBED, SWA_ERR_ARG); /* expanded rows hold no latents */
    REFUSED(m.w_uqk = m.w_uq, SWA_ERR_ARG);
    REFUSED((m.pick = list, m.pick_n = 2), SWA_ERR_ARG);
    INVALID(m.v_dim = 15, SWA_ERR_ARG);
    INVALID(m.nope_dim = 15, SWA_ERR_ARG);
}
