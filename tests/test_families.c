/* The example's families: files made here, with random weights and all that a family's files hold, against a reference
   in double of each family's published definition. No code of the example is in it, and the weights are the test's. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "../examples/engine.h"
#include "gguf_write.h"

/* ---- what a model is, as its publishers describe it ---- */

typedef struct {
    const char *arch, *what;
    int layers, heads, kv_heads, head_dim, window;
    int full_every;                 /* every such layer has no window; 0 = all have it */
    int interleaved, pre, post, qk; /* qk 1: by head, 2: whole */
    int parallel, mean, sinks, experts, used, fused, biases, gelu, tied;
    double embed;            /* embeddings are multiplied by it; 0 = 1, so below */
    double base, local_base; /* 0 = 1e4; as base */
    double linear, yarn;     /* RoPE's stretch */
    int scale_local, scale_full, full_unrotated, yarn_exact;
    double divide; /* scores are divided by its root; 0 = head_dim */
    double attn_cap, out_cap, out_scale;
    int factors; /* 1: rope_freqs, 2: short and long */
} spec;

enum { DIM = 64, HIDDEN = 96, VOCAB = 300, TOKENS = 40, ORIGINAL = 64 };

#define HEADS(q, kv, dim) .heads = q, .kv_heads = kv, .head_dim = dim
/* clang-format off */
static const spec specs[] = {
    { .arch = "llama", .what = "Mistral", .layers = 3, HEADS(4, 2, 16), .window = 9, .interleaved = 1, .pre = 1 },
    { .arch = "llama", .what = "3", .layers = 2, HEADS(4, 1, 16), .interleaved = 1, .pre = 1, .tied = 1, .base = 5e5,
      .factors = 1 },
    { .arch = "llama", .what = "linear", .layers = 2, HEADS(2, 2, 32), .interleaved = 1, .pre = 1, .biases = 1,
      .linear = 4, .scale_full = 1 },
    { .arch = "llama", .what = "YaRN", .layers = 2, HEADS(2, 2, 32), .interleaved = 1, .pre = 1, .yarn = 16,
      .scale_full = 1 },
    { .arch = "phi3", .what = "long", .layers = 2, HEADS(4, 4, 16), .window = 11, .pre = 1, .fused = 1, .factors = 2 },
    { .arch = "qwen2", .what = "", .layers = 2, HEADS(4, 2, 16), .pre = 1, .biases = 1, .base = 1e6 },
    { .arch = "qwen3", .what = "", .layers = 2, HEADS(4, 2, 32), .pre = 1, .qk = 1, .tied = 1, .base = 1e6 },
    { .arch = "gemma2", .what = "", .layers = 5, HEADS(4, 2, 32), .window = 8, .full_every = 2, .pre = 1, .post = 1,
      .gelu = 1, .tied = 1, .embed = 8, .attn_cap = 50, .out_cap = 30 },
    { .arch = "gemma2", .what = "27B", .layers = 46, HEADS(8, 2, 16), .window = 8, .full_every = 2, .pre = 1, .post = 1,
      .gelu = 1, .tied = 1, .embed = 8, .attn_cap = 50, .out_cap = 30, .divide = 8 },
    { .arch = "gemma3", .what = "", .layers = 8, HEADS(4, 1, 32), .window = 7, .full_every = 6, .pre = 1, .post = 1,
      .qk = 1, .gelu = 1, .tied = 1, .embed = 8, .base = 1e6, .local_base = 1e4, .linear = 8, .scale_full = 1 },
    { .arch = "gpt-oss", .what = "", .layers = 4, HEADS(8, 2, 16), .window = 6, .full_every = 2, .pre = 1, .sinks = 1,
      .experts = 6, .used = 3, .biases = 1, .base = 15e4, .yarn = 32, .scale_local = 1, .scale_full = 1,
      .yarn_exact = 1 },
    { .arch = "cohere2", .what = "", .layers = 5, HEADS(4, 2, 16), .window = 8, .full_every = 4, .interleaved = 1,
      .pre = 1, .parallel = 1, .mean = 1, .tied = 1, .base = 5e4, .full_unrotated = 1, .out_scale = 0.25 },
    { .arch = "olmo2", .what = "", .layers = 2, HEADS(4, 2, 16), .post = 1, .qk = 2, .base = 5e5 },
    { .arch = "olmo2", .what = "3", .layers = 5, HEADS(4, 4, 16), .window = 8, .full_every = 4, .post = 1, .qk = 2,
      .base = 5e5, .yarn = 8, .scale_full = 1 },
    { .arch = "olmo3", .what = "", .layers = 4, HEADS(4, 4, 16), .window = 8, .full_every = 4, .post = 1, .qk = 2,
      .base = 5e5, .yarn = 8, .scale_full = 1 },
};
/* clang-format on */

