/* The blob loader. A blob saved from one cache is cut, grown and altered, or the input itself is the blob; then
   another cache, which may have other sizes, loads it. Refused: not a byte of that cache changed. Accepted: it is the
   blob that was saved, or the input signed its changes with a right checksum (this file can): then what was loaded must
   be a state that every other call can live with, and that saves as the same bytes, or as fewer where the cache is the
   smaller one; those load again and save as they are. */
#define SWA_IMPLEMENTATION
#include "../../swa.h"
#define FUZZ_NAME "blob"
#include "fuzz.h"

enum { DIM = 3, ROOM = 1 << 16 };

typedef struct {
    swa_window windows[2];
    swa_types types[2];
    swa_cache_desc d;
    swa_cache kv;
    unsigned char *mem, *before, *scratch;
    size_t bytes;
} cache;

static void attend(cache *c, int seq, int64_t pos, int32_t n, uint32_t seed) {
    static float x[64 * DIM * 2], k[64 * DIM * 2], v[64 * DIM * 2], out[64 * DIM * 2];
    swa_attn a;
    memset(&a, 0, sizeof a);
    for (int i = 0; i < 64 * DIM * 2; i++) x[i] = k[i] = v[i] = fuzz_unit(&seed);
    a.q.p = x;
    a.k.p = k;
    a.v.p = v;
    a.out.p = out;
    if (swa_step_one(&c->kv, seq, pos, n) != SWA_OK) return; /* full, at the end of the positions, or n is 0 */
    for (int layer = 0; layer < c->d.n_layers; layer++) {
        /* sinks keep their places */
        a.q_sink.p = c->windows[layer % c->d.n_windows].n_sink > 0 ? x : NULL;
        if (swa_attend(&c->kv, layer, &a) != SWA_OK) FUZZ_DIE("attend after begin");
    }
}
static void open_cache(cache *c, fuzz_in *in) {
    static const swa_type types[4] = { SWA_F32, SWA_F16, SWA_BF16, SWA_Q8 };
    int kind = fuzz_pick(in, 0, 3);
    memset(c, 0, sizeof *c);
    c->windows[0] = swa_window_sliding(fuzz_pick(in, 1, 6));
    c->windows[1] = kind == 0 ? swa_window_causal()
                  : kind == 1 ? swa_window_sinks(3, 2)
                  : kind == 2 ? swa_window_chunked(4)
                              : swa_window_sliding(3);
    c->d.shape.n_heads = 2;
    c->d.shape.n_kv_heads = 1;
    c->d.shape.head_dim = DIM;
    c->d.n_layers = fuzz_pick(in, 1, 3);
    c->d.n_seqs = fuzz_pick(in, 1, 3);
    c->d.windows = c->windows;
    c->d.n_windows = fuzz_pick(in, 1, c->d.n_layers > 1 ? 2 : 1);
    c->d.max_context = kind == 0 ? 40 : 0;
    c->d.capacity = fuzz_pick(in, 0, 1) ? 9 : 0;
    c->d.k_type = types[fuzz_pick(in, 0, 3)];
    c->d.v_type = types[fuzz_pick(in, 0, 3)];
    c->d.audit = fuzz_pick(in, 0, 3) == 0;
    /* a type per layer, of the two that were picked */
    c->types[0].k = c->types[1].v = c->d.k_type;
    c->types[0].v = c->types[1].k = c->d.v_type;
    if (c->d.audit && c->d.n_layers > 1) c->d.n_types = 2;
}
static void make_cache(cache *c, const cache *like, uint32_t seed) {
    *c = *like;
    c->d.windows = c->windows;
    if (c->d.n_types > 0) {
        c->d.k_type = c->d.v_type = (swa_type)0;
        c->d.types = c->types;
    }
    c->bytes = swa_cache_bytes(&c->d);
    c->mem = (unsigned char *)calloc(c->bytes + 1, 1);
    c->before = (unsigned char *)malloc(c->bytes + 1);
    c->scratch = (unsigned char *)malloc(swa_cache_scratch_bytes(&c->d, 1));
    if (!c->mem || !c->before || !c->scratch || swa_cache_init(&c->kv, &c->d, c->mem, c->bytes) != SWA_OK
        || swa_cache_set_scratch(&c->kv, c->scratch, swa_cache_scratch_bytes(&c->d, 1)) != SWA_OK)
        FUZZ_DIE("init");
    for (int s = 0; s < c->d.n_seqs; s++)
        for (int i = 0; i < 3; i++) {
            if (i == 0 && swa_cache_reset(&c->kv, s, fuzz_mix(seed) % 30, 0) != SWA_OK) FUZZ_DIE("reset");
            attend(c, s, swa_cache_end(&c->kv, s), (int32_t)(fuzz_mix(seed + (uint32_t)i) % 12),
                   seed + 7u * (uint32_t)(i + s));
        }
}
/* The blob's new length. */
static size_t alter(fuzz_in *in, unsigned char *blob, size_t n, int *sign) {
    int kind = fuzz_pick(in, 0, 7);
    *sign = 0;
    if (kind == 0) return n;
    if (kind == 1) return (size_t)fuzz_pick(in, 0, 65535) % (n + 1);
    if (kind == 2) { /* the input is the blob */
        n = in->left < ROOM ? in->left : ROOM;
        memcpy(blob, in->p, n);
        in->left = 0;
    } else
        for (int i = fuzz_pick(in, 1, 4); i > 0 && n > 0; i--) {
            size_t at = (size_t)fuzz_pick(in, 0, 65535) % (kind < 6 && n > 80 ? 80 : n); /* head and state */
            if (fuzz_pick(in, 0, 1)) blob[at] ^= (unsigned char)(1 << fuzz_pick(in, 0, 7));
            else blob[at] = (unsigned char)fuzz_byte(in);
        }
    *sign = kind % 2 && n >= sizeof(swa__blob) + 8;
    if (*sign) { /* length and checksum made right again */
        swa__blob head;
        uint64_t sum;
        memcpy(&head, blob, sizeof head);
        head.bytes = n;
        memcpy(blob, &head, sizeof head);
        sum = swa__hash(0, blob, n - 8);
        memcpy(blob + n - 8, &sum, 8);
    }
    return n;
}
static void live_with_it(cache *c, int seq, const unsigned char *blob, size_t n) {
    const size_t less = swa_cache_save_bytes(&c->kv, seq);
    unsigned char *again = (unsigned char *)malloc(2 * n);
    static float k[256 * DIM], v[256 * DIM];
    if (!again) exit(2);
    if (less > n || swa_cache_save(&c->kv, seq, again, n) != SWA_OK || (less == n && memcmp(again, blob, n) != 0))
        FUZZ_DIE("what was loaded saves as something else");
    if (swa_cache_load(&c->kv, seq, again, less) != SWA_OK || swa_cache_save(&c->kv, seq, again + n, less) != SWA_OK
        || memcmp(again, again + n, less) != 0)
        FUZZ_DIE("what was saved loads as something else");
    free(again);
    for (int s = 0; s < c->d.n_seqs; s++) {
        int64_t end = swa_cache_end(&c->kv, s), least = swa_cache_min_end(&c->kv, s);
        if (end < 0 || least > end) FUZZ_DIE("end %lld, min_end %lld", (long long)end, (long long)least);
        for (int layer = 0; layer < c->d.n_layers; layer++) {
            int64_t first = swa_cache_first(&c->kv, s, layer);
            swa_kv kv[3];
            if (first < 0 || first > end || end - first > 256) FUZZ_DIE("first %lld", (long long)first);
            if (swa_cache_read(&c->kv, s, layer, first, (int32_t)(end - first), k, v) != SWA_OK) FUZZ_DIE("read");
            if (swa_cache_spans(&c->kv, s, layer, kv) < 0) FUZZ_DIE("spans");
        }
        attend(c, s, end, 5, 7);
        least = swa_cache_min_end(&c->kv, s);
        end = swa_cache_end(&c->kv, s);
        if (least < end && swa_cache_truncate(&c->kv, s, least) != SWA_OK)
            FUZZ_DIE("truncate to min_end %lld", (long long)least);
        attend(c, s, least, 3, 8);
        if (c->d.n_seqs > 1 && swa_cache_fork(&c->kv, (s + 1) % c->d.n_seqs, s, -1) != SWA_OK) FUZZ_DIE("fork");
    }
}
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static unsigned char saved[ROOM], blob[ROOM];
    fuzz_in in;
    cache from, to, like;
    in.p = data;
    in.left = size;
    open_cache(&like, &in);
    make_cache(&from, &like, (uint32_t)fuzz_pick(&in, 0, 65535));
    if (fuzz_pick(&in, 0, 1)) {
        like.d.capacity = fuzz_pick(&in, 0, 1) ? fuzz_pick(&in, 7, 40) : 0;
        like.d.max_context = like.d.max_context ? fuzz_pick(&in, 1, 60) : 0;
    }
    make_cache(&to, &like, (uint32_t)fuzz_pick(&in, 0, 65535));
    do {
        int seq = fuzz_pick(&in, -1, from.d.n_seqs - 1), sign;
        size_t n = swa_cache_save_bytes(&from.kv, seq), was = n;
        unsigned char *exact;
        swa_status got;
        if (!n || n > ROOM || swa_cache_save(&from.kv, seq, saved, n) != SWA_OK) FUZZ_DIE("save");
        memcpy(blob, saved, n);
        n = alter(&in, blob, n, &sign);
        exact = (unsigned char *)malloc(n ? n : 1); /* so that a read past the end is seen */
        if (!exact) exit(2);
        memcpy(exact, blob, n);
        memcpy(to.before, to.mem, to.bytes);
        got = swa_cache_load(&to.kv, seq, exact, n);
        fuzz_ops++;
        if (got != SWA_OK && memcmp(to.before, to.mem, to.bytes) != 0) FUZZ_DIE("a refused blob changed the cache");
        if (got == SWA_ERR_BLOB && n == was && memcmp(saved, blob, n) == 0) FUZZ_DIE("refuses its own blob");
        if (got != SWA_OK && got != SWA_ERR_BLOB && (got != SWA_ERR_FULL || !to.d.max_context))
            FUZZ_DIE("status %d", (int)got);
        if (got == SWA_OK && !sign && (n != was || memcmp(saved, blob, n) != 0))
            FUZZ_DIE("an altered blob was accepted");
        if (got == SWA_OK) live_with_it(&to, seq, exact, n);
        free(exact);
    } while (in.left > 0);
    free(from.mem);
    free(from.before);
    free(from.scratch);
    free(to.mem);
    free(to.before);
    free(to.scratch);
    return 0;
}
