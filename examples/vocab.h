/* vocab.h - the vocabulary of a GGUF file: text to token ids by byte-pair merges, and back.

   Reads tokenizer.ggml.model "llama" with .tokens, .token_type, .merges and the ids of begin and end. A text is
   taken byte by byte (every byte has a token), then the merges are applied in the order of the list. In token names
   U+2581 stands for a space and <0xHH> for a byte that cannot be printed. */
#ifndef VOCAB_H_INCLUDED
#define VOCAB_H_INCLUDED
#include "gguf.h"

typedef struct { int32_t left, right, made; } vocab_merge;
typedef struct {
    int          n;               /* tokens                                                    */
    char        *bytes;           /* what the tokens stand for, one after the other            */
    size_t      *start;           /* [n + 1] token i is bytes[start[i]] .. bytes[start[i+1]-1] */
    vocab_merge *merges;          /* [n_merges]                                                */
    size_t       n_merges;
    int32_t      byte_id[256];    /* the token of a single byte                                */
    int32_t      bos, eos;        /* eos -1 = none                                             */
} vocab;

enum { VOCAB_NORMAL = 1, VOCAB_UNKNOWN = 2, VOCAB_CONTROL = 3, VOCAB_BYTE = 6, VOCAB_MAX = 1 << 24 };

typedef struct { gguf_str name; int32_t id; } vocab_entry;     /* begins with the name: gguf_compare sorts it */

static inline void vocab_free(vocab *v) {
    free(v->bytes);
    free(v->start);
    free(v->merges);
    v->bytes = NULL;
    v->start = NULL;
    v->merges = NULL;
}

