/* test_checksums.c - the same bits as ever: hashes of outputs stored in this file, of every type, window, score
   modification and shape of kernel. test_bits says that the ways of computing agree with each other; this says that
   they agree with the library as it was when the hashes were taken (commit 0041486; bf16 products: 2026-11-25, when
   their exp2 became one of bf16). Inputs come from an integer generator, seeded by the case's name, so nothing else
   moves them. A hash that has to change is a change of the bits promise between versions: SWA_CHECKSUMS=1 prints the
   new ones. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "attend.h"
#include "weights.h"

/* FNV-1a over 32-bit patterns, so that the order of bytes does not matter. All NaN count as one. */
static uint64_t hash_floats(const float *x, size_t n) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, x + i, sizeof u);
        if ((u & 0x7fffffffu) > 0x7f800000u) u = 0x7fc00000u;
        h = (h ^ u) * 1099511628211u;
    }
    return h;
}
static void compare(const char *name, const char *what, uint64_t got, uint64_t want) {
    if (getenv("SWA_CHECKSUMS")) printf("%s %s 0x%016llx\n", name, what, (unsigned long long)got);
    t_label("%s, %s: %016llx, stored %016llx", name, what, (unsigned long long)got, (unsigned long long)want);
    CHECK(got == want);
}
static void seed_by(const char *name) {
    uint64_t seed = 0;
    for (; *name; name++) seed = seed * 131 + (unsigned char)*name;
    t_seed(seed);
}

/* ---- attention: a case of attend.h, over a ring in one shot and in chunks, and over rows ---- */

enum { SLIDING, PINNED, CAUSAL, CHUNKED };
typedef struct {
    const char *name;
    int h, kv, dk, dv, tail, n;
    int window, W, sinks, span;
    int latent, q_sink, alibi, bias, logits; /* 1 = on; bias 2: by distance */
    swa_type k, v, t;
    int compute;
    float softcap, size;
    int64_t start;
    int chunk, parts;        /* of the second way; more blocks than one, more work */
    uint64_t out, lse, kept; /* hashes; kept: K and V as the ring gives them back */
} sum_case;

