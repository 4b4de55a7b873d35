/* The bits contract, with memcmp: the same numbers come out whatever the chunks, the batch, the parts, the capacity
   and rotation of the ring, the layout of the caller's rows, the segments of the stateless call, and the
   instruction set. The reference of every case is one shot, scalar, alone, into a ring of default capacity. */
#define SWA__EVERY_CPU 1 /* also what decode does on some makes of CPU alone */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "attend.h"
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>
#endif

typedef struct {
    const char *name;
    at_case c;
} bits_case;

/* Small ones, then some that span several blocks of 256 keys (costly, so fewer ways are tried). Of some bf16 cases the
   same in the order of tiles. */
enum { N_CASES = 26, N_SMALL = 17 };
/* clang-format off */
static const char *const bits_names[20] = { "f32", "f16 odd dims", "q8 softcap sink alibi", "bf16/f16 bias", "pinned",
    "causal", "chunked", "latent", "group 8 far away", "q8/bf16 one head", "f16 wide v", "16 heads over one",
    "bf16 products, odd dims", "bf16 products, latent", "int8 products", "two blocks", "four blocks",
    "pinned far behind", "bf16 products, blocks", "bf16 products, latent, blocks" };
/* clang-format on */
static bits_case bits_like(int i) {
    bits_case b;
    b.name = bits_names[i];
    b.c = at_new(4, 2, 16, 16, 45);
    at_sliding(&b.c, 8);
    /* clang-format off */
    if (i == 1) { b.c = at_new(3, 1, 17, 13, 45); at_sliding(&b.c, 17); b.c.k_type = b.c.v_type = SWA_F16; }
    if (i == 2) {
        b.c.k_type = b.c.v_type = SWA_Q8;
        b.c.softcap = 3.0f;
        b.c.sink_logits = b.c.alibi = 1;
        at_sliding(&b.c, 12);
    }
    if (i == 3) { b.c.k_type = SWA_BF16; b.c.v_type = SWA_F16; b.c.bias = 1; at_sliding(&b.c, 5); }
    if (i == 4) { at_pinned(&b.c, 7, 3); b.c.q_sink = 1; }
    if (i == 5) { b.c.window = swa_window_causal(); b.c.sees = or_causal(); b.c.sink_logits = 1; }
    if (i == 6) at_chunked(&b.c, 9);
    if (i == 7) {
        b.c = at_new(4, 1, 32, 24, 40);
        b.c.shape.v_in_k = 1; b.c.shape.tail_dim = 5;
        b.c.k_type = SWA_F16; b.c.tail_type = SWA_F32;
        at_sliding(&b.c, 11);
    }
    if (i == 8) { b.c = at_new(8, 1, 64, 64, 40); b.c.start = ((int64_t)1 << 40) + 12345; at_sliding(&b.c, 21); }
    if (i == 9) { b.c = at_new(1, 1, 20, 20, 45); b.c.k_type = SWA_Q8; b.c.v_type = SWA_BF16; at_sliding(&b.c, 9); }
    if (i == 10) { b.c = at_new(5, 1, 8, 40, 45); b.c.k_type = SWA_F16; b.c.alibi = 1; at_sliding(&b.c, 33); }
    if (i == 11) { b.c = at_new(16, 1, 24, 24, 40); b.c.bias = b.c.sink_logits = 1; at_sliding(&b.c, 6); }
    if (i == 12) {
        b.c = at_new(6, 2, 17, 13, 45);
        b.c.q_sink = b.c.alibi = 1;
        b.c.compute = SWA_BF16;
        at_pinned(&b.c, 10, 5);
    }
    if (i == 13) {
        b.c = at_new(20, 1, 33, 24, 40);
        b.c.shape.v_in_k = 1; b.c.shape.tail_dim = 5;
        b.c.k_type = SWA_Q8; b.c.tail_type = SWA_F16;
        b.c.compute = SWA_BF16;
        at_sliding(&b.c, 11);
    }
    if (i == 14) {
        b.c = at_new(4, 1, 37, 16, 45);
        b.c.k_type = SWA_Q8; b.c.v_type = SWA_BF16;
        b.c.q_sink = b.c.sink_logits = 1;
        b.c.compute = SWA_Q8;
        at_pinned(&b.c, 12, 3);
    }
    if (i == 15) { b.c = at_new(2, 1, 8, 8, 640); b.c.start = 100; b.c.softcap = 4.0f; at_sliding(&b.c, 300); }
    if (i == 16) { b.c = at_new(4, 1, 8, 12, 900); b.c.k_type = b.c.v_type = SWA_F16; at_sliding(&b.c, 700); }
    if (i == 17) { b.c = at_new(2, 1, 8, 8, 700); at_pinned(&b.c, 200, 20); b.c.sink_logits = 1; }
    if (i == 18) {
        b.c = at_new(2, 1, 9, 8, 700);
        b.c.start = 77;
        b.c.k_type = SWA_BF16; b.c.v_type = SWA_Q8;
        b.c.compute = SWA_BF16;
        at_sliding(&b.c, 301);
    }
    if (i == 19) {
        b.c = at_new(17, 1, 18, 16, 300);
        b.c.start = 230;
        b.c.shape.v_in_k = 1; b.c.shape.tail_dim = 5;
        b.c.compute = SWA_BF16;
        at_sliding(&b.c, 270);
    }
    if (i == 10 || i == 17) b.c.bias = 2;
    /* clang-format on */
    return b;
}
static bits_case bits_staged(int latent) {
    bits_case b;
    b.name = latent ? "q8_32, latent, tail e5m2, blocks" : "q8_32/e4m3, blocks";
    b.c = latent ? at_new(17, 1, 48, 40, 300) : at_new(4, 1, 40, 24, 640);
    b.c.start = latent ? 230 : 100;
    b.c.shape.v_in_k = latent;
    b.c.shape.tail_dim = latent ? 5 : 0;
    b.c.k_type = SWA_Q8_32;
    b.c.v_type = latent ? SWA_Q8_32 : SWA_E4M3;
    b.c.tail_type = SWA_E5M2;
    at_sliding(&b.c, latent ? 270 : 300);
    return b;
}
static bits_case bits_of(int i) {
    static const int like[24] = {
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 12, 13, 15, 16, 17, 18, 19, 18, 19
    };
    static const char *const names[4] = { "tile order, odd dims", "tile order, latent", "tile order, blocks",
                                          "tile order, latent, blocks" };
    bits_case b = i < 24 ? bits_like(like[i]) : bits_staged(i - 24);
    if ((i != 15 && i != 16 && i < 22) || i >= 24) return b;
    b.name = names[i < 22 ? i - 15 : i - 20];
    b.c.compute = SWA_BF16_TILE;
    return b;
}
static int W_of(const at_case *c) {
    if (c->sees.chunk) return (int)c->sees.chunk;
    return c->sees.left < c->n ? (int)c->sees.left + 1 : c->n;
}

/* Reference and room for one case. Data and reference, which is scalar and slow, are made once for all tests. */
typedef struct {
    bits_case b;
    at_data d;
    size_t n, rows;
    float *want, *want_lse, *out, *lse;
} bits;
static int bits_open(bits *x, int i) {
    static struct {
        uint64_t seed;
        float *want;
    } made[N_CASES];
    uint64_t rng = t_.rng;
    size_t all;
    at_how how;
    t_label("%s", bits_of(i).name);
    x->b = bits_of(i);
    if (made[i].want) t_.rng = made[i].seed;
    else made[i].seed = t_.rng;
    x->d = at_make(&x->b.c);
    if (made[i].want) t_.rng = rng;
    x->n = (size_t)x->b.c.n * at_o_row(&x->b.c);
    x->rows = (size_t)x->b.c.n * (size_t)x->b.c.shape.n_heads;
    all = x->n + x->rows;
    x->want = t_floats(all);
    x->want_lse = x->want + x->n;
    x->out = t_floats(x->n);
    x->lse = t_floats(x->rows);
    if (made[i].want) {
        memcpy(x->want, made[i].want, all * sizeof(float));
        return 1;
    }
    how = at_on(SWA_ISA_SCALAR);
    if (!at_ring(&x->b.c, &x->d, &how, x->want, x->want_lse)) return 0;
    made[i].want = (float *)malloc(all * sizeof(float));
    if (!made[i].want) exit(2);
    memcpy(made[i].want, x->want, all * sizeof(float));
    return 1;
}
static void same(const bits *x) {
    CHECK_BITS(x->out, x->want, x->n);
    CHECK_BITS(x->lse, x->want_lse, x->rows);
    memset(x->out, 0xFF, x->n * sizeof(float)); /* so that a call that writes nothing is seen */
    memset(x->lse, 0xFF, x->rows * sizeof(float));
}
static void by_ring(const bits *x, const at_how *how) {
    t_label("%s: chunk %d parts %d of %d capacity %d origin %d others %d layout %d put %d", x->b.name, how->chunk,
            how->parts, how->max_parts, (int)how->capacity, (int)how->origin, how->others, how->layout, how->put_first);
    if (at_ring(&x->b.c, &x->d, how, x->out, x->lse)) same(x);
}

/* ---- the ways ---- */

