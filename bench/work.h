/* work.h - swa.h at work on one shape: set up cold, run a sample on the pool, hold the answer against double.

   bench.c measures it against the machine, peers/peers.c against other people's code. Include ../swa.h and common.h
   first. */
#ifndef BENCH_WORK_H
#define BENCH_WORK_H

/* ---- what is measured ---- */

enum { F32 = 1 << SWA_F32, F16 = 1 << SWA_F16, BF16 = 1 << SWA_BF16, Q8 = 1 << SWA_Q8 };
enum { STAGED = 1 << SWA_Q8_32 | 1 << SWA_E4M3 | 1 << SWA_E5M2 };
enum { RING, ROWS };                       /* where K and V live: swa_cache, or the caller's own rows        */
enum { PUT = 1, NO_STORE = 2, INDEX = 4 }; /* INDEX: K is an index, and swa_select is timed           */
enum {
    AGAINST_LIMIT,
    AGAINST_RING,
    AGAINST_ALIGNED,
    AGAINST_8192,
    AGAINST_F16,
    AGAINST_HALF_US,
    AGAINST_SCORES,
    AGAINST_F32,
    AGAINST_SIDE
};

typedef struct {
    const char *name;
    unsigned types, more;           /* K/V types of the default set; further ones with --full         */
    int form, n, steps;             /* tokens per step, steps per sample (0 = 1)                      */
    int64_t window, start;          /* 0 = causal; position of the first timed token, all that it sees
                                                   before it is in the ring                                       */
    int heads, kv_heads, dim, tail; /* 0 = 32, 8, 128, no tail; a tail means MLA: V is K's first dim  */
    swa_type compute;
    int isa;
    int64_t capacity;
    int flags, repeat; /* repeat > 0: that many calls on one hot layer                   */
    int top;           /* of an index: entries of its list; 0 = scores alone             */
    int against;
} spec;

static int spec_heads(const spec *s) { return s->heads ? s->heads : 32; }
static int spec_kv_heads(const spec *s) { return s->kv_heads ? s->kv_heads : 8; }
static int spec_dim(const spec *s) { return s->dim ? s->dim : 128; }
static int spec_steps(const spec *s) { return s->steps ? s->steps : 1; }
static int spec_krow(const spec *s) { return spec_dim(s) + s->tail; }
static int spec_decode(const spec *s) { return s->start > 0; }

/* Keys that the token at position pos sees in this case. */
static int64_t spec_lo(const spec *s, int64_t pos) {
    return s->window > 0 && pos - s->window + 1 > 0 ? pos - s->window + 1 : 0;
}

/* K and V of one token and layer, and their bytes in the ring (q8 with its scales). */
static int spec_v_in_k(const spec *s) { return s->tail > 0 || s->flags & INDEX; }
static double row_numbers(const spec *s) {
    return spec_kv_heads(s) * (spec_v_in_k(s) ? spec_krow(s) : 2.0 * spec_dim(s));
}
static double row_bytes(const spec *s, swa_type type) {
    double scales = type == SWA_Q8 ? spec_kv_heads(s) * (spec_v_in_k(s) ? 4 : 8) : 0;
    if (type == SWA_Q8_32) scales = row_numbers(s) / 8;
    return row_numbers(s) * (double)type_bytes(type) + scales;
}

/* ---- one side of a case, set up ---- */

typedef struct {
    spec s;
    swa_type type;
    int isa, layers, parts;
    pool *p; /* who runs the next sample                                                     */
    swa_cache cache;
    swa_attn attn;
    swa_index index;
    swa_rows rows;
    swa_kv *kv;   /* [layers] */
    float *k, *v; /* [in_rows][kv_heads][krow | dim] inputs; position p: row (p-in0) mod in_rows */
    int64_t in0, in_rows;
    int64_t pos;        /* of the next sample's first token                                              */
    const char *failed; /* where the library refused, else NULL                                          */
    swa_status status;
} work;

/* The first refusal stays; the case is then reported as failed and the others still run. */
static void work_fail(work *w, const char *where, swa_status st) {
    if (w->failed) return;
    w->failed = where;
    w->status = st;
}

