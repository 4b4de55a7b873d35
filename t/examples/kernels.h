/* kernels.h - the inner products of quants.h, written once over a few vector operations and included once per
   instruction set. The includer defines K(name), K_FN (attributes of inlined functions), K_ENTRY (of the function
   that is called), and the types and operations listed in quants.h under "operations".

   A row of weights is decoded once for up to four tokens. Weights of a quantised block become 16-bit integers, by
   which 16-bit activations are multiplied exactly; only the sum of a block becomes a float. Every instruction set
   has the same 16 lanes and the same order of sums, so all that fuse multiply and add give the same bits. */

/* The sum of 16 lanes, halves upon halves. */
K_FN float K(total)(K(vf) v) {
    float s[16];
    K(vf_store)(s, v);
    for (int half = 8; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) s[i] += s[i + half];
    }
    return s[0];
}

/* ---- floats: F32, F16, BF16; 64 columns at a time in four accumulators, what is left one by one ---- */

K_FN K(vf) K(floats)(const unsigned char *w, uint32_t type) {
    return type == GGUF_TENSOR_F32 ? K(vf_le)(w) : type == GGUF_TENSOR_F16 ? K(vf_half)(w) : K(vf_brain)(w);
}

K_FN void K(float_row)(const unsigned char *w, uint32_t type, const float *x, int cols, int tokens, float *out,
                       size_t next) {
    K(vf) sum[K_TILE][4];
    size_t size = type == GGUF_TENSOR_F32 ? 4 : 2, ld = (size_t)cols;
    int c = 0;
    K_UNROLL
    for (int t = 0; t < tokens; t++) {
        K_UNROLL
        for (int i = 0; i < 4; i++) sum[t][i] = K(vf_zero)();
    }
    for (; c + 64 <= cols; c += 64) {
        K_UNROLL
        for (int i = 0; i < 4; i++) {
            K(vf) v = K(floats)(w + (size_t)(c + 16 * i) * size, type);
            K_UNROLL
            for (int t = 0; t < tokens; t++) {
                sum[t][i] = K(vf_fma)(v, K(vf_load)(x + (size_t)t * ld + (size_t)(c + 16 * i)), sum[t][i]);
            }
        }
    }
    K_UNROLL
    for (int t = 0; t < tokens; t++) {
        float all = K(total)(K(vf_add)(K(vf_add)(sum[t][0], sum[t][1]), K(vf_add)(sum[t][2], sum[t][3])));
        for (size_t i = (size_t)c; i < ld; i++) all += weight_float(w + i * size, type) * x[(size_t)t * ld + i];
        out[(size_t)t * next] = all;
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
        K(vi) s = K(vi_madd)(K(vi_zero)(), v, x->q + i * 32);
        sum[4 * t] = K(vf_fma)(K(vf_int)(s), K(vf_set)(scale * x->scale[i]), sum[4 * t]);
    }
}

K_FN void K(block_row)(const unsigned char *w, uint32_t type, const activations *x, size_t first, int cols,
                       int tokens, float *out, size_t next) {
    K(vf) sum[4 * K_TILE];
    size_t size = type == GGUF_TENSOR_Q8_0 ? 34 : type == GGUF_TENSOR_Q4_0 ? 18 : 17;
    size_t blocks = (size_t)cols / 32, b = 0, at = first * blocks;
    K_UNROLL
    for (int i = 0; i < 4 * tokens; i++) sum[i] = K(vf_zero)();
    for (; b + 4 <= blocks; b += 4) {
        K_UNROLL
        for (size_t i = 0; i < 4; i++) K(block_add)(w + (b + i) * size, type, x, at + b + i, blocks, tokens, sum + i);
    }
    for (; b < blocks; b++) K(block_add)(w + b * size, type, x, at + b, blocks, tokens, sum);
    K_UNROLL
    for (int t = 0; t < tokens; t++) {
        const K(vf) *s = sum + 4 * t;
        out[(size_t)t * next] = K(total)(K(vf_add)(K(vf_add)(s[0], s[1]), K(vf_add)(s[2], s[3])));
    }
}

/* ---- superblocks of 256 whose eight or sixteen groups have integer scales: Q4_K, Q5_K, Q6_K ----
   The scale is multiplied into the 16-bit weight: at most 31*63 or 32*128, so that 256 products of 16 bits by 16
   bits, 16 to a lane, stay below 2^31. */

/* Q4_K and Q5_K keep the nibbles of two groups of 32 in 32 bytes. Taken as words, each holds two bytes, so four shifts
   and masks give even and odd elements of the groups without moving any: vector 4j + 2h + o has every second element
   from o on of the groups 4j+h and 4j+2+h. weights_place() brings the activations into that order. */
K_FN void K(super_45)(const unsigned char *b, int five, weight_scales s, K(vw) v[8]) {
    K(vw) high = K(vw_twice)(b + 16);                    /* the fifth bits; of no use to Q4_K, but inside its block */
    K(vs) scales = K(vs_bytes)(s.scales, s.mins);
    K_UNROLL
    for (int i = 0; i < 8; i++) {
        int j = i / 4, h = i / 2 % 2, o = i % 2;
        K(vw) q = K(vw_and)(K(vw_shr)(K(vw_bytes)(b + (five ? 48 : 16) + 64 * j), 8 * o + 4 * h), 15);
        if (five) q = K(vw_add)(q, K(vw_shl)(K(vw_and)(K(vw_shr)(high, 8 * o + 4 * j + h), 1), 4));
        v[i] = K(vw_mul)(q, K(vs_pick)(scales, 4 * j + h, 4 * j + 2 + h));
    }
}

