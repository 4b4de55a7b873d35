/* Masks: every builder, type and polarity against swa_visible, cell by cell; the xformers classes that Mistral uses
   against their own definitions; the compressed mask read back through a model of the two NPU kernels; misuse.
   With -DSWA_TEST_FULL every window of 1..7 tiles is read back, which takes some seconds. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "test.h"

#define GUARD 0xa5

static const swa_type all_types[5] = { SWA_F32, SWA_F16, SWA_BF16, SWA_BOOL_MASKED, SWA_BOOL_KEEP };

/* Defaults, written out as bits: -65536, -65504, -65536. */
static uint32_t default_hidden(swa_type type) {
    return type == SWA_F32  ? 0xc7800000u
         : type == SWA_F16  ? 0xfbffu
         : type == SWA_BF16 ? 0xc780u
                            : type == SWA_BOOL_MASKED;
}
static size_t cell_size(swa_type type) { return type == SWA_F32 ? 4 : type == SWA_F16 || type == SWA_BF16 ? 2 : 1; }
static uint32_t cell_at(swa_type type, const unsigned char *mask, size_t i) {
    uint32_t u = 0;
    uint16_t h;
    if (type == SWA_F32) memcpy(&u, mask + 4 * i, 4);
    else if (cell_size(type) == 2) {
        memcpy(&h, mask + 2 * i, 2);
        u = h;
    } else u = mask[i];
    return u;
}
static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static swa_mask_desc one_block(swa_window window, const int32_t *n_q, const int32_t *n_k, swa_type type) {
    swa_mask_desc d;
    memset(&d, 0, sizeof d);
    d.window = window;
    d.n_q = n_q;
    d.n_k = n_k;
    d.type = type;
    return d;
}

/* Builds desc's mask at an odd address between guards and counts the cells that differ from swa_visible, the cells
   outside their block that are not hidden, and the guard bytes that changed. -1 = refused. */
static long wrong_cells(const swa_mask_desc *d, uint32_t hidden) {
    int blocks = d->n_blocks ? d->n_blocks : 1, b, c;
    size_t bytes = swa_mask_bytes(d), at = 0, i;
    uint32_t visible = d->type == SWA_BOOL_KEEP;
    unsigned char *mem = (unsigned char *)malloc(bytes + 32);
    long wrong = 0, column, r;
    if (mem == NULL) return -1;
    memset(mem, GUARD, bytes + 32);
    if (swa_mask(d, mem + 3, bytes) != SWA_OK) {
        free(mem);
        return -1;
    }
    for (b = 0; b < blocks; b++) {
        for (r = 0; r < d->n_q[b]; r++) {
            for (c = 0, column = 0; c < blocks; c++) {
                long width = d->k_padding ? d->k_padding : d->n_k[c], j;
                for (j = 0; j < width; j++, column++) {
                    int64_t q = (d->q_pos0 ? d->q_pos0[b] : 0) + r, k = (d->k_pos0 ? d->k_pos0[b] : 0) + j;
                    int sees = b == c && j < d->n_k[b] && swa_visible(&d->window, q, k);
                    wrong += cell_at(d->type, mem + 3, at++) != (sees ? visible : hidden);
                }
            }
        }
    }
    wrong += at * cell_size(d->type) != bytes;
    for (i = 0; i < 3; i++) wrong += mem[i] != GUARD;
    for (i = bytes + 3; i < bytes + 32; i++) wrong += mem[i] != GUARD;
    free(mem);
    return wrong;
}

/* Window i of a list that holds every constructor at many sizes, with sinks and prefixes; 0 = past the end. */
static int window_of_list(int i, swa_window *w) {
    static const int sizes[] = { 1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 40, 41, 100 };
    enum { SIZES = sizeof sizes / sizeof sizes[0], KINDS = 8, PINS = 3, PREFIXES = 3 };
    static const int32_t pins[PINS] = { 0, 1, 4 };
    static const int64_t prefixes[PREFIXES] = { 0, 3, 11 };
    int n = sizes[i % SIZES], kind = i / SIZES % KINDS;
    if (i >= SIZES * KINDS * PINS * PREFIXES) return 0;
    switch (kind) {
    case 0: *w = swa_window_causal(); break;
    case 1: *w = swa_window_sliding(n); break;
    case 2: *w = swa_window_flash(n - 1, n / 3); break;
    case 3: *w = swa_window_flash(-1, n - 1); break;
    case 4: *w = swa_window_flash(n - 1, -1); break;
    case 5: *w = swa_window_chunked(n); break;
    case 6: *w = swa_window_symmetric(n / 2); break;
    default: *w = swa_window_flash(-1, -1); break;
    }
    w->n_sink = pins[i / (SIZES * KINDS) % PINS];
    w->prefix = prefixes[i / (SIZES * KINDS * PINS)];
    return 1;
}

