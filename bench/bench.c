/* bench.c - how close swa.h comes to the machine, case by case.

       cc -O2 -o build/bench bench/bench.c -lm -lpthread
       build/bench                        the default set, 7 to 16 minutes; writes bench/results/CPU/latest.csv
       build/bench --full                 every case in every type
       build/bench --case decode-w4096 --quick       what a tuning loop wants: seconds, and no CSV
       build/bench --list

   A sample is one whole prefill, or one decode step through enough layers that no cache holds their K and V. Before
   and after each sample the program reads the read bandwidth of the same threads and the rate of their FMAs with
   operands from L1 (product) and from registers (fma); a sample's floor is the longer of flops / product and bytes /
   bandwidth, its percentage is floor / time, and a case's percentage the median of those. Where the product binds, the
   percentage of the FMAs from registers stands beside it. Cases "against" something run both sides alternately and
   report the other's time / their own.
   Every case's last answer is compared with double precision on the K and V that the ring (or the caller) holds.

   --beside SIDE.so: every case against another commit's library (side.c), which beside.py compiles. */
#define _GNU_SOURCE
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "common.h"
#include "limits.h"
#include "work.h"
#include "report.h"
#include "side.h"
#include <dlfcn.h>

#define COLD_BYTES  ((size_t)512 << 20) /* decode rotates over at least this much K/V: less would sit in the L3 */
#define QUICK_BYTES ((size_t)192 << 20) /* with --quick: enough for an L3 of 32 MiB                             */

/* ---- cases ---- */

static const char *const against_names[] = { "",      "ring",   "aligned", "pos-8192", "f16",
                                             "0.5us", "scores", "f32",     "beside" };

#define PREFILL(N, W) .n = N, .window = W
#define DECODE(W)     .n = 1, .window = W, .start = 8192
#define CHUNK(N, W)   .n = N, .window = W, .start = 8192
#define LATENT(N, H)  .n = 1, .window = N, .start = 8192, .heads = H, .kv_heads = 1, .dim = 512, .tail = 64

/* A small model's, K and V in cache. */
#define HOT(W, H, G, D) .n = 1, .window = W, .start = W - 1, .heads = H, .kv_heads = G, .dim = D, .repeat = 200

#define SCORES(H) .n = 1, .start = 131071, .heads = H, .kv_heads = 1, .flags = INDEX

