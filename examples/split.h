/* split.h - cuts a text into the words within which byte-pair merges happen, as the pre-tokenizers of GPT-2, Llama 3,
   Qwen 2, GPT-4o, Tekken and Command R do. Each is written as a regular expression where it comes from; they differ in
   so few places that one matcher with flags serves all:

       contractions | letters | numbers | punctuation | white space with newlines | white space

   split_next() says how long the first word of a text is. Cost: its length. */
#ifndef SPLIT_H_INCLUDED
#define SPLIT_H_INCLUDED
#include "unicode.h"
#include <stddef.h>
#include <string.h>

enum {
    SPLIT_FOLD = 1,      /* 's 't 're 've 'm 'll 'd in capitals too                                               */
    SPLIT_ANY_FIRST = 2, /* letters may begin with any one character, but no letter, number, newline; else a space */
    SPLIT_NEWLINES = 4,  /* punctuation takes newlines behind it; white space up to a newline is a word           */
    SPLIT_SLASH = 8,     /* .. and slashes                                                                        */
    SPLIT_CASE = 16,     /* a word of letters ends before a capital that follows a small one                      */
    SPLIT_TAIL = 32,     /* contractions belong to the word before them                                           */
    SPLIT_BARE = 64,     /* contractions are nothing special                                                      */
    SPLIT_DIGITS = 128   /* every digit is cut out first                                                          */
};
typedef struct {
    const char *name; /* tokenizer.ggml.pre                                                                    */
    int flags;
    int digits; /* most digits of a number; 0 = any, and a space may stand before them                   */
    int whole;  /* 1 = a word that is a token is one, whatever the merges say                            */
} splitter;

/* clang-format off */
static const splitter splitters[] = {
    { "gpt-2", 0, 0, 0 }, { "default", 0, 0, 0 }, { "olmo", 0, 0, 0 },
    { "llama-bpe", SPLIT_FOLD | SPLIT_ANY_FIRST | SPLIT_NEWLINES, 3, 1 },
    { "llama3", SPLIT_FOLD | SPLIT_ANY_FIRST | SPLIT_NEWLINES, 3, 1 },
    { "llama-v3", SPLIT_FOLD | SPLIT_ANY_FIRST | SPLIT_NEWLINES, 3, 1 },
    { "dbrx", SPLIT_FOLD | SPLIT_ANY_FIRST | SPLIT_NEWLINES, 3, 0 },
    { "smaug-bpe", SPLIT_FOLD | SPLIT_ANY_FIRST | SPLIT_NEWLINES, 3, 0 },
    { "qwen2", SPLIT_FOLD | SPLIT_ANY_FIRST | SPLIT_NEWLINES, 1, 0 },
    { "deepseek-r1-qwen", SPLIT_FOLD | SPLIT_ANY_FIRST | SPLIT_NEWLINES, 1, 0 },
    { "gpt-4o", SPLIT_FOLD | SPLIT_ANY_FIRST | SPLIT_NEWLINES | SPLIT_SLASH | SPLIT_CASE | SPLIT_TAIL, 3, 0 },
    { "tekken", SPLIT_ANY_FIRST | SPLIT_NEWLINES | SPLIT_SLASH | SPLIT_CASE | SPLIT_BARE, 1, 1 },
    { "command-r", SPLIT_DIGITS, 1, 0 }, { "starcoder", SPLIT_DIGITS, 1, 0 }, { "refact", SPLIT_DIGITS, 1, 0 },
    { "smollm", SPLIT_DIGITS, 1, 0 },
};
/* clang-format on */

/* ---- characters ---- */

enum { CHAR_END = 16, CHAR_SPACE, CHAR_NEWLINE }; /* besides the kinds of unicode.h; no-break and such are spaces */

static inline int unicode_kind(uint32_t code) {
    size_t low = 0, high = sizeof unicode_ranges / sizeof *unicode_ranges;
    int kind;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (unicode_ranges[middle] / 8 <= code) low = middle;
        else high = middle;
    }
    kind = (int)(unicode_ranges[low] % 8);
    if (kind == UNICODE_EVEN_UPPER) return code % 2 == 0 ? UNICODE_UPPER : UNICODE_LOWER;
    if (kind == UNICODE_ODD_UPPER) return code % 2 == 1 ? UNICODE_UPPER : UNICODE_LOWER;
    return kind;
}

/* Length of the character at p, 1 for a byte that begins none; *code is what it is. */
static inline size_t utf8_next(const char *p, size_t n, uint32_t *code) {
    unsigned char first = (unsigned char)p[0];
    size_t size = first < 0xC2 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 1;
    *code = size == 1 ? (first < 0x80 ? first : 0xFFFD) : first & (0xFFu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if (i >= n || ((unsigned char)p[i] & 0xC0) != 0x80) {
            *code = 0xFFFD;
            return 1;
        }
        *code = *code << 6 | ((unsigned char)p[i] & 0x3Fu);
    }
    return size;
}

