/* mla.c - the whole latent-attention block of DeepSeek-V3's sizes, from hidden state to output, on this machine.

       cc -O2 -o build/bench_mla bench/mla.c -lm -lpthread
       build/bench_mla                    all cases, under six minutes; writes bench/results/CPU/mla.csv; takes 5 GB
       build/bench_mla --case mla-step --threads 1        no CSV
       build/bench_mla --case mla-auto-n4096 --quick
       build/bench_mla --list

   mla-projections-*    One token that sees one cached position: 187 M weights are read once and little else happens.
                        The floor is weight bytes / DRAM bandwidth. Further rows give the matrices by phase of the
                        call, named as in swa.h: what stands between them (norms, RoPE, attention) is in the first row
                        only, and W_UK's row holds the queries' RoPE too. Goal: 88 % of DRAM.
   mla-step-n4096-*     One decode step at 4096 cached positions, by path. The floor is the longer of multiply-adds /
                        FMAs from L1 and bytes / bandwidth, both as swa_mla_choose counts them. The rows "against" hold
                        pairs of steps, the other path's and an absorbed one: the rate is how many times longer the
                        other takes. Goals: naive 25 times, merged 2.4 times.
   mla-auto-nN-cC       C new tokens over N cached ones: the path that AUTO takes against the fastest of all paths,
                        least times of alternating runs. Goal: at most 5 % over the best. Merged takes part for one
                        new token only: its matrices are eight times as large, so more tokens never favour it.

   A sample has the machine's limits read before and after it, as in bench.c, and one during which somebody else had
   the CPU for more than 2 % is dropped while clean ones can be had. Weights are random, the cache is f32, the path's
   answer is held against another path's on the same input; AUTO's must have the very bits of its choice. */
#define _GNU_SOURCE
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "common.h"
#include "limits.h"
#include "report.h"

enum { HIDDEN = 7168, HEADS = 128, Q_LORA = 1536, KV_LORA = 512, ROPE = 64, NOPE = 128, V_DIM = 128 };
enum { MOST_CACHED = 4096 };
enum { MERGED = SWA_MLA_ABSORBED + 1, N_PATHS }; /* the absorbed path over merged weights counts as one */
static const char *const path_names[N_PATHS] = { "auto", "naive", "absorbed", "merged" };

#define TOLERANCE 2e-5 /* relative rms between two paths                                         */
#define TOO_LONG  60.0 /* seconds of a cell of the grid, by its multiply-adds                    */

/* ---- weights ---- */

/* As DeepSeek ships them: wq_a, wkv_a, wq_b, wkv_b, wo, each [rows][cols]. */
enum { WQ_A, WKV_A, WQ_B, WKV_B, WO, MATRICES };
static const struct {
    size_t rows, cols;
} matrices[MATRICES] = {
    { Q_LORA, HIDDEN },
    { KV_LORA + ROPE, HIDDEN },
    { (size_t)HEADS * (NOPE + ROPE), Q_LORA },
    { (size_t)HEADS * (NOPE + V_DIM), KV_LORA },
    { HIDDEN, (size_t)HEADS *V_DIM },
};

static size_t weight_count(void) {
    size_t n = 0;
    for (int i = 0; i < MATRICES; i++) n += matrices[i].rows * matrices[i].cols;
    return n;
}

/* All matrices behind each other, made once per type; outputs of a matrix are about as large as its inputs. */
static const void *weights_get(swa_type type) {
    static void *made[4];
    uint64_t s = 88172645463325252u;
    float *w;
    if (made[type]) return made[type];
    made[type] = big_alloc(weight_count() * type_bytes(type));
    if (type != SWA_F32) {
        convert(made[type], type, (const float *)weights_get(SWA_F32), weight_count());
        return made[type];
    }
    w = (float *)made[type];
    for (int i = 0; i < MATRICES; i++) {
        float scale = sqrtf(3.0f / (float)matrices[i].cols);
        for (size_t n = matrices[i].rows * matrices[i].cols; n > 0; n--) *w++ = scale * rng_uniform(&s);
    }
    return made[type];
}

