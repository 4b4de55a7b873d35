/* limits.h - what the machine can do: FMA peak, read bandwidth of DRAM and L2, for a number of threads together.

   Plain -O2 is enough: the loops carry their own target attributes and are picked at run time, as the library picks
   its kernels. The limits are measured next to every timed sample, never once at the start: on a virtual machine
   the bandwidth of two threads can halve from one minute to the next, and a percentage of an old limit means
   nothing. Include common.h first. */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define BENCH_X86 1
#elif defined(__aarch64__) && defined(__GNUC__)
#include <arm_neon.h>
#define BENCH_NEON 1
#endif

#define READ_BYTES ((size_t)512 << 20) /* the buffer of the bandwidth test: no cache holds it                   */
#define READ_PIECE ((size_t)32 << 20)  /* bytes that one thread reads in one bandwidth sample                   */

#define PRODUCT_STEPS 64 /* operands of the product loop: 13 KiB, so that they stay in L1          */

static volatile float limit_sink; /* keeps the compiler from dropping the loops below                    */
static float product_data[PRODUCT_STEPS * (3 * 16 + 8)] __attribute__((aligned(64))); /* vectors, then numbers  */

/* Independent chains enough to hide the latency of an FMA: 8 on every x86 core so far (4 cycles, 2 a cycle), 16 on
   Arm's with four vector units (Neoverse V1, V2, Apple), which have the registers for 24. */
