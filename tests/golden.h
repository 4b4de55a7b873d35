/* golden.h - reads the cases of tests/golden/ (format: tests/golden/README.md). A case is NAME.txt and NAME.bin.

       golden_list cases = golden_cases("gqa");             // every case of that kind, sorted by name
       for (int i = 0; i < cases.n; i++) {
           golden g;
           if (!golden_open(&g, cases.name[i])) continue;   // a failed check has been counted
           int heads = golden_int(&g, "n_heads");
           const float *q = golden_f32(&g, "q");            // NULL and a failed check if it is not there
       }

   The directory is $SWA_GOLDEN_DIR or tests/golden, so another set of the same kinds can be run as it is.
   All memory comes from t_alloc: it lives until the test ends. */
#ifndef SWA_TEST_GOLDEN_H
#define SWA_TEST_GOLDEN_H
#include "test.h"
#include <dirent.h>

#define GOLDEN_MAX 256
typedef struct {
    int n;
    char name[GOLDEN_MAX][96];
} golden_list;
typedef struct {
    const char *text;
    unsigned char *data;
    size_t bytes;
    char name[96];
} golden;
/* type: 4 = f32, 8 = f64, 'i' = i32, 'u' = u8 */
typedef struct {
    int type, n_dims;
    int64_t dim[8];
    size_t n, offset;
} golden_tensor;