static void weights_set(swa_mla *m, swa_type type) {
    swa_matrix *const to[MATRICES] = { &m->w_dq, &m->w_dkv, &m->w_uq, &m->w_uk, &m->w_o };
    const char *p = (const char *)weights_get(type);
    for (int i = 0; i < MATRICES; i++) {
        to[i]->p = p;
        to[i]->type = type;
        p += matrices[i].rows * matrices[i].cols * type_bytes(type);
    }
    m->w_kr = m->w_dkv; /* as published: each of these holds two */
    m->w_qr = m->w_uq;
    m->w_uv = m->w_uk;
}

/* The block with merged matrices, of the f32 weights: 2.3 GB and some seconds, so once. */
static const swa_mla *merged_get(const swa_mla *m) {
    static swa_mla made;
    size_t bytes = swa_mla_merged_bytes(m);
    double began = now();
    if (made.w_uqk.p) return &made;
    must(swa_mla_merge(m, big_alloc(bytes), bytes, &made), "merge");
    printf("%-46s %.2f GB in %.1f s\n", "  merged matrices", (double)bytes * 1e-9, now() - began);
    return &made;
}

/* ---- the block over a cache ---- */

typedef struct {
    swa_mla mla;
    const swa_mla *use; /* this, or the merged one                                                */
    swa_cache cache;
    int64_t cached; /* positions before the step, the same for every sample                   */
    int fresh;      /* tokens of the step                                                     */
    pool *p;
    const float *h;
    float *out;
    double phase[SWA_MLA_PHASES]; /* seconds of the last step                                               */
    double lost;                  /* share of it that somebody else had the CPU                             */
} block;

static void block_sizes(swa_mla *m, swa_type type) {
    static double freq[ROPE / 2];
    static float ones[Q_LORA];
    swa_yarn_desc y = { 10000, 40, 4096, 1, 32, 1 };
    memset(m, 0, sizeof *m);
    m->hidden = HIDDEN;
    m->n_heads = HEADS;
    m->q_lora_rank = Q_LORA;
    m->kv_lora_rank = KV_LORA;
    m->rope_dim = ROPE;
    m->nope_dim = NOPE;
    m->v_dim = V_DIM;
    m->eps = 1e-6f;
    m->mscale = 0.1 * log(40) + 1;
    must(swa_yarn(&y, ROPE, freq, NULL), "yarn");
    for (int i = 0; i < Q_LORA; i++) ones[i] = 1;
    m->freq = freq;
    m->q_norm = m->kv_norm = ones;
    weights_set(m, type);
}

/* Random rows at positions 0..n-1. */
static void block_fill(block *b, int64_t n) {
    swa_attn a = { 0 };
    a.mode = SWA_STORE_ONLY;
    a.k.p = inputs_get(BUF_NORMAL_K, (size_t)MOST_CACHED * KV_LORA);
    a.k_tail.p = inputs_get(BUF_NORMAL_V, (size_t)MOST_CACHED * ROPE);
    must(swa_step_one(&b->cache, 0, 0, (int32_t)n), "begin");
    must(swa_attend(&b->cache, 0, &a), "fill");
}

/* fresh tokens over `cached` ones, on all threads of p, by any path. */
static void block_setup(block *b, swa_type type, int64_t cached, int fresh, pool *p) {
    swa_cache_desc d = { 0 };
    size_t bytes, most = 0;
    memset(b, 0, sizeof *b);
    block_sizes(&b->mla, type);
    b->p = p;
    b->cached = cached;
    d.shape = swa_mla_shape(&b->mla, 0);
    d.n_layers = 1;
    d.max_context = cached + fresh;
    b->fresh = fresh;
    for (int path = 0; path < MERGED; path++) { /* merged takes less */
        b->mla.path = (swa_mla_path)path;
        bytes = swa_mla_scratch_bytes(&b->mla, &d, fresh, p->n);
        if (bytes > most) most = bytes;
    }
    must(cache_make(&b->cache, &d, most, BUF_CACHE), "cache");
    block_fill(b, cached);
    b->h = inputs_get(BUF_Q, (size_t)fresh * HIDDEN);
    b->out = (float *)buffer_get(BUF_OUT, (size_t)fresh * HIDDEN * sizeof(float));
}

