/* gguf.h - reads GGUF model files (versions 2 and 3, little-endian) from memory or from a path.

   Nothing in a file is trusted: every count, length and offset is checked against the bytes that are there before
   it is used, names are unique, and no two tensors share a byte: what is as large as the tensors together is no larger
   than the file. Memory taken here is at most a few times the metadata: a file given by its path is mapped, not read,
   where the system can. A file that breaks a rule is refused with one line in `error`; so is a tensor that is not F32,
   F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K, Q6_K or MXFP4.

       gguf g;
       if (gguf_load(&g, "model.gguf") != 0) puts(g.error);      // or gguf_parse(&g, bytes, size): bytes must stay
       const gguf_tensor *t = gguf_tensor_named(&g, "token_embd.weight");
       ...
       gguf_free(&g);                                            // always, also after an error */
#ifndef GGUF_H_INCLUDED
#define GGUF_H_INCLUDED
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#define GGUF_MAPS 1
#else
#define GGUF_MAPS 0
#endif

/* Kinds of metadata values, numbered as in the file. */
enum {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_KINDS
};
/* Types of tensors, likewise. */
enum {
    GGUF_TENSOR_F32 = 0,
    GGUF_TENSOR_F16 = 1,
    GGUF_TENSOR_Q4_0 = 2,
    GGUF_TENSOR_Q8_0 = 8,
    GGUF_TENSOR_Q4_K = 12,
    GGUF_TENSOR_Q5_K = 13,
    GGUF_TENSOR_Q6_K = 14,
    GGUF_TENSOR_BF16 = 30,
    GGUF_TENSOR_MXFP4 = 39
};

#define GGUF_MAX_DIMS 4

typedef struct {
    const char *p;
    size_t n;
} gguf_str; /* n bytes, not terminated */
typedef struct {
    gguf_str key;
    uint32_t kind; /* of the value, or of an array's elements */
    int is_array;
    uint64_t count; /* elements; 1 for a plain value */
    const unsigned char *data;
    size_t bytes; /* of all elements, as they lie in the file */
} gguf_pair;
typedef struct {
    gguf_str name;
    uint32_t type, n_dims;
    uint64_t dims[GGUF_MAX_DIMS]; /* dims[0] is the fastest; missing ones are 1 */
    size_t n, bytes;              /* elements, and what they take */
    const unsigned char *data;    /* little-endian, of no particular alignment in memory */
} gguf_tensor;
typedef struct {
    gguf_pair *pairs;     /* [n_pairs], sorted by key */
    gguf_tensor *tensors; /* [n_tensors], sorted by name */
    size_t n_pairs, n_tensors;
    unsigned char *file; /* what gguf_load read or mapped; NULL after gguf_parse */
    size_t mapped;       /* bytes at file that are a mapping; 0 = it was read */
    char error[200];
} gguf;

/* ---- reading bytes ---- */

typedef struct {
    const unsigned char *at;
    size_t left;
} gguf_in;

static inline const unsigned char *gguf_take(gguf_in *in, uint64_t n) { /* NULL = fewer than n bytes are left */
    const unsigned char *p = in->at;
    if (n > in->left) return NULL;
    in->at += n;
    in->left -= (size_t)n;
    return p;
}

static inline uint64_t gguf_le(const unsigned char *p, int bytes) {
    uint64_t v = 0;
    for (int i = bytes - 1; i >= 0; i--) v = v << 8 | p[i];
    return v;
}

static inline int gguf_u32(gguf_in *in, uint32_t *v) {
    const unsigned char *p = gguf_take(in, 4);
    if (p) *v = (uint32_t)gguf_le(p, 4);
    return p != NULL;
}

static inline int gguf_u64(gguf_in *in, uint64_t *v) {
    const unsigned char *p = gguf_take(in, 8);
    if (p) *v = gguf_le(p, 8);
    return p != NULL;
}

static inline int gguf_take_str(gguf_in *in, gguf_str *s) {
    uint64_t n;
    if (!gguf_u64(in, &n)) return 0;
    s->p = (const char *)gguf_take(in, n);
    s->n = (size_t)n;
    return s->p != NULL;
}

