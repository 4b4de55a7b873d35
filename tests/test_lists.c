/* Lists of keys: against a loop over the list in double, and to the bit against the call without one. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "attend.h"

/* ---- lists ---- */

/* n positions [start, start + n) as blocks, for each token and KV head: some of them, in any order, some twice, with
   entries that name nothing between them. */
static void make_lists(const at_case *c, at_data *d, int n, int sorted) {
    const int per = c->pick_block ? c->pick_block : 1;
    const int64_t first = c->start / per, last = (c->start + c->n - 1) / per;
    d->pick = (int32_t *)t_alloc((size_t)(c->n * c->shape.n_kv_heads * n) * sizeof(int32_t) + 4);
    for (int i = 0; i < c->n * c->shape.n_kv_heads * n; i++) {
        const int what = t_int(0, 9);
        d->pick[i] = (int32_t)(what == 0   ? -t_int(1, 1000)
                               : what == 1 ? t_int((int)last, (int)last + 3)
                                           : t_int((int)first, (int)last));
        if (what == 2 && i % n) d->pick[i] = d->pick[i - 1];
    }
    for (int i = 0; sorted && i < c->n * c->shape.n_kv_heads; i++)
        for (int a = 1; a < n; a++)
            for (int b = a; b > 0 && d->pick[i * n + b] < d->pick[i * n + b - 1]; b--) {
                int32_t x = d->pick[i * n + b];
                d->pick[i * n + b] = d->pick[i * n + b - 1];
                d->pick[i * n + b - 1] = x;
            }
}
static void shuffle_lists(const at_case *c, at_data *d) {
    for (int i = 0; i < c->n * c->shape.n_kv_heads; i++)
        for (int a = c->pick_n - 1; a > 0; a--) {
            const int b = t_int(0, a);
            int32_t *list = d->pick + i * c->pick_n, x = list[a];
            list[a] = list[b];
            list[b] = x;
        }
}
/* Every block of positions that there is, for everyone. */
static void list_all(at_case *c, at_data *d) {
    const int per = c->pick_block ? c->pick_block : 1;
    const int64_t first = c->start / per, last = (c->start + c->n - 1) / per;
    c->pick_n = (int)(last - first) + 1;
    d->pick = (int32_t *)t_alloc((size_t)(c->n * c->shape.n_kv_heads * c->pick_n) * sizeof(int32_t));
    for (int i = 0; i < c->n * c->shape.n_kv_heads * c->pick_n; i++) d->pick[i] = (int32_t)(first + i % c->pick_n);
    shuffle_lists(c, d);
}

/* ---- the oracle ---- */

static int listed(const at_case *c, const at_data *d, int64_t i, int kv, int64_t k) {
    const int64_t per = c->pick_block ? c->pick_block : 1;
    const int32_t *list = d->pick + (i * c->shape.n_kv_heads + kv) * c->pick_n;
    for (int j = 0; j < c->pick_n; j++)
        if (list[j] >= 0 && k >= list[j] * per && k < (list[j] + 1) * per) return 1;
    return 0;
}
/* near: what is seen without being listed. */
static void lists_oracle(const at_case *c, const at_data *s, const or_window *near, double *out) {
    const int heads = c->shape.n_heads, group = heads / c->shape.n_kv_heads;
    unsigned char *absent = (unsigned char *)t_alloc((size_t)c->n);
    double *room = t_doubles((size_t)c->n), lse;
    or_case o = at_oracle_case(c, s);
    o.absent = absent;
    for (int64_t i = 0; i < c->n; i++)
        for (int h = 0; h < heads; h++) {
            for (int64_t j = 0; j < c->n && h % group == 0; j++) { /* a group's heads see the same */
                const int64_t q = c->start + i, k = c->start + j;
                absent[j] =
                    !((near && or_near(near, q, k)) || (k < c->sees.pinned && k <= q) || listed(c, s, i, h / group, k))
                    || (c->absent && c->absent[j]);
            }
            or_row(&o, i, h, room, out + (i * heads + h) * o.dv, &lse);
        }
}

/* ---- cases ---- */

static swa_window near_window;
static or_window near_oracle;

/* 0, 1: GQA; 2: one row per head; 3: latents; 4: few dims, tails. */
static at_case some_case(int kind, const or_window **near) {
    const int n = t_int(1, 8) == 1 && kind != 3 ? t_int(500, 700) : t_int(20, 300); /* 3 has the most work */
    at_case c = kind == 0 ? at_new(16, 1, 64, 64, n)
              : kind == 1 ? at_new(12, 2, 32, 48, n)
              : kind == 2 ? at_new(2, 2, 19, 5, n)
              : kind == 3 ? at_new(33, 1, 64, 64, n)
                          : at_new(6, 3, 24, 16, n);
    static const int per[] = { 0, 1, 4, 16, 64, 128, 2, 32 };
    at_vary(&c, kind);
    c.start = t_int(0, 2) ? t_int(0, 700) : 0;
    c.pick_block = per[t_int(0, 7)];
    c.pick_n = t_int(1, c.pick_block > 4 ? 6 : 40);
    if (t_int(0, 3) == 0) {
        at_pinned(&c, t_int(20, 200), t_int(1, 6));
        c.start = t_int(0, 3);
        c.q_sink = t_int(0, 1);
    } else if (t_int(0, 3) == 0) at_sliding(&c, t_int(10, 300));
    else if (t_int(0, 4) == 0) at_chunked(&c, t_int(50, 400));
    *near = NULL;
    if (t_int(0, 1)) {
        const int64_t W = t_int(1, 40);
        near_window = swa_window_sliding(W);
        near_oracle = or_sliding(W);
        c.pick_window = &near_window;
        *near = &near_oracle;
    }
    return c;
}
static int compare(const float *got, const double *want, size_t n, double tolerance) {
    int bad = 0;
    for (size_t i = 0; i < n; i++) bad += !t_near((double)got[i], want[i], tolerance);
    return CHECK_INT(bad, 0);
}

/* q in int8 is rounded by up to 1/254 of its largest number. */
static double tolerance_of(const at_case *c) { return c->compute == SWA_Q8 ? 5e-2 : 2e-4; }

typedef int (*way)(const at_case *, const at_data *, const at_how *, float *, float *);
static void same_bits(way run, const at_case *c, const at_data *d, const at_how *how, const float *out, size_t n) {
    float *again = t_floats(n);
    if (run(c, d, how, again, NULL)) CHECK_BITS(again, out, (int)n);
}