static inline int vocab_hex(char c) {    /* -1 = no hexadecimal digit */
    const char *digits = "0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Appends what a token stands for to v->bytes; never longer than its name. */
static inline int vocab_spell(vocab *v, gguf *g, int id, gguf_str name, int64_t kind) {
    size_t at = v->start[id];
    if (kind == VOCAB_BYTE) {
        int high = name.n == 6 ? vocab_hex(name.p[3]) : -1, low = name.n == 6 ? vocab_hex(name.p[4]) : -1;
        if (high < 0 || low < 0 || memcmp(name.p, "<0x", 3) != 0 || name.p[5] != '>') {
            return gguf_fail(g, "a byte token is not named <0xHH>");
        }
        v->bytes[at++] = (char)(high * 16 + low);
    } else if (kind != VOCAB_CONTROL && kind != VOCAB_UNKNOWN) {
        for (size_t i = 0; i < name.n; i++) {
            if (name.n - i >= 3 && memcmp(name.p + i, "\xE2\x96\x81", 3) == 0) {
                v->bytes[at++] = ' ';
                i += 2;
            } else {
                v->bytes[at++] = name.p[i];
            }
        }
    }
    if (at - v->start[id] == 1) v->byte_id[(unsigned char)v->bytes[at - 1]] = id;
    v->start[id + 1] = at;
    return 0;
}

static inline int vocab_tokens(vocab *v, gguf *g, const gguf_str *names, const gguf_pair *tokens,
                               const gguf_pair *kinds) {
    v->bytes = (char *)malloc(tokens->bytes + 1);
    v->start = (size_t *)calloc((size_t)v->n + 1, sizeof *v->start);
    if (!v->bytes || !v->start) return gguf_fail(g, "out of memory");
    for (int i = 0; i < 256; i++) v->byte_id[i] = -1;
    for (int i = 0; i < v->n; i++) {
        if (vocab_spell(v, g, i, names[i], (int64_t)gguf_le(kinds->data + 4 * (size_t)i, 4)) != 0) return -1;
    }
    for (int i = 0; i < 256; i++) {
        if (v->byte_id[i] < 0) return gguf_fail(g, "the vocabulary has no token for byte %d", i);
    }
    return 0;
}

static inline int32_t vocab_lookup(const vocab_entry *sorted, int n, const char *p, size_t bytes) {
    gguf_str s;
    const vocab_entry *e;
    s.p = p;
    s.n = bytes;
    e = (const vocab_entry *)bsearch(&s, sorted, (size_t)n, sizeof *sorted, gguf_compare);
    return e ? e->id : -1;
}

/* Each merge is "left right"; what it makes is the token named by both in a row. */
static inline int vocab_merges(vocab *v, gguf *g, const gguf_pair *list, const gguf_str *texts,
                               const vocab_entry *sorted) {
    char *joined = (char *)malloc(list->bytes + 1);
    v->merges = (vocab_merge *)calloc((size_t)list->count + 1, sizeof *v->merges);
    if (!joined || !v->merges) {
        free(joined);
        return gguf_fail(g, "out of memory");
    }
    for (uint64_t i = 0; i < list->count; i++) {
        gguf_str s = texts[i];
        const char *space = s.n > 1 ? (const char *)memchr(s.p + 1, ' ', s.n - 1) : NULL;
        size_t left = space ? (size_t)(space - s.p) : 0;
        vocab_merge m = { -1, -1, -1 };
        if (space) {
            memcpy(joined, s.p, left);
            memcpy(joined + left, space + 1, s.n - left - 1);
            m.left = vocab_lookup(sorted, v->n, s.p, left);
            m.right = vocab_lookup(sorted, v->n, space + 1, s.n - left - 1);
            m.made = vocab_lookup(sorted, v->n, joined, s.n - 1);
        }
        if (m.left < 0 || m.right < 0 || m.made < 0) {
            free(joined);
            return gguf_fail(g, "a merge names a token that is not in the vocabulary");
        }
        v->merges[v->n_merges++] = m;
    }
    free(joined);
    return 0;
}

static inline int vocab_read(vocab *v, gguf *g, const gguf_pair *tokens, const gguf_pair *kinds,
                             const gguf_pair *merges, gguf_str *names, gguf_str *texts, vocab_entry *sorted) {
    gguf_strings(tokens, names);
    if (vocab_tokens(v, g, names, tokens, kinds) != 0) return -1;
    for (int i = 0; i < v->n; i++) {
        sorted[i].name = names[i];
        sorted[i].id = i;
    }
    qsort(sorted, (size_t)v->n, sizeof *sorted, gguf_compare);
    if (merges) {
        gguf_strings(merges, texts);
        if (vocab_merges(v, g, merges, texts, sorted) != 0) return -1;
    } else if (v->start[v->n] > 256) {
        return gguf_fail(g, "the vocabulary has no merges: only byte-pair vocabularies can be read");
    }
    v->bos = (int32_t)gguf_need_int(g, "tokenizer.ggml.bos_token_id", 1, 0, v->n - 1);
    if (gguf_find(g, "tokenizer.ggml.eos_token_id")) {
        v->eos = (int32_t)gguf_need_int(g, "tokenizer.ggml.eos_token_id", -1, 0, v->n - 1);
    }
    return g->error[0] ? -1 : 0;
}

/* 0 = fine, else -1 and g->error. Keeps nothing of g. vocab_free in either case. */
static inline int vocab_init(vocab *v, gguf *g) {
    const gguf_pair *model = gguf_find(g, "tokenizer.ggml.model"), *tokens = gguf_find(g, "tokenizer.ggml.tokens");
    const gguf_pair *kinds = gguf_find(g, "tokenizer.ggml.token_type");
    const gguf_pair *merges = gguf_find(g, "tokenizer.ggml.merges");
    gguf_str kind, *names, *texts;
    vocab_entry *sorted;
    int failed;
    memset(v, 0, sizeof *v);
    if (!model || model->is_array || !gguf_strings(model, &kind) || !gguf_is(kind, "llama")) {
        return gguf_fail(g, "tokenizer.ggml.model is not \"llama\"");
    }
    if (!tokens || !tokens->is_array || tokens->kind != GGUF_STRING || tokens->count < 2
        || tokens->count > VOCAB_MAX) {
        return gguf_fail(g, "tokenizer.ggml.tokens is no list of tokens");
    }
    if (!kinds || !kinds->is_array || (kinds->kind != GGUF_I32 && kinds->kind != GGUF_U32)
        || kinds->count != tokens->count) {
        return gguf_fail(g, "tokenizer.ggml.token_type does not fit the tokens");
    }
    if (merges && (!merges->is_array || merges->kind != GGUF_STRING)) {
        return gguf_fail(g, "tokenizer.ggml.merges is no list of strings");
    }
    v->n = (int)tokens->count;
    v->eos = -1;
    names = (gguf_str *)calloc((size_t)v->n, sizeof *names);
    texts = (gguf_str *)calloc(merges ? (size_t)merges->count + 1 : 1, sizeof *texts);
    sorted = (vocab_entry *)calloc((size_t)v->n, sizeof *sorted);
    failed = names && texts && sorted ? vocab_read(v, g, tokens, kinds, merges, names, texts, sorted)
                                      : gguf_fail(g, "out of memory");
    free(names);
    free(texts);
    free(sorted);
    return failed;
}

/* Token ids of a text into ids [n]; returns how many. Cost: n times the number of merges. */
static inline size_t vocab_encode(const vocab *v, const char *text, size_t n, int32_t *ids) {
    for (size_t i = 0; i < n; i++) ids[i] = v->byte_id[(unsigned char)text[i]];
    for (size_t k = 0; k < v->n_merges; k++) {
        vocab_merge m = v->merges[k];
        size_t kept = 0;
        for (size_t i = 0; i < n; i++) {
            int both = ids[i] == m.left && i + 1 < n && ids[i + 1] == m.right;
            ids[kept++] = both ? m.made : ids[i];
            i += (size_t)both;
        }
        n = kept;
    }
    return n;
}

/* What a token stands for; length in *n, 0 for control tokens. */
static inline const char *vocab_text(const vocab *v, int32_t id, size_t *n) {
    *n = v->start[id + 1] - v->start[id];
    return v->bytes + v->start[id];
}
#endif /* VOCAB_H_INCLUDED */