TEST_EACH_ISA(bits_chunks) {
    for (int i = 0; i < N_CASES; i++) {
        const t_block *mark = t_.blocks;
        bits x;
        int W, chunks[8];
        if (!bits_open(&x, i)) continue;
        W = W_of(&x.b.c);
        chunks[0] = 0;
        chunks[1] = W;
        chunks[2] = 3 * W + 1;
        chunks[3] = 2 * W;
        chunks[4] = W > 1 ? W - 1 : 1;
        chunks[5] = W + 1;
        chunks[6] = 2;
        chunks[7] = 1;
        for (int k = 0; k < (i < N_SMALL || isa != SWA_ISA_SCALAR ? 8 : 2); k++) {
            at_how how = at_on(isa);
            how.chunk = chunks[k];
            if (!t_leave(isa, i, k, i < N_SMALL ? 4 : 2)) by_ring(&x, &how);
        }
        t_free_to(mark);
    }
}
TEST_EACH_ISA(bits_parts) {
    static const int parts[] = { 8, 2, 3, 1 };
    for (int i = 0; i < N_CASES; i++) {
        const t_block *mark = t_.blocks;
        bits x;
        if (!bits_open(&x, i)) continue;
        for (int k = 0; k < 4; k += i < N_SMALL || isa != SWA_ISA_SCALAR ? 1 : 2)
            for (int step = 0; step < (i < N_SMALL ? 3 : 2); step++) {
                at_how how = at_on(isa);
                how.parts = parts[k];
                how.max_parts = t_int(0, 1) ? 8 : 0;
                how.chunk = step == 0 ? 0 : step == 1 ? 300 : 1;
                if (i < N_SMALL && step == 1) how.chunk = 13;
                if (!t_leave(isa, i, i < N_SMALL ? 3 * k + step : k + step, i < N_SMALL ? 6 : 4)) by_ring(&x, &how);
            }
        t_free_to(mark);
    }
}
TEST_EACH_ISA(bits_batches) {
    for (int i = 0; i < N_SMALL; i++) {
        const t_block *mark = t_.blocks;
        bits x;
        if (!bits_open(&x, i)) continue;
        for (int others = 1; others < 5; others++) {
            at_how how = at_on(isa);
            how.others = others;
            how.chunk = others == 1 ? 0 : others == 2 ? 1 : t_int(2, 20);
            how.parts = others == 3 ? 3 : 0;
            by_ring(&x, &how);
        }
        t_free_to(mark);
    }
}
/* Multiples of 16 and not, with every kind of rotation; a ring as long as the context is one of them. */
TEST_EACH_ISA(bits_capacities) {
    for (int i = 0; i < N_CASES; i++) {
        const t_block *mark = t_.blocks;
        bits x;
        int64_t W, capacity[6];
        if (!bits_open(&x, i) || x.b.c.sees.left >= OR_FAR) continue;
        W = W_of(&x.b.c);
        capacity[0] = W;
        capacity[1] = W + 1;
        capacity[2] = W + 5;
        capacity[3] = (W + 31) / 16 * 16;
        capacity[4] = x.b.c.n;
        capacity[5] = 1000;
        for (int k = i < N_SMALL ? 0 : 2; k < 6; k += i < N_SMALL || isa != SWA_ISA_SCALAR ? 1 : 3)
            for (int64_t origin = 0; origin < (i < N_SMALL ? 20 : 10); origin += 9 - k % 2) {
                at_how how = at_on(isa);
                how.capacity = capacity[k];
                how.origin = origin;
                how.chunk = i < N_SMALL ? (k + (int)origin) % 3 : 64;
                if (!t_leave(isa, i, 3 * k + (int)origin / 8, i < N_SMALL ? 6 : 4)) by_ring(&x, &how);
            }
        t_free_to(mark);
    }
}
/* Decode over a ring that is no multiple of 16, in windows of several blocks: whole blocks lie off the tiles' grid, at
   every shift, in one span or with a seam, and lose nothing by it. */
TEST_EACH_ISA(bits_off_the_grid) {
    static const struct {
        int h, dk, dv, tail;
        swa_type k, v, t, compute;
    } of[] = { { 1, 16, 16, 0, SWA_F32, SWA_F32, SWA_F32, SWA_F32 },
               { 2, 20, 12, 0, SWA_F16, SWA_Q8, SWA_F32, SWA_F32 },
               { 4, 16, 40, 0, SWA_Q8, SWA_BF16, SWA_F32, SWA_F32 },
               { 4, 16, 16, 0, SWA_Q8, SWA_Q8, SWA_F32, SWA_Q8 },
               { 9, 16, 16, 0, SWA_BF16, SWA_F16, SWA_F32, SWA_F32 },
               { 2, 16, 16, 6, SWA_F16, SWA_F16, SWA_Q8, SWA_F32 },
               { 3, 8, 16, 5, SWA_F32, SWA_F32, SWA_F32, SWA_F32 },
               { 4, 16, 16, 0, SWA_F32, SWA_F32, SWA_F32, SWA_BF16 },
               { 4, 40, 24, 0, SWA_Q8_32, SWA_E4M3, SWA_F32, SWA_F32 },
               { 2, 16, 70, 6, SWA_E5M2, SWA_Q8_32, SWA_E4M3, SWA_F32 } };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int odd = t_thin(isa) ? 1 + 8 * (int)(i % 2) : 1; odd < 16; odd += t_thin(isa) ? 16 : 8) {
            const t_block *mark = t_.blocks;
            at_case c = at_new(of[i].h, 1, of[i].dk, of[i].dv, 700);
            at_how how;
            float *out[2], *lse[2];
            at_data d;
            at_sliding(&c, 330);
            c.k_type = of[i].k;
            c.v_type = of[i].v;
            c.tail_type = of[i].t;
            c.compute = of[i].compute;
            c.shape.tail_dim = of[i].tail;
            d = at_make(&c);
            t_label("case %d, capacity %d", (int)i, 338 + odd);
            for (int k = 0; k < 2; k++) {
                swa_cache kv;
                out[k] = t_floats(700 * at_o_row(&c));
                lse[k] = t_floats(700 * (size_t)of[i].h);
                how = at_on(k ? isa : t_other(isa));
                how.capacity = k ? 338 + odd : 0;
                how.chunk = 231;
                REQUIRE(at_cache(&kv, &c, &how));
                REQUIRE(at_ring_on(&kv, &c, &d, &how, 0, 692, out[k], lse[k]));
                how.chunk = 1;
                REQUIRE(at_ring_on(&kv, &c, &d, &how, 692, 700, out[k], lse[k]));
            }
            CHECK_BITS(out[1], out[0], 700 * at_o_row(&c));
            CHECK_BITS(lse[1], lse[0], 700 * (size_t)of[i].h);
            t_free_to(mark);
        }
}
/* A causal layer, which holds the whole context, gives a window's bits if the window is the context. */
TEST_EACH_ISA(bits_full_length) {
    at_case c = at_new(4, 2, 16, 16, 70), wide;
    at_data d = at_make(&c);
    at_how how = at_on(isa);
    size_t n = 70 * at_o_row(&c);
    float *a = t_floats(n), *b = t_floats(n);
    wide = c;
    at_sliding(&wide, 70);
    how.max_context = 100;
    for (int chunk = 0; chunk < 40; chunk += 13) {
        how.chunk = chunk;
        REQUIRE(at_ring(&c, &d, &how, a, NULL) && at_ring(&wide, &d, &how, b, NULL));
        CHECK_BITS(a, b, n);
    }
}
TEST_EACH_ISA(bits_layouts) {
    for (int i = 0; i < N_SMALL; i++) {
        const t_block *mark = t_.blocks;
        bits x;
        if (!bits_open(&x, i)) continue;
        for (int layout = 0; layout < 3; layout++)
            for (int k = 0; k < 2; k++) {
                at_how how = at_on(isa);
                how.layout = layout;
                how.alias = k;
                how.chunk = k ? 3 : 0;
                how.audit = k;
                by_ring(&x, &how);
            }
        t_free_to(mark);
    }
}
/* Engines that store first and attend later get the same bits from a ring with room for the chunk. */
TEST_EACH_ISA(bits_put_first) {
    for (int i = 0; i < N_CASES; i++) {
        const t_block *mark = t_.blocks;
        bits x;
        int chunk;
        at_how how = at_on(isa);
        if (!bits_open(&x, i)) continue;
        how.put_first = 1;
        for (int k = 0; k < 3; k++) {
            chunk = k == 0 ? 1 : k == 1 ? 7 : W_of(&x.b.c) + 3;
            if (i >= N_SMALL ? chunk < 64 : t_leave(isa, i, k, 2)) continue;
            how.chunk = chunk;
            if (x.b.c.sees.left < OR_FAR || x.b.c.sees.chunk) {
                how.capacity = swa_required_capacity(&x.b.c.window, chunk, 0);
                CHECK_INT(how.capacity, W_of(&x.b.c) - 1 + chunk);
            }
            by_ring(&x, &how);
        }
        t_free_to(mark);
    }
}
/* A warm-up at the same positions, and taking rows back, leave no trace. */
TEST_EACH_ISA(bits_begin_again) {
    for (int i = 0; i < N_SMALL; i++) {
        const t_block *mark = t_.blocks;
        bits x;
        swa_cache kv;
        at_data junk;
        at_how how = at_on(isa);
        if (!bits_open(&x, i)) continue;
        junk = at_make(&x.b.c);
        how.chunk = 4;
        how.capacity = x.b.c.sees.left < OR_FAR || x.b.c.sees.chunk ? W_of(&x.b.c) + 8 : 0;
        if (!at_cache(&kv, &x.b.c, &how)) continue;
        t_label("%s", x.b.name);
        REQUIRE(at_ring_on(&kv, &x.b.c, &junk, &how, 0, 3, x.out, x.lse));
        how.rewind = 1;
        REQUIRE(at_ring_on(&kv, &x.b.c, &x.d, &how, 0, 30, x.out, x.lse));
        REQUIRE(at_ring_on(&kv, &x.b.c, &junk, &how, 30, 34, x.out, x.lse));
        REQUIRE(at_ring_on(&kv, &x.b.c, &x.d, &how, 28, x.b.c.n, x.out, x.lse));
        same(&x);
        t_free_to(mark);
    }
}

