/* Layers that differ in shape, and layers that read another layer's rows: each to the bit against caches of one layer,
   which know nothing of the others, through the same random calls. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "test.h"

enum { LAYERS = 6, SEQS = 3, SPARE = SEQS, MOST = 40, WIDE = 12 * 24 };

/* One cache of all layers, and one for each of them. */
typedef struct {
    swa_cache_desc d, alone[LAYERS];
    swa_shape shape[LAYERS]; /* of each layer */
    int kv[LAYERS];          /* the layer whose rows it reads */
    swa_cache all, own[LAYERS];
    int64_t room; /* tokens that may be stored before they are attended */
    int64_t end[SEQS];
    uint32_t id[SEQS][512]; /* which token stands at a position */
    uint32_t next_id;
} rig;
typedef struct {
    float q[MOST * WIDE], k[MOST * WIDE], v[MOST * WIDE], out[MOST * WIDE], want[MOST * WIDE];
} rows;

static float number(uint32_t id, int what, int layer, int i) {
    uint32_t x = id * 2654435761u ^ ((uint32_t)(what * 7919 + layer * 104729 + 77) + (uint32_t)i * 15485863u);
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    x *= 3266489917u;
    x ^= x >> 16;
    return (float)(x >> 8) / 8388608.0f - 1.0f;
}
/* Row `row` of q, and of the rows that the layer reads. */
static void fill(const rig *r, rows *x, int layer, uint32_t id, int row) {
    const swa_shape *s = &r->shape[layer];
    const int q = s->n_heads * s->head_dim, k = s->n_kv_heads * s->head_dim, v = s->n_kv_heads * s->v_dim;
    for (int i = 0; i < q; i++) x->q[row * q + i] = number(id, 0, layer, i);
    for (int i = 0; i < k; i++) x->k[row * k + i] = number(id, 1, r->kv[layer], i);
    for (int i = 0; i < v; i++) x->v[row * v + i] = number(id, 2, r->kv[layer], i);
}
static swa_attn attn_of(rows *x, float *out, swa_mode mode) {
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.mode = mode;
    a.q.p = x->q;
    a.k.p = x->k;
    a.v.p = x->v;
    a.out.p = out;
    a.scale = 0.5f;
    if (mode == SWA_ATTEND_STORED) a.k.p = a.v.p = NULL; /* a reader has q and nothing else */
    return a;
}
/* A reader is told apart by its window, not by how long the ring is that it reads. */
static int64_t slots_of(const rig *r, int layer) {
    const int64_t need = swa_required_capacity(&r->d.windows[layer % r->d.n_windows], 0, r->d.max_rollback);
    return need > 0 ? (need + 15) / 16 * 16 : r->d.max_context;
}
static int open_rig(rig *r) {
    int ok;
    r->d.n_seqs = SEQS + 1;
    r->next_id = 1;
    ok = t_cache_new(&r->all, &r->d, 1);
    for (int l = 0; l < r->d.n_layers && ok; l++) {
        r->alone[l] = r->d;
        r->alone[l].n_layers = 1;
        r->alone[l].shape = r->shape[l];
        r->alone[l].shapes = NULL;
        r->alone[l].n_shapes = 0;
        if (r->d.n_types > 0) { /* as if the layer were all layers */
            r->alone[l].k_type = r->d.types[l % r->d.n_types].k;
            r->alone[l].v_type = r->d.types[l % r->d.n_types].v;
            r->alone[l].types = NULL;
            r->alone[l].n_types = 0;
        }
        r->alone[l].kv_layer = NULL;
        r->alone[l].windows = r->d.windows + l % r->d.n_windows;
        r->alone[l].n_windows = 1;
        if (r->kv[l] != l) r->alone[l].capacity = slots_of(r, r->kv[l]);
        ok = t_cache_new(&r->own[l], &r->alone[l], 1);
    }
    return ok;
}
/* Whether a layer comes last of those that read its ring. */
static int last_reader(const rig *r, int layer) {
    for (int l = layer + 1; l < r->d.n_layers; l++)
        if (r->kv[l] == r->kv[layer]) return 0;
    return 1;
}
/* A layer of the step. q_only: whoever has the rows stores them, and the others read them there; else each is given
   them and the last one stores. */
