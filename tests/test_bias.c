/* A bias by distance (bias[token][head][q-k], nothing beyond its width) beside the same numbers by position, bit for
   bit: over a ring and over rows, for few rows and many, near and far, with and without what else changes a score; and
   with strides of 0 against attention in double. The random cases of test_attention.c and test_bits.c have it too. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "attend.h"

enum { HEADS = 4, DIM = 8 };
typedef struct {
    float *out, *lse, *stat;
} result;
typedef struct {
    int n, width; /* tokens; distances that have a bias */
    int64_t start;
    swa_window window;
    float softcap;
    int alibi, sink_logits, isa;
    float *q, *k, *v, *slopes, *logits; /* [n][HEADS][DIM], [n][2][DIM] twice, [HEADS] twice */
    float *near, *all;                  /* [n][HEADS][width] by distance, [n][HEADS][n] by position */
} input;

static input make(int n, int width, int64_t start, swa_window window, int isa) {
    input x;
    memset(&x, 0, sizeof x);
    x.n = n;
    x.width = width;
    x.start = start;
    x.window = window;
    x.isa = isa;
    x.q = t_random(n * HEADS * DIM, 4.0f);
    x.k = t_random(n * 2 * DIM, 1.0f);
    x.v = t_random(n * 2 * DIM, 1.0f);
    x.slopes = t_random(HEADS, 0.1f);
    for (int h = 0; h < HEADS; h++) x.slopes[h] = fabsf(x.slopes[h]);
    x.logits = t_random(HEADS, 1.0f);
    x.near = t_random((size_t)n * HEADS * (size_t)width, 2.0f);
    x.all = t_floats((size_t)n * HEADS * (size_t)n);
    for (int t = 0; t < n; t++)
        for (int h = 0; h < HEADS; h++)
            for (int k = 0; k < n; k++)
                x.all[(t * HEADS + h) * n + k] =
                    k <= t && t - k < width ? x.near[(t * HEADS + h) * width + t - k] : 0.0f;
    return x;
}
/* Everything of a call on tokens from..; by distance or by position. */
static swa_attn call_of(const input *x, int from, int by_distance, const result *r) {
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.q.p = x->q + from * HEADS * DIM;
    a.k.p = x->k + from * 2 * DIM;
    a.v.p = x->v + from * 2 * DIM;
    a.out.p = r->out + from * HEADS * DIM;
    a.lse = r->lse + from * HEADS;
    a.stat = r->stat ? r->stat + from * HEADS * 2 : NULL;
    a.softcap = x->softcap;
    if (x->alibi) a.alibi = x->slopes;
    if (x->sink_logits) a.sink_logits = x->logits;
    a.bias_n = a.bias_head = by_distance ? x->width : x->n;
    a.bias_token = HEADS * a.bias_head;
    a.bias = (by_distance ? x->near : x->all) + from * a.bias_token;
    a.bias_first = by_distance ? 0 : x->start;
    a.bias_by_distance = by_distance;
    return a;
}
static result results(const input *x, int stat) {
    result r;
    r.out = t_floats(x->n * HEADS * DIM);
    r.lse = t_floats(x->n * HEADS);
    r.stat = stat ? t_floats(x->n * HEADS * 2) : NULL;
    return r;
}
static result by_ring(const input *x, int chunk, int parts, int by_distance, int stat) {
    result r = results(x, stat);
    swa_cache_desc d;
    swa_cache kv;
    memset(&d, 0, sizeof d);
    d.shape.n_heads = HEADS;
    d.shape.n_kv_heads = 2;
    d.shape.head_dim = DIM;
    d.n_layers = 1;
    d.windows = &x->window;
    d.n_windows = 1;
    d.max_context = x->n;
    d.isa = x->isa;
    if (!t_cache_new(&kv, &d, parts) || !CHECK_OK(swa_cache_reset(&kv, 0, x->start, 0))) return r;
    for (int t = 0; t < x->n; t += chunk) {
        const int n = chunk < x->n - t ? chunk : x->n - t;
        swa_attn a = call_of(x, t, by_distance, &r);
        if (!CHECK_OK(swa_step_one(&kv, 0, x->start + t, n)) || !at_run_ring(&kv, 0, &a, parts)) break;
    }
    return r;
}
static result by_rows(const input *x, int chunk, int parts, int by_distance) {
    result r = results(x, 0);
    swa_kv kv;
    swa_rows rows;
    memset(&kv, 0, sizeof kv);
    memset(&rows, 0, sizeof rows);
    kv.k = x->k;
    kv.v = x->v;
    kv.pos = x->start;
    kv.n = x->n;
    rows.shape.n_heads = HEADS;
    rows.shape.n_kv_heads = 2;
    rows.shape.head_dim = DIM;
    rows.window = x->window;
    rows.kv = &kv;
    rows.n_kv = 1;
    rows.isa = x->isa;
    for (int t = 0; t < x->n; t += chunk) {
        swa_attn a = call_of(x, t, by_distance, &r);
        rows.pos = x->start + t;
        rows.n_tokens = chunk < x->n - t ? chunk : x->n - t;
        rows.scratch_bytes = swa_attention_bytes(&rows, parts ? parts : 1);
        rows.scratch = t_alloc(rows.scratch_bytes);
        if (!at_run_rows(&rows, &a, parts)) break;
    }
    return r;
}
static void same(const input *x, const result *got, const result *want) {
    CHECK_BITS(got->out, want->out, x->n * HEADS * DIM);
    CHECK_BITS(got->lse, want->lse, x->n * HEADS);
    if (want->stat) CHECK_BITS(got->stat, want->stat, x->n * HEADS * 2);
}
static swa_window window_of(int i) {
    return i == 0 ? swa_window_causal()
         : i == 1 ? swa_window_sliding(300)
         : i == 2 ? swa_window_sinks(40, 5)
         : i == 3 ? swa_window_chunked(100)
                  : swa_window_sliding(7);
}
/* Widths below, at and above the window and the block of 256; some blocks have no key with a bias, and are not asked:
   by position all of them are. */