TEST(rectangles) {
    static const int64_t starts[3] = { 0, 5, 37 };
    swa_window w;
    int i, type, s, a;
    for (i = 0; window_of_list(i, &w); i++) {
        for (s = 1; s <= 41; s += s < 9 ? 1 : 8) { /* squares from position 0, all types in turn */
            int32_t n = s;
            swa_mask_desc d = one_block(w, &n, &n, all_types[(i + s) % 5]);
            CHECK(wrong_cells(&d, default_hidden(d.type)) == 0);
        }
        for (a = 0; a < 9; a++) { /* rectangles before, on, after the diagonal */
            int32_t n_q = 7, n_k = 13;
            swa_mask_desc d = one_block(w, &n_q, &n_k, all_types[a % 5]);
            d.q_pos0 = &starts[a / 3];
            d.k_pos0 = &starts[a % 3];
            CHECK(wrong_cells(&d, default_hidden(d.type)) == 0);
        }
        for (type = 0; type < 5; type++) {
            int32_t n_q = 3, n_k = 4;
            swa_mask_desc d = one_block(w, &n_q, &n_k, all_types[type]);
            CHECK(wrong_cells(&d, default_hidden(d.type)) == 0);
        }
    }
}

TEST(far_positions) {
    int64_t q0 = INT64_MAX - 8, k0 = INT64_MAX - 12;
    int32_t n_q = 8, n_k = 12;
    swa_window w;
    int i;
    for (i = 0; window_of_list(i, &w); i++) {
        swa_mask_desc d = one_block(w, &n_q, &n_k, SWA_BOOL_KEEP);
        d.q_pos0 = &q0;
        d.k_pos0 = &k0;
        CHECK(wrong_cells(&d, 0) == 0);
    }
}

/* [ATB]: S = 5, W = 3 as its code prints it; and visible is +0, not -0. */
TEST(document_example) {
    static const char *const rows[5] = { "0xxxx", "00xxx", "000xx", "x000x", "xx000" };
    int32_t n = 5;
    swa_mask_desc d = one_block(swa_window_sliding(3), &n, &n, SWA_F32);
    float mask[25], value;
    int i;
    for (value = -65536.0f; value < 2.0f; value += 65537.0f) { /* the float16 sample and the bfloat16 one */
        d.masked = value;
        CHECK(swa_mask_bytes(&d) == sizeof mask && swa_mask(&d, mask, sizeof mask) == SWA_OK);
        for (i = 0; i < 25; i++) {
            uint32_t bits;
            memcpy(&bits, &mask[i], 4);
            CHECK(rows[i / 5][i % 5] == 'x' ? mask[i] == value : bits == 0);
        }
    }
}

/* The classes of xformers, each by its own definition: i and j count within the block, s = n_k - n_q. */
enum { CAUSAL, CAUSAL_LOCAL, BOTTOM_RIGHT, BOTTOM_RIGHT_LOCAL, NO_CAUSE, CLASSES };
static int xformers_sees(int which, int i, int j, int s, int W) {
    switch (which) {
    case CAUSAL: return j <= i;
    case CAUSAL_LOCAL: return i - W < j && j <= i;
    case BOTTOM_RIGHT: return j <= i + s;
    case BOTTOM_RIGHT_LOCAL: return i + s - W < j && j <= i + s;
    default: return 1;
    }
}
static void one_ragged_batch(int which, int W, int padding) {
    int32_t n_q[4] = { 0 }, n_k[4] = { 0 };
    int64_t q_pos0[4];
    unsigned char mask[4 * 9 * 4 * 20];
    swa_mask_desc d = one_block(swa_window_causal(), n_q, n_k, SWA_BOOL_KEEP);
    int b, i, c, j, bad = 0;
    size_t at = 0;
    for (b = 0; b < 4; b++) {
        n_q[b] = t_int(0, 7); /* empty blocks are among them */
        n_k[b] = n_q[b] + t_int(0, 7);
        q_pos0[b] = which == BOTTOM_RIGHT || which == BOTTOM_RIGHT_LOCAL ? n_k[b] - n_q[b] : 0;
    }
    if (which == CAUSAL_LOCAL || which == BOTTOM_RIGHT_LOCAL) d.window = swa_window_sliding(W);
    if (which == NO_CAUSE) d.window = swa_window_flash(-1, -1);
    d.n_blocks = 4;
    d.q_pos0 = q_pos0;
    d.k_padding = padding;
    CHECK(swa_mask(&d, mask, sizeof mask) == SWA_OK);
    for (b = 0; b < 4; b++)
        for (i = 0; i < n_q[b]; i++)
            for (c = 0; c < 4; c++)
                for (j = 0; j < (padding ? padding : n_k[c]); j++)
                    bad += mask[at++] != (b == c && j < n_k[b] && xformers_sees(which, i, j, n_k[b] - n_q[b], W));
    CHECK(bad == 0 && at == swa_mask_bytes(&d));
    CHECK(wrong_cells(&d, 0) == 0);
}
TEST(block_diagonal) {
    int round, which;
    for (round = 0; round < 200; round++) {
        for (which = 0; which < CLASSES; which++) {
            one_ragged_batch(which, 1 + round % 9, 0);
            one_ragged_batch(which, 1 + round % 9, 14 + round % 6);
        }
    }
}

