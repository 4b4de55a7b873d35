/* save.c - a conversation is put away in a blob and taken up again, in another sequence or after a restart: the next
   token has the same bits. A blob that was cut or altered is refused, and nothing has changed. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"

enum { WINDOW = 64, PROMPT = 150, HEADS = 4, KV_HEADS = 2, DIM = 16, ROW = HEADS * DIM };

int main(void) {
    swa_window window = swa_window_sliding(WINDOW);
    swa_cache_desc d = one_layer(HEADS, KV_HEADS, DIM, &window);
    float *out = (float *)room(PROMPT * ROW * sizeof *out), straight[ROW], again[ROW];
    unsigned char *blob;
    size_t bytes;
    cache before, after;
    d.k_type = SWA_BF16;
    before = new_cache(&d, 1);
    check(swa_step_one(&before.kv, 0, 0, PROMPT), "swa_step_one");
    check(attend_at(&before.kv, &d.shape, 0, 1, 0, PROMPT, out), "swa_attend");
    bytes = swa_cache_save_bytes(&before.kv, 0);
    blob = (unsigned char *)room(bytes);
    check(swa_cache_save(&before.kv, 0, blob, bytes), "swa_cache_save");
    printf("%d tokens, of which the ring keeps %d: a blob of %lu bytes\n", PROMPT, WINDOW, (unsigned long)bytes);

    d.n_seqs = 2; /* another process, with room for two */
    after = new_cache(&d, 1);
    blob[bytes / 2] ^= 1;
    printf("one bit altered: %s\n", swa_status_str(swa_cache_load(&after.kv, 1, blob, bytes)));
    blob[bytes / 2] ^= 1;
    printf("cut short:       %s\n", swa_status_str(swa_cache_load(&after.kv, 1, blob, bytes - 9)));
    check(swa_cache_load(&after.kv, 1, blob, bytes), "swa_cache_load");

    check(swa_step_one(&before.kv, 0, PROMPT, 1), "swa_step_one");
    check(attend_at(&before.kv, &d.shape, 0, 1, PROMPT, 1, straight), "swa_attend");
    check(swa_step_one(&after.kv, 1, PROMPT, 1), "swa_step_one");
    check(attend_at(&after.kv, &d.shape, 0, 1, PROMPT, 1, again), "swa_attend");
    printf("the next token:  %s\n", memcmp(straight, again, sizeof again) == 0 ? "the same bits" : "OTHER BITS");
    free_cache(&before);
    free_cache(&after);
    free(out);
    free(blob);
    return 0;
}