static int layer_of_step(rig *r, rows *x, int layer, const swa_run *runs, int n, int q_only) {
    const swa_shape *s = &r->shape[layer];
    const int width = s->n_heads * s->v_dim;
    swa_attn a = attn_of(x, x->want, SWA_ATTEND), b;
    swa_mode mode = SWA_ATTEND;
    int32_t tokens = 0;
    swa_run again[SEQS];
    for (int i = 0; i < n; i++) {
        for (int32_t t = 0; t < runs[i].n; t++) fill(r, x, layer, r->id[runs[i].seq][runs[i].pos + t], runs[i].row + t);
        tokens += runs[i].n;
        again[i] = runs[i];
    }
    if (q_only && r->kv[layer] != layer) mode = SWA_ATTEND_STORED;
    if (!q_only && !last_reader(r, layer)) mode = SWA_ATTEND_NO_STORE;
    b = attn_of(x, x->out, mode);
    t_say_sinks(&a, r->d.audit, &r->d.windows[layer % r->d.n_windows]);
    t_say_sinks(&b, r->d.audit, &r->d.windows[layer % r->d.n_windows]);
    return CHECK_OK(swa_step_begin(&r->own[layer], again, n)) && CHECK_OK(swa_attend(&r->own[layer], 0, &a))
        && CHECK_OK(swa_attend(&r->all, layer, &b)) && CHECK_BITS(x->out, x->want, tokens * width);
}
static int step(rig *r, rows *x, int most) {
    swa_run runs[SEQS];
    int n = 0, total = 0, q_only = 1;
    for (int seq = 0; seq < SEQS; seq++) {
        int len = t_int(0, 2) ? t_int(1, 3) : t_int(1, most);
        if (t_int(0, 1) || total + len > MOST || r->end[seq] + len > 500) continue;
        if (len > r->room) q_only = 0;
        runs[n] = t_run(seq, r->end[seq], len);
        for (int i = 0; i < len; i++) r->id[seq][r->end[seq] + i] = r->next_id++;
        total += len;
        n++;
    }
    if (n == 0) return 1;
    if (t_int(0, 2) == 0) q_only = 0;
    if (!CHECK_OK(swa_step_begin(&r->all, runs, n))) return 0;
    for (int l = 0; l < r->d.n_layers; l++)
        if (!layer_of_step(r, x, l, runs, n, q_only)) return 0;
    for (int i = 0; i < n; i++) r->end[runs[i].seq] = runs[i].pos + runs[i].n;
    return 1;
}
/* All layers go back, or none: exactly if each could by itself. */
static int cut(rig *r, int seq, int64_t end) {
    int ok = 1;
    swa_status got;
    for (int l = 0; l < r->d.n_layers; l++) ok &= swa_cache_fork(&r->own[l], SPARE, seq, end) == SWA_OK;
    got = swa_cache_truncate(&r->all, seq, end);
    if (!CHECK_STATUS(got, ok ? SWA_OK : SWA_ERR_LOST)) return 0;
    for (int l = 0; l < r->d.n_layers && ok; l++) CHECK_OK(swa_cache_truncate(&r->own[l], seq, end));
    if (ok) r->end[seq] = end;
    return 1;
}
static int fork_or_load(rig *r, int dst, int src, int by_blob) {
    size_t n = swa_cache_save_bytes(&r->all, src);
    unsigned char *blob = (unsigned char *)t_alloc(n);
    CHECK_OK(swa_cache_save(&r->all, src, blob, n));
    CHECK_OK(by_blob ? swa_cache_load(&r->all, dst, blob, n) : swa_cache_fork(&r->all, dst, src, -1));
    for (int l = 0; l < r->d.n_layers; l++) CHECK_OK(swa_cache_fork(&r->own[l], dst, src, -1));
    memcpy(r->id[dst], r->id[src], sizeof r->id[dst]);
    r->end[dst] = r->end[src];
    return CHECK_INT(swa_cache_end(&r->all, dst), r->end[dst]);
}
/* What the layers hold is what each holds alone; of shared rows, what the layer holds that has them. */
static int same_rows(const rig *r) {
    for (int seq = 0; seq < SEQS; seq++)
        for (int l = 0; l < r->d.n_layers; l++) {
            float k[64 * WIDE], v[64 * WIDE], k2[64 * WIDE], v2[64 * WIDE];
            const swa_shape *s = &r->shape[l];
            int64_t first = swa_cache_first(&r->own[r->kv[l]], seq, 0);
            int32_t n = (int32_t)(r->end[seq] - first);
            if (!CHECK_INT(swa_cache_first(&r->all, seq, l), first)) return 0;
            if (n > 64) n = 64;
            first = r->end[seq] - n;
            CHECK_OK(swa_cache_read(&r->all, seq, l, first, n, k, v));
            CHECK_OK(swa_cache_read(&r->own[r->kv[l]], seq, 0, first, n, k2, v2));
            if (!CHECK_BITS(k, k2, n * s->n_kv_heads * s->head_dim)) return 0;
            if (!CHECK_BITS(v, v2, n * s->n_kv_heads * s->v_dim)) return 0;
        }
    return 1;
}
static void history(rig *r, int calls, int most) {
    rows *x = (rows *)t_alloc(sizeof *x);
    for (int i = 0; i < calls; i++) {
        const t_block *before = t_.blocks;
        int op = t_int(0, 9), seq = t_int(0, SEQS - 1), to = t_int(0, SEQS - 1), ok;
        int64_t back = t_int(0, r->end[seq] < 9 ? (int)r->end[seq] : 9);
        t_label("call %d", i);
        if (op < 7) ok = step(r, x, most);
        else if (op < 9) ok = r->end[seq] == 0 || cut(r, seq, r->end[seq] - back);
        else ok = to == seq || fork_or_load(r, to, seq, t_int(0, 1));
        if (!ok || !same_rows(r)) return;
        t_free_to(before);
    }
    CHECK(r->next_id > 80); /* tokens */
}
static swa_shape shape_of(int heads, int kv, int dim, int v) {
    swa_shape s;
    memset(&s, 0, sizeof s);
    s.n_heads = heads;
    s.n_kv_heads = kv;
    s.head_dim = dim;
    s.v_dim = v;
    return s;
}

