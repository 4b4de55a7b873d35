/* zoo.c - the attention of the models in families.h (Mistral, gpt-oss, Gemma 2 to 4, Llama 4, MiMo, MLA, ...):
   windows and full layers in turn, a shape per layer, shared rows, sink logits, softcap, chunks, images, latents, a
   bias by distance, lists of keys, compressed rows. Each is built at its real sizes to see what its ring takes, then
   run with small ones: two sequences, prefill in chunks, one decoding while the other's prompt comes in, against
   attention in double. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"
#include "families.h"

enum { SEQS = 2, TOKENS = 50, CHUNK = 15, ROWS = SEQS * CHUNK, IMAGE = 15, IMAGE_END = 27, CONTEXT = 16384 };
static const int64_t prompt[SEQS] = { 38, 22 };

/* The same family with heads and dims of the same proportions, short windows and, where none are shared, 12 layers. */
static swa_shape small_shape(swa_shape s, int by) {
    s.n_heads /= by;
    if (s.n_kv_heads > 1) s.n_kv_heads /= by;
    s.head_dim /= 8;
    s.v_dim /= 8;
    s.tail_dim /= 8;
    return s;
}
static family small(family f) {
    int kv = f.global.n_kv_heads < f.local.n_kv_heads ? f.global.n_kv_heads : f.local.n_kv_heads;
    int by = f.global.v_in_k ? f.global.n_heads / 8 : kv > 4 ? 4 : kv;
    f.local = small_shape(f.local, by);
    f.global = small_shape(f.global, by);
    if (f.scale_dim > 1) f.scale_dim /= 8;
    f.window = f.window <= 128 ? 8 : f.window <= 1024 ? 13 : 24;
    if (f.bias > 0) f.bias = 21;
    if (f.pick > 0) f.pick = f.pick_block < 16 ? 9 : 3;
    if (f.pick_block > 1) f.pick_block = f.pick_block < 16 ? 2 : 4;
    if (f.rate[0] > 0) f.rate[0] = 2, f.rate[1] = 8;
    if (f.n_layers > 12 && f.n_shared == 0) f.n_layers = 12;
    return f;
}

/* ---- what stands for the model: rows of q, k, v of all tokens, before they are packed into steps ---- */

typedef struct {
    float *q, *q_tail, *k, *k_tail, *v, *bias;
    float *rows;   /* compressed ones; a model makes them of its tokens' */
    int32_t *pick; /* [TOKENS][pick_heads][picks] */
} text;
typedef struct {
    family f;
    family_room room;
    cache c;
    text x[MOST_LAYERS][SEQS];
    float *sinks[MOST_LAYERS]; /* [n_heads], or NULL */
} model;

static const swa_shape *shape_of(const model *m, int layer) {
    return is_local(&m->f, layer) ? &m->f.local : &m->f.global;
}
static int v_dim(const swa_shape *s) { return s->v_dim > 0 ? s->v_dim : s->head_dim; }
/* Tokens of a compressed row; 0 = the layer has none. */
static int rate_of(const family *f, int layer) {
    return kind_of(f, layer) == 'C' ? f->rate[0] : kind_of(f, layer) == 'H' ? f->rate[1] : 0;
}
/* Entries of a list; 0 = no lists. In an H layer: all of the rows that there are. */
static int picks_of(const family *f, int layer) {
    return kind_of(f, layer) == 'H' ? TOKENS / f->rate[1] : strchr("PC", kind_of(f, layer)) ? f->pick : 0;
}
static int pick_heads(const family *f) { return f->pick_by_head ? f->global.n_kv_heads : 1; }

/* What an indexer would pick for each token: some of the entries that it sees, in any order, -1 where there are fewer,
   and the one that the token lies in. */
static void fill_lists(const family *f, int layer, uint32_t seed, int32_t *pick) {
    int rate = rate_of(f, layer), per = rate > 0 ? rate : f->pick_block, n = picks_of(f, layer);
    for (int i = 0; i < TOKENS * pick_heads(f) * n; i++) {
        int token = i / (pick_heads(f) * n), whole = (token + 1) / per; /* entries that are */
        int last = rate > 0 ? whole : token / per + 1;
        seed = seed * 1664525u + 1013904223u;
        if (kind_of(f, layer) == 'H') pick[i] = i % n < whole ? i % n : -1;
        else if (rate == 0 && i % n == n - 1) pick[i] = token / per;
        else pick[i] = last > 0 && i % n < last ? (int32_t)(seed >> 8) % last : -1;
    }
}

