/* Masks against the predicate of ../oracle.h: block-diagonal masks of every type and polarity, cell by cell, and
   the compressed 512x512 mask, whose expansion has to be the full mask. */
#define SWA_IMPLEMENTATION
#include "../../swa.h"
#define FUZZ_NAME "masks"
#include "fuzz.h"
#include "../oracle.h"

enum { BLOCKS = 4, SIDE = 600 };

static swa_window any_window(fuzz_in *in, or_window *see) {
    int kind = fuzz_pick(in, 0, 6), W = fuzz_pick(in, 1, 70), b = fuzz_pick(in, 0, 9);
    swa_window w = swa_window_causal();
    *see = or_causal();
    if (kind == 1) {
        w = swa_window_sliding(W);
        *see = or_sliding(W);
    }
    if (kind == 2) {
        w = swa_window_flash(W - 2, b - 1);
        see->left = W < 2 ? OR_FAR : W - 2;
        see->right = b < 1 ? OR_FAR : b - 1;
    }
    if (kind == 3) {
        w = swa_window_chunked(W);
        see->chunk = W;
    }
    if (kind == 4) {
        w = swa_window_symmetric(W);
        see->left = see->right = W;
    }
    if (kind == 5) {
        w = swa_window_sinks(W, b);
        *see = or_sliding(W);
        see->pinned = b;
    }
    if (kind == 6) {
        w = swa_window_prefix(W, b);
        *see = or_sliding(W);
        see->span_hi = b;
    }
    return w;
}
/* A number as the mask stores it. */
static size_t cell_bytes(swa_type t) { return t == SWA_F32 ? 4 : t == SWA_F16 || t == SWA_BF16 ? 2 : 1; }