K_FN void K(super_6)(const unsigned char *b, K(vw) v[8]) {
    K(vs) scales = K(vs_bytes)(weight_word(b + 192) | weight_word(b + 196) << 32,
                                  weight_word(b + 200) | weight_word(b + 204) << 32);
    K_UNROLL
    for (int g = 0; g < 8; g++) {                        /* group g: half g/4 of the block, quarter g%4 of the half */
        K(vb) q = K(vb_load)(b + 64 * (g / 4) + 32 * (g % 2)), high = K(vb_load)(b + 128 + 32 * (g / 4));
        q = K(vb_and)(g % 4 < 2 ? q : K(vb_shr)(q, 4), 15);
        q = K(vb_or)(q, K(vb_shl)(K(vb_and)(K(vb_shr)(high, 2 * (g % 4)), 3), 4));
        v[g] = K(vw_mul)(K(vw_add)(K(vw_unsigned)(q), K(vw_set)(-32)), K(vs_pick)(scales, 2 * g, 2 * g + 1));
    }
}

K_FN void K(super_row)(const unsigned char *w, uint32_t type, const activations *x, size_t first, int cols,
                       int tokens, float *out, size_t next) {
    K(vf) sum[K_TILE];
    size_t size = type == GGUF_TENSOR_Q4_K ? 144 : type == GGUF_TENSOR_Q5_K ? 176 : 210;
    size_t ld = (size_t)cols, blocks = ld / 256;
    K_UNROLL
    for (int t = 0; t < tokens; t++) sum[t] = K(vf_zero)();
    for (size_t n = 0; n < blocks; n++) {
        const unsigned char *b = w + n * size;
        weight_scales s45 = { 0, 0 };
        K(vw) v[8];
        float scale = K(half)(type == GGUF_TENSOR_Q6_K ? b + 208 : b);
        if (type != GGUF_TENSOR_Q6_K) s45 = weight_scales_of(b + 4);
        if (type == GGUF_TENSOR_Q6_K) K(super_6)(b, v);
        else K(super_45)(b, type == GGUF_TENSOR_Q5_K, s45, v);
        K_UNROLL
        for (int t = 0; t < tokens; t++) {
            size_t at = (first + (size_t)t) * blocks + n;
            float unit = x->scale[at];
            K(vi) s = K(vi_zero)();
            K_UNROLL
            for (int g = 0; g < 8; g++) s = K(vi_madd)(s, v[g], x->q + at * 256 + (size_t)(32 * g));
            sum[t] = K(vf_fma)(K(vf_int)(s), K(vf_set)(scale * unit), sum[t]);
            if (type == GGUF_TENSOR_Q6_K) continue;
            s = K(vi_mins)(s45.mins, x->sum + at * 16);
            sum[t] = K(vf_fma)(K(vf_int)(s), K(vf_set)(-K(half)(b + 2) * unit), sum[t]);
        }
    }
    K_UNROLL
    for (int t = 0; t < tokens; t++) out[(size_t)t * next] = K(total)(sum[t]);
}

/* ---- the function that is called: rows [from, to) times all tokens ---- */

K_FN void K(tile)(const weights *w, const unsigned char *row, const activations *x, size_t first, int tokens,
                  float *out) {
    size_t next = (size_t)w->rows;
    switch (w->type) {
    case GGUF_TENSOR_F32:
        K(float_row)(row, GGUF_TENSOR_F32, x->x + first * (size_t)w->cols, w->cols, tokens, out, next);
        break;
    case GGUF_TENSOR_F16:
        K(float_row)(row, GGUF_TENSOR_F16, x->x + first * (size_t)w->cols, w->cols, tokens, out, next);
        break;
    case GGUF_TENSOR_BF16:
        K(float_row)(row, GGUF_TENSOR_BF16, x->x + first * (size_t)w->cols, w->cols, tokens, out, next);
        break;
    case GGUF_TENSOR_Q8_0: K(block_row)(row, GGUF_TENSOR_Q8_0, x, first, w->cols, tokens, out, next); break;
    case GGUF_TENSOR_Q4_0: K(block_row)(row, GGUF_TENSOR_Q4_0, x, first, w->cols, tokens, out, next); break;
    case GGUF_TENSOR_MXFP4: K(block_row)(row, GGUF_TENSOR_MXFP4, x, first, w->cols, tokens, out, next); break;
    case GGUF_TENSOR_Q4_K: K(super_row)(row, GGUF_TENSOR_Q4_K, x, first, w->cols, tokens, out, next); break;
    case GGUF_TENSOR_Q5_K: K(super_row)(row, GGUF_TENSOR_Q5_K, x, first, w->cols, tokens, out, next); break;
    default: K(super_row)(row, GGUF_TENSOR_Q6_K, x, first, w->cols, tokens, out, next); break;
    }
}

K_ENTRY static void K(rows)(const weights *w, const activations *x, int tokens, int from, int to, float *out) {
    size_t row_bytes = gguf_bytes(w->type, (size_t)w->cols);
    for (int r = from; r < to; r++) {
        const unsigned char *row = w->data + (size_t)r * row_bytes;
        int t = 0;
        for (; t + K_TILE <= tokens; t += K_TILE) {
            K(tile)(w, row, x, (size_t)t, K_TILE, out + (size_t)t * (size_t)w->rows + (size_t)r);
        }
        for (; t < tokens; t++) K(tile)(w, row, x, (size_t)t, 1, out + (size_t)t * (size_t)w->rows + (size_t)r);
    }
}