/* mistral-inference: the second chunk of prompts of 12, 10, 9 with W = chunk = 4, columns cache then chunk. */
TEST(mistral_chunk) {
    static const int32_t n_q[3] = { 4, 4, 1 }, n_k[3] = { 8, 8, 5 };
    static const int64_t q_pos0[3] = { 8, 4, 8 }, k_pos0[3] = { 4, 0, 4 };
    static const char *const rows[9] = { ".1111................", "..1111...............", "...1111..............",
                                         "....1111.............", ".........1111........", "..........1111.......",
                                         "...........1111......", "............1111.....", ".................1111" };
    swa_mask_desc d = one_block(swa_window_sliding(4), n_q, n_k, SWA_BOOL_KEEP);
    unsigned char mask[9 * 21];
    int i;
    d.n_blocks = 3;
    d.q_pos0 = q_pos0;
    d.k_pos0 = k_pos0;
    CHECK(swa_mask_bytes(&d) == sizeof mask && swa_mask(&d, mask, sizeof mask) == SWA_OK);
    for (i = 0; i < 9 * 21; i++) CHECK(mask[i] == (rows[i / 21][i % 21] == '1'));
}

TEST(empty) {
    int32_t none[3] = { 0, 0, 0 }, some[3] = { 2, 0, 3 };
    swa_mask_desc d = one_block(swa_window_causal(), none, some, SWA_F32);
    d.n_blocks = 3;
    CHECK(swa_mask_bytes(&d) == 0 && swa_mask(&d, NULL, 0) == SWA_OK);
    d.n_q = some;
    d.n_k = none;
    CHECK(swa_mask_bytes(&d) == 0 && swa_mask(&d, NULL, 0) == SWA_OK);
    d.n_k = some;
    CHECK(swa_mask_bytes(&d) == 5 * 5 * 4 && wrong_cells(&d, 0xc7800000u) == 0);
    d.k_padding = 3;
    d.n_k = none;
    CHECK(swa_mask_bytes(&d) == 5 * 9 * 4 && wrong_cells(&d, 0xc7800000u) == 0);
}

/* The masked value: bits asked for, bits stored; 0 stored = refused. */
TEST(values) {
    /* clang-format off */
    static const struct { swa_type type; uint32_t asked, stored; } list[] = {
        { SWA_F32, 0x00000000u, 0xc7800000u }, { SWA_F32, 0x80000000u, 0xc7800000u },   /* 0, -0: the default */
        { SWA_F16, 0x00000000u, 0xfbffu },     { SWA_BF16, 0x80000000u, 0xc780u },
        { SWA_F32, 0xff800000u, 0xff800000u }, { SWA_F16, 0xff800000u, 0xfc00u },       /* -inf, asked for */
        { SWA_BF16, 0xff800000u, 0xff80u },    { SWA_F32, 0xff7fffffu, 0xff7fffffu },   /* -FLT_MAX */
        { SWA_F16, 0xc61c4000u, 0xf0e2u },     { SWA_BF16, 0xc61c4000u, 0xc61cu },      /* -10000 */
        { SWA_F16, 0x3f800000u, 0x3c00u },     { SWA_BF16, 0x3f800000u, 0x3f80u },      /* 1 */
        { SWA_F16, 0xc77fe000u, 0xfbffu },     { SWA_F16, 0xc77feffeu, 0xfbffu },       /* -65504, almost -65520 */
        { SWA_F16, 0xc77ff000u, 0 },           { SWA_F16, 0xc7800000u, 0 },             /* -65520, -65536 */
        { SWA_F16, 0xff7fffffu, 0 },           { SWA_BF16, 0xff7fffffu, 0 },            /* both round to -inf */
        { SWA_BF16, 0xff7f0000u, 0xff7fu },    { SWA_F16, 0x32000000u, 0 },             /* 2^-27 is 0 as a half */
        { SWA_F16, 0x33c00000u, 0x0002u },     { SWA_F16, 0x34200000u, 0x0002u },       /* 1.5 and 2.5 units: to even */
        { SWA_F16, 0x34600000u, 0x0004u },     { SWA_F16, 0xb4200001u, 0x8003u },       /* 3.5, and above -2.5 */
        { SWA_BF16, 0x3f808000u, 0x3f80u },    { SWA_BF16, 0xbf818000u, 0xbf82u },      /* halfway: to even */
        { SWA_BF16, 0x3f808001u, 0x3f81u },    { SWA_BF16, 0xbf817fffu, 0xbf81u },
        { SWA_F32, 0x7fc00000u, 0 }, { SWA_F16, 0xffc00000u, 0 }, { SWA_BF16, 0x7f800001u, 0 },  /* NaN */
        { SWA_F32, 0x7f800000u, 0 }, { SWA_F16, 0x7f800000u, 0 }, { SWA_BF16, 0x7f800000u, 0 } /* inf */
    };
    /* clang-format on */
    int32_t n = 2;
    size_t i;
    for (i = 0; i < sizeof list / sizeof list[0]; i++) {
        swa_mask_desc d = one_block(swa_window_causal(), &n, &n, list[i].type);
        unsigned char out[16];
        d.masked = float_of(list[i].asked);
        memset(out, GUARD, sizeof out);
        if (list[i].stored != 0) {
            CHECK(wrong_cells(&d, list[i].stored) == 0);
        } else {
            CHECK(swa_mask_bytes(&d) == 0 && swa_mask(&d, out, sizeof out) == SWA_ERR_ARG && out[0] == GUARD);
            CHECK(swa_mask_compressed(SWA_COMPRESSED_PY, 8, 64, d.type, d.masked, out, 1 << 20) == SWA_ERR_ARG);
        }
        d.type = SWA_BOOL_MASKED; /* a bool has no masked value */
        CHECK(wrong_cells(&d, 1) == 0);
    }
}

