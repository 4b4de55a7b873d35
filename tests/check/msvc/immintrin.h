/* immintrin.h - as emmintrin.h beside it, what swa.h takes of AVX2, FMA and F16C. */
#ifndef SWA_MODEL_IMMINTRIN_H
#define SWA_MODEL_IMMINTRIN_H
#include "emmintrin.h"

typedef struct {
    float x[8];
} __m256;
typedef struct {
    int32_t x[8];
} __m256i;

#define WIDE(name, type, value)                                                                                        \
    static __m256##type _mm256_##name(__m256##type a, __m256##type b) {                                                \
        __m256##type r;                                                                                                \
        int i;                                                                                                         \
        LANES(8) r.x[i] = value;                                                                                       \
        return r;                                                                                                      \
    }
#define WIDE_CAST(name, from, to, bytes)                                                                               \
    static to _mm256_##name(from a) {                                                                                  \
        to r;                                                                                                          \
        memcpy(&r, &a, bytes);                                                                                         \
        return r;                                                                                                      \
    }
#define QUARTERS(i) ((i) / 4 * 4 + (i) % 4 / 2) /* of each half: 0 0 1 1 */

ONE(__m256, _mm256_set1_ps, float, 8, a)
ONE(__m256i, _mm256_set1_epi32, int, 8, a)
ONE(__m256, _mm256_cvtepi32_ps, __m256i, 8, (float)a.x[i])
ONE(__m256i, _mm256_cvtps_epi32, __m256, 8, TO_INT(a.x[i]))
WIDE_CAST(castps_si256, __m256, __m256i, 32)
WIDE_CAST(castsi256_ps, __m256i, __m256, 32)
WIDE_CAST(castsi256_si128, __m256i, __m128i, 16)
WIDE(add_ps, , a.x[i] + b.x[i])
WIDE(sub_ps, , a.x[i] - b.x[i])
WIDE(mul_ps, , a.x[i] * b.x[i])
WIDE(div_ps, , a.x[i] / b.x[i])
WIDE(max_ps, , a.x[i] > b.x[i] ? a.x[i] : b.x[i])
WIDE(min_ps, , a.x[i] < b.x[i] ? a.x[i] : b.x[i])
WIDE(unpacklo_ps, , (i % 2 ? b : a).x[QUARTERS(i)])
WIDE(unpackhi_ps, , (i % 2 ? b : a).x[QUARTERS(i) + 2])
WIDE(add_epi32, i, (int32_t)((uint32_t)a.x[i] + (uint32_t)b.x[i]))
WIDE(and_si256, i, a.x[i] & b.x[i])
WIDE(or_si256, i, a.x[i] | b.x[i])
WIDE(cmpeq_epi32, i, a.x[i] == b.x[i] ? -1 : 0)

