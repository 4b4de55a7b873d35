/* The main job, end to end, on the model that ships with the project: examples/generate.c and the headers it is
   made of. The expected losses and the reference in double come from outside swa.h; the rest is equal bits. */
#define _XOPEN_SOURCE 600 /* dup2, mkstemp, P_tmpdir */
#define SWA_IMPLEMENTATION
#define main generate_main /* the whole program, to be called with options of our own */
#include "../examples/generate.c"
#undef main
#include "test.h"
#include <unistd.h>

#define MODEL "examples/austen-w64.gguf"
#define HELD  "examples/austen-heldout.ids"

/* ---- fixture: model and held-out text, loaded once ---- */

static struct {
    gguf g;
    model m;
    int32_t *ids, n;
    int loaded;
} fix; /* the model lives in the file */

static int fixture(void) {
    if (fix.loaded) return 1;
    if (gguf_load(&fix.g, MODEL) == 0 && model_init(&fix.m, &fix.g) == 0) {
        fix.ids = read_ids(HELD, &fix.m, &fix.n);
        fix.loaded = fix.ids != NULL;
    }
    if (!fix.loaded) printf("run from the top of the repository: %s: %s\n", MODEL, fix.g.error);
    return fix.loaded;
}

static setup window_of(int64_t window, int32_t chunk) {
    setup s = { 0 };
    s.window = window;
    s.context = 4096;
    s.chunk = chunk;
    s.threads = 1;
    return s;
}

/* Logits of ids [n] from position start on, in a fresh engine; [n][n_vocab]. */
static float *logits_of(const setup *s, const int32_t *ids, int32_t n, int64_t start) {
    engine e;
    float *out = t_floats((size_t)n * (size_t)fix.m.n_vocab);
    if (CHECK_OK(engine_open(&e, &fix.m, s)) && CHECK_OK(swa_cache_reset(&e.cache, 0, start, 0)))
        CHECK_OK(prefill(&e, ids, n, start, 1, out, NULL));
    engine_close(&e);
    return out;
}

static double relative_error(const float *got, const float *want, size_t n) {
    double off = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)got[i] - (double)want[i];
        off += d * d;
        all += (double)want[i] * (double)want[i];
    }
    return sqrt(off / all);
}

/* ---- a reference in double: the same weights, every position kept, the window a condition on positions ---- */

/* The file's matrices are F16: a number of each, by its bits. Filled at first use: widening costs more than
   multiplying. */
static const double *ref_numbers(void) {
    static double half[1 << 16];
    if (half[0x3c00] < 1.0) {
        for (uint32_t h = 0; h < 1 << 16; h++) half[h] = (double)gguf_f16((uint16_t)h);
    }
    return half;
}
static double ref_weight(const weights *w, int r, int c) {
    const unsigned char *p = w->data + 2 * ((size_t)r * (size_t)w->cols + (size_t)c);
    return ref_numbers()[p[0] + 256 * p[1]];
}

static void ref_product(double *out, const double *x, const weights *w) {
    const double *number = ref_numbers();
    for (int r = 0; r < w->rows; r++) {
        const unsigned char *p = w->data + 2 * (size_t)r * (size_t)w->cols;
        double even = 0, odd = 0; /* two sums, so that no addition waits for the one before it */
        for (int c = 0; c < w->cols; c += 2, p += 4) {
            even += number[p[0] + 256 * p[1]] * x[c];
            if (c + 1 < w->cols) odd += number[p[2] + 256 * p[3]] * x[c + 1];
        }
        out[r] = even + odd;
    }
}

static void ref_norm(double *out, const double *x, const float *w, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += x[i] * x[i];
    for (int i = 0; i < n; i++) out[i] = x[i] / sqrt(sum / n + 1e-5) * (double)w[i];
}

static void ref_rotate(double *x, int heads, int dim, int64_t pos) {
    for (int i = 0; i < heads * dim; i += 2) {
        double angle = (double)pos * pow(10000.0, -(double)(i % dim) / dim), a = x[i], b = x[i + 1];
        x[i] = a * cos(angle) - b * sin(angle);
        x[i + 1] = a * sin(angle) + b * cos(angle);
    }
}