static const spec cases[] = {
    { "prefill-8192-w4096-d128", F32 | F16 | BF16, 0, PREFILL(8192, 4096) },
    { "prefill-8192-w1024-d128", F32, F16 | BF16, PREFILL(8192, 1024) },
    { "prefill-512-causal-d128", F32 | F16, BF16, PREFILL(512, 0) },
    { "prefill-8192-w128-d64-h64-8", F32, F16 | BF16, PREFILL(8192, 128), .heads = 64, .dim = 64 },
    { "prefill-8192-w4096-d64", F32, F16, PREFILL(8192, 4096), .dim = 64 },
    { "prefill-8192-w4096-d96", F32, F16, PREFILL(8192, 4096), .dim = 96 },
    { "prefill-8192-w4096-d256", F32, F16, PREFILL(8192, 4096), .dim = 256 },
    { "prefill-8192-w4096-d128-bf16c-against-f32", BF16, F32 | F16, PREFILL(8192, 4096), .compute = SWA_BF16,
      .against = AGAINST_F32 },
    { "prefill-8192-w1024-d128-bf16c-against-f32", BF16, F32 | F16, PREFILL(8192, 1024), .compute = SWA_BF16,
      .against = AGAINST_F32 },
    { "prefill-8192-w4096-d128-int8", Q8, 0, PREFILL(8192, 4096), .compute = SWA_Q8 },
    { "prefill-8192-w4096-d128-int8-against-f32", Q8, 0, PREFILL(8192, 4096), .compute = SWA_Q8,
      .against = AGAINST_F32 },
    { "prefill-8192-w1024-d128-int8-against-f32", 0, Q8, PREFILL(8192, 1024), .compute = SWA_Q8,
      .against = AGAINST_F32 },
    { "prefill-512-causal-d128-int8-against-f32", 0, Q8, PREFILL(512, 0), .compute = SWA_Q8, .against = AGAINST_F32 },
    { "prefill-8192-w1024-d128-int8-against-f32-avx2", 0, Q8, PREFILL(8192, 1024), .compute = SWA_Q8,
      .isa = SWA_ISA_AVX2, .against = AGAINST_F32 },
    { "chunk-4-w4096-d128-int8-against-f32", Q8, 0, CHUNK(4, 4096), .compute = SWA_Q8, .against = AGAINST_F32 },
    { "chunk-16-w4096-d128-int8-against-f32", 0, Q8, CHUNK(16, 4096), .compute = SWA_Q8, .against = AGAINST_F32 },
    { "chunk-4-w4096-d128-bf16c-against-f32", F32 | BF16, F16, CHUNK(4, 4096), .kv_heads = 32, .compute = SWA_BF16,
      .against = AGAINST_F32 },
    { "prefill-8192-w4096-d128-bf16t-against-f32", BF16, F32 | F16 | Q8, PREFILL(8192, 4096), .compute = SWA_BF16_TILE,
      .against = AGAINST_F32 },
    { "prefill-8192-w1024-d128-bf16t-against-f32", BF16, F32, PREFILL(8192, 1024), .compute = SWA_BF16_TILE,
      .against = AGAINST_F32 },
    { "prefill-512-causal-d128-bf16t-against-f32", BF16, F32, PREFILL(512, 0), .compute = SWA_BF16_TILE,
      .against = AGAINST_F32 },
    { "prefill-8192-w128-d64-h64-8-bf16t-against-f32", BF16, F32, PREFILL(8192, 128), .heads = 64, .dim = 64,
      .compute = SWA_BF16_TILE, .against = AGAINST_F32 },
    { "chunk-4-w4096-d128-bf16t-against-f32", BF16, F32, CHUNK(4, 4096), .compute = SWA_BF16_TILE,
      .against = AGAINST_F32 },
    { "chunk-8-w4096-d128-bf16t-against-f32", BF16, F32, CHUNK(8, 4096), .compute = SWA_BF16_TILE,
      .against = AGAINST_F32 },
    { "chunk-16-w4096-d128-bf16t-against-f32", BF16, F32, CHUNK(16, 4096), .compute = SWA_BF16_TILE,
      .against = AGAINST_F32 },
    { "chunk-4-w4096-d128-mha-bf16t-against-f32", BF16, F32, CHUNK(4, 4096), .kv_heads = 32, .compute = SWA_BF16_TILE,
      .against = AGAINST_F32 },
    { "prefill-8192-w4096-d128-bf16t", BF16, F32 | Q8, PREFILL(8192, 4096), .compute = SWA_BF16_TILE },
    { "prefill-8192-w1024-d128-bf16t", 0, BF16 | F32, PREFILL(8192, 1024), .compute = SWA_BF16_TILE },
    { "prefill-8192-w1024-d128-bf16t-avx2", 0, BF16 | F32, PREFILL(8192, 1024), .compute = SWA_BF16_TILE,
      .isa = SWA_ISA_AVX2 },
    { "prefill-8192-w4096-d128-avx2", F32, F16 | BF16, PREFILL(8192, 4096), .isa = SWA_ISA_AVX2 },
    { "prefill-8192-w1024-d128-avx2", 0, F32 | F16, PREFILL(8192, 1024), .isa = SWA_ISA_AVX2 },
    { "prefill-512-causal-d128-scalar", 0, F32, PREFILL(512, 0), .isa = SWA_ISA_SCALAR },
    { "prefill-8192-w4096-d128-chunk512", F32, F16 | BF16, PREFILL(512, 4096), .steps = 16 },
    { "prefill-8192-w1000-d128-chunk512-cap1000", F32, F16, PREFILL(512, 1000), .steps = 16, .capacity = 1000,
      .against = AGAINST_ALIGNED },
    { "prefill-8192-w1000-d128-chunk512-cap1024", 0, F32 | F16, PREFILL(512, 1000), .steps = 16, .capacity = 1024,
      .against = AGAINST_ALIGNED },
    { "prefill-8192-w4096-d128-chunk512-cap4100", 0, F32 | F16, PREFILL(512, 4096), .steps = 16, .capacity = 4100,
      .against = AGAINST_ALIGNED },
    { "stateless-prefill-8192-w1024-d128", F32, F16 | BF16, PREFILL(8192, 1024), .form = ROWS },
    { "stateless-prefill-8192-w1024-d128-against-ring", F32 | F16 | BF16, 0, PREFILL(8192, 1024), .form = ROWS,
      .against = AGAINST_RING },

    { "decode-w4096-d128", F32 | F16 | BF16 | Q8, 0, DECODE(4096) },
    { "decode-w4096-d128-int8", Q8, 0, DECODE(4096), .compute = SWA_Q8 },
    { "decode-w4096-d128-against-f16", Q8 | STAGED, 0, DECODE(4096), .against = AGAINST_F16 },
    { "decode-w4096-d128-mha-against-f16", 0, Q8 | STAGED, DECODE(4096), .kv_heads = 32, .against = AGAINST_F16 },
    { "decode-w4096-d128-against-f16-avx2", 0, Q8 | STAGED, DECODE(4096), .isa = SWA_ISA_AVX2, .against = AGAINST_F16 },
    { "prefill-8192-w1024-d128-against-f16", 0, STAGED, PREFILL(8192, 1024), .against = AGAINST_F16 },
    { "prefill-8192-w4096-d128-chunk512-against-f16", 0, STAGED, PREFILL(512, 4096), .steps = 16,
      .against = AGAINST_F16 },
    { "mla-decode-n4096-h16-against-f16", 0, Q8 | STAGED, LATENT(4096, 16), .against = AGAINST_F16 },
    { "decode-w4096-d128-int8-against-f16", Q8, 0, DECODE(4096), .compute = SWA_Q8, .against = AGAINST_F16 },
    { "decode-w4096-d128-mha", F32 | F16, BF16 | Q8, DECODE(4096), .kv_heads = 32 },
    { "decode-w4096-d128-g2", 0, F32 | F16, DECODE(4096), .kv_heads = 16 },
    { "decode-w4096-d128-g8", F16, F32 | BF16 | Q8, DECODE(4096), .heads = 64 },
    { "decode-w4096-d128-g16", F32 | F16, BF16 | Q8, DECODE(4096), .heads = 64, .kv_heads = 4 },
    { "decode-w4096-d128-avx2", F16, F32 | BF16 | Q8, DECODE(4096), .isa = SWA_ISA_AVX2 },
    { "decode-w4096-d128-g8-avx2", F16, F32, DECODE(4096), .heads = 64, .isa = SWA_ISA_AVX2 },
    { "decode-w4096-d64", 0, F32 | F16, DECODE(4096), .dim = 64 },
    { "decode-w4096-d256", 0, F32 | F16, DECODE(4096), .dim = 256 },
    { "decode-w1024-d128", F16, F32, DECODE(1024) },
    { "decode-w4096-d128-bf16c", 0, BF16, DECODE(4096), .compute = SWA_BF16 },
    { "decode-w4096-d128-bf16t", 0, BF16 | Q8, DECODE(4096), .compute = SWA_BF16_TILE },
    { "decode-pos-10000000-against-8192", F16, F32, .n = 1, .window = 4096, .start = 10000000,
      .against = AGAINST_8192 },
    { "decode-w4096-d128-cap4100", F16, F32, DECODE(4096), .capacity = 4100, .against = AGAINST_ALIGNED },
    { "decode-w1000-d128-cap1000", F16, F32, DECODE(1000), .capacity = 1000, .against = AGAINST_ALIGNED },
    { "decode-w1000-d128-cap1024", 0, F16 | F32, DECODE(1000), .capacity = 1024, .against = AGAINST_ALIGNED },
    { "stateless-decode-w4096-d128", F32 | F16, BF16, DECODE(4096), .form = ROWS },
    { "stateless-decode-w4096-d128-against-ring", F32 | F16 | BF16, 0, DECODE(4096), .form = ROWS,
      .against = AGAINST_RING },

    { "decode-ctx-1024", F16, 0, .n = 1, .window = 4096, .start = 1023 },
    { "decode-ctx-4096", F16, 0, .n = 1, .window = 4096, .start = 4095 },
    { "decode-ctx-16384", F16, 0, .n = 1, .window = 4096, .start = 16383 },
    { "decode-ctx-65536", F16, 0, .n = 1, .window = 4096, .start = 65535 },
    { "decode-ctx-1048576", F16, 0, .n = 1, .window = 4096, .start = 1048575 },
    { "decode-ctx-1024-causal", F16, 0, .n = 1, .start = 1023 },
    { "decode-ctx-4096-causal", F16, 0, .n = 1, .start = 4095 },
    { "decode-ctx-16384-causal", F16, 0, .n = 1, .start = 16383 },
    { "decode-ctx-65536-causal", F16, 0, .n = 1, .start = 65535 },

    { "hot-100-d48-h6", F32, F16, HOT(100, 6, 6, 48) },
    { "hot-256-d48-h6", F32, F16, HOT(256, 6, 6, 48) },
    { "hot-1024-d64-h12", F32, F16, HOT(1024, 12, 12, 64) },
    { "hot-256-d128-h32-8", F32, F16, HOT(256, 32, 8, 128) },

    { "mla-decode-n1024-h128", F32 | BF16, F16, LATENT(1024, 128) },
    { "mla-decode-n4096-h128", F32 | BF16, F16, LATENT(4096, 128) },
    { "mla-decode-n4096-h128-bf16c-against-f32", BF16, F32, LATENT(4096, 128), .compute = SWA_BF16,
      .against = AGAINST_F32 },
    { "mla-decode-n4096-h128-bf16t", 0, BF16, LATENT(4096, 128), .compute = SWA_BF16_TILE },
    { "mla-decode-n4096-h128-bf16t-against-f32", BF16, F32, LATENT(4096, 128), .compute = SWA_BF16_TILE,
      .against = AGAINST_F32 },
    { "mla-decode-n4096-h16-bf16t-against-f32", BF16, F32, LATENT(4096, 16), .compute = SWA_BF16_TILE,
      .against = AGAINST_F32 },
    { "mla-decode-n4096-h16", F32 | BF16, F16, LATENT(4096, 16) },
    { "mla-decode-n4096-h16-bf16c-against-f32", BF16, F32, LATENT(4096, 16), .compute = SWA_BF16,
      .against = AGAINST_F32 },

    { "index-n131072-h64", F32 | BF16 | Q8, F16, SCORES(64) },
    { "index-n131072-h64-avx2", F32, 0, SCORES(64), .isa = SWA_ISA_AVX2 },
    { "index-n131072-h64-int8", Q8, 0, SCORES(64), .compute = SWA_Q8 },
    { "index-n131072-h64-int8-avx2", 0, Q8, SCORES(64), .compute = SWA_Q8, .isa = SWA_ISA_AVX2 },
    { "index-n131072-h4", F32, BF16, SCORES(4) },
    { "index-n131072-h64-top2048-against-scores", F32, BF16 | Q8, SCORES(64), .top = 2048, .against = AGAINST_SCORES },

    { "put-1-w4096-d128", F32 | F16 | Q8, BF16, DECODE(4096), .flags = PUT },
    { "put-512-w4096-d128", F32 | F16 | Q8, BF16, .n = 512, .window = 4096, .start = 8192, .flags = PUT },
    { "overhead-empty-window", F32, F16 | Q8, PREFILL(1, 4096), .flags = NO_STORE, .repeat = 2000,
      .against = AGAINST_HALF_US },
    { "overhead-empty-window-h1", F32, F16 | Q8, PREFILL(1, 4096), .flags = NO_STORE, .repeat = 2000, .heads = 1,
      .kv_heads = 1, .against = AGAINST_HALF_US },
    { "overhead-empty-window-store", F32, F16 | Q8, PREFILL(1, 4096), .repeat = 2000, .against = AGAINST_HALF_US },
};