/* Zeros that mean something else. */
static spec filled(spec s) {
    if (s.embed <= 0) s.embed = 1;
    if (s.base <= 0) s.base = 1e4;
    if (s.local_base <= 0) s.local_base = s.base;
    if (s.linear <= 0) s.linear = 1;
    if (s.yarn <= 0) s.yarn = 1;
    if (s.divide <= 0) s.divide = s.head_dim;
    if (s.out_scale <= 0) s.out_scale = 1;
    return s;
}

/* ---- its weights, by name ---- */

typedef struct {
    char name[48];
    float *w;
    int rows, cols;
} tensor;
typedef struct {
    const spec *s;
    tensor t[1024];
    int n;
    gw file;
} made;

static const float *find(const made *m, int l, const char *what) {
    char name[48];
    snprintf(name, sizeof name, "blk.%d.%s", l, what);
    if (l < 0) snprintf(name, sizeof name, "%s", what);
    for (int i = 0; i < m->n; i++) {
        if (strcmp(m->t[i].name, name) == 0) return m->t[i].w;
    }
    return NULL;
}

static void give(made *m, int l, const char *what, int rows, int cols, float middle, float scale) {
    tensor *t = &m->t[m->n++];
    size_t n = (size_t)(rows ? rows : 1) * (size_t)cols;
    snprintf(t->name, sizeof t->name, "blk.%d.%s", l, what);
    if (l < 0) snprintf(t->name, sizeof t->name, "%s", what);
    t->rows = rows;
    t->cols = cols;
    t->w = t_random(n, scale);
    for (size_t i = 0; i < n; i++) t->w[i] += middle;
    gw_tensor(&m->file, t->name, GGUF_TENSOR_F32, rows, cols, t->w);
}

