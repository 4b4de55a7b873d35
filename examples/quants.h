/* quants.h - products of matrices as they lie in a GGUF file: F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K, Q6_K, MXFP4.
   The weights are read where they are and never copied. At one token such a product is a matter of memory bandwidth.

       product(out, x, &w, n, &space);      // out [n][rows] = x [n][cols] times w [rows][cols] transposed
       products(qkv, 3, x, n, &space);      // the same for several matrices: one_product

   For quantised weights the activations are rounded to 16 bits with a scale per block, which costs 1e-5 of their
   size (other engines round to 8 bits, 4e-3), and products within a block are exact integers. One order of sums per
   number, so neither n nor the number of threads changes a bit. kernels.h holds the sums; this file the formats, the
   vector operations (AVX-512 with VNNI, AVX2, or plain C, which is right but slow), and the choice between them. */
#ifndef QUANTS_H_INCLUDED
#define QUANTS_H_INCLUDED
#include "gguf.h"
#include <math.h>
#if defined(__x86_64__) && defined(__GNUC__) && !defined(EXAMPLES_NO_SIMD)
#include <immintrin.h>
#define QUANTS_X86 1
#else
#define QUANTS_X86 0
#endif

typedef struct {
    uint32_t type;  /* one of gguf_types */
    int rows, cols; /* rows lie one after the other */
    const unsigned char *data;
} weights;
typedef struct {
    const float *x; /* [n][cols] as they were given */
    int16_t *q;     /* [n][cols], and what has to be multiplied by: */
    float *scale;   /* [n][cols / block] */
    int16_t *sum;   /* [n][cols / 256][16]: formats with a minimum, see activations_set */
} activations;

/* ---- formats: what a few bytes mean ---- */

static inline int weights_block(uint32_t type) { /* columns that share a scale of the activations; 0 = floats */
    return type == GGUF_TENSOR_Q8_0 || type == GGUF_TENSOR_Q4_0 || type == GGUF_TENSOR_MXFP4 ? 32
         : type == GGUF_TENSOR_Q4_K || type == GGUF_TENSOR_Q5_K || type == GGUF_TENSOR_Q6_K
             ? 256
             : 0;
}

