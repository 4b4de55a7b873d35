/* The ring: content, slots and views against an array that never forgets (model.h); the rollback law, replay,
   forks, blobs, pinned tokens and capacity, each to the bit against a cache that was never rewound. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "test.h"
#include "model.h"
#include "toy.h"

enum { TYPES = 7 };
static const swa_type ring_types[TYPES] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8, SWA_Q8_32, SWA_E4M3, SWA_E5M2 };

static uint32_t one_text(int seq, int64_t pos) {
    (void)seq;
    return (uint32_t)pos * 7919u + 17u;
}
static uint32_t text(int seq, int64_t pos) { return (uint32_t)(seq * 100003) + (uint32_t)pos * 7919u + 17u; }

/* ---- against the unbounded array ---- */

TEST(random_calls_agree_with_an_unbounded_array) {
    static md m;
    uint8_t bytes[400];
    long ops = 0, refused = 0, rows = 0;
    for (int i = 0; i < (t_all() ? 600 : 300); i++) {
        int ok;
        for (size_t j = 0; j < sizeof bytes; j++) bytes[j] = (uint8_t)t_u32();
        ok = md_run(&m, bytes, sizeof bytes);
        t_label("case %d: %s", i, m.why);
        CHECK(ok);
        ops += m.ops;
        refused += m.refused;
        rows += m.rows_checked;
    }
    t_label("%ld calls, %ld refused, %ld rows", ops, refused, rows);
    CHECK(ops > 10000 && refused > ops / 50 && rows > ops);
}

/* After every chunk, in a fork: each position may be cut at or not, as the slots say; then on from there. */
static int cut_everywhere(md *m, int64_t start, int chunk) {
    for (int64_t p = start - 1; p <= m->seq[0].end; p++) {
        if (!md_fork(m, 1, 0, -1) || !md_truncate(m, 1, p)) return 0;
        if (m->seq[1].end != p || t_int(0, 5) > 0) continue;
        if (!md_feed(m, 1, p, t_int(1, chunk), 0, 0) || !md_check(m, 1)) return 0;
    }
    return md_check(m, 0);
}
TEST(every_window_capacity_and_chunk_up_to_9) {
    static md m;
    for (int64_t W = 1; W <= 9; W++)
        for (int64_t cap = W > 1 ? W - 1 : 1; cap <= 12; cap++) /* W-1 is what attend-then-store needs */
            for (int chunk = 1; chunk <= 9; chunk++) {
                int64_t start = (W + cap + chunk) % 3 == 0 ? 5 : 0, origin = (W * cap + chunk) % 4;
                int ok = md_open_plain(&m, W, cap, 2);
                ok = ok && swa_cache_reset(&m.cache, 0, start, origin) == SWA_OK;
                md_empty(&m.seq[0], start, origin);
                while (ok && m.seq[0].end < start + 2 * cap + chunk) {
                    ok = md_feed(&m, 0, m.seq[0].end, chunk, 0, 0) && cut_everywhere(&m, start, chunk);
                }
                ok = md_close(&m) && ok;
                t_label("W=%d capacity=%d chunk=%d: %s", (int)W, (int)cap, chunk, m.why);
                CHECK(ok);
            }
}

/* ---- blobs ---- */

/* A blob of a sequence, or of all (-1), and its bytes. */
static unsigned char *saved(const swa_cache *c, int seq, size_t *bytes) {
    unsigned char *blob = (unsigned char *)t_alloc(*bytes = swa_cache_save_bytes(c, seq));
    CHECK_OK(swa_cache_save(c, seq, blob, *bytes));
    return blob;
}

/* ---- worked examples of the source documents ---- */

/* Position in each of the first n slots of sequence seq, -1 = empty. */
static void slots_of(const swa_cache *c, int seq, int64_t *slot, int n) {
    for (int i = 0; i < n; i++) slot[i] = -1;
    for (int64_t p = 0; p < swa_cache_end(c, seq); p++) {
        int64_t s = swa_cache_slot(c, seq, 0, p);
        if (s >= 0 && s < n) slot[s] = p;
    }
}
static void check_slots(const toy *t, int seq, const int64_t *want, int n) {
    int64_t got[16];
    slots_of(&t->kv, seq, got, n);
    for (int i = 0; i < n; i++) CHECK_INT(got[i], want[i]);
}
static int open_ring(toy *t, swa_window *w, int64_t W, int seqs) {
    swa_cache_desc d;
    *w = swa_window_sliding(W);
    d = toy_desc(w, 1, 1, seqs);
    d.capacity = W;
    return toy_open(t, &d);
}
TEST(slots_of_the_worked_examples) {
    static const int64_t a0[] = { 3, 4, 2 }, a1[] = { 9, 7, 8 }, b[] = { 8, 9, 6, 7 }, packed[] = { 2, 3, 4 };
    static const int64_t packed6[] = { 5, 3, 4 }, d0[] = { 3, 4, 2 }, d1[] = { 6, 7, 5 }, d2[] = { 3, 4, -1 };
    float x[16 * TOY_DIM];
    swa_window w;
    toy t;
    REQUIRE(open_ring(&t, &w, 3, 3)); /* chunk 5, W = 3 */
    CHECK_INT(toy_run(&t, 0, 0, 5, text, x), SWA_OK);
    check_slots(&t, 0, a0, 3);
    CHECK_INT(toy_run(&t, 0, 5, 5, text, x), SWA_OK);
    check_slots(&t, 0, a1, 3);
    CHECK_OK(swa_cache_reset(&t.kv, 0, 0, 2)); /* the patent: a prompt of 5 in 3 slots, origin L-n */
    CHECK_INT(toy_run(&t, 0, 0, 5, text, x), SWA_OK);
    check_slots(&t, 0, packed, 3);
    CHECK_INT(toy_run(&t, 0, 5, 1, text, x), SWA_OK); /* (last slot + 1) mod n */
    check_slots(&t, 0, packed6, 3);
    CHECK_OK(swa_cache_reset(&t.kv, 0, 0, 0));        /* mistral-inference's docstring: 5, 7, 2 new tokens */
    CHECK_INT(toy_run(&t, 0, 0, 5, text, x), SWA_OK); /* after 0, 1, 3 */
    CHECK_OK(swa_cache_reset(&t.kv, 1, 1, 0));
    CHECK_INT(toy_run(&t, 1, 1, 7, text, x), SWA_OK);
    CHECK_OK(swa_cache_reset(&t.kv, 2, 3, 0));
    CHECK_INT(toy_run(&t, 2, 3, 2, text, x), SWA_OK);
    check_slots(&t, 0, d0, 3);
    check_slots(&t, 1, d1, 3);
    check_slots(&t, 2, d2, 3);
    REQUIRE(open_ring(&t, &w, 4, 1)); /* second prompt of the batch of 12, 10 and 9 */
    for (int64_t p = 0; p < 10; p += 4) CHECK_INT(toy_run(&t, 0, p, p < 8 ? 4 : 2, text, x), SWA_OK);
    check_slots(&t, 0, b, 4);
    CHECK_INT(swa_cache_first(&t.kv, 0, 0), 6);
}

/* ---- rollback ---- */

/* Drafts of up to max_rollback tokens are taken back again and again; every accepted row has the cold bits. */
static void drafts_against_cold(int isa, swa_type k, swa_type v, int64_t capacity, int n) {
    const swa_window windows[2] = { swa_window_sliding(7), swa_window_sinks(5, 3) };
    swa_cache_desc d = toy_desc(windows, 2, 3, 1);
    float *cold, x[8 * TOY_DIM];
    int64_t pos = 0;
    toy t;
    d.isa = isa;
    d.k_type = k;
    d.v_type = v;
    d.max_rollback = 5;
    d.capacity = capacity;
    cold = toy_cold(&d, 0, 0, (int32_t)n + 8, text);
    if (!cold || !toy_open(&t, &d)) return;
    t.rewind = 1;
    while (pos < n) {
        int draft = t_int(1, 6), keep = t_int(1, draft);
        t_label("%s/%s capacity %d, %d of %d drafts kept at %d", t_type(k), t_type(v), (int)capacity, keep, draft,
                (int)pos);
        if (!CHECK_INT(toy_run(&t, 0, pos, (int32_t)draft, text, x), SWA_OK)) return;
        if (!CHECK_BITS(x, cold + pos * TOY_DIM, draft * TOY_DIM)) return;
        pos += keep;
        if (t_int(0, 1)) CHECK_OK(swa_cache_truncate(&t.kv, 0, pos));
    }
}
TEST_EACH_ISA(warm_after_rollback_is_cold) {
    for (int k = 0; k < TYPES; k++)
        for (int v = 0; v < TYPES; v += k < 4 ? 1 : 3) {
            drafts_against_cold(isa, ring_types[k], ring_types[v], 0, 120);
            drafts_against_cold(isa, ring_types[k], ring_types[v], 13, 60);
        }
    drafts_against_cold(isa, SWA_F16, SWA_F32, 11, 3000); /* wraps by the hundred */
}

/* Some rewinds need no row of the ring: W = 1, a chunk's first token, positions among the sinks. What is stored
   after such a rewind is as resident as any other row, although the end was once far above. */
static void rewind_to_nothing(swa_window w, int64_t capacity, int64_t far, int64_t back) {
    swa_cache_desc d = toy_desc(&w, 1, 2, 2);
    float *cold, x[64 * TOY_DIM];
    toy t;
    d.capacity = capacity;
    d.max_rollback = 2;
    cold = toy_cold(&d, 0, 0, 64, one_text);
    if (!cold || !toy_open(&t, &d)) return;
    for (int64_t p = 0; p < far; p++) CHECK_INT(toy_run(&t, 0, p, 1, one_text, x), SWA_OK);
    if (!CHECK_OK(swa_cache_truncate(&t.kv, 0, back))) return;
    CHECK_INT(toy_run(&t, 0, back, 5, one_text, x), SWA_OK);
    CHECK_BITS(x, cold + back * TOY_DIM, 5 * TOY_DIM);
    CHECK(swa_cache_slot(&t.kv, 0, 0, back + 4) >= 0);
    CHECK(swa_cache_first(&t.kv, 0, 0) <= back + 4);
    CHECK_OK(swa_cache_fork(&t.kv, 1, 0, -1)); /* a copy has the same rows */
    for (int seq = 0; seq < 2; seq++) {
        CHECK_INT(toy_run(&t, seq, back + 5, 1, one_text, x), SWA_OK);
        CHECK_BITS(x, cold + (back + 5) * TOY_DIM, TOY_DIM);
        CHECK_OK(swa_cache_truncate(&t.kv, seq, back + 4)); /* max_rollback rows can always be taken back */
        CHECK_INT(toy_run(&t, seq, back + 4, 1, one_text, x), SWA_OK);
        CHECK_BITS(x, cold + (back + 4) * TOY_DIM, TOY_DIM);
    }
}
TEST(rewinds_that_need_no_row) {
    t_label("W=1");
    rewind_to_nothing(swa_window_sliding(1), 4, 40, 20);
    t_label("start of a chunk of 8");
    rewind_to_nothing(swa_window_chunked(8), 9, 40, 16);
    t_label("among the sinks");
    rewind_to_nothing(swa_window_sinks(3, 4), 5, 40, 3);
}

/* A host that keeps pos = i % n, or warms up at position 0, and says so: beginning a position again replaces what was
   there. */
TEST(beginning_again_replaces) {
    const swa_window w = swa_window_sliding(6);
    swa_cache_desc d = toy_desc(&w, 1, 2, 1);
    float *cold, x[32 * TOY_DIM];
    toy t;
    cold = toy_cold(&d, 0, 0, 32, text);
    REQUIRE(cold && toy_open(&t, &d));
    t.rewind = 1;
    for (int i = 0; i < 96; i++) {
        CHECK_INT(toy_run(&t, 0, i % 32, 1, text, x), SWA_OK);
        CHECK_BITS(x, cold + i % 32 * TOY_DIM, TOY_DIM);
        CHECK_INT(swa_cache_end(&t.kv, 0), i % 32 + 1);
    }
    for (int i = 0; i < 3; i++) CHECK_INT(toy_run(&t, 0, 0, 32, text, x), SWA_OK);
    CHECK_BITS(x, cold, 32 * TOY_DIM);
    CHECK_INT(toy_run(&t, 0, 7, 3, text, x), SWA_ERR_LOST); /* 32 tokens in 16 slots: 7 is gone */
    CHECK_INT(toy_run(&t, 0, 30, 2, text, x), SWA_OK);
    CHECK_BITS(x, cold + 30 * TOY_DIM, 2 * TOY_DIM);
    CHECK_INT(toy_run(&t, 0, 33, 1, text, x), SWA_ERR_ORDER);
}

