/* vocab.h - the vocabulary of a GGUF file: text to token ids, and back.

   tokenizer.ggml.model "llama": SentencePiece. A text starts as characters; of all neighbours whose union is a token,
   those with the best score are joined first. What is no token in the end is written byte by byte. Where the file
   lists merges, it starts as bytes and they are applied in the order of the list.
   tokenizer.ggml.model "gpt2": byte pairs. split.h cuts the text into words as tokenizer.ggml.pre says; a word starts
   as bytes, and merges are applied in the order of the list.
   Tokens that users defined are found in the text before anything else; control tokens too, if that is wanted.

   In names of tokens U+2581 stands for a space and <0xHH> for a byte ("llama"), or every byte for a printable
   character ("gpt2"). */
#ifndef VOCAB_H_INCLUDED
#define VOCAB_H_INCLUDED
#include "gguf.h"
#include "split.h"

enum {
    VOCAB_NORMAL = 1,
    VOCAB_UNKNOWN = 2,
    VOCAB_CONTROL = 3,
    VOCAB_USER = 4,
    VOCAB_UNUSED = 5,
    VOCAB_BYTE = 6,
    VOCAB_MAX = 1 << 24
};

typedef struct {
    int32_t left, right, made, rank;
} vocab_merge;
typedef struct {
    gguf_str name;
    int32_t id;
} vocab_entry; /* begins with the name: gguf_compare sorts it */
typedef struct {
    int n;                      /* tokens                                                    */
    char *bytes;                /* what the tokens stand for, one after the other            */
    size_t *start;              /* [n + 1] token i is bytes[start[i]] .. bytes[start[i+1]-1] */
    unsigned char *kind;        /* [n]                                                       */
    float *score;               /* [n], or NULL: merges count                                */
    int32_t *slot;              /* [slots] ids by what they stand for; -1 = free             */
    vocab_merge *merge;         /* [merge_slots] by left and right; left -1 = free           */
    size_t slots, merge_slots;  /* powers of two                                       */
    vocab_entry *special;       /* [n_special] user-defined and control tokens by name       */
    size_t n_special, longest;  /* of their names, in bytes                            */
    unsigned char first[256];   /* 1 = the name of a special token begins with this byte     */
    const splitter *words;      /* NULL = a text is one word                                 */
    int space_first, bos_first; /* a text begins with a space; with bos            */
    int32_t byte_id[256];       /* the token of a single byte                                */
    int32_t bos, eos, eot;      /* -1 = none                                                 */
} vocab;

/* ---- what tokens stand for ---- */

static inline void vocab_free(vocab *v) {
    free(v->bytes);
    free(v->start);
    free(v->kind);
    free(v->score);
    free(v->slot);
    free(v->merge);
    free(v->special);
    memset(v, 0, sizeof *v);
}