/* Written out, compilers make one load of it. */
static inline uint64_t weight_word(const unsigned char *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline float weight_float(const unsigned char *p, uint32_t type) {
    uint32_t low = p[0] | (uint32_t)p[1] << 8, bits = type == GGUF_TENSOR_F32 ? (uint32_t)weight_word(p) : low << 16;
    float v;
    if (type == GGUF_TENSOR_F16) return gguf_f16((uint16_t)low);
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* MXFP4: 2^(e-127) times {0, .5, 1, 1.5, 2, 3, 4, 6}, here in halves; e is a whole byte, without sign or mantissa. */
static const signed char weight_fp4[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

static inline float weight_exponent(unsigned e) { /* 2^(e-128): below 2^-126 it is subnormal */
    uint32_t bits = e >= 2 ? (e - 1) << 23 : e == 1 ? 0x400000u : 0x200000u;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* Q4_K and Q5_K: eight scales and eight minima of six bits in twelve bytes, here one to a byte. The first four of
   each lie in the lower bits of bytes 0..3 and 4..7; their upper bits and bytes 8..11 make the other four. */
typedef struct {
    uint64_t scales, mins;
} weight_scales;
static inline weight_scales weight_scales_of(const unsigned char *p) {
    uint32_t a = (uint32_t)weight_word(p), b = (uint32_t)weight_word(p + 4), c = (uint32_t)weight_word(p + 8);
    weight_scales s;
    s.scales = (a & 0x3f3f3f3f) | (uint64_t)((c & 0x0f0f0f0f) | (a >> 2 & 0x30303030)) << 32;
    s.mins = (b & 0x3f3f3f3f) | (uint64_t)((c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030)) << 32;
    return s;
}

/* ---- operations: 16 floats (vf), 16 sums (vi), 32 bytes (vb), 32 words of 16 bits or 64 bytes (vw), four floats (vl),
   16 integer scales (vs) or eight (vg), of which two are picked, one for each half of a vw; per instruction set ---- */

#define K_TILE 4 /* tokens for which a row is decoded once */
/* Rows side by side are streams that begin anew with every row, and the hardware sees no stream across a page of 4 KB:
   the rows after them are fetched, into L2. */
static inline void weights_fetch(const unsigned char *p, size_t bytes) {
#ifdef __GNUC__
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
#else
    (void)p;
    (void)bytes;
#endif
}
#if defined(__GNUC__) && !defined(__clang__)
#define K_UNROLL _Pragma("GCC unroll 16") /* so that what a loop counts through can stay in registers */
#else
#define K_UNROLL
#endif
#if QUANTS_X86
/* Bytes are the same for AVX2 and AVX-512. */
#define K_BYTES                                                                                                        \
    typedef __m256i K(vb);                                                                                             \
    K_FN float K(half)(const unsigned char *p) { return _cvtsh_ss((unsigned short)(p[0] | p[1] << 8)); }               \
    K_FN float K(total8)(__m256 v) {                                                                                   \
        __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));                                 \
        s = _mm_add_ps(s, _mm_movehl_ps(s, s));                                                                        \
        return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));                                                       \
    }                                                                                                                  \
    K_FN K(vb) K(vb_load)(const unsigned char *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }     \
    K_FN K(vb) K(vb_and)(K(vb) v, int mask) { return _mm256_and_si256(v, _mm256_set1_epi8((char)mask)); }              \
    K_FN K(vb) K(vb_or)(K(vb) v, K(vb) w) { return _mm256_or_si256(v, w); }                                            \
    K_FN K(vb) K(vb_shr)(K(vb) v, int n) { return _mm256_srli_epi16(v, n); } /* to be masked, as shl's input */        \
    K_FN K(vb) K(vb_shl)(K(vb) v, int n) { return _mm256_slli_epi16(v, n); }                                           \
    K_FN K(vb) K(vb_nibbles)(const unsigned char *p) {                                                                 \
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p), m = _mm_set1_epi8(15);                          \
        return _mm256_set_m128i(_mm_and_si128(_mm_srli_epi16(v, 4), m), _mm_and_si128(v, m));                          \
    }                                                                                                                  \
    K_FN K(vb) K(vb_lookup)(const signed char *table, K(vb) v) {                                                       \
        __m128i t = _mm_loadu_si128((const __m128i *)(const void *)table);                                             \
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(t), v);                                                 \
    }                                                                                                                  \
    typedef __m128 K(vl);                                                                                              \
    K_FN K(vl) K(vl_zero)(void) { return _mm_setzero_ps(); }                                                           \
    K_FN K(vl) K(vl_halves)(const unsigned char *p, float by) { /* two halves times a number */                        \
        return _mm_mul_ps(_mm_cvtph_ps(_mm_cvtsi32_si128((int)weight_word(p))), _mm_set1_ps(by));                      \
    }                                                                                                                  \
    K_FN K(vl) K(vl_mins)(K(vl) all, uint64_t mins, const int16_t *sum, K(vl) by) {                                    \
        const __m128i *p = (const __m128i *)(const void *)sum;                                                         \
        __m128i m = _mm_cvtepu8_epi16(_mm_cvtsi64_si128((long long)mins));                                             \
        __m128i s = _mm_slli_epi32(_mm_madd_epi16(m, _mm_loadu_si128(p)), 15);                                         \
        s = _mm_add_epi32(s, _mm_madd_epi16(m, _mm_loadu_si128(p + 1)));                                               \
        return _mm_fmadd_ps(_mm_cvtepi32_ps(s), _mm_shuffle_ps(by, by, 0x55), all);                                    \
    }                                                                                                                  \
    K_FN float K(vl_total)(K(vl) v) {                                                                                  \
        v = _mm_add_ps(v, _mm_movehl_ps(v, v));                                                                        \
        return _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)));                                                       \
    }

