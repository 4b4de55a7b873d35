/* Attention against the definition in double (oracle.h): every head size and group, window, storage type and
   feature, on every instruction set, over the ring and without it. K and V are compared as the ring stores them, so
   the tolerance is that of float arithmetic alone, whatever the type. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "attend.h"

/* Times the largest |output| of the case. Scores here reach about 12, a float's rounding of 12 is 1e-6. */
#define TOL     4e-6
#define LSE_TOL 1e-5

static const swa_type all_types[4] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8 };

/* ---- a random case, both ways ---- */

static void random_window(at_case *c) {
    switch (t_int(0, 9)) {
    case 0: break;
    case 1: at_chunked(c, t_int(1, 20)); break;
    case 2: at_pinned(c, t_int(1, 12), t_int(1, 5)); break;
    case 3: at_sliding(c, 16); break;
    case 4: at_sliding(c, 1); break;
    case 5: at_sliding(c, c->n + 3); break;
    default: at_sliding(c, t_int(1, c->n)); break;
    }
}
static void random_features(at_case *c) {
    c->softcap = t_int(0, 3) ? 0.0f : 3.0f + t_unit();
    c->scale = t_int(0, 2) ? 0.0f : 0.4f / (float)sqrt((double)at_dk(c));
    c->sink_logits = !t_int(0, 3);
    c->alibi = !t_int(0, 3);
    c->bias = t_int(0, 3) ? 0 : t_int(1, 2);
    c->q_sink = c->sees.pinned && t_int(0, 1);
    if (!t_int(0, 4) && !c->sees.chunk && c->n > 4) {
        const int span = t_int(2, c->n);
        at_span(c, t_int(0, 2) ? 0 : t_int(0, span - 1), span);
    }
}
static at_how random_how(const at_case *c, int isa) {
    at_how how = at_on(isa);
    how.chunk = t_int(0, 2) ? t_int(1, c->n) : 0;
    how.parts = t_int(0, 1) ? 0 : t_int(1, 5);
    how.layout = t_int(0, 2);
    how.alias = !t_int(0, 3);
    how.others = t_int(0, 3) ? 0 : t_int(1, 2);
    how.cuts = t_int(0, 4);
    if (c->sees.left < OR_FAR && !t_int(0, 3)) how.capacity = c->sees.left + t_int(1, 20);
    return how;
}
/* Over the ring and without it, as `how` says; both against the oracle. */
static void both_ways(const at_case *c, const at_how *how) {
    const t_block *mark = t_.blocks;
    size_t rows = (size_t)c->n * (size_t)c->shape.n_heads, n = (size_t)c->n * at_o_row(c);
    at_data d = at_make(c), s = at_stored(c, &d);
    float *out = t_floats(n), *lse = t_floats(rows);
    double *want = t_doubles(n), *want_lse = t_doubles(rows);
    at_oracle(c, &s, want, want_lse);
    if (c->window.right == 0 && !c->absent && at_ring(c, &d, how, out, lse)) {
        CHECK_CLOSE(out, want, n, TOL);
        CHECK_CLOSE(lse, want_lse, rows, LSE_TOL);
    }
    if (at_rows(c, &s, how, out, lse)) {
        CHECK_CLOSE(out, want, n, TOL);
        CHECK_CLOSE(lse, want_lse, rows, LSE_TOL);
    }
    t_free_to(mark);
}
static void name_case(const at_case *c, const at_how *how) {
    t_label("heads %d/%d dims %d+%d/%d%s %s/%s/%s n=%d start=%lld W=%lld pin=%d span=%d f=%d%d%d%d "
            "chunk=%d parts=%d cap=%d",
            c->shape.n_heads, c->shape.n_kv_heads, c->shape.head_dim, c->shape.tail_dim, c->shape.v_dim,
            c->shape.v_in_k ? " in k" : "", t_type(c->k_type), t_type(c->v_type), t_type(c->tail_type), c->n,
            (long long)c->start, c->sees.left >= OR_FAR ? -1LL : (long long)c->sees.left + 1, (int)c->sees.pinned,
            c->span, c->softcap > 0.0f, c->sink_logits, c->alibi, c->bias, how->chunk, how->parts, (int)how->capacity);
}
static void random_case(int h, int kv, int dk, int dv, int n, int isa) {
    at_case c = at_new(h, kv, dk, dv, n);
    at_how how;
    c.k_type = at_types[t_int(0, AT_TYPES - 1)];
    c.v_type = at_types[t_int(0, AT_TYPES - 1)];
    if (t_int(0, 1)) c.start = t_int(0, 300);
    random_window(&c);
    if (c.sees.pinned && t_int(0, 1)) c.start = t_int(0, 3);
    random_features(&c);
    how = random_how(&c, isa);
    name_case(&c, &how);
    both_ways(&c, &how);
}

TEST_EACH_ISA(attention_head_dims) {
    static const int dims[] = { 1, 3, 8, 16, 17, 64, 80, 128 }, groups[] = { 1, 2, 3, 5, 8 };
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
        for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
            for (int k = 0; k < 3; k++) {
                int kv = t_int(1, 2), dv = t_int(0, 2) ? dims[i] : t_int(1, 40);
                random_case(kv * groups[g], kv, dims[i], dv, t_int(1, 40), isa);
            }
}
TEST_EACH_ISA(attention_other_dims) {
    static const int dims[] = { 2, 5, 7, 9, 15, 24, 31, 32, 33, 48, 96, 100, 112, 192, 256, 576 };
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        random_case(4, 2, dims[i], dims[i], t_int(20, 40), isa);
        random_case(6, 1, dims[i], t_int(1, 70), t_int(1, 30), isa);
    }
    random_case(40, 2, 16, 16, 12, isa);
    random_case(71, 1, 12, 12, 9, isa);
}
/* Every pair of storage types, all features on at once. */
TEST_EACH_ISA(attention_types) {
    for (int k = 0; k < AT_TYPES; k++)
        for (int v = 0; v < AT_TYPES; v++)
            for (int few = 0; few < 2; few++) {
                at_case c = at_new(6, 2, 24, 20, 40);
                at_how how = at_on(isa);
                c.k_type = at_types[k];
                c.v_type = at_types[v];
                at_sliding(&c, 19);
                c.softcap = 4.0f;
                c.sink_logits = c.alibi = 1;
                c.bias = 1 + (k + v) % 2;
                how.chunk = few ? 1 : 0;
                name_case(&c, &how);
                both_ways(&c, &how);
            }
}
/* One feature at a time: a fault in one must not hide behind another. */
TEST_EACH_ISA(attention_features) {
    for (int f = 0; f < 9; f++)
        for (int chunk = 0; chunk < 30; chunk += chunk ? 22 : 1) {
            at_case c = at_new(4, 2, 16, 16, 50);
            at_how how = at_on(isa);
            at_sliding(&c, 21);
            if (f == 0) c.scale = 0.1f;
            if (f == 1) c.softcap = 2.0f;
            if (f == 2) c.sink_logits = 1;
            if (f == 3) c.alibi = 1;
            if (f == 4) c.bias = 1;
            if (f == 5) at_pinned(&c, 9, 4);
            if (f == 6) {
                at_pinned(&c, 9, 4);
                c.q_sink = 1;
            }
            if (f == 7) at_span(&c, 0, 30);
            if (f == 8) c.bias = 2;
            how.chunk = chunk;
            t_label("feature %d chunk %d", f, chunk);
            both_ways(&c, &how);
        }
}
/* Faster products, with their own accuracy, beside the inputs and beside what the ring holds. */
TEST_EACH_ISA(attention_compute) {
    for (int k = 0; k < 14; k++)
        for (int chunk = 0; chunk < 2; chunk++) {
            if (t_leave(isa, k, chunk, 2)) continue;
            const t_block *mark = t_.blocks;
            const int latent = k == 8 || k == 13, half = k < 4 || k >= 8;
            at_case c = latent ? at_new(4, 1, 64, 48, 160) : at_new(4, 2, 64, 64, 160);
            size_t n = 160 * at_o_row(&c), rows = 160 * 4;
            double *want = (double *)t_alloc(n * sizeof *want), *lse = (double *)t_alloc(rows * sizeof *lse);
            double wrong = 0, whole = 0;
            float *out = t_floats(n);
            at_how how = at_on(isa);
            at_data d, s;
            how.chunk = chunk;
            c.shape.v_in_k = latent;
            c.compute = k >= 9 ? SWA_BF16_TILE : half ? SWA_BF16 : SWA_Q8;
            c.k_type = half ? all_types[k % 4] : SWA_Q8;
            c.v_type = all_types[k % 4];
            c.size = 1.0f;
            c.start = 190; /* over the edge of a block of 256 */
            at_sliding(&c, 110);
            d = at_make(&c);
            s = at_stored(&c, &d);
            at_oracle(&c, &s, want, lse);
            if (at_ring(&c, &d, &how, out, NULL))
                for (size_t i = 0; i < n; i++) {
                    wrong += (out[i] - want[i]) * (out[i] - want[i]);
                    whole += want[i] * want[i];
                }
            t_label("case %d chunk %d: relative error %.2e", k, chunk, sqrt(wrong / whole));
            CHECK(sqrt(wrong / whole) < (half ? 4e-3 : 1.2e-2));
            CHECK(wrong > 0); /* else the switch did nothing */
            t_free_to(mark);
        }
}
/* Several blocks of 256 keys, which are reduced apart and folded; windows that end inside, at and beyond blocks. */
TEST_EACH_ISA(attention_long) {
    static const int windows[] = { 255, 256, 257, 300, 511, 600 };
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++)
        for (int few = 0; few < 2; few++) {
            if (t_leave(isa, (int)i, few, 2)) continue;
            at_case c = at_new(2, 1, 8, 8, 700);
            at_how how = at_on(isa);
            at_sliding(&c, windows[i]);
            c.k_type = all_types[i % 4];
            c.v_type = all_types[(i + 1) % 4];
            c.start = t_int(0, 1) ? 0 : 1000003;
            how.chunk = few ? 5 : 333;
            how.cuts = 3;
            name_case(&c, &how);
            both_ways(&c, &how);
        }
}
/* Latent rows: V is the head of K, a tail with a type of its own, many query heads over one row. */
TEST_EACH_ISA(attention_latent) {
    for (int i = 0; i < 10; i++)
        for (int few = 0; few < 2; few++) {
            int dk = i == 9 ? 512 : t_int(1, 5) * 16 - t_int(0, 1) * 5;
            at_case c = at_new(i % 2 ? 16 : 5, 1, dk, t_int(0, 1) ? dk : (dk + 1) / 2, i == 9 ? 20 : t_int(3, 40));
            at_how how;
            c.shape.v_in_k = i % 3 != 2;
            c.shape.tail_dim = i == 9 ? 64 : i == 4 ? 0 : t_int(1, 20);
            c.k_type = at_types[t_int(0, AT_TYPES - 1)];
            c.v_type = c.shape.v_in_k ? SWA_F32 : at_types[t_int(0, AT_TYPES - 1)];
            c.tail_type = at_types[t_int(0, AT_TYPES - 1)];
            random_window(&c);
            random_features(&c);
            how = random_how(&c, isa);
            how.alias = 0;
            if (few) how.chunk = 1;
            name_case(&c, &how);
            both_ways(&c, &how);
        }
}
/* Windows that look ahead have no ring: the stateless call only. */
TEST_EACH_ISA(attention_look_ahead) {
    for (int i = 0; i < 24; i++) {
        at_case c = at_new(4, 2, 16, 12, t_int(1, 60));
        at_how how;
        int left = t_int(-1, 20), right = t_int(1, 20);
        if (i % 4 == 0) {
            c.window = swa_window_symmetric(right);
            left = right;
        } else {
            if (i % 4 == 1) right = -1;
            c.window = swa_window_flash(left, right);
        }
        c.sees.left = left < 0 ? OR_FAR : left;
        c.sees.right = right < 0 ? OR_FAR : right;
        c.k_type = all_types[t_int(0, 2)];
        c.v_type = all_types[t_int(0, 2)];
        c.start = t_int(0, 1) * 1000;
        random_features(&c);
        c.span = 0;
        c.sees.span_lo = c.sees.span_hi = 0;
        how = random_how(&c, isa);
        name_case(&c, &how);
        both_ways(&c, &how);
    }
}

