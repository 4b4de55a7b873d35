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
    CHECK_INT(swa_prefill_next(&plan, runs, &n), 0);         /* asked again: still nothing */
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
    check_plan(NULL, NULL, lens + 1, 1, INT32_MAX);
}

/* ---- chunks and batches, to the bit ---- */

enum { SEQS = 4 };
typedef struct { toy t; float *cold[SEQS]; int64_t start[SEQS]; int32_t len[SEQS]; } batch;

static int batch_open(batch *b, const swa_cache_desc *d, const int64_t *start, const int32_t *len) {
    for (int i = 0; i < SEQS; i++) {
        b->start[i] = start[i];
        b->len[i] = len[i];
        b->cold[i] = toy_cold(d, i, start[i], len[i] + 8, text);
        if (!b->cold[i]) return 0;
    }
    return toy_open(&b->t, d);
}
/* Runs a step and compares every row of it with the answer sheet. */
static void batch_step(batch *b, swa_run *runs, int n, float *x) {
    swa_step step;
    memset(&step, 0, sizeof step);
    step.runs = runs;
    step.n_runs = n;
    if (!CHECK_INT(toy_step(&b->t, &step, text, x), SWA_OK)) return;
    CHECK_INT(step.failed, -1);
    for (int i = 0, row = 0; i < n; row += runs[i++].n) {
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
    for (int i = 0; i < SEQS; i++) CHECK_OK(swa_cache_reset(&b->t.kv, i, 0));
    CHECK_OK(swa_prefill_begin(&plan, NULL, b->start, b->len, SEQS, chunk));
    while (swa_prefill_next(&plan, runs, &n)) batch_step(b, runs, n, x);
    for (int j = 0; j < 8; j++) {
        memset(runs, 0, sizeof runs);
        for (int i = 0; i < SEQS; i++) {
            runs[i].seq = i;
            runs[i].n = 1;
            runs[i].pos = b->start[i] + b->len[i] + j;
        }
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
    d.isa = isa; d.k_type = d.v_type = type; d.max_parts = parts;
    if (!batch_open(&b, &d, start, len)) return;
    b.t.parts = parts;
    chunks[0] = 1; chunks[1] = 2; chunks[2] = (int32_t)W - 1; chunks[3] = (int32_t)W; chunks[4] = (int32_t)W + 1;
    chunks[5] = (int32_t)(2 * W); chunks[6] = (int32_t)(3 * W + 1); chunks[7] = 41; chunks[8] = INT32_MAX;
    for (int i = 0; i < 9; i++) {
        t_label("W=%d windows %d type %d parts %d chunk %d", (int)W, mode_windows, (int)type, parts,
                (int)chunks[i]);
        if (chunks[i] > 0) check_chunk(&b, chunks[i], x);
    }
}
TEST_EACH_ISA(any_chunking_has_the_same_bits) {
    static const swa_type types[4] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8 };
    for (int64_t W = 1; W <= 9; W += W < 4 ? 1 : 5)
        for (int mode = 0; mode < 3; mode++) check_chunks(isa, W, mode, types[(W + mode) % 4], (int)(W % 3));
    for (int i = 0; i < 4; i++) check_chunks(isa, 5, 0, types[i], i);
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
    REQUIRE(batch_open(&b, &d, start, len));
    for (int i = 0; i < SEQS; i++) at[i] = -1;               /* not there */
    for (int round = 0; round < 300; round++) {
        swa_run runs[SEQS];
        int n = 0;
        memset(runs, 0, sizeof runs);
        t_label("round %d", round);
        for (int j = 0, first = t_int(0, SEQS - 1); j < SEQS; j++) {
            int i = (first + j) % SEQS;
            int64_t end = start[i] + len[i] + 8;
            if (at[i] < 0 && t_int(0, 2)) continue;
            if (at[i] >= 0 && t_int(0, 11) == 0) { at[i] = -1; CHECK_OK(swa_cache_reset(&b.t.kv, i, 0)); continue; }
            if (at[i] < 0 || at[i] == end) at[i] = start[i];
            runs[n].seq = i;
            runs[n].pos = at[i];
            runs[n].n = t_int(0, 2) ? t_int(0, 1) : t_int(0, 20);
            if (runs[n].n > end - at[i]) runs[n].n = (int32_t)(end - at[i]);
            at[i] += runs[n++].n;
        }
        batch_step(&b, runs, n, x);
    }
}

/* ---- what begin refuses ---- */

static void check_refused(toy *t, swa_run *runs, int n, swa_status want, int failed) {
    unsigned char *before = (unsigned char *)malloc(t->bytes);
    swa_step step;
    memset(&step, 0, sizeof step);
    step.runs = runs;
    step.n_runs = n;
    step.failed = 77;
    memcpy(before, t->mem, t->bytes);
    CHECK_STATUS(swa_step_begin(&t->kv, &step), want);
    CHECK_INT(step.failed, failed);
    CHECK(memcmp(before, t->mem, t->bytes) == 0);
    free(before);
}
static swa_run run_of(int seq, int64_t pos, int32_t n) {
    swa_run r;
    memset(&r, 0, sizeof r);
    r.seq = seq; r.pos = pos; r.n = n;
    return r;
}
TEST(begin_refuses_and_names_the_run) {
    const swa_window w[2] = { swa_window_sliding(4), swa_window_causal() };
    swa_cache_desc d = toy_desc(w, 1, 1, SEQS);
    float x[40 * TOY_DIM];
    swa_run r[3];
    toy t;
    REQUIRE(toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 1, 0, 40, text, x), SWA_OK);
    r[0] = run_of(0, 0, 2); r[1] = run_of(1, 41, 1);
    check_refused(&t, r, 2, SWA_ERR_ORDER, 1);               /* a gap */
    r[1] = run_of(1, 20, 1);
    check_refused(&t, r, 2, SWA_ERR_LOST, 1);
    r[1] = run_of(0, 2, 1);
    check_refused(&t, r, 2, SWA_ERR_ARG, 1);                 /* twice */
    r[1] = run_of(SEQS, 0, 1);
    check_refused(&t, r, 2, SWA_ERR_ARG, 1);
    r[1] = run_of(-1, 0, 1);
    check_refused(&t, r, 2, SWA_ERR_ARG, 1);
    r[1] = run_of(1, 40, -1);
    check_refused(&t, r, 2, SWA_ERR_ARG, 1);
    r[1] = run_of(1, -1, 1);
    check_refused(&t, r, 2, SWA_ERR_ARG, 1);
    r[0] = run_of(2, INT64_MAX - 1, 1);
    check_refused(&t, r, 1, SWA_ERR_OVERFLOW, 0);
    r[0] = run_of(2, 0, INT32_MAX); r[1] = run_of(3, 0, 1);
    check_refused(&t, r, 2, SWA_ERR_OVERFLOW, 1);            /* more packed rows than an int32 counts */
    r[0] = run_of(2, 10, 3); r[0].prefix = 10;
    check_refused(&t, r, 1, SWA_ERR_ARG, 0);                 /* a prefix has to lie within its run */
    r[0].prefix = 14;
    check_refused(&t, r, 1, SWA_ERR_ARG, 0);
    r[0].prefix = -1;
    check_refused(&t, r, 1, SWA_ERR_ARG, 0);
    d.n_windows = 2; d.n_layers = 2; d.windows = w; d.max_context = 32;
    REQUIRE(toy_open(&t, &d));
    r[0] = run_of(0, 5, 32); r[1] = run_of(1, 5, 33);
    check_refused(&t, r, 2, SWA_ERR_FULL, 1);
}
TEST(empty_steps_and_empty_runs) {
    const swa_window w = swa_window_sliding(4);
    swa_cache_desc d = toy_desc(&w, 1, 1, 2);
    float x[8 * TOY_DIM];
    swa_run r[2];
    swa_step step;
    swa_attn a;
    toy t;
    REQUIRE(toy_open(&t, &d));
    memset(&step, 0, sizeof step);
    memset(&a, 0, sizeof a);
    a.q.p = a.k.p = a.v.p = x;
    a.out.p = x;
    CHECK_OK(swa_step_begin(&t.kv, &step));                  /* no run at all, and no array */
    CHECK_INT(step.n_tokens, 0);
    CHECK_OK(swa_attend(&t.kv, 0, &step, &a));
    r[0] = run_of(0, 12345, 0); r[1] = run_of(1, 3, 0);
    step.runs = r;
    step.n_runs = 2;
    CHECK_INT(toy_run(&t, 1, 3, 8, text, x), SWA_OK);
    CHECK_OK(swa_step_begin(&t.kv, &step));                  /* n = 0 does nothing, wherever it stands */
    CHECK_INT(step.n_tokens, 0);
    CHECK_OK(swa_attend(&t.kv, 0, &step, &a));
    CHECK_INT(swa_cache_end(&t.kv, 0), 0);
    CHECK_INT(swa_cache_end(&t.kv, 1), 11);
}
TEST(attending_a_step_that_was_not_begun) {
    const swa_window w = swa_window_sliding(4);
    swa_cache_desc d = toy_desc(&w, 1, 2, 2);
    float x[8 * TOY_DIM], out[8 * TOY_DIM];
    swa_run r = run_of(0, 0, 2);
    swa_step step;
    swa_attn a;
    toy t;
    REQUIRE(toy_open(&t, &d));
    memset(&step, 0, sizeof step);
    memset(&a, 0, sizeof a);
    memset(x, 0, sizeof x);
    step.runs = &r;
    step.n_runs = 1;
    a.q.p = a.k.p = a.v.p = x;
    a.out.p = out;
    CHECK_STATUS(swa_attend(&t.kv, 0, &step, &a), SWA_ERR_ORDER);
    CHECK_OK(swa_step_begin(&t.kv, &step));
    CHECK_OK(swa_attend(&t.kv, 0, &step, &a));
    CHECK_STATUS(swa_attend(&t.kv, 2, &step, &a), SWA_ERR_ORDER);
    CHECK_STATUS(swa_attend(&t.kv, -1, &step, &a), SWA_ERR_ORDER);
    r.n = 3;                                                 /* altered after begin */
    CHECK_STATUS(swa_attend(&t.kv, 0, &step, &a), SWA_ERR_ORDER);
    r = run_of(0, 1, 2);
    CHECK_STATUS(swa_attend(&t.kv, 0, &step, &a), SWA_ERR_ORDER);
    r = run_of(1, 0, 2);
    CHECK_STATUS(swa_attend(&t.kv, 0, &step, &a), SWA_ERR_ORDER);
    r = run_of(0, 0, 2);
    CHECK_OK(swa_attend(&t.kv, 0, &step, &a));
    CHECK_OK(swa_cache_reset(&t.kv, 0, 0));                  /* taken away under it */
    CHECK_STATUS(swa_attend(&t.kv, 1, &step, &a), SWA_ERR_ORDER);
}