#define K(name)  avx512_##name
#define K_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c")))
#define K_FN     __attribute__((always_inline)) K_TARGET static inline
#define K_ENTRY  K_TARGET
typedef __m512 K(vf);
typedef __m512i K(vi);
typedef __m512i K(vw);
typedef __m512i K(vs);
typedef __m512i K(vg);
K_BYTES
K_FN K(vf) K(vf_zero)(void) { return _mm512_setzero_ps(); }
K_FN K(vf) K(vf_set)(float x) { return _mm512_set1_ps(x); }
K_FN K(vf) K(vf_load)(const float *p) { return _mm512_loadu_ps(p); }
K_FN K(vf) K(vf_le)(const unsigned char *p) { return _mm512_loadu_ps((const float *)(const void *)p); }
K_FN K(vf) K(vf_half)(const unsigned char *p) { return _mm512_cvtph_ps(K(vb_load)(p)); }
K_FN K(vf) K(vf_brain)(const unsigned char *p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(K(vb_load)(p)), 16));
}
K_FN K(vf) K(vf_add)(K(vf) a, K(vf) b) { return _mm512_add_ps(a, b); }
K_FN K(vf) K(vf_fma)(K(vf) a, K(vf) b, K(vf) c) { return _mm512_fmadd_ps(a, b, c); }
K_FN K(vf) K(vf_int)(K(vi) v) { return _mm512_cvtepi32_ps(v); }
K_FN float K(vf_total)(K(vf) v) { /* halves upon halves, as everywhere */
    __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
    return K(total8)(_mm256_add_ps(_mm512_castps512_ps256(v), upper));
}
K_FN K(vi) K(vi_zero)(void) { return _mm512_setzero_si512(); }
K_FN K(vi) K(vi_madd)(K(vi) s, K(vw) v, K(vw) w) { return _mm512_dpwssd_epi32(s, v, w); }
K_FN K(vw) K(vw_words)(const int16_t *x) { return _mm512_loadu_si512((const void *)x); }
/* 64 weights by 64 activations, whose upper bytes come first: sums of four, exact in 16 bits each; then the scale. */
K_FN K(vi) K(vi_bytes)(K(vi) s, K(vw) v, const unsigned char *q, K(vw) scale) {
    __m512i four = _mm512_dpbusd_epi32(_mm512_setzero_si512(), v, _mm512_loadu_si512((const void *)q));
    four = _mm512_dpbusd_epi32(_mm512_slli_epi32(four, 16), _mm512_loadu_si512((const void *)(q + 64)), v);
    return _mm512_dpwssd_epi32(s, four, scale);
}
K_FN K(vf) K(vf_first)(K(vl) v) { return _mm512_broadcastss_ps(v); }
K_FN K(vg) K(vg_bytes)(uint64_t scales) { return _mm512_set1_epi64((long long)scales); }
/* Words of a scale, and of 256 times it for the upper bytes' sum. */
K_FN K(vw) K(vg_pick)(K(vg) s, int i, int j) {
    __m256i second = _mm256_set1_epi32(j * 0x1000001 + 0x808000);
    return _mm512_shuffle_epi8(s, _mm512_inserti64x4(_mm512_set1_epi32(i * 0x1000001 + 0x808000), second, 1));
}
K_FN K(vs) K(vs_bytes)(uint64_t low, uint64_t high) {
    return _mm512_castsi256_si512(_mm256_cvtepi8_epi16(_mm_set_epi64x((long long)high, (long long)low)));
}
K_FN K(vw) K(vs_pick)(K(vs) s, int i, int j) {
    __m512i both = _mm512_inserti64x4(_mm512_set1_epi16((short)i), _mm256_set1_epi16((short)j), 1);
    return _mm512_permutexvar_epi16(both, s);
}
K_FN K(vw) K(vw_signed)(K(vb) v) { return _mm512_cvtepi8_epi16(v); }
K_FN K(vw) K(vw_unsigned)(K(vb) v) { return _mm512_cvtepu8_epi16(v); }
K_FN K(vw) K(vw_set)(int x) { return _mm512_set1_epi16((short)x); }
K_FN K(vw) K(vw_add)(K(vw) v, K(vw) w) { return _mm512_add_epi16(v, w); }
K_FN K(vw) K(vw_mul)(K(vw) v, K(vw) w) { return _mm512_mullo_epi16(v, w); }
K_FN K(vw) K(vw_bytes)(const unsigned char *p) { return _mm512_loadu_si512((const void *)p); }
K_FN K(vw) K(vw_twice)(const unsigned char *p) {
    __m256i v = K(vb_load)(p);
    return _mm512_inserti64x4(_mm512_castsi256_si512(v), _mm256_srli_epi16(v, 2), 1);
}
K_FN K(vw) K(vw_and)(K(vw) v, int mask) { return _mm512_and_si512(v, _mm512_set1_epi16((short)mask)); }
K_FN K(vw) K(vw_or)(K(vw) v, K(vw) w) { return _mm512_or_si512(v, w); }
K_FN K(vw) K(vw_shr)(K(vw) v, int n) { return _mm512_srli_epi16(v, (unsigned char)n); }
K_FN K(vw) K(vw_shl)(K(vw) v, int n) { return _mm512_slli_epi16(v, (unsigned char)n); }
#include "kernels.h"
#undef K
#undef K_TARGET
#undef K_FN
#undef K_ENTRY

#define K(name)  avx2_##name
#define K_TARGET __attribute__((target("avx2,fma,f16c")))
#define K_FN     __attribute__((always_inline)) K_TARGET static inline
#define K_ENTRY  K_TARGET
typedef struct {
    __m256 a, b;
} K(vf);
typedef struct {
    __m256i a, b;
} K(vi);
typedef struct {
    __m256i a, b;
} K(vw);
typedef struct {
    __m256i a, b;
} K(vs); /* scales 0..7 in both halves of a, 8..15 of b */
typedef __m256i K(vg);
#define K_VF(lo, hi)                                                                                                   \
    K(vf) r = { lo, hi };                                                                                              \
    return r