/* Sequences that begin before, among and after the pinned positions, windows that cover some of them. */
TEST_EACH_ISA(attention_pinned) {
    for (int start = 0; start < 7; start++)
        for (int pin = 1; pin < 6; pin += 2)
            for (int W = 1; W < 12; W += 5) {
                at_case c = at_new(2, 1, 16, 16, 14);
                at_how how = at_on(isa);
                c.start = start;
                at_pinned(&c, W, pin);
                how.chunk = t_int(0, 3);
                how.parts = t_int(0, 2);
                how.cuts = t_int(0, 2);
                name_case(&c, &how);
                both_ways(&c, &how);
            }
}

/* Heads whose few keys are one block go together; sinks lie far in front of the window's tiles. */
TEST_EACH_ISA(attention_pinned_heads_together) {
    at_case c = at_new(8, 8, 16, 16, 230);
    at_how how = at_on(isa);
    at_pinned(&c, 16, 4);
    how.chunk = 1;
    both_ways(&c, &how);
}
/* Where only the tail is rotated (MLA), pinned keys want another tail and the same q: q_sink_tail alone; q_sink alone
   means the same tail. Each as if both were given, bit for bit. */
TEST_EACH_ISA(attention_pinned_by_half) {
    for (int half = 0; half < 2; half++)
        for (int n = 1; n <= 20; n += 19) {
            at_case c = at_new(4, 1, 16, 16, 60);
            at_how how = at_on(isa);
            at_data d, s;
            float *whole = t_floats(60 * 64), *out = t_floats(60 * 64);
            double *want = t_doubles(60 * 64);
            swa_cache kv;
            c.shape.tail_dim = 6;
            c.shape.v_in_k = 1;
            at_pinned(&c, 9, 4);
            c.q_sink = 1;
            how.chunk = n;
            d = at_make(&c);
            for (size_t i = 0; i < 60 * 4; i++) /* half: what q_sink would be if it were left out */
                memcpy(d.q_sink + 22 * i + (half ? 16 : 0), d.q + 22 * i + (half ? 16 : 0),
                       (half ? 6u : 16u) * sizeof(float));
            s = at_stored(&c, &d);
            at_oracle(&c, &s, want, NULL);
            t_label("q_sink%s alone, chunks of %d", half ? "" : "_tail", n);
            REQUIRE(at_ring(&c, &d, &how, whole, NULL));
            CHECK_CLOSE(whole, want, 60 * 64, TOL);
            REQUIRE(at_cache(&kv, &c, &how));
            for (int p = 0; p < 60; p += n) {
                const size_t at = (size_t)p * at_q_row(&c);
                at_call call = at_queries(&c, &d, d.q + at, d.q_sink + at, NULL, (size_t)n, &how);
                if (half) call.a.q_sink_tail.p = NULL;
                else call.a.q_sink.p = NULL;
                call.a.k = at_in(at_lay(d.k + (size_t)p * 22, (size_t)n, 1, 22, 0, 16, 0));
                call.a.k_tail = at_in(at_lay(d.k + (size_t)p * 22, (size_t)n, 1, 22, 16, 6, 0));
                REQUIRE_OK(swa_step_one(&kv, 0, p, n));
                REQUIRE(at_run_ring(&kv, 0, &call.a, 0));
                at_results(&c, &call, 0, (size_t)n, out + p * 64, NULL);
            }
            CHECK_BITS(out, whole, 60 * 64);
        }
}

/* Pinned positions that the window still shows, in a block that it shows whole. */
TEST_EACH_ISA(attention_pinned_in_the_window) {
    for (int n = 258; n < 300; n += 41)
        for (int chunk = 1; chunk < 300; chunk += 256) {
            at_case c = at_new(2, 1, 16, 16, n);
            at_how how = at_on(isa);
            at_pinned(&c, 290, 4);
            c.q_sink = 1;
            how.chunk = chunk;
            name_case(&c, &how);
            both_ways(&c, &how);
        }
}

/* ---- rows that see nothing, keys that are not there ---- */

TEST_EACH_ISA(attention_gaps) {
    for (int i = 0; i < 12; i++) {
        at_case c = at_new(4, 2, 16, 16, 40);
        at_how how;
        unsigned char *absent = (unsigned char *)t_alloc(40);
        for (int j = 0; j < 40; j++) absent[j] = i == 0 || t_int(0, i % 4) == 0;
        c.absent = absent;
        random_window(&c);
        random_features(&c);
        how = random_how(&c, isa);
        name_case(&c, &how);
        both_ways(&c, &how);
    }
}
/* However far apart the segments lie: what a query sees of them is what it sees of the same rows side by side. The
   queries are the last rows' own; few of them over several parts are split over the keys. */
enum { FAR_D = 16 };
static float *far_out(int isa, const swa_kv *kv, int n_kv, const float *q, int rows, int parts) {
    float *out = t_floats(rows * FAR_D);
    swa_rows r;
    swa_attn a;
    memset(&r, 0, sizeof r);
    memset(&a, 0, sizeof a);
    r.shape.n_heads = r.shape.n_kv_heads = 1;
    r.shape.head_dim = FAR_D;
    r.kv = kv;
    r.n_kv = n_kv;
    r.pos = kv[n_kv - 1].pos + kv[n_kv - 1].n - rows;
    r.n_tokens = rows;
    r.isa = isa;
    r.scratch_bytes = swa_attention_bytes(&r, parts);
    r.scratch = t_alloc(r.scratch_bytes);
    a.q.p = q;
    a.out.p = out;
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int part = 0; part < parts; part++) CHECK_OK(swa_attention_part(&r, &a, phase, part, parts));
    return out;
}
static void far_against_near(int isa, swa_kv *kv, int n_kv, int rows, const float *k, const float *v, const float *q) {
    swa_kv side_by_side = kv[0];
    int keys = 0;
    for (int i = 0; i < n_kv; i++) {
        kv[i].k = k + keys * FAR_D;
        kv[i].v = v + keys * FAR_D;
        keys += kv[i].n;
    }
    side_by_side.k = k;
    side_by_side.v = v;
    side_by_side.pos = 0;
    side_by_side.n = keys;
    for (int parts = 1; parts < 8; parts += 6) {
        float *got = far_out(isa, kv, n_kv, q, rows, parts), *want = far_out(isa, &side_by_side, 1, q, rows, parts);
        for (int i = 0; i < rows * FAR_D; i++) CHECK_NEAR(got[i], want[i], 4e-6);
    }
}
TEST_EACH_ISA(attention_far_segments) {
    static const int64_t far[] = { 2000, 1 << 20, (int64_t)1 << 40, (int64_t)1 << 50, INT64_MAX / 2, INT64_MAX - 3000 };
    const float *k = t_random(1500 * FAR_D, 1), *v = t_random(1500 * FAR_D, 1), *q = t_random(40 * FAR_D, 4);
    for (int i = 0; i < 6; i++) {
        if (t_leave(isa, i, 1, 2)) continue; /* the furthest stays */
        static const int n[] = { 600, 500, 0, 340 };
        const int64_t at[] = { 0, far[i] / 2 / 512 * 512 + 400, far[i], far[i] + 900 }; /* 500 around a block's end */
        swa_kv *kv = (swa_kv *)t_alloc(sizeof *kv * 301);
        memset(kv, 0, sizeof *kv * 301);
        for (int s = 0; s < 4; s++) {
            kv[s].n = n[s];
            kv[s].pos = at[s];
        }
        t_label("last segment at %lld", (long long)at[3]);
        far_against_near(isa, kv, 4, 1, k, v, q);
        far_against_near(isa, kv, 4, 40, k, v, q);
        for (int s = 0; s < 300; s++) { /* a page for each key, some empty */
            kv[s].n = s % 7 != 0;
            kv[s].pos = s * (far[i] / 300 + 1);
        }
        t_label("pages up to %lld", (long long)kv[299].pos);
        far_against_near(isa, kv, 300, 1, k, v, q);
        kv[300].pos = 300 * (far[i] / 300 + 1); /* an empty one at the end: blocks up to it, and no key */
        far_against_near(isa, kv, 301, 1, k, v, q);
    }
}
/* Output exactly +0, lse -inf: with and without a sink logit, in the middle of rows that do see something. */
TEST_EACH_ISA(attention_sees_nothing) {
    for (int sink = 0; sink < 2; sink++)
        for (int chunk = 0; chunk < 3; chunk++) {
            at_case c = at_new(2, 1, 16, 16, 40);
            at_how how = at_on(isa);
            at_data d;
            unsigned char *absent = (unsigned char *)t_alloc(40);
            float *out = t_floats(40 * 32), *lse = t_floats(80), zero[32];
            memset(zero, 0, sizeof zero);
            for (int j = 0; j < 40; j++) absent[j] = j >= 10 && j < 30;
            at_sliding(&c, 6);
            c.absent = absent;
            c.sink_logits = sink;
            how.chunk = chunk;
            d = at_make(&c);
            REQUIRE(at_rows(&c, &d, &how, out, lse));
            for (int i = 0; i < 40; i++) {
                int blind = i >= 15 && i < 30;
                t_label("sink %d chunk %d row %d", sink, chunk, i);
                CHECK_INT(memcmp(out + i * 32, zero, sizeof zero) == 0, blind);
                for (int h = 0; h < 2; h++) CHECK_INT(lse[i * 2 + h] == -HUGE_VALF, blind);
            }
        }
}