static inline int vocab_hex(char c) { /* -1 = no hexadecimal digit */
    const char *digits = "0123456789ABCDEF", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* The byte that a character of a "gpt2" name stands for: printable bytes of Latin-1 for themselves, the other 68 in
   ascending order for U+0100 and on. -1 = none. */
static inline int vocab_byte(uint32_t code) {
    uint32_t at = 0x100;
    if ((code > 32 && code < 127) || (code > 160 && code < 256 && code != 173)) return (int)code;
    for (int b = 0; b < 256 && code < 0x144; b++) {
        if ((b > 32 && b < 127) || (b > 160 && b != 173)) continue;
        if (at++ == code) return b;
    }
    return -1;
}

/* A name as the bytes it stands for, into out, which has room for name.n; returns how many. */
static inline size_t vocab_plain(const vocab *v, gguf_str name, char *out) {
    size_t at = 0, i = 0, n = 0;
    while (i < name.n) {
        uint32_t code;
        size_t size = utf8_next(name.p + i, name.n - i, &code);
        int byte = v->words ? vocab_byte(code) : code == 0x2581 ? ' ' : -1;
        if (byte >= 0) {
            out[at++] = (char)byte;
        } else {
            for (n = 0; n < size; n++) out[at++] = name.p[i + n];
        }
        i += size;
    }
    return at;
}

/* Appends what a token stands for to v->bytes; never longer than its name. */
static inline int vocab_spell(vocab *v, gguf *g, int id, gguf_str name) {
    size_t at = v->start[id];
    int kind = v->kind[id];
    if (kind == VOCAB_BYTE) {
        int high = name.n == 6 ? vocab_hex(name.p[3]) : -1, low = name.n == 6 ? vocab_hex(name.p[4]) : -1;
        if (high < 0 || low < 0 || memcmp(name.p, "<0x", 3) != 0 || name.p[5] != '>') {
            return gguf_fail(g, "a byte token is not named <0xHH>");
        }
        v->bytes[at++] = (char)(high * 16 + low);
    } else if (kind == VOCAB_USER && v->words) {
        memcpy(v->bytes + at, name.p, name.n);
        at += name.n;
    } else if (kind != VOCAB_CONTROL && kind != VOCAB_UNKNOWN) {
        at += vocab_plain(v, name, v->bytes + at);
    }
    v->start[id + 1] = at;
    if (at - v->start[id] == 1 && (kind == VOCAB_NORMAL || kind == VOCAB_BYTE)) {
        int32_t *known = &v->byte_id[(unsigned char)v->bytes[at - 1]];
        if (*known < 0 || kind == VOCAB_BYTE) *known = id;
    }
    return 0;
}

/* What a token stands for; length in *n, 0 for control tokens. */
static inline const char *vocab_text(const vocab *v, int32_t id, size_t *n) {
    *n = v->start[id + 1] - v->start[id];
    return v->bytes + v->start[id];
}

/* ---- finding tokens and merges ---- */

static inline size_t vocab_hash(const char *p, size_t n) { /* FNV-1a */
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)p[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

/* Where the token of n bytes at p is, or the free slot where it would be. */
static inline size_t vocab_slot(const vocab *v, const char *p, size_t n) {
    size_t at = vocab_hash(p, n) & (v->slots - 1);
    for (; v->slot[at] >= 0; at = (at + 1) & (v->slots - 1)) {
        size_t size;
        const char *text = vocab_text(v, v->slot[at], &size);
        if (size == n && memcmp(text, p, n) == 0) break;
    }
    return at;
}

static inline int32_t vocab_find(const vocab *v, const char *p, size_t n) { /* -1 = no such token */
    return v->slot[vocab_slot(v, p, n)];
}

static inline vocab_merge *vocab_pair(const vocab *v, int32_t left, int32_t right) { /* or where it would be */
    uint64_t h = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9E3779B97F4A7C15u;
    size_t at = (size_t)(h >> 32) & (v->merge_slots - 1);
    while (v->merge[at].left >= 0 && (v->merge[at].left != left || v->merge[at].right != right)) {
        at = (at + 1) & (v->merge_slots - 1);
    }
    return &v->merge[at];
}

static inline size_t vocab_room(size_t n) { /* a power of two, at least twice n */
    size_t room = 16;
    while (room < 2 * n) room *= 2;
    return room;
}

/* ---- reading ---- */

static inline int vocab_tokens(vocab *v, gguf *g, const gguf_str *names, size_t bytes) {
    v->bytes = (char *)malloc(bytes + 1);
    v->start = (size_t *)calloc((size_t)v->n + 1, sizeof *v->start);
    v->slots = vocab_room((size_t)v->n);
    v->slot = (int32_t *)malloc(v->slots * sizeof *v->slot);
    v->special = (vocab_entry *)calloc((size_t)v->n, sizeof *v->special);
    if (!v->bytes || !v->start || !v->slot || !v->special) return gguf_fail(g, "out of memory");
    memset(v->slot, 0xff, v->slots * sizeof *v->slot);
    memset(v->byte_id, 0xff, sizeof v->byte_id);
    for (int i = 0; i < v->n; i++) {
        size_t at;
        if (vocab_spell(v, g, i, names[i]) != 0) return -1;
        if ((v->kind[i] == VOCAB_USER || v->kind[i] == VOCAB_CONTROL) && names[i].n > 0) {
            v->special[v->n_special].name = names[i];
            v->special[v->n_special++].id = i;
            v->first[(unsigned char)names[i].p[0]] = 1;
            if (names[i].n > v->longest) v->longest = names[i].n;
        }
        if ((v->kind[i] != VOCAB_NORMAL && v->kind[i] != VOCAB_USER) || v->start[i + 1] == v->start[i]) continue;
        at = vocab_slot(v, v->bytes + v->start[i], v->start[i + 1] - v->start[i]);
        if (v->slot[at] < 0) v->slot[at] = i; /* of two that stand for the same, the first */
    }
    qsort(v->special, v->n_special, sizeof *v->special, gguf_compare);
    for (int i = 0; i < 256; i++) {
        if (v->byte_id[i] < 0) return gguf_fail(g, "the vocabulary has no token for byte %d", i);
    }
    return 0;
}

/* The token that a part of a merge names; text has room for it. */
static inline int32_t vocab_named(const vocab *v, const char *p, size_t n, char *text) {
    gguf_str s = { p, n };
    if (!v->words && n == 6 && memcmp(p, "<0x", 3) == 0 && vocab_hex(p[3]) >= 0 && vocab_hex(p[4]) >= 0) {
        return v->byte_id[vocab_hex(p[3]) * 16 + vocab_hex(p[4])];
    }
    n = vocab_plain(v, s, text);
    return n == 1 ? v->byte_id[(unsigned char)text[0]] : vocab_find(v, text, n);
}

/* Each merge is "left right"; what it makes is the token that stands for both in a row. */
static inline int vocab_merges(vocab *v, gguf *g, const gguf_pair *list, const gguf_str *texts, char *text) {
    v->merge_slots = vocab_room((size_t)list->count);
    v->merge = (vocab_merge *)malloc(v->merge_slots * sizeof *v->merge);
    if (!v->merge) return gguf_fail(g, "out of memory");
    memset(v->merge, 0xff, v->merge_slots * sizeof *v->merge);
    for (uint64_t i = 0; i < list->count; i++) {
        gguf_str s = texts[i];
        const char *space = s.n > 1 ? (const char *)memchr(s.p + 1, ' ', s.n - 1) : NULL;
        vocab_merge m = { -1, -1, -1, (int32_t)i }, *at;
        if (space) {
            size_t left = (size_t)(space - s.p), n[2];
            const char *p[2];
            m.left = vocab_named(v, s.p, left, text);
            m.right = vocab_named(v, space + 1, s.n - left - 1, text);
            if (m.left >= 0 && m.right >= 0) {
                p[0] = vocab_text(v, m.left, &n[0]);
                p[1] = vocab_text(v, m.right, &n[1]);
                memcpy(text, p[0], n[0]);
                memcpy(text + n[0], p[1], n[1]);
                m.made = vocab_find(v, text, n[0] + n[1]);
            }
        }
        if (m.made < 0) return gguf_fail(g, "a merge names a token that is not in the vocabulary");
        at = vocab_pair(v, m.left, m.right);
        if (at->left < 0) *at = m;
    }
    return 0;
}

static inline int vocab_scores(vocab *v, gguf *g) {
    const gguf_pair *p = gguf_find(g, "tokenizer.ggml.scores");
    if (!p || !p->is_array || p->kind != GGUF_F32 || p->count != (uint64_t)v->n) {
        return gguf_fail(g, "tokenizer.ggml.scores does not fit the tokens, and there are no merges");
    }
    v->score = (float *)malloc((size_t)v->n * sizeof *v->score);
    if (!v->score) return gguf_fail(g, "out of memory");
    for (int i = 0; i < v->n; i++) {
        uint32_t bits = (uint32_t)gguf_le(p->data + 4 * (size_t)i, 4);
        memcpy(&v->score[i], &bits, sizeof bits);
        if (!(v->score[i] >= -1e30f && v->score[i] <= 1e30f)) return gguf_fail(g, "a score is no number");
    }
    return 0;
}

static inline int32_t vocab_key(gguf *g, const vocab *v, const char *key, int32_t absent) {
    return gguf_find(g, key) ? (int32_t)gguf_need_int(g, key, -1, 0, v->n - 1) : absent;
}

/* The words of a "gpt2" vocabulary; -1 and an error if there is no such way to cut. */
static inline int vocab_words(vocab *v, gguf *g) {
    const gguf_pair *p = gguf_find(g, "tokenizer.ggml.pre");
    gguf_str pre = gguf_name("gpt-2");
    if (p && (p->is_array || !gguf_strings(p, &pre))) return gguf_fail(g, "tokenizer.ggml.pre is no name");
    for (size_t i = 0; i < sizeof splitters / sizeof *splitters; i++) {
        if (gguf_is(pre, splitters[i].name)) v->words = &splitters[i];
    }
    return v->words ? 0 : gguf_fail(g, "tokenizer.ggml.pre \"%.*s\" is not supported", gguf_show(pre), pre.p);
}

/* names and texts have room for all tokens and merges, text for the longest of them. */
static inline int vocab_read(vocab *v, gguf *g, const gguf_pair *tokens, const gguf_pair *kinds,
                             const gguf_pair *merges, gguf_str *names, gguf_str *texts, char *text) {
    int llama = !v->words;
    gguf_strings(tokens, names);
    for (int i = 0; i < v->n; i++) {
        uint64_t kind = gguf_le(kinds->data + 4 * (size_t)i, 4);
        v->kind[i] = (unsigned char)(kind < 256 ? kind : VOCAB_UNUSED);
    }
    if (vocab_tokens(v, g, names, tokens->bytes) != 0) return -1;
    if (merges) {
        gguf_strings(merges, texts);
        if (vocab_merges(v, g, merges, texts, text) != 0) return -1;
    } else if (!llama) {
        return gguf_fail(g, "the vocabulary has no merges");
    } else if (vocab_scores(v, g) != 0) {
        return -1;
    }
    v->bos = vocab_key(g, v, "tokenizer.ggml.bos_token_id", llama ? 1 : -1);
    v->eos = vocab_key(g, v, "tokenizer.ggml.eos_token_id", -1);
    v->eot = vocab_key(g, v, "tokenizer.ggml.eot_token_id", -1);
    v->space_first = gguf_need_int(g, "tokenizer.ggml.add_space_prefix", llama, 0, 1) != 0;
    v->bos_first = gguf_need_int(g, "tokenizer.ggml.add_bos_token", llama || v->words->whole, 0, 1) != 0 && v->bos >= 0;
    return g->error[0] ? -1 : 0;
}

/* 0 = fine, else -1 and g->error. g must stay until vocab_free, which is due in either case. */
static inline int vocab_init(vocab *v, gguf *g) {
    const gguf_pair *model = gguf_find(g, "tokenizer.ggml.model"), *tokens = gguf_find(g, "tokenizer.ggml.tokens");
    const gguf_pair *kinds = gguf_find(g, "tokenizer.ggml.token_type");
    const gguf_pair *merges = gguf_find(g, "tokenizer.ggml.merges");
    gguf_str kind, *names, *texts;
    char *text;
    int failed;
    memset(v, 0, sizeof *v);
    if (!model || model->is_array || !gguf_strings(model, &kind)
        || (!gguf_is(kind, "llama") && !gguf_is(kind, "gpt2"))) {
        return gguf_fail(g, "tokenizer.ggml.model is neither \"llama\" nor \"gpt2\"");
    }
    if (!tokens || !tokens->is_array || tokens->kind != GGUF_STRING || tokens->count < 2 || tokens->count > VOCAB_MAX) {
        return gguf_fail(g, "tokenizer.ggml.tokens is no list of tokens");
    }
    if (!kinds || !kinds->is_array || (kinds->kind != GGUF_I32 && kinds->kind != GGUF_U32)
        || kinds->count != tokens->count) {
        return gguf_fail(g, "tokenizer.ggml.token_type does not fit the tokens");
    }
    if (merges && (!merges->is_array || merges->kind != GGUF_STRING || merges->count > VOCAB_MAX)) {
        return gguf_fail(g, "tokenizer.ggml.merges is no list of strings");
    }
    if (gguf_is(kind, "gpt2") && vocab_words(v, g) != 0) return -1;
    v->n = (int)tokens->count;
    v->kind = (unsigned char *)malloc((size_t)v->n);
    names = (gguf_str *)calloc((size_t)v->n, sizeof *names);
    texts = (gguf_str *)calloc(merges ? (size_t)merges->count + 1 : 1, sizeof *texts);
    text = (char *)malloc(2 * tokens->bytes + (merges ? merges->bytes : 0) + 1);
    failed = v->kind && names && texts && text ? vocab_read(v, g, tokens, kinds, merges, names, texts, text)
                                               : gguf_fail(g, "out of memory");
    free(names);
    free(texts);
    free(text);
    return failed;
}

/* ---- text to tokens ---- */

/* A piece of the text while its neighbours are joined: n bytes from at on; n 0 = it is part of another. */
typedef struct {
    size_t at, n, before, after;
    int32_t id;
} vocab_piece;
/* Two neighbours that could be joined; best first: the lowest rank or highest score, of equals the one further left. */
typedef struct {
    double order;
    size_t left, n;
    int32_t made;
} vocab_joint;
typedef struct {
    const vocab *v;
    const char *text;
    vocab_piece *piece; /* [most] */
    vocab_joint *heap;  /* [3 * most]: at first one between any two, and two more for each join */
    size_t n_heap, most;
} vocab_work;

static inline int vocab_sooner(const vocab_joint *a, const vocab_joint *b) {
    return a->order != b->order ? a->order < b->order : a->left < b->left;
}

static inline void vocab_push(vocab_work *w, vocab_joint j) {
    size_t at = w->n_heap++;
    while (at > 0 && vocab_sooner(&j, &w->heap[(at - 1) / 2])) {
        w->heap[at] = w->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    w->heap[at] = j;
}

static inline vocab_joint vocab_pop(vocab_work *w) {
    vocab_joint top = w->heap[0], last = w->heap[--w->n_heap];
    size_t at = 0, child;
    while ((child = 2 * at + 1) < w->n_heap) {
        if (child + 1 < w->n_heap && vocab_sooner(&w->heap[child + 1], &w->heap[child])) child++;
        if (!vocab_sooner(&w->heap[child], &last)) break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return top;
}

/* Notes that pieces left and right could be joined, if they could. */
static inline void vocab_consider(vocab_work *w, size_t left, size_t right) {
    const vocab *v = w->v;
    const vocab_piece *a = &w->piece[left], *b = &w->piece[right];
    vocab_joint j = { 0, left, a->n + b->n, -1 };
    if (v->score) {
        j.made = vocab_find(v, w->text + a->at, j.n);
        if (j.made >= 0) j.order = -(double)v->score[j.made];
    } else {
        const vocab_merge *m = vocab_pair(v, a->id, b->id);
        if (m->left >= 0) {
            j.made = m->made;
            j.order = m->rank;
        }
    }
    if (j.made >= 0) vocab_push(w, j);
}

/* One word, bytes [at, at + n) of the text, into ids; returns how many. */
static inline size_t vocab_word(vocab_work *w, size_t at, size_t n, int32_t *ids) {
    const vocab *v = w->v;
    size_t pieces = 0, out = 0;
    int32_t whole = v->words && v->words->whole ? vocab_find(v, w->text + at, n) : -1;
    if (whole >= 0) {
        ids[0] = whole;
        return 1;
    }
    for (size_t i = at; i < at + n; pieces++) {
        uint32_t code;
        vocab_piece *p = &w->piece[pieces];
        p->at = i;
        p->n = v->score ? utf8_next(w->text + i, at + n - i, &code) : 1;
        p->id = v->score ? vocab_find(v, w->text + i, p->n) : v->byte_id[(unsigned char)w->text[i]];
        p->before = pieces - 1;
        p->after = pieces + 1;
        i += p->n;
    }
    w->n_heap = 0;
    for (size_t i = 0; i + 1 < pieces; i++) vocab_consider(w, i, i + 1);
    while (w->n_heap > 0) {
        vocab_joint j = vocab_pop(w);
        vocab_piece *a = &w->piece[j.left], *b;
        if (a->n == 0 || a->after >= pieces) continue;
        b = &w->piece[a->after];
        if (a->n + b->n != j.n) continue; /* one of the two has become longer meanwhile */
        a->n = j.n;
        a->id = j.made;
        b->n = 0;
        a->after = b->after;
        if (a->after < pieces) w->piece[a->after].before = j.left;
        if (j.left > 0) vocab_consider(w, a->before, j.left);
        if (a->after < pieces) vocab_consider(w, j.left, a->after);
    }
    for (size_t i = 0; i < pieces; i = w->piece[i].after) {
        const vocab_piece *p = &w->piece[i];
        for (size_t b = 0; p->id < 0 && b < p->n; b++) ids[out++] = v->byte_id[(unsigned char)w->text[p->at + b]];
        if (p->id >= 0) ids[out++] = p->id;
    }
    return out;
}

/* The longest special token whose name stands at p; control tokens only if they are wanted. -1 = none. */
static inline int32_t vocab_special(const vocab *v, const char *p, size_t n, int control, size_t *size) {
    if (!v->first[(unsigned char)p[0]]) return -1;
    for (*size = n < v->longest ? n : v->longest; *size > 0; (*size)--) {
        gguf_str s = { p, *size };
        const vocab_entry *e = (const vocab_entry *)bsearch(&s, v->special, v->n_special, sizeof *e, gguf_compare);
        if (e && (control || v->kind[e->id] == VOCAB_USER)) return e->id;
    }
    return -1;
}

/* Token ids of a text into ids [n + 1]; control 1 = names of control tokens stand for them. Returns how many, or
   (size_t)-1 if there is no memory for it. Cost: n log n. */
static inline size_t vocab_encode(const vocab *v, const char *text, size_t n, int control, int32_t *ids) {
    vocab_work w = { 0 };
    size_t out = 0, pad = v->space_first ? 1 : 0, from = pad, at = pad;
    char *copy = (char *)malloc(n + 2);
    w.v = v;
    w.text = copy;
    w.most = n + 1;
    w.piece = (vocab_piece *)malloc(w.most * sizeof *w.piece);
    w.heap = (vocab_joint *)malloc(3 * w.most * sizeof *w.heap);
    if (copy && w.piece && w.heap) {
        copy[0] = ' ';
        memcpy(copy + pad, text, n);
        while (at <= n + pad) {
            size_t size = 0, end = at;
            int32_t id = at < n + pad ? vocab_special(v, copy + at, n + pad - at, control, &size) : -1;
            if (id < 0 && at++ < n + pad) continue;
            if (end > from) { /* the text up to here; only its beginning gets a space */
                size_t begin = from == pad ? 0 : from;
                for (size_t part; begin < end; begin += part) {
                    part = v->words ? split_next(v->words, copy + begin, end - begin) : end - begin;
                    out += vocab_word(&w, begin, part, ids + out);
                }
            }
            if (id < 0) break;
            ids[out++] = id;
            from = at = end + size;
        }
    }
    free(copy);
    if (!w.piece || !w.heap || !copy) out = (size_t)-1;
    free(w.piece);
    free(w.heap);
    return out;
}
#endif /* VOCAB_H_INCLUDED */
