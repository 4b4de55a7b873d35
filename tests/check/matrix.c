/* matrix.c - the program that tests/check/matrix.sh compiles in every configuration: rings, rows, masks and helpers
   over a few shapes, each output compared with attention written out in double. It prints

       bits <hash> libm <hash> isa scalar,avx2 error 1.2e-06 ok

   where `bits` covers everything that the library promises to be the same on every machine with IEEE floats, and
   `libm` what goes through the C library's log, cos, sin or pos and may differ in the last bit. Plain C89 with
   C99's headers, which is C++98 as well. */
#ifndef MATRIX_API_ONLY
#define SWA_IMPLEMENTATION
#endif
#include "../../swa.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MATRIX_RUN
#define MATRIX_RUN matrix_first /* a second unit is compiled with another name and without main */
#endif
#ifdef __cplusplus
extern "C" {
#endif
unsigned long matrix_second(int isa); /* returns the hashes' low 32 bits, mixed; 0 = a wrong result */
unsigned long MATRIX_RUN(int isa);
#ifdef __cplusplus
}
#endif

enum { TOKENS = 300, KEYS = 640 };
enum { WITH_ALIBI = 1, WITH_LOGITS = 2, WITH_BIAS = 4, WITH_DISTANCE = 8 };
enum { SLIDING, CAUSAL, CHUNKED, SINKS };

typedef struct {
    const char *name;
    int heads, kv, dk, dv, tail, v_in_k;
    swa_type type;
    int window, W, sinks, extra;
    float softcap;
    swa_type compute;
} spec;

/* clang-format off */
static const spec specs[] = {
    { "f32",      4, 2, 20, 12, 0, 0, SWA_F32,  SLIDING, 24, 0, 0, 0.0f, SWA_F32 },
    { "f16",      4, 1, 16, 16, 0, 0, SWA_F16,  SLIDING, 33, 0, WITH_LOGITS, 0.0f, SWA_F32 },
    { "bf16",     3, 3, 33, 17, 0, 0, SWA_BF16, SLIDING, 16, 0, 0, 30.0f, SWA_F32 },
    { "q8",       8, 1, 16, 24, 0, 0, SWA_Q8,   SLIDING, 20, 0, WITH_ALIBI, 0.0f, SWA_F32 },
    { "causal",   2, 1,  8,  8, 0, 0, SWA_F32,  CAUSAL, 0, 0, WITH_ALIBI | WITH_BIAS, 0.0f, SWA_F32 },
    { "chunked",  4, 2, 16,  8, 0, 0, SWA_F16,  CHUNKED, 48, 0, WITH_BIAS | WITH_DISTANCE, 0.0f, SWA_F32 },
    { "sinks",    4, 4, 12, 16, 0, 0, SWA_F32,  SINKS, 24, 5, 0, 0.0f, SWA_F32 },
    { "sinks q8", 4, 2, 16, 16, 0, 0, SWA_Q8,   SINKS, 17, 4, WITH_LOGITS, 5.0f, SWA_F32 },
    { "latent",   6, 1, 24, 16, 8, 1, SWA_F32,  SLIDING, 24, 0, 0, 0.0f, SWA_F32 },
    { "tail",     2, 2, 16, 16, 4, 0, SWA_BF16, SLIDING, 24, 0, 0, 0.0f, SWA_F32 },
    { "int8",     8, 1, 20, 24, 0, 0, SWA_Q8,   SLIDING, 50, 0, 0, 0.0f, SWA_Q8 },
    { "products", 8, 2, 20, 12, 0, 0, SWA_F32,  SLIDING, 50, 0, 0, 0.0f, SWA_BF16 },
    { "bundles",  8, 2, 20, 12, 0, 0, SWA_BF16, SLIDING, 50, 0, 0, 0.0f, SWA_BF16_TILE },
    { "eight rows", 8, 1, 20, 12, 0, 0, SWA_F32, SLIDING, 50, 0, 0, 0.0f, SWA_BF16 },
    { "halves",   4, 1, 16, 16, 0, 0, SWA_F16,  SLIDING, 50, 0, 0, 0.0f, SWA_BF16 },
    { "eights",   8, 1, 20, 12, 0, 0, SWA_F32,  SLIDING, 50, 0, 0, 0.0f, SWA_BF16_TILE },
    { "q8 by 32", 4, 2, 24, 20, 0, 0, SWA_Q8_32, SLIDING, 24, 0, 0, 0.0f, SWA_F32 },
    { "e4m3",     4, 1, 16, 16, 0, 0, SWA_E4M3, SLIDING, 33, 0, 0, 0.0f, SWA_F32 },
    { "e5m2",     6, 1, 24, 16, 8, 1, SWA_E5M2, SLIDING, 24, 0, 0, 0.0f, SWA_F32 }
};
/* clang-format on */