/* ---- numbers at the edge ---- */

/* Scores of 1.3e5 and more, either sign: the softmax is one key, or, softly capped, an even split of all. */
TEST_EACH_ISA(attention_huge_scores) {
    for (int chunk = 0; chunk < 2; chunk++)
        for (int softcap = 0; softcap < 2; softcap++) {
            at_case c = at_new(2, 1, 16, 16, 40);
            at_how how = at_on(isa);
            at_data d, s;
            float *out = t_floats(40 * 32), *lse = t_floats(80);
            double *want = t_doubles(40 * 32), *want_lse = t_doubles(80);
            at_sliding(&c, 12);
            c.scale = 1.0f;
            c.softcap = softcap ? 50.0f : 0.0f;
            c.sink_logits = 1;
            how.chunk = chunk;
            d = at_make(&c);
            d.sink_logits[0] = 1e5f; /* above the negative scores, below the others */
            d.sink_logits[1] = -3e5f;
            /* Scores of neighbours are 2048 apart: what rounding does to 1e5 cannot change which key wins. */
            for (int i = 0; i < 40 * 32; i++) d.q[i] = i / 32 % 3 ? 128.0f : -128.0f;
            for (int i = 0; i < 40 * 16; i++) d.k[i] = (float)(64 + i / 16);
            s = at_stored(&c, &d);
            at_oracle(&c, &s, want, want_lse);
            t_label("chunk %d softcap %d", chunk, softcap);
            REQUIRE(at_ring(&c, &d, &how, out, lse));
            CHECK_CLOSE(out, want, 40 * 32, 2e-5);
            CHECK_CLOSE(lse, want_lse, 80, 1e-6);
        }
}
/* A sink logit of -inf, or far below, is no sink; one far above every score leaves nothing. */
TEST_EACH_ISA(attention_sink_extremes) {
    at_case c = at_new(2, 1, 16, 16, 30), plain = c;
    at_how how = at_on(isa);
    at_data d;
    float *a = t_floats(30 * 32), *b = t_floats(30 * 32), *la = t_floats(60), *lb = t_floats(60);
    c.sink_logits = 1;
    d = at_make(&c);
    for (int chunk = 0; chunk < 2; chunk++) {
        how.chunk = chunk;
        d.sink_logits[0] = -HUGE_VALF;
        d.sink_logits[1] = -3e38f;
        REQUIRE(at_ring(&c, &d, &how, a, la));
        {
            at_data none = d;
            none.sink_logits = NULL;
            REQUIRE(at_ring(&plain, &none, &how, b, lb));
        }
        CHECK_BITS(a, b, 30 * 32);
        CHECK_BITS(la, lb, 60);
        d.sink_logits[0] = d.sink_logits[1] = 1e6f;
        REQUIRE(at_ring(&c, &d, &how, a, la));
        for (int i = 0; i < 30 * 32; i++) CHECK(a[i] > -1e-30f && a[i] < 1e-30f);
        CHECK_BITS(la, lb, 60);
    }
}
/* Values at the edges of the storage types: f16 overflow, denormals, zeros; the ring's rounding read back. */
static double half_of(double x) { /* round to nearest even with 11 bits, exponents down to -14 */
    int e;
    double m, unit;
    if (x - x != 0.0 || !(fabs(x) > 0)) return x;
    m = frexp(fabs(x), &e);
    unit = ldexp(1.0, (e < -13 ? -13 : e) - 11);
    m = nearbyint(ldexp(m, e) / unit) * unit;
    return x < 0 ? -m : m;
}
static double bhalf_of(double x) {
    int e;
    double m, unit;
    if (x - x != 0.0 || !(fabs(x) > 0)) return x;
    m = frexp(fabs(x), &e);
    unit = ldexp(1.0, (e < -125 ? -125 : e) - 8);
    m = nearbyint(ldexp(m, e) / unit) * unit;
    return x < 0 ? -m : m;
}
TEST_EACH_ISA(attention_stored_values) {
    static const float odd[] = { 0.0f,           -0.0f,       1.0f,   -1.0f,         1.00048828125f, 1.0009765625f,
                                 65504.0f,       -65504.0f,   6e-8f,  5.9604645e-8f, 2.9e-8f,        6.1e-5f,
                                 -6.1035156e-5f, 1.01171875f, 1e-40f, 1e-30f,        1e30f };
    for (int t = 0; t < 4; t++) {
        at_case c = at_new(1, 1, 17, 17, 20);
        at_how how = at_on(isa);
        at_data d = at_make(&c);
        float *k = t_floats(20 * 17), *v = t_floats(20 * 17), *out = t_floats(20 * 17);
        swa_cache kv;
        at_sliding(&c, 20);
        c.k_type = c.v_type = all_types[t];
        for (int i = 0; i < 17; i++) d.k[i] = d.v[17 + i] = odd[i] > 1e5f && t != 0 && t != 2 ? 1e4f : odd[i];
        t_label("type %s", t_type(all_types[t]));
        REQUIRE(at_cache(&kv, &c, &how) && at_ring_on(&kv, &c, &d, &how, 0, 20, out, NULL));
        REQUIRE_OK(swa_cache_read(&kv, 0, 0, 0, 20, k, v));
        if (t == 0) {
            CHECK_BITS(k, d.k, 20 * 17);
            CHECK_BITS(v, d.v, 20 * 17);
        }
        for (int r = 0; r < 20 && t == 3; r++) { /* q8: half a step of the row's largest number */
            double top_k = 0, top_v = 0;
            for (int i = 0; i < 17; i++) {
                top_k = fmax(top_k, fabs((double)d.k[r * 17 + i]));
                top_v = fmax(top_v, fabs((double)d.v[r * 17 + i]));
            }
            for (int i = 0; i < 17; i++) {
                CHECK_NEAR(k[r * 17 + i], d.k[r * 17 + i], top_k / 127 * 0.5001);
                CHECK_NEAR(v[r * 17 + i], d.v[r * 17 + i], top_v / 127 * 0.5001);
            }
        }
        for (int i = 0; i < 20 * 17 && (t == 1 || t == 2); i++) {
            CHECK_NEAR(k[i], t == 1 ? half_of((double)d.k[i]) : bhalf_of((double)d.k[i]), 0);
            CHECK_NEAR(v[i], t == 1 ? half_of((double)d.v[i]) : bhalf_of((double)d.v[i]), 0);
        }
    }
}

/* A row too small for q8's scale is a row of zeros, not of NaN; the others do not notice. */
TEST_EACH_ISA(attention_tiny_rows_in_q8) {
    static const float tiny[5] = { 0.0f, 1e-45f, 1e-38f, 1.2e-35f, 1.3e-35f };
    at_case c = at_new(1, 1, 16, 16, 20);
    at_data d = at_make(&c);
    at_how how = at_on(isa);
    float k[20 * 16], v[20 * 16], out[20 * 16];
    swa_cache kv;
    at_sliding(&c, 20);
    c.k_type = c.v_type = SWA_Q8;
    for (int i = 0; i < 5; i++)
        for (int x = 0; x < 16; x++) d.k[(i + 3) * 16 + x] = d.v[(i + 3) * 16 + x] = x % 2 ? tiny[i] : -tiny[i];
    REQUIRE(at_cache(&kv, &c, &how) && at_ring_on(&kv, &c, &d, &how, 0, 20, out, NULL));
    REQUIRE_OK(swa_cache_read(&kv, 0, 0, 0, 20, k, v));
    for (int i = 0; i < 4; i++)
        for (int x = 0; x < 16; x++) CHECK(k[(i + 3) * 16 + x] == 0.0f && v[(i + 3) * 16 + x] == 0.0f);
    for (int x = 0; x < 16; x++) CHECK_NEAR(k[7 * 16 + x], d.k[7 * 16 + x], 1e-37);
    for (int i = 0; i < 20 * 16; i++) CHECK(out[i] - out[i] == 0.0f);
}

/* ---- poison: what nobody may see must not reach an output ---- */

/* Rows that have been taken back, rows that have left the window, and memory never written hold NaN; the results
   are bit for bit those of a run that never met one. */