/* ---- without a ring ---- */

static int has_q8(const at_case *c) {
    return c->k_type == SWA_Q8 || c->v_type == SWA_Q8 || (c->shape.tail_dim && c->tail_type == SWA_Q8);
}
TEST_EACH_ISA(bits_stateless) {
    for (int i = 0; i < N_CASES; i++) {
        const t_block *mark = t_.blocks;
        bits x;
        at_data s;
        if (!bits_open(&x, i)) continue;
        if (has_q8(&x.b.c)) continue; /* callers' rows are never q8; a ring's spans are */
        s = at_stored(&x.b.c, &x.d);
        for (int k = 0; k < (i < N_SMALL ? 10 : 3); k++) {
            at_how how = at_on(isa);
            how.chunk = k % 3 == 0 ? 0 : k % 3 == 1 && i < N_SMALL ? 1 : t_int(2, 30);
            how.cuts = k * 2;
            how.layout = k % 3;
            how.parts = k % 4 == 0 ? 0 : k % 4 == 1 ? 2 : k % 4 == 2 ? 3 : 8;
            how.max_parts = 3; /* room for as many threads, if the call has any */
            if (t_leave(isa, i, k, i < N_SMALL ? 4 : 3)) continue;
            t_label("%s: chunk %d cuts %d layout %d parts %d", x.b.name, how.chunk, how.cuts, how.layout, how.parts);
            if (at_rows(&x.b.c, &s, &how, x.out, x.lse)) same(&x);
        }
        t_free_to(mark);
    }
}
/* swa_cache_spans read in place by the stateless call: the last token of each prefix of the sequence. */
TEST_EACH_ISA(bits_spans) {
    for (int i = 0; i < N_SMALL; i++) {
        const t_block *mark = t_.blocks;
        bits x;
        swa_cache kv;
        at_how how = at_on(isa);
        size_t row, h;
        if (!bits_open(&x, i)) continue;
        row = at_o_row(&x.b.c);
        h = (size_t)x.b.c.shape.n_heads;
        how.chunk = 1;
        how.capacity = i % 2 && x.b.c.sees.left < OR_FAR ? W_of(&x.b.c) + 3 : 0;
        if (!at_cache(&kv, &x.b.c, &how)) continue;
        for (int p = 0; p < x.b.c.n; p++) {
            const t_block *inner = t_.blocks;
            size_t at = (size_t)p;
            swa_kv spans[3];
            swa_rows r;
            at_call call;
            if (!at_ring_on(&kv, &x.b.c, &x.d, &how, p, p + 1, x.out, x.lse)) break;
            memset(&r, 0, sizeof r);
            r.shape = x.b.c.shape;
            r.window = x.b.c.window;
            r.isa = isa;
            r.pos = x.b.c.start + p;
            r.n_tokens = 1;
            r.kv = spans;
            r.n_kv = swa_cache_spans(&kv, 0, 0, spans);
            t_label("%s: token %d, %d spans", x.b.name, p, r.n_kv);
            if (!CHECK(r.n_kv >= 1 && r.n_kv <= 3)) break;
            r.scratch_bytes = swa_attention_bytes(&r, 1);
            r.scratch = t_alloc(r.scratch_bytes);
            call = at_queries(&x.b.c, &x.d, x.d.q + at * at_q_row(&x.b.c),
                              x.d.q_sink ? x.d.q_sink + at * at_q_row(&x.b.c) : NULL,
                              x.d.bias ? x.d.bias + at * h * (size_t)x.d.bias_n : NULL, 1, &how);
            if (!CHECK_OK(swa_attention(&r, &call.a))) break;
            at_results(&x.b.c, &call, 0, 1, x.out + at * row, x.lse + at * h);
            CHECK_BITS(x.out + at * row, x.want + at * row, row);
            CHECK_BITS(x.lse + at * h, x.want_lse + at * h, h);
            t_free_to(inner);
        }
        t_free_to(mark);
    }
}

/* ---- rows of the caller's, whose heads lie side by side ---- */

enum { WOVEN_DK = 72, WOVEN_DT = 8, WOVEN_DV = 80, WOVEN_KEYS = 1050 };

/* A call over them, and its results. */
typedef struct {
    swa_rows r;
    swa_kv kv[3];
    swa_attn a;
    float *out, *lse;
} woven;

/* Numbers of n rows of [heads][dim]: finite, and small. */
static const void *woven_numbers(size_t n, size_t size) {
    unsigned char *p = (unsigned char *)t_alloc(n * size);
    for (size_t i = 0; i < n * size; i++) p[i] = i < 65521 ? (unsigned char)t_int(0, 255) : p[i - 65521];
    /* of each the byte with the exponent */
    for (size_t i = size - 1; i < n * size; i += size) p[i] = (unsigned char)((p[i] & 0x80) | 0x38);
    return p;
}

static size_t woven_size(swa_type type) { return type == SWA_F32 ? 4 : type == SWA_E4M3 ? 1 : 2; }

/* Three segments, two of which follow one another. */
static void woven_keys(swa_type type, int heads, woven *x) {
    const size_t size = woven_size(type), keys = WOVEN_KEYS;
    const unsigned char *k = (const unsigned char *)woven_numbers(keys * (size_t)(heads * WOVEN_DK), size);
    const unsigned char *v = (const unsigned char *)woven_numbers(keys * (size_t)(heads * WOVEN_DV), size);
    const unsigned char *tail = (const unsigned char *)woven_numbers(keys * (size_t)(heads * WOVEN_DT), size);
    int64_t pos = t_int(0, 700);

    for (int i = 0; i < 3; i++) {
        const size_t from = keys * (size_t)i / 3;
        swa_kv *kv = &x->kv[i];
        kv->k = k + from * (size_t)(heads * WOVEN_DK) * size;
        kv->v = v + from * (size_t)(heads * WOVEN_DV) * size;
        kv->tail = tail + from * (size_t)(heads * WOVEN_DT) * size;
        kv->k_type = kv->v_type = kv->tail_type = type;
        kv->k_token = heads * WOVEN_DK;
        kv->v_token = heads * WOVEN_DV;
        kv->tail_token = heads * WOVEN_DT;
        kv->k_head = WOVEN_DK;
        kv->v_head = WOVEN_DV;
        kv->tail_head = WOVEN_DT;
        kv->n = (int32_t)(keys * (size_t)(i + 1) / 3 - from);
        kv->pos = pos;
        pos += kv->n + (i == 0 ? t_int(0, 40) : 0);
    }
    x->r.kv = x->kv;
    x->r.n_kv = 3;
    x->r.pos = pos - x->r.n_tokens;
    x->r.shape.tail_dim = t_int(0, 1) * WOVEN_DT;
}

/* What scores are modified with, by chance. */
static void woven_mods(woven *x) {
    const int heads = x->r.shape.n_heads;
    if (t_int(0, 1)) x->a.sink_logits = t_random(heads, 1.0f);
    if (t_int(0, 1)) {
        float *slopes = t_floats(heads);
        for (int i = 0; i < heads; i++) slopes[i] = 0.001f * (float)(i + 1);
        x->a.alibi = slopes;
        x->a.softcap = 20.0f;
    }
    if (t_int(0, 1)) {
        x->a.bias_n = 300;
        x->a.bias_first = x->r.pos - t_int(200, 600);
        x->a.bias_head = x->a.bias_n;
        x->a.bias_token = x->a.bias_n * heads;
        x->a.bias = t_random(x->r.n_tokens * heads * 300, 1.0f);
    }
}

static void woven_new(int round, int isa, woven *x) {
    static const swa_type types[] = { SWA_F32, SWA_F16, SWA_BF16, SWA_E4M3 };
    const swa_type type = types[round % 4];
    const int group = t_int(1, 8), heads = type == SWA_F32 ? 8 + 8 * (round % 8 / 4) : type == SWA_E4M3 ? 32 : 16;
    const int64_t W = t_int(WOVEN_KEYS - 60, WOVEN_KEYS - 20);
    int rows;

    memset(x, 0, sizeof *x);
    x->r.isa = isa;
    x->r.shape.n_heads = group * heads;
    x->r.shape.n_kv_heads = heads;
    x->r.shape.head_dim = WOVEN_DK;
    x->r.shape.v_dim = WOVEN_DV;
    x->r.n_tokens = t_int(1, 3);
    woven_keys(type, heads, x);
    if (round % 3 == 1) x->r.window = swa_window_sliding(W);
    /* the window begins among the sinks, or blocks behind them */
    if (round % 3 == 2) x->r.window = swa_window_sinks(W, (int32_t)(x->r.pos - W + t_int(1, 16)));
    if (round % 6 == 5) x->r.window = swa_window_sinks(W - 250, (int32_t)x->kv[0].pos + 5);

    rows = x->r.n_tokens * group * heads;
    x->a.scale = 0.1f;
    x->a.q.p = t_random(rows * WOVEN_DK, 1.0f);
    if (x->r.shape.tail_dim > 0) x->a.q_tail.p = t_random(rows * WOVEN_DT, 1.0f);
    x->a.q.token = (int64_t)group * heads * WOVEN_DK;
    x->a.q_tail.token = (int64_t)group * heads * WOVEN_DT;
    if (round % 3 == 2) {
        x->a.q_sink.p = t_random(rows * WOVEN_DK, 1.0f);
        x->a.q_sink.token = x->a.q.token;
        x->a.q_sink_tail = x->a.q_tail;
    }
    woven_mods(x);
    x->out = t_floats(rows * WOVEN_DV);
    x->lse = t_floats(rows);
    x->a.out.p = x->out;
    x->a.out.token = (int64_t)group * heads * WOVEN_DV;
    x->a.lse = x->lse;
}