/* clang-format off */
static const sum_case cases[] = {
    /* groups of 1, 2, 4, 8 and 16 query heads, decode and prefill */
    { .name = "f32 group 1", .h = 3, .kv = 3, .dk = 20, .dv = 20, .n = 40, .W = 9, .chunk = 1,
      .out = 0x35307611803c05b1, .lse = 0x76a9d1788fa970c7, .kept = 0x36217ab92529c851 },
    { .name = "f32 group 2", .h = 4, .kv = 2, .dk = 16, .dv = 16, .n = 45, .W = 8, .chunk = 1,
      .out = 0x57987db5691b0f74, .lse = 0xc1dcc1324f921687, .kept = 0xa828bea29a755f93 },
    { .name = "f32 group 4", .h = 4, .kv = 1, .dk = 64, .dv = 64, .n = 40, .W = 21, .chunk = 1,
      .out = 0x0b1e40c6f1e151f9, .lse = 0x515cdf3c90e9e1bb, .kept = 0xfc12520d1f966ffb },
    { .name = "f16 group 8", .h = 8, .kv = 1, .dk = 64, .dv = 64, .n = 40, .W = 21, .k = SWA_F16, .v = SWA_F16,
      .chunk = 1,
      .out = 0x0ca0909e5e355973, .lse = 0x9125d17e276e0294, .kept = 0x4f0e9ebc1c404a4a },
    { .name = "bf16 group 16", .h = 16, .kv = 1, .dk = 24, .dv = 24, .n = 40, .W = 13, .k = SWA_BF16,
      .v = SWA_BF16, .chunk = 2,
      .out = 0x52787b7e8fec785f, .lse = 0xfc7cf7589d1c6335, .kept = 0x872107f3bdc6244a },
    { .name = "q8 group 4", .h = 8, .kv = 2, .dk = 32, .dv = 32, .n = 50, .W = 33, .k = SWA_Q8, .v = SWA_Q8,
      .chunk = 1,
      .out = 0x4f2abf7515665013, .lse = 0x2221a94144c7668e, .kept = 0xd639c7428f96982a },
    { .name = "f32 group 5", .h = 5, .kv = 1, .dk = 8, .dv = 40, .n = 45, .W = 33, .chunk = 3,
      .out = 0x2e7641b9a6279fbc, .lse = 0x3925ab56c5b4ec4e, .kept = 0x217bd4e1383e83c8 },
    { .name = "f32 head 128", .h = 4, .kv = 1, .dk = 128, .dv = 128, .n = 40, .W = 24, .chunk = 1,
      .out = 0xc2570bd374709b11, .lse = 0x38b6648773cf5b00, .kept = 0x24d21fa2025df2d9 },
    { .name = "q8 head 80", .h = 2, .kv = 1, .dk = 80, .dv = 80, .n = 40, .W = 24, .k = SWA_Q8, .v = SWA_Q8,
      .chunk = 5,
      .out = 0xbcced721d2696c32, .lse = 0x696b9195ccca6484, .kept = 0xbcdd2329782b3449 },
    /* odd dims, types that differ */
    { .name = "f16 odd dims", .h = 3, .kv = 1, .dk = 17, .dv = 13, .n = 45, .W = 17, .k = SWA_F16, .v = SWA_F16,
      .chunk = 4,
      .out = 0x0385768e5edef26c, .lse = 0x3966481354828304, .kept = 0xea05b3c93d983b52 },
    { .name = "q8 and bf16", .h = 1, .kv = 1, .dk = 21, .dv = 19, .n = 45, .W = 9, .k = SWA_Q8, .v = SWA_BF16,
      .chunk = 1,
      .out = 0x113155c4afba8aad, .lse = 0x81604d2166bc4f63, .kept = 0xb8cf6e60a30308e5 },
    { .name = "bf16 and q8", .h = 6, .kv = 2, .dk = 9, .dv = 33, .n = 45, .W = 30, .k = SWA_BF16, .v = SWA_Q8,
      .chunk = 7,
      .out = 0x300ec82ae125117f, .lse = 0x2ab575d308271101, .kept = 0x82d5e22c6b050a2d },
    { .name = "f32 and f16", .h = 2, .kv = 2, .dk = 1, .dv = 1, .n = 30, .W = 5, .k = SWA_F32, .v = SWA_F16,
      .chunk = 1,
      .out = 0x37e31e3a3c773fa5, .lse = 0x7807458c82390e55, .kept = 0xa171383bfbec32db },
    /* windows */
    { .name = "window of 1", .h = 2, .kv = 1, .dk = 8, .dv = 8, .n = 20, .W = 1, .chunk = 1,
      .out = 0x0bd6f6746f5ad87d, .lse = 0x7e9ff9a8a7203830, .kept = 0xc3155d7791868b8c },
    { .name = "pinned", .h = 4, .kv = 2, .dk = 16, .dv = 16, .n = 60, .window = PINNED, .W = 7, .sinks = 3,
      .q_sink = 1, .chunk = 1,
      .out = 0xfd92bbd69e8bb87b, .lse = 0x381bf72e9a613bef, .kept = 0xa537b08e67fce5b3 },
    { .name = "pinned q8", .h = 4, .kv = 2, .dk = 16, .dv = 16, .n = 60, .window = PINNED, .W = 20, .sinks = 5,
      .k = SWA_Q8, .v = SWA_Q8, .logits = 1, .chunk = 6,
      .out = 0xf6e79fb0aeeb6d62, .lse = 0xcbb9530b15500e84, .kept = 0x60d2c162242e7be1 },
    { .name = "causal", .h = 4, .kv = 2, .dk = 16, .dv = 16, .n = 50, .window = CAUSAL, .logits = 1, .chunk = 9,
      .out = 0xeeb6594fac77568d, .lse = 0xcab3d1ac9291a5d2, .kept = 0x2153650d36e731f9 },
    { .name = "chunked", .h = 4, .kv = 2, .dk = 16, .dv = 16, .n = 50, .window = CHUNKED, .W = 9, .chunk = 4,
      .out = 0x79dcfc366f945203, .lse = 0xa7f17b9889627edd, .kept = 0xe0afda6dcf1ce754 },
    { .name = "span", .h = 4, .kv = 2, .dk = 16, .dv = 16, .n = 50, .W = 9, .span = 25, .chunk = 6,
      .out = 0x695a09e6f87b0c51, .lse = 0x751a56b0c9eedb20, .kept = 0xdc72aa56661c6170 },
    { .name = "far away", .h = 8, .kv = 1, .dk = 32, .dv = 32, .n = 40, .W = 21, .start = (int64_t)1 << 40,
      .alibi = 1, .chunk = 1,
      .out = 0xda1136e93872ba97, .lse = 0xe23da96b5c30d6d8, .kept = 0xa443b1ecc3bd4d99 },
    /* score modifications */
    { .name = "softcap", .h = 4, .kv = 2, .dk = 16, .dv = 16, .n = 45, .W = 12, .softcap = 3.0f, .chunk = 1,
      .out = 0xa189c2f21c1350f6, .lse = 0x930f9d67e17f635e, .kept = 0xc4e1ce6b811ea6cf },
    { .name = "softcap alibi logits q8", .h = 4, .kv = 2, .dk = 16, .dv = 16, .n = 45, .W = 12, .k = SWA_Q8,
      .v = SWA_Q8, .softcap = 3.0f, .alibi = 1, .logits = 1, .chunk = 5,
      .out = 0x52c8281edd05f035, .lse = 0x29c6f40f59eba389, .kept = 0xd321d9e360b2c0dd },
    { .name = "bias", .h = 4, .kv = 2, .dk = 16, .dv = 16, .n = 45, .W = 20, .k = SWA_BF16, .v = SWA_F16, .bias = 1,
      .chunk = 3,
      .out = 0x114b7a1fe3e7cabc, .lse = 0xb91518b6a9bf2a8b, .kept = 0xa2e96b41fac9a94a },
    { .name = "bias by distance", .h = 4, .kv = 1, .dk = 16, .dv = 16, .n = 300, .window = CAUSAL, .bias = 2,
      .chunk = 7, .parts = 3,
      .out = 0xfde20615626a6f17, .lse = 0xb5c42a0ff075f0e3, .kept = 0xcb291c1d5bc4820f },
    { .name = "all of them", .h = 6, .kv = 3, .dk = 12, .dv = 20, .n = 45, .window = PINNED, .W = 15, .sinks = 4,
      .q_sink = 1, .alibi = 1, .bias = 1, .logits = 1, .softcap = 8.0f, .chunk = 2,
      .out = 0xfc4ca66811023adf, .lse = 0xc9b4ffc6c3a15aff, .kept = 0x02d5305a12b77c0e },
    { .name = "large scores", .h = 2, .kv = 1, .dk = 16, .dv = 16, .n = 40, .W = 20, .size = 300.0f, .chunk = 3,
      .out = 0x91174cba8dae201b, .lse = 0xe18f7d409a523f0e, .kept = 0x23880302100366b7 },
    { .name = "small scores", .h = 2, .kv = 1, .dk = 16, .dv = 16, .n = 40, .W = 20, .size = 1e-6f, .chunk = 3,
      .out = 0x5af82a1acc832968, .lse = 0x342f51a7677d5f37, .kept = 0x7cf9db673344df6e },
    /* latents */
    { .name = "latent", .h = 4, .kv = 1, .dk = 32, .dv = 24, .tail = 5, .latent = 1, .n = 40, .W = 11,
      .k = SWA_F16, .t = SWA_F32, .chunk = 1,
      .out = 0xd8c317b852fd0d40, .lse = 0xbf09ecbcf2ab380b, .kept = 0xf20369b70cf6fb55 },
    { .name = "latent bf16", .h = 20, .kv = 1, .dk = 64, .dv = 64, .tail = 16, .latent = 1, .n = 40, .W = 30,
      .k = SWA_BF16, .t = SWA_BF16, .chunk = 8,
      .out = 0xae58d4e4bf4b19c7, .lse = 0x9bb919633219c3cb, .kept = 0x290eabbc9985dd25 },
    { .name = "latent q8", .h = 16, .kv = 1, .dk = 48, .dv = 48, .tail = 8, .latent = 1, .n = 40, .W = 30,
      .k = SWA_Q8, .t = SWA_F16, .chunk = 1,
      .out = 0x639b3947b890a1a8, .lse = 0xe18241ca75cfea1f, .kept = 0x979562a84d2607fb },
    { .name = "tail without latent", .h = 4, .kv = 2, .dk = 16, .dv = 8, .tail = 7, .n = 40, .W = 11,
      .k = SWA_F32, .v = SWA_F16, .t = SWA_BF16, .chunk = 3,
      .out = 0x10e05cef5ab9f02c, .lse = 0xc9832fd997188b82, .kept = 0x844b7720c222a836 },
    { .name = "q8 tail", .h = 4, .kv = 2, .dk = 16, .dv = 8, .tail = 7, .n = 40, .W = 11,
      .k = SWA_Q8, .v = SWA_Q8, .t = SWA_Q8, .chunk = 3,
      .out = 0xd3c4aafaac6a3311, .lse = 0x56e6f8816690fe96, .kept = 0x12b7b71fa0e67f33 },
    /* products of bf16 and of int8 */
    { .name = "bf16 products", .h = 6, .kv = 2, .dk = 17, .dv = 13, .n = 45, .window = PINNED, .W = 10, .sinks = 5,
      .q_sink = 1, .alibi = 1, .compute = SWA_BF16, .chunk = 1,
      .out = 0x8dc96e9dfd696f1c, .lse = 0xdd51f2a6cfe9613e, .kept = 0x9e70205e2146325b },
    { .name = "bf16 products of bf16", .h = 8, .kv = 2, .dk = 32, .dv = 32, .n = 60, .W = 40, .k = SWA_BF16,
      .v = SWA_BF16, .compute = SWA_BF16, .softcap = 5.0f, .chunk = 20,
      .out = 0x67fb9597850ddf43, .lse = 0xc3ef38ff288fcd6d, .kept = 0xd8c9b0f05731a24a },
    { .name = "bf16 products of f16", .h = 4, .kv = 1, .dk = 24, .dv = 24, .n = 45, .W = 18, .k = SWA_F16,
      .v = SWA_F16, .compute = SWA_BF16, .bias = 1, .chunk = 1,
      .out = 0x8e9feb0e01803d92, .lse = 0xa815574ea2c61a29, .kept = 0x71277e32e299350a },
    { .name = "bf16 products latent", .h = 20, .kv = 1, .dk = 33, .dv = 24, .tail = 5, .latent = 1, .n = 40,
      .W = 11, .k = SWA_Q8, .t = SWA_F16, .compute = SWA_BF16, .chunk = 2,
      .out = 0xd92f9921fda166c6, .lse = 0xe8ec3448cf8f41d3, .kept = 0xb3db7fad014c06a3 },
    { .name = "tile order", .h = 6, .kv = 2, .dk = 77, .dv = 45, .n = 90, .window = PINNED, .W = 50, .sinks = 5,
      .q_sink = 1, .alibi = 1, .compute = SWA_BF16_TILE, .chunk = 1,
      .out = 0x8943b9ee3cacebba, .lse = 0x0bcfcc7eab7bf1b0, .kept = 0xae7502ce02a0788d },
    { .name = "tile order latent", .h = 20, .kv = 1, .dk = 67, .dv = 48, .tail = 35, .latent = 1, .n = 40,
      .W = 11, .k = SWA_Q8, .t = SWA_Q8, .compute = SWA_BF16_TILE, .chunk = 2,
      .out = 0x7b1b9b95c53c0fab, .lse = 0xdf04174265c52346, .kept = 0x75c0371097c74b0e },
    { .name = "int8 products", .h = 4, .kv = 1, .dk = 37, .dv = 16, .n = 45, .window = PINNED, .W = 12, .sinks = 3,
      .q_sink = 1, .logits = 1, .k = SWA_Q8, .v = SWA_BF16, .compute = SWA_Q8, .chunk = 1,
      .out = 0x7226e4377ed97945, .lse = 0xec423653d1ed5e9b, .kept = 0x14ec75d60687cee1 },
    { .name = "int8 products of q8", .h = 8, .kv = 2, .dk = 64, .dv = 64, .n = 45, .W = 30, .k = SWA_Q8,
      .v = SWA_Q8, .compute = SWA_Q8, .alibi = 1, .chunk = 16,
      .out = 0x4a8487e010055581, .lse = 0x72a50a023ad176c8, .kept = 0x3fc9d915ca1eb665 },
    /* several blocks: folds, splits by keys, rings that wrap in the middle of a block */
    { .name = "blocks", .h = 2, .kv = 1, .dk = 8, .dv = 8, .n = 640, .W = 300, .start = 100, .softcap = 4.0f,
      .chunk = 64, .parts = 3,
      .out = 0x71dc4a31c7b19297, .lse = 0xc9d835e8d38d250e, .kept = 0x19aa27bdf26df562 },
    { .name = "blocks f16", .h = 4, .kv = 1, .dk = 8, .dv = 12, .n = 700, .W = 600, .k = SWA_F16, .v = SWA_F16,
      .chunk = 150, .parts = 8,
      .out = 0x0e846080d4272e03, .lse = 0x97436abd32064cf1, .kept = 0x470903277c11328a },
    { .name = "blocks pinned q8", .h = 2, .kv = 1, .dk = 8, .dv = 8, .n = 700, .window = PINNED, .W = 200,
      .sinks = 20, .k = SWA_Q8, .v = SWA_Q8, .logits = 1, .chunk = 90, .parts = 2,
      .out = 0xa72b88a3861e0f09, .lse = 0x1721f4d941104d5f, .kept = 0x5a3d149e4a8d7f52 },
    { .name = "blocks bf16 products", .h = 2, .kv = 1, .dk = 9, .dv = 8, .n = 600, .W = 301, .start = 77,
      .k = SWA_BF16, .v = SWA_Q8, .compute = SWA_BF16, .chunk = 64, .parts = 3,
      .out = 0x034c325cde370fec, .lse = 0xa3a6b772f9e86574, .kept = 0x42e042242dc3f814 },
    { .name = "blocks tile order", .h = 2, .kv = 1, .dk = 64, .dv = 32, .n = 600, .W = 301, .start = 77,
      .k = SWA_BF16, .v = SWA_Q8, .compute = SWA_BF16_TILE, .chunk = 64, .parts = 3,
      .out = 0xefe441652971865b, .lse = 0xdf8dc2f5441c4635, .kept = 0x40477dbefc99756b },
    { .name = "blocks latent", .h = 8, .kv = 1, .dk = 18, .dv = 16, .tail = 5, .latent = 1, .n = 540, .W = 500,
      .compute = SWA_BF16, .chunk = 200, .parts = 4,
      .out = 0xeaedb42dc1cd1d81, .lse = 0xb13fb7dc71f88d3b, .kept = 0x85b7e04098459bb5 },
    /* staged types (their hashes are of the day they came) */
    { .name = "q8_32 and e4m3", .h = 4, .kv = 2, .dk = 40, .dv = 24, .n = 50, .W = 33, .k = SWA_Q8_32, .v = SWA_E4M3,
      .softcap = 3.0f, .chunk = 1,
      .out = 0xb640fe1f620ab296, .lse = 0x30731fcc759c2042, .kept = 0x244bcf60fdd3a4fc },
    { .name = "e5m2 latent", .h = 20, .kv = 1, .dk = 48, .dv = 32, .tail = 8, .latent = 1, .n = 40, .W = 21,
      .k = SWA_E5M2, .v = SWA_E5M2, .t = SWA_Q8_32, .chunk = 3,
      .out = 0x60e1f2168a5aa5f8, .lse = 0xc3af1826465f91c0, .kept = 0xc3c4dcd85c65987b },
    { .name = "blocks e4m3 and q8_32", .h = 2, .kv = 1, .dk = 33, .dv = 48, .n = 600, .W = 301, .start = 77,
      .k = SWA_E4M3, .v = SWA_Q8_32, .compute = SWA_BF16, .chunk = 64, .parts = 3,
      .out = 0x9c7c5a44cfdd1446, .lse = 0x6874405668802170, .kept = 0x7c4f6f2f9ccbbf60 },
};
/* clang-format on */
enum { N_CASES = sizeof cases / sizeof *cases };