static struct {
    uint32_t bits[2], libm[2];
    double error;
    int wrong, unlike;
} total;
static uint32_t rng = 1;

/* FNV-1a in 64 bits, kept as two halves so that no compiler needs long long. Values, not bytes: the same everywhere. */
static void hash(uint32_t h[2], uint32_t x) {
    int i;
    for (i = 0; i < 4; i++, x >>= 8) {
        uint32_t a, b, low;
        h[0] ^= x & 255u;
        low = h[0] * 0x1b3u;
        a = (h[0] & 0xffffu) * 0x1b3u;
        b = (h[0] >> 16) * 0x1b3u + (a >> 16);
        h[1] = h[1] * 0x1b3u + (h[0] << 8) + (b >> 16);
        h[0] = low;
    }
}
static void hash_floats(uint32_t h[2], const float *x, size_t n) {
    size_t i;
    uint32_t u;
    for (i = 0; i < n; i++) {
        memcpy(&u, &x[i], 4);
        hash(h, u);
    }
}
static void wrong(const char *what, const char *where) {
    if (total.wrong++ < 5) printf("%s: %s WRONG\n", where, what);
}
static void expect(int ok, const char *what, const char *where) {
    if (!ok) wrong(what, where);
}

/* Whether a call has left upper halves of vector registers in use, which makes a host's SSE code crawl on Intel; -1:
   this CPU does not tell. A host that is compiled with AVX uses them itself. */
static int upper_halves(int isa) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__AVX__)
    unsigned a = 13, b, c = 1, d;
    if (isa != SWA_ISA_AVX2 && isa != SWA_ISA_AVX512) return -1;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if ((a & 4) == 0) return -1; /* no xgetbv of 1 */
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(1));
    return (a & 0x44) != 0; /* of ymm, of zmm */
#else
    return isa >= 0 ? -1 : 0;
#endif
}
static int upper_halves_are_told(int isa) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__AVX__)
    if (isa == SWA_ISA_AVX2 || isa == SWA_ISA_AVX512) __asm__ volatile("vzeroupper");
#endif
    return upper_halves(isa) == 0;
}
/* Multiples of 2^-12 in (-scale, scale): exact in every way of computing them. */
static float uniform(float scale) {
    rng ^= rng << 13;
    rng ^= rng >> 17;
    rng ^= rng << 5;
    return (float)((int)(rng >> 19) - 4096) * (scale / 4096.0f);
}
static float *floats(size_t n, float scale) {
    float *p = (float *)malloc((n + 1) * sizeof(float));
    size_t i;
    if (p == NULL) exit(2);
    for (i = 0; i < n; i++) p[i] = uniform(scale);
    return p;
}

static swa_window window_of(const spec *s) {
    if (s->window == CAUSAL) return swa_window_causal();
    if (s->window == CHUNKED) return swa_window_chunked(s->W);
    return s->window == SINKS ? swa_window_sinks(s->W, s->sinks) : swa_window_sliding(s->W);
}
static int sees(const spec *s, int64_t q, int64_t k) {
    if (k > q) return 0;
    if (s->window == CAUSAL) return 1;
    if (s->window == CHUNKED) return q / s->W == k / s->W;
    return q - k < s->W || (s->window == SINKS && k < s->sinks);
}

