/* Trees of drafts: every path to the bit as it is decoded alone, and against the definition in double; what a cache
   holds once one path was accepted; and what it refuses until then. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "attend.h"

enum { NODES = 90 };

/* ---- trees ---- */

enum { ROOTS = 5, STYLES };
/* Chains, bushes, and what lies between. */
static void make_tree(int32_t *parents, int n, int style) {
    for (int i = 0; i < n; i++) {
        parents[i] = i == 0 || (style == 1 && t_int(0, 2) == 0) || style == ROOTS ? -1
                   : style == 2                                                   ? (int32_t)(i - 1)
                   : style == 3 ? (int32_t)(i - t_int(1, i < 4 ? i : 4))
                   : style == 4 ? (int32_t)((i - 1) / 3)
                                : (int32_t)t_int(-1, i - 1);
    }
}
static int path_of(const int32_t *parents, int node, int32_t *path) {
    int n = 0, at;
    for (at = node; at >= 0; at = parents[at]) n++;
    for (int i = n - 1; i >= 0; i--, node = parents[node]) path[i] = node;
    return n;
}
static void positions_are_depths(const int32_t *parents, int n, int64_t pos) {
    int64_t at[NODES];
    int32_t path[NODES];
    CHECK_OK(swa_tree_positions(parents, n, pos, at));
    for (int i = 0; i < n; i++) CHECK_INT(at[i], pos + path_of(parents, i, path) - 1);
}

/* ---- a sequence with trees, beside one that is decoded straight ---- */

/* Rows of `line` are positions from c.start on; of a tree, node by node from its position on. */
typedef struct {
    at_case c;
    at_data pool, line;
    int used, end; /* rows of the pool; of the line */
    int roots;     /* trees are nothing but roots */
    swa_cache tree, straight;
    at_how how, plain;
    float *out, *lse, *want, *want_lse; /* of the line */
} pair;