static at_case case_of(const sum_case *s) {
    at_case c = at_new(s->h, s->kv, s->dk, s->dv, s->n);
    c.start = s->start;
    c.shape.tail_dim = s->tail;
    c.shape.v_in_k = s->latent;
    c.k_type = s->k;
    c.v_type = s->v;
    c.tail_type = s->t;
    c.softcap = s->softcap;
    c.alibi = s->alibi;
    c.bias = s->bias;
    c.sink_logits = s->logits;
    c.q_sink = s->q_sink;
    c.compute = (swa_type)s->compute;
    if (s->size > 0.0f) c.size = s->size;
    if (s->window == SLIDING) at_sliding(&c, s->W);
    if (s->window == PINNED) at_pinned(&c, s->W, s->sinks);
    if (s->window == CHUNKED) at_chunked(&c, s->W);
    if (s->span) at_span(&c, 0, s->span);
    return c;
}
static int has_q8(const sum_case *s) { return s->k == SWA_Q8 || s->v == SWA_Q8 || s->t == SWA_Q8; }

TEST_EACH_ISA(checksums_attention) {
    static const char *const ways[3] = { "out", "out in chunks", "out of rows" };
    for (int i = 0; i < N_CASES; i++) {
        const t_block *mark = t_.blocks;
        const sum_case *s = cases + i;
        const at_case c = case_of(s);
        const size_t n = (size_t)c.n * at_o_row(&c), rows = (size_t)(c.n * s->h);
        float *out = t_floats(n), *lse = t_floats(rows);
        at_how how;
        at_data d, kept;
        seed_by(s->name);
        d = at_make(&c);
        for (int way = 0; way < 3; way++) {
            if (way == 2 && has_q8(s)) continue; /* callers' rows are never q8 */
            if (t_leave(isa, i, way, has_q8(s) ? 2 : 3)) continue;
            how = at_on(isa);
            if (way == 1) {
                how.chunk = s->chunk;
                how.parts = s->parts;
                how.others = i & 1;
            }
            kept = way == 2 ? at_stored(&c, &d) : d;
            if (way == 2) {
                how.cuts = 3;
                how.parts = s->parts;
            }
            if (!(way == 2 ? at_rows(&c, &kept, &how, out, lse) : at_ring(&c, &d, &how, out, lse))) continue;
            compare(s->name, ways[way], hash_floats(out, n), s->out);
            compare(s->name, "lse", hash_floats(lse, rows), s->lse);
        }
        t_free_to(mark);
    }
}
/* What a ring keeps: rounding to f16, bf16 and q8. */
TEST_EACH_ISA(checksums_stored) {
    for (int i = 0; i < N_CASES; i++) {
        const t_block *mark = t_.blocks;
        const sum_case *s = cases + i;
        const at_case c = case_of(s);
        at_data d;
        uint64_t got;
        seed_by(s->name);
        d = at_make(&c);
        d = at_stored_by(&c, &d, isa);
        got = hash_floats(d.k, (size_t)c.n * at_k_row(&c));
        if (d.v) got ^= hash_floats(d.v, (size_t)c.n * at_v_row(&c)) * 3;
        compare(s->name, "kept", got, s->kept);
        t_free_to(mark);
    }
}

