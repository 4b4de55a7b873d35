/* The index: scores against the sum written out in double, lists against a sort of those scores, and both to the bit
   whatever the chunks, parts, ring, batch and instruction set; then ties, NaN, and lists longer than there are keys. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "test.h"
#include "oracle.h"

typedef struct { /* what is computed */
    swa_shape shape;
    swa_type type, compute;
    swa_window window;
    or_window sees; /* the same window in the oracle's words */
    int64_t start;
    int n, lists, block, local, linear, weights, whole; /* whole: q, k, w are small integers, so scores tie */
    int32_t top;
} ix_case;
typedef struct {
    float *q, *k, *v, *w;
} ix_data;
typedef struct { /* how */
    int isa, chunk, parts, others, rewind;
    int64_t capacity, origin;
} ix_how;
static ix_how how_on(int isa) {
    ix_how how;
    memset(&how, 0, sizeof how);
    how.isa = isa;
    return how;
}
typedef struct {
    int32_t *pick;
    float *score;
} ix_found;

static ix_case case_new(int heads, int kv, int dim, int n, int32_t top) {
    ix_case c;
    memset(&c, 0, sizeof c);
    c.shape.n_heads = heads;
    c.shape.n_kv_heads = kv;
    c.shape.head_dim = dim;
    c.shape.v_in_k = 1;
    c.type = SWA_F32;
    c.window = swa_window_causal();
    c.sees = or_causal();
    c.n = n;
    c.lists = kv;
    c.block = 1;
    c.weights = 1;
    c.top = top;
    return c;
}
static void sliding(ix_case *c, int64_t W, int pinned) {
    c->window = swa_window_sinks(W, pinned);
    c->sees = or_sliding(W);
    c->sees.pinned = pinned;
}
static int64_t columns(const ix_case *c) { return (c->start + c->n + c->block - 1) / c->block; }
static size_t lists_of(const ix_case *c) { return (size_t)c->n * (size_t)c->lists; }

