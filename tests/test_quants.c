/* The example's products of quantised matrices: every format against numbers written out one by one from its published
   layout, in double; every instruction set; any number of tokens. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "../examples/quants.h"
#include "test.h"

/* ---- the formats once more, element by element ---- */

static double half_at(const unsigned char *p) { return (double)gguf_f16((uint16_t)(p[0] + 256 * p[1])); }

static double q8_0(const unsigned char *b, int i) { return half_at(b) * (double)(signed char)b[2 + i]; }
static double q4_0(const unsigned char *b, int i) {
    int byte = b[2 + i % 16];
    return half_at(b) * ((i < 16 ? byte % 16 : byte / 16) - 8);
}
static double mxfp4(const unsigned char *b, int i) {
    static const double values[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };
    int code = i < 16 ? b[1 + i] % 16 : b[1 + i - 16] / 16;
    return ldexp(values[code % 8], b[0] - 127) * (code < 8 ? 1 : -1);
}
/* Six bits each: scale and minimum of group j. */
static void q45_scale(const unsigned char *s, int j, int *scale, int *low) {
    if (j < 4) {
        *scale = s[j] % 64;
        *low = s[j + 4] % 64;
    } else {
        *scale = s[j + 4] % 16 + s[j - 4] / 64 * 16;
        *low = s[j + 4] / 16 + s[j] / 64 * 16;
    }
}
static double q4_k(const unsigned char *b, int i) {
    int scale, low, byte = b[16 + i / 64 * 32 + i % 32];
    q45_scale(b + 4, i / 32, &scale, &low);
    return half_at(b) * scale * (i % 64 < 32 ? byte % 16 : byte / 16) - half_at(b + 2) * low;
}
static double q5_k(const unsigned char *b, int i) {
    int scale, low, byte = b[48 + i / 64 * 32 + i % 32], fifth = b[16 + i % 32] >> (i / 32) & 1;
    q45_scale(b + 4, i / 32, &scale, &low);
    return half_at(b) * scale * ((i % 64 < 32 ? byte % 16 : byte / 16) + 16 * fifth) - half_at(b + 2) * low;
}
static double q6_k(const unsigned char *b, int i) {
    int n = i / 128, l = i % 32, quarter = i % 128 / 32, byte = b[64 * n + l + quarter % 2 * 32];
    int low = quarter < 2 ? byte % 16 : byte / 16, high = b[128 + 32 * n + l] >> (2 * quarter) & 3;
    return half_at(b + 208) * (double)(signed char)b[192 + i / 16] * (low + 16 * high - 32);
}
static double f32(const unsigned char *b, int i) {
    float v;
    (void)i;
    memcpy(&v, b, 4);
    return (double)v;
}
static double f16(const unsigned char *b, int i) {
    (void)i;
    return half_at(b);
}
static double bf16(const unsigned char *b, int i) {
    uint32_t bits = (uint32_t)(b[0] + 256 * b[1]) << 16;
    float v;
    (void)i;
    memcpy(&v, &bits, 4);
    return (double)v;
}

typedef struct {
    const char *name;
    uint32_t type;
    int count, bytes, at[2]; /* at: where halves stand, which must be sane; -1 = nowhere */
    double (*value)(const unsigned char *, int);
} format;
/* clang-format off */
static const format formats[] = {
    { "F32", GGUF_TENSOR_F32, 1, 4, { -1, -1 }, f32 },         { "F16", GGUF_TENSOR_F16, 1, 2, { 0, -1 }, f16 },
    { "BF16", GGUF_TENSOR_BF16, 1, 2, { -1, -1 }, bf16 },      { "Q8_0", GGUF_TENSOR_Q8_0, 32, 34, { 0, -1 }, q8_0 },
    { "Q4_0", GGUF_TENSOR_Q4_0, 32, 18, { 0, -1 }, q4_0 },
    { "MXFP4", GGUF_TENSOR_MXFP4, 32, 17, { -1, -1 }, mxfp4 },
    { "Q4_K", GGUF_TENSOR_Q4_K, 256, 144, { 0, 2 }, q4_k },    { "Q5_K", GGUF_TENSOR_Q5_K, 256, 176, { 0, 2 }, q5_k },
    { "Q6_K", GGUF_TENSOR_Q6_K, 256, 210, { 208, -1 }, q6_k } };
