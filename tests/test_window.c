/* The window: swa_visible against predicates written out here, its inverse, the phrases of swa_explain, and the
   windows that have to be refused. Small windows and positions exhaustively, then the far end of int64. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "test.h"

#define UNLIMITED ((int64_t)-1)

/* What a constructor was asked for, in words of this file. */
enum { KIND_CAUSAL, KIND_SLIDING, KIND_FLASH, KIND_CHUNKED, KIND_SYMMETRIC, KIND_SINKS, KIND_PREFIX, KINDS };
typedef struct {
    int kind;
    int64_t a, b;
    swa_window window;
} asked;

static asked ask(int kind, int64_t a, int64_t b) {
    asked w;
    w.kind = kind;
    w.a = a;
    w.b = b;
    w.window = kind == KIND_CAUSAL    ? swa_window_causal()
             : kind == KIND_SLIDING   ? swa_window_sliding(a)
             : kind == KIND_FLASH     ? swa_window_flash(a, b)
             : kind == KIND_CHUNKED   ? swa_window_chunked(a)
             : kind == KIND_SYMMETRIC ? swa_window_symmetric(a)
             : kind == KIND_SINKS     ? swa_window_sinks(a, (int32_t)b)
                                      : swa_window_prefix(a, b);
    return w;
}
static const char *kind_name(int kind) {
    static const char *const names[KINDS] = { "causal", "sliding", "flash", "chunked", "symmetric", "sinks", "prefix" };
    return names[kind];
}
/* The definitions. Differences of non-negative positions cannot overflow. */
static int should_see(const asked *w, int64_t q, int64_t k) {
    int64_t back;
    if (q < 0 || k < 0) return 0;
    back = q - k;
    switch (w->kind) {
    case KIND_CAUSAL: return back >= 0;
    case KIND_SLIDING: return back >= 0 && back < w->a;
    case KIND_FLASH: return (w->a == UNLIMITED || back <= w->a) && (w->b == UNLIMITED || -back <= w->b);
    case KIND_CHUNKED: return back >= 0 && q / w->a == k / w->a;
    case KIND_SYMMETRIC: return back <= w->a && -back <= w->a;
    case KIND_SINKS: return back >= 0 && (back < w->a || k < w->b);
    default: return (back >= 0 && back < w->a) || (q < w->b && k < w->b);
    }
}
/* Sinks stand apart from the range: this is the predicate without them. */
static int should_range(const asked *w, int64_t q, int64_t k) {
    asked plain = *w;
    if (w->kind == KIND_SINKS) plain.kind = KIND_SLIDING;
    return should_see(&plain, q, k);
}
static void check_small(const asked *w, int64_t limit) {
    t_label("%s(%lld, %lld)", kind_name(w->kind), (long long)w->a, (long long)w->b);
    for (int64_t q = 0; q < limit; q++) {
        int64_t lo = -9, hi = -9;
        CHECK_OK(swa_visible_range(&w->window, q, &lo, &hi));
        for (int64_t k = 0; k < limit + 8; k++) {
            int sees = should_see(w, q, k);
            const char *why = swa_explain(&w->window, q, k);
            CHECK_INT(swa_visible(&w->window, q, k), sees);
            CHECK_INT(k >= lo && k < hi, should_range(w, q, k));
            CHECK_INT(strncmp(why, "visible", 7) == 0, sees);
            CHECK(sees || strncmp(why, "hidden", 6) == 0);
        }
        CHECK_INT(swa_visible(&w->window, q, -1), 0);
        CHECK_INT(swa_visible(&w->window, -1, q), 0);
    }
    CHECK_INT(swa_visible(&w->window, INT64_MIN, INT64_MIN), 0);
}

TEST(every_small_window) {
    asked w = ask(KIND_CAUSAL, 0, 0);
    check_small(&w, 40);
    for (int64_t a = 1; a <= 12; a++) {
        w = ask(KIND_SLIDING, a, 0);
        check_small(&w, 40);
        w = ask(KIND_CHUNKED, a, 0);
        check_small(&w, 40);
        w = ask(KIND_SYMMETRIC, a - 1, 0);
        check_small(&w, 30);
        for (int64_t b = 0; b <= 10; b++) {
            w = ask(KIND_SINKS, a, b);
            check_small(&w, 30);
            w = ask(KIND_PREFIX, a, b);
            check_small(&w, 30);
        }
    }
    for (int64_t a = -1; a <= 9; a++)
        for (int64_t b = -1; b <= 9; b++) {
            w = ask(KIND_FLASH, a, b);
            check_small(&w, 30);
        }
}

