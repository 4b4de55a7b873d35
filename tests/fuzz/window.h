/* window.h - a window of a kind, as swa.h has it and as the oracle does, for the targets that choose one. */
#ifndef SWA_FUZZ_WINDOW_H
#define SWA_FUZZ_WINDOW_H
#include "../oracle.h"

typedef enum { W_CAUSAL, W_SLIDING, W_CHUNKED, W_SINKS, W_FLASH, W_SYMMETRIC, W_PREFIX } window_kind;

/* W keys; b: the number of sinks, FlashAttention's right end + 1 (0 = none), or a prefix of 20 b. */
static inline void window_of(window_kind kind, int W, int b, swa_window *window, or_window *see) {
    const int sliding = kind == W_SLIDING || kind == W_SINKS || kind == W_PREFIX;
    *window = swa_window_causal();
    *see = sliding ? or_sliding(W) : or_causal();
    if (kind == W_SLIDING) *window = swa_window_sliding(W);
    if (kind == W_CHUNKED) {
        *window = swa_window_chunked(W);
        see->chunk = W;
    }
    if (kind == W_SINKS) {
        *window = swa_window_sinks(W, b);
        see->pinned = b;
    }
    if (kind == W_FLASH) {
        *window = swa_window_flash(W - 2, b - 1);
        see->left = W < 2 ? OR_FAR : W - 2;
        see->right = b < 1 ? OR_FAR : b - 1;
    }
    if (kind == W_SYMMETRIC) {
        *window = swa_window_symmetric(W);
        see->left = see->right = W;
    }
    if (kind == W_PREFIX) {
        *window = swa_window_prefix(W, 20 * b);
        see->span_hi = 20 * b;
    }
}
#endif /* SWA_FUZZ_WINDOW_H */