static void row_from(pair *x, const at_data *from, int i, int to) {
    const at_case *c = &x->c;
    const size_t bias = (size_t)(c->shape.n_heads * from->bias_n), a = (size_t)i, b = (size_t)to;
    memcpy(x->line.q + b * at_q_row(c), from->q + a * at_q_row(c), at_q_row(c) * sizeof(float));
    if (from->q_sink)
        memcpy(x->line.q_sink + b * at_q_row(c), from->q_sink + a * at_q_row(c), at_q_row(c) * sizeof(float));
    memcpy(x->line.k + b * at_k_row(c), from->k + a * at_k_row(c), at_k_row(c) * sizeof(float));
    if (from->v) memcpy(x->line.v + b * at_v_row(c), from->v + a * at_v_row(c), at_v_row(c) * sizeof(float));
    if (from->bias) memcpy(x->line.bias + b * bias, from->bias + a * bias, bias * sizeof(float));
}
static int pair_open(pair *x, const at_case *c, int rows, int isa) {
    memset(x, 0, sizeof *x);
    x->c = *c;
    x->c.n = rows;
    x->pool = at_make(&x->c);
    x->line = at_make(&x->c);
    if (x->pool.bias_n > 150) x->pool.bias_n = 150;
    x->line.bias_n = x->pool.bias_n;
    x->line.alibi = x->pool.alibi;
    x->line.sink_logits = x->pool.sink_logits;
    x->out = t_floats((size_t)rows * at_o_row(c));
    x->want = t_floats((size_t)rows * at_o_row(c));
    x->lse = t_floats((size_t)(rows * c->shape.n_heads));
    x->want_lse = t_floats((size_t)(rows * c->shape.n_heads));
    x->how.isa = x->plain.isa = isa;
    x->how.audit = x->plain.audit = 1;
    x->how.others = t_int(0, 2) ? 0 : 2;
    x->how.max_parts = 4;
    x->how.k_rows = t_int(0, 2) == 0;
    x->how.origin = t_int(0, 1) ? t_int(0, 300) : 0;
    if (c->sees.chunk) x->how.capacity = c->sees.chunk - 1 + NODES + t_int(0, 40);
    else if (c->sees.left < OR_FAR) x->how.capacity = c->sees.left + NODES + t_int(0, 40);
    else x->how.max_context = x->plain.max_context = rows + 2000;
    x->plain.capacity = x->how.capacity;
    return at_cache(&x->tree, &x->c, &x->how) && at_cache(&x->straight, &x->c, &x->plain);
}
/* n rows of the pool more, decoded by both. */
static int pair_plain(pair *x, int n) {
    const int to = x->end + n;
    for (int i = x->end; i < to; i++) row_from(x, &x->pool, x->used++, i);
    x->how.chunk = t_int(1, n > 0 ? n : 1);
    x->plain.chunk = t_int(1, n > 0 ? n : 1);
    x->how.parts = t_int(0, 3);
    x->how.layout = t_int(0, 2);
    x->how.put_first = 0;
    if (!at_ring_on(&x->tree, &x->c, &x->line, &x->how, x->end, to, x->out, x->lse)
        || !at_ring_on(&x->straight, &x->c, &x->line, &x->plain, x->end, to, x->want, x->want_lse))
        return 0;
    CHECK_BITS(x->out + (size_t)x->end * at_o_row(&x->c), x->want + (size_t)x->end * at_o_row(&x->c),
               (size_t)n * at_o_row(&x->c));
    x->end = to;
    return 1;
}
/* The path, straight: its rows come into the line, its results are compared to the tree's, [nodes][..]. */
static int pair_path(pair *x, const at_data *nodes, const int32_t *path, int n, const float *out, const float *lse) {
    const size_t o = at_o_row(&x->c), h = (size_t)x->c.shape.n_heads;
    for (int i = 0; i < n; i++) row_from(x, nodes, path[i], x->end + i);
    x->plain.chunk = t_int(1, n);
    if (!at_ring_on(&x->straight, &x->c, &x->line, &x->plain, x->end, x->end + n, x->want, x->want_lse)) return 0;
    for (int i = 0; i < n; i++) {
        if (!CHECK_BITS(out + (size_t)path[i] * o, x->want + (size_t)(x->end + i) * o, o)) return 0;
        if (!CHECK_BITS(lse + (size_t)path[i] * h, x->want_lse + (size_t)(x->end + i) * h, h)) return 0;
    }
    return 1;
}
/* The last token of a path against attention written out. */
static void pair_oracle(pair *x, const at_data *nodes, const int32_t *path, int n, const float *out) {
    const at_case *c = &x->c;
    const int rows = x->end + n, heads = c->shape.n_heads;
    at_case some = *c;
    at_data s;
    or_case o;
    double *room = t_doubles((size_t)rows), *want = t_doubles(at_o_row(c)), lse;
    for (int i = 0; i < n; i++) row_from(x, nodes, path[i], x->end + i);
    some.n = rows;
    s = at_stored(&some, &x->line);
    o = at_oracle_case(&some, &s);
    for (int h = 0; h < heads; h++) or_row(&o, rows - 1, h, room, want + h * o.dv, &lse);
    CHECK_CLOSE(out + (size_t)path[n - 1] * at_o_row(c), want, at_o_row(c), c->compute == SWA_Q8 ? 0.2 : 1e-4);
}
/* One tree: all of it, then its paths; part of one stays. */
static int pair_tree(pair *x, int n) {
    const t_block *mark = t_.blocks;
    const size_t o = at_o_row(&x->c), h = (size_t)x->c.shape.n_heads;
    const int64_t pos = x->c.start + x->end;
    int32_t parents[NODES], path[NODES];
    unsigned char inner[NODES] = { 0 };
    float *out = t_floats((size_t)n * o), *lse = t_floats((size_t)n * h);
    at_data nodes = x->line;
    int m, looked = 0, ok;
    make_tree(parents, n, x->roots ? ROOTS : t_int(0, STYLES - 1));
    positions_are_depths(parents, n, pos);
    for (int i = 0; i < n; i++) {
        row_from(x, &x->pool, x->used++, x->end + i);
        if (parents[i] >= 0) inner[parents[i]] = 1;
    }
    x->how.parents = parents;
    x->how.chunk = n;
    x->how.parts = t_int(0, 4);
    x->how.layout = t_int(0, 2);
    x->how.put_first = t_int(0, 3) == 0;
    ok = at_ring_on(&x->tree, &x->c, &x->line, &x->how, x->end, x->end + n, x->out, x->lse);
    x->how.parents = NULL;
    memcpy(out, x->out + (size_t)x->end * o, (size_t)n * o * sizeof *out);
    memcpy(lse, x->lse + (size_t)x->end * h, (size_t)n * h * sizeof *lse);
    nodes = x->pool; /* whose rows from used - n on are the nodes */
    nodes.q += (size_t)(x->used - n) * at_q_row(&x->c);
    nodes.k += (size_t)(x->used - n) * at_k_row(&x->c);
    if (nodes.v) nodes.v += (size_t)(x->used - n) * at_v_row(&x->c);
    if (nodes.q_sink) nodes.q_sink += (size_t)(x->used - n) * at_q_row(&x->c);
    if (nodes.bias) nodes.bias += (size_t)(x->used - n) * h * (size_t)nodes.bias_n;
    for (int i = n - 1; ok && i >= 0 && looked < (t_all() ? n : 6); i--) {
        if (inner[i] || (n > 12 && t_int(0, 2) == 0)) continue;
        m = path_of(parents, i, path);
        ok = pair_path(x, &nodes, path, m, out, lse) && CHECK_OK(swa_cache_truncate(&x->straight, 0, pos));
        if (looked++ == 0) pair_oracle(x, &nodes, path, m, out);
    }
    m = t_int(0, 4) ? path_of(parents, t_int(0, n - 1), path) : 0;
    ok = ok && (m == 0 || pair_path(x, &nodes, path, m, out, lse));
    ok = ok && CHECK_OK(swa_cache_commit(&x->tree, 0, path, m));
    x->end += m;
    ok = ok && CHECK_INT(swa_cache_end(&x->tree, 0), x->c.start + x->end);
    t_free_to(mark);
    return ok;
}
/* All rows that both hold are the same. */
static void pair_rows(pair *x) {
    const int64_t end = swa_cache_end(&x->tree, 0), a = swa_cache_first(&x->tree, 0, 0);
    const int64_t b = swa_cache_first(&x->straight, 0, 0), first = a > b ? a : b;
    const size_t n = (size_t)(end - first), k = n * at_k_row(&x->c), v = n * at_v_row(&x->c);
    float *mine = t_floats(k + v), *other = t_floats(k + v);
    CHECK_OK(swa_cache_read(&x->tree, 0, 0, first, (int32_t)n, mine, mine + k));
    CHECK_OK(swa_cache_read(&x->straight, 0, 0, first, (int32_t)n, other, other + k));
    CHECK_BITS(mine, other, k + v);
}

