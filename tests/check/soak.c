/* soak.c [seconds [seed]] - a random mixed load over one cache after another: 64 sequences that join, leave, take
   chunks, decode, roll back, fork, are saved and loaded, and steps that die halfway; four layers with four windows. The
   model keeps every row a sequence ever stored, as the cache rounded it, in an array without bound; each output is
   compared with attention in double over that array. The last line is `N passed, N failed, 0 skipped`. */
#ifndef SWA__IMPLEMENTED
#define SWA_IMPLEMENTATION
#endif
#include "../../swa.h"
#include "../oracle.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SEQS = 64,
    LAYERS = 4,
    HEADS = 4,
    KV = 2,
    DK = 12,
    DV = 20,
    CONTEXT = 360,
    CHUNK = 40,
    ROLLBACK = 24,
    PARTS = 3
};
enum { Q = HEADS * DK, K = KV * DK, V = KV * DV, OUT = HEADS * DV, ROWS = SEQS * CHUNK };

typedef struct {
    int64_t start, end, high; /* high: largest end since it was empty */
    float k[LAYERS][CONTEXT * K], v[LAYERS][CONTEXT * V];
} sequence;

static struct {
    swa_cache cache;
    swa_window window[LAYERS];
    or_window see[LAYERS];
    unsigned char *mem;           /* of the cache, and behind it its scratch */
    sequence *seq;                /* [SEQS] */
    float *q, *k, *v, *out, *lse; /* [ROWS][..] of the layer at hand */
    float alibi[HEADS], logits[HEADS], softcap;
    int modified; /* alibi and sink logits are on */
    int audit;
    long steps, rows, dead, forks, loads, rewinds, lost, full, resets;
    long wrong;
    const char *name;
} w;
static uint64_t rng;

static uint32_t any(void) {
    rng ^= rng >> 12;
    rng ^= rng << 25;
    rng ^= rng >> 27;
    return (uint32_t)((rng * 0x2545F4914F6CDD1Du) >> 32);
}
static int below(int n) { return (int)(any() % (uint32_t)n); }
static int one_in(int n) { return below(n) == 0; }
static void noise(float *x, size_t n, float scale) {
    for (size_t i = 0; i < n; i++) x[i] = scale * (float)((int)(any() >> 16) - 32768) / 32768.0f;
}
static void wrong(const char *what, int seq, int layer, int64_t pos) {
    if (w.wrong++ < 8)
        printf("WRONG %s: %s, sequence %d, layer %d, position %lld, step %ld\n", w.name, what, seq, layer,
               (long long)pos, w.steps);
}
static void *take(size_t bytes) {
    void *p = malloc(bytes);
    if (!p) {
        printf("out of memory\n");
        exit(2);
    }
    return p;
}

/* ---- one world: a cache and its model ---- */

static void world_open(swa_type type, int isa, int64_t capacity) {
    swa_cache_desc d;
    size_t bytes, room;
    memset(&d, 0, sizeof d);
    w.window[0] = swa_window_sliding(33);
    w.see[0] = or_sliding(33);
    w.window[1] = swa_window_sinks(24, 5);
    w.see[1] = or_sliding(24);
    w.see[1].pinned = 5;
    w.window[2] = swa_window_chunked(32);
    w.see[2] = or_causal();
    w.see[2].chunk = 32;
    w.window[3] = swa_window_causal();
    w.see[3] = or_causal();
    d.shape.n_heads = HEADS;
    d.shape.n_kv_heads = KV;
    d.shape.head_dim = DK;
    d.shape.v_dim = DV;
    d.n_layers = LAYERS;
    d.n_seqs = SEQS;
    d.k_type = d.v_type = type;
    d.windows = w.window;
    d.n_windows = LAYERS;
    d.max_context = CONTEXT;
    d.max_rollback = ROLLBACK;
    d.capacity = capacity;
    d.isa = isa;
    w.audit = one_in(2);
    d.audit = w.audit;
    bytes = swa_cache_bytes(&d);
    room = swa_cache_scratch_bytes(&d, PARTS);
    w.mem = (unsigned char *)take(bytes + room);
    if (swa_cache_init(&w.cache, &d, w.mem, bytes) != SWA_OK
        || swa_cache_set_scratch(&w.cache, w.mem + bytes, room) != SWA_OK) {
        printf("init refused\n");
        exit(2);
    }
    w.modified = one_in(2);
    w.softcap = one_in(2) ? 4.0f : 0.0f;
    for (int i = 0; i < SEQS; i++) w.seq[i].start = w.seq[i].end = w.seq[i].high = 0;
}

