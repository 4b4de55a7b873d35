/* side.h - one case as plain numbers, and how it is run: what bench.c and a side (side.c, compiled beside another
   commit's swa.h) agree on. Their structs and enums need not be the same. */
#ifndef BENCH_SIDE_H
#define BENCH_SIDE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int type, compute; /* 0..3: f32, f16, bf16, q8; compute 4: the order of tiles */
    int form, n, steps, heads, kv_heads, dim, tail, flags, repeat, top, threads;
    const char *isa; /* as swa_isa_name calls it */
    int64_t window, start, capacity;
    size_t cold;
} side_case;

typedef struct {
    int (*open)(const side_case *c); /* 0: this library does not know such a case */
    double (*sample)(double *lost);  /* as work_sample; on threads of its own, gone when it returns */
} side;

#endif