#define FMA_12(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)
#define FMA_24(F) FMA_12(F) F(12) F(13) F(14) F(15) F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23)
#define FMA_LOOP(ATTR, NAME, N, VEC, SET1, MULADD, LANES, FIRST)                                                       \
    ATTR static double NAME(long loops) {                                                                              \
        VEC b = SET1(0.999f), c = SET1(0.001f), a[N];                                                                  \
        float sum = 0;                                                                                                 \
        /* different, or they become one chain; and not 1, where a chain would stand still and be left out */          \
        for (int i = 0; i < N; i++) a[i] = SET1((float)i + 0.25f);                                                     \
        for (long i = 0; i < loops; i++) { FMA_##N(MULADD) }                                                           \
        for (int i = 0; i < N; i++) sum += FIRST(a[i]);                                                                \
        limit_sink = sum;                                                                                              \
        return (double)loops * N * 2 * LANES;                                                                          \
    }

/* The same work with operands that change: 3 vectors and N/3 numbers of L1 per N FMAs, the inner loop of a product of
   matrices and nothing else. Where it is slower, though every cycle does as many FMAs, the clock has fallen. */
#define PRODUCT_LOOP(ATTR, NAME, N, VEC, SET1, LOAD, MULADD, LANES, FIRST)                                             \
    ATTR static double NAME(long loops) {                                                                              \
        VEC a[N];                                                                                                      \
        float sum = 0;                                                                                                 \
        for (int i = 0; i < N; i++) a[i] = SET1((float)i);                                                             \
        for (long i = 0; i < loops; i++) {                                                                             \
            const float *v = product_data + i % PRODUCT_STEPS * 3 * LANES;                                             \
            const float *b = product_data + PRODUCT_STEPS * 3 * 16 + i % PRODUCT_STEPS * (N / 3);                      \
            VEC x[3] = { LOAD(v), LOAD(v + LANES), LOAD(v + 2 * LANES) };                                              \
            FMA_##N(MULADD)                                                                                            \
        }                                                                                                              \
        for (int i = 0; i < N; i++) sum += FIRST(a[i]);                                                                \
        limit_sink = sum;                                                                                              \
        return (double)loops * N * 2 * LANES;                                                                          \
    }

#define SCALAR_SET1(x)   (x)
#define SCALAR_LOAD(q)   (*(q))
#define SCALAR_ADD(a, b) ((a) + (b))
#define SCALAR_MULADD(i) a[i] = a[i] * b + c;
#define SCALAR_FIRST(x)  (x)
FMA_LOOP(, fma_scalar, 12, float, SCALAR_SET1, SCALAR_MULADD, 1, SCALAR_FIRST)

/* Reads bytes from p as `streams` streams side by side, prefetching `ahead` bytes into L2 (0 = leave it to the
   hardware). Which form is fastest depends on the machine, so all are tried and the best is the limit. */
#define READ_LOOP(ATTR, NAME, VEC, ZERO, LOAD, ADD, LANES, FIRST)                                                      \
    ATTR static void NAME(const char *p, size_t bytes, int streams, size_t ahead) {                                    \
        size_t part = bytes / (size_t)streams / 256 * 256;                                                             \
        VEC s0 = ZERO, s1 = ZERO, s2 = ZERO, s3 = ZERO;                                                                \
        for (size_t i = 0; i < part; i += 256)                                                                         \
            for (int s = 0; s < streams; s++) {                                                                        \
                const float *q = (const float *)(const void *)(p + (size_t)s * part + i);                              \
                if (ahead)                                                                                             \
                    for (size_t j = 0; j < 256; j += 64) __builtin_prefetch((const char *)q + ahead + j, 0, 2);        \
                for (size_t j = 0; j < 64; j += 4 * LANES) {                                                           \
                    s0 = ADD(s0, LOAD(q + j));                                                                         \
                    s1 = ADD(s1, LOAD(q + j + LANES));                                                                 \
                    s2 = ADD(s2, LOAD(q + j + 2 * LANES));                                                             \
                    s3 = ADD(s3, LOAD(q + j + 3 * LANES));                                                             \
                }                                                                                                      \
            }                                                                                                          \
        limit_sink = FIRST(ADD(ADD(s0, s1), ADD(s2, s3)));                                                             \
    }
READ_LOOP(, read_scalar, float, 0, SCALAR_LOAD, SCALAR_ADD, 1, SCALAR_FIRST)

#ifdef BENCH_X86
#define T2                __attribute__((target("avx2,fma")))
#define T512              __attribute__((target("avx512f")))
#define AVX2_MULADD(i)    a[i] = _mm256_fmadd_ps(a[i], b, c);
#define AVX512_MULADD(i)  a[i] = _mm512_fmadd_ps(a[i], b, c);
#define AVX2_PRODUCT(i)   a[i] = _mm256_fmadd_ps(x[i % 3], _mm256_set1_ps(b[i / 3]), a[i]);
#define AVX512_PRODUCT(i) a[i] = _mm512_fmadd_ps(x[i % 3], _mm512_set1_ps(b[i / 3]), a[i]);
FMA_LOOP(T2, fma_avx2, 12, __m256, _mm256_set1_ps, AVX2_MULADD, 8, _mm256_cvtss_f32)
FMA_LOOP(T512, fma_avx512, 12, __m512, _mm512_set1_ps, AVX512_MULADD, 16, _mm512_cvtss_f32)
PRODUCT_LOOP(T2, product_avx2, 12, __m256, _mm256_set1_ps, _mm256_load_ps, AVX2_PRODUCT, 8, _mm256_cvtss_f32)
PRODUCT_LOOP(T512, product_avx512, 12, __m512, _mm512_set1_ps, _mm512_load_ps, AVX512_PRODUCT, 16, _mm512_cvtss_f32)
READ_LOOP(T2, read_avx2, __m256, _mm256_setzero_ps(), _mm256_load_ps, _mm256_add_ps, 8, _mm256_cvtss_f32)
READ_LOOP(T512, read_avx512, __m512, _mm512_setzero_ps(), _mm512_load_ps, _mm512_add_ps, 16, _mm512_cvtss_f32)
#endif
#ifdef BENCH_NEON
#define NEON_MULADD(i)  a[i] = vfmaq_f32(c, a[i], b);
#define NEON_PRODUCT(i) a[i] = vfmaq_n_f32(a[i], x[i % 3], b[i / 3]);
#define NEON_FIRST(x)   vgetq_lane_f32(x, 0)
FMA_LOOP(, fma_neon, 24, float32x4_t, vdupq_n_f32, NEON_MULADD, 4, NEON_FIRST)
PRODUCT_LOOP(, product_neon, 24, float32x4_t, vdupq_n_f32, vld1q_f32, NEON_PRODUCT, 4, NEON_FIRST)
READ_LOOP(, read_neon, float32x4_t, vdupq_n_f32(0), vld1q_f32, vaddq_f32, 4, NEON_FIRST)
#endif

typedef struct {
    double fma, product, dram;
} limits; /* FLOP/s from registers and from L1, bytes/s; of n threads together */
typedef struct {
    char *mem;                    /* [READ_BYTES]                                               */
    size_t at;                    /* where the next bandwidth sample reads                      */
    int streams[MAX_THREADS + 1]; /* [n threads] best read loop                                 */
    size_t ahead[MAX_THREADS + 1];
    double fma1[5]; /* [isa] one thread's FLOP/s, to size the loops               */
} machine;
static machine mach;

typedef struct {
    int isa, product;
    long loops;
    size_t piece, at;
    int streams;
    size_t ahead;
    int repeat;
} limit_job;

/* product: the loop with operands from L1, which has no scalar form: there both are the loop in registers. */
static double fma_run(int isa, int product, long loops) {
#ifdef BENCH_X86
    if (isa == SWA_ISA_AVX512) return product ? product_avx512(loops) : fma_avx512(loops);
    if (isa == SWA_ISA_AVX2) return product ? product_avx2(loops) : fma_avx2(loops);
#endif
#ifdef BENCH_NEON
    if (isa == SWA_ISA_NEON) return product ? product_neon(loops) : fma_neon(loops);
#endif
    (void)product;
    return fma_scalar(loops);
}
static int fma_flops(int isa) /* per loop */
{
    return isa == SWA_ISA_NEON ? 24 * 2 * 4 : 12 * 2 * (isa == SWA_ISA_AVX512 ? 16 : isa == SWA_ISA_AVX2 ? 8 : 1);
}

static void fma_part(void *arg, int part, int parts) {
    const limit_job *j = (const limit_job *)arg;
    (void)part;
    (void)parts;
    fma_run(j->isa, j->product, j->loops);
}

static void read_part(void *arg, int part, int parts) {
    const limit_job *j = (const limit_job *)arg;
    const char *p = mach.mem + (j->at + (size_t)part * j->piece) % READ_BYTES;
    int best = swa_isa_best();
    (void)parts;
    (void)best;
    for (int r = 0; r < j->repeat; r++) {
#ifdef BENCH_X86
        if (best == SWA_ISA_AVX512) {
            read_avx512(p, j->piece, j->streams, j->ahead);
            continue;
        }
        if (best == SWA_ISA_AVX2) {
            read_avx2(p, j->piece, j->streams, j->ahead);
            continue;
        }
#endif
#ifdef BENCH_NEON
        if (best == SWA_ISA_NEON) {
            read_neon(p, j->piece, j->streams, j->ahead);
            continue;
        }
#endif
        read_scalar(p, j->piece, j->streams, j->ahead);
    }
}

static double fma_sample(pool *p, int isa, int product, double seconds) {
    limit_job j = { 0 };
    j.isa = isa;
    j.product = product;
    j.loops = (long)(seconds * mach.fma1[isa] / fma_flops(isa)) + 1;
    return (double)j.loops * fma_flops(isa) * p->n / pool_time(p, fma_part, &j);
}

/* Each thread reads a piece of its own; the pieces walk through a buffer that no cache holds. */
static double dram_sample(pool *p, int streams, size_t ahead) {
    limit_job j = { 0 };
    double t;
    j.piece = READ_PIECE;
    j.at = mach.at;
    j.streams = streams;
    j.ahead = ahead;
    j.repeat = 1;
    t = pool_time(p, read_part, &j);
    mach.at = (mach.at + READ_PIECE * (size_t)p->n) % READ_BYTES;
    return (double)READ_PIECE * p->n / t;
}

/* The better of two readings that nobody disturbed, or of six. */
static double fma_better(pool *p, int isa, int product, double seconds) {
    double best = 0;
    for (int tries = 0, clean = 0; tries < 6 && clean < 2; tries++) {
        double r = fma_sample(p, isa, product, 0.5 * seconds);
        if (r > best) best = r;
        clean += pool_lost(p) < 0.01 * seconds;
    }
    return best;
}

/* One reading of the limits. seconds is for each FMA loop, a read takes about a millisecond. The product comes first,
   at the clock that the sample before has left; the loop in registers lets the clock rise. */
static limits limits_sample(pool *p, int isa, double seconds) {
    limits l = { 0, 0, 0 };
    l.product = fma_better(p, isa, 1, seconds);
    l.fma = fma_better(p, isa, 0, seconds);
    for (int tries = 0, clean = 0; tries < 6 && clean < 2; tries++) {
        double r = dram_sample(p, mach.streams[p->n], mach.ahead[p->n]);
        if (r > l.dram) l.dram = r;
        clean += pool_lost(p) < 1e-5;
    }
    return l;
}

/* The limits that stand beside a timed sample: the better of the reading before and the one after it. A reading
   that something disturbed would flatter us; this way it takes two. */
static limits limits_better(limits a, limits b) {
    a.fma = a.fma > b.fma ? a.fma : b.fma;
    a.product = a.product > b.product ? a.product : b.product;
    a.dram = a.dram > b.dram ? a.dram : b.dram;
    return a;
}

/* L2 of one core: a quarter of the smallest L2 of today's server cores, read many times. */
static double l2_rate(pool *p) {
    limit_job j = { 0 };
    double best = 0;
    j.piece = (size_t)256 << 10;
    j.streams = 1;
    j.repeat = 400;
    for (int i = 0; i < 5; i++) {
        double r = (double)j.piece * j.repeat * p->n / pool_time(p, read_part, &j);
        if (r > best) best = r;
    }
    return best;
}

/* Finds the fastest read loop for n threads, by the median of five; returns its rate. */
static double machine_calibrate(pool *p) {
    static const int streams[] = { 1, 2, 4 };
    static const size_t ahead[] = { 0, 1024, 4096, 8192 };
    double best = 0;
    for (int s = 0; s < 3; s++)
        for (int a = 0; a < 4; a++) {
            double rate[5], mid;
            for (int r = 0; r < 5; r++) rate[r] = dram_sample(p, streams[s], ahead[a]);
            mid = median(rate, 5);
            if (mid <= best) continue;
            best = mid;
            mach.streams[p->n] = streams[s];
            mach.ahead[p->n] = ahead[a];
        }
    return best;
}

static void machine_init(void) {
    unsigned seed = 1;
    for (size_t i = 0; i < sizeof product_data / sizeof *product_data; i++) {
        seed = seed * 1664525u + 1013904223u;
        product_data[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
    mach.mem = (char *)big_alloc(READ_BYTES + ((size_t)1 << 20)); /* the last prefetches run past the end */
    memset(mach.mem, 0, READ_BYTES + ((size_t)1 << 20));
    for (int isa = 1; isa <= SWA_ISA_AVX512; isa++) {
        if (!swa_isa_usable(isa)) continue;
        for (int r = 0; r < 3; r++) {
            double t = now(), flops = fma_run(isa, 0, 400000), rate = flops / (now() - t);
            if (rate > mach.fma1[isa]) mach.fma1[isa] = rate;
        }
    }
}

#endif
