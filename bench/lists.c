/* Lists of keys beside the two other ways to attend to as many: one decode step (or a chunk) whose token sees

       list    2048 keys of a long context, by swa_attn's pick: single latents (DeepSeek's DSA), or 16 blocks of 128
               (MiniMax's MSA), another list every call
       dense   the 2048 latest keys, without a list, in a ring of that window, another layer every call
       mask    the list's keys again, by a bias of -1e30 on all others: what a kernel without lists does

   build/bench_lists [-q] [word]   -q: small contexts, seconds; word: cases with it in the name. One core; times are of
   the thread's own CPU clock, medians of samples taken in turn. */
#define _GNU_SOURCE
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "common.h"

enum { SAMPLES = 41, LISTS = 32, LAYERS = 24, STORED = 512 /* tokens a call, at most */ };

typedef struct {
    const char *name;
    int heads, kv_heads, dim, tail, block, keys, n; /* n: tokens of a call, each with a list of its own */
    swa_type type;
    int64_t context;
} spec;

static const spec specs[] = {
    { "dsa-decode", 128, 1, 512, 64, 1, 2048, 1, SWA_F32, 131072 },
    { "dsa-decode", 128, 1, 512, 64, 1, 2048, 1, SWA_BF16, 131072 },
    { "dsa-decode", 128, 1, 512, 64, 1, 2048, 1, SWA_BF16, 32768 },
    { "dsa-decode-h64", 64, 1, 512, 64, 1, 2048, 1, SWA_BF16, 131072 },
    { "dsa-prefill-8", 128, 1, 512, 64, 1, 2048, 8, SWA_BF16, 131072 },
    { "msa-decode", 64, 4, 128, 0, 128, 2048, 1, SWA_F16, 131072 },
    { "msa-decode", 64, 4, 128, 0, 128, 2048, 1, SWA_F32, 65536 },
    { "qsa-decode", 24, 2, 256, 0, 4, 2048, 1, SWA_F16, 131072 },
    { "gqa-decode", 32, 8, 128, 0, 16, 2048, 1, SWA_F16, 65536 },
    { "gqa-keys", 32, 8, 128, 0, 1, 2048, 1, SWA_F16, 65536 },
};

typedef struct {
    spec s;
    swa_cache cache;
    swa_window window;
    int layers;
    float *q, *k, *out;
} side;