typedef struct {
    const spec *s;
    int dkt;                          /* head_dim + tail_dim */
    float *q, *k, *v;                 /* [tokens][heads | kv][dkt | dv]: the tail stands behind its head */
    float *held_k, *held_v;           /* the same rows as the cache holds them */
    float alibi[8], logits[8], *bias; /* bias [tokens][heads][16], keys 3..18, or distances 0..15 */
} data;

static data data_make(const spec *s, int tokens) {
    data d;
    int i;
    d.s = s;
    d.dkt = s->dk + s->tail;
    d.q = floats((size_t)(tokens * s->heads * d.dkt), 3.0f);
    d.k = floats((size_t)(tokens * s->kv * d.dkt), 2.0f);
    d.v = floats((size_t)(tokens * s->kv * s->dv), 1.0f);
    d.held_k = floats((size_t)(tokens * s->kv * d.dkt), 0.0f);
    d.held_v = floats((size_t)(tokens * s->kv * s->dv), 0.0f);
    d.bias = floats((size_t)(tokens * s->heads * 16), 1.0f);
    for (i = 0; i < 8; i++) {
        d.alibi[i] = 0.25f / (float)(i + 1);
        d.logits[i] = uniform(2.0f);
    }
    return d;
}
static void data_free(const data *d) {
    free(d->q);
    free(d->k);
    free(d->v);
    free(d->held_k);
    free(d->held_v);
    free(d->bias);
}
static float scale_of(const spec *s) { return s->tail > 0 || s->v_in_k ? 0.21875f : 0.0f; }

