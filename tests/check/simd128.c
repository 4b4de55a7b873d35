/* simd128.c - the FMA of WebAssembly's vectors, which has no instruction, on numbers chosen for trouble: sums on and
   beside midpoints of two floats, cancellation, subnormal products and results. Compiled for WebAssembly it is compared
   with the definition (round to odd, then once); everywhere the last line is a checksum, which has to be that of a
   machine with fmaf. */
#define SWA_IMPLEMENTATION
#include "../../swa.h"
#include <stdio.h>

static uint64_t state = 1;
static uint32_t noise(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}
/* Kind 0: any finite number; 1: near 1; 2: the smallest; 3: few bits, so that sums are midpoints; 4: all ones. */
static float number(int kind) {
    uint32_t u = noise();
    if (kind == 1) u = (u & 0x807fffffu) | (100 + noise() % 50) << 23;
    if (kind == 2) u = (u & 0x807fffffu) | noise() % 70 << 23;
    if (kind == 3) u = (u & 0x807ff000u) | (120 + noise() % 16) << 23;
    if (kind == 4) u = (u & 0x80000000u) | noise() % 140 << 23 | (noise() & 1 ? 0x7fffffu : noise() % 8);
    return swa__float_of((u >> 23 & 255) == 255 ? u ^ 1u << 30 : u);
}
static int finite(float x) { return (swa__bits_of(x) >> 23 & 255) != 255; }

int main(void) {
    enum { TIMES = 400000 };
    uint64_t sum = 14695981039346656037u;
    long wrong = 0, counted = 0;
    for (int i = 0; i < TIMES; i++) {
        float a[4], b[4], c[4], r[4];
        for (int j = 0; j < 4; j++) {
            float p;
            a[j] = number(i % 5);
            b[j] = number(i % 7 ? i % 5 : 0);
            c[j] = number(i % 5);
            p = a[j] * b[j];
            if (i % 3 == 0 && finite(p)) c[j] = i & 1 ? -p : p * (i & 2 ? 8388608.0f : 25165824.0f);
            if (i % 11 == 0) { /* a product near a subnormal's last bit */
                a[j] = swa__float_of((swa__bits_of(a[j]) & 0x807fffffu) | (20 + noise() % 30) << 23);
                b[j] = swa__float_of((swa__bits_of(b[j]) & 0x807fffffu) | (20 + noise() % 60) << 23);
                c[j] = swa__float_of(noise() & 0x80ffffffu);
            }
            if (!finite(c[j])) c[j] = 1.0f;
            r[j] = swa__fma(a[j], b[j], c[j]);
        }
#if SWA__SIMD128
        {
            float vector[4];
            wasm_v128_store(vector, swa__fma_simd128(wasm_v128_load(a), wasm_v128_load(b), wasm_v128_load(c)));
            for (int j = 0; j < 4; j++) {
                wrong += finite(r[j]) && swa__bits_of(vector[j]) != swa__bits_of(r[j]);
                r[j] = vector[j];
            }
        }
#endif
        for (int j = 0; j < 4; j++) {
            if (!finite(r[j])) continue;
            sum = (sum ^ swa__bits_of(r[j])) * 1099511628211u;
            counted++;
        }
    }
    printf("%ld of %ld results differ from the definition, checksum %016llx\n", wrong, counted,
           (unsigned long long)sum);
    return wrong != 0;
}