/* out [heads][dim] of the token at t; keys and values [t + 1][kv_heads][dim] */
static void ref_attend(double *out, const double *q, const double *k, const double *v, int t, int window) {
    int dim = fix.m.head_dim, stride = fix.m.n_kv_heads * dim, group = fix.m.n_heads / fix.m.n_kv_heads;
    for (int h = 0; h < fix.m.n_heads; h++) {
        double total = 0;
        for (int i = 0; i < dim; i++) out[h * dim + i] = 0;
        for (int j = 0; j <= t; j++) {
            const double *key = k + j * stride + h / group * dim, *value = v + j * stride + h / group * dim;
            double score = 0, p;
            if (window && t - j >= window) continue;
            for (int i = 0; i < dim; i++) score += q[h * dim + i] * key[i];
            p = exp(score / sqrt(dim)); /* scores of this model are small: no maximum needed in double */
            total += p;
            for (int i = 0; i < dim; i++) out[h * dim + i] += p * value[i];
        }
        for (int i = 0; i < dim; i++) out[h * dim + i] /= total;
    }
}

/* Logits [n][n_vocab], layer by layer over all tokens. */
static double *reference(const int32_t *ids, int n, int window) {
    const model *m = &fix.m;
    int dim = m->dim, kv = m->n_kv_heads * m->head_dim;
    double *x = t_doubles(n * dim), *k = t_doubles(n * kv), *v = t_doubles(n * kv), *q = t_doubles(dim);
    double *h = t_doubles(dim), *a = t_doubles(dim), *g = t_doubles(m->hidden), *u = t_doubles(m->hidden);
    double *out = t_doubles(n * m->n_vocab);
    for (int t = 0; t < n; t++) {
        for (int i = 0; i < dim; i++) x[t * dim + i] = ref_weight(&m->embedding, ids[t], i);
    }
    for (int l = 0; l < m->n_layers; l++) {
        const layer *w = &m->layers[l];
        for (int t = 0; t < n; t++) {
            double *row = x + t * dim;
            ref_norm(h, row, w->attn_norm, dim);
            ref_product(q, h, &w->q);
            ref_product(k + t * kv, h, &w->k);
            ref_product(v + t * kv, h, &w->v);
            ref_rotate(q, m->n_heads, m->head_dim, t);
            ref_rotate(k + t * kv, m->n_kv_heads, m->head_dim, t);
            ref_attend(a, q, k, v, t, window);
            ref_product(h, a, &w->o);
            for (int i = 0; i < dim; i++) row[i] += h[i];
            ref_norm(h, row, w->ffn_norm, dim);
            ref_product(g, h, &w->gate);
            ref_product(u, h, &w->up);
            for (int i = 0; i < m->hidden; i++) g[i] = g[i] / (1 + exp(-g[i])) * u[i];
            ref_product(h, g, &w->down);
            for (int i = 0; i < dim; i++) row[i] += h[i];
        }
    }
    for (int t = 0; t < n; t++) {
        ref_norm(h, x + t * dim, m->out_norm, dim);
        ref_product(out + t * m->n_vocab, h, &m->output);
    }
    return out;
}

/* ---- the model ---- */

TEST(model_loss_with_and_without_window) {
    REQUIRE(fixture());
    setup ring = window_of(64, 128), full = window_of(0, 128), masked = window_of(64, 128);
    size_t numbers = (size_t)fix.n * (size_t)fix.m.n_vocab;
    float *a, *b, *c;
    masked.capacity = 1824;
    CHECK_INT(fix.m.window, 64);
    CHECK_INT(fix.n, 1817);
    a = logits_of(&ring, fix.ids, fix.n, 0);
    b = logits_of(&masked, fix.ids, fix.n, 0);
    c = logits_of(&full, fix.ids, fix.n, 0);
    CHECK_NEAR(loss(a, fix.ids, fix.n, fix.m.n_vocab), 2.1014, 5e-5);
    CHECK_NEAR(loss(c, fix.ids, fix.n, fix.m.n_vocab), 4.4086, 5e-5);
    CHECK_BITS(a, b, numbers);
    CHECK_BITS(a, c, 64 * (size_t)fix.m.n_vocab); /* the window hides nothing yet */
    CHECK(memcmp(a, c, numbers * sizeof *a) != 0);
}

