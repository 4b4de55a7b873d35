/* decode.c - eight sequences decode together, one token each per step; one leaves, another takes its place. The step is
   an array of runs, so a batch needs no padding and no mask. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"

enum { SLOTS = 8, HEADS = 4, KV_HEADS = 1, DIM = 16, WINDOW = 32, STEPS = 60 };

typedef struct {
    int64_t pos, end;
    uint32_t seed;
} request;

/* What stands for the projections of one token of a request. */
static void fill(float *row, int width, uint32_t seed, int64_t pos) {
    for (int d = 0; d < width; d++) row[d] = number(seed, (uint64_t)pos * 999 + (uint64_t)d);
}

int main(void) {
    swa_window window = swa_window_sliding(WINDOW);
    swa_cache_desc d = one_layer(HEADS, KV_HEADS, DIM, &window);
    request slot[SLOTS];
    float out[SLOTS * HEADS * DIM];
    uint32_t finished = 0, next = 0;
    cache c;
    d.n_seqs = SLOTS;
    d.k_type = SWA_Q8; /* int8 rows, a scale for each */
    c = new_cache(&d, 1);
    for (int i = 0; i < SLOTS; i++) {
        slot[i].pos = 0;
        slot[i].seed = next++;
        slot[i].end = 10 + 7 * i; /* answers of unequal length */
    }
    for (int step = 0; step < STEPS; step++) {
        swa_run runs[SLOTS];
        swa_attn a = { 0 };
        float q[SLOTS * HEADS * DIM], k[SLOTS * KV_HEADS * DIM], v[SLOTS * KV_HEADS * DIM];
        memset(runs, 0, sizeof runs);
        for (int i = 0; i < SLOTS; i++) {
            runs[i].seq = i;
            runs[i].n = 1;
            runs[i].pos = slot[i].pos;
            fill(q + i * HEADS * DIM, HEADS * DIM, slot[i].seed, slot[i].pos);
            fill(k + i * KV_HEADS * DIM, KV_HEADS * DIM, slot[i].seed + 50, slot[i].pos);
            fill(v + i * KV_HEADS * DIM, KV_HEADS * DIM, slot[i].seed + 90, slot[i].pos);
        }
        check(swa_step_begin(&c.kv, runs, SLOTS), "swa_step_begin");
        a.q.p = q;
        a.k.p = k;
        a.v.p = v;
        a.out.p = out;
        check(swa_attend(&c.kv, 0, &a), "swa_attend");
        for (int i = 0; i < SLOTS; i++)
            if (++slot[i].pos == slot[i].end) { /* done: the next request takes its ring, from position 0 */
                finished++;
                slot[i].pos = 0;
                slot[i].seed = next++;
                check(swa_cache_reset(&c.kv, i, 0, 0), "swa_cache_reset");
            }
    }
    printf("%d steps of %d sequences, %u requests finished, rows of the last step: %08lx\n", STEPS, SLOTS,
           (unsigned)finished, bits_of(out, SLOTS * HEADS * DIM));
    free_cache(&c);
    return 0;
}