/* ---- partial results, merged ---- */

/* All queries of a case over one segment: results without normalisation, and their maxima and sums. */
static int partial(const at_case *c, const at_data *d, int isa, const swa_kv *kv, float *out, float *stat) {
    at_how how;
    at_call call;
    swa_rows r;
    memset(&how, 0, sizeof how);
    memset(&r, 0, sizeof r);
    r.shape = c->shape;
    r.window = c->window;
    r.isa = isa;
    r.pos = c->start;
    r.n_tokens = c->n;
    r.kv = kv;
    r.n_kv = 1;
    r.scratch_bytes = swa_attention_bytes(&r, 1);
    r.scratch = t_alloc(r.scratch_bytes);
    call = at_queries(c, d, d->q, NULL, NULL, (size_t)c->n, &how);
    call.a.stat = stat;
    if (!CHECK_OK(swa_attention(&r, &call.a))) return 0;
    at_results(c, &call, 0, (size_t)c->n, out, NULL);
    return 1;
}
TEST_EACH_ISA(checksums_merge) {
    enum { N = 90, CUTS = 3, H = 4, D = 16 };
    static const int from[CUTS + 1] = { 0, 20, 63, N };
    const size_t n = (size_t)(N * H * D), rows = (size_t)(N * H);
    at_case c = at_new(H, 2, D, D, N);
    at_data d;
    float *logits = t_floats(H), *out = t_floats(n), *lse = t_floats(rows), *o[CUTS], *st[CUTS];
    uint64_t got = 0;
    at_sliding(&c, 70);
    seed_by("merge");
    d = at_make(&c);
    t_fill(logits, H, 2.0f);
    for (int i = 0; i < CUTS; i++) {
        swa_kv kv = at_segment(&c, &d, from[i], from[i + 1] - from[i], 0);
        o[i] = t_floats(n);
        st[i] = t_floats(2 * rows);
        REQUIRE(partial(&c, &d, isa, &kv, o[i], st[i]));
        got = got * 5 + hash_floats(o[i], n) + hash_floats(st[i], 2 * rows);
    }
    compare("merge", "partials", got, 0x866e64a1e0c34e2c);
    REQUIRE_OK(swa_merge((const float *const *)o, (const float *const *)st, CUTS, N, H, D, logits, out, lse));
    compare("merge", "out", hash_floats(out, n), 0x4f3ca73564f93caa);
    compare("merge", "lse", hash_floats(lse, rows), 0x26ca6cf9c70032c5);
}