static float *numbers(size_t n, int whole) {
    float *x = t_random(n, 1.0f);
    for (size_t i = 0; i < n && whole; i++) x[i] = (float)t_int(-1, 1);
    return x;
}
static ix_data data_new(const ix_case *c) {
    const size_t n = (size_t)c->n, dim = (size_t)c->shape.head_dim, kv = (size_t)c->shape.n_kv_heads;
    ix_data d;
    d.q = numbers(n * (size_t)c->shape.n_heads * dim, c->whole);
    d.k = numbers(n * kv * dim, c->whole);
    d.v = numbers(n * kv * dim, 0);
    d.w = numbers(n * (size_t)c->shape.n_heads, c->whole);
    return d;
}
static ix_found found_new(const ix_case *c) {
    ix_found f;
    f.pick = (int32_t *)t_alloc(lists_of(c) * (size_t)c->top * sizeof *f.pick);
    f.score = t_floats(lists_of(c) * (size_t)columns(c));
    return f;
}
/* The call for tokens t and following, whose results belong into f. */
static swa_index index_of(const ix_case *c, const ix_data *d, const ix_found *f, int t) {
    swa_index ix;
    memset(&ix, 0, sizeof ix);
    ix.q.p = d->q + (size_t)t * (size_t)(c->shape.n_heads * c->shape.head_dim);
    if (c->weights) ix.w = d->w + t * c->shape.n_heads;
    ix.linear = c->linear;
    ix.lists = c->lists;
    ix.block = c->block;
    ix.local = c->local;
    ix.top = c->top;
    if (c->top > 0) ix.pick = f->pick + (size_t)(t * c->lists) * (size_t)c->top;
    ix.score = f->score + (size_t)(t * c->lists) * (size_t)columns(c);
    ix.score_n = columns(c);
    ix.compute = c->compute;
    return ix;
}
static int open_cache(const ix_case *c, const ix_how *how, const swa_window *window, int parts, swa_cache *kv) {
    static int32_t pick;
    static float x; /* 0 added to NULL is undefined, and UBSan says so */
    const ix_found none = { &pick, &x };
    const ix_data zero = { &x, &x, &x, &x };
    const swa_index ix = index_of(c, &zero, &none, 0);
    swa_cache_desc d;
    size_t bytes, room;
    memset(&d, 0, sizeof d);
    d.shape = c->shape;
    d.n_layers = 1;
    d.n_seqs = 1 + how->others;
    d.k_type = c->type;
    d.windows = window;
    d.n_windows = 1;
    d.max_context = c->n + 40;
    d.capacity = how->capacity;
    d.max_rollback = how->capacity ? 1 : (how->chunk > 0 ? how->chunk : c->n) + how->rewind;
    d.isa = how->isa;
    d.audit = how->parts % 3;
    bytes = swa_cache_bytes(&d);
    room = swa_cache_scratch_bytes(&d, parts);
    if (swa_select_bytes(&c->shape, &ix, parts) > room) room = swa_select_bytes(&c->shape, &ix, parts);
    return CHECK(bytes > 0 && room > 0) && CHECK_OK(swa_cache_init(kv, &d, t_alloc(bytes), bytes))
        && CHECK_OK(swa_cache_set_scratch(kv, t_alloc(room), room));
}
static int store(const ix_case *c, const ix_data *d, swa_cache *kv, int t) {
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.mode = SWA_STORE_ONLY;
    a.k.p = d->k + (size_t)t * (size_t)(c->shape.n_kv_heads * c->shape.head_dim);
    if (!c->shape.v_in_k) a.v.p = d->v + (size_t)t * (size_t)(c->shape.n_kv_heads * c->shape.head_dim);
    return CHECK_OK(swa_attend(kv, 0, &a));
}
static int select_parts(swa_cache *kv, const swa_index *ix, int parts) {
    if (parts == 0) return CHECK_OK(swa_select(kv, 0, ix));
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int i = 0; i < parts; i++) {
            const int part = (i * 7 + 3) % parts; /* any order; 7 has no factor in common with parts */
            if (!CHECK_OK(swa_select_part(kv, 0, ix, phase, part, parts))) return 0;
        }
    return 1;
}
/* Tokens t0..t0+n-1 of sequence 0, in a step with the first tokens of other sequences, which come before them. */
static int one_step(const ix_case *c, const ix_data *d, const ix_how *how, swa_cache *kv, const ix_found *f, int t0,
                    int n) {
    const int dim = c->shape.head_dim, q = c->shape.n_heads * dim, k = c->shape.n_kv_heads * dim;
    const int rows = n + how->others, each = c->lists * (int)columns(c), top = c->lists * c->top;
    ix_case all = *c;
    ix_data x;
    ix_found got;
    swa_run runs[4];
    swa_index ix;
    all.n = rows;
    x = data_new(&all);
    for (int i = 0; i < how->others; i++) runs[i] = t_run(i + 1, swa_cache_end(kv, i + 1), 1);
    runs[how->others] = t_run(0, c->start + t0, n);
    memcpy(x.q + how->others * q, d->q + t0 * q, (size_t)(n * q) * sizeof *x.q);
    memcpy(x.k + how->others * k, d->k + t0 * k, (size_t)(n * k) * sizeof *x.k);
    memcpy(x.w + how->others * c->shape.n_heads, d->w + t0 * c->shape.n_heads,
           (size_t)(n * c->shape.n_heads) * sizeof *x.w);
    got.pick = (int32_t *)t_alloc((size_t)(rows * top) * sizeof *got.pick);
    got.score = t_floats(rows * each);
    ix = index_of(c, &x, &got, 0);
    if (!CHECK_OK(swa_step_begin(kv, runs, how->others + 1)) || !store(&all, &x, kv, 0)
        || !select_parts(kv, &ix, how->parts))
        return 0;
    memcpy(f->score + t0 * each, got.score + how->others * each, (size_t)(n * each) * sizeof *f->score);
    if (top > 0) memcpy(f->pick + t0 * top, got.pick + how->others * top, (size_t)(n * top) * sizeof *f->pick);
    return 1;
}
/* All tokens through a ring. */
static int through_ring(const ix_case *c, const ix_data *d, const ix_how *how, const ix_found *f) {
    const int chunk = how->chunk > 0 ? how->chunk : c->n;
    const t_block *mark = t_.blocks;
    swa_cache kv;
    if (!open_cache(c, how, &c->window, how->parts > 0 ? how->parts : 2, &kv)) return 0;
    if (!CHECK_OK(swa_cache_reset(&kv, 0, c->start, how->origin))) return 0;
    for (int t = 0, n = 0; t < c->n; t += n) {
        n = t == 0 && how->rewind && chunk > 1 ? chunk - 1 : chunk;
        if (n > c->n - t) n = c->n - t;
        if (!one_step(c, d, how, &kv, f, t, n)) return 0;
        if (how->rewind && t > 0 && n > 1) { /* the last token's rows are taken back, and replaced */
            ix_data other = *d;
            other.k = t_random(c->n * c->shape.n_kv_heads * c->shape.head_dim, 1.0f);
            if (!CHECK_OK(swa_cache_truncate(&kv, 0, c->start + t + n - 1))
                || !one_step(c, &other, how, &kv, f, t + n - 1, 1)
                || !CHECK_OK(swa_cache_truncate(&kv, 0, c->start + t + n - 1))
                || !one_step(c, d, how, &kv, f, t + n - 1, 1))
                return 0;
        }
    }
    t_free_to(mark);
    return 1;
}
/* The rows of k as a ring of their type gives them back. */
static float *stored_keys(const ix_case *c, const ix_data *d) {
    const size_t n = (size_t)(c->n * c->shape.n_kv_heads * c->shape.head_dim);
    const swa_window causal = swa_window_causal();
    float *k = t_floats(n);
    swa_cache kv;
    ix_how how;
    memset(&how, 0, sizeof how);
    if (!open_cache(c, &how, &causal, 1, &kv) || !CHECK_OK(swa_step_one(&kv, 0, 0, c->n)) || !store(c, d, &kv, 0)
        || !CHECK_OK(swa_cache_read(&kv, 0, 0, 0, c->n, k, NULL)))
        return NULL;
    return k;
}
/* Scores by the definition, -inf for entries without a visible key. */
static double *oracle(const ix_case *c, const ix_data *d) {
    const float *keys = stored_keys(c, d);
    const int64_t m = columns(c);
    const int H = c->shape.n_heads, per = H / c->lists, dim = c->shape.head_dim, kv = c->shape.n_kv_heads;
    double *s = t_doubles(lists_of(c) * (size_t)m);
    for (size_t i = 0; i < lists_of(c) * (size_t)m; i++) s[i] = -HUGE_VAL;
    for (int t = 0; t < c->n && keys; t++)
        for (int k = 0; k < c->n; k++)
            for (int l = 0; l < c->lists && or_sees(&c->sees, c->start + t, c->start + k); l++) {
                double sum = 0, *at = s + (t * c->lists + l) * m + (c->start + k) / c->block;
                for (int h = l * per; h < (l + 1) * per; h++) {
                    double dot = 0;
                    for (int i = 0; i < dim; i++)
                        dot += (double)d->q[(t * H + h) * dim + i] * (double)keys[(k * kv + h / (H / kv)) * dim + i];
                    if (!c->linear && dot < 0) dot = 0;
                    sum += (c->weights ? (double)d->w[t * H + h] : 1.0) * dot;
                }
                if (sum > *at) *at = sum;
            }
    return s;
}
/* The list that follows from scores: better ones first, of equal ones the lower; then ascending. -inf is hidden unless
   some entry of that score is visible, which no case here has. */
