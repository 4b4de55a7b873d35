/* simd128.c - the FMA of WebAssembly's vectors, which has no instruction, on the numbers of hard.h. Compiled for
   WebAssembly it is compared with one lane's, which is compared with fmaf elsewhere (-DSWA_NO_SIMD). The checksum of
   the last line has to be that of a machine with fmaf. */
#define SWA_IMPLEMENTATION
#include "../../swa.h"
#include "../hard.h"
#include <math.h>
#include <stdio.h>

int main(void) {
    enum { TIMES = 400000 };
    t_hard hard = { 1, 0 };
    uint64_t sum = 14695981039346656037u;
    long wrong = 0, counted = 0;
    for (int i = 0; i < TIMES; i++) {
        float x[4][3], one[4], r[4];
        for (int j = 0; j < 4; j++) {
            hard_next(&hard, x[j]);
            one[j] = swa__fma(x[j][0], x[j][1], x[j][2]);
        }
#if SWA__SIMD128
        {
            v128_t of[3];
            for (int k = 0; k < 3; k++) of[k] = wasm_f32x4_make(x[0][k], x[1][k], x[2][k], x[3][k]);
            wasm_v128_store(r, swa__fma_simd128(of[0], of[1], of[2]));
        }
#else
        for (int j = 0; j < 4; j++) r[j] = fmaf(x[j][0], x[j][1], x[j][2]);
#endif
        for (int j = 0; j < 4; j++) {
            if (!hard_finite(one[j])) continue;
            wrong += hard_bits(one[j]) != hard_bits(r[j]);
            sum = (sum ^ hard_bits(r[j])) * 1099511628211u;
            counted++;
        }
    }
    printf("%ld of %ld results differ from the definition, checksum %016llx\n", wrong, counted,
           (unsigned long long)sum);
    return wrong != 0;
}