#define K_VI(lo, hi)                                                                                                   \
    K(vi) r = { lo, hi };                                                                                              \
    return r
#define K_VW(lo, hi)                                                                                                   \
    K(vw) r = { lo, hi };                                                                                              \
    return r
#define K_M256(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define K_M128(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
K_BYTES
K_FN K(vf) K(vf_set)(float x) { K_VF(_mm256_set1_ps(x), _mm256_set1_ps(x)); }
K_FN K(vf) K(vf_zero)(void) { return K(vf_set)(0.0f); }
K_FN K(vf) K(vf_load)(const float *p) { K_VF(_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)); }
K_FN K(vf) K(vf_le)(const unsigned char *p) { return K(vf_load)((const float *)(const void *)p); }
K_FN K(vf) K(vf_half)(const unsigned char *p) { K_VF(_mm256_cvtph_ps(K_M128(p)), _mm256_cvtph_ps(K_M128(p + 16))); }
K_FN __m256 K(brain)(__m128i v) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16)); }
K_FN K(vf) K(vf_brain)(const unsigned char *p) { K_VF(K(brain)(K_M128(p)), K(brain)(K_M128(p + 16))); }
K_FN K(vf) K(vf_add)(K(vf) x, K(vf) y) { K_VF(_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)); }
K_FN K(vf) K(vf_fma)(K(vf) x, K(vf) y, K(vf) z) {
    K_VF(_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b));
}
K_FN K(vf) K(vf_int)(K(vi) v) { K_VF(_mm256_cvtepi32_ps(v.a), _mm256_cvtepi32_ps(v.b)); }
K_FN float K(vf_total)(K(vf) v) { return K(total8)(_mm256_add_ps(v.a, v.b)); }
K_FN K(vi) K(vi_zero)(void) { K_VI(_mm256_setzero_si256(), _mm256_setzero_si256()); }
K_FN K(vi) K(vi_madd)(K(vi) s, K(vw) v, K(vw) w) {
    K_VI(_mm256_add_epi32(s.a, _mm256_madd_epi16(v.a, w.a)), _mm256_add_epi32(s.b, _mm256_madd_epi16(v.b, w.b)));
}
K_FN K(vw) K(vw_words)(const int16_t *x) { K_VW(K_M256(x), K_M256(x + 16)); }
K_FN __m256i K(bytes)(__m256i v, const unsigned char *q, __m256i scale) {
    __m256i upper = _mm256_maddubs_epi16(v, K_M256(q)), lower = _mm256_maddubs_epi16(K_M256(q + 64), v);
    return _mm256_add_epi32(_mm256_madd_epi16(upper, _mm256_slli_epi16(scale, 8)), _mm256_madd_epi16(lower, scale));
}
K_FN K(vi) K(vi_bytes)(K(vi) s, K(vw) v, const unsigned char *q, K(vw) w) {
    K_VI(_mm256_add_epi32(s.a, K(bytes)(v.a, q, w.a)), _mm256_add_epi32(s.b, K(bytes)(v.b, q + 32, w.b)));
}
K_FN K(vf) K(vf_first)(K(vl) v) { K_VF(_mm256_broadcastss_ps(v), _mm256_broadcastss_ps(v)); }
K_FN K(vg) K(vg_bytes)(uint64_t scales) { return _mm256_set1_epi64x((long long)scales); }
K_FN K(vw) K(vg_pick)(K(vg) s, int i, int j) {
    K_VW(_mm256_shuffle_epi8(s, _mm256_set1_epi16((short)(i - 0x8000))),
         _mm256_shuffle_epi8(s, _mm256_set1_epi16((short)(j - 0x8000))));
}
K_FN K(vs) K(vs_bytes)(uint64_t low, uint64_t high) {
    K(vs) s;
    s.a = _mm256_broadcastsi128_si256(_mm_cvtepi8_epi16(_mm_cvtsi64_si128((long long)low)));
    s.b = _mm256_broadcastsi128_si256(_mm_cvtepi8_epi16(_mm_cvtsi64_si128((long long)high)));
    return s;
}
K_FN __m256i K(pick)(K(vs) s, int i) {
    return _mm256_shuffle_epi8(i < 8 ? s.a : s.b, _mm256_set1_epi16((short)((i & 7) * 514 + 256)));
}
K_FN K(vw) K(vs_pick)(K(vs) s, int i, int j) { K_VW(K(pick)(s, i), K(pick)(s, j)); }
K_FN K(vw) K(vw_signed)(K(vb) v) {
    K_VW(_mm256_cvtepi8_epi16(_mm256_castsi256_si128(v)), _mm256_cvtepi8_epi16(_mm256_extracti128_si256(v, 1)));
}
K_FN K(vw) K(vw_unsigned)(K(vb) v) {
    K_VW(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(v)), _mm256_cvtepu8_epi16(_mm256_extracti128_si256(v, 1)));
}
K_FN K(vw) K(vw_set)(int x) { K_VW(_mm256_set1_epi16((short)x), _mm256_set1_epi16((short)x)); }
K_FN K(vw) K(vw_add)(K(vw) v, K(vw) w) { K_VW(_mm256_add_epi16(v.a, w.a), _mm256_add_epi16(v.b, w.b)); }
K_FN K(vw) K(vw_mul)(K(vw) v, K(vw) w) { K_VW(_mm256_mullo_epi16(v.a, w.a), _mm256_mullo_epi16(v.b, w.b)); }
K_FN K(vw) K(vw_bytes)(const unsigned char *p) { K_VW(K_M256(p), K_M256(p + 32)); }
K_FN K(vw) K(vw_twice)(const unsigned char *p) { K_VW(K_M256(p), _mm256_srli_epi16(K_M256(p), 2)); }
K_FN K(vw) K(vw_and)(K(vw) v, int mask) {
    __m256i all = _mm256_set1_epi16((short)mask);
    K_VW(_mm256_and_si256(v.a, all), _mm256_and_si256(v.b, all));
}
K_FN K(vw) K(vw_or)(K(vw) v, K(vw) w) { K_VW(_mm256_or_si256(v.a, w.a), _mm256_or_si256(v.b, w.b)); }
K_FN K(vw) K(vw_shr)(K(vw) v, int n) { K_VW(_mm256_srli_epi16(v.a, n), _mm256_srli_epi16(v.b, n)); }
K_FN K(vw) K(vw_shl)(K(vw) v, int n) { K_VW(_mm256_slli_epi16(v.a, n), _mm256_slli_epi16(v.b, n)); }
#include "kernels.h"
#undef K
#undef K_TARGET
#undef K_FN
#undef K_ENTRY
#endif /* QUANTS_X86 */