static int spec_compute_bound(const spec *s) { return !spec_decode(s) || s->tail > 0 || s->repeat || s->flags & INDEX; }

/* (query, key) pairs of n tokens from position 0 on, W = 0 for no window. */
static double visible_pairs(int64_t n, int64_t W) {
    double p = 0;
    for (int64_t i = 0; i < n; i++) p += (double)(W > 0 && i + 1 > W ? W : i + 1);
    return p;
}

/* Flops of one call (one layer, all steps of a sample): 2 per multiply-add of every visible pair. */
static double spec_flops(const spec *s) {
    double pairs = (double)s->n * (double)(s->start + 1 - spec_lo(s, s->start));
    if (s->flags & PUT) return 0;
    if (!spec_decode(s)) pairs = visible_pairs((int64_t)s->n * spec_steps(s), s->window);
    return pairs * spec_heads(s) * 2.0 * (spec_krow(s) + (s->flags & INDEX ? 0 : spec_dim(s)));
}

/* Bytes that a call cannot avoid: the window's K and V once, as stored; in prefill the f32 rows in and out; for a
   put both. */
static double spec_bytes(const spec *s, swa_type type) {
    double row = row_bytes(s, type);
    double in = (double)s->n * spec_steps(s) * 4 * row_numbers(s);
    if (s->flags & PUT) return in + (double)s->n * row;
    if (spec_decode(s)) return (double)(s->start + 1 - spec_lo(s, s->start)) * row;
    return in + (double)s->n * spec_steps(s) * 4 * 2 * spec_dim(s) * spec_heads(s);
}

