/* The example's GGUF reader, its vocabulary and its model: any bytes are either refused with a line of text, or all
   that was read can be looked at without leaving the input (of exactly its size, so that sanitizers see it). What a
   model takes is no more than its file is large, a few times over. */
#define FUZZ_NAME "gguf"
#define SWA_IMPLEMENTATION
#include "../../swa.h"
#include "fuzz.h"
#include "../../examples/engine.h"

static void touch(const void *p, size_t n) { /* volatile: each byte is really read */
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
    for (size_t i = 0; i < g->n_tensors; i++) touch(g->tensors[i].data, g->tensors[i].bytes);
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
static void walk(const uint8_t *end, const weights *w, float *row) {
    if (!w->data) return;
    if (w->rows < 1 || w->cols < 1 || w->data + (size_t)w->rows * gguf_bytes(w->type, (size_t)w->cols) > end)
        FUZZ_DIE("a matrix leaves the file");
    weights_row(w, 0, row);
    weights_row(w, w->rows - 1, row);
}
/* A model that was accepted takes two steps, if its sizes are small. */
static void load(gguf *g, const uint8_t *end) {
    model m;
    setup s = { 0 };
    engine e;
    int32_t ids[2] = { 0, 1 };
    float *row, *logits;
    if (model_init(&m, g) != 0 && !g->error[0]) FUZZ_DIE("a model is refused without a word");
    if (g->error[0] || m.dim > 512 || m.hidden > 1024 || m.n_layers > 4) {
        model_free(&m);
        return;
    }
    row = (float *)malloc((size_t)(m.dim + m.hidden + m.n_heads * m.head_dim) * sizeof *row);
    logits = (float *)malloc((size_t)m.n_vocab * 2 * sizeof *logits);
    if (!row || !logits) exit(2);
    walk(end, &m.embedding, row);
    walk(end, &m.output, row);
    for (int l = 0; l < m.n_layers; l++) {
        const layer *w = &m.layers[l];
        const weights *all[] = { &w->q, &w->k, &w->v, &w->o, &w->gate, &w->up, &w->down, &w->router };
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) walk(end, all[i], row);
    }
    s.window = m.window > 64 ? 64 : m.window;
    s.context = 64;
    s.chunk = 2;
    s.threads = 1;
    if (engine_open(&e, &m, &s) == SWA_OK) (void)!prefill(&e, ids, 2, 0, 1, logits, NULL);
    engine_close(&e);
    model_free(&m);
    free(row);
    free(logits);
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gguf g;
    fuzz_ops++;
    if (gguf_parse(&g, data, size) == 0) {
        look(&g);
        speak(&g);
        load(&g, data + size);
    } else if (!g.error[0]) FUZZ_DIE("refused without a word");
    gguf_free(&g);
    return 0;
}