/* ---- cases ---- */

static at_case some_case(int kind) {
    at_case c = kind == 0 ? at_new(8, 2, 64, 64, 1)
              : kind == 1 ? at_new(3, 3, 24, 40, 1)
              : kind == 2 ? at_new(6, 2, 19, 5, 1)
              : kind == 3 ? at_new(33, 1, 48, 32, 1)
                          : at_new(10, 2, 16, 16, 1);
    at_vary(&c, kind);
    c.start = t_int(0, 2) ? t_int(150, 270) : t_int(0, 1) ? 0 : t_int(0, 5000);
    if (kind < 3 && c.k_type == SWA_Q8 && t_int(0, 1)) c.compute = SWA_Q8;
    switch (t_int(0, 5)) {
    case 0: break;
    case 1: at_chunked(&c, t_int(5, 90)); break;
    case 2:
        at_pinned(&c, t_int(1, t_int(0, 1) ? 5 : 60), t_int(1, 30));
        c.start = t_int(0, 1) ? t_int(0, 30) : 0;
        c.q_sink = t_int(0, 1);
        break;
    case 3: at_sliding(&c, t_int(1, 12)); break;
    default: at_sliding(&c, t_int(20, 300)); break;
    }
    return c;
}
TEST_EACH_ISA(trees_have_the_bits_of_their_paths) {
    for (int i = 0; i < (t_all() ? 40 : t_thin(isa) ? 5 : 15); i++) {
        const t_block *mark = t_.blocks;
        at_case c = some_case(i % 5);
        pair x;
        t_label("case %d", i);
        REQUIRE(pair_open(&x, &c, 660, isa));
        for (int round = 0; round < 4; round++) {
            if (!pair_plain(&x, round == 0 && (c.sees.pinned || t_int(0, 3) == 0) ? 0 : t_int(0, 70))) break;
            if (!pair_tree(&x, t_int(0, 2) ? t_int(1, 20) : t_int(1, NODES))) break;
            pair_rows(&x);
        }
        t_free_to(mark);
    }
}
/* Begun near a block's end, so that history and nodes are more than a block; with the window's edge in another block,
   which tokens of several depths meet. Nothing that is not masked is computed as if it were. */
