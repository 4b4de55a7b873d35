/* avx512_model.h - AVX-512 for a CPU that has AVX2 only: what swa.h uses of its instructions, written out as Intel's
   manual has them. With `-include` of this, functions for AVX-512 are compiled for AVX2 and run on any x86-64 with
   that, slowly, so that the tests reach them (emulate.sh). The CPU is taken for a Zen 4; with SWA_OTHER_CPU=intel in
   the environment for an Intel, its tiles by swa.h's own model of them. Where swa.h comes to use another instruction,
   the compiler says that AVX-512 is not enabled. Numbers are as the hardware has them, but for the payload of a
   NaN. */
#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SWA_TILE_MODEL

static inline int model_intel(void) {
    const char *kind = getenv("SWA_OTHER_CPU");
    return kind && *kind == 'i';
}
#define MODEL_IS(text, name)      (sizeof(text) == sizeof(name) && !memcmp(text, name, sizeof(text)))
#define __builtin_cpu_is(x)       (MODEL_IS(x, "intel") == model_intel())
#define __builtin_cpu_supports(x) (!MODEL_IS(x, "avx512vp2intersect")) /* which tells Zen 5 */

/* The vectors of immintrin.h, whole and by lanes. */
typedef union {
    __m512 f;
    __m512i i;
    __m256 half[2];
    __m256i ihalf[2];
    __m128i quarter[4];
    float s[16];
    int32_t d[16];
    uint32_t u[16];
    uint64_t q[8];
    int16_t w[32];
    uint16_t uw[32];
    int8_t b[64];
    uint8_t ub[64];
} model_v;

#define MODEL         static inline __attribute__((always_inline, unused, target("avx2,fma,f16c")))
#define MODEL_EACH(n) for (int j = 0; j < (n); j++)
#define MODEL_I(x)    (((model_v){ .i = (x) }))
#define MODEL_F(x)    (((model_v){ .f = (x) }))
#define MODEL_H(x)    (((model_v){ .ihalf = { (x) } }))
#define MODEL_Q(x)    (((model_v){ .quarter = { (x) } }))

/* name(x) or name(x, y): lane j of n is `value` of j and of a and b, which are x and y as unions */
#define MODEL_1(name, in, A, out, n, lane, value, result)                                                              \
    MODEL out name(in x) {                                                                                             \
        model_v a = A(x), r;                                                                                           \
        MODEL_EACH(n) r.lane[j] = (value);                                                                             \
        return r.result;                                                                                               \
    }
#define MODEL_2(name, type, A, n, lane, value, result)                                                                 \
    MODEL type name(type x, type y) {                                                                                  \
        model_v a = A(x), b = A(y), r;                                                                                 \
        MODEL_EACH(n) r.lane[j] = (value);                                                                             \
        return r.result;                                                                                               \
    }
#define MODEL_II(name, n, lane, value) MODEL_2(name, __m512i, MODEL_I, n, lane, value, i)
#define MODEL_FF(name, n, lane, value) MODEL_2(name, __m512, MODEL_F, n, lane, value, f)
#define MODEL_MASK(name, mask, n, condition)                                                                           \
    MODEL mask name(__m512i x, __m512i y) {                                                                            \
        model_v a = MODEL_I(x), b = MODEL_I(y);                                                                        \
        mask m = 0;                                                                                                    \
        MODEL_EACH(n) m |= (mask)(condition) << j;                                                                     \
        return m;                                                                                                      \
    }
#define MODEL_SHIFT(name, c)                                                                                           \
    MODEL __m512i name(__m512i x, unsigned n) {                                                                        \
        model_v a = MODEL_I(x), r;                                                                                     \
        MODEL_EACH(16) r.u[j] = n > 31 ? 0 : a.u[j] c n;                                                               \
        return r.i;                                                                                                    \
    }