static double score(const data *d, int64_t q, int h, int64_t k) {
    const spec *s = d->s;
    const float *x = d->q + (q * s->heads + h) * d->dkt, *y = d->held_k + (k * s->kv + h / (s->heads / s->kv)) * d->dkt;
    double sum = 0, scale = (double)scale_of(s);
    int64_t column;
    int i;
    for (i = 0; i < d->dkt; i++) sum += (double)x[i] * (double)y[i];
    sum *= scale > 0 ? scale : 1.0 / sqrt((double)s->dk);
    if (s->softcap > 0) sum = (double)s->softcap * tanh(sum / (double)s->softcap);
    column = (s->extra & WITH_DISTANCE) != 0 ? q - k : k - 3;
    if ((s->extra & WITH_BIAS) != 0 && column >= 0 && column < 16)
        sum += (double)d->bias[(q * s->heads + h) * 16 + column];
    if ((s->extra & WITH_ALIBI) != 0) sum -= (double)d->alibi[h] * (double)(q - k);
    return sum;
}
/* One output row and its lse by the definition, compared. */
static void check_row(const data *d, int64_t q, int h, const float *out, float lse) {
    static double p[KEYS];
    const spec *s = d->s;
    const double allowed = s->compute == SWA_F32 ? 1 : 3e3; /* of q and products rounded to 8 bits */
    double top = -1e300, sum = 0, whole, off;
    uint32_t bits;
    int64_t k;
    int i;
    for (k = 0; k <= q; k++)
        if (sees(s, q, k) && (p[k] = score(d, q, h, k)) > top) top = p[k];
    for (k = 0; k <= q; k++) sum += p[k] = sees(s, q, k) ? exp(p[k] - top) : 0.0;
    whole = (s->extra & WITH_LOGITS) != 0 ? sum + exp((double)d->logits[h] - top) : sum;
    off = fabs(top + log(sum) - (double)lse);
    if (off > 2e-5 * allowed * (1 + fabs(top))) wrong("lse", s->name);
    for (i = 0; i < s->dv; i++) {
        double want = 0;
        for (k = 0; k <= q; k++) {
            size_t row = (size_t)(k * s->kv + h / (s->heads / s->kv));
            want += p[k]
                  * (double)(s->v_in_k ? d->held_k[row * (size_t)d->dkt + (size_t)i]
                                       : d->held_v[row * (size_t)s->dv + (size_t)i]);
        }
        off = fabs(want / whole - (double)out[i]);
        if (s->compute == SWA_F32 && off > total.error) total.error = off;
        memcpy(&bits, &out[i], 4);
        if (off > 1e-5 * allowed || (bits & 0x7f800000u) == 0x7f800000u) wrong("output", s->name);
    }
}
/* What the cache holds of rows pos..pos+n-1, and whether that is what the type can hold of what was stored. */
static void check_held(const data *d, const swa_cache *c, int seq, int64_t pos, int n) {
    const spec *s = d->s;
    size_t first = (size_t)(pos * s->kv), rows = (size_t)(n * s->kv), i;
    double allowed = s->type == SWA_F32 ? 0.0 : s->type == SWA_F16 ? 0.001 : s->type == SWA_BF16 ? 0.008 : 0.0081;
    float *v = s->v_in_k ? NULL : d->held_v + first * (size_t)s->dv;
    if (s->type == SWA_E4M3 || s->type == SWA_E5M2) allowed = s->type == SWA_E4M3 ? 0.063 : 0.126;
    expect(swa_cache_read(c, seq, 0, pos, n, d->held_k + first * (size_t)d->dkt, v) == SWA_OK, "read", s->name);
    for (i = first * (size_t)d->dkt; i < (first + rows) * (size_t)d->dkt; i++)
        if (fabs((double)d->held_k[i] - (double)d->k[i]) > allowed) wrong("K as held", s->name);
    for (i = first * (size_t)s->dv; v != NULL && i < (first + rows) * (size_t)s->dv; i++)
        if (fabs((double)d->held_v[i] - (double)d->v[i]) > allowed) wrong("V as held", s->name);
    hash_floats(total.bits, d->held_k + first * (size_t)d->dkt, rows * (size_t)d->dkt);
}
static void fill_attn(const data *d, swa_attn *a, int64_t pos, float *out, float *lse) {
    const spec *s = d->s;
    memset(a, 0, sizeof *a);
    a->q.p = d->q + pos * s->heads * d->dkt;
    a->k.p = d->k + pos * s->kv * d->dkt;
    a->q.head = a->k.head = d->dkt;
    a->q.token = s->heads * d->dkt;
    a->k.token = s->kv * d->dkt;
    if (s->tail > 0) {
        a->q_tail = a->q;
        a->k_tail = a->k;
        a->q_tail.p += s->dk;
        a->k_tail.p += s->dk;
    }
    if (window_of(s).n_sink > 0) { /* they keep their places; audit asks */
        a->q_sink = a->q;
        a->q_sink_tail = a->q_tail;
    }
    a->v.p = s->v_in_k ? NULL : d->v + pos * s->kv * s->dv;
    a->out.p = out;
    a->lse = lse;
    a->scale = scale_of(s);
    a->softcap = s->softcap;
    a->compute = s->compute;
    a->alibi = (s->extra & WITH_ALIBI) != 0 ? d->alibi : NULL;
    a->sink_logits = (s->extra & WITH_LOGITS) != 0 ? d->logits : NULL;
    if ((s->extra & WITH_BIAS) == 0) return;
    a->bias = d->bias + pos * s->heads * 16;
    a->bias_token = s->heads * 16;
    a->bias_head = 16;
    a->bias_first = (s->extra & WITH_DISTANCE) != 0 ? 0 : 3;
    a->bias_n = 16;
    a->bias_by_distance = (s->extra & WITH_DISTANCE) != 0;
}

