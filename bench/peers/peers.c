/* peers.c - swa.h beside other people's attention, on the same inputs, in the same minutes.

   Started by bench/peers.sh, which fetches the packages and builds this. A pair of samples is ours, then theirs;
   the ratio is the median over pairs of their time / our time. Both sides do the same work on data that no cache
   holds, and both answers are held against double precision. Whether a peer's bits stay the same is tried as well: one
   token with other threads, in another chunk, alone, and in a longer prompt. What flatters the peers is left in: ggml
   and OpenBLAS do not store the new rows, ours are stored in the ring; ggml's queries are laid out for it outside the
   clock.

       build/peers/peers [--case SUBSTRING] [--peer SUBSTRING] [--threads 1,2] [--csv PATH] [--quick] */
#define _GNU_SOURCE
#define SWA_IMPLEMENTATION
#include "../../swa.h"
#include "../common.h"
#include "../work.h"
#include "../kind.h"
#include "peer.h"

#define COLD_BYTES ((size_t)512 << 20)

/* ---- what peer.h promises ---- */

double peer_parallel(int threads, void (*fn)(void *arg, int part, int parts), void *arg) {
    pool p;
    double t;
    pool_start(&p, threads);
    t = pool_time(&p, fn, arg);
    pool_stop(&p);
    return t;
}
void *peer_alloc(unsigned long bytes) { return big_alloc(bytes); }
void peer_convert(void *dst, int type, const float *src, unsigned long n) { convert(dst, (swa_type)type, src, n); }
const char *peer_dir(void) { return getenv("PEERS_DIR") ? getenv("PEERS_DIR") : "build/peers"; }

/* ---- cases ---- */

enum { FLASH = 1, FLASH_512 = 2, MATMUL = 4, BLAS = 8, NAIVE = 16, ORT = 32, PEERS = 6 };
static peer *const peers[PEERS] = { &peer_ggml_flash, &peer_ggml_flash_512, &peer_ggml_matmul,
                                    &peer_openblas,   &peer_naive,          &peer_onnxruntime };
typedef struct {
    spec s;
    unsigned f32, narrow;
} comparison; /* peers with f32 K/V, and with the narrow types   */

/* clang-format off */
static const comparison comparisons[] = {
    { { .name = "prefill-8192-w4096-d128", .types = F32 | F16, .n = 8192, .window = 4096 },
      FLASH_512 | BLAS | ORT, FLASH_512 },
    { { .name = "prefill-8192-w1024-d128", .types = F32 | F16, .n = 8192, .window = 1024 },
      FLASH | FLASH_512 | BLAS | ORT, FLASH | FLASH_512 },
    { { .name = "prefill-512-causal-d128", .types = F32 | F16, .n = 512 },
      FLASH | MATMUL | BLAS | ORT | NAIVE, FLASH | MATMUL },
    { { .name = "decode-w4096-d128", .types = F32 | F16 | BF16 | Q8, .n = 1, .window = 4096, .start = 8192 },
      FLASH | MATMUL | ORT | NAIVE, FLASH | MATMUL },
    { { .name = "mla-decode-n1024-h128", .types = F32 | F16, .n = 1, .window = 1024, .start = 8192, .heads = 128,
        .kv_heads = 1, .dim = 512, .tail = 64 }, FLASH | MATMUL, FLASH | MATMUL },
    { { .name = "mla-decode-n4096-h128", .types = F32 | F16, .n = 1, .window = 4096, .start = 8192, .heads = 128,
        .kv_heads = 1, .dim = 512, .tail = 64 }, FLASH | MATMUL, FLASH | MATMUL },
};
/* clang-format on */

typedef struct {
    const char *filter, *peer, *csv;
    int threads[8], n_threads, quick;
    FILE *out;
    int rows, missing, wrong;
} options;

static problem problem_of(const work *w, int threads) {
    const spec *s = &w->s;
    problem p = { 0 };
    p.n = s->n;
    p.heads = spec_heads(s);
    p.kv_heads = spec_kv_heads(s);
    p.dk = spec_krow(s);
    p.dv = spec_dim(s);
    p.mla = s->tail > 0;
    p.window = s->window;
    p.pos = s->start;
    p.pos0 = w->in0;
    p.type = (int)w->type;
    p.threads = threads;
    p.layers = w->layers;
    p.scale = s->tail ? (double)w->attn.scale : 1.0 / sqrt(spec_dim(s));
    p.q = w->attn.q.p;
    p.k = w->k;
    p.v = s->tail ? w->k : w->v;
    return p;
}