/* Inputs and the attention arguments that both forms share. */
static void work_inputs(work *w) {
    const spec *s = &w->s;
    int kvh = spec_kv_heads(s), dim = spec_dim(s), normal = w->type >= SWA_Q8 ? BUF_NORMAL_Q - BUF_Q : 0;
    int64_t tokens = (int64_t)s->n * spec_steps(s), rows = tokens;
    if (spec_decode(s)) rows = s->start - spec_lo(s, s->start) + s->n;
    if (rows > 8192) rows = 8192; /* a longer context repeats them */
    w->in0 = spec_decode(s) ? spec_lo(s, s->start) : 0;
    w->in_rows = rows;
    w->k = inputs_get(BUF_K + normal, (size_t)(rows + s->n) * (size_t)(kvh * spec_krow(s)));
    w->v = inputs_get(BUF_V + normal, (size_t)(rows + s->n) * (size_t)(kvh * dim));
    /* a step reads n rows in one piece: the first rows again behind the last, for the step that would wrap */
    memcpy(w->k + rows * kvh * spec_krow(s), w->k, (size_t)(s->n * kvh * spec_krow(s)) * sizeof(float));
    memcpy(w->v + rows * kvh * dim, w->v, (size_t)(s->n * kvh * dim) * sizeof(float));
    w->attn.q.p = inputs_get(BUF_Q + normal, (size_t)tokens * (size_t)(spec_heads(s) * spec_krow(s)));
    w->attn.out.p = (float *)buffer_get(BUF_OUT, (size_t)tokens * (size_t)(spec_heads(s) * dim) * sizeof(float));
    memset(w->attn.out.p, 0xff, (size_t)tokens * (size_t)(spec_heads(s) * dim) * sizeof(float));
    w->attn.compute = s->compute;
    w->attn.mode = s->flags & NO_STORE ? SWA_ATTEND_NO_STORE : s->flags & PUT ? SWA_STORE_ONLY : SWA_ATTEND;
    if (s->flags & INDEX) {
        w->index.q.p = w->attn.q.p;
        w->index.w = w->v;
        w->index.compute = s->compute;
        w->index.top = s->top;
        if (s->top > 0) w->index.pick = (int32_t *)buffer_get(BUF_KREAD, (size_t)s->top * 4);
        else {
            w->index.score = (float *)buffer_get(BUF_VREAD, (size_t)(s->start + 1) * 4);
            w->index.score_n = s->start + 1;
        }
        w->attn.mode = SWA_STORE_ONLY;
    }
    if (s->tail) { /* q rows are [dim | tail], so are k's */
        w->attn.scale = 1.0f / sqrtf(128 + 64);
        w->attn.q.head = w->attn.q_tail.head = spec_krow(s);
        w->attn.q.token = w->attn.q_tail.token = (int64_t)spec_heads(s) * spec_krow(s);
        w->attn.q_tail.p = w->attn.q.p + dim;
    }
}

static swa_shape work_shape(const spec *s) {
    swa_shape sh = { 0 };
    sh.n_heads = spec_heads(s);
    sh.n_kv_heads = spec_kv_heads(s);
    sh.head_dim = spec_dim(s);
    sh.v_dim = spec_dim(s);
    sh.tail_dim = s->tail;
    sh.v_in_k = spec_v_in_k(s);
    return sh;
}

/* K and V of the token at position pos, for a step of n tokens. */
static void work_point(const work *w, swa_attn *a, int64_t pos) {
    const spec *s = &w->s;
    int64_t row = (pos - w->in0) % w->in_rows, krow = spec_krow(s), kvh = spec_kv_heads(s);
    a->k.p = w->k + row * kvh * krow;
    if (s->tail) {
        a->k.head = a->k_tail.head = krow;
        a->k.token = a->k_tail.token = kvh * krow;
        a->k_tail.p = a->k.p + spec_dim(s);
    } else {
        a->v.p = w->v + row * kvh * spec_dim(s);
    }
}