/* The cache's memory, and behind it scratch for three parts. */
static void *make_cache(const spec *s, int isa, swa_window *window, swa_cache *cache) {
    swa_cache_desc desc;
    size_t bytes, room;
    unsigned char *mem;
    *window = window_of(s);
    memset(&desc, 0, sizeof desc);
    desc.shape.n_heads = s->heads;
    desc.shape.n_kv_heads = s->kv;
    desc.shape.head_dim = s->dk;
    desc.shape.v_dim = s->dv;
    desc.shape.tail_dim = s->tail;
    desc.shape.v_in_k = s->v_in_k;
    desc.n_layers = 1;
    desc.n_seqs = 2;
    desc.k_type = desc.v_type = desc.tail_type = s->type;
    desc.windows = window;
    desc.n_windows = 1;
    desc.max_context = TOKENS;
    desc.max_rollback = 64;
    desc.isa = isa;
    desc.audit = 1;
    bytes = swa_cache_bytes(&desc);
    room = swa_cache_scratch_bytes(&desc, 3);
    mem = (unsigned char *)malloc(bytes + room);
    if (mem == NULL || swa_cache_init(cache, &desc, mem, bytes) != SWA_OK
        || swa_cache_set_scratch(cache, mem + bytes, room) != SWA_OK) {
        wrong("init", s->name);
        exit(2);
    }
    return mem;
}
/* The other sequence takes the first one's rows by blob, and has to give the same bits for the same token. */
static void check_copies(const data *d, swa_cache *cache, int64_t pos, float *out) {
    const spec *s = d->s;
    size_t bytes = swa_cache_save_bytes(cache, 0), n = (size_t)(s->heads * s->dv);
    void *blob = malloc(bytes);
    float *again = floats(n, 0.0f);
    swa_attn a;
    int seq;
    expect(blob != NULL && swa_cache_save(cache, 0, blob, bytes) == SWA_OK, "save", s->name);
    expect(swa_cache_load(cache, 1, blob, bytes) == SWA_OK, "load", s->name);
    for (seq = 0; seq < 2; seq++) {
        expect(swa_cache_truncate(cache, seq, pos - 1) == SWA_OK, "truncate", s->name);
        fill_attn(d, &a, pos - 1, seq == 0 ? out : again, NULL);
        expect(swa_step_one(cache, seq, pos - 1, 1) == SWA_OK, "begin", s->name);
        expect(swa_attend(cache, 0, &a) == SWA_OK, "attend", s->name);
    }
    total.unlike += memcmp(out, again, n * sizeof(float)) != 0;
    free(again);
    free(blob);
}
/* A sequence in chunks of many lengths, single tokens among them, on one thread and in three parts. */
static void ring(const spec *s, int isa) {
    static const int chunk[10] = { 5, 1, 40, 1, 1, 17, 16, 2, 64, 9 };
    data d = data_make(s, TOKENS);
    float *out = floats((size_t)(64 * s->heads * s->dv), 0.0f), *lse = floats((size_t)(64 * s->heads), 0.0f);
    swa_window window;
    swa_cache cache;
    void *mem = make_cache(s, isa, &window, &cache);
    swa_attn a;
    int64_t pos = 0, t;
    int32_t n;
    int i, h, phase, part, told = upper_halves_are_told(isa);
    for (i = 0; pos < TOKENS; i++, pos += n) {
        n = chunk[i % 10] < TOKENS - pos ? chunk[i % 10] : (int32_t)(TOKENS - pos);
        expect(swa_step_one(&cache, 0, pos, n) == SWA_OK, "begin", s->name);
        fill_attn(&d, &a, pos, out, lse);
        if (i % 3 == 0) expect(swa_attend(&cache, 0, &a) == SWA_OK, "attend", s->name);
        for (phase = 0; i % 3 != 0 && phase < SWA_PHASES; phase++)
            for (part = 0; part < 3; part++)
                expect(swa_attend_part(&cache, 0, &a, phase, part, 3) == SWA_OK, "attend_part", s->name);
        expect(!told || upper_halves(isa) == 0, "upper halves of registers", s->name);
        check_held(&d, &cache, 0, pos, n);
        hash_floats(total.bits, out, (size_t)(n * s->heads * s->dv));
        hash_floats(total.libm, lse, (size_t)(n * s->heads));
        for (t = 0; t < n; t++)
            for (h = 0; h < s->heads; h++)
                check_row(&d, pos + t, h, out + (t * s->heads + h) * s->dv, lse[t * s->heads + h]);
    }
    check_copies(&d, &cache, TOKENS, out);
    free(mem);
    free(out);
    free(lse);
    data_free(&d);
}
/* 640 keys of the caller's own in three segments, read by one token and by twenty, whole and split over parts. */
static void rows(int isa) {
    static const spec s = { "rows", 4, 2, 24, 20, 0, 0, SWA_F32, CAUSAL, 0, 0, 0, 0.0f, SWA_F32 };
    data d = data_make(&s, KEYS);
    float *out = floats((size_t)(20 * 4 * 20), 0.0f), *parted = floats((size_t)(20 * 4 * 20), 0.0f), lse[20 * 4];
    swa_kv kv[3];
    swa_rows r;
    swa_attn a;
    int i, n, phase, part;
    memcpy(d.held_k, d.k, (size_t)(KEYS * 2 * 24) * sizeof(float));
    memcpy(d.held_v, d.v, (size_t)(KEYS * 2 * 20) * sizeof(float));
    memset(kv, 0, sizeof kv);
    for (i = 0; i < 3; i++) {
        kv[i].pos = i == 0 ? 0 : i == 1 ? 130 : 401;
        kv[i].n = (int32_t)((i == 0 ? 130 : i == 1 ? 401 : KEYS) - kv[i].pos);
        kv[i].k = d.k + kv[i].pos * 2 * 24;
        kv[i].v = d.v + kv[i].pos * 2 * 20;
    }
    for (n = 1; n <= 20; n += 19) {
        memset(&r, 0, sizeof r);
        r.shape.n_heads = 4;
        r.shape.n_kv_heads = 2;
        r.shape.head_dim = 24;
        r.shape.v_dim = 20;
        r.pos = KEYS - n;
        r.n_tokens = n;
        r.kv = kv;
        r.n_kv = 3;
        r.isa = isa;
        r.scratch_bytes = swa_attention_bytes(&r, 4);
        r.scratch = malloc(r.scratch_bytes);
        fill_attn(&d, &a, r.pos, out, lse);
        expect(swa_attention(&r, &a) == SWA_OK, "attention", s.name);
        a.out.p = parted;
        for (phase = 0; phase < SWA_PHASES; phase++)
            for (part = 0; part < 4; part++)
                expect(swa_attention_part(&r, &a, phase, part, 4) == SWA_OK, "attention_part", s.name);
        total.unlike += memcmp(out, parted, (size_t)(n * 4 * 20) * sizeof(float)) != 0;
        hash_floats(total.bits, out, (size_t)(n * 4 * 20));
        for (i = 0; i < n * 4; i++) check_row(&d, r.pos + i / 4, i % 4, out + i * 20, lse[i]);
        free(r.scratch);
    }
    free(out);
    free(parted);
    data_free(&d);
}
/* A sum that underflows from below is -0, and comes out as +0: of one row and of twenty. Under the host's -ffast-math
   too. */