/* The peer's answer for the last token, some heads, on K/V rounded to the type. */
static double peer_error(const work *w, const peer *x) {
    const spec *s = &w->s;
    int64_t first, t = s->n - 1, pos = s->start + t, lo = spec_lo(s, pos), n = pos + 1 - lo;
    int dk = spec_krow(s), dv = spec_dim(s), heads = spec_heads(s);
    float *k = (float *)buffer_get(BUF_CHECK, (size_t)(n * (dk + dv)) * 4), *v = k + n * dk;
    const float *out = x->out(&first);
    rms_sum sum = { 0, 0 };
    for (int h = 0; h < heads; h += (heads - 1) / 3) {
        keys_of_inputs(w, w->type, lo, n, h / (heads / spec_kv_heads(s)), k, v);
        oracle_row(&sum, w->attn.q.p + (t * heads + h) * dk, k, v, n, dk, dv, dv,
                   s->tail ? (double)w->attn.scale : 1.0 / sqrt(dv), out + ((t - first) * heads + h) * dv);
    }
    return rms_value(&sum);
}

static double our_sample(work *w, int threads) {
    pool p;
    double t, lost;
    pool_start(&p, threads);
    w->p = &p;
    w->parts = threads;
    t = work_sample(w, &lost);
    pool_stop(&p);
    return t;
}

/* ---- the same bits? ---- */

enum { TOKEN = 32 * 128, LONGEST = 800 };
typedef struct {
    const char *name;
    int n, past, threads;
} way; /* n more tokens behind `past` ones */

/* Token `token` of the way into row [32][128]; 0 = the peer does not do that. */
static int one_token(peer *x, const float *qkv, const way *how, int token, float *row) {
    problem p = { 0 };
    int64_t first;
    int done;
    p.n = how->n;
    p.heads = 32;
    p.kv_heads = 8;
    p.dk = p.dv = 128;
    p.pos = how->past;
    p.type = PEER_F32;
    p.threads = how->threads;
    p.layers = 1;
    p.scale = 1.0 / sqrt(128.0);
    p.q = qkv + (size_t)how->past * TOKEN;
    p.k = qkv + (size_t)LONGEST * TOKEN;
    p.v = p.k + (size_t)LONGEST * 8 * 128;
    done = x->setup(&p) == NULL && x->sample() > 0;
    if (done) {
        const float *out = x->out(&first);
        done = token - how->past >= first;
        if (done) memcpy(row, out + (token - how->past - first) * TOKEN, TOKEN * sizeof(float));
    }
    x->done();
    return done;
}

/* "yes", or in which ways the bits of one token were others. */
static const char *same_bits(peer *x) {
    static char known[PEERS][64];
    static float row[2][TOKEN];
    size_t floats = (size_t)LONGEST * (TOKEN + 2 * 8 * 128);
    float *qkv;
    char *word = NULL;
    uint32_t seed = 1;
    for (int i = 0; i < PEERS; i++)
        if (peers[i] == x) word = known[i];
    if (word[0]) return word;
    qkv = (float *)peer_alloc(floats * sizeof(float));
    for (size_t i = 0; i < floats; i++) {
        seed = seed * 1664525u + 1013904223u;
        qkv[i] = (float)((int)(seed >> 8 & 0xffff) - 32768) / 16384.0f;
    }
    for (int n = 700; n >= 500 && !word[0]; n -= 200) {
        const way base = { "", n, 0, 1 };
        const way ways[] = { { " threads", n, 0, 2 },
                             { " chunk", 300, n - 300, 1 },
                             { " chunk", n - 100, 100, 1 },
                             { " alone", 1, n - 1, 1 },
                             { " prompt", n + 12, 0, 1 } };
        int tried = 0;
        if (!one_token(x, qkv, &base, n - 1, row[0])) continue;
        strcpy(word, "other");
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            if (!one_token(x, qkv, &ways[i], n - 1, row[1])) continue;
            tried++;
            if (memcmp(row[0], row[1], sizeof row[0]) != 0 && !strstr(word, ways[i].name)) strcat(word, ways[i].name);
        }
        if (strcmp(word, "other") == 0) strcpy(word, tried ? "yes" : "untried");
    }
    if (!word[0]) strcpy(word, "untried");
    free(qkv);
    return word;
}