/* clang-format on */

static weights random_matrix(const format *f, int rows, int cols) {
    weights w = { f->type, rows, cols, NULL };
    size_t blocks = (size_t)rows * (size_t)cols / (size_t)f->count, bytes = (size_t)f->bytes;
    unsigned char *p = (unsigned char *)t_alloc(blocks * bytes);
    for (size_t i = 0; i < blocks * bytes; i++) p[i] = (unsigned char)t_int(0, 255);
    for (size_t b = 0; b < blocks; b++) {
        unsigned char *at = p + b * bytes;
        float v = t_unit();
        if (f->type == GGUF_TENSOR_F32) memcpy(at, &v, 4);
        if (f->type == GGUF_TENSOR_BF16) at[1] = (unsigned char)(t_int(0, 1) * 128 + 0x3e);
        if (f->type == GGUF_TENSOR_MXFP4) at[0] = (unsigned char)t_int(122, 128);
        for (int i = 0; i < 2; i++) {
            if (f->at[i] >= 0) at[f->at[i] + 1] = (unsigned char)(t_int(0, 1) * 128 + t_int(0x20, 0x2b));
        }
    }
    w.data = p;
    return w;
}

static double exact(const format *f, const weights *w, int r, int c) {
    return f->value(w->data + ((size_t)r * (size_t)w->cols + (size_t)c) / (size_t)f->count * (size_t)f->bytes,
                    c % f->count);
}

typedef struct {
    const char *name;
    rows_fn *fn;
} one_way;
static int ways(one_way out[3]) {
    int n = 0;
    out[n].name = "plain";
    out[n++].fn = plain_rows;
#if QUANTS_X86
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        out[n].name = "AVX2";
        out[n++].fn = avx2_rows;
    }
    if (__builtin_cpu_supports("avx512vnni")) {
        out[n].name = "AVX-512";
        out[n++].fn = avx512_rows;
    }
#endif
    return n;
}

enum { ROWS = 7, MOST = 6 };

/* One matrix: rows as floats, and products with n tokens by every instruction set. */
static void check_format(const format *f, int cols) {
    weights w = random_matrix(f, ROWS, cols);
    float *x = t_random(MOST * cols, 1), *row = t_floats(cols), *got = t_floats(MOST * ROWS), *one = t_floats(ROWS);
    double *want = t_doubles(MOST * ROWS), *numbers = t_doubles(cols);
    activations a;
    one_way way[3];
    activations_lie(&a, t_alloc(activations_bytes(MOST, (size_t)cols)), MOST, (size_t)cols);
    for (int i = 0; i < MOST * ROWS; i++) want[i] = 0;
    for (int r = 0; r < ROWS; r++) {
        weights_row(&w, r, row);
        for (int c = 0; c < cols; c++) numbers[c] = exact(f, &w, r, c);
        CHECK_CLOSE(row, numbers, cols, 1e-6);
        for (int t = 0; t < MOST; t++) {
            for (int c = 0; c < cols; c++) want[t * ROWS + r] += numbers[c] * (double)x[t * cols + c];
        }
    }
    for (int i = 0; i < ways(way); i++) {
        t_label("%s x %d, %s", f->name, cols, way[i].name);
        for (int n = 1; n <= MOST; n++) {
            activations_set(&a, x, &w, n);
            way[i].fn(&w, &a, n, 0, 3, got);
            way[i].fn(&w, &a, n, 3, ROWS, got);
            CHECK_CLOSE(got, want, n * ROWS, 1e-4);
        }
        for (int t = 0; t < MOST; t++) { /* a token alone: the same bits */
            activations_set(&a, x + t * cols, &w, 1);
            way[i].fn(&w, &a, 1, 0, ROWS, one);
            CHECK_BITS(one, got + t * ROWS, ROWS);
        }
    }
    if (ways(way) < 3) return; /* both fuse: the same bits */
    activations_set(&a, x, &w, MOST);
    way[1].fn(&w, &a, MOST, 0, ROWS, got);
    for (int t = 0; t < MOST; t++) {
        activations_set(&a, x + t * cols, &w, 1);
        way[2].fn(&w, &a, 1, 0, ROWS, one);
        CHECK_BITS(one, got + t * ROWS, ROWS);
    }
}