static void zeros(int isa) {
    static char scratch[1 << 20];
    float q[20 * 16], k[32], v[32], out[20 * 16];
    swa_kv kv;
    swa_rows r;
    swa_attn a;
    int i, n;
    for (i = 0; i < 20 * 16; i++) q[i] = i % 16 == 0 ? 60.0f : 0.0f;
    for (i = 0; i < 32; i++) {
        k[i] = i == 0 ? 1.0f : 0.0f;
        v[i] = i < 16 ? -0.0f : -1e-30f;
    }
    memset(&kv, 0, sizeof kv);
    kv.k = k;
    kv.v = v;
    kv.n = 2;
    for (n = 1; n <= 20; n += 19) {
        memset(&r, 0, sizeof r);
        memset(&a, 0, sizeof a);
        r.shape.n_heads = n;
        r.shape.n_kv_heads = 1;
        r.shape.head_dim = 16;
        r.pos = 1;
        r.n_tokens = 1;
        r.kv = &kv;
        r.n_kv = 1;
        r.isa = isa;
        r.scratch = scratch;
        r.scratch_bytes = sizeof scratch;
        a.q.p = q;
        a.out.p = out;
        a.scale = 1.0f;
        expect(swa_attention(&r, &a) == SWA_OK, "attention", "zeros");
        hash_floats(total.bits, out, (size_t)(n * 16));
    }
}
static void masks(void) {
    static const int32_t n_q[2] = { 7, 5 }, n_k[2] = { 11, 9 };
    static const int64_t q_pos[2] = { 4, 100 }, k_pos[2] = { 0, 96 };
    static const swa_type types[5] = { SWA_F32, SWA_F16, SWA_BF16, SWA_BOOL_MASKED, SWA_BOOL_KEEP };
    unsigned char out[12 * 20 * 4];
    swa_mask_desc desc;
    int t, i, j, b;
    memset(&desc, 0, sizeof desc);
    desc.window = swa_window_sliding(5);
    desc.q_pos0 = q_pos;
    desc.k_pos0 = k_pos;
    desc.n_q = n_q;
    desc.n_k = n_k;
    desc.n_blocks = 2;
    for (t = 0; t < 5; t++) {
        size_t size = t == 0 ? 4 : t < 3 ? 2 : 1, x;
        desc.type = types[t];
        expect(swa_mask_bytes(&desc) == 12 * 20 * size, "mask size", "mask");
        expect(swa_mask(&desc, out, sizeof out) == SWA_OK, "mask", "mask");
        for (i = 0; i < 12; i++)
            for (j = 0; j < 20; j++) {
                int seen = (i < 7) == (j < 11), open = 1;
                b = i >= 7;
                if (seen) seen = swa_visible(&desc.window, q_pos[b] + i - 7 * b, k_pos[b] + j - 11 * b);
                for (x = 0; x < size; x++) open = open && out[(size_t)(i * 20 + j) * size + x] == (t == 4);
                if (t == 3) open = out[i * 20 + j] == 0;
                expect(open == seen, "mask entry", "mask");
            }
    }
}
static void helpers(void) {
    int64_t pos[4] = { 0, 17, 5000000, (int64_t)1 << 40 };
    swa_yarn_desc yarn;
    double freq[8], mscale = 0, c, s;
    float *x = floats(4 * 2 * 24, 1.0f), *was = floats(4 * 2 * 24, 0.0f), norm[24];
    int i;
    memcpy(was, x, 4 * 2 * 24 * sizeof(float));
    memset(&yarn, 0, sizeof yarn);
    yarn.base = 10000.0;
    expect(swa_yarn(&yarn, 16, freq, &mscale) == SWA_OK, "yarn", "helpers");
    expect(swa_rope(x, 4, 2, 24, pos, freq, 16, SWA_ROPE_HALF, mscale) == SWA_OK, "rope", "helpers");
    c = cos(17.0 * freq[3]);
    s = sin(17.0 * freq[3]);
    for (i = 48; i < 96; i += 24) {
        expect(fabs((double)was[i + 3] * c - (double)was[i + 11] * s - (double)x[i + 3]) < 1e-6, "rope x", "helpers");
        expect(fabs((double)was[i + 3] * s + (double)was[i + 11] * c - (double)x[i + 11]) < 1e-6, "rope y", "helpers");
    }
    hash_floats(total.libm, x, 4 * 2 * 24);
    expect(swa_rmsnorm(norm, was, NULL, 1, 24, 1e-6f) == SWA_OK, "rmsnorm", "helpers");
    for (s = 0, i = 0; i < 24; i++) s += (double)was[i] * (double)was[i];
    s = 1 / sqrt(s / 24 + 1e-6);
    for (i = 0; i < 24; i++) expect(fabs((double)norm[i] - (double)was[i] * s) < 1e-6, "norm", "helpers");
    hash_floats(total.libm, norm, 24);
    free(x);
    free(was);
}