TEST(model_against_double_reference) {
    static const struct { int window, n; } cases[] = { { 64, 330 }, { 0, 200 }, { 7, 100 }, { 1, 40 } };
    REQUIRE(fixture());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setup s = window_of(cases[i].window, 48);
        float *got = logits_of(&s, fix.ids, cases[i].n, 0);
        double *want = reference(fix.ids, cases[i].n, cases[i].window), off = 0, all = 0;
        size_t numbers = (size_t)cases[i].n * (size_t)fix.m.n_vocab;
        for (size_t j = 0; j < numbers; j++) {
            off += ((double)got[j] - want[j]) * ((double)got[j] - want[j]);
            all += want[j] * want[j];
        }
        t_label("W=%d", cases[i].window);
        CHECK_NEAR(sqrt(off / all), 0, 1e-5);
        CHECK_CLOSE(got, want, numbers, 1e-5);
    }
}

TEST(model_chunks_give_equal_bits) {
    static const int32_t chunks[] = { 1, 2, 63, 65, 128, 193, 300 };
    enum { N = 300 };
    REQUIRE(fixture());
    setup s = window_of(64, 64);
    float *want = logits_of(&s, fix.ids, N, 0);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        s.chunk = chunks[i];
        t_label("chunk %d", (int)chunks[i]);
        CHECK_BITS(logits_of(&s, fix.ids, N, 0), want, (size_t)N * (size_t)fix.m.n_vocab);
    }
}

/* Four layers reach back 4 * 63 tokens: a run that begins 252 tokens earlier must give the bits of the long run, which
   make check makes 20,000 tokens long. */
TEST(model_long_text_without_drift) {
    enum { TAIL = 400, REACH = 4 * 63, CHUNK = 256 };
    const int repeats = t_all() ? 10 : 2, LONG = t_all() ? 20000 : 4500;
    REQUIRE(fixture());
    setup s = window_of(64, CHUNK);
    size_t row = (size_t)fix.m.n_vocab;
    int32_t *ids = (int32_t *)t_alloc((size_t)LONG * sizeof *ids), period = fix.n - 1;
    const int32_t early = LONG - TAIL - repeats * period;
    float *got = t_floats(TAIL * row), *want, *first;
    swa_window windows[8];
    swa_cache_desc endless;
    REQUIRE(fix.m.n_layers <= 8);
    engine e;
    for (int32_t i = 0; i < LONG; i++) ids[i] = i == 0 ? fix.ids[0] : fix.ids[1 + (i - 1) % period];
    REQUIRE(early > REACH);
    REQUIRE_OK(engine_open(&e, &fix.m, &s));
    s.context = (int64_t)1 << 40;
    endless = engine_cache(&fix.m, &s, windows);
    CHECK_INT(e.bytes, swa_cache_bytes(&endless)); /* memory does not know how long the text becomes */
    CHECK_OK(prefill(&e, ids, LONG - TAIL, 0, 0, got, NULL));
    for (int32_t i = 0; i < TAIL; i++) {
        CHECK_OK(decode(&e, ids[LONG - TAIL + i], LONG - TAIL + i, got + (size_t)i * row));
    }
    CHECK_INT(swa_cache_end(&e.cache, 0), LONG);
    CHECK(LONG - swa_cache_first(&e.cache, 0, 0) <= 64);
    engine_close(&e);
    want = logits_of(&s, ids + LONG - TAIL - REACH, TAIL + REACH, LONG - TAIL - REACH);
    CHECK_BITS(got, want + REACH * row, TAIL * row);
    first = logits_of(&s, ids, early + TAIL, 0); /* the same words, some repetitions earlier */
    CHECK_NEAR(relative_error(got, first + (size_t)early * row, TAIL * row), 0, 1e-5);
}