static void give_layer(made *m, int l) {
    const spec *s = m->s;
    int q = s->heads * s->head_dim, kv = s->kv_heads * s->head_dim;
    if (s->pre) give(m, l, "attn_norm.weight", 0, DIM, 1, 0.3f);
    if (s->fused) {
        give(m, l, "attn_qkv.weight", q + 2 * kv, DIM, 0, 0.3f);
    } else {
        give(m, l, "attn_q.weight", q, DIM, 0, 0.3f);
        give(m, l, "attn_k.weight", kv, DIM, 0, 0.3f);
        give(m, l, "attn_v.weight", kv, DIM, 0, 0.3f);
    }
    if (s->biases) {
        give(m, l, "attn_q.bias", 0, q, 0, 0.3f);
        give(m, l, "attn_k.bias", 0, kv, 0, 0.3f);
        give(m, l, "attn_v.bias", 0, kv, 0, 0.3f);
        give(m, l, "attn_output.bias", 0, DIM, 0, 0.3f);
    }
    if (s->qk) give(m, l, "attn_q_norm.weight", 0, s->qk == 2 ? q : s->head_dim, 1, 0.3f);
    if (s->qk) give(m, l, "attn_k_norm.weight", 0, s->qk == 2 ? kv : s->head_dim, 1, 0.3f);
    if (s->sinks) give(m, l, "attn_sinks.weight", 0, s->heads, 1, 1.0f);
    give(m, l, "attn_output.weight", DIM, q, 0, 0.3f);
    if (s->post || s->experts) give(m, l, "post_attention_norm.weight", 0, DIM, 1, 0.3f);
    if (s->pre && !s->parallel && !s->experts) give(m, l, "ffn_norm.weight", 0, DIM, 1, 0.3f);
    if (s->post) give(m, l, "post_ffw_norm.weight", 0, DIM, 1, 0.3f);
    if (s->experts) {
        give(m, l, "ffn_gate_inp.weight", s->experts, DIM, 0, 0.3f);
        give(m, l, "ffn_gate_inp.bias", 0, s->experts, 0, 0.3f);
        give(m, l, "ffn_gate_exps.weight", s->experts * HIDDEN, DIM, 0, 0.6f);
        give(m, l, "ffn_up_exps.weight", s->experts * HIDDEN, DIM, 0, 0.6f);
        give(m, l, "ffn_down_exps.weight", s->experts * DIM, HIDDEN, 0, 0.3f);
        give(m, l, "ffn_gate_exps.bias", s->experts, HIDDEN, 0, 0.3f);
        give(m, l, "ffn_up_exps.bias", s->experts, HIDDEN, 0, 0.3f);
        give(m, l, "ffn_down_exps.bias", s->experts, DIM, 0, 0.3f);
    } else {
        if (!s->fused) give(m, l, "ffn_gate.weight", HIDDEN, DIM, 0, 0.3f);
        give(m, l, "ffn_up.weight", s->fused ? 2 * HIDDEN : HIDDEN, DIM, 0, 0.3f);
        give(m, l, "ffn_down.weight", DIM, HIDDEN, 0, 0.3f);
    }
}

static void give_vocabulary(gw *f) {
    char name[16];
    gw_text(f, "tokenizer.ggml.model", "llama");
    gw_array(f, "tokenizer.ggml.tokens", GGUF_STRING, VOCAB);
    for (int i = 0; i < VOCAB; i++) {
        snprintf(name, sizeof name, i < 256 ? "<0x%02X>" : "token%d", i);
        gw_string(&f->keys, name, strlen(name));
    }
    gw_array(f, "tokenizer.ggml.scores", GGUF_F32, VOCAB);
    for (int i = 0; i < VOCAB; i++) gw_real(&f->keys, 0);
    gw_array(f, "tokenizer.ggml.token_type", GGUF_I32, VOCAB);
    for (int i = 0; i < VOCAB; i++) gw_le(&f->keys, i < 256 ? VOCAB_BYTE : VOCAB_NORMAL, 4);
}

static const char *key(const spec *s, const char *what) {
    static char text[96];
    snprintf(text, sizeof text, "%s.%s", s->arch, what);
    return text;
}