/* The same call for one KV head and one token, whose rows are then no neighbours of any. */
static void woven_alone(const woven *all, int t, int h, woven *x) {
    const int group = all->r.shape.n_heads / all->r.shape.n_kv_heads, row = t * all->r.shape.n_heads + h * group;
    const size_t size = woven_size(all->kv[0].k_type);
    *x = *all;
    x->r.shape.n_heads = group;
    x->r.shape.n_kv_heads = 1;
    x->r.pos += t;
    x->r.n_tokens = 1;
    x->r.kv = x->kv;
    for (int i = 0; i < 3; i++) {
        x->kv[i].k = (const unsigned char *)x->kv[i].k + (size_t)(h * WOVEN_DK) * size;
        x->kv[i].v = (const unsigned char *)x->kv[i].v + (size_t)(h * WOVEN_DV) * size;
        x->kv[i].tail = (const unsigned char *)x->kv[i].tail + (size_t)(h * WOVEN_DT) * size;
    }
    x->a.q.p += row * WOVEN_DK;
    if (x->a.q_tail.p) x->a.q_tail.p += row * WOVEN_DT;
    if (x->a.q_sink.p) x->a.q_sink.p += row * WOVEN_DK;
    if (x->a.q_sink_tail.p) x->a.q_sink_tail.p += row * WOVEN_DT;
    if (x->a.sink_logits) x->a.sink_logits += h * group;
    if (x->a.alibi) x->a.alibi += h * group;
    if (x->a.bias) x->a.bias += row * x->a.bias_head;
    x->out = t_floats(group * WOVEN_DV);
    x->lse = t_floats(group);
    x->a.out.p = x->out;
    x->a.lse = x->lse;
}

static int woven_run(woven *x, int parts) {
    int ok = 1;
    x->r.scratch_bytes = swa_attention_bytes(&x->r, parts);
    /* no room to split keys */
    if (parts == 3) x->r.scratch_bytes = 3 * (swa_attention_bytes(&x->r, 1) - 63) + 63;
    x->r.scratch = t_alloc(x->r.scratch_bytes);
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int part = 0; part < parts; part++) ok &= CHECK_OK(swa_attention_part(&x->r, &x->a, phase, part, parts));
    return ok;
}

/* Few rows, and some more, over more than 2 MB of keys, all heads in one call, and each head and token by itself: the
   same bits. */
TEST_EACH_ISA(bits_woven_heads) {
    for (int round = 0; round < 12; round++) {
        const t_block *mark = t_.blocks;
        const int parts = round % 2 ? 2 + round / 2 % 4 : 1;
        woven all, one;
        woven_new(round, isa, &all);
        t_label("round %d, %d on %d heads, %d tokens, %d parts", round, all.r.shape.n_heads, all.r.shape.n_kv_heads,
                all.r.n_tokens, parts);
        for (int h = 0, ok = woven_run(&all, parts); ok && h < all.r.shape.n_kv_heads; h++)
            for (int t = 0; ok && t < all.r.n_tokens; t++) {
                if (t_leave(isa, round, h, 8)) continue;
                const int group = all.r.shape.n_heads / all.r.shape.n_kv_heads;
                const int row = t * all.r.shape.n_heads + h * group;
                woven_alone(&all, t, h, &one);
                ok = woven_run(&one, 1);
                CHECK_BITS(all.out + row * WOVEN_DV, one.out, (size_t)(group * WOVEN_DV));
                CHECK_BITS(all.lse + row, one.lse, (size_t)group);
            }
        t_free_to(mark);
    }
}

/* An empty segment that nobody has filled in, the caller's rows, of which woven units are made, and a ring's spans, off
   the grid of 16 slots, with scales, or by rows: one token by a list of all keys, which no heads share, and
   without one. */
TEST_EACH_ISA(bits_woven_beside_ring) {
    enum { HEADS = 8, D = 64, ROWS = 512, IN_RING = 100, N = ROWS + IN_RING, APART = 1024 };
    static const swa_type types[] = { SWA_F32, SWA_Q8, SWA_F16, SWA_Q8_32 };
    int32_t *all = (int32_t *)t_alloc(N * sizeof(int32_t));
    for (int i = 0; i < N; i++) all[i] = i;
    for (int round = 0; round < 16; round++) {
        const t_block *mark = t_.blocks;
        const swa_window win = swa_window_sliding(IN_RING);
        const int by_rows = round / 4 % 2;
        float *k = t_random(ROWS * APART, 1.0f), *v = t_random(ROWS * APART, 1.0f);
        float *want = t_floats(HEADS * D), *out = t_floats(HEADS * D);
        swa_kv kv[5];
        swa_rows r;
        swa_attn a;
        swa_cache_desc d;
        swa_cache c;
        memset(kv, 0, sizeof kv);
        memset(&r, 0, sizeof r);
        memset(&a, 0, sizeof a);
        memset(&d, 0, sizeof d);
        d.shape.n_heads = d.shape.n_kv_heads = HEADS;
        d.shape.head_dim = D;
        d.n_layers = d.n_windows = 1;
        d.windows = &win;
        d.max_rollback = IN_RING;
        d.v_type = types[round % 4];
        d.k_rows = &by_rows;
        d.n_k_rows = 1;
        d.isa = isa;
        REQUIRE(t_cache_new(&c, &d, 1));
        REQUIRE(CHECK_OK(swa_cache_reset(&c, 0, ROWS, round / 8 * 3)));
        a.mode = SWA_STORE_ONLY;
        a.k.p = t_random(IN_RING * HEADS * D, 1.0f);
        a.v.p = t_random(IN_RING * HEADS * D, 1.0f);
        REQUIRE(CHECK_OK(swa_step_one(&c, 0, ROWS, IN_RING)));
        REQUIRE(CHECK_OK(swa_attend(&c, 0, &a)));

        kv[0].k_token = INT64_MAX; /* empty too */
        kv[1].k = k;
        kv[1].v = v;
        kv[1].k_token = kv[1].v_token = APART;
        kv[1].n = ROWS;
        r.shape = d.shape;
        r.pos = N - 1;
        r.n_tokens = 1;
        r.kv = kv;
        r.n_kv = 2 + swa_cache_spans(&c, 0, 0, kv + 2);
        r.isa = isa;
        r.scratch_bytes = swa_attention_bytes(&r, 1);
        r.scratch = t_alloc(r.scratch_bytes);
        a.mode = SWA_ATTEND;
        a.q.p = t_random(HEADS * D, 4.0f);
        a.out.p = want;
        a.pick = all;
        a.pick_n = N;
        REQUIRE(CHECK_OK(swa_attention(&r, &a)));
        a.out.p = out;
        a.pick = NULL;
        a.pick_n = 0;
        REQUIRE(CHECK_OK(swa_attention(&r, &a)));
        t_label("V of type %d, %s, origin %d", (int)d.v_type, by_rows ? "by rows" : "in tiles", round / 8 * 3);
        CHECK_BITS(out, want, HEADS * D);
        t_free_to(mark);
    }
}

/* The f32 rows that rows of 16 bits stand for. */
static float *woven_wide(swa_type type, const void *rows, size_t n) {
    float *x = t_floats(n);
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, (const unsigned char *)rows + 2 * i, 2);
        const uint32_t as_f32 = (uint32_t)h << 16;
        if (type == SWA_BF16) memcpy(&x[i], &as_f32, 4);
        else x[i] = ldexpf((float)(h & 1023) + 1024.0f, (h >> 10 & 31) - 25) * (h & 0x8000 ? -1.0f : 1.0f);
    }
    return x;
}

/* Rows of 16 bits give the bits of the f32 rows that they stand for: few rows turn whole tiles of them as they are.
   Dims that fill no vectors, or none at all; tails; a segment that ends within a tile. */
