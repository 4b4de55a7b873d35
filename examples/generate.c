/* generate.c - continues a text with a model from a GGUF file (Mistral, Llama, Phi 3, Qwen 2 and 3, Gemma 2 and 3,
   gpt-oss, Command R7B, OLMo 2 and 3): prefills the prompt in chunks, and decodes with a ring-buffer cache that holds
   one window per layer, however long the text becomes.

       cc -O2 -o generate generate.c -lm && ./generate -p "It was" -n 200        (-fopenmp: several threads)

   The engine is engine.h (one step) and model.h (weights, families) on top of swa.h (attention, cache, RoPE); gguf.h
   reads files, vocab.h and split.h make tokens, quants.h multiplies, nn.h samples, speed.h measures. This file is the
   program. The same prompt and seed give the same text, whatever the chunk and the number of threads. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "speed.h"

typedef struct {
    const char *model, *prompt, *prompt_file, *ids_file;
    int64_t n, window, context, chunk, threads; /* window -1 and context 0: the model's */
    double temperature, top_p;
    uint64_t seed;
    int compare, bench, special, warm;
} options;
typedef struct {
    int32_t *ids;           /* [n_prompt + options.n] the prompt, then the text */
    int32_t n_prompt, n;    /* n: tokens so far */
    double prefill, decode; /* seconds */
} passage;

static int fail(const char *what, const char *about) { /* the one line on stderr, and the exit code */
    fprintf(stderr, "generate: %s%s\n", what, about);
    return 1;
}

/* first 1 = they begin the text, with a space before it that the vocabulary wanted. */
static void print_tokens(const vocab *v, const int32_t *ids, int32_t n, int first) {
    size_t drop = first && v->space_first ? 1 : 0;
    for (int32_t i = 0; i < n; i++) {
        size_t bytes;
        const char *piece = vocab_text(v, ids[i], &bytes);
        if (bytes == 0) continue;
        fwrite(piece + drop, 1, bytes - drop, stdout);
        drop = 0;
    }
    fflush(stdout);
}

/* Draws up to o->n tokens behind the prompt, whose last logits are in the first row of logits. With all, every
   token's logits get a row of their own, else they overwrite each other. */
static int decode_text(engine *e, const options *o, passage *x, int all, float *logits) {
    size_t n_vocab = (size_t)e->m->n_vocab;
    swa_status status = SWA_OK;
    sampler s = { 0 };
    s.temperature = o->temperature;
    s.top_p = o->top_p;
    s.state = o->seed;
    s.list = (candidate *)calloc(n_vocab, sizeof *s.list);
    if (!s.list) return fail("out of memory", "");
    for (int64_t left = o->n; status == SWA_OK && left > 0; left--) {
        int32_t id = sample(&s, logits, (int)n_vocab);
        if (id >= 0 && (id == e->m->vocab.eos || id == e->m->vocab.eot)) break;
        if (id < 0) {
            free(s.list);
            return fail("the model's output is not finite: damaged weights?", "");
        }
        print_tokens(&e->m->vocab, &id, 1, 0);
        x->ids[x->n] = id;
        if (all) logits += n_vocab;
        if (left > 1) status = decode(e, id, x->n, logits);
        x->n++;
    }
    free(s.list);
    return status == SWA_OK ? 0 : fail("attention refused a step: ", swa_status_str(status));
}

/* The first n tokens as a warm cache has them: computed once, saved, overwritten by another text, and loaded again. */
static swa_status prefill_warm(engine *e, const int32_t *ids, int32_t n, float *logits) {
    swa_status status = prefill(e, ids, n, 0, 0, logits, NULL);
    size_t bytes = swa_cache_save_bytes(&e->cache, 0);
    void *blob = malloc(bytes ? bytes : 1);
    if (status == SWA_OK) status = blob ? swa_cache_save(&e->cache, 0, blob, bytes) : SWA_ERR_MEMORY;
    if (status == SWA_OK) status = swa_cache_reset(&e->cache, 0, 0, 0);
    for (int32_t i = 0; i < n && status == SWA_OK; i++) status = decode(e, ids[n - 1 - i], i, logits);
    if (status == SWA_OK) status = swa_cache_load(&e->cache, 0, blob, bytes);
    free(blob);
    return status;
}