static void refused(const swa_mask_desc *d, swa_status why) {
    unsigned char out[256];
    size_t i, same = 0;
    memset(out, GUARD, sizeof out);
    CHECK(swa_mask(d, out, sizeof out) == why);
    for (i = 0; i < sizeof out; i++) same += out[i] == GUARD;
    CHECK(same == sizeof out);
    if (why != SWA_ERR_MEMORY) CHECK(swa_mask_bytes(d) == 0);
}
TEST(misuse) {
    int32_t n_q[2] = { 3, 2 }, n_k[2] = { 4, 2 }, minus[2] = { 2, -1 }, huge[3] = { INT32_MAX, INT32_MAX, INT32_MAX };
    int64_t ok_pos[2] = { 0, 7 }, bad_pos[2] = { 0, -1 }, far_pos[2] = { 0, INT64_MAX - 1 };
    int64_t far_first[2] = { INT64_MAX - 1, 0 };
    swa_window bad[6];
    swa_mask_desc good = one_block(swa_window_sliding(2), n_q, n_k, SWA_F32), d;
    int i;
    good.n_blocks = 2;
    good.q_pos0 = good.k_pos0 = ok_pos;
    CHECK(swa_mask_bytes(&good) == 5 * 6 * 4 && wrong_cells(&good, 0xc7800000u) == 0);
    refused(NULL, SWA_ERR_ARG);
    CHECK(swa_mask(&good, NULL, 1000) == SWA_ERR_ARG);
    /* clang-format off */
    d = good; d.n_q = NULL;         refused(&d, SWA_ERR_ARG);
    d = good; d.n_k = NULL;         refused(&d, SWA_ERR_ARG);
    d = good; d.n_q = minus;        refused(&d, SWA_ERR_ARG);
    d = good; d.n_k = minus;        refused(&d, SWA_ERR_ARG);
    d = good; d.q_pos0 = bad_pos;   refused(&d, SWA_ERR_ARG);
    d = good; d.k_pos0 = bad_pos;   refused(&d, SWA_ERR_ARG);
    d = good; d.n_blocks = -1;      refused(&d, SWA_ERR_ARG);
    d = good; d.k_padding = -1;     refused(&d, SWA_ERR_ARG);
    d = good; d.k_padding = 3;      refused(&d, SWA_ERR_ARG);       /* block 0 has 4 keys */
    d = good; d.type = SWA_Q8;      refused(&d, SWA_ERR_ARG);
    d = good; d.type = SWA_E4M3;    refused(&d, SWA_ERR_ARG);
    d = good; d.type = (swa_type)7; refused(&d, SWA_ERR_ARG);
    d = good; d.q_pos0 = far_pos;   refused(&d, SWA_ERR_OVERFLOW);  /* 2 queries from INT64_MAX-1 on */
    d = good; d.k_pos0 = far_pos;   refused(&d, SWA_ERR_OVERFLOW);
    d = good; d.q_pos0 = far_first; refused(&d, SWA_ERR_OVERFLOW);  /* also when a good block follows */
    d = good; d.n_q = d.n_k = huge; refused(&d, SWA_ERR_OVERFLOW);
    d = good; d.k_pos0 = far_first; d.k_padding = 4;
    refused(&d, SWA_ERR_OVERFLOW);
    d = good; d.n_q = d.n_k = huge; d.n_blocks = 3; d.q_pos0 = d.k_pos0 = NULL; d.type = SWA_BOOL_KEEP;
    refused(&d, SWA_ERR_OVERFLOW);                                  /* (3 * 2^31)^2 cells */
    d = good; d.k_padding = INT32_MAX;
    CHECK(swa_mask_bytes(&d) == (sizeof(size_t) > 4 ? (size_t)5 * 2 * INT32_MAX * 4 : 0));
    refused(&d, sizeof(size_t) > 4 ? SWA_ERR_MEMORY : SWA_ERR_OVERFLOW);
    d = good; d.q_pos0 = far_pos; d.n_k = minus; refused(&d, SWA_ERR_ARG);      /* wrong is told before too large */
    /* clang-format on */
    bad[0] = swa_window_sliding(0);
    bad[1] = swa_window_sliding(-5);
    bad[2] = swa_window_chunked(0);
    bad[3] = swa_window_symmetric(-1);
    bad[4] = swa_window_sinks(4, -1);
    bad[5] = swa_window_prefix(4, -1);
    for (i = 0; i < 6; i++) {
        d = good;
        d.window = bad[i];
        refused(&d, SWA_ERR_ARG);
    }
    for (i = 0; i < 5; i++) {
        unsigned char out[200];
        size_t bytes;
        d = good;
        d.type = all_types[i];
        bytes = swa_mask_bytes(&d);
        memset(out, GUARD, sizeof out);
        CHECK(swa_mask(&d, out, bytes - 1) == SWA_ERR_MEMORY && out[0] == GUARD && out[bytes - 1] == GUARD);
        CHECK(swa_mask(&d, out, bytes) == SWA_OK && out[bytes] == GUARD);
    }
}

