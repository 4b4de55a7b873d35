/* speed.h - what `generate --bench` measures: how fast weights are read, with and without multiplying, and tokens per
   second behind contexts of several lengths, with a ring and with a cache of full length, in percent of what reading
   the same bytes allows. */
#ifndef SPEED_H_INCLUDED
#define SPEED_H_INCLUDED
#include "engine.h"
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static double seconds(void) {
#ifdef _OPENMP
    return omp_get_wtime();
#else
    return (double)clock() / CLOCKS_PER_SEC; /* one thread: processor time is the time spent */
#endif
}

/* ---- memory bandwidth ---- */

#ifdef __GNUC__
typedef uint64_t lanes __attribute__((vector_size(16)));
#else
typedef uint64_t lanes;
#endif

/* Adds up n bytes, a multiple of 64, and fetches what lies `ahead` bytes further (0 = the hardware alone): nothing but
   reading. */
static uint64_t read_bytes(const unsigned char *p, size_t n, size_t ahead) {
    enum { MOST = 64 / sizeof(lanes) };
    lanes sum[MOST], word;
    uint64_t all = 0, part;
    memset(sum, 0, sizeof sum);
    for (size_t i = 0; i < n; i += 64) {
#ifdef __GNUC__
        if (ahead) __builtin_prefetch(p + i + ahead, 0, 2);
#endif
        for (size_t j = 0; j < MOST; j++) {
            memcpy(&word, p + i + j * sizeof word, sizeof word);
            sum[j] += word;
        }
    }
    for (size_t j = 0; j < 64; j += sizeof part) {
        memcpy(&part, (const char *)sum + j, sizeof part);
        all += part;
    }
    return all;
}

/* What a sweep does with each matrix, and what it found. */
typedef struct {
    int multiply; /* 1 = with one token, 0 = read it only, fetching so far ahead: */
    size_t ahead;
    float *out; /* [most rows of a matrix] */
    double bytes;
    uint64_t sum;
} sweep;

static void read_matrix(const weights *w, sweep *s) {
    enum { SHARE = 1 << 17 }; /* bytes */
    size_t bytes = (size_t)w->rows * gguf_bytes(w->type, (size_t)w->cols) / 64 * 64, ahead = s->ahead;
    long shares = (long)((bytes + SHARE - 1) / SHARE);
    uint64_t all = 0;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) reduction(+ : all)
#endif
    for (long i = 0; i < shares; i++) {
        size_t from = (size_t)i * SHARE, n = bytes - from < SHARE ? bytes - from : SHARE;
        all += read_bytes(w->data + from, n, ahead);
    }
    s->sum += all;
}

/* Every matrix of the model, but for experts, from the first to the last, so that those of a model larger than the
   caches come from memory. Bytes per second. */
static double sweep_model(engine *e, sweep *s) {
    const model *m = e->m;
    size_t n = m->kind->flags & EXPERTS ? 4 : 7;
    double start = seconds();
    s->bytes = 0;
    for (int l = 0; l <= m->n_layers; l++) {
        const layer *w = &m->layers[l < m->n_layers ? l : 0];
        const weights *all[] = { &w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down };
        for (size_t i = 0; i < (l < m->n_layers ? n : 1); i++) {
            const weights *now = l < m->n_layers ? all[i] : &m->output;
            if (s->multiply) product(s->out, e->x, now, 1, &e->space);
            else read_matrix(now, s);
            s->bytes += (double)now->rows * (double)gguf_bytes(now->type, (size_t)now->cols);
        }
    }
    return s->bytes / (seconds() - start + 1e-9);
}

/* How the weights are read fastest here: the distance of the fetch goes into *s. Bytes per second. */
static double sweep_best(engine *e, sweep *s) {
    static const size_t ahead[] = { 0, 1024, 4096, 8192 };
    double best = 0;
    for (size_t i = 0; i < 3 * sizeof ahead / sizeof *ahead; i++) {
        sweep now = { 0 };
        double rate;
        now.ahead = ahead[i / 3];
        rate = sweep_model(e, &now);
        if (rate > best) *s = now;
        if (rate > best) best = rate;
    }
    return best;
}

/* In turns, because what the memory of a shared machine gives changes: the fastest of each. 0 = no memory. */
static int show_bandwidth(engine *e, sweep *read) {
    enum { TURNS = 5 };
    const model *m = e->m;
    sweep multiply = { 0 };
    double best[2] = { sweep_best(e, read), 0 };
    size_t q_dim = (size_t)m->n_heads * (size_t)m->head_dim;
    multiply.multiply = 1;
    multiply.out = (float *)calloc((size_t)m->n_vocab + (size_t)m->dim + (size_t)m->hidden + q_dim, sizeof(float));
    if (!multiply.out) return 0;
    for (int turn = 0; turn < 2 * TURNS; turn++) {
        double rate = sweep_model(e, turn % 2 ? read : &multiply);
        if (rate > best[turn % 2 == 0]) best[turn % 2 == 0] = rate;
    }
    printf("weights: %.1f MB, read at %.1f GB/s; products with one token: %.1f GB/s, %.0f %% of that%s\n",
           read->bytes / 1e6, best[0] / 1e9, best[1] / 1e9, 100 * best[1] / best[0], read->sum == 1 ? " " : "");
    free(multiply.out);
    return 1;
}

