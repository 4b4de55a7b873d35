/* Steps: the prefill iterator against a schedule written out here, any chunking and batch mix to the bit, sequences
   that join and leave, and steps that die after every single call. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "test.h"
#include "toy.h"

enum { ROWS = 64 };
static uint32_t text(int seq, int64_t pos) { return (uint32_t)(seq * 100003) + (uint32_t)(pos * 7919 + 17); }

/* ---- the iterator ---- */

/* Everything that the iterator hands out for these prompts, against the definition: round r gives every sequence
   that still has tokens its tokens [r*chunk, (r+1)*chunk), in the order of the list. */
static void check_plan(const int *seqs, const int64_t *start, const int32_t *lens, int n_seqs, int32_t chunk) {
    swa_plan plan;
    swa_run runs[8];
    int n = -1, round = 0;
    int64_t expect = 0;
    REQUIRE_OK(swa_prefill_begin(&plan, seqs, start, lens, n_seqs, chunk));
    for (;; round++) {
        int more = swa_prefill_next(&plan, runs, &n), at = 0;
        for (int i = 0; i < n_seqs; i++) {
            int64_t from = (int64_t)round * chunk, left = lens[i] - from;
            if (left <= 0) continue;
            if (!CHECK(at < n)) return;
            CHECK_INT(runs[at].seq, seqs ? seqs[i] : i);
            CHECK_INT(runs[at].pos, (start ? start[i] : 0) + from);
            CHECK_INT(runs[at].n, left < chunk ? left : chunk);
            CHECK_INT(runs[at].prefix, 0);
            at++;
        }
        CHECK_INT(n, at);
        CHECK_INT(more != 0, at > 0);
        if (!more || round > 100) break;
    }
    for (int i = 0; i < n_seqs; i++)
        if (((int64_t)lens[i] + chunk - 1) / chunk > expect) expect = ((int64_t)lens[i] + chunk - 1) / chunk;
    CHECK_INT(round, expect);
    CHECK_INT(swa_prefill_next(&plan, runs, &n), 0); /* asked again: still nothing */
    CHECK_INT(n, 0);
}
TEST(prefill_hands_out_every_token_once) {
    static const int seqs[3] = { 4, 0, 2 };
    static const int64_t start[3] = { 0, 100, ((int64_t)1 << 40) + 3 };
    int32_t lens[3];
    for (int32_t chunk = 1; chunk <= 9; chunk++)
        for (lens[0] = 0; lens[0] <= 7; lens[0]++)
            for (lens[1] = 0; lens[1] <= 7; lens[1]++)
                for (lens[2] = 0; lens[2] <= 7; lens[2]++) {
                    t_label("lens %d %d %d chunk %d", (int)lens[0], (int)lens[1], (int)lens[2], (int)chunk);
                    check_plan(seqs, start, lens, 3, chunk);
                    if (lens[2] == 0) check_plan(NULL, NULL, lens, 3, chunk);
                }
}
TEST(prefill_of_large_numbers) {
    static const int64_t start[2] = { INT64_MAX - 1 - INT32_MAX, 0 };
    int32_t lens[2] = { INT32_MAX, INT32_MAX - 1 };
    swa_plan plan;
    swa_run runs[2];
    int n;
    CHECK_OK(swa_prefill_begin(&plan, NULL, start, lens, 2, INT32_MAX));
    CHECK_INT(swa_prefill_next(&plan, runs, &n), 1);
    CHECK_INT(n, 2);
    CHECK(runs[0].n == INT32_MAX && runs[0].pos == start[0] && runs[1].n == INT32_MAX - 1);
    CHECK_INT(swa_prefill_next(&plan, runs, &n), 0);
    CHECK_OK(swa_prefill_begin(&plan, NULL, start, lens, 2, INT32_MAX - 1));
    CHECK_INT(swa_prefill_next(&plan, runs, &n), 1);
    CHECK_INT(swa_prefill_next(&plan, runs, &n), 1);
    CHECK(n == 1 && runs[0].n == 1 && runs[0].pos == INT64_MAX - 2);
    CHECK_INT(swa_prefill_next(&plan, runs, &n), 0);
    lens[1] = 5; /* a short one, done long ago when the count of tokens has passed an int32 */
    CHECK_OK(swa_prefill_begin(&plan, NULL, NULL, lens, 2, 1500000000));
    CHECK_INT(swa_prefill_next(&plan, runs, &n), 1);
    CHECK_INT(swa_prefill_next(&plan, runs, &n), 1);
    CHECK(n == 1 && runs[0].n == INT32_MAX - 1500000000);
    CHECK_INT(swa_prefill_next(&plan, runs, &n), 0);
    lens[1] = INT32_MAX - 1;
    check_plan(NULL, NULL, lens + 1, 1, INT32_MAX);
}

/* ---- chunks and batches, to the bit ---- */

enum { SEQS = 4 };
typedef struct {
    toy t;
    float *cold[SEQS];
    int64_t start[SEQS];
    int32_t len[SEQS];
} batch;

static int batch_open(batch *b, const swa_cache_desc *d, int parts, const int64_t *start, const int32_t *len) {
    for (int i = 0; i < SEQS; i++) {
        b->start[i] = start[i];
        b->len[i] = len[i];
        b->cold[i] = toy_cold(d, i, start[i], len[i] + 8, text);
        if (!b->cold[i]) return 0;
    }
    if (!toy_open_parts(&b->t, d, parts)) return 0;
    for (int i = 0; i < SEQS; i++)
        if (!CHECK_OK(swa_cache_reset(&b->t.kv, i, start[i], 0))) return 0;
    return 1;
}
/* Runs a step and compares every row of it with the answer sheet. */
static void batch_step(batch *b, swa_run *runs, int n, float *x) {
    if (!CHECK_INT(toy_step(&b->t, runs, n, text, x), SWA_OK)) return;
    for (int i = 0, row = 0; i < n; row += runs[i++].n) {
        CHECK_STATUS(runs[i].status, SWA_OK);
        CHECK_INT(runs[i].row, row);
        CHECK_BITS(x + row * TOY_DIM, b->cold[runs[i].seq] + (runs[i].pos - b->start[runs[i].seq]) * TOY_DIM,
                   runs[i].n * TOY_DIM);
    }
}
/* Ragged prefill in chunks, then 8 decode steps, all of it against token by token. */
static void check_chunk(batch *b, int32_t chunk, float *x) {
    swa_plan plan;
    swa_run runs[SEQS];
    int n;
    for (int i = 0; i < SEQS; i++) CHECK_OK(swa_cache_reset(&b->t.kv, i, b->start[i], 0));
    CHECK_OK(swa_prefill_begin(&plan, NULL, b->start, b->len, SEQS, chunk));
    while (swa_prefill_next(&plan, runs, &n)) batch_step(b, runs, n, x);
    for (int j = 0; j < 8; j++) {
        for (int i = 0; i < SEQS; i++) runs[i] = t_run(i, b->start[i] + b->len[i] + j, 1);
        batch_step(b, runs, SEQS, x);
    }
}
static void check_chunks(int isa, int64_t W, int mode_windows, swa_type type, int parts) {
    static const int64_t start[SEQS] = { 0, 7, 300, (int64_t)1 << 33 };
    static const int32_t len[SEQS] = { 41, 0, 3, 29 };
    const swa_window w[2] = { swa_window_sliding(W),
                              mode_windows == 1 ? swa_window_sinks(W, 3) : swa_window_chunked(W + 1) };
    swa_cache_desc d = toy_desc(w, mode_windows ? 2 : 1, 2, SEQS);
    float *x = t_floats(SEQS * ROWS * TOY_DIM);
    int32_t chunks[9];
    batch b;
    d.isa = isa;
    d.k_type = d.v_type = type;
    if (!batch_open(&b, &d, parts, start, len)) return;
    b.t.parts = parts;
    chunks[0] = 1;
    chunks[1] = 2;
    chunks[2] = (int32_t)W - 1;
    chunks[3] = (int32_t)W;
    chunks[4] = (int32_t)W + 1;
    chunks[5] = (int32_t)(2 * W);
    chunks[6] = (int32_t)(3 * W + 1);
    chunks[7] = 41;
    chunks[8] = INT32_MAX;
    for (int i = 0; i < 9; i++) {
        t_label("W=%d windows %d type %d parts %d chunk %d", (int)W, mode_windows, (int)type, parts, (int)chunks[i]);
        if (chunks[i] > 0) check_chunk(&b, chunks[i], x);
    }
}
TEST_EACH_ISA(any_chunking_has_the_same_bits) {
    static const swa_type types[7] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8, SWA_Q8_32, SWA_E4M3, SWA_E5M2 };
    for (int64_t W = 1; W <= 9; W += W < 4 ? 1 : 5)
        for (int mode = 0; mode < 3; mode++) check_chunks(isa, W, mode, types[(W + mode) % 7], (int)(W % 3));
    for (int i = 0; i < 7; i++) check_chunks(isa, 5, 0, types[i], i % 4);
}

/* A random load: sequences join with a prompt, prefill in chunks of any size beside others that decode, leave, and
   their slots are taken by the next. Whatever comes together in a step, each row has its bits. */
TEST_EACH_ISA(joining_and_leaving_a_running_batch) {
    const swa_window w[2] = { swa_window_sliding(6), swa_window_sinks(3, 2) };
    static const int64_t start[SEQS] = { 0, 1, 50, 0 };
    static const int32_t len[SEQS] = { 40, 40, 40, 40 };
    swa_cache_desc d = toy_desc(w, 2, 3, SEQS);
    float *x = t_floats(SEQS * ROWS * TOY_DIM);
    int64_t at[SEQS];
    batch b;
    d.isa = isa;
    REQUIRE(batch_open(&b, &d, 1, start, len));
    for (int i = 0; i < SEQS; i++) at[i] = -1; /* not there */
    for (int round = 0; round < 300; round++) {
        swa_run runs[SEQS];
        int n = 0;
        memset(runs, 0, sizeof runs);
        t_label("round %d", round);
        for (int j = 0, first = t_int(0, SEQS - 1); j < SEQS; j++) {
            int i = (first + j) % SEQS;
            int64_t end = start[i] + len[i] + 8;
            if (at[i] < 0 && t_int(0, 2)) continue;
            if (at[i] >= 0 && t_int(0, 11) == 0) {
                at[i] = -1;
                continue;
            }
            if (at[i] < 0 || at[i] == end) {
                at[i] = start[i];
                CHECK_OK(swa_cache_reset(&b.t.kv, i, at[i], 0));
            }
            runs[n] = t_run(i, at[i], t_int(0, 2) ? t_int(0, 1) : t_int(0, 20));
            if (runs[n].n > end - at[i]) runs[n].n = (int32_t)(end - at[i]);
            at[i] += runs[n].n;
            if (runs[n].n > 0) n++; /* or it sits this one out */
        }
        if (n > 0) batch_step(&b, runs, n, x);
    }
}