/* ---- the compressed mask ---- */

static const swa_compressed kinds[4] = { SWA_COMPRESSED_PY, SWA_COMPRESSED_CPP, SWA_COMPRESSED_910B,
                                         SWA_COMPRESSED_310P };

TEST(compressed_numbers) {
    int d, k, exceptions = 0;
    int64_t W;
    for (d = 1; d <= 256; d++) {
        int py = swa_compressed_block(SWA_COMPRESSED_PY, d), cpp = swa_compressed_block(SWA_COMPRESSED_CPP, d);
        int npu = swa_compressed_block(SWA_COMPRESSED_910B, d);
        CHECK(npu == swa_compressed_block(SWA_COMPRESSED_310P, d));
        CHECK(py == (d <= 128 ? 128 : 64) && (d > 128 || (cpp == 128 && npu == 128)));
        CHECK((py != npu) == (d > 128 && d < 205 && npu != 64));
        CHECK((cpp != npu) == (d == 145 || d == 146 || (d >= 161 && d <= 170) || (d >= 193 && d <= 204)));
        exceptions += cpp != npu;
    }
    CHECK(exceptions > 0);
    for (d = -1; d <= 257; d += d == 0 ? 257 : 1)
        for (k = d > 0 ? 2 : 0; k < 4; k++) {
            CHECK(swa_compressed_block(kinds[k], d) == 0 && swa_compressed_band(kinds[k], 8, d) == 0);
        }
    for (d = 257; d <= 1030; d++) { /* the samples know no limit but the C++ one's tile of no row */
        CHECK_INT(swa_compressed_block(SWA_COMPRESSED_PY, d), 64);
        CHECK_INT(swa_compressed_block(SWA_COMPRESSED_CPP, d), 16384 / d / 16 * 16);
    }
    CHECK(swa_compressed_block(SWA_COMPRESSED_CPP, 320) == 48 && swa_compressed_block(SWA_COMPRESSED_CPP, 1024) == 16);
    CHECK_INT(swa_compressed_band(SWA_COMPRESSED_CPP, 100, 1024), 36);
    CHECK_INT(swa_compressed_band(SWA_COMPRESSED_CPP, 9, 1025), 0);
    CHECK(swa_compressed_block((swa_compressed)4, 64) == 0 && swa_compressed_band((swa_compressed)4, 8, 64) == 0);
    for (k = 0; k < 4; k++) {
        CHECK(swa_compressed_band(kinds[k], 0, 64) == 0 && swa_compressed_band(kinds[k], -3, 64) == 0);
        CHECK(swa_compressed_band(kinds[k], INT64_MAX, 64) == 2 * 128 + 127);
        CHECK(swa_compressed_band(kinds[k], INT64_MAX - 127, 64) == (k % 2 == 0 ? 384 : 256));
    }
    for (W = 1; W <= 5000; W++) { /* the two samples differ exactly here */
        int64_t py = swa_compressed_band(SWA_COMPRESSED_PY, W, 128);
        int64_t cpp = swa_compressed_band(SWA_COMPRESSED_CPP, W, 128);
        CHECK((py != cpp) == (W % 128 == 0 && W > 384));
        CHECK(py == swa_compressed_band(SWA_COMPRESSED_910B, W, 128));
        CHECK((cpp != swa_compressed_band(SWA_COMPRESSED_310P, W, 128)) == (W == 384));
    }
    CHECK(swa_compressed_band(SWA_COMPRESSED_PY, 200, 192) == 136); /* measured on the samples' own output */
    CHECK(swa_compressed_band(SWA_COMPRESSED_CPP, 200, 192) == 200);
    CHECK(swa_compressed_band(SWA_COMPRESSED_PY, 512, 128) == 384);
    CHECK(swa_compressed_band(SWA_COMPRESSED_CPP, 512, 128) == 256);
    CHECK(swa_compressed_band(SWA_COMPRESSED_PY, 400, 64) == 272);
    CHECK(swa_compressed_band(SWA_COMPRESSED_CPP, 400, 64) == 272);
}

