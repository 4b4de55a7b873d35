/* Misuse: every public function with NULL, negative, zero, huge, inconsistent and untimely arguments. A row names
   the status it wants; a refused call must leave the cache's whole memory, its guards and all outputs as they
   were. The run fails if a status was never seen, or if swa.h has a function that no row calls. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include <ctype.h>
#include "test.h"

enum { N_STATUS = SWA_ERR_BLOB + 1, GUARD = 96, MAX_NAMES = 160 };
static long status_seen[N_STATUS];
static const char *called[MAX_NAMES];
static int n_called;

/* A small cache in use: layer 0 slides over 4, layer 1 is causal; sequence 0 holds 20 tokens, 1 and 2 none. */
enum { HEADS = 2, DIM = 4, CONTEXT = 64, HELD = 20 };
typedef struct {
    swa_window windows[2];
    swa_cache_desc desc;
    swa_cache kv;
    unsigned char *block, *before;
    size_t bytes, whole;
    float x[64 * HEADS * DIM], apart[64 * HEADS * DIM], out[64 * HEADS * DIM], lse[64 * HEADS], stat[64 * HEADS * 2];
    float out0[64 * HEADS * DIM], lse0[64 * HEADS], stat0[64 * HEADS * 2];
    swa_run run;
    swa_attn attn;
    unsigned char blob[32768];
    size_t blob_bytes;
    unsigned char scratch[1 << 19];
} world;
static world w;

static void name_called(const char *name) {
    for (int i = 0; i < n_called; i++)
        if (!strcmp(called[i], name)) return;
    if (n_called < MAX_NAMES) called[n_called++] = name;
}
static void world_open(void) {
    memset(&w, 0, sizeof w);
    w.windows[0] = swa_window_sliding(4);
    w.windows[1] = swa_window_causal();
    w.desc.shape.n_heads = HEADS;
    w.desc.shape.n_kv_heads = 1;
    w.desc.shape.head_dim = DIM;
    w.desc.n_layers = 2;
    w.desc.n_seqs = 3;
    w.desc.windows = w.windows;
    w.desc.n_windows = 2;
    w.desc.max_context = CONTEXT;
    w.bytes = swa_cache_bytes(&w.desc);
    w.whole = w.bytes + 2 * GUARD;
    w.block = (unsigned char *)t_alloc(w.whole);
    w.before = (unsigned char *)t_alloc(w.whole);
    memset(w.block, 0xC3, w.whole);
    t_fill(w.x, sizeof w.x / sizeof *w.x, 1.0f);
    t_fill(w.apart, sizeof w.apart / sizeof *w.apart, 1.0f);
    CHECK_OK(swa_cache_init(&w.kv, &w.desc, w.block + GUARD, w.bytes));
    CHECK_OK(swa_cache_set_scratch(
        &w.kv, t_alloc(swa_cache_scratch_bytes(&w.desc, 2)), swa_cache_scratch_bytes(&w.desc, 2)));
    w.run.n = HELD;
    w.attn.q.p = w.attn.k.p = w.attn.v.p = w.x;
    w.attn.out.p = w.out;
    w.attn.lse = w.lse;
    CHECK_OK(swa_step_begin(&w.kv, &w.run, 1));
    for (int layer = 0; layer < 2; layer++) CHECK_OK(swa_attend(&w.kv, layer, &w.attn));
    w.blob_bytes = swa_cache_save_bytes(&w.kv, 0);
    CHECK(w.blob_bytes > 0 && w.blob_bytes <= sizeof w.blob);
    CHECK_OK(swa_cache_save(&w.kv, 0, w.blob, w.blob_bytes));
}
static void remember(void) {
    memcpy(w.before, w.block, w.whole);
    memcpy(w.out0, w.out, sizeof w.out);
    memcpy(w.lse0, w.lse, sizeof w.lse);
    memcpy(w.stat0, w.stat, sizeof w.stat);
}
/* A refused begin writes down that there is no step, a refused attend that its phase 1 is not to be called: so many
   bytes may differ. Everything else is as it was. */
