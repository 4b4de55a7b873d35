/* The types that only the stage widens: q8 with a scale per 32 numbers, fp8 in both formats. Their numbers against the
   definition, one by one; then a ring or rows in such a type against the same numbers in f32, to the bit: what is
   attended is what stands there, whatever the kernel, compute, capacity or way to store. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "attend.h"

static const swa_type staged[3] = { SWA_Q8_32, SWA_E4M3, SWA_E5M2 };
static const char *const staged_name[3] = { "q8_32", "e4m3", "e5m2" };

/* ---- the formats, by their definition ---- */

/* The number of a code: sign, exponent, mantissa. NaN where it is none. */
static double fp8_value(int e5m2, int code) {
    const int bits = e5m2 ? 2 : 3, bias = e5m2 ? 15 : 7, e = (code & 127) >> bits, m = code & ((1 << bits) - 1);
    const double sign = code & 128 ? -1.0 : 1.0;
    if (e5m2 && e == 31) return m ? (double)NAN : sign * HUGE_VAL;
    if (!e5m2 && (code & 127) == 127) return (double)NAN;
    return sign * (e ? ldexp(1.0 + ldexp(m, -bits), e - bias) : ldexp(m, 1 - bias - bits));
}
/* The nearest finite number, of two the one with an even code. */
static double fp8_round(int e5m2, double x) {
    const int last = e5m2 ? 0x7b : 0x7e;
    int best = 0;
    for (int code = 1; code <= last; code++) {
        const double off = fabs(fabs(x) - fp8_value(e5m2, code)), now = fabs(fabs(x) - fp8_value(e5m2, best));
        if (off < now || (off <= now && code % 2 == 0)) best = code;
    }
    return x < 0 ? -fp8_value(e5m2, best) : fp8_value(e5m2, best);
}
/* Stores rows of one head in a ring and reads them back. */
static int through_a_ring(int isa, swa_type type, int k_rows, int n, int dim, const float *k, const float *v, float *k2,
                          float *v2) {
    at_case c = at_new(1, 1, dim, dim, n);
    at_how how = at_on(isa);
    swa_cache kv;
    swa_attn a;
    c.k_type = c.v_type = type;
    how.k_rows = k_rows;
    memset(&a, 0, sizeof a);
    a.mode = SWA_STORE_ONLY;
    a.k.p = k;
    a.v.p = v;
    return at_cache(&kv, &c, &how) && CHECK_OK(swa_step_one(&kv, 0, 0, n)) && CHECK_OK(swa_attend(&kv, 0, &a))
        && CHECK_OK(swa_cache_read(&kv, 0, 0, 0, n, k2, v2));
}
/* One query over one key whose V is given: what comes out is that row. */
static int through_attention(int isa, swa_type type, const void *v, int dim, float *out) {
    float *q = t_floats((size_t)dim), *k = t_floats((size_t)dim);
    swa_kv kv;
    swa_rows r;
    swa_attn a;
    int ok;
    memset(&kv, 0, sizeof kv);
    memset(&a, 0, sizeof a);
    for (int i = 0; i < dim; i++) q[i] = k[i] = 0.0f;
    kv.k = k;
    kv.v = v;
    kv.k_type = SWA_F32;
    kv.v_type = type;
    kv.n = 1;
    at_one_query(&r, 1, dim, &kv, 1, 0);
    r.isa = isa;
    a.q.p = q;
    a.out.p = out;
    ok = CHECK_OK(swa_attention(&r, &a));
    return ok;
}