TEST(model_warm_up_and_rewind_change_nothing) {
    enum { N = 150 };
    REQUIRE(fixture());
    setup s = window_of(64, 50);
    size_t row = (size_t)fix.m.n_vocab;
    float *want = logits_of(&s, fix.ids, N, 0), *got = t_floats(N * row), *other = t_floats(row);
    engine e;
    REQUIRE_OK(engine_open(&e, &fix.m, &s));
    CHECK_OK(decode(&e, fix.m.vocab.bos, 0, other)); /* a warm-up call, then the text */
    CHECK_STATUS(prefill(&e, fix.ids, N, 0, 1, got, NULL), SWA_ERR_ORDER);
    CHECK_OK(swa_cache_truncate(&e.cache, 0, 0));
    CHECK_OK(prefill(&e, fix.ids, N, 0, 1, got, NULL));
    CHECK_BITS(got, want, N * row);
    CHECK_OK(swa_cache_truncate(&e.cache, 0, N - 1));
    CHECK_OK(decode(&e, fix.ids[7], N - 1, other)); /* another last token, then the right one */
    CHECK(memcmp(other, want + (N - 1) * row, row * sizeof *other) != 0);
    CHECK_OK(swa_cache_truncate(&e.cache, 0, N - 1));
    CHECK_OK(decode(&e, fix.ids[N - 1], N - 1, other));
    CHECK_BITS(other, want + (N - 1) * row, row);
    CHECK_STATUS(swa_cache_truncate(&e.cache, 0, 80), SWA_ERR_LOST); /* 70 tokens back: overwritten */
    CHECK_OK(swa_cache_truncate(&e.cache, 0, N - 1));
    CHECK_OK(decode(&e, fix.ids[N - 1], N - 1, other));
    CHECK_BITS(other, want + (N - 1) * row, row);
    engine_close(&e);
}

TEST(model_text_is_repeatable) {
    enum { V = 512 };
    REQUIRE(fixture());
    REQUIRE(fix.m.n_vocab == V);
    setup s = window_of(64, 64);
    float *logits = logits_of(&s, fix.ids, 40, 0) + 39 * V;
    sampler a = { 0 }, b = { 0 };
    int best = 0, seen[V] = { 0 }, kinds = 0;
    a.list = b.list = (candidate *)t_alloc(V * sizeof *a.list);
    a.temperature = b.temperature = 1.0;
    a.top_p = b.top_p = 0.9;
    a.state = b.state = 7;
    for (int i = 0; i < 300; i++) {
        int32_t id = sample(&a, logits, V);
        CHECK_INT(sample(&b, logits, V), id);
        if (id >= 0 && id < V && !seen[id]++) kinds++;
    }
    CHECK(kinds > 3 && kinds < 200);
    for (int i = 1; i < V; i++) best = logits[i] > logits[best] ? i : best;
    a.temperature = 0;
    CHECK_INT(sample(&a, logits, V), best);
    a.temperature = 1;
    a.top_p = 1e-6;
    CHECK_INT(sample(&a, logits, V), best);
    memset(logits + 100, 0xFF, sizeof *logits); /* a NaN */
    CHECK_INT(sample(&a, logits, V), -1);
}

/* Against choosing the likeliest that is left, again and again: which tokens, in which order, with which shares. */
TEST(sample_draws_from_the_likeliest) {
    enum { V = 60 };
    candidate list[V];
    sampler s = { 0 };
    s.list = list;
    for (int round = 0; round < 300; round++) {
        double p[V], sum = 0, kept = 0, target;
        float logits[V];
        int32_t order[V], n = 0, want = -1;
        uint64_t state = s.state = (uint64_t)round;
        s.temperature = 0.5 + 0.01 * round;
        s.top_p = round % 3 ? 0.3 + 0.002 * round : 1.0;
        for (int i = 0; i < V; i++) logits[i] = (float)t_int(-9, 9) / 2.0f; /* many are equal */
        float most = logits[0];
        for (int i = 1; i < V; i++) most = logits[i] > most ? logits[i] : most;
        for (int i = 0; i < V; i++) sum += p[i] = (double)(float)exp((double)(logits[i] - most) / s.temperature);
        while (n < V && kept < s.top_p * sum) {
            int best = 0;
            for (int i = 1; i < V; i++) best = p[i] > p[best] ? i : best;
            kept += p[best];
            order[n++] = best;
            p[best] = -p[best]; /* taken */
        }
        target = random_unit(&state) * kept;
        for (int i = 0; i < n && want < 0; i++) {
            target += p[order[i]];
            if (target < 0) want = order[i];
        }
        CHECK_INT(sample(&s, logits, V), want < 0 ? order[0] : want);
    }
}

