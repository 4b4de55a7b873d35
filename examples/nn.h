/* nn.h - what an example engine needs besides attention: matrix products, the loss of a text, and drawing a token.
   Every number is computed by the same operations in the same order, however many rows and threads there are. */
#ifndef NN_H_INCLUDED
#define NN_H_INCLUDED
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* Sixteen sums side by side: the order is fixed, and compilers can keep them in vectors. */
static inline float dot(const float *a, const float *b, int n) {
    float sum[16] = { 0 }, all = 0.0f;
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        for (int j = 0; j < 16; j++) sum[j] += a[i + j] * b[i + j];
    }
    for (; i < n; i++) sum[i % 16] += a[i] * b[i];
    for (int j = 0; j < 8; j++) sum[j] += sum[j + 8];
    for (int j = 0; j < 8; j++) all += sum[j];
    return all;
}

/* out [n][rows] = x [n][cols] times w [rows][cols] transposed. One dot product per number, so neither n nor the
   number of threads changes a bit. Small products stay on one thread: waking others costs more. */
static inline void matmul(float *out, const float *x, const float *w, int n, int rows, int cols) {
#ifdef _OPENMP
#pragma omp parallel for if ((double)n * rows * cols > 1e6)
#endif
    for (int r = 0; r < rows; r++) {
        for (int t = 0; t < n; t++) {
            out[(size_t)t * (size_t)rows + (size_t)r] =
                dot(w + (size_t)r * (size_t)cols, x + (size_t)t * (size_t)cols, cols);
        }
    }
}

static inline void add(float *x, const float *y, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] += y[i];
}

/* LayerNorm without a bias: rows of x [n][dim] less their mean, over their deviation, times w. */
static inline void layer_norm(float *out, const float *x, const float *w, int n, int dim, float eps) {
    for (int t = 0; t < n; t++, out += dim, x += dim) {
        double sum = 0.0, squares = 0.0, mean, over;
        for (int i = 0; i < dim; i++) sum += (double)x[i];
        mean = sum / dim;
        for (int i = 0; i < dim; i++) squares += ((double)x[i] - mean) * ((double)x[i] - mean);
        over = 1.0 / sqrt(squares / dim + (double)eps);
        for (int i = 0; i < dim; i++) out[i] = (float)(((double)x[i] - mean) * over) * w[i];
    }
}

/* Natural-log loss per token of ids [n], whose logits are [n][n_vocab]: row t predicts token t + 1. */
static inline double loss(const float *logits, const int32_t *ids, int32_t n, int n_vocab) {
    double total = 0.0;
    for (int32_t t = 0; t + 1 < n; t++) {
        const float *row = logits + (size_t)t * (size_t)n_vocab;
        double top = (double)row[0], sum = 0.0;
        for (int i = 1; i < n_vocab; i++) top = (double)row[i] > top ? (double)row[i] : top;
        for (int i = 0; i < n_vocab; i++) sum += exp((double)row[i] - top);
        total += top + log(sum) - (double)row[ids[t + 1]];
    }
    return n > 1 ? total / (n - 1) : 0.0;
}

typedef struct {
    float p;
    int32_t id;
} candidate;
typedef struct {
    double temperature, top_p; /* temperature 0 = the likeliest token */
    uint64_t state;            /* begins as the seed */
    candidate *list;           /* [n_vocab] */
} sampler;

static inline int candidate_before(const candidate *x, const candidate *y) { /* likelier; of equals, the lower id */
    return x->p > y->p || (!(x->p < y->p) && x->id < y->id);
}

static inline double random_unit(uint64_t *state) { /* in [0, 1): the upper bits of a 64-bit linear generator */
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

/* list [n] is a heap (none stands before its parent) but for the one at i, which sinks to its place. */
static inline void candidate_sink(candidate *list, int n, int i) {
    candidate moving = list[i];
    for (int child = 2 * i + 1; child < n; i = child, child = 2 * i + 1) {
        if (child + 1 < n && candidate_before(&list[child + 1], &list[child])) child++;
        if (!candidate_before(&list[child], &moving)) break;
        list[i] = list[child];
    }
    list[i] = moving;
}

/* Draws from the likeliest tokens that together reach top_p: mostly few of very many, so they are taken off a heap one
   by one, to the end of the list. -1 = the logits are no numbers. */
static inline int32_t sample(sampler *s, const float *logits, int n_vocab) {
    int best = 0, left = n_vocab;
    double sum = 0.0, target;
    for (int i = 1; i < n_vocab; i++) best = logits[i] > logits[best] ? i : best;
    for (int i = 0; i < n_vocab; i++) {
        if (!(fabsf(logits[i]) <= 1e30f)) return -1;
    }
    if (s->temperature <= 0.0) return best;
    for (int i = 0; i < n_vocab; i++) {
        s->list[i].p = (float)exp((double)(logits[i] - logits[best]) / s->temperature);
        s->list[i].id = i;
        sum += (double)s->list[i].p;
    }
    for (int i = n_vocab / 2; i-- > 0;) candidate_sink(s->list, n_vocab, i);
    for (target = s->top_p * sum, sum = 0.0; left > 0 && sum < target;) {
        candidate likeliest = s->list[0];
        s->list[0] = s->list[--left];
        candidate_sink(s->list, left, 0);
        s->list[left] = likeliest;
        sum += (double)likeliest.p;
    }
    target = random_unit(&s->state) * sum;
    for (int i = n_vocab; i-- > left;) {
        target -= (double)s->list[i].p;
        if (target < 0.0) return s->list[i].id;
    }
    return s->list[n_vocab - 1].id;
}
#endif /* NN_H_INCLUDED */