TEST_EACH_ISA(bits_rows_of_16_bits) {
    enum { KEYS = 75, DV = 20 };
    static const int dims[] = { 16, 17, 24, 40, 9, 64 }, tails[] = { 0, 24, 16, 5 };
    for (int i = 0; i < 24; i++) {
        const t_block *mark = t_.blocks;
        const swa_type type = i % 2 ? SWA_F16 : SWA_BF16;
        const int heads = 2 * (1 + i % 5), dk = dims[i % 6], dt = tails[i / 6];
        const void *narrow[3] = { woven_numbers((size_t)(KEYS * 2 * dk), 2), woven_numbers(KEYS * 2 * DV, 2),
                                  woven_numbers((size_t)(KEYS * 2 * dt), 2) };
        float *out[2], *stat[2];
        const float *q = t_random(heads * dk, 1.0f), *q_tail = t_random(heads * dt, 1.0f);
        for (int wide = 0; wide < 2; wide++) {
            swa_kv kv[2] = { { 0 } };
            swa_rows r;
            swa_attn a = { 0 };
            kv[0].k = wide ? woven_wide(type, narrow[0], (size_t)(KEYS * 2 * dk)) : narrow[0];
            kv[0].v = wide ? woven_wide(type, narrow[1], KEYS * 2 * DV) : narrow[1];
            kv[0].tail = wide ? woven_wide(type, narrow[2], (size_t)(KEYS * 2 * dt)) : narrow[2];
            kv[0].k_type = wide ? SWA_F32 : type;
            kv[0].n = 37;
            kv[0].pos = i;
            kv[1] = kv[0];
            kv[1].pos += 37;
            kv[1].n = KEYS - 37;
            kv[1].k = (const char *)kv[0].k + 37 * 2 * dk * (wide ? 4 : 2);
            kv[1].v = (const char *)kv[0].v + 37 * 2 * DV * (wide ? 4 : 2);
            kv[1].tail = (const char *)kv[0].tail + 37 * 2 * dt * (wide ? 4 : 2);
            at_one_query(&r, heads, dk, kv, 2, i + KEYS - 1);
            r.shape.n_kv_heads = 2;
            r.shape.v_dim = DV;
            r.shape.tail_dim = dt;
            r.isa = isa;
            r.scratch_bytes = swa_attention_bytes(&r, 1);
            r.scratch = t_alloc(r.scratch_bytes);
            a.q.p = q;
            a.q_tail.p = dt ? q_tail : NULL;
            a.scale = 0.1f;
            a.out.p = out[wide] = t_floats(heads * DV);
            a.stat = stat[wide] = t_floats(2 * heads);
            t_label("case %d", i);
            REQUIRE(CHECK_OK(swa_attention(&r, &a)));
        }
        CHECK_BITS(out[0], out[1], heads * DV);
        CHECK_BITS(stat[0], stat[1], 2 * heads);
        t_free_to(mark);
    }
}

/* ---- spans that look ahead must come in one run; everything else may vary ---- */

TEST_EACH_ISA(bits_prefix) {
    for (int k = 0; k < 4; k++) {
        at_case c = at_new(4, 2, 16, 16, 60);
        at_data d;
        at_how how = at_on(t_other(isa));
        size_t n = 60 * at_o_row(&c), rows = 240;
        float *want = t_floats(n), *want_lse = t_floats(rows), *out = t_floats(n), *lse = t_floats(rows);
        if (k % 2) c.k_type = c.v_type = SWA_BF16;
        at_sliding(&c, k < 2 ? 9 : 40);
        at_span(&c, k % 2 * 6, k < 2 ? 25 : 31);
        d = at_make(&c);
        REQUIRE(at_ring(&c, &d, &how, want, want_lse));
        for (int j = 0; j < 12; j++) {
            how = at_on(isa);
            how.chunk = j;
            how.parts = j % 4;
            how.others = j % 3;
            how.capacity = j % 2 ? c.sees.left + 1 + j : 0;
            t_label("window %d chunk %d", (int)c.sees.left + 1, j);
            REQUIRE(at_ring(&c, &d, &how, out, lse));
            CHECK_BITS(out, want, n);
            CHECK_BITS(lse, want_lse, rows);
        }
        {
            at_data s = at_stored(&c, &d);
            how = at_on(isa);
            how.cuts = 4;
            REQUIRE(at_rows(&c, &s, &how, out, lse));
            CHECK_BITS(out, want, n);
            how.chunk = 1; /* no ring, no rule about runs: every key is there */
            REQUIRE(at_rows(&c, &s, &how, out, lse));
            CHECK_BITS(out, want, n);
        }
    }
}

/* ---- the two kernel shapes on the same rows ---- */

/* Many query heads over one KV head take the many-rows kernel, one alone the other: head by head the same bits. */
TEST_EACH_ISA(bits_shapes) {
    static const swa_type types[14] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8, SWA_F32,   SWA_F16,  SWA_BF16,
                                        SWA_Q8,  SWA_Q8,  SWA_F32,  SWA_Q8, SWA_Q8_32, SWA_E4M3, SWA_E5M2 };
    for (int t = 0; t < 14; t++) {
        enum { HEADS = 40, D = 24, N = 40 };
        at_case all = at_new(HEADS, 1, D, D, N), one = at_new(1, 1, D, D, N);
        at_data d, e;
        at_how how = at_on(isa);
        float *want = t_floats(N * HEADS * D), *out = t_floats(N * D);
        at_sliding(&all, 19);
        at_sliding(&one, 19);
        all.k_type = all.v_type = one.k_type = one.v_type = types[t];
        all.compute = one.compute = t < 4 ? SWA_F32 : t < 8 ? SWA_BF16 : t < 9 ? SWA_Q8 : SWA_BF16_TILE;
        if (t >= 11) all.compute = one.compute = SWA_F32;
        d = at_make(&all);
        REQUIRE(at_ring(&all, &d, &how, want, NULL));
        e = d;
        e.q = t_floats(N * D);
        how.chunk = 1;
        for (int h = 0; h < HEADS; h += 13) {
            size_t wrong = 0;
            for (size_t i = 0; i < N; i++) memcpy(e.q + i * D, d.q + (i * HEADS + (size_t)h) * D, D * sizeof(float));
            REQUIRE(at_ring(&one, &e, &how, out, NULL));
            for (size_t i = 0; i < N; i++)
                wrong += memcmp(out + i * D, want + (i * HEADS + (size_t)h) * D, D * sizeof(float)) != 0;
            t_label("type %d head %d", t, h);
            CHECK_INT(wrong, 0);
        }
    }
}

/* q8 products, which some CPUs have an instruction for: few rows in groups of 8, 4, 2 and 1, whole and half panels,
   dims in fours. */
TEST_EACH_ISA(bits_q8_products) {
    static const int dims[] = { 16, 30, 32, 33, 64 };
    for (int rows = 1; rows <= 15; rows += 7)
        for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
            at_case c = at_new(rows, 1, dims[i], 16, 30);
            at_how how = at_on(t_other(isa));
            size_t n = 30 * at_o_row(&c);
            float *want = t_floats(n), *out = t_floats(n);
            at_data d = at_make(&c);
            at_sliding(&c, 19);
            c.k_type = SWA_Q8;
            c.compute = SWA_Q8;
            t_label("%d rows of %d", rows, dims[i]);
            REQUIRE(at_ring(&c, &d, &how, want, NULL));
            how = at_on(isa);
            for (how.chunk = 1; how.chunk <= 30; how.chunk += 29) {
                REQUIRE(at_ring(&c, &d, &how, out, NULL));
                CHECK_BITS(out, want, n);
            }
        }
}
/* AVX2's, by AVX-VNNI: what bits_q8_products has not seen is said. */
TEST(bits_avx_vnni) {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__)) && !defined(SWA_NO_SIMD)
    unsigned r[4];
    if (!swa_isa_usable(SWA_ISA_AVX2) || !__get_cpuid_count(7, 1, r, r + 1, r + 2, r + 3) || (r[0] >> 4 & 1) == 0)
        SKIP("no AVX-VNNI here: AVX2's int8 products were not tested");
#endif
    CHECK(swa_isa_usable(SWA_ISA_SCALAR));
}

/* Numbers at the edges of what bf16 products take: rounded to infinity, just below what counts, subnormal, zero, what
   2^16 times overflows; and in f32, where it is stored as it comes, infinity. */
static void bits_edges(float *x, size_t n, swa_type type) {
    static const float edge[] = { 3.4e38f,        3.3895313e38f,  1.3877788e-17f, 1.3877786e-17f,  1.3850e-17f,
                                  2.0679515e-25f, 2.0679513e-25f, 2.06e-25f,      1e-30f,          1e-40f,
                                  0.0f,           7.6e-24f,       0x1p112f,       0x1.fffffep111f, INFINITY };
    for (size_t i = 0; i < n; i += 5) {
        const float e = edge[t_int(0, (int)(sizeof edge / sizeof edge[0]) - (type == SWA_F32 ? 1 : 2))];
        if (e < 1.0f || t_int(0, 63) == 0) x[i] = t_int(0, 1) ? e : -e;
    }
}
/* bf16 products of few rows, rounded in registers or by an instruction that some CPUs have: rows by fours and eights,
   dims that fill its kernel, K and V of all types, numbers at the edges, rings off the grid, sinks with a q of their
   own, and rows of the caller's. */
