/* emmintrin.h - what swa.h takes of SSE2, in plain C, for a compiler that is not GNU's and calls its target _M_X64, as
   MSVC does: structs, so that what only gcc and clang allow of vectors (operators, casts) does not compile. */
#ifndef SWA_MODEL_EMMINTRIN_H
#define SWA_MODEL_EMMINTRIN_H
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    float x[4];
} __m128;
typedef struct {
    double x[2];
} __m128d;
typedef struct {
    int32_t x[4];
} __m128i;

#define LANES(n) for (i = 0; i < (n); i++)
#define TWO(name, type, n, value)                                                                                      \
    static __m128##type _mm_##name(__m128##type a, __m128##type b) {                                                   \
        __m128##type r;                                                                                                \
        int i;                                                                                                         \
        LANES(n) r.x[i] = value;                                                                                       \
        return r;                                                                                                      \
    }
#define CAST(name, from, to)                                                                                           \
    static __m128##to _mm_##name(__m128##from a) {                                                                     \
        __m128##to r;                                                                                                  \
        memcpy(&r, &a, 16);                                                                                            \
        return r;                                                                                                      \
    }
#define BITS(name, value)                                                                                              \
    static __m128 _mm_##name(__m128 a, __m128 b) {                                                                     \
        uint32_t x[4], y[4];                                                                                           \
        int i;                                                                                                         \
        memcpy(x, &a, 16);                                                                                             \
        memcpy(y, &b, 16);                                                                                             \
        LANES(4) x[i] = value;                                                                                         \
        memcpy(&a, x, 16);                                                                                             \
        return a;                                                                                                      \
    }
#define COMPARE(name, op)                                                                                              \
    static __m128 _mm_##name(__m128 a, __m128 b) {                                                                     \
        int32_t x[4];                                                                                                  \
        int i;                                                                                                         \
        LANES(4) x[i] = a.x[i] op b.x[i] ? -1 : 0;                                                                     \
        memcpy(&a, x, 16);                                                                                             \
        return a;                                                                                                      \
    }
#define SHIFT(name, value)                                                                                             \
    static __m128i _mm_##name(__m128i a, int n) {                                                                      \
        int i;                                                                                                         \
        LANES(4) a.x[i] = value;                                                                                       \
        return a;                                                                                                      \
    }

/* One vector of another, or of one number; for those of immintrin.h too. */
#define ONE(to, name, from, n, value)                                                                                  \
    static to name(from a) {                                                                                           \
        to r;                                                                                                          \
        int i;                                                                                                         \
        LANES(n) r.x[i] = value;                                                                                       \
        return r;                                                                                                      \
    }
/* to nearest even, which is how nearbyint stands */
#define TO_INT(x) ((x) < 2147483648.0f && (x) >= -2147483648.0f ? (int32_t)nearbyint(x) : INT32_MIN)

ONE(__m128, _mm_set1_ps, float, 4, a)
ONE(__m128i, _mm_set1_epi32, int, 4, a)
ONE(__m128d, _mm_cvtps_pd, __m128, 2, a.x[i])
ONE(__m128, _mm_cvtepi32_ps, __m128i, 4, (float)a.x[i])
ONE(__m128i, _mm_cvtps_epi32, __m128, 4, TO_INT(a.x[i]))
CAST(castps_si128, , i)
CAST(castsi128_ps, i, )
CAST(castpd_ps, d, )
TWO(add_ps, , 4, a.x[i] + b.x[i])
TWO(sub_ps, , 4, a.x[i] - b.x[i])
TWO(mul_ps, , 4, a.x[i] * b.x[i])
TWO(div_ps, , 4, a.x[i] / b.x[i])
TWO(max_ps, , 4, a.x[i] > b.x[i] ? a.x[i] : b.x[i])
TWO(min_ps, , 4, a.x[i] < b.x[i] ? a.x[i] : b.x[i])
TWO(add_pd, d, 2, a.x[i] + b.x[i])
TWO(mul_pd, d, 2, a.x[i] * b.x[i])
TWO(movehl_ps, , 4, i < 2 ? b.x[i + 2] : a.x[i])
TWO(movelh_ps, , 4, i < 2 ? a.x[i] : b.x[i - 2])
TWO(add_epi32, i, 4, (int32_t)((uint32_t)a.x[i] + (uint32_t)b.x[i]))
TWO(and_si128, i, 4, a.x[i] & b.x[i])
TWO(or_si128, i, 4, a.x[i] | b.x[i])
TWO(xor_si128, i, 4, a.x[i] ^ b.x[i])
TWO(cmpeq_epi32, i, 4, a.x[i] == b.x[i] ? -1 : 0)
TWO(cmpgt_epi32, i, 4, a.x[i] > b.x[i] ? -1 : 0)
TWO(cmplt_epi32, i, 4, a.x[i] < b.x[i] ? -1 : 0)
BITS(and_ps, x[i] & y[i])
BITS(or_ps, x[i] | y[i])
BITS(andnot_ps, ~x[i] & y[i])
COMPARE(cmpge_ps, >=)
COMPARE(cmpgt_ps, >)
COMPARE(cmplt_ps, <)
SHIFT(slli_epi32, (int32_t)((uint32_t)a.x[i] << n))
SHIFT(srli_epi32, (int32_t)((uint32_t)a.x[i] >> n))
SHIFT(srai_epi32, a.x[i] < 0 ? ~(~a.x[i] >> n) : a.x[i] >> n)

