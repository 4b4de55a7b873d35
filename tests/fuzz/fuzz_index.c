/* swa_select over the caller's rows: scores against double, and the lists against the scores by the rule that the
   header states, to the entry; then again on another instruction set, with other segments and parts: the same bits. */
#define SWA_IMPLEMENTATION
#include "../../swa.h"
#define FUZZ_NAME "index"
#include "fuzz.h"
#include "window.h"

enum { MOST_KEYS = 700, MOST_QUERIES = 12, SEGMENTS = 6, MOST_ENTRIES = MOST_KEYS + MOST_QUERIES + 600 };

typedef struct {
    swa_shape shape;
    swa_window window;
    or_window see;
    swa_index ix; /* without outputs */
    int n_k, n_q, heads, dim;
    int64_t k_pos, q_pos;
    swa_type type;
    float *q, *k, *w;
    unsigned char *rows; /* k as its type has it */
} problem;
typedef struct {
    int32_t *pick;
    float *score;
    size_t n_pick, n_score;
} answer;

/* Whole numbers, so that scores are equal, or any. */
static float *noise(size_t n, int whole, uint32_t *seed) {
    float *x = (float *)malloc((n + 1) * sizeof *x);
    if (!x) exit(2);
    for (size_t i = 0; i < n; i++) x[i] = whole ? (float)(int)(3 * fuzz_unit(seed)) : fuzz_unit(seed);
    return x;
}
static void any_problem(fuzz_in *in, problem *p) {
    static const int64_t far[5] = { 0, 1, 250, 256, 1000000 };
    uint32_t seed = (uint32_t)fuzz_pick(in, 0, 65535);
    int kind = fuzz_pick(in, 0, 3), W = fuzz_pick(in, 1, 600), whole = fuzz_pick(in, 0, 1), per;
    memset(p, 0, sizeof *p);
    window_of((window_kind)kind, W, W % 20, &p->window, &p->see);
    p->shape.n_kv_heads = fuzz_pick(in, 1, 2);
    p->ix.lists = p->shape.n_kv_heads * fuzz_pick(in, 1, 3);
    per = fuzz_pick(in, 1, 5);
    p->heads = p->shape.n_heads = p->ix.lists * per;
    p->dim = p->shape.head_dim = fuzz_pick(in, 1, 40);
    p->shape.v_in_k = 1;
    p->type = fuzz_pick(in, 0, 1) ? SWA_F32 : SWA_BF16;
    p->n_k = fuzz_pick(in, 0, MOST_KEYS);
    p->n_q = fuzz_pick(in, 1, MOST_QUERIES);
    p->k_pos = far[fuzz_pick(in, 0, kind == W_SINKS ? 2 : 4)];
    p->q_pos = p->k_pos + (p->n_k > p->n_q && fuzz_pick(in, 0, 1) ? p->n_k - p->n_q : fuzz_pick(in, 0, MOST_KEYS));
    p->ix.block = 1 << fuzz_pick(in, 0, 8);
    p->ix.local = fuzz_pick(in, 0, 3);
    p->ix.top = fuzz_pick(in, 1, fuzz_pick(in, 0, 1) ? 8 : 300);
    if (p->ix.local > p->ix.top) p->ix.local = p->ix.top;
    p->ix.linear = fuzz_pick(in, 0, 1);
    p->ix.score_first = p->k_pos / p->ix.block;
    p->ix.score_n = (p->k_pos + p->n_k) / p->ix.block - p->ix.score_first + 1;
    p->q = noise((size_t)(p->n_q * p->heads * p->dim), whole, &seed);
    p->k = noise((size_t)(p->n_k * p->shape.n_kv_heads * p->dim), whole, &seed);
    if (fuzz_pick(in, 0, 1)) p->w = noise((size_t)(p->n_q * p->heads), whole, &seed);
    p->rows = (unsigned char *)malloc((size_t)(p->n_k * p->shape.n_kv_heads * p->dim + 1) * 4);
    if (!p->rows) exit(2);
    for (size_t i = 0; i < (size_t)(p->n_k * p->shape.n_kv_heads * p->dim); i++) {
        uint32_t u;
        memcpy(&u, &p->k[i], 4);
        if (p->type == SWA_BF16) u &= 0xffff0000u; /* cut to what it holds */
        memcpy(&p->k[i], &u, 4);
        if (p->type == SWA_F32) memcpy(p->rows + 4 * i, &u, 4);
        else {
            const uint16_t h = (uint16_t)(u >> 16);
            memcpy(p->rows + 2 * i, &h, 2);
        }
    }
}
static answer compute(fuzz_in *in, const problem *p) {
    swa_kv kv[SEGMENTS];
    swa_rows r;
    swa_index ix = p->ix;
    answer got;
    const int row = p->shape.n_kv_heads * p->dim, parts = fuzz_pick(in, 1, 5);
    memset(kv, 0, sizeof kv);
    memset(&r, 0, sizeof r);
    r.shape = p->shape;
    r.window = p->window;
    r.pos = p->q_pos;
    r.n_tokens = p->n_q;
    r.kv = kv;
    for (int at = 0; at < p->n_k; r.n_kv++) {
        const int n = r.n_kv < SEGMENTS - 1 ? fuzz_pick(in, 1, MOST_KEYS) : p->n_k;
        kv[r.n_kv].k = p->rows + (size_t)(at * row) * (p->type == SWA_F32 ? 4 : 2);
        kv[r.n_kv].k_type = p->type;
        kv[r.n_kv].pos = p->k_pos + at;
        kv[r.n_kv].n = n < p->n_k - at ? n : p->n_k - at;
        at += kv[r.n_kv].n;
    }
    r.isa = fuzz_pick(in, 0, SWA_ISA_AVX512);
    if (r.isa && !swa_isa_usable(r.isa)) r.isa = 0;
    r.scratch_bytes = swa_select_bytes(&p->shape, &ix, parts);
    if (!r.scratch_bytes) FUZZ_DIE("swa_select_bytes is 0");
    r.scratch_bytes += 63;
    got.n_pick = (size_t)(p->n_q * ix.lists * ix.top);
    got.n_score = (size_t)(p->n_q * ix.lists) * (size_t)ix.score_n;
    ix.q.p = p->q;
    ix.w = p->w;
    ix.pick = got.pick = (int32_t *)malloc(got.n_pick * sizeof *got.pick);
    ix.score = got.score = (float *)malloc(got.n_score * sizeof *got.score);
    r.scratch = malloc(r.scratch_bytes);
    if (!r.scratch || !got.pick || !got.score) exit(2);
    memset(r.scratch, 0xff, r.scratch_bytes);
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int part = parts - 1; part >= 0; part--) {
            const swa_status st = swa_select_rows_part(&r, &ix, phase, part, parts);
            if (st != SWA_OK) FUZZ_DIE("swa_select_rows_part: %s", swa_status_str(st));
        }
    free(r.scratch);
    return got;
}
/* The score of an entry by the definition; -HUGE_VAL: none of its keys is seen. *size: what was added up. */
static double score_of(const problem *p, int t, int list, int64_t entry, double *size) {
    const int per = p->heads / p->ix.lists, groups = p->heads / p->shape.n_kv_heads;
    double best = -HUGE_VAL;
    *size = 0;
    for (int64_t k = entry * p->ix.block; k < (entry + 1) * p->ix.block; k++) {
        double sum = 0;
        if (k < p->k_pos || k >= p->k_pos + p->n_k || !or_sees(&p->see, p->q_pos + t, k)) continue;
        for (int h = list * per; h < (list + 1) * per; h++) {
            const float *x = p->q + (t * p->heads + h) * p->dim;
            const float *y = p->k + ((k - p->k_pos) * p->shape.n_kv_heads + h / groups) * p->dim;
            const double w = p->w ? (double)p->w[t * p->heads + h] : 1;
            double dot = 0;
            for (int d = 0; d < p->dim; d++) {
                dot += (double)x[d] * (double)y[d];
                *size += fabs(w * (double)x[d] * (double)y[d]);
            }
            sum += w * (dot > 0 || p->ix.linear ? dot : 0);
        }
        if (sum > best) best = sum;
    }
    return best;
}
/* The list that follows from the scores. */
static void check_list(const problem *p, int t, const float *score, const int32_t *pick) {
    static unsigned char taken[MOST_ENTRIES];
    const int64_t first = p->ix.score_first, own = (p->q_pos + t) / p->ix.block;
    int n = 0;
    memset(taken, 0, sizeof taken);
    for (; n < p->ix.top; n++) {
        int64_t best = -1;
        for (int64_t e = 0; e < p->ix.score_n; e++) {
            const int near = first + e > own - p->ix.local && first + e <= own;
            const int best_near = best >= 0 && first + best > own - p->ix.local && first + best <= own;
            if (taken[e] || !(score[e] > -HUGE_VALF)) continue;
            if (best < 0 || near > best_near || (!near && !best_near && score[e] > score[best])) best = e;
        }
        if (best < 0) break;
        taken[best] = 1;
    }
    for (int64_t e = 0, i = 0; e < p->ix.score_n; e++)
        if (taken[e] && pick[i++] != first + e)
            FUZZ_DIE("entry %d of token %d's list is %d, not %ld", (int)i - 1, t, (int)pick[i - 1], (long)(first + e));
    for (; n < p->ix.top; n++)
        if (pick[n] != -1) FUZZ_DIE("entry %d behind the list of token %d is %d", n, t, (int)pick[n]);
}
static void against_oracle(const problem *p, const answer *got) {
    for (int t = 0; t < p->n_q; t++)
        for (int list = 0; list < p->ix.lists; list++) {
            const float *score = got->score + (size_t)(t * p->ix.lists + list) * (size_t)p->ix.score_n;
            for (int64_t e = 0; e < p->ix.score_n; e++) {
                double size, want = score_of(p, t, list, p->ix.score_first + e, &size);
                if (want > -HUGE_VAL ? !(fabs((double)score[e] - want) <= 1e-6 * (size + 1)) : score[e] > -HUGE_VALF)
                    FUZZ_DIE("score of entry %ld, token %d is %g, not %g", (long)e, t, (double)score[e], want);
            }
            check_list(p, t, score, got->pick + (t * p->ix.lists + list) * p->ix.top);
            fuzz_ops++;
        }
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_in in;
    problem p;
    answer a, b;
    in.p = data;
    in.left = size;
    any_problem(&in, &p);
    a = compute(&in, &p);
    against_oracle(&p, &a);
    b = compute(&in, &p);
    if (memcmp(a.pick, b.pick, a.n_pick * sizeof *a.pick) != 0
        || memcmp(a.score, b.score, a.n_score * sizeof *a.score) != 0)
        FUZZ_DIE("other segments, parts or instruction set: other bits");
    free(a.pick);
    free(a.score);
    free(b.pick);
    free(b.score);
    free(p.q);
    free(p.k);
    free(p.w);
    free(p.rows);
    return 0;
}
