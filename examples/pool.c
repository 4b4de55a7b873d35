/* pool.c - your own threads: every worker calls swa_attend_part for phase 0, all join, then for phase 1, all join. The
   bits do not depend on how many there are. */
#define _POSIX_C_SOURCE 200809L
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"
#include <pthread.h>

enum { HEADS = 8, KV_HEADS = 2, DIM = 32, WINDOW = 300, MOST = 5, PROMPT = 400, TOKENS = 420 };

typedef struct {
    swa_cache *kv;
    const swa_attn *attn;
    int phase, part, parts;
    swa_status status;
} job;

static void *worker(void *arg) {
    job *j = (job *)arg;
    j->status = swa_attend_part(j->kv, 0, j->attn, j->phase, j->part, j->parts);
    return NULL;
}

/* A pool that starts its threads anew each time, for brevity; yours keeps them. */
static void run(swa_cache *kv, const swa_attn *attn, int parts) {
    for (int phase = 0; phase < SWA_PHASES; phase++) {
        pthread_t thread[MOST];
        job jobs[MOST];
        for (int i = 0; i < parts; i++) {
            jobs[i].kv = kv;
            jobs[i].attn = attn;
            jobs[i].phase = phase;
            jobs[i].part = i;
            jobs[i].parts = parts;
            if (pthread_create(&thread[i], NULL, worker, &jobs[i]) != 0) exit(1);
        }
        for (int i = 0; i < parts; i++) pthread_join(thread[i], NULL); /* the join between the phases */
        for (int i = 0; i < parts; i++) check(jobs[i].status, "swa_attend_part");
    }
}

static unsigned long text(int parts) {
    swa_window window = swa_window_sliding(WINDOW);
    swa_cache_desc d = one_layer(HEADS, KV_HEADS, DIM, &window);
    float *q = rows_at(1, 0, TOKENS, HEADS * DIM), *k = rows_at(2, 0, TOKENS, KV_HEADS * DIM);
    float *v = rows_at(3, 0, TOKENS, KV_HEADS * DIM), *out = (float *)room(TOKENS * HEADS * DIM * sizeof *out);
    unsigned long bits;
    int64_t pos = 0;
    cache c;
    c = new_cache(&d, parts); /* scratch for as many parts as run at once */
    while (pos < TOKENS) {
        int32_t n = pos == 0 ? PROMPT : 1;
        swa_attn a = { 0 };
        check(swa_step_one(&c.kv, 0, pos, n), "swa_step_one");
        a.q.p = q + pos * HEADS * DIM;
        a.k.p = k + pos * KV_HEADS * DIM;
        a.v.p = v + pos * KV_HEADS * DIM;
        a.out.p = out + pos * HEADS * DIM;
        run(&c.kv, &a, parts);
        pos += n;
    }
    bits = bits_of(out, TOKENS * HEADS * DIM);
    free_cache(&c);
    free(q);
    free(k);
    free(v);
    free(out);
    return bits;
}

int main(void) {
    unsigned long one = text(1);
    for (int parts = 1; parts <= MOST; parts++)
        printf("%d thread%s: %s\n", parts, parts > 1 ? "s" : "", text(parts) == one ? "the same bits" : "OTHER BITS");
    return 0;
}