TEST(vocabulary_round_trip) {
    REQUIRE(fixture());
    char *text = (char *)t_alloc(fix.n * 16);
    int32_t *ids = (int32_t *)t_alloc((size_t)fix.n * 16 * sizeof *ids);
    size_t bytes = 0;
    for (int32_t i = 1; i < fix.n; i++) {
        size_t n;
        const char *piece = vocab_text(&fix.m.vocab, fix.ids[i], &n);
        memcpy(text + bytes, piece, n);
        bytes += n;
    }
    CHECK_INT(bytes, 4000);
    CHECK_INT(vocab_encode(&fix.m.vocab, text, bytes, 0, ids), fix.n - 1);
    CHECK(memcmp(ids, fix.ids + 1, (size_t)(fix.n - 1) * sizeof *ids) == 0);
    for (int i = 0; i < 256; i++) {
        char any = (char)i;
        CHECK_INT(vocab_encode(&fix.m.vocab, &any, 1, 0, ids), 1);
        CHECK_INT(ids[0], i + 3);
    }
}

/* ---- the reader ---- */

TEST(gguf_widens_every_half) {
    for (uint32_t h = 0; h < 0x8000; h++) {
        int exponent = (int)(h >> 10), mantissa = (int)(h & 1023);
        double want = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
        float plus = gguf_f16((uint16_t)h), minus = gguf_f16((uint16_t)(h | 0x8000));
        if (exponent == 31) {
            CHECK(mantissa ? plus != plus : plus > FLT_MAX && minus < -FLT_MAX);
        } else {
            CHECK((double)plus == want && (double)minus == -want && !signbit(plus) && signbit(minus));
        }
    }
}

/* Reads a file up to the model and wants a refusal that says why. */
static int refused(const unsigned char *file, size_t size, const char *why) {
    gguf g;
    model m = { 0 };
    int failed = gguf_parse(&g, file, size) != 0 || model_init(&m, &g) != 0, named = strstr(g.error, why) != NULL;
    if (failed && !named) printf("the error is \"%s\", expected \"%s\"\n", g.error, why);
    gguf_free(&g);
    model_free(&m);
    return failed && named && g.error[0];
}

/* The same after `value` was written over `bytes` bytes; the file is mended. */
static int refused_with(unsigned char *file, size_t size, size_t at, uint64_t value, int bytes, const char *why) {
    unsigned char was[8];
    int ok;
    memcpy(was, file + at, sizeof was);
    for (int i = 0; i < bytes; i++) file[at + (size_t)i] = (unsigned char)(value >> 8 * i);
    ok = refused(file, size, why);
    memcpy(file + at, was, sizeof was);
    return ok;
}

/* Where the bytes that follow a name in the file begin. */
static size_t after_name(const unsigned char *file, size_t size, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; i + n <= size; i++) {
        if (memcmp(file + i, name, n) == 0 && gguf_le(file + i - 8, 8) == n) return i + n;
    }
    return 0;
}

/* The name whose key or tensor is damaged, how far behind it, what is written there, and the refusal's reason. */
typedef struct {
    const char *name;
    int offset;
    uint64_t value;
    int bytes;
    const char *why;
} damage;

static void check_damage(unsigned char *file, size_t size, const damage *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const damage *d = &cases[i];
        size_t at = d->name ? after_name(file, size, d->name) : 0;
        t_label("%s%+d = %llu", d->name ? d->name : "file", d->offset, (unsigned long long)d->value);
        if (!CHECK(!d->name || at > 0)) continue;
        CHECK(refused_with(file, size, at + (size_t)d->offset, d->value, d->bytes, d->why));
    }
}

