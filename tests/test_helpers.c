/* RoPE, YaRN and RMSNorm against references in long double, written from the papers; misuse. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "test.h"

enum { MAX_X = 3 * 4 * 160 };

/* Called through these, because under -ffast-math compilers inline x87's fcos, which is wrong for large angles. */
static long double (*volatile exact_cos)(long double) = cosl;
static long double (*volatile exact_sin)(long double) = sinl;

static double nan_of_bits(void) {
    uint64_t bits = (uint64_t)0x7ff80000u << 32;
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}
static void plain_freq(double base, int rotary, double *freq) {
    int i;
    for (i = 0; i < rotary / 2; i++) freq[i] = (double)powl((long double)base, -2.0L * i / rotary);
}

/* The largest error of swa_rope on random rows against long double, whose product pos*freq is exact to 2^-64.
   Numbers beyond `rotary` and beyond the last row must keep their bits: an error of 1 if not. */
static double rope_error(int n, int heads, int head_dim, const int64_t *pos, const double *freq, int rotary,
                         swa_rope_pairs pairs, double mscale) {
    static float x[MAX_X + 8], before[MAX_X + 8];
    long double worst = 0;
    int t, h, i, total = n * heads * head_dim;
    t_fill(x, MAX_X + 8, 1);
    memcpy(before, x, sizeof x);
    CHECK(swa_rope(x, n, heads, head_dim, pos, freq, rotary, pairs, mscale) == SWA_OK);
    if (memcmp(x + total, before + total, (size_t)(MAX_X + 8 - total) * sizeof *x) != 0) return 1;
    for (t = 0; t < n; t++) {
        for (h = 0; h < heads; h++) {
            const float *in = before + (t * heads + h) * head_dim, *out = x + (t * heads + h) * head_dim;
            if (memcmp(out + rotary, in + rotary, (size_t)(head_dim - rotary) * sizeof *x) != 0) return 1;
            for (i = 0; i < rotary / 2; i++) {
                int a = pairs == SWA_ROPE_HALF ? i : 2 * i, b = pairs == SWA_ROPE_HALF ? i + rotary / 2 : a + 1;
                long double angle = (long double)pos[t] * (long double)freq[i];
                long double m = mscale > 0 ? (long double)mscale : 1;
                long double c = exact_cos(angle) * m, s = exact_sin(angle) * m;
                long double ea = fabsl((long double)out[a] - (c * (long double)in[a] - s * (long double)in[b]));
                long double eb = fabsl((long double)out[b] - (s * (long double)in[a] + c * (long double)in[b]));
                if (ea > worst) worst = ea;
                if (eb > worst) worst = eb;
            }
        }
    }
    return (double)worst;
}

TEST(rope_shapes) {
    static const struct {
        int heads, head_dim, rotary;
    } shapes[] = { { 1, 2, 2 },     { 2, 16, 16 },   { 3, 16, 6 }, { 4, 128, 128 },
                   { 2, 130, 130 }, { 1, 160, 136 }, { 4, 64, 32 } };
    static const int64_t pos[3] = { 0, 5, 32767 };
    double freq[80];
    size_t i;
    int p;
    for (i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        plain_freq(10000.0, shapes[i].rotary, freq);
        for (p = 0; p < 2; p++) {
            swa_rope_pairs pairs = p ? SWA_ROPE_HALF : SWA_ROPE_INTERLEAVED;
            int heads = shapes[i].heads, head_dim = shapes[i].head_dim, rotary = shapes[i].rotary;
            CHECK(rope_error(3, heads, head_dim, pos, freq, rotary, pairs, 0) < 2e-7);
            CHECK(rope_error(3, heads, head_dim, pos, freq, rotary, pairs, 1.5) < 3e-7);
            CHECK(rope_error(3, heads, head_dim, pos, freq, rotary, pairs, -0.0) < 2e-7);
            CHECK(rope_error(0, heads, head_dim, pos, freq, rotary, pairs, 0) <= 0);
        }
    }
}