static size_t noted(const char *name) {
    return !strncmp(name, "swa_step_", 9) ? 12 : !strncmp(name, "swa_attend", 10) ? 8 : 0;
}
static int untouched_but(size_t may) {
    size_t differ = 0;
    for (size_t i = 0; i < w.whole; i++) differ += w.before[i] != w.block[i];
    return differ <= may && !memcmp(w.out0, w.out, sizeof w.out) && !memcmp(w.lse0, w.lse, sizeof w.lse)
        && !memcmp(w.stat0, w.stat, sizeof w.stat);
}
static int untouched(void) { return untouched_but(0); }
static void saw(swa_status got) {
    if ((int)got >= 0 && (int)got < N_STATUS) status_seen[got]++;
}
static void refused(const char *name, const char *call, swa_status got, swa_status want, int line) {
    name_called(name);
    saw(got);
    t_check_status(got, want, call, __FILE__, line);
    t_check(untouched_but(noted(name)), "a refused call changed memory", __FILE__, line);
}
/* A row: this call of this function is refused with this status, and nothing changed. */
#define REFUSE(name, args, want)                                                                                       \
    do {                                                                                                               \
        remember();                                                                                                    \
        refused(#name, #name #args, name args, want, __LINE__);                                                        \
    } while (0)
/* The same for a function that answers a number. */
#define ANSWER(name, args, want)                                                                                       \
    do {                                                                                                               \
        remember();                                                                                                    \
        name_called(#name);                                                                                            \
        t_check_int((long long)name args, (long long)(want), #name #args, __FILE__, __LINE__);                         \
        t_check(untouched(), "a question changed memory", __FILE__, __LINE__);                                         \
    } while (0)
#define ACCEPT(name, args)                                                                                             \
    do {                                                                                                               \
        swa_status got_ = name args;                                                                                   \
        name_called(#name);                                                                                            \
        saw(got_);                                                                                                     \
        t_check_status(got_, SWA_OK, #name #args, __FILE__, __LINE__);                                                 \
    } while (0)

/* Each part is asked about first: words exactly where it is refused. */
static swa_status asked_part(swa_cache *kv, int layer, const swa_attn *a, int phase, int part, int parts) {
    const char *why = swa_attend_part_explain(kv, layer, a, phase, part, parts);
    const swa_status got = swa_attend_part(kv, layer, a, phase, part, parts);
    name_called("swa_attend_part_explain");
    CHECK((why == NULL) == (got == SWA_OK));
    return got;
}
#define swa_attend_part(kv, layer, a, phase, part, parts) asked_part(kv, layer, a, phase, part, parts)
static swa_status asked_rows_part(const swa_rows *r, const swa_attn *a, int phase, int part, int parts) {
    const char *why = swa_attention_part_explain(r, a, phase, part, parts);
    const swa_status got = swa_attention_part(r, a, phase, part, parts);
    name_called("swa_attention_part_explain");
    CHECK((why == NULL) == (got == SWA_OK));
    return got;
}
#define swa_attention_part(r, a, phase, part, parts) asked_rows_part(r, a, phase, part, parts)

static const int bad_index[] = { INT32_MIN, -2, -1, 3, 4, 1 << 24, INT32_MAX }; /* of 3 sequences or 2 layers */
enum { BAD = (int)(sizeof bad_index / sizeof *bad_index) };

/* ---- cache: describing and making one ---- */

/* One field of a desc spoilt; i counts through them. 0 = there are no more. */
static int spoil_desc(swa_cache_desc *d, swa_window *odd, int i, swa_status *want) {
    *want = SWA_ERR_ARG;
    /* clang-format off */
    switch (i) {
    case 0: d->shape.n_heads = 0; return 1;
    case 1: d->shape.n_heads = -1; return 1;
    case 2: d->shape.n_heads = INT32_MAX; d->shape.n_kv_heads = INT32_MAX; return 1;
    case 3: d->shape.n_kv_heads = -1; return 1;
    case 4: d->shape.n_kv_heads = 3; return 1;
    case 5: d->shape.n_kv_heads = INT32_MIN; return 1;
    case 6: d->shape.head_dim = 0; return 1;
    case 7: d->shape.head_dim = INT32_MIN; return 1;
    case 8: d->shape.head_dim = INT32_MAX; return 1;
    case 9: d->shape.v_dim = -1; return 1;
    case 10: d->shape.v_in_k = 1; d->shape.v_dim = DIM + 1; return 1;
    case 11: d->shape.tail_dim = -1; return 1;
    case 12: d->n_layers = 0; return 1;
    case 13: d->n_layers = -1; return 1;
    case 14: d->n_seqs = -1; return 1;
    case 15: d->n_seqs = INT32_MAX; *want = SWA_ERR_OVERFLOW; return 1;
    case 16: d->k_type = SWA_BOOL_KEEP; return 1;
    case 17: d->v_type = (swa_type)-1; return 1;
    case 18: d->tail_type = (swa_type)99; return 1;
    case 19: d->windows = NULL; return 1;
    case 20: d->n_windows = 0; return 1;
    case 21: d->n_windows = -1; return 1;
    case 22: d->max_context = 0; return 1;
    case 23: d->max_context = -1; return 1;
    case 24: d->max_context = INT64_MAX; *want = SWA_ERR_OVERFLOW; return 1;
    case 25: d->max_rollback = -1; return 1;
    case 26: d->max_rollback = INT64_MAX; *want = SWA_ERR_OVERFLOW; odd[1] = odd[0]; d->max_context = 0; return 1;
    case 27: d->capacity = 2; return 1;
    case 28: d->capacity = -1; return 1;
    case 29: d->capacity = INT64_MAX; *want = SWA_ERR_OVERFLOW; return 1;
    case 30: d->shape.n_kv_heads = 0; return 1;
    case 31: d->k_type = SWA_BOOL_MASKED; return 1;
    case 32: d->isa = -1; return 1;
    case 33: d->isa = 99; return 1;
    case 34: d->isa = swa_isa_usable(SWA_ISA_NEON) ? SWA_ISA_AVX2 : SWA_ISA_NEON; *want = SWA_ERR_UNSUPPORTED;
             return 1;
    case 35: odd[0] = swa_window_sliding(0); return 1;
    case 36: odd[0] = swa_window_symmetric(3); *want = SWA_ERR_UNSUPPORTED; return 1;
    case 37: odd[0] = swa_window_flash(3, -1); *want = SWA_ERR_UNSUPPORTED; return 1;
    case 38: odd[0] = swa_window_prefix(4, 9); *want = SWA_ERR_UNSUPPORTED; return 1;
    case 39: odd[0] = swa_window_sinks(4, -1); return 1;
    case 40: odd[0] = swa_window_sliding(INT64_MAX - 40); odd[1] = swa_window_sliding(4); d->max_context = 0;
             *want = SWA_ERR_OVERFLOW; return 1;
    case 41: odd[0].prefix_first = 3; return 1; /* and no end */
    case 42: d->shape.head_dim = (1 << 20) + 1; return 1;
    case 43: d->shape.v_dim = (1 << 20) + 1; return 1;
    case 44: d->shape.tail_dim = (1 << 20) + 1; return 1;
    case 45: d->shape.n_heads = (1 << 20) + 1; return 1;
    case 46: d->n_layers = (1 << 20) + 1; return 1;
    case 47: d->n_seqs = (1 << 24) + 1; *want = SWA_ERR_OVERFLOW; return 1;
    case 48: d->audit = 1; d->n_layers = 1; return 1; /* of two windows */
    default: return 0;
    }
    /* clang-format on */
}
/* What init refused is a cache like {0}, whatever stood there before: of the stack, or a cache in use. */
static void misuse_refused_cache(void) {
    swa_cache_desc bad = w.desc;
    bad.max_context = 0;
    for (int i = 0; i < 4; i++) {
        swa_cache kv = w.kv;
        t_label("refused cache %d", i);
        if (i == 0) memset(&kv, 0xA5, sizeof kv);
        if (i == 0) REFUSE(swa_cache_init, (&kv, &bad, w.block + GUARD, w.bytes), SWA_ERR_ARG);
        if (i == 1) REFUSE(swa_cache_init, (&kv, &w.desc, w.block + GUARD, w.bytes - 1), SWA_ERR_MEMORY);
        if (i == 2) REFUSE(swa_cache_init, (&kv, NULL, w.block + GUARD, w.bytes), SWA_ERR_ARG);
        if (i == 3) REFUSE(swa_cache_init, (&kv, &w.desc, NULL, w.bytes), SWA_ERR_ARG);
        CHECK(kv.mem_ == NULL);
        REFUSE(swa_cache_reset, (&kv, 0, 0, 0), SWA_ERR_ARG);
        REFUSE(swa_step_one, (&kv, 0, 0, 1), SWA_ERR_ARG);
        REFUSE(swa_attend, (&kv, 0, &w.attn), SWA_ERR_ARG);
        ANSWER(swa_cache_end, (&kv, 0), -1);
    }
}
/* What is said of a desc names the field, and the layer where it is one's. */
static void explains(const swa_cache_desc *d, const char *word, int at) {
    int layer = 77;
    const char *said = swa_cache_explain(d, &layer);
    t_label("explain %s: %s", word ? word : "nothing", said ? said : "nothing");
    CHECK(word ? said != NULL && strstr(said, word) != NULL : said == NULL);
    CHECK_INT(layer, at);
    CHECK_INT(swa_cache_bytes(d) == 0, word != NULL);
}
/* Under audit: patterns of which none repeats in the other. */
static void misuse_patterns(void) {
    swa_window six[6];
    swa_shape five[5];
    swa_cache_desc d;
    memset(&d, 0, sizeof d);
    d.n_layers = 12;
    d.windows = six;
    d.n_windows = 6;
    d.shapes = five;
    d.n_shapes = 5;
    for (int i = 0; i < 6; i++) six[i] = swa_window_sliding(4);
    for (int i = 0; i < 5; i++) five[i] = w.desc.shape;
    explains(&d, NULL, -1); /* layer 5 has the window of place 5, and the shape of place 0 */
    d.audit = 1;
    explains(&d, "none repeats", -1);
    d.n_shapes = 4;
    explains(&d, "none repeats", -1);
    d.n_shapes = 3;
    explains(&d, NULL, -1);
    d.n_layers = 6; /* a window for each of them */
    d.n_shapes = 4;
    explains(&d, NULL, -1);
    d.n_windows = 1;
    explains(&d, NULL, -1);
    d.max_context = 100;
    explains(&d, "max_context", -1); /* which none of them needs: is the pattern of windows cut off? */
    d.audit = 0;
    explains(&d, NULL, -1);
}
#define EXPLAINS(change, word, layer) (d = w.desc, change, explains(&d, word, layer))
/* A layer that reads another's rows, and cannot. */
static void misuse_kv_layer(void) {
    static const int other[] = { 0, 0 }, chain[] = { 1, 0 }, none[] = { 0, -1 }, last[] = { 1, 1 };
    const swa_types two[2] = { { SWA_F32, SWA_F32, SWA_F32 }, { SWA_F16, SWA_F32, SWA_F32 } };
    const swa_window pinned[2] = { w.windows[0], swa_window_sinks(4, 2) }, alike[2] = { w.windows[0], w.windows[0] };
    swa_shape unlike[2] = { w.desc.shape, w.desc.shape };
    swa_cache_desc d = w.desc;
    unlike[1].head_dim += 2;
    EXPLAINS(d.kv_layer = other, "kv_layer: the window", 1); /* a causal layer that reads a window's */
    EXPLAINS(d.kv_layer = chain, "kv_layer: it names", 0);
    EXPLAINS(d.kv_layer = none, "kv_layer: it names", 1);
    EXPLAINS((d.kv_layer = other, d.windows = alike), NULL, -1);
    EXPLAINS(
        (d.kv_layer = other, d.windows = alike, memset(&d.shape, 0, sizeof d.shape), d.shapes = unlike, d.n_shapes = 2),
        "kv_layer: the layer that it names has rows of another shape", 1);
    EXPLAINS((d.kv_layer = other, d.windows = pinned), "kv_layer: the layer that it names keeps another number", 1);
    EXPLAINS((d.kv_layer = other, d.windows = alike, d.k_type = d.v_type = d.tail_type = (swa_type)0, d.types = two,
              d.n_types = 2),
             "kv_layer: the layer that it names has rows of another type", 1);
    /* what is wrong with a layer is not put down to its reader, which comes first */
    EXPLAINS((d.kv_layer = last, d.max_context = 0), "max_context", 1);
}
static void misuse_explain(void) {
    static const int other[] = { 0, 0 }, none[] = { 0, -1 };
    const swa_window odd[3] = { w.windows[0], w.windows[1], swa_window_sliding(0) };
    const swa_window forgotten[2] = { w.windows[0] }, narrow[2] = { w.windows[0], swa_window_sliding(5) };
    const swa_shape shapes[2] = { w.desc.shape, w.desc.shape };
    const swa_types types = { SWA_F32, SWA_F32, SWA_F32 }, three[3] = { types, types, types };
    swa_cache_desc d = w.desc;
    name_called("swa_cache_explain");
    explains(&d, NULL, -1);
    explains(NULL, "desc", -1);
    EXPLAINS(d.n_layers = 0, "n_layers", -1);
    EXPLAINS(d.n_windows = 0, "windows without n_windows", -1);
    EXPLAINS(d.windows = NULL, "n_windows without windows", -1);
    EXPLAINS((d.windows = odd, d.n_windows = 3), "window", -1); /* of which no layer has the last */
    EXPLAINS(d.shapes = shapes, "n_shapes", -1);
    EXPLAINS(d.types = &types, "n_types", -1);
    EXPLAINS(d.k_rows = other, "n_k_rows", -1);
    EXPLAINS((d.shapes = shapes, d.n_shapes = 2), "shape and shapes", -1);
    EXPLAINS((d.types = &types, d.n_types = 1, d.k_type = SWA_F16), "k_type", -1);
    EXPLAINS((d.types = three, d.n_types = 3, d.audit = 1), "n_types", -1); /* of two layers */
    EXPLAINS(d.max_rollback = -1, "below 0", -1);
    EXPLAINS(d.shape.n_kv_heads = 0, "n_kv_heads", 0);
    EXPLAINS(d.max_context = 0, "max_context", 1);
    EXPLAINS(d.capacity = 2, "capacity", 0);
    EXPLAINS(d.shape.n_kv_heads = d.shape.n_heads + 1, "multiple", 0);
    EXPLAINS(d.shape.v_in_k = 2, "v_in_k", 0);
    EXPLAINS(d.shape.tail_dim = -1, "below 0", 0);
    EXPLAINS((d.k_rows = none, d.n_k_rows = 2), "k_rows", -1);
    EXPLAINS((d.audit = 1, d.windows = NULL, d.n_windows = 0), "window: none", -1);
    EXPLAINS((d.audit = 1, d.windows = forgotten), "window: none", -1);
    EXPLAINS(d.windows = forgotten, NULL, -1);
    EXPLAINS((d.audit = 1, d.windows = narrow), "max_context", -1);
    EXPLAINS((d.audit = 1, d.windows = narrow, d.max_context = 5), "max_context", -1);
    EXPLAINS((d.audit = 1, d.windows = narrow, d.max_context = 4), NULL, -1); /* which one of them needs */
    EXPLAINS((d.audit = 1, d.windows = narrow, d.max_context = 0), NULL, -1);
    EXPLAINS((d.audit = 1, d.windows = narrow, d.n_windows = 1), NULL, -1);
    EXPLAINS(d.windows = narrow, NULL, -1);
    EXPLAINS((d.n_types = 0x7f7f7f7f, d.types = (const swa_types *)(const void *)&d), "zeroed", -1);
    EXPLAINS((d.n_k_rows = 1 << 21, d.k_rows = (const int *)(const void *)&d), "zeroed", -1);
    EXPLAINS(d.max_context = INT64_MAX, "more slots", 1);
    EXPLAINS(d.n_seqs = (1 << 24) + 1, "n_seqs", -1);
    EXPLAINS(d.isa = 99, "isa", -1);
    EXPLAINS((d.isa = 0, d.n_seqs = 1 << 24, d.shape.head_dim = 1 << 20, d.max_context = INT32_MAX / 32), "bytes",
             sizeof(size_t) < 8 ? 1 : -1);
}
#undef EXPLAINS
static void misuse_init(void) {
    swa_cache kv;
    swa_status want;
    t_label("init");
    memset(&kv, 0, sizeof kv);
    REFUSE(swa_cache_init, (&kv, NULL, w.block + GUARD, w.bytes), SWA_ERR_ARG);
    REFUSE(swa_cache_init, (NULL, &w.desc, w.block + GUARD, w.bytes), SWA_ERR_ARG);
    REFUSE(swa_cache_init, (&kv, &w.desc, NULL, w.bytes), SWA_ERR_ARG);
    REFUSE(swa_cache_init, (&kv, &w.desc, w.block + GUARD, 0), SWA_ERR_MEMORY);
    REFUSE(swa_cache_init, (&kv, &w.desc, w.block + GUARD, w.bytes - 1), SWA_ERR_MEMORY);
    ANSWER(swa_cache_bytes, (NULL), 0);
    for (int i = 0;; i++) {
        swa_cache_desc d = w.desc;
        swa_window odd[2] = { w.windows[0], w.windows[1] };
        d.windows = odd;
        if (!spoil_desc(&d, odd, i, &want)) break;
        t_label("desc %d", i);
        ANSWER(swa_cache_bytes, (&d), 0);
        REFUSE(swa_cache_init, (&kv, &d, w.block + GUARD, SIZE_MAX), want);
        CHECK(swa_cache_explain(&d, NULL) != NULL);
    }
    misuse_patterns();
    misuse_explain();
    misuse_kv_layer();
    CHECK(kv.mem_ == NULL);
    misuse_refused_cache();
    t_label("init");
    for (int i = 0; i < 6; i++) { /* the largest numbers that are legal */
        swa_cache_desc d = w.desc;
        if (i == 0) d.shape.head_dim = 1 << 20;
        if (i == 1) d.shape.v_dim = 1 << 20;
        if (i == 2) d.shape.tail_dim = 1 << 20;
        if (i == 3) d.shape.n_heads = 1 << 20;
        if (i == 4) d.n_layers = 1 << 20;
        if (i == 5) d.n_seqs = 1 << 24;
        t_label("largest %d", i);
        CHECK(sizeof(size_t) == 4 || swa_cache_bytes(&d) > 0);
    }
}
/* Legal one by one, too much together: bytes is 0 rather than a product that wrapped. */
static void misuse_huge_descs(void) {
    static const int huge[] = { 1, 2, 3, 255, 4096, 65535, 65536, 1 << 20, 1 << 24, INT32_MAX };
    static const int64_t far[] = { 0, 1, 4, 4096, 65536, INT32_MAX - 40, (int64_t)1 << 32, INT64_MAX / 2, INT64_MAX };
    swa_cache kv;
    long refusals = 0;
    memset(&kv, 0, sizeof kv);
    remember();
    for (int i = 0; i < 20000; i++) {
        swa_cache_desc d = w.desc;
        swa_window odd =
            t_int(0, 1) ? swa_window_sliding(far[t_int(1, 8)]) : swa_window_sinks(far[t_int(1, 5)], huge[t_int(0, 9)]);
        size_t bytes;
        swa_status got;
        d.windows = &odd;
        d.n_windows = 1;
        d.shape.n_heads = huge[t_int(0, 9)];
        d.shape.n_kv_heads = t_int(0, 1) ? d.shape.n_heads : 1;
        d.shape.head_dim = huge[t_int(0, 9)];
        d.shape.v_dim = huge[t_int(0, 9)];
        d.shape.tail_dim = t_int(0, 1) ? 0 : huge[t_int(0, 9)];
        d.n_layers = huge[t_int(0, i % 32 ? 3 : 9)]; /* a million are gone through one by one: 20 ms */
        d.n_seqs = huge[t_int(0, 9)];
        d.k_type = (swa_type)t_int(0, 4);
        d.v_type = (swa_type)t_int(0, 4);
        d.tail_type = (swa_type)t_int(0, 4);
        d.max_context = far[t_int(0, 8)];
        d.max_rollback = far[t_int(0, 8)];
        d.capacity = far[t_int(0, 8)];
        bytes = swa_cache_bytes(&d);
        got = swa_cache_init(&kv, &d, w.block + GUARD, bytes ? bytes - 1 : SIZE_MAX);
        saw(got);
        refusals += bytes == 0;
        t_label("huge desc %d: %llu bytes, %s", i, (unsigned long long)bytes, swa_status_str(got));
        CHECK(bytes ? got == SWA_ERR_MEMORY : got == SWA_ERR_ARG || got == SWA_ERR_OVERFLOW);
        if (bytes) { /* at least what one row of each ring takes */
            double rows = (double)d.n_layers * (double)(d.n_seqs ? d.n_seqs : 1) * (double)d.shape.head_dim;
            CHECK((double)bytes >= rows);
        }
    }
    t_label("huge descs");
    CHECK(untouched() && kv.mem_ == NULL);
    CHECK(refusals > 1000 && refusals < 19900);
}
/* Regions of almost 2^64 bytes: each sum of two that the layout forms passes the end in one of these. */
static void misuse_edge_of_size_t(void) {
    static const struct {
        int k, tail, v, k_type, tail_type, v_type, v_in_k;
    } list[] = { { 16384, 0, 1, SWA_Q8, SWA_F32, SWA_F32, 1 },   /* K itself */
                 { 8192, 0, 1, SWA_Q8, SWA_F32, SWA_F32, 1 },    /* K fits, its scales do not */
                 { 2047, 5, 1, SWA_F32, SWA_F32, SWA_F32, 1 },   /* the tail */
                 { 2047, 4, 1, SWA_F32, SWA_Q8, SWA_F32, 1 },    /* the tail's scales */
                 { 2047, 0, 16, SWA_F32, SWA_F32, SWA_F32, 0 },  /* V */
                 { 2044, 0, 16, SWA_F32, SWA_F32, SWA_Q8, 0 },   /* V's scales */
                 { 1025, 0, 1, SWA_F32, SWA_F32, SWA_F32, 1 } }; /* two of these */
    t_label("2^64 bytes");
    for (int i = 0; i < 11 && sizeof(size_t) == 8; i++) {
        swa_cache_desc d = w.desc;
        swa_window huge[2] = { swa_window_sliding((INT64_C(1) << 31) - 32), swa_window_sliding(1) };
        swa_cache kv;
        int j = i < 7 ? i : 6;
        d.windows = huge;
        d.n_windows = i < 7 || i > 8 ? 1 : 2;
        d.n_layers = i < 6 || i > 8 ? 1 : i < 8 ? 2 : 3; /* 6: periods of one layer, 7: of two, 8: layers 0 and 2 */
        if (i == 7) huge[1] = huge[0];                   /* 9: sequences; 10: 2^64 - 64, and what lies before it */
        d.n_seqs = i == 9 ? 3 : 1;
        d.max_context = 0;
        d.shape.n_heads = d.shape.n_kv_heads = 1 << 20;
        d.shape.head_dim = list[j].k;
        d.shape.tail_dim = list[j].tail;
        d.shape.v_dim = list[j].v;
        d.shape.v_in_k = list[j].v_in_k;
        d.k_type = (swa_type)list[j].k_type;
        d.tail_type = (swa_type)list[j].tail_type;
        d.v_type = (swa_type)list[j].v_type;
        if (i == 10) { /* the factors of 2^58 - 1, and 16 slots of 4 bytes */
            huge[0] = swa_window_sliding(16 * 3 * INT64_C(3033169));
            d.shape.n_heads = d.shape.n_kv_heads = 59 * 2089;
            d.shape.head_dim = 1103 * 233;
        }
        t_label("2^64 bytes, %d", i);
        ANSWER(swa_cache_bytes, (&d), 0);
        REFUSE(swa_cache_init, (&kv, &d, w.block + GUARD, SIZE_MAX), SWA_ERR_OVERFLOW);
        d.shape.n_heads = d.shape.n_kv_heads = 1 << 10; /* a thousandth of it is a size like any other */
        CHECK(swa_cache_bytes(&d) > 0);
    }
}
/* Any address will do, and what the rows say does not depend on it. */
static void misaligned_memory(void) {
    for (size_t shift = 0; shift < 70; shift++) {
        unsigned char *mem = (unsigned char *)t_alloc(w.bytes + shift + 64) + shift;
        size_t room = swa_cache_scratch_bytes(&w.desc, 1);
        unsigned char *scratch = (unsigned char *)t_alloc(room + 70) + 70 - shift;
        swa_cache kv;
        float out[HELD * HEADS * DIM];
        swa_attn a = w.attn;
        t_label("shift %d", (int)shift);
        memset(mem - shift, 0xA7, w.bytes + shift + 64);
        a.out.p = out;
        CHECK_OK(swa_cache_init(&kv, &w.desc, mem, w.bytes));
        CHECK_OK(swa_cache_set_scratch(&kv, scratch, room));
        CHECK_OK(swa_step_one(&kv, 0, 0, HELD));
        for (int layer = 0; layer < 2; layer++) CHECK_OK(swa_attend(&kv, layer, &a));
        CHECK_BITS(out, w.out, HELD * HEADS * DIM);
        for (size_t i = 0; i < shift; i++) CHECK(mem[(ptrdiff_t)i - (ptrdiff_t)shift] == 0xA7);
        for (size_t i = 0; i < 64; i++) CHECK(mem[w.bytes + i] == 0xA7);
    }
}

/* ---- cache: asking and changing ---- */

static void misuse_indices(int seq, int layer) {
    swa_kv kv[3];
    float row[DIM];
    ANSWER(swa_cache_first, (&w.kv, seq, layer), -1);
    ANSWER(swa_cache_slot, (&w.kv, seq, layer, 19), -1);
    ANSWER(swa_cache_spans, (&w.kv, seq, layer, kv), -1);
    remember();
    name_called("swa_cache_read");
    CHECK(swa_cache_read(&w.kv, seq, layer, 19, 1, row, NULL) != SWA_OK && untouched());
}
static void misuse_cache(void) {
    swa_cache none;
    swa_kv kv[3];
    float row[2 * DIM];
    t_label("cache");
    memset(&none, 0, sizeof none);
    for (int i = 0; i < BAD; i++) {
        int s = bad_index[i];
        t_label("index %d", s);
        REFUSE(swa_cache_reset, (&w.kv, s, 0, 0), SWA_ERR_ARG);
        REFUSE(swa_cache_truncate, (&w.kv, s, 0), SWA_ERR_ARG);
        REFUSE(swa_cache_fork, (&w.kv, s, 0, -1), SWA_ERR_ARG);
        REFUSE(swa_cache_fork, (&w.kv, 0, s, -1), SWA_ERR_ARG);
        REFUSE(swa_cache_copy, (&w.kv, s, &w.kv, 0, -1), SWA_ERR_ARG);
        REFUSE(swa_cache_copy, (&w.kv, 0, &w.kv, s, -1), SWA_ERR_ARG);
        ANSWER(swa_cache_end, (&w.kv, s), -1);
        ANSWER(swa_cache_min_end, (&w.kv, s), -1);
        ANSWER(swa_cache_unstored, (&w.kv, s), -1);
        ANSWER(swa_cache_replay_from, (&w.kv, s, 5), -1);
        misuse_indices(s, 0);
        misuse_indices(0, s == 3 ? 2 : s);
        if (s == -1) continue; /* all sequences: legal for blobs */
        ANSWER(swa_cache_save_bytes, (&w.kv, s), 0);
        REFUSE(swa_cache_save, (&w.kv, s, w.blob, sizeof w.blob), SWA_ERR_ARG);
        REFUSE(swa_cache_load, (&w.kv, s, w.blob, w.blob_bytes), SWA_ERR_ARG);
    }
    for (int i = 0; i < 2; i++) { /* no cache at all, and one that was never made */
        swa_cache *c = i ? &none : NULL;
        t_label(i ? "zeroed cache" : "NULL cache");
        REFUSE(swa_cache_reset, (c, 0, 0, 0), SWA_ERR_ARG);
        REFUSE(swa_cache_truncate, (c, 0, 0), SWA_ERR_ARG);
        REFUSE(swa_cache_fork, (c, 0, 1, -1), SWA_ERR_ARG);
        REFUSE(swa_cache_copy, (c, 0, &w.kv, 0, -1), SWA_ERR_ARG);
        REFUSE(swa_cache_copy, (&w.kv, 0, c, 0, -1), SWA_ERR_ARG);
        REFUSE(swa_cache_read, (c, 0, 0, 0, 1, row, row), SWA_ERR_ARG);
        REFUSE(swa_cache_save, (c, 0, w.blob, sizeof w.blob), SWA_ERR_ARG);
        REFUSE(swa_cache_load, (c, 0, w.blob, w.blob_bytes), SWA_ERR_ARG);
        REFUSE(swa_step_begin, (c, &w.run, 1), SWA_ERR_ARG);
        REFUSE(swa_step_one, (c, 0, HELD, 1), SWA_ERR_ARG);
        ANSWER(swa_step_tokens, (c), 0);
        REFUSE(swa_cache_set_scratch, (c, w.scratch, sizeof w.scratch), SWA_ERR_ARG);
        REFUSE(swa_attend, (c, 0, &w.attn), SWA_ERR_ARG);
        REFUSE(swa_attend_part, (c, 0, &w.attn, 0, 0, 1), SWA_ERR_ARG);
        ANSWER(swa_cache_end, (c, 0), -1);
        ANSWER(swa_cache_first, (c, 0, 0), -1);
        ANSWER(swa_cache_min_end, (c, 0), -1);
        ANSWER(swa_cache_unstored, (c, 0), -1);
        ANSWER(swa_cache_replay_from, (c, 0, 0), -1);
        ANSWER(swa_cache_slot, (c, 0, 0, 0), -1);
        ANSWER(swa_cache_spans, (c, 0, 0, kv), -1);
        ANSWER(swa_cache_save_bytes, (c, 0), 0);
    }
    ANSWER(swa_cache_spans, (&w.kv, 0, 0, NULL), -1);
}
static void misuse_positions(void) {
    float row[64 * DIM];
    t_label("positions");
    REFUSE(swa_cache_reset, (&w.kv, 0, 0, -1), SWA_ERR_ARG);
    REFUSE(swa_cache_reset, (&w.kv, 0, 0, INT64_MIN), SWA_ERR_ARG);
    REFUSE(swa_cache_reset, (&w.kv, 0, -1, 0), SWA_ERR_ARG);
    REFUSE(swa_cache_reset, (&w.kv, 0, INT64_MIN, 0), SWA_ERR_ARG);
    REFUSE(swa_cache_reset, (&w.kv, 0, INT64_MAX, 0), SWA_ERR_OVERFLOW);
    REFUSE(swa_cache_truncate, (&w.kv, 0, -1), SWA_ERR_ARG);
    REFUSE(swa_cache_truncate, (&w.kv, 0, INT64_MIN), SWA_ERR_ARG);
    REFUSE(swa_cache_truncate, (&w.kv, 0, HELD + 1), SWA_ERR_ORDER);
    REFUSE(swa_cache_truncate, (&w.kv, 0, INT64_MAX), SWA_ERR_ORDER);
    REFUSE(swa_cache_truncate, (&w.kv, 0, 6), SWA_ERR_LOST);
    REFUSE(swa_cache_fork, (&w.kv, 1, 0, -2), SWA_ERR_ARG);
    REFUSE(swa_cache_fork, (&w.kv, 1, 0, INT64_MIN), SWA_ERR_ARG);
    REFUSE(swa_cache_fork, (&w.kv, 1, 0, HELD + 1), SWA_ERR_ORDER);
    REFUSE(swa_cache_fork, (&w.kv, 1, 0, INT64_MAX), SWA_ERR_ORDER);
    REFUSE(swa_cache_fork, (&w.kv, 1, 0, 6), SWA_ERR_LOST);
    REFUSE(swa_cache_fork, (&w.kv, 0, 0, 6), SWA_ERR_LOST);
    REFUSE(swa_cache_copy, (&w.kv, 1, &w.kv, 0, -2), SWA_ERR_ARG);
    REFUSE(swa_cache_copy, (&w.kv, 1, &w.kv, 0, INT64_MIN), SWA_ERR_ARG);
    REFUSE(swa_cache_copy, (&w.kv, 1, &w.kv, 0, HELD + 1), SWA_ERR_ORDER);
    REFUSE(swa_cache_copy, (&w.kv, 1, &w.kv, 0, 6), SWA_ERR_LOST);
    REFUSE(swa_cache_read, (&w.kv, 0, 0, 18, -1, row, row), SWA_ERR_ARG);
    REFUSE(swa_cache_read, (&w.kv, 0, 0, -1, 1, row, row), SWA_ERR_ARG);
    REFUSE(swa_cache_read, (&w.kv, 0, 0, INT64_MAX, INT32_MAX, row, row), SWA_ERR_ARG);
    REFUSE(swa_cache_read, (&w.kv, 0, 0, 3, 1, row, NULL), SWA_ERR_LOST);
    REFUSE(swa_cache_read, (&w.kv, 0, 0, 19, 2, row, NULL), SWA_ERR_ORDER);
    REFUSE(swa_cache_read, (&w.kv, 0, 1, 0, INT32_MAX, row, NULL), SWA_ERR_ORDER);
    REFUSE(swa_cache_read, (&w.kv, 0, 1, 0, 2, row, row + 1), SWA_ERR_ARG); /* they overlap */
    ACCEPT(swa_cache_read, (&w.kv, 0, 1, 0, HELD, row, NULL));
    ACCEPT(swa_cache_read, (&w.kv, 0, 1, 0, HELD, NULL, NULL));
    REFUSE(swa_cache_read, (&w.kv, 0, 1, 0, 1, row, row), SWA_ERR_ARG); /* one place for both */
    ACCEPT(swa_cache_read, (&w.kv, 0, 0, 18, 0, NULL, NULL));
    ANSWER(swa_cache_slot, (&w.kv, 0, 0, -1), -1);
    ANSWER(swa_cache_slot, (&w.kv, 0, 0, INT64_MIN), -1);
    ANSWER(swa_cache_slot, (&w.kv, 0, 0, HELD), -1);
    ANSWER(swa_cache_slot, (&w.kv, 0, 0, INT64_MAX), -1);
    ANSWER(swa_cache_replay_from, (&w.kv, 0, -1), -1);
    ANSWER(swa_cache_replay_from, (&w.kv, 0, INT64_MIN), -1);
    ANSWER(swa_cache_replay_from, (&w.kv, 0, INT64_MAX), -1);
}
/* A refused load is explained by a text that holds `word`. */
static void why_load(int seq, const void *blob, size_t bytes, const char *word) {
    const char *why = swa_cache_load_explain(&w.kv, seq, blob, bytes);
    name_called("swa_cache_load_explain");
    if (!CHECK(why != NULL)) return;
    t_label("%s: %s", word, why);
    CHECK(strstr(why, word) != NULL);
    t_label("blobs");
}
static void misuse_blob_reasons(void) {
    swa_cache_desc d = w.desc;
    swa_cache other;
    unsigned char *blob;
    size_t n;
    why_load(0, NULL, SIZE_MAX, "no blob");
    why_load(3, w.blob, w.blob_bytes, "no such seq");
    why_load(0, w.blob, 12, "too few");
    why_load(0, w.blob, w.blob_bytes - 1, "another size");
    why_load(-1, w.blob, w.blob_bytes, "all");
    why_load(0, w.x, w.blob_bytes, "version");
    w.blob[w.blob_bytes / 2] ^= 1;
    why_load(0, w.blob, w.blob_bytes, "altered");
    w.blob[w.blob_bytes / 2] ^= 1;
    CHECK(swa_cache_load_explain(&w.kv, 1, w.blob, w.blob_bytes) == NULL);
    CHECK(swa_cache_load_explain(NULL, 0, w.blob, w.blob_bytes) != NULL);
    for (int i = 0; i < 2; i++) {
        if (i == 0) d.k_type = SWA_F16;
        else d.k_type = SWA_F32, d.max_context = CONTEXT + 1; /* the same rows, and one more than fits */
        if (!t_cache_new(&other, &d, 1)) return;
        CHECK_OK(swa_step_one(&other, 0, 0, CONTEXT + i));
        for (int layer = 0; layer < 2; layer++) {
            swa_attn a = w.attn;
            a.mode = SWA_STORE_ONLY;
            a.k.p = a.v.p = t_random((CONTEXT + 1) * DIM, 1.0f);
            CHECK_OK(swa_attend(&other, layer, &a));
        }
        n = swa_cache_save_bytes(&other, 0);
        blob = (unsigned char *)t_alloc(n);
        CHECK_OK(swa_cache_save(&other, 0, blob, n));
        why_load(0, blob, n, i == 0 ? "types" : "max_context");
    }
}
static void misuse_blobs(void) {
    unsigned char bad[256];
    t_label("blobs");
    memset(bad, 0, sizeof bad);
    REFUSE(swa_cache_save, (&w.kv, 0, NULL, SIZE_MAX), SWA_ERR_ARG);
    REFUSE(swa_cache_save, (&w.kv, 0, w.blob, 0), SWA_ERR_MEMORY);
    REFUSE(swa_cache_save, (&w.kv, 0, w.blob, w.blob_bytes - 1), SWA_ERR_MEMORY);
    REFUSE(swa_cache_load, (&w.kv, 0, NULL, SIZE_MAX), SWA_ERR_ARG);
    REFUSE(swa_cache_load, (&w.kv, 0, w.blob, 0), SWA_ERR_BLOB);
    REFUSE(swa_cache_load, (&w.kv, 0, w.blob, w.blob_bytes - 1), SWA_ERR_BLOB);
    REFUSE(swa_cache_load, (&w.kv, -1, w.blob, w.blob_bytes), SWA_ERR_BLOB);
    REFUSE(swa_cache_load, (&w.kv, 0, w.blob, SIZE_MAX / 4), SWA_ERR_BLOB); /* nothing is read behind its size */
    for (size_t n = 0; n <= sizeof bad; n++) REFUSE(swa_cache_load, (&w.kv, 0, bad, n), SWA_ERR_BLOB);
    memset(bad, 0xff, sizeof bad);
    REFUSE(swa_cache_load, (&w.kv, 0, bad, sizeof bad), SWA_ERR_BLOB);
    CHECK(swa_cache_save_bytes(&w.kv, -1) > w.blob_bytes);
    misuse_blob_reasons();
}

/* ---- steps ---- */

static swa_run run_at(int seq, int64_t pos, int32_t n, int rewind) {
    swa_run r = t_run(seq, pos, n);
    r.rewind = rewind;
    return r;
}
static void misuse_begin(void) {
    swa_run r[2];
    t_label("begin");
    r[0] = t_run(0, HELD, 1);
    name_called("swa_step_explain");
    CHECK(swa_step_explain(&w.kv, r) == NULL && swa_step_explain(&w.kv, NULL) != NULL);
    CHECK(swa_step_explain(NULL, r) != NULL && swa_attend_explain(NULL, 0, &w.attn) != NULL);
    CHECK(swa_attend_explain(&w.kv, 0, NULL) != NULL && swa_attend_explain(&w.kv, -1, &w.attn) != NULL);
    REFUSE(swa_step_begin, (&w.kv, NULL, 1), SWA_ERR_ARG);
    REFUSE(swa_step_begin, (&w.kv, NULL, 0), SWA_ERR_ARG);
    REFUSE(swa_step_begin, (&w.kv, r, 0), SWA_ERR_ARG);
    REFUSE(swa_step_begin, (&w.kv, r, -1), SWA_ERR_ARG);
    REFUSE(swa_step_begin, (&w.kv, r, INT32_MIN), SWA_ERR_ARG);
    ANSWER(swa_step_tokens, (&w.kv), 0);
#define RUN(seq, pos, n, rewind, want)                                                                                 \
    do {                                                                                                               \
        r[0] = run_at(seq, pos, n, rewind);                                                                            \
        CHECK(swa_step_explain(&w.kv, r) != NULL);                                                                     \
        REFUSE(swa_step_begin, (&w.kv, r, 1), want);                                                                   \
        CHECK_STATUS(r[0].status, want);                                                                               \
        REFUSE(swa_attend, (&w.kv, 0, &w.attn), want);                                                                 \
        if (!(rewind)) REFUSE(swa_step_one, (&w.kv, seq, pos, n), want);                                               \
    } while (0)
    for (int i = 0; i < BAD; i++) RUN(bad_index[i], HELD, 1, i % 2, SWA_ERR_ARG);
    RUN(0, -1, 1, 0, SWA_ERR_ARG);
    RUN(0, INT64_MIN, 1, 1, SWA_ERR_ARG);
    RUN(0, HELD + 1, 1, 0, SWA_ERR_ORDER);
    RUN(0, HELD + 1, 1, 1, SWA_ERR_ORDER);
    RUN(0, HELD - 1, 1, 0, SWA_ERR_ORDER); /* held, and nobody said that it is meant */
    RUN(0, 0, 1, 0, SWA_ERR_ORDER);
    RUN(0, 6, 1, 1, SWA_ERR_LOST);
    RUN(0, HELD, 0, 0, SWA_ERR_ARG);
    RUN(0, HELD, -1, 0, SWA_ERR_ARG);
    RUN(0, HELD, INT32_MIN, 0, SWA_ERR_ARG);
    RUN(0, HELD, CONTEXT - HELD + 1, 0, SWA_ERR_FULL);
    RUN(0, HELD, INT32_MAX, 0, SWA_ERR_FULL);
    RUN(1, INT64_MAX, 1, 0, SWA_ERR_OVERFLOW);
    RUN(1, INT64_MAX - 1, 1, 1, SWA_ERR_OVERFLOW);
    RUN(1, HELD, 1, 0, SWA_ERR_ORDER); /* empty, and begins at 0 */
    RUN(1, HELD, 1, 1, SWA_ERR_ORDER);
#undef RUN
    r[0] = t_run(1, 0, 1);
    r[1] = r[0];
    REFUSE(swa_step_begin, (&w.kv, r, 2), SWA_ERR_ARG);
    CHECK_STATUS(r[0].status, SWA_OK);
    CHECK_STATUS(r[1].status, SWA_ERR_ARG);
}
static void misuse_plan(void) {
    static const int seqs[2] = { 0, -1 };
    static const int64_t low[2] = { 0, -1 }, high[2] = { 0, INT64_MAX - 2 };
    static const int32_t lens[2] = { 3, 4 }, negative[2] = { 3, -1 };
    swa_plan p;
    swa_run runs[2];
    int n = 5;
    t_label("plan");
    memset(&p, 0, sizeof p);
    memset(runs, 0, sizeof runs);
    REFUSE(swa_prefill_begin, (NULL, NULL, NULL, lens, 2, 4), SWA_ERR_ARG);
    REFUSE(swa_prefill_begin, (&p, NULL, NULL, NULL, 2, 4), SWA_ERR_ARG);
    REFUSE(swa_prefill_begin, (&p, NULL, NULL, lens, -1, 4), SWA_ERR_ARG);
    REFUSE(swa_prefill_begin, (&p, NULL, NULL, lens, 2, 0), SWA_ERR_ARG);
    REFUSE(swa_prefill_begin, (&p, NULL, NULL, lens, 2, -1), SWA_ERR_ARG);
    REFUSE(swa_prefill_begin, (&p, NULL, NULL, lens, 2, INT32_MIN), SWA_ERR_ARG);
    REFUSE(swa_prefill_begin, (&p, NULL, NULL, negative, 2, 4), SWA_ERR_ARG);
    REFUSE(swa_prefill_begin, (&p, seqs, NULL, lens, 2, 4), SWA_ERR_ARG);
    REFUSE(swa_prefill_begin, (&p, NULL, low, lens, 2, 4), SWA_ERR_ARG);
    REFUSE(swa_prefill_begin, (&p, NULL, high, lens, 2, 4), SWA_ERR_OVERFLOW);
    ANSWER(swa_prefill_next, (NULL, runs, &n), 0);
    ANSWER(swa_prefill_next, (&p, runs, &n), 0); /* never begun */
    CHECK_INT(n, 0);
    p.lens = lens;
    p.n_seqs = 2;
    ANSWER(swa_prefill_next, (&p, runs, &n), 0); /* nor with this: chunk is 0 */
    ACCEPT(swa_prefill_begin, (&p, NULL, NULL, lens, 2, 4));
    ANSWER(swa_prefill_next, (&p, NULL, &n), 0);
    ANSWER(swa_prefill_next, (&p, runs, NULL), 0);
    ANSWER(swa_prefill_next, (&p, runs, &n), 1); /* and none of these used anything up */
    CHECK(n == 2 && runs[0].n == 3 && runs[1].n == 4);
    p.lens = (int32_t[2]){ INT32_MIN, 5 }; /* cancelled, as no begin would take it */
    ANSWER(swa_prefill_next, (&p, runs, &n), 1);
    CHECK(n == 1 && runs[0].seq == 1 && runs[0].n == 1);
}

/* ---- attention ---- */

/* A step over HELD tokens of sequence 0, anew. */
static int begin_anew(swa_cache *c) {
    return CHECK_OK(swa_cache_reset(c, 0, 0, 0)) && CHECK_OK(swa_step_one(c, 0, 0, HELD));
}
#define SPOIL(change, want)                                                                                            \
    do {                                                                                                               \
        a = ok;                                                                                                        \
        change;                                                                                                        \
        REFUSE(swa_attend, (c, 0, &a), want);                                                                          \
        REFUSE(swa_attend_part, (c, 0, &a, 0, 0, 1), want);                                                            \
        why_attend(c, 0, &a, #change);                                                                                 \
    } while (0)
/* A refused call is explained in words that name a field which was spoilt: one of those in `change`, behind "a.". */
static void why_attend(const swa_cache *c, int layer, const swa_attn *a, const char *change) {
    const char *why = swa_attend_explain(c, layer, a);
    int named = 0;
    name_called("swa_attend_explain");
    if (!CHECK(why != NULL)) return;
    t_label("%s: %s", change, why);
    for (const char *at = strstr(change, "a."); at != NULL; at = strstr(at + 2, "a.")) {
        char field[32] = { 0 };
        for (int n = 0; n < 31 && (isalnum((unsigned char)at[n + 2]) || at[n + 2] == '_'); n++) field[n] = at[n + 2];
        named = named || strstr(why, field) != NULL;
    }
    CHECK(named || strstr(why, "begin where another") != NULL || strstr(why, "has not stored") != NULL);
}
/* What changes scores, spoilt field by field. */
static void misuse_attn_numbers(swa_cache *c, swa_attn ok) {
    swa_attn a;
    const float nan = (float)NAN, inf = (float)INFINITY, falling[HEADS] = { 1, -0.5f };
    const float unknown[HEADS] = { 1, nan }, endless[HEADS] = { inf, 1 };
    const float huge[HEADS] = { 1, 3e38f }; /* finite, but not in base 2 */
    float bias[4] = { 0, 0, 0, 0 };
    memset(ok.out.p, 0, sizeof(float) * HEADS); /* numbers to be taken for slopes */
    SPOIL(a.scale = nan, SWA_ERR_ARG);
    SPOIL(a.scale = inf, SWA_ERR_ARG);
    SPOIL(a.scale = -0.5f, SWA_ERR_ARG);
    SPOIL(a.scale = 3e38f, SWA_ERR_ARG); /* in base 2 it is none */
    SPOIL(a.scale = 1e-38f, SWA_ERR_ARG);
    SPOIL(a.softcap = 1e-40f, SWA_ERR_ARG); /* an int's bits */
    SPOIL(a.softcap = nan, SWA_ERR_ARG);
    SPOIL(a.softcap = -1, SWA_ERR_ARG);
    SPOIL(a.softcap = inf, SWA_ERR_ARG);
    SPOIL(a.softcap = 3e38f, SWA_ERR_ARG);
    SPOIL(a.alibi = falling, SWA_ERR_ARG); /* slopes of the other sign */
    SPOIL(a.alibi = unknown, SWA_ERR_ARG);
    SPOIL(a.alibi = endless, SWA_ERR_ARG);
    SPOIL(a.alibi = huge, SWA_ERR_ARG);
    SPOIL(a.sink_logits = huge, SWA_ERR_ARG);
    SPOIL(a.sink_logits = unknown, SWA_ERR_ARG);
    SPOIL(a.sink_logits = endless, SWA_ERR_ARG);
    SPOIL(a.bias_n = 4, SWA_ERR_ARG); /* of what? */
    SPOIL(a.bias = bias; a.bias_n = -1, SWA_ERR_ARG);
    SPOIL(a.bias = bias; a.bias_n = 4; a.bias_first = -1, SWA_ERR_ARG);
    SPOIL(a.bias = bias; a.bias_n = 4; a.bias_first = INT64_MAX, SWA_ERR_ARG);
    SPOIL(a.bias_by_distance = 1, SWA_ERR_ARG); /* of what? */
    SPOIL(a.bias = bias; a.bias_n = 4; a.bias_first = 1; a.bias_by_distance = 1, SWA_ERR_ARG);
    SPOIL(a.bias = bias; a.bias_n = (1 << 23) + 1; a.bias_by_distance = 1, SWA_ERR_ARG);
    a = ok; /* as far as floats count: only asked, because nobody has so many */
    a.bias = bias;
    a.bias_n = 1 << 23;
    a.bias_by_distance = 1;
    CHECK(swa_attend_explain(c, 0, &a) == NULL);
    SPOIL(a.bias = bias; a.bias_n = 0, SWA_ERR_ARG);
    SPOIL(a.bias = bias; a.bias_n = 4; a.bias_by_distance = 2, SWA_ERR_ARG);
    SPOIL(a.bias = bias; a.bias_n = 4; a.bias_token = INT64_MAX, SWA_ERR_ARG);
    SPOIL(a.bias = bias; a.bias_n = 4; a.bias_token = INT64_MIN, SWA_ERR_ARG);
    SPOIL(a.bias = bias; a.bias_n = 4; a.bias_head = INT64_MAX / 2, SWA_ERR_ARG);
    SPOIL(a.bias = bias; a.bias_n = INT64_MAX - 8, SWA_ERR_ARG);
    SPOIL(a.bias = a.out.p; a.bias_n = 4, SWA_ERR_ARG); /* read for the rows behind the first */
    SPOIL(a.bias = w.lse; a.bias_n = 4, SWA_ERR_ARG);
    SPOIL(a.alibi = a.out.p, SWA_ERR_ARG);
    SPOIL(a.sink_logits = a.out.p, SWA_ERR_ARG);
}
/* Each field of swa_attn spoilt for a shape with tail (t) or without. */
static void misuse_attn_fields(swa_cache *c, swa_attn ok, int tail) {
    swa_attn a;
    t_label(tail ? "with a tail" : "plain");
    misuse_attn_numbers(c, ok);
    SPOIL(a.q.p = NULL, SWA_ERR_ARG);
    SPOIL(a.k.p = NULL, SWA_ERR_ARG);
    SPOIL(a.out.p = NULL, SWA_ERR_ARG);
    SPOIL(a.v.p = NULL, SWA_ERR_ARG);
    SPOIL(a.mode = (swa_mode)-1, SWA_ERR_ARG);
    SPOIL(a.mode = (swa_mode)4, SWA_ERR_ARG);
    SPOIL(a.mode = SWA_STORE_ONLY; a.k.p = NULL, SWA_ERR_ARG);
    SPOIL(a.mode = SWA_STORE_ONLY; a.v.p = NULL, SWA_ERR_ARG);
    SPOIL(a.mode = SWA_ATTEND_STORED; a.q.p = NULL, SWA_ERR_ARG);
    SPOIL(a.mode = SWA_ATTEND_STORED; a.out.p = NULL, SWA_ERR_ARG);
    SPOIL(a.mode = SWA_ATTEND_STORED, SWA_ERR_ORDER); /* they are not */
    SPOIL(a.mode = SWA_ATTEND_NO_STORE; a.q.p = NULL, SWA_ERR_ARG);
    SPOIL(a.mode = SWA_ATTEND_NO_STORE; a.k.p = NULL, SWA_ERR_ARG);
    SPOIL(a.compute = (swa_type)-1, SWA_ERR_ARG);
    SPOIL(a.compute = SWA_F16, SWA_ERR_ARG);
    SPOIL(a.compute = (swa_type)99, SWA_ERR_ARG);
    SPOIL(a.compute = SWA_Q8, SWA_ERR_UNSUPPORTED); /* this ring is f32 */
    SPOIL(a.k.p = a.out.p, SWA_ERR_ARG);            /* the rows that are stored would be the outputs */
    SPOIL(a.v.p = a.out.p, SWA_ERR_ARG);
    SPOIL(a.mode = SWA_ATTEND_NO_STORE; a.v.p = a.out.p, SWA_ERR_ARG);
    SPOIL(a.k.p = w.lse, SWA_ERR_ARG);
    SPOIL(a.v.p = w.lse, SWA_ERR_ARG);
    SPOIL(a.q.p = w.lse, SWA_ERR_ARG);
    SPOIL(a.stat = w.stat; a.k.p = w.stat, SWA_ERR_ARG);
    SPOIL(a.stat = w.stat; a.q.p = w.stat, SWA_ERR_ARG);
    SPOIL(a.stat = w.lse, SWA_ERR_ARG);
    SPOIL(a.stat = w.out, SWA_ERR_ARG);
    SPOIL(a.lse = w.out, SWA_ERR_ARG);
    if (tail) {
        SPOIL(a.q_tail.p = a.out.p, SWA_ERR_ARG);
        SPOIL(a.k_tail.p = a.out.p, SWA_ERR_ARG);
        SPOIL(a.q_sink_tail.p = a.out.p, SWA_ERR_ARG);
        SPOIL(a.q_sink_tail.p = w.apart + 64, SWA_ERR_ARG); /* n_sink was forgotten */
        SPOIL(a.q_tail.p = NULL, SWA_ERR_ARG);
        SPOIL(a.k_tail.p = NULL, SWA_ERR_ARG);
        CHECK(strstr(swa_attend_explain(c, 0, &a), "NULL") != NULL);
        SPOIL(a.scale = 0, SWA_ERR_ARG);
    } else { /* tail_dim was forgotten */
        SPOIL(a.q_tail.p = w.x, SWA_ERR_ARG);
        SPOIL(a.k_tail.p = w.x, SWA_ERR_ARG);
        CHECK(strstr(swa_attend_explain(c, 0, &a), "no tail") != NULL);
        SPOIL(a.q_sink_tail.p = w.x, SWA_ERR_ARG);
        SPOIL(a.q_sink.p = w.x, SWA_ERR_ARG); /* n_sink was forgotten */
    }
}
#undef SPOIL
/* Strides with which rows share numbers: one of two forgotten, in bytes of nothing, negative, huge. HELD tokens. */
static void misuse_strides(swa_cache *c, swa_attn ok) {
    /* clang-format off */
    static const struct { int64_t token, head; int good; } list[] = {
        { HEADS * DIM, DIM, 1 }, { DIM, HELD * DIM, 1 }, { 0, DIM, 1 }, { HEADS * DIM, 0, 1 },
        { DIM + 1, HELD * DIM + HELD, 1 },
        { 0, HELD * DIM, 0 }, { 0, HELD * HEADS * DIM, 0 },
        { DIM, 0, 0 }, { 1, DIM, 0 }, { HEADS * DIM, 1, 0 }, { -HEADS * DIM, DIM, 0 },
        { HEADS * DIM, -DIM, 0 }, { HEADS * DIM - 1, DIM, 0 }, { DIM, HELD * DIM - 1, 0 }, { INT64_MIN, 0, 0 },
        { 0, INT64_MIN, 0 }, { 0, INT64_MAX, 0 } };
    /* clang-format on */
    const int64_t kv_heads = w.desc.shape.n_kv_heads;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (int which = 0; which < 4; which++) {
            swa_attn a = ok;
            swa_in in = { which == 0 ? a.q.p : which == 1 ? a.k.p : a.v.p, list[i].token, list[i].head };
            if (list[i].good || ((which == 1 || which == 2) && kv_heads < HEADS)) continue;
            t_label("strides %d of %d", (int)i, which);
            if (which == 0) a.q = in;
            if (which == 1) a.k = in;
            if (which == 2) a.v = in;
            if (which == 3) {
                a.out.token = in.token;
                a.out.head = in.head;
            }
            REFUSE(swa_attend, (c, 0, &a), SWA_ERR_ARG);
        }
    for (int i = 0; i < 2; i++) { /* where a head lies means nothing if there is one */
        swa_attn a = ok;
        a.mode = SWA_ATTEND_NO_STORE;
        a.k.head = i == 0 ? 3 * DIM : 0;
        a.v.head = i == 1 ? 3 * DIM : 0;
        if (kv_heads == 1) ACCEPT(swa_attend, (c, 0, &a));
    }
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        static float wide[4 * HELD * HEADS * (DIM + 2)];
        swa_attn a = ok;
        if (!list[i].good) continue;
        t_label("strides %d", (int)i);
        a.mode = SWA_ATTEND_NO_STORE;
        a.q.p = wide;
        a.q.token = list[i].token;
        a.q.head = list[i].head;
        ACCEPT(swa_attend, (c, 0, &a));
    }
}
/* The inputs of a call, one by one. */
enum { INPUTS = 7 };
static swa_in *input(swa_attn *a, int i) {
    swa_in *const ins[INPUTS] = { &a->q, &a->q_sink, &a->q_tail, &a->q_sink_tail, &a->k, &a->k_tail, &a->v };
    return ins[i];
}
/* Each array of a call by itself has strides that are none, all others are packed. V is wider than K. */
static void misuse_stride_of_each(void) {
    enum { N = 3, TAIL = 2, V = DIM + 2 };
    static const swa_in odd[] = { { NULL, 1, 0 },   { NULL, 0, 1 },        { NULL, INT64_MAX, DIM + 2 },
                                  { NULL, -99, 0 }, { NULL, 99, DIM + 1 }, { NULL, HEADS * (DIM + 2) - 1, DIM + 2 } };
    const swa_window win = swa_window_sinks(4, 1);
    swa_cache_desc d = w.desc;
    swa_cache c;
    swa_attn ok;
    t_label("stride of each");
    d.windows = &win;
    d.n_windows = d.n_layers = 1;
    d.shape.n_kv_heads = HEADS;
    d.shape.tail_dim = TAIL;
    d.shape.v_dim = V;
    if (!t_cache_new(&c, &d, 1)) return;
    memset(&ok, 0, sizeof ok);
    ok.mode = SWA_ATTEND_NO_STORE;
    ok.scale = 0.5f;
    ok.q.p = t_random(N * HEADS * DIM, 1.0f);
    ok.q_sink.p = t_random(N * HEADS * DIM, 1.0f);
    ok.q_tail.p = t_random(N * HEADS * TAIL, 1.0f);
    ok.q_sink_tail.p = t_random(N * HEADS * TAIL, 1.0f);
    ok.k.p = t_random(N * HEADS * DIM, 1.0f);
    ok.k_tail.p = t_random(N * HEADS * TAIL, 1.0f);
    ok.v.p = t_random(N * HEADS * V, 1.0f);
    ok.out.p = t_floats(N * HEADS * V);
    CHECK_OK(swa_step_one(&c, 0, 0, N));
    ACCEPT(swa_attend, (&c, 0, &ok));
    for (int which = 0; which < INPUTS; which++) { /* in the cache's memory */
        swa_attn a = ok;
        t_label("array %d within the cache", which);
        input(&a, which)->p = (const float *)c.mem_;
        REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
    }
    for (int i = 0; i < 6; i++)
        for (int which = 0; which <= INPUTS; which++) {
            swa_attn a = ok;
            const int dims[INPUTS + 1] = { DIM, DIM, TAIL, TAIL, DIM, TAIL, V, V };
            swa_in x = odd[i];
            if (i >= 4) { /* heads, or tokens, that share a number */
                x.head = dims[which] - (i == 4);
                x.token = HEADS * dims[which] - (i == 5);
            }
            t_label("strides %d of array %d", i, which);
            if (which < INPUTS) {
                input(&a, which)->token = x.token;
                input(&a, which)->head = x.head;
            } else {
                a.out.token = x.token;
                a.out.head = x.head;
            }
            REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
        }
}
enum { T_ROW = HEADS * DIM + 2 * DIM, T_N = 3 };
static float t_fused[2 * T_N * T_ROW], t_out[T_N * HEADS * DIM], t_lse[T_N * HEADS];
/* Arrays that run into each other: a fused [n][q | k | v] of which a stride was forgotten, tails beside their rows,
   outputs over anything. What is laid out alike, or lies in the gaps of another, may stay. */
static int tangle_open(swa_cache *c, swa_attn *ok, int dv) {
    swa_cache_desc d = w.desc;
    d.shape.v_dim = dv;
    memset(ok, 0, sizeof *ok);
    ok->mode = SWA_ATTEND_NO_STORE;
    ok->q.p = t_fused;
    ok->k.p = t_fused + HEADS * DIM;
    ok->v.p = t_fused + HEADS * DIM + DIM;
    ok->q.token = ok->k.token = ok->v.token = T_ROW;
    ok->out.p = t_out;
    ok->lse = t_lse;
    return t_cache_new(c, &d, 1) && CHECK_OK(swa_step_one(c, 0, 0, T_N));
}
/* The good call with one change, in a function's c, ok and a. */
#define SPOIL(change)                                                                                                  \
    do {                                                                                                               \
        a = ok;                                                                                                        \
        change;                                                                                                        \
        REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);                                                                  \
    } while (0)
static void misuse_tangles(int dv) {
    swa_cache c;
    swa_attn ok, a;
    t_label("tangles, V of %d", dv);
    if (!tangle_open(&c, &ok, dv)) return;
    ACCEPT(swa_attend, (&c, 0, &ok));
    SPOIL(a.q.token = 0);
    SPOIL(a.k.token = 0);
    SPOIL(a.v.token = 0);
    SPOIL(a.k.token = a.v.token = 0);
    SPOIL(a.q.token = a.k.token = a.v.token = 0);
    /* [k][v] of half as many heads as was said: V begins in K's second token, or third */
    SPOIL(a.k.token = a.v.token = 0; a.k.p = w.x; a.v.p = w.x + T_N * DIM / 2);
    SPOIL(a.k.token = a.v.token = 0; a.k.p = w.x; a.v.p = w.x + 2 * DIM + 1);
    SPOIL(a.k.token = a.v.token; a.v.p = a.k.p + 2 * T_ROW - 2); /* over the beginning of K's row after next */
    SPOIL(a.out.p = t_fused + 1);
    SPOIL(a.out.p = t_fused + T_N * T_ROW - 2); /* V ends there, or one later */
    SPOIL(a.out.p = t_fused);                   /* q itself, but of another layout */
    SPOIL(a.lse = t_fused + T_ROW + 1);
    SPOIL(a.k.p = a.v.p = w.x; a.k.token = a.v.token = 0; a.lse = t_fused + DIM + 2); /* in q's second head */
    SPOIL(a.lse = t_out + 2);
    SPOIL(a.stat = t_out + T_N * HEADS * dv - 1);
    SPOIL(a.stat = t_lse + 1);
    SPOIL(a.q.token = DIM; a.q.head = T_N * DIM; a.k.p = a.q.p + T_N * HEADS * DIM - 1); /* head after head */
    SPOIL(a.q.token = DIM; a.q.head = T_N * DIM + 1; a.lse = t_fused + T_N * DIM);       /* one gap, which is less */
}
/* The same of one token, which has no token strides: under audit alone. */
static void misuse_tangled_token(void) {
    for (int audit = 0; audit < 3; audit++) {
        swa_cache_desc d = w.desc;
        swa_cache c;
        swa_attn ok, a;
        t_label("one token, audit %d", audit);
        d.audit = audit;
        memset(&ok, 0, sizeof ok);
        ok.mode = SWA_ATTEND_NO_STORE;
        ok.q.p = t_fused;
        ok.k.p = t_fused + HEADS * DIM;
        ok.v.p = ok.k.p + DIM;
        ok.out.p = t_out;
        ok.lse = t_lse;
        if (!t_cache_new(&c, &d, 1) || !CHECK_OK(swa_step_one(&c, 0, 0, 1))) return;
        ACCEPT(swa_attend, (&c, 0, &ok));
        for (int i = 0; i < 5; i++) {
            a = ok;
            if (i == 0) a.out.p = t_fused + HEADS * DIM - 1; /* over q's end and K */
            if (i == 1) a.out.p = t_fused + HEADS * DIM + 1;
            if (i == 2) a.lse = t_fused + HEADS * DIM + DIM + 1;
            if (i == 3) a.stat = t_out + 2 * HEADS;
            if (i == 4) a.k.p = t_fused + DIM; /* in q: n_kv_heads was said wrong */
            if (audit == 0) ACCEPT(swa_attend, (&c, 0, &a));
            else REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
        }
    }
}
/* A fused [n][q | k | v] of which a place or a token stride is another's: rows of K or V share numbers with q's. */
static void misuse_fused(void) {
    enum { N = 5, G = 2, H = 4, FUSED = (H + 2 * G) * DIM };
    static float x[2 * N * FUSED], out[N * H * DIM];
    swa_cache_desc d = w.desc;
    swa_attn ok, a;
    swa_cache c;
    t_label("fused");
    d.shape.n_heads = H;
    d.shape.n_kv_heads = G;
    if (!t_cache_new(&c, &d, 1) || !CHECK_OK(swa_step_one(&c, 0, 0, N))) return;
    memset(&ok, 0, sizeof ok);
    ok.mode = SWA_ATTEND_NO_STORE;
    ok.q.p = x;
    ok.k.p = x + H * DIM;
    ok.v.p = x + (H + G) * DIM;
    ok.q.token = ok.k.token = ok.v.token = FUSED;
    ok.out.p = out;
    ACCEPT(swa_attend, (&c, 0, &ok));
    SPOIL(a.k.p = x + G * DIM);
    SPOIL(a.v.p = x + DIM);
    SPOIL(a.k.token = a.v.token = H * DIM);
    SPOIL(a.v.token = H * DIM);
    SPOIL(a.k.token = FUSED + DIM);
    a = ok; /* and one whose outputs lie in its gaps: wider rows than are used */
    a.q.token = a.k.token = a.v.token = FUSED + H * DIM;
    a.out.p = x + FUSED;
    a.out.token = FUSED + H * DIM;
    ACCEPT(swa_attend, (&c, 0, &a));
    a.out.p = x + FUSED - 1;
    REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
}
/* Under audit: strides in bytes, of arrays apart or fused rows, not of other parts of one; a bias that hides the last
   token's own key from all. */
static void misuse_audited_calls(void) {
    enum { N = 3, WIDE = 4 * N * HEADS * DIM };
    static float x[4 * WIDE], out[N * HEADS * DIM];
    float bias[N] = { 0, 0, -INFINITY };
    swa_cache_desc d = w.desc;
    for (int kv_heads = 1; kv_heads <= HEADS; kv_heads += HEADS - 1)
        for (d.audit = 0; d.audit < 2; d.audit++) {
            swa_attn ok, a;
            swa_cache c;
            t_label("%d KV heads, audit %d", kv_heads, d.audit);
            d.shape.n_kv_heads = kv_heads;
            if (!t_cache_new(&c, &d, 1) || !CHECK_OK(swa_step_one(&c, 0, 0, N))) return;
            memset(&ok, 0, sizeof ok);
            ok.mode = SWA_ATTEND_NO_STORE;
            ok.q.p = x;
            ok.k.p = x + WIDE;
            ok.v.p = x + 2 * WIDE;
            ok.out.p = out;
            a = ok;
            a.q.token = 4 * HEADS * DIM;
            a.k.token = a.v.token = 4 * kv_heads * DIM;
            a.q.head = a.k.head = a.v.head = 4 * DIM;
            if (d.audit) REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
            else ACCEPT(swa_attend, (&c, 0, &a));
            a.v.token++;
            ACCEPT(swa_attend, (&c, 0, &a));
            a.v.token--;
            a.q.head = a.k.head = a.v.head = 0; /* a wider array's pitch */
            if (kv_heads == HEADS) ACCEPT(swa_attend, (&c, 0, &a));
            a.q.head = a.k.head = a.v.head = 4 * DIM;
            a.k.p = x + DIM; /* [head][q | k | v | one more] */
            a.v.p = x + 2 * DIM;
            if (kv_heads == HEADS) ACCEPT(swa_attend, (&c, 0, &a));
            a = ok;
            a.k.p = x + HEADS * DIM; /* fused rows [q | k | v] */
            a.v.p = a.k.p + kv_heads * DIM;
            a.q.token = a.k.token = a.v.token = 4 * (HEADS + 2 * kv_heads) * DIM;
            if (d.audit) REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
            else ACCEPT(swa_attend, (&c, 0, &a));
            a.v.p += DIM; /* [q | k | something | v] */
            ACCEPT(swa_attend, (&c, 0, &a));
            a = ok;
            a.bias = bias;
            a.bias_n = N;
            if (d.audit) REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
            else ACCEPT(swa_attend, (&c, 0, &a));
            a.bias_n = N - 1; /* it does not hide what it does not speak of */
            ACCEPT(swa_attend, (&c, 0, &a));
            a.bias_n = N;
            a.bias_first = 1; /* its own is the one before */
            ACCEPT(swa_attend, (&c, 0, &a));
        }
}
/* Under audit phase 1 stores what phase 0 has seen, or nothing. */
static void misuse_rows_that_change(void) {
    static float k[2 * DIM], v[2 * DIM];
    swa_cache_desc d = w.desc;
    for (d.audit = 0; d.audit < 2; d.audit++)
        for (int which = 0; which < 2; which++) {
            swa_attn a = w.attn;
            swa_cache c;
            const char *why;
            t_label("audit %d, array %d", d.audit, which);
            if (!t_cache_new(&c, &d, 1) || !CHECK_OK(swa_step_one(&c, 0, 0, 2))) return;
            a.q.p = w.x;
            a.k.p = k;
            a.v.p = v;
            a.out.p = t_out;
            CHECK_OK(swa_attend_part(&c, 0, &a, 0, 0, 1));
            (which ? v : k)[2 * DIM - 1] += 1;
            why = swa_attend_part_explain(&c, 0, &a, 1, 0, 1);
            CHECK((why != NULL) == d.audit && (why == NULL || strstr(why, "other numbers in k or v") != NULL));
            if (d.audit) REFUSE(swa_attend_part, (&c, 0, &a, 1, 0, 1), SWA_ERR_ORDER);
            (which ? v : k)[2 * DIM - 1] -= 1;
            ACCEPT(swa_attend_part, (&c, 0, &a, 1, 0, 1));
        }
}
/* Under audit a NaN in new rows is refused, whatever is done with them, and a bias row that hides its token's key. */
static void misuse_numbers_under_audit(void) {
    static const float bias[1] = { -INFINITY };
    static float x[3][2 * DIM];
    swa_cache_desc d = w.desc;
    for (d.audit = 0; d.audit < 2; d.audit++)
        for (int mode = 0; mode < 4; mode++)
            for (int which = 0; which < 3; which++) { /* k, v, k_tail */
                swa_attn a = w.attn;
                swa_cache c;
                t_label("audit %d, mode %d, array %d", d.audit, mode, which);
                d.shape.tail_dim = 2;
                if (!t_cache_new(&c, &d, 1) || !CHECK_OK(swa_step_one(&c, 0, 0, 1))) return;
                a.q.p = w.x;
                a.q_tail.p = w.x + HEADS * DIM;
                a.k.p = x[0];
                a.v.p = x[1];
                a.k_tail.p = x[2];
                a.out.p = t_out;
                a.scale = 0.5f;
                a.bias = bias;
                a.bias_n = 1;
                if (d.audit) REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
                a.bias = NULL;
                a.bias_n = 0;
                if (mode == SWA_ATTEND_STORED) ACCEPT(swa_attend, (&c, 0, &a)); /* by mode 0 */
                a.mode = (swa_mode)mode;
                x[which][which == 2 ? 1 : DIM - 1] = (float)NAN;
                if (d.audit && mode != SWA_ATTEND_STORED) REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
                else ACCEPT(swa_attend, (&c, 0, &a));
                x[which][which == 2 ? 1 : DIM - 1] = 0;
            }
}
/* ... and looks at no rows that it does not store, nor at those that a mode does not look at. */
static void misuse_rows_of_no_matter(void) {
    static float q[HEADS * DIM], k[DIM];
    swa_cache_desc d = w.desc;
    swa_attn a;
    swa_cache c;
    t_label("rows of no matter");
    d.audit = 1;
    d.shape.tail_dim = 2;
    d.shape.v_in_k = 1;
    if (!t_cache_new(&c, &d, 1) || !CHECK_OK(swa_step_one(&c, 0, 0, 1))) return;
    memset(&a, 0, sizeof a);
    a.scale = 0.5f;
    a.q.p = q;
    a.q_tail.p = w.x;
    a.k.p = k;
    a.k_tail.p = w.x + 8;
    a.out.p = t_out;
    a.mode = SWA_STORE_ONLY;
    CHECK_OK(swa_attend(&c, 0, &a));
    a.mode = SWA_ATTEND_STORED;
    a.k_tail.p = k; /* of an older step */
    a.k_tail.token = INT64_MAX;
    CHECK_OK(swa_attend_part(&c, 0, &a, 0, 0, 1));
    k[0] += 1;
    CHECK_OK(swa_attend_part(&c, 0, &a, 1, 0, 1));
}
/* Memory that was moved, or that became another's, is no cache: every call says so, and nobody follows what it says. */
static void misuse_moved(void) {
    const size_t n = swa_cache_bytes(&w.desc), more = n + 128;
    unsigned char *mem = (unsigned char *)t_alloc(more);
    swa_cache c, moved;
    t_label("moved");
    CHECK_OK(swa_cache_init(&c, &w.desc, mem, n));
    CHECK_OK(swa_step_one(&c, 0, 0, 1));
    for (int to = 1; to <= 128; to += 63) { /* 1, 64, 127 bytes on: another alignment, and the same */
        memmove(mem + to, mem, n);
        moved.mem_ = mem + to;
        CHECK_STATUS(swa_step_one(&moved, 0, 0, 1), SWA_ERR_ARG);
        CHECK_STATUS(swa_attend(&moved, 0, &w.attn), SWA_ERR_ARG);
        CHECK_INT(swa_cache_end(&moved, 0), -1);
        CHECK(strstr(swa_attend_explain(&moved, 0, &w.attn), "moved") != NULL);
        memmove(mem, mem + to, n);
        CHECK_INT(swa_cache_end(&c, 0), 1);
    }
    for (int byte = 0; byte < 256; byte += 51) {
        memset(mem, byte, more);
        CHECK_STATUS(swa_step_one(&c, 0, 1, 1), SWA_ERR_ARG);
        CHECK_STATUS(swa_cache_truncate(&c, 0, 0), SWA_ERR_ARG);
    }
}
/* What lies apart, if only in the gaps of another, or is laid out alike. */
static void misuse_gaps(int dv) {
    swa_cache c;
    swa_attn ok, a;
    t_label("gaps, V of %d", dv);
    if (!tangle_open(&c, &ok, dv)) return;
    a = ok;
    a.q.token = DIM + T_N * HEADS; /* gaps after each row of a head, and lse in one of them */
    a.q.head = T_N * a.q.token;
    a.k.p = a.v.p = w.x;
    a.k.token = a.v.token = 0;
    a.lse = t_fused + DIM;
    ACCEPT(swa_attend, (&c, 0, &a));
    a.q.head = DIM + T_N * HEADS; /* the same, token after token: lse ends where the next row begins */
    a.q.token = HEADS * a.q.head;
    ACCEPT(swa_attend, (&c, 0, &a));
    a.q.token = DIM + T_N * HEADS;
    a.q.head = T_N * a.q.token;
    a.q.head++; /* strides that do not run as one are not looked into */
    ACCEPT(swa_attend, (&c, 0, &a));
    a = ok;
    a.v.token = (int64_t)1 << (sizeof(size_t) < 8 ? 28 : 44); /* as far as strides reach: nothing overflows */
    CHECK_OK(swa_cache_set_scratch(&c, NULL, 0));
    REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_MEMORY);
    a.k.token = 0;
    REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
    if (!tangle_open(&c, &ok, dv)) return;
    a = ok;
    a.out.p = t_fused;
    a.out.token = T_ROW;
    if (dv == DIM) ACCEPT(swa_attend, (&c, 0, &a));
    else REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
    a = ok; /* K's rows as they lie, and V the end of each */
    a.k.p = t_fused;
    a.q.p = t_fused + T_N * T_ROW - T_N * HEADS * DIM;
    a.q.token = 0;
    a.k.token = a.v.token = DIM;
    a.v.p = t_fused + DIM - dv;
    ACCEPT(swa_attend, (&c, 0, &a));
    a.v.token = dv;
    if (dv < DIM) REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
}
/* An engine's latents [n][latent | rope]: the stride of one of two was forgotten. */
static void misuse_tangled_tail(void) {
    enum { ROW = DIM + 2, N = 3 };
    static float q[N * HEADS * ROW], k[N * ROW], out[N * HEADS * DIM];
    swa_cache_desc d = w.desc;
    swa_cache c;
    swa_attn ok, a;
    t_label("tangled tails");
    d.shape.tail_dim = 2;
    d.shape.v_in_k = 1;
    if (!t_cache_new(&c, &d, 1)) return;
    memset(&ok, 0, sizeof ok);
    ok.mode = SWA_ATTEND_NO_STORE;
    ok.scale = 0.5f;
    ok.q.p = q;
    ok.q_tail.p = q + DIM;
    ok.k.p = k;
    ok.k_tail.p = k + DIM;
    ok.q.token = ok.q_tail.token = HEADS * ROW;
    ok.q.head = ok.q_tail.head = ROW;
    ok.k.token = ok.k_tail.token = ROW;
    ok.out.p = out;
    CHECK_OK(swa_step_one(&c, 0, 0, N));
    ACCEPT(swa_attend, (&c, 0, &ok));
    a = ok;
    a.v.p = k + 1; /* not looked at: hosts of many models set it always */
    ACCEPT(swa_attend, (&c, 0, &a));
    SPOIL(a.k.token = 0);
    SPOIL(a.k_tail.token = 0);
    SPOIL(a.q.token = a.q.head = 0);
    SPOIL(a.q_tail.token = a.q_tail.head = 0);
    SPOIL(a.q.head = 0);
    SPOIL(a.q_tail.head = 0);
    SPOIL(a.q_tail.p = q);
    SPOIL(a.k_tail.p = k);
    SPOIL(a.out.p = q + DIM);
    SPOIL(a.out.p = k + DIM);
#undef SPOIL
}
static void misuse_lists(swa_cache *c, swa_attn ok) {
    static const int32_t list[2] = { 0, -1 };
    const swa_window none = swa_window_sliding(0), all = { 0 }, pinned = swa_window_sinks(4, 1),
                     prefix = swa_window_prefix(4, 2);
    swa_attn a;
    t_label("lists");
#define SPOIL(change, want)                                                                                            \
    do {                                                                                                               \
        a = ok;                                                                                                        \
        change;                                                                                                        \
        REFUSE(swa_attend, (c, 0, &a), want);                                                                          \
    } while (0)
    SPOIL(a.pick_n = 1, SWA_ERR_ARG); /* entries, but no list */
    SPOIL(a.pick_window = &w.windows[0], SWA_ERR_ARG);
    SPOIL(a.pick = list; a.pick_n = -1, SWA_ERR_ARG);
    SPOIL(a.pick = list, SWA_ERR_ARG); /* pick_n forgotten */
    SPOIL(a.pick = list; a.pick_n = 2; a.pick_block = -1, SWA_ERR_ARG);
    SPOIL(a.pick = list; a.pick_n = 2; a.pick_block = 3, SWA_ERR_ARG);
    SPOIL(a.pick = list; a.pick_n = 2; a.pick_block = 256, SWA_ERR_ARG);
    SPOIL(a.pick = list; a.pick_n = 2; a.pick_block = INT32_MIN, SWA_ERR_ARG);
    SPOIL(a.pick = list; a.pick_n = 2; a.pick_window = &none, SWA_ERR_ARG);
    SPOIL(a.pick = list; a.pick_n = 2; a.pick_window = &all, SWA_ERR_ARG); /* zeros: a forgotten window */
    SPOIL(a.pick = list; a.pick_n = 2; a.pick_token = -2, SWA_ERR_ARG);
    SPOIL(a.pick = list; a.pick_n = 2; a.pick_head = -2, SWA_ERR_ARG);
    SPOIL(a.pick = list; a.pick_n = 2; a.pick_token = INT64_MAX, SWA_ERR_ARG);
    SPOIL(a.pick = list; a.pick_n = 2; a.pick_head = INT64_MAX, SWA_ERR_ARG);
    SPOIL(a.pick = list; a.pick_n = 2; a.pick_window = &pinned, SWA_ERR_UNSUPPORTED);
    SPOIL(a.pick = list; a.pick_n = 2; a.pick_window = &prefix, SWA_ERR_UNSUPPORTED);
    SPOIL(a.pick = list; a.pick_n = 2; a.compute = SWA_BF16, SWA_ERR_UNSUPPORTED);
    SPOIL(a.pick = list; a.pick_n = 2; a.compute = SWA_BF16_TILE, SWA_ERR_UNSUPPORTED);
    SPOIL(a.pick = (const int32_t *)(const void *)w.out; a.pick_n = 2, SWA_ERR_ARG);
    SPOIL(a.pick = (const int32_t *)(const void *)w.lse; a.pick_n = 2, SWA_ERR_ARG);
#undef SPOIL
}
static void misuse_tail(void) {
    swa_cache_desc d = w.desc;
    swa_cache c;
    swa_attn a = w.attn;
    d.shape.tail_dim = 2;
    if (!t_cache_new(&c, &d, 1) || !begin_anew(&c)) return;
    a.q_tail.p = a.k_tail.p = w.apart;
    a.scale = 0.5f;
    a.q_tail.p = w.x; /* where q is */
    REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
    a.q_tail.p = a.k_tail.p;
    a.k_tail.p = w.x;
    REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
    a.k_tail.p = a.q_tail.p;
    misuse_attn_fields(&c, a, 1);
    ACCEPT(swa_attend, (&c, 0, &a));
    d.shape.tail_dim = 0;
    d.shape.v_in_k = 1;
    if (!t_cache_new(&c, &d, 1) || !begin_anew(&c)) return;
    a.scale = 0;
    REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG); /* which scale? */
}
/* int8 products are for q8 keys without a tail, of at most 1040 numbers. */
static void misuse_compute(void) {
    float *x = t_random(HEADS * 1041, 1.0f);
    for (int i = 0; i < 3; i++) {
        swa_cache_desc d = w.desc;
        swa_attn a = w.attn;
        swa_cache c;
        d.k_type = SWA_Q8;
        d.shape.tail_dim = i == 0 ? 2 : 0;
        d.shape.head_dim = 1039 + i;
        d.shape.v_dim = DIM;
        t_label("int8, %d", i);
        if (!t_cache_new(&c, &d, 1)) return;
        CHECK_OK(swa_step_one(&c, 0, 0, 1));
        a.q.p = a.k.p = x;
        a.q_tail.p = a.k_tail.p = i == 0 ? w.apart : NULL;
        a.scale = 0.5f;
        a.compute = SWA_Q8;
        if (i == 1) ACCEPT(swa_attend, (&c, 0, &a));
        else REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_UNSUPPORTED);
    }
}
/* k and v in one array, of which rows run into other rows: n_kv_heads was said wrong, or v's place. */
static void misuse_crossed(void) {
    static float x[512], out[512];
    static const struct {
        int heads, k, v, v_dim, stride;
        swa_status want;
    } ways[] = {
        { 2, 16, 24, 4, 0, SWA_OK },      { 4, 16, 24, 4, 0, SWA_ERR_ARG }, /* [q | k | v], two KV heads or four */
        { 4, 24, 16, 4, 0, SWA_ERR_ARG }, { 2, 16, 20, 4, 8, SWA_OK },      /* [head][k | v] */
        { 2, 20, 16, 4, 8, SWA_OK },      { 2, 16, 18, 4, 8, SWA_ERR_ARG }, { 2, 16, 22, 4, 8, SWA_ERR_ARG },
        { 1, 17, 16, 5, 0, SWA_OK },      { 1, 18, 16, 5, 0, SWA_ERR_ARG }, /* K within V */
        { 1, 16, 18, 2, 0, SWA_OK },      { 1, 16, 18, 4, 0, SWA_ERR_ARG }, /* V within K; half in it */
        { 2, 16, 17, 3, 4, SWA_OK },      { 2, 16, 21, 3, 4, SWA_ERR_ARG }, { 2, 16, 16, 4, 0, SWA_OK },
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const swa_window window = swa_window_sliding(8);
        swa_cache_desc d = { 0 };
        swa_cache kv;
        swa_attn a = { 0 };
        d.shape.n_heads = 4;
        d.shape.n_kv_heads = ways[i].heads;
        d.shape.head_dim = 4;
        d.shape.v_dim = ways[i].v_dim;
        d.n_layers = d.n_windows = 1;
        d.windows = &window;
        if (!t_cache_new(&kv, &d, 1)) return;
        a.q.p = x;
        a.k.p = x + ways[i].k;
        a.v.p = x + ways[i].v;
        a.k.head = a.v.head = ways[i].stride;
        a.out.p = out;
        a.q.token = a.k.token = a.v.token = 64;
        for (int n = 1; n < 3; n++) {
            t_label("k and v in one array, way %d, %d tokens", (int)i, n);
            CHECK_OK(swa_step_one(&kv, 0, 0, n));
            CHECK((swa_attend_explain(&kv, 0, &a) == NULL) == (ways[i].want == SWA_OK));
            CHECK_STATUS(swa_attend(&kv, 0, &a), ways[i].want);
            CHECK_OK(swa_cache_reset(&kv, 0, 0, 0));
        }
        if (i == 3) { /* between k's heads, and goes on by other steps */
            const char *said;
            a.v.head = 12;
            CHECK_OK(swa_step_one(&kv, 0, 0, 1));
            said = swa_attend_explain(&kv, 0, &a);
            CHECK(said != NULL && strstr(said, "k.head and v.head") != NULL);
            CHECK_STATUS(swa_attend(&kv, 0, &a), SWA_ERR_ARG);
        }
    }
}
static void misuse_attend(void) {
    misuse_moved();
    if (!begin_anew(&w.kv)) return;
    misuse_attn_fields(&w.kv, w.attn, 0);
    misuse_lists(&w.kv, w.attn);
    misuse_strides(&w.kv, w.attn);
    misuse_stride_of_each();
    { /* with stat sink logits are not looked at, whatever and wherever they are */
        const swa_attn ok = w.attn;
        w.attn.mode = SWA_ATTEND_NO_STORE;
        w.attn.stat = w.stat;
        w.attn.sink_logits = w.out;
        ACCEPT(swa_attend, (&w.kv, 0, &w.attn));
        w.attn.sink_logits = t_floats(HEADS); /* NaN */
        ACCEPT(swa_attend, (&w.kv, 0, &w.attn));
        w.attn = ok;
    }
    for (int dv = DIM - 1; dv <= DIM; dv++) {
        misuse_tangles(dv);
        misuse_gaps(dv);
    }
    misuse_tangled_token();
    misuse_tangled_tail();
    misuse_fused();
    misuse_audited_calls();
    misuse_rows_that_change();
    misuse_numbers_under_audit();
    misuse_rows_of_no_matter();
    misuse_crossed();
    t_label("attend");
    REFUSE(swa_attend, (&w.kv, 0, NULL), SWA_ERR_ARG);
    REFUSE(swa_attend_part, (&w.kv, 0, NULL, 0, 0, 1), SWA_ERR_ARG);
    for (int i = 0; i < BAD; i++) {
        int n = bad_index[i];
        REFUSE(swa_attend, (&w.kv, n == 3 ? 2 : n, &w.attn), SWA_ERR_ORDER);
        REFUSE(swa_attend_part, (&w.kv, n == 3 ? 2 : n, &w.attn, 0, 0, 1), SWA_ERR_ORDER);
        REFUSE(swa_attend_part, (&w.kv, 0, &w.attn, n, 0, 1), SWA_ERR_ORDER);
        REFUSE(swa_attend_part, (&w.kv, 0, &w.attn, 0, n, 2), SWA_ERR_ORDER);
        REFUSE(swa_attend_part, (&w.kv, 0, &w.attn, 0, 0, n), n < 0 || n > 1 << 16 ? SWA_ERR_ORDER : SWA_ERR_MEMORY);
    }
    REFUSE(swa_attend_part, (&w.kv, 0, &w.attn, 0, 0, 0), SWA_ERR_ORDER);
    REFUSE(swa_attend_part, (&w.kv, 0, &w.attn, SWA_PHASES, 0, 1), SWA_ERR_ORDER);
    REFUSE(swa_attend_part, (&w.kv, 0, &w.attn, 0, 1, 1), SWA_ERR_ORDER);
}
/* Phases, layers and modes in an order that cannot be meant. */
static void misuse_order(void) {
    swa_attn a = w.attn;
    t_label("order");
    REFUSE(swa_attend_part, (&w.kv, 1, &a, 1, 0, 1), SWA_ERR_ORDER); /* phase 1 before phase 0 */
    a.mode = SWA_STORE_ONLY;
    ACCEPT(swa_attend, (&w.kv, 0, &a));
    a.mode = SWA_ATTEND;
    REFUSE(swa_attend, (&w.kv, 0, &a), SWA_ERR_ORDER); /* stored */
    REFUSE(swa_attend_part, (&w.kv, 0, &a, 0, 0, 1), SWA_ERR_ORDER);
    a.mode = SWA_ATTEND_STORED; /* 20 rows into 16 slots */
    REFUSE(swa_attend, (&w.kv, 0, &a), SWA_ERR_CAPACITY);
    REFUSE(swa_attend_part, (&w.kv, 0, &a, 0, 0, 1), SWA_ERR_CAPACITY);
    REFUSE(swa_cache_save, (&w.kv, 0, w.blob, sizeof w.blob), SWA_ERR_ORDER);
    REFUSE(swa_step_one, (&w.kv, 0, HELD, 1), SWA_ERR_ORDER); /* layer 1 has stored nothing */
    REFUSE(swa_attend, (&w.kv, 1, &w.attn), SWA_ERR_ORDER);
    if (!begin_anew(&w.kv)) return;
    ACCEPT(swa_attend, (&w.kv, 0, &w.attn));
    ACCEPT(swa_attend, (&w.kv, 1, &w.attn));
    CHECK_OK(swa_step_one(&w.kv, 1, 0, 4));
    CHECK_OK(swa_cache_reset(&w.kv, 1, 0, 0)); /* what was begun is gone */
    REFUSE(swa_attend, (&w.kv, 0, &w.attn), SWA_ERR_ORDER);
}
/* Scratch in the cache, and arrays in either: offsets of one block that went wrong. */
static void misuse_insides(unsigned char *room, size_t bytes) {
    /* to the last byte that was given */
    REFUSE(swa_cache_set_scratch, (&w.kv, w.block + GUARD + w.bytes - 1, 1 << 19), SWA_ERR_ARG);
    /* what was given as memory begins anywhere, and the library's own 63 bytes further on at most */
    unsigned char *const ring = w.block + GUARD, *const place[5] = {
        ring + 256, ring + w.bytes - 192, room + bytes - 192, ring, room
    };
    int32_t *list;
    REFUSE(swa_cache_set_scratch, (&w.kv, ring, bytes), SWA_ERR_ARG);
    REFUSE(swa_cache_set_scratch, (&w.kv, ring + w.bytes - 192, bytes), SWA_ERR_ARG);
    REFUSE(swa_cache_set_scratch, (&w.kv, ring - bytes + 192, bytes), SWA_ERR_ARG);
    if (!begin_anew(&w.kv)) return;
    for (int i = 0; i < 5; i++)
        for (int which = 0; which < 10; which++) {
            float *const x = (float *)(void *)(place[i] + (i < 3 ? 64 - (uintptr_t)place[i] % 64 : 0));
            swa_attn a = w.attn;
            t_label("array %d inside %d", which, i);
            if (which == 0) a.q.p = x;
            if (which == 1) a.k.p = x;
            if (which == 2) a.v.p = x;
            if (which == 3) a.out.p = x;
            if (which == 4) a.lse = x;
            if (which == 5) a.stat = x;
            if (which > 7 && i == 2) memset(x, 0, 128); /* numbers that are slopes */
            list = (int32_t *)(void *)x;
            if (which == 6) a.pick = list, a.pick_n = 1;
            if (which == 7) a.bias = x, a.bias_n = 4;
            if (which == 8 && i == 2) a.alibi = x;
            if (which == 9 && i == 2) a.sink_logits = x;
            if (which > 7 && i != 2) continue;
            REFUSE(swa_attend, (&w.kv, 0, &a), SWA_ERR_ARG);
            REFUSE(swa_attend_part, (&w.kv, 0, &a, 0, 0, 1), SWA_ERR_ARG);
            CHECK(swa_attend_explain(&w.kv, 0, &a) != NULL);
        }
    t_label("scratch");
    {
        swa_attn a = w.attn; /* what is not looked at may be anywhere */
        a.mode = SWA_STORE_ONLY;
        a.q.p = (float *)(void *)(ring + 256);
        a.out.p = a.lse = (float *)(void *)(ring + 256);
        CHECK(swa_attend_explain(&w.kv, 0, &a) == NULL);
    }
    ACCEPT(swa_attend, (&w.kv, 0, &w.attn));
}
/* Scratch that is missing, or for fewer parts. */
static void misuse_scratch(void) {
    const size_t one = swa_cache_scratch_bytes(&w.desc, 1), two = swa_cache_scratch_bytes(&w.desc, 2);
    unsigned char *room = (unsigned char *)t_alloc(two);
    t_label("scratch");
    ANSWER(swa_cache_scratch_bytes, (NULL, 1), 0);
    ANSWER(swa_cache_scratch_bytes, (&w.desc, 0), 0);
    ANSWER(swa_cache_scratch_bytes, (&w.desc, -1), 0);
    ANSWER(swa_cache_scratch_bytes, (&w.desc, (1 << 16) + 1), 0);
    CHECK(sizeof(size_t) == 4 || swa_cache_scratch_bytes(&w.desc, 1 << 16) > 0);
    REFUSE(swa_cache_set_scratch, (&w.kv, NULL, one), SWA_ERR_ARG);
    ACCEPT(swa_cache_set_scratch, (&w.kv, NULL, 0));
    if (!begin_anew(&w.kv)) return;
    REFUSE(swa_attend, (&w.kv, 0, &w.attn), SWA_ERR_MEMORY);
    REFUSE(swa_cache_set_scratch, (&w.kv, room, 0), SWA_ERR_MEMORY); /* a size that could not be had */
    REFUSE(swa_cache_set_scratch, (&w.kv, room, 1), SWA_ERR_MEMORY); /* not even one part */
    REFUSE(swa_cache_set_scratch, (&w.kv, room, 63), SWA_ERR_MEMORY);
    REFUSE(swa_cache_set_scratch, (&w.kv, room, 100), SWA_ERR_MEMORY);
    REFUSE(swa_cache_set_scratch, (&w.kv, room, one - 1), SWA_ERR_MEMORY);
    ACCEPT(swa_cache_set_scratch, (&w.kv, room, one));
    REFUSE(swa_cache_set_scratch, (&w.kv, room, 100), SWA_ERR_MEMORY); /* the one before stays */
    REFUSE(swa_cache_set_scratch, (&w.kv, NULL, 1), SWA_ERR_ARG);
    REFUSE(swa_attend_part, (&w.kv, 0, &w.attn, 0, 0, 2), SWA_ERR_MEMORY);
    REFUSE(swa_attend_part, (&w.kv, 0, &w.attn, 0, 1, 2), SWA_ERR_MEMORY);
    ACCEPT(swa_attend, (&w.kv, 0, &w.attn));
    ACCEPT(swa_cache_set_scratch, (&w.kv, room, two));
    for (int phase = 0; phase < SWA_PHASES; phase++)
        for (int part = 0; part < 2; part++) ACCEPT(swa_attend_part, (&w.kv, 1, &w.attn, phase, part, 2));
    misuse_insides(room, two);
}

/* The stateless call. */
static swa_rows good_rows(swa_kv *kv) {
    swa_rows r;
    memset(kv, 0, 2 * sizeof *kv);
    memset(&r, 0, sizeof r);
    kv[0].k = kv[0].v = w.x;
    kv[1].k = kv[1].v = w.x + 5 * HEADS * DIM;
    kv[0].n = 5;
    kv[1].n = 3;
    kv[1].pos = 5;
    r.shape = w.desc.shape;
    r.window = swa_window_sliding(4);
    r.pos = 5;
    r.n_tokens = 3;
    r.kv = kv;
    r.n_kv = 2;
    r.scratch = w.scratch;
    r.scratch_bytes = sizeof w.scratch;
    CHECK(swa_attention_bytes(&r, 1) <= sizeof w.scratch);
    return r;
}
static int spoil_row_strides(swa_rows *r, swa_kv *kv, int which) {
    /* clang-format off */
    switch (which) {
    case 34: r->shape.n_kv_heads = HEADS; kv[0].k_head = 8 * HEADS * DIM; return 1;   /* and the token's forgotten */
    case 35: r->shape.n_kv_heads = HEADS; kv[1].v_head = 8 * HEADS * DIM; kv[1].n = 2; return 1;
    case 36: r->shape.n_kv_heads = HEADS; r->shape.tail_dim = 1; kv[0].tail = kv[1].tail = w.x; kv[1].tail_head = 48;
             return 1;
    case 37: kv[0].k_token = -DIM; return 1;
    case 38: kv[1].v_token = DIM - 1; return 1;              /* transposed, or of another shape */
    case 39: kv[0].k_token = 1; return 1;
    case 40: kv[1].k_token = INT64_MAX; return 1;
    case 41: kv[1].v_head = INT64_MAX; return 1;
    case 42: r->shape.tail_dim = 4; kv[0].tail = kv[1].tail = w.x; kv[1].tail_token = 3; return 1;
    case 48: r->shape.n_kv_heads = HEADS; kv[0].k_token = DIM; return 1;   /* [head][n][dim], a stride forgotten */
    case 49: r->shape.n_kv_heads = HEADS; kv[1].v_token = HEADS * DIM - 1; return 1;
    case 50: r->shape.n_kv_heads = HEADS; kv[0].v_token = DIM; kv[0].v_head = 4 * DIM; return 1;
    case 51: r->shape.n_kv_heads = HEADS; r->shape.tail_dim = 2; kv[0].tail = kv[1].tail = w.x; kv[1].tail_token = 2;
             return 1;
    case 52: kv[0].k_head = -1; return 1;
    case 54: kv[1].k_token = kv[1].v_token = (int64_t)1 << 44; kv[1].n = 1 << 18; return 1;  /* to 2^62 */
    case 55: kv[0].layout_ = 1; kv[0].slots_ = INT32_MIN; return 1;
    default: return 0;
    }
    /* clang-format on */
}
static int spoil_rows(swa_rows *r, swa_kv *kv, int which, swa_status *want) {
    enum { MANY_KV = 520 };
    static swa_kv many[MANY_KV];
    *want = SWA_ERR_ARG;
    /* clang-format off */
    switch (which) {
    case 0: r->shape.n_heads = 0; return 1;
    case 1: r->shape.n_heads = -3; return 1;
    case 2: r->shape.head_dim = 0; return 1;
    case 3: r->shape.head_dim = INT32_MAX; return 1;
    case 4: r->shape.n_kv_heads = 7; return 1;
    case 5: r->shape.v_dim = INT32_MIN; return 1;
    case 6: r->window = swa_window_sliding(0); return 1;
    case 7: r->pos = -1; return 1;
    case 8: r->pos = INT64_MIN; return 1;
    case 9: r->pos = INT64_MAX - 2; *want = SWA_ERR_OVERFLOW; return 1;
    case 10: r->n_tokens = -1; return 1;
    case 11: r->kv = NULL; return 1;
    case 12: r->n_kv = -1; return 1;
    case 13: r->isa = -1; return 1;
    case 14: r->isa = 99; return 1;
    case 15: r->isa = swa_isa_usable(SWA_ISA_NEON) ? SWA_ISA_AVX512 : SWA_ISA_NEON; *want = SWA_ERR_UNSUPPORTED;
             return 1;
    case 16: kv[0].n = -1; return 1;
    case 17: kv[0].k = NULL; return 1;
    case 18: kv[1].v = NULL; return 1;
    case 19: kv[0].pos = -1; return 1;
    case 20: kv[1].pos = 4; return 1;                        /* overlaps */
    case 21: kv[1].pos = INT64_MAX - 1; *want = SWA_ERR_OVERFLOW; return 1;
    case 22: kv[0].k_type = SWA_Q8; *want = SWA_ERR_UNSUPPORTED; return 1;
    case 23: kv[0].v_type = SWA_BOOL_MASKED; return 1;
    case 24: kv[1].k_type = (swa_type)-7; return 1;
    case 25: r->shape.tail_dim = 2; return 1;                /* and no tail rows */
    case 26: kv[0].layout_ = -1; return 1;
    case 27: kv[1].tail_type = (swa_type)-1; return 1;
    case 28: kv[1].v_type = SWA_Q8; *want = SWA_ERR_UNSUPPORTED; return 1;
    case 29: kv[0].tail_type = SWA_Q8; *want = SWA_ERR_UNSUPPORTED; return 1;
    case 43: r->window.prefix_first = 3; r->window.prefix = 3; return 1;   /* a length for an end */
    case 44: r->shape.v_in_k = 2; return 1;
    case 45: r->shape.v_in_k = -1; return 1;
    case 46: r->audit = -1; return 1;
    case 47: r->audit = 3; return 1;
    case 53: kv[0].layout_ = INT32_MIN; return 1;
    case 32: kv[0].k = w.out; return 2;                      /* read and written */
    case 33: kv[1].v = w.lse; return 2;
    case 30: r->n_tokens = INT32_MAX; r->shape.n_heads = 2; r->shape.n_kv_heads = 1; *want = SWA_ERR_OVERFLOW; return 1;
    case 31: for (int i = 0; i < MANY_KV; i++) {                 /* more blocks than an int counts */
                 many[i] = kv[0];
                 many[i].n = INT32_MAX;
                 many[i].pos = (int64_t)i * INT32_MAX;
             }
             r->kv = many;
             r->n_kv = MANY_KV;
             r->window = swa_window_causal();
             r->pos = (int64_t)MANY_KV * INT32_MAX - r->n_tokens;            /* all are seen */
             *want = sizeof(size_t) < 8 ? SWA_ERR_ARG : SWA_ERR_OVERFLOW;    /* one is more than 32 bits reach */
             return 1;
    default: return spoil_row_strides(r, kv, which);
    }
    /* clang-format on */
}
/* Phase 1 of a ring's call with another attn than phase 0's, field by field. */
static void misuse_phase_fields(void) {
    static float other[HELD * HEADS * DIM];
    static const int32_t list[HELD] = { 0 };
    const swa_window near = swa_window_sliding(2);
    swa_attn a = w.attn;
    t_label("phase 1 with another attn");
    if (!begin_anew(&w.kv)) return;
    ACCEPT(swa_attend_part, (&w.kv, 0, &w.attn, 0, 0, 1));
    REFUSE(swa_attend_part, (&w.kv, 0, &w.attn, -1, 0, 1), SWA_ERR_ORDER); /* no phase, though all else is right */
#define DIFFER(change)                                                                                                 \
    do {                                                                                                               \
        a = w.attn;                                                                                                    \
        change;                                                                                                        \
        REFUSE(swa_attend_part, (&w.kv, 0, &a, 1, 0, 1), SWA_ERR_ORDER);                                               \
    } while (0)
    DIFFER(a.k.p = other);
    DIFFER(a.v.p = other);
    DIFFER(a.k.p = other + 1; a.v.p = other + 1);
    DIFFER(a.q.p = other);
    DIFFER(a.out.p = w.stat);
    DIFFER(a.lse = NULL); /* phase 1 would leave out what phase 0 was asked for */
    DIFFER(a.stat = w.stat);
    DIFFER(a.sink_logits = other);
    DIFFER(a.alibi = other);
    DIFFER(a.scale = 0.25f);
    DIFFER(a.softcap = 9);
    DIFFER(a.mode = SWA_ATTEND_NO_STORE); /* and the layer would count as stored */
    DIFFER(a.compute = SWA_BF16);
    DIFFER(a.bias = other; a.bias_n = 4);
    DIFFER(a.pick = list; a.pick_n = 1);
    DIFFER(a.pick = list; a.pick_n = 1; a.pick_window = &near);
    DIFFER(a.q.token = 2 * HEADS * DIM);
    DIFFER(a.v.token = 2 * HEADS * DIM);
    DIFFER(a.out.token = 2 * HEADS * DIM);
#undef DIFFER
    ACCEPT(swa_attend_part, (&w.kv, 0, &w.attn, 1, 0, 1));
    ACCEPT(swa_attend, (&w.kv, 1, &w.attn));
}
/* A call that has all there is. */
static swa_attn attn_of_all(const float *x, float *y, float *out, const int32_t *list, const swa_window *near) {
    swa_attn ok;
    memset(&ok, 0, sizeof ok);
    ok.scale = 0.5f;
    ok.softcap = 20.0f;
    ok.q.p = x;
    ok.q_sink.p = x + 100;
    ok.k.p = x + 200;
    ok.v.p = x + 300;
    ok.q_tail.p = x + 400;
    ok.q_sink_tail.p = x + 450;
    ok.k_tail.p = x + 500;
    ok.alibi = y;
    y[0] = y[1] = y[2] = 0.25f;
    ok.sink_logits = y + 10;
    ok.bias = y + 100;
    ok.bias_n = 4;
    ok.bias_by_distance = 1;
    ok.bias_token = HEADS * 4;
    ok.bias_head = 4;
    ok.pick = list;
    ok.pick_n = 2;
    ok.pick_block = 2;
    ok.pick_token = HEADS * 4;
    ok.pick_head = 4;
    ok.pick_window = near;
    ok.out.p = out;
    ok.lse = out + 200;
    ok.q.head = ok.q_tail.head = ok.q_sink.head = ok.q_sink_tail.head = ok.k.head = ok.k_tail.head = ok.v.head = 5;
    ok.q.token = ok.q_tail.token = ok.q_sink.token = ok.q_sink_tail.token = ok.k.token = ok.k_tail.token = 18;
    ok.v.token = ok.out.token = 18;
    ok.out.head = 5;
    return ok;
}
/* Phase 1 of such a call differs in one field alone. */
static void misuse_phase_fields_of_all(void) {
    enum { N = 3, TAIL = 2 };
    static const int32_t list[2][N * HEADS * 4] = { { 0 }, { 0 } };
    const swa_window win = swa_window_sinks(4, 1), near[2] = { swa_window_sliding(2), swa_window_sliding(3) };
    float *x[2] = { t_random(999, 1.0f), t_random(999, 1.0f) }, *y = t_floats(999);
    swa_cache_desc d = w.desc;
    swa_cache c;
    swa_attn ok, a;
    int i;
    t_label("phase 1 with one field changed");
    d.windows = &win;
    d.n_windows = d.n_layers = 1;
    d.shape.n_kv_heads = HEADS;
    d.shape.tail_dim = TAIL;
    if (!t_cache_new(&c, &d, 1)) return;
    ok = attn_of_all(x[0], x[1], y, list[0], &near[0]);
    CHECK_OK(swa_step_one(&c, 0, 0, N));
#define DIFFER(change)                                                                                                 \
    do {                                                                                                               \
        ok.mode = SWA_ATTEND_NO_STORE;                                                                                 \
        ACCEPT(swa_attend_part, (&c, 0, &ok, 0, 0, 1));                                                                \
        a = ok;                                                                                                        \
        change;                                                                                                        \
        t_label("phase 1 with %s, input %d", #change, i);                                                              \
        CHECK(swa_attend_explain(&c, 0, &a) == NULL);                                                                  \
        REFUSE(swa_attend_part, (&c, 0, &a, 1, 0, 1), SWA_ERR_ORDER);                                                  \
    } while (0)
    for (i = 0; i < INPUTS; i++) {
        DIFFER(input(&a, i)->p++);
        DIFFER(input(&a, i)->token = 20);
        DIFFER(input(&a, i)->head = 6);
    }
    DIFFER(a.out.p++);
    DIFFER(a.out.token = 20);
    DIFFER(a.out.head = 6);
    DIFFER(a.lse++);
    DIFFER(a.stat = y + 300);
    DIFFER(a.sink_logits++);
    DIFFER(a.alibi++);
    DIFFER(a.bias++);
    DIFFER(a.bias_token = 9);
    DIFFER(a.bias_head = 3);
    DIFFER(a.bias_n = 3);
    DIFFER(a.bias_by_distance = 0);
    DIFFER(a.pick = list[1]);
    DIFFER(a.pick_token = 7);
    DIFFER(a.pick_head = 3);
    DIFFER(a.pick_n = 1);
    DIFFER(a.pick_block = 1);
    DIFFER(a.pick_window = &near[1]);
    DIFFER(a.scale = 0.25f);
    DIFFER(a.softcap = 21.0f);
    DIFFER(a.mode = SWA_ATTEND);
#undef DIFFER
}
/* Phase 1 by other parts than phase 0, with a part left out, or with other scratch. */
static void misuse_rows_parts(const swa_attn *a) {
    swa_kv kv[2];
    swa_rows r = good_rows(kv);
    const size_t bytes = swa_attention_bytes(&r, 3);
    r.scratch = t_alloc(bytes);
    r.scratch_bytes = bytes;
    memset(r.scratch, 0, bytes);
    t_label("rows, parts");
    for (int left_out = 2; left_out >= 0; left_out--) { /* 2: none */
        for (int part = 0; part < 2; part++)
            if (part != left_out) ACCEPT(swa_attention_part, (&r, a, 0, part, 2));
        REFUSE(swa_attention_part, (&r, a, 1, 0, 1), SWA_ERR_ORDER);
        for (int part = 0; part < 3; part++) REFUSE(swa_attention_part, (&r, a, 1, part, 3), SWA_ERR_ORDER);
        for (int part = 0; part < 2 && left_out == 2; part++) ACCEPT(swa_attention_part, (&r, a, 1, part, 2));
        r.pos--; /* the next token's call */
    }
    r.pos = 5;
    for (int part = 0; part < 2; part++) ACCEPT(swa_attention_part, (&r, a, 0, part, 2));
    memset(r.scratch, 0xff, bytes);
    for (int part = 0; part < 2; part++) REFUSE(swa_attention_part, (&r, a, 1, part, 2), SWA_ERR_ORDER);
}
/* A mode is not looked at: keys come from r. */
static void rows_of_any_mode(const swa_rows *r, swa_attn a) {
    for (int mode = 0; mode < 4; mode++) {
        a.mode = (swa_mode)mode;
        ACCEPT(swa_attention, (r, &a));
    }
}
static void audited_list(swa_rows *r, swa_attn *a, const int32_t *list, int n, int token) {
    a->pick = list;
    a->pick_n = n;
    a->pick_token = token;
    r->audit = 2;
}
/* What rows.audit finds, and what is as legal with it as without: `way` spoils a call, or not. */
static int spoil_audited(swa_rows *r, swa_kv *kv, swa_attn *a, int way) {
    static const int32_t list[5] = { 5, 6, 7 }, early[5] = { 5, 7, -1 };
    static const int32_t from_gap[5] = { 3, 5, 5, 5, 5 };
    static const int32_t low[2] = { 5, -2 }, zeros[2] = { 0, 0 }, none[2] = { -1, -1 }, wide[9] = { 1, 0, 2, 0, 3, 2 };
    static float nan[3 * HEADS * DIM], stat[3 * HEADS * 2];
    static swa_window latest;
    nan[3 * HEADS * DIM - 1] = (float)NAN;
    latest = swa_window_sliding(1);
    a->scale = 1.0f;
    /* clang-format off */
    switch (way) {
    case 0: return 1;
    case 1: r->n_tokens = 0; return 0;
    case 2: r->pos = 6; return 0;                              /* the last one stands behind all keys */
    case 3: kv[1].pos = 6; return 0;                           /* the first one in a gap */
    case 4: r->n_kv = 1; return 0;                             /* the chunk's rows are not there yet */
    case 5: kv[1].v = kv[1].k; return 0;
    case 6: a->scale = 2.5f; return 0;
    case 7: r->window = swa_window_sinks(2, 1); return 0;      /* q_sink */
    case 8: audited_list(r, a, list, 1, 1); return 1;          /* each token its own */
    case 9: audited_list(r, a, early, 3, 0); return 0;         /* 7 is not there yet for the first */
    case 10: audited_list(r, a, list, 3, 0); return 0;
    case 11: audited_list(r, a, from_gap, 1, 1); kv[0].n = 3; return 0;   /* 3 is in a gap */
    case 12: audited_list(r, a, from_gap, 3, 1); return 0;     /* lists overlap */
    case 13: audited_list(r, a, from_gap, 1, 0); r->audit = 1; return 1;  /* lists are not looked at */
    case 14: r->window = swa_window_sinks(2, 1); a->q_sink.p = a->q.p; r->audit = 2; return 1;
    case 15: kv[0].n = 3; return 1;                            /* keys may lack before the queries' own */
    case 16: audited_list(r, a, low, 2, 0); return 0;          /* -1 alone is none */
    case 17: audited_list(r, a, zeros, 1, 0); r->window = swa_window_causal(); return 1;
    case 18: audited_list(r, a, zeros, 2, 0); r->window = swa_window_causal(); return 0;
    case 19: audited_list(r, a, none, 2, 0); return 0;         /* nothing at all is seen */
    case 20: audited_list(r, a, none, 2, 0); a->pick_window = &latest; return 1;
    case 21: audited_list(r, a, none, 2, 0); r->window = swa_window_sinks(4, 1); a->q_sink.p = a->q.p; return 1;
    case 22: r->shape.n_kv_heads = HEADS; audited_list(r, a, from_gap + 1, 2, 0); a->pick_head = 1; return 0;
    case 23: r->shape.n_kv_heads = HEADS; audited_list(r, a, from_gap + 1, 1, 1); a->pick_head = 1; return 0;
    case 24: r->shape.n_kv_heads = HEADS; audited_list(r, a, from_gap + 1, 1, 0); a->pick_head = 1; return 1;
    case 25: r->pos = 2; return 0;                             /* kv[1] is behind all queries */
    case 26: a->q.p = nan; return 0;
    case 27: a->q.p = nan; r->n_tokens = 2; return 1;          /* the last token's alone */
    case 28: r->shape.tail_dim = 2; kv[0].tail = kv[1].tail = w.apart; a->q_tail.p = nan + 3 * HEADS * (DIM - 2);
             return 0;
    case 29: memset(&r->window, 0, sizeof r->window); return 0;
    case 30: kv[0].n = 3; r->audit = 2; return 0;              /* a page left out */
    case 31: kv[0].n = 1; r->window = swa_window_sliding(1); r->audit = 2; return 1;      /* which nobody sees */
    case 32: kv[0].n = 4; r->window = swa_window_sliding(1); r->audit = 2; return 1;      /* nor its last one */
    case 33: kv[0].n = 4; r->window = swa_window_sliding(2); r->audit = 2; return 0;
    case 34: kv[0].n = 0; r->audit = 2; return 1;              /* the text may begin late */
    case 35: kv[0].n = 3; audited_list(r, a, list, 1, 1); return 1; /* by a list */
    case 36: r->pos = 4; r->audit = 2; return 0;               /* a row behind the last query */
    case 37: r->pos = 4; return 1;
    case 38: r->window = swa_window_symmetric(1); r->pos = 4; r->audit = 2; return 1;      /* which sees it */
    case 39: r->window = swa_window_symmetric(1); r->pos = 3; r->audit = 2; return 0;
    case 40: r->n_kv = 1; a->stat = stat; return 1;            /* a part for swa_merge */
    case 41: audited_list(r, a, none, 2, 0); a->stat = stat; return 1;      /* and a part of nothing */
    case 42: r->window = swa_window_sinks(9, 2); kv[0].n = 3; kv[0].pos = 2; r->audit = 2; return 0;
    case 43: r->window = swa_window_sinks(9, 2); kv[0].n = 4; kv[0].pos = 1; r->audit = 2; return 0;
    case 44: r->window = swa_window_sinks(9, 2); r->audit = 2; return 1;
    case 45: r->window = swa_window_sinks(9, 2); kv[0].n = 3; kv[0].pos = 2; a->stat = stat; r->audit = 2; return 1;
    case 46: r->window = swa_window_sinks(9, 2); kv[0].n = 3; kv[0].pos = 2; return 1;      /* audit 1 */
    case 47: r->window = swa_window_sinks(9, 9); r->audit = 2; return 1;    /* more than there are yet */
    case 48: kv[1].k = kv[0].k; return 0;                      /* one page twice */
    case 49: kv[0].n = 0; kv[1].k = kv[0].k; return 1;
    case 50: audited_list(r, a, wide, 4, 0); r->window = swa_window_causal(); return 0;    /* int64 */
    case 51: audited_list(r, a, wide + 4, 4, 0); r->window = swa_window_causal(); return 1; /* padded with 0 */
    case 52: audited_list(r, a, wide + 5, 4, 0); r->window = swa_window_causal(); return 1;
    case 53: audited_list(r, a, zeros, 2, 0); r->window = swa_window_causal(); a->pick_block = 8; return 1;
    default: return -1;
    }
    /* clang-format on */
}
/* A segment laid out as the one before is asked for its pointers alone: one field that differs, and it is not. */
static void misuse_rows_alike(void) {
    for (int i = 0; i < 11; i++) {
        swa_kv kv[2];
        swa_rows r = good_rows(kv);
        swa_attn a = w.attn;
        t_label("rows alike but for %d", i);
        a.k.p = a.v.p = NULL;
        a.scale = 0.5f;
        a.q_tail.p = w.apart;
        r.window = swa_window_causal();
        r.shape.n_kv_heads = HEADS;
        r.shape.tail_dim = 1;
        for (int j = 0; j < 2; j++) { /* [head][n][dim] */
            kv[j].n = 2 + (i == 10 ? j : 0);
            kv[j].tail = w.x;
            kv[j].k_token = kv[j].v_token = DIM;
            kv[j].k_head = kv[j].v_head = 2 * DIM;
            kv[j].tail_token = 1;
            kv[j].tail_head = 2;
        }
        if (i == 1) kv[1].k_type = SWA_BOOL_KEEP;
        if (i == 2) kv[1].v_type = SWA_BOOL_KEEP;
        if (i == 3) kv[1].tail_type = SWA_BOOL_KEEP;
        if (i == 4) kv[1].k_token = 1;
        if (i == 5) kv[1].k_head = 1;
        if (i == 6) kv[1].v_token = 1;
        if (i == 7) kv[1].v_head = 1;
        if (i == 8) kv[1].tail_token = -1;
        if (i == 9) kv[1].tail_head = -1;
        if (i == 0) ACCEPT(swa_attention, (&r, &a));
        else REFUSE(swa_attention, (&r, &a), SWA_ERR_ARG);
    }
}
/* A fused [n][q | k | v] that is read in place, without q's token stride; audit or not. */
static void misuse_rows_fused(void) {
    static float x[8 * 3 * HEADS * DIM];
    swa_kv kv[2];
    swa_rows r;
    swa_attn a = w.attn, b;
    for (int i = 0; i < 6; i++) {
        t_label("rows, fused %d", i);
        r = good_rows(kv);
        r.shape.n_kv_heads = HEADS;
        r.pos = 0;
        r.n_tokens = 8;
        r.n_kv = 1;
        r.audit = i % 2;
        kv[0].n = 8;
        kv[0].k = x + HEADS * DIM;
        kv[0].v = x + 2 * HEADS * DIM;
        kv[0].k_token = kv[0].v_token = 3 * HEADS * DIM;
        b = a;
        b.k.p = b.v.p = b.lse = NULL;
        b.q.p = x;
        b.q.token = 3 * HEADS * DIM;
        b.out.p = w.apart;
        b.stat = NULL;
        if (i / 2 == 1) b.q.token = 0;
        if (i / 2 == 2) kv[0].k = w.x, b.q.token = 0; /* V among q's rows */
        if (i / 2 == 0) ACCEPT(swa_attention, (&r, &b));
        else REFUSE(swa_attention, (&r, &b), SWA_ERR_ARG);
        b.q.token = 0;
        r.n_tokens = 1; /* of one token nothing is shared */
        kv[0].n = 1;
        ACCEPT(swa_attention, (&r, &b));
    }
}
static void misuse_rows_audit(void) {
    for (int way = 0;; way++)
        for (int audit = 0; audit < 2; audit++) {
            swa_kv kv[2];
            swa_rows r = good_rows(kv);
            swa_attn a = w.attn;
            int good;
            a.k.p = a.v.p = NULL;
            kv[0].v = kv[1].v = w.apart;
            r.audit = 1;
            good = spoil_audited(&r, kv, &a, way);
            if (good < 0) return;
            if (!audit) r.audit = 0;
            t_label("rows, audit %d, %d", r.audit, way);
            if (good || !audit) ACCEPT(swa_attention, (&r, &a));
            else {
                const char *why = swa_attention_explain(&r, &a);
                CHECK(why != NULL && strstr(why, "audit") != NULL);
                REFUSE(swa_attention, (&r, &a), SWA_ERR_ARG);
            }
        }
}
/* Numbers that lie across each other's places, under audit: never read, so that sanitizers may look on. */
static void misuse_odd_places(void) {
    const void *odd = (const char *)w.x + 1;
    swa_cache_desc d = w.desc;
    swa_cache c;
    d.audit = 1;
    if (!t_cache_new(&c, &d, 1) || !CHECK_OK(swa_step_one(&c, 0, 0, 1))) return;
    for (int i = 0; i < 9; i++) {
        swa_kv kv[2];
        swa_rows r = good_rows(kv);
        swa_attn a = w.attn;
        const char *why;
        t_label("odd places, %d", i);
        kv[0].v = kv[1].v = w.apart;
        r.audit = 1;
        a.k.p = w.apart;
        a.v.p = w.apart + DIM;
        if (i == 0 || i == 3) a.q.p = (const float *)odd;
        if (i == 1) a.k.p = (const float *)odd;
        if (i == 2) a.v.p = (const float *)odd;
        if (i == 4) a.out.p = (float *)((char *)t_out + 2);
        if (i == 5) kv[1].k = odd;
        if (i == 6) kv[0].v_type = SWA_F16, kv[0].v = odd;
        if (i == 7) a.lse = (float *)((char *)w.lse + 2);
        r.shape.tail_dim = i == 8;
        if (i == 8) a.scale = 0.5f, a.q_tail.p = w.apart + 32 * DIM, kv[0].tail = w.apart, kv[1].tail = odd;
        why = i < 3 ? swa_attend_explain(&c, 0, &a) : swa_attention_explain(&r, &a);
        CHECK(why != NULL && strstr(why, "whole number") != NULL);
        if (i < 3) REFUSE(swa_attend, (&c, 0, &a), SWA_ERR_ARG);
        else REFUSE(swa_attention, (&r, &a), SWA_ERR_ARG);
    }
}
/* Where out is q, phase 1 finds in q what phase 0 has put out: here a NaN of the host's own V. */
static void misuse_rows_in_place(void) {
    static float nan[3 * HEADS * DIM];
    float q[3 * HEADS * DIM];
    swa_kv kv[2];
    swa_rows r = good_rows(kv);
    swa_attn a = w.attn;
    t_label("rows, NaN in place");
    for (int i = 0; i < 3 * HEADS * DIM; i++) nan[i] = (float)NAN;
    memcpy(q, w.x, sizeof q);
    a.q.p = a.out.p = q;
    kv[0].v = w.apart;
    kv[1].v = nan;
    r.audit = 1;
    for (int phase = 0; phase < SWA_PHASES; phase++) CHECK_OK(swa_attention_part(&r, &a, phase, 0, 1));
    CHECK(isnan(q[0]));
}
/* Layouts of a segment, asked about by the size of the scratch. */
static void misuse_segments(void) {
    static float x[4096];
    swa_kv kv[3];
    swa_rows r;
    swa_cache c;
#define SEGMENT(change, good)                                                                                          \
    do {                                                                                                               \
        memset(&r, 0, sizeof r);                                                                                       \
        memset(kv, 0, sizeof kv);                                                                                      \
        r.shape.n_heads = r.shape.n_kv_heads = 2;                                                                      \
        r.shape.head_dim = 32;                                                                                         \
        r.n_tokens = 1;                                                                                                \
        r.pos = 1;                                                                                                     \
        r.kv = kv;                                                                                                     \
        r.n_kv = 1;                                                                                                    \
        kv[0].n = 2;                                                                                                   \
        kv[0].k = x;                                                                                                   \
        kv[0].v = x + 2048;                                                                                            \
        change;                                                                                                        \
        t_label("segment: %s", #change);                                                                               \
        CHECK_INT(swa_attention_bytes(&r, 1) > 0, good);                                                               \
    } while (0)
    SEGMENT(kv[0].k_head = 8, 0);
    SEGMENT(kv[0].k_head = 8; kv[0].n = 1, 1); /* heads of a lone token may share numbers */
    SEGMENT(kv[0].v_head = 8; kv[0].n = 1, 1);
    /* blocks of 32 */
    SEGMENT(r.shape.tail_dim = 32; kv[0].tail = x; kv[0].tail_type = SWA_Q8_32; kv[0].tail_token = 128, 1);
    SEGMENT(r.shape.tail_dim = 32; kv[0].tail = x; kv[0].tail_type = SWA_Q8_32; kv[0].tail_token = 128;
            kv[0].tail_head = 48, 0);
    SEGMENT(r.shape.tail_dim = 32; kv[0].tail = x; kv[0].tail_type = SWA_Q8_32; kv[0].tail_token = 144, 0);
    SEGMENT(kv[0].k_type = SWA_Q8_32; r.shape.v_dim = 16, 0);
    SEGMENT(kv[0].k_type = SWA_Q8_32; r.shape.v_dim = 16; r.shape.v_in_k = 1, 1);
    SEGMENT(r.shape.n_kv_heads = 1; kv[0].k_type = SWA_Q8_32; kv[0].k_token = kv[0].v_token = 1024;
            kv[0].v = (const char *)kv[0].k + 31 * 34, 1); /* a row's last block */
    /* a fused [n][k | v] */
    SEGMENT(r.shape.n_kv_heads = 1; kv[0].v = x + 32; kv[0].k_token = kv[0].v_token = 64, 1);
    SEGMENT(r.shape.n_kv_heads = 1; kv[0].v = x + 32; kv[0].k_token = 64, 0);
    SEGMENT(r.shape.n_kv_heads = 1; kv[0].v = x + 32; kv[0].v_token = 64, 0);
    SEGMENT(r.shape.n_kv_heads = 1; kv[0].v = x + 32, 0);
#undef SEGMENT
    /* a ring's span is what swa_cache_spans said, and no longer */
    t_label("segment: a span");
    if (!t_cache_new(&c, &w.desc, 1)) return;
    CHECK_OK(swa_step_one(&c, 0, 0, 4));
    for (int layer = 0; layer < 2; layer++) CHECK_OK(swa_attend(&c, layer, &w.attn));
    memset(&r, 0, sizeof r);
    r.shape = w.desc.shape;
    r.n_tokens = 1;
    r.pos = 3;
    r.kv = kv;
    r.n_kv = swa_cache_spans(&c, 0, 1, kv);
    CHECK(r.n_kv == 1 && swa_attention_bytes(&r, 1) > 0);
    { /* of a query before the ring's end rows behind it are no fault */
        swa_attn a = w.attn;
        a.k.p = a.v.p = NULL;
        r.window = swa_window_causal();
        r.pos = 2;
        r.audit = 2;
        r.scratch = w.scratch;
        r.scratch_bytes = sizeof w.scratch;
        ACCEPT(swa_attention, (&r, &a));
        r.pos = 3;
        r.audit = 0;
    }
    kv[0].n = CONTEXT;
    CHECK(swa_attention_bytes(&r, 1) > 0);
    kv[0].n++;
    CHECK_INT(swa_attention_bytes(&r, 1), 0);
}
/* A tail where the call writes; outputs of one token that run into each other. */
static void misuse_rows_outputs(void) {
    swa_kv kv[2];
    swa_rows r;
    swa_attn a = w.attn, b;
    a.k.p = a.v.p = NULL;
    t_label("rows, outputs");
    r = good_rows(kv);
    r.shape.tail_dim = 2;
    kv[0].tail = kv[1].tail = w.apart;
    b = a;
    b.q_tail.p = w.apart;
    b.scale = 0.5f;
    ACCEPT(swa_attention, (&r, &b));
    kv[1].tail = w.lse; /* where the call writes */
    REFUSE(swa_attention, (&r, &b), SWA_ERR_ARG);
    r = good_rows(kv);
    r.pos = 7;
    r.n_tokens = r.audit = 1;
    kv[0].v = kv[1].v = w.apart;
    b = a;
    b.scale = 0.5f;
    ACCEPT(swa_attention, (&r, &b));
    b.lse = b.out.p + 1; /* of one token, under audit */
    REFUSE(swa_attention, (&r, &b), SWA_ERR_ARG);
}
static void misuse_rows(void) {
    swa_kv kv[2];
    swa_rows r = good_rows(kv);
    swa_attn a = w.attn, b;
    swa_status want;
    int found;
    a.k.p = a.v.p = NULL;
    REFUSE(swa_attention, (NULL, &a), SWA_ERR_ARG);
    REFUSE(swa_attention, (&r, NULL), SWA_ERR_ARG);
    REFUSE(swa_attention_part, (NULL, &a, 0, 0, 1), SWA_ERR_ARG);
    REFUSE(swa_attention_part, (&r, NULL, 0, 0, 1), SWA_ERR_ARG);
    ANSWER(swa_attention_bytes, (NULL, 1), 0);
    ANSWER(swa_attention_bytes, (&r, 0), 0);
    ANSWER(swa_attention_bytes, (&r, -1), 0);
    ANSWER(swa_attention_bytes, (&r, INT32_MAX), 0);
    for (int i = 0;; i++) {
        t_label("rows %d", i);
        r = good_rows(kv);
        found = spoil_rows(&r, kv, i, &want);
        if (!found) break;
        if (found == 1) ANSWER(swa_attention_bytes, (&r, 1), 0);
        CHECK(swa_attention_explain(&r, &a) != NULL);
        REFUSE(swa_attention, (&r, &a), want);
        REFUSE(swa_attention_part, (&r, &a, 0, 0, 1), want);
    }
    t_label("rows");
    name_called("swa_attention_explain");
    r = good_rows(kv);
    rows_of_any_mode(&r, a);
    b = a;
    b.q.p = NULL;
    REFUSE(swa_attention, (&r, &b), SWA_ERR_ARG);
    b = a;
    b.q_sink.p = a.q.p; /* nothing is pinned */
    REFUSE(swa_attention, (&r, &b), SWA_ERR_ARG);
    b = a;
    b.out.p = NULL;
    REFUSE(swa_attention, (&r, &b), SWA_ERR_ARG);
    b = a;
    b.lse = b.out.p + 1; /* among the rows of out */
    REFUSE(swa_attention, (&r, &b), SWA_ERR_ARG);
    for (int i = 0; i < BAD; i++) {
        int n = bad_index[i];
        REFUSE(swa_attention_part, (&r, &a, n, 0, 1), SWA_ERR_ORDER);
        REFUSE(swa_attention_part, (&r, &a, 0, n, 1), SWA_ERR_ORDER);
        if (n < 0 || n > 4) REFUSE(swa_attention_part, (&r, &a, 0, 0, n), SWA_ERR_ORDER);
    }
    r.scratch = NULL;
    REFUSE(swa_attention, (&r, &a), SWA_ERR_MEMORY);
    r = good_rows(kv);
    r.scratch_bytes = swa_attention_bytes(&r, 1) - 1;
    REFUSE(swa_attention, (&r, &a), SWA_ERR_MEMORY);
    r.scratch_bytes = 2 * swa_attention_bytes(&r, 1) - 64; /* one byte less than two parts need */
    REFUSE(swa_attention_part, (&r, &a, 0, 0, 2), SWA_ERR_MEMORY);
    r.scratch_bytes = 0;
    REFUSE(swa_attention, (&r, &a), SWA_ERR_MEMORY);
    misuse_rows_parts(&a);
    misuse_rows_audit();
    r = good_rows(kv);
    ACCEPT(swa_attention, (&r, &a));
    r.n_tokens = 0;
    ACCEPT(swa_attention, (&r, &a));
    r = good_rows(kv);
    kv[0].k_head = kv[0].v_head = kv[0].tail_head = 3 * DIM; /* of one head, and of no tail */
    ACCEPT(swa_attention, (&r, &a));
    r = good_rows(kv);
    r.kv = NULL;
    r.n_kv = 0; /* sees nothing: legal */
    ACCEPT(swa_attention, (&r, &a));
}
static void misuse_merge(void) {
    float sums[4] = { 1, 1, 2, 3 };
    const float *outs[2] = { w.x, NULL }, *stats[2] = { sums, sums };
    t_label("merge");
    REFUSE(swa_merge, (NULL, stats, 1, 1, HEADS, DIM, NULL, w.out, w.lse), SWA_ERR_ARG);
    REFUSE(swa_merge, (outs, NULL, 1, 1, HEADS, DIM, NULL, w.out, w.lse), SWA_ERR_ARG);
    REFUSE(swa_merge, (outs, stats, 2, 1, HEADS, DIM, NULL, w.out, w.lse), SWA_ERR_ARG);
    REFUSE(swa_merge, (stats, outs, 2, 1, HEADS, DIM, NULL, w.out, w.lse), SWA_ERR_ARG);
    REFUSE(swa_merge, (outs, stats, -1, 1, HEADS, DIM, NULL, w.out, w.lse), SWA_ERR_ARG);
    REFUSE(swa_merge, (outs, stats, 1, -1, HEADS, DIM, NULL, w.out, w.lse), SWA_ERR_ARG);
    REFUSE(swa_merge, (outs, stats, 1, INT32_MIN, HEADS, DIM, NULL, w.out, w.lse), SWA_ERR_ARG);
    REFUSE(swa_merge, (outs, stats, 1, 1, HEADS, 0, NULL, w.out, w.lse), SWA_ERR_ARG);
    REFUSE(swa_merge, (outs, stats, 1, 1, HEADS, -1, NULL, w.out, w.lse), SWA_ERR_ARG);
    REFUSE(swa_merge, (outs, stats, 1, 1, 0, DIM, w.x, w.out, w.lse), SWA_ERR_ARG);
    REFUSE(swa_merge, (outs, stats, 1, 1, -1, DIM, w.x, w.out, w.lse), SWA_ERR_ARG);
    REFUSE(swa_merge, (NULL, NULL, 0, INT32_MAX, INT_MAX, 1, NULL, w.out, NULL), SWA_ERR_OVERFLOW);
    for (int d = 1; d <= 1 << 14 && sizeof(size_t) < 8; d <<= 14) /* 2^32 bytes each */
        REFUSE(swa_merge, (NULL, NULL, 0, 1 << (d == 1 ? 30 : 16), 1, d, NULL, w.out, NULL), SWA_ERR_OVERFLOW);
    REFUSE(swa_merge, (outs, stats, 1, 1, HEADS, DIM, NULL, w.out, w.out + 2 * DIM - 1), SWA_ERR_ARG);
    outs[0] = w.out + 1; /* read for rows that are written already */
    REFUSE(swa_merge, (outs, stats, 1, 1, HEADS, DIM, NULL, w.out, w.lse), SWA_ERR_ARG);
    outs[0] = w.lse;
    REFUSE(swa_merge, (outs, stats, 1, 1, HEADS, DIM, NULL, w.out, w.lse), SWA_ERR_ARG);
    outs[0] = w.x;
    stats[0] = w.out + 2 * DIM - 1;
    REFUSE(swa_merge, (outs, stats, 1, 1, HEADS, DIM, NULL, w.out, w.lse), SWA_ERR_ARG);
    stats[0] = w.lse + 1;
    REFUSE(swa_merge, (outs, stats, 1, 1, HEADS, DIM, NULL, w.out, w.lse), SWA_ERR_ARG);
    w.stat[0] = 1;
    w.stat[1] = (float)NAN; /* what somebody's NaN has made is not left out */
    w.stat[2] = w.stat[3] = 1;
    stats[0] = w.stat;
    ACCEPT(swa_merge, (outs, stats, 1, 1, HEADS, DIM, NULL, w.out, w.lse));
    CHECK(isnan(w.out[0]) && isnan(w.out[DIM - 1]) && !isnan(w.out[DIM]));
    CHECK(isnan(w.lse[0]) && !isnan(w.lse[1]));
    ACCEPT(swa_merge, (outs, stats, 1, 1, HEADS, 100, NULL, w.out, w.lse)); /* in each number of a long row */
    for (int i = 0; i < 100; i++) CHECK(isnan(w.out[i]) && !isnan(w.out[100 + i]));
    { /* a part that has seen nothing is left out, whatever its out and maximum are */
        float some[2 * DIM], nothing[2 * DIM], none[4] = { 3e38f, 0, -3e38f, 0 }, alone[4] = { 1, 2, 1, 2 };
        const float *const of[2] = { some, nothing }, *const with[2] = { alone, none };
        for (int i = 0; i < 2 * DIM; i++) some[i] = (float)i, nothing[i] = (float)NAN;
        ACCEPT(swa_merge, (of, with, 2, 1, HEADS, DIM, NULL, w.out, w.lse));
        for (int i = 0; i < 2 * DIM; i++) CHECK_NEAR(w.out[i], i / 2.0, 0.0);
    }
    {
        const float high[2] = { 0, 2e38f }, odd[2] = { (float)NAN, 0 };
        REFUSE(swa_merge, (outs, stats, 1, 1, HEADS, DIM, high, w.out, w.lse), SWA_ERR_ARG);
        REFUSE(swa_merge, (outs, stats, 1, 1, HEADS, DIM, odd, w.out, w.lse), SWA_ERR_ARG);
    }
    stats[0] = sums;
    outs[0] = w.out; /* a partial in place */
    ACCEPT(swa_merge, (outs, stats, 1, 1, HEADS, DIM, NULL, w.out, w.lse));
    outs[0] = w.x;
    ACCEPT(swa_merge, (NULL, NULL, 0, 1, HEADS, DIM, NULL, w.out, w.lse));
    ACCEPT(swa_merge, (outs, stats, 1, 0, HEADS, DIM, NULL, w.out, w.lse));
    ACCEPT(swa_merge, (outs, stats, 1, 1, HEADS, DIM, NULL, NULL, NULL));
    sums[3] = -0.5f; /* no sum of exponentials: an lse? */
    REFUSE(swa_merge, (outs, stats, 1, 1, HEADS, DIM, NULL, w.out, w.lse), SWA_ERR_ARG);
}

/* ---- latent ---- */

static const double one_freq[1] = { 1.0 }, a_period[1] = { 10000.0 };
static swa_mla good_mla(void) {
    swa_mla m;
    memset(&m, 0, sizeof m);
    m.hidden = 8;
    m.n_heads = 2;
    m.kv_lora_rank = 4;
    m.nope_dim = 4;
    m.rope_dim = 2;
    m.v_dim = 4;
    m.w_uq.p = m.w_dkv.p = m.w_uk.p = m.w_o.p = w.x;
    m.w_qr.p = m.w_kr.p = m.w_uv.p = w.x + 1;
    m.freq = one_freq;
    return m;
}
static int spoil_mla(swa_mla *m, int i, swa_status *want) {
    *want = SWA_ERR_ARG;
    /* clang-format off */
    switch (i) {
    case 0: m->hidden = 0; return 1;
    case 1: m->hidden = -1; return 1;
    case 2: m->n_heads = 0; return 1;
    case 3: m->n_heads = INT32_MIN; return 1;
    case 4: m->q_lora_rank = -1; return 1;
    case 5: m->kv_lora_rank = 0; return 1;
    case 6: m->nope_dim = 0; return 1;
    case 7: m->rope_dim = -2; return 1;
    case 8: m->rope_dim = 3; return 1;
    case 9: m->v_dim = -1; return 1;
    case 10: m->hidden = INT32_MAX; *want = SWA_ERR_OVERFLOW; return 1;
    case 11: m->n_heads = INT32_MAX; *want = SWA_ERR_OVERFLOW; return 1;
    case 12: m->kv_lora_rank = INT32_MAX; *want = SWA_ERR_OVERFLOW; return 1;
    case 13: m->v_dim = INT32_MAX; *want = SWA_ERR_OVERFLOW; return 1;
    case 14: m->path = (swa_mla_path)-1; return 1;
    case 15: m->path = (swa_mla_path)9; return 1;
    case 16: m->freq = NULL; return 1;
    case 17: m->pairs = (swa_rope_pairs)7; return 1;
    case 18: m->eps = -1.0f; return 1;
    case 19: m->eps = (float)NAN; return 1;
    case 20: m->scale = -1.0; return 1;
    case 21: m->scale = (double)INFINITY; return 1;
    case 22: m->mscale = (double)NAN; return 1;
    case 23: m->rope_mscale = -1.0; return 1;
    case 24: m->w_uq.p = NULL; return 1;
    case 25: m->w_dkv.p = NULL; return 1;
    case 26: m->w_uk.p = NULL; return 1;
    case 27: m->w_o.p = NULL; return 1;
    case 28: m->w_o.stride = 3; return 1;
    case 29: m->w_uq.stride = -8; return 1;
    case 30: m->w_uq.type = SWA_Q8; *want = SWA_ERR_UNSUPPORTED; return 1;
    case 31: m->w_kr.type = (swa_type)77; return 1;
    case 32: m->q_lora_rank = 4; return 1;                   /* and no W_DQ */
    case 33: m->q_lora_rank = (1 << 20) + 1; *want = SWA_ERR_OVERFLOW; return 1;
    case 34: m->nope_dim = (1 << 20) + 1; *want = SWA_ERR_OVERFLOW; return 1;
    case 35: m->rope_dim = (1 << 20) + 2; *want = SWA_ERR_OVERFLOW; return 1;
    case 36: m->n_heads = 1 << 12; m->rope_dim = 1 << 20; *want = SWA_ERR_OVERFLOW; return 1;
    case 37: m->n_heads = 1 << 12; m->kv_lora_rank = 1 << 20; *want = SWA_ERR_OVERFLOW; return 1;
    case 38: m->pairs = (swa_rope_pairs)-1; return 1;
    case 39: m->eps = (float)INFINITY; return 1;
    case 40: m->w_uq.stride = 7; return 1;                   /* rows of hidden = 8 numbers overlap */
    case 41: m->w_qr.stride = 7; return 1;
    case 42: m->w_dkv.stride = 7; return 1;
    case 43: m->w_kr.stride = 7; return 1;
    case 44: m->w_uk.stride = 3; return 1;
    case 45: m->w_uv.stride = 3; return 1;
    case 46: m->w_o.stride = 7; return 1;
    case 47: m->q_lora_rank = 4; m->w_dq = m->w_uq; m->w_dq.stride = 7; return 1;
    case 48: m->v_dim = (1 << 20) + 1; m->n_heads = 1; *want = SWA_ERR_OVERFLOW; return 1;
    case 49: m->hidden = (1 << 20) + 1; *want = SWA_ERR_OVERFLOW; return 1;
    case 50: m->kv_lora_rank = (1 << 20) + 1; m->n_heads = 1; *want = SWA_ERR_OVERFLOW; return 1;
    case 51: m->mscale = 1e-30; return 1;                    /* squared it is too small */
    case 52: m->w_dq = m->w_uq; return 1;                    /* of which rank? */
    case 53: m->freq = a_period; return 1;
    case 54: m->w_o.stride = INT64_MAX; *want = SWA_ERR_OVERFLOW; return 1;
    case 55: m->w_uk.stride = ((int64_t)1 << 62) + 4; *want = SWA_ERR_OVERFLOW; return 1;   /* times 4 bytes: 16 */
    case 56: m->c_q = w.x; return 1;                         /* of which rank? */
    case 57: m->c_q_token = 4; return 1;                     /* of what? */
    default: return 0;
    }
    /* clang-format on */
}
static void misuse_mla_sizes(void) {
    swa_mla m = good_mla();
    swa_mla merged;
    void *mem = t_alloc(swa_mla_merged_bytes(&m));
    swa_cache_desc d = w.desc;
    d.shape = swa_mla_shape(&m, 0);
    ANSWER(swa_mla_scratch_bytes, (NULL, &d, 1, 1), 0);
    ANSWER(swa_mla_scratch_bytes, (&m, NULL, 1, 1), 0);
    ANSWER(swa_mla_scratch_bytes, (&m, &d, -1, 1), 0);
    ANSWER(swa_mla_scratch_bytes, (&m, &d, 1, 0), 0);
    ANSWER(swa_mla_scratch_bytes, (&m, &d, 1, INT32_MAX), 0);
    ANSWER(swa_mla_merged_bytes, (NULL), 0);
    ANSWER(swa_mla_choose, (NULL, 0, 1, NULL), SWA_MLA_AUTO);
    ANSWER(swa_mla_choose, (&m, -1, 1, NULL), SWA_MLA_AUTO);
    ANSWER(swa_mla_choose, (&m, INT64_MIN, INT32_MIN, NULL), SWA_MLA_AUTO);
    ANSWER(swa_mla_choose, (&m, 0, -1, NULL), SWA_MLA_AUTO);
    CHECK(swa_mla_choose(&m, INT64_MAX, INT32_MAX, NULL) != SWA_MLA_AUTO);
    REFUSE(swa_mla_merge, (NULL, mem, SIZE_MAX, &merged), SWA_ERR_ARG);
    REFUSE(swa_mla_merge, (&m, NULL, SIZE_MAX, &merged), SWA_ERR_ARG);
    REFUSE(swa_mla_merge, (&m, mem, SIZE_MAX, NULL), SWA_ERR_ARG);
    REFUSE(swa_mla_merge, (&m, mem, 0, &merged), SWA_ERR_MEMORY);
    REFUSE(swa_mla_merge, (&m, mem, swa_mla_merged_bytes(&m) - 1, &merged), SWA_ERR_MEMORY);
    ACCEPT(swa_mla_merge, (&m, mem, swa_mla_merged_bytes(&m), &merged));
    name_called("swa_mla_scale");
    CHECK(!(swa_mla_scale(0, 2, 1) > 0) && !(swa_mla_scale(4, -2, 1) > 0) && !(swa_mla_scale(INT32_MIN, 0, 0) > 0));
    CHECK(swa_mla_scale(INT32_MAX, INT32_MAX, 0) > 0);
    name_called("swa_mla_shape");
    CHECK(swa_mla_shape(NULL, 0).n_heads == 0 && swa_mla_shape(NULL, 1).n_heads == 0);
    CHECK_INT(swa_mla_shape(&(swa_mla){ .nope_dim = 1 << 30, .rope_dim = INT32_MAX }, 1).head_dim, -1);
}
/* Caches that differ from a block's in one number of their shape. */
static void misuse_mla_shapes(const swa_mla *m) {
    for (int i = 0; i < 12; i++) {
        swa_cache_desc d = w.desc;
        swa_cache c;
        d.shape = swa_mla_shape(m, i >= 6);
        if (i % 6 == 0) d.shape.n_heads *= 2;
        if (i % 6 == 1) d.shape.n_kv_heads = i < 6 ? 2 : 1;
        if (i % 6 == 2) d.shape.head_dim++;
        if (i % 6 == 3) d.shape.v_dim--;
        if (i % 6 == 4) d.shape.tail_dim += 2;
        if (i % 6 == 5) d.shape.v_in_k = i >= 6;
        t_label("mla shape %d", i);
        if (!t_cache_new(&c, &d, 1) || !begin_anew(&c)) return;
        name_called("swa_mla_explain");
        CHECK(swa_mla_explain(&c, 0, m, w.x, w.out) != NULL);
        REFUSE(swa_mla_forward, (&c, 0, m, w.x, w.out), SWA_ERR_ARG);
    }
}
static void misuse_mla_parts(swa_cache *c, const swa_mla *m) {
    for (int i = 0; i < BAD; i++) {
        int n = bad_index[i];
        REFUSE(swa_mla_forward, (c, n == 3 ? 2 : n, m, w.x, w.out), SWA_ERR_ORDER);
        REFUSE(swa_mla_forward_part, (c, n == 3 ? 2 : n, m, w.x, w.out, 0, 0, 1), SWA_ERR_ORDER);
        REFUSE(swa_mla_forward_part, (c, 0, m, w.x, w.out, 0, n, 2), SWA_ERR_ORDER);
        REFUSE(swa_mla_forward_part, (c, 0, m, w.x, w.out, 0, 0, n),
               n < 0 || n > 1 << 16 ? SWA_ERR_ORDER : SWA_ERR_MEMORY);
        if (n < 0 || n >= SWA_MLA_PHASES) REFUSE(swa_mla_forward_part, (c, 0, m, w.x, w.out, n, 0, 1), SWA_ERR_ORDER);
    }
    REFUSE(swa_mla_forward_part, (c, 0, m, w.x, w.out, SWA_MLA_PHASES, 0, 1), SWA_ERR_ORDER);
}
/* Each phase by other parts than the one before, or with a part of that left out. */
static void misuse_mla_phases(const swa_mla *m) {
    swa_cache_desc d = w.desc;
    swa_mla other;
    size_t bytes;
    swa_cache c;
    d.shape = swa_mla_shape(m, 0);
    if (!t_cache_new(&c, &d, 1)) return;
    bytes = swa_mla_scratch_bytes(m, &d, HELD, 3);
    CHECK_OK(swa_cache_set_scratch(&c, memset(t_alloc(bytes), 0, bytes), bytes));
    for (int bad = 1; bad < SWA_MLA_PHASES; bad++)
        for (int left_out = 0; left_out < 3; left_out++) { /* 2: none */
            t_label("mla, phase %d, %d", bad, left_out);
            if (!begin_anew(&c)) return;
            for (int phase = 0; phase < bad; phase++)
                for (int part = 0; part < 2; part++)
                    if (phase < bad - 1 || part != left_out)
                        ACCEPT(swa_mla_forward_part, (&c, 0, m, w.x, w.out, phase, part, 2));
            REFUSE(swa_mla_forward_part, (&c, 0, m, w.x, w.out, -1, 0, 2), SWA_ERR_ORDER);
            REFUSE(swa_mla_forward_part, (&c, 0, m, w.x, w.out, bad, 0, 1), SWA_ERR_ORDER);
            REFUSE(swa_mla_forward_part, (&c, 0, m, w.apart, w.out, bad, 0, 2), SWA_ERR_ORDER);
            other = *m; /* parts are given the same */
            other.w_o.p = w.apart;
            REFUSE(swa_mla_forward_part, (&c, 0, &other, w.x, w.out, bad, 0, 2), SWA_ERR_ORDER);
            for (int part = 0; part < 3; part++)
                REFUSE(swa_mla_forward_part, (&c, 0, m, w.x, w.out, bad, part, 3), SWA_ERR_ORDER);
            for (int part = 0; part < 2; part++) {
                if (left_out == 2) ACCEPT(swa_mla_forward_part, (&c, 0, m, w.x, w.out, bad, part, 2));
                else REFUSE(swa_mla_forward_part, (&c, 0, m, w.x, w.out, bad, part, 2), SWA_ERR_ORDER);
            }
        }
}
static void no_gemm(void *user, const swa_gemm *product) { (void)user, (void)product; }
static void no_rows(void *user, const swa_matrix *of, int64_t row, int32_t n, float *to) {
    (void)user, (void)of, (void)row, (void)n, (void)to;
}
/* A block that has all there is, its weights in x [400]. */
static swa_mla whole_mla(const float *x) {
    static const double freqs[2] = { 1.0, 0.5 };
    swa_mla m = good_mla();
    m.q_lora_rank = 4;
    m.w_dq.p = x;
    m.w_uq.p = x + 40;
    m.w_qr.p = x + 80;
    m.w_dkv.p = x + 120;
    m.w_kr.p = x + 160;
    m.w_uk.p = x + 200;
    m.w_uv.p = x + 250;
    m.w_o.p = x + 290;
    m.q_norm = x + 360;
    m.kv_norm = x + 370;
    m.eps = 1e-5f;
    m.sink_pos = 4;
    m.freq = freqs;
    return m;
}
/* Arrays of a step that lie where the block writes its own, or have strides of another layout. */
static void misuse_mla_arrays(swa_cache *c, const swa_mla *ok, const float *h, float *out, const float *scratch) {
    swa_mla m = *ok;
    m.c_q = scratch;
    REFUSE(swa_mla_forward, (c, 0, &m, h, out), SWA_ERR_ARG);
    m.c_q = h;
    m.c_q_token = 3;
    REFUSE(swa_mla_forward, (c, 0, &m, h, out), SWA_ERR_ARG); /* rows of 4 overlap */
    m.c_q_token = INT64_MAX;
    REFUSE(swa_mla_forward, (c, 0, &m, h, out), SWA_ERR_ARG);
    m = *ok;
    m.pick = (const int32_t *)(const void *)scratch;
    m.pick_n = 1;
    REFUSE(swa_mla_forward, (c, 0, &m, h, out), SWA_ERR_ARG);
}
/* Phase 1 differs in one field alone. */
static void misuse_mla_fields(void) {
    enum { N = 3 };
    const swa_window win = swa_window_sinks(4, 1);
    const float *h = t_random(99, 1.0f), *x = t_random(400, 1.0f);
    float *out = t_floats(99), *room;
    swa_cache_desc d = w.desc;
    swa_cache c;
    swa_mla ok = whole_mla(x), m;
    size_t bytes;
    d.windows = &win;
    d.n_windows = d.n_layers = 1;
    d.shape = swa_mla_shape(&ok, 0);
    for (int merged = 0; merged < 2; merged++) {
        if (merged) {
            bytes = swa_mla_merged_bytes(&ok);
            CHECK_OK(swa_mla_merge(&ok, t_alloc(bytes), bytes, &ok));
        }
        if (!t_cache_new(&c, &d, 1)) return;
        bytes = swa_mla_scratch_bytes(&ok, &d, N, 1);
        room = (float *)t_alloc(bytes);
        CHECK_OK(swa_cache_set_scratch(&c, room, bytes));
        CHECK_OK(swa_step_one(&c, 0, 0, N));
#define DIFFER(change)                                                                                                 \
    do {                                                                                                               \
        m = ok;                                                                                                        \
        t_label("mla, merged %d, phase 1 with %s", merged, #change);                                                   \
        ACCEPT(swa_mla_forward_part, (&c, 0, &ok, h, out, 0, 0, 1));                                                   \
        change;                                                                                                        \
        CHECK(swa_mla_explain(&c, 0, &m, h, out) == NULL);                                                             \
        REFUSE(swa_mla_forward_part, (&c, 0, &m, h, out, 1, 0, 1), SWA_ERR_ORDER);                                     \
    } while (0)
        DIFFER(m.w_dq.p = x + 1);
        if (!merged) {
            DIFFER(m.w_uq.p = x + 41);
            DIFFER(m.w_uk.p = x + 201);
            DIFFER(m.w_uv.p = x + 251);
            DIFFER(m.w_o.p = x + 291);
        } else {
            DIFFER(m.w_uqk.p = x);
            DIFFER(m.w_uvo.p = x);
        }
        DIFFER(m.w_qr.p = x + 81);
        DIFFER(m.w_dkv.p = x + 121);
        DIFFER(m.w_kr.p = x + 161);
        DIFFER(m.q_norm++);
        DIFFER(m.kv_norm++);
        DIFFER(m.freq++);
        DIFFER(m.eps = 1e-6f);
        DIFFER(m.pairs = SWA_ROPE_HALF);
        DIFFER(m.sink_pos = 5);
        DIFFER(m.rope_mscale = 1.5);
        DIFFER(m.scale = 0.25);
        DIFFER(m.compute = SWA_BF16);
        DIFFER(m.c_q = x);
        ok.c_q = x;
        DIFFER(m.c_q_token = 5);
        ok.c_q = NULL;
#undef DIFFER
        misuse_mla_arrays(&c, &ok, h, out, room);
    }
}
/* What is just legal of a block, and what just not. */
static void misuse_mla_legal(void) {
    const float *x = t_random(400, 1.0f);
    swa_cache_desc d = w.desc;
    swa_mla ok, m;
    size_t bytes;
    t_label("mla, just legal");
    ok = good_mla();
    ok.w_uq.stride = ok.w_qr.stride = ok.w_dkv.stride = ok.w_kr.stride = ok.w_o.stride = 8;
    ok.w_uk.stride = ok.w_uv.stride = 4;
    CHECK(swa_mla_explain(NULL, 0, &ok, NULL, NULL) == NULL);
    ok = good_mla();
    ok.w_uv.p = (const float *)ok.w_uk.p + ok.nope_dim * ok.kv_lora_rank; /* behind the rows of a head */
    CHECK(swa_mla_explain(NULL, 0, &ok, NULL, NULL) != NULL);
    ok.n_heads = 1; /* which is the only one */
    CHECK(swa_mla_explain(NULL, 0, &ok, NULL, NULL) == NULL);
    ok.n_heads = 2;
    ok.nope_dim = -2; /* less than nothing is no dimension, whatever rope_dim makes of it */
    ok.rope_dim = 6;
    CHECK(swa_mla_shape(&ok, 1).head_dim < 0);
    ok.nope_dim = 6;
    ok.rope_dim = -2;
    CHECK(swa_mla_shape(&ok, 1).head_dim < 0);
    ok = good_mla();
    ok.q_norm = x;
    ok.eps = 1e-5f;
    CHECK(swa_mla_explain(NULL, 0, &ok, NULL, NULL) != NULL); /* of no c_q */
    /* what is merged is not kept, and of W_QR nothing is merged */
    ok = good_mla();
    ok.w_qr.type = SWA_OPAQUE;
    ok.w_qr.p = w.x + 2;
    ok.gemm = no_gemm;
    bytes = swa_mla_merged_bytes(&ok);
    CHECK(bytes < 3 * 256 * sizeof(float) * (size_t)(ok.v_dim * ok.n_heads));
    ACCEPT(swa_mla_merge, (&ok, t_alloc(bytes), bytes, &m));
    CHECK(m.w_uq.p == NULL && m.w_uk.p == NULL && m.w_uv.p == NULL && m.w_o.p == NULL && m.w_qr.p == ok.w_qr.p);
    ok = good_mla(); /* OPAQUE, and no rows: nothing for the naive path */
    ok.w_uk.type = ok.w_uv.type = SWA_OPAQUE;
    ok.gemm = no_gemm;
    d.shape = swa_mla_shape(&ok, 0);
    ANSWER(swa_mla_scratch_bytes, (&ok, &d, 1, 1), 0);
    ok.path = SWA_MLA_ABSORBED;
    CHECK(swa_mla_scratch_bytes(&ok, &d, 1, 1) > 0);
    ok = good_mla();
    ok.rows = no_rows;
    CHECK(swa_mla_explain(NULL, 0, &ok, NULL, NULL) != NULL); /* of no OPAQUE weight */
    ok.w_uqk.p = ok.w_uvo.p = x;
    CHECK(swa_mla_explain(NULL, 0, &ok, NULL, NULL) == NULL); /* they were, and are multiplied */
}
static void misuse_mla(void) {
    swa_mla m = good_mla(), ok = m;
    swa_cache_desc d = w.desc;
    size_t bytes;
    swa_cache c;
    swa_status want;
    swa_mla merged;
    unsigned char *room;
    t_label("mla");
    misuse_mla_sizes();
    misuse_mla_fields();
    misuse_mla_legal();
    d.shape = swa_mla_shape(&m, 0);
    if (!t_cache_new(&c, &d, 1)) return;
    bytes = swa_mla_scratch_bytes(&m, &d, HELD, 2);
    room = (unsigned char *)t_alloc(bytes);
    CHECK_OK(swa_cache_set_scratch(&c, room, bytes));
    REFUSE(swa_mla_forward, (&c, 0, &m, w.x, w.out), SWA_ERR_ORDER); /* not begun */
    CHECK_OK(swa_step_one(&c, 0, 0, HELD));
    for (int i = 0; m = ok, spoil_mla(&m, i, &want); i++) {
        t_label("mla %d", i);
        ANSWER(swa_mla_scratch_bytes, (&m, &d, 1, 1), 0);
        if (i <= 13 || (i >= 33 && i <= 37) || (i >= 48 && i <= 50)) { /* sizes: all that these look at */
            ANSWER(swa_mla_merged_bytes, (&m), 0);
            ANSWER(swa_mla_choose, (&m, 5, 1, NULL), SWA_MLA_AUTO);
        } else CHECK(swa_mla_merged_bytes(&m) > 0 && swa_mla_choose(&m, 5, 1, NULL) != SWA_MLA_AUTO);
        REFUSE(swa_mla_merge, (&m, w.scratch, SIZE_MAX, &merged), want);
        REFUSE(swa_mla_forward, (&c, 0, &m, w.x, w.out), want);
        REFUSE(swa_mla_forward_part, (&c, 0, &m, w.x, w.out, 0, 0, 1), want);
    }
    t_label("mla forward");
    REFUSE(swa_mla_forward, (NULL, 0, &m, w.x, w.out), SWA_ERR_ARG);
    REFUSE(swa_mla_forward, (&c, 0, NULL, w.x, w.out), SWA_ERR_ARG);
    REFUSE(swa_mla_forward, (&c, 0, &m, NULL, w.out), SWA_ERR_ARG);
    REFUSE(swa_mla_forward, (&c, 0, &m, w.x, NULL), SWA_ERR_ARG);
    REFUSE(swa_mla_forward, (&c, 0, &m, w.out + 1, w.out), SWA_ERR_ARG);
    REFUSE(swa_mla_forward, (&c, 0, &m, w.out, w.out + HELD * 8 - 1), SWA_ERR_ARG);
    REFUSE(swa_mla_forward, (&c, 0, &m, w.x, (float *)(void *)(room + 64)), SWA_ERR_ARG);
    REFUSE(swa_mla_forward, (&c, 0, &m, (float *)(void *)(room + 64), w.out), SWA_ERR_ARG);
    REFUSE(swa_mla_forward, (&w.kv, 0, &m, w.x, w.out), SWA_ERR_ARG); /* a cache of another shape */
    misuse_mla_parts(&c, &m);
    m.w_uvo = m.w_o;
    REFUSE(swa_mla_forward, (&c, 0, &m, w.x, w.out), SWA_ERR_ARG); /* without w_uqk */
    m = ok;
    m.compute = (swa_type)77;
    REFUSE(swa_mla_forward, (&c, 0, &m, w.x, w.out), SWA_ERR_ARG);
    m = ok;
    CHECK_OK(swa_cache_set_scratch(&c, NULL, 0));
    REFUSE(swa_mla_forward, (&c, 0, &m, w.x, w.out), SWA_ERR_MEMORY);
    bytes = swa_mla_scratch_bytes(&m, &d, HELD, 1);
    CHECK_OK(swa_cache_set_scratch(&c, t_alloc(bytes - 64), bytes - 64));
    REFUSE(swa_mla_forward_part, (&c, 0, &m, w.x, w.out, 0, 0, 1), SWA_ERR_MEMORY);
    CHECK_OK(swa_cache_set_scratch(&c, t_alloc(bytes), bytes));
    misuse_mla_shapes(&m);
    misuse_mla_phases(&m);
    ACCEPT(swa_mla_forward, (&c, 0, &m, w.x, w.out));
    REFUSE(swa_mla_forward, (&c, 0, &m, w.x, w.out), SWA_ERR_ORDER); /* this layer has stored it */
}

/* ---- windows and masks ---- */

static void misuse_windows(void) {
    const swa_window prefix = swa_window_prefix(8, 100);
    swa_window bad = swa_window_sliding(-4), ok = swa_window_causal();
    int64_t lo = 1, hi = 2;
    t_label("windows");
    REFUSE(swa_visible_range, (NULL, 0, &lo, &hi), SWA_ERR_ARG);
    REFUSE(swa_visible_range, (&bad, 0, &lo, &hi), SWA_ERR_ARG);
    REFUSE(swa_visible_range, (&ok, -1, &lo, &hi), SWA_ERR_ARG);
    REFUSE(swa_visible_range, (&ok, 0, NULL, &hi), SWA_ERR_ARG);
    REFUSE(swa_visible_range, (&ok, 0, &lo, NULL), SWA_ERR_ARG);
    REFUSE(swa_visible_range, (&ok, INT64_MAX, &lo, &hi), SWA_ERR_OVERFLOW);
    CHECK(lo == 1 && hi == 2);
    for (int i = 0; i < 4; i++) { /* a band by hand, but of a kind that has none */
        swa_window hand = i < 2 ? ok : swa_window_chunked(4);
        if (i == 0) hand.left = 3;
        if (i == 1) hand.left = -1;
        if (i % 2 == 0) hand.right = i;
        if (i == 3) hand.left = 0;
        REFUSE(swa_visible_range, (&hand, 0, &lo, &hi), SWA_ERR_ARG);
    }
    ANSWER(swa_visible, (NULL, 0, 0), 0);
    ANSWER(swa_visible, (&bad, 0, 0), 0);
    ANSWER(swa_visible, (&ok, INT64_MIN, INT64_MAX), 0);
    ANSWER(swa_visible, (&ok, INT64_MAX, INT64_MIN), 0);
    ANSWER(swa_required_capacity, (NULL, 1, 1), 0);
    ANSWER(swa_required_capacity, (&bad, 1, 1), 0);
    ANSWER(swa_required_capacity, (&prefix, 1, 1), 0); /* runs have one */
    ANSWER(swa_required_capacity, (&ok, INT64_MIN, INT64_MIN), 0);
    CHECK(swa_explain(NULL, 0, 0) && swa_explain(&bad, 0, 0) && swa_explain(&ok, INT64_MIN, INT64_MAX));
    name_called("swa_explain");
    name_called("swa_window_causal");
    name_called("swa_window_sliding");
    name_called("swa_window_flash");
    name_called("swa_window_chunked");
    name_called("swa_window_symmetric");
    name_called("swa_window_sinks");
    name_called("swa_window_prefix");
    CHECK(swa_window_flash(INT64_MIN, INT64_MAX).kind < 0 && swa_window_chunked(INT64_MIN).kind < 0);
    CHECK(swa_window_symmetric(INT64_MIN).kind < 0 && swa_window_prefix(INT64_MIN, INT64_MIN).kind < 0);
}
static int spoil_mask(swa_mask_desc *d, int i) {
    static const int32_t negative[1] = { -1 }, huge[1] = { INT32_MAX };
    static const int64_t below[1] = { -1 }, end[1] = { INT64_MAX };
    switch (i) {
    case 0: d->window = swa_window_sliding(0); return 1;
    case 1: d->n_q = NULL; return 1;
    case 2: d->n_k = NULL; return 1;
    case 3: d->n_q = negative; return 1;
    case 4: d->n_k = negative; return 1;
    case 5: d->q_pos0 = below; return 1;
    case 6: d->k_pos0 = below; return 1;
    case 7: d->n_blocks = -1; return 1;
    case 8: d->n_blocks = INT32_MIN; return 1;
    case 9: d->k_padding = -1; return 1;
    case 10: d->k_padding = 2; return 1; /* below n_k */
    case 11: d->type = SWA_Q8; return 1;
    case 12: d->type = (swa_type)99; return 1;
    case 13:
        d->type = SWA_F16;
        d->masked = -1e30f;
        return 1;
    case 14: d->masked = (float)NAN; return 1;
    case 15: d->q_pos0 = end; return 1;
    case 16: d->k_pos0 = end; return 1;
    case 17:
        if (sizeof(size_t) == 4) d->n_q = d->n_k = huge;
        else d->window = swa_window_chunked(0);
        return 1;
    default: return 0;
    }
}
static void misuse_masks(void) {
    static const int32_t side[1] = { 3 };
    swa_mask_desc d, ok;
    t_label("masks");
    memset(&ok, 0, sizeof ok);
    ok.window = swa_window_sliding(2);
    ok.n_q = ok.n_k = side;
    ANSWER(swa_mask_bytes, (NULL), 0);
    ANSWER(swa_mask_bytes, (&ok), 36);
    REFUSE(swa_mask, (NULL, w.out, sizeof w.out), SWA_ERR_ARG);
    REFUSE(swa_mask, (&ok, NULL, SIZE_MAX), SWA_ERR_ARG);
    REFUSE(swa_mask, (&ok, w.out, 35), SWA_ERR_MEMORY);
    REFUSE(swa_mask, (&ok, w.out, 0), SWA_ERR_MEMORY);
    for (int i = 0; d = ok, spoil_mask(&d, i); i++) {
        t_label("mask %d", i);
        ANSWER(swa_mask_bytes, (&d), 0);
        remember();
        name_called("swa_mask");
        CHECK(swa_mask(&d, w.out, SIZE_MAX) != SWA_OK && untouched());
    }
    ACCEPT(swa_mask, (&ok, w.out, sizeof w.out));
}
static void misuse_compressed(void) {
    static float picture[512 * 512], full[16 * 16];
    static const int bad_dim[] = { INT32_MIN, -1, 0, 257, INT32_MAX };
    const swa_compressed kind = SWA_COMPRESSED_910B;
    for (int i = 0; i < 5; i++) {
        int d = bad_dim[i];
        t_label("head_dim %d", d);
        ANSWER(swa_compressed_block, (kind, d), 0);
        ANSWER(swa_compressed_band, (kind, 64, d), 0);
        REFUSE(swa_mask_compressed, (kind, 64, d, SWA_F32, 0, picture, sizeof picture), SWA_ERR_ARG);
        REFUSE(swa_mask_expand, (kind, picture, 4, d, 16, 0, full, sizeof full), SWA_ERR_ARG);
    }
    for (int i = 0; i < 3; i++) {
        swa_compressed odd = (swa_compressed)(i == 0 ? 4 : i == 1 ? 99 : -1);
        ANSWER(swa_compressed_block, (odd, 64), 0);
        ANSWER(swa_compressed_band, (odd, 64, 64), 0);
        REFUSE(swa_mask_compressed, (odd, 64, 64, SWA_F32, 0, picture, sizeof picture), SWA_ERR_ARG);
        REFUSE(swa_mask_expand, (odd, picture, 4, 64, 16, 0, full, sizeof full), SWA_ERR_ARG);
    }
    for (int64_t W = -1; W <= 0; W++) {
        ANSWER(swa_compressed_band, (kind, W, 64), 0);
        REFUSE(swa_mask_compressed, (kind, W, 64, SWA_F32, 0, picture, sizeof picture), SWA_ERR_ARG);
        REFUSE(swa_mask_expand, (kind, picture, W, 64, 16, 0, full, sizeof full), SWA_ERR_ARG);
    }
    REFUSE(swa_mask_compressed, (kind, 64, 64, SWA_F32, 0, NULL, SIZE_MAX), SWA_ERR_ARG);
    REFUSE(swa_mask_compressed, (kind, 64, 64, SWA_F32, 0, picture, sizeof picture - 1), SWA_ERR_MEMORY);
    REFUSE(swa_mask_compressed, (kind, 64, 64, SWA_Q8, 0, picture, sizeof picture), SWA_ERR_ARG);
    REFUSE(swa_mask_expand, (kind, NULL, 4, 64, 16, 0, full, sizeof full), SWA_ERR_ARG);
    REFUSE(swa_mask_expand, (kind, picture, 4, 64, 16, 0, NULL, sizeof full), SWA_ERR_ARG);
    REFUSE(swa_mask_expand, (kind, picture, 4, 64, 16, 0, full, sizeof full - 1), SWA_ERR_MEMORY);
    REFUSE(swa_mask_expand, (kind, picture, 4, 64, 0, 0, full, sizeof full), SWA_ERR_ARG);
    REFUSE(swa_mask_expand, (kind, picture, 4, 64, -1, 0, full, sizeof full), SWA_ERR_ARG);
    REFUSE(swa_mask_expand, (kind, picture, 4, 64, INT64_MAX, 0, full, SIZE_MAX), SWA_ERR_OVERFLOW);
    ACCEPT(swa_mask_compressed, (kind, INT64_MAX, 64, SWA_F32, 0, picture, sizeof picture));
    ACCEPT(swa_mask_expand, (kind, picture, INT64_MAX, 64, 16, 0, full, sizeof full));
}

/* ---- index ---- */

static swa_index good_index(void) {
    swa_index ix;
    memset(&ix, 0, sizeof ix);
    ix.q.p = w.x;
    ix.top = 2;
    ix.pick = (int32_t *)(void *)w.stat;
    ix.score = w.out;
    ix.score_n = HELD;
    return ix;
}
/* One field spoilt; 0 = there are no more. The first `sized` of them are spoilt for swa_select_bytes too. */
static int spoil_index(swa_index *ix, int i, swa_status *want) {
    *want = SWA_ERR_ARG;
    switch (i) {
    case 0: ix->lists = 3; return 1; /* of two heads */
    case 1: ix->lists = -1; return 1;
    case 2: ix->lists = INT32_MAX; return 1;
    case 3: ix->block = 3; return 1;
    case 4: ix->block = -1; return 1;
    case 5: ix->block = 512; return 1;
    case 6: ix->local = -1; return 1;
    case 7: ix->top = -1; return 1;
    case 8:
        ix->top = (1 << 24) + 1;
        *want = SWA_ERR_OVERFLOW;
        return 1;
    case 9:
        ix->top = INT32_MAX;
        *want = SWA_ERR_OVERFLOW;
        return 1;
    case 10: ix->q.p = NULL; return 1;
    case 11: ix->pick = NULL; return 1;
    case 12: ix->top = 0; return 1;
    case 13:
        ix->pick = NULL;
        ix->score = NULL;
        ix->top = 0;
        return 1;
    case 14: ix->score_n = 0; return 1;
    case 15: ix->score_n = -1; return 1;
    case 16: ix->score_first = -1; return 1;
    case 17: ix->score_first = INT64_MAX; return 1;
    case 18: ix->score_n = INT64_MAX; return 1;
    case 19: ix->compute = SWA_BOOL_KEEP; return 1;
    case 20: ix->compute = (swa_type)99; return 1;
    case 21:
        ix->compute = SWA_BF16;
        *want = SWA_ERR_UNSUPPORTED;
        return 1;
    case 22:
        ix->compute = SWA_Q8;
        *want = SWA_ERR_UNSUPPORTED;
        return 1;
    case 25:
        ix->lists = HEADS;
        ix->pick_list = ix->top - 1; /* lists that overlap */
        return 1;
    case 26:
        ix->lists = HEADS;
        ix->pick_list = -ix->top;
        return 1;
    case 27: ix->lists = HEADS, ix->score_list = 1; return 1;
    case 24:
        ix->compute = SWA_BF16_TILE;
        *want = SWA_ERR_UNSUPPORTED;
        return 1;
    case 28: ix->local = ix->top + 1; return 1;
    case 29: ix->linear = 2; return 1;
    case 30: ix->score = (float *)(void *)ix->pick; return 1;
    case 31: ix->w = ix->score; return 1;
    case 32: ix->w = (const float *)(const void *)ix->pick; return 1;
    case 33: ix->pick = (int32_t *)(void *)w.x; return 1; /* which is q */
    case 23:
        ix->top = 1 << 22;
        *want = SWA_ERR_MEMORY;
        return 1;
    default: return 0;
    }
}
/* What is just legal of an index, of N tokens that are stored, and what just not. */
static void misuse_index_legal(swa_cache *c, swa_index ok) {
    enum { N = 3 };
    swa_index ix;
    swa_shape two;
    /* strides left out, but that of a list of which there is one */
    t_label("index strides");
    ix = ok;
    ix.lists = 1;
    ix.pick_token = 0;
    ix.pick_list = 50;
    for (int i = 0; i < 200; i++) ok.pick[i] = 77;
    ACCEPT(swa_select, (c, 0, &ix));
    for (int i = 0; i < 7; i++) CHECK_INT(ok.pick[i] == 77, i >= N * 2);
    ix.top = 0; /* entries of no list: local says nothing */
    ix.pick = NULL;
    ix.pick_list = 0;
    ACCEPT(swa_select, (c, 0, &ix));
    ix.score_first = INT64_MAX - 3;
    REFUSE(swa_select, (c, 0, &ix), SWA_ERR_ARG);
    { /* weights in the scratch */
        swa_kv kv[2];
        const swa_rows r = good_rows(kv);
        ix = good_index();
        ix.w = (const float *)(const void *)w.scratch;
        REFUSE(swa_select_rows, (&r, &ix), SWA_ERR_ARG);
    }
    /* a megabyte or so, of few and small heads */
    ix = ok;
    CHECK(swa_select_bytes(&w.desc.shape, &ix, 1) < 1 << 20);
    /* the largest list; lists that are no multiple of the KV heads */
    ix = ok;
    ix.top = 1 << 24;
    CHECK(sizeof(size_t) == 4 || swa_select_bytes(&w.desc.shape, &ix, 1) > 0);
    ix.top++;
    ANSWER(swa_select_bytes, (&w.desc.shape, &ix, 1), 0);
    two = w.desc.shape;
    two.n_kv_heads = 2;
    ix = ok;
    CHECK(swa_select_bytes(&two, &ix, 1) > 0);
    ix.lists = 1;
    ANSWER(swa_select_bytes, (&two, &ix, 1), 0);
}
/* An index that has all there is; phase 1 then differs in one field alone. */
static void misuse_index_fields(void) {
    enum { N = 3 };
    const swa_window win = swa_window_causal();
    float *q = t_random(200, 1.0f), *of = t_random(200, 1.0f), *score = t_floats(200);
    int32_t *pick = (int32_t *)t_alloc(200 * sizeof(int32_t));
    swa_cache_desc d = w.desc;
    swa_cache c;
    swa_attn put = w.attn;
    swa_index ok, ix;
    size_t bytes;
    d.windows = &win;
    d.n_windows = d.n_layers = 1;
    if (!t_cache_new(&c, &d, 1)) return;
    put.mode = SWA_STORE_ONLY;
    memset(&ok, 0, sizeof ok);
    ok.q.p = q;
    ok.q.token = 20;
    ok.q.head = 5;
    ok.w = of;
    ok.w_token = 5;
    ok.lists = ok.block = ok.top = 2;
    ok.local = 1;
    ok.pick = pick;
    ok.pick_token = 9;
    ok.pick_list = 4;
    ok.score = score;
    ok.score_token = 19;
    ok.score_list = 9;
    ok.score_first = 1;
    ok.score_n = 4;
    bytes = swa_select_bytes(&d.shape, &ok, 2);
    CHECK_OK(swa_cache_set_scratch(&c, t_alloc(bytes), bytes));
    CHECK_OK(swa_step_one(&c, 0, 0, N));
    ACCEPT(swa_attend, (&c, 0, &put));
#define DIFFER(change)                                                                                                 \
    do {                                                                                                               \
        ACCEPT(swa_select_part, (&c, 0, &ok, 0, 0, 2));                                                                \
        ACCEPT(swa_select_part, (&c, 0, &ok, 0, 1, 2));                                                                \
        ix = ok;                                                                                                       \
        change;                                                                                                        \
        t_label("phase 1 with %s", #change);                                                                           \
        CHECK(swa_select_explain(&c, 0, &ix) == NULL);                                                                 \
        REFUSE(swa_select_part, (&c, 0, &ix, 1, 0, 2), SWA_ERR_ORDER);                                                 \
    } while (0)
    DIFFER(ix.q.p++);
    DIFFER(ix.q.token++);
    DIFFER(ix.q.head++);
    DIFFER(ix.w++);
    DIFFER(ix.w_token++);
    DIFFER(ix.linear = 1);
    DIFFER(ix.lists = 1);
    DIFFER(ix.block = 1);
    DIFFER(ix.local = 2);
    DIFFER(ix.top = 1);
    DIFFER(ix.pick++);
    DIFFER(ix.pick_token++);
    DIFFER(ix.pick_list--);
    DIFFER(ix.score++);
    DIFFER(ix.score_token++);
    DIFFER(ix.score_list--);
    DIFFER(ix.score_first = 0);
    DIFFER(ix.score_n = 3);
#undef DIFFER
    misuse_index_legal(&c, ok);
}
static void misuse_index_order(void) {
    swa_index ix = good_index();
    const size_t bytes = swa_select_bytes(&w.desc.shape, &ix, 4);
    void *scratch = t_alloc(bytes);
    CHECK_OK(swa_cache_set_scratch(&w.kv, scratch, bytes));
    for (int i = 0; i < BAD; i++) {
        int n = bad_index[i];
        REFUSE(swa_select, (&w.kv, n == 3 ? 2 : n, &ix), SWA_ERR_ORDER);
        REFUSE(swa_select_part, (&w.kv, n == 3 ? 2 : n, &ix, 0, 0, 1), SWA_ERR_ORDER);
        REFUSE(swa_select_part, (&w.kv, 1, &ix, n, 0, 1), SWA_ERR_ORDER);
        REFUSE(swa_select_part, (&w.kv, 1, &ix, 0, n, 2), SWA_ERR_ORDER);
        if (n != 3 && n != 4)
            REFUSE(swa_select_part, (&w.kv, 1, &ix, 0, 0, n), n < 0 || n > 1 << 16 ? SWA_ERR_ORDER : SWA_ERR_MEMORY);
    }
    REFUSE(swa_select_part, (&w.kv, 1, &ix, SWA_PHASES, 0, 1), SWA_ERR_ORDER);
    REFUSE(swa_select_part, (&w.kv, 1, &ix, 0, 0, 0), SWA_ERR_ORDER);
    for (int left_out = 0; left_out < 3; left_out++) { /* 2: none */
        swa_attn a = w.attn;
        a.mode = SWA_ATTEND_STORED;
        memset(scratch, 0, bytes);
        for (int part = 0; part < 2; part++)
            if (part != left_out) ACCEPT(swa_select_part, (&w.kv, 1, &ix, 0, part, 2));
        REFUSE(swa_select_part, (&w.kv, 1, &ix, -1, 0, 2), SWA_ERR_ORDER);
        REFUSE(swa_select_part, (&w.kv, 1, &ix, 1, 0, 1), SWA_ERR_ORDER);
        for (int field = 0; field < 4; field++) { /* parts are given the same */
            swa_index other = ix;
            if (field == 0) other.linear = !ix.linear;
            if (field == 1) other.local = ix.local + 1;
            if (field == 2) other.w = w.apart;
            if (field == 3) other.pick_token = 64;
            REFUSE(swa_select_part, (&w.kv, 1, &other, 1, 0, 2), SWA_ERR_ORDER);
        }
        if (left_out != 0) { /* lists that part 0 has begun are not whole: nothing attends */
            CHECK(strstr(swa_attend_explain(&w.kv, 1, &a), "swa_select_part") != NULL);
            REFUSE(swa_attend, (&w.kv, 1, &a), SWA_ERR_ORDER);
            REFUSE(swa_attend_part, (&w.kv, 1, &a, 0, 0, 1), SWA_ERR_ORDER);
        }
        for (int part = 0; part < 2; part++) {
            if (left_out == 2) ACCEPT(swa_select_part, (&w.kv, 1, &ix, 1, part, 2));
            else REFUSE(swa_select_part, (&w.kv, 1, &ix, 1, part, 2), SWA_ERR_ORDER);
        }
        if (left_out != 2) ACCEPT(swa_select, (&w.kv, 1, &ix)); /* which is whole */
        CHECK(swa_attend_explain(&w.kv, 1, &a) == NULL);
    }
    w.attn.mode = SWA_STORE_ONLY;
    CHECK_OK(swa_cache_reset(&w.kv, 1, (int64_t)1 << 32, 0));
    CHECK_OK(swa_step_one(&w.kv, 1, (int64_t)1 << 32, 2)); /* positions that a list of int32 does not hold ... */
    CHECK_OK(swa_attend(&w.kv, 0, &w.attn));
    CHECK_OK(swa_attend(&w.kv, 1, &w.attn));
    REFUSE(swa_select, (&w.kv, 1, &ix), SWA_ERR_OVERFLOW);
    ix.block = 16; /* ... but divided by 16 */
    ACCEPT(swa_select, (&w.kv, 1, &ix));
    CHECK(ix.pick[0] == 1 << 28 && ix.pick[1] == -1);
    ix.block = 1;
    CHECK_OK(swa_step_one(&w.kv, 0, HELD, 3));
    REFUSE(swa_select, (&w.kv, 1, &ix), SWA_ERR_ORDER); /* not stored yet */
    CHECK_OK(swa_attend(&w.kv, 0, &w.attn));
    CHECK_OK(swa_attend(&w.kv, 1, &w.attn));
    ix.score_n = HELD + 3;
    ACCEPT(swa_select, (&w.kv, 1, &ix));
    CHECK_OK(swa_step_one(&w.kv, 0, HELD + 3, 30));
    CHECK_OK(swa_attend(&w.kv, 0, &w.attn));
    CHECK_OK(swa_attend(&w.kv, 1, &w.attn));
    w.attn.mode = SWA_ATTEND;
    REFUSE(swa_select, (&w.kv, 0, &ix), SWA_ERR_CAPACITY); /* a ring of 16 for 30 tokens */
}
/* An index is over keys without a tail. */
static void misuse_index_tail(void) {
    swa_cache_desc d = w.desc;
    swa_index ix = good_index();
    swa_cache c;
    d.shape.tail_dim = 2;
    if (!t_cache_new(&c, &d, 1) || !begin_anew(&c)) return;
    REFUSE(swa_select, (&c, 0, &ix), SWA_ERR_UNSUPPORTED);
    REFUSE(swa_select_part, (&c, 0, &ix, 0, 0, 1), SWA_ERR_UNSUPPORTED);
}
static void misuse_index_rows(void) {
    swa_index ix = good_index(), bad;
    swa_status want;
    swa_kv kv;
    swa_rows r, x;
    memset(&kv, 0, sizeof kv);
    memset(&r, 0, sizeof r);
    kv.k = kv.v = w.x;
    kv.n = HELD;
    r.shape = w.desc.shape;
    r.window = swa_window_causal();
    r.pos = HELD - 1;
    r.n_tokens = 1;
    r.kv = &kv;
    r.n_kv = 1;
    r.scratch_bytes = swa_select_bytes(&r.shape, &ix, 2);
    r.scratch = t_alloc(r.scratch_bytes);
    ACCEPT(swa_select_rows, (&r, &ix));
    ACCEPT(swa_select_rows_part, (&r, &ix, 0, 1, 2));
    CHECK(swa_select_rows_explain(&r, &ix) == NULL && swa_select_rows_explain(&r, NULL) != NULL);
    CHECK(swa_select_rows_explain(NULL, &ix) != NULL);
    REFUSE(swa_select_rows, (NULL, &ix), SWA_ERR_ARG);
    REFUSE(swa_select_rows, (&r, NULL), SWA_ERR_ARG);
    for (int i = 0; bad = ix, spoil_index(&bad, i, &want); i++) {
        t_label("index of rows, field %d", i);
        name_called("swa_select_rows_explain");
        CHECK(swa_select_rows_explain(&r, &bad) != NULL);
        REFUSE(swa_select_rows, (&r, &bad), want);
        REFUSE(swa_select_rows_part, (&r, &bad, 0, 0, 1), want);
    }
    for (int i = 0; i < BAD; i++) {
        REFUSE(swa_select_rows_part, (&r, &ix, bad_index[i], 0, 1), SWA_ERR_ORDER);
        REFUSE(swa_select_rows_part, (&r, &ix, 0, bad_index[i], 2), SWA_ERR_ORDER);
    }
    bad = ix; /* lists where the call works */
    bad.pick = (int32_t *)r.scratch;
    REFUSE(swa_select_rows, (&r, &bad), SWA_ERR_ARG);
    REFUSE(swa_select_rows_part, (&r, &ix, 0, 0, 0), SWA_ERR_ORDER);
    REFUSE(swa_select_rows_part, (&r, &ix, 0, 0, INT32_MAX), SWA_ERR_ORDER);
    x = r;
    x.scratch = NULL;
    REFUSE(swa_select_rows, (&x, &ix), SWA_ERR_MEMORY);
    x = r;
    x.scratch_bytes = swa_select_bytes(&r.shape, &ix, 1) - 1;
    REFUSE(swa_select_rows, (&x, &ix), SWA_ERR_MEMORY);
    x = r;
    x.scratch_bytes = 0;
    REFUSE(swa_select_rows, (&x, &ix), SWA_ERR_MEMORY);
    x = r;
    x.pos = -1;
    REFUSE(swa_select_rows, (&x, &ix), SWA_ERR_ARG);
    x = r;
    x.pos = (int64_t)1 << 32;
    REFUSE(swa_select_rows, (&x, &ix), SWA_ERR_OVERFLOW);
    x = r;
    x.pos = INT64_MAX - 1;
    REFUSE(swa_select_rows, (&x, &ix), SWA_ERR_OVERFLOW);
    x = r;
    for (int past = 0; past < 2; past++) { /* the last position that is an int32, and one more */
        x.pos = (int64_t)INT32_MAX + 1 + past - x.n_tokens;
        if (past) REFUSE(swa_select_rows, (&x, &ix), SWA_ERR_OVERFLOW);
        else ACCEPT(swa_select_rows, (&x, &ix));
    }
    x = r;
    x.shape.tail_dim = 4;
    kv.tail = w.x;
    REFUSE(swa_select_rows, (&x, &ix), SWA_ERR_UNSUPPORTED);
}
static void misuse_index(void) {
    swa_index ix = good_index(), bad;
    swa_shape s = w.desc.shape;
    swa_status want;
    size_t bytes = swa_select_bytes(&s, &ix, 1);
    world_open();
    CHECK_OK(swa_cache_set_scratch(&w.kv, t_alloc(bytes), bytes));
    REFUSE(swa_select, (NULL, 0, &ix), SWA_ERR_ARG);
    REFUSE(swa_select, (&w.kv, 0, NULL), SWA_ERR_ARG);
    REFUSE(swa_select_part, (NULL, 0, &ix, 0, 0, 1), SWA_ERR_ARG);
    REFUSE(swa_select_part, (&w.kv, 1, NULL, 0, 0, 1), SWA_ERR_ARG);
    ANSWER(swa_select_bytes, (NULL, &ix, 1), 0);
    ANSWER(swa_select_bytes, (&s, NULL, 1), 0);
    ANSWER(swa_select_bytes, (&s, &ix, 0), 0);
    ANSWER(swa_select_bytes, (&s, &ix, INT32_MIN), 0);
    ANSWER(swa_select_bytes, (&s, &ix, INT32_MAX), 0);
    for (int i = 0; bad = ix, spoil_index(&bad, i, &want); i++) {
        t_label("index, field %d", i);
        if (i < 10) ANSWER(swa_select_bytes, (&s, &bad, 1), 0);
        name_called("swa_select_explain");
        CHECK(swa_select_explain(&w.kv, 1, &bad) != NULL);
        REFUSE(swa_select, (&w.kv, 1, &bad), want);
        REFUSE(swa_select_part, (&w.kv, 1, &bad, 0, 0, 1), want);
    }
    t_label("index, strides of tokens");
    bad = ix;
    bad.w_token = HEADS - 1;
    REFUSE(swa_select, (&w.kv, 1, &bad), SWA_ERR_ARG);
    bad = ix;
    bad.pick_token = ix.top - 1;
    REFUSE(swa_select, (&w.kv, 1, &bad), SWA_ERR_ARG);
    bad = ix;
    bad.score_token = 1;
    REFUSE(swa_select, (&w.kv, 1, &bad), SWA_ERR_ARG);
    s.tail_dim = 2;
    ANSWER(swa_select_bytes, (&s, &ix, 1), 0);
    s.tail_dim = -1;
    ANSWER(swa_select_bytes, (&s, &ix, 1), 0);
    t_label("index");
    CHECK(swa_select_explain(NULL, 1, &ix) != NULL && swa_select_explain(&w.kv, 1, NULL) != NULL);
    CHECK(swa_select_explain(&w.kv, -1, &ix) != NULL && swa_select_explain(&w.kv, 1, &ix) == NULL);
    for (int i = 0; i < 4; i++) { /* in the ring, which it would write over */
        unsigned char *const inside = w.block + GUARD + 256 + (64 - (uintptr_t)(w.block + GUARD) % 64);
        bad = ix;
        if (i == 0) bad.pick = (int32_t *)(void *)inside;
        if (i == 1) bad.q.p = (float *)(void *)inside;
        if (i == 2) bad.w = (float *)(void *)inside;
        if (i == 3) bad.score = (float *)(void *)inside, bad.score_n = 1;
        REFUSE(swa_select, (&w.kv, 1, &bad), SWA_ERR_ARG);
    }
    ACCEPT(swa_select, (&w.kv, 1, &ix));
    misuse_index_rows();
    misuse_index_tail();
    misuse_index_order();
    misuse_index_fields();
}

/* ---- helpers ---- */

static void misuse_rmsnorm(void) {
    float *x = w.out;
    t_label("rmsnorm");
    REFUSE(swa_rmsnorm, (NULL, w.x, w.x, 1, 4, 1e-5f), SWA_ERR_ARG);
    REFUSE(swa_rmsnorm, (x, NULL, w.x, 1, 4, 1e-5f), SWA_ERR_ARG);
    REFUSE(swa_rmsnorm, (x, w.x, w.x, -1, 4, 1e-5f), SWA_ERR_ARG);
    REFUSE(swa_rmsnorm, (x, w.x, w.x, 1, 0, 1e-5f), SWA_ERR_ARG);
    REFUSE(swa_rmsnorm, (x, w.x, w.x, 1, -4, 1e-5f), SWA_ERR_ARG);
    REFUSE(swa_rmsnorm, (x, w.x, w.x, 1, 4, -1.0f), SWA_ERR_ARG);
    REFUSE(swa_rmsnorm, (x, w.x, w.x, 1, 4, (float)NAN), SWA_ERR_ARG);
    REFUSE(swa_rmsnorm, (x + 1, x, NULL, 1, 4, 1e-5f), SWA_ERR_ARG); /* a row off */
    REFUSE(swa_rmsnorm, (x, x + 7, NULL, 2, 4, 1e-5f), SWA_ERR_ARG);
    REFUSE(swa_rmsnorm, (x, w.x, x + 7, 2, 4, 1e-5f), SWA_ERR_ARG);
    ACCEPT(swa_rmsnorm, (x, x + 8, x + 8, 2, 4, 1e-5f));
    ACCEPT(swa_rmsnorm, (x, x, NULL, 2, 4, 1e-5f));
    ACCEPT(swa_rmsnorm, (x, w.x, NULL, 1, 4, 1e-5f));
    ACCEPT(swa_rmsnorm, (x, w.x, w.x, 0, 4, 1e-5f));
}
static void misuse_helpers(void) {
    const int64_t pos[2] = { 0, 1 };
    double freq[2] = { 1, 0.5 }, mscale = 3;
    swa_yarn_desc y;
    float *x = w.out;
    t_label("helpers");
    memset(&y, 0, sizeof y);
    y.base = 10000;
    y.scale = 4;
    y.original = 4096;
    REFUSE(swa_rope, (NULL, 2, 1, 4, pos, freq, 4, SWA_ROPE_HALF, 0), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, 2, 1, 4, pos, freq, 4, SWA_ROPE_HALF, -1), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, 2, 1, 4, pos, freq, 4, SWA_ROPE_HALF, (double)NAN), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, 2, 1, 4, pos, freq, 4, SWA_ROPE_HALF, (double)INFINITY), SWA_ERR_ARG);
    for (int i = 0; i < 3; i++) { /* a period, a NaN, one below 0 */
        const double odd[2] = { 1, i == 0 ? 100.0 : i == 1 ? (double)NAN : -0.5 };
        REFUSE(swa_rope, (x, 2, 1, 4, pos, odd, 4, SWA_ROPE_HALF, 0), SWA_ERR_ARG);
    }
    REFUSE(swa_rope, (x, 2, 1, 4, NULL, freq, 4, SWA_ROPE_HALF, 0), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, 2, 1, 4, pos, NULL, 4, SWA_ROPE_HALF, 0), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, -1, 1, 4, pos, freq, 4, SWA_ROPE_HALF, 0), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, 2, 0, 4, pos, freq, 4, SWA_ROPE_HALF, 0), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, 2, 1, 0, pos, freq, 4, SWA_ROPE_HALF, 0), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, 2, 1, 4, pos, freq, 3, SWA_ROPE_HALF, 0), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, 2, 1, 4, pos, freq, 6, SWA_ROPE_HALF, 0), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, 2, 1, 4, pos, freq, -2, SWA_ROPE_HALF, 0), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, 2, 1, 4, pos, freq, INT32_MAX, SWA_ROPE_HALF, 0), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, 2, 1, 4, pos, freq, 4, (swa_rope_pairs)9, 0), SWA_ERR_ARG);
    REFUSE(swa_rope, (x, INT32_MAX, INT32_MAX, INT32_MAX, pos, freq, 4, SWA_ROPE_HALF, 0), SWA_ERR_OVERFLOW);
    ACCEPT(swa_rope, (x, 0, 1, 4, pos, freq, 4, SWA_ROPE_HALF, 0));
    REFUSE(swa_yarn, (NULL, 4, freq, &mscale), SWA_ERR_ARG);
    REFUSE(swa_yarn, (&y, 4, NULL, &mscale), SWA_ERR_ARG);
    REFUSE(swa_yarn, (&y, 0, freq, &mscale), SWA_ERR_ARG);
    REFUSE(swa_yarn, (&y, 3, freq, &mscale), SWA_ERR_ARG);
    REFUSE(swa_yarn, (&y, -4, freq, &mscale), SWA_ERR_ARG);
    y.original = 0;
    REFUSE(swa_yarn, (&y, 4, freq, &mscale), SWA_ERR_ARG);
    y.original = 4096;
    y.base = 0;
    REFUSE(swa_yarn, (&y, 4, freq, &mscale), SWA_ERR_ARG);
    y.base = (double)NAN;
    REFUSE(swa_yarn, (&y, 4, freq, &mscale), SWA_ERR_ARG);
    y.base = 10000;
    y.scale = -1;
    REFUSE(swa_yarn, (&y, 4, freq, &mscale), SWA_ERR_ARG);
    y.scale = 0.25; /* ggml's freq_scale */
    REFUSE(swa_yarn, (&y, 4, freq, &mscale), SWA_ERR_ARG);
    CHECK(mscale == 3 && freq[0] == 1 && freq[1] == 0.5);
    y.scale = 0;
    REFUSE(swa_yarn, (&y, 4, freq, NULL), SWA_ERR_ARG); /* forgotten: there is an original */
    y.scale = 1;
    ACCEPT(swa_yarn, (&y, 4, freq, NULL));
    REFUSE(swa_hadamard, (NULL, 1, 1, 4, 4), SWA_ERR_ARG);
    REFUSE(swa_hadamard, (x, -1, 1, 4, 4), SWA_ERR_ARG);
    REFUSE(swa_hadamard, (x, 1, 0, 4, 4), SWA_ERR_ARG);
    REFUSE(swa_hadamard, (x, 1, 1, 0, 4), SWA_ERR_ARG);
    REFUSE(swa_hadamard, (x, 1, 1, -4, 4), SWA_ERR_ARG);
    REFUSE(swa_hadamard, (x, 1, 1, 4, 0), SWA_ERR_ARG);
    REFUSE(swa_hadamard, (x, 1, 1, 4, -4), SWA_ERR_ARG);
    REFUSE(swa_hadamard, (x, 1, 1, 6, 6), SWA_ERR_ARG);
    REFUSE(swa_hadamard, (x, 1, 1, 4, 8), SWA_ERR_ARG);
    REFUSE(swa_hadamard, (x, 1, 1, 4, INT32_MIN), SWA_ERR_ARG);
    REFUSE(swa_hadamard, (x, INT32_MAX, INT32_MAX, INT32_MAX, 1), SWA_ERR_OVERFLOW);
    ACCEPT(swa_hadamard, (x, 0, 1, 4, 4));
}
static void misuse_names(void) {
    static const int odd[] = { INT32_MIN, -1, N_STATUS, INT32_MAX };
    const char *unknown = swa_status_str((swa_status)-1);
    t_label("names");
    CHECK(strcmp(swa_status_str(SWA_OK), "OK") == 0 && strstr(swa_status_str(SWA_ERR_ORDER), "ORDER: ") != NULL);
    ANSWER(swa_version, (), SWA_VERSION);
    for (int i = 0; i < N_STATUS; i++) {
        const char *name = swa_status_str((swa_status)i);
        for (int j = 0; j < i; j++) CHECK(strcmp(name, swa_status_str((swa_status)j)) != 0);
        CHECK(name[0] != 0 && strcmp(name, unknown) != 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK(strcmp(swa_status_str((swa_status)odd[i]), unknown) == 0 && swa_isa_name(odd[i]) != NULL);
        ANSWER(swa_isa_usable, (odd[i]), 0);
        ANSWER(swa_compute_fastest, (odd[i]), SWA_F32);
    }
    name_called("swa_status_str");
    name_called("swa_isa_name");
    name_called("swa_isa_best");
    CHECK(swa_isa_usable(swa_isa_best()) && swa_isa_usable(SWA_ISA_SCALAR));
}

/* ---- the count ---- */

/* Every name that the public part of swa.h declares is one that a row called. */
static void check_every_function(void) {
    FILE *f = fopen("swa.h", "rb");
    static char text[1 << 20];
    size_t n;
    int names = 0;
    if (!CHECK(f != NULL)) return; /* tests run from the top of the project */
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    if (strstr(text, "#endif /* SWA_H_INCLUDED */")) *strstr(text, "#endif /* SWA_H_INCLUDED */") = 0;
    for (char *p = text; (p = strstr(p, "\nSWA_")) != NULL;) {
        char name[64];
        size_t len = 0;
        char *end = strchr(++p, '('), *s;
        if (strncmp(p, "SWA_API ", 8) != 0 && strncmp(p, "SWA_CHECKED ", 12) != 0) continue;
        if (!end) break;
        for (s = end; s > p && strchr("abcdefghijklmnopqrstuvwxyz0123456789_", s[-1]); s--) len++;
        if (len >= sizeof name) len = sizeof name - 1;
        memcpy(name, s, len);
        name[len] = 0;
        names++;
        n = 0;
        for (int i = 0; i < n_called; i++) n += !strcmp(called[i], name);
        t_label("%s has no row here", name);
        CHECK(n == 1);
    }
    t_label("functions found in swa.h");
    CHECK(names > 40);
}
/* ---- trees ---- */

static void misuse_parents(void) {
    static const int32_t odd[][3] = { { 0, 0, 0 },   { -2, 0, 0 },         { -1, 1, 0 },        { -1, 0, 3 },
                                      { 1, -1, -1 }, { -1, INT32_MIN, 0 }, { -1, 0, INT32_MAX } };
    static int32_t many[40000];
    int64_t pos[3];
    swa_run r;
    t_label("parents");
    memset(many, 0xff, sizeof many);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        r = t_run(2, 0, 3);
        r.parents = odd[i];
        REFUSE(swa_step_begin, (&w.kv, &r, 1), SWA_ERR_ARG);
        REFUSE(swa_tree_positions, (odd[i], 3, 0, pos), SWA_ERR_ARG);
    }
    r = t_run(2, 0, 3);
    r.parents = many;
    r.prefix = 2;
    REFUSE(swa_step_begin, (&w.kv, &r, 1), SWA_ERR_ARG);
    r = t_run(2, 0, 17); /* a ring of 16 */
    r.parents = many;
    REFUSE(swa_step_begin, (&w.kv, &r, 1), SWA_ERR_CAPACITY);
    CHECK_STATUS(r.status, SWA_ERR_CAPACITY);
    REFUSE(swa_tree_positions, (NULL, 3, 0, pos), SWA_ERR_ARG);
    REFUSE(swa_tree_positions, (many, 3, 0, NULL), SWA_ERR_ARG);
    REFUSE(swa_tree_positions, (many, -1, 0, pos), SWA_ERR_ARG);
    REFUSE(swa_tree_positions, (many, 3, -1, pos), SWA_ERR_ARG);
    REFUSE(swa_tree_positions, (many, 3, INT64_MAX, pos), SWA_ERR_OVERFLOW);
    REFUSE(swa_tree_positions, (many, (1 << 15) + 1, 0, pos), SWA_ERR_OVERFLOW);
    REFUSE(swa_tree_positions, (many, INT32_MAX, 0, pos), SWA_ERR_OVERFLOW);
    ACCEPT(swa_tree_positions, (many, 3, INT64_MAX - 4, pos));
    ACCEPT(swa_tree_positions, (many, 0, 0, pos));
    ACCEPT(swa_tree_positions, (many, 1 << 15, 0, (int64_t *)t_alloc(sizeof(int64_t) << 15)));
}
/* A refused path is explained by a text that holds `word`. */
static void why_commit(const int32_t *path, int32_t n, const char *word) {
    const char *why = swa_cache_commit_explain(&w.kv, 2, path, n);
    if (!CHECK(why != NULL)) return;
    t_label("%s: %s", word, why);
    CHECK(strstr(why, word) != NULL);
    t_label("trees");
}
/* One layer with this window. */
static swa_cache_desc one_window(const swa_window *win, int audit) {
    swa_cache_desc d = w.desc;
    d.windows = win;
    d.n_windows = d.n_layers = 1;
    d.audit = audit;
    return d;
}
/* Of the places from which pinned sinks may be seen, one is StreamingLLM's. */
static void misuse_sink_pos(void) {
    const swa_window win = swa_window_sinks(4, 2);
    swa_mla m = good_mla();
    swa_cache_desc d = one_window(&win, 1);
    swa_cache kv;
    size_t bytes;
    d.shape = swa_mla_shape(&m, 0);
    if (!t_cache_new(&kv, &d, 1)) return;
    m.sink_pos = 5; /* angles of its own */
    bytes = swa_mla_scratch_bytes(&m, &d, 1, 1);
    CHECK_OK(swa_cache_set_scratch(&kv, t_alloc(bytes), bytes));
    CHECK_OK(swa_step_one(&kv, 0, 0, 1));
    for (m.sink_pos = 4; m.sink_pos <= 6; m.sink_pos += 2)
        REFUSE(swa_mla_forward, (&kv, 0, &m, w.x, w.out), SWA_ERR_ARG);
    m.sink_pos = 5;
    ACCEPT(swa_mla_forward, (&kv, 0, &m, w.x, w.out));
    for (int pos = 1; pos < 8; pos++) { /* 0 may mean that sinks keep their places, or that it was forgotten */
        CHECK_OK(swa_step_one(&kv, 0, pos, 1));
        m.sink_pos = 0;
        if (pos > 5) REFUSE(swa_mla_forward, (&kv, 0, &m, w.x, w.out), SWA_ERR_ARG);
        if (pos > 5) m.sink_pos = 5;
        ACCEPT(swa_mla_forward, (&kv, 0, &m, w.x, w.out));
    }
    REFUSE(swa_step_one, (&kv, 0, 99, 1), SWA_ERR_ORDER); /* there is no step whose tokens could be far */
    m.sink_pos = 0;
    REFUSE(swa_mla_forward, (&kv, 0, &m, w.x, w.out), SWA_ERR_ORDER);
    CHECK(swa_mla_explain(NULL, 0, &m, NULL, NULL) == NULL);
    m.eps = -1; /* told without a cache */
    CHECK(strstr(swa_mla_explain(NULL, 0, &m, NULL, NULL), "eps") != NULL);
}
/* Under audit q_sink may have been forgotten once sinks have left the window by more than there are: q says that they
   keep their places. */
