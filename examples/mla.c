/* mla.c - DeepSeek's latent attention at work: writes a text with a small model of that architecture, by all paths
   that swa.h knows, and shows what the cache costs and which path is cheaper when.

       cc -O2 -o mla mla.c -lm && ./mla -p "She was"        (-fopenmp: several threads)

   A GGUF file of llama.cpp's architecture deepseek2 (dense blocks) is read; the attention weights are used as they
   lie in it, F32, F16 or BF16, in DeepSeek's fused layouts (little-endian machines). gguf.h reads files, vocab.h makes
   tokens, nn.h does the rest. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "nn.h"
#include "vocab.h"
#ifdef _OPENMP
#include <omp.h>
#endif

/* ---- model ---- */

typedef struct {
    swa_mla attention;
    const float *attn_norm, *ffn_norm; /* [dim] */
    const float *gate, *up, *down;     /* twice [hidden][dim], then [dim][hidden] */
} layer;
typedef struct {
    gguf file;
    vocab vocab;
    int dim, hidden, n_layers, n_vocab;
    int64_t window, context; /* window 0 = full attention */
    float eps;
    double *freq;   /* [rope/2] */
    float *weights; /* what is not left in the file, widened to f32 */
    size_t n_weights;
    const float *embedding, *output, *out_norm;
    layer *layers;
} model;

static int fail(const char *what, const char *about) { /* the one line on stderr, and the exit code */
    fprintf(stderr, "mla: %s%s\n", what, about);
    return 1;
}