/* ---- errors and names ---- */

/* Writes the error line and returns -1. The first error stays: it is the cause of those that follow. Names from the
   file may hold anything: control bytes become '?'. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3))) static inline int gguf_fail(gguf *g, const char *format, ...);
#endif
static inline int gguf_fail(gguf *g, const char *format, ...) {
    va_list args;
    if (g->error[0]) return -1;
    va_start(args, format);
    vsnprintf(g->error, sizeof g->error, format, args);
    va_end(args);
    for (char *c = g->error; *c; c++) {
        if ((unsigned char)*c < 32 || (unsigned char)*c > 126) *c = '?';
    }
    return -1;
}

static inline int gguf_show(gguf_str s) { /* precision for printing a name with %.*s */
    return s.n < 64 ? (int)s.n : 64;
}

/* Compares the names that pairs, tensors and plain gguf_str begin with. */
static inline int gguf_compare(const void *a, const void *b) {
    const gguf_str *x = (const gguf_str *)a, *y = (const gguf_str *)b;
    int c = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
    return c ? c : (x->n > y->n) - (x->n < y->n);
}

static inline gguf_str gguf_name(const char *text) {
    gguf_str s;
    s.p = text;
    s.n = strlen(text);
    return s;
}

static inline int gguf_is(gguf_str s, const char *text) { return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0; }

/* ---- parsing ---- */

static inline int gguf_kind_bytes(uint32_t kind) { /* 0 = strings, arrays and unknown kinds */
    static const unsigned char size[GGUF_KINDS] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    return kind < GGUF_KINDS ? size[kind] : 0;
}

static inline int gguf_values(gguf_in *in, gguf_pair *p) { /* 1 = all there */
    int size = gguf_kind_bytes(p->kind);
    p->data = in->at;
    if (p->kind == GGUF_STRING) {
        gguf_str s;
        for (uint64_t i = 0; i < p->count; i++) {
            if (!gguf_take_str(in, &s)) return 0;
        }
    } else if (p->count > in->left / (size_t)size || !gguf_take(in, p->count * (uint64_t)size)) {
        return 0;
    }
    p->bytes = (size_t)(in->at - p->data);
    return 1;
}

static inline int gguf_parse_pair(gguf *g, gguf_in *in, gguf_pair *p) {
    if (!gguf_take_str(in, &p->key) || !gguf_u32(in, &p->kind)) {
        return gguf_fail(g, "the file ends in its metadata");
    }
    p->count = 1;
    p->is_array = p->kind == GGUF_ARRAY;
    if (p->is_array && (!gguf_u32(in, &p->kind) || !gguf_u64(in, &p->count))) {
        return gguf_fail(g, "the file ends in its metadata");
    }
    if (p->kind != GGUF_STRING && gguf_kind_bytes(p->kind) == 0) {
        return gguf_fail(g, "key %.*s holds values of unknown kind %lu", gguf_show(p->key), p->key.p,
                         (unsigned long)p->kind);
    }
    if (!gguf_values(in, p)) {
        return gguf_fail(g, "the file ends inside the value of key %.*s", gguf_show(p->key), p->key.p);
    }
    if (p->kind == GGUF_BOOL) {
        for (size_t i = 0; i < p->bytes; i++) {
            if (p->data[i] > 1) {
                return gguf_fail(g, "key %.*s: a boolean is neither 0 nor 1", gguf_show(p->key), p->key.p);
            }
        }
    }
    return 0;
}

/* Elements of a type come in blocks, a row in whole blocks. NULL = a type not read here. */
typedef struct {
    uint32_t type;
    unsigned short count, bytes;
} gguf_block;
static inline const gguf_block *gguf_block_of(uint32_t type) {
    static const gguf_block blocks[] = {
        { GGUF_TENSOR_F32, 1, 4 },      { GGUF_TENSOR_F16, 1, 2 },      { GGUF_TENSOR_BF16, 1, 2 },
        { GGUF_TENSOR_Q8_0, 32, 34 },   { GGUF_TENSOR_Q4_0, 32, 18 },   { GGUF_TENSOR_MXFP4, 32, 17 },
        { GGUF_TENSOR_Q4_K, 256, 144 }, { GGUF_TENSOR_Q5_K, 256, 176 }, { GGUF_TENSOR_Q6_K, 256, 210 }
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        if (blocks[i].type == type) return &blocks[i];
    }
    return NULL;
}