/* ---- the comparison ---- */

static void compare(options *o, const char *name, work *w, peer *x, int threads) {
    problem p = problem_of(w, threads);
    const char *why = x->setup(&p);
    double ours[MAX_SAMPLES], theirs[MAX_SAMPLES], ratio[MAX_SAMPLES], began, error, first;
    accuracy mine;
    int n = 0;
    if (why) {
        printf("%-30s %-22s %d SKIPPED: %s\n", name, x->name, threads, why);
        o->missing++;
        x->done();
        return;
    }
    our_sample(w, threads);
    first = x->sample();
    began = now();
    while (n < MAX_SAMPLES - 1 && first > 0) {
        ours[n] = our_sample(w, threads);
        theirs[n] = x->sample();
        ratio[n] = theirs[n] / ours[n];
        n++;
        if (n >= (o->quick ? 1 : 3) && now() - began > (o->quick ? 0.2 : 1.0)) break;
    }
    error = first > 0 ? peer_error(w, x) : HUGE_VAL;
    mine = work_check(w);
    x->done();
    if (w->failed) printf("%s: ours failed in %s: %s\n", name, w->failed, swa_status_str(w->status));
    if (w->failed || n == 0 || !(error < 5e-2) || !(mine.stored < 5e-3)) {
        printf("%-30s %-22s %d WRONG: error %.1e, ours %.1e\n", name, x->name, threads, error, mine.stored);
        o->wrong++;
        return;
    }
    printf("%-30s %-22s %d %12.2f us, ours %12.2f us, ratio %6.2f   error %.1e, ours %.1e   same bits: %s\n", name,
           x->name, threads, median(theirs, n) * 1e6, median(ours, n) * 1e6, median(ratio, n), error, mine.stored,
           same_bits(x));
    fflush(stdout);
    if (o->out)
        fprintf(o->out, "%s,%s,%s,%d,%.3f,%.3f,%.3f,%.1e,%.1e,%s\n", name, x->name, x->version, threads,
                median(theirs, n) * 1e6, median(ours, n) * 1e6, median(ratio, n), error, mine.stored, same_bits(x));
    o->rows++;
}

static void run_comparison(options *o, const comparison *c, swa_type type) {
    static work w;
    char name[96];
    int most = 1;
    unsigned which = type == SWA_F32 ? c->f32 : c->narrow;
    snprintf(name, sizeof name, "%s-%s", c->s.name, type_name(type));
    if (o->filter && strstr(name, o->filter) == NULL) return;
    for (int i = 0; i < o->n_threads; i++)
        if (o->threads[i] > most) most = o->threads[i];
    work_setup(&w, &c->s, type, swa_isa_best(), most, COLD_BYTES, BUF_CACHE);
    for (int i = 0; i < o->n_threads; i++)
        for (int x = 0; x < PEERS; x++)
            if ((which >> x & 1) && (!o->peer || strstr(peers[x]->name, o->peer)))
                compare(o, name, &w, peers[x], o->threads[i]);
}

/* ---- products of matrices beside our bf16 products ---- */

/* m, k, n as in q.k of 512 queries over a block, p.v over a window of 4096 keys, q.k over that. Their time for one is
   held against ours for as many flops within attention: 512 tokens over 4096 keys in bf16, by whichever of the two bf16
   modes is the faster on this CPU, softmax included. */
