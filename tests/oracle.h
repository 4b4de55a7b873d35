/* oracle.h - what attention is, in double and by the definition: for every query and head, look at every key that
   exists, ask whether it may be seen, and take the softmax. It shares no code with swa.h, not even the window rule,
   and it is as slow as that sounds. */
#ifndef SWA_TEST_ORACLE_H
#define SWA_TEST_ORACLE_H
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#define OR_FAR ((int64_t)1 << 62)

/* Who sees whom, spelled out. A window of W keys has left = W-1; "no limit" is OR_FAR. */
typedef struct {
    int64_t left, right;      /* keys before and after the query */
    int64_t chunk;            /* > 0: only keys of the query's own chunk (and left, right still hold) */
    int64_t pinned;           /* the first `pinned` positions, for every later query */
    int64_t span_lo, span_hi; /* tokens in [span_lo, span_hi) all see each other; 0, 0 = none */
} or_window;

static inline or_window or_causal(void) {
    or_window w = { OR_FAR, 0, 0, 0, 0, 0 };
    return w;
}
static inline or_window or_sliding(int64_t W) {
    or_window w = { W - 1, 0, 0, 0, 0, 0 };
    return w;
}

/* Without the pinned positions: is k near enough? */
static inline int or_near(const or_window *w, int64_t q, int64_t k) {
    if (q >= w->span_lo && q < w->span_hi && k >= w->span_lo && k < w->span_hi) return 1;
    if (w->chunk > 0 && q / w->chunk != k / w->chunk) return 0;
    if (k <= q) return q - k <= w->left;
    return k - q <= w->right;
}
static inline int or_sees(const or_window *w, int64_t q, int64_t k) {
    if (q < 0 || k < 0) return 0;
    return or_near(w, q, k) || (k < w->pinned && k <= q);
}

typedef struct {
    int n_heads, n_kv_heads, dk, dv; /* dk: whole K row, a tail included */
    or_window window;
    int64_t q_pos, k_pos; /* position of the first query and of the first key row */
    int64_t n_q, n_k;
    const float *q;                   /* [n_q][n_heads][dk] */
    const float *q_pinned;            /* the same, for pinned keys that are no longer near; NULL = q */
    const float *k, *v;               /* [n_k][n_kv_heads][dk | dv]; v NULL = the first dv numbers of k */
    const unsigned char *absent;      /* [n_k] 1 = this row does not exist; NULL = all exist */
    double scale, softcap;            /* softcap 0 = off */
    const float *alibi, *sink_logits; /* [n_heads] or NULL */
    const float *bias;                /* [n_q][n_heads][bias_n], column 0 is key position bias_first; or NULL */
    int64_t bias_first, bias_n;
    int bias_by_distance; /* column 0 is the query's own position, column 1 the one before it */
} or_case;

/* The score of query row i, head h, with key row j. */
static inline double or_score(const or_case *c, int64_t i, int h, int64_t j) {
    int64_t q = c->q_pos + i, k = c->k_pos + j, column = c->bias_by_distance ? q - k : k - c->bias_first;
    int kv = h / (c->n_heads / c->n_kv_heads);
    const float *rows = c->q_pinned && !or_near(&c->window, q, k) ? c->q_pinned : c->q;
    const float *x = rows + (i * c->n_heads + h) * c->dk, *y = c->k + (j * c->n_kv_heads + kv) * c->dk;
    double s = 0;
    for (int d = 0; d < c->dk; d++) s += (double)x[d] * (double)y[d];
    s *= c->scale;
    if (c->softcap > 0) s = c->softcap * tanh(s / c->softcap);
    if (c->bias && column >= 0 && column < c->bias_n) s += (double)c->bias[(i * c->n_heads + h) * c->bias_n + column];
    if (c->alibi) s -= (double)c->alibi[h] * (double)(q > k ? q - k : k - q);
    return s;
}
/* One query row of one head into out [dv] and *lse. s is room for n_k numbers. */
static inline void or_row(const or_case *c, int64_t i, int h, double *s, double *out, double *lse) {
    int kv = h / (c->n_heads / c->n_kv_heads), any = 0;
    double top = -HUGE_VAL, sum = 0, sink = 0;
    for (int d = 0; d < c->dv; d++) out[d] = 0;
    for (int64_t j = 0; j < c->n_k; j++) {
        s[j] = -HUGE_VAL;
        if ((c->absent && c->absent[j]) || !or_sees(&c->window, c->q_pos + i, c->k_pos + j)) continue;
        s[j] = or_score(c, i, h, j);
        any = 1;
        if (s[j] > top) top = s[j];
    }
    *lse = -HUGE_VAL;
    if (!any) return;
    for (int64_t j = 0; j < c->n_k; j++)
        if (s[j] > -HUGE_VAL) sum += exp(s[j] - top);
    *lse = top + log(sum);
    if (c->sink_logits) {
        double all = (double)c->sink_logits[h], high = all > *lse ? all : *lse;
        sink = high + log(exp(all - high) + exp(*lse - high));
    } else sink = *lse;
    for (int64_t j = 0; j < c->n_k; j++) {
        const float *v = c->v ? c->v + (j * c->n_kv_heads + kv) * c->dv : c->k + (j * c->n_kv_heads + kv) * c->dk;
        double p = s[j] > -HUGE_VAL ? exp(s[j] - sink) : 0;
        if (p > 0)
            for (int d = 0; d < c->dv; d++) out[d] += p * (double)v[d];
    }
}
/* out [n_q][n_heads][dv]; lse [n_q][n_heads] or NULL; room [n_k]. */
static inline void or_attention(const or_case *c, double *out, double *lse, double *room) {
    for (int64_t i = 0; i < c->n_q; i++)
        for (int h = 0; h < c->n_heads; h++) {
            double l;
            or_row(c, i, h, room, out + (i * c->n_heads + h) * c->dv, &l);
            if (lse) lse[i * c->n_heads + h] = l;
        }
}
#endif /* SWA_TEST_ORACLE_H */