static void block_part(void *arg, int part, int parts) {
    block *b = (block *)arg;
    for (int phase = 0; phase < SWA_MLA_PHASES; phase++) {
        double began = now();
        must(swa_mla_forward_part(&b->cache, 0, b->use, b->h, b->out, phase, part, parts), "forward");
        pool_join(b->p);
        if (part == 0) b->phase[phase] = now() - began;
    }
}

/* Seconds of one step. Every sample takes the last one's tokens back and is the same step again. */
static double block_sample(block *b, int path) {
    swa_run run = { .n = b->fresh, .pos = b->cached, .rewind = 1 };
    double t;
    b->mla.path = path == MERGED ? SWA_MLA_AUTO : (swa_mla_path)path;
    b->use = path == MERGED ? merged_get(&b->mla) : &b->mla;
    must(swa_step_begin(&b->cache, &run, 1), "begin");
    t = pool_time(b->p, block_part, b);
    b->lost = pool_lost(b->p) / t;
    return t;
}

static size_t out_count(const block *b) { return (size_t)b->fresh * HIDDEN; }
static float *out_copy(const block *b) {
    float *copy = (float *)buffer_get(BUF_CHECK, out_count(b) * sizeof(float));
    memcpy(copy, b->out, out_count(b) * sizeof(float));
    return copy;
}
/* The last step's answer against another's. */
static double out_error(const block *b, const float *other) {
    rms_sum sum = { 0, 0 };
    for (size_t i = 0; i < out_count(b); i++) {
        double e = (double)b->out[i] - (double)other[i];
        sum.err2 += e * e;
        sum.ref2 += (double)other[i] * (double)other[i];
    }
    return sum.ref2 > 0 ? rms_value(&sum) : HUGE_VAL;
}

/* ---- samples and lines ---- */

typedef struct {
    int threads[8], n_threads, quick, list;
    const char *filter, *csv;
    FILE *out;
    int rows, wrong, skipped, disturbed;
} options;

typedef struct {
    int n, disturbed;
    double time[MAX_SAMPLES], absorbed[MAX_SAMPLES], phase[SWA_MLA_PHASES][MAX_SAMPLES];
    limits limit[MAX_SAMPLES];
} samples;

/* Steps by a path; if that is not the absorbed one, each beside a step by that. */
static void take_samples(samples *s, block *b, int path, int quick) {
    double budget = quick ? 0.3 : 2.0, lost = 0, limit_s = 0.002, began;
    int least = quick ? 2 : 3, tries = 0, isa = swa_isa_best();
    limits before, after;
    memset(s, 0, sizeof *s);
    block_sample(b, path);
    before = limits_sample(b->p, isa, limit_s);
    for (began = now(); s->n < MAX_SAMPLES - 1;) {
        double late;
        if (path != SWA_MLA_ABSORBED) {
            s->absorbed[s->n] = block_sample(b, SWA_MLA_ABSORBED);
            lost = b->lost;
        }
        s->time[s->n] = block_sample(b, path);
        if (b->lost > lost) lost = b->lost;
        for (int i = 0; i < SWA_MLA_PHASES; i++) s->phase[i][s->n] = b->phase[i];
        after = limits_sample(b->p, isa, limit_s);
        s->limit[s->n] = limits_better(before, after);
        before = after;
        late = now() - began;
        tries++;
        if (lost < 0.02) s->n++;
        else if (late > 3 * budget && tries >= 2 * least && s->n < least) {
            s->n++;
            s->disturbed = 1;
        }
        lost = 0;
        if (s->n >= least && late >= budget) return;
    }
}

static void write_row(options *o, const result *r, int disturbed, int wrong, const char *more) {
    char text[160];
    snprintf(text, sizeof text, "%s%s%s", more, disturbed ? " disturbed" : "", wrong ? " WRONG" : "");
    report(o->out, r, text);
    o->rows++;
    o->disturbed += disturbed;
    o->wrong += wrong;
}