static void give_keys(made *m) {
    const spec *s = m->s;
    gw *f = &m->file;
    gw_text(f, "general.architecture", s->arch);
    gw_int(f, key(s, "embedding_length"), DIM);
    gw_int(f, key(s, "feed_forward_length"), HIDDEN);
    gw_int(f, key(s, "block_count"), (uint32_t)s->layers);
    gw_int(f, key(s, "attention.head_count"), (uint32_t)s->heads);
    gw_int(f, key(s, "attention.head_count_kv"), (uint32_t)s->kv_heads);
    gw_int(f, key(s, "attention.key_length"), (uint32_t)s->head_dim);
    gw_int(f, key(s, "context_length"), 4096);
    if (s->window) gw_int(f, key(s, "attention.sliding_window"), (uint32_t)s->window);
    gw_float(f, key(s, s->mean ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"), 1e-6);
    gw_float(f, key(s, "rope.freq_base"), s->base);
    if (s->experts) gw_int(f, key(s, "expert_count"), (uint32_t)s->experts);
    if (s->experts) gw_int(f, key(s, "expert_used_count"), (uint32_t)s->used);
    if (s->experts) gw_int(f, key(s, "expert_feed_forward_length"), HIDDEN);
    if (s->out_scale < 1.0) gw_float(f, key(s, "logit_scale"), s->out_scale);
    if (s->linear > 1 || s->yarn > 1) {
        gw_text(f, key(s, "rope.scaling.type"), s->yarn > 1 ? "yarn" : "linear");
        gw_float(f, key(s, "rope.scaling.factor"), s->yarn > 1 ? s->yarn : s->linear);
    }
    if (s->yarn > 1 || s->factors == 2) gw_int(f, key(s, "rope.scaling.original_context_length"), ORIGINAL);
    if (s->factors == 2) gw_float(f, key(s, "rope.scaling.attn_factor"), 1.19);
    give_vocabulary(f);
}

static made *make(const spec *s) {
    made *m = (made *)t_alloc(sizeof *m);
    memset(m, 0, sizeof *m);
    m->s = s;
    give_keys(m);
    give(m, -1, "token_embd.weight", VOCAB, DIM, 0, 1.0f);
    give(m, -1, "output_norm.weight", 0, DIM, 1, 0.3f);
    if (!s->tied) give(m, -1, "output.weight", VOCAB, DIM, 0, 0.3f);
    if (s->factors == 1) give(m, -1, "rope_freqs.weight", 0, s->head_dim / 2, 2, 1.0f);
    if (s->factors == 2) give(m, -1, "rope_factors_short.weight", 0, s->head_dim / 2, 1.5f, 0.4f);
    if (s->factors == 2) give(m, -1, "rope_factors_long.weight", 0, s->head_dim / 2, 20, 10.0f);
    for (int l = 0; l < s->layers; l++) give_layer(m, l);
    return m;
}

/* ---- the reference ---- */

static void times(double *out, const double *x, const float *w, const float *bias, int rows, int cols) {
    for (int r = 0; r < rows; r++) {
        double sum = bias ? (double)bias[r] : 0;
        for (int c = 0; c < cols; c++) sum += (double)w[r * cols + c] * x[c];
        out[r] = sum;
    }
}

static void norm(const spec *s, double *x, const float *w, int n) {
    double mean = 0, square = 0;
    if (!w) return;
    for (int i = 0; s->mean && i < n; i++) mean += x[i] / n;
    for (int i = 0; i < n; i++) square += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n; i++) x[i] = (x[i] - mean) / sqrt(square + 1e-6) * (double)w[i];
}

static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

/* The angle of pair i at a position, and what cos and sin are multiplied by. */
static double angle(const made *m, int i, int pos, int local, int far, double *gain) {
    const spec *s = m->s;
    double d = s->head_dim, base = local ? s->local_base : s->base, f = pow(base, -2.0 * i / d);
    const double turn = 6.283185307179586;
    const char *wide = far ? "rope_factors_long.weight" : "rope_factors_short.weight";
    const float *by = find(m, -1, s->factors == 1 ? "rope_freqs.weight" : wide);
    *gain = s->factors == 2 ? 1.19 : 1;
    if (by) f /= (double)by[i];
    if (local ? s->scale_local : s->scale_full) {
        f /= s->linear;
        if (s->yarn > 1) {
            double low = d * log(ORIGINAL / (32 * turn)) / (2 * log(base)), mix;
            double high = d * log(ORIGINAL / turn) / (2 * log(base));
            if (!s->yarn_exact) {
                low = floor(low);
                high = ceil(high);
            }
            low = low < 0 ? 0 : low;
            high = high > d - 1 ? d - 1 : high;
            mix = clamp((i - low) / (high - low + (high == low ? 0.001 : 0)), 0, 1);
            f = f / s->yarn * mix + f * (1 - mix);
            *gain = 0.1 * log(s->yarn) + 1;
        }
    }
    return f * pos;
}

static void turn(const made *m, double *x, int heads, int pos, int local, int far) {
    const spec *s = m->s;
    int half = s->head_dim / 2;
    if (!local && s->full_unrotated) return;
    for (int h = 0; h < heads; h++, x += s->head_dim) {
        for (int i = 0; i < half; i++) {
            double gain, a = angle(m, i, pos, local, far, &gain);
            double *u = s->interleaved ? x + 2 * i : x + i, *v = s->interleaved ? u + 1 : u + half, p = *u, q = *v;
            *u = (p * cos(a) - q * sin(a)) * gain;
            *v = (p * sin(a) + q * cos(a)) * gain;
        }
    }
}

/* Head h of the token at t over all keys that it sees. */
static void see(const made *m, int l, double *out, const double *q, const double *k, const double *v, int t,
                int local) {
    const spec *s = m->s;
    int d = s->head_dim, kv = s->kv_heads * d;
    const float *sinks = s->sinks ? find(m, l, "attn_sinks.weight") : NULL;
    for (int h = 0; h < s->heads; h++) {
        int first = local && t - s->window + 1 > 0 ? t - s->window + 1 : 0, at = h / (s->heads / s->kv_heads) * d;
        double score[TOKENS], top = sinks ? (double)sinks[h] : -1e300, sum;
        for (int j = first; j <= t; j++) {
            score[j] = 0;
            for (int i = 0; i < d; i++) score[j] += q[h * d + i] * k[j * kv + at + i];
            score[j] /= sqrt(s->divide);
            if (s->attn_cap > 0) score[j] = s->attn_cap * tanh(score[j] / s->attn_cap);
            top = score[j] > top ? score[j] : top;
        }
        sum = sinks ? exp((double)sinks[h] - top) : 0;
        for (int i = 0; i < d; i++) out[h * d + i] = 0;
        for (int j = first; j <= t; j++) {
            double p = exp(score[j] - top);
            sum += p;
            for (int i = 0; i < d; i++) out[h * d + i] += p * v[j * kv + at + i];
        }
        for (int i = 0; i < d; i++) out[h * d + i] /= sum;
    }
}

static double act(const spec *s, double g, double u) {
    if (s->experts) { /* gpt-oss's clamped SwiGLU */
        g = g > 7 ? 7 : g;
        u = clamp(u, -7, 7);
        return g / (1 + exp(-1.702 * g)) * (u + 1);
    }
    if (s->gelu) return 0.5 * g * (1 + tanh(sqrt(2 / 3.141592653589793) * (g + 0.044715 * g * g * g))) * u;
    return g / (1 + exp(-g)) * u;
}

static void mixture(const made *m, int l, double *out, const double *x) {
    const spec *s = m->s;
    double score[16], g[HIDDEN], u[HIDDEN], y[DIM], sum = 0;
    int taken[16] = { 0 };
    times(score, x, find(m, l, "ffn_gate_inp.weight"), find(m, l, "ffn_gate_inp.bias"), s->experts, DIM);
    for (int i = 0; i < DIM; i++) out[i] = 0;
    for (int n = 0; n < s->used; n++) {
        const float *wg = find(m, l, "ffn_gate_exps.weight"), *bg = find(m, l, "ffn_gate_exps.bias");
        const float *wu = find(m, l, "ffn_up_exps.weight"), *bu = find(m, l, "ffn_up_exps.bias");
        const float *wd = find(m, l, "ffn_down_exps.weight"), *bd = find(m, l, "ffn_down_exps.bias");
        int e = -1;
        for (int i = 0; i < s->experts; i++)
            if (!taken[i] && (e < 0 || score[i] > score[e])) e = i;
        taken[e] = 1;
        times(g, x, wg + e * HIDDEN * DIM, bg + e * HIDDEN, HIDDEN, DIM);
        times(u, x, wu + e * HIDDEN * DIM, bu + e * HIDDEN, HIDDEN, DIM);
        for (int i = 0; i < HIDDEN; i++) g[i] = act(s, g[i], u[i]);
        times(y, g, wd + e * DIM * HIDDEN, bd + e * DIM, DIM, HIDDEN);
        sum += exp(score[e]);
        for (int i = 0; i < DIM; i++) out[i] += exp(score[e]) * y[i];
    }
    for (int i = 0; i < DIM; i++) out[i] /= sum;
}

static void feed(const made *m, int l, double *out, const double *x) {
    const spec *s = m->s;
    const float *up = find(m, l, "ffn_up.weight");
    double g[HIDDEN], u[HIDDEN];
    if (s->experts) {
        mixture(m, l, out, x);
        return;
    }
    times(g, x, s->fused ? up : find(m, l, "ffn_gate.weight"), NULL, HIDDEN, DIM);
    times(u, x, s->fused ? up + HIDDEN * DIM : up, NULL, HIDDEN, DIM);
    for (int i = 0; i < HIDDEN; i++) g[i] = act(s, g[i], u[i]);
    times(out, g, find(m, l, "ffn_down.weight"), NULL, DIM, HIDDEN);
}

static void add_to(double *x, const double *y) {
    for (int i = 0; i < DIM; i++) x[i] += y[i];
}

/* Queries, keys and values of a token from h; rotated. */
static void project(const made *m, int l, const double *h, int t, int local, int far, double *q, double *k, double *v) {
    const spec *s = m->s;
    int nq = s->heads * s->head_dim, nk = s->kv_heads * s->head_dim;
    const float *all = find(m, l, "attn_qkv.weight"), *qn = find(m, l, "attn_q_norm.weight");
    const float *kn = find(m, l, "attn_k_norm.weight");
    times(q, h, s->fused ? all : find(m, l, "attn_q.weight"), find(m, l, "attn_q.bias"), nq, DIM);
    times(k, h, s->fused ? all + nq * DIM : find(m, l, "attn_k.weight"), find(m, l, "attn_k.bias"), nk, DIM);
    times(v, h, s->fused ? all + (nq + nk) * DIM : find(m, l, "attn_v.weight"), find(m, l, "attn_v.bias"), nk, DIM);
    for (int i = 0; s->qk == 1 && i < s->heads; i++) norm(s, q + i * s->head_dim, qn, s->head_dim);
    for (int i = 0; s->qk == 1 && i < s->kv_heads; i++) norm(s, k + i * s->head_dim, kn, s->head_dim);
    if (s->qk == 2) norm(s, q, qn, nq);
    if (s->qk == 2) norm(s, k, kn, nk);
    turn(m, q, s->heads, t, local, far);
    turn(m, k, s->kv_heads, t, local, far);
}

static double *reference(const made *m, const int32_t *ids, int far) {
    const spec *s = m->s;
    int kv = s->kv_heads * s->head_dim;
    double *x = t_doubles(TOKENS * DIM), *k = t_doubles(TOKENS * kv), *v = t_doubles(TOKENS * kv), q[256], a[256];
    double h[DIM], y[DIM], *out = t_doubles(TOKENS * VOCAB);
    const float *embed = find(m, -1, "token_embd.weight"), *last = s->tied ? embed : find(m, -1, "output.weight");
    const char *ffn_norm = s->experts ? "post_attention_norm.weight" : "ffn_norm.weight";
    for (int i = 0; i < TOKENS * DIM; i++) x[i] = (double)embed[ids[i / DIM] * DIM + i % DIM] * s->embed;
    for (int l = 0; l < s->layers; l++) {
        int local = s->window > 0 && (s->full_every == 0 || (l + 1) % s->full_every != 0);
        for (int t = 0; t < TOKENS; t++) {
            double *row = x + t * DIM;
            memcpy(h, row, sizeof h);
            norm(s, h, find(m, l, "attn_norm.weight"), DIM);
            project(m, l, h, t, local, far, q, k + t * kv, v + t * kv);
            see(m, l, a, q, k, v, t, local);
            times(y, a, find(m, l, "attn_output.weight"), find(m, l, "attn_output.bias"), DIM, s->heads * s->head_dim);
            if (s->post) norm(s, y, find(m, l, "post_attention_norm.weight"), DIM);
            add_to(row, y);
            if (!s->parallel) memcpy(h, row, sizeof h);
            if (!s->parallel) norm(s, h, find(m, l, ffn_norm), DIM);
            feed(m, l, y, h);
            norm(s, y, find(m, l, "post_ffw_norm.weight"), DIM);
            add_to(row, y);
        }
    }
    for (int t = 0; t < TOKENS; t++) {
        norm(s, x + t * DIM, find(m, -1, "output_norm.weight"), DIM);
        times(out + t * VOCAB, x + t * DIM, last, NULL, VOCAB, DIM);
        for (int i = t * VOCAB; i < (t + 1) * VOCAB; i++) {
            out[i] *= s->out_scale;
            if (s->out_cap > 0) out[i] = s->out_cap * tanh(out[i] / s->out_cap);
        }
    }
    return out;
}

/* ---- the engine's answer ---- */

static float *answer(const made *f, const int32_t *ids, int32_t chunk, int64_t context) {
    size_t size;
    unsigned char *file = gw_file(&f->file, &size);
    float *out = t_floats(TOKENS * VOCAB);
    model m = { 0 };
    setup s = { 0 };
    engine e = { 0 };
    gguf g;
    int ok = gguf_parse(&g, file, size) == 0 && model_init(&m, &g) == 0;
    if (!ok) printf("%s: %s\n", f->s->arch, g.error);
    s.window = m.window;
    s.context = context;
    s.chunk = chunk;
    s.threads = 1;
    if (CHECK(ok) && CHECK_OK(engine_open(&e, &m, &s))) CHECK_OK(prefill(&e, ids, TOKENS, 0, 1, out, NULL));
    engine_close(&e);
    model_free(&m);
    gguf_free(&g);
    return out;
}

TEST(families_against_double_references) {
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        spec now = filled(specs[i]);
        made *m = make(&now);
        int32_t ids[TOKENS];
        float *whole, *parts;
        t_label("%s %s", specs[i].arch, specs[i].what);
        for (int t = 0; t < TOKENS; t++) ids[t] = t_int(0, VOCAB - 1);
        whole = answer(m, ids, TOKENS, TOKENS);
        parts = answer(m, ids, 7, TOKENS);
        CHECK_CLOSE(whole, reference(m, ids, 0), TOKENS * VOCAB, 2e-5);
        CHECK_BITS(parts, whole, TOKENS * VOCAB);
        if (specs[i].factors == 2) { /* a context beyond the first training's: the long factors */
            CHECK_CLOSE(answer(m, ids, 9, ORIGINAL + 1), reference(m, ids, 1), TOKENS * VOCAB, 2e-5);
        }
        t_free_to(NULL);
    }
}