#define K(name) plain_##name
#undef K_UNROLL
#define K_UNROLL /* nothing stays in registers here, and compiling would take a minute */
#define K_FN     static inline
#define K_ENTRY
#ifdef FP_FAST_FMAF
#define K_FMA(a, b, c) fmaf(a, b, c)
#else
#define K_FMA(a, b, c) ((a) * (b) + (c))
#endif
typedef struct {
    float v[16];
} K(vf);
typedef struct {
    int32_t v[16];
} K(vi);
typedef struct {
    int16_t v[32];
} K(vw);
typedef struct {
    unsigned char v[32];
} K(vb);
typedef struct {
    int16_t v[16];
} K(vs);
typedef uint64_t K(vg);
typedef struct {
    float v[4];
} K(vl);
#define K_EACH(type, n, value)                                                                                         \
    K(type) r;                                                                                                         \
    for (int i = 0; i < (n); i++) r.v[i] = (value);                                                                    \
    return r
K_FN float K(half)(const unsigned char *p) { return weight_float(p, GGUF_TENSOR_F16); }
K_FN K(vb) K(vb_load)(const unsigned char *p) { K_EACH(vb, 32, p[i]); }
K_FN K(vb) K(vb_and)(K(vb) b, int mask) { K_EACH(vb, 32, (unsigned char)(b.v[i] & mask)); }
K_FN K(vb) K(vb_or)(K(vb) b, K(vb) c) { K_EACH(vb, 32, (unsigned char)(b.v[i] | c.v[i])); }
K_FN K(vb) K(vb_shr)(K(vb) b, int n) { K_EACH(vb, 32, (unsigned char)(b.v[i] >> n)); }
K_FN K(vb) K(vb_shl)(K(vb) b, int n) { K_EACH(vb, 32, (unsigned char)(b.v[i] << n)); }
K_FN K(vb) K(vb_nibbles)(const unsigned char *p) {
    K_EACH(vb, 32, (unsigned char)(i < 16 ? p[i] & 15 : p[i - 16] >> 4));
}
K_FN K(vb) K(vb_lookup)(const signed char *table, K(vb) b) { K_EACH(vb, 32, (unsigned char)table[b.v[i]]); }
K_FN K(vf) K(vf_set)(float x) { K_EACH(vf, 16, x); }
K_FN K(vf) K(vf_zero)(void) { return K(vf_set)(0.0f); }
K_FN K(vf) K(vf_load)(const float *p) { K_EACH(vf, 16, p[i]); }
K_FN K(vf) K(vf_le)(const unsigned char *p) { K_EACH(vf, 16, weight_float(p + 4 * i, GGUF_TENSOR_F32)); }
K_FN K(vf) K(vf_half)(const unsigned char *p) { K_EACH(vf, 16, weight_float(p + 2 * i, GGUF_TENSOR_F16)); }
K_FN K(vf) K(vf_brain)(const unsigned char *p) { K_EACH(vf, 16, weight_float(p + 2 * i, GGUF_TENSOR_BF16)); }
K_FN K(vf) K(vf_add)(K(vf) a, K(vf) b) { K_EACH(vf, 16, a.v[i] + b.v[i]); }
K_FN K(vf) K(vf_fma)(K(vf) a, K(vf) b, K(vf) c) { K_EACH(vf, 16, K_FMA(a.v[i], b.v[i], c.v[i])); }
K_FN K(vf) K(vf_int)(K(vi) s) { K_EACH(vf, 16, (float)s.v[i]); }
K_FN float K(vf_total)(K(vf) s) {
    for (int half = 8; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) s.v[i] += s.v[i + half];
    }
    return s.v[0];
}
K_FN K(vi) K(vi_zero)(void) { K_EACH(vi, 16, 0); }
K_FN K(vi) K(vi_madd)(K(vi) s, K(vw) v, K(vw) w) {
    K_EACH(vi, 16, s.v[i] + v.v[2 * i] * w.v[2 * i] + v.v[2 * i + 1] * w.v[2 * i + 1]);
}
K_FN K(vw) K(vw_words)(const int16_t *x) { K_EACH(vw, 32, x[i]); }
K_FN K(vs) K(vs_bytes)(uint64_t low, uint64_t high) {
    K_EACH(vs, 16, (signed char)((i < 8 ? low : high) >> 8 * (i & 7) & 255));
}
/* A word of v has the weights 2i and 2i + 1; a lane of the sums four of them. */
K_FN int32_t K(bytes)(K(vw) v, const unsigned char *q, int from) {
    int32_t sum = 0;
    for (int i = from; i < from + 4; i++) {
        sum += (v.v[i / 2] >> i % 2 * 8 & 255) * ((signed char)q[i] * 256 + q[64 + i]);
    }
    return sum;
}
K_FN K(vi) K(vi_bytes)(K(vi) s, K(vw) v, const unsigned char *q, K(vw) w) {
    K_EACH(vi, 16, s.v[i] + K(bytes)(v, q, 4 * i) * w.v[2 * i]);
}
K_FN K(vf) K(vf_first)(K(vl) v) { K_EACH(vf, 16, v.v[0]); }
K_FN K(vg) K(vg_bytes)(uint64_t scales) { return scales; }
K_FN K(vw) K(vg_pick)(K(vg) s, int j, int k) { K_EACH(vw, 32, (int16_t)(s >> 8 * (i < 16 ? j : k) & 255)); }
K_FN K(vl) K(vl_zero)(void) { K_EACH(vl, 4, 0.0f); }
K_FN K(vl) K(vl_halves)(const unsigned char *p, float by) { K_EACH(vl, 4, i < 2 ? K(half)(p + 2 * i) * by : 0.0f); }
K_FN int32_t K(mins)(uint64_t mins, const int16_t *sum, int g) {
    return (int32_t)(mins >> 8 * g & 255) * (sum[g] * 32768 + sum[8 + g]);
}
K_FN K(vl) K(vl_mins)(K(vl) all, uint64_t mins, const int16_t *sum, K(vl) by) {
    K_EACH(vl, 4, K_FMA((float)(K(mins)(mins, sum, 2 * i) + K(mins)(mins, sum, 2 * i + 1)), by.v[1], all.v[i]));
}
K_FN float K(vl_total)(K(vl) v) { return (v.v[0] + v.v[2]) + (v.v[1] + v.v[3]); }
K_FN K(vw) K(vs_pick)(K(vs) s, int j, int k) { K_EACH(vw, 32, s.v[i < 16 ? j : k]); }
K_FN K(vw) K(vw_signed)(K(vb) b) { K_EACH(vw, 32, (int16_t)(signed char)b.v[i]); }
K_FN K(vw) K(vw_unsigned)(K(vb) b) { K_EACH(vw, 32, b.v[i]); }
K_FN K(vw) K(vw_set)(int x) { K_EACH(vw, 32, (int16_t)x); }
K_FN K(vw) K(vw_add)(K(vw) a, K(vw) b) { K_EACH(vw, 32, (int16_t)(a.v[i] + b.v[i])); }
K_FN K(vw) K(vw_mul)(K(vw) a, K(vw) b) { K_EACH(vw, 32, (int16_t)(a.v[i] * b.v[i])); }
K_FN K(vw) K(vw_bytes)(const unsigned char *p) { K_EACH(vw, 32, (int16_t)(p[2 * i] | p[2 * i + 1] << 8)); }
K_FN K(vw) K(vw_twice)(const unsigned char *p) {
    K_EACH(vw, 32, (int16_t)((p[2 * i % 32] | p[2 * i % 32 + 1] << 8) >> (i < 16 ? 0 : 2)));
}
K_FN K(vw) K(vw_and)(K(vw) v, int mask) { K_EACH(vw, 32, (int16_t)(v.v[i] & mask)); }
K_FN K(vw) K(vw_or)(K(vw) v, K(vw) w) { K_EACH(vw, 32, (int16_t)(v.v[i] | w.v[i])); }
K_FN K(vw) K(vw_shr)(K(vw) v, int n) { K_EACH(vw, 32, (int16_t)((uint16_t)v.v[i] >> n)); }
K_FN K(vw) K(vw_shl)(K(vw) v, int n) { K_EACH(vw, 32, (int16_t)((uint16_t)v.v[i] << n)); }
#include "kernels.h"
#undef K
#undef K_FN
#undef K_ENTRY