/* ---- what begin refuses ---- */

/* Refused for run `bad`, nothing of the sequences changed, and attend says the same as begin. */
static void check_refused(toy *t, swa_run *runs, int n, swa_status want, int bad) {
    int64_t end[SEQS];
    float x[TOY_DIM], out[TOY_DIM];
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.q.p = a.k.p = a.v.p = x;
    a.out.p = out;
    for (int i = 0; i < SEQS; i++) end[i] = swa_cache_end(&t->kv, i);
    runs[bad].status = SWA_OK;
    CHECK_STATUS(swa_step_begin(&t->kv, runs, n), want);
    CHECK_STATUS(runs[bad].status, want);
    for (int i = 0; i < bad; i++) CHECK_STATUS(runs[i].status, SWA_OK);
    CHECK_INT(swa_step_tokens(&t->kv), 0);
    CHECK_STATUS(swa_attend(&t->kv, 0, &a), want);
    for (int phase = 0; phase < SWA_PHASES; phase++) CHECK_STATUS(swa_attend_part(&t->kv, 0, &a, phase, 0, 1), want);
    for (int i = 0; i < SEQS; i++) CHECK_INT(swa_cache_end(&t->kv, i), end[i]);
}
static swa_run rewinding(swa_run r) {
    r.rewind = 1;
    return r;
}
static swa_status go_on(toy *t, int layers);

/* Of tokens that see each other: [prefix_first or pos, prefix), within the run. */
TEST(begin_refuses_spans_outside_of_their_run) {
    static const int64_t spans[][2] = { { 0, 10 }, { 0, 14 }, { 0, -1 }, { 9, 13 }, { 13, 13 }, { -1, 13 }, { 12, 0 } },
                         good[][2] = { { 0, 13 }, { 0, 11 }, { 12, 13 }, { 10, 13 }, { 0, 0 } };
    const swa_window w = swa_window_sliding(4);
    swa_cache_desc d = toy_desc(&w, 1, 1, SEQS);
    toy t;
    REQUIRE(toy_open(&t, &d));
    for (size_t i = 0; i < sizeof spans / sizeof *spans + sizeof good / sizeof *good; i++) {
        const int bad = i < sizeof spans / sizeof *spans;
        const int64_t *span = bad ? spans[i] : good[i - sizeof spans / sizeof *spans];
        swa_run r = t_run(2, 10, 3);
        CHECK_OK(swa_cache_reset(&t.kv, 2, 10, 0));
        r.prefix_first = span[0];
        r.prefix = span[1];
        t_label("from %d to %d", (int)span[0], (int)span[1]);
        if (bad) check_refused(&t, &r, 1, SWA_ERR_ARG, 0);
        else CHECK_OK(swa_step_begin(&t.kv, &r, 1));
    }
}
TEST(begin_refuses_and_names_the_run) {
    const swa_window w[2] = { swa_window_sliding(4), swa_window_causal() };
    swa_cache_desc d = toy_desc(w, 1, 1, SEQS);
    float x[40 * TOY_DIM];
    swa_run r[3];
    toy t;
    REQUIRE(toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 1, 0, 40, text, x), SWA_OK);
    r[0] = t_run(0, 0, 2);
    r[1] = t_run(1, 41, 1);
    check_refused(&t, r, 2, SWA_ERR_ORDER, 1); /* a gap */
    r[1] = rewinding(r[1]);
    check_refused(&t, r, 2, SWA_ERR_ORDER, 1);
    r[1] = t_run(1, 39, 1);
    check_refused(&t, r, 2, SWA_ERR_ORDER, 1); /* a rewind that nobody asked for */
    r[1] = rewinding(t_run(1, 20, 1));
    check_refused(&t, r, 2, SWA_ERR_LOST, 1);
    r[1] = t_run(0, 2, 1);
    check_refused(&t, r, 2, SWA_ERR_ARG, 1); /* twice */
    CHECK(strstr(swa_step_explain(&t.kv, &r[1]), "twice") != NULL);
    r[1] = t_run(SEQS, 0, 1);
    check_refused(&t, r, 2, SWA_ERR_ARG, 1);
    r[1] = t_run(-1, 0, 1);
    check_refused(&t, r, 2, SWA_ERR_ARG, 1);
    r[1] = t_run(1, 40, -1);
    check_refused(&t, r, 2, SWA_ERR_ARG, 1);
    r[1] = t_run(1, 40, 0);
    check_refused(&t, r, 2, SWA_ERR_ARG, 1);
    r[1] = t_run(1, -1, 1);
    check_refused(&t, r, 2, SWA_ERR_ARG, 1);
    r[0] = t_run(2, INT64_MAX - 1, 1);
    check_refused(&t, r, 1, SWA_ERR_OVERFLOW, 0);
    r[0] = t_run(2, 0, 1 << 30);
    check_refused(&t, r, 1, SWA_ERR_OVERFLOW, 0); /* two heads to a KV head: 2^31 rows of queries */
    r[0] = t_run(2, 0, (1 << 30) - 1);
    r[1] = t_run(3, 0, (1 << 30) - 1);
    r[2] = t_run(0, 0, 2);
    check_refused(&t, r, 3, SWA_ERR_OVERFLOW, 2); /* more packed rows than an int32 counts */
    d.n_windows = 2;
    d.n_layers = 2;
    d.windows = w;
    d.max_context = 32;
    REQUIRE(toy_open(&t, &d));
    CHECK_OK(swa_cache_reset(&t.kv, 0, 5, 0));
    CHECK_OK(swa_cache_reset(&t.kv, 1, 5, 0));
    r[0] = t_run(0, 5, 32);
    r[1] = t_run(1, 5, 33);
    check_refused(&t, r, 2, SWA_ERR_FULL, 1);
}
/* Rows were stored first, and more of them than leave the past: each phase refuses by itself, for phase 1 has as many
   segments to write down as phase 0. */