TEST(compressed_picture) {
    static unsigned char mem[512 * 512 * 4 + 2];
    static const int64_t windows[5] = { 1, 127, 384, 400, 4096 };
    int k, w, t, i, j, bad;
    for (k = 0; k < 4; k++) {
        for (w = 0; w < 5; w++) {
            swa_type type = all_types[(k + w) % 5];
            size_t bytes = 512 * 512 * cell_size(type);
            int64_t band = swa_compressed_band(kinds[k], windows[w], 160);
            mem[0] = mem[bytes + 1] = GUARD;
            CHECK(swa_mask_compressed(kinds[k], windows[w], 160, type, 0, mem + 1, bytes) == SWA_OK);
            for (i = 0, bad = 0; i < 512; i++)
                for (j = 0; j < 512; j++)
                    bad += cell_at(type, mem + 1, (size_t)(i * 512 + j))
                        != (j <= i && i - j < band ? (uint32_t)(type == SWA_BOOL_KEEP) : default_hidden(type));
            CHECK(bad == 0 && mem[0] == GUARD && mem[bytes + 1] == GUARD);
        }
    }
    for (t = 0; t < 4; t++) { /* the samples' forms take heads that no kernel has */
        static const int wide[4] = { 257, 320, 576, 1024 };
        for (k = 0; k < 4; k++) {
            int64_t band = swa_compressed_band(kinds[k], 400, wide[t]);
            CHECK((band > 0) == (k < 2));
            CHECK(swa_mask_compressed(kinds[k], 400, wide[t], SWA_F32, 0, mem, 512 * 512 * 4)
                  == (k < 2 ? SWA_OK : SWA_ERR_ARG));
            for (i = 0, bad = 0; i < 512 && k < 2; i++)
                for (j = 0; j < 512; j++)
                    bad += cell_at(SWA_F32, mem, (size_t)(i * 512 + j))
                        != (j <= i && i - j < band ? 0 : default_hidden(SWA_F32));
            CHECK(bad == 0);
        }
    }
    for (t = 0; t < 5; t++) {
        size_t bytes = 512 * 512 * cell_size(all_types[t]);
        mem[0] = GUARD;
        CHECK(swa_mask_compressed(SWA_COMPRESSED_910B, 8, 64, all_types[t], 0, mem, bytes - 1) == SWA_ERR_MEMORY);
        CHECK(swa_mask_compressed(SWA_COMPRESSED_910B, 8, 64, all_types[t], 0, NULL, bytes) == SWA_ERR_ARG);
        CHECK(swa_mask_compressed(SWA_COMPRESSED_910B, 0, 64, all_types[t], 0, mem, bytes) == SWA_ERR_ARG);
        CHECK(swa_mask_compressed(SWA_COMPRESSED_910B, 8, 0, all_types[t], 0, mem, bytes) == SWA_ERR_ARG);
        CHECK(swa_mask_compressed(SWA_COMPRESSED_910B, 8, 257, all_types[t], 0, mem, bytes) == SWA_ERR_ARG);
        CHECK(swa_mask_compressed((swa_compressed)9, 8, 64, all_types[t], 0, mem, bytes) == SWA_ERR_ARG);
        CHECK(swa_mask_compressed(SWA_COMPRESSED_910B, 8, 64, SWA_Q8, 0, mem, bytes) == SWA_ERR_ARG);
        CHECK(mem[0] == GUARD);
    }
}

enum { LARGEST = 9 * 128 + 37 };
static float picture[512 * 512], *full, *expanded; /* full, expanded: [S][S], of the test that runs */

static void allot(void) {
    full = t_floats(LARGEST * LARGEST);
    expanded = t_floats(LARGEST * LARGEST);
}

/* Is what `kernel` makes of `kind`'s mask the full mask of the window? S*S floats are left in full and expanded. */
static int expands_right(swa_compressed kind, swa_compressed kernel, int64_t W, int head_dim, int32_t S) {
    swa_mask_desc d = one_block(swa_window_sliding(W), &S, &S, SWA_F32);
    size_t bytes = (size_t)S * (size_t)S * 4;
    CHECK(swa_mask(&d, full, bytes) == SWA_OK);
    CHECK(swa_mask_compressed(kind, W, head_dim, SWA_F32, 0, picture, sizeof picture) == SWA_OK);
    CHECK(swa_mask_expand(kernel, picture, W, head_dim, S, 0, expanded, bytes) == SWA_OK);
    return memcmp(full, expanded, bytes) == 0;
}

