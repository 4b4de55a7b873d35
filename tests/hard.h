/* hard.h - a*b + c on numbers chosen for trouble: sums on and beside midpoints of two floats, cancellation, subnormal
   products and results. A sequence of its own, the same everywhere. */
#ifndef SWA_TEST_HARD_H
#define SWA_TEST_HARD_H
#include <stdint.h>
#include <string.h>

typedef struct {
    uint64_t state; /* 1 before the first */
    int i;
} t_hard;

static inline uint32_t hard_noise(t_hard *h) {
    h->state = h->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(h->state >> 32);
}
static inline uint32_t hard_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}
static inline float hard_float(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}
static inline int hard_finite(float x) { return (hard_bits(x) >> 23 & 255) != 255; }

/* Kind 0: any finite number; 1: near 1; 2: the smallest; 3: few bits, so that sums are midpoints; 4: all ones. */
static inline float hard_number(t_hard *h, int kind) {
    uint32_t u = hard_noise(h);
    if (kind == 1) u = (u & 0x807fffffu) | (100 + hard_noise(h) % 50) << 23;
    if (kind == 2) u = (u & 0x807fffffu) | hard_noise(h) % 70 << 23;
    if (kind == 3) u = (u & 0x807ff000u) | (120 + hard_noise(h) % 16) << 23;
    if (kind == 4) {
        const uint32_t exponent = hard_noise(h) % 140 << 23;
        u = (u & 0x80000000u) | exponent | (hard_noise(h) & 1 ? 0x7fffffu : hard_noise(h) % 8);
    }
    return hard_float((u >> 23 & 255) == 255 ? u ^ 1u << 30 : u);
}

/* The next a, b, c in x. */
static inline void hard_next(t_hard *h, float x[3]) {
    const int i = h->i++;
    float p;
    x[0] = hard_number(h, i % 5);
    x[1] = hard_number(h, i % 7 ? i % 5 : 0);
    x[2] = hard_number(h, i % 5);
    p = x[0] * x[1];
    if (i % 3 == 0 && hard_finite(p)) x[2] = i & 1 ? -p : p * (i & 2 ? 8388608.0f : 25165824.0f);
    if (i % 11 == 0) { /* a product near a subnormal's last bit */
        x[0] = hard_float((hard_bits(x[0]) & 0x807fffffu) | (20 + hard_noise(h) % 30) << 23);
        x[1] = hard_float((hard_bits(x[1]) & 0x807fffffu) | (20 + hard_noise(h) % 60) << 23);
        x[2] = hard_float(hard_noise(h) & 0x80ffffffu);
    }
    if (i % 13 == 0) { /* just above or below the midpoint beside a subnormal, or beside the first that is none */
        const uint32_t low = hard_noise(h) % 8 + 1;
        x[0] = hard_float((127u - 75) << 23 | low) * (hard_noise(h) & 1 ? 1.0f : -1.0f);
        x[1] = hard_float(((127u - 75) << 23) - 2 * low);
        x[2] = hard_float((hard_noise(h) & 0x80000000u) | (0x00800000u - hard_noise(h) % 3));
    }
    if (!hard_finite(x[2])) x[2] = 1.0f;
}

#endif
