/* matrix.c - as clang-cl with /arch:AVX2 compiles it when it does not say that it is clang: MSVC's way through swa.h,
   but for its optimiser. */
#include <immintrin.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#undef __clang__
#undef __SSE2_MATH__
#undef __FMA__
#include "../matrix.c"