TEST_EACH_ISA(lists_against_the_definition) {
    for (int i = 0; i < (t_thin(isa) ? 5 : 15); i++) {
        const t_block *mark = t_.blocks;
        const or_window *near;
        at_case c = some_case(i % 5, &near);
        at_data d, s;
        const size_t n = (size_t)c.n * at_o_row(&c);
        float *out = t_floats(n);
        double *want = t_doubles(n);
        at_how how;
        memset(&how, 0, sizeof how);
        t_label("case %d", i);
        if (i % 10 == 1) { /* 6 rows to a KV head, integers, scores that nothing but q's scale touches */
            c.k_type = c.compute = SWA_Q8;
            c.softcap = 0.0f;
            c.alibi = c.bias = c.q_sink = 0;
        }
        d = at_make(&c);
        make_lists(&c, &d, c.pick_n, i % 7 == 0);
        s = at_stored_by(&c, &d, isa);
        lists_oracle(&c, &s, near, want);
        how.isa = isa;
        how.k_rows = t_int(0, 1);
        if (at_ring(&c, &d, &how, out, NULL)) compare(out, want, n, tolerance_of(&c));
        how.chunk = t_int(1, 2) == 1 ? t_int(1, 30) : t_int(30, 200);
        how.k_rows = t_int(0, 1);
        how.parts = t_int(0, 4);
        how.others = t_int(0, 2);
        how.layout = t_int(0, 2);
        how.audit = 1;
        if (t_int(0, 1)) shuffle_lists(&c, &d);
        if (t_int(0, 2) == 0 && c.sees.left < OR_FAR) how.capacity = c.sees.left + 1 + t_int(0, 40);
        same_bits(at_ring, &c, &d, &how, out, n);
        how.isa = t_other(isa);
        how.put_first = c.sees.left >= OR_FAR && !c.sees.chunk;
        same_bits(at_ring, &c, &d, &how, out, n);
        t_free_to(mark);
    }
}
TEST_EACH_ISA(lists_over_rows) {
    for (int i = 0; i < (t_thin(isa) ? 5 : 15); i++) {
        const t_block *mark = t_.blocks;
        const or_window *near;
        at_case c = some_case(i % 5, &near);
        at_data d, s;
        const size_t n = (size_t)c.n * at_o_row(&c);
        float *out = t_floats(n);
        double *want = t_doubles(n);
        unsigned char *absent = (unsigned char *)t_alloc((size_t)c.n);
        at_how how;
        memset(&how, 0, sizeof how);
        t_label("case %d", i);
        d = at_make(&c);
        make_lists(&c, &d, c.pick_n, 0);
        s = at_stored_by(&c, &d, isa);
        s.pick = d.pick;
        how.isa = isa;
        how.cuts = t_int(0, 9);
        for (int j = 0; j < c.n; j++) absent[j] = (unsigned char)((j ^ i) % 61 < 5);
        if (i % 2) c.absent = absent;
        lists_oracle(&c, &s, near, want);
        if (at_rows(&c, &s, &how, out, NULL)) compare(out, want, n, 2e-4);
        how.cuts = c.absent ? 0 : t_int(0, 30);
        how.chunk = t_int(1, 100);
        how.parts = t_int(0, 5);
        how.layout = t_int(0, 2);
        shuffle_lists(&c, &s);
        same_bits(at_rows, &c, &s, &how, out, n);
        how.isa = t_other(isa);
        same_bits(at_rows, &c, &s, &how, out, n);
        t_free_to(mark);
    }
}
/* A list of everything is no list; a list of the window is the window. */
TEST_EACH_ISA(lists_of_all_keys) {
    for (int i = 0; i < (t_thin(isa) ? 5 : 15); i++) {
        const t_block *mark = t_.blocks;
        const or_window *near;
        at_case c = some_case(i % 5, &near);
        at_data d = at_make(&c);
        const size_t n = (size_t)c.n * at_o_row(&c), rows = (size_t)(c.n * c.shape.n_heads);
        float *out = t_floats(n), *again = t_floats(n), *lse = t_floats(rows), *lse2 = t_floats(rows);
        at_how how = at_on(t_other(isa));
        t_label("case %d", i);
        c.pick_window = NULL;
        if (i % 4 == 1) c.span = c.n < 30 ? c.n : 30; /* keys after the query, which the list names too */
        if (!at_ring(&c, &d, &how, out, lse)) continue;
        how.isa = isa;
        list_all(&c, &d);
        if (t_int(0, 2) == 0) c.pick_window = &near_window, near_window = swa_window_sliding(t_int(1, 99));
        how.k_rows = t_int(0, 1);
        how.chunk = t_int(1, c.n);
        how.parts = t_int(0, 3);
        if (!at_ring(&c, &d, &how, again, lse2)) continue;
        CHECK_BITS(again, out, (int)n);
        CHECK_BITS(lse2, lse, (int)rows);
        t_free_to(mark);
    }
}
/* More keys than are gathered at once, so that rows are fetched ahead: latents whose tail lies behind them. */
TEST_EACH_ISA(lists_of_latents_in_batches) {
    for (int i = 0; i < 2; i++) {
        at_case c = at_new(3, 1, 64, 64, 600);
        const size_t n = (size_t)c.n * at_o_row(&c);
        float *out = t_floats(n);
        at_how how = at_on(t_other(isa));
        at_data d;
        how.chunk = 300;
        c.shape.tail_dim = 32;
        c.shape.v_in_k = 1;
        c.k_type = c.tail_type = i ? SWA_BF16 : SWA_F32;
        c.v_type = SWA_TYPE_DEFAULT;
        c.window = swa_window_causal();
        c.sees = or_causal();
        d = at_make(&c);
        t_label("case %d", i);
        if (!at_ring(&c, &d, &how, out, NULL)) continue;
        how.isa = isa;
        how.k_rows = 1;
        list_all(&c, &d);
        same_bits(at_ring, &c, &d, &how, out, n);
    }
}
TEST_EACH_ISA(lists_that_are_a_window) {
    for (int i = 0; i < (t_thin(isa) ? 5 : 10); i++) {
        const t_block *mark = t_.blocks;
        const or_window *near;
        at_case c = some_case(i % 5, &near), window;
        at_data d;
        const int W = t_int(1, 60);
        const size_t n = (size_t)c.n * at_o_row(&c);
        float *out = t_floats(n);
        at_how how = at_on(isa);
        c.q_sink = 0;
        c.window = swa_window_causal();
        c.sees = or_causal();
        window = c;
        at_sliding(&window, W);
        d = at_make(&c);
        if (!at_ring(&window, &d, &how, out, NULL)) continue;
        c.pick_block = 1;
        c.pick_n = W;
        c.pick_window = NULL;
        d.pick = (int32_t *)t_alloc((size_t)(c.n * c.shape.n_kv_heads * W) * sizeof(int32_t));
        for (int t = 0; t < c.n * c.shape.n_kv_heads; t++)
            for (int j = 0; j < W; j++) d.pick[t * W + j] = (int32_t)(c.start + t / c.shape.n_kv_heads - j);
        how.chunk = t_int(1, c.n);
        how.k_rows = i % 2;
        same_bits(at_ring, &c, &d, &how, out, n);
        /* and the same as a window beside an empty list */
        near_window = swa_window_sliding(W);
        c.pick_window = &near_window;
        for (int t = 0; t < c.n * c.shape.n_kv_heads * W; t++) d.pick[t] = -1;
        same_bits(at_ring, &c, &d, &how, out, n);
        t_free_to(mark);
    }
}
/* A list of all keys where sinks end within a tile that is taken as it lies in the ring: they have their own q, the
   window's keys in that tile have not. */