static void sorted_list(const ix_case *c, const float *score, int64_t own, int32_t *want) {
    const int64_t m = columns(c);
    unsigned char *taken = (unsigned char *)t_alloc(m);
    int32_t n = 0;
    memset(taken, 0, (size_t)m);
    for (int32_t i = 0; i < c->top; i++) {
        int64_t best = -1;
        for (int64_t e = 0; e < m; e++) {
            const int here = e > own - c->local && e <= own;
            const int there = best >= 0 && best > own - c->local && best <= own;
            if (taken[e] || !((double)score[e] > -HUGE_VAL)) continue;
            if (best < 0 || here > there || (here == there && !here && score[e] > score[best])) best = e;
        }
        if (best >= 0) taken[best] = 1;
    }
    for (int64_t e = 0; e < m; e++)
        if (taken[e]) want[n++] = (int32_t)e;
    while (n < c->top) want[n++] = -1;
}
static void lists_follow(const ix_case *c, const ix_found *f) {
    int32_t *want = (int32_t *)t_alloc((size_t)c->top * sizeof *want + 1);
    for (int i = 0; i < (int)lists_of(c) && c->top > 0; i++) {
        sorted_list(c, f->score + (size_t)i * (size_t)columns(c), (c->start + i / c->lists) / c->block, want);
        CHECK(!memcmp(want, f->pick + (size_t)i * (size_t)c->top, (size_t)c->top * sizeof *want));
    }
}
static void same(const ix_case *c, const ix_found *a, const ix_found *b) {
    CHECK_BITS(a->score, b->score, lists_of(c) * (size_t)columns(c));
    CHECK(!memcmp(a->pick, b->pick, lists_of(c) * (size_t)c->top * sizeof *a->pick));
}

/* ---- what the cases are ---- */