/* ---- decode behind a context ---- */

/* n positions of arbitrary keys and values: what a prefill would leave, without its work. */
static swa_status fill_cache(engine *e, int64_t n) {
    const model *m = e->m;
    size_t row = (size_t)m->n_kv_heads * (size_t)m->head_dim;
    swa_attn a = { 0 };
    swa_status status = SWA_OK;
    a.mode = SWA_STORE_ONLY;
    a.k.p = e->k;
    a.v.p = e->v;
    for (size_t i = 0; i < row * (size_t)e->chunk; i++) e->k[i] = e->v[i] = (float)((int)(i * 31 % 64) - 32) / 64.0f;
    for (int64_t pos = 0; status == SWA_OK && pos < n; pos += e->chunk) {
        status = swa_step_one(&e->cache, 0, pos, (int32_t)(n - pos < e->chunk ? n - pos : e->chunk));
        for (int l = 0; status == SWA_OK && l < m->n_layers; l++) status = swa_attend(&e->cache, l, &a);
    }
    return status;
}

/* What decode has to read for one token behind n positions: its weights, and the rows it sees of keys and values. */
static double token_bytes(const model *m, const setup *s, int64_t n) {
    double row = 2.0 * (double)sizeof(float) * m->n_kv_heads * m->head_dim, bytes = 0;
    for (int l = 0; l <= m->n_layers; l++) {
        const layer *w = &m->layers[l < m->n_layers ? l : 0];
        const weights *all[] = { &w->q, &w->k, &w->v, &w->o, &w->router, &w->gate, &w->up, &w->down };
        int64_t window = w->local || m->window == 0 ? s->window : 0;
        for (size_t i = 0; i < (l < m->n_layers ? 8 : 1); i++) {
            const weights *now = l < m->n_layers ? all[i] : &m->output;
            double share = i >= 5 && m->n_experts ? (double)m->n_used / m->n_experts : 1.0;
            if (now->data) bytes += share * now->rows * (double)gguf_bytes(now->type, (size_t)now->cols);
        }
        if (l < m->n_layers) bytes += row * (double)(window > 0 && window < n ? window : n);
    }
    return bytes;
}

/* Behind n positions, by at least 8 tokens and a third of a second, with the limit measured before and after. */
typedef struct {
    double tokens, percent, bytes;
} speed; /* per second, of the limit; of the cache */
static int decode_speed(const model *m, const setup *s, int64_t n, sweep *read, float *logits, speed *out) {
    engine e;
    double start, spent = 0, before, after;
    int tokens = 0;
    swa_status status = engine_open(&e, m, s);
    if (status == SWA_OK) status = fill_cache(&e, n);
    if (status == SWA_OK) status = decode(&e, 0, n, logits); /* once to warm up */
    before = status == SWA_OK ? sweep_model(&e, read) : 1;
    start = seconds();
    while (status == SWA_OK && (tokens < 8 || spent < 0.35) && tokens < 512) {
        status = decode(&e, 0, n + ++tokens, logits);
        spent = seconds() - start;
    }
    after = status == SWA_OK ? sweep_model(&e, read) : 1;
    engine_close(&e);
    out->tokens = tokens / (spent + 1e-9);
    out->percent = 100 * out->tokens * token_bytes(m, s, n) / (before > after ? before : after);
    out->bytes = (double)engine_rows(m, s);
    return status == SWA_OK;
}

/* Up to `context` positions. ring: the windows of the model or of the setup; full: every position kept and attended
   to. */
static int show_speed(const model *m, const setup *base, int64_t context) {
    enum { SPARE = 600 }; /* positions for the tokens that are decoded */
    float *logits = (float *)calloc((size_t)m->n_vocab, sizeof *logits);
    sweep read = { 0 };
    engine e;
    int done = engine_open(&e, m, base) == SWA_OK && logits && show_bandwidth(&e, &read);
    engine_close(&e);
    if (done) puts("                                     ring                          full cache");
    if (done) puts("  context   tokens/s  % of reading        MB   tokens/s  % of reading        MB");
    for (int64_t n = 256; done && n + SPARE <= context && n <= 65536; n *= 4) {
        speed ring, full;
        setup s = *base;
        s.context = n + SPARE;
        if (s.window > s.context) s.window = s.context;
        done = decode_speed(m, &s, n, &read, logits, &ring);
        s.window = 0;
        done = done && decode_speed(m, &s, n, &read, logits, &full);
        if (done)
            printf("%9ld %10.1f %13.0f %9.1f %10.1f %13.0f %9.1f\n", (long)n, ring.tokens, ring.percent,
                   ring.bytes / 1e6, full.tokens, full.percent, full.bytes / 1e6);
        fflush(stdout);
    }
    free(logits);
    return done;
}
#endif /* SPEED_H_INCLUDED */