static inline const char *golden_dir(void) {
    const char *dir = getenv("SWA_GOLDEN_DIR");
    return dir && *dir ? dir : "tests/golden";
}
static inline unsigned char *golden_slurp(const char *name, const char *ending, size_t *bytes) {
    char path[512];
    FILE *f;
    long size = -1;
    unsigned char *p = NULL;
    snprintf(path, sizeof path, "%s/%s%s", golden_dir(), name, ending);
    f = fopen(path, "rb");
    if (f && fseek(f, 0, SEEK_END) == 0 && (size = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0) {
        p = (unsigned char *)t_alloc((size_t)size + 1);
        if (fread(p, 1, (size_t)size, f) != (size_t)size) p = NULL;
        else p[size] = 0;
    }
    if (f) fclose(f);
    *bytes = p ? (size_t)size : 0;
    return p;
}

/* The value of `key = value`, up to the end of its line; NULL if there is none. */
static inline const char *golden_find(const golden *g, const char *key) {
    size_t len = strlen(key);
    for (const char *s = g->text; s && *s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL)
        if (!strncmp(s, key, len) && !strncmp(s + len, " = ", 3)) return s + len + 3;
    return NULL;
}
static inline int golden_has(const golden *g, const char *key) { return golden_find(g, key) != NULL; }
static inline double golden_num(const golden *g, const char *key) {
    const char *s = golden_find(g, key);
    return s ? strtod(s, NULL) : 0; /* absent = 0: the manifests leave out what is off */
}
static inline int golden_int(const golden *g, const char *key) { return (int)golden_num(g, key); }
/* The idx-th word of a list into out; 0 if the list is shorter. */
static inline int golden_word(const golden *g, const char *key, int idx, char *out, size_t size) {
    const char *s = golden_find(g, key);
    size_t len = 0;
    for (; s && idx > 0; idx--) {
        s += strcspn(s, " \n");
        if (*s != ' ') return 0;
        s++;
    }
    if (s) len = strcspn(s, " \n");
    if (!len || len >= size) return 0;
    memcpy(out, s, len);
    out[len] = 0;
    return 1;
}
static inline int golden_item(const golden *g, const char *key, int idx) {
    char word[32];
    return golden_word(g, key, idx, word, sizeof word) ? atoi(word) : 0;
}
static inline int golden_is(const golden *g, const char *kind) {
    char word[64];
    return golden_word(g, "kind", 0, word, sizeof word) && !strcmp(word, kind);
}

/* Reads one `tensor NAME TYPE dims @OFFSET` line; returns where the next line begins. */
static inline const char *golden_line(const char *s, char *name, size_t size, golden_tensor *t) {
    char type[8] = "";
    int used = 0;
    long long v;
    const char *end = strchr(s, '\n');
    memset(t, 0, sizeof *t);
    *name = 0;
    if (!strncmp(s, "tensor ", 7) && size >= 96 && sscanf(s + 7, "%95s %7s%n", name, type, &used) == 2) {
        t->type = !strcmp(type, "f64") ? 8 : !strcmp(type, "f32") ? 4 : type[0];
        t->n = 1;
        for (s += 7 + used; *s == ' ' && s[1] != '@' && t->n_dims < 8; s += used) {
            if (sscanf(s, " %lld%n", &v, &used) != 1) break;
            t->dim[t->n_dims++] = v;
            t->n *= (size_t)v;
        }
        if (sscanf(s, " @%lld", &v) == 1) t->offset = (size_t)v;
    }
    return end ? end + 1 : NULL;
}
static inline size_t golden_width(int type) { return type == 8 ? 8 : type == 'u' ? 1 : 4; }

/* Finds a tensor; the last dimensions are those of the manifest. */
static inline int golden_get(const golden *g, const char *name, golden_tensor *t) {
    char have[96];
    for (const char *s = g->text; s && *s;) {
        s = golden_line(s, have, sizeof have, t);
        if (!strcmp(have, name)) return t->offset + t->n * golden_width(t->type) <= g->bytes;
    }
    return 0;
}
static inline const void *golden_data(const golden *g, const char *name, int type) {
    golden_tensor t;
    int found = golden_get(g, name, &t) && t.type == type;
    if (!found && (t_.checks++, t_fail("golden.h", __LINE__))) printf("%s has no such tensor: %s\n", g->name, name);
    return found ? g->data + t.offset : NULL;
}
static inline int golden_has_tensor(const golden *g, const char *name) {
    golden_tensor t;
    return golden_get(g, name, &t);
}
static inline size_t golden_count(const golden *g, const char *name) {
    golden_tensor t;
    return golden_get(g, name, &t) ? t.n : 0;
}
static inline const float *golden_f32(const golden *g, const char *name) {
    return (const float *)golden_data(g, name, 4);
}
static inline const double *golden_f64(const golden *g, const char *name) {
    return (const double *)golden_data(g, name, 8);
}
static inline const int32_t *golden_i32(const golden *g, const char *name) {
    return (const int32_t *)golden_data(g, name, 'i');
}
static inline const unsigned char *golden_u8(const golden *g, const char *name) {
    return (const unsigned char *)golden_data(g, name, 'u');
}
/* f64 narrowed, for slopes and the like; NULL if the case has none. */
static inline const float *golden_narrow(const golden *g, const char *name) {
    golden_tensor t;
    float *out;
    const double *in;
    if (!golden_get(g, name, &t) || t.type != 8) return NULL;
    in = (const double *)(const void *)(g->data + t.offset);
    out = t_floats(t.n);
    for (size_t i = 0; i < t.n; i++) out[i] = (float)in[i];
    return out;
}

/* The files are little-endian; on another machine every tensor is turned once, at opening. */
static inline void golden_swap(golden *g) {
    const uint16_t one = 1;
    char name[96];
    golden_tensor t;
    if (*(const unsigned char *)&one == 1) return;
    for (const char *s = g->text; s && *s;) {
        size_t w, total;
        s = golden_line(s, name, sizeof name, &t);
        w = golden_width(t.type);
        total = *name && t.offset + t.n * w <= g->bytes ? t.n : 0;
        for (size_t i = 0; i < total; i++)
            for (size_t b = 0; b < w / 2; b++) {
                unsigned char *p = g->data + t.offset + i * w, x = p[b];
                p[b] = p[w - 1 - b];
                p[w - 1 - b] = x;
            }
    }
}
static inline int golden_open(golden *g, const char *name) {
    size_t text_bytes;
    snprintf(g->name, sizeof g->name, "%s", name);
    g->text = (const char *)golden_slurp(name, ".txt", &text_bytes);
    g->data = golden_slurp(name, ".bin", &g->bytes);
    t_label("%s", name);
    if (!CHECK(g->text != NULL && g->data != NULL)) return 0;
    golden_swap(g);
    return 1;
}
static inline int golden_order(const void *a, const void *b) { return strcmp((const char *)a, (const char *)b); }
/* The cases of a kind; kind NULL = all. An empty list is a failed check: a lost directory is no success. */
static inline golden_list golden_cases(const char *kind) {
    golden_list list;
    struct dirent *e;
    DIR *dir = opendir(golden_dir());
    list.n = 0;
    while (dir && (e = readdir(dir)) != NULL) {
        size_t len = strlen(e->d_name);
        golden g;
        if (len < 5 || len >= 96 || strcmp(e->d_name + len - 4, ".txt") != 0 || list.n == GOLDEN_MAX) continue;
        memcpy(list.name[list.n], e->d_name, len - 4);
        list.name[list.n][len - 4] = 0;
        g.text = (const char *)golden_slurp(list.name[list.n], ".txt", &g.bytes);
        if (g.text && (!kind || golden_is(&g, kind))) list.n++;
    }
    if (dir) closedir(dir);
    qsort(list.name, (size_t)list.n, sizeof list.name[0], golden_order);
    if (!list.n && (t_.checks++, t_fail("golden.h", __LINE__)))
        printf("no case of kind %s in %s\n", kind ? kind : "any", golden_dir());
    return list;
}
#endif /* SWA_TEST_GOLDEN_H */
