/* model.h - a model from a GGUF file: its sizes, its family's ways, and where its weights lie. Matrices stay in the
   file, which must stay open; vectors (norms, biases, sinks) are widened to f32. Include swa.h first.

   What sets the families apart stands in one table of flags; what a file may have or lack in any of them (biases, fused
   matrices, RoPE factors) is seen by the tensors that are there. A tensor that nobody has read is an error. */
#ifndef MODEL_H_INCLUDED
#define MODEL_H_INCLUDED
#include "quants.h"
#include "vocab.h"

/* ---- families ---- */

enum {
    PRE_NORM = 1,           /* attn_norm and ffn_norm, before each half of a block                                 */
    POST_NORM = 2,          /* post_attention_norm and post_ffw_norm, behind each half, before it is added         */
    FFN_NORM_POST = 4,      /* ffn_norm is called post_attention_norm                                              */
    QK_NORM = 8,            /* queries and keys are normed, by head or whole as the vectors are long               */
    SINKS = 16,             /* a learned logit per head in the softmax's denominator                               */
    EXPERTS = 32,           /* the feed-forward half is a mixture                                                  */
    MEAN_NORM = 64,         /* LayerNorm: the mean is taken off first                                              */
    PARALLEL = 128,         /* both halves of a block read attn_norm's output                                      */
    EMBED_SCALE = 256,      /* embeddings times sqrt(dim)                                                          */
    GELU = 512,             /* else SiLU                                                                           */
    CLAMPED = 1024,         /* gpt-oss: gate <= 7, |up| <= 7, gate * sigmoid(1.702 gate) * (up + 1)                */
    LOCAL_ROPE_ONLY = 2048, /* layers without a window do not rotate                                               */
    LOCAL_UNSCALED = 4096,  /* RoPE scaling is for layers without a window                                         */
    YARN_EXACT = 8192       /* YaRN's ramp ends are not rounded                                                    */
};
typedef struct {
    const char *name; /* general.architecture, and what the keys begin with                                  */
    swa_rope_pairs pairs;
    int flags;
    int period;               /* every period-th layer has no window; 0 = all have it. The file's pattern goes first */
    int odd_size;             /* with so many layers scores are divided by sqrt(dim/n_heads), not sqrt(head_dim)     */
    double local_base;        /* RoPE base of windowed layers; 0 = as the others                                     */
    double attn_cap, out_cap; /* softcaps where the file has none                                                */
} family;

/* clang-format off */
static const family families[] = {
    { "llama",   SWA_ROPE_INTERLEAVED, PRE_NORM, 0, 0, 0, 0, 0 },                            /* Mistral, Llama 2, 3 */
    { "phi3",    SWA_ROPE_HALF, PRE_NORM, 0, 0, 0, 0, 0 },
    { "qwen2",   SWA_ROPE_HALF, PRE_NORM, 0, 0, 0, 0, 0 },
    { "qwen3",   SWA_ROPE_HALF, PRE_NORM | QK_NORM, 0, 0, 0, 0, 0 },
    { "gemma2",  SWA_ROPE_HALF, PRE_NORM | POST_NORM | EMBED_SCALE | GELU, 2, 46, 0, 50, 30 },
    { "gemma3",  SWA_ROPE_HALF, PRE_NORM | POST_NORM | QK_NORM | EMBED_SCALE | GELU | LOCAL_UNSCALED, 6, 62, 1e4,
      0, 0 },
    { "gpt-oss", SWA_ROPE_HALF, PRE_NORM | FFN_NORM_POST | SINKS | EXPERTS | CLAMPED | YARN_EXACT, 2, 0, 0, 0, 0 },
    { "cohere2", SWA_ROPE_INTERLEAVED, PRE_NORM | MEAN_NORM | PARALLEL | LOCAL_ROPE_ONLY, 4, 0, 0, 0, 0 },
    { "olmo2",   SWA_ROPE_HALF, POST_NORM | QK_NORM | LOCAL_UNSCALED, 4, 0, 0, 0, 0 },       /* OLMo 3 with a window */
    { "olmo3",   SWA_ROPE_HALF, POST_NORM | QK_NORM | LOCAL_UNSCALED, 4, 0, 0, 0, 0 },
};
/* clang-format on */

/* ---- what the file holds; NULL or rows 0 = not there ---- */