TEST(each_phase_refuses_by_itself) {
    const swa_window w = swa_window_sliding(4);
    swa_cache_desc d = toy_desc(&w, 1, 1, 1);
    float *x = t_floats(1000 * TOY_DIM);
    swa_cache kv;
    swa_attn a;
    REQUIRE(t_cache_new(&kv, &d, 2));
    memset(x, 0, 1000 * TOY_DIM * sizeof *x);
    memset(&a, 0, sizeof a);
    a.q.p = a.k.p = a.v.p = x;
    a.out.p = t_floats(1000 * TOY_DIM);
    a.mode = SWA_STORE_ONLY;
    CHECK_OK(swa_step_one(&kv, 0, 0, 1000));
    CHECK_OK(swa_attend(&kv, 0, &a));
    a.mode = SWA_ATTEND_STORED;
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int part = 0; part < 2; part++)
            CHECK_STATUS(swa_attend_part(&kv, 0, &a, phase, part, 2), SWA_ERR_CAPACITY);
    a.mode = SWA_ATTEND_NO_STORE;
    for (int part = 0; part < 2; part++) CHECK_STATUS(swa_attend_part(&kv, 0, &a, 1, part, 2), SWA_ERR_CAPACITY);
    a.mode = SWA_ATTEND;
    CHECK_STATUS(swa_attend_part(&kv, 0, &a, 0, 0, 2), SWA_ERR_ORDER);
    CHECK_STATUS(swa_attend_part(&kv, 0, &a, 1, 0, 2), SWA_ERR_ORDER);
}
/* What a pool can do wrong between the two phases. */
enum {
    ALL_WELL,
    LEFT_OUT_0,
    LEFT_OUT_1,
    LEFT_OUT_2,
    FEWER_PARTS,
    MORE_PARTS,
    OTHER_LAYER,
    OTHER_CACHE,
    OTHER_SCRATCH,
    LESS_SCRATCH,
    OVERWRITTEN,
    BEGUN_AGAIN,
    WRONGS
};
/* Phase 0 by three parts, and what goes wrong; returns the parts of phase 1. */
static int phase_0_gone_wrong(swa_cache *kv, swa_cache *other, const swa_attn *a, unsigned char *room, size_t bytes,
                              int wrong) {
    const int layer = wrong == OTHER_LAYER;
    for (int part = 0; part < 3; part++)
        if (wrong != LEFT_OUT_0 + part) CHECK_OK(swa_attend_part(kv, layer, a, 0, part, 3));
    if (wrong == OTHER_CACHE)
        for (int part = 0; part < 3; part++) CHECK_OK(swa_attend_part(other, 0, a, 0, part, 3));
    if (wrong == OTHER_SCRATCH) CHECK_OK(swa_cache_set_scratch(kv, room + bytes, bytes));
    if (wrong == LESS_SCRATCH) CHECK_OK(swa_cache_set_scratch(kv, room, bytes / 4 * 3 + 64));
    if (wrong == OVERWRITTEN) memset(room, 0xff, bytes);
    if (wrong == BEGUN_AGAIN) CHECK_OK(swa_step_one(kv, 0, 6, 5));
    if (wrong == BEGUN_AGAIN) CHECK_OK(swa_step_one(other, 0, 6, 5)); /* both caches count the same steps */
    return wrong == FEWER_PARTS ? 2 : wrong == MORE_PARTS ? 4 : 3;
}
/* Phase 1 knows of every part of phase 0, or refuses in every part of its own: nothing is written then. */
TEST(phase_1_wants_every_part_of_phase_0) {
    const swa_window w = swa_window_sliding(300);
    swa_cache_desc d = toy_desc(&w, 1, 2, 1);
    const size_t bytes = swa_cache_scratch_bytes(&d, 4);
    unsigned char *room = (unsigned char *)t_alloc(2 * bytes);
    float *x = t_random(6 * TOY_DIM, 1.0f), *out = t_floats(6 * TOY_DIM), *was = t_floats(6 * TOY_DIM);
    swa_cache kv, other;
    swa_attn a;
    memset(room, 0, 2 * bytes);
    REQUIRE(t_cache_new(&kv, &d, 1) && t_cache_new(&other, &d, 1));
    memset(&a, 0, sizeof a);
    a.q.p = a.k.p = a.v.p = x;
    a.out.p = out;
    for (int mode = 0; mode < 4; mode += 3)
        for (int wrong = 0; wrong < WRONGS; wrong++) {
            int parts;
            t_label("mode %d, %d", mode, wrong);
            for (int i = 0; i < 2; i++) {
                swa_cache *c = i ? &other : &kv;
                CHECK_OK(swa_cache_reset(c, 0, 0, 0));
                CHECK_OK(swa_cache_set_scratch(c, room, bytes));
                CHECK_OK(swa_step_one(c, 0, 0, 6));
                a.mode = SWA_ATTEND;
                for (int layer = 0; layer < 2; layer++) CHECK_OK(swa_attend(c, layer, &a));
                CHECK_OK(swa_step_one(c, 0, 6, 5));
            }
            a.mode = (swa_mode)mode;
            parts = phase_0_gone_wrong(&kv, &other, &a, room, bytes, wrong);
            memcpy(was, out, 6 * TOY_DIM * sizeof *out);
            if (wrong == LESS_SCRATCH)
                CHECK(strstr(swa_attend_part_explain(&kv, 0, &a, 1, 0, parts), "another scratch") != NULL);
            for (int part = 0; part < parts; part++)
                CHECK_STATUS(swa_attend_part(&kv, 0, &a, 1, part, parts), wrong ? SWA_ERR_ORDER : SWA_OK);
            if (wrong) {
                CHECK_BITS(out, was, 6 * TOY_DIM);
                CHECK_STATUS(swa_cache_read(&kv, 0, 0, 6, 1, was, NULL), SWA_ERR_ORDER);
                CHECK_OK(swa_cache_set_scratch(&kv, room, bytes));
                if (wrong == OTHER_LAYER && mode != SWA_ATTEND) { /* a call that only reads is ended first */
                    CHECK_STATUS(swa_attend_part(&kv, 0, &a, 0, 0, 4), SWA_ERR_ORDER);
                    CHECK_OK(swa_attend(&kv, 1, &a));
                }
                for (int phase = 0; phase < SWA_PHASES; phase++) /* called as is right, all is well */
                    for (int part = 0; part < 4; part++) CHECK_OK(swa_attend_part(&kv, 0, &a, phase, part, 4));
            }
            if (mode == SWA_ATTEND) CHECK_OK(swa_cache_read(&kv, 0, 0, 6, 5, was, NULL));
        }
}
/* rewind is meant once: begin takes it back, so that a run which is used again with a stale pos is refused. */
TEST(a_rewind_is_meant_once) {
    const swa_window w = swa_window_sliding(8);
    swa_cache_desc d = toy_desc(&w, 1, 2, 1);
    float x[20 * TOY_DIM];
    swa_run r = t_run(0, 9, 2);
    toy t;
    d.max_rollback = 16;
    REQUIRE(toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 0, 12, text, x), SWA_OK);
    r.n = 0;
    r.rewind = 1;
    CHECK_STATUS(swa_step_begin(&t.kv, &r, 1), SWA_ERR_ARG);
    CHECK_INT(r.rewind, 1); /* what was refused was not used */
    r.n = 2;
    CHECK_INT(toy_step(&t, &r, 1, text, x), SWA_OK);
    CHECK_INT(r.rewind, 0);
    CHECK_INT(toy_step(&t, &r, 1, text, x), SWA_ERR_ORDER);
    CHECK_INT(swa_cache_end(&t.kv, 0), 11);
}
/* Between begin and the last layer's store a sequence is not whole: its new rows cannot be copied, those before can. */
TEST(copies_in_the_middle_of_a_step) {
    const swa_window w[2] = { swa_window_sliding(6), swa_window_causal() };
    swa_cache_desc d = toy_desc(w, 2, 2, 2);
    float x[20 * TOY_DIM];
    swa_cache other;
    toy t;
    d.max_context = 64;
    d.max_rollback = 16;
    REQUIRE(toy_open(&t, &d) && t_cache_new(&other, &d, 1));
    CHECK_INT(toy_run(&t, 0, 0, 10, text, x), SWA_OK);
    CHECK_STATUS(swa_step_one(&t.kv, 0, 10, 3), SWA_OK);
    for (int layer = 0; layer < 3; layer++) {
        const swa_status want = layer < 2 ? SWA_ERR_ORDER : SWA_OK;
        t_label("before layer %d", layer);
        CHECK_STATUS(swa_cache_fork(&t.kv, 1, 0, -1), want);
        CHECK_STATUS(swa_cache_fork(&t.kv, 1, 0, 11), want);
        CHECK_STATUS(swa_cache_copy(&other, 1, &t.kv, 0, -1), want);
        CHECK_OK(swa_cache_fork(&t.kv, 1, 0, 10));
        CHECK_OK(swa_cache_copy(&other, 1, &t.kv, 0, 10));
        CHECK_INT(swa_cache_end(&other, 1), 10);
        if (layer < 2) CHECK_STATUS(go_on(&t, 1 << layer), SWA_OK);
    }
}
TEST(empty_steps_and_empty_runs_are_refused) {
    const swa_window w = swa_window_sliding(4);
    swa_cache_desc d = toy_desc(&w, 1, 1, SEQS);
    float x[8 * TOY_DIM];
    swa_run r[2];
    toy t;
    REQUIRE(toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 1, 0, 8, text, x), SWA_OK);
    CHECK_STATUS(swa_step_begin(&t.kv, NULL, 0), SWA_ERR_ARG);
    CHECK_STATUS(swa_step_begin(&t.kv, r, 0), SWA_ERR_ARG);
    CHECK_STATUS(swa_step_begin(&t.kv, NULL, 1), SWA_ERR_ARG);
    CHECK_STATUS(swa_step_one(&t.kv, 1, 8, 0), SWA_ERR_ARG);
    r[0] = t_run(0, 0, 1);
    r[1] = t_run(1, 8, 0);
    check_refused(&t, r, 2, SWA_ERR_ARG, 1);
    CHECK_INT(toy_run(&t, 1, 8, 1, text, x), SWA_OK);
}
/* A sequence goes on at its end and nowhere else: 0 at first, or where reset, truncate or a rewind put it. */
TEST(a_run_begins_at_the_end) {
    const swa_window w = swa_window_sliding(4);
    swa_cache_desc d = toy_desc(&w, 1, 2, SEQS);
    float x[20 * TOY_DIM];
    swa_run r;
    toy t;
    REQUIRE(toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 7, 1, text, x), SWA_ERR_ORDER);
    CHECK_INT(toy_run(&t, 0, 0, 12, text, x), SWA_OK);
    for (int64_t pos = 0; pos < 14; pos++) {
        if (pos == 12) continue;
        r = t_run(0, pos, 1);
        t_label("at %d", (int)pos);
        check_refused(&t, &r, 1, SWA_ERR_ORDER, 0);
        CHECK_STATUS(swa_step_one(&t.kv, 0, pos, 1), SWA_ERR_ORDER);
    }
    t_label("%s", "");
    CHECK_OK(swa_cache_truncate(&t.kv, 0, 11));
    CHECK_INT(toy_run(&t, 0, 12, 1, text, x), SWA_ERR_ORDER);
    CHECK_INT(toy_run(&t, 0, 11, 1, text, x), SWA_OK);
    t.rewind = 1;
    CHECK_INT(toy_run(&t, 0, 10, 1, text, x), SWA_OK);
    CHECK_INT(swa_cache_end(&t.kv, 0), 11);
    CHECK_INT(toy_run(&t, 0, 11, 1, text, x), SWA_OK); /* meant, and not needed */
    CHECK_INT(toy_run(&t, 0, 0, 3, text, x), SWA_OK);  /* from the start: always exact */
    CHECK_INT(swa_cache_end(&t.kv, 0), 3);
    t.rewind = 0;
    CHECK_OK(swa_cache_reset(&t.kv, 0, 1000, 0));
    CHECK_INT(swa_cache_end(&t.kv, 0), 1000);
    CHECK_INT(toy_run(&t, 0, 0, 1, text, x), SWA_ERR_ORDER);
    CHECK_INT(toy_run(&t, 0, 1001, 1, text, x), SWA_ERR_ORDER);
    CHECK_INT(toy_run(&t, 0, 1000, 5, text, x), SWA_OK);
    CHECK_OK(swa_cache_truncate(&t.kv, 0, 600)); /* before the start: empty, and begins there */
    CHECK_INT(toy_run(&t, 0, 1000, 1, text, x), SWA_ERR_ORDER);
    CHECK_INT(toy_run(&t, 0, 600, 1, text, x), SWA_OK);
    CHECK_INT(swa_cache_end(&t.kv, 0), 601);
}
TEST(attending_a_step_that_was_not_begun) {
    const swa_window w = swa_window_sliding(4);
    swa_cache_desc d = toy_desc(&w, 1, 2, 2);
    float x[8 * TOY_DIM], out[8 * TOY_DIM];
    swa_run r = t_run(0, 0, 2);
    swa_attn a;
    toy t;
    REQUIRE(toy_open(&t, &d));
    memset(&a, 0, sizeof a);
    memset(x, 0, sizeof x);
    a.q.p = a.k.p = a.v.p = x;
    a.out.p = out;
    CHECK_INT(swa_step_tokens(&t.kv), 0);
    CHECK_STATUS(swa_attend(&t.kv, 0, &a), SWA_ERR_ORDER);
    CHECK_OK(swa_step_begin(&t.kv, &r, 1));
    CHECK_INT(swa_step_tokens(&t.kv), 2);
    r = t_run(1, 7, 9); /* the caller's array may go: the runs were copied */
    CHECK_OK(swa_attend(&t.kv, 0, &a));
    CHECK_STATUS(swa_attend(&t.kv, 2, &a), SWA_ERR_ORDER);
    CHECK_STATUS(swa_attend(&t.kv, -1, &a), SWA_ERR_ORDER);
    CHECK_OK(swa_cache_reset(&t.kv, 0, 0, 0)); /* taken away under it */
    CHECK_STATUS(swa_attend(&t.kv, 1, &a), SWA_ERR_ORDER);
    CHECK_OK(swa_step_one(&t.kv, 0, 0, 3));
    CHECK_INT(swa_step_tokens(&t.kv), 3);
    CHECK_OK(swa_attend(&t.kv, 0, &a));
    CHECK_OK(swa_attend(&t.kv, 1, &a));
    CHECK_INT(swa_cache_end(&t.kv, 0), 3);
}
/* Each layer stores a step once: attending again would see rows of the step that are both new and in the ring. */
TEST(a_layer_attended_twice) {
    const swa_window w = swa_window_sliding(4);
    swa_cache_desc d = toy_desc(&w, 1, 2, 1);
    float x[4 * TOY_DIM], out[4 * TOY_DIM], first[4 * TOY_DIM];
    swa_attn a;
    toy t;
    REQUIRE(toy_open(&t, &d));
    t_fill(x, 4 * TOY_DIM, 1.0f);
    memset(&a, 0, sizeof a);
    a.q.p = a.k.p = a.v.p = x;
    a.out.p = first;
    CHECK_OK(swa_step_one(&t.kv, 0, 0, 4));
    CHECK_OK(swa_attend(&t.kv, 0, &a));
    memset(out, 0, sizeof out);
    a.out.p = out;
    CHECK_STATUS(swa_attend(&t.kv, 0, &a), SWA_ERR_ORDER);
    CHECK_STATUS(swa_attend_part(&t.kv, 0, &a, 0, 0, 1), SWA_ERR_ORDER);
    for (int i = 0; i < 4 * TOY_DIM; i++) CHECK(out[i] == 0.0f);
    a.mode = SWA_ATTEND_STORED; /* this is how it is said */
    CHECK_OK(swa_attend(&t.kv, 0, &a));
    CHECK_BITS(out, first, 4 * TOY_DIM);
    a.mode = SWA_ATTEND;
    CHECK_STATUS(swa_step_one(&t.kv, 0, 4, 1), SWA_ERR_ORDER); /* layer 1 lacks its rows */
    CHECK_STATUS(swa_attend(&t.kv, 1, &a), SWA_ERR_ORDER);     /* and the step that was refused hides the one before */
    CHECK_OK(swa_step_one(&t.kv, 0, 0, 4));                    /* which is begun again at its own position */
    CHECK_OK(swa_attend(&t.kv, 0, &a));
    CHECK_OK(swa_attend(&t.kv, 1, &a));
    CHECK_OK(swa_step_one(&t.kv, 0, 4, 1));
}

