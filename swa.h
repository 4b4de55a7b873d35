#ifndef SWA__KERNEL_PASS /* this file includes itself once per instruction set: see [SECTION 10] */
/* swa.h - sliding-window attention for CPU inference engines. One header, C99, C++, no dependency.

   DO THIS once, in one source file:            and in every other file only:
       #define SWA_IMPLEMENTATION                   #include "swa.h"
       #include "swa.h"                         (best a file of its own, at -O2; link with -lm)

   A decoder's attention, whole: a ring-buffer KV cache that holds W keys per layer, and
   grouped-query attention over the ring and the new tokens. The same lines serve decode (n = 1),
   chunked prefill and a batch of both:

       swa_window win = swa_window_sliding(4096);          // W keys, the query's own included
       swa_cache_desc d = {0};
       d.shape.n_heads = 32; d.shape.n_kv_heads = 8; d.shape.head_dim = 128;
       d.n_layers = 32; d.windows = &win; d.n_windows = 1;
                         // layer l: windows[l % n_windows]; full attention: swa_window_causal(),
                         // and d.max_context. While you port: d.audit = 1; with lists of keys 2
       swa_cache kv;                                       // memory is yours: nothing is allocated
       size_t ring = swa_cache_bytes(&d);
       size_t room = swa_cache_scratch_bytes(&d, 1);       // 1: parts that run at once
       void *mem = malloc(ring), *scratch = malloc(room);  // free them when all is done
       if (swa_cache_init(&kv, &d, mem, ring) != SWA_OK) return 1;
       if (swa_cache_set_scratch(&kv, scratch, room) != SWA_OK) return 1;

       if (swa_step_one(&kv, 0, pos, n) != SWA_OK) return 1;   // once per step: n tokens of
       for (int l = 0; l < 32; l++) {                          // sequence 0, which is at pos
           ...                                                 // your q, k, v: f32, after RoPE
           swa_attn a = {0};
           a.q.p = q; a.k.p = k; a.v.p = v; a.out.p = out;     // q, out [n][32][128], k, v [n][8][128]
           if (swa_attend(&kv, l, &a) != SWA_OK) return 1;     // sees ring and new rows; stores them
           ...
       }

   Several sequences in one step: swa_step_begin() takes an array of runs. Your own threads: each
   worker calls swa_attend_part(&kv, l, &a, phase, part, parts) for phase 0, all join, then for
   phase 1, all join. Your own K/V rows, no ring: swa_attention(). Structs begin as zeros (C++: {},
   then assign fields), and zero is the default; a call that can fail returns a swa_status, 0 =
   SWA_OK, and a refused one has changed nothing that the cache contains: swa_cache_explain(),
   swa_step_explain() and swa_attend_explain() say in words why.

   WHAT THE LIBRARY PROMISES
   * A query at position q sees the key at position k iff swa_visible(window, q, k): 0 <= q - k < W.
   * Same bits out for any chunking, any batch, any number of parts, any capacity and rotation of
     the ring and any instruction set, for finite inputs and scores; under -ffast-math too
     (gcc; clang, on AArch64 from 16 on: older ones warn that they cannot. A program that flushes
     subnormal numbers to zero, as gcc -ffast-math links it, gets the bits of the flushed numbers).
   * No malloc, no globals (clang-cl: one word, what CPUID said), no printf, no stack frame over 8
     KiB (from -O1 on); cost per token O(W), at any position.
   * Exact or refused: a rewind that would need rows the ring has overwritten returns SWA_ERR_LOST.
   WHAT IT DOES NOT DO: models, weights, tokenizers, threads, memory, paging between sequences, GPU.

   TABLE OF CONTENTS (search for the tag)
       [SECTION 1]  PUBLIC API          types, then functions: shapes, errors, and cost where it
                                        is more than one pass over the arguments
       [SECTION 2]  PLATFORM            a map: where a call goes; switches, instruction sets
       [SECTION 3]  NUMBERS             overflow-checked sizes, f16, bf16
       [SECTION 4]  WINDOW              who sees whom: the one rule, its inverse
       [SECTION 5]  MASKS               dense, boolean, block-diagonal, 512x512 compressed
       [SECTION 6]  HELPERS             RoPE, YaRN, RMSNorm, Hadamard
       [SECTION 7]  RING                where a token lives
       [SECTION 8]  STEP                which tokens come now
       [SECTION 9]  KERNEL INTERFACE    what a kernel is given
       [SECTION 10] KERNEL TEMPLATE     the arithmetic, written once
       [SECTION 11] KERNEL INSTANCES    one block of vector operations per instruction set
       [SECTION 12] ATTENTION           segments, stage, work split, fold
       [SECTION 13] LATENT              DeepSeek's MLA on the same ring and engine
       [SECTION 14] INDEX               scores of an indexer, and the best of them: lists of keys
       [SECTION 15] HISTORY             versions, and what stays the same between them
       [SECTION 16] LICENSE

   WORDS: token - one row of q, k, v. position - a token's absolute number in its sequence, int64.
   window - who sees whom. sink - one of the first n_sink positions, pinned; a sink logit is
   something else (gpt-oss). slot - a place in the ring. run, step - above. segment - consecutive
   keys that lie in one buffer. block - 256 positions from a multiple of 256 on: the unit of the
   arithmetic. head group - the query heads that share one KV head.

   SOURCES of the rules (numbers: arXiv): [Mistral] Mistral 7B, 2310.06825: window, rolling buffer,
   chunks. [Patent] a Chinese application on ring buffers for sliding windows: another rule for
   slots. [ATB] the manual of Huawei's Ascend Transformer Boost: compressed masks. [MLA] an article
   on DeepSeek-V2's attention (2405.04434, section 2.1): all its factors merged beforehand. Pinned
   sinks: StreamingLLM, 2309.17453. ALiBi: 2108.12409. RoPE: 2104.09864. YaRN: 2309.00071. Softcap:
   Gemma 2, 2408.00118. Sink logits: gpt-oss, 2508.10925. Softmax in pieces: 1805.02867.

   THE RING of one sequence and layer, W = 8, capacity 8, after 13 tokens:
       slot        0  1  2  3  4  5  6  7
       position    8  9 10 11 12  5  6  7     slot = (position - origin) mod capacity
                               ^end-1 ^oldest

   EASY TO GET WRONG
   * n tokens are attended with the ring as it was before them, then stored: chunks longer than W
     are exact. Storing first (SWA_STORE_ONLY, then SWA_ATTEND_STORED) needs capacity >= W-1+n:
     swa_required_capacity().
   * K is cached after RoPE, with absolute positions. Scale 0 means 1/sqrt(head_dim), so q is not
     scaled before; with a tail it must be given.
   * Full attention needs d.max_context. windows and n_windows both forgotten is full attention too
     (ARG under d.audit = 1, which finds more: run your tests with it, or with 2, which looks at
     lists of keys and gaps between rows too; swa_rows has one as well); local and global layers in
     turn need a window for each place in their pattern.
   * StreamingLLM with S slots, n of them sinks: swa_window_sinks(S-n, n), and swa_attn.q_sink, a
     second copy of q, made before RoPE and rotated for min(pos, S-1), pos each token's own (of MLA
     q_sink_tail; in swa_mla sink_pos = S-1). Without it the first S tokens are right.
   * Positions count from the sequence's own start, not from the batch's. pos is the sequence's end,
     and yours to count: asked of swa_cache_end(), a forgotten reset goes unseen. To go back below
     it takes run.rewind = 1 (to the start it is always exact: after a warm-up, for a new text), or
     swa_cache_truncate(), swa_cache_reset(). A window that is full goes back by d.max_rollback
     tokens, 1 unless set. To write an answer anew: n_seqs 2, swa_cache_fork(&kv, 1, 0, -1) behind
     the prompt, and from there swa_cache_fork(&kv, 0, 1, -1).
   * A step is begun once for all layers and all sequences of a batch, by one call with a run for
     each: a begin of other sequences before a layer was called is SWA_ERR_ORDER. Every layer stores
     its rows before the next step (ORDER there; swa_cache_unstored() says which did not), and every
     part of both phases runs. Cancel, truncate and fork between steps. In mid-step that ends the
     step for all its sequences (a fork out of one does not), and a chunk of more than max_rollback
     tokens that a layer has stored is lost. To cancel in mid-step, finish the step, then reset.
   * Rows of q, k, v are packed in the order of the runs; run.row says where each run begins.
   * A stride of 0 is the packed one in q, k, v, out; in bias and pick it is 0, the same row or list
     for all tokens. Where that is forgotten, or the strides of [head][n][dim], decode is right and
     chunks are not. A fused [n][q | k | v] needs its token stride in all three: ARG else, for
     chunks.
   * What no check can see: n_kv_heads = n_heads though K has fewer, k and v exchanged, another type
     than your own rows have, some strides in bytes, q scaled before with scale 0, sink logits as
     exp(), times log2 e or in bf16, arrays of another layer. Compare one layer with what you had
     before, in a chunk.
   * A renamed copy of this file needs #define SWA_HEADER_FILENAME "its name" before the
     implementation.

   WHAT HAS TO STAY: of the caller's memory the library keeps, beside mem and scratch, the parents
   of a tree until the commit, and swa_plan its arrays; a desc's arrays are copied by init; those of
   a call are read until it returns, or the last part of its last phase. Strings are ASCII constants.

   CONFIGURATION (before the include): SWA_IMPLEMENTATION, SWA_STATIC (everything static), SWA_API
   (__attribute__((visibility("default"))), __declspec(dllexport) ...; without it gcc -O2 -shared
   -fPIC exports all, but under -fvisibility=hidden; from other languages: examples/hosts/
   bindings.md), SWA_NODISCARD (empty: no warning where a status is not looked at, to gcc a (void)
   is no look, (void)! is; or [[nodiscard]]), SWA_NO_OPENMP, SWA_HEADER_FILENAME.
   To leave out, where the implementation stands; of 512 KB of text by gcc 12.2 -O2 each saves about
   so many: SWA_NO_AMX (SWA_BF16_TILE by Intel's tile instructions, which x86-64 Linux and gcc 11 or
   clang 12 have) 15, SWA_NO_LATENTS (rows with a tail, V in K; the block too) 82, SWA_NO_MLA (the
   block alone) 61, SWA_NO_BF16 (the type, and products in it) 121, SWA_NO_LISTS (lists of keys,
   trees) 39, SWA_NO_INDEX (swa_select) 22, SWA_NO_F16 21, SWA_NO_Q8 18, SWA_NO_MODS (softcap,
   ALiBi, bias) 8, SWA_NO_STAGED (q8 by 32 numbers, fp8) 6, SWA_NO_BLOB (save, load) 4, SWA_NO_MASKS
   3, SWA_NO_AVX512 183, SWA_NO_AVX2 95, SWA_NO_SIMD 290 (all vectors), and SWA_SMALL 114: fewer
   shapes of kernels, the same bits; decoding with groups of 2 or 3 takes 1.2 times as long, panels
   of 16 rows or fewer (MLA of 16 heads) and few rows of SWA_BF16 1.2 to four times, decode in f32
   on Zen 4 1.1 times. What is left out is refused (a type: ARG), or not declared. An engine of f32
   and f16 alone, without the block, index, lists, masks and blobs, takes 230 KB; without latents
   and modifications too 210 (152 without AVX-512, 177 with SWA_SMALL); SWA_STATIC, which drops
   every function that it does not call, takes about 20 off.
   All of it takes 10 s of one core by gcc 12.2 -O2 and 9 by clang 14 -O2 (580 KB) on Intel's Granite
   Rapids of 2024, and 30 s on a shared core of 2017 (`make weight`). */

/* Macros and shapes stand in columns here, by hand; `make lint` holds them to 100: */
/* clang-format off */

/* ==== [SECTION 1] PUBLIC API =====================================================================
   Shapes stand behind every pointer, last index fastest. Sizes are in elements unless a name ends
   in bytes. */
#ifndef SWA_H_INCLUDED
#define SWA_H_INCLUDED
#include <stddef.h>
#include <stdint.h>

#if defined(SWA_NO_LATENTS) && !defined(SWA_NO_MLA)
#  define SWA_NO_MLA
#endif
#ifndef SWA_API
#  ifdef SWA_STATIC
#    if defined(__GNUC__) || defined(__clang__)
#      define SWA_API static __attribute__((unused))
#    else
#      define SWA_API static
#    endif
#  else
#    define SWA_API extern
#  endif
#endif
#ifndef SWA_NODISCARD /* warns where a status is not looked at; define it empty for silence       */
#  if defined(__GNUC__) || defined(__clang__)
#    define SWA_NODISCARD __attribute__((warn_unused_result))
#  else
#    define SWA_NODISCARD
#  endif
#endif
#define SWA_CHECKED SWA_NODISCARD SWA_API /* in this order: [[nodiscard]] comes first           */
#ifdef __cplusplus
extern "C" {
#endif

/* Number and text of this version, 10000*major + 100*minor + patch. Before 1.0 everything may
   change between minor versions; what [SECTION 15] says has changed is all that has. */
#define SWA_VERSION 900
#define SWA_VERSION_STRING "0.9.0"
/* SWA_VERSION of the implementation: what a binding to a shared library compares with its own. */
SWA_API int swa_version(void);

#define SWA_BLOCK  256   /* keys per block, from multiples of 256 on; a constant of the bits
                            promise                                                               */
#define SWA_PHASES 2     /* phases of an attention call: 0 attends (reads the ring), 1 folds
                            splits and stores                                                     */

typedef enum {
    SWA_OK = 0,
    SWA_ERR_ARG,         /* NULL, negative, inconsistent, or an invalid window: which, say
                            swa_cache_explain(), swa_attend_explain() and their like              */
    SWA_ERR_OVERFLOW,    /* a size or position does not fit                                       */
    SWA_ERR_MEMORY,      /* the buffer given is too small: *_bytes() says what is enough          */
    SWA_ERR_ORDER,       /* pos is not end() and no rewind was asked for; no step was begun; a
                            layer that has stored this step's rows, or lacks an earlier one's; a
                            phase before which a part was left out; rows that are not stored yet,
                            or a tree of which no path was accepted yet; part, phase or layer out
                            of range                                                              */
    SWA_ERR_LOST,        /* exact only with rows that the ring has overwritten: ask
                            swa_cache_replay_from()                                               */
    SWA_ERR_CAPACITY,    /* rows were stored before they were attended, and n > capacity-(W-1): a
                            row that they need was overwritten. Or a tree of so many nodes, which
                            could not be taken back                                               */
    SWA_ERR_FULL,        /* a causal layer, or one whose W exceeds max_context, would pass
                            max_context: copy the sequence into a larger cache, or shift it:
                            swa_cache_read()                                                      */
    SWA_ERR_UNSUPPORTED, /* legal, but not with this type, instruction set or window (a ring with
                            a right extent or a prefix)                                           */
    SWA_ERR_BLOB         /* save blob cut, altered, or of another geometry                        */
} swa_status;

/* Element types of K, V and tails. 0 is the default: F32, or for V and tail the type of K.
     F32, F16   IEEE half in a uint16_t
     BF16       the upper half of a float
     Q8         int8, one f32 scale per slot and KV head; in a ring alone
   and staged types, for which no kernel has loops: each block is widened to f32 first, in decode
   too, so that a ring has the bits of one in F32 that holds the same numbers:
     Q8_32      int8, one f32 scale per 32 numbers of a row (the last ones may be fewer), of which
                the largest is 127 times it
     E4M3       OCP's fp8 of 3 bits and a leading one, to 448; no infinity; NaN is 0x7f and 0xff
     E5M2       of 2 bits, to 57344; infinities and NaN as in F16, whose upper byte it is
   All but F32 cut what is too large, an infinity too. A NaN stays one in F32, Q8_32 and fp8; in the
   others it becomes a number, the lowest (audit refuses it before). fp8 goes to nearest
   even, keeps subnormals and has no scale: a host that scales K divides attn.scale by that, and one
   that scales V divides out. Time by F16's (one thread, head_dim 128; Granite Rapids and Zen 5, the
   latter alone in prefill); error beside exact K and V (relative L2, bench/outliers.c: normal
   numbers, then 2 channels of K 20 times as large):
                                       Q8      Q8_32    E4M3     E5M2
     decode, W 4096, groups of 4       0.7     1.6-2.0  1.5-1.8  1.6-1.7     AVX2: 0.8-1.0, 1.4-2.2
     prefill 8192, W 1024              1.0     1.1      1.1      1.1
     ... W 4096, in chunks of 512      1.0     1.0      1.0      1.0
     error of K; of V                  1.1e-2  8.9e-3   4.3e-2   9.5e-2
                                       6.3e-3  5.3e-3   2.6e-2   5.3e-2
     ... with large channels, K        0.12    0.057    0.054    0.11        Q8 rotated by
                                                                             swa_hadamard: 0.023
   Caller's own rows: all but Q8; Q8_32 there is ggml's block_q8_0: a scale in F16, then 32 int8, 34
   bytes; dims and strides are multiples of 32, else UNSUPPORTED. Masks: F32, F16, BF16 (added to
   the scores), or bytes in either polarity. */
typedef enum {
    SWA_TYPE_DEFAULT = 0,
    SWA_F32 = 1,
    SWA_F16 = 2,
    SWA_BF16 = 3,
    SWA_Q8 = 4,
    SWA_BOOL_MASKED = 5, /* 1 = hidden (Ascend, key_padding_mask) */
    SWA_BOOL_KEEP = 6,   /* 1 = visible (PyTorch SDPA, xformers)  */
    SWA_OPAQUE = 7,      /* weights that only the host can read: swa_matrix */
    SWA_BF16_TILE = 8,   /* a way to multiply, nothing is stored in it: swa_attn.compute */
    SWA_Q8_32 = 9,
    SWA_E4M3 = 10,
    SWA_E5M2 = 11
} swa_type;

/* Instruction sets, for .isa fields and swa_isa_*(). All give the same bits. */
enum {
    SWA_ISA_BEST = 0,
    SWA_ISA_SCALAR /* plain C; on x86-64 SSE2, which all of them have */,
    SWA_ISA_NEON,
    SWA_ISA_SIMD128 /* WebAssembly */,
    SWA_ISA_AVX2,
    SWA_ISA_AVX512
};

/* ---- window: who may see whom ---- */

/* Made by the constructors below; {0} is causal without limit (left or right set in it: ARG, it
   has none; under audit ARG as it stands, since it may have been forgotten). The number in other
   people's APIs, and ours:
     Mistral, HF, llama.cpp n_swa, MLX, vLLM, gpt-oss, gemma: W  swa_window_sliding(W)
     ONNX Runtime local_window_size = W from 1.23 on             swa_window_sliding(W)
     the same before 1.23, where it sees W+1 keys                swa_window_flash(W, 0)
     FlashAttention window_size = (l, r),
     xformers LocalAttentionFromBottomRight                      swa_window_flash(l, r)
     FlashInfer window_left = l, Ascend pre_tokens = l,
     SGLang sliding_window_size = l (the config's W, less 1)     swa_window_flash(l, 0)
     Llama 4 attention_chunk_size, llama.cpp CHUNKED,
     FlashAttention-3 attention_chunk                            swa_window_chunked(c)
     llama.cpp SYMMETRIC n_swa                                   swa_window_symmetric(n_swa/2)
     ModernBERT local_attention (HF halves it)                   swa_window_symmetric(it/2)
     EmbeddingGemma's W in config.json (HF: W/2+1, |q-k| < it)   swa_window_symmetric(W/2)
     blocks that see all of themselves (Whisper, Qwen's audio)   swa_window_flash(-1, -1), a
                                                                 swa_attention for each block
     "0 or absent means full attention": test for it and use swa_window_causal(); sliding(0) is
     invalid on purpose. */
typedef struct swa_window {
    int     kind;          /* private; set by the constructors                                    */
    int32_t n_sink;        /* positions 0..n_sink-1 stay visible to every later query
                              (StreamingLLM); may be set                                          */
    int64_t left, right;   /* keys visible before (W-1) and after the query (0: none), -1 = no
                              limit; chunked: left is the chunk; causal: 0. To be asked by
                              swa_visible(), not read                                             */
    int64_t prefix, prefix_first;   /* positions, not lengths: queries in [prefix_first, prefix)
                                       see all keys there (prefix-LM); rings take this per run    */
} swa_window;

/* The query itself is one of the W keys; -1 in flash is no limit. */
SWA_API swa_window swa_window_causal(void);                       /* k <= q                       */
SWA_API swa_window swa_window_sliding(int64_t W);                 /* 0 <= q-k < W: W keys         */
SWA_API swa_window swa_window_flash(int64_t left, int64_t right); /* -right <= q-k <= left        */
SWA_API swa_window swa_window_chunked(int64_t chunk);             /* k <= q, k/chunk == q/chunk   */
SWA_API swa_window swa_window_symmetric(int64_t reach);           /* |q-k| <= reach               */
SWA_API swa_window swa_window_sinks(int64_t W, int32_t n_sink);   /* sliding(W), and k < n_sink   */
SWA_API swa_window swa_window_prefix(int64_t W, int64_t prefix);  /* both ways below prefix; full
                                                                     otherwise (PaliGemma): causal(),
                                                                     then .prefix                 */
/* Nonsense (W <= 0, negative sinks, ...) gives a window that every call refuses with
   SWA_ERR_ARG. */

/* The rule: 1 if the query at position q sees the key at position k, else 0 (also for an invalid
   window or q, k < 0). Everything in this library that depends on a window follows from this
   function. */
SWA_API int         swa_visible(const swa_window *window, int64_t q, int64_t k);
/* Its inverse: the visible keys of q are [*lo, *hi), and besides them the sinks [0, min(n_sink,
   q+1)). ARG: an invalid window, q < 0. OVERFLOW: q is INT64_MAX, which is no position. */
SWA_CHECKED swa_status swa_visible_range(const swa_window *window, int64_t q, int64_t *lo,
                                         int64_t *hi);
/* One English phrase: visible, or why not. A constant string; for logs and tests. */
SWA_API const char *swa_explain(const swa_window *window, int64_t q, int64_t k);

/* ---- masks, for other people's kernels (ours reads none) ---- */

/* One rectangle, or the block-diagonal mask of a ragged batch: block b has n_q[b] rows for the
   queries from position q_pos0[b] on and n_k[b] columns for the keys from k_pos0[b] on; outside its
   own block everything is hidden. k_padding > 0: block b's columns start at b*k_padding, and there
   are n_blocks*k_padding of them.
   xformers names, with nq, nk the block's lengths:
     BlockDiagonalCausal*             q_pos0 = 0,     k_pos0 = 0, causal, or sliding(W):
                                      .make_local_attention
     BlockDiagonal*FromBottomRight*   q_pos0 = nk-nq, k_pos0 = 0, causal or sliding(W)
     BlockDiagonal*PaddedKeys*        the same with nk = kv_seqlen and k_padding
     BlockDiagonalMask                q_pos0 = 0,     k_pos0 = 0, flash(-1, -1)
   mistral-inference, chunk of n tokens at position p over a ring of W: q_pos0 = p,
   k_pos0 = p-min(p,W), n_k = min(p,W)+n: columns run sequence by sequence, cache then chunk. */
typedef struct swa_mask_desc {
    swa_window window;
    const int64_t *q_pos0, *k_pos0;   /* [n_blocks]; NULL = all 0                                 */
    const int32_t *n_q, *n_k;         /* [n_blocks]                                               */
    int      n_blocks;                /* 0 = 1                                                    */
    int32_t  k_padding;               /* 0 = columns packed; else at least each n_k               */
    swa_type type;                    /* F32, F16, BF16, BOOL_MASKED, BOOL_KEEP                   */
    float    masked;                  /* value of a hidden entry; 0 = -65536 (F16: -65504, its
                                         lowest); -INFINITY where an engine wants it (ggml).
                                         Ignored for BOOL. A value that the type cannot hold is
                                         refused                                                  */
} swa_mask_desc;
#ifndef SWA_NO_MASKS
SWA_API size_t     swa_mask_bytes(const swa_mask_desc *desc);     /* 0 = invalid, overflow, empty */
SWA_CHECKED swa_status swa_mask(const swa_mask_desc *desc, void *out /* [sum n_q][columns] */,
                                size_t bytes);

/* The 512x512 compressed mask of Ascend's ATB [ATB]. The document's two samples are different
   functions, for two NPU kernels, each wrong in a corner: PY and CPP reproduce them to the byte,
   910B and 310P are the right masks for the two kernels. head_dim: the kernels' 1..256, as expand;
   PY any, CPP to 1024, as the samples take them. */
typedef enum {
    SWA_COMPRESSED_PY,
    SWA_COMPRESSED_CPP,
    SWA_COMPRESSED_910B,
    SWA_COMPRESSED_310P
} swa_compressed;
/* tile size; 0 = invalid */
SWA_API int        swa_compressed_block(swa_compressed kind, int head_dim);
/* Visible keys per row of the picture: W, but above three tiles (310P: from three on) two tiles and
   the rest of W, as the kernel fills in what lies between; of no rest PY and 910B take a tile. 0 =
   invalid */
SWA_API int64_t    swa_compressed_band(swa_compressed kind, int64_t W, int head_dim);
SWA_CHECKED swa_status swa_mask_compressed(swa_compressed kind, int64_t W, int head_dim,
                                           swa_type type, float masked, void *out /* [512][512] */,
                                           size_t bytes);
/* What the NPU kernel of that kind (PY reads as 910B, CPP as 310P) makes of a compressed mask: out
   is the full mask. type and masked of both calls as in swa_mask_desc. */
SWA_CHECKED swa_status swa_mask_expand(swa_compressed kind, const float *mask512 /* [512][512] */,
                                       int64_t W, int head_dim, int64_t S, float masked,
                                       float *out /* [S][S] */, size_t bytes);
#endif

/* ---- cache: layers x sequences, one ring each ---- */

/* A K row is [head_dim | tail_dim], the tail with a type of its own (MLA's rope part). v_in_k: V is
   the first v_dim numbers of K, nothing is stored twice (MLA: head_dim = v_dim = kv_lora_rank,
   tail_dim = rope); swa_attn.v is not looked at then, whatever it is. */
typedef struct swa_shape {
    int n_heads, n_kv_heads;      /* query heads, KV heads; both required, n_heads a multiple of
                                     n_kv_heads. Head h reads KV head h / (n_heads/n_kv_heads)    */
    int head_dim;                 /* numbers of a K row and of q, without the tail. Each of these
                                     to 2^20, else ARG                                            */
    int v_dim;                    /* numbers of a V row and of out; 0 = head_dim                  */
    int tail_dim, v_in_k;         /* 0 = no tail, V apart                                         */
} swa_shape;
/* What rows are stored as: k 0 = F32; v, tail 0 = as k. */
typedef struct swa_types { swa_type k, v, tail; } swa_types;
/* Layers that share rows (Gemma 3n and 4, a drafter's layers): a layer with kv_layer[l] != l has
   query heads and a window of its own, and reads, finds stored or stores the other layer's rows.
   Readers may be left out of a step, for all of its sequences (one that is forgotten is not
   noticed), as a drafter's where others bring chunks; a step of readers alone there is not
   (swa_cache_spans, swa_attention). There are two ways:
     * The layer that has the rows attends and stores (SWA_ATTEND); its readers come with q alone
       (SWA_ATTEND_STORED): SWA_ERR_ORDER before that, SWA_ERR_CAPACITY for more tokens of a run
       than capacity-(W-1), W the reader's own. Decoding fits (but where capacity is W-1), causal
       layers fit always; for chunks set max_rollback to the longest one, since the call that does
       not fit comes when other layers have stored theirs; then only a reset or a rewind to the
       start helps.
     * For any number of tokens: each is given the same k and v, and the last one to be called
       stores them (SWA_ATTEND), all before it do not (SWA_ATTEND_NO_STORE). */
typedef struct swa_cache_desc {
    swa_shape shape;              /* of every layer; or, where layers differ, ...                 */
    const swa_shape *shapes;      /* ... [n_shapes], copied; layer l has shapes[l % n_shapes].
                                     Both: ARG                                                    */
    int       n_shapes;
    int       n_layers, n_seqs;   /* n_layers to 2^20 (else ARG), n_seqs to 2^24 (else OVERFLOW)
                                     and 0 = 1. Lists that repeat over the layers (shapes, types,
                                     windows, k_rows) do so each by itself: one that is too short
                                     gives layers another's                                       */
    swa_type  k_type, v_type, tail_type;   /* what rows are stored as; those that you pass are f32
                                     whatever it is. Of every layer that has such rows: k_type 0
                                     = F32; v_type, tail_type 0 = as k_type. Or, where layers
                                     differ, ...                                                  */
    const swa_types *types;       /* ... [n_types], copied; layer l has types[l % n_types].
                                     Both: ARG                                                    */
    int       n_types;
    const swa_window *windows; /* [n_windows], copied; layer l has windows[l % n_windows]; NULL =
                                  all causal. No prefix (runs have it), nothing to the right      */
    int       n_windows;
    const int *k_rows;            /* [n_k_rows], copied; layer l has k_rows[l % n_k_rows]; NULL =
                                     all 0. 1: K and tail lie in rows (as a rule the tail behind
                                     its row of K), not in tiles of 16 keys:
                                     for layers read by lists of single keys (swa_attn's pick),
                                     where a tile would be read for one key in it. Same bits;
                                     calls without a list are slower over such a layer            */
    int       n_k_rows;
    const int *kv_layer;          /* [n_layers], copied; NULL: every layer has rows of its own
                                     (the usual case). Else kv_layer[l] is the layer whose rows l
                                     reads: l itself, or one that has rows of its own, with the
                                     same shape but for n_heads, the same types and sinks and a
                                     window that reaches no less far. All are filled in: no -1,
                                     and 0 is layer 0. How readers are called: see above          */
    int64_t   max_context;        /* positions, from a sequence's first on, that causal layers
                                     hold. Required if a layer is causal. A window W above it has
                                     max_context slots, too (unless capacity is given), and begin
                                     is FULL beyond them; smaller windows are not bound by it     */
    int64_t   max_rollback;       /* how many of a sequence's last tokens can always be taken
                                     back, counted from the furthest end that it has had (of 8:
                                     end 20, truncate to 14, then to 12, and no further until the
                                     end is beyond 20): a draft of n tokens of which none may be
                                     accepted needs n (a sure token and n drafts in one step: n as
                                     well; a tree of n nodes, the sure token among them, needs n).
                                     0 = 1, or where capacity is given capacity - (W-1). Slots are
                                     rounded up to 16, so that more may be permitted: do not rely
                                     on it (audit permits no more). What is stored before it is
                                     attended (SWA_ATTEND_STORED, swa_select) fits in chunks of up
                                     to max_rollback too                                          */
    int64_t   capacity;           /* exact slots of every windowed layer, whatever its W: at
                                     least W-1+max_rollback, else ARG. 0: each has
                                     W-1+max_rollback rounded up to 16. Sinks come on top. No
                                     multiple of 16: same bits; decode as fast over windows of
                                     thousands, slower over short ones (512: 1.6 times, 128:
                                     2.3), where the block that straddles the wrap counts: it is
                                     moved                                                        */
    int       isa;                /* 0 = best; one that this machine lacks: UNSUPPORTED           */
    int       audit;              /* 1: for debugging and an engine's tests, with the same bits
                                     out. Lost rows are filled with NaN, so that an output made
                                     from one is NaN, slots are not rounded up and rings count
                                     as full (back by more than max_rollback is LOST, in a short
                                     text too), and what is legal but seldom meant is ARG: no
                                     windows, or one that is {0}, several of which no layer
                                     needs the max_context that is given, more windows, shapes,
                                     types or k_rows than layers, all (-1) of an empty sequence
                                     forked or copied into one that is not, q, k and v in one
                                     place (V in K without v_in_k), arrays of one token that run
                                     into each other, strides in bytes (of q, k and v all), a NaN
                                     in swa_attn's q, k or v, arrays at odd addresses, a scale
                                     above 2, a bias row for all tokens that hides the last one's
                                     own key, sinks that have left the window without q_sink or
                                     sink_pos, lists (pick) of which some overlap. Numbers of k or
                                     v that change between phase 0 and 1 are ORDER there. 2: and a
                                     list with an entry >= 0 that names no key which its query
                                     sees, instead of being skipped, or one below -1, or with key
                                     0 again and again (as int64 lists have), or of no entry where
                                     nothing else is seen; and a swa_mla.c_q that is not h's      */
} swa_cache_desc;
/* All state lives in mem, which stays where it is: calls on memory that was moved there or used for
   something else are ARG; on memory that was freed (a vector that grew) nothing can be said. A copy
   of this is an alias. Nothing to destroy: free mem and scratch, and call no more. */
typedef struct swa_cache { void *mem_; } swa_cache;

/* What is wrong with a desc, by its field; NULL = nothing (where init refused then, mem is NULL or
   too small). *layer (may be NULL): the first layer that is wrong; -1: not one layer's fault, or an
   entry of windows, types. */
SWA_API const char *swa_cache_explain(const swa_cache_desc *desc, int *layer);
/* 0 = invalid or overflow. In a ring a V row is rounded up to 16 numbers, and capacities to 16
   slots: heads of 8 take half as much again as their numbers. */
SWA_API size_t     swa_cache_bytes(const swa_cache_desc *desc);
/* mem of any alignment (64 and huge pages are faster), uninitialised. Refused: mem is untouched,
   and *cache is zeros, a cache that every call refuses with ARG (also if it was one in use: its
   mem is as it was). A new cache has no scratch, and of mem its head alone is written: pages of
   rows are touched as rows come. ARG: mem NULL (a malloc that failed), and what
   swa_cache_explain() tells, most often a causal layer without max_context, windows without
   n_windows (likewise shapes, types), an invalid window (sliding(0)), n_kv_heads left 0, n_heads
   that is no multiple of it, or capacity below W-1+max_rollback. OVERFLOW: a layer of more than
   2^31-16 slots, its sinks included. */
SWA_CHECKED swa_status swa_cache_init(swa_cache *cache, const swa_cache_desc *desc, void *mem,
                                      size_t bytes);
/* Scratch: the memory that calls on this cache work in, besides the ring. It is yours, and every
   swa_attend needs it, also SWA_STORE_ONLY; uninitialised. parts: how many are to run at once
   (OpenMP: omp_get_max_threads(); with less, swa_attend takes fewer threads); any number of tokens.
   A part takes 0.2 MB for heads of 8, 1.3 for 64, 2.5 for 128 and 3.5 for 512 + 64 (MLA); several
   parts also keep the results of keys split over them. 0 = invalid or overflow. (A desc that is
   kept for such questions needs its lists kept too: init has copied them, desc points to yours.) */
SWA_API size_t     swa_cache_scratch_bytes(const swa_cache_desc *desc, int parts);
/* NULL, 0: the cache has none any more. MEMORY: too little for one part (also a 0 that
   swa_cache_scratch_bytes gave), ARG: within the ring's own memory; the scratch from before stays.
   Too little for the parts of a call is MEMORY there. Nothing in it is kept from step to step:
   several caches may share it whose calls do not overlap, and it may be set anew between calls (a
   thread pool that grows), not between their phases. */
SWA_CHECKED swa_status swa_cache_set_scratch(swa_cache *cache, void *mem, size_t bytes);
/* Empties one sequence; its next run begins at start. slot = (position - origin) mod capacity:
   origin 0 is Mistral's rule, L-n for a first prompt of L > n tokens and n slots is [Patent]'s. A
   new cache is reset to 0, 0. ARG: one of them negative; OVERFLOW: start 2^63-1. */
SWA_CHECKED swa_status swa_cache_reset(swa_cache *cache, int seq, int64_t start, int64_t origin);
/* Forgets positions >= end, in all layers or none: SWA_ERR_LOST if the next token would need
   overwritten rows (raise max_rollback, or begin again: swa_cache_replay_from()), ORDER beyond the
   sequence's end, ARG below 0. end <= start empties: the next run begins at end. A layer forgets
   rows exactly if it holds all that the next token needs, or if that needs none (W = 1, the start
   of a chunk). */
SWA_CHECKED swa_status swa_cache_truncate(swa_cache *cache, int seq, int64_t end);
/* dst becomes a copy of src's rows before end (-1 = all; below: ARG): shared prompts, beams. Of an
   empty src nothing is left in dst (audit: ARG, for all). Cost: the copied rows. dst == src
   truncates. SWA_ERR_LOST where truncate(end) would be: keep a shared prompt in a sequence that
   stays at its end. ORDER: end lies beyond src's, or, in the middle of a step, beyond the rows that
   every layer has stored. Beams that change places need a spare sequence: a fork into one
   overwrites what a later fork may read. (dst first, as memcpy; llama.cpp's seq_cp: src.) */
SWA_CHECKED swa_status swa_cache_fork(swa_cache *cache, int dst, int src, int64_t end);
/* The same between two caches of equal rows: n_layers, windows, kv_layer, types, and shapes but for
   n_heads (else ARG). Capacity, max_rollback, max_context and all else may differ, so that a cache
   which has become too small is copied into a larger one; a smaller one takes the latest rows that
   it has slots for. FULL: where begin would be. The scratch is not copied: each cache has
   what was set for it. */
SWA_CHECKED swa_status swa_cache_copy(swa_cache *to, int dst, const swa_cache *from, int src,
                                      int64_t end);
/* Next position to append, a begun step counted; -1 = bad argument, as a cache of zeros that was not
   made yet, here and below. To look at: count pos yourself. Of one that begin gets from here a
   forgotten reset or truncate goes unseen, and it is behind a step that died, not at it. */
SWA_API int64_t    swa_cache_end(const swa_cache *cache, int seq);
/* The oldest row that a layer's ring holds, sinks apart; end if there is none. All from there to
   the end are there. From begin on the rows of a step count as there, and what they push out as
   gone, although attend stores them later: to the step itself the old rows are still there. Reading
   a row before it is stored is ORDER. */
SWA_API int64_t    swa_cache_first(const swa_cache *cache, int seq, int layer);
/* The first layer that has not stored all rows up to the end, which a step has announced: what was
   left out when the next step is SWA_ERR_ORDER. -1 = none, or bad argument. */
SWA_API int        swa_cache_unstored(const swa_cache *cache, int seq);
/* smallest end > start that truncate accepts; end if none is smaller. Of those between, some may be
   refused: where tokens are pinned an end among or right behind them is exact again. */
SWA_API int64_t    swa_cache_min_end(const swa_cache *cache, int seq);
/* Where a replay has to start, after swa_cache_reset, for position pos to be exact again: pos minus
   the sum of W-1 over the layers (of a chunked one back to its chunk's start), or the start if a
   layer is causal or tokens are pinned. (With shared rows less may do.) */
SWA_API int64_t    swa_cache_replay_from(const swa_cache *cache, int seq, int64_t pos);
/* of a position that is there, sinks first; else -1 */
SWA_API int64_t    swa_cache_slot(const swa_cache *cache, int seq, int layer, int64_t pos);
/* Unrotate: rows pos..pos+n-1, oldest first, as f32. k [n][n_kv_heads][head_dim+tail_dim], v
   [n][n_kv_heads][v_dim]; either may be NULL; ARG if they overlap. ORDER: not stored yet. LOST:
   overwritten. (To shift a text by s, so that it goes on in a full context: read what stays,
   swa_rope K by -s (with mscale 0: YaRN's is in K already), swa_cache_reset, and one step of
   SWA_STORE_ONLY; rows that a window has lost nobody will see. In a spare sequence, which is then
   forked back, a layer's rows at a time do.) */
SWA_CHECKED swa_status swa_cache_read(const swa_cache *cache, int seq, int layer, int64_t pos,
                                      int32_t n, float *k, float *v);
#ifndef SWA_NO_BLOB
/* seq -1 = all sequences; 0 = bad argument */
SWA_API size_t     swa_cache_save_bytes(const swa_cache *cache, int seq);
SWA_CHECKED swa_status swa_cache_save(const swa_cache *cache, int seq, void *blob, size_t bytes);
/* save: only between steps; ORDER while a layer has not stored rows of a step. load: bytes is the
   blob's own size, as swa_cache_save_bytes told it, not its buffer's. Positions are kept as they
   were. A blob of one sequence goes into any sequence of any cache that swa_cache_copy could copy
   it to, with slots, scratch, parts and instruction set of its own, on a machine of the same byte
   order; a blob of all (seq -1) into a cache of as many sequences, with seq -1. Else SWA_ERR_BLOB,
   or FULL as there. Cost of either: every row is moved number by number and hashed, which takes
   some 5 times as long as a copy of its bytes, in cache 15. */
SWA_CHECKED swa_status swa_cache_load(swa_cache *cache, int seq, const void *blob, size_t bytes);
/* Why load would refuse this blob, in words; NULL = it would not. Only looks. */
SWA_API const char *swa_cache_load_explain(const swa_cache *cache, int seq, const void *blob,
                                           size_t bytes);
#endif
/* Slots for an engine that stores a chunk before it attends: W-1 + max(chunk, rollback, 1).
   0 = invalid or unlimited. */
SWA_API int64_t swa_required_capacity(const swa_window *window, int64_t max_chunk_put_first,
                                      int64_t max_rollback);

/* ---- step: which tokens come now ---- */

/* n > 0 new tokens of one sequence, at positions pos..pos+n-1. pos is the sequence's end: 0 at
   first, or where reset said. Anything else is SWA_ERR_ORDER, unless a step that died halfway is
   begun again at its own position, or rewind says that it is meant: then, in both cases, positions
   from pos on are forgotten first, exactly or with SWA_ERR_LOST. */
typedef struct swa_run {
    int     seq;
    int64_t pos;
    int32_t n;
    int     rewind;     /* 1: pos < end is meant (a draft was rejected, an answer is written
                           anew); neither 0 nor 1: ARG. A begin that is accepted sets it back to
                           0, so that a run which is used again rewinds only if that is meant.
                           Always 1: a pos that was not advanced is no error any more             */
    int64_t prefix;     /* > pos: the run's tokens before position prefix all see each other
                           (prefix-LM, image spans) besides what the window shows them, also what
                           lies left of the window; the span must lie within the run, so that
                           prefix <= pos is ARG: 0 = none, as for what is decoded behind it. One
                           span a run, whole (swa_plan cuts without regard to that)               */
    int64_t prefix_first;   /* position of the span's first token, where text lies before an image
                               in the run; 0 = pos. ARG: not within [pos, prefix)                 */
    int32_t row;        /* out: the run's first packed row                                        */
    swa_status status;  /* out: SWA_OK, or why this run was refused                               */
    const int32_t *parents;   /* [n] the run is a tree of drafts; NULL: a chain. Not copied: the
                                 array has to live, unchanged, until swa_cache_commit returns     */
} swa_run;
/* Begins a step: n_runs > 0 runs, packed in this order, a sequence at most once. Checks every run
   against every layer, and refuses all or none; rewinds; sets row. Once per step, from one thread,
   before layer 0; runs are copied. With reset, truncate, commit, fork, copy and load the only call
   that changes which positions a cache has. Once begun, the rows count: every layer has to store
   them. Until then the next step of the same sequences is SWA_ERR_ORDER (others may go on).
   * A step that died halfway is begun again at its own pos, with any n, or taken back by truncate.
     Both are exact as long as no layer has been called to store; then exact or SWA_ERR_LOST, since
     a chunk of more than max_rollback tokens has overwritten rows that were there.
   * A begin that is refused changes no sequence, but leaves no step, also not the one before: every
     attend returns its status. Where a layer still lacks rows of such a chunk only swa_cache_reset,
     or a rewind to the start, helps (truncate to within it is accepted, and mends nothing). So call
     the layers that swa_cache_unstored() names before any other begin.
   * One step at a time per cache. ORDER, too, where the step before had no layer called and none of
     its sequences is in this one: a batch that is begun in pieces. Begin all of its runs by one
     call (the same begin once more drops the step before).
   * Reset, truncate, commit and load of a sequence of the step, and fork and copy into one, end it
     for all of its sequences (attend: ORDER), which are begun again as above.
   Cost: a few comparisons per run and layer; no row is touched. */
SWA_CHECKED swa_status swa_step_begin(swa_cache *cache, swa_run *runs /* [n_runs] */, int n_runs);
/* Why begin would refuse this run now, by itself, in words; NULL = it would not. (Of swa_step_one:
   a run of zeros with its seq, pos and n.) A second run of a sequence is known by the status that
   begin left in it. After a begin that was refused because a batch was begun in pieces it still
   says so, although that begin, called once more, would succeed and drop the others' step. */
SWA_API const char *swa_step_explain(const swa_cache *cache, const swa_run *run);
/* Begins n tokens of one sequence from its end on, which pos has to be (else ORDER). To go back, or
   to drop a tree: swa_cache_truncate first; to start a new text: swa_cache_reset(cache, seq, 0, 0). */
SWA_CHECKED swa_status swa_step_one(swa_cache *cache, int seq, int64_t pos, int32_t n);
/* packed rows of the step; 0 = none is begun */
SWA_API int32_t    swa_step_tokens(const swa_cache *cache);

/* Trees of drafts (Medusa, EAGLE, SpecInfer): a run with parents holds several ways in which its
   sequence may go on. Token i follows token parents[i] < i, or if that is -1 the sequence's last
   one; it stands at pos plus the number of tokens above it, and of the run sees those and itself,
   where the window shows them: the output has the bits of that path decoded alone. RoPE, ALiBi and
   bias go by these positions: swa_tree_positions().
     swa_run run = {0}; run.pos = pos; run.n = n; run.parents = parents;
     ...                                          // begin, all layers, verify, then:
     swa_cache_commit(&kv, 0, path, n_path);      // the sequence's end is pos + n_path
   The token that is sure, which the last verification gave, is as a rule the root: node 0, of
   parent -1, and the first of every path. path holds node numbers. Row i waits in the slot of
   position pos+i, so a tree takes n positions of max_context and of what can be taken back.
   CAPACITY: a tree that could not be taken back; max_rollback nodes always fit. ARG: a parent < -1
   or >= i, or a prefix besides. OVERFLOW: more than 32,768 nodes. parents is yours and not copied:
   it stays as it is until commit (ORDER if it has changed). Until then a sequence with a tree takes
   reset, commit, or truncate and rewind to pos and below, which drop it, as does a fork, copy or
   load into it; all else that would change it, and a copy of it or a read from pos on, is ORDER.
   Other sequences go on as they like. A tree that grows level by level is begun anew at its pos,
   with rewind, and all of its rows are given again.
   Cost: a chain's of as many tokens (of fewer than 16 rows, nodes times query heads of a KV head:
   that of 16), but that keys are not split over parts, and that the last block of 256 positions is
   gone through again where history and nodes in it are more than 256 together. UNSUPPORTED: with a
   list (pick; models with lists draft chains, which take them), with compute SWA_BF16 or
   SWA_BF16_TILE (neighbours by position are no neighbours here, as in a list; of other runs of the
   step too: chunks that are to have their bits come in steps without trees), in swa_select, and on
   swa_mla's naive path over latents (AUTO takes the absorbed one); begin, where SWA_NO_LISTS has
   left trees out with the lists. */
/* positions [n] of a tree's tokens, for swa_rope. ARG, OVERFLOW: as begin, but that n may be 0. */
SWA_CHECKED swa_status swa_tree_positions(const int32_t *parents, int32_t n, int64_t pos,
                                          int64_t *positions);
/* Of the tree that was stored last the n tokens of path stay, each the parent of the next, and
   become positions pos.. pos+n-1 in every layer; all others are forgotten. n 0: none stays. ARG:
   not a path from the root. ORDER: there is no tree, or a layer has not stored it. Cost: a copy of
   the rows that are not where they belong yet. */
SWA_CHECKED swa_status swa_cache_commit(swa_cache *cache, int seq, const int32_t *path, int32_t n);
/* Why commit would refuse this path now, in words; NULL = it would not. */
SWA_API const char *swa_cache_commit_explain(const swa_cache *cache, int seq, const int32_t *path,
                                             int32_t n);

/* Prefill of ragged prompts in chunks:
       while (swa_prefill_next(&plan, runs, &n)) { append decode runs; begin; forward; }
   A sequence whose prompt is used up drops out; lens of a cancelled one becomes 0. Requests that
   come one by one have a plan of one sequence each. A run that you append begins as zeros, and runs
   has room for it; after the last chunk steps of decode runs alone go on. A begin that was refused
   has used its chunk up: keep a copy of the plan to try it again. Arrays are yours and must outlive
   the plan; a copy of it points to the same ones. */
typedef struct swa_plan {
    const int     *seqs;      /* [n_seqs]; NULL = 0, 1, 2, ...                                    */
    const int64_t *start;     /* [n_seqs] first position; NULL = 0                                */
    const int32_t *lens;      /* [n_seqs] prompt lengths, 0 allowed; they and start stay as they
                                 are, the plan counts                                             */
    int            n_seqs;
    int32_t        chunk;     /* most tokens of a sequence in one step                            */
    int32_t        done;      /* private: how many of each prompt have been handed out            */
} swa_plan;
/* ARG: NULL (lens, plan), n_seqs or chunk <= 0, anything negative in an array. OVERFLOW: start +
   len. */
SWA_CHECKED swa_status swa_prefill_begin(swa_plan *plan, const int *seqs, const int64_t *start,
                                         const int32_t *lens, int n_seqs, int32_t chunk);
/* Fills runs [at least n_seqs] and *n_runs with the next chunk; 0 when nothing is left. A prompt is
   at its end where swa_cache_end() is start + len once the chunk is begun. */
SWA_API int        swa_prefill_next(swa_plan *plan, swa_run *runs, int *n_runs);

/* ---- attention ---- */

/* p is aligned as floats are. Strides in floats, not bytes, each by itself: token 0 = heads*dim,
   head 0 = dim. For [head][n][dim] set both (none: decode is right, chunks are not); a fused
   [n][q | k | v] has one token stride, to be set in q, k and v each. ARG: rows of one array that
   overlap; a head stride with which tokens cannot be packed as token 0 says; and, of two tokens
   and more (of one: under audit), rows that share numbers with another array's (a fused layout of
   which a place or a stride is wrong), unless both arrays begin at one place, or are k, v and
   k_tail, or q and q_tail, of the same strides, and share numbers of one token alone (of one
   head's rows: V may be a part of K's row, and not run from one head into the next). */
typedef struct swa_in { const float *p; int64_t token, head; } swa_in;
typedef struct swa_out { float *p; int64_t token, head; } swa_out;
typedef enum {
    SWA_ATTEND = 0,         /* attend to the ring and the new rows, then store them               */
    SWA_STORE_ONLY,         /* store k and v (v_in_k: k); of the rest only compute is looked at   */
    SWA_ATTEND_STORED,      /* attend to the ring alone, where this step's rows have been stored:
                               k and v are not looked at. Each run of a windowed layer needs
                               n <= capacity-(W-1), else SWA_ERR_CAPACITY                         */
    SWA_ATTEND_NO_STORE     /* attend to the ring and the new rows, and leave the ring alone.
                               Where a layer that shares them has stored: as SWA_ATTEND_STORED,
                               its bounds too; k and v are read all the same, and have to be
                               those that were stored (others pass in silence)                    */
} swa_mode;

/* Ways to multiply, for compute. Each has bits of its own, the same on every instruction set.
     SWA_F32        products and sums in f32, whatever the types of the rows
     SWA_BF16       q, k, v and weights rounded to bf16, sums in f32
     SWA_BF16_TILE  rounded so too (q8 times its scale), summed in the order of Intel's tile
                    instruction, by which it runs where CPU and Linux have it: head_dim and tail_dim
                    multiples of 32 then, or as on other CPUs. A part asks Linux for tiles, once a
                    call (a system call, 0.1 us)
     SWA_Q8         q in int8 too, q.k an integer product; p.v in f32. Needs k_type SWA_Q8, no tail,
                    head_dim <= 1040
   Time by SWA_F32's over f32 rows, one thread of Zen 4; error against exact K and V: relative L2,
   mean (worst of 400), and the largest by the largest output; q, k, v normal, in brackets the worst
   with q four times as large.
                          SWA_BF16              SWA_BF16_TILE         SWA_Q8
     prefill              0.55, with bf16       0.75, with bf16       0.67-0.74, with AVX-512 VNNI
                          pairs (Zen 4 on)      pairs                 or AVX-VNNI; Arm built for dot
                                                                      products (-mcpu=native) by
                                                                      count alike
     ... without those    1.01-1.15             1.2-1.3               1
     MLA, 128 heads       0.55                  0.82                  -
     MLA, 16 heads        0.88; 0.65 over       -                     -
                          bf16 latents;
                          without pairs 1.0-1.4
     4 rows, of 4096 keys 1 over any type of    8-10                  0.95, both over q8 rows
                          both
     8 rows               1; 0.8 over bf16      -                     -
     4; 8; 12 rows, by    1.0; 1.05; 1.3        1.05; 1.5; 1.6        -
     AVX2 (Zen 3)         (over bf16 rows 0.55 of each; NEON and plain C: 1.7-2.1)
     4 rows; 8 rows, by   1.0; 1.05             1.0; 1.05             -
     AVX-512 without fast
     pairs (Granite       (over bf16 rows half of each: 1.05; 1.15 and
     Rapids)              1.1; 1.2 of SWA_F32's time over the same)
     by Intel's tiles,    -                     prefill 0.24; W=1024  -
     over bf16 rows                             0.26, 512 causal 0.38,
     (Granite Rapids)                           W=128 0.65; chunks of
                                                4 to 16 tokens 0.35;
                                                MLA 0.19, 16 heads 0.43;
                                                9 to 15 rows 0.9, over
                                                f32 rows 1.3; prefill of
                                                q8 0.26
     error                3e-3 (7e-3), 1.3e-2   as SWA_BF16           1.0e-2 (1.3e-2), 2e-2
                          [1e-2, 2e-2]                                [4e-2, 6e-2]
   Fewer than 16 rows (tokens times query heads of a KV head) without v_in_k run as 4 or 8 do; pairs
   want head_dim even, v_dim that fills multiples of 64 and no tail, or it is as without them.
   AVX2, and AVX-512 without fast pairs, want a head_dim of whole fours and no tail.
   swa_compute_fastest() tells which of the first three to take for prefill. */
typedef struct swa_attn {
    swa_in  q, q_tail;      /* [n_tokens][n_heads][head_dim | tail_dim]                           */
    swa_in  k, k_tail, v;   /* [n_tokens][n_kv_heads][..], f32, after RoPE. Rounded to the ring's
                               types (to nearest even) before they are attended, so that a token
                               sees the same rows now and later. Not changed; they and the scratch
                               stay as they are until the last part of phase 1 is done. Numbers are
                               finite: an infinity or NaN in V (in a type that keeps it) reaches
                               all tokens of the call whose keys share a block with it, one in q or
                               K may come out as a number; in rows that no token sees they reach
                               nothing                                                            */
    swa_mode mode;          /* what is done; decides which of these and the following are read    */
    swa_in  q_sink, q_sink_tail; /* q and its tail as rotated for pinned sinks that have left the
                                    window (StreamingLLM: at min(pos, n_sink+W-1)); each NULL = as
                                    for the others (both, under audit: ARG from position n_sink+W
                                    on; if sinks keep their places give q again). Where the window
                                    pins none: ARG                                                */
    swa_out out;            /* [n_tokens][n_heads][v_dim]; may be q itself when the layouts are
                               the same. Otherwise out, lse and stat overlap neither each other
                               nor any input (nor lists, nor segments): ARG where they begin at
                               one place, and, of two tokens and more (of one: under audit), out
                               with q, k, v or a tail where one is packed. No array of a call
                               begins in the cache's memory or in scratch: ARG                    */
    float  *lse;            /* [n_tokens][n_heads] natural log of the sum of exp(score), sink
                               logits not in it; -inf for a row that sees nothing (out is 0
                               then); NULL = none                                                 */
    float  *stat;           /* [n_tokens][n_heads][2] = max (in base 2: score*log2 e), sum; out
                               stays unnormalised, for swa_merge; NULL = none                     */
    float   scale;          /* 0 = 1/sqrt(head_dim); with a tail or v_in_k 0 is ARG: then say
                               which. Else from 1e-37 to 1e38, and q times it (with a softcap by
                               that) has to be finite, or bits differ by instruction set          */
    float   softcap;        /* s = cap*tanh(s/cap) of s = scale*q.k, before bias and mask
                               (Gemma 2); 0 = off; else from 1e-37 to 1e38                        */
    const float *sink_logits;    /* [n_heads], this layer's: exp(logit) is added to the sum of
                                    exp(score) (gpt-oss, whose files have them in bf16: widen);
                                    scale and softcap do not apply to it.
                                    -inf is no sink (0 is one, of weight 1), NaN or above
                                    1e38 ARG; NULL = none. Not looked at with stat: swa_merge
                                    takes them                                                    */
    const float *alibi;          /* [n_heads] slopes: s -= slope*|q-k|, so slopes are positive: ARG
                                    if one is negative, NaN or above 1e38; NULL = none            */
    const float *bias;           /* added after softcap: bias[row*bias_token + head*bias_head +
                                    (k - bias_first)], bias_n > 0 columns; keys outside them get
                                    0; -inf or -FLT_MAX hides a key. Else to 1e38 in size, and no
                                    NaN (not looked for): the outputs would be any numbers.
                                    Strides, in floats, are taken as they are: 0 = the same for
                                    all. NULL = none, and bias_n 0. ARG: bias_first < 0           */
    int64_t bias_token, bias_head, bias_first, bias_n;
    int     bias_by_distance;    /* 1: column q-k in place of k-bias_first (Inkling:
                                    [token][head][distance], 0 from bias_n on); bias_first 0,
                                    bias_n <= 2^23. Blocks that no column reaches cost nothing    */
    /* A list of keys per token and KV head (DeepSeek's DSA, MiniMax's MSA, ...): of the keys that
       the window shows, a query sees those on the list, those that pick_window shows, and pinned
       sinks up to itself: a union, under one softmax. Entry j of packed row t and KV head g is
       pick[t*pick_token + g*pick_head + j], a position divided by pick_block. A list is a set: any
       order of it, and entries that stand twice, give the same bits; one of all keys gives those of
       a call without a list. Entries that name nothing are skipped: negative ones (-1 = none),
       positions that the window hides (after the query, but for a prefix or a right extent; or lost
       by a ring), or that no segment holds; with audit = 2 all but -1 are ARG. Cost follows the
       list, and the blocks of 256 positions that it touches (one key in each: 1.5 times as long as
       of neighbours), not the context; a key costs as in a dense call from 16 query heads to a KV
       head on, with 8 to 1 of them 2.5 to 5 times that: keys in whole aligned tiles of 16 are read
       in place, others are gathered, for which rows are faster (k_rows, or swa_attention's
       segments). Heads that share a list gather it once; parts share it by tokens, KV heads and
       then query heads, never by keys. With compute SWA_BF16 or SWA_BF16_TILE UNSUPPORTED: those
       add p.v of neighbours by position in one instruction, and a listed key seldom has its
       neighbour. Only q.k could gain, a sixth of a call over 2048 latents. A cache in bf16 is fine:
       its products are f32's, more exact */
    const int32_t *pick;         /* NULL = no list: all that the window shows; then pick_n is 0
                                    and pick_window NULL                                          */
    int64_t  pick_token, pick_head;   /* strides, taken as they are: 0 = the same list for all
                                         tokens or heads. Of swa_select's packed lists pick_token
                                         is lists*top                                             */
    int32_t  pick_n;             /* entries per list, > 0; an empty list is one of -1             */
    int32_t  pick_block;         /* positions per entry, a power of two to 128 (models: 1, 4, 16,
                                    64, 128); 0 = 1                                               */
    const swa_window *pick_window;    /* what is seen without being listed, as sliding(W): the W
                                         latest; NULL = none. No limit to the left: ARG; with
                                         sinks or a prefix UNSUPPORTED                            */
    swa_type compute;       /* how products are computed, see above; 0 = SWA_F32                  */
} swa_attn;

/* One layer of the step that was begun. Serial, or, where the implementation was compiled with
   -fopenmp, OpenMP over as many parts as the scratch holds (its threads wait by spinning: where
   other work wants the cores, OMP_WAIT_POLICY=passive in the environment halves the time of small
   calls). What is refused has written nothing, and may be called again as it should be. ARG is most
   often q, k, v or out NULL (k and v belong to all modes but SWA_ATTEND_STORED), strides with which
   rows or arrays overlap (one of two or of three forgotten), scale 0 with a tail or v_in_k, a
   negative one, or a tail in attn and none in the shape. ORDER: the layer has stored this step's
   rows (it was called twice, or no step was begun since), a reader came before its rows, or no step
   was ever begun; after a begin that was refused calls return its status. A layer that is left out
   shows at the next begin. MEMORY: no scratch was set. Cost: head_dim + tail_dim + v_dim
   multiply-adds per token, query head and key that it sees; a few tokens read their keys' rows once
   for all heads of a KV head, which is what decode waits for; beside that 0.3 to 2 us per KV head
   and call, which over a few dozen keys is most of it (windows of up to 16 keys, up to 64 of a lone
   head, and a text's first tokens take two to eight times as long as a plain loop). */
SWA_CHECKED swa_status swa_attend(swa_cache *cache, int layer, const swa_attn *attn);
/* Why swa_attend would refuse this call now, in words: the field, and what is wrong with it; NULL =
   it would not. Only looks. */
SWA_API const char *swa_attend_explain(const swa_cache *cache, int layer, const swa_attn *attn);
/* The same for your own threads: parts 0..parts-1 of phase 0, join, the same parts of phase 1,
   join; both phases even with one part, parts and attn's fields the same in all of them (each
   thread may have a copy of attn). Outputs of the parts of a phase are disjoint. Go on with phase 1
   only if every part of phase 0 has returned SWA_OK: they all return the same status, but for a
   part whose phase 1 was left out before. If a part of phase 0 was left out, another call on the
   cache came in between, a sequence of the step was changed, or a part of phase 0 was given other
   parts, another scratch or attn, each part of phase 1 is SWA_ERR_ORDER and nothing is stored: call
   phase 0 again (with q anew, where out is q: it may be overwritten). A part of phase 1 that is
   given others, or done twice, is refused by itself: call it as it should be. (A part left out of a
   second try looks as in the first one, if that was the same call.) If a part of phase 1 was left
   out of a call that stores, while others were called, that layer's phase 0 is SWA_ERR_ORDER, what
   reads its ring too, and the part's own of another layer (part 0: every layer's); if all were, the
   next step is, at the latest (of the first 64 parts): call it, before any other call, or begin the
   step again. Out of one that only reads, the part's own phase 0 of another layer is ORDER (of
   several parts), until that call has been ended or the step is begun again. (In the first step of
   a cache that was made again in the same memory, with the same scratch, a part that phase 0 left
   out may pass for the old one's.) A host without a join inside an op (ggml) makes two ops of it,
   with q, k and v as sources of both: else its allocator gives k away behind the first, and the
   second stores what stands there then. Beside the parts of a step other threads may look at
   sequences that are not in it: end, first, slot, read, save, spans. All else on a cache is one
   call at a time. */
SWA_CHECKED swa_status swa_attend_part(swa_cache *cache, int layer, const swa_attn *attn,
                                       int phase, int part, int parts);
/* Why this part would be refused now, as swa_attend_explain. Not beside parts that run: behind the
   join, from one thread, with the part's arguments. */
SWA_API const char *swa_attend_part_explain(const swa_cache *cache, int layer,
                                            const swa_attn *attn, int phase, int part, int parts);

/* Attention over the caller's own rows: any number of segments, ascending and disjoint in position.
   A token's decode takes about twice as long as over a ring (f16 from memory up to 2.6 times), whose
   K lies as it is read; prefill as long. (16 positions that one does not fill are gathered: of one
   row each they take four to ten times as long as one of all, most where few heads share a row.)
   Without audit those that no query sees are asked for pos and n alone, 20 ns in each part and
   phase, the others (with pinned sinks all before the last) for everything, 0.1 us: give thousands
   of pages from swa_visible_range(window, pos) on.
   A visible position that no segment holds is skipped; but one that stood in a ring and is
   overwritten there is SWA_ERR_LOST, if segments read that ring: swa_cache_spans fills such ones
   (to read, not to write). Numbers of a row lie together: V transposed [dim][n] is not supported.
   One softmax over a ring's window and rows of another rate (DeepSeek V4: one for 4 or 128 tokens):
   let those stand at 0, 1, .. and the ring's sequence begin far behind them, always at one place, as
   swa_cache_reset(&kv, seq, 1 << 30, 0) makes it (pos of its runs counts from there, RoPE's does
   not). Store first, then give segments of both. By a list: window causal, pick what is listed of
   the first, pick_window sliding(W). All of the first g, for queries that see as many:
   swa_window_sinks(W, g), q_sink = q. (examples/hosts/compressed.md) */
typedef struct swa_kv {
    const void *k, *v, *tail;         /* [n][n_kv_heads][head_dim | v_dim | tail_dim]; v ignored
                                         when v_in_k                                              */
    swa_type k_type, v_type, tail_type;   /* as in swa_cache_desc; not SWA_Q8                     */
    int64_t  k_token, k_head, v_token, v_head;   /* strides in elements, 0 and ARG as in swa_in,  */
    int64_t  tail_token, tail_head;              /* ... and at most 2^44                          */
    int64_t  pos;                     /* position of the first row                                */
    int32_t  n;                       /* rows; 0 is legal: none                                   */
    int32_t  layout_, slots_;         /* private: 0 = rows                                        */
    int64_t  lost_;                   /* positions right before pos that a ring has overwritten   */
    const float *k_scale_, *v_scale_, *tail_scale_;
} swa_kv;
typedef struct swa_rows {
    swa_shape  shape;
    swa_window window;                /* {0}, and so a forgotten one, is full attention: ARG under
                                         audit                                                    */
    int64_t    pos;                   /* of the first query. Forgotten it is 0, which is legal:
                                         the query sees the key at 0 and nothing behind it (audit
                                         1 finds it where a whole segment lies behind, 2 always)  */
    int32_t    n_tokens;              /* queries; with 0 nothing is written, which is SWA_OK      */
    const swa_kv *kv;                 /* [n_kv] in order of position; gaps between them hold no
                                         keys and cost nothing                                    */
    int        n_kv;                  /* segments; 0 is legal, a context still empty: no query
                                         sees a key, and out is 0. swa_attn's k and v are no
                                         segment: they are not read                               */
    void      *scratch;               /* swa_attention_bytes(rows, parts), any alignment; in use
                                         until phase 1 ends                                       */
    size_t     scratch_bytes;
    int        isa;                   /* 0 = best                                                 */
    int        audit;                 /* 1: while you port; ARG then, too: no queries, a query whose
                                         own position no segment holds (pos or n is off, or its row
                                         is not there yet; not asked with stat, as of parts for
                                         swa_merge; cross-attention does without audit), a segment
                                         behind all that queries see (pos is off), V where K is, K
                                         where that of the segment before is, rows at odd addresses,
                                         no window, and of swa_cache_desc's what is a call's (not
                                         strides in bytes; of NaN those in q). 2: as there (an
                                         empty list not with stat), and positions that a query
                                         sees between two segments (a page left out; evicted keys
                                         do without), pinned sinks that no segment holds (not with
                                         stat), rows behind all that queries see (pos is off, or
                                         n: a prompt in blocks over K and V of all of it does
                                         without)                                                 */
} swa_rows;
/* Returns how many segments, sinks first, or -1; valid until the next phase 1, begin or change of
   the sequence (truncate, fork into it, ...). In a step: without its rows until the layer has
   stored them (a tree's until commit); what they will push out is there no more. A query before the
   sequence's end sees older keys than the next token does: for one n positions before it
   max_rollback has to be n (a drafter that begins at the sure token, its drafts behind it: the
   drafts and one). */
SWA_API int        swa_cache_spans(const swa_cache *cache, int seq, int layer, swa_kv out[3]);
/* 0 = invalid or overflow. With one part it depends on the shape and on whether there are sinks;
   with more also on n_tokens and the keys, and not monotonously: few tokens split their keys and
   need room for the results: set kv, n_tokens and pos first. n_tokens 0 gives enough for any number
   of tokens and keys (of several parts 64 MiB more). With less, down to `parts` times what one part
   takes, keys are not split over parts: the same bits, more slowly where tokens are few. */
SWA_API size_t     swa_attention_bytes(const swa_rows *rows, int parts);
/* attn->mode, k, k_tail, v are not looked at. Phases and parts as in swa_attend_part: a part of
   phase 0 that was left out is found out in phase 1, unless the scratch still holds one of an
   earlier call with the same position, queries and out; one of phase 1 is not, and leaves rows of
   out as they were (under audit NaN; some are out with phase 0, of one part perhaps all). Calls with a scratch of
   their own may run beside each other, over the same rows: of many sequences each may be one part,
   by the thread that takes it. swa_attention takes OpenMP's threads, as swa_attend does. */
SWA_CHECKED swa_status swa_attention(const swa_rows *rows, const swa_attn *attn);
SWA_CHECKED swa_status swa_attention_part(const swa_rows *rows, const swa_attn *attn, int phase,
                                          int part, int parts);
/* as swa_attend_explain, swa_attend_part_explain */
SWA_API const char *swa_attention_explain(const swa_rows *rows, const swa_attn *attn);
SWA_API const char *swa_attention_part_explain(const swa_rows *rows, const swa_attn *attn, int phase,
                                               int part, int parts);
/* Merges n partial results (out and stat of calls over disjoint keys, without sink logits) in the
   order given: outs[i] [n_tokens][n_heads][v_dim], stats[i] [n_tokens][n_heads][2] (C wants a cast
   for arrays of float *), into out and lse [n_tokens][n_heads], each of which may be NULL; lse is
   without sink_logits. Partials that hold one SWA_BLOCK each, merged in order of position, give the
   bits of the unsplit call. A result that is whole (a merge's, another library's; without sink
   logits, as its lse is) is one with the stat { lse * 1.44269504f, 1 }, of an empty row {
   -INFINITY, 0 }. n 0 gives zeros. out may be one of outs. Rows are merged each by itself, so that
   threads may take tokens, or the heads of one, in calls of their own; cost: a pass over outs. ARG:
   NULL, a negative number, v_dim or n_heads 0, a stat whose sum is below 0 (an lse?), an array that
   runs into out or lse, a logit of NaN or above 1e38. OVERFLOW: more bytes than a
   size_t holds. */
SWA_CHECKED swa_status swa_merge(const float *const *outs, const float *const *stats, int n,
                                 int32_t n_tokens, int n_heads, int v_dim,
                                 const float *sink_logits /* [n_heads] or NULL */, float *out,
                                 float *lse);

/* ---- index: which keys a sparse layer looks at ---- */

/* The scores of an indexer (DeepSeek-V3.2's lightning indexer, GLM-5, MiniMax-M3), and the best of
   them as lists of keys. Index keys live in a layer of a cache: n_heads index heads, n_kv_heads 1,
   their head_dim (DeepSeek's 128), v_in_k 1 (no V is stored), so that one begin, rewind, fork and
   blob serve them too. Its window is that of the layers that read the lists: with a wider one,
   places in the lists go to keys that they do not see. SWA_STORE_ONLY stores a step's keys, then
   swa_select() finds them there, for which a windowed layer needs max_rollback (or capacity) for a
   whole chunk; queries that are not the cache's own step (keys of another rate) take
   swa_select_rows(). A layer with a V works as well: then its own K is the index. A step of such a
   layer l, with its index in layer i of the same cache (pinned sinks are seen by those layers
   whether listed or not, and take places in top all the same):
     swa_attn keys = {0}; keys.mode = SWA_STORE_ONLY; keys.k.p = index_k;      // of this step
     if (swa_attend(&kv, i, &keys) != SWA_OK) return 1;
     if (swa_select(&kv, i, &index) != SWA_OK) return 1;       // index.pick = list, its q, w, top
     mla.pick = list; mla.pick_token = mla.pick_n = index.top;      // set for each step
     mla.pick_block = index.block;        // swa_attn, lists > 1: pick_token *= lists, pick_head = top
     if (swa_mla_forward(&kv, l, &mla, h, out) != SWA_OK) return 1;
   DeepSeek's index q reads c_q, which the host computes for it (W_DQ, q_norm) and gives to the
   block, which then does not: mla.c_q.
     score(t, list, k) = sum over the list's heads h of w[t][h] * max(q[t][h] . k, 0)
   one FMA chain over the heads in their order, for each key that swa_visible() shows t. An entry of
   a list is `block` positions from a multiple of block on; its score is the largest of its visible
   keys'. The best `top` entries are picked; of equal ones the lower position wins (-0 equals 0). A
   score that is NaN counts as if its key were hidden: it is never picked (by compute Q8, q is
   finite). The same bits in, on any instruction set, parts, chunks and rotation, give the same
   list. */
typedef struct swa_index {
    swa_in       q;             /* [n_tokens][n_heads][head_dim], as in swa_attn                  */
    const float *w;             /* [n_tokens][n_heads] what a head counts, all factors in it;
                                   NULL = 1                                                       */
    int64_t      w_token;       /* stride; 0 = n_heads                                            */
    int          linear;        /* 1: w * (q . k), not cut at 0 (MiniMax-M3)                      */
    int          lists;         /* of a token: list i takes heads [i, i+1) * n_heads/lists; 0 =
                                   1. A divisor of n_heads and a multiple of n_kv_heads, whose
                                   keys its heads share                                           */
    int          block;         /* positions of an entry: 1, 2, 4, .. 256; 0 = 1                  */
    int          local;         /* so many entries up to the query's own are picked before all
                                   others, if the window shows them; they count in top, and more
                                   than that is ARG                                               */
    int32_t      top;           /* entries of a list, at most 2^24; 0 = no lists                  */
    int32_t     *pick;          /* [n_tokens][lists][top] position / block, ascending, then -1;
                                   NULL if top is 0                                               */
    int64_t      pick_token, pick_list;           /* strides; 0 = lists*top, top (swa_attn wants
                                                     them spelled out). Rows of these arrays that
                                                     overlap are ARG                              */
    float       *score;         /* [n_tokens][lists][score_n] of the entries from score_first on,
                                   -inf for one that has no visible key; NULL = none              */
    int64_t      score_token, score_list;         /* strides; 0 = lists*score_n, score_n          */
    int64_t      score_first, score_n;
    swa_type     compute;       /* as in swa_attn: 0 = F32; Q8: q in int8 too, for keys in q8     */
} swa_index;
#ifndef SWA_NO_INDEX
/* Scratch for these calls (of a cache: give swa_cache_set_scratch the larger of this and
   swa_cache_scratch_bytes): a megabyte or so per part, whatever the context. Depends on the shape
   of the layer, on lists, top and parts; enough for a smaller top too. 0 = invalid or overflow. */
SWA_API size_t     swa_select_bytes(const swa_shape *shape, const swa_index *index, int parts);
/* Over the ring of a layer whose rows of this step are stored. ARG: NULL, neither pick nor score, a
   number out of range. UNSUPPORTED: a tail; compute BF16, or Q8 over other keys. OVERFLOW: top,
   position / block beyond int32. ORDER, CAPACITY: as SWA_ATTEND_STORED, n <= capacity-(W-1). Cost:
   heads * head_dim multiply-adds per visible key; picking adds a few percent. */
SWA_CHECKED swa_status swa_select(swa_cache *cache, int layer, const swa_index *index);
/* as swa_attend_explain, and of the calls over rows */
SWA_API const char *swa_select_explain(const swa_cache *cache, int layer, const swa_index *index);
SWA_API const char *swa_select_rows_explain(const swa_rows *rows, const swa_index *index);
/* Phases and parts as in swa_attend_part: every part of phase 0, join, every part of phase 1. Lists
   are whole then, and not before (of short texts mostly): what attends in this step is ORDER until
   part 0 has been through phase 1. */
SWA_CHECKED swa_status swa_select_part(swa_cache *cache, int layer, const swa_index *index,
                                       int phase, int part, int parts);
/* Over the caller's own rows, or a ring's spans: as swa_attention. V is not looked at with
   v_in_k. */
SWA_CHECKED swa_status swa_select_rows(const swa_rows *rows, const swa_index *index);
SWA_CHECKED swa_status swa_select_rows_part(const swa_rows *rows, const swa_index *index, int phase,
                                            int part, int parts);
#endif

/* ---- helpers ---- */

typedef enum {
    SWA_ROPE_INTERLEAVED,   /* pairs (2i, 2i+1): Llama, Mistral, DeepSeek                         */
    SWA_ROPE_HALF           /* pairs (i, i+rotary/2): HF, NeoX, Gemma                             */
} swa_rope_pairs;
/* Rotates the first `rotary` numbers (even, at most head_dim) of every head of x
   [n][n_heads][head_dim] in place; token t is at pos[t]. (Of the last numbers, as in DeepSeek V4:
   give x + head_dim - rotary. x is packed: where q, k and v of a token lie side by side, call it
   per token, q and k as so many heads together.) Rotations add up: a rotated row moves by pos,
   which may be negative. freq [rotary/2] are inverse frequencies, from swa_yarn (scale 0: plain
   ones); a pair of frequency 0 stands still (p-RoPE). Angles are computed in double: off by at most
   1e-9 at any position, for freq up to 1. mscale multiplies cos and sin, each time: 0 = 1, below 0
   or not finite ARG. Cost: a sine and a cosine of rotary/2 angles a token and call, 2 us for 64,
   and 0.1 us a head of 128. */
SWA_CHECKED swa_status swa_rope(float *x, int32_t n, int n_heads, int head_dim, const int64_t *pos,
                                const double *freq, int rotary, swa_rope_pairs pairs,
                                double mscale);
typedef struct swa_yarn_desc {
    double  base;                 /* rope_theta                                                   */
    double  scale;                /* > 1: stretched by YaRN so many times; 1: plain RoPE; 0: plain,
                                     and ARG if original or a beta is set. Below 1 is ARG:
                                     ggml's freq_scale is the inverse                             */
    int32_t original;             /* positions that the model was trained for, more than scale;
                                     where stretched                                              */
    int32_t truncate;             /* 1: the ramp's ends are rounded to whole pairs (DeepSeek, HF's
                                     default); -1: not (gpt-oss). Where stretched 0 is ARG        */
    double  beta_fast, beta_slow; /* turns of a wave in them that end the ramp; 0 = 32 and 1      */
} swa_yarn_desc;
/* Inverse frequencies: base^(-2i/rotary), stretched: the ramp is linear in i, as in the published
   code, HF's and DeepSeek's, not in turns as in the paper. *mscale (may be NULL) = 0.1 ln(scale)+1
   where stretched, else 1: YaRN's factor for cos and sin. ARG: rotary odd or <= 0, base <= 0
   (stretched: <= 1), original <= scale, beta_fast < beta_slow. */
SWA_CHECKED swa_status swa_yarn(const swa_yarn_desc *desc, int rotary,
                                double *freq /* [rotary/2] */, double *mscale);
/* out [rows][dim] = x [rows][dim] / sqrt(mean of x^2 + eps) * w [dim]. w NULL = 1. ARG: eps below
   0; out that runs into w, or into x without being x. */
SWA_CHECKED swa_status swa_rmsnorm(float *out, const float *x, const float *w, int32_t rows,
                                   int dim, float eps);
/* Rotates every `block` numbers (a power of 2 that divides head_dim) of each head of x
   [n][n_heads][head_dim] in place by Hadamard's matrix over sqrt(block), which is its own inverse.
   q and k rotated alike, after RoPE, keep their products, and a channel much larger than the others
   is spread over its block: K in q8 is then 2 to 7 times as exact (bench/SPEED.md). V rotated
   before it is stored: rotate out too. DeepSeek's indexer has its q and k rotated. */
SWA_CHECKED swa_status swa_hadamard(float *x, int32_t n, int n_heads, int head_dim, int block);

/* ---- latent: DeepSeek's multi-head latent attention ---- */

/* A token's K and V of all heads are expanded from one latent row, so the cache holds
   [latent | rope] alone:
     latent = kv_norm(W_DKV h)   k_rope = rope(W_KR h)
     c_q = q_norm(W_DQ h)        q_nope = W_UQ c_q   q_rope = rope(W_QR c_q)
     k = [W_UK latent | k_rope]  v = W_UV latent   o = softmax(scale q.k) v   out = W_O o
   An engine with its own matrix products needs none of what follows: queries absorbed (q_nope
   W_UK), swa_attend with head_dim = v_dim = kv_lora_rank, n_kv_heads 1, tail_dim = rope, v_in_k,
   scale from swa_mla_scale, then W_UV and W_O. The calls below are the whole block: h is the
   layer's input after its own norm (input_layernorm), and the residual is not added to out. */
#define SWA_MLA_PHASES 8 /* phases of swa_mla_forward; the parts of one phase are independent,
                            join between phases                                                   */

/* A weight matrix [rows][cols]: numbers of type F32, F16 or BF16; or OPAQUE, in a form of yours
   (fp8 with scales, Q8_0, Q4_K): then p is never looked at, only not NULL, and handed back to
   swa_mla's gemm and rows. block_rows, block_cols: products begin and end at multiples of these
   (fp8 in tiles of 128x128: 128, 128, or 1, 128 if gemm finds each row's scale; Q8_0: 1, 32; Q4_K:
   1, 256), or at the matrix's end. Two weights that are one matrix are told by equal p, OPAQUE ones
   too: the same handle for both. */
typedef struct swa_matrix {
    const void *p;
    swa_type    type;         /* 0 = F32                                                          */
    int64_t     stride;       /* from row to row, in elements; 0 = packed. OPAQUE: yours          */
    int32_t     block_rows, block_cols;   /* 0 = 1                                                */
} swa_matrix;
/* One matrix product, with a part of w: y[t][o] = sum over i of x[t][i] * w[row + o][col + i], or,
   transposed, of x[t][i] * w[row + i][col + o]. Only W_UK is used transposed; only there col is not
   0. */
typedef struct swa_gemm {
    int32_t      n, n_in, n_out;   /* tokens, inputs i, outputs o                                 */
    int          transposed;
    const float *x;           /* [n][n_in]                                                        */
    int64_t      x_stride;    /* floats from token to token                                       */
    swa_matrix   w;           /* as swa_mla has it; the stride of a packed one filled in          */
    int64_t      row, col;    /* where the part of w begins                                       */
    float       *y;           /* [n][n_out]                                                       */
    int64_t      y_stride;
} swa_gemm;

typedef enum {
    SWA_MLA_AUTO = 0,         /* naive or absorbed, whichever is cheaper for a run:
                                 swa_mla_choose                                                   */
    SWA_MLA_NAIVE,            /* K and V are expanded per head, a block of keys at a time. With a
                                 cache of expanded rows: stored expanded, and read                */
    SWA_MLA_ABSORBED          /* W_UK goes into the query, W_UV behind the attention, per head;
                                 best for decode                                                  */
} swa_mla_path;

/* Weights are [out][in] as models ship them, rows per head where there are heads. Two that stand
   side by side may be one matrix with the rows of both. Then give it twice, m.w_uk = m.w_uv =
   wkv_b: w_uq and w_qr have [nope | rope] of each head (DeepSeek's wq_b), w_dkv and w_kr
   [kv_lora_rank | rope] once (wkv_a), w_uk and w_uv [nope | v] of each head (wkv_b). ARG: NULL for
   one that is read; the same p with another type, stride or blocks; w_qr, w_uv that begin right
   behind the first head of w_uq, w_uk; heads that do not begin at blocks of block_rows, where a
   matrix is cut at heads: all that have heads but a shared w_uq (with w_uqk that, too). */
typedef struct swa_mla {
    int hidden, n_heads;
    int q_lora_rank;                 /* 0: no W_DQ, W_UQ and W_QR read the hidden state           */
    int kv_lora_rank, nope_dim, rope_dim, v_dim;
    swa_matrix w_dq;                 /* [q_lora_rank][hidden]                                     */
    swa_matrix w_uq, w_qr;           /* [n_heads*nope][q_lora_rank or hidden], [n_heads*rope][..] */
    swa_matrix w_dkv, w_kr;          /* [kv_lora_rank][hidden], [rope][hidden]                    */
    swa_matrix w_uk, w_uv;           /* [n_heads*nope][kv_lora_rank], [n_heads*v][kv_lora_rank]   */
    swa_matrix w_o;                  /* [hidden][n_heads*v]                                       */
    /* Factors multiplied beforehand: W_UQ W_UK [n_heads*kv_lora_rank][q_lora_rank or hidden] alone
       (w_uq and w_uk may be NULL then; where w_qr, w_uv are the same matrix, give it twice still),
       or also W_UV W_O [hidden][n_heads*kv_lora_rank] (w_uv, w_o are not read). All runs are
       absorbed then; a second swa_mla over the same cache, with the factors, can be naive. */
    swa_matrix w_uqk, w_uvo;
    const float *q_norm, *kv_norm;   /* [q_lora_rank], [kv_lora_rank] RMSNorm weights; NULL = no
                                        norm there, also if the other is set: DeepSeek has both,
                                        [MLA]'s sample q_norm alone                               */
    float    eps;                    /* > 0 if there is a norm, 0 if there is none, else ARG      */
    swa_rope_pairs pairs;
    const double *freq;              /* [rope/2] inverse frequencies: swa_yarn; NULL if rope is 0 */
    double   rope_mscale;            /* multiplies cos and sin; 0 = 1, as in DeepSeek-V2 and V3,
                                        whose mscale and mscale_all_dim cancel here: not
                                        swa_yarn's *mscale                                        */
    double   mscale;                 /* squared into the scale; 0 = 1. DeepSeek: 0.1 *
                                        mscale_all_dim * ln(factor) + 1 once the context is
                                        extended; swa_yarn's *mscale lacks mscale_all_dim         */
    double   scale;                  /* 0 = swa_mla_scale(nope, rope, mscale): never from the
                                        latent row's width                                        */
    int64_t  sink_pos;               /* > 0: towards pinned sinks that have left the window, q is
                                        rotated as if it stood at min(pos, sink_pos);
                                        StreamingLLM: n_sink+W-1 (another is ARG under audit, 0
                                        too from there on). Without pinned sinks ARG. 0 = it
                                        stands at pos                                             */
    swa_mla_path path;
    swa_type compute;                /* of the attention, as in swa_attn                          */
    const int32_t *pick;             /* lists of keys, one per token, for all heads: these fields
                                        as in swa_attn (set them for each step). All runs are
                                        absorbed then. NULL = none                                */
    int64_t  pick_token;
    int32_t  pick_n, pick_block;
    const swa_window *pick_window;
    const float *c_q;                /* [n_tokens][q_lora_rank] behind q_norm, where the host has it
                                        (for an index): W_DQ and q_norm are not multiplied then,
                                        w_dq may be NULL (not where scratch is asked for without a
                                        c_q, any one). Set it for each step; another step's is
                                        silent, but for audit 2, where w_dq and q_norm are given
                                        all the same and can be read. out may be c_q. NULL =
                                        computed from h                                           */
    int64_t  c_q_token;              /* stride; 0 = q_lora_rank                                   */
    /* Every product, instead of ours (BLAS); OPAQUE weights need it. Called by several parts at a
       time, each with its own outputs. It cannot fail (keep an error in user and look behind the
       call), nor leave by an exception or longjmp; so with rows. NULL = ours. */
    void   (*gemm)(void *user, const swa_gemm *product);
    /* Any rows of an OPAQUE W_UK or W_UV as f32, for the naive path; of W_UQ and W_O too for
       swa_mla_merge. Called by several parts at a time. */
    void   (*rows)(void *user, const swa_matrix *w, int64_t row, int32_t n,
                   float *out /* [n][cols] */);
    void    *user;                   /* handed to both                                            */
} swa_mla;

#ifndef SWA_NO_MLA
/* 1/sqrt(nope + rope) * mscale^2; mscale 0 = 1. */
SWA_API double     swa_mla_scale(int nope_dim, int rope_dim, double mscale);
/* The cache that fits: latent rows (1 KV head, head_dim = v_dim = kv_lora_rank, tail_dim = rope,
   v_in_k), or expanded K and V (n_heads KV heads, head_dim = nope + rope, v_dim = v), which is read
   by the naive path alone. Rows computed elsewhere (a prefix from another machine) go in as in any
   cache: swa_attend with SWA_STORE_ONLY. */
SWA_API swa_shape  swa_mla_shape(const swa_mla *mla, int expanded);
/* What one call costs, by way: [0] naive, [1] absorbed, [2] absorbed with w_uqk and w_uvo (more
   multiply-adds, in models that there are), [3] naive over an expanded cache. OPAQUE weights are
   not in weight_bytes. */
typedef struct swa_mla_cost { double macs, weight_bytes, cache_bytes; } swa_mla_cost;
/* The cheaper of NAIVE and ABSORBED for n_new tokens of a sequence that has n_cached in reach. With
   n = n_cached + n_new, A = kv_lora*(nope+v), B = 2*kv_lora - nope - v: absorbed iff
   max(n, 16)*A - n*n_new*B > n_new*A (keys are expanded in tiles of 16). At DeepSeek-V3's sizes
   that is never the case from 171 new tokens on, and always for one token.
   With w_uqk or pick always ABSORBED. cost (may be NULL) counts everything the block does:
   multiply-adds, bytes of weights and of cached rows read (f32 cache). Only the dimensions of mla
   need be set, and the types of its weights where cost is wanted. AUTO (0) = a dimension or number
   is invalid. */
SWA_API swa_mla_path swa_mla_choose(const swa_mla *mla, int64_t n_cached, int32_t n_new,
                                    swa_mla_cost cost[4]);

/* Multiplies W_UQ W_UK and W_UV W_O together, as [MLA] does: *dst is src with w_uqk and w_uvo, f32
   matrices in mem, in place of the factors. 3.6 times the factors' numbers at DeepSeek-V3's sizes,
   so it costs more than it saves: for parity, and for models whose ranks are small. mem:
   swa_mla_merged_bytes, which depends on the dimensions alone (0 = invalid or overflow); any
   alignment. ARG: what swa_mla_forward calls so, NULL, path NAIVE, src merged already, OPAQUE
   without rows. */
SWA_API size_t     swa_mla_merged_bytes(const swa_mla *mla);
SWA_CHECKED swa_status swa_mla_merge(const swa_mla *src, void *mem, size_t bytes, swa_mla *dst);

/* Scratch for swa_cache_set_scratch: of a step of at most n_tokens and its attention, by the paths
   that its runs can take over any history; desc may have layers of other kinds (an index). The
   largest of this, swa_cache_scratch_bytes and swa_select_bytes serves all calls of such a cache,
   of a block whose pick was NULL here also calls with lists. 0 = invalid (what swa_mla_forward
   calls ARG, but for compute and pick, which may change; swa_mla_explain says it of a cache made
   of desc) or overflow: look at each of the three. A
   longer step is MEMORY in swa_mla_forward, not in begin: set a larger scratch and call again, or
   begin it again, shorter. */
SWA_API size_t swa_mla_scratch_bytes(const swa_mla *mla, const swa_cache_desc *desc,
                                     int32_t n_tokens, int parts);
/* Attends and stores the step that was begun. out may be h. Bits depend on the path, which AUTO
   takes from each run's own length and history, and on nothing else. Serial, or OpenMP over as many
   parts as the scratch holds.
   ARG: NULL; a dimension or number out of range (a norm with eps 0, eps without a norm, a
   scale that swa_attn refuses); freq without rope_dim or the reverse; w_dq, w_uq, w_dkv, w_uk or
   w_o missing; pick as in swa_attn; a cache of neither shape of swa_mla_shape (another v_dim, ...);
   ABSORBED, w_uqk or pick over an expanded cache; w_uqk or pick with NAIVE; w_uvo without w_uqk;
   OPAQUE weights without gemm, or without rows where a run may be naive; rows without OPAQUE
   weights; heads that begin inside a block. UNSUPPORTED: weights of type Q8 (make them OPAQUE).
   Else as swa_attend. */
SWA_CHECKED swa_status swa_mla_forward(swa_cache *cache, int layer, const swa_mla *mla,
                                       const float *h /* [n_tokens][hidden] */,
                                       float *out /* [n_tokens][hidden] */);
/* as swa_attend_explain; with cache, h and out NULL, what is wrong with mla by itself (all but rows
   of OPAQUE weights that are not given: the cache decides whether they are needed) */
SWA_API const char *swa_mla_explain(const swa_cache *cache, int layer, const swa_mla *mla,
                                    const float *h, float *out);
/* Every part of phase 0, join, every part of phase 1, join, ... phase SWA_MLA_PHASES-1, all with
   the same parts, each phase once, and no other call on the cache in between: else SWA_ERR_ORDER,
   as in swa_attend_part. A list has to be there from phase 0 on. */
SWA_CHECKED swa_status swa_mla_forward_part(swa_cache *cache, int layer, const swa_mla *mla,
                                            const float *h, float *out, int phase, int part,
                                            int parts);
#endif

/* a constant phrase, never NULL; isa_name too */
SWA_API const char *swa_status_str(swa_status status);
SWA_API int         swa_isa_best(void);           /* what 0 means on this machine                 */
SWA_API int         swa_isa_usable(int isa);      /* compiled in, and this CPU has it             */
SWA_API const char *swa_isa_name(int isa);
/* What makes prefill fastest on this CPU with that instruction set (0 = best): SWA_F32, SWA_BF16 or
   SWA_BF16_TILE. No measurement: by the CPU's features and maker, and whether Linux
   grants tiles to the process. */
SWA_API swa_type    swa_compute_fastest(int isa);

#ifdef __cplusplus
}
#endif
#endif /* SWA_H_INCLUDED */

/* ==== [SECTION 2] PLATFORM =======================================================================
   WHERE A CALL GOES, by the functions that it passes, in order (swa__ left out; [SECTION 12], but
   for the numbers in brackets; kernels are those of the instance that call_base chose):
     step       swa_step_begin: runs_check asks every run of every layer, then run_commit    [8]
     decode     swa_attend: ring_call checks, call_base puts down what all parts share, call_scratch
                carves; call_phases
       phase 0  attend_units: job_make (job_run: a run's rows and, by spans [7], its segments;
                job_kernel; its blocks); job_units deals units;
                unit_run: unit_begin packs q; then block by block sight_make (who sees what),
                block_stage (stage: as a rule stage_slots, K and V where they lie in the ring, else
                copies; look_ahead), block_few: few [10] (few_scores, whose few_fours reads K;
                few_mask; few_exp; few_value_pieces, whose few_rows reads V), and the fold;
                unit_end: rows_out
       phase 1  fold_rows, if keys were split over parts; store_rows: numbers_out, tile_out
     prefill    the same, in panels from 16 rows on: block_many: many_qk, many_exp, many_pv [10];
                panel_out. By Intel's tiles panel_turn: turn_exp with qk_quarter, turn_pv [11]
     rows       swa_attention: rows_begin checks; call_base, rows_scratch, call_phases. Few rows of
                some KV heads at a time: woven_run, whose woven_step takes slices of each in turn
     list, tree unit_listed, unit_tree gather keys (gather_block, gather_nodes); block_many
     MLA        swa_mla_forward: mla_ready; then mla_phase eight times: mla_products (kernel:
                product), mla_norms, mla_rope, mla_attend: both phases above; a naive run with
                expand_stage in place of stage                                             [13]
     select     swa_select: index_phase; index_batch, index_block: index_scores [10], index_ranks,
                best_add; phase 1: index_join                                              [14]

   Every switch below is 0 or 1, computed once, so that #if works and -Wundef stays quiet. */
#if defined(SWA_IMPLEMENTATION) && !defined(SWA__IMPLEMENTED)
#define SWA__IMPLEMENTED
#define SWA__IMPLEMENTING                /* undone at the end of this inclusion */
#include <float.h>
#include <math.h>
#include <string.h>

/* gcc and clang, for Windows too; what MSVC takes stands below. Clang with MSVC's libraries (clang-cl)
   has an immintrin.h that holds back what the command line does not switch on, but not the headers
   behind it: each function there says itself what it needs. */
#if !defined(SWA_NO_SIMD) && defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#  define SWA__X86 1
#  include <immintrin.h>
#  if defined(__clang__) && defined(_MSC_VER)
#    include <smmintrin.h>
#    include <avxintrin.h>
#    include <avx2intrin.h>
#    include <f16cintrin.h>
#    include <fmaintrin.h>
#    include <avx512fintrin.h>
#    include <avx512vlintrin.h>
#    include <avx512bwintrin.h>
#    include <avx512dqintrin.h>
#    include <avx512vlbwintrin.h>
#    include <avx512vldqintrin.h>
#    include <avx512bf16intrin.h>
#    include <avx512vlbf16intrin.h>
#    include <avx512vbmiintrin.h>
#    include <avx512vnniintrin.h>
#    if __clang_major__ >= 12
#      include <avxvnniintrin.h>
#    endif
#  endif
#else
#  define SWA__X86 0
#endif
#if !defined(SWA_NO_SIMD) && (defined(__SSE2_MATH__) || defined(_M_X64)) /* all of x86-64         */
#  define SWA__SSE2 1
#  include <emmintrin.h>
#  if defined(__FMA__)                   /* told by flags, also where AVX2 is not                 */
#    include <immintrin.h>
#  endif
#else
#  define SWA__SSE2 0
#endif
/* MSVC has no functions of another instruction set than the program's: AVX2 by /arch:AVX2, not at
   run time. */
#if SWA__SSE2 && !SWA__X86 && defined(__AVX2__)
#  define SWA__MSVC_AVX2 1
#  include <immintrin.h>
#else
#  define SWA__MSVC_AVX2 0
#endif
#if (SWA__X86 || SWA__MSVC_AVX2) && !defined(SWA_NO_AVX2)
#  define SWA__AVX2 1
#else
#  define SWA__AVX2 0
#endif
#if SWA__X86 && !defined(SWA_NO_AVX512)
#  define SWA__AVX512 1
#else
#  define SWA__AVX512 0
#endif
#if SWA__AVX512 && (defined(__clang__) || __GNUC__ >= 10)
#  define SWA__AVX512_DOT 1              /* the compiler knows bf16 pairs and int8 dot products */
#else
#  define SWA__AVX512_DOT 0
#endif
#if SWA__AVX2 && SWA__X86 && (defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)
#  define SWA__AVX2_DOT 1                /* ... and those of AVX-VNNI */
#else
#  define SWA__AVX2_DOT 0
#endif
#if !defined(SWA_NO_SIMD) && defined(__aarch64__) && defined(__ARM_NEON) && !defined(__AARCH64EB__)
#  define SWA__NEON 1
#  include <arm_neon.h>
#else
#  define SWA__NEON 0
#endif
/* C has no way to ask an Arm CPU: what it was compiled for (-mcpu=native; all of Apple's) decides */
#if SWA__NEON && defined(__ARM_FEATURE_DOTPROD)
#  define SWA__NEON_DOT 1
#else
#  define SWA__NEON_DOT 0
#endif
#ifdef SWA_NO_MLA /* parts that a host may not need: what they save stands in the top comment     */
#  define SWA__MLA 0
#else
#  define SWA__MLA 1
#endif
#ifdef SWA_NO_INDEX
#  define SWA__INDEX 0
#else
#  define SWA__INDEX 1
#endif
#ifdef SWA_NO_LISTS
#  define SWA__LISTS 0
#else
#  define SWA__LISTS 1
#endif
#ifdef SWA_NO_MASKS
#  define SWA__MASKS 0
#else
#  define SWA__MASKS 1
#endif
#ifdef SWA_NO_BLOB
#  define SWA__BLOB 0
#else
#  define SWA__BLOB 1
#endif
#ifdef SWA_NO_LATENTS                    /* rows with a tail, V in K */
#  define SWA__LATENTS 0
#else
#  define SWA__LATENTS 1
#endif
#ifdef SWA_NO_MODS                       /* softcap, ALiBi, bias */
#  define SWA__MODS 0
#else
#  define SWA__MODS 1
#endif
#ifdef SWA_SMALL /* fewer shapes of kernels, the same bits: groups of 2 rows run one by one       */
#  define SWA__SMALL 1
#else
#  define SWA__SMALL 0
#endif
#ifdef SWA_NO_F16 /* types: a branch on one that is left out is none, nor what it calls */
#  define SWA__IS_F16(type)  0
#else
#  define SWA__IS_F16(type)  ((type) == SWA_F16)
#endif
#ifdef SWA_NO_BF16                       /* as a type, and as a way to multiply */
#  define SWA__BF16 0
#else
#  define SWA__BF16 1
#endif
#define SWA__ROUNDS ((SWA__AVX2 || SWA__AVX512) && SWA__BF16 && !SWA__SMALL) /* see swa__rounds */
#define SWA__IS_BF16(type)   (SWA__BF16 && (type) == SWA_BF16)
#ifdef SWA_NO_Q8
#  define SWA__Q8 0
#else
#  define SWA__Q8 1
#endif
#define SWA__IS_Q8(type)     (SWA__Q8 && (type) == SWA_Q8)
/* types that no kernel knows: the stage makes f32 of them. They are the last of swa_type */
#ifdef SWA_NO_STAGED
#  define SWA__STAGED 0
#else
#  define SWA__STAGED 1
#endif
#define SWA__IS_STAGED(type) (SWA__STAGED && (int)(type) >= SWA_Q8_32)
/* integer dot products of q8 */
#define SWA__DOTS            ((SWA__AVX512_DOT || SWA__AVX2_DOT || SWA__NEON_DOT) && SWA__Q8)
/* a module has it or not: nothing to ask at run time */
#if !defined(SWA_NO_SIMD) && defined(__wasm_simd128__)
#  define SWA__SIMD128 1
#  include <wasm_simd128.h>
#else
#  define SWA__SIMD128 0
#endif

/* Under the host's -ffast-math, -Ofast or -fassociative-math this code keeps its own arithmetic, or
   the bits would depend on how the compiler regroups each loop. What comes from other headers
   (clang's intrinsics) keeps the host's, so the kernels add and multiply with operators of their
   own. Undone at the end of the implementation. No macro tells of clang's -fassociative-math
   without -ffast-math: under that alone the bits are not promised. */
#if (defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)) \
    && (defined(__GNUC__) || defined(__clang__))
#  define SWA__FAST_MATH 1
#else
#  define SWA__FAST_MATH 0
#endif
#if defined(_MSC_VER) && !defined(__clang__) /* its /fp:fast; up to 2019 it contracts by default   */
#  pragma float_control(precise, on, push)
#  pragma fp_contract(off)
#elif SWA__FAST_MATH && defined(__clang__)
#  pragma float_control(precise, on, push)
#  pragma clang fp contract(off)
#elif SWA__FAST_MATH
#  pragma GCC push_options
#  pragma GCC optimize("no-fast-math", "no-associative-math", "no-reciprocal-math", \
                       "fp-contract=off")
#endif
/* clang's model of a Zen 3, which -march=native chooses on later ones too, unrolls every plain loop
   as far as 4096 operations: three times the text. The kernels that gain by it say so themselves. */
#if defined(__clang__) && defined(__x86_64__) && __clang_major__ >= 14
#  define SWA__TUNE ",tune=x86-64"
#  pragma clang attribute push(__attribute__((target("tune=x86-64"))), apply_to = function)
#else
#  define SWA__TUNE
#endif

#if defined(__clang__) && defined(__OPTIMIZE_SIZE__) /* some loops are not unrolled then: so be it  */
#  pragma clang diagnostic push
#  pragma clang diagnostic ignored "-Wpass-failed"
#endif

#if defined(_OPENMP) && !defined(SWA_NO_OPENMP)
#  define SWA__OPENMP 1
#  include <omp.h>
#  define SWA__THREADS() omp_get_max_threads()
#else
#  define SWA__OPENMP 0
#  define SWA__THREADS() 1
#endif
/* Under ASan and UBSan kernels are plain functions and loops: their checks, multiplied by unrolling,
   take clang minutes a kernel. Without the hint "inline", too, which it follows at -O1. */
#define SWA__SANITIZED 0
#if defined(__SANITIZE_ADDRESS__)
#  undef SWA__SANITIZED
#  define SWA__SANITIZED 1
#elif defined(__has_feature)
#  if __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#    undef SWA__SANITIZED
#    define SWA__SANITIZED 1
#  endif
#endif
#if defined(__GNUC__) || defined(__clang__)
#  define SWA__TARGET(features) __attribute__((target(features SWA__TUNE)))
#  if SWA__SANITIZED
#    define SWA__INLINE static __attribute__((unused))
#  else
#    define SWA__INLINE static inline __attribute__((always_inline))
#  endif
#  define SWA__NOINLINE static __attribute__((noinline))   /* a kernel is optimised best alone */
#  define SWA__RESTRICT __restrict__     /* in C++ too */
#  ifdef __clang__ /* small rather than fast, by gcc with all that it alone calls                  */
#    define SWA__COLD __attribute__((cold, minsize))
#  else
#    define SWA__COLD __attribute__((cold))
#  endif
/* x holds: for compilers that would else write out what never runs */
#  define SWA__HOLDS(x) do { if (!(x)) __builtin_unreachable(); } while (0)
/* A loop that clang had better leave as it is: it runs seldom, or waits for memory, and written out
   eight times it only costs the host a build (6 KB in one function that fetches rows). */
#  ifdef __clang__
#    define SWA__ROLLED _Pragma("clang loop unroll(disable) vectorize(disable)")
#  else
#    define SWA__ROLLED
#  endif
#  if SWA__SANITIZED
#    define SWA__UNROLL
#  elif defined(__clang__) /* without it, accumulators stay in memory; it must be told "full" */
#    define SWA__UNROLL _Pragma("clang loop unroll(full)")
#  else
#    define SWA__UNROLL _Pragma("GCC unroll 16")
#  endif
/* in a function that only fetches: gcc sees no effect in that, and drops calls of it */
#  define SWA__STAYS() __asm__ volatile("")
/* into L2: see swa__fetch_l1 */
#  define SWA__PREFETCH(p) __builtin_prefetch((p), 0, 2)
#  define SWA__PREFETCH_L1(p) __builtin_prefetch((p), 0, 3)
/* read once: it pushes nothing else out of L2 */
#  define SWA__PREFETCH_ONCE(p) __builtin_prefetch((p), 0, 0)
#  if SWA__X86
#    define SWA__FETCH(p, l1) do { if (l1) SWA__PREFETCH_L1(p); else SWA__PREFETCH(p); } while (0)
#  else                                  /* see swa__fetch_l1 */
#    define SWA__FETCH(p, l1) ((void)(l1), SWA__PREFETCH(p))
#  endif
#else
#  define SWA__TARGET(features)
#  ifdef _MSC_VER
#    define SWA__INLINE static __forceinline
#    define SWA__NOINLINE static __declspec(noinline)
#    define SWA__RESTRICT __restrict
#  else
#    define SWA__INLINE static
#    define SWA__NOINLINE static
#    define SWA__RESTRICT
#  endif
#  define SWA__COLD
#  define SWA__HOLDS(x) ((void)0)
#  define SWA__ROLLED
#  define SWA__UNROLL
#  define SWA__STAYS() ((void)0)
#  if SWA__SSE2
#    define SWA__PREFETCH(p) _mm_prefetch((const char *)(p), _MM_HINT_T1)
#    define SWA__PREFETCH_L1(p) _mm_prefetch((const char *)(p), _MM_HINT_T0)
#    define SWA__PREFETCH_ONCE(p) _mm_prefetch((const char *)(p), _MM_HINT_NTA)
#  else
#    define SWA__PREFETCH(p) ((void)(p))
#    define SWA__PREFETCH_L1(p) ((void)(p))
#    define SWA__PREFETCH_ONCE(p) ((void)(p))
#  endif
#  define SWA__FETCH(p, l1) do { (void)(l1); SWA__PREFETCH(p); } while (0)
#endif
/* Whether gcc does no more than -O1, and what shortens code, to functions without a loop that
   counts: ring and step, and from lists of keys to the index. Its other passes took a tenth of the
   whole build there and gained nothing. The stage and a unit's rows keep the host's level, or small
   windows would pay; so does all under -Os and without optimisation. */
#if defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && defined(__GNUC__) && !defined(__clang__)
#  define SWA__LIGHT 1
#else
#  define SWA__LIGHT 0
#endif
/* Structs of more than 96 bytes zeroed, of more than 272 copied: 64 bytes at a time, because gcc
   makes `rep stos` and `rep movs` of the whole, which take 30 cycles to begin. n is constant. */
SWA__INLINE void swa__zero(void *to, size_t n) {
    unsigned char *p = (unsigned char *)to;
    for (; n >= 64; n -= 64, p += 64) memset(p, 0, 64);
    memset(p, 0, n);
}

SWA__INLINE void swa__copy(void *to, const void *from, size_t n) {
    unsigned char *p = (unsigned char *)to;
    const unsigned char *x = (const unsigned char *)from;
    for (; n >= 64; n -= 64, p += 64, x += 64) memcpy(p, x, 64);
    memcpy(p, x, n);
}

#ifdef __cplusplus
extern "C" {
#endif

/* ---- instruction sets: compiled in, and what this CPU has ---- */

#if SWA__X86 && defined(__clang__) && (defined(_MSC_VER) || (SWA__AVX2_DOT && SWA__Q8))
/* Registers a, b, c, d. */
static void swa__cpuid(unsigned leaf, unsigned of, unsigned *r) {
    __asm__ volatile("cpuid"
                     : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3])
                     : "0"(leaf), "2"(of));
}

#endif

#if SWA__X86 && defined(__clang__) && defined(_MSC_VER)
/* MSVC's libraries have no __builtin_cpu_supports. CPUID traps in a virtual machine, and calls ask
   often: so this file has a variable after all, which every thread that writes it writes alike. */
enum {
    SWA__CPU_avx2 = 1, SWA__CPU_fma = 2, SWA__CPU_avx512f = 4, SWA__CPU_avx512bw = 8,
    SWA__CPU_avx512dq = 16, SWA__CPU_avx512vl = 32, SWA__CPU_avx512vbmi = 64,
    SWA__CPU_avx512vnni = 128, SWA__CPU_avx512bf16 = 256, SWA__CPU_avx512vp2intersect = 512,
    SWA__CPU_amd = 1024, SWA__CPU_intel = 2048, SWA__CPU_avxvnni = 4096, SWA__CPU_ASKED = 8192
};

SWA__COLD SWA__NOINLINE int swa__cpu_ask(void) {
    unsigned first[4], base[4], more[4] = { 0, 0, 0, 0 }, last[4] = { 0, 0, 0, 0 }, kept = 0, high;
    int y, z;

    swa__cpuid(0, 0, first);
    swa__cpuid(1, 0, base);
    if (first[0] >= 7) swa__cpuid(7, 0, more);
    if (more[0] >= 1) swa__cpuid(7, 1, last);
    /* what the system keeps of a thread's registers, and whether it says so (OSXSAVE) */
    if (base[2] >> 27 & 1) __asm__ volatile("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    y = (kept & 6) == 6;
    z = y && (kept & 0xe0) == 0xe0;

    return SWA__CPU_ASKED
           | (y && base[2] >> 12 & 1 ? SWA__CPU_fma : 0)
           | (y && more[1] >> 5 & 1 ? SWA__CPU_avx2 : 0)
           | (z && more[1] >> 16 & 1 ? SWA__CPU_avx512f : 0)
           | (z && more[1] >> 17 & 1 ? SWA__CPU_avx512dq : 0)
           | (z && more[1] >> 30 & 1 ? SWA__CPU_avx512bw : 0)
           | (z && more[1] >> 31 & 1 ? SWA__CPU_avx512vl : 0)
           | (z && more[2] >> 1 & 1 ? SWA__CPU_avx512vbmi : 0)
           | (z && more[2] >> 11 & 1 ? SWA__CPU_avx512vnni : 0)
           | (z && more[3] >> 8 & 1 ? SWA__CPU_avx512vp2intersect : 0)
           | (z && last[0] >> 5 & 1 ? SWA__CPU_avx512bf16 : 0)
           | (y && last[0] >> 4 & 1 ? SWA__CPU_avxvnni : 0)
           | (first[1] == 0x68747541 ? SWA__CPU_amd : 0)         /* Auth, enticAMD */
           | (first[1] == 0x756e6547 ? SWA__CPU_intel : 0);      /* Genu, ineIntel */
}

static int swa__cpu(int what) {
    static int cpu;
    int known = __atomic_load_n(&cpu, __ATOMIC_RELAXED);

    if (known == 0) {
        known = swa__cpu_ask();
        __atomic_store_n(&cpu, known, __ATOMIC_RELAXED);
    }
    return (known & what) != 0;
}
#  define SWA__CPU_HAS(feature) swa__cpu(SWA__CPU_##feature)
#  define SWA__CPU_IS(maker)    swa__cpu(SWA__CPU_##maker)
#elif SWA__X86
#  define SWA__CPU_HAS(feature) __builtin_cpu_supports(#feature)
#  define SWA__CPU_IS(maker)    __builtin_cpu_is(#maker)
#endif

static int swa__isa_compiled(int isa) {
    return isa == SWA_ISA_SCALAR || (isa == SWA_ISA_NEON && SWA__NEON)
           || (isa == SWA_ISA_SIMD128 && SWA__SIMD128) || (isa == SWA_ISA_AVX2 && SWA__AVX2)
           || (isa == SWA_ISA_AVX512 && SWA__AVX512);
}

SWA_API int swa_isa_usable(int isa) {
    if (!swa__isa_compiled(isa)) return 0;
#if SWA__X86
    if (isa == SWA_ISA_AVX2)
        /* every such CPU has F16C */
        return SWA__CPU_HAS(avx2) && SWA__CPU_HAS(fma);
    if (isa == SWA_ISA_AVX512)
        return SWA__CPU_HAS(avx512f) && SWA__CPU_HAS(avx512bw)
               && SWA__CPU_HAS(avx512dq) && SWA__CPU_HAS(avx512vl)
               && SWA__CPU_HAS(fma);
#endif
    return 1;
}

#if SWA__AVX2_DOT && SWA__Q8
/* Integer products without AVX-512, asked where AVX2 is usable. Clang (14 to 16 at least) does not
   know the name: CPUID, which a virtual machine may take a microsecond for; calls with compute
   SWA_Q8 that run on AVX2 ask once a part. */
static int swa__has_avx_vnni(void) {
#  if defined(__clang__) && !defined(_MSC_VER)
    unsigned r[4];
    swa__cpuid(0, 0, r);
    if (r[0] < 7) return 0;
    swa__cpuid(7, 0, r);
    if (r[0] < 1) return 0;
    swa__cpuid(7, 1, r);
    return r[0] >> 4 & 1;
#  else
    return SWA__CPU_HAS(avxvnni);
#  endif
}
#endif

/* Whether decoding fetches the next block (256 keys of K or V, 128 KB in f32 at head_dim 128) into
   L1, or into L2 only: the one place where that is chosen, by kind of CPU.
     AMD Zen 4        L2: with L1 34 % slower (measured)
     AMD Zen 5        L1: up to 20 % faster (measured); told by a feature that Zen 4 lacks
     Intel            L2: with L1 11 to 14 % slower, with PREFETCHNTA 2.2 to 2.7 times (measured on
                      Emerald Rapids): a line for L1 holds one of 16 fill buffers until it comes,
                      L2 waits for 48, and its 2 MB hold the block, 48 KB do not
     Neoverse, Apple  L2: 0.5 to 2 MB (N1, V1, V2), 12 MB for four (M1) hold the block, 64 and 128
                      KB of L1 do not, or barely; Apple's lines are 128 bytes: every second fetch
                      is idle (not measured) */
static int swa__fetch_l1(void) {
#if SWA__X86 && (defined(__clang__) || __GNUC__ >= 10) /* older ones do not know the name */
    return SWA__CPU_HAS(avx512vp2intersect) && SWA__CPU_IS(amd);
#else
    return 0;
#endif
}

/* With AVX-512 that is Zen 4. */
SWA__INLINE int swa__amd_before_zen5(void) {
#if SWA__X86
    return SWA__CPU_IS(amd) && !swa__fetch_l1();
#else
    return 0;
#endif
}

/* How many tiles of K few rows read at once with AVX-512, each of which is a stream from memory:
   four rows of narrow types, and one row of any. Two rows take one tile, and four one of f32, where
   this is not 4; else 4 and 2.
     AMD Zen 4        4: with 2 in f16 1.07 of the time, with 1 1.06 to 1.14 for fewer rows
     AMD Zen 5        1: 0.91 to 0.95 of the time cold and in L3, in L2 as fast; narrow types of four
                      rows and q8 of fewer go by 4 there too, q8 took 1.07 to 1.2
     Intel            2: 0.97 of the time in f16 on Emerald Rapids, of four rows; 4 for one row, for
                      which 1 took 1.03. On Granite Rapids one tile took 0.94 of the time of four
                      rows in f32 (f16: 1.15), 0.96 to 0.99 of that of two */
static int swa__key_streams(void) {
#if SWA__X86
    return swa__fetch_l1() ? 1 : SWA__CPU_IS(intel) ? 2 : 4;
#else
    return 4;
#endif
}

/* How many bytes ahead of few rows' reading K goes from L2 into L1, where what is fetched is for L2:
   Emerald Rapids takes 0.97 of the time in f32, f16 and bf16. There what waits for L2 stays in the
   way of what comes from memory. 0 asks for the line that is read, which costs nothing. Where it is
   not 0, panels of AVX-512 ask for K so far ahead, and whole ones for V 16 keys ahead: Granite
   Rapids takes 0.96 of prefill's time at head_dim 128, 0.90 at 256, 1.00 at 64 (whose V rows clash
   less), and 0.87 of that of MLA's 16 heads, which are half a panel. Of a list's long blocks q.k
   fetches rows of V beside tiles of K then: 0.85, with swa__list_long, of the time of 16 blocks of
   128 in f16. Zen 4 took 1.1 with such rows in q.k.
   And p.v then fetches the next K from two places in turn, the halves of what its next keys bring:
   of one stream Granite Rapids lost 0.06 to 0.1 of the time where its pages of 4 KB began at unlucky
   places (600 of 4096 bytes for four rows), whatever else was there. */
static int swa__fetches_near(void) {
#if SWA__X86
    return SWA__CPU_IS(intel) ? 1024 : 0;
#else
    return 0;
#endif
}

/* Whether V is asked for a second time: by decode over the caller's rows in f32, see swa__rows_soon,
   and with AVX2 by p.v of four rows over a large ring in f32, two tiles before it is read. AMD drops
   a fetch for which no miss buffer is free (Zen 3: two thirds of what comes as fast as it can), and
   q.k, which fetches V, runs faster than DRAM. Zen 4 takes 0.88 of the time of rows then, Zen 3 0.88
   of AVX2's (f16 1.01, and in L2 f32 1.04); Emerald Rapids 1.16 of that of rows. */
static int swa__fetches_twice(void) {
#if SWA__X86
    return !SWA__CPU_IS(intel);
#else
    return 1;
#endif
}

/* Ways that few kinds of CPU take are taken on all where this is 1, as tests of them do. */
#ifndef SWA__EVERY_CPU
#  define SWA__EVERY_CPU 0
#endif

/* Whether decode over the caller's rows weaves heads, see swa__woven_run: on Intel (Skylake: 0.5 to
   0.6 of the time in f32, 0.8 to 0.95 in narrow types). Zen 5 takes 1.2 times as long in f32, 1.6
   in narrow types. Others have not been measured, and read one head after the other. */
static int swa__likes_weaving(void) {
#if SWA__X86
    return SWA__EVERY_CPU || SWA__CPU_IS(intel);
#else
    return SWA__EVERY_CPU;
#endif
}

#if SWA__MLA
/* How one token's product fetches its weights, as SWA__FN(fetch) numbers the ways: past L2 on AMD
   (Zen 4: 35 GB/s, 28 by way of L2); into L2 on Intel, where a line past it holds a fill buffer
   (Emerald Rapids, f32: 6.5 GB/s, by way of L2 15.4, which is its DRAM's). */
static int swa__fetch_weights(void) {
#if SWA__X86
    return SWA__CPU_IS(amd) ? 3 : 1;
#else
    return 3;
#endif
}

/* How many inputs of weights stored by columns go by before the next columns, where few tokens are:
   one is the order of memory, which Zen 4's own prefetch wants (0.70 of the time in f32, 0.81 in
   bf16; two 1.4, whose half rows lie apart), though sums go through L1 with each. SWA__INPUTS on
   Zen 5 (one 1.04 of the time, of W_UK 1.15 to 1.25) and on Emerald Rapids, where one was not
   measured. */
enum { SWA__INPUTS = 16 };
static int swa__column_inputs(void) {
    return swa__amd_before_zen5() ? 1 : SWA__INPUTS;
}
#endif

/* Whether bf16 pairs are worth their instruction. AMD (Zen 4, 5) runs as many of them a cycle as
   f32 FMAs: twice the products. Intel runs one in two cycles, beside two FMAs a cycle (read on
   Emerald Rapids: 16 of them take 32 cycles, 16 FMAs 8), half the products; Sapphire Rapids was 1.4
   to 1.6 times slower with pairs than in f32. There the emulated form runs, f32 FMAs on rounded
   numbers, with the same bits. */
#if SWA__AVX512_DOT
static int swa__likes_pairs(void) {
    return SWA__CPU_HAS(avx512bf16) && !SWA__CPU_IS(intel);
}
#endif
/* Intel's tiles (AMX). Tests define SWA_TILE_MODEL: a model of the instructions in their place. */
#if !defined(SWA_NO_AMX) && SWA__AVX512_DOT && SWA__BF16 && defined(__linux__) \
    && defined(__LP64__) && (defined(__clang__) || __GNUC__ >= 11)
#  define SWA__AMX 1
#else
#  define SWA__AMX 0
#endif
#if SWA__AMX
/* Whether tiles may be used: the CPU and the kernel keep them (XCR0), and the process asks for
   them, which is a system call; a grant lasts, so asking again changes nothing. Every CPU with
   tiles multiplies bf16 by them. */
static int swa__amx_allowed(void) {
#  ifndef SWA_TILE_MODEL
    unsigned a, d;
    long got;
    if (!SWA__CPU_HAS(avx512bf16) || !SWA__CPU_IS(intel)) return 0;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    if ((a >> 17 & 3) != 3) return 0;
    __asm__ volatile("syscall"
                     : "=a"(got)
                     : "0"(158L), "D"(0x1023L), "S"(18L)
                     : "rcx", "r11", "memory");
    return got == 0;                     /* arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA) */
#  else
    return SWA__CPU_HAS(avx512bf16) != 0;
#  endif
}
#endif
SWA_API int swa_isa_best(void) {
    int isa = SWA_ISA_AVX512;
    while (isa > SWA_ISA_SCALAR && !swa_isa_usable(isa)) isa--;
    return isa;
}

SWA__COLD SWA_API swa_type swa_compute_fastest(int isa) {
    if (isa == SWA_ISA_BEST) isa = swa_isa_best();
    if (isa != SWA_ISA_AVX512 || !swa_isa_usable(isa)) return SWA_F32;
#if SWA__AMX
    if (swa__amx_allowed()) return SWA_BF16_TILE;
#endif
#if SWA__AVX512_DOT && SWA__BF16
    if (swa__likes_pairs()) return SWA_BF16;
#endif
    return SWA_F32;
}

SWA__COLD SWA_API int swa_version(void) { return SWA_VERSION; }

SWA__COLD SWA_API const char *swa_isa_name(int isa) {
    static const char *const name[] = { "best", "scalar", "neon", "simd128", "avx2", "avx512" };
    return isa >= SWA_ISA_BEST && isa <= SWA_ISA_AVX512 ? name[isa] : "unknown";
}

/* ==== [SECTION 3] NUMBERS ========================================================================
   Sizes that cannot overflow unnoticed, and the formats of 16 and 8 bits in plain C. All sections
   below compute their sizes by these functions. Masks and single numbers are converted by
   them too; rows by the kernels, whose scalar instance is made of them (but on x86-64, where it is
   SSE2): so what rounds to which bits is said once, and tests hold every instruction set to it. */

/* Whether arrays of so many bytes share any. NULL shares none, an empty one neither. */
static int swa__touch(const void *a, size_t n, const void *b, size_t m) {
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x != 0 && y != 0 && n > 0 && m > 0 && (x < y ? y - x < n : x - y < m);
}

/* Dims, slots and counts come from the caller, and a size is a product of up to four of them. One
   that wraps round would pass as a small size, and the memory that it asks for be written over.
   1 = fits. */
static int swa__mul(size_t a, size_t b, size_t *r) {
    if (b != 0 && a > (size_t)-1 / b) return 0;
    *r = a * b;
    return 1;
}

static int swa__add(size_t a, size_t b, size_t *r) {
    if (a > (size_t)-1 - b) return 0;
    *r = a + b;
    return 1;
}

/* Whether so many bytes are enough, where a need of 0 is one that cannot be counted. */
static int swa__enough(size_t has, size_t need) { return need > 0 && has >= need; }

/* *total += a*b*c rounded up to 64 bytes: how every region of memory is laid out. Bases are aligned
   to 64 as well (swa__align64), so a region begins on a cache line and suits the widest vector, and
   what one part writes shares no line with what another does. */
static int swa__region(size_t *total, size_t a, size_t b, size_t c) {
    size_t n;
    if (!swa__mul(a, b, &n) || !swa__mul(n, c, &n) || !swa__add(n, 63, &n)) return 0;
    return swa__add(*total, n & ~(size_t)63, total);
}

static int swa__min(int a, int b) { return a < b ? a : b; }
static int64_t swa__min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t swa__max64(int64_t a, int64_t b) { return a > b ? a : b; }

/* Slots of a ring that lie together, transposed, and keys that a kernel takes at once: 16 is the
   widest vector. */
enum { SWA__TILE = 16 };
static int64_t swa__round16(int64_t n) { return (n + SWA__TILE - 1) / SWA__TILE * SWA__TILE; }

/* The bits of a number, by memcpy: compilers make one move of it, and reading a float through a
   uint32_t pointer is undefined. */
static float swa__float_of(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static uint32_t swa__bits_of(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }

/* By its bits, as -ffast-math lets a comparison say anything. */
static int swa__finite(float x) { return (swa__bits_of(x) & 0x7f800000u) != 0x7f800000u; }
static int swa__is_nan(float x) { return (swa__bits_of(x) & 0x7fffffffu) > 0x7f800000u; }

/* Round to nearest even; overflow to infinity, as the F16C instructions do. No NaN comes here:
   masks refuse it, stored rows are cut to the type's range. */
static uint16_t swa__f16_from_f32(float f) {
    uint32_t u = swa__bits_of(f), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu, shift, m;

    /* 65536 and more; what only rounds up to it, from 65520 on, carries into infinity below */
    if (a >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
    /* from 2^-14 on a normal half: the exponent's bias goes from 127 to 15 (-112 << 23), and half
       of the lowest bit that stays, minus one, is added to what is cut off; plus one where that bit
       is odd */
    if (a >= 0x38800000u) {
        a += 0xc8000fffu + ((a >> 13) & 1);
        return (uint16_t)(sign | (a >> 13));
    }
    /* below 2^-25, half of the smallest; that half itself is a tie, and goes to 0 further down */
    if (a < 0x33000000u) return (uint16_t)sign;
    shift = 126 - (a >> 23); /* a subnormal half counts in 2^-24: shift the mantissa in, then round */
    m = (a & 0x7fffffu) | 0x800000u;
    a = m >> shift;
    m &= (1u << shift) - 1;
    a += m > (1u << (shift - 1)) || (m == (1u << (shift - 1)) && (a & 1));
    return (uint16_t)(sign | a);
}

/* What is no normal number: subnormals, 0, infinities, and NaNs, which become quiet as F16C makes
   them. */
SWA__NOINLINE float swa__f32_from_odd_f16(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, a = h & 0x7fffu;

    if (a >= 0x7c00u)
        return swa__float_of(sign | 0x7f800000u | a << 13 | (a > 0x7c00u ? 0x400000u : 0u));
    return swa__float_of(sign | swa__bits_of((float)a * 5.9604644775390625e-8f));    /* a * 2^-24 */
}

/* Exact. */
SWA__INLINE float swa__f32_from_f16(uint16_t h) {
    const uint32_t a = h & 0x7fffu;

    if (a - 0x400u >= 0x7800u) return swa__f32_from_odd_f16(h);
    return swa__float_of((uint32_t)(h & 0x8000u) << 16 | (a + (112u << 10)) << 13);
}

/* The upper half, rounded to nearest even; what rounds beyond the largest carries into infinity. A
   NaN could carry into its sign: none comes here either. */
#if SWA__BF16 || SWA__MASKS || !SWA__SSE2
static uint16_t swa__bf16_from_f32(float f) {
    uint32_t u = swa__bits_of(f);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}
#endif

static float swa__f32_from_bf16(uint16_t h) { return swa__float_of((uint32_t)h << 16); }

/* All bits where a < b, of two below 2^31: a mask where a choice would be a branch. */
static uint32_t swa__below(uint32_t a, uint32_t b) { return 0u - ((a - b) >> 31); }

/* fp8 as the OCP defines it: of 8 bits E4M3 has 4 of exponent, bias 7, and E5M2 has 5, bias 15. To
   nearest even: half of the lowest bit that stays, minus one, is added, plus one where that bit is
   odd. What is too large becomes the largest, 448 or 57344, also an infinity, because one stored
   would poison every later row. A NaN is one here too. 32 numbers without a branch, so that
   compilers make vectors of the loop. */
SWA__INLINE void swa__fp8_codes(uint32_t bits, uint32_t bias, uint32_t largest, const float *x,
                                uint32_t *code) {
    const uint32_t cut = 23 - bits, rebias = (127 - bias) << bits, most = (largest >> cut) - rebias,
                   normal = (128 - bias) << 23,
                   /* a number whose last bit is the smallest fp8, 2^(1 - bias - bits) */
                   unit = (151 - bias - bits) << 23;
    const float ones = swa__float_of(unit);
    int i;

    for (i = 0; i < 32; i++) {
        const uint32_t u = swa__bits_of(x[i]), a = u & 0x7fffffffu, small = swa__below(a, normal),
                       fits = swa__below(a, largest), nan = swa__below(0x7f800000u, a);
        const uint32_t count = swa__bits_of(swa__float_of(a & small) + ones) - unit;
        uint32_t c = ((a + (1u << (cut - 1)) - 1 + (a >> cut & 1)) >> cut) - rebias;

        c = (c & ~small) | (count & small);
        c = (c & fits) | (most & ~fits);
        c = (c & ~nan) | (0x7fu & nan);
        code[i] = c | (u >> 24 & 0x80u);
    }
}

static void swa__fp8_from_f32(int type, const float *x, unsigned char *to) {
    uint32_t code[32];
    int i;

    if (type == SWA_E4M3) swa__fp8_codes(3, 7, 0x43e00000, x, code);
    else swa__fp8_codes(2, 15, 0x47600000, x, code);
    for (i = 0; i < 32; i++) to[i] = (unsigned char)code[i];
}

/* Exact. A code of E5M2 is the upper half of an f16, and one of E4M3 has that layout too, but for
   an exponent that is 8 less, and a NaN (no infinities) where all other bits are set. */
static float swa__f32_from_fp8(int type, unsigned c) {
    const unsigned sign = (c & 0x80u) << 8, a = c & 0x7fu;

    if (type == SWA_E5M2) return swa__f32_from_f16((uint16_t)(sign | a << 8));
    if (a == 0x7fu) return swa__float_of(sign << 16 | 0x7fc00000u);
    return swa__f32_from_f16((uint16_t)(sign | a << 7)) * 256.0f;
}

/* What 0 means. */
static swa_type swa__type_or(swa_type type, swa_type fallback) {
    return type != SWA_TYPE_DEFAULT ? type : fallback;
}

/* Bytes of a number; what is still 0 counts as f32. Scales are an array of their own. */
static size_t swa__type_size(int type) {
    return type <= SWA_F32 ? 4 : type == SWA_F16 || type == SWA_BF16 ? 2 : 1;
}

/* Number i of an array; of q8 and q8_32 the integer alone. A type that is left out never comes this
   far. */
static float swa__load1(int type, const void *p, size_t i) {
    if (type <= SWA_F32) return ((const float *)p)[i];
    if (SWA__IS_F16(type)) return swa__f32_from_f16(((const uint16_t *)p)[i]);
    if (SWA__IS_BF16(type)) return swa__f32_from_bf16(((const uint16_t *)p)[i]);
    if (SWA__IS_STAGED(type) && type != SWA_Q8_32)
        return swa__f32_from_fp8(type, ((const unsigned char *)p)[i]);
    return (float)((const int8_t *)p)[i];
}

SWA__COLD SWA_API const char *swa_status_str(swa_status status) {
    static const char *const text[] = {
        "OK",
        "ARG: bad argument: see the function's comment in swa.h, and its swa_*_explain, if it has one",
        "OVERFLOW: size or position overflows",
        "MEMORY: buffer too small, or none was set",
        "ORDER: pos is not the sequence's end, a call is missing (swa_cache_unstored), or a wrong layer, part, phase",
        "LOST: needs rows that the ring has overwritten",
        "CAPACITY: more rows or tree nodes than the capacity has room for",
        "FULL: max_context reached",
        "UNSUPPORTED: not supported with this type, instruction set or window",
        "BLOB: blob cut, altered, or of another geometry"
    };

    return (size_t)status < sizeof text / sizeof *text ? text[status] : "unknown status";
}

/* What a check says: a status, and in words why it is not SWA_OK, for those who ask
   (swa_attend_explain). */
typedef struct { swa_status status; const char *why; } swa__verdict;
static swa__verdict swa__no(swa_status status, const char *why) {
    swa__verdict v;
    v.status = status;
    v.why = status != SWA_OK ? why : NULL;
    return v;
}
static swa__verdict swa__yes(void) { return swa__no(SWA_OK, NULL); }

/* ==== [SECTION 4] WINDOW =========================================================================
   Who sees whom. Only this section knows what a window means: swa__bounds says what a query sees,
   swa_visible is membership in it, and masks, tile bounds, eviction, capacity and the rollback law
   are all derived from these two. A query sees one interval of keys, and pinned sinks before it;
   left or right -1 is no limit on that side:

       0   n_sink          lo               q          hi
       |sinks|.............|________________|__________|.........    keys, by position

       kind      lo                   hi
       CAUSAL    0                    q + 1
       BAND      max(0, q - left)     q + 1 + right         sliding(W): left = W-1, right = 0
       CHUNKED   q - q mod left       q + 1                 left: the chunk
       prefix    at most its first    at least its end      for queries within it, on top

   Neither end moves back as q grows. So what the first query of a run does not see on its left no
   later one sees, and first and last query bound what all of them touch: eviction, the rollback law
   and the blocks of a unit ([SECTION 12]) rest on that. Sinks are not part of the interval, because
   between them and it are keys that nobody sees. */

enum {
    SWA__UNSAID = 0, /* {0}: causal all the same; audit asks whether it was forgotten */
    SWA__BAND = 1,
    SWA__CHUNKED = 2,
    SWA__CAUSAL = 3
};

/* Nonsense keeps its numbers and gets a kind that no check accepts: a constructor returns a struct,
   so the status has to come from the call that is given it. */
static swa_window swa__window(int ok, int kind, int64_t left, int64_t right) {
    swa_window w;

    w.kind = ok ? kind : -1;
    w.n_sink = 0;
    w.left = left;
    w.right = right;
    w.prefix = w.prefix_first = 0;
    return w;
}

SWA_API swa_window swa_window_causal(void) { return swa__window(1, SWA__CAUSAL, 0, 0); }
SWA_API swa_window swa_window_sliding(int64_t W) {
    /* W - 1 of the smallest W would overflow */
    return swa__window(W > 0, SWA__BAND, W - (W > 0), 0);
}

SWA_API swa_window swa_window_flash(int64_t left, int64_t right) {
    return swa__window(left >= -1 && right >= -1, SWA__BAND, left, right);
}

SWA_API swa_window swa_window_chunked(int64_t chunk) {
    return swa__window(chunk > 0, SWA__CHUNKED, chunk, 0);
}

SWA_API swa_window swa_window_symmetric(int64_t reach) {
    return swa__window(reach >= 0, SWA__BAND, reach, reach);
}

SWA_API swa_window swa_window_sinks(int64_t W, int32_t n_sink) {
    swa_window w = swa_window_sliding(W);
    w.n_sink = n_sink;
    return w;
}

SWA_API swa_window swa_window_prefix(int64_t W, int64_t prefix) {
    swa_window w = swa_window_sliding(W);
    w.prefix = prefix;
    return w;
}

/* Asked wherever a window is given, constructors notwithstanding: the fields are the caller's,
   n_sink is meant to be set by hand, and zeros are the causal window. */
static int swa__window_ok(const swa_window *w) {
    if (w == NULL || w->n_sink < 0 || w->prefix < 0 || w->prefix_first < 0) return 0;
    /* no query is in it: an end is a position, and a length was given */
    if ((w->prefix | w->prefix_first) != 0 && w->prefix <= w->prefix_first) return 0;
    if (w->kind == SWA__BAND) return w->left >= -1 && w->right >= -1;
    /* the other kinds have no such ends: a band was meant, set by hand */
    if (w->kind == SWA__CAUSAL || w->kind == SWA__UNSAID) return w->left == 0 && w->right == 0;
    return w->kind == SWA__CHUNKED && w->left > 0 && w->right == 0;
}

/* The rule, as bounds: besides the sinks, the query at 0 <= q < INT64_MAX sees the keys [*lo, *hi).
   *hi INT64_MAX: all that there are, since no key has that position. */
static void swa__bounds(const swa_window *w, int64_t q, int64_t *lo, int64_t *hi) {
    int64_t right = w->kind == SWA__BAND ? w->right : 0;

    *lo = 0;
    /* q-k <= left, left = W-1 */
    if (w->kind == SWA__BAND && w->left >= 0 && q > w->left) *lo = q - w->left;
    if (w->kind == SWA__CHUNKED) *lo = q - q % w->left;
    /* compared before it is added: right may be as large as the type holds */
    *hi = right < 0 || right > INT64_MAX - 1 - q ? INT64_MAX : q + 1 + right;
    /* the prefix comes last: it only adds to what the window shows, on either side */
    if (q >= w->prefix_first && q < w->prefix) {
        *lo = swa__min64(*lo, w->prefix_first);
        *hi = swa__max64(*hi, w->prefix);
    }
}

/* The end that decides what a ring has to keep. */
static int64_t swa__lowest(const swa_window *w, int64_t q) {
    int64_t lo, hi;
    swa__bounds(w, q, &lo, &hi);
    return lo;
}

/* Keys that n > 0 queries from q on may see, sinks apart: no end of a window moves back from query to
   query, so that the first and the last tell of all. */
typedef struct { int64_t lo, hi; } swa__seen;
static swa__seen swa__seen_of(const swa_window *w, int64_t q, int32_t n) {
    swa__seen seen;
    swa__bounds(w, q + n - 1, &seen.lo, &seen.hi);
    seen.lo = swa__lowest(w, q);
    return seen;
}

/* The first query from q on that sees, sinks apart, no key before `from`, or none before itself;
   INT64_MAX: none. Asked where a sequence may end when rows before `from` are lost
   (swa_cache_min_end). */
static int64_t swa__next_query(const swa_window *w, int64_t q, int64_t from) {
    const int64_t lo = swa__lowest(w, q);

    if (lo >= from || lo >= q) return q;
    /* the next chunk begins, and its first query sees nothing before itself */
    if (w->kind == SWA__CHUNKED) return lo > INT64_MAX - w->left ? INT64_MAX : lo + w->left;

    /* the first one that `from` is the lowest key of; a causal one sees all, however late */
    return w->kind == SWA__BAND && w->left >= 0 && from <= INT64_MAX - w->left ? from + w->left
                                                                               : INT64_MAX;
}

/* The largest number of keys up to its own that a query can see: W; INT64_MAX without limit. What
   lies to the right does not count: a ring has none of it. */
static int64_t swa__reach(const swa_window *w) {
    if (w->kind == SWA__CHUNKED) return w->left;
    return w->kind == SWA__BAND && w->left >= 0 && w->left < INT64_MAX ? w->left + 1 : INT64_MAX;
}

SWA_API int swa_visible(const swa_window *window, int64_t q, int64_t k) {
    int64_t lo, hi;
    if (!swa__window_ok(window) || q < 0 || k < 0 || q == INT64_MAX) return 0;
    swa__bounds(window, q, &lo, &hi);
    return (k >= lo && k < hi) || (k < window->n_sink && k <= q);
}

SWA_API swa_status swa_visible_range(const swa_window *window, int64_t q, int64_t *lo,
                                     int64_t *hi) {
    if (!swa__window_ok(window) || lo == NULL || hi == NULL || q < 0) return SWA_ERR_ARG;
    if (q == INT64_MAX) return SWA_ERR_OVERFLOW;
    swa__bounds(window, q, lo, hi);
    return SWA_OK;
}

SWA__COLD SWA_API const char *swa_explain(const swa_window *window, int64_t q, int64_t k) {
    int64_t lo, hi;

    if (!swa__window_ok(window)) return "hidden: the window is invalid";
    if (q < 0 || k < 0 || q == INT64_MAX) return "hidden: there is no such position";

    swa__bounds(window, q, &lo, &hi);
    /* in this order: a sink that the window still shows is said to be in the window */
    if (k >= lo && k < hi)
        return k > q ? "visible: ahead, by the right extent or the prefix"
                     : "visible: in the window";
    if (k < window->n_sink && k <= q) return "visible: a pinned sink";
    if (k >= hi) return "hidden: after the query";
    return window->kind == SWA__CHUNKED ? "hidden: in an earlier chunk"
                                        : "hidden: further back than the window";
}

/* ==== [SECTION 5] MASKS ==========================================================================
   Dense masks for other people's kernels, written row by row as ranges: the row is filled as
   hidden, then what swa_visible_range() and n_sink give is opened. Nothing here knows what a window
   is. Cells are stored by memcpy, so the buffer may have any alignment; values are judged by their
   bits, so -ffast-math changes nothing.

                     block 0: n_k[0] keys    block 1: n_k[1] keys    (k_padding: each that wide)
       n_q[0] rows   ranges are opened       hidden
       n_q[1] rows   hidden                  ranges are opened

   Rows of all blocks follow each other, and each is as wide as all columns together. */

#if SWA__MASKS
/* A cell of `size` bytes, as the type has it. Visible is all zeros but for BOOL_KEEP: a mask is
   added to the scores, or says which are to be dropped. */
typedef struct { size_t size; unsigned char hidden[4], visible[4]; } swa__mask_cell;

/* What a hidden and a visible entry look like; 0 = no mask type, or a masked value it cannot hold:
   NaN, a finite value that rounds to infinity, or one so small that it rounds to 0, which is
   visible. -inf always fits. */
static int swa__mask_cell_of(swa_type type, float masked, swa__mask_cell *cell) {
    uint32_t magnitude;

    memset(cell, 0, sizeof *cell);
    type = swa__type_or(type, SWA_F32);
    if (type == SWA_BOOL_MASKED || type == SWA_BOOL_KEEP) {
        cell->size = 1;
        cell->hidden[0] = type == SWA_BOOL_MASKED;
        cell->visible[0] = type == SWA_BOOL_KEEP;
        return 1;
    }
    if (type != SWA_F32 && type != SWA_F16 && type != SWA_BF16) return 0;

    magnitude = swa__bits_of(masked) & 0x7fffffffu;
    /* a NaN, an infinity that shows nothing else; then 0 and -0, which ask for the default */
    if (magnitude > 0x7f800000u || swa__bits_of(masked) == 0x7f800000u) return 0;
    if (magnitude == 0) masked = type == SWA_F16 ? -65504.0f : -65536.0f;
    if (type == SWA_F32) {
        cell->size = 4;
        memcpy(cell->hidden, &masked, 4);
    } else {
        uint16_t bits = type == SWA_F16 ? swa__f16_from_f32(masked) : swa__bf16_from_f32(masked);
        unsigned infinite = type == SWA_F16 ? 0x7c00u : 0x7f80u, rounded = bits & 0x7fffu;
        /* the two ways in which a number does not fit; infinity, given as such, does */
        if (rounded == 0 || (rounded >= infinite && magnitude != 0x7f800000u)) return 0;
        cell->size = 2;
        memcpy(cell->hidden, &bits, 2);
    }
    return 1;
}

/* n > 0 cells at p become copies of value; each memcpy doubles what is there. So it needs no loop
   per type, and a row of any width takes few calls. */
static void swa__mask_fill(unsigned char *p, size_t n, size_t size, const unsigned char *value) {
    size_t total = n * size, done = size, more;
    memcpy(p, value, size);
    for (; done < total; done += more) {
        more = done < total - done ? done : total - done;
        memcpy(p + done, p, more);
    }
}

/* Checks a desc and measures its mask. What is wrong comes before what is too large, also where a
   later block is wrong and an earlier one too large: so the loop goes on after an overflow. */
static swa_status swa__mask_measure(const swa_mask_desc *desc, swa__mask_cell *cell,
                                    size_t *columns, size_t *bytes) {
    size_t rows = 0, packed = 0;
    int b, n, fits = 1;

    if (!desc || !desc->n_q || !desc->n_k || desc->n_blocks < 0 || desc->k_padding < 0)
        return SWA_ERR_ARG;
    if (!swa__window_ok(&desc->window) || !swa__mask_cell_of(desc->type, desc->masked, cell))
        return SWA_ERR_ARG;
    n = desc->n_blocks ? desc->n_blocks : 1;
    for (b = 0; b < n; b++) {
        int32_t nq = desc->n_q[b], nk = desc->n_k[b];
        int64_t q0 = desc->q_pos0 ? desc->q_pos0[b] : 0, k0 = desc->k_pos0 ? desc->k_pos0[b] : 0;
        if (nq < 0 || nk < 0 || q0 < 0 || k0 < 0 || (desc->k_padding && nk > desc->k_padding))
            return SWA_ERR_ARG;
        /* rows end at INT64_MAX - 1 at the latest, the last position that swa__bounds takes */
        fits = fits && q0 <= INT64_MAX - nq && k0 <= INT64_MAX - nk;
        fits = fits && swa__add(rows, (size_t)nq, &rows) && swa__add(packed, (size_t)nk, &packed);
    }

    *columns = packed;
    if (desc->k_padding) fits = fits && swa__mul((size_t)n, (size_t)desc->k_padding, columns);
    fits = fits && swa__mul(rows, *columns, bytes) && swa__mul(*bytes, cell->size, bytes);
    return fits ? SWA_OK : SWA_ERR_OVERFLOW;
}

/* Opens keys [lo, hi) in a row whose n cells, from p on, stand for the keys from k0 on. */
static void swa__mask_open(unsigned char *p, int64_t k0, int64_t n, int64_t lo, int64_t hi,
                           const swa__mask_cell *cell) {
    /* clipped before anything is subtracted: hi is INT64_MAX where a window has no limit */
    if (lo < k0) lo = k0;
    if (hi > k0 + n) hi = k0 + n;
    if (lo < hi)
        swa__mask_fill(p + (size_t)(lo - k0) * cell->size, (size_t)(hi - lo), cell->size,
                       cell->visible);
}

SWA__COLD SWA_API size_t swa_mask_bytes(const swa_mask_desc *desc) {
    swa__mask_cell cell;
    size_t columns, bytes;
    return swa__mask_measure(desc, &cell, &columns, &bytes) == SWA_OK ? bytes : 0;
}

SWA__COLD SWA_API swa_status swa_mask(const swa_mask_desc *desc, void *out, size_t bytes) {
    swa__mask_cell cell;
    size_t columns, need, first = 0;                /* first: the block's first column */
    unsigned char *row = (unsigned char *)out;
    swa_status status = swa__mask_measure(desc, &cell, &columns, &need);
    int b, n;

    if (status != SWA_OK) return status;
    if (need == 0) return SWA_OK; /* no rows or no columns: nothing to write, out may be NULL */
    if (!out) return SWA_ERR_ARG;
    if (bytes < need) return SWA_ERR_MEMORY;

    n = desc->n_blocks ? desc->n_blocks : 1;
    for (b = 0; b < n; b++) {
        int64_t q0 = desc->q_pos0 ? desc->q_pos0[b] : 0, k0 = desc->k_pos0 ? desc->k_pos0[b] : 0;
        int64_t nk = desc->n_k[b], i;
        if (desc->k_padding) first = (size_t)b * (size_t)desc->k_padding;
        for (i = 0; i < desc->n_q[b]; i++) {
            int64_t q = q0 + i, lo = 0, hi = 0, sinks = desc->window.n_sink;
            unsigned char *block = row + first * cell.size;

            /* the whole row first: other blocks' columns and padding are hidden too. The two ranges
               that are opened may overlap, and no sink lies after the query */
            swa__mask_fill(row, columns, cell.size, cell.hidden);
            swa__bounds(&desc->window, q, &lo, &hi);
            swa__mask_open(block, k0, nk, lo, hi, &cell);
            swa__mask_open(block, k0, nk, 0, swa__min64(sinks, q + 1), &cell);
            row += columns * cell.size;
        }
        first += (size_t)nk;
    }
    return SWA_OK;
}

/* The compressed mask [ATB]: one 512x512 picture of a sliding window of T keys that serves any W
   and S. A kernel works on tiles of BxB scores; the tile `delta` tiles left of the diagonal holds
   the distances delta*B + r-c, for its row r and column c. Band b of the picture, its rows b*B..
   and columns 0..B-1, shows the distances b*B + r-c; there are four. A band shows the window's edge
   where the tile has it iff T - b*B = W - delta*B.

                        910B, n = ceil(W/B)             310P, f = floor(W/B), at least 2
       delta 0          band 0                          band 0
       delta 1          band 1                          band 1, W >= 2B: no mask unless delta == f
       between          no mask, all visible            no mask, all visible
       edge             n-1: band 2, n: band 3          f: band 2, f+1: band 3
                        (n <= 3: delta d has band d)
       beyond ceil(W/B) the tile is not computed        the tile is not computed

   Hence T = W while band and delta agree, that is while n <= 3 or f <= 2. Beyond, T = W - (n-3)B,
   in 2B+1..3B, for 910B and T = W - (f-2)B, in 2B..3B-1, for 310P. The document's Python sample is
   910B's rule but has B = 64 for every head above 128; its C++ sample is 310P's rule but for W =
   3B, where it has T = 3B for 2B, and never rounds the head up to a multiple of 16 before it
   divides. A model of the kernels' public source; no NPU was asked. */

/* B rows of the head are at most 16384 numbers, in whole 16s, and B at most 128. The two samples
   round otherwise: see above. */
SWA__COLD SWA_API int swa_compressed_block(swa_compressed kind, int head_dim) {
    if (head_dim < 1) return 0;
    if (kind == SWA_COMPRESSED_PY) return head_dim <= 128 ? 128 : 64;
    /* 0 above 1024 */
    if (kind == SWA_COMPRESSED_CPP) return head_dim <= 128 ? 128 : 16384 / head_dim / 16 * 16;
    if ((kind != SWA_COMPRESSED_910B && kind != SWA_COMPRESSED_310P) || head_dim > 256) return 0;
    return head_dim <= 128 ? 128 : 16384 / ((head_dim + 15) / 16 * 16) / 16 * 16;
}

/* T of the table: W as it is while the picture has a band for each tile, and else 2B and what W has
   beyond its last whole tile. 910B counts a whole tile as such a rest, 310P as none. */
SWA__COLD SWA_API int64_t swa_compressed_band(swa_compressed kind, int64_t W, int head_dim) {
    int64_t B = swa_compressed_block(kind, head_dim), rest;
    if (B == 0 || W <= 0) return 0;
    if (W < 3 * B || (W == 3 * B && kind != SWA_COMPRESSED_310P)) return W;
    rest = W % B;
    if (rest == 0 && (kind == SWA_COMPRESSED_PY || kind == SWA_COMPRESSED_910B)) rest = B;
    return 2 * B + rest;
}

/* The picture is the mask of an ordinary window of T keys over 512 positions: the bands, which the
   kernels cut out of its left columns, have distances b*B + r-c by themselves. */
SWA__COLD SWA_API swa_status swa_mask_compressed(swa_compressed kind, int64_t W, int head_dim,
                                                 swa_type type, float masked, void *out,
                                                 size_t bytes) {
    static const int32_t side[1] = { 512 };
    int64_t band = swa_compressed_band(kind, W, head_dim);
    swa_mask_desc desc;

    if (band == 0) return SWA_ERR_ARG;
    memset(&desc, 0, sizeof desc);
    desc.window = swa_window_sliding(band);
    desc.n_q = desc.n_k = side;
    desc.type = type;
    desc.masked = masked;
    return swa_mask(&desc, out, bytes);
}

/* Tiles for which a kernel reads no band: not computed, or all visible. */
enum { SWA__TILE_SKIPPED = -2, SWA__TILE_OPEN = -1 };

/* The band 0..3 that a kernel reads for the tile delta >= 0 tiles left of the diagonal, or
   SWA__TILE_*. */
static int swa__compressed_tile(swa_compressed kind, int64_t W, int64_t B, int64_t delta) {
    int64_t f = W / B, n = f + (W % B != 0);

    if (delta > n) return SWA__TILE_SKIPPED;
    if (delta == 0) return 0;
    if (kind == SWA_COMPRESSED_910B || kind == SWA_COMPRESSED_PY) {
        /* up to three tiles each has its own band; of more the last two show the window's edge */
        if (n <= 3 || delta == 1) return (int)delta;
        return delta < n - 1 ? SWA__TILE_OPEN : delta == n ? 3 : 2;
    }

    if (f < 2) f = 2;
    if (delta >= f) return delta == f ? 2 : 3;
    return W >= 2 * B ? SWA__TILE_OPEN : 1;
}

SWA__COLD SWA_API swa_status swa_mask_expand(swa_compressed kind, const float *mask512, int64_t W,
                                             int head_dim, int64_t S, float masked, float *out,
                                             size_t bytes) {
    const unsigned char *picture = (const unsigned char *)mask512;
    unsigned char *row = (unsigned char *)out;
    size_t side = (size_t)S, need;
    /* the kernels' tile, not a sample's */
    int64_t B = swa_compressed_block(SWA_COMPRESSED_910B, head_dim), i;
    swa__mask_cell cell;

    if (!mask512 || !out || W <= 0 || S <= 0 || B == 0 || swa_compressed_block(kind, head_dim) == 0)
        return SWA_ERR_ARG;
    if (!swa__mask_cell_of(SWA_F32, masked, &cell)) return SWA_ERR_ARG;
    if ((int64_t)side != S || !swa__mul(side, side, &need) || !swa__mul(need, 4, &need))
        return SWA_ERR_OVERFLOW;
    if (bytes < need) return SWA_ERR_MEMORY;

    /* row by row, and in a row from the diagonal's tile to the left, until one is too far: then so
       are all behind it */
    for (i = 0; i < S; i++, row += side * 4) {
        int64_t delta;
        swa__mask_fill(row, side, 4, cell.hidden);
        for (delta = 0; delta <= i / B; delta++) {
            /* the tile's columns, cut at S */
            int64_t j = (i / B - delta) * B, n = swa__min64(S - j, B);
            int band = swa__compressed_tile(kind, W, B, delta);
            if (band == SWA__TILE_SKIPPED) break;
            if (band == SWA__TILE_OPEN) swa__mask_open(row, 0, S, j, j + n, &cell);
            else
                memcpy(row + (size_t)j * 4, picture + (size_t)(band * B + i % B) * 512 * 4,
                       (size_t)n * 4);
        }
    }
    return SWA_OK;
}
#endif /* SWA__MASKS */

/* ==== [SECTION 6] HELPERS ========================================================================
   Rotary position embedding (Su et al. 2021), YaRN frequencies (Peng et al. 2023), RMSNorm. Angles
   and sums are in double and results are rounded to float once, so compiler flags and libm versions
   rarely reach the last bit. That is less than what attention promises, which is given rows
   that are rotated already. MLA's block ([SECTION 13]) takes its rotations and norms from here. */

static uint64_t swa__double_bits(double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

/* 0 < d < inf, judged by the bits: a comparison lets NaN through under -ffast-math. */
static int swa__positive(double d) {
    uint64_t bits = swa__double_bits(d);
    return bits != 0 && bits < (uint64_t)0x7ff00000u << 32;
}

/* cos and sin of pos*freq. Below 2^24 the rounded product is good to 1e-9 (freq <= 1). Beyond, the
   angle is cut into products that are exact in a double (pos in digits of 26 bits; freq in its
   upper 26 bits and the rest), each goes through libm, which reduces any argument, and the
   rotations are multiplied: 1e-15 at any position. */
static void swa__rope_angle(int64_t pos, double freq, double *c, double *s) {
    /* as unsigned: the smallest int64_t has no negative of its own type */
    uint64_t rest = pos < 0 ? 0 - (uint64_t)pos : (uint64_t)pos, bits = swa__double_bits(freq);

    if (rest < (uint64_t)1 << 24) {
        *c = cos((double)rest * freq);
        *s = sin((double)rest * freq);
    } else {
        double part[2], digit_value = 1.0;
        int i;
        /* 26 bits of freq with the implicit one, and at most 27 in the rest: times a digit of 26
           bits both fit the 53 of a double */
        bits = bits >> 27 << 27;
        memcpy(&part[0], &bits, sizeof bits);
        part[1] = freq - part[0];
        *c = 1.0;
        *s = 0.0;
        /* by the sum of angles: (c, s) is multiplied by each product's rotation */
        for (; rest; rest >>= 26, digit_value *= 67108864.0) {
            double digit = (double)(rest & 0x3ffffffu) * digit_value;
            SWA__ROLLED for (i = 0; i < 2; i++) {
                double pc = cos(digit * part[i]), ps = sin(digit * part[i]), old = *c;
                *c = old * pc - *s * ps;
                *s = old * ps + *s * pc;
            }
        }
    }
    if (pos < 0) *s = -*s;               /* cos is even, sin odd */
}

/* Rotates n pairs of one head: of halves the numbers x[i] and y[i]; of neighbours x[2i] and x[2i+1].
   The four conversions of a pair are most of the time one by one, so these are loops of which
   compilers make vectors: strides are constants, nothing overlaps, and gcc -O2 is told that it
   pays. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#  pragma GCC push_options
#  pragma GCC optimize("tree-vectorize", "vect-cost-model=dynamic")
#endif
static void swa__rope_halves(float *SWA__RESTRICT x, float *SWA__RESTRICT y, int n,
                             const double *SWA__RESTRICT c, const double *SWA__RESTRICT s) {
    int i;
    for (i = 0; i < n; i++) {
        const double a = (double)x[i], b = (double)y[i];
        x[i] = (float)(a * c[i] - b * s[i]);
        y[i] = (float)(a * s[i] + b * c[i]);
    }
}
static void swa__rope_neighbours(float *SWA__RESTRICT x, int n, const double *SWA__RESTRICT c,
                                 const double *SWA__RESTRICT s) {
    int i;
    for (i = 0; i < n; i++) {
        const double a = (double)x[2 * i], b = (double)x[2 * i + 1];
        x[2 * i] = (float)(a * c[i] - b * s[i]);
        x[2 * i + 1] = (float)(a * s[i] + b * c[i]);
    }
}
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#  pragma GCC pop_options
#endif
/* apart: from a pair's first number to its second */
static void swa__rope_pairs(float *x, int n, size_t apart, const double *c, const double *s) {
    if (apart > 1) swa__rope_halves(x, x + apart, n, c, s);
    else swa__rope_neighbours(x, n, c, s);
}

/* A whole turn from token to token, and all beyond it, is another frequency; periods are none. */
static int swa__freq_ok(const double *freq, int n) {
    int i = 0;
    while (i < n && swa__double_bits(freq[i]) <= 0x401921fb54442d18u) i++;     /* 2 pi */
    return i == n;
}

SWA_API swa_status swa_rope(float *x, int32_t n, int n_heads, int head_dim, const int64_t *pos,
                            const double *freq, int rotary, swa_rope_pairs pairs, double mscale) {
    enum { CHUNK = 64 }; /* pairs whose cos and sin are at hand for all heads */
    double c[CHUNK], s[CHUNK];           /* 1 KB of stack */
    size_t step = pairs == SWA_ROPE_HALF ? 1 : 2, apart, row, total;
    int32_t t;
    int from, count, i, h;

    if (n < 0 || n_heads <= 0 || head_dim <= 0 || rotary <= 0 || rotary % 2 != 0
        || rotary > head_dim || (pairs != SWA_ROPE_HALF && pairs != SWA_ROPE_INTERLEAVED) || !x
        || !pos || !freq || !swa__freq_ok(freq, rotary / 2)
        || (swa__double_bits(mscale) << 1 != 0 && !swa__positive(mscale)))
        return SWA_ERR_ARG;
    if (!swa__mul((size_t)n_heads, (size_t)head_dim, &row) || !swa__mul((size_t)n, row, &total) ||
        !swa__mul(total, sizeof *x, &total)) return SWA_ERR_OVERFLOW;

    apart = pairs == SWA_ROPE_HALF ? (size_t)(rotary / 2) : 1;
    /* 0, and -0 */
    if (swa__double_bits(mscale) << 1 == 0) mscale = 1.0;

    /* cos and sin cost more than the rotation: of a token once, for all its heads */
    for (t = 0; t < n; t++, x += row) {
        for (from = 0; from < rotary / 2; from += count) {
            count = swa__min(rotary / 2 - from, CHUNK);
            for (i = 0; i < count; i++) {
                swa__rope_angle(pos[t], freq[from + i], &c[i], &s[i]);
                c[i] *= mscale;
                s[i] *= mscale;
            }
            for (h = 0; h < n_heads; h++)
                swa__rope_pairs(x + (size_t)h * (size_t)head_dim + (size_t)from * step, count, apart,
                                c, s);
        }
    }
    return SWA_OK;
}

/* The pair, as a real number, whose wave turns `turns` times within the original context: Peng et
   al. 2023, 3.2. */
static double swa__yarn_pair(const swa_yarn_desc *desc, int rotary, double turns) {
    return (double)rotary * log((double)desc->original / (turns * 6.283185307179586))
         / (2.0 * log(desc->base));
}

SWA__COLD SWA_API swa_status swa_yarn(const swa_yarn_desc *desc, int rotary, double *freq,
                                      double *mscale) {
    double fast = 32.0, slow = 1.0, low = 0.0, high = 0.0;
    int i, stretch;

    if (!desc || !freq || rotary <= 0 || rotary % 2 != 0 || !swa__positive(desc->base))
        return SWA_ERR_ARG;
    /* below 1: the inverse, ggml's freq_scale, was given; 0 amid YaRN's fields: it was forgotten */
    if (swa__double_bits(desc->scale) != 0 ? !(swa__positive(desc->scale) && desc->scale >= 1.0)
                                           : desc->original != 0
                                             || swa__double_bits(desc->beta_fast) != 0
                                             || swa__double_bits(desc->beta_slow) != 0)
        return SWA_ERR_ARG;
    stretch = desc->scale > 1.0;
    if (stretch) {
        if (desc->truncate != 1 && desc->truncate != -1) return SWA_ERR_ARG;
        /* pairs that turn more than `fast` times within the original context lie below `low` and
           stay, those that turn less than `slow` times lie above `high` and are stretched */
        if (swa__double_bits(desc->beta_fast) != 0) fast = desc->beta_fast;
        if (swa__double_bits(desc->beta_slow) != 0) slow = desc->beta_slow;
        if (!swa__positive(fast) || !swa__positive(slow) || fast < slow) return SWA_ERR_ARG;
        if ((double)desc->original <= desc->scale || desc->base <= 1.0) return SWA_ERR_ARG;
        low = swa__yarn_pair(desc, rotary, fast);
        high = swa__yarn_pair(desc, rotary, slow);
        if (desc->truncate > 0) { low = floor(low); high = ceil(high); }
        if (low < 0.0) low = 0.0;
        /* the published codes' bound, although pairs end at half of that */
        if (high > (double)(rotary - 1)) high = (double)(rotary - 1);
        if (high <= low) high = low + 0.001; /* a step where the published codes divide by 0 or
                                                less */
    }

    for (i = 0; i < rotary / 2; i++) {
        double ramp = 0.0, f = pow(desc->base, -2.0 * (double)i / (double)rotary);
        if (stretch) {
            ramp = ((double)i - low) / (high - low);
            ramp = ramp < 0.0 ? 0.0 : ramp > 1.0 ? 1.0 : ramp;
            /* fast pairs stay, slow pairs are stretched */
            f = f * (1.0 - ramp) + f / desc->scale * ramp;
        }
        freq[i] = f;
    }

    if (mscale) *mscale = stretch ? 0.1 * log(desc->scale) + 1.0 : 1.0;
    return SWA_OK;
}

/* out = x / sqrt(mean(x*x) + eps) * w (Zhang & Sennrich 2019); out may be x, w NULL is all ones.
   The squares are exact in double and eight sums run in a fixed order: contraction cannot change a
   bit, and the loop vectorises without -ffast-math. A row of zeros gives zeros with eps 0 too. */
static void swa__norm_rows(float *out, const float *x, const float *w, int32_t rows, int dim,
                           double e) {
    int32_t r;
    int i, j;

    for (r = 0; r < rows; r++, x += dim, out += dim) {
        double sum[8] = { 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0 }, mean, scale;

        for (i = 0; i <= dim - 8; i += 8)
            for (j = 0; j < 8; j++) sum[j] += (double)x[i + j] * (double)x[i + j];
        /* what is left of the row goes on in the same sums; then a tree over them */
        SWA__ROLLED for (j = 0; i + j < dim; j++) sum[j] += (double)x[i + j] * (double)x[i + j];
        for (j = 4; j; j /= 2)
            for (i = 0; i < j; i++) sum[i] += sum[i + j];
        mean = sum[0] / (double)dim + e;
        /* 1/sqrt(0) times 0 would be NaN */
        scale = mean > 0.0 ? 1.0 / sqrt(mean) : 0.0;
        for (i = 0; i < dim; i++) out[i] = (float)((double)x[i] * scale * (w ? (double)w[i] : 1.0));
    }
}

/* x + y and x - y of eight numbers each: so many, and in variables of their own, that compilers make
   vectors of them. */
SWA__INLINE void swa__butterfly(float *x, float *y) {
    float a[8], b[8];
    int k;

    memcpy(a, x, sizeof a);
    memcpy(b, y, sizeof b);
    for (k = 0; k < 8; k++) x[k] = a[k] + b[k];
    for (k = 0; k < 8; k++) y[k] = a[k] - b[k];
}

/* The same of neighbours 1, 2 and 4 apart, in registers. */
SWA__INLINE void swa__butterflies(float *x) {
    float a[8], b[8];
    int k;

    for (k = 0; k < 4; k++) a[k] = x[2 * k] + x[2 * k + 1];
    for (k = 0; k < 4; k++) a[k + 4] = x[2 * k] - x[2 * k + 1];
    for (k = 0; k < 4; k++) b[k] = a[2 * k] + a[2 * k + 1];
    for (k = 0; k < 4; k++) b[k + 4] = a[2 * k] - a[2 * k + 1];
    for (k = 0; k < 4; k++) x[k] = b[2 * k] + b[2 * k + 1];
    for (k = 0; k < 4; k++) x[k + 4] = b[2 * k] - b[2 * k + 1];
}

/* Sums and differences first, so that no compiler makes a multiply-add of them. The matrix of
   `block` is that of two applied to neighbours 1, 2, 4, .. block/2 apart: log2(block) additions a
   number instead of block; the factor that all share comes last. */
SWA_API swa_status swa_hadamard(float *x, int32_t n, int n_heads, int head_dim, int block) {
    size_t total, at;
    float scale;
    int half, i, j;

    if (x == NULL || n < 0 || n_heads <= 0 || head_dim <= 0 || block <= 0
        || (block & (block - 1)) != 0 || head_dim % block != 0)
        return SWA_ERR_ARG;
    if (!swa__mul((size_t)n_heads, (size_t)head_dim, &total) || !swa__mul(total, (size_t)n, &total)
        || !swa__mul(total, sizeof *x, &at)) return SWA_ERR_OVERFLOW;

    scale = (float)(1.0 / sqrt((double)block));
    for (at = 0; at < total; at += (size_t)block, x += block) {
        for (i = 0; i + 8 <= block; i += 8) swa__butterflies(x + i);
        for (half = 8; half < block; half *= 2)
            for (i = 0; i < block; i += 2 * half)
                for (j = i; j < i + half; j += 8) swa__butterfly(x + j, x + j + half);
        for (half = 1; half < block && block < 8; half *= 2)
            for (i = 0; i < block; i++)
                if ((i & half) == 0) {
                    const float a = x[i], b = x[i + half];
                    x[i] = a + b;
                    x[i + half] = a - b;
                }
        for (i = 0; i < block; i++) x[i] *= scale;
    }
    return SWA_OK;
}

SWA_API swa_status swa_rmsnorm(float *out, const float *x, const float *w, int32_t rows, int dim,
                               float eps) {
    size_t total;
    double e = (double)eps;

    if (!out || !x || rows < 0 || dim <= 0) return SWA_ERR_ARG;
    if (swa__double_bits(e) << 1 != 0 && !swa__positive(e)) return SWA_ERR_ARG;
    if (!swa__mul((size_t)rows, (size_t)dim, &total) || !swa__mul(total, sizeof *x, &total))
        return SWA_ERR_OVERFLOW;
    if ((out != x && swa__touch(out, total, x, total))
        || swa__touch(out, total, w, (size_t)dim * sizeof *w))
        return SWA_ERR_ARG;
    swa__norm_rows(out, x, w, rows, dim, e);
    return SWA_OK;
}

#if SWA__LIGHT
#  pragma GCC push_options
#  pragma GCC optimize("O1", "inline-small-functions", "strict-aliasing", "ipa-ra", "crossjumping", \
                       "store-merging", "no-tree-ch")
#endif

/* ==== [SECTION 7] RING ===========================================================================
   Where a token lives. One cache is layers x sequences regions in the caller's memory. A region
   holds, head-major (all slots of a KV head lie together: twice the decode speed of slot-major), K
   in tiles of 16 slots, transposed,
       k [n_kv_heads][slots/16][head_dim][16]    tail [n_kv_heads][slots/16][tail_dim][16]
       v [n_kv_heads][slots][v_dim rounded up to 16]
       and for q8 a scale per slot [n_kv_heads][slots]; q8_32 has its [dims/32][slots] behind each
       head's numbers
   so that prefill, decode and MLA read it in place. Pinned sinks have the first slots, the ring
   follows. With capacity and origin multiples of 16 a tile's keys go by position mod 16, and a
   block that straddles the wrap is two tile ranges. Off that grid the tiles of slots are read in
   place all the same, and decode moves the scores; a block with a seam in it, and prefill, move the
   keys ([SECTION 12]). Four sinks, capacity 32, origin 0, after 70 tokens:

       slot        0 .. 3    4 .. 15    16 .. 21    22 .. 31    32 .. 47
       position    0 .. 3       -       64 .. 69    38 .. 47    48 .. 63
                   sinks     padding    newest      oldest: first = end - capacity = 38

   In order of position that is three spans: 0..3, then 38..63 in the slots from 22 on, then 64..69
   in those from 16 on. Nothing is ever moved to make it fewer.

   What is known of a sequence is two things. The sequence consists of positions [start, end). And a
   layer's ring holds the rows [first, stored) of them, besides the pinned ones, and no others:
   swa__held, one per layer and sequence.
     * A step that appends up to e overwrites the slots of all rows below e - capacity:
       first = max(first, e - capacity).
     * Forgetting the rows from e on overwrites none: first = min(first, e).

       start              first                 stored           end
         |____ lost ________|____ in the ring ____|__ announced __|

   One interval is the whole truth, because rows that stand in a ring always follow each other. They
   do at first, when there are none; a row that is appended takes the slot of the row `capacity`
   before it, which is the first one if it is there at all; and to forget rows shortens the interval
   at its end. Every question (is a row there? may we go back to e? what has to be copied?) is put
   to this interval, and answered without a search.

   stored <= end: rows from there on have been announced by a step and not written yet. What changes
   end downwards lowers it, only a store or a load raises it, so that a layer that a step left out
   is refused later, not read. first is the other way about: from begin on it says what will be left
   when the step has been stored (it may lie beyond stored then), although the step's own queries
   still find what it pushes out.

   In this order: operands say where a number lies, layout what a cache's memory consists of;
   slots answer every question of the interval; spans hand it out in order of position, to attention
   too; the rest are copies. [SECTION 8] moves the interval, [SECTION 12] reads and fills slots. */

/* One sequence, in all layers alike. start and origin stay until the sequence is emptied; begin,
   truncate, commit, copy and load set end. */
typedef struct {
    int64_t start, end, origin;
    int64_t begun, mark;    /* where its last run began; in the step that is being checked        */
    int64_t step;           /* the last one that it was in                                        */
    const int32_t *parents; /* [end - begun] its last rows are a tree; NULL = they are positions  */
    uint64_t tree;          /* a hash of what begin found there: it is the caller's memory        */
} swa__seq;
/* Of one layer and sequence: see above. Layers that share rows share this too. */
typedef struct {
    int64_t first, stored;
    int64_t before;         /* what first was when the last run was begun; once that begins to be
                               stored, first again                                                */
} swa__held;
/* Of calls by parts, and of those before: see swa__open_of. */
enum {
    SWA__PARTS = 64,        /* parts of which is known whether they ended a call                  */
    SWA__OPEN_FLAGS = SWA__PARTS, SWA__OPEN_OWNER = SWA__PARTS + SWA__PARTS / 8,
    SWA__OPEN_CALLED, SWA__OPEN_WHOLE, SWA__OPEN_LISTS,
    SWA__OPEN_READING,
    SWA__OPEN_WROTE, SWA__OPEN_BEGAN = SWA__OPEN_WROTE + SWA__PARTS,
    SWA__OPEN_READS = SWA__OPEN_BEGAN + SWA__PARTS,
    SWA__OPEN = SWA__OPEN_READS + SWA__PARTS
};

/* K, tail and V of a row differ in nothing but what stands here, so that whatever lays out, reads,
   moves or stages rows says it once, for each of the three. In bytes from p on, number d of row i
   of head h is at
       rows         h*head + i*row + d*step                               step = size
       tiled        h*head + i/16 * 16*row + i%16 * size + d*step         step = 16*size
   so that number d of 16 keys is one vector. */
enum { SWA__K, SWA__TAIL, SWA__V, SWA__OPERANDS };
typedef struct {
    int      dim;                        /* numbers of a row; 0: no such array                    */
    swa_type type;
    int      tiled;                      /* a ring's K and tail: in tiles of 16 slots, transposed */
    int      scales;                     /* per row: 1 of q8, one to 32 numbers of q8_32, else 0  */
    size_t   size;                       /* bytes of a number                                     */
    int64_t  head, row, step;            /* bytes from head to head, row to row (of a tile: its
                                            16th part), and from number to number                 */
    int64_t  slots;                      /* of a ring, that a head has; rows: 0                   */
    const unsigned char *p;              /* of head 0: slot 0, or row 0                           */
    const float *scale;                  /* [n_kv_heads][slots], of q8 in a ring; else NULL       */
} swa__operand;

/* A layer: what the desc says of it, and where its rows lie. Written by init, then only read. */
typedef struct {
    swa_window window;
    swa_shape  shape;                    /* resolved, and so are                                  */
    swa_type   type[SWA__OPERANDS];
    int        k_rows;                   /* K and tail lie in rows, as V does                     */
    int        ring;                     /* the layer whose ring this one reads: itself, unless
                                            rows are shared. Then all below is that layer's       */
    int        bounded;                  /* holds max_context positions, and refuses more         */
    int64_t    cap, slots;               /* ring slots; all slots, sinks included, in whole tiles */
    int64_t    pinned, sink_slots;       /* sinks; rounded up to 16: where the ring begins        */
    size_t     base, stride;             /* offset of sequence 0; bytes of a sequence             */
    size_t     at[SWA__OPERANDS], scale_at[SWA__OPERANDS];   /* offsets in those                  */
    swa__operand x[SWA__OPERANDS];       /* the arrays there, without where: swa__ring_operands   */
} swa__layer;
/* The head of a cache's memory, which is in this order; seqs and the rest are where each begins:

     head, layers | sequences | held          | tickets      | runs     | data
                    [n_seqs]    [seq][layer]    [n_layers],    [n_seqs]   of a layer all sequences,
                                                open parts                then the next layer

   All of it is there from init on, and whatever one step leaves for the next stands here. */
typedef struct {
    uint64_t mark;                       /* swa__mark of this place: memory that was moved, or
                                            became another's, has none                            */
    swa_cache_desc d;                    /* n_seqs and isa resolved; all else as it was given     */
    size_t seqs, held, tickets, runs, data, total;   /* offsets from this struct                  */
    int64_t limit;                       /* positions that a sequence may span: max_context, if a
                                            layer is bounded                                      */
    int    group;                        /* most query heads that share a KV head                 */
    unsigned char *scratch;              /* the caller's: swa_cache_set_scratch                   */
    size_t scratch_bytes;
    size_t ahead, scratch_ahead;         /* bytes before the head, and the scratch, that alignment
                                            took of what the caller gave                          */
    int     n_runs;                      /* of the step that was begun, n_tokens rows in all      */
    int32_t n_tokens;
    swa_status status;                   /* SWA_OK, or why there is no step                       */
    int64_t step;                        /* its number                                            */
    swa__layer layer[1];                 /* [n_layers]                                            */
} swa__cache;

/* A cache takes memory of any alignment, and 63 bytes more than it fills. */
static unsigned char *swa__align64(const void *p) {
    return (unsigned char *)((uintptr_t)p + ((0u - (uintptr_t)p) & 63u));
}

#define SWA__NO_CACHE "no cache, one that init refused, memory that moved or was overwritten, "
static uint64_t swa__mark(const swa__cache *c) { return (uint64_t)(uintptr_t)c ^ 0x5357412e48454144u; }

static swa__cache *swa__head(const void *mem) { return (swa__cache *)(void *)swa__align64(mem); }

/* The head behind the caller's handle. NULL: there is none, or no longer; a handle of zeros is what
   init leaves when it refuses. */
static swa__cache *swa__get(const swa_cache *c) {
    swa__cache *head;

    if (c == NULL || c->mem_ == NULL) return NULL;
    head = swa__head(c->mem_);
    return head->mark == swa__mark(head) ? head : NULL;
}

/* What lies so many bytes behind a cache's head. Not const, so that readers and writers find it by
   one function; who only reads says so by its own type. */
static void *swa__behind(const swa__cache *c, size_t offset) {
    return (unsigned char *)(uintptr_t)c + offset;
}

static swa__seq *swa__seq_of(const swa__cache *c, int seq) {
    return (swa__seq *)swa__behind(c, c->seqs) + seq;
}

static const swa__layer *swa__layer_of(const swa__cache *c, int layer) { return &c->layer[layer]; }
static swa__held *swa__held_of(const swa__cache *c, int layer, int seq) {
    return (swa__held *)swa__behind(c, c->held) + (size_t)seq * (size_t)c->d.n_layers
         + c->layer[layer].ring;
}

/* [n_layers]: the step in which phase 0 of a layer's call was last accepted. */
static int64_t *swa__tickets_of(const swa__cache *c) {
    return (int64_t *)swa__behind(c, c->tickets);
}

/* [SWA__OPEN], behind them: by part, 1 + the layer of a call that stores, which the part has begun
   and not ended; 0 = none. FLAGS: a byte per part that may have such a call, to see at one look
   that none has, as always with one thread. OWNER: the call that has the scratch, as its tickets
   say; 0 = one without parts. CALLED: the last step of which a layer was called; -1: begin was
   refused because none had been. WHOLE: how many calls without parts there were. LISTS: the
   step and layer of a selection that part 0 has begun and not ended. WROTE: by part, the step and
   the ring in which it stored last. BEGAN: by part, WHOLE and the layer when it came to a phase 0. */
static int64_t *swa__open_of(const swa__cache *c) { return swa__tickets_of(c) + c->d.n_layers; }

/* [n_seqs]: of the step that was begun, in packed order; n_runs of them are set. */
static swa_run *swa__runs_of(const swa__cache *c) { return (swa_run *)swa__behind(c, c->runs); }
/* Where a layer's rows of a sequence begin; of one that shares rows, the other layer's. */
static unsigned char *swa__region_of(const swa__cache *c, int layer, int seq) {
    const swa__layer *l = &c->layer[layer];
    return (unsigned char *)swa__behind(c, c->data + l->base + (size_t)seq * l->stride);
}

/* What K, V and a tail may be stored in; left out types are none. */
static int swa__type_ok(swa_type t) {
    return t == SWA_TYPE_DEFAULT || t == SWA_F32 || SWA__IS_F16(t) || SWA__IS_BF16(t)
        || SWA__IS_Q8(t) || (SWA__IS_STAGED(t) && (int)t <= SWA_E5M2);
}

static int swa__types_ok(swa_type k, swa_type v, swa_type tail) {
    return swa__type_ok(k) && swa__type_ok(v) && swa__type_ok(tail);
}

/* ARG: no such number, on any machine; UNSUPPORTED: not on this one. */
static swa_status swa__isa_check(int isa) {
    if (isa < 0 || isa > SWA_ISA_AVX512) return SWA_ERR_ARG;
    return isa == 0 || swa_isa_usable(isa) ? SWA_OK : SWA_ERR_UNSUPPORTED;
}

/* Fills in the defaults; 0 = inconsistent. Up to 2^20 each, so that the numbers of 16 rows can be
   counted in int; no model comes near. */
static int swa__shape_resolve(swa_shape *s) {
    if (s->n_heads <= 0 || s->n_kv_heads <= 0 || s->head_dim <= 0 || s->v_dim < 0
        || s->tail_dim < 0 || (s->v_in_k & ~1) != 0)
        return 0;
    if (s->v_dim == 0) s->v_dim = s->head_dim;
    if (s->n_heads % s->n_kv_heads != 0 || (s->v_in_k != 0 && s->v_dim > s->head_dim)) return 0;
    return s->n_heads <= 1 << 20 && s->head_dim <= 1 << 20 && s->v_dim <= 1 << 20
        && s->tail_dim <= 1 << 20;
}

/* Whether rows of one are rows of the other: all but the query heads. */
static int swa__same_rows(const swa_shape *a, const swa_shape *b) {
    return a->n_kv_heads == b->n_kv_heads && a->head_dim == b->head_dim && a->v_dim == b->v_dim
           && a->tail_dim == b->tail_dim && (a->v_in_k != 0) == (b->v_in_k != 0);
}

/* ---- operands ---- */

/* What an array holds, without where. V that is part of K is no array of its own. All else in it is
   0. */
static swa__operand swa__operand_make(const swa_shape *s, swa_type type, int which) {
    swa__operand x;

    memset(&x, 0, sizeof x);
    x.dim = which == SWA__K    ? s->head_dim
          : which == SWA__TAIL ? s->tail_dim
          : s->v_in_k          ? 0
                               : s->v_dim;
    x.type = type;
    x.size = swa__type_size((int)type);
    if (SWA__IS_Q8(type)) x.scales = x.dim > 0;
    if (SWA__IS_STAGED(type) && type == SWA_Q8_32) x.scales = (x.dim + 31) / 32;
    return x;
}

/* Types of a segment, resolved. */
static int swa__k_type(const swa_kv *kv) { return (int)swa__type_or(kv->k_type, SWA_F32); }
static int swa__v_type(const swa_kv *kv) {
    return (int)swa__type_or(kv->v_type, (swa_type)swa__k_type(kv));
}

static int swa__tail_type(const swa_kv *kv) {
    return (int)swa__type_or(kv->tail_type, (swa_type)swa__k_type(kv));
}

/* K, tail or V of what a segment lies in: of a ring, or of rows with strides, whose defaults are
   filled in here. */
static swa__operand swa__operand_of(const swa_shape *s, const swa_kv *kv, int which) {
    const int type = which == SWA__K ? swa__k_type(kv)
                   : which == SWA__V ? swa__v_type(kv)
                                     : swa__tail_type(kv);
    swa__operand x = swa__operand_make(s, (swa_type)type, which);
    int64_t token = which == SWA__K ? kv->k_token : which == SWA__V ? kv->v_token : kv->tail_token;
    const int64_t size = (int64_t)x.size;

    /* no such array, or no rows, whatever the caller left in its fields */
    if (x.dim == 0 || kv->n == 0) return x;
    x.p = (const unsigned char *)(which == SWA__K ? kv->k : which == SWA__V ? kv->v : kv->tail);
    x.scale = which == SWA__K ? kv->k_scale_ : which == SWA__V ? kv->v_scale_ : kv->tail_scale_;
    x.head = which == SWA__K ? kv->k_head : which == SWA__V ? kv->v_head : kv->tail_head;
    x.tiled = kv->layout_ != 0 && token == 0;            /* a ring's rows have a stride */
    x.slots = kv->slots_;
    if (token == 0) token = x.tiled ? x.dim : (int64_t)s->n_kv_heads * x.dim;
    if (x.head == 0) x.head = x.dim;

    /* from elements to bytes: types differ, and readers step through all three alike */
    x.head *= size;
    x.row = token * size;
    x.step = x.tiled ? SWA__TILE * size : size;
    /* the caller's blocks: 34 bytes are 32 numbers */
    if (SWA__IS_STAGED(type) && type == SWA_Q8_32 && kv->layout_ == 0) {
        x.head = x.head / 32 * 34;
        x.row = x.row / 32 * 34;
    }
    return x;
}

/* The first number of row (in a ring: slot) i of head h; the others follow in steps. Rows of a tile
   begin one number apart. */
static unsigned char *swa__operand_at(const swa__operand *x, int h, int64_t i) {
    const int64_t within = x->tiled ? i % SWA__TILE : 0;
    return (unsigned char *)(uintptr_t)x->p + h * x->head + (i - within) * x->row
         + within * (int64_t)x->size;
}

/* Whether rows of K are followed by those of the tail: swa__layer_join's, or a caller's. */
static int swa__joined(const swa__operand *x) {
    const swa__operand *k = &x[SWA__K], *tail = &x[SWA__TAIL];
    return tail->dim > 0 && !k->tiled && tail->row == k->row
        && tail->p == k->p + swa__round16(k->dim) * (int64_t)k->size;
}

/* Of a ring in q8_32, whose head begins at p: its scales [scales][slots]. */
static const float *swa__scales_behind(const swa__operand *x, const unsigned char *p) {
    return (const float *)(const void *)(p + x->slots * x->row);
}

/* Its scale, the first of several; the next ones are `slots` apart. NULL: there is none. */
static float *swa__operand_scale(const swa__operand *x, int h, int64_t i) {
    if (x->scale != NULL) return (float *)(uintptr_t)x->scale + h * x->slots + i;
    if (x->scales == 0) return NULL;
    return (float *)(uintptr_t)swa__scales_behind(x, x->p + h * x->head) + i;
}

/* ---- layout ---- */

/* Whether an array of a layer has a scale per slot. */
static int swa__has_scale(const swa__layer *l, int which) {
    return l->type[which] == SWA_Q8 && l->x[which].dim > 0;
}

/* Ring slots of a layer. Without an explicit capacity a window that reaches over max_context is
   held whole. */
SWA__COLD static swa_status swa__layer_slots(swa__layer *l, const swa_cache_desc *d) {
    const int64_t reach = swa__reach(&l->window),
                  rollback = d->max_rollback > 0 ? d->max_rollback : 1;
    /* slots are counted in int32 by a segment */
    const int64_t most = INT32_MAX / SWA__TILE * SWA__TILE;

    /* bounded: every position that may come has a slot of its own, and nothing is overwritten */
    l->bounded =
        reach == INT64_MAX || (d->capacity == 0 && d->max_context > 0 && reach > d->max_context);
    if (l->bounded && d->max_context <= 0) return SWA_ERR_ARG;
    if (!l->bounded && d->capacity == 0 && reach - 1 > most - rollback) return SWA_ERR_OVERFLOW;
    /* The law of a ring that is attended before it is stored: the next query needs W-1 older rows,
       and each row that may be taken back is one more that must not have been overwritten. */
    if (!l->bounded && d->capacity > 0 && d->capacity - d->max_rollback < reach - 1)
        return SWA_ERR_ARG;

    l->cap = l->bounded ? d->max_context : d->capacity > 0 ? d->capacity : reach - 1 + rollback;
    if (l->cap > most) return SWA_ERR_OVERFLOW;
    /* whole tiles, unless somebody counts on a slot rule with exactly so many, or wants to be shown
       what another window would refuse */
    if (l->bounded || (d->capacity == 0 && !d->audit)) l->cap = swa__round16(l->cap);

    /* sinks fill whole tiles too, so that the ring begins at one */
    l->pinned = l->window.n_sink;
    l->sink_slots = swa__round16(l->pinned);
    l->slots = l->sink_slots + swa__round16(l->cap);
    return l->slots <= most ? SWA_OK : SWA_ERR_OVERFLOW;
}

/* A tail in rows lies behind its row of K, in the room that both take: what a list reads of a key
   is one stretch of memory, in one page rather than two. Not where a line would be torn, nor where
   scales stand behind the slots. */
static void swa__layer_join(swa__layer *l) {
    swa__operand *k = &l->x[SWA__K], *tail = &l->x[SWA__TAIL];

    if (!l->k_rows || tail->dim == 0 || ((k->row | tail->row) & 63) != 0) return;
    if ((SWA__IS_STAGED(k->type) && k->scales > 0)
        || (SWA__IS_STAGED(tail->type) && tail->scales > 0))
        return;
    l->at[SWA__TAIL] = l->at[SWA__K] + (size_t)k->row;
    k->row += tail->row;
    k->head += tail->head;
    tail->row = k->row;
    tail->head = k->head;
}

/* The bytes of a layer's region, and what lies where in it. Scales of q8 are arrays of their own, and
   come last: so rows stay whole vectors. */
SWA__COLD static swa_status swa__layer_region(swa__layer *l) {
    const size_t slots = (size_t)l->slots, heads = (size_t)l->shape.n_kv_heads;
    size_t bytes = 0;
    int i;

    for (i = 0; i < SWA__OPERANDS; i++) {
        swa__operand x = swa__operand_make(&l->shape, l->type[i], i);
        const int64_t size = (int64_t)x.size;
        /* per slot, behind the numbers */
        const int64_t scales = SWA__IS_STAGED(x.type) ? x.scales * (int64_t)sizeof(float) : 0;
        x.tiled = i != SWA__V && !l->k_rows;
        x.step = x.tiled ? SWA__TILE * size : size;
        /* a tile is whole vectors without padding */
        x.row = size * (x.tiled ? x.dim : swa__round16(x.dim));
        x.head = l->slots * (x.row + scales);
        x.slots = l->slots;
        l->x[i] = x;
        l->at[i] = bytes;
        if (!swa__region(&bytes, slots, heads, (size_t)(x.row + scales))) return SWA_ERR_OVERFLOW;
    }
    swa__layer_join(l);
    for (i = 0; i < SWA__OPERANDS; i++) {
        l->scale_at[i] = bytes;
        if (swa__has_scale(l, i) && !swa__region(&bytes, slots, heads, sizeof(float)))
            return SWA_ERR_OVERFLOW;
    }
    l->stride = bytes;
    return SWA_OK;
}

/* Layer i's types as they were asked for. */
static swa_types swa__types_of(const swa_cache_desc *d, int i) {
    swa_types all;

    if (d->n_types > 0) return d->types[i % d->n_types];
    all.k = d->k_type;
    all.v = d->v_type;
    all.tail = d->tail_type;
    return all;
}

/* Layer i by itself. A window's prefix belongs to a run; and a query that saw keys to its right
   would see more of them or fewer by how a prompt was cut into steps. */
SWA__COLD static swa_status swa__layer_own(const swa_cache_desc *d, int i, swa__layer *l) {
    const swa_types type = swa__types_of(d, i);
    swa_status status;

    memset(l, 0, sizeof *l);
    l->ring = i;
    if (d->n_windows > 0) l->window = d->windows[i % d->n_windows];
    if (l->window.kind == SWA__UNSAID) l->window.kind = SWA__CAUSAL; /* a blob knows one of them */
    l->shape = d->n_shapes > 0 ? d->shapes[i % d->n_shapes] : d->shape;
    l->type[SWA__K] = swa__type_or(type.k, SWA_F32);
    l->type[SWA__TAIL] = swa__type_or(type.tail, l->type[SWA__K]);
    l->type[SWA__V] = swa__type_or(type.v, l->type[SWA__K]);
    l->k_rows = d->n_k_rows > 0 && d->k_rows[i % d->n_k_rows] != 0;

    if (!swa__shape_resolve(&l->shape) || !swa__window_ok(&l->window)) return SWA_ERR_ARG;
    if (!SWA__LATENTS && (l->shape.tail_dim > 0 || l->shape.v_in_k)) return SWA_ERR_UNSUPPORTED;
    if (l->window.prefix != 0 || l->window.prefix_first != 0) return SWA_ERR_UNSUPPORTED;
    if (l->window.kind == SWA__BAND && l->window.right != 0) return SWA_ERR_UNSUPPORTED;
    status = swa__layer_slots(l, d);
    return status == SWA_OK ? swa__layer_region(l) : status;
}

/* Layer i. One that reads another's rows has that layer's ring, and must not need more than is kept
   there: no wider window, the same sinks; nor say that rows are what they are not. */
SWA__COLD static swa_status swa__layer_make(const swa_cache_desc *d, int i, swa__layer *l) {
    const int ring = d->kv_layer != NULL ? d->kv_layer[i] : i;
    swa_status status = swa__layer_own(d, i, l);
    const swa_window window = l->window;
    const swa_shape shape = l->shape;
    swa_type type[SWA__OPERANDS];

    memcpy(type, l->type, sizeof type);
    if (status != SWA_OK || ring == i) return status;
    /* no chains: the other one has rows of its own */
    if (ring < 0 || ring >= d->n_layers || d->kv_layer[ring] != ring) return SWA_ERR_ARG;
    status = swa__layer_own(d, ring, l); /* its own fault, with its own status */
    if (status != SWA_OK) return status;
    if (!swa__same_rows(&shape, &l->shape) || window.n_sink != l->pinned) return SWA_ERR_ARG;
    for (i = 0; i < SWA__OPERANDS; i++)
        if (type[i] != l->type[i]) return SWA_ERR_ARG;
    if (swa__reach(&window) > swa__reach(&l->window)) return SWA_ERR_ARG;
    l->window = window;
    l->shape = shape;
    return SWA_OK;
}

#define SWA__NO_TYPE "unknown, or left out of this build"
#define SWA__NO_WINDOW "window: none, under audit: say swa_window_causal() if full attention is meant"

/* Whether some layer's window reaches further back than max_context. */
SWA__COLD static int swa__context_needed(const swa_cache_desc *d) {
    int l, found = 0;
    for (l = 0; l < d->n_windows; l++) /* no more than layers */
        found |= swa__reach(&d->windows[l]) > d->max_context;
    return found;
}

/* What is wrong with a desc that can be said without looking at a layer; NULL = nothing. A count and
   its array are given both or not at all: one alone was forgotten. */
SWA__COLD static const char *swa__desc_fault(const swa_cache_desc *d) {
    swa_shape s;
    int i;

    if (d == NULL || d->n_layers <= 0) return "no desc, or n_layers is not positive";
    s = d->shape;
    if (d->n_seqs < 0 || (d->n_windows | d->n_shapes | d->n_k_rows | d->n_types) >> 21 != 0)
        return "a count below 0, or of 2^21 and more: was the desc zeroed?";
    if ((d->n_windows > 0) != (d->windows != NULL))
        return d->windows == NULL ? "n_windows without windows" : "windows without n_windows";
    if ((d->n_shapes > 0) != (d->shapes != NULL)) return "shapes without n_shapes, or reverse";
    if ((d->n_types > 0) != (d->types != NULL)) return "types without n_types, or reverse";
    if ((d->n_k_rows > 0) != (d->k_rows != NULL)) return "k_rows without n_k_rows, or reverse";
    /* said twice */
    if (d->shapes != NULL
        && (s.n_heads | s.n_kv_heads | s.head_dim | s.v_dim | s.tail_dim | s.v_in_k) != 0)
        return "shape and shapes, of which one is meant";
    if (d->types != NULL && ((int)d->k_type | (int)d->v_type | (int)d->tail_type) != 0)
        return "types and k_type, v_type or tail_type, of which one is meant";
    if (d->max_context < 0 || d->max_rollback < 0 || d->capacity < 0 || d->n_layers > 1 << 20)
        return "max_context, max_rollback or capacity below 0, or more than 2^20 layers";
    if (d->audit < 0 || d->audit > 2) return "audit: not 0, 1 or 2";
    if (d->audit > 0 && d->windows == NULL) return SWA__NO_WINDOW;
    if (d->audit > 0 && (d->n_windows > d->n_layers || d->n_shapes > d->n_layers
                         || d->n_types > d->n_layers || d->n_k_rows > d->n_layers))
        return "n_windows, n_shapes, n_types or n_k_rows above n_layers, under audit";
    for (i = 0; i < d->n_k_rows; i++)
        if ((d->k_rows[i] & ~1) != 0) return "k_rows: neither 0 nor 1";
    for (i = 0; i < d->n_windows; i++)   /* also those that no layer has */
        if (!swa__window_ok(&d->windows[i])) return "window: a constructor's numbers were out of "
                                                           "range (W below 1), or none made it";
    for (i = 0; d->audit > 0 && i < d->n_windows; i++)
        if (d->windows[i].kind == SWA__UNSAID) return SWA__NO_WINDOW;
    if (d->audit > 0 && d->n_windows > 1 && d->max_context > 0 && !swa__context_needed(d))
        return "max_context, and several windows of which no layer needs it, under audit: is n_windows "
               "their number?";
    for (i = 0; i == 0 || i < d->n_types; i++) {
        const swa_types type = swa__types_of(d, i);
        if (!swa__types_ok(type.k, type.v, type.tail))
            return "k_type, v_type or tail_type " SWA__NO_TYPE;
    }
    return NULL;
}

SWA__COLD static swa_status swa__desc_check(const swa_cache_desc *d) {
    swa_status status = swa__desc_fault(d) == NULL ? SWA_OK : SWA_ERR_ARG;

    if (status == SWA_OK) status = swa__isa_check(d->isa);
    return status == SWA_OK && d->n_seqs > 1 << 24 ? SWA_ERR_OVERFLOW : status;
}

/* The whole layout: the cache's head with its layers, sequences, data. total is what the caller
   pays, with 63 bytes of slack. layer: NULL, or where the layers are to stand. Runs once to ask for
   the size, when there is no memory yet, and in init a second time to write the layers. */
SWA__COLD static swa_status swa__layout(const swa_cache_desc *desc, swa__cache *c,
                                        swa__layer *layer) {
    swa_status status = swa__desc_check(desc);
    size_t at = 0, data = 0, layers, seqs;
    int i;

    if (status != SWA_OK) return status;
    memset(c, 0, sizeof *c);
    c->d = *desc;
    if (c->d.n_seqs == 0) c->d.n_seqs = 1;
    if (c->d.isa == 0) c->d.isa = swa_isa_best();
    c->status = SWA_ERR_ORDER;           /* no step is begun */
    c->limit = INT64_MAX;

    for (i = 0; i < desc->n_layers; i++) {
        swa__layer l;
        status = swa__layer_make(desc, i, &l);
        if (status != SWA_OK) return status;
        if (l.bounded) c->limit = desc->max_context;
        if (l.shape.n_heads / l.shape.n_kv_heads > c->group)
            c->group = l.shape.n_heads / l.shape.n_kv_heads;
        /* one that shares rows takes none; where they are is known when all layers have been laid
           out, since the other may come later */
        l.base = data;
        if (l.ring == i && !swa__region(&data, l.stride, (size_t)c->d.n_seqs, 1))
            return SWA_ERR_OVERFLOW;
        if (layer != NULL) layer[i] = l;
    }

    layers = (size_t)c->d.n_layers;
    seqs = (size_t)c->d.n_seqs;
    /* one layer stands in the head itself */
    if (!swa__region(&at, layers - 1, sizeof(swa__layer), 1)) return SWA_ERR_OVERFLOW;
    if (!swa__region(&at, sizeof *c, 1, 1)) return SWA_ERR_OVERFLOW;
    c->seqs = at;
    if (!swa__region(&at, seqs, sizeof(swa__seq), 1)) return SWA_ERR_OVERFLOW;
    c->held = at;
    if (!swa__region(&at, seqs, layers, sizeof(swa__held))) return SWA_ERR_OVERFLOW;
    c->tickets = at;
    if (!swa__region(&at, layers + SWA__OPEN, sizeof(int64_t), 1)) return SWA_ERR_OVERFLOW;
    c->runs = at;
    if (!swa__region(&at, seqs, sizeof(swa_run), 1)) return SWA_ERR_OVERFLOW;
    c->data = at;
    return swa__add(at, data, &at) && swa__add(at, 63, &c->total) ? SWA_OK : SWA_ERR_OVERFLOW;
}

/* Of a shape that cannot be. */
SWA__COLD static const char *swa__shape_fault(const swa_shape *s) {
    if (s->n_heads <= 0) return "shape: n_heads is not positive";
    if (s->n_kv_heads <= 0) return "shape: n_kv_heads is not positive";
    if (s->head_dim <= 0) return "shape: head_dim is not positive";
    if (s->n_heads % s->n_kv_heads != 0) return "shape: n_heads is no multiple of n_kv_heads";
    return "shape: a number below 0 or above 2^20, v_in_k neither 0 nor 1, or v_dim more than "
           "head_dim with v_in_k";
}

/* Of a layer that is refused by itself, whatever the others are; NULL = it is not. */
SWA__COLD static const char *swa__layer_fault(const swa_cache_desc *d, int i) {
    swa__layer l;
    const swa_status status = swa__layer_own(d, i, &l);
    const swa_shape s = l.shape;

    if (status == SWA_OK) return NULL;
    if (!swa__shape_resolve(&l.shape)) return swa__shape_fault(&s);
    if (status == SWA_ERR_UNSUPPORTED)
        return SWA__LATENTS ? "window with a prefix (a run has it) or keys to the right"
                            : "window with a prefix or keys to the right, or a tail: SWA_NO_LATENTS";
    if (status == SWA_ERR_OVERFLOW) return "more slots or bytes than can be counted";
    return l.bounded ? "max_context, which full attention needs"
                     : "capacity is below W-1+max_rollback";
}

SWA__COLD SWA_API const char *swa_cache_explain(const swa_cache_desc *desc, int *layer) {
    swa__layer l;
    int i;

    if (layer != NULL) *layer = -1;
    if (swa__desc_fault(desc) != NULL) return swa__desc_fault(desc);
    if (swa__desc_check(desc) != SWA_OK)
        return desc->n_seqs > 1 << 24 ? "n_seqs: over 2^24" : "isa: unknown, or this machine lacks it";
    for (i = 0; i < desc->n_layers; i++) {
        if (swa__layer_fault(desc, i) == NULL) continue;
        if (layer != NULL) *layer = i;
        return swa__layer_fault(desc, i);
    }
    for (i = 0; i < desc->n_layers; i++) {
        if (swa__layer_make(desc, i, &l) == SWA_OK) continue;
        if (layer != NULL) *layer = i;
        return "kv_layer: it names a layer without rows of its own (a layer that has them names "
               "itself), or one of another shape, type or sink, or whose window reaches less far";
    }
    return swa_cache_bytes(desc) == 0 ? "more bytes than can be counted" : NULL;
}

SWA__COLD SWA_API size_t swa_cache_bytes(const swa_cache_desc *desc) {
    swa__cache c;
    return swa__layout(desc, &c, NULL) == SWA_OK ? c.total : 0;
}

SWA__COLD SWA_API swa_status swa_cache_init(swa_cache *cache, const swa_cache_desc *desc, void *mem,
                                            size_t bytes) {
    swa__cache head, *c;
    swa_status status = swa__layout(desc, &head, NULL);
    int i;

    /* what is refused is a cache that all calls refuse */
    if (cache != NULL) memset(cache, 0, sizeof *cache);
    if (status != SWA_OK) return status;
    if (cache == NULL || mem == NULL) return SWA_ERR_ARG;
    if (bytes < head.total) return SWA_ERR_MEMORY;

    cache->mem_ = mem;
    /* nothing can be refused from here on */
    c = swa__head(mem);
    *c = head;
    c->mark = swa__mark(c);
    c->ahead = (size_t)((uintptr_t)c - (uintptr_t)mem);
    (void)swa__layout(desc, &head, c->layer);
    for (i = 0; i < c->d.n_layers; i++) c->layer[i].base = c->layer[c->layer[i].ring].base;
    c->d.windows = NULL;                 /* taken over into the layers, and not ours to keep */
    c->d.shapes = NULL;
    c->d.types = NULL;
    c->d.kv_layer = NULL;
    c->d.k_rows = NULL;
    /* every sequence is empty, nothing is stored. Rows are left as they are: a slot is first read
       after it was written, and a large cache's pages are first touched then */
    memset(swa__seq_of(c, 0), 0, c->data - c->seqs);
    return SWA_OK;
}

/* ---- slots, and what they hold ---- */

/* Of a negative number too, for which C's remainder is negative: a position may lie before
   origin. */
static int64_t swa__mod(int64_t a, int64_t n) { return a % n < 0 ? a % n + n : a % n; }
/* Slot of a position; sinks have the first ones, the ring begins at a tile. */
static int64_t swa__slot(const swa__layer *l, const swa__seq *s, int64_t pos) {
    return pos < l->pinned ? pos : l->sink_slots + swa__mod(pos - s->origin, l->cap);
}

/* Oldest position that a ring could hold of the sequence: the pinned ones have slots of their
   own. */
static int64_t swa__floor(const swa__layer *l, const swa__seq *s) {
    return swa__max64(s->start, l->pinned);
}

/* Oldest ring row that the query at q needs and the sequence has. */
static int64_t swa__needed(const swa__layer *l, const swa__seq *s, int64_t q) {
    return swa__max64(swa__lowest(&l->window, q), swa__floor(l, s));
}

/* The oldest row in the ring; end if there is none. The interval begins at the start also where
   tokens are pinned; those are not the ring's. */
static int64_t swa__first(const swa__cache *c, int layer, int seq) {
    const swa__seq *s = swa__seq_of(c, seq);
    return swa__min64(s->end, swa__max64(swa__held_of(c, layer, seq)->first,
                                         swa__floor(swa__layer_of(c, layer), s)));
}

/* The row that first would be if the sequence ended at pos: a run has pushed nothing out of a layer
   that has not begun to store it. */
static int64_t swa__first_if(const swa__cache *c, int layer, int seq, int64_t pos) {
    const swa__held *held = swa__held_of(c, layer, seq);
    return pos <= swa__seq_of(c, seq)->begun ? held->before : held->first;
}

/* The cache, if it has that sequence; NULL else, which every call takes for a bad argument. */
static swa__cache *swa__check_seq(const swa_cache *cache, int seq) {
    swa__cache *c = swa__get(cache);
    return c != NULL && seq >= 0 && seq < c->d.n_seqs ? c : NULL;
}

static swa__cache *swa__check_layer(const swa_cache *cache, int seq, int layer) {
    swa__cache *c = swa__check_seq(cache, seq);
    return c != NULL && layer >= 0 && layer < c->d.n_layers ? c : NULL;
}

static void swa__audit(swa__cache *c, int seq, int64_t keep);

/* The only changes of what rings hold: nothing is left; rows follow; rows from pos on are
   forgotten. */
static void swa__empty(const swa__cache *c, int seq, int64_t start, int64_t origin) {
    swa__seq *s = swa__seq_of(c, seq);
    int i;

    s->start = s->end = start;
    s->origin = origin;
    s->begun = start;
    s->parents = NULL;
    SWA__ROLLED for (i = 0; i < c->d.n_layers; i++) {
        swa__held *held = swa__held_of(c, i, seq);
        held->first = held->stored = held->before = start;
    }
}

static void swa__append(const swa__cache *c, int seq, int32_t n) {
    swa__seq *s = swa__seq_of(c, seq);
    int i;

    /* stored stays: the rows are announced, and each layer writes its own when it is called */
    s->end += n;
    for (i = 0; i < c->d.n_layers; i++) {
        swa__held *held = swa__held_of(c, i, seq);
        if (swa__layer_of(c, i)->ring != i) continue;    /* another layer's, which is moved once */
        held->before = held->first;
        held->first = swa__max64(held->first, s->end - swa__layer_of(c, i)->cap);
        if (n == 0) held->before = held->first; /* rows that there is no room for here */
    }
}

static void swa__forget(const swa__cache *c, int seq, int64_t pos) {
    swa__seq *s = swa__seq_of(c, seq);
    int i;

    /* which leaves start == end == pos, so that the next test is the end of it */
    if (pos <= s->start) swa__empty(c, seq, pos, s->origin);
    if (pos >= s->end) return;
    s->end = pos;
    s->parents = NULL;                   /* a tree is forgotten whole */
    for (i = 0; i < c->d.n_layers; i++) {
        swa__held *held = swa__held_of(c, i, seq);
        held->before = swa__min64(held->before, pos);
        held->first = swa__min64(swa__first_if(c, i, seq, pos), pos);
        held->stored = swa__min64(held->stored, pos);
    }
}

/* ---- calls by parts that did not end ---- */

/* This step and a ring, by its layer, in one number: of layers there are 2^20 at most. */
static int64_t swa__wrote_at(const swa__cache *c, int ring) {
    return c->step * ((int64_t)1 << 20) + ring;
}

static int swa__open_any(const swa__cache *c) {
    const int64_t *flags = swa__open_of(c) + SWA__OPEN_FLAGS;
    return (flags[0] | flags[1] | flags[2] | flags[3] | flags[4] | flags[5] | flags[6] | flags[7])
        != 0;
}

/* Rows of a sequence before this position are in the layer's ring. A part that left out the end of
   its call has left rows unwritten, whatever the ring says: the layer has not stored them. */
static int64_t swa__stored_end(const swa__cache *c, int layer, int seq) {
    const int64_t *open = swa__open_of(c);
    const swa__seq *s = swa__seq_of(c, seq);
    int64_t stored = swa__held_of(c, layer, seq)->stored;
    int part, i;

    /* while parts work, other threads may ask about sequences that are not in the step */
    if (s->step != c->step || !swa__open_any(c)) return stored;
    for (part = 0; part < SWA__PARTS; part++)
        for (i = 0; open[part] != 0 && i < c->n_runs; i++) {
            const swa_run *r = &swa__runs_of(c)[i];
            if (r->seq == seq && s->begun == r->pos && s->end > r->pos
                && swa__layer_of(c, (int)open[part] - 1)->ring == swa__layer_of(c, layer)->ring)
                stored = swa__min64(stored, r->pos);
        }
    return stored;
}

/* Before a step begins, or a sequence of it is changed: what parts have left out counts as not
   stored, and no call goes on. */
static void swa__parts_check(const swa__cache *c) {
    int64_t *open = swa__open_of(c);
    int part, i;

    if (!swa__open_any(c)) return;
    for (part = 0; part < SWA__PARTS; part++)
        for (i = 0; open[part] != 0 && i < c->n_runs; i++) {
            const int layer = (int)open[part] - 1, seq = swa__runs_of(c)[i].seq;
            swa__held_of(c, layer, seq)->stored = swa__stored_end(c, layer, seq);
        }
    memset(open, 0, (SWA__PARTS + SWA__PARTS / 8) * sizeof *open);
}

/* No part from number `from` on is within a call on a layer that is begun anew with fewer parts, or
   whose ring another layer stores. */
static void swa__parts_close(const swa__cache *c, int layer, int from) {
    const int ring = swa__layer_of(c, layer)->ring;
    int64_t *open = swa__open_of(c);
    if (!swa__open_any(c)) return;
    for (; from < SWA__PARTS; from++)
        if (open[from] != 0 && swa__layer_of(c, (int)open[from] - 1)->ring == ring) open[from] = 0;
}

/* Before every change of a sequence but begin's. A step that it belongs to is over, also in the
   middle of a call: its rows would go where others are now. */
static void swa__changing(swa__cache *c, int seq) {
    int i;
    for (i = 0; i < c->n_runs; i++)
        if (swa__runs_of(c)[i].seq == seq) {
            swa__parts_check(c);
            c->status = SWA_ERR_ORDER;
        }
}

/* ---- what a sequence holds ---- */

/* The end of the rows that are positions: behind it may stand a tree. */
static int64_t swa__settled(const swa__seq *s) { return s->parents != NULL ? s->begun : s->end; }
/* The end of the rows that every layer has stored. */
static int64_t swa__least_stored(const swa__cache *c, int seq) {
    int64_t least = INT64_MAX;
    int i;
    for (i = 0; i < c->d.n_layers; i++) least = swa__min64(least, swa__stored_end(c, i, seq));
    return least;
}

/* The rollback law: if the sequence ended at pos, each layer would still hold every row that the
   query at pos needs. It asks for all rows from the needed one on, or for none. What that query
   needs is enough for all that follow, because no window's lower end moves back.

       needed          first            pos
         |______ lost ____|____ held ____|        refused: the row at `needed` is overwritten

   Sinks are not asked for: their slots are never given to another row. Under audit a ring that is
   not full yet is asked as if it were: what is not permitted then fails in a short test too. */
static int swa__exact(const swa__cache *c, int seq, int64_t pos) {
    const swa__seq *s = swa__seq_of(c, seq);
    int i;
    for (i = 0; i < c->d.n_layers; i++) {
        const swa__layer *l = swa__layer_of(c, i);
        const int64_t need = swa__needed(l, s, pos);
        if (need < pos && need < swa__first_if(c, i, seq, pos)) return 0;
        if (c->d.audit > 0 && need < pos && !l->bounded
            && (l->window.kind == SWA__BAND ? pos - l->window.left : swa__lowest(&l->window, pos))
                   < swa__stored_end(c, i, seq) - l->cap)
            return 0;
    }
    return 1;
}

/* What begin, truncate and copy share: rows from pos on can be forgotten, exactly or not at all. */
static swa_status swa__forget_check(const swa__cache *c, int seq, int64_t pos) {
    const swa__seq *s = swa__seq_of(c, seq);
    return pos <= s->start || pos >= s->end || swa__exact(c, seq, pos) ? SWA_OK : SWA_ERR_LOST;
}

/* Nothing of the ring is touched: a slot is not read before it is written. */
SWA__COLD SWA_API swa_status swa_cache_reset(swa_cache *cache, int seq, int64_t start,
                                             int64_t origin) {
    swa__cache *c = swa__check_seq(cache, seq);

    if (c == NULL || start < 0 || origin < 0) return SWA_ERR_ARG;
    if (start == INT64_MAX) return SWA_ERR_OVERFLOW;

    swa__changing(c, seq);
    swa__empty(c, seq, start, origin);
    swa__audit(c, seq, INT64_MAX);
    return SWA_OK;
}

SWA__COLD SWA_API swa_status swa_cache_truncate(swa_cache *cache, int seq, int64_t end) {
    swa__cache *c = swa__check_seq(cache, seq);
    swa_status status;

    if (c == NULL || end < 0) return SWA_ERR_ARG;
    if (end > swa__settled(swa__seq_of(c, seq))) return SWA_ERR_ORDER;
    status = swa__forget_check(c, seq, end);
    if (status != SWA_OK) return status;
    swa__changing(c, seq);
    swa__forget(c, seq, end);
    swa__audit(c, seq, INT64_MAX);
    return SWA_OK;
}

SWA_API int64_t swa_cache_end(const swa_cache *cache, int seq) {
    swa__cache *c = swa__check_seq(cache, seq);
    return c != NULL ? swa__seq_of(c, seq)->end : -1;
}

SWA__COLD SWA_API int64_t swa_cache_first(const swa_cache *cache, int seq, int layer) {
    swa__cache *c = swa__check_layer(cache, seq, layer);
    return c != NULL ? swa__first(c, layer, seq) : -1;
}

SWA__COLD SWA_API int swa_cache_unstored(const swa_cache *cache, int seq) {
    const swa__cache *c = swa__check_seq(cache, seq);
    int i = 0;

    if (c == NULL) return -1;
    /* a layer that reads another's rows stores none of its own */
    while (i < c->d.n_layers && (swa__layer_of(c, i)->ring != i
                                 || swa__stored_end(c, i, seq) >= swa__seq_of(c, seq)->end))
        i++;
    return i < c->d.n_layers ? i : -1;
}

SWA__COLD SWA_API int64_t swa_cache_min_end(const swa_cache *cache, int seq) {
    swa__cache *c = swa__check_seq(cache, seq);
    const swa__seq *s;
    int64_t pos, next;
    int i;

    if (c == NULL) return -1;
    s = swa__seq_of(c, seq);
    /* each layer moves the end up to where it is exact, until none does: for windows and chunks two
       rounds, or three. One that has lost nothing (its first row is the oldest that it could hold)
       never moves it; nor does one for an end so early that no ring row stands before it */
    for (next = swa__min64(s->start + 1, s->end), pos = -1; pos != next;)
        for (pos = next, i = 0; i < c->d.n_layers; i++) {
            const swa__layer *l = swa__layer_of(c, i);
            const int64_t first = swa__first_if(c, i, seq, next), floor = swa__floor(l, s);
            if (next > floor && first > floor)
                next = swa__min64(s->end, swa__next_query(&l->window, next, first));
        }
    while (c->d.audit > 0 && pos < s->end && !swa__exact(c, seq, pos)) pos++;
    /* inside a tree nothing can end */
    return pos <= swa__settled(s) ? pos : s->end;
}

SWA__COLD SWA_API int64_t swa_cache_replay_from(const swa_cache *cache, int seq, int64_t pos) {
    swa__cache *c = swa__check_seq(cache, seq);
    const swa__seq *s;
    int i;

    if (c == NULL || pos < 0 || pos == INT64_MAX) return -1;
    s = swa__seq_of(c, seq);

    /* From the last layer down: its query at pos needs the outputs of the layer below from its
       window's lower end on, those need that layer's from theirs on, and so forth. A pinned sink is
       needed by every query, and so is all that made it. */
    for (i = c->d.n_layers - 1; i >= 0 && pos > s->start; i--) {
        const swa__layer *l = swa__layer_of(c, i);
        pos = l->window.n_sink > 0 ? s->start : swa__lowest(&l->window, pos);
    }
    return swa__max64(pos, s->start);
}

/* Counted as the slot rules count: what fills the sinks' last tile up is no slot to them. */
SWA_API int64_t swa_cache_slot(const swa_cache *cache, int seq, int layer, int64_t pos) {
    swa__cache *c = swa__check_layer(cache, seq, layer);
    const swa__layer *l;
    const swa__seq *s;

    if (c == NULL) return -1;

    l = swa__layer_of(c, layer);
    s = swa__seq_of(c, seq);
    if (pos < s->start || pos >= swa__settled(s)
        || (pos >= l->pinned && pos < swa__first(c, layer, seq)))
        return -1;
    return pos < l->pinned ? pos : l->pinned + swa__mod(pos - s->origin, l->cap);
}

SWA__COLD SWA_API int64_t swa_required_capacity(const swa_window *window,
                                                int64_t max_chunk_put_first, int64_t max_rollback) {
    int64_t more = swa__max64(1, swa__max64(max_chunk_put_first, max_rollback)), reach;
    if (!swa__window_ok(window) || max_chunk_put_first < 0 || max_rollback < 0) return 0;
    if (window->prefix != 0) return 0;   /* runs have one, a ring's window has none */

    reach = swa__reach(window);
    /* no limit ends here too: `more` is at least 1 */
    return reach - 1 > INT64_MAX - 1 - more || window->right != 0 ? 0 : reach - 1 + more;
}

/* ---- spans: consecutive positions of one layer are at most three ---- */

/* Positions [pos, pos + n), in the slots from `slot` on. */
typedef struct { int64_t pos, n, slot; } swa__span;

/* Positions [from, to) of the ring and the sinks before them, ascending in position. [from, to)
   holds no more positions than the ring has slots, so that it meets the wrap once at the most:
   sinks, up to the wrap, from slot 0 of the ring on. */
static int swa__spans(const swa__layer *l, const swa__seq *s, int64_t from, int64_t to,
                      swa__span out[3]) {
    const int64_t sink_end = swa__min64(l->pinned, to);
    int count = 0;

    /* a sequence that began at a later position has fewer sinks, or none */
    if (s->start < sink_end) {
        out->pos = out->slot = s->start;
        out->n = sink_end - s->start;
        count++;
    }
    for (from = swa__max64(from, swa__floor(l, s)); from < to; from += out[count++].n) {
        const int64_t at = swa__mod(from - s->origin, l->cap);
        out[count].pos = from;
        out[count].n = swa__min64(to - from, l->cap - at);
        out[count].slot = l->sink_slots + at;
    }
    return count;
}

/* K, tail and V of a sequence in a layer: row i is slot i. Written where they are wanted: a struct
   that is returned is written and read again in other widths, for which the CPU waits. */
static void swa__ring_operands(const swa__cache *c, int layer, int seq, swa__operand *x) {
    const swa__layer *l = swa__layer_of(c, layer);
    const unsigned char *region = swa__region_of(c, layer, seq);
    int i;

    for (i = 0; i < SWA__OPERANDS; i++) {
        x[i] = l->x[i];
        if (x[i].dim > 0) x[i].p = region + l->at[i];
        if (swa__has_scale(l, i))
            x[i].scale = (const float *)(const void *)(region + l->scale_at[i]);
    }
}

/* A span of a ring whose operands are x, as the caller may hand it to swa_attention; right before it
   so many positions were overwritten.
   swa__operand_of reads it back: from bytes to elements here, and to bytes there. Tiles are told by
   a stride of 0, which rows in a ring never have; 1 + the slot in layout_ tells a ring from the
   caller's rows. */
static swa_kv swa__span_view(const swa__operand *x, const swa__span *span, int64_t lost) {
    const swa__operand *k = &x[SWA__K], *tail = &x[SWA__TAIL], *v = &x[SWA__V];
    swa_kv kv;

    memset(&kv, 0, sizeof kv);
    kv.k = k->p;
    kv.tail = tail->p;
    kv.v = v->p;
    kv.k_type = k->type;
    kv.tail_type = tail->type;
    kv.v_type = v->type;
    kv.k_token = k->tiled ? 0 : k->row / (int64_t)k->size;
    kv.tail_token = tail->tiled ? 0 : tail->row / (int64_t)tail->size;
    kv.v_token = v->row / (int64_t)v->size;
    kv.k_head = k->head / (int64_t)k->size;
    kv.tail_head = tail->head / (int64_t)tail->size;
    kv.v_head = v->head / (int64_t)v->size;
    kv.k_scale_ = k->scale;
    kv.tail_scale_ = tail->scale;
    kv.v_scale_ = v->scale;

    kv.pos = span->pos;
    kv.n = (int32_t)span->n;
    kv.lost_ = lost;
    kv.slots_ = (int32_t)k->slots;
    kv.layout_ = 1 + (int32_t)span->slot;
    return kv;
}

/* The end of the positions that stand in a layer's ring. A row of a tree is none: it waits in the
   slot of a position that is not its own. */
static int64_t swa__readable(const swa__cache *c, int layer, int seq) {
    return swa__min64(swa__stored_end(c, layer, seq), swa__settled(swa__seq_of(c, seq)));
}

SWA__COLD SWA_API int swa_cache_spans(const swa_cache *cache, int seq, int layer, swa_kv out[3]) {
    swa__cache *c = swa__check_layer(cache, seq, layer);
    const swa__layer *l;
    const swa__seq *s;
    swa__operand x[SWA__OPERANDS];
    swa__span span[3];
    int64_t first;
    int i, count;

    if (c == NULL || out == NULL) return -1;
    l = swa__layer_of(c, layer);
    s = swa__seq_of(c, seq);
    first = swa__first(c, layer, seq);
    count = swa__spans(l, s, first, swa__readable(c, layer, seq), span);
    swa__ring_operands(c, layer, seq, x);
    for (i = 0; i < count; i++)
        out[i] = swa__span_view(x, &span[i], span[i].pos == first ? first - swa__floor(l, s) : 0);
    return count;
}

/* ---- one row in, one row out ---- */

/* Row i of head h as f32, number by number: this is for looking at a ring, not for computing. */
static void swa__operand_read(const swa__operand *x, int h, int64_t i, int dim, float *to) {
    const unsigned char *from = swa__operand_at(x, h, i);
    const float *scale = swa__operand_scale(x, h, i);
    int d;
    for (d = 0; d < dim; d++) {
        to[d] = swa__load1((int)x->type, from + d * x->step, 0);
        if (scale != NULL) to[d] *= scale[x->scales > 1 ? d / 32 * x->slots : 0];
    }
}

/* More than can be counted is as much as all of it. */
static size_t swa__read_bytes(int32_t n, int heads, int dim) {
    size_t bytes = 0;
    return swa__mul((size_t)n, (size_t)heads * sizeof(float), &bytes)
               && swa__mul(bytes, (size_t)dim, &bytes)
             ? bytes : (size_t)-1;
}

SWA__COLD SWA_API swa_status swa_cache_read(const swa_cache *cache, int seq, int layer, int64_t pos,
                                            int32_t n, float *k, float *v) {
    swa__cache *c = swa__check_layer(cache, seq, layer);
    const swa__layer *l;
    swa__operand x[SWA__OPERANDS];
    int64_t p, readable;
    int h, dk, dt, dv;

    if (c == NULL || n < 0 || pos < 0 || pos > INT64_MAX - n) return SWA_ERR_ARG;
    l = swa__layer_of(c, layer);
    dk = l->shape.head_dim;
    dt = l->shape.tail_dim;
    dv = l->shape.v_dim;
    if (swa__touch(k, swa__read_bytes(n, l->shape.n_kv_heads, dk + dt), v,
                   swa__read_bytes(n, l->shape.n_kv_heads, dv)))
        return SWA_ERR_ARG;
    /* all are checked before the first is written: a refused call changes nothing */
    readable = swa__readable(c, layer, seq);
    for (p = pos; p < pos + n; p++) {
        if (p >= readable) return SWA_ERR_ORDER;
        if (swa_cache_slot(cache, seq, layer, p) < 0) return SWA_ERR_LOST;
    }

    swa__ring_operands(c, layer, seq, x);
    for (p = pos; p < pos + n; p++) {
        const int64_t slot = swa__slot(l, swa__seq_of(c, seq), p);
        for (h = 0; h < l->shape.n_kv_heads; h++) {
            if (k != NULL) {
                swa__operand_read(&x[SWA__K], h, slot, dk, k);
                if (dt > 0) swa__operand_read(&x[SWA__TAIL], h, slot, dt, k + dk);
                k += dk + dt;
            }
            if (v != NULL) {
                swa__operand_read(&x[l->shape.v_in_k ? SWA__K : SWA__V], h, slot, dv, v);
                v += dv;
            }
        }
    }
    return SWA_OK;
}

/* ---- copies of a sequence: fork, save, load ---- */

/* A product carries bits upwards only: without the shift the upper half of a word would never reach
   the lower half of the sum. It finds damage, not intent. */
static uint64_t swa__hash(uint64_t h, const void *p, size_t n) {   /* FNV-1a over 8-byte words */
    const unsigned char *b = (const unsigned char *)p;
    uint64_t word;
    SWA__ROLLED for (; n >= 8; n -= 8, b += 8) {
        memcpy(&word, b, 8);
        h = (h ^ word) * 0x100000001b3u;
        h ^= h >> 29;
    }
    SWA__ROLLED for (; n > 0; n--) h = (h ^ *b++) * 0x100000001b3u;
    return h;
}

/* What has to be equal for rows of one cache to be rows of another: not the query heads, not the
   slots. Nor whether K lies in tiles: copies go number by number where the two differ. */
SWA__COLD static uint64_t swa__geometry(const swa__cache *c) {
    uint64_t h = swa__hash(0xcbf29ce484222325u, &c->d.n_layers, sizeof c->d.n_layers);
    int i, which;

    for (i = 0; i < c->d.n_layers; i++) {
        const swa__layer *l = swa__layer_of(c, i);
        int64_t v[6 + 2 * SWA__OPERANDS];
        v[0] = l->ring;
        v[1] = l->shape.n_kv_heads;
        v[2] = l->window.kind;
        v[3] = l->window.n_sink;
        v[4] = l->window.left;
        v[5] = l->shape.v_in_k ? l->shape.v_dim : 0;
        for (which = 0; which < SWA__OPERANDS; which++) {
            v[6 + 2 * which] = l->x[which].dim;
            v[7 + 2 * which] = l->x[which].dim > 0 ? (int64_t)l->type[which] : 0;
        }
        h = swa__hash(h, v, sizeof v);
    }
    return h;
}

/* n numbers, which need not be aligned; each copy is one move. */
static void swa__numbers(unsigned char *to, int64_t to_step, const unsigned char *from,
                         int64_t step, int n, size_t size) {
    if (size == 4)
        SWA__ROLLED for (; n > 0; n--, to += to_step, from += step) memcpy(to, from, 4);
    else if (size == 2)
        SWA__ROLLED for (; n > 0; n--, to += to_step, from += step) memcpy(to, from, 2);
    else
        SWA__ROLLED for (; n > 0; n--, to += to_step, from += step) *to = *from;
}

/* n rows of a ring, from slot `from` on, into the slots of another from `to` on: as many at once as
   lie together in both. Of tiles only whole ones that begin at a tile on both sides lie together:
   others, and rows into tiles, go number by number, a row at a time. A tail in K's rows goes with
   them. Within one ring the slots must differ. */
static void swa__rows_copy(int heads, const swa__operand *dst, int64_t to, const swa__operand *src,
                           int64_t from, int64_t n) {
    const int joined = swa__joined(dst) && swa__joined(src);
    int which, h, g;
    int64_t i, step;

    for (which = 0; which < SWA__OPERANDS; which++, dst++, src++)
        for (h = 0; h < heads && dst->dim > 0; h++) {
            for (i = joined && which == SWA__TAIL ? n : 0; i < n; i += step) {
                unsigned char *a = swa__operand_at(dst, h, to + i);
                const unsigned char *b = swa__operand_at(src, h, from + i);
                const int tiles = dst->tiled && (to + i) % SWA__TILE == 0
                                  && (from + i) % SWA__TILE == 0;

                /* 0 of the last, incomplete tile */
                step = tiles ? (n - i) / SWA__TILE * SWA__TILE : n;
                if (dst->tiled != src->tiled || (dst->tiled && (!tiles || step == 0))) {
                    swa__numbers(a, dst->step, b, src->step, dst->dim, dst->size);
                    step = 1;
                } else memcpy(a, b, (size_t)(step * dst->row));
            }
            for (g = 0; g < dst->scales; g++)
                memcpy(swa__operand_scale(dst, h, to) + g * dst->slots,
                       swa__operand_scale(src, h, from) + g * src->slots,
                       (size_t)n * sizeof(float));
        }
}

/* The rows that dst is said to hold, from src, whose slots may be others. Both sides' spans cover
   the same positions, cut at their own wraps: each pair of spans shares an interval, or none. */
static void swa__layer_copy(const swa__cache *to, int dst, const swa__cache *from, int src,
                            int layer) {
    const swa__held *held = swa__held_of(to, layer, dst);
    const swa__layer *l = swa__layer_of(to, layer), *m = swa__layer_of(from, layer);
    swa__operand x[SWA__OPERANDS], y[SWA__OPERANDS];
    swa__span a[3], b[3];
    int i, j;
    const int na = swa__spans(l, swa__seq_of(to, dst), held->first, held->stored, a);
    const int nb = swa__spans(m, swa__seq_of(from, src), held->first, held->stored, b);

    swa__ring_operands(to, layer, dst, x);
    swa__ring_operands(from, layer, src, y);
    for (i = 0; i < na; i++)
        for (j = 0; j < nb; j++) {
            const int64_t lo = swa__max64(a[i].pos, b[j].pos);
            const int64_t hi = swa__min64(a[i].pos + a[i].n, b[j].pos + b[j].n);
            if (lo < hi)
                swa__rows_copy(l->shape.n_kv_heads, x, a[i].slot + (lo - a[i].pos), y,
                               b[j].slot + (lo - b[j].pos), hi - lo);
        }
}

/* dst gets src's interval first, as if it had been there all along; then it forgets and appends as
   any sequence does, and what it is left to hold is what is copied. */
SWA__COLD SWA_API swa_status swa_cache_copy(swa_cache *to, int dst, const swa_cache *from, int src,
                                            int64_t end) {
    swa__cache *t = swa__check_seq(to, dst), *f = swa__check_seq(from, src);
    swa__seq *s;
    swa_status status;
    int i;

    if (t == NULL || f == NULL || end < -1 || (t != f && swa__geometry(t) != swa__geometry(f)))
        return SWA_ERR_ARG;
    s = swa__seq_of(f, src);
    /* under audit: dst and src exchanged, as by who knows llama.cpp's order, empty what is full */
    if (end == -1 && t->d.audit > 0 && s->end == s->start
        && swa__seq_of(t, dst)->end > swa__seq_of(t, dst)->start)
        return SWA_ERR_ARG;
    if (end == -1) end = s->end;
    if (t == f && dst == src) return swa_cache_truncate(to, src, end);
    /* announced, not stored */
    if (end > swa__settled(s) || end > swa__least_stored(f, src)) return SWA_ERR_ORDER;
    status = swa__forget_check(f, src, end);
    if (status != SWA_OK) return status;
    if (end - s->start > t->limit) return SWA_ERR_FULL;

    swa__changing(t, dst);
    *swa__seq_of(t, dst) = *s;
    for (i = 0; i < t->d.n_layers; i++) *swa__held_of(t, i, dst) = *swa__held_of(f, i, src);
    /* a tree too, because end is its root at the latest */
    swa__forget(t, dst, end);
    swa__append(t, dst, 0);              /* its rings may be shorter */
    for (i = 0; i < t->d.n_layers; i++)
        if (swa__layer_of(t, i)->ring == i) swa__layer_copy(t, dst, f, src, i);
    swa__audit(t, dst, INT64_MAX);
    return SWA_OK;
}

SWA__COLD SWA_API swa_status swa_cache_fork(swa_cache *cache, int dst, int src, int64_t end) {
    return swa_cache_copy(cache, dst, cache, src, end);
}

#if SWA__BLOB
/* A blob: this head, then a record per sequence, then the checksum. A record: start, end, origin
   and each layer's first row as int64; then of each layer that has a ring the sinks' rows and those
   from the first one on, of a row K, tail, V and their scales, head by head. Written in the
   machine's own byte order.

     head | start end origin first[n_layers] | layer 0: sinks, [first, end) | layer 1 .. | sum
            record of the first sequence; its size follows from these numbers

   Rows stand in order of position and dense, so that slots, tiles and paddings of the writer
   mean nothing to the reader: its own may differ. Nothing in a blob is aligned, so all goes by
   memcpy. */
typedef struct {
    char     magic[4];
    uint32_t version, order;             /* order reads 0x01020304 in the writer's byte order     */
    uint32_t n_seqs;                     /* records that follow                                   */
    uint64_t bytes, geometry;            /* of the whole blob; swa__geometry                      */
} swa__blob;
enum { SWA__BLOB_VERSION = 2, SWA__RECORD = 3 }; /* numbers of a record before the layers'        */

/* Number i of a record: start, end, origin, then the layers' first rows. */
static int64_t swa__record_get(const unsigned char *b, int i) {
    int64_t x;
    memcpy(&x, b + (size_t)i * sizeof x, sizeof x);
    return x;
}

static void swa__record_put(unsigned char *b, int i, int64_t x) {
    memcpy(b + (size_t)i * sizeof x, &x, sizeof x);
}

/* Bytes of one row, all heads, as a blob holds it. */
static size_t swa__row_bytes(const swa__layer *l) {
    size_t n = 0;
    int i;
    for (i = 0; i < SWA__OPERANDS; i++)
        n += (size_t)l->x[i].dim * l->x[i].size + (size_t)l->x[i].scales * sizeof(float);
    return n * (size_t)l->shape.n_kv_heads;
}

/* Pinned rows that the sequence has: from its start on, and up to its end. */
static int64_t swa__sink_rows(const swa__layer *l, const swa__seq *s) {
    return swa__max64(swa__min64(l->pinned, s->end) - s->start, 0);
}

/* Adds the bytes of a layer's rows from first on; 0 = too many. A position is 64 bits wide also
   where a size is 32. */
static int swa__record_add(const swa__layer *l, const swa__seq *s, int64_t first, size_t *bytes) {
    const uint64_t rows = (uint64_t)(s->end - first) + (uint64_t)swa__sink_rows(l, s);
    size_t n;
    return rows <= (size_t)-1 && swa__mul((size_t)rows, swa__row_bytes(l), &n)
        && swa__add(*bytes, n, bytes);
}

/* A sequence, or with -1 all of them: from *i to before *end. NULL: there is none. */
static swa__cache *swa__check_seqs(const swa_cache *cache, int seq, int *i, int *end) {
    swa__cache *c = swa__check_seq(cache, seq == -1 ? 0 : seq);
    *i = seq == -1 ? 0 : seq;
    *end = c == NULL ? *i : seq == -1 ? c->d.n_seqs : seq + 1;
    return c;
}

SWA__COLD SWA_API size_t swa_cache_save_bytes(const swa_cache *cache, int seq) {
    size_t n = sizeof(swa__blob) + sizeof(uint64_t);
    int i, end, layer;
    const swa__cache *c = swa__check_seqs(cache, seq, &i, &end);

    if (c == NULL) return 0;

    for (; i < end; i++) {
        n += (SWA__RECORD + (size_t)c->d.n_layers) * sizeof(int64_t);
        for (layer = 0; layer < c->d.n_layers; layer++)          /* it is there, so its size fits */
            if (swa__layer_of(c, layer)->ring == layer)
                (void)swa__record_add(swa__layer_of(c, layer), swa__seq_of(c, i),
                                      swa__first(c, layer, i), &n);
    }
    return n;
}

/* Copies the row in a slot, all heads, to a blob or from it. One function for both ways, so that
   what is written and what is read cannot differ. */
static void swa__blob_row(int heads, const swa__operand *ring, int64_t slot, unsigned char *b,
                          int save) {
    int which, h, g;

    for (h = 0; h < heads; h++)
        for (which = 0; which < SWA__OPERANDS; which++) {
            const swa__operand *x = &ring[which];
            const int64_t size = (int64_t)x->size;
            unsigned char *at;
            float *scale;
            if (x->dim == 0) continue;
            at = swa__operand_at(x, h, slot);
            scale = swa__operand_scale(x, h, slot);
            if (save) swa__numbers(b, size, at, x->step, x->dim, x->size);
            else swa__numbers(at, x->step, b, size, x->dim, x->size);
            b += x->dim * size;
            for (g = 0; g < x->scales; g++, scale += x->slots, b += sizeof(float))
                memcpy(save ? b : (unsigned char *)scale, save ? (unsigned char *)scale : b,
                       sizeof(float));
        }
}

/* The rows of a record, whose numbers are in place, to a blob or from it; returns the next record.
   Rows that the cache has no slots for stay in the blob. */
SWA__COLD static unsigned char *swa__record_rows(const swa__cache *c, int seq,
                                                 unsigned char *record, int save) {
    const swa__seq *s = swa__seq_of(c, seq);
    unsigned char *b = record + (SWA__RECORD + (size_t)c->d.n_layers) * sizeof(int64_t);
    swa__operand x[SWA__OPERANDS];
    swa__span span[3];
    int layer, i, n;
    int64_t r;

    for (layer = 0; layer < c->d.n_layers; layer++) {
        const swa__layer *l = swa__layer_of(c, layer);
        const int64_t first = swa__record_get(record, SWA__RECORD + layer),
                      sinks = swa__sink_rows(l, s);
        const size_t row = swa__row_bytes(l);

        if (l->ring != layer) continue;
        swa__ring_operands(c, layer, seq, x);
        n = swa__spans(l, s, swa__first(c, layer, seq), s->end, span);
        for (i = 0; i < n; i++)
            for (r = 0; r < span[i].n; r++) {
                /* the record may begin with rows that this cache has no slots for */
                const int64_t pos = span[i].pos + r,
                              at = pos < l->pinned ? pos - s->start : sinks + (pos - first);
                swa__blob_row(l->shape.n_kv_heads, x, span[i].slot + r, b + (size_t)at * row, save);
            }
        b += (size_t)(sinks + (s->end - first)) * row;
    }
    return b;
}

SWA__COLD SWA_API swa_status swa_cache_save(const swa_cache *cache, int seq, void *blob,
                                            size_t bytes) {
    size_t need = swa_cache_save_bytes(cache, seq);
    unsigned char *b = (unsigned char *)blob;
    swa__blob head;
    uint64_t sum;
    int first, end, i, layer;
    const swa__cache *c = swa__check_seqs(cache, seq, &first, &end);

    if (c == NULL || blob == NULL) return SWA_ERR_ARG;
    /* what is only announced is no row yet, and a tree's rows are not where positions are */
    for (i = first; i < end; i++)
        if (swa__min64(swa__least_stored(c, i), swa__settled(swa__seq_of(c, i)))
            < swa__seq_of(c, i)->end)
            return SWA_ERR_ORDER;
    if (bytes < need) return SWA_ERR_MEMORY;

    memcpy(head.magic, "swaR", 4);
    head.version = SWA__BLOB_VERSION;
    head.order = 0x01020304u;
    head.n_seqs = (uint32_t)(end - first);
    head.bytes = need;
    head.geometry = swa__geometry(c);
    memcpy(b, &head, sizeof head);

    b += sizeof head;
    for (i = first; i < end; i++) {
        const swa__seq *s = swa__seq_of(c, i);
        swa__record_put(b, 0, s->start);
        swa__record_put(b, 1, s->end);
        swa__record_put(b, 2, s->origin);
        for (layer = 0; layer < c->d.n_layers; layer++)
            swa__record_put(b, SWA__RECORD + layer, swa__first(c, layer, i));
        b = swa__record_rows(c, i, b, 1);
    }
    sum = swa__hash(0, blob, need - sizeof sum);
    memcpy(b, &sum, sizeof sum);
    return SWA_OK;
}

/* Whether some history of calls could have produced a record, and whether this cache can hold it.
   bytes: its size. A blob may come from anywhere: what passes here is never questioned again, and
   rows are read by its numbers. */
SWA__COLD static swa_status swa__record_check(const swa__cache *c, const unsigned char *b,
                                              size_t left, size_t *bytes) {
    swa__seq s;
    int i;

    *bytes = (SWA__RECORD + (size_t)c->d.n_layers) * sizeof(int64_t);
    if (left < *bytes) return SWA_ERR_BLOB;
    memset(&s, 0, sizeof s);
    s.start = swa__record_get(b, 0);
    s.end = swa__record_get(b, 1);
    s.origin = swa__record_get(b, 2);
    if (s.start < 0 || s.end < s.start || s.end == INT64_MAX || s.origin < 0) return SWA_ERR_BLOB;

    for (i = 0; i < c->d.n_layers; i++) {
        const swa__layer *l = swa__layer_of(c, i);
        const int64_t first = swa__record_get(b, SWA__RECORD + i), need = swa__needed(l, &s, s.end);
        /* no row before the oldest that a ring could hold, and, as begin sees to, all that the next
           query needs; layers that share rows agree on them */
        if (first > s.end || first < swa__min64(s.end, swa__floor(l, &s))) return SWA_ERR_BLOB;
        if (need < s.end && need < first) return SWA_ERR_BLOB;
        if (first != swa__record_get(b, SWA__RECORD + l->ring)) return SWA_ERR_BLOB;
        if (l->ring == i && !swa__record_add(l, &s, first, bytes)) return SWA_ERR_BLOB;
    }
    if (left < *bytes) return SWA_ERR_BLOB;
    return s.end - s.start > c->limit ? SWA_ERR_FULL : SWA_OK;
}

/* Of a record that was checked. */
SWA__COLD static void swa__record_load(swa__cache *c, int seq, unsigned char *b) {
    swa__seq *s = swa__seq_of(c, seq);
    int i;

    swa__changing(c, seq);
    swa__empty(c, seq, swa__record_get(b, 0), swa__record_get(b, 2));
    s->end = s->begun = swa__record_get(b, 1);
    for (i = 0; i < c->d.n_layers; i++) {
        swa__held_of(c, i, seq)->first = swa__record_get(b, SWA__RECORD + i);
        swa__held_of(c, i, seq)->stored = s->end;
    }
    swa__append(c, seq, 0);              /* the rings may be shorter here */
    (void)swa__record_rows(c, seq, b, 0);
    swa__audit(c, seq, INT64_MAX);
}

/* The whole blob: every record is checked before the first is taken. A bad one comes before one that
   is only too long. */
SWA__COLD static swa__verdict swa__blob_check(const swa_cache *cache, int seq,
                                              const unsigned char *b, size_t bytes) {
    swa_status status = SWA_OK;
    swa__blob head;
    uint64_t sum;
    size_t at = sizeof head, n, record;
    int first, end, i;
    const swa__cache *c = swa__check_seqs(cache, seq, &first, &end);

    if (c == NULL || b == NULL) return swa__no(SWA_ERR_ARG, "no cache, no such seq, or no blob");
    if (bytes < sizeof head + sizeof sum) return swa__no(SWA_ERR_BLOB, "bytes: too few for a blob");
    n = bytes - sizeof sum;
    memcpy(&head, b, sizeof head);
    if (memcmp(head.magic, "swaR", 4) != 0 || head.version != SWA__BLOB_VERSION
        || head.order != 0x01020304u)
        return swa__no(SWA_ERR_BLOB, "no blob of this version and byte order");
    if (head.bytes != bytes) return swa__no(SWA_ERR_BLOB, "bytes: the blob has another size");
    memcpy(&sum, b + n, sizeof sum);
    if (sum != swa__hash(0, b, n)) return swa__no(SWA_ERR_BLOB, "the blob was altered: its sum");
    if (head.n_seqs != (uint32_t)(end - first))
        return swa__no(SWA_ERR_BLOB, "seq: a blob of one sequence into all, or of all into one");
    if (head.geometry != swa__geometry(c))
        return swa__no(SWA_ERR_BLOB, "the cache: its layers, shapes, types or windows are others");

    /* what a blob of the right sum and geometry may still claim is asked of each record */
    for (i = first; i < end; i++) {
        const swa_status one = swa__record_check(c, b + at, n - at, &record);
        if (one == SWA_ERR_BLOB) return swa__no(one, "a record that no cache has written");
        if (status == SWA_OK) status = one;
        at += record;
    }
    if (at != n) return swa__no(SWA_ERR_BLOB, "more than the records");
    return swa__no(status, "a sequence that is past this cache's max_context");
}

SWA__COLD SWA_API const char *swa_cache_load_explain(const swa_cache *cache, int seq,
                                                     const void *blob, size_t bytes) {
    return swa__blob_check(cache, seq, (const unsigned char *)blob, bytes).why;
}

SWA__COLD SWA_API swa_status swa_cache_load(swa_cache *cache, int seq, const void *blob,
                                            size_t bytes) {
    unsigned char *b = (unsigned char *)(uintptr_t)blob;         /* it is only read */
    const swa_status status = swa__blob_check(cache, seq, b, bytes).status;
    size_t at = sizeof(swa__blob), record;
    int first, end, i;
    swa__cache *c = swa__check_seqs(cache, seq, &first, &end);

    if (status != SWA_OK) return status;
    for (i = first; i < end; i++, at += record) {
        (void)swa__record_check(c, b + at, bytes - at, &record);
        swa__record_load(c, i, b + at);
    }
    return SWA_OK;
}
#endif /* SWA__BLOB */

/* ---- audit ---- */

/* All bits set: a NaN in every float type; for q8 and q8_32 the scales carry it. */
SWA__COLD static void swa__poison(int heads, const swa__operand *x, int64_t from, int64_t to) {
    int which, h, d, g;

    for (which = 0; which < SWA__OPERANDS; which++, x++)
        for (h = 0; h < heads && x->dim > 0; h++) {
            int64_t i, n;
            for (i = from; i < to; i += n) {
                unsigned char *p = swa__operand_at(x, h, i);
                const int pieces = x->tiled ? x->dim : 1;      /* a row lies in one */
                n = x->tiled ? swa__min64(to - i, SWA__TILE - i % SWA__TILE) : 1;
                for (d = 0; d < pieces; d++)
                    memset(p + d * x->step, 0xff, (size_t)(n * x->dim / pieces) * x->size);
                for (g = 0; g < x->scales; g++)
                    memset(swa__operand_scale(x, h, i) + g * x->slots, 0xff, (size_t)n * sizeof(float));
            }
        }
}

/* Oldest row that must stay in a layer's ring while the step that begins at pos runs. All layers
   that read its rows are asked: of two windows that reach equally far one may end lower here. */
static int64_t swa__in_use(const swa__cache *c, int layer, int seq, int64_t pos) {
    int64_t from = swa__max64(swa__first_if(c, layer, seq, pos),
                              swa__floor(swa__layer_of(c, layer), swa__seq_of(c, seq)));
    int i;
    for (i = 0; i < c->d.n_layers; i++)
        if (swa__layer_of(c, i)->ring == layer)
            from = swa__min64(from, swa__needed(swa__layer_of(c, i), swa__seq_of(c, seq), pos));
    return from;
}

/* With desc.audit: every slot that holds no live row is filled with NaN, so that reading one shows
   at once. Rows before position `keep` are still needed by the step that begins there; INT64_MAX:
   there is none. Where a layer has not been called to store a step, which may be taken back, it is
   as if that began. */
SWA__COLD static void swa__audit(swa__cache *c, int seq, int64_t keep) {
    const swa__seq *s = swa__seq_of(c, seq);
    swa__operand x[SWA__OPERANDS];
    int layer;
    int64_t i;

    if (!c->d.audit) return;
    for (layer = 0; layer < c->d.n_layers; layer++) {
        const swa__layer *l = swa__layer_of(c, layer);
        const swa__held *held = swa__held_of(c, layer, seq);
        const int64_t until = held->before < held->first ? swa__min64(keep, s->begun) : keep;
        const int64_t to = swa__min64(s->end, until);
        const int heads = l->shape.n_kv_heads;
        int64_t from, live, at, dead, wrap;

        if (l->ring != layer) continue;
        from = until == INT64_MAX ? swa__first(c, layer, seq) : swa__in_use(c, layer, seq, to);
        swa__ring_operands(c, layer, seq, x);
        for (i = 0; i < l->sink_slots; i++)
            if (i >= l->pinned || i < s->start || i >= to) swa__poison(heads, x, i, i + 1);
        /* behind the live ones, and what goes on at the ring's first slot */
        live = swa__max64(to - from, 0);
        dead = l->cap - live;
        at = swa__mod(from - s->origin + live, l->cap);
        wrap = swa__max64(at + dead - l->cap, 0);
        swa__poison(heads, x, l->sink_slots + at, l->sink_slots + at + dead - wrap);
        swa__poison(heads, x, l->sink_slots, l->sink_slots + wrap);
    }
}

/* ==== [SECTION 8] STEP ===========================================================================
   Which tokens come now. begin is the only place where a step changes state; what follows per layer
   moves data. It comes in two halves: every run is checked against every layer and nothing is
   changed, then all are taken over, which cannot fail. So a refused step has moved no sequence.

   A run that is taken over forgets what stood from its position on, and announces its rows: end and
   first move ([SECTION 7]), stored does not. Each layer then raises its own stored when it has
   written them (swa__store_rows, [SECTION 12]), so that at the next begin the least of them tells
   whether a layer was left out. What a part left unwritten lowers it again (swa__parts_check).

   A tree of drafts is announced as a chain of as many tokens is, row i in the slot of position
   pos + i, and sorted out when a path of it is accepted:

       parents  -1  0  0  1  2         0             commit of the path 0, 2, 4:
       row       0  1  2  3  4        / \            rows 2 and 4 move to the slots of pos + 1
       depth     0  1  1  2  2       1   2           and pos + 2; 1 and 3 are forgotten
       position  pos + depth         3   4

   Until then nobody may ask for a position from pos on: swa__settled ends there. */

enum { SWA__NODES = 1 << 15 };           /* most of a tree                                        */

/* How many nodes stand above node i. It ends because a parent comes before its child, which begin
   has checked. */
static int32_t swa__depth(const int32_t *parents, int32_t i) {
    int32_t depth = 0;
    for (i = parents[i]; i >= 0; i = parents[i]) depth++;
    return depth;
}

/* Of a chain too, so that nobody has to ask which of them a run is. What a tree looked like at
   begin has to be what attend and commit see: its array is the caller's. */
static uint64_t swa__tree_hash(const int32_t *parents, int64_t n) {
    return swa__hash((uint64_t)n, parents, parents != NULL ? (size_t)n * sizeof *parents : 0);
}

static swa_status swa__parents_check(const int32_t *parents, int32_t n) {
    int32_t i;
    if (n > SWA__NODES) return SWA_ERR_OVERFLOW;
    for (i = 0; i < n; i++)
        if (parents[i] < -1 || parents[i] >= i) return SWA_ERR_ARG;
    return SWA_OK;
}

/* A tree's rows take the slots of so many positions, and must leave what the query at pos needs:
   then any path of it can stay, and none. */
static swa__verdict swa__tree_check(const swa__cache *c, const swa_run *r) {
    const swa__seq *s = swa__seq_of(c, r->seq);
    const swa_status status = swa__parents_check(r->parents, r->n);
    int i;

    if (status != SWA_OK) return swa__no(status, "parents: one < -1 or >= i, or too many nodes");
    /* their keys are gathered as a list's are */
    if (!SWA__LISTS) return swa__no(SWA_ERR_UNSUPPORTED, "parents: SWA_NO_LISTS left trees out");
    for (i = 0; i < c->d.n_layers; i++) {
        const swa__layer *l = swa__layer_of(c, i);
        const int64_t need = swa__needed(l, s, r->pos);
        /* rows of the tree in each other's slots; or what appending will push out is still
           needed */
        if (r->n > l->cap || (need < r->pos && need < r->pos + r->n - l->cap))
            return swa__no(SWA_ERR_CAPACITY, "parents: more nodes than could be taken back");
    }
    return swa__yes();
}

/* Whether a run may follow what its sequence holds, in all layers; nothing is changed. The
   arguments come first, then what is out of order, then what the rings cannot hold, or cannot give
   back any more. */
#define SWA__SEQ_TWICE "seq: twice in one step"
static swa__verdict swa__run_check(const swa__cache *c, const swa_run *r) {
    const swa__seq *s;
    int64_t least;

    if (r->seq < 0 || r->seq >= c->d.n_seqs) return swa__no(SWA_ERR_ARG, "seq: not in the cache");
    if (r->n <= 0 || r->pos < 0) return swa__no(SWA_ERR_ARG, "n not positive, or pos below 0");
    if (r->rewind != 0 && r->rewind != 1)
        return swa__no(SWA_ERR_ARG, "rewind: neither 0 nor 1; was the run zeroed?");
    s = swa__seq_of(c, r->seq);
    if (s->mark != 0) return swa__no(SWA_ERR_ARG, SWA__SEQ_TWICE);
    /* the end, too, is less than INT64_MAX, where no query stands */
    if (r->pos > INT64_MAX - 1 - r->n) return swa__no(SWA_ERR_OVERFLOW, "pos + n");
    if (r->prefix != 0 && (r->prefix <= r->pos || r->prefix > r->pos + r->n))
        return swa__no(SWA_ERR_ARG, "prefix: a position that is not within the run");
    if (r->prefix_first != 0 && (r->prefix_first < r->pos || r->prefix_first >= r->prefix))
        return swa__no(SWA_ERR_ARG, "prefix_first: a position that is not between pos and prefix");
    if (r->prefix != 0 && r->parents != NULL) return swa__no(SWA_ERR_ARG, "prefix with parents");

    least = swa__least_stored(c, r->seq);
    if (r->pos > swa__settled(s))
        return swa__no(SWA_ERR_ORDER, r->pos > s->end ? "pos is past swa_cache_end: was the last "
                                                        "step's n too small, none begun, or the "
                                                        "cache made, reset or truncated since?"
                                                      : "a tree waits for swa_cache_commit, and pos "
                                                        "is behind where it begins");
    if (r->pos > least)
        return swa__no(SWA_ERR_ORDER, "a layer has not stored the step before (swa_cache_unstored), or "
                                      "its phase 1 was left out: call it, or take the step back, by "
                                      "begin at its pos or truncate; begin comes once a step, before "
                                      "layer 0");
    /* back only if that is meant, or the last run died before all layers had stored it and is begun
       again */
    if (r->pos < s->end && !r->rewind && !(r->pos == s->begun && least < s->end))
        return swa__no(SWA_ERR_ORDER,
                       s->parents == NULL ? "pos is before the sequence's end, and rewind is 0: "
                                            "swa_cache_reset for a new text, swa_cache_truncate or "
                                            "rewind to go back; or was pos not advanced?"
                                          : "a tree waits for swa_cache_commit (rewind 1 drops it)");
    /* positions from the start on, which is pos if the run goes back before it */
    if (r->pos + r->n - swa__min64(r->pos, s->start) > c->limit)
        return swa__no(SWA_ERR_FULL, "past max_context");
    /* queries of a KV head */
    if ((int64_t)r->n * c->group > INT32_MAX) return swa__no(SWA_ERR_OVERFLOW, "n * heads");
    if (swa__forget_check(c, r->seq, r->pos) != SWA_OK)
        return swa__no(SWA_ERR_LOST,
                       least >= s->end || r->pos > s->begun
                           ? "pos needs rows that are overwritten: max_rollback says how many "
                             "tokens can be taken back"
                       : c->status == SWA_OK
                           ? "the run before is stored in part, over what pos needs: call the layers "
                             "that swa_cache_unstored() names, before any other begin"
                           : "a run was stored in part, over what pos needs, and its step is over: "
                             "swa_cache_reset, or a rewind to the start");
    return r->parents != NULL ? swa__tree_check(c, r) : swa__yes();
}

/* Takes over a run that has been checked. Old rows below its position stay in the slots that it
   will overwrite until a layer stores: its own queries need them. */
static void swa__run_commit(swa__cache *c, const swa_run *r) {
    swa__forget(c, r->seq, r->pos);
    swa__append(c, r->seq, r->n);
    swa__seq_of(c, r->seq)->begun = r->pos;
    swa__seq_of(c, r->seq)->step = c->step + 1;
    swa__seq_of(c, r->seq)->parents = r->parents;
    swa__seq_of(c, r->seq)->tree = swa__tree_hash(r->parents, r->n);
    swa__audit(c, r->seq, r->pos);
}

/* Whether the step before was begun for nothing: no layer was called, and none of its sequences is
   begun again. So it looks where each sequence of a batch is begun by itself. */
static int swa__begun_apart(const swa__cache *c, const swa_run *runs, int n_runs) {
    int i, j;

    if (c->status != SWA_OK || swa__open_of(c)[SWA__OPEN_CALLED] == c->step) return 0;
    for (i = 0; i < c->n_runs; i++)
        for (j = 0; j < n_runs; j++)
            if (swa__runs_of(c)[i].seq == runs[j].seq) return 0;
    return 1;
}

/* Checks all runs; writes what became of each, and its row. It goes on after the first that is
   refused, so that each has its own answer; the step's is the first one. */
static swa_status swa__runs_check(const swa__cache *c, swa_run *runs, int n_runs) {
    swa_status status = SWA_OK;
    int64_t rows = 0;
    int i;

    for (i = 0; i < n_runs; i++) {
        runs[i].row = (int32_t)rows;
        runs[i].status = swa__run_check(c, &runs[i]).status;
        if (runs[i].status == SWA_OK && runs[i].n > INT32_MAX - rows)
            runs[i].status = SWA_ERR_OVERFLOW;
        if (runs[i].status == SWA_OK) {
            rows += runs[i].n;
            swa__seq_of(c, runs[i].seq)->mark = 1;
        } else if (status == SWA_OK) status = runs[i].status;
    }
    SWA__ROLLED for (i = 0; i < n_runs; i++)
        /* no mark outlives the check, whatever came out: the next one would see a second run in
           it */
        if (runs[i].seq >= 0 && runs[i].seq < c->d.n_seqs) swa__seq_of(c, runs[i].seq)->mark = 0;
    if (status != SWA_OK || !swa__begun_apart(c, runs, n_runs)) return status;
    SWA__ROLLED for (i = 0; i < n_runs; i++) runs[i].status = SWA_ERR_ORDER;
    swa__open_of(c)[SWA__OPEN_CALLED] = -1; /* for swa_step_explain, until a step is on */
    return SWA_ERR_ORDER;
}

SWA_API swa_status swa_step_begin(swa_cache *cache, swa_run *runs, int n_runs) {
    swa__cache *c = swa__get(cache);
    int i;

    if (c == NULL) return SWA_ERR_ARG;

    swa__parts_check(c);
    if (swa__open_of(c)[SWA__OPEN_CALLED] < 0) swa__open_of(c)[SWA__OPEN_CALLED] = 0;
    c->status = runs == NULL || n_runs <= 0 ? SWA_ERR_ARG : swa__runs_check(c, runs, n_runs);
    /* from here on there is no step, also not the one before, until this one is accepted */
    c->n_runs = 0;
    c->n_tokens = 0;
    if (c->status != SWA_OK) return c->status;
    for (i = 0; i < n_runs; i++) {
        swa__run_commit(c, &runs[i]);
        swa__runs_of(c)[i] = runs[i]; /* a sequence at most once: there is room */
        runs[i].rewind = 0;           /* used up: a run that is used again has to mean it again */
        c->n_tokens += runs[i].n;
    }
    c->n_runs = n_runs;
    c->step++;
    return SWA_OK;
}

SWA__COLD SWA_API const char *swa_step_explain(const swa_cache *cache, const swa_run *run) {
    const swa__cache *c = swa__get(cache);

    swa__verdict v;

    if (c == NULL || run == NULL) return SWA__NO_CACHE "or no run";
    v = swa__run_check(c, run);
    /* by itself it is no second run */
    if (run->status == SWA_ERR_ARG && v.status != SWA_ERR_ARG) return SWA__SEQ_TWICE;
    if (v.why != NULL) return v.why;
    /* it would be, or the begin that was refused has been */
    return swa__begun_apart(c, run, 1)
                   || (c->status == SWA_ERR_ORDER && swa__open_of(c)[SWA__OPEN_CALLED] < 0)
               ? "other sequences were begun, and no layer called: begin a batch by one call"
               : NULL;
}

SWA_API swa_status swa_step_one(swa_cache *cache, int seq, int64_t pos, int32_t n) {
    swa_run run;
    memset(&run, 0, sizeof run);
    run.seq = seq;
    run.pos = pos;
    run.n = n;
    return swa_step_begin(cache, &run, 1);
}

SWA_API int32_t swa_step_tokens(const swa_cache *cache) {
    const swa__cache *c = swa__get(cache);
    return c != NULL && c->status == SWA_OK ? c->n_tokens : 0;
}

SWA_API swa_status swa_tree_positions(const int32_t *parents, int32_t n, int64_t pos,
                                      int64_t *positions) {
    swa_status status;
    int32_t i;

    if (parents == NULL || positions == NULL || n < 0 || pos < 0) return SWA_ERR_ARG;
    if (pos > INT64_MAX - 1 - n) return SWA_ERR_OVERFLOW;
    status = swa__parents_check(parents, n);
    SWA__ROLLED for (i = 0; i < n && status == SWA_OK; i++)
        /* the parent's is there already: it comes first */
        positions[i] = parents[i] < 0 ? pos : positions[parents[i]] + 1;
    return status;
}

SWA__COLD static swa__verdict swa__commit_check(const swa__cache *c, int seq, const int32_t *path,
                                                int32_t n) {
    const swa__seq *s;
    int32_t i;

    if (c == NULL) return swa__no(SWA_ERR_ARG, SWA__NO_CACHE "or no such seq");
    if (n < 0 || (n > 0 && path == NULL)) return swa__no(SWA_ERR_ARG, "path: NULL, or n below 0");
    s = swa__seq_of(c, seq);
    if (s->parents == NULL)
        return swa__no(SWA_ERR_ORDER, "no tree: none was begun, or it was committed or dropped");
    if (swa__least_stored(c, seq) < s->end)
        return swa__no(SWA_ERR_ORDER, "a layer has not stored the tree: swa_cache_unstored");
    if (swa__tree_hash(s->parents, s->end - s->begun) != s->tree)
        return swa__no(SWA_ERR_ORDER, "parents: changed since begin");
    for (i = 0; i < n; i++)
        if (path[i] < 0 || path[i] >= s->end - s->begun
            || s->parents[path[i]] != (i > 0 ? path[i - 1] : -1))
            return swa__no(SWA_ERR_ARG, "path: it does not begin at a root (parent -1), or a node "
                                        "is not the child of the one before");
    return swa__yes();
}

SWA__COLD SWA_API const char *swa_cache_commit_explain(const swa_cache *cache, int seq,
                                                       const int32_t *path, int32_t n) {
    return swa__commit_check(swa__check_seq(cache, seq), seq, path, n).why;
}

/* Rows move towards the front, first things first: none is overwritten before it has moved. For a
   path ascends, so that its i-th node is row i or a later one, and the row that it overwrites is
   the path's own, moved already, or not of the path. */
SWA__COLD SWA_API swa_status swa_cache_commit(swa_cache *cache, int seq, const int32_t *path,
                                              int32_t n) {
    swa__cache *c = swa__check_seq(cache, seq);
    const swa_status status = swa__commit_check(c, seq, path, n).status;
    swa__operand x[SWA__OPERANDS];
    swa__seq *s;
    int32_t i;
    int layer;

    if (status != SWA_OK) return status;

    s = swa__seq_of(c, seq);
    swa__changing(c, seq);
    for (layer = 0; layer < c->d.n_layers; layer++) {
        const swa__layer *l = swa__layer_of(c, layer);
        swa__ring_operands(c, layer, seq, x);
        for (i = 0; i < n && l->ring == layer; i++)
            if (path[i] != i)
                swa__rows_copy(l->shape.n_kv_heads, x, swa__slot(l, s, s->begun + i), x,
                               swa__slot(l, s, s->begun + path[i]), 1);
    }
    /* forget has nothing to do where all of the tree stays: then this alone makes it positions */
    s->parents = NULL;
    swa__forget(c, seq, s->begun + n);
    swa__audit(c, seq, INT64_MAX);
    return SWA_OK;
}

/* Looks at all prompts once, so that next has nothing to refuse. */
SWA__COLD SWA_API swa_status swa_prefill_begin(swa_plan *plan, const int *seqs,
                                               const int64_t *start, const int32_t *lens,
                                               int n_seqs, int32_t chunk) {
    int i;

    if (plan == NULL || lens == NULL || n_seqs <= 0 || chunk <= 0) return SWA_ERR_ARG;
    for (i = 0; i < n_seqs; i++) {
        if (lens[i] < 0 || (seqs != NULL && seqs[i] < 0) || (start != NULL && start[i] < 0))
            return SWA_ERR_ARG;
        if (start != NULL && start[i] > INT64_MAX - 1 - lens[i]) return SWA_ERR_OVERFLOW;
    }
    plan->seqs = seqs;
    plan->start = start;
    plan->lens = lens;
    plan->n_seqs = n_seqs;
    plan->chunk = chunk;
    plan->done = 0;
    return SWA_OK;
}

/* All prompts advance together, a chunk at a time: one number says how far, and a prompt that is
   shorter has dropped out. */
SWA__COLD SWA_API int swa_prefill_next(swa_plan *plan, swa_run *runs, int *n_runs) {
    int i, n = 0;

    if (n_runs != NULL) *n_runs = 0;
    if (plan == NULL || runs == NULL || n_runs == NULL || plan->lens == NULL || plan->chunk <= 0)
        return 0;

    for (i = 0; i < plan->n_seqs; i++) {
        if (plan->lens[i] <= plan->done) continue;
        memset(&runs[n], 0, sizeof runs[n]);
        runs[n].seq = plan->seqs != NULL ? plan->seqs[i] : i;
        runs[n].n = swa__min(plan->lens[i] - plan->done, plan->chunk);
        runs[n].pos = (plan->start != NULL ? plan->start[i] : 0) + plan->done;
        n++;
    }
    plan->done = plan->done > INT32_MAX - plan->chunk ? INT32_MAX : plan->done + plan->chunk;
    *n_runs = n;
    return n > 0;
}

#if SWA__LIGHT
#  pragma GCC pop_options
#endif

/* ==== [SECTION 9] KERNEL INTERFACE ===============================================================
   What [SECTION 12] hands to a kernel, and what comes back. A kernel knows of no ring, run or
   window. It is given
     block  256 positions from a multiple of 256 on, as tiles of 16 keys: where K, tail and V of
            each lie, in which type, and what is to be fetched meanwhile
     sight  what its rows may see of these keys, which are counted from the block's start
     q      packed: steps of 4, 2 or 1 rows, [dk+dt][R], or a panel, [dk+dt][nr]
   and gives of each row o, the sum of p.v, m, the maximum of its scores, and l, the sum of p. Two
   shapes of kernel do the same arithmetic:
            rows           lanes of q.k  lanes of p.v  K and V                      o, m, l
     few    1 to 15        keys          dims          as stored, as a rule         of the block
     many   panels of nr   rows          rows          f32, or bf16 as multiplied   folded
   Few rows wait for memory, so their numbers are widened on the way into the registers; many rows
   use each number so often that the stage had better widen it once. Of staged types it does so for
   both: a loop for each of them in each kernel would be dear, and few hosts need one.

   The sight of three tokens through a sliding window:

       key         0     lo        full_lo            full_hi   hi        256
       token t           |############################|
       token t+1              |############################|
       token t+2                   |############################|

   Which row sees a key is asked before full_lo and from full_hi on alone. Pinned sinks are a
   second interval, number 0; scores are computed per interval, p.v takes no key twice.

   The kernels of [SECTION 10] are written once in the operations below (SWV_ left out), and
   included once per instruction set. To add one: fill in this list.
     ISA, TARGET, LEAVE     its name; what functions are compiled for, and do before they return
     SWV, N                 a vector, and how many floats it holds
     SET1, LOAD, STORE,     of floats; FMA(a, b, c) is a * b + c, rounded once; RINT goes to nearest
     FMA, MAX, MIN,         even. LOAD_ and STORE_ F16, BF16, Q8: N numbers of that type, to or
     RINT, FLOOR, ABS       from floats. TO_BF16: a float rounded to what bf16 holds
     ADD, SUB, MUL, DIV     C's operators, unless the compiler has none for vectors
     KEYS by VECTORS        sums in registers, many rows: keys, and vectors of rows; a panel has
                            nr = VECTORS*N rows. HALF_PANEL: panels of so many vectors, which are
                            16 rows, with HALF_KEYS, and HALF_DIMS of a list's p.v
     DIMS by VECTORS        the same of a list's p.v, which holds them twice
     FEW(r), FEW_KEYS(r)    few rows: vectors of dims in p.v, of keys in q.k. Where it gains
                            something, FEW_F32 and INDEX: of keys of four rows in f32 (narrow
                            too where swa__key_streams is 2), of INDEX_ROWS of an index and in
                            narrow types; EIGHT: of dims of eight rows; FEW_MORE(r): of dims of r
                            rows, where they fill so many; LONE(r, nw): a kernel for one tile
     TWICE                  two steps of p.v in a turn of many rows' loop, see mk
     CONSTRAINT(x)          x in a register, read and written, in the words of an asm statement
     PICK(x, lo, hi, a, b)  a where lo <= x < hi, else b
     SCALE(p, n)            p * 2^n for integral n
     TRANSPOSE(x)           an array of N vectors
     ZIP(a, b, high)        a's and b's lower (higher) halves by turns; where N is 4 or less it is
                            left out, since compilers do as well
     AT(v, i)               number i of v in all lanes, where an FMA takes that at no cost:
                            numbers that lie in a row are then loaded by the vector
     ROW(type, p, x)        16 numbers in q8 or bf16, where that costs less than one by one
     HALVES(p, n)           bytes c at p as numbers in f16: c's sign, and its other bits << n
     PAIR, LOAD_PAIR        two rows' bf16 as one; FMA2, FMA2_AT: products of such pairs; DOTS:
                            of integers; STORE_UPPER: upper halves, 16 bits each
     SWAP(x)                lanes 0 and 1, 2 and 3, ... in each other's place
     RAISED(x, lo, p)       the number whose bf16 is the lower half of p's bits where x >= lo,
                            else 0
     ROUNDS                 sums in registers where few rows round K and V, see swa__rounds; ROUND8
                            and ROUND8_FROM do so, NOT_FINITE finds what they cannot
     STREAMS(r), LOADED(x)  whether r rows may read as swa__likes_streams says; x is loaded here
   What the template's first lines define has a default. */

enum { SWA__GEMM_SUM = 2048,             /* inputs of a matrix product that are summed alone, and */
       SWA__GEMM_CHAIN = 512,            /* of one chain: constants of the bits promise, see
                                            [SECTION 10]                                          */
       SWA__GEMM_TOKENS = 64,            /* tokens that share a pass over the weights             */
       SWA__GEMM_LONG = 16384,           /* bytes of a row of weights: longer ones go in several
                                            streams                                               */
       SWA__GEMM_AHEAD = 8192,           /* bytes that a single stream of weights is fetched
                                            ahead, and ...                                        */
       SWA__GEMM_NEAR = 1536,            /* ... each of several                                   */
       SWA__SPLIT_BYTES = 1 << 26,       /* most that a stateless call keeps of keys split over
                                            parts                                                 */
       SWA__FEW = 16,                    /* fewer rows than this take the few-rows shape          */
       SWA__TOGETHER = 256,              /* numbers of a K row and its tail of the KV heads that
                                            share a unit: a tile of each is 16 KB of L1          */
       SWA__STRANDS = 16,                /* KV heads of a woven unit, ...                         */
       SWA__WOVEN = 64,                  /* ... and their rows, at most                           */
       SWA__PANEL = 32,                  /* rows of the widest panel                              */
       SWA__HALF = 16,                   /* of a half one, in any instance                        */
       SWA__INDEX_KEYS = 48,             /* keys of an index that stay in L1 while the rows come
                                            by, at most                                           */
       SWA__LISTED = SWA__NODES,         /* numbers of a list that are sorted at a time: bits     */
       SWA__LIST_BLOCKS = 32,            /* blocks whose listed keys are gathered together: more,
                                            and the keys, those fetched meanwhile, q and o of 128
                                            heads are more than 1 MB of L2                        */
       SWA__SMALL_DIMS = 128 };          /* numbers of a K and a V row together, below which a
                                            head is small                                         */
#define SWA__UNSCALED (-1.0f)            /* in place of a tail's scale: this key's storage has
                                            none                                                  */
#define SWA__NONE   (-FLT_MAX)           /* score of a hidden key, maximum of an empty row        */
#define SWA__LOG2E  1.44269504088896341
#define SWA__LN2    0.69314718055994531

typedef struct {                         /* 16 keys, positions 16i..16i+15, in canonical form     */
    const void  *k, *tail, *v;           /* k [dk][16], tail [dt][16], v [16][dvp]                */
    const float *k_scale, *tail_scale, *v_scale;   /* [16] or NULL                                */
    const char  *next, *next_tail; /* K and tail of the tile that will be read a block later, for
                                      prefetch; NULL if unknown                                   */
    int64_t      next_gap;         /* bytes between its rows, if they are the caller's; else 0    */
    int64_t      v_token;          /* stride of V's rows; dvp, but for the caller's own rows      */
    int k_type, tail_type, v_type;
    int turned;                          /* of SWA__SINGLES: neighbouring keys of K and the tail
                                            have changed places                                   */
} swa__tile;
enum { SWA__STRETCHES = 16 };
/* Memory to fetch: so many lines, so many bytes from one to the next. */
typedef struct { const char *p; int lines, apart; } swa__stretch;
/* Where an index adds up `rows` rows of one list: their weights, what products below count as, and
   the list's sums. sum NULL: scores go to memory first. rows 0: as other q.k goes. */
typedef struct { int rows; float least; const float *w; float *sum; } swa__added;

/* Keys of a list, gathered in order of position: those that it names of some blocks of 256
   positions, each of which is reduced alone. */
typedef struct {
    /* of the panel, and first, so that no vector lies across two lines: what o, and a block's own,
       are multiplied by; the sums of p, see below */
    float   fold[SWA__LIST_BLOCKS][2][SWA__PANEL], sum[SWA_BLOCK][SWA__PANEL];
    int     n, blocks, sinks;            /* keys, whole tiles; blocks that they come from; the
                                            first `sinks` take the sinks' q                       */
    int     keys;                        /* those that there are: behind the last one nothing is
                                            computed                                              */
    int     start[SWA__LIST_BLOCKS + 1]; /* block i: keys [start[i], start[i+1])                  */
    int16_t place[SWA_BLOCK];            /* position mod 256; -1: no key, it fills a tile up      */
    int64_t column[SWA_BLOCK];           /* of the bias                                           */
    float   distance[SWA_BLOCK];         /* query minus key                                       */
    int     same[SWA__LIST_BLOCKS];      /* o by 1, in all rows                                   */
    /* of a key: its block, and which sum it goes to: of all blocks' by key mod 16 those that have
       one */
    unsigned char block[SWA_BLOCK], to[SWA_BLOCK];
    /* the trees over them: so many times sum[0] += sum[1], and which then holds all of a block */
    int     sums, adds;
    unsigned char add[SWA_BLOCK][2], last[SWA__LIST_BLOCKS];
    const float *v[SWA_BLOCK];           /* of each key; dims v_across apart                      */
    int     ahead, n_ahead;              /* rows of the keys that follow, fetched on the way from
                                            number `ahead` on: ...                                */
    int     per_key, per_step;           /* ... so many lines a key of q.k, at most dk/16, or a
                                            step of p.v                                           */
    swa__stretch next[2 * SWA_BLOCK];
    int     tree;                        /* 1: one block of a tree's keys, which no two rows need
                                            see alike. History, then from key number `nodes` on   */
    int     nodes, n_nodes;
    int32_t from, until;                 /* tokens that it was gathered for                       */
    int32_t node[SWA_BLOCK];             /* of a node's key: its number in the tree, ascending    */
    float   in[SWA_BLOCK], out[SWA_BLOCK];   /* of a key: rows see it whose sight.node is in [in,
                                                out): nodes are counted branch by branch, so that
                                                what lies below one follows it                    */
} swa__list;

#if SWA__BF16
/* out [rows][nr] = the sum over the numbers [from, to) of a times b in the order of SWA_BF16_TILE,
   or (more) that is added. a: of rows `along` apart from number to number (tiles: from 32 to 32), b
   [][nr]: both in the form and of number `from`, a multiple of 16 (tiles: of 32). rows: a multiple
   of SWV_KEYS; of tiles 16 or 32, the second 16 `apart` floats behind the first. */
typedef struct { const float *a, *b; size_t along, apart; int form, nr, from, to; } swa__summed;
typedef void swa__sums(const swa__summed *x, int rows, int more, float *out);
#endif

typedef struct {                         /* what all rows of a call share                         */
    int   dk, dt, dv, dvp, v_in_k;       /* numbers per K row, tail, V row; V's stride            */
    float softcap_log2;                  /* softcap * log2 e, 0 = off                             */
    int   alibi, bias, by_distance;      /* 1: the call has slopes; a bias; one by distance       */
    int64_t bias_first, bias_n;          /* its columns, as in swa_attn                           */
    int   v_across, v_along; /* many rows: V's strides from dim to dim and from key to key        */
    int   form;              /* of the products, below                                            */
    int   rounds;            /* few rows: of SINGLES or TILE_SINGLES, on numbers as they lie      */
    int   fours;             /* few rows: multiplied by fours, see swa__by_fours                  */
    int   dots;              /* q and K in q8: integer dot products                               */
    int   streams, near;     /* see swa__key_streams (few rows), swa__fetches_near                */
    int   long_lists;        /* see swa__list_long                                                */
#if SWA__BF16
    swa__sums *sums;                     /* of SWA_BF16_TILE                                      */
#endif
} swa__geo;
/* Made anew for each block: tiles and shift by the stage, what they fetch by swa__look_ahead. Of
   the tiles those that hold a key of the sight are defined, the others are not. */
typedef struct {
    const swa__geo *g;
    int64_t      pos;        /* of key 0, a multiple of SWA_BLOCK                                 */
    int64_t      next_pos;   /* of the unit's next block; -1 = none, or nobody wants to know      */
    swa__list   *list;       /* NULL; or the block is no block: its keys are those of a list      */
    const float *present;    /* [256] 1 or 0: keys that exist, or NULL = all of the interval      */
    int          l1, t0, t1; /* prefetch into L1; tiles [t0, t1) say what                         */
    int          stream;     /* few rows: K and V come by loads alone, see swa__likes_streams     */
    swa__stretch soon;       /* of an index: so many at a time come with four dims of its rows    */
    swa__added   added;      /* of an index, for the rows at hand                                 */
    int          shift;      /* few rows, ring off the grid: K and tail of tile i hold the keys
                                from 16*i - shift on, so there is one more of them                */
    int          again;      /* few rows: so many keys ahead V is asked for again, see
                                swa__fetches_twice                                                */
    swa__tile    tile[SWA_BLOCK / SWA__TILE + 1];
    int          heads, apart, skip;     /* few rows: of so many KV heads, the tiles of each `apart`
                                            behind those of the one before; those staged now
                                            begin at tile `skip`                                  */
    int          steps;      /* few rows: what is done with it now; all, but for woven units      */
} swa__block;
/* Few rows: q.k, then p, its sum and the maximum, then p.v. p.v alone goes on from what o has. */
enum { SWA__STEP_QK = 1, SWA__STEP_P = 2, SWA__STEP_PV = 4, SWA__STEPS = 7 };

/* Products in bf16 come in two orders, each as an instruction has it, and each in f32 on rounded
   numbers where no such instruction runs. The same bits, because numbers so small that a product or
   a sum could be subnormal (instructions drop those) count as zero: what is left are multiples of
   2^-126.
   SWA_BF16: one chain of pairs, fma(x0, y0, fma(x1, y1, acc)). SINGLES: in f32, neighbours have
   changed places. SWA_BF16_TILE: bundles of 32 by their index (dims of K, of the tail; positions
   of V); in a bundle two chains from zero, of the even and of the odd numbers; their sum is added
   to what those before gave. TILE_SINGLES: in f32. TILE_PAIRS: by the instruction for pairs, on
   pairs of one chain: of four numbers the first and third, the second and fourth. TILE_AMX: by
   tiles, a row of which is 32 numbers of K or of a dim of V: K [dk/32][16 keys][32], V [dvp][32
   keys], q and p as for PAIRS. So scores and o come out as panels have them. */
enum {
    SWA__PLAIN,
    SWA__SINGLES,
    SWA__PAIRS,
    SWA__TILE_SINGLES,
    SWA__FORMS,                          /* in swa__kernels.many; the rest take TILE_SINGLES'     */
    SWA__TILE_PAIRS = SWA__FORMS,
    SWA__TILE_AMX,
    SWA__SUMMED = 32                     /* numbers of a bundle                                   */
};
/* 2^-56, 2^-82 and 2^-112. A number in bf16 has 8 bits, so q and K from 2^-56 on are multiples of
   2^-63, and their products of 2^-126; p from 2^-30 on and V from 2^-82 on likewise. V in q8 is an
   integer in SWA_BF16, and p has its scale; in SWA_BF16_TILE V is times its scale, as all else. */
#define SWA__TINY_QK 1.3877788e-17f
#define SWA__TINY_V  2.0679515e-25f
#define SWA__TINY_PV 1.9259299e-34f /* p times V's q8 scale; p itself counts from 2^-30 on */

/* Filled in by swa__sight_make, of a list by swa__sight_listed, of a tree by swa__sight_tree: once
   per block for few rows, for many once per panel. Arrays are by row. */
typedef struct swa__sight { /* what a row may see of a block, keys counted from the block's start */
    int   lo[2], hi[2];     /* keys that any row sees: [0] as sinks, [1] through the window       */
    int   full_lo, full_hi; /* keys that every row sees through the window                        */
    int   first_block;      /* of this panel: nothing to fold into yet                            */
    int   fetch;            /* many rows: fetch the next block's, or the list's next K on the way */
    int   nr;               /* rows of the panel                                                  */
    int   most;             /* lines of a stretch in row, at most                                 */
    int   rows, per;        /* many rows: fetched in q.k, `per` with a group of keys: out that
                               this panel writes next and q of the next panel. A line comes
                               several times if they are less than 64 bytes apart: that keeps
                               the pace                                                           */
    /* a row of each, and room for q in eight; swa__sight_pace fills up: twice as many */
    swa__stretch row[2 * (2 * SWA__PANEL + 8)];
    /* Products that come out of line, so that what others have in registers stays there: as sinks
       (w 0) or through the window (1), scores of the keys [k, end), but those of k's bundle at
       most, with all scales, before all else that is done to scores, into s [32][nr]; k and end
       multiples of what the kernel takes at once. NULL = none */
    void (*scores)(const swa__block *b, const struct swa__sight *n, int w, int k, int end,
                   const float *q, float *s);
    /* window [first, last), sinks [0, sink) */
    float first[SWA__PANEL], last[SWA__PANEL], sink[SWA__PANEL];
    int   mods; /* scores of this block are capped, or have ALiBi or a bias                       */
    float q[SWA__PANEL], slope[SWA__PANEL]; /* if so: position, and for ALiBi -slope * log2 e     */
    const float *bias[SWA__PANEL];
    const float *q_scale[2];             /* q in q8: its scale per row, [0] of the sinks' own q;
                                            NULL = none                                           */
    float node[SWA__PANEL];              /* of a tree: the row's last node, counted as in
                                            swa__list; -1 = sees none                             */
} swa__sight;

#if SWA__INDEX
typedef struct { /* rows whose q.k is summed: `per` after another to a list                       */
    int    rows, per, bytes;             /* of a key, where they are in a ring                     */
    float  least;       /* products below count as that                                           */
    const float *q, *w; /* q as the few-rows shape has it, SWA__FEW rows each stride; [rows]      */
    size_t q_stride;
    float *s, *sum;                      /* 8192 floats; [rows/per][256], added to                */
    float *wide; /* [INDEX_KEYS][dk]: narrow K is brought here by `widen`, the instance's, and stays
                    in L1 for all rows                                                            */
    void (*widen)(int type, const void *src, float *dst, size_t n);
} swa__scores;
#endif

/* What rows have come to: o, the sum of p.v; m, their maximum; l, the sum of p. */
typedef struct { float *o, *m, *l; } swa__total;
/* p.v: the p of a block's keys as they lie in s, and where it goes; more: added to what o holds.
   Few rows: the keys [from, run) are a run, see swa__run_end; from -1: none is known. any: V holds
   numbers of any size, see swa__round8_avx512. */
typedef struct { const float *p; float *o; int more, from, run, any; } swa__pv;

#if SWA__AMX
/* A panel of Intel's tiles between its scores and its results. */
typedef struct {
    swa__total to;
    float *s;                            /* [256][32] scores; then p, in the first half           */
    float  top[SWA__PANEL];              /* their maxima                                          */
    int    from, end, more;              /* keys, by bundles of 32; 1: `to` holds blocks already  */
    int    r, n, place, ends;            /* its first row in the unit, how many (0: none waits),
                                            where they stand in the scratch, and whether this is
                                            the last block that they see                          */
} swa__waiting;
#endif

/* One block, one panel, folded into o [dvp][nr], m, l [nr]. q [dk+dt][nr], [0] as the sinks see it,
   [1] as the window's keys do. s: [256][nr]. */
typedef void swa__many(const swa__block *b, const swa__sight *n, const float *const q[2], float *s,
                       const swa__total *to);

#if SWA__BF16
/* Rows of ld numbers of a type, F32 or BF16; those whose bit of keep (by row mod 16) is not set,
   those of keys whose bit of seen is not set, by place mod 16, and numbers below tiny are 0. turn:
   neighbours in a row change places as well. */
typedef struct {
    int type, rows, ld, turn;
    unsigned keep, seen;
    float tiny;
} swa__formed;
/* K or a tail of 16 keys, all of them. */
static swa__formed swa__formed_as(int type, int rows) {
    swa__formed x;

    x.type = type;
    x.rows = rows;
    x.ld = SWA__TILE;
    x.turn = 0;
    x.keep = x.seen = 0xffff;
    x.tiny = SWA__TINY_QK;
    return x;
}
#endif

/* What sections 12 to 14 call of an instance. */
typedef struct {
    int nr;                              /* rows of a panel                                       */
    /* One block, few rows -> o [rows][dvp], m, l [rows], of this block alone. q in steps of R =
       swa__few_step(rows left) rows, transposed: [dk+dt][R]; for SWA__PAIRS half a panel, for
       geo.rounds in fours, and o of either in whole fours of rows. s: 8192 floats. */
    void (*few)(const swa__block *b, const swa__sight *n, int rows, const float *const q[2],
                float *s, const swa__total *to);
    swa__many *many[SWA__FORMS][2];      /* by form; [1]: for panels of 16 rows. NULL = there is
                                            none                                                  */
    /* o [rows][dvp], m, l [rows] of one more block into to; of a panel one without values, a sink
       logit. */
    void (*fold)(int rows, int dvp, const swa__total *to, const float *o, const float *m,
                 const float *l);
    void (*fold_panel)(int nr, int dv, const swa__total *to, const float *m, const float *l);
    /* o [rows][dvp] -> out[i][dv] = o/l. */
    void (*finish)(int rows, int dvp, int dv, const float *o, const float *l, float *const *out);
    /* The same from a panel: o [dvp][nr], l [nr]. */
    void (*unpack)(int nr, int rows, int dv, const float *o, const float *l, float *const *out);
    /* dst[d*nr + i] = src[i][d] * mul, transposed; nr: a panel's rows, or 16. */
    void (*pack)(const void *const *src, int type, int nr, int dim, float mul, float *dst);
    /* The same of R = 4, 2 or 1 rows of f32, by whole vectors of dims; returns the first dim that
       is left. NULL = there is none */
    int (*step)(int R, const void *const *src, int dims, float mul, float *to);
    void (*widen)(int type, const void *src, float *dst, size_t n); /* n a multiple of 16         */
    /* exact values; n a multiple of 16 */
    void (*narrow)(int type, const float *src, void *dst, size_t n);
    /* widen of the staged types. SWA_Q8_32: the first `per` numbers times the scale there, the next
       times that `next` floats on, ...; per 32, or 512: then a scale is 16, of the keys of a tile */
    void (*staged)(int type, const void *src, float *dst, size_t n, const float *scale,
                   int64_t next, size_t per);
    /* dst[0..n) = src as the type will hold it (q8: integers, and the scale), zeros up to a
       multiple of 16. */
    void (*round)(int type, const void *src, int src_type, int n, float *dst, float *scale);
#if SWA__BF16
    swa__sums *sums;
    /* src [rows][ld] in the given form, chains running over the rows: rounded to bf16, below tiny
       0, rows whose bit of keep (by row mod 16) is not set 0. Pairs take swa__stored(form, rows)
       rows. dst may be src. */
    void (*to_form)(int form, int rows, unsigned keep, int ld, float tiny, const float *src,
                    float *dst);
    /* The same in the form SWA__SINGLES; dst may be src where that is f32 and nothing is turned.
       Returns 1 if a number that was read was below tiny, kept or not. */
    int (*singles)(const swa__formed *x, const void *src, float *dst);
#endif
    /* src [dims][16] as 16 rows, `stride` apart; dims a multiple of 16. */
    void (*to_rows)(int dims, const float *src, float *dst, size_t stride);
#if SWA__DOTS
    /* See swa__has_dots; NULL = there are none. Integers as the products take them: src, K of 16
       keys [dims][16] in q8 (ld = 16) or integers [dims][ld] in f32, as [dims/4][ld] times four
       bytes, each xor flip; where the instruction wants it, then (of q) -128 times the sum of each
       column. dst may be src; dims > 3 */
    void (*to_dots)(int type, int dims, int ld, int flip, const void *src, float *dst);
    /* see swa__sight.scores */
    void (*many_dots)(const swa__block *b, const swa__sight *n, int w, int k, int end,
                      const float *q, float *s);
#endif
#if SWA__INDEX
    void (*index)(swa__block *b, const swa__sight *n, const swa__scores *x);
#endif
#if SWA__MLA
    void (*product)(const swa_gemm *p, float *pack); /* pack: [SWA__GEMM_TOKENS][SWA__GEMM_SUM]   */
    void (*expand)(int dims, int n, const float *w, const float *const *latent, float *const *dst);
#endif
} swa__kernels;

/* Columns of the bias in a block: that of key 0 (by position), how many there are, and the step
   from key to key. By distance, key 0's is the row's own position from there, a float, which is
   exact up to 2^24; beyond, none has any. */
typedef struct { int64_t first, n; int step; } swa__biases;
static swa__biases swa__bias_of(const swa__block *b) {
    swa__biases c;

    c.first = b->pos - b->g->bias_first;
    c.n = b->g->bias_n;
    c.step = b->g->by_distance ? -1 : 1;
    return c;
}

/* What a switch leaves out is a constant here, and what hangs on it is gone. */
SWA__INLINE int swa__has_mods(const swa__sight *n) { return SWA__MODS && n->mods; }
SWA__INLINE int swa__form_of(const swa__geo *g) { return SWA__BF16 ? g->form : SWA__PLAIN; }
SWA__INLINE int swa__tail_dims(const swa__geo *g) { return SWA__LATENTS ? g->dt : 0; }
SWA__INLINE int swa__v_across(const swa__geo *g) { return SWA__LATENTS ? g->v_across : 1; }
/* Whether the dims of V that is part of K have changed places, each with its neighbour. */
SWA__INLINE int swa__v_turned(const swa__geo *g) {
    return SWA__BF16 && swa__v_across(g) > 1 && swa__form_of(g) == SWA__SINGLES;
}

/* The tile of key k >= 0 (unsigned: a quotient of ints takes four instructions more). */
SWA__INLINE const swa__tile *swa__tile_of(const swa__block *b, int k) {
    return &b->tile[(unsigned)k / SWA__TILE];
}

/* The list that a block's keys are of; NULL: it is a block. */
static swa__list *swa__list_of(const swa__block *b) { return SWA__LISTS ? b->list : NULL; }
static const swa__list *swa__tree_of(const swa__block *b) {
    return swa__list_of(b) != NULL && b->list->tree ? b->list : NULL;
}

/* What p.v fetches at each step of the rows that a list's next keys take. */
SWA__NOINLINE void swa__list_fetch(swa__list *x) {
    int i;
    for (i = 0; i < x->per_step && x->ahead < x->n_ahead; i++) {
        swa__stretch *next = &x->next[x->ahead];
        SWA__PREFETCH(next->p);
        next->p += 64;
        next->lines--;
        x->ahead += next->lines <= 0;
    }
}

#if SWA__LISTS
/* Whether a list's blocks have so many keys that each goes through p.v as an ordinary block does:
   where swa__fetches_near is not 0, and with AVX2, of which Zen 3 takes 0.93 of the time of 16
   blocks of 128. */
static int swa__list_long(const swa__block *b) {
    return b->g->long_lists && b->list->n >= 32 * b->list->blocks;
}
#endif

/* What is fetched in `steps` steps of q.k of the mr keys from k on, a line each, and nothing (NULL)
   in the last ones: of the tile at next, by its first keys all of it or (pairs, where a step covers
   two dims) by each its share; or of the rows that a list's next keys take. Returns how many
   stretches that is. */
SWA__NOINLINE int swa__stretches(const swa__block *b, int pairs, int k, int mr, int steps,
                                 swa__stretch *to) {
    const char *next = swa__tile_of(b, k)->next;
    swa__list *x = swa__list_of(b);
    int n = 0, left;

    /* the ring's next K: one stretch, a line per step */
    if (next != NULL && (k % SWA__TILE == 0 || pairs)) {
        to->p = next + k % SWA__TILE / mr * steps * 64;
        to->lines = steps;
        to->apart = 64;
        return 1;
    }

    /* a list's rows: what is left of one, then the next; no more stretches than `to` has room for,
       the last of which is for nothing */
    left = x != NULL ? x->per_key * mr : 0;
    for (; left > 0 && x->ahead < x->n_ahead && n < SWA__STRETCHES - 1; n++, to++) {
        swa__stretch *row = &x->next[x->ahead];
        int lines = left;
        if (row->lines <= left) {
            lines = row->lines;
            x->ahead++;
        }
        to->p = row->p;
        to->lines = lines;
        to->apart = 64;
        row->p += 64 * lines;
        row->lines -= lines;
        left -= lines;
        steps -= lines;
    }

    /* always there, so that the lines add up to all steps */
    to->p = NULL;
    to->lines = steps;
    return n + 1;
}

/* What of sight.row comes with the mr keys from k on; NULL: nothing. */
SWA__INLINE const swa__stretch *swa__rows_meanwhile(const swa__sight *n, int k, int mr) {
    const unsigned group = (unsigned)(k - n->lo[1] + mr - 1) / (unsigned)mr,
                   row = group * (unsigned)n->per;
    return row < (unsigned)n->rows ? n->row + row : NULL;
}

/* They are fetched, where q.k does not do so on its way. */
SWA__NOINLINE void swa__rows_fetch(const swa__sight *n, int k, int mr) {
    const swa__stretch *rows = swa__rows_meanwhile(n, k, mr);
    int i, at;

    SWA__STAYS();
    /* the last group's may be fewer */
    for (i = 0; rows != NULL && i < n->per && rows[i].p != NULL; i++)
        SWA__ROLLED for (at = 0; at < rows[i].lines * rows[i].apart; at += 64)
            SWA__PREFETCH(rows[i].p + at);
}

/* The stretches of those keys: of what is read next, if this panel fetches that; or of sight.row;
   or (in `own`) one of nothing. */
SWA__INLINE const swa__stretch *swa__many_ahead(const swa__block *b, const swa__sight *n, int pairs,
                                                int k, int mr, swa__stretch *own, int *stretches) {
    const swa__stretch *rows = swa__rows_meanwhile(n, k, mr);

    own->p = NULL;
    own->lines = pairs ? (b->g->dk + 1) / 2 : b->g->dk;
    *stretches = 1;
    if (n->fetch) *stretches = swa__stretches(b, pairs, k, mr, own->lines, own);
    if (own->p != NULL || rows == NULL) return own;
    *stretches = n->per;
    return rows;
}

/* A pointer, or an offset, of which gcc shall know nothing: else it would find what the addresses
   of several branches, rows or lines have in common before them, and keep that in vector registers
   that the kernel needs. */
#if defined(__GNUC__) || defined(__clang__)
#  define SWA__APART(p) __asm__("" : "+r"(p))
#else
#  define SWA__APART(p) ((void)(p))
#endif

/* Asks for n lines. gcc, which knows n, would unroll it in each kernel. */
SWA__INLINE void swa__fetch_lines(const float *p, int n) {
    const float *end = p + (size_t)n * 16;
    SWA__APART(end);
    for (; p != end; p += 16) SWA__PREFETCH(p);
}

/* A row's position in a sight as an integer, held within 2^24: beyond, no bias has a column. */
static int64_t swa__distance(float q) {
    const int32_t far = 1 << 24;
    return q >= (float)far ? far : q <= (float)-far ? -far : (int32_t)q;
}

/* The keys that p.v walks: both intervals, none twice, in grains of 1, 16 or 32 (a power of two).
   The first is at range[0], the last before range[3]. Where the second interval continues the first
   in such grains, it is one: a bundle of keys in bf16 is not torn. */
static void swa__ranges(const swa__sight *n, int grain, int range[4]) {
    int w;

    for (w = 0; w < 2; w++) {            /* nothing stays nothing */
        range[2 * w] = n->lo[w] & -grain;
        range[2 * w + 1] = n->lo[w] < n->hi[w] ? (n->hi[w] + grain - 1) & -grain : range[2 * w];
    }

    /* an empty one moves to where the other begins, so that range[0] is the first key of all */
    if (range[0] == range[1]) range[0] = range[1] = range[2];
    /* keys of both are the first one's */
    if (range[2] < range[1]) range[2] = range[1];
    if (range[3] < range[2]) range[3] = range[2];
    if (grain > 1 && range[1] == range[2]) range[1] = range[2] = range[0];
}

/* Keys [a, b) of a tile, b <= 16. */
static unsigned swa__key_bits(int a, int b) { return (1u << b) - (1u << a); }

/* The keys of tile t that range asks for, as bits. */
static unsigned swa__tile_seen(const int range[4], int t) {
    unsigned seen = 0;
    int r;

    for (r = 0; r < 4; r += 2) {
        const int lo = range[r] - t * SWA__TILE, hi = range[r + 1] - t * SWA__TILE;
        if (lo < hi && lo < SWA__TILE && hi > 0)
            seen |= swa__key_bits(lo > 0 ? lo : 0, hi < SWA__TILE ? hi : SWA__TILE);
    }
    return seen;
}

/* Keys that p.v takes at least: 1, or a tile of 16, or a bundle. */
static int swa__key_grain(int form) {
    return form == SWA__PLAIN ? 1 : SWA__AMX && form == SWA__TILE_AMX ? SWA__SUMMED : 16;
}

/* Rows that so many numbers fill in a form: pairs take two to a row, and those of one chain four to
   two rows; what is missing of a pair is 0. */
static int swa__stored(int form, int n) {
    if (form == SWA__TILE_PAIRS) return n / 4 * 2 + (n % 4 < 2 ? n % 4 : 2);
    return form == SWA__PAIRS || form == SWA__TILE_AMX ? (n + 1) / 2 : n;
}

/* Where the tile of key k ends, or at `end` if that comes first. */
static int swa__tile_end(int k, int end) {
    const int last = (k | (SWA__TILE - 1)) + 1;
    return last < end ? last : end;
}

/* V's scales of the keys of range, by key: NULL if there are none; a key without one among others
   gets 1, which changes no bit. */
static const float *swa__v_scales(const swa__block *b, const int range[4], float *scale) {
    int r, k, i, some = 0;

    for (r = 0; r < 4; r += 2)
        for (k = range[r]; k < range[r + 1]; k = swa__tile_end(k, range[r + 1])) {
            const float *v = swa__tile_of(b, k)->v_scale;
            SWA__ROLLED for (i = 0; v != NULL && some == 0 && i < SWA_BLOCK; i++) scale[i] = 1.0f;
            if (v == NULL) continue;
            memcpy(scale + k / SWA__TILE * SWA__TILE, v, SWA__TILE * sizeof *v);
            some = 1;
        }
    return some ? scale : NULL;
}

/* Spans of keys in which V follows a stride, for the many-rows shape. per: keys in a row of p
   [][nr]. */
typedef struct { const float *v, *p; size_t n; } swa__v_span;
static int swa__v_spans(const swa__block *b, const int range[4], int per, int nr, const float *p,
                        swa__v_span *span) {
    const swa__geo *g = b->g;
    int r, k, end, n = 0;

    for (r = 0; r < 4; r += 2)
        for (k = range[r]; k < range[r + 1]; k = end) {
            const float *v =
                (const float *)swa__tile_of(b, k)->v
                + (size_t)(k % SWA__TILE / per) * (size_t)g->v_along;
            end = swa__tile_end(k, range[r + 1]);
            /* As a rule tiles lie one behind the other, in the ring as in the stage, and one span
               holds all: its chain then is one call of the micro-kernel. */
            if (n > 0 && span[n - 1].p + span[n - 1].n * (size_t)nr == p + k / per * nr
                && span[n - 1].v + span[n - 1].n * (size_t)g->v_along == v) {
                span[n - 1].n += (size_t)((end - k) / per);
                continue;
            }
            span[n].v = v;
            span[n].p = p + k / per * nr;
            span[n++].n = (size_t)((end - k) / per);
        }
    return n;
}

#if SWA__BF16
/* See swa__sight.scores. */
static void swa__summed_scores(const swa__block *b, const swa__sight *n, int w, int k, int end,
                               const float *q, float *s) {
    const swa__geo *g = b->g;
    const int tiles = SWA__AMX && g->form == SWA__TILE_AMX, nr = n->nr;
    swa__summed x;
    int rows, at;

    (void)w;
    if (end > k - k % SWA__SUMMED + SWA__SUMMED) end = k - k % SWA__SUMMED + SWA__SUMMED;
    /* tiles hold 16 keys, computed whole */
    if (tiles) {
        k -= k % SWA__TILE;
        end = (end + SWA__TILE - 1) / SWA__TILE * SWA__TILE;
    }

    /* K of 16 keys: tiles are [dk/32][16 keys][32] in bf16, 256 floats from dims to dims; else
       [dk][16], a tile of keys at a time, since the next one lies elsewhere */
    x.along = tiles ? SWA__TILE * SWA__TILE : SWA__TILE;
    x.apart = (size_t)(SWA__TILE * (g->dk + g->dt));   /* as they were staged */
    x.form = g->form;
    x.nr = nr;
    x.from = 0;
    for (; k < end; k += rows) {
        rows = tiles || end - k < SWA__TILE - k % SWA__TILE ? end - k : SWA__TILE - k % SWA__TILE;
        at = k % SWA__TILE;
        x.a = (const float *)swa__tile_of(b, k)->k + at;
        x.b = q;
        x.to = g->dk;
        g->sums(&x, rows, 0, s + k % SWA__SUMMED * nr);

        /* the tail's bundles count from its own first dim, and add to K's */
        if (g->dt == 0) continue;
        x.a = (const float *)swa__tile_of(b, k)->tail + at;
        x.b = q + swa__stored(g->form, g->dk) * nr;
        x.to = g->dt;
        g->sums(&x, rows, 1, s + k % SWA__SUMMED * nr);
    }
}

/* p.v of 32 dims from d on, or as many as there are: o [32][nr]. V's tiles were staged one behind
   the other. */
SWA__NOINLINE void swa__summed_values(const swa__geo *g, const swa__block *b, const int range[4],
                                      int d, int nr, const float *p, float *o) {
    const int tiles = SWA__AMX && g->form == SWA__TILE_AMX,
              rows = swa__min(g->dvp - d, SWA__SUMMED);
    swa__summed x;
    int r, more = 0;

    x.along = (size_t)g->dvp * (tiles ? SWA__TILE : 1);
    x.apart = SWA__TILE * SWA__TILE;
    x.form = g->form;
    x.nr = nr;
    /* no bundle lies in both ranges: swa__ranges has joined those */
    for (r = 0; r < 4; r += 2) {
        if (range[r] >= range[r + 1]) continue;
        x.a = (const float *)b->tile[range[r] / SWA__TILE].v + d * (tiles ? SWA__TILE : 1);
        x.b = p + swa__stored(g->form, range[r]) * nr;
        x.from = range[r];
        x.to = range[r + 1];
        g->sums(&x, rows, more, o);
        more = 1;
    }
}
#endif

/* The few-rows shape takes 4, 2 or 1 rows at once, a step; more of them pass over K and V again,
   which are not far then: see swa__few_piece. */
static int swa__few_step(int rows) { return rows >= 4 ? 4 : rows >= 2 && !SWA__SMALL ? 2 : 1; }
/* The last type over which one or two rows take 128 dims of V at once: to others fewer sums are as
   fast, or cost less code. */
#define SWA__WIDEST(R) ((R) == 1 ? SWA_BF16 : SWA_F16)
/* Whether V of all keys of range is of a type up to that one. */
SWA__INLINE int swa__wide_values(const swa__block *b, const int range[4], int type) {
    int r, k;

    for (r = 0; r < 4; r += 2)
        for (k = range[r]; k < range[r + 1]; k = swa__tile_end(k, range[r + 1]))
            if (swa__tile_of(b, k)->v_type > type) return 0;
    return 1;
}

#if SWA__AVX512 && !SWA__SMALL
/* Where registers are many, two steps of 4 share a pass: 8 rows at most, else 4. In f32, bound by
   memory, that saves up to 15 % of the time; of narrow types, whose numbers are widened half as
   often, nothing on Zen 4 and 19 % (f16) on Emerald Rapids; with AVX2 f16 lost 12 %. Pairs of
   narrow numbers and integers go by four. `dims`, which the kernel takes at once, must divide V's
   rows. K off the grid is multiplied step by step. */
SWA__INLINE int swa__few_most(const swa__block *b, const int range[4], int dims) {
    int r, k;

    if (swa__tail_dims(b->g) > 0 || b->g->dvp % dims != 0 || b->g->dots) return 4;
    for (r = 0; r < 4 && swa__form_of(b->g) == SWA__PAIRS; r += 2)
        for (k = range[r]; k < range[r + 1]; k = swa__tile_end(k, range[r + 1])) {
            const swa__tile *t = swa__tile_of(b, k);
            if ((t->k_type != SWA_F32 && b->shift == 0) || t->v_type != SWA_F32) return 4;
        }
    return 8;
}
#endif

/* Rows of the next pass, if `most` go at once. */
static int swa__few_pass(int rows, int most) { return rows >= most ? most : swa__few_step(rows); }

/* Keys of `dims` numbers that fill so many bytes: what several passes go over at once. All keys, if
   one pass is enough. The first pass fetches what comes next and the others find it fetched, so
   that memory waits for them: short pieces are better, and stay in a small first-level cache. They
   are of 16 KB, since one row takes up to 64 keys at once; V's with AVX2 of 8 (groups of 8 take
   0.97 on Granite Rapids). */
static int swa__few_piece(int one_pass, int bytes, int dims, int type) {
    int keys;
    if (one_pass) return SWA_BLOCK + SWA__TILE;
    keys = bytes / (dims * (int)swa__type_size(type)) / SWA__TILE * SWA__TILE;
    return keys < SWA__TILE ? SWA__TILE : keys;
}

/* A run: keys from k on, below `last`, whose V is one row after the other and of one type, while K
   that is fetched beside them lies together as well (as its first and last tile say: no more than a
   fetch goes astray). p.v goes through them by one loop, and works out once where all that is.
   Returns its end; the tile's if there is none. */
static int swa__run_end(const swa__block *b, int k, int last) {
    const swa__tile *t = swa__tile_of(b, k), *from = &b->tile[b->t0];
    const int type = t->v_type, tiles = b->t1 - b->t0;
    const int64_t row = t->v_token;
    const size_t v_tile = (size_t)row * SWA__TILE * swa__type_size(type),
                 k_tile = (size_t)b->g->dk * SWA__TILE * swa__type_size(type);

    k = swa__tile_end(k, last);
    last = swa__min(last, b->t1 * SWA__TILE);
    if (k >= last || t < from || from->next_gap != 0) return k;
    if ((uintptr_t)from[tiles - 1].next - (uintptr_t)from->next != (size_t)(tiles - 1) * k_tile)
        return k;
    for (; k < last; k = swa__tile_end(k, last), t++)
        if (t[1].v_type != type || t[1].v_token != row
            || (uintptr_t)t[1].v - (uintptr_t)t->v != v_tile) break;
    return k;
}

/* q in q8 stands behind q: for each step of R rows their sums [R], then [(dk+3)/4][R] times four
   int8. */
static int32_t *swa__few_integers(const swa__geo *g, const float *q, int row) {
    const int32_t *to = (const int32_t *)(const void *)(q + SWA__FEW * (g->dk + g->dt));
    return (int32_t *)(uintptr_t)(to + row * ((g->dk + 3) / 4 + 1));
}

/* the keys of a tile, counted down and up, for comparisons at an edge */
static const float swa__sides[2][16] = {
    { 0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -11, -12, -13, -14, -15 },
    { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }
};

/* q.k in q8 of few rows, by an instance that has integer products: the vectors of keys [v, end), of
   which a tile has `vectors`, tile by tile, which is one stream from memory. */
#define SWA__FEW_DOTS(isa, vectors) \
    void swa__few_dots_##isa(int rows, const swa__block *b, const int32_t *q, const int32_t *sum, \
                             float *s, int v, int end) { \
        for (; v < end; v += (vectors)) { \
            if (rows == 4) swa__dots_few_##isa(4, b, q, sum, s, v); \
            else if (rows == 2 && !SWA__SMALL) swa__dots_few_##isa(2, b, q, sum, s, v); \
            else swa__dots_few_##isa(1, b, q, sum, s, v); \
        } \
    }

#ifdef __clang__ /* which would load a whole unrolled loop's numbers first, and spill them        */
#  define SWA__IN_ORDER(x) __asm__ volatile("" : SWV_CONSTRAINT(x) : : "memory")
#else
#  define SWA__IN_ORDER(x) ((void)0)
#endif
/* Clang's intrinsics keep the host's -ffast-math, see SWA__FAST_MATH: a product that is taken from
   another of the same number would be left out with it, and the 0 that an FMA adds. */
#if SWA__FAST_MATH && defined(__clang__)
#  define SWA__HELD(x) __asm__("" : "+x"(x))
#  define SWA__HELD_LANES(x) __asm__("" : SWV_CONSTRAINT(x)) /* of any instance                     */
#else
#  define SWA__HELD(x) ((void)0)
#  define SWA__HELD_LANES(x) ((void)0)
#endif
#if defined(__GNUC__) || defined(__clang__) /* what is asked for behind x stays there             */
#  define SWA__BEHIND(x) __asm__ volatile("" : SWV_CONSTRAINT(x))
#else
#  define SWA__BEHIND(x) ((void)0)
#endif

#endif /* SWA_IMPLEMENTATION */
#endif /* SWA__KERNEL_PASS */

#ifdef SWA__KERNEL_PASS
#if SWA_VERSION != 900                   /* this file's                                           */
#  error "another swa.h was found than the one that includes it: define SWA_HEADER_FILENAME"
#endif
/* ==== [SECTION 10] KERNEL TEMPLATE ===============================================================
   Included once per instruction set by [SECTION 11], which lists the operations. Reads as plain C;
   SWV is a vector. Functions stand before those that call them, so a kernel is read from its end:

       few                   by KV head few_score_pieces; of two with a tile each few_two
                                 few_scores: by rows and kind of product
                                     few_keys4, ...: few_qk by width; few_fours, few_end
                                     pair_keys: pair_qk, pair_dims; the instance's DOTS
                             few_score_steps, few_shifted: the same off the grid
                             few_weights: few_mask, few_exp, row by row
                             few_value_pieces: by rows and kind of product
                                 few_values4, ...: few_dims by width; few_pv, few_rows
                                 pair_values: pair_rows; few_stream
       index                 index_scores: few_scores, few_shifted
       many_block            many_qk: many_chains, many_tail, or sight.scores; many_edge or
                                 many_modify
                             many_exp or many_exp_bf16; of a list instead list, list_half
                             many_maxima; many_pv, or summed_pv
       product               product_many: product_rows, dots; product_one: product_row;
                             product_columns
       fold, finish, pack, round and the rest stand by themselves

   A shape (rows, vectors, type of storage, pairs) is arguments of inlined functions that are given
   constants: by the functions that are not inlined, which SWV_ROWS, SWV_LIST and SWV_MANY make. So
   one text is all shapes, and its short loops unroll. Sums are arrays of vectors: they stay in
   registers as long as every index is a constant then and nobody takes an address, which is why
   what is rare works on a copy of them, out of line.

   Letters of these functions: R rows of q, and NW vectors side by side, of keys in q.k and of dims
   in p.v; T the type that is loaded, where it is a constant, and es its bytes; v (or v0, v1) a
   number of keys counted in vectors. range[4] is two intervals of keys, [range[0], range[1]) and
   [range[2], range[3]), and v[4] the same in vectors. Of many rows, nr in a panel, nv vectors of
   them (2 mean 2*SWV_N rows) go with mr keys or dims.

   The canonical order, which every kernel here keeps to the letter, so that all give the same bits:
     score   one FMA chain over the numbers of a K row from zero (K, times its q8 scale, then the
             tail), then softcap, ALiBi, bias; hidden keys become SWA__NONE; bf16: see SWA__SINGLES
     block   m = maximum; p = exp2(s - m), or exp2_bf16 where products are in bf16, hidden keys 0;
             l = 16 partial sums by key mod 16, then one tree; p times V's q8 scale (V, in the order
             of tiles); o = one FMA chain over the keys from zero
     fold    blocks from left to right: M = max(m, mi), a = exp2(m - M), c = exp2(mi - M),
             l = fma(li, c, l*a), o = fma(oi, c, o*a); an empty row (m = SWA__NONE, l = o = 0) is
             the identity
     finish  fma(o, 1/l, 0), which removes the sign of a zero. One FMA by name: compilers make one
             of a product and a sum where they like */

#ifdef SWV_LOOPS /* scalar and SSE2: plain loops and calls, the same sums, a tenth of the code    */
#  define SWV_INLINE static
#  define SWV_UNROLL
#else
#  define SWV_INLINE SWA__INLINE
#  define SWV_UNROLL SWA__UNROLL
#endif
/* The register block of a whole panel: SWV_KEYS keys (or dims) by SWV_VECTORS vectors, which are
   all SWV_NR rows. Half a panel is 16 rows: SWV_HALF_PANEL vectors by SWV_HALF_KEYS keys. */
#define SWV_NR (SWV_VECTORS * SWV_N)
#ifndef SWV_HALF_KEYS
#  define SWV_HALF_KEYS SWV_KEYS
#endif
/* keys (or dims) of panels of nv vectors */
#define SWV_MR(nv) ((nv) == SWV_VECTORS ? SWV_KEYS : SWV_HALF_KEYS)
#ifndef SWV_TARGET                       /* the base instruction set                              */
#  define SWV_TARGET
#endif
#ifndef SWV_LEAVE                        /* which leaves no register behind                       */
#  define SWV_LEAVE() ((void)0)
#endif
#ifndef SWV_ADD /* vectors that C adds, in the arithmetic of the place: see SWA__FAST_MATH        */
#  define SWV_ADD(a, b) ((SWV)((a) + (b)))
#  define SWV_SUB(a, b) ((SWV)((a) - (b)))
#  define SWV_MUL(a, b) ((SWV)((a) * (b)))
#  define SWV_DIV(a, b) ((SWV)((a) / (b)))
#endif
#ifndef SWV_PIN                          /* keeps a sum in its register, where gcc would copy it   */
#  define SWV_PIN(x) ((void)0)
#endif
#ifndef SWV_STREAMS                      /* whether r rows can be read as swa__likes_streams says */
#  define SWV_STREAMS(r) 0
#endif
#ifndef SWV_LONE                         /* whether nw vectors of r rows are a lone tile of f32   */
#  define SWV_LONE(r, nw) 0
#endif
/* Whether q.k of R rows by NW vectors is ever asked for over type T: what is not, is not compiled.
   Four rows take f32 by one or two vectors, fewer take q8 by four; eight take f32 by one and narrow
   types by two, an index's eight staged f32 by two. */
#ifdef SWV_FEW_F32                       /* four rows take f32 that many vectors of keys at a time */
#  define SWV_WIDE(R, NW, T) ((R) == 4 ? (NW) <= SWV_FEW_F32 || (T) != SWA_F32 \
                            : (NW) > 1 || ((R) < 8 ? !SWA__IS_Q8(T) : (T) == SWA_F32))
#else
#  define SWV_WIDE(R, NW, T) (!SWV_LONE(R, NW) || (T) == SWA_F32)
#endif
#ifndef SWV_FEW_MORE                     /* vectors of dims of r rows, where dims fill them        */
#  define SWV_FEW_MORE(r) 0
#endif
#ifndef SWV_INDEX                        /* vectors of keys and rows of an index, K in f32; the
                                            vectors of eight rows of narrow K too                 */
#  define SWV_INDEX 0
#  define SWV_INDEX_ROWS 8
#endif
#ifndef SWV_INDEX_KEYS                   /* that stay in L1; a multiple of those                  */
#  define SWV_INDEX_KEYS 32
#endif
#ifndef SWV_STEPS                        /* how far loops of many rows and lists are unrolled     */
#  define SWV_STEPS
#endif
#ifndef SWV_ABS
#  define SWV_ABS(x)    SWV_MAX((x), SWV_SUB(SWV_SET1(0.0f), (x)))
#endif
#ifndef SWV_WITHIN                       /* x, but no further from 0 than most                    */
#  define SWV_WITHIN(x, most) SWV_MIN(SWV_MAX((x), SWV_SUB(SWV_SET1(0.0f), (most))), (most))
#endif
#ifndef SWV_FROM                         /* p where x >= lo, else 0                               */
#  define SWV_FROM(x, lo, p) SWV_PICK((x), (lo), SWV_SET1(FLT_MAX), (p), SWV_SET1(0.0f))
#endif
#ifndef SWV_SINCE                        /* a where x >= lo, else b; x below FLT_MAX              */
#  define SWV_SINCE(x, lo, a, b) SWV_PICK((x), (lo), SWV_SET1(FLT_MAX), (a), (b))
#endif

#ifdef SWV_LOAD_PAIR                     /* whether few rows multiply by pairs                    */
#  define SWV_PAIRED(g) (swa__form_of(g) == SWA__PAIRS)
#else
#  define SWV_PAIRED(g) 0
#endif
#ifdef SWV_ROUNDS                        /* ... or numbers as they lie, which it rounds           */
#  define SWV_ROUNDED(g) ((g)->rounds)
#else
#  define SWV_ROUNDED(g) 0
#endif

/* ---- numbers in and out, exp2, tanh ---- */

/* swa__type_size inlined, so that a constant type gives a constant. */
SWV_INLINE size_t SWA__FN(size)(int type) { return type == SWA_F32 ? 4 : type == SWA_Q8 ? 1 : 2; }

SWV_INLINE SWV_TARGET SWV SWA__FN(load)(int type, const void *p) {
    /* f32 first: where the type is asked for with each number, it is mostly that, a staged
       tile's */
    if (type == SWA_F32) return SWV_LOAD((const float *)p);
    if (SWA__IS_F16(type)) return SWV_LOAD_F16((const uint16_t *)p);
    if (SWA__IS_BF16(type)) return SWV_LOAD_BF16((const uint16_t *)p);
    return SWV_LOAD_Q8((const int8_t *)p);
}

/* Vector j at p, of NW side by side. Types that are widened at less cost by the row of 16: row is
   what the first of its vectors has loaded for the others. So p counts only where j begins a row,
   and a caller asks for j = 0, 1, 2... in turn. */
SWV_INLINE SWV_TARGET SWV SWA__FN(load_nth)(int NW, int type, const void *p, int j, SWV *row) {
#ifdef SWV_ROW
    if (NW * SWV_N % SWA__TILE == 0 && (SWA__IS_Q8(type) || SWA__IS_BF16(type))) {
        if (j * SWV_N % SWA__TILE == 0) SWV_ROW(type, p, row);
        return row[j % (SWA__TILE / SWV_N)];
    }
#endif
    (void)NW;
    (void)j;
    (void)row;
    return SWA__FN(load)(type, p);
}

SWV_INLINE SWV_TARGET void SWA__FN(store)(int type, void *p, SWV v) {
    if (SWA__IS_F16(type)) SWV_STORE_F16((uint16_t *)p, v);
    else if (SWA__IS_BF16(type)) SWV_STORE_BF16((uint16_t *)p, v);
    else if (SWA__IS_Q8(type)) SWV_STORE_Q8((int8_t *)p, v);
    else SWV_STORE((float *)p, v);
}

/* p[i] in all lanes; whole: i counts 0, 1, 2... up to a multiple of SWV_N, and *row remembers what
   is loaded. */
SWV_INLINE SWV_TARGET SWV SWA__FN(nth)(int whole, const float *p, int i, SWV *row) {
#ifdef SWV_AT
    if (whole) {
        if (i % SWV_N == 0) *row = SWV_LOAD(p + i);
        return SWV_AT(*row, i % SWV_N);
    }
#endif
    (void)whole;
    (void)row;
    return SWV_SET1(p[i]);
}

/* body once per element type, so that the type is a constant inside */
#define SWV_BY_TYPE(type, body) do { \
    if (SWA__IS_F16(type)) { const int T = SWA_F16; body } \
    else if (SWA__IS_BF16(type)) { const int T = SWA_BF16; body } \
    else if (SWA__IS_Q8(type)) { const int T = SWA_Q8; body } \
    else { const int T = SWA_F32; body } } while (0)
/* x = 2^x for n vectors, -126 <= x <= 0, 0.95 ulp: Taylor-like polynomial of degree 6 on [-1/2,
   1/2]. Side by side, because one chain after the other fills the CPU's queue before it has kept
   the units busy. */
SWV_INLINE SWV_TARGET void SWA__FN(exp2_near)(int n, SWV *x) {
    SWV whole[16], p[16];
    int i;

    /* 2^x = 2^whole * 2^(what is left) */
    SWV_UNROLL for (i = 0; i < n; i++) whole[i] = SWV_RINT(x[i]);
    SWV_UNROLL for (i = 0; i < n; i++) x[i] = SWV_SUB(x[i], whole[i]);
    SWV_UNROLL for (i = 0; i < n; i++)
        p[i] = SWV_FMA(SWV_SET1(1.534581217e-4f), x[i], SWV_SET1(1.339993121e-3f));
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(p[i], x[i], SWV_SET1(9.618488956e-3f));
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(p[i], x[i], SWV_SET1(5.550328777e-2f));
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(p[i], x[i], SWV_SET1(2.402264689e-1f));
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(p[i], x[i], SWV_SET1(6.931472057e-1f));
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(p[i], x[i], SWV_SET1(1.0f));
    SWV_UNROLL for (i = 0; i < n; i++) x[i] = SWV_SCALE(p[i], whole[i]);
}

/* Below -126 it stays 2^-126, so that no result is subnormal. */
SWV_INLINE SWV_TARGET SWV SWA__FN(exp2)(SWV x) {
    x = SWV_MAX(x, SWV_SET1(-126.0f));
    SWA__FN(exp2_near)(1, &x);
    return x;
}

/* The least score whose p counts in bf16 products: below 2^-30 it is zero, see SWA__TINY_V. */
SWV_INLINE SWV_TARGET SWV SWA__FN(counts_from)(SWV top) {
    return SWV_MAX(SWV_SUB(top, SWV_SET1(30.0f)), SWV_SET1(-3.4e38f));
}

/* p of n scores y in bf16 products: 2^(y - top) rounded to bf16, 0 where y is below `lower`. 2^x =
   2^whole * (1 + a polynomial of degree 3 on [0, 1] that is 0 at 0, wrong by 1.7e-4, a 45th of
   bf16's last bit). A bf16's bits are an integer, 128 * (whole + 127 + polynomial); added to 3 *
   2^22 by the last multiplication it is rounded, to nearest even, and is the lower half of the
   sum's bits. */
SWV_INLINE SWV_TARGET void SWA__FN(exp2_bf16)(int n, const SWV *y, SWV top, SWV lower, SWV *p) {
    SWV whole[4], x[4];
    int i;

    SWV_UNROLL for (i = 0; i < n; i++) x[i] = SWV_SUB(y[i], top);
    SWV_UNROLL for (i = 0; i < n; i++) whole[i] = SWV_FLOOR(x[i]);
    SWV_UNROLL for (i = 0; i < n; i++) x[i] = SWV_SUB(x[i], whole[i]);
    SWV_UNROLL for (i = 0; i < n; i++)
        p[i] = SWV_FMA(SWV_SET1(9.864581108f), x[i], SWV_SET1(29.13855934f));
    SWV_UNROLL for (i = 0; i < n; i++)
        whole[i] = SWV_FMA(whole[i], SWV_SET1(128.0f), SWV_SET1(12582912.0f + 127 * 128));
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(p[i], x[i], SWV_SET1(88.97494507f));
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(p[i], x[i], whole[i]);
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_RAISED(y[i], lower, p[i]);
}

/* p times V's scale, and rounded again; what comes out below SWA__TINY_PV is 0, so that no product
   with V is subnormal. */
SWV_INLINE SWV_TARGET SWV SWA__FN(scale_to_bf16)(SWV p, SWV scale) {
    p = SWV_MUL(p, scale);
    return SWV_PICK(p, SWV_SET1(SWA__TINY_PV), SWV_SET1(FLT_MAX), SWV_TO_BF16(p), SWV_SET1(0.0f));
}

#if SWA__BF16
#ifndef SWV_ROUND_BF16                    /* of numbers that are finite and not tiny               */
#  define SWV_ROUND_BF16(x)  SWV_TO_BF16(x)
#endif

/* What bf16 products take: saturated, rounded, and 0 below tiny. */
SWV_INLINE SWV_TARGET SWV SWA__FN(to_bf16_or_zero)(SWV x, SWV tiny) {
    x = SWV_WITHIN(x, SWV_SET1(3.38953139e38f));
    return SWV_FROM(SWV_ABS(x), tiny, SWV_ROUND_BF16(x));
}
#endif

/* An odd polynomial below 5/8 (6e-9 relative before rounding), (1-t)/(1+t) with t = exp(-2|x|)
   above. */
SWV_INLINE SWV_TARGET SWV SWA__FN(tanh)(SWV x) {
    SWV z = SWV_MUL(x, x), ax = SWV_MAX(x, SWV_SUB(SWV_SET1(0.0f), x)), one = SWV_SET1(1.0f), p, t;

    p = SWV_FMA(SWV_SET1(0.0022695015650242567f), z, SWV_SET1(-0.0083231870085001f));
    p = SWV_FMA(p, z, SWV_SET1(0.021762503311038017f));
    p = SWV_FMA(p, z, SWV_SET1(-0.053958460688591f));
    p = SWV_FMA(p, z, SWV_SET1(0.1333329975605011f));
    p = SWV_FMA(p, z, SWV_SET1(-0.3333333432674408f));
    p = SWV_FMA(SWV_MUL(p, z), x, x);
    t = SWA__FN(exp2)(SWV_MUL(ax, SWV_SET1((float)(-2 * SWA__LOG2E))));
    t = SWV_DIV(SWV_SUB(one, t), SWV_ADD(one, t));
    /* of x's sign; both are computed, a lane takes one */
    t = SWV_PICK(x, SWV_SET1(0.0f), SWV_SET1(FLT_MAX), t, SWV_SUB(SWV_SET1(0.0f), t));
    return SWV_PICK(ax, SWV_SET1(0.0f), SWV_SET1(0.625f), p, t);
}

/* What lies between dot product and mask, in this order; distance is q - k, of either sign, slope
   comes times -log2 e, bias 0 where there is none. q's packing has divided by the softcap. Out of
   line: its call is nothing beside a tanh. */
SWA__NOINLINE SWV_TARGET SWV SWA__FN(modify)(const swa__geo *g, SWV s, SWV slope, SWV distance,
                                             SWV bias) {
    if (g->softcap_log2 > 0) s = SWV_MUL(SWA__FN(tanh)(s), SWV_SET1(g->softcap_log2));
    if (g->alibi) s = SWV_FMA(slope, SWV_MAX(distance, SWV_SUB(SWV_SET1(0.0f), distance)), s);
    if (g->bias) s = SWV_FMA(bias, SWV_SET1((float)SWA__LOG2E), s);
    return s;
}

/* Row i's numbers for `count` keys from the block's key k on: into out, `apart` numbers apart. */
SWA__NOINLINE SWV_TARGET void SWA__FN(bias)(const swa__biases *c, const swa__sight *n, int i, int k,
                                            int count, int apart, float *out) {
    /* columns of the first key and of the last, the lower one of which may be either */
    const int64_t from = (c->step < 0 ? swa__distance(n->q[i]) : c->first) + c->step * k;
    const int64_t last = from + c->step * (count - 1);
    const float *row = n->bias[i];
    int y;

    /* all keys have a column, as a rule: no test per key */
    if (from >= 0 && last >= 0 && from < c->n && last < c->n)
        SWA__ROLLED for (y = 0; y < count; y++) out[y * apart] = row[from + c->step * y];
    else
        SWA__ROLLED for (y = 0; y < count; y++) {
            const int64_t column = from + c->step * y;
            out[y * apart] = column >= 0 && column < c->n ? row[column] : 0.0f;
        }
}

/* ---- few rows: lanes are keys for q.k, dims for p.v ----

   Every number of K and V is read once for the R rows of a step (4, 2 or 1; by AVX-512, and by AVX2
   in SWA_BF16, 8 as well), and widened on the way. Row i, vector j:
       q.k   sum[i][j] += q[d][i] in all lanes * keys of vector j      K's tile [dk][16], by d
       p.v   sum[i][j] += p[i][key] in all lanes * dims of vector j    V's rows, by key
   Between the two lies s, [row][256]: scores, and then p in place. 16 rows behind it are scores
   with the sinks' own q. q lies in steps, [dk+dt][R] each, one step behind the other: the R numbers
   that a vector of keys is multiplied by are neighbours.

   K      tile of 16 keys [dk][16]       a vector is one dim of SWV_N keys; the next dim of these
                                             keys lies 16 numbers on, the next keys in the next tile
       V      row of a key [dvp]             a vector is SWV_N dims of one key
   sums   R by NW vectors                fewer rows take more vectors, so that in p.v they are as
                                             many as FMAs on their way (x86: 4 cycles, two a cycle);
                                             q.k of one row has four, and waits for memory

   A pass over K or V takes as many keys or dims as its sums hold, and ends in s or o. A tile is the
   least that q.k computes: its keys that nobody sees have scores too, which few_mask hides. p.v
   takes keys of the ranges alone, because a slot that was never written may hold a NaN.

   So that memory is not idle, q.k of a block fetches its V, and p.v the next block's K, as many
   lines as it reads itself, in one stream, or p.v in two, see swa__fetches_near. Where
   swa__likes_streams, nothing is fetched: K and V then come by loads, line after line. */

/* What the loops of this shape read on their way to memory: the next line is at `at`; after `left`
   more steps a row ends, and the next begins `gap` bytes further on, and is `per` steps long. A
   step is a line while q.k fetches V, and a key while p.v fetches K. Rows that follow one another
   without a gap are one row that never ends. p.v's lines go by pairs, the second of which is `far`
   bytes from the first, and the next pair `pair` bytes on, see SWA__FN(stream_halves). */
typedef struct {
    const char *at;
    int64_t gap, far, pair;
    int left, per, l1, two;
} SWA__FN(stream);
/* q, and vectors of keys: where each begins, how many fours of dims it has, all its dims, which are
   the numbers of q of a row, and how many bytes ahead it goes into L1, see swa__fetches_near. */
typedef struct {
    const float *q;
    const char *at[8];
    int fours, dk, near;
} SWA__FN(key_vectors);
/* V of n keys: the first's, `row` bytes from one to the next, of which `dims` numbers are taken and
   `step` bytes of the stream. `again`: see swa__fetches_twice. */
typedef struct {
    const char *at;
    int64_t row, again;
    size_t step;
    int n, dims;
} SWA__FN(value_rows);

/* q.k of R rows with NW vectors of keys, over whole fours of dims. A step of the loop is 64 numbers
   of K, or of four rows four dims: fewer cost them 1.5 %, and more are only code for the others.

   V is fetched line by line as K is read: four dims of a tile's 16 keys are es lines of K, so for
   every four dims es lines of V come per tile, spread over the four. With V as wide as K, it has
   come when K is through. */
SWV_INLINE SWV_TARGET void SWA__FN(few_fours)(int index, int R, int NW, int type,
                                              const SWA__FN(key_vectors) *k, SWA__FN(stream) pf,
                                              SWV (*acc)[8]) {
    enum { PER = SWA__TILE / SWV_N };    /* vectors of a tile */
    const int dims = R == 4 || NW * SWV_N < 32 ? 4 : 64 / (NW * SWV_N);
    const size_t es = SWA__FN(size)(type), bytes = (size_t)dims * SWA__TILE * es;
    /* a narrow tile that is left over of four rows: nothing is fetched */
    const int silent = (SWV_STREAMS(R) && R == 4 && NW == 1 && type != SWA_F32) || index;
    /* a line of K for each that is read: other shapes of AVX-512 would be more code for a percent or
       two; those of AVX2 gain 3 to 12 on Granite Rapids */
    const int near = (SWV_N == 8 || (SWV_N == SWA__TILE && R >= 4 && NW <= 2)) && !silent;
    /* of V, for every four dims: es per tile, and part of a tile is a whole one here */
    const int lines = (NW * SWV_N + SWA__TILE - 1) / SWA__TILE * (int)es;
    size_t at, end = (size_t)k->fours * 64 * es;
    const float *four[2];                /* eight rows are two steps of four, without a tail */
    /* beside 12 sums there is room for a dim's keys and one row's number, not for all rows' */
    const int by_row = R == 4 && NW == 3 ? R : 0, by_key = R - by_row;
    SWV x[8], numbers, row[PER];
    int i, j, u;

    four[0] = four[1] = k->q;
    if (R == 8) {
        four[1] += 4 * k->dk;
        SWA__APART(four[1]);
    }
    for (at = 0; at < end; at += bytes) {
        size_t soon = at + (size_t)k->near;
        SWA__APART(soon);
        SWV_UNROLL for (u = 0; u < dims; u++) { /* fetches spread over them */
            /* this dim's share, so that four shares are `lines` exactly */
            const int step = silent ? 0 : (u + 1) * lines / 4 - u * lines / 4;
            /* an index: so many lines a step, each `gap` on: see swa__block.soon */
            for (j = 0; index && u == 0 && j < pf.per; j++, pf.at += pf.gap)
                SWA__FETCH(pf.at, pf.l1);
            SWV_UNROLL for (j = 0; j < step; j++) SWA__FETCH(pf.at + j * 64, pf.l1);
            pf.at += step * 64;
            pf.left -= step;
            /* a row may end within a step: lines behind it were fetched */
            if (!silent && pf.left <= 0 && (u == dims - 1 || lines > 4)) {
                pf.at += pf.gap;
                pf.left += pf.per;
            }

            SWV_UNROLL for (j = 0; j < NW; j++) {
                const size_t y = at + (size_t)u * SWA__TILE * es;
                /* tiles in turn: see SWV_KEY */
                if (near && j % PER == 0 && (size_t)(u + j / PER) * SWA__TILE * es % 64 == 0)
                    SWA__PREFETCH_L1(k->at[j] + soon + (size_t)u * SWA__TILE * es);
                x[j] = SWA__FN(load_nth)(NW, type, k->at[j] + y, j, row);
                SWV_UNROLL for (i = 0; i < by_key; i++)
                    acc[i][j] = SWV_FMA(
                        SWA__FN(nth)(R % SWV_N == 0, four[i / 4], i % 4, &numbers), x[j], acc[i][j]);
            }
            SWV_UNROLL for (i = 0; i < by_row; i++) {
                numbers = SWV_SET1(four[0][i]);
                SWV_UNROLL for (j = 0; j < NW; j++) acc[i][j] = SWV_FMA(numbers, x[j], acc[i][j]);
            }

            four[0] += R < 4 ? R : 4;
            four[1] += 4;

            /* for compilers that would load ahead of this dim, or move its sums */
            SWV_UNROLL for (j = 0; j < NW; j++)
                SWV_UNROLL for (i = 0; i < R; i++) {
                    SWA__IN_ORDER(acc[i][j]);
                    if (R == 4) SWV_PIN(acc[i][j]);
                }
        }
    }
}

/* n more numbers of q.k for a vector of keys, K's from k on or the tail's: the chains in s go on with
   the same FMAs. q [n][rows] of one step. scale: the tail's, some keys of which may be SWA__UNSCALED:
   the others' sum begins at zero; NULL: none has one. */
SWA__NOINLINE SWV_TARGET void SWA__FN(few_chain)(int type, const char *k, int n, int rows,
                                                 const float *q, const float *scale, float *s) {
    const size_t step = SWA__TILE * swa__type_size(type);
    int i, d;

    for (i = 0; i < rows; i++, s += SWA_BLOCK) {
        const SWV old = SWV_LOAD(s);
        SWV chain = old, apart = SWV_SET1(0.0f);

        for (d = 0; d < n; d++) {
            const SWV x = SWA__FN(load)(type, k + (size_t)d * step), y = SWV_SET1(q[d * rows + i]);
            chain = SWV_FMA(y, x, chain);
            apart = SWV_FMA(y, x, apart);
        }
        if (scale != NULL)
            chain = SWV_PICK(SWV_LOAD(scale), SWV_SET1(0.0f), SWV_SET1(FLT_MAX),
                             SWV_FMA(apart, SWV_LOAD(scale), old), chain);
        SWV_STORE(s, chain);
    }
}

/* What else the chains of R rows and the vectors [v, end) take, in s: the last dims of K, where they
   fill no four (usual head_dims have none), K's scale, then the tail, rare in this shape (MLA takes
   the other). So it is plain: unrolled in registers it is more code, and no faster. */
SWA__NOINLINE SWV_TARGET void SWA__FN(few_end)(int R, const swa__block *b, const float *q, float *s,
                                               int v, int end) {
    const swa__geo *g = b->g;
    const int rows = swa__min(R, 4), whole = g->dk / 4 * 4, tail = swa__tail_dims(g);
    int i;

    for (s += v * SWV_N; v < end; v++, s += SWV_N) {
        const swa__tile *t = swa__tile_of(b, v * SWV_N);
        const int at = v * SWV_N % SWA__TILE;

        /* eight rows are two steps of four, without a tail */
        for (i = 0; whole < g->dk && i < R; i += 4)
            SWA__FN(few_chain)(t->k_type, (const char *)t->k + (size_t)(whole * SWA__TILE + at)
                                                                   * swa__type_size(t->k_type),
                               g->dk - whole, rows, q + i * g->dk + whole * rows, NULL,
                               s + i * SWA_BLOCK);
        if (t->k_scale != NULL) {
            const SWV scale = SWV_LOAD(t->k_scale + at);
            for (i = 0; i < R; i++)
                SWV_STORE(s + i * SWA_BLOCK, SWV_MUL(SWV_LOAD(s + i * SWA_BLOCK), scale));
        }
        if (tail > 0)
            SWA__FN(few_chain)(t->tail_type,
                               (const char *)t->tail + (size_t)at * swa__type_size(t->tail_type), tail,
                               R, q + g->dk * R, t->tail_scale != NULL ? t->tail_scale + at : NULL, s);
    }
}

/* V of the tile and those behind it, as q.k fetches it. Rows of V that follow one another (the
   ring's, the stage's) are one row without an end, and so are those shorter than a line. */
SWV_INLINE SWA__FN(stream) SWA__FN(few_values_soon)(const swa__block *b, const swa__tile *first) {
    /* swa__type_size without a branch, or gcc writes the loops behind out for each size */
    const size_t v_size = (size_t)4 >> ((first->v_type > SWA_F32) + (first->v_type > SWA_BF16));
    SWA__FN(stream) pf;

    pf.at = (const char *)first->v;      /* in the ring, V of the next tiles follows */
    pf.gap = (first->v_token - b->g->dvp) * (int64_t)v_size;
    pf.per = b->g->dvp * (int)v_size / 64;   /* lines of a V row, if rows lie apart */
    pf.left = pf.gap != 0 && pf.per > 0 ? pf.per : INT32_MAX;
    pf.l1 = b->l1;
    return pf;
}

/* An index's sums += what its R rows have come to, vector j, at key k; the same FMAs as where scores
   were in memory. scale: of the keys. */
SWV_INLINE SWV_TARGET void SWA__FN(index_add)(int R, const swa__added *x, SWV scale, int k, int j,
                                              SWV (*acc)[8]) {
    const SWV least = SWV_SET1(x->least);
    SWV sum = SWV_LOAD(x->sum + k);
    int i;

    SWV_UNROLL for (i = 0; i < R; i++)
        sum = SWV_FMA(SWV_SET1(x->w[i]), SWV_MAX(least, SWV_MUL(acc[i][j], scale)), sum);
    SWV_STORE(x->sum + k, sum);
}

/* q.k of R rows with the NW vectors of keys from vector v on, of one type: one pass over K, every
   number read once for all rows. Meanwhile V of the same tiles is fetched into L2. Tiles from
   vector `end` on are not there: the last one stands in for each of them, and its scores are
   computed again. With less than four rows that costs nothing: a step takes the 4 cycles in which a
   sum waits for itself, and a narrower kernel would wait as long for each tile. Only the loop over
   most dims is there once per type.
   index: K is in f32, no V follows and no dims beyond fours. Its loop asks for a line of what is
   read later where others ask for ten, of V and of K into L1: with AVX2 those take a fifth. */
SWV_INLINE SWV_TARGET void SWA__FN(few_qk)(int index, int R, int NW, const swa__block *b,
                                           const float *q, float *s, const int range[2]) {
    enum { PER = SWA__TILE / SWV_N };    /* vectors of a tile */
    const swa__geo *g = b->g;
    int v = range[0], end = range[1];
    const int first = v / PER, last = (end - 1) / PER, type = b->tile[first].k_type;
    const int more = !index && (g->dk % 4 != 0 || swa__tail_dims(g) > 0);
    const size_t es = swa__type_size(type);
    SWA__FN(stream) pf = SWA__FN(few_values_soon)(b, &b->tile[first]);
    SWA__FN(key_vectors) k;
    float *to[8];
    SWV acc[8][8], x;
    int i, j;

    /* no question for four rows of AVX2: an index takes 0.70 to 0.84 of the time without it on Zen 3,
       in L2 f32 0.94; fewer rows from memory up to 1.1 */
    if (SWV_N < SWA__TILE && R == 4) pf.l1 = 0;
    if (SWV_STREAMS(R) && b->stream) {   /* what is asked for is the line that is read: for free  */
        pf.at = (const char *)b->tile[first].k;
        pf.left = INT32_MAX;
    }
    if (index) {                         /* it has no V: K that follows                           */
        pf.at = b->soon.p;
        pf.gap = b->soon.apart;
        pf.per = b->soon.lines;
    }

    k.q = q;
    k.fours = (int)((unsigned)g->dk / 4);
    k.dk = g->dk;
    k.near = g->near;

    SWV_UNROLL for (j = 0; j < NW; j++) {
        const int tile = swa__min(first + (v % PER + j) / PER, last), at = (v + j) % PER * SWV_N;
        k.at[j] = (const char *)b->tile[tile].k + (size_t)at * es;
        to[j] = s + tile * SWA__TILE + at;
        SWV_UNROLL for (i = 0; i < R; i++) acc[i][j] = SWV_SET1(0.0f);
    }
    SWV_BY_TYPE(type, if (SWV_WIDE(R, NW, T)) SWA__FN(few_fours)(index, R, NW, T, &k, pf, acc););

    if (index && b->added.sum != NULL) {
        SWV_UNROLL for (j = 0; j < NW; j++) {
            const float *scale = b->tile[(v + j) / PER].k_scale;
            x = scale != NULL ? SWV_LOAD(scale + (v + j) % PER * SWV_N) : SWV_SET1(1.0f);
            SWA__FN(index_add)(R, &b->added, x, (v + j) * SWV_N, j, acc);
        }
        return;
    }
    SWV_UNROLL for (j = 0; j < NW; j++)
        SWV_UNROLL for (i = 0; i < R; i++) SWV_STORE(to[j] + i * SWA_BLOCK, acc[i][j]);
    end = swa__min(end, v + NW);
    while (v < end && !more && b->tile[v / PER].k_scale == NULL) v++;
    if (v < end) SWA__FN(few_end)(R, b, q, s, v, end);
}

/* What p.v's next `keys` keys bring: one stream, or the two halves of what they bring, a line of
   each in turn, see swa__fetches_near. */
SWV_INLINE void SWA__FN(stream_halves)(int keys, SWA__FN(value_rows) *in, SWA__FN(stream) *pf) {
    pf->far = 64;
    pf->pair = 128;
    if (!pf->two || pf->gap != 0) return;
    in->step /= 2;
    pf->far = (int64_t)((size_t)keys * in->step) & -64;
    pf->pair = 64;
}
/* Line n of those that a key brings. */
SWV_INLINE const char *SWA__FN(stream_line)(SWA__FN(stream) pf, int n) {
    return pf.at + n / 2 * pf.pair + (n % 2 != 0 ? pf.far : 0);
}

/* The products of row r of four with a key of f32, and behind them one of its fetches. gcc, which
   moves both, put three of four side by side: 1.02 to 1.04 of this order's time on Granite Rapids,
   W=1024 or head_dim 64. No question between the rows: where K goes into L1, it has come already. */
#define SWV_KEY_LINE(n, bytes) (by_pairs ? SWA__FN(stream_line)(pf, (n)) : pf.at + (bytes))
#define SWV_KEY_ROW(r, number) do { \
    i = (r); \
    SWV_UNROLL for (j = 0; j < NW; j++) acc[r][j] = SWV_FMA((number), x[j], acc[r][j]); \
    SWA__BEHIND(acc[r][NW - 1]); \
    if ((r) + 1 < NW) SWA__PREFETCH(SWV_KEY_LINE((r) + 1, off[(r) + 1])); \
} while (0)
/* p.v of one key, V at in.at, and a line of the stream for each line of it: between its products,
   because an instruction that fetches holds a buffer that loads want too, and four in a row fill
   them. A macro, because gcc multiplies by a lane only where `number`, row i's p, stands in the FMA
   itself. The stream's row may end before this key; pf.at, which the loop moves by a key's share,
   then skips the gap. Where gcc may not join the fetches again, one row of f16 and bf16 takes 0.955
   of the time, and with AVX2 one and two rows of any type 0.91 to 0.97. */
#define SWV_KEY(number) do { \
    if (pf.left-- == 0) { \
        pf.at += pf.gap; \
        pf.left = pf.per - 1; \
    } \
    if (by_rows && pf.l1) \
        SWV_UNROLL for (j = 0; j < NW; j++) SWA__PREFETCH_L1(SWV_KEY_LINE(j, off[j])); \
    SWV_UNROLL for (j = 0; j < NW; j++) { \
        if (!by_rows && (size_t)(j * SWV_N) * es % 64 == 0) \
            SWA__FETCH(SWV_KEY_LINE(j, off[j * SWV_N / SWA__TILE]), pf.l1); \
        if (again && (size_t)(j * SWV_N) * es % 64 == 0) \
            SWA__PREFETCH(in.at + off[j * SWV_N / SWA__TILE] + in.again); \
        x[j] = SWA__FN(load_nth)(NW, type, in.at + off[j * SWV_N / SWA__TILE] \
                                     + (size_t)(j * SWV_N % SWA__TILE) * es, j, row); \
        if (!by_rows) \
            SWV_UNROLL for (i = 0; i < R; i++) acc[i][j] = SWV_FMA((number), x[j], acc[i][j]); \
        if ((R == 1 && SWV_N == SWA__TILE && es > 1) || (R <= 2 && SWV_N == 8)) \
            SWA__BEHIND(acc[R - 1][j]); \
    } \
    if (by_rows) { \
        SWA__PREFETCH(pf.at); \
        SWV_KEY_ROW(0, number); \
        SWV_KEY_ROW(1, number); \
        SWV_KEY_ROW(2, number); \
        SWV_KEY_ROW(3, number); \
    } \
} while (0)

/* p.v of R rows over keys of a tile, NW vectors of dims each, of which the 16s from in.dims on are
   not there: see few_dims. */
SWV_INLINE SWV_TARGET void SWA__FN(few_rows)(int R, int NW, int type, const float *p,
                                             SWA__FN(value_rows) in, SWA__FN(stream) pf,
                                             SWV (*acc)[8]) {
    const size_t es = SWA__FN(size)(type);
    const int by_rows = R == 4 && type == SWA_F32 && SWV_N == SWA__TILE, /* see SWV_KEY_ROW */
              by_pairs = type == SWA_F32 && R * NW >= 8 && SWV_N == SWA__TILE,
              again = R == 4 && SWV_N == 8 && type == SWA_F32;
    size_t off[8];                       /* of each 16 dims, in bytes */
    SWV x[8], row[SWA__TILE / SWV_N];
    int i, j, k = 0;

    SWV_UNROLL for (j = 0; j < 8; j++)
        off[j] = j == 0 ? 0 : (size_t)swa__min(j * SWA__TILE, in.dims - SWA__TILE) * es;
    if (by_pairs) SWA__FN(stream_halves)(in.n, &in, &pf);
#ifdef SWV_AT
    for (; k + SWV_N <= in.n; k += SWV_N) {              /* p of several keys at once */
        SWV numbers[8];
        int u;
        SWV_UNROLL for (i = 0; i < R; i++) numbers[i] = SWV_LOAD(p + i * SWA_BLOCK + k);
        SWV_UNROLL for (u = 0; u < SWV_N; u++, in.at += in.row, pf.at += in.step)
            SWV_KEY(SWV_AT(numbers[i], u));
    }
#endif
    /* all keys, or those that fill no vector */
    for (; k < in.n; k++, in.at += in.row, pf.at += in.step)
        SWV_KEY(SWV_SET1(p[i * SWA_BLOCK + k]));
}
#undef SWV_KEY
#undef SWV_KEY_ROW
#undef SWV_KEY_LINE

/* V of key k and those behind it in its tile, of which dims [d[0], d[1]) are taken, and what is
   fetched of the next block's K meanwhile.

   V is walked in passes over a group of tiles (its first, how many), and so group after group: the
   first dims of all its keys, then the next. A key of a pass brings as many bytes of K as it takes
   of V, so that through all passes K comes as one stream. With dk = dv = 128, passes of 64 dims and
   16 tiles, each tile of V brings half a tile of K:

       pass over dims    0 .. 63: V's tiles  0  1  2 ... 15    64 .. 127: 0  1  2 ... 15
       K's tiles                             0  0  1 ...  7               8  8  9 ... 15 */
SWV_INLINE void SWA__FN(few_values_at)(const swa__block *b, const int group[2], const int d[2],
                                       int type, int k, SWA__FN(value_rows) *in,
                                       SWA__FN(stream) *pf) {
    const swa__geo *g = b->g;
    /* (unsigned where a quotient is by a constant: half the instructions) */
    const int tile = (int)((unsigned)k / SWA__TILE), row = (int)((unsigned)k % SWA__TILE),
              dims = d[1] - d[0],
              at = (group[0] - b->t0) * g->dvp + d[0] * group[1] + (tile - group[0]) * dims,
              next = b->t0 + at / g->dk;
    const int64_t es = (int64_t)swa__type_size(type);

    in->row = b->tile[tile].v_token * es;
    in->again = b->again * in->row;
    in->at = (const char *)b->tile[tile].v + (row * in->row + d[0] * es);
    in->step = (size_t)(dims * es);
    in->dims = dims;
    /* each pass over V, of `dims` dims, brings as many dims of K: `at` counts them, in the tiles
       from t0 on, through all passes. A sinks' tile before t0 brings nothing */
    pf->at = at >= 0 && next < b->t1 ? b->tile[next].next : NULL;
    pf->gap = 0;
    pf->left = INT32_MAX;                /* fetches until the row's end, if rows lie apart */
    pf->per = 0;
    /* p.v's short passes with AVX2 pay for the question, and who has that alone is told L2 */
    pf->l1 = SWV_N == SWA__TILE && b->l1;
    pf->two = g->near > 0;
    if (pf->at != NULL) {
        /* numbers of K's tile that came with tiles and keys before this one */
        const int from = at % g->dk * SWA__TILE + row * dims;
        pf->gap = b->tile[next].next_gap;
        /* keys whose shares are one row of K */
        if (pf->gap != 0) pf->per = (int)((unsigned)g->dk / (unsigned)dims);
        if (pf->per > 0) pf->left = pf->per - (int)((unsigned)from / (unsigned)dims) % pf->per;
        pf->at += from * es + from / g->dk * pf->gap;
    } else {                             /* nothing to fetch: what is here already */
        pf->at = in->at;
        in->step = 0;
    }
}

/* p.v of R rows over the keys [keys[0], keys[1]), for the dims [d[0], d[1]), added to acc; a staged
   tile is f32 whatever the ring's type. Fetches the next block's K, in one stream through all of a
   block's passes over V. Once per type there is only the loop over a tile's keys. */
SWV_INLINE SWV_TARGET void SWA__FN(few_pv)(int R, int NW, const swa__block *b, const int keys[2],
                                           const swa__pv *of, const int d[2], SWV (*acc)[8]) {
    /* fewer rows of AVX-512 take all dims at once and wait for memory: f16 of two 1.04 by runs */
    const int last = keys[1], runs = SWV_N < SWA__TILE || R >= 4,
              all[2] = { b->t0, b->t1 - b->t0 };
    int k, end;

    for (k = keys[0]; k < last; k = end) {
        const int type = swa__tile_of(b, k)->v_type;
        SWA__FN(stream) pf;
        SWA__FN(value_rows) in;
        end = runs && k == of->from ? of->run : swa__tile_end(k, last);
        SWA__FN(few_values_at)(b, all, d, type, k, &in, &pf);
        in.n = end - k;
        SWV_BY_TYPE(type, if (NW <= SWV_FEW(R) || T <= SWA__WIDEST(R))
                              SWA__FN(few_rows)(R, NW, T, of->p + k, in, pf, acc););
    }
}

/* p.v of R rows over the keys of range, for `dims` dims from d0 on: o [R][dvp]. The chain goes on
   from interval to interval and, with x->more, from piece to piece. There are sums for NW vectors:
   where dims are fewer, their last 16 stand in for each 16 that are missing, which gives the same
   sums again, stored to the same place. */
SWV_INLINE SWV_TARGET void SWA__FN(few_dims)(int R, int NW, const swa__block *b, const int range[4],
                                             const swa__pv *x, int d0, int dims) {
    const int dvp = b->g->dvp, d[2] = { d0, d0 + dims };
    SWV acc[8][8];                       /* R by NW of them are used, and are registers */
    float *o[8];                         /* where the first row's vectors lie */
    int i, j, r;

    SWV_UNROLL for (j = 0; j < NW; j++) {
        const int at = j * SWV_N;
        o[j] = x->o + d0 + (at < dims ? at : dims - SWA__TILE + at % SWA__TILE);
    }
    SWV_UNROLL for (i = 0; i < R; i++)
        SWV_UNROLL for (j = 0; j < NW; j++)
            acc[i][j] = x->more ? SWV_LOAD(o[j] + i * dvp) : SWV_SET1(0.0f);

    for (r = 0; r < 4; r += 2) SWA__FN(few_pv)(R, NW, b, range + r, x, d, acc);

    SWV_UNROLL for (i = 0; i < R; i++)
        SWV_UNROLL for (j = 0; j < NW; j++) SWV_STORE(o[j] + i * dvp, acc[i][j]);
}

/* q.k over the vectors [v0, v1), whole tiles, for R rows: as wide as may be. What four rows have
   left goes tile by tile, for their sums keep the units busy by themselves; fewer rows take the
   last tiles as one more width. A key's chain is the same in any. */
SWV_INLINE SWV_TARGET void SWA__FN(few_keys)(int R, const swa__block *b, const float *q,
                                             float *s, int v0, int v1) {
    enum { PER = SWA__TILE / SWV_N };    /* vectors of a tile */
    int v[2], one;

    for (v[0] = v0; v[0] < v1; v[0] = v[1]) {
        /* tiles of one type together: staged ones, of new rows, are f32 beside a ring's */
        int type = b->tile[v[0] / PER].k_type;
        for (v[1] = v[0] + PER; v[1] < v1 && b->tile[v[1] / PER].k_type == type;) v[1] += PER;
        /* a tile at a time */
        one = SWV_LONE(R, PER) && type == SWA_F32 && v[0] + PER == v[1];
#ifdef SWV_FEW_F32 /* f32 is bound by memory, which serves fewer streams better */
        one = (R < 4 ? !SWA__IS_Q8(type) : type == SWA_F32)
           && (b->stream || b->g->streams <= (R > 1 ? 2 : 1) || v[0] + PER == v[1]);
        for (; R == 4 && !one && (b->g->streams == 2 || type == SWA_F32)
               && v[0] + SWV_FEW_F32 <= v[1];
             v[0] += SWV_FEW_F32)
            SWA__FN(few_qk)(0, R, SWV_FEW_F32, b, q, s, v);
#endif
        for (; !one && (R < 4 ? v[0] < v[1] : v[0] + SWV_FEW_KEYS(R) <= v[1]);
             v[0] += SWV_FEW_KEYS(R))
            SWA__FN(few_qk)(0, R, SWV_FEW_KEYS(R), b, q, s, v);
        for (; (R == 4 || one) && SWV_FEW_KEYS(R) > PER && v[0] < v[1]; v[0] += PER)
            SWA__FN(few_qk)(0, R, PER, b, q, s, v);
    }
}

#if SWA__LIGHT                           /* a loop's head once: it is entered once a pass         */
#  pragma GCC push_options
#  pragma GCC optimize("no-tree-ch")
#endif
/* The functions of a step of R rows. Four rows' whole widths have a loop of their own, in which
   places are constants (1 to 2 % of their time in cache), and so have the last 16 dims of two and
   four, to which a whole width would cost as much as 64, and 128 dims of one and two rows of f32
   (0.96 to 0.98 of their time on Zen 5) and f16 (0.95 to 0.97 on Zen 4), of one of bf16. */
#define SWV_ROWS(R) \
SWA__NOINLINE SWV_TARGET void SWA__FN(few_keys##R)(const swa__block *b, const float *q, float *s, \
                                                   int v0, int v1) { \
    SWA__FN(few_keys)(R, b, q, s, v0, v1); \
} \
SWA__NOINLINE SWV_TARGET void SWA__FN(few_values##R)(const swa__block *b, const int range[4], \
                                                     const swa__pv *x) { \
    const int dvp = b->g->dvp, wide = SWV_FEW(R) * SWV_N; \
    int d = 0; \
    if (SWV_FEW_MORE(R) && swa__wide_values(b, range, SWA__WIDEST(R))) \
        for (; d + SWV_FEW_MORE(R) * SWV_N <= dvp; d += SWV_FEW_MORE(R) * SWV_N) \
            SWA__FN(few_dims)(R, SWV_FEW_MORE(R), b, range, x, d, SWV_FEW_MORE(R) * SWV_N); \
    for (; (R == 4 || wide <= SWA__TILE) && d + wide <= dvp; d += wide) \
        SWA__FN(few_dims)(R, SWV_FEW(R), b, range, x, d, wide); \
    for (; wide > SWA__TILE && d + (R > 1 ? SWA__TILE : 0) < dvp; d += wide) \
        SWA__FN(few_dims)(R, SWV_FEW(R), b, range, x, d, swa__min(wide, dvp - d)); \
    if (R > 1 && wide > SWA__TILE && d < dvp) \
        SWA__FN(few_dims)(R, SWA__TILE / SWV_N, b, range, x, d, SWA__TILE); \
}

SWV_ROWS(1)
#if !SWA__SMALL
SWV_ROWS(2)
#endif
SWV_ROWS(4)
#undef SWV_ROWS

/* body once per type of floats, which is T inside: what bf16 products of few rows take as it lies (q8
   comes as f32), and weights. */
#define SWV_BY_FLOATS(T, type, body) do { \
    if (SWA__IS_BF16(type)) { const int T = SWA_BF16; body } \
    else if (SWA__IS_F16(type)) { const int T = SWA_F16; body } \
    else { const int T = SWA_F32; body } } while (0)

#ifdef SWV_LOAD_PAIR
/* The same in bf16 by pairs, for four rows, the last ones of which may be nobody's, and for eight
   over f32: q is half a panel, [dk/2][16], and p two keys in a number. K and V of f32, f16 and bf16
   become pairs in registers. swa__job_kernel lets only dims come here that fill this: dk even, dvp
   a multiple of 64, no tail. The only instance that has pairs has 16 lanes, so a vector of keys is
   a tile, and v the number of either.

   A pair is two neighbours of a chain in one lane: in q.k two dims of a key, in p.v two keys of a
   dim. A row's 256 p fill half of its scores' place, those of keys k and k+1 at number k/2. */

/* The eight sums of R rows and the keys of one or two tiles: sum j*R + i is of row i and tile j. */
SWV_INLINE SWV_TARGET void SWA__FN(pair_dims)(int R, int type, const swa__geo *g, const float *q,
                                              const char *const *k, SWA__FN(stream) pf, SWV *acc) {
    const size_t dim = SWA__TILE * SWA__FN(size)(type);
    const int NW = 8 / R, lines = NW * (int)dim / 32;
    const char *at[2];
    SWV x;
    int i, j, d;

    SWV_UNROLL for (j = 0; j < NW; j++) at[j] = k[j];
    for (d = 0; d < g->dk; d += 2, q += SWA__FEW) {
        /* K's tile has a dim of 16 keys in a row: two of them become pairs, for all rows. As many
           lines of V are fetched between as two dims of these tiles are, and K goes into L1 */
        SWV_UNROLL for (j = 0; j < NW; j++, at[j - 1] += 2 * dim) {
            SWV_UNROLL for (i = 0; i < lines / NW; i++)
                SWA__FETCH(pf.at + (j * (lines / NW) + i) * 64, pf.l1);
            SWA__PREFETCH_L1(at[j] + g->near);
            if (dim == 64) SWA__PREFETCH_L1(at[j] + g->near + 64);
            x = SWV_LOAD_PAIR(type, at[j], at[j] + dim, SWA__TINY_QK);
            SWV_UNROLL for (i = 0; i < R; i++) SWV_FMA2_AT(q + i, x, acc[j * R + i]);
        }
        SWV_UNROLL for (i = 0; i < 8; i++) __asm__("" : SWV_CONSTRAINT(acc[i]));
        pf.at += lines * 64;
        pf.left -= lines;
        if (pf.left <= 0) {
            pf.at += pf.gap;
            pf.left += pf.per;
        }
    }
}

/* q.k with the keys of one tile, or of two of one type, v and then `other`. Of eight rows, or where
   `other` is v, the second four sums are of the same tile: of rows 4 to 7, or the same again. */
SWA__NOINLINE SWV_TARGET void SWA__FN(pair_qk)(int rows, const swa__block *b, const float *q,
                                               float *s, int v, int other) {
    const int type = b->tile[v].k_type;
    const SWA__FN(stream) pf = SWA__FN(few_values_soon)(b, &b->tile[v]);
    const char *at[2];
    SWV acc[8], x, y;
    int i;

    at[0] = (const char *)b->tile[v].k;
    at[1] = (const char *)b->tile[other].k;
    SWV_UNROLL for (i = 0; i < 8; i++) acc[i] = SWV_SET1(0.0f);
    if (rows == 8) SWA__FN(pair_dims)(8, SWA_F32, b->g, q, at, pf, acc);
    else SWV_BY_FLOATS(T, type, SWA__FN(pair_dims)(4, T, b->g, q, at, pf, acc););

    /* without scales times 1, which changes no bit */
    x = y = SWV_SET1(1.0f);
    if (b->tile[v].k_scale != NULL) x = SWV_LOAD(b->tile[v].k_scale);
    if (b->tile[other].k_scale != NULL) y = SWV_LOAD(b->tile[other].k_scale);

    v *= SWV_N;
    other = rows == 8 ? v + 4 * SWA_BLOCK : other * SWV_N;
    SWV_UNROLL for (i = 0; i < 4; i++, s += SWA_BLOCK) {
        SWV_STORE(s + v, SWV_MUL(acc[i], x));
        SWV_STORE(s + other, SWV_MUL(acc[4 + i], y));
    }
}

/* Of four rows two tiles at a time, so that eight sums are on their way. */
static SWV_TARGET void SWA__FN(pair_keys)(int rows, const swa__block *b, const float *q, float *s,
                                          int v, int v1) {
    int other;

    for (; v < v1; v = other + 1) {
        const int two = rows < 8 && v + 1 < v1 && b->tile[v + 1].k_type == b->tile[v].k_type;
        other = v + two;
        SWA__FN(pair_qk)(rows, b, q, s, v, other);
    }
}

/* p.v over the keys of a tile: sixteen sums of R rows, i*NW + j of row i and vector j of dims. */
SWV_INLINE SWV_TARGET void SWA__FN(pair_rows)(int R, int type, const float *p,
                                              SWA__FN(value_rows) in, SWA__FN(stream) pf,
                                              SWV *acc) {
    const int NW = 16 / R;
    /* a vector of dims; and from behind the last one to the first of the next two keys */
    const size_t row = SWV_N * SWA__FN(size)(type), skip = 2 * (size_t)in.row - (size_t)NW * row;
    const char *a = in.at, *c = in.at + in.row;  /* the two keys of a pair */
    const float *last = p + SWA__TILE / 2;
    const char *soon[2];
    SWV x;
    int i, j;

    for (; p < last; p++, a += skip, c += skip) {
        /* two keys a turn, each of which brings its lines, between the products: see SWV_KEY */
        SWV_UNROLL for (i = 0; i < 2; i++, pf.at += in.step) {
            if (pf.left-- == 0) {
                pf.at += pf.gap;
                pf.left = pf.per - 1;
            }
            soon[i] = pf.at;
        }

        SWV_UNROLL for (j = 0; j < NW; j++, a += row, c += row) {
            if ((size_t)j * row % 64 == 0) {
                SWA__FETCH(soon[0] + (size_t)j * row, pf.l1);
                SWA__FETCH(soon[1] + (size_t)j * row, pf.l1);
            }
            x = SWV_LOAD_PAIR(type, a, c, SWA__TINY_V);
            SWV_UNROLL for (i = 0; i < R; i++)
                SWV_FMA2_AT(p + i * SWA_BLOCK, x, acc[i * NW + j]);
        }
        SWV_UNROLL for (i = 0; i < 16; i++) __asm__("" : SWV_CONSTRAINT(acc[i]));
    }
}

/* p.v over whole tiles, 64 dims of four rows or 32 of eight at a time: in either shape 16 sums.
   Four at a time are loaded and stored: four vectors of one row, or two of each of two rows.

       acc[i ..]     i         i+1            i+2         i+3
       at            o      o + SWV_N      o + half   o + half + SWV_N */
SWA__NOINLINE SWV_TARGET void SWA__FN(pair_values)(int rows, const swa__block *b,
                                                   const int range[4], const swa__pv *x) {
    const int dvp = b->g->dvp, dims = 256 / rows, half = rows == 8 ? dvp : 2 * SWV_N,
              step = rows == 8 ? 2 * dvp : dvp, all[2] = { b->t0, b->t1 - b->t0 };
    int d, i, r, k;

    for (d = 0; d < dvp; d += dims) {
        const int part[2] = { d, d + dims };
        float *o = x->o + d;
        SWV acc[16];

        SWV_UNROLL for (i = 0; i < 16; i++) acc[i] = SWV_SET1(0.0f);
        if (x->more)
            SWV_UNROLL for (i = 0; i < 16; i += 4, o += step) {
                acc[i] = SWV_LOAD(o);
                acc[i + 1] = SWV_LOAD(o + SWV_N);
                acc[i + 2] = SWV_LOAD(o + half);
                acc[i + 3] = SWV_LOAD(o + half + SWV_N);
            }

        /* ranges are whole tiles here, with zeros in V where nobody sees a key */
        for (r = 0; r < 4; r += 2)
            for (k = range[r]; k < range[r + 1]; k += SWA__TILE) {
                const int type = swa__tile_of(b, k)->v_type;
                const float *p = x->p + k / 2;
                SWA__FN(value_rows) in;
                SWA__FN(stream) pf;
                SWA__FN(few_values_at)(b, all, part, type, k, &in, &pf);
                if (rows == 8) SWA__FN(pair_rows)(8, SWA_F32, p, in, pf, acc);
                else SWV_BY_FLOATS(T, type, SWA__FN(pair_rows)(4, T, p, in, pf, acc););
            }

        o = x->o + d;
        SWV_UNROLL for (i = 0; i < 16; i += 4, o += step) {
            SWV_STORE(o, acc[i]);
            SWV_STORE(o + SWV_N, acc[i + 1]);
            SWV_STORE(o + half, acc[i + 2]);
            SWV_STORE(o + half + SWV_N, acc[i + 3]);
        }
    }
}
#endif

#ifdef SWV_ROUNDS
/* The same in bf16 for R = four or eight rows, the last ones of which may be nobody's, by FMAs on
   numbers that are rounded as they come: where pairs have half the rate of FMAs, or none. `tile`: in
   the order of SWA_BF16_TILE, whose even and odd numbers have chains of their own in each bundle. */

/* 16 numbers as products take them. Stored bf16 is finite, and no f16 is below tiny. Eight rows have
   as much to multiply as memory gives them time for, and round f32 by two FMAs. What of it is not
   below 2^112 becomes infinity or NaN then, and so do the sums of every row: one tells that they are
   to be computed again, by fours, whose rounding takes any number. Four rows wait for memory either
   way. */
SWV_INLINE SWV_TARGET SWV SWA__FN(rounded)(int R, int type, const char *p, SWV tiny) {
    const SWV x = SWA__FN(load)(type, p);
    return type == SWA_BF16 ? SWV_FROM(SWV_ABS(x), tiny, x)
         : type == SWA_F16  ? SWV_ROUND8(x)
         : R == 4           ? SWA__FN(to_bf16_or_zero)(x, tiny)
                            : SWV_ROUND8_FROM(x, tiny);
}
static SWV_TARGET int SWA__FN(finite)(const float *p, int n) {
    unsigned others = 0;
    int i;
    for (i = 0; i < n; i += SWV_N) others |= SWV_NOT_FINITE(SWV_LOAD(p + i));
    return others == 0;
}

/* Vectors of keys or dims at once: as many as there are registers for R sums each. In the order of
   tiles each has two. */
#define SWV_ROUNDED_VECTORS(R, tile) (SWV_ROUNDS / (R) / (1 + (tile)))

/* q.k of R rows, by fours, with NW vectors of a tile's keys, from vector v on: the second dim of a
   pair goes first. acc: [NW][R]. */
SWV_INLINE SWV_TARGET void SWA__FN(rounded_dims)(int tile, int R, int type, const swa__block *b,
                                                 int v, const float *q, SWV *acc) {
    enum { PER = SWA__TILE / SWV_N };    /* vectors of a tile */
    const swa__geo *g = b->g;
    const swa__tile *t = &b->tile[v / PER];
    const int NW = swa__min(SWV_ROUNDED_VECTORS(R, tile), PER);
    const size_t es = SWA__FN(size)(type), dim = SWA__TILE * es;
    const int lines = (int)dim / 32, next = 4 * g->dk;
    const SWV tiny = SWV_SET1(SWA__TINY_QK);
    const char *k = (const char *)t->k + (size_t)(v % PER * SWV_N) * es;
    SWA__FN(stream) pf = SWA__FN(few_values_soon)(b, t);
    SWV part[16], x;
    int d, i, j, n, end;

    for (d = 0; d < g->dk; d = end) {
        end = tile ? swa__min(d + SWA__SUMMED, g->dk) : g->dk;
        SWV_UNROLL for (i = 0; i < 2 * R * NW; i++) part[i] = SWV_SET1(0.0f);
        for (; d < end; d += 2, q += 8, k += 2 * dim) {
            SWV_UNROLL for (j = 1; j >= 0; j--)
                SWV_UNROLL for (n = 0; n < NW; n++) {
                    x = SWA__FN(rounded)(R, type, k + (size_t)j * dim + (size_t)(n * SWV_N) * es,
                                         tiny);
                    SWV_UNROLL for (i = 0; i < R; i++) {
                        SWV *to = tile ? &part[R * (NW * j + n) + i] : &acc[R * n + i];
                        *to = SWV_FMA(SWV_SET1(q[i / 4 * next + 4 * j + i % 4]), x, *to);
                        /* as many lines of V as of K, which goes into L1, both amid the products:
                           see SWV_KEY_ROW */
                        if (j >= lines || n > 0 || (i != 0 && i != 2)) continue;
                        SWA__BEHIND(*to);
                        if (i == 0) SWA__PREFETCH_L1(k + g->near + j * 64);
                        else {
                            SWA__PREFETCH(pf.at);
                            pf.at += 64;
                        }
                    }
                }
            pf.left -= lines;
            if (pf.left <= 0) {
                pf.at += pf.gap;
                pf.left += pf.per;
            }
        }
        if (tile)
            SWV_UNROLL for (i = 0; i < R * NW; i++)
                acc[i] = SWV_ADD(acc[i], SWV_ADD(part[i], part[R * NW + i]));
    }
}

/* q.k with the keys of the vectors [v, v1), whole tiles. */
SWV_INLINE SWV_TARGET void SWA__FN(rounded_tiles)(int tile, int R, const swa__block *b,
                                                  const float *q, float *s, int v, int v1) {
    enum { PER = SWA__TILE / SWV_N };
    const int NW = swa__min(SWV_ROUNDED_VECTORS(R, tile), PER);
    SWV acc[8];
    int i, n;

    for (; v < v1; v += NW) {
        const swa__tile *t = &b->tile[v / PER];

        SWV_UNROLL for (i = 0; i < 8; i++) acc[i] = SWV_SET1(0.0f);    /* all, or gcc -O3 warns */
        SWV_BY_FLOATS(T, t->k_type, SWA__FN(rounded_dims)(tile, R, T, b, v, q, acc););
        SWV_UNROLL for (n = 0; n < NW; n++)
            SWV_UNROLL for (i = 0; i < R; i++) {
                SWV *x = &acc[R * n + i];
                if (!tile && t->k_scale != NULL)
                    *x = SWV_MUL(*x, SWV_LOAD(t->k_scale + (v % PER + n) * SWV_N));
                SWV_STORE(s + i * SWA_BLOCK + (v + n) * SWV_N, *x);
            }
    }
}

SWA__NOINLINE SWV_TARGET void SWA__FN(rounded_keys)(int rows, const swa__block *b, const float *q,
                                                    float *s, int v, int v1) {
    const int tile = b->g->form != SWA__SINGLES;

    if (rows == 8) {
#if SWV_ROUNDS == 16
        if (tile) SWA__FN(rounded_tiles)(1, 8, b, q, s, v, v1);
        else
#endif
            SWA__FN(rounded_tiles)(0, 8, b, q, s, v, v1);
        if (SWA__FN(finite)(s + v * SWV_N, (v1 - v) * SWV_N)) return;
    }
    for (; rows > 0; rows -= 4, q += 4 * b->g->dk, s += 4 * SWA_BLOCK)
        if (tile) SWA__FN(rounded_tiles)(1, 4, b, q, s, v, v1);
        else SWA__FN(rounded_tiles)(0, 4, b, q, s, v, v1);
}

/* p.v over the keys of a tile, NW vectors of dims: those past in.dims are its last ones again. sum:
   [R][NW]; in the order of tiles of the pairs' first numbers, then of their second. */
SWV_INLINE SWV_TARGET void SWA__FN(rounded_rows)(int tile, int R, int type, const float *p,
                                                 SWA__FN(value_rows) in, SWA__FN(stream) pf,
                                                 SWV *sum) {
    const int NW = SWV_ROUNDED_VECTORS(R, tile);
    const size_t es = SWA__FN(size)(type);
    const int by_pairs = type == SWA_F32 && NW > 1 && SWV_N == SWA__TILE;
    const SWV tiny = SWV_SET1(SWA__TINY_V);
    const float *end = p + SWA__TILE;
    const char *at;
    size_t off[4];                       /* of each vector of dims, in bytes */
    SWV x;
    int i, j, n;

    if (by_pairs) SWA__FN(stream_halves)(SWA__TILE, &in, &pf);
    SWV_UNROLL for (n = 0; n < NW; n++)
        off[n] = n == 0 ? 0 : (size_t)swa__min(n * SWV_N, in.dims - SWV_N) * es;
    /* the second key of a pair goes first, and so does its p */
    for (; p < end; p += 2, in.at += 2 * in.row) {
        SWV_UNROLL for (j = 1; j >= 0; j--, pf.at += in.step) {
            at = in.at + j * in.row;
            if (pf.left-- == 0) {
                pf.at += pf.gap;
                pf.left = pf.per - 1;
            }
            SWV_UNROLL for (n = 0; n < NW; n++) {
                x = SWA__FN(rounded)(R, type, at + off[n], tiny);
                SWV_UNROLL for (i = 0; i < R; i++) {
                    SWV *to = &sum[(tile ? R * NW * j : 0) + NW * i + n];
                    *to = SWV_FMA(SWV_SET1(p[i * SWA_BLOCK + 1 - j]), x, *to);
                    /* a line is fetched amid its products, see SWV_KEY_ROW */
                    if (i != 1 || (size_t)(n * SWV_N) * es % 64 != 0) continue;
                    SWA__BEHIND(*to);
                    SWA__PREFETCH(by_pairs ? SWA__FN(stream_line)(pf, n) : pf.at + off[n]);
                }
            }
        }
    }
}

/* p.v over whole tiles of range, bundle by bundle: in the order of tiles its two chains begin at
   zero, else they go on from what o has. */
SWV_INLINE SWV_TARGET void SWA__FN(rounded_bundles)(int tile, int R, const swa__block *b,
                                                    const int range[4], const swa__pv *to) {
    const int dvp = b->g->dvp, NW = SWV_ROUNDED_VECTORS(R, tile);
    unsigned tiles = 0;                  /* a bit for each                                        */
    int i, k, d, two, more = to->more;

    for (i = 0; i < 4; i += 2)
        for (k = range[i]; k < range[i + 1]; k += SWA__TILE) tiles |= 1u << k / SWA__TILE;
    /* sums of no key: the rows see none of this block, which is a part's share all the same */
    for (d = 0; tiles == 0 && !more && d < R * dvp; d += SWV_N)
        SWV_STORE(to->o + d, SWV_SET1(0.0f));

    for (two = 0; tiles >> two != 0; two += 2) {
        const unsigned some = tiles >> two & 3;
        const int group[2] = { two + (some == 2), some == 3 ? 2 : 1 };

        for (d = 0; some != 0 && d < dvp; d += NW * SWV_N) {
            const int part[2] = { d, swa__min(d + NW * SWV_N, dvp) };
            float *o[4];
            SWV sum[SWV_ROUNDS], was;

            SWV_UNROLL for (i = 0; i < NW; i++)
                o[i] = to->o + swa__min(d + i * SWV_N, part[1] - SWV_N);
            SWV_UNROLL for (i = 0; i < SWV_ROUNDS; i++)
                sum[i] = !tile && more ? SWV_LOAD(o[i % NW] + i / NW * dvp) : SWV_SET1(0.0f);
            for (k = group[0]; k < group[0] + group[1]; k++) {
                SWA__FN(value_rows) in;
                SWA__FN(stream) pf;
                SWA__FN(few_values_at)(b, group, part, b->tile[k].v_type, k * SWA__TILE, &in, &pf);
                SWV_BY_FLOATS(T, b->tile[k].v_type,
                              SWA__FN(rounded_rows)(tile, R, T, to->p + k * SWA__TILE, in, pf,
                                                    sum););
            }
            if (tile)
                SWV_UNROLL for (i = 0; i < R * NW; i++) {
                    was = more ? SWV_LOAD(o[i % NW] + i / NW * dvp) : SWV_SET1(0.0f);
                    sum[i] = SWV_ADD(was, SWV_ADD(sum[i], sum[R * NW + i]));
                }
            /* dims that are there twice are stored twice */
            SWV_UNROLL for (i = 0; i < R * NW; i++)
                SWV_STORE(o[i % NW] + i / NW * dvp, sum[i]);
        }
        more |= some != 0;
    }
}

SWA__NOINLINE SWV_TARGET void SWA__FN(rounded_values)(int rows, const swa__block *b,
                                                      const int range[4], const swa__pv *x) {
    const int tile = b->g->form != SWA__SINGLES;
    swa__pv four = *x;

    if (rows == 8 && !x->any) {
#if SWV_ROUNDS == 16
        if (tile) SWA__FN(rounded_bundles)(1, 8, b, range, x);
        else
#endif
            SWA__FN(rounded_bundles)(0, 8, b, range, x);
        return;
    }
    for (; rows > 0; rows -= 4, four.p += 4 * SWA_BLOCK, four.o += 4 * b->g->dvp)
        if (tile) SWA__FN(rounded_bundles)(1, 4, b, range, &four);
        else SWA__FN(rounded_bundles)(0, 4, b, range, &four);
}
#endif

#ifdef SWV_EIGHT
/* Eight rows, one vector of keys in f32 or two narrow ones, and SWV_EIGHT of dims at a time: q is
   that of two steps of four. Few rows are eight only where swa__few_most says so, and there these
   dims divide dvp. */
SWA__NOINLINE SWV_TARGET void SWA__FN(few_keys8)(const swa__block *b, const float *q, float *s,
                                                 int v0, int v1) {
    int type, v[2];

    for (v[0] = v0; v[0] < v1; v[0] = v[1]) {
        type = b->tile[v[0]].k_type;
        v[1] = v[0] + 1;
        if (type == SWA_F32) {
            SWA__FN(few_qk)(0, 8, 1, b, q, s, v);
        } else {
            if (v[1] < v1 && b->tile[v[1]].k_type == type) v[1]++;
            SWA__HOLDS(b->tile[v[0]].k_type != SWA_F32);
            SWA__FN(few_qk)(0, 8, SWV_INDEX, b, q, s, v);
        }
    }
}

SWA__NOINLINE SWV_TARGET void SWA__FN(few_values8)(const swa__block *b, const int range[4],
                                                   const swa__pv *x) {
    int d;

    for (d = 0; d < b->g->dvp; d += SWV_EIGHT * SWV_N)
        SWA__FN(few_dims)(8, SWV_EIGHT, b, range, x, d, SWV_EIGHT * SWV_N);
}
#endif
#if SWA__LIGHT
#  pragma GCC pop_options
#endif

#ifdef SWV_LOADED
/* p.v of four rows over f32 as swa__likes_streams says, some keys at a time: of each row its first
   64 dims are loaded, and then all its others, which later passes find in L1. So loads walk V in
   the order of memory, without an end in sight; half rows alone are no order that the CPU follows.
   With more keys memory is idle in the later passes (16 keys of 128 dims 1.015 of the step, 32
   1.04), with fewer sums come and go too often (4 keys 1.1). And nothing is computed beside the
   loads: a CPU sees as many lines ahead as it holds instructions. dvp is a multiple of 64. */
SWA__NOINLINE SWV_TARGET void SWA__FN(few_stream)(const swa__block *b, const int range[4],
                                                  const swa__pv *x) {
    enum { NW = 64 / SWV_N, KEYS = SWA__TILE / 2 };
    const int dvp = b->g->dvp;
    SWV acc[4][NW], v[NW];
    int d, i, j, k, n, r, end;

    if (!x->more) memset(x->o, 0, (size_t)(4 * dvp) * sizeof(float));
    for (r = 0; r < 4; r += 2)
        for (k = range[r]; k < range[r + 1]; k = end) {
            /* not swa__tile_of: with it gcc spills, and a step from memory takes 1.07 of its time */
            const swa__tile *t = &b->tile[k / SWA__TILE];
            const float *first = (const float *)t->v + k % SWA__TILE * t->v_token;

            end = swa__min(k / KEYS * KEYS + KEYS, range[r + 1]);
            for (d = 0; d < dvp; d += 64) {
                const float *p = x->p + k, *row = first + d;
                const int64_t next = t->v_token;
                float *o = x->o + d, *at;

                SWV_UNROLL for (i = 0; i < 4; i++) {
                    at = o + i * dvp;
                    SWA__APART(at);
                    SWV_UNROLL for (j = 0; j < NW; j++) acc[i][j] = SWV_LOAD(at + j * SWV_N);
                }

                for (n = end - k; n > 0; n--, row += next, p++) {
                    SWV_UNROLL for (j = 0; j < NW; j++) v[j] = SWV_LOAD(row + j * SWV_N);
                    SWV_UNROLL for (j = 0; j < NW; j++) SWV_LOADED(v[j]);
                    for (i = d == 0 ? 64 : dvp; i < dvp; i += 64) /* the row's rest */
                        SWV_UNROLL for (j = 0; j < NW; j++)
                            SWV_LOADED(SWV_LOAD(row + i + j * SWV_N));
                    SWV_UNROLL for (i = 0; i < 4; i++)
                        SWV_UNROLL for (j = 0; j < NW; j++)
                            acc[i][j] = SWV_FMA(SWV_SET1(p[i * SWA_BLOCK]), v[j], acc[i][j]);
                }

                SWV_UNROLL for (i = 0; i < 4; i++) {
                    at = o + i * dvp;
                    SWA__APART(at);
                    SWV_UNROLL for (j = 0; j < NW; j++) SWV_STORE(at + j * SWV_N, acc[i][j]);
                }
            }
        }
}
#endif

/* Row i's scores after modification and mask, written back; returns their maximum per lane. s2
   holds the scores with the sinks' own q, for the vectors [v[0], v[1]); the window's are [v[2],
   v[3]). Keys and a row's bounds are compared as floats, which hold 0 to 256 exactly. In the plain
   case (window alone, nothing modified) a vector inside both edges is only read. */
static SWV_TARGET SWV SWA__FN(few_mask)(const swa__block *b, const swa__sight *n, int i, float *s,
                                        const float *s2, const int v[4]) {
    const swa__geo *g = b->g;
    SWV none = SWV_SET1(SWA__NONE), top = none, first = SWV_SET1(n->first[i]),
        last = SWV_SET1(n->last[i]), zero = SWV_SET1(0.0f);
    const swa__biases biases = swa__bias_of(b);
    float bias[SWA__TILE];
    int x, from = v[0] < v[1] && v[0] < v[2] ? v[0] : v[2], to = v[1] > v[3] ? v[1] : v[3];

    if (v[0] >= v[1] && !swa__has_mods(n) && b->present == NULL) {
        int k, from_key = (int)n->first[i], to_key = (int)n->last[i];
        SWV scale = SWV_SET1(n->q_scale[1] != NULL ? n->q_scale[1][i] : 1.0f);
        for (k = from * SWV_N; k < to * SWV_N; k += SWV_N) { /* mask the edges, find the maximum */
            SWV a = SWV_LOAD(s + k);
            if (n->q_scale[1] != NULL) {
                a = SWV_MUL(a, scale);
                SWV_STORE(s + k, a);
            }
            /* only the vectors at an edge are masked, and written back */
            if (k < from_key || k + SWV_N > to_key) {
                SWV key = SWV_ADD(SWV_LOAD(swa__sides[1] + k % SWA__TILE),
                                  SWV_SET1((float)(k - k % SWA__TILE)));
                a = SWV_PICK(key, first, last, a, none);
                SWV_STORE(s + k, a);
            }
            top = SWV_MAX(top, a);
        }
        return top;
    }

    /* all that a key may need: sinks with a q of their own, modifications, keys that are missing */
    for (x = from; x < to; x++) {
        int k = x * SWV_N, in_sinks = x >= v[0] && x < v[1], in_window = x >= v[2] && x < v[3];
        SWV key = SWV_ADD(SWV_LOAD(swa__sides[1] + k % SWA__TILE),
                          SWV_SET1((float)(k - k % SWA__TILE))),
            a = none, e = none;
        SWV distance = zero, slope = zero, extra = zero;

        if (!in_sinks && !in_window) continue;
        if (swa__has_mods(n)) {
            distance = SWV_SUB(SWV_SET1(n->q[i]), key);
            slope = SWV_SET1(n->slope[i]);
            if (g->bias) {
                SWA__FN(bias)(&biases, n, i, k, SWV_N, 1, bias);
                extra = SWV_LOAD(bias);
            }
        }

        if (in_sinks) {
            e = SWV_LOAD(s2 + k);
            if (n->q_scale[0] != NULL) e = SWV_MUL(e, SWV_SET1(n->q_scale[0][i]));
            if (swa__has_mods(n)) e = SWA__FN(modify)(g, e, slope, distance, extra);
            e = SWV_PICK(key, SWV_SET1((float)n->lo[0]), SWV_SET1(n->sink[i]), e, none);
        }
        if (in_window) {
            a = SWV_LOAD(s + k);
            if (n->q_scale[1] != NULL) a = SWV_MUL(a, SWV_SET1(n->q_scale[1][i]));
            if (swa__has_mods(n)) a = SWA__FN(modify)(g, a, slope, distance, extra);
        }

        /* what the window hides is seen as a sink, or not at all */
        if (in_sinks || (float)k < n->first[i] || (float)(k + SWV_N) > n->last[i])
            a = SWV_PICK(key, first, last, a, e);
        if (b->present != NULL)
            a = SWV_PICK(SWV_LOAD(b->present + k), SWV_SET1(0.5f), SWV_SET1(2.0f), a, none);
        SWV_STORE(s + k, a);
        top = SWV_MAX(top, a);
    }
    return top;
}

/* p = exp2(s - m) in place over the vectors of both intervals; lanes: sums by key mod 16; then
   times V's scale, that of the row's tiles. */
static SWV_TARGET void SWA__FN(few_exp)(const swa__block *b, const swa__tile *tile, float *s,
                                        float m, const int v[4], float lanes[SWA__TILE]) {
    enum { PER = SWA__TILE / SWV_N };
    const int bf16 = swa__form_of(b->g) != SWA__PLAIN;
    SWV vm = SWV_SET1(m), sum[SWA__TILE / SWV_N], none, p;
    const int from = v[0] < v[1] && v[0] < v[2] ? v[0] : v[2], to = v[1] > v[3] ? v[1] : v[3],
              gap = v[0] < v[1] && v[1] < v[2] ? v[1] : -1;      /* to v[2] */
    int x, i;

    /* hidden keys, whose SWA__NONE is below -3.4e38, give 0 */
    none = bf16 ? SWA__FN(counts_from)(vm) : SWV_SET1(-3.4e38f);
    SWV_UNROLL for (i = 0; i < PER; i++) sum[i] = SWV_SET1(0.0f);

    /* tile by tile, so that lane n of vector i is key i*SWV_N + n mod 16 */
    for (x = from; x < to; x = x + PER == gap ? v[2] : x + PER) {
        const float *scale = tile[x / PER].v_scale;
        SWV_UNROLL for (i = 0; i < PER; i++) {
            float *at = s + (x + i) * SWV_N;
            SWV y = SWV_LOAD(at);

            if (bf16) SWA__FN(exp2_bf16)(1, &y, vm, none, &p);
            else p = SWV_FROM(y, none, SWA__FN(exp2)(SWV_SUB(y, vm)));
            sum[i] = SWV_ADD(sum[i], p);

            /* l is of p alone; the scale is V's */
            if (scale != NULL && bf16)
                p = SWA__FN(scale_to_bf16)(p, SWV_LOAD(scale + i * SWV_N));
            else if (scale != NULL) p = SWV_MUL(p, SWV_LOAD(scale + i * SWV_N));
#ifdef SWV_LOAD_PAIR
            /* in 16 bits p is half as long: it lies below all scores that are still to be read */
            if (SWV_PAIRED(b->g)) {
                SWV_STORE_UPPER((uint16_t *)(void *)s + (x + i) * SWV_N, p);
                continue;
            }
#endif
            /* bf16's chain takes the second number of a pair first */
            SWV_STORE(at, bf16 ? SWV_SWAP(p) : p);
        }
    }
    /* without lanes SWV_SWAP does nothing: here neighbours change places */
    SWA__ROLLED for (x = from; SWV_N == 1 && bf16 && x < to; x += 2) {
        float first = s[x];
        s[x] = s[x + 1];
        s[x + 1] = first;
    }

    SWV_UNROLL for (i = 0; i < PER; i++) SWV_STORE(lanes + i * SWV_N, sum[i]);
}

/* q.k of `rows` rows over the vectors [v, v1); qi: q as integers, for the tiles that are int8: the
   rows' sums, then their bytes, see swa__few_integers. */
static SWV_TARGET void SWA__FN(few_scores)(int rows, const swa__block *b, const float *q,
                                           const int32_t *qi, float *s, int v, int v1) {
    enum { PER = SWA__TILE / SWV_N };
    int end;

    (void)qi;
    for (; v < v1; v = end) {
        end = v1;
#ifdef SWV_DOTS
        /* a new row may have been staged as f32 */
        if (b->g->dots) {
            int dots = b->tile[v / PER].k_type == SWA_Q8;
            for (end = v + PER; end < v1 && (b->tile[end / PER].k_type == SWA_Q8) == dots;)
                end += PER;
            if (dots) {
                SWV_DOTS(rows, b, qi + rows, qi, s, v, end);
                continue;
            }
        }
#endif
#ifdef SWV_ROUNDS
        if (SWV_ROUNDED(b->g)) SWA__FN(rounded_keys)(rows, b, q, s, v, end);
        else
#endif
#ifdef SWV_LOAD_PAIR
        if (SWV_PAIRED(b->g)) SWA__FN(pair_keys)(rows, b, q, s, v, end);
        else
#endif
#ifdef SWV_EIGHT
        if (rows == 8) SWA__FN(few_keys8)(b, q, s, v, end);
        else
#endif
        if (rows == 4) SWA__FN(few_keys4)(b, q, s, v, end);
#if !SWA__SMALL
        else if (rows == 2) SWA__FN(few_keys2)(b, q, s, v, end);
#endif
        else SWA__FN(few_keys1)(b, q, s, v, end);
    }
}

/* The same for a block whose K tiles lie off the grid: scores as the tiles have them, then moved
   down to where their keys belong. What comes from the tile past the end goes by way of the sinks'
   scores, of which there are none. With a shift of 3:

       number in the tiles    0  1  2  3  4  ...  255 | 256  257  258 in last
       key of the block       .  .  .  0  1  ...  252 | 253  254  255

   at: the vector of tiles that stands for vector 0, of a KV head that is not the block's first; its
   tiles are not the last ones. */
static SWV_TARGET void SWA__FN(few_shifted)(int rows, const swa__block *b, const swa__sight *n,
                                            const float *q, const int32_t *qi, float *s, int at) {
    enum { PER = SWA__TILE / SWV_N, END = SWA_BLOCK / SWV_N };
    const int from = (n->lo[1] + b->shift) / SWA__TILE * PER,
              to = (n->hi[1] + b->shift + SWA__TILE - 1) / SWA__TILE * PER;
    float *last = s + SWA__FEW * SWA_BLOCK;
    int i;

    SWA__FN(few_scores)(rows, b, q, qi, s - at * SWV_N, from + at, (to < END ? to : END) + at);
    /* vector END is stored 256 numbers on, which is at `last`: row after row, as in s */
    if (to > END) SWA__FN(few_scores)(rows, b, q, qi, last - SWA_BLOCK, END, to);

    for (i = 0; i < rows; i++, s += SWA_BLOCK, last += SWA_BLOCK) {
        memmove(s, s + b->shift, (size_t)(SWA_BLOCK - b->shift) * sizeof(float));
        if (to > END) memcpy(s + SWA_BLOCK - b->shift, last, (size_t)b->shift * sizeof(float));
    }
}

/* q of the step that begins at row r: of steps [dk+dt][R] one behind the other, as many numbers lie
   before it as r rows have; of half a panel [dk/2][16] it is column r. */
SWV_INLINE const float *SWA__FN(few_q)(const swa__geo *g, const float *q, int r) {
    return q + (SWV_PAIRED(g) ? (size_t)r : (size_t)r * (size_t)(g->dk + g->dt));
}

/* Scores of the rows [row[0], row[1]) of q, which s begins with, over the vectors [v, v1), `most` at
   once, piece by piece, so that rows beyond those find K in L1. With 12 rows, four at once:

       keys     piece 0    piece 0    piece 0     piece 1    ...
       rows     0 .. 3     4 .. 7     8 .. 11     0 .. 3     ... */
static SWV_TARGET void SWA__FN(few_score_pieces)(const int row[2], int most, const swa__block *b,
                                                 const float *q, float *s, int v, int v1) {
    const swa__geo *g = b->g;
    const int type = v < v1 ? swa__tile_of(b, v * SWV_N)->k_type : SWA_F32,
              piece = swa__few_piece(row[1] - row[0] <= most, 16384, g->dk, type) / SWV_N;
    int r, end, step;

    for (; v < v1; v = end) {
        end = v1 - v < piece ? v1 : v + piece;
        for (r = row[0]; r < row[1]; r += step) {
            step = swa__few_pass(row[1] - r, most);
            SWA__FN(few_scores)(step, b, SWA__FN(few_q)(g, q, r), swa__few_integers(g, q, r),
                                s + (r - row[0]) * SWA_BLOCK, v, end);
        }
    }
}

/* p.v of all rows over the keys of range, in pieces likewise: the sums go on from one to the
   next. Rows of V that lie apart share so few sets of L1 that no piece would stay in it. */
static SWV_TARGET void SWA__FN(few_value_pieces)(int any, int rows, int most, const swa__block *b,
                                                 const int range[4], const float *p, float *o) {
    const swa__tile *t = range[2] < range[3] ? &b->tile[range[2] / SWA__TILE] : NULL;
    const int dvp = b->g->dvp, type = t != NULL ? t->v_type : SWA_F32,
              apart = t != NULL && t->v_token > dvp,
              wide = SWV_FEW(swa__few_step(rows)) * SWV_N, /* more dims take several passes */
              bytes = SWV_N == 8 ? 8192 : 16384,
              /* in the order of tiles a bundle is not torn */
              grain = SWV_ROUNDED(b->g) ? (int)SWA__SUMMED : (int)SWA__TILE,
              piece = (swa__few_piece(rows <= most || apart, bytes, dvp, type) + grain - 1)
                    & -grain;
    int some[4], r, step;
    swa__pv x;

    /* `some` is the first range, with a piece of the second; then pieces of that alone */
    memcpy(some, range, sizeof some);
    x.any = any;
    x.more = b->steps != SWA__STEPS;
    do {
        if (range[3] - some[2] > piece) some[3] = (some[2] & -grain) + piece;
        else some[3] = range[3];
        x.from = dvp > wide && some[2] < some[3] ? some[2] : -1;
        if (x.from >= 0) x.run = swa__run_end(b, x.from, some[3]);
        for (r = 0; r < rows; r += step) {
            x.p = p + r * SWA_BLOCK;
            x.o = o + r * dvp;
            step = swa__few_pass(rows - r, most);
            /* pairs go by 4 or 8 rows, a stream by 4 (swa__unit_streams); else any of 8, 4, 2, 1 */
#ifdef SWV_ROUNDS
            if (SWV_ROUNDED(b->g)) SWA__FN(rounded_values)(step, b, some, &x);
            else
#endif
#ifdef SWV_LOAD_PAIR
            if (SWV_PAIRED(b->g)) SWA__FN(pair_values)(step, b, some, &x);
            else
#endif
#ifdef SWV_EIGHT
            if (step == 8) SWA__FN(few_values8)(b, some, &x);
            else
#endif
#ifdef SWV_LOADED
            if (b->stream && step == 4) SWA__FN(few_stream)(b, some, &x);
            else
#endif
            if (step == 4) SWA__FN(few_values4)(b, some, &x);
#if !SWA__SMALL
            else if (step == 2) SWA__FN(few_values2)(b, some, &x);
#endif
            else SWA__FN(few_values1)(b, some, &x);
        }

        x.more = 1;
        some[1] = some[0];
        some[2] = some[3];
    } while (some[2] < range[3]);
}

/* A tree over 16 numbers, in place: [i] with [i+8], then with [i+4], 2 and 1, as everywhere. Levels
   of constant length, so that each becomes a vector operation, without branches. */
#define SWV_TREE(name, what) \
SWA__NOINLINE SWV_TARGET float SWA__FN(name)(float *p) { \
    int i, w; \
    SWV_UNROLL for (w = 8; w > 0; w /= 2) \
        SWV_UNROLL for (i = 0; i < w; i++) { \
            const float a = p[i], c = p[i + w]; \
            p[i] = what; \
        } \
    return p[0]; \
}

SWV_TREE(few_top, c > a ? c : a)
SWV_TREE(few_sum, a + c)
#undef SWV_TREE

/* The sight's intervals in whole tiles of keys, as vectors. */
SWV_INLINE void SWA__FN(few_vectors)(const swa__sight *n, int v[4]) {
    int i;

    for (i = 0; i < 2; i++) {
        v[2 * i] = n->lo[i] / SWA__TILE * SWA__TILE / SWV_N;
        v[2 * i + 1] = n->lo[i] < n->hi[i]
                         ? (n->hi[i] + SWA__TILE - 1) / SWA__TILE * SWA__TILE / SWV_N
                         : v[2 * i];
    }
}

/* The scores of all rows become p: masks, each row's maximum, p and its sum. `each` rows are of one
   KV head. Row after row in each loop: the rows' latencies overlap. */
SWV_INLINE SWV_TARGET void SWA__FN(few_weights)(const swa__block *b, const swa__sight *n, int each,
                                                const int v[4], float *s, const swa__total *to) {
    const float *s2 = s + SWA__FEW * SWA_BLOCK;
    const int rows = each * b->heads;
    const swa__tile *tile = b->tile;
    float lanes[4][16];                  /* maxima, then sums */
    int r, i, x, step, left = each;

    for (r = 0; r < rows; r += step) {
        step = swa__min(4, rows - r);
        for (i = r; i < r + step; i++)
            SWV_STORE(lanes[i - r],
                      SWA__FN(few_mask)(b, n, i, s + i * SWA_BLOCK, s2 + i * SWA_BLOCK, v));
        for (i = r; i < r + step; i++) {
            /* a vector gave SWV_N maxima, the tree takes 16 */
            for (x = SWV_N; x < SWA__TILE; x++) lanes[i - r][x] = SWA__NONE;
            /* of +0 and -0 either may have come out: make it +0 */
            to->m[i] = SWA__FN(few_top)(lanes[i - r]) + 0.0f;
        }
        for (i = r; i < r + step; i++) {
            SWA__FN(few_exp)(b, tile, s + i * SWA_BLOCK, to->m[i], v, lanes[i - r]);
            if (--left > 0) continue;
            tile += b->apart;            /* the next KV head's */
            left = each;
        }
        for (i = r; i < r + step; i++) to->l[i] = SWA__FN(few_sum)(lanes[i - r]);
    }
}

/* The same off the grid, step by step, into s, which is these rows'. at: see few_shifted. */
SWV_INLINE SWV_TARGET void SWA__FN(few_score_steps)(const int row[2], const swa__block *b,
                                                    const swa__sight *n, const float *q, float *s,
                                                    int at) {
    int r, step;

    for (r = row[0]; r < row[1]; r += step, s += step * SWA_BLOCK) {
        step = swa__few_step(row[1] - r);
        SWA__FN(few_shifted)(step, b, n, SWA__FN(few_q)(b->g, q, r), swa__few_integers(b->g, q, r),
                             s, at);
    }
}

#if SWV_N == 16 && !SWA__SMALL
/* q.k of four rows of each of two KV heads with the one tile of each, in f32: eight chains, where
   those of one head would wait for themselves. */
SWA__NOINLINE SWV_TARGET void SWA__FN(few_two)(int dims, const float *q, const swa__tile *one,
                                               const swa__tile *two, float *s) {
    const float *k0 = (const float *)one->k, *k1 = (const float *)two->k, *other = q + 4 * dims;
    SWV acc[8], x;
    int i;

    SWV_UNROLL for (i = 0; i < 8; i++) acc[i] = SWV_SET1(0.0f);
    for (; dims > 0; dims--, q += 4, other += 4, k0 += SWV_N, k1 += SWV_N) {
        x = SWV_LOAD(k0);
        SWV_UNROLL for (i = 0; i < 4; i++) acc[i] = SWV_FMA(SWV_SET1(q[i]), x, acc[i]);
        x = SWV_LOAD(k1);
        SWV_UNROLL for (i = 0; i < 4; i++) acc[4 + i] = SWV_FMA(SWV_SET1(other[i]), x, acc[4 + i]);
    }
    SWV_UNROLL for (i = 0; i < 8; i++) SWV_STORE(s + i * SWA_BLOCK, acc[i]);
}

/* The tile that KV head h and the one behind it have of their own, if few_two takes it; or NULL. */
SWV_INLINE const swa__tile *SWA__FN(few_lone)(const swa__block *b, int h, int rows,
                                              const int v[4]) {
    const swa__tile *t;

    if (rows != 4 || h + 1 >= b->heads || v[3] - v[2] != 1 || v[0] < v[1] || b->shift != 0
        || swa__tail_dims(b->g) > 0)
        return NULL;
    t = b->tile + h * b->apart + v[2];
    return t->k_type == SWA_F32 && t->k_scale == NULL && t[b->apart].k_type == SWA_F32 ? t : NULL;
}
#endif

/* One block, few rows: all scores, then row by row masks, maximum, p and its sum, then p.v. What
   lies between these is in s:

       s     [16 rows][256 keys]    scores of the window's keys; p, when few_mask has joined s2
       s2    [16 rows][256 keys]    scores of interval 0, the sinks, by q[0]

   Several KV heads go through each of these one after the other. o, m and l are this block's alone,
   from zero: that is what is folded, at once or in phase 1. */
static SWV_TARGET void SWA__FN(few)(const swa__block *b, const swa__sight *n, int rows,
                                    const float *const q[2], float *s, const swa__total *to) {
    const swa__geo *g = b->g;
    int v[4], range[4], keys[4], h, i, most = 4;
    /* pairs and what is rounded here go by four rows */
    const int all = SWV_PAIRED(g) || SWV_ROUNDED(g) || g->fours ? (rows + 3) / 4 * 4 : rows;

    /* the keys of p.v, which in bf16 takes whole tiles: there hidden keys have p = 0, V is
       staged */
    swa__ranges(n, swa__form_of(g) == SWA__PLAIN ? 1 : SWA__TILE, range);
#ifdef SWV_ROUNDS
    if (SWV_ROUNDED(g)) most = SWV_ROUNDS == 16 || g->form == SWA__SINGLES ? 8 : 4;
#endif
#ifdef SWV_EIGHT
    if (!SWV_ROUNDED(g) && all >= 8) most = swa__few_most(b, range, SWV_EIGHT * SWV_N);
#endif

    SWA__FN(few_vectors)(n, v);
    for (h = 0; h < b->heads && b->steps & SWA__STEP_QK; h++) {
        const int row[2] = { h * rows, h * rows + all }, at = h * b->apart * (SWA__TILE / SWV_N);
        float *own = s + row[0] * SWA_BLOCK, *tiles = own - at * SWV_N;
#if SWV_N == 16 && !SWA__SMALL
        const swa__tile *t = SWA__FN(few_lone)(b, h, rows, v);
        if (t != NULL) {
            SWA__FN(few_two)(g->dk, SWA__FN(few_q)(g, q[1], row[0]), t, t + b->apart,
                             own + v[2] * SWV_N);
            h++;
            continue;
        }
#endif
        if (b->shift != 0) {
            SWA__FN(few_score_steps)(row, b, n, q[1], own, at);
            continue;
        }
        SWA__FN(few_score_pieces)(row, most, b, q[0], tiles + SWA__FEW * SWA_BLOCK, v[0] + at,
                                  v[1] + at);
        SWA__FN(few_score_pieces)(row, most, b, q[1], tiles, v[2] + at, v[3] + at);
    }
    if (b->steps & SWA__STEP_P) SWA__FN(few_weights)(b, n, rows, v, s, to);

    for (h = 0; h < b->heads && b->steps & SWA__STEP_PV; h++) {
        const int at = h * b->apart * SWA__TILE;
        float *p = s + (h * rows * SWA_BLOCK - at), *o = to->o + h * rows * g->dvp;
        for (i = 0; i < 4; i++) keys[i] = range[i] + at;
        SWA__FN(few_value_pieces)(0, all, most, b, keys, p, o);
#ifdef SWV_ROUNDS
        if (SWV_ROUNDED(g) && all >= 8 && !SWA__FN(finite)(o, g->dvp))
            SWA__FN(few_value_pieces)(1, all, most, b, keys, p, o);
#endif
    }
    SWV_LEAVE();
}

#if SWA__INDEX
/* q.k of the step of `rows` rows from row r on, over the vectors [v[0], v[1]), into x->s [8][256];
   those before the vector that it returns are in their sums already. q lies by sixteens of rows,
   each as `few` has it. SWV_INDEX_ROWS and K in f32 are bound by arithmetic, and take what is wider
   (AVX-512) or asks for less (AVX2) than what reads a stream from memory. */
static SWV_TARGET int SWA__FN(index_scores)(int rows, swa__block *b, const swa__sight *n,
                                            const swa__scores *x, int r, const int v[2]) {
    const swa__geo *g = b->g;
    const float *rows16 = x->q + (size_t)(r / SWA__FEW) * x->q_stride,
                *q = rows16 + r % SWA__FEW * g->dk;
    const int32_t *qi = swa__few_integers(g, rows16, r % SWA__FEW);
    int range[2];

    range[0] = v[0];
    range[1] = v[1];
    if (b->shift != 0) {
        SWA__FN(few_shifted)(rows, b, n, q, qi, x->s, 0);
        return v[0];
    }

#if SWV_INDEX
    while (rows == b->added.rows && range[0] + 2 <= v[1]) {
        /* threes, and twos where those would leave one: a tile is two of AVX2 */
        const int step = SWV_INDEX > 2 && (v[1] - range[0]) % 3 == 0 ? SWV_INDEX : 2;
        SWA__HOLDS(b->tile[range[0] * SWV_N / SWA__TILE].k_type == SWA_F32);
        if (step > 2) SWA__FN(few_qk)(1, SWV_INDEX_ROWS, SWV_INDEX, b, q, x->s, range);
        else SWA__FN(few_qk)(1, SWV_INDEX_ROWS, 2, b, q, x->s, range);
        b->soon.p += g->dk / 4 * b->soon.lines * b->soon.apart;
        range[0] += step;
    }
#endif
    if (range[0] < v[1]) SWA__FN(few_scores)(rows, b, q, qi, x->s, range[0], v[1]);
    return b->added.sum != NULL ? range[0] : v[0];
}

/* Narrow K of the vectors [v[0], v[1]), which lies where the ring has it, to x->wide. */
static void SWA__FN(index_widen)(swa__block *b, const swa__scores *x, const int v[2]) {
    const size_t n = SWA__TILE * (size_t)b->g->dk;
    float *to = x->wide;
    int t;

    for (t = v[0] * SWV_N / SWA__TILE; t < v[1] * SWV_N / SWA__TILE; t++, to += n) {
        if (b->tile[t].k_type == SWA_F32) continue;
        x->widen(b->tile[t].k_type, b->tile[t].k, to, n);
        b->tile[t].k = to;
        b->tile[t].k_type = SWA_F32;
    }
}

#if SWV_INDEX
/* K that follows from p on is shared out to the rows: the first would wait for all of it, as no more
   than 16 lines are on their way to a core of Intel's. */
static void SWA__FN(index_soon)(swa__block *b, const swa__scores *x, const char *p) {
    const int bytes = x->bytes * SWV_INDEX_KEYS, /* while as many keys come by all rows */
        steps = x->rows / SWV_INDEX_ROWS * (b->g->dk / 4) * (SWV_INDEX_KEYS / (SWV_INDEX * SWV_N));

    b->soon.lines = steps > 0 ? (bytes / 64 + steps - 1) / steps : 0;
    b->soon.apart = b->soon.lines > 0 ? bytes / (steps * b->soon.lines) : 0;
    b->soon.p = p;
}
#endif

/* sum += w * max(least, q.k), in this order, so that a NaN stays one, for each list row after row:
   x->sum [lists][256], of `per` rows each. So few keys at a time that they stay in L1 while all
   rows come by:

       for SWV_INDEX_KEYS keys           or, by integers off the grid, all of an interval's
           for SWV_INDEX_ROWS, 4, 2, 1 rows  scores of these keys
               for each row                      into its list's sums

   A key's sum is one chain over its rows, so the order of keys does not show. */
static SWV_TARGET void SWA__FN(index)(swa__block *b, const swa__sight *n,
                                      const swa__scores *x) {
    /* own: so many rows fetch what follows as one stream, b->soon, through all tiles. Fewer rows
       then fetch "V", which is set to K, that is here already */
    const int own = SWV_INDEX > 0 && !b->g->dots && x->rows >= SWV_INDEX_ROWS && b->g->dk % 4 == 0;
    int range[4], v[2], r, i, j, k, step, end, left;
    SWV least;

    swa__ranges(n, SWA__TILE, range);
    b->added.rows = own ? SWV_INDEX_ROWS : 0;
    b->added.least = x->least;
    least = SWV_SET1(x->least);
#if SWV_INDEX
    SWA__FN(index_soon)(b, x, (const char *)b->tile[range[0] / SWA__TILE].v);
#endif
    for (i = 0; i < 4; i += 2) {
        for (k = range[i] / SWA__TILE; own && k < range[i + 1] / SWA__TILE; k++)
            b->tile[k].v = b->tile[k].k;
        for (v[0] = range[i] / SWV_N; v[0] < range[i + 1] / SWV_N; v[0] = v[1]) {
            v[1] = range[i + 1] / SWV_N;
            if (b->shift == 0 && v[1] > v[0] + SWV_INDEX_KEYS / SWV_N)
                v[1] = v[0] + SWV_INDEX_KEYS / SWV_N;
            /* off the grid are integers alone (swa__index_job), which are not widened */
            if (!b->g->dots) SWA__FN(index_widen)(b, x, v);

            for (r = 0; r < x->rows; r += step) {
                step = swa__few_pass(x->rows - r, own ? SWV_INDEX_ROWS : 4);
                b->added.w = x->w + r;
                b->added.sum =
                    step == b->added.rows && x->per % SWV_INDEX_ROWS == 0
                        ? x->sum + (size_t)(r / x->per) * SWA_BLOCK
                        : NULL;
                left = SWA__FN(index_scores)(step, b, n, x, r, v);
                for (j = 0; j < step; j = end) { /* a list's rows after another's */
                    const int list = (r + j) / x->per;
                    end = swa__min(step, (list + 1) * x->per - r);
                    for (k = left * SWV_N; k < v[1] * SWV_N; k += SWV_N) {
                        float *to = x->sum + (size_t)list * SWA_BLOCK + k;
                        SWV sum = SWV_LOAD(to);
                        int row = j;
                        for (; row < end; row++)
                            sum = SWV_FMA(
                                SWV_SET1(x->w[r + row]),
                                SWV_MAX(least, SWV_LOAD(x->s + row * SWA_BLOCK + k)), sum);
                        SWV_STORE(to, sum);
                    }
                }
            }
        }
    }
    SWV_LEAVE();
}
#endif

/* ---- many rows: lanes are (token, head) rows ----

   One micro-kernel, mk, serves all products of a panel: SWV_KEYS by SWV_VECTORS sums in registers,
   one number of a in all lanes times vectors of b, which has the panel's rows side by side. A step:

                                row p of b     SWV_VECTORS vectors of rows
       SWV_KEYS numbers of a,  .
       at a[i*rs+p*cs]   .                     SWV_KEYS x SWV_VECTORS sums
                         .

       q.k            i: keys    p: dims    a: K's tile [dk][16]      b: q [dk][nr]
       p.v            i: dims    p: keys    a: V's rows [key][dvp]    b: p [key][nr]
       p.v, V in K    i: dims    p: keys    a: K's tile again         b: p

   So scores and p lie as [key][nr], o as [dv][nr]: maximum, exp2 and sum go down the columns, and
   no number changes its lane between q's packing and out's unpacking.

   Section 12 brings one block after another, and to each block all panels of a unit: K and V were
   widened once for all of them, and come from L2. What a panel reads next, and the next block's K,
   is asked for a line at a time, one with each step of q.k. */

/* The micro-kernel's operands: a[i*rs + p*cs] and b[p][j], p < n; rs and cs in numbers. A chain
   goes on from call to call of mk, as long as acc does. */
typedef struct {
    size_t n, rs, cs;
    const float *a, *b;
    int fetches;                         /* a line per step, `line` bytes from one to the next:   */
                                         /* 1 into L2, 2 into L1                                  */
    const char *fetch;
    size_t line;
    size_t near;                         /* bytes ahead of a's reading that it goes from L2 into  */
                                         /* L1, see swa__fetches_near; 0: not asked for           */
} SWA__FN(operands);

/* One product, or the two of a pair: then a and b hold two bf16 in each lane. */
SWV_INLINE SWV_TARGET SWV SWA__FN(mul_add)(int pairs, SWV a, SWV b, SWV acc) {
#ifdef SWV_FMA2
    if (pairs) return SWV_FMA2(a, b, acc);
#endif
    (void)pairs;
    return SWV_FMA(a, b, acc);
}

#ifdef SWV_AT
/* The micro-kernel below for a[i*16 + p], SWV_N steps at a time: a row's numbers come by the
   vector. Returns how many steps. All registers are taken: what a step loads is not loaded before
   it, and acc stays where it is, or gcc copies sums to and fro. */
SWV_INLINE size_t SWA__FN(mk_across)(int rows, int nv, const float **a, const float **b, size_t n,
                                     SWV *acc) {
    SWV numbers[SWV_KEYS * SWV_VECTORS], x[SWV_VECTORS];
    size_t p;
    int i, j, u;

    /* a: a key or dim of the tile, 16 numbers; b: SWV_N rows of [nr] */
    for (p = 0; p + SWV_N <= n; p += SWV_N, *a += SWV_N, *b += SWV_N * nv * SWV_N) {
        SWV_UNROLL for (i = 0; i < rows; i++) numbers[i] = SWV_LOAD(*a + i * SWA__TILE);
        SWV_UNROLL for (u = 0; u < SWV_N; u++) {
            SWV_UNROLL for (j = 0; j < nv; j++) x[j] = SWV_LOAD(*b + (u * nv + j) * SWV_N);
            SWV_UNROLL for (i = 0; i < rows; i++)
                SWV_UNROLL for (j = 0; j < nv; j++)
                    acc[i * nv + j] = SWV_FMA(SWV_AT(numbers[i], u), x[j], acc[i * nv + j]);
            SWV_UNROLL for (i = 0; i < rows * nv; i++) SWV_PIN(acc[i]);
            __asm__ volatile("" : : : "memory");
        }
    }
    return p;
}
#endif

/* One step of mk, and on to the next: a line fetched, nv loads of b, rows numbers of a, and rows*nv
   products of them. */
SWV_INLINE SWV_TARGET void SWA__FN(mk_step)(int pairs, int rows, int nv, int step,
                                            SWA__FN(operands) *x, SWV *acc) {
    SWV b[SWV_VECTORS], a, numbers;
    int i, j;

    SWA__HOLDS(nv > 0);                  /* or gcc -O1 takes a lone vector for unset              */
    if (x->fetches) {
        if (x->fetches == 2) SWA__PREFETCH_L1(x->fetch);
        else SWA__PREFETCH(x->fetch);
        x->fetch += x->line;
    }

    SWV_UNROLL for (j = 0; j < nv; j++) b[j] = SWV_LOAD(x->b + j * SWV_N);
    SWV_UNROLL for (i = 0; i < rows; i++) {
        /* one vector: the instruction itself reads the number; several share a load of it */
#ifdef SWV_FMA2_AT
        if (pairs && nv == 1) {
            SWV_FMA2_AT(x->a + (size_t)i * x->rs, b[0], acc[i]);
            continue;
        }
#endif
        if (x->rs == 1) a = SWA__FN(nth)(rows % SWV_N == 0, x->a, i, &numbers);
        else a = SWV_SET1(x->a[(size_t)i * x->rs]);
        SWV_UNROLL for (j = 0; j < nv; j++)
            acc[i * nv + j] = SWA__FN(mul_add)(pairs, a, b[j], acc[i * nv + j]);
    }
    x->a += x->cs;
    x->b += step * nv * SWV_N;
}

/* acc[i*nv+j] += sum over p of a[i*rs + p*cs] * b[p][j]: q.k (rs 1, cs 16), p.v from V rows (rs 1,
   cs dvp) or from the K tile itself (rs 16, cs 1). In pairs every number is two. Of b every step-th
   row. */
SWV_INLINE SWV_TARGET void SWA__FN(mk)(int pairs, int rows, int nv, int step, SWA__FN(operands) x,
                                       SWV *acc) {
    const float *end;
    size_t p = 0;

#ifdef SWV_AT
    if (x.rs == SWA__TILE) p = SWA__FN(mk_across)(rows, nv, &x.a, &x.b, x.n, acc);
#endif
#ifdef SWV_TWICE
    /* p.v, whole panels; the first turn may be half a one. 2.5 % of p.v on Emerald Rapids, where a
       turn of one step (8 cycles) loses a quarter of a cycle */
    if (!pairs && x.rs == 1 && (rows == SWV_KEYS || x.fetches) && step == 1 && x.near > 0) {
        /* a loop of its own: with two steps a turn it is no faster than this */
        for (; p < x.n; p++) {
            SWA__PREFETCH_L1((const char *)x.a + x.near);
            SWA__FN(mk_step)(pairs, rows, nv, step, &x, acc);
        }
        return;
    }
    if (!pairs && x.rs == 1 && !x.fetches && rows == SWV_KEYS && nv == SWV_VECTORS && step == 1) {
        for (p = x.n; p > 0; p = (p - 1) & ~(size_t)1) {
            if (p % 2 == 0) SWA__FN(mk_step)(pairs, rows, nv, step, &x, acc);
            SWA__FN(mk_step)(pairs, rows, nv, step, &x, acc);
        }
        return;
    }
#endif
    /* counted by b: by a number of its own gcc makes addresses anew in every step, for 1.02 of the
       time of MLA's 16 heads */
    end = x.b + (x.n - p) * (size_t)(step * nv * SWV_N);
    SWV_STEPS while (x.b != end) SWA__FN(mk_step)(pairs, rows, nv, step, &x, acc);
}

/* A group of mr keys from k on and nv vectors of rows. sinks: of the sinks' own q; old: keys below
   it hold scores of those in s. Groups begin at multiples of mr, so that none lies in two tiles,
   and acc [mr][nv] is what lies in s from k on. */
typedef struct { int mr, nv, k, sinks, old; } SWA__FN(group);

/* Modification and mask of a group's scores, more than a window's plain edge. Out of line, and for
   panels of any width: few blocks come here. */
SWA__NOINLINE SWV_TARGET void SWA__FN(many_modify)(const swa__block *b, const swa__sight *n,
                                                   const SWA__FN(group) *of, const float *s,
                                                   SWV *acc) {
    const swa__geo *g = b->g;
    SWV none = SWV_SET1(SWA__NONE), distance = SWV_SET1(0.0f), extra = SWV_SET1(0.0f);
    const swa__biases biases = swa__bias_of(b);
    const int mr = of->mr, nv = of->nv, k = of->k;
    const swa__list *list = swa__list_of(b), *tree = swa__tree_of(b);
    float bias[SWV_KEYS * SWV_NR];       /* [mr][nv * SWV_N] */
    int i, j, x;

    /* The bias row by row: a row's columns lie side by side, but for a list's keys, each of which
       has its own. */
    for (x = 0; swa__has_mods(n) && g->bias && x < nv * SWV_N; x++) {
        if (list == NULL) SWA__FN(bias)(&biases, n, x, k, mr, nv * SWV_N, bias + x);
        for (i = 0; list != NULL && i < mr; i++) {
            const int64_t at = list->column[k + i] + (g->by_distance ? swa__distance(n->q[x]) : 0);
            bias[i * nv * SWV_N + x] = at >= 0 && at < biases.n ? n->bias[x][at] : 0.0f;
        }
    }

    for (i = 0; i < mr; i++)
        /* sights bound keys by their number in the block or list, a tree's by position */
        for (j = 0; j < nv; j++) {
            SWV key = SWV_SET1(tree != NULL ? -tree->distance[k + i] : (float)(k + i)),
                a = acc[i * nv + j];
            if (swa__has_mods(n)) {
                distance = SWV_SUB(SWV_LOAD(n->q + j * SWV_N), key);
                if (list != tree) distance = SWV_SET1(list->distance[k + i]);
                if (g->bias) extra = SWV_LOAD(bias + (i * nv + j) * SWV_N);
                a = SWA__FN(modify)(g, a, SWV_LOAD(n->slope + j * SWV_N), distance, extra);
            }

            /* the mask. Interval 0 comes first: what it leaves in s is what `old` speaks of */
            if (of->sinks)
                a = SWV_PICK(key, SWV_SET1((float)n->lo[0]), SWV_LOAD(n->sink + j * SWV_N), a,
                             none);
            /* what the window hides may be seen as a sink: then the score with the sinks' own q
               stays */
            else a = SWV_PICK(key, SWV_LOAD(n->first + j * SWV_N), SWV_LOAD(n->last + j * SWV_N), a,
                              k < of->old ? SWV_LOAD(s + (k + i) * nv * SWV_N + j * SWV_N) : none);
            if (b->present != NULL && b->present[k + i] < 0.5f) a = none;
            if (tree != NULL)
                a = SWV_PICK(SWV_LOAD(n->node + j * SWV_N), SWV_SET1(tree->in[k + i]),
                             SWV_SET1(tree->out[k + i]), a, none);
            acc[i * nv + j] = a;
        }
}

/* What the group of keys from k on fetches of the tile's next one, n lines: the first group all of
   it, or (pairs, where a step covers two dims) each its share. Where nothing is to be fetched, the
   first line of `own` again and again, which is in L1: that costs less than a second loop without
   the instruction. */
SWV_INLINE void SWA__FN(many_next)(int pairs, int mr, int fetch, const char *next, int k,
                                   SWA__FN(operands) *x) {
    x->fetches = 1;
    x->fetch = (const char *)x->a;
    x->line = 0;

    if (!fetch || next == NULL || (k % SWA__TILE != 0 && !pairs)) return;
    x->fetch = next + (size_t)(k % SWA__TILE / mr) * x->n * 64;
    x->line = 64;
}

/* The tail's part of a group's scores where keys with and without a scale meet in a tile: key by
   key, each as its own storage asks. A scale below 0 is SWA__UNSCALED. acc [mr][nv]. */
SWA__NOINLINE SWV_TARGET void SWA__FN(many_tail_mixed)(int pairs, int nv, const swa__block *b,
                                                       int k, const float *qt, float *acc) {
    const swa__tile *t = swa__tile_of(b, k);
    const int dt = swa__tail_dims(b->g), mr = SWV_MR(nv);
    SWA__FN(operands) x;
    int i, j;

    x.n = pairs ? (size_t)(dt + 1) / 2 : (size_t)dt;
    x.rs = 1;
    x.cs = SWA__TILE;
    x.b = qt;
    x.fetches = 0;
    x.fetch = NULL;
    x.line = 0;
    x.near = 0;

    for (i = 0; i < mr; i++, acc += nv * SWV_N) {
        const float scale = t->tail_scale[k % SWA__TILE + i];
        SWV sum[SWV_VECTORS], was;

        x.a = (const float *)t->tail + k % SWA__TILE + i;
        for (j = 0; j < nv; j++)
            sum[j] = scale >= 0.0f ? SWV_SET1(0.0f) : SWV_LOAD(acc + j * SWV_N);
        SWA__FN(mk)(pairs, 1, nv, 1, x, sum);
        for (j = 0; j < nv; j++) {
            was = SWV_LOAD(acc + j * SWV_N);
            SWV_STORE(acc + j * SWV_N,
                      scale >= 0.0f ? SWV_FMA(sum[j], SWV_SET1(scale), was) : sum[j]);
        }
    }
}

/* K's scale is not the tail's: it comes before the tail goes on in the chain. A group lies in one
   tile, so its scales are side by side. */
SWV_INLINE SWV_TARGET void SWA__FN(many_scale)(int nv, const swa__tile *t, int k, SWV *acc) {
    const int mr = SWV_MR(nv);
    int i, j;

    if (t->k_scale == NULL) return;
    SWV_UNROLL for (i = 0; i < mr; i++)
        SWV_UNROLL for (j = 0; j < nv; j++)
            acc[i * nv + j] = SWV_MUL(acc[i * nv + j], SWV_SET1(t->k_scale[k % SWA__TILE + i]));
}

/* The tail as the operands of a group's last stretch; x.b is there already. 0: there is none, or
   keys stored in two ways meet in its tile. */
SWV_INLINE SWV_TARGET int SWA__FN(many_tail)(int pairs, int nv, const swa__block *b, int k,
                                             int fetch, SWA__FN(operands) *x) {
    const swa__tile *t = swa__tile_of(b, k);
    const int dt = swa__tail_dims(b->g), mr = SWV_MR(nv);
    int i = 0;

    if (dt == 0) return 0;
    if (t->tail_scale != NULL)
        for (; i < mr; i++)
            if (t->tail_scale[k % SWA__TILE + i] < 0.0f) return 0;

    x->n = pairs ? (size_t)(dt + 1) / 2 : (size_t)dt;
    x->a = (const float *)t->tail + k % SWA__TILE;
    SWA__FN(many_next)(pairs, mr, fetch, t->next_tail, k, x);
    return 1;
}

/* A tail in q8 is a chain of its own, and its scale the last step of it: what K has given goes to
   memory meanwhile, for acc has all the registers. */
SWV_INLINE SWV_TARGET void SWA__FN(many_apart)(int nv, SWV *acc, float *before) {
    const int mr = SWV_MR(nv);
    int i;
    SWV_UNROLL for (i = 0; i < mr * nv; i++) {
        SWV_STORE(before + i * SWV_N, acc[i]);
        acc[i] = SWV_SET1(0.0f);
    }
}

SWV_INLINE SWV_TARGET void SWA__FN(many_joined)(int nv, const float *scale, const float *before,
                                                SWV *acc) {
    const int mr = SWV_MR(nv);
    int i, j;
    SWV_UNROLL for (i = 0; i < mr; i++)
        SWV_UNROLL for (j = 0; j < nv; j++)
            acc[i * nv + j] = SWV_FMA(acc[i * nv + j], SWV_SET1(scale[i]),
                                      SWV_LOAD(before + (i * nv + j) * SWV_N));
}

#if SWA__BF16
/* Kernels multiply in the order of SWA_BF16_TILE too, those of half panels where they take as many
   keys at a time as whole ones. */
#if defined(SWV_HALF_PANEL) && SWV_HALF_KEYS == SWV_KEYS
#  define SWV_HALF_SUMS
#endif
#define SWV_SUMMED \
    (!pairs && (nv == SWV_VECTORS || SWV_HALF_KEYS == SWV_KEYS) && g->form >= SWA__TILE_SINGLES)

/* What is there before the first sums: read in their place, without a question for each vector. */
static const float SWA__FN(zeros)[SWV_KEYS * SWV_NR] = { 0 };

/* See swa__summed. A bundle of 32 is two chains from zero; their sum goes to what out has:

       number of the bundle    0  1  2  3  4  5 ... 31
       chain                   0  1  0  1  0  1 ...  1      singles: every second row of a and b
       pairs, row              0  1  0  1  2  3 ...         rows (0, 2), (1, 3), (4, 6), (5, 7) ...:
                                                            every second row again */
SWV_INLINE SWV_TARGET void SWA__FN(sums_of)(int nv, const swa__summed *x, int rows, int more,
                                            float *out) {
#ifdef SWV_FMA2
    const int form = x->form;
#else
    const int form = SWA__TILE_SINGLES;
#endif
    const int nr = nv * SWV_N;
    SWA__FN(operands) in;
    float first[SWV_KEYS * SWV_NR];      /* chain 0's sums: acc holds one chain after the other */
    const float *was;
    SWV acc[SWV_KEYS * SWV_VECTORS];
    int r, at, end, chain, i;

    swa__zero(first, sizeof first);      /* or gcc takes it for unset on 32-bit Arm               */
    /* every second number of both, from 0 and from 1 on: the two chains of a bundle */
    in.rs = 1;
    in.cs = 2 * x->along;
    in.fetches = 0;
    in.fetch = NULL;
    in.line = 0;
    in.near = 0;

    for (r = 0; r < rows; r += SWV_KEYS, out += SWV_KEYS * nr)
        for (at = x->from; at < x->to; at = end) {
            const size_t from = (size_t)swa__stored(form, at - x->from);   /* rows before it */
            end = (at / SWA__SUMMED + 1) * SWA__SUMMED;
            if (end > x->to) end = x->to;

            for (chain = 0; chain < 2; chain++) {
                in.a = x->a + (from + (size_t)chain) * x->along + r;
                in.b = x->b + (from + (size_t)chain) * (size_t)nr;
                /* of an odd number of rows chain 0 has one more */
                in.n = (size_t)(swa__stored(form, end - at) + 1 - chain) / 2;
                SWV_UNROLL for (i = 0; i < SWV_KEYS * nv; i++) acc[i] = SWV_SET1(0.0f);
#ifdef SWV_FMA2
                if (form == SWA__TILE_PAIRS) SWA__FN(mk)(1, SWV_KEYS, nv, 2, in, acc);
                else
#endif
                SWA__FN(mk)(0, SWV_KEYS, nv, 2, in, acc);
                if (chain == 0)
                    SWV_UNROLL for (i = 0; i < SWV_KEYS * nv; i++)
                        SWV_STORE(first + i * SWV_N, acc[i]);
            }

            /* the two chains first, then what the bundles before have given */
            was = more || at > x->from ? out : SWA__FN(zeros);
            SWV_UNROLL for (i = 0; i < SWV_KEYS * nv; i++)
                SWV_STORE(out + i * SWV_N,
                          SWV_ADD(SWV_LOAD(was + i * SWV_N),
                                  SWV_ADD(SWV_LOAD(first + i * SWV_N), acc[i])));
        }
}

static SWV_TARGET void SWA__FN(sums)(const swa__summed *x, int rows, int more, float *out) {
#ifdef SWV_HALF_SUMS
    if (x->nr < SWV_NR) SWA__FN(sums_of)(SWV_HALF_PANEL, x, rows, more, out);
    else
#endif
    SWA__FN(sums_of)(SWV_VECTORS, x, rows, more, out);
    SWV_LEAVE();
}
#endif

/* K of mr keys from k on times q: one chain per sum, cut where what is fetched meanwhile
   changes. */
SWV_INLINE SWV_TARGET void SWA__FN(many_chains)(int pairs, int nv, const swa__block *b,
                                                const swa__sight *n, int k, const float *q,
                                                SWV *acc) {
    const swa__tile *t = swa__tile_of(b, k);
    const int mr = SWV_MR(nv), scaled = swa__tail_dims(b->g) > 0 && t->tail_scale != NULL;
    swa__stretch own[SWA__STRETCHES];
    int i, stretches;
    const swa__stretch *ahead = swa__many_ahead(b, n, pairs, k, mr, own, &stretches);
    float before[SWV_KEYS * SWV_NR];     /* sums of K, where the tail is a chain of its own       */
    SWA__FN(operands) x;

    SWV_UNROLL for (i = 0; i < mr * nv; i++) acc[i] = SWV_SET1(0.0f);
    x.rs = 1;
    x.cs = SWA__TILE;
    x.fetches = 1;
    x.near = (size_t)b->g->near;
    x.a = (const float *)t->k + k % SWA__TILE;
    x.b = q;
    /* the stretches' lines add up to all of K's dims: behind them x.b is at q's tail. Nothing to be
       fetched: the line that is read here, again and again, as in many_next. The tail is one turn
       more of this loop: in a loop of its own gcc kept the sums in memory, for 1.05 of MLA's time */
    for (i = 0; i <= stretches; i++) {
        if (i < stretches) {
            x.n = (size_t)ahead[i].lines;
            x.fetch = ahead[i].p != NULL ? ahead[i].p : (const char *)x.a;
            x.line = ahead[i].p != NULL ? (size_t)ahead[i].apart : 0;
        } else {
            SWA__FN(many_scale)(nv, t, k, acc);
            if (scaled) SWA__FN(many_apart)(nv, acc, before);
            if (!SWA__FN(many_tail)(pairs, nv, b, k, n->fetch, &x)) break;
        }
        SWA__FN(mk)(pairs, mr, nv, 1, x, acc);
        x.a += x.n * SWA__TILE;
        x.b += x.n * (size_t)(nv * SWV_N);
    }

    if (!scaled) return;
    if (i > stretches) {
        SWA__FN(many_joined)(nv, t->tail_scale + k % SWA__TILE, before, acc);
        return;
    }
    SWA__FN(many_tail_mixed)(pairs, nv, b, k, x.b, before);
    SWV_UNROLL for (i = 0; i < mr * nv; i++) acc[i] = SWV_LOAD(before + i * SWV_N);
}

/* Scores of a tile whose keys have changed places, back where they belong. */
SWV_INLINE SWV_TARGET void SWA__FN(many_turned)(int nv, const swa__tile *t, SWV *acc) {
    const int mr = SWV_MR(nv);
    SWV first;
    int i, j;

    if (!t->turned) return;
    SWV_UNROLL for (i = 0; i < mr * nv; i += 2 * nv)
        SWV_UNROLL for (j = i; j < i + nv; j++) {
            first = acc[j];
            acc[j] = acc[j + nv];
            acc[j + nv] = first;
        }
}

/* Keys from k on that a row's window does not show are hidden: those before its first key (side 0),
   those behind its last (1). How far k is from there, against a key's number: one comparison. Key
   k+i is not before first if k - first >= -i, and before last if last - (k+1) >= i: -i and i stand
   in swa__sides. */
SWV_INLINE SWV_TARGET void SWA__FN(many_edge)(int nv, const swa__sight *n, int k, SWV *acc) {
    const SWV from = SWV_SET1((float)k), to = SWV_SET1((float)(k + 1));
    const int mr = SWV_MR(nv), last = k + mr > n->full_hi;
    SWV far[SWV_VECTORS];
    int side = k >= n->full_lo, i, j;

    SWA__HOLDS(nv > 0);                  /* as in mk_step                                         */
    for (; side <= last; side++) {
        SWV_UNROLL for (j = 0; j < nv; j++)
            far[j] = side == 0 ? SWV_SUB(from, SWV_LOAD(n->first + j * SWV_N))
                               : SWV_SUB(SWV_LOAD(n->last + j * SWV_N), to);
        SWV_UNROLL for (i = 0; i < mr; i++)
            SWV_UNROLL for (j = 0; j < nv; j++)
                acc[i * nv + j] = SWV_SINCE(far[j], SWV_SET1(swa__sides[side][i]), acc[i * nv + j],
                                            SWV_SET1(SWA__NONE));
    }
}

/* Scores of the keys that the panel sees into s [256][nr], as sinks and then through the window;
   top is raised. Groups of mr keys, of which the first may begin before the interval and the last
   end behind it: what is computed there is hidden by the mask, since full_lo and full_hi lie
   within. A group of both intervals is computed twice, by either q, and its second mask chooses. */
SWV_INLINE SWV_TARGET void SWA__FN(many_qk)(int pairs, int nv, const swa__block *b,
                                            const swa__sight *n, const float *const q[2], float *s,
                                            SWV *top) {
    const int nr = nv * SWV_N, mr = SWV_MR(nv), tree = swa__tree_of(b) != NULL;
    float sums[SWA__SUMMED * SWV_NR], *at = sums; /* scores of a bundle of keys, or in s already */
    SWV acc[SWV_KEYS * SWV_VECTORS];
    int k, i, j, w, done, old = 0; /* old: keys below it hold sinks' scores */

    for (w = 0; w < 2; w++) {
        const int lo = n->lo[w] / mr * mr;
        if (n->lo[w] >= n->hi[w]) continue; /* no tile is staged for an empty interval */
        for (k = lo; k < n->hi[w]; k += mr) {
            const int edge = k < n->full_lo || k + mr > n->full_hi;

            /* done: scores come out of line; then, that they stand in s already */
            done = !pairs && n->scores != NULL;
            if (done) {
                swa__rows_fetch(n, k, mr);
                /* a bundle at a time; into s only where it is whole and no sinks' scores are still
                   wanted */
                if (k == lo || k % SWA__SUMMED == 0) {
                    at = k % SWA__SUMMED == 0 && k + SWA__SUMMED <= n->hi[w] && k >= old
                             ? s + k * nr
                             : sums;
                    n->scores(b, n, w, k, (n->hi[w] + mr - 1) / mr * mr, q[w], at);
                }
                SWV_UNROLL for (i = 0; i < mr * nv; i++)
                    acc[i] = SWV_LOAD(at + k % SWA__SUMMED * nr + i * SWV_N);
                done = at != sums;
            } else {
                SWA__FN(many_chains)(pairs, nv, b, n, k, q[w], acc);
                if (!pairs && swa__v_turned(b->g)) SWA__FN(many_turned)(nv, swa__tile_of(b, k), acc);
                if (n->q_scale[w] != NULL)
                    SWV_UNROLL for (i = 0; i < mr; i++)
                        SWV_UNROLL for (j = 0; j < nv; j++)
                            acc[i * nv + j] =
                                SWV_MUL(acc[i * nv + j], SWV_LOAD(n->q_scale[w] + j * SWV_N));
            }

            /* keys that all rows see need nothing, a window's plain edge a mask; the rest is
               rare */
            if (w == 0 || k < old || swa__has_mods(n) || b->present != NULL || (tree && edge)) {
                SWV rare[SWV_KEYS * SWV_VECTORS]; /* a copy: acc must not have an address, or leaves
                                            the registers */
                SWA__FN(group) of;

                of.mr = mr;
                of.nv = nv;
                of.k = k;
                of.sinks = w == 0;
                of.old = old;
                SWV_UNROLL for (i = 0; i < mr * nv; i++) rare[i] = acc[i];
                SWA__FN(many_modify)(b, n, &of, s, rare);
                SWV_UNROLL for (i = 0; i < mr * nv; i++) acc[i] = rare[i];
                done = 0;
            } else if (edge) {
                SWA__FN(many_edge)(nv, n, k, acc);
                done = 0;
            }

            SWV_UNROLL for (i = 0; i < mr; i++)
                SWV_UNROLL for (j = 0; j < nv; j++) top[j] = SWV_MAX(top[j], acc[i * nv + j]);
            if (done) continue;
            SWV_UNROLL for (i = 0; i < mr * nv; i++) SWV_STORE(s + k * nr + i * SWV_N, acc[i]);
        }
        old = k;
    }
}

/* p of `keys` neighbours, nr numbers from one to the next; stored times V's scale, unless that is
   NULL, and added to the keys' sums, [][SWV_VECTORS]. hide: hidden keys are told by their score;
   exp2 gives them 2^-126, and a row that sees none of the block, whose maximum is SWA__NONE, 1. */
SWV_INLINE SWV_TARGET void SWA__FN(exp_keys)(int keys, int nr, int hide, const float *scale,
                                             float *s, SWV top, SWV *sum) {
    SWV p[4];
    int i;

    SWV_UNROLL for (i = 0; i < keys; i++)
        p[i] = SWV_MAX(SWV_SUB(SWV_LOAD(s + i * nr), top), SWV_SET1(-126.0f));
    SWA__FN(exp2_near)(keys, p);
    SWV_UNROLL for (i = 0; i < keys; i++) {
        if (hide) p[i] = SWV_FROM(SWV_LOAD(s + i * nr), SWV_SET1(-3.4e38f), p[i]);
        sum[i * SWV_VECTORS] = SWV_ADD(sum[i * SWV_VECTORS], p[i]);
    }

    if (scale != NULL)
        SWV_UNROLL for (i = 0; i < keys; i++) p[i] = SWV_MUL(p[i], SWV_SET1(scale[i]));
    SWV_UNROLL for (i = 0; i < keys; i++) SWV_STORE(s + i * nr, p[i]);
}

/* p = exp2(s - m) in place for the keys of the ranges; l = 16 sums by key mod 16, then the tree.
   Of keys in [seen[0], seen[1]) none is hidden: they go four at once, all of them in one loop.
   Panels of any width share it. Sums are in memory, which is idle here: so keys come in their
   order. */
SWA__NOINLINE SWV_TARGET void SWA__FN(many_exp)(int nv, const swa__block *b, const int range[4],
                                                const int seen[2], float *s, const SWV *top,
                                                SWV *l) {
    const int nr = nv * SWV_N;
    SWV lanes[SWA__TILE][SWV_VECTORS];            /* the 16 sums of each row */
    float scales[SWA_BLOCK];
    const float *scale = swa__v_scales(b, range, scales);
    int i, j, k, r, w;

    swa__zero(lanes, sizeof lanes);
    for (r = 0; r < 4; r += 2)
        for (k = range[r]; k < range[r + 1];) {
            const int in = k % 4 == 0 && k >= seen[0] ? swa__min(range[r + 1], seen[1]) - k : 0,
                      n = in >= 4 ? 4 : 1, end = n == 4 ? k + in / 4 * 4 : k + 1;
            for (; k < end; k += n) {
                const int hide = k < seen[0] || k >= seen[1];
                const float *of = scale != NULL ? scale + k : NULL;
                SWV *sum = lanes[k % SWA__TILE];
                float *at = s + k * nr;
                if (n == 4)              /* outside of the next loop, or gcc asks in it            */
                    for (j = 0; j < nv; j++)
                        SWA__FN(exp_keys)(4, nr, 0, of, at + j * SWV_N, top[j], sum + j);
                else
                    for (j = 0; j < nv; j++)
                        SWA__FN(exp_keys)(1, nr, hide, of, at + j * SWV_N, top[j], sum + j);
            }
        }

    for (w = 8; w > 1; w /= 2)
        for (i = 0; i < w; i++)
            SWA__ROLLED for (j = 0; j < nv; j++) lanes[i][j] = SWV_ADD(lanes[i][j], lanes[i + w][j]);
    for (j = 0; j < nv; j++) l[j] = SWV_ADD(lanes[0][j], lanes[1][j]);
}

#if SWA__BF16
/* p of four keys in a row in bf16: rounded, summed, and stored in the form of the products, where s
   lies or before. */
SWV_INLINE SWV_TARGET void SWA__FN(exp_bf16)(int form, int nr, const float *s, float *to,
                                             const float *scale, SWV top, SWV *sum) {
    SWV y[4], p[4];
    int i, at;

    SWV_UNROLL for (i = 0; i < 4; i++) y[i] = SWV_LOAD(s + i * nr);
    SWA__FN(exp2_bf16)(4, y, top, SWA__FN(counts_from)(top), p);
    SWV_UNROLL for (i = 0; i < 4; i++) sum[i] = SWV_ADD(sum[i], p[i]);
    if (scale != NULL)
        SWV_UNROLL for (i = 0; i < 4; i++)
            p[i] = SWA__FN(scale_to_bf16)(p[i], SWV_SET1(scale[i]));

#ifdef SWV_PAIR
    if (form == SWA__PAIRS || form == SWA__TILE_AMX) {
        SWV_STORE(to, SWV_PAIR(p[0], p[1]));
        SWV_STORE(to + nr, SWV_PAIR(p[2], p[3]));
        return;
    }
    /* the earlier number of a chain is the upper one, which the instruction adds first */
    if (form == SWA__TILE_PAIRS) {
        SWV_STORE(to, SWV_PAIR(p[2], p[0]));
        SWV_STORE(to + nr, SWV_PAIR(p[3], p[1]));
        return;
    }
#endif
    /* one number a row; where one chain takes pairs, the second of a pair goes first */
    at = form == SWA__SINGLES ? nr : 0;
    SWV_UNROLL for (i = 0; i < 4; i++)
        SWV_STORE(to + (i & 2) * nr + (i & 1 ? nr - at : at), p[i]);
}

/* The same in bf16, over whole tiles, so that keys come in their order and four of them are two
   pairs; the sums by key mod 16 are all at hand. Panels of both widths share it. Pairs take half
   the room ([128][nr]), and as each four is read before it is stored, none is overwritten that is
   still wanted. */
SWA__NOINLINE SWV_TARGET void SWA__FN(many_exp_bf16)(int nv, int form, const swa__block *b,
                                                     const int range[4], float *s, const SWV *top,
                                                     SWV *l) {
    const int nr = nv * SWV_N;
    SWV sum[SWA__TILE];
    int i, j, k, r, w;

    for (j = 0; j < nv; j++) {
        const SWV most = top[j];
        swa__zero(sum, sizeof sum);
        for (r = 0; r < 4; r += 2)
            for (k = range[r]; k < range[r + 1]; k += SWA__TILE) {
                const float *scale = swa__tile_of(b, k)->v_scale, *from = s + k * nr + j * SWV_N;
                float *to = s + swa__stored(form, k) * nr + j * SWV_N;
                const int by = swa__stored(form, 4) * nr;
                SWA__ROLLED for (i = 0; i < SWA__TILE; i += 4, from += 4 * nr, to += by)
                    SWA__FN(exp_bf16)(form, nr, from, to, scale != NULL ? scale + i : NULL, most,
                                      sum + i);
            }
        /* the tree, as in many_exp */
        for (w = 8; w > 0; w /= 2)
            for (i = 0; i < w; i++) sum[i] = SWV_ADD(sum[i], sum[i + w]);
        l[j] = sum[0];
    }
}
#endif

/* A panel's p.v: V in `spans` stretches; more: o, times a, is added to the block's, times c. */
typedef struct {
    swa__v_span *span;
    int spans, more;
    SWV *a, *c;                          /* [nv] */
    const float *next;                   /* q of the panel behind this one, which is fetched      */
    float *o;                            /* [dv][nr]                                              */
} SWA__FN(panel_pv);

/* Rows d..d+rows-1 of o (dims) for a panel: the block's p.v from zero, folded into what is there.
   The sums never leave the registers in between: a chain runs over all spans, however V is cut. */
SWV_INLINE SWV_TARGET void SWA__FN(many_pv)(int rows, int pairs, int nv, const swa__geo *g,
                                            const SWA__FN(panel_pv) *of, int d) {
    const int nr = nv * SWV_N, turned = !pairs && swa__v_turned(g);
    const int row = rows == 1 && (d ^ turned) < g->dk ? d ^ turned : d;
    const int by = rows > 1 && turned ? nr : 0;
    float *even = of->o + (size_t)d * (size_t)nr + by, *odd = even + nr - 2 * by;
    const swa__v_span *span, *next;
    SWA__FN(operands) in;
    SWV acc[SWV_KEYS * SWV_VECTORS], x;
    int i, j;

    SWV_UNROLL for (i = 0; i < rows * nv; i++) acc[i] = SWV_SET1(0.0f);
    /* bit by bit: a unit's q and o are more than L2 keeps beside K and V */
    if (rows > 1) swa__fetch_lines(of->next + d * nr, rows * nr / 16);
    in.fetches = 0;
    in.fetch = NULL;
    in.line = 0;
    /* 16 keys ahead: rows 512 bytes apart share an eighth of L1, which keeps none of a pass */
    in.near = g->near > 0 ? SWA__TILE * (size_t)g->v_along * sizeof(float) : 0;

    for (span = of->span; span < of->span + of->spans; span++) {
        in.n = span->n;
        in.b = span->p;
        /* V in K's tiles: a key's dims lie 16 apart, its neighbours side by side. rs is a constant,
           or 16 addresses would be kept alive */
        if (swa__v_across(g) > 1) {
            in.rs = pairs ? SWA__TILE / 2 : SWA__TILE;
            in.cs = 1;
            in.a = span->v + (size_t)row * in.rs;
            /* half a panel: the next tile's lines, which L2 has and nothing foresees. Zen 5 takes
               0.96 of the time of 16 heads in bf16, 0.99 in f32; whole ones the same as without */
            in.fetches = rows > 1 && nv < SWV_VECTORS ? 2 : 0;
            next = span + 1 < of->span + of->spans ? span + 1 : span;
            in.fetch = (const char *)(next->v + (size_t)row * in.rs);
            in.line = 64;
            SWA__FN(mk)(pairs, rows, nv, 1, in, acc);
        } else {
            in.a = span->v + d;
            in.rs = 1;
            in.cs = (size_t)g->v_along;
            SWA__FN(mk)(pairs, rows, nv, 1, in, acc);
        }
    }

    /* of the first block o is not read: nobody has written it */
    SWV_UNROLL for (i = 0; i < rows; i++)
        SWV_UNROLL for (j = 0; j < nv; j++) {
            float *at = (i & 1 ? odd : even) + (i / 2 * 2 * nv + j) * SWV_N;
            x = of->more ? SWV_MUL(SWV_LOAD(at), of->a[j]) : SWV_SET1(0.0f);
            SWV_STORE(at, SWV_FMA(acc[i * nv + j], of->c[j], x));
        }
}

#if SWA__LISTS
/* p of a list's keys, block by block as many_block computes one. Pass after pass, since a block of
   few keys is a chain of latencies, and its end a branch that is guessed wrong. On the way fold[k]
   holds the block's maximum.

   A list names a few keys of many blocks, 256 of them in s and in the tiles at a time, one behind
   the other; list->start says where each block's begin. Blocks are what is folded, so l and o do
   not depend on which of them came together.

       many_block    one block     p, sum, fold of l and m       p.v of the block, folded into o
       list          32 at most    the same for each of them     for some dims: block after block

   A tree's block is one; a panel leaves out its keys behind start[1], so their sums are zeros. */
SWV_INLINE SWV_TARGET void SWA__FN(list_exp)(int nv, const swa__block *b, float *s) {
    swa__list *x = b->list;
    const int nr = nv * SWV_N, keys = x->start[x->blocks];
    SWV y[4], top[SWV_VECTORS];
    int g, i, j, k;

    SWA__HOLDS(nv > 0);                  /* as in mk_step                                         */

    /* the blocks' maxima, +0 for -0; places that fill a tile up are hidden first */
    for (g = 0; g < x->blocks; g++) {
        SWV_UNROLL for (j = 0; j < nv; j++) top[j] = SWV_SET1(SWA__NONE);
        for (k = x->start[g]; k < x->start[g + 1]; k++) {
            if (x->place[k] < 0)
                SWV_UNROLL for (j = 0; j < nv; j++)
                    SWV_STORE(s + k * nr + j * SWV_N, SWV_SET1(SWA__NONE));
            SWV_UNROLL for (j = 0; j < nv; j++)
                top[j] = SWV_MAX(top[j], SWV_LOAD(s + k * nr + j * SWV_N));
        }
        SWV_UNROLL for (j = 0; j < nv; j++)
            SWV_STORE(x->fold[g][1] + j * SWV_N, SWV_ADD(top[j], SWV_SET1(0.0f)));
    }

    /* p, four keys at a time, of whatever blocks: few have as many. Those behind the last one, of
       the last tile, are hidden */
    for (k = 0; k < x->sums; k++)
        for (j = 0; j < nv; j++) SWV_STORE(x->sum[k] + j * SWV_N, SWV_SET1(0.0f));
    for (k = keys; k % 4 != 0; k++)
        for (j = 0; j < nv; j++) SWV_STORE(s + k * nr + j * SWV_N, SWV_SET1(SWA__NONE));
    for (k = 0; k < keys; k += 4)
        for (j = 0; j < nv; j++) {
            float *p = s + k * nr + j * SWV_N;
            SWV_UNROLL for (i = 0; i < 4; i++) {
                const float *m = x->fold[x->block[k + i]][1] + j * SWV_N;
                y[i] = SWV_MAX(SWV_SUB(SWV_LOAD(p + i * nr), SWV_LOAD(m)), SWV_SET1(-126.0f));
            }
            SWA__FN(exp2_near)(4, y);
            SWV_UNROLL for (i = 0; i < 4; i++) {
                float *to = x->sum[x->to[k + i]] + j * SWV_N;
                y[i] = SWV_FROM(SWV_LOAD(p + i * nr), SWV_SET1(-3.4e38f), y[i]);
                SWV_STORE(to, SWV_ADD(SWV_LOAD(to), y[i]));
                SWV_STORE(p + i * nr, y[i]);
            }
        }

    /* the trees, in the order that swa__gather_sums has found */
    for (i = 0; i < x->adds; i++) {
        float *to = x->sum[x->add[i][0]];
        const float *from = x->sum[x->add[i][1]];
        SWV_UNROLL for (j = 0; j < nv; j++)
            SWV_STORE(to + j * SWV_N,
                      SWV_ADD(SWV_LOAD(to + j * SWV_N), SWV_LOAD(from + j * SWV_N)));
    }

    /* by themselves: asked for with each four keys, scales cost as much as all of this saves */
    for (k = 0; k < keys; k += SWA__TILE) {
        const float *scale = swa__tile_of(b, k)->v_scale;
        float *p = s + k * nr;
        for (i = 0; scale != NULL && i < SWA__TILE; i++, p += nr)
            for (j = 0; j < nv; j++)
                SWV_STORE(p + j * SWV_N, SWV_MUL(SWV_LOAD(p + j * SWV_N), SWV_SET1(scale[i])));
    }
}

/* Then folds, from left to right; from here on fold[g] holds what o and the block are multiplied
   by. */
SWV_INLINE SWV_TARGET void SWA__FN(list_folds)(int nv, swa__list *x, float *m, float *l) {
    const uint64_t one = 0x3f8000003f800000u;            /* 1 and 1 */
    int g, i, j;

    for (g = 0; g < x->blocks; g++) {
        const float *sum = x->sum[x->last[g]];
        uint64_t all = one;
        for (j = 0; j < nv; j++) {
            float *fold[2];
            uint64_t two = one;
            SWV was = SWV_LOAD(m + j * SWV_N), top, now, a, c, y;
            fold[0] = x->fold[g][0] + j * SWV_N;
            fold[1] = x->fold[g][1] + j * SWV_N;
            top = SWV_LOAD(fold[1]);
            now = SWV_MAX(was, top);
            a = SWA__FN(exp2)(SWV_SUB(was, now));
            c = SWA__FN(exp2)(SWV_SUB(top, now));
            y = SWV_MUL(SWV_LOAD(l + j * SWV_N), a);
            SWV_STORE(l + j * SWV_N, SWV_FMA(SWV_LOAD(sum + j * SWV_N), c, y));
            SWV_STORE(m + j * SWV_N, now);
            SWV_STORE(fold[0], a);
            SWV_STORE(fold[1], c);

            /* where no row's maximum has risen, o is not multiplied: times 1 is the same bits. Of
               numbers in [0, 1] only 1 has all of 1's bits; two at a time, without a branch */
            SWV_UNROLL for (i = 0; i < SWV_N; i += 2) {
                memcpy(&two, fold[0] + i, SWV_N > 1 ? sizeof two : sizeof(float));
                all &= two;
            }
        }
        x->same[g] = all == one;
    }
}

/* Then p.v. One key's share of `rows` dims from d on: s is its p, v its V, of which dims lie `across`
   apart, as in many_pv. */
SWV_INLINE SWV_TARGET void SWA__FN(list_key)(int rows, int across, int nv, const float *s,
                                             const float *v, int d, SWV *acc) {
    SWV p[SWV_VECTORS], y;
    int i, j;

    SWA__APART(v);
    SWV_UNROLL for (j = 0; j < nv; j++) {
        p[j] = SWV_LOAD(s + j * SWV_N);
        /* of 16 registers none is free: gcc would load p again for each dim */
        if (SWV_DIMS == 2 && SWV_N > 1) SWA__BEHIND(p[j]);
    }
    SWV_UNROLL for (i = 0; i < rows; i++) {
        y = SWV_SET1(v[(d + i) * across]);
        SWV_UNROLL for (j = 0; j < nv; j++)
            acc[i * nv + j] = SWV_FMA(y, p[j], acc[i * nv + j]);
    }
}

/* `rows` dims of o stay in registers while block after block is folded into them: acc is the
   block's sum, sum what o has come to. x->v says where each key's V is, as neighbours may lie
   anywhere. A block of four keys is 24 products of AVX2: what stands beside them costs as much, so
   the first key takes the zeros, pointers go on from block to block (gcc, left alone, computes
   again where they have come to), and factors are asked for once. */
SWV_INLINE SWV_TARGET void SWA__FN(list_dims)(int rows, int across, int nv, const swa__list *x,
                                              const swa__pv *of, int d) {
    float *o = of->o + (size_t)d * (size_t)(nv * SWV_N);
    const float *const *v = x->v + x->start[0];
    const float *s = of->p + x->start[0] * nv * SWV_N;
    SWV acc[SWV_KEYS * SWV_VECTORS], sum[SWV_KEYS * SWV_VECTORS], zero = SWV_SET1(0.0f);
    int i, k;

    SWV_UNROLL for (i = 0; i < rows * nv; i++) sum[i] = of->more ? SWV_LOAD(o + i * SWV_N) : zero;

    for (k = 0; k < x->blocks; k++) {
        const float *const *end = x->v + x->start[k + 1];

        /* the block by itself, from zero, key after key; of a tree it may be empty */
        SWV_UNROLL for (i = 0; i < rows * nv; i++) acc[i] = zero;
        if (v < end) {
            SWA__FN(list_key)(rows, across, nv, s, *v++, d, acc);
            s += nv * SWV_N;
            SWV_STEPS for (; v < end; v++, s += nv * SWV_N) {
                SWA__APART(v);
                SWA__APART(s);
                SWA__FN(list_key)(rows, across, nv, s, *v, d, acc);
            }
        }

        /* then folded, as many_pv does, but that factors of 1 are left out */
        if (!x->same[k])
            SWV_UNROLL for (i = 0; i < rows * nv; i++)
                sum[i] = SWV_MUL(sum[i], SWV_LOAD(x->fold[k][0] + i % nv * SWV_N));
        SWV_UNROLL for (i = 0; i < rows * nv; i++)
            sum[i] = SWV_FMA(acc[i], SWV_LOAD(x->fold[k][1] + i % nv * SWV_N), sum[i]);
    }

    SWV_UNROLL for (i = 0; i < rows * nv; i++) SWV_STORE(o + i * SWV_N, sum[i]);
}

/* Whole steps of `rows` dims; returns the first dim behind them. Each step fetches some lines of
   the rows that the next batch will gather: per_step of them, from row number `ahead` on. */
SWV_INLINE SWV_TARGET int SWA__FN(list_pv)(int rows, int across, int nv, const swa__block *b,
                                           const swa__pv *of) {
    swa__list *x = b->list;
    int d;

    for (d = 0; d + rows <= b->g->dv; d += rows) {
        swa__list_fetch(x);
        SWA__FN(list_dims)(rows, across, nv, x, of, d);
    }
    return d;
}

#if SWA__LIGHT                           /* a loop's head once: it is entered once a pass         */
#  pragma GCC push_options
#  pragma GCC optimize("no-tree-ch")
#endif
#define SWV_LIST(name, rows, nv) \
SWA__NOINLINE SWV_TARGET void SWA__FN(name)(const swa__block *b, const swa__sight *n, float *s, \
                                            const swa__total *to) { \
    const int across = swa__v_across(b->g), dv = b->g->dv; \
    swa__pv of; \
    int d; \
    of.p = s; \
    of.o = to->o; \
    of.more = !n->first_block; \
    SWA__FN(list_exp)(nv, b, s); \
    SWA__FN(list_folds)(nv, b->list, to->m, to->l); \
    if (swa__list_long(b)) return; \
    /* a constant, as in many_pv; what fills no step of dims goes by two, then one by one */ \
    if (across == SWA__TILE) d = SWA__FN(list_pv)(rows, SWA__TILE, nv, b, &of); \
    else d = SWA__FN(list_pv)(rows, 1, nv, b, &of); \
    for (; rows % 3 == 0 && d + 2 <= dv; d += 2) \
        SWA__FN(list_dims)(2, across, nv, b->list, &of, d); \
    for (; d < dv; d++) SWA__FN(list_dims)(1, across, nv, b->list, &of, d); \
}

SWV_LIST(list, SWV_DIMS, SWV_VECTORS)
#ifdef SWV_HALF_PANEL
SWV_LIST(list_half, SWV_HALF_DIMS, SWV_HALF_PANEL)
#endif
#undef SWV_LIST
#if SWA__LIGHT
#  pragma GCC pop_options
#endif
#endif

/* Scores of keys that nobody computes, in tiles of which p is computed whole: hidden. Those are in
   the first and the last tile (bundle) of an interval; what many_qk computes there it writes over.
   grain is a power of two: keys of a tile or of a bundle. */
SWA__NOINLINE SWV_TARGET void SWA__FN(many_hide)(int nv, int grain, const swa__sight *n, float *s) {
    int w, e, k, i;

    for (w = 0; w < 2; w++)
        for (e = 0; e < 2 && n->lo[w] < n->hi[w]; e++) {
            k = e == 0 ? n->lo[w] : n->hi[w];
            if (k % grain == 0) continue;
            SWA__ROLLED for (i = 0; i < grain * nv; i++)
                SWV_STORE(s + (k / grain * grain * nv + i) * SWV_N, SWV_SET1(SWA__NONE));
        }
}

#if SWA__BF16
/* p.v in the order of SWA_BF16_TILE, folded into o, 32 dims at a time. fold [2][SWV_NR]: what o,
   and this, are multiplied by. */
SWA__NOINLINE SWV_TARGET void SWA__FN(summed_pv)(int nr, const swa__block *b, const int range[4],
                                                 const swa__pv *of, const float *fold) {
    float *o = of->o, sums[SWA__SUMMED * SWV_NR];
    int d, j;

    for (d = 0; d < b->g->dv; d += SWA__SUMMED) {
        const float *sum = sums, *end = sums + swa__min(SWA__SUMMED, b->g->dv - d) * nr;
        swa__summed_values(b->g, b, range, d, nr, of->p, sums);
        /* of the first block o is not read: nobody has written it */
        for (; sum < end; sum += nr, o += nr) {
            const float *was = of->more ? o : SWA__FN(zeros);
            for (j = 0; j < nr; j += SWV_N)
                SWV_STORE(o + j, SWV_FMA(SWV_LOAD(sum + j), SWV_LOAD(fold + SWV_NR + j),
                                         SWV_MUL(SWV_LOAD(was + j), SWV_LOAD(fold + j))));
        }
    }
}
#endif

/* m and l of the block, top and sum, folded into `to`; a, c: what the sums of before and the
   block's are multiplied by. A row that has seen nothing yet has m = SWA__NONE, l = 0, and one that
   sees nothing here gives that: either way the other side is multiplied by exp2(0) = 1. */
SWV_INLINE SWV_TARGET void SWA__FN(many_maxima)(int nv, const SWV *top, const SWV *sum,
                                                const swa__total *to, SWV *a, SWV *c) {
    int j;
    SWV_UNROLL for (j = 0; j < nv; j++) {
        SWV was = SWV_LOAD(to->m + j * SWV_N), now = SWV_MAX(was, top[j]);
        a[j] = SWA__FN(exp2)(SWV_SUB(was, now));
        c[j] = SWA__FN(exp2)(SWV_SUB(top[j], now));
        SWV_STORE(to->m + j * SWV_N, now);
        was = SWV_MUL(SWV_LOAD(to->l + j * SWV_N), a[j]);
        SWV_STORE(to->l + j * SWV_N, SWV_FMA(sum[j], c[j], was));
    }
}

/* Keys [seen[0], seen[1]) of which none is hidden. Only a window's plain edge tells: beside sinks,
   missing keys or modifications it is all or nothing. */
SWV_INLINE SWV_TARGET void SWA__FN(many_seen)(const swa__block *b, const swa__sight *n,
                                              int seen[2]) {
    const int any = n->lo[0] < n->hi[0] || b->present != NULL, mods = swa__has_mods(n);
    /* a bias hides keys anywhere */
    const int edge = n->lo[1] < n->full_lo || n->hi[1] > n->full_hi || b->g->bias;

    seen[0] = mods ? 0 : n->full_lo;
    seen[1] = any || (mods && edge) ? 0 : mods ? SWA_BLOCK : n->full_hi;
}

/* p.v of a panel's block, or of a list's blocks of many keys one after the other, folded into o dim
   by dim. of: all but what the spans are, and `more`. */
SWV_INLINE SWV_TARGET void SWA__FN(many_values)(int pairs, int nv, const swa__block *b,
                                                const swa__sight *n, SWA__FN(panel_pv) *of,
                                                int range[4], const float *s) {
    const swa__geo *g = b->g;
    const int mr = SWV_MR(nv);
    swa__list *list = pairs ? NULL : swa__list_of(b);
    int i, j, d;

    for (i = 0; i == 0 || (list != NULL && i < list->blocks); i++) {
        if (list != NULL) {
            range[0] = range[1] = range[2] = list->start[i];
            range[3] = list->start[i + 1];
            for (j = 0; j < nv; j++) {
                of->a[j] = SWV_LOAD(list->fold[i][0] + j * SWV_N);
                of->c[j] = SWV_LOAD(list->fold[i][1] + j * SWV_N);
            }
        }
        of->more = i > 0 || !n->first_block;
        of->spans = swa__v_spans(b, range, pairs ? 2 : 1, nv * SWV_N, s, of->span);
        for (d = 0; d + mr <= g->dv; d += mr) {
            if (list != NULL) swa__list_fetch(list);
            SWA__FN(many_pv)(mr, pairs, nv, g, of, d);
        }
        for (; d < g->dv; d++) SWA__FN(many_pv)(1, pairs, nv, g, of, d);
    }
}

/* One block, one panel. pairs: products by the bf16 instruction. s is [256][nr] throughout: scores,
   then p of the same keys; what it holds of keys outside the ranges is never read. */
SWV_INLINE SWV_TARGET void SWA__FN(many_block)(int pairs, int nv, const swa__block *b,
                                               const swa__sight *n, const float *const q[2],
                                               float *s, const swa__total *to) {
    const swa__geo *g = b->g;
    const int form = swa__form_of(g);
    SWA__FN(panel_pv) of;
    SWV top[SWV_VECTORS], sum[SWV_VECTORS], a[SWV_VECTORS], c[SWV_VECTORS];
    swa__v_span span[2 * SWA_BLOCK / SWA__TILE];   /* each interval's tiles, if none adjoins */
    int range[4], j;

    SWA__HOLDS(nv > 0);                  /* as in mk_step                                         */

    /* scores, maxima; this first: SSE behind the first vector waits hundreds of cycles on Intel */
    swa__ranges(n, swa__key_grain(form), range);
    SWV_UNROLL for (j = 0; j < nv; j++) top[j] = SWV_SET1(SWA__NONE);
    if (form != SWA__PLAIN) SWA__FN(many_hide)(nv, swa__key_grain(form), n, s);
    SWA__FN(many_qk)(pairs, nv, b, n, q, s, top);

#if SWA__LISTS
    if (!pairs && b->list != NULL) {
#ifdef SWV_HALF_PANEL
        if (nv < SWV_VECTORS) SWA__FN(list_half)(b, n, s, to);
        else
#endif
        SWA__FN(list)(b, n, s, to);
        if (!swa__list_long(b)) return;
        /* blocks bring their own */
        SWV_UNROLL for (j = 0; j < nv; j++) a[j] = c[j] = SWV_SET1(0.0f);
        goto values;
    }
#endif

    /* a maximum of -0: +0; p, and its sum */
    SWV_UNROLL for (j = 0; j < nv; j++) top[j] = SWV_ADD(top[j], SWV_SET1(0.0f));
#if SWA__BF16
    if (pairs || form != SWA__PLAIN) SWA__FN(many_exp_bf16)(nv, form, b, range, s, top, sum);
    else
#endif
    {
        int seen[2];
        SWA__FN(many_seen)(b, n, seen);
        SWA__FN(many_exp)(nv, b, range, seen, s, top, sum);
    }

    SWA__FN(many_maxima)(nv, top, sum, to, a, c);

    /* p.v, folded into o dim by dim */
#if SWA__BF16
    if (SWV_SUMMED) {
        float fold[2 * SWV_NR];
        swa__pv x;
        memcpy(fold, a, sizeof a);
        memcpy(fold + SWV_NR, c, sizeof c);
        x.p = s;
        x.o = to->o;
        x.more = !n->first_block;
        SWA__FN(summed_pv)(nv * SWV_N, b, range, &x, fold);
        return;
    }
#endif
#if SWA__LISTS
values:
#endif
    of.span = span;
    of.a = a;
    of.c = c;
    of.o = to->o;
    of.next = q[1] + (g->dk + swa__tail_dims(g)) * nv * SWV_N;
    SWA__FN(many_values)(pairs, nv, b, n, &of, range, s);
}

#define SWV_MANY(name, pairs, nv) \
SWA__NOINLINE SWV_TARGET void SWA__FN(name)(const swa__block *b, const swa__sight *n, \
                                            const float *const q[2], float *s, \
                                            const swa__total *to) { \
    SWA__FN(many_block)(pairs, nv, b, n, q, s, to); \
    SWV_LEAVE(); \
}

/* what swa__kernels.many takes, by form and by width of the panel. Half a panel is for a unit's
   last rows, or all it has (MLA of 16 heads, four tokens of groups of four), see swa__panel_rows: 16
   of them. With AVX2, where that is two vectors of three and eight sums of twelve, it takes 0.8 of a
   whole one's time */
SWV_MANY(many, 0, SWV_VECTORS)
#ifdef SWV_HALF_PANEL
SWV_MANY(many_half, 0, SWV_HALF_PANEL)
#endif
#ifdef SWV_FMA2
SWV_MANY(many_pairs, 1, SWV_VECTORS)
#  ifdef SWV_HALF_PANEL
SWV_MANY(many_half_pairs, 1, SWV_HALF_PANEL)
#  endif
#endif
#undef SWV_MANY

/* ---- fold, finish, and the ways in and out ----

   Results of few rows are rows, o [rows][dvp]; of a panel columns, o [dv][nr]. finish and unpack
   give the same numbers of either, and fold and fold_panel the same folds. What the members of
   swa__kernels are given stands there. */

/* One block more, row by row. Its exponentials and sums are computed in vectors of equal lanes, so
   that they are those of the panels. What lies in o behind dv is folded too, and goes nowhere. */
static SWV_TARGET void SWA__FN(fold)(int rows, int dvp, const swa__total *to, const float *o,
                                     const float *m, const float *l) {
    float f[2 * SWV_N], *sum = to->o;
    int i, d;

    for (i = 0; i < rows; i++, sum += dvp, o += dvp) {
        float now = to->m[i] > m[i] ? to->m[i] : m[i];
        SWV a, c;

        /* a: what has been folded so far is multiplied by; c: this block */
        SWV_STORE(f, SWA__FN(exp2)(SWV_SET1(to->m[i] - now)));
        SWV_STORE(f + SWV_N, SWA__FN(exp2)(SWV_SET1(m[i] - now)));
        a = SWV_SET1(f[0]);
        c = SWV_SET1(f[SWV_N]);

        to->m[i] = now;
        SWV_STORE(f, SWV_FMA(SWV_SET1(l[i]), c, SWV_MUL(SWV_SET1(to->l[i]), a)));
        to->l[i] = f[0];
        for (d = 0; d < dvp; d += SWV_N)
            SWV_STORE(sum + d, SWV_FMA(SWV_LOAD(o + d), c, SWV_MUL(SWV_LOAD(sum + d), a)));
    }
    SWV_LEAVE();
}

/* The same for a panel and blocks without values (learned sink logits): o is multiplied alone. The
   zeros that a row's fold adds could change a zero's sign, which finish and unpack remove. */
static SWV_TARGET void SWA__FN(fold_panel)(int nr, int dv, const swa__total *to, const float *m,
                                           const float *l) {
    int d, j;

    for (j = 0; j < nr; j += SWV_N) {
        SWV was = SWV_LOAD(to->m + j), top = SWV_LOAD(m + j), now = SWV_MAX(was, top);
        SWV a = SWA__FN(exp2)(SWV_SUB(was, now)), c = SWA__FN(exp2)(SWV_SUB(top, now));

        SWV_STORE(to->m + j, now);
        was = SWV_MUL(SWV_LOAD(to->l + j), a);
        SWV_STORE(to->l + j, SWV_FMA(SWV_LOAD(l + j), c, was));
        for (d = 0; d < dv; d++) {
            float *at = to->o + d * nr + j;
            SWV_STORE(at, SWV_MUL(SWV_LOAD(at), a));
        }
    }
    SWV_LEAVE();
}

/* 1/l, or 0 for a row that saw nothing. */
SWV_INLINE SWV_TARGET SWV SWA__FN(inverse)(SWV l) {
    return SWV_PICK(l, SWV_SET1(FLT_MIN), SWV_SET1(FLT_MAX), SWV_DIV(SWV_SET1(1.0f), l),
                    SWV_SET1(0.0f));
}

/* o [rows][dvp] to the caller's rows. The last numbers of a row go by way of `numbers`: the
   caller's rows end at dv. */
static SWV_TARGET void SWA__FN(finish)(int rows, int dvp, int dv, const float *o, const float *l,
                                       float *const *out) {
    SWV zero = SWV_SET1(0.0f);
    float numbers[SWV_N];
    int i, d;

    SWA__HELD_LANES(zero);
    for (i = 0; i < rows; i++, o += dvp) {
        const SWV x = SWA__FN(inverse)(SWV_SET1(l[i]));
        for (d = 0; d + SWV_N <= dv; d += SWV_N)
            SWV_STORE(out[i] + d, SWV_FMA(SWV_LOAD(o + d), x, zero));
        if (d >= dv) continue;
        SWV_STORE(numbers, SWV_FMA(SWV_LOAD(o + d), x, zero));
        memcpy(out[i] + d, numbers, (size_t)(dv - d) * sizeof(float));
    }
    SWV_LEAVE();
}

/* The same of a panel, o [dv][nr]: SWV_N rows by as many dims at a time, transposed. The panel has
   whole vectors of rows; those past `rows` are nobody's. */
static SWV_TARGET void SWA__FN(unpack)(int nr, int rows, int dv, const float *o, const float *l,
                                       float *const *out) {
    SWV x[SWV_N], y, zero = SWV_SET1(0.0f);
    float numbers[SWV_N];
    int r, d, i;

    SWA__HELD_LANES(zero);
    for (r = 0; r < rows; r += SWV_N) {
        y = SWA__FN(inverse)(SWV_LOAD(l + r));
        for (d = 0; d + SWV_N <= dv; d += SWV_N) {
            SWV_UNROLL for (i = 0; i < SWV_N; i++)
                x[i] = SWV_FMA(SWV_LOAD(o + (d + i) * nr + r), y, zero);
            SWV_TRANSPOSE(x);
            SWV_UNROLL for (i = 0; i < SWV_N; i++)
                if (r + i < rows) SWV_STORE(out[r + i] + d, x[i]);
        }
        /* dims that fill no vector: a number of each row at a time */
        for (; d < dv; d++) {
            SWV_STORE(numbers, SWV_FMA(SWV_LOAD(o + d * nr + r), y, zero));
            for (i = 0; i < SWV_N && r + i < rows; i++) out[r + i][d] = numbers[i];
        }
    }
    SWV_LEAVE();
}

/* The other way: rows of any type become columns, [dim][nr], times mul. */
static SWV_TARGET void SWA__FN(pack)(const void *const *src, int type, int nr, int dim,
                                     float mul, float *dst) {
    const size_t es = swa__type_size(type);
    SWV x[SWV_N], y = SWV_SET1(mul);
    int r, d, i;

    for (r = 0; r < nr && dim >= SWV_N; r += SWV_N)
        for (d = 0; d < dim; d += SWV_N) {
            /* src ends at dim: the last vector takes some numbers again */
            const int from = d + SWV_N <= dim ? d : dim - SWV_N;
            const size_t at = (size_t)from * es;
            const void *const *row = src + r;
            SWV_BY_TYPE(type, SWA__APART(row); SWV_UNROLL for (i = 0; i < SWV_N; i++) x[i] =
                                  SWA__FN(load)(T, (const char *)row[i] + at););
            SWV_UNROLL for (i = 0; i < SWV_N; i++) x[i] = SWV_MUL(x[i], y);
            SWV_TRANSPOSE(x);
            SWV_UNROLL for (i = 0; i < SWV_N; i++)
                SWV_STORE(dst + (size_t)(from + i) * (size_t)nr + r, x[i]);
        }

    /* less than a vector, one by one: that is plain code, so registers are left before it */
    SWV_LEAVE();
    for (d = 0; d < dim && dim < SWV_N; d++)
        for (r = 0; r < nr; r++)
            dst[(size_t)d * (size_t)nr + (size_t)r] = swa__load1(type, src[r], (size_t)d) * mul;
}

#ifdef SWV_ZIP
/* The R rows of few rows' step become [dims][R], times mul, by whole vectors: returns the first dim
   that is left. */
SWV_INLINE SWV_TARGET int SWA__FN(step_by)(int R, const void *const *src, int dims, float mul,
                                           float *to) {
    const SWV y = SWV_SET1(mul);
    SWV x[4], z[4];
    int d, i;

    for (d = 0; d + SWV_N <= dims; d += SWV_N, to += SWV_N * R) {
        SWV_UNROLL for (i = 0; i < R; i++)
            x[i] = SWV_MUL(SWV_LOAD((const float *)src[i] + d), y);
        if (R == 4) {                    /* rows 0 and 2, 1 and 3, then both                      */
            SWV_UNROLL for (i = 0; i < 4; i++) z[i] = SWV_ZIP(x[i / 2], x[i / 2 + 2], i % 2);
            SWV_UNROLL for (i = 0; i < 4; i++) x[i] = SWV_ZIP(z[i / 2], z[i / 2 + 2], i % 2);
        }
        if (R == 2) {
            z[0] = SWV_ZIP(x[0], x[1], 0);
            x[1] = SWV_ZIP(x[0], x[1], 1);
            x[0] = z[0];
        }
        SWV_UNROLL for (i = 0; i < R; i++) SWV_STORE(to + i * SWV_N, x[i]);
    }
    return d;
}
static SWV_TARGET int SWA__FN(step)(int R, const void *const *src, int dims, float mul, float *to) {
    const int d = R == 4 ? SWA__FN(step_by)(4, src, dims, mul, to)
                : R == 2 ? SWA__FN(step_by)(2, src, dims, mul, to)
                         : SWA__FN(step_by)(1, src, dims, mul, to);
    SWV_LEAVE();
    return d;
}
#endif

static SWV_TARGET void SWA__FN(widen)(int type, const void *src, float *dst, size_t n) {
    const size_t es = swa__type_size(type);
    size_t i;

    SWV_BY_TYPE(type, for (i = 0; i < n; i += SWV_N)
                          SWV_STORE(dst + i, SWA__FN(load)(T, (const char *)src + i * es)););
    SWV_LEAVE();
}

static SWV_TARGET void SWA__FN(narrow)(int type, const float *src, void *dst, size_t n) {
    const size_t es = swa__type_size(type);
    size_t i;

    SWV_BY_TYPE(type, for (i = 0; i < n; i += SWV_N)
                          SWA__FN(store)(T, (char *)dst + i * es, SWV_LOAD(src + i)););
    SWV_LEAVE();
}

#if SWA__STAGED
/* SWV_N numbers, by way of f16: see swa__f32_from_fp8. 480 is what E4M3's NaN would be. */
SWV_INLINE SWV_TARGET SWV SWA__FN(load_fp8)(int type, const unsigned char *p) {
#ifdef SWV_HALVES
    SWV x;

    if (type == SWA_E5M2) return SWV_HALVES(p, 8);
    x = SWV_MUL(SWV_HALVES(p, 7), SWV_SET1(256.0f));
    return SWV_SINCE(SWV_ABS(x), SWV_SET1(480.0f), SWV_SET1(swa__float_of(0x7fc00000u)), x);
#else
    float x[SWV_N];
    int i;

    for (i = 0; i < SWV_N; i++) x[i] = swa__f32_from_fp8(type, p[i]);
    return SWV_LOAD(x);
#endif
}

/* A ring's rows and tiles lie one behind the other, and few rows' kernel, which fetches what it will
   read, reads these in the stage: so the bytes two tiles of 128 dims ahead are fetched as these are
   widened. Zen 5 takes 0.82 of the time of a step of decode. */
#define SWA__STAGED_SOON(p, i) \
    do { if ((i) % 64 == 0) SWA__PREFETCH_L1((p) + (i) + 4096); } while (0)

/* See swa__kernels. */
static SWV_TARGET void SWA__FN(staged)(int type, const void *src, float *dst, size_t n,
                                       const float *scale, int64_t next, size_t per) {
    const unsigned char *p = (const unsigned char *)src;
    SWV mul[SWA__TILE / SWV_N];
    size_t i;
    int v;

    for (i = 0; i < n && type == SWA_Q8_32; scale += next) {
        const size_t end = n - i < per ? n : i + per;
        SWV_UNROLL for (v = 0; v < SWA__TILE / SWV_N; v++)
            mul[v] = per > 32 ? SWV_LOAD(scale + v * SWV_N) : SWV_SET1(*scale);
        for (; i < end; i += SWA__TILE) {
            SWA__STAGED_SOON(p, i);
            SWV_UNROLL for (v = 0; v < SWA__TILE / SWV_N; v++)
                SWV_STORE(dst + i + v * SWV_N,
                          SWV_MUL(SWV_LOAD_Q8((const int8_t *)p + i + v * SWV_N), mul[v]));
        }
    }
    for (i = 0; i < n && type == SWA_E4M3; i += SWV_N) {
        SWA__STAGED_SOON(p, i);
        SWV_STORE(dst + i, SWA__FN(load_fp8)(SWA_E4M3, p + i));
    }
    for (i = 0; i < n && type == SWA_E5M2; i += SWV_N) {
        SWA__STAGED_SOON(p, i);
        SWV_STORE(dst + i, SWA__FN(load_fp8)(SWA_E5M2, p + i));
    }
    SWV_LEAVE();
}
#undef SWA__STAGED_SOON
#endif

/* What the ring will hold, as f32, of a row that has just come: attention reads the new keys as
   later steps will, so that chunks do not show. dst [n to 16] holds the row first, where it is not
   read in place, and then what the type makes of it: integers with a scale of their own in q8. */
static SWV_TARGET void SWA__FN(round)(int type, const void *src, int src_type, int n, float *dst,
                                      float *scale) {
    uint16_t stored[SWV_N];
    float lanes[SWV_N], top = 0.0f, inv, last[16];
    SWV big = SWV_SET1(0.0f), x;
    /* read where it is, if whole vectors are there */
    const float *from = src_type == SWA_F32 && n % 16 == 0 ? (const float *)src : dst;
    int i, j;

    /* f32 to f32 is a copy; the rest of the last 16 is zeros, as src ends before it */
    i = n / 16 * 16;
    if (from == dst || type == SWA_F32) SWA__FN(widen)(src_type, src, dst, (size_t)i);
    if (i < n) {
        const size_t size = swa__type_size(src_type);
        memset(last, 0, sizeof last);
        memcpy(last, (const char *)src + (size_t)i * size, (size_t)(n - i) * size);
        SWA__FN(widen)(src_type, last, dst + i, 16);
    }

    /* cut what is too large, an infinity too, which would poison every later row; MIN leaves a NaN
       what it is, and SINCE, which compares, then makes the lowest of it on every instruction set */
    if (SWA__IS_F16(type) || SWA__IS_BF16(type) || SWA__IS_Q8(type)) {
        const SWV most = SWV_SET1(SWA__IS_F16(type) ? 65504.0f : 3.38953139e38f),
                  zero = SWV_SET1(0.0f), least = SWV_SUB(zero, most);
        for (i = 0; i < n; i += SWV_N) {
            x = SWV_MIN(most, SWV_LOAD(from + i));
            x = SWV_ADD(SWV_SINCE(x, least, x, least), zero); /* -0: 0 */
            if (SWA__IS_F16(type)) {
                SWV_STORE_F16(stored, x);
                x = SWV_LOAD_F16(stored);
            } else if (SWA__IS_BF16(type)) x = SWV_TO_BF16(x);
            SWV_STORE(dst + i, x);
        }
        from = dst;
    }

    if (!SWA__IS_Q8(type)) {
        SWV_LEAVE();
        return;
    }

    /* q8: the largest magnitude becomes 127; a maximum is the same in any order */
    for (i = 0; i < n; i += SWV_N) {
        x = SWV_LOAD(from + i);
        big = SWV_MAX(big, SWV_MAX(x, SWV_SUB(SWV_SET1(0.0f), x)));
    }
    SWV_STORE(lanes, big);
    for (j = 0; j < SWV_N; j++)
        if (lanes[j] > top) top = lanes[j];

    *scale = top / 127.0f;
    inv = *scale > 1e-37f ? 127.0f / top : 0.0f; /* a row of (almost) zeros is a row of zeros */
    for (i = 0; i < n; i += SWV_N)
        SWV_STORE(dst + i, SWV_RINT(SWV_MUL(SWV_LOAD(from + i), SWV_SET1(inv))));
    SWV_LEAVE();
}

#if SWA__BF16
/* All forms but SWA__SINGLES. Two rows at a time: those of a pair, `apart` from each other, or two
   neighbours. Both are read before either is written, so dst may be src.

       stored row     0        1        2        3
       PAIRS, AMX     0, 1     2, 3     4, 5     6, 7       pairs of rows
       TILE_PAIRS     0, 2     1, 3     4, 6     5, 7       the earlier one in the upper half */
static SWV_TARGET void SWA__FN(to_form)(int form, int rows, unsigned keep, int ld, float tiny,
                                        const float *src, float *dst) {
#ifdef SWV_PAIR
    const int apart = form == SWA__TILE_PAIRS ? 2 : 1,
              paired = form != SWA__TILE_SINGLES;
#else
    const int apart = 1, paired = 0;
#endif
    SWV small = SWV_SET1(tiny), zero = SWV_SET1(0.0f);
    int two, i;

    if (!paired && keep == 0xffffu) {    /* all of them, one behind the other                     */
        for (i = 0; i < rows * ld; i += SWV_N)
            SWV_STORE(dst + i, SWA__FN(to_bf16_or_zero)(SWV_LOAD(src + i), small));
        SWV_LEAVE();
        return;
    }
    for (two = 0; two < (apart == 2 ? swa__stored(form, rows) : (rows + 1) / 2); two++) {
        const int r = apart == 2 ? two / 2 * 4 + two % 2 : 2 * two, both = r + apart < rows;
        /* rows that are not kept are not read either: they may hold no numbers at all */
        const int has0 = keep >> (r & 15) & 1, has1 = both && (keep >> ((r + apart) & 15) & 1);
        const float *at = src + (size_t)r * (size_t)ld;
        float *to = dst + (size_t)(paired ? two : r) * (size_t)ld;

        for (i = 0; i < ld; i += SWV_N) {
            SWV x0 = has0 ? SWA__FN(to_bf16_or_zero)(SWV_LOAD(at + i), small) : zero;
            SWV x1 = has1 ? SWA__FN(to_bf16_or_zero)(SWV_LOAD(at + apart * ld + i), small) : zero;
#ifdef SWV_PAIR
            if (paired) {
                SWV_STORE(to + i, apart == 2 ? SWV_PAIR(x1, x0) : SWV_PAIR(x0, x1));
                continue;
            }
#endif
            SWV_STORE(to + i, x0);
            if (both) SWV_STORE(to + ld + i, x1);
        }
    }
    SWV_LEAVE();
}

/* Numbers of a type as SINGLES have them: within bf16, rounded, 0 where smaller than `from`. */
SWV_INLINE SWV_TARGET SWV SWA__FN(single)(int type, SWV x, SWV from, SWV *least) {
    SWV size;
    x = SWV_WITHIN(x, SWV_SET1(3.38953139e38f));
    size = SWV_ABS(x);
    *least = SWV_MIN(*least, size);
    return SWV_FROM(size, from, type == SWA_F32 ? SWV_ROUND_BF16(x) : x);
}

#if SWV_N > 1
/* singles_of's rows of a tile that are all kept, by pairs: rows of 16 numbers are the dims of K, and
   what is asked per row would take longer than they do. least: [2]. */
SWV_INLINE SWV_TARGET void SWA__FN(singles_tile)(int type, const swa__formed *x, const char *at,
                                                 const float *tiny, float *to, SWV *least) {
    enum { PER = SWA__TILE / SWV_N };
    const size_t es = swa__type_size(type), row = SWA__TILE * es;
    SWV from[PER], z[2], y;
    const int turn = x->turn;
    int r, v, j;

    SWV_UNROLL for (v = 0; v < PER; v++) from[v] = SWV_LOAD(tiny + v * SWV_N);
    for (r = 0; r + 1 < x->rows; r += 2, at += 2 * row, to += 2 * SWA__TILE)
        SWV_UNROLL for (v = 0; v < PER; v++) {
            /* both first: they may lie where they go */
            SWV_UNROLL for (j = 0; j < 2; j++)
                z[j] = SWA__FN(load)(type, at + (size_t)j * row + (size_t)(v * SWV_N) * es);
            SWV_UNROLL for (j = 0; j < 2; j++) {
                y = SWA__FN(single)(type, z[j], from[v], &least[j]);
                if (turn) y = SWV_SWAP(y);
                SWV_STORE(to + (1 - j) * SWA__TILE + v * SWV_N, y);
            }
        }
}
#endif

/* SWA__SINGLES of rows as they are stored; numbers of bf16 are not to be rounded. Neighbouring rows
   change places, a last one without a neighbour stays. Rows that are not kept are not read: they
   may lie behind their array's end. Keys that nobody sees are, and may hold anything: SWV_WITHIN
   makes a number of it, and it is below FLT_MAX. */
SWV_INLINE SWV_TARGET int SWA__FN(singles_of)(int type, const swa__formed *x, const char *at,
                                              float *to) {
    const size_t es = swa__type_size(type), row = (size_t)x->ld * es;
    const int ld = x->ld;
    const SWV never = SWV_SET1(FLT_MAX);
    float tiny[SWA__TILE];               /* nothing passes FLT_MAX */
    SWV least[2] = { never, never };     /* of the sizes that were seen */
    int r = 0, i, j;

    for (i = 0; i < SWA__TILE; i++) tiny[i] = x->seen >> i & 1 ? x->tiny : FLT_MAX;
#if SWV_N > 1
    if (ld == SWA__TILE && x->keep == 0xffffu) {
        SWA__FN(singles_tile)(type, x, at, tiny, to, least);
        r = x->rows & ~1;
        at += (size_t)r * row;
        to += r * ld;
    }
#endif
    for (; r < x->rows; r += 2, at += 2 * row, to += 2 * ld) {
        const int two = r + 1 < x->rows, has0 = x->keep >> (r & 15) & 1,
                  has1 = two && (x->keep >> (r & 15) & 2);
        /* of a row that is not kept the row beside it stands in for what is loaded */
        const char *other = has1 ? at + row : at, *one = has0 ? at : other;

        if (!has0 && !has1) memset(to, 0, (size_t)(ld + two * ld) * sizeof *to);
        for (i = 0; i < ld && (has0 || has1); i += SWV_N) {
            const SWV from = SWV_LOAD(tiny + i % SWA__TILE);
            SWV z[2], y;
            z[0] = SWA__FN(load)(type, one + (size_t)i * es);
            z[1] = SWA__FN(load)(type, other + (size_t)i * es);
            SWV_UNROLL for (j = 0; j < 2; j++) {
                /* row 0 of the two goes second, unless it is alone */
                float *place = to + (j || !two ? 0 : ld) + (SWV_N == 1 && x->turn ? i ^ 1 : i);
                y = SWA__FN(single)(type, z[j], (j ? has1 : has0) ? from : never, &least[j]);
                if (j && !two) continue;
                if (x->turn) SWV_STORE(place, SWV_SWAP(y));
                else SWV_STORE(place, y);
            }
        }
    }

    SWV_STORE(tiny, SWV_MIN(least[0], least[1]));
    for (i = 1; i < SWV_N; i++) tiny[0] = tiny[i] < tiny[0] ? tiny[i] : tiny[0];
    return tiny[0] < x->tiny;
}

static SWV_TARGET int SWA__FN(singles)(const swa__formed *x, const void *src, float *to) {
    const int small = x->type == SWA_BF16 ? SWA__FN(singles_of)(SWA_BF16, x, (const char *)src, to)
                                          : SWA__FN(singles_of)(SWA_F32, x, (const char *)src, to);
    SWV_LEAVE();
    return small;
}
#endif

#if SWA__MLA
/* ---- matrix products ---- */

/* The order of a product's sums, for any number of rows: inputs in blocks of SWA__GEMM_SUM; within
   a block 16 lanes by input mod 16, each a sum from left to right over the block's pieces of
   SWA__GEMM_CHAIN inputs, a piece being one FMA chain from zero (missing inputs of the last 16
   count as zeros); then one tree over the lanes; blocks added from left to right. So one token
   streams a weight row from memory in its own order, with chains short enough to overlap, and
   several tokens share it. The transposed product is one FMA chain over the inputs; its lanes are
   outputs.

       inputs   0         512        1024       1536       2048
       lane 0   chain  +  chain   +  chain   +  chain  |   chain  + ...
       ...
       lane 15  chain  +  chain   +  chain   +  chain  |   chain  + ...
                y  =  tree over the 16 sums             +  tree  + ...

   One token (product_one) waits for memory, and walks the weights as they lie. Several
   (product_many) take SWV_PR rows of weights by SWV_PT tokens in registers. The transposed product
   is product_columns.

       piece    512 inputs       one chain a lane, in registers: dots
       block    2048 inputs      pieces added up, in `lanes`: a row of 16 for each weight row and
                                 token; then tree
       row      all inputs       blocks added up, in y

   Where each level's sum lies is what makes the order the same for any SWV_PR and SWV_PT. */
#define SWV_GV (16 / SWV_N)                  /* vectors per 16 inputs */
#define SWV_PR (SWV_N == 16 ? 4 : SWV_N == 1 ? 1 : 3) /* weight rows and tokens in registers */
#define SWV_PT (SWV_N == 16 ? 4 : SWV_N == 1 ? 1 : 2)
/* accumulators of the transposed product: all of one token, or a quarter for each of four */
#define SWV_PC (SWV_N == 16 || SWV_N == 4 ? 16 : 8)

/* One piece of n inputs: weight rows ws bytes apart, tokens' inputs xs numbers apart; first of its
   block; ahead: how far on, in bytes, to fetch; 0: not at all. */
typedef struct {
    const char *w;
    const float *x;
    size_t ws, xs, ahead;
    int n, first;
} SWA__FN(piece);

/* acc[r*T+t] += the 16 products of weight row r and token t, from input `at` of the piece on: lane
   n of vector g is input g*SWV_N + n mod 16. */
SWV_INLINE SWV_TARGET void SWA__FN(dots16)(int R, int T, int type, const SWA__FN(piece) *in,
                                           int at, SWV (*acc)[SWV_GV]) {
    const size_t es = SWA__FN(size)(type);
    SWV a, b[SWV_PT];
    int g, r, t;

    SWV_UNROLL for (g = 0; g < SWV_GV; g++, at += SWV_N) {
        /* all of b, or gcc -O1 takes the scalar instance's for unset */
        SWV_UNROLL for (t = 0; t < SWV_PT; t++)
            b[t] = SWV_LOAD(in->x + (size_t)(t < T ? t : 0) * in->xs + at);
        SWV_UNROLL for (r = 0; r < R; r++) {
            a = SWA__FN(load)(type, in->w + (size_t)r * in->ws + (size_t)at * es);
            SWV_UNROLL for (t = 0; t < T; t++)
                acc[r * T + t][g] = SWV_FMA(a, b[t], acc[r * T + t][g]);
        }
    }
}

/* The last inputs, fewer than 32, 16 at a time with zeros behind them, and then what the chain
   leaves, which is in `chain`: added to the block's sums. Once in a row of weights at most, and
   seldom there, so plain loops do. */
SWA__NOINLINE SWV_TARGET void SWA__FN(dots_tail)(int R, int T, int type, const SWA__FN(piece) *in,
                                                 float (*chain)[16], float (*sum)[16]) {
    const size_t es = SWA__FN(size)(type);
    union { float f[16]; unsigned char bytes[64]; } w;   /* aligned for numbers of any type */
    float x[16];
    int r, t, g, i, some;

    for (r = 0; r < R; r++)
        for (t = 0; t < T; t++) {
            float *to = sum[r * T + t], *from = chain[r * T + t];
            /* weights and inputs by way of buffers with zeros: nothing behind a row is read */
            for (i = 0; i < in->n; i += some) {
                some = in->n - i < 16 ? in->n - i : 16;
                memset(&w, 0, sizeof w);
                memset(x, 0, sizeof x);
                memcpy(w.bytes, in->w + (size_t)r * in->ws + (size_t)i * es, (size_t)some * es);
                memcpy(x, in->x + (size_t)t * in->xs + i, (size_t)some * sizeof(float));
                for (g = 0; g < 16; g += SWV_N)
                    SWV_STORE(from + g, SWV_FMA(SWA__FN(load)(type, w.bytes + (size_t)g * es),
                                                SWV_LOAD(x + g), SWV_LOAD(from + g)));
            }

            for (g = 0; g < 16; g += SWV_N) {
                SWV a = SWV_LOAD(from + g);
                SWV_STORE(to + g, in->first ? a : SWV_ADD(SWV_LOAD(to + g), a));
            }
        }
}

/* How the weights that come next are fetched: into L2, into L1, or to be read once; 0 = not. */
SWV_INLINE void SWA__FN(fetch)(int fetch, const char *at) {
    if (fetch == 1) SWA__PREFETCH(at);
    if (fetch == 2) SWA__PREFETCH_L1(at);
    if (fetch == 3) SWA__PREFETCH_ONCE(at);
}

/* 32 inputs of R rows and one token, row by row: of weights in 16 bits a row's whole line at
   once. */
SWV_INLINE SWV_TARGET void SWA__FN(dots_lines)(int R, int type, int fetch,
                                               const SWA__FN(piece) *in, int at,
                                               SWV (*acc)[SWV_GV]) {
    const char *w = in->w + (size_t)at * 2;
    int g, r;

    SWV_UNROLL for (r = 0; r < R; r++, w += in->ws) {
        SWA__FN(fetch)(fetch, w + in->ahead);
        SWV_UNROLL for (g = 0; g < 2 * SWV_GV; g++)
            acc[r][g % SWV_GV] = SWV_FMA(SWA__FN(load)(type, w + (size_t)(g * SWV_N) * 2),
                                     SWV_LOAD(in->x + at + g * SWV_N), acc[r][g % SWV_GV]);
    }
}

/* As many times 32 inputs as a piece has: what a product has once per type. */
SWV_INLINE SWV_TARGET void SWA__FN(dots32)(int R, int T, int type, int fetch,
                                           const SWA__FN(piece) *in, SWV (*acc)[SWV_GV]) {
    const size_t es = SWA__FN(size)(type);
    int i, r;

    for (i = 0; i + 32 <= in->n; i += 32) {
        if (T == 1 && es == 2) {
            SWA__FN(dots_lines)(R, type, fetch, in, i, acc);
            continue;
        }
        /* 32 inputs are one line of 16-bit weights, two of f32 */
        if (fetch != 2 && in->ahead != 0)
            SWV_UNROLL for (r = 0; r < R; r++) {
                const char *next = in->w + (size_t)r * in->ws + (size_t)i * es + in->ahead;
                SWA__FN(fetch)(fetch, next);
                if (es == 4) SWA__FN(fetch)(fetch, next + 64);
            }
        SWA__FN(dots16)(R, T, type, in, i, acc);
        SWA__FN(dots16)(R, T, type, in, i + 16, acc);
    }
}

/* One piece, R weight rows and T tokens, added to the block's sums. fetch 2 is for 16 bits
   alone. */
SWV_INLINE SWV_TARGET void SWA__FN(dots)(int R, int T, int type, int fetch, SWA__FN(piece) in,
                                         float (*sum)[16]) {
    SWV acc[SWV_PR * SWV_PT][SWV_GV];
    float chain[SWV_PR * SWV_PT][16];
    int i, r, g;

    SWV_UNROLL for (r = 0; r < R * T; r++)
        SWV_UNROLL for (g = 0; g < SWV_GV; g++) acc[r][g] = SWV_SET1(0.0f);
    SWV_BY_FLOATS(W, type, SWA__FN(dots32)(R, T, W, fetch, &in, acc););

    i = in.n / 32 * 32;
    if (i < in.n) {
        SWV_UNROLL for (r = 0; r < R * T; r++)
            SWV_UNROLL for (g = 0; g < SWV_GV; g++) SWV_STORE(chain[r] + g * SWV_N, acc[r][g]);
        SWA__FN(piece) rest = in;        /* a copy: in must not have an address, or it is read
                                            from memory */
        rest.w += (size_t)i * SWA__FN(size)(type);
        rest.x += i;
        rest.n -= i;
        SWA__FN(dots_tail)(R, T, type, &rest, chain, sum);
        return;
    }

    /* a block's first piece is stored, not added: what lanes hold is not this block's */
    SWV_UNROLL for (r = 0; r < R * T; r++)
        SWV_UNROLL for (g = 0; g < SWV_GV; g++) {
            if (!in.first) acc[r][g] = SWV_ADD(SWV_LOAD(sum[r] + g * SWV_N), acc[r][g]);
            SWV_STORE(sum[r] + g * SWV_N, acc[r][g]);
        }
}

/* y[r] = the tree over lanes[r], for n <= 16 rows; lanes holds 16, and y room for 16. */
SWA__NOINLINE SWV_TARGET void SWA__FN(tree)(int n, float (*lanes)[16], float *y) {
    SWV x[16];
    int r, g, i, w;

    /* 16 lanes of SWV_N rows become 16 vectors of rows, so that the tree goes down and no lane is
       shuffled */
    for (r = 0; r < n; r += SWV_N) {
        SWV_UNROLL for (g = 0; g < SWV_GV; g++) {
            SWV_UNROLL for (i = 0; i < SWV_N; i++)
                x[g * SWV_N + i] = SWV_LOAD(lanes[r + i] + g * SWV_N);
            SWV_TRANSPOSE(x + g * SWV_N);
        }
        SWV_UNROLL for (w = 8; w > 0; w /= 2)
            SWV_UNROLL for (i = 0; i < w; i++) x[i] = SWV_ADD(x[i], x[i + w]);
        SWV_STORE(y + r, x[0]);
    }
}

/* Tokens [t0, t1), at most 2*SWV_PT, against G groups of SWV_PR weight rows from r on, the block of
   n inputs from k on: both sides of a piece stay in L1 (f32 with AVX-512: 16 KB each). x: piece 0
   of t0's row in pack. Rows below `done` have their sums already: the last group overlaps the one
   before it. */
typedef struct { int t0, t1, r, done, k, n; const float *x; } SWA__FN(slab);

/* Where a slab's sums lie, in the order in which dots makes them; both loops over g and t walk it
   alike, at being the place:

       lanes    group 0: tokens t0..    group 0: next tokens    group 1: tokens t0..    ...
                [SWV_PR][step][16]          [SWV_PR][step][16]          [SWV_PR][step][16]

   and sum[i*step + j] is of row i of the group and token j of the step. */

/* Tokens of the next group, where `left` are left. Four are a group even if fewer are there: one
   shape less, and as fast (Emerald Rapids: 3 tokens take 0.82 of the time of single ones, 5 1.1, 7
   0.85). Groups of two would lose a tenth. */
static int SWA__FN(tokens)(int left) { return SWV_PT == 4 || left >= SWV_PT ? SWV_PT : 1; }

SWV_INLINE SWV_TARGET void SWA__FN(product_rows)(int G, const swa_gemm *p, const SWA__FN(slab) *c) {
    const int type = (int)p->w.type;
    const size_t es = SWA__FN(size)(type), group = (size_t)p->w.stride * es * SWV_PR;
    SWA__FN(piece) in;
    float lanes[4 * SWV_PR * SWV_PT + 16][16], sum[16];
    const float *x = c->x;
    const char *w = (const char *)p->w.p + (size_t)c->r * (group / SWV_PR) + (size_t)c->k * es;
    int t, i, j, g, at = 0, step;

    in.ws = group / SWV_PR;
    in.xs = SWA__GEMM_CHAIN;

    /* x: piece i of all tokens in pack, [piece][64 tokens][512 inputs] */
    for (i = 0; i < c->n; i += in.n, w += (size_t)in.n * es,
        x += SWA__GEMM_TOKENS * SWA__GEMM_CHAIN) {
        in.n = c->n - i < SWA__GEMM_CHAIN ? c->n - i : SWA__GEMM_CHAIN;
        in.first = i == 0;
        for (g = 0, at = 0; g < G; g++)
            for (t = c->t0; t < c->t1; t += step, at += SWV_PR * step) {
                step = SWA__FN(tokens)(c->t1 - t);
                in.w = w + (size_t)g * group;
                in.x = x + (size_t)(t - c->t0) * SWA__GEMM_CHAIN;
                /* the first tokens that read these rows fetch the next */
                in.ahead = t == 0 && c->r + 2 * G * SWV_PR <= p->n_out ? (size_t)G * group : 0;
                if (step == SWV_PT) SWA__FN(dots)(SWV_PR, SWV_PT, type, 1, in, lanes + at);
                else SWA__FN(dots)(SWV_PR, 1, type, 1, in, lanes + at);
            }
    }

    /* groups, and tokens within a group, lie in lanes one behind the other; the tree reads up to 15
       rows of lanes behind the last one */
    memset(lanes[at], 0, sizeof lanes[0] * 16);
    for (g = 0, at = 0; g < G; g++)
        for (t = c->t0; t < c->t1; t += step, at += SWV_PR * step) {
            step = SWA__FN(tokens)(c->t1 - t);
            SWA__FN(tree)(SWV_PR * step, lanes + at, sum);
            for (j = 0; j < step && t + j < c->t1; j++) {
                float *y = p->y + (size_t)(t + j) * (size_t)p->y_stride + c->r + g * SWV_PR;
                /* rows that the groups before have done are computed once more, but not added */
                for (i = 0; i < SWV_PR; i++)
                    if (c->r + g * SWV_PR + i >= c->done)
                        y[i] = c->k == 0 ? sum[i * step + j] : y[i] + sum[i * step + j];
            }
        }
}

/* So many tokens at a time that their inputs of a block fit L2: weights are read once for them all.
   x is copied to pack, piece by piece, since rows that are a multiple of 4 KiB apart evict each
   other from L1; and the last token until a group is full. Outside in: 64 tokens, a block of 2048
   inputs, up to 2*SWV_PR rows of weights, 2*SWV_PT tokens; then product_rows, piece by piece. */
SWV_INLINE SWV_TARGET void SWA__FN(product_many)(const swa_gemm *p, float *pack) {
    enum { TOKENS = SWA__GEMM_TOKENS, SUB = 2 * SWV_PT };
    const int few = p->n <= SWV_PT;
    SWA__FN(slab) c;
    int t, u, t1, i, rows;

    for (t = 0; t < p->n; t = t1) {
        t1 = p->n - t < TOKENS ? p->n : t + TOKENS;
        for (c.k = 0; c.k < p->n_in; c.k += c.n) {
            c.n = p->n_in - c.k < SWA__GEMM_SUM ? p->n_in - c.k : SWA__GEMM_SUM;

            /* pack [piece][64 tokens][512 inputs]: what product_rows reads of a piece is
               together */
            for (u = t; u < t + (t1 - t + SWV_PT - 1) / SWV_PT * SWV_PT; u++)
                for (i = 0; i < c.n; i += SWA__GEMM_CHAIN)
                    memcpy(pack + (i / SWA__GEMM_CHAIN * TOKENS + u - t) * SWA__GEMM_CHAIN,
                           p->x + (size_t)(u < t1 ? u : t1 - 1) * (size_t)p->x_stride + c.k + i,
                           (size_t)(c.n - i < SWA__GEMM_CHAIN ? c.n - i : SWA__GEMM_CHAIN)
                               * sizeof(float));

            /* the last rows, fewer than SWV_PR, go with those before them once more; `done` keeps
               these from being added to twice */
            for (c.done = 0; c.done < p->n_out; c.done = c.r + rows) {
                rows = p->n_out - c.done >= 2 * SWV_PR && !few ? 2 * SWV_PR : SWV_PR;
                c.r = p->n_out - c.done < SWV_PR ? p->n_out - SWV_PR : c.done;

                for (c.t0 = t; c.t0 < t1; c.t0 = c.t1) {
                    c.x = pack + (c.t0 - t) * SWA__GEMM_CHAIN;
                    c.t1 = t1 - c.t0 < SUB ? t1 : c.t0 + SUB;
                    SWA__FN(product_rows)(rows / SWV_PR, p, &c);
                }
            }
        }
    }
}

/* One token, weight rows from r on, one by one in the order of memory; so many bytes ahead are
   fetched, which as a rule are a later row's. */
SWV_INLINE SWV_TARGET void SWA__FN(product_row)(int type, const swa_gemm *p, const float *x,
                                                float *y, int r) {
    const size_t es = SWA__FN(size)(type), ws = (size_t)p->w.stride * es;
    SWA__FN(piece) in;
    float lanes[2][16]; /* [1] is nobody's: gcc -O3 takes stores into [0] for longer ones */
    const int fetch = swa__fetch_weights();
    int k, i, n, w;

    memset(lanes, 0, sizeof lanes);
    in.ws = ws;
    in.xs = 0;
    for (in.ahead = SWA__GEMM_AHEAD; r < p->n_out; r++)
        for (k = 0; k < p->n_in; k += n) {
            n = p->n_in - k < SWA__GEMM_SUM ? p->n_in - k : SWA__GEMM_SUM;
            for (i = 0; i < n; i += in.n) {
                in.n = n - i < SWA__GEMM_CHAIN ? n - i : SWA__GEMM_CHAIN;
                in.first = i == 0;
                in.w = (const char *)p->w.p + (size_t)r * ws + (size_t)(k + i) * es;
                in.x = x + k + i;
                SWA__FN(dots)(1, 1, type, fetch, in, lanes);
            }

            /* the tree, of one row: tree would shuffle sixteen */
            for (w = 8; w > 0; w /= 2)
                for (i = 0; i < w; i++) lanes[0][i] = lanes[0][i] + lanes[0][i + w];
            y[r] = k == 0 ? lanes[0][0] : y[r] + lanes[0][0];
        }
}

/* One token. Of rows so long that x does not stay in L1, SWV_PR at a time share it; the others run
   one by one, in a loop per type, which feels a step more. */
SWV_INLINE SWV_TARGET void SWA__FN(product_one)(const swa_gemm *p, const float *x, float *y) {
    const int type = (int)p->w.type;
    const size_t es = SWA__FN(size)(type), ws = (size_t)p->w.stride * es;
    SWA__FN(piece) in;
    float lanes[16][16], sum[16];        /* as tree takes them: whole sixteens; SWV_PR count */
    int r = 0, k, i, n;

    memset(lanes, 0, sizeof lanes);
    in.ws = ws;
    in.xs = 0;

    for (; ws > SWA__GEMM_LONG && r + SWV_PR <= p->n_out; r += SWV_PR)
        for (k = 0; k < p->n_in; k += n) {
            n = p->n_in - k < SWA__GEMM_SUM ? p->n_in - k : SWA__GEMM_SUM;
            for (i = 0; i < n; i += in.n) {
                /* near the end of these rows the next ones are fetched */
                const size_t end = (size_t)(k + i + SWA__GEMM_CHAIN) * es,
                             jump = end + SWA__GEMM_NEAR <= ws ? 0 : (SWV_PR - 1) * ws;
                in.n = n - i < SWA__GEMM_CHAIN ? n - i : SWA__GEMM_CHAIN;
                in.first = i == 0;
                in.w = (const char *)p->w.p + (size_t)r * ws + (size_t)(k + i) * es;
                in.x = x + k + i;
                in.ahead = SWA__GEMM_NEAR + jump;
                SWA__FN(dots)(SWV_PR, 1, type, 2, in, lanes);
            }

            SWA__FN(tree)(SWV_PR, lanes, sum);
            for (i = 0; i < SWV_PR; i++) y[r + i] = k == 0 ? sum[i] : y[r + i] + sum[i];
        }

    /* all rows, or the last ones that fill no SWV_PR */
    SWV_BY_FLOATS(W, type, SWA__FN(product_row)(W, p, x, y, r););
}

/* The inputs of a piece, the first of which is number d of x, C vectors of columns and T tokens.
   Weights lie [input][output], ws bytes from input to input, so an input's number in all lanes goes
   with its row of weights: lanes are outputs, and need no tree. width < SWV_N: only so many columns
   are there (C is 1 then), read by way of `tail`. */
SWV_INLINE SWV_TARGET void SWA__FN(column_inputs)(int C, int T, int type, int width,
                                                  const SWA__FN(piece) *in, int d,
                                                  SWV (*acc)[SWV_PC]) {
    const size_t es = SWA__FN(size)(type);
    const char *w = in->w;
    unsigned char tail[4 * SWV_N];
    SWV a[SWV_PC], b;
    const int end = d + in->n;
    int i, j;

    memset(tail, 0, sizeof tail);
    for (; d < end; d++, w += in->ws) {
        if (width < SWV_N) memcpy(tail, w, (size_t)width * es);

        /* one token waits for weights: the same columns of the next inputs are fetched */
        if (T == 1 && C > 1) {
            const char *soon = w + in->ahead;
            SWA__APART(soon);            /* or gcc takes a register for each line */
            SWV_UNROLL for (j = 0; j < C * SWV_N * (int)es / 64; j++)
                SWA__PREFETCH(soon + (size_t)j * 64);
        }

        SWV_UNROLL for (j = 0; j < C; j++)
            a[j] = SWA__FN(load)(type,
                                 width < SWV_N ? (const char *)tail : w + (size_t)(j * SWV_N) * es);
        SWV_UNROLL for (i = 0; i < T; i++) {
            b = SWV_SET1(in->x[(size_t)i * in->xs + (size_t)d]);
            SWV_UNROLL for (j = 0; j < C; j++) acc[i][j] = SWV_FMA(b, a[j], acc[i][j]);
        }
    }
}

/* Tokens from t on, columns from c on, the inputs [d, d1). */
typedef struct { int t, c, d, d1; } SWA__FN(corner);

/* Their chains: from y, or from zero at the first input, back to y. */
SWV_INLINE SWV_TARGET void SWA__FN(columns)(int C, int T, int width, const swa_gemm *p,
                                            const SWA__FN(corner) *at) {
    const int type = (int)p->w.type;
    const size_t es = SWA__FN(size)(type);
    SWA__FN(piece) in;
    float last[SWV_N];
    SWV acc[4][SWV_PC];
    int i, j;

    in.ws = (size_t)p->w.stride * es;
    in.w = (const char *)p->w.p + (size_t)at->c * es + (size_t)at->d * in.ws;
    in.n = at->d1 - at->d;
    in.ahead = at->d1 < p->n_in ? (size_t)(in.n > 8 ? in.n : 8) * in.ws : 0;
    in.xs = (size_t)p->x_stride;
    in.x = p->x + (size_t)at->t * in.xs;

    /* the chains go on from where the inputs before left them, in y */
    SWV_UNROLL for (i = 0; i < T; i++) {
        const float *y = p->y + (size_t)(at->t + i) * (size_t)p->y_stride + at->c;
        /* columns that fill no vector, by way of `last`: y ends with them */
        if (width < SWV_N) {
            memset(last, 0, sizeof last);
            if (at->d > 0) memcpy(last, y, (size_t)width * sizeof(float));
            acc[i][0] = SWV_LOAD(last);
        } else
            SWV_UNROLL for (j = 0; j < C; j++)
                acc[i][j] = at->d > 0 ? SWV_LOAD(y + j * SWV_N) : SWV_SET1(0.0f);
    }

    if (C == 1) SWA__FN(column_inputs)(C, T, type, width, &in, at->d, acc);
    else SWV_BY_FLOATS(W, type, SWA__FN(column_inputs)(C, T, W, width, &in, at->d, acc););

    SWV_UNROLL for (i = 0; i < T; i++) {
        float *y = p->y + (size_t)(at->t + i) * (size_t)p->y_stride + at->c;
        if (width < SWV_N) {
            SWV_STORE(last, acc[i][0]);
            memcpy(y, last, (size_t)width * sizeof(float));
        } else
            SWV_UNROLL for (j = 0; j < C; j++) SWV_STORE(y + j * SWV_N, acc[i][j]);
    }
}

/* Inputs a few at a time, so that a matrix is read nearly in the order it lies in memory; the
   chains wait in y. From four tokens on all inputs at once: four of them share what is loaded. */
SWV_INLINE SWV_TARGET void SWA__FN(product_columns)(const swa_gemm *p) {
    /* a pass of less than four lines of a row takes longer that way (AVX2, bf16: 1.2) */
    const int lines = SWV_PC * SWV_N * (int)SWA__FN(size)((int)p->w.type) / 64,
              rows = p->n >= 4 ? p->n_in : lines < 4 ? SWA__INPUTS : swa__column_inputs();
    SWA__FN(corner) at;
    int wide, left, t;

    for (at.d = 0; at.d < p->n_in; at.d = at.d1) {
        at.d1 = p->n_in - at.d < rows ? p->n_in : at.d + rows;
        for (at.c = 0; at.c < p->n_out; at.c += wide * SWV_N) {
            left = p->n_out - at.c;
            /* SWV_PC vectors of one token, a quarter of them by four; one where fewer are left */
            wide = left >= SWV_PC * SWV_N && p->n < 4      ? SWV_PC
                 : left >= SWV_PC / 4 * SWV_N && p->n >= 4 ? SWV_PC / 4
                                                       : 1;

            /* the last four tokens overlap those before: all inputs are there, the sums the same */
            if (wide == SWV_PC / 4)
                for (t = 0; t < p->n; t += 4) {
                    at.t = t + 4 <= p->n ? t : p->n - 4;
                    SWA__FN(columns)(SWV_PC / 4, 4, SWV_N, p, &at);
                }
            else
                for (at.t = 0; at.t < p->n; at.t++) {
                    if (wide == SWV_PC) SWA__FN(columns)(SWV_PC, 1, SWV_N, p, &at);
                    else SWA__FN(columns)(1, 1, left < SWV_N ? left : SWV_N, p, &at);
                }
        }
    }
}

#if SWA__LIGHT                           /* a loop's head once: it is entered once a pass         */
#  pragma GCC push_options
#  pragma GCC optimize("no-tree-ch")
#endif
/* pack: SWA__GEMM_TOKENS * SWA__GEMM_SUM floats, or anything if p->n is 1. */
static SWV_TARGET void SWA__FN(product)(const swa_gemm *p, float *pack) {
    int t;

    if (p->transposed) SWA__FN(product_columns)(p);
    else if (p->n > 1 && p->n_out >= SWV_PR) SWA__FN(product_many)(p, pack);
    else
        for (t = 0; t < p->n; t++)
            SWA__FN(product_one)
            (p, p->x + (size_t)t * (size_t)p->x_stride, p->y + (size_t)t * (size_t)p->y_stride);
    SWV_LEAVE();
}
#if SWA__LIGHT
#  pragma GCC pop_options
#endif

/* ---- MLA's naive path: K and V of a head from the latents of 16 keys ----

       dst [dims][16 keys]  =  w [dims][n], in panels of 16 dims [n][16]  times  latent [n][16 keys]

   SWV_OUTS dims by SWV_TILES tiles of keys in registers; a weight goes into all lanes, lanes are
   keys. */

#define SWV_TILES (SWV_N == 16 ? 2 : 1) /* at a time: 16 accumulators, or 8 of short vectors */
#define SWV_OUTS  (SWV_N == 1 ? 1 : SWV_N == 16 ? 8 : 4)

/* Dims d..d+SWV_OUTS-1 of which `rows` are stored, inputs [c, c1), w at the panel of 16 dims that
   holds them, [n][16], where they begin: a panel is filled up to 16 dims, so all SWV_OUTS may be
   read. Chains of the inputs before c are in dst. */
SWV_INLINE SWV_TARGET void SWA__FN(expand_rows)(int rows, int c, int c1, const float *w,
                                                const float *const *latent, float *const *dst,
                                                int d) {
    SWV acc[SWV_OUTS][SWV_TILES * SWV_GV], x[SWV_TILES * SWV_GV], y;
    int i, g;

    SWV_UNROLL for (i = 0; i < SWV_OUTS; i++)
        SWV_UNROLL for (g = 0; g < SWV_TILES * SWV_GV; g++)
            acc[i][g] = c > 0 && i < rows
                          ? SWV_LOAD(dst[g / SWV_GV] + (d + i) * 16 + g % SWV_GV * SWV_N)
                                          : SWV_SET1(0.0f);

    /* latent c of all keys in x, times a weight of each dim */
    for (; c < c1; c++) {
        SWV_UNROLL for (g = 0; g < SWV_TILES * SWV_GV; g++)
            x[g] = SWV_LOAD(latent[g / SWV_GV] + c * 16 + g % SWV_GV * SWV_N);
        SWV_UNROLL for (i = 0; i < SWV_OUTS; i++) {
            y = SWV_SET1(w[c * 16 + i]);
            SWV_UNROLL for (g = 0; g < SWV_TILES * SWV_GV; g++)
                acc[i][g] = SWV_FMA(y, x[g], acc[i][g]);
        }
    }

    SWV_UNROLL for (i = 0; i < SWV_OUTS; i++)
        SWV_UNROLL for (g = 0; g < SWV_TILES * SWV_GV; g++)
            if (i < rows) SWV_STORE(dst[g / SWV_GV] + (d + i) * 16 + g % SWV_GV * SWV_N, acc[i][g]);
}

/* dst[i] [dims][16] = w times latent[i] [n][16] for two tiles (which may be the same); w
   [dims/16][n][16]. One FMA chain a number, cut where the latents of a piece fill L1. */
static SWV_TARGET void SWA__FN(expand)(int dims, int n, const float *w, const float *const *latent,
                                       float *const *dst) {
    enum { PIECE = 128 };
    int i, c, d, c1;

    for (i = 0; i < 2; i += SWV_TILES)
        for (c = 0; c < n; c = c1) {
            c1 = n - c < PIECE ? n : c + PIECE;
            for (d = 0; d < dims; d += SWV_OUTS) {
                const float *panel = w + (size_t)(d / 16) * (size_t)n * 16 + d % 16;
                if (dims - d >= SWV_OUTS)
                    SWA__FN(expand_rows)(SWV_OUTS, c, c1, panel, latent + i, dst + i, d);
                else SWA__FN(expand_rows)(dims - d, c, c1, panel, latent + i, dst + i, d);
            }
        }
    SWV_LEAVE();
}
#undef SWV_TILES
#undef SWV_OUTS
#undef SWV_GV
#undef SWV_PR
#undef SWV_PT
#undef SWV_PC
#endif /* SWA__MLA */

#if SWA__LATENTS
/* [dims][16] as 16 rows of dims, a multiple of 16. */
static SWV_TARGET void SWA__FN(to_rows)(int dims, const float *src, float *dst, size_t stride) {
    SWV x[SWV_N];
    int d, k, i;

    for (d = 0; d < dims; d += SWV_N)
        for (k = 0; k < 16; k += SWV_N) {
            SWV_UNROLL for (i = 0; i < SWV_N; i++) x[i] = SWV_LOAD(src + (d + i) * 16 + k);
            SWV_TRANSPOSE(x);
            SWV_UNROLL for (i = 0; i < SWV_N; i++)
                SWV_STORE(dst + (size_t)(k + i) * stride + d, x[i]);
        }
    SWV_LEAVE();
}
#endif
#undef SWV_BY_TYPE
#undef SWV_BY_FLOATS

/* The next instance defines these anew. */
#undef SWV_INLINE
#undef SWV_UNROLL
#undef SWV_NR
#undef SWV_FMA2
#undef SWV_FMA2_AT
#undef SWV_LOAD_PAIR
#undef SWV_STORE_UPPER
#undef SWV_PAIRED
#undef SWV_ROUNDS
#undef SWV_ROUND8
#undef SWV_ROUND8_FROM
#undef SWV_NOT_FINITE
#undef SWV_ROUNDED
#undef SWV_ROUNDED_VECTORS
#undef SWV_ISA
#undef SWV_LOOPS
#undef SWV_LONE
#undef SWV_TARGET
#undef SWV_HALF_PANEL
#undef SWV_HALF_KEYS
#undef SWV_HALF_DIMS
#undef SWV_MR
#undef SWV_TO_BF16
#undef SWV_ROUND_BF16
#undef SWV_LEAVE
#undef SWV_FROM
#undef SWV_ABS
#undef SWV_WITHIN
#undef SWV_SWAP
#undef SWV_SINCE
#undef SWV_AT
#undef SWV_STEPS
#undef SWV_TWICE
#undef SWV_PAIR
#undef SWV_SUMMED
#undef SWV_HALF_SUMS
#undef SWV_DOTS
#undef SWV
#undef SWV_N
#undef SWV_KEYS
#undef SWV_DIMS
#undef SWV_VECTORS
#undef SWV_FEW
#undef SWV_FEW_KEYS
#undef SWV_FEW_F32
#undef SWV_FEW_MORE
#undef SWV_WIDE
#undef SWV_EIGHT
#undef SWV_STREAMS
#undef SWV_LOADED
#undef SWV_INDEX
#undef SWV_INDEX_ROWS
#undef SWV_INDEX_KEYS
#undef SWV_CONSTRAINT
#undef SWV_SET1
#undef SWV_LOAD
#undef SWV_STORE
#undef SWV_FMA
#undef SWV_ADD
#undef SWV_SUB
#undef SWV_MUL
#undef SWV_DIV
#undef SWV_MAX
#undef SWV_MIN
#undef SWV_RINT
#undef SWV_FLOOR
#undef SWV_RAISED
#undef SWV_SCALE
#undef SWV_PICK
#undef SWV_TRANSPOSE
#undef SWV_ZIP
#undef SWV_LOAD_F16
#undef SWV_LOAD_BF16
#undef SWV_LOAD_Q8
#undef SWV_HALVES
#undef SWV_ROW
#undef SWV_PIN
#undef SWV_STORE_F16
#undef SWV_STORE_BF16
#undef SWV_STORE_Q8

#elif defined(SWA__IMPLEMENTING)
/* ==== [SECTION 11] KERNEL INSTANCES ==============================================================
   One block of vector operations per instruction set, in the words that [SECTION 9] lists; each
   includes the template above, which undoes them at its end. The file includes itself for that, and
   is read between #ifdef SWA__KERNEL_PASS and the #elif alone. SWA__FN gives functions their
   instance's name: few is swa__few_avx2 there.

   What an operation owes to the bits: every FMA rounds once, RINT goes to nearest even, numbers are
   widened exactly and narrowed to nearest even. Of +0 and -0 MAX may give either, so the template
   adds 0 where that would show. PICK compares in order: a NaN takes b.

   How a register block of the many-rows shape is chosen: it must hold more sums than FMAs are on
   their way (x86: 4 cycles, two a cycle), and leave room for VECTORS vectors of rows and a key.

       scalar   4 x 4        AVX2           4 x 3, with 3 and 1 all 16 registers
       SSE2     8 x 1, in memory
       SIMD128  4 x 2        NEON, AVX-512  8 x 2, of 32 registers

   A list's p.v holds twice DIMS by VECTORS, the block's and the row's own: 2 x 6 x 2 and 3 of 32
   registers, 2 x 2 x 3 and 4 of 16.

   Few rows' p.v has R by FEW(R) sums: 8 with AVX2, beside which 16 registers hold V and p; 8 to 16
   with AVX-512. FEW_KEYS is what trials gave, see bench/SPEED.md: for one row four chains.

   What an instance's operations need stands before its block of them, and what needs the functions
   that the inclusion makes, behind it. */

#ifndef SWA_HEADER_FILENAME
#  define SWA_HEADER_FILENAME "swa.h" /* not __FILE__: that fails when built from another folder  */
#endif
#define SWA__CAT2(a, b) a##_##b
#define SWA__CAT(a, b)  SWA__CAT2(a, b)
#define SWA__FN(name)   SWA__CAT(swa__##name, SWV_ISA)
#define SWA__KERNEL_PASS

/* Scalar: the definition of the arithmetic, on any C99 compiler. */
#if SWA__SSE2 && defined(__FMA__)
/* SSE2's lanes have it. */
#elif SWA__SSE2 || (defined(__SSE2_MATH__) && !defined(__FMA__)) || defined(_WIN32) || \
    defined(__NEWLIB__) || defined(__wasm__) || (SWA__FAST_MATH && defined(__clang__))
/* For those whose fmaf rounds twice (WebAssembly's, musl's, only where the result is subnormal), as
   clang makes any under -ffast-math where the CPU has none; and for x86-64 without FMA, where it is
   50 cycles (glibc), or a call all the same.

   The product is exact in double; the sum is rounded to odd, then once to float. */
SWA__NOINLINE float swa__fma_odd(float a, float b, float c) {
    double p = (double)a * b, s = p + c, t = s - p, e = (p - (s - t)) + (c - t);
    uint64_t u;

    memcpy(&u, &s, 8);

    /* s + e is the sum exactly. If s is not, it gets 1 as its last bit, by a step towards e if need
       be: so it cannot pass for the midpoint of two floats. Infinities stay. */
    if (e != 0 && (u & 1) == 0 && (u >> 52 & 0x7ff) != 0x7ff)
        u += (e > 0) == (s > 0) ? 1u : (uint64_t)-1;
    memcpy(&s, &u, 8);
    return (float)s;
}

#  if !SWA__SSE2
/* Rounded to double, then to float, it is the same unless the double is the midpoint of two floats:
   below 2^-126 any bit can be the midpoint's. 0 is exact. */
SWA__INLINE float swa__fma(float a, float b, float c) {
    double s = (double)a * b + c;
    uint64_t u;

    memcpy(&u, &s, 8);
    if ((u & 0x1fffffffu) == 0x10000000u || (u << 1) - 1 < ((uint64_t)897 << 53) - 1)
        return swa__fma_odd(a, b, c);
    return (float)s;
}
#  endif
#  define SWA__ONE_FMA 0
#else
#  define swa__fma(a, b, c) fmaf((a), (b), (c))
#endif
/* Whether that is one instruction (RISC-V, POWER, s390x, x86 by -mfma). Then sums are registers: a
   fourth to a ninth of the instructions, and 40 KB more. A call, or a dozen instructions in its
   place, would make it 180 KB. */
#ifndef SWA__ONE_FMA
#  if !SWA__SMALL && !defined(__OPTIMIZE_SIZE__) \
   && (defined(__FP_FAST_FMAF) || defined(__FMA__) || defined(__ARM_FEATURE_FMA) \
       || defined(__riscv_flen) || defined(__loongarch_hard_float) || defined(__s390x__) \
       || defined(__powerpc64__))
#    define SWA__ONE_FMA 1
#  else
#    define SWA__ONE_FMA 0
#  endif
#endif

#if SWA__SSE2
/* SSE2, which every x86-64 has: the scalar instance by four lanes, in 0.33 to 0.46 of plain C's
   time. Who runs it has no FMA as a rule (Celerons, Atoms, Ivy Bridge, a virtual machine's plain
   CPU): it goes by double, as swa__fma does; where a lane is in doubt, each is done to the letter.
   Where the compiler may take the instruction, it does. */
#  ifndef __FMA__
SWA__COLD SWA__NOINLINE __m128 swa__fma_lanes_sse2(__m128 a, __m128 b, __m128 c) {
    float x[4], y[4], z[4];
    int i;

    _mm_storeu_ps(x, a);
    _mm_storeu_ps(y, b);
    _mm_storeu_ps(z, c);
    for (i = 0; i < 4; i++) z[i] = swa__fma_odd(x[i], y[i], z[i]);
    return _mm_loadu_ps(z);
}

SWA__INLINE __m128 swa__fma_sse2(__m128 a, __m128 b, __m128 c) {
    const __m128d lo = _mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(a), _mm_cvtps_pd(b)), _mm_cvtps_pd(c));
    const __m128d hi = _mm_add_pd(_mm_mul_pd(_mm_cvtps_pd(_mm_movehl_ps(a, a)),
                                             _mm_cvtps_pd(_mm_movehl_ps(b, b))),
                                  _mm_cvtps_pd(_mm_movehl_ps(c, c)));
    const __m128 r = _mm_movelh_ps(_mm_cvtpd_ps(lo), _mm_cvtpd_ps(hi));

    /* see swa__fma_simd128: the midpoint of two floats, or 0 < |r| <= 2^-126; the sum below turns
       0 into the largest integer and 2^-149 into the smallest */
    const __m128i below = _mm_castps_si128(
        _mm_shuffle_ps(_mm_castpd_ps(lo), _mm_castpd_ps(hi), _MM_SHUFFLE(2, 0, 2, 0)));
    const __m128i all = _mm_set1_epi32(0x7fffffff),
                  size = _mm_add_epi32(_mm_and_si128(_mm_castps_si128(r), all), all);
    const __m128i doubt = _mm_or_si128(
        _mm_cmpeq_epi32(_mm_and_si128(below, _mm_set1_epi32(0x1fffffff)),
                        _mm_set1_epi32(0x10000000)),
        _mm_cmplt_epi32(size, _mm_set1_epi32(-0x7f800000)));

    return _mm_movemask_epi8(doubt) != 0 ? swa__fma_lanes_sse2(a, b, c) : r;
}
#  endif

SWA__INLINE void swa__transpose_sse2(__m128 *r) {
    _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
}

SWA__INLINE __m128 swa__pick_sse2(__m128 yes, __m128 a, __m128 b) {
    return _mm_or_ps(_mm_and_ps(yes, a), _mm_andnot_ps(yes, b));
}

SWA__INLINE __m128 swa__rint_sse2(__m128 x) {
    return _mm_cvtepi32_ps(_mm_cvtps_epi32(x));
}

SWA__INLINE __m128 swa__floor_sse2(__m128 x) {
    const __m128 whole = swa__rint_sse2(x);
    return _mm_sub_ps(whole, _mm_and_ps(_mm_cmpgt_ps(whole, x), _mm_set1_ps(1.0f)));
}

/* The exponent's bias by an integer, since a program that reads subnormal numbers as 0 (gcc
   -ffast-math links that) would lose what is subnormal in f16 alone. Such a number has come to
   x = 2^-15 and its bits behind that, and is 2x - 2^-14; of all others 2x - 2^-14 is no less. */
SWA__INLINE __m128 swa__load_f16_sse2(const uint16_t *p) {
    const __m128i zero = _mm_setzero_si128(),
                  h = _mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)(const void *)p), zero),
                  size = _mm_and_si128(h, _mm_set1_epi32(0x7fff)),
                  sign = _mm_slli_epi32(_mm_xor_si128(h, size), 16),
                  top = _mm_and_si128(_mm_cmpgt_epi32(size, _mm_set1_epi32(0x7bff)),
                                      _mm_set1_epi32(0x7f800000));
    __m128 x = _mm_castsi128_ps(_mm_slli_epi32(_mm_add_epi32(size, _mm_set1_epi32(112 << 10)), 13));
    x = _mm_min_ps(x, _mm_sub_ps(_mm_add_ps(x, x), _mm_set1_ps(6.103515625e-5f)));

    return _mm_or_ps(x, _mm_castsi128_ps(_mm_or_si128(top, sign)));
}

/* One by one, since it rounds, to subnormals too; only new rows come here. */
SWA__INLINE void swa__store_f16_sse2(uint16_t *p, __m128 v) {
    float x[4];
    int i;

    _mm_storeu_ps(x, v);
    for (i = 0; i < 4; i++) p[i] = swa__f16_from_f32(x[i]);
}

SWA__INLINE __m128 swa__load_bf16_sse2(const uint16_t *p) {
    return _mm_castsi128_ps(_mm_unpacklo_epi16(
        _mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)(const void *)p)));
}

/* As swa__to_bf16_neon. */
SWA__INLINE __m128 swa__to_bf16_sse2(__m128 v) {
    __m128i u = _mm_castps_si128(v), one = _mm_and_si128(_mm_srli_epi32(u, 16), _mm_set1_epi32(1));
    u = _mm_add_epi32(u, _mm_add_epi32(one, _mm_set1_epi32(0x7fff)));
    return _mm_castsi128_ps(_mm_and_si128(u, _mm_set1_epi32(-65536)));
}

/* signed on the way, so that packing leaves all 16 bits as they are */
SWA__INLINE void swa__store_bf16_sse2(uint16_t *p, __m128 v) {
    const __m128i u = _mm_srai_epi32(_mm_castps_si128(swa__to_bf16_sse2(v)), 16);
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi32(u, u));
}

SWA__INLINE __m128 swa__load_q8_sse2(const int8_t *p) {
    __m128i x;
    int32_t w;

    memcpy(&w, p, 4);
    x = _mm_cvtsi32_si128(w);
    x = _mm_unpacklo_epi8(x, x);
    return _mm_cvtepi32_ps(_mm_srai_epi32(_mm_unpacklo_epi16(x, x), 24));
}

/* Of integers in [-127, 127]: nothing saturates on the way. */
SWA__INLINE void swa__store_q8_sse2(int8_t *p, __m128 v) {
    __m128i u = _mm_cvtps_epi32(v);
    int32_t w;

    u = _mm_packs_epi32(u, u);
    w = _mm_cvtsi128_si32(_mm_packs_epi16(u, u));
    memcpy(p, &w, 4);
}

#  define SWV                   __m128
#  define SWV_N                 4
#  define SWV_KEYS              8
#  define SWV_VECTORS           1
#  define SWV_DIMS              2
#  define SWV_FEW(r)            4
#  define SWV_SET1(x)           _mm_set1_ps(x)
#  define SWV_LOAD(p)           _mm_loadu_ps(p)
#  define SWV_STORE(p, v)       _mm_storeu_ps((p), (v))
#  ifdef __FMA__
#    define SWV_FMA(a, b, c)    _mm_fmadd_ps((a), (b), (c))
#  else
#    define SWV_FMA(a, b, c)    swa__fma_sse2((a), (b), (c))
#  endif
#  if !defined(__GNUC__) && !defined(__clang__)
#    define SWV_ADD(a, b)       _mm_add_ps((a), (b))
#    define SWV_SUB(a, b)       _mm_sub_ps((a), (b))
#    define SWV_MUL(a, b)       _mm_mul_ps((a), (b))
#    define SWV_DIV(a, b)       _mm_div_ps((a), (b))
#  endif
#  define SWV_MAX(a, b)         _mm_max_ps((a), (b))
#  define SWV_MIN(a, b)         _mm_min_ps((a), (b))
#  define SWV_RINT(x)           swa__rint_sse2(x)
#  define SWV_FLOOR(x)          swa__floor_sse2(x)
#  define SWV_RAISED(x, lo, p)  _mm_and_ps(_mm_cmpge_ps((x), (lo)), \
                                    _mm_castsi128_ps(_mm_slli_epi32(_mm_castps_si128(p), 16)))
#  define SWV_SCALE(p, n)       _mm_castsi128_ps(_mm_add_epi32(_mm_castps_si128(p), \
                                    _mm_slli_epi32(_mm_cvtps_epi32(n), 23)))
#  define SWV_PICK(x, lo, hi, a, b) swa__pick_sse2(_mm_and_ps(_mm_cmpge_ps((x), (lo)), \
                                    _mm_cmplt_ps((x), (hi))), (a), (b))
#  define SWV_TRANSPOSE(r)      swa__transpose_sse2(r)
#  define SWV_LOAD_F16(p)       swa__load_f16_sse2(p)
#  define SWV_LOAD_BF16(p)      swa__load_bf16_sse2(p)
#  define SWV_LOAD_Q8(p)        swa__load_q8_sse2(p)
#  define SWV_STORE_F16(p, v)   swa__store_f16_sse2((p), (v))
#  define SWV_STORE_BF16(p, v)  swa__store_bf16_sse2((p), (v))
#  define SWV_STORE_Q8(p, v)    swa__store_q8_sse2((p), (v))
#  define SWV_TO_BF16(x)        swa__to_bf16_sse2(x)
#  define SWV_SWAP(x)           _mm_shuffle_ps((x), (x), 0xb1)
#else
static float swa__rint(float x) {        /* |x| < 2^22, to nearest even; through the bits, so
                                            that no flag folds it                                 */
    int32_t i;
#if defined(__GNUC__) || defined(__clang__)
    __asm__("" : "+m"(x));               /* and a product in x is not contracted into the sum     */
#endif
    i = (int32_t)(swa__bits_of(x + 12582912.0f) - 0x4b400000u);
    return (float)i;
}

static float swa__floorf(float x) {      /* likewise; C89, which some compilers are, has no floorf */
    const float whole = swa__rint(x);
    return whole > x ? whole - 1.0f : whole;
}

/* p * 2^n, which is never subnormal: exp2's n is -126 at the least, and p there is not below 1. So
   adding to the exponent is enough. */
static float swa__scale(float p, float n) {
    return swa__float_of(swa__bits_of(p) + ((uint32_t)(int32_t)n << 23));
}

#  define SWV                   float
#  define SWV_N                 1
#  define SWV_KEYS              4
#  define SWV_VECTORS           4
#  define SWV_DIMS              2
#  define SWV_FEW(r)            ((r) == 1 ? 8 : 4)
#  define SWV_SET1(x)           ((float)(x)) /* casts: where floats are computed wider, round
                                                each one                                          */
#  define SWV_LOAD(p)           (*(p))
#  define SWV_STORE(p, v)       (*(p) = (v))
#  define SWV_FMA(a, b, c)      swa__fma((a), (b), (c))
#  define SWV_MAX(a, b)         ((a) > (b) ? (a) : (b))
#  define SWV_MIN(a, b)         ((a) < (b) ? (a) : (b))
#  define SWV_RINT(x)           swa__rint(x)
#  define SWV_FLOOR(x)          swa__floorf(x)
#  define SWV_RAISED(x, lo, p)  ((x) >= (lo) ? swa__float_of(swa__bits_of(p) << 16) : 0.0f)
#  define SWV_SCALE(p, n)       swa__scale((p), (n))
#  define SWV_PICK(x, lo, hi, a, b) ((x) >= (lo) && (x) < (hi) ? (a) : (b))
#  define SWV_TRANSPOSE(r)      ((void)(r))
#  define SWV_LOAD_F16(p)       swa__f32_from_f16(*(p))
#  define SWV_LOAD_BF16(p)      swa__f32_from_bf16(*(p))
#  define SWV_LOAD_Q8(p)        ((float)*(p))
#  define SWV_STORE_F16(p, v)   (*(p) = swa__f16_from_f32(v))
#  define SWV_STORE_BF16(p, v)  (*(p) = swa__bf16_from_f32(v))
#  define SWV_STORE_Q8(p, v)    (*(p) = (int8_t)(v))
#  define SWV_TO_BF16(x)        swa__f32_from_bf16(swa__bf16_from_f32(x))
#  define SWV_SWAP(x)           (x) /* no neighbour: few_exp swaps in memory */
#endif
#define SWV_ISA                 scalar
#if SWA__AVX2 || SWA__NEON || SWA__SIMD128 /* then few CPUs run it, or none                       */
#  define SWV_TARGET            SWA__COLD
#endif
#if defined(SWV_TARGET) || !SWA__ONE_FMA
#  define SWV_LOOPS
#endif
#define SWV_FEW_KEYS(r)         SWV_FEW(r)
#ifdef SWV_LOOPS                         /* sums are in memory                                    */
#  define SWV_CONSTRAINT(x)     "+m"(x)
#elif defined(__x86_64__) || SWA__SSE2
#  define SWV_CONSTRAINT(x)     "+x"(x)
#elif defined(__aarch64__)
#  define SWV_CONSTRAINT(x)     "+w"(x)
#elif defined(__arm__)
#  define SWV_CONSTRAINT(x)     "+t"(x)
#else
#  define SWV_CONSTRAINT(x)     "+f"(x)
#endif
#include SWA_HEADER_FILENAME

#if SWA__NEON
/* NEON: 32 registers of 4 floats. An FMA takes a lane of one of them as it is (AT), so p and the
   numbers of a row come by the vector, and not one by one into all lanes. */

/* 2 by 2, then by halves. */
SWA__INLINE void swa__transpose_neon(float32x4_t *r) {
    float32x4x2_t a = vtrnq_f32(r[0], r[1]), b = vtrnq_f32(r[2], r[3]);

    r[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    r[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    r[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    r[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

/* Small integers by way of 3 * 2^22, whose lowest bit counts 1: to convert them takes the units
   that multiply twice as long. */
SWA__INLINE float32x4_t swa__float_neon(int16x4_t x) {
    return vreinterpretq_f32_s32(vaddw_s16(vdupq_n_s32(0x4b400000), x)) - vdupq_n_f32(12582912.0f);
}

/* Four bytes, of any alignment. */
SWA__INLINE float32x4_t swa__load_q8_neon(const int8_t *p) {
    uint32_t w;

    memcpy(&w, p, 4);
    return swa__float_neon(vget_low_s16(vmovl_s8(vcreate_s8(w))));
}

/* 16 numbers in q8 or bf16; the latter by an instruction that runs on any unit. */
SWA__INLINE void swa__row_neon(int type, const void *p, float32x4_t *x) {
    const uint16x8_t zero = vdupq_n_u16(0);
    int i;

    SWA__UNROLL for (i = 0; i < 2; i++) {
        if (SWA__IS_Q8(type)) {
            const int16x8_t h = vmovl_s8(vld1_s8((const int8_t *)p + i * 8));
            x[2 * i] = swa__float_neon(vget_low_s16(h));
            x[2 * i + 1] = swa__float_neon(vget_high_s16(h));
        } else {
            const uint16x8_t h = vld1q_u16((const uint16_t *)p + i * 8);
            x[2 * i] = vreinterpretq_f32_u16(vzip1q_u16(zero, h));
            x[2 * i + 1] = vreinterpretq_f32_u16(vzip2q_u16(zero, h));
        }
    }
}

/* Of integers in [-127, 127]: kr->round has made them. */
SWA__INLINE void swa__store_q8_neon(int8_t *p, float32x4_t v) {
    int16x4_t h = vmovn_s32(vcvtq_s32_f32(v));
    int8x8_t b = vmovn_s16(vcombine_s16(h, h));
    int32_t w = vget_lane_s32(vreinterpret_s32_s8(b), 0);

    memcpy(p, &w, 4);
}

/* To nearest even: 0x7fff is half of what is cut off, less one, and the last bit that stays is
   added. A float again, its lower half 0. Numbers were saturated before, so none gets past the
   largest. All instances do this alike. */
SWA__INLINE float32x4_t swa__to_bf16_neon(float32x4_t v) {
    uint32x4_t u = vreinterpretq_u32_f32(v);

    u = vaddq_u32(u, vaddq_u32(vdupq_n_u32(0x7fff), vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1))));
    return vreinterpretq_f32_u32(vandq_u32(u, vdupq_n_u32(0xffff0000u)));
}

#if SWA__STAGED
/* Four bytes, see SWV_HALVES in [SECTION 9]. */
SWA__INLINE float32x4_t swa__halves_neon(const unsigned char *p, int n) {
    uint32_t w;
    int16x4_t h;

    memcpy(&w, p, 4);
    h = vshl_s16(vget_low_s16(vmovl_s8(vcreate_s8(w))), vdup_n_s16((int16_t)n));
    h = vand_s16(h, vdup_n_s16((int16_t)(0x7f << n | -0x8000)));
    return vcvt_f32_f16(vreinterpret_f16_s16(h));
}
#endif

#define SWV_ISA                 neon
#define SWV                     float32x4_t
#define SWV_N                   4
#define SWV_KEYS                8
#define SWV_VECTORS             2
#define SWV_DIMS                6
#define SWV_FEW(r)              ((r) == 1 ? 8 : 4)
#define SWV_FEW_KEYS(r)         SWV_FEW(r)
#define SWV_CONSTRAINT(x)       "+w"(x)
#define SWV_SET1(x)             vdupq_n_f32(x)
#define SWV_LOAD(p)             vld1q_f32(p)
#define SWV_STORE(p, v)         vst1q_f32((p), (v))
#define SWV_FMA(a, b, c)        vfmaq_f32((c), (a), (b))
#define SWV_MAX(a, b)           vmaxq_f32((a), (b))
#define SWV_MIN(a, b)           vminq_f32((a), (b))
#define SWV_RINT(x)             vrndnq_f32(x)
#define SWV_FLOOR(x)            vrndmq_f32(x)
#define SWV_RAISED(x, lo, p)    vreinterpretq_f32_u32(vandq_u32(vcgeq_f32((x), (lo)), \
                                    vshlq_n_u32(vreinterpretq_u32_f32(p), 16)))
/* n + 3 * 2^22 ends in n as an integer, and 23 bits up that is an exponent; the rest is shifted
   out */
#define SWV_SCALE(p, n)         vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(p), \
                                    vshlq_n_s32(vreinterpretq_s32_f32(SWV_ADD((n), vdupq_n_f32(12582912.0f))), 23)))
#define SWV_PICK(x, lo, hi, a, b) vbslq_f32(vandq_u32(vcgeq_f32((x), (lo)), vcltq_f32((x), (hi))), (a), (b))
#define SWV_TRANSPOSE(r)        swa__transpose_neon(r)
#define SWV_LOAD_F16(p)         vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))
#define SWV_LOAD_BF16(p)        vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16))
#define SWV_LOAD_Q8(p)          swa__load_q8_neon(p)
#define SWV_HALVES(p, n)        swa__halves_neon((p), (n))
#define SWV_ROW(type, p, x)     swa__row_neon((type), (p), (x))
#define SWV_STORE_F16(p, v)     vst1_u16((p), vreinterpret_u16_f16(vcvt_f16_f32(v)))
#define SWV_STORE_BF16(p, v)    vst1_u16((p), vshrn_n_u32(vreinterpretq_u32_f32(swa__to_bf16_neon(v)), 16))
#define SWV_STORE_Q8(p, v)      swa__store_q8_neon((p), (v))
#define SWV_TO_BF16(x)          swa__to_bf16_neon(x)
#define SWV_SWAP(x)             vrev64q_f32(x)
/* in an FMA it becomes that instruction's lane, and costs nothing */
#define SWV_AT(v, i)            vdupq_n_f32((v)[i])
#define SWV_PIN(x)              __asm__("" : SWV_CONSTRAINT(x))
#ifdef __clang__ /* or N1 and V2 are bound by what they can dispatch, not by their FMAs           */
#  define SWV_STEPS             _Pragma("clang loop unroll_count(4)")
#else
#  define SWV_STEPS             _Pragma("GCC unroll 4")
#endif

#if SWA__NEON_DOT && SWA__Q8
/* acc += the four products of each lane of x and those of lane i of y. */
SWA__INLINE int32x4_t swa__dot(int32x4_t acc, int8x16_t x, int8x16_t y, int i) {
    const int32x4_t n = vreinterpretq_s32_s8(y);

    /* the instruction wants a constant; i is one where loops are unrolled */
    if (i == 0) return vdotq_laneq_s32(acc, x, vreinterpretq_s8_s32(n), 0);
    if (i == 1) return vdotq_laneq_s32(acc, x, vreinterpretq_s8_s32(n), 1);
    if (i == 2) return vdotq_laneq_s32(acc, x, vreinterpretq_s8_s32(n), 2);
    return vdotq_laneq_s32(acc, x, vreinterpretq_s8_s32(n), 3);
}

/* Four dims of 16 keys, of which dims - d exist, as four vectors of keys, four bytes each. */
SWA__INLINE void swa__dots_keys_neon(const int8_t *k, int left, int8x16_t *x) {
    int8_t rest[64];
    int8x16x2_t a, b;
    int16x8x2_t lo, hi;

    /* zeros for the dims that are missing: they add nothing, and nothing behind K is read */
    if (left < 4) {
        memset(rest, 0, sizeof rest);
        memcpy(rest, k, (size_t)left * 16);
        k = rest;
    }

    /* dims 0 and 1 of a key side by side, 2 and 3 likewise, then both */
    a = vzipq_s8(vld1q_s8(k), vld1q_s8(k + 16));
    b = vzipq_s8(vld1q_s8(k + 32), vld1q_s8(k + 48));
    lo = vzipq_s16(vreinterpretq_s16_s8(a.val[0]), vreinterpretq_s16_s8(b.val[0]));
    hi = vzipq_s16(vreinterpretq_s16_s8(a.val[1]), vreinterpretq_s16_s8(b.val[1]));

    x[0] = vreinterpretq_s8_s16(lo.val[0]);
    x[1] = vreinterpretq_s8_s16(lo.val[1]);
    x[2] = vreinterpretq_s8_s16(hi.val[0]);
    x[3] = vreinterpretq_s8_s16(hi.val[1]);
}

/* q.k of R rows in q8, four numbers of 16 keys at once: s [R][256] from vector v on, q [dk/4][R]
   times four bytes. The sums are exact, as are the f32 chains of integers that other instances run:
   compute SWA_Q8 takes head_dim up to 1040, and 127*127*1040 is less than 2^24. */
SWA__INLINE void swa__dots_few_neon(int R, const swa__block *b, const int32_t *q,
                                    const int32_t *sum, float *s, int v) {
    const swa__tile *t = &b->tile[v / 4];
    const int8_t *k = (const int8_t *)t->k;
    const char *pf = (const char *)t->v;
    int32x4_t acc[4][4];
    int8x16_t x[4], row;
    int i, j, d;

    (void)sum;                           /* for an instruction that takes K unsigned              */
    SWA__UNROLL for (i = 0; i < R; i++)
        SWA__UNROLL for (j = 0; j < 4; j++) acc[i][j] = vdupq_n_s32(0);

    /* V of these keys is fetched a line per line of K */
    for (d = b->g->dk; d > 0; d -= 4, q += R, k += 64, pf += 64) {
        SWA__FETCH(pf, b->l1);
        swa__dots_keys_neon(k, d, x);
        /* as many rows as there are: no more of q is read, the rest of `row` is not used */
        if (R == 4) row = vreinterpretq_s8_s32(vld1q_s32(q));
        else if (R == 2) row = vreinterpretq_s8_s32(vcombine_s32(vld1_s32(q), vdup_n_s32(0)));
        else row = vreinterpretq_s8_s32(vld1q_dup_s32(q));
        SWA__UNROLL for (i = 0; i < R; i++)
            SWA__UNROLL for (j = 0; j < 4; j++) acc[i][j] = swa__dot(acc[i][j], x[j], row, i);
    }

    SWA__UNROLL for (i = 0; i < R; i++)
        SWA__UNROLL for (j = 0; j < 4; j++)
            vst1q_f32(s + i * SWA_BLOCK + (v + j) * 4,
                      vcvtq_f32_s32(acc[i][j]) * vld1q_f32(t->k_scale + j * 4));
}

SWA__NOINLINE SWA__FEW_DOTS(neon, 4)
#define SWV_DOTS                swa__few_dots_neon

/* Columns of rows `ld` apart, integers in f32: of n rows (4 at most), four bytes each. The last row
   first, so that the first one comes to lie lowest. */
SWA__INLINE int32x4_t swa__dots_bytes_neon(const float *row, int ld, int n) {
    int32x4_t y = vdupq_n_s32(0);

    while (--n >= 0) y = vsliq_n_s32(vcvtq_s32_f32(vld1q_f32(row + n * ld)), y, 8);
    return y;
}

/* See swa__kernels.to_dots; no side is unsigned here: nothing is flipped, and no sums are wanted. */
static void swa__to_dots_neon(int type, int dims, int ld, int flip, const void *src, float *to) {
    const float *row = (const float *)src;
    const int8_t *bytes = (const int8_t *)src;
    int8x16_t x[4];
    int d, c;

    (void)flip;
    for (d = dims; d > 0; d -= 4, row += 4 * ld, bytes += 64, to += ld) {
        if (type == SWA_Q8) {
            swa__dots_keys_neon(bytes, d, x);
            for (c = 0; c < 4; c++) vst1q_s8((int8_t *)(void *)(to + 4 * c), x[c]);
        }
        for (c = 0; c < ld && type != SWA_Q8; c += 4)
            vst1q_s32((int32_t *)(void *)(to + c), swa__dots_bytes_neon(row + c, ld, d < 4 ? d : 4));
    }
}

/* See swa__sight.scores: 16 sums at once, of 8 rows and 8 keys: sum i is of the rows 4*(i%2) and on
   (x, four bytes of a row a lane) and of key i/2 (lane i/2%4 of y).

       q    [dk/4][8 rows] times four bytes        key    [dk/4][16 keys] times four bytes

   both as swa__to_dots_neon makes them; the tile's next one is fetched a line with every four dims. */
SWA__INLINE void swa__dots_group_neon(const swa__block *b, int fetch, const float *q_scale, int k,
                                      const float *q, float *s) {
    const swa__tile *t = &b->tile[k / 16];
    const int8_t *key = (const int8_t *)t->k + k % 16 * 4, *of = (const int8_t *)(const void *)q;
    const float *scale = t->k_scale + k % 16;
    const char *next = fetch && t->next != NULL && k % 16 == 0 ? t->next : (const char *)key;
    const int line = next == t->next ? 64 : 0;
    int32x4_t acc[16];
    int8x16_t x[2], y[2];
    int i, p = (b->g->dk + 3) / 4;

    SWA__UNROLL for (i = 0; i < 16; i++) acc[i] = vdupq_n_s32(0);
    do {
        SWA__PREFETCH(next);
        SWA__UNROLL for (i = 0; i < 2; i++) {
            x[i] = vld1q_s8(of + i * 16);
            y[i] = vld1q_s8(key + i * 16);
        }
        SWA__UNROLL for (i = 0; i < 16; i++)
            acc[i] = swa__dot(acc[i], x[i % 2], y[i / 8], i / 2 % 4);
        key += 64;
        of += 32;
        next += line;
    } while (--p > 0);

    SWA__UNROLL for (i = 0; i < 16; i++)
        vst1q_f32(s + i * 4, vcvtq_f32_s32(acc[i]) * vdupq_n_f32(scale[i / 2])
                                 * vld1q_f32(q_scale + i % 2 * 4));
}

/* As swa__sight.scores: up to the end of k's bundle of 32, 8 keys at a time, which are 64
   scores. */
static void swa__many_dots_neon(const swa__block *b, const swa__sight *n, int w, int k, int end,
                                const float *q, float *s) {
    if (end > (k | 31) + 1) end = (k | 31) + 1;
    for (s += k % SWA__SUMMED * n->nr; k < end; k += 8, s += 64)
        swa__dots_group_neon(b, n->fetch, n->q_scale[w], k, q, s);
}
#endif
#include SWA_HEADER_FILENAME
#endif

#if SWA__SIMD128
/* No FMA here: the relaxed one may fuse or not, as the machine likes, which is no promise. It goes
   by double, as swa__fma does; where a lane is in doubt, each is done to the letter. */
SWA__NOINLINE v128_t swa__fma_lanes_simd128(v128_t a, v128_t b, v128_t c) {
    float x[4], y[4], z[4];
    int i;
    wasm_v128_store(x, a);
    wasm_v128_store(y, b);
    wasm_v128_store(z, c);
    for (i = 0; i < 4; i++) z[i] = swa__fma_odd(x[i], y[i], z[i]);
    return wasm_v128_load(z);
}

/* Lanes 2 and 3 in double, which only the lower half is converted to. */
SWA__INLINE v128_t swa__upper_simd128(v128_t x) {
    return wasm_f64x2_promote_low_f32x4(wasm_i32x4_shuffle(x, x, 2, 3, 2, 3));
}

SWA__INLINE v128_t swa__fma_simd128(v128_t a, v128_t b, v128_t c) {
    v128_t lo = wasm_f64x2_add(
        wasm_f64x2_mul(wasm_f64x2_promote_low_f32x4(a), wasm_f64x2_promote_low_f32x4(b)),
        wasm_f64x2_promote_low_f32x4(c));
    v128_t hi = wasm_f64x2_add(wasm_f64x2_mul(swa__upper_simd128(a), swa__upper_simd128(b)),
                               swa__upper_simd128(c));

    v128_t r = wasm_i32x4_shuffle(wasm_f32x4_demote_f64x2_zero(lo),
                                  wasm_f32x4_demote_f64x2_zero(hi), 0, 1, 4, 5);

    /* of the 29 bits that a float does not have, 1 and zeros are the midpoint; and a subnormal
       lacks more of them, 2^-126 as well where it was rounded up to */
    v128_t below =
        wasm_v128_and(wasm_i32x4_shuffle(lo, hi, 0, 2, 4, 6), wasm_i32x4_splat(0x1fffffff));
    v128_t size = wasm_v128_and(r, wasm_i32x4_splat(0x7fffffff));
    v128_t doubt = wasm_v128_or(
        wasm_i32x4_eq(below, wasm_i32x4_splat(0x10000000)),
        wasm_u32x4_lt(wasm_i32x4_sub(size, wasm_i32x4_splat(1)), wasm_i32x4_splat(0x00800000)));

    return __builtin_expect(wasm_v128_any_true(doubt), 0) ? swa__fma_lanes_simd128(a, b, c) : r;
}

SWA__INLINE void swa__transpose_simd128(v128_t *r) {
    v128_t a = wasm_i32x4_shuffle(r[0], r[1], 0, 4, 1, 5),
           b = wasm_i32x4_shuffle(r[2], r[3], 0, 4, 1, 5);
    v128_t c = wasm_i32x4_shuffle(r[0], r[1], 2, 6, 3, 7),
           d = wasm_i32x4_shuffle(r[2], r[3], 2, 6, 3, 7);

    r[0] = wasm_i32x4_shuffle(a, b, 0, 1, 4, 5);
    r[1] = wasm_i32x4_shuffle(a, b, 2, 3, 6, 7);
    r[2] = wasm_i32x4_shuffle(c, d, 0, 1, 4, 5);
    r[3] = wasm_i32x4_shuffle(c, d, 2, 3, 6, 7);
}

/* The exponent is rebased by a product with 2^112, which makes subnormals right as well. */
SWA__INLINE v128_t swa__load_f16_simd128(const uint16_t *p) {
    v128_t h = wasm_u32x4_load16x4(p), size = wasm_v128_and(h, wasm_i32x4_splat(0x7fff));
    v128_t sign = wasm_i32x4_shl(wasm_v128_and(h, wasm_i32x4_splat(0x8000)), 16);
    v128_t x = wasm_f32x4_mul(wasm_i32x4_shl(size, 13), wasm_f32x4_splat(5.192296858534828e33f));

    /* infinity and NaN, whose exponent the product leaves too small */
    v128_t top =
        wasm_v128_and(wasm_i32x4_gt(size, wasm_i32x4_splat(0x7bff)), wasm_i32x4_splat(0x7f800000));

    return wasm_v128_or(wasm_v128_or(x, top), sign);
}

/* One by one, since it rounds, to subnormals too; only new rows come here. */
SWA__INLINE void swa__store_f16_simd128(uint16_t *p, v128_t v) {
    float x[4];
    int i;
    wasm_v128_store(x, v);

    for (i = 0; i < 4; i++) p[i] = swa__f16_from_f32(x[i]);
}

/* As swa__to_bf16_neon. */
SWA__INLINE v128_t swa__to_bf16_simd128(v128_t u) {
    v128_t one = wasm_v128_and(wasm_u32x4_shr(u, 16), wasm_i32x4_splat(1));
    u = wasm_i32x4_add(u, wasm_i32x4_add(one, wasm_i32x4_splat(0x7fff)));
    return wasm_v128_and(u, wasm_i32x4_splat(-65536));
}

SWA__INLINE void swa__store_bf16_simd128(uint16_t *p, v128_t v) {
    v128_t u = wasm_u32x4_shr(swa__to_bf16_simd128(v), 16);
    wasm_v128_store64_lane(p, wasm_u16x8_narrow_i32x4(u, u), 0);
}

/* Of integers in [-127, 127]: nothing saturates on the way. */
SWA__INLINE void swa__store_q8_simd128(int8_t *p, v128_t v) {
    v128_t u = wasm_i32x4_trunc_sat_f32x4(v);
    u = wasm_i16x8_narrow_i32x4(u, u);
    wasm_v128_store32_lane(p, wasm_i8x16_narrow_i16x8(u, u), 0);
}

typedef float swa__floats __attribute__((__vector_size__(16)));
#define SWV_ISA                 simd128
#define SWV                     v128_t
#define SWV_N                   4
#define SWV_KEYS                4
#define SWV_VECTORS             2
#define SWV_DIMS                2
#define SWV_FEW(r)              ((r) == 1 ? 4 : (r) == 2 ? 2 : 1)
#define SWV_FEW_KEYS(r)         SWV_FEW(r)
#define SWV_CONSTRAINT(x)       "+r"(x)
#define SWV_SET1(x)             wasm_f32x4_splat(x)
#define SWV_LOAD(p)             wasm_v128_load(p)
#define SWV_STORE(p, v)         wasm_v128_store((p), (v))
#define SWV_FMA(a, b, c)        swa__fma_simd128((a), (b), (c))
/* C's operators: the intrinsics keep the host's -ffast-math */
#define SWV_ADD(a, b)           ((v128_t)((swa__floats)(a) + (swa__floats)(b)))
#define SWV_SUB(a, b)           ((v128_t)((swa__floats)(a) - (swa__floats)(b)))
#define SWV_MUL(a, b)           ((v128_t)((swa__floats)(a) * (swa__floats)(b)))
#define SWV_DIV(a, b)           wasm_f32x4_div((a), (b))
/* pmax(b, a) is b < a ? a : b: a where it is greater, as the scalar instance has it */
#define SWV_MAX(a, b)           wasm_f32x4_pmax((b), (a))
#define SWV_MIN(a, b)           wasm_f32x4_pmin((b), (a))
#define SWV_RINT(x)             wasm_f32x4_nearest(x)
#define SWV_FLOOR(x)            wasm_f32x4_floor(x)
#define SWV_RAISED(x, lo, p)    wasm_v128_and(wasm_f32x4_ge((x), (lo)), wasm_i32x4_shl((p), 16))
#define SWV_SCALE(p, n)         wasm_i32x4_add((p), wasm_i32x4_shl(wasm_i32x4_trunc_sat_f32x4(n), 23))
#define SWV_PICK(x, lo, hi, a, b) wasm_v128_bitselect((a), (b), wasm_v128_and(wasm_f32x4_ge((x), (lo)), \
                                    wasm_f32x4_lt((x), (hi))))
#define SWV_TRANSPOSE(r)        swa__transpose_simd128(r)
#define SWV_LOAD_F16(p)         swa__load_f16_simd128(p)
#define SWV_LOAD_BF16(p)        wasm_i32x4_shl(wasm_u32x4_load16x4(p), 16)
#define SWV_LOAD_Q8(p)          wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8( \
                                    wasm_i16x8_extend_low_i8x16(wasm_v128_load32_zero(p))))
#define SWV_STORE_F16(p, v)     swa__store_f16_simd128((p), (v))
#define SWV_STORE_BF16(p, v)    swa__store_bf16_simd128((p), (v))
#define SWV_STORE_Q8(p, v)      swa__store_q8_simd128((p), (v))
#define SWV_TO_BF16(x)          swa__to_bf16_simd128(x)
#define SWV_SWAP(x)             wasm_i32x4_shuffle((x), (x), 1, 0, 3, 2)
#include SWA_HEADER_FILENAME
#endif

#if SWA__AVX2
/* AVX2: 16 registers of 8 floats, which is what all its shapes are cut to. A number in all lanes is
   a load like any other. */
#define SWA__AVX2_TARGET SWA__TARGET("avx2,fma,f16c")

/* Pairs of rows, fours, then the 128-bit halves, which the first two steps do not cross. */
SWA__INLINE SWA__AVX2_TARGET void swa__transpose_avx2(__m256 *r) {
    __m256 t[8], u[8];
    int i;

    SWA__UNROLL for (i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    SWA__UNROLL for (i = 0; i < 8; i += 4) {
        u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    SWA__UNROLL for (i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}

SWA__INLINE SWA__AVX2_TARGET __m256 swa__zip_avx2(__m256 a, __m256 b, int high) {
    const __m256 x = _mm256_unpacklo_ps(a, b), y = _mm256_unpackhi_ps(a, b);
    return high ? _mm256_permute2f128_ps(x, y, 0x31) : _mm256_permute2f128_ps(x, y, 0x20);
}

/* As swa__to_bf16_neon. */
SWA__INLINE SWA__AVX2_TARGET __m256 swa__to_bf16_avx2(__m256 v) {
    __m256i u = _mm256_castps_si256(v),
            one = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    u = _mm256_add_epi32(u, _mm256_add_epi32(one, _mm256_set1_epi32(0x7fff)));
    return _mm256_castsi256_ps(_mm256_and_si256(u, _mm256_set1_epi32(-65536)));
}

#if SWA__ROUNDS
/* as swa__round8_avx512 */
SWA__INLINE SWA__AVX2_TARGET __m256 swa__round8_avx2(__m256 x) {
    __m256 less = _mm256_mul_ps(x, _mm256_set1_ps(65535.0f));
    SWA__HELD(less);
    return _mm256_fmsub_ps(x, _mm256_set1_ps(65536.0f), less);
}
#endif

SWA__INLINE SWA__AVX2_TARGET void swa__store_bf16_avx2(uint16_t *p, __m256 v) {
    __m256i u = _mm256_srli_epi32(_mm256_castps_si256(swa__to_bf16_avx2(v)), 16);
    /* packing works in each half by itself: bring the two quarters that count together */
    u = _mm256_permute4x64_epi64(_mm256_packus_epi32(u, u), 0x08);
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(u));
}

SWA__INLINE SWA__AVX2_TARGET void swa__store_q8_avx2(int8_t *p, __m256 v) {
    __m256i u = _mm256_cvtps_epi32(v);
    __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi16(h, h));
}

/* By one shuffle of what a load has put into both lanes: one slot beside the FMAs, where VPMOVZXWD
   and a shift are two. */
SWA__INLINE SWA__AVX2_TARGET __m256 swa__load_bf16_avx2(const uint16_t *p) {
    const __m256i at = _mm256_setr_epi32(0x01008080, 0x03028080, 0x05048080, 0x07068080, 0x09088080,
                                         0x0b0a8080, 0x0d0c8080, 0x0f0e8080);
    return _mm256_castsi256_ps(_mm256_shuffle_epi8(
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p)), at));
}

#define SWV_ISA                 avx2
#define SWV_TARGET              SWA__AVX2_TARGET
#define SWV                     __m256
#define SWV_N                   8
#define SWV_KEYS                4
#define SWV_VECTORS             3
#define SWV_DIMS                2
#define SWV_FEW(r)              ((r) == 1 ? 8 : (r) == 2 ? 4 : 2)
#define SWV_FEW_KEYS(r)         ((r) <= 2 ? 4 : 2)
#if !SWA__SMALL
/* A call on a nearly empty window takes 0.9 of the time by a kernel of its own; 1.1 KB. */
#  define SWV_LONE(r, nw)       ((r) == 1 && (nw) == 2)
#  define SWV_INDEX             3
#  define SWV_INDEX_ROWS        4
#  define SWV_INDEX_KEYS        48
#endif
/* By two, no more: a core that two threads share is bound by decoding instructions. */
#if defined(__clang__)
#  define SWV_STEPS             _Pragma("clang loop unroll_count(2)")
#elif defined(__GNUC__)
#  define SWV_STEPS             _Pragma("GCC unroll 2")
#endif
#define SWV_CONSTRAINT(x)       "+x"(x)
#define SWV_SET1(x)             _mm256_set1_ps(x)
#define SWV_LOAD(p)             _mm256_loadu_ps(p)
#define SWV_STORE(p, v)         _mm256_storeu_ps((p), (v))
#define SWV_FMA(a, b, c)        _mm256_fmadd_ps((a), (b), (c))
#if SWA__MSVC_AVX2
#  define SWV_ADD(a, b)         _mm256_add_ps((a), (b))
#  define SWV_SUB(a, b)         _mm256_sub_ps((a), (b))
#  define SWV_MUL(a, b)         _mm256_mul_ps((a), (b))
#  define SWV_DIV(a, b)         _mm256_div_ps((a), (b))
#endif
#define SWV_MAX(a, b)           _mm256_max_ps((a), (b))
#define SWV_MIN(a, b)           _mm256_min_ps((a), (b))
#define SWV_RINT(x)             _mm256_round_ps((x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define SWV_FLOOR(x)            _mm256_round_ps((x), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#define SWV_RAISED(x, lo, p)    _mm256_and_ps(_mm256_cmp_ps((x), (lo), _CMP_GE_OQ), \
                                    _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(p), 16)))
#define SWV_SCALE(p, n)         _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), \
                                    _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)))
#define SWV_PICK(x, lo, hi, a, b) _mm256_blendv_ps((b), (a), _mm256_and_ps(_mm256_cmp_ps((x), (lo), _CMP_GE_OQ), \
                                    _mm256_cmp_ps((x), (hi), _CMP_LT_OQ)))
#define SWV_SINCE(x, lo, a, b)  _mm256_blendv_ps((b), (a), _mm256_cmp_ps((x), (lo), _CMP_GE_OQ))
#define SWV_TRANSPOSE(r)        swa__transpose_avx2(r)
#define SWV_ZIP(a, b, high)     swa__zip_avx2((a), (b), (high))
#define SWV_LOAD_F16(p)         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define SWV_LOAD_BF16(p)        swa__load_bf16_avx2(p)
#define SWV_LOAD_Q8(p)          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32( \
                                    _mm_loadl_epi64((const __m128i *)(const void *)(p))))
#define SWV_HALVES(p, n)        _mm256_cvtph_ps(_mm_and_si128(_mm_set1_epi16((short)(0x7f << (n) | -0x8000)), \
                                    _mm_slli_epi16(_mm_cvtepi8_epi16( \
                                        _mm_loadl_epi64((const __m128i *)(const void *)(p))), (n))))
#define SWV_STORE_F16(p, v)     _mm_storeu_si128((__m128i *)(void *)(p), \
                                    _mm256_cvtps_ph((v), _MM_FROUND_TO_NEAREST_INT))
#define SWV_STORE_BF16(p, v)    swa__store_bf16_avx2((p), (v))
#define SWV_STORE_Q8(p, v)      swa__store_q8_avx2((p), (v))
#define SWV_TO_BF16(x)          swa__to_bf16_avx2(x)
#define SWV_ABS(x)              _mm256_and_ps((x), _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff)))
#define SWV_SWAP(x)             _mm256_permute_ps((x), 0xb1)
/* p where the mask is all ones; 0, without a register for it, elsewhere */
#define SWV_FROM(x, lo, p)      _mm256_and_ps(_mm256_cmp_ps((x), (lo), _CMP_GE_OQ), (p))
#if !SWA__SMALL
#  define SWV_HALF_PANEL        2
#  define SWV_HALF_KEYS         4
#  define SWV_HALF_DIMS         3
#endif
#if SWA__ROUNDS
#  define SWV_ROUNDS            8
#  define SWV_ROUND8(x)         swa__round8_avx2(x)
/* 0 below tiny; of NaN a NaN; what is too large becomes infinity */
#  define SWV_ROUND8_FROM(x, tiny) _mm256_and_ps(_mm256_cmp_ps(SWV_ABS(x), (tiny), _CMP_NLT_UQ), \
                                    SWV_ROUND8(x))
#  define SWV_NOT_FINITE(x)     (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi32( \
                                    _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x7f800000)), \
                                    _mm256_set1_epi32(0x7f800000)))
#endif
#define SWV_LEAVE()             _mm256_zeroupper() /* or the host's SSE code crawls; gcc adds it
                                                      from -O2 on only                            */
#if SWA__AVX2_DOT && SWA__Q8
/* Integer products of q8, four numbers of 8 keys at once: AVX-VNNI, which Intel's CPUs without
   AVX-512 have since 2021 (Alder Lake). As with AVX-512 below, K comes with 128 added. */
#define SWA__VNNI_TARGET SWA__TARGET("avx2,fma,f16c,avxvnni")

/* Four dims of 16 keys, of which `left` exist, as two vectors of keys, four bytes each. */
SWA__INLINE SWA__VNNI_TARGET void swa__dots_keys_avx2(const char *k, int left, __m256i *x) {
    /* within half a vector: pairs of dims, of four keys each, side by side by key */
    const __m256i by_key = _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15, 0,
                                            1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    __m256i even, odd;                   /* dims 0 and 2, 1 and 3                                 */
    char rest[64];

    /* zeros for the dims that are missing: they add nothing, and nothing behind K is read */
    if (left < 4) {
        memset(rest, 0, sizeof rest);
        memcpy(rest, k, (size_t)left * 16);
        k = rest;
    }
    even = _mm256_loadu2_m128i((const __m128i *)(const void *)(k + 32), (const __m128i *)(const void *)k);
    odd = _mm256_loadu2_m128i((const __m128i *)(const void *)(k + 48),
                              (const __m128i *)(const void *)(k + 16));
    x[0] = _mm256_permute4x64_epi64(_mm256_unpacklo_epi8(even, odd), 0xd8);
    x[1] = _mm256_permute4x64_epi64(_mm256_unpackhi_epi8(even, odd), 0xd8);
    x[0] = _mm256_shuffle_epi8(x[0], by_key);
    x[1] = _mm256_shuffle_epi8(x[1], by_key);
}

/* q.k of R rows: see swa__dots_few_avx512. */
SWA__INLINE SWA__VNNI_TARGET void swa__dots_few_avx2(int R, const swa__block *b,
                                                     const int32_t *q, const int32_t *sum,
                                                     float *s, int v) {
    const __m256i sign = _mm256_set1_epi32(-0x7f7f7f80);
    const swa__tile *t = &b->tile[v / 2];
    const char *k = (const char *)t->k, *pf = (const char *)t->v;
    __m256i acc[8], x[2], y;
    int i, j, d;

    SWA__UNROLL for (i = 0; i < 2 * R; i++) acc[i] = _mm256_set1_epi32(-128 * sum[i / 2]);

    /* V of these keys is fetched a line per line of K */
    for (d = b->g->dk; d > 0; d -= 4, q += R, k += 64, pf += 64) {
        SWA__FETCH(pf, b->l1);
        swa__dots_keys_avx2(k, d, x);
        SWA__UNROLL for (j = 0; j < 2; j++) x[j] = _mm256_xor_si256(x[j], sign);
        SWA__UNROLL for (i = 0; i < R; i++) {
            y = _mm256_set1_epi32(q[i]);
            SWA__UNROLL for (j = 0; j < 2; j++)
                acc[i * 2 + j] = _mm256_dpbusd_avx_epi32(acc[i * 2 + j], x[j], y);
        }
    }

    SWA__UNROLL for (i = 0; i < R; i++)
        SWA__UNROLL for (j = 0; j < 2; j++)
            _mm256_storeu_ps(s + i * SWA_BLOCK + (v + j) * 8,
                             _mm256_cvtepi32_ps(acc[i * 2 + j]) * _mm256_loadu_ps(t->k_scale + j * 8));
}

SWA__NOINLINE SWA__VNNI_TARGET SWA__FEW_DOTS(avx2, 2)
#define SWV_DOTS                swa__few_dots_avx2

/* See swa__kernels.to_dots: the 16 columns of q8 at once, or 8 of integers. */
static SWA__VNNI_TARGET void swa__to_dots_avx2(int type, int dims, int ld, int flip,
                                               const void *src, float *dst) {
    const int vectors = type == SWA_Q8 ? 2 : 1;
    const __m256i over = _mm256_set1_epi32(flip), most = _mm256_set1_epi8(-128);
    int d, i, n, c;

    for (c = 0; c < ld; c += 8 * vectors) {
        const float *row = (const float *)src + c;
        float *to = dst + c;
        __m256i sum[2], x[2];
        sum[0] = sum[1] = x[1] = _mm256_setzero_si256();
        for (d = 0; d < dims; d += 4, to += ld) {
            n = dims - d < 4 ? dims - d : 4;
            x[0] = _mm256_setzero_si256();
            if (type == SWA_Q8) swa__dots_keys_avx2((const char *)src + d * 16, n, x);
            /* bytes come in from above: where there are fewer than four, they go the rest of the way */
            for (i = 0; i < n && type != SWA_Q8; i++, row += ld)
                x[0] = _mm256_or_si256(_mm256_srli_epi32(x[0], 8),
                                       _mm256_slli_epi32(_mm256_cvtps_epi32(_mm256_loadu_ps(row)), 24));
            if (type != SWA_Q8) x[0] = _mm256_srl_epi32(x[0], _mm_cvtsi32_si128(32 - n * 8));
            for (i = 0; i < vectors; i++) {
                sum[i] = _mm256_dpbusd_avx_epi32(sum[i], most, x[i]);
                _mm256_storeu_si256((__m256i *)(void *)(to + i * 8), _mm256_xor_si256(x[i], over));
            }
        }
        for (i = 0; i < vectors; i++)
            _mm256_storeu_si256((__m256i *)(void *)(to + i * 8),
                                _mm256_sub_epi32(_mm256_setzero_si256(), sum[i]));
    }
    _mm256_zeroupper();
}

/* See swa__sight.scores: 4 keys by nv vectors of rows, sum i*nv + j of key i and vector j. acc is
   pinned, or gcc copies it in every turn.

       q    [dk/4][nr] times four bytes, then [nr] sums       key    [dk/4][16] times four bytes */
SWA__INLINE SWA__VNNI_TARGET void swa__dots_group_avx2(int nv, const swa__block *b, int fetch,
                                                       const float *q_scale, int k,
                                                       const int32_t *q, float *s) {
    const swa__tile *t = &b->tile[k / 16];
    const int32_t *key = (const int32_t *)t->k + k % 16;
    const float *scale = t->k_scale + k % 16;
    const char *next = fetch && t->next != NULL && k % 16 == 0 ? t->next : (const char *)key;
    const int line = next == t->next ? 64 : 0, steps = (b->g->dk + 3) / 4;
    __m256i acc[12], x[3], y;
    int i, j, p = steps;

    SWA__UNROLL for (i = 0; i < 4 * nv; i++)
        acc[i] = _mm256_loadu_si256((const __m256i *)(const void *)(q + (steps * nv + i % nv) * 8));
    do {
        SWA__PREFETCH(next);
        SWA__UNROLL for (j = 0; j < nv; j++)
            x[j] = _mm256_loadu_si256((const __m256i *)(const void *)(q + j * 8));
        SWA__UNROLL for (i = 0; i < 4; i++) {
            y = _mm256_set1_epi32(key[i]);
            SWA__UNROLL for (j = 0; j < nv; j++)
                acc[i * nv + j] = _mm256_dpbusd_avx_epi32(acc[i * nv + j], y, x[j]);
        }
        SWA__UNROLL for (i = 0; i < 4 * nv; i++) __asm__("" : "+x"(acc[i]));
        key += 16;
        q += nv * 8;
        next += line;
    } while (--p > 0);

    SWA__UNROLL for (i = 0; i < 4 * nv; i++)
        _mm256_storeu_ps(s + i * 8, _mm256_cvtepi32_ps(acc[i]) * _mm256_set1_ps(scale[i / nv])
                                        * _mm256_loadu_ps(q_scale + i % nv * 8));
}

/* As swa__sight.scores: up to the end of k's bundle, four keys at a time. */
static SWA__VNNI_TARGET void swa__many_dots_avx2(const swa__block *b, const swa__sight *n, int w,
                                                 int k, int end, const float *q, float *s) {
    const int32_t *of = (const int32_t *)(const void *)q;

    if (end > (k | 31) + 1) end = (k | 31) + 1;
    for (s += k % SWA__SUMMED * n->nr; k < end; k += 4, s += 4 * n->nr)
        if (n->nr == 24) swa__dots_group_avx2(3, b, n->fetch, n->q_scale[w], k, of, s);
        else swa__dots_group_avx2(2, b, n->fetch, n->q_scale[w], k, of, s);
    _mm256_zeroupper();
}
#endif
#include SWA_HEADER_FILENAME
#endif

#if SWA__AVX512
/* AVX-512: 32 registers of 16 floats. A vector of keys is a tile, SWV_N is SWA__TILE: what only
   this instance has (eight rows, pairs, loads by streams) counts tiles in vectors. Masks stand
   in place of blends. */
#if defined(__GNUC__) && !defined(__clang__) /* gcc 12 warns inside its own intrinsics (its bug
                                                105593) */
#  pragma GCC diagnostic push
#  pragma GCC diagnostic ignored "-Wuninitialized"
#  pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#  pragma GCC diagnostic ignored "-Wsign-conversion" /* at -O0 they are macros, with a mask of -1 */
#endif
#if SWA__AVX512_DOT && SWA__BF16 /* bf16 pairs: for kernels that run where the CPU has them */
#  define SWA__AVX512_TARGET SWA__TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#else
#  define SWA__AVX512_TARGET SWA__TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")
#endif
/* As AVX2's: after the first two steps r[4g+i] has column 4q+i of the rows 4g to 4g+3 in its
   quarter q of 128 bits. What is left is to transpose 4 by 4 quarters: two steps, by even and odd
   ones. */
SWA__INLINE SWA__AVX512_TARGET void swa__transpose_avx512(__m512 *r) {
    __m512 t[16];
    int i;

    SWA__UNROLL for (i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    SWA__UNROLL for (i = 0; i < 16; i += 4) {
        r[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    SWA__UNROLL for (i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88);
        t[4 + i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd);
        t[8 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
        t[12 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
    }
    SWA__UNROLL for (i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0x88);
        r[8 + i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0xdd);
        r[4 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0x88);
        r[12 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0xdd);
    }
}

SWA__INLINE SWA__AVX512_TARGET __m512 swa__zip_avx512(__m512 a, __m512 b, int high) {
    const __m512i i = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    return _mm512_permutex2var_ps(a, _mm512_add_epi32(i, _mm512_set1_epi32(8 * high)), b);
}

/* As swa__to_bf16_neon: where the last bit that stays is set, 0x8000 is added in place of
   0x7fff. */
SWA__INLINE SWA__AVX512_TARGET __m512 swa__to_bf16_avx512(__m512 v) {
    const __m512i u = _mm512_castps_si512(v);
    const __mmask16 odd = _mm512_test_epi32_mask(u, _mm512_set1_epi32(0x10000));
    __m512i r = _mm512_add_epi32(u, _mm512_set1_epi32(0x7fff));

    r = _mm512_mask_add_epi32(r, odd, u, _mm512_set1_epi32(0x8000));
    return _mm512_castsi512_ps(_mm512_and_si512(r, _mm512_set1_epi32(-65536)));
}

#if SWA__ROUNDS
/* To 8 bits by two FMAs, where shifts and masks take four instructions: x times 2^16 - 1, rounded to
   24 bits, is off from x times 2^16 by x rounded to a multiple of its 16 lower bits, of two equally
   near to the even one. Where the product is less than a power of two that x * 2^16 is not, its bits
   are finer, and x so little above that power that it rounds to it. From 2^112 on it overflows. */
SWA__INLINE SWA__AVX512_TARGET __m512 swa__round8_avx512(__mmask16 which, __m512 x) {
    __m512 less = _mm512_mul_ps(x, _mm512_set1_ps(65535.0f));
    SWA__HELD(less);
    return _mm512_maskz_fmsub_ps(which, x, _mm512_set1_ps(65536.0f), less);
}
#endif

#if SWA__BF16
/* The same of all finite numbers from 2^-100 on: what overflows there is 2^17 times as small here. */
SWA__INLINE SWA__AVX512_TARGET __m512 swa__round_bf16_avx512(__m512 x) {
    __m512 less = _mm512_mul_ps(x, _mm512_set1_ps(65535.0f / 131072));
    SWA__HELD(less);
    return _mm512_mul_ps(_mm512_fmsub_ps(x, _mm512_set1_ps(0.5f), less), _mm512_set1_ps(131072.0f));
}
#endif

#if SWA__AVX512_DOT && SWA__BF16
/* Pairs: bf16 of two rows (dims in q.k, keys in p.v) in one lane, row a's below. They are made in
   two steps, because numbers that are too small are told by 16 bits and zeroed in between:

       pair     a0 a1 ... a15    b0 b1 ... b15       rounded, side by side
       counts   one bit each                         which are kept
       mix      a0 b0 | a1 b1 | ... | a15 b15        16 lanes */

/* first, first + step, ...: two indices of 16 bits in each, for permutations. */
SWA__INLINE SWA__AVX512_TARGET __m512i swa__words(int first, int step) {
    const __m512i i = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_add_epi32(_mm512_set1_epi32(first),
                            _mm512_mullo_epi32(i, _mm512_set1_epi32(step)));
}

/* Numbers in f32, see below. */
SWA__INLINE SWA__AVX512_TARGET __m512i swa__pair_of(__m512 x, __m512 y, __m512i *cut) {
    __m512i z;

    /* 1, 3, 5, ...: the upper halves of x, then those of y */
    *cut = _mm512_permutex2var_epi16(_mm512_castps_si512(x), swa__words(0x30001, 0x40004),
                                     _mm512_castps_si512(y));
    /* what would round to infinity: as integers with a sign, positive numbers end at 0x7f7f;
       without one, negative ones at 0xff7f */
    z = _mm512_min_epi16((__m512i)_mm512_cvtne2ps_pbh(y, x), _mm512_set1_epi16(0x7f7f));
    return _mm512_min_epu16(z, _mm512_set1_epi16((short)0xff7f));
}

/* 16 numbers of row a, then of row b, of f32, f16 or bf16, rounded to bf16; cut: the same with bits
   cut off instead, which tell by 16 bits what is below a power of two (no number of f16 is).
   Stored bf16 is finite. */
SWA__INLINE SWA__AVX512_TARGET __m512i swa__pair_avx512(int type, const void *a, const void *b,
                                                        __m512i *cut) {
    if (type == SWA_BF16)
        return *cut = _mm512_inserti64x4(
                   _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)a)),
                   _mm256_loadu_si256((const __m256i *)b), 1);
    if (type == SWA_F16)
        return *cut = (__m512i)_mm512_cvtne2ps_pbh(
                   _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)b)),
                   _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)a)));
    return swa__pair_of(_mm512_loadu_ps(a), _mm512_loadu_ps(b), cut);
}

/* Which of them are not below tiny. */
SWA__INLINE SWA__AVX512_TARGET __mmask32 swa__pair_counts(__m512i cut, float tiny) {
    return _mm512_cmpge_epu16_mask(_mm512_and_si512(cut, _mm512_set1_epi16(0x7fff)),
                                   _mm512_set1_epi16((short)(swa__bits_of(tiny) >> 16)));
}

/* Row a's and row b's number in turn, those of keep: 0, 16, 1, 17, ... */
SWA__INLINE SWA__AVX512_TARGET __m512 swa__pair_mix(__mmask32 keep, __m512i x) {
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(swa__words(0x100000, 0x10001),
                                                        _mm512_maskz_mov_epi16(keep, x)));
}

#if !SWA__SMALL
/* For few rows. No number of f16 is below tiny, which is 2^-56 or 2^-82: nothing to be zeroed. */
SWA__INLINE SWA__AVX512_TARGET __m512 swa__load_pair_avx512(int type, const char *a, const char *b,
                                                            float tiny) {
    __m512i cut, x = swa__pair_avx512(type, a, b, &cut);
    return swa__pair_mix(type == SWA_F16 ? ~0u : swa__pair_counts(cut, tiny), x);
}
#endif
#endif

#define SWV_ISA                 avx512
#define SWV_TWICE                        /* see mk                                                */
#define SWV_TARGET              SWA__AVX512_TARGET
#define SWV                     __m512
#define SWV_N                   16
#define SWV_KEYS                8
#define SWV_VECTORS             2
#define SWV_DIMS                6
#define SWV_FEW(r)              4
#define SWV_FEW_KEYS(r)         4
#define SWV_FEW_F32             2
#if !SWA__SMALL
#  define SWV_FEW_MORE(r)       ((r) <= 2 ? 8 : 0)
#  define SWV_EIGHT             2
#  define SWV_INDEX             2
#  define SWV_INDEX_ROWS        8
#  define SWV_STREAMS(r)        ((r) != 8)
/* x is loaded, before what follows, though nothing may want it */
#  define SWV_LOADED(x)         __asm__ volatile("" : : "v"(x) : "memory")
#endif
#define SWV_CONSTRAINT(x)       "+v"(x)
#define SWV_SET1(x)             _mm512_set1_ps(x)
#define SWV_LOAD(p)             _mm512_loadu_ps(p)
#define SWV_STORE(p, v)         _mm512_storeu_ps((p), (v))
#define SWV_FMA(a, b, c)        _mm512_fmadd_ps((a), (b), (c))
#define SWV_MAX(a, b)           _mm512_max_ps((a), (b))
#define SWV_MIN(a, b)           _mm512_min_ps((a), (b))
#define SWV_RINT(x)             _mm512_roundscale_ps((x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define SWV_FLOOR(x)            _mm512_roundscale_ps((x), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#define SWV_RAISED(x, lo, p)    _mm512_castsi512_ps(_mm512_maskz_slli_epi32( \
                                    _mm512_cmp_ps_mask((x), (lo), _CMP_GE_OQ), _mm512_castps_si512(p), 16))
#define SWV_SCALE(p, n)         _mm512_scalef_ps((p), (n))
#define SWV_PICK(x, lo, hi, a, b) _mm512_mask_blend_ps((__mmask16)(_mm512_cmp_ps_mask((x), (lo), _CMP_GE_OQ) & \
                                    _mm512_cmp_ps_mask((x), (hi), _CMP_LT_OQ)), (b), (a))
#define SWV_SINCE(x, lo, a, b)  _mm512_mask_blend_ps(_mm512_cmp_ps_mask((x), (lo), _CMP_GE_OQ), (b), (a))
#define SWV_TRANSPOSE(r)        swa__transpose_avx512(r)
#define SWV_ZIP(a, b, high)     swa__zip_avx512((a), (b), (high))
#define SWV_LOAD_F16(p)         _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define SWV_LOAD_BF16(p)        _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32( \
                                    _mm256_loadu_si256((const __m256i *)(const void *)(p))), 16))
#define SWV_LOAD_Q8(p)          _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32( \
                                    _mm_loadu_si128((const __m128i *)(const void *)(p))))
#define SWV_HALVES(p, n)        _mm512_cvtph_ps(_mm256_and_si256(_mm256_set1_epi16((short)(0x7f << (n) | -0x8000)), \
                                    _mm256_slli_epi16(_mm256_cvtepi8_epi16( \
                                        _mm_loadu_si128((const __m128i *)(const void *)(p))), (n))))
#define SWV_STORE_F16(p, v)     _mm256_storeu_si256((__m256i *)(void *)(p), \
                                    _mm512_cvtps_ph((v), _MM_FROUND_TO_NEAREST_INT))
#define SWV_STORE_BF16(p, v)    _mm256_storeu_si256((__m256i *)(void *)(p), _mm512_cvtepi32_epi16( \
                                    _mm512_srli_epi32(_mm512_castps_si512(swa__to_bf16_avx512(v)), 16)))
#define SWV_STORE_Q8(p, v)      _mm_storeu_si128((__m128i *)(void *)(p), \
                                    _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)))
#define SWV_TO_BF16(x)          swa__to_bf16_avx512(x)
#define SWV_ROUND_BF16(x)       swa__round_bf16_avx512(x)
#define SWV_ABS(x)              _mm512_abs_ps(x)
/* 2: the smaller magnitude, with the sign of x */
#define SWV_WITHIN(x, most)     _mm512_range_ps((x), (most), 2)
#define SWV_SWAP(x)             _mm512_permute_ps((x), 0xb1)
#define SWV_LEAVE()             _mm256_zeroupper()
#define SWV_FROM(x, lo, p)      _mm512_maskz_mov_ps(_mm512_cmp_ps_mask((x), (lo), _CMP_GE_OQ), (p))
/* x0 in the lower half, x1 in the upper one; both are bf16 as f32, whose lower half is 0 */
#define SWV_PAIR(x0, x1)        _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(x1), \
                                    _mm512_srli_epi32(_mm512_castps_si512(x0), 16)))
#if SWA__ROUNDS
#  define SWV_ROUNDS            16
#  define SWV_ROUND8(x)           swa__round8_avx512(0xffff, (x))
/* 0 below tiny; of NaN a NaN */
#  define SWV_ROUND8_FROM(x, tiny) \
    swa__round8_avx512(_mm512_cmp_ps_mask(_mm512_abs_ps(x), (tiny), _CMP_NLT_UQ), (x))
#  define SWV_NOT_FINITE(x) \
    _mm512_cmpeq_epi32_mask(_mm512_and_si512(_mm512_castps_si512(x), \
                                             _mm512_set1_epi32(0x7f800000)), \
                            _mm512_set1_epi32(0x7f800000))
#endif
#if !SWA__SMALL
#  define SWV_HALF_PANEL        1
#  define SWV_HALF_KEYS         16
#  define SWV_HALF_DIMS         8
#endif
#if SWA__AVX512_DOT && SWA__BF16
#  define SWV_FMA2(a, b, c)     _mm512_dpbf16_ps((c), (__m512bh)(a), (__m512bh)(b))
/* *p for all lanes, which gcc 12 would broadcast apart; also under the host's -masm=intel */
#  define SWV_FMA2_AT(p, b, c) \
    __asm__("vdpbf16ps {%2%{1to16%}, %1, %0|%0, %1, %2%{1to16%}}" \
            : "+v"(c) : "v"(b), "m"(*(p)))
#  ifdef SWV_HALF_PANEL
#    define SWV_LOAD_PAIR       swa__load_pair_avx512
#    define SWV_STORE_UPPER(p, v) _mm256_storeu_si256((__m256i *)(void *)(p), \
                                    _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(v), 16)))
#  endif
#endif

#if SWA__AMX
/* Tiles 0 to 3 are sums [16][16]: two of rows of A (4, 5) times two of columns of B (6, 7). */
#ifdef SWA_TILE_MODEL
static __thread unsigned char swa__soft[8][16][64];
/* A row of A is 32 numbers of one sum, a row of B pairs of them for 16 columns; as the manual has
   it, even and odd ones are chains of their own. */
static SWA__AVX512_TARGET void swa__soft_multiply(int c, int a, int b) {
    int i, j, k;

    for (i = 0; i < 16; i++)
        for (j = 0; j < 16; j++) {
            float sum[2] = { 0.0f, 0.0f }, x;
            for (k = 0; k < 32; k++) {
                uint16_t y, z;
                memcpy(&y, &swa__soft[a][i][2 * k], 2);
                memcpy(&z, &swa__soft[b][k / 2][4 * j + 2 * (k % 2)], 2);
                sum[k % 2] = fmaf(swa__f32_from_bf16(y), swa__f32_from_bf16(z), sum[k % 2]);
            }
            memcpy(&x, &swa__soft[c][i][4 * j], 4);
            x += sum[0] + sum[1];
            memcpy(&swa__soft[c][i][4 * j], &x, 4);
        }
}

#  define SWA__TILE_ZERO(t)           memset(swa__soft[t], 0, sizeof swa__soft[t])
#  define SWA__TILE_LOAD(t, p, by)    do { int r_; for (r_ = 0; r_ < 16; r_++) \
                                          memcpy(swa__soft[t][r_], (const char *)(p) + r_ * (by), 64); } while (0)
#  define SWA__TILE_STREAM            SWA__TILE_LOAD
#  define SWA__TILE_STORE(t, p, by)   do { int r_; for (r_ = 0; r_ < 16; r_++) \
                                          memcpy((char *)(p) + r_ * (by), swa__soft[t][r_], 64); } while (0)
#  define SWA__TILE_MULTIPLY(c, a, b) swa__soft_multiply(c, a, b)
#else
#  define SWA__TILE_ZERO(t) \
    __asm__ volatile("tilezero {%%tmm" #t "|tmm" #t "}" : : : "memory")
#  define SWA__TILE_LOAD(t, p, by) \
    __asm__ volatile("tileloadd {(%0,%1,1), %%tmm" #t "|tmm" #t ", [%0+%1*1]}" \
                     : : "r"(p), "r"((size_t)(by)) : "memory")
/* past the first level, which is left to q, s and p: K and V of a block are more than it holds */
#  define SWA__TILE_STREAM(t, p, by) \
    __asm__ volatile("tileloaddt1 {(%0,%1,1), %%tmm" #t "|tmm" #t ", [%0+%1*1]}" \
                     : : "r"(p), "r"((size_t)(by)) : "memory")
#  define SWA__TILE_STORE(t, p, by) \
    __asm__ volatile("tilestored {%%tmm" #t ", (%0,%1,1)|[%0+%1*1], tmm" #t "}" \
                     : : "r"(p), "r"((size_t)(by)) : "memory")
#  define SWA__TILE_MULTIPLY(c, a, b) \
    __asm__ volatile("tdpbf16ps {%%tmm" #b ", %%tmm" #a ", %%tmm" #c \
                     "|tmm" #c ", tmm" #a ", tmm" #b "}" : : : "memory")
#endif

/* Every part of a call configures its thread's tiles: eight of 16 rows of 64 bytes; none
   outside. */
static void swa__amx_open(void) {
#ifndef SWA_TILE_MODEL
    struct { uint8_t palette, start, zero[14]; uint16_t bytes[16]; uint8_t rows[16]; } c;
    int i;
    memset(&c, 0, sizeof c);
    c.palette = 1;
    for (i = 0; i < 8; i++) {
        c.bytes[i] = 64;
        c.rows[i] = 16;
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(c));
#endif
}

static void swa__amx_close(void) {
#ifndef SWA_TILE_MODEL
    __asm__ volatile("tilerelease" : : : "memory");
#endif
}

/* See swa__summed: 16 or 32 rows of A, which are one tile or two, times the panel's 32.

       a      [bundle][16 rows][32 numbers]     rows of 64 bytes, bundles `along` apart; the second
                                                tile `apart` floats on
       b      [bundle][16 pairs][32 rows of the panel]
       out    [rows][32]: tiles 0 and 1 side by side, 2 and 3 below them */
static SWA__AVX512_TARGET void swa__sums_amx(const swa__summed *x, int rows, int more, float *out) {
    const int nr = 32, two = rows > 16;
    const float *a = x->a, *b = x->b;
    int at;

    /* sums begin as what `out` holds: each multiplication adds a bundle to them */
    if (more) {
        SWA__TILE_LOAD(0, out, nr * 4);
        SWA__TILE_LOAD(1, out + 16, nr * 4);
    } else {
        SWA__TILE_ZERO(0);
        SWA__TILE_ZERO(1);
    }
    if (two && more) {
        SWA__TILE_LOAD(2, out + 16 * nr, nr * 4);
        SWA__TILE_LOAD(3, out + 16 * nr + 16, nr * 4);
    } else if (two) {
        SWA__TILE_ZERO(2);
        SWA__TILE_ZERO(3);
    }

    for (at = x->from; at < x->to; at += SWA__SUMMED, a += x->along, b += 16 * nr) {
        SWA__TILE_LOAD(6, b, nr * 4);
        SWA__TILE_STREAM(4, a, 64);
        SWA__TILE_MULTIPLY(0, 4, 6);
        SWA__TILE_LOAD(7, b + 16, nr * 4);
        SWA__TILE_MULTIPLY(1, 4, 7);
        if (!two) continue;
        SWA__TILE_STREAM(5, a + x->apart, 64);
        SWA__TILE_MULTIPLY(2, 5, 6);
        SWA__TILE_MULTIPLY(3, 5, 7);
    }

    SWA__TILE_STORE(0, out, nr * 4);
    SWA__TILE_STORE(1, out + 16, nr * 4);
    if (!two) return;
    SWA__TILE_STORE(2, out + 16 * nr, nr * 4);
    SWA__TILE_STORE(3, out + 16 * nr + 16, nr * 4);
}
#endif

#if SWA__AVX512_DOT && SWA__Q8
#  define SWA__DOTS_TARGET SWA__TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")
/* Where the numbers of a tile of q8 are from: four of a key side by side. Of 64 bytes, four dims of
   16 keys, lane i takes i, 16 + i, 32 + i and 48 + i. */
SWA__INLINE SWA__DOTS_TARGET __m512i swa__dots_order_avx512(void) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_or_si512(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(0x01010101)),
                           _mm512_set1_epi32(0x30201000));
}

/* q.k of R rows in q8, four numbers of 16 keys at once. The sums are exact, so that they equal the
   f32 chains of integers that other instances run. The instruction takes K unsigned: +128, and 128
   times q's sum off the start. */
SWA__INLINE SWA__DOTS_TARGET void swa__dots_few_avx512(int R, const swa__block *b, const int32_t *q,
                                            const int32_t *sum, float *s, int v) {
    /* 0x80 in each byte, whose xor adds 128 */
    const __m512i sign = _mm512_set1_epi32(-0x7f7f7f80), order = swa__dots_order_avx512();
    const char *k = (const char *)b->tile[v].k, *pf = (const char *)b->tile[v].v;
    __m512i acc[4], x;
    const int dk = b->g->dk;
    int i, d, n;

    SWA__UNROLL for (i = 0; i < R; i++) acc[i] = _mm512_set1_epi32(-128 * sum[i]);

    /* V of these keys is fetched a line per line of K; bytes of dims that are missing are 0 before
       +128, and q's are 0 there */
    for (d = 0; d < dk; d += 4, q += R, pf += 64) {
        n = dk - d;
        SWA__FETCH(pf, b->l1);
        x = n >= 4 ? _mm512_loadu_si512(k + d * 16)
                   : _mm512_maskz_loadu_epi8(((__mmask64)1 << n * 16) - 1, k + d * 16);
        x = _mm512_xor_si512(_mm512_permutexvar_epi8(order, x), sign);
        SWA__UNROLL for (i = 0; i < R; i++) acc[i] =
            _mm512_dpbusd_epi32(acc[i], x, _mm512_set1_epi32(q[i]));
    }

    SWA__UNROLL for (i = 0; i < R; i++) _mm512_storeu_ps(
        s + i * SWA_BLOCK + v * 16,
        _mm512_mul_ps(_mm512_cvtepi32_ps(acc[i]), _mm512_loadu_ps(b->tile[v].k_scale)));
}

SWA__NOINLINE SWA__DOTS_TARGET SWA__FEW_DOTS(avx512, 1)
#define SWV_DOTS                swa__few_dots_avx512

/* See swa__kernels.to_dots: 16 columns at a time. */
static SWA__DOTS_TARGET void swa__to_dots_avx512(int type, int dims, int ld, int flip,
                                                 const void *src, float *dst) {
    const __m512i order = swa__dots_order_avx512();
    const char *bytes = (const char *)src;
    int d, i, n, c;

    for (c = 0; c < ld; c += 16) {
        const float *row = (const float *)src + c;
        float *to = dst + c;
        __m512i sum = _mm512_setzero_si512(), x;
        for (d = 0; d < dims; d += 4, to += ld, bytes += 64) {
            n = dims - d < 4 ? dims - d : 4;
            x = _mm512_setzero_si512();
            if (type == SWA_Q8)
                x = _mm512_permutexvar_epi8(
                    order, _mm512_maskz_loadu_epi8(~(__mmask64)0 >> (64 - n * 16), bytes));
            /* bytes come in from above: where there are fewer than four, they go the rest of the way */
            for (i = 0; i < n && type != SWA_Q8; i++, row += ld)
                x = _mm512_or_si512(_mm512_srli_epi32(x, 8),
                                    _mm512_slli_epi32(_mm512_cvtps_epi32(_mm512_loadu_ps(row)), 24));
            if (type != SWA_Q8) x = _mm512_srl_epi32(x, _mm_cvtsi32_si128(32 - n * 8));
            sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(-128), x);
            _mm512_storeu_si512(to, _mm512_xor_si512(x, _mm512_set1_epi32(flip)));
        }
        _mm512_storeu_si512(to, _mm512_sub_epi32(_mm512_setzero_si512(), sum));
    }
    _mm256_zeroupper();
}

/* See swa__sight.scores: 16 sums at once, of 16 rows and 16 keys or 32 and 8, sum i*nv + j of key i
   and vector j of rows: [keys][nr] as they are stored. acc is pinned, or gcc copies it in every
   turn.

       q    [dk/4][nr] times four bytes, then [nr] sums       key    [dk/4][16] times four bytes */
SWA__INLINE SWA__DOTS_TARGET void swa__dots_group_avx512(int nv, const swa__block *b, int fetch,
                                                  const float *q_scale, int k, const int32_t *q,
                                                  float *s) {
    const swa__tile *t = &b->tile[k / 16];
    const int32_t *key = (const int32_t *)t->k + k % 16;
    const float *scale = t->k_scale + k % 16;
    const char *next = fetch && t->next != NULL && k % 16 == 0 ? t->next : (const char *)key;
    const int line = next == t->next ? 64 : 0, steps = (b->g->dk + 3) / 4;
    __m512i acc[16], x[2], y;
    int i, j, p = steps;

    /* q's sums times -128 stand behind q: K comes with 128 added */
    SWA__UNROLL for (i = 0; i < 16; i++)
        acc[i] = _mm512_loadu_si512(q + (steps * nv + i % nv) * 16);
    do {
        SWA__PREFETCH(next);
        SWA__UNROLL for (j = 0; j < nv; j++) x[j] = _mm512_loadu_si512(q + j * 16);
        SWA__UNROLL for (i = 0; i < 16 / nv; i++) {
            y = _mm512_set1_epi32(key[i]);
            SWA__UNROLL for (j = 0; j < nv; j++)
                acc[i * nv + j] = _mm512_dpbusd_epi32(acc[i * nv + j], y, x[j]);
        }
        SWA__UNROLL for (i = 0; i < 16; i++) __asm__("" : SWV_CONSTRAINT(acc[i]));
        key += 16;
        q += nv * 16;
        next += line;
    } while (--p > 0);

    SWA__UNROLL for (i = 0; i < 16; i++)
        _mm512_storeu_ps(s + i * 16, _mm512_cvtepi32_ps(acc[i]) * _mm512_set1_ps(scale[i / nv])
                                         * _mm512_loadu_ps(q_scale + i % nv * 16));
}

/* As swa__sight.scores: up to the end of k's bundle, a register block at a time. */
static SWA__DOTS_TARGET void swa__many_dots_avx512(const swa__block *b, const swa__sight *n, int w, int k,
                                            int end, const float *q, float *s) {
    const int32_t *of = (const int32_t *)(const void *)q;

    if (end > (k | 31) + 1) end = (k | 31) + 1;
    /* a register block is 256 scores in either shape */
    for (s += k % SWA__SUMMED * n->nr; k < end; s += 256)
        if (n->nr == 32) {
            swa__dots_group_avx512(2, b, n->fetch, n->q_scale[w], k, of, s);
            k += 8;
        } else {
            swa__dots_group_avx512(1, b, n->fetch, n->q_scale[w], k, of, s);
            k += 16;
        }
    _mm256_zeroupper();
}
#endif
#include SWA_HEADER_FILENAME

#if SWA__AVX512_DOT && SWA__BF16
/* kr->to_form for SWA__PAIRS, of rows of any type, ld numbers each; rows that are not kept are not
   read. */
static SWA__AVX512_TARGET void swa__to_pairs(int type, int rows, unsigned keep, size_t ld,
                                             float tiny, const void *src, float *dst) {
    const size_t es = swa__type_size(type);
    const char *a = (const char *)src, *b, *at;
    /* the next tile, as a rule */
    const size_t ahead = (size_t)rows * ld * es;
    size_t i;
    int r;

    for (r = 0; r < rows; r += 2, a += 2 * ld * es, dst += ld) {
        /* which of the two rows are kept; the other one is read from the same place, and masked */
        const unsigned two = keep >> (r & 15) & (r + 1 < rows ? 3 : 1);
        const __mmask32 both = (two & 1 ? 0xffffu : 0) | (two & 2 ? 0xffff0000u : 0);
        at = two & 1 ? a : a + ld * es;
        b = two & 2 ? a + ld * es : a;
        if (two == 0) memset(dst, 0, ld * sizeof *dst);
        for (i = 0; two != 0 && i < ld; i += 16) {
            __m512i cut, x = swa__pair_avx512(type, at + i * es, b + i * es, &cut);
            SWA__PREFETCH_L1(at + i * es + ahead);
            SWA__PREFETCH_L1(b + i * es + ahead);
            _mm512_storeu_ps(dst + i, swa__pair_mix(both & swa__pair_counts(cut, tiny), x));
        }
    }
    _mm256_zeroupper();
}

#if SWA__AMX
/* The same of V in f32 or q8, times the scales of its 16 keys, before it is rounded: a function of
   its own, since a branch in the other costs all that have no scale. */
static SWA__AVX512_TARGET void swa__scaled_pairs(int type, unsigned keep, size_t ld,
                                                 const float *scale, const void *src, float *dst) {
    const size_t es = swa__type_size(type);
    const char *p = (const char *)src;
    size_t i;
    int r, n;

    for (r = 0; r < SWA__TILE; r += 2, p += 2 * ld * es, dst += ld) {
        const unsigned two = keep >> r & 3;
        const __mmask32 both = (two & 1 ? 0xffffu : 0) | (two & 2 ? 0xffff0000u : 0);
        /* one that is not kept is not read: the other stands in, and is masked */
        const int at[2] = { two == 2, two != 1 };
        if (two == 0) memset(dst, 0, ld * sizeof *dst);
        for (i = 0; two != 0 && i < ld; i += 16) {
            __m512 x[2];
            __m512i cut, y;
            SWA__UNROLL for (n = 0; n < 2; n++) {
                const char *from = p + ((size_t)at[n] * ld + i) * es;
                x[n] = type == SWA_Q8 ? swa__load_avx512(SWA_Q8, from) : _mm512_loadu_ps(from);
                x[n] *= _mm512_set1_ps(scale[r + at[n]]);
                SWA__PREFETCH_L1(from + SWA__TILE * ld * es);     /* the next tile, as a rule */
            }
            y = swa__pair_of(x[0], x[1], &cut);
            _mm512_storeu_ps(dst + i, swa__pair_mix(both & swa__pair_counts(cut, SWA__TINY_V), y));
        }
    }
    _mm256_zeroupper();
}
#endif

/* K of a tile that holds V in its first dims too, by the same loads: V [dv][8 pairs of keys]. */
static SWA__AVX512_TARGET void swa__latent_pairs(const swa__geo *g, int type, unsigned seen,
                                                 const void *src, float *k, float *v) {
    const size_t es = swa__type_size(type) * SWA__TILE;
    const char *a = (const char *)src;
    int d;

    for (d = 0; d < g->dk; d += 2, a += 2 * es, k += SWA__TILE) {
        const int both = d + 1 < g->dk;
        __m512i cut, x = swa__pair_avx512(type, a, both ? a + es : a, &cut);
        _mm512_storeu_ps(k, swa__pair_mix(swa__pair_counts(cut, SWA__TINY_QK)
                                              & (both ? ~0u : 0xffffu), x));
        /* dims in V are rows of their own, whose pairs are keys: those the load has side by side
           already, of dim d in its lower half and of d+1 in its upper */
        if (d < g->dv)
            _mm512_storeu_si512(v + d * 8,
                                _mm512_maskz_mov_epi16(swa__pair_counts(cut, SWA__TINY_V)
                                                           & (seen | seen << 16), x));
    }
    _mm256_zeroupper();
}
#endif

#if SWA__AMX
/* Pairs, [16][ld], transposed by sixteens of columns: a column is a row of 64 bytes, 32 numbers; `along`
   floats from sixteen to sixteen. to is not src. */
static SWA__AVX512_TARGET void swa__amx_transpose(int columns, const float *src, size_t ld,
                                             size_t along, float *to) {
    __m512 x[SWA__TILE];
    int c, i;

    for (c = 0; c < columns; c += SWA__TILE, to += along) {
        for (i = 0; i < SWA__TILE; i++) x[i] = _mm512_loadu_ps(src + (size_t)i * ld + c);
        swa__transpose_avx512(x);
        for (i = 0; i < SWA__TILE; i++) _mm512_storeu_ps(to + i * SWA__TILE, x[i]);
    }
    _mm256_zeroupper();
}

/* Eight numbers in bf16 of rows `by` bytes apart in each quarter: of rows i, 8 + i, 16 + i, 24 + i,
   the first 16 of which lie from a on, the others from b on. Loads, and no shuffle. */
SWA__INLINE SWA__AVX512_TARGET __m512i swa__quarters(const char *a, const char *b, size_t by) {
    __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)a));
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(a + 8 * by)), 1);
    x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)b), 2);
    return _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(b + 8 * by)), 3);
}

/* 8 by 8 numbers of 16 bits in each quarter. */
SWA__INLINE SWA__AVX512_TARGET void swa__turn_quarters(__m512i *x) {
    __m512i y[8];
    int i;

    SWA__UNROLL for (i = 0; i < 8; i += 2) {
        y[i] = _mm512_unpacklo_epi16(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi16(x[i], x[i + 1]);
    }
    SWA__UNROLL for (i = 0; i < 8; i += 4) {
        x[i] = _mm512_unpacklo_epi32(y[i], y[i + 2]);
        x[i + 1] = _mm512_unpackhi_epi32(y[i], y[i + 2]);
        x[i + 2] = _mm512_unpacklo_epi32(y[i + 1], y[i + 3]);
        x[i + 3] = _mm512_unpackhi_epi32(y[i + 1], y[i + 3]);
    }
    SWA__UNROLL for (i = 0; i < 4; i++) {
        y[2 * i] = _mm512_unpacklo_epi64(x[i], x[4 + i]);
        y[2 * i + 1] = _mm512_unpackhi_epi64(x[i], x[4 + i]);
    }
    SWA__UNROLL for (i = 0; i < 8; i++) x[i] = y[i];
}

/* n times 32 rows of 16 numbers in bf16 (see swa__quarters), each `along` bytes behind the one
   before, transposed: 16 rows of 32, which may come where they lay. Stops before numbers below tiny
   that are not zeros; returns how many times are left. Fetched are K of two turns on and the next
   32 rows of V, these in the order of memory: column by column, half a line of each row in a turn,
   they came late. */
static SWA__AVX512_TARGET int swa__amx_turn(int n, const char *a, const char *b, size_t by,
                                            size_t along, float tiny, float *to) {
    const __m512i one = _mm512_set1_epi16(1),
                  limit = _mm512_set1_epi16((short)((swa__bits_of(tiny) >> 16) * 2 - 1));
    const size_t next = along > 32 ? along : 512;
    const char *soon = a + (along > 32 ? 2 * along : 32 * by);
    __m512i x[8], y[8], least;
    int i;

    for (; n > 0; n--, a += along, b += along, soon += next, to += SWA__TILE * SWA__TILE) {
        least = limit;
        SWA__UNROLL for (i = 0; i < 8; i++) {
            x[i] = swa__quarters(a + (size_t)i * by, b + (size_t)i * by, by);
            y[i] = swa__quarters(a + (size_t)i * by + 16, b + (size_t)i * by + 16, by);
            SWA__PREFETCH_L1(soon + i * 64);
            SWA__PREFETCH_L1(soon + (b - a) + i * 64);
            /* without its sign, and zero as the largest of all */
            least = _mm512_min_epu16(least, _mm512_sub_epi16(_mm512_add_epi16(x[i], x[i]), one));
            least = _mm512_min_epu16(least, _mm512_sub_epi16(_mm512_add_epi16(y[i], y[i]), one));
        }
        if (_mm512_cmpneq_epu16_mask(least, limit) != 0) break;
        swa__turn_quarters(x);
        SWA__UNROLL for (i = 0; i < 8; i++) _mm512_storeu_si512(to + i * SWA__TILE, x[i]);
        swa__turn_quarters(y);
        SWA__UNROLL for (i = 0; i < 8; i++) _mm512_storeu_si512(to + (8 + i) * SWA__TILE, y[i]);
    }
    _mm256_zeroupper();
    return n;
}

/* K or a tail of 16 keys in rows as a tile has it, [dims/32][16][32]: nothing is to be turned. */
static SWA__AVX512_TARGET void swa__amx_rows(int type, int dims, const void *const *src,
                                             float *to) {
    const size_t es = swa__type_size(type);
    int d, i;

    for (d = 0; d < dims; d += SWA__SUMMED)
        for (i = 0; i < SWA__TILE; i++, to += SWA__TILE) {
            const char *p = (const char *)src[i] + (size_t)d * es;
            __m512i cut, x = swa__pair_avx512(type, p, p + 16 * es, &cut);
            _mm512_storeu_si512(to, _mm512_maskz_mov_epi16(swa__pair_counts(cut, SWA__TINY_QK), x));
        }
    _mm256_zeroupper();
}

/* V of a tile that holds it in K's first dims, as half of the rows [dims][32 keys]; keys whose bit
   of seen is not set are 0. */
static SWA__AVX512_TARGET void swa__amx_latents(int type, int dims, unsigned seen, const void *src,
                                                float *to) {
    const size_t es = swa__type_size(type) * SWA__TILE;
    const char *a = (const char *)src;
    int d;

    for (d = 0; d < dims; d += 2, a += 2 * es, to += 2 * SWA__TILE) {
        __m512i cut, x = swa__pair_avx512(type, a, a + es, &cut);
        SWA__PREFETCH_L1(a + (size_t)dims * es);         /* the next tile, if V is all of K       */
        SWA__PREFETCH_L1(a + (size_t)(dims + 1) * es);
        x = _mm512_maskz_mov_epi16(swa__pair_counts(cut, SWA__TINY_V) & (seen | seen << 16), x);
        _mm256_storeu_si256((__m256i *)(void *)to, _mm512_castsi512_si256(x));
        _mm256_storeu_si256((__m256i *)(void *)(to + SWA__TILE), _mm512_extracti64x4_epi64(x, 1));
    }
    _mm256_zeroupper();
}

/* The same of two tiles in bf16 whose keys are all seen and of which no number is too small: whole
   rows of 32 keys. */
static SWA__AVX512_TARGET void swa__amx_join(int dims, const char *a, const char *b, float *to) {
    for (; dims > 0; dims--, a += 32, b += 32, to += SWA__TILE)
        _mm512_storeu_si512(to, _mm512_inserti64x4(_mm512_castsi256_si512(
                                    _mm256_loadu_si256((const __m256i *)(const void *)a)),
                                _mm256_loadu_si256((const __m256i *)(const void *)b), 1));
    _mm256_zeroupper();
}

/* ---- panels that take turns: tiles multiply for one, vectors work on the other ----

   A panel's q.k is 128 multiplications at head_dim 128 and 256 keys, 2000 cycles of the tile unit,
   and its exponentials are 5000 of the vector units, which nothing keeps apart but the order in
   which they stand. So the q.k of a panel is dealt out, four keys of exponentials of the panel
   before between two multiplications, and p.v goes with the fold of the dims before and the maxima
   of the panel that comes. Together they take 0.85 of the time of one after the other, not half:
   beside tiles 512-bit vectors have one port instead of two. The sums are those of swa__sums_amx,
   in its order.

       tiles       q.k of 1 ......... p.v of 0 .....           q.k of 2 ......... p.v of 1
       vectors     exp2 of 0 ........ fold of 0 .... top of 1   exp2 of 1 ........ fold of 1  */

/* Tiles 0 to 3 from zero; to out [32][32], of which the right half only if the panel is wide. */
SWA__INLINE void swa__sums_zero(void) {
    SWA__TILE_ZERO(0);
    SWA__TILE_ZERO(1);
    SWA__TILE_ZERO(2);
    SWA__TILE_ZERO(3);
}

SWA__INLINE void swa__sums_store(int wide, float *out) {
    const int by = SWA__PANEL * 4;
    SWA__TILE_STORE(0, out, by);
    SWA__TILE_STORE(2, out + 16 * SWA__PANEL, by);
    if (!wide) return;
    SWA__TILE_STORE(1, out + 16, by);
    SWA__TILE_STORE(3, out + 16 * SWA__PANEL + 16, by);
}

/* q.k in steps of one bundle of dims for 32 keys and 32 rows, or 16 where the panel has no more: then
   what the other half holds goes nowhere. */
typedef struct {
    const swa__block *b;
    const float *q, *a[2], *at;          /* a: K of the step, 16 keys each; at: q of the step     */
    float *s;                            /* of the 32 keys at hand                                */
    int k, lo, hi, step, steps;          /* those keys; steps: bundles of dims, the tail's too    */
    int wide;                            /* 1: more than 16 rows, or the second 16 are left out   */
} swa__qk;

static SWA__AVX512_TARGET void swa__qk_begin(const swa__block *b, const swa__sight *n,
                                             int wide, const float *q, float *s, swa__qk *x) {
    x->b = b;
    x->q = q;
    x->lo = n->lo[1];
    x->hi = n->hi[1];
    x->k = x->lo & -SWA__SUMMED;
    x->s = s + x->k * SWA__PANEL;
    x->step = 0;
    x->steps = (b->g->dk + b->g->dt) / SWA__SUMMED;
    x->wide = wide;
}

/* K, or its tail, of both tiles of keys. One of them may not be staged: then the other stands in,
   whose scores will be hidden. */
static SWA__AVX512_TARGET void swa__qk_open(swa__qk *x, int tail) {
    const int t = x->k / SWA__TILE, one = x->lo >= x->k + SWA__TILE,
              two = one || x->hi > x->k + SWA__TILE;
    const swa__tile *first = &x->b->tile[t + one], *second = &x->b->tile[t + two];
    x->a[0] = (const float *)(tail ? first->tail : first->k);
    x->a[1] = (const float *)(tail ? second->tail : second->k);
}

/* A quarter of a step: the loads and multiplications that vectors may go between. */
SWA__INLINE SWA__AVX512_TARGET void swa__qk_quarter(swa__qk *x, int quarter) {
    const int by = SWA__PANEL * 4;
    if (quarter == 0) {
        if (x->step == 0) {
            swa__qk_open(x, 0);
            x->at = x->q;
            swa__sums_zero();
        } else if (x->step * SWA__SUMMED == x->b->g->dk) swa__qk_open(x, 1);
        SWA__TILE_LOAD(6, x->at, by);
        SWA__TILE_STREAM(4, x->a[0], 64);
        SWA__TILE_MULTIPLY(0, 4, 6);
    } else if (quarter == 1) {
        if (!x->wide) return;
        SWA__TILE_LOAD(7, x->at + 16, by);
        SWA__TILE_MULTIPLY(1, 4, 7);
    } else if (quarter == 2) {
        SWA__TILE_STREAM(5, x->a[1], 64);
        SWA__TILE_MULTIPLY(2, 5, 6);
    } else {
        if (x->wide) SWA__TILE_MULTIPLY(3, 5, 7);
        x->a[0] += SWA__TILE * SWA__TILE;
        x->a[1] += SWA__TILE * SWA__TILE;
        x->at += 16 * SWA__PANEL;
        if (++x->step < x->steps) return;
        swa__sums_store(x->wide, x->s);
        x->step = 0;
        x->k += SWA__SUMMED;
        x->s += 32 * SWA__PANEL;
    }
}

/* Whole steps, as many as there are. */
static SWA__AVX512_TARGET void swa__qk_steps(swa__qk *x, int n) {
    for (; n > 0 && x->k < x->hi; n--) {
        swa__qk_quarter(x, 0);
        swa__qk_quarter(x, 1);
        swa__qk_quarter(x, 2);
        swa__qk_quarter(x, 3);
    }
}

/* p of a waiting panel and its sums l, as many_exp_bf16, while q.k of the next one runs. */
static SWA__AVX512_TARGET void swa__turn_exp(const swa__waiting *w, swa__qk *next, __m512 *l) {
    const int left = (next->hi - next->k + SWA__SUMMED - 1) / SWA__SUMMED * next->steps,
              wide = w->n > SWA__TILE, turns = (1 + wide) * (w->end - w->from) / SWA__TILE,
              each = (left + turns - 1) / turns;
    __m512 sum[SWA__TILE], top;
    int i, j, k, n, on;

    l[1] = _mm512_setzero_ps();
    for (j = 0; j < 1 + wide; j++) {
        float *s = w->s + j * SWA__TILE;
        for (i = 0; i < SWA__TILE; i++) sum[i] = _mm512_setzero_ps();
        top = _mm512_loadu_ps(w->top + j * SWA__TILE);
        for (k = w->from; k < w->end; k += SWA__TILE) {
            on = each == 1 && next->k < next->hi;
            SWA__ROLLED for (i = 0; i < 4; i++) {
                swa__exp_bf16_avx512(SWA__TILE_AMX, SWA__PANEL, s + (k + 4 * i) * SWA__PANEL,
                                     s + (k / 2 + 2 * i) * SWA__PANEL, NULL, top, sum + 4 * i);
                if (on) swa__qk_quarter(next, i);
                else if (each > 1) swa__qk_steps(next, each * (i + 1) / 4 - each * i / 4);
            }
        }
        for (n = 8; n > 0; n /= 2)       /* the tree, as in many_exp */
            for (i = 0; i < n; i++) sum[i] = sum[i] + sum[i + n];
        l[j] = sum[0];
    }
}

/* Scores of a panel that has come, 8 keys at a time from top->k on: hidden where the window's edge
   is, and their maxima. */
typedef struct {
    const swa__sight *n;
    float *s;
    int k, end;
    __m512 most[2];
} swa__top;

static SWA__AVX512_TARGET void swa__top_begin(const swa__sight *n, float *s, swa__top *x) {
    x->n = n;
    x->s = s;
    x->k = n->lo[1] & -SWA__SUMMED;
    x->end = (n->hi[1] + SWA__SUMMED - 1) & -SWA__SUMMED;
    x->most[0] = x->most[1] = _mm512_set1_ps(SWA__NONE);
}

SWA__NOINLINE SWA__AVX512_TARGET void swa__top_keys(swa__top *x, int groups) {
    __m512 y[16];
    int i;

    for (; groups > 0 && x->k < x->end; groups--, x->k += 8) {
        float *at = x->s + x->k * SWA__PANEL;
        if (x->k + 8 > x->n->lo[1]) swa__rows_fetch(x->n, x->k, 8);
        SWA__UNROLL for (i = 0; i < 16; i++) y[i] = _mm512_loadu_ps(at + i * 16);
        if (x->k < x->n->full_lo || x->k + 8 > x->n->full_hi) {
            swa__many_edge_avx512(2, x->n, x->k, y);
            SWA__UNROLL for (i = 0; i < 16; i++) _mm512_storeu_ps(at + i * 16, y[i]);
        }
        SWA__UNROLL for (i = 0; i < 16; i++) x->most[i % 2] = _mm512_max_ps(x->most[i % 2], y[i]);
    }
}

/* p.v of the panel, 32 dims after 32, and the fold of those before: o = o * a + sums * c, where
   fold holds a, then c, by row. The sums wait in the half of s that p has left free. */
static SWA__AVX512_TARGET void swa__turn_pv(const swa__block *b, const swa__waiting *w,
                                            const float *fold, swa__top *top) {
    const int n = (w->end - w->from) / SWA__SUMMED, by = SWA__PANEL * 4, dv = b->g->dv;
    const float *v = (const float *)b->tile[w->from / SWA__TILE].v,
                *p = w->s + w->from / 2 * SWA__PANEL;
    float *sums = w->s + SWA_BLOCK / 2 * SWA__PANEL, *o = w->to.o;
    const int wide = w->n > SWA__TILE;
    int d, i, j, r = 0, end;

    for (d = 0; d < dv + SWA__SUMMED; d += SWA__SUMMED) {
        float *to = sums + (d & SWA__SUMMED) * SWA__PANEL;
        const float *from = sums + (~d & SWA__SUMMED) * SWA__PANEL;
        /* dims behind the last one are not there, but for 16 that are stored */
        const int second = d + SWA__TILE < b->g->dvp ? SWA__TILE * SWA__TILE : 0,
                  rows = dv - d < 0 ? dv - d + SWA__SUMMED : SWA__SUMMED;

        if (d < dv) swa__sums_zero();
        for (i = 0, r = 0; i < n; i++) {
            const float *a = v + (size_t)(i * b->g->dvp + d) * SWA__TILE,
                        *q = p + i * SWA__TILE * SWA__PANEL;
            if (d < dv) {
                SWA__TILE_LOAD(6, q, by);
                SWA__TILE_STREAM(4, a, 64);
                SWA__TILE_MULTIPLY(0, 4, 6);
                SWA__TILE_STREAM(5, a + second, 64);
                SWA__TILE_MULTIPLY(2, 5, 6);
                if (wide) {
                    SWA__TILE_LOAD(7, q + 16, by);
                    SWA__TILE_MULTIPLY(1, 4, 7);
                    SWA__TILE_MULTIPLY(3, 5, 7);
                }
                swa__top_keys(top, 1);
            }
            for (end = d > 0 ? rows * (i + 1) / n : 0; r < end; r++, from += SWA__PANEL)
                for (j = 0; j < SWA__PANEL; j += 16, o += 16) {
                    __m512 x = _mm512_setzero_ps();
                    if (w->more) x = _mm512_mul_ps(_mm512_loadu_ps(o), _mm512_loadu_ps(fold + j));
                    x = _mm512_fmadd_ps(_mm512_loadu_ps(from + j),
                                        _mm512_loadu_ps(fold + SWA__PANEL + j), x);
                    _mm512_storeu_ps(o, x);
                }
        }
        if (d >= dv) break;
        swa__sums_store(wide, to);
    }
}

/* A panel comes (n NULL: none): its scores go to s, their maxima to `most`. The waiting one goes: to
   its results. */
static SWA__AVX512_TARGET void swa__turn(const swa__block *b, const swa__sight *n, int wide,
                                         const float *q, float *s, const swa__waiting *w,
                                         float *most) {
    __m512 top[2], sum[2], a[2], c[2];
    float fold[2 * SWA__PANEL];
    swa__qk next;
    swa__top x;
    int i;

    next.k = next.hi = next.steps = next.wide = x.k = x.end = 0;
    if (n != NULL) swa__qk_begin(b, n, wide, q, s, &next);
    if (w->n > 0) swa__turn_exp(w, &next, sum);
    swa__qk_steps(&next, SWA_BLOCK * SWA_BLOCK);
    if (n != NULL) swa__top_begin(n, s, &x);
    if (w->n > 0) {
        memcpy(top, w->top, sizeof top);
        swa__many_maxima_avx512(2, top, sum, &w->to, a, c);
        memcpy(fold, a, sizeof a);
        memcpy(fold + SWA__PANEL, c, sizeof c);
        swa__turn_pv(b, w, fold, &x);
    }
    swa__top_keys(&x, SWA_BLOCK);
    for (i = 0; i < 2 && n != NULL; i++) /* a maximum of -0: +0 */
        _mm512_storeu_ps(most + i * 16, x.most[i] + _mm512_setzero_ps());
    _mm256_zeroupper();
}
#endif
#if defined(__GNUC__) && !defined(__clang__)
#  pragma GCC diagnostic pop
#endif
#endif
#undef SWA__KERNEL_PASS

/* The instances, by SWA_ISA_*: constants. Which one runs is a field of the object, never a global.
   many by form: SINGLES are products in f32, so they take PLAIN's kernel, and TILE_SINGLES too,
   whose half panels an instance may lack (half_sums, see SWV_SUMMED); PAIRS have their own
   where the compiler knows the instruction, and swa__has_pairs says whether the CPU runs it. The
   macros behind it stand for a member and its comma, or for nothing where a switch has left the
   member out. */
#define SWA__KERNELS(isa, nr, step, half, half_sums, pairs, half_pairs) { nr, swa__few_##isa, \
    { { swa__many_##isa, half }, { swa__many_##isa, half }, { pairs, half_pairs }, \
      { swa__many_##isa, half_sums } }, \
    swa__fold_##isa, swa__fold_panel_##isa, swa__finish_##isa, swa__unpack_##isa, swa__pack_##isa, step, \
    swa__widen_##isa, swa__narrow_##isa, SWA__STAGED_KERNEL(isa), swa__round_##isa, \
    SWA__BF16_KERNELS(isa) SWA__TO_ROWS(isa) SWA__DOTS_##isa SWA__INDEX_KERNEL(isa) SWA__MLA_KERNELS(isa) }
#if SWA__LATENTS
#  define SWA__TO_ROWS(isa) swa__to_rows_##isa
#else
#  define SWA__TO_ROWS(isa) NULL
#endif
#if SWA__STAGED
#  define SWA__STAGED_KERNEL(isa) swa__staged_##isa
#else
#  define SWA__STAGED_KERNEL(isa) NULL
#endif
#if SWA__BF16
#  define SWA__BF16_KERNELS(isa) swa__sums_##isa, swa__to_form_##isa, swa__singles_##isa,
#else
#  define SWA__BF16_KERNELS(isa)
#endif
#if SWA__DOTS
#  define SWA__NO_DOTS          , NULL, NULL
#else
#  define SWA__NO_DOTS
#endif
#define SWA__DOTS_scalar        SWA__NO_DOTS
#define SWA__DOTS_simd128       SWA__NO_DOTS
#if SWA__DOTS && SWA__NEON
#  define SWA__DOTS_neon        , swa__to_dots_neon, swa__many_dots_neon
#else
#  define SWA__DOTS_neon        SWA__NO_DOTS
#endif
#if SWA__AVX2_DOT && SWA__Q8
#  define SWA__DOTS_avx2        , swa__to_dots_avx2, swa__many_dots_avx2
#else
#  define SWA__DOTS_avx2        SWA__NO_DOTS
#endif
#if SWA__AVX512_DOT && SWA__Q8
#  define SWA__DOTS_avx512      , swa__to_dots_avx512, swa__many_dots_avx512
#else
#  define SWA__DOTS_avx512      SWA__NO_DOTS
#endif
#if SWA__MLA
#  define SWA__MLA_KERNELS(isa) , swa__product_##isa, swa__expand_##isa
#else
#  define SWA__MLA_KERNELS(isa)
#endif
#if SWA__INDEX
#  define SWA__INDEX_KERNEL(isa)   , swa__index_##isa
#else
#  define SWA__INDEX_KERNEL(isa)
#endif
#if SWA__AVX512_DOT && SWA__BF16
#  define SWA__MANY_PAIRS   swa__many_pairs_avx512
#else
#  define SWA__MANY_PAIRS   NULL
#endif
#if SWA__AVX512_DOT && SWA__BF16 && !SWA__SMALL
#  define SWA__MANY_HALF_PAIRS swa__many_half_pairs_avx512
#else
#  define SWA__MANY_HALF_PAIRS NULL
#endif
#if SWA__SMALL
#  define SWA__MANY_HALF(isa) NULL
#else
#  define SWA__MANY_HALF(isa) swa__many_half_##isa
#endif

static const swa__kernels *swa__kernels_of(int isa) {
    static const swa__kernels scalar = SWA__KERNELS(scalar, 4, NULL, NULL, NULL, NULL, NULL);
#if SWA__NEON
    static const swa__kernels neon = SWA__KERNELS(neon, 8, NULL, NULL, NULL, NULL, NULL);
    if (isa == SWA_ISA_NEON) return &neon;
#endif
#if SWA__SIMD128
    static const swa__kernels simd128 = SWA__KERNELS(simd128, 8, NULL, NULL, NULL, NULL, NULL);
    if (isa == SWA_ISA_SIMD128) return &simd128;
#endif
#if SWA__AVX2
    static const swa__kernels avx2 =
        SWA__KERNELS(avx2, 24, swa__step_avx2, SWA__MANY_HALF(avx2), SWA__MANY_HALF(avx2), NULL, NULL);
    if (isa == SWA_ISA_AVX2) return &avx2;
#endif
#if SWA__AVX512
    static const swa__kernels avx512 =
        SWA__KERNELS(avx512, 32, swa__step_avx512, SWA__MANY_HALF(avx512), NULL, SWA__MANY_PAIRS,
                     SWA__MANY_HALF_PAIRS);
    if (isa == SWA_ISA_AVX512) return &avx512;
#endif
    (void)isa;
    return &scalar;
}

static int swa__is_avx(const swa__kernels *kr) {
    return (SWA__AVX2 && kr == swa__kernels_of(SWA_ISA_AVX2))
        || (SWA__AVX512 && kr == swa__kernels_of(SWA_ISA_AVX512));
}

/* Whether few rows over more K than caches hold read it by loads alone, line after line as it lies,
   and fetch nothing: on AMD Zen 4 with AVX-512, which takes 0.78 to 0.85 of the time then. The
   CPU's own prefetch keeps pace with DRAM, but only along one stream, and of loads: an instruction
   that fetches holds a miss buffer until its line comes, and all of them together reach 70 % of
   what reading does. In the last cache it takes up to 1.1 times as long. Intel (Emerald Rapids)
   takes 1.25 times as long by loads alone, Zen 5 1.33, and in f16 with one row 1.26. */
static int swa__likes_streams(const swa__kernels *kr) {
    return SWA__AVX512 && !SWA__SMALL && kr == swa__kernels_of(SWA_ISA_AVX512)
        && (SWA__EVERY_CPU || swa__amd_before_zen5());
}

/* What an instance may use of its CPU beyond the base: products of bf16 pairs, and (below) of four
   int8. Either way the bits are the base's. */
static int swa__has_pairs(const swa__kernels *kr) {
#if SWA__AVX512_DOT
    return kr->many[SWA__PAIRS][0] != NULL && swa__likes_pairs();
#else
    (void)kr;
    return 0;
#endif
}

static int swa__has_dots(const swa__kernels *kr) {
#if SWA__DOTS
    int has = kr->many_dots != NULL;
#  if SWA__AVX2_DOT
    if (has && kr == swa__kernels_of(SWA_ISA_AVX2)) has = swa__has_avx_vnni();
#  endif
#  if SWA__AVX512_DOT
    if (has && kr == swa__kernels_of(SWA_ISA_AVX512))
        has = SWA__CPU_HAS(avx512vnni) && SWA__CPU_HAS(avx512vbmi);
#  endif
    return has;
#else
    (void)kr;
    return 0;
#endif
}

/* ==== [SECTION 12] ATTENTION =====================================================================
   Data flows one way. A call has jobs: a run of queries, and the segments of keys that it may see
   (ring spans, pinned sinks, the new rows, the caller's own). A job has units: one KV head (of a few
   keys several; of rows of the caller's several, woven), some of its rows, and its blocks of 256
   positions. Each block goes

       window -> segments -> operands (where K, tail and V of a head lie) -> tiles -> kernel -> fold

   and when a unit has no more of them its rows go out. Store is the same way backwards, from
   operands into operands.

   A part gets a checked call and a slice of the scratch of its own, and no other part writes its
   outputs. Three ideas carry the rest:
     * A block is reduced alone, from zero, and only the fold joins blocks, from left to right. No
       cut of the keys goes through a block, so where the work is cut is a question of speed alone.
     * The window is two numbers per token ([SECTION 4]). Blocks outside of them are not touched,
       and inside only the edges are masked: no mask is read.
     * Of V nothing is multiplied that nobody wrote, not even by a p of 0: it could be a NaN. p.v
       walks the keys that are seen, and what is missing among them becomes zeros. Scores of such
       keys are computed, and then replaced.

       one run, one KV head       block 0     block 1     block 2     block 3
       rows of tokens 0 .. 4    |    A      |    A      |    A      |           |   -> out
       rows of tokens 5 .. 9    |           |    B      |    B      |    B      |   -> out

   A and B are units, and each folds its blocks as it comes to them.

   With fewer than four units to a part, and where heads are woven over several parts (see
   swa__cut_make), each block becomes a unit of its own, a split: its result is kept, and phase 1
   folds. Which units exist depends on the number of parts; what a row's arithmetic is does not.

   Others come in from the side: [SECTION 13] runs both phases over arrays of its own, and its naive
   runs with a stage of their own (swa__ops); [SECTION 14] takes jobs, blocks and the stage, and no
   V. Beneath it are the kernels of [SECTION 10]: they know tiles and intervals of keys, but neither
   segments nor jobs, and positions for ALiBi and the bias alone.

   With a list of keys (pick) a unit is rows of one token. What it sees is found block by block of
   256 positions, as 256 bits: listed, or near, or a sink, and shown by the window. The keys that
   are left of some blocks are gathered into tiles one behind the other, 256 keys or 32 blocks at a
   time, so that q.k works on full tiles however few keys a block has; then each block is reduced
   alone and folded in order of position. That is the canonical order of a call that masks all other
   keys, and hence the bits of it.

   A tree's rows see history alike, and its whole blocks go the ordinary way. From the block of the
   first node on, keys are gathered as a list's are, one block at a time: history, then nodes in
   the order of the run, in which every path ascends, each in the place of its position. A node is
   hidden from rows that do not stand below it. Where history and nodes are more than 256, some
   tokens go first; a row that sees nothing of a block keeps what it has. */

/* ---- keys: segments, and their operands ---- */

/* A segment as one KV head sees it: positions [pos, end), operands that begin at row 0 of that
   head. In the ring rows are slots, whose numbers have been rounded. */
typedef struct {
    int64_t pos, end, first;             /* first: the row of pos                                 */
    int     ring;
    swa__operand x[SWA__OPERANDS];
} swa__source;

/* Keys of one run: which segments hold them, and how a row of the caller's becomes what the ring
   will hold. */
typedef struct {
    const swa__kernels *kr;
    swa_shape shape;                     /* of the rows                                           */
    swa_type  round[SWA__OPERANDS];      /* rows are rounded to these types first                 */
    int       as_f32, late;              /* tiles are wanted widened: many rows share them; late:
                                            those that lie whole in the ring, and on the grid, by
                                            the kernel                                            */
    int       form;                      /* ... but SWA__SINGLES are made of bf16 as it lies on
                                            the grid, SWA__PAIRS of 16 bits; PLAIN: of f32        */
    int       dots;                      /* ... and K in bytes, [dims/4][16][4], for integer dots */
    const swa_kv *kv;                    /* [n_kv] ascending in position                          */
    int       n_kv;
    const swa__source *base[2];          /* what segments of rows, of a ring share: KV head 0.
                                            NULL: each its own                                    */
    int       in_order;                  /* heads may be woven, so that rows come as they lie in
                                            memory, but for units of one head: see swa__rows_soon */
} swa__keys;

static void swa__source_head(swa__source *src, int heads) {        /* that many heads further */
    int i;
    for (i = 0; i < SWA__OPERANDS; i++) {
        /* an array that there is not, or lies in K, has no p to be moved */
        if (src->x[i].p != NULL) src->x[i].p += heads * src->x[i].head;
        if (src->x[i].scale != NULL) src->x[i].scale += heads * src->x[i].slots;
    }
}

/* of KV head 0 */
static void swa__source_make(const swa__keys *keys, const swa_kv *kv, swa__source *src) {
    const swa__source *base = keys->base[kv->layout_ != 0];
    int i;

    SWA__ROLLED for (i = 0; i < SWA__OPERANDS; i++) {
        if (base != NULL) src->x[i] = base->x[i];        /* one by one, or gcc copies by rep movs */
        else src->x[i] = swa__operand_of(&keys->shape, kv, i);
    }
    src->pos = kv->pos;
    src->end = kv->pos + kv->n;
    src->ring = kv->layout_ != 0;
    /* 1 + the slot, see swa__span_view */
    src->first = src->ring ? kv->layout_ - 1 : 0;
}

/* The segment that was looked at last, for the tiles that follow in it: three operands are not made
   anew for each. only: the operands that are wanted, as bits; 0 = all. */
typedef struct { const swa__keys *keys; int h, segment, only; swa__source src; } swa__cursor;

static swa__cursor swa__cursor_at(const swa__keys *keys, int h) {
    swa__cursor x;
    x.keys = keys;
    x.h = h;
    x.segment = -1;
    x.only = 0;
    return x;
}

static const swa__source *swa__seek(swa__cursor *x, int segment) {
    if (segment == x->segment) return &x->src;
    swa__source_make(x->keys, &x->keys->kv[segment], &x->src);
    swa__source_head(&x->src, x->h);
    x->segment = segment;
    return &x->src;
}

/* The first segment that ends after position p. Segments do not overlap, so their ends ascend, also
   those of empty ones: they can be halved, however many pages a caller has. */
static int swa__find(const swa__keys *keys, int64_t p) {
    int lo = 0, hi = keys->n_kv;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (keys->kv[mid].pos + keys->kv[mid].n > p) hi = mid;
        else lo = mid + 1;
    }
    return lo;
}

/* The same for positions that ascend: from segment s on, that of the one before, without a search. */
SWA__INLINE int swa__find_on(const swa__keys *keys, int s, int64_t p) {
    while (s < keys->n_kv && keys->kv[s].pos + keys->kv[s].n <= p) s++;
    return s;
}

/* ---- scratch ---- */

/* Where a block of keys is staged; of a tile only what could not be read in place. */
typedef struct {
    float *k, *v;                        /* [16 tiles][dk + dt][16], [256][dvp]                   */
    float *scale;                        /* [3][256]                                              */
    float *row;                          /* 16 rows, or a tile, on their way                      */
    float *present;                      /* [256]                                                 */
} swa__room;

/* One piece of the caller's memory, by the number of parts:

       scratch    slice of part 0 | slice of part 1 | ..        | partial results of split keys
       slice      tickets | q, and its scales | o, m, l, of a unit and of a block | scores | room
                  | bounds of a unit's tokens | of a list

   Of an attention tickets and partial results are all that lasts from phase to phase; the rest is a
   unit's. */

/* What a part leaves in its own slice of the scratch when it comes to a phase; in the next phase
   every part looks for it in all slices. So a part that was left out, another number of parts, or
   scratch that was replaced is an error and not a wrong output. Each phase has a ticket of its own,
   which is read only after the join. No padding to compare. */
typedef struct {
    uint64_t owner, step, split_rows;    /* the cache and the call's arrays, which phases share;
                                            its step, or of rows their position                   */
    int32_t  layer, parts;               /* of rows: the number of queries                        */
} swa__ticket;

/* One part's scratch, carved from one piece of memory; also how its size is computed. */
typedef struct {
    int rows;                            /* that q and o have room for: of a unit, and of a panel */
    float *q, *q_sink;                   /* packed: steps [dk+dt][R], or panels [dk+dt][nr]       */
    float *q_scale;                      /* [2][rows] of q in q8, [1] of q_sink                   */
    float *o, *m, *l;                    /* the unit's rows as swa__total has them: [rows][dvp],
                                            or panels [dvp][nr]; [rows]                           */
    float *ob, *mb, *lb;                 /* the same of one block, or a sink logit, to be folded:
                                            [SWA__FEW][dvp], [SWA__PANEL]                         */
    float *s;                            /* [256][SWA__PANEL] scores, then p                      */
    swa__room room;
    int64_t *lo, *hi;                    /* [tokens of a unit] what each sees through the window  */
    swa__list *list;
    uint64_t *listed;                    /* [SWA__LISTED/64]                                      */
    size_t bytes;
} swa__scratch;

static unsigned char *swa__take_bytes(swa__scratch *w, unsigned char *base, size_t bytes) {
    /* each array begins a line of 64 bytes, and two parts share none; what 32 bits cannot count (64
       always can) is as much as they can, of which no region can be made either */
    const size_t lines = (bytes + 63) & ~(size_t)63, end = w->bytes + lines;
    unsigned char *p = base != NULL ? base + w->bytes : NULL;
    w->bytes = sizeof end < 8 && (lines < bytes || end < lines) ? (size_t)-1 : end;
    return p;
}

static void swa__take(swa__scratch *w, unsigned char *base, float **p, size_t floats) {
    const int fits = sizeof floats == 8 || floats <= (size_t)-1 / sizeof(float);
    *p = (float *)(void *)swa__take_bytes(w, base, fits ? floats * sizeof(float) : (size_t)-1);
}

/* Rows that share one staged block: the more, the less staging. q and o of that many rows should be
   about 2 MiB; small heads take fewer, because there the block costs next to nothing and the memory
   is what they would notice. */
static int swa__unit_rows(const swa_shape *s) {
    const int dims = s->head_dim + s->tail_dim + s->v_dim;
    const int rows = dims < SWA__SMALL_DIMS ? dims * (2048 / SWA__SMALL_DIMS) : (1 << 19) / dims;
    /* whole panels of the widest kernel */
    return rows >= 2048 ? 2048 : rows <= 256 ? 256 : rows / 32 * 32;
}

static size_t swa__pad16(int dim) { return (size_t)swa__round16(dim); }

static void swa__room_carve(const swa_shape *s, unsigned char *base, swa__scratch *w) {
    const size_t dkt = (size_t)s->head_dim + (size_t)s->tail_dim, dvp = swa__pad16(s->v_dim);

    swa__take(w, base, &w->room.k, SWA_BLOCK * dkt);
    swa__take(w, base, &w->room.v, SWA_BLOCK * dvp);
    swa__take(w, base, &w->room.scale, SWA__OPERANDS * SWA_BLOCK);
    /* each of its rows is rounded up to 16 numbers */
    swa__take(w, base, &w->room.row, SWA__TILE * ((dkt > dvp ? dkt : dvp) + SWA__TILE));
    swa__take(w, base, &w->room.present, SWA_BLOCK);
}

/* base NULL: its size alone. By shape and sinks, so that both phases of a call find the same
   places. */
static void swa__carve(const swa_shape *s, int sinks, unsigned char *base, swa__scratch *w) {
    const int tile = swa__unit_rows(s) + SWA__PANEL;
    const size_t rows = (size_t)tile, dkt = (size_t)s->head_dim + (size_t)s->tail_dim;
    const size_t dvp = swa__pad16(s->v_dim),
                 tokens = (size_t)(tile / (s->n_heads / s->n_kv_heads)) + 2;

    /* a panel more than a unit has rows: its last panel is filled up. The first and the last token
       of a unit may be there in part */
    w->rows = tile;
    w->bytes = 0;
    /* first, where all find them; of all calls MLA's have the most phases */
    (void)swa__take_bytes(w, base, SWA_MLA_PHASES * sizeof(swa__ticket));
    swa__take(w, base, &w->q, rows * dkt);
    swa__take(w, base, &w->q_sink, sinks ? rows * dkt : 0);
    swa__take(w, base, &w->q_scale, 2 * rows);           /* of q, then of the sinks' own q */
    swa__take(w, base, &w->o, rows * dvp);
    swa__take(w, base, &w->ob, SWA__FEW * dvp);
    swa__take(w, base, &w->m, rows);
    swa__take(w, base, &w->l, rows);
    swa__take(w, base, &w->mb, SWA__PANEL);
    swa__take(w, base, &w->lb, SWA__PANEL);
    swa__take(w, base, &w->s, (size_t)SWA_BLOCK * SWA__PANEL);
    swa__room_carve(s, base, w);
    w->lo = (int64_t *)(void *)swa__take_bytes(w, base, tokens * sizeof(int64_t));
    w->hi = (int64_t *)(void *)swa__take_bytes(w, base, tokens * sizeof(int64_t));
    w->list = (swa__list *)(void *)swa__take_bytes(w, base, SWA__LISTS ? sizeof(swa__list) : 0);
    w->listed = (uint64_t *)(void *)swa__take_bytes(w, base, SWA__LISTS ? SWA__LISTED / 8 : 0);
}

static size_t swa__part_bytes(const swa_shape *s, int sinks) {
    swa__scratch w;
    swa__carve(s, sinks, NULL, &w);
    return w.bytes;
}

/* o, m, l of one row and block that phase 1 will fold: m and l behind o, and the next one begins a
   line. */
static size_t swa__partial_bytes(const swa_shape *s) {
    return (swa__pad16(s->v_dim) + SWA__TILE) * sizeof(float);
}

/* ---- the stage: one block of keys as tiles ---- */

/* From segments to tiles: b->tile[t] says where K, tail and V of the block's keys 16t..16t+15 are,
   in which type, and by which scales. What a kernel can read where it lies stays there; all else is
   made in the room, in f32:

       keys lie in tiles of the ring           few rows, in f32          many rows
         all of the block in one segment       in place, on any grid     as below
         of the tile in one, on the grid       in place                  in place, narrow: widened
         of the tile in one, off the grid      K moved, V in place       the same, narrow: widened
       keys lie in several segments, or rows   gathered; V in place      gathered
                                               where it can be
       any of it in a staged type              widened                   widened

   On the grid: position mod 16 is slot mod 16. Narrow types are not widened where bf16 products or
   integer dot products take them as they are. */

/* One tile's place in the room: K and tail transposed, V as rows. */
typedef struct {
    float *x[SWA__OPERANDS], *scale[SWA__OPERANDS], *row;
    int dvp, bare;                       /* bare: it holds no key yet                             */
    int tiles, made;                     /* whole tiles of rows are made for Intel's tiles at
                                            once; bit i: operand i has been                       */
} swa__spot;

/* To the tile behind it. A tile's tail stands right behind its K, so both move alike. */
static void swa__spot_next(swa__spot *to, const swa_shape *s) {
    const int64_t k = (int64_t)SWA__TILE * (s->head_dim + s->tail_dim);
    int i;
    to->x[SWA__K] += k;
    to->x[SWA__TAIL] += k;
    to->x[SWA__V] += (int64_t)SWA__TILE * to->dvp;
    for (i = 0; i < SWA__OPERANDS; i++) to->scale[i] += SWA__TILE;
}

/* Tile t's place, without a key. */
static void swa__spot_of(const swa__keys *keys, const swa__room *room, int t, swa__spot *to) {
    const swa_shape *s = &keys->shape;
    const int64_t first = (int64_t)t * SWA__TILE;        /* key                                   */
    int i;

    /* at once, not moved: what has just been stored one by one and is then read by vectors waits
       until the stores before it are out */
    to->dvp = (int)swa__pad16(s->v_dim);
    to->x[SWA__K] = room->k + first * (s->head_dim + s->tail_dim);
    to->x[SWA__TAIL] = to->x[SWA__K] + SWA__TILE * s->head_dim;
    to->x[SWA__V] = room->v + first * to->dvp;
    for (i = 0; i < SWA__OPERANDS; i++) to->scale[i] = room->scale + i * SWA_BLOCK + first;
    to->row = room->row;
    to->bare = 1;
    /* V in K is made of the same numbers, by another rule for tiny ones. What is stored comes by
       the call's keys, which have no form */
    to->tiles = SWA__AMX && keys->form == SWA__TILE_AMX && !s->v_in_k;
    to->made = 0;
}

/* A tile's operand i is at p. */
static void swa__tile_put(swa__tile *t, int i, const void *p, swa_type type, const float *scale) {
    if (i == SWA__K) {
        t->k = p;
        t->k_type = (int)type;
        t->k_scale = scale;
    } else if (i == SWA__TAIL) {
        t->tail = p;
        t->tail_type = (int)type;
        t->tail_scale = scale;
    } else {
        t->v = p;
        t->v_type = (int)type;
        t->v_scale = scale;
    }
}

/* Where V is part of K. */
static void swa__tile_share(const swa__keys *keys, swa__tile *t) {
    if (keys->shape.v_in_k) swa__tile_put(t, SWA__V, t->k, (swa_type)t->k_type, t->k_scale);
}

/* Strided rows defeat the hardware's prefetch: ask for them one tile early, a line every `apart`
   bytes. Inline, because gcc drops calls of a function that does nothing but fetch. */
SWA__INLINE void swa__rows_ahead(const unsigned char *p, int rows, int64_t stride, int bytes,
                                 int apart) {
    int i, at;
    SWA__ROLLED for (i = 0; i < rows; i++, p += stride)
        SWA__ROLLED for (at = 0; at < bytes; at += apart) SWA__PREFETCH(p + at);
}

/* The same for rows from p on that are read soon, where others lie between. Few rows' kernel has
   asked for them, but such rows share so few sets of the caches that not all stay: asked for again,
   K, which is turned into a tile at once, by every line, V by every second, with which the other
   comes. V in narrow types and larger groups wait for FMAs instead, and of a segment below 4 MB
   much is in L2 already. */
SWA__INLINE void swa__rows_soon(const swa__keys *keys, const swa__source *src, int which,
                                const unsigned char *p, int rows) {
    const swa__operand *x = &src->x[which];
    const int bytes = x->dim * (int)x->size;

    if (keys->as_f32) {
        if (x->row > 4 * (int64_t)x->dim) swa__rows_ahead(p, rows, x->row, bytes, 64);
        return;
    }
    if (x->row <= bytes) return;
    if (keys->in_order) return;          /* fetched by the CPU: 0.94 of the time                  */
    if (which != SWA__K && (x->type != SWA_F32 || !swa__fetches_twice())) return;
    if (keys->shape.n_heads > 4 * keys->shape.n_kv_heads) return;
    if (x->row <= (4 << 20) / (src->end - src->pos)) return;
    swa__rows_ahead(p, rows, x->row, bytes, which == SWA__K ? 64 : 128);
}

/* 16 of them. Each size by itself, so that it is a constant: a move or two, and no call. */
static void swa__copy_16(unsigned char *to, const unsigned char *from, size_t size) {
    if (size == 4) memcpy(to, from, 64);
    else if (size == 2) memcpy(to, from, 32);
    else memcpy(to, from, 16);
}

/* The tile whose key 0 is in slot `slot`, no multiple of 16, in the ring's own type: its
   keys [a, b) lie in two tiles of the ring, and are moved.

       ring     |. . . . . . . . . . . a b c d e|f g h i j k l m n o p . . . . .|
                 lower                 ^off      upper
       tile     |a b c d e f g h i j k l m n o p|
                           ^seam = 16 - off

   Of a whole tile each dim is two copies of 16 keys, of which the second hides what was too much in
   the first, and the next dim's first what was too much in the second; but for the last dim's,
   behind which there may be nothing: no more is copied of it than is wanted, as of part of a
   tile. */
static void swa__move_keys(const swa__operand *x, int64_t slot, int a, int b, unsigned char *dst) {
    const size_t size = x->size, line = SWA__TILE * size;
    /* keys below seam: the lower tile */
    const int off = (int)(slot & (SWA__TILE - 1)), seam = SWA__TILE - off;
    const unsigned char *lower = x->p + (slot - off) * x->row;
    const unsigned char *upper = lower + SWA__TILE * x->row;
    int d = 0;

    if (a == 0 && b == SWA__TILE)
        for (; d < x->dim - 1; d++) {
            swa__copy_16(dst + (size_t)d * line, lower + (size_t)d * line + (size_t)off * size,
                         size);
            swa__copy_16(dst + (size_t)d * line + (size_t)seam * size, upper + (size_t)d * line,
                         size);
        }
    for (; d < x->dim; d++) {
        const size_t at = (size_t)d * line;
        const int low = b < seam ? b : seam, up = a > seam ? a : seam;
        unsigned char *to = dst + at;
        if (a < low)
            memcpy(to + (size_t)a * size, lower + at + (size_t)(off + a) * size,
                   (size_t)(low - a) * size);
        if (up < b)
            memcpy(to + (size_t)up * size, upper + at + (size_t)(up - seam) * size,
                   (size_t)(b - up) * size);
    }
}

/* 32 numbers of q8_32. A NaN makes one of all; what is too large is cut to bf16's largest, so that
   127 times the scale is no infinity. As for fp8 there is no branch on a number; a choice between
   bits keeps compilers from an FMA of product and sum, too. */
static void swa__q8_32_codes(const float *x, unsigned char *to, float *scale) {
    uint32_t top = 0, code[32];
    float largest, inv;
    int i;

    /* without their signs, bits ascend as numbers do, those of a NaN above all */
    for (i = 0; i < 32; i++) {
        const uint32_t size = swa__bits_of(x[i]) & 0x7fffffffu;
        if (size > top) top = size;
    }
    largest = top < 0x7f7f0000u ? swa__float_of(top) : 3.38953139e38f;
    *scale = top > 0x7f800000u ? swa__float_of(top) : largest / 127.0f;
    inv = *scale > 1e-37f ? 127.0f / largest : 0.0f;     /* as in q8 */
    for (i = 0; i < 32; i++) {
        const uint32_t u = swa__bits_of(x[i]), finite = swa__below(u & 0x7fffffffu, 0x7f800000u),
                       y = (swa__bits_of(x[i] * inv) & finite)
                         | ((swa__bits_of(127.0f) | (u & 0x80000000u)) & ~finite);
        /* 3 * 2^22 + n ends in n */
        code[i] = swa__bits_of(swa__float_of(y) + 12582912.0f);
    }
    for (i = 0; i < 32; i++) to[i] = (unsigned char)code[i];
}

/* The staged types in plain C: numbers into bytes, up to 32 that have one scale. */
SWA__NOINLINE void swa__staged_bytes(int type, const float *src, int n, unsigned char *to,
                                     float *scale) {
    const int part = n < 32;
    float x[32];
    unsigned char code[32], *out = part ? code : to;

    if (part) {
        memset(x, 0, sizeof x);
        memcpy(x, src, (size_t)n * sizeof *x);
        src = x;
    }
    if (type == SWA_Q8_32) swa__q8_32_codes(src, out, scale);
    else swa__fp8_from_f32(type, src, out);
    if (part) memcpy(to, code, (size_t)n);
}

/* A new row as the ring will hold it: into bytes and back, so that both ways cannot differ. */
SWA__NOINLINE void swa__staged_round(const swa__kernels *kr, int type, const float *src, int n,
                                     float *dst) {
    int d;

    for (d = 0; d < n; d += 32) {
        unsigned char bytes[32];
        float scale = 1.0f;
        const int some = swa__min(32, n - d);
        memset(bytes, 0, sizeof bytes);
        swa__staged_bytes(type, src + d, some, bytes, &scale);
        kr->staged(type, bytes, dst + d, swa__pad16(some), &scale, 0, 32);
    }
}

/* The scales of the row at p of a ring that lies in rows; NULL: none, or blocks of the caller's. */
SWA__INLINE const float *swa__row_scale(const swa__operand *x, const unsigned char *p) {
    return x->slots > 0 && x->scales > 0
         ? swa__scales_behind(x, x->p) + (p - x->p) / x->row : NULL;
}

/* The row at p of an operand that lies in rows: a ring's, or the caller's, which ends where its
   numbers do. */
SWA__NOINLINE void swa__staged_row(const swa__kernels *kr, const swa__operand *x,
                                   const unsigned char *p, float *dst) {
    const int type = (int)x->type, whole = x->dim / SWA__TILE * SWA__TILE;
    const float *scale = swa__row_scale(x, p);
    unsigned char last[SWA__TILE];
    int d;

    if (type == SWA_Q8_32 && scale == NULL) {            /* blocks: the scale in f16, 32 integers */
        for (d = 0; d < x->dim; d += 32, p += 34) {
            uint16_t half;
            float one;
            memcpy(&half, p, sizeof half);
            one = swa__f32_from_f16(half);
            kr->staged(type, p + 2, dst + d, 32, &one, 0, 32);
        }
        return;
    }
    kr->staged(type, p, dst, (size_t)whole, scale, x->slots, 32);
    if (whole == x->dim) return;
    memset(last, 0, sizeof last);
    memcpy(last, p + whole, (size_t)(x->dim - whole));
    if (scale != NULL) scale += whole / 32 * x->slots;
    kr->staged(type, last, dst + whole, SWA__TILE, scale, 0, 32);
}

/* V of a ring, rows from p on of ld numbers, their padding included. */
static void swa__staged_rows(const swa__kernels *kr, const swa__operand *x,
                             const unsigned char *p, int rows, size_t ld, float *dst) {
    const float *scale = swa__row_scale(x, p);

    if (scale == NULL) {
        kr->staged((int)x->type, p, dst, (size_t)rows * ld, NULL, 0, 0);
        return;
    }
    for (; rows > 0; rows--, p += x->row, dst += ld)
        kr->staged((int)x->type, p, dst, ld, scale++, x->slots, 32);
}

/* K or tail of 16 slots from `slot` on, whose numbers are at p as a tile: of keys [a, b) at least.
   Off the grid there are not 16 scales behind the last slots. */
SWA__NOINLINE void swa__staged_tile(const swa__kernels *kr, const swa__operand *x,
                                    const unsigned char *p, int64_t slot, int a, int b,
                                    float *dst) {
    const size_t group = 32 * SWA__TILE, numbers = SWA__TILE * (size_t)x->dim;
    const float *scale = x->scales > 0 ? swa__scales_behind(x, x->p) + slot : NULL;
    float some[SWA__TILE];
    size_t at;

    if (scale == NULL || slot % SWA__TILE == 0) {
        kr->staged((int)x->type, p, dst, numbers, scale, x->slots, group);
        return;
    }
    memset(some, 0, sizeof some);
    for (at = 0; at < numbers; at += group, scale += x->slots) {
        memcpy(some + a, scale + a, (size_t)(b - a) * sizeof *some);
        kr->staged((int)x->type, p + at, dst + at, numbers - at < group ? numbers - at : group, some,
                   0, group);
    }
}

/* K or tail of 16 slots, as above, of any type: integers of q8 without their scales. */
static void swa__tile_widen(const swa__keys *keys, const swa__operand *x, const unsigned char *p,
                            int64_t slot, int a, int b, float *dst) {
    if (SWA__IS_STAGED(x->type)) swa__staged_tile(keys->kr, x, p, slot, a, b, dst);
    else keys->kr->widen((int)x->type, p, dst, SWA__TILE * (size_t)x->dim);
}

/* The row at p of an operand that lies in rows, as the ring holds it or (round) will hold it: to
   dst, and to *scale what q8 is to be multiplied by. */
SWA__INLINE void swa__row_in(const swa__keys *keys, const swa__operand *x, int round,
                             const unsigned char *p, float *dst, float *scale) {
    if (SWA__IS_STAGED(x->type)) swa__staged_row(keys->kr, x, p, dst);
    else if (SWA__IS_STAGED(round))
        swa__staged_round(keys->kr, round, (const float *)(const void *)p, x->dim, dst);
    else keys->kr->round(round, p, (int)x->type, x->dim, dst, scale);
}

/* Keys [a, b) of a tile's K or tail from slot `slot` on, widened: where several segments meet in
   it. */
static void swa__slots_in(const swa__keys *keys, const swa__operand *x, int which, int64_t slot,
                          int a, int b, const swa__spot *to) {
    float *dst = to->x[which];
    int d, i, n, off = (int)(slot & (SWA__TILE - 1));

    if (off == a && to->bare) { /* the other keys are filled in later, or nobody looks at them */
        swa__tile_widen(keys, x, x->p + (slot - off) * x->row, slot - off, 0, SWA__TILE, dst);
        return;
    }

    /* one tile of slots after the other is widened whole, which is the least that the kernel takes,
       and its keys are put into their places */
    for (; a < b; a += n, slot += n) {
        off = (int)(slot & (SWA__TILE - 1));
        n = swa__min(b - a, SWA__TILE - off);
        swa__tile_widen(keys, x, x->p + (slot - off) * x->row, slot - off, 0, SWA__TILE, to->row);
        for (d = 0; d < x->dim; d++)
            for (i = 0; i < n; i++) dst[d * SWA__TILE + a + i] = to->row[d * SWA__TILE + off + i];
    }
}

/* Keys [a, b) of a tile's K or tail from the rows at src[a..b-1]: rounded if need be, then
   transposed. A ring's are what they were rounded to. */
static void swa__rows_in(const swa__keys *keys, const swa__source *source, int which,
                         const void **src, int a, int b, swa__spot *to) {
    const swa__operand *x = &source->x[which];
    const swa_type round = source->ring ? SWA_F32 : keys->round[which];
    const int made = round != SWA_F32 || SWA__IS_STAGED(x->type);
    const swa_type type = made ? SWA_F32 : x->type;
    const int ld = (int)swa__pad16(x->dim);
    int i, d;

    /* attended is what the ring will hold, or a token's bits would depend on whether its keys came
       in the same step */
    for (i = a; i < b && made; i++) {
        swa__row_in(keys, x, (int)round, (const unsigned char *)src[i], to->row + i * ld,
                    &to->scale[which][i]);
        src[i] = to->row + i * ld;
    }

#if SWA__AMX
    if (a == 0 && b == SWA__TILE && to->tiles && round != SWA_Q8 && type != SWA_Q8) {
        swa__amx_rows((int)type, x->dim, src, to->x[which]);
        to->made |= 1 << which;
        return;
    }
#endif
    if (a == 0 && b == SWA__TILE) {
        keys->kr->pack(src, (int)type, SWA__TILE, x->dim, 1.0f, to->x[which]);
        return;
    }

    /* part of a tile, key by key. Narrow rows have not been rounded, so that row is free */
    for (i = a; i < b; i++) {
        const float *from = (const float *)src[i];
        float *key = to->x[which] + i, one;
        if (type != SWA_F32) {
            keys->kr->round(SWA_F32, src[i], (int)type, x->dim, to->row, &one);
            from = to->row;
        }
        for (d = 0; d + 4 <= x->dim; d += 4, key += 4 * SWA__TILE) {
            key[0] = from[d];
            key[SWA__TILE] = from[d + 1];
            key[2 * SWA__TILE] = from[d + 2];
            key[3 * SWA__TILE] = from[d + 3];
        }
        SWA__ROLLED for (; d < x->dim; d++, key += SWA__TILE) *key = from[d];
    }
}

/* Keys [a, b) of a tile's V: rows as they lie in the ring, or rounded to what it will hold. */
static void swa__values_in(const swa__keys *keys, const swa__source *src, const unsigned char *p,
                           int a, int b, const swa__spot *to) {
    const swa__operand *x = &src->x[SWA__V];
    const size_t ld = (size_t)to->dvp;
    float *dst = to->x[SWA__V] + (size_t)a * ld;

    /* a ring's are padded as the room's, one right behind the other, and so need no fetch */
    if (src->ring) {
        if (SWA__IS_STAGED(x->type)) swa__staged_rows(keys->kr, x, p, b - a, ld, dst);
        else keys->kr->widen((int)x->type, p, dst, (size_t)(b - a) * ld);
        return;
    }
    /* the rows behind these, as a rule the next tile's */
    if (b - a > 1) swa__rows_ahead(p + (b - a) * x->row, b - a, x->row, x->dim * (int)x->size, 64);
    for (; a < b; a++, p += x->row, dst += ld)
        swa__row_in(keys, x, (int)keys->round[SWA__V], p, dst, &to->scale[SWA__V][a]);
}

/* The scale of a row; what stands for one where rows have none. 1 changes no bit of K or V; a
   tail's kernel has to know. */
static float swa__scale_of(const swa__operand *x, int which, int64_t row) {
    return x->scale != NULL ? x->scale[row] : which == SWA__TAIL ? SWA__UNSCALED : 1.0f;
}

/* Keys [a, b) of one operand of a tile from row `row` of a segment on, with their scales. */
static void swa__keys_in(const swa__keys *keys, const swa__source *src, int which, int64_t row,
                         int a, int b, swa__spot *to) {
    const swa__operand *x = &src->x[which];
    const unsigned char *p = x->p;
    const void *at[SWA__TILE];
    int i;

    if (x->dim == 0) return;
    /* rows that are rounded to q8 write theirs when that is done */
    SWA__ROLLED for (i = a; i < b; i++) to->scale[which][i] = swa__scale_of(x, which, row + i - a);
    if (which == SWA__V) {
        swa__values_in(keys, src, p + row * x->row, a, b, to);
        return;
    }
    if (x->tiled) {
        swa__slots_in(keys, x, which, row, a, b, to);
        return;
    }
    SWA__ROLLED for (i = a, p += row * x->row; i < b; i++, p += x->row) at[i] = p;
    /* p has come to the next tile's rows */
    if (a == 0 && b == SWA__TILE) swa__rows_soon(keys, src, which, p, SWA__TILE);
    swa__rows_in(keys, src, which, at, a, b, to);
}

/* A tile of which one ring segment holds all the keys that are asked for, [a, b), key 0 in slot
   `slot`: read where it is, in the ring's type. Off the grid of 16 slots K and tail are moved
   first; V, in rows, does not mind. */
static void swa__tile_slots(const swa__keys *keys, const swa__source *src, int64_t slot, int a,
                            int b, const swa__spot *to, swa__tile *t) {
    const int off_grid = (slot & (SWA__TILE - 1)) != 0;
    int i;

    t->v_token = to->dvp;
    for (i = 0; i < SWA__OPERANDS; i++) {
        const swa__operand *x = &src->x[i];
        const float *scale = x->scale != NULL ? x->scale + slot : NULL;
        const unsigned char *p = x->p;
        swa_type type = x->type;
        /* bf16 pairs, tiles and int8 products are made of the narrow numbers; pairs of q8 are
           made of f32, but for V's with its scale, and staged types of nothing else */
        const int widen = ((keys->form == SWA__PLAIN
                                ? keys->as_f32 && type != SWA_F32 && (off_grid || !keys->late)
                            : keys->form == SWA__PAIRS ? type == SWA_Q8
                            : SWA__AMX && keys->form == SWA__TILE_AMX
                                ? type == SWA_Q8 && i != SWA__V
                                : type != SWA_F32 && (off_grid || type != SWA_BF16))
                           && !(i == SWA__K && keys->dots))
                        || SWA__IS_STAGED(type);
        if (x->dim > 0) p += slot * x->row;
        if (off_grid && scale != NULL) { /* the last 16 slots have no 16 scales behind them */
            memcpy(to->scale[i] + a, scale + a, (size_t)(b - a) * sizeof(float));
            scale = to->scale[i];
        }
        if (off_grid && i != SWA__V && x->dim > 0) {
            /* in the ring's type: the place in the room is for what is widened */
            float *moved = widen ? to->row : to->x[i];
            swa__move_keys(x, slot, a, b, (unsigned char *)moved);
            p = (const unsigned char *)moved;
        }
        if (widen && x->dim > 0) {
            if (i == SWA__V) swa__values_in(keys, src, p + a * x->row, a, b, to);
            else swa__tile_widen(keys, x, p, slot, a, b, to->x[i]);
            p = (const unsigned char *)to->x[i];
            type = SWA_F32;
        }
        swa__tile_put(t, i, p, type, scale);
    }
    swa__tile_share(keys, t);
}

/* Whether keys of a segment have scales, or will have when they are rounded, as a bit. */
static unsigned swa__is_scaled(const swa__keys *keys, const swa__source *src, int which) {
    const swa__operand *x = &src->x[which];
    return (unsigned)(x->scale != NULL
                      || (!src->ring && x->dim > 0 && keys->round[which] == SWA_Q8))
        << which;
}

/* Of a gathered tile the keys that do not exist: their scores will be hidden, their V must be
   finite. And scales. */
static void swa__tile_finish(const swa__keys *keys, unsigned missing, unsigned scaled,
                             const swa__spot *to, swa__tile *t) {
    int i, x, d;

    for (i = 0; missing >> i != 0; i++) {
        if ((missing >> i & 1) == 0) continue;
        /* p of such a key is 0, which times what was left in the room could be a NaN */
        for (x = 0; x < SWA__OPERANDS; x++) to->scale[x][i] = 1.0f;
        if (!keys->shape.v_in_k)
            memset(to->x[SWA__V] + i * to->dvp, 0, (size_t)to->dvp * sizeof(float));
        else
            SWA__ROLLED for (d = 0; d < keys->shape.head_dim; d++)
                to->x[SWA__K][d * SWA__TILE + i] = 0.0f;
    }

    if (scaled >> SWA__K & 1) t->k_scale = to->scale[SWA__K];
    if (scaled >> SWA__TAIL & 1) t->tail_scale = to->scale[SWA__TAIL];
    if (scaled >> SWA__V & 1) t->v_scale = to->scale[SWA__V];
    swa__tile_share(keys, t);
}

/* Any other tile, from segment s on: rows of the caller's, or several segments. Returns the keys
   of [a, b) that no segment holds.
   A key's arithmetic depends on how that key is stored and on nothing else: so scales are applied
   in a tile that has some; there a key without one is multiplied by 1, which changes no bit, and
   its tail says SWA__UNSCALED, because a scaled tail is summed by itself and another continues the
   sum of K. */
static unsigned swa__tile_gather(swa__cursor *in, int s, int64_t pos, int a, int b, swa__spot *to,
                                 swa__tile *t) {
    const swa__keys *keys = in->keys;
    unsigned missing = swa__key_bits(a, b), scaled = 0;
    int x;

    for (x = 0; x < SWA__OPERANDS; x++) swa__tile_put(t, x, to->x[x], SWA_F32, NULL);
    t->v_token = to->dvp;
    to->made = 0;

    for (; s < keys->n_kv && keys->kv[s].pos < pos + b; s++) {
        const swa__source *src = swa__seek(in, s);
        const int from = (int)swa__max64(src->pos - pos, a),
                  end = (int)swa__min64(src->end - pos, b);
        const int64_t row = src->first + (pos + from - src->pos);

        if (from >= end) continue;
        missing &= ~swa__key_bits(from, end);
        /* nothing stands there yet that a whole tile could cover */
        to->bare = from == a;
        for (x = 0; x < SWA__OPERANDS; x++) {
            const swa__operand *y = &src->x[x];
            if (in->only != 0 && (in->only >> x & 1) == 0) continue;
            scaled |= swa__is_scaled(keys, src, x);
            if (x == SWA__V && !src->ring && end - from == b - a && !keys->as_f32
                && keys->form != SWA__SINGLES
                && keys->round[x] == SWA_F32 && !SWA__IS_STAGED(y->type)
                && y->dim == to->dvp) { /* V of whole rows is read where the caller has it */
                swa__tile_put(t, x, y->p + (row - a) * y->row, y->type, NULL);
                t->v_token = y->row / (int64_t)y->size;
                swa__rows_soon(keys, src, x, y->p + row * y->row, end - from);
            } else swa__keys_in(keys, src, x, row, from, end, to);
        }
    }
    if (to->made >> SWA__K & 1) t->k_type = SWA_BF16_TILE;
    if (to->made >> SWA__TAIL & 1) t->tail_type = SWA_BF16_TILE;
    swa__tile_finish(keys, missing, scaled, to, t);
    return missing;
}

/* Few rows over keys [lo, hi) of the block that lie in one segment of a ring, the block's position
   in slot `slot`: all is read where it is. Off the grid of 16 slots K and tail are tiles of slots
   all the same, and the kernel moves the scores; V, in rows, does not mind, but its scales are
   moved. */
static void swa__stage_slots(const swa__source *src, int64_t slot, int lo, int hi,
                             const swa__room *room, swa__block *b) {
    int i, t;

    b->shift = (int)(slot & (SWA__TILE - 1));
    for (i = 0; i < SWA__OPERANDS; i++) {
        const swa__operand *x = &src->x[i];
        const int shift = i == SWA__V ? 0 : b->shift;
        const int64_t at = slot - shift, tile = SWA__TILE * x->row;
        const float *scale = x->scale != NULL ? x->scale + at : NULL;
        if (i == SWA__V && scale != NULL && b->shift > 0) {
            float *moved = room->scale + SWA__V * SWA_BLOCK + b->skip * SWA__TILE;
            /* those that are seen: behind the last slot's there are no more */
            memcpy(moved + lo, scale + lo, (size_t)(hi - lo) * sizeof(float));
            scale = moved;
        }
        for (t = (lo + shift) / SWA__TILE; t * SWA__TILE < hi + b->shift; t++)
            swa__tile_put(&b->tile[b->skip + t], i, x->dim > 0 ? x->p + at * x->row + t * tile : NULL,
                          x->type, scale != NULL ? scale + t * SWA__TILE : NULL);
    }
    for (t = lo / SWA__TILE; t * SWA__TILE < hi + b->shift; t++)
        b->tile[b->skip + t].v_token = src->x[SWA__V].row / (int64_t)src->x[SWA__V].size;
}

static int swa__has_staged(const swa__source *src) {
    return SWA__IS_STAGED(src->x[SWA__K].type) || SWA__IS_STAGED(src->x[SWA__V].type)
        || SWA__IS_STAGED(src->x[SWA__TAIL].type);
}

static int swa__has_q8(const swa__source *src) {
    return src->x[SWA__K].type == SWA_Q8 || src->x[SWA__V].type == SWA_Q8;
}

/* Fills in the block's tiles that hold keys of range, for the cursor's KV head; the others stay
   undefined. Of some operands alone: that is a slice of a block, whose place is the first, so that it
   stays in L1, and which leaves what other slices have said of missing keys. */
static void swa__stage(swa__cursor *in, const int range[4], const swa__room *room, swa__block *b) {
    const swa__keys *keys = in->keys;
    const int first = range[0], end = range[3];
    int t, i, lo, hi, s = swa__find(keys, b->pos + first);
    swa__spot to;

    if (in->only == 0) b->present = NULL;
    b->shift = 0;

    /* decode, as a rule: one segment of the ring holds all that is seen */
    if (s < keys->n_kv && !keys->as_f32 && range[0] == range[1]) {
        const swa__source *src = swa__seek(in, s);
        if (src->x[SWA__K].tiled && src->pos <= b->pos + first && src->end >= b->pos + end
            && keys->form != SWA__SINGLES && !(keys->form == SWA__PAIRS && swa__has_q8(src))
            && !swa__has_staged(src)) {
            swa__stage_slots(src, src->first + (b->pos - src->pos), first, end, room, b);
            return;
        }
    }

    swa__spot_of(keys, room, in->only != 0 ? 0 : b->skip + first / SWA__TILE, &to);
    for (t = first / SWA__TILE; t * SWA__TILE < end; t++, swa__spot_next(&to, &keys->shape)) {
        const int64_t pos = b->pos + t * SWA__TILE;
        const swa__source *src = NULL;
        swa__tile *tile = &b->tile[b->skip + t];
        const unsigned seen = swa__tile_seen(range, t);
        unsigned missing = 0;
        /* between the sinks and the window there may be tiles that nobody sees */
        if (seen == 0) continue;
        /* the first and the end of those that are; both intervals may touch it, then all between too */
        for (lo = 0; (seen >> lo & 1) == 0;) lo++;
        for (hi = SWA__TILE; (seen >> (hi - 1) & 1) == 0;) hi--;
        s = swa__find_on(keys, s, pos + lo);
        if (s < keys->n_kv) src = swa__seek(in, s);
        if (src != NULL && src->x[SWA__K].tiled && src->pos <= pos + lo && src->end >= pos + hi)
            swa__tile_slots(keys, src, src->first + (pos - src->pos), lo, hi, &to, tile);
        else
            missing = swa__tile_gather(in, s, pos, lo, hi, &to, tile);
#if SWA__DOTS
        /* for x86's instruction, which takes K unsigned: 0x80 in each byte adds 128 */
        if (keys->dots) {
            keys->kr->to_dots(tile->k_type, keys->shape.head_dim, SWA__TILE, -0x7f7f7f80, tile->k,
                              to.x[SWA__K]);
            tile->k = to.x[SWA__K];
        }
#endif
        if (missing == 0) continue;

        /* between two segments keys may be missing: the whole block says which are there */
        for (i = 0; i < SWA_BLOCK && b->present == NULL; i++) room->present[i] = 1.0f;
        b->present = room->present;
        for (i = lo; i < hi; i++)
            if (missing >> i & 1) room->present[t * SWA__TILE + i] = 0.0f;
    }
}

/* ---- calls and jobs ---- */

/* From the whole to the part, each made of the one before and read by those behind it:

       call    what a host asked for, checked; all parts make the same            swa__call_base
       job     one of its runs: queries, segments, kernel, blocks                 swa__job_make
       unit    rows of a job, and blocks: what one part computes in one go        swa__job_units
       sight   what some of its rows see of one block                             swa__sight_make

   A host's own threads make all of them again in each phase of each part, of the same arguments:
   what goes from one phase to the next is in the scratch and the cache. */

/* What a call does otherwise than read its step's segments as they are: MLA's naive path. One per
   part, so that user may hold memory of the part's own. */
typedef struct {
    void *user;
    /* the runs that it is for */
    int  (*takes)(const void *user, const swa_run *run);
    void (*stage)(void *user, const swa__keys *keys, int h, const int range[4],
                  const swa__room *room,
                  swa__block *b); /* instead of swa__stage; NULL = that                    */
} swa__ops;

/* What every run and part of a call has in common, filled in from what was asked to what it needs:
   swa__call_begin, swa__call_base, the ring's or the rows' own, and at last the scratch. Only read
   after that. */
typedef struct {
    const swa__kernels *kr;
    swa_shape shape;     /* of q and out                                                          */
    float qscale;        /* folded into q: scale * log2 e, or scale / softcap                     */
    int group;           /* query heads per KV head                                               */
    swa__keys keys;      /* without segments                                                      */
    const swa__ops *ops; /* NULL = none                                                           */
    const swa__cache *c; /* ring call: its layer, and the runs of its step; or ...                */
    int layer;
    const swa_run *runs;
    const swa_rows *rows;           /* ... stateless call, and of its segments those that are     */
    const swa_kv *kv;               /* looked at                                                  */
    int n_kv;
    int n_jobs, sinks, trees;       /* runs; the window has sinks; a run of the step is a tree    */
    uint64_t asked;                 /* a hash of what is not in a, for tickets                    */
    unsigned char *scratch, *split; /* part_bytes for each part; results of keys split over parts */
    size_t part_bytes, split_rows;  /* that have room in split                                    */
    swa__geo geo;                   /* of many rows; few rows have another form in their job      */
    swa_attn a;                     /* strides resolved                                           */
    swa__operand fresh[SWA__OPERANDS];   /* the call's new rows; p NULL = none                    */
    swa__scratch first;                  /* of part 0                                             */
} swa__call;

/* Whether blocks are staged by another than swa__stage. */
static int swa__expands(const swa__call *call) {
    return call->ops != NULL && call->ops->stage != NULL;
}

static int swa__listed(const swa__call *call) { return SWA__LISTS && call->a.pick != NULL; }

#if SWA__BF16
/* A tile's [dims][16] as 16 rows of V, for products whose numbers have to lie key by key. */
static void swa__tile_to_rows(const swa__call *call, const float *k, float *v) {
    const int dims = call->shape.v_dim, whole = dims / SWA__TILE * SWA__TILE,
              dvp = (int)swa__pad16(dims);
    int i, d;
    call->kr->to_rows(whole, k, v, (size_t)dvp);
    /* the kernel takes 16 dims at a time: the last ones, and zeros where no dim is */
    for (i = 0; i < SWA__TILE && whole < dvp; i++)
        for (d = whole; d < dvp; d++) v[i * dvp + d] = d < dims ? k[d * SWA__TILE + i] : 0.0f;
}

/* For SWA_BF16_TILE a q8 tile's scales are multiplied in before its numbers are rounded: it has no
   chain of K alone, nor one of the tail, that a scale could follow, and of V that costs less than p
   times the scale in each panel. What has one was staged, so that it is ours. */
SWA__NOINLINE void swa__tile_scaled(int dims, const float **scale, float *k) {
    float by[SWA__TILE];
    int d, i;
    if (*scale == NULL) return;
    for (i = 0; i < SWA__TILE; i++) by[i] = (*scale)[i] < 0.0f ? 1.0f : (*scale)[i];
    for (d = 0; d < dims; d++, k += SWA__TILE)
        for (i = 0; i < SWA__TILE; i++) k[i] *= by[i];
    *scale = NULL;
}

/* V's rows, of the keys that are seen. */
static void swa__values_scaled(unsigned seen, int dvp, const float *scale, float *v) {
    int i, d, n;
    for (i = 0; scale != NULL && i < SWA__TILE; i++, v += dvp) {
        const float mul = scale[i];
        for (d = 0; seen >> i & 1 && d < dvp; d += SWA__TILE)
            for (n = 0; n < SWA__TILE; n++) v[d + n] *= mul;
    }
}

/* The staged tiles in the form that bf16 products take. Keys that nobody sees become zeros in V. */
static void swa__stage_bf16(const swa__call *call, int form, const int range[4],
                            const swa__room *room, swa__block *b) {
    const int dk = call->shape.head_dim, dt = call->shape.tail_dim,
              dvp = (int)swa__pad16(call->shape.v_dim);
    float *last = room->v + (SWA_BLOCK - SWA__TILE) * (size_t)dvp;
    int t;

    for (t = range[0] / SWA__TILE; t * SWA__TILE < range[3]; t++) {
        swa__tile *tile = &b->tile[t];
        float *k = room->k + (size_t)t * SWA__TILE * (size_t)(dk + dt);
        float *v = room->v + swa__stored(form, t * SWA__TILE) * dvp;
        const float *rows = (const float *)tile->v;
        const unsigned seen = swa__tile_seen(range, t);
        if (seen == 0) continue;
        swa__tile_scaled(dk, &tile->k_scale, (float *)(uintptr_t)tile->k);
        if (dt > 0) swa__tile_scaled(dt, &tile->tail_scale, (float *)(uintptr_t)tile->tail);
        if (!call->shape.v_in_k)
            swa__values_scaled(seen, dvp, tile->v_scale, (float *)(uintptr_t)tile->v);
        tile->v_scale = NULL;
        /* V before K: where it is part of K, that is rewritten below, maybe where it lies */
        if (call->shape.v_in_k) {        /* V as rows: where the last tile's will be, so that
                                            they stay in L1 */
            swa__tile_to_rows(call, (const float *)tile->k, last);
            rows = last;
        }
        call->kr->to_form(form, SWA__TILE, seen, dvp, SWA__TINY_V, rows, v);
        /* all keys of K: what nobody sees is masked, as a score */
        call->kr->to_form(form, dk, 0xffffu, SWA__TILE, SWA__TINY_QK, (const float *)tile->k, k);
        tile->k = k;
        tile->v = v;

        if (dt == 0) continue;
        k += SWA__TILE * dk;
        call->kr->to_form(form, dt, 0xffffu, SWA__TILE, SWA__TINY_QK, (const float *)tile->tail, k);
        tile->tail = k;
    }
}

/* V that is part of K, of one tile, as K's rows lie: neighbouring dims have changed places, and
   neighbouring keys, which p.v takes pair by pair. Where K's keys are turned as well, all of them
   seen, and no number counts in V but not in K, that is what K becomes: one copy of the latents in
   L2 in place of two. Makes K, too. */
static void swa__latent_singles(const swa__call *call, const swa__geo *g, unsigned seen, float *k,
                                float *v, swa__tile *tile) {
    const int even = g->dv + (g->dv & 1);
    swa__formed as_k = swa__formed_as(tile->k_type, g->dk),
                as_v = swa__formed_as(tile->k_type, swa__min(g->dk, even));
    int apart;

    as_k.turn = tile->turned;
    as_v.turn = 1;
    as_v.seen = seen;
    as_v.tiny = SWA__TINY_V;
    apart = seen != 0xffffu || !tile->turned;
    if (apart) call->kr->singles(&as_v, tile->k, v);   /* first: K may lie where it came from */
    if (call->kr->singles(&as_k, tile->k, k) && !apart) {
        apart = 1;
        call->kr->singles(&as_v, tile->k, v);
    }
    tile->v = apart ? v : k;
}

/* The same for SWA__SINGLES, from what the tiles hold: f32, or bf16 where a tile lies on the grid
   of the ring (swa__tile_slots has widened all else). */
static void swa__stage_singles(const swa__call *call, const swa__geo *g, const int range[4],
                               const swa__room *room, swa__block *b) {
    int t;

    for (t = range[0] / SWA__TILE; t * SWA__TILE < range[3]; t++) {
        swa__tile *tile = &b->tile[t];
        float *k = room->k + (size_t)t * SWA__TILE * (size_t)(g->dk + g->dt),
              *tail = k + SWA__TILE * g->dk, *v = room->v + t * SWA__TILE * g->dvp;
        const unsigned seen = swa__tile_seen(range, t);
        swa__formed x;

        if (seen == 0) continue;
        tile->turned = g->v_in_k && tile->k != k && tile->tail != tail && tile->k_scale == NULL
                       && tile->tail_scale == NULL;
        if (g->v_in_k) swa__latent_singles(call, g, seen, k, v, tile);
        else {
            x = swa__formed_as(tile->k_type, g->dk);
            call->kr->singles(&x, tile->k, k);
            x = swa__formed_as(tile->v_type, SWA__TILE);
            x.ld = g->dvp;
            x.keep = seen;
            x.tiny = SWA__TINY_V;
            call->kr->singles(&x, tile->v, v);
            tile->v = v;
        }
        tile->k = k;
        tile->k_type = tile->v_type = SWA_F32;
        if (g->dt == 0) continue;
        x = swa__formed_as(tile->tail_type, g->dt);
        x.turn = tile->turned;
        call->kr->singles(&x, tile->tail, tail);
        tile->tail = tail;
        tile->tail_type = SWA_F32;
    }
}

#if SWA__AVX512_DOT
/* The same for SWA__PAIRS, from what the tiles hold: f32, f16 or bf16, for q8 was widened. */
static void swa__stage_pairs(const swa__geo *g, const int range[4], const swa__room *room,
                             swa__block *b) {
    int t;

    for (t = range[0] / SWA__TILE; t * SWA__TILE < range[3]; t++) {
        swa__tile *tile = &b->tile[t];
        float *k = room->k + (size_t)t * SWA__TILE * (size_t)(g->dk + g->dt),
              *v = room->v + t * (SWA__TILE / 2) * g->dvp;
        const unsigned seen = swa__tile_seen(range, t);
        if (seen == 0) continue;
        /* V is part of K: both from one pass over the latents */
        if (g->v_in_k) swa__latent_pairs(g, tile->k_type, seen, tile->k, k, v);
        else {
            swa__to_pairs(tile->v_type, SWA__TILE, seen, (size_t)g->dvp, SWA__TINY_V, tile->v, v);
            swa__to_pairs(tile->k_type, g->dk, 0xffffu, SWA__TILE, SWA__TINY_QK, tile->k, k);
        }
        tile->k = k;
        tile->v = v;
        if (g->dt == 0) continue;
        k += SWA__TILE * g->dk;
        swa__to_pairs(tile->tail_type, g->dt, 0xffffu, SWA__TILE, SWA__TINY_QK, tile->tail, k);
        tile->tail = k;
    }
}
#endif
#if SWA__AVX2 || SWA__AVX512
/* Few rows' p.v in bf16 takes whole tiles: V of those that are not seen whole, at the edges of what
   is seen, is moved, with zeros for keys that nobody sees. K is multiplied where it lies, whatever
   it holds there. In the order of tiles scales are multiplied in: what has some was staged. */
static void swa__stage_edges(const swa__geo *g, const int range[4], const swa__room *room,
                             swa__block *b) {
    int t, i, edge;

    for (i = 0; g->form == SWA__TILE_SINGLES && i < 4; i += 2)
        for (t = range[i] / SWA__TILE; t * SWA__TILE < range[i + 1]; t++) {
            swa__tile *tile = &b->tile[t];
            const unsigned seen = swa__tile_seen(range, t);
            /* an empty range may lie within a tile that nobody has staged */
            if (seen == 0) continue;
            /* slots in place whose tiles begin off the keys' grid are floats, and tile t of K may
               not be there */
            if (b->shift == 0 && tile->k_scale != NULL)
                swa__tile_scaled(g->dk, &tile->k_scale, (float *)(uintptr_t)tile->k);
            if (tile->v_scale == NULL) continue;
            swa__values_scaled(seen, g->dvp, tile->v_scale, (float *)(uintptr_t)tile->v);
            tile->v_scale = NULL;
        }
    for (edge = 0; edge < 4; edge++) {
        const int at = (range[edge] - edge % 2) / SWA__TILE;
        const unsigned seen = swa__tile_seen(range, at);
        swa__tile *tile;
        char *to = (char *)(room->v + at * SWA__TILE * g->dvp);
        const char *from;
        size_t size, row;
        if (seen == 0 || seen == 0xffffu) continue;
        tile = &b->tile[at];
        from = (const char *)tile->v;
        size = swa__type_size(tile->v_type);
        row = (size_t)g->dvp * size;
        tile->v = to;
        for (i = 0; i < SWA__TILE; i++, to += row, from += tile->v_token * (int64_t)size)
            if ((seen >> i & 1) == 0) memset(to, 0, row);
            else if (to != from) memcpy(to, from, row);
        tile->v_token = g->dvp;
    }
}
#endif
#if SWA__AMX
/* The same for Intel's tiles: K or a tail of a tile of keys, made of what it holds. Of bf16 at once,
   but 32 dims one of which is too small, and of other types, by way of pairs. v not NULL: there
   are such dims of V too, whose half of the rows it is. */
static void swa__stage_keys(int dims, int type, const char *src, float *pairs, float *to,
                            float *v) {
    const int each = type == SWA_BF16 ? SWA__SUMMED : dims, tile = SWA__TILE * SWA__TILE;
    int d = 0, at;

    if (type == SWA_BF16_TILE) return;   /* made of rows already: swa__rows_in */
    for (; d < dims; d += each) {
        if (type == SWA_BF16)
            d = dims - SWA__SUMMED * swa__amx_turn((dims - d) / SWA__SUMMED, src + d * 32,
                                                   src + (d + 16) * 32, 32, 1024,
                                                   SWA__TINY_QK, to + d / SWA__SUMMED * tile);
        if (d == dims) return;
        if (v != NULL) swa__amx_latents(type, each, 0xffffu, src + d * 32, v + d * SWA__TILE);
        swa__to_pairs(type, each, 0xffffu, SWA__TILE, SWA__TINY_QK, src + d * 32, pairs);
        for (at = 0; at < each; at += SWA__SUMMED)
            swa__amx_transpose(SWA__TILE, pairs + at * SWA__TILE / 2, SWA__TILE, 0,
                               to + (d + at) / SWA__SUMMED * tile);
    }
}

/* V of two tiles, one bundle of 32 keys, both halves of which are written: keys that are not staged
   are zeros. It comes from its own rows, times their scales, or from K, which gets its own here,
   before that is made. */
static void swa__stage_values(const swa__geo *g, const unsigned seen[2], swa__tile *two,
                              float *pairs, float *v) {
    const size_t ld = (size_t)g->dvp, half = SWA__TILE / 2 * ld;
    int i, d;

    if (!g->v_in_k && (seen[0] & seen[1]) == 0xffffu && two[0].v_type == SWA_BF16
        && two[1].v_type == SWA_BF16
        && swa__amx_turn(g->dvp / SWA__TILE, (const char *)two[0].v, (const char *)two[1].v, 2 * ld,
                         32, SWA__TINY_V, v) == 0)
        return;
    for (i = 0; i < 2; i++) {
        swa__tile *x = &two[i];
        float *half_of = pairs + (size_t)i * half;
        if (g->v_in_k && seen[i] != 0) {
            swa__tile_scaled(g->dk, &x->k_scale, (float *)(uintptr_t)x->k);
            swa__amx_latents(x->k_type, g->dvp, seen[i], x->k, v + i * 8);
        } else if (g->v_in_k) {
            for (d = 0; d < g->dvp; d++) memset(v + d * SWA__TILE + i * 8, 0, 32);
        } else if (seen[i] == 0) memset(half_of, 0, half * sizeof *half_of);
        else if (x->v_scale != NULL)
            swa__scaled_pairs(x->v_type, seen[i], ld, x->v_scale, x->v, half_of);
        else swa__to_pairs(x->v_type, SWA__TILE, seen[i], ld, SWA__TINY_V, x->v, half_of);
    }
    if (!g->v_in_k) swa__amx_transpose(g->dvp, pairs, ld, SWA__TILE * SWA__TILE, v);
}

/* V and K of its dims of two tiles of latents that are seen whole, in bf16: some dims after others,
   while they are in L1. Returns how many dims of K are made: 0 of other tiles. */
static int swa__stage_latents(const swa__geo *g, const unsigned seen[2], const swa__tile *two,
                              float *pairs, float *k, float *v) {
    int d, i, n;

    if (!g->v_in_k || g->dvp % SWA__SUMMED != 0 || (seen[0] & seen[1]) != 0xffffu
        || two[0].k_type != SWA_BF16 || two[1].k_type != SWA_BF16)
        return 0;
    for (d = 0; d < g->dvp; d += n) {
        const char *const at[2] = { (const char *)two[0].k + d * 32,
                                    (const char *)two[1].k + d * 32 };
        n = swa__min(64, g->dvp - d);
        swa__amx_join(n, at[0], at[1], v + d * SWA__TILE);
        for (i = 0; i < 2; i++)
            swa__stage_keys(n, SWA_BF16, at[i], pairs, k + i * SWA__TILE * (g->dk + g->dt) + d * 8,
                            v + d * SWA__TILE + i * 8);
    }
    return d;
}

static void swa__stage_amx(const swa__geo *g, const int range[4], const swa__room *room,
                           swa__block *b) {
    int t, from = 0;

    for (t = range[0] / SWA__SUMMED * 2; t * SWA__TILE < range[3] || t % 2 != 0; t++) {
        swa__tile *tile = &b->tile[t];
        const unsigned seen[2] = { swa__tile_seen(range, t), swa__tile_seen(range, t | 1) };
        float *k = room->k + (size_t)t * SWA__TILE * (size_t)(g->dk + g->dt),
              *v = room->v + t / 2 * SWA__TILE * g->dvp;

        /* both tiles' V before K */
        if (t % 2 == 0) {
            from = swa__stage_latents(g, seen, tile, room->row, k, v);
            if (from == 0) swa__stage_values(g, seen, tile, room->row, v);
        }
        tile->v_scale = NULL;            /* is in V now */
        tile->v = v;
        if (seen[0] == 0) continue;
        swa__tile_scaled(g->dk, &tile->k_scale, (float *)(uintptr_t)tile->k);
        swa__stage_keys(g->dk - from, tile->k_type, (const char *)tile->k + from * 32, room->row,
                        k + from * 8, NULL);
        tile->k = k;
        if (g->dt == 0) continue;
        k += SWA__TILE * g->dk;
        swa__tile_scaled(g->dt, &tile->tail_scale, (float *)(uintptr_t)tile->tail);
        swa__stage_keys(g->dt, tile->tail_type, (const char *)tile->tail, room->row, k, NULL);
        tile->tail = k;
    }
}
#endif
#endif /* SWA__BF16 */

/* The blocks that some tokens touch, as a list: n of them, the sinks' from [0, sinks), then the
   window's from [lo, hi), in numbers of blocks. Those without a key are not in it: between two
   segments any number of them may lie.

       block       0     1     2     3     4     5     6     7
       keys        #     #     #     #     .     #     #     #       . between two segments
                   |     |           |                             |
                   0     sinks       lo                            hi      n = 5: 0, 3, 5, 6, 7

   It is walked by block_from, from one block to the next, and has no memory of its own. */
typedef struct { int64_t sinks, lo, hi; int n; } swa__blocks;

/* One run of queries and the keys it may see. Made by swa__job_make, then only read. */
typedef struct {
    const swa__call *call;
    swa_window window;      /* with the run's prefix                                              */
    int64_t pos, row;       /* first query's position and packed row                              */
    int n, rows;            /* queries; rows of a KV head                                         */
    const int32_t *parents; /* [n] the run is a tree: segments hold row i as position pos + i,
                               and keys_to is where its first node's block begins; or NULL        */
    int few;                /* few rows: which shape runs                                         */
    swa__geo geo;
    swa__keys keys;
    int64_t keys_from, keys_to;          /* positions between which segments lie                  */
    swa__blocks all;                     /* those that any of its tokens touches                  */
    int heads, woven;                    /* KV heads that may share a unit, and be woven          */
    /* of a ring's job: three segments at the most and the new rows; all slots, and those rows */
    swa_kv kv[4];
    swa__source ring, fresh;
} swa__job;

/* ---- window: what tokens see of the keys that are there ---- */

/* What token t sees through the window, cut to where keys are. */
static void swa__window_of(const swa__job *j, int t, int64_t *lo, int64_t *hi) {
    swa__bounds(&j->window, j->pos + t, lo, hi);
    /* lo <= hi in any case: a token that sees no key that is there has an empty interval */
    *lo = swa__min64(swa__max64(*lo, j->keys_from), j->keys_to);
    *hi = swa__max64(*lo, swa__min64(*hi, j->keys_to));
}

/* The same for node t of a tree, but for where keys end: hi - 1 is its position. */
SWA__NOINLINE void swa__node_window(const swa__job *j, int32_t t, int64_t *lo, int64_t *hi) {
    swa__bounds(&j->window, j->pos + swa__depth(j->parents, t), lo, hi);
    *lo = swa__max64(*lo, j->keys_from);
}

/* The end of the pinned sinks that token t sees; 0 if there are none. */
static int64_t swa__sinks_of(const swa__job *j, int64_t t) {
    int64_t end = swa__min64(swa__min64(j->window.n_sink, j->pos + t + 1), j->keys_to);
    return end > j->keys_from ? end : 0;
}

/* How many keys token t sees through the window; sinks are not counted. */
static int64_t swa__keys_seen(const swa__job *j, int t) {
    int64_t lo, hi;
    swa__window_of(j, t, &lo, &hi);
    return hi - lo;
}

/* How many blocks the positions [0, pos) touch; pos + 255 could overflow. */
static int64_t swa__blocks_until(int64_t pos) { return pos / SWA_BLOCK + (pos % SWA_BLOCK != 0); }

/* A distance from the block's start, as a key of it: before it 0, behind it all 256. */
static int swa__clip(int64_t x) { return x < 0 ? 0 : x > SWA_BLOCK ? SWA_BLOCK : (int)x; }

/* How many of the blocks [lo, hi) hold a key. lo goes along, so that a block in which two segments
   meet counts once. */
static int swa__blocks_filled(const swa__keys *keys, int64_t lo, int64_t hi) {
    int64_t n = 0;
    int i;

    for (i = swa__find(keys, lo * SWA_BLOCK); i < keys->n_kv && keys->kv[i].pos / SWA_BLOCK < hi;
         i++) {
        int64_t end = swa__min64(swa__blocks_until(keys->kv[i].pos + keys->kv[i].n), hi);
        if (keys->kv[i].n == 0) continue;
        lo = swa__max64(lo, keys->kv[i].pos / SWA_BLOCK);
        if (lo < end) n += end - lo;
        lo = swa__max64(lo, end);
    }
    return (int)n;
}

/* The list for tokens first..last: no bound moves back, so the first one has the lowest key, the
   last one the end, and most sinks. A block with both counts as the sinks'. */
static swa__blocks swa__blocks_of(const swa__job *j, int first, int last) {
    swa__blocks b;
    int64_t lo, hi, none;

    swa__window_of(j, last, &none, &hi);
    swa__window_of(j, first, &lo, &none);
    b.sinks = swa__blocks_until(swa__sinks_of(j, last));
    b.lo = swa__max64(lo / SWA_BLOCK, b.sinks);
    b.hi = swa__max64(hi > lo ? swa__blocks_until(hi) : b.lo, b.lo);
    b.n = swa__blocks_filled(&j->keys, 0, b.sinks) + swa__blocks_filled(&j->keys, b.lo, b.hi);
    return b;
}

/* The first block of the list from `at` on; hi after the last. */
SWA__NOINLINE int64_t swa__block_from(const swa__keys *keys, const swa__blocks *b, int64_t at) {
    for (;;) {
        int64_t next = b->hi;
        int i;
        /* between the two stretches of blocks nothing is seen */
        if (at >= b->sinks && at < b->lo) at = b->lo;
        if (at >= b->hi) return b->hi;
        /* the block of the next key that there is: perhaps this one, perhaps one in the gap or
           behind the end, which the next turn finds */
        for (i = swa__find(keys, at * SWA_BLOCK); i < keys->n_kv && keys->kv[i].n == 0; i++) {}
        if (i < keys->n_kv) next = swa__max64(at, keys->kv[i].pos / SWA_BLOCK);
        if (next == at) return at;
        at = next;
    }
}

/* What a run's queries see of a layer: its span of tokens that see each other comes on top. */
static swa_window swa__run_window(const swa__layer *l, const swa_run *run) {
    swa_window w = l->window;
    w.prefix = run->prefix;
    w.prefix_first = run->prefix == 0 ? 0 : run->prefix_first > 0 ? run->prefix_first : run->pos;
    return w;
}

/* The run of queries of a ring's job; of no token if the call is not for it. The segments of its
   keys: the ring's, then the step's new rows, if the ring is not to hold them yet. Of those only
   positions are needed, and slots: where they lie is in base. */
static void swa__job_run(const swa__call *call, const swa_run *run, swa__job *j) {
    const swa__layer *l = swa__layer_of(call->c, call->layer);
    const int fresh = call->fresh[SWA__K].p != NULL;
    swa__span span[3];
    int i, n;

    j->pos = run->pos;
    j->row = run->row;
    j->n = call->ops == NULL || call->ops->takes(call->ops->user, run) ? run->n : 0;
    j->parents = run->parents;
    j->window = swa__run_window(l, run);

    /* the ring from the first query's lowest key on, also what begin has written off: it is there
       until this layer stores, and where that came first swa__past_check has asked for room. Rows
       that are stored come from the ring too */
    n = swa__spans(l, swa__seq_of(call->c, run->seq), swa__lowest(&j->window, run->pos),
                   fresh ? run->pos : run->pos + run->n, span);
    for (i = 0; i < n; i++) {
        j->kv[i].pos = span[i].pos;
        j->kv[i].n = (int32_t)span[i].n;
        j->kv[i].layout_ = 1 + (int32_t)span[i].slot;
    }
    if (fresh) {
        j->kv[n].pos = run->pos;
        j->kv[n].n = run->n;
        j->kv[n++].layout_ = 0;
    }
    j->keys.kv = j->kv;
    j->keys.n_kv = n;

    /* where KV head 0 begins, and in the new rows this run */
    j->ring.ring = 1;
    j->fresh.ring = 0;
    swa__ring_operands(call->c, call->layer, run->seq, j->ring.x);
    for (i = 0; i < SWA__OPERANDS; i++) {
        j->fresh.x[i] = call->fresh[i];
        if (fresh && j->fresh.x[i].dim > 0) j->fresh.x[i].p += run->row * j->fresh.x[i].row;
    }
    j->keys.base[0] = &j->fresh;
    j->keys.base[1] = &j->ring;
}

/* The queries of a stateless call, and its segments, which are the caller's: each has types and
   places of its own, so there is no base. */
static void swa__job_rows(const swa__call *call, swa__job *j) {
    const swa_rows *rows = call->rows;

    j->pos = rows->pos;
    j->row = 0;
    j->n = rows->n_tokens;
    j->parents = NULL;
    j->window = rows->window;
    j->keys.kv = call->kv;
    j->keys.n_kv = call->n_kv;
}

/* Whether few rows of bf16 products round numbers of K and V themselves: with AVX2 and AVX-512, in
   SWA_BF16 unless pairs are fast, in the order of tiles up to 8 rows where it could go by Intel's. */
static int swa__rounds(const swa__call *call, int rows) {
    const swa__geo *g = &call->geo;
    if (!SWA__ROUNDS || !swa__is_avx(call->kr)) return 0;
    if (g->form == SWA__PLAIN || g->form == SWA__PAIRS || (g->form == SWA__TILE_AMX && rows > 8))
        return 0;
    return g->dk % 4 == 0 && swa__tail_dims(g) == 0;
}

/* Which kernel a job's rows take, and in what form it wants the keys. Few rows multiply in f32, or
   on rounded numbers: rounded in registers, or by the instruction for pairs where dims fill its
   kernel, else pair by pair in f32. What has no such kernel is many rows, however few they are: V
   in K, whose dims lie 16 apart in a tile where lanes are dims; keys that were gathered; the order
   of tiles, unless rounded. */
static void swa__job_kernel(const swa__call *call, swa__job *j) {
    const int gathered = swa__listed(call) || j->parents != NULL;

    j->rows = j->n * call->group;
    j->few = j->rows < SWA__FEW && !j->geo.v_in_k && !gathered;
    j->geo.rounds = j->few && swa__rounds(call, j->rows);
    j->few = j->few && (j->geo.rounds || j->geo.form < SWA__TILE_SINGLES);
    if (j->geo.rounds && j->geo.form > SWA__TILE_SINGLES) j->geo.form = SWA__TILE_SINGLES;
    if (j->few && swa__form_of(&j->geo) == SWA__PAIRS
        && (call->kr->many[SWA__PAIRS][1] == NULL || j->geo.dk % 2 != 0 || j->geo.dvp % 64 != 0
            || swa__tail_dims(&j->geo) > 0))
        j->geo.form = SWA__SINGLES;
    j->keys.as_f32 = !j->few;
    j->keys.late = 0;
    /* the other two orders of tiles are made of f32 */
    j->keys.form = swa__form_of(&j->geo);
    if (j->keys.form == SWA__TILE_SINGLES || j->keys.form == SWA__TILE_PAIRS)
        j->keys.form = SWA__PLAIN;
    /* read as few rows by pairs are */
    if (j->geo.rounds) j->keys.form = SWA__PAIRS;
    /* few rows take int8 as it lies in the ring */
    j->keys.dots = j->geo.dots && !j->few && !j->geo.v_in_k && j->geo.dk >= 4 && !gathered;
}

/* How many KV heads share a unit: rows and tiles of all of them are one block. A few keys are less
   work than what goes on around them, which is done once then; and q.k's chains, of which a tile is
   too few to keep the units busy, overlap with the next head's: 8 rows are enough for that. There are
   16 tiles; a head off the grid has one more than it sees. */
static int swa__job_heads(const swa__job *j) {
    const swa_shape *s = &j->call->shape;
    int64_t lo, hi, none, pos;
    int from, tiles, heads;

    if (!j->few || j->all.n != 1 || s->n_kv_heads == 1 || swa__form_of(&j->geo) != SWA__PLAIN
        || swa__expands(j->call))
        return 1;
    pos = swa__block_from(&j->keys, &j->all, 0) * SWA_BLOCK;
    swa__window_of(j, 0, &lo, &none);
    swa__window_of(j, j->n - 1, &none, &hi);
    if (j->all.sinks > 0) lo = j->keys_from;
    hi = swa__max64(hi, swa__sinks_of(j, j->n - 1));
    from = swa__clip(lo - pos) / SWA__TILE;
    tiles = (swa__clip(hi - pos) + SWA__TILE - 1) / SWA__TILE + 1 - from;
    heads = swa__min(8 / j->rows, SWA__TOGETHER / (s->head_dim + s->tail_dim));
    heads = swa__min(heads, (SWA_BLOCK / SWA__TILE - from) / tiles);
    return heads > 1 ? heads : 1;
}

/* Rows of a strand, see swa__woven_run: a power of two, so that none lies across two s. */
static int swa__strand_rows(int rows) {
    int n = 1;
    while (n < rows) n *= 2;
    return n;
}

/* How many KV heads a unit may weave, see swa__woven_run: on a CPU that gains by it, where few rows
   meet rows of the caller's that lie among those of other heads, 2 KB and more from one token to the
   next (in shorter ones neighbours share what the CPU fetches), and K is more than 2 MB (what is in
   the caches already takes up to 1.1 times as long). What is in s for each head has to fit behind
   the q of all. Not beside spans of a ring: K off the grid moves whole rows of scores, which slices
   have in part; and V's scales in q8 are one head's, while p of all heads is made between K and V. */
static int swa__job_woven(const swa__job *j) {
    const swa_shape *s = &j->call->shape;
    const swa_kv *first = NULL;
    swa__source src;
    int64_t row;
    int i, each, heads, sums;

    if (!swa__likes_weaving() || j->call->rows == NULL || j->call->a.compute == SWA_Q8
        || swa__form_of(&j->geo) != SWA__PLAIN || !j->few || j->heads > 1 || j->all.n == 0
        || swa__expands(j->call))
        return 1;
    /* an empty segment says nothing, and has not been checked */
    for (i = j->keys.n_kv - 1; i >= 0; i--) {
        if (j->keys.kv[i].n == 0) continue;
        if (j->keys.kv[i].layout_ != 0) return 1;
        first = &j->keys.kv[i];
    }
    if (first == NULL) return 1;
    swa__source_make(&j->keys, first, &src);
    row = src.x[SWA__K].row;
    if (row < 2048 || row <= (2 << 20) / SWA_BLOCK / j->all.n
        || row < 2 * src.x[SWA__K].dim * (int64_t)src.x[SWA__K].size)
        return 1;
    each = swa__strand_rows(j->rows);
    heads = swa__min(swa__min(s->n_kv_heads, SWA__STRANDS), SWA__WOVEN / each);
    for (; heads > 1; heads--) {
        sums = (heads * each + SWA__FEW - 1) / SWA__FEW * (2 * SWA__FEW * SWA_BLOCK);
        if ((swa__unit_rows(s) - heads * each) * (s->head_dim + s->tail_dim) >= sums) break;
    }
    return heads;
}

/* Whether few rows are multiplied as whole fours, the last row again. One pass over K and V for four
   rows is shorter than two for 2 + 1, and one for eight, where there is one (swa__few_most), than
   those for 5 to 7. Skylake's time by that of steps of 4, 2 and 1: AVX-512 7 rows 0.64 to 0.76, 3
   rows 0.79, 5 and 6 rows 0.76 to 0.91, 13 and 14 rows 0.89 to 0.94, but 9 and 10 rows 1.0 to 1.06;
   AVX2 3 rows 0.80 to 0.85, 7 to 15 rows 0.91 to 0.96, but 5 and 6 rows 1.07 to 1.19. Zen 5's is
   the same within 0.05; of q8, which has more to do for each product, 5, 6 and 13 rows by eights took
   1.05 to 1.13 there, by fours and then one or two they do not. */
static int swa__by_fours(const swa__job *j) {
    const swa__geo *g = &j->geo;
    const int rows = j->rows % 8,
              eights = SWA__AVX512 && !SWA__SMALL && j->call->kr == swa__kernels_of(SWA_ISA_AVX512)
                    && swa__tail_dims(g) == 0 && g->dvp % 32 == 0
                    && !SWA__IS_Q8(j->keys.round[SWA__K]);

    return swa__is_avx(j->call->kr) && j->few && j->heads == 1
        && (rows % 4 == 3 || (rows > 4 && eights));
}

/* Job i of a call: its queries and segments, its kernel, its blocks. */
static void swa__job_make(const swa__call *call, int i, swa__job *j) {
    j->call = call;
    j->geo = call->geo;
    j->keys = call->keys;
    if (call->rows != NULL) swa__job_rows(call, j);
    else swa__job_run(call, &call->runs[i], j);
    swa__job_kernel(call, j);

    j->keys_from = j->keys_to = 0;
    if (j->keys.n_kv > 0) {
        const swa_kv *last = &j->keys.kv[j->keys.n_kv - 1];
        j->keys_from = j->keys.kv[0].pos;
        /* a tree's own block and what follows is gathered by swa__unit_tree */
        j->keys_to = j->parents != NULL ? j->pos / SWA_BLOCK * SWA_BLOCK : last->pos + last->n;
    }
    memset(&j->all, 0, sizeof j->all);
    if (j->n > 0) j->all = swa__blocks_of(j, 0, j->n - 1);
    j->heads = swa__job_heads(j);
    j->geo.fours = swa__by_fours(j);
    j->woven = swa__job_woven(j);
    j->keys.in_order = j->woven > 1;
}

/* ---- rows: q in, bounds, results out ---- */

/* Rows r0..r0+n-1 of a KV head: row r is token r / group, head h*group + r % group. Of several KV
   heads the same rows, head after head. */
typedef struct {
    int h, heads, r0, n;                 /* the first KV head, how many; rows of each             */
    int blocks;                          /* how many of the list, from block number `at` on       */
    int64_t at;
    swa__blocks list;
    float *partial;                      /* split: where row r0's result goes; else NULL          */
    size_t partial_row;                  /* floats from row to row there                          */
} swa__unit;

/* Where n rows of KV head h from row r on lie, in numbers, by the strides of token and head: one
   division for them all. */
static void swa__places(const swa__job *j, int64_t token, int64_t head, int h, int r, int n,
                        int64_t *at) {
    const int group = j->call->group;
    int64_t t = j->row + r / group;
    int i, g = r % group;

    SWA__ROLLED for (i = 0; i < n; i++, g++) {
        if (g == group) {
            g = 0;
            t++;
        }
        at[i] = t * token + ((int64_t)h * group + g) * head;
    }
}

/* n rows of KV head h from row r on, for nr places: those that are left get the last one again. */
static void swa__q_rows(const swa__job *j, const swa_in *in, int h, int r, int n, int nr,
                        const void **src) {
    int64_t at[SWA__PANEL];
    int i;
    swa__places(j, in->token, in->head, h, r, n, at);
    SWA__ROLLED for (i = 0; i < nr; i++) src[i] = in->p + at[i < n ? i : n - 1];
}

static int swa__has_q_sink(const swa__job *j) {
    return j->call->a.q_sink.p != NULL && j->window.n_sink > 0;
}

/* Kernels of panels for a form: whole, and half ones or NULL. */
static swa__many *const *swa__many_of(const swa__job *j) {
    const int form = swa__form_of(&j->geo);
    return j->call->kr->many[form < SWA__FORMS ? form : SWA__TILE_SINGLES];
}

/* Rows of the panel that takes the first of `rows` rows: a half one, where there is one, for the
   last few; and where two of them hold no more than a whole one and what it would leave:

       rows, of AVX2     24    32         56              128: MLA
       panels            24    16, 16     16, 24, 16      16, 24, 24, 24, 24, 16          */
static int swa__panel_rows(const swa__job *j, int rows) {
    const int nr = j->call->kr->nr, left = (rows - 1) % nr + 1;
    const int halves = rows <= SWA__HALF || left <= 2 * SWA__HALF - nr;
    return halves && swa__many_of(j)[1] != NULL ? SWA__HALF : nr;
}

/* n rows as q8 will have them: integers into row [n][dim to 16], scales times the call's. */
static void swa__q_integers(const swa__call *call, const void **src, int n, float *row,
                            float *scale) {
    const int ld = (int)swa__pad16(call->shape.head_dim);
    int i;

    for (i = 0; i < n; i++) {
        /* each by itself: a row's bits must not depend on those that it comes with */
        call->kr->round(SWA_Q8, src[i], SWA_F32, call->shape.head_dim, row + i * ld, &scale[i]);
        scale[i] *= call->qscale;
        src[i] = row + i * ld;
    }
}

/* The dims from d on of R rows as [dims][R], four at a time, which compilers make vectors of. */
SWA__INLINE void swa__pack_rows(int R, const void *const *src, int d, int dims, float mul,
                                float *SWA__RESTRICT to) {
    const float *const *x = (const float *const *)src;
    const float *a = x[0], *b = x[R > 1], *c = x[R > 2 ? 2 : 0], *e = x[R > 2 ? 3 : 0];
    int i;

    for (to += d * R; d + 4 <= dims; d += 4, to += 4 * R)
        for (i = 0; i < 4; i++) {
            to[R * i] = a[d + i] * mul;
            if (R > 1) to[R * i + 1] = b[d + i] * mul;
            if (R > 2) to[R * i + 2] = c[d + i] * mul;
            if (R > 2) to[R * i + 3] = e[d + i] * mul;
        }
    SWA__ROLLED for (; d < dims; d++, to += R)
        for (i = 0; i < R; i++) to[i] = x[i][d] * mul;
}

/* The R rows of a step, [dims][R]. */
static void swa__pack_step(const swa__kernels *kr, const void *const *src, int R, int dims,
                           float mul, float *to) {
    const int d = kr->step != NULL ? kr->step(R, src, dims, mul, to) : 0;

    if (d == dims) return;
    if (R == 4) swa__pack_rows(4, src, d, dims, mul, to);
    else if (R == 2) swa__pack_rows(2, src, d, dims, mul, to);
    else swa__pack_rows(1, src, d, dims, mul, to);
}

/* q in q8 beside q: sums of `step` rows, then four int8 at a time. */
static void swa__pack_dots(const void *const *src, int step, int dims, int32_t *sum) {
    int i, d;

    /* q is 0 behind the last dim, so that it does not matter what K has there */
    memset(sum, 0, (size_t)(step * ((dims + 3) / 4 + 1)) * sizeof *sum);
    for (i = 0; i < step; i++) {
        int8_t *four = (int8_t *)(sum + step + i);
        for (d = 0; d < dims; d++) {
            const int8_t x = (int8_t)((const float *)src[i])[d];
            four[d / 4 * step * 4 + d % 4] = x;
            sum[i] += x;
        }
    }
}

#if SWA__BF16
/* q [dims][ld], in place, as the form takes it. */
static void swa__q_to_form(const swa__kernels *kr, int form, int dims, int ld, float *q) {
    swa__formed x = swa__formed_as(SWA_F32, dims);

    x.ld = ld;
    if (form == SWA__SINGLES) kr->singles(&x, q, q);
    else kr->to_form(form, dims, 0xffffu, ld, SWA__TINY_QK, q, q);
}

/* The same of few rows, SWA__SINGLES: columns of one, where chains run over the dims, so that dims
   change places by twos. Fewer than a vector's lanes: number by number. */
SWA__NOINLINE void swa__q_singles(int dims, int step, float *q) {
    const float most = 3.38953139e38f;
    int i, j;

    for (i = 0; i < dims * step; i++) {
        float x = q[i] > -most ? q[i] : -most, y;
        x = x < most ? x : most;
        y = swa__f32_from_bf16(swa__bf16_from_f32(x));
        q[i] = (x < 0.0f ? -x : x) >= SWA__TINY_QK ? y : 0.0f;
    }
    for (i = 0; i + 1 < dims; i += 2)
        for (j = i * step; j < (i + 1) * step; j++) {
            const float first = q[j];
            q[j] = q[j + step];
            q[j + step] = first;
        }
}
#endif

/* q of few rows, of KV head h of the unit's: steps of R, [dk+dt][R], one behind the other, and behind
   those of the heads before. */
static void swa__pack_few(const swa__job *j, const swa__unit *u, int h, const swa_in in[2],
                          float *row, float *q, float *scale) {
    const int dk = j->geo.dk, dt = swa__tail_dims(&j->geo), q8 = j->call->a.compute == SWA_Q8;
    const swa__kernels *kr = j->call->kr;
    const void *src[4];
    const int first = h * u->n;
    float *to = q + first * (dk + dt);
    int r, n, step;

    for (r = 0; r < u->n; r += step, to += (dk + dt) * step) {
        step = j->geo.rounds || j->geo.fours ? 4 : swa__few_step(u->n - r);
        n = swa__min(step, u->n - r);
        swa__q_rows(j, &in[0], u->h + h, u->r0 + r, n, step, src);
        if (q8) {
            swa__q_integers(j->call, src, step, row, scale + first + r);
            swa__pack_dots(src, step, dk, swa__few_integers(&j->geo, q, first + r));
        }
        /* integers stay integers: the call's factor is in their scale */
        swa__pack_step(kr, src, step, dk, q8 ? 1.0f : j->call->qscale, to);
        if (dt > 0) {
            swa__q_rows(j, &in[1], u->h + h, u->r0 + r, n, step, src);
            swa__pack_step(kr, src, step, dt, j->call->qscale, to + dk * step);
        }
#if SWA__BF16
        if (j->geo.form == SWA__PLAIN) continue;
        if (j->geo.rounds) {             /* number by number, in any order */
            swa__q_to_form(kr, SWA__TILE_SINGLES, dk / 4, 16, to);
            continue;
        }
        swa__q_singles(dk, step, to);
        swa__q_singles(dt, step, to + dk * step);
#endif
    }
}

/* q of a unit's rows [r, end), scaled and transposed: few rows (all) in their steps, many as
   panels, where rows past the end repeat the last row. sink: of the sinks' own q; place: the row of
   the scratch that row r has. */
static void swa__pack_q(const swa__job *j, const swa__unit *u, const swa__scratch *w, int sink,
                        int r, int end, int place) {
    const swa_attn *a = &j->call->a;
    const swa_in in[2] = { sink ? a->q_sink : a->q, sink ? a->q_sink_tail : a->q_tail };
    float *q = sink ? w->q_sink : w->q, *scale = w->q_scale + (sink ? w->rows : 0);
    const int dk = j->geo.dk, dt = swa__tail_dims(&j->geo), form = swa__form_of(&j->geo),
              q8 = j->call->a.compute == SWA_Q8;
    float *row = dk <= 256 ? w->s : w->room.k; /* free between panels, or until the first block;
                                                  one is large enough                             */
    const swa__kernels *kr = j->call->kr;
    const void *src[SWA__PANEL];
    int n, nr;

    if (j->few && form != SWA__PAIRS) {
        for (n = 0; n < u->heads; n++) swa__pack_few(j, u, n, in, row, q, scale);
        return;
    }

    for (q += (size_t)place * (size_t)(dk + dt); r < end; r += nr, q += (dk + dt) * nr) {
        float *to;
        nr = swa__panel_rows(j, end - r);
        to = q + swa__stored(form, dk) * nr;
        n = swa__min(end - r, nr);

        /* K's part of the rows, then (below) the tail's behind it; idle places of the panel get the
           last row again, whose results nobody writes */
        swa__q_rows(j, &in[0], u->h, u->r0 + r, n, nr, src);
        if (q8) swa__q_integers(j->call, src, nr, row, scale + r);
        kr->pack(src, SWA_F32, nr, dk, q8 ? 1.0f : j->call->qscale, q);
#if SWA__BF16
        if (form != SWA__PLAIN) swa__q_to_form(kr, form, dk, nr, q);
#endif
#if SWA__DOTS
        if (j->keys.dots) kr->to_dots(SWA_F32, dk, nr, 0, q, q);
#endif

        if (dt == 0) continue;
        swa__q_rows(j, &in[1], u->h, u->r0 + r, n, nr, src);
        kr->pack(src, SWA_F32, nr, dt, j->call->qscale, to);
#if SWA__BF16
        if (form != SWA__PLAIN) swa__q_to_form(kr, form, dt, nr, to);
#endif
    }
}

/* What rows [r, r+n) of the unit see of the block at pos, as intervals. Bounds rise with the token,
   so the first and the last one tell; but in a tree, whose tokens all see these blocks to the
   end.

       keys of the block      0         a     b                 c     d         256
       first row's token      .         |_______________________|     .         .
       last row's token       .         .     |_______________________|         .
       lo[1] = a   full_lo = b   full_hi = c   hi[1] = d

   Keys before a and from d on are not touched, and the window hides none of [b, c). */
static void swa__interval_of(const swa__job *j, const swa__unit *u, const swa__scratch *w, int r,
                             int n, int64_t pos, swa__sight *l) {
    const int group = j->call->group, t0 = u->r0 / group;
    const int first = (u->r0 + r) / group - t0, last = (u->r0 + r + n - 1) / group - t0;
    int64_t lo = w->lo[first], full_lo = w->lo[last];
    int t;

    for (t = first; j->parents != NULL && t <= last; t++) {
        lo = swa__min64(lo, w->lo[t]);
        full_lo = swa__max64(full_lo, w->lo[t]);
    }

    l->lo[1] = swa__clip(lo - pos);
    l->hi[1] = swa__clip(w->hi[last] - pos);
    l->full_lo = swa__clip(full_lo - pos);
    l->full_hi = swa__clip(w->hi[first] - pos);
    /* the sinks are one interval from the first key on; the last token sees the most of them */
    l->hi[0] = swa__clip(swa__sinks_of(j, t0 + last) - pos);
    l->lo[0] = l->hi[0] > 0 ? swa__clip(j->keys_from - pos) : 0;
}

/* Whether a key of the block at pos has a column of the bias, for any row from token t on. */
static int swa__bias_reaches(const swa__job *j, int t, int64_t pos) {
    const swa__geo *g = &j->geo;
    /* by distance the nearest key decides: the block's last, seen from the first token */
    if (g->by_distance)
        return j->pos + (j->parents != NULL ? 0 : t) - pos < g->bias_n + SWA_BLOCK - 1;
    return pos > g->bias_first - SWA_BLOCK && pos < g->bias_first + g->bias_n;
}

/* Where the scales of the rows from r on stand, if q is in q8. */
static void swa__q_scales(const swa__job *j, const swa__scratch *w, int r, swa__sight *l) {
    const swa_attn *a = &j->call->a;
    l->q_scale[0] = l->q_scale[1] = NULL;
    if (a->compute != SWA_Q8) return;
    l->q_scale[1] = w->q_scale + r;
    l->q_scale[0] = l->q_scale[1] + (a->q_sink.p != NULL ? w->rows : 0);
}

/* Row i of a panel, of packed row t and query head h: what its scores are modified with. */
static void swa__sight_mods(const swa__job *j, int64_t t, int h, int i, swa__sight *l) {
    const swa_attn *a = &j->call->a;
    if (!SWA__MODS) return;
    /* in base 2, as scores are when it is added */
    l->slope[i] = j->geo.alibi ? (float)(-(double)a->alibi[h] * SWA__LOG2E) : 0.0f;
    l->bias[i] = j->geo.bias ? a->bias + t * a->bias_token + h * a->bias_head : NULL;
}

/* Whether scores are modified at all; bias: whether one has a column among these keys. */
static int swa__modifies(const swa__job *j, int bias) {
    return SWA__MODS && (j->geo.softcap_log2 > 0.0f || j->geo.alibi || bias);
}

/* The other KV heads' rows see what the first one's do. */
static void swa__sight_heads(const swa__job *j, const swa__unit *u, swa__sight *l) {
    const int group = j->call->group;
    int i;

    for (i = u->n; i < u->n * u->heads; i++) {
        l->first[i] = l->first[i - u->n];
        l->last[i] = l->last[i - u->n];
        l->sink[i] = l->sink[i - u->n];
    }
    for (i = u->n; l->mods && i < u->n * u->heads; i++) {
        const int r = u->r0 + i % u->n;
        l->q[i] = l->q[i - u->n];
        swa__sight_mods(j, j->row + r / group, (u->h + i / u->n) * group + r % group, i, l);
    }
}

/* What rows [r, r+n) of the unit see of the block at pos: the intervals, and what each row needs to
   be masked and modified. */
static void swa__sight_make(const swa__job *j, const swa__unit *u, const swa__scratch *w, int r,
                            int n, int64_t pos, swa__sight *l) {
    const int group = j->call->group, t0 = u->r0 / group, from = u->h * group;
    /* of a panel: idle ones do as the last one does */
    const int rows = j->few ? n : j->call->kr->nr;
    float first = 0.0f, last = 0.0f, sink = 0.0f;
    int i, t = (u->r0 + r) / group, head = (u->r0 + r) % group;    /* of the group */

    swa__interval_of(j, u, w, r, n, pos, l);
    l->mods = swa__modifies(j, j->geo.bias && swa__bias_reaches(j, t, pos));
    swa__q_scales(j, w, r, l);

    if (!j->few && !l->mods && l->full_lo == 0 && l->full_hi == SWA_BLOCK && l->hi[0] == 0) {
        /* all rows see the whole block: masks are read only where keys are missing, so give them
           the full interval */
        for (i = 0; i < SWA__PANEL; i++) {
            l->first[i] = l->sink[i] = 0.0f;
            l->last[i] = (float)SWA_BLOCK;
        }
        return;
    }

    for (i = 0; i < rows; i++) {
        if (i == 0 || head == 0) {       /* what a token's rows share                             */
            first = (float)swa__clip(w->lo[t - t0] - pos);
            last = (float)swa__clip(w->hi[t - t0] - pos);
            /* a sink that the window shows as well is an ordinary key, and has its q */
            sink = (float)swa__clip(swa__min64(swa__sinks_of(j, t), w->lo[t - t0]) - pos);
        }
        l->first[i] = first;
        l->last[i] = last;
        l->sink[i] = sink;
        if (l->mods) {
            l->q[i] = (float)((j->parents != NULL ? w->hi[t - t0] - 1 : j->pos + t) - pos);
            swa__sight_mods(j, j->row + t, from + head, i, l);
        }
        /* the next head of the group, or the next token's first */
        if (i + 1 < n && ++head == group) {
            head = 0;
            t++;
        }
    }
    if (u->heads > 1) swa__sight_heads(j, u, l);
}

/* The learned logit is one more block without values: maximum the logit, sum 1; none (sum 0) if it
   is -inf. */
static float swa__sink_logit(float logit, float *m) {
    *m = SWA__NONE;
    /* by its bits: under -ffast-math a comparison with infinity may be left out */
    if ((swa__bits_of(logit) & 0xff800000u) == 0xff800000u) return 0.0f;
    *m = (float)((double)logit * SWA__LOG2E);
    return 1.0f;
}

static float swa__lse(float m, float l) {
    return l > 0.0f ? (float)((double)m * SWA__LN2 + log((double)l)) : swa__float_of(0xff800000u);
}

/* Whether rows give more than out. */
static int swa__more_out(const swa__job *j) {
    const swa_attn *a = &j->call->a;
    return a->lse != NULL || a->stat != NULL || a->sink_logits != NULL;
}

/* What row r of KV head h gives besides out. With stat, out stays unnormalised: l is 1. Returns 1
   if a sink logit, (mb, lb), is to be folded in before. */
static int swa__row_end(const swa__job *j, int h, int r, float m, float *l, float *mb, float *lb) {
    const swa_attn *a = &j->call->a;
    const int group = j->call->group;
    int64_t at;
    int head;

    if (!swa__more_out(j)) return 0;
    head = h * group + r % group;
    at = (j->row + r / group) * j->call->shape.n_heads + head;

    /* before the logit is folded in: lse is that of the keys alone */
    if (a->lse != NULL) a->lse[at] = swa__lse(m, *l);
    if (a->stat != NULL) {
        a->stat[2 * at] = m;
        a->stat[2 * at + 1] = *l;
        *l = 1.0f;
        return 0;
    }

    if (a->sink_logits == NULL) return 0;
    *lb = swa__sink_logit(a->sink_logits[head], mb);
    return 1;
}

/* Nothing seen yet. The maximum is finite, so that a fold needs no special case: -inf less -inf
   would be a NaN. */
SWA__NOINLINE void swa__rows_clear(int rows, float *m, float *l) {
    int i;
    for (i = 0; i < rows; i++) {
        m[i] = SWA__NONE;
        l[i] = 0.0f;
    }
}

/* n finished rows of each of some KV heads, from head h and row r0 on, o [heads][n][dvp], m, l at
   the start of the scratch, go out. */
static void swa__rows_out(const swa__job *j, int h, int heads, int r0, int n,
                          const swa__scratch *w) {
    const int dvp = j->geo.dvp;
    const swa_out *rows = &j->call->a.out;
    float *out[SWA__FEW], *zeros = w->room.row;
    int64_t at[SWA__FEW];
    int i, all = 0;

    if (j->call->a.sink_logits != NULL) memset(zeros, 0, (size_t)dvp * sizeof(float));
    for (; heads > 0; heads--, h++) {
        swa__places(j, rows->token, rows->head, h, r0, n, at);
        for (i = 0; i < n; i++, all++) {
            const swa__total to = { w->o + (size_t)all * (size_t)dvp, w->m + all, w->l + all };
            out[all] = rows->p + at[i];
            /* the logit goes in as a last block, whose o is zeros */
            if (swa__row_end(j, h, r0 + i, *to.m, to.l, w->mb, w->lb))
                j->call->kr->fold(1, dvp, &to, zeros, w->mb, w->lb);
        }
    }
    j->call->kr->finish(all, dvp, j->geo.dv, w->o, w->l, out);
}

#define SWA__IS_OUT (-1.0f)              /* in place of a sum: the panel is written               */
/* No block has reached these rows yet, so their o is undefined. */
static int swa__panel_empty(int rows, const float *m) {
    while (rows > 0 && m[rows - 1] <= SWA__NONE) rows--;
    return rows == 0;
}

/* A panel: o [dvp][nr]. */
static void swa__panel_clear(const swa__job *j, int nr, const swa__total *to) {
    memset(to->o, 0, (size_t)nr * (size_t)j->geo.dvp * sizeof(float));
    swa__rows_clear(nr, to->m, to->l);
}

/* Its results go out, o from row `place` of the scratch, with a sink logit folded in; l of its first
   row says so. */
static void swa__panel_out(const swa__job *j, const swa__unit *u, int r, int n, int place,
                           const swa__scratch *w) {
    const int nr = swa__panel_rows(j, n), dv = j->geo.dv;
    const swa__total to = { w->o + (size_t)place * (size_t)j->geo.dvp, w->m + r, w->l + r };
    const swa_out *rows = &j->call->a.out;
    float *out[SWA__PANEL];
    int64_t at[SWA__PANEL];
    int i, fold = 0, more = swa__more_out(j);

    /* rows that saw nothing give 0 */
    if (swa__panel_empty(n, to.m)) swa__panel_clear(j, nr, &to);
    swa__places(j, rows->token, rows->head, u->h, u->r0 + r, n, at);
    for (i = 0; i < nr; i++) {
        w->mb[i] = SWA__NONE;
        w->lb[i] = 0.0f;
        /* idle places of the panel: something to divide by */
        if (i >= n) {
            to.l[i] = 1.0f;
            continue;
        }
        out[i] = rows->p + at[i];
        if (more)
            fold |= swa__row_end(j, u->h, u->r0 + r + i, to.m[i], &to.l[i], &w->mb[i], &w->lb[i]);
    }
    if (fold) j->call->kr->fold_panel(nr, dv, &to, w->mb, w->lb);
    for (i = 0; i < SWA__PANEL; i++) w->lb[i] = i < n ? to.l[i] : 1.0f;
    j->call->kr->unpack(nr, n, dv, to.o, w->lb, out);
    /* which swa__unit_end leaves alone */
    *to.l = SWA__IS_OUT;
}

#if SWA__LIGHT
#  pragma GCC push_options
#  pragma GCC optimize("O1", "inline-small-functions", "strict-aliasing", "ipa-ra", "crossjumping", \
                       "store-merging", "no-tree-ch")
#endif

/* ---- lists of keys ---- */

#if SWA__LISTS

/* A list has no order, and may name a key twice. So its entries become bits, from which the keys of
   one block after another come in order, together with those that need not be listed:

       pick              900   17   -1   901   17        pick_block 1: numbers are positions
       bits              17, 900, 901                    of the window's [lo, hi)
       block 0           17, and the sinks
       block 3           900, 901, and what is near      as 256 bits, swa__wanted_block

   The bits of SWA__LISTED numbers stand at a time. Where a list names later ones it is read again,
   from the least of those on. */

/* What one token and KV head see where there is a list: the window's keys [lo, hi), of which those
   in [near, until) and those on the list; and the sinks [0, sinks). The list is sorted by a bit per
   entry, so many at a time: bits say which of the numbers from `base` on stand in it, `next` is the
   first number behind them (INT64_MAX: none). */
typedef struct {
    const int32_t *pick;
    int32_t  n;
    int      shift;                      /* log2 of pick_block                                    */
    int64_t  lo, hi, near, until, sinks;
    int64_t  base, next;
    uint64_t *bits;                      /* [SWA__LISTED/64]                                      */
} swa__wanted;

static int swa__low_bit(uint64_t x) {    /* of x != 0 */
#if defined(__GNUC__) || defined(__clang__)
    return __builtin_ctzll(x);
#else
    int i = 0;
    for (; (x & 0xff) == 0; x >>= 8) i += 8;
    for (; (x & 1) == 0; x >>= 1) i++;
    return i;
#endif
}

/* Bits [a, b) of a block's 256. */
static void swa__bits_set(uint64_t bits[4], int64_t a, int64_t b) {
    int w;

    SWA__ROLLED for (w = 0; a < b && w < 4; w++) {
        const int64_t lo = swa__max64(a - 64 * w, 0), hi = swa__min64(b - 64 * w, 64);
        if (lo < hi)
            /* a shift by 64 is undefined */
            bits[w] |= (hi - lo == 64 ? ~(uint64_t)0 : ((uint64_t)1 << (hi - lo)) - 1) << lo;
    }
}

static void swa__wanted_sort(swa__wanted *x, int64_t from) {
    int32_t i;

    x->base = from / SWA_BLOCK * SWA_BLOCK;              /* whole blocks, whatever pick_block */
    x->next = INT64_MAX;
    memset(x->bits, 0, SWA__LISTED / 8);
    for (i = 0; i < x->n; i++) {         /* lists have no order: no branch that would be guessed */
        const int64_t e = x->pick[i], at = e - x->base;
        const uint64_t in = at >= 0 && at < SWA__LISTED;
        x->next = at >= SWA__LISTED && e < x->next ? e : x->next;
        x->bits[(at & (SWA__LISTED - 1)) / 64] |= in << (at & 63);
    }
}

/* The first of the sorted numbers from e on; the end of what is sorted if there is none. */
static int64_t swa__wanted_bit(const swa__wanted *x, int64_t e) {
    int64_t at = swa__max64(e - x->base, 0);

    while (at < SWA__LISTED) {
        const uint64_t left = x->bits[at / 64] >> (at & 63);
        if (left != 0) return x->base + at + swa__low_bit(left);
        at = (at | 63) + 1;
    }
    return x->base + at;
}

/* The first number from e on that is listed; INT64_MAX: none. */
static int64_t swa__wanted_from(swa__wanted *x, int64_t e) {
    for (;;) {
        e = swa__wanted_bit(x, e);
        if (e < x->base + SWA__LISTED) return e;
        /* of what is sorted there is no more: from the least number behind it on, then */
        if (x->next == INT64_MAX) return INT64_MAX;
        swa__wanted_sort(x, x->next);
        e = x->base;
    }
}

static swa__wanted swa__wanted_of(const swa__job *j, int h, int t, uint64_t *bits) {
    const swa_attn *a = &j->call->a;
    swa__wanted x;

    x.pick = a->pick + (j->row + t) * a->pick_token + h * a->pick_head;
    x.n = a->pick_n;
    for (x.shift = 0; 1 << x.shift < a->pick_block; x.shift++) {}
    x.bits = bits;
    swa__window_of(j, t, &x.lo, &x.hi);
    x.sinks = swa__sinks_of(j, t);
    /* without pick_window nothing is near; it never shows more than the window does */
    x.near = x.until = x.lo;
    if (a->pick_window != NULL) {
        swa__bounds(a->pick_window, j->pos + t, &x.near, &x.until);
        x.near = swa__max64(x.near, x.lo);
        x.until = swa__min64(x.until, x.hi);
    }
    /* what is listed ends there, and positions do not: base + SWA__LISTED is one too */
    swa__wanted_sort(&x, swa__min64(x.lo >> x.shift, INT32_MAX));
    return x;
}

/* The first block from `at` on with keys that are seen, and which those are, if a segment holds
   them; -1 after the last. */
static int64_t swa__wanted_block(const swa__job *j, swa__wanted *x, int64_t at, uint64_t seen[4]) {
    const int per = x->shift, numbers = SWA_BLOCK >> x->shift;
    const int64_t last = (x->hi - 1) >> per;
    int64_t e, next = INT64_MAX, pos, first;

    if (at > INT64_MAX / SWA_BLOCK) return -1;
    e = swa__wanted_from(x, swa__max64(at * SWA_BLOCK, x->lo) >> per);
    /* the next block is the first of three: of what is listed, of the sinks, of what is near */
    if (e <= last && x->lo < x->hi) next = (e << per) / SWA_BLOCK;
    if (at * SWA_BLOCK < x->sinks)
        next = swa__min64(next, swa__max64(at, j->keys_from / SWA_BLOCK));
    if (swa__max64(at * SWA_BLOCK, x->near) < x->until)
        next = swa__min64(next, swa__max64(at, x->near / SWA_BLOCK));
    if (next == INT64_MAX) return -1;

    pos = next * SWA_BLOCK;
    first = pos >> per;
    memset(seen, 0, 4 * sizeof *seen);
    if (per == 0 && pos >= x->base && pos < x->base + SWA__LISTED && pos >= x->lo
        && pos + SWA_BLOCK <= x->hi) {
        /* all of the block as it stands */
        memcpy(seen, x->bits + (pos - x->base) / 64, 4 * sizeof *seen);
        e = INT64_MAX;
    }
    /* an entry is 2^per positions, of which the window may show some */
    for (; e <= last && e - first < numbers; e = swa__wanted_from(x, e + 1))
        swa__bits_set(seen, swa__max64((e - first) << per, x->lo - pos),
                      swa__min64((e - first + 1) << per, x->hi - pos));
    swa__bits_set(seen, x->near - pos, x->until - pos);
    swa__bits_set(seen, j->keys_from - pos, x->sinks - pos);
    return next;
}

/* A tile's keys on their way: where each lies, by segment and row. */
typedef struct { int n, segment[SWA__TILE]; int64_t row[SWA__TILE]; } swa__picked;

/* Keys [a, b) of one operand of a tile from any rows of a segment. */
static void swa__picked_in(const swa__keys *keys, const swa__source *src, int which,
                           const int64_t *row, int a, int b, swa__spot *to) {
    const swa__operand *x = &src->x[which];
    const void *at[SWA__TILE];
    int i;

    /* V, and what is tiled, key by key; rows of K and tail are transposed together */
    for (i = a; i < b; i++) {
        if (x->tiled || which == SWA__V)
            swa__keys_in(keys, src, which, row[i], i, i + 1, to);
        else {
            to->scale[which][i] = swa__scale_of(x, which, row[i]);
            at[i] = x->p + row[i] * x->row;
        }
    }
    if (!x->tiled && which != SWA__V) swa__rows_in(keys, src, which, at, a, b, to);
}

/* The tile whose keys have come together. Places that are left hold the last one again: its scores
   will be hidden, its V is finite, and rows of a whole tile are transposed at once. */
static void swa__picked_tile(swa__cursor *in, swa__picked *k, swa__spot *to, swa__tile *t) {
    unsigned scaled = 0;
    int a, b, x;

    SWA__ROLLED for (a = k->n; a < SWA__TILE; a++) {
        k->segment[a] = k->segment[k->n - 1];
        k->row[a] = k->row[k->n - 1];
    }

    for (x = 0; x < SWA__OPERANDS; x++) swa__tile_put(t, x, to->x[x], SWA_F32, NULL);
    t->v_token = to->dvp;
    for (a = 0; a < SWA__TILE; a = b) {
        const swa__source *src = swa__seek(in, k->segment[a]);
        /* keys that follow one another from one segment */
        for (b = a + 1; b < SWA__TILE && k->segment[b] == k->segment[a];) b++;
        for (x = 0; x < SWA__OPERANDS; x++) {
            if (src->x[x].dim == 0) continue;
            scaled |= swa__is_scaled(in->keys, src, x);
            swa__picked_in(in->keys, src, x, k->row, a, b, to);
        }
    }
    swa__tile_finish(in->keys, 0, scaled, to, t);
}

/* What rows [r, r+n) of the unit, all of one token, see of a list's keys: all. */
static void swa__sight_listed(const swa__job *j, const swa__unit *u, const swa__scratch *w, int r,
                              int n, const swa__list *x, swa__sight *l) {
    const int group = j->call->group, t = u->r0 / group;
    int i, row;

    l->lo[0] = 0;
    /* sinks with a q of their own come first in position, and so they do here */
    l->hi[0] = l->lo[1] = x->sinks;
    l->hi[1] = x->keys;
    l->full_lo = 0;
    l->full_hi = SWA_BLOCK;
    swa__q_scales(j, w, r, l);
    l->mods = swa__modifies(j, j->geo.bias);
    /* all see all keys: bounds are read only where there are sinks, or scores are modified.
       Distances stand in the list, whatever q is */
    for (i = 0; i < SWA__PANEL && (x->sinks > 0 || l->mods); i++) {
        row = u->r0 + r + (i < n ? i : n - 1);
        l->first[i] = l->sink[i] = (float)x->sinks;
        l->last[i] = (float)x->keys;
        l->q[i] = 0.0f;
        swa__sight_mods(j, j->row + t, u->h * group + row % group, i, l);
    }
}

/* ---- trees: the block of the first node, and those that follow ---- */

/* Who sees which node is a question of numbers once they are counted branch by branch, a node and
   then all that stands below it: these are one interval, [in, out). The tree of [SECTION 8]:

             0             node     0        1        2        3        4
            / \            in       0        1        3        2        4
           1   2           out      5        3        5        3        5
           3   4

   A row of node 3 has the number 2, and sees the nodes whose interval holds 2: 0, 1 and 3. Keys of
   history have an interval that holds all. */

/* The key of a node that was gathered; -1: it was not. */
static int swa__node_key(const swa__list *x, int32_t node) {
    int lo = x->nodes, hi = x->nodes + x->n_nodes;

    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (x->node[mid] < node) lo = mid + 1;
        else hi = mid;
    }
    return lo < x->nodes + x->n_nodes && x->node[lo] == node ? lo : -1;
}

/* From node t at position q on upwards: so many nodes within the block at pos are not in the set
   yet; mark: now. */
static int swa__path_new(const swa__job *j, int32_t t, int64_t q, int64_t pos, uint64_t *set,
                         int mark) {
    int n = 0;
    SWA__ROLLED for (; q - pos >= SWA_BLOCK; q--) t = j->parents[t];
    /* a node in the set has its path in it too */
    for (; q >= pos && t >= 0 && (set[t / 64] >> (t & 63) & 1) == 0; q--, n++, t = j->parents[t])
        if (mark) set[t / 64] |= (uint64_t)1 << (t & 63);
    return n;
}

/* The tokens from `from` on, up to `end`, of whose paths the block at pos has room for: at least
   one. w->listed: those nodes. */
static int swa__paths_fit(const swa__job *j, const swa__scratch *w, int t0, int from, int end,
                          int64_t pos, int space) {
    int t, more;

    memset(w->listed, 0, ((size_t)j->n + 63) / 64 * sizeof *w->listed);
    for (t = from; t < end; t++) {
        const int64_t q = w->hi[t - t0] - 1;
        more = swa__path_new(j, t, q, pos, w->listed, 0);
        /* the first one always fits: its path in the block and history have different positions */
        if (more > space) break;
        space -= swa__path_new(j, t, q, pos, w->listed, 1);
    }
    return t;
}

/* Counts the nodes that were gathered: a node, then all below it, branch by branch. */
SWA__NOINLINE void swa__nodes_count(const swa__job *j, swa__list *x) {
    const int end = x->nodes + x->n_nodes;
    float next[SWA_BLOCK], roots = 0.0f;
    int above[SWA_BLOCK], k;

    for (k = 0; k < SWA_BLOCK; k++) {
        x->in[k] = 0.0f;
        x->out[k] = k < x->nodes ? FLT_MAX : 1.0f; /* of a node first: how many it and those
                                                      below it are */
        above[k] = k < x->nodes || k >= end ? -1 : swa__node_key(x, j->parents[x->node[k]]);
    }
    /* from the end, so that a node has all of its own when it is added to the one above; then from
       the front, where the one above has its number first */
    for (k = end - 1; k >= x->nodes; k--)
        if (above[k] >= 0) x->out[above[k]] += x->out[k];
    for (k = x->nodes; k < end; k++) {
        float *at = above[k] >= 0 ? &next[above[k]] : &roots;
        x->in[k] = *at;
        *at += x->out[k];
        next[k] = x->in[k] + 1.0f;
        x->out[k] += x->in[k];
    }
}

/* What rows [r, r+n) of the unit see of a tree's keys, in positions from keys_to on. Nothing, if
   they are of no token that the keys are for. The block ends with their last token's own node: the
   nodes behind it are nobody's ancestors here. */
static void swa__sight_tree(const swa__job *j, const swa__unit *u, const swa__scratch *w, int r,
                            int n, const swa__block *b, swa__sight *l) {
    const int group = j->call->group, t0 = u->r0 / group;
    const int64_t base = j->keys_to;
    swa__list *x = b->list;
    int i, t = -1, keys = x->nodes + x->n_nodes;
    float node = -1.0f, first = 0.0f;

    memset(l->lo, 0, sizeof l->lo);
    memset(l->hi, 0, sizeof l->hi);
    if ((u->r0 + r) / group >= x->until || (u->r0 + r + n - 1) / group < x->from) return;

    while (keys > x->nodes && x->node[keys - 1] > (u->r0 + r + n - 1) / group) keys--;
    l->hi[0] = swa__min(x->sinks, keys);
    l->hi[1] = x->start[1] = keys;
    l->full_hi = x->nodes;
    swa__q_scales(j, w, r, l);
    l->mods = swa__modifies(j, j->geo.bias);

    for (i = 0; i < SWA__PANEL; i++) {
        const int row = u->r0 + r + (i < n ? i : n - 1);
        const int64_t lo = w->lo[row / group - t0], q = w->hi[row / group - t0] - 1;
        /* the lowest node of its path that stands in this block; what is further up is found
           through that */
        if (row / group != t) {
            int64_t at = q;
            int32_t last = t = row / group;
            SWA__ROLLED for (; at - b->pos >= SWA_BLOCK; at--) last = j->parents[last];
            node =
                t < x->from || t >= x->until || at < b->pos ? -1.0f : x->in[swa__node_key(x, last)];
        }
        l->node[i] = node;
        l->first[i] = (float)swa__max64(lo - base, 0);
        l->last[i] = FLT_MAX;
        l->sink[i] = (float)swa__max64(j->window.n_sink - base, 0); /* none of them lies behind q */
        l->q[i] = (float)(q - base);
        swa__sight_mods(j, j->row + t, u->h * group + row % group, i, l);
        if (l->first[i] > first) first = l->first[i];
        if (node < 0.0f) l->full_hi = 0;
    }
    for (l->full_lo = 0; l->full_lo < x->nodes && -x->distance[l->full_lo] < first;) l->full_lo++;
}
#endif

/* ---- one unit ---- */

/* Decoding waits for memory, and so a part asks for K early: with each tile that it computes, for
   one that comes a block later, in the order in which it will read them: the unit's blocks, then
   those of the next KV head, which as a rule is the part's next unit. V of a block has the time of
   its own q.k. */

/* A place in the order in which a part reads its K tiles: ahead of what it computes, to be fetched
   meanwhile. */
typedef struct {
    int64_t at;                          /* block number                                          */
    int t, end;                          /* its tiles that are still to be asked for: [t, end)    */
    swa__cursor in;                      /* KV head, and the segment of the tile before           */
} swa__ahead;

/* What one part of a phase works with. A job is made when it is first asked for, and kept until
   another one is. */
typedef struct {
    const swa__call *call;
    int part, parts;
    const swa__scratch *w;               /* the call's first, or own                              */
    swa__scratch own;
    int made;                            /* number of the job, -1 = none                          */
    swa__job job;
    swa__ahead ahead;
} swa__part;

static void swa__part_begin(const swa__call *call, int part, int parts, swa__part *p) {
    p->call = call;
    p->part = part;
    p->parts = parts;
    /* part 0's was carved with the call, which had to know how large a slice is */
    p->w = part == 0 ? &call->first : &p->own;
    if (part != 0)
        swa__carve(&call->shape, call->sinks, call->scratch + (size_t)part * call->part_bytes,
                   &p->own);
    p->made = -1;
}

static const swa__job *swa__job_of(swa__part *p, int i) {
    if (p->made == i) return &p->job;
    swa__job_make(p->call, i, &p->job);
    p->made = i;
    p->ahead.in.h = -1;                  /* a place in another job's keys, or none yet */
    return &p->job;
}

/* The tiles of the block at pos that a unit's rows see through the window: these are fetched ahead,
   sinks are not. */
static void swa__unit_tiles(const swa__scratch *w, int last, int64_t pos, int *t0, int *t1) {
    *t0 = swa__clip(w->lo[0] - pos) / SWA__TILE;
    *t1 = (swa__clip(w->hi[last] - pos) + SWA__TILE - 1) / SWA__TILE;
}

/* The block that is read next: of the unit's list, or the first of the next KV head, whose list
   will be the same. */
static void swa__ahead_block(const swa__job *j, const swa__unit *u, const swa__scratch *w, int last,
                             swa__ahead *x) {
    x->at = swa__block_from(&j->keys, &u->list, x->at + 1);
    if (x->at >= u->list.hi) {
        x->at = swa__block_from(&j->keys, &u->list, 0);
        /* the same segment, where the next head has its rows */
        x->in.h++;
        if (x->in.segment >= 0) swa__source_head(&x->in.src, 1);
    }
    swa__unit_tiles(w, last, x->at * SWA_BLOCK, &x->t, &x->end);
}

/* Gives tile `to` K of the tile at x to fetch: in the ring, with its tail, or (few rows) the
   caller's rows. */
static void swa__ahead_tile(const swa__job *j, swa__ahead *x, swa__tile *to) {
    const int64_t pos = x->at * SWA_BLOCK + x->t * SWA__TILE;
    const swa__source *src = &x->in.src;
    const swa__operand *k = &src->x[SWA__K], *tail = &src->x[SWA__TAIL];
    int64_t row;

    /* from tile to tile the segment stays, as a rule */
    if (x->in.segment < 0 || pos >= src->end || pos < src->pos) {
        int s = swa__find(&j->keys, pos);
        if (s == j->keys.n_kv) return;
        swa__seek(&x->in, s);
    }
    /* for many rows the caller's are asked for as they are packed: swa__rows_soon */
    if (pos < src->pos || (!k->tiled && !j->few)) return;
    row = src->first + (pos - src->pos);
    if (k->tiled) row = row / SWA__TILE * SWA__TILE;
    else to->next_gap = k->row - k->dim * (int64_t)k->size;
    to->next = (const char *)k->p + row * k->row;
    if (k->tiled && tail->dim > 0) to->next_tail = (const char *)tail->p + row * tail->row;
}

static void swa__no_fetch(swa__block *b, int t, int end) {
    SWA__ROLLED for (; t < end; t++) {
        b->tile[t].next = b->tile[t].next_tail = NULL;
        b->tile[t].next_gap = 0;
    }
}

/* Each of the block's tiles gets one tile to fetch, in reading order. So a short block at the end
   of the window does not leave the next head's first block unfetched. last: the unit's last token,
   counted from its first. */
static void swa__look_ahead(swa__part *p, const swa__unit *u, int last, int64_t at, swa__block *b) {
    const swa__job *j = &p->job;
    swa__ahead *x = &p->ahead;
    int t;

    /* no place yet, or overtaken: it begins behind this block */
    if (x->in.h < u->h || (x->in.h == u->h && x->at <= at)) {
        if (x->in.h != u->h) x->in.segment = -1;
        x->in.h = u->h;
        x->in.keys = &j->keys;
        x->at = at;
        swa__ahead_block(j, u, p->w, last, x);
    }
    swa__no_fetch(b, b->t0, b->t1);
    for (t = b->t0; t < b->t1; t++) {
        /* a block of sinks may have none of the window's tiles */
        while (x->t >= x->end && x->in.h < j->keys.shape.n_kv_heads)
            swa__ahead_block(j, u, p->w, last, x);
        if (x->in.h >= j->keys.shape.n_kv_heads) return;
        swa__ahead_tile(j, x, &b->tile[t]);
        x->t++;
    }
}

/* A block's o, m, l of few rows, of a split: one behind the other, as swa__fold_rows takes them. */
static void swa__rows_keep(const swa__job *j, const swa__unit *u, const swa__scratch *w) {
    const size_t dvp = (size_t)j->geo.dvp;
    float *partial = u->partial;
    int i;

    for (i = 0; i < u->n; i++, partial += u->partial_row) {
        memcpy(partial, w->ob + (size_t)i * dvp, dvp * sizeof(float));
        partial[dvp] = w->mb[i];
        partial[dvp + 1] = w->lb[i];
    }
}

/* One block, few rows, or a step of it: alone, from zero, into ob, or (first: nothing to fold it
   into) into o. */
static void swa__block_steps(const swa__job *j, const swa__unit *u, const swa__scratch *w,
                             const swa__block *b, const swa__sight *l, int first) {
    const float *const q[2] = { swa__has_q_sink(j) ? w->q_sink : w->q, w->q };
    const swa__total all = { w->o, w->m, w->l }, own = { w->ob, w->mb, w->lb };
    j->call->kr->few(b, l, u->n, q, w->s, first ? &all : &own);
}

/* It is folded into the rows' results, or of a split kept for phase 1: the same numbers go in. */
static void swa__block_end(const swa__job *j, const swa__unit *u, const swa__scratch *w) {
    const swa__total all = { w->o, w->m, w->l };
    if (u->partial != NULL) swa__rows_keep(j, u, w);
    else j->call->kr->fold(u->n * u->heads, j->geo.dvp, &all, w->ob, w->mb, w->lb);
}

/* Folded into nothing a block would stay as it is, but for a zero's sign, which finish and later
   folds remove. */
static void swa__block_few(const swa__job *j, const swa__unit *u, const swa__scratch *w,
                           const swa__block *b, const swa__sight *l) {
    const int first = u->partial == NULL && swa__panel_empty(u->n * u->heads, w->m);

    swa__block_steps(j, u, w, b, l, first);
    if (!first) swa__block_end(j, u, w);
}

/* The panel of n rows from row r on: unnormalised, as rows, to where phase 1 will find them. */
static void swa__panel_keep(const swa__job *j, const swa__unit *u, int r, int n,
                            const swa__scratch *w) {
    float *out[SWA__PANEL], *partial = u->partial + (size_t)r * u->partial_row;
    int i;

    /* in place of l: out as it is. What lies behind dv is folded along and goes nowhere */
    for (i = 0; i < SWA__PANEL; i++) w->lb[i] = 1.0f;
    SWA__ROLLED for (i = 0; i < n; i++, partial += u->partial_row) {
        out[i] = partial;
        partial[j->geo.dvp] = w->m[r + i];
        partial[j->geo.dvp + 1] = w->l[r + i];
    }
    j->call->kr->unpack(swa__panel_rows(j, n), n, j->geo.dv, w->o + (size_t)r * (size_t)j->geo.dvp,
                        w->lb, out);
}

/* What rows [r, r+n) of the unit see of the block, or of the list's or tree's keys. */
static void swa__sight_fill(const swa__job *j, const swa__unit *u, const swa__scratch *w, int r,
                            int n, const swa__block *b, swa__sight *l) {
#if SWA__LISTS
    if (b->list != NULL) {
        if (b->list->tree) swa__sight_tree(j, u, w, r, n, b, l);
        else swa__sight_listed(j, u, w, r, n, b->list, l);
        return;
    }
#endif
    swa__sight_make(j, u, w, r, n, b->pos, l);
}

/* Many rows: q is packed panel by panel, each before its first block, so that it comes from memory
   while the panel before computes. But integers of long rows need room that K has by then. */
static int swa__packs_late(const swa__job *j) {
    return !j->few && (j->call->a.compute != SWA_Q8 || j->geo.dk <= 256);
}

static void swa__pack_both(const swa__job *j, const swa__unit *u, const swa__scratch *w, int r,
                           int end, int place) {
    swa__pack_q(j, u, w, 0, r, end, place);
    if (swa__has_q_sink(j)) swa__pack_q(j, u, w, 1, r, end, place);
}

/* Groups of keys in a panel's q.k, at least one. */
static int swa__sight_groups(const swa__sight *l) {
    const int groups = (l->hi[1] - l->lo[1]) / 8;
    return groups > 1 ? groups : 1;
}

/* Rows [r, end) of q or out, of so many numbers, are fetched in the panel's q.k: those that lie one
   behind the other, up to l->most lines, as one. */
static void swa__sight_rows(const swa__job *j, const swa__unit *u, const swa_in *in, int r, int end,
                            int numbers, swa__sight *l) {
    const int lines = numbers / 16;
    int64_t at[SWA__PANEL];
    int i;

    swa__places(j, in->token, in->head, u->h, u->r0 + r, end - r, at);
    for (i = 0; i < end - r; i++) {
        const char *p = (const char *)(in->p + at[i]);
        swa__stretch *to = &l->row[l->rows];
        if (i > 0 && to[-1].p + to[-1].lines * 64 == p && to[-1].lines + lines <= l->most) {
            to[-1].lines += lines;
            continue;
        }
        to->p = p;
        to->lines = lines;
        l->rows++;
    }
}

/* Adds to l->row the room that q of rows [r, r+nr) is packed into, as eight: with the q and o of a
   unit it is as large as L2, and writing to it waits too. Not on Intel where heads are small: those
   are 1 MB of 2. */
static void swa__sight_room(const swa__job *j, const swa__scratch *w, int r, int nr,
                            swa__sight *l) {
    const int lines = nr * j->geo.dk / (8 * 16);
    const int large = j->geo.near == 0 || j->geo.dk + j->geo.dv > SWA__SMALL_DIMS;
    const char *p = (const char *)(w->q + (size_t)r * (size_t)(j->geo.dk + j->geo.dt));
    int i;

    for (i = 0; large && i < 8; i++, l->rows++) {
        l->row[l->rows].p = p + i * lines * 64;
        l->row[l->rows].lines = lines;
    }
}

/* Adds to l->row a panel's share of the keys that the stage will take for the next block: rows of
   the caller's, and of a ring what no kernel asks for; but not latents, one long stretch, which the
   hardware fetches faster than tiles could share the lines on their way. */
static void swa__sight_keys(const swa__job *j, const swa__unit *u, const swa__block *b, int r,
                            int n, swa__cursor *in, swa__sight *l) {
    const int most = (int)(sizeof l->row / sizeof l->row[0]) / 2 - SWA__OPERANDS;
    const int end = SWA_BLOCK * (r + n) / u->n;
    int s, i, was, k = SWA_BLOCK * r / u->n;

    if (b->next_pos < 0) return;
    s = swa__find(&j->keys, b->next_pos + k);
    for (; k < end && l->rows < most; k++) {
        const int64_t pos = b->next_pos + k;
        const swa__source *src;
        int64_t row;
        s = swa__find_on(&j->keys, s, pos);
        if (s == j->keys.n_kv) return;
        src = swa__seek(in, s);
        if (pos < src->pos) continue;
        row = src->first + (pos - src->pos);
        was = l->rows;
        for (i = 0; i < SWA__OPERANDS; i++) {
            const swa__operand *x = &src->x[i];
            if (x->dim == 0) continue;
            if (x->tiled && (j->geo.v_in_k || swa__form_of(&j->geo) < SWA__TILE_SINGLES)) continue;
            l->row[l->rows].p = (const char *)x->p + row * x->row;
            l->row[l->rows++].lines = (x->dim * (int)x->size + 63) / 64;
        }
        /* nothing of this key: nor of its segment's others */
        if (l->rows == was) k = (int)swa__min64(end, src->end - b->next_pos) - 1;
    }
}

/* Deals the lines of l->row out to the groups of keys of q.k, at a pace that lets them come in:
   Intel's cores wait once 16 are on their way. */
static void swa__sight_pace(const swa__job *j, swa__sight *l) {
    const int dk = j->geo.dk, steps = swa__form_of(&j->geo) == SWA__PAIRS ? (dk + 1) / 2 : dk;
    const int groups = swa__sight_groups(l);
    int i, each, nth;

    l->per = (l->rows + groups - 1) / groups;
    if (l->per == 0) return;
    if (l->per > steps) l->per = steps;
    each = steps / l->per;

    /* nth: of a group's, the last of which takes the steps that are left */
    for (i = nth = 0; i < l->rows || nth != 0; i++) {
        swa__stretch *to = &l->row[i];
        if (i >= l->rows) to->p = NULL;
        else to->apart = to->lines < each ? (int)((unsigned)to->lines * 64 / (unsigned)each) : 64;
        to->lines = each;
        if (++nth < l->per) continue;
        to->lines = steps - each * (l->per - 1);
        nth = 0;
    }
}

/* Whether no later block is seen by rows [r, end) of the unit, a panel: its results may go out once
   it has seen b, when they are in cache. Names what is fetched meanwhile: out's rows, and q of the
   panel behind it. */
static int swa__panel_ends(const swa__job *j, const swa__unit *u, const swa__scratch *w, int r,
                           int end, const swa__block *b, swa__sight *l) {
    const swa_attn *a = &j->call->a;
    const swa_in out = { a->out.p, a->out.token, a->out.head };
    const int group = j->call->group, nr = j->call->kr->nr;
    const int next = swa__min(end + nr, u->n), groups = swa__sight_groups(l);
    /* as long as it has not been packed */
    const int packs = end < u->n && swa__packs_late(j) && w->m[end] <= SWA__NONE;
    /* of lists and trees more may come, and a split is not the end of a row */
    const int ends = u->partial == NULL && j->parents == NULL && swa__list_of(b) == NULL
                     && w->hi[(u->r0 + end - 1) / group - u->r0 / group] - b->pos <= SWA_BLOCK;

    /* to all groups of keys alike, but a line in 8 dims may come, and 32 at most: W=128 takes 0.965
       of the time that it took when they came by 32, half of the groups having none */
    l->most = ((ends ? (end - r) * j->geo.dv : 0) + (packs ? (next - end) * j->geo.dk : 0))
            / (16 * groups) + 1;
    if (l->most < j->geo.dk / 8) l->most = j->geo.dk / 8;
    if (l->most > 32) l->most = 32;

    l->rows = 0;
    if (ends) swa__sight_rows(j, u, &out, r, end, j->geo.dv, l);
    if (packs) {
        swa__sight_rows(j, u, &a->q, end, next, j->geo.dk, l);
        /* after a panel that no other block reaches comes another, as a rule: see swa__block_many */
        if (!ends || !l->first_block) swa__sight_room(j, w, end, nr, l);
    }
    return ends;
}

/* A panel has seen a block: its results go out if there is no more to be seen. A split has a result
   for each row, also of those that saw nothing: phase 1 folds all. */
static void swa__panel_end(const swa__job *j, const swa__unit *u, const swa__scratch *w, int r,
                           int n, int place, int ends) {
    const swa__total to = { w->o + (size_t)r * (size_t)j->geo.dvp, w->m + r, w->l + r };

    if (ends) swa__panel_out(j, u, r, n, place, w);
    if (u->partial == NULL) return;
    if (swa__panel_empty(n, to.m)) swa__panel_clear(j, swa__panel_rows(j, n), &to);
    swa__panel_keep(j, u, r, n, w);
}

#if SWA__AMX
/* Panels by Intel's tiles in turns, see swa__turn: those whose scores want no more than the
   window's edge, of a block that leaves room for a second panel's s behind V. */
static int swa__takes_turns(const swa__job *j, const swa__block *b, const swa__sight *l) {
    return j->geo.form == SWA__TILE_AMX && l->lo[0] >= l->hi[0] && !swa__has_mods(l)
        && b->present == NULL && swa__list_of(b) == NULL && j->geo.dvp >= 2 * SWA__PANEL;
}

/* The panel that waits goes, and another comes, of which next says r, n and ends, and l what it
   sees; next NULL: none. */
static void swa__panel_turn(const swa__job *j, const swa__unit *u, const swa__scratch *w,
                            const swa__block *b, const swa__sight *l, const swa__waiting *next,
                            swa__waiting *x) {
    const size_t at = next != NULL ? (size_t)next->place : 0;
    float *s = w->s, most[SWA__PANEL];
    int range[4];

    if (next == NULL && x->n == 0) return;
    if (x->n > 0 && x->s == s) s = w->room.v + SWA_BLOCK / 2 * j->geo.dvp;
    swa__turn(b, next != NULL ? l : NULL, next != NULL && next->n > SWA__TILE,
              w->q + at * (size_t)(j->geo.dk + j->geo.dt), s, x, most);
    if (x->n > 0) swa__panel_end(j, u, w, x->r, x->n, x->place, x->ends);
    x->n = 0;
    if (next == NULL) return;

    *x = *next;
    swa__ranges(l, SWA__SUMMED, range);
    memcpy(x->top, most, sizeof most);
    x->s = s;
    x->from = range[2];
    x->end = range[3];
    x->more = !l->first_block;
    x->to.o = w->o + at * (size_t)j->geo.dvp;
    x->to.m = w->m + x->r;
    x->to.l = w->l + x->r;
}
#endif

/* One block, panel after panel: the kernel folds; of a split the results are kept for phase 1.
   Panels that no other block reaches have q and o in one place, behind all others', one after the
   other: it stays in cache, and leaves more of it to the rest. */
static void swa__block_many(const swa__job *j, const swa__unit *u, const swa__scratch *w,
                            const swa__block *b, swa__sight *l) {
    const swa__kernels *kr = j->call->kr;
    const size_t dkt = (size_t)(j->geo.dk + j->geo.dt), dvp = (size_t)j->geo.dvp;
    const float *q_sink = swa__has_q_sink(j) ? w->q_sink : w->q;
    swa__cursor ahead = swa__cursor_at(&j->keys, u->h);
    int r, n, nr, ends, place;
#if SWA__AMX
    swa__waiting waits, next;
    memset(&next, 0, sizeof next);
    waits.n = 0;
#endif

    l->scores = NULL;
#if SWA__BF16
    if (j->geo.form >= SWA__TILE_SINGLES) l->scores = swa__summed_scores;
#endif
#if SWA__DOTS
    if (j->keys.dots) l->scores = kr->many_dots;
#endif

    for (r = 0; r < u->n; r += nr) {
        nr = swa__panel_rows(j, u->n - r);
        n = swa__min(u->n - r, nr);
        swa__sight_fill(j, u, w, r, n, b, l);
        l->first_block = swa__panel_empty(n, w->m + r);
        /* the next block's tiles by one panel: the others would ask for the same. The rows of a
           list's next keys are shared out to all */
        l->fetch = r == 0 || (swa__list_of(b) != NULL && b->list->per_key > 0);
        l->nr = nr;
        ends = 0;
        place = r;
        /* a panel that sees nothing of the block keeps what it has */
        if (l->lo[0] < l->hi[0] || l->lo[1] < l->hi[1]) {
            const float *q[2];
            swa__total to;
            ends = swa__panel_ends(j, u, w, r, r + n, b, l);
            if (ends && l->first_block && swa__packs_late(j)) place = w->rows - SWA__PANEL;
            q[0] = q_sink + (size_t)place * dkt;
            q[1] = w->q + (size_t)place * dkt;
            to.o = w->o + (size_t)place * dvp;
            to.m = w->m + r;
            to.l = w->l + r;
            swa__sight_keys(j, u, b, r, n, &ahead, l);
            swa__sight_pace(j, l);
            if (l->first_block && swa__packs_late(j)) swa__pack_both(j, u, w, r, r + n, place);
#if SWA__AMX
            next.r = r;
            next.n = n;
            next.place = place;
            next.ends = ends;
            if (swa__takes_turns(j, b, l)) {
                swa__panel_turn(j, u, w, b, l, &next, &waits);
                continue;
            }
            swa__panel_turn(j, u, w, b, l, NULL, &waits);
#endif
            swa__many_of(j)[nr < kr->nr](b, l, q, w->s, &to);
        }
        swa__panel_end(j, u, w, r, n, place, ends);
    }
#if SWA__AMX
    swa__panel_turn(j, u, w, b, l, NULL, &waits);
#endif
}

/* Nothing is fetched yet for its tiles; where few rows come, that is left to the block's own. */
static void swa__block_begin(const swa__job *j, swa__block *b) {
    b->g = &j->geo;
    b->l1 = swa__fetch_l1();
    b->stream = b->again = 0;
    b->steps = SWA__STEPS;
    b->heads = 1;
    b->apart = b->skip = 0;
    b->next_pos = -1;
    b->present = NULL;                   /* these two are the stage's to say */
    b->shift = 0;
    b->list = NULL;
    if (!j->few) swa__no_fetch(b, 0, (int)(sizeof b->tile / sizeof b->tile[0]));
}

/* Whether K of all blocks of a ring is more than 4 MB, of which little is left in the caches since
   the step before. */
static int swa__unit_cold(const swa__job *j) {
    const swa__source *ring = j->keys.base[1];
    return ring != NULL
        && (int64_t)j->all.n * SWA_BLOCK * ring->x[SWA__K].row * j->keys.shape.n_kv_heads > 4 << 20;
}

/* Whether the unit's rows read a ring as swa__likes_streams says: it is cold, and the kernels walk
   whole rows of V: of f32, and with one row of f16 and bf16. Other types and numbers of rows have
   more to compute than memory has to bring, or take half rows at a time. */
static int swa__unit_streams(const swa__job *j, const swa__unit *u) {
    const swa__source *ring = j->keys.base[1];
    const int type = u->n == 1 ? SWA_BF16 : SWA_F32, dvp = j->geo.dvp;
    if (!j->few || u->n == 3 || u->n > 4 || dvp % 64 != 0 || (u->n < 4 && dvp > 128)) return 0;
    if (ring == NULL || swa__form_of(&j->geo) != SWA__PLAIN || j->geo.dt != 0) return 0;
    return (int)ring->x[SWA__K].type <= type && (int)ring->x[SWA__V].type <= type
        && swa__likes_streams(j->call->kr) && swa__unit_cold(j);
}

/* q packed, where that is not left to the panels; results empty. */
static void swa__unit_begin(const swa__job *j, const swa__unit *u, const swa__scratch *w,
                            swa__block *b) {
    const swa__call *call = j->call;

    swa__block_begin(j, b);
    b->stream = swa__unit_streams(j, u);
    b->again = swa__fetches_twice() && swa__unit_cold(j) ? 2 * SWA__TILE : 0;
    if (!swa__packs_late(j)) swa__pack_both(j, u, w, 0, u->n, 0);
    /* whole panels: the kernel folds their idle places too */
    swa__rows_clear(j->few ? u->n * u->heads : (u->n + call->kr->nr - 1) / call->kr->nr * call->kr->nr, w->m,
                    w->l);
}

/* The results of rows that are not out yet go out. */
static void swa__unit_end(const swa__job *j, const swa__unit *u, const swa__scratch *w) {
    const int rows = u->n * u->heads;
    int i, nr;
    if (j->few && swa__panel_empty(rows, w->m))
        memset(w->o, 0, (size_t)rows * (size_t)j->geo.dvp * sizeof(float));
    if (j->few) swa__rows_out(j, u->h, u->heads, u->r0, u->n, w);
    for (i = 0; !j->few && i < u->n; i += nr) {
        nr = swa__panel_rows(j, u->n - i);
        if (w->l[i] > SWA__IS_OUT) swa__panel_out(j, u, i, swa__min(u->n - i, nr), i, w);
    }
}

#if SWA__LISTS
/* A batch of keys, in the order of their positions. A tile of which all 16 keys are wanted, and
   which lies in one segment of a ring, is taken whole; for it to begin at a multiple of 16 the tile
   before is filled up with places that hold no key:

       key number     0     1     2     3 .. 15    16 .. 31
       block          3     3     9                12
       place          5     7     1     -1         16 .. 31        position mod 256
       start          0           2     3                     32   of each block, and the end

   While a batch is computed the rows of the next one are fetched, as far as the bits tell. */

/* Keys gathered for a unit with a list. */
typedef struct {
    swa__cursor in;
    swa__picked tile;                    /* the last one, not yet full                            */
    swa__block b;
    int64_t q;                           /* the query's position                                  */
    int first;                           /* nothing has fetched these keys yet                    */
    int far;                             /* their distances and columns will be asked for         */
} swa__gather;

static void swa__gather_clear(swa__gather *x) {
    x->b.list->n = x->b.list->blocks = x->b.list->sinks = x->tile.n = 0;
}

/* Of a list, or of a tree: nothing yet. */
static void swa__gather_begin(const swa__job *j, const swa__unit *u, const swa__scratch *w,
                              int tree, swa__gather *x) {
    swa__list *list = x->b.list = w->list;
    list->tree = tree;
    list->n_ahead = list->per_key = list->per_step = 0;
    x->in = swa__cursor_at(&j->keys, u->h);
    x->first = 1;
    x->far = tree || swa__modifies(j, j->geo.bias);
    swa__gather_clear(x);
}

/* n keys of one block, from pos on; those before `sinks` have a q of their own. */
static void swa__gather_keys(swa__gather *x, int64_t pos, int n, int64_t sinks) {
    swa__list *list = x->b.list;
    const int place = (int)(pos % SWA_BLOCK), at = list->n;
    /* in two steps, as an ordinary block does it: the query from the block's start, rounded to f32,
       less the key. So the float is the same */
    const float start = (float)(x->q - (pos - place));
    int i;

    list->n += n;
    if (pos < sinks) list->sinks = at + (int)swa__min64(sinks - pos, n);
    for (i = 0; i < n; i++) list->place[at + i] = (int16_t)(place + i);
    for (i = 0; i < n && x->far; i++) {
        list->column[at + i] =
            x->b.g->by_distance ? x->q - (pos + i) : pos + i - x->b.g->bias_first;
        list->distance[at + i] = start - (float)(place + i);
    }
}
/* None: a tile is filled up. */
static void swa__gather_none(swa__gather *x) {
    swa__list *list = x->b.list;
    list->place[list->n] = -1;
    list->column[list->n] = -1;
    list->distance[list->n++] = 0.0f;
}

/* The tile that is not full yet is made, and keys go on in the next. */
static void swa__gather_tile(swa__gather *x, const swa__room *room) {
    const swa__keys *keys = x->in.keys;
    /* keys of a full one have been counted: it is the one before */
    const int t = x->b.list->n / SWA__TILE - (x->tile.n == SWA__TILE);
    swa__tile *tile = &x->b.tile[t];
    swa__spot to;

    if (x->tile.n == 0) return;
    swa__spot_of(keys, room, t, &to);
    /* keys come one by one: none may widen a whole tile of slots over the others */
    to.bare = 0;
    swa__picked_tile(&x->in, &x->tile, &to, tile);
    SWA__ROLLED for (; x->tile.n < SWA__TILE; x->tile.n++) swa__gather_none(x);
    x->tile.n = 0;
}

/* What n listed keys from pos on take of memory, as far as one segment holds them: rows go onto the
   list of what is fetched, tiles of K to the batch's tiles from *t on, or onto that list too, see
   swa__fetches_near. Returns how many keys that are. */
static int64_t swa__gather_ahead(swa__gather *x, int64_t pos, int64_t n, int *t) {
    swa__list *list = x->b.list;
    const int s = swa__find(x->in.keys, pos), tiles = x->b.g->near > 0;
    const swa__source *src;
    int64_t row;
    int i;

    if (s == x->in.keys->n_kv) return n;
    src = swa__seek(&x->in, s);
    /* in front of the segment there is nothing to be fetched */
    if (pos < src->pos) return swa__min64(n, src->pos - pos);
    n = swa__min64(n, src->end - pos);
    row = src->first + (pos - src->pos);
    for (i = 0; i < SWA__OPERANDS; i++) {
        const swa__operand *y = &src->x[i];
        int64_t tile = row / SWA__TILE * SWA__TILE, bytes = (int64_t)y->size * y->dim;
        const unsigned char *p;
        if (y->dim == 0) continue;
        p = y->p + row * y->row;
        /* each tile of the batch fetches one of a ring's; rows that follow one another are one
           stretch, with what lies between them */
        for (; y->tiled && i == SWA__K && !tiles && tile < row + n && *t * SWA__TILE < list->n;
             tile += SWA__TILE)
            x->b.tile[(*t)++].next = (const char *)y->p + tile * y->row;
        if (y->tiled && i == SWA__K && tiles) {
            p = y->p + tile * y->row;
            bytes = ((row + n - 1) / SWA__TILE * SWA__TILE - tile + SWA__TILE) * y->row;
        } else if (y->tiled) continue;
        else bytes += (n - 1) * y->row;
        bytes = swa__min64(bytes, 1 << 20); /* rows far apart: no more than L2 could keep        */
        if (list->n_ahead == 2 * SWA_BLOCK) continue;
        if (i == SWA__TAIL && swa__joined(src->x)) {
            list->next[list->n_ahead - 1].lines += (int)(((int64_t)y->size * y->dim + 63) / 64);
            continue;
        }
        list->next[list->n_ahead].p = (const char *)p;
        list->next[list->n_ahead++].lines = (int)((bytes + 63) / 64);
    }
    return n;
}

/* Of so many lines for each panel q.k takes what fits between its steps, and p.v the rest: where
   tiles are not among the stretches, all or nothing. Either takes none so far. */
static void swa__gather_pace(swa__gather *x, int64_t lines, int tiles) {
    const swa__geo *g = x->b.g;
    swa__list *list = x->b.list;
    const int64_t steps =
        swa__list_long(&x->b) ? list->blocks * (int64_t)(g->dv / 16) : g->dv / 8;

    if (g->near > 0) {
        list->per_key = (int)swa__min64(lines / list->keys + 1, g->dk / SWA__TILE);
        lines -= (int64_t)list->per_key * list->keys;
    } else if (tiles == 0 && lines / list->keys < g->dk / SWA__TILE) {
        list->per_key = (int)(lines / list->keys) + 1;
        return;
    }
    if (lines > 0) list->per_step = (int)swa__min64(lines / (steps + 1) + 1, 64);
}

/* The keys from number e on, as many as may be the next batch: what the kernel fetches meanwhile,
   by so many panels. */
static void swa__gather_next(const swa__wanted *want, swa__gather *x, int64_t e, int panels) {
    const int64_t most = want->base + SWA__LISTED;
    swa__list *list = x->b.list;
    int64_t keys = 0, end, pos, n, lines = 0, block = -1;
    int blocks = 0, t = 0;

    /* no further than is sorted: to sort more would take away bits that are still to be gathered */
    for (list->ahead = list->n_ahead = 0; keys < SWA_BLOCK && (e = swa__wanted_bit(want, e)) < most;
         e = end) {
        blocks += (e << want->shift) / SWA_BLOCK != block;
        block = (e << want->shift) / SWA_BLOCK;
        end = e + 1;
        pos = swa__max64(e << want->shift, want->lo);
        if (blocks > SWA__LIST_BLOCKS || pos >= want->hi) break;
        for (; pos < swa__min64(end << want->shift, want->hi); pos += n, keys += n)
            n = swa__gather_ahead(x, pos, swa__min64(end << want->shift, want->hi) - pos, &t);
    }
    /* each row begins in a page that nobody has lately asked for: in q.k such a line is waited for,
       one page after the other, here several are asked for at once */
    SWA__ROLLED for (n = 0; n < list->n_ahead; n++) {
        lines += list->next[n].lines;
        SWA__PREFETCH(list->next[n].p);
    }

    list->per_key = list->per_step = 0;
    if (list->n_ahead > 0) swa__gather_pace(x, lines / panels + 1, t);
}

/* Whether the 16 keys from k on are a tile: positions ascend, but not a tree's. */
static int swa__gather_whole(const swa__list *list, int k, int end) {
    return !list->tree && end - k >= SWA__TILE
        && list->place[k] >= 0 && list->place[k] % SWA__TILE == 0
        && list->place[k + SWA__TILE - 1] == list->place[k] + SWA__TILE - 1;
}

/* The order of a block's sums: by key mod 16, then the tree over those that have a key. */
static void swa__gather_sums(swa__list *list, int b) {
    const int end = list->start[b + 1];
    unsigned char at[SWA__TILE] = { 0 };
    int i, k, w, sums = list->sums, adds = list->adds;
    unsigned have = 0;                   /* sums */

    /* without branches, here and below: which there are nobody can guess */
    memset(list->block + list->start[b], b, (size_t)(end - list->start[b]));
    for (k = list->start[b]; k < end; k++) {
        const int p = list->place[k], place = p & (SWA__TILE - 1);
        const unsigned key = p >= 0, fresh = key & ~(have >> place);
        if ((have == 0 || have == 0xffffu) && swa__gather_whole(list, k, end)) {
            for (i = 0; i < SWA__TILE && have == 0; i++) at[i] = (unsigned char)sums++;
            have = 0xffff;
            memcpy(list->to + k, at, SWA__TILE);
            k += SWA__TILE - 1;
            continue;
        }
        at[place] = (unsigned char)(fresh ? sums : at[place]);
        sums += (int)fresh;
        have |= key << place;
        list->to[k] = key ? at[place] : (unsigned char)list->sums;
    }

    /* the tree 8, 4, 2, 1 of all 16 sums, of which those without a key would be +0: no sum of p is
       changed by that, so they are left out. One whose partner is left out moves up */
    for (w = SWA__TILE / 2; w > 0; w /= 2)
        for (i = 0; i < w; i++) {
            const unsigned low = have >> i & 1, high = have >> (i + w) & 1;
            list->add[adds][0] = at[i];
            list->add[adds][1] = at[i + w];
            adds += (int)(low & high);
            at[i] = low ? at[i] : at[i + w];
            have |= high << i;
        }
    list->last[b] = at[0];
    list->sums = sums;
    list->adds = adds;
}

/* The key at pos, which is in a segment: fetched now, moved with its tile. */
static void swa__gather_one(swa__gather *x, const swa__room *room, int segment, int64_t pos) {
    const swa__source *src = swa__seek(&x->in, segment);
    const int64_t row = src->first + (pos - src->pos);
    int i;

    for (i = 0; i < SWA__OPERANDS && x->first; i++) {
        const swa__operand *y = &src->x[i];
        if (y->dim > 0 && !y->tiled)
            swa__rows_ahead(y->p + row * y->row, 1, 0, y->dim * (int)y->size, 64);
    }
    /* its page again: with the others of its tile, not one after the other as the tile is made */
    if (!x->first) SWA__PREFETCH_L1(swa__operand_at(&src->x[SWA__K], 0, row));
    x->tile.segment[x->tile.n] = segment;
    x->tile.row[x->tile.n++] = row;
    if (x->tile.n == SWA__TILE) swa__gather_tile(x, room);
}

/* 16 keys from pos on: if they lie together in a ring, a tile in place. */
static int swa__gather_slots(swa__gather *x, const swa__room *room, int segment, int64_t pos) {
    const swa__source *src = swa__seek(&x->in, segment);
    swa__tile *tile;
    swa__spot to;

    if (!src->x[SWA__K].tiled || src->pos > pos || src->end < pos + SWA__TILE) return 0;
    swa__gather_tile(x, room);
    tile = &x->b.tile[x->b.list->n / SWA__TILE];
    swa__spot_of(x->in.keys, room, x->b.list->n / SWA__TILE, &to);
    src = swa__seek(&x->in, segment);
    swa__tile_slots(x->in.keys, src, src->first + (pos - src->pos), 0, SWA__TILE, &to, tile);
    return 1;
}

/* How many keys there may be with those of one more block: whole tiles begin one. */
static int swa__gather_most(int n, const uint64_t seen[4]) {
    const uint64_t ones = 0x0001000100010001u;
    int w, c;

    for (w = 0; w < 4; w++) {
        uint64_t bits = seen[w];         /* how many there are of each 16: by two, by four, ... */
        bits -= bits >> 1 & 0x5555555555555555u;
        bits = (bits & 0x3333333333333333u) + (bits >> 2 & 0x3333333333333333u);
        bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0fu;
        bits = (bits + (bits >> 8)) & ones * 31;
        if ((bits & ones * SWA__TILE) == 0) n += (int)(bits * ones >> 48);
        else for (c = 0; c < 64; c += 16) {
            const int keys = (int)(bits >> c & 31);
            n = (keys == SWA__TILE ? (int)swa__round16(n) : n) + keys;
        }
    }
    return n;
}

/* Towards the end where they fill the kernel's last step. The first batch, whose keys nothing has
   fetched, is small: while it is computed, the second's come. */
static int swa__gather_full(const swa__gather *x) {
    const int n = x->b.list->blocks, most = x->first ? SWA__LIST_BLOCKS / 4 : SWA__LIST_BLOCKS;
    return n >= most || (n > most * 3 / 4 && x->b.list->n % 8 == 0);
}

/* The keys of one block that exist; sinks: the end of those with a q of their own. */
static void swa__gather_block(swa__gather *x, const swa__room *room, int64_t pos,
                              const uint64_t seen[4], int64_t sinks) {
    const swa__keys *keys = x->in.keys;
    swa__list *list = x->b.list;
    int c, i, s = swa__find(keys, pos);
    const int from = list->n;

    for (c = 0; c < SWA_BLOCK; c += SWA__TILE) {
        const unsigned bits = (unsigned)(seen[c / 64] >> (c % 64)) & 0xffffu;
        unsigned left;
        if (bits == 0) continue;
        s = swa__find_on(keys, s, pos + c);
        if (s == keys->n_kv) break;
        /* a whole tile's keys are named like all others, only not moved */
        if (bits == 0xffffu && swa__gather_slots(x, room, s, pos + c)) {
            swa__gather_keys(x, pos + c, SWA__TILE, sinks);
            continue;
        }
        for (left = bits; left != 0; left &= left - 1) {
            i = c + swa__low_bit(left);
            s = swa__find_on(keys, s, pos + i);
            if (s == keys->n_kv || keys->kv[s].pos > pos + i) continue;
            swa__gather_keys(x, pos + i, 1, sinks);
            swa__gather_one(x, room, s, pos + i);
        }
    }

    /* a block of which no key exists is none */
    list->start[list->blocks] = from;
    list->blocks += list->n > from;
    list->start[list->blocks] = list->n;
}

/* What has been gathered, made ready for the kernel. */
static void swa__gather_done(const swa__job *j, const swa__scratch *w, swa__gather *x) {
    swa__list *list = x->b.list;
    int i, t;

    /* before the last tile is filled up: what is no key is not computed */
    list->keys = list->n;
    swa__gather_tile(x, &w->room);
    for (t = 0; t < list->n && !swa__list_long(&x->b); t += SWA__TILE)
        for (i = 0; i < SWA__TILE; i++)
            list->v[t + i] = (const float *)x->b.tile[t / SWA__TILE].v + i * j->geo.v_along;
    list->sums = list->adds = 0;
    for (t = 0; t < list->blocks; t++) swa__gather_sums(list, t);
    /* the kernel takes four keys at a time: those behind the last one are like it */
    for (t = list->keys; t < list->n; t++) {
        list->block[t] = list->block[list->keys - 1];
        list->to[t] = list->to[list->keys - 1];
    }
}

/* It goes through the kernel. What is fetched meanwhile is listed in `want`, from number e on. */
static void swa__gather_run(const swa__job *j, const swa__unit *u, const swa__scratch *w,
                            const swa__wanted *want, int64_t e, swa__gather *x) {
    swa__sight l;

    swa__no_fetch(&x->b, 0, SWA_BLOCK / SWA__TILE);
    /* before the kernel, which fetches on its way what comes next */
    swa__gather_next(want, x, e, (u->n + j->call->kr->nr - 1) / j->call->kr->nr);
    x->first = 0;
    swa__block_many(j, u, w, &x->b, &l);
    swa__gather_clear(x);
}

/* A unit whose rows, all of one token, have a list. */
static void swa__unit_listed(const swa__job *j, const swa__unit *u, const swa__scratch *w) {
    const int t = u->r0 / j->call->group;
    uint64_t seen[4];
    int64_t at;
    swa__wanted want = swa__wanted_of(j, u->h, t, w->listed);
    swa__gather x;

    swa__unit_begin(j, u, w, &x.b);
    swa__gather_begin(j, u, w, 0, &x);
    x.b.pos = 0;
    x.q = j->pos + t;
    for (at = swa__wanted_block(j, &want, 0, seen); at >= 0;
         at = swa__wanted_block(j, &want, at + 1, seen)) {
        /* a block is never torn: where it may not fit, what there is goes first */
        if (swa__gather_full(&x) || swa__gather_most(x.b.list->n, seen) > SWA_BLOCK) {
            swa__gather_done(j, w, &x);
            swa__gather_run(j, u, w, &want, at * SWA_BLOCK >> want.shift, &x);
        }
        swa__gather_block(&x, &w->room, at * SWA_BLOCK, seen,
                          swa__has_q_sink(j) ? swa__min64(want.sinks, want.lo) : 0);
    }
    if (x.b.list->blocks > 0) {          /* the rest. Behind it comes the next head's list        */
        const int h = u->h + 1, more = h < j->keys.shape.n_kv_heads;
        swa__gather_done(j, w, &x);
        if (more) {
            x.in = swa__cursor_at(&j->keys, h);
            want = swa__wanted_of(j, h, t, w->listed);
        }
        swa__gather_run(j, u, w, &want, more ? 0 : INT64_MAX, &x);
    }
    swa__unit_end(j, u, w);
}

/* After the keys of history, the nodes of w->listed: one block of a tree. */
static void swa__gather_nodes(const swa__job *j, const swa__scratch *w, swa__gather *x) {
    swa__list *list = x->b.list;
    int32_t i;

    for (i = 0; i < j->n; i++) {
        const int64_t at = j->pos + i;   /* where it is found */
        int64_t pos;
        if ((w->listed[i / 64] >> (i & 63) & 1) == 0) continue;
        /* it lies in the slot of pos + i, and stands at pos + its depth */
        pos = j->pos + swa__depth(j->parents, i);
        list->node[list->n] = i;
        swa__gather_keys(x, pos, 1, j->window.n_sink);
        swa__gather_one(x, &w->room, swa__find(x->in.keys, at), at);
    }
    list->n_nodes = list->n - list->nodes;
    list->blocks = list->n > 0;
    list->start[0] = 0;
    list->start[1] = list->n;
    swa__gather_done(j, w, x);
}

/* A unit of a tree: what is left for its rows, from the block of the first node on. */
SWA__NOINLINE void swa__unit_tree(const swa__job *j, const swa__unit *u, const swa__scratch *w) {
    const int t0 = u->r0 / j->call->group, end = (u->r0 + u->n - 1) / j->call->group + 1;
    int64_t lo = w->lo[0], hi = w->hi[0], left;
    swa__gather x;
    swa__picked last;
    swa__sight l;
    int t, sinks, space;

    swa__block_begin(j, &x.b);
    swa__gather_begin(j, u, w, 1, &x);
    x.q = j->keys_to;

    SWA__ROLLED for (t = t0 + 1; t < end; t++) {
        lo = swa__min64(lo, w->lo[t - t0]);
        hi = swa__max64(hi, w->hi[t - t0]);
    }

    for (left = hi - j->keys_to; left > 0; left -= SWA_BLOCK) { /* the last may end past INT64_MAX */
        uint64_t seen[4] = { 0, 0, 0, 0 };
        x.b.pos = hi - left;
        /* history in this block: of the window, and the sinks; which row sees what is masked */
        swa__bits_set(seen, lo - x.b.pos, j->pos - x.b.pos);
        swa__bits_set(seen, j->keys_from - x.b.pos, swa__min64(j->window.n_sink, j->pos) - x.b.pos);
        swa__gather_clear(&x);
        swa__gather_block(&x, &w->room, x.b.pos, seen, j->window.n_sink);

        /* then nodes, as many tokens' paths at a time as there is room for */
        space = SWA_BLOCK - x.b.list->n;
        sinks = x.b.list->sinks;
        last = x.tile;                   /* what the first nodes will share a tile with */
        for (t = t0; t < end; t = x.b.list->until) {
            x.b.list->from = t;
            x.b.list->until = swa__paths_fit(j, w, t0, t, end, x.b.pos, space);
            x.b.list->n = x.b.list->nodes = SWA_BLOCK - space;
            x.b.list->sinks = sinks;
            x.tile = last;
            swa__gather_nodes(j, w, &x);
            if (x.b.list->n == 0) continue;
            swa__nodes_count(j, x.b.list);
            swa__block_many(j, u, w, &x.b, &l);
        }
    }
}
#endif
/* What each token of a unit sees through the window. */
static void swa__unit_windows(const swa__job *j, int t0, int tokens, const swa__scratch *w) {
    int t;
    for (t = 0; t < tokens; t++) {
        if (SWA__LISTS && j->parents != NULL) swa__node_window(j, t0 + t, &w->lo[t], &w->hi[t]);
        else swa__window_of(j, t0 + t, &w->lo[t], &w->hi[t]);
    }
}

/* Tiles of all KV heads of a unit; nothing is fetched for so few. */
static void swa__heads_stage(const swa__unit *u, swa__cursor *in, const int range[4],
                             const swa__room *room, swa__block *b) {
    b->heads = u->heads;
    b->apart = (range[3] + SWA__TILE - 1) / SWA__TILE + 1 - range[0] / SWA__TILE;
    for (; in->h < u->h + u->heads; *in = swa__cursor_at(in->keys, in->h + 1), b->skip += b->apart)
        swa__stage(in, range, room, b);
    b->t0 = b->t1 = 0;
    swa__no_fetch(b, range[0] / SWA__TILE, range[0] / SWA__TILE + b->skip);
}

/* Block number `at` as tiles, in the form that its rows multiply, and what is fetched while they
   do. last: the unit's last token, counted from its first. */
static void swa__block_stage(swa__part *p, const swa__unit *u, swa__cursor *in, int last,
                             int64_t at, const swa__sight *l, swa__block *b) {
    const swa__job *j = &p->job;
    const swa__call *call = p->call;
    const swa__room *room = &p->w->room;
    const int expand = swa__expands(call);
    int range[4];

    /* keys of both intervals, none twice */
    swa__ranges(l, 1, range);
    if (u->heads > 1) {
        swa__heads_stage(u, in, range, room, b);
        return;
    }
    if (expand) call->ops->stage(call->ops->user, &j->keys, u->h, range, room, b);
    else swa__stage(in, range, room, b);
#if SWA__BF16
    /* its forms are made of what was staged, whoever did it */
#if SWA__AMX
    if (j->geo.form == SWA__TILE_AMX) swa__stage_amx(&j->geo, range, room, b);
    else
#endif
#if SWA__AVX2 || SWA__AVX512
    if (j->geo.rounds || (j->geo.form == SWA__PAIRS && j->few))
        swa__stage_edges(&j->geo, range, room, b);
    else
#endif
#if SWA__AVX512_DOT
    if (j->geo.form == SWA__PAIRS) swa__stage_pairs(&j->geo, range, room, b);
    else
#endif
    if (j->geo.form == SWA__SINGLES) swa__stage_singles(call, &j->geo, range, room, b);
    else if (j->geo.form != SWA__PLAIN) swa__stage_bf16(call, j->geo.form, range, room, b);
#endif

    swa__unit_tiles(p->w, last, b->pos, &b->t0, &b->t1);
    /* what another's stage will read is not known here; a stream fetches nothing */
    if (expand || b->stream) swa__no_fetch(b, b->t0, b->t1);
    else swa__look_ahead(p, u, last, at, b);
}

/* ---- woven units ---- */

/* Rows of the caller's lie as [n][n_kv_heads][dims], as a rule. One head after the other, a unit reads
   512 bytes in every 4 KB (8 heads of 128 in f32): the CPU fetches what is around them in vain, and
   all of them share so few sets of a cache that none is there when it is wanted (Skylake: 0.3 of
   what DRAM gives; in pieces of all heads 0.64). So several heads are strands of one unit, and take
   turns:

       K of keys 0..15     head 0: q.k -> s of head 0     head 1: q.k -> s of head 1     ...
       K of keys 16..31    head 0                         head 1                         ...
       ...
       of all heads        scores -> p
       V of keys 0..15     head 0: p.v -> o of head 0     head 1                         ...
       ...

   Each has q, s, o, m and l of its own, and the arithmetic is that of few rows. Of narrow types a
   slice is two tiles, of 16 bits as many bytes (0.93 of one's time). Nothing is fetched: memory
   is read in the order in which it lies, which Intel's CPUs see by themselves. */
typedef struct {
    swa__unit u;                         /* of one KV head                                        */
    swa__scratch w;                      /* where its rows lie: o, m, l and those of one block
                                            among all rows of the scratch, s behind q             */
    swa__cursor in;
} swa__strand;

static void swa__strand_make(const swa__job *j, const swa__unit *u, const swa__scratch *w, int i,
                             swa__strand *x) {
    const int each = swa__strand_rows(u->n), row = i * each, all = u->heads * each;
    const size_t dkt = (size_t)(j->geo.dk + j->geo.dt), dvp = (size_t)j->geo.dvp;
    /* of 16 rows those of the sinks' own q lie behind the others */
    const int sum = row / SWA__FEW * (2 * SWA__FEW) + row % SWA__FEW;

    x->u = *u;
    x->u.heads = 1;
    x->u.h += i;
    if (u->partial != NULL) x->u.partial += (size_t)i * (size_t)j->rows * u->partial_row;
    x->in = swa__cursor_at(&j->keys, x->u.h);

    x->w = *w;
    x->w.q += (size_t)row * dkt;
    if (swa__has_q_sink(j)) x->w.q_sink += (size_t)row * dkt;
    x->w.s = w->q + swa__pad16(all * (int)dkt) + (size_t)sum * SWA_BLOCK;
    x->w.o += (size_t)row * dvp;
    x->w.m += row;
    x->w.l += row;
    x->w.ob = w->o + (size_t)(all + row) * dvp;
    x->w.mb = w->m + all + row;
    x->w.lb = w->l + all + row;
}

/* q.k or p.v of all strands with a block, slice by slice. l: of the block. */
SWA__NOINLINE void swa__woven_step(swa__part *p, int heads, int step, const swa__sight *l,
                                   swa__strand *x, swa__block *b) {
    const swa__job *j = &p->job;
    const swa__room *room = &p->w->room;
    const int keys = swa__k_type(j->keys.kv) == SWA_F32 ? SWA__TILE : 2 * SWA__TILE;
    int h, k, w, range[4];
    swa__sight slice;                    /* the intervals, which these steps ask for, and no more */
    swa__tile *t;

    b->steps = step;
    for (k = 0; k < SWA_BLOCK; k += keys) {
        for (w = 0; w < 2; w++) {
            slice.lo[w] = l->lo[w] > k ? l->lo[w] : k;
            slice.hi[w] = swa__min(l->hi[w], k + keys);
        }
        swa__ranges(&slice, 1, range);
        if (range[0] == range[3]) continue;

        for (h = 0; h < heads; h++) {
            x[h].in.only = step == SWA__STEP_PV ? 1 << SWA__V : 1 << SWA__K | 1 << SWA__TAIL;
            swa__stage(&x[h].in, range, room, b);
            /* what q.k fetches as V: what it reads */
            for (w = range[0]; w < range[3] && step == SWA__STEP_QK; w = swa__tile_end(w, range[3])) {
                t = &b->tile[w / SWA__TILE];
                t->v = t->k;
                t->v_type = t->k_type;
                t->v_token = j->geo.dvp;
            }
            swa__block_steps(j, &x[h].u, &x[h].w, b, &slice, 0);
        }
    }
}

SWA__NOINLINE void swa__woven_run(swa__part *p, const swa__unit *u) {
    const swa__job *j = &p->job;
    const size_t bytes = (size_t)u->n * (size_t)j->geo.dvp * sizeof(float);
    int64_t at = u->at;
    /* 8 KB of 32, where one unit's scores would be */
    swa__strand *x = (swa__strand *)(void *)p->w->s;
    swa__block b;
    swa__sight l;
    int h, i;

    for (h = 0; h < u->heads; h++) {
        swa__strand_make(j, u, p->w, h, &x[h]);
        swa__unit_begin(j, &x[h].u, &x[h].w, &b);
        /* the first block is folded into an empty row, as in phase 1 */
        memset(x[h].w.o, 0, bytes);
    }

    for (i = 0; i < u->blocks; i++, at = swa__block_from(&j->keys, &u->list, at + 1)) {
        swa__block_begin(j, &b);
        b.pos = at * SWA_BLOCK;
        b.t0 = b.t1 = 0;
        swa__sight_make(j, &x[0].u, &x[0].w, 0, u->n, b.pos, &l);
        swa__woven_step(p, u->heads, SWA__STEP_QK, &l, x, &b);
        b.steps = SWA__STEP_P;
        for (h = 0; h < u->heads; h++) {
            /* heads see the same, but each has its slope and bias */
            if (h > 0 && l.mods) swa__sight_make(j, &x[h].u, &x[h].w, 0, u->n, b.pos, &l);
            swa__block_steps(j, &x[h].u, &x[h].w, &b, &l, 0);
            memset(x[h].w.ob, 0, bytes);
        }
        swa__woven_step(p, u->heads, SWA__STEP_PV, &l, x, &b);
        for (h = 0; h < u->heads; h++) swa__block_end(j, &x[h].u, &x[h].w);
    }
    for (h = 0; h < u->heads && u->partial == NULL; h++) swa__unit_end(j, &x[h].u, &x[h].w);
}

/* All blocks of a unit, folded into its rows' results; of a split, its one block. */
static void swa__unit_run(swa__part *p, const swa__unit *u) {
    const swa__job *j = &p->job;
    const swa__scratch *w = p->w;
    const int group = p->call->group, t0 = u->r0 / group, last = (u->r0 + u->n - 1) / group - t0;
    int64_t at = u->at, next;
    swa__cursor in = swa__cursor_at(&j->keys, u->h);
    swa__block b;
    swa__sight l;
    int i;
#if SWA__LISTS
    if (p->call->a.pick != NULL) {
        swa__unit_listed(j, u, w);
        return;
    }
#endif
    swa__unit_windows(j, t0, last + 1, w);
    if (u->heads > 1 && j->woven > 1) {
        swa__woven_run(p, u);
        return;
    }
    swa__unit_begin(j, u, w, &b);
    /* a place ahead holds as long as units follow one another as the heads do */
    if (u->h == 0 && u->at == swa__block_from(&j->keys, &u->list, 0)) p->ahead.in.h = -1;

    for (i = 0; i < u->blocks; i++, at = next) {
        b.pos = at * SWA_BLOCK;
        next = i + 1 < u->blocks ? swa__block_from(&j->keys, &u->list, at + 1) : -1;
        b.next_pos = next < 0 ? -1 : next * SWA_BLOCK;
        if (j->few) swa__sight_make(j, u, w, 0, u->n, b.pos, &l);
        else swa__interval_of(j, u, w, 0, u->n, b.pos, &l); /* its panels see for themselves */
        swa__block_stage(p, u, &in, last, at, &l, &b);
        if (j->few) swa__block_few(j, u, w, &b, &l);
        else swa__block_many(j, u, w, &b, &l);
    }
#if SWA__LISTS
    if (j->parents != NULL) swa__unit_tree(j, u, w);
#endif
    if (u->partial == NULL) swa__unit_end(j, u, w);
}

/* ---- a phase: its units, dealt out to parts ---- */

/* Every part makes the same cut, walks the same units in the same order, and runs those that fall
   into its share of the cost: nothing is handed out, no part waits for another, and phase 1 finds
   every partial result by counting.

       costs      |  u0  |u1|   u2   |  u3  |u4|       one unit after the other
       shares     |     0     |     1      |           a unit goes to where its middle lies: u0, u1
                                                       to part 0, u2 to u4 to part 1 */

/* How a phase is cut: rows of a unit in each shape, whether each block is a unit of its own,
   whether KV heads with few keys are together, and how many may be woven. */
typedef struct { int few, many, split, together, woven; } swa__cut;

/* KV heads of a unit: woven, or with few keys together (no job is both), or one. */
static int swa__cut_heads(const swa__job *j, const swa__cut *cut) {
    const int woven = swa__min(j->woven, cut->woven);
    return woven > 1 ? woven : cut->together ? j->heads : 1;
}

/* Units of a cut: what phase 0 walks. In double, as partial results below: there may be more than an
   int64 counts. */
static double swa__units(swa__part *p, const swa__cut *cut) {
    double units = 0;
    int i;

    for (i = 0; i < p->call->n_jobs; i++) {
        const swa__job *j = swa__job_of(p, i);
        const int most = j->few ? cut->few : cut->many, heads = p->call->shape.n_kv_heads,
                  each = swa__cut_heads(j, cut);
        if (j->rows == 0) continue;
        /* a token with a list is a unit, or several; its keys are never split */
        if (swa__listed(p->call))
            units += (double)j->n * ((p->call->group + most - 1) / most) * heads;
        else
            units += (double)(((int64_t)j->rows + most - 1) / most) * ((heads + each - 1) / each)
                   * (cut->split ? j->all.n : 1);
    }
    return units;
}

/* Whether there is room for the partial results that phase 1 folds, if keys are split: a row keeps
   one of each block of its job, seen or not. */
static int swa__split_fits(swa__part *p) {
    double partials = 0;
    int i;

    for (i = 0; i < p->call->n_jobs; i++) {
        const swa__job *j = swa__job_of(p, i);
        partials += (double)j->rows * p->call->shape.n_kv_heads * j->all.n;
    }
    return partials <= (double)p->call->split_rows;
}

/* Rows cut until every part has one share, all alike. 0 if they cannot be: several runs, or queries
   that see less, as the first ones of a causal window. */
static int swa__cut_even(swa__part *p, swa__cut *cut) {
    const int nr = p->call->kr->nr;
    const swa__cut whole = *cut;
    const swa__job *j;
    double units;

    if (p->call->n_jobs != 1) return 0;
    j = swa__job_of(p, 0);
    if (j->n == 0 || j->few || swa__form_of(&j->geo) == SWA__TILE_SINGLES
        || swa__form_of(&j->geo) == SWA__TILE_PAIRS)
        return 0;
    /* the first query sees about as much as the last: then equal rows are equal work */
    if ((double)swa__keys_seen(j, 0) < 0.9 * (double)swa__keys_seen(j, j->n - 1)) return 0;
    for (;; cut->many = (cut->many / nr + 1) / 2 * nr) {
        units = swa__units(p, cut);
        /* as many for each part, and no smaller one at the end */
        if (units >= p->parts && (int64_t)units % p->parts == 0 && j->rows % cut->many == 0)
            return 1;
        if (cut->many <= nr || units >= p->parts) break;
    }
    *cut = whole;
    return 0;
}

/* Fewer rows to a unit, until there are so many units; returns how many there are. */
static double swa__cut_rows(swa__part *p, swa__cut *cut, double least) {
    const int nr = p->call->kr->nr;
    double units = swa__units(p, cut);
    for (; units < least && cut->many > nr; units = swa__units(p, cut))
        cut->many = (cut->many / nr + 1) / 2 * nr;
    return units;
}

/* Rows of the caller's: each block by itself, of as many KV heads as leave four units per part. 0 if
   there is no room for the results, or no head to weave. */
static int swa__cut_woven(swa__part *p, swa__cut *cut) {
    cut->split = 1;
    for (; p->call->rows != NULL && cut->woven > 1; cut->woven /= 2) {
        cut->woven = swa__min(cut->woven, swa__job_of(p, 0)->woven);
        if (cut->woven > 1 && swa__units(p, cut) >= 4.0 * p->parts && swa__split_fits(p)) return 1;
    }
    cut->woven = 1;
    cut->split = 0;
    return 0;
}

/* Units as large as may be, because their rows share a staged block, and yet enough of them that
   the parts' shares come out alike: four per part, or one of the same size for each. Where there
   are fewer, keys are split before rows are. Woven units are always split where parts are several:
   memory counts more than the fold. */
static swa__cut swa__cut_make(swa__part *p) {
    const int nr = p->call->kr->nr, parts = p->parts;
    swa__cut cut;
    double units;

    /* as many rows as q and o have room for, without the panel that fills the last one up */
    cut.few = SWA__FEW;
    cut.many = (p->w->rows - SWA__PANEL) / nr * nr;
    cut.split = 0;
    cut.together = 1;
    cut.woven = SWA__STRANDS;
    if (parts == 1 || swa__cut_woven(p, &cut)) return cut;
    if (swa__listed(p->call)) {          /* rows that share a list gather it once */
        (void)swa__cut_rows(p, &cut, parts);
        return cut;
    }
    if (swa__units(p, &cut) >= 4.0 * parts) return cut;
    cut.together = 0;
    if (swa__units(p, &cut) >= 4.0 * parts || swa__cut_even(p, &cut)) return cut;

    /* by keys: nobody stages what another has staged. Without trees: what those gather is no block
       of the list */
    cut.split = !p->call->trees && swa__split_fits(p);
    units = swa__cut_rows(p, &cut, 4.0 * parts);
    /* few rows at last: they share K and V, which come from memory once for all of them */
    for (; units < parts && cut.few > 1; units = swa__units(p, &cut)) cut.few /= 2;
    return cut;
}

/* Roughly the keys that the unit's rows see, times rows; few rows cost as much as some more, for
   their bandwidth. */
static double swa__cost(const swa__job *j, const swa__unit *u) {
    const int first = u->r0 / j->call->group, last = (u->r0 + u->n - 1) / j->call->group;
    double keys;
    if (swa__listed(j->call)) return u->n + 8.0;      /* lists are taken to be alike */
    keys = ((double)swa__keys_seen(j, first) + (double)swa__keys_seen(j, last)) / 2 + 64.0;
    /* of a split one block's share */
    return 1.0
         + (j->few ? u->n + 8.0 : (double)u->n) * keys * u->heads * u->blocks
               / (u->list.n > 0 ? u->list.n : 1);
}

/* A unit belongs to the part in whose share of the total cost its middle lies. The last share has
   no end, for a unit so small beside the others that its middle rounds to the total. */
typedef struct { double total, at; } swa__costs;

static void swa__unit_deal(swa__part *p, const swa__unit *u, swa__costs *share) {
    const double cost = p->parts > 1 ? swa__cost(&p->job, u) : 0;
    const double middle = (share->at + cost / 2) * p->parts;

    share->at += cost;
    if (share->total < 0) return;        /* only adding up */
    /* the same numbers in every part, added in the same order: each unit has one owner */
    if (middle >= share->total * p->part
        && (p->part + 1 == p->parts || middle < share->total * (p->part + 1)))
        swa__unit_run(p, u);
}

/* A unit of a split, each block by itself: its results wait for phase 1, as [head][row][block], so
   that a row's stand side by side for the fold. base: the job's first one. */
static void swa__unit_split(swa__part *p, swa__unit *u, size_t base, swa__costs *share) {
    const swa__job *j = &p->job;
    const size_t blocks = (size_t)j->all.n,
                 row = base + ((size_t)u->h * (size_t)j->rows + (size_t)u->r0) * blocks;
    float *split = (float *)(void *)p->call->split;
    size_t b;

    u->blocks = 1;
    u->partial_row = swa__partial_bytes(&p->call->shape) / sizeof(float) * blocks;
    for (b = 0, u->at = -1; b < blocks; b++) {
        u->at = swa__block_from(&j->keys, &u->list, u->at + 1);
        u->partial = split + (row + b) * (u->partial_row / blocks);
        swa__unit_deal(p, u, share);
    }
}

/* All units of one job, in a fixed order: the same rows of one KV head after the other, for what a
   token has of q, out, K and V lies side by side (W=1024: 0.96 of the time of head by head, which
   goes through these pages once for each). Lists of neighbouring tokens share keys: there head by
   head. base: its first partial result. */
static void swa__job_units(swa__part *p, const swa__cut *cut, size_t base, swa__costs *share) {
    const swa__job *j = &p->job;
    const int most = j->few ? cut->few : cut->many, listed = swa__listed(p->call),
              group = p->call->group, heads = p->call->shape.n_kv_heads;
    swa__unit u;

    u.list = j->all;
    u.partial = NULL;
    u.h = u.r0 = 0;

    while (u.h < heads && u.r0 < j->rows) {
        u.n = swa__min(j->rows - u.r0, most);
        /* of one token */
        if (listed) u.n = swa__min(u.n, group - u.r0 % group);
        u.heads = swa__min(swa__cut_heads(j, cut), heads - u.h);
        if (cut->split) {
            swa__unit_split(p, &u, base, share);
        } else {
            /* the blocks that these rows touch; a tree's nodes do not ascend in position, so that
               its list stays */
            if (u.n < j->rows && !listed && j->parents == NULL)
                u.list = swa__blocks_of(j, u.r0 / group, (u.r0 + u.n - 1) / group);
            u.blocks = u.list.n;
            u.at = swa__block_from(&j->keys, &u.list, 0);
            swa__unit_deal(p, &u, share);
        }

        if (listed) u.r0 += u.n;
        else u.h += u.heads;
        if (u.h == heads) {
            u.h = 0;
            u.r0 += u.n;
        } else if (u.r0 == j->rows) {
            u.r0 = 0;
            u.h++;
        }
    }
}

static size_t swa__job_partials(const swa__job *j) {
    return (size_t)j->rows * (size_t)j->call->shape.n_kv_heads * (size_t)j->all.n;
}

/* Phase 0: all units of the call. Where several parts share them their costs are added up first. */
static void swa__attend_units(swa__part *p, const swa__cut *cut) {
    swa__costs share;
    int pass, i;

#if SWA__AMX
    if (p->call->geo.form == SWA__TILE_AMX) swa__amx_open();
#endif
    /* pass 0 adds the costs up, pass 1 deals; a part that is alone takes all */
    for (pass = p->parts > 1 ? 0 : 1; pass < 2; pass++) {
        size_t base = 0;
        share.total = pass == 0 ? -1 : p->parts > 1 ? share.at : 0;
        share.at = 0;
        for (i = 0; i < p->call->n_jobs; i++) {
            const swa__job *j = swa__job_of(p, i);
            swa__job_units(p, cut, base, &share);
            base += swa__job_partials(j);
        }
    }
#if SWA__AMX
    if (p->call->geo.form == SWA__TILE_AMX) swa__amx_close();
#endif
}

/* Folds the partial results of split rows, in order of position; rows are dealt out evenly. In phase
   0, under audit: the rows that it will fold are NaN until then. */
static void swa__fold_rows(swa__part *p, int phase) {
    const size_t size = swa__partial_bytes(&p->call->shape) / sizeof(float),
                 dvp = (size_t)p->call->geo.dvp;
    const float *at = (const float *)(const void *)p->call->split;
    const swa__scratch *w = p->w;
    int i, h, r, b;

    for (i = 0; i < p->call->n_jobs; i++) {
        const swa__job *j = swa__job_of(p, i);
        int64_t number = 0;
        for (h = 0; h < p->call->shape.n_kv_heads; h++)
            for (r = 0; r < j->rows; r++, number++, at += (size_t)j->all.n * size) {
                const swa__total to = { w->o, w->m, w->l };
                const float *partial = at;
                /* all rows of a job fold as many results: any order of dealing is even */
                if (number % p->parts != p->part) continue;
                memset(w->o, phase == 0 ? 0xff : 0, dvp * sizeof(float));
                swa__rows_clear(1, w->m, w->l);
                /* the first one goes into an empty row, as in a unit that folds as it goes */
                for (b = 0; b < j->all.n && phase > 0; b++, partial += size)
                    p->call->kr->fold(1, j->geo.dvp, &to, partial, partial + dvp,
                                      partial + dvp + 1);
                swa__rows_out(j, h, 1, r, 1, w);
            }
    }
}

/* ---- store: the new rows go into the ring, from operands into operands ---- */

/* After all have attended: slots are overwritten that this step's queries still needed. A row is
   rounded once more from the caller's f32, to the same numbers that were attended:

       V          rows of a tile, rounded into the stage, narrowed, into slots of the ring as rows
       K, tail    16 rows of a whole tile: transposed by the stage, then written as one piece;
                  fewer (decode: one), or K in rows: number by number, to where each one lies
       staged     of all three the bytes, number by number

   The parts take KV heads, so that no two write one tile. A part goes through all of its heads tile
   by tile, since a token's rows lie side by side: 0.99 of the time of 512 tokens, store and all. */

/* What is stored for one run: this step's rows into the ring, of the KV head that both have come
   to. past: whole tiles go past the caches. */
typedef struct {
    const swa__keys *keys;
    swa__source from, ring;
    swa__spot spot;
    int past;
} swa__store;

/* n rows of K or tail, from row `row` on, into slots of one tile, or into rows: each is rounded and
   narrowed beside the stage, and then dealt out over the dims. */
static void swa__numbers_out(const swa__store *s, int which, int64_t row, int64_t slot, int n) {
    const swa__operand *from = &s->from.x[which], *to = &s->ring.x[which];
    const size_t pad = swa__pad16(to->dim);
    float *wide = s->spot.row, scale;
    unsigned char *narrow = (unsigned char *)(wide + pad);

    for (; n > 0; n--, row++, slot++) {
        /* as the type will hold it, and then in the type */
        s->keys->kr->round((int)to->type, from->p + row * from->row, SWA_F32, to->dim, wide,
                           &scale);
        s->keys->kr->narrow((int)to->type, wide, narrow, pad);
        swa__numbers(swa__operand_at(to, 0, slot), to->step, narrow, (int64_t)to->size, to->dim,
                     to->size);
        if (to->scale != NULL) *((float *)(uintptr_t)to->scale + slot) = scale;
    }
}

/* The same in a staged type, of K, tail or V. */
SWA__NOINLINE void swa__staged_out(const swa__store *s, int which, int64_t row, int64_t slot,
                                   int n) {
    const swa__operand *from = &s->from.x[which], *to = &s->ring.x[which];
    unsigned char *bytes = (unsigned char *)s->spot.row;
    int d;

    for (; n > 0; n--, row++, slot++) {
        const float *src = (const float *)(const void *)(from->p + row * from->row);
        float *scale = swa__operand_scale(to, 0, slot), one;
        for (d = 0; d < to->dim; d += 32) {
            swa__staged_bytes((int)to->type, src + d, swa__min(32, to->dim - d), bytes + d, &one);
            if (scale != NULL) scale[d / 32 * to->slots] = one;
        }
        swa__numbers(swa__operand_at(to, 0, slot), to->step, bytes, 1, to->dim, 1);
    }
}

/* Many new rows are read next when all other layers have been: written past the caches they need
   not be read before they are written. Zen 3 takes 0.6 to 0.77 of the time of 512 rows in f32. */
static int swa__stores_past(const swa__keys *keys, int64_t rows) {
    return SWA__X86 && rows >= SWA_BLOCK && keys->kr != swa__kernels_of(SWA_ISA_SCALAR);
}

#if SWA__X86
static void swa__copy_past(void *to, const void *from, size_t bytes) {
    size_t i;
    for (i = 0; i < bytes; i += 16)
        _mm_stream_si128((__m128i *)((char *)to + i),
                         _mm_load_si128((const __m128i *)((const char *)from + i)));
}
#endif

/* n rows of one operand into slots of one tile: V, and K or tail of all 16, by way of the stage. */
static void swa__tile_out(swa__store *s, int which, int64_t row, int64_t slot, int n) {
    const swa__operand *to = &s->ring.x[which];
    const int a = (int)(slot & (SWA__TILE - 1));
    const float *in = s->spot.x[which];
    unsigned char *out = (unsigned char *)(uintptr_t)to->p + slot * to->row;
    size_t numbers = SWA__TILE * (size_t)to->dim;

    swa__keys_in(s->keys, &s->from, which, row, a, a + n, &s->spot);
    /* so many rows; of K and tail it is all 16 */
    if (which == SWA__V) {
        in += a * s->spot.dvp;
        numbers = (size_t)n * (size_t)s->spot.dvp;
    }
#if SWA__X86
    /* whole lines, or they are written by parts */
    if (s->past && n == SWA__TILE && ((uintptr_t)out & 63) == 0) {
        if (to->type != SWA_F32) {
            s->keys->kr->narrow((int)to->type, in, s->spot.row, numbers);
            in = s->spot.row;
        }
        swa__copy_past(out, in, numbers * to->size);
    } else
#endif
    s->keys->kr->narrow((int)to->type, in, out, numbers);
    if (to->scale != NULL)
        memcpy((float *)(uintptr_t)to->scale + slot, s->spot.scale[which] + a,
               (size_t)n * sizeof(float));
}

/* n rows of one KV head, from row `row` on, into slots of one tile. */
static void swa__store_tile(swa__store *s, int64_t row, int64_t slot, int n) {
    int i;

    for (i = 0; i < SWA__OPERANDS; i++) {
        if (s->ring.x[i].dim == 0) continue;
        if (SWA__IS_STAGED(s->ring.x[i].type)) swa__staged_out(s, i, row, slot, n);
        else if (i == SWA__V || (n == SWA__TILE && s->ring.x[i].tiled))
            swa__tile_out(s, i, row, slot, n);
        else swa__numbers_out(s, i, row, slot, n);
    }
}

/* The run's rows of every `parts`th KV head from h on; of more than the ring holds the last ones. */
static void swa__store_run(const swa__job *j, const swa__layer *l, const swa__seq *seq, int from,
                           int parts, swa__store *s) {
    const int64_t end = j->pos + j->n;
    const int heads = j->keys.shape.n_kv_heads;
    int64_t at = j->pos, n, slot;
    int h;

    for (; at < end; at += n) {
        /* older rows would not survive */
        if (at >= l->pinned && at < end - l->cap) at = end - l->cap;
        slot = swa__slot(l, seq, at);
        /* up to the end of the tile, of the run, of the sinks, and of the ring */
        n = swa__min64(SWA__TILE - (slot & (SWA__TILE - 1)), end - at);
        n = swa__min64(n, at < l->pinned ? l->pinned - at : l->cap - (slot - l->sink_slots));
        s->from = j->fresh;
        s->ring = j->ring;
        swa__source_head(&s->from, from);
        swa__source_head(&s->ring, from);
        for (h = from;; h += parts) {
            swa__store_tile(s, at - j->pos, slot, (int)n);
            if (h + parts >= heads) break;
            swa__source_head(&s->from, parts);
            swa__source_head(&s->ring, parts);
        }
    }
}

/* This step's rows of every run into the ring; a run's KV heads are dealt out to the parts. */
static void swa__store_rows(swa__part *p) {
    const swa__call *call = p->call;
    const swa__layer *l = swa__layer_of(call->c, call->layer);
    const int heads = call->keys.shape.n_kv_heads;
    int64_t *stored;
    swa__store s;
    int i, past = 0;

    swa__spot_of(&call->keys, &p->w->room, 0, &s.spot);
    if (p->part > 0 && p->part < SWA__PARTS)
        swa__open_of(call->c)[SWA__OPEN_WROTE + p->part] = swa__wrote_at(call->c, l->ring);
    for (i = 0; i < call->n_jobs; i++) {
        const swa__job *j = swa__job_of(p, i);
        const int seq = call->runs[i].seq;
        /* heads of all runs go round the parts: the first of this run's that is this part's */
        const int from = (int)((p->part + p->parts - (int64_t)i * heads % p->parts) % p->parts);
        s.keys = &j->keys;
        past |= s.past = swa__stores_past(&j->keys, j->n);
        stored = &swa__held_of(call->c, call->layer, seq)->stored;
        /* the other parts do not look */
        if (p->part == 0 && *stored >= j->pos) *stored = j->pos + j->n;
        if (from < heads) swa__store_run(j, l, swa__seq_of(call->c, seq), from, p->parts, &s);
    }
#if SWA__X86
    /* before another thread is told that they are there */
    if (past) _mm_sfence();
#else
    (void)past;
#endif
}

/* ---- a call: its checks, its memory, its phases ---- */

/* Two ways in, which meet where the work begins:

       swa_attend_part        ring_call: layer and step are checked, call_base;  call_scratch
       swa_attention_part     rows_begin: segments are checked, call_base;       rows_scratch
       both                   ticket_check, then swa__phase

   swa_attend and swa_attention run all parts of both phases themselves: they are checked once and
   need no tickets. */

static int swa__stores(const swa_attn *a) {
    return a->mode == SWA_ATTEND || a->mode == SWA_STORE_ONLY;
}

/* From phase 0 on what the step's rows push out counts as gone: no part is in phase 1, which stores,
   before part 0 has been here. */
static void swa__store_soon(const swa__call *call, int part) {
    int i;
    SWA__ROLLED for (i = 0; i < call->n_jobs && part == 0; i++) {
        swa__held *held = swa__held_of(call->c, call->layer, call->runs[i].seq);
        held->before = held->first;
    }
}

/* Phase 0 attends, phase 1 folds what was split and then stores. */
static void swa__part_phase(swa__part *p, int phase) {
    const swa__call *call = p->call;
    const int stores = call->c != NULL && swa__stores(&call->a);
    const int audit = call->rows != NULL ? call->rows->audit : call->c->d.audit;

    if (stores && phase == 0) swa__store_soon(call, p->part);
    if (call->a.q.p != NULL && (phase == 0 || p->parts > 1)) {
        /* the same in both phases, of the same arguments; one part never splits */
        const swa__cut cut = swa__cut_make(p);
        if (cut.split && (phase > 0 || (audit > 0 && call->a.out.p != call->a.q.p)))
            swa__fold_rows(p, phase);
        if (phase == 0) swa__attend_units(p, &cut);
    }
    if (phase == 1 && stores) swa__store_rows(p);
}

/* A part of a phase of a call, which is a swa__call here, and others in later sections. */
typedef void swa__work(const void *call, int phase, int part, int parts);

static void swa__phase(const void *call, int phase, int part, int parts) {
    swa__part p;
    swa__part_begin((const swa__call *)call, part, parts, &p);
    swa__part_phase(&p, phase);
}

/* Every part of every phase, on the threads of OpenMP or on this one. */
static void swa__phases(swa__work *work, const void *call, int phases, int parts) {
    int phase, part;

    SWA__ROLLED for (phase = 0; phase < phases; phase++) {
#if SWA__OPENMP
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
#endif
        for (part = 0; part < parts; part++) work(call, phase, part, parts);
    }
}

static void swa__call_phases(const swa__call *call, int parts) {
    int phase;
    swa__part p;

    if (parts > 1) {
        swa__phases(swa__phase, call, SWA_PHASES, parts);
        return;
    }
    swa__part_begin(call, 0, 1, &p);               /* one part keeps its job from phase to phase */
    for (phase = 0; phase < SWA_PHASES; phase++) swa__part_phase(&p, phase);
}

/* Strides with their defaults, each by itself. */
static swa_in swa__in(swa_in in, int heads, int64_t dim) {
    if (in.head == 0) in.head = dim;
    if (in.token == 0) in.token = heads * dim;
    return in;
}

/* New rows as an operand, so that stage and store read them as they read a ring; dim 0: there are
   none. */
static void swa__fresh(const swa_shape *s, const swa_in *in, int dim, swa__operand *x) {
    const int64_t size = (int64_t)sizeof(float);

    swa__zero(x, sizeof *x);
    x->dim = dim;
    x->type = SWA_F32;
    x->size = (size_t)size;
    x->step = size;
    if (dim == 0 || in->p == NULL) return;
    x->p = (const unsigned char *)in->p;
    /* of one head or token they are not looked at, and may be any number */
    x->head = (int64_t)((uint64_t)size * (uint64_t)(in->head != 0 ? in->head : dim));
    x->row = (int64_t)((uint64_t)size
                       * (uint64_t)(in->token != 0 ? in->token : (int64_t)s->n_kv_heads * dim));
}

/* The parts' slices begin at base. */
static void swa__call_slices(swa__call *call, unsigned char *base) {
    call->scratch = base;
    swa__carve(&call->shape, call->sinks, base, &call->first);
    call->part_bytes = call->first.bytes;
}

static int swa__parts_ok(int parts) { return parts >= 1 && parts <= 1 << 16; }
static int swa__part_ok(int phase, int phases, int part, int parts) {
    return phase >= 0 && phase < phases && part >= 0 && part < parts && swa__parts_ok(parts);
}
enum { SWA__ASK = -1 };                  /* the phase of a call that is only asked about          */
/* A caller's phase: one below 0 is out of range, and no question. */
static int swa__phase_of(int phase) { return phase < 0 ? INT32_MAX : phase; }

/* A call as it is asked for, in this mode and without what that does not look at; the rest of it
   zero, but for what swa__call_base and swa__call_slices fill in whole. */
static void swa__call_begin(swa__call *call, const swa_attn *attn, swa_mode mode) {
    swa__zero(call, offsetof(swa__call, a));
    swa__copy(&call->a, attn, sizeof call->a);
    call->a.mode = mode;
    if (mode == SWA_STORE_ONLY) {
        call->a.q.p = NULL;
        call->a.out.p = call->a.lse = call->a.stat = NULL;
    }
    if (mode == SWA_ATTEND_STORED) call->a.k.p = call->a.v.p = NULL;
}

/* Whether x is where a call writes. */
static int swa__written(const swa_attn *a, const void *x) {
    return x != NULL
        && (x == (const void *)a->out.p || x == (const void *)a->lse || x == (const void *)a->stat);
}

/* Whether outputs are each other, or inputs other than q: those are read for other rows once the
   first are out. */
static int swa__overlaps(const swa_shape *s, const swa_attn *a) {
    /* out may be q: a row of q is packed before its out is written */
    if (a->lse == a->out.p || a->stat == a->out.p || (a->lse != NULL && a->lse == a->stat))
        return 1;
    if (a->lse == a->q.p || a->stat == a->q.p) return 1;
    if ((a->q_sink.p != a->q.p && swa__written(a, a->q_sink.p)) || swa__written(a, a->bias)
        || swa__written(a, a->alibi) || (a->stat == NULL && swa__written(a, a->sink_logits)))
        return 1;
    if (s->tail_dim > 0
        && (swa__written(a, a->q_tail.p) || swa__written(a, a->q_sink_tail.p)
            || (a->k.p != NULL && swa__written(a, a->k_tail.p))))
        return 1;
    return swa__written(a, a->k.p) || (a->k.p != NULL && !s->v_in_k && swa__written(a, a->v.p));
}

/* Whether heads lie apart, and where tokens lie then was forgotten: packed they are no layout. */
static int swa__token_forgotten(int64_t token, int64_t head, int heads, int64_t dim) {
    return token == 0 && head != 0 && head != dim && heads > 1;
}

#define SWA__FAR ((int64_t)1 << 44)      /* no memory reaches so far                              */
/* Whether memory reaches over so many strides, and their product is a number. */
static int swa__steps_ok(int64_t stride, int64_t count) {
    const uint64_t size = stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride,
                   all = sizeof(size_t) < 8 ? (size_t)-1 / sizeof(float) : (uint64_t)1 << 60;

    if (sizeof(size_t) >= 8 && size >> 29 == 0 && count >> 31 == 0) return 1; /* without division */
    /* a single one is not stepped over */
    return size <= (uint64_t)SWA__FAR && (count <= 1 || size <= all / (uint64_t)count);
}
/* Whether the rows of an array share no number, whichever index runs first: strides of another
   layout, or one of two that was forgotten, do not. */
SWA__NOINLINE int swa__apart(swa_in x, int32_t n, int heads, int64_t dim) {
    const int packed = x.token == 0 && x.head == 0;

    if (dim == 0) return 1;
    if (!packed && n > 1 && swa__token_forgotten(x.token, x.head, heads, dim)) return 0;
    x = swa__in(x, heads, dim);
    if (!swa__steps_ok(x.token, n) || !swa__steps_ok(x.head, heads)) return 0;
    if (packed) return 1;

    if (n > 1 && x.token < dim) return 0;
    if (heads > 1 && x.head < dim) return 0;
    /* all heads of a token within its stride, or all tokens of a head */
    return n <= 1 || heads <= 1 || (x.token - dim) / x.head >= heads - 1
        || (x.head - dim) / x.token >= n - 1;
}

static int swa__strides_ok(const swa_shape *s, const swa_attn *a, int32_t n) {
    const swa_in out = { a->out.p, a->out.token, a->out.head };
    const int dk = s->head_dim, dt = s->tail_dim;

    if ((a->q.token | a->q.head | a->q_tail.token | a->q_tail.head | a->q_sink.token
         | a->q_sink.head | a->q_sink_tail.token | a->q_sink_tail.head | a->k.token | a->k.head
         | a->k_tail.token | a->k_tail.head | a->v.token | a->v.head | out.token | out.head) == 0)
        return 1;                        /* all packed: nearly every call */
    if (a->q.p != NULL
        && !(swa__apart(a->q, n, s->n_heads, dk) && swa__apart(a->q_sink, n, s->n_heads, dk)
             && swa__apart(a->q_tail, n, s->n_heads, dt) && swa__apart(out, n, s->n_heads, s->v_dim)
             && swa__apart(a->q_sink_tail, n, s->n_heads, dt)))
        return 0;
    return a->k.p == NULL
        || (swa__apart(a->k, n, s->n_kv_heads, dk) && swa__apart(a->k_tail, n, s->n_kv_heads, dt)
            && (s->v_in_k || swa__apart(a->v, n, s->n_kv_heads, s->v_dim)));
}

/* An array of a call, for what follows: strides with their defaults, the bytes between its first
   number and its last. */
enum { SWA__OF_QUERIES, SWA__OF_KEYS, SWA__WRITTEN };
typedef struct {
    swa_in x;
    int heads, side;
    int64_t dim;
    uint64_t from, to;
} swa__extent;
SWA__COLD SWA__NOINLINE swa__extent *swa__extent_add(swa__extent *e, const float *p, int64_t token,
                                                     int64_t head, int heads, int64_t dim,
                                                     int side) {
    const swa_in x = { p, token, head };

    if (p == NULL || dim == 0) return e;
    e->x = swa__in(x, heads, dim);
    e->heads = heads;
    e->side = side;
    e->dim = dim;
    return e + 1;
}

/* Past all memory it may wrap: then less is found out. */
SWA__COLD static void swa__extent_reach(swa__extent *e, int32_t n) {
    const uint64_t past = (uint64_t)(n - 1) * (uint64_t)e->x.token
        + (uint64_t)(e->heads - 1) * (uint64_t)e->x.head + (uint64_t)e->dim;
    e->from = (uint64_t)(uintptr_t)e->x.p;
    e->to = e->from + sizeof(float) * past;
}

/* Where its rows lie, in bytes: `count` of `row`, `step` apart. count 0: its two strides do not run
   as one. */
typedef struct { int64_t at, step, row, count; } swa__place;
SWA__COLD static swa__place swa__place_of(const swa__extent *a, int32_t n) {
    const int64_t size = (int64_t)sizeof(float);
    const int64_t token = a->x.token, head = a->x.head, dim = a->dim, heads = a->heads;
    swa__place p = { 0, 0, 0, 0 };
    int64_t count = n;

    p.step = token;
    p.row = dim;
    if (heads > 1 && token / heads == head && token % heads == 0) {
        count *= heads;                  /* head after head, also from token to token */
        p.step = head;
    } else if (heads > 1 && head == dim) p.row = heads * dim;
    else if (heads > 1 && token == dim) {
        count = heads;
        p.step = head;
        p.row = n * dim;
    } else if (heads > 1) return p;
    if (p.row > SWA__FAR || p.step > SWA__FAR / count) return p;
    if (p.step == p.row) { p.row *= count; count = 1; } /* no gaps: one row */
    p.count = count;
    p.at = (int64_t)a->from;
    p.step *= size;
    p.row *= size;
    return p;
}

/* Whether two arrays share a number, whose rows ascend: of two that do not, the lower one has no
   further part in it. */
SWA__COLD static int swa__meet(swa__place a, swa__place b) {
    while (a.count > 0 && b.count > 0) {
        swa__place *low = a.at + a.row <= b.at ? &a : &b;
        if (a.at < b.at + b.row && b.at < a.at + a.row) return 1;
        low->at += low->step;
        low->count--;
    }
    return 0;
}

/* Of two arrays that are laid out alike, token after token: whether rows of later tokens of one lie
   in rows of the other, as in [n][k | v] with both strides forgotten, or [n][k] and [n][v] of fewer
   heads than were said. */
SWA__COLD static int swa__runs_on(const swa__extent *a, const swa__extent *b) {
    const swa__extent *low = a->from < b->from ? a : b, *high = low == a ? b : a;
    const int64_t token = low->x.token, apart = (int64_t)((high->from - low->from) / sizeof(float));
    const int64_t row = (low->heads - 1) * low->x.head + low->dim,
                  other = (high->heads - 1) * high->x.head + high->dim;

    if (token <= 0 || row > token || other > token || apart < token) return 0;
    return apart % token < row || apart % token + other > token;
}

/* Whether two arrays that lie around each other run into each other. Inputs may begin at the same
   number; those of one side may share a token's numbers where they are laid out alike, as a V that
   is a part of K's rows does. */
SWA__COLD static int swa__pair_tangled(const swa__extent *a, const swa__extent *b, int32_t n) {
    const int alike = a->x.token == b->x.token && (a->heads == 1 || a->x.head == b->x.head);
    const int writes = a->side == SWA__WRITTEN || b->side == SWA__WRITTEN;

    if (a->x.p == b->x.p) return writes && !alike; /* q and out: one layout. The others that begin
                                                      at one place, swa__overlaps has refused */
    if (!writes && a->side == b->side && alike) return swa__runs_on(a, b);
    return swa__meet(swa__place_of(a, n), swa__place_of(b, n));
}

#define SWA__INSIDE "an array of the call begins in the cache's memory or in its scratch"
#define SWA__TANGLED "arrays run into each other: a stride was forgotten, one begins within another, " \
                     "or n_kv_heads, head_dim or v_dim is not the model's"
/* Whether arrays run into each other, as those of a fused [n][q | k | v] do where a token stride
   was forgotten. Of one token, which has no such strides, under audit alone: decode would pay 30 ns
   for it. Not asked of an index, whose out is no out. */
SWA__COLD SWA__NOINLINE int swa__tangled(const swa_shape *s, const swa_attn *a, int32_t n) {
    const int hq = s->n_heads, hk = s->n_kv_heads, to = SWA__WRITTEN;
    const swa_in *const ins[] = { &a->q,      &a->q_tail, &a->q_sink, &a->q_sink_tail,
                                  &a->k,      &a->k_tail, &a->v };
    const int dims[] = { s->head_dim, s->tail_dim, s->head_dim, s->tail_dim,
                         s->head_dim, s->tail_dim, s->v_dim };
    swa__extent list[10], *end = list, *e, *f;
    int i;

    for (i = 0; i < 7; i++)
        if (i < 4 ? a->q.p != NULL : a->k.p != NULL && (i < 6 || !s->v_in_k))
            end = swa__extent_add(end, ins[i]->p, ins[i]->token, ins[i]->head, i < 4 ? hq : hk,
                                  dims[i], i < 4 ? SWA__OF_QUERIES : SWA__OF_KEYS);
    if (a->q.p != NULL) {
        end = swa__extent_add(end, a->out.p, a->out.token, a->out.head, hq, s->v_dim, to);
        end = swa__extent_add(end, a->lse, 0, 0, hq, 1, to);
        end = swa__extent_add(end, a->stat, 0, 0, hq, 2, to);
    }

    for (e = list; e < end; e++) {
        swa__extent_reach(e, n);
        for (f = list; f < e; f++)
            if (e->from < f->to && f->from < e->to && swa__pair_tangled(e, f, n)) return 1;
    }
    return 0;
}

static uint64_t swa__between(const float *a, const float *b) {   /* bytes, whichever comes first */
    const uint64_t x = (uint64_t)(uintptr_t)a, y = (uint64_t)(uintptr_t)b;
    return x < y ? y - x : x - y;
}

/* Whether two arrays lie between each other's heads, as [head][nope | rope] does, and go on from head
   to head otherwise: a head stride was forgotten. Asked of one token, too. */
static int swa__heads_torn(swa_in a, int a_dim, swa_in b, int b_dim, int heads) {
    const uint64_t x = (uint64_t)(uintptr_t)a.p, y = (uint64_t)(uintptr_t)b.p;
    const int64_t a_head = swa__in(a, heads, a_dim).head, b_head = swa__in(b, heads, b_dim).head;
    const int64_t reach = (heads - 1) * (x < y ? a_head : b_head) + (x < y ? a_dim : b_dim);

    return x != 0 && y != 0 && heads > 1 && a_head != b_head
        && swa__between(a.p, b.p) < sizeof(float) * (uint64_t)reach;
}
static int swa__tails_torn(const swa_shape *s, const swa_attn *a) {
    const int dk = s->head_dim, dt = s->tail_dim;

    return dt > 0
        && ((a->q.p != NULL
             && (a->q.p == a->q_tail.p || swa__heads_torn(a->q, dk, a->q_tail, dt, s->n_heads)))
            || (a->k.p != NULL
                && (a->k.p == a->k_tail.p
                    || swa__heads_torn(a->k, dk, a->k_tail, dt, s->n_kv_heads))));
}

#define SWA__TORN "q_tail, k_tail or v lies within q's or k's heads, as in [head][row | tail]: then " \
                  ".head is one number for both, and no place the same"
/* What is wrong with the place of V, which may be a part of K's rows: it lies between K's heads and
   goes on otherwise; or rows of both share numbers of two heads, or of one without one lying within
   the other, as in a fused [q | k | v] of which n_kv_heads was said wrong. NULL: nothing. */
static const char *swa__v_misplaced(const swa_shape *s, const swa_attn *a) {
    const int64_t k_head = swa__in(a->k, s->n_kv_heads, s->head_dim).head,
                  v_head = swa__in(a->v, s->n_kv_heads, s->v_dim).head;
    const uint64_t k = (uint64_t)(uintptr_t)a->k.p, v = (uint64_t)(uintptr_t)a->v.p,
                   apart = swa__between(a->k.p, a->v.p) / sizeof(float);
    const int low = k < v ? s->head_dim : s->v_dim, high = k < v ? s->v_dim : s->head_dim;
    int64_t h, at;

    if (apart == 0
        || apart >= (uint64_t)((s->n_kv_heads - 1) * (k < v ? k_head : v_head) + low)) return NULL;
    if (s->n_kv_heads > 1 && k_head != v_head) return SWA__TORN;
    /* the upper array's row 0 begins `at` numbers behind where the lower one's row h does */
    h = s->n_kv_heads > 1 ? (int64_t)apart / k_head : 0;
    at = (int64_t)apart - h * k_head;
    if (h > 0 ? at < low : at < low && at + high > low)
        return "a row of v shares numbers with k's: is n_kv_heads right, and v's place?";
    return h + 1 < s->n_kv_heads && k_head - at < high
         ? "a row of v shares numbers with another head's of k: is n_kv_heads right?" : NULL;
}

static int swa__rounds_to_bf16(swa_type compute) {
    return compute == SWA_BF16 || compute == SWA_BF16_TILE;
}

static swa__verdict swa__pick_check(const swa_shape *s, const swa_attn *a, int32_t n) {
    const int32_t block = a->pick_block;

    if (a->pick == NULL && (a->pick_n != 0 || a->pick_window != NULL))
        return swa__no(SWA_ERR_ARG, "pick_n or pick_window without pick");
    if (a->pick == NULL) return swa__yes();
    /* a power of two: entries are shifted, and a block holds whole ones */
    if (a->pick_n <= 0 || block < 0 || block > 128 || (block & (block - 1)) != 0)
        return swa__no(SWA_ERR_ARG, "pick_n not positive, or pick_block no power of 2 to 128");
    if (a->pick_token < 0 || a->pick_head < 0 || !swa__steps_ok(a->pick_token, n)
        || !swa__steps_ok(a->pick_head, s->n_kv_heads))
        return swa__no(SWA_ERR_ARG, "pick_token or pick_head below 0, or out of all memory");
    /* lists of later rows are read when the first rows are out */
    if (swa__written(a, a->pick)) return swa__no(SWA_ERR_ARG, "pick: where the call writes");
    if (!SWA__LISTS) return swa__no(SWA_ERR_UNSUPPORTED, "pick: SWA_NO_LISTS left it out");
    if (swa__rounds_to_bf16(a->compute))
        return swa__no(SWA_ERR_UNSUPPORTED, "pick with compute SWA_BF16 or SWA_BF16_TILE");
    if (a->pick_window == NULL) return swa__yes();
    /* one without an end shows everything: it was forgotten */
    if (!swa__window_ok(a->pick_window) || swa__reach(a->pick_window) == INT64_MAX)
        return swa__no(SWA_ERR_ARG, "pick_window: no window, or one without an end");
    /* near is one interval, in which these have no place */
    if (a->pick_window->n_sink != 0 || a->pick_window->prefix != 0)
        return swa__no(SWA_ERR_UNSUPPORTED, "pick_window with sinks or a prefix");
    return swa__yes();
}

/* Numbers that base 2 holds as well, or -inf, which is no sink. */
static int swa__logits_ok(const float *logits, int n_heads) {
    int i;
    for (i = 0; logits != NULL && i < n_heads; i++)
        if (swa__bits_of(logits[i]) != 0xff800000u && (!swa__finite(logits[i]) || logits[i] > 1e38f))
            return 0;
    return 1;
}

/* Scale, softcap, and what is added to scores. */
static swa__verdict swa__scores_check(const swa_shape *s, const swa_attn *a, int32_t n) {
    const float least = (float)1e-37;
    int i;

    /* head_dim is not what such a model scales by */
    if (!(a->scale != 0.0f) && (s->tail_dim > 0 || s->v_in_k))
        return swa__no(SWA_ERR_ARG, "scale 0, with a tail or v_in_k: it has to be given");
    /* finite in base 2, too. x87 would hold 1e-37f as more than a float */
    if (!swa__finite(a->scale) || !swa__finite(a->softcap) || a->scale < 0.0f || a->softcap < 0.0f
        || a->scale > 1e38f || a->softcap > 1e38f || (a->scale != 0.0f && a->scale < least)
        || (a->softcap != 0.0f && a->softcap < least))
        return swa__no(SWA_ERR_ARG, "scale or softcap: neither 0 nor from 1e-37 to 1e38");
    if (a->bias == NULL && a->bias_n != 0) return swa__no(SWA_ERR_ARG, "bias_n without bias");
    if (a->bias != NULL
        && (a->bias_n <= 0 || a->bias_first < 0 || a->bias_first > INT64_MAX - a->bias_n))
        return swa__no(SWA_ERR_ARG, "bias: bias_n not positive, or bias_first out of range");
    if (a->bias != NULL
        && !(swa__steps_ok(a->bias_token, n) && swa__steps_ok(a->bias_head, s->n_heads)
             && swa__steps_ok(a->bias_n, 1)))
        return swa__no(SWA_ERR_ARG, "bias_token, bias_head or bias_n: out of all memory");
    for (i = 0; a->alibi != NULL && i < s->n_heads; i++)
        if (!swa__finite(a->alibi[i]) || a->alibi[i] < 0.0f || a->alibi[i] > 1e38f)
            return swa__no(SWA_ERR_ARG, "alibi: a slope that is negative, NaN, or above 1e38");
    if (a->stat == NULL && !swa__logits_ok(a->sink_logits, s->n_heads))
        return swa__no(SWA_ERR_ARG, "sink_logits: NaN, or above 1e38");
    /* distances are floats in a kernel: exact to 2^24 */
    if ((a->bias_by_distance & ~1) != 0)
        return swa__no(SWA_ERR_ARG, "bias_by_distance: 0 or 1; was the call zeroed?");
    if (a->bias_by_distance && (a->bias == NULL || a->bias_first != 0 || a->bias_n > 1 << 23))
        return swa__no(SWA_ERR_ARG, "bias_by_distance: no bias, a bias_first, or bias_n over 2^23");
    if (!SWA__MODS && (a->softcap > 0.0f || a->alibi != NULL || a->bias != NULL))
        return swa__no(SWA_ERR_UNSUPPORTED, "softcap, alibi, bias: SWA_NO_MODS left them out");
    return swa__yes();
}

static swa__verdict swa__compute_check(const swa_shape *s, swa_type compute, int stored_type) {
    if (compute == SWA_TYPE_DEFAULT || compute == SWA_F32) return swa__yes();
    if (swa__rounds_to_bf16(compute))
        return SWA__BF16 ? swa__yes()
                         : swa__no(SWA_ERR_UNSUPPORTED, "compute: SWA_NO_BF16 left it out");
    if (compute != SWA_Q8) return swa__no(SWA_ERR_ARG, "compute: not a way to multiply");
    /* up to here the sums of int8 products are exact in f32 too, and so the same on every
       instruction set */
    if (stored_type != SWA_Q8 || s->tail_dim > 0 || s->head_dim > 1040)
        return swa__no(SWA_ERR_UNSUPPORTED, "compute SWA_Q8: K not in q8, a tail, or a long head");
    return swa__yes();
}

static swa__verdict swa__attn_check(const swa_shape *s, const swa_window *window, const swa_attn *a,
                                    int32_t n, int stored_type) {
    swa__verdict v = swa__yes();

    if ((int)a->mode < SWA_ATTEND || (int)a->mode > SWA_ATTEND_NO_STORE)
        return swa__no(SWA_ERR_ARG, "mode: not one of swa_mode; was attn zeroed?");
    /* call_begin has dropped what the mode does not look at: the rest has to be there */
    if ((a->q.p == NULL) != (a->mode == SWA_STORE_ONLY)) return swa__no(SWA_ERR_ARG, "q.p is NULL");
    if ((a->k.p == NULL) != (a->mode == SWA_ATTEND_STORED))
        return swa__no(SWA_ERR_ARG, "k.p is NULL (a layer that reads another's rows comes with mode "
                                    "SWA_ATTEND_STORED)");
    if (a->q.p != NULL) {
        if (a->out.p == NULL) return swa__no(SWA_ERR_ARG, "out.p is NULL");
        if (s->tail_dim > 0 && a->q_tail.p == NULL)
            return swa__no(SWA_ERR_ARG, "q_tail.p is NULL, and the shape has a tail");
        if (s->tail_dim == 0 && (a->q_tail.p != NULL || a->q_sink_tail.p != NULL))
            return swa__no(SWA_ERR_ARG, "q_tail or q_sink_tail, and the shape has no tail");
        if (window->n_sink == 0 && (a->q_sink.p != NULL || a->q_sink_tail.p != NULL))
            return swa__no(SWA_ERR_ARG, "q_sink or q_sink_tail, and the window pins no sinks");
        v = swa__scores_check(s, a, n);
    }
    if (v.status != SWA_OK) return v;

    if (a->k.p != NULL && !s->v_in_k && a->v.p == NULL) return swa__no(SWA_ERR_ARG, "v.p is NULL");
    if (a->k.p != NULL && (s->tail_dim > 0) != (a->k_tail.p != NULL))
        return swa__no(SWA_ERR_ARG, s->tail_dim > 0 ? "k_tail.p is NULL, and the shape has a tail"
                                       : "k_tail.p, and the shape has no tail");
    /* strides_ok does not look at arrays that are all packed */
    if (!swa__steps_ok(swa__max64(2, swa__max64(s->head_dim, swa__max64(s->v_dim, s->tail_dim))),
                       (int64_t)n * (a->q.p != NULL ? s->n_heads : s->n_kv_heads)))
        return swa__no(SWA_ERR_OVERFLOW, "n_tokens * heads * dims: more than memory holds");
    if (!swa__strides_ok(s, a, n))
        return swa__no(SWA_ERR_ARG, "strides: rows of one array overlap, or one of two is missing");
    if (n > 0 && swa__tails_torn(s, a))
        return swa__no(SWA_ERR_ARG, SWA__TORN);
    if (n > 0 && a->k.p != NULL && !s->v_in_k) {
        const char *why = swa__v_misplaced(s, a);
        if (why != NULL) return swa__no(SWA_ERR_ARG, why);
    }
    if (a->q.p != NULL && swa__overlaps(s, a))
        return swa__no(SWA_ERR_ARG, "out, lse or stat begin where another array does");
    if (a->q.p != NULL) v = swa__pick_check(s, a, n);
    return v.status != SWA_OK ? v : swa__compute_check(s, a->compute, stored_type);
}

/* What follows from the call's arguments: strides, the instance, the kernels' parameters. */
static void swa__call_base(swa__call *call, const swa_shape *s, int isa) {
    swa_attn *a = &call->a;
    swa__geo *geo = &call->geo;
    const double scale = a->scale != 0.0f ? (double)a->scale : 1.0 / sqrt((double)s->head_dim);

    call->kr = swa__kernels_of(isa);
    call->shape = *s;
    call->group = s->n_heads / s->n_kv_heads;

    a->q = swa__in(a->q, s->n_heads, s->head_dim);
    a->q_tail = swa__in(a->q_tail, s->n_heads, s->tail_dim);
    if (a->q_sink.p != NULL || a->q_sink_tail.p != NULL) { /* often the tail alone rotates */
        a->q_sink = a->q_sink.p != NULL ? swa__in(a->q_sink, s->n_heads, s->head_dim) : a->q;
        a->q_sink_tail =
            a->q_sink_tail.p != NULL ? swa__in(a->q_sink_tail, s->n_heads, s->tail_dim) : a->q_tail;
    }
    if (a->out.head == 0) a->out.head = s->v_dim;
    if (a->out.token == 0) a->out.token = (int64_t)s->n_heads * s->v_dim;

    /* exp2 is what there is: log2 e goes into q, or with a softcap behind the tanh */
    call->qscale = (float)(a->softcap > 0.0f ? scale / (double)a->softcap : scale * SWA__LOG2E);

    geo->dk = s->head_dim;
    geo->dt = s->tail_dim;
    geo->dv = s->v_dim;
    geo->dvp = (int)swa__pad16(s->v_dim);
    geo->v_in_k = s->v_in_k != 0;
    geo->softcap_log2 = a->softcap > 0.0f ? (float)((double)a->softcap * SWA__LOG2E) : 0.0f;
    geo->alibi = a->alibi != NULL;
    geo->bias = a->bias != NULL;
    geo->bias_first = a->bias != NULL ? a->bias_first : 0;
    geo->bias_n = a->bias_n;
    geo->by_distance = a->bias_by_distance != 0;

    /* the products' form, by what the CPU has; the bits are the same */
    if (a->compute == SWA_BF16) geo->form = swa__has_pairs(call->kr) ? SWA__PAIRS : SWA__SINGLES;
    if (a->compute == SWA_BF16_TILE)
        geo->form = swa__has_pairs(call->kr) ? SWA__TILE_PAIRS : SWA__TILE_SINGLES;
    geo->streams = swa__key_streams();
    geo->near = swa__fetches_near();
    geo->long_lists = geo->near > 0
                   || (SWA__AVX2 && call->kr == swa__kernels_of(SWA_ISA_AVX2));
    geo->dots = a->compute == SWA_Q8 && swa__has_dots(call->kr);
    /* V in rows; or dims as K's tile has them, 16 numbers apart (pairs: 8 times two) */
    geo->v_across = !geo->v_in_k                ? 1
                  : geo->form <= SWA__SINGLES ? SWA__TILE
                  : geo->form == SWA__PAIRS ? SWA__TILE / 2
                                            : 1;
    geo->v_along = geo->v_across > 1 ? 1 : geo->dvp;

#if SWA__BF16
    geo->sums = call->kr->sums;
#endif
#if SWA__AMX
    if (a->compute == SWA_BF16_TILE && isa == SWA_ISA_AVX512 && s->head_dim % SWA__SUMMED == 0
        && s->tail_dim % SWA__SUMMED == 0 && swa__amx_allowed()) {
        geo->form = SWA__TILE_AMX;
        geo->sums = swa__sums_amx;
    }
#endif

    /* the caller's rows are attended as they are; swa__ring_call puts its ring's types here */
    call->keys.kr = call->kr;
    call->keys.shape = *s;
    call->keys.round[SWA__K] = call->keys.round[SWA__TAIL] = call->keys.round[SWA__V] = SWA_F32;
    swa__fresh(s, &a->k, s->head_dim, &call->fresh[SWA__K]);
    swa__fresh(s, &a->k_tail, s->tail_dim, &call->fresh[SWA__TAIL]);
    swa__fresh(s, &a->v, s->v_in_k ? 0 : s->v_dim, &call->fresh[SWA__V]);
}

/* Scratch of a ring call in the memory at base: a slice per part, then partial results of keys
   split over parts: one run's rows, all its blocks. Less than all of those only splits nothing. */
static size_t swa__split_bytes(const swa__layer *l, int parts, size_t *rows) {
    const size_t blocks = (size_t)l->slots / SWA_BLOCK + 2;      /* most that its slots lie in */
    size_t n = 0;
    *rows = 0;
    if (parts > 1 && !swa__mul((size_t)l->shape.n_heads, blocks, rows)) return 0;
    return swa__region(&n, *rows, swa__partial_bytes(&l->shape), 1) ? n : 0;
}

/* The scratch of a ring call, by the size it has: without room for the parts it is an error,
   without room for splits only slower. */
SWA__NOINLINE swa_status swa__call_scratch(swa__call *call, unsigned char *base, size_t bytes,
                                           int parts) {
    const swa__layer *l = swa__layer_of(call->c, call->layer);
    size_t rows, split;

    if (base == NULL) return SWA_ERR_MEMORY;
    swa__call_slices(call, base);
    if (bytes / (size_t)parts < call->part_bytes) return SWA_ERR_MEMORY;
    call->split = base + call->part_bytes * (size_t)parts;
    split = swa__split_bytes(l, parts, &rows);
    call->split_rows =
        swa__enough(bytes - call->part_bytes * (size_t)parts, split) ? rows : 0;
    return SWA_OK;
}

/* What call_scratch asks for one layer, in memory of any alignment. 0 = overflow. */
static size_t swa__layer_scratch(const swa__layer *l, int parts) {
    size_t n = 0, rows, split = swa__split_bytes(l, parts, &rows);
    if (rows > 0 && split == 0) return 0;
    return swa__region(&n, swa__part_bytes(&l->shape, l->window.n_sink > 0), (size_t)parts, 1)
           && swa__add(n, split, &n) && swa__add(n, 63, &n) ? n : 0;
}

SWA__COLD SWA_API size_t swa_cache_scratch_bytes(const swa_cache_desc *desc, int parts) {
    swa__cache c;
    size_t most = 0, n;
    int i;

    if (!swa__parts_ok(parts) || swa__layout(desc, &c, NULL) != SWA_OK) return 0;
    for (i = 0; i < desc->n_layers; i++) { /* the layer that needs most: one runs at a time */
        swa__layer l;
        if (swa__layer_make(desc, i, &l) != SWA_OK) return 0;
        n = swa__layer_scratch(&l, parts);
        if (n == 0) return 0;
        if (n > most) most = n;
    }
    return most;
}

/* Whether so many bytes of the caller's lie in the cache, and whether an array begins there or in
   its scratch: in what was given as such, from its first byte on. */
static int swa__inside_cache(const swa__cache *c, const void *p, size_t bytes) {
    return swa__touch(p, bytes, (const unsigned char *)(const void *)c - c->ahead, c->total);
}
static int swa__inside(const swa__cache *c, const void *p) {
    return swa__inside_cache(c, p, 1)
        || (c->scratch != NULL
            && swa__touch(p, 1, c->scratch - c->scratch_ahead, c->scratch_bytes + 63));
}

/* The arrays that a call looks at, by where they begin; how many. */
static int swa__arrays_of(const swa_shape *s, const swa_attn *a, const void *x[14]) {
    const int tail = s->tail_dim > 0;
    const void *const all[14] = { a->q.p, a->out.p, a->lse, a->stat, a->alibi, a->sink_logits, a->bias,
                                  a->pick, a->q_sink.p, tail ? a->q_tail.p : NULL,
                                  tail ? a->q_sink_tail.p : NULL,
                                  a->k.p, a->v.p, tail ? a->k_tail.p : NULL };
    const int end = a->k.p != NULL ? 14 : 11;
    int i, n = 0;

    SWA__ROLLED for (i = a->q.p != NULL ? 0 : 11; i < end; i++)
        if (all[i] != NULL) x[n++] = all[i];
    return n;
}

SWA__COLD SWA_API swa_status swa_cache_set_scratch(swa_cache *cache, void *mem, size_t bytes) {
    swa__cache *c = swa__get(cache);
    int i;

    if (c == NULL || (mem == NULL && bytes > 0) || swa__inside_cache(c, mem, bytes))
        return SWA_ERR_ARG;
    /* enough for one part of every layer, or nothing is changed */
    for (i = 0; i < c->d.n_layers && mem != NULL; i++)
        if (!swa__enough(bytes, swa__layer_scratch(swa__layer_of(c, i), 1))) return SWA_ERR_MEMORY;
    c->scratch = mem != NULL ? swa__align64(mem) : NULL;
    c->scratch_ahead = (size_t)((uintptr_t)c->scratch - (uintptr_t)mem);
    c->scratch_bytes = bytes > 63 ? bytes - 63 : 0; /* what is left of it however mem was aligned */
    return SWA_OK;
}

/* Whether this layer has stored what a run needs, and what it stores has not pushed the run's own
   past out. */
static swa__verdict swa__past_check(const swa__cache *c, int layer, const swa_run *r,
                                    const swa_attn *a) {
    const swa__layer *l = swa__layer_of(c, layer);
    /* not swa__stored_end where the call stores: other parts are beginning it, and write what that
       reads */
    const int64_t stored = swa__held_of(c, layer, r->seq)->stored;

    if (!swa__stores(a) && swa__stored_end(c, layer, r->seq) < stored)
        return swa__no(SWA_ERR_ORDER, "a part's phase 1 was left out of the call that stored");
    if (stored < r->pos + r->n && a->mode == SWA_ATTEND_STORED)
        return swa__no(SWA_ERR_ORDER, "this layer, or its owner, has not stored this step's rows");
    if (stored > r->pos && swa__stores(a))
        return swa__no(SWA_ERR_ORDER,
                       l->ring == layer ? "this layer has stored this step's rows already: is it called "
                                          "twice, or was no step begun since?"
                                        : "this layer reads another's rows: mode SWA_ATTEND_STORED");
    /* the law of a ring that is stored first: room for W-1 older rows and the step's own */
    if (stored > r->pos && !l->bounded && r->n > l->cap - (swa__reach(&l->window) - 1))
        return swa__no(SWA_ERR_CAPACITY, "n > capacity-(W-1), stored already: raise max_rollback");
    return swa__yes();
}

/* Whether parts have written this step's rows into some layer's ring although part 0, which says
   that they are there, was left out: the ring is no longer what it was before the step, and another
   layer's call would take the place of the word of that. Nobody writes while phase 0 runs. */
static int swa__half_stored(const swa__cache *c, int parts) {
    const swa_run *r = swa__runs_of(c);
    const int64_t *wrote = swa__open_of(c) + SWA__OPEN_WROTE;
    int part;

    if (parts == 1 && !swa__open_any(c)) return 0;
    SWA__ROLLED for (part = 1; part < SWA__PARTS; part++) {
        const int64_t ring = wrote[part] - swa__wrote_at(c, 0);
        if (ring >= 0 && ring < c->d.n_layers && swa__held_of(c, (int)ring, r->seq)->stored <= r->pos)
            return 1;
    }
    return 0;
}

/* In phase 1 a part may be writing stored: what phase 0 found stands on the layer's ticket. */
static swa__verdict swa__layer_check(const swa__cache *c, int layer, const swa_attn *a, int phase,
                                     int part, int parts) {
    int64_t *ticket = swa__tickets_of(c) + layer;
    swa__verdict v = swa__yes();
    int i;

    if (phase > 0 && swa__stores(a))
        return swa__no(*ticket == c->step ? SWA_OK : SWA_ERR_ORDER, "phase 1: no phase 0 in this step, or "
                                                                    "part 0 left it out");
    /* begin has checked the runs; since then the host may have truncated, reset or committed */
    for (i = 0; i < c->n_runs && v.status == SWA_OK; i++) {
        const swa_run *r = &swa__runs_of(c)[i];
        const swa__seq *s = swa__seq_of(c, r->seq);
        if (s->end - r->n != r->pos || s->parents != r->parents
            || swa__tree_hash(r->parents, r->n) != s->tree)
            v = swa__no(SWA_ERR_ORDER, "a sequence, or its tree's parents, changed since begin");
        else v = swa__past_check(c, layer, r, a);
    }
    if (phase <= 0 && v.status == SWA_OK && swa__half_stored(c, parts))
        v = swa__no(SWA_ERR_ORDER, "part 0 of phase 1 was left out, and others stored");

    /* one part speaks for all, which find the same */
    if (phase == 0 && part == 0 && swa__stores(a)) *ticket = v.status == SWA_OK ? c->step : 0;
    return v;
}

/* Where keys are: at positions [from, to), and of these (keys not NULL) where a segment has rows. */
typedef struct { int64_t from, to; const swa__keys *keys; } swa__there;

static int swa__is_there(const swa__there *x, int64_t k) {
    const int s = x->keys != NULL ? swa__find(x->keys, k) : 0;
    return k >= x->from && k < x->to
        && (x->keys == NULL || (s < x->keys->n_kv && x->keys->kv[s].pos <= k));
}

/* Whether each entry of a list, but -1, names a key that its query sees; they are not mostly key 0
   again, as entries of int64 and memory of zeros are; and something is seen. */
static int swa__pick_seen(const swa_attn *a, const int32_t *list, const swa_window *w, int64_t q,
                          const swa__there *there) {
    const int32_t block = a->pick_block > 0 ? a->pick_block : 1;
    int32_t j, first = 0, none = 0;

    for (j = 0; j < a->pick_n; j++) {
        if (list[j] < -1) return 0;
        first += list[j] == 0;
        none += list[j] == -1;
    }
    if (first > 1 && first >= a->pick_n - none - first) return 0;
    /* a part for swa_merge may be of nothing */
    if (none == a->pick_n && a->pick_window == NULL && w->n_sink == 0 && a->stat == NULL) return 0;

    for (j = 0; j < a->pick_n; j++) {
        int64_t k = swa__max64((int64_t)list[j] * block, there->from);
        const int64_t to = swa__min64(((int64_t)list[j] + 1) * block, there->to);
        while (k < to && !(swa_visible(w, q, k) && swa__is_there(there, k))) k++;
        if (list[j] >= 0 && k >= to) return 0;
    }
    return 1;
}

/* ... of the lists of a run. */
SWA__COLD static int swa__lists_seen(const swa_attn *a, int heads, const swa_window *w,
                                     const swa_run *r, const swa__there *there) {
    int64_t t;
    int g;

    for (t = 0; t < r->n; t++)
        for (g = 0; g < heads; g++)
            if (!swa__pick_seen(a, a->pick + (r->row + t) * a->pick_token + g * a->pick_head, w,
                                r->pos + t, there))
                return 0;
    return 1;
}

/* With desc.audit 2: an entry that names no such key is one of another step, a slot taken for a
   position, or from an index with another window. */
SWA__COLD static int swa__picks_seen(const swa__cache *c, int layer, const swa_attn *a) {
    const swa__layer *l = swa__layer_of(c, layer);
    int i, seen = 1;

    for (i = 0; i < c->n_runs; i++) {
        const swa_run *r = &swa__runs_of(c)[i];
        const swa_window w = swa__run_window(l, r);
        const swa__there there = { swa__seq_of(c, r->seq)->start, r->pos + r->n, NULL };
        seen &= swa__lists_seen(a, l->shape.n_kv_heads, &w, r, &there);
    }
    return seen;
}

/* Position of a step's last query, of all runs. */
static int64_t swa__step_last(const swa__cache *c) {
    int64_t last = 0;
    int i;

    SWA__ROLLED for (i = 0; i < c->n_runs; i++)
        last = swa__max64(last, swa__runs_of(c)[i].pos + swa__runs_of(c)[i].n - 1);
    return last;
}

/* Whether pinned sinks have left the window of the query at position q, further than n_sink. */
static int swa__sinks_far(const swa_window *w, int64_t q) {
    return w->n_sink > 0 && w->kind == SWA__BAND && w->left >= 0 && q - w->n_sink > w->left;
}

/* Whether lists of different tokens or KV heads share entries: one of two strides, or both, are
   another layout's. 0 is one list for all. */
static int swa__lists_overlap(const swa_attn *a, int32_t n, int heads) {
    const int64_t token = n > 1 ? a->pick_token : 0, head = heads > 1 ? a->pick_head : 0;

    if ((token != 0 && token < a->pick_n) || (head != 0 && head < a->pick_n)) return 1;
    return token != 0 && head != 0 && token < head * (heads - 1) + a->pick_n
        && head < token * (n - 1) + a->pick_n;
}

/* Whether numbers of that type lie across each other's places. */
SWA__COLD static int swa__is_odd(const void *p, int type) {
    return ((uintptr_t)p & (swa__type_size(type) - 1)) != 0;
}

/* Under audit: what is legal, and seldom meant. last: position of the last of n queries. */
SWA__COLD static swa__verdict swa__audit_attn(const swa_shape *s, const swa_attn *a, int32_t n,
                                              int64_t last) {
    const void *arrays[14];
    int i;

    for (i = swa__arrays_of(s, a, arrays); i > 0; i--)
        if (swa__is_odd(arrays[i - 1], SWA_F32))
            return swa__no(SWA_ERR_ARG, "q, k, v, out or another array: not at a whole number of floats, "
                                        "under audit");
    if (a->scale > 2.0f)
        return swa__no(SWA_ERR_ARG, "scale: above 2, under audit: it multiplies q.k, as 1/sqrt(d)");
    if (a->bias != NULL && (n == 1 || a->bias_token == 0) && !a->bias_by_distance
        && last >= a->bias_first && last - a->bias_first < a->bias_n
        && a->bias[last - a->bias_first] < -1e30f)
        return swa__no(SWA_ERR_ARG, "bias, bias_token: under audit: one row for all tokens, or one "
                                    "token's, that hides the last one's own key");
    if (a->pick != NULL && swa__lists_overlap(a, n, s->n_kv_heads))
        return swa__no(SWA_ERR_ARG, "pick_token or pick_head: lists overlap, under audit");
    return swa__yes();
}

#define SWA__PICK_UNSEEN "pick: an entry names no key that its query sees, or is below -1; half of " \
                         "a list is key 0 (int64?); or it is empty, without sinks and pick_window (audit 2)"

/* Whether q's, k's and v's tokens lie as far apart as packed rows have bytes. Where all are equally
   wide that is also one array of four, or the pitch of a wider one: only if heads are so, too. */
SWA__COLD static int swa__in_bytes(const swa_shape *s, const swa_attn *a) {
    const int64_t size = sizeof(float), q = size * s->n_heads * s->head_dim,
                  k = size * s->n_kv_heads * s->head_dim, v = size * s->n_kv_heads * s->v_dim;

    return a->q.p != NULL && a->k.p != NULL && a->q.token == q && a->k.token == k
        && (s->v_in_k || a->v.token == v)
        && (q != k || (a->q.head == size * s->head_dim
                       && swa__between(a->q.p, a->k.p) >= (uint64_t)(size * q)));
}

SWA__COLD static swa__verdict swa__audit_check(const swa__cache *c, int layer, const swa_attn *a,
                                               int phase) {
    const swa__layer *l = swa__layer_of(c, layer);

    if (SWA__LISTS && c->d.audit > 1 && a->pick != NULL && phase <= 0
        && !swa__picks_seen(c, layer, a))
        return swa__no(SWA_ERR_ARG, SWA__PICK_UNSEEN);
    if (a->k.p != NULL && a->k.p == a->v.p && !l->shape.v_in_k)
        return swa__no(SWA_ERR_ARG, "v: where k is, under audit: say v_in_k if V is a part of K");
    if (a->q.p == NULL) return swa__yes();
    if (a->q.p == a->k.p || a->q.p == a->v.p)
        return swa__no(SWA_ERR_ARG, "q: where k or v is, under audit");
    if (swa__in_bytes(&l->shape, a))
        return swa__no(SWA_ERR_ARG, "strides: in bytes? under audit: four times the packed ones");
    return swa__audit_attn(&l->shape, a, c->n_tokens, swa__step_last(c));
}

#define SWA__NO_STEP    "no step: none was begun, begin was refused, or a change has ended it"
#define SWA__NO_SCRATCH "scratch: none was set, or too little for one part"
#define SWA__NO_PART    "phase or part: out of range"

/* A call on a ring, checked, and made but for its scratch. */
static swa__verdict swa__ring_call(const swa__cache *c, int layer, const swa_attn *attn, int phase,
                                   int part, int parts, swa__call *call) {
    swa__verdict v;
    const swa__layer *l;
    int i, trees = 0;

    if (c == NULL || attn == NULL)
        return swa__no(SWA_ERR_ARG, SWA__NO_CACHE "or no attn");
    if (c->status != SWA_OK)
        return swa__no(c->status, SWA__NO_STEP);
    SWA__ROLLED for (i = 0; i < c->n_runs; i++) trees |= swa__runs_of(c)[i].parents != NULL;
    if (layer < 0 || layer >= c->d.n_layers) return swa__no(SWA_ERR_ORDER, "layer: out of range");
    if (phase != SWA__ASK && !swa__part_ok(phase, SWA_PHASES, part, parts))
        return swa__no(SWA_ERR_ORDER, SWA__NO_PART);
    swa__call_begin(call, attn, attn->mode);
    l = swa__layer_of(c, layer);
    if (l->shape.v_in_k) call->a.v.p = NULL;

    v = swa__attn_check(&l->shape, &l->window, &call->a, c->n_tokens, (int)l->type[SWA__K]);
    if (v.status != SWA_OK) return v;
    if (trees && call->a.q.p != NULL
        && (call->a.pick != NULL || swa__rounds_to_bf16(call->a.compute)))
        return swa__no(SWA_ERR_UNSUPPORTED, "a tree with pick, or compute SWA_BF16, SWA_BF16_TILE");
    if (c->d.audit > 0) v = swa__audit_check(c, layer, &call->a, phase);
    if (v.status != SWA_OK) return v;
    /* last, because it leaves a trace: the layer's ticket */
    v = swa__layer_check(c, layer, &call->a, phase, part, parts);
    if (v.status != SWA_OK) return v;

    swa__call_base(call, &l->shape, c->d.isa);
    call->c = c;
    call->layer = layer;
    call->runs = swa__runs_of(c);
    call->n_jobs = c->n_runs;
    call->trees = trees;
    call->sinks = l->window.n_sink > 0;
    /* new rows become what this ring will hold before anyone sees them */
    memcpy(call->keys.round, l->type, sizeof call->keys.round);
    return swa__yes();
}

/* Whether lists are being made in this step (part 0 has begun them, and not ended): what attends may
   be given one that is not whole. */
static int swa__lists_begun(const swa__cache *c) {
    const int64_t at = swa__open_of(c)[SWA__OPEN_LISTS] - swa__wrote_at(c, 0);
    return at >= 0 && at < c->d.n_layers;
}
#define SWA__NO_LISTS_YET "phase 1 of swa_select_part was left out: its lists are not whole"

/* The call that a part is in which only reads: a word that no other part looks at while it runs, and
   which another step makes void. The layer, or -1. */
static int swa__part_reads(const swa__cache *c, int part) {
    const int64_t at = swa__open_of(c)[SWA__OPEN_READS + part] - swa__wrote_at(c, 0);
    return at >= 0 && at < c->d.n_layers ? (int)at : -1;
}
/* As swa__parts_close. */
static void swa__reads_close(const swa__call *call, int from) {
    int64_t *open = swa__open_of(call->c);
    if (open[SWA__OPEN_READING] != call->c->step) return;
    for (; from < SWA__PARTS; from++)
        if (swa__part_reads(call->c, from) == call->layer) open[SWA__OPEN_READS + from] = 0;
}

/* A call of one thread, all phases at once: who was within another has lost its scratch. */
static void swa__parts_none(const swa__call *call) {
    swa__open_of(call->c)[SWA__OPEN_LISTS] = 0;
    if (swa__stores(&call->a)) swa__parts_close(call->c, call->layer, 0);
    swa__reads_close(call, 0);
    swa__open_of(call->c)[SWA__OPEN_OWNER] = 0;
    swa__open_of(call->c)[SWA__OPEN_CALLED] = call->c->step;
    swa__open_of(call->c)[SWA__OPEN_WHOLE]++;
}

/* Whether a part that begins a call on the ring has begun another layer's and not ended it, and that
   one's rows, if it stores, count as stored. */
static int swa__part_within(const swa__call *call, int phase, int part, int parts) {
    const swa__cache *c = call->c;
    const int64_t *open = swa__open_of(c);

    if (phase != 0 || parts == 1 || part >= SWA__PARTS) return 0;
    if (swa__part_reads(c, part) >= 0 && swa__part_reads(c, part) != call->layer) return 1;
    return open[part] != 0 && open[part] != call->layer + 1
        && swa__held_of(c, (int)open[part] - 1, call->runs->seq)->stored > call->runs->pos;
}

/* If it has not: which call it is in from now on. One that is begun anew may have fewer parts. */
static int swa__part_enter(const swa__call *call, int phase, int last, int part, int parts) {
    const swa__cache *c = call->c;
    const int stores = swa__stores(&call->a);
    int64_t *open = swa__open_of(c);

    if (swa__part_within(call, phase, part, parts)) return 0;
    if (phase == last && part == 0) {
        if (stores) swa__parts_close(c, call->layer, parts > 1 ? parts : 0);
        swa__reads_close(call, parts > 1 ? parts : 0);
    }
    if (parts == 1 || part >= SWA__PARTS) return 1;
    if (phase == 0) open[SWA__OPEN_READS + part] = stores ? 0 : swa__wrote_at(c, call->layer);
    if (phase == 0 && part == 0 && !stores) open[SWA__OPEN_READING] = c->step;
    if (phase == last && !stores) open[SWA__OPEN_READS + part] = 0;
    if (!stores) return 1;
    if (phase == 0) ((unsigned char *)(open + SWA__OPEN_FLAGS))[part] = 1;
    if (phase == 0) open[part] = call->layer + 1;
    else if (phase == last) open[part] = 0;
    return 1;
}

static int64_t swa__scratch_word(const swa__call *call, uint64_t owner) {
    int64_t word;

    owner ^= (uint64_t)(call->layer + 1) * 0x9e3779b97f4a7c15u ^ (uint64_t)call->c->step << 20;
    memcpy(&word, &owner, sizeof word);
    return word;
}
/* Whether no other call has had the cache's scratch since this one began. Tickets do not show that
   for MLA: its arrays lie before them in the scratch, and another call may have overwritten those
   alone. */
static int swa__scratch_ours(const swa__call *call, int parts, uint64_t owner) {
    const int64_t *open = swa__open_of(call->c), *began = open + SWA__OPEN_BEGAN;
    int part;

    /* nor between two parts of phase 0, of which part 0 may be the last */
    for (part = 1; part < parts && part < SWA__PARTS; part++)
        if (began[part] != began[0]) return 0;
    return open[SWA__OPEN_OWNER] == swa__scratch_word(call, owner);
}
/* A part of phase 0 says when it came; part 0, whose the scratch is. */
static void swa__scratch_take(const swa__call *call, int part, int parts, uint64_t owner) {
    int64_t *open = swa__open_of(call->c);

    if (part < SWA__PARTS)
        open[SWA__OPEN_BEGAN + part] = open[SWA__OPEN_WHOLE] * call->c->d.n_layers + call->layer;
    if (part > 0) return;
    open[SWA__OPEN_OWNER] = swa__scratch_word(call, owner);
    open[SWA__OPEN_CALLED] = call->c->step;
    /* of several, the others are reading it */
    if (parts == 1) open[SWA__OPEN_WHOLE]++;
}

/* Whether a part may go on in a call on the ring; one that may not has left no mark. */
static int swa__part_admit(const swa__call *call, int phase, int last, int part, int parts,
                           uint64_t owner) {
    if (phase > 0 && !swa__scratch_ours(call, parts, owner)) return 0;
    if (!swa__part_enter(call, phase, last, part, parts)) return 0;
    if (phase == 0) swa__scratch_take(call, part, parts, owner);
    return 1;
}

/* All of attn, arrays by address: phase 1 stores the k and v, and folds into the out, that phase 0
   was given; and all parts were given the same. */
static uint64_t swa__attn_hash(uint64_t h, const swa_attn *a) {
    const swa_in *const ins[] = { &a->q, &a->q_tail,      &a->k, &a->k_tail,
                                  &a->v, &a->q_sink_tail, &a->q_sink };
    const void *const arrays[] = { a->out.p, a->lse,  a->stat, a->sink_logits,
                                   a->alibi, a->bias, a->pick, a->pick_window };
    const int64_t numbers[] = { a->out.token,  a->out.head,   a->bias_token,      a->bias_head,
                                a->bias_first, a->bias_n,     a->bias_by_distance, a->pick_token,
                                a->pick_head,  a->pick_n,     a->pick_block,      (int64_t)a->mode,
                                (int64_t)a->compute };
    const float floats[] = { a->scale, a->softcap };
    int i;

    SWA__ROLLED for (i = 0; i < 7; i++) {
        const int64_t stride[] = { ins[i]->token, ins[i]->head };
        h = swa__hash(h, &ins[i]->p, sizeof ins[i]->p);
        h = swa__hash(h, stride, sizeof stride);
    }
    h = swa__hash(h, arrays, sizeof arrays);
    h = swa__hash(h, numbers, sizeof numbers);
    return swa__hash(h, floats, sizeof floats);
}

/* What a part leaves word of. */
static swa__ticket swa__ticket_of(const swa__call *call, int parts) {
    const swa_rows *rows = call->rows;
    swa__ticket mine;

    mine.owner = swa__attn_hash((uint64_t)(uintptr_t)call->c ^ call->asked, &call->a);
    mine.step = (uint64_t)(rows != NULL ? rows->pos : call->c->step);
    mine.split_rows = call->split_rows;
    mine.layer = rows != NULL ? rows->n_tokens : call->layer;
    mine.parts = parts;
    return mine;
}

/* NULL if every part has been through the phase before, and this one not through its own: a phase
   is not done twice, as MLA's norms and rotations are in place. Every part looks at every slice, so
   that all of them say the same. */
static const char *swa__tickets_miss(const swa__call *call, const swa__ticket *mine, int phase,
                                     int part, int parts) {
    const unsigned char *slice = call->scratch;
    swa__ticket t;
    int i;

    if (phase == 0) return NULL;
    for (i = 0; i < parts; i++, slice += call->part_bytes) {
        memcpy(&t, slice + (size_t)(phase - 1) * sizeof t, sizeof t);
        if (memcmp(&t, mine, sizeof t) == 0) continue;
        if (t.step != mine->step || t.layer != mine->layer
            || (t.parts == mine->parts && t.owner == mine->owner))
            return "phase 1: a part of phase 0 was left out, another call came in between, or this is "
                   "another scratch";
        return t.parts != mine->parts
             ? "phase 1: phase 0 had another number of parts"
             : "phase 1: phase 0 had another attn (a field or an array; under audit, other numbers in "
               "k or v)";
    }
    slice = call->scratch + (size_t)part * call->part_bytes;
    return memcmp(slice + (size_t)phase * sizeof t, mine, sizeof t) != 0
         ? NULL : "phase 1: this part is done";
}

/* If so, this part may go to work, and has left no word yet. */
static swa_status swa__ticket_check(const swa__call *call, int phase, int last, int part,
                                    int parts, swa__ticket *mine) {
    *mine = swa__ticket_of(call, parts);
    if (swa__tickets_miss(call, mine, phase, part, parts) != NULL) return SWA_ERR_ORDER;
    if (call->rows == NULL && !swa__part_admit(call, phase, last, part, parts, mine->owner))
        return SWA_ERR_ORDER;
    if (phase == 0)
        memset(call->scratch + (size_t)part * call->part_bytes, 0,
               (size_t)(last + 1) * sizeof *mine);
    return SWA_OK;
}

/* A part of a phase whose call x is accepted. It leaves word when its work is done: where no join was
   waited for, another part finds that missing, if it comes before (mostly: no thread promises
   another when it sees what was written). */
static swa_status swa__part_run(const swa__call *call, swa__work *work, const void *x, int phase,
                                int phases, int part, int parts) {
    unsigned char *own = call->scratch + (size_t)part * call->part_bytes;
    swa__ticket mine;

    if (swa__ticket_check(call, phase, phases - 1, part, parts, &mine) != SWA_OK)
        return SWA_ERR_ORDER;
    work(x, phase, part, parts);
    memcpy(own + (size_t)phase * sizeof mine, &mine, sizeof mine);
    return SWA_OK;
}

static uint64_t swa__rows_hash(uint64_t h, swa_in x, int32_t n, int heads, int64_t dim) {
    int32_t t;
    int i;

    x = swa__in(x, heads, dim);
    for (t = 0; t < n && x.p != NULL; t++)
        for (i = 0; i < heads; i++)
            h = swa__hash(h, x.p + t * x.token + i * x.head, sizeof *x.p * (size_t)dim);
    return h;
}
/* Of parts under audit: the rows that phase 1 stores have to be those that phase 0 has seen. */
SWA__COLD static void swa__ask_of_rows(swa__call *call) {
    const swa_shape *s = &call->shape;
    const swa_attn *a = &call->a;
    const int32_t n = call->c->n_tokens;

    if (call->c->d.audit == 0 || !swa__stores(a)) return;
    call->asked = swa__rows_hash(call->asked, a->k, n, s->n_kv_heads, s->head_dim);
    call->asked = swa__rows_hash(call->asked, a->v, n, s->n_kv_heads, s->v_dim);
    call->asked = swa__rows_hash(call->asked, a->k_tail, n, s->n_kv_heads, s->tail_dim);
}

SWA__COLD static int swa__any_nan(swa_in x, int32_t n, int heads, int dim) {
    int32_t t;
    int i, d, found = 0;

    x = swa__in(x, heads, dim);
    for (t = 0; t < n && x.p != NULL; t++)
        for (i = 0; i < heads; i++)
            for (d = 0; d < dim; d++) found |= swa__is_nan(x.p[t * x.token + i * x.head + d]);
    return found;
}

/* What is asked of a call that is attention alone, whose arrays are all the caller's. far: audit, and
   pinned sinks have left the window of a query. */
static swa__verdict swa__alone_check(const swa__call *call, int32_t n, int audit, int far) {
    const swa_attn *a = &call->a;

    /* in q's place out may be NaN, by phase 1 */
    if (audit > 0 && a->q.p != a->out.p
        && (swa__any_nan(a->q, n, call->shape.n_heads, call->shape.head_dim)
            || swa__any_nan(a->q_tail, n, call->shape.n_heads, call->shape.tail_dim)))
        return swa__no(SWA_ERR_ARG, "q or q_tail: a NaN, under audit");
    if (audit > 0 && call->c != NULL && a->mode != SWA_ATTEND_STORED
        && (swa__any_nan(a->k, n, call->shape.n_kv_heads, call->shape.head_dim)
            || swa__any_nan(a->k_tail, n, call->shape.n_kv_heads, call->shape.tail_dim)
            || swa__any_nan(a->v, n, call->shape.n_kv_heads, call->shape.v_dim)))
        return swa__no(SWA_ERR_ARG, "k, k_tail or v: a NaN, under audit");
    if ((n > 1 || audit > 0) && swa__tangled(&call->shape, &call->a, n))
        return swa__no(SWA_ERR_ARG, SWA__TANGLED);
    if (far && call->a.q.p != NULL && call->a.q_sink.p == NULL)
        return swa__no(SWA_ERR_ARG, "q_sink: NULL, under audit, and sinks have left the window: q for "
                                    "min(pos, n_sink+W-1), or q again where they keep their places");
    return swa__yes();
}

/* swa__ring_call, of one that is attention alone. */
static swa__verdict swa__attend_ring(const swa__cache *c, int layer, const swa_attn *attn,
                                     int phase, int part, int parts, swa__call *call) {
    swa__verdict v;
    const void *arrays[14];
    int i;

    if (c != NULL && c->status == SWA_OK && phase <= 0 && swa__lists_begun(c))
        return swa__no(SWA_ERR_ORDER, SWA__NO_LISTS_YET);
    v = swa__ring_call(c, layer, attn, phase, part, parts, call);
    for (i = v.status == SWA_OK ? swa__arrays_of(&call->shape, &call->a, arrays) : 0; i > 0; i--)
        if (swa__inside(c, arrays[i - 1])) return swa__no(SWA_ERR_ARG, SWA__INSIDE);
    if (v.status != SWA_OK) return v;
    return swa__alone_check(call, c->n_tokens, c->d.audit,
                            c->d.audit > 0 && swa__sinks_far(&swa__layer_of(c, layer)->window,
                                                             swa__step_last(c)));
}

SWA__COLD SWA_API const char *swa_attend_explain(const swa_cache *cache, int layer,
                                                 const swa_attn *attn) {
    const swa__cache *c = swa__get(cache);
    swa__call call;
    const char *why = swa__attend_ring(c, layer, attn, SWA__ASK, 0, 1, &call).why;

    if (why != NULL) return why;
    return swa__call_scratch(&call, c->scratch, c->scratch_bytes, 1) == SWA_OK
         ? NULL : SWA__NO_SCRATCH;
}

SWA__COLD SWA_API const char *swa_attend_part_explain(const swa_cache *cache, int layer,
                                                      const swa_attn *attn, int phase, int part,
                                                      int parts) {
    const swa__cache *c = swa__get(cache);
    swa__call call;
    swa__ticket mine;
    const char *why;

    if (!swa__part_ok(phase, SWA_PHASES, part, parts)) return SWA__NO_PART;
    /* phase 0 leaves a trace where it is checked */
    why = swa__attend_ring(c, layer, attn, phase > 0 ? phase : SWA__ASK, part, parts, &call).why;
    if (why != NULL) return why;
    if (swa__call_scratch(&call, c->scratch, c->scratch_bytes, parts) != SWA_OK)
        return "scratch: none was set, or too little for so many parts";
    if (swa__part_within(&call, phase, part, parts))
        return "this part's phase 1 of another layer was left out";
    swa__ask_of_rows(&call);
    mine = swa__ticket_of(&call, parts);
    why = swa__tickets_miss(&call, &mine, phase, part, parts);
    return why == NULL && phase > 0 && !swa__scratch_ours(&call, parts, mine.owner)
         ? "phase 1: another call on the cache came in between" : why;
}

SWA_API swa_status swa_attend_part(swa_cache *cache, int layer, const swa_attn *attn, int phase,
                                   int part, int parts) {
    const swa__cache *c = swa__get(cache);
    swa__call call;
    swa_status status =
        swa__attend_ring(c, layer, attn, swa__phase_of(phase), part, parts, &call).status;
    if (status == SWA_OK)
        status = swa__call_scratch(&call, c->scratch, c->scratch_bytes, parts);
    if (status != SWA_OK) return status;
    swa__ask_of_rows(&call);
    return swa__part_run(&call, swa__phase, &call, phase, SWA_PHASES, part, parts);
}

SWA_API swa_status swa_attend(swa_cache *cache, int layer, const swa_attn *attn) {
    const swa__cache *c = swa__get(cache);
    swa__call call;
    swa_status status;
    int parts = SWA__THREADS();

    status = swa__attend_ring(c, layer, attn, 0, 0, parts, &call).status;
    if (status != SWA_OK) return status;
    do status = swa__call_scratch(&call, c->scratch, c->scratch_bytes, parts);
    while (status == SWA_ERR_MEMORY && --parts > 0);     /* fewer, if the scratch has no room */
    if (status != SWA_OK) return status;
    swa__parts_none(&call);
    swa__call_phases(&call, parts);
    return status;
}

/* Rows of a stateless call that may be split over keys; large ones have units enough. */
static size_t swa__rows_split(const swa__call *of) {
    const swa_rows *r = of->rows;
    const swa_shape *s = &of->shape;
    swa__call call;
    swa__job j;
    double rows;

    /* as much of a call as the list of blocks depends on */
    memset(&call, 0, sizeof call);
    call.rows = r;
    call.kv = of->kv;
    call.n_kv = of->n_kv;
    call.shape = *s;
    call.group = 1;
    swa__job_make(&call, 0, &j);
    rows = (double)r->n_tokens * s->n_heads * j.all.n;
    return rows * (double)swa__partial_bytes(s) <= (double)SWA__SPLIT_BYTES ? (size_t)rows : 0;
}

/* As swa__apart; but heads of a lone token may share numbers, since they are only read. */
static int swa__kv_apart(int64_t token, int64_t head, const swa_shape *s, int32_t n, int dim) {
    const swa_in x = { NULL, token, head };
    return dim == 0
        || (token >= 0 && head >= 0
            && (n > 1 ? swa__apart(x, n, s->n_kv_heads, dim)
                      : swa__steps_ok(token, n) && swa__steps_ok(head, s->n_kv_heads)));
}
static int swa__kv_strides_ok(const swa_shape *s, const swa_kv *kv) {
    return swa__kv_apart(kv->k_token, kv->k_head, s, kv->n, s->head_dim)
        && swa__kv_apart(kv->tail_token, kv->tail_head, s, kv->n, s->tail_dim)
        && (s->v_in_k || swa__kv_apart(kv->v_token, kv->v_head, s, kv->n, s->v_dim));
}

/* Whether rows in blocks of 32 numbers consist of whole ones, and begin with one. */
static int swa__blocks_whole(const swa_shape *s, const swa_kv *kv) {
    int64_t odd = 0;
    if (swa__k_type(kv) == SWA_Q8_32) odd |= s->head_dim | kv->k_token | kv->k_head;
    if (swa__tail_type(kv) == SWA_Q8_32 && s->tail_dim > 0)
        odd |= s->tail_dim | kv->tail_token | kv->tail_head;
    if (swa__v_type(kv) == SWA_Q8_32 && !s->v_in_k) odd |= s->v_dim | kv->v_token | kv->v_head;
    return (odd & 31) == 0;
}

/* Whether V begins among K's rows, or K among V's, and is laid out otherwise: a fused [n][k | v] of
   which a token stride was forgotten, or both. Layouts of head after head are not looked at. */
static int swa__kv_tangled(const swa_shape *s, const swa_kv *kv) {
    const uint64_t k = (uint64_t)(uintptr_t)kv->k, v = (uint64_t)(uintptr_t)kv->v;
    const swa_in at_k = { NULL, kv->k_token, kv->k_head }, at_v = { NULL, kv->v_token, kv->v_head };
    const swa_in of_k = swa__in(at_k, s->n_kv_heads, s->head_dim);
    const swa_in of_v = swa__in(at_v, s->n_kv_heads, s->v_dim);
    const swa_in *low = k < v ? &of_k : &of_v;
    const int64_t row = (s->n_kv_heads - 1) * low->head + (k < v ? s->head_dim : s->v_dim);
    uint64_t apart = k < v ? v - k : k - v;

    if (s->v_in_k || kv->n < 2 || v == k || swa__k_type(kv) != swa__v_type(kv)
        || low->token < row || swa__k_type(kv) == SWA_Q8_32)
        return 0;
    apart /= swa__type_size((int)swa__k_type(kv));
    return apart < (uint64_t)low->token * (uint64_t)(kv->n - 1) + (uint64_t)row
        && (apart >= (uint64_t)low->token || of_k.token != of_v.token);
}

/* Whether a segment is laid out as one that has been looked at, as pages are: then it is asked for its
   pointers alone, since a host may give thousands of them. */
static int swa__segments_alike(const swa_kv *a, const swa_kv *b) {
    return a->n == b->n && a->layout_ == 0 && b->layout_ == 0 && a->k_type == b->k_type
        && a->v_type == b->v_type && a->tail_type == b->tail_type && a->k_token == b->k_token
        && a->k_head == b->k_head && a->v_token == b->v_token && a->v_head == b->v_head
        && a->tail_token == b->tail_token && a->tail_head == b->tail_head;
}

/* before: one that has been looked at, or NULL. */
static swa__verdict swa__segment_check(const swa_shape *s, const swa_kv *kv, const swa_kv *before) {
    const int alike = before != NULL && swa__segments_alike(kv, before);

    if (kv->k == NULL || (!s->v_in_k && kv->v == NULL) || (s->tail_dim > 0 && kv->tail == NULL))
        return swa__no(SWA_ERR_ARG, "kv: k, v or tail is NULL");
    if (!alike && !swa__types_ok(kv->k_type, kv->v_type, kv->tail_type))
        return swa__no(SWA_ERR_ARG, "kv: k_type, v_type or tail_type " SWA__NO_TYPE);
    /* a ring's span, as swa_cache_spans made it */
    if (kv->layout_ != 0)
        return swa__no(kv->layout_ > 0 && kv->lost_ >= 0
                               && kv->layout_ - 1 <= (int64_t)kv->slots_ - kv->n
                           ? SWA_OK
                           : SWA_ERR_ARG,
                       "kv: private fields are set, and not by swa_cache_spans: was it zeroed?");
    if ((kv->slots_ | kv->lost_) != 0 || kv->k_scale_ != NULL || kv->v_scale_ != NULL
        || kv->tail_scale_ != NULL)
        return swa__no(SWA_ERR_ARG, "kv: a private field is set; was it zeroed?");
    if (!alike && !swa__kv_strides_ok(s, kv))
        return swa__no(SWA_ERR_ARG, "kv: strides: rows overlap, one of two is missing, or one is above 2^44");
    if (swa__kv_tangled(s, kv))
        return swa__no(SWA_ERR_ARG, "kv: k and v run into each other: a token stride was forgotten");
    if (alike) return swa__yes();
    if (swa__k_type(kv) == SWA_Q8 || swa__v_type(kv) == SWA_Q8 || swa__tail_type(kv) == SWA_Q8)
        return swa__no(SWA_ERR_UNSUPPORTED, "kv: SWA_Q8 is for rings; rows take SWA_Q8_32");
    if (SWA__STAGED && !swa__blocks_whole(s, kv))
        return swa__no(SWA_ERR_UNSUPPORTED, "kv: SWA_Q8_32 wants dims and strides of whole 32s");
    return swa__yes();
}

/* Asks all segments for their order, and those that are looked at, [kv, kv + n_kv) of the call, for
   everything: without audit what queries may see (with sinks from 0 on), since the call touches no
   others. What a ring has lost lies right before its segment, so that one which begins behind the
   window is looked at if there is a gap. */
static swa__verdict swa__segments_check(const swa_rows *r, swa__call *call) {
    swa__seen seen = { 0, INT64_MAX };
    const swa_kv *before = NULL;
    int64_t end = 0, blocks = 0;
    swa__verdict v;
    int i;

    if (r->audit == 0 && r->n_tokens > 0) seen = swa__seen_of(&r->window, r->pos, r->n_tokens);
    if (r->window.n_sink > 0) seen.lo = 0;
    call->kv = r->kv;
    call->n_kv = 0;
    for (i = 0; i < r->n_kv; i++) {
        const swa_kv *kv = &r->kv[i];
        const int64_t gap = end; /* which begins there, if there is one */
        /* in order of position, without a common one: swa__find halves them */
        if (kv->n < 0 || kv->pos < end)
            return swa__no(SWA_ERR_ARG, "kv: n below 0, or pos not behind the segment before");
        if (kv->pos > INT64_MAX - 1 - kv->n) return swa__no(SWA_ERR_OVERFLOW, "kv: pos + n");
        end = kv->pos + kv->n;
        if (end <= seen.lo || gap >= seen.hi) continue;
        if (call->n_kv == 0) call->kv = kv;
        call->n_kv = (int)(kv - call->kv) + 1;
        if (kv->n == 0) continue;
        /* a list of blocks counts in int */
        blocks += swa__blocks_until(end) - kv->pos / SWA_BLOCK;
        if (blocks > INT32_MAX) return swa__no(SWA_ERR_OVERFLOW, "kv: too many keys");
        v = swa__segment_check(&call->shape, kv, before);
        if (v.status != SWA_OK) return v;
        before = kv;
    }
    return swa__yes();
}

/* The call's rows, shape and segments. */
static swa__verdict swa__rows_check(const swa_rows *r, swa__call *call) {
    swa_shape *s = &call->shape;
    swa_status status;

    if (r == NULL) return swa__no(SWA_ERR_ARG, "no rows");
    call->rows = r;
    *s = r->shape;
    if (!swa__shape_resolve(s)) return swa__no(SWA_ERR_ARG, swa__shape_fault(&r->shape));
    if (!swa__window_ok(&r->window))
        return swa__no(SWA_ERR_ARG, "window: a constructor's numbers were out of range, or none made it");
    if (r->n_tokens < 0 || r->pos < 0) return swa__no(SWA_ERR_ARG, "n_tokens or pos below 0");
    if (r->n_kv < 0 || (r->n_kv > 0 && r->kv == NULL))
        return swa__no(SWA_ERR_ARG, "n_kv below 0, or without kv");
    status = swa__isa_check(r->isa);
    if (status != SWA_OK) return swa__no(status, "isa: unknown, or this machine lacks it");
    if (r->audit < 0 || r->audit > 2) return swa__no(SWA_ERR_ARG, "audit: not 0, 1 or 2");
    if (!SWA__LATENTS && (s->tail_dim > 0 || s->v_in_k))
        return swa__no(SWA_ERR_UNSUPPORTED, "tails and v_in_k: SWA_NO_LATENTS left them out");
    if (r->pos > INT64_MAX - 1 - r->n_tokens
        || (int64_t)r->n_tokens * (s->n_heads / s->n_kv_heads) > INT32_MAX)
        return swa__no(SWA_ERR_OVERFLOW, "pos + n_tokens, or n_tokens * heads");

    return swa__segments_check(r, call);
}

static size_t swa__rows_bytes(const swa_rows *rows, const swa_shape *s, int parts,
                              size_t split_rows) {
    size_t n = 0;
    if (!swa__region(&n, swa__part_bytes(s, rows->window.n_sink > 0), (size_t)parts, 1)) return 0;
    if (parts > 1 && !swa__region(&n, split_rows, swa__partial_bytes(s), 1)) return 0;
    return swa__add(n, 63, &n) ? n : 0;
}

SWA__COLD SWA_API size_t swa_attention_bytes(const swa_rows *rows, int parts) {
    swa__call call;
    memset(&call, 0, sizeof call);
    if (!swa__parts_ok(parts) || swa__rows_check(rows, &call).status != SWA_OK) return 0;
    return swa__rows_bytes(rows, &call.shape, parts,
                           rows->n_tokens > 0 ? swa__rows_split(&call)
                                              : SWA__SPLIT_BYTES / swa__partial_bytes(&call.shape));
}

static int swa__reads_written(const swa_shape *s, const swa_rows *rows, const swa_attn *a,
                              const swa_kv *kv) {
    const void *const array[] = { kv->k, s->v_in_k ? NULL : kv->v,
                                  s->tail_dim > 0 ? kv->tail : NULL };
    int i, found = 0;

    for (i = 0; i < 3; i++)
        found |= swa__written(a, array[i])
              || swa__touch(array[i], 1, rows->scratch, rows->scratch_bytes);
    return found;
}

/* Whether a query sees what stood in a ring that segments read, and is overwritten. */
static int swa__sees_lost(const swa__call *call, const swa_window *w) {
    const swa_rows *r = call->rows;
    swa__seen seen;
    int i, found = 0;

    if (w == NULL || r->n_tokens == 0) return 0;
    seen = swa__seen_of(w, r->pos, r->n_tokens);
    for (i = 0; i < call->n_kv; i++) {
        const swa_kv *kv = &call->kv[i];
        const int64_t from = kv->layout_ != 0 ? kv->pos - kv->lost_ : kv->pos;
        found |= from < kv->pos && from < seen.hi && (seen.lo < kv->pos || from < w->n_sink);
    }
    return found;
}

/* With rows.audit: what is legal, and seldom meant. Queries are together a run. */
SWA__COLD static swa__verdict swa__rows_audit(const swa_rows *r, const swa_shape *s,
                                              const swa_attn *a) {
    swa__keys keys;
    const swa__there there = { 0, INT64_MAX, &keys };
    swa_run run;
    const int64_t last = r->pos + r->n_tokens;
    /* ends of what is held without a gap, from the first query on and from position 0 on */
    int64_t own = r->pos, first = 0, end = INT64_MAX;
    const swa_kv *before = NULL;
    swa__seen seen;
    int i;

    memset(&keys, 0, sizeof keys);
    keys.kv = r->kv;
    keys.n_kv = r->n_kv;
    memset(&run, 0, sizeof run);
    run.pos = r->pos;
    run.n = r->n_tokens;

    if (r->n_tokens == 0) return swa__no(SWA_ERR_ARG, "n_tokens: 0, under audit");
    if (r->window.kind == SWA__UNSAID) return swa__no(SWA_ERR_ARG, SWA__NO_WINDOW);
    seen = swa__seen_of(&r->window, r->pos, r->n_tokens);
    for (i = 0; i < r->n_kv; i++) {
        const swa_kv *kv = &r->kv[i];
        if (kv->n == 0) continue;
        /* a ring that holds the whole step may begin anew behind the queries of a part of it */
        if (kv->pos >= seen.hi && !(kv->layout_ != 0 && kv->pos == end))
            return swa__no(SWA_ERR_ARG, "kv: a segment behind all that queries see, under audit: is "
                                        "rows.pos set?");
        if (kv->k == kv->v && !s->v_in_k)
            return swa__no(SWA_ERR_ARG, "kv: v where k is, under audit: say v_in_k if V is a part of K");
        if (before != NULL && kv->k == before->k && kv->layout_ == 0)
            return swa__no(SWA_ERR_ARG, "kv: two segments with the same rows, under audit: is the page "
                                        "table right?");
        before = kv;
        if (swa__is_odd(kv->k, (int)kv->k_type)
            || (!s->v_in_k && swa__is_odd(kv->v, (int)kv->v_type))
            || (s->tail_dim > 0 && swa__is_odd(kv->tail, (int)kv->tail_type)))
            return swa__no(SWA_ERR_ARG, "kv: rows that do not begin at a whole number of their type, "
                                        "under audit");
        /* a ring's sequence may begin far behind other rows */
        if (r->audit > 1 && a->pick == NULL && kv->pos > end && kv->pos > seen.lo && end < last
            && (kv->layout_ == 0 || end > seen.lo))
            return swa__no(SWA_ERR_ARG, "kv: positions between two segments that a query sees and none "
                                        "holds (audit 2): was a page left out, or n not raised?");
        end = kv->pos + kv->n;
        if (kv->pos <= own) own = swa__max64(own, end);
        if (kv->pos <= first) first = end;
        if (r->audit > 1 && kv->layout_ == 0 && end > seen.hi)
            return swa__no(SWA_ERR_ARG, "kv: rows behind all that queries see (audit 2): is rows.pos "
                                        "set, and n the rows that are there?");
    }
    if (own < last && a->stat == NULL)
        return swa__no(SWA_ERR_ARG, "pos or kv: no segment holds a query's own position, under audit: is pos "
                                    "or n off, or a page left out?");
    if (r->audit > 1 && first < swa__min64(r->window.n_sink, last) && a->stat == NULL)
        return swa__no(SWA_ERR_ARG, "kv: pinned sinks that no segment holds (audit 2)");
    if (SWA__LISTS && r->audit > 1 && a->pick != NULL
        && !swa__lists_seen(a, s->n_kv_heads, &r->window, &run, &there))
        return swa__no(SWA_ERR_ARG, SWA__PICK_UNSEEN);
    return swa__audit_attn(s, a, r->n_tokens, last - 1);
}

/* A call over rows of the caller's, but for its scratch. */
static swa__verdict swa__rows_begin(const swa_rows *rows, const swa_attn *attn, int parts,
                                    swa__call *call) {
    swa__verdict v;
    swa_shape s;
    const void *arrays[14];
    int i;

    if (attn != NULL) swa__call_begin(call, attn, SWA_ATTEND_STORED);    /* keys come from rows->kv */
    v = swa__rows_check(rows, call);
    if (v.status != SWA_OK) return v;
    s = call->shape;
    if (attn == NULL || attn->q.p == NULL)
        return swa__no(SWA_ERR_ARG, "no attn or index, or q.p is NULL");
    if (rows->scratch == NULL) return swa__no(SWA_ERR_MEMORY, "rows' scratch is NULL");
    for (i = swa__arrays_of(&s, &call->a, arrays); i > 0; i--)
        if (swa__touch(arrays[i - 1], 1, rows->scratch, rows->scratch_bytes))
            return swa__no(SWA_ERR_ARG, "scratch: an array of the call begins in it");
    for (i = 0; i < call->n_kv; i++)
        if (call->kv[i].n > 0 && swa__reads_written(&s, rows, &call->a, &call->kv[i]))
            return swa__no(SWA_ERR_ARG, "kv: k, v or tail where the call writes, or in the scratch");
    i = 0;
    /* int8 products need K in q8, all of it */
    while (i < call->n_kv && (call->kv[i].n == 0 || swa__k_type(&call->kv[i]) == SWA_Q8)) i++;
    v = swa__attn_check(&s, &rows->window, &call->a, rows->n_tokens,
                        i == call->n_kv ? SWA_Q8 : SWA_F32);
    if (v.status == SWA_OK && rows->audit > 0) v = swa__rows_audit(rows, &s, &call->a);
    if (v.status != SWA_OK) return v;
    /* of a list's keys those that are lost are skipped, as all others that are not there */
    if (swa__sees_lost(call, call->a.pick != NULL ? call->a.pick_window : &rows->window))
        return swa__no(SWA_ERR_LOST, "kv: a query sees rows that the ring has overwritten: "
                                     "max_rollback says how many are kept for it");
    if (!swa__parts_ok(parts)) return swa__no(SWA_ERR_ORDER, "parts: out of range");
    swa__call_base(call, &s, rows->isa != 0 ? rows->isa : swa_isa_best());
    call->n_jobs = 1;
    call->sinks = rows->window.n_sink > 0;
    return swa__yes();
}

/* Whether q shares numbers with rows of a segment, as in a fused [n][q | k | v] that is read in place
   where q's token stride was forgotten. They may begin at one place. */
SWA__COLD static int swa__rows_tangled(const swa__call *call) {
    const swa_shape *s = &call->shape;
    const swa_in *q = &call->a.q;
    swa__extent of_q, of[2], *end, *e;
    int i;

    (void)swa__extent_add(&of_q, q->p, q->token, q->head, s->n_heads, s->head_dim, SWA__OF_QUERIES);
    swa__extent_reach(&of_q, call->rows->n_tokens);
    for (i = 0; i < call->n_kv; i++) {
        const swa_kv *kv = &call->kv[i];
        if (kv->n == 0) continue;
        end = of;
        if (swa__k_type(kv) == SWA_F32)
            end = swa__extent_add(end, (const float *)kv->k, kv->k_token, kv->k_head, s->n_kv_heads,
                                  s->head_dim, SWA__OF_KEYS);
        if (swa__v_type(kv) == SWA_F32 && !s->v_in_k)
            end = swa__extent_add(end, (const float *)kv->v, kv->v_token, kv->v_head, s->n_kv_heads,
                                  s->v_dim, SWA__OF_KEYS);
        for (e = of; e < end; e++) {
            swa__extent_reach(e, kv->n);
            if (e->x.p != q->p && e->from < of_q.to && of_q.from < e->to
                && swa__meet(swa__place_of(e, kv->n), swa__place_of(&of_q, call->rows->n_tokens)))
                return 1;
        }
    }
    return 0;
}

/* The same, of one that is attention alone. */
static swa__verdict swa__attend_rows(const swa_rows *rows, const swa_attn *attn, int parts,
                                     swa__call *call) {
    const swa__verdict v = swa__rows_begin(rows, attn, parts, call);

    if (v.status != SWA_OK) return v;
    if ((rows->n_tokens > 1 || rows->audit > 0) && swa__rows_tangled(call))
        return swa__no(SWA_ERR_ARG, "q: shares numbers with a segment's rows: in a fused [n][q | k | v] "
                                    "it has a token stride, too");
    return swa__alone_check(call, rows->n_tokens, rows->audit,
                            rows->audit > 0 && swa__sinks_far(&rows->window,
                                                              rows->pos + rows->n_tokens - 1));
}

/* As swa__call_scratch: slices for all parts have to be there, less room only splits nothing. */
static swa__verdict swa__rows_scratch(swa__call *call, int parts) {
    const swa_rows *rows = call->rows;

    if (!swa__enough(rows->scratch_bytes, swa__rows_bytes(rows, &call->shape, parts, 0)))
        return swa__no(SWA_ERR_MEMORY, "scratch_bytes: too little for so many parts, see swa_attention_bytes");
    swa__call_slices(call, swa__align64(rows->scratch));
    call->split = call->scratch + call->part_bytes * (size_t)parts;
    call->split_rows = swa__rows_split(call);
    if (!swa__enough(rows->scratch_bytes,
                     swa__rows_bytes(rows, &call->shape, parts, call->split_rows)))
        call->split_rows = 0;
    return swa__yes();
}

SWA__COLD SWA_API const char *swa_attention_explain(const swa_rows *rows, const swa_attn *attn) {
    swa__call call;
    const char *why = swa__attend_rows(rows, attn, 1, &call).why;
    return why != NULL ? why : swa__rows_scratch(&call, 1).why;
}

SWA__COLD SWA_API const char *swa_attention_part_explain(const swa_rows *rows, const swa_attn *attn,
                                                         int phase, int part, int parts) {
    swa__call call;
    swa__ticket mine;
    const char *why;

    if (!swa__part_ok(phase, SWA_PHASES, part, parts)) return SWA__NO_PART;
    why = swa__attend_rows(rows, attn, parts, &call).why;
    if (why == NULL) why = swa__rows_scratch(&call, parts).why;
    if (why != NULL) return why;
    mine = swa__ticket_of(&call, parts);
    return swa__tickets_miss(&call, &mine, phase, part, parts);
}

SWA_API swa_status swa_attention_part(const swa_rows *rows, const swa_attn *attn, int phase,
                                      int part, int parts) {
    swa__call call;
    swa_status status = swa__attend_rows(rows, attn, parts, &call).status;
    if (status == SWA_OK) status = swa__rows_scratch(&call, parts).status;
    if (status != SWA_OK) return status;
    if (!swa__part_ok(phase, SWA_PHASES, part, parts)) return SWA_ERR_ORDER;
    return swa__part_run(&call, swa__phase, &call, phase, SWA_PHASES, part, parts);
}

SWA_API swa_status swa_attention(const swa_rows *rows, const swa_attn *attn) {
    swa__call call;
    swa_status status;
    int parts = SWA__THREADS();

    status = swa__attend_rows(rows, attn, parts, &call).status;
    if (status != SWA_OK) return status;
    do status = swa__rows_scratch(&call, parts).status;
    while (status == SWA_ERR_MEMORY && --parts > 0);     /* fewer, if the scratch has no room */
    if (status == SWA_OK) swa__call_phases(&call, parts);
    return status;
}

static int swa__stats_ok(const float *stat, size_t rows) {
    size_t r;
    int ok = 1;
    for (r = 0; r < rows; r++) ok &= !(stat[2 * r + 1] < 0.0f);
    return ok;
}

/* Row by row, 512 numbers at a time. A partial's are read in place, but for those behind the last
   whole vector of a row. */
SWA_API swa_status swa_merge(const float *const *outs, const float *const *stats, int n,
                             int32_t n_tokens, int n_heads, int v_dim, const float *sink_logits,
                             float *out, float *lse) {
    const swa__kernels *kr = swa__kernels_of(swa_isa_best());
    size_t rows, row, all, r;
    float o[512], part[512], m, l, mb, lb;
    const swa__total total = { o, &m, &l };
    const float *odd;
    int i, d, w, dp;

    if (n < 0 || n_tokens < 0 || v_dim <= 0 || n_heads <= 0
        || (n > 0 && (outs == NULL || stats == NULL)) || !swa__logits_ok(sink_logits, n_heads))
        return SWA_ERR_ARG;
    if (!swa__mul((size_t)n_tokens, (size_t)n_heads, &rows) || !swa__mul(2 * sizeof *out, rows, &row))
        return SWA_ERR_OVERFLOW;
    row /= 2;
    if (!swa__mul(row, (size_t)v_dim, &all)) return SWA_ERR_OVERFLOW;
    if (swa__touch(out, all, lse, row)) return SWA_ERR_ARG;
    for (i = 0; i < n; i++)
        if (outs[i] == NULL || stats[i] == NULL
            || (out != outs[i] && swa__touch(out, all, outs[i], all))
            || swa__touch(out, all, stats[i], 2 * row) || swa__touch(lse, row, outs[i], all)
            || swa__touch(lse, row, stats[i], 2 * row) || !swa__stats_ok(stats[i], rows))
            return SWA_ERR_ARG;
    for (r = 0; r < rows; r++)
        for (d = 0; d < v_dim; d += w) {
            w = swa__min(v_dim - d, 512);
            dp = (w + 15) / 16 * 16; /* whole vectors */
            memset(o, 0, (size_t)dp * sizeof *o);
            if (w != dp) memset(part, 0, (size_t)dp * sizeof *part);
            m = SWA__NONE;
            l = 0.0f;
            odd = NULL;
            for (i = 0; i < n; i++) {
                const float *stat = stats[i] + 2 * r;
                const float *of = outs[i] + r * (size_t)v_dim + d;
                if (swa__is_nan(stat[1])) odd = stat + 1;
                if (!(stat[1] > 0.0f)) continue; /* an empty part is the identity                 */
                if (w != dp) memcpy(part, of, (size_t)w * sizeof *part);
                kr->fold(1, dp, &total, w != dp ? part : of, stat, stat + 1);
            }
            /* before the logit, as everywhere; by every piece of the row alike */
            if (lse != NULL) lse[r] = odd != NULL ? *odd : swa__lse(m, l);
            if (sink_logits != NULL) {
                lb = swa__sink_logit(sink_logits[r % (size_t)n_heads], &mb);
                memset(part, 0, (size_t)dp * sizeof *part);
                kr->fold(1, dp, &total, part, &mb, &lb);
            }
            if (out != NULL) {
                float *to = out + r * (size_t)v_dim + (size_t)d;
                kr->finish(1, dp, w, o, &l, &to);
                /* a NaN that somebody's inputs have made goes on */
                SWA__ROLLED for (i = 0; i < w && odd != NULL; i++) to[i] = *odd;
            }
        }
    return SWA_OK;
}

/* ==== [SECTION 13] LATENT ========================================================================
   DeepSeek's MLA (DeepSeek-V2 2024, 2.1; [MLA]). The core is the attention of [SECTION 12] on a
   ring of latents; this room holds what lies around it: the products with the weights, and the
   naive path, for which it brings a block of latents into the K and V of a head. Phases:
     0     c_q = W_DQ h, latent = W_DKV h, k_rope = W_KR h
     1     angles, norms, RoPE of k
     2     q = W_UQ c_q, or its nope part through W_UQK
     3     RoPE of q; q_nope W_UK, or the new K and V expanded
     4, 5  attention, then its fold and store
     6, 7  W_UV; W_O, or W_UVO

   Most of that is a table of products. A phase's outputs are counted through, and a part takes its
   share of the count, cut where the matrices allow it. An output's sum never depends on the cut:
   the same bits for any number of parts.

   One score, of head h, for a query with q_nope, q_rope and a key with latent c and k_rope:

       q_nope . (W_UK c) + q_rope . k_rope          naive: K of the head, then an ordinary product
     = (W_UK^T q_nope) . c + q_rope . k_rope        absorbed: one product with the row as cached

   and so for the values: the sum of p * (W_UV c) is W_UV times the sum of p * c. Naive costs
   nope + rope + v a pair of query and key, but W_UK and W_UV once per key; absorbed 2 * kv_lora +
   rope a pair, but those once per query: many new tokens make the first cheaper, few the second
   (swa__mla_rule). Merged is absorbed with W_UK^T W_UQ and W_O W_UV multiplied beforehand.

   The arrays of a call, all [n tokens][..] in the scratch, and what each phase makes of them:

       phase   all runs           absorbed                 naive        expanded cache
       0, 1    h -> CQ, CKV, KROPE
       2       CQ -> Q            merged: CQ -> WIDE
       3       RoPE of Q          else: Q -> WIDE                       CKV, KROPE -> K, V
       4, 5                       WIDE, QROPE -> WIDE      Q -> O       Q -> O
               then stored: CKV, KROPE                                  K, V
       6                          WIDE -> O
       7       O -> out           merged: WIDE -> out

   Runs of one step may go either way, each by its own length and history. Merged, Q has no nope
   part. */
#if SWA__MLA

enum { SWA__MLA_ATTEND = 4,                           /* the phase in which attention begins */
       SWA__MLA_MAX = 1 << 20, /* of any size, so that a product of two fits an int64_t */
       /* floats in which a product packs the tokens */
       SWA__PACK = SWA__GEMM_TOKENS * SWA__GEMM_SUM,
       SWA__MERGE_ROWS = 256 };                       /* rows of W_O that are merged at a time */

/* The weights by meaning. Two may lie in one matrix: of head h, rows first + h*per and on. */
enum {
    SWA__W_DQ,
    SWA__W_DKV,
    SWA__W_KR,
    SWA__W_UQ,
    SWA__W_QR,
    SWA__W_UK,
    SWA__W_UV,
    SWA__W_O,
    SWA__W_UQK,
    SWA__W_UVO,
    SWA__W_UKT,
    SWA__WEIGHTS
}; /* the last is W_UK once more, multiplied from its other side */
/* Row r of head h is row first + h*per + r of the matrix, [rows][cols] of a head. transposed: it is
   multiplied from its other side, so that cols are the outputs. */
typedef struct {
    const swa_matrix *w;
    int32_t heads, rows, cols; /* heads 0: this block has no such weight, or does not read it */
    int64_t first, per;
    int     transposed;
} swa__weight;

/* The arrays of a call, [n tokens][heads][..]. WIDE: the absorbed q, later its output. K, V: for an
   expanded cache. */
enum { SWA__A_H, SWA__A_OUT,                      /* [hidden] */
       SWA__A_CQ, SWA__A_CKV, SWA__A_KROPE,       /* [q_lora], [latent], [rope] */
       SWA__A_Q, SWA__A_QROPE, SWA__A_QSINK,      /* [nope | rope], its second half, q as pinned
                                                     sinks see it                                 */
       SWA__A_WIDE, SWA__A_O, SWA__A_K, SWA__A_V, /* [latent], [v], [nope | rope], [v] */
       SWA__ARRAYS };
/* in and out are the same place, but of h and the output, each of which has one of them. Strides in
   floats; head 0: all heads see the same. */
typedef struct { const float *in; float *out; int64_t token, head; } swa__array;

enum { SWA__ALWAYS, SWA__EXPANDED, SWA__ABSORBED };
/* the block: out = w in. What a phase reads the phases before have written; within one no product
   reads what another writes */
static const struct { int phase, when, w, in, out; } swa__products[] = {
    { 0, SWA__ALWAYS, SWA__W_DQ, SWA__A_H, SWA__A_CQ },
    { 0, SWA__ALWAYS, SWA__W_DKV, SWA__A_H, SWA__A_CKV },
    { 0, SWA__ALWAYS, SWA__W_KR, SWA__A_H, SWA__A_KROPE },
    { 2, SWA__ALWAYS, SWA__W_UQK, SWA__A_CQ, SWA__A_WIDE },
    { 2, SWA__ALWAYS, SWA__W_UQ, SWA__A_CQ, SWA__A_Q },
    { 2, SWA__ALWAYS, SWA__W_QR, SWA__A_CQ, SWA__A_QROPE },
    { 3, SWA__EXPANDED, SWA__W_UK, SWA__A_CKV, SWA__A_K },
    { 3, SWA__EXPANDED, SWA__W_UV, SWA__A_CKV, SWA__A_V },
    { 3, SWA__ABSORBED, SWA__W_UKT, SWA__A_Q, SWA__A_WIDE },
    { 6, SWA__ABSORBED, SWA__W_UV, SWA__A_WIDE, SWA__A_O },
    { 7, SWA__ALWAYS, SWA__W_O, SWA__A_O, SWA__A_OUT },
    { 7, SWA__ALWAYS, SWA__W_UVO, SWA__A_WIDE, SWA__A_OUT },
};

/* One part of a call, or (base NULL) the question how large its memory is. What does not depend on
   the part comes out the same in each. */
typedef struct {
    const swa_mla *m;
    const swa__cache *c;
    const swa__layer *l;
    swa__weight w[SWA__WEIGHTS];
    swa__array a[SWA__ARRAYS];
    int     layer, part, parts;
    int     expanded;               /* the layer holds K and V of all heads */
    int     naive, absorbed, sinks; /* what a run may take: which paths, a second rotation of q */
    int64_t n;                      /* tokens */
    double *angles;                 /* [n][rope/2] cos, then sin; with sinks [n] more of them */
    float  *pack;                   /* [parts][SWA__PACK] */
    unsigned char *naive_parts;     /* [parts][naive_bytes] scratch of the naive path */
    size_t  naive_bytes, bytes;
    unsigned char *base;
    int     fits;                        /* bytes has not overflowed */
    swa__call call;                      /* of the attention */
} swa__mla;

/* ---- weights ---- */

/* One matrix of two: it is given twice. */
static int swa__shared(const swa_matrix *a, const swa_matrix *b) { return a->p == b->p; }

/* Weights t[0] and t[1] of matrices a and b; b NULL: there is no second. Rows of one head lie
   together: of both, [a | b], where they share a matrix. */
static void swa__weight_pair(swa__weight *t, const swa_matrix *a, const swa_matrix *b, int rows_a,
                             int rows_b, int cols) {
    const int shared = b != NULL && swa__shared(a, b), both = rows_a + rows_b;
    const swa__weight first = { a, 1, rows_a, cols, 0, shared ? both : rows_a, 0 };
    const swa__weight second = { b, 1, rows_b, cols, shared ? rows_a : 0, shared ? both : rows_b, 0 };
    t[0] = first;
    if (b != NULL) t[1] = second;
}

/* uqk, uvo: these products are read instead of their factors. */
SWA__COLD static void swa__weights(const swa_mla *m, int uqk, int uvo, swa__weight *t) {
    const int q_in = m->q_lora_rank > 0 ? m->q_lora_rank : m->hidden, latent = m->kv_lora_rank;
    int i;

    swa__weight_pair(t + SWA__W_DQ, &m->w_dq, NULL, m->q_lora_rank, 0, m->hidden);
    swa__weight_pair(t + SWA__W_DKV, &m->w_dkv, &m->w_kr, latent, m->rope_dim, m->hidden);
    swa__weight_pair(t + SWA__W_UQ, &m->w_uq, &m->w_qr, m->nope_dim, m->rope_dim, q_in);
    swa__weight_pair(t + SWA__W_UK, &m->w_uk, &m->w_uv, m->nope_dim, m->v_dim, latent);
    swa__weight_pair(t + SWA__W_O, &m->w_o, NULL, m->hidden, 0, m->n_heads * m->v_dim);
    swa__weight_pair(t + SWA__W_UQK, &m->w_uqk, NULL, m->n_heads * latent, 0, q_in);
    swa__weight_pair(t + SWA__W_UVO, &m->w_uvo, NULL, m->hidden, 0, m->n_heads * latent);
    /* four have rows for each head; the others are multiplied whole */
    for (i = SWA__W_UQ; i <= SWA__W_UV; i++) t[i].heads = m->n_heads;
    t[SWA__W_UKT] = t[SWA__W_UK];
    t[SWA__W_UKT].transposed = 1;
    if (!uqk && swa__shared(&m->w_uq, &m->w_qr)) { /* rows of W_UQ and W_QR lie as q does: they are
                                                      multiplied as one */
        t[SWA__W_UQ].heads = 1;
        t[SWA__W_UQ].rows = m->n_heads * (m->nope_dim + m->rope_dim);
        t[SWA__W_QR].heads = 0;
    }

    /* of the factors and their product one side is not read */
    if (uqk) t[SWA__W_UQ].heads = t[SWA__W_UK].heads = t[SWA__W_UKT].heads = 0;
    else t[SWA__W_UQK].heads = 0;
    if (uvo) t[SWA__W_UV].heads = t[SWA__W_O].heads = 0;
    else t[SWA__W_UVO].heads = 0;
    if (m->c_q != NULL) t[SWA__W_DQ].heads = 0;
    for (i = 0; i < SWA__WEIGHTS; i++)
        if (t[i].rows == 0) t[i].heads = 0;
}

/* Numbers per token that a product with it gives, all heads together. */
static int64_t swa__outputs(const swa__weight *w) {
    return (int64_t)w->heads * (w->transposed ? w->cols : w->rows);
}

static int64_t swa__row_stride(const swa__weight *w) {
    return w->w->stride > 0 ? w->w->stride : w->cols;
}

/* A number of a matrix that is not OPAQUE. */
static const void *swa__weight_at(const swa__weight *w, int64_t row, int64_t col) {
    return (const unsigned char *)w->w->p
           + (size_t)(row * swa__row_stride(w) + col) * swa__type_size((int)w->w->type);
}

/* Rows [row, row+n) as f32, one behind the other; up to 15 floats behind them are overwritten
   too. */
static void swa__weight_rows(const swa_mla *m, const swa__kernels *kr, const swa__weight *w,
                             int64_t row, int n, float *out) {
    float scale;
    int i;

    if (w->w->type == SWA_OPAQUE) {
        m->rows(m->user, w->w, row, n, out);
        return;
    }
    /* f32 is rounded to f32 as well, which copies; what the kernel fills up behind a row the next
       one overwrites */
    for (i = 0; i < n; i++, out += w->cols)
        kr->round(SWA_F32, swa__weight_at(w, row + i, 0), (int)swa__type_or(w->w->type, SWA_F32),
                  w->cols, out, &scale);
}

/* ---- checks and sizes ---- */

/* Each dimension in its range, and all heads' rows of any weight countable in int32: matrices of
   that many rows are multiplied as one. */
SWA__COLD static swa__verdict swa__mla_dims_check(const swa_mla *m) {
    int dims[7], i;
    int64_t most;

    if (m == NULL) return swa__no(SWA_ERR_ARG, "no swa_mla");
    if (m->rope_dim % 2 != 0) return swa__no(SWA_ERR_ARG, "rope_dim: odd");
    dims[0] = m->hidden;
    dims[1] = m->n_heads;
    dims[2] = m->kv_lora_rank;
    dims[3] = m->nope_dim;
    dims[4] = m->v_dim;
    dims[5] = m->q_lora_rank;            /* this and the next may be 0 */
    dims[6] = m->rope_dim;
    /* five that there must be; then products of two fit an int64_t */
    for (i = 0; i < 7; i++)
        if (dims[i] < (i < 5))
            return swa__no(SWA_ERR_ARG,
                           i < 5 ? "hidden, n_heads, kv_lora_rank, nope_dim or v_dim: not above 0"
                                 : "q_lora_rank or rope_dim: below 0");
    for (i = 0; i < 7; i++)
        if (dims[i] > SWA__MLA_MAX) return swa__no(SWA_ERR_OVERFLOW, "a dimension");
    most =
        swa__max64(m->kv_lora_rank, swa__max64(m->nope_dim + m->rope_dim, m->nope_dim + m->v_dim));
    return swa__no(m->n_heads * most <= INT32_MAX ? SWA_OK : SWA_ERR_OVERFLOW, "n_heads * dims");
}

/* Each weight's name: it is read, and not there. */
#define SWA__TWICE ": p is NULL; where it lies in the matrix before, give that twice"
static const char *const swa__missing[SWA__WEIGHTS] = {
    "w_dq: p is NULL, and no c_q", "w_dkv: p is NULL", "w_kr" SWA__TWICE, "w_uq: p is NULL", "w_qr" SWA__TWICE,
    "w_uk: p is NULL", "w_uv" SWA__TWICE, "w_o: p is NULL", "w_uqk: p is NULL", "w_uvo: p is NULL",
    "w_uk: p is NULL"
};

/* A weight that is read is there, and can be cut where the block has to cut it: between heads, and
   between two weights that lie in one matrix. */
SWA__COLD static swa__verdict swa__weight_check(const swa_mla *m, const swa__weight *w,
                                                const char *missing) {
    const swa_matrix *a = w->w;

    if (w->heads == 0) return swa__yes();
    if (a->p == NULL) return swa__no(SWA_ERR_ARG, missing);
    if (a->stride < 0 || a->block_rows < 0 || a->block_cols < 0)
        return swa__no(SWA_ERR_ARG, "a weight's stride, block_rows or block_cols: below 0");
    if (a->block_rows > 1
        && (w->first % a->block_rows != 0 || (w->heads > 1 && w->per % a->block_rows != 0)))
        return swa__no(SWA_ERR_ARG, "a weight's block_rows: heads do not begin at blocks");
    if (a->type == SWA_OPAQUE)
        return swa__no(m->gemm != NULL ? SWA_OK : SWA_ERR_ARG, "an OPAQUE weight, and no gemm");
    if (a->stride > 0 && a->stride < w->cols)
        return swa__no(SWA_ERR_ARG, "a weight's stride: shorter than its rows");
    if (!swa__steps_ok(swa__row_stride(w), w->first + w->heads * w->per))
        return swa__no(SWA_ERR_OVERFLOW, "a weight's rows * stride: more than memory holds");
    if (a->type == SWA_Q8 || (SWA__IS_STAGED(a->type) && swa__type_ok(a->type)))
        return swa__no(SWA_ERR_UNSUPPORTED, "a weight's type: OPAQUE, for those of your own");
    return swa__no(swa__type_ok(a->type) ? SWA_OK : SWA_ERR_ARG, "a weight's type: unknown");
}

/* Two weights in one matrix, and no description that fits both: of a shared one two different
   things are said; or b begins behind the rows of a's first head, as in W_KVB, which has [nope | v]
   of each head: what follows would be taken for b's other heads. */
static int swa__torn(const swa_matrix *a, const swa_matrix *b, int rows, int64_t cols, int heads) {
    const uint64_t from = (uint64_t)(uintptr_t)a->p, at = (uint64_t)(uintptr_t)b->p;

    if (a->p == NULL || b->p == NULL) return 0;
    if (swa__shared(a, b))
        return a->type != b->type || a->stride != b->stride || a->block_rows != b->block_rows
               || a->block_cols != b->block_cols;
    if (heads < 2 || a->type == SWA_OPAQUE || !swa__type_ok(a->type)) return 0;
    if (a->stride > 0) cols = a->stride;
    return at - from
        == (uint64_t)rows * (uint64_t)cols * swa__type_size((int)swa__type_or(a->type, SWA_F32));
}

static swa__verdict swa__pairs_check(const swa_mla *m) {
    const int64_t kv = m->kv_lora_rank, q = m->q_lora_rank > 0 ? m->q_lora_rank : m->hidden;

    if (m->rope_dim > 0
        && (swa__torn(&m->w_uq, &m->w_qr, m->nope_dim, q, m->n_heads)
            || swa__torn(&m->w_dkv, &m->w_kr, 0, 0, 1)))
        return swa__no(SWA_ERR_ARG, "w_qr or w_kr lies in the matrix before: all its fields are the same then");
    return swa__no(swa__torn(&m->w_uk, &m->w_uv, m->nope_dim, kv, m->n_heads) ? SWA_ERR_ARG
                                                                               : SWA_OK,
                   "w_uv lies in w_uk's matrix, and is not the same");
}

/* Whether W_UQ and W_UK come as their product. */
static int swa__merged(const swa_mla *m) { return m->w_uqk.p != NULL; }
/* Merged weights hold no W_UK to expand keys by, and a list's keys are gathered as they are
   cached. */
static int swa__never_naive(const swa_mla *m) { return swa__merged(m) || m->pick != NULL; }

/* Norms, rotation, and factors of the scale. */
SWA__COLD static swa__verdict swa__mla_numbers_check(const swa_mla *m) {
    const double factor[4] = { m->scale, m->mscale, m->rope_mscale,
                               swa_mla_scale(m->nope_dim, m->rope_dim, m->mscale) };
    int i;

    if ((m->rope_dim > 0) != (m->freq != NULL))
        return swa__no(SWA_ERR_ARG, "freq without rope_dim, or reverse");
    if ((int)m->pairs < 0 || (int)m->pairs > SWA_ROPE_HALF)
        return swa__no(SWA_ERR_ARG, "pairs: not one of swa_rope_pairs");
    /* a NaN, too, is not >= 0 */
    if (!(m->eps >= 0.0f) || !swa__finite(m->eps))
        return swa__no(SWA_ERR_ARG, "eps: below 0, or not finite");
    if ((m->q_norm != NULL || m->w_dq.p != NULL || m->c_q != NULL) && m->q_lora_rank == 0)
        return swa__no(SWA_ERR_ARG, "w_dq, q_norm or c_q without q_lora_rank");
    if (m->c_q_token != 0 && (m->c_q == NULL || m->c_q_token < m->q_lora_rank))
        return swa__no(SWA_ERR_ARG, "c_q_token: without c_q, or shorter than q_lora_rank");
    if (m->freq != NULL && !swa__freq_ok(m->freq, m->rope_dim / 2))
        return swa__no(SWA_ERR_ARG, "freq: below 0, NaN, or above a turn a token: inverse "
                                    "frequencies, base^(-2i/rope)");
    if ((m->q_norm != NULL || m->kv_norm != NULL) != (m->eps > 0.0f))
        return swa__no(SWA_ERR_ARG, "eps without q_norm and kv_norm, or reverse");
    /* 0 is the default in each; as floats, too: no smaller one becomes it */
    for (i = 0; i < 4; i++)
        if (factor[i] != 0
            && (!swa__positive(factor[i]) || factor[i] < 1e-37 || factor[i] > 1e38))
            return swa__no(SWA_ERR_ARG, "scale, mscale or rope_mscale, or the scale that mscale "
                                        "gives: not from 1e-37 to 1e38");
    return swa__yes();
}

static int swa__any_opaque(const swa_mla *m) {
    const swa_matrix *const all[] = { &m->w_dq, &m->w_uq, &m->w_qr, &m->w_dkv,
                                      &m->w_kr, &m->w_uk, &m->w_uv, &m->w_o };
    int i = 0;
    while (i < 8 && all[i]->type != SWA_OPAQUE) i++;
    return i < 8;
}

/* w: the weights as this block has them. */
SWA__COLD static swa__verdict swa__mla_check(const swa_mla *m, swa__weight *w) {
    swa__verdict v = swa__mla_dims_check(m);
    int i;

    if (v.status != SWA_OK) return v;
    if ((int)m->path < SWA_MLA_AUTO || (int)m->path > SWA_MLA_ABSORBED)
        return swa__no(SWA_ERR_ARG, "path: not one of swa_mla_path");
    if (m->sink_pos < 0) return swa__no(SWA_ERR_ARG, "sink_pos: below 0");
    v = swa__mla_numbers_check(m);
    if (v.status != SWA_OK) return v;
    v = swa__pairs_check(m);
    if (v.status != SWA_OK) return v;
    if (swa__never_naive(m) && m->path == SWA_MLA_NAIVE)
        return swa__no(SWA_ERR_ARG, "path SWA_MLA_NAIVE with w_uqk or pick");
    if (!swa__merged(m) && m->w_uvo.p != NULL) return swa__no(SWA_ERR_ARG, "w_uvo without w_uqk");
    /* rows are of OPAQUE weights: a forgotten type would be read as f32 */
    if (m->rows != NULL && !swa__merged(m) && !swa__any_opaque(m))
        return swa__no(SWA_ERR_ARG, "rows, and no weight is OPAQUE");
    swa__weights(m, swa__merged(m), m->w_uvo.p != NULL, w);
    for (i = 0; i < SWA__WEIGHTS && v.status == SWA_OK; i++)
        v = swa__weight_check(m, &w[i], swa__missing[i]);
    return v;
}

SWA__COLD SWA_API double swa_mla_scale(int nope_dim, int rope_dim, double mscale) {
    if (nope_dim <= 0 || rope_dim < 0) return 0.0;          /* which swa_attend refuses */
    return (mscale != 0 ? mscale * mscale : 1.0) / sqrt((double)nope_dim + (double)rope_dim);
}

SWA__COLD SWA_API swa_shape swa_mla_shape(const swa_mla *mla, int expanded) {
    swa_shape s;

    memset(&s, 0, sizeof s);
    if (mla == NULL) return s;
    s.n_heads = mla->n_heads;
    s.n_kv_heads = expanded ? mla->n_heads : 1;
    s.head_dim = !expanded ? mla->kv_lora_rank
               : mla->nope_dim < 0 || mla->rope_dim < 0 || mla->nope_dim > INT32_MAX - mla->rope_dim
                   ? -1
                   : mla->nope_dim + mla->rope_dim;
    s.v_dim = expanded ? mla->v_dim : mla->kv_lora_rank;
    s.tail_dim = expanded ? 0 : mla->rope_dim;
    s.v_in_k = !expanded;
    return s;
}

static int swa__shape_is(const swa_shape *a, const swa_shape *b) {
    return a->n_heads == b->n_heads && swa__same_rows(a, b);
}

/* ---- the rule ---- */

/* What swa_mla_choose says, of valid dimensions: there stands the inequality, in which the number
   of heads, the rope numbers and all other products have cancelled. In double, because a history
   may be as long as positions go. */
static swa_mla_path swa__mla_rule(const swa_mla *m, int64_t n_cached, int32_t n_new) {
    const double a = (double)m->kv_lora_rank * ((double)m->nope_dim + m->v_dim);
    const double b = 2.0 * m->kv_lora_rank - m->nope_dim - m->v_dim, s = n_new,
                 n = (double)n_cached + s;
    if (swa__never_naive(m)) return SWA_MLA_ABSORBED;
    return (n > 16 ? n : 16) * a - s * n * b > s * a ? SWA_MLA_ABSORBED : SWA_MLA_NAIVE;
}

/* Whether the rule can say NAIVE for a run of at most n tokens. The more of them are new, the
   sooner it does; over the history its two sides are straight lines with a bend at 16 keys, so the
   bend and the ends decide. Asked before memory is carved: where no run can be naive, none is taken
   for it. */
static int swa__mla_may_expand(const swa_mla *m, int32_t n) {
    return swa__mla_rule(m, 0, n) == SWA_MLA_NAIVE
        || swa__mla_rule(m, INT64_MAX / 2, n) == SWA_MLA_NAIVE
        || (n < 16 && swa__mla_rule(m, 16 - n, n) == SWA_MLA_NAIVE);
}

/* Numbers and bytes of the weights that a call reads; nobody but the host knows the bytes of OPAQUE
   ones. W_UK from its other side, the last of them, is not counted again. */
SWA__COLD static double swa__weight_count(const swa__weight *w, double *bytes) {
    double all = 0, n;
    int i;

    *bytes = 0;
    for (i = 0; i < SWA__W_UKT; i++) {
        n = (double)swa__outputs(&w[i]) * w[i].cols;
        all += n;
        if (w[i].w->type != SWA_OPAQUE) *bytes += n * (double)swa__type_size((int)w[i].w->type);
    }
    return all;
}

/* Pairs of a query and a key that it may see, if nothing is windowed: every old one, and of the new
   ones half a square. Way 2 has w_uqk and w_uvo, way 3 an expanded cache. */
SWA__COLD static void swa__mla_costs(const swa_mla *m, double cached, double n,
                                     swa_mla_cost *cost) {
    const double h = m->n_heads, l = m->kv_lora_rank, r = m->rope_dim,
                 expanded = (double)m->nope_dim + r + m->v_dim;
    const double pairs = (n * cached + n * (n + 1) / 2) * h;
    swa__weight w[SWA__WEIGHTS];
    int i;

    for (i = 0; i < 4; i++) {
        swa__weights(m, i == 2, i == 2, w);
        /* every weight, once a token */
        cost[i].macs = n * swa__weight_count(w, &cost[i].weight_bytes);
        cost[i].macs += pairs * (i == 1 || i == 2 ? 2 * l + r : expanded);
        cost[i].cache_bytes = 4 * cached * (i < 3 ? l + r : h * expanded);
    }
    /* W_UK and W_UV for the old tokens too */
    cost[0].macs += cached * l * h * ((double)m->nope_dim + m->v_dim);
}

SWA_API swa_mla_path swa_mla_choose(const swa_mla *mla, int64_t n_cached, int32_t n_new,
                                    swa_mla_cost cost[4]) {
    if (swa__mla_dims_check(mla).status != SWA_OK || n_cached < 0 || n_new < 0) return SWA_MLA_AUTO;
    if (cost != NULL) swa__mla_costs(mla, (double)n_cached, n_new, cost);
    return swa__mla_rule(mla, n_cached, n_new);
}

/* The path of one run: its own length and the cached rows in its reach decide, not the batch it is
   in. */
static swa_mla_path swa__mla_path_of(const swa__mla *x, const swa_run *run) {
    const swa_window *window = &x->l->window;
    const int64_t start = swa__seq_of(x->c, run->seq)->start,
                  lo = swa__max64(swa__lowest(window, run->pos), start);

    if (x->expanded) return SWA_MLA_NAIVE;
    if (x->m->path != SWA_MLA_AUTO) return x->m->path;
    if (run->parents != NULL) return SWA_MLA_ABSORBED;   /* which gathers keys as they are */
    /* cached rows in reach: from the window's lower end on, and the sinks before it, of those that
       the sequence has */
    return swa__mla_rule(x->m, run->pos - lo + swa__max64(swa__min64(window->n_sink, lo) - start, 0),
                         run->n);
}

/* ---- scratch ---- */

/* The naive path in one part: room for the latents of a block, their values not yet transposed
   into rows, and the weights of head h as f32, in panels of 16 dims, [dims/16][latent][16]. */
typedef struct {
    const swa__mla *x;
    swa__room latents;
    float *dims, *w_uk, *w_uv;
    int h;
} swa__naive;

/* Carves it behind the scratch of the attention over expanded heads; returns the bytes of both. */
SWA__COLD static size_t swa__naive_carve(const swa_mla *m, int sinks, unsigned char *base,
                                         swa__naive *e) {
    const size_t latent = (size_t)m->kv_lora_rank, row = latent + (size_t)m->rope_dim,
                 dvp = swa__pad16(m->v_dim);
    const swa_shape shape = swa_mla_shape(m, 1);
    size_t uk, uv;
    swa__scratch w;

    memset(&w, 0, sizeof w);
    w.bytes = swa__part_bytes(&shape, sinks);
    swa__take(&w, base, &e->latents.k, SWA_BLOCK * row);
    e->latents.v = e->latents.k;         /* V is in K: a place that moves along, and no more */
    swa__take(&w, base, &e->latents.scale, SWA__OPERANDS * SWA_BLOCK);
    swa__take(&w, base, &e->latents.row, SWA__TILE * (row + SWA__TILE));
    swa__take(&w, base, &e->dims, 2 * SWA__TILE * dvp);
    if (!swa__mul(swa__pad16(m->nope_dim), latent, &uk) || !swa__mul(dvp, latent, &uv))
        return (size_t)-1;               /* which no region fits */
    swa__take(&w, base, &e->w_uk, uk);
    swa__take(&w, base, &e->w_uv, uv);
    return w.bytes;
}

/* The next n times `each` bytes of the scratch; NULL while only its size is wanted. */
static void *swa__mla_take(swa__mla *x, size_t n, size_t m, size_t each) {
    void *at = x->base != NULL ? x->base + x->bytes : NULL;
    x->fits = x->fits && swa__region(&x->bytes, n, m, each);
    return at;
}

/* Array i of n tokens: heads 0 = there is none; 1: the same for all heads. */
static void swa__mla_array(swa__mla *x, int i, int heads, int dim) {
    swa__array *a = &x->a[i];
    a->token = (int64_t)heads * dim;
    a->head = heads > 1 ? dim : 0;
    a->in = a->out = (float *)swa__mla_take(x, (size_t)x->n, (size_t)a->token, sizeof(float));
}

/* The arrays of a call over n tokens, one behind the other from base on. 0 = overflow. Every call
   of every phase carves anew, from the block, the step and the number of parts: so all parts and
   phases find the arrays in the same places, and nothing about them is kept. */
SWA__COLD static int swa__mla_carve(swa__mla *x, int64_t n, int parts, unsigned char *base) {
    const swa_mla *m = x->m;
    const int heads = m->n_heads, dk = m->nope_dim + m->rope_dim;
    swa__naive e;

    x->n = n;
    /* which paths some run may take, by the block and the step's length: a run's own path is asked
       for later, and needs what it reads to be there */
    x->absorbed = !x->expanded && m->path != SWA_MLA_NAIVE;
    x->naive = !x->expanded && m->path != SWA_MLA_ABSORBED
               && (m->path == SWA_MLA_NAIVE || swa__mla_may_expand(m, (int32_t)n));
    x->sinks = m->sink_pos > 0 && m->rope_dim > 0;
    x->base = base;
    x->bytes = 0;
    x->fits = 1;
    if (m->q_lora_rank > 0) swa__mla_array(x, SWA__A_CQ, 1, m->q_lora_rank);
    else x->a[SWA__A_CQ] = x->a[SWA__A_H];
    /* its place stays free: one scratch serves calls with c_q and without */
    if (m->c_q != NULL) x->a[SWA__A_CQ].in = m->c_q;
    if (m->c_q_token > 0) x->a[SWA__A_CQ].token = m->c_q_token;
    swa__mla_array(x, SWA__A_CKV, 1, m->kv_lora_rank);
    swa__mla_array(x, SWA__A_KROPE, 1, m->rope_dim);
    swa__mla_array(x, SWA__A_Q, heads, dk);
    x->a[SWA__A_QROPE] = x->a[SWA__A_Q];
    if (base != NULL) x->a[SWA__A_QROPE].in = x->a[SWA__A_QROPE].out += m->nope_dim;
    /* arrays that nobody will read are empty */
    swa__mla_array(x, SWA__A_QSINK, x->sinks ? heads : 0, dk);
    swa__mla_array(x, SWA__A_WIDE, x->absorbed ? heads : 0, m->kv_lora_rank);
    swa__mla_array(x, SWA__A_O, m->w_uvo.p == NULL ? heads : 0, m->v_dim);
    swa__mla_array(x, SWA__A_K, x->expanded ? heads : 0, dk);
    swa__mla_array(x, SWA__A_V, x->expanded ? heads : 0, m->v_dim);

    x->angles = (double *)swa__mla_take(
        x, (size_t)n, (size_t)(x->sinks + 1) * (size_t)m->rope_dim, sizeof(double));
    x->naive_bytes = x->naive ? swa__naive_carve(m, x->sinks, NULL, &e) : 0;
    x->naive_parts = (unsigned char *)swa__mla_take(x, (size_t)parts, x->naive_bytes, 1);
    /* of one token a product packs nothing */
    x->pack = (float *)swa__mla_take(x, n > 1 ? (size_t)parts : 0, SWA__PACK, sizeof(float));
    return x->fits;
}

/* x for a checked block and a layer, or why they do not go together. A cache is taken for latents
   if it has their shape, else it has to be of expanded heads. */
SWA__COLD static swa__verdict swa__mla_fit(const swa_mla *m, const swa__layer *l, swa__mla *x) {
    swa_shape shape = swa_mla_shape(m, 0);

    x->m = m;
    x->l = l;
    x->expanded = !swa__shape_is(&l->shape, &shape);
    if (m->sink_pos > 0 && l->window.n_sink == 0)
        return swa__no(SWA_ERR_ARG, "sink_pos, and the layer's window pins no sinks");

    shape = swa_mla_shape(m, 1);
    if (x->expanded && !swa__shape_is(&l->shape, &shape))
        return swa__no(SWA_ERR_ARG, "the layer's shape is not swa_mla_shape's");
    if (x->expanded) {                   /* which holds nothing that an absorbed query could meet */
        if (m->path == SWA_MLA_ABSORBED || swa__never_naive(m))
            return swa__no(SWA_ERR_ARG, "an expanded layer with SWA_MLA_ABSORBED, w_uqk or pick");
        return swa__yes();
    }
    /* a run may be naive, for which the part that expands keys has to read W_UK and W_UV itself */
    if (swa__never_naive(m) || m->path == SWA_MLA_ABSORBED || m->rows != NULL) return swa__yes();
    if (x->w[SWA__W_UK].w->type == SWA_OPAQUE || x->w[SWA__W_UV].w->type == SWA_OPAQUE)
        return swa__no(SWA_ERR_ARG, "OPAQUE w_uk or w_uv: the naive path wants rows");
    return swa__yes();
}

SWA__COLD SWA_API size_t swa_mla_scratch_bytes(const swa_mla *mla, const swa_cache_desc *desc,
                                               int32_t n_tokens, int parts) {
    const size_t ring = swa_cache_scratch_bytes(desc, parts);
    size_t most = 0, total;
    swa__layer l;
    swa__mla x;
    int i;

    if (ring == 0 || n_tokens <= 0 || swa__mla_check(mla, x.w).status != SWA_OK) return 0;

    memset(x.a, 0, sizeof x.a);
    for (i = 0; i < desc->n_layers; i++) { /* of the layers that fit, the one that needs most */
        if (swa__layer_make(desc, i, &l) != SWA_OK || swa__mla_fit(mla, &l, &x).status != SWA_OK)
            continue;
        if (!swa__mla_carve(&x, n_tokens, parts, NULL)) return 0;
        if (x.bytes > most) most = x.bytes;
    }
    return most > 0 && swa__add(most, ring, &total) ? total : 0;
}

/* ---- products ---- */

/* A part's share [a, b) of the outputs of a phase, of which `at` have gone by, for n tokens from t0
   on.

       at                   |<- W_DQ ->|<-- W_DKV -->|<- W_KR ->|       outputs of phase 0
       parts                |   0    |   1    |   2    |   3    |       may cut a matrix anywhere

   A share begins at a multiple of 16 outputs, so that two parts seldom write one line. */
typedef struct { int64_t a, b, at, t0, n; } swa__share;

/* By outputs, not by matrices: those are of very different sizes. */
static swa__share swa__share_of(const swa__mla *x, int64_t outputs) {
    const int64_t units = (outputs + 15) / 16;
    swa__share s;
    s.a = swa__min64(units * x->part / x->parts * 16, outputs);
    s.b = swa__min64(units * (x->part + 1) / x->parts * 16, outputs);
    s.at = s.t0 = 0;
    s.n = x->n;
    return s;
}

/* Where in a matrix of n outputs a share ends: down to where it may be cut, as its neighbour
   does: the end of one share and the beginning of the next are the same number, and come out
   alike. */
static int64_t swa__cut_at(int64_t at, int64_t n, int64_t step) {
    return at <= 0 ? 0 : at >= n ? n : step > 1 ? at / step * step : at;
}

/* out = w in: this part's outputs, head by head. */
static void swa__multiply(const swa__mla *x, swa__share *s, const swa__weight *w,
                          const swa__array *in, const swa__array *out) {
    const int64_t n_out = w->transposed ? w->cols : w->rows,
                  step = w->transposed ? w->w->block_cols : w->w->block_rows;
    int64_t a, b;
    swa_gemm p;
    int32_t h;

    for (h = 0; h < w->heads; h++, s->at += n_out) {
        a = swa__cut_at(s->a - s->at, n_out, step);
        b = swa__cut_at(s->b - s->at, n_out, step);
        if (a == b) continue;
        /* this part's outputs [a, b) of head h */
        p.n = (int32_t)s->n;
        p.n_in = w->transposed ? w->rows : w->cols;
        p.n_out = (int32_t)(b - a);
        p.transposed = w->transposed;
        p.x = in->in + s->t0 * in->token + h * in->head;
        p.x_stride = in->token;
        p.row = w->first + h * w->per + (w->transposed ? 0 : a);
        p.col = w->transposed ? a : 0;
        p.y = out->out + s->t0 * out->token + h * out->head + a;
        p.y_stride = out->token;
        p.w = *w->w;                     /* with the host's pointer, by which its gemm knows it */
        p.w.type = swa__type_or(p.w.type, SWA_F32);
        if (p.w.type != SWA_OPAQUE) p.w.stride = swa__row_stride(w);
        if (x->m->gemm != NULL) {
            x->m->gemm(x->m->user, &p);
            continue;
        }

        p.w.p = swa__weight_at(w, p.row, p.col);
        swa__kernels_of(x->c->d.isa)->product(&p, x->pack + (size_t)x->part * SWA__PACK);
    }
}

/* The next stretch of packed rows, from run *i on, that take the absorbed path; 0 at the end. Runs
   of that path which follow each other are one product, with more tokens to share the weights. */
static int swa__absorbed_rows(const swa__mla *x, int *i, swa__share *s) {
    s->at = s->n = 0;
    for (; *i < x->c->n_runs; (*i)++) {
        const swa_run *run = &swa__runs_of(x->c)[*i];
        if (swa__mla_path_of(x, run) == SWA_MLA_ABSORBED) {
            if (s->n == 0) s->t0 = run->row;
            s->n += run->n;
        } else if (s->n > 0) return 1;
    }
    return s->n > 0;
}

/* The products of a phase; some are only for the rows that take the absorbed path. Such a product
   is the only one of its phase: so each stretch of rows counts its outputs from 0. */
static void swa__mla_products(const swa__mla *x, int phase) {
    enum { N = sizeof swa__products / sizeof *swa__products };
    const int when[] = { 1, x->expanded, x->absorbed };
    swa__share s;
    int64_t outputs = 0;
    int i, run = 0;

    for (i = 0; i < N; i++)
        if (swa__products[i].phase == phase && when[swa__products[i].when])
            outputs += swa__outputs(&x->w[swa__products[i].w]);

    s = swa__share_of(x, outputs);
    for (i = 0; i < N; i++) {
        const swa__weight *w = &x->w[swa__products[i].w];
        const swa__array *in = &x->a[swa__products[i].in], *out = &x->a[swa__products[i].out];
        if (swa__products[i].phase != phase || !when[swa__products[i].when]) continue;
        if (swa__products[i].when != SWA__ABSORBED) swa__multiply(x, &s, w, in, out);
        else while (swa__absorbed_rows(x, &run, &s)) swa__multiply(x, &s, w, in, out);
    }
}

/* ---- norms and rotations ---- */

/* cos and sin of token t; which: 1 = as the pinned sinks see it. */
static double *swa__mla_angles(const swa__mla *x, int which, int64_t t) {
    return x->angles + (which * x->n + t) * x->m->rope_dim;
}

/* As many as half the rope numbers, once per token: every head takes them, and k_rope. */
static void swa__mla_angles_make(const swa__mla *x, int which, int64_t t, int64_t pos) {
    const double mscale = x->m->rope_mscale != 0 ? x->m->rope_mscale : 1.0;
    const int half = x->m->rope_dim / 2;
    double *c = swa__mla_angles(x, which, t);
    int d;
    for (d = 0; d < half; d++) {
        swa__rope_angle(pos, x->m->freq[d], c + d, c + half + d);
        c[d] *= mscale;
        c[half + d] *= mscale;
    }
}

/* Rotates the rope part at v in place. */
static void swa__mla_rotate(const swa__mla *x, const double *angles, float *v) {
    const size_t half = (size_t)x->m->rope_dim / 2;
    const int apart = x->m->pairs == SWA_ROPE_HALF;
    swa__rope_pairs(v, (int)half, apart ? half : 1, angles, angles + half);
}

/* A row in place, if there is such a norm. */
static void swa__mla_norm(const swa__mla *x, int array, int64_t t, const float *w) {
    float *row;
    if (w == NULL) return;               /* maybe no such array either                            */
    row = x->a[array].out + t * x->a[array].token;
    swa__norm_rows(row, row, w, 1, (int)x->a[array].token, (double)x->m->eps);
}

/* Phase 1, token by token: angles, norms of c_q and of the latent, RoPE of k. From here on latent
   and k_rope are what the cache will hold, but for rounding. */
static void swa__mla_norms(const swa__mla *x) {
    const swa_run *run = swa__runs_of(x->c);
    int i;

    for (i = 0; i < x->c->n_runs; i++, run++) {
        int64_t t;
        for (t = run->row; t < run->row + run->n; t++) {
            const int32_t node = (int32_t)(t - run->row);
            int64_t pos = run->pos + node;

            if (t % x->parts != x->part) continue;
            /* a node of a tree stands below its parent, not behind the row before */
            if (run->parents != NULL) pos = run->pos + swa__depth(run->parents, node);
            swa__mla_angles_make(x, 0, t, pos);
            if (x->sinks) swa__mla_angles_make(x, 1, t, swa__min64(pos, x->m->sink_pos));
            if (x->m->c_q == NULL) swa__mla_norm(x, SWA__A_CQ, t, x->m->q_norm);
            swa__mla_norm(x, SWA__A_CKV, t, x->m->kv_norm);
            swa__mla_rotate(x, swa__mla_angles(x, 0, t),
                            x->a[SWA__A_KROPE].out + t * x->m->rope_dim);
        }
    }
}

/* The rope part of every head's q, and q as it stands towards pinned sinks; of the new K too, where
   it is expanded. Products of the same phase go on meanwhile in other parts: they read q's nope
   numbers and write K's, neither of which is written here. */
static void swa__mla_rope(const swa__mla *x) {
    const int64_t nope = x->m->nope_dim, rope = x->m->rope_dim, dk = nope + rope;
    int64_t i;

    for (i = x->part; rope > 0 && i < x->n * x->m->n_heads; i += x->parts) {
        const int64_t t = i / x->m->n_heads;
        float *q = x->a[SWA__A_Q].out + i * dk, *sink;
        if (x->sinks) {
            sink = x->a[SWA__A_QSINK].out + i * dk;
            memcpy(sink, q, (size_t)dk * sizeof(float));
            swa__mla_rotate(x, swa__mla_angles(x, 1, t), sink + nope);
        }
        swa__mla_rotate(x, swa__mla_angles(x, 0, t), q + nope);
        if (x->expanded)
            memcpy(x->a[SWA__A_K].out + i * dk + nope, x->a[SWA__A_KROPE].in + t * rope,
                   (size_t)rope * sizeof(float));
    }
}

/* ---- attention ---- */

/* A weight's rows of head h as f32 in panels of 16 rows, [rows/16][cols][16], as the kernel that
   expands tiles reads them; where they are OPAQUE, 16 of them at a time in `rows`. They stay until
   the head changes. */
static void swa__expand_weight(const swa__mla *x, const swa__weight *w, int h, float *rows,
                               float *to) {
    const swa__kernels *kr = swa__kernels_of(x->c->d.isa);
    const int opaque = w->w->type == SWA_OPAQUE;
    const void *src[SWA__TILE];
    int64_t row = w->first + h * w->per;
    int d, i, n;

    for (d = 0; d < w->rows; d += n, row += n, to += SWA__TILE * (size_t)w->cols) {
        n = swa__min(w->rows - d, SWA__TILE);
        if (opaque) swa__weight_rows(x->m, kr, w, row, n, rows);
        for (i = 0; i < SWA__TILE; i++) {
            const int at = i < n ? i : n - 1; /* a panel that is not full ends in copies */
            src[i] = opaque ? rows + (size_t)at * (size_t)w->cols : swa__weight_at(w, row + at, 0);
        }
        kr->pack(src, opaque ? SWA_F32 : (int)swa__type_or(w->w->type, SWA_F32), SWA__TILE, w->cols,
                 1.0f, to);
    }
}

/* Tiles t0 and t1 (which may be the same) of the head: K [nope | rope][16] and V rows [16][dvp] of
   the latents. */
static void swa__expand_tiles(const swa__naive *e, int t0, int t1, const swa__room *room,
                              const swa__block *latents, swa__block *b) {
    const swa_mla *m = e->x->m;
    const swa__kernels *kr = swa__kernels_of(e->x->c->d.isa);
    const int t[2] = { t0, t1 }, dvp = (int)swa__pad16(m->v_dim), nope = m->nope_dim * SWA__TILE;
    const float *from[2];
    float *k[2], *dims[2];
    int i, d;

    for (i = 0; i < 2; i++) {
        from[i] = (const float *)latents->tile[t[i]].k;
        k[i] = room->k + (size_t)t[i] * SWA__TILE * (size_t)(m->nope_dim + m->rope_dim);
        dims[i] = t0 == t1 ? e->dims : e->dims + i * SWA__TILE * dvp;
        /* dims that fill V's rows up to 16 are zeros */
        memset(dims[i], 0, SWA__TILE * (size_t)dvp * sizeof(float));
    }

    /* the kernel takes two tiles at once; where one is left it is given twice, with the same
       result */
    kr->expand(m->nope_dim, m->kv_lora_rank, e->w_uk, from, k);
    kr->expand(m->v_dim, m->kv_lora_rank, e->w_uv, from, dims);
    for (i = 0; i < 2 && (i == 0 || t0 != t1); i++) {
        const swa__tile *x = &latents->tile[t[i]];
        const float *ks = x->k_scale, *ts = x->tail_scale, *tail = (const float *)x->tail;
        float *v = room->v + (size_t)t[i] * SWA__TILE * (size_t)dvp;

        /* in q8 the latents came as integers: the key's scale is multiplied in behind the
           product, and the rope part has one of its own */
        for (d = 0; ks != NULL && d < nope; d++) k[i][d] *= ks[d % SWA__TILE];
        for (d = 0; ks != NULL && d < SWA__TILE * m->v_dim; d++) dims[i][d] *= ks[d % SWA__TILE];
        for (d = 0; d < SWA__TILE * m->rope_dim; d++)
            k[i][nope + d] = ts != NULL ? tail[d] * ts[d % SWA__TILE] : tail[d];
        kr->to_rows(dvp, dims[i], v, (size_t)dvp);

        memset(&b->tile[t[i]], 0, sizeof b->tile[t[i]]);
        swa__tile_put(&b->tile[t[i]], SWA__K, k[i], SWA_F32, NULL);
        swa__tile_put(&b->tile[t[i]], SWA__V, v, SWA_F32, NULL);
        b->tile[t[i]].v_token = dvp;
    }
}

/* In place of swa__stage: the latents as the ring holds them, widened, then K and V of head h, two
   tiles at a time. The attention around it takes what it is given for tiles of an ordinary head.
   The caller's keys are latents (shape and base are theirs), only wanted in f32 whatever the heads
   are multiplied in. */
static void swa__expand_stage(void *user, const swa__keys *keys, int h, const int range[4],
                              const swa__room *room, swa__block *b) {
    swa__naive *e = (swa__naive *)user;
    swa__keys rows = *keys;
    swa__cursor in = swa__cursor_at(&rows, 0);
    swa__block latents;
    int t, before = -1;

    rows.as_f32 = 1;
    rows.form = SWA__PLAIN;
    e->latents.present = room->present;
    latents.pos = b->pos;
    latents.skip = 0;
    swa__stage(&in, range, &e->latents, &latents);
    b->present = latents.present;
    b->shift = 0;

    if (e->h != h) {                     /* weights are packed once per head */
        e->h = h;
#if SWA__AMX /* the host's rows() may use tiles, and finds none configured */
        if (keys->form == SWA__TILE_AMX) swa__amx_close();
#endif
        swa__expand_weight(e->x, &e->x->w[SWA__W_UK], h, e->latents.row, e->w_uk);
        swa__expand_weight(e->x, &e->x->w[SWA__W_UV], h, e->latents.row, e->w_uv);
#if SWA__AMX
        if (keys->form == SWA__TILE_AMX) swa__amx_open();
#endif
    }

    for (t = 0; t < SWA_BLOCK / SWA__TILE; t++) {
        if (swa__tile_seen(range, t) == 0) continue;
        /* a tile waits for the next one that is seen */
        if (before >= 0) swa__expand_tiles(e, before, t, room, &latents, b);
        before = before >= 0 ? -1 : t;
    }
    if (before >= 0) swa__expand_tiles(e, before, before, room, &latents, b);
}

/* Whether a run is for this call: of the two over one step each skips what the other takes. */
static int swa__takes_naive(const void *user, const swa_run *run) {
    return swa__mla_path_of(((const swa__naive *)user)->x, run) == SWA_MLA_NAIVE;
}

static int swa__takes_absorbed(const void *user, const swa_run *run) {
    return !swa__takes_naive(user, run);
}

/* An array as attention takes its inputs, from number `first` of each row on. */
static swa_in swa__reads(const swa__mla *x, int array, int64_t first) {
    swa_in in;
    in.p = x->a[array].in + first;
    in.token = x->a[array].token;
    in.head = x->a[array].head;
    return in;
}

/* q, k, v of the attention over the layer's rows; naive: of ordinary heads, whose K and V the stage
   makes. Without an absorbed run the call over latents only stores: the naive one attends. */
SWA__COLD static swa_attn swa__mla_attn(const swa__mla *x, int naive) {
    const swa_mla *m = x->m;
    const int heads = x->expanded || naive, out = heads ? SWA__A_O : SWA__A_WIDE;
    swa_attn a;

    memset(&a, 0, sizeof a);
    a.scale =
        (float)(m->scale != 0 ? m->scale : swa_mla_scale(m->nope_dim, m->rope_dim, m->mscale));
    a.compute = m->compute;
    if (!heads && !x->absorbed) a.mode = SWA_STORE_ONLY;

    a.q = swa__reads(x, heads ? SWA__A_Q : SWA__A_WIDE, 0);
    a.k = swa__reads(x, x->expanded ? SWA__A_K : SWA__A_CKV, 0);
    if (x->expanded) a.v = swa__reads(x, SWA__A_V, 0);
    a.out.p = x->a[out].out;
    a.out.token = x->a[out].token;
    a.out.head = x->a[out].head;
    if (x->sinks && heads) a.q_sink = swa__reads(x, SWA__A_QSINK, 0);

    a.pick = m->pick;
    a.pick_token = m->pick_token;
    a.pick_n = m->pick_n;
    a.pick_block = m->pick_block;
    a.pick_window = m->pick_window;

    /* an ordinary head has its rope part in q and K; only latents have it as a tail */
    if (heads || m->rope_dim == 0) return a;
    a.k_tail = swa__reads(x, SWA__A_KROPE, 0);
    a.q_tail = swa__reads(x, SWA__A_QROPE, 0);
    if (x->sinks) a.q_sink_tail = swa__reads(x, SWA__A_QSINK, m->nope_dim);
    return a;
}

/* The naive call over the step of the other: ordinary heads, over the same rows. What describes q
   and out is the heads' (shape, geo, group), what describes keys stays the latents': the stage
   stands between the two. */
static swa__call swa__mla_naive(const swa__mla *x, const swa__call *latent) {
    const swa_shape shape = swa_mla_shape(x->m, 1);
    const swa_attn a = swa__mla_attn(x, 1);
    swa__call call = *latent, heads;

    swa__call_begin(&heads, &a, a.mode);
    swa__call_base(&heads, &shape, x->c->d.isa);
    call.shape = shape;
    call.a = heads.a;
    call.geo = heads.geo;
    call.geo.dots = 0;                   /* SWA_Q8: q is rounded, but a head's K is no int8 */
    call.qscale = heads.qscale;
    call.group = heads.group;
    call.sinks = x->sinks;

    swa__call_slices(&call, x->naive_parts);
    call.part_bytes = x->naive_bytes;
    /* partial results of split keys: the other call's memory, in rows of another length */
    if (x->absorbed) call.split_rows = 0;                /* its memory may be in use */
    else
        call.split_rows =
            latent->split_rows * swa__partial_bytes(&latent->shape) / swa__partial_bytes(&shape);
    return call;
}

/* Attention comes first, by path; then all new rows are stored. Neither of the two calls stores:
   each knows the runs of its own path alone. */
SWA__NOINLINE void swa__mla_attend(const swa__mla *x, int phase) {
    swa__call call = x->call;
    swa__part store;
    swa__naive e;
    swa__ops ops;

    if (x->expanded) {
        swa__phase(&x->call, phase, x->part, x->parts);
        return;
    }

    if (phase == 0) swa__store_soon(&x->call, x->part);
    e.x = x;
    e.h = -1;
    ops.user = &e;
    ops.takes = swa__takes_absorbed;
    ops.stage = NULL;
    call.ops = &ops;
    call.a.mode = SWA_ATTEND_NO_STORE;
    if (x->absorbed) swa__phase(&call, phase, x->part, x->parts);

    if (x->naive) {
        call = swa__mla_naive(x, &x->call);
        call.ops = &ops;
        call.a.mode = SWA_ATTEND_NO_STORE;
        (void)swa__naive_carve(x->m, x->sinks, call.scratch + (size_t)x->part * call.part_bytes,
                               &e);
        ops.takes = swa__takes_naive;
        ops.stage = swa__expand_stage;
        swa__phase(&call, phase, x->part, x->parts);
    }

    if (phase == 0) return;
    swa__part_begin(&x->call, x->part, x->parts, &store);
    swa__store_rows(&store);
}

/* ---- merged weights ---- */

/* Where W_UVO and the rows being multiplied lie, in floats from a multiple of 64 bytes on. 0 =
   overflow. For W_UQK one head's W_UK, the same transposed, and its W_UQ are in f32 at a time; for
   W_UVO some rows of W_O, and one head's W_UV. */
SWA__COLD static int swa__merged_layout(const swa_mla *m, size_t *uvo, size_t *rows,
                                        size_t *bytes) {
    const size_t heads = (size_t)m->n_heads, latent = (size_t)m->kv_lora_rank,
                 nope = (size_t)m->nope_dim;
    const size_t q_in = (size_t)(m->q_lora_rank > 0 ? m->q_lora_rank : m->hidden),
                 v = (size_t)m->v_dim;
    size_t n = 0, uk, uv, o;

    if (!swa__region(&n, heads * latent, q_in, sizeof(float))) return 0;
    *uvo = n / sizeof(float);
    if (!swa__region(&n, heads * latent, (size_t)m->hidden, sizeof(float))) return 0;
    *rows = n / sizeof(float);
    return swa__mul(nope, 2 * latent + q_in, &uk) && swa__mul(v, heads, &o)
        && swa__mul(o, SWA__MERGE_ROWS, &o) && swa__mul(v, latent, &uv) && swa__add(uk, o, &uk)
        && swa__add(uk, uv, &uk) && swa__add(uk, 64, &uk) && swa__region(&n, uk, sizeof(float), 1)
        && swa__add(n, 63, bytes);
}

/* By dimensions alone, so that it can be asked before there are weights. */
SWA__COLD SWA_API size_t swa_mla_merged_bytes(const swa_mla *mla) {
    size_t uvo, rows, bytes;
    return swa__mla_dims_check(mla).status == SWA_OK && swa__merged_layout(mla, &uvo, &rows, &bytes)
             ? bytes
             : 0;
}

/* y [n][cols] = x [n][..] times head h of w, whose f32 rows come into buf. The instruction set
   makes no difference: sums have one order. */
static void swa__merge_head(const swa_mla *m, const swa__weight *w, int h, float *buf,
                            swa_gemm *p) {
    const swa__kernels *kr = swa__kernels_of(swa_isa_best());

    swa__weight_rows(m, kr, w, w->first + h * w->per, w->rows, buf);
    p->n_in = w->rows;
    p->n_out = w->cols;
    p->transposed = 1;
    p->w.p = buf;
    p->w.type = SWA_F32;
    p->w.stride = w->cols;
    kr->product(p, NULL);
}

/* Head by head: the rows of W_UQK are latents, so W_UK is transposed to stand on the left of W_UQ.
   Each head by itself: [latent][nope] times [nope][q_in]. */
static void swa__merge_uqk(const swa_mla *m, const swa__weight *w, float *uqk, float *rows) {
    const swa__weight *uk = &w[SWA__W_UK], *uq = &w[SWA__W_UQ];
    const size_t n = (size_t)uk->rows * (size_t)uk->cols;
    float *left = rows + n + 16;
    swa_gemm p;
    int h, c, d;

    p.n = uk->cols;
    p.x = left;
    p.x_stride = uk->rows;
    p.y_stride = uq->cols;

    for (h = 0; h < m->n_heads; h++) {
        swa__weight_rows(m, swa__kernels_of(swa_isa_best()), uk, uk->first + h * uk->per, uk->rows,
                         rows);
        for (d = 0; d < uk->rows; d++)
            for (c = 0; c < uk->cols; c++)
                left[(size_t)c * (size_t)uk->rows + (size_t)d] =
                    rows[(size_t)d * (size_t)uk->cols + (size_t)c];
        p.y = uqk + (size_t)h * (size_t)uk->cols * (size_t)uq->cols;
        swa__merge_head(m, uq, h, left + n, &p);
    }
}

/* Rows of W_O, some at a time, stand on the left of every head's W_UV as they are. All heads'
   outputs of a row of W_UVO lie side by side. */
static void swa__merge_uvo(const swa_mla *m, const swa__weight *w, float *uvo, float *rows) {
    const swa__weight *uv = &w[SWA__W_UV], *o = &w[SWA__W_O];
    swa_gemm p;
    int h, r;

    p.x_stride = o->cols;
    p.y_stride = (int64_t)m->n_heads * uv->cols;
    for (r = 0; r < o->rows; r += p.n) {
        p.n = swa__min(o->rows - r, SWA__MERGE_ROWS);
        swa__weight_rows(m, swa__kernels_of(swa_isa_best()), o, r, p.n, rows);
        for (h = 0; h < m->n_heads; h++) {
            p.x = rows + (size_t)h * (size_t)uv->rows;
            p.y = uvo + (size_t)r * (size_t)p.y_stride + (size_t)h * (size_t)uv->cols;
            swa__merge_head(m, uv, h, rows + (size_t)SWA__MERGE_ROWS * (size_t)o->cols + 16, &p);
        }
    }
}

SWA__COLD SWA_API swa_status swa_mla_merge(const swa_mla *src, void *mem, size_t bytes,
                                           swa_mla *dst) {
    const swa_matrix none = { NULL, SWA_F32, 0, 0, 0 };
    swa__weight w[SWA__WEIGHTS];
    swa_status status = swa__mla_check(src, w).status;
    size_t uvo, rows, total;
    swa_mla merged;
    float *base;
    int i;

    if (status != SWA_OK) return status;
    if (mem == NULL || dst == NULL || swa__merged(src) || src->path == SWA_MLA_NAIVE)
        return SWA_ERR_ARG;
    /* all four factors are read here, so OPAQUE ones through rows */
    for (i = SWA__W_UQ; i <= SWA__W_O; i++)
        if (i != SWA__W_QR && w[i].w->type == SWA_OPAQUE && src->rows == NULL) return SWA_ERR_ARG;
    if (!swa__merged_layout(src, &uvo, &rows, &total)) return SWA_ERR_OVERFLOW;
    if (bytes < total) return SWA_ERR_MEMORY;
    base = (float *)(void *)swa__align64(mem);

    merged = *src;
    merged.w_uk = merged.w_uv = merged.w_o = merged.w_uqk = merged.w_uvo = none;
    /* W_QR's rows are still read, where they lie in w_uq */
    if (src->rope_dim == 0 || !swa__shared(&src->w_uq, &src->w_qr)) merged.w_uq = none;
    merged.w_uqk.p = base;
    merged.w_uvo.p = base + uvo;
    /* W_QR in w_uq is cut now, head by head: its blocks may forbid that */
    status = swa__mla_check(&merged, w).status;
    if (status != SWA_OK) return status;

    swa__weights(src, 1, 1, w);              /* where the factors lie, head by head */
    swa__merge_uqk(src, w, base, base + rows);
    swa__merge_uvo(src, w, base + uvo, base + rows);
    *dst = merged;
    return SWA_OK;
}

/* ---- the public calls ---- */

/* The call's arguments, checked; the rest of x is for swa__mla_ready. What does not depend on the
   step comes first: a block that does not fit the layer is refused before the step is looked at. */
static swa__verdict swa__mla_begin(const swa_cache *cache, int layer, const swa_mla *mla,
                                   const float *h, float *out, swa__mla *x) {
    const swa__cache *c = swa__get(cache);
    const swa__layer *l;
    swa__verdict v = swa__mla_check(mla, x->w);
    int far;

    if (v.status != SWA_OK) return v;
    if (c == NULL || h == NULL || out == NULL)
        return swa__no(SWA_ERR_ARG, SWA__NO_CACHE "or no h or out");
    if (layer < 0 || layer >= c->d.n_layers) return swa__no(SWA_ERR_ORDER, "layer: out of range");
    l = swa__layer_of(c, layer);
    far = c->d.audit > 0 && c->status == SWA_OK && mla->rope_dim > 0
       && swa__sinks_far(&l->window, swa__step_last(c));
    if (c->d.audit > 0 && (mla->sink_pos > 0 || far) && l->window.kind == SWA__BAND
        && l->window.left >= 0 && mla->sink_pos - l->window.n_sink != l->window.left)
        return swa__no(SWA_ERR_ARG, "sink_pos: not n_sink+W-1, under audit");

    x->c = c;
    x->layer = layer;
    x->a[SWA__A_H].in = h;
    x->a[SWA__A_OUT].out = out;
    x->a[SWA__A_H].token = x->a[SWA__A_OUT].token = mla->hidden;
    x->a[SWA__A_H].head = x->a[SWA__A_OUT].head = 0;
    return swa__mla_fit(mla, l, x);
}

/* What the parts of a block are given alike besides attention. */
static uint64_t swa__mla_hash(const swa__mla *x) {
    const swa_mla *m = x->m;
    const void *const arrays[] = { x->a[SWA__A_H].in, x->a[SWA__A_OUT].out, m->w_dq.p, m->w_uq.p,
                                   m->w_qr.p, m->w_dkv.p, m->w_kr.p, m->w_uk.p, m->w_uv.p, m->w_o.p,
                                   m->w_uqk.p, m->w_uvo.p, m->q_norm, m->kv_norm, m->freq,
                                   m->c_q };
    const int64_t numbers[] = { (int64_t)m->pairs, m->sink_pos, m->c_q_token,
                                (int64_t)swa__double_bits(m->rope_mscale),
                                (int64_t)swa__bits_of(m->eps) };
    return swa__hash(swa__hash(0, arrays, sizeof arrays), numbers, sizeof numbers);
}

/* audit 2: whether the last token's c_q points where q_norm(W_DQ h) does and is as long, roughly: the
   host may have rounded its weights. Not asked where there is nothing to ask. */
SWA__COLD static int swa__c_q_likely(const swa__mla *x) {
    const swa_mla *m = x->m;
    const float *h = x->a[SWA__A_H].in + (x->n - 1) * m->hidden;
    const float *c_q = x->a[SWA__A_CQ].in + (x->n - 1) * x->a[SWA__A_CQ].token;
    double all = 0, raw = 0, given = 0, both = 0;
    swa__weight w = x->w[SWA__W_DQ];
    int i, j, d, n;

    w.heads = 1;
    if (m->c_q == NULL || m->q_norm == NULL || w.w->p == NULL || w.w->type == SWA_OPAQUE
        || swa__weight_check(m, &w, NULL).status != SWA_OK)
        return 1;
    for (i = 0; i < w.rows; i++) {
        double sum = 0, c;
        for (j = 0; j < w.cols; j += n) {
            float row[256 + 16], scale;
            n = swa__min(w.cols - j, 256);
            swa__kernels_of(SWA_ISA_SCALAR)->round(SWA_F32, swa__weight_at(&w, i, j),
                                                   (int)swa__type_or(w.w->type, SWA_F32), n, row,
                                                   &scale);
            for (d = 0; d < n; d++) sum += (double)row[d] * (double)h[j + d];
        }
        all += sum * sum;
        if (!(swa__bits_of(m->q_norm[i]) << 1)) continue;
        c = (double)c_q[i] / (double)m->q_norm[i];
        raw += sum * sum;
        given += c * c;
        both += sum * c;
    }
    all = raw / (all / w.rows + (double)m->eps);   /* what given would be */
    return given == all || (both > 0.9 * sqrt(raw) * sqrt(given) && given > 0.7 * all && given < 1.4 * all);
}

#define SWA__MLA_SCRATCH "scratch: none, or less than swa_mla_scratch_bytes says of so many tokens"
/* Places the call's arrays, and readies the attention among them. To its checks, which are made in
   every phase of the block, attention is in phase 0 up to the one in which it attends, and in phase
   1 from then on. */
SWA__COLD static swa__verdict swa__mla_ready(swa__mla *x, int phase, int part, int parts) {
    const int of_two = phase == SWA__ASK ? phase : phase > SWA__MLA_ATTEND;
    const swa__cache *c = x->c;
    const float *h = x->a[SWA__A_H].in, *out = x->a[SWA__A_OUT].out;
    size_t bytes;
    swa__verdict v;
    swa_attn a;

    if (phase != SWA__ASK && !swa__part_ok(phase, SWA_MLA_PHASES, part, parts))
        return swa__no(SWA_ERR_ORDER, SWA__NO_PART);
    if (c->status != SWA_OK) return swa__no(c->status, SWA__NO_STEP);
    if (phase <= 0 && swa__lists_begun(c)) return swa__no(SWA_ERR_ORDER, SWA__NO_LISTS_YET);
    if (!swa__mul((size_t)c->n_tokens, sizeof *h * (size_t)x->m->hidden, &bytes))
        return swa__no(SWA_ERR_OVERFLOW, "n_tokens * hidden");

    x->part = part;
    x->parts = parts;
    if (!swa__mla_carve(x, c->n_tokens, parts, NULL)) return swa__no(SWA_ERR_OVERFLOW, "scratch");
    if (c->scratch_bytes < x->bytes) return swa__no(SWA_ERR_MEMORY, SWA__MLA_SCRATCH);
    if (swa__inside(c, h) || swa__inside(c, out) || swa__inside(c, x->m->c_q)
        || swa__inside(c, x->m->pick))
        return swa__no(SWA_ERR_ARG, SWA__INSIDE);
    if (h != out && swa__touch(h, bytes, out, bytes))
        return swa__no(SWA_ERR_ARG, "out: runs into h, and is not h");
    (void)swa__mla_carve(x, c->n_tokens, parts, c->scratch);
    if (x->m->c_q != NULL && !swa__steps_ok(x->a[SWA__A_CQ].token, c->n_tokens))
        return swa__no(SWA_ERR_ARG, "c_q_token: above 2^44");
    if (c->d.audit > 1 && phase <= 0 && !swa__c_q_likely(x))
        return swa__no(SWA_ERR_ARG, "c_q: the last token's is not q_norm(W_DQ h) (audit 2)");

    a = swa__mla_attn(x, 0);
    v = swa__ring_call(c, x->layer, &a, of_two, part, parts, &x->call);
    if (v.status != SWA_OK) return v;
    x->call.asked = swa__mla_hash(x);
    /* a tree's keys are gathered as they are cached, which only the absorbed path reads */
    if (x->call.trees && !x->expanded && !x->absorbed)
        return swa__no(SWA_ERR_UNSUPPORTED, "a tree on the naive path");
    return swa__no(swa__call_scratch(&x->call, c->scratch + x->bytes, c->scratch_bytes - x->bytes,
                                     parts), SWA__MLA_SCRATCH);
}

SWA__COLD SWA_API const char *swa_mla_explain(const swa_cache *cache, int layer,
                                              const swa_mla *mla, const float *h, float *out) {
    swa__mla x;
    const char *why;

    if (cache == NULL && h == NULL && out == NULL) return swa__mla_check(mla, x.w).why;
    why = swa__mla_begin(cache, layer, mla, h, out, &x).why;
    return why != NULL ? why : swa__mla_ready(&x, SWA__ASK, 0, 1).why;
}

/* A part of one phase. Norms and rotations come before the products that stand in the same phase,
   and work on other numbers. */
static void swa__mla_phase(const void *call, int phase, int part, int parts) {
    swa__mla x = *(const swa__mla *)call;

    x.part = part;
    x.parts = parts;
    if (phase == 1) swa__mla_norms(&x);
    if (phase == 3) swa__mla_rope(&x);
    if (phase == SWA__MLA_ATTEND || phase == SWA__MLA_ATTEND + 1)
        swa__mla_attend(&x, phase - SWA__MLA_ATTEND);
    else swa__mla_products(&x, phase);
}

/* Every part and phase makes the call anew from the arguments; tickets in the scratch tell whether
   all parts have been through the phase before. */
SWA_API swa_status swa_mla_forward_part(swa_cache *cache, int layer, const swa_mla *mla,
                                        const float *h, float *out, int phase, int part,
                                        int parts) {
    swa__mla x;
    swa_status status = swa__mla_begin(cache, layer, mla, h, out, &x).status;
    if (status == SWA_OK) status = swa__mla_ready(&x, swa__phase_of(phase), part, parts).status;
    if (status != SWA_OK) return status;
    return swa__part_run(&x.call, swa__mla_phase, &x, phase, SWA_MLA_PHASES, part, parts);
}

SWA_API swa_status swa_mla_forward(swa_cache *cache, int layer, const swa_mla *mla, const float *h,
                                   float *out) {
    swa__mla x;
    swa_status status = swa__mla_begin(cache, layer, mla, h, out, &x).status;
    int parts = SWA__THREADS();

    if (status != SWA_OK) return status;
    /* fewer parts, if the scratch has no room */
    do status = swa__mla_ready(&x, 0, 0, parts).status;
    while (status == SWA_ERR_MEMORY && --parts > 0);
    if (status != SWA_OK) return status;

    swa__parts_none(&x.call);
    swa__phases(swa__mla_phase, &x, SWA_MLA_PHASES, parts);
    return status;
}

#endif /* SWA__MLA */

/* ==== [SECTION 14] INDEX =========================================================================
   Which keys a sparse layer looks at. Scores are products of the few-rows shape, with K widened
   once for some tokens; a block of 256 positions at a time they become ranks, integers that sort as
   their scores do, and the candidates of each list take what is above their floor. When there is no
   more room the best `top` stay, in order of position, and the worst of them is the floor: what
   comes later needs more than that, because positions ascend and of equal scores the lower position
   wins. So a list is one set, whatever came together and whoever scored it.

   The blocks of all tokens, one token after another, are one line, cut into equal shares for the
   parts. A token whose blocks lie in several shares leaves candidates with each part, which the
   part of its first block joins in phase 1.

       tokens    |t0 |  t1   |  t2   |   t3   |      3, 5, 5 and 6 blocks
       shares    |   0    |    1    |    2    |      from 0, 6 and 12 on

   Here t0 and t3 are whole: parts 0 and 2 write their lists at once. Part 0 keeps what t1's first
   blocks gave, part 1 the rest of t1 and the beginning of t2, part 2 the rest of t2; then part 0
   joins t1, part 1 joins t2. So a part keeps at most two tokens: one that began before its share,
   kept[0], and one that begins in it and goes on behind it, kept[1].

   Jobs, blocks, the stage and the checks of a call are those of [SECTION 12], without V; what is
   this section's own begins where a block has its scores. */
#if SWA__INDEX

enum { SWA__INDEX_ROWS = 256,            /* rows that share a staged block: most of what widening
                                            it costs is hidden                                    */
       SWA__INDEX_SPARE = 512,           /* candidates beyond top, at least                       */
       SWA__INDEX_MOST = 1 << 15,        /* of a batch, unless one token has more                 */
       SWA__INDEX_TOP = 1 << 24,         /* of a list: that many entries at most                  */
       SWA__DIGIT = 11 };                /* bits of a rank that are counted at a time             */

typedef struct {                         /* one call                                              */
    swa__call call;
    swa_index ix;         /* resolved                                                             */
    int per, batch, spare;   /* heads of a list; tokens that share a staged block; candidates beyond
                                top                                                               */
} swa__select;

/* What may become a list, ascending in position: ranks and entries. What is not above floor need
   not come in. Of several lists: n and floor [lists], rank and at [lists][room], so that
   swa__best_of needs to know how much room each has. */
typedef struct { int32_t *n, *at; uint32_t *rank, *floor; } swa__best;

/* p is what attention's functions are given of a part (jobs, scratch), with this section's own
   regions in p.own. */
typedef struct {                         /* one part of it                                        */
    const swa__select *s;
    swa__part p;
    float *sum;             /* [tokens of a batch][lists of a KV head][256]                       */
    float *wide;            /* [SWA__INDEX_KEYS][dk]                                              */
    uint32_t *rank, *count; /* [256] of a block's entries; [2^DIGIT]                              */
    swa__best best, kept;   /* [tokens of a batch][lists] with top + spare; [2][lists] with top   */
} swa__picker;

/* Floats of 16 rows of q, with what stands behind them as integers (swa__few_integers). */
static size_t swa__index_q(const swa__select *s) {
    const size_t dk = (size_t)s->call.shape.head_dim;
    return SWA__FEW * (dk + (dk + 3) / 4 + 1);
}

/* Candidates of some lists, `all` of them together. */
static void swa__best_carve(swa__scratch *w, unsigned char *base, size_t lists, size_t all,
                            swa__best *x) {
    x->n = (int32_t *)(void *)swa__take_bytes(w, base, lists * 4);
    x->floor = (uint32_t *)(void *)swa__take_bytes(w, base, lists * 4);
    x->rank = (uint32_t *)(void *)swa__take_bytes(w, base, all * 4);
    x->at = (int32_t *)(void *)swa__take_bytes(w, base, all * 4);
}

/* For any batch, so that a shorter list never needs more room: a batch is one token, with `all`
   candidates, or as many as swa__index_resolve finds room for in SWA__INDEX_MOST; it has the lists
   of one token or at most SWA__INDEX_ROWS of them. */
static size_t swa__index_carve(const swa__select *s, unsigned char *base, swa__picker *x) {
    const size_t rows = (size_t)swa__max64(s->call.group, SWA__INDEX_ROWS), least = SWA__INDEX_MOST;
    const size_t lists = (size_t)s->ix.lists, top = (size_t)s->ix.top,
                 all = lists * (top + (size_t)s->spare);
    swa__scratch *w = &x->p.own;

    x->p.w = w;
    memset(w, 0, sizeof *w);
    /* tickets first, where all parts look for them */
    (void)swa__take_bytes(w, base, SWA_MLA_PHASES * sizeof(swa__ticket));
    swa__best_carve(w, base, 2 * lists, 2 * lists * top, &x->kept);
    swa__best_carve(w, base, lists + SWA__INDEX_ROWS, all > least ? all : least, &x->best);
    swa__take(w, base, &w->q, (rows + SWA__FEW - 1) / SWA__FEW * swa__index_q(s));
    swa__take(w, base, &w->q_scale, rows);
    /* scores of a step of rows, and what few_shifted moves by way of the sinks' */
    swa__take(w, base, &w->s, (size_t)SWA_BLOCK * SWA__PANEL);
    swa__take(w, base, &x->sum, rows / (size_t)s->per * SWA_BLOCK);
    swa__take(w, base, &x->wide, SWA__INDEX_KEYS * (size_t)s->call.shape.head_dim);
    swa__room_carve(&s->call.shape, base, w);
    x->rank = (uint32_t *)(void *)swa__take_bytes(w, base, SWA_BLOCK * 4);
    x->count = (uint32_t *)(void *)swa__take_bytes(w, base, 4u << SWA__DIGIT);
    w->lo = (int64_t *)(void *)swa__take_bytes(w, base, SWA__INDEX_ROWS * sizeof(int64_t));
    w->hi = (int64_t *)(void *)swa__take_bytes(w, base, SWA__INDEX_ROWS * sizeof(int64_t));
    return w->bytes;
}

/* ---- ranks, and the best of them ---- */

/* Sorts as the score does, -0 as 0; NaN and hidden: 0. A float's bits ascend with it, but negative
   ones the other way: those are inverted, the others get the upper bit. Nothing visible has rank 0,
   -inf has 0x007fffff.

       score    -inf         -1           0            1            inf          local entries
       rank     0x007fffff   0x407fffff   0x80000000   0xbf800000   0xff800000   0xffffffff */
static uint32_t swa__rank_of(float score) {
    uint32_t u = swa__bits_of(score);
    if (swa__is_nan(score)) return 0;
    if (u == 0x80000000u) u = 0;
    return u ^ ((0u - (u >> 31)) | 0x80000000u);
}

/* The score again, so that it need not be kept; -inf for hidden. */
static float swa__rank_score(uint32_t rank) {
    if (rank == 0) return swa__float_of(0xff800000u);
    return swa__float_of(rank >> 31 ? rank ^ 0x80000000u : ~rank);
}

/* The k-th largest of n ranks, digit after digit; *same: how many of those equal to it are among
   the k. 1 <= k <= n. Three passes over the ranks, whatever they are: sorting them, or a heap,
   would branch on data. */
static uint32_t swa__rank_at(const uint32_t *rank, int n, int k, uint32_t *count, int *same) {
    static const int shift[3] = { 32 - SWA__DIGIT, 32 - 2 * SWA__DIGIT, 0 };
    uint32_t found = 0, known = 0;
    int pass, i, d;

    /* 11, 11 and 10 bits from the top: those that agree with the digits found so far are counted by
       their next one, and counts are taken off k from the largest digit down. They add up to k at
       least, so d stays >= 0 */
    SWA__ROLLED for (pass = 0; pass < 3; pass++) {
        const uint32_t digit = (pass < 2 ? 1u << SWA__DIGIT : 1u << shift[1]) - 1;
        memset(count, 0, 4u << SWA__DIGIT);
        for (i = 0; i < n; i++)
            if ((rank[i] & known) == found) count[rank[i] >> shift[pass] & digit]++;
        for (d = (int)digit; k > (int)count[d]; d--) k -= (int)count[d];
        found |= (uint32_t)d << shift[pass];
        known |= digit << shift[pass];
    }
    *same = k;
    return found;
}

/* Candidates of one list; each: how many it has room for. */
static swa__best swa__best_of(const swa__best *all, size_t list, size_t each) {
    swa__best x;
    x.n = all->n + list;
    x.floor = all->floor + list;
    x.rank = all->rank + list * each;
    x.at = all->at + list * each;
    return x;
}

/* The best `top` stay, in their order. Of ranks equal to the least that stays the first ones do,
   which are the lower positions. Each is written to where the next one that stays belongs, at or
   below its own place; what does not stay is written over. */
SWA__NOINLINE void swa__best_cut(const swa__best *x, int top, uint32_t *count) {
    int i, n = 0, same;
    uint32_t least;

    if (*x->n <= top) return;

    least = swa__rank_at(x->rank, *x->n, top, count, &same);
    for (i = 0; i < *x->n; i++) {
        const int stays = x->rank[i] > least || (x->rank[i] == least && same-- > 0);
        x->rank[n] = x->rank[i];
        x->at[n] = x->at[i];
        n += stays;
    }
    *x->n = n;
    *x->floor = least;
}

/* n ranks of entries from `at` on, of which those above the floor come in. spare >= n, so that
   behind a cut all of them have room. The floor is 0 until then: hidden ones never come in. Each is
   written, and counts if it comes in: no branch on data. */
static void swa__best_add(const swa__best *x, int top, int spare, uint32_t *count,
                          const uint32_t *rank, int n, int32_t at) {
    int i, to;

    if (*x->n > top + spare - n) swa__best_cut(x, top, count);
    for (i = 0, to = *x->n; i < n; i++) {
        x->rank[to] = rank[i];
        x->at[to] = at + i;
        to += rank[i] > *x->floor;
    }
    *x->n = to;
}

/* ---- a block of scores ---- */

/* The ranks of a block's entries, for the job's token: of its visible keys [lo, hi) and its sinks,
   those of one entry joined, by their largest. Every key of the block has a sum, also those that
   this token does not see: other rows of the batch do, and those that nobody sees have anything. */
static void swa__index_ranks(const swa__picker *x, int64_t token, int64_t lo, int64_t hi,
                             const swa__block *b, const float *sum) {
    const swa__job *j = &x->p.job;
    const int block = x->s->ix.block, from = swa__clip(lo - b->pos), to = swa__clip(hi - b->pos);
    const int sinks = swa__clip(swa__sinks_of(j, token) - b->pos);
    uint32_t *rank = x->rank;
    int k, e;

    memset(rank, 0, SWA_BLOCK * sizeof *rank);
    SWA__ROLLED for (k = swa__clip(j->keys_from - b->pos); k < sinks; k++)
        rank[k] = swa__rank_of(sum[k]);
    for (k = from; k < to; k++) rank[k] = swa__rank_of(sum[k]);
    for (k = 0; k < SWA_BLOCK && b->present != NULL; k++)
        if (b->present[k] < 0.5f) rank[k] = 0;
    /* in place: an entry's keys never lie before it */
    for (e = 0; e * block < SWA_BLOCK && block > 1; e++) {
        uint32_t most = 0;
        for (k = e * block; k < (e + 1) * block; k++) most = rank[k] > most ? rank[k] : most;
        rank[e] = most;
    }
}

/* Scores of the entries [from, to), as far as they are asked for; rank NULL: all are hidden. */
static void swa__index_score_out(const swa__picker *x, int64_t row, int list, int64_t from,
                                 int64_t to, const uint32_t *rank) {
    const swa_index *ix = &x->s->ix;
    float *score = ix->score + row * ix->score_token + list * ix->score_list;
    int64_t e = swa__max64(from, ix->score_first);
    for (to = swa__min64(to, ix->score_first + ix->score_n); e < to; e++)
        score[e - ix->score_first] = swa__rank_score(rank != NULL ? rank[e - from] : 0);
}

/* Scores of one list, of token t0 + t, go where they are asked for: sum [256] to the caller's
   scores, and to its candidates. */
static void swa__index_take(const swa__picker *x, int t0, int t, int list, const swa__block *b,
                            const float *sum) {
    const swa_index *ix = &x->s->ix;
    const swa__job *j = &x->p.job;
    const int n = SWA_BLOCK / ix->block;
    const int64_t at = b->pos / ix->block, own = (j->pos + t0 + t) / ix->block;
    const swa__best best = swa__best_of(&x->best, (size_t)t * (size_t)ix->lists + (size_t)list,
                                        (size_t)ix->top + (size_t)x->s->spare);
    int64_t e;

    swa__index_ranks(x, t0 + t, x->p.w->lo[t], x->p.w->hi[t], b, sum);
    if (ix->score != NULL) swa__index_score_out(x, j->row + t0 + t, list, at, at + n, x->rank);
    /* local entries outrank every score, after scores have gone out; hidden ones stay so */
    SWA__ROLLED for (e = swa__max64(own - ix->local + 1, at); e <= own && e < at + n; e++)
        if (x->rank[e - at] != 0) x->rank[e - at] = UINT32_MAX;
    if (ix->top > 0) swa__best_add(&best, ix->top, x->s->spare, x->count, x->rank, n, (int32_t)at);
}

/* Scores of the batch's rows and KV head u->h with the block at number `at`; and what becomes of
   them. */
static void swa__index_block(swa__picker *x, const swa__unit *u, swa__cursor *in, int64_t at) {
    const swa__select *s = x->s;
    const swa__job *j = &x->p.job;
    const swa__scratch *w = x->p.w;
    const int t0 = u->r0 / s->call.group, tokens = u->n / s->call.group,
              lists = s->call.group / s->per;
    const swa__source *ring = j->keys.base[1];
    int range[4], t, i;
    swa__scores scores;
    swa__block b;
    swa__sight l;

    swa__block_begin(j, &b);
    b.pos = at * SWA_BLOCK;

    /* what any row of the batch sees of the block is staged, and what follows is fetched. The
       sight's arrays by row stay unset: index masks nothing, index_ranks does */
    swa__interval_of(j, u, w, 0, u->n, b.pos, &l);
    swa__ranges(&l, 1, range);
    swa__stage(in, range, &w->room, &b);
    swa__unit_tiles(w, tokens - 1, b.pos, &b.t0, &b.t1);
    swa__look_ahead(&x->p, u, tokens - 1, at, &b);

    for (t = range[0] / SWA__TILE; t * SWA__TILE < range[3] + b.shift; t++) {
        b.tile[t].v_token = j->geo.dvp;
        if (t < b.t0 || t >= b.t1 || b.tile[t].next == NULL) b.tile[t].v = b.tile[t].k;
        else b.tile[t].v = b.tile[t].next; /* what the kernel fetches meanwhile: K, where else V
                                              would follow                                        */
    }

    /* heads of a list are added up in their order, key by key: one chain each. q_scale holds
       weights here, see swa__index_pack */
    memset(x->sum, 0, (size_t)(tokens * lists) * SWA_BLOCK * sizeof(float));
    scores.per = s->per;
    scores.least = s->ix.linear ? -FLT_MAX : 0.0f;
    scores.s = w->s;
    scores.sum = x->sum;
    scores.wide = x->wide;
    scores.widen = s->call.kr->widen;
    scores.rows = u->n;
    scores.bytes = ring != NULL ? (int)ring->x[SWA__K].row : 0;
    scores.q = w->q;
    scores.q_stride = swa__index_q(s);
    scores.w = w->q_scale;
    s->call.kr->index(&b, &l, &scores);

    for (t = 0; t < tokens; t++)
        for (i = 0; i < lists; i++)
            swa__index_take(x, t0, t, u->h * lists + i, &b,
                            x->sum + (size_t)(t * lists + i) * SWA_BLOCK);
}

/* ---- a batch of tokens ---- */

/* q of the batch and KV head, by sixteens as few rows take it, [16][dk] and integers behind; what
   each row counts, with its q8 scale, into w->q_scale. */
static void swa__index_pack(const swa__picker *x, const swa__unit *u) {
    const swa__select *s = x->s;
    const swa__job *j = &x->p.job;
    const swa__scratch *w = x->p.w;
    const int group = s->call.group;
    const swa_in q[2] = { s->call.a.q, s->call.a.q_tail };
    swa__unit few = *u;
    int i;

    for (i = 0; i < u->n; i += SWA__FEW) {
        few.r0 = u->r0 + i;
        few.n = swa__min(u->n - i, SWA__FEW);
        swa__pack_few(j, &few, 0, q, w->room.row, w->q + (size_t)(i / SWA__FEW) * swa__index_q(s),
                      w->q_scale + i);
    }
    /* scores are linear in q's scale as long as it is positive, so it goes into the weight */
    for (i = 0; i < u->n; i++) {
        const int64_t row = j->row + (u->r0 + i) / group,
                      head = (int64_t)u->h * group + (u->r0 + i) % group;
        const float weight = s->ix.w != NULL ? s->ix.w[row * s->ix.w_token + head] : 1.0f;
        w->q_scale[i] = s->ix.compute == SWA_Q8 ? weight * w->q_scale[i] : weight;
    }
}

/* The candidates of a row's list become the list: ascending as they are, then -1. */
static void swa__index_list(const swa__picker *x, int64_t row, int list, const swa__best *best) {
    const swa_index *ix = &x->s->ix;
    int32_t *pick = ix->pick + row * ix->pick_token + list * ix->pick_list, i;
    swa__best_cut(best, ix->top, x->count);
    for (i = 0; i < ix->top; i++) pick[i] = i < *best->n ? best->at[i] : -1;
}

/* Entries between blocks that a token sees nothing of: their scores, -inf. A row of scores is
   written whole, so that the caller need not fill it: up to each block of the list, and behind the
   last one to the row's end. */
static void swa__index_gaps(const swa__picker *x, const swa__blocks *list, int64_t row) {
    const int64_t n = SWA_BLOCK / x->s->ix.block;
    int64_t from = 0, at = -1;
    int i;

    do {
        at = swa__block_from(&x->p.job.keys, list, at + 1);
        for (i = 0; i < x->s->ix.lists; i++)
            swa__index_score_out(x, row, i, from, at < list->hi ? at * n : INT64_MAX, NULL);
        from = (at + 1) * n;
    } while (at < list->hi);
}

/* Tokens [t0, t0 + n) of the job, and of their blocks the `blocks` from number `skip` on (all, if
   lists are whole). keep: where the candidates of one whose other blocks are another part's go; -1:
   the lists are whole. First every block's scores, by KV head, then what has become of each
   list. */
static void swa__index_batch(swa__picker *x, int t0, int n, int64_t skip, int64_t blocks,
                             int keep) {
    const swa__select *s = x->s;
    const swa__job *j = &x->p.job;
    const size_t lists = (size_t)s->ix.lists, top = (size_t)s->ix.top;
    size_t i;
    int64_t at, b;
    swa__unit u;

    u.heads = 1;
    u.r0 = t0 * s->call.group;
    u.n = n * s->call.group;
    u.list = swa__blocks_of(j, t0, t0 + n - 1);
    if (keep < 0) blocks = u.list.n;
    swa__unit_windows(j, t0, n, x->p.w);
    /* no candidates yet, and any rank but 0 is above the floor */
    memset(x->best.n, 0, (size_t)n * lists * sizeof *x->best.n);
    memset(x->best.floor, 0, (size_t)n * lists * sizeof *x->best.floor);
    x->p.ahead.in.h = -1;                /* these tokens' blocks are read from the first on */

    for (u.h = 0; u.h < s->call.shape.n_kv_heads; u.h++) {
        swa__cursor in = swa__cursor_at(&j->keys, u.h);
        swa__index_pack(x, &u);
        /* a list's heads all read this KV head: behind its blocks the list is whole */
        for (b = 0, at = -1; b < skip + blocks && b < u.list.n; b++) {
            at = swa__block_from(&j->keys, &u.list, at + 1);
            if (b >= skip) swa__index_block(x, &u, &in, at);
        }
    }
    /* once for each token: the part of its first block does it */
    for (b = 0; b < n && s->ix.score != NULL && skip == 0; b++)
        swa__index_gaps(x, &u.list, j->row + t0 + b);
    for (i = 0; i < (size_t)n * lists && s->ix.top > 0; i++) {
        const swa__best best = swa__best_of(&x->best, i, top + (size_t)s->spare);
        const swa__best kept = swa__best_of(&x->kept, (size_t)(keep > 0) * lists + i, top);
        /* whole: straight into the caller's list; else the best `top` of these blocks, which is all
           that can be among the best of all */
        if (keep < 0) {
            swa__index_list(x, j->row + t0 + (int64_t)(i / lists), (int)(i % lists), &best);
            continue;
        }
        swa__best_cut(&best, s->ix.top, x->count);
        *kept.n = *best.n;
        memcpy(kept.rank, best.rank, (size_t)*best.n * sizeof *best.rank);
        memcpy(kept.at, best.at, (size_t)*best.n * sizeof *best.at);
    }
}

/* ---- parts: shares of the line of blocks ---- */

/* A job as attention makes it, its keys in the form that scores are computed in: f32, staged once
   for all rows, though the rows are few. */
static const swa__job *swa__index_job(swa__picker *x, int i) {
    const swa__job *j = swa__job_of(&x->p, i);
    /* dot products of int8 read K where it is */
    x->p.job.keys.as_f32 = x->p.job.keys.late = !j->geo.dots;
    return j;
}

/* A token's length on the line; one that sees nothing has a place too. */
static int64_t swa__index_length(const swa__job *j, int t) {
    return swa__max64(swa__blocks_of(j, t, t).n, 1);
}

/* The length of the line: blocks of all tokens. */
static int64_t swa__index_line(swa__picker *x) {
    int64_t total = 0;
    int i, t;
    for (i = 0; i < x->s->call.n_jobs; i++) {
        const swa__job *j = swa__index_job(x, i);
        for (t = 0; t < j->n; t++) total += swa__index_length(j, t);
    }
    return total;
}

/* Where a part's share of the line begins; that of part `parts` is the line's end. */
static int64_t swa__index_share(int64_t total, int part, int parts) {
    /* total * part / parts, which could overflow: whole shares of the quotient, and of the rest */
    return total / parts * part + total % parts * part / parts;
}

/* The lists of token t, which begins at `from` on the line: of what its parts have kept, in order
   of the parts, which is that of positions. This part's own is kept[1], the token having begun in
   it; to all that follow it began before their share. Cut after each, there is room for two. */
static void swa__index_join(const swa__picker *x, int t, int64_t from, int64_t length,
                            int64_t total) {
    const swa__select *s = x->s;
    const swa__call *call = &s->call;
    const int top = s->ix.top;
    int list, part;
    swa__picker other;

    for (list = 0; list < s->ix.lists; list++) {
        /* where phase 0 had its batch: room for 2*top is there */
        const swa__best best = swa__best_of(&x->best, 0, 0);
        *best.n = 0;
        *best.floor = 0;
        for (part = x->p.part; part < x->p.parts; part++) {
            const int second = part == x->p.part;
            swa__best kept;
            if (swa__index_share(total, part, x->p.parts) >= from + length) break;
            /* that part's regions, carved anew: phase 0 has left them as they were */
            (void)swa__index_carve(s, call->scratch + (size_t)part * call->part_bytes, &other);
            kept = swa__best_of(&other.kept, (size_t)second * (size_t)s->ix.lists + (size_t)list,
                                (size_t)top);
            memcpy(best.rank + *best.n, kept.rank, (size_t)*kept.n * sizeof *kept.rank);
            memcpy(best.at + *best.n, kept.at, (size_t)*kept.n * sizeof *kept.at);
            *best.n += *kept.n;
            swa__best_cut(&best, top, x->count);
        }
        swa__index_list(x, x->p.job.row + t, list, &best);
    }
}

/* One part of a phase: its share of the line. Phase 0 finds, phase 1 joins. Tokens that are whole
   within the share go in batches, since a staged block then serves the rows of all; one that lies
   in pieces goes alone. A part knows its share by counting everybody's blocks, which costs little
   beside scoring them. */
static void swa__index_phase(const void *call, int phase, int part, int parts) {
    const swa__select *s = (const swa__select *)call;
    swa__picker x;
    int64_t total, lo, hi, at = 0, length = 0;
    int i, t, n;

    x.s = s;
    x.p.call = &s->call;
    x.p.part = part;
    x.p.parts = parts;
    x.p.made = -1;
    (void)swa__index_carve(s, s->call.scratch + (size_t)part * s->call.part_bytes, &x);

    /* one part has no token in pieces; without lists (scores alone) there is nothing to join */
    if (phase == 1 && (parts == 1 || s->ix.top == 0)) return;

    total = swa__index_line(&x);
    lo = swa__index_share(total, part, parts);
    hi = swa__index_share(total, part + 1, parts);
    for (i = 0; i < s->call.n_jobs && at < hi; i++) {
        const swa__job *j = swa__index_job(&x, i);
        /* n: tokens of a batch, whose length is that of all; phase 1 goes one by one */
        for (t = 0; t < j->n && at < hi; t += n, at += length) {
            n = 1;
            length = swa__index_length(j, t);
            /* at: the token's place on the line; both phases walk it alike */
            if (at >= lo && at + length <= hi) { /* it is whole, and so may be the next ones */
                for (; phase == 0 && n < s->batch && t + n < j->n; n++) {
                    const int64_t next = swa__index_length(j, t + n);
                    if (at + length + next > hi) break;
                    length += next;
                }
                if (phase == 0) swa__index_batch(&x, t, n, 0, 0, -1);
            } else if (at + length > lo) {
                /* in pieces, of which this part has the blocks [from, to) of the token */
                const int64_t from = swa__max64(lo - at, 0), to = swa__min64(hi - at, length);
                if (phase == 0) swa__index_batch(&x, t, 1, from, to - from, from == 0);
                else if (from == 0) swa__index_join(&x, t, at, length, total);
            }
        }
    }
}

/* ---- a call ---- */

/* What swa_index asks for, against a shape; its arrays and strides are looked at where the call
   is. */
SWA__COLD static swa__verdict swa__index_check(const swa_shape *s, const swa_index *ix) {
    const int lists = ix->lists > 0 ? ix->lists : 1;

    if ((ix->linear & ~1) != 0)
        return swa__no(SWA_ERR_ARG, "linear: 0 or 1; was the index zeroed?");
    if (ix->lists < 0 || ix->block < 0 || ix->local < 0 || ix->top < 0
        || (ix->block > 0 && SWA_BLOCK % ix->block != 0))
        return swa__no(SWA_ERR_ARG, "lists, local or top: negative; block: 1, 2, 4, .. 256");
    /* as many heads to each list, and all of them of one KV head: a list is whole when that is */
    if (s->n_heads % lists != 0 || lists % s->n_kv_heads != 0)
        return swa__no(SWA_ERR_ARG, "lists: divides n_heads, and is a multiple of n_kv_heads");
    if (ix->top > SWA__INDEX_TOP) return swa__no(SWA_ERR_OVERFLOW, "top: more than 2^24");
    if (s->tail_dim > 0) return swa__no(SWA_ERR_UNSUPPORTED, "an index with a tail");
    return swa__yes();
}

/* Shape and sizes of a call; the shape resolved. */
SWA__COLD static void swa__index_resolve(swa__select *s, const swa_shape *shape,
                                         const swa_index *ix) {
    swa_index *x = &s->ix;

    *x = *ix;
    if (x->lists == 0) x->lists = 1;
    if (x->block == 0) x->block = 1;
    if (x->w_token == 0) x->w_token = shape->n_heads;
    if (x->pick_list == 0) x->pick_list = x->top;
    if (x->pick_token == 0) x->pick_token = (int64_t)x->lists * x->top;
    if (x->score_list == 0) x->score_list = x->score_n;
    if (x->score_token == 0 && x->score != NULL) /* in range or not: that is looked at later */
        x->score_token = (int64_t)((uint64_t)x->lists * (uint64_t)x->score_n);

    s->call.shape = *shape;
    s->call.shape.v_dim = s->call.shape.v_in_k = 1; /* V is not looked at, and needs no room */
    s->call.group = shape->n_heads / shape->n_kv_heads;
    s->per = shape->n_heads / x->lists;
    /* a batch: so many rows that widening K is hidden, unless their candidates would fill too much
       memory */
    s->batch = shape->n_heads < SWA__INDEX_ROWS ? SWA__INDEX_ROWS / shape->n_heads : 1;
    s->spare = x->top > SWA__INDEX_SPARE ? x->top : SWA__INDEX_SPARE;
    while (s->batch > 1
           && (double)s->batch * x->lists * (x->top + s->spare) > (double)SWA__INDEX_MOST)
        s->batch /= 2;
}

/* Bytes of one part; 0 = overflow. Carving adds up unchecked: an upper bound, in double, says
   beforehand whether it can. */
SWA__COLD static size_t swa__index_bytes(const swa__select *s) {
    const double heads = s->call.shape.n_heads + (double)SWA__INDEX_ROWS,
                 dim = s->call.shape.head_dim + 256.0;
    const double most =
        16 * heads * dim + 8192 * dim + 32.0 * s->ix.lists * ((double)s->ix.top + s->spare);
    swa__picker x;
    return most < (double)(SIZE_MAX / 4) ? swa__index_carve(s, NULL, &x) : 0;
}

SWA__COLD SWA_API size_t swa_select_bytes(const swa_shape *shape, const swa_index *index,
                                          int parts) {
    swa__select s;
    swa_shape resolved;
    size_t n = 0, one;

    if (shape == NULL || index == NULL || !swa__parts_ok(parts)) return 0;

    resolved = *shape;
    if (!swa__shape_resolve(&resolved) || swa__index_check(&resolved, index).why != NULL)
        return 0;
    swa__index_resolve(&s, &resolved, index);
    one = swa__index_bytes(&s);
    return one > 0 && swa__region(&n, one, (size_t)parts, 1) && swa__add(n, 63, &n) ? n : 0;
}

/* What the calls' own checks of attention need: the index as queries over stored rows. The output
   is the scores or the lists, by which the phases of a call know each other. */
SWA__COLD static swa__verdict swa__index_attn(const swa_index *ix, swa_attn *a) {
    /* lists, scores or both; lists asked for (top) have a place (pick), and no other way round */
    memset(a, 0, sizeof *a);
    if (ix == NULL || ix->q.p == NULL) return swa__no(SWA_ERR_ARG, "no index, or q.p is NULL");
    if ((ix->top > 0) != (ix->pick != NULL))
        return swa__no(SWA_ERR_ARG, "top without pick, or pick without top");
    if (ix->top > 0 && ix->local > ix->top)
        return swa__no(SWA_ERR_ARG, "local: more entries than top");
    /* q and the scores, as queries and out, are compared by the calls' own checks */
    if (ix->pick != NULL
        && ((const void *)ix->pick == ix->score || (const void *)ix->pick == ix->q.p
            || (const void *)ix->pick == ix->w))
        return swa__no(SWA_ERR_ARG, "pick: where score, q or w is");
    if (ix->score != NULL && (ix->score == ix->w || ix->score == ix->q.p))
        return swa__no(SWA_ERR_ARG, "score: where q or w is");
    if (ix->pick == NULL && ix->score == NULL)
        return swa__no(SWA_ERR_ARG, "neither pick nor score");
    /* times as many lists as a shape has heads at most, 2^20, score_n still fits an int64 */
    if (ix->score_n < 0 || ix->score_n > (int64_t)1 << 40
        || (ix->score != NULL && (ix->score_n == 0 || ix->score_first < 0
                                  || ix->score_first > INT64_MAX - ix->score_n)))
        return swa__no(SWA_ERR_ARG, "score_n or score_first: out of range");
    if (swa__rounds_to_bf16(ix->compute))
        return swa__no(SWA_ERR_UNSUPPORTED, "compute: an index has SWA_F32 and SWA_Q8");

    a->mode = SWA_ATTEND_STORED;
    a->q = ix->q;
    a->out.p = ix->score != NULL ? ix->score : (float *)(void *)ix->pick;
    a->compute = ix->compute;
    a->scale = 1.0f;
    return swa__yes();
}

/* What the parts of a call are given alike besides the queries. */
static uint64_t swa__index_hash(const swa_index *x) {
    const void *const arrays[] = { x->w, x->pick, x->score };
    const int64_t numbers[] = { x->w_token, x->linear, x->lists, x->block, x->local, x->top,
                                x->pick_token, x->pick_list, x->score_token, x->score_list,
                                x->score_first, x->score_n };
    return swa__hash(swa__hash(0, arrays, sizeof arrays), numbers, sizeof numbers);
}

/* The rest of a call whose step or rows, n tokens, are accepted. last: the largest position of a
   key. */
SWA__COLD static swa__verdict swa__index_call(swa__select *s, const swa_index *ix, void *scratch,
                                              size_t bytes, int parts, int32_t n, int64_t last) {
    const swa_shape shape = s->call.shape;
    const int lists = ix->lists > 0 ? ix->lists : 1;
    const swa_in w = { NULL, ix->w_token, 0 }, pick = { NULL, ix->pick_token, ix->pick_list },
                 score = { NULL, ix->score_token, ix->score_list };
    const swa__verdict v = swa__index_check(&shape, ix);

    if (v.status != SWA_OK) return v;
    if (!swa__apart(w, n, 1, shape.n_heads) || !swa__apart(pick, n, lists, ix->top)
        || !swa__apart(score, n, lists, ix->score != NULL ? ix->score_n : 0))
        return swa__no(SWA_ERR_ARG, "strides of w, pick or score: rows that overlap");

    swa__index_resolve(s, &shape, ix);
    if (last / s->ix.block > INT32_MAX) /* an entry is an int32 */
        return swa__no(SWA_ERR_OVERFLOW, "block: position / block is beyond int32");

    /* over what the checks have made for attention: no V, no scale, scratch of this section's */
    s->call.keys.shape = s->call.shape;
    s->call.geo.dv = s->call.geo.v_in_k = 1;
    s->call.geo.dvp = (int)swa__pad16(1);
    s->call.qscale = 1.0f;
    s->call.asked = swa__index_hash(ix);
    s->call.part_bytes = swa__index_bytes(s);
    s->call.split_rows = ~(size_t)s->ix.top;       /* tells this call's tickets from attention's */
    s->call.scratch = scratch != NULL ? swa__align64(scratch) : NULL;
    if (s->call.part_bytes == 0) return swa__no(SWA_ERR_OVERFLOW, "top, lists: scratch overflows");
    if (scratch == NULL || bytes / (size_t)parts < s->call.part_bytes)
        return swa__no(SWA_ERR_MEMORY, "scratch: none, or less than swa_select_bytes says");
    return swa__yes();
}

/* A call over a layer's ring, checked and made; the step's last position is the last key's. */
SWA__COLD static swa__verdict swa__select_ring(const swa_cache *cache, int layer,
                                               const swa_index *ix, int phase, int part, int parts,
                                               swa__select *s) {
    const swa__cache *c = swa__get(cache);
    swa_attn a;
    swa__verdict v = swa__index_attn(ix, &a);

    if (v.status != SWA_OK) return v;
    if (c != NULL && layer >= 0 && layer < c->d.n_layers
        && swa__layer_of(c, layer)->shape.tail_dim > 0)
        return swa__no(SWA_ERR_UNSUPPORTED, "an index with a tail");

    v = swa__ring_call(c, layer, &a, phase, part, parts, &s->call);
    if (v.status != SWA_OK) return v;
    if (s->call.trees) return swa__no(SWA_ERR_UNSUPPORTED, "an index of a tree");
    if (swa__inside(c, ix->q.p) || swa__inside(c, ix->w) || swa__inside(c, ix->pick)
        || swa__inside(c, ix->score))
        return swa__no(SWA_ERR_ARG, SWA__INSIDE);
    return swa__index_call(s, ix, c->scratch, c->scratch_bytes, parts, c->n_tokens,
                           swa__step_last(c));
}

/* A call over the caller's rows: scratch of any alignment, of which 63 bytes may go. */
SWA__COLD static swa__verdict swa__select_own(const swa_rows *rows, const swa_index *ix, int parts,
                                              swa__select *s) {
    swa_attn a;
    swa__verdict v = swa__index_attn(ix, &a);
    int64_t last;
    int i;

    if (v.status != SWA_OK) return v;
    if (rows != NULL && rows->shape.tail_dim > 0)
        return swa__no(SWA_ERR_UNSUPPORTED, "an index with a tail");
    v = swa__rows_begin(rows, &a, parts, &s->call);
    if (v.status != SWA_OK) return v;
    if (swa__touch(ix->w, 1, rows->scratch, rows->scratch_bytes)
        || swa__touch(ix->pick, 1, rows->scratch, rows->scratch_bytes))
        return swa__no(SWA_ERR_ARG, "scratch: w or pick begins in it");

    /* one past the last position of a query or key */
    last = swa__max64(1, rows->pos + rows->n_tokens);
    SWA__ROLLED for (i = 0; i < rows->n_kv; i++)
        last = swa__max64(last, rows->kv[i].pos + rows->kv[i].n);
    return swa__index_call(s, ix, rows->scratch,
                           rows->scratch_bytes > 63 ? rows->scratch_bytes - 63 : 0, parts,
                           rows->n_tokens, last - 1);
}

SWA__COLD SWA_API const char *swa_select_explain(const swa_cache *cache, int layer,
                                                 const swa_index *index) {
    swa__select s;
    return swa__select_ring(cache, layer, index, SWA__ASK, 0, 1, &s).why;
}

SWA__COLD SWA_API const char *swa_select_rows_explain(const swa_rows *rows,
                                                      const swa_index *index) {
    swa__select s;
    return swa__select_own(rows, index, 1, &s).why;
}

SWA_API swa_status swa_select_part(swa_cache *cache, int layer, const swa_index *index, int phase,
                                   int part, int parts) {
    swa__select s;
    swa_status status =
        swa__select_ring(cache, layer, index, swa__phase_of(phase), part, parts, &s).status;
    if (status == SWA_OK)
        status = swa__part_run(&s.call, swa__index_phase, &s, phase, SWA_PHASES, part, parts);
    if (status == SWA_OK && part == 0)
        swa__open_of(s.call.c)[SWA__OPEN_LISTS] = phase == 0 ? swa__wrote_at(s.call.c, layer) : 0;
    return status;
}

SWA_API swa_status swa_select_rows_part(const swa_rows *rows, const swa_index *index, int phase,
                                        int part, int parts) {
    swa__select s;
    swa_status status = swa__select_own(rows, index, parts, &s).status;
    if (status != SWA_OK) return status;
    if (!swa__part_ok(phase, SWA_PHASES, part, parts)) return SWA_ERR_ORDER;
    return swa__part_run(&s.call, swa__index_phase, &s, phase, SWA_PHASES, part, parts);
}

SWA_API swa_status swa_select(swa_cache *cache, int layer, const swa_index *index) {
    swa__select s;
    swa_status status;
    int parts = SWA__THREADS();
    /* fewer parts, if the scratch has no room */
    do status = swa__select_ring(cache, layer, index, 0, 0, parts, &s).status;
    while (status == SWA_ERR_MEMORY && --parts > 0);
    if (status != SWA_OK) return status;
    swa__parts_none(&s.call);
    swa__phases(swa__index_phase, &s, SWA_PHASES, parts);
    return SWA_OK;
}

SWA_API swa_status swa_select_rows(const swa_rows *rows, const swa_index *index) {
    swa__select s;
    swa_status status;
    int parts = SWA__THREADS();
    do status = swa__select_own(rows, index, parts, &s).status;
    while (status == SWA_ERR_MEMORY && --parts > 0);
    if (status == SWA_OK) swa__phases(swa__index_phase, &s, SWA_PHASES, parts);
    return status;
}
#endif /* SWA__INDEX */

#if SWA__LIGHT
#  pragma GCC pop_options
#endif

#ifdef __cplusplus
}
#endif
#if defined(__clang__) && defined(__x86_64__) && __clang_major__ >= 14
#  pragma clang attribute pop
#endif
#if defined(__clang__) && defined(__OPTIMIZE_SIZE__)
#  pragma clang diagnostic pop
#endif
#if (SWA__FAST_MATH && defined(__clang__)) || (defined(_MSC_VER) && !defined(__clang__))
#  pragma float_control(pop)
#elif SWA__FAST_MATH
#  pragma GCC pop_options
#endif
#undef SWA__IMPLEMENTING
#endif /* SWA__KERNEL_PASS, SWA__IMPLEMENTING */

/* ==== [SECTION 15] HISTORY =======================================================================
   What stays the same from 1.0 on: the names, fields and statuses of [SECTION 1] within a major
   version; the bits of every output within a major version; blobs of one major version load in the
   later ones. Not promised: sizes of caches, scratch and blobs, speed, anything with two
   underscores or a name that ends in one; nor layouts: structs may gain fields, at places of their
   own, so that a library and what calls it come of one header (swa_version() is SWA_VERSION). The
   switches that leave something out change no struct.

   0.9.0 (2026-11)  first version with a number: windows, masks, ring, steps, attention, lists of
                    keys, trees of drafts, MLA. The API may change. */

/* ==== [SECTION 16] LICENSE =======================================================================
   Choose whichever you prefer. SPDX-License-Identifier: MIT OR Unlicense

   Alternative A - MIT License. Copyright (c) 2026 the swa.h authors

   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and
   associated documentation files (the "Software"), to deal in the Software without restriction,
   including without limitation the rights to use, copy, modify, merge, publish, distribute,
   sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is
   furnished to do so, subject to the following conditions: The above copyright notice and this
   permission notice shall be included in all copies or substantial portions of the Software. THE
   SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
   LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND
   NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM,
   DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
   OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

   Alternative B - Public Domain (www.unlicense.org)

   This is free and unencumbered software released into the public domain. Anyone is free to copy,
   modify, publish, use, compile, sell, or distribute this software, either in source code form or
   as a compiled binary, for any purpose, commercial or non-commercial, and by any means. In
   jurisdictions that recognize copyright laws, the author or authors of this software dedicate any
   and all copyright interest in the software to the public domain. We make this dedication for the
   benefit of the public at large and to the detriment of our heirs and successors. We intend this
   dedication to be an overt act of relinquishment in perpetuity of all present and future rights to
   this software under copyright law. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY
   KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS
   FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS BE LIABLE FOR ANY
   CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING
   FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE. */
