/* count.c - instructions of whole calls, counted by an emulator: for CPUs that are not at hand. Two programs in one
   file: with -DCOUNT_PLUGIN a plugin of qemu's (7 or later), else the calls. bench/count.sh builds and runs both. */
#ifdef COUNT_PLUGIN
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* What is used of qemu-plugin.h, which no package has. */
#define EXPORT __attribute__((visibility("default")))
struct qemu_plugin_tb;
typedef void on_block(uint64_t id, struct qemu_plugin_tb *block);
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, on_block *f);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int op, void *to, uint64_t add);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
extern void qemu_plugin_register_atexit_cb(uint64_t id, void (*f)(uint64_t id, void *arg), void *arg);
EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

static uint64_t executed;
static void translated(uint64_t id, struct qemu_plugin_tb *block) {
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &executed, qemu_plugin_tb_n_insns(block));
}
static void at_end(uint64_t id, void *arg) {
    (void)id;
    (void)arg;
    fprintf(stderr, "%" PRIu64 "\n", executed);
}
int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, at_end, NULL);
    return 0;
}
#else
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One layer, one KV head, so that the emulator is done in seconds. n tokens from `pos` on, the window before them. */
typedef struct {
    const char *name;
    int n, window, pos, heads, dim, tail;
    swa_type type;
} work;
static const work works[] = {
    { "prefill of 512, causal, f32", 512, 0, 0, 4, 128, 0, SWA_F32 },
    { "prefill of 1024, W=256, f32", 1024, 256, 0, 4, 128, 0, SWA_F32 },
    { "prefill of 1024, W=128, head_dim 64, group 8, f32", 1024, 128, 0, 8, 64, 0, SWA_F32 },
    { "prefill of 512, causal, f16", 512, 0, 0, 4, 128, 0, SWA_F16 },
    { "decode W=4096, group 4, f32", 1, 4096, 4096, 4, 128, 0, SWA_F32 },
    { "decode W=4096, group 4, f16", 1, 4096, 4096, 4, 128, 0, SWA_F16 },
    { "decode W=4096, group 4, bf16", 1, 4096, 4096, 4, 128, 0, SWA_BF16 },
    { "decode W=4096, group 4, q8", 1, 4096, 4096, 4, 128, 0, SWA_Q8 },
    { "decode W=4096, group 2, f16", 1, 4096, 4096, 2, 128, 0, SWA_F16 },
    { "decode W=4096, group 1, f32", 1, 4096, 4096, 1, 128, 0, SWA_F32 },
    { "decode W=4096, group 1, f16", 1, 4096, 4096, 1, 128, 0, SWA_F16 },
    { "decode W=4096, group 8, f16", 1, 4096, 4096, 8, 128, 0, SWA_F16 },
    { "MLA, 128 heads over 1024 latents, f32", 1, 1024, 1024, 128, 512, 64, SWA_F32 },
    { "MLA, 16 heads over 1024 latents, f32", 1, 1024, 1024, 16, 512, 64, SWA_F32 },
};

static float *numbers(size_t n) {
    float *x = (float *)malloc(n * sizeof *x);
    uint32_t seed = 1;
    if (x == NULL) exit(2);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int)(seed >> 8 & 0xffff) / 32768.0f - 1.0f;
    }
    return x;
}

/* argv: which of the works (none: their names), how often. Prints the FMAs of one call, in vectors of four. */
int main(int argc, char **argv) {
    const int which = argc > 1 ? atoi(argv[1]) : -1, times = argc > 2 ? atoi(argv[2]) : 1;
    swa_cache_desc d = { 0 };
    swa_cache cache;
    swa_attn a = { 0 };
    swa_window window;
    double pairs = 0;
    size_t bytes, room;
    char *mem;
    if (which < 0 || which >= (int)(sizeof works / sizeof *works)) {
        for (size_t i = 0; i < sizeof works / sizeof *works; i++) puts(works[i].name);
        return 0;
    }
    const work *w = &works[which];
    window = w->window ? swa_window_sliding(w->window) : swa_window_causal();
    d.shape.n_heads = w->heads;
    d.shape.n_kv_heads = 1;
    d.shape.head_dim = d.shape.v_dim = w->dim;
    d.shape.tail_dim = w->tail;
    d.shape.v_in_k = w->tail > 0;
    d.n_layers = 1;
    d.k_type = d.v_type = d.tail_type = w->type;
    d.windows = &window;
    d.n_windows = 1;
    if (!w->window) d.max_context = w->n;
    bytes = swa_cache_bytes(&d);
    room = swa_cache_scratch_bytes(&d, 1);
    mem = (char *)malloc(bytes + room + 1);
    if (!mem || swa_cache_init(&cache, &d, mem, bytes) != SWA_OK) return 1;
    if (swa_cache_set_scratch(&cache, mem + bytes, room) != SWA_OK) return 1;
    a.k.p = numbers((size_t)(w->n > w->pos ? w->n : w->pos) * (size_t)(w->dim + w->tail));
    a.v.p = w->tail ? NULL : a.k.p;
    a.q.p = numbers((size_t)w->n * (size_t)(w->heads * (w->dim + w->tail)));
    a.out.p = numbers((size_t)w->n * (size_t)(w->heads * w->dim));
    if (w->tail) {
        a.scale = 0.07f;
        a.k.head = a.k_tail.head = a.k.token = a.k_tail.token = w->dim + w->tail;
        a.k_tail.p = a.k.p + w->dim;
        a.q.head = a.q_tail.head = w->dim + w->tail;
        a.q.token = a.q_tail.token = (int64_t)w->heads * (w->dim + w->tail);
        a.q_tail.p = a.q.p + w->dim;
    }
    if (w->pos > 0) {
        a.mode = SWA_STORE_ONLY;
        if (swa_step_one(&cache, 0, 0, w->pos) != SWA_OK || swa_attend(&cache, 0, &a) != SWA_OK) return 1;
    }
    a.mode = SWA_ATTEND_NO_STORE;
    for (int i = 0; i < times; i++)
        if (swa_step_one(&cache, 0, w->pos, w->n) != SWA_OK || swa_attend(&cache, 0, &a) != SWA_OK) return 1;
    for (int t = 0; t < w->n; t++) pairs += w->window && w->pos + t + 1 > w->window ? w->window : w->pos + t + 1;
    printf("%.0f\n", pairs * w->heads * (2 * w->dim + w->tail) / 4);
    return 0;
}
#endif