/* ---- dying ---- */

/* A step of n tokens at the end of 30 dies after one call, and is begun again, whole or in another cut. Once the last
   layer has stored, by all its parts, it did not die halfway: going back is then a rewind like any other. */
static void die_and_retry(toy *t, const float *cold, int put_first, int layer, int phase, int part, int32_t n,
                          int32_t again) {
    float x[ROWS * TOY_DIM];
    int64_t pos = 30, room = 16 - 6; /* rows that can be taken back: capacity-(W-1) */
    int whole = layer == t->desc.n_layers - 1 && phase == 1 && part == t->parts - 1, got;
    t->put_first = 0;
    CHECK_OK(swa_cache_reset(&t->kv, 0, 0, 0));
    CHECK_INT(toy_run(t, 0, 0, 30, text, x), SWA_OK);
    t->put_first = put_first;
    t->die_layer = layer;
    t->die_phase = phase;
    t->die_part = part;
    CHECK_INT(toy_run(t, 0, pos, n, text, x), TOY_DEAD);
    t->die_layer = -1;
    if (whole) CHECK_INT(toy_run(t, 0, pos, again, text, x), SWA_ERR_ORDER);
    else CHECK_INT(toy_run(t, 0, pos + n, again, text, x), SWA_ERR_ORDER);
    for (int i = 0; i < 2; i++, pos += again) {
        t->rewind = whole && i == 0;
        got = toy_run(t, 0, pos, again, text, x);
        t->rewind = 0;
        if (i == 0) CHECK_INT(got, n <= room ? SWA_OK : SWA_ERR_LOST);
        if (got != SWA_OK) return; /* refused: nothing was computed */
        CHECK_BITS(x, cold + pos * TOY_DIM, again * TOY_DIM);
    }
}
TEST(a_step_that_dies_is_begun_again) {
    const swa_window w[2] = { swa_window_sliding(7), swa_window_sinks(5, 2) };
    swa_cache_desc d = toy_desc(w, 2, 4, 1);
    float *cold, *big = t_floats(64 * TOY_DIM);
    toy t;
    cold = toy_cold(&d, 0, 0, 64, text);
    REQUIRE(cold && toy_open_parts(&t, &d, 3));
    CHECK_INT(toy_run(&t, 0, 0, 30, text, big), SWA_OK);
    for (int parts = 1; parts <= 3; parts++)
        for (int put_first = 0; put_first < 2; put_first++)
            for (int layer = 0; layer < 4; layer++)
                for (int phase = 0; phase < SWA_PHASES; phase++)
                    for (int part = 0; part < parts; part++)
                        for (int32_t n = 1; n <= 12; n++) {
                            t.parts = parts;
                            t_label("parts %d put first %d dies after layer %d phase %d part %d, n %d", parts,
                                    put_first, layer, phase, part, (int)n);
                            die_and_retry(&t, cold, put_first && n <= 10, layer, phase, part, n, n % 3 + 1);
                        }
}
/* A part of phase 1 that comes late, behind all others, and one that is given another attn at first. */
TEST(a_part_of_phase_1_that_comes_late) {
    const swa_window w[1] = { swa_window_sliding(7) };
    swa_cache_desc d = toy_desc(w, 1, 1, 1);
    enum { N = 30, ROW = TOY_DIM };
    float *x = t_random(4 * N * ROW, 1.0f), *want = t_floats(N * ROW), *out = t_floats(N * ROW);
    for (int parts = 2; parts <= 4; parts++)
        for (int part = 0; part < parts; part++) {
            swa_cache c;
            swa_attn a, other;
            memset(&a, 0, sizeof a);
            a.q.p = x;
            a.k.p = x + N * ROW;
            a.v.p = x + 2 * N * ROW;
            for (int k = 0; k < 2; k++) {
                REQUIRE(t_cache_new(&c, &d, parts));
                a.out.p = k ? out : want;
                other = a;
                other.scale = 0.5f;
                for (int step = 0; step < 2; step++) {
                    t_label("part %d of %d, step %d", part, parts, step);
                    CHECK_OK(swa_step_one(&c, 0, step * N, N));
                    for (int phase = 0; phase < SWA_PHASES; phase++)
                        for (int p = 0; p < parts; p++)
                            if (!k || phase == 0 || p != part) CHECK_OK(swa_attend_part(&c, 0, &a, phase, p, parts));
                    if (!k) continue;
                    CHECK_STATUS(swa_attend_part(&c, 0, &other, 1, part, parts), SWA_ERR_ORDER);
                    CHECK_OK(swa_attend_part(&c, 0, &a, 1, part, parts));
                    CHECK_INT(swa_cache_unstored(&c, 0), -1);
                }
            }
            CHECK_BITS(out, want, N * ROW);
        }
}
/* A part of phase 1 is left out, once: its next phase 0 says so, or if there is none the next step; begun again,
   all is as it should be. Fewer parts than before, or none, leave nothing behind. */
TEST(a_part_that_leaves_out_phase_1) {
    enum { N = 12, KV = 3, DIM = 8, LAYERS = 2 };
    const swa_window w = swa_window_sliding(9);
    swa_cache_desc d;
    float *x = t_random(4 * N * KV * DIM, 1.0f), *out[2] = { t_floats(N * KV * DIM), t_floats(N * KV * DIM) };
    memset(&d, 0, sizeof d);
    d.shape.n_heads = d.shape.n_kv_heads = KV;
    d.shape.head_dim = DIM;
    d.n_layers = LAYERS;
    d.windows = &w;
    d.n_windows = 1;
    for (int parts = 2; parts <= 5; parts++)
        for (int layer = 0; layer < LAYERS; layer++)
            for (int part = 0; part < parts; part++) {
                swa_cache c;
                swa_attn a;
                REQUIRE(t_cache_new(&c, &d, 5));
                t_label("part %d of %d, layer %d", part, parts, layer);
                memset(&a, 0, sizeof a);
                a.q.p = x;
                a.k.p = x + N * KV * DIM;
                a.v.p = x + 2 * N * KV * DIM;
                a.out.p = out[0];
                CHECK_OK(swa_step_one(&c, 0, 0, N));
                for (int l = 0; l <= layer; l++)
                    for (int phase = 0; phase < SWA_PHASES; phase++)
                        for (int p = 0; p < parts; p++)
                            if (l != layer || phase == 0 || p != part)
                                CHECK_OK(swa_attend_part(&c, l, &a, phase, p, parts));
                /* others have stored: the ring is not what it was before */
                for (int k = 1; k <= parts; k++)
                    for (int p = 0; p < k; p++) CHECK_STATUS(swa_attend_part(&c, layer, &a, 0, p, k), SWA_ERR_ORDER);
                CHECK_STATUS(swa_attend(&c, layer, &a), SWA_ERR_ORDER);
                CHECK(swa_attend_explain(&c, layer, &a) != NULL);
                if (layer == 0 && part > 0) {
                    CHECK(swa_attend_part_explain(&c, 1, &a, 0, part, parts) != NULL);
                    CHECK_STATUS(swa_attend_part(&c, 1, &a, 0, part, parts), SWA_ERR_ORDER);
                }
                CHECK_STATUS(swa_step_one(&c, 0, N, 1), SWA_ERR_ORDER);
                CHECK_INT(swa_cache_unstored(&c, 0), layer);
                CHECK_OK(swa_step_one(&c, 0, 0, N));
                for (int p = 0; p < parts; p++) CHECK_OK(swa_attend_part(&c, 0, &a, 0, p, parts));
                for (int phase = 0; phase < SWA_PHASES; phase++) /* again, with fewer of them */
                    for (int p = 0; p < parts - 1; p++) CHECK_OK(swa_attend_part(&c, 0, &a, phase, p, parts - 1));
                for (int p = 0; p < parts; p++) CHECK_OK(swa_attend_part(&c, 1, &a, 0, p, parts));
                CHECK_OK(swa_attend(&c, 1, &a)); /* and whole */
                CHECK_OK(swa_step_one(&c, 0, N, 1));
                for (int l = 0; l < LAYERS; l++) CHECK_OK(swa_attend(&c, l, &a));
                if (parts == 2 && layer == 0 && part == 0) memcpy(out[1], out[0], KV * DIM * sizeof(float));
                CHECK_BITS(out[0], out[1], KV * DIM);
            }
}
/* Two layers of one head, and a call on them. */
static int two_layers(swa_cache *c, swa_attn *a, const swa_window *w, int parts) {
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    d.shape.n_heads = d.shape.n_kv_heads = 1;
    d.shape.head_dim = 8;
    d.n_layers = 2;
    d.windows = w;
    d.n_windows = 1;
    memset(a, 0, sizeof *a);
    a->q.p = a->k.p = a->v.p = t_random(3 * 8, 1.0f);
    a->out.p = t_floats(3 * 8);
    return t_cache_new(c, &d, parts);
}
/* ... whoever calls other layers in between, with fewer parts or (0) none. */
TEST(a_part_left_out_is_not_forgotten) {
    const swa_window w = swa_window_sliding(9);
    for (int parts = 0; parts <= 2; parts++) {
        swa_cache c;
        swa_attn a;
        REQUIRE(two_layers(&c, &a, &w, 3));
        t_label("the other layer by %d", parts);
        CHECK_OK(swa_step_one(&c, 0, 0, 3));
        for (int p = 0; p < 3; p++) CHECK_OK(swa_attend_part(&c, 0, &a, 0, p, 3));
        for (int p = 0; p < 2; p++) CHECK_OK(swa_attend_part(&c, 0, &a, 1, p, 3));
        for (int phase = 0; phase < SWA_PHASES; phase++)
            for (int p = 0; p < parts; p++) CHECK_OK(swa_attend_part(&c, 1, &a, phase, p, parts));
        if (parts == 0) CHECK_OK(swa_attend(&c, 1, &a));
        for (int mode = SWA_ATTEND_STORED; mode <= SWA_ATTEND_NO_STORE; mode++) { /* rows that nobody wrote */
            swa_attn b = a;
            b.mode = (swa_mode)mode;
            CHECK_STATUS(swa_attend(&c, 0, &b), SWA_ERR_ORDER);
            CHECK_STATUS(swa_attend_part(&c, 0, &b, 0, 0, 2), SWA_ERR_ORDER);
        }
        /* late, when the other layer has had the scratch, it is refused, and has not been there for that */
        CHECK_STATUS(swa_attend_part(&c, 0, &a, 1, 2, 3), SWA_ERR_ORDER);
        CHECK_STATUS(swa_step_one(&c, 0, 3, 1), SWA_ERR_ORDER);
        CHECK_INT(swa_cache_unstored(&c, 0), 0);
    }
}
/* A call that only reads: the part that left its phase 1 out is told at its next layer, until it has ended that call,
   with as many parts or fewer, or whole; the rows count as stored all the same. */