/* The other side of a comparison. */
static spec spec_base(const spec *s, swa_type *type) {
    spec b = *s;
    b.against = AGAINST_LIMIT;
    if (s->against == AGAINST_RING) b.form = RING;
    if (s->against == AGAINST_ALIGNED) b.capacity = 0;
    if (s->against == AGAINST_8192) b.start = 8192;
    if (s->against == AGAINST_SCORES) b.top = 0;
    if (s->against == AGAINST_F16 || s->against == AGAINST_F32) {
        *type = s->against == AGAINST_F16 ? SWA_F16 : SWA_F32;
        b.compute = SWA_F32;
    }
    return b;
}

/* A put attends to nothing: what the ring holds against the inputs, rounded and not. */
static accuracy put_check(work *w) {
    int64_t n = w->s.window, lo = w->pos - n, size = n * 2 * spec_dim(&w->s);
    float *got = (float *)buffer_get(BUF_CHECK, (size_t)size * 2 * 4), *want = got + size;
    rms_sum sum[2] = { { 0, 0 }, { 0, 0 } };
    accuracy acc;
    keys_of_ring(w, lo, n, 1, got, got + size / 2);
    for (int rough = 0; rough < 2; rough++) {
        keys_of_inputs(w, rough ? SWA_F32 : w->type, lo, n, 1, want, want + size / 2);
        for (int64_t i = 0; i < size; i++) {
            double e = (double)got[i] - (double)want[i];
            sum[rough].err2 += e * e;
            sum[rough].ref2 += (double)want[i] * (double)want[i];
        }
    }
    acc.input = rms_value(&sum[1]);
    acc.stored = w->type >= SWA_Q8 ? 0 : rms_value(&sum[0]);
    return acc;
}