/* Prefill, then decode. logits [n_vocab], or with all [n_prompt + o->n][n_vocab]. */
static int write_text(engine *e, const options *o, passage *x, int all, float *logits) {
    double start = seconds(), between;
    int watch = !all && x->n_prompt >= 1024 && x->n_prompt > e->chunk;
    int32_t warm = o->warm && !all ? x->n_prompt / 2 : 0;
    swa_status status = warm > 0 ? prefill_warm(e, x->ids, warm, logits) : SWA_OK;
    int failed;
    if (status == SWA_OK) {
        status = prefill(e, x->ids + warm, x->n_prompt - warm, warm, all, logits, watch ? stderr : NULL);
    }
    if (status != SWA_OK) return fail("attention refused a step: ", swa_status_str(status));
    between = seconds();
    x->n = x->n_prompt;
    print_tokens(&e->m->vocab, x->ids, x->n_prompt, 1);
    if (all) logits += (size_t)(x->n_prompt - 1) * (size_t)e->m->n_vocab;
    failed = decode_text(e, o, x, all, logits);
    x->prefill = between - start;
    x->decode = seconds() - between;
    puts("");
    fflush(stdout); /* before what goes to stderr, where both end in one file */
    return failed;
}

static int generate(const model *m, const options *o, const setup *s, passage *x) {
    float *logits = (float *)calloc((size_t)m->n_vocab, sizeof *logits);
    engine e;
    int failed = 1;
    swa_status status = engine_open(&e, m, s);
    if (status != SWA_OK || !logits) fail("no memory for the cache: ", swa_status_str(status));
    else failed = write_text(&e, o, x, 0, logits);
    if (!failed) {
        int32_t written = x->n - x->n_prompt;
        setup full = *s;
        full.window = 0;
        full.context = o->context;
        fprintf(stderr, "prefill %ld tokens, %.0f tokens/s; decode %ld tokens, %.0f tokens/s\n", (long)x->n_prompt,
                x->n_prompt / (x->prefill + 1e-9), (long)written, written / (x->decode + 1e-9));
        fprintf(stderr,
                "keys and values %lu bytes (with working memory %lu); full attention over the context of "
                "%ld: %lu bytes\n",
                (unsigned long)engine_rows(m, s), (unsigned long)(e.bytes + e.scratch_bytes), (long)o->context,
                (unsigned long)engine_rows(m, &full));
    }
    engine_close(&e);
    free(logits);
    return failed;
}

/* A whole file, with a zero byte behind it; NULL = cannot be read, or too large. */
static char *read_file(const char *path, size_t *size) {
    enum { MOST = 1 << 28 };
    size_t room = 1 << 16;
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    char *data = f ? (char *)malloc(room) : NULL;
    *size = 0;
    while (data && (*size += fread(data + *size, 1, room - 1 - *size, f)) == room - 1) {
        char *more = room < MOST ? (char *)realloc(data, room *= 2) : NULL;
        if (!more) free(data);
        data = more;
    }
    if (data && ferror(f)) {
        free(data);
        data = NULL;
    }
    if (data) data[*size] = 0;
    if (f && f != stdin) fclose(f);
    return data;
}

/* Token ids, int32 little-endian; NULL and a line on stderr if they do not fit the model. */
static int32_t *read_ids(const char *path, const model *m, int32_t *n) {
    size_t size;
    char *data = read_file(path, &size);
    int32_t *ids = data ? (int32_t *)malloc(size + 4) : NULL;
    int bad = size < 8 || size % 4 != 0;
    *n = (int32_t)(size / 4);
    for (int32_t i = 0; ids && !bad && i < *n; i++) {
        uint64_t id = gguf_le((const unsigned char *)data + 4 * (size_t)i, 4);
        bad = id >= (uint64_t)m->n_vocab;
        ids[i] = bad ? 0 : (int32_t)id;
    }
    if (!data) fail("cannot read the held-out text ", path);
    else if (bad) fail("no token ids of this model in ", path);
    else if (!ids) fail("out of memory", "");
    free(data);
    if (!bad) return ids;
    free(ids);
    return NULL;
}