TEST(zero_is_causal) {
    swa_window zero;
    asked causal = ask(KIND_CAUSAL, 0, 0);
    memset(&zero, 0, sizeof zero);
    for (int64_t q = 0; q < 20; q++)
        for (int64_t k = 0; k < 24; k++) CHECK_INT(swa_visible(&zero, q, k), should_see(&causal, q, k));
}

/* The fields that the header allows to be set after a constructor. */
TEST(sinks_on_every_kind) {
    asked base[4] = { ask(KIND_CAUSAL, 0, 0), ask(KIND_FLASH, 2, 1), ask(KIND_CHUNKED, 3, 0),
                      ask(KIND_SYMMETRIC, 2, 0) };
    for (int i = 0; i < 4; i++)
        for (int32_t sinks = 0; sinks <= 5; sinks++) {
            swa_window w = base[i].window;
            w.n_sink = sinks;
            t_label("%s with %d sinks", kind_name(base[i].kind), (int)sinks);
            for (int64_t q = 0; q < 20; q++)
                for (int64_t k = 0; k < 24; k++)
                    CHECK_INT(swa_visible(&w, q, k), should_see(&base[i], q, k) || (k < sinks && k <= q));
        }
}

TEST(prefix_on_every_kind) {
    asked base[5] = { ask(KIND_CAUSAL, 0, 0), ask(KIND_FLASH, 2, 1), ask(KIND_CHUNKED, 3, 0), ask(KIND_SYMMETRIC, 4, 0),
                      ask(KIND_FLASH, -1, -1) };
    for (int i = 0; i < 5; i++)
        for (int64_t first = 0; first <= 6; first += 3)
            for (int64_t prefix = 0; prefix <= 12; prefix++) {
                swa_window w = base[i].window;
                w.prefix_first = first;
                w.prefix = prefix;
                t_label("%s, prefix %d..%d", kind_name(base[i].kind), (int)first, (int)prefix);
                for (int64_t q = 0; q < 20; q++)
                    for (int64_t k = 0; k < 24; k++) {
                        int both = q >= first && k >= first && q < prefix && k < prefix;
                        const int none = prefix <= first && first + prefix > 0; /* a length for its end */
                        CHECK_INT(swa_visible(&w, q, k), !none && (both || should_see(&base[i], q, k)));
                    }
            }
}

/* The W of each convention counts the same keys: W of them, the query's own included. */
TEST(number_of_keys) {
    for (int64_t W = 1; W <= 9; W++) {
        swa_window s = swa_window_sliding(W), f = swa_window_flash(W - 1, 0);
        int n = 0;
        for (int64_t k = 0; k < 64; k++) {
            n += swa_visible(&s, 40, k);
            CHECK_INT(swa_visible(&f, 40, k), swa_visible(&s, 40, k));
        }
        CHECK_INT(n, W);
        CHECK_INT(swa_visible(&s, 40, 40 - W), 0);
        CHECK_INT(swa_visible(&s, 40, 41 - W), 1);
        CHECK_INT(swa_visible(&s, 40, 41), 0);
    }
}

/* ---- far away ---- */

/* Positions around a far query, and around the far ends of its range, against the same predicates. */
static void check_far(const asked *w, int64_t q) {
    int64_t lo = -9, hi = -9, at[5];
    t_label("%s(%lld, %lld) at %lld", kind_name(w->kind), (long long)w->a, (long long)w->b, (long long)q);
    if (!CHECK_OK(swa_visible_range(&w->window, q, &lo, &hi))) return;
    CHECK(lo >= 0 && lo <= q && hi > lo);
    at[0] = 0;
    at[1] = lo;
    at[2] = hi - 1;
    at[3] = q;
    at[4] = INT64_MAX;
    for (int i = 0; i < 5; i++)
        for (int64_t step = -3; step <= 3; step++) {
            int64_t k;
            if ((step < 0 && at[i] < -step) || (step > 0 && at[i] > INT64_MAX - step)) continue;
            k = at[i] + step;
            if (k == INT64_MAX) continue; /* not a position: a run must end below it */
            CHECK_INT(swa_visible(&w->window, q, k), should_see(w, q, k));
            CHECK_INT(k >= lo && k < hi, should_range(w, q, k));
            CHECK_INT(strncmp(swa_explain(&w->window, q, k), "visible", 7) == 0, should_see(w, q, k));
        }
}