/* The accuracy that the project promises; a NaN fails too. */
static int accuracy_holds(const spec *s, swa_type type, accuracy a) {
    double stored = spec_decode(s) || type >= SWA_Q8 ? 2e-6 : 4e-7, input = 1; /* inputs of those are normal */
    if (s->compute == SWA_BF16 || s->compute == SWA_BF16_TILE) stored = 4e-3;
    if (s->compute == SWA_Q8) stored = s->flags & INDEX ? 2e-2 : 1.2e-2;
    if (type == SWA_Q8 || type == SWA_Q8_32) input = s->compute == SWA_Q8 ? 2.4e-2 : 1.2e-2;
    if (type == SWA_E4M3 || type == SWA_E5M2) input = type == SWA_E4M3 ? 5e-2 : 1e-1;
    return a.stored <= stored && a.input <= input;
}

/* ---- a case: samples, statistics, a line ---- */

typedef struct {
    int threads[8], n_threads, isa, full, quick, list;
    const char *filter, *csv, *type, *beside;
    const side *side; /* another commit's library, or NULL */
    FILE *out;
    int rows, skipped, wrong, failed, disturbed;
} options;

typedef struct {
    int n;
    double time[MAX_SAMPLES], percent[MAX_SAMPLES], base[MAX_SAMPLES];
    double product[MAX_SAMPLES], dram[MAX_SAMPLES]; /* floors in seconds                            */
    double of_fma[MAX_SAMPLES];                     /* percent of the FMA loop in registers         */
    int disturbed;
} samples;