TEST_EACH_ISA(lists_with_sinks_in_a_tile) {
    for (int n_sink = 3; n_sink <= 21; n_sink += 6) {
        const t_block *mark = t_.blocks;
        at_case c = at_new(6, 2, 24, 16, 60);
        const size_t n = (size_t)c.n * at_o_row(&c);
        float *out = t_floats(n);
        at_how how = at_on(isa);
        at_data d;
        how.chunk = 5;
        at_pinned(&c, 24, n_sink);
        c.q_sink = 1;
        d = at_make(&c);
        if (!at_ring(&c, &d, &how, out, NULL)) continue;
        c.pick_block = 4;
        c.pick_n = 15;
        d.pick = (int32_t *)t_alloc((size_t)(c.n * c.shape.n_kv_heads * c.pick_n) * sizeof(int32_t));
        for (int i = 0; i < c.n * c.shape.n_kv_heads * c.pick_n; i++) d.pick[i] = i % c.pick_n;
        for (how.chunk = 1; how.chunk <= 9; how.chunk += 4) same_bits(at_ring, &c, &d, &how, out, n);
        t_free_to(mark);
    }
}
/* Many query heads over one KV head, and fewer tokens than parts: the rows that share a list are dealt out. */
TEST_EACH_ISA(lists_of_few_tokens_in_parts) {
    at_case c = at_new(128, 1, 24, 16, 40);
    const size_t n = (size_t)c.n * at_o_row(&c);
    float *out = t_floats(n);
    at_data d = at_make(&c);
    at_how how = at_on(t_other(isa));
    c.pick_n = 30;
    make_lists(&c, &d, c.pick_n, 0);
    if (!at_ring(&c, &d, &how, out, NULL)) return;
    how.isa = isa;
    how.chunk = 2;
    for (how.parts = 3; how.parts <= 8; how.parts += 5) same_bits(at_ring, &c, &d, &how, out, n);
}
/* Every row of out is written whole by one part of one phase, whatever their number, with lists and without; no part
   has all of them, nor twice its share where there is enough to share out. */
