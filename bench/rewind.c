/* rewind.c - what it costs to take tokens back: a ring with max_rollback, which truncates, beside checkpoints of the
   whole window, which are saved and loaded. The sliding layers of Gemma 4 26B: 25 of them, W = 1024, 8 KV heads of 256,
   f16. `make bench-rewind` runs it. */
#define _GNU_SOURCE
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "common.h"

enum { LAYERS = 25, WINDOW = 1024, KV_HEADS = 8, DIM = 256, DRAFT = 16, RUNS = 7 };

static swa_cache cache_of(int64_t rollback, size_t *bytes) {
    swa_window window = swa_window_sliding(WINDOW);
    swa_cache_desc d = { 0 };
    swa_cache kv;
    size_t scratch;
    d.shape.n_heads = 16;
    d.shape.n_kv_heads = KV_HEADS;
    d.shape.head_dim = DIM;
    d.n_layers = LAYERS;
    d.windows = &window;
    d.n_windows = 1;
    d.k_type = SWA_F16;
    d.max_rollback = rollback;
    *bytes = swa_cache_bytes(&d);
    scratch = swa_cache_scratch_bytes(&d, 1);
    must(swa_cache_init(&kv, &d, big_alloc(*bytes), *bytes), "init");
    must(swa_cache_set_scratch(&kv, big_alloc(scratch), scratch), "scratch");
    return kv;
}

/* n tokens of arbitrary rows at the end of the sequence. */
static void put(swa_cache *kv, int32_t n) {
    static float row[WINDOW * KV_HEADS * DIM];
    swa_attn a = { 0 };
    a.mode = SWA_STORE_ONLY;
    a.k.p = a.v.p = row;
    must(swa_step_one(kv, 0, swa_cache_end(kv, 0), n), "step");
    for (int l = 0; l < LAYERS; l++) must(swa_attend(kv, l, &a), "store");
}

static double least(const double *x) {
    double m = x[0];
    for (int i = 1; i < RUNS; i++)
        if (x[i] < m) m = x[i];
    return m;
}

int main(void) {
    size_t plain, spare, blob_bytes;
    swa_cache ring = cache_of(DRAFT, &spare), other = cache_of(0, &plain);
    double save[RUNS], load[RUNS], copy[RUNS], cut[RUNS];
    char *blob, *twin;
    put(&ring, WINDOW);
    put(&ring, 100);
    put(&other, WINDOW);
    put(&other, 100);
    blob_bytes = swa_cache_save_bytes(&other, 0);
    blob = (char *)big_alloc(blob_bytes);
    twin = (char *)big_alloc(blob_bytes);
    memset(twin, 1, blob_bytes);
    for (int i = 0; i < RUNS; i++) {
        double start = now();
        must(swa_cache_save(&other, 0, blob, blob_bytes), "save");
        save[i] = now() - start;
        start = now();
        memcpy(twin, blob, blob_bytes);
        copy[i] = now() - start;
        put(&other, DRAFT);
        start = now();
        must(swa_cache_load(&other, 0, blob, blob_bytes), "load");
        load[i] = now() - start;
        put(&ring, DRAFT);
        start = now();
        must(swa_cache_truncate(&ring, 0, swa_cache_end(&ring, 0) - DRAFT), "truncate");
        cut[i] = now() - start;
    }
    printf("a draft of %d tokens taken back, %d layers of W = %d, %d KV heads of %d, f16; the fastest of %d\n", DRAFT,
           LAYERS, WINDOW, KV_HEADS, DIM, RUNS);
    printf("checkpoint: %8.1f MB each; copied in %.1f ms, as a blob with a checksum saved in %.1f, loaded in %.1f ms\n",
           (double)blob_bytes / 1e6, least(copy) * 1e3, least(save) * 1e3, least(load) * 1e3);
    printf("ring:       %8.1f MB more, once; taken back in %.5f ms\n", (double)(spare - plain) / 1e6, least(cut) * 1e3);
    return twin[blob_bytes / 2] == blob[blob_bytes / 2] ? 0 : 1;
}