/* Wakes clocks and caches. A long prefill is warm after its first 512 tokens. */
static double work_warm(work *w) {
    work c = *w;
    double lost, t;
    if (c.s.form == RING && c.s.n > 512 && !spec_decode(&c.s)) {
        c.s.n = 512;
        work_sample(&c, &lost);
        return spec_flops(&w->s) / mach.fma1[w->isa] / w->parts;
    }
    t = work_sample(w, &lost) * w->layers * (w->s.repeat ? w->s.repeat : 1);
    return t;
}

/* What a case is timed against: another form of it by this library, or the same by another. */
typedef struct {
    work *work;
    const side *side;
    pool *p;
} rival;

/* A side has threads of its own, which ours, waiting, would take the cores from. */
static double rival_sample(const rival *b, double *lost) {
    int n = b->p->n;
    double t;
    if (b->work) return work_sample(b->work, lost);
    pool_stop(b->p);
    t = b->side->sample(lost);
    pool_start(b->p, n);
    return t;
}
static int rival_failed(const rival *b) { return b->work && b->work->failed; }

/* A sample during which somebody else had the CPU for more than 2 % is dropped while clean ones can be had. */
static void take_samples(samples *r, work *w, const rival *base, const options *o) {
    /* what is called again and again comes from caches */
    double flops = spec_flops(&w->s), bytes = w->s.repeat ? 0 : spec_bytes(&w->s, w->type), estimate = work_warm(w),
           lost, lost2 = 0;
    double budget = o->quick ? 0.15 : o->full ? 2.0 : 0.7, began, limit_s = 0.05 * estimate;
    int least = o->quick || estimate > 2 ? 2 : 3, tries = 0;
    limits before, after;
    if (base && base->work) work_warm(base->work);
    if (base && base->side) rival_sample(base, &lost2);
    limit_s = limit_s < 0.001 ? 0.001 : limit_s > 0.02 ? 0.02 : limit_s;
    memset(r, 0, sizeof *r);
    began = now();
    before = limits_sample(w->p, w->isa, limit_s);
    while (r->n < MAX_SAMPLES - 1 && !w->failed && !(base && rival_failed(base))) {
        double t = work_sample(w, &lost), late = now() - began;
        limits l;
        if (base) r->base[r->n] = rival_sample(base, &lost2);
        /* between the two sides it would leave ours, which is next, cold caches */
        after = base ? before : limits_sample(w->p, w->isa, limit_s);
        l = limits_better(before, after);
        before = after;
        r->time[r->n] = t;
        r->product[r->n] = flops / l.product;
        r->dram[r->n] = bytes / l.dram;
        r->of_fma[r->n] = 100 * flops / l.fma / t;
        r->percent[r->n] = 100 * (r->product[r->n] > r->dram[r->n] ? r->product[r->n] : r->dram[r->n]) / t;
        if (base) r->percent[r->n] = 100 * r->base[r->n] / t;
        tries++;
        if (lost < 0.02 && lost2 < 0.02) r->n++;
        else if (late > 3 * budget && tries >= 2 * least && r->n < least) {
            r->n++;
            r->disturbed = 1;
        }
        if (r->n >= least && late >= budget) break;
    }
}

static void write_row(options *o, const work *w, const samples *s, const accuracy *acc) {
    const spec *c = &w->s;
    int holds = accuracy_holds(c, w->type, *acc);
    int dram = median(s->product, s->n) < median(s->dram, s->n);
    char more[64];
    result r = { .name = c->name, .isa = w->isa, .threads = w->parts, .type = w->type };
    r.limit = c->against ? against_names[c->against] : limit_name(w->isa, dram);
    if (!c->against && !dram) r.percent_fma = median(s->of_fma, s->n);
    r.med = median(s->time, s->n);
    r.min = smallest(s->time, s->n);
    r.unit = spec_compute_bound(c) ? "GFLOP/s" : "GB/s";
    r.rate = (spec_compute_bound(c) ? spec_flops(c) : spec_bytes(c, w->type)) / r.med * 1e-9;
    r.percent = median(s->percent, s->n);
    if (c->against == AGAINST_HALF_US) {
        r.unit = "us";
        r.rate = r.med * 1e6;
        r.percent = 100 * r.rate / 0.5;
    }
    snprintf(more, sizeof more, "%.1e %.1e%s%s", acc->stored, acc->input, s->disturbed ? " disturbed" : "",
             holds ? "" : " WRONG");
    report(o->out, &r, more);
    o->rows++;
    o->disturbed += s->disturbed;
    o->wrong += !holds;
}