/* What took time[] and had so many flops and bytes to do, against the limits beside each sample. */
static void limited_row(options *o, const char *name, int threads, const samples *s, const double *time, double flops,
                        double bytes, double error) {
    double product[MAX_SAMPLES], dram[MAX_SAMPLES], percent[MAX_SAMPLES], of_fma[MAX_SAMPLES];
    result r = { .name = name, .isa = swa_isa_best(), .threads = threads };
    char more[32];
    int dram_binds;
    for (int i = 0; i < s->n; i++) {
        product[i] = flops / s->limit[i].product;
        dram[i] = bytes / s->limit[i].dram;
        percent[i] = 100 * (product[i] > dram[i] ? product[i] : dram[i]) / time[i];
        of_fma[i] = 100 * flops / s->limit[i].fma / time[i];
    }
    dram_binds = median(dram, s->n) >= median(product, s->n);
    r.limit = limit_name(r.isa, dram_binds);
    if (!dram_binds) r.percent_fma = median(of_fma, s->n);
    r.unit = dram_binds ? "GB/s" : "GFLOP/s";
    r.med = median(time, s->n);
    r.min = smallest(time, s->n);
    r.rate = (dram_binds ? bytes : flops) / r.med * 1e-9;
    r.percent = median(percent, s->n);
    snprintf(more, sizeof more, "%.1e", error);
    write_row(o, &r, s->disturbed, !(error <= TOLERANCE), error > 0 ? more : "");
}

/* ---- cases of one token ---- */

typedef struct {
    const char *name;
    int64_t cached; /* 1: the matrices by phase too                                           */
    int path;
    swa_type type;
    const char *against; /* how the row of pairs is called                                         */
} test;

static const test tests[] = {
    { "mla-projections-f32", 1, SWA_MLA_ABSORBED, SWA_F32, NULL },
    { "mla-projections-bf16", 1, SWA_MLA_ABSORBED, SWA_BF16, NULL },
    { "mla-step-n4096-absorbed-f32", 4096, SWA_MLA_ABSORBED, SWA_F32, NULL },
    { "mla-step-n4096-absorbed-bf16", 4096, SWA_MLA_ABSORBED, SWA_BF16, NULL },
    { "mla-step-n4096-naive-f32", 4096, SWA_MLA_NAIVE, SWA_F32, "mla-step-n4096-absorbed-f32-against-naive" },
    { "mla-step-n4096-merged-f32", 4096, MERGED, SWA_F32, "mla-step-n4096-absorbed-f32-against-merged" },
};

/* The phases that are matrix products. */
static const struct {
    int phase;
    const char *name;
    double weights;
} products[] = {
    { 0, "w_dq-w_dkv-w_kr", (double)(Q_LORA + KV_LORA + ROPE) * HIDDEN },
    { 2, "w_uq-w_qr", (double)HEADS *(NOPE + ROPE) * Q_LORA },
    { 3, "w_uk", (double)HEADS *NOPE *KV_LORA },
    { 6, "w_uv", (double)HEADS *V_DIM *KV_LORA },
    { 7, "w_o", (double)HIDDEN *HEADS *V_DIM },
};

static void product_rows(options *o, const test *t, const samples *s, int threads) {
    char name[96];
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        double n = products[i].weights;
        snprintf(name, sizeof name, "%s-%s", t->name, products[i].name);
        limited_row(o, name, threads, s, s->phase[products[i].phase], 2 * n, n * (double)type_bytes(t->type), 0);
    }
}

static void against_row(options *o, const test *t, const samples *s, int threads) {
    double ratio[MAX_SAMPLES];
    result r = { .name = t->against, .isa = swa_isa_best(), .threads = threads, .unit = "times" };
    for (int i = 0; i < s->n; i++) ratio[i] = s->time[i] / s->absorbed[i];
    r.limit = path_names[t->path];
    r.med = median(s->absorbed, s->n);
    r.min = smallest(s->absorbed, s->n);
    r.rate = median(ratio, s->n);
    r.percent = 100 * r.rate;
    write_row(o, &r, s->disturbed, 0, "");
}