/* Widens one tensor; NULL and an error if it is absent or has another shape. cols 0 = a vector. */
static const float *widened(model *m, const char *name, int rows, int cols) {
    const gguf_tensor *t = gguf_need_tensor(&m->file, name, rows, cols);
    float *out = m->weights + m->n_weights;
    if (!t) return NULL;
    gguf_widen(t, out);
    m->n_weights += t->n;
    return out;
}
static const float *block_vector(model *m, int l, const char *what, int rows, int cols) {
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s.weight", l, what);
    return widened(m, name, rows, cols);
}
/* A matrix where it lies in the file. */
static swa_matrix block_matrix(model *m, int l, const char *what, int rows, int cols) {
    char name[64];
    const gguf_tensor *t;
    swa_matrix w = { 0 };
    snprintf(name, sizeof name, "blk.%d.%s.weight", l, what);
    t = gguf_need_tensor(&m->file, name, rows, cols);
    if (!t) return w;
    w.p = t->data;
    w.type = t->type == GGUF_TENSOR_F32 ? SWA_F32 : t->type == GGUF_TENSOR_F16 ? SWA_F16 : SWA_BF16;
    return w;
}
static void model_layer(model *m, int l, const swa_mla *sizes) {
    layer *w = &m->layers[l];
    swa_mla *a = &w->attention;
    int heads = sizes->n_heads, key = sizes->nope_dim + sizes->rope_dim, direct = sizes->q_lora_rank == 0;
    *a = *sizes;
    if (!direct) {
        a->w_dq = block_matrix(m, l, "attn_q_a", sizes->q_lora_rank, m->dim);
        a->q_norm = block_vector(m, l, "attn_q_a_norm", sizes->q_lora_rank, 0);
    }
    if (direct) a->w_uq = a->w_qr = block_matrix(m, l, "attn_q", heads * key, m->dim);
    else a->w_uq = a->w_qr = block_matrix(m, l, "attn_q_b", heads * key, sizes->q_lora_rank);
    a->w_dkv = a->w_kr = block_matrix(m, l, "attn_kv_a_mqa", sizes->kv_lora_rank + sizes->rope_dim, m->dim);
    a->kv_norm = block_vector(m, l, "attn_kv_a_norm", sizes->kv_lora_rank, 0);
    a->w_uk = a->w_uv = block_matrix(m, l, "attn_kv_b", heads * (sizes->nope_dim + sizes->v_dim), sizes->kv_lora_rank);
    a->w_o = block_matrix(m, l, "attn_output", m->dim, heads * sizes->v_dim);
    w->attn_norm = block_vector(m, l, "attn_norm", m->dim, 0);
    w->ffn_norm = block_vector(m, l, "ffn_norm", m->dim, 0);
    w->gate = block_vector(m, l, "ffn_gate", m->hidden, m->dim);
    w->up = block_vector(m, l, "ffn_up", m->hidden, m->dim);
    w->down = block_vector(m, l, "ffn_down", m->dim, m->hidden);
}
static int model_sizes(model *m, swa_mla *a) {
    enum { MAX = 1 << 16 };
    gguf *g = &m->file;
    int64_t key;
    m->n_vocab = m->vocab.n;
    m->dim = (int)gguf_need_int(g, "deepseek2.embedding_length", -1, 1, MAX);
    m->hidden = (int)gguf_need_int(g, "deepseek2.feed_forward_length", -1, 1, MAX);
    m->n_layers = (int)gguf_need_int(g, "deepseek2.block_count", -1, 1, 4096);
    m->context = gguf_need_int(g, "deepseek2.context_length", -1, 1, INT32_MAX);
    m->window = gguf_need_int(g, "deepseek2.attention.sliding_window", 0, 0, INT32_MAX);
    m->eps = (float)gguf_need_positive(g, "deepseek2.attention.layer_norm_rms_epsilon", 1e-6);
    a->hidden = m->dim;
    a->n_heads = (int)gguf_need_int(g, "deepseek2.attention.head_count", -1, 1, 4096);
    a->q_lora_rank = (int)gguf_need_int(g, "deepseek2.attention.q_lora_rank", 0, 0, MAX);
    a->kv_lora_rank = (int)gguf_need_int(g, "deepseek2.attention.kv_lora_rank", -1, 1, MAX);
    a->rope_dim = (int)gguf_need_int(g, "deepseek2.rope.dimension_count", -1, 2, 4096);
    a->v_dim = (int)gguf_need_int(g, "deepseek2.attention.value_length", -1, 1, 4096);
    key = gguf_need_int(g, "deepseek2.attention.key_length", -1, 1, 8192);
    a->nope_dim = (int)key - a->rope_dim;
    a->eps = m->eps;
    if (a->nope_dim < 1 || a->rope_dim % 2 != 0) gguf_fail(g, "the sizes of the attention heads do not fit together");
    if (gguf_need_int(g, "deepseek2.leading_dense_block_count", 0, 0, 4096) < m->n_layers) {
        gguf_fail(g, "blocks with experts are not supported");
    }
    return g->error[0] ? -1 : 0;
}
static int model_rope(model *m, swa_mla *a) {
    swa_yarn_desc d = { 0 };
    d.base = gguf_need_positive(&m->file, "deepseek2.rope.freq_base", 10000.0);
    if (gguf_find(&m->file, "deepseek2.rope.scaling.type")) return gguf_fail(&m->file, "RoPE scaling is not supported");
    m->freq = (double *)calloc((size_t)a->rope_dim, sizeof *m->freq);
    if (!m->freq) return gguf_fail(&m->file, "out of memory");
    a->freq = m->freq;
    a->pairs = SWA_ROPE_INTERLEAVED;
    return swa_yarn(&d, a->rope_dim, m->freq, NULL) == SWA_OK ? 0 : gguf_fail(&m->file, "impossible base of RoPE");
}
/* 0 = fine, else -1 and m->file.error. model_close in either case. */
static int model_open(model *m, const char *path) {
    gguf *g = &m->file;
    swa_mla sizes = { 0 };
    const gguf_pair *p;
    gguf_str arch;
    size_t total = 0;
    memset(m, 0, sizeof *m);
    if (gguf_load(g, path) != 0) return -1;
    p = gguf_find(g, "general.architecture");
    if (!p || p->is_array || !gguf_strings(p, &arch) || !gguf_is(arch, "deepseek2")) {
        return gguf_fail(g, "general.architecture is not \"deepseek2\"");
    }
    if (vocab_init(&m->vocab, g) != 0 || model_sizes(m, &sizes) != 0 || model_rope(m, &sizes) != 0) return -1;
    for (size_t i = 0; i < g->n_tensors; i++) {
        if (g->tensors[i].n > SIZE_MAX / 8 - total) return gguf_fail(g, "out of memory");
        total += g->tensors[i].n;
    }
    m->weights = (float *)malloc(total * sizeof(float) + 1);
    m->layers = (layer *)calloc((size_t)m->n_layers, sizeof *m->layers);
    if (!m->weights || !m->layers) return gguf_fail(g, "out of memory");
    m->embedding = widened(m, "token_embd.weight", m->n_vocab, m->dim);
    m->out_norm = widened(m, "output_norm.weight", m->dim, 0);
    m->output = m->embedding;
    if (gguf_tensor_named(g, "output.weight")) m->output = widened(m, "output.weight", m->n_vocab, m->dim);
    for (int l = 0; l < m->n_layers && !g->error[0]; l++) model_layer(m, l, &sizes);
    return g->error[0] ? -1 : 0;
}
static void model_close(model *m) {
    vocab_free(&m->vocab);
    gguf_free(&m->file);
    free(m->freq);
    free(m->weights);
    free(m->layers);
}