static void failed_row(options *o, const work *w) {
    printf("%-46s %-7s %-5s %d FAILED in %s: %s\n", w->s.name, swa_isa_name(w->isa), type_name(w->type), w->parts,
           w->failed, swa_status_str(w->status));
    o->failed++;
}

/* Scores of a few thousand keys of the last layer. Without scores nothing is compared: the tests hold lists. */
static accuracy index_check(work *w) {
    const spec *s = &w->s;
    const int dim = spec_dim(s), n = 512;
    float *k = (float *)buffer_get(BUF_CHECK, (size_t)(n * 2 * dim) * 4);
    double score, dot;
    rms_sum stored = { 0, 0 };
    accuracy acc = { 0, 0 };
    for (int64_t lo = 0; lo + n <= w->index.score_n && w->index.score; lo += w->index.score_n / 8 / n * n) {
        swa_status st = swa_cache_read(&w->cache, 0, w->layers - 1, lo, n, k, NULL);
        if (st != SWA_OK) work_fail(w, "read back", st);
        for (int i = 0; i < n; i++) {
            score = 0;
            for (int h = 0; h < spec_heads(s); h++) {
                dot = 0;
                for (int d = 0; d < dim; d++) dot += (double)w->index.q.p[h * dim + d] * (double)k[i * dim + d];
                score += (double)w->index.w[h] * (dot > 0 ? dot : 0);
            }
            stored.err2 += (score - (double)w->index.score[lo + i]) * (score - (double)w->index.score[lo + i]);
            stored.ref2 += score * score;
        }
    }
    acc.stored = rms_value(&stored);
    return acc;
}

static void run_threads(options *o, work *w, rival *base, int threads) {
    static samples r;
    accuracy acc = { 0, 0 };
    double lost;
    pool p;
    pool_start(&p, threads);
    if (mach.streams[threads] == 0) machine_calibrate(&p);
    w->p = &p;
    w->parts = threads;
    if (base) base->p = &p;
    if (base && base->work) {
        base->work->p = &p;
        base->work->parts = threads;
    }
    if (!w->failed && !(base && rival_failed(base))) take_samples(&r, w, base, o);
    if (base && !w->failed && !rival_failed(base)) work_sample(w, &lost); /* both wrote the same output: check ours */
    if (!w->failed && !(base && rival_failed(base)))
        acc = w->s.flags & INDEX ? index_check(w) : w->s.flags & PUT ? put_check(w) : work_check(w);
    if (w->failed || (base && rival_failed(base))) {
        failed_row(o, w->failed ? w : base->work);
    } else {
        write_row(o, w, &r, &acc);
    }
    pool_stop(&p);
}

static int side_opens(const side *side, const spec *s, swa_type type, int isa, int threads, size_t cold) {
    side_case c = {
        .form = s->form,
        .n = s->n,
        .steps = s->steps,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .dim = s->dim,
        .tail = s->tail,
        .isa = swa_isa_name(isa),
        .flags = s->flags,
        .repeat = s->repeat,
        .top = s->top,
        .threads = threads,
        .window = s->window,
        .start = s->start,
        .capacity = s->capacity,
        .cold = cold
    };
    if (type > SWA_Q8) return 0; /* sides know the types that were there first */
    c.type = (int)type - (int)SWA_F32;
    c.compute = s->compute == SWA_BF16_TILE ? 4 : s->compute ? (int)s->compute - (int)SWA_F32 : 0;
    return side->open(&c);
}