typedef struct {
    int local, whole_norm;                                    /* 1 = has the model's window; q, k normed across heads */
    const float *attn_norm, *ffn_norm, *post_attn, *post_ffn; /* [dim] */
    const float *q_norm, *k_norm; /* [head_dim], or [n_heads*head_dim], [n_kv_heads*head_dim] */
    const float *q_bias, *k_bias, *v_bias, *o_bias, *sinks;
    weights q, k, v;                               /* [n_heads*head_dim][dim], then twice [n_kv_heads*head_dim] */
    weights o;                                     /* [dim][n_heads*head_dim] */
    weights gate, up, down;                        /* twice [hidden][dim], then [dim][hidden]; with experts all
                                                            of them one below the other */
    weights router, gate_bias, up_bias, down_bias; /* [n_experts][dim], twice [n_experts][hidden], .. [dim] */
    const float *router_bias;                      /* [n_experts] */
} layer;
typedef struct {
    const family *kind;
    gguf *file;
    int dim, hidden, n_layers, n_heads, n_kv_heads, head_dim, rotary, n_vocab, n_experts, n_used;
    int64_t window, context, original; /* window 0 = full attention; context that RoPE was first trained for */
    float eps, scale, attn_cap, out_cap, out_scale;
    double *freq[2][2]; /* [0 full, 1 windowed layers][0 short, 1 long texts] each [rotary/2] */
    double mscale[2];
    float *vectors;            /* all of them, widened to f32 */
    size_t n_vectors, n_read;  /* floats taken so far; tensors read */
    weights embedding, output; /* [n_vocab][dim], often the same */
    const float *out_norm;     /* [dim] */
    layer *layers;             /* [n_layers] */
    vocab vocab;
} model;

/* ---- keys ---- */

typedef struct {
    char text[96];
} model_key;
static inline model_key key_of(const model *m, const char *what) {
    model_key k;
    snprintf(k.text, sizeof k.text, "%s.%s", m->kind->name, what);
    return k;
}
static inline int64_t model_int(model *m, const char *what, int64_t absent, int64_t lo, int64_t hi) {
    return gguf_need_int(m->file, key_of(m, what).text, absent, lo, hi);
}
static inline double model_real(model *m, const char *what, double absent) { /* > 0, or absent */
    return gguf_find(m->file, key_of(m, what).text) ? gguf_need_positive(m->file, key_of(m, what).text, 1.0) : absent;
}

static inline int model_sizes(model *m, gguf *g) {
    enum { MAX = 1 << 20 };
    int flags = m->kind->flags;
    m->n_vocab = m->vocab.n;
    m->dim = (int)model_int(m, "embedding_length", -1, 1, MAX);
    m->n_layers = (int)model_int(m, "block_count", -1, 1, 4096);
    m->n_heads = (int)model_int(m, "attention.head_count", -1, 1, 4096);
    m->n_kv_heads = (int)model_int(m, "attention.head_count_kv", m->n_heads, 1, m->n_heads);
    m->head_dim = (int)model_int(m, "attention.key_length", m->dim / m->n_heads, 1, 4096);
    m->rotary = (int)model_int(m, "rope.dimension_count", m->head_dim, 2, m->head_dim);
    m->context = model_int(m, "context_length", -1, 1, INT32_MAX);
    m->window = model_int(m, "attention.sliding_window", 0, 0, INT32_MAX);
    m->hidden = (int)model_int(m, flags & EXPERTS ? "expert_feed_forward_length" : "feed_forward_length", -1, 1, MAX);
    if (flags & EXPERTS) {
        m->n_experts = (int)model_int(m, "expert_count", -1, 1, 4096);
        m->n_used = (int)model_int(m, "expert_used_count", -1, 1, m->n_experts);
        if (INT32_MAX / m->n_experts < (m->hidden > m->dim ? m->hidden : m->dim)) gguf_fail(g, "too many experts");
    }
    m->eps = (float)model_real(
        m, flags & MEAN_NORM ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 1e-5);
    m->attn_cap = (float)model_real(m, "attn_logit_softcapping", m->kind->attn_cap);
    m->out_cap = (float)model_real(m, "final_logit_softcapping", m->kind->out_cap);
    m->out_scale = (float)model_real(m, "logit_scale", 1.0);
    m->scale = m->kind->odd_size == m->n_layers ? 1.0f / sqrtf((float)m->dim / (float)m->n_heads)
                                                : 1.0f / sqrtf((float)m->head_dim);
    if (model_int(m, "attention.value_length", m->head_dim, 1, 4096) != m->head_dim) {
        gguf_fail(g, "keys and values of different lengths are not supported");
    }
    if (m->head_dim < 2 || m->rotary % 2 != 0 || m->n_heads % m->n_kv_heads != 0) {
        gguf_fail(g, "the sizes of the attention heads do not fit together");
    }
    return g->error[0] ? -1 : 0;
}