TEST(positions_and_windows_near_the_end_of_int64) {
    /* clang-format off */
    static const int64_t sizes[] = { 1, 2, 4096, INT32_MAX, (int64_t)INT32_MAX + 1, (int64_t)1 << 53, INT64_MAX / 2,
                                     INT64_MAX - 2, INT64_MAX - 1, INT64_MAX };
    /* clang-format on */
    static const int64_t where[] = {
        0,
        1,
        5000,
        INT32_MAX,
        (int64_t)1 << 40,
        INT64_MAX / 2,
        INT64_MAX - 5000,
        INT64_MAX - 3,
        INT64_MAX - 2,
        INT64_MAX - 1
    };
    const int n = (int)(sizeof sizes / sizeof *sizes), m = (int)(sizeof where / sizeof *where);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) {
            for (int kind = 0; kind < KINDS; kind++) {
                asked w = ask(kind, sizes[i], kind == KIND_SINKS ? INT32_MAX : sizes[(i + j) % n]);
                check_far(&w, where[j]);
            }
            asked left = ask(KIND_FLASH, UNLIMITED, sizes[i]), right = ask(KIND_FLASH, sizes[i], UNLIMITED);
            check_far(&left, where[j]);
            check_far(&right, where[j]);
        }
}

TEST(random_far_positions) {
    for (int i = 0; i < 20000; i++) {
        int64_t a = (int64_t)(((uint64_t)t_u32() << 32 | t_u32()) >> t_int(1, 63));
        int64_t q = (int64_t)(((uint64_t)t_u32() << 32 | t_u32()) >> t_int(1, 63));
        asked w = ask(t_int(0, KINDS - 1), a ? a : 1, t_int(0, 1000));
        check_far(&w, q == INT64_MAX ? q - 1 : q);
    }
}

/* ---- refused ---- */

TEST(nonsense_is_refused) {
    swa_window bad[24];
    int64_t lo = -7, hi = -8;
    int n = 0;
    bad[n++] = swa_window_sliding(0);
    bad[n++] = swa_window_sliding(-1);
    bad[n++] = swa_window_sliding(INT64_MIN);
    bad[n++] = swa_window_flash(-2, 0);
    bad[n++] = swa_window_flash(0, -2);
    bad[n++] = swa_window_flash(INT64_MIN, INT64_MIN);
    bad[n++] = swa_window_chunked(0);
    bad[n++] = swa_window_chunked(-5);
    bad[n++] = swa_window_symmetric(-1);
    bad[n++] = swa_window_sinks(0, 4);
    bad[n++] = swa_window_sinks(4, -1);
    bad[n++] = swa_window_sinks(4, INT32_MIN);
    bad[n++] = swa_window_prefix(0, 3);
    bad[n++] = swa_window_prefix(4, -1);
    bad[n] = swa_window_sliding(4);
    bad[n++].n_sink = -1;
    bad[n] = swa_window_causal();
    bad[n++].prefix = -1;
    bad[n] = swa_window_prefix(4, 9);
    bad[n++].prefix_first = -1;
    bad[n] = swa_window_sliding(4);
    bad[n++].left = -2;
    bad[n] = swa_window_sliding(4);
    bad[n++].right = -2;
    bad[n] = swa_window_chunked(4);
    bad[n++].left = 0;
    bad[n] = swa_window_causal();
    bad[n++].kind = 77;
    bad[n] = swa_window_causal(); /* a band was meant */
    bad[n++].right = 1;
    for (int i = 0; i < n; i++) {
        swa_cache_desc d;
        t_label("bad window %d", i);
        memset(&d, 0, sizeof d);
        d.shape.n_heads = d.shape.n_kv_heads = 1; /* the window is what is wrong */
        d.shape.head_dim = 1;
        d.n_layers = 1;
        d.windows = &bad[i];
        d.n_windows = 1;
        d.max_context = 64;
        CHECK_INT(swa_visible(&bad[i], 3, 3), 0);
        CHECK_STATUS(swa_visible_range(&bad[i], 3, &lo, &hi), SWA_ERR_ARG);
        CHECK(strncmp(swa_explain(&bad[i], 3, 3), "hidden", 6) == 0);
        CHECK_INT(swa_cache_bytes(&d), 0);
        CHECK_INT(swa_required_capacity(&bad[i], 4, 4), 0);
    }
    CHECK(lo == -7 && hi == -8);
    for (int64_t reach = -9; reach <= 0; reach++) {
        swa_window w = swa_window_sliding(reach);
        CHECK_INT(swa_visible(&w, 5, 5), 0);
    }
}

