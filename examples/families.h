/* families.h - the attention of published model families, at their real sizes, and the swa_cache_desc of each. To copy:
   your family's row, and what family_desc makes of it. Norms, RoPE (on some layers only: NoPE), temperatures, gates
   behind the attention and factors on V stay in the host, before q, k, v come or after out goes. The sizes of one
   family differ: look into your model's config. */
#ifndef FAMILIES_H_INCLUDED
#define FAMILIES_H_INCLUDED
#include <math.h>
#include <string.h>

enum { MOST_LAYERS = 78 };

typedef struct {
    const char *name;
    int n_layers;
    const char *pattern;     /* layer l is of the kind pattern[l % its length]: L = with the window, G = full,
                                    P = full but read by lists of keys, C, H = with the window and beside it
                                    compressed rows                                                                  */
    int64_t window;          /* keys that an L layer sees, the query's own included                              */
    int chunked;             /* 1: window is the length of a chunk instead                                       */
    swa_shape local, global; /* of the L, C, H and of the G, P layers                                            */
    const char *sinks;       /* kinds of layer with a learned sink logit per head (attn.sink_logits); NULL: none */
    double scale_dim;        /* scores are divided by its root; 0 = head_dim                                     */
    double mscale;           /* and multiplied by its square, where YaRN says so; 0 = 1                          */
    float softcap;           /* 0 = none                                                                         */
    int bias;                /* distances for which a token has a bias of its own in a G layer, in an L layer those
                                    of the window: attn.bias_by_distance. 0 = none                                   */
    int n_shared;            /* the last so many layers read the rows of the last layer of their kind before     */
    int images;              /* tokens of an image all see each other: run.prefix                                */
    int pick, pick_block;    /* P, C: entries of a token's list, as swa_select gives them; keys of an entry   */
    int pick_by_head;        /* 1: a list per KV head; 0: one for all                                            */
    int pick_own;            /* 1: the block that the query lies in is seen without being listed: pick_window    */
    int rate[2];             /* tokens that a compressed row of a C and of an H layer stands for. A token sees those
                                    of groups that are whole: the host's own rows, by swa_attention and swa_merge, or
                                    both in one call (hosts/compressed.md)                                           */
} family;

/* clang-format off */
#define GQA(q, kv, dim)         { .n_heads = q, .n_kv_heads = kv, .head_dim = dim }
#define GQA_V(q, kv, dim, v)    { .n_heads = q, .n_kv_heads = kv, .head_dim = dim, .v_dim = v }
/* Multi-head latent attention, queries absorbed: the ring holds [latent | rope] once for all heads (mla_core.c). */
#define MLA(q, latent, rope)    { .n_heads = q, .n_kv_heads = 1, .head_dim = latent, .v_dim = latent, \
                                  .tail_dim = rope, .v_in_k = 1 }
#define BOTH(shape)             .local = shape, .global = shape
/* clang-format on */

