/* engine.c - the small engine for a web page: WebAssembly, one text at a time, one step per call, so that the page can
   draw between steps. It is engine.h and swa.h as build/generate has them; this file is what the page calls.
   Built by `make web`. Functions that can fail return a line of English, or NULL. */
#define SWA_IMPLEMENTATION
#include "../../swa.h"
#include "../engine.h"

#define PAGE(type) __attribute__((visibility("default"), used)) type

enum { POSITION, TOKENS, END, FIRST, SLOTS, RING_BYTES, FULL_BYTES, STATE, PROMPT, VISIBLE_FROM, N_NUMBERS };
enum { IDLE, READING, WRITING, DONE }; /* STATE */

static struct {
    gguf file; /* weights are read where they lie in it */
    model m;
    engine e;
    setup s;
    sampler sample;
    float *logits;
    int32_t *ids;                /* [n_most] the prompt, then the text */
    int32_t n_prompt, n, n_most; /* n: tokens so far */
    int32_t pos, step;           /* of the last step: its first position, its tokens */
    int state;
    char why[256];
} page;

/* Room for what the page passes: the prompt, which it gives back, and the model's file, which the engine keeps. */
PAGE(void *) page_room(size_t bytes) { return malloc(bytes); }
PAGE(void) page_free(void *p) { free(p); }

PAGE(const char *) page_model(const void *file, size_t bytes) {
    int failed = gguf_parse(&page.file, file, bytes) != 0 || model_init(&page.m, &page.file) != 0;
    snprintf(page.why, sizeof page.why, "%s", page.file.error);
    return failed ? page.why : NULL;
}

static void forget(void) {
    engine_close(&page.e);
    free(page.logits);
    free(page.ids);
    free(page.sample.list);
    page.logits = NULL;
    page.ids = NULL;
    page.sample.list = NULL;
    page.state = IDLE;
    page.n = page.n_prompt = page.pos = page.step = 0;
}

/* Begins a text: nothing is computed yet. window 0 = the model's. */
PAGE(const char *) page_begin(const char *prompt, size_t bytes, int32_t window, int32_t chunk, int32_t tokens,
                              double temperature, double top_p, uint32_t seed) {
    size_t first = page.m.vocab.bos_first ? 1 : 0, encoded;
    swa_status status;
    forget();
    /* as many as the model takes, however many are asked for: the page shows that memory does not grow */
    page.ids = (int32_t *)malloc((bytes + (size_t)page.m.context + 2) * sizeof *page.ids);
    page.logits = (float *)calloc((size_t)page.m.n_vocab, sizeof *page.logits);
    page.sample.list = (candidate *)calloc((size_t)page.m.n_vocab, sizeof *page.sample.list);
    if (!page.ids || !page.logits || !page.sample.list) return "out of memory";
    page.ids[0] = page.m.vocab.bos;
    encoded = vocab_encode(&page.m.vocab, prompt, bytes, 0, page.ids + first);
    if (encoded == (size_t)-1) return "out of memory";
    page.n_prompt = page.n = (int32_t)(first + encoded);
    page.n_most = page.n + tokens;
    page.sample.temperature = temperature;
    page.sample.top_p = top_p;
    page.sample.state = seed;
    page.s.window = window > 0 ? window : page.m.window;
    page.s.context = page.n_most;
    page.s.chunk = chunk;
    page.s.threads = 1;
    if (page.n_most > page.m.context) return "prompt and text are longer than the model's context";
    status = engine_open(&page.e, &page.m, &page.s);
    if (status != SWA_OK) return swa_status_str(status);
    page.state = READING;
    return NULL;
}

/* One step: the next chunk of the prompt, or one token of the text. */
PAGE(const char *) page_step(void) {
    int32_t pos = (int32_t)swa_cache_end(&page.e.cache, 0), n = page.n - pos;
    int last = n <= page.s.chunk; /* else it is not the text's turn yet */
    swa_status status;
    if (page.state != READING && page.state != WRITING) return NULL;
    if (!last) n = page.s.chunk;
    status = prefill(&page.e, page.ids + pos, n, pos, 0, page.logits, NULL);
    if (status != SWA_OK) return swa_status_str(status);
    page.pos = pos;
    page.step = n;
    if (!last) return NULL;
    page.state = page.n < page.n_most ? WRITING : DONE;
    if (page.state == WRITING) {
        int32_t id = sample(&page.sample, page.logits, page.m.n_vocab);
        if (id < 0) return "the model's output is not finite";
        page.ids[page.n] = id;
        if (id == page.m.vocab.eos || id == page.m.vocab.eot) page.state = DONE;
        else if (++page.n == page.n_most) page.state = DONE; /* the last token is not read again */
    }
    return NULL;
}

/* What there is to draw, into a table of the page's reading. */
PAGE(const double *) page_numbers(void) {
    static double number[N_NUMBERS];
    setup full = page.s;
    int64_t lo = 0, hi = 0;
    swa_window window = page.s.window > 0 ? swa_window_sliding(page.s.window) : swa_window_causal();
    memset(number, 0, sizeof number);
    number[STATE] = page.state;
    number[PROMPT] = page.n_prompt;
    number[END] = page.n;
    if (page.state == IDLE || page.step == 0) return number;
    (void)swa_visible_range(&window, page.pos, &lo, &hi);
    full.window = 0;
    full.context = page.pos + page.step;
    number[POSITION] = page.pos;
    number[TOKENS] = page.step;
    number[FIRST] = (double)swa_cache_first(&page.e.cache, 0, 0);
    number[SLOTS] = (double)((swa_required_capacity(&window, 1, 1) + 15) / 16 * 16); /* what capacity 0 gives */
    number[VISIBLE_FROM] = (double)lo;
    number[RING_BYTES] = (double)engine_rows(&page.m, &page.s);
    number[FULL_BYTES] = (double)engine_rows(&page.m, &full);
    return number;
}
PAGE(int32_t) page_slot(int32_t pos) { return (int32_t)swa_cache_slot(&page.e.cache, 0, 0, pos); }
PAGE(int32_t) page_visible(int32_t q, int32_t k) {
    swa_window window = page.s.window > 0 ? swa_window_sliding(page.s.window) : swa_window_causal();
    return swa_visible(&window, q, k);
}
PAGE(int32_t) page_window(void) { return (int32_t)page.m.window; }
PAGE(int32_t) page_context(void) { return (int32_t)page.m.context; }
/* Token i's bytes (UTF-8, perhaps part of a character), and how many. */
PAGE(const char *) page_text(int32_t i) {
    size_t bytes;
    return vocab_text(&page.m.vocab, page.ids[i], &bytes);
}
PAGE(size_t) page_text_bytes(int32_t i) {
    size_t bytes;
    (void)vocab_text(&page.m.vocab, page.ids[i], &bytes);
    return bytes;
}
PAGE(const char *) page_instructions(void) { return swa_isa_name(swa_isa_best()); }