TEST(a_part_that_only_reads_leaves_out_phase_1) {
    const swa_window w = swa_window_sliding(9);
    for (int how = 0; how < 4; how++)
        for (int part = 0; part < 3; part++) {
            swa_cache c;
            swa_attn a, reads;
            REQUIRE(two_layers(&c, &a, &w, 3));
            t_label("part %d, then way %d", part, how);
            reads = a;
            reads.mode = SWA_ATTEND_STORED;
            CHECK_OK(swa_step_one(&c, 0, 0, 3));
            CHECK_OK(swa_attend(&c, 0, &a));
            for (int p = 0; p < 3; p++) CHECK_OK(swa_attend_part(&c, 0, &reads, 0, p, 3));
            for (int p = 0; p < 3; p++)
                if (p != part) CHECK_OK(swa_attend_part(&c, 0, &reads, 1, p, 3));
            CHECK_INT(swa_cache_unstored(&c, 0), 1);
            for (int p = 0; p < 3; p++) {
                const char *why = swa_attend_part_explain(&c, 1, &a, 0, p, 3);
                CHECK((why != NULL) == (p == part) && (why == NULL || strstr(why, "of another layer") != NULL));
                CHECK_STATUS(swa_attend_part(&c, 1, &a, 0, p, 3), p == part ? SWA_ERR_ORDER : SWA_OK);
            }
            if (how == 0) CHECK_OK(swa_attend(&c, 0, &reads));
            if (how == 1) CHECK_OK(swa_step_one(&c, 0, 0, 3));
            for (int phase = 0; phase < SWA_PHASES && how == 2; phase++)
                for (int p = 0; p < 3; p++) CHECK_OK(swa_attend_part(&c, 0, &reads, phase, p, 3));
            for (int phase = 0; phase < SWA_PHASES && how == 3; phase++) /* part 2 is needed no more */
                for (int p = 0; p < 2; p++) CHECK_OK(swa_attend_part(&c, 0, &reads, phase, p, 2));
            for (int phase = 0; phase < SWA_PHASES; phase++)
                for (int p = 0; p < 3; p++) CHECK_OK(swa_attend_part(&c, 1, &a, phase, p, 3));
            if (how == 1) CHECK_OK(swa_attend(&c, 0, &a));
            CHECK_OK(swa_step_one(&c, 0, 3, 1));
        }
}
/* Part 0, which says that rows are stored: what the others have written over is told, whoever is called before it is
   asked for; and the part may still come. */
TEST(part_0_left_out_of_phase_1) {
    const swa_window w = swa_window_sliding(9);
    for (int how = 0; how < 4; how++) {
        swa_cache c;
        swa_attn a, b;
        REQUIRE(two_layers(&c, &a, &w, 2));
        t_label("way %d", how);
        CHECK_OK(swa_step_one(&c, 0, 0, 3));
        for (int p = 0; p < 2; p++) CHECK_OK(swa_attend_part(&c, 0, &a, 0, p, 2));
        CHECK_OK(swa_attend_part(&c, 0, &a, 1, 1, 2));
        for (int p = 0; p < 2; p++)
            if (how == 1) CHECK_STATUS(swa_attend_part(&c, 1, &a, 0, p, 2), SWA_ERR_ORDER);
        if (how == 2) CHECK_STATUS(swa_attend(&c, 1, &a), SWA_ERR_ORDER);
        b = a;
        b.mode = SWA_ATTEND_NO_STORE;
        CHECK_STATUS(swa_attend(&c, 0, &b), SWA_ERR_ORDER);
        if (how == 3) { /* a new try ends the call */
            CHECK_STATUS(swa_attend(&c, 0, &a), SWA_ERR_ORDER);
            CHECK_STATUS(swa_attend_part(&c, 0, &a, 1, 0, 2), SWA_ERR_ORDER);
            CHECK_OK(swa_step_one(&c, 0, 0, 3));
            CHECK_OK(swa_attend(&c, 0, &a));
        } else CHECK_OK(swa_attend_part(&c, 0, &a, 1, 0, 2));
        CHECK_OK(swa_attend(&c, 1, &a));
        CHECK_OK(swa_step_one(&c, 0, 3, 1));
    }
}
/* A call of another layer between two phases has the scratch; a phase is done once by each part. */
TEST(phases_of_one_call_go_together) {
    const swa_window w = swa_window_sliding(9);
    swa_cache c;
    swa_attn a;
    REQUIRE(two_layers(&c, &a, &w, 2));
    CHECK_OK(swa_step_one(&c, 0, 0, 3));
    for (int p = 0; p < 2; p++) CHECK_OK(swa_attend_part(&c, 0, &a, 0, p, 2));
    CHECK_OK(swa_attend(&c, 1, &a));
    CHECK_STATUS(swa_attend_part(&c, 0, &a, 1, 0, 2), SWA_ERR_ORDER);
    CHECK_STATUS(swa_attend_part(&c, 0, &a, 1, 1, 2), SWA_ERR_ORDER);
    CHECK_OK(swa_step_one(&c, 0, 0, 3));
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int p = 0; p < 2; p++) CHECK_OK(swa_attend_part(&c, 0, &a, phase, p, 2));
    CHECK_STATUS(swa_attend_part(&c, 0, &a, 1, 1, 2), SWA_ERR_ORDER);
}
/* ... also where the other call comes between two parts of phase 0, of which part 0 is the last. */
TEST(a_call_within_phase_0) {
    const swa_window w = swa_window_sliding(9);
    for (int how = 0; how < 4; how++) {
        swa_cache c;
        swa_attn a;
        REQUIRE(two_layers(&c, &a, &w, 3));
        t_label("way %d", how);
        CHECK_OK(swa_step_one(&c, 0, 0, 3));
        if (how != 3) CHECK_OK(swa_attend_part(&c, 0, &a, 0, 1, 3));
        if (how == 0) CHECK_OK(swa_attend(&c, 1, &a));
        if (how == 1) CHECK_OK(swa_attend_part(&c, 1, &a, 0, 0, 1)); /* and never ends */
        if (how == 2) CHECK_OK(swa_attend_part(&c, 1, &a, 0, 1, 3));
        if (how == 3) CHECK_OK(swa_attend(&c, 1, &a)); /* before it all is as it should be */
        if (how == 3) CHECK_OK(swa_attend_part(&c, 0, &a, 0, 1, 3));
        CHECK_OK(swa_attend_part(&c, 0, &a, 0, 2, 3));
        CHECK_OK(swa_attend_part(&c, 0, &a, 0, 0, 3));
        for (int p = 0; p < 3; p++) {
            CHECK((swa_attend_part_explain(&c, 0, &a, 1, p, 3) == NULL) == (how == 3));
            CHECK_STATUS(swa_attend_part(&c, 0, &a, 1, p, 3), how == 3 ? SWA_OK : SWA_ERR_ORDER);
        }
        if (how == 3) continue;
        for (int phase = 0; phase < SWA_PHASES; phase++) /* once more */
            for (int p = 0; p < 3; p++) CHECK_OK(swa_attend_part(&c, 0, &a, phase, p, 3));
    }
}
/* Why a part of phase 1 may not come, in words. */
TEST(a_refused_part_is_told_why) {
    const swa_window w = swa_window_sliding(9);
    static const char *const says[6] = { "left out",     "in between", "number of parts",
                                         "another attn", "is done",    "in between" };
    for (int how = 0; how < 6; how++) {
        const char *why;
        swa_cache c;
        swa_attn a;
        REQUIRE(two_layers(&c, &a, &w, 3));
        t_label("way %d", how);
        CHECK_OK(swa_step_one(&c, 0, 0, 3));
        for (int p = 0; p < 2; p++)
            if (p == 0 || how != 0) CHECK_OK(swa_attend_part(&c, 0, &a, 0, p, 2));
        if (how == 1) CHECK_OK(swa_attend(&c, 1, &a));
        if (how == 3) a.scale = 0.5f;
        if (how == 4) CHECK_OK(swa_attend_part(&c, 0, &a, 1, 0, 2));
        if (how == 5) CHECK_OK(swa_attend_part(&c, 1, &a, 0, 1, 3)); /* lies where no part's word is */
        why = swa_attend_part_explain(&c, 0, &a, 1, 0, how == 2 ? 1 : 2);
        if (CHECK(why != NULL)) CHECK(strstr(why, says[how]) != NULL);
        CHECK_STATUS(swa_attend_part(&c, 0, &a, 1, 0, how == 2 ? 1 : 2), SWA_ERR_ORDER);
    }
}
/* What changes a sequence of the step, also between two phases, ends it for all: no phase stores, no layer attends, and
   the sequences that were not changed are begun again. A change of another sequence ends nothing. */