TEST_EACH_ISA(bias_by_distance_is_bias_by_position) {
    static const int widths[] = { 1, 3, 16, 100, 257, 700 };
    for (int i = 0; i < (t_all() ? 30 : t_thin(isa) ? 6 : 12); i++) {
        const t_block *mark = t_.blocks;
        const int n = i % 6 == 5 ? 40 : 330;
        input x = make(n, widths[i % 6], i % 2 ? 200 : 1000003, window_of(i % 5), isa);
        result want, got;
        x.softcap = i % 4 == 1 ? 3.0f : 0.0f;
        x.alibi = i % 7 == 2;
        x.sink_logits = i % 3 == 0;
        t_label("width %d, window %d, case %d", x.width, i % 5, i);
        want = by_ring(&x, n, 0, 0, i % 2);
        for (int chunk = 1; chunk <= n; chunk = chunk == 1 ? 37 : chunk == 37 ? n : n + 1) {
            got = by_ring(&x, chunk, chunk == 37 ? 3 : 0, 1, i % 2);
            same(&x, &got, &want);
            if (i % 2) continue;
            got = by_rows(&x, chunk, chunk == 1 ? 4 : 0, 1);
            same(&x, &got, &want);
        }
        t_free_to(mark);
    }
}
/* One bias for all tokens, for all heads, for both: strides of 0, as a model's learned table would be given. */
TEST_EACH_ISA(bias_of_all_tokens_and_heads) {
    for (int which = 0; which < 4; which++)
        for (int chunk = 1; chunk <= 60; chunk += 59) {
            enum { N = 60, WIDTH = 11 };
            input x = make(N, WIDTH, 200, swa_window_sliding(25), isa);
            const int heads = which & 1 ? 1 : HEADS, tokens = which & 2 ? 1 : N;
            float *whole = t_floats(N * HEADS * WIDTH), out[N * HEADS * DIM], lse[N * HEADS];
            double *want = t_doubles(N * HEADS * DIM), *room = t_doubles(N);
            swa_kv kv;
            swa_rows rows;
            or_case o;
            for (int t = 0; t < N; t++)
                for (int h = 0; h < HEADS; h++)
                    memcpy(whole + (t * HEADS + h) * WIDTH, x.near + (t % tokens * heads + h % heads) * WIDTH,
                           WIDTH * sizeof(float));
            memset(&kv, 0, sizeof kv);
            memset(&rows, 0, sizeof rows);
            memset(&o, 0, sizeof o);
            kv.k = x.k;
            kv.v = x.v;
            kv.pos = 200;
            kv.n = N;
            rows.shape.n_heads = HEADS;
            rows.shape.n_kv_heads = 2;
            rows.shape.head_dim = DIM;
            rows.window = x.window;
            rows.kv = &kv;
            rows.n_kv = 1;
            rows.isa = isa;
            rows.n_tokens = chunk;
            rows.scratch_bytes = swa_attention_bytes(&rows, 1);
            rows.scratch = t_alloc(rows.scratch_bytes);
            for (int t = 0; t < N; t += chunk) {
                result r;
                swa_attn a;
                r.out = out;
                r.lse = lse;
                r.stat = NULL;
                a = call_of(&x, t, 1, &r);
                a.bias_head = heads == 1 ? 0 : WIDTH;
                a.bias_token = tokens == 1 ? 0 : heads * WIDTH;
                a.bias = x.near + t * a.bias_token;
                rows.pos = 200 + t;
                CHECK_OK(swa_attention(&rows, &a));
            }
            o.n_heads = HEADS;
            o.n_kv_heads = 2;
            o.dk = o.dv = DIM;
            o.window = or_sliding(25);
            o.q_pos = o.k_pos = 200;
            o.n_q = o.n_k = N;
            o.q = x.q;
            o.k = x.k;
            o.v = x.v;
            o.scale = 1 / sqrt((double)DIM);
            o.bias = whole;
            o.bias_n = WIDTH;
            o.bias_by_distance = 1;
            or_attention(&o, want, NULL, room);
            t_label("one for all %s%s, chunks of %d", which & 1 ? "heads " : "", which & 2 ? "tokens" : "", chunk);
            CHECK_CLOSE(out, want, N * HEADS * DIM, 4e-6);
        }
}
/* Keys behind the query have a distance below 0, and no bias; keys 2^40 and 2^62 before it neither. */
TEST_EACH_ISA(bias_of_no_distance) {
    for (int far = 0; far < 3; far++)
        for (int n = 1; n <= 20; n += 19) {
            const int64_t at = far == 0 ? 20 : far == 1 ? (int64_t)1 << 40 : (int64_t)1 << 62;
            float *q = t_random(20 * DIM, 4.0f), *k = t_random(40 * DIM, 1.0f), *bias = t_random(25, 2.0f) + 10;
            float out[2][20 * DIM], slope[1] = { 0.0f }, whole[20 * 40];
            swa_kv kv[2];
            swa_rows rows;
            memset(kv, 0, sizeof kv);
            memset(&rows, 0, sizeof rows);
            memset(whole, 0, sizeof whole);
            kv[0].k = kv[0].v = k;
            kv[0].n = 20;
            kv[1].k = kv[1].v = k + 20 * DIM;
            kv[1].pos = at;
            kv[1].n = 20;
            rows.shape.n_heads = rows.shape.n_kv_heads = 1;
            rows.shape.head_dim = DIM;
            rows.window = swa_window_flash(-1, 3);
            rows.kv = kv;
            rows.n_kv = 2;
            rows.isa = isa;
            rows.pos = at + 10;
            rows.n_tokens = n > 1 ? 10 : 1;
            rows.scratch_bytes = swa_attention_bytes(&rows, 1);
            rows.scratch = t_alloc(rows.scratch_bytes);
            for (int t = 0; t < rows.n_tokens; t++)
                for (int d = 0; d < 5 && d <= 10 + t; d++) whole[t * 40 + 10 + t - d] = bias[d];
            for (int by = 0; by < 2; by++) {
                swa_attn a;
                memset(&a, 0, sizeof a);
                a.q.p = q;
                a.out.p = out[by];
                a.alibi = slope; /* so that far blocks are modified too */
                a.bias = by ? bias : whole;
                a.bias_n = by ? 5 : 40;
                a.bias_token = by ? 0 : 40;
                a.bias_first = by ? 0 : at;
                a.bias_by_distance = by;
                CHECK_OK(swa_attention(&rows, &a));
            }
            t_label("%d queries, %lld positions away", rows.n_tokens, (long long)at);
            CHECK_BITS(out[1], out[0], rows.n_tokens * DIM);
        }
}
/* A bias of one key, at the edges of blocks: the same as one of all keys that is zero but there. */
TEST_EACH_ISA(bias_of_one_key) {
    static const int at[] = { 0, 1, 254, 255, 256, 257, 511, 512, 599 };
    float *q = t_random(20 * DIM, 1.0f), *k = t_random(600 * DIM, 1.0f), whole[600], out[2][20 * DIM];
    for (int i = 0; i < 9; i++)
        for (int n = 1; n <= 20; n += 19) {
            swa_kv kv;
            swa_rows rows;
            memset(&kv, 0, sizeof kv);
            memset(&rows, 0, sizeof rows);
            memset(whole, 0, sizeof whole);
            whole[at[i]] = 7.0f;
            kv.k = kv.v = k;
            kv.n = 600;
            rows.shape.n_heads = rows.shape.n_kv_heads = 1;
            rows.shape.head_dim = DIM;
            rows.kv = &kv;
            rows.n_kv = 1;
            rows.isa = isa;
            rows.pos = 600 - n;
            rows.n_tokens = n;
            rows.scratch_bytes = swa_attention_bytes(&rows, 1);
            rows.scratch = t_alloc(rows.scratch_bytes);
            for (int one = 0; one < 2; one++) {
                swa_attn a;
                memset(&a, 0, sizeof a);
                a.q.p = q;
                a.out.p = out[one];
                a.bias = one ? whole + at[i] : whole;
                a.bias_first = one ? at[i] : 0;
                a.bias_n = one ? 1 : 600;
                CHECK_OK(swa_attention(&rows, &a));
            }
            t_label("key %d, %d queries", at[i], n);
            CHECK_BITS(out[1], out[0], n * DIM);
        }
}
/* A bias as a mask, of -inf or the least float, as hosts fill it in: a hidden key counts as one that the window hides,
   for few rows and many, in blocks that have no edge; a row of which all is hidden sees nothing. */