/* ---- engine ---- */

/* The ways to run: the paths over a cache of latents, there also with merged weights, and last the naive one over a
   cache of expanded rows. */
enum { MERGED = SWA_MLA_ABSORBED + 1, EXPANDED, N_WAYS };
static const char *const way_name[N_WAYS] = { "auto", "naive", "absorbed", "merged", "expanded" };

typedef struct {
    model *m;
    swa_cache cache;
    swa_mla *attention; /* [n_layers] the model's, with a path */
    void *memory, *scratch, **merged;
    size_t bytes; /* of the cache */
    int32_t chunk;
    float *x, *h, *gate, *up;
} engine;

static swa_cache_desc cache_desc(const model *m, swa_shape shape, int64_t window, int64_t context, swa_window *w) {
    swa_cache_desc d = { 0 };
    d.shape = shape;
    d.n_layers = m->n_layers;
    d.max_context = context;
    if (window <= 0) return d;
    *w = swa_window_sliding(window);
    d.windows = w;
    d.n_windows = 1;
    return d;
}
static void engine_close(engine *e) {
    for (int l = 0; e->merged && l < e->m->n_layers; l++) free(e->merged[l]);
    free(e->merged);
    free(e->attention);
    free(e->memory);
    free(e->scratch);
    free(e->x);
    memset(e, 0, sizeof *e);
}
static swa_status engine_merge(engine *e) {
    e->merged = (void **)calloc((size_t)e->m->n_layers, sizeof *e->merged);
    for (int l = 0; e->merged && l < e->m->n_layers; l++) {
        swa_mla *a = &e->attention[l], factors = *a;
        size_t bytes = swa_mla_merged_bytes(a);
        swa_status status;
        e->merged[l] = malloc(bytes);
        if (!e->merged[l]) return SWA_ERR_MEMORY;
        status = swa_mla_merge(&factors, e->merged[l], bytes, a);
        if (status != SWA_OK) return status;
    }
    return e->merged ? SWA_OK : SWA_ERR_MEMORY;
}
static swa_status engine_open(engine *e, model *m, int way, int64_t window, int64_t context, int32_t chunk,
                              int threads) {
    swa_shape shape = swa_mla_shape(&m->layers[0].attention, way == EXPANDED);
    swa_window w;
    swa_cache_desc d = cache_desc(m, shape, window, context, &w);
    size_t dim = (size_t)m->dim, hidden = (size_t)m->hidden, rows = (size_t)chunk, bytes;
    swa_status status;
    memset(e, 0, sizeof *e);
    e->m = m;
    e->chunk = chunk;
    e->attention = (swa_mla *)calloc((size_t)m->n_layers, sizeof *e->attention);
    e->x = (float *)calloc(rows, (2 * dim + 2 * hidden) * sizeof(float));
    e->bytes = swa_cache_bytes(&d);
    e->memory = malloc(e->bytes);
    if (!e->attention || !e->x || e->bytes == 0 || !e->memory) return SWA_ERR_MEMORY;
    e->h = e->x + rows * dim;
    e->gate = e->h + rows * dim;
    e->up = e->gate + rows * hidden;
    for (int l = 0; l < m->n_layers; l++) {
        e->attention[l] = m->layers[l].attention;
        e->attention[l].path = way > SWA_MLA_ABSORBED ? SWA_MLA_AUTO : (swa_mla_path)way;
    }
    bytes = swa_mla_scratch_bytes(&e->attention[0], &d, chunk, threads);
    e->scratch = malloc(bytes);
    if (bytes == 0 || !e->scratch) return SWA_ERR_MEMORY;
    if (way == MERGED) {
        status = engine_merge(e);
        if (status != SWA_OK) return status;
    }
    status = swa_cache_init(&e->cache, &d, e->memory, e->bytes);
    return status != SWA_OK ? status : swa_cache_set_scratch(&e->cache, e->scratch, bytes);
}
/* Tokens ids [n], at most a chunk, from position pos; logits [n][n_vocab]. */
static swa_status forward(engine *e, const int32_t *ids, int32_t n, int64_t pos, float *logits) {
    model *m = e->m;
    size_t dim = (size_t)m->dim, numbers = (size_t)n * dim;
    swa_status status = swa_step_one(&e->cache, 0, pos, n);
    for (int32_t t = 0; t < n; t++) {
        memcpy(e->x + (size_t)t * dim, m->embedding + (size_t)ids[t] * dim, dim * sizeof(float));
    }
    for (int l = 0; l < m->n_layers && status == SWA_OK; l++) {
        const layer *w = &m->layers[l];
        status = swa_rmsnorm(e->h, e->x, w->attn_norm, n, m->dim, m->eps);
        if (status == SWA_OK) status = swa_mla_forward(&e->cache, l, &e->attention[l], e->h, e->h);
        if (status != SWA_OK) break;
        add(e->x, e->h, numbers);
        status = swa_rmsnorm(e->h, e->x, w->ffn_norm, n, m->dim, m->eps);
        matmul(e->gate, e->h, w->gate, n, m->hidden, m->dim);
        matmul(e->up, e->h, w->up, n, m->hidden, m->dim);
        for (size_t i = 0; i < (size_t)n * (size_t)m->hidden; i++) {
            e->gate[i] = e->gate[i] / (1.0f + expf(-e->gate[i])) * e->up[i];
        }
        matmul(e->h, e->gate, w->down, n, m->dim, m->hidden);
        add(e->x, e->h, numbers);
    }
    if (status == SWA_OK) status = swa_rmsnorm(e->h, e->x, m->out_norm, n, m->dim, m->eps);
    if (status == SWA_OK) matmul(logits, e->h, m->output, n, m->n_vocab, m->dim);
    return status;
}
static swa_status forward_all(engine *e, const int32_t *ids, int32_t n, float *logits) {
    swa_status status = SWA_OK;
    for (int32_t at = 0; at < n && status == SWA_OK; at += e->chunk) {
        int32_t now = n - at < e->chunk ? n - at : e->chunk;
        status = forward(e, ids + at, now, at, logits + (size_t)at * (size_t)e->m->n_vocab);
    }
    return status;
}