/* Around 2^24, where the angle is first cut up, to 2^40, and negative: no error beyond the rounding of the result.
   A rounded product pos*freq would be off by 1e-4 at 2^40. */
TEST(rope_far) {
    static const int64_t far_pos[] = { 16777215,   16777216,   16777217,    67108863,      67108864,
                                       1000000007, 4294967296, 99999999999, 1099511627775, 1099511627776,
                                       -1,         -32767,     -1000000007 };
    double freq[64];
    size_t i;
    plain_freq(1e6, 128, freq);
    for (i = 0; i < sizeof far_pos / sizeof far_pos[0]; i++) {
        CHECK(rope_error(1, 2, 128, &far_pos[i], freq, 128, SWA_ROPE_HALF, 0) < 3e-7);
        CHECK(rope_error(1, 2, 128, &far_pos[i], freq, 128, SWA_ROPE_INTERLEAVED, 0) < 3e-7);
    }
}

/* Where a cosine is near 0 a float shows 1e-9 of the angle, at any position: 2^30 times a rounded product is off by
   more than that. */
TEST(rope_far_angles) {
    static const int64_t far_pos[] = { 30000001, 200000033, 536870911, 1000000007, 1073741823, 4294967295 };
    double freq[64];
    int seen = 0;
    plain_freq(10000.0, 128, freq);
    for (size_t i = 0; i < sizeof far_pos / sizeof far_pos[0]; i++)
        for (int f = 0; f < 64; f++)
            for (int m = 0; m < 16; m++) {
                const int64_t pos = far_pos[i] - m;
                const long double angle = (long double)pos * (long double)freq[f];
                float x[2] = { 1, 0 };
                CHECK_OK(swa_rope(x, 1, 1, 2, &pos, &freq[f], 2, SWA_ROPE_HALF, 0));
                if (fabsf(x[0]) < 0.02f) seen++, CHECK_NEAR(x[0], (double)exact_cos(angle), 2.5e-9);
                if (fabsf(x[1]) < 0.02f) seen++, CHECK_NEAR(x[1], (double)exact_sin(angle), 2.5e-9);
            }
    CHECK(seen > 20);
}

/* Any int64 at all. With powers of two for frequencies the reference's product is exact too. */
TEST(rope_limits) {
    static const int64_t limits[5] = { INT64_MAX, INT64_MAX - 12345, INT64_MIN, INT64_MIN + 1, (int64_t)1 << 52 };
    double freq[8] = { 1.0, 0.5, 0.0625, 0.001953125, 2.0, 1.52587890625e-5, 0, 0 };
    float x[2], y[2];
    double odd = 0.30102999566398120;
    int i;
    freq[6] = ldexp(1.0, -40);
    freq[7] = ldexp(1.0, -63);
    for (i = 0; i < 5; i++) {
        int64_t pos = limits[i], back;
        CHECK(rope_error(1, 1, 16, &pos, freq, 16, SWA_ROPE_HALF, 0) < 3e-7);
        if (pos == INT64_MIN) pos++;
        back = -pos;
        t_fill(x, 2, 1);
        memcpy(y, x, sizeof x);
        CHECK(swa_rope(x, 1, 1, 2, &pos, &odd, 2, SWA_ROPE_HALF, 0) == SWA_OK); /* there and back again */
        CHECK(swa_rope(x, 1, 1, 2, &back, &odd, 2, SWA_ROPE_HALF, 0) == SWA_OK);
        CHECK(fabs((double)(x[0] - y[0])) < 3e-7 && fabs((double)(x[1] - y[1])) < 3e-7);
    }
}