enum { CROWD = 64, DRAFTS = 5 };
static void crowd_runs(swa_run *runs, const int64_t *end, int n) {
    for (int i = 0; i < CROWD; i++) {
        runs[i] = t_run(i, end[i], n);
        runs[i].rewind = 1;
    }
}
/* 64 sequences verify 5 drafts each; one run of the batch asks for rows that are gone. Nobody moves. */
TEST(crowd_with_one_refused_run) {
    const swa_window w[2] = { swa_window_sliding(9), swa_window_sliding(4) };
    swa_cache_desc d = toy_desc(w, 2, 2, CROWD);
    float *cold[CROWD], *x = t_floats(CROWD * (DRAFTS + 40) * TOY_DIM);
    int64_t end[CROWD], held[CROWD];
    swa_run runs[CROWD];
    toy t;
    d.max_rollback = DRAFTS;
    REQUIRE(toy_open(&t, &d));
    for (int i = 0; i < CROWD; i++) {
        cold[i] = toy_cold(&d, i, 0, 100, text);
        REQUIRE(cold[i] != NULL);
        end[i] = 20 + i % 20;
        CHECK_INT(toy_run(&t, i, 0, (int32_t)end[i], text, x), SWA_OK);
    }
    for (int round = 0; round < 8; round++) {
        int bad = t_int(0, CROWD - 1);
        int64_t was;
        crowd_runs(runs, end, DRAFTS);
        CHECK_INT(toy_step(&t, runs, CROWD, text, x), SWA_OK);
        for (int i = 0; i < CROWD; i++) {
            CHECK_BITS(x + runs[i].row * TOY_DIM, cold[i] + end[i] * TOY_DIM, DRAFTS * TOY_DIM);
            held[i] = end[i] + DRAFTS;
            end[i] += t_int(0, DRAFTS); /* accepted; the next begin takes back the rest */
        }
        was = end[bad];
        end[bad] = swa_cache_min_end(&t.kv, bad) - 1;
        crowd_runs(runs, end, DRAFTS);
        CHECK_STATUS(swa_step_begin(&t.kv, runs, CROWD), SWA_ERR_LOST);
        for (int i = 0; i < CROWD; i++) {
            CHECK_STATUS(runs[i].status, i == bad ? SWA_ERR_LOST : SWA_OK);
            CHECK_INT(swa_cache_end(&t.kv, i), held[i]);
        }
        end[bad] = was;
    }
}

/* ---- the laws of the ring, by brute force ---- */

/* What each slot of each layer holds, written row by row, and nothing derived from it. Histories of appends and
   rewinds, far ones too where windows need no row; after each, everything that the library says about rows is read
   off the slots. One number per row and no attention, so that there can be many. */
enum { LAW_LAYERS = 3, LAW_CAP = 96, LAW_END = 400 };
typedef struct {
    swa_window window[LAW_LAYERS];
    int64_t W[LAW_LAYERS], cap[LAW_LAYERS], slot[LAW_LAYERS][LAW_CAP], start, end, top, base, origin;
    swa_cache_desc d;
    swa_cache kv;
    unsigned char *mem, *scratch;
} laws;

static int law_has(const laws *m, int l, int64_t pos) {
    if (pos < m->start || pos >= m->end) return 0;
    return pos < m->window[l].n_sink || m->slot[l][(pos - m->origin + 4096 * m->cap[l]) % m->cap[l]] == pos;
}
/* Whether a query at pos would find what it needs. Rows visible to it lie in [pos - 40, pos) or are pinned. */
static int law_exact(const laws *m, int64_t pos) {
    for (int l = 0; l < LAW_LAYERS; l++)
        for (int64_t k = m->start > pos - 40 ? m->start : pos - 40; k < pos; k++)
            if (swa_visible(&m->window[l], pos, k) && !law_has(m, l, k)) return 0;
    return 1;
}
static void law_window(laws *m, int l, int kind) {
    m->W[l] = t_int(1, kind == 2 ? 24 : 12);
    m->window[l] = kind == 0 ? swa_window_sliding(1)
                 : kind == 1 ? swa_window_sliding(m->W[l])
                 : kind == 2 ? swa_window_chunked(m->W[l])
                             : swa_window_sinks(m->W[l], t_int(1, 5));
    if (kind == 0) m->W[l] = 1;
}
static int law_open(laws *m) {
    int64_t most = 0;
    int loose = t_int(0, 1); /* only windows that may go back further than the ring */
    memset(m, 0, sizeof *m);
    memset(m->slot, 0xff, sizeof m->slot);
    m->d = toy_desc(m->window, LAW_LAYERS, LAW_LAYERS, 2);
    m->d.shape.n_heads = m->d.shape.head_dim = 1;
    m->d.max_rollback = t_int(0, 15);
    for (int l = 0; l < LAW_LAYERS; l++) {
        law_window(m, l, loose ? 2 * t_int(0, 1) : t_int(0, 3));
        if (m->W[l] > most) most = m->W[l];
    }
    if (t_int(0, 1)) m->d.capacity = most - 1 + (m->d.max_rollback ? m->d.max_rollback : 1) + t_int(0, 9);
    for (int l = 0; l < LAW_LAYERS; l++) {
        int64_t need = m->W[l] - 1 + (m->d.max_rollback ? m->d.max_rollback : 1);
        m->cap[l] = m->d.capacity ? m->d.capacity : (need + 15) / 16 * 16;
    }
    m->start = m->end = m->top = t_int(0, 2) ? 0 : t_int(0, 30);
    m->origin = t_int(0, 2) ? 0 : t_int(0, 40);
    return t_cache_new(&m->kv, &m->d, 1) && CHECK_OK(swa_cache_reset(&m->kv, 0, m->start, m->origin));
}
static int law_append(laws *m, int seq, int n) {
    float x[64] = { 0 };
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.mode = SWA_STORE_ONLY;
    a.k.p = a.v.p = x;
    if (!CHECK_OK(swa_step_one(&m->kv, seq, swa_cache_end(&m->kv, seq), n))) return 0;
    for (int l = 0; l < LAW_LAYERS; l++)
        for (int phase = 0; phase < SWA_PHASES; phase++)
            if (!CHECK_OK(swa_attend_part(&m->kv, l, &a, phase, 0, 1))) return 0;
    if (seq != 0) return 1;
    for (; n > 0; n--, m->end++)
        for (int l = 0; l < LAW_LAYERS; l++)
            if (m->end >= m->window[l].n_sink) m->slot[l][(m->end - m->origin + 4096 * m->cap[l]) % m->cap[l]] = m->end;
    if (m->end > m->top) m->top = m->end;
    return 1;
}
/* The law of rewinds counts from the furthest end. A rewind that leaves no row in any ring is a new beginning. */
static void law_truncate(laws *m, int64_t to) {
    int left = 0;
    m->end = to;
    for (int l = 0; l < LAW_LAYERS; l++) left |= law_has(m, l, to - 1);
    if (!left) m->top = m->base = to;
}
/* The same rows are said to be there by slot, first, read and spans, and a fork and a blob bring them along. */
static int law_rows(const laws *m, int seq) {
    float k[LAW_END];
    for (int l = 0; l < LAW_LAYERS; l++) {
        swa_kv span[3];
        int64_t first = m->end, held = 0, spans = 0;
        int n = swa_cache_spans(&m->kv, seq, l, span);
        while (first > m->start && first > m->window[l].n_sink && law_has(m, l, first - 1)) first--;
        if (!CHECK_INT(swa_cache_first(&m->kv, seq, l), first)) return 0;
        for (int i = 0; i < n; i++) spans += span[i].n;
        for (int64_t p = m->start; p < m->end; p++) {
            held += law_has(m, l, p);
            if (!CHECK_INT(swa_cache_slot(&m->kv, seq, l, p) >= 0, law_has(m, l, p))) return 0;
        }
        if (!CHECK_INT(spans, held)) return 0; /* so what is there has no gap */
        if (!CHECK_OK(swa_cache_read(&m->kv, seq, l, first, (int32_t)(m->end - first), k, NULL))) return 0;
    }
    return 1;
}
/* Every rewind is taken iff nothing that is needed is missing, and rows enough can always be taken back. */
static int law_rewinds(laws *m) {
    int64_t least = m->end, always = m->d.max_rollback ? m->d.max_rollback : 1;
    for (int64_t p = m->end - 1; p > m->start; p--) {
        int exact = law_exact(m, p);
        if (exact) least = p;
        CHECK_OK(swa_cache_fork(&m->kv, 1, 0, -1));
        if (!CHECK_STATUS(swa_cache_truncate(&m->kv, 1, p), exact ? SWA_OK : SWA_ERR_LOST)) return 0;
        if (!CHECK(exact || p < m->base || m->top - p > always)) return 0;
        for (int l = 0; l < LAW_LAYERS; l++) { /* r <= capacity-(W-1), layer by layer */
            int64_t r = m->cap[l] - (m->W[l] - 1);
            if (p < m->base || m->top - p > r) continue;
            for (int64_t k = m->start; k < p; k++)
                if (!CHECK(!swa_visible(&m->window[l], p, k) || law_has(m, l, k))) return 0;
        }
    }
    return CHECK_INT(swa_cache_min_end(&m->kv, 0), least);
}
static int law_copies(laws *m) {
    size_t n = swa_cache_save_bytes(&m->kv, 0);
    unsigned char *blob = (unsigned char *)malloc(n);
    int ok = CHECK_OK(swa_cache_fork(&m->kv, 1, 0, -1)) && law_rows(m, 1)
          && CHECK_OK(swa_cache_save(&m->kv, 0, blob, n)) && CHECK_OK(swa_cache_reset(&m->kv, 1, 0, 0))
          && CHECK_OK(swa_cache_load(&m->kv, 1, blob, n)) && law_rows(m, 1) && law_append(m, 1, 3);
    free(blob);
    return ok;
}
TEST(what_a_ring_holds_by_brute_force) {
    static laws m;
    long rewinds = 0, far = 0;
    for (int i = 0; i < 400; i++) {
        const t_block *before = t_.blocks;
        if (!law_open(&m)) return;
        for (int op = 0; op < 16 && m.end < LAW_END - 64; op++) {
            int n = t_int(0, 1) ? t_int(1, 12) : t_int(1, 60);
            int64_t to = m.start;
            t_label("history %d, call %d", i, op);
            if (!law_append(&m, 0, n) || !law_rows(&m, 0) || (op % 4 == 0 && !law_rewinds(&m))) return;
            for (int64_t p = t_int(0, 1) ? m.start + 1 : m.end - 40, found = 0; p < m.end; p++)
                if (p > m.start && law_exact(&m, p) && t_int(0, (int)found++) == 0) to = p;
            if (t_int(0, 3) == 0 || to == m.start) continue;
            if (!CHECK_OK(swa_cache_truncate(&m.kv, 0, to))) return;
            rewinds++;
            for (int l = 0; l < LAW_LAYERS; l++) far += m.end - to > m.cap[l];
            law_truncate(&m, to);
            if (!law_rows(&m, 0) || !law_copies(&m)) return;
        }
        t_free_to(before);
    }
    t_label("%ld rewinds, %ld further than a ring", rewinds, far);
    CHECK(rewinds > 100 && far > 50);
}

/* Two rewinds below a small ring, the second into rows that were written between them: a copy has every row that the
   next token needs, and so have the views. */
TEST(a_second_rewind_keeps_what_is_needed) {
    const swa_window w[2] = { swa_window_sliding(1), swa_window_chunked(19) };
    swa_cache_desc d = toy_desc(w, 2, 2, 3);
    float *cold, *x = t_floats(1100 * TOY_DIM), k[3 * TOY_HEAD_DIM];
    unsigned char *blob;
    size_t n;
    toy t;
    d.max_rollback = 15; /* 16 slots and 48 */
    cold = toy_cold(&d, 0, 0, 1100, one_text);
    REQUIRE(cold && toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 0, 1100, one_text, x), SWA_OK);
    CHECK_OK(swa_cache_truncate(&t.kv, 0, 950)); /* a chunk begins there: nothing is needed */
    CHECK_INT(toy_run(&t, 0, 950, 40, one_text, x), SWA_OK);
    CHECK_OK(swa_cache_truncate(&t.kv, 0, 972)); /* layer 1 needs 969..971, and they are there */
    CHECK(swa_cache_first(&t.kv, 0, 1) <= 969);
    CHECK_OK(swa_cache_read(&t.kv, 0, 1, 969, 3, k, NULL));
    blob = saved(&t.kv, 0, &n);
    CHECK_OK(swa_cache_load(&t.kv, 1, blob, n));
    CHECK_OK(swa_cache_fork(&t.kv, 2, 0, -1));
    for (int seq = 0; seq < 3; seq++) {
        CHECK_INT(toy_run(&t, seq, 972, 1, one_text, x), SWA_OK);
        CHECK_BITS(x, cold + 972 * TOY_DIM, TOY_DIM);
    }
}

/* ---- replay ---- */