TEST_EACH_ISA(trees_across_blocks) {
    static const int W[4] = { 0, 330, 100, 600 };
    for (int i = 0; i < (t_thin(isa) ? 4 : 12); i++) {
        const t_block *mark = t_.blocks;
        at_case c = i % 3 ? at_new(8, 2, 16, 16, 1) : at_new(5, 1, 16, 24, 1);
        const int history = 256 * (t_thin(isa) ? 1 + i % 2 : t_int(1, 3)) - t_int(1, 70);
        pair x;
        t_label("case %d", i);
        if (W[i % 4]) at_sliding(&c, W[i % 4] + t_int(0, 40));
        REQUIRE(pair_open(&x, &c, history + 2 * NODES, isa));
        x.how.put_first = 0;
        if (!pair_plain(&x, history)) return;
        for (int round = 0; round < 2; round++)
            if (!pair_tree(&x, t_int(NODES / 2, NODES))) return;
        pair_rows(&x);
        t_free_to(mark);
    }
}

/* At the last positions that there are: in the last block, whose end no number names, or over its edge. */
TEST(trees_at_the_last_positions) {
    for (int i = 0; i < 3; i++) {
        const t_block *mark = t_.blocks;
        at_case c = i % 2 ? at_new(8, 2, 16, 16, 1) : at_new(5, 1, 16, 24, 1);
        pair x;
        t_label("case %d", i);
        at_sliding(&c, 40);
        c.start = INT64_MAX - (i == 2 ? 290 : 230);
        REQUIRE(pair_open(&x, &c, 120, SWA_ISA_BEST));
        if (!pair_plain(&x, 30)) return;
        if (!pair_tree(&x, 40)) return;
        pair_rows(&x);
        t_free_to(mark);
    }
}

/* A bias by distance reaches over a block's edge: the nodes lie behind it, at one position, in several panels. */
TEST_EACH_ISA(trees_with_a_bias_over_an_edge) {
    at_case c = at_new(8, 2, 16, 16, 1);
    pair x;
    c.bias = 2;
    REQUIRE(pair_open(&x, &c, 256 + 2 * NODES, isa));
    x.pool.bias_n = x.line.bias_n = 3;
    x.how.put_first = 0;
    x.roots = 1;
    if (pair_plain(&x, 256)) pair_tree(&x, NODES);
}

/* ---- what a cache says and takes ---- */

/* Three layers: a window with sinks, one that reads its rows, and another shape without limit. Two sequences. */
enum { H = 4, D = 16, LAYERS = 3, CONTEXT = 300, ROOM = 12 };
typedef struct {
    swa_window windows[LAYERS];
    swa_shape shapes[LAYERS];
    int kv_layer[LAYERS];
    swa_cache_desc d;
    float *q, *k, *out;
} model;

