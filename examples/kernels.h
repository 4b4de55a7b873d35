/* kernels.h - the inner products of quants.h, written once over a few vector operations and included once per
   instruction set. The includer defines K(name), K_FN (attributes of inlined functions), K_ENTRY (of the function
   that is called), and the types and operations listed in quants.h under "operations".

   A row of weights is decoded once for up to four tokens; one token is multiplied with four rows at a time, so that
   its activations are read once for them: those of a long row do not stay in L1. sum[r + t]: one of the two is 0.
   Weights of a quantised block stay integers, by which activations of 16 bits are multiplied exactly; only sums of a
   block or group become floats. Every instruction set has the same 16 lanes and the same order of sums, so that all
   which fuse multiply and add give the same bits. */

/* ---- floats: F32, F16, BF16; 64 columns at a time in four accumulators, what is left one by one ---- */

K_FN K(vf) K(floats)(const unsigned char *w, uint32_t type) {
    return type == GGUF_TENSOR_F32 ? K(vf_le)(w) : type == GGUF_TENSOR_F16 ? K(vf_half)(w) : K(vf_brain)(w);
}

/* `rows` rows times `tokens` tokens, one of the two being 1: rows side by side read x once, tokens side by side the
   weights. The next rows are fetched meanwhile. */
K_FN void K(float_tile)(const weights *w, uint32_t type, const unsigned char *row, const float *x, int rows, int tokens,
                        float *out) {
    K(vf) sum[K_TILE][4];
    size_t size = type == GGUF_TENSOR_F32 ? 4 : 2, ld = (size_t)w->cols, c = 0;
    int n = rows * tokens;
    K_UNROLL
    for (int t = 0; t < n; t++) {
        K_UNROLL
        for (int i = 0; i < 4; i++) sum[t][i] = K(vf_zero)();
    }
    for (; c + 64 <= ld; c += 64) {
        K_UNROLL
        for (int t = 0; t < rows; t++) weights_fetch(row + ((size_t)(t + rows) * ld + c) * size, 64 * size);
        K_UNROLL
        for (int i = 0; i < 4; i++) {
            K(vf) v = K(floats)(row + (c + 16 * (size_t)i) * size, type), u = K(vf_load)(x + c + 16 * (size_t)i);
            sum[0][i] = K(vf_fma)(v, u, sum[0][i]);
            K_UNROLL
            for (int t = 1; t < n; t++) {
                size_t at = (size_t)t * ld + c + 16 * (size_t)i;
                if (rows > 1) v = K(floats)(row + at * size, type);
                else u = K(vf_load)(x + at);
                sum[t][i] = K(vf_fma)(v, u, sum[t][i]);
            }
        }
    }
    K_UNROLL
    for (int t = 0; t < n; t++) {
        float all = K(vf_total)(K(vf_add)(K(vf_add)(sum[t][0], sum[t][1]), K(vf_add)(sum[t][2], sum[t][3])));
        const unsigned char *last = row + (rows > 1 ? (size_t)t * ld * size : 0);
        for (size_t i = c; i < ld; i++) {
            all += weight_float(last + i * size, type) * x[(rows > 1 ? 0 : (size_t)t * ld) + i];
        }
        out[rows > 1 ? (size_t)t : (size_t)t * (size_t)w->rows] = all;
    }
}

/* ---- blocks of 32 with one scale: Q8_0, Q4_0, MXFP4 ---- */

K_FN K(vw) K(block)(const unsigned char *b, uint32_t type, float *scale) {
    if (type == GGUF_TENSOR_Q8_0) {
        *scale = K(half)(b);
        return K(vw_signed)(K(vb_load)(b + 2));
    }
    if (type == GGUF_TENSOR_Q4_0) {
        *scale = K(half)(b);
        return K(vw_add)(K(vw_unsigned)(K(vb_nibbles)(b + 2)), K(vw_set)(-8));
    }
    *scale = weight_exponent(b[0]);
    return K(vw_signed)(K(vb_lookup)(weight_fp4, K(vb_nibbles)(b + 1)));
}

/* Block b of tokens first.. into their sums. */
K_FN void K(block_add)(const unsigned char *b, uint32_t type, const activations *x, size_t at, size_t blocks,
                       int tokens, K(vf) *sum) {
    float scale;
    K(vw) v = K(block)(b, type, &scale);
    K_UNROLL
    for (int t = 0; t < tokens; t++) {
        size_t i = at + (size_t)t * blocks;
        K(vi) s = K(vi_madd)(K(vi_zero)(), v, K(vw_words)(x->q + i * 32));
        sum[4 * t] = K(vf_fma)(K(vf_int)(s), K(vf_set)(scale * x->scale[i]), sum[4 * t]);
    }
}