static void check_replay(const swa_window *w, int n_windows, int n_layers, int64_t context, int64_t start, int64_t pos,
                         int64_t want) {
    swa_cache_desc d = toy_desc(w, n_windows, n_layers, 1);
    float *cold, *x = t_floats(200 * TOY_DIM);
    int64_t from;
    int32_t n = (int32_t)(pos + 3 - start);
    toy t;
    d.max_context = context;
    cold = toy_cold(&d, 0, start, n, text);
    if (!cold || !toy_open(&t, &d) || !CHECK_OK(swa_cache_reset(&t.kv, 0, start, 0))) return;
    CHECK_INT(toy_run(&t, 0, start, n, text, x), SWA_OK);
    from = swa_cache_replay_from(&t.kv, 0, pos);
    if (!CHECK_INT(from, want)) return;
    CHECK_OK(swa_cache_reset(&t.kv, 0, from, 0));
    CHECK_INT(toy_run(&t, 0, from, (int32_t)(pos + 3 - from), text, x), SWA_OK);
    CHECK_BITS(x + (pos - from) * TOY_DIM, cold + (pos - start) * TOY_DIM, 3 * TOY_DIM);
    if (from == pos) return;
    CHECK_OK(swa_cache_reset(&t.kv, 0, from + 1, 0)); /* one later is not enough */
    CHECK_INT(toy_run(&t, 0, from + 1, (int32_t)(pos + 3 - from - 1), text, x), SWA_OK);
    CHECK(memcmp(x + (pos - from - 1) * TOY_DIM, cold + (pos - start) * TOY_DIM, TOY_DIM * sizeof *x) != 0);
}
TEST(replay_from_there_and_not_one_later) {
    const swa_window s3 = swa_window_sliding(3), one = swa_window_sliding(1);
    const swa_window mix[3] = { swa_window_sliding(4), swa_window_sliding(2), swa_window_sliding(7) };
    const swa_window causal[2] = { swa_window_sliding(4), swa_window_causal() };
    const swa_window sinks[2] = { swa_window_sinks(4, 2), swa_window_sliding(3) }, llama = swa_window_chunked(8);
    const swa_window late[2] = { swa_window_sliding(3), swa_window_chunked(8) };
    check_replay(&s3, 1, 1, 0, 0, 50, 48);
    check_replay(&s3, 1, 4, 0, 0, 50, 42);
    check_replay(&s3, 1, 4, 0, 45, 50, 45); /* never before the start */
    check_replay(&one, 1, 5, 0, 0, 50, 50);
    check_replay(mix, 3, 3, 0, 0, 60, 60 - 3 - 1 - 6);
    check_replay(mix, 3, 5, 0, 0, 60, 60 - 3 - 1 - 6 - 3 - 1);
    check_replay(causal, 2, 2, 128, 10, 60, 10);
    check_replay(sinks, 2, 2, 0, 0, 60, 0);
    check_replay(&llama, 1, 3, 0, 0, 53, 48);
    check_replay(late, 2, 2, 0, 0, 53, 46); /* 53 needs its chunk from 48 on, and that two more */
    check_replay(late, 2, 2, 0, 0, 48, 46);
}

/* ---- layers ---- */

TEST(windows_repeat_over_the_layers) {
    const swa_window w[3] = { swa_window_sliding(4), swa_window_sliding(2), swa_window_causal() };
    swa_cache_desc d = toy_desc(w, 3, 7, 2);
    float *x = t_floats(80 * TOY_DIM), *cold;
    toy t;
    d.max_context = 64;
    cold = toy_cold(&d, 1, 0, 64, text);
    REQUIRE(cold && toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 1, 0, 40, text, x), SWA_OK);
    CHECK_BITS(x, cold, 40 * TOY_DIM);
    for (int layer = 0; layer < 7; layer++) {
        CHECK_INT(swa_cache_first(&t.kv, 1, layer), layer % 3 == 2 ? 0 : 24); /* 16 slots in the windowed */
        CHECK_INT(swa_cache_end(&t.kv, 1), 40);
    }
    CHECK_INT(swa_cache_first(&t.kv, 1, 7), -1);
    CHECK_INT(swa_cache_replay_from(&t.kv, 1, 30), 0);
    CHECK_INT(toy_run(&t, 1, 40, 25, text, x), SWA_ERR_FULL);
    CHECK_INT(toy_run(&t, 1, 40, 24, text, x), SWA_OK);
    CHECK_BITS(x, cold + 40 * TOY_DIM, 24 * TOY_DIM);
    CHECK_INT(toy_run(&t, 1, 64, 1, text, x), SWA_ERR_FULL);
    CHECK_OK(swa_cache_truncate(&t.kv, 1, 60));
    CHECK_INT(toy_run(&t, 1, 60, 5, text, x), SWA_ERR_FULL);
    CHECK_INT(toy_run(&t, 1, 60, 4, text, x), SWA_OK);
    CHECK_BITS(x, cold + 60 * TOY_DIM, 4 * TOY_DIM);
    CHECK_OK(swa_cache_reset(&t.kv, 0, 1000, 0));
    CHECK_INT(toy_run(&t, 0, 1000, 64, text, x), SWA_OK); /* max_context counts from a sequence's own start */
    CHECK_INT(toy_run(&t, 0, 1064, 1, text, x), SWA_ERR_FULL);
}

/* Windows that no layer has count for nothing: not what is lost, not what is full. */
TEST(more_windows_than_layers) {
    const swa_window w[3] = { swa_window_sliding(4), swa_window_sliding(2), swa_window_sliding(40) };
    const swa_window full[2] = { swa_window_sliding(4), swa_window_causal() };
    swa_cache_desc two = toy_desc(w, 2, 2, 1), three = toy_desc(w, 3, 2, 1), one = toy_desc(full, 2, 1, 1);
    float x[60 * TOY_DIM], y[60 * TOY_DIM];
    toy a, b;
    REQUIRE(toy_open(&a, &two) && toy_open(&b, &three));
    CHECK_INT(toy_run(&a, 0, 0, 60, text, x), SWA_OK);
    CHECK_INT(toy_run(&b, 0, 0, 60, text, y), SWA_OK);
    CHECK_BITS(x, y, 60 * TOY_DIM);
    CHECK_INT(swa_cache_min_end(&b.kv, 0), swa_cache_min_end(&a.kv, 0));
    CHECK_OK(swa_cache_truncate(&b.kv, 0, swa_cache_min_end(&a.kv, 0)));
    CHECK_INT(swa_cache_min_end(&b.kv, 0), swa_cache_min_end(&a.kv, 0));
    CHECK_INT(swa_cache_replay_from(&b.kv, 0, 59), swa_cache_replay_from(&a.kv, 0, 59));
    one.max_context = 16;
    REQUIRE(toy_open(&a, &one));
    CHECK_INT(toy_run(&a, 0, 0, 60, text, x), SWA_OK);
}

/* A sequence may begin where reset says, causal layers too. */
TEST(sequences_begin_anywhere) {
    static const int64_t starts[] = { 1, 255, 256, 100000, (int64_t)1 << 32, (int64_t)1 << 40, INT64_MAX - 40 };
    const swa_window w[2] = { swa_window_sliding(5), swa_window_causal() };
    for (int i = 0; i < (int)(sizeof starts / sizeof *starts); i++)
        for (int n_windows = 1; n_windows <= 2; n_windows++) {
            swa_cache_desc d = toy_desc(w, n_windows, 2, 1);
            float x[30 * TOY_DIM], y[30 * TOY_DIM];
            toy t;
            t_label("start %lld, %d windows", (long long)starts[i], n_windows);
            d.max_context = 64;
            REQUIRE(toy_open(&t, &d));
            CHECK_OK(swa_cache_reset(&t.kv, 0, starts[i], 0));
            CHECK_INT(toy_run(&t, 0, starts[i], 20, text, x), SWA_OK);
            CHECK_INT(toy_run(&t, 0, starts[i] + 20, 1, text, x + 20 * TOY_DIM), SWA_OK);
            CHECK_INT(swa_cache_first(&t.kv, 0, 1), n_windows == 2 ? starts[i] : starts[i] + 5);
            CHECK_OK(swa_cache_reset(&t.kv, 0, starts[i], 0));
            for (int p = 0; p < 21; p++) CHECK_INT(toy_run(&t, 0, starts[i] + p, 1, text, y + p * TOY_DIM), SWA_OK);
            CHECK_BITS(x, y, 21 * TOY_DIM);
        }
}

/* ---- pinned tokens ---- */

TEST(sinks_stay) {
    const swa_window w = swa_window_sinks(4, 3);
    swa_cache_desc d = toy_desc(&w, 1, 1, 1);
    float *x = t_floats(200 * TOY_DIM);
    float k0[3 * TOY_HEAD_DIM], v0[3 * TOY_HEAD_DIM], k1[3 * TOY_HEAD_DIM], v1[3 * TOY_HEAD_DIM];
    toy t;
    for (int audit = 0; audit < 2; audit++) {
        d.audit = audit;
        REQUIRE(toy_open(&t, &d));
        CHECK_INT(toy_run(&t, 0, 0, 3, text, x), SWA_OK);
        CHECK_OK(swa_cache_read(&t.kv, 0, 0, 0, 3, k0, v0));
        for (int i = 0; i < 40; i++) {
            CHECK_INT(toy_run(&t, 0, swa_cache_end(&t.kv, 0), t_int(1, 9), text, x), SWA_OK);
            CHECK_OK(swa_cache_read(&t.kv, 0, 0, 0, 3, k1, v1));
            CHECK_BITS(k0, k1, 3 * TOY_HEAD_DIM);
            CHECK_BITS(v0, v1, 3 * TOY_HEAD_DIM);
        }
        for (int i = 0; i < 3; i++) CHECK_INT(swa_cache_slot(&t.kv, 0, 0, i), i);
        CHECK_INT(swa_cache_slot(&t.kv, 0, 0, 3), -1);
        CHECK_STATUS(swa_cache_read(&t.kv, 0, 0, 2, 2, k1, NULL), SWA_ERR_LOST);
    }
}
/* A sequence that begins after position 0 holds only the sinks it was given. */
TEST(sequences_that_begin_among_the_sinks) {
    const swa_window w = swa_window_sinks(4, 5);
    for (int64_t start = 0; start < 8; start++)
        for (int chunk = 1; chunk <= 9; chunk++) {
            swa_cache_desc d = toy_desc(&w, 1, 1, 1);
            float x[24 * TOY_DIM], *cold = t_floats(24 * TOY_DIM);
            toy t, u;
            t_label("start %d chunk %d", (int)start, chunk);
            REQUIRE(toy_open(&t, &d) && toy_open(&u, &d));
            CHECK_OK(swa_cache_reset(&t.kv, 0, start, 0));
            CHECK_OK(swa_cache_reset(&u.kv, 0, start, 0));
            u.put_first = 1; /* one at a time */
            for (int p = 0; p < 24; p++) CHECK_INT(toy_run(&u, 0, start + p, 1, text, cold + p * TOY_DIM), SWA_OK);
            for (int p = 0; p < 24; p += chunk)
                CHECK_INT(toy_run(&t, 0, start + p, p + chunk <= 24 ? chunk : 24 - p, text, x + p * TOY_DIM), SWA_OK);
            CHECK_BITS(x, cold, 24 * TOY_DIM);
        }
}

/* ---- capacity ---- */