/* One of the three ways: text and held-out loss, with all logits into out [n_prompt + o->n + n_held][n_vocab]. */
static int compare_way(const model *m, const options *o, const setup *s, passage *x, const int32_t *held,
                       int32_t n_held, float *out) {
    engine e;
    int failed = 1;
    swa_status status = engine_open(&e, m, s);
    float *held_out = out + (size_t)(x->n_prompt + o->n) * (size_t)m->n_vocab;
    if (status != SWA_OK) {
        fail("no memory for the cache: ", swa_status_str(status));
    } else {
        printf("%lu bytes of keys and values\n", (unsigned long)engine_rows(m, s));
        failed = write_text(&e, o, x, 1, out);
    }
    if (!failed) {
        status = swa_cache_reset(&e.cache, 0, 0, 0);
        if (status == SWA_OK) status = prefill(&e, held, n_held, 0, 1, held_out, NULL);
        if (status != SWA_OK) failed = fail("attention refused a step: ", swa_status_str(status));
        else printf("loss on the held-out text: %.4f per token\n\n", loss(held_out, held, n_held, m->n_vocab));
    }
    engine_close(&e);
    return failed;
}

static int compare_all(const model *m, const options *o, const setup *base, passage *x, const int32_t *held,
                       int32_t n_held, float *logits[3]) {
    static const char *title[3] = { "1. ring of the window's size", "2. full-length cache, window as a mask",
                                    "3. full attention" };
    size_t numbers = (size_t)(x->n_prompt + o->n + n_held) * (size_t)m->n_vocab;
    int32_t rows = 0;
    int same, differs;
    for (int way = 0; way < 3; way++) {
        setup s = *base;
        if (n_held > s.context) s.context = n_held;
        if (s.window > s.context) s.window = s.context;
        if (way == 1) s.capacity = (s.context + 15) / 16 * 16;
        if (way == 2) s.window = 0;
        printf("--- %s: ", title[way]);
        if (compare_way(m, o, &s, x, held, n_held, logits[way]) != 0) return 1;
        if (way == 0) rows = x->n - 1 + n_held; /* the last token drawn is not fed back */
    }
    same = memcmp(logits[0], logits[1], numbers * sizeof(float)) == 0;
    differs = memcmp(logits[0], logits[2], numbers * sizeof(float)) != 0;
    printf("1 and 2: %ld rows of %d logits, %s.\n", (long)rows, m->n_vocab,
           same ? "identical bit for bit" : "NOT IDENTICAL");
    printf("1 and 3: %s.\n", differs ? "different" : "identical, nothing lies outside the window");
    return same ? 0 : fail("the ring and the full-length cache disagree", "");
}

static int compare(const model *m, const options *o, const setup *s, passage *x) {
    int32_t n_held = 0, *held;
    float *logits[3] = { NULL, NULL, NULL };
    int failed;
    if (s->window == 0) return fail("--compare needs a window: the model has none, or --window is 0", "");
    held = read_ids(o->ids_file, m, &n_held);
    if (!held) return 1;
    for (int i = 0; i < 3; i++) {
        logits[i] = (float *)calloc((size_t)(x->n_prompt + o->n + n_held), (size_t)m->n_vocab * sizeof(float));
    }
    failed = logits[0] && logits[1] && logits[2] ? compare_all(m, o, s, x, held, n_held, logits)
                                                 : fail("out of memory for the logits of --compare", "");
    for (int i = 0; i < 3; i++) free(logits[i]);
    free(held);
    return failed;
}