TEST_EACH_ISA(staged_every_code_of_fp8) {
    unsigned char code[256];
    float out[256];
    for (int i = 0; i < 256; i++) code[i] = (unsigned char)i;
    for (int e5m2 = 0; e5m2 < 2; e5m2++) {
        REQUIRE(through_attention(isa, e5m2 ? SWA_E5M2 : SWA_E4M3, code, 256, out));
        for (int i = 0; i < 256; i++) {
            const double want = fp8_value(e5m2, i);
            t_label("%s code %02x", staged_name[1 + e5m2], (unsigned)i);
            if (want - want == 0.0) CHECK_NEAR(out[i], want, 0.0);
            else if (want != want) CHECK(out[i] != out[i]);
            else CHECK(out[i] > FLT_MAX || out[i] < -FLT_MAX);
        }
    }
}
/* A row that ends where its memory does, of any length. */
TEST_EACH_ISA(staged_rows_end_with_their_numbers) {
    for (int dim = 1; dim < 70; dim++)
        for (int e5m2 = 0; e5m2 < 2; e5m2++) {
            unsigned char *code = (unsigned char *)t_alloc((size_t)dim);
            float *out = t_floats((size_t)dim);
            for (int i = 0; i < dim; i++) code[i] = (unsigned char)(t_int(0, 0x7a) + 128 * t_int(0, 1));
            t_label("%s, %d numbers", staged_name[1 + e5m2], dim);
            REQUIRE(through_attention(isa, e5m2 ? SWA_E5M2 : SWA_E4M3, code, dim, out));
            for (int i = 0; i < dim; i++) CHECK_NEAR(out[i], fp8_value(e5m2, code[i]), 0.0);
        }
}
/* Ties, what lies a step beside them, saturation, subnormals, numbers of every size. */
TEST_EACH_ISA(staged_rounding_of_fp8) {
    enum { N = 60, DIM = 45, ALL = N * DIM };
    float *k = t_floats(ALL), *v = t_floats(ALL), *k2 = t_floats(ALL), *v2 = t_floats(ALL);
    for (int e5m2 = 0; e5m2 < 2; e5m2++)
        for (int k_rows = 0; k_rows < 2; k_rows++) {
            const int last = e5m2 ? 0x7b : 0x7e;
            int n = 0;
            for (int code = 0; code <= last; code++) {
                const float x = (float)fp8_value(e5m2, code);
                /* behind the largest: where the next number would be */
                const float y = code < last ? (float)fp8_value(e5m2, code + 1) : e5m2 ? 65536.0f : 480.0f;
                const float tie = (x + y) / 2;
                const float at[6] = {
                    x, tie, nextafterf(tie, x), nextafterf(tie, y), nextafterf(x, 0), nextafterf(x, y)
                };
                for (int i = 0; i < 6; i++) k[n++] = t_int(0, 1) ? at[i] : -at[i];
            }
            for (; n < ALL; n++) k[n] = ldexpf(t_unit() - 0.5f, t_int(-30, 30));
            k[5] = FLT_MAX;
            k[6] = -FLT_MAX;
            k[7] = HUGE_VALF;
            k[8] = -HUGE_VALF;
            k[9] = 1e-45f;
            k[10] = -0.0f;
            for (int i = 0; i < ALL; i++) v[i] = k[ALL - 1 - i];
            REQUIRE(through_a_ring(isa, e5m2 ? SWA_E5M2 : SWA_E4M3, k_rows, N, DIM, k, v, k2, v2));
            for (int i = 0; i < ALL; i++) {
                const double want = fp8_round(e5m2, k[i] > 1e6f ? 1e6 : k[i] < -1e6f ? -1e6 : (double)k[i]);
                t_label("%s of %.9g", staged_name[1 + e5m2], (double)k[i]);
                CHECK_NEAR(k2[i], want, 0.0);
                CHECK_NEAR(v2[ALL - 1 - i], want, 0.0);
                CHECK(!signbit(k2[i]) == !signbit(k[i]));
            }
            k[0] = (float)NAN;
            k[1] = -(float)NAN;
            REQUIRE(through_a_ring(isa, e5m2 ? SWA_E5M2 : SWA_E4M3, k_rows, N, DIM, k, k, k2, v2));
            t_label("%s of NaN", staged_name[1 + e5m2]);
            CHECK(k2[0] != k2[0] && k2[1] != k2[1] && v2[0] != v2[0] && v2[1] != v2[1] && k2[2] - k2[2] == 0.0f);
        }
}
/* The largest of each 32 numbers of a row is 127 of its scale; the last group may be short. */
TEST_EACH_ISA(staged_rounding_of_q8_32) {
    static const int dims[] = { 1, 16, 32, 33, 45, 64, 100 };
    for (int i = 0; i < 7; i++)
        for (int k_rows = 0; k_rows < 2; k_rows++) {
            enum { N = 37 };
            const int dim = dims[i];
            const size_t all = (size_t)(N * dim);
            float *k = t_random(all, 1.0f), *v = t_random(all, 3.0f), *k2 = t_floats(all), *v2 = t_floats(all);
            for (size_t j = 0; j < all; j += 29) k[j] *= 50.0f;
            for (int d = 0; d < dim; d++) v[3 * dim + d] = d % 2 ? 1e-38f : 0.0f;
            t_label("%d numbers, k_rows %d", dim, k_rows);
            REQUIRE(through_a_ring(isa, SWA_Q8_32, k_rows, N, dim, k, v, k2, v2));
            for (int row = 0; row < N; row++)
                for (int d = 0; d < dim; d++) {
                    const int first = d / 32 * 32, end = first + 32 < dim ? first + 32 : dim;
                    float top = 0.0f, top_v = 0.0f;
                    for (int j = first; j < end; j++) {
                        if (fabsf(k[row * dim + j]) > top) top = fabsf(k[row * dim + j]);
                        if (fabsf(v[row * dim + j]) > top_v) top_v = fabsf(v[row * dim + j]);
                    }
                    /* the product is made in float, and a tie may fall either way by the rounding of its factors */
                    CHECK_NEAR(k2[row * dim + d] / (top / 127), rint((double)k[row * dim + d] * 127 / top), 1e-4);
                    CHECK_NEAR(k2[row * dim + d], k[row * dim + d], (double)top / 253.9);
                    CHECK_NEAR(v2[row * dim + d], v[row * dim + d], row == 3 ? 1e-37 : (double)top_v / 253.9);
                }
            /* a NaN takes its group with it, an infinity counts as the largest float: neither reaches further */
            k[0] = (float)NAN;
            v[0] = HUGE_VALF;
            v[2 * dim] = -HUGE_VALF;
            REQUIRE(through_a_ring(isa, SWA_Q8_32, k_rows, N, dim, k, v, k2, v2));
            for (int d = 0; d < dim; d++) CHECK((k2[d] != k2[d]) == (d < 32) && v2[d] - v2[d] == 0.0f);
            CHECK(v2[0] > 3e38f && v2[2 * dim] < -3e38f && k2[dim] - k2[dim] == 0.0f);
        }
}