TEST(parts_share_out_the_rows) {
    static const int tokens[] = { 1, 3, 70 };
    for (int i = 0; i < 12; i++) {
        const t_block *mark = t_.blocks;
        at_case c = i < 6 ? at_new(12, 2, 16, 16, 600) : at_new(40, 1, 16, 16, 600);
        const int n = tokens[i % 3], rows = n * c.shape.n_heads, dim = c.shape.v_dim;
        at_data d = at_make(&c);
        at_how how = at_on(SWA_ISA_BEST);
        float *whole = t_floats((size_t)(rows * dim)), *out = t_floats((size_t)(rows * dim));
        unsigned char *done = (unsigned char *)t_alloc((size_t)rows);
        swa_kv kv[AT_SEGMENTS];
        swa_rows r;
        swa_attn a;
        memset(&r, 0, sizeof r);
        memset(&a, 0, sizeof a);
        r.shape = c.shape;
        r.window = c.window;
        r.kv = kv;
        r.n_kv = at_segments(&c, &d, &how, kv);
        r.pos = c.n - n;
        r.n_tokens = n;
        r.scratch_bytes = swa_attention_bytes(&r, 13);
        r.scratch = t_alloc(r.scratch_bytes);
        a.q.p = d.q + (size_t)r.pos * at_q_row(&c);
        a.out.p = whole;
        if (i / 3 % 2) {
            c.pick_n = 30;
            make_lists(&c, &d, c.pick_n, 0);
            a.pick = d.pick + (size_t)(r.pos * c.shape.n_kv_heads * c.pick_n);
            a.pick_n = c.pick_n;
            a.pick_head = c.pick_n;
            a.pick_token = c.shape.n_kv_heads * c.pick_n;
        }
        REQUIRE_OK(swa_attention(&r, &a));
        a.out.p = out;
        for (int parts = 1; parts <= 13; parts += 2) {
            int wrong = 0, most = 0;
            t_label("case %d, %d parts", i, parts);
            memset(done, 0, (size_t)rows);
            for (int call = 0; call < SWA_PHASES * parts; call++) {
                int own = 0;
                memset(out, 0xFF, (size_t)(rows * dim) * sizeof *out); /* NaN */
                REQUIRE_OK(swa_attention_part(&r, &a, call / parts, call % parts, parts));
                for (int j = 0; j < rows; j++) {
                    int there = 0;
                    for (int x = 0; x < dim; x++) there += out[j * dim + x] == out[j * dim + x];
                    if (there == 0) continue;
                    done[j]++;
                    own++;
                    wrong += memcmp(out + j * dim, whole + j * dim, (size_t)dim * sizeof *out) != 0;
                }
                if (own > most) most = own;
            }
            for (int j = 0; j < rows; j++) wrong += done[j] != 1;
            CHECK_INT(wrong, 0);
            if (n > 3) CHECK(most * parts <= 2 * rows);
            if (n == 3 && parts > 1) CHECK(most * 2 <= rows);
            if (parts > 1) CHECK(most < rows);
        }
        t_free_to(mark);
    }
}
/* Lists of one block each, merged in order of position: the bits of the list of all. */
TEST(lists_split_and_merged) {
    for (int i = 0; i < 6; i++) {
        const t_block *mark = t_.blocks;
        enum { MOST = 8 };
        at_case c = i % 2 ? at_new(12, 2, 32, 48, 700) : at_new(33, 1, 64, 64, 700);
        at_data d, s;
        at_how how;
        swa_kv kv[AT_SEGMENTS];
        swa_rows r;
        const int per[] = { 1, 4, 64 };
        float *outs[MOST], *stats[MOST], *whole = t_floats(at_o_row(&c)), *merged = t_floats(at_o_row(&c));
        const float *co[MOST], *cs[MOST];
        int32_t part[64];
        int n = 0;
        memset(&how, 0, sizeof how);
        c.start = 37 * i;
        c.pick_block = per[i % 3];
        c.pick_n = 20;
        d = at_make(&c);
        make_lists(&c, &d, c.pick_n, 0);
        s = at_stored(&c, &d);
        memset(&r, 0, sizeof r);
        r.shape = c.shape;
        r.window = c.window;
        r.kv = kv;
        r.n_kv = at_segments(&c, &s, &how, kv);
        r.pos = c.start + c.n - 1;
        r.n_tokens = 1;
        r.scratch_bytes = swa_attention_bytes(&r, 1);
        r.scratch = t_alloc(r.scratch_bytes);
        for (int64_t b = -1; b < (c.start + c.n + 255) / 256 && n < MOST; b++) {
            swa_attn a;
            memset(&a, 0, sizeof a);
            a.q.p = s.q + (size_t)(c.n - 1) * at_q_row(&c);
            a.scale = 0.2f;
            a.pick = d.pick;
            a.pick_n = c.pick_n;
            a.pick_block = c.pick_block;
            a.out.p = whole;
            if (b >= 0) {
                a.out.p = outs[n] = t_floats(at_o_row(&c));
                a.stat = stats[n] = t_floats((size_t)c.shape.n_heads * 2);
                for (int j = 0; j < c.pick_n; j++)
                    part[j] = (int64_t)d.pick[j] * c.pick_block / 256 == b && d.pick[j] >= 0 ? d.pick[j] : -1;
                a.pick = part;
                co[n] = outs[n];
                cs[n] = stats[n];
                n++;
            }
            CHECK_OK(swa_attention(&r, &a));
        }
        CHECK_OK(swa_merge(co, cs, n, 1, c.shape.n_heads, c.shape.v_dim, NULL, merged, NULL));
        CHECK_BITS(merged, whole, (int)at_o_row(&c));
        t_free_to(mark);
    }
}
/* Keys that lie far apart, beyond what is sorted at a time, up to the last numbers that a list can hold. */
TEST(lists_of_far_positions) {
    enum { SEGMENTS = 9, ROWS = 40, DK = 32, HEADS = 5 };
    static const int64_t at[SEGMENTS] = { 0, 300, 32760, 33000, 65530, 1000000, 40000000, 2147483000, 2147483600 };
    for (int i = 0; i < 8; i++) {
        const t_block *mark = t_.blocks;
        const int64_t per = i < 4 ? 1 : 64;
        float *k = t_random(SEGMENTS * ROWS * DK, 1.0f), *v = t_random(SEGMENTS * ROWS * DK, 1.0f);
        float *q = t_random(HEADS * DK, 3.0f), *want = t_floats(HEADS * DK), *out = t_floats(HEADS * DK);
        int32_t *pick = (int32_t *)t_alloc(SEGMENTS * ROWS * sizeof *pick);
        swa_kv some[SEGMENTS], all[SEGMENTS];
        swa_rows r;
        swa_attn a;
        int n = 0, n_some = 0;
        memset(&a, 0, sizeof a);
        memset(all, 0, sizeof all);
        for (int s = 0; s < SEGMENTS; s++) {
            all[s].k = k + s * ROWS * DK;
            all[s].v = v + s * ROWS * DK;
            all[s].pos = at[s] * per;
            all[s].n = ROWS;
            if (!t_int(0, 2)) continue; /* the others are in no list */
            some[n_some++] = all[s];
            for (int64_t j = 0; j < (per == 1 ? ROWS : 1); j++) pick[n++] = (int32_t)(at[s] + j);
        }
        for (int j = n - 1; j > 0; j--) {
            const int x = t_int(0, j);
            const int32_t old = pick[j];
            pick[j] = pick[x];
            pick[x] = old;
        }
        at_one_query(&r, HEADS, DK, all, SEGMENTS, (at[SEGMENTS - 1] + ROWS) * per);
        a.q.p = q;
        a.out.p = want;
        r.kv = some;
        r.n_kv = n_some;
        CHECK_OK(swa_attention(&r, &a));
        r.kv = all;
        r.n_kv = SEGMENTS;
        a.out.p = out;
        a.pick = pick;
        a.pick_n = n;
        a.pick_block = (int32_t)per;
        CHECK_OK(swa_attention(&r, &a));
        CHECK_BITS(out, want, HEADS * DK);
        t_free_to(mark);
    }
}
/* The number behind what is sorted at a time, alone in its block; and what fills up to more keys than a batch has room
   for: whole tiles of a ring, each behind a key that stands alone. Caller's rows have no tiles. */