/* ---- the product ---- */

/* Where activation i of 256 stands in what super_45's 64 weights are multiplied with: the upper byte; the lower one is
   64 bytes further. */
static inline size_t weights_place(size_t i) {
    size_t group = i / 32;
    return group / 4 * 256 + group % 2 * 128 + group / 2 % 2 * 32 + i % 32;
}
static inline int weights_reordered(uint32_t type) { return type == GGUF_TENSOR_Q4_K || type == GGUF_TENSOR_Q5_K; }

/* One row as floats: a token's embedding. */
static inline void weights_row(const weights *w, int row, float *out) {
    size_t unit = (size_t)weights_block(w->type), bytes = gguf_bytes(w->type, unit ? unit : 1);
    const unsigned char *p = w->data + (size_t)row * gguf_bytes(w->type, (size_t)w->cols);
    for (size_t c = 0; c < (size_t)w->cols; c += unit ? unit : 1, p += bytes) {
        plain_vw v[8]; /* Q4_K, Q5_K: four, of 64 bytes */
        weight_scales s = { 0, 0 };
        float scale = 0.0f, low = 0.0f;
        if (unit == 0) {
            out[c] = weight_float(p, w->type);
            continue;
        }
        if (unit == 32) v[0] = plain_block(p, w->type, &scale);
        else if (w->type == GGUF_TENSOR_Q6_K) plain_super_6(p, v);
        else {
            s = weight_scales_of(p + 4);
            plain_super_45(p, w->type == GGUF_TENSOR_Q5_K, v);
        }
        if (unit == 256) scale = plain_half(w->type == GGUF_TENSOR_Q6_K ? p + 208 : p);
        if (unit == 256 && w->type != GGUF_TENSOR_Q6_K) low = plain_half(p + 2);
        for (size_t i = 0; i < unit; i++) {
            size_t group = i / 32, at = weights_reordered(w->type) ? weights_place(i) : i;
            int value = v[at / 32 % 8].v[at % 32];
            if (weights_reordered(w->type)) {
                value = v[at / 128].v[at % 64 / 2] >> i % 2 * 8 & 255;
                value *= (int)(s.scales >> 8 * group & 63);
            }
            out[c + i] = scale * (float)value - low * (float)(s.mins >> 8 * group & 63);
        }
    }
}