K_FN void K(block_tile)(const unsigned char *w, uint32_t type, const activations *x, size_t first, int cols, int rows,
                        int tokens, float *out, size_t next) {
    K(vf) sum[8 * K_TILE];
    size_t size = type == GGUF_TENSOR_Q8_0 ? 34 : type == GGUF_TENSOR_Q4_0 ? 18 : 17;
    size_t blocks = (size_t)cols / 32, b = 0, at = first * blocks;
    K_UNROLL
    for (int i = 0; i < 4 * rows * tokens; i++) sum[i] = K(vf_zero)();
    for (; b + 4 <= blocks; b += 4) {
        K_UNROLL
        for (int r = 0; r < rows; r++) {
            const unsigned char *p = w + ((size_t)r * blocks + b) * size;
            if (rows > 1) weights_fetch(p + (size_t)rows * blocks * size, 4 * size);
            K_UNROLL
            for (size_t i = 0; i < 4; i++) {
                K(block_add)(p + i * size, type, x, at + b + i, blocks, tokens, sum + 4 * r + i);
            }
        }
    }
    for (; b < blocks; b++) {
        K_UNROLL
        for (int r = 0; r < rows; r++) {
            const unsigned char *p = w + ((size_t)r * blocks + b) * size;
            K(block_add)(p, type, x, at + b, blocks, tokens, sum + 4 * r);
        }
    }
    K_UNROLL
    for (int t = 0; t < rows * tokens; t++) {
        const K(vf) *s = sum + 4 * t;
        out[(size_t)t * next] = K(vf_total)(K(vf_add)(K(vf_add)(s[0], s[1]), K(vf_add)(s[2], s[3])));
    }
}

/* ---- superblocks of 256 whose eight or sixteen groups have integer scales: Q4_K, Q5_K, Q6_K ---- */

/* Q4_K and Q5_K keep the nibbles of two groups of 32 in 32 bytes, so 64 bytes have groups 4j and 4j+1 in the first
   half, 4j+2 and 4j+3 in the second. v[2j + h] has groups 4j+h and 4j+2+h, a byte each; weights_place() brings the
   activations into that order. */
K_FN void K(super_45)(const unsigned char *b, int five, K(vw) v[4]) {
    K(vw) fifth = K(vw_twice)(b + 16); /* of no use to Q4_K, but inside its block */
    K_UNROLL
    for (int i = 0; i < 4; i++) {
        int j = i / 2, h = i % 2, from = 4 * j + h; /* the groups' bit in fifth: it becomes bit 4 */
        K(vw) w = K(vw_bytes)(b + (five ? 48 : 16) + 64 * j), high = fifth;
        v[i] = K(vw_and)(h ? K(vw_shr)(w, 4) : w, 0x0f0f);
        if (from > 4) high = K(vw_shr)(fifth, from - 4);
        if (from < 4) high = K(vw_shl)(fifth, 4 - from);
        if (five) v[i] = K(vw_or)(v[i], K(vw_and)(high, 0x1010));
    }
}

/* All within a block is exact: a lane has 16 products of weights of 31, scales of 63, and activations of 16 bits.
   x->sum has minus the sums of these, for the minima, which are exact until two of eight are summed. */
K_FN void K(super_45_tile)(const unsigned char *w, uint32_t type, const activations *x, size_t first, int cols,
                           int rows, int tokens, float *out, size_t next) {
    K(vf) sum[2 * K_TILE];
    K(vl) low[2 * K_TILE];
    size_t size = type == GGUF_TENSOR_Q4_K ? 144 : 176, blocks = (size_t)cols / 256;
    K_UNROLL
    for (int t = 0; t < rows * tokens; t++) {
        sum[t] = K(vf_zero)();
        low[t] = K(vl_zero)();
    }
    for (size_t n = 0; n < blocks; n++) {
        K_UNROLL
        for (int r = 0; r < rows; r++) {
            const unsigned char *b = w + ((size_t)r * blocks + n) * size;
            weight_scales s = weight_scales_of(b + 4);
            K(vg) scales = K(vg_bytes)(s.scales);
            K(vw) v[4];
            if (rows > 1) weights_fetch(b + (size_t)rows * blocks * size, size);
            K(super_45)(b, type == GGUF_TENSOR_Q5_K, v);
            K_UNROLL
            for (int t = 0; t < tokens; t++) {
                size_t at = (first + (size_t)t) * blocks + n;
                const unsigned char *q = (const unsigned char *)(x->q + at * 256);
                K(vl) by = K(vl_halves)(b, x->scale[at]);
                K(vi) all = K(vi_zero)();
                K_UNROLL
                for (int i = 0; i < 4; i++) {
                    int g = i / 2 * 4 + i % 2;
                    all = K(vi_bytes)(all, v[i], q + 128 * i, K(vg_pick)(scales, g, g + 2));
                }
                sum[r + t] = K(vf_fma)(K(vf_int)(all), K(vf_first)(by), sum[r + t]);
                low[r + t] = K(vl_mins)(low[r + t], s.mins, x->sum + at * 16, by);
            }
        }
    }
    K_UNROLL
    for (int t = 0; t < rows * tokens; t++) out[(size_t)t * next] = K(vf_total)(sum[t]) + K(vl_total)(low[t]);
}

/* A group's scale is multiplied in as an integer: 16 products to a lane stay below 2^31 with weights of 32, scales of
   128, and activations of 16 bits. */