TEST_EACH_ISA(bits_few_rows_bf16) {
    static const int all[] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8, SWA_Q8_32, SWA_E4M3 }, dims[] = { 16, 30, 64, 66 };
    for (int rows = 1; rows <= 15; rows += rows == 1 ? 3 : rows == 4 ? 1 : 4)
        for (int f = 0; f < 32; f++) {
            if (t_leave(isa, f, f / 4 + rows / 4, 2)) continue;
            const t_block *mark = t_.blocks;
            at_case c = at_new(rows, 1, dims[(f + rows) % 4], f % 4 ? 64 : 120, 45);
            at_how how = at_on(t_other(isa));
            size_t n = 45 * at_o_row(&c), lines = 45 * (size_t)rows;
            float *want = t_floats(n), *want_lse = t_floats(lines), *out = t_floats(n), *lse = t_floats(lines);
            at_data d;
            c.compute = f < 16 ? SWA_BF16 : SWA_BF16_TILE;
            c.start = f % 5 == 1 ? 0 : 200;
            at_sliding(&c, f % 3 ? 30 : 21);
            c.k_type = (swa_type)all[f % 4];
            c.v_type = (swa_type)all[f % 16 < 8 ? f % 4 : f / 2 % 6];
            if (f % 5 == 1) at_pinned(&c, 30 + f % 3, 9);
            if (f % 5 == 1) c.q_sink = 1;
            d = at_make(&c);
            if (f & 4) bits_edges(d.k, 45 * (size_t)c.shape.head_dim, c.k_type);
            if (f & 4) bits_edges(d.v, 45 * (size_t)c.shape.v_dim, c.v_type);
            /* scores stay finite: of inf - inf the promise does not speak */
            for (size_t i = 0; (f & 4) && i < 45 * at_q_row(&c); i++) {
                d.q[i] *= 0.0078125f;
                if (c.q_sink) d.q_sink[i] *= 0.0078125f;
            }
            how.chunk = 1;
            t_label("%d rows, case %d", rows, f);
            REQUIRE(at_ring(&c, &d, &how, want, want_lse));
            for (int chunk = 1; chunk * rows < 16; chunk += rows < 4 ? 6 : 2) {
                how = at_on(isa);
                how.chunk = chunk;
                if (f % 5 == 3) how.capacity = 53;
                REQUIRE(at_ring(&c, &d, &how, out, lse));
                CHECK_BITS(out, want, n);
                CHECK_BITS(lse, want_lse, lines);
            }
            if (c.k_type != SWA_Q8 && c.v_type != SWA_Q8) {
                at_data s = at_stored(&c, &d);
                how.layout = f % 3;
                how.chunk = rows < 8 ? 2 : 1;
                REQUIRE(at_rows(&c, &s, &how, out, lse));
                CHECK_BITS(out, want, n);
            }
            t_free_to(mark);
        }
}

/* Few rows over f32, which some kernels take eight at a time: all their numbers, dims that fill no vectors or no fours,
   K or V of other types, rings off the grid of 16 slots, sinks with a q of their own. */
TEST_EACH_ISA(bits_few_rows) {
    static const int dims[] = { 16, 30, 33, 64 }, all[] = { SWA_F32, SWA_F16, SWA_Q8 };
    for (int rows = 8; rows <= 15; rows += rows == 8 ? 4 : 3)
        for (int f = 0; f < 12; f++) {
            if (t_leave(isa, f, rows / 3, 3)) continue;
            const t_block *mark = t_.blocks;
            at_case c = at_new(rows, 1, dims[f % 4], f < 4 ? 64 : dims[(f + rows) % 4], 90);
            at_how how = at_on(t_other(isa));
            size_t n = 90 * at_o_row(&c), lines = 90 * (size_t)rows;
            float *want = t_floats(n), *want_lse = t_floats(lines), *out = t_floats(n), *lse = t_floats(lines);
            at_data d;
            c.start = f % 5 == 1 ? 0 : 200;
            at_sliding(&c, f % 3 ? 60 : 41);
            if (f > 8) c.k_type = (swa_type)all[f % 3];
            if (f > 8) c.v_type = (swa_type)all[(f + rows) % 3];
            if (f % 5 == 1) at_pinned(&c, 70, 9);
            if (f % 5 == 1) c.q_sink = 1;
            d = at_make(&c);
            how.chunk = 1;
            t_label("%d rows, case %d", rows, f);
            REQUIRE(at_ring(&c, &d, &how, want, want_lse));
            how = at_on(isa);
            how.chunk = 1;
            if (f % 5 == 3) how.capacity = 67;
            REQUIRE(at_ring(&c, &d, &how, out, lse));
            CHECK_BITS(out, want, n);
            CHECK_BITS(lse, want_lse, lines);
            t_free_to(mark);
        }
}

/* Few rows over few keys, where several KV heads share a unit: each by itself, as they are with so many parts, they
   give the same. All that is done to a score, sinks, tails, rings off the grid, and the caller's rows. */
TEST_EACH_ISA(bits_few_keys) {
    static const int dims[] = { 16, 24, 33, 64, 128 };
    static const int types[] = { SWA_F32, SWA_F16, SWA_F32, SWA_BF16, SWA_Q8, SWA_F32, SWA_Q8_32, SWA_E5M2 };
    for (int f = 0; f < 60; f++) {
        if (t_leave(isa, f, f / 6, 2)) continue;
        const t_block *mark = t_.blocks;
        const int group = 1 + f % 5, heads = 2 + f % 7, last = f % 3 == 0 ? 20 : 70;
        at_case c = at_new(group * heads, heads, dims[f % 5], f % 2 ? dims[f % 5] : dims[f % 4], last);
        at_how how = at_on(t_other(isa));
        const size_t n = (size_t)last * at_o_row(&c), lines = (size_t)last * (size_t)c.shape.n_heads;
        float *want = t_floats(n), *want_lse = t_floats(lines), *out = t_floats(n), *lse = t_floats(lines);
        at_data d;
        at_sliding(&c, 5 + f * 7 % 60);
        if (f % 6 == 4) at_pinned(&c, 30, 3);
        c.q_sink = f % 12 == 4;
        c.start = f % 6 == 4 ? 0 : f * 37;
        c.k_type = (swa_type)types[f % 8];
        c.v_type = (swa_type)types[(f + f / 8) % 8];
        if (f % 10 == 7) c.shape.tail_dim = 5;
        if (f % 4 == 1) c.softcap = 3.0f;
        c.alibi = f % 4 == 2;
        c.bias = f % 8 == 3;
        c.sink_logits = f % 3 == 1;
        if (c.k_type == SWA_Q8 && f < 30 && c.shape.tail_dim == 0) c.compute = SWA_Q8;
        d = at_make(&c);
        how.chunk = 1;
        how.parts = 9;
        how.max_parts = 9;
        t_label("case %d", f);
        REQUIRE(at_ring(&c, &d, &how, want, want_lse));
        for (int way = 0; way < 4; way++) {
            if (t_leave(isa, f, way, 4)) continue;
            how = at_on(isa);
            how.chunk = 1 + way % 3;
            if (way % 2 == 1) how.capacity = 67 + f % 16;
            if (way == 2) how.others = 9, how.parts = how.max_parts = 2;
            how.put_first = way == 3; /* all keys in one segment of the ring: off its grid, in place */
            REQUIRE(at_ring(&c, &d, &how, out, lse));
            CHECK_BITS(out, want, n);
            CHECK_BITS(lse, want_lse, lines);
        }
        if (c.compute == SWA_F32 && c.k_type != SWA_Q8 && c.v_type != SWA_Q8) {
            at_data s = at_stored(&c, &d);
            how = at_on(isa);
            how.layout = f % 3;
            how.chunk = 1;
            how.cuts = f % 4;
            REQUIRE(at_rows(&c, &s, &how, out, lse));
            CHECK_BITS(out, want, n);
        }
        t_free_to(mark);
    }
}

/* Outputs too small for a number: their zero's sign is the same everywhere, as long as no compiler joins what ends a
   row to an FMA by itself. Few rows, and many. */
TEST(bits_of_the_smallest) {
    for (int heads = 2; heads <= 32; heads += 15) {
        at_case c = at_new(heads, 1, 8, 21, 4);
        const size_t n = 4 * at_o_row(&c);
        float *want = t_floats(n), *out = t_floats(n), *lse = t_floats(4 * (size_t)heads);
        at_how how = at_on(SWA_ISA_SCALAR);
        at_data d = at_make(&c);
        for (int i = 0; i < 4 * 21; i++) d.v[i] = (float)(i % 3 - 1) * 0x1p-149f;
        REQUIRE(at_ring(&c, &d, &how, want, lse));
        FOR_ISA(isa) {
            how.isa = isa;
            t_label("%d heads, %s", heads, swa_isa_name(isa));
            REQUIRE(at_ring(&c, &d, &how, out, lse));
            CHECK_BITS(out, want, n);
        }
    }
}

/* The same of many rows: panels of both widths, blocks' edges, all that is done to a score, rings of any rotation, in
   parts. The reference takes token after token, which is few rows, by another instruction set; so does way 0. */