/* A size that a size_t cannot hold is told as 0, not as what is left of it: with one of 32 bits there are many. */
static void sizes(void) {
    const int narrow = sizeof(size_t) == 4;
    swa_window window = swa_window_causal();
    swa_cache_desc d;
    int heads;
    memset(&d, 0, sizeof d);
    d.n_layers = 1;
    d.windows = &window;
    d.n_windows = 1;
    d.shape.head_dim = 64;
    for (heads = 4; heads <= 32; heads *= 2)
        for (d.max_context = 1 << 27; d.max_context <= 1 << 30; d.max_context *= 2) {
            d.shape.n_heads = d.shape.n_kv_heads = heads;
            expect(narrow ? swa_cache_bytes(&d) == 0
                          : swa_cache_bytes(&d) / (512 * (size_t)heads) >= (size_t)d.max_context,
                   "sizes", "cache");
        }
    d.shape.n_heads = d.shape.n_kv_heads = 1;
    d.shape.head_dim = 1 << 20;
    d.max_context = 16;
    expect(
        (swa_cache_bytes(&d) > 0)
            && (narrow ? swa_cache_scratch_bytes(&d, 1) == 0 : swa_cache_scratch_bytes(&d, 1) / 1024 > (size_t)1 << 22),
        "sizes", "scratch");
}
unsigned long MATRIX_RUN(int isa) {
    size_t i;
    memset(&total, 0, sizeof total);
    total.bits[0] = total.libm[0] = 0x84222325u;
    total.bits[1] = total.libm[1] = 0xcbf29ce4u;
    rng = 2463534242u;
    for (i = 0; i < sizeof specs / sizeof specs[0]; i++) ring(&specs[i], isa);
    rows(isa);
    zeros(isa);
    masks();
    helpers();
    sizes();
    return total.wrong ? 0ul : (unsigned long)(total.bits[0] ^ 0xffffffffu) | 1ul;
}

