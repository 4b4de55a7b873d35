/* library.h - swa.h and a door to what has no public name. As a unit of its own it is the library as all tests link it,
   compiled once (build/swa.o); a test that includes it has the door's declarations, or, compiled alone, all of it. */
#ifndef SWA_TEST_LIBRARY_H
#define SWA_TEST_LIBRARY_H
#ifdef SWA__IMPLEMENTED
#define T_LINKED
#endif
#include "../swa.h"
#ifdef __cplusplus
extern "C" {
#endif

size_t t_product_pack(void); /* floats that t_product's last argument has room for */
void t_product(int isa, const swa_gemm *product, float *pack);
void t_fma(const float a[4], const float b[4], const float c[4], float r[4]); /* of the scalar instance */

#ifndef T_LINKED
void t_fma(const float a[4], const float b[4], const float c[4], float r[4]) {
#if SWA__SSE2 && defined(__FMA__)
    _mm_storeu_ps(r, _mm_fmadd_ps(_mm_loadu_ps(a), _mm_loadu_ps(b), _mm_loadu_ps(c)));
#elif SWA__SSE2
    _mm_storeu_ps(r, swa__fma_sse2(_mm_loadu_ps(a), _mm_loadu_ps(b), _mm_loadu_ps(c)));
#else
    int i;
    for (i = 0; i < 4; i++) r[i] = swa__fma(a[i], b[i], c[i]);
#endif
}
size_t t_product_pack(void) { return SWA__PACK; }
void t_product(int isa, const swa_gemm *product, float *pack) { swa__kernels_of(isa)->product(product, pack); }
#endif
#ifdef __cplusplus
}
#endif
#endif /* SWA_TEST_LIBRARY_H */
