/* rows.c - attention over K and V that your engine keeps itself: pages of 16 rows in any order in memory, each with the
   position of its first row. No ring, no copy; the bits are those of the ring. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"

enum { HEADS = 4, KV_HEADS = 2, DIM = 32, TOKENS = 200, PAGE = 16, PAGES = (TOKENS + PAGE - 1) / PAGE, WINDOW = 70 };

int main(void) {
    float *q = rows_at(5, 0, TOKENS, HEADS * DIM), *k = rows_at(6, 0, TOKENS, KV_HEADS * DIM);
    float *v = rows_at(7, 0, TOKENS, KV_HEADS * DIM);
    float *pool_k = (float *)room(PAGES * PAGE * KV_HEADS * DIM * sizeof(float));
    float *pool_v = (float *)room(PAGES * PAGE * KV_HEADS * DIM * sizeof(float));
    float ring[HEADS * DIM], paged[HEADS * DIM];
    swa_window window = swa_window_sliding(WINDOW);
    swa_kv page[PAGES];
    swa_rows rows = { 0 };
    swa_attn a = { 0 };
    swa_cache_desc d = { 0 };
    cache c;
    float *out;

    /* Your pages: page i lies where i * 5 mod PAGES says. */
    memset(page, 0, sizeof page);
    for (int i = 0; i < PAGES; i++) {
        size_t at = (size_t)(i * 5 % PAGES) * PAGE * KV_HEADS * DIM, from = (size_t)i * PAGE * KV_HEADS * DIM;
        page[i].pos = i * PAGE;
        page[i].n = TOKENS - i * PAGE < PAGE ? TOKENS - i * PAGE : PAGE;
        memcpy(pool_k + at, k + from, (size_t)page[i].n * KV_HEADS * DIM * sizeof(float));
        memcpy(pool_v + at, v + from, (size_t)page[i].n * KV_HEADS * DIM * sizeof(float));
        page[i].k = pool_k + at; /* [n][KV_HEADS][DIM], strides 0 = packed */
        page[i].v = pool_v + at;
    }
    rows.shape.n_heads = HEADS;
    rows.shape.n_kv_heads = KV_HEADS;
    rows.shape.head_dim = DIM;
    rows.window = window;
    rows.pos = TOKENS - 1; /* one query, the last token */
    rows.n_tokens = 1;
    rows.kv = page;
    rows.n_kv = PAGES;
    rows.audit = 1; /* while you port: a pos that no page holds is refused */
    rows.scratch_bytes = swa_attention_bytes(&rows, 1);
    rows.scratch = room(rows.scratch_bytes);
    a.q.p = q + (TOKENS - 1) * HEADS * DIM;
    a.out.p = paged;
    check(swa_attention(&rows, &a), "swa_attention");

    d.shape = rows.shape;
    d.n_layers = 1;
    d.windows = &window;
    d.n_windows = 1;
    c = new_cache(&d, 1);
    out = (float *)room(TOKENS * HEADS * DIM * sizeof *out);
    check(swa_step_one(&c.kv, 0, 0, TOKENS), "swa_step_one");
    a.q.p = q;
    a.k.p = k;
    a.v.p = v;
    a.out.p = out;
    check(swa_attend(&c.kv, 0, &a), "swa_attend");
    memcpy(ring, out + (TOKENS - 1) * HEADS * DIM, sizeof ring);
    printf("the last token sees %d of %d pages; %s\n", (TOKENS - 1) / PAGE - (TOKENS - WINDOW) / PAGE + 1, PAGES,
           memcmp(ring, paged, sizeof ring) == 0 ? "the same bits as the ring" : "OTHER BITS than the ring");
    free_cache(&c);
    free(rows.scratch);
    free(q);
    free(k);
    free(v);
    free(pool_k);
    free(pool_v);
    free(out);
    return 0;
}