static void misuse_q_sink(void) {
    const swa_window win = swa_window_sinks(4, 2);
    for (int audit = 0; audit < 2; audit++) {
        const swa_cache_desc d = one_window(&win, audit);
        swa_cache kv;
        swa_attn a = w.attn;
        t_label("audit %d", audit);
        if (!t_cache_new(&kv, &d, 1)) return;
        a.q.p = w.apart;
        a.v.p = w.apart + 32;
        CHECK_OK(swa_step_one(&kv, 0, 0, 1));
        a.q_sink_tail.p = w.apart + 64; /* there are sinks, but no tail */
        REFUSE(swa_attend, (&kv, 0, &a), SWA_ERR_ARG);
        a.q_sink_tail.p = NULL;
        CHECK_OK(swa_cache_reset(&kv, 0, 0, 0));
        for (int pos = 0; pos < 9; pos++) {
            CHECK_OK(swa_step_one(&kv, 0, pos, 1));
            a.q_sink.p = NULL;
            if (pos > 5 && audit) {
                REFUSE(swa_attend, (&kv, 0, &a), SWA_ERR_ARG);
                a.q_sink.p = a.q.p;
            }
            ACCEPT(swa_attend, (&kv, 0, &a));
        }
    }
}
/* Under audit V where K is was copied and not changed; where V is in K, or is not read, it is not looked at. */
static void misuse_audit(void) {
    const swa_window win = swa_window_sliding(4);
    for (int way = 0; way < 4; way++) {
        swa_cache_desc d = one_window(&win, way > 0);
        swa_cache kv;
        swa_attn a = w.attn;
        d.shape.v_in_k = way == 2;
        t_label("audit %d", way);
        if (!t_cache_new(&kv, &d, 1)) return;
        a.scale = 1.0f;
        a.q.p = w.apart;
        CHECK_OK(swa_step_one(&kv, 0, 0, 2));
        if (way == 3) { /* copied and not changed, as well; a scale that divides; lists of two tokens, one further on */
            static const int32_t list[4] = { 0, 1, 0, 1 };
            a.v.p = w.apart + 32;
            a.q.p = w.x;
            REFUSE(swa_attend, (&kv, 0, &a), SWA_ERR_ARG);
            a.q.p = a.v.p;
            REFUSE(swa_attend, (&kv, 0, &a), SWA_ERR_ARG);
            a.q.p = w.apart;
            a.scale = 2.5f;
            REFUSE(swa_attend, (&kv, 0, &a), SWA_ERR_ARG);
            a.scale = 1.0f;
            a.pick = list;
            a.pick_n = 2;
            a.pick_token = 1;
            REFUSE(swa_attend, (&kv, 0, &a), SWA_ERR_ARG);
            a.pick_token = 1; /* of one token */
            CHECK_OK(swa_cache_reset(&kv, 0, 0, 0));
            CHECK_OK(swa_step_one(&kv, 0, 0, 1));
            CHECK(swa_attend_explain(&kv, 0, &a) == NULL);
            CHECK_OK(swa_step_one(&kv, 0, 0, 2));
            a.pick_token = 2;
        }
        CHECK_STATUS(swa_attend(&kv, 0, &a), way == 1 ? SWA_ERR_ARG : SWA_OK);
        if (way == 1) CHECK(swa_attend_explain(&kv, 0, &a) != NULL && swa_attend_explain(&kv, 0, &a)[0] == 'v');
    }
}
static void misuse_trees(void) {
    static const int32_t list[2] = { 0, 1 };
    static const int32_t bad[][2] = { { 0, 0 }, { 0, 3 }, { 1, 2 }, { 0, -1 }, { INT32_MIN, 0 }, { INT32_MAX, 0 } };
    const size_t room = swa_cache_scratch_bytes(&w.desc, 2);
    int32_t parents[3] = { -1, 0, 0 };
    swa_run r = t_run(2, 0, 3);
    swa_index ix = good_index();
    swa_attn a = w.attn;
    t_label("trees");
    CHECK_OK(swa_cache_set_scratch(&w.kv, t_alloc(room), room));
    REFUSE(swa_cache_commit, (&w.kv, 2, NULL, 0), SWA_ERR_ORDER); /* no tree */
    name_called("swa_cache_commit_explain");
    CHECK(swa_cache_commit_explain(NULL, 2, NULL, 0) != NULL && swa_cache_commit_explain(&w.kv, 9, NULL, 0) != NULL);
    why_commit(NULL, 0, "no tree");
    r.parents = parents;
    ACCEPT(swa_step_begin, (&w.kv, &r, 1));
    REFUSE(swa_cache_commit, (&w.kv, 2, NULL, 0), SWA_ERR_ORDER); /* not stored */
    a.pick = list;
    a.pick_n = 2;
    REFUSE(swa_attend, (&w.kv, 1, &a), SWA_ERR_UNSUPPORTED);
    REFUSE(swa_attend_part, (&w.kv, 1, &a, 0, 0, 1), SWA_ERR_UNSUPPORTED);
    a = w.attn;
    a.compute = SWA_BF16;
    REFUSE(swa_attend, (&w.kv, 1, &a), SWA_ERR_UNSUPPORTED);
    ACCEPT(swa_attend, (&w.kv, 0, &w.attn));
    REFUSE(swa_cache_commit, (&w.kv, 2, NULL, 0), SWA_ERR_ORDER); /* in one layer of two */
    why_commit(NULL, 0, "unstored");
    CHECK_INT(swa_cache_min_end(&w.kv, 2), 3); /* a tree from the start on: nothing within it is an end */
    parents[2] = 2;                            /* another tree than was begun, and none at all */
    REFUSE(swa_attend, (&w.kv, 1, &w.attn), SWA_ERR_ORDER);
    REFUSE(swa_attend_part, (&w.kv, 1, &w.attn, 0, 0, 1), SWA_ERR_ORDER);
    parents[2] = 0;
    ACCEPT(swa_attend, (&w.kv, 1, &w.attn));
    REFUSE(swa_select, (&w.kv, 1, &ix), SWA_ERR_UNSUPPORTED);
    for (int i = 0; i < BAD; i++) REFUSE(swa_cache_commit, (&w.kv, bad_index[i], parents, 0), SWA_ERR_ARG);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) REFUSE(swa_cache_commit, (&w.kv, 2, bad[i], 2), SWA_ERR_ARG);
    why_commit(bad[0], 2, "root");
    why_commit(NULL, 2, "NULL");
    CHECK(swa_cache_commit_explain(&w.kv, 2, list, 2) == NULL);
    for (int at = 0; at < 4; at += 3) { /* from the tree's root, and from swa_cache_end() on */
        r = t_run(2, at, 1);
        CHECK(swa_step_explain(&w.kv, &r) != NULL && strstr(swa_step_explain(&w.kv, &r), "swa_cache_commit") != NULL);
    }
    REFUSE(swa_cache_commit, (NULL, 2, list, 2), SWA_ERR_ARG);
    REFUSE(swa_cache_commit, (&w.kv, 2, NULL, 2), SWA_ERR_ARG);
    REFUSE(swa_cache_commit, (&w.kv, 2, list, -1), SWA_ERR_ARG);
    REFUSE(swa_cache_commit, (&w.kv, 2, list, INT32_MIN), SWA_ERR_ARG);
    REFUSE(swa_cache_fork, (&w.kv, 1, 2, -1), SWA_ERR_ORDER);
    REFUSE(swa_cache_truncate, (&w.kv, 2, 3), SWA_ERR_ORDER);
    REFUSE(swa_cache_save, (&w.kv, 2, w.blob, sizeof w.blob), SWA_ERR_ORDER);
    REFUSE(swa_cache_read, (&w.kv, 2, 1, 0, 1, w.out, NULL), SWA_ERR_ORDER);
    REFUSE(swa_cache_read, (&w.kv, 0, 1, INT64_MAX - 1, 4, w.out, NULL), SWA_ERR_ARG);
    parents[2] = 1;
    REFUSE(swa_cache_commit, (&w.kv, 2, list, 2), SWA_ERR_ORDER);
    why_commit(list, 2, "changed");
    parents[2] = 0;
    ACCEPT(swa_cache_commit, (&w.kv, 2, list, 2));
    CHECK_INT(swa_cache_end(&w.kv, 2), 2);
}