/* A mapped file comes from the disk as it is touched: here, with a line that counts, and not in the first step. */
static void read_ahead(const gguf *g) {
    enum { PAGE = 4096, LARGE = 1 << 26, LINES = 16 };
    unsigned sum = 0;
    if (g->mapped < LARGE) return;
    for (size_t i = 0, line = 0; i < g->mapped; i += PAGE) {
        sum += ((volatile const unsigned char *)g->file)[i];
        if (i / (g->mapped / LINES + 1) == line) {
            fprintf(stderr, "\rload: %lu of %lu MB", (unsigned long)(i >> 20), (unsigned long)(g->mapped >> 20));
            line++;
        }
    }
    fprintf(stderr, "\rload: %lu of %lu MB%s\n", (unsigned long)(g->mapped >> 20), (unsigned long)(g->mapped >> 20),
            sum == 1 ? " " : "");
}

static int run(const model *m, options *o, const char *prompt, size_t bytes) {
    passage x = { 0 };
    setup s = { 0 };
    size_t n_prompt = m->vocab.bos_first ? 1 : 0, encoded;
    int failed;
    x.ids = (int32_t *)malloc((bytes + (size_t)o->n + 2) * sizeof *x.ids);
    if (x.ids) x.ids[0] = m->vocab.bos;
    encoded = x.ids ? vocab_encode(&m->vocab, prompt, bytes, o->special, x.ids + n_prompt) : (size_t)-1;
    if (encoded == (size_t)-1) {
        free(x.ids);
        return fail("out of memory for the prompt", "");
    }
    n_prompt += encoded;
    if (o->context == 0) o->context = m->context;
    s.window = o->window >= 0 ? o->window : m->window;
    s.context = (int64_t)n_prompt + o->n;
    s.chunk = (int32_t)o->chunk;
    s.threads = (int)o->threads;
    x.n_prompt = (int32_t)n_prompt;
    if (s.context > o->context) {
        char why[128];
        snprintf(why, sizeof why, "%lu tokens and %ld to write, the context is %ld (see --context)",
                 (unsigned long)n_prompt, (long)o->n, (long)o->context);
        failed = fail("the prompt is too long: ", why);
    } else {
        failed = o->bench   ? !show_speed(m, &s, o->context)
               : o->compare ? compare(m, o, &s, &x)
                            : generate(m, o, &s, &x);
    }
    free(x.ids);
    return failed;
}

static void usage(void) {
    puts("usage: generate [options]\n"
         "  -m, --model FILE        GGUF model (examples/austen-w64.gguf)\n"
         "  -p, --prompt TEXT       the text to continue\n"
         "  -f, --file FILE         read the prompt from a file, - = standard input\n"
         "  -n, --tokens N          tokens to write (200)\n"
         "  -t, --temperature X     0 = always the likeliest token (0.8)\n"
         "      --top-p X           draw from the likeliest tokens that reach this probability (0.9)\n"
         "  -s, --seed N            another seed, another text (1)\n"
         "  -w, --window N          attend to N positions; 0 = to all (the model's)\n"
         "  -c, --chunk N           prompt tokens per step (128)\n"
         "      --context N         most tokens of prompt and text (the model's)\n"
         "      --threads N         when built with OpenMP (1)\n"
         "      --special           names of control tokens in the prompt stand for these tokens\n"
         "      --warm              half of the prompt from a cache that was saved and loaded: the same text\n"
         "      --bench             tokens per second at several contexts, and what the memory gives\n"
         "      --compare           ring, full-length cache and full attention side by side\n"
         "      --ids FILE          held-out token ids for --compare (examples/austen-heldout.ids)");
}

static int parse_int(const char *text, int64_t lo, int64_t hi, int64_t *out) {
    char *end;
    long long v;
    errno = 0;
    v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < lo || v > hi) return 0;
    *out = (int64_t)v;
    return 1;
}

static int parse_real(const char *text, double lo, double hi, double *out) {
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && *out >= lo && *out <= hi;
}

