/* outliers.c - what int8 and fp8 K and V cost where a few channels are 20 or 50 times as large as the others: one scale
   per row (SWA_Q8), one per 32 numbers (SWA_Q8_32), one per row of numbers rotated by swa_hadamard in blocks of 64, and
   fp8 (SWA_E4M3, SWA_E5M2), which has no scale.

       cc -O2 -o build/outliers bench/outliers.c -lm && build/outliers

   Attention in double over 1024 keys, 48 queries of normal(0, 2), K and V normal(0, 1), stored in a ring of the type
   and read back. Per way: relative rms of the output, and its largest error by its largest entry (V: the rms over the
   other channels). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define SWA_IMPLEMENTATION
#include "../swa.h"

enum { KEYS = 1024, QUERIES = 48, MOST = 512, WAYS = 5, ROTATED = 2 };
static const swa_type types[WAYS] = { SWA_Q8, SWA_Q8_32, SWA_Q8, SWA_E4M3, SWA_E5M2 };
static float k[KEYS][MOST], v[KEYS][MOST], k8[KEYS][MOST], v8[KEYS][MOST], q[QUERIES][MOST];
static uint64_t state = 88172645463325252u;

static float normal(void) {
    double s = -6;
    for (int i = 0; i < 12; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        s += (double)(state >> 11) / 9007199254740992.0;
    }
    return (float)s;
}
static void rotated(float *x, int dim) {
    if (swa_hadamard(x, 1, 1, dim, 64) != SWA_OK) puts("swa_hadamard fails");
}
/* to [KEYS] = from as a ring of the type holds it. */
static void through(float (*to)[MOST], float (*from)[MOST], int dim, int way) {
    static float rows[KEYS][MOST];
    const swa_window w = swa_window_sliding(KEYS);
    swa_cache_desc d = { 0 };
    swa_cache kv;
    swa_attn a = { 0 };
    size_t ring, room;
    d.shape.n_heads = d.shape.n_kv_heads = 1;
    d.shape.head_dim = dim;
    d.shape.v_in_k = d.n_layers = d.n_windows = 1;
    d.windows = &w;
    d.k_type = types[way];
    ring = swa_cache_bytes(&d);
    room = swa_cache_scratch_bytes(&d, 1);
    memcpy(rows, from, sizeof rows);
    for (int i = 0; i < KEYS && way == ROTATED; i++) rotated(rows[i], dim);
    a.mode = SWA_STORE_ONLY;
    a.k.p = rows[0];
    a.k.token = MOST;
    void *mem = malloc(ring), *scratch = malloc(room);
    if (swa_cache_init(&kv, &d, mem, ring) != SWA_OK || swa_cache_set_scratch(&kv, scratch, room) != SWA_OK
        || swa_step_one(&kv, 0, 0, KEYS) != SWA_OK || swa_attend(&kv, 0, &a) != SWA_OK)
        puts("the ring fails");
    for (int i = 0; i < KEYS; i++) {
        if (swa_cache_read(&kv, 0, 0, i, 1, to[i], NULL) != SWA_OK) puts("swa_cache_read fails");
        if (way == ROTATED) rotated(to[i], dim);
    }
    free(mem);
    free(scratch);
}
static void attention(float (*keys)[MOST], float (*values)[MOST], const float *query, int dim, double *out) {
    static double s[KEYS];
    double top = -1e300, sum = 0;
    for (int i = 0; i < KEYS; i++) {
        s[i] = 0;
        for (int d = 0; d < dim; d++) s[i] += (double)query[d] * keys[i][d] / sqrt(dim);
        if (s[i] > top) top = s[i];
    }
    memset(out, 0, (size_t)dim * sizeof *out);
    for (int i = 0; i < KEYS; i++) {
        double p = exp(s[i] - top);
        sum += p;
        for (int d = 0; d < dim; d++) out[d] += p * values[i][d];
    }
    for (int d = 0; d < dim; d++) out[d] /= sum;
}
static void compare(int dim, int large_v, int of_k, int of_v, int way) {
    double a[MOST], b[MOST], error = 0, size = 0, worst = 0, top = 0, error_rest = 0, rest = 0;
    memcpy(k8, k, sizeof k);
    memcpy(v8, v, sizeof v);
    if (of_k) through(k8, k, dim, way);
    if (of_v) through(v8, v, dim, way);
    for (int t = 0; t < QUERIES; t++) {
        attention(k, v, q[t], dim, a);
        attention(k8, v8, q[t], dim, b);
        for (int d = 0; d < dim; d++) {
            double e = fabs(a[d] - b[d]);
            error += e * e;
            size += a[d] * a[d];
            if (e > worst) worst = e;
            if (fabs(a[d]) > top) top = fabs(a[d]);
            if (d % (dim / 4) == 3) continue;
            error_rest += e * e;
            rest += a[d] * a[d];
        }
    }
    printf("  %.1e %.1e", sqrt(error / size), large_v ? sqrt(error_rest / rest) : worst / top);
}
/* Two channels of K times by_k (or, constant, by_k more: a bias that all keys have), four of V times by_v. */
static void data(int dim, float by_k, int constant, float by_v) {
    for (int i = 0; i < KEYS; i++)
        for (int d = 0; d < dim; d++) {
            const int large = by_k > 1 && (d == 5 || d == dim - 9);
            k[i][d] = large && constant ? normal() + by_k : normal() * (large ? by_k : 1);
            v[i][d] = normal() * (d % (dim / 4) == 3 ? by_v : 1);
        }
    for (int t = 0; t < QUERIES; t++) /* q is smaller where a channel varies as much, or nothing else counts */
        for (int d = 0; d < dim; d++) {
            const int large = by_k > 1 && (d == 5 || d == dim - 9);
            q[t][d] = 2 * normal() / (large && !constant ? by_k : 1);
        }
}

int main(void) {
    /* clang-format off */
    static const struct { const char *name; float by_k, by_v; int constant, of_k, of_v; } cases[] = {
        { "normal, K", 1, 1, 0, 1, 0 }, { "normal, V", 1, 1, 0, 0, 1 },
        { "K x20, varying", 20, 1, 0, 1, 0 }, { "K x50, varying", 50, 1, 0, 1, 0 },
        { "K +20, constant", 20, 1, 1, 1, 0 }, { "K +50, constant", 50, 1, 1, 1, 0 },
        { "V x20", 1, 20, 0, 0, 1 }, { "V x50", 1, 50, 0, 0, 1 }, { "K +20 and V x20", 20, 20, 1, 1, 1 },
    };
    /* clang-format on */
    printf("dim  %-18s  %-15s  %-15s  %-15s  %-15s  %-15s\n", "", "q8", "q8_32", "q8, rotated", "e4m3", "e5m2");
    for (int dim = 64; dim <= MOST; dim *= dim == 64 ? 2 : 4)
        for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
            data(dim, cases[c].by_k, cases[c].constant, cases[c].by_v);
            printf("%-4d %-18s", dim, cases[c].name);
            for (int way = 0; way < WAYS; way++) compare(dim, cases[c].by_v > 1, cases[c].of_k, cases[c].of_v, way);
            puts("");
        }
    return 0;
}
