/* The example's vocabularies: text to tokens and back, against merges carried out one by one, and words as the
   published regular expressions cut them. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "../examples/vocab.h"
#include "gguf_write.h"

/* ---- words ---- */

typedef struct {
    const char *pre, *text, *words;
} cut; /* words: parted by | */

TEST(vocab_words_as_the_expressions_cut_them) {
    static const cut cuts[] = {
        { "gpt-2", "Hello world's 123  end", "Hello| world|'s| 123| | end" },
        { "gpt-2", "a\n\n b ...c", "a|\n\n| b| ...|c" },
        { "gpt-2", "I'LL x'll  ", "I|'|LL| x|'ll|  " },
        { "llama-bpe", "Hello world's 12345 x", "Hello| world|'s| |123|45| x" },
        { "llama-bpe", "I'LL (see) it!\n\n  ok", "I|'LL| (|see|)| it|!\n\n| | ok" },
        { "llama-bpe", "a \n\n  b\tc", "a| \n\n| | b|\tc" },
        { "llama-bpe", "\xc3\xa9t\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87\xef\xbc\x8c\xd9\xa1\xd9\xa2",
          "\xc3\xa9t\xc3\xa9| \xe4\xb8\xad\xe6\x96\x87|\xef\xbc\x8c|\xd9\xa1\xd9\xa2" },
        { "qwen2", "in 2024, x", "in| |2|0|2|4|,| x" },
        { "gpt-4o", "HelloWorld don't DON'T ABCdef a/b//\n", "Hello|World| don't| DON'T| ABCdef| a|/b|//\n" },
        { "gpt-4o", "camelCase 12345", "camel|Case| |123|45" },
        { "gpt-4o",
          "A\xe4\xb8\xad"
          "B",
          "A\xe4\xb8\xad|B" },
        { "tekken", "don't 12 HelloWorld", "don|'t| |1|2| Hello|World" },
        { "command-r", "in 2024  9x", "in| |2|0|2|4|  |9|x" },
        { "dbrx", "it's 1234", "it|'s| |123|4" },
    };
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        const splitter *s = NULL;
        char got[256];
        size_t n = strlen(cuts[i].text), at = 0, out = 0;
        for (size_t j = 0; j < sizeof splitters / sizeof *splitters; j++) {
            if (strcmp(splitters[j].name, cuts[i].pre) == 0) s = &splitters[j];
        }
        REQUIRE(s != NULL);
        while (at < n) {
            size_t size = split_next(s, cuts[i].text + at, n - at);
            if (at > 0) got[out++] = '|';
            memcpy(got + out, cuts[i].text + at, size);
            out += size;
            at += size;
        }
        got[out] = 0;
        t_label("%s %s gives %s", cuts[i].pre, cuts[i].text, got);
        CHECK(strcmp(got, cuts[i].words) == 0);
    }
}

/* Any bytes: words are never empty and never longer than the text. */
TEST(vocab_words_of_any_bytes) {
    for (int i = 0; i < 20000; i++) {
        char text[24];
        size_t n = (size_t)t_int(1, 24), at = 0;
        static const char common[] = " \n'sA/a1.\xc3\xa9\xe4\xb8";
        for (size_t j = 0; j < n; j++) {
            text[j] = t_int(0, 3) ? common[t_int(0, (int)sizeof common - 2)] : (char)t_int(0, 255);
        }
        while (at < n) {
            size_t size = split_next(&splitters[i % (int)(sizeof splitters / sizeof *splitters)], text + at, n - at);
            if (!CHECK(size > 0 && size <= n - at)) return;
            at += size;
        }
    }
}

/* ---- vocabularies made here: all bytes, and tokens of a few letters ---- */

enum { MADE = 120 };
typedef struct {
    gw file;
    char token[MADE][16];
    float score[MADE];
    int n;
} made;

