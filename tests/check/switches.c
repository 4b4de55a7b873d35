/* switches.c - what must still work when a part is left out, for switches.py: attention of the types that are there, on
   every instruction set that is, and a plain no for the types that are not. */
#define SWA_IMPLEMENTATION
#include "../../swa.h"
#include "../attend.h"

static int left_out(swa_type type) {
#ifdef SWA_NO_F16
    if (type == SWA_F16) return 1;
#endif
#ifdef SWA_NO_BF16
    if (type == SWA_BF16) return 1;
#endif
#ifdef SWA_NO_Q8
    if (type == SWA_Q8) return 1;
#endif
#ifdef SWA_NO_STAGED
    if (type == SWA_Q8_32 || type == SWA_E4M3 || type == SWA_E5M2) return 1;
#endif
    return type == SWA_BOOL_KEEP; /* never a type of rows */
}
TEST_EACH_ISA(types_that_are_there) {
    static const swa_type types[] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8, SWA_Q8_32, SWA_E4M3, SWA_E5M2 };
    for (int i = 0; i < 7; i++)
        for (int heads = 1; heads <= 8; heads *= 2) {
            at_case c = at_new(heads, 1, 20, 20, 50);
            at_data d, s;
            at_how how;
            const size_t n = 50 * at_o_row(&c), rows = 50 * (size_t)heads;
            float *out = t_floats(n), *lse = t_floats(rows);
            double *want = t_doubles(n), *want_lse = t_doubles(rows);
            if (left_out(types[i])) continue;
            how = at_on(isa);
            c.k_type = c.v_type = types[i];
            at_sliding(&c, 17);
            d = at_make(&c);
            s = at_stored(&c, &d);
            at_oracle(&c, &s, want, want_lse);
            for (how.chunk = 1; how.chunk < 50; how.chunk += 24) {
                t_label("type %d, %d heads, chunks of %d", (int)types[i], heads, how.chunk);
                REQUIRE(at_ring(&c, &d, &how, out, lse));
                CHECK_CLOSE(out, want, n, 1e-5);
                if (types[i] == SWA_Q8) continue; /* callers' rows are never q8 */
                REQUIRE(at_rows(&c, &s, &how, out, lse));
                CHECK_CLOSE(out, want, n, 1e-5);
            }
        }
}
static size_t bytes_of(swa_type type) {
    swa_window w = swa_window_sliding(8);
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    d.shape.n_heads = d.shape.n_kv_heads = 2;
    d.shape.head_dim = 16;
    d.n_layers = d.n_windows = 1;
    d.windows = &w;
    d.k_type = d.v_type = type;
    return swa_cache_bytes(&d);
}
TEST(types_that_are_left_out) {
    static const swa_type types[] = {
        SWA_F32, SWA_F16, SWA_BF16, SWA_Q8, SWA_Q8_32, SWA_E4M3, SWA_E5M2, SWA_BOOL_KEEP
    };
    for (int i = 0; i < 8; i++) {
        t_label("type %d", (int)types[i]);
        CHECK((bytes_of(types[i]) == 0) == left_out(types[i]));
    }
}
TEST(instruction_sets_that_are_left_out) {
#if defined(SWA_NO_AVX2) || defined(SWA_NO_SIMD)
    CHECK(!swa_isa_usable(SWA_ISA_AVX2));
#endif
#if defined(SWA_NO_AVX512) || defined(SWA_NO_SIMD)
    CHECK(!swa_isa_usable(SWA_ISA_AVX512));
#endif
    CHECK(swa_isa_usable(SWA_ISA_SCALAR) && swa_isa_usable(swa_isa_best()));
}
/* Rows with a tail: a cache of them, or a plain no. */
TEST(latents_that_are_left_out) {
    swa_cache_desc d;
    swa_cache kv;
    memset(&d, 0, sizeof d);
    d.shape.n_heads = d.shape.n_kv_heads = 1;
    d.shape.head_dim = 32;
    d.shape.tail_dim = 16;
    d.shape.v_in_k = 1;
    d.n_layers = 1;
    d.max_context = 16;
#ifdef SWA_NO_LATENTS
    CHECK(swa_cache_bytes(&d) == 0);
    CHECK_STATUS(swa_cache_init(&kv, &d, t_alloc(64), 64), SWA_ERR_UNSUPPORTED);
#else
    REQUIRE(swa_cache_init(&kv, &d, t_alloc(swa_cache_bytes(&d)), swa_cache_bytes(&d)) == SWA_OK);
#endif
}
/* Scores that are capped: as many as there are, or a plain no. */
TEST(modifications_that_are_left_out) {
    at_case c = at_new(4, 1, 20, 20, 5);
    at_data d = at_make(&c);
    const float *q = d.q;
    float *out = t_floats(4 * 20);
    swa_kv kv;
    swa_rows r;
    swa_attn a;
    memset(&kv, 0, sizeof kv);
    memset(&a, 0, sizeof a);
    kv.k = d.k;
    kv.v = d.v;
    kv.n = 5;
    at_one_query(&r, 4, 20, &kv, 1, 4);
    a.q.p = q;
    a.out.p = out;
    a.softcap = 30.0f;
#ifdef SWA_NO_MODS
    CHECK_STATUS(swa_attention(&r, &a), SWA_ERR_UNSUPPORTED);
#else
    REQUIRE(swa_attention(&r, &a) == SWA_OK);
#endif
}
/* A list of all keys: the bits of a call without, or a plain no. */
TEST(lists_that_are_left_out) {
    at_case c = at_new(4, 2, 20, 20, 50);
    at_data d = at_make(&c), s = at_stored(&c, &d);
    const size_t n = 4 * 20;
    float *out = t_floats(n), *want = t_floats(n);
    int32_t pick[50];
    swa_kv kv;
    swa_rows r;
    swa_attn a;
    for (int i = 0; i < 50; i++) pick[i] = 49 - i;
    memset(&kv, 0, sizeof kv);
    memset(&r, 0, sizeof r);
    memset(&a, 0, sizeof a);
    kv.k = s.k;
    kv.v = s.v;
    kv.n = 50;
    r.shape = c.shape;
    r.pos = 49;
    r.n_tokens = 1;
    r.kv = &kv;
    r.n_kv = 1;
    r.window = swa_window_causal();
    r.scratch_bytes = swa_attention_bytes(&r, 1);
    r.scratch = t_alloc(r.scratch_bytes);
    a.q.p = s.q;
    a.out.p = want;
    REQUIRE(swa_attention(&r, &a) == SWA_OK);
    a.out.p = out;
    a.pick = pick;
    a.pick_n = 50;
#ifdef SWA_NO_LISTS
    CHECK_INT(swa_attention(&r, &a), SWA_ERR_UNSUPPORTED);
#else
    REQUIRE(swa_attention(&r, &a) == SWA_OK);
    CHECK_BITS(out, want, (int)n);
#endif
}
/* A chain that is written as a tree: the bits of a chain, or a plain no. */
TEST(trees_that_are_left_out) {
    static const int32_t parents[5] = { -1, 0, 1, 2, 3 };
    at_case c = at_new(4, 2, 20, 20, 5);
    at_data d = at_make(&c);
    float *out = t_floats(5 * 4 * 20), *want = t_floats(5 * 4 * 20);
    at_how how;
    memset(&how, 0, sizeof how);
    REQUIRE(at_ring(&c, &d, &how, want, NULL));
    how.parents = parents;
#ifdef SWA_NO_LISTS
    swa_cache kv;
    swa_run run = t_run(0, 0, 5);
    run.parents = parents;
    REQUIRE(at_cache(&kv, &c, &how));
    CHECK_STATUS(swa_step_begin(&kv, &run, 1), SWA_ERR_UNSUPPORTED);
    (void)out;
#else
    REQUIRE(at_ring(&c, &d, &how, out, NULL));
    CHECK_BITS(out, want, 5 * 4 * 20);
#endif
}
