/* mla_core.c - DeepSeek's latent attention in an engine with its own matrix products: queries are absorbed
   (q_nope W_UK), the ring holds [latent | rope] once for all heads, V is the latent itself; then W_UV, W_O are yours.
   Compared with attention over K and V expanded per head, in double. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"
#include <math.h>

enum { HEADS = 4, LATENT = 32, ROPE = 8, NOPE = 16, V = 12, TOKENS = 90, WINDOW = 40, ROW = HEADS * LATENT };

static float *w_uk, *w_uv, *latent, *k_rope, *q_nope, *q_rope;

/* Head h of the query at pos, K and V expanded from the latents as the model is written down. */
static double expanded(int64_t pos, int h, const float *o_latent, double scale) {
    double sum = 0, o[V] = { 0 }, worst = 0;
    for (int64_t p = pos - WINDOW + 1 > 0 ? pos - WINDOW + 1 : 0; p <= pos; p++) {
        double s = 0;
        for (int i = 0; i < NOPE; i++) {
            const float *w = w_uk + (h * NOPE + i) * LATENT;
            double k = 0;
            for (int j = 0; j < LATENT; j++) k += (double)w[j] * (double)latent[p * LATENT + j];
            s += (double)q_nope[(pos * HEADS + h) * NOPE + i] * k;
        }
        for (int i = 0; i < ROPE; i++) s += (double)q_rope[(pos * HEADS + h) * ROPE + i] * (double)k_rope[p * ROPE + i];
        s = exp(s * scale);
        sum += s;
        for (int i = 0; i < V; i++)
            for (int j = 0; j < LATENT; j++)
                o[i] += s * (double)w_uv[(h * V + i) * LATENT + j] * (double)latent[p * LATENT + j];
    }
    for (int i = 0; i < V; i++) {
        double x = 0;
        for (int j = 0; j < LATENT; j++) x += (double)w_uv[(h * V + i) * LATENT + j] * (double)o_latent[j];
        worst = fmax(worst, fabs(x - o[i] / sum));
    }
    return worst;
}

int main(void) {
    swa_window window = swa_window_sliding(WINDOW);
    swa_cache_desc d = { 0 };
    swa_attn a = { 0 };
    float *absorbed = (float *)room(TOKENS * ROW * sizeof *absorbed), *out = (float *)room(TOKENS * ROW * sizeof *out);
    double worst = 0;
    cache c;
    w_uk = rows_at(1, 0, HEADS * NOPE, LATENT);
    w_uv = rows_at(2, 0, HEADS * V, LATENT);
    latent = rows_at(3, 0, TOKENS, LATENT);
    k_rope = rows_at(4, 0, TOKENS, ROPE);
    q_nope = rows_at(5, 0, TOKENS, HEADS * NOPE);
    q_rope = rows_at(6, 0, TOKENS, HEADS * ROPE);
    d.shape.n_heads = HEADS;
    d.shape.n_kv_heads = 1; /* one latent row serves all heads */
    d.shape.head_dim = d.shape.v_dim = LATENT;
    d.shape.tail_dim = ROPE;
    d.shape.v_in_k = 1; /* V is the latent: nothing is stored twice */
    d.n_layers = 1;
    d.windows = &window;
    d.n_windows = 1;
    c = new_cache(&d, 1);
    for (int t = 0; t < TOKENS * HEADS; t++) /* q_nope W_UK: your product, [LATENT] per head */
        for (int j = 0; j < LATENT; j++) {
            float x = 0;
            for (int i = 0; i < NOPE; i++) x += q_nope[t * NOPE + i] * w_uk[(t % HEADS * NOPE + i) * LATENT + j];
            absorbed[t * LATENT + j] = x;
        }
    a.q.p = absorbed;                              /* [n][HEADS][LATENT] */
    a.q_tail.p = q_rope;                           /* [n][HEADS][ROPE]   */
    a.k.p = latent;                                /* [n][1][LATENT]     */
    a.k_tail.p = k_rope;                           /* [n][1][ROPE]       */
    a.out.p = out;                                 /* [n][HEADS][LATENT] */
    a.scale = (float)swa_mla_scale(NOPE, ROPE, 0); /* of nope + rope, never of the latent's width */
    check(swa_step_one(&c.kv, 0, 0, TOKENS), "swa_step_one");
    check(swa_attend(&c.kv, 0, &a), "swa_attend");
    for (int t = 0; t < TOKENS; t++)
        for (int h = 0; h < HEADS; h++)
            worst = fmax(worst, expanded(t, h, out + (t * HEADS + h) * LATENT, swa_mla_scale(NOPE, ROPE, 0)));
    printf("a row in the ring: %d numbers instead of %d; %s\n", LATENT + ROPE, HEADS * (NOPE + ROPE + V),
           worst < 1e-4 ? "equal to 1e-4 with K and V expanded per head" : "DIFFERENT");
    free_cache(&c);
    free(absorbed);
    free(out);
    free(w_uk);
    free(w_uv);
    free(latent);
    free(k_rope);
    free(q_nope);
    free(q_rope);
    return 0;
}