/* ---- the program ---- */

typedef struct {
    const char *model, *prompt, *ids;
    int64_t n, window, chunk, threads, seed; /* window -1: the model's */
    double temperature;
} options;

/* Continues ids [n_prompt]; returns how many tokens there are then, -1 after an error.
   logits [n_prompt + o->n][n_vocab]. */
static int32_t write_text(engine *e, const options *o, int32_t *ids, int32_t n_prompt, float *logits) {
    size_t n_vocab = (size_t)e->m->n_vocab;
    int32_t n = n_prompt;
    sampler s = { 0 };
    swa_status status = forward_all(e, ids, n, logits);
    s.temperature = o->temperature;
    s.top_p = 0.9;
    s.state = (uint64_t)o->seed;
    s.list = (candidate *)calloc(n_vocab, sizeof *s.list);
    for (logits += (size_t)(n - 1) * n_vocab; s.list && status == SWA_OK && n < n_prompt + o->n; n++) {
        int32_t id = sample(&s, logits, (int)n_vocab);
        if (id < 0 || id == e->m->vocab.eos) break;
        ids[n] = id;
        logits += n_vocab;
        status = forward(e, &id, 1, n, logits);
    }
    if (!s.list) fail("out of memory", "");
    else if (status != SWA_OK) fail("attention refused a step: ", swa_status_str(status));
    if (!s.list || status != SWA_OK) n = -1;
    free(s.list);
    return n;
}
static void print_tokens(const vocab *v, const int32_t *ids, int32_t n) {
    for (int32_t i = 0; i < n; i++) {
        size_t bytes;
        const char *piece = vocab_text(v, ids[i], &bytes);
        fwrite(piece, 1, bytes, stdout);
    }
    puts("\n");
}
/* Token ids, int32 little-endian; NULL and a line on stderr if they do not fit the model. */
static int32_t *read_ids(const char *path, const model *m, int32_t *n) {
    enum { MOST = 1 << 22 };
    FILE *f = fopen(path, "rb");
    unsigned char *raw = (unsigned char *)malloc(MOST);
    size_t size = f && raw ? fread(raw, 1, MOST, f) : 0;
    int32_t *ids = (int32_t *)malloc(size + 4);
    int bad = size < 8 || size == MOST || size % 4 != 0 || !ids;
    *n = (int32_t)(size / 4);
    for (int32_t i = 0; !bad && i < *n; i++) {
        uint64_t id = gguf_le(raw + 4 * (size_t)i, 4);
        bad = id >= (uint64_t)m->n_vocab;
        if (!bad) ids[i] = (int32_t)id;
    }
    if (f) fclose(f);
    free(raw);
    if (!bad) return ids;
    fail(f ? "no token ids of this model in " : "cannot read the held-out text ", path);
    free(ids);
    return NULL;
}
static int held_out_loss(engine *e, const options *o) {
    int32_t n = 0, *ids = read_ids(o->ids, e->m, &n);
    float *logits = ids ? (float *)calloc((size_t)n, (size_t)e->m->n_vocab * sizeof(float)) : NULL;
    swa_status status = logits ? swa_cache_reset(&e->cache, 0, 0, 0) : SWA_ERR_MEMORY;
    if (status == SWA_OK) status = forward_all(e, ids, n, logits);
    if (status == SWA_OK) printf("%.4f per token", loss(logits, ids, n, e->m->n_vocab));
    else if (ids) fail("the held-out text failed: ", swa_status_str(status));
    free(logits);
    free(ids);
    return status == SWA_OK ? 0 : 1;
}
/* Every way writes the same prompt on; all must agree. */
static int show_ways(model *m, const options *o, int64_t window, int32_t *ids, int32_t n_prompt) {
    size_t room = (size_t)n_prompt + (size_t)o->n;
    float *logits = (float *)calloc(room, (size_t)m->n_vocab * sizeof(float));
    int32_t *first = (int32_t *)malloc(room * sizeof *first), n_first = 0;
    int64_t context = (int64_t)room > 4096 ? (int64_t)room : 4096;
    int failed = !logits || !first;
    if (failed) fail("out of memory", "");
    for (int way = 0; way < N_WAYS && !failed; way++) {
        engine e;
        int32_t n = -1;
        swa_status status = engine_open(&e, m, way, window, context, (int32_t)o->chunk, (int)o->threads);
        if (status != SWA_OK) failed = fail("no memory for the cache: ", swa_status_str(status));
        else n = write_text(&e, o, ids, n_prompt, logits);
        if (n < 0) failed = 1;
        if (!failed && way == 0) {
            print_tokens(&m->vocab, ids, n);
            memcpy(first, ids, (size_t)n * sizeof *first);
            n_first = n;
        }
        if (!failed) {
            int same = n == n_first && memcmp(first, ids, (size_t)n * sizeof *first) == 0;
            const char *text = way == 0 ? "above" : same ? "the same" : "DIFFERENT";
            printf("%-8s  %d tokens, %s, held-out loss ", way_name[way], (int)n, text);
            failed = held_out_loss(&e, o) || !same;
            puts("");
        }
        engine_close(&e);
    }
    free(logits);
    free(first);
    return failed;
}

