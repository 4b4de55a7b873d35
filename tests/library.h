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
float t_fma(float a, float b, float c); /* of the scalar instance */

#ifndef T_LINKED
float t_fma(float a, float b, float c) { return swa__fma(a, b, c); }
size_t t_product_pack(void) { return SWA__PACK; }
void t_product(int isa, const swa_gemm *product, float *pack) { swa__kernels_of(isa)->product(product, pack); }
#endif
#ifdef __cplusplus
}
#endif
#endif /* SWA_TEST_LIBRARY_H */