static swa_status change(swa_cache *c, int how, int seq) {
    unsigned char *blob;
    size_t n = swa_cache_save_bytes(c, 2);
    swa_status status;
    if (how == 0) return swa_cache_reset(c, seq, 0, 0);
    if (how == 1) return swa_cache_truncate(c, seq, 0);
    if (how == 2) return swa_cache_fork(c, seq, 2, -1); /* of the end that the step gave it, as it happens */
    if (how == 3) return swa_cache_copy(c, seq, c, 2, -1);
    blob = (unsigned char *)malloc(n);
    status = blob == NULL || swa_cache_save(c, 2, blob, n) != SWA_OK ? SWA_ERR_MEMORY : swa_cache_load(c, seq, blob, n);
    free(blob);
    return status;
}
TEST(a_change_ends_the_step) {
    const swa_window w = swa_window_sliding(9);
    float x[3 * TOY_DIM], out[3 * TOY_DIM];
    for (int how = 0; how < 5; how++)
        for (int phase = 0; phase <= SWA_PHASES; phase++) {
            swa_cache_desc d = toy_desc(&w, 1, 2, 4);
            swa_run runs[2];
            swa_attn a;
            toy t;
            t_label("change %d before phase %d", how, phase);
            REQUIRE(toy_open(&t, &d));
            memset(&a, 0, sizeof a);
            for (int i = 0; i < 3 * TOY_DIM; i++) x[i] = (float)i / 64;
            a.q.p = a.k.p = a.v.p = x;
            a.out.p = out;
            CHECK_OK(swa_step_one(&t.kv, 2, 0, 2));
            CHECK_OK(swa_attend(&t.kv, 0, &a));
            CHECK_OK(swa_attend(&t.kv, 1, &a));
            runs[0] = t_run(0, 0, 2);
            runs[1] = t_run(1, 0, 1);
            CHECK_OK(swa_step_begin(&t.kv, runs, 2));
            CHECK_INT(swa_step_tokens(&t.kv), 3);
            CHECK_OK(swa_cache_fork(&t.kv, 3, 2, -1));
            for (int p = 0; p < phase; p++) CHECK_OK(swa_attend_part(&t.kv, 0, &a, p, 0, 1));
            CHECK_OK(change(&t.kv, how, 0));
            CHECK_INT(swa_step_tokens(&t.kv), 0);
            CHECK_STATUS(swa_attend_part(&t.kv, 0, &a, phase % SWA_PHASES, 0, 1), SWA_ERR_ORDER);
            CHECK_STATUS(swa_attend(&t.kv, 1, &a), SWA_ERR_ORDER);
            CHECK_INT(swa_cache_end(&t.kv, 0), how < 2 ? 0 : 2);
            CHECK_OK(swa_step_one(&t.kv, 1, 0, 1));
            CHECK_OK(swa_attend(&t.kv, 0, &a));
            CHECK_OK(swa_attend(&t.kv, 1, &a));
            CHECK_OK(swa_step_one(&t.kv, 0, swa_cache_end(&t.kv, 0), 1));
        }
}
/* Layers that were called by parts have been called, whatever comes next: another sequence's step is no batch in
   pieces. */
TEST(a_step_by_parts_and_another_sequence) {
    const swa_window win[2] = { swa_window_sliding(5), swa_window_sliding(9) };
    const swa_cache_desc d = toy_desc(win, 2, 2, 2);
    float x[4 * TOY_DIM];
    toy t;
    REQUIRE(toy_open_parts(&t, &d, 3));
    for (int parts = 0; parts < 4; parts++) {
        t_label("%d parts", parts);
        t.parts = parts;
        for (int seq = 0; seq < 2; seq++) CHECK_INT(toy_run(&t, seq, 4 * parts, 4, text, x), SWA_OK);
    }
}
/* A batch is begun by one call. Begun sequence by sequence, with no layer called in between, it is refused: the rows of
   all would be taken for the last one's. Sequences begun again, taken back, or called in a layer are all right. */
TEST(a_batch_begun_in_pieces) {
    const swa_window w = swa_window_sliding(9);
    swa_cache_desc d = toy_desc(&w, 1, 2, 3);
    swa_run runs[2];
    toy t;
    REQUIRE(toy_open(&t, &d));
    CHECK_OK(swa_step_one(&t.kv, 0, 0, 1));
    runs[0] = t_run(1, 0, 1); /* told before it is tried, as well */
    REQUIRE(swa_step_explain(&t.kv, runs) != NULL);
    CHECK(strstr(swa_step_explain(&t.kv, runs), "one call") != NULL);
    CHECK_STATUS(swa_step_one(&t.kv, 1, 0, 1), SWA_ERR_ORDER);
    CHECK_INT(swa_cache_end(&t.kv, 1), 0);
    CHECK_STATUS(go_on(&t, 3), SWA_ERR_ORDER);
    runs[0] = t_run(1, 0, 1);
    REQUIRE(swa_step_explain(&t.kv, runs) != NULL);
    CHECK(strstr(swa_step_explain(&t.kv, runs), "one call") != NULL);
    runs[0].seq = 9; /* what is wrong with the run itself goes first */
    CHECK(strstr(swa_step_explain(&t.kv, runs), "seq") != NULL);
    CHECK_OK(swa_step_one(&t.kv, 0, 0, 1)); /* again, alone */
    for (int i = 0; i < 2; i++) {           /* a call that is refused is none */
        float *x = t_random(2 * TOY_DIM, 1.0f);
        swa_attn a;
        memset(&a, 0, sizeof a);
        a.q.p = a.k.p = a.v.p = x;
        a.out.p = t_floats(TOY_DIM);
        if (i == 0) a.out.p = (float *)t.kv.mem_ + 64;
        if (i == 1) CHECK_OK(swa_cache_set_scratch(&t.kv, NULL, 0));
        CHECK_STATUS(swa_attend(&t.kv, 0, &a), i == 0 ? SWA_ERR_ARG : SWA_ERR_MEMORY);
        CHECK_STATUS(swa_step_one(&t.kv, 1, 0, 1), SWA_ERR_ORDER);
        CHECK_OK(swa_step_one(&t.kv, 0, 0, 1));
    }
    REQUIRE(toy_open(&t, &d));
    runs[0] = t_run(0, 0, 1);
    runs[1] = t_run(1, 0, 1);
    CHECK_OK(swa_step_one(&t.kv, 0, 0, 1));
    CHECK_OK(swa_step_begin(&t.kv, runs, 2));
    runs[0] = t_run(2, 0, 1);
    CHECK_STATUS(swa_step_begin(&t.kv, runs, 1), SWA_ERR_ORDER);
    CHECK_STATUS(runs[0].status, SWA_ERR_ORDER);
    CHECK_OK(swa_step_begin(&t.kv, runs, 1)); /* no step is on */
    CHECK_OK(swa_cache_truncate(&t.kv, 2, 0));
    CHECK_OK(swa_step_one(&t.kv, 0, 0, 1));
    CHECK_OK(go_on(&t, 1));
    CHECK_OK(swa_step_one(&t.kv, 1, 0, 1)); /* others go on beside a step that died halfway */
    CHECK_OK(go_on(&t, 3));
}
/* Calls by parts that were dropped: what is unwritten counts as that at once, for all that would read it; what was
   written, or is written by another call, does not; and a sequence that takes the place of one forgets it. */
TEST(parts_that_were_dropped) {
    const swa_window w = swa_window_sliding(9);
    float k[3 * 8];
    unsigned char *blob = (unsigned char *)t_alloc(4096);
    for (int how = 0; how < 4; how++) {
        swa_cache_desc d = toy_desc(&w, 1, 2, 2);
        swa_cache c;
        swa_attn a;
        d.shape.n_heads = d.shape.n_kv_heads = 2;
        REQUIRE(t_cache_new(&c, &d, 2));
        memset(&a, 0, sizeof a);
        a.q.p = a.k.p = a.v.p = t_random(3 * 8, 1.0f);
        a.out.p = t_floats(3 * 8);
        t_label("dropped %d", how);
        CHECK_OK(swa_step_one(&c, 1, 0, 3));
        for (int l = 0; l < 2; l++) CHECK_OK(swa_attend(&c, l, &a));
        CHECK_OK(swa_step_one(&c, 0, 0, 3));
        CHECK_OK(swa_attend(&c, 1, &a));
        if (how == 0) { /* a part of phase 1 */
            for (int p = 0; p < 2; p++) CHECK_OK(swa_attend_part(&c, 0, &a, 0, p, 2));
            CHECK_OK(swa_attend_part(&c, 0, &a, 1, 0, 2));
            CHECK_INT(swa_cache_unstored(&c, 0), 0);
            CHECK_INT(swa_cache_unstored(&c, 1), -1);
            CHECK_STATUS(swa_cache_read(&c, 0, 0, 0, 1, k, NULL), SWA_ERR_ORDER);
            CHECK_OK(swa_cache_read(&c, 0, 1, 0, 3, k, NULL));
            CHECK_STATUS(swa_cache_fork(&c, 1, 0, -1), SWA_ERR_ORDER);
            CHECK_STATUS(swa_cache_save(&c, 0, blob, 4096), SWA_ERR_ORDER);
            CHECK_STATUS(swa_step_one(&c, 0, 3, 1), SWA_ERR_ORDER);
            continue;
        }
        if (how == 1) { /* all of phase 1, and another sequence in its place */
            for (int p = 0; p < 2; p++) CHECK_OK(swa_attend_part(&c, 0, &a, 0, p, 2));
            CHECK_OK(swa_cache_fork(&c, 0, 1, -1));
        }
        if (how == 2) { /* part 0 of phase 0; then the layer is called whole */
            CHECK_OK(swa_attend_part(&c, 0, &a, 0, 1, 2));
            CHECK_OK(swa_attend(&c, 0, &a));
        }
        if (how == 3) { /* a call that stores nothing */
            CHECK_OK(swa_attend(&c, 0, &a));
            a.mode = SWA_ATTEND_STORED;
            for (int p = 0; p < 2; p++) CHECK_OK(swa_attend_part(&c, 0, &a, 0, p, 2));
            a.mode = SWA_ATTEND;
        }
        CHECK_INT(swa_cache_unstored(&c, 0), -1);
        CHECK_OK(swa_step_one(&c, 0, 3, 1));
        for (int l = 1; l >= 0; l--)
            for (int phase = 0; phase < SWA_PHASES; phase++)
                for (int p = 0; p < 2; p++) CHECK_OK(swa_attend_part(&c, l, &a, phase, p, 2));
        CHECK_OK(swa_step_one(&c, 0, 4, 1));
    }
}
/* [n][k | v] with both strides forgotten, or [n][v | k]: V's first token would be K's second. V within K's rows, rows
   with their strides, and one token are all right; so is a run's rewind of 0 and 1 alone. */