static inline size_t gguf_bytes(uint32_t type, size_t n) { /* of n elements, whole blocks, of a type read here */
    const gguf_block *b = gguf_block_of(type);
    return n / b->count * b->bytes;
}

/* Leaves the tensor's offset from the start of the data in *offset. */
static inline int gguf_parse_tensor(gguf *g, gguf_in *in, gguf_tensor *t, uint64_t *offset) {
    const gguf_block *block;
    size_t limit;
    if (!gguf_take_str(in, &t->name) || !gguf_u32(in, &t->n_dims)) {
        return gguf_fail(g, "the file ends in its tensor list");
    }
    if (t->n_dims < 1 || t->n_dims > GGUF_MAX_DIMS) {
        return gguf_fail(g, "tensor %.*s has %lu dimensions", gguf_show(t->name), t->name.p, (unsigned long)t->n_dims);
    }
    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++) {
        t->dims[i] = 1;
        if (i < t->n_dims && !gguf_u64(in, &t->dims[i])) return gguf_fail(g, "the file ends in its tensor list");
    }
    if (!gguf_u32(in, &t->type) || !gguf_u64(in, offset)) return gguf_fail(g, "the file ends in its tensor list");
    block = gguf_block_of(t->type);
    if (!block) {
        return gguf_fail(g, "tensor %.*s has type %lu, which cannot be read", gguf_show(t->name), t->name.p,
                         (unsigned long)t->type);
    }
    if (t->dims[0] % block->count != 0) {
        return gguf_fail(g, "tensor %.*s has rows that are no whole blocks", gguf_show(t->name), t->name.p);
    }
    limit = SIZE_MAX / block->bytes;
    t->n = 1;
    for (int i = 0; i < GGUF_MAX_DIMS; i++) {
        if (t->dims[i] == 0 || t->dims[i] > limit / t->n) {
            return gguf_fail(g, "tensor %.*s has an impossible shape", gguf_show(t->name), t->name.p);
        }
        t->n *= (size_t)t->dims[i];
    }
    t->bytes = gguf_bytes(t->type, t->n);
    return 0;
}

static inline int gguf_sort(gguf *g) { /* and refuse names that occur twice */
    if (g->n_pairs) qsort(g->pairs, g->n_pairs, sizeof *g->pairs, gguf_compare);
    if (g->n_tensors) qsort(g->tensors, g->n_tensors, sizeof *g->tensors, gguf_compare);
    for (size_t i = 1; i < g->n_pairs; i++) {
        gguf_str s = g->pairs[i].key;
        if (gguf_compare(&g->pairs[i - 1], &s) == 0) {
            return gguf_fail(g, "key %.*s occurs twice", gguf_show(s), s.p);
        }
    }
    for (size_t i = 1; i < g->n_tensors; i++) {
        gguf_str s = g->tensors[i].name;
        if (gguf_compare(&g->tensors[i - 1], &s) == 0) {
            return gguf_fail(g, "tensor %.*s occurs twice", gguf_show(s), s.p);
        }
    }
    return 0;
}

static inline const gguf_pair *gguf_find(const gguf *g, const char *key) { /* NULL = absent */
    gguf_str s = gguf_name(key);
    return g->n_pairs ? (const gguf_pair *)bsearch(&s, g->pairs, g->n_pairs, sizeof *g->pairs, gguf_compare) : NULL;
}

/* Reads an integer or boolean of any width: 1 = read, 0 = no such key, -1 = another kind, or it does not fit. */
static inline int gguf_int(const gguf *g, const char *key, int64_t *out) {
    const gguf_pair *p = gguf_find(g, key);
    uint64_t v;
    int size;
    if (!p) return 0;
    size = gguf_kind_bytes(p->kind);
    if (p->is_array || size == 0 || p->kind == GGUF_F32 || p->kind == GGUF_F64) return -1;
    v = gguf_le(p->data, size);
    if (p->kind == GGUF_I8 || p->kind == GGUF_I16 || p->kind == GGUF_I32 || p->kind == GGUF_I64) {
        uint64_t sign = (uint64_t)1 << (8 * size - 1);
        *out = v & sign ? -(int64_t)(sign - 1 - (v ^ sign)) - 1 : (int64_t)v;
        return 1;
    }
    if (v > INT64_MAX) return -1;
    *out = (int64_t)v;
    return 1;
}