static void run_test(options *o, const test *t, int threads) {
    static samples s;
    int other = t->path == SWA_MLA_NAIVE ? SWA_MLA_ABSORBED : SWA_MLA_NAIVE;
    swa_mla_cost cost[4];
    const swa_mla_cost *c = &cost[t->path - SWA_MLA_NAIVE];
    const float *want;
    block b;
    pool p;
    pool_start(&p, threads);
    if (mach.streams[threads] == 0) machine_calibrate(&p);
    block_setup(&b, t->type, t->cached, 1, &p);
    swa_mla_choose(&b.mla, t->cached, 1, cost);
    take_samples(&s, &b, t->path, o->quick);
    block_sample(&b, other);
    want = out_copy(&b);
    block_sample(&b, t->path);
    limited_row(o, t->name, threads, &s, s.time, 2 * c->macs, c->weight_bytes + c->cache_bytes, out_error(&b, want));
    if (t->cached == 1) product_rows(o, t, &s, threads);
    if (t->against) against_row(o, t, &s, threads);
    pool_stop(&p);
}

/* ---- the grid of AUTO ---- */

static const int cached_grid[] = { 1, 16, 64, 256, 1024, MOST_CACHED }, fresh_grid[] = { 1, 8, 64, 171, 512 };
static const int quick_cached[] = { 0, 1, 0, 0, 1, 0 }, quick_fresh[] = { 1, 1, 0, 1, 0 };
enum { N_CACHED = 6, N_FRESH = 5 };

typedef struct {
    int choice, best;
    double over; /* percent; 0 if the choice is the best                                   */
    int state;   /* 0 = not asked for, 1 = measured, 2 = would take too long               */
} cell;

typedef struct {
    int n[N_PATHS], disturbed;
    double time[N_PATHS][MAX_SAMPLES];
    double error, differs;
} cell_samples;

/* AUTO once, for its bits and to touch all memory, then the paths in turn. */
static void cell_take(cell_samples *s, block *b, int choice, int quick) {
    double budget = quick ? 0.2 : 1.0, began;
    int least = quick ? 1 : 2, clean = 0, tries = 0, most = b->fresh == 1 ? MERGED : SWA_MLA_ABSORBED;
    const float *want;
    memset(s, 0, sizeof *s);
    s->time[SWA_MLA_AUTO][0] = block_sample(b, SWA_MLA_AUTO);
    want = out_copy(b);
    for (began = now(); tries < MAX_SAMPLES - 1; tries++) {
        double lost = 0, late;
        for (int path = SWA_MLA_NAIVE; path <= most; path++) {
            s->time[path][tries] = block_sample(b, path);
            s->n[path] = tries + 1;
            if (b->lost > lost) lost = b->lost;
            if (tries > 0) continue;
            if (path == choice) s->differs = memcmp(b->out, want, out_count(b) * sizeof(float)) != 0;
            else if (out_error(b, want) > s->error) s->error = out_error(b, want);
        }
        clean += lost < 0.02;
        late = now() - began;
        if (late >= budget && (clean >= least || (late > 3 * budget && tries + 1 >= 2 * least))) break;
    }
    s->disturbed = clean < least;
}

static void run_cell(options *o, pool *p, int cached, int fresh, cell *c) {
    static cell_samples s;
    swa_mla_cost cost[4];
    char name[48], more[128];
    double least[N_PATHS] = { 0 };
    result r = { .name = name, .isa = swa_isa_best(), .threads = p->n, .unit = "% over" };
    block b;
    int at = 0;
    snprintf(name, sizeof name, "mla-auto-n%d-c%d", cached, fresh);
    if (o->filter && strstr(name, o->filter) == NULL) return;
    if (o->list) {
        puts(name);
        return;
    }
    block_setup(&b, SWA_F32, cached, fresh, p);
    c->choice = swa_mla_choose(&b.mla, cached, fresh, cost);
    c->state = 2;
    o->skipped++;
    if (2 * (cost[0].macs + cost[1].macs) > TOO_LONG * mach.fma1[r.isa] * p->n) return;
    o->skipped--;
    c->state = 1;
    cell_take(&s, &b, c->choice, o->quick);
    c->best = SWA_MLA_NAIVE;
    for (int path = SWA_MLA_NAIVE; path < N_PATHS && s.n[path] > 0; path++) {
        least[path] = smallest(s.time[path], s.n[path]);
        if (least[path] < least[c->best]) c->best = path;
    }
    c->over = 100 * (least[c->choice] / least[c->best] - 1);
    r.med = median(s.time[c->choice], s.n[c->choice]);
    r.min = least[c->choice];
    r.rate = c->over;
    r.limit = path_names[c->best];
    r.percent = 100 * least[c->best] / least[c->choice];
    at = snprintf(more, sizeof more, "%.1e choice %s; ms: auto %.1f", s.error, path_names[c->choice],
                  1e3 * s.time[SWA_MLA_AUTO][0]);
    for (int path = SWA_MLA_NAIVE; path < N_PATHS && s.n[path] > 0; path++)
        at += snprintf(more + at, sizeof more - (size_t)at, ", %s %.1f", path_names[path], 1e3 * least[path]);
    write_row(o, &r, s.disturbed, s.differs != 0 || !(s.error <= TOLERANCE), more);
}