static int known(const made *m, const char *p, size_t n) {
    for (int i = 0; i < m->n; i++)
        if (strlen(m->token[i]) == n && memcmp(m->token[i], p, n) == 0) return i;
    return -1;
}
/* Random words over "ab cé", each the union of two that are there already (or letters): what merges can reach. */
static void make_tokens(made *m, int left[MADE], int right[MADE]) {
    static const char *const letters[] = { "a", "b", " ", "c", "\xc3\xa9" };
    enum { LETTERS = 5 };
    for (int i = 0; i < LETTERS; i++) strcpy(m->token[m->n++], letters[i]);
    while (m->n < MADE - 2) {
        char both[40];
        int a = t_int(0, m->n - 1), b = t_int(0, m->n - 1);
        snprintf(both, sizeof both, "%s%s", m->token[a], m->token[b]);
        if (strlen(both) > 8 || known(m, both, strlen(both)) >= 0) continue;
        left[m->n] = a;
        right[m->n] = b;
        m->score[m->n] = (float)-t_int(1, 60);
        memcpy(m->token[m->n++], both, strlen(both) + 1);
    }
}

/* A space as the vocabulary writes it; in "gpt2" every byte as a printable character. */
static void put_name(gw_bytes *b, const char *text, int gpt2) {
    gw_bytes name = { NULL, 0, 0 };
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        unsigned code = c;
        if (gpt2) {
            int low = 0;
            for (int i = 0; i < c; i++) low += !((i > 32 && i < 127) || (i > 160 && i != 173));
            if (!((c > 32 && c < 127) || (c > 160 && c != 173))) code = 256u + (unsigned)low;
            if (code < 128) {
                gw_le(&name, code, 1);
            } else {
                gw_le(&name, 0xC0 | code >> 6, 1);
                gw_le(&name, 0x80 | (code & 63), 1);
            }
        } else if (c == ' ') {
            gw_put(&name, "\xe2\x96\x81", 3);
        } else {
            gw_put(&name, text, 1);
        }
    }
    gw_string(b, (const char *)name.p, name.n);
}

static void put_merge(gw_bytes *b, const char *left, const char *right) {
    gw_bytes one = { NULL, 0, 0 }, two = { NULL, 0, 0 };
    put_name(&one, left, 1);
    put_name(&two, right, 1);
    one.p[one.n] = ' ';
    gw_le(b, one.n - 8 + 1 + two.n - 8, 8);
    gw_put(b, one.p + 8, one.n - 8);
    gw_put(b, " ", 1);
    gw_put(b, two.p + 8, two.n - 8);
}

/* Token ids: 0..255 the bytes, then m->token, then two special ones. */
static void make(made *m, const char *kind, const char *pre, int left[MADE], int right[MADE]) {
    int gpt2 = strcmp(kind, "gpt2") == 0, merges = 0;
    gw *f = &m->file;
    char name[8];
    memset(m, 0, sizeof *m);
    make_tokens(m, left, right);
    gw_text(f, "tokenizer.ggml.model", kind);
    if (pre) gw_text(f, "tokenizer.ggml.pre", pre);
    gw_array(f, "tokenizer.ggml.tokens", GGUF_STRING, (size_t)(256 + m->n + 2));
    for (int i = 0; i < 256; i++) {
        char byte[2] = { (char)i, 0 };
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)i);
        if (gpt2 && i == 0) gw_string(&f->keys, "\xc4\x80", 2);
        else if (gpt2) put_name(&f->keys, byte, 1);
        else gw_string(&f->keys, name, 6);
    }
    for (int i = 0; i < m->n; i++) put_name(&f->keys, m->token[i], gpt2);
    gw_string(&f->keys, "<user>", 6);
    gw_string(&f->keys, "<end>", 5);
    gw_array(f, "tokenizer.ggml.token_type", GGUF_I32, (size_t)(256 + m->n + 2));
    for (int i = 0; i < 256 + m->n; i++) gw_le(&f->keys, i < 256 && !gpt2 ? VOCAB_BYTE : VOCAB_NORMAL, 4);
    gw_le(&f->keys, VOCAB_USER, 4);
    gw_le(&f->keys, VOCAB_CONTROL, 4);
    if (!gpt2) {
        gw_array(f, "tokenizer.ggml.scores", GGUF_F32, (size_t)(256 + m->n + 2));
        for (int i = 0; i < 256 + m->n + 2; i++) gw_real(&f->keys, i < 256 || i >= 256 + m->n ? 0 : m->score[i - 256]);
        return;
    }
    for (int i = 5; i < m->n; i++) merges++;
    gw_array(f, "tokenizer.ggml.merges", GGUF_STRING, (size_t)(merges + 1));
    put_merge(&f->keys, "\xc3", "\xa9");
    for (int i = 5; i < m->n; i++) put_merge(&f->keys, m->token[left[i]], m->token[right[i]]);
}