/* ---- a quantised model: the same as one whose weights are the quantised ones written out ---- */

static void give_rounded(made *a, made *b, const char *name, uint32_t type, int rows, int cols) {
    size_t n = (size_t)rows * (size_t)cols, bytes = gguf_bytes(type, n);
    size_t unit = gguf_block_of(type)->bytes;
    unsigned char *p = (unsigned char *)t_alloc(bytes);
    float *x = t_floats(n);
    weights w = { type, rows, cols, p };
    for (size_t i = 0; i < bytes; i++) p[i] = (unsigned char)t_int(0, 255);
    for (size_t i = 0; i < bytes; i += unit) { /* halves of 2^-9 or so where the formats have them */
        size_t at = type == GGUF_TENSOR_Q6_K ? 208 : 0;
        p[i + at] = 0;
        p[i + at + 1] = type == GGUF_TENSOR_Q6_K || type == GGUF_TENSOR_Q4_K ? 0x04 : 0x18;
        if (type == GGUF_TENSOR_Q4_K || type == GGUF_TENSOR_Q5_K) p[i + 2] = 0, p[i + 3] = 0x10;
        if (type == GGUF_TENSOR_Q5_K) p[i + 1] = 0x04;
        if (type == GGUF_TENSOR_MXFP4) p[i] = 122;
    }
    for (int r = 0; r < rows; r++) weights_row(&w, r, x + (size_t)r * (size_t)cols);
    gw_tensor(&a->file, name, type, rows, cols, p);
    gw_tensor(&b->file, name, GGUF_TENSOR_F32, rows, cols, x);
}