static swa_attn attn_of(const side *x, swa_mode mode) {
    const spec *s = &x->s;
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.mode = mode;
    a.q.p = x->q;
    a.k.p = x->k;
    a.v.p = x->k;
    a.out.p = x->out;
    if (s->tail) {
        a.q_tail.p = x->q + (size_t)(STORED * s->heads) * (size_t)s->dim;
        a.k_tail.p = x->k + (size_t)(STORED * s->kv_heads) * (size_t)s->dim;
    }
    a.scale = 1.0f / sqrtf((float)(s->tail ? 192 : s->dim));
    return a;
}
/* window 0: causal, one layer, K by rows where single keys are listed. */
static void open_side(side *x, const spec *s, int64_t window) {
    swa_cache_desc d;
    const int rows = !window && s->block < 16;
    const size_t most = STORED * (size_t)((s->dim + s->tail) * s->heads) + 256;
    uint64_t seed = 1;
    size_t bytes;
    memset(&d, 0, sizeof d);
    x->s = *s;
    x->window = window ? swa_window_sliding(window) : swa_window_causal();
    x->layers = window ? LAYERS : 1;
    d.shape.n_heads = s->heads;
    d.shape.n_kv_heads = s->kv_heads;
    d.shape.head_dim = s->dim;
    d.shape.tail_dim = s->tail;
    d.shape.v_in_k = s->tail > 0;
    d.k_type = s->type;
    d.n_layers = x->layers;
    d.windows = &x->window;
    d.n_windows = 1;
    d.k_rows = &rows;
    d.n_k_rows = 1;
    d.max_context = s->context + s->n;
    d.max_rollback = s->n;
    bytes = swa_cache_bytes(&d);
    must(swa_cache_init(&x->cache, &d, memset(big_alloc(bytes), 0, bytes), bytes), "init");
    bytes = swa_cache_scratch_bytes(&d, 1);
    must(swa_cache_set_scratch(&x->cache, big_alloc(bytes), bytes), "scratch");
    x->q = (float *)big_alloc(most * sizeof(float));
    x->k = (float *)big_alloc(most * sizeof(float));
    x->out = (float *)big_alloc(most * sizeof(float));
    for (size_t i = 0; i < most; i++) {
        x->q[i] = rng_uniform(&seed);
        x->k[i] = rng_uniform(&seed);
    }
    for (int64_t p = window ? s->context - window : 0; p < s->context; p += STORED) {
        const int32_t n = (int32_t)(s->context - p < STORED ? s->context - p : STORED);
        if (window && p == s->context - window) must(swa_cache_reset(&x->cache, 0, p, 0), "reset");
        must(swa_step_one(&x->cache, 0, p, n), "begin");
        for (int l = 0; l < x->layers; l++) {
            swa_attn a = attn_of(x, SWA_STORE_ONLY);
            must(swa_attend(&x->cache, l, &a), "store");
        }
    }
    must(swa_step_one(&x->cache, 0, s->context, s->n), "begin");
}
static int32_t *lists_of(const spec *s) {
    const int per = s->keys / s->block, all = LISTS * s->n * s->kv_heads;
    int32_t *pick = (int32_t *)big_alloc((size_t)(all * per) * sizeof *pick);
    unsigned char *taken = (unsigned char *)big_alloc((size_t)(s->context / s->block));
    uint64_t seed = 7;
    for (int i = 0; i < all; i++) {
        memset(taken, 0, (size_t)(s->context / s->block));
        for (int j = 0; j < per; j++) {
            int64_t e;
            do e = (int64_t)((double)(rng_uniform(&seed) + 1.0f) * 0.5 * (double)(s->context / s->block));
            while (e < 0 || e >= s->context / s->block || taken[e]);
            taken[e] = 1;
            pick[i * per + j] = (int32_t)e;
        }
    }
    free(taken);
    return pick;
}
static double call(side *x, swa_attn *a, int layer) {
    const double began = cpu_now();
    must(swa_attend(&x->cache, layer, a), "attend");
    return cpu_now() - began;
}
static void run(const spec *s) {
    const int per = s->keys / s->block;
    side list, dense;
    swa_attn masked;
    double t[3][SAMPLES], med[3], ratio[SAMPLES];
    int32_t *pick = lists_of(s);
    float *bias = (float *)big_alloc((size_t)s->context * sizeof *bias);
    open_side(&list, s, 0);
    open_side(&dense, s, s->keys);
    for (int i = -2; i < SAMPLES; i++) {
        swa_attn a = attn_of(&list, SWA_ATTEND_NO_STORE), b = attn_of(&dense, SWA_ATTEND_NO_STORE);
        double x, y;
        a.pick = pick + (size_t)((i + 2) % LISTS) * (size_t)(s->n * s->kv_heads * per);
        a.pick_n = per;
        a.pick_head = per;
        a.pick_token = (int64_t)per * s->kv_heads;
        a.pick_block = s->block;
        y = call(&dense, &b, (i + 2) % LAYERS);
        x = call(&list, &a, 0);
        if (i < 0) continue;
        t[0][i] = x;
        t[1][i] = y;
        ratio[i] = x / y;
    }
    for (int64_t i = 0; i < s->context; i++) bias[i] = -1e30f;
    for (int j = 0; j < per; j++)
        for (int i = 0; i < s->block; i++) bias[(int64_t)pick[j] * s->block + i] = 0.0f;
    masked = attn_of(&list, SWA_ATTEND_NO_STORE);
    masked.bias = bias;
    masked.bias_n = s->context;
    t[2][0] = call(&list, &masked, 0);
    for (int i = 0; i < 2; i++) med[i] = median(t[i], SAMPLES);
    printf("%-16s %-5s %7lld keys  list %8.3f ms  dense %8.3f ms  list/dense %5.2f (least %5.2f)  mask/list %6.1f\n",
           s->name,
           s->type == SWA_F32   ? "f32"
           : s->type == SWA_F16 ? "f16"
                                : "bf16",
           (long long)s->context, med[0] * 1e3, med[1] * 1e3, median(ratio, SAMPLES), t[0][0] / t[1][0],
           t[2][0] / med[0]);
    fflush(stdout);
    free(pick);
    free(bias);
    free(list.cache.mem_);
    free(dense.cache.mem_);
    free(list.q);
    free(list.k);
    free(list.out);
    free(dense.q);
    free(dense.k);
    free(dense.out);
}
int main(int argc, char **argv) {
    const char *word = "";
    int quick = 0;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-q") == 0) quick = 1;
        else word = argv[i];
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        spec s = specs[i];
        if (!strstr(s.name, word)) continue;
        if (quick && s.context > 16384) s.context = 16384;
        run(&s);
    }
    return 0;
}