/* Which layers have the window: a list of booleans in the file, a period there, or the family's period. */
static inline int model_pattern(model *m, gguf *g) {
    const gguf_pair *p = gguf_find(g, key_of(m, "attention.sliding_window_pattern").text);
    int64_t period = m->kind->period;
    int list = p && p->is_array && p->kind == GGUF_BOOL;
    if (list && p->count < (uint64_t)m->n_layers) return gguf_fail(g, "the pattern of windows is too short");
    if (p && !list) period = model_int(m, "attention.sliding_window_pattern", -1, 0, 4096);
    for (int l = 0; l < m->n_layers; l++) {
        m->layers[l].local = list ? p->data[l] : period == 0 || l % period != period - 1;
        if (m->window == 0) m->layers[l].local = 0;
    }
    return g->error[0] ? -1 : 0;
}

/* ---- tensors ---- */

/* A vector of n numbers as f32; NULL = not there, which is an error if it is needed. */
static inline const float *model_vector(model *m, const char *name, int n, int needed) {
    const gguf_tensor *t;
    float *out = m->vectors + m->n_vectors;
    if (!needed && !gguf_tensor_named(m->file, name)) return NULL;
    t = gguf_need_tensor(m->file, name, n, 0);
    if (!t) return NULL;
    gguf_widen(t, out);
    m->n_vectors += t->n;
    m->n_read++;
    return out;
}

static inline weights model_matrix(model *m, const char *name, int rows, int cols, int needed) {
    const gguf_tensor *t = gguf_tensor_named(m->file, name);
    weights w = { 0, 0, 0, NULL };
    if (!t && !needed) return w;
    if (!t) {
        gguf_fail(m->file, "the file lacks tensor %s", name);
    } else if (t->dims[0] != (uint64_t)cols || t->n != (size_t)rows * (size_t)cols) {
        gguf_fail(m->file, "tensor %s has another shape than the metadata says", name);
    } else {
        w.type = t->type;
        w.rows = rows;
        w.cols = cols;
        w.data = t->data;
        m->n_read++;
    }
    return w;
}

/* A vector for each expert. */
static inline weights model_biases(model *m, const char *name, int rows, int cols) {
    weights w = model_matrix(m, name, rows, cols, 0);
    if (w.data && weights_block(w.type)) gguf_fail(m->file, "tensor %s is quantised, which is not supported", name);
    return w;
}

/* Rows [from, from + rows) of a matrix that holds several. */
static inline weights weights_part(const weights *w, int from, int rows) {
    weights part = *w;
    part.rows = rows;
    if (w->data) part.data += (size_t)from * gguf_bytes(w->type, (size_t)w->cols);
    return part;
}

typedef struct {
    char text[64];
} tensor_name;
static inline tensor_name name_of(int l, const char *what) {
    tensor_name n;
    snprintf(n.text, sizeof n.text, "blk.%d.%s", l, what);
    return n;
}
#define VECTOR(what, n, needed)          model_vector(m, name_of(l, what).text, n, needed)
#define MATRIX(what, rows, cols, needed) model_matrix(m, name_of(l, what).text, rows, cols, needed)

