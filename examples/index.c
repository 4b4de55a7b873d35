/* index.c - an indexer beside a sparse layer, as DeepSeek-V3.2 has it: small index keys in a layer of the same cache,
   scores of all visible keys, the best of them as a list of positions, and attention over the keys on the list alone.
   List and output are the same however the text came in, and a rewind takes index keys back with everything else. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"

enum { HEADS = 8, DIM = 32, INDEX_HEADS = 16, INDEX_DIM = 16, TOKENS = 400, TOP = 12, MAIN = 0, INDEX = 1 };

/* Room for the indexer's calls as well: the larger of the two is needed, not both. */
static cache open_cache(const swa_cache_desc *d, const swa_index *ix) {
    cache c = new_cache(d, 1);
    size_t room_of_one = swa_cache_scratch_bytes(d, 1), bytes = swa_select_bytes(&d->shapes[INDEX], ix, 1);
    if (bytes < room_of_one) bytes = room_of_one;
    free(c.scratch);
    c.scratch = room(bytes);
    check(swa_cache_set_scratch(&c.kv, c.scratch, bytes), "swa_cache_set_scratch");
    return c;
}
/* n tokens from pos on: the index layer stores its keys and picks, the main layer attends to what was picked. The list
   of the last token goes to pick [TOP]; returns the bits of its output. */
static unsigned long step(swa_cache *kv, int64_t pos, int32_t n, uint32_t text, int32_t *pick) {
    float *out = (float *)room((size_t)n * HEADS * DIM * sizeof *out), *mq = rows_at(text, pos, n, HEADS * DIM);
    float *mk = rows_at(text + 5, pos, n, DIM), *mv = rows_at(text + 6, pos, n, DIM);
    float *q = rows_at(text + 2, pos, n, INDEX_HEADS * INDEX_DIM), *k = rows_at(text + 3, pos, n, INDEX_DIM);
    float *w = rows_at(text + 4, pos, n, INDEX_HEADS); /* from the hidden state; scales are multiplied in */
    int32_t *lists = (int32_t *)room((size_t)n * TOP * sizeof *lists);
    unsigned long bits;
    swa_attn store = { 0 }, sparse = { 0 };
    swa_index ix = { 0 };
    check(swa_step_one(kv, 0, pos, n), "swa_step_one");
    store.mode = SWA_STORE_ONLY;
    store.k.p = k;
    check(swa_attend(kv, INDEX, &store), "swa_attend, index keys");
    ix.q.p = q;
    ix.w = w;
    ix.top = TOP;
    ix.pick = lists;
    check(swa_select(kv, INDEX, &ix), "swa_select");
    sparse.q.p = mq;
    sparse.k.p = mk;
    sparse.v.p = mv;
    sparse.out.p = out;
    sparse.pick = lists; /* [n][TOP], for all heads; -1 where a token has fewer keys */
    sparse.pick_token = sparse.pick_n = TOP;
    check(swa_attend(kv, MAIN, &sparse), "swa_attend, over the list");
    memcpy(pick, lists + (n - 1) * TOP, TOP * sizeof *pick);
    bits = bits_of(out + (size_t)(n - 1) * HEADS * DIM, HEADS * DIM);
    free(out);
    free(mq);
    free(mk);
    free(mv);
    free(q);
    free(k);
    free(w);
    free(lists);
    return bits;
}
static void show(const char *what, const int32_t *pick) {
    printf("%-28s", what);
    for (int i = 0; i < TOP; i++) printf(" %3d", (int)pick[i]);
    printf("\n");
}

int main(void) {
    int32_t whole[TOP], chunks[TOP], other[TOP], again[TOP];
    unsigned long bits[3] = { 0, 0, 0 };
    swa_shape shapes[2];
    swa_cache_desc d = { 0 };
    swa_index ix = { 0 };
    cache a, b;
    int same;
    memset(shapes, 0, sizeof shapes);
    shapes[MAIN].n_heads = HEADS;
    shapes[MAIN].n_kv_heads = 1;
    shapes[MAIN].head_dim = DIM;
    shapes[INDEX].n_heads = INDEX_HEADS;
    shapes[INDEX].n_kv_heads = 1;
    shapes[INDEX].head_dim = INDEX_DIM;
    shapes[INDEX].v_in_k = 1; /* keys alone: no V is stored */
    d.shapes = shapes;
    d.n_shapes = 2;
    d.n_layers = 2;
    d.max_context = 512;
    d.k_type = SWA_BF16;
    ix.top = TOP;
    a = open_cache(&d, &ix);
    b = open_cache(&d, &ix);

    bits[0] = step(&a.kv, 0, TOKENS, 5, whole); /* one chunk */
    show("all at once", whole);
    for (int32_t pos = 0, n = 0; pos < TOKENS; pos += n) {
        n = pos + 37 < TOKENS ? 37 : TOKENS - pos;
        bits[1] = step(&b.kv, pos, n, 5, chunks);
    }
    show("in chunks of 37", chunks);
    check(swa_cache_truncate(&b.kv, 0, TOKENS - 100), "swa_cache_truncate");
    (void)step(&b.kv, TOKENS - 100, 100, 9, other); /* another ending, and back */
    show("another ending", other);
    check(swa_cache_truncate(&b.kv, 0, TOKENS - 100), "swa_cache_truncate");
    bits[2] = step(&b.kv, TOKENS - 100, 100, 5, again);
    show("the first ending again", again);
    same = memcmp(whole, chunks, sizeof whole) == 0 && memcmp(whole, again, sizeof whole) == 0;
    printf("%s\n", same ? "the same list" : "OTHER LISTS");
    printf("%s\n", bits[0] == bits[1] && bits[0] == bits[2] ? "the same output, bit for bit" : "OTHER BITS");
    free_cache(&a);
    free_cache(&b);
    return 0;
}