static int parse_value(options *o, const char *name, const char *v) { /* -1 = no such option, 0 = bad value */
    static const struct {
        const char *brief, *name;
    } known[] = { { "-m", "--model" },  { "-p", "--prompt" }, { "-f", "--file" },        { "", "--ids" },
                  { "-n", "--tokens" }, { "-w", "--window" }, { "-c", "--chunk" },       { "", "--context" },
                  { "", "--threads" },  { "-s", "--seed" },   { "-t", "--temperature" }, { "", "--top-p" } };
    int64_t seed = 0;
    size_t i = 0, n = sizeof known / sizeof *known;
    while (i < n && strcmp(name, known[i].brief) != 0 && strcmp(name, known[i].name) != 0) i++;
    if (i == n) return -1;
    if (!v) return 0;
    switch (i) {
    case 0: o->model = v; return 1;
    case 1:
        o->prompt = v;
        o->prompt_file = NULL;
        return 1;
    case 2: o->prompt_file = v; return 1;
    case 3: o->ids_file = v; return 1;
    case 4: return parse_int(v, 0, 1 << 24, &o->n);
    case 5: return parse_int(v, 0, 1 << 30, &o->window);
    case 6: return parse_int(v, 1, 1 << 16, &o->chunk);
    case 7: return parse_int(v, 1, 1 << 28, &o->context);
    case 8: return parse_int(v, 1, 1024, &o->threads);
    case 9:
        if (!parse_int(v, 0, INT64_MAX, &seed)) return 0;
        o->seed = (uint64_t)seed;
        return 1;
    case 10: return parse_real(v, 0.0, 100.0, &o->temperature);
    default: return parse_real(v, 1e-6, 1.0, &o->top_p);
    }
}

static int parse_options(options *o, int argc, char **argv) { /* 0 = go on, else a line was written */
    for (int i = 1; i < argc; i++) {
        int ok;
        int *on = strcmp(argv[i], "--compare") == 0 ? &o->compare
                : strcmp(argv[i], "--bench") == 0   ? &o->bench
                : strcmp(argv[i], "--special") == 0 ? &o->special
                : strcmp(argv[i], "--warm") == 0    ? &o->warm
                                                    : NULL;
        if (on) {
            *on = 1;
            continue;
        }
        ok = parse_value(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
        if (ok < 0) return fail("unknown option (--help lists them): ", argv[i]);
        if (ok == 0) return fail("missing or impossible value of option ", argv[i]);
        i++;
    }
#ifdef _OPENMP
    omp_set_num_threads((int)o->threads);
#else
    if (o->threads > 1) fputs("generate: built without OpenMP, so one thread has to do\n", stderr);
    o->threads = 1;
#endif
    return 0;
}

int main(int argc, char **argv) {
    options o = { .model = "examples/austen-w64.gguf",
                  .ids_file = "examples/austen-heldout.ids",
                  .prompt = "Elizabeth was",
                  .n = 200,
                  .window = -1,
                  .chunk = 128,
                  .threads = 1,
                  .temperature = 0.8,
                  .top_p = 0.9,
                  .seed = 1 };
    model m = { 0 };
    gguf g;
    char *file = NULL;
    size_t bytes = 0;
    int failed;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage();
            return 0;
        }
    }
    if (parse_options(&o, argc, argv) != 0) return 1;
    if (o.prompt_file) {
        o.prompt = file = read_file(o.prompt_file, &bytes);
        if (!file) return fail("cannot read the prompt from ", o.prompt_file);
    } else {
        bytes = strlen(o.prompt);
    }
    if (bytes == 0) {
        free(file);
        return fail("the prompt is empty", "");
    }
    failed = gguf_load(&g, o.model) != 0 || model_init(&m, &g) != 0;
    if (failed) fprintf(stderr, "generate: %s: %s\n", o.model, g.error);
    if (!failed) {
        read_ahead(&g);
        failed = run(&m, &o, o.prompt, bytes);
    }
    model_free(&m);
    gguf_free(&g);
    free(file);
    return failed;
}