TEST_EACH_ISA(bits_q8_products_of_many_rows) {
    static const int dims[] = { 1, 3, 4, 5, 30, 64, 96, 128, 256 }, chunks[] = { 1, 4, 5, 16, 75, 300 };
    for (int f = 0; f < 18; f++) {
        const t_block *mark = t_.blocks;
        const int dim = dims[f % 9] + f / 17 * 16; /* the last, above 256: q is packed before the first block */
        at_case c = at_new(f % 4 == 3 ? 3 : 8, f % 4 == 3 ? 1 : 2, dim, f % 2 ? dim : 24, 300);
        at_how how = at_on(t_other(isa));
        size_t n = 300 * at_o_row(&c), rows = 300 * (size_t)c.shape.n_heads;
        float *want = t_floats(n), *want_lse = t_floats(rows), *out = t_floats(n), *lse = t_floats(rows);
        at_data d;
        c.compute = c.k_type = SWA_Q8;
        c.v_type = f % 3 ? SWA_Q8 : SWA_F16;
        c.start = f % 2 ? 100 : 0;
        at_sliding(&c, f % 5 ? 130 : 41);
        if (f % 9 == 0) c.softcap = 2.0f;
        if (f % 9 == 1) c.sink_logits = 1;
        if (f % 9 == 2) c.alibi = 1;
        if (f % 9 == 3) c.bias = 1 + (f > 9);
        if (f % 9 > 6) at_pinned(&c, 70, f % 2 ? 9 : 33);
        if (f % 9 == 8) c.q_sink = 1;
        d = at_make(&c);
        how.chunk = 1;
        t_label("case %d", f);
        REQUIRE(at_ring(&c, &d, &how, want, want_lse));
        for (int way = 0; way < 6; way++) {
            const int chunk = chunks[way];
            if (t_leave(isa, f, way, 6)) continue;
            how = at_on(isa);
            how.chunk = chunk;
            how.parts = chunk % 3;
            if (chunk == 16 && f % 9 < 7) how.capacity = 153; /* off the grid of 16 slots */
            t_label("case %d: chunks of %d", f, chunk);
            REQUIRE(at_ring(&c, &d, &how, out, lse));
            CHECK_BITS(out, want, n);
            CHECK_BITS(lse, want_lse, rows);
        }
        t_free_to(mark);
    }
}

/* Numbers of every size from 2^-140 to 2^60: bf16 products drop what would be subnormal, in every instance alike. */
TEST_EACH_ISA(bits_bf16_of_any_size) {
    static const swa_type latents[4] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8 };
    for (int k = 0; k < 18; k++) {
        at_case c = at_new(k % 6 < 3 ? 24 : 4, 1, k < 6 ? 24 : k < 15 ? 70 : 21, 16, 50);
        at_how how = at_on(t_other(isa));
        size_t n = 50 * at_o_row(&c), rows = 50 * (size_t)c.shape.n_heads;
        float *want = t_floats(n), *want_lse = t_floats(rows), *out = t_floats(n), *lse = t_floats(rows);
        at_data d;
        at_sliding(&c, 30);
        c.compute = k < 6 || k >= 12 ? SWA_BF16 : SWA_BF16_TILE;
        if (k % 3 == 2) c.v_type = SWA_Q8;
        if (k >= 12) { /* V is K's first dims */
            c.shape.v_in_k = 1;
            c.k_type = c.v_type = latents[k % 4];
        }
        d = at_make(&c);
        for (size_t i = 0; i < 50 * at_q_row(&c); i++) d.q[i] = ldexpf(d.q[i], -t_int(0, 140));
        for (size_t i = 0; i < 50 * at_k_row(&c); i++)
            d.k[i] = ldexpf(d.k[i], k % 3 == 0 || k >= 12 ? -t_int(0, 140) : t_int(0, 60));
        for (size_t i = 0; d.v != NULL && i < 50 * at_v_row(&c); i++) d.v[i] = ldexpf(d.v[i], t_int(-140, 20));
        REQUIRE(at_ring(&c, &d, &how, want, want_lse));
        how = at_on(isa);
        for (how.chunk = 0; how.chunk < 40; how.chunk += 7) {
            t_label("case %d chunk %d", k, how.chunk);
            REQUIRE(at_ring(&c, &d, &how, out, lse));
            CHECK_BITS(out, want, n);
            CHECK_BITS(lse, want_lse, rows);
        }
    }
}

/* K and V up to the largest float, which bf16 would round to infinity: they are cut to its largest number instead. */
TEST_EACH_ISA(bits_bf16_of_the_largest) {
    for (int k = 0; k < 8; k++) {
        at_case c = at_new(k & 1 ? 4 : 24, 1, 24, 16, 40);
        at_how how = at_on(t_other(isa));
        size_t n = 40 * at_o_row(&c), row, wild = 0;
        float *want = t_floats(n), *out = t_floats(n);
        at_data d;
        at_sliding(&c, 3);
        c.compute = k & 2 ? SWA_BF16_TILE : SWA_BF16;
        c.shape.v_in_k = k >> 2;
        d = at_make(&c);
        for (size_t i = 0; i < 40 * at_q_row(&c); i++) d.q[i] = ldexpf(d.q[i], -50);
        row = at_k_row(&c); /* of every fourth token, so that a query sees at most one */
        for (size_t i = 0; i < 40 * row; i++)
            if (i / row % 4 == 1 && t_int(0, 1)) d.k[i] = d.k[i] < 0 ? -FLT_MAX : FLT_MAX;
        row = at_v_row(&c);
        for (size_t i = 0; d.v != NULL && i < 40 * row; i++)
            if (i / row % 4 == 1 && t_int(0, 1)) d.v[i] = d.v[i] < 0 ? -FLT_MAX : FLT_MAX;
        REQUIRE(at_ring(&c, &d, &how, want, NULL));
        for (size_t i = 0; i < n; i++) wild += !(fabsf(want[i]) <= 3.38953139e38f);
        t_label("case %d", k);
        CHECK_INT(wild, 0);
        how = at_on(isa);
        for (how.chunk = 0; how.chunk < 27; how.chunk += 13) {
            REQUIRE(at_ring(&c, &d, &how, out, NULL));
            CHECK_BITS(out, want, n);
        }
    }
}

/* ---- other layers and a step that does not store ---- */

TEST_EACH_ISA(bits_no_store) {
    bits x;
    swa_cache kv;
    at_how how = at_on(isa);
    at_call call;
    size_t at;
    REQUIRE(bits_open(&x, 0));
    at = 20 * at_o_row(&x.b.c);
    how.chunk = 5;
    how.capacity = 64; /* room to take back a step of 25 */
    REQUIRE(at_cache(&kv, &x.b.c, &how) && at_ring_on(&kv, &x.b.c, &x.d, &how, 0, 20, x.out, x.lse));
    for (int again = 0; again < 2; again++) {
        call = at_queries(&x.b.c, &x.d, x.d.q + 20 * at_q_row(&x.b.c), NULL, NULL, 25, &how);
        call.a.k.p = x.d.k + 20 * at_k_row(&x.b.c);
        call.a.v.p = x.d.v + 20 * at_v_row(&x.b.c);
        call.a.mode = SWA_ATTEND_NO_STORE;
        REQUIRE_OK(swa_step_one(&kv, 0, 20, 25));
        for (int twice = 0; twice < 2; twice++) { /* layers that share K and V attend to the same rows */
            REQUIRE_OK(swa_attend(&kv, 0, &call.a));
            CHECK_BITS(call.out.p, x.want + at, 25 * at_o_row(&x.b.c));
        }
        if (again) break;
        REQUIRE_OK(swa_cache_truncate(&kv, 0, 20));
    }
}

/* Scores of +0 and -0 (a product that underflows): the maximum that stat gives must not tell which came first, nor on
   which instruction set or in which shape. Heads of one group make few rows; 20 of them, many. */
TEST(bits_of_a_zero_maximum) {
    float q[20], k[16], v[16], out[20], stat[40];
    for (int order = 0; order < 2; order++)
        for (int heads = 1; heads <= 20; heads += 19) FOR_ISA(isa) {
                swa_rows r;
                swa_kv kv = { 0 };
                swa_attn a = { 0 };
                for (int i = 0; i < 20; i++) q[i] = 1e-30f;
                for (int i = 0; i < 16; i++) {
                    k[i] = i % 2 == order ? 0.0f : -1e-30f;
                    v[i] = (float)i;
                }
                kv.k = k;
                kv.v = v;
                kv.k_type = kv.v_type = SWA_F32;
                kv.n = 16;
                at_one_query(&r, heads, 1, &kv, 1, 15);
                r.isa = isa;
                a.q.p = q;
                a.out.p = out;
                a.stat = stat;
                CHECK_OK(swa_attention(&r, &a));
                for (int i = 0; i < heads; i++) {
                    uint32_t top;
                    memcpy(&top, &stat[2 * i], 4);
                    CHECK_INT(top, 0);
                }
            }
}

typedef struct {
    int heads, dim; /* heads on 8 */
    swa_type type;
} long_ring;

/* Its keys: 4 MB of K and some more. */
static int long_ring_keys(const long_ring *c) { return (4 << 20) / (8 * (c->type == SWA_F32 ? 4 : 2) * c->dim) + 300; }

/* One token over so many keys behind 37 pinned ones, in a ring that has wrapped. */
static int bits_long_ring(int isa, const long_ring *c, const float *rows, float *out) {
    const int n = long_ring_keys(c), last = n + n / 3;
    swa_cache_desc d = { 0 };
    swa_window win = swa_window_sinks(n, 37);
    swa_attn a = { 0 };
    swa_cache kv;
    void *mem;
    size_t room;
    d.shape.n_heads = c->heads;
    d.shape.n_kv_heads = 8;
    d.shape.head_dim = d.shape.v_dim = c->dim;
    d.windows = &win;
    d.n_windows = d.n_layers = 1;
    d.k_type = d.v_type = c->type;
    d.isa = isa;
    room = swa_cache_bytes(&d);
    mem = t_alloc(room + swa_cache_scratch_bytes(&d, 1));
    if (!CHECK_OK(swa_cache_init(&kv, &d, mem, room))) return 0;
    if (!CHECK_OK(swa_cache_set_scratch(&kv, (char *)mem + room, swa_cache_scratch_bytes(&d, 1)))) return 0;
    for (int pos = 0, step; pos <= last; pos += step) {
        step = pos == last ? 1 : last - pos < 64 ? last - pos : 64;
        a.mode = pos == last ? SWA_ATTEND : SWA_STORE_ONLY;
        a.q.p = rows;
        a.k.p = rows + pos * 8;
        a.v.p = rows + pos * 8 + 64 * 8 * c->dim; /* behind a chunk's K */
        a.out.p = out;
        if (!CHECK_OK(swa_step_one(&kv, 0, pos, step)) || !CHECK_OK(swa_attend(&kv, 0, &a))) return 0;
    }
    return 1;
}