/* Head sizes whose tiles are 128, 112, 96, 80 and 64; every W or a choice around the multiples of the tile. The
   right masks always expand to the full mask; a sample's does iff its band is the right one. */
TEST(expand) {
    static const int heads[5] = { 128, 144, 160, 192, 256 }, tiles[5] = { 128, 112, 96, 80, 64 };
    static const int wrong_py[5] = { 0, 0, 480, 336, 0 };
    int h, k;
    allot();
    for (h = 0; h < 5; h++) {
        int B = tiles[h], wrong[4] = { 0, 0, 0, 0 }, W, same;
        CHECK(swa_compressed_block(SWA_COMPRESSED_910B, heads[h]) == B);
        for (W = 1; W <= 7 * B; W++) {
            int32_t S = (8 + W % 2) * B + 37;
#ifndef SWA_TEST_FULL
            if (W % B > 1 && W % B != B - 1 && W % B != 37) continue;
#endif
            for (k = 0; k < 4; k++) {
                swa_compressed kernel = kinds[k % 2 + 2];
                int right = expands_right(kinds[k], kernel, W, heads[h], S);
                same = swa_compressed_band(kinds[k], W, heads[h]) == swa_compressed_band(kernel, W, heads[h]);
                CHECK(right == same);
                wrong[k] += !right;
            }
        }
        CHECK(wrong[2] == 0 && wrong[3] == 0);
        CHECK(wrong[1] == 1); /* the C++ sample: W == 3 tiles, for each of these heads */
#ifdef SWA_TEST_FULL
        CHECK(h == 1 || wrong[0] == wrong_py[h]);
        printf("head %d: Python sample wrong for %d windows of %d, C++ sample for %d\n", heads[h], wrong[0], 7 * B,
               wrong[1]);
#else
        CHECK((wrong[0] > 0) == (h == 1 || wrong_py[h] > 0));
#endif
    }
}

/* Each sample read by the other kernel, and the one corner of the C++ sample, to the entry. */
TEST(expand_crossed) {
    int k, i, j, open = 0, farthest = 0, hidden = 0;
    allot();
    for (k = 1; k <= 7; k++) {
        CHECK(expands_right(SWA_COMPRESSED_CPP, SWA_COMPRESSED_910B, k * 128, 128, 1061) == (k < 4));
        CHECK(expands_right(SWA_COMPRESSED_PY, SWA_COMPRESSED_310P, k * 128, 128, 1061) == (k < 3));
        CHECK(expands_right(SWA_COMPRESSED_CPP, SWA_COMPRESSED_910B, k * 128 + 5, 128, 1061));
        CHECK(expands_right(SWA_COMPRESSED_PY, SWA_COMPRESSED_310P, k * 128 + 5, 128, 1061));
    }
    for (k = 1; k < 8; k++) { /* PY reads as 910B does, CPP as 310P */
        float *other = t_floats(700 * 700);
        CHECK(expands_right(SWA_COMPRESSED_910B, SWA_COMPRESSED_910B, k * 64 + 9, 256, 700));
        CHECK(swa_mask_expand(SWA_COMPRESSED_PY, picture, k * 64 + 9, 256, 700, 0, other, 700 * 700 * 4) == SWA_OK);
        CHECK_BITS(other, expanded, 700 * 700);
        CHECK(expands_right(SWA_COMPRESSED_310P, SWA_COMPRESSED_310P, k * 64 + 9, 256, 700));
        CHECK(swa_mask_expand(SWA_COMPRESSED_CPP, picture, k * 64 + 9, 256, 700, 0, other, 700 * 700 * 4) == SWA_OK);
        CHECK_BITS(other, expanded, 700 * 700);
    }
    CHECK(!expands_right(SWA_COMPRESSED_CPP, SWA_COMPRESSED_310P, 384, 128, 1024));
    for (i = 0; i < 1024; i++)
        for (j = 0; j < 1024; j++) {
            float want = full[i * 1024 + j], got = expanded[i * 1024 + j];
            open += want < got;
            hidden += got < want;
            if (want < got && i - j > farthest) farthest = i - j;
        }
    CHECK(open == 41280 && hidden == 0 && farthest == 511);
}