#ifndef MATRIX_NO_MAIN
int main(void) {
    uint32_t bits[2] = { 0, 0 }, libm[2] = { 0, 0 };
    double error = 0;
    int isa, bad = 0, ran = 0;
    printf("isa ");
    for (isa = SWA_ISA_SCALAR; isa <= SWA_ISA_AVX512; isa++) {
        unsigned long mine;
        if (!swa_isa_usable(isa)) continue;
        mine = MATRIX_RUN(isa);
        if (mine == 0) bad = 1;
        if (total.unlike != 0) bad |= 8;
        if (ran++ > 0 && (bits[0] != total.bits[0] || bits[1] != total.bits[1])) bad |= 2;
        printf("%s%s", ran > 1 ? "," : "", swa_isa_name(isa));
        if (total.error > error) error = total.error;
        memcpy(bits, total.bits, sizeof bits);
        memcpy(libm, total.libm, sizeof libm);
#ifdef MATRIX_TWO
        if (matrix_second(isa) != mine) bad |= 4;
#endif
    }
    printf(" best %s bits %08lx%08lx libm %08lx%08lx error %.1e %s\n", swa_isa_name(swa_isa_best()),
           (unsigned long)bits[1], (unsigned long)bits[0], (unsigned long)libm[1], (unsigned long)libm[0], error,
           bad == 0  ? "ok"
           : bad & 1 ? "WRONG"
           : bad & 4 ? "OTHER COPY DIFFERS"
           : bad & 8 ? "PARTS DIFFER"
                     : "ISAS DIFFER");
    return bad & 5; /* equal bits are for the script to judge */
}
#endif