/* Bytes that `context` positions take per sequence, all layers, at two bytes a number. */
static double row_bytes(const model *m, swa_shape shape, int64_t window, int64_t context) {
    swa_window w;
    swa_cache_desc d = cache_desc(m, shape, window, context, &w);
    double once;
    d.k_type = d.v_type = d.tail_type = SWA_F16;
    once = (double)swa_cache_bytes(&d);
    d.n_layers *= 2;
    return (double)swa_cache_bytes(&d) - once;
}
static void show_cache(const model *m, int64_t window) {
    const swa_mla *a = &m->layers[0].attention;
    swa_shape latent = swa_mla_shape(a, 0), mha = swa_mla_shape(a, 1), gqa = mha;
    gqa.n_kv_heads = a->n_heads % 4 == 0 && a->n_heads > 4 ? a->n_heads / 4 : a->n_heads % 2 == 0 ? a->n_heads / 2 : 1;
    if (window == 0 || window > 4096) window = 4096;
    printf("\ncache, f16, %d layers            4096 positions    a window of %ld\n", m->n_layers, (long)window);
    for (int i = 0; i < 3; i++) {
        swa_shape s = i == 0 ? latent : i == 1 ? gqa : mha;
        char what[64];
        int row = s.n_kv_heads * (s.head_dim + s.tail_dim + (s.v_in_k ? 0 : s.v_dim));
        snprintf(what, sizeof what, "%s, %d numbers", i == 0 ? "latent" : i == 1 ? "GQA" : "MHA (expanded)", row);
        printf("  %-28s %15.0f %17.0f\n", what, row_bytes(m, s, 0, 4096), row_bytes(m, s, window, 4096));
    }
}
static void show_choice(const char *title, const swa_mla *a) {
    static const int64_t cached[] = { 0, 16, 64, 256, 1024, 4096, 32768 };
    static const int32_t fresh[] = { 1, 8, 64, 128, 171, 512 };
    printf("\n%s: the path that AUTO takes, and how many times more the other multiplies\n  new \\ cached", title);
    for (int c = 0; c < 7; c++) printf("%14ld", (long)cached[c]);
    puts("");
    for (int i = 0; i < 6; i++) {
        printf("  %-12d", (int)fresh[i]);
        for (int c = 0; c < 7; c++) {
            swa_mla_cost cost[4];
            swa_mla_path path = swa_mla_choose(a, cached[c], fresh[i], cost);
            double ratio = cost[0].macs / cost[1].macs;
            if (path == SWA_MLA_NAIVE) printf("    naive %4.1f", 1 / ratio);
            else printf(" absorbed %4.1f", ratio);
        }
        puts("");
    }
}
/* Multiply-adds of one token over n as the article [MLA] counts them: without W_DQ, W_DKV and the rope parts. */
static double document_macs(const swa_mla *a, int64_t n, int way) {
    double q = a->q_lora_rank > 0 ? a->q_lora_rank : a->hidden, rope = (double)a->n_heads * a->rope_dim;
    swa_mla_cost cost[4];
    if (swa_mla_choose(a, n - 1, 1, cost) == SWA_MLA_AUTO) return 0.0;
    return cost[way].macs - a->hidden * ((double)a->q_lora_rank + a->kv_lora_rank + a->rope_dim)
         - (q + (double)n) * rope;
}
static void show_v3(void) {
    swa_mla a = { 0 }; /* only the sizes count */
    a.hidden = 7168;
    a.n_heads = 128;
    a.q_lora_rank = 1536;
    a.kv_lora_rank = 512;
    a.nope_dim = a.v_dim = 128;
    a.rope_dim = 64;
    show_choice("DeepSeek-V3's sizes", &a);
    puts("\none token over n, multiply-adds as the well-known article counts them:\n"
         "       n     naive (\"before\")    merged (\"after\")    absorbed per head, which it leaves out");
    for (int i = 0; i < 4; i++) {
        static const int64_t n[] = { 1, 26, 4096, 20000 };
        printf("%8ld %20.0f %20.0f %20.0f\n", (long)n[i], document_macs(&a, n[i], 0), document_macs(&a, n[i], 2),
               document_macs(&a, n[i], 1));
    }
}