/* ---- what is attended is what stands there ---- */

/* Case number i over several shapes, windows and ways to multiply; the types by the caller. */
static at_case staged_case(int i) {
    static const swa_type computes[3] = { SWA_F32, SWA_BF16, SWA_BF16_TILE };
    at_case c = at_new(4, 2, 40, 24, 60);
    if (i % 6 == 1) c = at_new(1, 1, 64, 64, 60);
    if (i % 6 == 2) c = at_new(8, 1, 32, 33, 60);
    if (i % 6 == 3) c = at_new(16, 1, 70, 16, 40);
    if (i % 6 >= 4) { /* latents */
        c = at_new(i % 6 == 4 ? 4 : 20, 1, 64, 48, 40);
        c.shape.v_in_k = 1;
        c.shape.tail_dim = 8;
    }
    c.start = i % 2 ? 0 : 230;
    c.compute = computes[i / 6 % 3];
    if (i % 4 == 3) at_pinned(&c, 17, 5);
    else at_sliding(&c, i % 4 == 2 ? 5 : 33);
    if (i % 4 == 3 && i % 2) c.q_sink = 1;
    return c;
}
static void staged_types(at_case *c, int i) {
    static const swa_type all[6] = { SWA_F16, SWA_Q8_32, SWA_E4M3, SWA_F32, SWA_E5M2, SWA_BF16 };
    c->k_type = staged[i % 3];
    c->v_type = c->shape.v_in_k ? c->k_type : all[i / 3 % 6];
    c->tail_type = all[i / 2 % 6];
    if (i % 7 == 5 && !c->shape.v_in_k) {
        c->v_type = c->k_type;
        c->k_type = all[i / 5 % 6];
    }
}
TEST_EACH_ISA(staged_rings_have_the_bits_of_f32) {
    for (int i = 0; i < 54; i++) {
        const t_block *mark = t_.blocks;
        at_case c = staged_case(i), plain;
        at_data d, s;
        at_how how = at_on(isa);
        size_t n, rows;
        float *want, *want_lse, *out, *lse;
        if (t_leave(isa, i, 0, 3)) continue;
        staged_types(&c, i);
        plain = c;
        plain.k_type = plain.v_type = plain.tail_type = SWA_F32;
        d = at_make(&c);
        s = at_stored(&c, &d);
        n = (size_t)c.n * at_o_row(&c);
        rows = (size_t)(c.n * c.shape.n_heads);
        want = t_floats(n);
        want_lse = t_floats(rows);
        out = t_floats(n);
        lse = t_floats(rows);
        REQUIRE(at_ring(&plain, &s, &how, want, want_lse));
        for (int way = 0; way < 7; way++) {
            how = at_on(isa);
            how.chunk = way == 0 ? 0 : way < 4 ? way * way : 1;
            how.parts = way == 2 ? 3 : 0;
            how.layout = way % 3;
            how.k_rows = way == 3 || way == 5;
            how.audit = way == 4;
            how.others = way == 1 ? 2 : 0;
            how.put_first = way == 6;
            if (way >= 4) how.capacity = way == 4 ? 45 : 64;
            if (way >= 4) how.origin = way == 5 ? 11 : 0;
            t_label("case %d way %d", i, way);
            REQUIRE(at_ring(&c, &d, &how, out, lse));
            CHECK_BITS(out, want, n);
            CHECK_BITS(lse, want_lse, rows);
        }
        how = at_on(isa);
        for (int way = 0; way < 3; way++) { /* rows of the caller's; q8_32 as f32 there, see below */
            how.chunk = way;
            how.cuts = 3 * way;
            how.layout = way;
            t_label("case %d, rows, way %d", i, way);
            REQUIRE(at_rows(&c, &s, &how, out, lse));
            CHECK_BITS(out, want, n);
        }
        t_free_to(mark);
    }
}
/* Beside the numbers that were given: what the types cost, and that one scale per 32 costs less than one per row. */
TEST_EACH_ISA(staged_errors) {
    static const swa_type types[4] = { SWA_Q8, SWA_Q8_32, SWA_E4M3, SWA_E5M2 };
    static const double most[4] = { 8e-3, 6e-3, 4e-2, 8e-2 };
    double error[4];
    at_case c = at_new(4, 2, 128, 128, t_thin(isa) ? 90 : 300);
    size_t n = (size_t)c.n * at_o_row(&c);
    at_how how = at_on(isa);
    at_data d;
    double *want = t_doubles((int)n), *lse = t_doubles(c.n * 4);
    float *out = t_floats(n);
    at_sliding(&c, 2 * c.n / 3);
    c.size = 1.0f;
    d = at_make(&c);
    at_oracle(&c, &d, want, lse);
    how.chunk = 64;
    for (int t = 0; t < 4; t++) {
        double wrong = 0, whole = 0;
        c.k_type = c.v_type = types[t];
        REQUIRE(at_ring(&c, &d, &how, out, NULL));
        for (size_t i = 0; i < n; i++) {
            wrong += ((double)out[i] - want[i]) * ((double)out[i] - want[i]);
            whole += want[i] * want[i];
        }
        error[t] = sqrt(wrong / whole);
        t_label("type %d: relative error %.2e", (int)types[t], error[t]);
        CHECK(error[t] < most[t] && error[t] > most[t] / 8);
    }
    CHECK(error[1] < error[0]);
}