static void compare_product(options *o, const char *name, work *w, const int *size, int threads) {
    const double flops = 2.0 * size[0] * size[1] * size[2], mine = 4.0 * 128 * 32 * 512 * 4096;
    double ours[MAX_SAMPLES], theirs[MAX_SAMPLES], ratio[MAX_SAMPLES], began;
    const char *why = onednn_setup(size[0], size[1], size[2], threads);
    int n = 0;
    if (why || onednn_sample() <= 0) {
        printf("%-30s %-22s %d SKIPPED: %s\n", name, "onednn-matmul", threads, why ? why : "it does not run");
        o->missing++;
        onednn_done();
        return;
    }
    our_sample(w, threads);
    for (began = now(); n < MAX_SAMPLES - 1; n++) {
        if (n >= (o->quick ? 1 : 5) && now() - began > (o->quick ? 0.2 : 1.0)) break;
        ours[n] = our_sample(w, threads) * flops / mine;
        theirs[n] = onednn_sample();
        ratio[n] = theirs[n] / ours[n];
    }
    printf("%-30s %-22s %d %12.2f us, ours %12.2f us, ratio %6.2f   error %.1e: %.0f GFLOP/s\n", name, "onednn-matmul",
           threads, median(theirs, n) * 1e6, median(ours, n) * 1e6, median(ratio, n), onednn_error(),
           flops / median(theirs, n) * 1e-9);
    if (o->out)
        fprintf(o->out, "%s,%s,%s,%d,%.3f,%.3f,%.3f,%.1e,,\n", name, "onednn-matmul", onednn_version(), threads,
                median(theirs, n) * 1e6, median(ours, n) * 1e6, median(ratio, n), onednn_error());
    if (w->failed || !(onednn_error() < 1e-5)) o->wrong++;
    o->rows++;
    onednn_done();
}
static void run_products(options *o) {
    static const int sizes[][3] = { { 512, 128, 256 }, { 512, 4096, 128 }, { 512, 128, 4096 } };
    spec s = { .name = "product", .n = 512, .window = 4096, .start = 8192 };
    static work w;
    char name[96];
    int most = 1, ready = 0;
    s.compute = swa_compute_fastest(SWA_ISA_BEST) == SWA_BF16_TILE ? SWA_BF16_TILE : SWA_BF16;
    for (int i = 0; i < o->n_threads; i++)
        if (o->threads[i] > most) most = o->threads[i];
    for (size_t x = 0; x < sizeof sizes / sizeof *sizes; x++) {
        snprintf(name, sizeof name, "product-%dx%dx%d-bf16", sizes[x][0], sizes[x][1], sizes[x][2]);
        if ((o->filter && !strstr(name, o->filter)) || (o->peer && !strstr("onednn-matmul", o->peer))) continue;
        if (!ready++) work_setup(&w, &s, SWA_BF16, swa_isa_best(), most, COLD_BYTES / 8, BUF_CACHE);
        for (int i = 0; i < o->n_threads; i++) compare_product(o, name, &w, sizes[x], o->threads[i]);
    }
}

static int parse(options *o, int argc, char **argv) {
    const char *threads = "1,2";
    const option known[] = {
        { "--quick", &o->quick, NULL }, { "--case", NULL, &o->filter },  { "--peer", NULL, &o->peer },
        { "--csv", NULL, &o->csv },     { "--threads", NULL, &threads },
    };
    if (!parse_options(argc, argv, known, sizeof known / sizeof *known)) return 0;
    o->n_threads = parse_threads(threads, o->threads, 8);
    if (o->csv == NULL && !o->filter && !o->peer && !o->quick) o->csv = results_path("peers.csv");
    return o->n_threads > 0;
}

int main(int argc, char **argv) {
    static options o;
    double began = now();
    if (!parse(&o, argc, argv)) {
        fputs("peers [--case SUBSTRING] [--peer SUBSTRING] [--threads 1,2] [--csv PATH] [--quick]\n", stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (o.csv) {
        o.out = csv_open(o.csv, "case,peer,version,threads,median_us,ours_us,ratio,error,ours_error,same_bits");
        if (o.out == NULL) die("cannot write the CSV");
    }
    for (size_t c = 0; c < sizeof comparisons / sizeof *comparisons; c++)
        for (int t = SWA_F32; t <= SWA_Q8; t++)
            if (comparisons[c].s.types >> t & 1) run_comparison(&o, &comparisons[c], (swa_type)t);
    run_products(&o);
    if (o.out && !csv_close(o.out, o.csv)) die("cannot write the CSV");
    printf("%d rows, %d comparisons SKIPPED, %d wrong, %.0f s\n", o.rows, o.missing, o.wrong, now() - began);
    return o.wrong > 0 || o.rows == 0;
}