TEST_EACH_ISA(lists_at_the_edges_of_what_is_sorted) {
    enum { N = 1024, DK = 16, HEADS = 2 };
    float *k = t_random(N * DK, 1.0f), *v = t_random(N * DK, 1.0f), *q = t_random(HEADS * DK, 2.0f);
    float *want = t_floats(HEADS * DK), *out = t_floats(HEADS * DK);
    int32_t pick[N] = { 7, 32768, 40000 };
    swa_kv kv[3];
    swa_rows r;
    swa_attn a;
    int n = 0;
    memset(&a, 0, sizeof a);
    memset(kv, 0, sizeof kv);
    for (int i = 0; i < 3; i++) {
        kv[i].k = k + i * DK;
        kv[i].v = v + i * DK;
        kv[i].pos = pick[i];
        kv[i].n = 1;
    }
    at_one_query(&r, HEADS, DK, kv, 3, 40000);
    r.isa = isa;
    a.q.p = q;
    a.out.p = want;
    CHECK_OK(swa_attention(&r, &a));
    a.out.p = out;
    a.pick = pick;
    a.pick_n = 3;
    CHECK_OK(swa_attention(&r, &a));
    CHECK_BITS(out, want, HEADS * DK);

    for (int i = 0; i < 100; i++) pick[n++] = 2 * i; /* block 0; then of block 1 every second tile */
    for (int i = 256; i < 512; i++)
        if (i % 32 < 16 || i % 32 == 20) pick[n++] = i;
    swa_cache ring;
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    d.shape = r.shape;
    d.n_layers = 1;
    d.max_context = N;
    d.isa = isa;
    if (!t_cache_new(&ring, &d, 1)) return;
    memset(&a, 0, sizeof a);
    a.mode = SWA_STORE_ONLY;
    a.k.p = k;
    a.v.p = v;
    REQUIRE_OK(swa_step_one(&ring, 0, 0, N));
    REQUIRE_OK(swa_attend(&ring, 0, &a));
    for (int rows = 1; rows >= 0; rows--) {
        memset(&a, 0, sizeof a);
        a.q.p = q;
        a.out.p = rows ? want : out;
        a.pick = pick;
        a.pick_n = n;
        kv[0].k = k;
        kv[0].v = v;
        kv[0].pos = 0;
        kv[0].n = N;
        at_one_query(&r, HEADS, DK, kv, 1, N - 1);
        r.isa = isa;
        if (!rows) r.n_kv = swa_cache_spans(&ring, 0, 0, kv);
        CHECK_OK(swa_attention(&r, &a));
    }
    CHECK_BITS(out, want, HEADS * DK);
}
/* At the last positions that there are no list reaches: what is seen besides it is all, and the end is found. */
TEST(lists_of_the_last_positions) {
    for (int per = 1; per <= 64; per *= 64)
        for (int n = 20; n <= 300; n += 280) {
            const t_block *mark = t_.blocks;
            at_case c = at_new(3, 1, 16, 16, n);
            const size_t rows = (size_t)n * at_o_row(&c);
            float *want = t_floats(rows);
            const swa_window near = swa_window_sliding(13);
            at_how how = at_on(SWA_ISA_BEST);
            at_data d;
            c.start = INT64_MAX - 1 - n;
            at_sliding(&c, 13);
            d = at_make(&c);
            t_label("%d tokens, entries of %d", n, per);
            REQUIRE(at_ring(&c, &d, &how, want, NULL));
            at_sliding(&c, 200);
            c.pick_window = &near;
            c.pick_block = per;
            c.pick_n = 9;
            d.pick = (int32_t *)t_alloc((size_t)(n * 9) * sizeof *d.pick);
            for (int i = 0; i < n * 9; i++) d.pick[i] = i % 2 ? INT32_MAX - t_int(0, 40000) : t_int(-5, INT32_MAX - 6);
            for (how.chunk = 0; how.chunk < 9; how.chunk += 8) same_bits(at_ring, &c, &d, &how, want, rows);
            t_free_to(mark);
        }
}
/* A few keys of each of many blocks: more than are gathered together, by blocks and by keys. */
TEST_EACH_ISA(lists_over_many_blocks) {
    enum { N = 12000, DK = 24, TAIL = 8, MOST = 900 };
    float *k = t_random(N * (DK + TAIL), 1.0f), *q = t_random(40 * (DK + TAIL), 2.0f);
    swa_kv *each = (swa_kv *)t_alloc(MOST * sizeof *each);
    int32_t *pick = (int32_t *)t_alloc(MOST * sizeof *pick);
    for (int i = 0; i < 8; i++) {
        const t_block *mark = t_.blocks;
        const int heads = i % 2 ? 40 : 9, chance = i < 4 ? 60 : i < 6 ? 14 : 400, latents = i / 2 % 2;
        float *want = t_floats(40 * DK), *out = t_floats(40 * DK);
        swa_kv all = { 0 };
        swa_rows r;
        swa_attn a = { 0 };
        int n = 0;
        for (int j = 0; j < N && n < MOST; j++)
            if (t_int(1, chance) == 1) pick[n++] = j;
        all.k = all.v = k;
        all.tail = k + DK;
        all.k_token = all.v_token = all.tail_token = DK + TAIL;
        all.n = N;
        for (int j = 0; j < n; j++) {
            each[j] = all;
            each[j].k = each[j].v = k + pick[j] * (DK + TAIL);
            each[j].tail = k + pick[j] * (DK + TAIL) + DK;
            each[j].pos = pick[j];
            each[j].n = 1;
        }
        at_one_query(&r, heads, DK, each, n, N);
        r.isa = isa;
        r.shape.tail_dim = latents ? TAIL : 0;
        r.shape.v_in_k = latents;
        r.scratch_bytes = swa_attention_bytes(&r, 1);
        r.scratch = t_alloc(r.scratch_bytes);
        a.q.p = q;
        a.q_tail.p = latents ? q + DK : NULL;
        a.q.head = a.q_tail.head = DK + TAIL;
        a.scale = 0.4f;
        a.out.p = want;
        CHECK_OK(swa_attention(&r, &a));
        r.kv = &all;
        r.n_kv = 1;
        a.pick = pick;
        a.pick_n = n;
        a.out.p = out;
        CHECK_OK(swa_attention(&r, &a));
        t_label("%d heads, %d keys", heads, n);
        CHECK_BITS(out, want, heads * DK);
        t_free_to(mark);
    }
}
static void same_rows(const swa_cache kv[2], int layer, int k_row) {
    const int64_t first = swa_cache_first(&kv[0], 0, layer), end = swa_cache_end(&kv[0], 0);
    const int32_t n = (int32_t)(end - first);
    float *a = t_floats((size_t)(n * k_row)), *b = t_floats((size_t)(n * k_row));
    CHECK_OK(swa_cache_read(&kv[0], 0, layer, first, n, a, NULL));
    CHECK_OK(swa_cache_read(&kv[1], 0, layer, first, n, b, NULL));
    CHECK_BITS(b, a, n * k_row);
}
/* Rows and tiles hold the same numbers: two caches that differ in nothing else go through the same steps, rewinds,
   forks, copies and blobs, with lists and without. */