/* y += row, where there are weights at all. */
static inline void weights_add_row(const weights *w, int row, float *y) {
    const unsigned char *p = w->data + (w->data ? (size_t)row * gguf_bytes(w->type, (size_t)w->cols) : 0);
    size_t size = w->data ? gguf_bytes(w->type, 1) : 0;
    for (size_t i = 0; w->data && i < (size_t)w->cols; i++) y[i] += weight_float(p + i * size, w->type);
}

/* Memory for rows of up to cols numbers, at any address: what is read 64 bytes at once lies at multiples of 64, or
   every load would touch two lines of the cache. */
static inline size_t activations_bytes(size_t rows, size_t cols) {
    size_t n = rows * ((cols + 255) / 256 * 256);
    return n * 2 + n / 16 * 2 + n / 32 * 4 + 64;
}
static inline void activations_lie(activations *a, void *memory, size_t rows, size_t cols) {
    size_t n = rows * ((cols + 255) / 256 * 256);
    char *p = (char *)memory + (64 - (uintptr_t)memory % 64) % 64;
    a->q = (int16_t *)(void *)p;
    a->sum = (int16_t *)(void *)(p + n * 2);
    a->scale = (float *)(void *)(p + n * 2 + n / 16 * 2);
}

/* 32 numbers times inverse, rounded to nearest even. lrintf is a call where errno is kept. */
static inline void activations_round(const float *x, float inverse, int32_t q[32]) {
#if QUANTS_X86
    for (int i = 0; i < 32; i += 4) {
        __m128i v = _mm_cvtps_epi32(_mm_mul_ps(_mm_loadu_ps(x + i), _mm_set1_ps(inverse)));
        _mm_storeu_si128((__m128i *)(void *)(q + i), v);
    }
#else
    for (int i = 0; i < 32; i++) q[i] = (int32_t)lrintf(x[i] * inverse);
#endif
}