static void build(model *m, const family *real) {
    m->f = small(*real);
    family_desc(&m->f, TOKENS, CHUNK, &m->room);
    m->room.desc.n_seqs = SEQS;
    m->c = new_cache(&m->room.desc, 1);
    for (int l = 0; l < m->f.n_layers; l++) {
        const swa_shape *s = shape_of(m, l);
        double scale = family_scale(&m->f, s);
        uint32_t seed = 10 * (uint32_t)l, from = 10 * (uint32_t)m->room.kv_layer[l];
        for (uint32_t i = 0; i < SEQS; i++, seed += 1000, from += 1000) {
            text *x = &m->x[l][i];
            x->q = rows_at(seed, 0, TOKENS, s->n_heads * s->head_dim);
            x->q_tail = rows_at(seed + 1, 0, TOKENS, s->n_heads * s->tail_dim);
            x->k = rows_at(from + 2, 0, TOKENS, s->n_kv_heads * s->head_dim);
            x->k_tail = rows_at(from + 3, 0, TOKENS, s->n_kv_heads * s->tail_dim);
            x->v = rows_at(from + 4, 0, TOKENS, s->n_kv_heads * v_dim(s));
            x->bias = rows_at(seed + 6, 0, TOKENS, s->n_heads * family_bias(&m->f, l));
            x->rows = rows_at(seed + 7, 0, TOKENS, rate_of(&m->f, l) > 0 ? s->head_dim : 0);
            x->pick = (int32_t *)room((size_t)(TOKENS * pick_heads(&m->f) * picks_of(&m->f, l)) * sizeof *x->pick);
            fill_lists(&m->f, l, seed, x->pick);
            /* Scores of about -10 to 10, so that a key too many or a softcap left out is seen. */
            for (int j = 0; j < TOKENS * s->n_heads * s->head_dim; j++)
                x->q[j] *= (float)(12 / (scale * sqrt((double)s->head_dim)));
        }
        m->sinks[l] = NULL;
        if (m->f.sinks != NULL && strchr(m->f.sinks, kind_of(&m->f, l)) != NULL) {
            m->sinks[l] = rows_at(seed + 5, 0, 1, s->n_heads);
            for (int h = 0; h < s->n_heads; h++) m->sinks[l][h] *= 8;
        }
    }
}

static void destroy(model *m) {
    for (int l = 0; l < m->f.n_layers; l++) {
        free(m->sinks[l]);
        for (int i = 0; i < SEQS; i++) {
            free(m->x[l][i].q);
            free(m->x[l][i].q_tail);
            free(m->x[l][i].k);
            free(m->x[l][i].k_tail);
            free(m->x[l][i].v);
            free(m->x[l][i].bias);
            free(m->x[l][i].rows);
            free(m->x[l][i].pick);
        }
    }
    free_cache(&m->c);
}

/* ---- attention written out ---- */

static int in_image(const family *f, int seq, int64_t pos) {
    return f->images && seq == 0 && pos >= IMAGE && pos < IMAGE_END;
}

static int picked(const model *m, int layer, int seq, int64_t q, int64_t kv_head, int64_t entry) {
    int n = picks_of(&m->f, layer), heads = pick_heads(&m->f), found = 0;
    const int32_t *list = m->x[layer][seq].pick + (q * heads + (heads > 1 ? kv_head : 0)) * n;
    for (int i = 0; i < n; i++) found |= list[i] == entry;
    return found;
}

static int sees(const model *m, int layer, int seq, int64_t kv_head, int64_t q, int64_t k) {
    const family *f = &m->f;
    if (in_image(f, seq, q) && in_image(f, seq, k)) return 1;
    if (k > q) return 0;
    if (kind_of(f, layer) == 'P')
        return (f->pick_own && q / f->pick_block == k / f->pick_block)
            || picked(m, layer, seq, q, kv_head, k / f->pick_block);
    if (!is_local(f, layer)) return 1;
    return f->chunked ? k / f->window == q / f->window : q - k < f->window;
}