static __m256 _mm256_and_ps(__m256 a, __m256 b) {
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
static __m256 _mm256_fmadd_ps(__m256 a, __m256 b, __m256 c) {
    int i;
    LANES(8) c.x[i] = fmaf(a.x[i], b.x[i], c.x[i]);
    return c;
}
static __m256 _mm256_fmsub_ps(__m256 a, __m256 b, __m256 c) {
    int i;
    LANES(8) c.x[i] = fmaf(a.x[i], b.x[i], -c.x[i]);
    return c;
}

#define _CMP_GE_OQ  29
#define _CMP_LT_OQ  17
#define _CMP_NLT_UQ 21
static __m256 _mm256_cmp_ps(__m256 a, __m256 b, int how) {
    __m256i r;
    int i;
    LANES(8)
    r.x[i] = (how == _CMP_GE_OQ ? a.x[i] >= b.x[i] : how == _CMP_LT_OQ ? a.x[i] < b.x[i] : !(a.x[i] < b.x[i])) ? -1 : 0;
    return _mm256_castsi256_ps(r);
}
static __m256 _mm256_blendv_ps(__m256 a, __m256 b, __m256 yes) {
    const __m256i of = _mm256_castps_si256(yes);
    int i;
    LANES(8) if (of.x[i] < 0) a.x[i] = b.x[i];
    return a;
}

#define _MM_FROUND_TO_NEAREST_INT 0
#define _MM_FROUND_TO_NEG_INF     1
#define _MM_FROUND_NO_EXC         8
static __m256 _mm256_round_ps(__m256 a, int how) {
    int i;
    LANES(8) a.x[i] = (float)(how & 1 ? floor(a.x[i]) : nearbyint(a.x[i]));
    return a;
}

static __m256 _mm256_loadu_ps(const float *p) {
    __m256 r;
    memcpy(&r, p, 32);
    return r;
}
static void _mm256_storeu_ps(float *p, __m256 a) { memcpy(p, &a, 32); }
static __m128i _mm_loadu_si128(const __m128i *p) {
    __m128i r;
    memcpy(&r, p, 16);
    return r;
}
static void _mm_storeu_si128(__m128i *p, __m128i a) { memcpy(p, &a, 16); }
static __m256i _mm256_setr_epi32(int a, int b, int c, int d, int e, int f, int g, int h) {
    const __m256i r = { { a, b, c, d, e, f, g, h } };
    return r;
}
static __m256i _mm256_set1_epi16(short x) { return _mm256_set1_epi32((int)((uint32_t)(uint16_t)x * 0x10001u)); }

static __m256i _mm256_slli_epi32(__m256i a, int n) {
    int i;
    LANES(8) a.x[i] = (int32_t)((uint32_t)a.x[i] << n);
    return a;
}
static __m256i _mm256_srli_epi32(__m256i a, int n) {
    int i;
    LANES(8) a.x[i] = (int32_t)((uint32_t)a.x[i] >> n);
    return a;
}
/* What has lanes of 16 bits, h of a and y of b. */
#define WORDS(type, name, n, a_type, b_type, value)                                                                    \
    static type name(a_type a, b_type b) {                                                                             \
        uint16_t h[16] = { 0 }, y[16] = { 0 };                                                                         \
        type r;                                                                                                        \
        int i;                                                                                                         \
        memcpy(h, &a, sizeof a);                                                                                       \
        memcpy(y, &b, sizeof b);                                                                                       \
        LANES(n) h[i] = (uint16_t)(value);                                                                             \
        memcpy(&r, h, sizeof r);                                                                                       \
        return r;                                                                                                      \
    }
WORDS(__m128i, _mm_slli_epi16, 8, __m128i, int, h[i] << b)
WORDS(__m256i, _mm256_slli_epi16, 16, __m256i, int, h[i] << b)
WORDS(__m256i, _mm256_cmpeq_epi16, 16, __m256i, __m256i, h[i] == y[i] ? 0xffff : 0)

#define WIDEN_BYTES(type, name, n)                                                                                     \
    static type name(__m128i a) {                                                                                      \
        int8_t b[16];                                                                                                  \
        int16_t h[16];                                                                                                 \
        type r;                                                                                                        \
        int i;                                                                                                         \
        memcpy(b, &a, 16);                                                                                             \
        LANES(n) h[i] = b[i];                                                                                          \
        memcpy(&r, h, sizeof r);                                                                                       \
        return r;                                                                                                      \
    }
WIDEN_BYTES(__m128i, _mm_cvtepi8_epi16, 8)
WIDEN_BYTES(__m256i, _mm256_cvtepi8_epi16, 16)

static __m256i _mm256_cvtepi8_epi32(__m128i a) {
    int8_t b[16];
    __m256i r;
    int i;
    memcpy(b, &a, 16);
    LANES(8) r.x[i] = b[i];
    return r;
}
static float half_to_float(unsigned h) {
    const int exponent = (int)(h >> 10 & 31), rest = (int)(h & 1023);
    double x = exponent == 0 ? ldexp(rest, -24) : ldexp(1024 + rest, exponent - 25);
    if (exponent == 31) x = rest ? (double)NAN : HUGE_VAL;
    return (float)(h & 0x8000 ? -x : x);
}
static uint16_t float_to_half(float f) {
    const unsigned sign = signbit(f) ? 0x8000 : 0;
    const double x = fabs((double)f);
    int e;
    double unit, n;
    if (x != x) return (uint16_t)(sign | 0x7e00);
    frexp(x, &e);
    if (e < -13) e = -13; /* subnormal, in units of 2^-24 */
    unit = ldexp(1, e - 11);
    n = x > 1e6 ? 1e30 : nearbyint(x / unit) * unit;
    if (n >= 65520) return (uint16_t)(sign | 0x7c00);
    if (n < 6.103515625e-05) return (uint16_t)(sign | (unsigned)(n * 16777216));
    frexp(n, &e);
    return (uint16_t)(sign | ((unsigned)(e + 14) << 10) | ((unsigned)ldexp(n, 11 - e) & 1023));
}
static __m256 _mm256_cvtph_ps(__m128i a) {
    uint16_t h[8];
    __m256 r;
    int i;
    memcpy(h, &a, 16);
    LANES(8) r.x[i] = half_to_float(h[i]);
    return r;
}
static __m128i _mm256_cvtps_ph(__m256 a, int how) {
    uint16_t h[8];
    __m128i r;
    int i;
    (void)how;
    LANES(8) h[i] = float_to_half(a.x[i]);
    memcpy(&r, h, 16);
    return r;
}

static __m256i _mm256_loadu_si256(const __m256i *p) {
    __m256i r;
    memcpy(&r, p, 32);
    return r;
}
/* Of each 128 bits the lower or upper half, numbers of `size` words of a and b in turn. */
static __m256i unpacked(__m256i a, __m256i b, int size, int upper) {
    uint16_t x[2][16], h[16];
    int i;
    memcpy(x[0], &a, 32);
    memcpy(x[1], &b, 32);
    LANES(16) {
        const int number = i % 8 / size;
        h[i] = x[number % 2][i / 8 * 8 + upper * 4 + number / 2 * size + i % size];
    }
    memcpy(&a, h, 32);
    return a;
}
static __m256i _mm256_unpacklo_epi16(__m256i a, __m256i b) { return unpacked(a, b, 1, 0); }
static __m256i _mm256_unpackhi_epi16(__m256i a, __m256i b) { return unpacked(a, b, 1, 1); }
static __m256i _mm256_unpacklo_epi32(__m256i a, __m256i b) { return unpacked(a, b, 2, 0); }
static __m256i _mm256_unpackhi_epi32(__m256i a, __m256i b) { return unpacked(a, b, 2, 1); }
static __m256i _mm256_unpacklo_epi64(__m256i a, __m256i b) { return unpacked(a, b, 4, 0); }
static __m256i _mm256_unpackhi_epi64(__m256i a, __m256i b) { return unpacked(a, b, 4, 1); }

static __m128i _mm256_extracti128_si256(__m256i a, int half) {
    __m128i r;
    memcpy(&r, a.x + half * 4, 16);
    return r;
}
static __m256i _mm256_broadcastsi128_si256(__m128i a) {
    __m256i r;
    memcpy(r.x, &a, 16);
    memcpy(r.x + 4, &a, 16);
    return r;
}
static int _mm256_movemask_epi8(__m256i a) {
    const unsigned low = (unsigned)_mm_movemask_epi8(_mm256_extracti128_si256(a, 0)),
                   high = (unsigned)_mm_movemask_epi8(_mm256_extracti128_si256(a, 1));
    return (int)(low | high << 16);
}
static __m256i _mm256_packus_epi32(__m256i a, __m256i b) {
    uint16_t h[16];
    int i;
    LANES(16) {
        const int32_t x = (i / 4 % 2 ? b : a).x[i / 8 * 4 + i % 4];
        h[i] = (uint16_t)(x < 0 ? 0 : x > 65535 ? 65535 : x);
    }
    memcpy(&a, h, 32);
    return a;
}
static __m256 _mm256_permute2f128_ps(__m256 a, __m256 b, int how) {
    __m256 r;
    int i;
    LANES(8) {
        const int from = how >> (i / 4 * 4) & 3;
        r.x[i] = (from < 2 ? a : b).x[from % 2 * 4 + i % 4];
    }
    return r;
}
static __m256i _mm256_permute4x64_epi64(__m256i a, int how) {
    __m256i r;
    int i;
    LANES(8) r.x[i] = a.x[(how >> (i / 2 * 2) & 3) * 2 + i % 2];
    return r;
}
static __m256 _mm256_shuffle_ps(__m256 a, __m256 b, int how) {
    __m256 r;
    int i;
    LANES(8) r.x[i] = (i % 4 < 2 ? a : b).x[i / 4 * 4 + (how >> (i % 4 * 2) & 3)];
    return r;
}
static __m256 _mm256_permute_ps(__m256 a, int how) { return _mm256_shuffle_ps(a, a, how); }
static __m256i _mm256_shuffle_epi8(__m256i a, __m256i at) {
    uint8_t x[32], n[32], r[32];
    int i;
    memcpy(x, &a, 32);
    memcpy(n, &at, 32);
    LANES(32) r[i] = (uint8_t)(n[i] & 0x80 ? 0 : x[i / 16 * 16 + (n[i] & 15)]);
    memcpy(&a, r, 32);
    return a;
}
static void _mm256_zeroupper(void) {}
#endif