TEST(gguf_refuses_damaged_files) {
    static const damage cases[] = {
        { NULL, 0, 'X', 1, "not a GGUF file" },
        { NULL, 4, 1, 4, "version 1" },
        { NULL, 4, 0x03000000, 4, "little-endian" },
        { NULL, 8, UINT64_MAX, 8, "too short" },
        { NULL, 16, (uint64_t)1 << 62, 8, "too short" },
        { "general.name", 0, 99, 4, "unknown kind 99" },
        { "general.name", 4, UINT64_MAX - 3, 8, "inside the value" },
        { "tokenizer.ggml.tokens", 4, GGUF_ARRAY, 4, "unknown kind 9" }, /* an array of arrays */
        { "tokenizer.ggml.tokens", 8, UINT64_MAX / 4, 8, "inside the value" },
        { "tokenizer.ggml.scores", 8, UINT64_MAX / 4 + 2, 8, "inside the value" },
        { "tokenizer.ggml.add_bos_token", 4, 2, 1, "boolean" },
        { "blk.1.attn_k.weight", -8, 'q', 1, "blk.1.attn_q.weight occurs twice" },
        { "blk.1.attn_k.weight", 0, 5, 4, "5 dimensions" },
        { "blk.1.attn_k.weight", 4, 0, 8, "impossible shape" },
        { "blk.1.attn_k.weight", 4, (uint64_t)1 << 61, 8, "impossible shape" },
        { "blk.1.attn_k.weight", 4, (uint64_t)1 << 40, 8, "cut short" },
        { "blk.1.attn_k.weight", 20, 11, 4, "has type 11" },
        { "blk.1.attn_k.weight", 24, 33, 8, "not aligned" },
        { "blk.1.attn_k.weight", 24, UINT64_MAX - 31, 8, "cut short" },
        { "blk.1.attn_k.weight", 24, 0, 8, "overlap" }, /* where another tensor lies */
        { "blk.1.attn_k.weight", 20, 0, 4, "overlap" }, /* F32: twice as long */
        { "blk.1.attn_k.weight", 20, 12, 4, "no whole blocks" }
    };
    size_t size;
    unsigned char *file = (unsigned char *)read_file(MODEL, &size);
    gguf g;
    REQUIRE(file != NULL);
    for (size_t n = 0; n < 24000; n += n < 300 ? 1 : 61) { /* cut anywhere in the header */
        unsigned char *cut = (unsigned char *)t_alloc(n);
        memcpy(cut, file, n);
        CHECK(refused(cut, n, ""));
    }
    CHECK(refused(file, size - 64, "cut short"));
    check_damage(file, size, cases, sizeof cases / sizeof *cases);
    CHECK_INT(gguf_parse(&g, file, size), 0);
    gguf_free(&g);
    free(file);
}

TEST(model_refuses_files_that_do_not_fit) {
    static const damage cases[] = {
        { "general.architecture", 12, 'g', 1, "architecture" },
        { "llama.block_count", -1, 'X', 1, "lacks llama.block_count" },
        { "llama.block_count", 4, 5, 4, "lacks tensor blk.4.attn_norm.weight" },
        { "llama.block_count", 4, 3, 4, "not supported" }, /* tensors left over */
        { "llama.block_count", 4, 0, 4, "impossible value of llama.block_count" },
        { "llama.embedding_length", 4, 256, 4, "token_embd.weight has another shape" },
        { "llama.attention.head_count", 4, 5, 4, "" },
        { "llama.attention.head_count_kv", 4, 3, 4, "do not fit together" },
        { "llama.attention.head_count_kv", 4, 0, 4, "impossible value" },
        { "llama.attention.head_count_kv", 0, GGUF_F32, 4, "impossible value" },
        { "llama.rope.dimension_count", 4, 31, 4, "do not fit together" },
        { "llama.rope.freq_base", 4, 0, 4, "impossible value" },
        { "llama.rope.freq_base", 4, 0x7fc00000, 4, "impossible value" }, /* a NaN */
        { "blk.1.attn_k.weight", 4, 64, 8, "blk.1.attn_k.weight has another shape" },
        { "blk.1.attn_k.weight", -1, 'X', 1, "lacks tensor blk.1.attn_k.weight" },
        { "tokenizer.ggml.model", 12, 'x', 1, "tokenizer.ggml.model" },
        { "tokenizer.ggml.token_type", 8, 511, 8, "" },
        { "tokenizer.ggml.token_type", 16 + 4 * 100, VOCAB_BYTE, 4, "not named <0xHH>" },
        { "tokenizer.ggml.merges", 24, 'X', 1, "merge" },
        { "tokenizer.ggml.bos_token_id", 4, 512, 4, "impossible value" }
    };
    size_t size;
    unsigned char *file = (unsigned char *)read_file(MODEL, &size);
    REQUIRE(file != NULL);
    check_damage(file, size, cases, sizeof cases / sizeof *cases);
    free(file);
}