/* Case i of many; every field takes all its values. */
static ix_case some_case(int i) {
    static const int heads[] = { 1, 4, 6, 64, 5, 32 }, dims[] = { 16, 40, 128, 3 };
    static const swa_type types[] = { SWA_F32, SWA_BF16, SWA_Q8, SWA_F16, SWA_Q8_32, SWA_E4M3, SWA_E5M2 };
    ix_case c = case_new(heads[i % 6], 1, dims[i % 4], t_int(30, 120), t_int(0, 40));
    c.type = types[i / 2 % 7];
    c.linear = i % 3 == 0;
    c.weights = i % 8 != 1; /* with dims of 40, which eight rows take, both ways */
    c.whole = i % 5 == 2 && c.type == SWA_F32;
    c.block = 1 << i % 5 * (i % 2);
    c.local = i % 7 == 3 ? 2 : 0;
    if (i % 3 == 1) c.lists = c.shape.n_heads;
    if (i % 6 == 2 && i % 4 == 0) c.lists = c.shape.n_kv_heads = 3;
    if (i % 6 == 3) {
        c.shape.n_kv_heads = 2;
        c.lists = 4;
        c.shape.v_in_k = i % 4 == 1;
    }
    if (i % 5 == 1) sliding(&c, 20, 0);
    if (i % 5 == 3) sliding(&c, 17, 5);
    if (i % 5 == 4) {
        c.window = swa_window_chunked(24);
        c.sees.chunk = 24;
    }
    if (i % 4 == 2 && c.sees.pinned == 0) c.start = 700;
    return c;
}
TEST_EACH_ISA(scores_and_lists_follow_the_definition) {
    for (int i = 0; i < 36; i++) {
        ix_case c = some_case(i);
        const ix_data d = data_new(&c);
        const ix_found f = found_new(&c);
        ix_how how = how_on(isa);
        how.chunk = i % 2 ? 16 : 0;
        t_label("case %d", i);
        REQUIRE(through_ring(&c, &d, &how, &f));
        CHECK_CLOSE(f.score, oracle(&c, &d), lists_of(&c) * (size_t)columns(&c), 2e-6);
        lists_follow(&c, &f);
    }
}
TEST(same_bits_by_any_way) {
    for (int i = 0; i < 40; i++) {
        ix_case c = some_case(i);
        ix_data d;
        ix_found f, g;
        ix_how how;
        if (i >= 36) {
            c.type = c.compute = SWA_Q8;
            c.shape.head_dim = 40;
        }
        d = data_new(&c);
        f = found_new(&c);
        g = found_new(&c);
        how = how_on(SWA_ISA_SCALAR);
        how.chunk = 1;
        how.parts = 1;
        t_label("case %d", i);
        REQUIRE(through_ring(&c, &d, &how, &f));
        lists_follow(&c, &f);
        FOR_ISA(isa)
        for (int way = 0; way < 8; way++) {
            if (t_leave(isa, i, way, 8)) continue;
            how.isa = isa;
            how.chunk = (int[]){ 1, 7, 16, 0, 33, 3, 2, 40 }[way];
            how.parts = (int[]){ 0, 1, 2, 3, 5, 8, 16, 11 }[way];
            how.others = way % 4;
            how.rewind = way == 4;
            how.capacity = c.sees.left == OR_FAR || way < 5 ? 0 : 61;
            how.origin = way == 6 ? 5 : 0;
            t_label("case %d way %d %s", i, way, swa_isa_name(isa));
            REQUIRE(through_ring(&c, &d, &how, &g));
            same(&c, &f, &g);
        }
    }
}
/* Long enough for several blocks, for lists that are cut many times, and for tokens that several parts share. */
TEST(long_contexts) {
    ix_case c = case_new(8, 1, 16, 6000, 0);
    for (int rising = 0; rising < 3; rising++) {
        const t_block *mark = t_.blocks;
        const int last = 3;
        ix_data d = data_new(&c), tail;
        ix_case few = c;
        ix_found f, g;
        swa_cache kv;
        ix_how how;
        swa_index ix;
        few.n = last;
        few.start = c.n - last;
        few.top = rising == 2 ? 3000 : 300;
        few.block = rising == 1 ? 4 : 1;
        memset(&how, 0, sizeof how);
        for (int t = 0; t < c.n * 16 && rising == 1; t++) d.k[t] = (float)(t / 16) * 0.001f * (t % 16 == 0);
        f = found_new(&few);
        g = found_new(&few);
        tail.q = d.q;
        tail.w = d.w;
        if (rising == 1)
            for (int i = 0; i < last * 8; i++) tail.w[i] = tail.q[i * 16] = 1;
        c.top = few.top;
        REQUIRE(open_cache(&c, &how, &c.window, 9, &kv));
        c.top = 0;
        REQUIRE_OK(swa_step_one(&kv, 0, 0, c.n - last));
        REQUIRE(store(&c, &d, &kv, 0));
        REQUIRE_OK(swa_step_one(&kv, 0, c.n - last, last));
        REQUIRE(store(&c, &d, &kv, c.n - last));
        ix = index_of(&few, &tail, &f, 0);
        REQUIRE(select_parts(&kv, &ix, 1));
        for (int i = 0; i < last; i++) {
            ix_case one = few;
            one.start += i;
            t_label("%d, token %d", rising, i);
            one.n = 1;
            if (rising == 1) CHECK_INT(f.pick[i * few.top + few.top - 1], (one.start) / 4);
        }
        lists_follow(&few, &f);
        for (int parts = 2; parts <= 9; parts++) {
            if (parts % 7 == 0) continue;
            t_label("%d, %d parts", rising, parts);
            ix = index_of(&few, &tail, &g, 0);
            REQUIRE(select_parts(&kv, &ix, parts));
            same(&few, &f, &g);
        }
        t_free_to(mark);
    }
}
/* Every score and every entry of a list is written by one part of one phase, whatever their number; and no part of
   phase 0 has many more than its share of the scores. Five tokens behind 1,500 of history, or 70 of them. */