/* A few rows of each KV head over more than 4 MB of K: some CPUs read most such shapes in an order of its own. */
TEST(bits_of_long_rings) {
    static const long_ring all[] = {
        { 32, 64, SWA_F32 },  { 32, 128, SWA_F32 }, { 32, 192, SWA_F32 }, { 32, 80, SWA_F32 },
        { 24, 64, SWA_F32 },  { 16, 128, SWA_F32 }, { 8, 128, SWA_F32 },  { 8, 192, SWA_F32 },
        { 16, 128, SWA_F16 }, { 8, 128, SWA_F16 },  { 8, 128, SWA_BF16 },
    };
    static float want[32 * 192], out[32 * 192];
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        const long_ring *c = &all[k];
        const size_t numbers = (size_t)(long_ring_keys(c) * 2 * 8 + 2 * 64 * 8 * c->dim);
        float *rows = t_floats(numbers);
        uint32_t seed = 1;
        for (size_t i = 0; i < numbers; i++) {
            seed = seed * 1664525u + 1013904223u;
            rows[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
        }
        REQUIRE(bits_long_ring(SWA_ISA_SCALAR, c, rows, want));
        FOR_ISA(isa) {
            if (isa == SWA_ISA_SCALAR) continue;
            REQUIRE(bits_long_ring(isa, c, rows, out));
            CHECK_BITS(out, want, c->heads * c->dim);
        }
    }
}

/* Tokens on both sides of a block's edge, more parts than blocks: a part's share may be a block of which its rows see
   nothing. What it leaves for phase 1 is a sum of no keys, not what stood in the scratch. */
TEST_EACH_ISA(parts_that_see_nothing) {
    enum { FROM = 520, MOST = 6, PARTS = 9, HEADS = 1 };
    static const swa_type compute[] = { SWA_F32, SWA_BF16, SWA_BF16_TILE, SWA_Q8 };
    const swa_window windows[] = { swa_window_causal(), swa_window_sliding(9), swa_window_sliding(300) };
    for (int f = 0; f < 3 * 4 * 3; f++) {
        const int dim = f % 3 == 0 ? 16 : f % 3 == 1 ? 40 : 64, n = 2 + f % (MOST - 1), row = HEADS * dim;
        const int at = (f % 2 ? 256 : 512) - n / 2;
        const swa_type by = compute[f / 3 % 4];
        float *x = t_random((size_t)((FROM + MOST) * row), 1.0f), *stat = t_floats(n * HEADS * 2);
        float *out[2] = { t_floats(n * row), t_floats(n * row) };
        swa_cache_desc d;
        swa_cache kv;
        swa_attn a;
        void *scratch;
        size_t room;
        memset(&d, 0, sizeof d);
        d.shape.n_heads = d.shape.n_kv_heads = HEADS;
        d.shape.head_dim = dim;
        d.n_layers = 1;
        d.windows = &windows[f / 12];
        d.n_windows = 1;
        d.max_context = FROM + MOST;
        d.max_rollback = MOST;
        d.k_type = by == SWA_Q8 ? SWA_Q8 : SWA_F32;
        d.isa = isa;
        room = swa_cache_scratch_bytes(&d, PARTS);
        scratch = t_alloc(room);
        REQUIRE(t_cache_new(&kv, &d, 1));
        CHECK_OK(swa_cache_set_scratch(&kv, scratch, room));
        memset(&a, 0, sizeof a);
        a.mode = SWA_STORE_ONLY;
        a.k.p = a.v.p = x;
        CHECK_OK(swa_step_one(&kv, 0, 0, at));
        CHECK_OK(swa_attend(&kv, 0, &a));
        a.mode = SWA_ATTEND_NO_STORE;
        a.q.p = a.k.p = a.v.p = x + at * row;
        a.compute = by;
        CHECK_OK(swa_step_one(&kv, 0, at, n));
        for (int with = 0; with < 2; with++)
            for (int parts = 1; parts <= PARTS; parts++) {
                t_label("case %d, %d parts%s", f, parts, with ? ", stat" : "");
                memset(scratch, 0xff, room);
                a.stat = with ? stat : NULL;
                a.out.p = out[parts > 1];
                for (int phase = 0; phase < SWA_PHASES; phase++)
                    for (int part = 0; part < parts; part++) CHECK_OK(swa_attend_part(&kv, 0, &a, phase, part, parts));
                CHECK_BITS(out[parts > 1], out[0], (size_t)(n * row));
            }
    }
}

/* A ring whose slots begin off the grid of 16, read by few rows in every type and order of products: tiles of K are
   others than those of V and of positions. */
TEST_EACH_ISA(rotations_by_compute) {
    enum { N = 40, DIM = 16 };
    static const swa_type types[] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8 };
    static const swa_type compute[] = { SWA_F32, SWA_BF16, SWA_BF16_TILE, SWA_Q8 };
    const swa_window windows[] = { swa_window_sliding(3), swa_window_sliding(21) };
    float *x = t_random(N * DIM, 1.0f), *out[2] = { t_floats(N * DIM), t_floats(N * DIM) };
    for (int f = 0; f < 4 * 4 * 2; f++) {
        swa_cache_desc d;
        swa_cache kv;
        memset(&d, 0, sizeof d);
        d.shape.n_heads = d.shape.n_kv_heads = 1;
        d.shape.head_dim = DIM;
        d.n_layers = 1;
        d.windows = &windows[f % 2];
        d.n_windows = 1;
        d.k_type = types[f / 2 % 4];
        d.isa = isa;
        if (compute[f / 8] == SWA_Q8 && d.k_type != SWA_Q8) continue;
        REQUIRE(t_cache_new(&kv, &d, 1));
        for (int origin = 0; origin < 16; origin += 1 + f % 3) {
            CHECK_OK(swa_cache_reset(&kv, 0, 0, origin));
            for (int i = 0; i < N; i++) {
                swa_attn a;
                memset(&a, 0, sizeof a);
                a.q.p = a.k.p = a.v.p = x + i * DIM;
                a.out.p = out[origin > 0] + i * DIM;
                a.compute = compute[f / 8];
                CHECK_OK(swa_step_one(&kv, 0, i, 1));
                for (int stored = 0; stored < 2; stored++) { /* which is one segment, and read in place */
                    a.mode = stored ? SWA_ATTEND_STORED : SWA_STORE_ONLY;
                    t_dirty_stack();
                    CHECK_OK(swa_attend(&kv, 0, &a));
                }
            }
            t_label("case %d, origin %d", f, origin);
            CHECK_BITS(out[origin > 0], out[0], N * DIM);
        }
    }
}

/* Lists of large entries, and windows beside them: stretches of a block, which few rows read as they lie, among keys
   that are gathered. The reference gathers all of them. */
TEST_EACH_ISA(bits_listed_stretches) {
    static const int heads[][2] = { { 2, 2 }, { 16, 2 }, { 16, 1 }, { 12, 1 }, { 8, 2 } };
    for (int i = isa % 2; i < 10; i += t_thin(isa) ? 4 : 2) {
        const t_block *mark = t_.blocks;
        const swa_window near = swa_window_sliding(t_int(100, 250));
        const int entries = i < 5 ? 3 : 6;
        at_case c = at_new(heads[i % 5][0], heads[i % 5][1], 16, 16, 300);
        const size_t n = (size_t)c.n * at_o_row(&c), lists = (size_t)(c.n * c.shape.n_kv_heads * entries);
        float *want = t_floats(n), *out = t_floats(n);
        at_how how = at_on(SWA_ISA_SCALAR);
        at_data d;
        at_vary(&c, i % 5 == 4 ? 4 : 0);
        c.start = t_int(300, 600);
        if (i % 3 == 2) { /* of which the first block has all */
            at_pinned(&c, 200, t_int(1, 40));
            c.start = 0;
            c.q_sink = 1;
        }
        c.pick_block = i < 5 ? 128 : 64;
        c.pick_n = entries;
        if (i % 3) c.pick_window = &near; /* whichever half an instruction set has */
        d = at_make(&c);
        d.pick = (int32_t *)t_alloc(lists * sizeof(int32_t));
        for (size_t j = 0; j < lists; j++)
            d.pick[j] = t_int((int)c.start / c.pick_block, (int)(c.start + c.n) / c.pick_block);
        if (!at_ring(&c, &d, &how, want, NULL)) continue;
        how.isa = isa;
        for (int way = 0; way < 2; way++) {
            t_label("case %d, way %d", i, way);
            how.chunk = way ? t_int(1, 200) : 1;
            how.parts = way ? t_int(2, 4) : 0;
            how.k_rows = way && i % 3 == 0;
            if (way) how.capacity = c.sees.left < OR_FAR ? c.sees.left + 1 + t_int(0, 40) : 0;
            if (at_ring(&c, &d, &how, out, NULL)) CHECK_BITS(out, want, n);
        }
        t_free_to(mark);
    }
}