static __m128 _mm_loadu_ps(const float *p) {
    __m128 r;
    memcpy(&r, p, 16);
    return r;
}
static void _mm_storeu_ps(float *p, __m128 a) { memcpy(p, &a, 16); }
static __m128i _mm_loadl_epi64(const __m128i *p) {
    __m128i r = { { 0, 0, 0, 0 } };
    memcpy(&r, p, 8);
    return r;
}
static void _mm_storel_epi64(__m128i *p, __m128i a) { memcpy(p, &a, 8); }
static __m128i _mm_setzero_si128(void) { return _mm_set1_epi32(0); }
static __m128i _mm_cvtsi32_si128(int x) {
    __m128i r = { { 0, 0, 0, 0 } };
    r.x[0] = x;
    return r;
}
static int _mm_cvtsi128_si32(__m128i a) { return a.x[0]; }
static __m128 _mm_cvtpd_ps(__m128d a) {
    __m128 r = { { 0, 0, 0, 0 } };
    int i;
    LANES(2) r.x[i] = (float)a.x[i];
    return r;
}
static int _mm_movemask_epi8(__m128i a) {
    unsigned char b[16];
    int i, r = 0;
    memcpy(b, &a, 16);
    LANES(16) r |= (b[i] >> 7) << i;
    return r;
}
static __m128i _mm_packs_epi32(__m128i a, __m128i b) {
    int16_t h[8];
    int i;
    LANES(8) {
        const int32_t x = i < 4 ? a.x[i] : b.x[i - 4];
        h[i] = (int16_t)(x > 32767 ? 32767 : x < -32768 ? -32768 : x);
    }
    memcpy(&a, h, 16);
    return a;
}
static __m128i _mm_packs_epi16(__m128i a, __m128i b) {
    int16_t h[16];
    int8_t q[16];
    int i;
    memcpy(h, &a, 16);
    memcpy(h + 8, &b, 16);
    LANES(16) q[i] = (int8_t)(h[i] > 127 ? 127 : h[i] < -128 ? -128 : h[i]);
    memcpy(&a, q, 16);
    return a;
}
static __m128i _mm_unpacklo_epi16(__m128i a, __m128i b) {
    uint16_t x[8], y[8], r[8];
    int i;
    memcpy(x, &a, 16);
    memcpy(y, &b, 16);
    LANES(8) r[i] = i % 2 ? y[i / 2] : x[i / 2];
    memcpy(&a, r, 16);
    return a;
}
static __m128i _mm_unpacklo_epi8(__m128i a, __m128i b) {
    uint8_t x[16], y[16], r[16];
    int i;
    memcpy(x, &a, 16);
    memcpy(y, &b, 16);
    LANES(16) r[i] = i % 2 ? y[i / 2] : x[i / 2];
    memcpy(&a, r, 16);
    return a;
}
static __m128 _mm_shuffle_ps(__m128 a, __m128 b, int how) {
    __m128 r;
    int i;
    LANES(4) r.x[i] = (i < 2 ? a : b).x[how >> 2 * i & 3];
    return r;
}
#define _MM_SHUFFLE(d, c, b, a) ((d) << 6 | (c) << 4 | (b) << 2 | (a))
#define _MM_TRANSPOSE4_PS(a, b, c, d)                                                                                  \
    do {                                                                                                               \
        const __m128 row[4] = { (a), (b), (c), (d) };                                                                  \
        int i;                                                                                                         \
        LANES(4) {                                                                                                     \
            (a).x[i] = row[i].x[0];                                                                                    \
            (b).x[i] = row[i].x[1];                                                                                    \
            (c).x[i] = row[i].x[2];                                                                                    \
            (d).x[i] = row[i].x[3];                                                                                    \
        }                                                                                                              \
    } while (0)

#define _MM_HINT_T0  3
#define _MM_HINT_T1  2
#define _MM_HINT_NTA 0
static void _mm_prefetch(const char *p, int how) { (void)p, (void)how; }

#endif