TEST(keys_and_values_side_by_side) {
    enum { N = 4, KV = 2, DIM = 8, ROW = KV * DIM };
    const swa_window w = swa_window_sliding(9);
    float *x = t_random(N * ROW * 2, 1.0f), *out = t_floats(N * ROW);
    swa_cache_desc d = toy_desc(&w, 1, 1, 1);
    swa_cache c;
    swa_attn a;
    swa_run run;
    d.shape.n_heads = d.shape.n_kv_heads = KV;
    d.shape.head_dim = DIM;
    d.max_rollback = N;
    REQUIRE(t_cache_new(&c, &d, 1));
    memset(&a, 0, sizeof a);
    a.mode = SWA_ATTEND_NO_STORE;
    a.q.p = x;
    a.out.p = out;
    CHECK_OK(swa_step_one(&c, 0, 0, N));
    a.k.p = x;
    a.v.p = x + ROW;
    a.q.p = t_random(N * ROW, 1.0f);
    CHECK_STATUS(swa_attend(&c, 0, &a), SWA_ERR_ARG);
    a.k.p = x + ROW;
    a.v.p = x;
    CHECK_STATUS(swa_attend(&c, 0, &a), SWA_ERR_ARG);
    a.k.token = a.v.token = 2 * ROW;
    CHECK_OK(swa_attend(&c, 0, &a));
    a.k.token = a.v.token = 0;
    a.mode = SWA_ATTEND;
    a.k.p = x;
    a.v.p = x + 2 * ROW;
    CHECK_STATUS(swa_attend(&c, 0, &a), SWA_ERR_ARG);
    a.v.p = x + N * ROW;
    CHECK_OK(swa_attend(&c, 0, &a));
    a.v.p = x + ROW;
    CHECK_OK(swa_step_one(&c, 0, N, 1));
    CHECK_OK(swa_attend(&c, 0, &a));
    memset(&run, 0, sizeof run);
    run.n = run.rewind = 1;
    run.pos = N;
    for (run.rewind = -1; run.rewind < 3; run.rewind++)
        if (run.rewind < 0 || run.rewind > 1) CHECK_STATUS(swa_step_begin(&c, &run, 1), SWA_ERR_ARG);
    run.rewind = 1;
    CHECK_OK(swa_step_begin(&c, &run, 1));
}
/* A fused [n][q | q_sink] of which a stride was forgotten, or both; q_sink may be q. */
TEST(queries_of_sinks_side_by_side) {
    enum { N = 4, HEADS = 2, DIM = 8, ROW = HEADS * DIM };
    const swa_window w = swa_window_sinks(9, 2);
    float *x = t_random(N * ROW * 2, 1.0f), *out = t_floats(N * ROW);
    swa_cache_desc d = toy_desc(&w, 1, 1, 1);
    swa_cache c;
    swa_attn a;
    d.shape.n_heads = d.shape.n_kv_heads = HEADS;
    d.shape.head_dim = DIM;
    REQUIRE(t_cache_new(&c, &d, 1));
    memset(&a, 0, sizeof a);
    a.mode = SWA_ATTEND_NO_STORE;
    a.k.p = a.v.p = t_random(N * ROW, 1.0f);
    a.out.p = out;
    a.q.p = x;
    a.q_sink.p = x + ROW;
    CHECK_OK(swa_step_one(&c, 0, 0, N));
    for (int given = 0; given < 4; given++) {
        a.q.token = given & 1 ? 2 * ROW : 0;
        a.q_sink.token = given & 2 ? 2 * ROW : 0;
        t_label("strides given: %d", given);
        CHECK_STATUS(swa_attend(&c, 0, &a), given == 3 ? SWA_OK : SWA_ERR_ARG);
    }
    a.q_sink.p = x;
    CHECK_OK(swa_attend(&c, 0, &a));
}
/* Every layer in the mask `layers` attends to the step that is on, whose rows are made up, and stores them; the first
   status that is not OK. */
static swa_status go_on(toy *t, int layers) {
    int32_t n = swa_step_tokens(&t->kv);
    float *x = t_random((n + 1) * TOY_DIM, 1.0f), *out = t_floats((n + 1) * TOY_DIM);
    swa_status status = SWA_OK;
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.q.p = t_random((n + 1) * TOY_DIM, 1.0f);
    a.k.p = x;
    a.v.p = t_random((n + 1) * TOY_DIM, 1.0f);
    a.out.p = out;
    for (int layer = 0; layer < t->desc.n_layers && status == SWA_OK; layer++) {
        swa_attn of = a;
        t_say_sinks(&of, t->desc.audit, &t->desc.windows[layer % t->desc.n_windows]);
        if (layers >> layer & 1) status = swa_attend(&t->kv, layer, &of);
    }
    return status;
}
static swa_status some_layers(toy *t, int layers, int seq, int64_t pos, int32_t n) {
    swa_status status = swa_step_one(&t->kv, seq, pos, n);
    return status == SWA_OK ? go_on(t, layers) : status;
}
/* Rows that a layer never got are refused wherever they would be read, and the next step is; doing the step's other
   layers, beginning it again or taking it back heals it. */
TEST(a_layer_that_a_step_left_out) {
    const swa_window w[2] = { swa_window_sliding(7), swa_window_causal() };
    swa_cache_desc d = toy_desc(w, 2, 3, 2);
    float x[20 * TOY_DIM], *cold, *k = t_floats(20 * TOY_HEAD_DIM);
    unsigned char *blob;
    swa_kv spans[3];
    size_t bytes;
    swa_run r;
    toy t;
    d.max_context = 64;
    d.max_rollback = 16;
    cold = toy_cold(&d, 0, 0, 40, text);
    REQUIRE(cold && toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 0, 10, text, x), SWA_OK);
    CHECK_INT(swa_cache_unstored(&t.kv, 0), -1);
    CHECK_STATUS(some_layers(&t, 5, 0, 10, 3), SWA_OK);
    CHECK_INT(swa_cache_end(&t.kv, 0), 13);
    CHECK_INT(swa_cache_unstored(&t.kv, 0), 1);
    CHECK_OK(swa_cache_read(&t.kv, 0, 0, 12, 1, k, NULL));
    CHECK_STATUS(swa_cache_read(&t.kv, 0, 1, 9, 2, k, NULL), SWA_ERR_ORDER);
    REQUIRE(swa_cache_spans(&t.kv, 0, 1, spans) == 1);
    CHECK_INT(spans[0].n, 10);
    bytes = swa_cache_save_bytes(&t.kv, -1);
    blob = (unsigned char *)t_alloc(bytes);
    CHECK_STATUS(swa_cache_save(&t.kv, 0, blob, bytes), SWA_ERR_ORDER);
    CHECK_STATUS(swa_cache_save(&t.kv, -1, blob, bytes), SWA_ERR_ORDER);
    CHECK_OK(swa_cache_save(&t.kv, 1, blob, bytes));
    CHECK_STATUS(go_on(&t, 2), SWA_OK); /* the step is still on: layer 1 comes late */
    CHECK_STATUS(some_layers(&t, 5, 0, 13, 1), SWA_OK);
    CHECK_INT(swa_cache_unstored(&t.kv, 0), 1);                /* of a step of one token, too */
    CHECK_STATUS(some_layers(&t, 7, 0, 14, 1), SWA_ERR_ORDER); /* layer 1 lacks 13 */
    r = rewinding(t_run(0, 14, 1));
    CHECK_STATUS(swa_step_begin(&t.kv, &r, 1), SWA_ERR_ORDER);
    CHECK_STATUS(go_on(&t, 2), SWA_ERR_ORDER);
    CHECK_STATUS(swa_cache_fork(&t.kv, 1, 0, 14), SWA_ERR_ORDER); /* nor can they be copied */
    CHECK_STATUS(swa_cache_fork(&t.kv, 1, 0, -1), SWA_ERR_ORDER);
    CHECK_STATUS(swa_cache_copy(&t.kv, 1, &t.kv, 0, 14), SWA_ERR_ORDER);
    CHECK_INT(swa_cache_end(&t.kv, 1), 0);
    CHECK_OK(swa_cache_fork(&t.kv, 1, 0, 13));
    CHECK_STATUS(some_layers(&t, 7, 1, 13, 1), SWA_OK);
    CHECK_STATUS(some_layers(&t, 5, 0, 13, 3), SWA_OK); /* begun again at its own position, longer */
    CHECK_OK(swa_cache_truncate(&t.kv, 0, 14));         /* not far enough back */
    CHECK_STATUS(some_layers(&t, 7, 0, 14, 1), SWA_ERR_ORDER);
    CHECK_OK(swa_cache_truncate(&t.kv, 0, 13));
    CHECK_STATUS(some_layers(&t, 7, 0, 13, 1), SWA_OK);
    t.rewind = 1;
    CHECK_INT(toy_run(&t, 0, 10, 8, text, x), SWA_OK); /* a draft by few layers, then all of them: the same */
    CHECK_BITS(x, cold + 10 * TOY_DIM, 8 * TOY_DIM);
    bytes = swa_cache_save_bytes(&t.kv, 0);
    blob = (unsigned char *)t_alloc(bytes);
    CHECK_OK(swa_cache_save(&t.kv, 0, blob, bytes));
    CHECK_OK(swa_cache_load(&t.kv, 1, blob, bytes));
    CHECK_INT(toy_run(&t, 1, 18, 1, text, x), SWA_OK);
}
/* A chunk longer than what can be taken back, begun and given up: while no layer has been called to store, it is
   begun again, longer, shorter or by single tokens, or taken back, and all is as if it had never been begun. */
TEST(a_chunk_that_was_only_begun) {
    const swa_window w[2] = { swa_window_sliding(7), swa_window_sinks(12, 3) };
    const int32_t retry[4] = { 60, 45, 1, 9 };
    swa_cache_desc d = toy_desc(w, 2, 3, 2);
    float x[80 * TOY_DIM], *cold = toy_cold(&d, 0, 0, 110, text);
    swa_run runs[2];
    toy t;
    REQUIRE(cold != NULL);
    for (int i = 0; i < 8; i++) {
        const int32_t n = retry[i % 4];
        d.audit = i > 3;
        t_label("begun again with %d, audit %d", (int)n, d.audit);
        REQUIRE(toy_open(&t, &d));
        CHECK_INT(toy_run(&t, 0, 0, 50, text, x), SWA_OK);
        CHECK_INT(toy_run(&t, 1, 0, 30, text, x), SWA_OK);
        CHECK_OK(swa_step_one(&t.kv, 0, 50, 45));
        CHECK_STATUS(swa_step_one(&t.kv, 0, 51, 1), SWA_ERR_ORDER); /* which leaves no step */
        CHECK_INT(swa_cache_unstored(&t.kv, 0), 0);
        runs[0] = t_run(0, 50, 45);
        runs[1] = t_run(1, 30, 45);
        CHECK_OK(swa_step_begin(&t.kv, runs, 2));
        CHECK(swa_cache_min_end(&t.kv, 0) <= 50);
        if (i % 2) CHECK_OK(swa_cache_truncate(&t.kv, 0, 50));
        CHECK_OK(swa_cache_fork(&t.kv, 1, 0, 50)); /* its rows are all there */
        for (int seq = 0; seq < 2; seq++) {
            CHECK_INT(toy_run(&t, seq, 50, n, text, x), SWA_OK);
            if (seq == 0) CHECK_BITS(x, cold + 50 * TOY_DIM, (size_t)n * TOY_DIM);
        }
        /* one layer has been called: now it is too late, and the others have to be */
        CHECK_STATUS(some_layers(&t, 4, 0, 50 + n, 45), SWA_OK);
        CHECK_STATUS(swa_cache_truncate(&t.kv, 0, 50 + n), SWA_ERR_LOST);
        runs[0] = t_run(0, 50 + n, 45);
        CHECK(strstr(swa_step_explain(&t.kv, runs), "swa_cache_unstored") != NULL);
        if (i == 0) { /* once a begin was refused nobody can: the words are others */
            CHECK_STATUS(swa_step_one(&t.kv, 0, 50 + n, 45), SWA_ERR_LOST);
            CHECK(strstr(swa_step_explain(&t.kv, runs), "swa_cache_reset") != NULL);
            continue;
        }
        CHECK_STATUS(go_on(&t, 3), SWA_OK);
        CHECK_STATUS(swa_cache_truncate(&t.kv, 0, 50 + n), SWA_ERR_LOST);
    }
}
/* Under audit rows that such a step has announced to push out are not filled with NaN when it is cut short ... */
TEST(a_chunk_that_was_only_begun_is_cut) {
    const swa_window w = swa_window_sliding(7);
    swa_cache_desc d = toy_desc(&w, 1, 2, 1);
    float x[40 * TOY_DIM], *cold = toy_cold(&d, 0, 0, 60, text);
    toy t;
    d.audit = 1;
    d.max_rollback = 3;
    REQUIRE(cold && toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 0, 30, text, x), SWA_OK);
    CHECK_OK(swa_step_one(&t.kv, 0, 30, 25));
    CHECK_OK(swa_cache_truncate(&t.kv, 0, 53)); /* which mends nothing, and breaks nothing */
    CHECK_OK(swa_cache_truncate(&t.kv, 0, 28));
    CHECK_INT(toy_run(&t, 0, 28, 12, text, x), SWA_OK);
    CHECK_BITS(x, cold + 28 * TOY_DIM, 12 * TOY_DIM);
}
/* ... and layers that share a ring share what is known of it. What one of them began in parts and left is over when
   another has stored. */