static inline void model_attention(model *m, int l) {
    layer *w = &m->layers[l];
    int flags = m->kind->flags, q_dim = m->n_heads * m->head_dim, kv_dim = m->n_kv_heads * m->head_dim;
    weights all = MATRIX("attn_qkv.weight", q_dim + 2 * kv_dim, m->dim, 0);
    if (flags & PRE_NORM) w->attn_norm = VECTOR("attn_norm.weight", m->dim, 1);
    if (flags & POST_NORM) w->post_attn = VECTOR("post_attention_norm.weight", m->dim, 1);
    if (flags & SINKS) w->sinks = VECTOR("attn_sinks.weight", m->n_heads, 1);
    if (flags & QK_NORM) {
        const gguf_tensor *t = gguf_tensor_named(m->file, name_of(l, "attn_q_norm.weight").text);
        int whole = t && t->n == (size_t)q_dim;
        w->q_norm = VECTOR("attn_q_norm.weight", whole ? q_dim : m->head_dim, 1);
        w->k_norm = VECTOR("attn_k_norm.weight", whole ? kv_dim : m->head_dim, 1);
        w->whole_norm = whole;
    }
    w->q = all.data ? weights_part(&all, 0, q_dim) : MATRIX("attn_q.weight", q_dim, m->dim, 1);
    w->k = all.data ? weights_part(&all, q_dim, kv_dim) : MATRIX("attn_k.weight", kv_dim, m->dim, 1);
    w->v = all.data ? weights_part(&all, q_dim + kv_dim, kv_dim) : MATRIX("attn_v.weight", kv_dim, m->dim, 1);
    w->o = MATRIX("attn_output.weight", m->dim, q_dim, 1);
    w->q_bias = VECTOR("attn_q.bias", q_dim, 0);
    w->k_bias = VECTOR("attn_k.bias", kv_dim, 0);
    w->v_bias = VECTOR("attn_v.bias", kv_dim, 0);
    w->o_bias = VECTOR("attn_output.bias", m->dim, 0);
}

static inline void model_feed_forward(model *m, int l) {
    layer *w = &m->layers[l];
    int flags = m->kind->flags, n = m->n_experts;
    if ((flags & PRE_NORM) && !(flags & PARALLEL)) {
        w->ffn_norm = VECTOR(flags & FFN_NORM_POST ? "post_attention_norm.weight" : "ffn_norm.weight", m->dim, 1);
    }
    if (flags & POST_NORM) w->post_ffn = VECTOR("post_ffw_norm.weight", m->dim, 1);
    if (flags & EXPERTS) {
        w->router = MATRIX("ffn_gate_inp.weight", n, m->dim, 1);
        w->router_bias = VECTOR("ffn_gate_inp.bias", n, 0);
        w->gate = MATRIX("ffn_gate_exps.weight", n * m->hidden, m->dim, 1);
        w->up = MATRIX("ffn_up_exps.weight", n * m->hidden, m->dim, 1);
        w->down = MATRIX("ffn_down_exps.weight", n * m->dim, m->hidden, 1);
        w->gate_bias = model_biases(m, name_of(l, "ffn_gate_exps.bias").text, n, m->hidden);
        w->up_bias = model_biases(m, name_of(l, "ffn_up_exps.bias").text, n, m->hidden);
        w->down_bias = model_biases(m, name_of(l, "ffn_down_exps.bias").text, n, m->dim);
        return;
    }
    if (gguf_tensor_named(m->file, name_of(l, "ffn_gate.weight").text)) {
        w->gate = MATRIX("ffn_gate.weight", m->hidden, m->dim, 1);
        w->up = MATRIX("ffn_up.weight", m->hidden, m->dim, 1);
    } else {
        weights both = MATRIX("ffn_up.weight", 2 * m->hidden, m->dim, 1); /* gate first */
        w->gate = weights_part(&both, 0, m->hidden);
        w->up = weights_part(&both, m->hidden, m->hidden);
    }
    w->down = MATRIX("ffn_down.weight", m->dim, m->hidden, 1);
}

static inline int model_weights(model *m, gguf *g) {
    size_t total = 0;
    for (size_t i = 0; i < g->n_tensors; i++) { /* apart from each other in the file: no more than it has */
        if (g->tensors[i].n_dims == 1) total += g->tensors[i].n;
    }
    m->vectors = (float *)malloc(total * sizeof(float) + 1);
    if (!m->vectors) return gguf_fail(g, "out of memory");
    m->embedding = model_matrix(m, "token_embd.weight", m->n_vocab, m->dim, 1);
    m->out_norm = model_vector(m, "output_norm.weight", m->dim, 1);
    m->output = m->embedding;
    if (gguf_tensor_named(g, "output.weight")) { m->output = model_matrix(m, "output.weight", m->n_vocab, m->dim, 1); }
    for (int l = 0; l < m->n_layers && !g->error[0]; l++) {
        model_attention(m, l);
        model_feed_forward(m, l);
    }
    return g->error[0] ? -1 : 0;
}

/* ---- RoPE ---- */

/* Frequencies of windowed (local 1) or other layers: the base's, stretched as the metadata say, then divided by
   factors from a tensor. */