/* Random damage to the header: refused, or read within bounds (the sanitizers watch). */
TEST(gguf_survives_random_damage) {
    enum { HEADER = 20000, ROUNDS = 3000 };
    size_t size;
    unsigned char *file = (unsigned char *)read_file(MODEL, &size);
    int read = 0, refused = 0;
    REQUIRE(file != NULL);
    for (int i = 0; i < ROUNDS; i++) {
        size_t at[3];
        unsigned char was[3];
        gguf g;
        vocab v;
        for (int j = 0; j < 3; j++) {
            at[j] = (size_t)t_int(4, HEADER);
            was[j] = file[at[j]];
            file[at[j]] = (unsigned char)(t_int(0, 1) ? t_int(0, 255) : was[j] ^ (1 << t_int(0, 7)));
        }
        memset(&v, 0, sizeof v);
        if (gguf_parse(&g, file, size) == 0 && vocab_init(&v, &g) == 0) read++;
        else refused += g.error[0] != 0;
        vocab_free(&v);
        gguf_free(&g);
        for (int j = 2; j >= 0; j--) file[at[j]] = was[j];
    }
    CHECK(read > 0 && refused > 0);
    CHECK_INT(read + refused, ROUNDS);
    free(file);
}

/* ---- the program: runs in this process, its output caught in files ---- */

typedef struct {
    int code;
    size_t out, err;
    int err_lines;
    char text[4096], errors[4096];
} caught;

static size_t drain(FILE *f, int real, int saved, char *text, size_t room) {
    size_t n;
    fflush(NULL);
    dup2(saved, real);
    close(saved);
    rewind(f);
    n = fread(text, 1, room - 1, f);
    text[n] = 0;
    fclose(f);
    return n;
}

static caught program(const char *const *given) {
    caught c = { 0, 0, 0, 0, "", "" };
    char *argv[16] = { NULL };
    int argc = 1, saved_out, saved_err;
    FILE *out = tmpfile(), *err = tmpfile();
    if (!CHECK(out && err)) exit(2);
    argv[0] = (char *)(uintptr_t) "generate";
    while (given[argc - 1]) {
        argv[argc] = (char *)(uintptr_t)given[argc - 1];
        argc++;
    }
    fflush(NULL);
    saved_out = dup(1);
    saved_err = dup(2);
    dup2(fileno(out), 1);
    dup2(fileno(err), 2);
    c.code = generate_main(argc, argv);
    c.out = drain(out, 1, saved_out, c.text, sizeof c.text);
    c.err = drain(err, 2, saved_err, c.errors, sizeof c.errors);
    for (size_t i = 0; i < c.err; i++) c.err_lines += c.errors[i] == '\n';
    return c;
}
#define PROGRAM(...) program((const char *const[]){ __VA_ARGS__, NULL })

TEST(program_refuses_with_one_line) {
    static char cut[] = P_tmpdir "/swa_test_model_XXXXXX";
    /* clang-format off */
    static const char *const cases[][4] = {
        { "-m", "no/such/file.gguf" }, { "-m", "examples" }, { "-m", "examples/generate.c" }, { "-m", HELD },
        { "-m", cut }, { "-p", "" }, { "-f", "no/such/file" }, { "-f", "examples" }, { "-f", MODEL },
        { "-n", "-1" }, { "-n" }, { "-n", "7x" }, { "-n", "100000" }, { "--bogus", "1" }, { "-t", "nan" },
        { "--top-p", "0" }, { "-c", "0" }, { "-w", "-2" }, { "--threads", "0" }, { "--seed", "" },
        { "--context", "5" }, { "--compare", "-w", "0" }, { "--compare", "--ids", MODEL },
        { "--compare", "--ids", "no/such/file" } };
    /* clang-format on */
    int fd = mkstemp(cut);
    size_t size;
    char *file = read_file(MODEL, &size);
    REQUIRE(fd >= 0 && file != NULL);
    CHECK(write(fd, file, size / 2) == (ssize_t)(size / 2));
    close(fd);
    free(file);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        caught c = program(cases[i]);
        t_label("generate %s %s %s", cases[i][0], cases[i][1] ? cases[i][1] : "", cases[i][2] ? cases[i][2] : "");
        CHECK_INT(c.code, 1);
        CHECK_INT(c.err_lines, 1);
        CHECK_INT(c.out, 0);
    }
    unlink(cut);
}