/* The largest magnitude, as bits: those of NaN are larger than those of any number. */
static inline float activations_most(const float *x, size_t n) {
    uint32_t most = 0, bits;
    float v;
    for (size_t i = 0; i < n; i++) {
        memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffffu;
        most = bits > most ? bits : most;
    }
    memcpy(&v, &most, sizeof v);
    return v;
}

/* 32 numbers of 16 bits to where super_45 wants them, and minus their sum: 32768 times one number and another one, the
   second eight places behind the first. */
static inline void activations_split(const int32_t q[32], unsigned char *to, int16_t *sum) {
    int32_t all = 0;
    for (int j = 0; j < 32; j++) {
        all -= q[j];
        to[j] = (unsigned char)((uint32_t)q[j] >> 8);
        to[64 + j] = (unsigned char)q[j];
    }
    sum[8] = (int16_t)(all & 32767);
    sum[0] = (int16_t)((all - sum[8]) / 32768);
}

/* Rounds n rows of x to 16 bits, if that is what the weights are multiplied with. NaN and infinity stay visible: in the
   scale. */
static inline void activations_set(activations *a, const float *x, const weights *w, int n) {
    size_t block = (size_t)weights_block(w->type), numbers = (size_t)n * (size_t)w->cols;
    int reordered = weights_reordered(w->type);
    a->x = x;
    for (size_t b = 0; block && b < numbers; b += block) {
        float most = activations_most(x + b, block), inverse;
        inverse = most > 1e-30f && most <= 1e30f ? 32767.0f / most : 0.0f;
        a->scale[b / block] = most > 1e-30f || most != most ? most / 32767.0f : 0.0f;
        for (size_t i = 0; i < block; i += 32) {
            unsigned char *bytes = (unsigned char *)(a->q + b) + weights_place(i);
            int32_t q[32];
            if (inverse > 0.0f) activations_round(x + b + i, inverse, q);
            else
                for (int j = 0; j < 32; j++) q[j] = 1;
            if (reordered) activations_split(q, bytes, a->sum + b / 16 + i / 32);
            for (int j = 0; !reordered && j < 32; j++) a->q[b + i + (size_t)j] = (int16_t)q[j];
        }
    }
}

typedef void rows_fn(const weights *w, const activations *x, int tokens, int from, int to, float *out);

static inline rows_fn *rows_best(void) {
#if QUANTS_X86
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
        && __builtin_cpu_supports("avx512vnni"))
        return avx512_rows;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2_rows;
#endif
    return plain_rows;
}

/* One matrix of several that the same x is multiplied with. Of a kind: x is rounded for them alike. */
typedef struct {
    const weights *w;
    float *out;
} one_product;
static inline int weights_of_a_kind(uint32_t a, uint32_t b) {
    return weights_block(a) == weights_block(b) && weights_reordered(a) == weights_reordered(b);
}

/* x is rounded once for neighbours of a kind, and threads are woken once. Small products stay on one thread: waking
   others costs more. */
static inline void products(const one_product *f, int count, const float *x, int n, activations *space) {
    enum { SHARE = 32 }; /* rows */
    rows_fn *rows = rows_best();
    for (int from = 0, to = 0; from < count; from = to) {
        const weights *kind = f[from].w;
        double work = 0;
        int shares = 0;
        for (; to < count && weights_of_a_kind(f[to].w->type, kind->type); to++) {
            work += (double)n * f[to].w->rows * kind->cols;
            shares += (f[to].w->rows + SHARE - 1) / SHARE;
        }
        activations_set(space, x, kind, n);
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (work > 1e6)
#else
        (void)work;
#endif
        for (int i = 0; i < shares; i++) {
            int r = i * SHARE, at = from;
            for (; r >= f[at].w->rows; at++) r -= (f[at].w->rows + SHARE - 1) / SHARE * SHARE;
            rows(f[at].w, space, n, r, r + SHARE < f[at].w->rows ? r + SHARE : f[at].w->rows, f[at].out);
        }
    }
}

static inline void product(float *out, const float *x, const weights *w, int n, activations *space) {
    one_product one = { w, out };
    products(&one, 1, x, n, space);
}
#endif /* QUANTS_H_INCLUDED */