/* ---- a shape per layer ---- */

enum { TYPES = 7 };
static const swa_type types[TYPES] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8, SWA_Q8_32, SWA_E4M3, SWA_E5M2 };
static swa_types types_of(int k, int v) {
    swa_types t;
    memset(&t, 0, sizeof t);
    t.k = (swa_type)k;
    t.v = (swa_type)v;
    return t;
}
TEST_EACH_ISA(layers_of_different_shapes) {
    const swa_types mixed[8] = { types_of(SWA_F16, SWA_F32), types_of(SWA_Q8, SWA_BF16), types_of(0, 0),
                                 types_of(SWA_BF16, 0),      types_of(0, SWA_F16),       types_of(SWA_Q8, 0),
                                 types_of(SWA_E4M3, SWA_Q8), types_of(SWA_Q8_32, 0) };
    const swa_window w[3] = { swa_window_sliding(7), swa_window_sinks(5, 3), swa_window_chunked(16) };
    const swa_shape shapes[4] = { shape_of(4, 2, 16, 16), shape_of(6, 1, 24, 9), shape_of(3, 3, 5, 8),
                                  shape_of(8, 4, 8, 8) };
    for (int type = 0; type < TYPES; type++)
        for (int period = 1; period <= 4; period++) {
            rig *r = (rig *)t_alloc(sizeof *r);
            memset(r, 0, sizeof *r);
            r->d.isa = isa;
            if (period % 2 == type % 2) { /* types differ, in a period of their own */
                r->d.types = mixed + type % 4;
                r->d.n_types = 2 + type % 4;
            } else {
                r->d.k_type = types[type];
                r->d.v_type = types[(type + period) % TYPES];
            }
            r->d.n_layers = LAYERS;
            r->d.shapes = shapes;
            r->d.n_shapes = period;
            r->d.windows = w;
            r->d.n_windows = 3;
            r->d.capacity = period == 2 ? 21 : 0;
            r->d.audit = period == 3 && r->d.n_types != 5; /* of which neither repeats in the other */
            for (int l = 0; l < LAYERS; l++) {
                r->kv[l] = l;
                r->shape[l] = shapes[l % period];
            }
            r->room = 1;
            if (open_rig(r)) history(r, 40, MOST);
        }
}
/* A tail, or V in K, in some layers only; causal layers among them (Gemma 4's 5:1 and its two head sizes). */
TEST(local_and_global_layers) {
    const swa_window near = swa_window_sliding(8), w[6] = { near, near, near, near, near, swa_window_causal() };
    const swa_shape local = shape_of(8, 4, 16, 16), global = shape_of(8, 2, 24, 24);
    const swa_shape shapes[6] = { local, local, local, local, local, global };
    rig *r = (rig *)t_alloc(sizeof *r);
    memset(r, 0, sizeof *r);
    r->d.n_layers = LAYERS;
    r->d.shapes = shapes;
    r->d.n_shapes = r->d.n_windows = 6;
    r->d.windows = w;
    r->d.max_context = 512;
    for (int l = 0; l < LAYERS; l++) {
        r->kv[l] = l;
        r->shape[l] = shapes[l];
    }
    r->room = 1;
    if (open_rig(r)) history(r, 120, MOST);
}
/* Scratch has to do for the layer that needs most, wherever it stands; and for what alignment takes of it. */
TEST(scratch_of_layers_of_different_shapes) {
    const swa_window w = swa_window_sliding(9);
    const swa_shape shapes[2] = { shape_of(2, 1, 4, 4), shape_of(2, 1, 256, 256) };
    swa_cache_desc d, small;
    swa_cache kv;
    swa_attn a;
    size_t one, part;
    memset(&d, 0, sizeof d);
    d.windows = &w;
    d.n_windows = 1;
    d.n_layers = 2;
    d.shapes = shapes;
    d.n_shapes = 2;
    small = d;
    small.n_shapes = 1;
    REQUIRE(t_cache_new(&kv, &d, 1));
    one = swa_cache_scratch_bytes(&small, 1);
    REQUIRE(one > 63 && one < swa_cache_scratch_bytes(&d, 1));
    CHECK_STATUS(swa_cache_set_scratch(&kv, t_alloc(one), one), SWA_ERR_MEMORY);
    REQUIRE(t_cache_new(&kv, &small, 1));
    part = one - 63; /* two of them fit, but not behind the next multiple of 64 */
    CHECK_OK(swa_cache_set_scratch(&kv, (unsigned char *)t_alloc(2 * part + 33) + 1, 2 * part + 32));
    memset(&a, 0, sizeof a);
    a.q.p = t_random(8, 1.0f);
    a.k.p = t_random(4, 1.0f);
    a.v.p = t_random(4, 1.0f);
    a.out.p = t_floats(8);
    CHECK_OK(swa_step_one(&kv, 0, 0, 1));
    CHECK_STATUS(swa_attend_part(&kv, 0, &a, 0, 0, 2), SWA_ERR_MEMORY);
    CHECK_OK(swa_attend_part(&kv, 0, &a, 0, 0, 1));
}
TEST(shapes_that_are_refused) {
    const swa_window w = swa_window_sliding(8);
    const swa_shape good[2] = { shape_of(4, 2, 16, 16), shape_of(2, 2, 8, 8) };
    const swa_shape bad[2] = { good[0], shape_of(4, 3, 16, 16) };
    const swa_shape none = shape_of(0, 0, 0, 0);
    swa_cache_desc d;
    size_t both, one, other;
    memset(&d, 0, sizeof d);
    d.windows = &w;
    d.n_windows = 1;
    d.n_layers = 1;
    d.shape = good[0];
    one = swa_cache_bytes(&d);
    d.shape = good[1];
    other = swa_cache_bytes(&d);
    d.shape = none;
    CHECK_INT(swa_cache_bytes(&d), 0); /* forgotten */
    d.n_layers = 2;
    d.shapes = good;
    CHECK_INT(swa_cache_bytes(&d), 0); /* how many? */
    d.n_shapes = 2;
    both = swa_cache_bytes(&d);
    CHECK(both > 0 && both < one + other);
    d.shape = good[0];
    CHECK_INT(swa_cache_bytes(&d), 0); /* said twice */
    d.shape = none;
    d.shapes = bad;
    CHECK_INT(swa_cache_bytes(&d), 0);
    CHECK_INT(swa_cache_scratch_bytes(&d, 1), 0);
    d.shapes = NULL;
    CHECK_INT(swa_cache_bytes(&d), 0);
    d.shapes = good;
    d.n_shapes = -1;
    CHECK_INT(swa_cache_bytes(&d), 0);
}
TEST(types_that_are_refused) {
    const swa_window w = swa_window_sliding(8);
    const swa_types mixed[2] = { types_of(0, SWA_F16), types_of(SWA_Q8, SWA_F16) };
    const swa_types turned[2] = { mixed[1], mixed[0] }, bad[2] = { mixed[0], types_of(SWA_F16, 99) };
    const int shared[2] = { 0, 0 };
    unsigned char blob[65536];
    swa_cache_desc d, same;
    swa_cache kv, other;
    size_t one, two, n;
    memset(&d, 0, sizeof d);
    d.windows = &w;
    d.n_windows = 1;
    d.n_layers = 2;
    d.shape = shape_of(4, 2, 16, 16);
    d.v_type = SWA_F16;
    one = swa_cache_bytes(&d);
    d.k_type = SWA_Q8;
    two = swa_cache_bytes(&d);
    d.types = mixed;
    d.n_types = 2;
    CHECK_INT(swa_cache_bytes(&d), 0); /* said twice */
    d.k_type = SWA_F32;
    CHECK_INT(swa_cache_bytes(&d), 0);
    d.v_type = (swa_type)0;
    d.k_type = (swa_type)0;
    d.tail_type = SWA_F32;
    CHECK_INT(swa_cache_bytes(&d), 0);
    d.tail_type = (swa_type)0;
    CHECK(swa_cache_bytes(&d) < one && swa_cache_bytes(&d) > two);
    same = d;
    d.types = NULL;
    CHECK_INT(swa_cache_bytes(&d), 0);
    d.types = mixed;
    d.n_types = 0;
    CHECK_INT(swa_cache_bytes(&d), 0);
    d.n_types = -1;
    CHECK_INT(swa_cache_bytes(&d), 0);
    d.types = bad;
    d.n_types = 2;
    CHECK_INT(swa_cache_bytes(&d), 0);
    d.n_layers = 1;
    CHECK_INT(swa_cache_bytes(&d), 0); /* also where no layer has it */
    d = same;
    d.kv_layer = shared;
    CHECK_INT(swa_cache_bytes(&d), 0); /* rows cannot be of two types */
    d.n_types = 1;
    CHECK(swa_cache_bytes(&d) > 0);
    /* a blob is of the types that it says, layer by layer */
    REQUIRE(t_cache_new(&kv, &same, 1));
    n = swa_cache_save_bytes(&kv, 0);
    REQUIRE(n > 0 && n <= sizeof blob);
    CHECK_OK(swa_cache_save(&kv, 0, blob, n));
    same.types = turned;
    REQUIRE(t_cache_new(&other, &same, 1));
    CHECK_STATUS(swa_cache_load(&other, 0, blob, n), SWA_ERR_BLOB);
    CHECK_OK(swa_cache_load(&kv, 0, blob, n));
    CHECK_STATUS(swa_cache_copy(&other, 0, &kv, 0, -1), SWA_ERR_ARG);
}