static inline int model_frequencies(model *m, int local, const float *factors, double *out) {
    gguf *g = m->file;
    const gguf_pair *p = gguf_find(g, key_of(m, "rope.scaling.type").text);
    double base = model_real(m, "rope.freq_base", 10000.0), factor = model_real(m, "rope.scaling.factor", 1.0);
    double stretch = model_real(m, "rope.scale_linear", 1.0);
    swa_yarn_desc d = { 0 };
    gguf_str kind = { "none", 4 };
    int scaled = !(local && (m->kind->flags & LOCAL_UNSCALED));
    if (p && (p->is_array || !gguf_strings(p, &kind))) return gguf_fail(g, "rope.scaling.type is no name");
    if (local && m->kind->local_base > 0.0) base = m->kind->local_base;
    d.base = local ? model_real(m, "rope.freq_base_swa", base) : base;
    m->mscale[local] = scaled ? model_real(m, "rope.scaling.attn_factor", 1.0) : 1.0;
    if (gguf_is(kind, "linear")) {
        stretch = factor;
    } else if (gguf_is(kind, "yarn")) {
        d.scale = scaled ? factor : 1.0;
        d.original = (int32_t)m->original;
        d.truncate = m->kind->flags & YARN_EXACT ? -1 : 1;
        d.beta_fast = model_real(m, "rope.scaling.yarn_beta_fast", 0.0);
        d.beta_slow = model_real(m, "rope.scaling.yarn_beta_slow", 0.0);
    } else if (!gguf_is(kind, "none") && !gguf_is(kind, "longrope")) {
        return gguf_fail(g, "RoPE scaling of kind %.*s is not supported", gguf_show(kind), kind.p);
    }
    if (g->error[0]) return -1;
    double yarn = 1.0;
    if (swa_yarn(&d, m->rotary, out, &yarn) != SWA_OK) return gguf_fail(g, "impossible numbers of RoPE");
    if (d.scale > 1.0) m->mscale[local] *= yarn;
    for (int i = 0; i < m->rotary / 2; i++) {
        if (scaled) out[i] /= stretch;
        if (factors) out[i] /= (double)factors[i];
        if (!(out[i] > 0.0 && out[i] < 1e9)) return gguf_fail(g, "impossible numbers of RoPE");
    }
    return 0;
}

static inline int model_rope(model *m, gguf *g) {
    int half = m->rotary / 2;
    const float *any = model_vector(m, "rope_freqs.weight", half, 0);
    const float *brief = model_vector(m, "rope_factors_short.weight", half, 0);
    const float *wide = model_vector(m, "rope_factors_long.weight", half, 0);
    double *all = (double *)calloc((size_t)m->rotary, 2 * sizeof *all);
    if (!all) return gguf_fail(g, "out of memory");
    m->original = model_int(m, "rope.scaling.original_context_length", m->context, 1, INT32_MAX);
    for (int i = 0; i < 4; i++) {
        m->freq[i / 2][i % 2] = all + i * half;
        if (model_frequencies(m, i / 2, any ? any : i % 2 ? wide : brief, all + i * half) != 0) return -1;
    }
    return g->error[0] ? -1 : 0;
}

/* ---- all of it ---- */

static inline void model_free(model *m) {
    vocab_free(&m->vocab);
    free(m->freq[0][0]);
    free(m->vectors);
    free(m->layers);
    memset(m, 0, sizeof *m);
}

/* 0 = fine, else -1 and g->error. g must stay until model_free, which is due in either case. */
static inline int model_init(model *m, gguf *g) {
    const gguf_pair *p = gguf_find(g, "general.architecture");
    gguf_str arch;
    memset(m, 0, sizeof *m);
    m->file = g;
    if (!p || p->is_array || !gguf_strings(p, &arch)) return gguf_fail(g, "the file lacks general.architecture");
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (gguf_is(arch, families[i].name)) m->kind = &families[i];
    }
    if (!m->kind) {
        return gguf_fail(g, "general.architecture \"%.*s\" is not among those supported", gguf_show(arch), arch.p);
    }
    if (vocab_init(&m->vocab, g) != 0 || model_sizes(m, g) != 0) return -1;
    m->layers = (layer *)calloc((size_t)m->n_layers, sizeof *m->layers);
    if (!m->layers) return gguf_fail(g, "out of memory");
    if (model_pattern(m, g) != 0 || model_weights(m, g) != 0 || model_rope(m, g) != 0) return -1;
    if (m->n_read == g->n_tensors) return 0;
    return gguf_fail(g, "tensors of this file (biases, experts?) are not supported");
}
#endif /* MODEL_H_INCLUDED */