TEST(lists_rows_and_tiles_are_one_cache) {
    enum { H = 4, G = 2, V = 12, MOST = 40, P = 7 };
    for (int i = 0; i < 10; i++) {
        const t_block *mark = t_.blocks;
        /* rows of whole lines have their tail behind them */
        const int D = i % 4 < 2 ? 64 : 20, T = i % 4 < 2 ? 32 : 6;
        swa_cache_desc d;
        swa_cache kv[2];
        swa_window win[2];
        static const int rows[2] = { 1, 0 };
        float *out[2] = { t_floats(MOST * H * V), t_floats(MOST * H * V) };
        memset(&d, 0, sizeof d);
        /* clang-format off */
        win[0] = swa_window_causal(); win[1] = swa_window_sinks(30, 2);
        d.shape.n_heads = H; d.shape.n_kv_heads = G; d.shape.head_dim = D; d.shape.v_dim = V; d.shape.tail_dim = T;
        d.n_layers = 2; d.n_seqs = 2; d.windows = win; d.n_windows = 2; d.max_context = 400; d.max_rollback = 50;
        d.k_type = at_types[i % AT_TYPES]; d.tail_type = at_types[i / 2 % AT_TYPES]; d.audit = 1;
        /* clang-format on */
        if (i % 3 == 0) d.capacity = 83;
        if (!t_cache_new(&kv[0], &d, 1)) return;
        d.k_rows = rows;
        d.n_k_rows = 1 + i % 2;
        if (!t_cache_new(&kv[1], &d, 1)) return;
        for (int step = 0; step < 14; step++) {
            const int n = t_int(1, 30), keys = MOST * G * (D + T);
            const int64_t end = swa_cache_end(&kv[0], 0);
            float *q = t_random((size_t)(MOST * H * (D + T)), 2.0f);
            float *k = t_random((size_t)keys, 1.0f), *v = t_random((size_t)keys, 1.0f);
            int32_t pick[MOST * G * P];
            for (int j = 0; j < MOST * G * P; j++) pick[j] = t_int(-2, (int)end + n + 2);
            for (int x = 0; x < 2; x++) {
                CHECK_OK(swa_step_one(&kv[x], 0, end, n));
                for (int l = 0; l < 2; l++) {
                    swa_attn a;
                    memset(&a, 0, sizeof a);
                    /* clang-format off */
                    a.q.p = q; a.q_tail.p = q + D; a.k.p = k; a.k_tail.p = k + D; a.v.p = v; a.out.p = out[x];
                    a.q.head = a.q_tail.head = a.k.head = a.k_tail.head = D + T;
                    a.q.token = a.q_tail.token = H * (D + T);
                    a.k.token = a.k_tail.token = G * (D + T);
                    a.v.head = D; a.v.token = G * (D + T);
                    a.scale = 0.3f;
                    t_say_sinks(&a, d.audit, &win[l]);
                    if (step % 3) { a.pick = pick; a.pick_n = P; a.pick_head = P; a.pick_token = G * P; }
                    /* clang-format on */
                    CHECK_OK(swa_attend(&kv[x], l, &a));
                }
            }
            CHECK_BITS(out[1], out[0], n * H * V);
            if (step % 4 == 3) {
                const int64_t back = swa_cache_end(&kv[0], 0) - t_int(0, 20);
                CHECK_OK(swa_cache_truncate(&kv[0], 0, back));
                CHECK_OK(swa_cache_truncate(&kv[1], 0, back));
            }
            if (step == 5) { /* change places: what one held, the other goes on with */
                CHECK_OK(swa_cache_fork(&kv[1], 1, 0, -1));
                CHECK_OK(swa_cache_copy(&kv[1], 0, &kv[0], 0, -1));
                CHECK_OK(swa_cache_copy(&kv[0], 0, &kv[1], 1, -1));
            }
            if (step == 9) {
                const size_t bytes = swa_cache_save_bytes(&kv[1], 0);
                unsigned char *blob = (unsigned char *)t_alloc(bytes);
                CHECK_OK(swa_cache_save(&kv[1], 0, blob, bytes));
                CHECK_OK(swa_cache_load(&kv[0], 0, blob, bytes));
            }
        }
        for (int l = 0; l < 2; l++) same_rows(kv, l, G * (D + T));
        t_free_to(mark);
    }
}
/* Rows of whole lines, whose tail lies behind them in the ring: copied, forked and saved into rings of other sizes,
   whose slots are others, with tiles and without. */
TEST(lists_rows_with_their_tails_move) {
    enum { D = 32, T = 16, ROW = D + T, MOST = 160 };
    static const int rows[1] = { 1 };
    for (int i = 0; i < 12; i++) {
        const t_block *mark = t_.blocks;
        const int g = 1 + i % 2, row = g * ROW;
        const float *k = t_random((size_t)(MOST * row), 1.0f);
        swa_window win = swa_window_sliding(40);
        swa_cache_desc d;
        swa_cache kv[2];
        size_t bytes;
        unsigned char *blob;
        t_label("case %d", i);
        memset(&d, 0, sizeof d);
        /* clang-format off */
        d.shape.n_heads = d.shape.n_kv_heads = g; d.shape.head_dim = D; d.shape.tail_dim = T; d.shape.v_in_k = 1;
        d.shape.v_dim = D; d.n_layers = 1; d.n_seqs = 2; d.windows = &win; d.n_windows = 1;
        d.k_type = i / 2 % 2 ? SWA_BF16 : SWA_F32; d.audit = 1;
        d.k_rows = rows; d.n_k_rows = 1; d.capacity = 64;
        /* clang-format on */
        if (!t_cache_new(&kv[0], &d, 1)) return;
        d.capacity = 80 + i;
        if (i >= 8) d.n_k_rows = 0, d.k_rows = NULL;
        if (!t_cache_new(&kv[1], &d, 1)) return;
        for (int pos = 0; pos < MOST - 7 * i; pos += 7) {
            swa_attn a;
            memset(&a, 0, sizeof a);
            a.mode = SWA_STORE_ONLY;
            a.k.p = k + pos * row;
            a.k_tail.p = a.k.p + D;
            a.k.head = a.k_tail.head = ROW;
            a.k.token = a.k_tail.token = row;
            CHECK_OK(swa_step_one(&kv[0], 0, pos, pos + 7 < MOST ? 7 : MOST - pos));
            CHECK_OK(swa_attend(&kv[0], 0, &a));
        }
        CHECK_OK(swa_cache_copy(&kv[1], 0, &kv[0], 0, -1));
        same_rows(kv, 0, row);
        bytes = swa_cache_save_bytes(&kv[1], 0);
        blob = (unsigned char *)t_alloc(bytes);
        CHECK_OK(swa_cache_save(&kv[1], 0, blob, bytes));
        CHECK_OK(swa_cache_fork(&kv[1], 1, 0, -1));
        CHECK_OK(swa_cache_reset(&kv[1], 0, 0, 0));
        CHECK_OK(swa_cache_load(&kv[1], 0, blob, bytes));
        same_rows(kv, 0, row);
        CHECK_OK(swa_cache_reset(&kv[1], 0, 0, 0));
        CHECK_OK(swa_cache_copy(&kv[1], 0, &kv[1], 1, -1));
        same_rows(kv, 0, row);
        t_free_to(mark);
    }
}
/* A tail in q8_32 has its scales behind its slots: it does not lie behind its row of K, whatever lines they fill. */
TEST(lists_tails_with_scales_lie_apart) {
    enum { D = 64, T = 64, ROW = D + T, N = 40 };
    static const int rows[1] = { 1 };
    const float *k = t_random(N * ROW, 1.0f);
    float *got[2] = { t_floats(N * ROW), t_floats(N * ROW) };
    for (int flat = 0; flat < 2; flat++) { /* tiles, rows */
        swa_cache_desc d;
        swa_cache kv;
        swa_attn a;
        memset(&d, 0, sizeof d);
        memset(&a, 0, sizeof a);
        d.shape.n_heads = d.shape.n_kv_heads = d.n_layers = 1;
        d.shape.head_dim = D;
        d.shape.tail_dim = T;
        d.shape.v_in_k = 1;
        d.k_type = SWA_F16;
        d.tail_type = SWA_Q8_32;
        d.max_context = N;
        d.k_rows = flat ? rows : NULL;
        d.n_k_rows = flat;
        if (!t_cache_new(&kv, &d, 1)) return; /* whose edges are looked at, too */
        a.mode = SWA_STORE_ONLY;
        a.k.p = k;
        a.k_tail.p = k + D;
        a.k.token = a.k_tail.token = ROW;
        CHECK_OK(swa_step_one(&kv, 0, 0, N));
        CHECK_OK(swa_attend(&kv, 0, &a));
        CHECK_OK(swa_cache_read(&kv, 0, 0, 0, N, got[flat], NULL));
    }
    CHECK_BITS(got[1], got[0], N * ROW);
}
TEST(lists_descs_that_contradict) {
    static const int rows[1] = { 1 };
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    d.shape.n_heads = d.shape.n_kv_heads = 1;
    d.shape.head_dim = 8;
    d.n_layers = 1;
    d.max_context = 16;
    d.n_k_rows = 1;
    CHECK_INT((int)swa_cache_bytes(&d), 0);
    d.n_k_rows = -1;
    d.k_rows = rows;
    CHECK_INT((int)swa_cache_bytes(&d), 0);
    d.n_k_rows = 0;
    CHECK_INT((int)swa_cache_bytes(&d), 0);
    d.n_k_rows = 1;
    CHECK(swa_cache_bytes(&d) > 0);
}

