/* common.h - what every program in this folder needs: clock, memory, data, threads, statistics, an oracle.
   Include ../swa.h first, with _GNU_SOURCE defined. */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#define MAX_THREADS 16
#define MAX_SAMPLES 64

/* ---- clock ---- */

static double clock_s(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static double now(void) { return clock_s(CLOCK_MONOTONIC); }
static double cpu_now(void) { return clock_s(CLOCK_THREAD_CPUTIME_ID); }

static void die(const char *what) {
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static inline void must(swa_status status, const char *what) /* not every program has calls to check */
{
    if (status == SWA_OK) return;
    fprintf(stderr, "bench: %s: %s\n", what, swa_status_str(status));
    exit(1);
}

/* "1,2" -> {1, 2}; returns how many, 0 when one of them makes no sense. */
static int parse_threads(const char *text, int *threads, int most) {
    int n = 0;
    for (const char *t = text; t && n < most; t = strchr(t, ',') ? strchr(t, ',') + 1 : NULL) {
        threads[n] = atoi(t);
        if (threads[n] < 1 || threads[n] > MAX_THREADS) return 0;
        n++;
    }
    return n;
}

/* A word of the command line: a flag that it sets, or where the text behind it goes. */
typedef struct {
    const char *word;
    int *flag;
    const char **text;
} option;

/* 0 if a word is unknown or lacks its text. */
static int parse_options(int argc, char **argv, const option *known, size_t n) {
    for (int i = 1; i < argc; i++) {
        size_t k = 0;
        while (k < n && strcmp(argv[i], known[k].word) != 0) k++;
        if (k == n || (known[k].text && i + 1 == argc)) return 0;
        if (known[k].flag) *known[k].flag = 1;
        if (known[k].text) *known[k].text = argv[++i];
    }
    return 1;
}

/* ---- memory ---- */

/* Huge pages are worth 1.5 times the bandwidth of a plain stream, so both sides of every comparison get them. */
static void *big_alloc(size_t bytes) {
    void *p = NULL;
    size_t page = (size_t)2 << 20;
    bytes = (bytes + page - 1) / page * page;
    if (posix_memalign(&p, page, bytes) != 0 || p == NULL) die("out of memory");
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    madvise(p, bytes, MADV_HUGEPAGE);
#endif
    return p;
}

/* Buffers by purpose, which only grow: a page is touched for the first time once, not once per case. */
enum {
    BUF_Q,
    BUF_K,
    BUF_V,
    BUF_NORMAL_Q,
    BUF_NORMAL_K,
    BUF_NORMAL_V,
    BUF_OUT,
    BUF_CACHE,
    BUF_OTHER,
    BUF_SCRATCH,
    BUF_CHECK,
    BUF_KREAD,
    BUF_VREAD,
    BUFFERS
};
typedef struct {
    void *p;
    size_t bytes;
} buffer;
static buffer buffers[BUFFERS];

static void *buffer_get(int which, size_t bytes) {
    buffer *b = &buffers[which];
    if (b->bytes < bytes) {
        free(b->p);
        b->p = big_alloc(bytes);
        b->bytes = bytes;
    }
    return b->p;
}

/* A cache in a buffer, with `room` bytes of scratch behind it: two caches of a case must not share what grows. Scratch
   is zeroed: K of a tile that is not full is multiplied whole, and where a case before left int8 there, its bytes are
   subnormal floats, for which Intel's FMAs take ten times as long (an empty window's call 19 us for 5.3). */
static swa_status cache_make(swa_cache *cache, const swa_cache_desc *desc, size_t room, int slot) {
    size_t bytes = swa_cache_bytes(desc);
    char *mem = (char *)buffer_get(slot, bytes + room);
    swa_status st = bytes && room ? swa_cache_init(cache, desc, mem, bytes) : SWA_ERR_ARG;
    memset(mem + bytes, 0, room);
    return st == SWA_OK ? swa_cache_set_scratch(cache, mem + bytes, room) : st;
}

/* ---- data ---- */

static uint64_t rng_next(uint64_t *s) {
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

/* Uniform in [-1, 1). */
static float rng_uniform(uint64_t *s) { return (float)(int32_t)(rng_next(s) >> 40) * (1.0f / 8388608.0f) - 1.0f; }

/* About normal(0, 1): the sum of four uniform 16-bit numbers, scaled. */
static float rng_normal(uint64_t *s) {
    uint64_t u = rng_next(s);
    int32_t low = (int32_t)(u & 0xffff) + (int32_t)(u >> 16 & 0xffff);
    int32_t high = (int32_t)(u >> 32 & 0xffff) + (int32_t)(u >> 48);
    return (float)(low + high - 131070) * (1.0f / 37837.2f);
}

/* Inputs: at least n random numbers, which = BUF_Q..BUF_NORMAL_V; what was filled before stays. The accuracy that
   the project promises is for uniform data, and for q8 for normal data. */
static float *inputs_get(int which, size_t n) {
    size_t had = buffers[which].bytes;
    float *p = (float *)buffer_get(which, n * sizeof *p);
    if (buffers[which].bytes != had) {
        uint64_t s = 88172645463325252u + (uint64_t)which * 1000003u;
        for (size_t i = 0; i < buffers[which].bytes / sizeof *p; i++)
            p[i] = which < BUF_NORMAL_Q ? rng_uniform(&s) : rng_normal(&s);
    }
    return p;
}

static uint16_t to_bf16(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static float from_bf16(uint16_t h) {
    uint32_t u = (uint32_t)h << 16;
    float x;
    memcpy(&x, &u, 4);
    return x;
}

/* IEEE half, round to nearest even; the data here never overflows it. */
static uint16_t to_f16(float x) {
    uint32_t u, sign;
    memcpy(&u, &x, 4);
    sign = u >> 16 & 0x8000;
    u &= 0x7fffffff;
    if (u < 0x38800000) { /* subnormal half: let the FPU round at its last bit */
        float magic = 0.5f, y;
        uint32_t m;
        memcpy(&y, &u, 4);
        y += magic;
        memcpy(&m, &y, 4);
        return (uint16_t)(sign | (m - 0x3f000000));
    }
    u += 0xc8000fff + (u >> 13 & 1);
    return (uint16_t)(sign | u >> 13);
}
static float from_f16(uint16_t h) {
    float x = ldexpf((float)((h & 0x3ff) | (h & 0x7c00 ? 0x400 : 0)), (h & 0x7c00 ? h >> 10 & 31 : 1) - 25);
    return h & 0x8000 ? -x : x;
}

/* What a ring of this type keeps of x. Q8 and all types after it are read back from the ring instead. */
static float rounded(swa_type type, float x) {
    if (type == SWA_F16) return from_f16(to_f16(x));
    if (type == SWA_BF16) return from_bf16(to_bf16(x));
    return x;
}
static size_t type_bytes(swa_type type) { return type == SWA_F32 ? 4 : type == SWA_F16 || type == SWA_BF16 ? 2 : 1; }
static const char *type_name(swa_type type) {
    static const char *const names[] = {
        "default", "f32", "f16", "bf16", "q8", "", "", "", "", "q8_32", "e4m3", "e5m2"
    };
    return names[type];
}

/* dst[i] = src[i % period] in the given type (f32, f16, bf16). */
static void convert(void *dst, swa_type type, const float *src, size_t n) {
    uint16_t *h = (uint16_t *)dst;
    if (type == SWA_F32) memcpy(dst, src, n * 4);
    else if (type == SWA_F16)
        for (size_t i = 0; i < n; i++) h[i] = to_f16(src[i]);
    else
        for (size_t i = 0; i < n; i++) h[i] = to_bf16(src[i]);
}

/* ---- threads ---- */

/* n workers, the caller is number 0. They spin: waking a sleeper takes longer than a layer of decode. */

typedef struct {
    int n, waiting;
    unsigned turn;
} barrier;

static void barrier_wait(barrier *b) {
    unsigned turn = __atomic_load_n(&b->turn, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&b->waiting, 1, __ATOMIC_ACQ_REL) == b->n) {
        __atomic_store_n(&b->waiting, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&b->turn, turn + 1, __ATOMIC_RELEASE);
        return;
    }
    for (int spin = 0; __atomic_load_n(&b->turn, __ATOMIC_ACQUIRE) == turn; spin++)
        if (spin > 20000) sched_yield();
}

typedef void (*pool_fn)(void *arg, int part, int parts);
typedef struct pool pool;
typedef struct {
    pool *p;
    int id;
} pool_worker;
struct pool {
    int n, quit;
    barrier bar;
    pool_fn fn;
    void *arg;
    double lost[MAX_THREADS]; /* seconds that another process or the kernel took from this worker    */
    pthread_t thread[MAX_THREADS];
    pool_worker worker[MAX_THREADS];
#ifdef __linux__
    cpu_set_t before;
#endif
};

/* One core per worker where the system lets us choose. */
static void pool_pin(int id) {
#ifdef __linux__
    cpu_set_t all, one;
    int seen = 0;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) == 0) return;
    id %= CPU_COUNT(&all);
    for (size_t c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &all) && seen++ == id) {
            CPU_ZERO(&one);
            CPU_SET(c, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
#else
    (void)id;
#endif
}

static void pool_work(pool *p, int id) {
    double wall = now(), cpu = cpu_now();
    p->fn(p->arg, id, p->n);
    p->lost[id] = (now() - wall) - (cpu_now() - cpu);
}

static void *pool_main(void *arg) {
    pool_worker *w = (pool_worker *)arg;
    pool_pin(w->id);
    for (;;) {
        barrier_wait(&w->p->bar);
        if (w->p->quit) return NULL;
        pool_work(w->p, w->id);
        barrier_wait(&w->p->bar);
    }
}

static void pool_start(pool *p, int n) {
    memset(p, 0, sizeof *p);
    p->n = p->bar.n = n;
    for (int i = 1; i < n; i++) {
        p->worker[i].p = p;
        p->worker[i].id = i;
        if (pthread_create(&p->thread[i], NULL, pool_main, &p->worker[i]) != 0) die("no thread");
    }
#ifdef __linux__
    sched_getaffinity(0, sizeof p->before, &p->before);
#endif
    if (n > 1) pool_pin(0); /* alone, the scheduler may move us away from other people's work */
}

static void pool_stop(pool *p) {
    p->quit = 1;
    barrier_wait(&p->bar);
    for (int i = 1; i < p->n; i++) pthread_join(p->thread[i], NULL);
#ifdef __linux__
    sched_setaffinity(0, sizeof p->before, &p->before); /* a peer's threads would inherit the pinning */
#endif
}

/* Runs fn on every worker; returns seconds. Inside fn, pool_join() is the host's join between two phases. */
static double pool_time(pool *p, pool_fn fn, void *arg) {
    double t;
    p->fn = fn;
    p->arg = arg;
    barrier_wait(&p->bar);
    t = now();
    pool_work(p, 0);
    barrier_wait(&p->bar);
    return now() - t;
}
static void pool_join(pool *p) { barrier_wait(&p->bar); }

static double pool_lost(const pool *p) {
    double worst = 0;
    for (int i = 0; i < p->n; i++)
        if (p->lost[i] > worst) worst = p->lost[i];
    return worst;
}

/* ---- statistics ---- */

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static double median(const double *x, int n) {
    double s[MAX_SAMPLES];
    memcpy(s, x, (size_t)n * sizeof *s);
    qsort(s, (size_t)n, sizeof *s, compare_doubles);
    return n % 2 ? s[n / 2] : 0.5 * (s[n / 2 - 1] + s[n / 2]);
}

/* ---- oracle: attention of one query row by its definition, in double ---- */

typedef struct {
    double err2, ref2;
} rms_sum;

/* q [dk], k [n][dk], v [n][ldv], got [dv]. */
static void oracle_row(rms_sum *sum, const float *q, const float *k, const float *v, int64_t n, int dk, int dv,
                       int64_t ldv, double scale, const float *got) {
    double *w = (double *)malloc((size_t)n * sizeof *w), max = -HUGE_VAL, total = 0;
    if (w == NULL) die("out of memory");
    for (int64_t i = 0; i < n; i++) {
        double s = 0;
        for (int d = 0; d < dk; d++) s += (double)q[d] * (double)k[i * dk + d];
        w[i] = s * scale;
        if (w[i] > max) max = w[i];
    }
    for (int64_t i = 0; i < n; i++) total += w[i] = exp(w[i] - max);
    for (int d = 0; d < dv; d++) {
        double o = 0, e;
        for (int64_t i = 0; i < n; i++) o += w[i] * (double)v[i * ldv + d];
        o /= total;
        e = (double)got[d] - o;
        sum->err2 += e * e;
        sum->ref2 += o * o;
    }
    free(w);
}
static double rms_value(const rms_sum *s) { return s->ref2 > 0 ? sqrt(s->err2 / s->ref2) : 0; }

#endif