/* clang-format off */
static const family families[] = {
    /* one kind of layer */
    { .name = "Mistral 7B v0.1", .n_layers = 32, .pattern = "L", .window = 4096, BOTH(GQA(32, 8, 128)) },
    { .name = "Llama 3 8B, Qwen 3 8B", .n_layers = 32, .pattern = "G", BOTH(GQA(32, 8, 128)) },   /* Qwen 3: 36 */
    { .name = "Phi-3 medium, Phi-4", .n_layers = 40, .pattern = "G", BOTH(GQA(40, 10, 128)) },
    { .name = "Ministral 3 8B", .n_layers = 34, .pattern = "G", BOTH(GQA(32, 8, 128)) },  /* q has a temperature */

    /* window and full in turn */
    { .name = "gpt-oss 20B", .n_layers = 24, .pattern = "LG", .window = 128, BOTH(GQA(64, 8, 64)), .sinks = "LG" },
    { .name = "Gemma 2 27B", .n_layers = 46, .pattern = "LG", .window = 4096, BOTH(GQA(32, 16, 128)),
      .scale_dim = 144, .softcap = 50 },                 /* query_pre_attn_scalar; 2B and 9B: 256, their head_dim */

    /* several with the window, then a full one */
    { .name = "Gemma 3 27B", .n_layers = 62, .pattern = "LLLLLG", .window = 1024, BOTH(GQA(32, 16, 128)),
      .scale_dim = 168, .images = 1 },                   /* 4B and 12B: head_dim and scale_dim 256 */
    { .name = "Cohere Command R7B", .n_layers = 32, .pattern = "LLLG", .window = 4096, BOTH(GQA(32, 8, 128)) },
    { .name = "OLMo 3 32B", .n_layers = 64, .pattern = "LLLG", .window = 4096, BOTH(GQA(40, 8, 128)) },
    { .name = "EXAONE 4 32B", .n_layers = 64, .pattern = "LLLG", .window = 4096, BOTH(GQA(40, 8, 128)) },
    { .name = "Mellum 2 12B", .n_layers = 28, .pattern = "LLLG", .window = 1024, BOTH(GQA(32, 4, 128)) },
    { .name = "Trinity Mini (AFMoE)", .n_layers = 32, .pattern = "LLLG", .window = 2048, BOTH(GQA(32, 4, 128)) },
    { .name = "Granite-SWA", .n_layers = 24, .pattern = "GLLL", .window = 128, BOTH(GQA(20, 4, 128)), .sinks = "LG",
      .scale_dim = 128 * 128 },                          /* attention_multiplier 1/128 */
    { .name = "Llama 4 Scout", .n_layers = 48, .pattern = "LLLG", .window = 8192, .chunked = 1,
      BOTH(GQA(40, 8, 128)) },                           /* q of the full layers has a temperature, in the host */

    /* the two kinds differ in shape: desc.shapes */
    { .name = "Gemma 4 26B-A4B", .n_layers = 30, .pattern = "LLLLLG", .window = 1024,
      .local = GQA(16, 8, 256), .global = GQA(16, 2, 512), .scale_dim = 1 },
    { .name = "MiMo-V2-Flash", .n_layers = 48, .window = 128, .sinks = "L",
      .pattern = "GLLLLGLLLLLGLLLLLGLLLLLGLLLLLGLLLLLGLLLLLGLLLLLG",      /* 5:1, and the first one is full */
      .local = GQA_V(64, 8, 192, 128), .global = GQA_V(64, 4, 192, 128) },
    { .name = "Step-3.5-Flash", .n_layers = 45, .pattern = "GLLL", .window = 512,
      .local = GQA(96, 8, 128), .global = GQA(64, 8, 128) },
    { .name = "Laguna XS.2", .n_layers = 40, .pattern = "LLLG", .window = 512,
      .local = GQA(64, 8, 128), .global = GQA(48, 8, 128) },

    { .name = "Inkling 975B", .n_layers = 66, .pattern = "LLLLLG", .window = 512,
      .local = GQA(64, 16, 128), .global = GQA(64, 8, 128), .bias = 1024 },    /* no RoPE; q has a temperature */

    /* the last layers have no rows of their own: desc.kv_layer */
    { .name = "Gemma 3n E4B", .n_layers = 35, .pattern = "LLLLG", .window = 512, BOTH(GQA(8, 2, 256)),
      .scale_dim = 1, .n_shared = 15 },
    { .name = "Gemma 4 E2B", .n_layers = 35, .pattern = "LLLLG", .window = 512,
      .local = GQA(8, 1, 256), .global = GQA(8, 1, 512), .scale_dim = 1, .n_shared = 20 },

    /* latent rows; scale_dim = nope + rope, never the latent's width */
    { .name = "DeepSeek V3, R1", .n_layers = 61, .pattern = "G", BOTH(MLA(128, 512, 64)), .scale_dim = 128 + 64,
      .mscale = 1.3689 },                                /* 0.1 ln(40) + 1 */
    /* lists of keys: attn.pick. Which keys: swa_select over a cache of index keys (index.c), or your own */
    { .name = "DeepSeek V3.2", .n_layers = 61, .pattern = "P", BOTH(MLA(128, 512, 64)), .scale_dim = 128 + 64,
      .mscale = 1.3689, .pick = 2048, .pick_block = 1 },
    { .name = "GLM-5", .n_layers = 78, .pattern = "P", BOTH(MLA(64, 512, 64)), .scale_dim = 192 + 64, .pick = 2048,
      .pick_block = 1 },                                 /* 5.1, 5.2: some layers take the list of one before */
    { .name = "openPangu 2.0 Flash", .n_layers = 46, .pattern = "PLL", .window = 512, BOTH(MLA(64, 512, 64)),
      .scale_dim = 128 + 64, .pick = 2048, .pick_block = 1 },    /* heads and scale: see your config. And 128 learned
                                                            rows before position 0 in every layer: learned.c */
    { .name = "Qwen 3.8 Flash Next", .n_layers = 12, .pattern = "P", BOTH(GQA(24, 2, 256)), .pick = 513,
      .pick_block = 4 },                                 /* of 48; the others have no K and V. 512, and the last block
                                                            while it is not whole */
    { .name = "MiniMax-M3", .n_layers = 60, BOTH(GQA(64, 4, 128)), .pick = 16, .pick_block = 128, .pick_by_head = 1,
      .pick_own = 1, .pattern = "GGGPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPPP" },
    { .name = "DeepSeek V4 Flash", .n_layers = 43, .window = 128, .sinks = "CH", .pick = 512, .pick_block = 1,
      .rate = { 4, 128 }, .pattern = "HHHCHCHCHCHCHCHCHCHCHCHCHCHCHCHCHCHCHCHCHCH",
      BOTH(MLA(64, 512, 0)) },                           /* K = V, one row; H: all compressed rows, no list */

    /* q has a temperature, in the host */
    { .name = "Mistral Small 4", .n_layers = 36, .pattern = "G", BOTH(MLA(32, 256, 64)), .scale_dim = 64 + 64 },
};
/* clang-format on */
enum { N_FAMILIES = sizeof families / sizeof *families };