/* loads, stores, constants */
MODEL __m512 model_loadu_ps(const void *p) {
    model_v r;
    memcpy(&r, p, 64);
    return r.f;
}
MODEL __m512i model_loadu_si512(const void *p) {
    model_v r;
    memcpy(&r, p, 64);
    return r.i;
}
MODEL void model_storeu_ps(void *p, __m512 x) { memcpy(p, &x, 64); }
MODEL void model_storeu_si512(void *p, __m512i x) { memcpy(p, &x, 64); }
MODEL __m512i model_maskz_loadu_epi8(__mmask64 m, const void *p) {
    model_v r;
    MODEL_EACH(64) r.ub[j] = m >> j & 1 ? ((const uint8_t *)p)[j] : 0;
    return r.i;
}
#define MODEL_SET1(name, type, out, n, lane, result)                                                                   \
    MODEL out name(type x) {                                                                                           \
        model_v r;                                                                                                     \
        MODEL_EACH(n) r.lane[j] = x;                                                                                   \
        return r.result;                                                                                               \
    }
MODEL_SET1(model_set1_ps, float, __m512, 16, s, f)
MODEL_SET1(model_set1_epi32, int, __m512i, 16, d, i)
MODEL_SET1(model_set1_epi16, short, __m512i, 32, w, i)
MODEL_SET1(model_set1_epi8, signed char, __m512i, 64, b, i)
#define model_setr_epi32(...) (((model_v){ .d = { __VA_ARGS__ } }).i)
#define model_setzero_ps()    model_set1_ps(0.0f)
#define model_setzero_si512() model_set1_epi32(0)

/* arithmetic */
MODEL_FF(model_add_ps, 2, half, _mm256_add_ps(a.half[j], b.half[j]))
MODEL_FF(model_mul_ps, 2, half, _mm256_mul_ps(a.half[j], b.half[j]))
MODEL_FF(model_max_ps, 2, half, _mm256_max_ps(a.half[j], b.half[j]))
MODEL_FF(model_min_ps, 2, half, _mm256_min_ps(a.half[j], b.half[j]))
MODEL __m512 model_fmadd_ps(__m512 x, __m512 y, __m512 z) {
    model_v a = MODEL_F(x), b = MODEL_F(y), c = MODEL_F(z), r;
    MODEL_EACH(2) r.half[j] = _mm256_fmadd_ps(a.half[j], b.half[j], c.half[j]);
    return r.f;
}
MODEL __m512 model_fmsub_ps(__m512 x, __m512 y, __m512 z) {
    model_v a = MODEL_F(x), b = MODEL_F(y), c = MODEL_F(z), r;
    MODEL_EACH(2) r.half[j] = _mm256_fmsub_ps(a.half[j], b.half[j], c.half[j]);
    return r.f;
}
MODEL __m512 model_maskz_fmsub_ps(__mmask16 m, __m512 x, __m512 y, __m512 z) {
    model_v r = MODEL_F(model_fmsub_ps(x, y, z));
    MODEL_EACH(16) if (!(m >> j & 1)) r.u[j] = 0;
    return r.f;
}
MODEL_II(model_add_epi32, 16, u, a.u[j] + b.u[j])
MODEL_II(model_sub_epi32, 16, u, a.u[j] - b.u[j])
MODEL_II(model_mullo_epi32, 16, u, a.u[j] * b.u[j])
MODEL_II(model_add_epi16, 32, uw, (uint16_t)(a.uw[j] + b.uw[j]))
MODEL_II(model_sub_epi16, 32, uw, (uint16_t)(a.uw[j] - b.uw[j]))
MODEL_II(model_min_epi16, 32, w, a.w[j] < b.w[j] ? a.w[j] : b.w[j])
MODEL_II(model_min_epu16, 32, uw, a.uw[j] < b.uw[j] ? a.uw[j] : b.uw[j])
MODEL_II(model_and_si512, 8, q, a.q[j] & b.q[j])
MODEL_II(model_or_si512, 8, q, a.q[j] | b.q[j])
MODEL_II(model_xor_si512, 8, q, a.q[j] ^ b.q[j])
MODEL_SHIFT(model_slli_epi32, <<)
MODEL_SHIFT(model_srli_epi32, >>)
#define model_srl_epi32(x, n) model_srli_epi32((x), (unsigned)_mm_cvtsi128_si32(n))
MODEL_1(model_abs_ps, __m512, MODEL_F, __m512, 16, u, a.u[j] & 0x7fffffff, f)
/* 8: to the nearest, 9: down */
MODEL __m512 model_roundscale_ps(__m512 x, int how) {
    model_v a = MODEL_F(x), r;
    MODEL_EACH(2) r.half[j] = how == 8 ? _mm256_round_ps(a.half[j], 8) : _mm256_round_ps(a.half[j], 9);
    return r.f;
}
MODEL_FF(model_scalef_ps, 16, s,
         ldexpf(a.s[j], b.s[j] > 1000.0f     ? 1000
                        : b.s[j] >= -1000.0f ? (int)floorf(b.s[j])
                                             : -1000))