/* Which band is read for which tile, told by a picture whose bands say their number; '.' is all visible. */
TEST(expand_bands) {
    /* clang-format off */
    static const struct { swa_compressed kind; int W; const char *bands; } list[] = {
        { SWA_COMPRESSED_910B, 64, "01" },      { SWA_COMPRESSED_910B, 65, "012" },
        { SWA_COMPRESSED_910B, 129, "0123" },   { SWA_COMPRESSED_910B, 192, "0123" },
        { SWA_COMPRESSED_910B, 193, "01.23" },  { SWA_COMPRESSED_910B, 320, "01..23" },
        { SWA_COMPRESSED_310P, 64, "01" },      { SWA_COMPRESSED_310P, 127, "012" },
        { SWA_COMPRESSED_310P, 128, "0.2" },    { SWA_COMPRESSED_310P, 129, "0.23" },
        { SWA_COMPRESSED_310P, 192, "0..2" },   { SWA_COMPRESSED_310P, 255, "0..23" } };
    /* clang-format on */
    const int S = 448, B = 64;
    size_t t;
    int i, j;
    allot();
    for (i = 0; i < 512 * 512; i++) picture[i] = (float)(i / 512 / B + 1);
    for (t = 0; t < sizeof list / sizeof list[0]; t++) {
        const int tiles = (int)strlen(list[t].bands);
        int wrong = 0;
        t_label("kind %d W %d", (int)list[t].kind, list[t].W);
        REQUIRE_OK(swa_mask_expand(list[t].kind, picture, list[t].W, 256, S, -9, expanded, (size_t)(S * S * 4)));
        for (i = 0; i < S; i++)
            for (j = 0; j < S; j++) {
                int delta = i / B - j / B, shown = delta < 0 || delta >= tiles ? -9 : 0;
                if (shown == 0 && list[t].bands[delta] != '.') shown = list[t].bands[delta] - '0' + 1;
                wrong += expanded[i * S + j] != (float)shown;
            }
        CHECK_INT(wrong, 0);
    }
}

TEST(expand_edges) {
    unsigned char *bytes;
    float nan;
    int S, k;
    allot();
    bytes = (unsigned char *)expanded;
    for (S = 1; S < 300; S += S < 6 ? 1 : 41)
        for (k = 2; k < 4; k++) {
            CHECK(expands_right(kinds[k], kinds[k], 1 + S * 5 % 90, 256, S));
            CHECK(expands_right(kinds[k], kinds[k], INT64_MAX - S, 200, S));
        }
    CHECK(swa_mask_compressed(SWA_COMPRESSED_910B, 3, 64, SWA_F32, 1, picture, sizeof picture) == SWA_OK);
    CHECK(swa_mask_expand(SWA_COMPRESSED_910B, picture, 3, 64, 5, 1, expanded, 100) == SWA_OK);
    CHECK(expanded[4] == 1 && expanded[5] == 0 && expanded[14] == 1 && expanded[15] == 1 && expanded[16] == 0);
    memset(bytes, GUARD, 400);
    CHECK(swa_mask_expand(SWA_COMPRESSED_910B, picture, 3, 64, 5, 0, expanded, 99) == SWA_ERR_MEMORY);
    CHECK(swa_mask_expand(SWA_COMPRESSED_910B, NULL, 3, 64, 5, 0, expanded, 400) == SWA_ERR_ARG);
    CHECK(swa_mask_expand(SWA_COMPRESSED_910B, picture, 3, 64, 5, 0, NULL, 400) == SWA_ERR_ARG);
    CHECK(swa_mask_expand(SWA_COMPRESSED_910B, picture, 0, 64, 5, 0, expanded, 400) == SWA_ERR_ARG);
    CHECK(swa_mask_expand(SWA_COMPRESSED_910B, picture, 3, 64, 0, 0, expanded, 400) == SWA_ERR_ARG);
    CHECK(swa_mask_expand(SWA_COMPRESSED_910B, picture, 3, 64, -5, 0, expanded, 400) == SWA_ERR_ARG);
    CHECK(swa_mask_expand(SWA_COMPRESSED_910B, picture, 3, 300, 5, 0, expanded, 400) == SWA_ERR_ARG);
    CHECK(swa_mask_expand((swa_compressed)4, picture, 3, 64, 5, 0, expanded, 400) == SWA_ERR_ARG);
    nan = float_of(0x7fc00000u);
    CHECK(swa_mask_expand(SWA_COMPRESSED_910B, picture, 3, 64, 5, nan, expanded, 400) == SWA_ERR_ARG);
    CHECK(swa_mask_expand(SWA_COMPRESSED_910B, picture, 3, 64, INT64_MAX, 0, expanded, 400) == SWA_ERR_OVERFLOW);
    CHECK(swa_mask_expand(SWA_COMPRESSED_910B, picture, 3, 64, 3000000000, 0, expanded, 400) == SWA_ERR_OVERFLOW);
    CHECK(bytes[0] == GUARD && bytes[99] == GUARD && bytes[399] == GUARD);
    CHECK(swa_mask_expand(SWA_COMPRESSED_910B, picture, 3, 64, 5, 0, expanded, 100) == SWA_OK);
    CHECK(bytes[99] != GUARD && bytes[100] == GUARD);
}
