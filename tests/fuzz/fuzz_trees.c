/* Trees of drafts in a ring against the double oracle: plain runs and trees in any order, of which a path is kept, or
   nothing; at every node the numbers of its path, and the same bits from a second ring of another instruction set,
   capacity, rotation and number of parts. Runs and paths that are none are refused and change nothing. */
#define SWA_IMPLEMENTATION
#include "../../swa.h"
#define FUZZ_NAME "trees"
#include "fuzz.h"
#include "window.h"

enum { NODES = 100, ROWS = 900, OPERATIONS = 8, PARTS = 4 };

typedef struct {
    swa_cache kv;
    void *mem, *scratch;
    float *out, *lse;
    int parts;
} ring;

/* Rows are of the sequence, from `start` on; those behind `end` are of the run or of a path that is looked at. */
typedef struct {
    swa_shape shape;
    swa_window window;
    or_window see;
    swa_type k_type, v_type, tail_type;
    int64_t start;
    int end, dk, dv;
    float scale, softcap;
    float *q, *q_sink, *k, *v, *alibi, *sinks, *bias;
    int bias_n, by_distance;
    ring ring[2];
} problem;
/* A run's rows, node by node. */
typedef struct {
    float *q, *q_sink, *k, *v, *bias;
} rows;

static float *room(size_t n) {
    float *x = (float *)calloc(n + 1, sizeof *x);
    if (!x) exit(2);
    return x;
}
/* Multiples of 1/64, which all types hold. */
static void fill(float *x, size_t n, uint32_t *seed) {
    for (size_t i = 0; x && i < n; i++) x[i] = floorf(fuzz_unit(seed) * 64.0f) / 64.0f;
}
static void any_window(fuzz_in *in, problem *p) {
    const int kind = fuzz_pick(in, 0, 3), W = fuzz_pick(in, 1, fuzz_byte(in) & 1 ? 12 : 400), b = fuzz_pick(in, 1, 40);
    window_of((window_kind)kind, W, b, &p->window, &p->see);
    p->start = fuzz_pick(in, 0, 400);
    if (kind == W_SINKS) p->start = 0;
}
static void ring_open(fuzz_in *in, problem *p, ring *r) {
    swa_cache_desc d;
    size_t bytes;
    memset(&d, 0, sizeof d);
    d.shape = p->shape;
    d.windows = &p->window;
    d.n_windows = 1;
    d.n_layers = 1;
    d.k_type = p->k_type;
    d.v_type = p->v_type;
    d.tail_type = p->tail_type;
    d.max_rollback = NODES + fuzz_pick(in, 0, 50);
    d.max_context = p->start + ROWS;
    d.isa = fuzz_pick(in, 0, SWA_ISA_AVX512);
    if (d.isa && !swa_isa_usable(d.isa)) d.isa = 0;
    r->parts = fuzz_pick(in, 1, PARTS);
    bytes = swa_cache_bytes(&d);
    r->mem = malloc(bytes + 1);
    if (!bytes || !r->mem || swa_cache_init(&r->kv, &d, r->mem, bytes) != SWA_OK) FUZZ_DIE("no cache");
    bytes = swa_cache_scratch_bytes(&d, r->parts);
    r->scratch = malloc(bytes + 1);
    if (!r->scratch || swa_cache_set_scratch(&r->kv, r->scratch, bytes) != SWA_OK) FUZZ_DIE("no scratch");
    if (swa_cache_reset(&r->kv, 0, p->start, fuzz_pick(in, 0, 300)) != SWA_OK) FUZZ_DIE("reset is refused");
    r->out = room((size_t)(ROWS * p->shape.n_heads * p->dv));
    r->lse = room((size_t)(ROWS * p->shape.n_heads));
}
static void any_problem(fuzz_in *in, problem *p, uint32_t *seed) {
    static const swa_type types[3] = { SWA_F32, SWA_F16, SWA_BF16 };
    swa_shape *s = &p->shape;
    memset(p, 0, sizeof *p);
    *seed = (uint32_t)fuzz_pick(in, 0, 65535);
    any_window(in, p);
    s->n_kv_heads = fuzz_pick(in, 1, 2);
    s->n_heads = s->n_kv_heads * fuzz_pick(in, 1, fuzz_pick(in, 0, 3) ? 4 : 17);
    s->head_dim = fuzz_pick(in, 0, 1) ? fuzz_pick(in, 1, 20) : 16;
    s->v_in_k = fuzz_pick(in, 0, 3) == 0;
    s->v_dim = fuzz_pick(in, 1, s->v_in_k ? s->head_dim : 34);
    s->tail_dim = fuzz_pick(in, 0, 3) == 0 ? fuzz_pick(in, 1, 18) : 0;
    p->dk = s->head_dim + s->tail_dim;
    p->dv = s->v_dim;
    p->k_type = types[fuzz_pick(in, 0, 2)];
    p->v_type = s->v_in_k ? p->k_type : types[fuzz_pick(in, 0, 2)];
    p->tail_type = types[fuzz_pick(in, 0, 2)];
    p->scale = 0.05f * (float)fuzz_pick(in, 1, 20);
    p->softcap = fuzz_pick(in, 0, 3) == 0 ? (float)fuzz_pick(in, 1, 50) : 0.0f;
    p->q = room((size_t)(ROWS * s->n_heads * p->dk));
    p->k = room((size_t)(ROWS * s->n_kv_heads * p->dk));
    p->v = s->v_in_k ? NULL : room((size_t)(ROWS * s->n_kv_heads * p->dv));
    if (p->see.pinned && fuzz_pick(in, 0, 1)) p->q_sink = room((size_t)(ROWS * s->n_heads * p->dk));
    if (fuzz_pick(in, 0, 3) == 0) fill(p->alibi = room((size_t)s->n_heads), (size_t)s->n_heads, seed);
    for (int h = 0; p->alibi && h < s->n_heads; h++) p->alibi[h] = fabsf(p->alibi[h]);
    if (fuzz_pick(in, 0, 3) == 0) fill(p->sinks = room((size_t)s->n_heads), (size_t)s->n_heads, seed);
    if (fuzz_pick(in, 0, 3) == 0) {
        p->bias_n = fuzz_pick(in, 1, 60);
        p->by_distance = fuzz_pick(in, 0, 1);
        p->bias = room((size_t)(ROWS * s->n_heads * p->bias_n));
    }
    for (int i = 0; i < 2; i++) ring_open(in, p, &p->ring[i]);
}
static void free_problem(problem *p) {
    for (int i = 0; i < 2; i++) {
        free(p->ring[i].mem);
        free(p->ring[i].scratch);
        free(p->ring[i].out);
        free(p->ring[i].lse);
    }
    free(p->q);
    free(p->q_sink);
    free(p->k);
    free(p->v);
    free(p->alibi);
    free(p->sinks);
    free(p->bias);
}