TEST_EACH_ISA(attention_poison) {
    for (int t = 0; t < 4; t++)
        for (int audit = 0; audit < 2; audit++)
            for (int chunk = 1; chunk < 9; chunk += 7) {
                at_case c = at_new(4, 2, 20, 20, 60);
                at_how how = at_on(isa);
                at_data d, bad;
                size_t n = 60 * at_o_row(&c);
                float *want = t_floats(n), *out = t_floats(n), *lse = t_floats(240), *want_lse = t_floats(240);
                swa_cache kv;
                at_sliding(&c, 7);
                c.k_type = c.v_type = t == 3 ? SWA_BF16 : all_types[t];
                how.chunk = chunk;
                how.capacity = 40;
                how.audit = audit;
                d = at_make(&c);
                bad = d;
                bad.k = t_floats(60 * at_k_row(&c)); /* all NaN; audit refuses them, and makes NaN of what is lost */
                bad.v = t_floats(60 * at_v_row(&c));
                if (audit) bad.k = bad.v = t_random(60 * (at_k_row(&c) + at_v_row(&c)), 9.0f);
                if (audit) bad.v += 60 * at_k_row(&c);
                t_label("type %d audit %d chunk %d", t, audit, chunk);
                REQUIRE(at_ring(&c, &d, &how, want, want_lse));
                memset(out, 0, n * sizeof *out);
                memset(lse, 0, 240 * sizeof *lse);
                REQUIRE(at_cache(&kv, &c, &how));
                /* NaN at 10..29 is taken back by truncate, NaN at 26..30 by beginning 26 again. */
                REQUIRE(at_ring_on(&kv, &c, &d, &how, 0, 10, out, lse));
                REQUIRE(at_ring_on(&kv, &c, &bad, &how, 10, 30, t_floats(n), NULL));
                REQUIRE_OK(swa_cache_truncate(&kv, 0, 10));
                REQUIRE(at_ring_on(&kv, &c, &d, &how, 10, 26, out, lse));
                REQUIRE(at_ring_on(&kv, &c, &bad, &how, 26, 31, t_floats(n), NULL));
                how.rewind = 1;
                REQUIRE(at_ring_on(&kv, &c, &d, &how, 26, 60, out, lse));
                CHECK_BITS(out, want, n);
                CHECK_BITS(lse, want_lse, 240);
            }
}
/* SWA_BF16 against what it is: q (times scale * log2 e), k, p and v rounded to bf16, everything else exact; and against
   the inputs, element by element, within a bound known beforehand. With u = 2^-8 the roundings of q and k move a score
   by at most e = (2u + u^2) * scale * sum |q_d k_d| (largest over the keys), in the exponent of its weight and of their
   sum; p is rounded in both as well. So each weight is right within a factor of r = exp(2e) (1 + u) / (1 - u), v within
   1 + u, and the error is at most (r (1 + u) - 1) * sum of weight |v|. It grows with the scores: a tolerance in parts
   of the largest output alone does not hold. 1e-5: sums in f32. */
static double bf16_of(double x) {
    float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    u = (u + 0x7fffu + (u >> 16 & 1)) & 0xffff0000u;
    memcpy(&f, &u, sizeof f);
    return (double)f;
}
typedef struct {
    double exact, rounded, bound;
} bf16_want;
/* One dim of v, weighted for one query over keys 0..n-1 of one block; k and v of `heads` heads. */
static bf16_want bf16_row(const float *q, const float *k, const float *v, int n, int dk, int dv, int heads) {
    const double scale = 1.0 / sqrt((double)dk), log2e = 1.44269504088896341, u = 1.0 / 256;
    double s[SWA_BLOCK], s16[SWA_BLOCK], top = -1e300, top16 = -1e300, move = 0, l = 0, l16 = 0, size = 0, r;
    bf16_want w = { 0, 0, 0 };
    for (int j = 0; j < n; j++) {
        double sum = 0, sum16 = 0, whole = 0;
        for (int d = 0; d < dk; d++) {
            const double x = (double)q[d], y = (double)k[j * heads * dk + d];
            sum += x * y;
            whole += fabs(x * y);
            sum16 += bf16_of(x * (double)(float)(scale * log2e)) * bf16_of(y);
        }
        s[j] = sum * scale * log2e;
        s16[j] = sum16;
        top = fmax(top, s[j]);
        top16 = fmax(top16, sum16);
        move = fmax(move, (2 * u + u * u) * scale * whole);
    }
    for (int j = 0; j < n; j++) {
        const double x = (double)v[j * heads * dv], p = exp2(s[j] - top), p16 = bf16_of(exp2(s16[j] - top16));
        l += p;
        l16 += p16;
        w.exact += p * x;
        size += p * fabs(x);
        w.rounded += p16 * bf16_of(x);
    }
    w.exact /= l;
    w.rounded /= l16;
    r = exp(2 * move) * (1 + u) / (1 - u);
    w.bound = (r * (1 + u) - 1) * size / l + 1e-5;
    return w;
}
TEST_EACH_ISA(attention_bf16_bound) {
    for (int i = 0; i < 18; i++) {
        const int kv = t_int(1, 2), group = t_int(1, 5), dk = t_int(1, 80), dv = t_int(1, 40), n = t_int(2, 70);
        at_case c = at_new(group * kv, kv, dk, dv, n);
        float *out = t_floats((size_t)n * at_o_row(&c));
        double apart = 0, worst = 0, square = 0;
        at_how how = at_on(isa);
        at_data d;
        c.compute = i % 3 ? SWA_BF16 : SWA_BF16_TILE;
        c.size = i % 2 ? 4.0f : 1.0f;
        d = at_make(&c);
        t_label("case %d: %d/%d heads of %d and %d, %d tokens", i, group * kv, kv, dk, dv, n);
        REQUIRE(at_ring(&c, &d, &how, out, NULL));
        for (int t = 0; t < n; t++)
            for (int o = 0; o < group * kv * dv; o++) {
                const int h = o / dv, g = h / group;
                const bf16_want w =
                    bf16_row(d.q + (t * group * kv + h) * dk, d.k + g * dk, d.v + g * dv + o % dv, t + 1, dk, dv, kv);
                const double got = (double)out[t * group * kv * dv + o];
                worst = fmax(worst, fabs(got - w.exact) / w.bound);
                apart = fmax(apart, fabs(got - w.rounded));
                square += (got - w.rounded) * (got - w.rounded);
            }
        square = sqrt(square / ((double)n * group * kv * dv));
        t_label("case %d: error %.3f of the bound; beside the rounded case %.2e at most, %.2e rms", i, worst, apart,
                square);
        CHECK(worst <= 1);
        /* a p or q near a midpoint may fall to its other side: of p one in 25, as its exp2 is off by 8.6e-5 at most */
        CHECK(apart < 4e-3 && square < 3e-4);
    }
}
/* Rows outside every query's window, still resident in a large ring or handed over in a segment, may be NaN. */
TEST_EACH_ISA(attention_poison_outside) {
    for (int t = 0; t < 8; t++) {
        at_case c = at_new(4, 2, 16, 16, 60);
        at_how how;
        at_data d, bad;
        const int last = t == 5 || t == 7 ? 51 : 52; /* pairs of bf16 may be cut at either end */
        size_t ok = 40 * at_o_row(&c), end = (size_t)last * at_o_row(&c);
        float *want = t_floats(60 * at_o_row(&c)), *out = t_floats(60 * at_o_row(&c));
        swa_cache kv;
        memset(&how, 0, sizeof how);
        at_sliding(&c, 8);
        c.k_type = c.v_type = t >= 4 ? SWA_F32 : t == 3 ? SWA_F16 : all_types[t];
        if (t >= 4) c.compute = t < 6 ? SWA_BF16 : SWA_BF16_TILE;
        d = at_make(&c);
        if (t == 1) {
            at_data s = at_stored(&c, &d);
            d = s;
        }
        bad = d;
        bad.k = t_random(60 * at_k_row(&c), 1.0f);
        bad.v = t_random(60 * at_v_row(&c), 1.0f);
        memcpy(bad.k, d.k, 60 * at_k_row(&c) * sizeof(float));
        memcpy(bad.v, d.v, 60 * at_v_row(&c) * sizeof(float));
        for (size_t i = 0; i < 33 * at_k_row(&c); i++) bad.k[i] = bad.v[i] = (float)NAN;
        how.isa = isa;
        how.capacity = 64;
        how.chunk = 1;
        t_label("ring, type %d", t);
        REQUIRE(at_ring(&c, &d, &how, want, NULL));
        REQUIRE(at_cache(&kv, &c, &how) && at_ring_on(&kv, &c, &bad, &how, 0, 60, out, NULL));
        CHECK_BITS(out + ok, want + ok, 20 * at_o_row(&c));
        if (c.k_type == SWA_Q8) continue;
        /* Queries 40..last-1 in one call see from 33 on: all else in the segments is NaN, behind and ahead. */
        for (size_t i = (size_t)last * at_k_row(&c); i < 60 * at_k_row(&c); i++) bad.k[i] = bad.v[i] = (float)NAN;
        how.cuts = 2;
        how.chunk = 0;
        t_label("rows, type %d", t);
        REQUIRE(at_rows_some(&c, &d, &how, 40, last, want, NULL) && at_rows_some(&c, &bad, &how, 40, last, out, NULL));
        CHECK_BITS(out + ok, want + ok, end - ok);
    }
}

/* ---- partial results ---- */

/* Keys lo..hi-1 of the case only, as an unnormalised partial. */
static int partial(const at_case *c, const at_data *s, int lo, int hi, int isa, float *out, float *stat) {
    size_t h = (size_t)c->shape.n_heads;
    at_how how = at_on(isa);
    swa_rows r;
    swa_kv kv;
    at_call call;
    float *full = t_floats((size_t)c->n * h);
    memset(&r, 0, sizeof r);
    if (hi > lo) kv = at_segment(c, s, lo, hi - lo, 0);
    else memset(&kv, 0, sizeof kv);
    r.shape = c->shape;
    r.window = c->window;
    r.isa = isa;
    r.pos = c->start;
    r.n_tokens = c->n;
    r.kv = &kv;
    r.n_kv = hi > lo;
    r.scratch_bytes = swa_attention_bytes(&r, 1);
    r.scratch = t_alloc(r.scratch_bytes);
    call = at_queries(c, s, s->q, s->q_sink, s->bias, (size_t)c->n, &how);
    call.a.sink_logits = NULL;
    call.a.stat = stat;
    if (!CHECK_OK(swa_attention(&r, &call.a))) return 0;
    at_results(c, &call, 0, (size_t)c->n, out, full);
    return 1;
}
/* Cut at multiples of 256 and merged in order: the bits of the plain call. Cut elsewhere: the same to rounding. An
   empty partial anywhere changes nothing. */