/* Queries in [10, 20) see all keys there, and what the window of 3 shows them; the others see the window alone. */
TEST(prefix_that_begins_later) {
    swa_window w = swa_window_prefix(3, 20);
    w.prefix_first = 10;
    for (int64_t q = 0; q < 30; q++)
        for (int64_t k = 0; k < 30; k++) {
            int inside = q >= 10 && q < 20 && k >= 10 && k < 20;
            t_label("q=%d k=%d", (int)q, (int)k);
            CHECK_INT(swa_visible(&w, q, k), inside || (k <= q && q - k < 3));
        }
}

/* The furthest left extent that the type holds is no limit, as -1 is: a ring for it is a causal one. */
TEST(a_left_extent_without_end) {
    const swa_window all[3] = { swa_window_causal(), swa_window_flash(-1, 0), swa_window_flash(INT64_MAX, 0) };
    size_t bytes[3];
    for (int i = 0; i < 3; i++) {
        swa_cache_desc d;
        t_label("window %d", i);
        memset(&d, 0, sizeof d);
        d.shape.n_heads = d.shape.n_kv_heads = 1;
        d.shape.head_dim = 16;
        d.n_layers = 1;
        d.windows = &all[i];
        d.n_windows = 1;
        d.max_context = 64;
        bytes[i] = swa_cache_bytes(&d);
        CHECK(bytes[i] > 0 && bytes[i] == bytes[0]);
        CHECK_INT(swa_required_capacity(&all[i], 4, 4), swa_required_capacity(&all[0], 4, 4));
    }
}

/* Which way a key lies: the query itself is not ahead, and its right-hand neighbour not behind the window. */
TEST(phrases_at_the_query_itself) {
    const swa_window causal = swa_window_causal(), near = swa_window_sliding(2), wide = swa_window_flash(2, 2);
    CHECK(strcmp(swa_explain(&causal, 5, 5), "visible: in the window") == 0);
    CHECK(strcmp(swa_explain(&wide, 5, 5), "visible: in the window") == 0);
    CHECK(strncmp(swa_explain(&wide, 5, 6), "visible: ahead", 14) == 0);
    CHECK(strcmp(swa_explain(&causal, 5, 6), "hidden: after the query") == 0);
    CHECK(strcmp(swa_explain(&near, 5, 6), "hidden: after the query") == 0);
    CHECK(strcmp(swa_explain(&near, 5, 3), "hidden: further back than the window") == 0);
}

TEST(positions_that_do_not_exist) {
    swa_window w = swa_window_causal();
    CHECK_INT(swa_visible(&w, INT64_MAX, 3), 0);
    CHECK_INT(swa_visible(&w, -1, 0), 0);
    CHECK_INT(swa_visible(&w, 3, -1), 0);
    CHECK(strcmp(swa_explain(&w, INT64_MAX, 3), swa_explain(&w, -1, 0)) == 0);
    CHECK(strcmp(swa_explain(&w, 3, -1), swa_explain(&w, -1, 0)) == 0);
    CHECK(strcmp(swa_explain(&w, 3, 4), swa_explain(&w, -1, 0)) != 0);
}

TEST(range_arguments) {
    swa_window w = swa_window_sliding(4);
    int64_t lo = -7, hi = -8;
    CHECK_STATUS(swa_visible_range(NULL, 3, &lo, &hi), SWA_ERR_ARG);
    CHECK_STATUS(swa_visible_range(&w, 3, NULL, &hi), SWA_ERR_ARG);
    CHECK_STATUS(swa_visible_range(&w, 3, &lo, NULL), SWA_ERR_ARG);
    CHECK_STATUS(swa_visible_range(&w, -1, &lo, &hi), SWA_ERR_ARG);
    CHECK_STATUS(swa_visible_range(&w, INT64_MIN, &lo, &hi), SWA_ERR_ARG);
    CHECK(swa_visible_range(&w, INT64_MAX, &lo, &hi) != SWA_OK);
    CHECK(lo == -7 && hi == -8);
    CHECK_INT(swa_visible(NULL, 3, 3), 0);
    CHECK(swa_explain(NULL, 3, 3) != NULL);
}