/* ---- blocks of 34 bytes, as ggml has them ---- */

/* The rows of src as blocks; what they stand for is written back. */
static unsigned char *blocks_of(float *src, size_t numbers) {
    unsigned char *to = (unsigned char *)t_alloc(numbers / 32 * 34), *p = to;
    for (size_t i = 0; i < numbers; i += 32, p += 34) {
        float top = 0.0f;
        uint16_t half;
        int e;
        for (size_t j = i; j < i + 32; j++)
            if (fabsf(src[j]) > top) top = fabsf(src[j]);
        (void)frexpf(top / 127, &e);
        top = ldexpf(rintf(ldexpf(top / 127, 10 - e)), e - 10); /* a number that a half holds */
        half = at_half(top);
        memcpy(p, &half, 2);
        for (size_t j = i; j < i + 32; j++) {
            int x = (int)rintf(src[j] / top);
            x = x > 127 ? 127 : x < -127 ? -127 : x;
            if (t_int(0, 99) == 0) x = -128; /* which no rounding gives, and a byte may be */
            p[2 + j - i] = (unsigned char)(x & 255);
            src[j] = (float)x * top;
        }
    }
    return to;
}
TEST_EACH_ISA(staged_blocks_of_the_caller) {
    static const int heads[3] = { 1, 4, 20 };
    for (int i = 0; i < 12; i++) {
        const int latent = i % 4 == 3;
        at_case c = at_new(2 * heads[i % 3], 2, 64, latent ? 32 : 96, 70);
        swa_kv kv[2];
        swa_rows r;
        size_t n, dk, dv;
        float *k, *v, *tail, *q, *q_tail, *out[2];
        if (t_leave(isa, i, 0, 3)) continue;
        c.shape.v_in_k = latent;
        c.shape.tail_dim = latent ? 32 : 0;
        n = 70;
        dk = 2 * 64;
        dv = 2 * (size_t)c.shape.v_dim;
        k = t_random(n * dk, 1.0f);
        v = t_random(n * dv, 1.0f);
        tail = t_random(n * 64, 1.0f);
        q = t_random(n * (size_t)c.shape.n_heads * 64, 1.0f);
        q_tail = t_random(n * (size_t)c.shape.n_heads * 32, 1.0f);
        memset(kv, 0, sizeof kv);
        kv[0].k_type = kv[0].v_type = kv[0].tail_type = SWA_Q8_32;
        kv[0].k = blocks_of(k, n * dk);
        kv[0].v = blocks_of(v, n * dv);
        kv[0].tail = blocks_of(tail, n * 64);
        kv[1].k = k;
        kv[1].v = v;
        kv[1].tail = tail;
        for (int w = 0; w < 2; w++) {
            kv[w].pos = 100;
            kv[w].n = i % 2 ? 70 : 35; /* of every second row only: strides */
            if (i % 2 == 0) {
                kv[w].k_token = 2 * (int64_t)dk;
                kv[w].v_token = 2 * (int64_t)dv;
                kv[w].tail_token = 128;
                kv[w].k_head = 64;
                kv[w].v_head = c.shape.v_dim;
                kv[w].tail_head = 32;
            }
        }
        for (int w = 0; w < 2; w++) {
            swa_attn a;
            memset(&r, 0, sizeof r);
            memset(&a, 0, sizeof a);
            r.shape = c.shape;
            r.isa = isa;
            r.window = swa_window_sliding(50);
            r.pos = 110;
            r.n_tokens = i < 6 ? 1 : 40;
            r.kv = &kv[w];
            r.n_kv = 1;
            r.scratch_bytes = swa_attention_bytes(&r, 1);
            r.scratch = t_alloc(r.scratch_bytes);
            a.q.p = q;
            a.q_tail.p = latent ? q_tail : NULL;
            a.scale = latent ? 0.1f : 0.0f;
            a.out.p = out[w] = t_floats(n * at_o_row(&c));
            t_label("case %d", i);
            REQUIRE_OK(swa_attention(&r, &a));
        }
        CHECK_BITS(out[0], out[1], (size_t)r.n_tokens * at_o_row(&c));
    }
}
/* Rows of the caller's in blocks have whole ones, every head of them. */
TEST(staged_blocks_refused) {
    float q[96] = { 0 }, out[96];
    static unsigned char rows[4096];
    for (int i = 0; i < 9; i++) {
        swa_kv kv;
        swa_rows r;
        swa_attn a;
        memset(&kv, 0, sizeof kv);
        memset(&r, 0, sizeof r);
        memset(&a, 0, sizeof a);
        kv.k = kv.v = kv.tail = rows;
        kv.n = 3;
        kv.k_type = SWA_Q8_32;
        kv.tail_type = SWA_F32;
        kv.v_type = i == 8 ? SWA_E4M3 : SWA_Q8_32;
        r.shape.n_heads = r.shape.n_kv_heads = 1;
        r.shape.head_dim = i == 1 ? 40 : 64;
        r.shape.v_dim = i == 2 || i == 8 ? 33 : 64;
        r.shape.tail_dim = i == 6 || i == 7 ? 16 : 0;
        if (i == 6) kv.tail_type = SWA_Q8_32;
        if (i == 3) kv.k_token = 80;
        if (i == 4) kv.v_token = 100;
        if (i == 5) kv.k_head = 70;
        r.kv = &kv;
        r.n_kv = 1;
        r.n_tokens = 1;
        r.pos = 2;
        a.q.p = q;
        a.q_tail.p = q + 64;
        if (!r.shape.tail_dim) a.q_tail.p = NULL;
        a.out.p = out;
        a.scale = 1.0f;
        t_label("case %d", i);
        if (i == 0 || i >= 7) {
            r.scratch_bytes = swa_attention_bytes(&r, 1);
            r.scratch = t_alloc(r.scratch_bytes);
            CHECK_OK(swa_attention(&r, &a));
        } else {
            CHECK(swa_attention_bytes(&r, 1) == 0);
            r.scratch = out;
            CHECK_STATUS(swa_attention(&r, &a), SWA_ERR_UNSUPPORTED);
        }
    }
}
/* Products in int8 are of SWA_Q8 alone, and no weights are in these types. */
TEST(staged_types_where_there_are_none) {
    for (int t = 0; t < 3; t++) {
        at_case c = at_new(1, 1, 32, 32, 4);
        at_how how = at_on(0);
        swa_cache kv;
        swa_attn a;
        float x[128] = { 0 }, out[128];
        c.k_type = staged[t];
        memset(&a, 0, sizeof a);
        a.q.p = a.k.p = a.v.p = x;
        a.out.p = out;
        a.compute = SWA_Q8;
        t_label("%s", staged_name[t]);
        REQUIRE(at_cache(&kv, &c, &how));
        REQUIRE_OK(swa_step_one(&kv, 0, 0, 4));
        CHECK_STATUS(swa_attend(&kv, 0, &a), SWA_ERR_UNSUPPORTED);
        a.compute = staged[t];
        CHECK_STATUS(swa_attend(&kv, 0, &a), SWA_ERR_ARG);
        a.compute = SWA_F32;
        CHECK_OK(swa_attend(&kv, 0, &a));
    }
}