/* What RoPE is for: the product of two rotated rows depends on the distance only, also 2^40 positions on. */
TEST(rope_relative) {
    float q[32], k[32], a[32], b[32];
    double freq[16], near = 0, moved = 0;
    int64_t q_pos = 17, k_pos = 5;
    int i;
    plain_freq(10000.0, 32, freq);
    t_fill(q, 32, 1);
    t_fill(k, 32, 1);
    memcpy(a, q, sizeof q);
    memcpy(b, k, sizeof k);
    CHECK(swa_rope(a, 1, 1, 32, &q_pos, freq, 32, SWA_ROPE_INTERLEAVED, 0) == SWA_OK);
    CHECK(swa_rope(b, 1, 1, 32, &k_pos, freq, 32, SWA_ROPE_INTERLEAVED, 0) == SWA_OK);
    for (i = 0; i < 32; i++) near += (double)a[i] * (double)b[i];
    q_pos += (int64_t)1 << 40;
    k_pos += (int64_t)1 << 40;
    memcpy(a, q, sizeof q);
    memcpy(b, k, sizeof k);
    CHECK(swa_rope(a, 1, 1, 32, &q_pos, freq, 32, SWA_ROPE_INTERLEAVED, 0) == SWA_OK);
    CHECK(swa_rope(b, 1, 1, 32, &k_pos, freq, 32, SWA_ROPE_INTERLEAVED, 0) == SWA_OK);
    for (i = 0; i < 32; i++) moved += (double)a[i] * (double)b[i];
    CHECK_NEAR(moved, near, 2e-6);
}