TEST_EACH_ISA(putting_first_is_exact_within_the_capacity) {
    for (int64_t W = 1; W <= 9; W++)
        for (int32_t chunk = 1; chunk <= 9; chunk++) {
            const swa_window w = swa_window_sliding(W);
            int64_t cap = swa_required_capacity(&w, chunk, 0);
            swa_cache_desc d = toy_desc(&w, 1, 2, 1);
            float *cold, x[10 * TOY_DIM];
            toy t;
            t_label("W=%d chunk=%d", (int)W, (int)chunk);
            CHECK_INT(cap, W - 1 + chunk);
            d.capacity = cap;
            d.isa = isa;
            cold = toy_cold(&d, 0, 0, 40, text);
            REQUIRE(cold && toy_open(&t, &d));
            t.put_first = 1;
            for (int32_t p = 0; p + chunk <= 40; p += chunk) {
                CHECK_INT(toy_run(&t, 0, p, chunk, text, x), SWA_OK);
                CHECK_BITS(x, cold + p * TOY_DIM, chunk * TOY_DIM);
            }
            CHECK_INT(toy_run(&t, 0, swa_cache_end(&t.kv, 0), chunk + 1, text, x), SWA_ERR_CAPACITY);
            t.put_first = 0;      /* the step is begun again, the other way round: */
            if (W == 1) continue; /* which needs no row */
            CHECK_INT(toy_run(&t, 0, 40 / chunk * chunk, chunk, text, x), SWA_ERR_LOST);
            CHECK_INT(swa_cache_end(&t.kv, 0), 40 / chunk * chunk + chunk + 1);
        }
}
TEST(required_capacity) {
    swa_window w = swa_window_sliding(4096), c = swa_window_chunked(8192), bad = swa_window_sliding(0);
    CHECK_INT(swa_required_capacity(&w, 0, 0), 4096);
    CHECK_INT(swa_required_capacity(&w, 1, 1), 4096);
    CHECK_INT(swa_required_capacity(&w, 512, 8), 4095 + 512);
    CHECK_INT(swa_required_capacity(&w, 8, 512), 4095 + 512);
    CHECK_INT(swa_required_capacity(&c, 16, 0), 8191 + 16);
    CHECK_INT(swa_required_capacity(&w, -1, 0), 0);
    CHECK_INT(swa_required_capacity(&w, 0, -1), 0);
    CHECK_INT(swa_required_capacity(&bad, 1, 1), 0);
    CHECK_INT(swa_required_capacity(NULL, 1, 1), 0);
    CHECK_INT(swa_required_capacity(&w, INT64_MAX, 1), 0);
    w = swa_window_causal();
    CHECK_INT(swa_required_capacity(&w, 1, 1), 0);
    w = swa_window_symmetric(4);
    CHECK_INT(swa_required_capacity(&w, 1, 1), 0);
    w = swa_window_sliding(INT64_MAX);
    CHECK_INT(swa_required_capacity(&w, 1, 1), 0);
    w = swa_window_flash(INT64_MAX, 0);
    CHECK_INT(swa_required_capacity(&w, 1, 1), 0);
    w = swa_window_flash(INT64_MAX - 3, 0);
    CHECK_INT(swa_required_capacity(&w, 1, 2), INT64_MAX - 1);
}
/* The default is what a window needs, in whole tiles; a capacity that is given is taken as it is. */
TEST(capacity_default_and_exact) {
    static const int64_t W[] = { 1, 15, 16, 17, 64, 4096 };
    for (int i = 0; i < 6; i++)
        for (int64_t rollback = 0; rollback <= 17; rollback += 17) {
            swa_window w = swa_window_sliding(W[i]);
            swa_cache_desc d = toy_desc(&w, 1, 1, 1);
            int64_t need = W[i] - 1 + (rollback ? rollback : 1), cap = (need + 15) / 16 * 16;
            float *x = t_floats(9000 * TOY_DIM);
            toy t;
            t_label("W=%d rollback=%d", (int)W[i], (int)rollback);
            d.max_rollback = rollback;
            REQUIRE(toy_open(&t, &d));
            CHECK_INT(toy_run(&t, 0, 0, (int32_t)(2 * cap), text, x), SWA_OK);
            CHECK_INT(swa_cache_first(&t.kv, 0, 0), cap);
            d.capacity = need;
            REQUIRE(toy_open(&t, &d));
            CHECK_INT(toy_run(&t, 0, 0, (int32_t)(2 * cap), text, x), SWA_OK);
            CHECK_INT(swa_cache_first(&t.kv, 0, 0), 2 * cap - need);
            CHECK_INT(swa_cache_slot(&t.kv, 0, 0, 2 * cap - 1), (2 * cap - 1) % need);
            d.capacity = 0; /* under audit the last one that can be taken back is what was asked for */
            d.audit = 1;
            REQUIRE(toy_open(&t, &d));
            CHECK_INT(toy_run(&t, 0, 0, (int32_t)(2 * cap), text, x), SWA_OK);
            CHECK_INT(swa_cache_min_end(&t.kv, 0), W[i] > 1 ? 2 * cap - (rollback ? rollback : 1) : 1);
            d.audit = 0;
            d.capacity = W[i] - 2 + rollback; /* 0 = default; W-1 holds what attention needs */
            if (d.capacity > 0) CHECK_INT(swa_cache_bytes(&d), 0);
        }
}

static size_t scale_bytes(swa_type type, size_t dim) {
    return type == SWA_Q8 ? 4 : type == SWA_Q8_32 ? (dim + 31) / 32 * 4 : 0;
}
/* What three more layers cost: their slots, K transposed and V padded to 16 numbers, a scale where the type has one;
   the layer itself, its ticket, and the interval that each of three sequences has there, 24 bytes. */
TEST(bytes_per_layer) {
    static const int size[TYPES] = { 4, 2, 2, 1, 1, 1, 1 };
    const swa_window w = swa_window_sinks(100, 5);
    for (int i = 0; i < 2 * TYPES * TYPES; i++) {
        const int types = TYPES * TYPES;
        swa_cache_desc d = toy_desc(&w, 1, 1, 3);
        size_t slots = 16 + 112, one, k, v, tail;
        d.k_type = ring_types[i % TYPES];
        d.v_type = ring_types[i / TYPES % TYPES];
        d.tail_type = ring_types[(i + 1) % TYPES];
        d.shape.n_kv_heads = 2;
        d.shape.head_dim = 41;
        d.shape.v_dim = 19;
        d.shape.tail_dim = i < types ? 0 : 6;
        d.shape.v_in_k = i >= types && i % 2;
        k = 2 * slots * (size_t)(41 * size[i % TYPES]) + 2 * slots * scale_bytes(d.k_type, 41);
        v = 2 * slots * (size_t)(32 * size[i / TYPES % TYPES]) + 2 * slots * scale_bytes(d.v_type, 19);
        tail = 2 * slots * (size_t)(6 * size[(i + 1) % TYPES]) + 2 * slots * scale_bytes(d.tail_type, 6);
        one = swa_cache_bytes(&d);
        d.n_layers = 4;
        t_label("types %d %d, tail %d, v_in_k %d", i % TYPES, i / TYPES % TYPES, d.shape.tail_dim, d.shape.v_in_k);
        one = swa_cache_bytes(&d) - one - 3 * 3 * (k + (d.shape.v_in_k ? 0 : v) + (i < types ? 0 : tail));
        CHECK(one >= 3 * 3 * 24 && one <= 3 * 640 && one % 64 == 0);
    }
}

/* v_type and tail_type left 0 beside a narrow k_type are that type, not f32: as much memory, the same rows, and copies
   between both ways of saying it. */
TEST(types_left_zero_are_as_k) {
    const swa_window w = swa_window_sinks(12, 3);
    for (int i = 0; i < TYPES + 1; i++) {
        swa_cache_desc named = toy_desc(&w, 1, 1, 1), zero;
        float *rows = t_random(20 * 40, 1.0f), got[2][20 * 40];
        swa_attn a;
        swa_kv spans[3];
        swa_cache kv[2];
        named.shape.n_kv_heads = 2;
        named.shape.head_dim = 6;
        named.shape.tail_dim = 4;
        named.shape.v_dim = 10;
        zero = named;
        named.k_type = named.v_type = named.tail_type = i < TYPES ? ring_types[i] : SWA_F32;
        zero.k_type = i < TYPES ? ring_types[i] : SWA_TYPE_DEFAULT; /* the last: all three are 0 */
        t_label("type %d", i);
        memset(&a, 0, sizeof a);
        a.mode = SWA_STORE_ONLY;
        a.k.p = rows;
        a.k_tail.p = rows + 20 * 12;
        a.v.p = rows + 20 * 20;
        REQUIRE(swa_cache_bytes(&zero) == swa_cache_bytes(&named));
        for (int z = 0; z < 2; z++) {
            REQUIRE(t_cache_new(&kv[z], z ? &zero : &named, 1) && CHECK_OK(swa_step_one(&kv[z], 0, 0, 12)));
            REQUIRE_OK(swa_attend(&kv[z], 0, &a));
            REQUIRE_OK(swa_cache_read(&kv[z], 0, 0, 0, 12, got[z], got[z] + 12 * 20));
            CHECK(swa_cache_spans(&kv[z], 0, 0, spans) > 0);
            CHECK(spans[0].v_type == named.v_type && spans[0].tail_type == named.v_type);
        }
        CHECK_BITS(got[1], got[0], 12 * 40);
        CHECK((got[0][12 * 20] == rows[20 * 20]) == (named.v_type == SWA_F32)); /* and they are rounded */
        CHECK_OK(swa_cache_copy(&kv[0], 0, &kv[1], 0, -1));
    }
}

/* ---- forks ---- */

TEST_EACH_ISA(forks_diverge_from_a_shared_prompt) {
    const swa_window w[2] = { swa_window_sliding(6), swa_window_sinks(3, 2) };
    swa_cache_desc d = toy_desc(w, 2, 3, 9);
    float x[60 * TOY_DIM], *cold;
    toy t;
    d.isa = isa;
    cold = toy_cold(&d, 0, 0, 60, text); /* sequence 0's own text */
    REQUIRE(cold && toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 0, 41, text, x), SWA_OK);
    for (int s = 1; s < 9; s++) CHECK_OK(swa_cache_fork(&t.kv, s, 0, s % 2 ? -1 : 40));
    for (int s = 1; s < 9; s++) {
        toy u;
        float y[20 * TOY_DIM];
        int64_t from = s % 2 ? 41 : 40;
        REQUIRE(toy_open(&u, &d)); /* the same in a cache of its own */
        CHECK_INT(toy_run(&u, 0, 0, (int32_t)from, text, x), SWA_OK);
        CHECK_OK(swa_cache_fork(&u.kv, s, 0, -1));
        CHECK_OK(swa_cache_reset(&u.kv, 0, 0, 0));
        CHECK_INT(toy_run(&u, s, from, 19, text, y), SWA_OK);
        CHECK_INT(toy_run(&t, s, from, 19, text, x), SWA_OK);
        CHECK_BITS(x, y, 19 * TOY_DIM);
    }
    CHECK_INT(toy_run(&t, 0, 41, 19, text, x), SWA_OK); /* and the parent never noticed */
    CHECK_BITS(x, cold + 41 * TOY_DIM, 19 * TOY_DIM);
}

/* ---- from cache to cache ---- */