TEST(quants_formats_against_their_definition) {
    static const int cols[] = { 1, 15, 64, 96, 160, 256, 333, 512, 768 };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        for (size_t c = 0; c < sizeof cols / sizeof *cols; c++) {
            if (cols[c] % formats[i].count == 0) check_format(&formats[i], cols[c]);
        }
        CHECK_INT(gguf_block_of(formats[i].type)->bytes, formats[i].bytes);
    }
}

/* All scales, nibbles and activations as large as they can be: no sum of integers overflows. */
TEST(quants_extremes_do_not_overflow) {
    for (size_t i = 3; i < sizeof formats / sizeof *formats; i++) {
        const format *f = &formats[i];
        int cols = 512;
        weights w = random_matrix(f, 1, cols);
        unsigned char *p = (unsigned char *)t_alloc(gguf_bytes(f->type, (size_t)cols));
        float *x = t_floats(cols), got;
        double want;
        activations a;
        one_way way[3];
        activations_lie(&a, t_alloc(activations_bytes(1, (size_t)cols)), 1, (size_t)cols);
        for (int fill = 0; fill < 3; fill++) {
            memset(p, fill == 0 ? 0xff : fill == 1 ? 0x80 : 0, gguf_bytes(f->type, (size_t)cols));
            for (int b = 0; b < cols / f->count; b++) {
                unsigned char *at = p + b * f->bytes;
                for (int j = 0; j < 2; j++)
                    if (f->at[j] >= 0) at[f->at[j] + 1] = 0x3c;
                if (f->type == GGUF_TENSOR_Q6_K) memset(at + 192, 0x80, 16); /* -128 by -32 is most */
                if (f->type == GGUF_TENSOR_MXFP4) at[0] = 127;
            }
            w.data = p;
            want = 0;
            for (int c = 0; c < cols; c++) {
                x[c] = c % 5 == 0 && fill == 2 ? -3.0f : 3.0f;
                want += exact(f, &w, 0, c) * (double)x[c];
            }
            for (int k = 0; k < ways(way); k++) {
                t_label("%s, %s, %d", f->name, way[k].name, fill);
                activations_set(&a, x, &w, 1);
                way[k].fn(&w, &a, 1, 0, 1, &got);
                CHECK_NEAR(got, want, 1e-5 * fabs(want) + 1e-3);
            }
        }
    }
}

TEST(quants_show_what_is_no_number) {
    const format *f = &formats[6];
    weights w = random_matrix(f, 1, 256);
    float *x = t_random(256, 1), got = 0;
    activations a;
    activations_lie(&a, t_alloc(activations_bytes(1, 256)), 1, 256);
    memset(x, 0, 256 * sizeof *x);
    product(&got, x, &w, 1, &a);
    CHECK(got >= 0 && got <= 0);
    memset(x + 100, 0xff, sizeof *x);
    product(&got, x, &w, 1, &a);
    CHECK(got != got);
    x[100] = HUGE_VALF;
    product(&got, x, &w, 1, &a);
    CHECK(!(fabsf(got) <= FLT_MAX));
}