enum { AUDIT_W = 16, AUDIT_SINKS = 3, AUDIT_LATE = 40 };
static int names_a_key(const swa_run *r, int64_t start, int64_t at, int64_t entry, int block) {
    for (int64_t k = entry * block; k < (entry + 1) * block; k++) {
        const int both = k >= r->pos && k < r->prefix && at < r->prefix;
        if (k >= start && (both || (k <= at && (at - k < AUDIT_W || k < AUDIT_SINKS)))) return 1;
    }
    return 0;
}

/* Key 0 twice and more, in half of the entries or more: int64, or memory of zeros. */
static int mostly_zero(const int32_t *list, int n) {
    int zeros = 0, others = 0;
    for (int i = 0; i < n; i++) {
        zeros += list[i] == 0;
        others += list[i] > 0;
    }
    return zeros > 1 && zeros >= others;
}
/* Audit 2 refuses what else is skipped: an entry of which a query sees no key. Two sequences, of which one began late,
   a span whose tokens see each other, sinks. */
TEST(lists_audited) {
    enum { N = 5, PICKS = 4 };
    const swa_window win = swa_window_sinks(AUDIT_W, AUDIT_SINKS);
    int refused = 0, passed = 0;
    for (int turn = 0; turn < 300; turn++) {
        const int audit = turn % 5 ? 2 : turn % 2, block = turn % 2 ? 4 : 1;
        swa_run runs[2];
        swa_cache_desc d;
        swa_attn a;
        swa_cache kv;
        int32_t pick[2 * N][2][PICKS];
        const float *q = t_random(2 * N * 4 * 8, 1.0f);
        float *k = t_random(2 * N * 2 * 8, 1.0f), *v = t_random(2 * N * 2 * 8, 1.0f);
        int wrong = 0;
        memset(&d, 0, sizeof d);
        d.shape.n_heads = 4;
        d.shape.n_kv_heads = 2;
        d.shape.head_dim = 8;
        d.n_layers = 1;
        d.n_seqs = 2;
        d.windows = &win;
        d.n_windows = 1;
        d.max_rollback = 2 * N;
        d.audit = audit;
        if (!t_cache_new(&kv, &d, 1)) return;
        CHECK_OK(swa_cache_reset(&kv, 1, AUDIT_LATE, 0));
        memset(&a, 0, sizeof a);
        a.q.p = q;
        a.k.p = k;
        a.v.p = v;
        t_say_sinks(&a, d.audit, &win);
        a.out.p = t_floats(2 * N * 4 * 8);
        for (int step = 0; step < 6; step++) {
            const int last = step == 5, span = last && turn % 3 == 0;
            for (int s = 0; s < 2; s++) {
                runs[s] = t_run(s, s * AUDIT_LATE + step * N, N);
                runs[s].prefix = span ? runs[s].pos + 4 : 0;
            }
            CHECK_OK(swa_step_begin(&kv, runs, 2));
            for (int t = 0; t < 2 * N && last; t++)
                for (int e = 0; e < 2 * PICKS; e++) {
                    const swa_run *r = &runs[t / N];
                    const int64_t at = r->pos + t % N;
                    /* mostly what the query sees, now and then anything */
                    const int far = t_int(0, 60) == 0;
                    const int64_t first = far ? t_int(-2, AUDIT_LATE + 40) : at - t_int(0, AUDIT_W - 1);
                    const int32_t entry = (int32_t)(first < 0 ? -1 : first / block);
                    pick[t][e / PICKS][e % PICKS] = entry;
                    wrong |= entry >= 0 && !names_a_key(r, r->seq * AUDIT_LATE, at, entry, block);
                }
            for (int t = 0; t < 4 * N && last; t++) wrong |= mostly_zero(pick[t / 2][t % 2], PICKS);
            if (last) {
                a.pick = pick[0][0];
                a.pick_token = 2 * PICKS;
                a.pick_head = PICKS;
                a.pick_n = PICKS;
                a.pick_block = block;
            }
            const swa_status status = swa_attend(&kv, 0, &a);
            CHECK_INT((int)status, audit == 2 && last && wrong ? (int)SWA_ERR_ARG : (int)SWA_OK);
            refused += status == SWA_ERR_ARG;
            passed += audit == 2 && last && status == SWA_OK;
            a.pick = NULL;
            a.pick_n = a.pick_block = 0;
        }
    }
    CHECK(refused > 20 && passed > 20);
}
/* ---- a window and rows of another rate under one softmax ---- */

/* One ring whose sequence begins far behind the rows that stand for groups of RATE tokens; token t sees those of whole
   groups. By a list, or where all of them are seen as pinned ones; every cut gives the same bits. */