TEST(program_writes_text) {
    caught a = PROGRAM("-p", "It was", "-n", "60"), b = PROGRAM("-p", "It was", "-n", "60", "-c", "2");
    caught c = PROGRAM("-p", "It was", "-n", "60", "-s", "2"), d = PROGRAM("--help");
    CHECK_INT(a.code, 0);
    CHECK_INT(a.err_lines, 2);
    CHECK(strncmp(a.text, "It was", 6) == 0 && a.out > 60);
    CHECK(strcmp(a.text, b.text) == 0);
    CHECK(strcmp(a.text, c.text) != 0);
    CHECK(d.code == 0 && strstr(d.text, "--compare") != NULL);
}

/* The model with a hole behind it, so that it is large enough to be worth a line while it is read, and a long text. */
TEST(program_shows_how_far_it_is) {
    static char large[] = P_tmpdir "/swa_test_model_XXXXXX", text[] = P_tmpdir "/swa_test_model_XXXXXX";
    int fd = mkstemp(large), words = mkstemp(text);
    size_t size;
    char *file = read_file(MODEL, &size), *step;
    caught c;
    REQUIRE(fd >= 0 && words >= 0 && file != NULL);
    CHECK(write(fd, file, size) == (ssize_t)size && ftruncate(fd, (1 << 26) + 4096) == 0);
    for (int i = 0; i < 600; i++) CHECK(write(words, "Emma ", 5) == 5);
    close(fd);
    close(words);
    free(file);
    c = PROGRAM("-m", large, "-f", text, "-n", "1");
    CHECK_INT(c.code, 0);
    CHECK(strstr(c.errors, "\rload: 0 of 64 MB") != NULL && strstr(c.errors, "\rload: 64 of 64 MB\n") != NULL);
    step = strstr(c.errors, "\rprefill: "); /* counted more than once */
    CHECK(step != NULL && strstr(step + 1, "\rprefill: ") != NULL);
    unlink(large);
    unlink(text);
}

/* Every matrix is read where the file is mapped. */
TEST(model_copies_no_weights) {
    REQUIRE(fixture());
    const model *m = &fix.m;
    const unsigned char *first = fix.g.file, *last = first + fix.g.mapped;
    CHECK(fix.g.mapped > 1 << 20);
    for (int l = 0; l < m->n_layers; l++) {
        const layer *w = &m->layers[l];
        const weights *all[] = { &w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down, &m->embedding, &m->output };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            size_t bytes = (size_t)all[i]->rows * gguf_bytes(all[i]->type, (size_t)all[i]->cols);
            CHECK(all[i]->data > first && all[i]->data + bytes <= last);
        }
    }
}

TEST(program_measures_itself) {
    caught c = PROGRAM("--bench", "--context", "900");
    CHECK_INT(c.code, 0);
    CHECK_INT(c.err, 0);
    CHECK(strstr(c.text, "weights:") != NULL && strstr(c.text, "products with one token:") != NULL);
    CHECK(strstr(c.text, "\n      256 ") != NULL && strstr(c.text, "\n     1024 ") == NULL);
}

TEST(program_compares_three_ways) {
    static char few[] = P_tmpdir "/swa_test_model_XXXXXX";
    enum { FEW = 200 * 4 };
    int ids = mkstemp(few);
    size_t size;
    char *all = read_file(HELD, &size);
    caught c = PROGRAM("--compare", "-n", "80");
    CHECK_INT(c.code, 0);
    CHECK_INT(c.err, 0);
    CHECK(strstr(c.text, "text: 2.1014 per token") != NULL);
    CHECK(strstr(c.text, "text: 4.4086 per token") != NULL);
    CHECK(strstr(c.text, "identical bit for bit") != NULL);
    CHECK(strstr(c.text, "1 and 3: different") != NULL);
    /* of a short text, nothing lies outside a large window */
    REQUIRE(ids >= 0 && all != NULL && size > FEW);
    CHECK(write(ids, all, FEW) == FEW);
    free(all);
    close(ids);
    c = PROGRAM("--compare", "-n", "80", "-w", "5000", "--ids", few);
    unlink(few);
    CHECK_INT(c.code, 0);
    CHECK(strstr(c.text, "1 and 3: identical") != NULL);
}