/* 2: the smaller magnitude, with the sign of x; a number rather than a NaN */
MODEL __m512 model_range_ps(__m512 x, __m512 y, int how) {
    model_v a = MODEL_F(x), b = MODEL_F(y), r;
    if (how != 2) abort();
    MODEL_EACH(16) {
        const float z = a.s[j] != a.s[j] ? b.s[j]
                      : b.s[j] != b.s[j] || fabsf(a.s[j]) <= fabsf(b.s[j])
                          ? a.s[j]
                          : b.s[j];
        r.s[j] = copysignf(z, a.s[j]);
    }
    return r.f;
}
/* Four bytes without sign times four with one. */
MODEL __m512i model_dpbusd_epi32(__m512i sum, __m512i x, __m512i y) {
    model_v r = MODEL_I(sum), a = MODEL_I(x), b = MODEL_I(y);
    MODEL_EACH(64) r.d[j / 4] += a.ub[j] * b.b[j];
    return r.i;
}
MODEL __m256i model_dpbusd_avx_epi32(__m256i sum, __m256i x, __m256i y) {
    model_v r = MODEL_H(sum), a = MODEL_H(x), b = MODEL_H(y);
    MODEL_EACH(32) r.d[j / 4] += a.ub[j] * b.b[j];
    return r.ihalf[0];
}
/* Two FMAs, that of the upper number first; what is subnormal counts as 0, before and after. */
MODEL float model_flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0.0f, x) : x; }
MODEL float model_of_bf16(uint16_t x) {
    const uint32_t u = (uint32_t)x << 16;
    float f;
    memcpy(&f, &u, 4);
    return model_flushed(f);
}
MODEL __m512 model_dpbf16_ps(__m512 sum, __m512bh x, __m512bh y) {
    model_v r = MODEL_F(sum), a = MODEL_I((__m512i)x), b = MODEL_I((__m512i)y);
    MODEL_EACH(32) {
        const int i = j ^ 1;
        r.s[j / 2] = model_flushed(fmaf(model_of_bf16(a.uw[i]), model_of_bf16(b.uw[i]), model_flushed(r.s[j / 2])));
    }
    return r.f;
}

