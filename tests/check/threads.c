/* threads.c - the parts of every phase on real threads, for TSan and for a plain run: a batch of sequences through two
   layers, decode and chunks mixed, on 1, 2, 3 and 5 threads; rows without a ring; and two caches at the same time. The
   bits have to be those of one thread. The last line is `N passed, N failed, N skipped`. */
#define _POSIX_C_SOURCE 200112L
#ifndef SWA__IMPLEMENTED
#define SWA_IMPLEMENTATION
#endif
#include "../../swa.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEQS = 5,
    LAYERS = 2,
    HEADS = 4,
    KV = 2,
    DIM = 16,
    STEPS = 14,
    CHUNK = 40,
    ROWS = SEQS * CHUNK,
    MAX_THREADS = 5
};
enum { Q = HEADS * DIM, K = KV * DIM };

static int passed, failed;

typedef struct {
    swa_cache cache;
    unsigned char *mem;
    float *q, *k, *v, *out; /* [ROWS][..]: the same rows in every layer and step */
    uint64_t sum;           /* of all output bits */
    int bad;                /* a call that was refused */
} job;

static float *numbers(size_t n, uint32_t seed) {
    float *p = (float *)malloc(n * sizeof(float));
    size_t i;
    if (p == NULL) exit(2);
    for (i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (float)((int)(seed >> 16) - 32768) / 16384.0f;
    }
    return p;
}
static job job_open(void) {
    swa_window windows[LAYERS];
    size_t bytes, room;
    swa_cache_desc d;
    job j;
    memset(&d, 0, sizeof d);
    memset(&j, 0, sizeof j);
    windows[0] = swa_window_sliding(24);
    windows[1] = swa_window_sinks(32, 3);
    d.shape.n_heads = HEADS;
    d.shape.n_kv_heads = KV;
    d.shape.head_dim = DIM;
    d.n_layers = LAYERS;
    d.n_seqs = SEQS;
    d.k_type = SWA_F16;
    d.v_type = SWA_Q8;
    d.windows = windows;
    d.n_windows = LAYERS;
    bytes = swa_cache_bytes(&d);
    room = swa_cache_scratch_bytes(&d, MAX_THREADS);
    j.mem = (unsigned char *)malloc(bytes + room);
    if (j.mem == NULL || swa_cache_init(&j.cache, &d, j.mem, bytes) != SWA_OK
        || swa_cache_set_scratch(&j.cache, j.mem + bytes, room) != SWA_OK)
        exit(2);
    j.q = numbers((size_t)ROWS * Q, 1);
    j.k = numbers((size_t)ROWS * K, 2);
    j.v = numbers((size_t)ROWS * K, 3);
    j.out = numbers((size_t)ROWS * Q, 4);
    j.sum = 14695981039346656037u;
    return j;
}
static void job_close(const job *j) {
    free(j->mem);
    free(j->q);
    free(j->k);
    free(j->v);
    free(j->out);
}
static swa_attn attn_of(const job *j) {
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.q.p = j->q;
    a.k.p = j->k;
    a.v.p = j->v;
    a.out.p = j->out;
    return a;
}
static void add(uint64_t *sum, const float *x, size_t n) {
    const unsigned char *b = (const unsigned char *)x;
    size_t i;
    for (i = 0; i < n * sizeof(float); i++) *sum = (*sum ^ b[i]) * 1099511628211u;
}
/* Runs of step t: some sequences decode, some take a chunk, one sits out. Returns how many. */
static int runs_make(const job *j, int t, swa_run *runs) {
    int s, n = 0;
    memset(runs, 0, SEQS * sizeof *runs);
    for (s = 0; s < SEQS; s++) {
        if ((s + t) % SEQS == 0) continue;
        runs[n].seq = s;
        runs[n].n = (s + t) % 3 == 0 ? 1 + (s * 7 + t * 5) % CHUNK : 1;
        runs[n].pos = swa_cache_end(&j->cache, s);
        n++;
    }
    return n;
}

/* ---- one batch on some threads ---- */

typedef struct {
    pthread_barrier_t gate;
    job *j;
    const swa_rows *rows;
    swa_mode mode;
    int layer, threads, stop, idle; /* idle: a sequence that is not in the step */
    int bad[MAX_THREADS];
} pool;
typedef struct {
    pool *p;
    int part;
} worker;

