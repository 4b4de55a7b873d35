/* gguf_write.h - small GGUF files made in memory, so that a test says what is in them.

       gw f = { 0 };
       gw_text(&f, "general.architecture", "llama");  gw_int(&f, "llama.block_count", 2);
       gw_tensor(&f, "token_embd.weight", type, rows, cols, bytes);            // rows 0 = a vector
       size_t size;  unsigned char *file = gw_file(&f, &size);                 // t_alloc'ed; f can be thrown away */
#ifndef SWA_TEST_GGUF_WRITE_H
#define SWA_TEST_GGUF_WRITE_H
#include "../examples/gguf.h"
#include "test.h"

typedef struct {
    unsigned char *p;
    size_t n, room;
} gw_bytes;
typedef struct {
    gw_bytes keys, tensors, data;
    uint64_t n_keys, n_tensors;
} gw;

static inline void gw_put(gw_bytes *b, const void *p, size_t n) {
    if (b->n + n > b->room) {
        size_t room = 2 * (b->n + n) + 256;
        unsigned char *more = (unsigned char *)t_alloc(room);
        if (b->n) memcpy(more, b->p, b->n);
        b->p = more;
        b->room = room;
    }
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
}
static inline void gw_le(gw_bytes *b, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++, v >>= 8) {
        unsigned char c = (unsigned char)(v & 255);
        gw_put(b, &c, 1);
    }
}
static inline void gw_real(gw_bytes *b, float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    gw_le(b, bits, 4);
}
static inline void gw_string(gw_bytes *b, const char *s, size_t n) {
    gw_le(b, n, 8);
    gw_put(b, s, n);
}
static inline void gw_key(gw *f, const char *key, uint32_t kind) {
    gw_string(&f->keys, key, strlen(key));
    gw_le(&f->keys, kind, 4);
    f->n_keys++;
}
static inline void gw_text(gw *f, const char *key, const char *value) {
    gw_key(f, key, GGUF_STRING);
    gw_string(&f->keys, value, strlen(value));
}
static inline void gw_int(gw *f, const char *key, uint32_t value) {
    gw_key(f, key, GGUF_U32);
    gw_le(&f->keys, value, 4);
}
static inline void gw_float(gw *f, const char *key, double value) {
    gw_key(f, key, GGUF_F32);
    gw_real(&f->keys, (float)value);
}
static inline void gw_flag(gw *f, const char *key, int value) {
    gw_key(f, key, GGUF_BOOL);
    gw_le(&f->keys, (uint64_t)value, 1);
}
static inline void gw_array(gw *f, const char *key, uint32_t kind, size_t n) { /* its elements follow: f->keys */
    gw_key(f, key, GGUF_ARRAY);
    gw_le(&f->keys, kind, 4);
    gw_le(&f->keys, n, 8);
}
static inline void gw_tensor(gw *f, const char *name, uint32_t type, int rows, int cols, const void *p) {
    size_t n = (size_t)(rows ? rows : 1) * (size_t)cols;
    gw_string(&f->tensors, name, strlen(name));
    gw_le(&f->tensors, rows ? 2 : 1, 4);
    gw_le(&f->tensors, (uint64_t)cols, 8);
    if (rows) gw_le(&f->tensors, (uint64_t)rows, 8);
    gw_le(&f->tensors, type, 4);
    while (f->data.n % 32) gw_le(&f->data, 0, 1);
    gw_le(&f->tensors, f->data.n, 8);
    gw_put(&f->data, p, gguf_bytes(type, n));
    f->n_tensors++;
}
static inline unsigned char *gw_file(const gw *f, size_t *size) {
    gw_bytes b = { NULL, 0, 0 };
    unsigned char *exact;
    gw_put(&b, "GGUF", 4);
    gw_le(&b, 3, 4);
    gw_le(&b, f->n_tensors, 8);
    gw_le(&b, f->n_keys, 8);
    gw_put(&b, f->keys.p, f->keys.n);
    gw_put(&b, f->tensors.p, f->tensors.n);
    while (b.n % 32) gw_le(&b, 0, 1);
    gw_put(&b, f->data.p, f->data.n);
    exact = (unsigned char *)t_alloc(b.n);
    memcpy(exact, b.p, b.n);
    *size = b.n;
    return exact;
}
#endif /* SWA_TEST_GGUF_WRITE_H */