static void model_make(model *m, swa_type type) {
    memset(m, 0, sizeof *m);
    m->windows[0] = m->windows[1] = swa_window_sinks(20, 3);
    m->windows[1].left = 6;
    m->windows[2] = swa_window_causal();
    for (int l = 0; l < LAYERS; l++) {
        m->shapes[l].n_heads = H;
        m->shapes[l].n_kv_heads = l < 2 ? 2 : 1;
        m->shapes[l].head_dim = l < 2 ? D : 24;
        m->shapes[l].v_dim = l < 2 ? D : 8;
        m->kv_layer[l] = l == 1 ? 0 : l;
    }
    m->d.shapes = m->shapes;
    m->d.n_shapes = LAYERS;
    m->d.windows = m->windows;
    m->d.n_windows = LAYERS;
    m->d.n_layers = LAYERS;
    m->d.n_seqs = 2;
    m->d.kv_layer = m->kv_layer;
    m->d.max_context = CONTEXT;
    m->d.max_rollback = ROOM;
    m->d.k_type = type;
    m->d.audit = 1;
    m->q = t_random(CONTEXT * H * 24, 2.0f);
    m->k = t_random(CONTEXT * 2 * 24, 1.0f);
    m->out = t_floats(CONTEXT * H * 24 * LAYERS);
}
/* All layers of a step whose rows are row[0..n-1] of the model's; out [layers][n][..] as it comes. */
static int model_step(model *m, swa_cache *kv, swa_run *run, const int *row, float *out) {
    const t_block *mark = t_.blocks;
    const int n = run->n;
    float *q = t_floats(n * H * 24), *k = t_floats(n * 2 * 24), *v = t_floats(n * 2 * 24);
    int ok = CHECK_OK(swa_step_begin(kv, run, 1));
    for (int i = 0; i < n; i++) {
        memcpy(q + i * H * 24, m->q + row[i] * H * 24, H * 24 * sizeof *q);
        memcpy(k + i * 2 * 24, m->k + row[i] * 2 * 24, 2 * 24 * sizeof *k);
        memcpy(v + i * 2 * 24, m->k + row[i] * 2 * 24, 2 * 24 * sizeof *v);
    }
    for (int l = 0; ok && l < LAYERS; l++) {
        swa_attn a;
        memset(&a, 0, sizeof a);
        a.q.p = q;
        a.q.token = H * 24;
        a.k.p = k;
        a.v.p = v;
        a.k.token = a.v.token = 2 * 24;
        a.out.p = out + l * CONTEXT * H * 24;
        a.out.token = H * 24;
        a.mode = l == 1 ? SWA_ATTEND_STORED : SWA_ATTEND;
        t_say_sinks(&a, m->d.audit, &m->windows[l]);
        ok = CHECK_OK(swa_attend(kv, l, &a));
    }
    t_free_to(mark);
    return ok;
}
static void same_caches(const swa_cache *a, const swa_cache *b) {
    for (int l = 0; l < LAYERS; l++) {
        const int64_t end = swa_cache_end(b, 0), x = swa_cache_first(a, 0, l), y = swa_cache_first(b, 0, l);
        const int32_t n = (int32_t)(end - (x > y ? x : y));
        float *mine = t_floats(n * 4 * 24), *other = t_floats(n * 4 * 24);
        CHECK_INT(swa_cache_end(a, 0), end);
        memset(mine, 0, (size_t)n * 4 * 24 * sizeof *mine);
        memset(other, 0, (size_t)n * 4 * 24 * sizeof *other);
        CHECK_OK(swa_cache_read(a, 0, l, end - n, n, mine, mine + n * 2 * 24));
        CHECK_OK(swa_cache_read(b, 0, l, end - n, n, other, other + n * 2 * 24));
        CHECK_BITS(mine, other, n * 4 * 24);
    }
}
/* Windows, sinks and limits of all layers meet; a straight cache says what is right. A tree of one chain too. */
TEST(trees_in_every_layer) {
    for (int i = 0; i < 12; i++) {
        const t_block *mark = t_.blocks;
        model m;
        swa_cache kv, straight;
        float *want;
        int row[CONTEXT], next = 0, end = 0;
        model_make(&m, at_types[i % AT_TYPES]);
        want = t_floats(CONTEXT * H * 24 * LAYERS);
        REQUIRE(t_cache_new(&kv, &m.d, 2) && t_cache_new(&straight, &m.d, 1));
        while (next < CONTEXT - ROOM) {
            const int n = t_int(1, ROOM);
            int32_t parents[ROOM], path[ROOM];
            swa_run run = t_run(0, end, n);
            int length;
            make_tree(parents, n, t_int(0, STYLES - 1));
            for (int j = 0; j < n; j++) row[j] = next++;
            run.parents = parents;
            if (!model_step(&m, &kv, &run, row, m.out)) return;
            length = path_of(parents, t_int(0, n - 1), path);
            if (t_int(0, 5) == 0) length = 0;
            CHECK_OK(swa_cache_commit(&kv, 0, path, length));
            for (int j = 0; j < length; j++, end++) {
                run = t_run(0, end, 1);
                if (!model_step(&m, &straight, &run, row + path[j], want)) return;
                for (int l = 0; l < LAYERS; l++)
                    for (int h = 0; h < H; h++) {
                        const int at = l * CONTEXT * H * 24, dv = m.shapes[l].v_dim;
                        CHECK_BITS(m.out + at + path[j] * H * 24 + h * dv, want + at + h * dv, dv);
                    }
            }
        }
        same_caches(&kv, &straight);
        t_free_to(mark);
    }
}
enum { N = 5, AT = 30 };
static const int32_t tree_parents[N] = { -1, 0, 0, 2, -1 }, good_path[3] = { 0, 2, 3 };