/* Copied while it runs, into a cache of another capacity, context and number of sequences: goes on to the bit. */
static void copied_elsewhere(int isa, swa_type k, swa_type v, int64_t from_slots, int64_t to_slots, int64_t end) {
    const swa_window w[3] = { swa_window_sliding(7), swa_window_sinks(5, 3), swa_window_causal() };
    swa_cache_desc d = toy_desc(w, 3, 4, 2);
    const int64_t pos = end < 0 ? 40 : end;
    float x[41 * TOY_DIM], *cold;
    toy a, b;
    d.isa = isa;
    d.k_type = k;
    d.v_type = v;
    d.max_context = 64;
    cold = toy_cold(&d, 0, 0, 64, one_text);
    d.capacity = from_slots;
    if (!cold || !toy_open(&a, &d)) return;
    d.capacity = to_slots;
    d.max_context = 128;
    d.n_seqs = 3;
    d.audit = 1;
    if (!toy_open(&b, &d)) return;
    t_label("%s/%s from %d slots to %d, end %d", t_type(k), t_type(v), (int)from_slots, (int)to_slots, (int)end);
    CHECK_INT(toy_run(&a, 0, 0, 40, one_text, x), SWA_OK);
    CHECK_INT(toy_run(&b, 2, 0, 11, one_text, x), SWA_OK); /* holds something else, and another runs beside it */
    CHECK_INT(toy_run(&b, 1, 0, 9, one_text, x), SWA_OK);
    CHECK_OK(swa_cache_copy(&b.kv, 2, &a.kv, 0, end));
    CHECK_INT(swa_cache_end(&b.kv, 2), pos);
    for (int layer = 0; layer < 4; layer++) {
        const int64_t first = swa_cache_first(&b.kv, 2, layer);
        CHECK(first >= swa_cache_first(&a.kv, 0, layer) && pos - first >= 6);
        for (int64_t p = first; p < pos; p++) {
            float k0[TOY_HEAD_DIM], v0[TOY_HEAD_DIM], k1[TOY_HEAD_DIM], v1[TOY_HEAD_DIM];
            CHECK_OK(swa_cache_read(&a.kv, 0, layer, p, 1, k0, v0));
            CHECK_OK(swa_cache_read(&b.kv, 2, layer, p, 1, k1, v1));
            CHECK_BITS(k0, k1, TOY_HEAD_DIM);
            CHECK_BITS(v0, v1, TOY_HEAD_DIM);
        }
    }
    for (int64_t p = pos; p < 60; p++) {
        CHECK_INT(toy_run(&b, 2, p, 1, one_text, x), SWA_OK);
        CHECK_BITS(x, cold + p * TOY_DIM, TOY_DIM);
    }
    CHECK_INT(toy_run(&b, 1, 9, 20, one_text, x), SWA_OK);
    CHECK_BITS(x, cold + 9 * TOY_DIM, 20 * TOY_DIM);
    CHECK_INT(toy_run(&a, 0, 40, 4, one_text, x), SWA_OK); /* and the source never noticed */
    CHECK_BITS(x, cold + 40 * TOY_DIM, 4 * TOY_DIM);
}
TEST_EACH_ISA(copies_into_caches_of_another_size) {
    static const int64_t slots[] = { 8, 13, 16, 30 };
    for (int i = 0; i < TYPES; i++)
        for (int j = 0; j < 4; j++) {
            copied_elsewhere(isa, ring_types[i], ring_types[j], slots[i % 4], slots[j], -1);
            copied_elsewhere(isa, ring_types[j], ring_types[i], slots[i % 4], slots[j], 39);
        }
}
/* A ring that was full goes on in a larger one. */
TEST(a_cache_that_has_become_too_small) {
    const swa_window w = swa_window_causal();
    swa_cache_desc d = toy_desc(&w, 1, 2, 1);
    float x[32 * TOY_DIM], *cold;
    toy small, large;
    d.max_context = 32;
    cold = toy_cold(&d, 0, 0, 32, text);
    d.max_context = 16;
    REQUIRE(cold && toy_open(&small, &d));
    d.max_context = 32;
    REQUIRE(toy_open(&large, &d));
    CHECK_INT(toy_run(&small, 0, 0, 16, text, x), SWA_OK);
    CHECK_INT(toy_run(&small, 0, 16, 1, text, x), SWA_ERR_FULL);
    CHECK_OK(swa_cache_copy(&large.kv, 0, &small.kv, 0, -1));
    CHECK_INT(toy_run(&large, 0, 16, 16, text, x), SWA_OK);
    CHECK_BITS(x, cold + 16 * TOY_DIM, 16 * TOY_DIM);
    CHECK_STATUS(swa_cache_copy(&small.kv, 0, &large.kv, 0, -1), SWA_ERR_FULL); /* 32 rows into 16 slots */
    CHECK_INT(swa_cache_end(&small.kv, 0), 16);
    CHECK_STATUS(swa_cache_copy(&small.kv, 0, &large.kv, 0, 17), SWA_ERR_FULL);
    CHECK_OK(swa_cache_copy(&small.kv, 0, &large.kv, 0, 12));
    CHECK_INT(toy_run(&small, 0, 12, 4, text, x), SWA_OK);
    CHECK_BITS(x, cold + 12 * TOY_DIM, 4 * TOY_DIM);
}
/* {0} is what the constructor means: rows of either go into the other's cache. */
TEST(a_window_of_zeros_is_causal) {
    const swa_window zeros = { 0 }, causal = swa_window_causal();
    swa_cache_desc d = toy_desc(&zeros, 1, 2, 1), e;
    float x[9 * TOY_DIM];
    toy a, b;
    d.max_context = 16;
    e = d;
    e.windows = &causal;
    REQUIRE(toy_open(&a, &d));
    REQUIRE(toy_open(&b, &e));
    CHECK_INT(toy_run(&a, 0, 0, 9, text, x), SWA_OK);
    CHECK_OK(swa_cache_copy(&b.kv, 0, &a.kv, 0, -1));
    CHECK_OK(swa_cache_copy(&a.kv, 0, &b.kv, 0, 7));
    CHECK_INT(swa_cache_end(&a.kv, 0), 7);
}
TEST(copies_that_are_refused) {
    const swa_window w[2] = { swa_window_sliding(4), swa_window_sliding(5) }, sinks = swa_window_sinks(4, 1);
    swa_cache_desc from = toy_desc(w, 1, 2, 2), to;
    float x[20 * TOY_DIM];
    unsigned char *before;
    toy a, b;
    REQUIRE(toy_open(&a, &from));
    CHECK_INT(toy_run(&a, 0, 0, 20, text, x), SWA_OK);
    for (int i = 0; i < 14; i++) {
        to = from;
        if (i == 1) to.shape.head_dim = 5;
        if (i == 2) to.shape.n_kv_heads = 2;
        if (i == 3) to.shape.v_dim = 3;
        if (i == 4) {
            to.shape.v_in_k = 1;
            to.shape.tail_dim = 0;
        }
        if (i == 5) to.shape.tail_dim = 1;
        if (i == 6) to.n_layers = 3;
        if (i == 7) to.k_type = SWA_F16;
        if (i == 8) to.v_type = SWA_BF16;
        if (i == 9) to.windows = &sinks;
        if (i == 10) {
            to.windows = w;
            to.n_windows = 2;
        }
        if (i == 11) to.capacity = 30; /* from here on they fit */
        if (i == 12) to.max_rollback = 9;
        if (i == 13) to.v_type = SWA_F32; /* as the default says */
        t_label("copy %d", i);
        REQUIRE(toy_open(&b, &to));
        before = (unsigned char *)t_alloc(b.bytes);
        memcpy(before, b.mem, b.bytes);
        CHECK_STATUS(swa_cache_copy(&b.kv, 1, &a.kv, 0, -1), i == 0 || i > 10 ? SWA_OK : SWA_ERR_ARG);
        CHECK_INT(swa_cache_end(&b.kv, 1), i == 0 || i > 10 ? 20 : 0);
        if (i > 0 && i <= 10) CHECK(memcmp(before, b.mem, b.bytes) == 0);
    }
    t_label("positions");
    REQUIRE(toy_open(&b, &from));
    before = (unsigned char *)t_alloc(b.bytes);
    memcpy(before, b.mem, b.bytes);
    CHECK_STATUS(swa_cache_copy(&b.kv, 0, &a.kv, 0, 21), SWA_ERR_ORDER);
    CHECK_STATUS(swa_cache_copy(&b.kv, 0, &a.kv, 0, 6), SWA_ERR_LOST);
    CHECK_STATUS(swa_cache_copy(&b.kv, 0, &a.kv, 0, -2), SWA_ERR_ARG);
    CHECK_STATUS(swa_cache_copy(&b.kv, 2, &a.kv, 0, -1), SWA_ERR_ARG);
    CHECK_STATUS(swa_cache_copy(&b.kv, 0, &a.kv, -1, -1), SWA_ERR_ARG);
    CHECK(memcmp(before, b.mem, b.bytes) == 0);
    CHECK_OK(swa_cache_copy(&b.kv, 0, &b.kv, 1, -1)); /* of one cache: a fork */
    CHECK_OK(swa_cache_copy(&a.kv, 1, &a.kv, 0, -1));
    CHECK_INT(swa_cache_end(&a.kv, 1), 20);
}

/* ---- blobs ---- */

static void blob_roundtrip(int isa, swa_type k, swa_type v, int64_t capacity) {
    const swa_window w[2] = { swa_window_sliding(7), swa_window_sinks(5, 3) };
    swa_cache_desc d = toy_desc(w, 2, 3, 3);
    float *x = t_floats(64 * TOY_DIM), *y = t_floats(64 * TOY_DIM);
    unsigned char *blob;
    size_t n;
    toy a, b;
    d.isa = isa;
    d.k_type = k;
    d.v_type = v;
    d.capacity = capacity;
    t_label("%s/%s capacity %d", t_type(k), t_type(v), (int)capacity);
    if (!toy_open(&a, &d) || !toy_open(&b, &d)) return;
    CHECK_OK(swa_cache_reset(&a.kv, 1, 5, 0));
    CHECK_INT(toy_run(&a, 1, 5, 58, text, x), SWA_OK);
    CHECK_INT(toy_run(&b, 1, 0, 50, text, x), SWA_OK); /* b holds something else */
    blob = saved(&a.kv, 1, &n);
    CHECK_OK(swa_cache_load(&b.kv, 1, blob, n));
    CHECK_OK(swa_cache_load(&b.kv, 2, blob, n));
    CHECK_INT(swa_cache_end(&b.kv, 2), 63);
    CHECK_INT(swa_cache_min_end(&b.kv, 1), swa_cache_min_end(&a.kv, 1));
    for (int i = 0; i < 3 * 7; i++) {
        CHECK_INT(toy_run(&a, 1, 63 + i, 1, text, x + i * TOY_DIM), SWA_OK);
        CHECK_INT(toy_run(&b, 1, 63 + i, 1, text, y + i * TOY_DIM), SWA_OK);
    }
    CHECK_BITS(x, y, 21 * TOY_DIM);
    blob = saved(&a.kv, -1, &n);
    CHECK_OK(swa_cache_load(&b.kv, -1, blob, n));
    CHECK_INT(swa_cache_end(&b.kv, 2), 0);
    CHECK_STATUS(swa_cache_load(&b.kv, 1, blob, n), SWA_ERR_BLOB);
    CHECK_INT(toy_run(&a, 1, 84, 5, text, x), SWA_OK);
    CHECK_INT(toy_run(&b, 1, 84, 5, text, y), SWA_OK);
    CHECK_BITS(x, y, 5 * TOY_DIM);
}
TEST_EACH_ISA(loading_is_exact) {
    for (int k = 0; k < TYPES; k++)
        for (int v = 0; v < TYPES; v++) blob_roundtrip(isa, ring_types[k], ring_types[v], v % 2 ? 9 : 0);
}
/* Cut anywhere, any bit turned: refused, and the cache is as it was. */
TEST(damaged_blobs_are_refused) {
    const swa_window w = swa_window_sliding(3);
    swa_cache_desc d = toy_desc(&w, 1, 1, 2);
    float x[20 * TOY_DIM];
    unsigned char *blob, *before, *more;
    size_t n;
    toy t;
    REQUIRE(toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 0, 20, text, x), SWA_OK);
    CHECK_INT(toy_run(&t, 1, 0, 7, text, x), SWA_OK);
    for (int seq = -1; seq <= 0; seq++) {
        n = swa_cache_save_bytes(&t.kv, seq);
        blob = (unsigned char *)t_alloc(n);
        more = (unsigned char *)t_alloc(n + 1);
        before = (unsigned char *)t_alloc(t.bytes);
        CHECK_STATUS(swa_cache_save(&t.kv, seq, blob, n - 1), SWA_ERR_MEMORY);
        CHECK_OK(swa_cache_save(&t.kv, seq, blob, n));
        memcpy(before, t.mem, t.bytes);
        for (size_t cut = 0; cut < n; cut++) {
            unsigned char *exact = (unsigned char *)malloc(cut + !cut); /* a read past the end is seen by ASan */
            memcpy(exact, blob, cut);
            CHECK_STATUS(swa_cache_load(&t.kv, seq, exact, cut), SWA_ERR_BLOB);
            free(exact);
        }
        memcpy(more, blob, n);
        CHECK_STATUS(swa_cache_load(&t.kv, seq, more, n + 1), SWA_ERR_BLOB);
        for (size_t i = 0; i < n * 8; i++) {
            blob[i / 8] ^= (unsigned char)(1 << i % 8);
            CHECK_STATUS(swa_cache_load(&t.kv, seq, blob, n), SWA_ERR_BLOB);
            blob[i / 8] ^= (unsigned char)(1 << i % 8);
        }
        CHECK(memcmp(before, t.mem, t.bytes) == 0);
        CHECK_OK(swa_cache_load(&t.kv, seq, blob, n));
    }
}
/* The checksum as swa.h computes it, so that what lies behind it is reached: a blob that somebody made by hand. */
static void sign(unsigned char *blob, size_t n) {
    uint64_t sum = 0, word;
    size_t i = 0;
    for (; i + 8 <= n - 8; i += 8) {
        memcpy(&word, blob + i, 8);
        sum = (sum ^ word) * 0x100000001b3u;
        sum ^= sum >> 29;
    }
    for (; i < n - 8; i++) sum = (sum ^ blob[i]) * 0x100000001b3u;
    memcpy(blob + n - 8, &sum, 8);
}
enum { START, END, ORIGIN, FIRST, LENGTH = 16, HEAD = 32 }; /* a sequence's numbers, behind the head */