TEST_EACH_ISA(attention_merge) {
    for (int sink = 0; sink < 2; sink++)
        for (int odd = 0; odd < 2; odd++)
            for (int big = 0; big < 1 + sink; big++) {
                at_case c = at_new(2, 1, 8, 8, 700);
                size_t n = 700 * at_o_row(&c), rows = 1400;
                int edge[] = { 0, 0, 256, 256, 512, 700, 700 };
                float *part[6], *stat[6];
                float *want = t_floats(n), *want_lse = t_floats(rows), *out = t_floats(n), *lse = t_floats(rows);
                double *ref = t_doubles(n), *ref_lse = t_doubles(rows);
                at_how how = at_on(isa);
                at_data d;
                at_sliding(&c, 400);
                c.sink_logits = sink;
                d = at_make(&c);
                if (big) d.sink_logits[0] = d.sink_logits[1] = 40.0f; /* larger than every score */
                if (odd) {
                    edge[2] = 100;
                    edge[3] = 301;
                    edge[4] = 302;
                }
                t_label("sink %d odd %d big %d", sink, odd, big);
                REQUIRE(at_rows(&c, &d, &how, want, want_lse));
                for (int i = 0; i < 6; i++) {
                    part[i] = t_floats(n);
                    stat[i] = t_floats(rows * 2);
                    REQUIRE(partial(&c, &d, edge[i], edge[i + 1], isa, part[i], stat[i]));
                }
                REQUIRE_OK(swa_merge((const float *const *)part, (const float *const *)stat, 6, (int32_t)rows / 2, 2, 8,
                                     d.sink_logits, out, lse));
                if (!odd) {
                    CHECK_BITS(out, want, n);
                    CHECK_BITS(lse, want_lse, rows);
                }
                at_oracle(&c, &d, ref, ref_lse);
                CHECK_CLOSE(out, ref, n, TOL);
                CHECK_CLOSE(lse, ref_lse, rows, LSE_TOL);
                REQUIRE_OK(swa_merge((const float *const *)part, (const float *const *)stat, 1, (int32_t)rows / 2, 2, 8,
                                     d.sink_logits, out, lse));
                for (size_t i = 0; i < n; i++) CHECK_NEAR(out[i], 0, 0);
                for (size_t i = 0; i < rows; i++) CHECK(lse[i] == -HUGE_VALF);
            }
}

/* Wide rows, few queries and many, split over parts or not: a partial has no sink logit in it, whatever the call
   says, and the merge of one per block has the bits of the plain call. */
TEST_EACH_ISA(attention_merge_few_and_many) {
    static const int edge[4] = { 0, 256, 512, 530 };
    at_case c = at_new(4, 2, 16, 130, 530);
    at_data d;
    at_how how;
    swa_kv kv[4];
    swa_rows r;
    memset(&how, 0, sizeof how);
    memset(&r, 0, sizeof r);
    c.sink_logits = 1;
    d = at_make(&c);
    for (int i = 0; i < 3; i++) kv[i] = at_segment(&c, &d, edge[i], edge[i + 1] - edge[i], 0);
    r.shape = c.shape;
    r.window = swa_window_sliding(500);
    r.isa = isa;
    for (int n = 1; n <= 30; n += 29)
        for (int parts = 1; parts <= 3; parts += 2) {
            size_t rows = (size_t)n * 4;
            const float *q = d.q + (size_t)(530 - n) * at_q_row(&c);
            float *want = t_floats(rows * 130), *want_lse = t_floats(rows), *lse = t_floats(rows);
            float *out = t_floats(rows * 130), *part[3], *stat[3];
            at_call call = at_queries(&c, &d, q, NULL, NULL, (size_t)n, &how);
            t_label("%d queries, %d parts", n, parts);
            r.pos = 530 - n;
            r.n_tokens = n;
            r.kv = kv;
            r.n_kv = 3;
            r.scratch_bytes = swa_attention_bytes(&r, parts);
            r.scratch = t_alloc(r.scratch_bytes);
            call.a.out.p = want;
            call.a.lse = want_lse;
            REQUIRE(at_run_rows(&r, &call.a, parts));
            r.scratch_bytes = (size_t)parts * (swa_attention_bytes(&r, 1) - 63) + 63;
            call.a.out.p = out; /* no room for a split: not split */
            REQUIRE(at_run_rows(&r, &call.a, parts));
            CHECK_BITS(out, want, rows * 130);
            for (int i = 0; i < 3; i++) {
                r.kv = kv + i;
                r.n_kv = 1;
                call.a.out.p = part[i] = t_floats(rows * 130);
                call.a.stat = stat[i] = t_floats(rows * 2);
                call.a.lse = NULL;
                REQUIRE(at_run_rows(&r, &call.a, parts));
            }
            REQUIRE_OK(swa_merge((const float *const *)part, (const float *const *)stat, 3, (int32_t)rows / 4, 4, 130,
                                 d.sink_logits, out, lse));
            CHECK_BITS(out, want, rows * 130);
            CHECK_BITS(lse, want_lse, rows);
        }
}
/* Rows of any width, whole vectors or not, and longer than what is merged at a time: each number by the two that it is
   made of, wherever it stands; also where the result takes a partial's place. */
TEST(merge_of_any_width) {
    static const int dims[] = { 1, 15, 16, 17, 64, 100, 511, 512, 513, 1024, 1039 };
    const float logit = 0.5f;
    for (size_t k = 0; k < sizeof dims / sizeof *dims; k++)
        for (int in_place = 0; in_place < 3; in_place++) {
            const int d = dims[k];
            float *part[2] = { t_random(3 * d, 1.0f), t_random(3 * d, 1.0f) }, *out = t_floats(3 * d);
            float stats[2][6] = { { 1, 2, -3, 1, 0, 0 }, { 0.5f, 3, 4, 1.5f, 2, 7 } };
            const float *const of[2] = { part[0], part[1] }, *const stat[2] = { stats[0], stats[1] };
            double *want = t_doubles(3 * d);
            t_label("%d numbers, out %d", d, in_place);
            for (int r = 0; r < 3; r++)
                for (int i = 0; i < d; i++) {
                    const double x = exp2(stats[0][2 * r]), y = exp2(stats[1][2 * r]);
                    const double sum = x * stats[0][2 * r + 1] + y * stats[1][2 * r + 1] + exp(logit);
                    want[r * d + i] =
                        ((stats[0][2 * r + 1] > 0 ? x * part[0][r * d + i] : 0) + y * part[1][r * d + i]) / sum;
                }
            if (in_place) out = part[in_place - 1];
            REQUIRE_OK(swa_merge(of, stat, 2, 3, 1, d, &logit, out, NULL));
            CHECK_CLOSE(out, want, 3 * d, 1e-6);
        }
}
/* Under audit what phase 1 is to fold is no number before it; where out is q, it is as without. The same bits then. */
TEST(attention_phase_1_is_waited_for_under_audit) {
    enum { N = 1500, HEADS = 4, DIM = 16, PARTS = 3 };
    float *x = t_random(HEADS * DIM, 1.0f), *want = t_floats(HEADS * DIM), *logits = t_random(HEADS, 1.0f);
    swa_kv kv;
    swa_rows r;
    swa_attn a;
    memset(&kv, 0, sizeof kv);
    memset(&r, 0, sizeof r);
    memset(&a, 0, sizeof a);
    kv.k = t_random(N * DIM, 1.0f);
    kv.v = t_random(N * DIM, 1.0f);
    kv.n = N;
    r.shape.n_heads = HEADS;
    r.shape.n_kv_heads = 1;
    r.shape.head_dim = DIM;
    r.window = swa_window_causal();
    r.pos = N - 1;
    r.n_tokens = 1;
    r.kv = &kv;
    r.n_kv = 1;
    r.scratch_bytes = swa_attention_bytes(&r, PARTS);
    r.scratch = t_alloc(r.scratch_bytes);
    a.sink_logits = logits;
    for (int way = 0; way < 4; way++) { /* of two bits: audit, out is q */
        float *q = t_floats(HEADS * DIM), *out = way & 2 ? q : t_floats(HEADS * DIM);
        int odd = 0;
        memcpy(q, x, HEADS * DIM * sizeof *x);
        for (int i = 0; i < HEADS * DIM && !(way & 2); i++) out[i] = 0;
        t_label("way %d", way);
        r.audit = way & 1;
        a.q.p = q;
        a.out.p = out;
        for (int p = 0; p < PARTS; p++) CHECK_OK(swa_attention_part(&r, &a, 0, p, PARTS));
        for (int i = 0; i < HEADS * DIM; i++) odd += isnan(out[i]);
        CHECK_INT(odd, way == 1 ? HEADS * DIM : 0);
        for (int p = 0; p < PARTS; p++) CHECK_OK(swa_attention_part(&r, &a, 1, p, PARTS));
        if (way == 0) memcpy(want, out, HEADS * DIM * sizeof *want);
        CHECK_BITS(out, want, HEADS * DIM);
    }
}
/* What a call is given and has no use for: segments without rows. */
TEST_EACH_ISA(attention_idle_arguments) {
    for (int n = 1; n <= 20; n += 19) {
        at_case c = at_new(4, 2, 16, 16, 60);
        size_t total = (size_t)n * at_o_row(&c);
        float *want = t_floats(total), *out = t_floats(total);
        at_data d = at_make(&c);
        at_how how;
        swa_kv kv[5];
        swa_rows r;
        at_call call;
        memset(&how, 0, sizeof how);
        memset(&r, 0, sizeof r);
        memset(kv, 0, sizeof kv);
        kv[0].pos = 0;
        kv[1] = at_segment(&c, &d, 0, 33, 0);
        kv[2].pos = kv[3].pos = 33;
        kv[4] = at_segment(&c, &d, 33, 27, 0);
        r.shape = c.shape;
        r.window = swa_window_sliding(40);
        r.isa = isa;
        r.pos = 60 - n;
        r.n_tokens = n;
        r.kv = kv;
        r.n_kv = 5;
        r.scratch_bytes = swa_attention_bytes(&r, 1);
        r.scratch = t_alloc(r.scratch_bytes);
        call = at_queries(&c, &d, d.q + (size_t)(60 - n) * at_q_row(&c), NULL, NULL, (size_t)n, &how);
        t_label("%d queries", n);
        call.a.out.p = want;
        REQUIRE(at_run_rows(&r, &call.a, 1));
        call.a.out.p = out;
        r.kv = kv + 1;
        kv[2] = kv[4];
        r.n_kv = 2;
        REQUIRE(at_run_rows(&r, &call.a, 1));
        CHECK_BITS(out, want, total);
    }
}
static void give_scratch(swa_rows *r) {
    r->scratch_bytes = swa_attention_bytes(r, 1);
    r->scratch = t_alloc(r->scratch_bytes);
}
/* The last n tokens of a text of one head, over all of it as one segment. */
static swa_rows one_head(const swa_kv *kv, int dim, int n, int isa) {
    swa_rows r;
    memset(&r, 0, sizeof r);
    r.shape.n_heads = r.shape.n_kv_heads = 1;
    r.shape.head_dim = r.shape.v_dim = dim;
    r.isa = isa;
    r.pos = kv->n - n;
    r.n_tokens = n;
    r.kv = kv;
    r.n_kv = 1;
    give_scratch(&r);
    return r;
}
/* An infinity in the caller's own half-width rows is one: it comes out where it is seen, and nowhere else. */
TEST_EACH_ISA(attention_infinite_values) {
    for (int t = 1; t <= 2; t++)
        for (int n = 1; n <= 20; n += 19) {
            uint16_t half[30 * 17];
            float *q = t_random(20 * 17, 1.0f), out[20 * 17];
            swa_kv kv;
            swa_rows r;
            swa_attn a;
            memset(&kv, 0, sizeof kv);
            memset(&a, 0, sizeof a);
            memset(half, 0, sizeof half);
            half[12 * 17 + 3] = half[12 * 17 + 16] = t == 1 ? 0x7c00 : 0x7f80;
            half[12 * 17 + 5] = t == 1 ? 0xfc00 : 0xff80;
            kv.k = t_floats(30 * 17);
            kv.v = half;
            kv.n = 30;
            kv.v_type = all_types[t];
            memset((void *)(uintptr_t)kv.k, 0, 30 * 17 * sizeof(float));
            r = one_head(&kv, 17, n, isa);
            a.q.p = q;
            a.out.p = out;
            t_label("%s, %d queries", t_type(all_types[t]), n);
            REQUIRE_OK(swa_attention(&r, &a));
            for (int i = 0; i < n; i++)
                for (int x = 0; x < 17; x++) {
                    int seen = 30 - n + i >= 12, sign = x == 3 || x == 16 ? 1 : x == 5 ? -1 : 0;
                    float got = out[i * 17 + x];
                    if (!seen) continue;
                    CHECK(sign == 0 ? got == 0.0f : got == (float)sign * HUGE_VALF);
                }
        }
}
/* v_type and tail_type left 0 beside k_type F16 or BF16: the rows are read as that, not as f32. */
TEST_EACH_ISA(attention_types_left_zero) {
    for (int t = 0; t < 3; t++)
        for (int n = 1; n <= 20; n += 19) {
            at_case c = at_new(4, 2, 16, 12, 40);
            at_how how = at_on(isa);
            at_data d, s;
            at_call call;
            float *out = t_floats(20 * 48);
            double *want = t_doubles(40 * 48);
            swa_kv kv;
            swa_rows r;
            memset(&r, 0, sizeof r);
            c.k_type = c.v_type = c.tail_type = all_types[t];
            c.shape.tail_dim = 5;
            d = at_make(&c);
            s = at_stored(&c, &d);
            at_oracle(&c, &s, want, NULL);
            kv = at_segment(&c, &s, 0, 40, 0);
            REQUIRE(kv.v_type == all_types[t] && kv.tail_type == all_types[t]);
            kv.v_type = kv.tail_type = SWA_TYPE_DEFAULT;
            if (t == 0) kv.k_type = SWA_TYPE_DEFAULT; /* all three: f32 */
            r.shape = c.shape;
            r.isa = isa;
            r.pos = 40 - n;
            r.n_tokens = n;
            r.kv = &kv;
            r.n_kv = 1;
            r.scratch_bytes = swa_attention_bytes(&r, 1);
            r.scratch = t_alloc(r.scratch_bytes);
            call = at_queries(&c, &s, s.q + (size_t)(40 - n) * at_q_row(&c), NULL, NULL, (size_t)n, &how);
            t_label("%s, %d queries", t_type(all_types[t]), n);
            REQUIRE(at_run_rows(&r, &call.a, 0));
            at_results(&c, &call, 0, (size_t)n, out, NULL);
            CHECK_CLOSE(out, want + (40 - n) * 48, n * 48, TOL);
        }
}
/* ---- what a key's arithmetic may depend on ---- */