/* ---- dying ---- */

/* A step of n tokens at the end of 30 dies after one call, and is begun again, whole or in another cut. */
static void die_and_retry(toy *t, const float *cold, int mode, int layer, int phase, int part, int32_t n,
                          int32_t again) {
    float x[ROWS * TOY_DIM];
    int64_t pos = 30, room = 16 - 6;                         /* rows that can be taken back: capacity-(W-1) */
    int got;
    t->mode = 0;
    CHECK_OK(swa_cache_reset(&t->kv, 0, 0));
    CHECK_INT(toy_run(t, 0, 0, 30, text, x), SWA_OK);
    t->mode = mode;
    t->die_layer = layer; t->die_phase = phase; t->die_part = part;
    CHECK_INT(toy_run(t, 0, pos, n, text, x), TOY_DEAD);
    t->die_layer = -1;
    for (int i = 0; i < 2; i++, pos += again) {
        got = toy_run(t, 0, pos, again, text, x);
        if (i == 0) CHECK_INT(got, n <= room ? SWA_OK : SWA_ERR_LOST);
        if (got != SWA_OK) return;                           /* refused: nothing was computed */
        CHECK_BITS(x, cold + pos * TOY_DIM, again * TOY_DIM);
    }
}
TEST(a_step_that_dies_is_begun_again) {
    const swa_window w[2] = { swa_window_sliding(7), swa_window_sinks(5, 2) };
    swa_cache_desc d = toy_desc(w, 2, 4, 1);
    float *cold, *big = t_floats(64 * TOY_DIM);
    toy t;
    d.max_parts = 3;
    cold = toy_cold(&d, 0, 0, 64, text);
    REQUIRE(cold && toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 0, 30, text, big), SWA_OK);
    for (int parts = 1; parts <= 3; parts++)
        for (int mode = 0; mode < 2; mode++)
            for (int layer = 0; layer < 4; layer++)
                for (int phase = 0; phase < SWA_PHASES; phase++)
                    for (int part = 0; part < parts; part++)
                        for (int32_t n = 1; n <= 12; n++) {
                            t.parts = parts;
                            t_label("parts %d mode %d dies after layer %d phase %d part %d, n %d", parts, mode,
                                    layer, phase, part, (int)n);
                            die_and_retry(&t, cold, mode && n <= 10, layer, phase, part, n, n % 3 + 1);
                        }
}
/* The step at pos through some layers only, a bit each; the first status that is not OK. */
static swa_status some_layers(toy *t, int layers, int seq, int64_t pos, int32_t n) {
    float *x = t_random((n + 1) * TOY_DIM, 1.0), *out = t_floats((n + 1) * TOY_DIM);
    swa_run r = run_of(seq, pos, n);
    swa_status status;
    swa_step step;
    swa_attn a;
    memset(&step, 0, sizeof step);
    memset(&a, 0, sizeof a);
    step.runs = &r;
    step.n_runs = 1;
    a.q.p = a.k.p = a.v.p = x;
    a.out.p = out;
    status = swa_step_begin(&t->kv, &step);
    for (int layer = 0; layer < t->desc.n_layers && status == SWA_OK; layer++)
        if (layers >> layer & 1) status = swa_attend(&t->kv, layer, &step, &a);
    return status;
}
/* Rows that a layer never got are refused wherever they would be read; taking the step back heals it. */
TEST(a_layer_that_a_step_left_out) {
    const swa_window w[2] = { swa_window_sliding(7), swa_window_causal() };
    swa_cache_desc d = toy_desc(w, 2, 3, 2);
    float x[20 * TOY_DIM], *cold, *k = t_floats(20 * TOY_HEAD_DIM);
    swa_run r = run_of(0, 14, 1);
    unsigned char *blob;
    swa_kv spans[3];
    swa_step step;
    swa_attn a;
    size_t bytes;
    toy t;
    d.max_context = 64;
    d.max_rollback = 16;
    cold = toy_cold(&d, 0, 0, 40, text);
    REQUIRE(cold && toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 0, 10, text, x), SWA_OK);
    CHECK_STATUS(some_layers(&t, 5, 0, 10, 3), SWA_OK);
    CHECK_INT(swa_cache_end(&t.kv, 0), 13);
    CHECK_OK(swa_cache_read(&t.kv, 0, 0, 12, 1, k, k));
    CHECK_STATUS(swa_cache_read(&t.kv, 0, 1, 9, 2, k, k), SWA_ERR_ORDER);
    REQUIRE(swa_cache_spans(&t.kv, 0, 1, spans) == 1);
    CHECK_INT(spans[0].n, 10);
    bytes = swa_cache_save_bytes(&t.kv, -1);
    blob = (unsigned char *)t_alloc(bytes);
    CHECK_STATUS(swa_cache_save(&t.kv, 0, blob, bytes), SWA_ERR_ORDER);
    CHECK_STATUS(swa_cache_save(&t.kv, -1, blob, bytes), SWA_ERR_ORDER);
    CHECK_OK(swa_cache_save(&t.kv, 1, blob, bytes));
    CHECK_STATUS(some_layers(&t, 1, 0, 13, 1), SWA_OK);      /* layers that are whole go on */
    CHECK_STATUS(some_layers(&t, 7, 0, 14, 1), SWA_ERR_ORDER);
    memset(&step, 0, sizeof step);                           /* storing all the same does not close the gap */
    memset(&a, 0, sizeof a);
    step.runs = &r;
    step.n_runs = 1;
    a.q.p = a.k.p = a.v.p = a.out.p = x;
    CHECK_STATUS(swa_attend_part(&t.kv, 1, &step, &a, 0, 0, 1), SWA_ERR_ORDER);
    CHECK_OK(swa_attend_part(&t.kv, 1, &step, &a, 1, 0, 1));
    CHECK_STATUS(swa_attend_part(&t.kv, 1, &step, &a, 0, 0, 1), SWA_ERR_ORDER);
    CHECK_OK(swa_cache_fork(&t.kv, 1, 0, 11));
    CHECK_STATUS(some_layers(&t, 2, 1, 11, 1), SWA_ERR_ORDER);
    CHECK_OK(swa_cache_fork(&t.kv, 1, 0, 10));
    CHECK_STATUS(some_layers(&t, 2, 1, 10, 1), SWA_OK);
    CHECK_OK(swa_cache_truncate(&t.kv, 0, 11));
    CHECK_STATUS(some_layers(&t, 2, 0, 11, 1), SWA_ERR_ORDER);
    CHECK_INT(toy_run(&t, 0, 10, 8, text, x), SWA_OK);       /* a draft by few layers, then all of them: the same */
    CHECK_BITS(x, cold + 10 * TOY_DIM, 8 * TOY_DIM);
    bytes = swa_cache_save_bytes(&t.kv, 0);
    blob = (unsigned char *)t_alloc(bytes);
    CHECK_OK(swa_cache_save(&t.kv, 0, blob, bytes));
    CHECK_OK(swa_cache_load(&t.kv, 1, blob, bytes));
    CHECK_INT(toy_run(&t, 1, 18, 1, text, x), SWA_OK);
}
/* Layers that share a ring: a call that attends after another has stored sees the same or is refused. */
TEST(attending_a_layer_again) {
    const swa_window w = swa_window_sliding(8);
    swa_cache_desc d = toy_desc(&w, 1, 1, 1);
    for (int32_t n = 1; n <= 12; n++) {
        float *x = t_random((n + 1) * TOY_DIM, 1.0), *first = t_floats((n + 1) * TOY_DIM);
        float *again = t_floats((n + 1) * TOY_DIM);
        swa_run r = run_of(0, 40, n);
        swa_step step;
        swa_attn a;
        toy t;
        d.capacity = 12;                                     /* room for 5 rows beside the W-1 that are read */
        REQUIRE(toy_open(&t, &d));
        CHECK_STATUS(some_layers(&t, 1, 0, 0, 40), SWA_OK);
        memset(&step, 0, sizeof step);
        memset(&a, 0, sizeof a);
        step.runs = &r;
        step.n_runs = 1;
        a.q.p = a.k.p = a.v.p = x;
        CHECK_OK(swa_step_begin(&t.kv, &step));
        t_label("n %d", (int)n);
        a.out.p = first;
        a.no_store = 1;
        CHECK_OK(swa_attend(&t.kv, 0, &step, &a));
        a.k.p = NULL;
        CHECK_STATUS(swa_attend(&t.kv, 0, &step, &a), SWA_ERR_ORDER);      /* nothing was put yet */
        a.k.p = x;
        a.no_store = 0;
        a.out.p = again;
        CHECK_OK(swa_attend(&t.kv, 0, &step, &a));
        CHECK_BITS(again, first, n * TOY_DIM);
        for (int i = 0; i < 3; i++) {
            a.no_store = i == 0;
            a.k.p = i < 2 ? x : NULL;
            memset(again, 0, (size_t)n * TOY_DIM * sizeof *again);
            CHECK_STATUS(swa_attend(&t.kv, 0, &step, &a), n <= 5 ? SWA_OK : SWA_ERR_CAPACITY);
            if (n <= 5) CHECK_BITS(again, first, n * TOY_DIM);
        }
        a.q.p = NULL;
        a.k.p = x;
        CHECK_OK(swa_attend(&t.kv, 0, &step, &a));           /* storing alone reads nothing */
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
    REQUIRE(batch_open(&b, &d, start, len));
    for (int i = 0; i < SEQS; i++) at[i] = start[i];
    for (int round = 0; round < 200; round++) {
        swa_run runs[SEQS];
        int n = 0, dies = t_int(0, 1);
        memset(runs, 0, sizeof runs);
        t_label("round %d", round);
        for (int i = 0; i < SEQS; i++) {
            if (at[i] + 12 > start[i] + len[i] + 8) at[i] = start[i];
            runs[n++] = run_of(i, at[i], t_int(0, 12));
        }
        if (dies) {
            swa_step step;
            memset(&step, 0, sizeof step);
            step.runs = runs;
            step.n_runs = n;
            b.t.die_layer = t_int(0, 2);
            b.t.die_phase = t_int(0, 1);
            CHECK_INT(toy_step(&b.t, &step, text, x), TOY_DEAD);
            b.t.die_layer = -1;
            for (int i = 0; i < n; i++) if (t_int(0, 3) == 0) runs[i].n = runs[i].n > 0;   /* one token at least */
        }
        batch_step(&b, runs, n, x);
        for (int i = 0; i < n; i++) at[i] += runs[i].n;
    }
}
