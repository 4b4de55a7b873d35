/* The order of products in bf16, against a model of Intel's tile instruction TDPBF16PS that shares no code with swa.h:
   scores and weighted sums must have the bits that tiles would give, on every instruction set. And the model against
   the instruction, where there is one. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "attend.h"

/* ---- the instruction, in software ---- */

static uint32_t bits_of_float(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static float float_of_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static float bf16_wide(uint16_t h) { return float_of_bits((uint32_t)h << 16); }
static uint16_t bf16_round(float x) {
    uint32_t u = bits_of_float(x);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static float flushed(float x) {
    return (bits_of_float(x) & 0x7f800000) == 0 ? float_of_bits(bits_of_float(x) & 0x80000000) : x;
}
/* a*b + c with one rounding, subnormals zero on both sides; what is tiny after rounding is zero. */
static float fma_flushed(float a, float b, float c) {
    float r;
    a = flushed(a);
    b = flushed(b);
    c = flushed(c);
    r = fmaf(a, b, c);
    if (fabsf(r) == 0x1p-126f && fabsf(fmaf(a * 0x1p24f, b, c * 0x1p24f)) < 0x1p-102f) r *= 0;
    return flushed(r);
}
/* One number of C += A B: 32 products. */
static float tile_model(float c, const uint16_t *a, const uint16_t *b) {
    float even = 0, odd = 0;
    for (int i = 0; i < 32; i += 2) {
        even = fma_flushed(bf16_wide(a[i]), bf16_wide(b[i]), even);
        odd = fma_flushed(bf16_wide(a[i + 1]), bf16_wide(b[i + 1]), odd);
    }
    return flushed(flushed(c) + flushed(even + odd));
}
/* n numbers from absolute index `from` on, in bundles of 32. */
static float tile_dot(int from, int n, const float *a, const float *b) {
    float sum = 0;
    for (int i = 0; i < n;) {
        uint16_t x[32] = { 0 }, y[32] = { 0 };
        do {
            x[(from + i) % 32] = bf16_round(a[i]);
            y[(from + i) % 32] = bf16_round(b[i]);
            i++;
        } while (i < n && (from + i) % 32 != 0);
        sum = tile_model(sum, x, y);
    }
    return sum;
}

/* ---- the library's sums ---- */

/* One call over rows, n keys at positions pos.., queries at the last `tokens` of them; group heads over one KV head. */
typedef struct {
    int dk, dv, dt, group, n, tokens, W;
    int64_t pos;
    float *q, *qt, *k, *kt, *v, *out, *stat;
} tile_case;
static tile_case tile_new(int dk, int dv, int dt, int group, int n, int tokens, int W, int64_t pos) {
    tile_case c = { dk, dv, dt, group, n, tokens, W, pos, NULL, NULL, NULL, NULL, NULL, NULL, NULL };
    c.q = t_random((size_t)(tokens * group * dk), 1.0f);
    c.qt = t_random((size_t)(tokens * group * dt + 1), 1.0f);
    c.k = t_random((size_t)(n * dk), 1.0f);
    c.kt = t_random((size_t)(n * dt + 1), 1.0f);
    c.v = t_random((size_t)(n * dv), 1.0f);
    c.out = t_floats((size_t)(tokens * group * dv));
    c.stat = t_floats((size_t)(tokens * group * 2));
    return c;
}
static int tile_run(tile_case *c, int isa, float scale) {
    swa_rows r;
    swa_kv kv;
    swa_attn a;
    memset(&r, 0, sizeof r);
    memset(&kv, 0, sizeof kv);
    memset(&a, 0, sizeof a);
    r.shape.n_heads = c->group;
    r.shape.n_kv_heads = 1;
    r.shape.head_dim = c->dk;
    r.shape.v_dim = c->dv;
    r.shape.tail_dim = c->dt;
    r.window = swa_window_sliding(c->W);
    r.pos = c->pos + c->n - c->tokens;
    r.n_tokens = c->tokens;
    r.kv = &kv;
    r.n_kv = 1;
    r.isa = isa;
    kv.k = c->k;
    kv.v = c->v;
    kv.tail = c->dt > 0 ? c->kt : NULL;
    kv.k_type = kv.v_type = kv.tail_type = SWA_F32;
    kv.pos = c->pos;
    kv.n = c->n;
    r.scratch_bytes = swa_attention_bytes(&r, 1);
    r.scratch = t_alloc(r.scratch_bytes);
    a.q.p = c->q;
    a.q_tail.p = c->dt > 0 ? c->qt : NULL;
    a.out.p = c->out;
    a.stat = c->stat;
    a.scale = scale;
    a.compute = SWA_BF16_TILE;
    return CHECK_OK(swa_attention(&r, &a));
}
/* Each query sees one key: the maximum is its score. */
TEST_EACH_ISA(tile_scores) {
    for (int i = 0; i < 30; i++) {
        const int dk = i < 3 ? 32 << i : t_int(1, 150), dt = i % 3 == 1 ? t_int(1, 70) : 0;
        const int group = i % 2 ? t_int(1, 15) : 20;
        const float scale = 0.3f, by = (float)((double)scale * 1.44269504088896341);
        tile_case c = tile_new(dk, 3, dt, group, 21, 3, 1, 300);
        t_label("%d dims and %d, %d heads", dk, dt, group);
        REQUIRE(tile_run(&c, isa, scale));
        for (int t = 0; t < 3; t++)
            for (int h = 0; h < group; h++) {
                float x[150], y[70], want;
                for (int d = 0; d < dk; d++) x[d] = c.q[(t * group + h) * dk + d] * by;
                for (int d = 0; d < dt; d++) y[d] = c.qt[(t * group + h) * dt + d] * by;
                want = tile_dot(0, dk, x, c.k + (18 + t) * dk);
                for (int d = 0; d < dt; d += 32) { /* the tail's bundles go on in the same sum */
                    uint16_t a[32] = { 0 }, b[32] = { 0 };
                    for (int e = d; e < dt && e < d + 32; e++) {
                        a[e - d] = bf16_round(y[e]);
                        b[e - d] = bf16_round(c.kt[(18 + t) * dt + e]);
                    }
                    want = tile_model(want, a, b);
                }
                CHECK_BITS(&c.stat[(t * group + h) * 2], &want, 1);
            }
    }
}
/* All scores are 0, so that each weight is 1: the unnormalised row is the sum of V, block after block. */
TEST_EACH_ISA(tile_sums) {
    for (int i = 0; i < 16; i++) {
        const int dv = i < 2 ? 128 : t_int(1, 70), group = i % 2 ? t_int(1, 15) : 20, n = t_int(1, 400);
        tile_case c = tile_new(8, dv, 0, group, n, 1, t_int(1, n), t_int(0, 600));
        float ones[400];
        t_label("%d keys of %d dims at %d, W=%d, %d heads", n, dv, (int)c.pos, c.W, group);
        memset(c.q, 0, (size_t)(group * 8) * sizeof(float));
        REQUIRE(tile_run(&c, isa, 1.0f));
        for (int k = 0; k < n; k++) ones[k] = 1.0f;
        for (int d = 0; d < dv; d++) {
            float column[400], want = 0, sum;
            for (int k = 0; k < n; k++) column[k] = c.v[k * dv + d];
            for (int k = n - c.W, end; k < n; k = end) {
                end = k + 256 - (int)((c.pos + k) % 256);
                if (end > n) end = n;
                sum = tile_dot((int)((c.pos + k) % 256), end - k, ones + k, column + k);
                want = k == n - c.W ? sum : want + sum;
            }
            for (int h = 0; h < group; h++) CHECK_BITS(&c.out[h * dv + d], &want, 1);
        }
    }
}

/* Shapes that tiles take, which are multiples of 32, against scalar: any types, windows, chunks and parts. Under
   SWA_TILE_MODEL the AVX-512 instance runs its tile kernels here, on a model of the instruction. The scalar reference,
   one shot, is slow and made once for all instances; the scalar one itself goes one way of each fourth case. */
enum { TILE_CASES = 60 };
static at_case tile_bits_case(int i) {
    const int n = i % 8 == 3 ? t_int(270, 350) : t_int(20, 90), latent = i % 3 == 2;
    const int kv = i % 8 == 1 ? 2 : i % 2 ? 1 : t_int(1, 2);
    /* from 64 dims of V on panels take turns */
    at_case c =
        at_new(kv * (i % 2 ? 20 : t_int(1, 9)), kv, 32 * t_int(1, 3), i % 4 < 2 ? t_int(1, 60) : t_int(61, 140), n);
    if (latent) {
        c.shape.v_in_k = 1;
        c.shape.tail_dim = i % 2 ? 32 : 0;
        if (c.shape.v_dim > c.shape.head_dim) c.shape.v_dim = c.shape.head_dim;
        c.tail_type = at_types[t_int(0, AT_TYPES - 1)];
    }
    c.k_type = at_types[t_int(0, AT_TYPES - 1)];
    c.v_type = latent ? SWA_TYPE_DEFAULT : at_types[t_int(0, AT_TYPES - 1)];
    c.start = t_int(0, 500);
    if (i % 4 == 0) {
        c.start = 0;
        at_pinned(&c, t_int(1, n), t_int(1, 40));
        c.q_sink = 1;
    } else at_sliding(&c, t_int(1, n));
    c.softcap = i % 5 ? 0.0f : 4.0f;
    c.alibi = i % 7 == 0;
    c.compute = SWA_BF16_TILE;
    return c;
}
TEST_EACH_ISA(tile_bits) {
    static float *made[TILE_CASES];
    for (int i = 0; i < (t_all() ? TILE_CASES : 24); i++) {
        const t_block *mark = t_.blocks;
        t_seed((uint64_t)i);
        const at_case c = tile_bits_case(i);
        const size_t size = (size_t)c.n * at_o_row(&c), rows = (size_t)c.n * (size_t)c.shape.n_heads;
        float *out = t_floats(size), *lse = t_floats(rows);
        at_data d = at_make(&c);
        at_how how;
        memset(&how, 0, sizeof how);
        if (!made[i]) {
            made[i] = (float *)malloc((size + rows) * sizeof(float));
            how.isa = SWA_ISA_SCALAR;
            if (!made[i]) exit(2);
            REQUIRE(at_ring(&c, &d, &how, made[i], made[i] + size));
        }
        how.isa = isa;
        for (int k = 0; k < 3; k++) {
            how.chunk = k == 0 ? 0 : t_int(4, 60);
            how.parts = k == 2 ? 3 : 1;
            how.k_rows = i % 7 > 4;
            if (k == 0 ? t_thin(isa) : t_leave(isa, i + i / 4, k, 4)) continue;
            t_label("case %d, %d heads of %d and %d, %d tokens, chunk %d, parts %d", i, c.shape.n_heads,
                    c.shape.head_dim, c.shape.v_dim, c.n, how.chunk, how.parts);
            REQUIRE(at_ring(&c, &d, &how, out, lse));
            CHECK_BITS(out, made[i], size);
            CHECK_BITS(lse, made[i] + size, rows);
        }
        t_free_to(mark);
    }
}
/* K and V in bf16 around the numbers below which they are zeros, and true zeros: a scale makes them count. K lies in
   place in the ring, or is moved first where positions are no slots. */
TEST_EACH_ISA(tile_tiny) {
    for (int i = 0; i < 4; i++) {
        if (t_leave(isa, i, 0, 4)) continue;
        const t_block *mark = t_.blocks;
        at_case c = at_new(20, 1, 64, 64, 300);
        const size_t size = (size_t)c.n * at_o_row(&c), rows = (size_t)c.n * 20;
        float *out[2] = { t_floats(size), t_floats(size) }, *lse[2] = { t_floats(rows), t_floats(rows) };
        at_data d;
        at_how how;
        t_seed((uint64_t)i);
        c.shape.v_in_k = i % 2;
        c.k_type = SWA_BF16;
        c.v_type = i % 2 ? SWA_TYPE_DEFAULT : SWA_BF16;
        c.compute = SWA_BF16_TILE;
        c.scale = 0x1p58f;
        c.start = i < 2 ? 0 : 5;
        at_sliding(&c, 256 + i * 11);
        d = at_make(&c);
        /* some tiles, of V some bundles, hold none that is too small, and some in the last dims only */
        for (int k = 0; k < c.n * 64; k++) {
            const int low = k / 64 / 16 % 3 == 2 || (k / 64 / 16 % 3 == 1 && k % 64 < 32);
            d.k[k] *= low ? 0x1p-54f : t_int(0, 9) == 0 ? 0 : i % 2 && k % 7 == 0 ? 0x1p-82f : 0x1p-56f;
            if (d.v) d.v[k] *= low || k / 64 / 32 % 3 == 2 ? 1 : t_int(0, 9) == 0 ? 0 : 0x1p-82f;
        }
        for (int k = 0; k < 2; k++) {
            how = at_on(k ? isa : t_other(isa));
            how.chunk = 60; /* the keys before it are read from the ring */
            REQUIRE(at_ring(&c, &d, &how, out[k], lse[k]));
        }
        t_label("case %d", i);
        CHECK_BITS(out[1], out[0], size);
        CHECK_BITS(lse[1], lse[0], rows);
        t_free_to(mark);
    }
}
TEST(tile_compute_fastest) {
    CHECK_INT(swa_compute_fastest(SWA_ISA_SCALAR), SWA_F32);
    CHECK_INT(swa_compute_fastest(SWA_ISA_NEON), SWA_F32);
    CHECK_INT(swa_compute_fastest(-1), SWA_F32);
    CHECK_INT(swa_compute_fastest(99), SWA_F32);
    CHECK_INT(swa_compute_fastest(SWA_ISA_BEST), swa_compute_fastest(swa_isa_best()));
    FOR_ISA(isa) {
        const swa_type best = swa_compute_fastest(isa);
        CHECK(best == SWA_F32 || best == SWA_BF16 || best == SWA_BF16_TILE);
    }
}

/* ---- the model against the instruction ---- */

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && (defined(__clang__) || __GNUC__ >= 11)
static int tiles_open(void) { /* 1: the CPU has them, and the kernel lets us use them */
    struct {
        uint8_t palette, start, none[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config;
    unsigned a = 7, b, c = 0, d;
    long got;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if ((d >> 22 & 1) == 0 || (d >> 24 & 1) == 0) return 0;
    __asm__ volatile("syscall" : "=a"(got) : "0"(158L), "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
    if (got != 0) return 0; /* arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA) */
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int i = 0; i < 8; i++) config.bytes[i] = 64, config.rows[i] = 16;
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
    return 1;
}
static void tiles_multiply(float *c, const uint16_t *a, const uint16_t *b) {
    __asm__ volatile("tileloadd (%0,%3,1), %%tmm0\n\ttileloadd (%1,%3,1), %%tmm1\n\ttileloadd (%2,%3,1), %%tmm2\n\t"
                     "tdpbf16ps %%tmm2, %%tmm1, %%tmm0\n\ttilestored %%tmm0, (%0,%3,1)"
                     :
                     : "r"(c), "r"(a), "r"(b), "r"((size_t)64)
                     : "memory");
}
static void tiles_close(void) { __asm__ volatile("tilerelease" : : : "memory"); }
#else
static int tiles_open(void) { return 0; }
static void tiles_multiply(float *c, const uint16_t *a, const uint16_t *b) { (void)c, (void)a, (void)b; }
static void tiles_close(void) {}
#endif
/* Uniform, any bits, middling, small, huge, around 2^-63, and zeros among them. */
static uint16_t any_bf16(int kind) {
    static const int low[] = { 0, 0, 107, 1, 180, 60, 120 }, range[] = { 1, 1, 40, 80, 74, 8, 1 };
    const int r = t_int(0, 0xffff), e = low[kind] + t_int(0, 1 << 16) % range[kind];
    if (kind == 0) return bf16_round((float)t_int(-(1 << 20), 1 << 20) * 0x1p-20f);
    if (kind == 1) return (uint16_t)r;
    if (kind == 6 && t_int(0, 1)) return 0;
    return (uint16_t)((r & 0x807f) | e << 7);
}
TEST(tile_model_is_the_instruction) {
    static uint16_t a[512], b[512], column[32];
    static float c[256], got[256];
    const int rounds = t_all() ? 40000 : 2000; /* of 256 numbers: 10 million */
    if (!tiles_open()) SKIP("no AMX here: the model of TDPBF16PS was not held against the instruction");
    for (int round = 0; round < rounds; round++) {
        const int kind = round % 7;
        for (int i = 0; i < 512; i++) a[i] = any_bf16(kind), b[i] = any_bf16(kind);
        for (int i = 0; i < 256; i++) c[i] = bf16_wide(any_bf16(kind)) * (1 + (float)t_int(0, 0xffff) * 0x1p-23f);
        for (int i = 0; (round & 1) && i < 256; i++) { /* cancels */
            a[i / 16 * 32 + 16 + i % 16] = a[i / 16 * 32 + i % 16];
            b[256 + i] = b[i] ^ 0x8000;
        }
        memcpy(got, c, sizeof got);
        tiles_multiply(got, a, b);
        t_label("round %d", round);
        for (int i = 0; i < 256; i++) {
            float want;
            for (int k = 0; k < 32; k++) column[k] = b[k / 2 * 32 + i % 16 * 2 + k % 2];
            want = tile_model(c[i], a + i / 16 * 32, column);
            if (want != want) CHECK(got[i] != got[i]);
            else CHECK_BITS(&got[i], &want, 1);
        }
    }
    tiles_close();
}