/* ---- the latent block, by path and type of weights ---- */

enum { MERGED = SWA_MLA_ABSORBED + 1 }; /* besides SWA_MLA_* */
typedef struct {
    const char *name;
    int path, expanded;
    swa_type weights, k, tail;
    int compute, hidden, q_lora;
    uint64_t out;
} block_case;
/* clang-format off */
static const block_case blocks[] = {
    { .name = "naive f32", .path = SWA_MLA_NAIVE, .weights = SWA_F32, .hidden = 96, .q_lora = 24,
      .out = 0xb7d6946bd43b9f37 },
    { .name = "absorbed f32", .path = SWA_MLA_ABSORBED, .weights = SWA_F32, .hidden = 96, .q_lora = 24,
      .out = 0x692e49b7ebed0a28 },
    { .name = "merged f32", .path = MERGED, .weights = SWA_F32, .hidden = 96, .q_lora = 24,
      .out = 0xcd52fb2619a8c052 },
    { .name = "expanded f32", .path = SWA_MLA_AUTO, .expanded = 1, .weights = SWA_F32, .hidden = 96, .q_lora = 24,
      .out = 0x5ca0716dd92174fb },
    { .name = "auto", .path = SWA_MLA_AUTO, .weights = SWA_F32, .hidden = 96,
      .out = 0x2ceadf0ec627207a },
    { .name = "naive f16", .path = SWA_MLA_NAIVE, .weights = SWA_F16, .k = SWA_F16, .tail = SWA_F16, .hidden = 96,
      .out = 0xc7afb23b3bc36160 },
    { .name = "absorbed f16", .path = SWA_MLA_ABSORBED, .weights = SWA_F16, .k = SWA_Q8, .hidden = 96, .q_lora = 24,
      .out = 0x0909ea96e9c701ce },
    { .name = "absorbed bf16", .path = SWA_MLA_ABSORBED, .weights = SWA_BF16, .k = SWA_BF16, .tail = SWA_BF16,
      .compute = SWA_BF16, .hidden = 96, .q_lora = 24,
      .out = 0xce10120189f23de5 },
    { .name = "naive bf16", .path = SWA_MLA_NAIVE, .weights = SWA_BF16, .k = SWA_BF16, .compute = SWA_BF16,
      .hidden = 96, .q_lora = 24,
      .out = 0x08eec70d499d1351 },
    { .name = "long products f32", .path = SWA_MLA_ABSORBED, .weights = SWA_F32, .hidden = 4500,
      .out = 0x19050fb267354d60 },
    { .name = "long products bf16", .path = SWA_MLA_NAIVE, .weights = SWA_BF16, .hidden = 2100, .q_lora = 24,
      .out = 0xc3b681d94b227aee },
    { .name = "long products f16", .path = SWA_MLA_ABSORBED, .weights = SWA_F16, .hidden = 2100,
      .out = 0x86504dea03f83f35 },
};
/* clang-format on */
enum { N_BLOCKS = sizeof blocks / sizeof *blocks };