/* The layer whose rows a layer reads: the last of its kind among those that have some. */
static int rows_of(const family *f, int layer) {
    int found = layer;
    if (layer < f->n_layers - f->n_shared) return layer;
    for (int l = 0; l < f->n_layers - f->n_shared; l++)
        if (is_local(f, l) == is_local(f, layer)) found = l;
    return found;
}

static double dot(const float *a, const float *b, int n) {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* The score of a key, without the scale; NULL: no tail. */
static double score_of(const model *m, int layer, int seq, int64_t at, const float *k, const float *tail) {
    const swa_shape *s = shape_of(m, layer);
    const text *x = &m->x[layer][seq];
    double score = dot(x->q + at * s->head_dim, k, s->head_dim);
    return tail == NULL ? score : score + dot(x->q_tail + at * s->tail_dim, tail, s->tail_dim);
}

/* The largest error of one token's row of one head. Behind the TOKENS keys come the compressed ones. */
static double error_of(const model *m, int layer, int seq, int64_t pos, int head, const float *out) {
    const swa_shape *s = shape_of(m, layer);
    const text *x = &m->x[layer][seq], *rows = &m->x[rows_of(&m->f, layer)][seq];
    int64_t at = pos * s->n_heads + head, group = head / (s->n_heads / s->n_kv_heads);
    int near = family_bias(&m->f, layer), dims = v_dim(s);
    double score[2 * TOKENS], o[64] = { 0 }, sum = 0, worst = 0, most = -1e9;
    double scale = 1 / sqrt(m->f.scale_dim > 0 ? m->f.scale_dim : (double)s->head_dim);
    if (m->f.mscale > 0) scale *= m->f.mscale * m->f.mscale;
    for (int64_t p = 0; p < 2 * TOKENS; p++) {
        int64_t kv = p * s->n_kv_heads + group;
        score[p] = -1e30;
        if (p >= TOKENS && rate_of(&m->f, layer) > 0 && picked(m, layer, seq, pos, 0, p - TOKENS))
            score[p] = scale * score_of(m, layer, seq, at, x->rows + (p - TOKENS) * s->head_dim, NULL);
        if (p < TOKENS && sees(m, layer, seq, group, pos, p)) {
            score[p] = scale * score_of(m, layer, seq, at, rows->k + kv * s->head_dim, rows->k_tail + kv * s->tail_dim);
            if (m->f.softcap > 0) score[p] = (double)m->f.softcap * tanh(score[p] / (double)m->f.softcap);
            if (p <= pos && pos - p < near) score[p] += (double)x->bias[at * near + pos - p];
        }
        most = fmax(most, score[p]);
    }
    if (m->sinks[layer]) most = fmax(most, (double)m->sinks[layer][head]);
    if (m->sinks[layer]) sum = exp((double)m->sinks[layer][head] - most);
    for (int64_t p = 0; p < 2 * TOKENS; p++) {
        int64_t kv = p * s->n_kv_heads + group;
        const float *v = p >= TOKENS ? x->rows + (p - TOKENS) * dims
                       : s->v_in_k   ? rows->k + kv * s->head_dim
                                     : rows->v + kv * dims;
        if (score[p] < -1e29) continue;
        sum += exp(score[p] - most);
        for (int d = 0; d < dims; d++) o[d] += exp(score[p] - most) * (double)v[d];
    }
    for (int d = 0; d < dims; d++) worst = fmax(worst, fabs(o[d] / sum - (double)out[d]));
    return worst;
}

/* ---- the same by the library ---- */

/* The step's rows of one member of text, in the order of the runs. */
static float *pack(const model *m, int layer, const swa_run *runs, int n, size_t offset, int width) {
    float *to = (float *)room((size_t)(ROWS * width) * sizeof *to);
    for (int i = 0; i < n; i++) {
        float *from;
        memcpy(&from, (const char *)&m->x[layer][runs[i].seq] + offset, sizeof from);
        if (width == 0) continue; /* no tail, no bias */
        memcpy(to + runs[i].row * width, from + runs[i].pos * width, (size_t)(runs[i].n * width) * sizeof *to);
    }
    return to;
}

/* The lists of the step's tokens, in the order of the runs. */
static int32_t *pack_lists(const model *m, int layer, const swa_run *runs, int n) {
    int width = pick_heads(&m->f) * picks_of(&m->f, layer);
    int32_t *to = (int32_t *)room((size_t)(ROWS * width) * sizeof *to);
    for (int i = 0; i < n && width > 0; i++)
        memcpy(to + runs[i].row * width, m->x[layer][runs[i].seq].pick + runs[i].pos * width,
               (size_t)(runs[i].n * width) * sizeof *to);
    return to;
}

/* A layer with compressed rows: `a`, which is ready for its window, and for each run the rows on its tokens' lists, all
   under one softmax. The lists say which rows are whole, so that the window of these calls is open. */
static void attend_both(model *m, int layer, const swa_run *runs, int n, swa_attn *a, const int32_t *pick) {
    const swa_shape *s = shape_of(m, layer);
    int width = s->n_heads * s->v_dim, total = runs[n - 1].row + runs[n - 1].n;
    float *part[2], *stat[2], *out = a->out.p;
    const float *outs[2], *stats[2];
    for (int i = 0; i < 2; i++) {
        outs[i] = part[i] = (float *)room((size_t)(ROWS * width) * sizeof(float));
        stats[i] = stat[i] = (float *)room((size_t)(ROWS * s->n_heads * 2) * sizeof(float));
    }
    a->out.p = part[0];
    a->stat = stat[0];
    check(swa_attend(&m->c.kv, layer, a), "swa_attend");
    for (int i = 0; i < n; i++) {
        swa_attn listed = *a;
        swa_kv kv = { 0 };
        swa_rows rows = { 0 };
        kv.k = m->x[layer][runs[i].seq].rows;
        kv.n = TOKENS;
        rows.shape = *s;
        rows.window = swa_window_flash(-1, -1);
        rows.n_tokens = runs[i].n;
        rows.kv = &kv;
        rows.n_kv = 1;
        rows.scratch_bytes = swa_attention_bytes(&rows, 1);
        rows.scratch = room(rows.scratch_bytes);
        listed.q.p += runs[i].row * s->n_heads * s->head_dim;
        listed.out.p = part[1] + runs[i].row * width;
        listed.stat = stat[1] + runs[i].row * s->n_heads * 2;
        listed.pick_n = picks_of(&m->f, layer);
        listed.pick_token = listed.pick_n;
        listed.pick = pick + runs[i].row * listed.pick_n;
        check(swa_attention(&rows, &listed), "swa_attention");
        free(rows.scratch);
    }
    check(swa_merge(outs, stats, 2, total, s->n_heads, s->v_dim, m->sinks[layer], out, NULL), "swa_merge");
    for (int i = 0; i < 2; i++) free(part[i]);
    for (int i = 0; i < 2; i++) free(stat[i]);
}

static double attend(model *m, int layer, const swa_run *runs, int n) {
    const swa_shape *s = shape_of(m, layer);
    int near = family_bias(&m->f, layer), width = s->n_heads * v_dim(s), reader = m->room.kv_layer[layer] != layer;
    float *in[] = {
        pack(m, layer, runs, n, offsetof(text, q), s->n_heads * s->head_dim),
        pack(m, layer, runs, n, offsetof(text, q_tail), s->n_heads * s->tail_dim),
        pack(m, layer, runs, n, offsetof(text, k), s->n_kv_heads * s->head_dim),
        pack(m, layer, runs, n, offsetof(text, k_tail), s->n_kv_heads * s->tail_dim),
        pack(m, layer, runs, n, offsetof(text, v), s->n_kv_heads * v_dim(s)),
        pack(m, layer, runs, n, offsetof(text, bias), s->n_heads * near),
    };
    float *out = (float *)room((size_t)(ROWS * width) * sizeof *out);
    int32_t *pick = pack_lists(m, layer, runs, n);
    swa_window own = swa_window_chunked(m->f.pick_block > 0 ? m->f.pick_block : 1);
    double worst = 0;
    swa_attn a = { 0 };
    a.mode = reader ? SWA_ATTEND_STORED : SWA_ATTEND; /* a reader has a q alone: k and v are not looked at */
    a.q.p = in[0];
    a.q_tail.p = s->tail_dim > 0 ? in[1] : NULL;
    a.k.p = in[2];
    a.k_tail.p = s->tail_dim > 0 ? in[3] : NULL;
    a.v.p = in[4];
    a.out.p = out;
    a.scale = (float)family_scale(&m->f, s);
    a.softcap = m->f.softcap;
    a.sink_logits = m->sinks[layer];
    if (near > 0) {
        a.bias = in[5];
        a.bias_by_distance = 1;
        a.bias_n = near;
        a.bias_head = near;
        a.bias_token = s->n_heads * near;
    }
    if (kind_of(&m->f, layer) == 'P') {
        a.pick = pick;
        a.pick_n = m->f.pick;
        a.pick_block = m->f.pick_block;
        a.pick_token = pick_heads(&m->f) * m->f.pick;
        a.pick_head = m->f.pick_by_head ? m->f.pick : 0;
        if (m->f.pick_own) a.pick_window = &own;
    }
    if (rate_of(&m->f, layer) > 0) attend_both(m, layer, runs, n, &a, pick);
    else check(swa_attend(&m->c.kv, layer, &a), "swa_attend");
    for (int i = 0; i < n; i++)
        for (int t = 0; t < runs[i].n; t++)
            for (int h = 0; h < s->n_heads; h++)
                worst = fmax(worst, error_of(m, layer, runs[i].seq, runs[i].pos + t, h,
                                             out + (runs[i].row + t) * width + h * v_dim(s)));
    for (int i = 0; i < 6; i++) free(in[i]);
    free(pick);
    free(out);
    return worst;
}

static double run(model *m) {
    double worst = 0;
    for (int step = 0;; step++) {
        swa_run runs[SEQS];
        int n = 0;
        memset(runs, 0, sizeof runs);
        for (int seq = 0; seq < SEQS; seq++) {
            int64_t end = swa_cache_end(&m->c.kv, seq), left = prompt[seq] - end;
            if (end == TOKENS || step < 2 * seq) continue; /* the second comes two steps later */
            runs[n].seq = seq;
            runs[n].pos = end;
            runs[n].n = left > CHUNK ? CHUNK : left > 0 ? (int32_t)left : 1;
            if (in_image(&m->f, seq, end)) runs[n].prefix = IMAGE_END; /* a run begins where an image does */
            n++;
        }
        if (n == 0) return worst;
        check(swa_step_begin(&m->c.kv, runs, n), "swa_step_begin");
        for (int l = 0; l < m->f.n_layers; l++) worst = fmax(worst, attend(m, l, runs, n));
    }
}

/* MiB of the family's real ring, f16, and of one that keeps every row of every layer. */
static void sizes(const family *f, double *ring, double *all) {
    family_room room;
    family_desc(f, CONTEXT, 512, &room);
    room.desc.k_type = SWA_F16;
    *ring = (double)swa_cache_bytes(&room.desc) / 1048576;
    *all = 0;
    for (int l = 0; l < f->n_layers; l++) {
        const swa_shape *s = is_local(f, l) ? &f->local : &f->global;
        *all += 2.0 * CONTEXT * s->n_kv_heads * (s->head_dim + s->tail_dim + (s->v_in_k ? 0 : v_dim(s))) / 1048576;
    }
}

int main(int argc, char **argv) {
    static model m;
    int good = 0;
    (void)argv;
    printf("K and V of %d tokens, f16, MiB: the ring, every row of every layer; then against double\n", CONTEXT);
    for (int i = 0; i < N_FAMILIES; i++) {
        double ring, all, worst;
        sizes(&families[i], &ring, &all);
        build(&m, &families[i]);
        worst = run(&m);
        printf("%-22s %2d layers  %5.0f %5.0f   error below 1e-5: %s\n", families[i].name, families[i].n_layers, ring,
               all, worst < 1e-5 ? "yes" : "NO");
        if (argc > 1) printf("    %.1e\n", worst); /* any word: the errors too, which differ by machine */
        good += worst < 1e-5;
        destroy(&m);
    }
    printf("%d of %d ok\n", good, N_FAMILIES);
    return good == N_FAMILIES ? 0 : 1;
}