/* Ten tokens in two layers, one of which holds at most 16; each number of the state by itself made impossible. */
TEST(impossible_states_are_refused) {
    static const struct {
        int seq, field;
        int64_t value;
    } list[] = { { 0, START, -1 },     { 0, START, INT64_MIN }, { 0, START, 1 },
                 { 0, START, 11 },     { 0, END, 9 },           { 0, END, 11 },
                 { 0, END, -1 },       { 0, END, INT64_MAX },   { 0, END, INT64_MAX - 1 },
                 { 0, ORIGIN, -1 },    { 0, FIRST, -1 },        { 0, FIRST, 1 },
                 { 0, FIRST, 11 },     { 0, FIRST, INT64_MIN }, { 0, FIRST + 1, 1 },
                 { 0, FIRST + 1, -1 }, { 1, FIRST, 5 },         { 1, FIRST + 1, 5 },
                 { 1, END, 5 },        { 1, START, 5 } };
    const swa_window w[2] = { swa_window_sliding(4), swa_window_causal() };
    swa_cache_desc d = toy_desc(w, 2, 2, 2);
    float x[20 * TOY_DIM];
    unsigned char *blob, *bad, *before;
    size_t n[2];
    toy t;
    d.max_context = 16;
    REQUIRE(toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 0, 10, text, x), SWA_OK);
    before = (unsigned char *)t_alloc(t.bytes);
    for (int seq = 0; seq < 2; seq++) {
        blob = saved(&t.kv, seq, &n[seq]);
        bad = (unsigned char *)t_alloc(n[seq] + 8);
        CHECK_OK(swa_cache_load(&t.kv, seq, blob, n[seq])); /* no run to begin again any more */
        memcpy(before, t.mem, t.bytes);
        memcpy(bad, blob, n[seq]);
        sign(bad, n[seq]);
        CHECK(memcmp(bad, blob, n[seq]) == 0);
        for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
            if (list[i].seq != seq) continue;
            t_label("sequence %d, number %d is %lld", seq, list[i].field, (long long)list[i].value);
            memcpy(bad, blob, n[seq]);
            memcpy(bad + HEAD + 8 * list[i].field, &list[i].value, 8);
            sign(bad, n[seq]);
            CHECK_STATUS(swa_cache_load(&t.kv, seq, bad, n[seq]), SWA_ERR_BLOB);
        }
        for (int i = 0; i < HEAD; i++) {
            t_label("sequence %d, byte %d of the head", seq, i);
            memcpy(bad, blob, n[seq]);
            bad[i] ^= 2;
            sign(bad, n[seq]);
            CHECK_STATUS(swa_cache_load(&t.kv, seq, bad, n[seq]), SWA_ERR_BLOB);
        }
        for (size_t cut = HEAD + 8; cut <= n[seq] + 8; cut++) {
            uint64_t length = cut;
            t_label("sequence %d, %d of %d bytes", seq, (int)cut, (int)n[seq]);
            memset(bad, 0, n[seq] + 8);
            memcpy(bad, blob, cut < n[seq] ? cut : n[seq]);
            memcpy(bad + LENGTH, &length, 8);
            sign(bad, cut);
            CHECK_STATUS(swa_cache_load(&t.kv, seq, bad, cut), cut == n[seq] ? SWA_OK : SWA_ERR_BLOB);
        }
        CHECK(memcmp(before, t.mem, t.bytes) == 0);
    }
}
/* One whose rows stand at the last positions that there are: legal, they come back, and nothing overflows. */
TEST(blobs_of_the_last_positions) {
    const swa_window w = swa_window_sinks(8, 4);
    swa_cache_desc d = toy_desc(&w, 1, 1, 1);
    float x[20 * TOY_DIM], before[7 * TOY_DIM], k[7 * TOY_DIM];
    int64_t at[FIRST + 1];
    unsigned char *blob;
    size_t n;
    toy t;
    REQUIRE(toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 0, 20, text, x), SWA_OK);
    blob = saved(&t.kv, 0, &n);
    CHECK_OK(swa_cache_read(&t.kv, 0, 0, 13, 7, before, NULL));
    memcpy(at, blob + HEAD, sizeof at);
    REQUIRE(at[START] == 0 && at[END] == 20);
    at[FIRST] += INT64_MAX - 1 - at[END];
    at[END] = INT64_MAX - 1;
    memcpy(blob + HEAD, at, sizeof at);
    sign(blob, n);
    CHECK_OK(swa_cache_load(&t.kv, 0, blob, n));
    CHECK_OK(swa_cache_read(&t.kv, 0, 0, INT64_MAX - 8, 7, k, NULL));
    CHECK_BITS(k, before, 7 * TOY_HEAD_DIM);
    CHECK(memcmp(saved(&t.kv, 0, &n), blob, n) == 0);
}
/* Layers that share rows agree on the first of them; no sequence ends at the last position; of a blob of all sequences
   one that is too long is enough. */
TEST(impossible_states_of_several) {
    static const int shared[2] = { 0, 0 };
    const swa_window w = swa_window_sliding(4), all = swa_window_causal();
    const int64_t last = INT64_MAX, one = 1;
    swa_cache_desc d = toy_desc(&w, 1, 2, 2);
    float x[40 * TOY_DIM];
    unsigned char *blob;
    size_t n;
    swa_attn put;
    swa_cache kv;
    toy t, small;
    d.kv_layer = shared;
    REQUIRE(t_cache_new(&kv, &d, 1));
    memset(&put, 0, sizeof put);
    put.mode = SWA_STORE_ONLY;
    put.k.p = put.v.p = t_random(10 * TOY_HEAD_DIM, 1.0f);
    CHECK_OK(swa_step_one(&kv, 0, 0, 10));
    CHECK_OK(swa_attend(&kv, 0, &put));
    blob = saved(&kv, 0, &n);
    CHECK_OK(swa_cache_load(&kv, 1, blob, n));
    memcpy(blob + HEAD + 8 * (FIRST + 1), &one, 8);
    sign(blob, n);
    CHECK_STATUS(swa_cache_load(&kv, 1, blob, n), SWA_ERR_BLOB);

    d = toy_desc(&all, 1, 1, 2);
    d.max_context = 64;
    REQUIRE(toy_open(&t, &d));
    blob = saved(&t.kv, 0, &n);
    memcpy(blob + HEAD + 8 * START, &last, 8);
    memcpy(blob + HEAD + 8 * END, &last, 8);
    memcpy(blob + HEAD + 8 * FIRST, &last, 8);
    sign(blob, n);
    CHECK_STATUS(swa_cache_load(&t.kv, 0, blob, n), SWA_ERR_BLOB);

    d.max_context = 16;
    REQUIRE(toy_open(&small, &d));
    for (int longer = 0; longer < 2; longer++) { /* the first, the last */
        for (int seq = 0; seq < 2; seq++) {
            CHECK_OK(swa_cache_reset(&t.kv, seq, 0, 0));
            CHECK_INT(toy_run(&t, seq, 0, seq == longer ? 40 : 5, text, x), SWA_OK);
        }
        blob = saved(&t.kv, -1, &n);
        CHECK_STATUS(swa_cache_load(&small.kv, -1, blob, n), SWA_ERR_FULL);
        CHECK(swa_cache_end(&small.kv, 0) == 0 && swa_cache_end(&small.kv, 1) == 0);
    }
}
/* A ring of 4 that says it begins later than the next token looks back, its rows cut to match, so that nothing but that
   tells: loaded, the step after it would read slots that hold nothing. */
TEST(blobs_that_lack_a_needed_row_are_refused) {
    const swa_window w = swa_window_sliding(4);
    const size_t row = 2 * TOY_HEAD_DIM * sizeof(float), rows = HEAD + 8 * (FIRST + 1);
    swa_cache_desc d = toy_desc(&w, 1, 1, 1);
    float x[20 * TOY_DIM];
    unsigned char *blob, *bad;
    size_t n;
    toy t;
    REQUIRE(toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 0, 10, text, x), SWA_OK);
    blob = saved(&t.kv, 0, &n);
    bad = (unsigned char *)t_alloc(n);
    REQUIRE(n == rows + (size_t)(10 - swa_cache_first(&t.kv, 0, 0)) * row + 8);
    for (int64_t first = swa_cache_first(&t.kv, 0, 0); first <= 10; first++) {
        const size_t left = (size_t)(10 - first) * row, length = rows + left + 8;
        const uint64_t bytes = length;
        t_label("first %d", (int)first);
        memcpy(bad, blob, rows);
        memcpy(bad + rows, blob + n - 8 - left, left);
        memcpy(bad + LENGTH, &bytes, 8);
        memcpy(bad + HEAD + 8 * FIRST, &first, 8);
        sign(bad, length);
        CHECK_STATUS(swa_cache_load(&t.kv, 0, bad, length), first <= 7 ? SWA_OK : SWA_ERR_BLOB);
        CHECK_INT(swa_cache_first(&t.kv, 0, 0), first <= 7 ? first : 7);
    }
}
/* Saved here, loaded there: only a cache of the same geometry takes it. */
TEST(blobs_of_another_geometry_are_refused) {
    const swa_window w[2] = { swa_window_sliding(4), swa_window_sliding(5) }, sinks = swa_window_sinks(4, 1);
    const swa_window chunked = swa_window_chunked(4);
    swa_cache_desc from = toy_desc(w, 1, 2, 2), to;
    float x[20 * TOY_DIM];
    unsigned char *blob;
    size_t n;
    toy t;
    REQUIRE(toy_open(&t, &from));
    CHECK_INT(toy_run(&t, 0, 0, 20, text, x), SWA_OK);
    blob = saved(&t.kv, 0, &n);
    for (int i = 0; i < 16; i++) {
        swa_status want = i == 0 || (i > 8 && i < 12) || i > 13 ? SWA_OK : SWA_ERR_BLOB;
        to = from;
        if (i == 1) to.shape.head_dim = 5;
        if (i == 2) to.shape.n_kv_heads = 2;
        if (i == 3) to.shape.v_dim = 3;
        if (i == 4) to.shape.tail_dim = 1;
        if (i == 5) to.n_layers = 3;
        if (i == 6) to.k_type = SWA_F16;
        if (i == 7) to.v_type = SWA_BF16;
        if (i == 8) to.windows = &sinks;
        if (i == 9) to.capacity = 17;
        if (i == 10) to.n_seqs = 7; /* one sequence fits into any number of them */
        if (i == 11) to.isa = SWA_ISA_SCALAR;
        if (i == 12) to.windows = &chunked;
        if (i == 13) {
            to.windows = w;
            to.n_windows = 2;
        }
        if (i == 14) to.max_context = 100; /* no layer depends on it */
        if (i == 15) to.shape.n_heads = 6; /* they are not in the ring */
        t_label("geometry %d", i);
        REQUIRE(toy_open(&t, &to));
        CHECK_STATUS(swa_cache_load(&t.kv, 0, blob, n), want);
        CHECK_INT(swa_cache_end(&t.kv, 0), want == SWA_OK ? 20 : 0);
    }
    REQUIRE(toy_open(&t, &from));
    CHECK_STATUS(swa_cache_load(&t.kv, -1, blob, n), SWA_ERR_BLOB);
}

/* ---- copies and blobs across sizes ---- */

/* A sequence of n tokens goes from a cache into one that differs in what d says, by copy and as a blob; both then go
   on as if it had grown up there, or are refused with `want` and stay empty. */
static void check_move(const swa_cache_desc *from, const swa_cache_desc *to, int64_t start, int32_t n,
                       swa_status want) {
    float *x = t_floats((n + 64) * TOY_DIM), *cold = toy_cold(from, 0, start, n + 40, one_text);
    unsigned char *blob;
    size_t bytes;
    toy a, b;
    if (!cold || !toy_open(&a, from) || !toy_open(&b, to)) return;
    CHECK_OK(swa_cache_reset(&a.kv, 1, start, 3));
    for (int32_t at = 0, w; at < n; at += w) { /* chunks as long as they come */
        w = n - at < 37 ? n - at : 37;
        if (!CHECK_INT(toy_run(&a, 1, start + at, w, one_text, x), SWA_OK)) return;
    }
    blob = saved(&a.kv, 1, &bytes);
    CHECK_STATUS(swa_cache_load(&b.kv, 0, blob, bytes), want);
    CHECK_STATUS(swa_cache_copy(&b.kv, 1, &a.kv, 1, -1), want);
    for (int seq = 0; seq < 2; seq++) {
        if (!CHECK_INT(swa_cache_end(&b.kv, seq), want == SWA_OK ? start + n : 0) || want != SWA_OK) continue;
        for (int layer = 0; layer < to->n_layers; layer++)
            CHECK(swa_cache_first(&b.kv, seq, layer) >= swa_cache_first(&a.kv, 1, layer));
        if (start + n - 1 > swa_cache_min_end(&b.kv, seq)) {
            CHECK_OK(swa_cache_truncate(&b.kv, seq, start + n - 1));
            CHECK_INT(toy_run(&b, seq, start + n - 1, 2, one_text, x), SWA_OK);
            CHECK_BITS(x, cold + (n - 1) * TOY_DIM, 2 * TOY_DIM);
        } else CHECK_INT(toy_run(&b, seq, start + n, 1, one_text, x), SWA_OK);
        CHECK_INT(toy_run(&b, seq, start + n + 1, 20, one_text, x), SWA_OK);
        CHECK_BITS(x, cold + (n + 1) * TOY_DIM, 20 * TOY_DIM);
    }
}
TEST(sequences_move_between_sizes) {
    static const int64_t caps[] = { 0, 6, 7, 16, 33, 48, 100 };
    const swa_window w[2] = { swa_window_sliding(7), swa_window_sinks(5, 3) };
    for (int i = 0; i < 7 * 7; i++)
        for (int type = 0; type < TYPES; type++) {
            swa_cache_desc from = toy_desc(w, 2, 3, 2), to;
            const t_block *before = t_.blocks;
            t_label("capacity %d to %d, %s", (int)caps[i % 7], (int)caps[i / 7], t_type(ring_types[type]));
            from.k_type = ring_types[type];
            from.v_type = ring_types[(type + i) % TYPES];
            to = from;
            from.capacity = caps[i % 7];
            to.capacity = caps[i / 7];
            to.audit = type == 1;
            to.max_rollback = to.capacity ? 0 : 5;
            check_move(&from, &to, i % 3 ? 0 : 21, 5 + 13 * (i % 5), SWA_OK);
            t_free_to(before);
        }
}
/* A causal layer holds max_context positions: a cache that has become too small is copied into a larger one. */
TEST(causal_sequences_grow) {
    const swa_window w[2] = { swa_window_sliding(5), swa_window_causal() };
    swa_cache_desc from = toy_desc(w, 2, 2, 2), to = from;
    for (int n = 1; n <= 64; n += 9)
        for (to.max_context = 16; to.max_context <= 256; to.max_context *= 2) {
            t_label("%d rows into %d", n, (int)to.max_context);
            from.max_context = 128;
            if (n > to.max_context) check_move(&from, &to, 40, n, SWA_ERR_FULL);
            else if (n + 21 <= to.max_context) check_move(&from, &to, 40, n, SWA_OK);
        }
}