K_FN void K(super_6)(const unsigned char *b, K(vw) v[8]) {
    K(vs) scales = K(vs_bytes)(
        weight_word(b + 192) | weight_word(b + 196) << 32, weight_word(b + 200) | weight_word(b + 204) << 32);
    K_UNROLL
    for (int g = 0; g < 8; g++) { /* group g: half g/4 of the block, quarter g%4 of the half */
        K(vb) q = K(vb_load)(b + 64 * (g / 4) + 32 * (g % 2)), high = K(vb_load)(b + 128 + 32 * (g / 4));
        q = K(vb_and)(g % 4 < 2 ? q : K(vb_shr)(q, 4), 15);
        q = K(vb_or)(q, K(vb_shl)(K(vb_and)(K(vb_shr)(high, 2 * (g % 4)), 3), 4));
        v[g] = K(vw_mul)(K(vw_add)(K(vw_unsigned)(q), K(vw_set)(-32)), K(vs_pick)(scales, 2 * g, 2 * g + 1));
    }
}

K_FN void K(super_6_tile)(const unsigned char *w, const activations *x, size_t first, int cols, int rows, int tokens,
                          float *out, size_t next) {
    K(vf) sum[2 * K_TILE];
    size_t blocks = (size_t)cols / 256;
    K_UNROLL
    for (int t = 0; t < rows * tokens; t++) sum[t] = K(vf_zero)();
    for (size_t n = 0; n < blocks; n++) {
        K_UNROLL
        for (int r = 0; r < rows; r++) {
            const unsigned char *b = w + ((size_t)r * blocks + n) * 210;
            K(vw) v[8];
            if (rows > 1) weights_fetch(b + (size_t)rows * blocks * 210, 210);
            K(super_6)(b, v);
            K_UNROLL
            for (int t = 0; t < tokens; t++) {
                size_t at = (first + (size_t)t) * blocks + n;
                K(vi) s = K(vi_zero)();
                K_UNROLL
                for (int g = 0; g < 8; g++) s = K(vi_madd)(s, v[g], K(vw_words)(x->q + at * 256 + (size_t)(32 * g)));
                sum[r + t] = K(vf_fma)(K(vf_int)(s), K(vf_set)(K(half)(b + 208) * x->scale[at]), sum[r + t]);
            }
        }
    }
    K_UNROLL
    for (int t = 0; t < rows * tokens; t++) out[(size_t)t * next] = K(vf_total)(sum[t]);
}

/* ---- the function that is called: rows [from, to) times all tokens ---- */

/* `rows` rows times `tokens` tokens from first on, one of the two being 1. The results lie `next` apart. */
K_FN void K(tile)(const weights *w, const unsigned char *row, const activations *x, size_t first, int rows, int tokens,
                  float *out) {
    size_t next = rows > 1 ? 1 : (size_t)w->rows;
    const float *f = x->x + first * (size_t)w->cols;
    switch (w->type) {
    case GGUF_TENSOR_F32: K(float_tile)(w, GGUF_TENSOR_F32, row, f, rows, tokens, out); break;
    case GGUF_TENSOR_F16: K(float_tile)(w, GGUF_TENSOR_F16, row, f, rows, tokens, out); break;
    case GGUF_TENSOR_BF16: K(float_tile)(w, GGUF_TENSOR_BF16, row, f, rows, tokens, out); break;
    case GGUF_TENSOR_Q8_0: K(block_tile)(row, GGUF_TENSOR_Q8_0, x, first, w->cols, rows, tokens, out, next); break;
    case GGUF_TENSOR_Q4_0: K(block_tile)(row, GGUF_TENSOR_Q4_0, x, first, w->cols, rows, tokens, out, next); break;
    case GGUF_TENSOR_MXFP4: K(block_tile)(row, GGUF_TENSOR_MXFP4, x, first, w->cols, rows, tokens, out, next); break;
    case GGUF_TENSOR_Q4_K: K(super_45_tile)(row, GGUF_TENSOR_Q4_K, x, first, w->cols, rows, tokens, out, next); break;
    case GGUF_TENSOR_Q5_K: K(super_45_tile)(row, GGUF_TENSOR_Q5_K, x, first, w->cols, rows, tokens, out, next); break;
    default: K(super_6_tile)(row, x, first, w->cols, rows, tokens, out, next);
    }
}

K_ENTRY static void K(rows)(const weights *w, const activations *x, int tokens, int from, int to, float *out) {
    size_t row_bytes = gguf_bytes(w->type, (size_t)w->cols);
    int r = from;
    for (; tokens == 1 && r + K_TILE <= to; r += K_TILE) {
        K(tile)(w, w->data + (size_t)r * row_bytes, x, 0, K_TILE, 1, out + r);
    }
    for (; r < to; r++) {
        const unsigned char *row = w->data + (size_t)r * row_bytes;
        int t = 0;
        for (; t + K_TILE <= tokens; t += K_TILE) {
            K(tile)(w, row, x, (size_t)t, 1, K_TILE, out + (size_t)t * (size_t)w->rows + (size_t)r);
        }
        for (; t < tokens; t++) K(tile)(w, row, x, (size_t)t, 1, 1, out + (size_t)t * (size_t)w->rows + (size_t)r);
    }
}