/* Puts positions lo..start-1 into every layer, in pieces that do not wrap around the inputs. */
static void ring_fill(work *w) {
    const spec *s = &w->s;
    swa_status st = swa_cache_reset(&w->cache, 0, w->in0, 0);
    int64_t n = 0;
    for (int64_t p = w->in0; p < s->start && st == SWA_OK; p += n) {
        swa_attn a = { 0 };
        n = w->in_rows - (p - w->in0) % w->in_rows;
        if (n > s->start - p) n = s->start - p;
        if (n > 1024) n = 1024;
        a.mode = SWA_STORE_ONLY;
        work_point(w, &a, p);
        st = swa_step_one(&w->cache, 0, p, (int32_t)n);
        for (int l = 0; l < w->layers && st == SWA_OK; l++) st = swa_attend(&w->cache, l, &a);
    }
    if (st != SWA_OK) work_fail(w, "fill", st);
}

/* One that is called again and again stays in cache. */
static int cold_layers(const spec *s, swa_type type, size_t cold_bytes) {
    double rows = (double)(s->start + 1 - spec_lo(s, s->start));
    return spec_decode(s) && !s->repeat ? (int)((double)cold_bytes / (rows * row_bytes(s, type))) + 1 : 1;
}

static void ring_setup(work *w, int slot) {
    const spec *s = &w->s;
    swa_cache_desc d = { 0 };
    swa_window win = swa_window_sliding(s->window);
    swa_status st;
    size_t scratch;
    d.shape = work_shape(s);
    d.n_layers = w->layers;
    d.k_type = d.v_type = d.tail_type = w->type;
    if (s->tail && w->type == SWA_Q8) d.tail_type = SWA_BF16;
    d.capacity = s->capacity;
    d.isa = w->isa;
    if (s->window > 0) {
        d.windows = &win;
        d.n_windows = 1;
    } else d.max_context = s->start + (int64_t)s->n * spec_steps(s) + 2 * MAX_SAMPLES;
    scratch = swa_cache_scratch_bytes(&d, w->parts);
    if (s->flags & INDEX && swa_select_bytes(&d.shape, &w->index, w->parts) > scratch)
        scratch = swa_select_bytes(&d.shape, &w->index, w->parts);
    st = cache_make(&w->cache, &d, scratch, slot);
    if (st != SWA_OK) {
        work_fail(w, "cache", st);
        return;
    }
    ring_fill(w);
    w->pos = s->start;
}

/* The caller's rows, [slot][kv head][dim]: the window of one query (decode, per layer) or a whole prompt. */
static void rows_setup(work *w, int slot) {
    const spec *s = &w->s;
    size_t n = (size_t)w->in_rows, numbers = n * (size_t)(spec_kv_heads(s) * spec_dim(s));
    size_t part = numbers * type_bytes(w->type);
    char *mem = (char *)buffer_get(slot, part * 2 * (size_t)w->layers);
    size_t bytes;
    w->kv = (swa_kv *)calloc((size_t)w->layers, sizeof *w->kv);
    if (w->kv == NULL) die("out of memory");
    for (int l = 0; l < w->layers; l++) {
        swa_kv *kv = &w->kv[l];
        kv->k = mem + part * 2 * (size_t)l;
        kv->v = mem + part * (2 * (size_t)l + 1);
        kv->k_type = kv->v_type = w->type;
        kv->pos = w->in0;
        kv->n = (int32_t)n;
        if (l == 0) {
            convert(mem, w->type, w->k, numbers);
            convert(mem + part, w->type, w->v, numbers);
        } else {
            memcpy(mem + part * 2 * (size_t)l, mem, part * 2);
        }
    }
    w->rows.shape = work_shape(s);
    w->rows.window = s->window > 0 ? swa_window_sliding(s->window) : swa_window_causal();
    w->rows.pos = s->start;
    w->rows.n_tokens = s->n;
    w->rows.kv = w->kv;
    w->rows.n_kv = 1;
    w->rows.isa = w->isa;
    bytes = swa_attention_bytes(&w->rows, w->parts);
    w->rows.scratch = buffer_get(BUF_SCRATCH, bytes);
    w->rows.scratch_bytes = bytes;
    w->pos = s->start;
}

