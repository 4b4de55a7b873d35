/* side.c - the cases of bench.c by another commit's library, as a shared object. beside.py copies this file and side.h
   into bench/ of a copy of that commit, whose work.h calls its swa.h as the API was then, and says how much of today's
   cases is known there: SIDE_FLAGS, SIDE_COMPUTE. */
#define _GNU_SOURCE
#define SWA_IMPLEMENTATION
#define SWA_STATIC
#include "../swa.h"
#include "common.h"
#include "work.h"
#include "side.h"

static work side_work;

static int side_open(const side_case *c) {
    static const swa_type types[] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8 };
    spec s = { .name = "side" };
    int isa = 1;
    while (isa < 16 && strcmp(swa_isa_name(isa), c->isa) != 0) isa++;
    if (isa == 16 || c->flags > SIDE_FLAGS || c->compute > SIDE_COMPUTE) return 0;
    s.form = c->form;
    s.n = c->n;
    s.steps = c->steps;
    s.window = c->window;
    s.start = c->start;
    s.heads = c->heads;
    s.kv_heads = c->kv_heads;
    s.dim = c->dim;
    s.tail = c->tail;
    s.isa = isa;
    s.capacity = c->capacity;
    s.flags = c->flags;
    s.repeat = c->repeat;
#if SIDE_FLAGS >= 4
    s.top = c->top;
#endif
    if (c->compute > 0 && c->compute < 4) s.compute = types[c->compute];
#if SIDE_COMPUTE >= 4
    if (c->compute == 4) s.compute = SWA_BF16_TILE;
#endif
    free(side_work.kv);
    work_setup(&side_work, &s, types[c->type], isa, c->threads, c->cold, BUF_CACHE);
    return side_work.failed == NULL;
}

static double side_sample(double *lost) {
    pool p;
    double t;
    pool_start(&p, side_work.parts);
    side_work.p = &p;
    t = work_sample(&side_work, lost);
    pool_stop(&p);
    return side_work.failed ? 0 : t;
}

const side bench_side = { side_open, side_sample };