/* A desc and the arrays that it points to; init copies them, so that they may go afterwards. */
typedef struct {
    swa_cache_desc desc;
    swa_window windows[MOST_LAYERS];
    swa_shape shapes[MOST_LAYERS];
    int kv_layer[MOST_LAYERS], k_rows[MOST_LAYERS];
} family_room;

static inline char kind_of(const family *f, int layer) { return f->pattern[layer % (int)strlen(f->pattern)]; }
static inline int is_local(const family *f, int layer) { return strchr("GP", kind_of(f, layer)) == NULL; }

/* Columns of attn.bias [token][head][distance] in a layer; 0 = none. */
static inline int family_bias(const family *f, int layer) {
    return f->bias > 0 && is_local(f, layer) && f->window < f->bias ? (int)f->window : f->bias;
}

/* chunk: of prefill. Layers that read another's rows come after it has stored them, so that the ring of a family that
   shares holds a chunk more. The others take chunks of any length. Types, n_seqs, capacity: set them afterwards. */
static inline void family_desc(const family *f, int64_t max_context, int32_t chunk, family_room *room) {
    int period = (int)strlen(f->pattern), own = f->n_layers - f->n_shared;
    swa_cache_desc *d = &room->desc;
    memset(room, 0, sizeof *room);
    for (int l = 0; l < period; l++) {
        room->windows[l] = !is_local(f, l) ? swa_window_causal()
                         : f->chunked      ? swa_window_chunked(f->window)
                                           : swa_window_sliding(f->window);
        room->shapes[l] = is_local(f, l) ? f->local : f->global;
        room->k_rows[l] = kind_of(f, l) == 'P' && f->pick_block < 16; /* else keys are read in tiles of 16 */
    }
    for (int l = 0; l < f->n_layers; l++) {
        int from = l < own ? l : own - 1;
        while (is_local(f, from) != is_local(f, l)) from--;
        room->kv_layer[l] = from;
    }
    d->n_layers = f->n_layers;
    d->shapes = room->shapes;
    d->n_shapes = period;
    d->windows = room->windows;
    d->n_windows = period;
    d->k_rows = room->k_rows;
    d->n_k_rows = period;
    d->kv_layer = f->n_shared > 0 ? room->kv_layer : NULL;
    d->max_context = max_context;
    d->max_rollback = f->n_shared > 0 ? chunk : 0;
}

/* attn.scale, of one kind of layer. 0 would do where nothing is said: 1/sqrt(head_dim). */
static inline double family_scale(const family *f, const swa_shape *shape) {
    double dim = f->scale_dim > 0 ? f->scale_dim : shape->head_dim, mscale = f->mscale > 0 ? f->mscale : 1;
    return mscale * mscale / sqrt(dim);
}
#endif