/* Kind of the character at text[at], and where the next one begins. */
static inline int split_kind(const char *text, size_t n, size_t at, size_t *next) {
    uint32_t c;
    *next = at;
    if (at >= n) return CHAR_END;
    *next = at + utf8_next(text + at, n - at, &c);
    if (c == '\n' || c == '\r') return CHAR_NEWLINE;
    if (c == ' ' || (c >= 9 && c <= 12) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A)
        || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000) {
        return CHAR_SPACE;
    }
    return unicode_kind(c);
}
static inline int split_letter(int kind) { return kind >= UNICODE_UPPER && kind <= UNICODE_LETTER; }
static inline int split_mixed(int kind) { return kind == UNICODE_LETTER || kind == UNICODE_MARK; } /* of no case */
static inline int split_upper(int kind) { return kind == UNICODE_UPPER || split_mixed(kind); }
static inline int split_lower(int kind) { return kind == UNICODE_LOWER || split_mixed(kind); }
static inline int split_other(int kind) { return kind == UNICODE_OTHER || kind == UNICODE_MARK; } /* punctuation */

/* ---- kinds of words; each returns where the word ends, or `at` if there is none ---- */

static inline size_t split_contraction(const splitter *s, const char *text, size_t n, size_t at) {
    static const char *const tails[] = { "s", "t", "re", "ve", "m", "ll", "d" };
    if (at >= n || text[at] != '\'') return at;
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        size_t size = strlen(tails[i]), same = 0;
        while (same < size && at + 1 + same < n) {
            char c = text[at + 1 + same];
            if ((s->flags & SPLIT_FOLD) && c >= 'A' && c <= 'Z') c = (char)(c + 32);
            if (c != tails[i][same]) break;
            same++;
        }
        if (same == size) return at + 1 + size;
    }
    return at;
}

/* Capitals, then small letters; or capitals alone. Letters of no case and marks count as both, so a run of capitals
   that is not followed by a small letter ends behind the last of these, where there is one. */
static inline size_t split_cased(const char *text, size_t n, size_t at) {
    size_t end = at, next, after_mixed = at;
    int kind;
    while (split_upper(kind = split_kind(text, n, end, &next))) {
        end = next;
        if (split_mixed(kind)) after_mixed = end;
    }
    if (split_lower(kind)) {
        while (split_lower(split_kind(text, n, end, &next))) end = next;
        return end;
    }
    return after_mixed > at ? after_mixed : end;
}

static inline size_t split_letters(const splitter *s, const char *text, size_t n, size_t at) {
    size_t next, from = at, end;
    int kind = split_kind(text, n, at, &next);
    int first = s->flags & SPLIT_ANY_FIRST ? split_other(kind) || kind == CHAR_SPACE : at < n && text[at] == ' ';
    if (kind == CHAR_END) return at;
    if (first) from = next;
    if (s->flags & SPLIT_CASE) {
        end = split_cased(text, n, from);
        if (end == from && first) end = split_cased(text, n, from = at); /* a mark may also be a letter */
        if (end == from) return at;
        return s->flags & SPLIT_TAIL ? split_contraction(s, text, n, end) : end;
    }
    for (end = from; split_letter(split_kind(text, n, end, &next));) end = next;
    return end == from ? at : end;
}

static inline size_t split_numbers(const splitter *s, const char *text, size_t n, size_t at) {
    size_t next, end = at;
    int digits = 0;
    if (s->digits == 0 && text[at] == ' ') end++;
    while ((s->digits == 0 || digits < s->digits) && split_kind(text, n, end, &next) == UNICODE_NUMBER) {
        end = next;
        digits++;
    }
    return digits ? end : at;
}

static inline size_t split_punctuation(const splitter *s, const char *text, size_t n, size_t at) {
    size_t next, from = at + (text[at] == ' '), end = from;
    while (split_other(split_kind(text, n, end, &next))) end = next;
    if (end == from) return at;
    while ((s->flags & SPLIT_NEWLINES) && end < n
           && (text[end] == '\n' || text[end] == '\r' || ((s->flags & SPLIT_SLASH) && text[end] == '/')))
        end++;
    return end;
}

/* White space: up to its last newline where those count; else all of it but the last, which the next may take. */
static inline size_t split_space(const splitter *s, const char *text, size_t n, size_t at) {
    size_t next, end = at, last = at, newline = at;
    int kind;
    while ((kind = split_kind(text, n, end, &next)) == CHAR_SPACE || kind == CHAR_NEWLINE) {
        last = end;
        end = next;
        if (kind == CHAR_NEWLINE) newline = end;
    }
    if ((s->flags & SPLIT_NEWLINES) && newline > at) return newline;
    if (kind == CHAR_END || ((s->flags & SPLIT_DIGITS) && kind == UNICODE_NUMBER)) return end;
    return last > at ? last : end;
}

/* Length of the first word of text [n], n > 0. */
static inline size_t split_next(const splitter *s, const char *text, size_t n) {
    size_t end = 0;
    if (!(s->flags & (SPLIT_TAIL | SPLIT_BARE))) end = split_contraction(s, text, n, 0);
    if (end == 0) end = split_letters(s, text, n, 0);
    if (end == 0) end = split_numbers(s, text, n, 0);
    if (end == 0) end = split_punctuation(s, text, n, 0);
    if (end == 0) end = split_space(s, text, n, 0);
    return end ? end : 1;
}
#endif /* SPLIT_H_INCLUDED */
