/* The example's GGUF reader and its vocabulary: any bytes are either refused with a line of text, or all that was
   read can be looked at without leaving the input (of exactly its size, so that sanitizers see it). */
#define FUZZ_NAME "gguf"
#include "fuzz.h"
#include "../../examples/vocab.h"

static void touch(const void *p, size_t n) {             /* volatile: each byte is really read */
    for (size_t i = 0; i < n; i++) (void)((const volatile unsigned char *)p)[i];
}
static void look(gguf *g) {
    for (size_t i = 0; i < g->n_pairs; i++) {
        const gguf_pair *p = &g->pairs[i];
        char name[64];
        int64_t integer;
        double real;
        touch(p->key.p, p->key.n);
        touch(p->data, p->bytes);
        if (i > 0 && gguf_compare(&g->pairs[i - 1], p) >= 0) FUZZ_DIE("pairs are not sorted");
        if (p->key.n >= sizeof name) continue;
        memcpy(name, p->key.p, p->key.n);
        name[p->key.n] = 0;
        if (strlen(name) == p->key.n && gguf_find(g, name) != p) FUZZ_DIE("a key cannot be found");
        (void)gguf_int(g, name, &integer);
        (void)gguf_float(g, name, &real);
        if (p->kind == GGUF_STRING && p->count < 100000) {
            gguf_str *s = (gguf_str *)malloc(((size_t)p->count + 1) * sizeof *s);
            if (!s || !gguf_strings(p, s)) FUZZ_DIE("strings that were counted cannot be read");
            for (uint64_t j = 0; j < p->count; j++) touch(s[j].p, s[j].n);
            free(s);
        }
    }
    for (size_t i = 0; i < g->n_tensors; i++)
        touch(g->tensors[i].data, g->tensors[i].bytes);
}
static void speak(gguf *g) {
    static const char text[] = "It is a truth universally acknowledged\xff\x00\xe2\x96\x81";
    int32_t ids[sizeof text];
    vocab v;
    size_t n;
    if (vocab_init(&v, g) == 0) {
        n = vocab_encode(&v, text, sizeof text - 1, 1, ids);
        if (n > sizeof text) FUZZ_DIE("more tokens than bytes");
        for (size_t i = 0; i < n; i++) {
            size_t bytes;
            const char *p = vocab_text(&v, ids[i], &bytes);
            if (p) touch(p, bytes);
        }
    }
    vocab_free(&v);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gguf g;
    fuzz_ops++;
    if (gguf_parse(&g, data, size) == 0) {
        look(&g);
        speak(&g);
    } else if (!g.error[0]) FUZZ_DIE("refused without a word");
    gguf_free(&g);
    return 0;
}