static made *rounded_start(const spec *s) {
    made *m = (made *)t_alloc(sizeof *m);
    memset(m, 0, sizeof *m);
    m->s = s;
    gw_text(&m->file, "general.architecture", "llama");
    gw_int(&m->file, "llama.embedding_length", 256);
    gw_int(&m->file, "llama.feed_forward_length", 512);
    gw_int(&m->file, "llama.block_count", 1);
    gw_int(&m->file, "llama.attention.head_count", 4);
    gw_int(&m->file, "llama.attention.head_count_kv", 2);
    gw_int(&m->file, "llama.context_length", 4096);
    gw_int(&m->file, "llama.attention.sliding_window", 9);
    give_vocabulary(&m->file);
    return m;
}

TEST(families_quantised_as_their_weights_written_out) {
    static const uint32_t types[] = { GGUF_TENSOR_Q8_0, GGUF_TENSOR_Q4_0, GGUF_TENSOR_Q4_K,
                                      GGUF_TENSOR_Q5_K, GGUF_TENSOR_Q6_K, GGUF_TENSOR_MXFP4 };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        made *a = rounded_start(&specs[0]), *b = rounded_start(&specs[0]);
        uint32_t k = types[i], head = k == GGUF_TENSOR_Q4_K ? GGUF_TENSOR_Q6_K : k; /* as llama.cpp mixes them */
        static const char *const norms[] = { "output_norm.weight", "blk.0.attn_norm.weight", "blk.0.ffn_norm.weight" };
        int32_t ids[TOKENS];
        float *ones = t_floats(256), *got, *other, *want;
        double *wide = t_doubles(TOKENS * VOCAB);
        for (int j = 0; j < 256; j++) ones[j] = 1;
        for (int j = 0; j < 3; j++) gw_tensor(&a->file, norms[j], GGUF_TENSOR_F32, 0, 256, ones);
        for (int j = 0; j < 3; j++) gw_tensor(&b->file, norms[j], GGUF_TENSOR_F32, 0, 256, ones);
        give_rounded(a, b, "token_embd.weight", head, VOCAB, 256);
        give_rounded(a, b, "blk.0.attn_q.weight", k, 256, 256);
        give_rounded(a, b, "blk.0.attn_k.weight", k, 128, 256);
        give_rounded(a, b, "blk.0.attn_v.weight", head, 128, 256);
        give_rounded(a, b, "blk.0.attn_output.weight", k, 256, 256);
        give_rounded(a, b, "blk.0.ffn_gate.weight", k, 512, 256);
        give_rounded(a, b, "blk.0.ffn_up.weight", k, 512, 256);
        give_rounded(a, b, "blk.0.ffn_down.weight", head, 256, 512);
        for (int t = 0; t < TOKENS; t++) ids[t] = t_int(0, VOCAB - 1);
        t_label("type %u", k);
        got = answer(a, ids, TOKENS, TOKENS);
        other = answer(a, ids, 7, TOKENS);
        want = answer(b, ids, TOKENS, TOKENS);
        for (int j = 0; j < TOKENS * VOCAB; j++) wide[j] = (double)want[j];
        CHECK_CLOSE(got, wide, TOKENS * VOCAB, 1e-3);
        CHECK_BITS(other, got, TOKENS * VOCAB);
        t_free_to(NULL);
    }
}