/* ---- what a sequence holds, compared ---- */

static swa_attn attn_of(int layer) {
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.q.p = w.q;
    /* sinks keep their places; audit asks */
    a.q_sink.p = w.window[layer].n_sink > 0 ? w.q : NULL;
    a.k.p = w.k;
    a.v.p = w.v;
    a.out.p = w.out;
    a.lse = w.lse;
    a.softcap = w.softcap;
    if (w.modified) {
        a.alibi = w.alibi;
        a.sink_logits = w.logits;
    }
    return a;
}
/* The rows just stored go into the model as the cache holds them; they have to be near what was given. */
static void learn(const swa_run *r, int layer) {
    sequence *s = &w.seq[r->seq];
    float *k = s->k[layer] + (r->pos - s->start) * K, *v = s->v[layer] + (r->pos - s->start) * V;
    if (swa_cache_read(&w.cache, r->seq, layer, r->pos, r->n, k, v) != SWA_OK) {
        wrong("new rows cannot be read", r->seq, layer, r->pos);
        return;
    }
    for (int i = 0; i < r->n * K; i++)
        if (!(fabs((double)k[i] - (double)w.k[r->row * K + i]) <= 0.005)) wrong("K as held", r->seq, layer, r->pos);
    for (int i = 0; i < r->n * V; i++)
        if (!(fabs((double)v[i] - (double)w.v[r->row * V + i]) <= 0.005)) wrong("V as held", r->seq, layer, r->pos);
}
static void compare(const swa_run *r, int layer) {
    static double want[CHUNK * OUT], lse[CHUNK * HEADS], room[CONTEXT];
    const sequence *s = &w.seq[r->seq];
    or_case c;
    memset(&c, 0, sizeof c);
    c.n_heads = HEADS;
    c.n_kv_heads = KV;
    c.dk = DK;
    c.dv = DV;
    c.window = w.see[layer];
    if (r->prefix) {
        c.window.span_lo = r->pos;
        c.window.span_hi = r->prefix;
    }
    c.q_pos = r->pos;
    c.k_pos = s->start;
    c.n_q = r->n;
    c.n_k = r->pos + r->n - s->start;
    c.q = w.q + r->row * Q;
    c.k = s->k[layer];
    c.v = s->v[layer];
    c.scale = 1 / sqrt((double)DK);
    c.softcap = (double)w.softcap;
    if (w.modified) {
        c.alibi = w.alibi;
        c.sink_logits = w.logits;
    }
    or_attention(&c, want, lse, room);
    for (int i = 0; i < r->n * OUT; i++)
        if (!(fabs(want[i] - (double)w.out[r->row * OUT + i]) <= 2e-5)) {
            wrong("output", r->seq, layer, r->pos + i / OUT);
            break;
        }
    for (int i = 0; i < r->n * HEADS; i++)
        if (!(fabs(lse[i] - (double)w.lse[r->row * HEADS + i]) <= 1e-4)) {
            wrong("lse", r->seq, layer, r->pos + i / HEADS);
            break;
        }
    w.rows += r->n;
}
/* All that is resident equals what was stored, to the bit. */
static void audit(int seq) {
    static float k[CONTEXT * K], v[CONTEXT * V];
    const sequence *s = &w.seq[seq];
    int layer = below(LAYERS);
    int64_t first = swa_cache_first(&w.cache, seq, layer), n = s->end - first, at = first - s->start;
    if (swa_cache_end(&w.cache, seq) != s->end) wrong("end", seq, layer, s->end);
    if (n <= 0) return;
    if (swa_cache_read(&w.cache, seq, layer, first, (int32_t)n, k, v) != SWA_OK) wrong("read", seq, layer, first);
    else if (memcmp(k, s->k[layer] + at * K, (size_t)(n * K) * sizeof(float)) != 0
             || memcmp(v, s->v[layer] + at * V, (size_t)(n * V) * sizeof(float)) != 0)
        wrong("rows held", seq, layer, first);
}

/* ---- steps ---- */