/* What a hidden entry looks like, from a mask of one hidden entry; the value itself is another test's business. */
static void hidden_cell(const swa_mask_desc *like, unsigned char cell[4]) {
    static const int32_t one[1] = { 1 };
    static const int64_t next[1] = { 1 };
    swa_mask_desc d = *like;
    d.window = swa_window_causal();
    d.n_q = d.n_k = one;
    d.q_pos0 = NULL;
    d.k_pos0 = next;
    d.n_blocks = 0;
    d.k_padding = 0;
    memset(cell, 0, 4);
    if (swa_mask(&d, cell, 4) != SWA_OK) FUZZ_DIE("a mask of one entry is refused");
}
static void check_blocks(const swa_mask_desc *d, const or_window *see, const unsigned char *mask, size_t columns) {
    size_t size = cell_bytes(d->type), row = 0;
    unsigned char hidden[4], seen[4] = { 0, 0, 0, 0 };
    hidden_cell(d, hidden);
    if (d->type == SWA_BOOL_KEEP) seen[0] = 1;
    if (memcmp(hidden, seen, size) == 0) FUZZ_DIE("hidden and visible look the same");
    for (int b = 0; b < d->n_blocks; b++)
        for (int32_t i = 0; i < d->n_q[b]; i++, row++) {
            size_t column = 0;
            for (int c = 0; c < d->n_blocks; c++)
                for (int32_t j = 0; j < (d->k_padding ? d->k_padding : d->n_k[c]); j++, column++) {
                    int sees = b == c && j < d->n_k[c]
                            && or_sees(see, (d->q_pos0 ? d->q_pos0[b] : 0) + i, (d->k_pos0 ? d->k_pos0[b] : 0) + j);
                    if (memcmp(mask + (row * columns + column) * size, sees ? seen : hidden, size) != 0)
                        FUZZ_DIE("block %d row %d, block %d column %d: should be %s", b, (int)i, c, (int)j,
                                 sees ? "visible" : "hidden");
                    fuzz_ops++;
                }
        }
}
static void fuzz_blocks(fuzz_in *in) {
    static const swa_type types[5] = { SWA_F32, SWA_F16, SWA_BF16, SWA_BOOL_MASKED, SWA_BOOL_KEEP };
    static const int64_t far[4] = { 0, 30, (int64_t)1 << 40, INT64_MAX - 200 };
    int32_t n_q[BLOCKS], n_k[BLOCKS];
    int64_t q_pos0[BLOCKS], k_pos0[BLOCKS], rows = 0, columns = 0;
    swa_mask_desc d;
    or_window see;
    unsigned char *mask;
    size_t bytes;
    memset(&d, 0, sizeof d);
    d.window = any_window(in, &see);
    d.type = types[fuzz_pick(in, 0, 4)];
    d.n_blocks = fuzz_pick(in, 1, BLOCKS);
    d.n_q = n_q;
    d.n_k = n_k;
    if (fuzz_pick(in, 0, 3)) d.q_pos0 = q_pos0;
    if (fuzz_pick(in, 0, 3)) d.k_pos0 = k_pos0;
    if (fuzz_pick(in, 0, 2) == 0) d.k_padding = 40 + fuzz_pick(in, 0, 9);
    if (fuzz_pick(in, 0, 3) == 0) d.masked = -10000.0f;
    for (int b = 0; b < d.n_blocks; b++) {
        n_q[b] = fuzz_pick(in, 0, 40);
        n_k[b] = fuzz_pick(in, 0, 40);
        /* Far away only together: from 0 it is further than the oracle's "no limit" of 2^62. */
        k_pos0[b] = far[fuzz_pick(in, 0, d.q_pos0 && d.k_pos0 ? 3 : 2)] + fuzz_pick(in, 0, 40);
        q_pos0[b] = k_pos0[b] + fuzz_pick(in, 0, 50);
        rows += n_q[b];
        columns += d.k_padding ? d.k_padding : n_k[b];
    }
    bytes = swa_mask_bytes(&d);
    if (bytes != (size_t)(rows * columns) * cell_bytes(d.type)) FUZZ_DIE("swa_mask_bytes is %ld", (long)bytes);
    mask = (unsigned char *)malloc(bytes + 1);
    if (!mask) exit(2);
    mask[bytes] = 0x5a;
    if (swa_mask(&d, mask, bytes) != SWA_OK && bytes > 0) FUZZ_DIE("swa_mask refuses");
    if (mask[bytes] != 0x5a) FUZZ_DIE("written past the end");
    if (bytes > 0) check_blocks(&d, &see, mask, (size_t)columns);
    free(mask);
}
/* The picture is a band, and what the kernel makes of it is the sliding mask of W keys. */
static void fuzz_compressed(fuzz_in *in) {
    static float picture[512 * 512], full[SIDE * SIDE];
    swa_compressed kind = (swa_compressed)fuzz_pick(in, 0, 3);
    int head_dim = fuzz_pick(in, 1, 256);
    int64_t W = fuzz_pick(in, 1, 1200), S = fuzz_pick(in, 1, SIDE), band = swa_compressed_band(kind, W, head_dim);
    float masked = fuzz_pick(in, 0, 1) ? 1.0f : -65536.0f;
    if (swa_mask_compressed(kind, W, head_dim, SWA_F32, masked, picture, sizeof picture) != SWA_OK)
        FUZZ_DIE("swa_mask_compressed refuses");
    for (int i = 0; i < 512; i++)
        for (int j = 0; j < 512; j++) {
            int shown = i >= j && i - j < band;
            if (!(picture[i * 512 + j] >= (shown ? 0 : masked) && picture[i * 512 + j] <= (shown ? 0 : masked)))
                FUZZ_DIE("W=%d head_dim=%d: picture at %d, %d", (int)W, head_dim, i, j);
        }
    fuzz_ops += 512 * 512;
    if (kind != SWA_COMPRESSED_910B && kind != SWA_COMPRESSED_310P) return; /* the samples are wrong in corners */
    if (swa_mask_expand(kind, picture, W, head_dim, S, masked, full, sizeof full) != SWA_OK)
        FUZZ_DIE("swa_mask_expand refuses");
    for (int64_t i = 0; i < S; i++)
        for (int64_t j = 0; j < S; j++) {
            float want = i >= j && i - j < W ? 0 : masked;
            if (!(full[i * S + j] >= want && full[i * S + j] <= want))
                FUZZ_DIE("kind %d W=%d head_dim=%d S=%d: full mask at %d, %d", (int)kind, (int)W, head_dim, (int)S,
                         (int)i, (int)j);
        }
    fuzz_ops += (long)(S * S);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_in in;
    in.p = data;
    in.left = size;
    do {
        if (fuzz_pick(&in, 0, 15) == 0) fuzz_compressed(&in);
        else fuzz_blocks(&in);
    } while (in.left > 0);
    return 0;
}
