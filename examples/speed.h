/* speed.h - what `generate --bench` measures: how fast weights are read, with and without multiplying, and tokens per
   second behind contexts of several lengths, with a ring and with a cache of full length. */
#ifndef SPEED_H_INCLUDED
#define SPEED_H_INCLUDED
#include "engine.h"
#include <time.h>
#ifdef _OPENMP
#  include <omp.h>
#endif

static double seconds(void) {
#ifdef _OPENMP
    return omp_get_wtime();
#else
    return (double)clock() / CLOCKS_PER_SEC;     /* one thread: processor time is the time spent */
#endif
}

/* ---- memory bandwidth ---- */

/* Adds up n words: nothing but reading. */
static uint64_t read_words(const unsigned char *p, size_t n) {
    uint64_t sum[8] = { 0 }, word;
    for (size_t i = 0; i + 8 <= n; i += 8) {
        for (size_t j = 0; j < 8; j++) {
            memcpy(&word, p + 8 * (i + j), sizeof word);
            sum[j] += word;
        }
    }
    for (int j = 1; j < 8; j++) sum[0] += sum[j];
    return sum[0];
}

static double read_matrix(const weights *w, uint64_t *sum) {    /* seconds */
    enum { SHARE = 1 << 14 };    /* words */
    size_t words = (size_t)w->rows * gguf_bytes(w->type, (size_t)w->cols) / 8;
    long shares = (long)((words + SHARE - 1) / SHARE);
    uint64_t all = 0;
    double start = seconds();
#ifdef _OPENMP
#  pragma omp parallel for schedule(static) reduction(+ : all)
#endif
    for (long i = 0; i < shares; i++) {
        size_t from = (size_t)i * SHARE, n = words - from < SHARE ? words - from : SHARE;
        all += read_words(w->data + 8 * from, n);
    }
    *sum += all;
    return seconds() - start;
}

/* Every matrix of the model, but for experts: read, or multiplied with one token, from the first to the last, so that
   those of a model larger than the caches come from memory. Seconds. */
static double sweep(engine *e, int multiply, float *out, double *bytes, uint64_t *sum) {
    const model *m = e->m;
    size_t n = m->kind->flags & EXPERTS ? 4 : 7;
    double spent = 0;
    *bytes = 0;
    for (int l = 0; l <= m->n_layers; l++) {
        const layer *w = &m->layers[l < m->n_layers ? l : 0];
        const weights *all[] = { &w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down };
        for (size_t i = 0; i < (l < m->n_layers ? n : 1); i++) {
            const weights *now = l < m->n_layers ? all[i] : &m->output;
            double start = seconds();
            if (multiply) product(out, e->x, now, 1, &e->space);
            spent += multiply ? seconds() - start : read_matrix(now, sum);
            *bytes += (double)now->rows * (double)gguf_bytes(now->type, (size_t)now->cols);
        }
    }
    return spent;
}

/* In turns, because what the memory of a shared machine gives changes: the fastest of each. */
static void show_bandwidth(engine *e) {
    enum { TURNS = 5 };
    const model *m = e->m;
    size_t q_dim = (size_t)m->n_heads * (size_t)m->head_dim;
    size_t most = (size_t)m->n_vocab + (size_t)m->dim + (size_t)m->hidden + q_dim;     /* rows of any of them */
    float *out = (float *)calloc(most, sizeof *out);
    double best[2] = { 1e30, 1e30 }, bytes = 0;
    uint64_t sum = 0;
    for (int turn = 0; out && turn < 2 * TURNS; turn++) {
        double spent = sweep(e, turn % 2, out, &bytes, &sum) + 1e-9;
        if (spent < best[turn % 2]) best[turn % 2] = spent;
    }
    printf("products of matrices: %.1f MB at %.1f GB/s; reading them only: %.1f GB/s%s\n", bytes / 1e6,
           bytes / 1e9 / best[1], bytes / 1e9 / best[0], sum == 1 ? " " : "");
    free(out);
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

/* Tokens per second behind n positions, by at least 8 tokens and a third of a second; < 0 = it did not work. */
static double decode_speed(const model *m, const setup *s, int64_t n, float *logits) {
    engine e;
    double start, spent = 0;
    int tokens = 0;
    swa_status status = engine_open(&e, m, s);
    if (status == SWA_OK) status = fill_cache(&e, n);
    if (status == SWA_OK) status = decode(&e, 0, n, logits);             /* once to warm up */
    start = seconds();
    while (status == SWA_OK && (tokens < 8 || spent < 0.35) && tokens < 512) {
        status = decode(&e, 0, n + ++tokens, logits);
        spent = seconds() - start;
    }
    engine_close(&e);
    return status == SWA_OK ? tokens / spent : -1.0;
}

/* ring: the windows of the model or of the setup; full: every position kept and attended to. */
static int show_speed(const model *m, const setup *base) {
    enum { SPARE = 600 };    /* positions for the tokens that are decoded */
    float *logits = (float *)calloc((size_t)m->n_vocab, sizeof *logits);
    engine e;
    int done = engine_open(&e, m, base) == SWA_OK && logits;
    if (done) show_bandwidth(&e);
    engine_close(&e);
    if (done) printf("%9s %28s %28s\n", "context", "ring: tokens/s, MB", "full cache: tokens/s, MB");
    for (int64_t n = 256; done && n + SPARE <= m->context && n <= 65536; n *= 4) {
        double speed[2], bytes[2];
        for (int way = 0; way < 2; way++) {
            setup s = *base;
            s.context = n + SPARE;
            if (way == 1 || s.window > s.context) s.window = way == 1 ? 0 : s.context;
            speed[way] = decode_speed(m, &s, n, logits);
            bytes[way] = (double)engine_rows(m, &s);
        }
        printf("%9ld %19.1f %8.1f %19.1f %8.1f\n", (long)n, speed[0], bytes[0] / 1e6, speed[1], bytes[1] / 1e6);
        fflush(stdout);
        done = speed[0] > 0 && speed[1] > 0;
    }
    free(logits);
    return done;
}
#endif /* SPEED_H_INCLUDED */