/* May a rewind to pos be refused? Never within max_rollback of the highest end, never to the start. */
static int may_lose(const sequence *s, int64_t pos) {
    return pos > s->start && pos < s->end && pos < s->high - ROLLBACK;
}
static void model_empty(sequence *s, int64_t start) { s->start = s->end = s->high = start; }
static void model_rewind(sequence *s, int64_t pos) {
    if (pos <= s->start) model_empty(s, pos);
    else s->end = pos;
}
static void reset(int seq) {
    static const int64_t starts[4] = { 0, 3, 1000003, (int64_t)1 << 40 };
    const int64_t start = starts[below(4)];
    if (swa_cache_reset(&w.cache, seq, start, one_in(2) ? 0 : below(1000)) != SWA_OK) wrong("reset", seq, 0, 0);
    model_empty(&w.seq[seq], start);
    w.resets++;
}
static swa_run any_run(int seq) {
    const sequence *s = &w.seq[seq];
    swa_run r;
    memset(&r, 0, sizeof r);
    r.seq = seq;
    r.n = one_in(4) ? 1 + below(CHUNK) : one_in(6) ? 16 : 1;
    r.pos = s->end;
    r.rewind = one_in(12);
    if (r.rewind) r.pos -= below((int)(s->end - s->start < 60 ? s->end - s->start + 1 : 60));
    if (r.n > 1 && one_in(8)) r.prefix = r.pos + 2 + below(r.n - 1);
    return r;
}
/* Takes the runs that were refused out of a step that was; returns how many are left. */
static int drop_refused(swa_run *runs, int n) {
    int left = 0;
    for (int i = 0; i < n; i++)
        if (runs[i].status == SWA_OK) runs[left++] = runs[i];
    if (left < n) return left;
    wrong("begin refused without a run", -1, -1, 0);
    return 0;
}
/* A random step; what the model foresees as a refusal is taken out, the rest has to be begun. Returns how many runs. */
static int step_make(swa_run *runs) {
    int n = 0, share = 1 + below(8);
    for (int i = 0; i < SEQS; i++) {
        if (!one_in(share)) continue;
        if (w.seq[i].end - w.seq[i].start > CONTEXT - 8 && one_in(4)) reset(i);
        runs[n++] = any_run(i);
    }
    while (n > 0 && swa_step_begin(&w.cache, runs, n) != SWA_OK) {
        for (int i = 0; i < n; i++) {
            const swa_run *r = &runs[i];
            const sequence *s = &w.seq[r->seq];
            if (swa_cache_end(&w.cache, r->seq) != s->end) wrong("a refusal changed the end", r->seq, -1, r->pos);
            if (r->status == SWA_OK) continue;
            if (r->status == SWA_ERR_LOST && may_lose(s, r->pos)) w.lost++;
            else if (r->status == SWA_ERR_FULL && r->pos + r->n - s->start > CONTEXT) w.full++;
            else wrong("begin refused", r->seq, -1, r->pos);
        }
        n = drop_refused(runs, n);
    }
    return n;
}
static void model_begin(const swa_run *runs, int n) {
    for (int i = 0; i < n; i++) {
        const swa_run *r = &runs[i];
        sequence *s = &w.seq[r->seq];
        if (r->pos < s->end) w.rewinds++;
        if (r->pos <= s->start) model_empty(s, r->pos);
        s->end = r->pos + r->n;
        if (s->high < s->end) s->high = s->end;
    }
}
static void fill(void) {
    size_t n = (size_t)swa_step_tokens(&w.cache);
    noise(w.q, n * Q, 3.0f);
    noise(w.k, n * K, 1.0f);
    noise(w.v, n * V, 1.0f);
}
/* In one call, in parts, or rows first; phases < 2 leaves the layer unfinished. */
static void attend(const swa_run *runs, int n_runs, int layer, int phases) {
    swa_attn a = attn_of(layer), half = a;
    int parts = 1 + below(PARTS), most = 0, prefix = 0, bad = 0;
    for (int i = 0; i < n_runs; i++) {
        if (runs[i].n > most) most = runs[i].n;
        prefix |= runs[i].prefix != 0;
    }
    if (phases == SWA_PHASES && one_in(3)) bad |= swa_attend(&w.cache, layer, &a) != SWA_OK;
    else if (phases == SWA_PHASES && most <= ROLLBACK && !prefix && one_in(4)) {
        half.mode = SWA_STORE_ONLY;
        bad |= swa_attend(&w.cache, layer, &half) != SWA_OK;
        half.mode = SWA_ATTEND_STORED;
        bad |= swa_attend(&w.cache, layer, &half) != SWA_OK;
    } else
        for (int phase = 0; phase < phases; phase++)
            for (int part = parts - 1; part >= 0; part--)
                bad |= swa_attend_part(&w.cache, layer, &a, phase, part, parts) != SWA_OK;
    if (bad) wrong("attend refused", -1, layer, 0);
}
/* The step dies after some layers; what cannot be begun again is replayed from nothing, as the library asks for. A step
   that its last layer had stored is over: going back to its beginning has to be said. Returns how many runs go on. */