static swa_matrix weights_of(size_t rows, size_t cols, swa_type type) {
    float *w = t_random(rows * cols, 1.0f);
    for (size_t i = 0; i < rows * cols; i++) w[i] *= 0.125f;
    return stored(w, rows, cols, type, cols);
}
static swa_mla mla_of(const block_case *b) {
    static const double freq[4] = { 1.0, 0.25, 0.0625, 0.015625 };
    const size_t hid = (size_t)b->hidden, q = (size_t)(b->q_lora ? b->q_lora : b->hidden);
    swa_mla m;
    memset(&m, 0, sizeof m);
    m.hidden = b->hidden;
    m.n_heads = 3;
    m.q_lora_rank = b->q_lora;
    m.kv_lora_rank = 40;
    m.nope_dim = 16;
    m.rope_dim = 8;
    m.v_dim = 20;
    m.eps = 1e-6f;
    m.freq = freq;
    m.compute = (swa_type)b->compute;
    m.path = b->path == MERGED ? SWA_MLA_AUTO : (swa_mla_path)b->path;
    if (b->q_lora) {
        m.w_dq = weights_of(q, hid, b->weights);
        m.q_norm = t_random(q, 1.0f);
    }
    m.w_uq = weights_of(3 * 16, q, b->weights);
    m.w_qr = weights_of(3 * 8, q, b->weights);
    m.w_dkv = weights_of(40, hid, b->weights);
    m.w_kr = weights_of(8, hid, b->weights);
    m.w_uk = weights_of(3 * 16, 40, b->weights);
    m.w_uv = weights_of(3 * 20, 40, b->weights);
    m.w_o = weights_of(hid, 3 * 20, b->weights);
    m.kv_norm = t_random(40, 1.0f);
    return m;
}
/* A cache that fits the block. */
static int block_open(swa_cache *cache, const block_case *b, swa_mla *m, int n, int isa) {
    swa_cache_desc d;
    size_t bytes;
    memset(&d, 0, sizeof d);
    d.shape = swa_mla_shape(m, b->expanded);
    d.n_layers = 1;
    d.max_context = n;
    d.k_type = d.v_type = b->k ? b->k : SWA_F32;
    d.tail_type = b->tail ? b->tail : SWA_F32; /* of the blocks named without one */
    d.isa = isa;
    if (!t_cache_new(cache, &d, 1)) return 0;
    bytes = swa_mla_scratch_bytes(m, &d, n, 1);
    if (!CHECK_OK(swa_cache_set_scratch(cache, t_alloc(bytes), bytes))) return 0;
    if (b->path == MERGED && !m->w_uqk.p) {
        const swa_mla factors = *m;
        size_t merged = swa_mla_merged_bytes(m);
        return CHECK_OK(swa_mla_merge(&factors, t_alloc(merged), merged, m));
    }
    return 1;
}
static int block_step(swa_cache *cache, const swa_mla *m, int at, int n, const float *h, float *out) {
    const size_t from = (size_t)at * (size_t)m->hidden;
    return CHECK_OK(swa_step_one(cache, 0, at, n)) && CHECK_OK(swa_mla_forward(cache, 0, m, h + from, out + from));
}
TEST_EACH_ISA(checksums_mla) {
    for (int i = 0; i < N_BLOCKS; i++) {
        const t_block *mark = t_.blocks;
        const block_case *b = blocks + i;
        const int n = b->hidden > 96 ? 12 : 48, chunks[3] = { n, 5, 1 };
        const int ways = b->path == SWA_MLA_AUTO && !b->expanded ? 1 : b->hidden > 96 ? 2 : 3; /* auto: by length */
        const size_t total = (size_t)n * (size_t)b->hidden;
        float *h, *out = t_floats(total);
        swa_mla m;
        swa_cache cache;
        seed_by(b->name);
        m = mla_of(b);
        h = t_random(total, 1.0f);
        for (int way = 0; way < ways; way++) {
            if (t_leave(isa, i, way, ways)) continue;
            if (!block_open(&cache, b, &m, n, isa)) return;
            for (int at = 0; at < n; at += chunks[way])
                if (!block_step(&cache, &m, at, at + chunks[way] < n ? chunks[way] : n - at, h, out)) return;
            compare(b->name, way ? "out in chunks" : "out", hash_floats(out, total), b->out);
        }
        t_free_to(mark);
    }
}