static int run(model *m, const options *o) {
    size_t bytes = strlen(o->prompt), n_prompt;
    int64_t window = o->window >= 0 ? o->window : m->window;
    int32_t *ids = (int32_t *)malloc((bytes + (size_t)o->n + 2) * sizeof *ids);
    int failed;
    if (!ids) return fail("out of memory for the prompt", "");
    ids[0] = m->vocab.bos;
    n_prompt = 1 + vocab_encode(&m->vocab, o->prompt, bytes, 0, ids + 1); /* (size_t)-1 and 1 is 0 */
    if (n_prompt == 0) failed = fail("out of memory for the prompt", "");
    else if ((int64_t)n_prompt + o->n > m->context) failed = fail("prompt and text exceed the model's context", "");
    else failed = show_ways(m, o, window, ids, (int32_t)n_prompt);
    if (!failed) {
        show_cache(m, window);
        show_choice("this model", &m->layers[0].attention);
        show_v3();
    }
    free(ids);
    return failed;
}
static void usage(void) {
    puts("usage: mla [options]\n"
         "  -m, --model FILE        GGUF model (examples/austen-mla.gguf)\n"
         "  -p, --prompt TEXT       the text to continue\n"
         "  -n, --tokens N          tokens to write (300)\n"
         "  -t, --temperature X     0 = always the likeliest token (0.6)\n"
         "  -s, --seed N            another seed, another text (1)\n"
         "  -w, --window N          attend to N positions; 0 = to all (the model's)\n"
         "  -c, --chunk N           prompt tokens per step (128)\n"
         "      --threads N         when built with OpenMP (1)\n"
         "      --ids FILE          held-out token ids (examples/austen-mla-heldout.ids)");
}
static int parse_int(const char *text, int64_t lo, int64_t hi, int64_t *out) {
    char *end;
    long long v;
    errno = 0;
    v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < lo || v > hi) return 0;
    *out = (int64_t)v;
    return 1;
}
static int parse_value(options *o, const char *name, const char *v) { /* -1 = no such option, 0 = bad value */
    static const struct {
        const char *brief, *name;
    } known[] = { { "-m", "--model" },  { "-p", "--prompt" }, { "", "--ids" },
                  { "-n", "--tokens" }, { "-w", "--window" }, { "-c", "--chunk" },
                  { "", "--threads" },  { "-s", "--seed" },   { "-t", "--temperature" } };
    size_t i = 0, n = sizeof known / sizeof *known;
    char *end;
    while (i < n && strcmp(name, known[i].brief) != 0 && strcmp(name, known[i].name) != 0) i++;
    if (i == n) return -1;
    if (!v) return 0;
    switch (i) {
    case 0: o->model = v; return 1;
    case 1: o->prompt = v; return *v != 0;
    case 2: o->ids = v; return 1;
    case 3: return parse_int(v, 0, 1 << 20, &o->n);
    case 4: return parse_int(v, 0, 1 << 30, &o->window);
    case 5: return parse_int(v, 1, 1 << 16, &o->chunk);
    case 6: return parse_int(v, 1, 1024, &o->threads);
    case 7: return parse_int(v, 0, INT64_MAX, &o->seed);
    default:
        o->temperature = strtod(v, &end);
        return end != v && !*end && o->temperature >= 0.0 && o->temperature <= 100.0;
    }
}

int main(int argc, char **argv) {
    options o = { .model = "examples/austen-mla.gguf",
                  .prompt = "She was",
                  .ids = "examples/austen-mla-heldout.ids",
                  .n = 300,
                  .window = -1,
                  .chunk = 128,
                  .threads = 1,
                  .seed = 1,
                  .temperature = 0.6 };
    model m;
    int failed;
    for (int i = 1; i < argc; i += 2) {
        int ok;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage();
            return 0;
        }
        ok = parse_value(&o, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
        if (ok < 0) return fail("unknown option (--help lists them): ", argv[i]);
        if (ok == 0) return fail("missing or impossible value of option ", argv[i]);
    }
#ifdef _OPENMP
    omp_set_num_threads((int)o.threads);
#else
    if (o.threads > 1) fputs("mla: built without OpenMP, so one thread has to do\n", stderr);
    o.threads = 1;
#endif
    failed = model_open(&m, o.model) != 0;
    if (failed) fprintf(stderr, "mla: %s: %s\n", o.model, m.file.error);
    else failed = run(&m, &o);
    model_close(&m);
    return failed;
}