TEST(every_function_misused_and_every_status_seen) {
    world_open();
    misuse_init();
    misuse_huge_descs();
    misuse_edge_of_size_t();
    misaligned_memory();
    misuse_cache();
    misuse_positions();
    misuse_blobs();
    misuse_begin();
    misuse_plan();
    misuse_attend();
    misuse_order();
    misuse_scratch();
    misuse_phase_fields();
    misuse_phase_fields_of_all();
    misuse_tail();
    misuse_compute();
    misuse_rows();
    misuse_rows_in_place();
    misuse_odd_places();
    misuse_rows_fused();
    misuse_rows_alike();
    misuse_segments();
    misuse_rows_outputs();
    misuse_merge();
    misuse_mla();
    misuse_windows();
    misuse_masks();
    misuse_compressed();
    misuse_index();
    misuse_parents();
    misuse_trees();
    misuse_audit();
    misuse_sink_pos();
    misuse_q_sink();
    misuse_rmsnorm();
    misuse_helpers();
    misuse_names();
    for (int i = 0; i < N_STATUS; i++) {
        t_label("status \"%s\" never seen", swa_status_str((swa_status)i));
        CHECK(status_seen[i] > 0);
    }
    check_every_function();
    t_label("guards");
    for (size_t i = 0; i < GUARD; i++) CHECK(w.block[i] == 0xC3 && w.block[w.whole - 1 - i] == 0xC3);
}
