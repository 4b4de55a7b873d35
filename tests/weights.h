/* weights.h - matrices in the types that models ship them in. Own code, so that swa.h's conversions are not assumed;
   numbers are cut to what a type holds, toward zero. Memory comes from t_alloc. */
#ifndef SWA_TEST_WEIGHTS_H
#define SWA_TEST_WEIGHTS_H
#include "test.h"

static inline float *normal(size_t n, double scale) {
    float *x = t_floats(n);
    for (size_t i = 0; i < n; i++) x[i] = (float)scale * t_normal();
    return x;
}
static inline uint16_t narrow(swa_type type, float x) {
    uint32_t u, n;
    int e;
    memcpy(&u, &x, sizeof u);
    if (type == SWA_BF16) return (uint16_t)(u >> 16);
    frexp((double)x, &e);
    if (e < -13) e = -13;                         /* below 2^-14 the steps stay as wide */
    n = (uint32_t)ldexp(fabs((double)x), 11 - e); /* under 2048; under 1024 it is subnormal */
    return (uint16_t)(u >> 31 << 15 | (n < 1024 ? n : (uint32_t)(e + 14) << 10 | (n & 1023)));
}
/* The i-th number behind p. */
static inline float number(swa_type type, const void *p, size_t i) {
    uint32_t u, e;
    float x;
    if (type == SWA_F32) return ((const float *)p)[i];
    u = ((const uint16_t *)p)[i];
    if (type == SWA_F16) {
        e = u >> 10 & 31;
        x = (float)ldexp((double)(e ? 1024 + (u & 1023) : u & 1023), e ? (int)e - 25 : -24);
        return u >> 15 ? -x : x;
    }
    u <<= 16;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline swa_matrix matrix(const void *p) {
    swa_matrix w;
    memset(&w, 0, sizeof w);
    w.p = p;
    return w;
}
/* rows x cols of src as `type`, rows `stride` apart; src itself is cut to what the type holds. */
static inline swa_matrix stored(float *src, size_t rows, size_t cols, swa_type type, size_t stride) {
    void *p = t_alloc(((rows - 1) * stride + cols) * (type == SWA_F32 ? 4 : 2));
    swa_matrix w = matrix(p);
    w.type = type;
    w.stride = stride == cols ? 0 : (int64_t)stride;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++) {
            const size_t at = r * stride + c;
            if (type == SWA_F32) ((float *)p)[at] = src[r * cols + c];
            else ((uint16_t *)p)[at] = narrow(type, src[r * cols + c]);
            src[r * cols + c] = number(type, p, at);
        }
    return w;
}
#endif /* SWA_TEST_WEIGHTS_H */