static void random_text(char *text, size_t n) {
    static const char *const parts[] = { "a", "b", " ", "c", "\xc3\xa9", "ab", "\xe4\xb8\xad", "1", "\n", "ca" };
    size_t at = 0;
    while (at + 4 < n) {
        const char *p = parts[t_int(0, t_int(0, 3) ? 4 : 9)];
        memcpy(text + at, p, strlen(p));
        at += strlen(p);
    }
    text[at] = 0;
}

static size_t spell(const vocab *v, const int32_t *ids, size_t n, char *out) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t bytes;
        const char *p = vocab_text(v, ids[i], &bytes);
        memcpy(out + at, p, bytes);
        at += bytes;
    }
    out[at] = 0;
    return at;
}

/* By definition: look at all neighbours, join the best by score or by rank, again. Pieces are strings. */
static int joined_slowly(const made *m, const char *text, size_t n, int by_rank, const int left[MADE],
                         const int right[MADE], int32_t *ids) {
    char piece[256][16];
    int pieces = 0, out = 0;
    for (size_t i = 0; i < n;) {
        size_t size = by_rank || (unsigned char)text[i] < 0xC0 ? 1 : (unsigned char)text[i] < 0xE0 ? 2 : 3;
        memcpy(piece[pieces], text + i, size);
        piece[pieces++][size] = 0;
        i += size;
    }
    for (;;) {
        int best = -1, best_token = -1;
        for (int i = 0; i + 1 < pieces; i++) {
            char both[40];
            int t;
            snprintf(both, sizeof both, "%s%s", piece[i], piece[i + 1]);
            if (by_rank) {
                for (t = 4; t < m->n; t++) {
                    const char *l = t == 4 ? "\xc3" : m->token[left[t]], *r = t == 4 ? "\xa9" : m->token[right[t]];
                    if (strcmp(l, piece[i]) == 0 && strcmp(r, piece[i + 1]) == 0) break;
                }
                if (t < m->n && (best < 0 || t < best_token)) best = i, best_token = t;
            } else {
                t = known(m, both, strlen(both));
                if (t >= 0 && (best < 0 || m->score[t] > m->score[best_token])) best = i, best_token = t;
            }
        }
        if (best < 0) break;
        strcpy(piece[best], m->token[best_token]);
        memmove(piece[best + 1], piece[best + 2], sizeof *piece * (size_t)(pieces - best - 2));
        pieces--;
    }
    for (int i = 0; i < pieces; i++) {
        int t = by_rank && strlen(piece[i]) == 1 ? -1 : known(m, piece[i], strlen(piece[i]));
        if (t >= 0) ids[out++] = 256 + t;
        for (char *c = piece[i]; t < 0 && *c; c++) ids[out++] = (unsigned char)*c;
    }
    return out;
}