/* For at most `parts` threads. */
static void work_setup(work *w, const spec *s, swa_type type, int isa, int parts, size_t cold_bytes, int slot) {
    memset(w, 0, sizeof *w);
    w->s = *s;
    w->type = type;
    w->isa = isa;
    w->parts = parts;
    w->layers = cold_layers(s, type, cold_bytes);
    work_inputs(w);
    if (s->form == RING) ring_setup(w, slot);
    else rows_setup(w, slot);
}

/* ---- one sample ---- */

/* The same call again and again, by one thread. A layer stores a step once, so one that stores is begun each time. */
static swa_status ring_repeat(work *w, const swa_attn *a, int layer, int64_t pos) {
    swa_status st = SWA_OK;
    for (int r = 0; r < w->s.repeat && st == SWA_OK; r++) {
        swa_run run = { .n = w->s.n, .pos = pos, .rewind = 1 };
        if (r > 0 && a->mode != SWA_ATTEND_NO_STORE) st = swa_step_begin(&w->cache, &run, 1);
        if (st == SWA_OK) st = swa_attend(&w->cache, layer, a);
    }
    return st;
}

/* One worker's share. The host's two duties are all that stands here: begin a step, join between phases. */
static void ring_part(void *arg, int part, int parts) {
    work *w = (work *)arg;
    const spec *s = &w->s;
    swa_attn a = w->attn;
    for (int step = 0; step < spec_steps(s); step++) {
        int64_t pos = w->pos + (int64_t)step * s->n;
        swa_status st = SWA_OK;
        work_point(w, &a, pos);
        a.q.p = w->attn.q.p + (int64_t)step * s->n * spec_heads(s) * spec_krow(s);
        a.out.p = w->attn.out.p + (int64_t)step * s->n * spec_heads(s) * spec_dim(s);
        if (part == 0) {
            st = swa_step_one(&w->cache, 0, pos, s->n);
            if (st != SWA_OK) work_fail(w, "begin", st);
        }
        pool_join(w->p);
        for (int l = 0; l < w->layers; l++) {
            if (s->flags & INDEX && part == 0) st = swa_attend(&w->cache, l, &a); /* its one new key */
            if (s->flags & INDEX) {
                pool_join(w->p);
                for (int phase = 0; phase < SWA_PHASES && st == SWA_OK; phase++) {
                    st = swa_select_part(&w->cache, l, &w->index, phase, part, parts);
                    pool_join(w->p);
                }
            } else if (parts == 1) {
                st = s->repeat ? ring_repeat(w, &a, l, pos) : swa_attend(&w->cache, l, &a);
            } else {
                for (int phase = 0; phase < SWA_PHASES; phase++) {
                    st = swa_attend_part(&w->cache, l, &a, phase, part, parts);
                    pool_join(w->p);
                }
            }
            if (st != SWA_OK && part == 0) work_fail(w, "attend", st);
        }
    }
}

static void rows_part(void *arg, int part, int parts) {
    work *w = (work *)arg;
    for (int l = 0; l < w->layers; l++) {
        swa_rows rows = w->rows;
        swa_status st = SWA_OK;
        rows.kv = &w->kv[l];
        for (int phase = 0; phase < SWA_PHASES; phase++) {
            st = swa_attention_part(&rows, &w->attn, phase, part, parts);
            pool_join(w->p);
        }
        if (st != SWA_OK && part == 0) work_fail(w, "attend", st);
    }
}

/* Seconds per call, where a call is one layer with all steps. */
static double work_sample(work *w, double *lost) {
    const spec *s = &w->s;
    double t;
    if (s->form == ROWS) {
        t = pool_time(w->p, rows_part, w);
    } else {
        swa_status st = spec_decode(s) ? SWA_OK : swa_cache_reset(&w->cache, 0, w->pos, 0);
        if (st != SWA_OK) work_fail(w, "reset", st);
        t = pool_time(w->p, ring_part, w);
        if (spec_decode(s)) w->pos += s->n;
    }
    *lost = pool_lost(w->p) / t;
    return t / w->layers / (s->repeat ? s->repeat : 1);
}