enum { MIX_D = 8, MIX_T = 6, MIX_N = 330 };
/* Rows 0..ring-1 in a ring whose tail is q8, the rest the caller's f32 rows: segments into kv; how many. */
static int mixed_segments(swa_cache *ring, int rows, const float *k, const float *tail, const float *v, swa_kv kv[4]) {
    swa_window w = swa_window_causal();
    swa_cache_desc desc;
    swa_attn a;
    int n;
    memset(&desc, 0, sizeof desc);
    memset(&a, 0, sizeof a);
    desc.shape.n_heads = desc.shape.n_kv_heads = 1;
    desc.shape.head_dim = desc.shape.v_dim = MIX_D;
    desc.shape.tail_dim = MIX_T;
    desc.n_layers = 1;
    desc.windows = &w;
    desc.n_windows = 1;
    desc.max_context = 512;
    desc.k_type = desc.v_type = SWA_F32;
    desc.tail_type = SWA_Q8;
    if (!t_cache_new(ring, &desc, 1) || !CHECK_OK(swa_step_one(ring, 0, 0, rows))) return 0;
    a.mode = SWA_STORE_ONLY;
    a.k.p = k;
    a.k_tail.p = tail;
    a.v.p = v;
    if (!CHECK_OK(swa_attend(ring, 0, &a))) return 0;
    n = swa_cache_spans(ring, 0, 0, kv);
    memset(&kv[n], 0, sizeof kv[n]);
    kv[n].k = k + rows * MIX_D;
    kv[n].tail = tail + rows * MIX_T;
    kv[n].v = v + rows * MIX_D;
    kv[n].pos = rows;
    kv[n].n = MIX_N - rows;
    return n + 1;
}
/* What a ring has overwritten is not left out of the window of who reads it by spans: exact or refused. V holds its
   position, and q is 0: the output is the mean of the positions seen. */
TEST(attention_over_lost_rows) {
    enum { W = 61, D = 16, AT = 200 };
    const swa_window w = swa_window_sliding(W), narrow = swa_window_sliding(20), pinned = swa_window_sinks(20, 3),
                     wide = swa_window_sliding(W + 30);
    float *zero = t_floats(260 * D), *k = t_floats(260 * D), *v = t_floats(260 * D), *out = t_floats(260 * D);
    for (int i = 0; i < 260 * D; i++) zero[i] = k[i] = 0, v[i] = (float)(i / D);
    for (int rollback = 4; rollback <= 5; rollback++)
        for (int way = 0; way < 8; way++) {
            static const int32_t list[2] = { 1, AT };
            swa_cache_desc d;
            swa_cache kv;
            swa_attn a;
            swa_kv spans[3];
            swa_rows r;
            swa_status status;
            int lost;
            memset(&d, 0, sizeof d);
            memset(&a, 0, sizeof a);
            memset(&r, 0, sizeof r);
            d.shape.n_heads = d.shape.n_kv_heads = d.n_layers = d.n_windows = d.audit = 1;
            d.shape.head_dim = D;
            d.windows = &w;
            d.max_rollback = rollback;
            REQUIRE(t_cache_new(&kv, &d, 1));
            a.q.p = zero;
            a.k.p = k;
            a.v.p = v;
            a.out.p = out;
            REQUIRE(CHECK_OK(swa_step_one(&kv, 0, 0, AT)) && CHECK_OK(swa_attend(&kv, 0, &a)));
            a.v.p = v + AT * D; /* the sure token, and four drafts, of which none is taken */
            REQUIRE(CHECK_OK(swa_step_one(&kv, 0, AT, 5)) && CHECK_OK(swa_attend(&kv, 0, &a)));
            CHECK_OK(swa_cache_truncate(&kv, 0, AT + 1));
            r.shape = d.shape;
            r.window = way == 1 ? narrow : way == 2 || way == 7 ? pinned : w;
            r.pos = AT; /* the sure token again: its first key is one older than the next token's */
            r.n_tokens = 1;
            r.kv = spans;
            r.n_kv = swa_cache_spans(&kv, 0, 0, spans);
            give_scratch(&r);
            if (way == 3 || way >= 6) {
                a.pick = list; /* of a list what is not there is skipped, as it says; not of what is near, or sinks */
                a.pick_n = 2;
            }
            if (way == 6) a.pick_window = &wide; /* shows what the window does */
            if (way == 4) r.pos++;
            if (way == 5) r.n_tokens = 2; /* the first of them, that is, and one that would do */
            t_label("max_rollback %d, way %d", rollback, way);
            status = swa_attention(&r, &a);
            /* sinks are lost; or the window's first key is */
            lost = way == 2 || way == 7 || ((way % 5 == 0 || way == 6) && rollback == 4);
            CHECK_STATUS(status, lost ? SWA_ERR_LOST : SWA_OK);
            CHECK((swa_attention_explain(&r, &a) == NULL) == (status == SWA_OK));
            if (way == 0 && status == SWA_OK) CHECK_NEAR(out[0], AT - (W - 1) / 2.0, 1e-4);
        }
}
/* A segment of [n][k | v] of which a stride was forgotten, one that was not zeroed, and arrays in the scratch. */
TEST(attention_segments_misread) {
    enum { N = 6, H = 2, D = 16, ROW = 2 * H * D };
    float *kv_rows = t_random((N + 2) * ROW, 1.0f), *q = t_random(H * D, 1.0f), *out = t_floats(H * D);
    for (int bad = 0; bad < 15; bad++) {
        swa_kv kv;
        swa_rows r;
        swa_attn a;
        memset(&kv, 0, sizeof kv);
        memset(&a, 0, sizeof a);
        kv.k = kv_rows;
        kv.v = kv_rows + H * D;
        kv.k_token = kv.v_token = ROW;
        kv.n = N;
        a.q.p = q;
        a.out.p = out;
        r = one_head(&kv, D, 1, 0);
        r.shape.n_heads = r.shape.n_kv_heads = H;
        r.window = swa_window_sliding(4);
        give_scratch(&r);
        if (bad == 1 || bad == 3) kv.k_token = 0;
        if (bad == 2 || bad == 3) kv.v_token = 0;
        if (bad == 4) kv.slots_ = 7;
        if (bad == 5) kv.k_scale_ = q;
        if (bad == 6) kv.v_scale_ = q;
        if (bad == 7) kv.lost_ = 3;
        if (bad == 8) kv.layout_ = 4;
        if (bad == 9) a.q.p = (float *)r.scratch;
        if (bad == 10) a.out.p = (float *)r.scratch;
        if (bad == 11) kv.v = r.scratch, kv.v_token = 0;
        if (bad == 12) kv.k = kv.v, kv.v = kv_rows; /* [n][v | k] */
        if (bad == 13) kv.k = kv.v, kv.v = kv_rows, kv.v_token = 0;
        if (bad == 14) { /* [head][n][k | v], and behind all heads what is V's alone */
            kv.k_token = kv.v_token = 2 * D;
            kv.k_head = kv.v_head = 2 * D * N;
            kv.v = kv_rows + D;
        }
        t_label("case %d", bad);
        CHECK_STATUS(swa_attention(&r, &a), bad % 12 == 0 || bad == 14 ? SWA_OK : SWA_ERR_ARG);
    }
}
/* Sinks, and a window that lies behind the last key, which ends within a tile: that tile is nobody's, and what the
   stack happens to hold in its place is not followed. */