TEST(vocab_scores_against_joining_one_by_one) {
    made *m = (made *)t_alloc(sizeof *m);
    int left[MADE], right[MADE];
    size_t size;
    gguf g;
    vocab v;
    make(m, "llama", NULL, left, right);
    unsigned char *file = gw_file(&m->file, &size);
    REQUIRE(gguf_parse(&g, file, size) == 0 && vocab_init(&v, &g) == 0);
    CHECK(v.space_first && v.bos_first);
    for (int i = 0; i < 400; i++) {
        char text[64] = " ", back[64];
        int32_t got[70], want[256];
        size_t n;
        random_text(text + 1, (size_t)t_int(5, 60));
        n = vocab_encode(&v, text + 1, strlen(text + 1), 0, got);
        CHECK_INT(n, joined_slowly(m, text, strlen(text), 0, left, right, want));
        CHECK(memcmp(got, want, n * sizeof *got) == 0);
        CHECK(spell(&v, got, n, back) == strlen(text) && strcmp(back, text) == 0);
    }
    vocab_free(&v);
    gguf_free(&g);
}

TEST(vocab_merges_against_joining_one_by_one) {
    static const char *const pres[] = { NULL, "llama-bpe", "qwen2", "gpt-4o" };
    for (int k = 0; k < 4; k++) {
        made *m = (made *)t_alloc(sizeof *m);
        int left[MADE], right[MADE];
        size_t size;
        gguf g;
        vocab v;
        make(m, "gpt2", pres[k], left, right);
        unsigned char *file = gw_file(&m->file, &size);
        if (!CHECK(gguf_parse(&g, file, size) == 0 && vocab_init(&v, &g) == 0)) printf("%s\n", g.error);
        for (int i = 0; i < 200; i++) {
            char text[64], back[64];
            int32_t got[70], want[256], part[256];
            size_t n, want_n = 0;
            random_text(text, (size_t)t_int(5, 60));
            n = vocab_encode(&v, text, strlen(text), 0, got);
            for (size_t at = 0, word; at < strlen(text); at += word) {
                int whole, parts;
                word = split_next(v.words, text + at, strlen(text) - at);
                whole = v.words->whole ? known(m, text + at, word) : -1;
                parts = joined_slowly(m, text + at, word, 1, left, right, part);
                if (whole >= 0 && word > 1) part[0] = 256 + whole, parts = 1;
                for (int j = 0; j < parts; j++) want[want_n++] = part[j];
            }
            t_label("%s, \"%s\"", pres[k] ? pres[k] : "none", text);
            CHECK_INT(n, want_n);
            CHECK(n == want_n && memcmp(got, want, n * sizeof *got) == 0);
            CHECK(spell(&v, got, n, back) == strlen(text) && strcmp(back, text) == 0);
        }
        vocab_free(&v);
        gguf_free(&g);
    }
}

TEST(vocab_special_tokens_and_any_bytes) {
    made *m = (made *)t_alloc(sizeof *m);
    int left[MADE], right[MADE];
    int32_t ids[128];
    size_t size, n;
    gguf g;
    vocab v;
    make(m, "gpt2", "qwen2", left, right);
    unsigned char *file = gw_file(&m->file, &size);
    REQUIRE(gguf_parse(&g, file, size) == 0 && vocab_init(&v, &g) == 0);
    n = vocab_encode(&v, "b<user><end>", 12, 1, ids);
    CHECK(n == 3 && ids[1] == 256 + m->n && ids[2] == 256 + m->n + 1);
    n = vocab_encode(&v, "<user><end>", 11, 0, ids);
    CHECK(n == 6 && ids[0] == 256 + m->n);
    CHECK_INT(vocab_encode(&v, "", 0, 0, ids), 0);
    for (int i = 0; i < 500; i++) {
        char text[60], back[61];
        n = (size_t)t_int(1, 60);
        for (size_t j = 0; j < n; j++) text[j] = (char)t_int(0, 255);
        CHECK_INT(spell(&v, ids, vocab_encode(&v, text, n, 0, ids), back), n);
        CHECK(memcmp(text, back, n) == 0);
    }
    vocab_free(&v);
    gguf_free(&g);
}