/* ---- the answer against double ---- */

/* K and V of positions lo..lo+n-1, one head, from the inputs, rounded as the ring rounds. */
static void keys_of_inputs(const work *w, swa_type type, int64_t lo, int64_t n, int kvh, float *k, float *v) {
    int dk = spec_krow(&w->s), dv = spec_dim(&w->s), heads = spec_kv_heads(&w->s);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = (lo + i - w->in0) % w->in_rows;
        for (int d = 0; d < dk; d++) k[i * dk + d] = rounded(type, w->k[(row * heads + kvh) * dk + d]);
        for (int d = 0; d < dv; d++)
            v[i * dv + d] = w->s.tail ? k[i * dk + d] : rounded(type, w->v[(row * heads + kvh) * dv + d]);
    }
}

/* The same from the ring itself: what was stored, unrotated. */
static void keys_of_ring(work *w, int64_t lo, int64_t n, int kvh, float *k, float *v) {
    int dk = spec_krow(&w->s), dv = spec_dim(&w->s), heads = spec_kv_heads(&w->s);
    float *kr = (float *)buffer_get(BUF_KREAD, (size_t)(n * heads * dk) * 4);
    float *vr = (float *)buffer_get(BUF_VREAD, (size_t)(n * heads * dv) * 4);
    swa_status st = swa_cache_read(&w->cache, 0, w->layers - 1, lo, (int32_t)n, kr, vr);
    if (st != SWA_OK) work_fail(w, "read back", st);
    for (int64_t i = 0; i < n; i++) {
        memcpy(k + i * dk, kr + (i * heads + kvh) * dk, (size_t)dk * 4);
        memcpy(v + i * dv, vr + (i * heads + kvh) * dv, (size_t)dv * 4);
    }
}

typedef struct {
    double stored, input;
} accuracy; /* relative rms against the stored K/V, and the f32 inputs */

enum { CHECK_ROWS = 12 };

/* Rows spread over the last sample's tokens and heads. The last token is held against the ring's own rows. */
static accuracy work_check(work *w) {
    const spec *s = &w->s;
    int64_t tokens = (int64_t)s->n * spec_steps(s);
    int64_t first = spec_decode(s) && s->form == RING ? w->pos - s->n : w->pos;
    int dk = spec_krow(s), dv = spec_dim(s), heads = spec_heads(s);
    double scale = s->tail ? (double)w->attn.scale : 1.0 / sqrt(dv);
    rms_sum stored = { 0, 0 }, input = { 0, 0 };
    accuracy acc;
    for (int i = 0; i < CHECK_ROWS; i++) {
        int64_t t = tokens - 1 - i * tokens / CHECK_ROWS, pos = first + t, lo = spec_lo(s, pos), n = pos + 1 - lo;
        float *k = (float *)buffer_get(BUF_CHECK, (size_t)(n * (dk + dv)) * 4), *v = k + n * dk;
        int h = (heads - 1) * (CHECK_ROWS - 1 - i) / (CHECK_ROWS - 1), kvh = h / (heads / spec_kv_heads(s));
        const float *q = w->attn.q.p + (t * heads + h) * dk, *got = w->attn.out.p + (t * heads + h) * dv;
        keys_of_inputs(w, SWA_F32, lo, n, kvh, k, v);
        oracle_row(&input, q, k, v, n, dk, dv, dv, scale, got);
        if (s->form == RING && !(s->flags & NO_STORE) && t == tokens - 1) keys_of_ring(w, lo, n, kvh, k, v);
        else if (w->type < SWA_Q8) keys_of_inputs(w, w->type, lo, n, kvh, k, v);
        else continue; /* what q8 and the rest make of a row, only the ring tells */
        oracle_row(&stored, q, k, v, n, dk, dv, dv, scale, got);
    }
    acc.stored = rms_value(&stored);
    acc.input = rms_value(&input);
    return acc;
}

#endif
