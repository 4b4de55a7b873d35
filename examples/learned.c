/* learned.c - learned key and value rows before position 0 (openPangu 2.0 has 128, param_sink): every token sees them,
   whatever its window, and no sequence stores them. They are rows of their own for swa_attention; what it makes of them
   and what swa_attend makes of the ring are two partial results, which swa_merge joins under one softmax. Cost: the
   learned rows once more per token. (Rows that each sequence may as well store are pinned positions: n_sink.) */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"
#include <math.h>

enum { HEADS = 8, KV_HEADS = 2, DIM = 32, LEARNED = 128, TOKENS = 150, WINDOW = 40, MOST = 64 };

typedef struct {
    float *q, *k, *v, *learned_k, *learned_v;
    swa_rows learned; /* over the learned rows: shape and scratch, which stay from call to call */
    swa_kv segment;
} model;

/* n tokens from position pos on: out [n][HEADS][DIM], lse [n][HEADS]. */
static void attend(const model *m, swa_cache *kv, int64_t pos, int32_t n, float *out, float *lse) {
    static float part[2][MOST * HEADS * DIM], stat[2][MOST * HEADS * 2];
    const float *outs[2] = { part[0], part[1] }, *stats[2] = { stat[0], stat[1] };
    swa_rows rows = m->learned;
    swa_attn a = { 0 };

    rows.n_tokens = n;
    a.q.p = m->q + pos * HEADS * DIM;
    a.out.p = part[0];
    a.stat = stat[0];
    check(swa_attention(&rows, &a), "swa_attention");

    a.k.p = m->k + pos * KV_HEADS * DIM;
    a.v.p = m->v + pos * KV_HEADS * DIM;
    a.out.p = part[1];
    a.stat = stat[1];
    check(swa_step_one(kv, 0, pos, n), "swa_step_one");
    check(swa_attend(kv, 0, &a), "swa_attend");
    check(swa_merge(outs, stats, 2, n, HEADS, DIM, NULL, out, lse), "swa_merge"); /* always in this order */
}

static void learned_rows(model *m) {
    memset(&m->segment, 0, sizeof m->segment);
    memset(&m->learned, 0, sizeof m->learned);
    m->segment.k = m->learned_k; /* [LEARNED][KV_HEADS][DIM] */
    m->segment.v = m->learned_v;
    m->segment.n = LEARNED;
    m->learned.shape.n_heads = HEADS;
    m->learned.shape.n_kv_heads = KV_HEADS;
    m->learned.shape.head_dim = DIM;
    m->learned.window = swa_window_causal();
    m->learned.pos = LEARNED; /* as if behind them: all are seen */
    m->learned.kv = &m->segment;
    m->learned.n_kv = 1;
    m->learned.scratch_bytes = swa_attention_bytes(&m->learned, 1); /* n_tokens 0: for any number of tokens */
    m->learned.scratch = room(m->learned.scratch_bytes);
}

/* The same written out: the largest error of one token's row of one head. */
static double error_of(const model *m, int pos, int head, const float *out) {
    const float *q = m->q + (pos * HEADS + head) * DIM;
    const int group = head / (HEADS / KV_HEADS), first = pos - WINDOW + 1 > 0 ? pos - WINDOW + 1 : 0;
    double o[DIM] = { 0 }, sum = 0, worst = 0;
    for (int i = first - LEARNED; i <= pos; i++) { /* below first: the learned ones */
        const int row = i < first ? i - first + LEARNED : i;
        const float *k = (i < first ? m->learned_k : m->k) + (row * KV_HEADS + group) * DIM;
        const float *v = (i < first ? m->learned_v : m->v) + (row * KV_HEADS + group) * DIM;
        double score = 0;
        for (int d = 0; d < DIM; d++) score += (double)q[d] * (double)k[d];
        score = exp(score / sqrt((double)DIM));
        sum += score;
        for (int d = 0; d < DIM; d++) o[d] += score * (double)v[d];
    }
    for (int d = 0; d < DIM; d++) worst = fmax(worst, fabs(o[d] / sum - (double)out[d]));
    return worst;
}

int main(void) {
    static float out[2][TOKENS * HEADS * DIM], lse[2][TOKENS * HEADS];
    const int32_t chunk[2] = { MOST, 7 };
    swa_window window = swa_window_sliding(WINDOW);
    swa_cache_desc d = one_layer(HEADS, KV_HEADS, DIM, &window);
    model m;
    double worst = 0;

    m.q = rows_at(1, 0, TOKENS, HEADS * DIM);
    m.k = rows_at(2, 0, TOKENS, KV_HEADS * DIM);
    m.v = rows_at(3, 0, TOKENS, KV_HEADS * DIM);
    m.learned_k = rows_at(4, 0, LEARNED, KV_HEADS * DIM);
    m.learned_v = rows_at(5, 0, LEARNED, KV_HEADS * DIM);
    learned_rows(&m);
    for (int i = 0; i < 2; i++) {
        cache c = new_cache(&d, 1);
        for (int32_t pos = 0, n; pos < TOKENS; pos += n) {
            n = TOKENS - pos < chunk[i] ? TOKENS - pos : chunk[i];
            attend(&m, &c.kv, pos, n, out[i] + pos * HEADS * DIM, lse[i] + pos * HEADS);
        }
        free_cache(&c);
    }
    for (int pos = 0; pos < TOKENS; pos++)
        for (int head = 0; head < HEADS; head++)
            worst = fmax(worst, error_of(&m, pos, head, out[0] + (pos * HEADS + head) * DIM));
    printf("%d learned rows and a window of %d: error below 1e-6: %s\n", LEARNED, WINDOW, worst < 1e-6 ? "yes" : "NO");
    printf("in chunks of %d and of %d: %s\n", (int)chunk[0], (int)chunk[1],
           memcmp(out[0], out[1], sizeof out[0]) == 0 && memcmp(lse[0], lse[1], sizeof lse[0]) == 0
               ? "the same bits"
               : "OTHER BITS");
    free(m.q);
    free(m.k);
    free(m.v);
    free(m.learned_k);
    free(m.learned_v);
    free(m.learned.scratch);
    return worst < 1e-6 ? 0 : 1;
}
