/* test_product.c - the matrix products of the latent block alone, and the one FMA of the scalar instance. They have no
   public name: library.h is the door. */
#define SWA__EVERY_CPU 1 /* compiled alone: also how some makes of CPU alone take one token's rows */
#define SWA_IMPLEMENTATION
#include "library.h"
#include "hard.h"
#include "weights.h"

/* Products of every size and shape: same bits on every instruction set and in any batch, and right. */
TEST(products) {
    enum { N = 9, IN = 8300, OUT = 75 };
    float *pack = t_floats(t_product_pack());
    for (int i = 0; i < 60; i++) {
        const int transposed = i & 1, type = SWA_F32 + i % 3, n = t_int(1, N);
        const int n_in = i > 56 ? t_int(8193, IN)
                       : i > 53 ? t_int(4097, 4400)
                       : i > 48 ? t_int(2000, 4096)
                                : t_int(1, 120);
        const int n_out = t_int(1, OUT);
        const size_t rows = (size_t)(transposed ? n_in : n_out), cols = (size_t)(transposed ? n_out : n_in);
        const size_t total = (size_t)(n * n_out);
        float *w = normal(rows * cols, 1.0), *x = normal((size_t)(n * n_in), 1.0), *first = NULL;
        double *want = t_doubles(total);
        swa_gemm p;
        memset(&p, 0, sizeof p);
        p.w = stored(w, rows, cols, (swa_type)type, cols);
        p.w.stride = (int64_t)cols;
        p.n_in = n_in;
        p.n_out = n_out;
        p.transposed = transposed;
        p.x_stride = n_in;
        p.y_stride = n_out;
        for (int t = 0; t < n; t++)
            for (int o = 0; o < n_out; o++) {
                double sum = 0;
                for (int k = 0; k < n_in; k++)
                    sum += (double)x[t * n_in + k] * (double)w[transposed ? k * n_out + o : o * n_in + k];
                want[t * n_out + o] = sum;
            }
        t_label("%d x %d x %d, transposed %d, type %d", n, n_in, n_out, transposed, type);
        FOR_ISA(isa) {
            float *all = t_floats(total), *one = t_floats(total);
            p.x = x;
            p.y = all;
            p.n = n;
            t_product(isa, &p, pack);
            CHECK_CLOSE(all, want, total, 1e-5);
            p.n = 1;
            for (int t = 0; t < n; t++) {
                p.x = x + t * n_in;
                p.y = one + t * n_out;
                t_product(isa, &p, pack);
            }
            CHECK_BITS(all, one, total);
            if (first) CHECK_BITS(all, first, total);
            first = all;
        }
    }
}

#ifdef __GLIBC__ /* others' fmaf rounds twice here and there */
/* The scalar FMA rounds once, by a call or without, and so do four lanes of SSE2, whichever are in doubt. */
TEST(fma) {
    float (*volatile const whole)(float, float, float) = fmaf; /* clang -ffast-math multiplies and adds in its place */
    t_hard hard = { 1, 0 };
    volatile float tiny = 0x1p-126f;
    const int flushes = tiny * 0.5f == 0; /* -ffast-math: then tiny numbers are as the CPU has them */
    for (int i = 0; i < 50000; i++) {
        float a[4], b[4], c[4], x[3], got[4], want;
        for (int k = 0; k < 4; k++) {
            hard_next(&hard, x);
            a[k] = x[0];
            b[k] = x[1];
            c[k] = x[2];
        }
        t_fma(a, b, c, got);
        for (int k = 0; k < 4; k++) {
            want = whole(a[k], b[k], c[k]);
            if (flushes && (fabsf(want) <= tiny || fabsf(a[k]) < tiny || fabsf(b[k]) < tiny || fabsf(c[k]) < tiny))
                continue;
            t_label("%a * %a + %a", (double)a[k], (double)b[k], (double)c[k]);
            if (hard_finite(want)) CHECK_BITS(&got[k], &want, 1);
            else CHECK(!hard_finite(got[k]));
        }
    }
}
#endif