TEST_EACH_ISA(attention_behind_the_last_key) {
    enum { N = 127, D = 64 };
    static const swa_type compute[] = { SWA_F32, SWA_BF16, SWA_BF16_TILE };
    float *k = t_random(N * D, 1.0f), *v = t_random(N * D, 1.0f), *q = t_random(16 * D, 1.0f), *out = t_floats(16 * D);
    for (int i = 0; i < 3 * 4; i++) {
        static const int rows[] = { 1, 8, 15, 16 };
        swa_kv kv;
        swa_rows r;
        swa_attn a;
        memset(&kv, 0, sizeof kv);
        memset(&a, 0, sizeof a);
        kv.k = k;
        kv.v = v;
        kv.n = N;
        r = one_head(&kv, D, rows[i % 4], isa);
        r.window = swa_window_sinks(7, 21);
        r.pos = 537;
        give_scratch(&r);
        a.q.p = q;
        a.out.p = out;
        a.compute = compute[i / 4];
        t_label("compute %d, %d rows", (int)a.compute, rows[i % 4]);
        t_dirty_stack();
        CHECK_OK(swa_attention(&r, &a));
        CHECK(out[0] < 4 && out[0] > -4 && out[rows[i % 4] * D - 1] < 4);
    }
}
static int mixed_call(swa_rows *r, const float *q, const float *q_tail, float *out, float *stat, swa_type compute) {
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.q.p = q;
    a.q.token = MIX_D;
    a.q_tail.p = q_tail;
    a.q_tail.token = MIX_T;
    a.scale = 0.3f;
    a.compute = compute;
    a.out.p = out;
    a.stat = stat;
    give_scratch(r);
    return CHECK_OK(swa_attention(r, &a));
}
/* Pages that no query sees are asked for their positions alone: K and V of those are no memory here, and the bits are
   those of one segment. A page that is seen has to be there, and under audit each. */
TEST_EACH_ISA(attention_unseen_pages) {
    enum { PAGE = 8, PAGES = 24, KEYS = PAGE * PAGES, DIM = 16, MOST = 5 };
    static float k[KEYS * DIM], v[KEYS * DIM], q[MOST * DIM], one[MOST * DIM], paged[MOST * DIM];
    t_fill(k, KEYS * DIM, 1.0f);
    t_fill(v, KEYS * DIM, 1.0f);
    t_fill(q, MOST * DIM, 1.0f);
    for (int i = 0; i < (t_all() ? 120 : 60); i++) {
        const int64_t W = t_int(1, 40), pos = t_int(0, KEYS - MOST);
        swa_kv kv[PAGES], all;
        swa_rows r;
        swa_attn a;
        int seen[PAGES] = { 0 }, first = PAGES, hidden = 0;
        memset(kv, 0, sizeof kv);
        memset(&all, 0, sizeof all);
        memset(&r, 0, sizeof r);
        memset(&a, 0, sizeof a);
        r.shape.n_heads = r.shape.n_kv_heads = 1;
        r.shape.head_dim = DIM;
        r.window = i % 6 == 0 ? swa_window_chunked(W)
                 : i % 6 == 1 ? swa_window_symmetric(W)
                 : i % 6 == 2 ? swa_window_sinks(W, (int32_t)t_int(1, 20))
                              : swa_window_sliding(W);
        r.pos = pos;
        r.n_tokens = (int32_t)t_int(1, MOST);
        if (i % 6 == 3) {
            r.window.prefix_first = t_int(0, KEYS - 1);
            r.window.prefix = t_int((int)r.window.prefix_first + 1, KEYS);
        }
        r.isa = isa;
        r.kv = &all;
        r.n_kv = 1;
        all.k = k;
        all.v = v;
        all.n = KEYS;
        a.q.p = q;
        a.out.p = one;
        if (r.window.n_sink > 0) a.q_sink.p = q; /* audit wants it */
        r.scratch_bytes = swa_attention_bytes(&r, 1);
        r.scratch = malloc(r.scratch_bytes);
        REQUIRE(r.scratch != NULL);
        t_label("case %d: W %d, %d tokens at %d", i, (int)W, r.n_tokens, (int)pos);
        CHECK_OK(swa_attention(&r, &a));
        a.out.p = paged;
        r.kv = kv;
        r.n_kv = PAGES;
        for (int p = 0; p < PAGES; p++) {
            kv[p].pos = p * PAGE;
            kv[p].n = PAGE;
            for (int x = 0; x < r.n_tokens * PAGE; x++)
                seen[p] |= swa_visible(&r.window, pos + x / PAGE, kv[p].pos + x % PAGE);
            if (seen[p] && first == PAGES) first = p;
            /* what lies between sinks and the window is asked for, as if it were seen */
            hidden += !seen[p] && (r.window.n_sink == 0 || kv[p].pos > pos); /* which audit finds, too */
            if (!seen[p] && r.window.n_sink == 0) continue;
            kv[p].k = k + p * PAGE * DIM;
            kv[p].v = v + p * PAGE * DIM;
        }
        CHECK_OK(swa_attention(&r, &a));
        CHECK(memcmp(one, paged, (size_t)r.n_tokens * DIM * sizeof *one) == 0);
        r.audit = 1;
        CHECK_STATUS(swa_attention(&r, &a), hidden ? SWA_ERR_ARG : SWA_OK);
        r.audit = 0;
        kv[first].k = NULL;
        CHECK_STATUS(swa_attention(&r, &a), SWA_ERR_ARG);
        free(r.scratch);
    }
}
/* A key's arithmetic depends on how it is stored, and on no other key: neither on a segment out of sight, nor on one
   that shares its tile. The tail of q8 is summed by itself and scaled, that of f32 goes on with the sum of K; which of
   the two was done shows in the largest score, that of a chosen key. */
TEST_EACH_ISA(attention_key_by_key) {
    float *k = t_random(MIX_N * MIX_D, 1.0f), *v = t_random(MIX_N * MIX_D, 1.0f);
    float *tail = t_random(MIX_N * MIX_T, 1.0f), *q = t_random(20 * MIX_D, 1.0f), *qt = t_random(20 * MIX_T, 1.0f);
    for (int t = 1; t < 20; t++) {
        memcpy(q + t * MIX_D, q, MIX_D * sizeof *q);
        memcpy(qt + t * MIX_T, qt, MIX_T * sizeof *q);
    }
    for (int rows = 250; rows <= 256; rows += 6)
        for (int n = 1; n <= 20; n += 19) {
            swa_cache ring;
            swa_kv kv[4];
            swa_rows r;
            float out[2][20 * MIX_D], stat[2][40];
            int n_kv = mixed_segments(&ring, rows, k, tail, v, kv);
            REQUIRE(n_kv == 2);
            memset(&r, 0, sizeof r);
            r.shape.n_heads = r.shape.n_kv_heads = 1;
            r.shape.head_dim = MIX_D;
            r.shape.v_dim = MIX_D;
            r.shape.tail_dim = MIX_T;
            r.isa = isa;
            r.n_tokens = n;
            r.pos = MIX_N - n;
            t_label("%d rows in the ring, %d queries", rows, n);

            r.window = swa_window_sliding(40); /* out of sight */
            for (int alone = 0; alone < 2; alone++) {
                r.kv = kv + alone;
                r.n_kv = 2 - alone;
                REQUIRE(mixed_call(&r, q, qt, out[alone], NULL, SWA_F32));
            }
            CHECK_BITS(out[1], out[0], n * MIX_D);

            r.window = swa_window_causal(); /* in one tile: key 247 of the ring, or row 253 */
            for (int top = 247; top <= 257; top += top == 247 ? 6 : 4) {
                const int own = top >= rows;
                for (int d = 0; d < MIX_D; d++) k[top * MIX_D + d] += 9 * q[d];
                n_kv = mixed_segments(&ring, rows, k, tail, v, kv);
                /* and in the order of tiles, which multiplies scales in before */
                for (int tile = 0; tile < 2; tile++) {
                    for (int alone = 0; alone < 2; alone++) {
                        r.kv = kv + (alone && own);
                        r.n_kv = alone ? 1 : 2;
                        REQUIRE(mixed_call(&r, q, qt, out[alone], stat[alone], tile ? SWA_BF16_TILE : SWA_F32));
                    }
                    for (int t = 0; t < n; t++) CHECK_BITS(&stat[1][2 * t], &stat[0][2 * t], 1);
                }
                for (int d = 0; d < MIX_D; d++) k[top * MIX_D + d] -= 9 * q[d];
            }
        }
}
/* Strides of the caller's own make any shape cheap: packed strides past 2^31 are not computed, offsets are wide. */
TEST(attention_wide_shapes) {
    swa_rows r;
    swa_attn a;
    swa_kv kv;
    float *out, *x;
    if (sizeof(size_t) < 8) SKIP("its q is more than 32 bits reach");
    memset(&r, 0, sizeof r);
    memset(&a, 0, sizeof a);
    memset(&kv, 0, sizeof kv);
    r.shape.n_heads = r.shape.n_kv_heads = 1 << 16;
    r.shape.head_dim = 1 << 15;
    r.shape.v_dim = 1;
    r.n_tokens = 1;
    r.kv = &kv;
    r.n_kv = 1;
    kv.k = kv.v = &kv; /* until it is known how much there is */
    kv.n = 1;
    kv.k_token = kv.k_head = kv.v_token = kv.v_head = 1;
    r.scratch_bytes = swa_attention_bytes(&r, 1);
    /* q is said to go on for 8 GB behind x: out lies before; and scratch for terabytes: it lies behind all */
    out = t_floats(((size_t)1 << 17) + r.scratch_bytes / sizeof *out + 1);
    x = out + (1 << 16);
    memset(x, 0, (1 << 16) * sizeof *x);
    kv.k = kv.v = x;
    a.q.p = x;
    a.out.p = out;
    a.out.token = a.out.head = 1;
    r.scratch = out + (1 << 17);
    r.scratch_bytes = (r.scratch_bytes - 63) * (1 << 16) + 63; /* part 0 has the first */
    x[0] = out[0] = 1.5f;
    CHECK_OK(swa_attention_part(&r, &a, 0, 0, 1 << 16));
    CHECK(out[0] == 1.5f); /* one key: its V */
}
/* The scratch of a call that is large anyway has no room for results split over keys. */
TEST(attention_scratch_of_large_calls) {
    swa_rows r;
    size_t one;
    memset(&r, 0, sizeof r);
    r.shape.n_heads = 64;
    r.shape.n_kv_heads = 8;
    r.shape.head_dim = 128;
    r.n_tokens = 1;
    one = swa_attention_bytes(&r, 1);
    CHECK(one > 63 && swa_attention_bytes(&r, 2) == 2 * one - 63); /* no key: nothing to split */
    for (int large = 0; large < 2; large++) {
        float k[1] = { 0 };
        swa_kv kv;
        memset(&kv, 0, sizeof kv);
        kv.k = kv.v = k;
        kv.n = 100000;
        r.kv = &kv;
        r.n_kv = 1;
        r.pos = large ? 0 : 99999;
        r.n_tokens = large ? 100000 : 1;
        one = swa_attention_bytes(&r, 1);
        CHECK((swa_attention_bytes(&r, 2) == 2 * one - 63) == large);
        for (int parts = 1; parts <= 5; parts += 4) /* n_tokens 0 asks for any number of them */
            for (int32_t n = 1; n <= 4096; n *= 2) {
                swa_rows any = r;
                any.n_tokens = 0;
                r.n_tokens = n;
                r.pos = 100000 - n;
                CHECK(swa_attention_bytes(&r, parts) <= swa_attention_bytes(&any, parts));
            }
    }
}