static inline int gguf_compare_place(const void *a, const void *b) {
    const gguf_tensor *x = (const gguf_tensor *)a, *y = (const gguf_tensor *)b;
    return x->data < y->data ? -1 : x->data > y->data;
}

/* The tensors' data, each inside the bytes that follow the header, and apart from all others. */
static inline int gguf_place(gguf *g, gguf_in in, size_t header, const uint64_t *offsets) {
    int64_t alignment = 32;
    uint64_t skip;
    int found = gguf_int(g, "general.alignment", &alignment);
    if (found < 0 || alignment < 1 || alignment > 1 << 20 || (alignment & (alignment - 1)) != 0) {
        return gguf_fail(g, "general.alignment is no power of two up to 2^20");
    }
    skip = (uint64_t)(-(int64_t)(header % (size_t)alignment) & (alignment - 1));
    if (g->n_tensors && !gguf_take(&in, skip)) return gguf_fail(g, "the file ends before its tensor data");
    for (size_t i = 0; i < g->n_tensors; i++) {
        gguf_tensor *t = &g->tensors[i];
        if (offsets[i] % (uint64_t)alignment != 0) {
            return gguf_fail(g, "tensor %.*s is not aligned", gguf_show(t->name), t->name.p);
        }
        if (offsets[i] > in.left || t->bytes > in.left - offsets[i]) {
            return gguf_fail(g, "the file ends inside tensor %.*s: it is cut short", gguf_show(t->name), t->name.p);
        }
        t->data = in.at + offsets[i];
    }
    if (g->n_tensors) qsort(g->tensors, g->n_tensors, sizeof *g->tensors, gguf_compare_place);
    for (size_t i = 1; i < g->n_tensors; i++) {
        const gguf_tensor *t = &g->tensors[i - 1];
        if (t[1].data < t->data + t->bytes) {
            return gguf_fail(g, "tensors %.*s and %.*s overlap", gguf_show(t->name), t->name.p, gguf_show(t[1].name),
                             t[1].name.p);
        }
    }
    return 0;
}

static inline int gguf_parse_body(gguf *g, gguf_in *in, size_t size, uint64_t n_pairs, uint64_t n_tensors) {
    uint64_t *offsets;
    int failed = 0;
    g->pairs = (gguf_pair *)calloc((size_t)n_pairs + 1, sizeof *g->pairs);
    g->tensors = (gguf_tensor *)calloc((size_t)n_tensors + 1, sizeof *g->tensors);
    offsets = (uint64_t *)calloc((size_t)n_tensors + 1, sizeof *offsets);
    if (!g->pairs || !g->tensors || !offsets) failed = gguf_fail(g, "out of memory");
    for (; !failed && g->n_pairs < n_pairs; g->n_pairs++) { failed = gguf_parse_pair(g, in, &g->pairs[g->n_pairs]); }
    /* The alignment is looked up by a search, so the pairs have to be sorted before tensors are placed. */
    if (!failed) failed = gguf_sort(g);
    for (; !failed && g->n_tensors < n_tensors; g->n_tensors++) {
        failed = gguf_parse_tensor(g, in, &g->tensors[g->n_tensors], &offsets[g->n_tensors]);
    }
    if (!failed) failed = gguf_place(g, *in, size - in->left, offsets);
    if (!failed) failed = gguf_sort(g);
    free(offsets);
    return failed;
}

static inline void gguf_free(gguf *g) {
    free(g->pairs);
    free(g->tensors);
#if GGUF_MAPS
    if (g->mapped) munmap(g->file, g->mapped);
    else free(g->file);
#else
    free(g->file);
#endif
    g->pairs = NULL;
    g->tensors = NULL;
    g->file = NULL;
    g->n_pairs = g->n_tensors = g->mapped = 0;
}