/* ---- a run ---- */

/* Row `from` of x is row `to` of the sequence. */
static void put_row(problem *p, const rows *x, int from, int to) {
    const size_t h = (size_t)p->shape.n_heads, kv = (size_t)p->shape.n_kv_heads, a = (size_t)from, b = (size_t)to;
    const size_t q = h * (size_t)p->dk, k = kv * (size_t)p->dk, v = kv * (size_t)p->dv, bias = h * (size_t)p->bias_n;
    memcpy(p->q + b * q, x->q + a * q, q * sizeof(float));
    memcpy(p->k + b * k, x->k + a * k, k * sizeof(float));
    if (p->v) memcpy(p->v + b * v, x->v + a * v, v * sizeof(float));
    if (p->q_sink) memcpy(p->q_sink + b * q, x->q_sink + a * q, q * sizeof(float));
    if (p->bias) memcpy(p->bias + b * bias, x->bias + a * bias, bias * sizeof(float));
}
static swa_in strided(const float *x, int skip, int heads, int dim) {
    swa_in in;
    memset(&in, 0, sizeof in);
    if (x) in.p = x + skip;
    in.head = dim;
    in.token = (int64_t)heads * dim;
    return in;
}
static swa_status begin(problem *p, ring *r, int n, const int32_t *parents) {
    swa_run run;
    memset(&run, 0, sizeof run);
    run.pos = p->start + p->end;
    run.n = n;
    run.parents = parents;
    return swa_step_begin(&r->kv, &run, 1);
}
static void attend(const problem *p, ring *r, const rows *x) {
    const swa_shape *s = &p->shape;
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.q = strided(x->q, 0, s->n_heads, p->dk);
    a.k = strided(x->k, 0, s->n_kv_heads, p->dk);
    if (p->v) a.v = strided(x->v, 0, s->n_kv_heads, p->dv);
    if (p->q_sink) a.q_sink = strided(x->q_sink, 0, s->n_heads, p->dk);
    if (s->tail_dim) {
        a.q_tail = strided(x->q, s->head_dim, s->n_heads, p->dk);
        a.k_tail = strided(x->k, s->head_dim, s->n_kv_heads, p->dk);
        if (p->q_sink) a.q_sink_tail = strided(x->q_sink, s->head_dim, s->n_heads, p->dk);
    }
    a.out.p = r->out;
    a.lse = r->lse;
    a.scale = p->scale;
    a.softcap = p->softcap;
    a.alibi = p->alibi;
    a.sink_logits = p->sinks;
    a.bias = x->bias;
    a.bias_n = p->bias_n;
    a.bias_head = p->bias_n;
    a.bias_token = p->bias_n * s->n_heads;
    a.bias_first = p->by_distance ? 0 : p->start;
    a.bias_by_distance = p->by_distance;
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int part = r->parts - 1; part >= 0; part--)
            if (swa_attend_part(&r->kv, 0, &a, phase, part, r->parts) != SWA_OK) FUZZ_DIE("attend is refused");
}
/* Row `end + above` of the sequence, which ends there, against what row i of the run got. */
static void against_oracle(const problem *p, int i, int above) {
    const int n = p->end + above + 1, heads = p->shape.n_heads;
    double *want = (double *)malloc((size_t)(p->dv + n) * sizeof *want), lse, tol;
    or_case c;
    if (!want) exit(2);
    memset(&c, 0, sizeof c);
    c.n_heads = heads;
    c.n_kv_heads = p->shape.n_kv_heads;
    c.dk = p->dk;
    c.dv = p->dv;
    c.window = p->see;
    c.q_pos = c.k_pos = p->start;
    c.n_q = c.n_k = n;
    c.q = p->q;
    c.q_pinned = p->q_sink;
    c.k = p->k;
    c.v = p->v;
    c.scale = (double)p->scale;
    c.softcap = (double)p->softcap;
    c.alibi = p->alibi;
    c.sink_logits = p->sinks;
    c.bias = p->bias;
    c.bias_n = p->bias_n;
    c.bias_by_distance = p->by_distance;
    c.bias_first = p->by_distance ? 0 : p->start;
    for (int h = 0; h < heads; h++) {
        const float *out = p->ring[0].out + (size_t)(i * heads + h) * (size_t)p->dv;
        or_row(&c, n - 1, h, want + p->dv, want, &lse);
        tol = 1e-5 * (4 + fabs(lse) + 6 * c.scale * p->dk);
        for (int d = 0; d < p->dv; d++)
            if (!(fabs((double)out[d] - want[d]) <= tol))
                FUZZ_DIE("token %d is %g, not %g", i, (double)out[d], want[d]);
        if (!(fabs((double)p->ring[0].lse[i * heads + h] - lse) <= tol)) FUZZ_DIE("lse of token %d", i);
        fuzz_ops++;
    }
    free(want);
}
static void same_bits(const problem *p, int n) {
    const size_t lse = (size_t)(n * p->shape.n_heads), out = lse * (size_t)p->dv;
    if (memcmp(p->ring[0].out, p->ring[1].out, out * sizeof(float)) != 0
        || memcmp(p->ring[0].lse, p->ring[1].lse, lse * sizeof(float)) != 0)
        FUZZ_DIE("another ring: other bits");
}
static rows any_rows(const problem *p, int n, uint32_t *seed) {
    const size_t h = (size_t)(n * p->shape.n_heads), kv = (size_t)(n * p->shape.n_kv_heads);
    const size_t q = h * (size_t)p->dk, k = kv * (size_t)p->dk, v = kv * (size_t)p->dv, bias = h * (size_t)p->bias_n;
    rows x;
    memset(&x, 0, sizeof x);
    fill(x.q = room(q), q, seed);
    fill(x.k = room(k), k, seed);
    if (p->v) fill(x.v = room(v), v, seed);
    if (p->q_sink) fill(x.q_sink = room(q), q, seed);
    if (p->bias) fill(x.bias = room(bias), bias, seed);
    return x;
}
static void free_rows(rows *x) {
    free(x->q);
    free(x->q_sink);
    free(x->k);
    free(x->v);
    free(x->bias);
}