/* Between which caches rows may be copied: one thing is another at a time. */
TEST(rows_of_another_geometry) {
    static const int own[2] = { 0, 1 }, shared[2] = { 0, 0 };
    const swa_window w[2] = { swa_window_sliding(5), swa_window_chunked(4) };
    for (int i = 0; i < 7; i++) {
        swa_cache_desc from = toy_desc(&w[0], 1, 2, 1), to;
        toy f, t;
        from.kv_layer = own;
        from.shape.v_in_k = i == 2 || i == 3;
        from.max_context = 16;
        if (i == 5) from.windows = NULL, from.n_windows = 0;
        to = from;
        if (i == 0) to.kv_layer = shared;
        if (i == 1) to.windows = &w[1]; /* with the same number */
        if (i == 2) to.shape.v_dim = 2;
        if (i == 3) to.v_type = SWA_F16; /* of which there are no rows */
        if (i == 4) to.shape.n_heads = 1;
        if (i == 6) to.k_type = SWA_F16, to.v_type = SWA_F32;
        t_label("way %d", i);
        REQUIRE(toy_open(&f, &from) && toy_open(&t, &to));
        CHECK_STATUS(swa_cache_copy(&t.kv, 0, &f.kv, 0, -1), i < 3 || i == 6 ? SWA_ERR_ARG : SWA_OK);
    }
}
TEST(a_full_sequence_is_copied) {
    const swa_window w = swa_window_causal();
    swa_cache_desc d = toy_desc(&w, 1, 1, 2);
    float x[17 * TOY_DIM];
    toy t;
    d.max_context = 16;
    REQUIRE(toy_open(&t, &d));
    CHECK_INT(toy_run(&t, 0, 0, 16, text, x), SWA_OK);
    CHECK_OK(swa_cache_fork(&t.kv, 1, 0, -1));
    CHECK_INT(swa_cache_end(&t.kv, 1), 16);
    CHECK_INT(toy_run(&t, 1, 16, 1, text, x), SWA_ERR_FULL);
}
/* A ring's spans are what its own calls read: tails of several heads too. Read back, a row of K has its tail in it. */
TEST(spans_with_tails) {
    enum { N = 40, D = 8, T = 4, H = 2 };
    const swa_window w = swa_window_sliding(20);
    swa_cache_desc d = toy_desc(&w, 1, 1, 1);
    const float *q = t_random(N * H * D, 1.0f), *k = t_random(N * H * D, 1.0f), *v = t_random(N * H * D, 1.0f);
    const float *qt = t_random(N * H * T, 1.0f), *kt = t_random(N * H * T, 1.0f);
    float *out[2] = { t_floats(H * D), t_floats(H * D) }, *back = t_floats(9 * H * (D + T + D));
    swa_kv spans[3];
    swa_cache kv;
    swa_rows r;
    swa_attn a;
    d.shape.n_heads = d.shape.n_kv_heads = H;
    d.shape.head_dim = D;
    d.shape.tail_dim = T;
    REQUIRE(t_cache_new(&kv, &d, 1));
    memset(&a, 0, sizeof a);
    memset(&r, 0, sizeof r);
    a.scale = 0.3f;
    a.out.p = out[0];
    for (int i = 0; i < N; i++) {
        a.q.p = q + i * H * D;
        a.q_tail.p = qt + i * H * T;
        a.k.p = k + i * H * D;
        a.k_tail.p = kt + i * H * T;
        a.v.p = v + i * H * D;
        CHECK_OK(swa_step_one(&kv, 0, i, 1));
        CHECK_OK(swa_attend(&kv, 0, &a));
    }
    r.shape = d.shape;
    r.window = w;
    r.pos = N - 1;
    r.n_tokens = 1;
    r.kv = spans;
    r.n_kv = swa_cache_spans(&kv, 0, 0, spans);
    r.scratch_bytes = swa_attention_bytes(&r, 1);
    r.scratch = t_alloc(r.scratch_bytes);
    a.out.p = out[1];
    CHECK_OK(swa_attention(&r, &a));
    CHECK_BITS(out[1], out[0], H * D);
    CHECK_OK(swa_cache_read(&kv, 0, 0, N - 9, 9, back, back + 9 * H * (D + T)));
    for (int h = 0; h < H; h++) CHECK_BITS(back + h * (D + T) + D, kt + ((N - 9) * H + h) * T, T);
    CHECK_STATUS(swa_cache_read(&kv, 0, 0, N - 9, 9, back, back + 9 * H * (D + T) - 1), SWA_ERR_ARG);
}
/* A rewind to before the start is a new start: max_context counts from there. */
TEST(a_rewind_to_before_the_start_fills_up_too) {
    const swa_window w = swa_window_causal();
    swa_cache_desc d = toy_desc(&w, 1, 1, 1);
    float x[16 * TOY_DIM];
    toy t;
    d.max_context = 16;
    REQUIRE(toy_open(&t, &d));
    CHECK_OK(swa_cache_reset(&t.kv, 0, 100, 0));
    CHECK_INT(toy_run(&t, 0, 100, 4, text, x), SWA_OK);
    t.rewind = 1;
    CHECK_INT(toy_run(&t, 0, 90, 17, text, x), SWA_ERR_FULL);
    CHECK_INT(toy_run(&t, 0, 90, 16, text, x), SWA_OK);
}

/* ---- limits ---- */

/* max_context limits the layers that cannot do with less, and no others: W rows, rollback or not, never die. */
TEST(a_window_that_fits_never_fills_up) {
    for (int64_t W = 92; W <= 104; W++)
        for (int64_t rollback = 0; rollback <= 8; rollback += 4) {
            const swa_window w = swa_window_sliding(W);
            swa_cache_desc d = toy_desc(&w, 1, 1, 1);
            float x[TOY_DIM * 64];
            swa_status got = SWA_OK;
            int64_t p = 0;
            toy t;
            t_label("W=%d max_rollback=%d, max_context 100", (int)W, (int)rollback);
            d.max_context = 100;
            d.max_rollback = rollback;
            REQUIRE(toy_open(&t, &d));
            for (; p < 300 && got == SWA_OK; p += got == SWA_OK) got = (swa_status)toy_run(&t, 0, p, 1, text, x);
            CHECK_INT(p, W > 100 ? 100 : 300);
            CHECK_STATUS(got, W > 100 ? SWA_ERR_FULL : SWA_OK);
        }
}
/* Slots are counted in int32, the sinks' among them. No memory is touched by a desc that is refused. */
TEST(more_slots_than_an_int32_counts) {
    const swa_window w = swa_window_sinks(4, 48), wide = swa_window_sliding((int64_t)1 << 31);
    const swa_window all = swa_window_causal();
    const int64_t most = INT32_MAX / 16 * 16;
    swa_cache_desc d = toy_desc(&w, 1, 1, 1);
    swa_cache kv;
    char mem[1];
    d.shape.n_heads = d.shape.head_dim = d.shape.v_in_k = 1;
    d.capacity = most - 48;
    CHECK(swa_cache_bytes(&d) > 0 || sizeof(size_t) < 8); /* of 32 bits: 8 GB */
    for (int i = 0; i < 2; i++) {
        d.capacity = i == 0 ? most - 47 : ((int64_t)1 << 31) - 32;
        CHECK_INT(swa_cache_bytes(&d), 0);
        CHECK_STATUS(swa_cache_init(&kv, &d, mem, 1), SWA_ERR_OVERFLOW);
    }
    d.capacity = 0;
    d.windows = &wide;
    CHECK_STATUS(swa_cache_init(&kv, &d, mem, 1), SWA_ERR_OVERFLOW);
    d.max_rollback = INT64_MAX;
    CHECK_STATUS(swa_cache_init(&kv, &d, mem, 1), SWA_ERR_OVERFLOW);
    d.max_rollback = 0;
    d.windows = &all;
    d.max_context = most + 1;
    CHECK_STATUS(swa_cache_init(&kv, &d, mem, 1), SWA_ERR_OVERFLOW);
    d.max_context = most;
    CHECK(swa_cache_bytes(&d) > 0 || sizeof(size_t) < 8);
}
/* A size that a size_t of 32 bits cannot hold does not come back as a small one. */
TEST(more_bytes_than_can_be_counted) {
    static const int heads[] = { 4, 8, 32, 1 << 20 };
    const swa_window all = swa_window_causal();
    swa_cache_desc d = toy_desc(&all, 1, 1, 1);
    swa_cache kv;
    char mem[1];
    for (int i = 0; i < 4; i++)
        for (int q8 = 0; q8 < 2; q8++)
            for (d.max_context = 1 << 27; d.max_context <= 1 << 30; d.max_context *= 2) {
                const size_t bytes = (d.shape.n_heads = d.shape.n_kv_heads = heads[i], d.shape.head_dim = 64,
                                      d.k_type = q8 ? SWA_Q8 : SWA_F32, swa_cache_bytes(&d));
                t_label("%d heads, %lld positions", heads[i], (long long)d.max_context);
                if (sizeof(size_t) == 4) CHECK_INT(bytes, 0);
                else CHECK(bytes / 128 / (size_t)heads[i] >= (size_t)d.max_context);
                CHECK_STATUS(swa_cache_init(&kv, &d, mem, 1), sizeof(size_t) == 4 ? SWA_ERR_OVERFLOW : SWA_ERR_MEMORY);
            }
}
/* Nor can the queries of a KV head, tokens times heads, be more than an int32 counts. */
TEST(more_queries_than_an_int32_counts) {
    const swa_window w = swa_window_sliding(4);
    swa_cache_desc d = toy_desc(&w, 1, 1, 2);
    swa_run r[2];
    toy t;
    d.shape.n_heads = 1 << 20;
    d.shape.head_dim = 1;
    REQUIRE(toy_open(&t, &d));
    for (int32_t n = 2047; n <= 2049; n++) {
        t_label("%d tokens", (int)n);
        CHECK_OK(swa_cache_reset(&t.kv, 0, 0, 0));
        CHECK_STATUS(swa_step_one(&t.kv, 0, 0, n), n < 2048 ? SWA_OK : SWA_ERR_OVERFLOW);
        CHECK_INT(swa_step_tokens(&t.kv), n < 2048 ? n : 0);
    }
    d.shape.n_heads = 2;
    REQUIRE(toy_open(&t, &d));
    r[0] = t_run(0, 0, INT32_MAX / 2); /* and the rows of a step */
    r[1] = t_run(1, 0, INT32_MAX / 2 + 2);
    CHECK_STATUS(swa_step_begin(&t.kv, r, 2), SWA_ERR_OVERFLOW);
    CHECK_INT(swa_cache_end(&t.kv, 0), 0);
}
/* Counted by the layer that has the most of them to a KV head, wherever it stands. */
TEST(more_queries_than_an_int32_counts_in_some_layer) {
    static const swa_shape shapes[3] = { { 2, 2, 4, 4, 0, 0 }, { 8, 1, 4, 4, 0, 0 }, { 4, 4, 4, 4, 0, 0 } };
    const swa_window w = swa_window_sliding(4);
    swa_cache_desc d = toy_desc(&w, 1, 3, 1);
    toy t;
    memset(&d.shape, 0, sizeof d.shape);
    d.shapes = shapes;
    d.n_shapes = 3;
    REQUIRE(toy_open(&t, &d));
    CHECK_STATUS(swa_step_one(&t.kv, 0, 0, INT32_MAX / 8 + 1), SWA_ERR_OVERFLOW);
    CHECK_OK(swa_step_one(&t.kv, 0, 0, INT32_MAX / 8));
}
/* What a part of the scratch takes, as swa.h says it: it goes with the shape. */
TEST(scratch_goes_with_the_shape) {
    static const struct {
        int head_dim, tail_dim, heads;
        double said;
    } list[] = { { 8, 0, 8, 0.1 }, { 64, 0, 8, 1.3 }, { 128, 0, 32, 2.5 }, { 512, 64, 128, 3.5 } };
    const swa_window w = swa_window_sliding(1024);
    for (int i = 0; i < 4; i++) {
        swa_cache_desc d = toy_desc(&w, 1, 1, 1);
        d.shape.n_heads = list[i].heads;
        d.shape.head_dim = list[i].head_dim;
        d.shape.tail_dim = list[i].tail_dim;
        d.shape.v_in_k = list[i].tail_dim > 0;
        t_label("heads of %d", list[i].head_dim);
        CHECK_NEAR((double)swa_cache_scratch_bytes(&d, 1) / 1e6, list[i].said, 0.15 * list[i].said + 0.05);
    }
}
/* origin is any number: audit finds the slots where they are. */
TEST(audit_with_any_origin) {
    static const int64_t origins[] = { 0, 5, 47, 48, (int64_t)1 << 40, INT64_MAX - 1, INT64_MAX };
    const swa_window w[2] = { swa_window_sliding(33), swa_window_sinks(20, 5) };
    for (int i = 0; i < 7; i++) {
        swa_cache_desc d = toy_desc(w, 2, 2, 1); /* 48 slots and 32 */
        float *cold, x[20 * TOY_DIM];
        toy t;
        d.audit = 1;
        cold = toy_cold(&d, 0, 0, 200, text);
        REQUIRE(cold && toy_open(&t, &d));
        CHECK_OK(swa_cache_reset(&t.kv, 0, 0, origins[i]));
        for (int32_t p = 0; p < 200; p += 20) {
            t_label("origin %lld, position %d", (long long)origins[i], (int)p);
            CHECK_INT(toy_run(&t, 0, p, 20, text, x), SWA_OK);
            CHECK_BITS(x, cold + p * TOY_DIM, 20 * TOY_DIM);
        }
    }
}

