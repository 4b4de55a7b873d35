/* tree.c - a tree of drafts: two guesses for the next token, two for the one after each, and so on, all attended in one
   step. The target keeps the path that it agrees with, swa_cache_commit moves its rows to their places, and the result
   equals decoding token by token, to the bit. */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"

enum { NODES = 14, WINDOW = 48, TOKENS = 200, HEADS = 4, KV_HEADS = 2, DIM = 16, ROW = HEADS * DIM };

/* Node i follows parents[i]; -1: the last token there is. */
static const int32_t parents[NODES] = { -1, -1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5 };

/* The token that the target has at a position, and what a drafter guesses for node i there: of two guesses one is right
   three times in four. */
static uint32_t target(int64_t pos) { return (uint32_t)((uint64_t)(pos + 1) * 2654435761u >> 9) % 50; }
static uint32_t guess(int64_t pos, int i) {
    uint32_t luck = target(1000 + pos) % 8;
    return luck < 6 && luck % 2 == (uint32_t)i % 2 ? target(pos) : 50 + (uint32_t)i;
}

/* n tokens at their positions: what stands for your projections depends on both, as after RoPE. */
static void attend(swa_cache *kv, const uint32_t *token, const int64_t *pos, int32_t n, float *out) {
    float *x[3];
    swa_attn a = { 0 };
    for (uint32_t which = 0; which < 3; which++) {
        const int width = which == 0 ? ROW : KV_HEADS * DIM;
        x[which] = (float *)room((size_t)(n * width) * sizeof **x);
        for (int32_t i = 0; i < n; i++) {
            float *row = rows_at(which + 3 * token[i], pos[i], 1, width);
            memcpy(x[which] + i * width, row, (size_t)width * sizeof *row);
            free(row);
        }
    }
    a.q.p = x[0];
    a.k.p = x[1];
    a.v.p = x[2];
    a.out.p = out;
    check(swa_attend(kv, 0, &a), "swa_attend");
    for (int which = 0; which < 3; which++) free(x[which]);
}

int main(void) {
    swa_window window = swa_window_sliding(WINDOW);
    swa_cache_desc d = one_layer(HEADS, KV_HEADS, DIM, &window);
    float *out = (float *)room((TOKENS + NODES) * ROW * sizeof *out);
    float *plain = (float *)room((TOKENS + NODES) * ROW * sizeof *plain);
    float nodes[NODES * ROW];
    int64_t end = 0, steps = 0, at[NODES];
    cache c;
    d.max_rollback = NODES;
    c = new_cache(&d, 1);
    for (; end < TOKENS; steps++) {
        uint32_t token[NODES];
        int32_t path[NODES], n = 0;
        swa_run run = { 0 };
        run.n = NODES;
        run.pos = end;
        run.parents = parents;
        check(swa_tree_positions(parents, NODES, end, at), "swa_tree_positions");
        for (int i = 0; i < NODES; i++) token[i] = guess(at[i], i);
        check(swa_step_begin(&c.kv, &run, 1), "swa_step_begin");
        attend(&c.kv, token, at, NODES, nodes);
        for (int i = 0; i < NODES; i++) /* what follows the path so far, and is right */
            if (parents[i] == (n > 0 ? path[n - 1] : -1) && token[i] == target(at[i])) {
                memcpy(out + (end + n) * ROW, nodes + i * ROW, ROW * sizeof *out);
                path[n++] = i;
            }
        check(swa_cache_commit(&c.kv, 0, path, n), "swa_cache_commit");
        end += n;
        if (n == 3) continue; /* else the target's own token comes next, as the drafts had it wrong */
        token[0] = target(end);
        check(swa_step_one(&c.kv, 0, end, 1), "swa_step_one");
        attend(&c.kv, token, &end, 1, out + end * ROW);
        end++;
    }
    check(swa_cache_reset(&c.kv, 0, 0, 0), "swa_cache_reset");
    for (int64_t p = 0; p < end; p++) {
        uint32_t token = target(p);
        check(swa_step_one(&c.kv, 0, p, 1), "swa_step_one");
        attend(&c.kv, &token, &p, 1, plain + p * ROW);
    }
    printf("%lld tokens by %lld trees of %d: %s as token by token\n", (long long)end, (long long)steps, NODES,
           memcmp(out, plain, (size_t)end * ROW * sizeof *out) == 0 ? "the same bits" : "OTHER BITS");
    free_cache(&c);
    free(out);
    free(plain);
    return 0;
}