static void rope_refused(int32_t n, int heads, int head_dim, int rotary, int pairs, int missing) {
    float x[16];
    double freq[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    int64_t pos = 1;
    int i;
    for (i = 0; i < 16; i++) x[i] = 1;
    CHECK(swa_rope(missing == 1 ? NULL : x, n, heads, head_dim, missing == 2 ? NULL : &pos, missing == 3 ? NULL : freq,
                   rotary, (swa_rope_pairs)pairs, 0)
          == SWA_ERR_ARG);
    for (i = 0; i < 16; i++) CHECK(x[i] == 1.0f);
}
TEST(rope_misuse) {
    int i;
    float x = 0;
    double freq = 1;
    int64_t pos = 0;
    for (i = 1; i <= 3; i++) rope_refused(1, 1, 16, 16, SWA_ROPE_HALF, i);
    rope_refused(-1, 1, 16, 16, SWA_ROPE_HALF, 0);
    rope_refused(1, 0, 16, 16, SWA_ROPE_HALF, 0);
    rope_refused(1, -1, 16, 16, SWA_ROPE_HALF, 0);
    rope_refused(1, 1, 0, 0, SWA_ROPE_HALF, 0);
    rope_refused(1, 1, -2, -2, SWA_ROPE_HALF, 0);
    rope_refused(1, 1, 16, 0, SWA_ROPE_HALF, 0);
    rope_refused(1, 1, 16, -2, SWA_ROPE_HALF, 0);
    rope_refused(1, 1, 16, 7, SWA_ROPE_HALF, 0);
    rope_refused(1, 1, 14, 16, SWA_ROPE_INTERLEAVED, 0);
    rope_refused(1, 1, 16, INT32_MAX, SWA_ROPE_INTERLEAVED, 0);
    rope_refused(1, 1, 16, 16, 2, 0);
    CHECK(swa_rope(&x, INT32_MAX, INT32_MAX, INT32_MAX, &pos, &freq, 2, SWA_ROPE_HALF, 0) == SWA_ERR_OVERFLOW);
    /* as numbers they can be counted, but not as bytes */
    CHECK(swa_rope(&x, INT32_MAX, 1 << 30, 4, &pos, &freq, 2, SWA_ROPE_HALF, 0) == SWA_ERR_OVERFLOW);
}

static swa_yarn_desc yarn_desc(double base, double scale, int32_t original, int truncate) {
    swa_yarn_desc d;
    memset(&d, 0, sizeof d);
    d.base = base;
    d.scale = scale;
    d.original = original;
    d.truncate = truncate ? 1 : -1;
    return d;
}

/* Values of the published codes (base 1e4, stretched 40 times from 4096, 64 numbers). */
TEST(yarn_values) {
    static const struct {
        int i;
        double rounded, exact;
    } known[] = { { 0, 1.0, 1.0 },
                  { 5, 0.23713737056616555, 0.23713737056616555 },
                  { 11, 0.03900692656714386, 0.04036758449441141 },
                  { 16, 0.0055, 0.005524062977468265 },
                  { 20, 0.0007905694150420945, 0.0007226383418941806 },
                  { 31, 3.33380358040831e-06, 3.33380358040831e-06 } };
    swa_yarn_desc d = yarn_desc(1e4, 40, 4096, 1);
    double freq[32], plain[32], mscale = 0;
    size_t i;
    CHECK(swa_yarn(&d, 64, freq, &mscale) == SWA_OK && fabs(mscale - 1.3688879454113936) < 1e-15);
    for (i = 0; i < 6; i++) CHECK(fabs(freq[known[i].i] / known[i].rounded - 1) < 1e-13);
    d.beta_fast = 32;
    d.beta_slow = 1;
    d.truncate = -1;
    CHECK(swa_yarn(&d, 64, freq, NULL) == SWA_OK);
    for (i = 0; i < 6; i++) CHECK(fabs(freq[known[i].i] / known[i].exact - 1) < 1e-13);
    d = yarn_desc(1e4, 30, 32, 0); /* the ramp would begin before pair 0: it begins at 0 */
    CHECK(swa_yarn(&d, 64, freq, NULL) == SWA_OK && fabs(freq[0] - 1) <= 0);
    plain_freq(1e4, 64, plain);
    for (i = 0; i < 3; i++) { /* no stretch: scale 0, 1; original is not looked at */
        d = yarn_desc(1e4, i > 0, i == 1 ? -1 : 0, 1);
        mscale = 0;
        CHECK(swa_yarn(&d, 64, freq, &mscale) == SWA_OK && fabs(mscale - 1) <= 0);
        CHECK(fabs(freq[0] - 1) <= 0 && fabs(freq[7] / plain[7] - 1) < 1e-15);
        CHECK(fabs(freq[31] / plain[31] - 1) < 1e-15);
    }
}

/* The paper's own words, 3.2: by how often its wave turns within the original context a pair keeps its frequency
   (more than beta_fast), is stretched (less than beta_slow), or lies between. */
TEST(yarn_ramp) {
    static const double bases[3] = { 1e4, 5e5, 1e6 }, scales[3] = { 1.5, 4, 40 };
    static const int32_t originals[3] = { 64, 4096, 32768 };
    static const int rotaries[3] = { 2, 64, 128 };
    double freq[64];
    int c, i;
    for (c = 0; c < 81; c++) {
        double scale = scales[c / 3 % 3], previous = 1;
        int rotary = rotaries[c / 27], truncate;
        for (truncate = 0; truncate < 2; truncate++) {
            swa_yarn_desc d = yarn_desc(bases[c % 3], scale, originals[c / 9 % 3], truncate);
            d.beta_fast = 8;
            d.beta_slow = 2;
            CHECK(swa_yarn(&d, rotary, freq, NULL) == SWA_OK);
            for (i = 0, previous = 1; i < rotary / 2; i++) {
                double plain = pow(d.base, -2.0 * i / rotary), kept = freq[i] / plain;
                double turns = (double)d.original * plain / 6.283185307179586;
                double step = pow(d.base, 2.0 / rotary); /* turns ratio of neighbours: rounding's reach */
                CHECK(kept <= previous + 1e-12 && kept > 1 / scale - 1e-12);
                if (turns > 8 * (truncate ? step : 1)) CHECK(fabs(kept - 1) < 1e-12);
                if (turns < 2 / (truncate ? step : 1) && i > 0) CHECK(fabs(kept - 1 / scale) < 1e-12);
                if (!truncate && turns < 7.9 && turns > 2.1 && i > 0) CHECK(kept < 1 && kept > 1 / scale);
                previous = kept;
            }
        }
    }
}

/* A ramp without length is a step, and it ends at the last number at the latest: as in the published codes. */
TEST(yarn_ramp_ends) {
    double freq[8], plain[8];
    swa_yarn_desc d = yarn_desc(1e4, 4, 5, 0); /* no pair turns once within five tokens: all are stretched ... */
    int i;
    plain_freq(1e4, 16, plain);
    CHECK(swa_yarn(&d, 16, freq, NULL) == SWA_OK);
    CHECK(fabs(freq[0] - plain[0]) <= 0); /* ... but the pair at which the step begins */
    for (i = 1; i < 8; i++) CHECK(fabs(freq[i] / plain[i] - 0.25) < 1e-12);
    d = yarn_desc(2, 4, 1 << 30, 0); /* every pair turns often, the ramp lies behind them */
    CHECK(swa_yarn(&d, 16, freq, NULL) == SWA_OK);
    plain_freq(2, 16, plain);
    for (i = 0; i < 8; i++) CHECK(fabs(freq[i] / plain[i] - 1) < 1e-12);
    d = yarn_desc(1e4, 4, 400, 0); /* from pair 3.6 on, and far beyond the last of 16 numbers */
    d.beta_slow = 1e-9;
    d.beta_fast = 1;
    CHECK(swa_yarn(&d, 16, freq, NULL) == SWA_OK);
    plain_freq(1e4, 16, plain);
    for (i = 0; i < 8; i++) {
        double low = 16 * log(400 / 6.283185307179586) / (2 * log(1e4)), ramp = (i - low) / (15 - low);
        CHECK(fabs(freq[i] / plain[i] - (ramp > 0 ? 1 - 0.75 * ramp : 1)) < 1e-12);
    }
}

/* A ramp that ends where it begins, at pair 0: nothing is divided by 0. And equal betas are a step, not a mistake. */
TEST(yarn_ramp_of_no_length) {
    double freq[8], plain[8];
    swa_yarn_desc d = yarn_desc(1e4, 4, 8, 1); /* no pair turns twice within eight tokens: both ends are 0 */
    d.beta_slow = 2;
    plain_freq(1e4, 16, plain);
    CHECK(swa_yarn(&d, 16, freq, NULL) == SWA_OK);
    CHECK(fabs(freq[0] - 1) <= 0);
    for (int i = 1; i < 8; i++) CHECK(fabs(freq[i] / plain[i] - 0.25) < 1e-12);
    d = yarn_desc(1e4, 4, 4096, 0);
    d.beta_fast = d.beta_slow = 4;
    CHECK(swa_yarn(&d, 16, freq, NULL) == SWA_OK);
    for (int i = 0; i < 8; i++) {
        const double turns = 4096 * plain[i] / 6.283185307179586;
        CHECK(fabs(freq[i] / plain[i] - (turns > 4 ? 1 : 0.25)) < 1e-12);
    }
}

static void yarn_refused(const swa_yarn_desc *d, int rotary) {
    double freq[8] = { 7, 7, 7, 7, 7, 7, 7, 7 }, mscale = 7;
    int i;
    CHECK(swa_yarn(d, rotary, freq, &mscale) == SWA_ERR_ARG && mscale > 6.9);
    for (i = 0; i < 8; i++) CHECK(freq[i] > 6.9);
}
TEST(yarn_misuse) {
    swa_yarn_desc good = yarn_desc(1e4, 4, 4096, 1), d = good;
    double freq[8];
    CHECK(swa_yarn(&good, 16, NULL, NULL) == SWA_ERR_ARG);
    CHECK(swa_yarn(&good, 16, freq, NULL) == SWA_OK);
    yarn_refused(NULL, 16);
    yarn_refused(&good, 0);
    yarn_refused(&good, -2);
    yarn_refused(&good, 15);
    d = good;
    d.base = 0;
    yarn_refused(&d, 16);
    d = good;
    d.base = -1e4;
    yarn_refused(&d, 16);
    d = good;
    d.base = 1;
    yarn_refused(&d, 16);
    d = good;
    d.base = nan_of_bits();
    yarn_refused(&d, 16);
    d = good;
    d.scale = -4;
    yarn_refused(&d, 16);
    d = good;
    d.scale = nan_of_bits();
    yarn_refused(&d, 16);
    d = good;
    d.original = 0;
    yarn_refused(&d, 16);
    d = good;
    d.original = -1;
    yarn_refused(&d, 16);
    d = good;
    d.truncate = 0; /* forgotten */
    yarn_refused(&d, 16);
    d = good;
    d.truncate = 2;
    yarn_refused(&d, 16);
    d = good;
    d.scale = 0; /* forgotten, amid what only a stretched one has */
    yarn_refused(&d, 16);
    d.original = 0;
    d.beta_fast = 32;
    yarn_refused(&d, 16);
    d.beta_fast = 0;
    d.beta_slow = 1;
    yarn_refused(&d, 16);
    d = good;
    d.scale = 4096; /* the two exchanged */
    d.original = 4;
    yarn_refused(&d, 16);
    d.scale = 4; /* as many positions as it is stretched times: one of each */
    yarn_refused(&d, 16);
    d = good;
    d.beta_fast = -1;
    yarn_refused(&d, 16);
    d = good;
    d.beta_slow = -1;
    yarn_refused(&d, 16);
    d = good;
    d.beta_slow = 33;
    yarn_refused(&d, 16);
    d = good;
    d.beta_fast = 0.5;
    yarn_refused(&d, 16);
    d = good;
    d.beta_fast = nan_of_bits();
    yarn_refused(&d, 16);
}

/* Every length up to 70 and some more, to 1e-7 relative; in place, where the bits are the same; without weights. */
TEST(rmsnorm) {
    static float x[3 * 4099], w[4099], out[3 * 4099 + 1];
    static const int more[4] = { 128, 1000, 4096, 4099 };
    int dim, i, r, step;
    for (step = 1; step < 75; step++) {
        dim = step <= 70 ? step : more[step - 71];
        t_fill(x, (size_t)(3 * dim), 1);
        t_fill(w, (size_t)dim, 1);
        out[3 * dim] = 77;
        CHECK(swa_rmsnorm(out, x, step % 3 ? w : NULL, 3, dim, 1e-5f) == SWA_OK && out[3 * dim] == 77.0f);
        for (r = 0; r < 3; r++) {
            long double sum = 0, worst = 0, scale;
            for (i = 0; i < dim; i++) sum += (long double)x[r * dim + i] * (long double)x[r * dim + i];
            scale = 1 / sqrtl(sum / dim + (long double)1e-5f);
            for (i = 0; i < dim; i++) {
                long double want = (long double)x[r * dim + i] * scale * (step % 3 ? (long double)w[i] : 1);
                long double error = fabsl((long double)out[r * dim + i] - want);
                if (error > fabsl(want) * 1e-7L && error > worst) worst = error;
            }
            CHECK(worst <= 0);
        }
        CHECK(swa_rmsnorm(x, x, step % 3 ? w : NULL, 3, dim, 1e-5f) == SWA_OK);
        CHECK(memcmp(x, out, (size_t)(3 * dim) * sizeof *x) == 0);
    }
}

TEST(rmsnorm_edges) {
    float x[4] = { 3e38f, -3e38f, 3e38f, 3e38f }, out[4] = { 7, 7, 7, 7 }, zero[4] = { 0, 0, 0, 0 };
    int i;
    CHECK(swa_rmsnorm(out, x, NULL, 1, 4, 0) == SWA_OK); /* squares beyond float's range */
    for (i = 0; i < 4; i++) CHECK(fabs(fabs((double)out[i]) - 1) < 1e-6 && (out[i] < 0) == (i == 1));
    CHECK(swa_rmsnorm(out, zero, NULL, 1, 4, 0) == SWA_OK);
    for (i = 0; i < 4; i++) CHECK(out[i] == 0.0f);
    out[0] = 7;
    CHECK(swa_rmsnorm(out, x, NULL, 0, 4, 0) == SWA_OK);
    CHECK(swa_rmsnorm(NULL, x, NULL, 1, 4, 0) == SWA_ERR_ARG);
    CHECK(swa_rmsnorm(out, NULL, NULL, 1, 4, 0) == SWA_ERR_ARG);
    CHECK(swa_rmsnorm(out, x, NULL, -1, 4, 0) == SWA_ERR_ARG);
    CHECK(swa_rmsnorm(out, x, NULL, 1, 0, 0) == SWA_ERR_ARG);
    CHECK(swa_rmsnorm(out, x, NULL, 1, -4, 0) == SWA_ERR_ARG);
    CHECK(swa_rmsnorm(out, x, NULL, 1, 4, -1e-5f) == SWA_ERR_ARG);
    CHECK(swa_rmsnorm(out, x, NULL, 1, 4, (float)nan_of_bits()) == SWA_ERR_ARG);
    CHECK(out[0] == 7.0f);
}

/* Against the matrix itself, entry (i, j) = -1 to the power of the bits that i and j share; twice is nothing. */
TEST(hadamard) {
    for (int block = 1; block <= 128; block *= 2) {
        const int dim = 3 * block, n = 2 * 2 * dim;
        float *x = t_random(n, 1.0f), *y = t_floats(n);
        double *want = t_doubles(n);
        memcpy(y, x, (size_t)n * sizeof *x);
        CHECK_OK(swa_hadamard(y, 2, 2, dim, block));
        for (int i = 0; i < n; i++) {
            want[i] = 0;
            for (int j = 0; j < block; j++) {
                int sign = 1;
                for (int both = i % block & j; both; both &= both - 1) sign = -sign;
                want[i] += sign * (double)x[i / block * block + j] / sqrt((double)block);
            }
        }
        t_label("block %d", block);
        CHECK_CLOSE(y, want, n, 1e-6);
        CHECK_OK(swa_hadamard(y, 2, 2, dim, block));
        for (int i = 0; i < n; i++) want[i] = (double)x[i];
        CHECK_CLOSE(y, want, n, 1e-6);
    }
    float x = 0; /* as numbers they can be counted, but not as bytes */
    CHECK_STATUS(swa_hadamard(&x, INT32_MAX, 1 << 30, 4, 4), SWA_ERR_OVERFLOW);
}
/* What it is for: channels of K 50 times as large as the others, stored in q8. */
TEST(hadamard_makes_q8_exact) {
    enum { N = 200, DIM = 128 };
    double worst[2] = { 0, 0 };
    for (int rotated = 0; rotated < 2; rotated++) {
        float *k = t_floats(N * DIM), *q = t_floats(DIM), *out = t_floats(DIM), *exact = t_floats(DIM);
        for (int type = SWA_F32; type <= SWA_Q8; type += SWA_Q8 - SWA_F32) {
            swa_cache_desc d;
            swa_cache kv;
            swa_attn a;
            t_seed(5);
            for (int i = 0; i < N * DIM; i++) k[i] = t_normal() + (i % DIM == 17 || i % DIM == 90 ? 50.0f : 0.0f);
            for (int i = 0; i < DIM; i++) q[i] = 2 * t_normal();
            if (rotated) {
                CHECK_OK(swa_hadamard(k, N, 1, DIM, 64));
                CHECK_OK(swa_hadamard(q, 1, 1, DIM, 64));
            }
            memset(&d, 0, sizeof d);
            d.shape.n_heads = d.shape.n_kv_heads = d.n_layers = 1;
            d.shape.head_dim = DIM;
            d.max_context = N + 1;
            d.k_type = (swa_type)type;
            d.v_type = SWA_F32;
            if (!t_cache_new(&kv, &d, 1)) return;
            memset(&a, 0, sizeof a);
            a.mode = SWA_STORE_ONLY;
            a.k.p = k;
            a.v.p = t_random(N * DIM, 1.0f);
            CHECK_OK(swa_step_one(&kv, 0, 0, N));
            CHECK_OK(swa_attend(&kv, 0, &a));
            a.mode = SWA_ATTEND_NO_STORE;
            CHECK_OK(swa_step_one(&kv, 0, N, 1));
            a.q.p = q;
            a.out.p = type == SWA_F32 ? exact : out;
            CHECK_OK(swa_attend(&kv, 0, &a));
        }
        for (int i = 0; i < DIM; i++) {
            const double e = fabs((double)out[i] - (double)exact[i]);
            if (e > worst[rotated]) worst[rotated] = e;
        }
    }
    CHECK(worst[0] > 0.01 && worst[1] * 2 < worst[0]);
}