/* Reads a whole file that lies in memory; data must stay until gguf_free. 0 = fine, else -1 and g->error. */
static inline int gguf_parse(gguf *g, const void *data, size_t size) {
    /* A pair takes at least 13 bytes (length, kind, one byte), a tensor 32: no larger count can be honest. */
    enum { PAIR_BYTES = 13, TENSOR_BYTES = 32 };
    gguf_in in;
    uint32_t version;
    uint64_t n_pairs, n_tensors;
    memset(g, 0, sizeof *g);
    in.at = (const unsigned char *)data;
    in.left = size;
    if (size < 4 || memcmp(data, "GGUF", 4) != 0) return gguf_fail(g, "not a GGUF file");
    gguf_take(&in, 4);
    if (!gguf_u32(&in, &version)) return gguf_fail(g, "the file ends in its header");
    if (version != 2 && version != 3) {
        return gguf_fail(g, "GGUF version %lu; only little-endian versions 2 and 3 can be read",
                         (unsigned long)version);
    }
    if (!gguf_u64(&in, &n_tensors) || !gguf_u64(&in, &n_pairs)) return gguf_fail(g, "the file ends in its header");
    if (n_pairs > in.left / PAIR_BYTES || n_tensors > in.left / TENSOR_BYTES) {
        return gguf_fail(g, "the file is too short for the keys and tensors it announces");
    }
    return gguf_parse_body(g, &in, size, n_pairs, n_tensors);
}

/* Reads to the end, so it needs no file size (which pipes do not have); stops at four bytes if they are foreign. */
static inline int gguf_read(gguf *g, FILE *f) {
    size_t size = 0, room = 1 << 16;
    g->file = (unsigned char *)malloc(room);
    if (!g->file) return gguf_fail(g, "out of memory");
    size = fread(g->file, 1, 4, f);
    while (size >= 4 && memcmp(g->file, "GGUF", 4) == 0) {
        size_t got = fread(g->file + size, 1, room - size, f);
        size += got;
        if (size < room) break;
        if (room <= SIZE_MAX / 2) {
            unsigned char *more = (unsigned char *)realloc(g->file, room * 2);
            if (more) {
                g->file = more;
                room *= 2;
                continue;
            }
        }
        return gguf_fail(g, "out of memory");
    }
    if (ferror(f)) return gguf_fail(g, "read error: %s", strerror(errno));
    unsigned char *file = g->file;
    int failed = gguf_parse(g, file, size);
    g->file = file;
    return failed;
}

#if GGUF_MAPS
/* 1 = the file was mapped, and *failed says whether it could be parsed; 0 = it has to be read: a pipe, a directory. */
static inline int gguf_map(gguf *g, const char *path, int *failed) {
    struct stat s;
    int fd = open(path, O_RDONLY);
    void *p = MAP_FAILED;
    size_t size = 0;
    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 0 && (uint64_t)s.st_size <= SIZE_MAX / 2) {
        size = (size_t)s.st_size;
        p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (fd >= 0) close(fd);
    if (p == MAP_FAILED) return 0;
    *failed = gguf_parse(g, p, size);
    g->file = (unsigned char *)p;
    g->mapped = size;
    return 1;
}
#endif

static inline int gguf_load(gguf *g, const char *path) {
    FILE *f;
    int failed;
#if GGUF_MAPS
    if (gguf_map(g, path, &failed)) return failed;
#endif
    f = fopen(path, "rb");
    memset(g, 0, sizeof *g);
    if (!f) return gguf_fail(g, "%s", strerror(errno));
    failed = gguf_read(g, f);
    fclose(f);
    return failed;
}

/* ---- reading values ---- */

/* 1 = read, 0 = no such key, -1 = no floating-point number. */
static inline int gguf_float(const gguf *g, const char *key, double *out) {
    const gguf_pair *p = gguf_find(g, key);
    if (!p) return 0;
    if (p->is_array || (p->kind != GGUF_F32 && p->kind != GGUF_F64)) return -1;
    if (p->kind == GGUF_F32) {
        uint32_t bits = (uint32_t)gguf_le(p->data, 4);
        float v;
        memcpy(&v, &bits, sizeof v);
        *out = (double)v;
    } else {
        uint64_t bits = gguf_le(p->data, 8);
        memcpy(out, &bits, sizeof *out);
    }
    return 1;
}