/* Rows of all heads of a token side by side, more than caches hold: heads take turns, where their scores and results
   of split keys have room; a ring's span among them, off its own grid, is read as ever. Any has the bits of each head's
   own rows. */
TEST_EACH_ISA(rows_of_heads_that_take_turns) {
    enum { N = 1300, RING = 40, H = 8, ROW = 512 };
    static const int dims[3] = { 64, 16, 64 }, groups[3] = { 3, 3, 2 };
    float *k = t_random(N * ROW, 1.0f), *v = t_random(N * ROW, 1.0f), *q = t_random(3 * ROW, 1.0f);
    float *want = t_floats(3 * ROW), *out = t_floats(3 * ROW);
    float *k_head = t_floats(N * 64), *v_head = t_floats(N * 64);
    for (int way = 0; way < 3; way++) {
        const int D = dims[way], G = groups[way], all = H * G * D;
        swa_kv kv[4];
        swa_rows r;
        swa_attn a = { 0 };
        swa_cache ring;
        swa_cache_desc d;
        size_t bytes;
        t_label("way %d", way);
        memset(kv, 0, sizeof kv);
        a.compute = way == 2 ? SWA_BF16 : SWA_F32;
        for (int h = 0; h < H; h++) {
            for (int i = 0; i < N; i++) {
                memcpy(k_head + i * D, k + i * ROW + h * D, (size_t)D * sizeof *k);
                memcpy(v_head + i * D, v + i * ROW + h * D, (size_t)D * sizeof *v);
            }
            kv[0].k = k_head;
            kv[0].v = v_head;
            kv[0].n = N;
            at_one_query(&r, G, D, kv, 1, N - 1);
            r.isa = isa;
            a.q.p = q + h * G * D;
            a.out.p = want + h * G * D;
            REQUIRE_OK(swa_attention(&r, &a));
        }
        kv[0].k = k;
        kv[0].v = v;
        kv[0].k_token = kv[0].v_token = ROW;
        a.q.p = q;
        a.out.p = out;
        r.shape.n_heads = H * G;
        r.shape.n_kv_heads = H;
        bytes = swa_attention_bytes(&r, 1);
        r.scratch_bytes = 2 * (bytes - 63) + 63; /* for two parts, but not for what they leave for phase 1 */
        r.scratch = t_alloc(r.scratch_bytes);
        for (int parts = 1; parts <= 2; parts++) {
            memset(out, 0, (size_t)all * sizeof *out);
            for (int phase = 0; phase < SWA_PHASES; phase++)
                for (int part = 0; part < parts; part++) REQUIRE_OK(swa_attention_part(&r, &a, phase, part, parts));
            CHECK_BITS(out, want, all);
        }
        if (D * H != ROW) continue;

        memset(&d, 0, sizeof d);
        d.shape = r.shape;
        d.n_layers = 1;
        d.max_context = 64;
        d.isa = isa;
        if (!t_cache_new(&ring, &d, 1)) return;
        REQUIRE_OK(swa_cache_reset(&ring, 0, N - RING, 5));
        REQUIRE_OK(swa_step_one(&ring, 0, N - RING, RING));
        swa_attn stored = { 0 };
        stored.mode = SWA_STORE_ONLY;
        stored.k.p = k + (N - RING) * ROW;
        stored.v.p = v + (N - RING) * ROW;
        REQUIRE_OK(swa_attend(&ring, 0, &stored));
        kv[0].n = N - RING;
        r.n_kv = 1 + swa_cache_spans(&ring, 0, 0, kv + 1);
        memset(out, 0, (size_t)all * sizeof *out);
        REQUIRE_OK(swa_attention(&r, &a));
        CHECK_BITS(out, want, all);
    }
}
/* More than 4 MB lie between the first row and the last: the library fetches such rows once more. */
TEST_EACH_ISA(rows_far_apart_are_the_same_rows) {
    enum { N = 550, D = 32, APART = 2048, H = 4 };
    float *k = t_random(N * D, 1.0f), *v = t_random(N * D, 1.0f), *q = t_random(H * D, 2.0f),
          *far = t_floats((size_t)N * APART), *want = t_floats(H * D), *out = t_floats(H * D);
    swa_kv kv = { 0 };
    swa_rows r;
    swa_attn a = { 0 };
    for (int i = 0; i < N; i++) {
        memcpy(far + i * APART, k + i * D, D * sizeof *k);
        memcpy(far + i * APART + D, v + i * D, D * sizeof *v);
    }
    kv.k = k;
    kv.v = v;
    kv.n = N;
    at_one_query(&r, H, D, &kv, 1, N - 1);
    r.isa = isa;
    a.q.p = q;
    a.out.p = want;
    CHECK_OK(swa_attention(&r, &a));
    kv.k = far;
    kv.v = far + D;
    kv.k_token = kv.v_token = APART;
    a.out.p = out;
    CHECK_OK(swa_attention(&r, &a));
    CHECK_BITS(out, want, H * D);
}

/* ---- the machine ---- */

/* Numbers that are subnormal in 16 or 8 bits are none in f32: a host that reads those as 0, as every program does that
   gcc or clang link with -ffast-math, has the same bits of them. */
#if defined(__SSE2__)
#include <xmmintrin.h>
#define FLUSH(on) _mm_setcsr((_mm_getcsr() & ~0x8040u) | ((on) ? 0x8040u : 0u))
#else
#define FLUSH(on) ((void)(on))
#endif
TEST_EACH_ISA(attention_of_narrow_subnormals) {
    static const swa_type types[] = { SWA_F16, SWA_E4M3, SWA_E5M2 };
    enum { N = 21, DIM = 20 };
    for (int t = 0; t < 3; t++) {
        uint16_t k[N * DIM], v[N * DIM]; /* the fp8 types take half of them */
        float *q = t_random(DIM, 1.0f), out[2][DIM];
        swa_kv kv;
        swa_rows r;
        swa_attn a;
        memset(&kv, 0, sizeof kv);
        memset(&a, 0, sizeof a);
        for (int i = 0; i < N * DIM; i++) {
            k[i] = (uint16_t)t_int(0, 0x3ff);
            v[i] = (uint16_t)(t_int(0, 0x3ff) | (i % 2 ? 0x8000 : 0));
        }
        if (t > 0)
            for (int i = 0; i < N * DIM; i++) {
                ((unsigned char *)k)[i] = (unsigned char)t_int(0, t == 1 ? 7 : 3);
                ((unsigned char *)v)[i] = (unsigned char)(t_int(0, t == 1 ? 7 : 3) | (i % 2 ? 0x80 : 0));
            }
        kv.k = k;
        kv.v = v;
        kv.k_type = kv.v_type = types[t];
        kv.n = N;
        r = one_head(&kv, DIM, 1, isa);
        a.q.p = q;
        for (int flush = 0; flush < 2; flush++) {
            int ok;
            a.out.p = out[flush];
            FLUSH(flush);
            ok = at_run_rows(&r, &a, 0);
            FLUSH(0);
            REQUIRE(ok);
        }
        t_label("%s", types[t] == SWA_F16 ? "f16" : types[t] == SWA_E4M3 ? "e4m3" : "e5m2");
        CHECK_BITS(out[1], out[0], DIM);
        CHECK(fabsf(out[0][0]) > 1e-7f);
    }
}

TEST(attention_isas) {
    int best = swa_isa_best();
    CHECK(swa_isa_usable(best) == 1 && swa_isa_usable(SWA_ISA_SCALAR) == 1);
    CHECK(!swa_isa_usable(-1) && !swa_isa_usable(99));
    FOR_ISA(isa) CHECK(strlen(swa_isa_name(isa)) > 0);
    CHECK(strcmp(swa_isa_name(SWA_ISA_SCALAR), "scalar") == 0 && strcmp(swa_isa_name(SWA_ISA_AVX512), "avx512") == 0);
    CHECK(strcmp(swa_isa_name(SWA_ISA_BEST), "best") == 0);
    FOR_ISA(isa) CHECK(best >= isa);
#if defined(__x86_64__) && !defined(SWA_NO_SIMD)
    if (!swa_isa_usable(SWA_ISA_AVX2)) SKIP("this CPU has no AVX2 with FMA: nothing of it was tested");
    if (!swa_isa_usable(SWA_ISA_AVX512)) SKIP("this CPU or build has no AVX-512: nothing of it was tested");
#elif defined(__aarch64__) && !defined(SWA_NO_SIMD)
    if (!swa_isa_usable(SWA_ISA_NEON)) SKIP("no NEON: nothing of it was tested");
#endif
}