/* Two caches with AT rows each, and a tree in the first. */
typedef struct {
    model m;
    swa_cache kv, straight, copy;
    int row[CONTEXT];
} waiting;

static int wait_tree(waiting *x, int64_t pos, const int *row) {
    swa_run run = t_run(0, pos, N);
    run.parents = tree_parents;
    return model_step(&x->m, &x->kv, &run, row, x->m.out);
}
static int wait_open(waiting *x) {
    model_make(&x->m, SWA_F16);
    for (int i = 0; i < CONTEXT; i++) x->row[i] = i;
    if (!t_cache_new(&x->kv, &x->m.d, 1) || !t_cache_new(&x->straight, &x->m.d, 1)) return 0;
    if (!t_cache_new(&x->copy, &x->m.d, 1)) return 0;
    for (int i = 0; i < AT; i += AT / 3) {
        swa_run run = t_run(0, i, AT / 3);
        if (!model_step(&x->m, &x->kv, &run, x->row + i, x->m.out)) return 0;
        if (!model_step(&x->m, &x->straight, &run, x->row + i, x->m.out)) return 0;
    }
    return 1;
}
/* Until a path is accepted the rows of a tree are no positions. */
TEST(trees_wait_for_commit) {
    static const int32_t other[2] = { 0, 3 }, far[2] = { 0, N };
    waiting x;
    swa_run run = t_run(0, AT, N);
    swa_kv spans[3];
    unsigned char blob[1 << 16];
    int n = 0;
    REQUIRE(wait_open(&x));
    CHECK_STATUS(swa_cache_commit(&x.kv, 0, good_path, 1), SWA_ERR_ORDER); /* there is no tree */
    run.parents = tree_parents;
    CHECK_OK(swa_step_begin(&x.kv, &run, 1));
    CHECK_STATUS(swa_cache_commit(&x.kv, 0, good_path, 1), SWA_ERR_ORDER); /* and not stored */
    REQUIRE(wait_tree(&x, AT, x.row + AT));                                /* begun again: it died halfway */
    CHECK_INT(swa_cache_end(&x.kv, 0), AT + N);
    CHECK_INT(swa_cache_slot(&x.kv, 0, 2, AT), -1);
    CHECK(swa_cache_slot(&x.kv, 0, 2, AT - 1) >= 0);
    for (int i = 0, spanned = swa_cache_spans(&x.kv, 0, 2, spans); i < spanned; i++) n += spans[i].n;
    CHECK_INT(n, AT);
    CHECK_STATUS(swa_cache_read(&x.kv, 0, 2, AT, 1, x.m.out, NULL), SWA_ERR_ORDER);
    CHECK_OK(swa_cache_read(&x.kv, 0, 2, AT - 1, 1, x.m.out, NULL));
    CHECK_STATUS(swa_cache_truncate(&x.kv, 0, AT + 1), SWA_ERR_ORDER);
    CHECK_STATUS(swa_cache_truncate(&x.kv, 0, AT + N), SWA_ERR_ORDER);
    CHECK_STATUS(swa_cache_fork(&x.kv, 1, 0, -1), SWA_ERR_ORDER);
    CHECK_STATUS(swa_cache_copy(&x.copy, 0, &x.kv, 0, AT + 1), SWA_ERR_ORDER);
    CHECK_STATUS(swa_cache_save(&x.kv, 0, blob, sizeof blob), SWA_ERR_ORDER);
    CHECK_STATUS(swa_cache_save(&x.kv, -1, blob, sizeof blob), SWA_ERR_ORDER);
    CHECK(swa_cache_min_end(&x.kv, 0) <= AT);
    CHECK_STATUS(swa_step_one(&x.kv, 0, AT + N, 1), SWA_ERR_ORDER);
    CHECK_STATUS(swa_step_one(&x.kv, 0, AT, 1), SWA_ERR_ORDER); /* and no rewind asked for */
    run = t_run(0, AT + 1, 1);
    run.rewind = 1;
    CHECK_STATUS(swa_step_begin(&x.kv, &run, 1), SWA_ERR_ORDER);
    run = t_run(1, 0, 3);
    REQUIRE(model_step(&x.m, &x.kv, &run, x.row, x.m.out)); /* the other sequence goes on */
    CHECK_STATUS(swa_cache_commit(&x.kv, 0, other, 2), SWA_ERR_ARG);
    CHECK_STATUS(swa_cache_commit(&x.kv, 0, good_path + 1, 2), SWA_ERR_ARG);
    CHECK_STATUS(swa_cache_commit(&x.kv, 0, far, 2), SWA_ERR_ARG);
    CHECK_OK(swa_cache_fork(&x.kv, 1, 0, AT));                        /* what lies before it may be copied */
    CHECK_STATUS(swa_cache_commit(&x.kv, 1, NULL, 0), SWA_ERR_ORDER); /* and is no tree */
    CHECK_OK(swa_cache_copy(&x.copy, 0, &x.kv, 0, AT));
    same_caches(&x.copy, &x.straight);
    CHECK_OK(swa_cache_commit(&x.kv, 0, good_path, 3));
    CHECK_STATUS(swa_cache_commit(&x.kv, 0, good_path, 3), SWA_ERR_ORDER);
    for (int i = 0; i < 3; i++) {
        run = t_run(0, AT + i, 1);
        REQUIRE(model_step(&x.m, &x.straight, &run, x.row + AT + good_path[i], x.m.out));
    }
    same_caches(&x.kv, &x.straight);
}
TEST(trees_are_dropped) {
    static const int32_t chain[2] = { -1, 0 };
    waiting x;
    swa_run run;
    unsigned char blob[1 << 16];
    size_t bytes;
    REQUIRE(wait_open(&x));
    bytes = swa_cache_save_bytes(&x.kv, 0);
    REQUIRE(bytes <= sizeof blob);
    CHECK_OK(swa_cache_save(&x.kv, 0, blob, bytes));
    REQUIRE(wait_tree(&x, AT, x.row + 100));
    CHECK_OK(swa_cache_truncate(&x.kv, 0, AT));
    same_caches(&x.kv, &x.straight);
    REQUIRE(wait_tree(&x, AT, x.row + 100));
    CHECK_OK(swa_cache_commit(&x.kv, 0, NULL, 0));
    same_caches(&x.kv, &x.straight);
    REQUIRE(wait_tree(&x, AT, x.row + 100));
    run = t_run(0, AT, 2); /* another tree in its place, of which all is accepted */
    run.parents = chain;
    run.rewind = 1;
    REQUIRE(model_step(&x.m, &x.kv, &run, x.row + 200, x.m.out));
    CHECK_OK(swa_cache_commit(&x.kv, 0, chain + 1, 1));
    CHECK_OK(swa_cache_truncate(&x.kv, 0, AT));
    same_caches(&x.kv, &x.straight);
    REQUIRE(wait_tree(&x, AT, x.row + 100));
    CHECK_OK(swa_cache_load(&x.kv, 0, blob, bytes));
    same_caches(&x.kv, &x.straight);
    CHECK_STATUS(swa_cache_commit(&x.kv, 0, NULL, 0), SWA_ERR_ORDER);
    CHECK_OK(swa_cache_save(&x.kv, 0, blob, bytes));
    REQUIRE(wait_tree(&x, AT, x.row));
    CHECK_OK(swa_cache_reset(&x.kv, 0, 7, 0));
    CHECK_STATUS(swa_cache_commit(&x.kv, 0, NULL, 0), SWA_ERR_ORDER);
    CHECK_OK(swa_step_one(&x.kv, 0, 7, 1));
    CHECK_OK(swa_cache_truncate(&x.kv, 0, 7));
    run = t_run(1, 0, 2); /* one that is all there is */
    run.parents = chain;
    REQUIRE(model_step(&x.m, &x.kv, &run, x.row, x.m.out));
    CHECK_INT(swa_cache_min_end(&x.kv, 1), 2);
    CHECK_OK(swa_cache_commit(&x.kv, 1, NULL, 0));
    CHECK_INT(swa_cache_end(&x.kv, 1), 0);
}
/* A step over which a path was accepted is over, however it was accepted. */
TEST(trees_end_their_step) {
    static const int32_t parents[3] = { -1, 0, 1 }, path[3] = { 0, 1, 2 };
    model m;
    swa_cache kv;
    swa_attn a;
    swa_run run = t_run(0, 0, 3);
    const int row[3] = { 0, 1, 2 };
    model_make(&m, SWA_F32);
    REQUIRE(t_cache_new(&kv, &m.d, 1));
    run.parents = parents;
    REQUIRE(model_step(&m, &kv, &run, row, m.out));
    memset(&a, 0, sizeof a);
    a.q.p = m.q;
    a.out.p = m.out;
    a.mode = SWA_ATTEND_STORED;
    CHECK_OK(swa_attend(&kv, 0, &a));
    CHECK_OK(swa_cache_commit(&kv, 0, path, 3));
    CHECK_STATUS(swa_attend(&kv, 0, &a), SWA_ERR_ORDER);
}
/* A tree is taken iff a chain of as many tokens could be taken back, and has slots for all. */
TEST(trees_that_can_be_taken_back) {
    int32_t parents[60];
    int taken = 0, refused = 0;
    for (int i = 0; i < 60; i++) parents[i] = i - 1;
    for (int i = 0; i < 400; i++) {
        const t_block *mark = t_.blocks;
        const int held = t_int(0, 60), n = t_int(1, 60), start = t_int(0, 1) ? 0 : t_int(0, 40);
        swa_window win[2];
        swa_cache_desc d;
        swa_cache kv[2];
        swa_status want = SWA_OK;
        const int W[2] = { t_int(1, 30), t_int(1, 30) }, causal = t_int(0, 1);
        memset(&d, 0, sizeof d);
        win[0] = t_int(0, 2) ? swa_window_sliding(W[0]) : swa_window_chunked(W[0]);
        win[1] = causal ? swa_window_causal() : swa_window_sinks(W[1], t_int(0, 9));
        d.shape.n_heads = d.shape.n_kv_heads = 1;
        d.shape.head_dim = 8;
        d.n_layers = 2;
        d.windows = win;
        d.n_windows = 2;
        d.max_context = 200;
        d.capacity = t_int(0, 2) ? 30 + t_int(1, 30) : 0;
        d.max_rollback = t_int(0, 1) ? 1 : 0;
        for (int j = 0; j < 2; j++) {
            swa_run run = t_run(0, start + held, n);
            swa_attn a;
            memset(&a, 0, sizeof a);
            REQUIRE(t_cache_new(&kv[j], &d, 1));
            CHECK_OK(swa_cache_reset(&kv[j], 0, start, 0));
            a.mode = SWA_STORE_ONLY;
            a.k.p = a.v.p = t_random(60 * 8, 1.0f);
            if (held > 0) {
                CHECK_OK(swa_step_one(&kv[j], 0, start, held));
                CHECK_OK(swa_attend(&kv[j], 0, &a));
                CHECK_OK(swa_attend(&kv[j], 1, &a));
            }
            if (j == 0) {
                CHECK_OK(swa_step_begin(&kv[j], &run, 1));
                CHECK_OK(swa_attend(&kv[j], 0, &a)); /* until then nothing is pushed out */
                CHECK_OK(swa_attend(&kv[j], 1, &a));
                want = swa_cache_truncate(&kv[j], 0, start + held);
                for (int l = 0; l < (causal ? 1 : 2); l++)
                    if (n > (d.capacity > 0 ? (int)d.capacity : (W[l] + 15) / 16 * 16)) want = SWA_ERR_LOST;
            } else {
                run.parents = parents;
                CHECK_STATUS(swa_step_begin(&kv[j], &run, 1), want == SWA_OK ? want : SWA_ERR_CAPACITY);
                want == SWA_OK ? taken++ : refused++;
            }
        }
        t_free_to(mark);
    }
    CHECK(taken > 50 && refused > 50);
}