TEST(parts_share_out_the_index) {
    for (int many = 0; many < 2; many++) {
        ix_case c = case_new(8, 1, 16, many ? 70 : 1500, 0), few = c;
        const ix_data d = data_new(&c);
        const int n = few.n = many ? 70 : 5;
        const ix_how how = how_on(SWA_ISA_BEST);
        size_t picks, scores;
        unsigned char *done;
        ix_found f, g;
        swa_cache kv;
        few.start = c.n - n;
        few.lists = 2;
        few.top = c.top = 40;
        f = found_new(&few);
        g = found_new(&few);
        picks = lists_of(&few) * (size_t)few.top;
        scores = lists_of(&few) * (size_t)columns(&few);
        done = (unsigned char *)t_alloc(picks + scores);
        c.lists = 2;
        REQUIRE(open_cache(&c, &how, &c.window, 13, &kv));
        c.lists = 1;
        c.top = 0;
        for (int t = 0; t < c.n; t += t == 0 && n < c.n ? c.n - n : c.n) {
            REQUIRE_OK(swa_step_one(&kv, 0, t, t == 0 && n < c.n ? c.n - n : n));
            REQUIRE(store(&c, &d, &kv, t));
        }
        swa_index ix = index_of(&few, &d, &f, 0);
        REQUIRE(select_parts(&kv, &ix, 1));
        ix = index_of(&few, &d, &g, 0);
        for (int parts = 3; parts <= 13; parts += 2) {
            size_t wrong = 0, most = 0;
            t_label("%d tokens, %d parts", n, parts);
            memset(done, 0, picks + scores);
            for (int call = 0; call < SWA_PHASES * parts; call++) {
                size_t own = 0;
                memset(g.pick, 0xFF, picks * sizeof *g.pick); /* -1 and NaN, which f has none of */
                memset(g.score, 0xFF, scores * sizeof *g.score);
                REQUIRE_OK(swa_select_part(&kv, 0, &ix, call / parts, call % parts, parts));
                for (size_t i = 0; i < picks; i++)
                    if (g.pick[i] != -1) done[i]++, wrong += g.pick[i] != f.pick[i];
                for (size_t i = 0; i < scores; i++) {
                    if (g.score[i] != g.score[i]) continue;
                    done[picks + i]++;
                    own += i % (size_t)columns(&few) <= (size_t)few.start; /* all tokens see them */
                    wrong += memcmp(&g.score[i], &f.score[i], sizeof *f.score) != 0;
                }
                if (own > most) most = own;
            }
            for (size_t i = 0; i < picks; i++) wrong += done[i] != (f.pick[i] != -1);
            for (size_t i = 0; i < scores; i++) wrong += done[picks + i] != 1;
            CHECK_INT(wrong, 0);
            CHECK(most <= 2 * lists_of(&few) * (size_t)(few.start + 1) / (size_t)parts + 2 * SWA_BLOCK);
        }
    }
}
/* The caller's own rows, cut anywhere, and the spans of a ring. */
TEST_EACH_ISA(rows_without_a_ring) {
    for (int i = 0; i < 24; i++) {
        ix_case c = some_case(i);
        ix_data d;
        ix_found f, g;
        ix_how how;
        swa_rows rows;
        swa_kv kv[3];
        swa_index ix;
        int a, b;
        c.type = SWA_F32;
        c.shape.v_in_k = 1;
        d = data_new(&c);
        f = found_new(&c);
        g = found_new(&c);
        memset(&how, 0, sizeof how);
        memset(kv, 0, sizeof kv);
        memset(&rows, 0, sizeof rows);
        how.isa = isa;
        t_label("case %d", i);
        REQUIRE(through_ring(&c, &d, &how, &f));
        a = t_int(0, c.n);
        b = t_int(a, c.n);
        for (int s = 0; s < 3; s++) {
            const int from = s == 0 ? 0 : s == 1 ? a : b, to = s == 0 ? a : s == 1 ? b : c.n;
            kv[s].k = d.k + from * c.shape.n_kv_heads * c.shape.head_dim;
            kv[s].pos = c.start + from;
            kv[s].n = to - from;
        }
        rows.shape = c.shape;
        rows.window = c.window;
        rows.pos = c.start;
        rows.n_tokens = c.n;
        rows.kv = kv;
        rows.n_kv = 3;
        rows.isa = isa;
        rows.audit = i % 3; /* pinned sinks have no q of their own here */
        ix = index_of(&c, &d, &g, 0);
        rows.scratch_bytes = swa_select_bytes(&c.shape, &ix, 3);
        rows.scratch = t_alloc(rows.scratch_bytes);
        REQUIRE_OK(swa_select_rows(&rows, &ix));
        same(&c, &f, &g);
        for (int phase = 0; phase < SWA_PHASES; phase++)
            for (int part = 0; part < 3; part++) REQUIRE_OK(swa_select_rows_part(&rows, &ix, phase, part, 3));
        same(&c, &f, &g);
    }
}
/* A key that no segment holds is not picked, and its score is that of a hidden one. */
TEST_EACH_ISA(keys_that_are_not_there) {
    ix_case c = case_new(4, 1, 16, 60, 60);
    const ix_data d = data_new(&c);
    const ix_found f = found_new(&c);
    swa_kv kv[2];
    swa_rows rows;
    swa_index ix = index_of(&c, &d, &f, 59);
    memset(kv, 0, sizeof kv);
    memset(&rows, 0, sizeof rows);
    kv[0].k = d.k;
    kv[0].n = 20;
    kv[1].k = d.k + 37 * 16;
    kv[1].pos = 37;
    kv[1].n = 23;
    rows.shape = c.shape;
    rows.window = c.window;
    rows.pos = 59;
    rows.n_tokens = 1;
    rows.kv = kv;
    rows.n_kv = 2;
    rows.isa = isa;
    rows.scratch_bytes = swa_select_bytes(&c.shape, &ix, 1);
    rows.scratch = t_alloc(rows.scratch_bytes);
    REQUIRE_OK(swa_select_rows(&rows, &ix));
    for (int k = 0; k < 60; k++) {
        CHECK_INT(ix.pick[k], k < 20 ? k : k < 43 ? k + 17 : -1);
        CHECK(((double)ix.score[k] > -HUGE_VAL) == (k < 20 || k >= 37));
    }
}
TEST_EACH_ISA(ties_and_nan) {
    ix_case c = case_new(2, 1, 16, 50, 7);
    ix_data d = data_new(&c);
    const ix_found f = found_new(&c);
    ix_how how = how_on(isa);
    for (int i = 0; i < 50 * 16; i++) d.k[i] = i % 16 == 0 ? (float)(i / 16 % 3) : 0.0f; /* scores 0 1 2 0 1 2 */
    for (int i = 0; i < 100 * 16; i++) d.q[i] = i % 16 == 0 ? 1.0f : 0.0f;
    for (int i = 0; i < 100; i++) d.w[i] = 1.0f;
    d.w[2 * 40] = -HUGE_VALF; /* -inf where a product is positive, NaN where it is 0 */
    d.w[2 * 45] = (float)NAN;
    d.w[2 * 46] = d.w[2 * 46 + 1] = -1.0f;
    REQUIRE(through_ring(&c, &d, &how, &f));
    for (int i = 0; i < 7; i++) {
        CHECK_INT(f.pick[30 * 7 + i], 2 + 3 * i);     /* the first of the best */
        CHECK_INT(f.pick[45 * 7 + i], -1);            /* NaN is never picked */
        CHECK_INT(f.pick[46 * 7 + i], 3 * i);         /* 0, of whatever sign, is more than -2 and -4 */
        CHECK_INT(f.pick[5 * 7 + i], i < 6 ? i : -1); /* fewer keys than the list is long */
    }
    for (int i = 0; i < 7; i++) CHECK_INT(f.pick[40 * 7 + i], (i / 2) * 3 + 1 + i % 2);
    for (int k = 0; k < 50; k++) CHECK(!((double)f.score[45 * 50 + k] > -HUGE_VAL));
}
/* A key that holds a NaN has no score, whatever its heads count and whether they are cut at 0; nor has any key for a
   query that holds one. */