enum { RATE = 4, UNION_W = 16, UNION_N = 61, UNION_HEADS = 4, UNION_DIM = 32, UNION_START = 1 << 30 };
typedef struct {
    swa_cache kv;
    swa_kv seg[4];
    const float *q, *k, *groups;
    float *out;
    void *scratch;
    size_t bytes;
} both;
static int both_open(both *b) {
    const swa_window w = swa_window_sliding(UNION_W);
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    d.shape.n_heads = UNION_HEADS;
    d.shape.n_kv_heads = d.shape.v_in_k = 1;
    d.shape.head_dim = UNION_DIM;
    d.n_layers = d.n_windows = 1;
    d.windows = &w;
    d.max_rollback = 24;
    d.audit = 2;
    memset(b->seg, 0, sizeof b->seg);
    b->out = t_floats(UNION_N * UNION_HEADS * UNION_DIM);
    b->bytes = (size_t)1 << 23;
    b->scratch = t_alloc(b->bytes);
    return t_cache_new(&b->kv, &d, 1) && CHECK_OK(swa_cache_reset(&b->kv, 0, UNION_START, 0));
}
/* Queries [t, t + n) of the step, over `seen` groups and the ring. */
static swa_rows both_rows(both *b, int t, int32_t n, int seen) {
    const int spans = swa_cache_spans(&b->kv, 0, 0, b->seg + 1);
    swa_rows r;
    memset(&r, 0, sizeof r);
    CHECK(spans > 0);
    b->seg[0].k = b->groups;
    b->seg[0].n = seen;
    r.shape.n_heads = UNION_HEADS;
    r.shape.n_kv_heads = r.shape.v_in_k = 1;
    r.shape.head_dim = UNION_DIM;
    r.pos = UNION_START + t;
    r.n_tokens = n;
    r.kv = b->seg;
    r.n_kv = 1 + spans;
    r.scratch = b->scratch;
    r.scratch_bytes = b->bytes;
    r.audit = 2;
    return r;
}
/* n tokens from t on: stored first, then attended; by a list all at once, or those that see as many groups together. */
static void both_step(both *b, int t, int32_t n, int listed) {
    const swa_window near = swa_window_sliding(UNION_W);
    int32_t pick[UNION_N * UNION_N / RATE];
    const int most = UNION_N / RATE;
    swa_attn store, a;
    swa_rows r;
    memset(&store, 0, sizeof store);
    memset(&a, 0, sizeof a);
    store.mode = SWA_STORE_ONLY;
    store.k.p = b->k + t * UNION_DIM;
    REQUIRE_OK(swa_step_one(&b->kv, 0, UNION_START + t, n));
    REQUIRE_OK(swa_attend(&b->kv, 0, &store));
    a.scale = 0.3f;
    for (int from = t, count; from < t + n; from += count) {
        count = listed ? n : RATE - (from + 1) % RATE;
        if (count > t + n - from) count = t + n - from;
        a.q.p = b->q + from * UNION_HEADS * UNION_DIM;
        a.out.p = b->out + from * UNION_HEADS * UNION_DIM;
        if (listed) {
            r = both_rows(b, from, count, (t + n) / RATE);
            r.window = swa_window_causal();
            for (int i = 0; i < count * most; i++) pick[i] = i % most < (from + i / most + 1) / RATE ? i % most : -1;
            a.pick = pick;
            a.pick_token = a.pick_n = most;
            a.pick_window = &near;
        } else {
            const int seen = (from + 1) / RATE;
            r = both_rows(b, from, count, seen);
            r.window = seen > 0 ? swa_window_sinks(UNION_W, seen) : near;
            a.q_sink.p = seen > 0 ? a.q.p : NULL;
        }
        if (!CHECK_OK(swa_attention(&r, &a))) printf("%s\n", swa_attention_explain(&r, &a));
    }
}
TEST(a_window_and_rows_of_another_rate) {
    static const int chunks[] = { UNION_N, 1, 5, 23 };
    float *first = NULL;
    both b;
    b.q = t_random(UNION_N * UNION_HEADS * UNION_DIM, 1.0f);
    b.k = t_random(UNION_N * UNION_DIM, 1.0f);
    b.groups = t_random(UNION_N / RATE * UNION_DIM, 1.0f);
    for (int listed = 0; listed < 2; listed++)
        for (int c = 1; c < 4; c++) {
            t_label("%s, chunks of %d", listed ? "listed" : "pinned", chunks[c]);
            REQUIRE(both_open(&b));
            for (int t = 0; t < UNION_N; t += chunks[c])
                both_step(&b, t, UNION_N - t < chunks[c] ? UNION_N - t : chunks[c], listed);
            if (first) CHECK_BITS(b.out, first, UNION_N * UNION_HEADS * UNION_DIM);
            first = b.out;
        }
    for (int t = 0; t < UNION_N; t++)
        for (int h = 0; h < UNION_HEADS; h++) {
            const float *q = b.q + (t * UNION_HEADS + h) * UNION_DIM;
            double sum = 0, *want = t_doubles(UNION_DIM);
            for (int i = 0; i < UNION_DIM; i++) want[i] = 0;
            for (int j = -((t + 1) / RATE); j <= t; j++) { /* below 0: the groups */
                const float *k = j < 0 ? b.groups + (-1 - j) * UNION_DIM : b.k + j * UNION_DIM;
                double s = 0, p;
                if (j >= 0 && j <= t - UNION_W) continue;
                for (int i = 0; i < UNION_DIM; i++) s += (double)q[i] * k[i];
                p = exp(s * 0.3f);
                sum += p;
                for (int i = 0; i < UNION_DIM; i++) want[i] += p * k[i];
            }
            for (int i = 0; i < UNION_DIM; i++) want[i] /= sum;
            CHECK_CLOSE(b.out + (t * UNION_HEADS + h) * UNION_DIM, want, UNION_DIM, 2e-6);
        }
}
/* Under audit a query whose position is off is found all the same over a ring. */
TEST(a_ring_begins_anew_behind_a_part_of_a_step) {
    swa_attn a;
    swa_rows r;
    both b;
    b.q = t_random(UNION_N * UNION_HEADS * UNION_DIM, 1.0f);
    b.k = t_random(UNION_N * UNION_DIM, 1.0f);
    b.groups = b.k;
    REQUIRE(both_open(&b));
    for (int t = 0; t < 46; t += 23) both_step(&b, t, 23, 0);
    memset(&a, 0, sizeof a);
    a.scale = 0.3f;
    a.q.p = b.q;
    a.out.p = b.out;
    r = both_rows(&b, 23, 2, 0);
    CHECK_INT(r.n_kv, 3);
    r.pos = b.seg[2].pos - 3; /* the ring's second span begins behind these */
    r.window = swa_window_sliding(4);
    CHECK_OK(swa_attention(&r, &a));
    r.pos = 0;
    CHECK_STATUS(swa_attention(&r, &a), SWA_ERR_ARG);
    r.pos = b.seg[1].pos - 3;
    CHECK_STATUS(swa_attention(&r, &a), SWA_ERR_ARG);
    /* behind pinned rows that hold position 0 the ring begins far away */
    b.seg[0].n = 1;
    r.pos = 0;
    r.n_tokens = 1;
    CHECK_STATUS(swa_attention(&r, &a), SWA_ERR_ARG);
    /* rows that stand before the ring's, as a prefix does: one is missing, which a query sees */
    REQUIRE(both_open(&b));
    both_step(&b, 0, 5, 0);
    r = both_rows(&b, 0, 5, 3);
    r.window = swa_window_sliding(UNION_W);
    b.seg[0].pos = UNION_START - 4;
    CHECK_STATUS(swa_attention(&r, &a), SWA_ERR_ARG);
    b.seg[0].pos++;
    CHECK_OK(swa_attention(&r, &a));
}