/* Strings of a value or array into out [p->count]. 0 = p is NULL or holds no strings. */
static inline int gguf_strings(const gguf_pair *p, gguf_str *out) {
    gguf_in in;
    if (!p || p->kind != GGUF_STRING) return 0;
    in.at = p->data;
    in.left = p->bytes;
    for (uint64_t i = 0; i < p->count; i++) {
        if (!gguf_take_str(&in, &out[i])) return 0;
    }
    return 1;
}

static inline const gguf_tensor *gguf_tensor_named(const gguf *g, const char *name) { /* NULL = absent */
    gguf_str s = gguf_name(name);
    if (!g->n_tensors) return NULL;
    return (const gguf_tensor *)bsearch(&s, g->tensors, g->n_tensors, sizeof *g->tensors, gguf_compare);
}

/* Widens IEEE half precision; exact for every value. */
static inline float gguf_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = h >> 10 & 31u, mantissa = h & 1023u, bits;
    float v;
    if (exponent == 0) { /* zero and subnormals: mantissa * 2^-24 */
        v = (float)mantissa / 16777216.0f;
        return sign ? -v : v;
    }
    bits = sign | (exponent == 31 ? 255u : exponent + 112u) << 23 | mantissa << 13;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* All elements as f32 into out [t->n]. */
static inline void gguf_widen(const gguf_tensor *t, float *out) {
    for (size_t i = 0; i < t->n; i++) {
        if (t->type == GGUF_TENSOR_F16) {
            out[i] = gguf_f16((uint16_t)gguf_le(t->data + 2 * i, 2));
        } else {
            uint32_t bits = t->type == GGUF_TENSOR_F32 ? (uint32_t)gguf_le(t->data + 4 * i, 4)
                                                       : (uint32_t)gguf_le(t->data + 2 * i, 2) << 16;
            memcpy(&out[i], &bits, sizeof bits);
        }
    }
}

/* ---- what a model cannot do without: the same, with an error line when it is not there ---- */

/* An integer in lo..hi; a key that is absent counts as `absent`, or is an error if that is negative. */
static inline int64_t gguf_need_int(gguf *g, const char *key, int64_t absent, int64_t lo, int64_t hi) {
    int64_t v = absent;
    int found = gguf_int(g, key, &v);
    if (found == 0 && absent >= 0) return absent;
    if (found == 0) gguf_fail(g, "the file lacks %s", key);
    else if (found > 0 && v >= lo && v <= hi) return v;
    else gguf_fail(g, "impossible value of %s", key);
    return lo;
}

static inline double gguf_need_positive(gguf *g, const char *key, double absent) {
    double v = absent;
    int found = gguf_float(g, key, &v);
    if (found >= 0 && v > 0.0 && v < 1e30) return v;
    gguf_fail(g, "impossible value of %s", key);
    return absent;
}

/* A matrix of rows x cols floats (F32, F16, BF16), cols fastest; cols 0 = a vector. NULL = absent, or another. */
static inline const gguf_tensor *gguf_need_tensor(gguf *g, const char *name, int rows, int cols) {
    const gguf_tensor *t = gguf_tensor_named(g, name);
    uint64_t fast = (uint64_t)(cols ? cols : rows), slow = cols ? (uint64_t)rows : 1;
    if (!t) {
        gguf_fail(g, "the file lacks tensor %s", name);
    } else if (t->dims[0] != fast || t->dims[1] != slow || t->dims[2] != 1 || t->dims[3] != 1) {
        gguf_fail(g, "tensor %s has another shape than the metadata says", name);
    } else if (gguf_block_of(t->type)->count > 1) {
        gguf_fail(g, "tensor %s is quantised, which is not supported here", name);
    } else {
        return t;
    }
    return NULL;
}
#endif /* GGUF_H_INCLUDED */