TEST_EACH_ISA(keys_of_nan) {
    for (int way = 0; way < 4; way++) {
        ix_case c = case_new(2, 1, 16, 50, 50);
        ix_data d = data_new(&c);
        const ix_found f = found_new(&c);
        ix_how how = how_on(isa);
        c.linear = way & 1;
        for (int i = 0; i < 100; i++) d.w[i] = way & 2 ? -1.0f : 1.0f;
        for (int k = 3; k < 50; k += 7) d.k[16 * k + k % 16] = (float)NAN;
        d.q[2 * 16 * 48] = (float)NAN;
        t_label("linear %d, weights %g", c.linear, (double)d.w[0]);
        REQUIRE(through_ring(&c, &d, &how, &f));
        for (int t = 0; t < 50; t++)
            for (int i = 0; i < 50; i++) {
                CHECK(f.pick[t * 50 + i] < 0 || (t != 48 && f.pick[t * 50 + i] % 7 != 3));
                CHECK_INT((double)f.score[t * 50 + i] > -HUGE_VAL, t != 48 && i <= t && i % 7 != 3);
            }
    }
}
/* A product too small for a float is -0 or 0: equal, and the first of them are picked. */
TEST_EACH_ISA(zeros_are_equal) {
    ix_case c = case_new(1, 1, 16, 20, 3);
    ix_data d = data_new(&c);
    const ix_found f = found_new(&c);
    ix_how how = how_on(isa);
    c.linear = 1;
    for (int i = 0; i < 20 * 16; i++) d.k[i] = i % 32 == 0 ? -1e-30f : 0.0f;
    for (int i = 0; i < 20 * 16; i++) d.q[i] = 1.0f;
    for (int i = 0; i < 20; i++) d.w[i] = 1e-30f;
    REQUIRE(through_ring(&c, &d, &how, &f));
    for (int i = 0; i < 3; i++) CHECK_INT(f.pick[19 * 3 + i], i);
}
/* q in int8 too: off by what int8 is, with scales of q that differ from head to head. */
TEST_EACH_ISA(q_in_q8_is_near) {
    ix_case c = case_new(12, 1, 64, 80, 5);
    ix_data d = data_new(&c);
    const ix_found f = found_new(&c);
    ix_how how = how_on(isa);
    c.type = c.compute = SWA_Q8;
    for (int i = 0; i < 80 * 12 * 64; i++) d.q[i] *= (float)(1 + i / 64 % 12);
    REQUIRE(through_ring(&c, &d, &how, &f));
    CHECK_CLOSE(f.score, oracle(&c, &d), lists_of(&c) * (size_t)columns(&c), 1e-2);
    lists_follow(&c, &f);
}
/* -inf is a score like any other, but hidden keys are not picked. */
TEST(no_list_without_keys) {
    ix_case c = case_new(3, 1, 8, 40, 5);
    const ix_data d = data_new(&c);
    const ix_found f = found_new(&c);
    swa_index ix = index_of(&c, &d, &f, 0);
    swa_rows rows;
    memset(&rows, 0, sizeof rows);
    rows.shape = c.shape;
    rows.window = c.window;
    rows.n_tokens = 40;
    rows.scratch_bytes = swa_select_bytes(&c.shape, &ix, 2);
    rows.scratch = t_alloc(rows.scratch_bytes);
    for (int i = 0; i < 40 * 5; i++) f.pick[i] = 7; /* all of it is written */
    for (int i = 0; i < 40 * 40; i++) f.score[i] = 7.0f;
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int part = 0; part < 2; part++) REQUIRE_OK(swa_select_rows_part(&rows, &ix, phase, part, 2));
    for (int i = 0; i < 40 * 5; i++) CHECK_INT(f.pick[i], -1);
    for (int i = 0; i < 40 * 40; i++) CHECK(!((double)f.score[i] > -HUGE_VAL));
}
/* One query of n heads over segments of the caller's. */
static swa_rows one_query(const ix_case *c, const swa_kv *kv, int n_kv, int64_t pos, const swa_index *ix, int parts) {
    swa_rows rows;
    memset(&rows, 0, sizeof rows);
    rows.shape = c->shape;
    rows.window = c->window;
    rows.pos = pos;
    rows.n_tokens = 1;
    rows.kv = kv;
    rows.n_kv = n_kv;
    rows.scratch_bytes = swa_select_bytes(&c->shape, ix, parts);
    rows.scratch = t_alloc(rows.scratch_bytes);
    return rows;
}
/* Keys that begin among the sinks: those before them are none, whatever lies there. */
TEST_EACH_ISA(keys_that_begin_among_the_sinks) {
    ix_case c = case_new(2, 1, 16, 60, 12);
    const ix_data d = data_new(&c);
    const ix_found f = found_new(&c);
    swa_kv kv;
    swa_rows rows;
    swa_index ix;
    sliding(&c, 4, 6);
    ix = index_of(&c, &d, &f, 59);
    memset(&kv, 0, sizeof kv);
    kv.k = d.k;
    kv.n = 60;
    rows = one_query(&c, &kv, 1, 59, &ix, 1);
    rows.isa = isa;
    REQUIRE_OK(swa_select_rows(&rows, &ix)); /* all of them, so that the scratch holds numbers */
    kv.k = d.k + 3 * 16;
    kv.pos = 3;
    kv.n = 57;
    REQUIRE_OK(swa_select_rows(&rows, &ix));
    for (int i = 0; i < 12; i++) CHECK_INT(ix.pick[i], i < 3 ? 3 + i : i < 7 ? 53 + i : -1);
    for (int k = 0; k < 60; k++) CHECK(((double)ix.score[k] > -HUGE_VAL) == ((k >= 3 && k < 6) || k >= 56));
}
/* More local entries than a block has, and more than the parts' joint lists have room for at once. */
TEST(long_lists) {
    enum { N = 52000, TOP = 17000 };
    ix_case c = case_new(1, 1, 4, 1, TOP);
    const float *k = t_random(N * 4, 1.0f), *q = t_random(4, 1.0f);
    int32_t *pick[2] = { (int32_t *)t_alloc(TOP * sizeof(int32_t)), (int32_t *)t_alloc(TOP * sizeof(int32_t)) };
    swa_kv kv;
    swa_index ix;
    memset(&kv, 0, sizeof kv);
    memset(&ix, 0, sizeof ix);
    kv.k = k;
    kv.n = N;
    ix.q.p = q;
    ix.top = TOP;
    for (int way = 0; way < 2; way++) {
        const swa_rows rows = (ix.pick = pick[way], one_query(&c, &kv, 1, N - 1, &ix, 3));
        for (int phase = 0; phase < SWA_PHASES; phase++)
            for (int part = 0; part < 1 + 2 * way; part++)
                REQUIRE_OK(swa_select_rows_part(&rows, &ix, phase, part, 1 + 2 * way));
    }
    CHECK(!memcmp(pick[0], pick[1], TOP * sizeof **pick));
    ix.local = TOP;
    const swa_rows rows = one_query(&c, &kv, 1, N - 1, &ix, 1);
    REQUIRE_OK(swa_select_rows(&rows, &ix));
    for (int i = 0; i < TOP; i++) CHECK_INT(ix.pick[i], N - TOP + i);
}
/* An entry is an int32, also of a key behind the query; scratch is for as many parts as are said; and a whole call
   between the phases of another's parts takes their scratch. */