/* Waits for a layer, does its share of both phases with a join between and behind, and waits again. */
static void *work(void *arg) {
    const worker *w = (const worker *)arg;
    pool *p = w->p;
    int phase;
    for (;;) {
        pthread_barrier_wait(&p->gate);
        if (p->stop) return NULL;
        for (phase = 0; phase < SWA_PHASES; phase++) {
            swa_attn a = attn_of(p->j);
            swa_status status;
            a.mode = p->mode;
            if (p->rows != NULL) status = swa_attention_part(p->rows, &a, phase, w->part, p->threads);
            else status = swa_attend_part(&p->j->cache, p->layer, &a, phase, w->part, p->threads);
            if (status != SWA_OK) p->bad[w->part] = 1;
            pthread_barrier_wait(&p->gate);
        }
    }
}
/* Beside the parts another thread looks at a sequence that sits out. */
static void look(pool *p) {
    const swa_cache *c = &p->j->cache;
    const int64_t end = swa_cache_end(c, p->idle);
    const size_t bytes = swa_cache_save_bytes(c, p->idle);
    unsigned char *blob;
    float k[K], v[K];
    if (end == 0) return;
    blob = (unsigned char *)malloc(bytes);
    if (blob == NULL || swa_cache_read(c, p->idle, p->layer, end - 1, 1, k, v) != SWA_OK
        || swa_cache_save(c, p->idle, blob, bytes) != SWA_OK)
        p->j->bad = 1;
    free(blob);
}
static void layer_run(pool *p) {
    int i;
    for (i = 0; i < 1 + SWA_PHASES; i++) {
        pthread_barrier_wait(&p->gate);
        if (i < SWA_PHASES && p->rows == NULL) look(p);
    }
}
static void pool_run(job *j, int threads) {
    pthread_t thread[MAX_THREADS];
    worker w[MAX_THREADS];
    swa_run runs[SEQS];
    pool p;
    int i, t;
    memset(&p, 0, sizeof p);
    p.j = j;
    p.threads = threads;
    pthread_barrier_init(&p.gate, NULL, (unsigned)threads + 1);
    for (i = 0; i < threads; i++) {
        w[i].p = &p;
        w[i].part = i;
        if (pthread_create(&thread[i], NULL, work, &w[i]) != 0) exit(2);
    }
    for (t = 0; t < STEPS; t++) {
        p.idle = (SEQS - t % SEQS) % SEQS;
        if (swa_step_begin(&j->cache, runs, runs_make(j, t, runs)) != SWA_OK) j->bad = 1;
        for (p.layer = 0; p.layer < LAYERS; p.layer++) {
            for (i = 0; i < 2; i++) { /* a call that only reads leaves words of its own */
                p.mode = i == 0 ? SWA_ATTEND_NO_STORE : SWA_ATTEND;
                layer_run(&p);
                add(&j->sum, j->out, (size_t)swa_step_tokens(&j->cache) * Q);
            }
        }
    }
    p.stop = 1;
    pthread_barrier_wait(&p.gate);
    for (i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        j->bad |= p.bad[i];
    }
    pthread_barrier_destroy(&p.gate);
}
static uint64_t batch(int threads, int *bad) {
    job j = job_open();
    uint64_t sum;
    pool_run(&j, threads);
    sum = j.sum;
    *bad |= j.bad;
    job_close(&j);
    return sum;
}
/* n queries over 900 keys of the caller's; few queries make the library split keys over the parts. */
static uint64_t rows(int n, int threads, int *bad) {
    pthread_t thread[MAX_THREADS];
    worker w[MAX_THREADS];
    float *keys = numbers((size_t)900 * K, 5);
    job j = job_open();
    uint64_t sum = j.sum;
    swa_kv kv;
    swa_rows r;
    pool p;
    int i;
    memset(&kv, 0, sizeof kv);
    memset(&r, 0, sizeof r);
    memset(&p, 0, sizeof p);
    kv.k = kv.v = keys;
    kv.n = 900;
    r.shape.n_heads = HEADS;
    r.shape.n_kv_heads = KV;
    r.shape.head_dim = DIM;
    r.pos = 900 - n;
    r.n_tokens = n;
    r.kv = &kv;
    r.n_kv = 1;
    r.scratch_bytes = swa_attention_bytes(&r, threads);
    r.scratch = malloc(r.scratch_bytes);
    p.j = &j;
    p.rows = &r;
    p.threads = threads;
    pthread_barrier_init(&p.gate, NULL, (unsigned)threads + 1);
    for (i = 0; i < threads; i++) {
        w[i].p = &p;
        w[i].part = i;
        if (pthread_create(&thread[i], NULL, work, &w[i]) != 0) exit(2);
    }
    layer_run(&p);
    p.stop = 1;
    pthread_barrier_wait(&p.gate);
    for (i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        *bad |= p.bad[i];
    }
    pthread_barrier_destroy(&p.gate);
    add(&sum, j.out, (size_t)n * Q);
    job_close(&j);
    free(r.scratch);
    free(keys);
    return sum;
}
static void *whole_batch(void *arg) {
    pool_run((job *)arg, 2);
    return NULL;
}
static void judge(const char *what, int threads, int ok) {
    printf("%-28s %d threads  %s\n", what, threads, ok ? "ok" : "FAILED");
    if (ok) passed++;
    else failed++;
}
int main(void) {
    static const int threads[4] = { 1, 2, 3, MAX_THREADS };
    uint64_t serial[3] = { 0, 0, 0 }, sum;
    pthread_t other;
    job a, b;
    int i, bad = 0;
    for (i = 0; i < 4; i++) {
        sum = batch(threads[i], &bad);
        if (i == 0) serial[0] = sum;
        judge("batch, two layers", threads[i], !bad && sum == serial[0]);
        sum = rows(1, threads[i], &bad);
        if (i == 0) serial[1] = sum;
        judge("rows, one query", threads[i], !bad && sum == serial[1]);
        sum = rows(50, threads[i], &bad);
        if (i == 0) serial[2] = sum;
        judge("rows, 50 queries", threads[i], !bad && sum == serial[2]);
    }
    a = job_open();
    b = job_open();
    if (pthread_create(&other, NULL, whole_batch, &a) != 0) return 2;
    whole_batch(&b);
    pthread_join(other, NULL);
    judge("two caches at once", 2, !a.bad && !b.bad && a.sum == serial[0] && b.sum == serial[0]);
    job_close(&a);
    job_close(&b);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return failed != 0;
}