static void auto_table(cell grid[N_CACHED][N_FRESH]) {
    double worst = 0;
    printf("\nAUTO's choice, and what it takes over the fastest path; down: cached positions, across: new tokens\n%8s",
           "");
    for (int f = 0; f < N_FRESH; f++) printf("%18d", fresh_grid[f]);
    for (int n = 0; n < N_CACHED; n++) {
        printf("\n%8d", cached_grid[n]);
        for (int f = 0; f < N_FRESH; f++) {
            const cell *c = &grid[n][f];
            if (c->state == 1) printf("%9s %+6.1f %%", path_names[c->choice], c->over);
            else printf("%18s", c->state == 2 ? "over a minute" : "-");
            if (c->state == 1 && c->over > worst) worst = c->over;
        }
    }
    printf("\nworst: %.1f %% over the best\n\n", worst);
}

static void run_auto(options *o) {
    static cell grid[N_CACHED][N_FRESH];
    int any = 0;
    pool p;
    pool_start(&p, o->threads[0]);
    for (int n = 0; n < N_CACHED; n++)
        for (int f = 0; f < N_FRESH; f++) {
            if (o->quick && !(quick_cached[n] && quick_fresh[f])) continue;
            run_cell(o, &p, cached_grid[n], fresh_grid[f], &grid[n][f]);
            any |= grid[n][f].state;
        }
    pool_stop(&p);
    if (any) auto_table(grid);
}

/* ---- command line ---- */

static const char usage[] =
    "bench_mla [--quick] [--case SUBSTRING] [--threads 1,2] [--csv PATH] [--list]\n"
    "The grid of AUTO runs on the first number of threads. Without --case or --quick the results also go to\n"
    "bench/results/CPU/mla.csv.\n";

static int parse(options *o, int argc, char **argv) {
    const char *threads = "1,2";
    const option known[] = {
        { "--quick", &o->quick, NULL }, { "--list", &o->list, NULL },    { "--case", NULL, &o->filter },
        { "--csv", NULL, &o->csv },     { "--threads", NULL, &threads },
    };
    if (!parse_options(argc, argv, known, sizeof known / sizeof *known)) return 0;
    o->n_threads = parse_threads(threads, o->threads, 8);
    if (o->csv == NULL && !o->filter && !o->quick) o->csv = results_path("mla.csv");
    return o->n_threads > 0;
}

static void run_all(options *o) {
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (o->filter && strstr(tests[i].name, o->filter) == NULL) continue;
        if (o->list) puts(tests[i].name);
        for (int t = 0; t < o->n_threads && !o->list; t++) run_test(o, &tests[i], o->threads[t]);
    }
    run_auto(o);
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
    setvbuf(stdout, NULL, _IOLBF, 0);
    o.out = report_begin(o.csv, o.quick, o.threads, o.n_threads, " against another path");
    run_all(&o);
    if (o.out && !csv_close(o.out, o.csv)) die("cannot write the CSV");
    printf("%d rows, %d WRONG, %d SKIPPED, %d disturbed, %.0f s\n", o.rows, o.wrong, o.skipped, o.disturbed,
           now() - began);
    return o.wrong > 0 || o.rows == 0;
}