static int path_of(const int32_t *parents, int node, int32_t *path) {
    int n = 0;
    for (int at = node; at >= 0; at = parents[at]) n++;
    for (int i = n - 1; i >= 0; i--, node = parents[node]) path[i] = node;
    return n;
}
static void unchanged(const problem *p) {
    for (int i = 0; i < 2; i++)
        if (swa_cache_end(&p->ring[i].kv, 0) != p->start + p->end) FUZZ_DIE("the sequence ends elsewhere");
}
/* Parents not far before their nodes; one in 16 trees has one that is refused. */
static int any_tree(fuzz_in *in, problem *p, int32_t *parents, int n, uint32_t *seed) {
    const int far = fuzz_pick(in, 1, n), bad = fuzz_pick(in, 0, 15) == 0 ? fuzz_pick(in, 0, n - 1) : -1;
    for (int i = 0; i < n; i++) {
        *seed += 0x9e3779b9u;
        parents[i] = (int32_t)(i - 1) - (int32_t)(fuzz_mix(*seed) % (uint32_t)far);
        if (parents[i] < -1) parents[i] = -1;
    }
    if (bad < 0) return 1;
    parents[bad] = fuzz_pick(in, 0, 1) ? bad : -2;
    for (int i = 0; i < 2; i++)
        if (begin(p, &p->ring[i], n, parents) != SWA_ERR_ARG) FUZZ_DIE("parent %d is taken", (int)parents[bad]);
    unchanged(p);
    return 0;
}
/* What stays of a tree: a path, of which a wrong one was refused before; or nothing. */
static void keep(fuzz_in *in, problem *p, const rows *x, const int32_t *parents, int n) {
    const int how = fuzz_pick(in, 0, 3), node = fuzz_pick(in, 0, n - 1);
    int32_t path[NODES], none[2] = { 0, 0 };
    const int m = how ? path_of(parents, node, path) : 0;
    for (int i = 0; i < 2; i++) {
        swa_cache *kv = &p->ring[i].kv;
        if (swa_cache_commit(kv, 0, none, 2) != SWA_ERR_ARG) FUZZ_DIE("a path that is none is taken");
        if (how == 0 ? swa_cache_truncate(kv, 0, p->start + p->end) != SWA_OK
                     : swa_cache_commit(kv, 0, path, m) != SWA_OK)
            FUZZ_DIE("a path is refused");
    }
    for (int i = 0; i < m; i++) put_row(p, x, path[i], p->end + i);
    p->end += m;
    unchanged(p);
}
static void one_run(fuzz_in *in, problem *p, uint32_t *seed) {
    const int tree = fuzz_pick(in, 0, 2) > 0, n = fuzz_pick(in, 1, tree ? NODES : fuzz_byte(in) & 1 ? 9 : 260);
    int32_t parents[NODES], path[NODES];
    rows x;
    if (p->end + n > ROWS || (tree && !any_tree(in, p, parents, n, seed))) return;
    x = any_rows(p, n, seed);
    for (int i = 0; i < 2; i++) {
        if (begin(p, &p->ring[i], n, tree ? parents : NULL) != SWA_OK) FUZZ_DIE("begin is refused");
        attend(p, &p->ring[i], &x);
    }
    same_bits(p, n);
    for (int i = 0; i < n; i++) put_row(p, &x, i, p->end + i);
    for (int i = n - 1; i >= 0; i -= 1 + n / 10) { /* the oracle is slow: of a long run some tokens */
        const int m = tree ? path_of(parents, i, path) : 1;
        for (int j = 0; tree && j < m; j++) put_row(p, &x, path[j], p->end + j);
        against_oracle(p, i, tree ? m - 1 : i);
    }
    if (tree) keep(in, p, &x, parents, n);
    else p->end += n;
    free_rows(&x);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_in in;
    problem p;
    uint32_t seed;
    in.p = data;
    in.left = size;
    any_problem(&in, &p, &seed);
    for (int i = 0; i < OPERATIONS && (i == 0 || in.left > 0); i++) one_run(&in, &p, &seed);
    free_problem(&p);
    return 0;
}