TEST(a_chunk_that_was_only_begun_over_a_shared_ring) {
    const swa_window w = swa_window_sliding(7);
    const int kv_layer[3] = { 0, 0, 2 };
    swa_cache_desc d = toy_desc(&w, 1, 3, 1);
    float x[60 * TOY_DIM], out[60 * TOY_DIM];
    swa_attn a;
    toy t;
    d.kv_layer = kv_layer;
    REQUIRE(toy_open_parts(&t, &d, 2));
    memset(&a, 0, sizeof a);
    memset(x, 0, sizeof x);
    a.q.p = a.k.p = a.v.p = x;
    a.out.p = out;
    CHECK_OK(swa_step_one(&t.kv, 0, 0, 20));
    for (int part = 0; part < 2; part++) CHECK_OK(swa_attend_part(&t.kv, 1, &a, 0, part, 2));
    CHECK_STATUS(go_on(&t, 5), SWA_OK);
    CHECK_INT(swa_cache_unstored(&t.kv, 0), -1);
    for (int retry = 0; retry < 2; retry++) {
        CHECK_OK(swa_step_one(&t.kv, 0, 20, 40));
        CHECK_OK(swa_cache_truncate(&t.kv, 0, 20));
    }
    CHECK_STATUS(some_layers(&t, 2, 0, 20, 40), SWA_OK); /* by the layer that reads: it stores the ring all the same */
    CHECK_STATUS(swa_cache_truncate(&t.kv, 0, 20), SWA_ERR_LOST);
    CHECK_STATUS(go_on(&t, 4), SWA_OK);
    CHECK_STATUS(some_layers(&t, 5, 0, 60, 1), SWA_OK);
}
/* The same by parts: the first part of phase 0 counts as the call, whoever stores. */
TEST(a_chunk_begun_and_stored_by_one_part) {
    const swa_window w = swa_window_sliding(7);
    swa_cache_desc d = toy_desc(&w, 1, 1, 1);
    float x[45 * TOY_DIM], out[45 * TOY_DIM];
    toy t;
    d.shape.n_kv_heads = d.shape.n_heads;
    REQUIRE(toy_open_parts(&t, &d, 2));
    for (int stored = 0; stored < 2; stored++) {
        swa_attn a;
        memset(&a, 0, sizeof a);
        a.q.p = a.k.p = a.v.p = x;
        a.out.p = out;
        memset(x, 0, sizeof x);
        CHECK_OK(swa_cache_reset(&t.kv, 0, 0, 0));
        CHECK_STATUS(some_layers(&t, 1, 0, 0, 20), SWA_OK);
        CHECK_OK(swa_step_one(&t.kv, 0, 20, 45));
        CHECK_OK(swa_cache_truncate(&t.kv, 0, 20));
        CHECK_OK(swa_step_one(&t.kv, 0, 20, 45));
        for (int part = 0; part < 2; part++) CHECK_OK(swa_attend_part(&t.kv, 0, &a, 0, part, 2));
        if (stored) CHECK_OK(swa_attend_part(&t.kv, 0, &a, 1, 1, 2)); /* and not part 0 */
        CHECK_STATUS(swa_cache_truncate(&t.kv, 0, 20), SWA_ERR_LOST);
    }
}
/* Layers that share a ring: all but the last leave it alone; one that comes after the store says so, and sees the
   same or is refused. */
TEST(attending_a_layer_again) {
    const swa_window w = swa_window_sliding(8);
    swa_cache_desc d = toy_desc(&w, 1, 1, 1);
    for (int32_t n = 1; n <= 12; n++) {
        float *x = t_random((n + 1) * TOY_DIM, 1.0), *first = t_floats((n + 1) * TOY_DIM);
        float *again = t_floats((n + 1) * TOY_DIM);
        swa_attn a;
        toy t;
        d.capacity = 12; /* room for 5 rows beside the W-1 that are read */
        REQUIRE(toy_open(&t, &d));
        CHECK_STATUS(some_layers(&t, 1, 0, 0, 40), SWA_OK);
        memset(&a, 0, sizeof a);
        a.q.p = a.k.p = a.v.p = x;
        CHECK_OK(swa_step_one(&t.kv, 0, 40, n));
        t_label("n %d", (int)n);
        a.out.p = first;
        a.mode = SWA_ATTEND_NO_STORE;
        CHECK_OK(swa_attend(&t.kv, 0, &a));
        a.mode = SWA_ATTEND_STORED;
        CHECK_STATUS(swa_attend(&t.kv, 0, &a), SWA_ERR_ORDER); /* nothing was stored yet */
        a.out.p = again;
        for (a.mode = SWA_ATTEND_NO_STORE;; a.mode = SWA_ATTEND) {
            CHECK_OK(swa_attend(&t.kv, 0, &a));
            CHECK_BITS(again, first, n * TOY_DIM);
            if (a.mode == SWA_ATTEND) break;
        }
        CHECK_STATUS(swa_attend(&t.kv, 0, &a), SWA_ERR_ORDER);
        a.k.p = a.v.p = NULL;
        a.mode = SWA_ATTEND_STORED;
        memset(again, 0, (size_t)n * TOY_DIM * sizeof *again);
        CHECK_STATUS(swa_attend(&t.kv, 0, &a), n <= 5 ? SWA_OK : SWA_ERR_CAPACITY);
        if (n <= 5) CHECK_BITS(again, first, n * TOY_DIM);
        CHECK_OK(swa_step_one(&t.kv, 0, 40 + n, 1)); /* it was stored: nothing is missing */
        a.q.p = a.out.p = NULL;
        a.k.p = a.v.p = x;
        a.mode = SWA_STORE_ONLY;
        CHECK_OK(swa_attend(&t.kv, 0, &a)); /* reads no q and writes no out */
        CHECK_OK(swa_step_one(&t.kv, 0, 41 + n, 1));
    }
}
/* Scratch is the caller's, may change between steps, and its size is what limits the parts; bits do not notice. */
TEST(scratch_of_several_sizes) {
    const swa_window w[2] = { swa_window_sliding(9), swa_window_sinks(4, 2) };
    swa_cache_desc d = toy_desc(w, 2, 2, 2);
    float x[4 * TOY_DIM], *cold = toy_cold(&d, 0, 0, 64, text), *other = toy_cold(&d, 1, 0, 64, text);
    unsigned char *shared;
    toy t, u;
    REQUIRE(cold && other && toy_open(&t, &d) && toy_open(&u, &d));
    shared = (unsigned char *)t_alloc(swa_cache_scratch_bytes(&d, 4));
    CHECK(swa_cache_scratch_bytes(&d, 4) > swa_cache_scratch_bytes(&d, 1));
    for (int i = 0; i < 16; i++) {
        int parts = 1 + i % 4;
        size_t bytes = swa_cache_scratch_bytes(&d, parts);
        t_label("step %d, %d parts", i, parts);
        CHECK_OK(swa_cache_set_scratch(&t.kv, shared, bytes));
        CHECK_OK(swa_cache_set_scratch(&u.kv, shared, bytes)); /* of two caches in turn */
        t.parts = u.parts = parts;
        CHECK_INT(toy_run(&t, 0, 4 * i, 4, text, x), SWA_OK);
        CHECK_BITS(x, cold + 4 * i * TOY_DIM, 4 * TOY_DIM);
        CHECK_INT(toy_run(&u, 1, 4 * i, 4, text, x), SWA_OK);
        CHECK_BITS(x, other + 4 * i * TOY_DIM, 4 * TOY_DIM);
        memset(shared, 0xff, bytes); /* nothing of it is kept */
        if (i % 4 == 3) continue;
        t.parts = parts + 1;
        CHECK_INT(toy_run(&t, 0, 4 * i + 4, 4, text, x), SWA_ERR_MEMORY);
        CHECK_OK(swa_cache_truncate(&t.kv, 0, 4 * i + 4));
    }
}
/* In a batch the others are begun again with it, or go on without it. */
TEST(a_batch_that_dies) {
    const swa_window w = swa_window_sliding(5);
    static const int64_t start[SEQS] = { 0, 3, 0, 9 };
    static const int32_t len[SEQS] = { 40, 40, 40, 40 };
    swa_cache_desc d = toy_desc(&w, 1, 3, SEQS);
    float *x = t_floats(SEQS * ROWS * TOY_DIM);
    int64_t at[SEQS];
    batch b;
    REQUIRE(batch_open(&b, &d, 1, start, len));
    for (int i = 0; i < SEQS; i++) at[i] = start[i];
    for (int round = 0; round < 200; round++) {
        swa_run runs[SEQS];
        int n = 0, dies = t_int(0, 1);
        t_label("round %d", round);
        for (int i = 0; i < SEQS; i++) {
            if (at[i] + 12 > start[i] + len[i] + 8) {
                at[i] = start[i];
                CHECK_OK(swa_cache_reset(&b.t.kv, i, at[i], 0));
            }
            runs[n] = t_run(i, at[i], t_int(0, 12));
            if (runs[n].n > 0) n++;
        }
        if (n == 0) continue;
        if (dies) {
            b.t.die_layer = t_int(0, 2);
            b.t.die_phase = t_int(0, 1);
            CHECK_INT(toy_step(&b.t, runs, n, text, x), TOY_DEAD);
            for (int i = 0; i < n; i++) {
                runs[i].rewind = b.t.die_layer == 2 && b.t.die_phase == 1; /* every layer had stored it */
                if (t_int(0, 3) == 0) runs[i].n = 1;
            }
            b.t.die_layer = -1;
        }
        batch_step(&b, runs, n, x);
        for (int i = 0; i < n; i++) at[runs[i].seq] += runs[i].n;
    }
}
