/* mpi_split.c - one long context over several processes: attention of one layer, its keys or its heads split over the
   ranks of MPI, with the bits of a single process.

       mpicc -O2 -o mpi_split mpi_split.c -lm && mpirun -n 4 ./mpi_split             (--help lists the options)

   Keys split: block b of SWA_BLOCK positions lives on rank b % ranks. A rank's cache has one sequence per block that it
   holds, and a new block takes the oldest one's room: a ring of blocks. Every rank attends with all queries to each of
   its blocks by itself, which gives a partial result per block: the row, not normalised, its maximum, its sum. To fold
   them is not associative in floating point, so neither a rank nor MPI folds what it happens to have: each rank gets
   all blocks' partials of its share of the rows, and one swa_merge folds them in the order of their positions, as a
   single process would. The folded rows then go to everybody.

   Heads split: a rank has the ring of its KV heads and attends with their queries; where there are more ranks than KV
   heads, those of one KV head hold the same rows and divide its queries. Only results travel.

   Messages go from rank to rank and are awaited for a bounded time, so that a rank that is gone is named. */
#define _POSIX_C_SOURCE 200112L
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- options: what all ranks must agree about ---- */

enum { HEADS, KV_HEADS, DIM, TAIL, WINDOW, CONTEXT, CHUNK, DECODE, SPLIT, CHECK, WAIT, PAPER, N_OPTIONS };
/* clang-format off */
static const struct { const char *name, *about; int64_t usual, lo, hi; } option[N_OPTIONS] = {
    { "--heads", "query heads", 32, 1, 4096 },
    { "--kv-heads", "KV heads", 8, 1, 4096 },
    { "--dim", "numbers of a K row and of a V row", 128, 1, 4096 },
    { "--tail", "numbers of K's tail; > 0: latent rows (MLA), V is K", 0, 0, 4096 },
    { "--window", "keys that a query sees; 0 = all", 0, 0, 1 << 30 },
    { "--context", "tokens of prefill", 4096, 1, 1 << 24 },
    { "--chunk", "tokens per step of prefill", 512, 1, 1 << 16 },
    { "--decode", "tokens decoded behind them", 16, 0, 1 << 20 },
    { "--split", "0 = keys, 1 = heads", 0, 0, 1 },
    { "--check", "1 = compare every row with a single process", 1, 0, 1 },
    { "--wait", "seconds to wait for another rank", 60, 1, 86400 },
    { "--paper", "1 = only print what the cost model says of 1 to 1,024 ranks", 0, 0, 1 } };
/* clang-format on */

typedef struct {
    int rank, ranks;
    int64_t opt[N_OPTIONS];
    swa_shape shape; /* of the whole */
    swa_window window;
    float scale;
    double got;  /* bytes that this rank has received */
    double work; /* seconds of processor time that it has attended and folded */
} world;