static void run_case(options *o, const spec *s, swa_type type) {
    int isa = s->isa ? s->isa : o->isa ? o->isa : swa_isa_best(), most = 1;
    int two = s->against != AGAINST_LIMIT && s->against != AGAINST_HALF_US && s->against != AGAINST_SIDE;
    size_t cold = o->quick ? QUICK_BYTES : COLD_BYTES;
    rival r = { NULL, NULL, NULL };
    static work w, base;
    for (int i = 0; i < o->n_threads; i++)
        if (o->threads[i] > most) most = o->threads[i];
    work_setup(&w, s, type, isa, most, cold, BUF_CACHE);
    if (two) {
        swa_type bt = type;
        spec b = spec_base(s, &bt);
        work_setup(&base, &b, bt, isa, most, cold, BUF_OTHER);
        r.work = &base;
    }
    for (int i = 0; i < o->n_threads; i++) {
        if (o->threads[i] > 1 && s->repeat) continue;
        if (o->side && !side_opens(o->side, s, type, isa, o->threads[i], cold)) {
            printf("%-46s SKIPPED: the other library has no such case\n", s->name);
            o->skipped++;
            break;
        }
        r.side = o->side;
        run_threads(o, &w, two || o->side ? &r : NULL, o->threads[i]);
    }
    free(w.kv);
    free(base.kv);
    w.kv = base.kv = NULL;
}

static void run_all(options *o) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const spec *s = &cases[i];
        spec c = *s;
        unsigned types = s->types | (o->full || o->type || o->list ? s->more : 0);
        if (o->filter && strstr(s->name, o->filter) == NULL) continue;
        if (o->side && s->against != AGAINST_LIMIT && s->against != AGAINST_HALF_US) continue; /* ours beside ours */
        if (o->side) c.against = AGAINST_SIDE;
        if (o->filter && strcmp(s->name, o->filter) == 0) types |= s->more; /* asked for by its whole name */
        for (int t = SWA_F32; t <= SWA_E5M2; t++) {
            if (!(types >> t & 1) || (o->type && strcmp(o->type, type_name((swa_type)t)) != 0)) continue;
            if (o->list) {
                printf("%s %s\n", s->name, type_name((swa_type)t));
                continue;
            }
            if (s->isa && (!swa_isa_usable(s->isa) || s->isa == (o->isa ? o->isa : swa_isa_best()))) {
                printf("%-46s SKIPPED: %s is %s here\n", s->name, swa_isa_name(s->isa),
                       swa_isa_usable(s->isa) ? "the plain case" : "not usable");
                o->skipped++;
                continue;
            }
            run_case(o, &c, (swa_type)t);
        }
    }
}

/* ---- command line ---- */

static const char usage[] =
    "bench [--full] [--quick] [--case SUBSTRING] [--type f32|f16|bf16|q8|q8_32|e4m3|e5m2] [--threads 1,2] [--isa N] "
    "[--csv PATH]\n"
    "      [--beside SIDE.so] [--list]\n"
    "Without --case, --type or --quick the results also go to bench/results/CPU/latest.csv.\n";

static int parse(options *o, int argc, char **argv) {
    const char *threads = "1,2", *isa = "0";
    const option known[] = {
        { "--full", &o->full, NULL },   { "--quick", &o->quick, NULL },  { "--list", &o->list, NULL },
        { "--case", NULL, &o->filter }, { "--type", NULL, &o->type },    { "--csv", NULL, &o->csv },
        { "--isa", NULL, &isa },        { "--threads", NULL, &threads }, { "--beside", NULL, &o->beside },
    };
    if (!parse_options(argc, argv, known, sizeof known / sizeof *known)) return 0;
    o->n_threads = parse_threads(threads, o->threads, 8);
    o->isa = atoi(isa);
    if (o->beside) {
        void *so = dlopen(o->beside, RTLD_NOW | RTLD_LOCAL);
        o->side = so ? (const side *)dlsym(so, "bench_side") : NULL;
        if (o->side == NULL) die("no side there");
    }
    if (o->csv == NULL && !o->filter && !o->type && !o->quick && !o->beside) o->csv = results_path("latest.csv");
    return o->n_threads > 0 && (o->isa == 0 || swa_isa_usable(o->isa));
}

int main(int argc, char **argv) {
    static options o;
    double began = now();
    if (!parse(&o, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    if (o.list) {
        run_all(&o);
        return 0;
    }
    o.out = report_begin(o.csv, o.quick, o.threads, o.n_threads, ": stored, input");
    run_all(&o);
    if (o.out && !csv_close(o.out, o.csv)) die("cannot write the CSV");
    printf("%d rows, %d WRONG, %d FAILED, %d SKIPPED, %d disturbed, %.0f s\n", o.rows, o.wrong, o.failed, o.skipped,
           o.disturbed, now() - began);
    return o.wrong > 0 || o.failed > 0 || o.rows == 0;
}