static int die(swa_run *runs, int n) {
    int layers = below(LAYERS), phases;
    for (int layer = 0; layer < layers; layer++) {
        fill();
        attend(runs, n, layer, SWA_PHASES);
    }
    phases = below(SWA_PHASES + 1);
    fill();
    attend(runs, n, layers, phases);
    for (int i = 0; i < n; i++) runs[i].rewind = layers == LAYERS - 1 && phases == SWA_PHASES;
    w.dead++;
    while (n > 0 && swa_step_begin(&w.cache, runs, n) != SWA_OK) {
        for (int i = 0; i < n; i++) {
            if (runs[i].status == SWA_OK) continue;
            if (runs[i].status != SWA_ERR_LOST || !may_lose(&w.seq[runs[i].seq], runs[i].pos))
                wrong("a step that died cannot be begun again", runs[i].seq, -1, runs[i].pos);
            w.lost++;
            reset(runs[i].seq);
        }
        n = drop_refused(runs, n);
    }
    return n;
}
static void do_step(void) {
    swa_run runs[SEQS];
    int n;
    w.steps++;
    n = step_make(runs);
    model_begin(runs, n);
    if (n > 0 && one_in(10)) {
        n = die(runs, n);
        model_begin(runs, n);
    }
    for (int layer = 0; layer < LAYERS && n > 0; layer++) {
        fill();
        attend(runs, n, layer, SWA_PHASES);
        for (int i = 0; i < n; i++) {
            learn(&runs[i], layer);
            compare(&runs[i], layer);
        }
    }
}

/* ---- the other calls ---- */

static void do_truncate(int seq) {
    sequence *s = &w.seq[seq];
    int64_t to = s->end - below(s->end - s->start < 80 ? (int)(s->end - s->start) + 1 : 80);
    swa_status status = swa_cache_truncate(&w.cache, seq, to);
    if (status == SWA_OK) model_rewind(s, to);
    else if (status == SWA_ERR_LOST && may_lose(s, to)) w.lost++;
    else wrong("truncate", seq, -1, to);
    w.rewinds++;
}
static void model_copy(int dst, int src) {
    const sequence *s = &w.seq[src];
    sequence *t = &w.seq[dst];
    size_t n = (size_t)(s->end - s->start);
    if (dst == src) return;
    t->start = s->start;
    t->end = s->end;
    t->high = s->high;
    for (int l = 0; l < LAYERS; l++) {
        memcpy(t->k[l], s->k[l], n * K * sizeof(float));
        memcpy(t->v[l], s->v[l], n * V * sizeof(float));
    }
}
static void do_fork(int dst, int src) {
    const sequence *s = &w.seq[src], *t = &w.seq[dst];
    int64_t to = one_in(2) ? -1 : s->end - below(s->end - s->start < 30 ? (int)(s->end - s->start) + 1 : 30);
    int exchanged = w.audit && to == -1 && s->end == s->start && t->end > t->start; /* so audit takes it to be */
    swa_status status = swa_cache_fork(&w.cache, dst, src, to);
    if (exchanged) {
        if (status != SWA_ERR_ARG) wrong("a fork that empties was taken", src, -1, to);
    } else if (status == SWA_OK) {
        model_copy(dst, src);
        if (to >= 0) model_rewind(&w.seq[dst], to);
        w.forks++;
    } else if (status == SWA_ERR_LOST && may_lose(s, to)) w.lost++;
    else wrong("fork", src, -1, to);
}
static void do_load(int dst, int src) {
    size_t bytes = swa_cache_save_bytes(&w.cache, src);
    unsigned char *blob = (unsigned char *)take(bytes);
    if (swa_cache_save(&w.cache, src, blob, bytes) != SWA_OK) wrong("save", src, -1, 0);
    if (swa_cache_load(&w.cache, dst, blob, bytes) != SWA_OK) wrong("load", dst, -1, 0);
    model_copy(dst, src);
    blob[any() % bytes] ^= 1;
    if (swa_cache_load(&w.cache, dst, blob, bytes) != SWA_ERR_BLOB) wrong("an altered blob was taken", dst, -1, 0);
    w.loads++;
    free(blob);
}
/* All sequences at once: saved, a few steps on, and back. */
static void do_load_all(void) {
    size_t bytes = swa_cache_save_bytes(&w.cache, -1);
    unsigned char *blob = (unsigned char *)take(bytes);
    sequence *was = (sequence *)take(SEQS * sizeof *was);
    if (swa_cache_save(&w.cache, -1, blob, bytes) != SWA_OK) wrong("save all", -1, -1, 0);
    memcpy(was, w.seq, SEQS * sizeof *was);
    for (int i = below(3); i >= 0; i--) do_step();
    if (swa_cache_load(&w.cache, -1, blob, bytes) != SWA_OK) wrong("load all", -1, -1, 0);
    memcpy(w.seq, was, SEQS * sizeof *was);
    w.loads++;
    free(was);
    free(blob);
}
static void do_one(void) {
    int what = below(40), a = below(SEQS), b = below(SEQS);
    if (what == 0) reset(a);
    else if (what <= 3) do_truncate(a);
    else if (what <= 5 && a != b) do_fork(a, b);
    else if (what <= 7) do_load(a, b);
    else if (what == 8 && one_in(4)) do_load_all();
    else do_step();
    audit(a);
    audit(b);
}