TEST(index_limits) {
    ix_case c = case_new(2, 1, 16, 60, 5);
    const ix_data d = data_new(&c);
    const ix_found f = found_new(&c), g = found_new(&c);
    const swa_index ix = index_of(&c, &d, &f, 0), other = index_of(&c, &d, &g, 0);
    const ix_how how = how_on(SWA_ISA_BEST);
    swa_rows rows;
    swa_cache ring;
    swa_index far_ix = ix;
    swa_kv kv[2];
    memset(kv, 0, sizeof kv);
    kv[0].k = d.k;
    kv[0].n = 20;
    kv[1].k = d.k;
    kv[1].n = 1;
    kv[1].pos = (int64_t)1 << 31;
    far_ix.score = NULL;
    c.window = swa_window_flash(-1, -1);
    rows = one_query(&c, kv, 2, 19, &far_ix, 1);
    CHECK_STATUS(swa_select_rows(&rows, &far_ix), SWA_ERR_OVERFLOW);
    far_ix.block = 2;
    CHECK_OK(swa_select_rows(&rows, &far_ix));
    c.window = swa_window_causal();
    rows = one_query(&c, kv, 1, 19, &ix, 1);
    CHECK_STATUS(swa_select_rows_part(&rows, &ix, 0, 0, 3), SWA_ERR_MEMORY);
    REQUIRE(open_cache(&c, &how, &c.window, 2, &ring));
    REQUIRE_OK(swa_step_one(&ring, 0, 0, 60));
    REQUIRE(store(&c, &d, &ring, 0));
    for (int part = 0; part < 2; part++) REQUIRE_OK(swa_select_part(&ring, 0, &ix, 0, part, 2));
    REQUIRE_OK(swa_select(&ring, 0, &other));
    CHECK_STATUS(swa_select_part(&ring, 0, &ix, 1, 0, 2), SWA_ERR_ORDER);
}
/* A window of columns, strides of the caller's, and a list without scores or scores without a list. */
TEST(strides_and_columns) {
    ix_case c = case_new(6, 1, 24, 90, 9);
    const ix_data d = data_new(&c);
    ix_found f, g;
    ix_how how;
    swa_cache kv;
    swa_index ix;
    float *w;
    c.lists = 3;
    f = found_new(&c);
    memset(&how, 0, sizeof how);
    REQUIRE(through_ring(&c, &d, &how, &f));
    REQUIRE(open_cache(&c, &how, &c.window, 2, &kv));
    REQUIRE_OK(swa_step_one(&kv, 0, 0, 90));
    REQUIRE(store(&c, &d, &kv, 0));
    g.pick = (int32_t *)t_alloc(90 * 64 * sizeof *g.pick);
    g.score = t_floats(3 * 90 * 40);
    ix = index_of(&c, &d, &f, 0);
    ix.pick = g.pick;
    ix.pick_token = 64;
    ix.pick_list = 20;
    ix.score = g.score;
    ix.score_first = 30;
    ix.score_n = 40;
    ix.score_token = 40;
    ix.score_list = 90 * 40;
    w = t_floats(90 * 11); /* and rows of weights that lie apart */
    for (int t = 0; t < 90; t++) memcpy(w + t * 11, d.w + t * 6, 6 * sizeof *w);
    ix.w = w;
    ix.w_token = 11;
    REQUIRE(select_parts(&kv, &ix, 2));
    for (int t = 0; t < 90; t++)
        for (int l = 0; l < 3; l++) {
            CHECK(!memcmp(g.pick + t * 64 + l * 20, f.pick + (t * 3 + l) * 9, 9 * sizeof *f.pick));
            CHECK_BITS(g.score + l * 90 * 40 + t * 40, f.score + (t * 3 + l) * 90 + 30, 40);
        }
    ix = index_of(&c, &d, &f, 0);
    g.pick = (int32_t *)t_alloc(lists_of(&c) * 9 * sizeof *g.pick);
    ix.pick = g.pick;
    ix.score = NULL;
    REQUIRE(select_parts(&kv, &ix, 2));
    CHECK(!memcmp(g.pick, f.pick, lists_of(&c) * 9 * sizeof *g.pick));
    ix = index_of(&c, &d, &f, 0);
    g.score = t_floats(lists_of(&c) * 90);
    ix.score = g.score;
    ix.top = 0;
    ix.pick = NULL;
    REQUIRE(select_parts(&kv, &ix, 2));
    CHECK_BITS(g.score, f.score, lists_of(&c) * 90);
}