/* ---- rows of the caller's own, with holes ---- */

/* Keys 1..600 without [gone, back), one number wide, many rows and few: the hole may straddle a block of 256. */
static void check_hole(const float *q, const float *k, int isa, int gone, int back, int n, int in_k) {
    enum { KEYS = 600, HEADS = 4 };
    unsigned char absent[KEYS];
    float out[16 * HEADS];
    double want[16 * HEADS], room[KEYS];
    swa_kv kv[2];
    swa_rows r;
    swa_attn a;
    or_case c;
    memset(kv, 0, sizeof kv);
    memset(&r, 0, sizeof r);
    memset(&a, 0, sizeof a);
    memset(&c, 0, sizeof c);
    kv[0].k = kv[0].v = k;
    kv[0].pos = 1;
    kv[0].n = gone - 1;
    kv[1].k = kv[1].v = k + (back - 1);
    kv[1].pos = back;
    kv[1].n = KEYS + 1 - back;
    r.shape.n_heads = HEADS;
    r.shape.n_kv_heads = r.shape.head_dim = r.shape.v_dim = 1;
    r.shape.v_in_k = in_k;
    r.window = swa_window_symmetric(234);
    r.pos = 336;
    r.n_tokens = n;
    r.kv = kv;
    r.n_kv = 2;
    r.isa = isa;
    r.scratch_bytes = swa_attention_bytes(&r, 1);
    r.scratch = t_alloc(r.scratch_bytes);
    a.q.p = q;
    a.out.p = out;
    a.scale = 0.5f;
    CHECK_OK(swa_attention_part(&r, &a, 0, 0, 1));
    CHECK_OK(swa_attention_part(&r, &a, 1, 0, 1));
    for (int i = 0; i < KEYS; i++) absent[i] = i + 1 >= gone && i + 1 < back;
    c.n_heads = HEADS;
    c.n_kv_heads = c.dk = c.dv = 1;
    c.window = or_causal();
    c.window.left = c.window.right = 234;
    c.q_pos = 336;
    c.k_pos = 1;
    c.n_q = n;
    c.n_k = KEYS;
    c.q = q;
    c.k = c.v = k;
    c.absent = absent;
    c.scale = 0.5;
    or_attention(&c, want, NULL, room);
    t_label("hole [%d, %d), %d queries, v_in_k %d", gone, back, n, in_k);
    CHECK_CLOSE(out, want, n * HEADS, 1e-5);
}
TEST_EACH_ISA(missing_keys_across_a_block_edge) {
    static const int hole[][2] = { { 222, 256 }, { 222, 257 }, { 250, 258 }, { 255, 300 }, { 256, 257 },
                                   { 300, 512 }, { 300, 513 }, { 500, 520 }, { 200, 560 } };
    float *q = t_random(64, 1.0f), *k = t_random(600, 1.0f);
    for (int i = 0; i < (int)(sizeof hole / sizeof *hole); i++)
        for (int n = 1; n <= 16; n += 15)
            for (int in_k = 0; in_k < 2; in_k++) check_hole(q, k, isa, hole[i][0], hole[i][1], n, in_k);
}

/* One row of one head through a ring of this type: K x and V y come back as k and v. */
static int one_row(int isa, swa_type type, const float *x, const float *y, float *k, float *v) {
    const swa_window win = swa_window_sliding(16);
    swa_cache_desc d = toy_desc(&win, 1, 1, 1);
    swa_attn a;
    toy t;
    d.k_type = type;
    d.isa = isa;
    d.shape.n_heads = d.shape.n_kv_heads = 1;
    d.shape.head_dim = TOY_DIM;
    if (!CHECK(toy_open(&t, &d))) return 0;
    memset(&a, 0, sizeof a);
    a.k.p = x;
    a.v.p = y;
    a.mode = SWA_STORE_ONLY;
    return CHECK_OK(swa_step_one(&t.kv, 0, 0, 1)) && CHECK_OK(swa_attend(&t.kv, 0, &a))
        && CHECK_OK(swa_cache_read(&t.kv, 0, 0, 0, 1, k, v));
}
/* What no type but F32 holds: an infinity is cut, a NaN becomes the lowest number, in a row's scale as well; the same
   on every instruction set, however the NaN is written. */
TEST_EACH_ISA(numbers_that_a_type_does_not_hold) {
    static const uint32_t odd[] = { 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc00000u, 0x7fffffffu, 0x7f800001u };
    static const swa_type types[] = { SWA_F16, SWA_BF16, SWA_Q8 };
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 6; j++) {
            float x[TOY_DIM] = { 0 }, y[TOY_DIM] = { 0 }, k[TOY_DIM], v[TOY_DIM], low;
            memcpy(&x[TOY_DIM - 1], &odd[j], sizeof x[0]);
            memcpy(&y[0], &odd[j], sizeof y[0]);
            REQUIRE(one_row(isa, types[i], x, y, k, v));
            low = types[i] == SWA_F16 ? 65504.0f : 3.38953139e38f;
            if (j > 0) low = -low;
            t_label("type %d, %08x", types[i], (unsigned)odd[j]);
            for (int n = 0; n < TOY_DIM; n++) {
                CHECK(fabs((double)k[n] - (double)(n == TOY_DIM - 1 ? low : 0.0f)) <= 1e-6 * fabs((double)low));
                CHECK(fabs((double)v[n] - (double)(n == 0 ? low : 0.0f)) <= 1e-6 * fabs((double)low));
            }
        }
}
/* What lies halfway goes to the even one, a step beside it to the nearer one. */
TEST_EACH_ISA(ties_that_are_stored) {
    static const struct {
        swa_type type;
        uint32_t x, want;
    } list[] = {
        { SWA_BF16, 0x3f808000u, 0x3f800000u }, { SWA_BF16, 0xbf818000u, 0xbf820000u },
        { SWA_BF16, 0x3f808001u, 0x3f810000u }, { SWA_BF16, 0xbf817fffu, 0xbf810000u },
        { SWA_F16, 0x3f801000u, 0x3f800000u },  { SWA_F16, 0xbf803000u, 0xbf804000u },
        { SWA_F16, 0x3f801001u, 0x3f802000u },  { SWA_F16, 0xbf802fffu, 0xbf802000u },
        { SWA_F16, 0x33c00000u, 0x34000000u },  { SWA_F16, 0x34200000u, 0x34000000u }, /* subnormal */
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        float x[TOY_DIM], k[TOY_DIM], v[TOY_DIM], want;
        for (int n = 0; n < TOY_DIM; n++) memcpy(&x[n], &list[i].x, sizeof x[n]);
        memcpy(&want, &list[i].want, sizeof want);
        REQUIRE(one_row(isa, list[i].type, x, x, k, v));
        t_label("type %d, %08x", list[i].type, (unsigned)list[i].x);
        for (int n = 0; n < TOY_DIM; n++) CHECK(memcmp(&k[n], &want, 4) == 0 && memcmp(&v[n], &want, 4) == 0);
    }
}
/* ---- audit ---- */

/* With audit on, what a sequence no longer holds is no longer in memory. Another sequence then runs, so that what
   the scratch held is gone as well. */
TEST(audit_wipes_what_is_lost) {
    const swa_window w = swa_window_sliding(3);
    for (int audit = 0; audit < 2; audit++)
        for (int how = 0; how < 3; how++) {
            swa_cache_desc d = toy_desc(&w, 1, 1, 2);
            float x[9 * TOY_DIM], k[TOY_HEAD_DIM];
            int found = 0;
            toy t;
            t_label("audit %d, way %d", audit, how);
            d.audit = audit;
            REQUIRE(toy_open(&t, &d));
            CHECK_INT(toy_run(&t, 0, 0, 9, text, x), SWA_OK);
            CHECK_OK(swa_cache_read(&t.kv, 0, 0, 8, 1, k, NULL));
            if (how == 0) CHECK_OK(swa_cache_reset(&t.kv, 0, 0, 0));
            if (how == 1) CHECK_OK(swa_cache_truncate(&t.kv, 0, 8));
            if (how == 2 && audit) CHECK_STATUS(swa_cache_fork(&t.kv, 0, 1, -1), SWA_ERR_ARG); /* emptied by mistake? */
            if (how == 2) CHECK_OK(swa_cache_fork(&t.kv, 0, 1, 0));
            CHECK_INT(toy_run(&t, 1, 0, 9, text, x), SWA_OK);
            for (size_t i = 0; i + 4 <= t.bytes; i++) found |= memcmp(t.mem + i, k, 4) == 0;
            CHECK_INT(found, !audit);
        }
}
/* Pinned rows that are taken back are wiped as well, the first of them included; those before stay. */
static int held_somewhere(const toy *t, const float *row) { /* K lies transposed, 16 positions to a tile */
    for (size_t i = 0; i + 64 * TOY_HEAD_DIM <= t->bytes; i += 4) {
        int same = 0;
        for (int d = 0; d < TOY_HEAD_DIM; d++) same += !memcmp(t->mem + i + 64 * d, row + d, 4);
        if (same == TOY_HEAD_DIM) return 1;
    }
    return 0;
}
TEST(audit_wipes_sinks) {
    const swa_window w = swa_window_sinks(3, 6);
    for (int end = 0; end < 7; end++) {
        swa_cache_desc d = toy_desc(&w, 1, 1, 2);
        float x[20 * TOY_DIM], k[7 * TOY_HEAD_DIM];
        toy t;
        d.audit = 1;
        REQUIRE(toy_open(&t, &d));
        CHECK_INT(toy_run(&t, 0, 0, 7, text, x), SWA_OK);
        CHECK_OK(swa_cache_read(&t.kv, 0, 0, 0, 7, k, NULL));
        CHECK_OK(swa_cache_truncate(&t.kv, 0, end));
        CHECK_INT(toy_run(&t, 1, 0, 20, text, x), SWA_OK); /* the scratch forgets */
        for (int p = 0; p < 7; p++) {
            t_label("truncated to %d, row %d", end, p);
            CHECK_INT(held_somewhere(&t, k + p * TOY_HEAD_DIM), p < end);
        }
    }
    for (int start = 0; start < 7; start++) { /* a text that begins among the sinks has none before it */
        swa_cache_desc d = toy_desc(&w, 1, 1, 2);
        float x[20 * TOY_DIM], k[7 * TOY_HEAD_DIM];
        toy t;
        d.audit = 1;
        REQUIRE(toy_open(&t, &d));
        CHECK_INT(toy_run(&t, 0, 0, 7, text, x), SWA_OK);
        CHECK_OK(swa_cache_read(&t.kv, 0, 0, 0, 7, k, NULL));
        CHECK_OK(swa_cache_reset(&t.kv, 0, start, 0));
        CHECK_INT(toy_run(&t, 1, 0, 20, text, x), SWA_OK);
        t_label("reset to %d", start);
        for (int p = 0; p < 7; p++) CHECK_INT(held_somewhere(&t, k + p * TOY_HEAD_DIM), 0);
    }
}