TEST_EACH_ISA(bias_as_a_mask) {
    enum { N = 320, ROWS = 32, EVERY = 3 };
    static const swa_type types[] = { SWA_F32, SWA_F16, SWA_BF16, SWA_E4M3 };
    const float none[2] = { -FLT_MAX, -(float)INFINITY };
    float *q = t_random(N * 2 * DIM, 1.0f), *k = t_random(N * DIM, 1.0f), *bias = t_floats(N * 2 * N);
    float *out[2] = { t_floats(N * 2 * DIM), t_floats(N * 2 * DIM) }, *lse[2] = { t_floats(N * 2), t_floats(N * 2) };
    for (int way = 0; way < 8; way++) {
        swa_cache_desc d;
        memset(&d, 0, sizeof d);
        d.shape.n_heads = 2; /* the second one of every third token sees nothing */
        d.shape.n_kv_heads = 1;
        d.shape.head_dim = DIM;
        d.n_layers = 1;
        d.max_context = N;
        d.v_type = types[way / 2];
        d.isa = isa;
        for (int i = 0; i < N * 2 * N; i++) {
            const int t = i / (2 * N), head = i / N % 2, key = i % N;
            bias[i] = (head == 1 && t % 3 == 0) || key % EVERY == 1 ? none[way % 2] : 0.0f;
        }
        for (int chunks = 0; chunks < 2; chunks++) {
            swa_cache kv;
            REQUIRE(t_cache_new(&kv, &d, 1));
            for (int t = 0, n = chunks ? ROWS : 1; t < N; t += n) {
                swa_attn a;
                memset(&a, 0, sizeof a);
                a.q.p = q + t * 2 * DIM;
                a.k.p = a.v.p = k + t * DIM;
                a.out.p = out[chunks] + t * 2 * DIM;
                a.lse = lse[chunks] + t * 2;
                a.bias = bias + t * 2 * N;
                a.bias_token = 2 * N;
                a.bias_head = N;
                a.bias_n = N;
                CHECK_OK(swa_step_one(&kv, 0, t, n));
                CHECK_OK(swa_attend(&kv, 0, &a));
            }
        }
        t_label("V in type %d, %g", (int)types[way / 2], (double)none[way % 2]);
        CHECK_BITS(out[1], out[0], N * 2 * DIM);
        CHECK_BITS(lse[1], lse[0], N * 2);
        for (int t = 0; t < N; t += 3)
            CHECK((double)lse[0][2 * t + 1] == -HUGE_VAL && out[0][(2 * t + 1) * DIM] == 0.0f);
        for (int t = 0; t < N; t++) CHECK((double)lse[0][2 * t] > -HUGE_VAL);
    }
}