int main(int argc, char **argv) {
    static const struct {
        swa_type type;
        const char *name;
        int64_t capacity;
    } worlds[5] = { { SWA_F32, "f32", 0 },
                    { SWA_F16, "f16", 0 },
                    { SWA_BF16, "bf16", 0 },
                    { SWA_Q8, "q8", 0 },
                    { SWA_F32, "f32, capacity 83", 83 } };
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    int failed = 0, isa = SWA_ISA_SCALAR;
    w.seq = (sequence *)take(SEQS * sizeof *w.seq);
    w.q = (float *)take((size_t)ROWS * Q * sizeof(float));
    w.k = (float *)take((size_t)ROWS * K * sizeof(float));
    w.v = (float *)take((size_t)ROWS * V * sizeof(float));
    w.out = (float *)take((size_t)ROWS * OUT * sizeof(float));
    w.lse = (float *)take((size_t)ROWS * HEADS * sizeof(float));
    rng = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1) * 0x9E3779B97F4A7C15u | 1u;
    for (int i = 0; i < 5; i++) {
        time_t began = time(NULL);
        clock_t t0 = clock();
        do { isa = isa < SWA_ISA_AVX512 ? isa + 1 : SWA_ISA_SCALAR; } while (!swa_isa_usable(isa));
        w.wrong = w.steps = w.rows = w.dead = w.forks = w.loads = w.rewinds = w.lost = w.full = w.resets = 0;
        w.name = worlds[i].name;
        noise(w.alibi, HEADS, 0.1f);
        for (int h = 0; h < HEADS; h++) w.alibi[h] = fabsf(w.alibi[h]);
        noise(w.logits, HEADS, 2.0f);
        world_open(worlds[i].type, isa, worlds[i].capacity);
        do do_one();
        while ((double)(clock() - t0) / CLOCKS_PER_SEC < seconds / 5 && difftime(time(NULL), began) < seconds
               && w.wrong < 100);
        printf("%-17s %-7s %ld steps, %ld rows, %ld died, %ld rewinds, %ld forks, %ld loads, %ld resets, %ld lost, "
               "%ld full: %s\n",
               w.name, swa_isa_name(isa), w.steps, w.rows, w.dead, w.rewinds, w.forks, w.loads, w.resets, w.lost,
               w.full, w.wrong ? "FAILED" : "ok");
        failed += w.wrong != 0;
        free(w.mem);
    }
    free(w.seq);
    free(w.q);
    free(w.k);
    free(w.v);
    free(w.out);
    free(w.lse);
    printf("%d passed, %d failed, 0 skipped\n", 5 - failed, failed);
    return failed != 0;
}