/* from one type to another */
MODEL uint16_t model_bf16(float x) {
    uint32_t u;
    x = model_flushed(x);
    memcpy(&u, &x, 4);
    return x != x ? (uint16_t)(u >> 16 | 0x40) : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
MODEL __m512bh model_cvtne2ps_pbh(__m512 upper, __m512 lower) {
    model_v a = MODEL_F(upper), b = MODEL_F(lower), r;
    MODEL_EACH(16) {
        r.uw[j] = model_bf16(b.s[j]);
        r.uw[16 + j] = model_bf16(a.s[j]);
    }
    return (__m512bh)r.i;
}
MODEL_1(model_cvtph_ps, __m256i, MODEL_H, __m512, 2, half, _mm256_cvtph_ps(a.quarter[j]), f)
#define model_cvtps_ph(x, how)                                                                                         \
    _mm256_inserti128_si256(                                                                                           \
        _mm256_castsi128_si256(_mm256_cvtps_ph(MODEL_F(x).half[0], how)), _mm256_cvtps_ph(MODEL_F(x).half[1], how), 1)
MODEL_1(model_cvtps_epi32, __m512, MODEL_F, __m512i, 2, ihalf, _mm256_cvtps_epi32(a.half[j]), i)
MODEL_1(model_cvtepi32_ps, __m512i, MODEL_I, __m512, 2, half, _mm256_cvtepi32_ps(a.ihalf[j]), f)
MODEL_1(model_cvtepu16_epi32, __m256i, MODEL_H, __m512i, 16, u, a.uw[j], i)
MODEL_1(model_cvtepi8_epi32, __m128i, MODEL_Q, __m512i, 16, d, a.b[j], i)
MODEL_1(model_cvtepi32_epi16, __m512i, MODEL_I, __m256i, 16, uw, (uint16_t)a.u[j], ihalf[0])
MODEL_1(model_cvtepi32_epi8, __m512i, MODEL_I, __m128i, 16, ub, (uint8_t)a.u[j], quarter[0])

/* masks */
MODEL_MASK(model_cmpeq_epi32_mask, __mmask16, 16, a.u[j] == b.u[j])
MODEL_MASK(model_test_epi32_mask, __mmask16, 16, (a.u[j] & b.u[j]) != 0)
MODEL_MASK(model_cmpge_epu16_mask, __mmask32, 32, a.uw[j] >= b.uw[j])
MODEL_MASK(model_cmpneq_epu16_mask, __mmask32, 32, a.uw[j] != b.uw[j])
MODEL __mmask16 model_cmp_ps_mask(__m512 x, __m512 y, int how) {
    model_v a = MODEL_F(x), b = MODEL_F(y);
    unsigned m = 0;
    MODEL_EACH(16) {
        if (how == _CMP_GE_OQ) m |= (unsigned)(a.s[j] >= b.s[j]) << j;
        else if (how == _CMP_LT_OQ) m |= (unsigned)(a.s[j] < b.s[j]) << j;
        else if (how == _CMP_NLT_UQ) m |= (unsigned)!(a.s[j] < b.s[j]) << j;
        else abort();
    }
    return (__mmask16)m;
}
MODEL __m512 model_mask_blend_ps(__mmask16 m, __m512 x, __m512 y) {
    model_v a = MODEL_F(x), b = MODEL_F(y);
    MODEL_EACH(16) if (m >> j & 1) a.s[j] = b.s[j];
    return a.f;
}
MODEL __m512 model_mask_mul_ps(__m512 from, __mmask16 m, __m512 x, __m512 y) {
    return model_mask_blend_ps(m, from, model_mul_ps(x, y));
}
MODEL __mmask16 model_cmpneq_epi8_mask(__m128i x, __m128i y) {
    return (__mmask16)~_mm_movemask_epi8(_mm_cmpeq_epi8(x, y));
}
MODEL __m512 model_maskz_mov_ps(__mmask16 m, __m512 x) { return model_mask_blend_ps(m, model_setzero_ps(), x); }
MODEL __m512i model_maskz_mov_epi16(__mmask32 m, __m512i x) {
    model_v a = MODEL_I(x);
    MODEL_EACH(32) if (!(m >> j & 1)) a.w[j] = 0;
    return a.i;
}
MODEL __m512i model_mask_add_epi32(__m512i x, __mmask16 m, __m512i y, __m512i z) {
    model_v r = MODEL_I(x), a = MODEL_I(y), b = MODEL_I(z);
    MODEL_EACH(16) if (m >> j & 1) r.u[j] = a.u[j] + b.u[j];
    return r.i;
}
MODEL __m512i model_maskz_slli_epi32(__mmask16 m, __m512i x, unsigned n) {
    model_v a = MODEL_I(x);
    MODEL_EACH(16) a.u[j] = m >> j & 1 ? a.u[j] << n : 0;
    return a.i;
}

/* lanes to other places */
/* a: which lane of b */
MODEL_II(model_permutexvar_epi16, 32, w, b.w[a.w[j] & 31])
MODEL_II(model_permutexvar_epi8, 64, b, b.b[a.b[j] & 63])
MODEL __m512i model_maskz_permutexvar_epi16(__mmask32 m, __m512i x, __m512i y) {
    return model_maskz_mov_epi16(m, model_permutexvar_epi16(x, y));
}
MODEL __m512 model_permutex2var_ps(__m512 x, __m512i index, __m512 y) {
    model_v a = MODEL_F(x), i = MODEL_I(index), b = MODEL_F(y), r;
    MODEL_EACH(16) r.s[j] = (i.d[j] & 16 ? b.s : a.s)[i.d[j] & 15];
    return r.f;
}
MODEL __m512i model_permutex2var_epi16(__m512i x, __m512i index, __m512i y) {
    model_v a = MODEL_I(x), i = MODEL_I(index), b = MODEL_I(y), r;
    MODEL_EACH(32) r.w[j] = (i.w[j] & 32 ? b.w : a.w)[i.w[j] & 31];
    return r.i;
}
MODEL __m512 model_permute_ps(__m512 x, int how) {
    model_v a = MODEL_F(x), r;
    MODEL_EACH(16) r.s[j] = a.s[(j & 12) + (how >> 2 * (j & 3) & 3)];
    return r.f;
}
MODEL __m512 model_shuffle_ps(__m512 x, __m512 y, int how) {
    model_v a = MODEL_F(x), b = MODEL_F(y), r;
    MODEL_EACH(16) r.s[j] = (j & 2 ? b.s : a.s)[(j & 12) + (how >> 2 * (j & 3) & 3)];
    return r.f;
}
MODEL __m512 model_shuffle_f32x4(__m512 x, __m512 y, int how) {
    model_v a = MODEL_F(x), b = MODEL_F(y), r;
    MODEL_EACH(4) r.quarter[j] = (j & 2 ? b.quarter : a.quarter)[how >> 2 * j & 3];
    return r.f;
}
MODEL __m512i model_shuffle_i64x2(__m512i x, __m512i y, int how) {
    return (__m512i)model_shuffle_f32x4((__m512)x, (__m512)y, how);
}
/* Of each 128 bits the lower or upper half, numbers of x and y in turn; n numbers fill them. */
#define MODEL_UNPACK(name, type, A, n, lane, upper, result)                                                            \
    MODEL_2(name, type, A, 4 * (n), lane, (j & 1 ? b.lane : a.lane)[j / (n) * (n) + (upper) * (n) / 2 + j % (n) / 2],  \
            result)
MODEL_UNPACK(model_unpacklo_epi16, __m512i, MODEL_I, 8, w, 0, i)
MODEL_UNPACK(model_unpackhi_epi16, __m512i, MODEL_I, 8, w, 1, i)
MODEL_UNPACK(model_unpacklo_epi32, __m512i, MODEL_I, 4, u, 0, i)
MODEL_UNPACK(model_unpackhi_epi32, __m512i, MODEL_I, 4, u, 1, i)
MODEL_UNPACK(model_unpacklo_epi64, __m512i, MODEL_I, 2, q, 0, i)
MODEL_UNPACK(model_unpackhi_epi64, __m512i, MODEL_I, 2, q, 1, i)
MODEL_UNPACK(model_unpacklo_ps, __m512, MODEL_F, 4, s, 0, f)
MODEL_UNPACK(model_unpackhi_ps, __m512, MODEL_F, 4, s, 1, f)
MODEL __m512i model_inserti64x4(__m512i x, __m256i y, int at) {
    model_v r = MODEL_I(x);
    r.ihalf[at] = y;
    return r.i;
}
MODEL __m512i model_inserti32x4(__m512i x, __m128i y, int at) {
    model_v r = MODEL_I(x);
    r.quarter[at] = y;
    return r.i;
}
MODEL __m256i model_extracti64x4_epi64(__m512i x, int at) { return MODEL_I(x).ihalf[at]; }
MODEL __m512i model_castps_si512(__m512 x) { return MODEL_F(x).i; }
MODEL __m512 model_castsi512_ps(__m512i x) { return MODEL_I(x).f; }
MODEL __m256i model_castsi512_si256(__m512i x) { return MODEL_I(x).ihalf[0]; }
MODEL __m512i model_castsi256_si512(__m256i x) { return model_inserti64x4(model_setzero_si512(), x, 0); }
MODEL __m512i model_castsi128_si512(__m128i x) { return model_inserti32x4(model_setzero_si512(), x, 0); }

#undef _mm512_abs_ps
#define _mm512_abs_ps model_abs_ps
#undef _mm512_add_epi16
#define _mm512_add_epi16 model_add_epi16
#undef _mm512_add_epi32
#define _mm512_add_epi32 model_add_epi32
#undef _mm512_add_ps
#define _mm512_add_ps model_add_ps
#undef _mm512_and_si512
#define _mm512_and_si512 model_and_si512
#undef _mm_cmpneq_epi8_mask
#define _mm_cmpneq_epi8_mask model_cmpneq_epi8_mask
#undef _mm512_castps_si512
#define _mm512_castps_si512 model_castps_si512
#undef _mm512_castsi128_si512
#define _mm512_castsi128_si512 model_castsi128_si512
#undef _mm512_castsi256_si512
#define _mm512_castsi256_si512 model_castsi256_si512
#undef _mm512_castsi512_ps
#define _mm512_castsi512_ps model_castsi512_ps
#undef _mm512_castsi512_si256
#define _mm512_castsi512_si256 model_castsi512_si256
#undef _mm512_cmp_ps_mask
#define _mm512_cmp_ps_mask model_cmp_ps_mask
#undef _mm512_cmpeq_epi32_mask
#define _mm512_cmpeq_epi32_mask model_cmpeq_epi32_mask
#undef _mm512_cmpge_epu16_mask
#define _mm512_cmpge_epu16_mask model_cmpge_epu16_mask
#undef _mm512_cmpneq_epu16_mask
#define _mm512_cmpneq_epu16_mask model_cmpneq_epu16_mask
#undef _mm512_cvtepi32_epi16
#define _mm512_cvtepi32_epi16 model_cvtepi32_epi16
#undef _mm512_cvtepi32_epi8
#define _mm512_cvtepi32_epi8 model_cvtepi32_epi8
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps model_cvtepi32_ps
#undef _mm512_cvtepi8_epi32
#define _mm512_cvtepi8_epi32 model_cvtepi8_epi32
#undef _mm512_cvtepu16_epi32
#define _mm512_cvtepu16_epi32 model_cvtepu16_epi32
#undef _mm512_cvtne2ps_pbh
#define _mm512_cvtne2ps_pbh model_cvtne2ps_pbh
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps model_cvtph_ps
#undef _mm512_cvtps_epi32
#define _mm512_cvtps_epi32 model_cvtps_epi32
#undef _mm512_cvtps_ph
#define _mm512_cvtps_ph model_cvtps_ph
#undef _mm512_dpbf16_ps
#define _mm512_dpbf16_ps model_dpbf16_ps
#undef _mm256_dpbusd_avx_epi32
#define _mm256_dpbusd_avx_epi32 model_dpbusd_avx_epi32
#undef _mm512_dpbusd_epi32
#define _mm512_dpbusd_epi32 model_dpbusd_epi32
#undef _mm512_extracti64x4_epi64
#define _mm512_extracti64x4_epi64 model_extracti64x4_epi64
#undef _mm512_fmadd_ps
#define _mm512_fmadd_ps model_fmadd_ps
#undef _mm512_fmsub_ps
#define _mm512_fmsub_ps model_fmsub_ps
#undef _mm512_inserti32x4
#define _mm512_inserti32x4 model_inserti32x4
#undef _mm512_inserti64x4
#define _mm512_inserti64x4 model_inserti64x4
#undef _mm512_loadu_ps
#define _mm512_loadu_ps model_loadu_ps
#undef _mm512_loadu_si512
#define _mm512_loadu_si512 model_loadu_si512
#undef _mm512_mask_add_epi32
#define _mm512_mask_add_epi32 model_mask_add_epi32
#undef _mm512_mask_blend_ps
#define _mm512_mask_blend_ps model_mask_blend_ps
#undef _mm512_mask_mul_ps
#define _mm512_mask_mul_ps model_mask_mul_ps
#undef _mm512_maskz_fmsub_ps
#define _mm512_maskz_fmsub_ps model_maskz_fmsub_ps
#undef _mm512_maskz_loadu_epi8
#define _mm512_maskz_loadu_epi8 model_maskz_loadu_epi8
#undef _mm512_maskz_mov_epi16
#define _mm512_maskz_mov_epi16 model_maskz_mov_epi16
#undef _mm512_maskz_mov_ps
#define _mm512_maskz_mov_ps model_maskz_mov_ps
#undef _mm512_maskz_slli_epi32
#define _mm512_maskz_slli_epi32 model_maskz_slli_epi32
#undef _mm512_max_ps
#define _mm512_max_ps model_max_ps
#undef _mm512_min_epi16
#define _mm512_min_epi16 model_min_epi16
#undef _mm512_min_epu16
#define _mm512_min_epu16 model_min_epu16
#undef _mm512_min_ps
#define _mm512_min_ps model_min_ps
#undef _mm512_mul_ps
#define _mm512_mul_ps model_mul_ps
#undef _mm512_mullo_epi32
#define _mm512_mullo_epi32 model_mullo_epi32
#undef _mm512_or_si512
#define _mm512_or_si512 model_or_si512
#undef _mm512_permute_ps
#define _mm512_permute_ps model_permute_ps
#undef _mm512_permutex2var_ps
#define _mm512_permutex2var_ps model_permutex2var_ps
#undef _mm512_permutex2var_epi16
#define _mm512_permutex2var_epi16 model_permutex2var_epi16
#undef _mm512_maskz_permutexvar_epi16
#define _mm512_maskz_permutexvar_epi16 model_maskz_permutexvar_epi16
#undef _mm512_permutexvar_epi16
#define _mm512_permutexvar_epi16 model_permutexvar_epi16
#undef _mm512_permutexvar_epi8
#define _mm512_permutexvar_epi8 model_permutexvar_epi8
#undef _mm512_range_ps
#define _mm512_range_ps model_range_ps
#undef _mm512_roundscale_ps
#define _mm512_roundscale_ps model_roundscale_ps
#undef _mm512_scalef_ps
#define _mm512_scalef_ps model_scalef_ps
#undef _mm512_set1_epi16
#define _mm512_set1_epi16 model_set1_epi16
#undef _mm512_set1_epi32
#define _mm512_set1_epi32 model_set1_epi32
#undef _mm512_set1_epi8
#define _mm512_set1_epi8 model_set1_epi8
#undef _mm512_set1_ps
#define _mm512_set1_ps model_set1_ps
#undef _mm512_setr_epi32
#define _mm512_setr_epi32 model_setr_epi32
#undef _mm512_setzero_ps
#define _mm512_setzero_ps model_setzero_ps
#undef _mm512_setzero_si512
#define _mm512_setzero_si512 model_setzero_si512
#undef _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4 model_shuffle_f32x4
#undef _mm512_shuffle_i64x2
#define _mm512_shuffle_i64x2 model_shuffle_i64x2
#undef _mm512_shuffle_ps
#define _mm512_shuffle_ps model_shuffle_ps
#undef _mm512_slli_epi32
#define _mm512_slli_epi32 model_slli_epi32
#undef _mm512_srl_epi32
#define _mm512_srl_epi32 model_srl_epi32
#undef _mm512_srli_epi32
#define _mm512_srli_epi32 model_srli_epi32
#undef _mm512_storeu_ps
#define _mm512_storeu_ps model_storeu_ps
#undef _mm512_storeu_si512
#define _mm512_storeu_si512 model_storeu_si512
#undef _mm512_sub_epi16
#define _mm512_sub_epi16 model_sub_epi16
#undef _mm512_sub_epi32
#define _mm512_sub_epi32 model_sub_epi32
#undef _mm512_test_epi32_mask
#define _mm512_test_epi32_mask model_test_epi32_mask
#undef _mm512_unpackhi_epi16
#define _mm512_unpackhi_epi16 model_unpackhi_epi16
#undef _mm512_unpackhi_epi32
#define _mm512_unpackhi_epi32 model_unpackhi_epi32
#undef _mm512_unpackhi_epi64
#define _mm512_unpackhi_epi64 model_unpackhi_epi64
#undef _mm512_unpackhi_ps
#define _mm512_unpackhi_ps model_unpackhi_ps
#undef _mm512_unpacklo_epi16
#define _mm512_unpacklo_epi16 model_unpacklo_epi16
#undef _mm512_unpacklo_epi32
#define _mm512_unpacklo_epi32 model_unpacklo_epi32
#undef _mm512_unpacklo_epi64
#define _mm512_unpacklo_epi64 model_unpacklo_epi64
#undef _mm512_unpacklo_ps
#define _mm512_unpacklo_ps model_unpacklo_ps
#undef _mm512_xor_si512
#define _mm512_xor_si512 model_xor_si512