/* ---- layers that read another layer's rows ---- */

static const int reads[LAYERS] = { 0, 1, 0, 1, 4, 1 }; /* 2 reads 0; 3 and 5 read 1 */

static void share(rig *r, int isa, const swa_window *w, swa_shape *shapes) {
    memset(r, 0, sizeof *r);
    r->d.isa = isa;
    r->d.n_layers = LAYERS;
    r->d.windows = w;
    r->d.n_windows = LAYERS;
    r->d.kv_layer = reads;
    r->d.shapes = shapes;
    r->d.n_shapes = LAYERS;
    for (int l = 0; l < LAYERS; l++) {
        shapes[l] = reads[l] == 0 ? shape_of(4, 2, 16, 16) : shape_of(6, 3, 8, 12);
        if (l > 2) shapes[l].n_heads *= 2; /* a reader may have other query heads */
        r->shape[l] = shapes[l];
        r->kv[l] = reads[l];
    }
}
TEST_EACH_ISA(layers_that_share_rows) {
    const swa_window all[2][LAYERS] = { { swa_window_sliding(9), swa_window_sinks(6, 3), swa_window_sliding(5),
                                          swa_window_sinks(6, 3), swa_window_causal(), swa_window_sinks(2, 3) },
                                        { swa_window_chunked(8), swa_window_causal(), swa_window_sliding(8),
                                          swa_window_sliding(11), swa_window_sliding(3), swa_window_causal() } };
    for (int i = 0; i < 4 * TYPES; i++) {
        swa_shape shapes[LAYERS];
        swa_types mixed[LAYERS];
        rig *r = (rig *)t_alloc(sizeof *r);
        if (t_leave(isa, i, i / 4, 2)) continue;
        share(r, isa, all[i % 2], shapes);
        r->d.max_context = 512;
        for (int l = 0; l < LAYERS; l++) mixed[l] = types_of((int)types[(i / 4 + reads[l]) % TYPES], (int)types[i / 4]);
        if (i % 2) r->d.types = mixed;
        else r->d.k_type = types[i / 4];
        r->d.n_types = i % 2 ? LAYERS : 0;
        r->d.max_rollback = i / 2 % 2 ? 12 : 0; /* then whole chunks fit behind the window */
        r->d.audit = i % 3 == 0;
        r->room = r->d.max_rollback ? 12 : 1;
        if (open_rig(r)) history(r, 40, i % 4 ? 12 : MOST);
    }
}
/* The rows are there once; a layer more that reads them costs its entry in the tables. */
TEST(shared_rows_are_stored_once) {
    const swa_window w = swa_window_sliding(64);
    const int one[3] = { 0, 0, 0 };
    swa_cache_desc d;
    size_t rows_once, rows_twice;
    memset(&d, 0, sizeof d);
    d.windows = &w;
    d.n_windows = 1;
    d.shape = shape_of(8, 2, 64, 64);
    d.n_layers = 1;
    rows_once = swa_cache_bytes(&d);
    d.n_layers = 3;
    rows_twice = swa_cache_bytes(&d);
    d.kv_layer = one;
    CHECK(swa_cache_bytes(&d) < rows_once + 1024);
    CHECK(rows_twice > 2 * rows_once);
}
/* What a reader must not do is refused: to come before the rows, after too many, to store what is stored. */
TEST(readers_out_of_order) {
    const swa_window w = swa_window_sliding(9); /* 16 slots */
    const int later[2] = { 1, 1 };
    swa_cache_desc d;
    swa_cache kv;
    swa_attn a, q;
    rows *x = (rows *)t_alloc(sizeof *x);
    memset(&d, 0, sizeof d);
    memset(x, 0, sizeof *x);
    d.windows = &w;
    d.n_windows = 1;
    d.n_layers = 2;
    d.shape = shape_of(2, 1, 4, 4);
    d.kv_layer = later; /* layer 0 reads what layer 1 has: any order of calls */
    REQUIRE(t_cache_new(&kv, &d, 1));
    a = attn_of(x, x->out, SWA_ATTEND);
    q = attn_of(x, x->out, SWA_ATTEND_STORED);
    CHECK_OK(swa_step_one(&kv, 0, 0, 8));
    CHECK_INT(swa_cache_unstored(&kv, 0), 1);            /* whose rows they are */
    CHECK_STATUS(swa_attend(&kv, 0, &q), SWA_ERR_ORDER); /* not there yet */
    CHECK_OK(swa_attend(&kv, 1, &a));
    CHECK_OK(swa_attend(&kv, 0, &q));
    CHECK_STATUS(swa_attend(&kv, 0, &a), SWA_ERR_ORDER); /* there already */
    CHECK(strstr(swa_attend_explain(&kv, 0, &a), "reads another's rows") != NULL);
    CHECK(strstr(swa_attend_explain(&kv, 1, &a), "already") != NULL);
    a.mode = SWA_STORE_ONLY;
    CHECK_STATUS(swa_attend(&kv, 0, &a), SWA_ERR_ORDER);
    a.mode = SWA_ATTEND;
    CHECK_OK(swa_step_one(&kv, 0, 8, 9)); /* one more than 16 - (W-1) */
    CHECK_OK(swa_attend(&kv, 1, &a));
    CHECK_STATUS(swa_attend(&kv, 0, &q), SWA_ERR_CAPACITY);
    CHECK_OK(swa_step_one(&kv, 0, 17, 8)); /* each is given the rows, and the last one stores them */
    a.mode = SWA_ATTEND_NO_STORE;
    CHECK_OK(swa_attend(&kv, 1, &a));
    CHECK_STATUS(swa_step_one(&kv, 0, 25, 1), SWA_ERR_ORDER); /* nobody has */
    CHECK_STATUS(swa_attend(&kv, 0, &a), SWA_ERR_ORDER);      /* which ended the step: */
    CHECK_OK(swa_step_one(&kv, 0, 17, 8));                    /* once more */
    CHECK_OK(swa_attend(&kv, 1, &a));
    a.mode = SWA_ATTEND;
    CHECK_OK(swa_attend(&kv, 0, &a));
    CHECK_STATUS(swa_attend(&kv, 1, &a), SWA_ERR_ORDER);
    CHECK_OK(swa_step_one(&kv, 0, 25, 1));
}
TEST(sharing_that_is_refused) {
    const swa_window w[3] = { swa_window_sliding(9), swa_window_sliding(10), swa_window_sinks(9, 1) };
    const swa_shape shapes[2] = { shape_of(2, 1, 4, 4), shape_of(4, 1, 4, 5) };
    const int good[2] = { 0, 0 }, low[2] = { 0, -1 }, high[2] = { 2, 1 }, circle[2] = { 1, 0 }, chain[3] = { 0, 0, 1 };
    swa_cache_desc d, same;
    memset(&d, 0, sizeof d);
    d.windows = w;
    d.n_windows = 1;
    d.n_layers = 2;
    d.shape = shapes[0];
    d.kv_layer = good;
    same = d;
    CHECK(swa_cache_bytes(&d) > 0 && swa_cache_scratch_bytes(&d, 2) > 0);
    d.kv_layer = low;
    CHECK_INT(swa_cache_bytes(&d), 0);
    d.kv_layer = high;
    CHECK_INT(swa_cache_bytes(&d), 0);
    d.kv_layer = circle;
    CHECK_INT(swa_cache_bytes(&d), 0);
    d.kv_layer = chain;
    d.n_layers = 3;
    CHECK_INT(swa_cache_bytes(&d), 0); /* 1 has no rows of its own */
    d = same;
    d.n_windows = 2;
    CHECK_INT(swa_cache_bytes(&d), 0); /* a reader that looks further back than rows are kept */
    d.windows = w + 1;
    CHECK_INT(swa_cache_bytes(&d), 0); /* other sinks */
    d = same;
    memset(&d.shape, 0, sizeof d.shape);
    d.shapes = shapes;
    d.n_shapes = 2;
    CHECK_INT(swa_cache_bytes(&d), 0); /* other rows */
    { /* what is wrong with the owner keeps its own status, though its reader comes first */
        const swa_window right[2] = { swa_window_sliding(9), swa_window_symmetric(9) };
        const int later[2] = { 1, 1 };
        swa_cache kv;
        d = same;
        d.windows = right;
        d.n_windows = 2;
        d.kv_layer = later;
        CHECK_STATUS(swa_cache_init(&kv, &d, t_alloc(64), SIZE_MAX), SWA_ERR_UNSUPPORTED);
    }
}
