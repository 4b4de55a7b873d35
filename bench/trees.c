/* A tree of drafts beside a chain of as many tokens: one layer's attention over a full window, for trees that begin at
   16 places within a block of 256 positions. Where history and nodes of that block are more than 256, it is gone
   through again.

   build/bench_trees [-q] [word]   -q: fewer samples, of two places; word: cases with it in the name. One core; times
   are of the thread's own CPU clock, medians of samples taken in turn. */
#define _GNU_SOURCE
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "common.h"

enum { PLACES = 16, MOST = 21, NODES = 64 };

typedef struct {
    const char *name;
    int heads, kv_heads, dim, tail, window, n;
    swa_type type;
} spec;

static const spec specs[] = {
    { "gqa-4096", 32, 8, 128, 0, 4096, 64, SWA_F16 },   { "gqa-4096", 32, 8, 128, 0, 4096, 64, SWA_F32 },
    { "gqa-4096", 32, 8, 128, 0, 4096, 16, SWA_F16 },   { "gqa-4096", 32, 8, 128, 0, 4096, 6, SWA_F16 },
    { "gqa-1024", 32, 8, 128, 0, 1024, 64, SWA_F16 },   { "gqa-128", 64, 8, 64, 0, 128, 64, SWA_F16 },
    { "mla-4096", 128, 1, 512, 64, 4096, 16, SWA_F16 },
};

static float *noise(size_t n) {
    float *x = (float *)big_alloc(n * sizeof *x);
    uint64_t seed = 1;
    for (size_t i = 0; i < n; i++) x[i] = rng_uniform(&seed);
    return x;
}

typedef struct {
    swa_cache cache;
    swa_attn a;
    void *scratch;
} side;

static void open_side(side *x, const spec *s, const swa_attn *a) {
    const swa_window window = swa_window_sliding(s->window);
    swa_cache_desc d;
    size_t bytes;
    memset(&d, 0, sizeof d);
    d.shape.n_heads = s->heads;
    d.shape.n_kv_heads = s->kv_heads;
    d.shape.head_dim = s->dim;
    d.shape.tail_dim = s->tail;
    d.shape.v_in_k = s->tail > 0;
    d.k_type = s->type;
    d.n_layers = 1;
    d.windows = &window;
    d.n_windows = 1;
    d.max_rollback = NODES;
    bytes = swa_cache_bytes(&d);
    must(swa_cache_init(&x->cache, &d, malloc(bytes), bytes), "init");
    bytes = swa_cache_scratch_bytes(&d, 1);
    x->scratch = malloc(bytes);
    must(swa_cache_set_scratch(&x->cache, x->scratch, bytes), "scratch");
    x->a = *a;
}
/* A window of rows before pos, and a step of n tokens at it. */
static void begin(side *x, const spec *s, int64_t pos, const int32_t *parents) {
    swa_run run;
    swa_attn a = x->a;
    memset(&run, 0, sizeof run);
    a.mode = SWA_STORE_ONLY;
    must(swa_cache_reset(&x->cache, 0, pos - s->window, 0), "reset");
    for (int64_t p = pos - s->window; p < pos; p += NODES) {
        must(swa_step_one(&x->cache, 0, p, NODES), "begin");
        must(swa_attend(&x->cache, 0, &a), "store");
    }
    run.pos = pos;
    run.n = s->n;
    run.parents = parents;
    must(swa_step_begin(&x->cache, &run, 1), "begin");
}
static double call(side *x) {
    const double began = cpu_now();
    must(swa_attend(&x->cache, 0, &x->a), "attend");
    return cpu_now() - began;
}
static void run(const spec *s, int samples, int places) {
    const size_t row = (size_t)((s->dim + s->tail) * s->heads);
    float *q = noise(NODES * row), *out = noise(NODES * row);
    double tree_ms = 0, chain_ms = 0, worst = 0;
    int32_t parents[NODES];
    side chain, tree;
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.mode = SWA_ATTEND_NO_STORE;
    a.q.p = a.k.p = a.v.p = q;
    a.out.p = out;
    if (s->tail) a.q_tail.p = a.k_tail.p = q + NODES * (size_t)(s->dim * s->heads);
    a.scale = 0.1f;
    for (int i = 0; i < s->n; i++) parents[i] = i < 4 ? -1 : (i - 4) / 2; /* four roots, two to each node */
    open_side(&chain, s, &a);
    open_side(&tree, s, &a);
    for (int place = 0; place < places; place++) {
        double t[2][MOST], x, y;
        begin(&chain, s, 8192 + place * 16 + 5, NULL);
        begin(&tree, s, 8192 + place * 16 + 5, parents);
        for (int i = -1; i < samples; i++) {
            x = call(&chain);
            y = call(&tree);
            if (i >= 0) t[0][i] = x, t[1][i] = y;
        }
        x = median(t[0], samples);
        y = median(t[1], samples);
        chain_ms += x / places * 1e3;
        tree_ms += y / places * 1e3;
        if (y / x > worst) worst = y / x;
    }
    printf("%-10s %-4s %3d nodes  chain %8.3f ms  tree %8.3f ms  tree/chain %5.2f  at the worst place %5.2f\n", s->name,
           s->type == SWA_F32 ? "f32" : "f16", s->n, chain_ms, tree_ms, tree_ms / chain_ms, worst);
    fflush(stdout);
    free(q);
    free(out);
    free(chain.cache.mem_);
    free(tree.cache.mem_);
    free(chain.scratch);
    free(tree.scratch);
}
int main(int argc, char **argv) {
    const char *word = "";
    int samples = 7, places = PLACES;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-q") == 0) samples = 1, places = 2;
        else word = argv[i];
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        if (strstr(specs[i].name, word)) run(&specs[i], samples, places);
    return 0;
}