static void end_run(const world *w, const char *what, int who) { /* for all ranks, from any of them */
    fprintf(stderr, "mpi_split: rank %d: %s", w->rank, what);
    if (who >= 0) fprintf(stderr, " %d", who);
    fputs("; ending the run\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, 3);
    _exit(3);
}
static void must(const world *w, swa_status status) {
    if (status != SWA_OK) end_run(w, swa_status_str(status), -1);
}
static void *room(const world *w, size_t n, size_t size) {
    void *p = calloc(n > 0 ? n : 1, size);
    if (p == NULL) end_run(w, "out of memory", -1);
    return p;
}

/* Processor time: what others do on this machine does not count. */
static double working(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int parse(world *w, int argc, char **argv) { /* 0 = go on */
    for (int o = 0; o < N_OPTIONS; o++) w->opt[o] = option[o].usual;
    for (int i = 1; i < argc; i += 2) {
        char *end = NULL;
        long long v = i + 1 < argc ? strtoll(argv[i + 1], &end, 10) : 0;
        int o = 0;
        while (o < N_OPTIONS && strcmp(argv[i], option[o].name) != 0) o++;
        if (o == N_OPTIONS || end == NULL || end == argv[i + 1] || *end != 0 || v < option[o].lo || v > option[o].hi) {
            fprintf(stderr, "mpi_split: no such option, or no such value: %s\n", argv[i]);
            return 1;
        }
        w->opt[o] = v;
    }
    if (w->opt[HEADS] % w->opt[KV_HEADS] != 0 || (w->opt[TAIL] > 0 && w->opt[KV_HEADS] != 1)) {
        fputs("mpi_split: --heads is a multiple of --kv-heads, and latent rows (--tail) have one KV head\n", stderr);
        return 1;
    }
    w->shape.n_heads = (int)w->opt[HEADS];
    w->shape.n_kv_heads = (int)w->opt[KV_HEADS];
    w->shape.head_dim = w->shape.v_dim = (int)w->opt[DIM];
    w->shape.tail_dim = (int)w->opt[TAIL];
    w->shape.v_in_k = w->opt[TAIL] > 0;
    w->window = w->opt[WINDOW] > 0 ? swa_window_sliding(w->opt[WINDOW]) : swa_window_causal();
    w->scale = (float)(1.0 / sqrt((double)(w->opt[DIM] + w->opt[TAIL])));
    return 0;
}

/* ---- messages ---- */

typedef struct {
    void *p;
    size_t bytes;
} piece;

/* out[i] goes to rank i, in[i] comes from there. */
static void exchange(world *w, const piece *out, const piece *in) {
    int n = w->ranks, done = 0;
    MPI_Request *req = (MPI_Request *)room(w, 2 * (size_t)n, sizeof *req);
    double until = MPI_Wtime() + (double)w->opt[WAIT];
    const struct timespec nap = { 0, 20000 };
    int polls = 0;
    for (int i = 0; i < n; i++) {
        req[i] = req[n + i] = MPI_REQUEST_NULL;
        if (i == w->rank) {
            if (in[i].p != out[i].p) memcpy(in[i].p, out[i].p, out[i].bytes);
            continue;
        }
        MPI_Irecv(in[i].p, (int)in[i].bytes, MPI_BYTE, i, 0, MPI_COMM_WORLD, &req[i]);
        MPI_Isend(out[i].p, (int)out[i].bytes, MPI_BYTE, i, 0, MPI_COMM_WORLD, &req[n + i]);
        w->got += (double)in[i].bytes;
    }
    while (MPI_Testall(2 * n, req, &done, MPI_STATUSES_IGNORE), !done) {
        if (MPI_Wtime() > until) {
            int i = 0;
            while (i + 1 < 2 * n && (MPI_Test(&req[i], &done, MPI_STATUS_IGNORE), done)) i++;
            end_run(w, "no answer in time from rank", i % n);
        }
        if (++polls < 200) sched_yield(); /* there may be more ranks than cores */
        else nanosleep(&nap, NULL);
    }
    free(req);
}
static void share_out(world *w, const piece *all) { /* all[i] is what rank i gives to everybody */
    piece *out = (piece *)room(w, (size_t)w->ranks, sizeof *out);
    for (int i = 0; i < w->ranks; i++) out[i] = all[w->rank];
    exchange(w, out, all);
    free(out);
}
static double meet(world *w) { /* a barrier that knows who is missing; what time it is then */
    piece *all = (piece *)room(w, (size_t)w->ranks, sizeof *all);
    share_out(w, all);
    free(all);
    return MPI_Wtime();
}
/* 1 if all ranks were given the same options; else rank 0 says who differs in what. */
static int agree(world *w) {
    piece *all = (piece *)room(w, (size_t)w->ranks, sizeof *all);
    int64_t *table = (int64_t *)room(w, (size_t)w->ranks, sizeof w->opt);
    int same = 1;
    for (int i = 0; i < w->ranks; i++) {
        all[i].p = table + i * N_OPTIONS;
        all[i].bytes = sizeof w->opt;
    }
    memcpy(all[w->rank].p, w->opt, sizeof w->opt);
    share_out(w, all);
    for (int i = 1; i < w->ranks; i++) {
        for (int o = 0; o < N_OPTIONS; o++) {
            if (table[i * N_OPTIONS + o] == table[o]) continue;
            same = 0;
            if (w->rank > 0) continue;
            fprintf(stderr, "mpi_split: rank %d has %s %lld, rank 0 has %lld: they do not fit together\n", i,
                    option[o].name, (long long)table[i * N_OPTIONS + o], (long long)table[o]);
        }
    }
    free(table);
    free(all);
    return same;
}

/* ---- the step's rows, the same on every rank: noise that depends on position and index alone ---- */

typedef struct {
    float *q, *q_tail, *k, *k_tail, *v;
} rows; /* [n][heads][dim] */

static void noise(float *to, size_t n, uint64_t seed) {
    for (size_t i = 0; i < n; i++) {
        uint64_t x = (seed + i) * 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        to[i] = (float)(int64_t)(x >> 40) / 8388608.0f - 1.0f;
    }
}
static void rows_at(const world *w, const rows *r, int64_t pos, int32_t n) {
    size_t q = (size_t)w->shape.n_heads, kv = (size_t)w->shape.n_kv_heads, dim = (size_t)w->shape.head_dim;
    size_t tail = (size_t)w->shape.tail_dim;
    for (int32_t t = 0; t < n; t++) {
        uint64_t seed = (uint64_t)(pos + t) << 32;
        size_t i = (size_t)t;
        noise(r->q + i * q * dim, q * dim, seed);
        noise(r->q_tail + i * q * tail, q * tail, seed + (1u << 28));
        noise(r->k + i * kv * dim, kv * dim, seed + (2u << 28));
        noise(r->k_tail + i * kv * tail, kv * tail, seed + (3u << 28));
        noise(r->v + i * kv * dim, kv * dim, seed + (4u << 28));
    }
}
static rows rows_new(const world *w) {
    size_t n = (size_t)w->opt[CHUNK], q = n * (size_t)w->shape.n_heads, kv = n * (size_t)w->shape.n_kv_heads;
    size_t dim = (size_t)w->shape.head_dim, tail = (size_t)w->shape.tail_dim;
    rows r;
    r.q = (float *)room(w, q * dim, sizeof(float));
    r.q_tail = (float *)room(w, q * tail, sizeof(float));
    r.k = (float *)room(w, kv * dim, sizeof(float));
    r.k_tail = (float *)room(w, kv * tail, sizeof(float));
    r.v = (float *)room(w, kv * dim, sizeof(float));
    return r;
}
static void rows_free(rows *r) {
    free(r->q);
    free(r->q_tail);
    free(r->k);
    free(r->k_tail);
    free(r->v);
}

/* ---- one rank's share ---- */

typedef struct {
    swa_cache cache;                        /* keys split: a sequence per block; heads split: one */
    int slots;                              /* how many blocks it holds */
    int head, n_heads, kv_head, n_kv_heads; /* heads split: query heads, KV heads */
    void *memory, *scratch, *rows_scratch;  /* of the cache, what it works in, and calls on its spans */
    size_t bytes, scratch_bytes, rows_scratch_bytes;
    float *send, *got, *folded;
    size_t most; /* numbers that fit into send, and into got */
} share;

static int64_t reach_from(const world *w, int64_t pos) { /* the first block that a query from pos on sees */
    int64_t lo = 0, hi;
    must(w, swa_visible_range(&w->window, pos, &lo, &hi));
    return lo / SWA_BLOCK;
}
static int64_t reach_to(int64_t pos, int64_t n) { return (pos + n - 1) / SWA_BLOCK + 1; }
/* How many of the blocks [from, to) live on a rank. */
static int64_t blocks_of(const world *w, int64_t from, int64_t to, int rank) {
    int64_t n = w->ranks;
    return (to + n - 1 - rank) / n - (from + n - 1 - rank) / n;
}
static size_t part_of(size_t n_rows, int rank, int ranks) { return n_rows * (size_t)rank / (size_t)ranks; }

static void heads_of(const world *w, share *s, int rank) {
    int n = w->ranks, kv = w->shape.n_kv_heads, group = w->shape.n_heads / kv, end;
    if (n <= kv) {
        s->kv_head = kv * rank / n;
        s->n_kv_heads = kv * (rank + 1) / n - s->kv_head;
        s->head = s->kv_head * group;
        s->n_heads = s->n_kv_heads * group;
    } else {
        int first, sharers;
        s->kv_head = rank * kv / n;
        s->n_kv_heads = 1;
        first = (s->kv_head * n + kv - 1) / kv;
        sharers = ((s->kv_head + 1) * n + kv - 1) / kv - first;
        s->head = s->kv_head * group + group * (rank - first) / sharers;
        end = s->kv_head * group + group * (rank - first + 1) / sharers;
        s->n_heads = end - s->head;
    }
}
static void cache_new(const world *w, share *s, const swa_shape *shape, const swa_window *window, int n_seqs) {
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    d.shape = *shape;
    d.n_layers = 1;
    d.n_seqs = n_seqs;
    d.k_type = d.v_type = d.tail_type = SWA_F16;
    d.windows = window;
    d.n_windows = 1;
    d.max_context = w->opt[CONTEXT] + w->opt[DECODE];
    s->bytes = swa_cache_bytes(&d);
    s->memory = room(w, s->bytes, 1);
    s->scratch_bytes = swa_cache_scratch_bytes(&d, 1);
    s->scratch = room(w, s->scratch_bytes, 1);
    must(w, s->bytes > 0 ? swa_cache_init(&s->cache, &d, s->memory, s->bytes) : SWA_ERR_OVERFLOW);
    must(w, swa_cache_set_scratch(&s->cache, s->scratch, s->scratch_bytes));
}
static void share_close(share *s) {
    free(s->memory);
    free(s->scratch);
    free(s->rows_scratch);
    free(s->send);
    free(s->got);
    free(s->folded);
}
static share share_open(const world *w) {
    enum { BUDGET = 1 << 23 }; /* numbers in flight; a single token may need more */
    int64_t end = w->opt[CONTEXT] + w->opt[DECODE], held = (end + SWA_BLOCK - 1) / SWA_BLOCK;
    size_t row = (size_t)w->shape.n_heads * (size_t)(w->shape.v_dim + 2);
    swa_window block = swa_window_sliding(SWA_BLOCK);
    swa_shape shape = w->shape;
    swa_rows r;
    share s;
    memset(&s, 0, sizeof s);
    if (w->opt[WINDOW] > 0 && (w->opt[WINDOW] + w->opt[CHUNK]) / SWA_BLOCK + 2 < held) {
        held = (w->opt[WINDOW] + w->opt[CHUNK]) / SWA_BLOCK + 2;
    }
    s.slots = (int)((held + w->ranks - 1) / w->ranks);
    if (w->opt[SPLIT] == 0) {
        cache_new(w, &s, &shape, &block, s.slots);
        memset(&r, 0, sizeof r);
        r.shape = shape;
        r.window = w->window;
        s.rows_scratch_bytes = swa_attention_bytes(&r, 1);
        r.shape.n_heads = shape.n_kv_heads; /* as measure_work reads the ring: another size */
        if (swa_attention_bytes(&r, 1) > s.rows_scratch_bytes) s.rows_scratch_bytes = swa_attention_bytes(&r, 1);
        s.rows_scratch = room(w, s.rows_scratch_bytes, 1);
        s.most = (size_t)(s.slots + 1) * (size_t)(w->shape.n_heads + w->ranks) * (size_t)(w->shape.v_dim + 2);
        if (s.most < BUDGET) s.most = BUDGET;
        s.send = (float *)room(w, s.most, sizeof(float));
        s.got = (float *)room(w, s.most, sizeof(float));
    } else {
        heads_of(w, &s, w->rank);
        shape.n_heads = s.n_heads;
        shape.n_kv_heads = s.n_kv_heads;
        if (s.n_heads > 0) cache_new(w, &s, &shape, &w->window, 1);
        s.send = (float *)room(w, (size_t)w->opt[CHUNK] * row, sizeof(float));
        s.got = (float *)room(w, (size_t)w->opt[CHUNK] * row, sizeof(float));
    }
    s.folded = (float *)room(w, (size_t)w->opt[CHUNK] * row, sizeof(float));
    return s;
}

/* ---- keys split ---- */

typedef struct { /* some queries of a step, and the blocks that they see */
    int64_t pos;
    int32_t n;
    int64_t from, to; /* blocks, of all ranks */
    const float *q, *q_tail;
    float *out;
} slice;

/* Stores what of the rows at pos..pos+n-1 lives here. A block's first position empties the room that it takes. */
static void store_keys(const world *w, share *s, const rows *r, int64_t pos, int32_t n) {
    size_t kv = (size_t)w->shape.n_kv_heads, dim = (size_t)w->shape.head_dim, tail = (size_t)w->shape.tail_dim;
    for (int64_t b = pos / SWA_BLOCK; b < reach_to(pos, n); b++) {
        int64_t from = b * SWA_BLOCK > pos ? b * SWA_BLOCK : pos;
        int64_t to = (b + 1) * SWA_BLOCK < pos + n ? (b + 1) * SWA_BLOCK : pos + n;
        int seq = (int)(b / w->ranks % s->slots);
        size_t at = (size_t)(from - pos) * kv;
        swa_attn a;
        if (b % w->ranks != w->rank) continue;
        memset(&a, 0, sizeof a);
        a.mode = SWA_STORE_ONLY;
        a.k.p = r->k + at * dim;
        if (tail > 0) a.k_tail.p = r->k_tail + at * tail;
        a.v.p = r->v + at * dim;
        a.scale = w->scale;
        if (from == b * SWA_BLOCK) must(w, swa_cache_reset(&s->cache, seq, from, 0));
        must(w, swa_step_one(&s->cache, seq, from, (int32_t)(to - from)));
        must(w, swa_attend(&s->cache, 0, &a));
    }
}

/* All queries of the slice with one block: a partial result [rows][dim] and [rows][2]. */
static void attend_block(const world *w, share *s, const slice *x, int64_t b, float *out, float *stat) {
    swa_kv kv[3];
    swa_rows in;
    swa_attn a;
    memset(&in, 0, sizeof in);
    memset(&a, 0, sizeof a);
    in.shape = w->shape;
    in.window = w->window;
    in.pos = x->pos;
    in.n_tokens = x->n;
    in.kv = kv;
    in.n_kv = swa_cache_spans(&s->cache, (int)(b / w->ranks % s->slots), 0, kv);
    in.scratch = s->rows_scratch;
    in.scratch_bytes = s->rows_scratch_bytes;
    a.q.p = x->q;
    a.q_tail.p = w->shape.tail_dim > 0 ? x->q_tail : NULL;
    a.out.p = out;
    a.stat = stat;
    a.scale = w->scale;
    must(w, in.n_kv > 0 ? swa_attention(&in, &a) : SWA_ERR_LOST);
}

/* Partials of this rank's blocks, cut into every rank's share of the rows; send: [ranks][blocks][share's rows]. */
static void attend_blocks(const world *w, share *s, const slice *x, piece *out) {
    size_t n_rows = (size_t)x->n * (size_t)w->shape.n_heads, dim = (size_t)w->shape.v_dim;
    int64_t mine = blocks_of(w, x->from, x->to, w->rank), i = 0;
    float *block = s->got, *stat = block + n_rows * dim, *at = s->send; /* got is free until the exchange */
    for (int to = 0; to < w->ranks; to++) {
        size_t share_rows = part_of(n_rows, to + 1, w->ranks) - part_of(n_rows, to, w->ranks);
        out[to].p = at;
        out[to].bytes = (size_t)mine * share_rows * (dim + 2) * sizeof(float);
        at += out[to].bytes / sizeof(float);
    }
    for (int64_t b = x->from; b < x->to; b++) {
        if (b % w->ranks != w->rank) continue;
        attend_block(w, s, x, b, block, stat);
        for (int to = 0; to < w->ranks; to++) {
            size_t first = part_of(n_rows, to, w->ranks), share_rows = part_of(n_rows, to + 1, w->ranks) - first;
            at = (float *)out[to].p + (size_t)i * share_rows * (dim + 2);
            memcpy(at, block + first * dim, share_rows * dim * sizeof(float));
            memcpy(at + share_rows * dim, stat + 2 * first, share_rows * 2 * sizeof(float));
        }
        i++;
    }
}
/* This rank's share of the rows: one fold over the partials of all blocks, in order of position. */
static void fold(const world *w, share *s, const slice *x, const piece *in) {
    size_t n_rows = (size_t)x->n * (size_t)w->shape.n_heads, dim = (size_t)w->shape.v_dim;
    size_t share_rows = part_of(n_rows, w->rank + 1, w->ranks) - part_of(n_rows, w->rank, w->ranks);
    size_t n = (size_t)(x->to - x->from);
    const float **parts = (const float **)room(w, 2 * n, sizeof *parts);
    for (int64_t b = x->from; b < x->to; b++) {
        int owner = (int)(b % w->ranks);
        int64_t i = blocks_of(w, x->from, b, owner);
        const float *at = (const float *)in[owner].p + (size_t)i * share_rows * (dim + 2);
        parts[b - x->from] = at;
        parts[(size_t)(b - x->from) + n] = at + share_rows * dim;
    }
    must(w, swa_merge(parts, parts + n, (int)n, (int32_t)share_rows, 1, w->shape.v_dim, NULL, s->folded, NULL));
    free(parts);
}
static void attend_slice(world *w, share *s, const slice *x) {
    size_t n_rows = (size_t)x->n * (size_t)w->shape.n_heads, dim = (size_t)w->shape.v_dim;
    size_t first = part_of(n_rows, w->rank, w->ranks), mine = part_of(n_rows, w->rank + 1, w->ranks) - first;
    piece *out = (piece *)room(w, 2 * (size_t)w->ranks, sizeof *out), *in = out + w->ranks;
    float *at = s->got;
    double start = working();
    attend_blocks(w, s, x, out);
    w->work += working() - start;
    for (int i = 0; i < w->ranks; i++) {
        in[i].p = at;
        in[i].bytes = (size_t)blocks_of(w, x->from, x->to, i) * mine * (dim + 2) * sizeof(float);
        at += in[i].bytes / sizeof(float);
    }
    exchange(w, out, in);
    start = working();
    fold(w, s, x, in);
    w->work += working() - start;
    for (int i = 0; i < w->ranks; i++) { /* folded rows to everybody */
        in[i].p = x->out + part_of(n_rows, i, w->ranks) * dim;
        in[i].bytes = (part_of(n_rows, i + 1, w->ranks) - part_of(n_rows, i, w->ranks)) * dim * sizeof(float);
    }
    memcpy(x->out + first * dim, s->folded, mine * dim * sizeof(float));
    share_out(w, in);
    free(out);
}
/* How many tokens of a step fit into the buffers at a time. */
static int32_t slice_tokens(const world *w, const share *s, int64_t blocks) {
    size_t part = (size_t)(w->shape.v_dim + 2), each = (size_t)((blocks + w->ranks - 1) / w->ranks);
    size_t fits = (s->most / each - (size_t)w->ranks * part) / ((size_t)w->shape.n_heads * part);
    return fits < 1 ? 1 : fits > (size_t)w->opt[CHUNK] ? (int32_t)w->opt[CHUNK] : (int32_t)fits;
}
static void step_by_keys(world *w, share *s, const rows *r, int64_t pos, int32_t n, float *out) {
    size_t heads = (size_t)w->shape.n_heads;
    int64_t blocks = reach_to(pos, n) - reach_from(w, pos);
    int32_t most = slice_tokens(w, s, blocks), t;
    slice x;
    store_keys(w, s, r, pos, n);
    for (t = 0; t < n; t += x.n) {
        x.pos = pos + t;
        x.n = n - t < most ? n - t : most;
        x.from = reach_from(w, x.pos);
        x.to = reach_to(x.pos, x.n);
        x.q = r->q + (size_t)t * heads * (size_t)w->shape.head_dim;
        x.q_tail = r->q_tail + (size_t)t * heads * (size_t)w->shape.tail_dim;
        x.out = out + (size_t)t * heads * (size_t)w->shape.v_dim;
        attend_slice(w, s, &x);
    }
}

/* ---- heads split, and the single process that both are compared with ---- */

/* Attends and stores with the heads that s has, of rows that hold all heads; out [n][s->n_heads][v_dim]. */
static void step_alone(const world *w, share *s, const rows *r, int64_t pos, int32_t n, float *out) {
    const swa_shape *all = &w->shape;
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.q.p = r->q + s->head * all->head_dim;
    a.q.token = all->n_heads * all->head_dim;
    a.q_tail.p = all->tail_dim > 0 ? r->q_tail + s->head * all->tail_dim : NULL;
    a.q_tail.token = all->n_heads * all->tail_dim;
    a.k.p = r->k + s->kv_head * all->head_dim;
    a.v.p = r->v + s->kv_head * all->head_dim;
    a.k.token = a.v.token = all->n_kv_heads * all->head_dim;
    a.k_tail.p = all->tail_dim > 0 ? r->k_tail : NULL; /* rows with a tail have one KV head */
    a.out.p = out;
    a.scale = w->scale;
    must(w, swa_step_one(&s->cache, 0, pos, n));
    must(w, swa_attend(&s->cache, 0, &a));
}
static void step_by_heads(world *w, share *s, const rows *r, int64_t pos, int32_t n, float *out) {
    size_t dim = (size_t)w->shape.v_dim, heads = (size_t)w->shape.n_heads;
    piece *in = (piece *)room(w, (size_t)w->ranks, sizeof *in);
    share of = *s;
    float *at = s->got;
    double start;
    for (int i = 0; i < w->ranks; i++) {
        heads_of(w, &of, i);
        in[i].p = at;
        in[i].bytes = (size_t)n * (size_t)of.n_heads * dim * sizeof(float);
        at += in[i].bytes / sizeof(float);
    }
    start = working();
    if (s->n_heads > 0) step_alone(w, s, r, pos, n, (float *)in[w->rank].p);
    w->work += working() - start;
    share_out(w, in);
    for (int i = 0; i < w->ranks; i++) {
        heads_of(w, &of, i);
        for (size_t t = 0; t < (size_t)n; t++) {
            memcpy(out + (t * heads + (size_t)of.head) * dim, (float *)in[i].p + t * (size_t)of.n_heads * dim,
                   (size_t)of.n_heads * dim * sizeof(float));
        }
    }
    free(in);
}

/* ---- cost model ---- */

typedef struct {
    double flops, token;  /* of one rank: multiply-adds times two per second, of many rows and of one token's */
    double memory;        /* bytes of keys and values per second */
    double wire, message; /* bytes per second of one rank's network; seconds per message */
    double fold;          /* bytes of partials folded per second */
} machine;
typedef struct {
    double seconds, work, wire, bytes;
} cost; /* of one rank; work: attend and fold; bytes: received */

/* A step of n tokens at pos, on the rank that has most to do. */
static cost predict(const world *w, const machine *m, int split, int64_t pos, int64_t n) {
    const swa_shape *p = &w->shape;
    double ranks = w->ranks, heads = p->n_heads, kv = p->n_kv_heads, row = p->head_dim + p->tail_dim;
    double n_rows = (double)n * heads, keys = 0.0, read, fold;
    int64_t from = reach_from(w, pos), to = reach_to(pos, n);
    double blocks = (double)(to - from), own = ceil(blocks / ranks);
    cost c;
    for (int64_t t = 0; t < n; t++) {
        double seen = (double)(pos + t + 1);
        keys += w->opt[WINDOW] > 0 && seen > (double)w->opt[WINDOW] ? (double)w->opt[WINDOW] : seen;
    }
    read = blocks * SWA_BLOCK * 2.0 * (p->v_in_k ? row : row + p->v_dim); /* f16, per KV head */
    c.work = 2.0 * keys * heads * (row + p->v_dim) / (n > 1 ? m->flops : m->token);
    if (split == 0) {
        c.work = c.work > kv * read / m->memory ? c.work : kv * read / m->memory;
        c.work *= own / blocks;
        c.bytes = (blocks - own) * n_rows / ranks * (p->v_dim + 2) * 4.0;
        fold = blocks * n_rows / ranks * (p->v_dim + 2) * 4.0 / m->fold;
    } else {
        double most = ceil(heads / ranks), held = ranks < kv ? ceil(kv / ranks) : 1.0;
        if (ranks < kv) most = held * heads / kv;
        c.work *= most / heads;
        c.work = c.work > held * read / m->memory ? c.work : held * read / m->memory;
        c.bytes = fold = 0.0;
    }
    c.bytes += n_rows * p->v_dim * 4.0 * (ranks - 1.0) / ranks;
    c.wire = c.bytes / m->wire + (split == 0 ? 2.0 : 1.0) * (ranks - 1.0) * m->message;
    c.work += fold;
    c.seconds = c.work + c.wire;
    return c;
}
static double faster(double best, double took) { return best > 0.0 && best < took ? best : took; }
/* What one rank does with nobody beside it: a step of prefill, a token, a fold. */
static void measure_work(const world *w, machine *m) {
    enum { TIMES = 3, BLOCKS = 8, KEYS = BLOCKS * SWA_BLOCK, TOKENS = 128 };
    size_t dim = (size_t)w->shape.v_dim, fold_rows;
    int32_t step = w->opt[CHUNK] < TOKENS ? (int32_t)w->opt[CHUNK] : TOKENS;
    double prefill = 0, token = 0, reading = 0, folding = 0, row = w->shape.head_dim + w->shape.tail_dim, start;
    double sum = row + (double)dim;
    const float *parts[2 * BLOCKS];
    world one = *w;
    slice x = { 0 };
    share s;
    rows r = rows_new(w);
    one.rank = 0;
    one.ranks = 1;
    one.opt[SPLIT] = one.opt[WINDOW] = one.opt[DECODE] = 0;
    one.opt[CONTEXT] = KEYS;
    one.window = swa_window_causal();
    s = share_open(&one);
    for (int64_t pos = 0; pos < KEYS; pos += x.n) {
        x.n = KEYS - pos < step ? (int32_t)(KEYS - pos) : step;
        rows_at(w, &r, pos, x.n);
        store_keys(&one, &s, &r, pos, x.n);
    }
    x.pos = KEYS;
    x.q = r.q;
    x.q_tail = r.q_tail;
    fold_rows = s.most / BLOCKS / (dim + 2);
    if (fold_rows > 4096) fold_rows = 4096;
    noise(s.got, s.most, 1);
    for (int b = 0; b < BLOCKS; b++) {
        float *stat = s.got + ((size_t)b * (dim + 2) + dim) * fold_rows;
        parts[b] = stat - dim * fold_rows;
        parts[BLOCKS + b] = stat;
        for (size_t i = 0; i < fold_rows; i++) stat[2 * i + 1] = 1.0f;
    }
    for (int i = 0; i < TIMES; i++) {
        x.n = step;
        start = working();
        for (int b = 0; b < BLOCKS; b++) attend_block(&one, &s, &x, b, s.send, s.folded);
        prefill = faster(prefill, working() - start);
        x.n = 1;
        start = working();
        for (int b = 0; b < BLOCKS; b++) attend_block(&one, &s, &x, b, s.send, s.folded);
        token = faster(token, working() - start);
        one.shape.n_heads = one.shape.n_kv_heads; /* hardly any arithmetic */
        start = working();
        for (int b = 0; b < BLOCKS; b++) attend_block(&one, &s, &x, b, s.send, s.folded);
        reading = faster(reading, working() - start);
        one.shape.n_heads = w->shape.n_heads;
        start = working();
        must(w, swa_merge(parts, parts + BLOCKS, BLOCKS, (int32_t)fold_rows, 1, (int)dim, NULL, s.send, NULL));
        folding = faster(folding, working() - start);
    }
    m->flops = 2.0 * step * w->shape.n_heads * KEYS * sum / prefill;
    m->token = 2.0 * w->shape.n_heads * KEYS * sum / token;
    m->memory = KEYS * 2.0 * (w->shape.v_in_k ? row : sum) * w->shape.n_kv_heads / reading;
    m->fold = BLOCKS * (double)fold_rows * (double)(dim + 2) * 4.0 / folding;
    rows_free(&r);
    share_close(&s);
}
/* What all ranks do at once: empty messages, and some of 1 MiB. */
static void measure_wire(world *w, machine *m) {
    enum { TIMES = 10, BYTES = 1 << 20 };
    piece *out = (piece *)room(w, 2 * (size_t)w->ranks, sizeof *out), *in = out + w->ranks;
    double best[2] = { 0, 0 };
    for (int i = 0; i < 2 * w->ranks; i++) out[i].p = room(w, BYTES, 1);
    for (int i = 0; i < 2 * TIMES; i++) {
        double start;
        for (int to = 0; to < 2 * w->ranks; to++) out[to].bytes = i % 2 == 0 ? 0 : BYTES;
        start = meet(w);
        exchange(w, out, in);
        best[i % 2] = faster(best[i % 2], MPI_Wtime() - start);
    }
    m->message = best[0] / w->ranks;
    m->wire = (double)w->ranks * BYTES / best[1];
    for (int i = 0; i < 2 * w->ranks; i++) free(out[i].p);
    free(out);
}

/* The model on paper: sockets of 2 TFLOP/s (f32) and 200 GB/s from memory, 100 Gbit/s and 2 us per message between. */
static int paper(world *w) {
    static const int ranks[] = { 1, 2, 4, 8, 16, 64, 256, 1024 };
    const machine m = { 2e12, 2e12, 200e9, 12.5e9, 2e-6, 20e9 };
    int64_t end = w->opt[CONTEXT];
    printf("| ranks | keys: token | received | chunk of %lld | received | heads: token | chunk |\n"
           "|---:|---:|---:|---:|---:|---:|---:|\n",
           (long long)w->opt[CHUNK]);
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        cost c[4];
        w->ranks = ranks[i];
        for (int k = 0; k < 4; k++)
            c[k] = predict(w, &m, k / 2, end - (k % 2 ? w->opt[CHUNK] : 1), k % 2 ? w->opt[CHUNK] : 1);
        printf("| %d | %.3f ms | %.2f MB | %.1f ms | %.0f MB | %.3f ms | %.1f ms |\n", ranks[i], 1e3 * c[0].seconds,
               c[0].bytes / 1e6, 1e3 * c[1].seconds, c[1].bytes / 1e6, 1e3 * c[2].seconds, 1e3 * c[3].seconds);
    }
    return 0;
}

/* ---- the run ---- */

typedef struct {
    double elapsed, work, got;
} sums; /* seconds, seconds, bytes */
typedef struct {
    sums was[2], model[2]; /* of prefill, of decode */
    int64_t differ;        /* rows */
} result;

/* was: of the rank that had most to do, which rank 0 then knows. */
static void busiest(world *w, result *r) {
    piece *all = (piece *)room(w, (size_t)w->ranks, sizeof *all);
    sums *table = (sums *)room(w, 2 * (size_t)w->ranks, sizeof *table);
    for (int i = 0; i < w->ranks; i++) {
        all[i].p = table + 2 * i;
        all[i].bytes = sizeof r->was;
    }
    memcpy(all[w->rank].p, r->was, sizeof r->was);
    share_out(w, all);
    for (int i = 0; i < 2 * w->ranks; i++) {
        sums *to = &r->was[i % 2];
        if (table[i].work > to->work) to->work = table[i].work;
        if (table[i].got > to->got) to->got = table[i].got;
    }
    free(table);
    free(all);
}
static result all_steps(world *w, share *s, share *alone, const machine *m) {
    int64_t end = w->opt[CONTEXT] + w->opt[DECODE], pos;
    size_t row = (size_t)w->shape.n_heads * (size_t)w->shape.v_dim;
    float *out = (float *)room(w, (size_t)w->opt[CHUNK] * row, sizeof(float));
    float *want = (float *)room(w, (size_t)w->opt[CHUNK] * row, sizeof(float));
    rows r = rows_new(w);
    result res;
    int32_t n;
    memset(&res, 0, sizeof res);
    for (pos = 0; pos < end; pos += n) {
        int64_t left = w->opt[CONTEXT] - pos;
        sums *was = &res.was[left <= 0], *model = &res.model[left <= 0];
        double start;
        cost c;
        n = left <= 0 ? 1 : left < w->opt[CHUNK] ? (int32_t)left : (int32_t)w->opt[CHUNK];
        rows_at(w, &r, pos, n);
        start = meet(w);
        w->got = w->work = 0.0;
        if (w->opt[SPLIT] == 0) step_by_keys(w, s, &r, pos, n, out);
        else step_by_heads(w, s, &r, pos, n, out);
        was->work += w->work;
        was->got += w->got;
        was->elapsed += meet(w) - start;
        c = predict(w, m, (int)w->opt[SPLIT], pos, n);
        model->elapsed += c.seconds;
        model->work += c.work;
        model->got += c.bytes;
        if (alone == NULL) continue;
        step_alone(w, alone, &r, pos, n, want);
        for (size_t t = 0; t < (size_t)n; t++) {
            res.differ += memcmp(out + t * row, want + t * row, row * sizeof(float)) != 0;
        }
    }
    rows_free(&r);
    free(want);
    free(out);
    busiest(w, &res);
    return res;
}
static void report(const world *w, const share *s, const machine *m, const result *r) {
    static const char *const what[] = { "prefill", "a token" };
    printf("a rank: %.0f GFLOP/s, of one token %.0f, %.1f GB/s of keys and values, fold %.1f GB/s, "
           "messages %.1f us and %.1f GB/s\n",
           m->flops / 1e9, m->token / 1e9, m->memory / 1e9, m->fold / 1e9, 1e6 * m->message, m->wire / 1e9);
    printf("%d rank%s, %s split, a rank holds %.1f MB; the busiest one, in brackets the model:\n", w->ranks,
           w->ranks > 1 ? "s" : "", w->opt[SPLIT] ? "heads" : "keys", (double)s->bytes / 1e6);
    for (int i = 0; i < 2; i++) {
        double times = i == 0 ? 1.0 : (double)w->opt[DECODE];
        const sums *a = &r->was[i], *b = &r->model[i];
        if (times < 1.0) continue;
        printf("  %s: works %.2f ms (%.2f), receives %.3f MB (%.3f), all in all %.2f ms (%.2f)\n", what[i],
               1e3 * a->work / times, 1e3 * b->work / times, a->got / times / 1e6, b->got / times / 1e6,
               1e3 * a->elapsed / times, 1e3 * b->elapsed / times);
    }
    if (w->opt[CHECK]) {
        printf("%lld rows of %lld differ from those of one process\n", (long long)r->differ,
               (long long)(w->opt[CONTEXT] + w->opt[DECODE]));
    }
}
static int run(world *w) {
    machine m = { 1, 1, 1, 1, 0, 1 };
    int check = w->rank == 0 && w->opt[CHECK];
    share s = share_open(w), alone;
    result res;
    memset(&alone, 0, sizeof alone);
    if (check) {
        alone.n_heads = w->shape.n_heads;
        alone.n_kv_heads = w->shape.n_kv_heads;
        cache_new(w, &alone, &w->shape, &w->window, 1);
    }
    if (w->rank == 0) measure_work(w, &m);
    measure_wire(w, &m);
    res = all_steps(w, &s, check ? &alone : NULL, &m);
    if (w->rank == 0) report(w, &s, &m, &res);
    share_close(&alone);
    share_close(&s);
    return res.differ != 0;
}

/* MPI_Init and MPI_Finalize wait for all ranks, by themselves without an end. */
static void too_late(int sig) {
    static const char text[] = "mpi_split: a rank did not come to begin or to end with the others\n";
    (void)sig;
    if (write(2, text, sizeof text - 1) < 0) _exit(4);
    _exit(3);
}

int main(int argc, char **argv) {
    world w;
    int failed = 0;
    memset(&w, 0, sizeof w);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            for (int o = 0; o < N_OPTIONS; o++) {
                printf("  %-11s N  %s (%lld)\n", option[o].name, option[o].about, (long long)option[o].usual);
            }
            return 0;
        }
    }
    if (parse(&w, argc, argv) != 0) return 2;
    signal(SIGALRM, too_late);
    alarm((unsigned)w.opt[WAIT]);
    MPI_Init(&argc, &argv);
    alarm(0);
    MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w.ranks);
    if (!agree(&w)) failed = 1;
    else if (w.opt[PAPER]) failed = w.rank == 0 ? paper(&w) : 0;
    else failed = run(&w);
    alarm((unsigned)w.opt[WAIT]);
    MPI_Finalize();
    return failed;
}
