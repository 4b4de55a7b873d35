#ifndef SWA__KERNEL_PASS /* this file includes itself once per instruction set: see [SECTION 10] */
/* swa.h - sliding-window attention for CPU inference engines. One header, C99 and C++, no dependency.

   DO THIS once, in one source file:            and in every other file only:
       #define SWA_IMPLEMENTATION                   #include "swa.h"
       #include "swa.h"                         (best a file of its own: 15 s to compile; link with -lm)

   A decoder's attention, whole: a ring-buffer KV cache that holds W keys per layer, and grouped-query attention
   over the ring and the new tokens. The same five lines serve decode, chunked prefill and a batch of both:

       swa_window win = swa_window_sliding(4096);            // W keys, the query's own included
       swa_cache_desc d = {0};
       d.shape.n_heads = 32; d.shape.n_kv_heads = 8; d.shape.head_dim = 128;
       d.n_layers = 32; d.windows = &win; d.n_windows = 1;   // layer l has windows[l % n_windows]
       swa_cache kv;
       void *mem = malloc(swa_cache_bytes(&d));              // memory is yours; the library allocates nothing
       if (swa_cache_init(&kv, &d, mem, swa_cache_bytes(&d)) != SWA_OK) return 1;

       swa_run run = {0}; swa_step step = {0};               // a run = n consecutive tokens of one sequence
       run.n = 1; run.pos = pos;                             // pos is absolute, and yours; n = 512 would be a chunk
       step.runs = &run; step.n_runs = 1;
       if (swa_step_begin(&kv, &step) != SWA_OK) return 1;   // once per step, before layer 0
       for (int l = 0; l < 32; l++) {
           ...                                               // your q, k, v: f32, after RoPE
           swa_attn a = {0};
           a.q.p = q; a.k.p = k; a.v.p = v; a.out.p = out;   // [n][32][128], [n][8][128], [n][8][128], [n][32][128]
           if (swa_attend(&kv, l, &step, &a) != SWA_OK) return 1;
           ...
       }

   Your own thread pool: call swa_attend_part(&kv, l, &step, &a, phase, part, parts) from each worker, for phase 0,
   join, then for phase 1, join. Your own K/V rows, no ring: swa_attention(). Every struct is zero-initialised and
   zero means the default; every call that can fail returns a swa_status, 0 = SWA_OK, and has then changed nothing.

   WHAT THE LIBRARY PROMISES
   * A query at position q sees the key at position k iff swa_visible(window, q, k): 0 <= q - k < W.
   * Same bits out for any chunking, any batch, any number of parts, any capacity and rotation of the ring and any
     instruction set with FMA (finite inputs), under the host's -ffast-math too (gcc, clang; a host that runs with
     subnormal numbers flushed to zero, as gcc -ffast-math links it, gets those of the flushed numbers).
   * No malloc, no globals, no printf, no stack frame over 8 KiB (from -O1 on); cost per token O(W), at any position.
   * Exact or refused: a rewind that would need rows the ring has overwritten returns SWA_ERR_LOST.
   WHAT IT DOES NOT DO: models, weights, tokenizers, threads, memory, paging between sequences, GPU.

   TABLE OF CONTENTS (search for the tag)
       [SECTION 1]  PUBLIC API          types, then functions, each with shapes, errors and cost
       [SECTION 2]  PLATFORM            switches, instruction sets
       [SECTION 3]  NUMBERS             overflow-checked sizes, f16, bf16
       [SECTION 4]  WINDOW              who sees whom: the one rule, its inverse
       [SECTION 5]  MASKS               dense, boolean, block-diagonal, 512x512 compressed
       [SECTION 6]  HELPERS             RoPE, YaRN, RMSNorm
       [SECTION 7]  RING                where a token lives
       [SECTION 8]  STEP                which tokens come now
       [SECTION 9]  KERNEL INTERFACE    what a kernel is given
       [SECTION 10] KERNEL TEMPLATE     the arithmetic, written once
       [SECTION 11] KERNEL INSTANCES    one block of vector operations per instruction set
       [SECTION 12] ATTENTION           segments, stage, work split, fold
       [SECTION 13] LATENT              DeepSeek's MLA on the same ring and engine
       [SECTION 14] LICENSE

   WORDS: token - one row of q, k, v. position - a token's absolute number in its sequence, int64. window - who sees
   whom. sink - one of the first n_sink positions, pinned; a sink logit is something else (gpt-oss). slot - a place in
   the ring. run, step - above. segment - consecutive keys that lie in one buffer. block - 256 positions from a
   multiple of 256 on: the unit of the arithmetic. head group - the query heads that share one KV head.

   THE RING of one sequence and layer, W = 8, capacity 8, after 13 tokens:
       slot        0  1  2  3  4  5  6  7
       position    8  9 10 11 12  5  6  7     slot = (position - origin) mod capacity
                               ^end-1 ^oldest

   EASY TO GET WRONG
   * n tokens are attended with the ring as it was before them, then stored: chunks longer than W are exact. Storing
     first (k only, then q only) needs capacity >= W-1+n: swa_required_capacity().
   * K is cached after RoPE, with absolute positions. Scale 0 means 1/sqrt(head_dim); with a tail it must be given.
   * Positions count from the sequence's own start, not from the batch's; pos < end rewinds, on purpose.
   * Rows of q, k, v are packed in the order of the runs; run.row says where each run begins.
   * A renamed copy of this file needs #define SWA_HEADER_FILENAME "its name" before the implementation.
   * C++: write swa_attn a = {}; instead of {0}.

   CONFIGURATION (before the include): SWA_IMPLEMENTATION, SWA_STATIC (everything static), SWA_API (dllexport ...),
   SWA_ASSERT(x), SWA_NO_SIMD, SWA_NO_AVX512, SWA_NO_OPENMP, SWA_HEADER_FILENAME. */

/* ==== [SECTION 1] PUBLIC API ====================================================================================
   Shapes stand behind every pointer, last index fastest. Sizes are in elements unless a name ends in bytes. */
#ifndef SWA_H_INCLUDED
#define SWA_H_INCLUDED
#include <stddef.h>
#include <stdint.h>

#ifndef SWA_API
#  ifdef SWA_STATIC
#    if defined(__GNUC__)
#      define SWA_API static __attribute__((unused))
#    else
#      define SWA_API static
#    endif
#  else
#    define SWA_API extern
#  endif
#endif
#ifdef __cplusplus
extern "C" {
#endif

#define SWA_BLOCK  256   /* keys per block, from multiples of 256 on; a constant of the bits promise                 */
#define SWA_PHASES 2     /* phases of an attention call: 0 attends (reads the ring), 1 folds splits and stores       */

typedef enum {
    SWA_OK = 0,
    SWA_ERR_ARG,         /* NULL, negative, inconsistent, or an invalid window                                       */
    SWA_ERR_OVERFLOW,    /* a size or position does not fit                                                          */
    SWA_ERR_MEMORY,      /* the buffer given is smaller than the *_bytes() call says                                 */
    SWA_ERR_ORDER,       /* a gap after end(), a step that was not begun, rows that an earlier step never stored in
                            this layer, or part, phase or layer out of range                                         */
    SWA_ERR_LOST,        /* exact only with rows that the ring has overwritten: ask swa_cache_replay_from()          */
    SWA_ERR_CAPACITY,    /* rows were stored first, and n > capacity-(W-1): a row still needed was overwritten       */
    SWA_ERR_FULL,        /* a causal layer, or one whose W exceeds max_context, is at max_context                    */
    SWA_ERR_UNSUPPORTED, /* legal, but not with this type, instruction set or window (a ring with a right extent)    */
    SWA_ERR_BLOB         /* save blob cut, altered, or of another geometry                                           */
} swa_status;

/* Element types. K and V of a ring: F32, F16, BF16, Q8 (int8, one f32 scale per slot and KV head). Caller's own rows:
   F32, F16, BF16. Masks: F32, F16, BF16 (added to the scores), or bytes in either polarity. F16 is IEEE half in a
   uint16_t, BF16 the upper half of a float. */
typedef enum { SWA_F32 = 0, SWA_F16, SWA_BF16, SWA_Q8,
               SWA_BOOL_MASKED,   /* 1 = hidden (Ascend, key_padding_mask) */
               SWA_BOOL_KEEP      /* 1 = visible (PyTorch SDPA, xformers)  */ } swa_type;

/* Instruction sets, for .isa fields and swa_isa_*(). All give the same bits. */
enum { SWA_ISA_BEST = 0, SWA_ISA_SCALAR, SWA_ISA_NEON, SWA_ISA_AVX2, SWA_ISA_AVX512 };

/* ---- window: who may see whom ---- */

/* Made by the constructors below; {0} is causal without limit. The number in other people's APIs, and ours:
     Mistral, HF, llama.cpp n_swa, MLX, vLLM, gpt-oss, gemma, ONNX Runtime >= 1.23: W    swa_window_sliding(W)
     FlashAttention window_size = (l, r), xformers LocalAttentionFromBottomRight         swa_window_flash(l, r)
     FlashInfer window_left = l, Ascend pre_tokens = l                                   swa_window_flash(l, 0)
     ONNX Runtime < 1.23 local_window_size = w (sees w+1 keys)                           swa_window_flash(w, 0)
     Llama 4 attention_chunk_size, FlashAttention-3 attention_chunk, llama.cpp CHUNKED   swa_window_chunked(c)
     llama.cpp SYMMETRIC n_swa                                                           swa_window_symmetric(n_swa/2)
     HF bidirectional sliding window W                                                   swa_window_symmetric(W)
     "0 or absent means full attention": test for it and use swa_window_causal(); sliding(0) is invalid on purpose. */
typedef struct {
    int     kind;          /* private; set by the constructors                                                       */
    int32_t n_sink;        /* positions 0..n_sink-1 stay visible to every later query (StreamingLLM); may be set     */
    int64_t left, right;   /* keys visible before and after the query, -1 = no limit; chunked: left is the chunk     */
    int64_t prefix, prefix_first;   /* queries in [prefix_first, prefix) see all keys there (prefix-LM); rings take
                              this per run instead                                                                   */
} swa_window;

SWA_API swa_window swa_window_causal(void);                       /* k <= q                                          */
SWA_API swa_window swa_window_sliding(int64_t W);                 /* 0 <= q-k < W: W keys, the query's own included  */
SWA_API swa_window swa_window_flash(int64_t left, int64_t right); /* -right <= q-k <= left; -1 = no limit            */
SWA_API swa_window swa_window_chunked(int64_t chunk);             /* k <= q and k/chunk == q/chunk                   */
SWA_API swa_window swa_window_symmetric(int64_t reach);           /* |q-k| <= reach                                  */
SWA_API swa_window swa_window_sinks(int64_t W, int32_t n_sink);   /* sliding(W), and the first n_sink positions      */
SWA_API swa_window swa_window_prefix(int64_t W, int64_t prefix);  /* sliding(W), bidirectional below prefix          */
/* Nonsense (W <= 0, negative sinks, ...) gives a window that every call refuses with SWA_ERR_ARG. */

/* The rule: 1 if the query at position q sees the key at position k, else 0 (also for an invalid window or q, k < 0).
   Everything in this library that depends on a window follows from this function. */
SWA_API int         swa_visible(const swa_window *window, int64_t q, int64_t k);
/* Its inverse: the visible keys of q are [*lo, *hi), and besides them the sinks [0, min(n_sink, q+1)). */
SWA_API swa_status  swa_visible_range(const swa_window *window, int64_t q, int64_t *lo, int64_t *hi);
/* One English phrase: visible, or why not. A constant string; for logs and tests. */
SWA_API const char *swa_explain(const swa_window *window, int64_t q, int64_t k);

/* ---- masks, for other people's kernels (ours reads none) ---- */

/* One rectangle, or the block-diagonal mask of a ragged batch: block b has n_q[b] rows for the queries from position
   q_pos0[b] on and n_k[b] columns for the keys from k_pos0[b] on; outside its own block everything is hidden.
   k_padding > 0: block b's columns start at b*k_padding, and there are n_blocks*k_padding of them.
   xformers names, with nq, nk the block's lengths:
     BlockDiagonalCausal*                 q_pos0 = 0,     k_pos0 = 0, causal or sliding(W) (.make_local_attention)
     BlockDiagonal*FromBottomRight*       q_pos0 = nk-nq, k_pos0 = 0, causal or sliding(W)
     BlockDiagonal*PaddedKeys*            the same with nk = kv_seqlen and k_padding
     BlockDiagonalMask                    q_pos0 = 0,     k_pos0 = 0, flash(-1, -1)
   mistral-inference, chunk of n tokens at position p over a ring of W: q_pos0 = p, k_pos0 = p-min(p,W),
   n_k = min(p,W)+n: columns run sequence by sequence, cache then chunk. */
typedef struct {
    swa_window window;
    const int64_t *q_pos0, *k_pos0;   /* [n_blocks]; NULL = all 0                                                    */
    const int32_t *n_q, *n_k;         /* [n_blocks]                                                                  */
    int      n_blocks;                /* 0 = 1                                                                       */
    int32_t  k_padding;               /* 0 = columns packed                                                          */
    swa_type type;                    /* F32, F16, BF16, BOOL_MASKED, BOOL_KEEP                                      */
    float    masked;                  /* value of a hidden entry; 0 = -65536 (F16: -65504, its lowest). Ignored for
                                         BOOL. A value that the type cannot hold is refused                          */
} swa_mask_desc;
SWA_API size_t     swa_mask_bytes(const swa_mask_desc *desc);     /* 0 = invalid or overflow                         */
SWA_API swa_status swa_mask(const swa_mask_desc *desc, void *out /* [sum n_q][columns] */, size_t bytes);

/* The 512x512 compressed mask of Ascend's ATB [ATB]. The document's two samples are different functions, for two NPU
   kernels, each wrong in a corner: PY and CPP reproduce them to the byte, 910B and 310P are the right masks for the
   two kernels. head_dim 1..256. */
typedef enum { SWA_COMPRESSED_PY, SWA_COMPRESSED_CPP, SWA_COMPRESSED_910B, SWA_COMPRESSED_310P } swa_compressed;
SWA_API int        swa_compressed_block(swa_compressed kind, int head_dim);             /* tile size; 0 = invalid    */
SWA_API int64_t    swa_compressed_band(swa_compressed kind, int64_t W, int head_dim);   /* visible keys per row of
                                                                                           the picture; 0 = invalid  */
SWA_API swa_status swa_mask_compressed(swa_compressed kind, int64_t W, int head_dim, swa_type type, float masked,
                                       void *out /* [512][512] */, size_t bytes);
/* What the NPU kernel of that kind (PY reads as 910B, CPP as 310P) makes of a compressed mask: out is the full mask. */
SWA_API swa_status swa_mask_expand(swa_compressed kind, const float *mask512 /* [512][512] */, int64_t W, int head_dim,
                                   int64_t S, float masked, float *out /* [S][S] */, size_t bytes);

/* ---- cache: layers x sequences, one ring each ---- */

/* A K row is [head_dim | tail_dim], the tail with a type of its own (MLA's rope part). v_in_k: V is the first v_dim
   numbers of K, nothing is stored twice (MLA: head_dim = v_dim = kv_lora_rank, tail_dim = rope). */
typedef struct { int n_heads, n_kv_heads, head_dim, v_dim, tail_dim, v_in_k; } swa_shape; /* 0: n_kv_heads = n_heads,
                                                                           v_dim = head_dim, no tail, V apart        */
typedef struct {
    swa_shape shape;              /* the same for all layers; layers that differ live in a second cache              */
    int       n_layers, n_seqs;   /* n_seqs 0 = 1                                                                    */
    swa_type  k_type, v_type, tail_type;
    const swa_window *windows;    /* [n_windows], copied; layer l has windows[l % n_windows]; NULL = all causal      */
    int       n_windows;
    int64_t   max_context;        /* positions that causal layers hold; required iff there is one. A window wider
                                     than this is held like causal, and is full there; a narrower one never is       */
    int64_t   max_rollback;       /* rows that can be taken back at any time; 0 = 1                                  */
    int64_t   capacity;           /* exact slots of windowed layers, at least W-1+max_rollback (with 0 there: W-1, and
                                     no rollback); 0 = W-1+max_rollback rounded up to 16. No multiple of 16: correct,
                                     same bits, slower                                                               */
    int       max_parts;          /* parts that run at once; 0 = 1 (with OpenMP: its maximum). Each costs scratch,
                                     0.4 MB at 4 heads of 8, 2.5 MB at 64 of 128, whatever n_tokens                  */
    int       isa;                /* 0 = best                                                                        */
    int       audit;              /* 1: lost rows are filled with NaN, invariants checked; for debugging             */
} swa_cache_desc;
typedef struct { void *mem_; size_t bytes_; } swa_cache;   /* all state lives in mem; a copy of this is an alias     */

SWA_API size_t     swa_cache_bytes(const swa_cache_desc *desc);                  /* 0 = invalid or overflow          */
/* mem of any alignment (64 and huge pages are faster), uninitialised. Refused: memory untouched. ARG is most often a
   causal layer without max_context, windows without n_windows, an invalid window (sliding(0)), n_heads that is no
   multiple of n_kv_heads, or capacity below W-1+max_rollback. */
SWA_API swa_status swa_cache_init(swa_cache *cache, const swa_cache_desc *desc, void *mem, size_t bytes);
/* Empties one sequence; its next run may start anywhere. slot = (position - origin) mod capacity: origin 0 is
   Mistral's rule, L-n for a first prompt of L > n tokens is the patent's. */
SWA_API swa_status swa_cache_reset(swa_cache *cache, int seq, int64_t origin);
/* Forgets positions >= end, in all layers or none: SWA_ERR_LOST if the next token would need overwritten rows.
   end <= start empties. max_rollback rows can always be taken back. */
SWA_API swa_status swa_cache_truncate(swa_cache *cache, int seq, int64_t end);
/* dst becomes a copy of src's rows before end (-1 = all): shared prompts, beams. Cost: the copied rows. SWA_ERR_LOST
   where truncate(end) would be: keep a shared prompt in a sequence that stays at its end. */
SWA_API swa_status swa_cache_fork(swa_cache *cache, int dst, int src, int64_t end);
SWA_API int64_t    swa_cache_end(const swa_cache *cache, int seq);               /* next position to append, a begun
                                                                                    step counted; -1 = bad argument,
                                                                                    here and below                   */
SWA_API int64_t    swa_cache_first(const swa_cache *cache, int seq, int layer);  /* oldest resident position, sinks
                                                                                    apart; end if there is none      */
SWA_API int64_t    swa_cache_min_end(const swa_cache *cache, int seq);           /* smallest end > start that truncate
                                                                                    accepts; end if none is smaller  */
/* Where a replay has to start, after swa_cache_reset, for position pos to be exact again: pos minus the sum of W-1
   over the layers, or the start if a layer is causal or tokens are pinned. */
SWA_API int64_t    swa_cache_replay_from(const swa_cache *cache, int seq, int64_t pos);
SWA_API int64_t    swa_cache_slot(const swa_cache *cache, int seq, int layer, int64_t pos); /* of a resident position,
                                                                                    sinks first; -1 = not resident   */
/* Unrotate: rows pos..pos+n-1, oldest first, as f32. k [n][n_kv_heads][head_dim+tail_dim], v [n][n_kv_heads][v_dim];
   either may be NULL. ORDER: not stored yet. LOST: overwritten. */
SWA_API swa_status swa_cache_read(const swa_cache *cache, int seq, int layer, int64_t pos, int32_t n,
                                  float *k, float *v);
SWA_API size_t     swa_cache_save_bytes(const swa_cache *cache, int seq);        /* seq -1 = all sequences           */
SWA_API swa_status swa_cache_save(const swa_cache *cache, int seq, void *blob, size_t bytes);
/* A blob of one sequence loads into any sequence of a cache of the same geometry; a blob of all with seq -1. Geometry:
   shape without n_heads, types, n_layers, windows, slots (so capacity or max_rollback), and max_context where a layer
   depends on it. n_seqs, n_heads, max_parts, isa and audit may differ. save: ORDER while a layer lacks rows. */
SWA_API swa_status swa_cache_load(swa_cache *cache, int seq, const void *blob, size_t bytes);
/* Slots for an engine that stores a chunk before it attends: W-1 + max(chunk, rollback). 0 = invalid or unlimited. */
SWA_API int64_t    swa_required_capacity(const swa_window *window, int64_t max_chunk_put_first, int64_t max_rollback);

/* ---- step: which tokens come now ---- */

/* n new tokens of one sequence, at positions pos..pos+n-1. pos == end appends; pos < end rewinds (beginning the same
   position again replaces its rows and forgets what followed); an empty sequence may begin anywhere; pos > end is
   SWA_ERR_ORDER. n = 0 is allowed and does nothing. */
typedef struct {
    int     seq;
    int32_t n;
    int64_t pos;
    int64_t prefix;     /* > pos: the run's tokens before position prefix all see each other (prefix-LM, image spans)
                           besides what the window shows them; the span must lie within the run; 0 = none            */
    int32_t row;        /* out: the run's first packed row                                                           */
} swa_run;
typedef struct {
    swa_run *runs;      /* [n_runs], yours; a sequence at most once                                                  */
    int      n_runs;
    int32_t  n_tokens;  /* out: sum of n, the packed rows of this step                                               */
    int      failed;    /* out: index of the run that was refused, else -1                                           */
} swa_step;
/* Checks every run against every layer, rewinds where pos < end, sets row and n_tokens. Once per step, from one
   thread, before layer 0. With reset, truncate, fork and load the only call that changes what a cache contains: a step
   that died halfway is simply begun again (exact, or SWA_ERR_LOST). Begun, it counts: every layer has to store its rows
   before the next step appends, else that layer's attend is SWA_ERR_ORDER until the step is begun again or truncated
   away. One step at a time per cache; two caches may share one step, with a begin on each. */
SWA_API swa_status swa_step_begin(swa_cache *cache, swa_step *step);

/* Prefill of ragged prompts in chunks:
       while (swa_prefill_next(&plan, runs, &n)) { append decode runs; begin; forward; }
   A sequence whose prompt is used up drops out. Arrays are yours and must outlive the plan. */
typedef struct {
    const int     *seqs;      /* [n_seqs]; NULL = 0, 1, 2, ...                                                       */
    const int64_t *start;     /* [n_seqs] first position; NULL = 0                                                   */
    const int32_t *lens;      /* [n_seqs] prompt lengths, 0 allowed                                                  */
    int            n_seqs;
    int32_t        chunk, done;
} swa_plan;
SWA_API swa_status swa_prefill_begin(swa_plan *plan, const int *seqs, const int64_t *start, const int32_t *lens,
                                     int n_seqs, int32_t chunk);
/* Fills runs [n_seqs] and *n_runs with the next chunk; 0 when nothing is left. */
SWA_API int        swa_prefill_next(swa_plan *plan, swa_run *runs, int *n_runs);

/* ---- attention ---- */

/* Strides in floats, each by itself: token 0 = heads*dim, head 0 = dim. For [head][n][dim] set both. */
typedef struct { const float *p; int64_t token, head; } swa_in;
typedef struct { float *p; int64_t token, head; } swa_out;
typedef struct {
    swa_in  q, q_tail;      /* [n_tokens][n_heads][head_dim | tail_dim]; q.p NULL = store only                       */
    swa_in  k, k_tail, v;   /* [n_tokens][n_kv_heads][..], after RoPE; k.p NULL = rows were put before               */
    swa_in  q_sink, q_sink_tail; /* q as rotated for pinned sinks that have left the window; NULL = q                */
    swa_out out;            /* [n_tokens][n_heads][v_dim]; may be q itself when the layouts are the same             */
    float  *lse;            /* [n_tokens][n_heads] natural log of the sum of exp(score), sink logits not in it;
                               -inf for a row that sees nothing (out is 0 then); NULL = none                         */
    float  *stat;           /* [n_tokens][n_heads][2] = max (in base 2: score*log2 e), sum; out stays unnormalised,
                               for swa_merge; NULL = none                                                            */
    float   scale;          /* 0 = 1/sqrt(head_dim); refused with a tail or v_in_k: then say which                   */
    float   softcap;        /* s = cap*tanh(s/cap), before bias and mask (Gemma 2); 0 = off                          */
    const float *sink_logits;    /* [n_heads] one more logit in the denominator (gpt-oss), unscaled; NULL = none     */
    const float *alibi;          /* [n_heads] slopes: s -= slope*|q-k|; NULL = none                                  */
    const float *bias;           /* added after softcap: bias[row*bias_token + head*bias_head + (k - bias_first)]    */
    int64_t bias_token, bias_head, bias_first, bias_n;   /* bias_n > 0 columns; keys outside them get 0. Strides are
                               taken as they are: 0 = the same for all tokens or heads                              */
    int     no_store;       /* 1: attend to k, v but leave the ring alone. Of the layers that share a ring all but the
                               last set it: after the store n > capacity-(W-1) is SWA_ERR_CAPACITY                   */
    int     compute;        /* SWA_F32 (0). SWA_BF16: q, k, v, weights rounded to bf16, sums in f32; prefill and MLA
                               1.7 times faster on AMD with bf16 pairs (Zen 4 on), elsewhere 3 to 15 % slower,
                               decode not faster. SWA_Q8: q in int8 too; needs k_type SWA_Q8, no tail, head_dim <=
                               1040. Relative L2 error against exact K and V, mean (worst of 400), and largest error
                               by largest output: bf16 3e-3 (7e-3), 1.3e-2; q8 1.0e-2 (1.3e-2), 2e-2 with normal q,
                               k, v; twice that with q four times as large. Own bits each, on every instruction set  */
} swa_attn;

/* q and k: attend to ring and new rows, then store. q only: the rows were put (n <= capacity-(W-1), else
   SWA_ERR_CAPACITY). k only: put. Serial, or OpenMP over max_parts when compiled with it. */
SWA_API swa_status swa_attend(swa_cache *cache, int layer, const swa_step *step, const swa_attn *attn);
/* The same for your own threads: every part of phase 0, join, every part of phase 1, join; both are needed even with
   one part. parts <= max_parts. Outputs of the parts of a phase are disjoint; every part of phase 0 returns the same
   status: go on with phase 1 only if it is SWA_OK. A host without a join inside an op (ggml) makes two ops of it. */
SWA_API swa_status swa_attend_part(swa_cache *cache, int layer, const swa_step *step, const swa_attn *attn,
                                   int phase, int part, int parts);

/* Attention over the caller's own rows: any number of segments, ascending and disjoint in position. A visible position
   that no segment holds is skipped. swa_cache_spans fills segments that read a ring in place (to read, not to write).
   Numbers of a row lie together: V transposed [dim][n] is not supported. */
typedef struct {
    const void *k, *v, *tail;         /* first row; v ignored when v_in_k                                            */
    swa_type k_type, v_type, tail_type;
    int64_t  k_token, k_head, v_token, v_head, tail_token, tail_head;   /* strides in elements, 0 as in swa_in        */
    int64_t  pos;                     /* position of the first row                                                   */
    int32_t  n;                       /* rows                                                                        */
    int32_t  layout_, slots_;         /* private: 0 = rows                                                           */
    const float *k_scale_, *v_scale_, *tail_scale_;
} swa_kv;
typedef struct {
    swa_shape  shape;
    swa_window window;
    int64_t    pos;                   /* of the first query                                                          */
    int32_t    n_tokens;              /* queries                                                                     */
    const swa_kv *kv;                 /* [n_kv] in order of position; gaps between them hold no keys and cost nothing */
    int        n_kv;
    void      *scratch;               /* swa_attention_bytes(rows, parts), any alignment; in use until phase 1 ends  */
    size_t     scratch_bytes;
    int        isa;                   /* 0 = best                                                                    */
} swa_rows;
/* Returns how many segments, sinks first; valid until the next phase 1 or begin. */
SWA_API int        swa_cache_spans(const swa_cache *cache, int seq, int layer, swa_kv out[3]);
/* 0 = invalid or overflow. With one part it depends on the shape and on whether there are sinks; with more also on
   n_tokens and the keys, and not monotonously: few tokens split their keys and need room for the results. n_tokens 0
   gives enough for any number of tokens and keys (64 MiB more). Less, but as much as per part, only splits less. */
SWA_API size_t     swa_attention_bytes(const swa_rows *rows, int parts);
SWA_API swa_status swa_attention(const swa_rows *rows, const swa_attn *attn);    /* attn->k, k_tail, v: not looked at */
SWA_API swa_status swa_attention_part(const swa_rows *rows, const swa_attn *attn, int phase, int part, int parts);
/* Merges n partial results (out and stat of calls over disjoint keys) in the order given. Partials that hold one
   SWA_BLOCK each, merged in order of position, give the bits of the unsplit call. out, lse may be NULL. */
SWA_API swa_status swa_merge(const float *const *outs, const float *const *stats, int n, int32_t rows, int v_dim,
                             const float *sink_logits /* [n_heads] or NULL; rows = tokens*n_heads */, int n_heads,
                             float *out, float *lse);

/* ---- helpers ---- */

typedef enum { SWA_ROPE_INTERLEAVED /* pairs (2i, 2i+1): Llama, Mistral, DeepSeek */,
               SWA_ROPE_HALF        /* pairs (i, i+rotary/2): HF, NeoX, Gemma     */ } swa_rope_pairs;
/* Rotates the first `rotary` numbers of every head of x [n][n_heads][head_dim] in place; token t is at pos[t]. freq
   [rotary/2] are inverse frequencies; angles are computed in double, so any position is exact. mscale multiplies cos
   and sin (0 = 1). */
SWA_API swa_status swa_rope(float *x, int32_t n, int n_heads, int head_dim, const int64_t *pos, const double *freq,
                            int rotary, swa_rope_pairs pairs, double mscale);
typedef struct { double base, scale; int32_t original, truncate; double beta_fast, beta_slow; } swa_yarn_desc;
/* Inverse frequencies: base^(-2i/rotary); with scale > 1 stretched by YaRN from `original` positions (truncate: ramp
   ends rounded; beta 0 = 32 and 1). *mscale (may be NULL) = 0.1 ln(scale)+1, YaRN's factor for cos and sin. */
SWA_API swa_status swa_yarn(const swa_yarn_desc *desc, int rotary, double *freq /* [rotary/2] */, double *mscale);
SWA_API swa_status swa_rmsnorm(float *out, const float *x, const float *w, int32_t rows, int dim, float eps);

/* ---- latent: DeepSeek's multi-head latent attention ---- */

/* A token's K and V of all heads are expanded from one latent row, so the cache holds [latent | rope] alone:
     latent = kv_norm(W_DKV h)   k_rope = rope(W_KR h)
     c_q = q_norm(W_DQ h)        q_nope = W_UQ c_q   q_rope = rope(W_QR c_q)
     k = [W_UK latent | k_rope]  v = W_UV latent   o = softmax(scale q.k) v   out = W_O o
   An engine with its own matrix products needs none of what follows: queries absorbed (q_nope W_UK), swa_attend with
   head_dim = v_dim = kv_lora_rank, n_kv_heads 1, tail_dim = rope, v_in_k, scale from swa_mla_scale, then W_UV and W_O.
   The calls below are the whole block, from hidden state to output. */
#define SWA_MLA_PHASES 8 /* phases of swa_mla_forward; the parts of one phase are independent, join between phases    */

typedef struct {
    const void *p;
    swa_type    type;         /* F32, F16, BF16                                                                      */
    int64_t     stride;       /* from row to row, in elements; 0 = packed                                            */
} swa_matrix;
/* One matrix product: y[t][o] = sum over i of x[t][i] * w[o][i], or of x[t][i] * w[i][o] if transposed. */
typedef struct {
    int32_t      n, n_in, n_out;
    int          transposed;
    const float *x;           /* [n][n_in]                                                                           */
    int64_t      x_stride;
    swa_matrix   w;           /* [n_out][n_in], transposed [n_in][n_out]; stride given                               */
    float       *y;           /* [n][n_out]                                                                          */
    int64_t      y_stride;
} swa_gemm;

typedef enum {
    SWA_MLA_AUTO = 0,         /* naive or absorbed, whichever is cheaper for a run: swa_mla_choose                   */
    SWA_MLA_NAIVE,            /* K and V are expanded per head, a block of keys at a time. With a cache of expanded
                                 rows: stored expanded, and read                                                     */
    SWA_MLA_ABSORBED,         /* W_UK goes into the query, W_UV behind the attention, per head; best for decode      */
    SWA_MLA_MERGED            /* W_UQ W_UK and W_UV W_O multiplied beforehand, as [MLA] does: never cheaper          */
} swa_mla_path;

/* Weights are [out][in] as models ship them, rows per head where there are heads. Two matrices that stand side by side
   may be one: leave the second's p NULL, and the first holds the rows of both (per head first [nope | rope], of the
   third pair [nope | v]): DeepSeek's wq_b, wkv_a, wkv_b. */
typedef struct {
    int hidden, n_heads;
    int q_lora_rank;                 /* 0: no W_DQ, W_UQ and W_QR read the hidden state                              */
    int kv_lora_rank, nope_dim, rope_dim, v_dim;
    swa_matrix w_dq;                 /* [q_lora_rank][hidden]                                                        */
    swa_matrix w_uq, w_qr;           /* [n_heads*nope][q_lora_rank or hidden], [n_heads*rope][..]                    */
    swa_matrix w_dkv, w_kr;          /* [kv_lora_rank][hidden], [rope][hidden]                                       */
    swa_matrix w_uk, w_uv;           /* [n_heads*nope][kv_lora_rank], [n_heads*v][kv_lora_rank]                      */
    swa_matrix w_o;                  /* [hidden][n_heads*v]                                                          */
    const float *q_norm, *kv_norm;   /* [q_lora_rank], [kv_lora_rank] RMSNorm weights; NULL = no norm                */
    float    eps;
    swa_rope_pairs pairs;
    const double *freq;              /* [rope/2] inverse frequencies: swa_yarn                                       */
    double   rope_mscale;            /* multiplies cos and sin; 0 = 1                                                */
    double   mscale;                 /* YaRN: squared into the scale; 0 = 1                                          */
    double   scale;                  /* 0 = swa_mla_scale(nope, rope, mscale): never from the latent row's width     */
    swa_mla_path path;
    const void *merged;              /* what swa_mla_precompute wrote; MERGED only                                   */
    int      compute;                /* of the attention, as in swa_attn                                             */
    void   (*gemm)(void *user, const swa_gemm *product);   /* your product instead of ours (BLAS). Called by several
                                        parts at a time, each with its own rows of w and columns of y; NULL = ours   */
    void    *user;
    void    *scratch;                /* swa_mla_bytes(mla, n_tokens, parts), any alignment; not kept between calls   */
    size_t   scratch_bytes;
} swa_mla;

/* 1/sqrt(nope + rope) * mscale^2; mscale 0 = 1. */
SWA_API double     swa_mla_scale(int nope_dim, int rope_dim, double mscale);
/* The cache that fits: latent rows (1 KV head, head_dim = v_dim = kv_lora_rank, tail_dim = rope, v_in_k), or expanded
   K and V (n_heads KV heads, head_dim = nope + rope, v_dim = v), which is read by the naive path alone. */
SWA_API swa_shape  swa_mla_shape(const swa_mla *mla, int expanded);
/* What one call costs, by path; [3] is the naive path over an expanded cache. */
typedef struct { double macs, weight_bytes, cache_bytes; } swa_mla_cost;
/* The cheaper of NAIVE and ABSORBED for n_new tokens of a sequence that has n_cached in reach. With n = n_cached +
   n_new, A = kv_lora*(nope+v), B = 2*kv_lora - nope - v: absorbed iff n*(A - n_new*B) > n_new*A. At DeepSeek-V3's
   sizes that is never the case from 171 new tokens on, and always for one token. (Keys are expanded in tiles of 16, so
   the first n counts as 16 at least.) cost (may be NULL) counts everything the block does: multiply-adds, bytes of
   weights and of cached rows read (f32 cache). AUTO (0) = mla is invalid. */
SWA_API swa_mla_path swa_mla_choose(const swa_mla *mla, int64_t n_cached, int32_t n_new, swa_mla_cost cost[4]);
/* Multiply-adds of one step over n tokens as [MLA] counts them, by path as above: without W_DQ, W_DKV, the rope parts
   and W_O where it cancels. Its table is macs[0] ("before") and macs[2] ("after"); macs[1] is what it leaves out. */
SWA_API swa_status swa_mla_document_macs(const swa_mla *mla, int64_t n, double macs[4]);

SWA_API size_t     swa_mla_merged_bytes(const swa_mla *mla);                     /* 0 = invalid or overflow          */
/* f32 W_UQK [n_heads*kv_lora_rank][q_lora_rank or hidden], then W_UVO [hidden][n_heads*kv_lora_rank], each at a
   multiple of 64 bytes from the first one in the buffer. */
SWA_API swa_status swa_mla_precompute(const swa_mla *mla, void *merged, size_t bytes);
SWA_API size_t     swa_mla_bytes(const swa_mla *mla, int32_t n_tokens, int parts);  /* 0 = invalid or overflow       */
/* Attends and stores one step, begun by swa_step_begin. out may be h. Bits depend on the path, which AUTO takes from
   each run's own length and history, and on nothing else. Serial, or OpenMP over as many parts as scratch allows. */
SWA_API swa_status swa_mla_forward(swa_cache *cache, int layer, const swa_step *step, const swa_mla *mla,
                                   const float *h /* [n_tokens][hidden] */, float *out /* [n_tokens][hidden] */);
SWA_API swa_status swa_mla_forward_part(swa_cache *cache, int layer, const swa_step *step, const swa_mla *mla,
                                        const float *h, float *out, int phase, int part, int parts);

SWA_API const char *swa_status_str(swa_status status);
SWA_API int         swa_isa_best(void);           /* what 0 means on this machine                                    */
SWA_API int         swa_isa_usable(int isa);      /* compiled in, and this CPU has it                                */
SWA_API const char *swa_isa_name(int isa);

#ifdef __cplusplus
}
#endif
#endif /* SWA_H_INCLUDED */

/* ==== [SECTION 2] PLATFORM ======================================================================================
   Every switch is 0 or 1, computed once, so that #if works and -Wundef stays quiet. */
#if defined(SWA_IMPLEMENTATION) && !defined(SWA__IMPLEMENTED)
#define SWA__IMPLEMENTED
#define SWA__IMPLEMENTING                /* undone at the end of this inclusion */
#include <float.h>
#include <math.h>
#include <string.h>

#if !defined(SWA_NO_SIMD) && defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#  define SWA__X86 1
#  include <immintrin.h>
#else
#  define SWA__X86 0
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
#if !defined(SWA_NO_SIMD) && defined(__aarch64__) && defined(__ARM_NEON)
#  define SWA__NEON 1
#  include <arm_neon.h>
#else
#  define SWA__NEON 0
#endif

/* Under the host's -ffast-math or -Ofast this code keeps its own arithmetic, or the bits would depend on how the
   compiler regroups each loop. What comes from other headers (clang's intrinsics) keeps the host's, so the kernels add
   and multiply with operators of their own. Undone at the end of the implementation. */
#if defined(__FAST_MATH__) && (defined(__GNUC__) || defined(__clang__))
#  define SWA__FAST_MATH 1
#else
#  define SWA__FAST_MATH 0
#endif
#if SWA__FAST_MATH && defined(__clang__)
#  pragma float_control(precise, on, push)
#  pragma clang fp contract(off)
#elif SWA__FAST_MATH
#  pragma GCC push_options
#  pragma GCC optimize("no-fast-math", "fp-contract=off")
#endif

#if defined(_OPENMP) && !defined(SWA_NO_OPENMP)
#  define SWA__OPENMP 1
#  include <omp.h>
#else
#  define SWA__OPENMP 0
#endif
#if defined(__GNUC__) || defined(__clang__)
#  define SWA__TARGET(features) __attribute__((target(features)))
#  define SWA__INLINE static inline __attribute__((always_inline))
#  define SWA__NOINLINE static __attribute__((noinline))   /* a kernel is optimised best alone */
#  ifdef __clang__                       /* without it, accumulators stay in memory; clang must be told "full" */
#    define SWA__UNROLL _Pragma("clang loop unroll(full)")
#  else
#    define SWA__UNROLL _Pragma("GCC unroll 16")
#  endif
#  define SWA__PREFETCH(p) __builtin_prefetch((p), 0, 2)   /* into L2: 2.7 times faster than into L1 when cold */
#  define SWA__PREFETCH_L1(p) __builtin_prefetch((p), 0, 3)
#  define SWA__PREFETCH_ONCE(p) __builtin_prefetch((p), 0, 0)  /* read once: it pushes nothing else out of L2 */
#  define SWA__FETCH(p, l1) do { if (l1) SWA__PREFETCH_L1(p); else SWA__PREFETCH(p); } while (0)
#else
#  define SWA__TARGET(features)
#  define SWA__INLINE static
#  define SWA__NOINLINE static
#  define SWA__UNROLL
#  define SWA__PREFETCH(p) ((void)(p))
#  define SWA__PREFETCH_L1(p) ((void)(p))
#  define SWA__PREFETCH_ONCE(p) ((void)(p))
#  define SWA__FETCH(p, l1) ((void)(p), (void)(l1))
#endif
#ifndef SWA_ASSERT
#  define SWA_ASSERT(x) ((void)0)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- instruction sets: compiled in, and what this CPU has ---- */

static int swa__isa_compiled(int isa) {
    return isa == SWA_ISA_SCALAR || (isa == SWA_ISA_NEON && SWA__NEON) || (isa == SWA_ISA_AVX2 && SWA__X86)
           || (isa == SWA_ISA_AVX512 && SWA__AVX512);
}
SWA_API int swa_isa_usable(int isa) {
    if (!swa__isa_compiled(isa)) return 0;
#if SWA__X86
    if (isa == SWA_ISA_AVX2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");   /* every such CPU has F16C */
    if (isa == SWA_ISA_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
               && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
               && __builtin_cpu_supports("fma");
#endif
    return 1;
}
/* Whether what is read next should be fetched into L1, or into L2 only. Measured: decoding is up to 20 % faster with L1
   on Zen 5, and with L2 on Zen 4, which lacks the feature asked for. */
static int swa__fetch_l1(void) {
#if SWA__X86
    return __builtin_cpu_supports("avx512vp2intersect");
#else
    return 0;
#endif
}
/* Whether bf16 pairs are worth their instruction. AMD (Zen 4, 5) runs as many of them a cycle as f32 FMAs: twice the
   products. Intel (Sapphire Rapids) runs half as many operations as its two ports of FMAs do, and was 1.4 to 1.6 times
   slower with pairs than in f32: there the emulated form runs, f32 FMAs on rounded numbers, with the same bits. */
#if SWA__AVX512_DOT
static int swa__likes_pairs(void) { return __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel"); }
#endif
SWA_API int swa_isa_best(void) {
    int isa = SWA_ISA_AVX512;
    while (isa > SWA_ISA_SCALAR && !swa_isa_usable(isa)) isa--;
    return isa;
}
SWA_API const char *swa_isa_name(int isa) {
    static const char *const name[] = { "best", "scalar", "neon", "avx2", "avx512" };
    return isa >= SWA_ISA_SCALAR && isa <= SWA_ISA_AVX512 ? name[isa] : "unknown";
}

/* ==== [SECTION 3] NUMBERS =======================================================================================
   Sizes that cannot overflow unnoticed, and the two 16-bit formats in plain C. */

static int swa__mul(size_t a, size_t b, size_t *r) {   /* 1 = fits */
    if (b != 0 && a > (size_t)-1 / b) return 0;
    *r = a * b;
    return 1;
}
static int swa__add(size_t a, size_t b, size_t *r) {
    if (a > (size_t)-1 - b) return 0;
    *r = a + b;
    return 1;
}
/* *total += a*b*c rounded up to 64 bytes: how every region of memory is laid out. */
static int swa__region(size_t *total, size_t a, size_t b, size_t c) {
    size_t n;
    if (!swa__mul(a, b, &n) || !swa__mul(n, c, &n) || !swa__add(n, 63, &n)) return 0;
    return swa__add(*total, n & ~(size_t)63, total);
}
static int64_t swa__min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t swa__max64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t swa__round16(int64_t n) { return (n + 15) & ~(int64_t)15; }

static float swa__float_of(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
static uint32_t swa__bits_of(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }

/* Round to nearest even; overflow to infinity, as the F16C instructions do. No NaN comes here: masks refuse it, stored
   rows are cut to the type's range. */
static uint16_t swa__f16_from_f32(float f) {
    uint32_t u = swa__bits_of(f), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu, shift, m;
    if (a >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
    if (a >= 0x38800000u) { a += 0xc8000fffu + ((a >> 13) & 1); return (uint16_t)(sign | (a >> 13)); }
    if (a < 0x33000000u) return (uint16_t)sign;
    shift = 126 - (a >> 23);                            /* a subnormal half: shift the mantissa in, then round */
    m = (a & 0x7fffffu) | 0x800000u;
    a = m >> shift;
    m &= (1u << shift) - 1;
    a += m > (1u << (shift - 1)) || (m == (1u << (shift - 1)) && (a & 1));
    return (uint16_t)(sign | a);
}
static float swa__f32_from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = (h >> 10) & 31, m = h & 0x3ffu;
    if (e == 31) return swa__float_of(sign | 0x7f800000u | m << 13 | (m != 0 ? 0x400000u : 0u));
    if (e != 0) return swa__float_of(sign | (e + 112) << 23 | m << 13);
    if (m == 0) return swa__float_of(sign);
    for (e = 113; (m & 0x400u) == 0; e--) m <<= 1;      /* normalise the subnormal */
    return swa__float_of(sign | e << 23 | (m & 0x3ffu) << 13);
}
static uint16_t swa__bf16_from_f32(float f) {
    uint32_t u = swa__bits_of(f);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}
static float swa__f32_from_bf16(uint16_t h) { return swa__float_of((uint32_t)h << 16); }

static size_t swa__type_size(int type) { return type == SWA_F32 ? 4 : type == SWA_F16 || type == SWA_BF16 ? 2 : 1; }
static float swa__load1(int type, const void *p, size_t i) {
    if (type == SWA_F32) return ((const float *)p)[i];
    if (type == SWA_F16) return swa__f32_from_f16(((const uint16_t *)p)[i]);
    if (type == SWA_BF16) return swa__f32_from_bf16(((const uint16_t *)p)[i]);
    return (float)((const int8_t *)p)[i];
}

SWA_API const char *swa_status_str(swa_status status) {
    static const char *const text[] = {
        "ok", "bad argument", "size or position overflows", "buffer too small",
        "call out of order, or layer, part or phase out of range",
        "needs rows that the ring has overwritten", "rows stored first exceed capacity-(W-1)", "max_context reached",
        "not supported with this type, instruction set or window", "blob cut, altered, or of another geometry" };
    return (int)status >= 0 && (int)status < 10 ? text[status] : "unknown status";
}

/* ==== [SECTION 4] WINDOW ========================================================================================
   Who sees whom. swa__bounds is the only place that knows what a window means: swa_visible is membership in it, and
   masks, tile bounds, eviction, capacity and the rollback law are all derived from these two. */

enum { SWA__CAUSAL = 0, SWA__BAND = 1, SWA__CHUNKED = 2 };

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
SWA_API swa_window swa_window_sliding(int64_t W) { return swa__window(W > 0, SWA__BAND, W - (W > 0), 0); }
SWA_API swa_window swa_window_flash(int64_t left, int64_t right) {
    return swa__window(left >= -1 && right >= -1, SWA__BAND, left, right);
}
SWA_API swa_window swa_window_chunked(int64_t chunk) { return swa__window(chunk > 0, SWA__CHUNKED, chunk, 0); }
SWA_API swa_window swa_window_symmetric(int64_t reach) { return swa__window(reach >= 0, SWA__BAND, reach, reach); }
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
static int swa__window_ok(const swa_window *w) {
    if (w == NULL || w->n_sink < 0 || w->prefix < 0 || w->prefix_first < 0) return 0;
    if (w->kind == SWA__BAND) return w->left >= -1 && w->right >= -1;
    return w->kind == SWA__CAUSAL || (w->kind == SWA__CHUNKED && w->left > 0);
}
/* The rule, as bounds: besides the sinks, the query at 0 <= q < INT64_MAX sees the keys [*lo, *hi). */
static void swa__bounds(const swa_window *w, int64_t q, int64_t *lo, int64_t *hi) {
    int64_t right = w->kind == SWA__BAND ? w->right : 0;
    *lo = 0;
    if (w->kind == SWA__BAND && w->left >= 0 && q > w->left) *lo = q - w->left;   /* q-k <= left, left = W-1 */
    if (w->kind == SWA__CHUNKED) *lo = q - q % w->left;
    *hi = right < 0 || right > INT64_MAX - 1 - q ? INT64_MAX : q + 1 + right;
    if (q >= w->prefix_first && q < w->prefix) {
        *lo = swa__min64(*lo, w->prefix_first);
        *hi = swa__max64(*hi, w->prefix);
    }
}
static int64_t swa__lowest(const swa_window *w, int64_t q) {
    int64_t lo, hi;
    swa__bounds(w, q, &lo, &hi);
    return lo;
}
/* The largest number of keys up to its own that a query can see: W; INT64_MAX without limit. */
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
SWA_API swa_status swa_visible_range(const swa_window *window, int64_t q, int64_t *lo, int64_t *hi) {
    if (!swa__window_ok(window) || lo == NULL || hi == NULL || q < 0) return SWA_ERR_ARG;
    if (q == INT64_MAX) return SWA_ERR_OVERFLOW;
    swa__bounds(window, q, lo, hi);
    return SWA_OK;
}
SWA_API const char *swa_explain(const swa_window *window, int64_t q, int64_t k) {
    int64_t lo, hi;
    if (!swa__window_ok(window)) return "hidden: the window is invalid";
    if (q < 0 || k < 0 || q == INT64_MAX) return "hidden: there is no such position";
    swa__bounds(window, q, &lo, &hi);
    if (k >= lo && k < hi)
        return k > q ? "visible: ahead, by the right extent or the prefix" : "visible: in the window";
    if (k < window->n_sink && k <= q) return "visible: a pinned sink";
    if (k >= hi) return "hidden: after the query";
    return window->kind == SWA__CHUNKED ? "hidden: in an earlier chunk" : "hidden: further back than the window";
}

/* ==== [SECTION 5] MASKS =========================================================================================
   Dense masks for other people's kernels, written row by row as ranges: the row is filled as hidden, then what
   swa_visible_range() and n_sink give is opened. Nothing here knows what a window is. Cells are stored by memcpy,
   so the buffer may have any alignment; values are judged by their bits, so -ffast-math changes nothing. */

typedef struct { size_t size; unsigned char hidden[4], visible[4]; } swa__mask_cell;

/* What a hidden and a visible entry look like; 0 = no mask type, or a masked value it cannot hold: NaN, a finite
   value that rounds to infinity, or one so small that it rounds to 0, which is visible. -inf always fits. */
static int swa__mask_cell_of(swa_type type, float masked, swa__mask_cell *cell) {
    uint32_t magnitude;
    memset(cell, 0, sizeof *cell);
    if (type == SWA_BOOL_MASKED || type == SWA_BOOL_KEEP) {
        cell->size = 1;
        cell->hidden[0] = type == SWA_BOOL_MASKED;
        cell->visible[0] = type == SWA_BOOL_KEEP;
        return 1;
    }
    if (type != SWA_F32 && type != SWA_F16 && type != SWA_BF16) return 0;
    magnitude = swa__bits_of(masked) & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return 0;
    if (magnitude == 0) masked = type == SWA_F16 ? -65504.0f : -65536.0f;
    if (type == SWA_F32) {
        cell->size = 4;
        memcpy(cell->hidden, &masked, 4);
    } else {
        uint16_t half = type == SWA_F16 ? swa__f16_from_f32(masked) : swa__bf16_from_f32(masked);
        unsigned infinite = type == SWA_F16 ? 0x7c00u : 0x7f80u, rounded = half & 0x7fffu;
        if (rounded == 0 || (rounded >= infinite && magnitude != 0x7f800000u)) return 0;
        cell->size = 2;
        memcpy(cell->hidden, &half, 2);
    }
    return 1;
}

/* n > 0 cells at p become copies of value; each memcpy doubles what is there. */
static void swa__mask_fill(unsigned char *p, size_t n, size_t size, const unsigned char *value) {
    size_t total = n * size, done = size, more;
    memcpy(p, value, size);
    for (; done < total; done += more) {
        more = done < total - done ? done : total - done;
        memcpy(p + done, p, more);
    }
}

/* Checks a desc and measures its mask. What is wrong comes before what is too large. */
static swa_status swa__mask_measure(const swa_mask_desc *desc, swa__mask_cell *cell, size_t *columns,
                                    size_t *bytes) {
    size_t rows = 0, packed = 0;
    int b, n, fits = 1;
    if (!desc || !desc->n_q || !desc->n_k || desc->n_blocks < 0 || desc->k_padding < 0) return SWA_ERR_ARG;
    if (!swa__window_ok(&desc->window) || !swa__mask_cell_of(desc->type, desc->masked, cell)) return SWA_ERR_ARG;
    n = desc->n_blocks ? desc->n_blocks : 1;
    for (b = 0; b < n; b++) {
        int32_t nq = desc->n_q[b], nk = desc->n_k[b];
        int64_t q0 = desc->q_pos0 ? desc->q_pos0[b] : 0, k0 = desc->k_pos0 ? desc->k_pos0[b] : 0;
        if (nq < 0 || nk < 0 || q0 < 0 || k0 < 0 || (desc->k_padding && nk > desc->k_padding)) return SWA_ERR_ARG;
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
    if (lo < k0) lo = k0;
    if (hi > k0 + n) hi = k0 + n;
    if (lo < hi) swa__mask_fill(p + (size_t)(lo - k0) * cell->size, (size_t)(hi - lo), cell->size, cell->visible);
}

SWA_API size_t swa_mask_bytes(const swa_mask_desc *desc) {
    swa__mask_cell cell;
    size_t columns, bytes;
    return swa__mask_measure(desc, &cell, &columns, &bytes) == SWA_OK ? bytes : 0;
}

SWA_API swa_status swa_mask(const swa_mask_desc *desc, void *out, size_t bytes) {
    swa__mask_cell cell;
    size_t columns, need, first = 0;                /* first: the block's first column */
    unsigned char *row = (unsigned char *)out;
    swa_status status = swa__mask_measure(desc, &cell, &columns, &need);
    int b, n;
    if (status != SWA_OK) return status;
    if (need == 0) return SWA_OK;                   /* no rows or no columns: nothing to write, out may be NULL */
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
            swa__mask_fill(row, columns, cell.size, cell.hidden);
            (void)swa_visible_range(&desc->window, q, &lo, &hi);    /* cannot fail: window and q were checked */
            swa__mask_open(block, k0, nk, lo, hi, &cell);
            swa__mask_open(block, k0, nk, 0, sinks < q + 1 ? sinks : q + 1, &cell);
            row += columns * cell.size;
        }
        first += (size_t)nk;
    }
    return SWA_OK;
}

/* The compressed mask [ATB]: one 512x512 picture of a sliding window of T keys that serves any W and S. A kernel
   works on tiles of BxB scores; the tile `delta` tiles left of the diagonal holds the distances delta*B + r-c, for
   its row r and column c. Band b of the picture, its rows b*B.. and columns 0..B-1, shows the distances b*B + r-c;
   there are four. A band shows the window's edge where the tile has it iff T - b*B = W - delta*B.

                        910B, n = ceil(W/B)             310P, f = floor(W/B), at least 2
       delta 0          band 0                          band 0
       delta 1          band 1                          band 1, W >= 2B: no mask unless delta == f
       between          no mask, all visible            no mask, all visible
       edge             n-1: band 2, n: band 3          f: band 2, f+1: band 3
                        (n <= 3: delta d has band d)
       beyond ceil(W/B) the tile is not computed        the tile is not computed

   Hence T = W while band and delta agree, that is while n <= 3 or f <= 2. Beyond, T = W - (n-3)B, in 2B+1..3B, for
   910B and T = W - (f-2)B, in 2B..3B-1, for 310P. The document's Python sample is 910B's rule but has B = 64 for
   every head above 128; its C++ sample is 310P's rule but for W = 3B, where it has T = 3B for 2B, and never rounds
   the head up to a multiple of 16 before it divides. A model of the kernels' public source; no NPU was asked. */

SWA_API int swa_compressed_block(swa_compressed kind, int head_dim) {
    if (head_dim < 1 || head_dim > 256) return 0;
    switch (kind) {
    case SWA_COMPRESSED_PY:   return head_dim <= 128 ? 128 : 64;
    case SWA_COMPRESSED_CPP:  return head_dim <= 128 ? 128 : 16384 / head_dim / 16 * 16;
    case SWA_COMPRESSED_910B:
    case SWA_COMPRESSED_310P: return head_dim <= 128 ? 128 : 16384 / ((head_dim + 15) / 16 * 16) / 16 * 16;
    default:                  return 0;
    }
}

SWA_API int64_t swa_compressed_band(swa_compressed kind, int64_t W, int head_dim) {
    int64_t B = swa_compressed_block(kind, head_dim), rest;
    if (B == 0 || W <= 0) return 0;
    if (W < 3 * B || (W == 3 * B && kind != SWA_COMPRESSED_310P)) return W;
    rest = W % B;
    if (rest == 0 && (kind == SWA_COMPRESSED_PY || kind == SWA_COMPRESSED_910B)) rest = B;
    return 2 * B + rest;
}

SWA_API swa_status swa_mask_compressed(swa_compressed kind, int64_t W, int head_dim, swa_type type, float masked,
                                       void *out, size_t bytes) {
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

enum { SWA__TILE_SKIPPED = -2, SWA__TILE_OPEN = -1 };

/* The band 0..3 that a kernel reads for the tile delta >= 0 tiles left of the diagonal, or SWA__TILE_*. */
static int swa__compressed_tile(swa_compressed kind, int64_t W, int64_t B, int64_t delta) {
    int64_t f = W / B, n = f + (W % B != 0);
    if (delta > n) return SWA__TILE_SKIPPED;
    if (delta == 0) return 0;
    if (kind == SWA_COMPRESSED_910B || kind == SWA_COMPRESSED_PY) {
        if (n <= 3 || delta == 1) return (int)delta;
        return delta < n - 1 ? SWA__TILE_OPEN : delta == n ? 3 : 2;
    }
    if (f < 2) f = 2;
    if (delta >= f) return delta == f ? 2 : 3;
    return W >= 2 * B ? SWA__TILE_OPEN : 1;
}

SWA_API swa_status swa_mask_expand(swa_compressed kind, const float *mask512, int64_t W, int head_dim, int64_t S,
                                   float masked, float *out, size_t bytes) {
    const unsigned char *picture = (const unsigned char *)mask512;
    unsigned char *row = (unsigned char *)out;
    size_t side = (size_t)S, need;
    int64_t B = swa_compressed_block(SWA_COMPRESSED_910B, head_dim), i;     /* the kernels' tile, not a sample's */
    swa__mask_cell cell;
    if (!mask512 || !out || W <= 0 || S <= 0 || swa_compressed_block(kind, head_dim) == 0) return SWA_ERR_ARG;
    if (!swa__mask_cell_of(SWA_F32, masked, &cell)) return SWA_ERR_ARG;
    if ((int64_t)side != S || !swa__mul(side, side, &need) || !swa__mul(need, 4, &need)) return SWA_ERR_OVERFLOW;
    if (bytes < need) return SWA_ERR_MEMORY;
    for (i = 0; i < S; i++, row += side * 4) {
        int64_t delta;
        swa__mask_fill(row, side, 4, cell.hidden);
        for (delta = 0; delta <= i / B; delta++) {
            int64_t j = (i / B - delta) * B, n = S - j < B ? S - j : B;     /* the tile's columns, cut at S */
            int band = swa__compressed_tile(kind, W, B, delta);
            if (band == SWA__TILE_SKIPPED) break;
            if (band == SWA__TILE_OPEN) swa__mask_open(row, 0, S, j, j + n, &cell);
            else memcpy(row + (size_t)j * 4, picture + (size_t)(band * B + i % B) * 512 * 4, (size_t)n * 4);
        }
    }
    return SWA_OK;
}

/* ==== [SECTION 6] HELPERS =======================================================================================
   Rotary position embedding (Su et al. 2021), YaRN frequencies (Peng et al. 2023), RMSNorm. Angles and sums are in
   double and results are rounded to float once, so compiler flags and libm versions rarely reach the last bit. */

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

/* cos and sin of pos*freq. Below 2^24 the rounded product is good to 1e-9 (freq <= 1). Beyond, the angle is cut
   into products that are exact in a double (pos in digits of 26 bits; freq in its upper 26 bits and the rest), each
   goes through libm, which reduces any argument, and the rotations are multiplied: 1e-15 at any position. */
static void swa__rope_angle(int64_t pos, double freq, double *c, double *s) {
    uint64_t rest = pos < 0 ? 0 - (uint64_t)pos : (uint64_t)pos, bits = swa__double_bits(freq);
    if (rest < (uint64_t)1 << 24) {
        *c = cos((double)rest * freq);
        *s = sin((double)rest * freq);
    } else {
        double part[2], digit_value = 1.0;
        int i;
        bits = bits >> 27 << 27;
        memcpy(&part[0], &bits, sizeof bits);
        part[1] = freq - part[0];
        *c = 1.0;
        *s = 0.0;
        for (; rest; rest >>= 26, digit_value *= 67108864.0) {
            double digit = (double)(rest & 0x3ffffffu) * digit_value;
            for (i = 0; i < 2; i++) {
                double pc = cos(digit * part[i]), ps = sin(digit * part[i]), old = *c;
                *c = old * pc - *s * ps;
                *s = old * ps + *s * pc;
            }
        }
    }
    if (pos < 0) *s = -*s;
}

/* Rotates n pairs of one head: the numbers step*i and step*i + apart. */
static void swa__rope_pairs(float *x, int n, size_t step, size_t apart, const double *c, const double *s) {
    int i;
    for (i = 0; i < n; i++, x += step) {
        double a = (double)x[0], b = (double)x[apart];
        x[0] = (float)(a * c[i] - b * s[i]);
        x[apart] = (float)(a * s[i] + b * c[i]);
    }
}

SWA_API swa_status swa_rope(float *x, int32_t n, int n_heads, int head_dim, const int64_t *pos, const double *freq,
                            int rotary, swa_rope_pairs pairs, double mscale) {
    enum { CHUNK = 64 };                            /* pairs whose cos and sin are at hand for all heads */
    double c[CHUNK], s[CHUNK];
    size_t step = pairs == SWA_ROPE_HALF ? 1 : 2, apart, row, total;
    int32_t t;
    int from, count, i, h;
    if (n < 0 || n_heads <= 0 || head_dim <= 0 || rotary <= 0 || rotary % 2 != 0 || rotary > head_dim ||
        (pairs != SWA_ROPE_HALF && pairs != SWA_ROPE_INTERLEAVED) || !x || !pos || !freq) return SWA_ERR_ARG;
    if (!swa__mul((size_t)n_heads, (size_t)head_dim, &row) || !swa__mul((size_t)n, row, &total) ||
        !swa__mul(total, sizeof *x, &total)) return SWA_ERR_OVERFLOW;
    apart = pairs == SWA_ROPE_HALF ? (size_t)(rotary / 2) : 1;
    if (swa__double_bits(mscale) << 1 == 0) mscale = 1.0;
    for (t = 0; t < n; t++, x += row) {
        for (from = 0; from < rotary / 2; from += count) {
            count = rotary / 2 - from < CHUNK ? rotary / 2 - from : CHUNK;
            for (i = 0; i < count; i++) {
                swa__rope_angle(pos[t], freq[from + i], &c[i], &s[i]);
                c[i] *= mscale;
                s[i] *= mscale;
            }
            for (h = 0; h < n_heads; h++)
                swa__rope_pairs(x + (size_t)h * (size_t)head_dim + (size_t)from * step, count, step, apart, c, s);
        }
    }
    return SWA_OK;
}

/* The pair, as a real number, whose wave turns `turns` times within the original context: Peng et al. 2023, 3.2. */
static double swa__yarn_pair(const swa_yarn_desc *desc, int rotary, double turns) {
    return (double)rotary * log((double)desc->original / (turns * 6.283185307179586)) / (2.0 * log(desc->base));
}

SWA_API swa_status swa_yarn(const swa_yarn_desc *desc, int rotary, double *freq, double *mscale) {
    double fast = 32.0, slow = 1.0, low = 0.0, high = 0.0;
    int i, stretch;
    if (!desc || !freq || rotary <= 0 || rotary % 2 != 0 || !swa__positive(desc->base)) return SWA_ERR_ARG;
    if (swa__double_bits(desc->scale) != 0 && !swa__positive(desc->scale)) return SWA_ERR_ARG;
    stretch = desc->scale > 1.0;
    if (stretch) {
        if (swa__double_bits(desc->beta_fast) != 0) fast = desc->beta_fast;
        if (swa__double_bits(desc->beta_slow) != 0) slow = desc->beta_slow;
        if (!swa__positive(fast) || !swa__positive(slow) || fast < slow) return SWA_ERR_ARG;
        if (desc->original <= 0 || desc->base <= 1.0) return SWA_ERR_ARG;
        low = swa__yarn_pair(desc, rotary, fast);
        high = swa__yarn_pair(desc, rotary, slow);
        if (desc->truncate) { low = floor(low); high = ceil(high); }
        if (low < 0.0) low = 0.0;
        if (high > (double)(rotary - 1)) high = (double)(rotary - 1);
        if (high <= low) high = low + 0.001;        /* a step where the published codes divide by 0 or less */
    }
    for (i = 0; i < rotary / 2; i++) {
        double ramp = 0.0, f = pow(desc->base, -2.0 * (double)i / (double)rotary);
        if (stretch) {
            ramp = ((double)i - low) / (high - low);
            ramp = ramp < 0.0 ? 0.0 : ramp > 1.0 ? 1.0 : ramp;
            f = f * (1.0 - ramp) + f / desc->scale * ramp;      /* fast pairs stay, slow pairs are stretched */
        }
        freq[i] = f;
    }
    if (mscale) *mscale = stretch ? 0.1 * log(desc->scale) + 1.0 : 1.0;
    return SWA_OK;
}

/* out = x / sqrt(mean(x*x) + eps) * w (Zhang & Sennrich 2019); out may be x, w NULL is all ones. The squares are
   exact in double and eight sums run in a fixed order: contraction cannot change a bit, and the loop vectorises
   without -ffast-math. A row of zeros gives zeros with eps 0 too. */
SWA_API swa_status swa_rmsnorm(float *out, const float *x, const float *w, int32_t rows, int dim, float eps) {
    size_t total;
    int32_t r;
    int i, j;
    double e = (double)eps;
    if (!out || !x || rows < 0 || dim <= 0) return SWA_ERR_ARG;
    if (swa__double_bits(e) << 1 != 0 && !swa__positive(e)) return SWA_ERR_ARG;
    if (!swa__mul((size_t)rows, (size_t)dim, &total) || !swa__mul(total, sizeof *x, &total))
        return SWA_ERR_OVERFLOW;
    for (r = 0; r < rows; r++, x += dim, out += dim) {
        double sum[8] = { 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0 }, mean, scale;
        for (i = 0; i + 8 <= dim; i += 8)
            for (j = 0; j < 8; j++) sum[j] += (double)x[i + j] * (double)x[i + j];
        for (j = 0; i + j < dim; j++) sum[j] += (double)x[i + j] * (double)x[i + j];
        for (j = 4; j; j /= 2)
            for (i = 0; i < j; i++) sum[i] += sum[i + j];
        mean = sum[0] / (double)dim + e;
        scale = mean > 0.0 ? 1.0 / sqrt(mean) : 0.0;
        for (i = 0; i < dim; i++) out[i] = (float)((double)x[i] * scale * (w ? (double)w[i] : 1.0));
    }
    return SWA_OK;
}

/* ==== [SECTION 7] RING ==========================================================================================
   Where a token lives. One cache is layers x sequences regions in the caller's memory. A region holds, head-major (all
   slots of a KV head lie together: twice the decode speed of slot-major), K in tiles of 16 slots, transposed,
       k [n_kv_heads][slots/16][head_dim][16]    tail [n_kv_heads][slots/16][tail_dim][16]
       v [n_kv_heads][slots][v_dim rounded up to 16]       and for q8 a scale per slot: [n_kv_heads][slots]
   so that prefill, decode and MLA read it in place. Pinned sinks have the first slots, the ring follows. With capacity
   and origin multiples of 16 a tile's lanes are position mod 16, and a block that straddles the wrap is two tile
   ranges; other capacities are gathered by the stage of [SECTION 12].

   State is per sequence: rows [start, end) are logically held; top is the largest end since the sequence was empty, and
   what lies below top - capacity may be overwritten. A rewind that needed no row (W = 1, the start of a chunk) may go
   further back: then rows from there (base) on count from a new top, and high keeps the old one for the rows before.
   Per layer there is one number, stored, start <= stored <= end: rows from there on have not been written yet. What
   changes end downwards lowers it, only a store or a load raises it, so that a layer that a step left out is refused
   later instead of read. */

typedef struct { int64_t start, end, base, top, high, origin; int64_t mark; } swa__seq;
enum { SWA__SEQ_SAVED = 6 };             /* numbers of it that a blob keeps                                          */
typedef struct {
    swa_window window;
    int64_t cap, slots;                  /* ring slots; all slots, sinks included, in whole tiles                    */
    int64_t sink_slots;                  /* sinks rounded up to 16: where the ring begins                            */
    size_t  base, stride;                /* of this layer in its period, of one sequence                             */
    size_t  tail, v, k_scale, tail_scale, v_scale;   /* offsets in a region; K is at 0                               */
    int     bounded;                     /* holds max_context positions, and refuses more                            */
} swa__layer;
typedef struct {
    swa_cache_desc d;                    /* resolved: no zero is left that means a default                           */
    size_t seqs, stored, data, period, scratch, part_bytes, split, split_rows, total;   /* offsets from this struct   */
    int    n_windows, sinks;             /* sinks: some layer pins tokens                                            */
    swa__layer layer[1];                 /* [n_windows]                                                              */
} swa__cache;

static unsigned char *swa__align64(const void *p) {
    return (unsigned char *)((uintptr_t)p + ((0u - (uintptr_t)p) & 63u));
}
static swa__cache *swa__get(const swa_cache *c) {
    return c == NULL || c->mem_ == NULL ? NULL : (swa__cache *)(void *)swa__align64(c->mem_);
}
static swa__seq *swa__seq_of(const swa__cache *c, int seq) {
    return (swa__seq *)(void *)((unsigned char *)(uintptr_t)c + c->seqs) + seq;
}
/* [n_layers]: end of the rows of a sequence that each layer has stored. */
static int64_t *swa__stored_of(const swa__cache *c, int seq) {
    return (int64_t *)(void *)((unsigned char *)(uintptr_t)c + c->stored) + (size_t)seq * (size_t)c->d.n_layers;
}
static void swa__stored_set(const swa__cache *c, int seq, int64_t end) {
    int i;
    for (i = 0; i < c->d.n_layers; i++) swa__stored_of(c, seq)[i] = end;
}
static const swa__layer *swa__layer_of(const swa__cache *c, int layer) { return &c->layer[layer % c->n_windows]; }
static unsigned char *swa__region_of(const swa__cache *c, int layer, int seq) {
    const swa__layer *l = swa__layer_of(c, layer);
    return (unsigned char *)(uintptr_t)c + c->data + (size_t)(layer / c->n_windows) * c->period + l->base
         + (size_t)seq * l->stride;
}
static int swa__v_pad(const swa_shape *s) { return s->v_in_k ? 0 : (s->v_dim + 15) / 16 * 16; }

static int swa__type_ok(swa_type t) { return (int)t >= SWA_F32 && (int)t <= SWA_Q8; }

/* Fills in the defaults; 0 = inconsistent. */
static int swa__shape_resolve(swa_shape *s) {
    if (s->n_heads <= 0 || s->n_kv_heads < 0 || s->head_dim <= 0 || s->v_dim < 0 || s->tail_dim < 0) return 0;
    if (s->n_kv_heads == 0) s->n_kv_heads = s->n_heads;
    if (s->v_dim == 0) s->v_dim = s->head_dim;
    if (s->n_heads % s->n_kv_heads != 0 || (s->v_in_k != 0 && s->v_dim > s->head_dim)) return 0;
    return s->n_heads <= 1 << 20 && s->head_dim <= 1 << 20 && s->v_dim <= 1 << 20 && s->tail_dim <= 1 << 20;
}
/* Slots of one layer, and the bytes of its region. */
static swa_status swa__layer_resolve(swa__layer *l, const swa_cache_desc *d) {
    int64_t reach = swa__reach(&l->window), rollback = d->max_rollback > 0 ? d->max_rollback : 1;
    size_t n = (size_t)d->shape.n_kv_heads, bytes = 0, slots;
    if (!swa__window_ok(&l->window)) return SWA_ERR_ARG;
    if (l->window.prefix != 0 || l->window.prefix_first != 0 || (l->window.kind == SWA__BAND && l->window.right != 0))
        return SWA_ERR_UNSUPPORTED;
    l->bounded =
        reach == INT64_MAX || (d->capacity == 0 && d->max_context > 0 && reach - 1 >= d->max_context - rollback);
    if (l->bounded && d->max_context <= 0) return SWA_ERR_ARG;
    if (l->bounded) l->cap = d->max_context;
    else if (d->capacity == 0 && reach > INT64_MAX - rollback - 16) return SWA_ERR_OVERFLOW;
    else l->cap = d->capacity > 0 ? d->capacity : swa__round16(reach - 1 + rollback);
    if (l->cap > ((int64_t)1 << 31) - 32) return SWA_ERR_OVERFLOW;
    if (l->bounded) l->cap = swa__round16(l->cap);
    else if (l->cap - (reach - 1) < d->max_rollback) return SWA_ERR_ARG;
    l->sink_slots = swa__round16(l->window.n_sink);
    l->slots = l->sink_slots + swa__round16(l->cap);
    slots = (size_t)l->slots * n;
    if (!swa__region(&bytes, slots, (size_t)d->shape.head_dim, swa__type_size((int)d->k_type))) return SWA_ERR_OVERFLOW;
    l->tail = bytes;
    if (!swa__region(&bytes, slots, (size_t)d->shape.tail_dim, swa__type_size((int)d->tail_type)))
        return SWA_ERR_OVERFLOW;
    l->v = bytes;
    if (!swa__region(&bytes, slots, (size_t)swa__v_pad(&d->shape), swa__type_size((int)d->v_type)))
        return SWA_ERR_OVERFLOW;
    l->k_scale = bytes;
    if (!swa__region(&bytes, slots, d->k_type == SWA_Q8 ? 4 : 0, 1)) return SWA_ERR_OVERFLOW;
    l->tail_scale = bytes;
    if (!swa__region(&bytes, slots, d->tail_type == SWA_Q8 && d->shape.tail_dim > 0 ? 4 : 0, 1))
        return SWA_ERR_OVERFLOW;
    l->v_scale = bytes;
    if (!swa__region(&bytes, slots, d->v_type == SWA_Q8 && !d->shape.v_in_k ? 4 : 0, 1)) return SWA_ERR_OVERFLOW;
    l->stride = bytes;
    return SWA_OK;
}
static swa__layer swa__layer_make(const swa_cache_desc *d, int i, swa_status *status) {
    swa__layer l;
    memset(&l, 0, sizeof l);
    if (d->n_windows > 0) l.window = d->windows[i];
    *status = swa__layer_resolve(&l, d);
    return l;
}
static swa_status swa__desc_check(const swa_cache_desc *d) {
    swa_shape s;
    if (d == NULL) return SWA_ERR_ARG;
    s = d->shape;
    if (!swa__shape_resolve(&s) || d->n_layers <= 0 || d->n_seqs < 0 || d->n_windows < 0) return SWA_ERR_ARG;
    if ((d->n_windows > 0) != (d->windows != NULL) || d->max_context < 0 || d->max_rollback < 0) return SWA_ERR_ARG;
    if (d->capacity < 0 || d->max_parts < 0 || d->max_parts > 1 << 16 || d->n_layers > 1 << 20) return SWA_ERR_ARG;
    if (!swa__type_ok(d->k_type) || !swa__type_ok(d->v_type) || !swa__type_ok(d->tail_type)) return SWA_ERR_ARG;
    if (d->isa < 0 || d->isa > SWA_ISA_AVX512) return SWA_ERR_ARG;
    if (d->isa != 0 && !swa_isa_usable(d->isa)) return SWA_ERR_UNSUPPORTED;
    return d->n_seqs > 1 << 24 ? SWA_ERR_OVERFLOW : SWA_OK;
}
static size_t swa__part_bytes(const swa_shape *s, int sinks);   /* [SECTION 12] */
static size_t swa__partial_bytes(const swa_shape *s);

/* The whole layout: this struct, sequences, scratch, data. total is what the caller pays, with 63 bytes of slack. */
static swa_status swa__layout(const swa_cache_desc *desc, swa__cache *c) {
    swa_status status = swa__desc_check(desc);
    size_t at = 0, period = 0, last = 0, blocks = 0;
    int i, n;
    if (status != SWA_OK) return status;
    memset(c, 0, sizeof *c);
    c->d = *desc;
    swa__shape_resolve(&c->d.shape);
    if (c->d.n_seqs == 0) c->d.n_seqs = 1;
    if (c->d.isa == 0) c->d.isa = swa_isa_best();
#if SWA__OPENMP
    if (c->d.max_parts == 0) c->d.max_parts = omp_get_max_threads();
#endif
    if (c->d.max_parts == 0) c->d.max_parts = 1;
    c->n_windows = n = desc->n_windows > 0 ? desc->n_windows : 1;
    if (!swa__region(&at, (size_t)n - 1, sizeof(swa__layer), 1)) return SWA_ERR_OVERFLOW;
    if (!swa__region(&at, sizeof *c, 1, 1)) return SWA_ERR_OVERFLOW;
    c->seqs = at;
    if (!swa__region(&at, (size_t)c->d.n_seqs, sizeof(swa__seq), 1)) return SWA_ERR_OVERFLOW;
    c->stored = at;
    if (!swa__region(&at, (size_t)c->d.n_seqs, (size_t)c->d.n_layers, sizeof(int64_t))) return SWA_ERR_OVERFLOW;
    for (i = 0; i < n; i++) {
        swa__layer l = swa__layer_make(&c->d, i, &status);
        if (status != SWA_OK) return status;
        if (l.window.n_sink > 0) c->sinks = 1;
        if (blocks < (size_t)l.slots / SWA_BLOCK + 2) blocks = (size_t)l.slots / SWA_BLOCK + 2;
        if (i < c->d.n_layers % n && !swa__region(&last, l.stride, (size_t)c->d.n_seqs, 1)) return SWA_ERR_OVERFLOW;
        if (!swa__region(&period, l.stride, (size_t)c->d.n_seqs, 1)) return SWA_ERR_OVERFLOW;
    }
    c->scratch = at;
    c->part_bytes = swa__part_bytes(&c->d.shape, c->sinks);
    if (c->part_bytes == 0 || !swa__region(&at, c->part_bytes, (size_t)c->d.max_parts, 1)) return SWA_ERR_OVERFLOW;
    c->split = at;                       /* partial results of keys split over parts: one run's rows, all its blocks */
    if (c->d.max_parts > 1 && !swa__mul((size_t)c->d.shape.n_heads, blocks, &c->split_rows)) return SWA_ERR_OVERFLOW;
    if (!swa__region(&at, c->split_rows, swa__partial_bytes(&c->d.shape), 1)) return SWA_ERR_OVERFLOW;
    c->data = at;
    c->period = period;
    if (!swa__region(&at, period, (size_t)(c->d.n_layers / n), 1) || !swa__add(at, last, &at)) return SWA_ERR_OVERFLOW;
    return swa__add(at, 63, &c->total) ? SWA_OK : SWA_ERR_OVERFLOW;
}
SWA_API size_t swa_cache_bytes(const swa_cache_desc *desc) {
    swa__cache c;
    return swa__layout(desc, &c) == SWA_OK ? c.total : 0;
}
SWA_API swa_status swa_cache_init(swa_cache *cache, const swa_cache_desc *desc, void *mem, size_t bytes) {
    swa__cache head, *c;
    swa_status status = swa__layout(desc, &head);
    size_t base = 0;
    int i;
    if (status != SWA_OK) return status;
    if (cache == NULL || mem == NULL) return SWA_ERR_ARG;
    if (bytes < head.total) return SWA_ERR_MEMORY;
    cache->mem_ = mem;
    cache->bytes_ = bytes;
    c = swa__get(cache);
    *c = head;
    c->d.windows = NULL;                 /* copied below, and not ours to keep */
    for (i = 0; i < c->n_windows; i++) {
        c->layer[i] = swa__layer_make(&head.d, i, &status);
        c->layer[i].base = base;
        swa__region(&base, c->layer[i].stride, (size_t)c->d.n_seqs, 1);
    }
    memset(swa__seq_of(c, 0), 0, c->scratch - c->seqs);          /* every sequence is empty, nothing is stored */
    return SWA_OK;
}

/* ---- slots ---- */

static int64_t swa__mod(int64_t a, int64_t n) { return a % n < 0 ? a % n + n : a % n; }
/* Slot of a position; sinks have the first ones, the ring begins at a tile. */
static int64_t swa__slot(const swa__layer *l, const swa__seq *s, int64_t pos) {
    return pos < l->window.n_sink ? pos : l->sink_slots + swa__mod(pos - s->origin, l->cap);
}
/* Oldest ring position that the query at q needs and the sequence has: rows from here to q-1 must be resident. */
static int64_t swa__needed(const swa__layer *l, const swa__seq *s, int64_t q) {
    return swa__max64(swa__lowest(&l->window, q), swa__max64(s->start, l->window.n_sink));
}
/* Whether the ring rows from position `from` on have not been overwritten. */
static int swa__resident(const swa__layer *l, const swa__seq *s, int64_t from) {
    return from >= (from >= s->base ? s->top : swa__max64(s->high, s->top)) - l->cap;
}
/* The rollback law: with end = pos everything the query at pos needs must not have been overwritten. */
static int swa__exact(const swa__layer *l, const swa__seq *s, int64_t pos) {
    int64_t need = swa__needed(l, s, pos);
    return need >= pos || swa__resident(l, s, need);
}
static int swa__exact_all(const swa__cache *c, const swa__seq *s, int64_t pos) {
    int i, n = c->n_windows < c->d.n_layers ? c->n_windows : c->d.n_layers;
    for (i = 0; i < n; i++)
        if (!swa__exact(&c->layer[i], s, pos)) return 0;
    return 1;
}
static swa__cache *swa__check_seq(const swa_cache *cache, int seq) {
    swa__cache *c = swa__get(cache);
    return c != NULL && seq >= 0 && seq < c->d.n_seqs ? c : NULL;
}
static swa__cache *swa__check_layer(const swa_cache *cache, int seq, int layer) {
    swa__cache *c = swa__check_seq(cache, seq);
    return c != NULL && layer >= 0 && layer < c->d.n_layers ? c : NULL;
}
static void swa__audit(swa__cache *c, int seq, int64_t keep);

static void swa__empty(const swa__cache *c, int seq, int64_t start, int64_t origin) {
    swa__seq *s = swa__seq_of(c, seq);
    s->start = s->end = s->base = s->top = s->high = start;
    s->origin = origin;
    swa__stored_set(c, seq, start);
}
SWA_API swa_status swa_cache_reset(swa_cache *cache, int seq, int64_t origin) {
    swa__cache *c = swa__check_seq(cache, seq);
    if (c == NULL || origin < 0) return SWA_ERR_ARG;
    swa__empty(c, seq, 0, origin);
    swa__audit(c, seq, INT64_MAX);
    return SWA_OK;
}
/* What begin, truncate and fork share: rows from pos on are forgotten, exactly or not at all. */
static swa_status swa__rewind_check(const swa__cache *c, const swa__seq *s, int64_t pos) {
    return pos <= s->start || pos >= s->end || swa__exact_all(c, s, pos) ? SWA_OK : SWA_ERR_LOST;
}
static void swa__rewind(const swa__cache *c, int seq, int64_t pos) {
    swa__seq *s = swa__seq_of(c, seq);
    int64_t *stored = swa__stored_of(c, seq);
    int i, below = pos < s->base;
    if (pos <= s->start) swa__empty(c, seq, pos, s->origin);
    if (pos >= s->end) return;
    for (i = 0; i < c->n_windows && i < c->d.n_layers; i++) below |= pos < s->top - c->layer[i].cap;
    if (below) {
        s->high = swa__max64(s->high, s->top);
        s->base = s->top = pos;
    }
    s->end = pos;
    for (i = 0; i < c->d.n_layers; i++) stored[i] = swa__min64(stored[i], pos);
}
SWA_API swa_status swa_cache_truncate(swa_cache *cache, int seq, int64_t end) {
    swa__cache *c = swa__check_seq(cache, seq);
    swa__seq *s;
    swa_status status;
    if (c == NULL || end < 0) return SWA_ERR_ARG;
    s = swa__seq_of(c, seq);
    if (end > s->end) return SWA_ERR_ORDER;
    status = swa__rewind_check(c, s, end);
    if (status != SWA_OK) return status;
    swa__rewind(c, seq, end);
    swa__audit(c, seq, INT64_MAX);
    return SWA_OK;
}
SWA_API int64_t swa_cache_end(const swa_cache *cache, int seq) {
    swa__cache *c = swa__check_seq(cache, seq);
    return c != NULL ? swa__seq_of(c, seq)->end : -1;
}
static int64_t swa__first(const swa__layer *l, const swa__seq *s) {
    int64_t floor = swa__max64(s->start, l->window.n_sink);
    int64_t first = swa__max64(floor, swa__max64(s->high, s->top) - l->cap);
    if (first > s->base) first = swa__max64(floor, swa__max64(s->base, s->top - l->cap));
    return swa__min64(first, s->end);
}
SWA_API int64_t swa_cache_first(const swa_cache *cache, int seq, int layer) {
    swa__cache *c = swa__check_layer(cache, seq, layer);
    return c != NULL ? swa__first(swa__layer_of(c, layer), swa__seq_of(c, seq)) : -1;
}
/* The smallest exact position >= pos of one layer: what a query needs begins no later for an earlier query, so bisect;
   at the start of a chunk (Llama 4) nothing is needed at all. */
static int64_t swa__next_exact(const swa__layer *l, const swa__seq *s, int64_t pos) {
    int64_t lo = pos, hi = s->end, chunk = l->window.kind == SWA__CHUNKED ? l->window.left : 0;
    if (pos >= s->end || swa__exact(l, s, pos)) return swa__min64(pos, s->end);
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (swa__resident(l, s, swa__needed(l, s, mid))) hi = mid;
        else lo = mid + 1;
    }
    return chunk > 0 && hi - pos > chunk - 1 - (pos - 1) % chunk ? pos + chunk - 1 - (pos - 1) % chunk : hi;
}
SWA_API int64_t swa_cache_min_end(const swa_cache *cache, int seq) {
    swa__cache *c = swa__check_seq(cache, seq);
    const swa__seq *s;
    int64_t pos, next;
    int i;
    if (c == NULL) return -1;
    s = swa__seq_of(c, seq);
    for (next = swa__min64(s->start + 1, s->end), pos = -1; pos != next;)
        for (pos = next, i = 0; i < c->n_windows && i < c->d.n_layers; i++)
            next = swa__next_exact(&c->layer[i], s, next);
    return pos;
}
SWA_API int64_t swa_cache_replay_from(const swa_cache *cache, int seq, int64_t pos) {
    swa__cache *c = swa__check_seq(cache, seq);
    const swa__seq *s;
    int i;
    if (c == NULL || pos < 0 || pos == INT64_MAX) return -1;
    s = swa__seq_of(c, seq);
    for (i = c->d.n_layers - 1; i >= 0 && pos > s->start; i--) {
        const swa__layer *l = swa__layer_of(c, i);
        pos = l->window.n_sink > 0 ? s->start : swa__lowest(&l->window, pos);
    }
    return swa__max64(pos, s->start);
}
SWA_API int64_t swa_cache_slot(const swa_cache *cache, int seq, int layer, int64_t pos) {
    swa__cache *c = swa__check_layer(cache, seq, layer);
    const swa__layer *l;
    const swa__seq *s;
    if (c == NULL) return -1;
    l = swa__layer_of(c, layer);
    s = swa__seq_of(c, seq);
    if (pos < s->start || pos >= s->end || (pos >= l->window.n_sink && pos < swa__first(l, s))) return -1;
    return pos < l->window.n_sink ? pos : l->window.n_sink + swa__mod(pos - s->origin, l->cap);
}
SWA_API int64_t swa_required_capacity(const swa_window *window, int64_t max_chunk_put_first, int64_t max_rollback) {
    int64_t more = swa__max64(1, swa__max64(max_chunk_put_first, max_rollback)), reach;
    if (!swa__window_ok(window) || max_chunk_put_first < 0 || max_rollback < 0) return 0;
    reach = swa__reach(window);
    return reach - 1 > INT64_MAX - 1 - more || window->right != 0 ? 0 : reach - 1 + more;
}

/* ---- views: a run of consecutive positions in one layer is at most three segments ---- */

static swa_kv swa__segment(const swa__cache *c, int layer, int seq, int64_t pos, int64_t n) {
    const swa__layer *l = swa__layer_of(c, layer);
    const unsigned char *r = swa__region_of(c, layer, seq);
    const swa_shape *s = &c->d.shape;
    swa_kv kv;
    memset(&kv, 0, sizeof kv);
    kv.k = r;
    kv.tail = s->tail_dim > 0 ? r + l->tail : NULL;
    kv.v = s->v_in_k ? NULL : r + l->v;
    kv.k_type = c->d.k_type;
    kv.v_type = c->d.v_type;
    kv.tail_type = c->d.tail_type;
    kv.k_head = l->slots * s->head_dim;
    kv.tail_head = l->slots * s->tail_dim;
    kv.v_token = swa__v_pad(s);
    kv.v_head = l->slots * kv.v_token;
    kv.pos = pos;
    kv.n = (int32_t)n;
    kv.slots_ = (int32_t)l->slots;
    kv.layout_ = 1 + (int32_t)swa__slot(l, swa__seq_of(c, seq), pos);
    if (c->d.k_type == SWA_Q8) kv.k_scale_ = (const float *)(const void *)(r + l->k_scale);
    if (c->d.tail_type == SWA_Q8 && s->tail_dim > 0) kv.tail_scale_ = (const float *)(const void *)(r + l->tail_scale);
    if (c->d.v_type == SWA_Q8 && !s->v_in_k) kv.v_scale_ = (const float *)(const void *)(r + l->v_scale);
    return kv;
}
/* Positions [from, to) of the ring and the sinks before them, as segments ascending in position. */
static int swa__segments(const swa__cache *c, int layer, int seq, int64_t from, int64_t to, swa_kv *out) {
    const swa__layer *l = swa__layer_of(c, layer);
    const swa__seq *s = swa__seq_of(c, seq);
    int64_t sink_end = swa__min64(l->window.n_sink, to), n;
    int count = 0;
    if (s->start < sink_end) out[count++] = swa__segment(c, layer, seq, s->start, sink_end - s->start);
    from = swa__max64(from, swa__max64(s->start, l->window.n_sink));
    while (from < to) {
        n = swa__min64(to - from, l->cap - swa__mod(from - s->origin, l->cap));
        out[count++] = swa__segment(c, layer, seq, from, n);
        from += n;
    }
    return count;
}
SWA_API int swa_cache_spans(const swa_cache *cache, int seq, int layer, swa_kv out[3]) {
    swa__cache *c = swa__check_layer(cache, seq, layer);
    const swa__seq *s;
    if (c == NULL || out == NULL) return -1;
    s = swa__seq_of(c, seq);
    return swa__segments(c, layer, seq, swa__first(swa__layer_of(c, layer), s), swa__stored_of(c, seq)[layer], out);
}

/* ---- one row in, one row out ---- */

/* Element offset of row `slot` of head h in a tiled array with `dim` numbers per slot; element d is 16*d further. */
static size_t swa__tiled(const swa_kv *kv, int64_t head_stride, int dim, int h, int64_t slot) {
    (void)kv;
    return (size_t)h * (size_t)head_stride + (size_t)(slot / 16) * 16 * (size_t)dim + (size_t)(slot % 16);
}
/* Row i of a segment, head h, widened: K is [head_dim | tail_dim]. k or v may be NULL. Of the ring's own segments. */
static void swa__row_read(const swa_shape *s, const swa_kv *kv, int h, int64_t i, float *k, float *v) {
    int64_t slot = kv->layout_ - 1 + i;
    size_t at = swa__tiled(kv, kv->k_head, s->head_dim, h, slot), lane = (size_t)h * (size_t)kv->slots_ + (size_t)slot;
    float scale = kv->k_scale_ != NULL ? kv->k_scale_[lane] : 1.0f;
    int d;
    if (k != NULL) {
        for (d = 0; d < s->head_dim; d++) k[d] = swa__load1((int)kv->k_type, kv->k, at + 16 * (size_t)d) * scale;
        at = swa__tiled(kv, kv->tail_head, s->tail_dim, h, slot);
        scale = kv->tail_scale_ != NULL ? kv->tail_scale_[lane] : 1.0f;
        for (d = 0; d < s->tail_dim; d++)
            k[s->head_dim + d] = swa__load1((int)kv->tail_type, kv->tail, at + 16 * (size_t)d) * scale;
    }
    if (v != NULL && s->v_in_k) {
        at = swa__tiled(kv, kv->k_head, s->head_dim, h, slot);
        scale = kv->k_scale_ != NULL ? kv->k_scale_[lane] : 1.0f;
        for (d = 0; d < s->v_dim; d++) v[d] = swa__load1((int)kv->k_type, kv->k, at + 16 * (size_t)d) * scale;
    } else if (v != NULL) {
        at = (size_t)h * (size_t)kv->v_head + (size_t)slot * (size_t)kv->v_token;
        scale = kv->v_scale_ != NULL ? kv->v_scale_[lane] : 1.0f;
        for (d = 0; d < s->v_dim; d++) v[d] = swa__load1((int)kv->v_type, kv->v, at + (size_t)d) * scale;
    }
}
SWA_API swa_status swa_cache_read(const swa_cache *cache, int seq, int layer, int64_t pos, int32_t n, float *k,
                                  float *v) {
    swa__cache *c = swa__check_layer(cache, seq, layer);
    const swa_shape *s;
    swa_kv seg[3];
    int i, h, count, dk;
    int64_t p;
    if (c == NULL || n < 0 || pos < 0 || pos > INT64_MAX - n) return SWA_ERR_ARG;
    for (p = pos; p < pos + n; p++) {
        if (p >= swa__stored_of(c, seq)[layer]) return SWA_ERR_ORDER;
        if (swa_cache_slot(cache, seq, layer, p) < 0) return SWA_ERR_LOST;
    }
    s = &c->d.shape;
    dk = s->head_dim + s->tail_dim;
    count = swa_cache_spans(cache, seq, layer, seg);
    for (i = 0; i < count; i++)
        for (p = swa__max64(pos, seg[i].pos); p < swa__min64(pos + n, seg[i].pos + seg[i].n); p++)
            for (h = 0; h < s->n_kv_heads; h++) {
                size_t row = (size_t)(p - pos) * (size_t)s->n_kv_heads + (size_t)h;
                swa__row_read(s, &seg[i], h, p - seg[i].pos, k != NULL ? k + row * (size_t)dk : NULL,
                              v != NULL ? v + row * (size_t)s->v_dim : NULL);
            }
    return SWA_OK;
}

/* ---- copies of a sequence: fork, save, load ---- */

/* Slots [a, b) of one layer, all heads, from sequence src to dst, in whole tiles. */
static void swa__copy_slots(swa__cache *c, int layer, int dst, int src, size_t a, size_t b) {
    const swa__layer *l = swa__layer_of(c, layer);
    const swa_shape *s = &c->d.shape;
    unsigned char *to = swa__region_of(c, layer, dst), *from = swa__region_of(c, layer, src);
    size_t h, i, row[6], at[6];
    row[0] = (size_t)s->head_dim * swa__type_size((int)c->d.k_type);
    row[1] = (size_t)s->tail_dim * swa__type_size((int)c->d.tail_type);
    row[2] = (size_t)swa__v_pad(s) * swa__type_size((int)c->d.v_type);
    row[3] = c->d.k_type == SWA_Q8 ? 4 : 0;
    row[4] = c->d.tail_type == SWA_Q8 && s->tail_dim > 0 ? 4 : 0;
    row[5] = c->d.v_type == SWA_Q8 && !s->v_in_k ? 4 : 0;
    at[0] = 0; at[1] = l->tail; at[2] = l->v; at[3] = l->k_scale; at[4] = l->tail_scale; at[5] = l->v_scale;
    a = a / 16 * 16;
    b = (b + 15) / 16 * 16;
    for (h = 0; h < (size_t)s->n_kv_heads; h++)
        for (i = 0; i < 6; i++) {
            size_t off = at[i] + (h * (size_t)l->slots + a) * row[i];
            memcpy(to + off, from + off, (b - a) * row[i]);
        }
}
SWA_API swa_status swa_cache_fork(swa_cache *cache, int dst, int src, int64_t end) {
    swa__cache *c = swa__check_seq(cache, src);
    swa__seq *s, *t;
    swa_status status;
    swa_kv seg[3];
    int layer, i, count;
    if (c == NULL || swa__check_seq(cache, dst) == NULL || end < -1) return SWA_ERR_ARG;
    s = swa__seq_of(c, src);
    t = swa__seq_of(c, dst);
    if (end == -1) end = s->end;
    if (dst == src) return swa_cache_truncate(cache, src, end);
    if (end > s->end) return SWA_ERR_ORDER;
    status = swa__rewind_check(c, s, end);
    if (status != SWA_OK) return status;
    *t = *s;
    memcpy(swa__stored_of(c, dst), swa__stored_of(c, src), (size_t)c->d.n_layers * sizeof(int64_t));
    swa__rewind(c, dst, end);
    for (layer = 0; layer < c->d.n_layers; layer++) {
        count = swa__segments(c, layer, dst, swa__first(swa__layer_of(c, layer), t), t->end, seg);
        for (i = 0; i < count; i++)
            swa__copy_slots(c, layer, dst, src, (size_t)seg[i].layout_ - 1,
                            (size_t)seg[i].layout_ - 1 + (size_t)seg[i].n);
    }
    swa__audit(c, dst, INT64_MAX);
    return SWA_OK;
}

/* A blob: this head, then a record per sequence (state, then per layer the live rows, oldest first, sinks before
   them: K, tail, V and scales of all heads), then the checksum. Written in the machine's own byte order. */
typedef struct {
    char     magic[4];
    uint32_t version, order;             /* order reads 0x01020304 in the writer's byte order                        */
    uint32_t n_seqs;                     /* records that follow                                                      */
    uint64_t bytes, geometry;            /* of the whole blob; checksum of shape, types, layers, windows, capacities */
} swa__blob;
enum { SWA__BLOB_VERSION = 1 };

static uint64_t swa__hash(uint64_t h, const void *p, size_t n) {   /* FNV-1a over 8-byte words */
    const unsigned char *b = (const unsigned char *)p;
    uint64_t word;
    for (; n >= 8; n -= 8, b += 8) {
        memcpy(&word, b, 8);
        h = (h ^ word) * 0x100000001b3u;
        h ^= h >> 29;
    }
    for (; n > 0; n--) h = (h ^ *b++) * 0x100000001b3u;
    return h;
}
static uint64_t swa__geometry(const swa__cache *c) {
    const swa_shape *s = &c->d.shape;
    int64_t v[16], w[5];
    uint64_t h = 0xcbf29ce484222325u;
    int i, n = c->n_windows, bounded = 0;
    for (i = 0; i < n; i++) bounded |= c->layer[i].bounded;
    memset(v, 0, sizeof v);
    v[0] = s->n_kv_heads; v[1] = s->head_dim; v[2] = s->v_dim; v[3] = s->tail_dim; v[4] = s->v_in_k != 0;
    v[5] = c->d.n_layers; v[6] = (int64_t)c->d.k_type; v[7] = (int64_t)c->d.v_type; v[8] = (int64_t)c->d.tail_type;
    v[9] = n; v[10] = bounded ? c->d.max_context : 0;
    h = swa__hash(h, v, sizeof v);
    for (i = 0; i < n; i++) {
        const swa__layer *l = &c->layer[i];
        w[0] = l->window.kind; w[1] = l->window.n_sink; w[2] = l->window.left; w[3] = l->window.right; w[4] = l->cap;
        h = swa__hash(h, w, sizeof w);
    }
    return h;
}
/* Bytes of one row, all heads, as a blob holds it. */
static size_t swa__row_bytes(const swa__cache *c) {
    const swa_shape *s = &c->d.shape;
    size_t n = (size_t)s->head_dim * swa__type_size((int)c->d.k_type) + (c->d.k_type == SWA_Q8 ? 4 : 0);
    n += (size_t)s->tail_dim * swa__type_size((int)c->d.tail_type)
         + (c->d.tail_type == SWA_Q8 && s->tail_dim > 0 ? 4 : 0);
    if (!s->v_in_k) n += (size_t)s->v_dim * swa__type_size((int)c->d.v_type) + (c->d.v_type == SWA_Q8 ? 4 : 0);
    return n * (size_t)s->n_kv_heads;
}
static size_t swa__live_rows(const swa__cache *c, const swa__seq *s) {
    size_t n = 0;
    int i;
    for (i = 0; i < c->d.n_layers; i++) {
        const swa__layer *l = swa__layer_of(c, i);
        int64_t sink_end = swa__min64(l->window.n_sink, s->end);
        n += (size_t)(s->end - swa__first(l, s)) + (size_t)(sink_end > s->start ? sink_end - s->start : 0);
    }
    return n;
}
static size_t swa__record_bytes(const swa__cache *c, const swa__seq *s) {
    return SWA__SEQ_SAVED * sizeof(int64_t) + swa__live_rows(c, s) * swa__row_bytes(c);
}
SWA_API size_t swa_cache_save_bytes(const swa_cache *cache, int seq) {
    swa__cache *c = swa__check_seq(cache, seq == -1 ? 0 : seq);
    size_t n = sizeof(swa__blob) + 8;
    int i;
    if (c == NULL) return 0;
    for (i = 0; i < c->d.n_seqs; i++)
        if (seq == -1 || seq == i) n += swa__record_bytes(c, swa__seq_of(c, i));
    return n;
}
/* Copies one strided array element by element between a slot and a blob; returns the blob's next byte. */
static unsigned char *swa__move(unsigned char *blob, void *slot, size_t step, size_t size, int dim, int save) {
    unsigned char *at = (unsigned char *)slot;
    int d;
    for (d = 0; d < dim; d++, at += step, blob += size)
        if (save) memcpy(blob, at, size);
        else memcpy(at, blob, size);
    return blob;
}
static unsigned char *swa__move_row(const swa__cache *c, const swa_kv *kv, int64_t i, unsigned char *b, int save) {
    const swa_shape *s = &c->d.shape;
    size_t ks = swa__type_size((int)kv->k_type), ts = swa__type_size((int)kv->tail_type),
           vs = swa__type_size((int)kv->v_type);
    int64_t slot = kv->layout_ - 1 + i;
    int h;
    for (h = 0; h < s->n_kv_heads; h++) {
        size_t lane = (size_t)h * (size_t)kv->slots_ + (size_t)slot;
        unsigned char *k = (unsigned char *)(uintptr_t)kv->k + swa__tiled(kv, kv->k_head, s->head_dim, h, slot) * ks;
        b = swa__move(b, k, 16 * ks, ks, s->head_dim, save);
        if (kv->k_scale_ != NULL) b = swa__move(b, (void *)(uintptr_t)(kv->k_scale_ + lane), 4, 4, 1, save);
        if (s->tail_dim > 0) {
            k = (unsigned char *)(uintptr_t)kv->tail + swa__tiled(kv, kv->tail_head, s->tail_dim, h, slot) * ts;
            b = swa__move(b, k, 16 * ts, ts, s->tail_dim, save);
            if (kv->tail_scale_ != NULL) b = swa__move(b, (void *)(uintptr_t)(kv->tail_scale_ + lane), 4, 4, 1, save);
        }
        if (s->v_in_k) continue;
        k = (unsigned char *)(uintptr_t)kv->v + ((size_t)h * (size_t)kv->v_head + (size_t)(slot * kv->v_token)) * vs;
        b = swa__move(b, k, vs, vs, s->v_dim, save);
        if (kv->v_scale_ != NULL) b = swa__move(b, (void *)(uintptr_t)(kv->v_scale_ + lane), 4, 4, 1, save);
    }
    return b;
}
static unsigned char *swa__move_rows(const swa__cache *c, int seq, unsigned char *b, int save) {
    const swa__seq *s = swa__seq_of(c, seq);
    swa_kv seg[3];
    int layer, i, count;
    int64_t r;
    for (layer = 0; layer < c->d.n_layers; layer++) {
        count = swa__segments(c, layer, seq, swa__first(swa__layer_of(c, layer), s), s->end, seg);
        for (i = 0; i < count; i++)
            for (r = 0; r < seg[i].n; r++) b = swa__move_row(c, &seg[i], r, b, save);
    }
    return b;
}
static int swa__all_stored(const swa__cache *c, int seq) {
    int i;
    for (i = 0; i < c->d.n_layers; i++)
        if (swa__stored_of(c, seq)[i] < swa__seq_of(c, seq)->end) return 0;
    return 1;
}
SWA_API swa_status swa_cache_save(const swa_cache *cache, int seq, void *blob, size_t bytes) {
    swa__cache *c = swa__check_seq(cache, seq == -1 ? 0 : seq);
    size_t need = swa_cache_save_bytes(cache, seq);
    unsigned char *b = (unsigned char *)blob;
    swa__blob head;
    uint64_t sum;
    int i;
    if (c == NULL || blob == NULL) return SWA_ERR_ARG;
    if (bytes < need) return SWA_ERR_MEMORY;
    for (i = 0; i < c->d.n_seqs; i++)
        if ((seq == -1 || seq == i) && !swa__all_stored(c, i)) return SWA_ERR_ORDER;
    memcpy(head.magic, "swaR", 4);
    head.version = SWA__BLOB_VERSION;
    head.order = 0x01020304u;
    head.n_seqs = seq == -1 ? (uint32_t)c->d.n_seqs : 1;
    head.bytes = need;
    head.geometry = swa__geometry(c);
    memcpy(b, &head, sizeof head);
    b += sizeof head;
    for (i = 0; i < c->d.n_seqs; i++) {
        const swa__seq *s = swa__seq_of(c, i);
        if (seq != -1 && seq != i) continue;
        memcpy(b, s, SWA__SEQ_SAVED * sizeof(int64_t));
        b = swa__move_rows(c, i, b + SWA__SEQ_SAVED * sizeof(int64_t), 1);
    }
    sum = swa__hash(0, blob, need - 8);
    memcpy(b, &sum, 8);
    return SWA_OK;
}
/* A state that some history of calls could have produced. */
static int swa__state_ok(const swa__cache *c, const swa__seq *s) {
    int i, n = c->n_windows < c->d.n_layers ? c->n_windows : c->d.n_layers;
    if (s->start < 0 || s->base < s->start || s->end < s->base || s->top < s->end || s->high < s->start) return 0;
    if (s->top == INT64_MAX || s->high == INT64_MAX || s->origin < 0) return 0;
    if (s->start == s->end) return s->top == s->end && s->high == s->end;
    for (i = 0; i < n; i++)
        if (c->layer[i].bounded && swa__max64(s->high, s->top) - s->start > c->d.max_context) return 0;
    return swa__exact_all(c, s, s->end);
}
SWA_API swa_status swa_cache_load(swa_cache *cache, int seq, const void *blob, size_t bytes) {
    swa__cache *c = swa__check_seq(cache, seq == -1 ? 0 : seq);
    unsigned char *b = (unsigned char *)(uintptr_t)blob;
    swa__blob head;
    swa__seq s;
    uint64_t sum;
    size_t at = sizeof head;
    uint32_t i, n;
    if (c == NULL || blob == NULL) return SWA_ERR_ARG;
    n = seq == -1 ? (uint32_t)c->d.n_seqs : 1;
    if (bytes < sizeof head + 8) return SWA_ERR_BLOB;
    memcpy(&head, b, sizeof head);
    memcpy(&sum, b + bytes - 8, 8);
    if (memcmp(head.magic, "swaR", 4) != 0 || head.version != SWA__BLOB_VERSION || head.order != 0x01020304u
        || head.n_seqs != n || head.bytes != bytes || head.geometry != swa__geometry(c)
        || sum != swa__hash(0, blob, bytes - 8)) return SWA_ERR_BLOB;
    memset(&s, 0, sizeof s);
    for (i = 0; i < n; i++) {            /* every record is checked before the first is taken */
        if (bytes - 8 - at < SWA__SEQ_SAVED * sizeof(int64_t)) return SWA_ERR_BLOB;
        memcpy(&s, b + at, SWA__SEQ_SAVED * sizeof(int64_t));
        if (!swa__state_ok(c, &s) || bytes - 8 - at < swa__record_bytes(c, &s)) return SWA_ERR_BLOB;
        at += swa__record_bytes(c, &s);
    }
    if (at != bytes - 8) return SWA_ERR_BLOB;
    b += sizeof head;
    for (i = 0; i < n; i++) {
        int to = seq == -1 ? (int)i : seq;
        memcpy(swa__seq_of(c, to), b, SWA__SEQ_SAVED * sizeof(int64_t));
        b = swa__move_rows(c, to, b + SWA__SEQ_SAVED * sizeof(int64_t), 0);
        swa__stored_set(c, to, swa__seq_of(c, to)->end);
        swa__audit(c, to, INT64_MAX);
    }
    return SWA_OK;
}

/* ---- audit ---- */

static void swa__poison_slot(const swa__cache *c, const swa_kv *kv, int64_t i) {
    const swa_shape *s = &c->d.shape;
    unsigned char ff[8];
    int64_t slot = kv->layout_ - 1 + i;
    size_t k, size[3];
    int h, d;
    memset(ff, 0xff, sizeof ff);         /* a NaN in every float type; for q8 the scale carries it */
    size[0] = swa__type_size((int)kv->k_type);
    size[1] = swa__type_size((int)kv->tail_type);
    size[2] = swa__type_size((int)kv->v_type);
    for (h = 0; h < s->n_kv_heads; h++) {
        size_t lane = (size_t)h * (size_t)kv->slots_ + (size_t)slot;
        k = swa__tiled(kv, kv->k_head, s->head_dim, h, slot);
        for (d = 0; d < s->head_dim; d++)
            memcpy((unsigned char *)(uintptr_t)kv->k + (k + 16 * (size_t)d) * size[0], ff, size[0]);
        k = swa__tiled(kv, kv->tail_head, s->tail_dim, h, slot);
        for (d = 0; d < s->tail_dim; d++)
            memcpy((unsigned char *)(uintptr_t)kv->tail + (k + 16 * (size_t)d) * size[1], ff, size[1]);
        k = (size_t)h * (size_t)kv->v_head + (size_t)(slot * kv->v_token);
        for (d = 0; !s->v_in_k && d < s->v_dim; d++)
            memcpy((unsigned char *)(uintptr_t)kv->v + (k + (size_t)d) * size[2], ff, size[2]);
        if (kv->k_scale_ != NULL) memcpy((float *)(uintptr_t)kv->k_scale_ + lane, ff, 4);
        if (kv->tail_scale_ != NULL) memcpy((float *)(uintptr_t)kv->tail_scale_ + lane, ff, 4);
        if (kv->v_scale_ != NULL) memcpy((float *)(uintptr_t)kv->v_scale_ + lane, ff, 4);
    }
}
/* With desc.audit: every slot that holds no live row is filled with NaN, so that reading one shows at once. Rows from
   position `keep` on are still needed by the step that has just begun. */
static void swa__audit(swa__cache *c, int seq, int64_t keep) {
    const swa__seq *s = swa__seq_of(c, seq);
    int layer;
    int64_t i;
    SWA_ASSERT(s->start >= 0 && s->start <= s->base && s->base <= s->end && s->end <= s->top);
    if (!c->d.audit) return;
    for (layer = 0; layer < c->d.n_layers; layer++) {
        const swa__layer *l = swa__layer_of(c, layer);
        int64_t to = swa__min64(s->end, keep), need = swa__needed(l, s, to);
        int64_t from = swa__min64(swa__first(l, s), keep == INT64_MAX ? INT64_MAX : need);
        swa_kv all = swa__segment(c, layer, seq, 0, l->slots);
        all.layout_ = 1;
        for (i = 0; i < l->slots; i++) {
            int live = i < l->sink_slots ? i < l->window.n_sink && i >= s->start && i < to
                                         : swa__mod(i - l->sink_slots - (from - s->origin), l->cap) < to - from;
            if (!live && (i < l->sink_slots || i - l->sink_slots < l->cap)) swa__poison_slot(c, &all, i);
        }
    }
}

/* ==== [SECTION 8] STEP ==========================================================================================
   Which tokens come now. begin is the only place where a step changes state; what follows per layer moves data. */

static swa_status swa__run_check(const swa__cache *c, const swa_run *r) {
    const swa__seq *s;
    int64_t start;
    int i;
    if (r->seq < 0 || r->seq >= c->d.n_seqs || r->n < 0 || r->pos < 0) return SWA_ERR_ARG;
    if (swa__seq_of(c, r->seq)->mark != 0) return SWA_ERR_ARG;       /* twice in one step */
    if (r->n == 0) return SWA_OK;
    if (r->pos > INT64_MAX - 1 - r->n) return SWA_ERR_OVERFLOW;
    if (r->prefix != 0 && (r->prefix <= r->pos || r->prefix > r->pos + r->n)) return SWA_ERR_ARG;
    s = swa__seq_of(c, r->seq);
    if (s->start != s->end && r->pos > s->end) return SWA_ERR_ORDER;
    start = s->start == s->end || r->pos < s->start ? r->pos : s->start;
    for (i = 0; i < c->n_windows && i < c->d.n_layers; i++)
        if (c->layer[i].bounded && r->pos + r->n - start > c->d.max_context) return SWA_ERR_FULL;
    return s->start == s->end ? SWA_OK : swa__rewind_check(c, s, r->pos);
}
static void swa__run_commit(swa__cache *c, const swa_run *r) {
    swa__seq *s = swa__seq_of(c, r->seq);
    if (s->start == s->end) swa__empty(c, r->seq, r->pos, s->origin);
    swa__rewind(c, r->seq, r->pos);
    s->end = r->pos + r->n;
    s->top = swa__max64(s->top, s->end);
    swa__audit(c, r->seq, r->pos);
}
SWA_API swa_status swa_step_begin(swa_cache *cache, swa_step *step) {
    swa__cache *c = swa__get(cache);
    swa_status status = SWA_OK;
    int64_t rows = 0;
    int i, done;
    if (c == NULL || step == NULL || step->n_runs < 0 || (step->n_runs > 0 && step->runs == NULL)) return SWA_ERR_ARG;
    step->failed = -1;
    for (i = 0; i < step->n_runs && status == SWA_OK; i++) {
        status = swa__run_check(c, &step->runs[i]);
        if (status == SWA_OK && (rows += step->runs[i].n) > INT32_MAX) status = SWA_ERR_OVERFLOW;
        if (status != SWA_OK) step->failed = i;
        else swa__seq_of(c, step->runs[i].seq)->mark = 1;
    }
    done = status == SWA_OK ? step->n_runs : step->failed;
    for (i = 0; i < done; i++) swa__seq_of(c, step->runs[i].seq)->mark = 0;
    if (status != SWA_OK) return status;
    for (i = 0, rows = 0; i < step->n_runs; rows += step->runs[i++].n) {
        step->runs[i].row = (int32_t)rows;
        if (step->runs[i].n > 0) swa__run_commit(c, &step->runs[i]);
    }
    step->n_tokens = (int32_t)rows;
    return SWA_OK;
}

SWA_API swa_status swa_prefill_begin(swa_plan *plan, const int *seqs, const int64_t *start, const int32_t *lens,
                                     int n_seqs, int32_t chunk) {
    int i;
    if (plan == NULL || lens == NULL || n_seqs <= 0 || chunk <= 0) return SWA_ERR_ARG;
    for (i = 0; i < n_seqs; i++) {
        if (lens[i] < 0 || (seqs != NULL && seqs[i] < 0) || (start != NULL && start[i] < 0)) return SWA_ERR_ARG;
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
SWA_API int swa_prefill_next(swa_plan *plan, swa_run *runs, int *n_runs) {
    int i, n = 0;
    if (n_runs != NULL) *n_runs = 0;
    if (plan == NULL || runs == NULL || n_runs == NULL || plan->lens == NULL || plan->chunk <= 0) return 0;
    for (i = 0; i < plan->n_seqs; i++) {
        int32_t left = plan->lens[i] - plan->done;
        if (left <= 0) continue;
        memset(&runs[n], 0, sizeof runs[n]);
        runs[n].seq = plan->seqs != NULL ? plan->seqs[i] : i;
        runs[n].n = left < plan->chunk ? left : plan->chunk;
        runs[n].pos = (plan->start != NULL ? plan->start[i] : 0) + plan->done;
        n++;
    }
    plan->done = plan->done > INT32_MAX - plan->chunk ? INT32_MAX : plan->done + plan->chunk;
    *n_runs = n;
    return n > 0;
}

/* ==== [SECTION 9] KERNEL INTERFACE ==============================================================================
   The kernels of [SECTION 10] are written once in the operations below and included once per instruction set. To add
   one: fill in this list. SWV is a vector of SWV_N floats; PICK(x, lo, hi, a, b) is a where lo <= x < hi, else b;
   SCALE(p, n) is p * 2^n for integral n; TRANSPOSE works on an array of SWV_N vectors; KEYS and LANES are the register
   block of the many-rows shape, FEW(rows) its width in the few-rows shape. */

enum { SWA__PRODUCT = 2048,              /* inputs of a matrix product that are summed alone, and of one chain; see   */
       SWA__PIECE = 512,                 /* [SECTION 10]: constants of the bits promise                              */
       SWA__PRODUCT_TILE = 64,           /* tokens that share a pass over the weights                                */
       SWA__AHEAD = 8192,                /* bytes fetched ahead of a stream of weights: one stream, several          */
       SWA__NEAR = 1536, SWA__LONG = 16384,  /* bytes: longer rows go in several streams                            */
       SWA__SPLIT_BYTES = 1 << 26,       /* most that a stateless call keeps of keys split over parts                */
       SWA__FEW = 16,                    /* fewer rows than this take the few-rows shape                             */
       SWA__LANES = 32 };                /* rows of the widest panel                                                 */
#define SWA__NONE   (-FLT_MAX)           /* score of a hidden key, maximum of an empty row                           */
#define SWA__LOG2E  1.44269504088896341
#define SWA__LN2    0.69314718055994531

typedef struct {                         /* 16 keys, positions 16i..16i+15, in canonical form                        */
    const void  *k, *tail, *v;           /* k [dk][16], tail [dt][16], v [16][dvp]                                   */
    const float *k_scale, *tail_scale, *v_scale;   /* [16] or NULL                                                   */
    const char  *next, *next_tail;       /* K and tail of the tile that will be read a block later, for prefetch;
                                            NULL if unknown                                                          */
    int64_t      next_gap;               /* bytes between its rows, if they are the caller's; else 0                 */
    int64_t      v_token;                /* stride of V's rows; dvp, but for the caller's own rows                   */
    int k_type, tail_type, v_type;
} swa__tile;
typedef struct {
    int64_t      pos;                    /* of key 0, a multiple of SWA_BLOCK                                        */
    const float *present;                /* [256] 1 or 0: keys that exist, or NULL = all of the interval             */
    int          l1, t0, t1;             /* prefetch into L1; tiles [t0, t1) say what                                */
    swa__tile    tile[SWA_BLOCK / 16];
} swa__block;
typedef struct {                         /* what all rows of a call share                                            */
    int   dk, dt, dv, dvp, v_in_k;       /* numbers per K row, tail, V row; V's stride                               */
    int   mods;                          /* any of the following                                                     */
    float cap2;                          /* softcap * log2 e, 0 = off                                                */
    int   alibi, bias;
    int64_t bias_first, bias_n;
    int   v_across, v_along;             /* many rows: V's strides from dim to dim and from key to key               */
    int   form;                          /* of the products, below                                                   */
    int   dots;                          /* few rows, q and K in q8: integer dot products                            */
} swa__geo;

/* Products of bf16 pairs (compute SWA_BF16) run as the instruction does it, fma(x0, y0, fma(x1, y1, acc)): on pairs
   where the CPU has it, else in f32 on rounded numbers whose neighbours have changed places. The same bits, because
   numbers so small that a product or a sum could be subnormal (the instruction drops those) count as zero. */
enum { SWA__PLAIN, SWA__HALF, SWA__PAIRS, SWA__FORMS };
#define SWA__TINY_QK 1.3877788e-17f
#define SWA__TINY_V  2.0679515e-25f
#define SWA__TINY_PV 1.9259299e-34f            /* p times V's q8 scale; p itself counts from 2^-30 on */
typedef struct {                         /* what a row may see of a block, keys counted from the block's start       */
    int   lo[2], hi[2];                  /* keys that any row sees: [0] as sinks, [1] through the window             */
    int   full_lo, full_hi;              /* keys that every row sees through the window                              */
    int   first_block;                   /* of this panel: nothing to fold into yet                                  */
    int   fetch;                         /* many rows: fetch the next block's K on the way                           */
    float first[SWA__LANES], last[SWA__LANES], sink[SWA__LANES];   /* window [first, last), sinks [0, sink)          */
    float q[SWA__LANES], slope[SWA__LANES];                        /* ALiBi: position, -slope * log2 e               */
    const float *bias[SWA__LANES];
    const float *q_scale[2];             /* q in q8: its scale per row, [0] of the sinks' own q; NULL = none         */
} swa__lanes;

/* One block, one panel, folded into o [dvp][nr], m, l [nr]. q [dk+dt][nr]. s: [256][nr]. */
typedef void swa__many(const swa__geo *g, const swa__block *b, const swa__lanes *n, const float *q,
                       const float *q_sink, float *s, float *o, float *m, float *l);
typedef struct {
    const char *name;
    int nr;                              /* rows of a panel                                                          */
    /* One block, few rows -> o [rows][dvp], m, l [rows], of this block alone. q in groups of R = swa__few_step(rows
       left) rows, transposed: [dk+dt][R]. s: 8192 floats. */
    void (*few)(const swa__geo *g, const swa__block *b, const swa__lanes *n, int rows, const float *q,
                const float *q_sink, float *s, float *o, float *m, float *l);
    swa__many *many[SWA__FORMS][2];      /* by form; [1]: for panels of nr/2 rows. NULL = there is none              */
    void (*fold)(int rows, int dvp, float *o, float *m, float *l, const float *ob, const float *mb, const float *lb);
    void (*fold_panel)(int lanes, int dv, float *o, float *m, float *l, const float *mb, const float *lb);
    /* o [rows][dvp] -> out[i][dv] = o/l; l and inv have SWA__LANES floats. */
    void (*finish)(int rows, int dvp, int dv, const float *o, const float *l, float *inv, float *tmp,
                   float *const *out);
    /* The same from a panel: o [dvp][nr]. */
    void (*unpack)(int lanes, int rows, int dv, const float *o, const float *l, float *inv, float *const *out);
    /* dst[d*lanes + i] = src[i][d] * mul, transposed; lanes a multiple of 16, at most SWA__LANES. */
    void (*pack)(const void *const *src, int type, int lanes, int dim, float mul, float *dst);
    void (*widen)(int type, const void *src, float *dst, size_t n);     /* n a multiple of 16                        */
    void (*narrow)(int type, const float *src, void *dst, size_t n);    /* exact values; n a multiple of 16          */
    /* dst[0..n) = src as the type will hold it (q8: integers, and the scale), zeros up to a multiple of 16. */
    void (*round)(int type, const void *src, int src_type, int n, float *dst, float *scale);
    /* src [rows][ld] in the given form, chains running over the rows: rounded to bf16, below tiny 0, rows whose bit of
       keep (by row mod 16) is not set 0. dst may be src. */
    void (*pair)(int form, int rows, unsigned keep, int ld, float tiny, const float *src, float *dst);
    void (*product)(const swa_gemm *p, float *pack);    /* pack: [SWA__PRODUCT_TILE][SWA__PRODUCT]                   */
    void (*expand)(int dims, int n, const float *w, const float *const *latent, float *const *dst);
    void (*turn)(int dims, const float *src, float *dst, size_t stride);    /* dims a multiple of 16                 */
} swa__kernels;

/* The keys that p.v walks: both intervals, none twice, in units of 1 or 16. */
static void swa__ranges(const swa__lanes *n, int unit, int range[4]) {
    range[0] = n->lo[0] / unit * unit;
    range[1] = n->lo[0] < n->hi[0] ? (n->hi[0] + unit - 1) / unit * unit : range[0];
    range[2] = n->lo[1] / unit * unit;
    if (range[2] < range[1]) range[2] = range[1];
    range[3] = (n->hi[1] + unit - 1) / unit * unit;
}
/* Stretches of keys in which V follows a stride, for the many-rows shape. per: keys in a row of p [][nr]. */
typedef struct { const float *v, *p; size_t n; } swa__v_run;
static int swa__v_runs(const swa__geo *g, const swa__block *b, const int range[4], int per, int nr, const float *p,
                       swa__v_run *run) {
    int r, k, end, n = 0;
    for (r = 0; r < 4; r += 2)
        for (k = range[r]; k < range[r + 1]; k = end) {
            const float *v = (const float *)b->tile[k / 16].v + (size_t)(k % 16 / per) * (size_t)g->v_along;
            end = k / 16 * 16 + 16 < range[r + 1] ? k / 16 * 16 + 16 : range[r + 1];
            if (n > 0 && run[n - 1].p + run[n - 1].n * (size_t)nr == p + k / per * nr
                && run[n - 1].v + run[n - 1].n * (size_t)g->v_along == v) {
                run[n - 1].n += (size_t)((end - k) / per);
                continue;
            }
            run[n].v = v;
            run[n].p = p + k / per * nr;
            run[n++].n = (size_t)((end - k) / per);
        }
    return n;
}
/* The few-rows shape takes 4, 2 or 1 rows at once. Eight at once, so that K and V are read and converted once for a
   group of 8, were worth 5 % in f32 with AVX-512, nothing in f16, and cost 5 % in q8 and 12 % in f16 with AVX2, where
   registers are short: not worth 21 KB. */
static int swa__few_step(int rows) { return rows >= 4 ? 4 : rows >= 2 ? 2 : 1; }
/* q in q8 stands behind q: for each group of R rows their sums [R], then [(dk+3)/4][R] times four int8. */
static int32_t *swa__few_integers(const swa__geo *g, const float *q, int row) {
    const int32_t *to = (const int32_t *)(const void *)(q + SWA__FEW * (g->dk + g->dt));
    return (int32_t *)(uintptr_t)(to + row * ((g->dk + 3) / 4 + 1));
}

static const float swa__iota[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

#ifdef __clang__                         /* which would load a whole unrolled loop's numbers first, and spill them   */
#  define SWA__IN_ORDER(x) __asm__ volatile("" : SWV_CONSTRAINT(x) : : "memory")
#else
#  define SWA__IN_ORDER(x) ((void)0)
#endif

#endif /* SWA_IMPLEMENTATION */
#endif /* SWA__KERNEL_PASS */

#ifdef SWA__KERNEL_PASS
/* ==== [SECTION 10] KERNEL TEMPLATE ==============================================================================
   Included once per instruction set by [SECTION 11], which lists the operations. Reads as plain C; SWV is a vector.

   The canonical order, which every kernel here keeps to the letter, so that all give the same bits:
     score   one FMA chain over the numbers of a K row from zero (K, times its q8 scale, then the tail), then softcap,
             ALiBi, bias; hidden keys become SWA__NONE
     block   m = maximum; p = exp2(s - m), hidden keys 0; l = 16 partial sums by key mod 16, then one tree; p times V's
             q8 scale; o = one FMA chain over the keys from zero
     fold    blocks from left to right: M = max(m, mi), a = exp2(m - M), c = exp2(mi - M), l = fma(li, c, l*a),
             o = fma(oi, c, o*a); an empty row (m = SWA__NONE, l = o = 0) is the identity
     finish  o * (1/l) + 0; the + 0 removes the sign of a zero */

#ifdef SWV_PLAIN                        /* scalar: plain loops and calls, the same sums: a tenth of the code */
#  define SWV_INLINE static
#  define SWV_UNROLL
#else
#  define SWV_INLINE SWA__INLINE
#  define SWV_UNROLL SWA__UNROLL
#endif
#define MR SWV_KEYS
#define NV SWV_LANES
#define NR (SWV_LANES * SWV_N)
#ifndef SWV_FROM                         /* p where x >= lo, else 0                                                  */
#  define SWV_FROM(x, lo, p) SWV_PICK((x), (lo), SWV_SET1(FLT_MAX), (p), SWV_SET1(0.0f))
#endif

SWV_INLINE size_t SWA__FN(size)(int type) { return type == SWA_F32 ? 4 : type == SWA_Q8 ? 1 : 2; }
SWV_INLINE SWV_TARGET SWV SWA__FN(load)(int type, const void *p) {
    if (type == SWA_F32) return SWV_LOAD((const float *)p);
    if (type == SWA_F16) return SWV_LOAD_F16((const uint16_t *)p);
    if (type == SWA_BF16) return SWV_LOAD_BF16((const uint16_t *)p);
    return SWV_LOAD_Q8((const int8_t *)p);
}
SWV_INLINE SWV_TARGET void SWA__FN(store)(int type, void *p, SWV v) {
    if (type == SWA_F32) SWV_STORE((float *)p, v);
    else if (type == SWA_F16) SWV_STORE_F16((uint16_t *)p, v);
    else if (type == SWA_BF16) SWV_STORE_BF16((uint16_t *)p, v);
    else SWV_STORE_Q8((int8_t *)p, v);
}
/* body once per element type, so that the type is a constant inside */
#define SWV_BY_TYPE(type, body) do { \
    if ((type) == SWA_F32) { const int T = SWA_F32; body } \
    else if ((type) == SWA_F16) { const int T = SWA_F16; body } \
    else if ((type) == SWA_BF16) { const int T = SWA_BF16; body } \
    else { const int T = SWA_Q8; body } } while (0)
/* x = 2^x for n vectors, -126 <= x <= 0, 0.93 ulp: Taylor-like polynomial of degree 6 on [-1/2, 1/2]. Side by side,
   because one chain after the other fills the CPU's queue before it has kept the units busy. */
SWV_INLINE SWV_TARGET void SWA__FN(exp2_near)(int n, SWV *x) {
    SWV whole[16], p[16];
    int i;
    SWV_UNROLL for (i = 0; i < n; i++) whole[i] = SWV_RINT(x[i]);
    SWV_UNROLL for (i = 0; i < n; i++) x[i] = SWV_SUB(x[i], whole[i]);
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(SWV_SET1(1.534581217e-4f), x[i], SWV_SET1(1.339993121e-3f));
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(p[i], x[i], SWV_SET1(9.618488956e-3f));
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(p[i], x[i], SWV_SET1(5.550328777e-2f));
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(p[i], x[i], SWV_SET1(2.402264689e-1f));
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(p[i], x[i], SWV_SET1(6.931472057e-1f));
    SWV_UNROLL for (i = 0; i < n; i++) p[i] = SWV_FMA(p[i], x[i], SWV_SET1(1.0f));
    SWV_UNROLL for (i = 0; i < n; i++) x[i] = SWV_SCALE(p[i], whole[i]);
}
/* Below -126 it stays 2^-126. */
SWV_INLINE SWV_TARGET SWV SWA__FN(exp2)(SWV x) {
    x = SWV_MAX(x, SWV_SET1(-126.0f));
    SWA__FN(exp2_near)(1, &x);
    return x;
}
/* p times V's scale, and rounded again. */
SWV_INLINE SWV_TARGET SWV SWA__FN(half_scaled)(SWV p, SWV scale) {
    p = SWV_MUL(p, scale);
    return SWV_PICK(p, SWV_SET1(SWA__TINY_PV), SWV_SET1(FLT_MAX), SWV_HALF(p), SWV_SET1(0.0f));
}
/* An odd polynomial below 5/8 (6e-9 relative before rounding), (1-t)/(1+t) with t = exp(-2|x|) above. */
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
    t = SWV_PICK(x, SWV_SET1(0.0f), SWV_SET1(FLT_MAX), t, SWV_SUB(SWV_SET1(0.0f), t));
    return SWV_PICK(ax, SWV_SET1(0.0f), SWV_SET1(0.625f), p, t);
}
/* What lies between dot product and mask; distance = |q - k|, bias 0 where there is none. */
SWV_INLINE SWV_TARGET SWV SWA__FN(modify)(const swa__geo *g, SWV s, SWV slope, SWV distance, SWV bias) {
    if (g->cap2 > 0) s = SWV_MUL(SWA__FN(tanh)(s), SWV_SET1(g->cap2));
    if (g->alibi) s = SWV_FMA(slope, SWV_MAX(distance, SWV_SUB(SWV_SET1(0.0f), distance)), s);
    if (g->bias) s = SWV_FMA(bias, SWV_SET1((float)SWA__LOG2E), s);
    return s;
}
SWV_INLINE float SWA__FN(bias)(const swa__geo *g, const float *row, int64_t pos) {
    return pos >= g->bias_first && pos < g->bias_first + g->bias_n ? row[pos - g->bias_first] : 0.0f;
}

/* ---- few rows: lanes are keys for q.k, dims for p.v ---- */

/* q.k of R rows with the NW vectors of keys from vector v on: one pass over K, every number read once for all rows.
   Meanwhile V of the same tiles is fetched into L2. */
SWV_INLINE SWV_TARGET void SWA__FN(few_qk)(int R, int NW, int type, const swa__geo *g, const swa__block *b,
                                            const float *q, float *s, int v) {
    const size_t es = SWA__FN(size)(type), end = (size_t)g->dk * 16 * es;
    const int lines = (NW * SWV_N + 15) / 16 * (int)es;               /* of V, for every four dims */
    const swa__tile *t[8];
    const swa__tile *first = &b->tile[v * SWV_N / 16];
    const int per = g->dvp * (int)swa__type_size(first->v_type) / 64;     /* lines of a V row, if rows lie apart */
    const int64_t gap = (first->v_token - g->dvp) * (int64_t)swa__type_size(first->v_type);
    const char *k[8], *pf = (const char *)first->v;     /* in the ring, V of the next tiles follows */
    int left = gap != 0 && per > 0 ? per : INT32_MAX;
    SWV acc[4][8], x;
    size_t at;
    int i, j, u;
    SWV_UNROLL for (j = 0; j < NW; j++) {
        t[j] = &b->tile[(v + j) * SWV_N / 16];
        k[j] = (const char *)t[j]->k + (size_t)((v + j) * SWV_N % 16) * es;
        SWV_UNROLL for (i = 0; i < R; i++) acc[i][j] = SWV_SET1(0.0f);
    }
    for (at = 0; at + 64 * es <= end; at += 64 * es) {
        SWV_UNROLL for (u = 0; u < 4; u++, q += R) {    /* fetches spread over the dims */
            const int step = (u + 1) * lines / 4 - u * lines / 4;
            SWV_UNROLL for (j = 0; j < step; j++) SWA__FETCH(pf + j * 64, b->l1);
            pf += step * 64;
            left -= step;
            if (left <= 0) {             /* a row may end within a step: then some lines behind it were fetched */
                pf += gap;
                left += per;
            }
            SWV_UNROLL for (j = 0; j < NW; j++) {
                x = SWA__FN(load)(type, k[j] + at + (size_t)u * 16 * es);
                SWV_UNROLL for (i = 0; i < R; i++) acc[i][j] = SWV_FMA(SWV_SET1(q[i]), x, acc[i][j]);
            }
            SWV_UNROLL for (j = 0; j < NW; j++) SWV_UNROLL for (i = 0; i < R; i++) SWA__IN_ORDER(acc[i][j]);
        }
    }
    for (; at < end; at += 16 * es, q += R)
        SWV_UNROLL for (j = 0; j < NW; j++) {
            x = SWA__FN(load)(type, k[j] + at);
            SWV_UNROLL for (i = 0; i < R; i++) acc[i][j] = SWV_FMA(SWV_SET1(q[i]), x, acc[i][j]);
        }
    SWV_UNROLL for (j = 0; j < NW; j++) {
        if (type == SWA_Q8 || t[j]->k_scale != NULL) {
            x = t[j]->k_scale != NULL ? SWV_LOAD(t[j]->k_scale + (v + j) * SWV_N % 16) : SWV_SET1(1.0f);
            SWV_UNROLL for (i = 0; i < R; i++) acc[i][j] = SWV_MUL(acc[i][j], x);
        }
        SWV_UNROLL for (i = 0; i < R; i++) SWV_STORE(s + i * SWA_BLOCK + (v + j) * SWV_N, acc[i][j]);
    }
}
/* The tail's part of the chain; rare in this shape (MLA takes the other), so plain. */
static SWV_TARGET void SWA__FN(few_tail)(const swa__geo *g, const swa__block *b, int rows, const float *q, float *s,
                                         int v) {
    const swa__tile *t = &b->tile[v * SWV_N / 16];
    const char *k = (const char *)t->tail + (size_t)(v * SWV_N % 16) * swa__type_size(t->tail_type);
    size_t step = 16 * swa__type_size(t->tail_type);
    int i, d;
    for (i = 0; i < rows; i++) {
        const float *qi = q + g->dk * rows + i;
        SWV old = SWV_LOAD(s + i * SWA_BLOCK + v * SWV_N), acc = t->tail_scale != NULL ? SWV_SET1(0.0f) : old;
        for (d = 0; d < g->dt; d++)
            acc = SWV_FMA(SWV_SET1(qi[d * rows]), SWA__FN(load)(t->tail_type, k + (size_t)d * step), acc);
        if (t->tail_scale != NULL) acc = SWV_FMA(acc, SWV_LOAD(t->tail_scale + v * SWV_N % 16), old);
        SWV_STORE(s + i * SWA_BLOCK + v * SWV_N, acc);
    }
}
/* p.v of R rows over the keys [k0, k1), for NW vectors of dims from d0 on, added to acc. Fetches the next block's K, in
   one stream through all of a block's passes over V. */
SWV_INLINE SWV_TARGET void SWA__FN(few_pv)(int R, int NW, int type, const swa__geo *g, const swa__block *b,
                                            const float *p, int k0, int k1, int d0, SWV (*acc)[8]) {
    const size_t es = SWA__FN(size)(type), line = (size_t)NW * SWV_N * es;
    const int l1 = b->l1;
    SWV x[8];
    int i, j, k;
    while (k0 < k1) {
        const swa__tile *t = &b->tile[k0 / 16];
        const char *v = (const char *)t->v + (k0 % 16 * t->v_token + d0) * (int64_t)es;
        const int at = d0 * (b->t1 - b->t0) + (k0 / 16 - b->t0) * NW * SWV_N, next = b->t0 + at / g->dk;
        const int end = k0 / 16 * 16 + 16 < k1 ? k0 / 16 * 16 + 16 : k1, per = g->dk / (NW * SWV_N);
        const char *pf = at >= 0 && next < b->t1 ? b->tile[next].next : NULL;
        const size_t step = pf != NULL ? line : 0;               /* nothing to fetch: what is here already */
        int64_t gap = 0;
        int left = INT32_MAX;                                    /* fetches until the row's end, if rows lie apart */
        if (pf != NULL) {
            const size_t from = (size_t)(at % g->dk) * 16 * es + (size_t)(k0 % 16) * line;
            gap = b->tile[next].next_gap;
            if (gap != 0 && per > 0) left = per - (int)(from / line) % per;
            pf += (int64_t)from + (int64_t)(from / ((size_t)g->dk * es)) * gap;
        } else pf = v;
        for (k = k0; k < end; k++, v += t->v_token * (int64_t)es, pf += step) {
            if (left-- == 0) {
                pf += gap;
                left = per - 1;
            }
            SWV_UNROLL for (j = 0; j < (int)((line + 63) / 64); j++) SWA__FETCH(pf + (size_t)j * 64, l1);
            SWV_UNROLL for (j = 0; j < NW; j++) x[j] = SWA__FN(load)(type, v + (size_t)(j * SWV_N) * es);
            SWV_UNROLL for (i = 0; i < R; i++) SWV_UNROLL for (j = 0; j < NW; j++) acc[i][j] =
                SWV_FMA(SWV_SET1(p[i * SWA_BLOCK + k]), x[j], acc[i][j]);
        }
        k0 = end;
    }
}
/* p.v of R rows for NW vectors of dims from d0 on, tile runs of one type after another (a staged tile is f32 whatever
   the ring's type). A single vector is the rest of dims that do not fill NW, and bound by its one chain: there the type
   may be looked up per number, which saves a copy per type. */
SWV_INLINE SWV_TARGET void SWA__FN(few_dims)(int R, int NW, int rest, const swa__geo *g, const swa__block *b,
                                              const int range[4], const float *p, float *o, int d0) {
    SWV acc[4][8];
    int i, j, r, k, end;
    SWV_UNROLL for (i = 0; i < R; i++)
        SWV_UNROLL for (j = 0; j < NW; j++) acc[i][j] = SWV_SET1(0.0f);
    for (r = 0; r < 4; r += 2)
        for (k = range[r]; k < range[r + 1]; k = end) {
            int type = b->tile[k / 16].v_type;
            for (end = k / 16 * 16 + 16; end < range[r + 1] && b->tile[end / 16].v_type == type;) end += 16;
            if (end > range[r + 1]) end = range[r + 1];
            if (rest) SWA__FN(few_pv)(R, NW, type, g, b, p, k, end, d0, acc);
            else SWV_BY_TYPE(type, SWA__FN(few_pv)(R, NW, T, g, b, p, k, end, d0, acc););
        }
    SWV_UNROLL for (i = 0; i < R; i++)
        SWV_UNROLL for (j = 0; j < NW; j++) SWV_STORE(o + i * g->dvp + d0 + j * SWV_N, acc[i][j]);
}
/* q.k over the vectors [v0, v1), whole tiles, for R rows. A single tile is what does not fill the width. */
SWV_INLINE SWV_TARGET void SWA__FN(few_keys)(int R, const swa__geo *g, const swa__block *b, const float *q, float *s,
                                              int v0, int v1) {
    enum { PER = 16 / SWV_N };
    int v, end;
    for (v = v0; v < v1; v = end) {
        int type = b->tile[v / PER].k_type;
        for (end = v + PER; end < v1 && b->tile[end / PER].k_type == type;) end += PER;
        SWV_BY_TYPE(type,
            for (; v + SWV_FEW_KEYS(R, T) <= end; v += SWV_FEW_KEYS(R, T))
                SWA__FN(few_qk)(R, SWV_FEW_KEYS(R, T), T, g, b, q, s, v);
        );
        for (; SWV_FEW_KEYS(R, SWA_Q8) > PER && v < end; v += PER) SWA__FN(few_qk)(R, PER, type, g, b, q, s, v);
    }
}
#define SWV_ROWS(R) \
SWA__NOINLINE SWV_TARGET void SWA__FN(few_keys##R)(const swa__geo *g, const swa__block *b, const float *q, float *s, \
                                                   int v0, int v1) { \
    SWA__FN(few_keys)(R, g, b, q, s, v0, v1); \
} \
SWA__NOINLINE SWV_TARGET void SWA__FN(few_values##R)(const swa__geo *g, const swa__block *b, const int range[4], \
                                                     const float *p, float *o) { \
    int d = 0; \
    for (; d + SWV_FEW(R) * SWV_N <= g->dvp; d += SWV_FEW(R) * SWV_N) \
        SWA__FN(few_dims)(R, SWV_FEW(R), 0, g, b, range, p, o, d); \
    for (; SWV_FEW(R) * SWV_N > 16 && d < g->dvp; d += SWV_N) SWA__FN(few_dims)(R, 1, 1, g, b, range, p, o, d); \
}
SWV_ROWS(1)
SWV_ROWS(2)
SWV_ROWS(4)
#undef SWV_ROWS

/* Row i's scores after modification and mask, written back; returns their maximum per lane. s2 holds the scores with
   the sinks' own q, for the vectors [v[0], v[1]); the window's are [v[2], v[3]). */
static SWV_TARGET SWV SWA__FN(few_mask)(const swa__geo *g, const swa__block *b, const swa__lanes *n, int i, float *s,
                                        const float *s2, const int v[4]) {
    SWV none = SWV_SET1(SWA__NONE), top = none, first = SWV_SET1(n->first[i]), last = SWV_SET1(n->last[i]),
        zero = SWV_SET1(0.0f);
    float bias[16];
    int x, y, from = v[0] < v[1] && v[0] < v[2] ? v[0] : v[2], to = v[1] > v[3] ? v[1] : v[3];
    if (v[0] >= v[1] && !g->mods && b->present == NULL) {
        SWV scale = SWV_SET1(n->q_scale[1] != NULL ? n->q_scale[1][i] : 1.0f);
        for (x = from; x < to; x++) {    /* the plain case: mask the edges, find the maximum */
            SWV a = SWV_LOAD(s + x * SWV_N);
            if (n->q_scale[1] != NULL) {
                a = SWV_MUL(a, scale);
                SWV_STORE(s + x * SWV_N, a);
            }
            if ((float)(x * SWV_N) < n->first[i] || (float)(x * SWV_N + SWV_N) > n->last[i]) {
                int k = x * SWV_N;
                SWV key = SWV_ADD(SWV_LOAD(swa__iota + k % 16), SWV_SET1((float)(k - k % 16)));
                a = SWV_PICK(key, first, last, a, none);
                SWV_STORE(s + k, a);
            }
            top = SWV_MAX(top, a);
        }
        return top;
    }
    for (x = from; x < to; x++) {
        int k = x * SWV_N, in_sinks = x >= v[0] && x < v[1], in_window = x >= v[2] && x < v[3];
        SWV key = SWV_ADD(SWV_LOAD(swa__iota + k % 16), SWV_SET1((float)(k - k % 16))), a = none, e = none;
        SWV distance = zero, slope = zero, extra = zero;
        if (!in_sinks && !in_window) continue;
        if (g->mods) {
            distance = SWV_SUB(SWV_SET1(n->q[i]), key);
            slope = SWV_SET1(n->slope[i]);
            for (y = 0; g->bias && y < SWV_N; y++) bias[y] = SWA__FN(bias)(g, n->bias[i], b->pos + k + y);
            if (g->bias) extra = SWV_LOAD(bias);
        }
        if (in_sinks) {
            e = SWV_LOAD(s2 + k);
            if (n->q_scale[0] != NULL) e = SWV_MUL(e, SWV_SET1(n->q_scale[0][i]));
            if (g->mods) e = SWA__FN(modify)(g, e, slope, distance, extra);
            e = SWV_PICK(key, SWV_SET1((float)n->lo[0]), SWV_SET1(n->sink[i]), e, none);
        }
        if (in_window) {
            a = SWV_LOAD(s + k);
            if (n->q_scale[1] != NULL) a = SWV_MUL(a, SWV_SET1(n->q_scale[1][i]));
            if (g->mods) a = SWA__FN(modify)(g, a, slope, distance, extra);
        }
        if (in_sinks || (float)k < n->first[i] || (float)(k + SWV_N) > n->last[i]) a = SWV_PICK(key, first, last, a, e);
        if (b->present != NULL) a = SWV_PICK(SWV_LOAD(b->present + k), SWV_SET1(0.5f), SWV_SET1(2.0f), a, none);
        SWV_STORE(s + k, a);
        top = SWV_MAX(top, a);
    }
    return top;
}
/* p = exp2(s - m) in place over the vectors of both intervals; part: sums by key mod 16; then times V's scale. */
static SWV_TARGET void SWA__FN(few_exp)(const swa__geo *g, const swa__block *b, float *s, float m, const int v[4],
                                        float part[16]) {
    SWV vm = SWV_SET1(m), sum[16 / SWV_N], none, p;
    const int from = v[0] < v[1] && v[0] < v[2] ? v[0] : v[2], to = v[1] > v[3] ? v[1] : v[3];
    int x, i;
    none = SWV_SET1(g->form != SWA__PLAIN && m - 30.0f > -3.4e38f ? m - 30.0f : -3.4e38f);
    SWV_UNROLL for (i = 0; i < 16 / SWV_N; i++) sum[i] = SWV_SET1(0.0f);
    for (x = from; x < to; x += 16 / SWV_N) {
        const float *scale = b->tile[x * SWV_N / 16].v_scale;
        if ((x < v[0] || x >= v[1]) && (x < v[2] || x >= v[3])) continue;
        SWV_UNROLL for (i = 0; i < 16 / SWV_N; i++) {
            float *at = s + (x + i) * SWV_N;
            SWV y = SWV_LOAD(at);
            p = SWV_FROM(y, none, SWA__FN(exp2)(SWV_SUB(y, vm)));
            if (g->form != SWA__PLAIN) p = SWV_HALF(p);
            sum[i] = SWV_ADD(sum[i], p);
            if (scale != NULL && g->form != SWA__PLAIN) p = SWA__FN(half_scaled)(p, SWV_LOAD(scale + i * SWV_N));
            else if (scale != NULL) p = SWV_MUL(p, SWV_LOAD(scale + i * SWV_N));
            SWV_STORE(at, p);
        }
    }
    for (x = from * SWV_N; g->form != SWA__PLAIN && x < to * SWV_N; x += 2) {
        float first = s[x];
        s[x] = s[x + 1];
        s[x + 1] = first;
    }
    SWV_UNROLL for (i = 0; i < 16 / SWV_N; i++) SWV_STORE(part + i * SWV_N, sum[i]);
}
/* q.k of `rows` rows over the vectors [v, v1); qi: q as integers, for the tiles that are int8. */
static SWV_TARGET void SWA__FN(few_scores)(int rows, const swa__geo *g, const swa__block *b, const float *q,
                                           const int32_t *qi, float *s, int v, int v1) {
    int end;
    (void)qi;
    for (; v < v1; v = end) {
        end = v1;
#ifdef SWV_DOTS
        if (g->dots) {
            int dots = b->tile[v].k_type == SWA_Q8;
            for (end = v + 1; end < v1 && (b->tile[end].k_type == SWA_Q8) == dots;) end++;
            if (dots) {
                SWV_DOTS(rows, g, b, qi + rows, qi, s, v, end);
                continue;
            }
        }
#endif
        if (rows == 4) SWA__FN(few_keys4)(g, b, q, s, v, end);
        else if (rows == 2) SWA__FN(few_keys2)(g, b, q, s, v, end);
        else SWA__FN(few_keys1)(g, b, q, s, v, end);
    }
}
/* One level of a tree over 16 numbers; a constant length, so that it becomes a vector operation, without branches. */
#define SWV_HALVE(n, p, a, c, what) \
    SWV_UNROLL for (j = 0; j < n; j++) { \
        const float a = (p)[j], c = (p)[j + n]; \
        (p)[j] = what; \
    }
static SWV_TARGET void SWA__FN(few)(const swa__geo *g, const swa__block *b, const swa__lanes *n, int rows,
                                    const float *q, const float *q_sink, float *s, float *o, float *m, float *l) {
    float *s2 = s + SWA__FEW * SWA_BLOCK, part[4][16];
    int v[4], range[4], i, j, r, x, step;
    for (i = 0; i < 2; i++) {            /* intervals in whole tiles of keys, as vectors */
        v[2 * i] = n->lo[i] / 16 * 16 / SWV_N;
        v[2 * i + 1] = n->lo[i] < n->hi[i] ? (n->hi[i] + 15) / 16 * 16 / SWV_N : v[2 * i];
    }
    swa__ranges(n, g->form == SWA__PLAIN ? 1 : 16, range);
    for (r = 0; r < rows; r += step) {
        const size_t at = (size_t)r * (size_t)(g->dk + g->dt);
        float *sr = s + r * SWA_BLOCK, *s2r = s2 + r * SWA_BLOCK;
        step = swa__few_step(rows - r);
        for (i = 0; i < 2; i++) {
            float *to = i == 0 ? s2r : sr;
            const float *from = i == 0 ? q_sink : q;
            SWA__FN(few_scores)(step, g, b, from + at, swa__few_integers(g, from, r), to, v[2 * i], v[2 * i + 1]);
            for (x = v[2 * i]; g->dt > 0 && x < v[2 * i + 1]; x++) SWA__FN(few_tail)(g, b, step, from + at, to, x);
        }
        for (i = r; i < r + step; i++)   /* row after row in each loop: the rows' latencies overlap */
            SWV_STORE(part[i - r], SWA__FN(few_mask)(g, b, n, i, s + i * SWA_BLOCK, s2 + i * SWA_BLOCK, v));
        for (i = r; i < r + step; i++) {
            for (x = SWV_N; x < 16; x++) part[i - r][x] = SWA__NONE;
            SWV_HALVE(8, part[i - r], a, c, c > a ? c : a)
            SWV_HALVE(4, part[i - r], a, c, c > a ? c : a)
            SWV_HALVE(2, part[i - r], a, c, c > a ? c : a)
            SWV_HALVE(1, part[i - r], a, c, c > a ? c : a)
            m[i] = part[i - r][0] + 0.0f;          /* of +0 and -0 either may have come out: make it +0 */
        }
        for (i = r; i < r + step; i++) SWA__FN(few_exp)(g, b, s + i * SWA_BLOCK, m[i], v, part[i - r]);
        for (i = r; i < r + step; i++) {
            SWV_HALVE(8, part[i - r], a, c, a + c)
            SWV_HALVE(4, part[i - r], a, c, a + c)
            SWV_HALVE(2, part[i - r], a, c, a + c)
            SWV_HALVE(1, part[i - r], a, c, a + c)
            l[i] = part[i - r][0];
        }
        if (step == 4) SWA__FN(few_values4)(g, b, range, sr, o + r * g->dvp);
        else if (step == 2) SWA__FN(few_values2)(g, b, range, sr, o + r * g->dvp);
        else SWA__FN(few_values1)(g, b, range, sr, o + r * g->dvp);
    }
    SWV_LEAVE();
}

#undef SWV_HALVE

/* ---- many rows: lanes are (token, head) rows ---- */

/* The micro-kernel's operands: a[i*rs + p*cs] and b[p][j], p < n. */
typedef struct {
    size_t n, rs, cs;
    const float *a, *b;
    const char *fetch;                   /* a line per step, `line` bytes from one to the next; NULL = none          */
    size_t line;
} SWA__FN(operands);

/* One product, or the two of a pair. */
SWV_INLINE SWV_TARGET SWV SWA__FN(mul_add)(int pairs, SWV a, SWV b, SWV acc) {
#ifdef SWV_FMA2
    if (pairs) return SWV_FMA2(a, b, acc);
#endif
    (void)pairs;
    return SWV_FMA(a, b, acc);
}
/* acc[i*nv+j] += sum over p of a[i*rs + p*cs] * b[p][j]: q.k (rs 1, cs 16), p.v from V rows (rs 1, cs dvp) or from the
   K tile itself (rs 16, cs 1). In pairs every number is two. */
SWV_INLINE SWV_TARGET void SWA__FN(mk)(int pairs, int rows, int nv, SWA__FN(operands) x, SWV *acc) {
    SWV b[NV], a;
    size_t p;
    int i, j;
    for (p = 0; p < x.n; p++, x.a += x.cs, x.b += nv * SWV_N) {
        if (x.fetch != NULL) {
            SWA__PREFETCH(x.fetch);
            x.fetch += x.line;
        }
        SWV_UNROLL for (j = 0; j < nv; j++) b[j] = SWV_LOAD(x.b + j * SWV_N);
        SWV_UNROLL for (i = 0; i < rows; i++) {
            a = SWV_SET1(x.a[(size_t)i * x.rs]);
            SWV_UNROLL for (j = 0; j < nv; j++)
                acc[i * nv + j] = SWA__FN(mul_add)(pairs, a, b[j], acc[i * nv + j]);
        }
    }
}
/* Modification and mask of mr keys from k on; only blocks with an edge or a modification come here. */
SWV_INLINE SWV_TARGET void SWA__FN(many_rare)(int mr, int nv, const swa__geo *g, const swa__block *b,
                                               const swa__lanes *n, int k, int sinks, int old, const float *s,
                                               SWV *acc) {
    SWV none = SWV_SET1(SWA__NONE), distance = SWV_SET1(0.0f), extra = SWV_SET1(0.0f);
    float bias[NR];
    int i, j, x;
    for (i = 0; i < mr; i++)
        for (j = 0; j < nv; j++) {
            SWV key = SWV_SET1((float)(k + i)), a = acc[i * nv + j];
            if (g->mods) {
                distance = SWV_SUB(SWV_LOAD(n->q + j * SWV_N), key);
                for (x = 0; g->bias && x < SWV_N; x++)
                    bias[j * SWV_N + x] = SWA__FN(bias)(g, n->bias[j * SWV_N + x], b->pos + k + i);
                if (g->bias) extra = SWV_LOAD(bias + j * SWV_N);
                a = SWA__FN(modify)(g, a, SWV_LOAD(n->slope + j * SWV_N), distance, extra);
            }
            if (sinks) a = SWV_PICK(key, SWV_SET1((float)n->lo[0]), SWV_LOAD(n->sink + j * SWV_N), a, none);
            else a = SWV_PICK(key, SWV_LOAD(n->first + j * SWV_N), SWV_LOAD(n->last + j * SWV_N), a,
                              k < old ? SWV_LOAD(s + (k + i) * nv * SWV_N + j * SWV_N) : none);
            if (b->present != NULL && b->present[k + i] < 0.5f) a = none;
            acc[i * nv + j] = a;
        }
}
#define SWV_RARE(name, mr, nv) \
SWA__NOINLINE SWV_TARGET void SWA__FN(name)(const swa__geo *g, const swa__block *b, const swa__lanes *n, int k, \
                                            int sinks, int old, const float *s, SWV *acc) { \
    SWA__FN(many_rare)(mr, nv, g, b, n, k, sinks, old, s, acc); \
}
SWV_RARE(rare, MR, NV)
#ifdef SWV_NARROW
SWV_RARE(rare_narrow, MR * NV, 1)
#endif
#undef SWV_RARE
/* What the group of keys from k on fetches of the tile at next, n lines: the first group all of it, or (pairs, where a
   step covers two dims) each its share. Where nothing is to be fetched, the first line of `own` again and again, which
   is in L1: that costs less than a second loop without the instruction. */
SWV_INLINE void SWA__FN(many_next)(int pairs, int mr, int fetch, const char *next, int k, SWA__FN(operands) *x) {
    x->fetch = (const char *)x->a;
    x->line = 0;
    if (!fetch || next == NULL || (k % 16 != 0 && !pairs)) return;
    x->fetch = next + (size_t)(k % 16 / mr) * x->n * 64;
    x->line = 64;
}
/* The rest of mr scores: the tail's part of the chain, and the scales. qt: q's tail. A tail in q8 is a chain of its
   own, and its scale the last step of it. */
SWV_INLINE SWV_TARGET void SWA__FN(many_tail)(int pairs, int mr, int nv, const swa__geo *g, const swa__tile *t, int k,
                                               const float *qt, int fetch, SWV *acc) {
    SWA__FN(operands) x;
    SWV before[MR * NV];
    int i, j;
    if (t->k_scale != NULL)
        SWV_UNROLL for (i = 0; i < mr; i++)
            SWV_UNROLL for (j = 0; j < nv; j++)
                acc[i * nv + j] = SWV_MUL(acc[i * nv + j], SWV_SET1(t->k_scale[k % 16 + i]));
    if (g->dt == 0) return;
    x.n = pairs ? (size_t)(g->dt + 1) / 2 : (size_t)g->dt;
    x.rs = 1;
    x.cs = 16;
    x.a = (const float *)t->tail + k % 16;
    x.b = qt;
    SWA__FN(many_next)(pairs, mr, fetch, t->next_tail, k, &x);
    SWV_UNROLL for (i = 0; i < mr * nv; i++) {
        before[i] = acc[i];
        if (t->tail_scale != NULL) acc[i] = SWV_SET1(0.0f);
    }
    SWA__FN(mk)(pairs, mr, nv, x, acc);
    if (t->tail_scale != NULL)
        SWV_UNROLL for (i = 0; i < mr; i++)
            SWV_UNROLL for (j = 0; j < nv; j++)
                acc[i * nv + j] = SWV_FMA(acc[i * nv + j], SWV_SET1(t->tail_scale[k % 16 + i]), before[i * nv + j]);
}
/* Scores of the keys [lo, hi), in groups of mr, into s; top is raised. old: keys below it hold sinks' scores. */
SWV_INLINE SWV_TARGET void SWA__FN(many_qk)(int pairs, int mr, int nv, const swa__geo *g, const swa__block *b,
                                             const swa__lanes *n, const float *q, int which, int old, float *s,
                                             SWV *top) {
    const int nr = nv * SWV_N;
    SWA__FN(operands) x;
    SWV acc[MR * NV], max[NV];
    int k, i, j, lo = n->lo[which] / mr * mr;
    SWV_UNROLL for (j = 0; j < nv; j++) max[j] = top[j];
    x.n = pairs ? (size_t)(g->dk + 1) / 2 : (size_t)g->dk;
    x.rs = 1;
    x.cs = 16;
    x.b = q;
    for (k = lo; k < n->hi[which]; k += mr) {
        const swa__tile *t = &b->tile[k / 16];
        SWV_UNROLL for (i = 0; i < mr * nv; i++) acc[i] = SWV_SET1(0.0f);
        x.a = (const float *)t->k + k % 16;
        SWA__FN(many_next)(pairs, mr, n->fetch, t->next, k, &x);
        SWA__FN(mk)(pairs, mr, nv, x, acc);
        SWA__FN(many_tail)(pairs, mr, nv, g, t, k, q + x.n * (size_t)nr, n->fetch, acc);
        if (n->q_scale[which] != NULL)
            SWV_UNROLL for (i = 0; i < mr; i++)
                SWV_UNROLL for (j = 0; j < nv; j++)
                    acc[i * nv + j] = SWV_MUL(acc[i * nv + j], SWV_LOAD(n->q_scale[which] + j * SWV_N));
        if (which == 0 || k < old || g->mods || b->present != NULL) {
            SWV rare[MR * NV];           /* a copy: acc must not have an address, or it leaves the registers */
            SWV_UNROLL for (i = 0; i < mr * nv; i++) rare[i] = acc[i];
#ifdef SWV_NARROW
            if (nv < NV) SWA__FN(rare_narrow)(g, b, n, k, which == 0, old, s, rare);
            else
#endif
            SWA__FN(rare)(g, b, n, k, which == 0, old, s, rare);
            SWV_UNROLL for (i = 0; i < mr * nv; i++) acc[i] = rare[i];
        } else if (k < n->full_lo || k + mr > n->full_hi)
            SWV_UNROLL for (i = 0; i < mr; i++)
                SWV_UNROLL for (j = 0; j < nv; j++)
                    acc[i * nv + j] = SWV_PICK(SWV_SET1((float)(k + i)), SWV_LOAD(n->first + j * SWV_N),
                                               SWV_LOAD(n->last + j * SWV_N), acc[i * nv + j], SWV_SET1(SWA__NONE));
        SWV_UNROLL for (i = 0; i < mr; i++)
            SWV_UNROLL for (j = 0; j < nv; j++) {
                max[j] = SWV_MAX(max[j], acc[i * nv + j]);
                SWV_STORE(s + (k + i) * nr + j * SWV_N, acc[i * nv + j]);
            }
    }
    SWV_UNROLL for (j = 0; j < nv; j++) top[j] = max[j];
}
/* p of `keys` keys that lie 16 apart. */
SWV_INLINE SWV_TARGET void SWA__FN(exp_keys)(int keys, int nv, int edge, float *s, const SWV *top, SWV *sum) {
    const int next = 16 * nv * SWV_N;
    SWV p[2 * NV];
    int i, j;
    SWV_UNROLL for (i = 0; i < keys; i++)
        SWV_UNROLL for (j = 0; j < nv; j++)
            p[i * nv + j] = SWV_MAX(SWV_SUB(SWV_LOAD(s + i * next + j * SWV_N), top[j]), SWV_SET1(-126.0f));
    SWA__FN(exp2_near)(keys * nv, p);
    SWV_UNROLL for (i = 0; i < keys; i++)
        SWV_UNROLL for (j = 0; j < nv; j++) {
            float *at = s + i * next + j * SWV_N;
            if (edge) p[i * nv + j] = SWV_FROM(SWV_LOAD(at), SWV_SET1(-3.4e38f), p[i * nv + j]);
            sum[j] = SWV_ADD(sum[j], p[i * nv + j]);
            SWV_STORE(at, p[i * nv + j]);
        }
}
/* p = exp2(s - m) in place for the keys of the ranges; l = 16 sums by key mod 16, then the tree. */
SWV_INLINE SWV_TARGET void SWA__FN(many_exp)(int nv, const swa__block *b, const int range[4], int edge, float *s,
                                              const SWV *top, SWV *l) {
    const int nr = nv * SWV_N;
    SWV part[16][NV];
    int i, j, k, r, w;
    for (i = 0; i < 16; i++) {
        SWV sum[NV];
        SWV_UNROLL for (j = 0; j < nv; j++) sum[j] = SWV_SET1(0.0f);
        for (r = 0; r < 4; r += 2) {
            k = range[r] + ((i - range[r]) & 15);
            for (; nv <= 2 && k + 16 < range[r + 1]; k += 32) SWA__FN(exp_keys)(2, nv, edge, s + k * nr, top, sum);
            for (; k < range[r + 1]; k += 16) SWA__FN(exp_keys)(1, nv, edge, s + k * nr, top, sum);
        }
        SWV_UNROLL for (j = 0; j < nv; j++) part[i][j] = sum[j];
    }
    for (r = 0; r < 4; r += 2)
        for (k = range[r]; k < range[r + 1]; k = i) {
            const float *scale = b->tile[k / 16].v_scale;
            i = k / 16 * 16 + 16 < range[r + 1] ? k / 16 * 16 + 16 : range[r + 1];
            for (; scale != NULL && k < i; k++)
                SWV_UNROLL for (j = 0; j < nv; j++)
                    SWV_STORE(s + k * nr + j * SWV_N,
                              SWV_MUL(SWV_LOAD(s + k * nr + j * SWV_N), SWV_SET1(scale[k % 16])));
        }
    for (w = 8; w > 0; w /= 2)
        for (i = 0; i < w; i++)
            SWV_UNROLL for (j = 0; j < nv; j++) part[i][j] = SWV_ADD(part[i][j], part[i + w][j]);
    SWV_UNROLL for (j = 0; j < nv; j++) l[j] = part[0][j];
}
/* The same where bf16 products are emulated, which is for equal bits, not for speed: plain loops. */
SWA__NOINLINE SWV_TARGET void SWA__FN(many_exp_emulated)(int nv, const swa__block *b, const int range[4], float *s,
                                                         const SWV *top, SWV *l) {
    const int nr = nv * SWV_N;
    int i, j, k, r, w;
    for (j = 0; j < nv; j++) {
        SWV sum[16], lower = SWV_MAX(SWV_SUB(top[j], SWV_SET1(30.0f)), SWV_SET1(-3.4e38f));
        for (i = 0; i < 16; i++) sum[i] = SWV_SET1(0.0f);
        for (r = 0; r < 4; r += 2)
            for (k = range[r]; k < range[r + 1]; k++) {
                const float *scale = b->tile[k / 16].v_scale;
                float *at = s + k * nr + j * SWV_N;
                SWV y = SWV_LOAD(at), p = SWV_SUB(y, top[j]);
                SWA__FN(exp2_near)(1, &p);
                p = SWV_HALF(SWV_FROM(y, lower, p));
                sum[k % 16] = SWV_ADD(sum[k % 16], p);
                SWV_STORE(at, scale != NULL ? SWA__FN(half_scaled)(p, SWV_SET1(scale[k % 16])) : p);
            }
        for (r = 0; r < 4; r += 2)
            for (k = range[r]; k < range[r + 1]; k += 2) {          /* neighbours change places */
                float *at = s + k * nr + j * SWV_N;
                SWV p = SWV_LOAD(at);
                SWV_STORE(at, SWV_LOAD(at + nr));
                SWV_STORE(at + nr, p);
            }
        for (w = 8; w > 0; w /= 2)
            for (i = 0; i < w; i++) sum[i] = SWV_ADD(sum[i], sum[i + w]);
        l[j] = sum[0];
    }
}
#ifdef SWV_FMA2
/* p of four keys in a row in bf16: rounded, summed, and put where their pairs belong, which may be where s lies. */
SWV_INLINE SWV_TARGET void SWA__FN(exp_half)(int nr, const float *s, float *to, size_t row, const float *scale,
                                              SWV top, SWV lower, SWV *sum) {
    SWV p[4];
    int i;
    SWV_UNROLL for (i = 0; i < 4; i++) p[i] = SWV_SUB(SWV_LOAD(s + i * nr), top);
    SWA__FN(exp2_near)(4, p);
    SWV_UNROLL for (i = 0; i < 4; i++) {
        p[i] = SWV_HALF(SWV_FROM(SWV_LOAD(s + i * nr), lower, p[i]));
        sum[i] = SWV_ADD(sum[i], p[i]);
        if (scale != NULL) p[i] = SWA__FN(half_scaled)(p[i], SWV_SET1(scale[i]));
    }
    SWV_UNROLL for (i = 0; i < 4; i += 2) {
        SWV_STORE(to + (size_t)i * row, SWV_PAIR(p[i], p[i + 1]));
    }
}
/* The same in bf16, over whole tiles. Panels of both widths share it. */
SWA__NOINLINE SWV_TARGET void SWA__FN(many_exp_pairs)(int nv, const swa__block *b, const int range[4], float *s,
                                                      const SWV *top, SWV *l) {
    const int nr = nv * SWV_N, row = nr / 2;
    SWV sum[16], lower;
    int i, j, k, r, w;
    for (j = 0; j < nv; j++) {
        lower = SWV_MAX(SWV_SUB(top[j], SWV_SET1(30.0f)), SWV_SET1(-3.4e38f));
        SWV_UNROLL for (i = 0; i < 16; i++) sum[i] = SWV_SET1(0.0f);
        for (r = 0; r < 4; r += 2)
            for (k = range[r]; k < range[r + 1]; k += 16) {
                const float *scale = b->tile[k / 16].v_scale;
                SWV_UNROLL for (i = 0; i < 16; i += 4)
                    SWA__FN(exp_half)(nr, s + (k + i) * nr + j * SWV_N, s + (k + i) * row + j * SWV_N,
                                      (size_t)row, scale != NULL ? scale + i : NULL, top[j], lower, sum + i);
            }
        SWV_UNROLL for (w = 8; w > 0; w /= 2)
            SWV_UNROLL for (i = 0; i < w; i++) sum[i] = SWV_ADD(sum[i], sum[i + w]);
        l[j] = sum[0];
    }
}
#endif
/* Rows d..d+rows-1 of o (dims) for a panel: the block's p.v from zero, folded into what is there. */
SWV_INLINE SWV_TARGET void SWA__FN(many_pv)(int rows, int pairs, int nv, const swa__geo *g, const swa__v_run *run,
                                             int n_runs, int first, int d, const SWV *a, const SWV *c, float *o) {
    const int nr = nv * SWV_N;
    SWA__FN(operands) in;
    SWV acc[MR * NV], x;
    int i, j;
    SWV_UNROLL for (i = 0; i < rows * nv; i++) acc[i] = SWV_SET1(0.0f);
    in.fetch = NULL;
    in.line = 0;
    for (; n_runs > 0; n_runs--, run++) {
        in.n = run->n;
        in.b = run->p;
        if (!pairs && g->v_across == 16) {     /* V in K's tiles: a constant, or 16 addresses would be kept alive */
            in.a = run->v + d * 16;
            in.rs = 16;
            in.cs = 1;
            SWA__FN(mk)(pairs, rows, nv, in, acc);
        } else {
            in.a = run->v + d;
            in.rs = 1;
            in.cs = (size_t)g->v_along;
            SWA__FN(mk)(pairs, rows, nv, in, acc);
        }
    }
    SWV_UNROLL for (i = 0; i < rows; i++)
        SWV_UNROLL for (j = 0; j < nv; j++) {
            float *at = o + (size_t)(d + i) * (size_t)nr + j * SWV_N;
            x = first ? SWV_SET1(0.0f) : SWV_MUL(SWV_LOAD(at), a[j]);
            SWV_STORE(at, SWV_FMA(acc[i * nv + j], c[j], x));
        }
}
/* Scores of keys that nobody computes, in tiles of which p is computed whole: hidden. */
SWV_INLINE SWV_TARGET void SWA__FN(many_hide)(int nv, const swa__lanes *n, float *s) {
    int w, e, k, i;
    for (w = 0; w < 2; w++)
        for (e = 0; e < 2 && n->lo[w] < n->hi[w]; e++) {
            k = e == 0 ? n->lo[w] : n->hi[w];
            if (k % 16 == 0) continue;
            for (i = 0; i < 16 * nv; i++)
                SWV_STORE(s + (k / 16 * 16 * nv + i) * SWV_N, SWV_SET1(SWA__NONE));
        }
}
/* One block, one panel. pairs: products by the bf16 instruction; else g->form is PLAIN or HALF, which differ in p. */
SWV_INLINE SWV_TARGET void SWA__FN(many_block)(int pairs, int mr, int nv, const swa__geo *g, const swa__block *b,
                                                const swa__lanes *n, const float *const q[2], float *s, float *o,
                                                float *m, float *l) {
    SWV top[NV], sum[NV], a[NV], c[NV];
    swa__v_run run[2 * SWA_BLOCK / 16];
    int range[4], j, d, old = 0, runs;
    SWV_UNROLL for (j = 0; j < nv; j++) top[j] = SWV_SET1(SWA__NONE);
    swa__ranges(n, g->form == SWA__PLAIN ? 1 : 16, range);
    if (g->form != SWA__PLAIN) SWA__FN(many_hide)(nv, n, s);
    for (j = n->lo[0] < n->hi[0] ? 0 : 1; j < 2; j++) {            /* sinks, then the window */
        SWA__FN(many_qk)(pairs, mr, nv, g, b, n, q[j], j, old, s, top);
        old = (n->hi[0] + mr - 1) / mr * mr;
    }
    if (n->lo[0] >= n->hi[0]) old = 0;
    SWV_UNROLL for (j = 0; j < nv; j++) top[j] = SWV_ADD(top[j], SWV_SET1(0.0f));      /* a maximum of -0: +0 */
#ifdef SWV_FMA2
    if (pairs) SWA__FN(many_exp_pairs)(nv, b, range, s, top, sum);
    else
#endif
    if (g->form != SWA__PLAIN) SWA__FN(many_exp_emulated)(nv, b, range, s, top, sum);
    else {
        const int edge = old > 0 || n->lo[1] < n->full_lo || n->hi[1] > n->full_hi || b->present != NULL;
        SWA__FN(many_exp)(nv, b, range, edge, s, top, sum);
    }
    SWV_UNROLL for (j = 0; j < nv; j++) {
        SWV was = SWV_LOAD(m + j * SWV_N), now = SWV_MAX(was, top[j]);
        a[j] = SWA__FN(exp2)(SWV_SUB(was, now));
        c[j] = SWA__FN(exp2)(SWV_SUB(top[j], now));
        SWV_STORE(m + j * SWV_N, now);
        was = SWV_MUL(SWV_LOAD(l + j * SWV_N), a[j]);
        SWV_STORE(l + j * SWV_N, SWV_FMA(sum[j], c[j], was));
    }
    runs = swa__v_runs(g, b, range, pairs ? 2 : 1, nv * SWV_N, s, run);
    for (d = 0; d + mr <= g->dv; d += mr)
        SWA__FN(many_pv)(mr, pairs, nv, g, run, runs, n->first_block, d, a, c, o);
    for (; d < g->dv; d++) SWA__FN(many_pv)(1, pairs, nv, g, run, runs, n->first_block, d, a, c, o);
}
#define SWV_MANY(name, pairs, mr, nv) \
SWA__NOINLINE SWV_TARGET void SWA__FN(name)(const swa__geo *g, const swa__block *b, const swa__lanes *n, \
                                            const float *q, const float *q_sink, float *s, float *o, float *m, \
                                            float *l) { \
    const float *both[2]; \
    both[0] = q_sink; \
    both[1] = q; \
    SWA__FN(many_block)(pairs, mr, nv, g, b, n, both, s, o, m, l); \
    SWV_LEAVE(); \
}
SWV_MANY(many, 0, MR, NV)
#ifdef SWV_NARROW
SWV_MANY(many_narrow, 0, MR * NV, 1)
#endif
#ifdef SWV_FMA2
SWV_MANY(many_pairs, 1, MR, NV)
SWV_MANY(many_narrow_pairs, 1, MR * NV, 1)
#endif
#undef SWV_MANY

/* ---- fold, finish, and the ways in and out ---- */

static SWV_TARGET void SWA__FN(fold)(int rows, int dvp, float *o, float *m, float *l, const float *ob, const float *mb,
                                     const float *lb) {
    float f[2 * SWV_N];
    int i, d;
    for (i = 0; i < rows; i++) {
        float now = m[i] > mb[i] ? m[i] : mb[i];
        SWV a, c, x;
        SWV_STORE(f, SWA__FN(exp2)(SWV_SET1(m[i] - now)));
        SWV_STORE(f + SWV_N, SWA__FN(exp2)(SWV_SET1(mb[i] - now)));
        a = SWV_SET1(f[0]);
        c = SWV_SET1(f[SWV_N]);
        m[i] = now;
        SWV_STORE(f, SWV_FMA(SWV_SET1(lb[i]), c, SWV_MUL(SWV_SET1(l[i]), a)));
        l[i] = f[0];
        for (d = 0; d < dvp; d += SWV_N) {
            x = SWV_MUL(SWV_LOAD(o + (size_t)i * (size_t)dvp + d), a);
            SWV_STORE(o + (size_t)i * (size_t)dvp + d, SWV_FMA(SWV_LOAD(ob + (size_t)i * (size_t)dvp + d), c, x));
        }
    }
    SWV_LEAVE();
}
/* The same for a panel and blocks without values (learned sink logits). */
static SWV_TARGET void SWA__FN(fold_panel)(int lanes, int dv, float *o, float *m, float *l, const float *mb,
                                           const float *lb) {
    int d, j;
    for (j = 0; j < lanes / SWV_N; j++) {
        SWV was = SWV_LOAD(m + j * SWV_N), now = SWV_MAX(was, SWV_LOAD(mb + j * SWV_N));
        SWV a = SWA__FN(exp2)(SWV_SUB(was, now)), c = SWA__FN(exp2)(SWV_SUB(SWV_LOAD(mb + j * SWV_N), now));
        SWV_STORE(m + j * SWV_N, now);
        was = SWV_MUL(SWV_LOAD(l + j * SWV_N), a);
        SWV_STORE(l + j * SWV_N, SWV_FMA(SWV_LOAD(lb + j * SWV_N), c, was));
        for (d = 0; d < dv; d++)
            SWV_STORE(o + d * lanes + j * SWV_N, SWV_MUL(SWV_LOAD(o + d * lanes + j * SWV_N), a));
    }
    SWV_LEAVE();
}
/* inv = 1/l, or 0 for a row that saw nothing. */
static SWV_TARGET void SWA__FN(inverse)(const float *l, float *inv) {
    int i;
    for (i = 0; i < SWA__LANES; i += SWV_N) {
        SWV x = SWV_LOAD(l + i);
        SWV_STORE(inv + i,
                  SWV_PICK(x, SWV_SET1(FLT_MIN), SWV_SET1(FLT_MAX), SWV_DIV(SWV_SET1(1.0f), x), SWV_SET1(0.0f)));
    }
}
static SWV_TARGET void SWA__FN(finish)(int rows, int dvp, int dv, const float *o, const float *l, float *inv,
                                       float *tmp, float *const *out) {
    int i, d;
    SWA__FN(inverse)(l, inv);
    for (i = 0; i < rows; i++) {
        SWV x = SWV_SET1(inv[i]);
        for (d = 0; d < dvp; d += SWV_N)
            SWV_STORE(tmp + d, SWV_ADD(SWV_MUL(SWV_LOAD(o + (size_t)i * (size_t)dvp + d), x), SWV_SET1(0.0f)));
        memcpy(out[i], tmp, (size_t)dv * sizeof(float));
    }
    SWV_LEAVE();
}
static SWV_TARGET void SWA__FN(unpack)(int lanes, int rows, int dv, const float *o, const float *l, float *inv,
                                       float *const *out) {
    SWV x[SWV_N], y;
    float part[SWV_N];
    int r, d, i;
    SWA__FN(inverse)(l, inv);
    for (r = 0; r < rows; r += SWV_N) {
        y = SWV_LOAD(inv + r);
        for (d = 0; d + SWV_N <= dv; d += SWV_N) {
            SWV_UNROLL for (i = 0; i < SWV_N; i++)
                x[i] = SWV_ADD(SWV_MUL(SWV_LOAD(o + (d + i) * lanes + r), y), SWV_SET1(0.0f));
            SWV_TRANSPOSE(x);
            SWV_UNROLL for (i = 0; i < SWV_N; i++)
                if (r + i < rows) SWV_STORE(out[r + i] + d, x[i]);
        }
        for (; d < dv; d++) {
            SWV_STORE(part, SWV_ADD(SWV_MUL(SWV_LOAD(o + d * lanes + r), y), SWV_SET1(0.0f)));
            for (i = 0; i < SWV_N && r + i < rows; i++) out[r + i][d] = part[i];
        }
    }
    SWV_LEAVE();
}
static SWV_TARGET void SWA__FN(pack)(const void *const *src, int type, int lanes, int dim, float mul, float *dst) {
    const size_t es = swa__type_size(type);
    SWV x[SWV_N], y = SWV_SET1(mul);
    int r, d, i;
    for (r = 0; r < lanes; r += SWV_N)
        for (d = 0; d + SWV_N <= dim; d += SWV_N) {
            const size_t at = (size_t)d * es;
            SWV_BY_TYPE(type,
                SWV_UNROLL for (i = 0; i < SWV_N; i++) x[i] = SWA__FN(load)(T, (const char *)src[r + i] + at);
            );
            SWV_UNROLL for (i = 0; i < SWV_N; i++) x[i] = SWV_MUL(x[i], y);
            SWV_TRANSPOSE(x);
            SWV_UNROLL for (i = 0; i < SWV_N; i++) SWV_STORE(dst + (size_t)(d + i) * (size_t)lanes + r, x[i]);
        }
    for (d = dim / SWV_N * SWV_N; d < dim; d++)
        for (r = 0; r < lanes; r++)
            dst[(size_t)d * (size_t)lanes + (size_t)r] = swa__load1(type, src[r], (size_t)d) * mul;
    SWV_LEAVE();
}
static SWV_TARGET void SWA__FN(widen)(int type, const void *src, float *dst, size_t n) {
    const size_t es = swa__type_size(type);
    size_t i;
    SWV_BY_TYPE(type, for (i = 0; i < n; i += SWV_N) SWV_STORE(dst + i, SWA__FN(load)(T, (const char *)src + i * es)););
    SWV_LEAVE();
}
static SWV_TARGET void SWA__FN(narrow)(int type, const float *src, void *dst, size_t n) {
    const size_t es = swa__type_size(type);
    size_t i;
    SWV_BY_TYPE(type, for (i = 0; i < n; i += SWV_N) SWA__FN(store)(T, (char *)dst + i * es, SWV_LOAD(src + i)););
    SWV_LEAVE();
}
static SWV_TARGET void SWA__FN(round)(int type, const void *src, int src_type, int n, float *dst, float *scale) {
    unsigned char half[2 * SWV_N];
    float part[SWV_N], top = 0.0f, inv;
    SWV big = SWV_SET1(0.0f), x;
    const float *from = src_type == SWA_F32 && n % 16 == 0 ? (const float *)src : dst;   /* read where it is */
    int i, j;
    if (from == dst || type == SWA_F32) SWA__FN(widen)(src_type, src, dst, (size_t)(n / 16 * 16));
    for (i = n / 16 * 16; i < (n + 15) / 16 * 16; i++) dst[i] = i < n ? swa__load1(src_type, src, (size_t)i) : 0.0f;
    if (type == SWA_F16 || type == SWA_BF16) {          /* saturate: an infinity would poison every later row */
        SWV max = SWV_SET1(type == SWA_F16 ? 65504.0f : 3.38953139e38f), zero = SWV_SET1(0.0f);
        for (i = 0; i < n; i += SWV_N) {
            x = SWV_MAX(SWV_LOAD(from + i), SWV_SUB(zero, max));
            x = SWV_SUB(zero, SWV_MAX(SWV_SUB(zero, x), SWV_SUB(zero, max)));
            if (type == SWA_F16) {
                SWV_STORE_F16((uint16_t *)(void *)half, x);
                x = SWV_LOAD_F16((const uint16_t *)(const void *)half);
            } else x = SWV_HALF(x);
            SWV_STORE(dst + i, x);
        }
    }
    if (type != SWA_Q8) {
        SWV_LEAVE();
        return;
    }
    for (i = 0; i < n; i += SWV_N) {
        x = SWV_LOAD(from + i);
        big = SWV_MAX(big, SWV_MAX(x, SWV_SUB(SWV_SET1(0.0f), x)));
    }
    SWV_STORE(part, big);
    for (j = 0; j < SWV_N; j++)
        if (part[j] > top) top = part[j];
    *scale = top / 127.0f;
    inv = *scale > 1e-37f ? 127.0f / top : 0.0f;        /* a row of (almost) zeros is a row of zeros */
    for (i = 0; i < n; i += SWV_N) SWV_STORE(dst + i, SWV_RINT(SWV_MUL(SWV_LOAD(from + i), SWV_SET1(inv))));
    SWV_LEAVE();
}

/* What bf16 products take: saturated, rounded, and 0 below tiny. */
SWV_INLINE SWV_TARGET SWV SWA__FN(halved)(SWV x, SWV tiny) {
    x = SWV_MIN(SWV_MAX(x, SWV_SET1(-3.38953139e38f)), SWV_SET1(3.38953139e38f));
    return SWV_FROM(SWV_MAX(x, SWV_SUB(SWV_SET1(0.0f), x)), tiny, SWV_HALF(x));
}
static SWV_TARGET void SWA__FN(pair)(int form, int rows, unsigned keep, int ld, float tiny, const float *src,
                                     float *dst) {
    SWV small = SWV_SET1(tiny), zero = SWV_SET1(0.0f);
    int r, i;
    for (r = 0; r < rows; r += 2) {
        const int has0 = keep >> (r & 15) & 1, has1 = r + 1 < rows && (keep >> ((r + 1) & 15) & 1);
        const float *at = src + (size_t)r * (size_t)ld;
        float *to = dst + (size_t)(form == SWA__PAIRS ? r / 2 : r) * (size_t)ld;
        for (i = 0; i < ld; i += SWV_N) {
            SWV x0 = has0 ? SWA__FN(halved)(SWV_LOAD(at + i), small) : zero;
            SWV x1 = has1 ? SWA__FN(halved)(SWV_LOAD(at + ld + i), small) : zero;
#ifdef SWV_PAIR
            if (form == SWA__PAIRS) {
                SWV_STORE(to + i, SWV_PAIR(x0, x1));
                continue;
            }
#endif
            SWV_STORE(to + i, r + 1 < rows ? x1 : x0);
            if (r + 1 < rows) SWV_STORE(to + ld + i, x0);
        }
    }
    SWV_LEAVE();
}

/* ---- matrix products ---- */

/* The order of a product's sums, for any number of rows: inputs in blocks of SWA__PRODUCT; within a block 16 lanes by
   input mod 16, each a sum from left to right over the block's pieces of SWA__PIECE inputs, a piece being one FMA chain
   from zero (missing inputs of the last 16 count as zeros); then one tree over the lanes; blocks added from left to
   right. So one token streams a weight row from memory in its own order, with chains short enough to overlap, and
   several tokens share it. The transposed product is one FMA chain over the inputs; its lanes are outputs. */
#define GV (16 / SWV_N)                  /* vectors per 16 inputs */
#define PR (SWV_N == 16 ? 4 : SWV_N == 1 ? 1 : 3)        /* weight rows and tokens in registers */
#define PT (SWV_N == 16 ? 4 : SWV_N == 1 ? 1 : 2)
#define PC (SWV_N == 16 || SWV_N == 4 ? 16 : 8)          /* accumulators of the transposed product */

/* One piece: weight rows ws bytes apart, tokens' inputs xs numbers apart; ahead: how far on, in bytes, to fetch. */
typedef struct { const char *w; size_t ws, ahead; const float *x; size_t xs; } SWA__FN(piece);

/* acc[r*T+t] += the 16 products of weight row r and token t. */
SWV_INLINE SWV_TARGET void SWA__FN(dots16)(int R, int T, int type, const SWA__FN(piece) *in, int at, SWV (*acc)[GV]) {
    const size_t es = type == SWA_F32 ? 4 : 2;
    SWV a, b[PT];
    int g, r, t;
    SWV_UNROLL for (g = 0; g < GV; g++, at += SWV_N) {
        SWV_UNROLL for (t = 0; t < T; t++) b[t] = SWV_LOAD(in->x + (size_t)t * in->xs + at);
        SWV_UNROLL for (r = 0; r < R; r++) {
            a = SWA__FN(load)(type, in->w + (size_t)r * in->ws + (size_t)at * es);
            SWV_UNROLL for (t = 0; t < T; t++) acc[r * T + t][g] = SWV_FMA(a, b[t], acc[r * T + t][g]);
        }
    }
}
/* The last n < 16 inputs, with zeros behind them, and then what the chain leaves, which is in `chain`: added to the
   block's sums. Once in a row of weights at most, so plain loops do. */
SWA__NOINLINE SWV_TARGET void SWA__FN(dots_tail)(int R, int T, int type, int first, int n, const SWA__FN(piece) *in,
                                                 float (*chain)[16], float (*sum)[16]) {
    const size_t es = type == SWA_F32 ? 4 : 2;
    unsigned char w[64];
    float x[16];
    int r, t, g;
    for (r = 0; r < R; r++)
        for (t = 0; t < T; t++) {
            float *to = sum[r * T + t], *from = chain[r * T + t];
            memset(w, 0, sizeof w);
            memset(x, 0, sizeof x);
            memcpy(w, in->w + (size_t)r * in->ws, (size_t)n * es);
            memcpy(x, in->x + (size_t)t * in->xs, (size_t)n * sizeof(float));
            for (g = 0; g < 16; g += SWV_N) {
                SWV a = SWA__FN(load)(type, w + (size_t)g * es), b = SWV_LOAD(x + g);
                a = SWV_FMA(a, b, SWV_LOAD(from + g));
                SWV_STORE(to + g, first ? a : SWV_ADD(SWV_LOAD(to + g), a));
            }
        }
}
/* How the weights that come next are fetched: into L2, into L1, or to be read once; 0 = not. */
SWV_INLINE void SWA__FN(fetch)(int fetch, const char *at) {
    if (fetch == 1) SWA__PREFETCH(at);
    if (fetch == 2) SWA__PREFETCH_L1(at);
    if (fetch == 3) SWA__PREFETCH_ONCE(at);
}
/* 32 inputs of R rows and one token, row by row: of weights in 16 bits a row's whole line at once. */
SWV_INLINE SWV_TARGET void SWA__FN(dots_lines)(int R, int type, int fetch, const SWA__FN(piece) *in, int at,
                                                SWV (*acc)[GV]) {
    const char *w = in->w + (size_t)at * 2;
    int g, r;
    SWV_UNROLL for (r = 0; r < R; r++, w += in->ws) {
        SWA__FN(fetch)(fetch, w + in->ahead);
        SWV_UNROLL for (g = 0; g < 2 * GV; g++)
            acc[r][g % GV] = SWV_FMA(SWA__FN(load)(type, w + (size_t)(g * SWV_N) * 2),
                                     SWV_LOAD(in->x + at + g * SWV_N), acc[r][g % GV]);
    }
}
/* One piece of n inputs, R weight rows and T tokens, added to the block's sums. */
SWV_INLINE SWV_TARGET void SWA__FN(dots)(int R, int T, int type, int fetch, int first, int n, SWA__FN(piece) in,
                                          float (*sum)[16]) {
    const size_t es = type == SWA_F32 ? 4 : 2;
    const int lines = T == 1 && es == 2;
    SWV acc[PR * PT][GV];
    float chain[PR * PT][16];
    int i = 0, r, g;
    SWV_UNROLL for (r = 0; r < R * T; r++)
        SWV_UNROLL for (g = 0; g < GV; g++) acc[r][g] = SWV_SET1(0.0f);
    if (lines)
        for (; i + 32 <= n; i += 32) SWA__FN(dots_lines)(R, type, fetch, &in, i, acc);
    if (!lines)
        for (; i + 32 <= n; i += 32) {
            if (in.ahead != 0)
                SWV_UNROLL for (r = 0; r < R; r++) {
                    const char *next = in.w + (size_t)r * in.ws + (size_t)i * es + in.ahead;
                    SWA__FN(fetch)(fetch, next);
                    if (es == 4) SWA__FN(fetch)(fetch, next + 64);
                }
            SWA__FN(dots16)(R, T, type, &in, i, acc);
            SWA__FN(dots16)(R, T, type, &in, i + 16, acc);
        }
    for (; i + 16 <= n; i += 16) SWA__FN(dots16)(R, T, type, &in, i, acc);
    if (i < n) {
        SWV_UNROLL for (r = 0; r < R * T; r++)
            SWV_UNROLL for (g = 0; g < GV; g++) SWV_STORE(chain[r] + g * SWV_N, acc[r][g]);
        SWA__FN(piece) rest = in;        /* a copy: in must not have an address, or it is read from memory */
        rest.w += (size_t)i * es;
        rest.x += i;
        SWA__FN(dots_tail)(R, T, type, first, n - i, &rest, chain, sum);
        return;
    }
    SWV_UNROLL for (r = 0; r < R * T; r++)
        SWV_UNROLL for (g = 0; g < GV; g++) {
            if (!first) acc[r][g] = SWV_ADD(SWV_LOAD(sum[r] + g * SWV_N), acc[r][g]);
            SWV_STORE(sum[r] + g * SWV_N, acc[r][g]);
        }
}
/* y[r] = the tree over part[r], for n <= 16 rows; part holds 16. */
SWA__NOINLINE SWV_TARGET void SWA__FN(tree)(int n, float (*part)[16], float *y) {
    SWV x[16];
    int r, g, i, w;
    for (r = 0; r < n; r += SWV_N) {
        SWV_UNROLL for (g = 0; g < GV; g++) {
            SWV_UNROLL for (i = 0; i < SWV_N; i++) x[g * SWV_N + i] = SWV_LOAD(part[r + i] + g * SWV_N);
            SWV_TRANSPOSE(x + g * SWV_N);
        }
        SWV_UNROLL for (w = 8; w > 0; w /= 2)
            SWV_UNROLL for (i = 0; i < w; i++) x[i] = SWV_ADD(x[i], x[i + w]);
        SWV_STORE(y + r, x[0]);
    }
}
/* Tokens [t0, t1), at most 2*PT, against G groups of PR weight rows from r on, the block of n inputs from k on: both
   sides of a piece stay in L1. x: piece 0 of t0's row, tokens xs apart, pieces ps apart. Rows below `done` have their
   sums already: the last group overlaps the one before it. */
typedef struct { int t0, t1, r, done, k, n; const float *x; size_t xs, ps; } SWA__FN(cut);

SWV_INLINE SWV_TARGET void SWA__FN(product_rows)(int G, int type, const swa_gemm *p, const SWA__FN(cut) *c) {
    const size_t es = type == SWA_F32 ? 4 : 2, group = (size_t)p->w.stride * es * PR;
    SWA__FN(piece) in;
    float part[4 * PR * PT + 16][16], sum[16];
    const float *x = c->x;
    const char *w = (const char *)p->w.p + (size_t)c->r * (group / PR) + (size_t)c->k * es;
    int t, i, j, g, at, m, step;
    memset(part[4 * PR * PT], 0, sizeof part[0] * 16);
    in.ws = group / PR;
    in.xs = c->xs;
    for (i = 0; i < c->n; i += m, w += (size_t)m * es, x += c->ps) {
        m = c->n - i < SWA__PIECE ? c->n - i : SWA__PIECE;
        for (g = 0, at = 0; g < G; g++)
            for (t = c->t0; t < c->t1; t += step, at += PR * step) {
                step = t + PT <= c->t1 ? PT : 1;
                in.w = w + (size_t)g * group;
                in.x = x + (size_t)(t - c->t0) * c->xs;
                /* the first tokens that read these rows fetch the next */
                in.ahead = t == 0 && c->r + 2 * G * PR <= p->n_out ? (size_t)G * group : 0;
                if (step == PT) SWA__FN(dots)(PR, PT, type, 1, i == 0, m, in, part + at);
                else SWA__FN(dots)(PR, 1, type, 1, i == 0, m, in, part + at);
            }
    }
    for (g = 0, at = 0; g < G; g++)
        for (t = c->t0; t < c->t1; t += step, at += PR * step) {
            step = t + PT <= c->t1 ? PT : 1;
            SWA__FN(tree)(PR * step, part + at, sum);
            for (j = 0; j < step; j++) {
                float *y = p->y + (size_t)(t + j) * (size_t)p->y_stride + c->r + g * PR;
                for (i = 0; i < PR; i++)
                    if (c->r + g * PR + i >= c->done) y[i] = c->k == 0 ? sum[i * step + j] : y[i] + sum[i * step + j];
            }
        }
}
/* Tokens in tiles whose inputs of a block fit L2, so that weights are read once per tile. x of many is copied to pack,
   piece by piece, since rows that are a multiple of 4 KiB apart evict each other from L1. */
SWV_INLINE SWV_TARGET void SWA__FN(product_many)(int type, const swa_gemm *p, float *pack) {
    enum { TILE = SWA__PRODUCT_TILE, SUB = 2 * PT };
    const int few = p->n <= PT;
    SWA__FN(cut) c;
    int t, u, t1, i, rows;
    c.xs = few ? (size_t)p->x_stride : (size_t)SWA__PIECE;
    c.ps = (few ? 1 : (size_t)TILE) * (size_t)SWA__PIECE;
    for (t = 0; t < p->n; t = t1) {
        t1 = p->n - t < TILE ? p->n : t + TILE;
        for (c.k = 0; c.k < p->n_in; c.k += c.n) {
            c.n = p->n_in - c.k < SWA__PRODUCT ? p->n_in - c.k : SWA__PRODUCT;
            for (u = t; !few && u < t1; u++)
                for (i = 0; i < c.n; i += SWA__PIECE)
                    memcpy(pack + (i / SWA__PIECE * TILE + u - t) * SWA__PIECE,
                           p->x + (size_t)u * (size_t)p->x_stride + c.k + i,
                           (size_t)(c.n - i < SWA__PIECE ? c.n - i : SWA__PIECE) * sizeof(float));
            for (c.done = 0; c.done < p->n_out; c.done = c.r + rows) {
                rows = p->n_out - c.done >= 2 * PR && !few ? 2 * PR : PR;
                c.r = p->n_out - c.done < PR ? p->n_out - PR : c.done;
                for (c.t0 = t; c.t0 < t1; c.t0 = c.t1) {
                    c.x = few ? p->x + (size_t)c.t0 * c.xs + c.k : pack + (c.t0 - t) * SWA__PIECE;
                    c.t1 = t1 - c.t0 < SUB ? t1 : c.t0 + SUB;
                    SWA__FN(product_rows)(rows / PR, type, p, &c);
                }
            }
        }
    }
}
/* One token. Of rows so long that x does not stay in L1, PR at a time share it; the others run one by one in the order
   of memory. */
SWV_INLINE SWV_TARGET void SWA__FN(product_one)(int type, const swa_gemm *p, const float *x, float *y) {
    const size_t es = type == SWA_F32 ? 4 : 2, ws = (size_t)p->w.stride * es;
    SWA__FN(piece) in;
    float part[16][16], sum[16];
    int r = 0, k, i, n, m, w;
    memset(part, 0, sizeof part);
    in.ws = ws;
    in.xs = 0;
    for (; ws > SWA__LONG && r + PR <= p->n_out; r += PR)
        for (k = 0; k < p->n_in; k += n) {
            n = p->n_in - k < SWA__PRODUCT ? p->n_in - k : SWA__PRODUCT;
            for (i = 0; i < n; i += m) {
                /* near the end of these rows the next ones are fetched */
                const size_t jump = (size_t)(k + i + SWA__PIECE) * es + SWA__NEAR <= ws ? 0 : (PR - 1) * ws;
                m = n - i < SWA__PIECE ? n - i : SWA__PIECE;
                in.w = (const char *)p->w.p + (size_t)r * ws + (size_t)(k + i) * es;
                in.x = x + k + i;
                in.ahead = SWA__NEAR + jump;
                SWA__FN(dots)(PR, 1, type, type == SWA_F32 ? 0 : 2, i == 0, m, in, part);
            }
            SWA__FN(tree)(PR, part, sum);
            for (i = 0; i < PR; i++) y[r + i] = k == 0 ? sum[i] : y[r + i] + sum[i];
        }
    for (in.ahead = SWA__AHEAD; r < p->n_out; r++)
        for (k = 0; k < p->n_in; k += n) {
            n = p->n_in - k < SWA__PRODUCT ? p->n_in - k : SWA__PRODUCT;
            for (i = 0; i < n; i += m) {
                m = n - i < SWA__PIECE ? n - i : SWA__PIECE;
                in.w = (const char *)p->w.p + (size_t)r * ws + (size_t)(k + i) * es;
                in.x = x + k + i;
                SWA__FN(dots)(1, 1, type, 3, i == 0, m, in, part);
            }
            for (w = 8; w > 0; w /= 2)
                for (i = 0; i < w; i++) part[0][i] = part[0][i] + part[0][i + w];
            y[r] = k == 0 ? part[0][0] : y[r] + part[0][0];
        }
}
/* C vectors of columns from column c on, T tokens, inputs [d0, d1). part < SWV_N: only so many columns are there
   (C is 1 then). */
SWV_INLINE SWV_TARGET void SWA__FN(columns)(int C, int T, int type, int part, const swa_gemm *p, int t, int c, int d0,
                                             int d1) {
    const size_t es = type == SWA_F32 ? 4 : 2, ws = (size_t)p->w.stride * es, xs = (size_t)p->x_stride;
    const char *w = (const char *)p->w.p + (size_t)c * es + (size_t)d0 * ws;
    const size_t ahead = d1 < p->n_in ? (size_t)(d1 - d0) * ws : 0;
    const float *x = p->x + (size_t)t * xs;
    unsigned char tail[4 * SWV_N];
    float last[SWV_N];
    SWV acc[4][PC], a[PC], b;
    int i, j, d;
    memset(tail, 0, sizeof tail);
    SWV_UNROLL for (i = 0; i < T; i++) {
        const float *y = p->y + (size_t)(t + i) * (size_t)p->y_stride + c;
        if (part < SWV_N) {
            memset(last, 0, sizeof last);
            if (d0 > 0) memcpy(last, y, (size_t)part * sizeof(float));
            acc[i][0] = SWV_LOAD(last);
        } else
            SWV_UNROLL for (j = 0; j < C; j++) acc[i][j] = d0 > 0 ? SWV_LOAD(y + j * SWV_N) : SWV_SET1(0.0f);
    }
    for (d = d0; d < d1; d++, w += ws) {
        if (part < SWV_N) memcpy(tail, w, (size_t)part * es);
        if (T == 1 && C > 1)
            SWV_UNROLL for (j = 0; j < C * SWV_N * (int)es / 64; j++) SWA__PREFETCH(w + ahead + (size_t)j * 64);
        SWV_UNROLL for (j = 0; j < C; j++)
            a[j] = SWA__FN(load)(type, part < SWV_N ? (const char *)tail : w + (size_t)(j * SWV_N) * es);
        SWV_UNROLL for (i = 0; i < T; i++) {
            b = SWV_SET1(x[(size_t)i * xs + (size_t)d]);
            SWV_UNROLL for (j = 0; j < C; j++) acc[i][j] = SWV_FMA(b, a[j], acc[i][j]);
        }
    }
    SWV_UNROLL for (i = 0; i < T; i++) {
        float *y = p->y + (size_t)(t + i) * (size_t)p->y_stride + c;
        if (part < SWV_N) {
            SWV_STORE(last, acc[i][0]);
            memcpy(y, last, (size_t)part * sizeof(float));
        } else
            SWV_UNROLL for (j = 0; j < C; j++) SWV_STORE(y + j * SWV_N, acc[i][j]);
    }
}
/* Inputs a few at a time, so that a matrix is read nearly in the order it lies in memory; the chains wait in y. */
SWV_INLINE SWV_TARGET void SWA__FN(product_columns)(int type, const swa_gemm *p) {
    const int rows = p->n >= 4 ? p->n_in : 16;
    int c, t, wide, d, d1, left;
    for (d = 0; d < p->n_in; d = d1) {
        d1 = p->n_in - d < rows ? p->n_in : d + rows;
        for (c = 0; c < p->n_out; c += wide * SWV_N) {
            left = p->n_out - c;
            wide = left >= PC * SWV_N && p->n < 4 ? PC : left >= PC / 4 * SWV_N && p->n >= 4 ? PC / 4 : 1;
            for (t = 0; wide == PC / 4 && t + 4 <= p->n; t += 4)
                SWA__FN(columns)(PC / 4, 4, type, SWV_N, p, t, c, d, d1);
            for (t = wide == PC / 4 ? p->n / 4 * 4 : 0; t < p->n; t++) {
                if (wide == PC) SWA__FN(columns)(PC, 1, type, SWV_N, p, t, c, d, d1);
                else if (wide == PC / 4) SWA__FN(columns)(PC / 4, 1, type, SWV_N, p, t, c, d, d1);
                else SWA__FN(columns)(1, 1, type, left < SWV_N ? left : SWV_N, p, t, c, d, d1);
            }
        }
    }
}
/* One function per type of the weights: together their frames would be too large. */
#define SWV_PRODUCT(name, T) \
SWA__NOINLINE SWV_TARGET void SWA__FN(product_##name)(const swa_gemm *p, float *pack) { \
    int t; \
    if (p->transposed) SWA__FN(product_columns)(T, p); \
    else if (p->n > 1 && p->n_out >= PR) SWA__FN(product_many)(T, p, pack); \
    else \
        for (t = 0; t < p->n; t++) \
            SWA__FN(product_one)(T, p, p->x + (size_t)t * (size_t)p->x_stride, \
                                 p->y + (size_t)t * (size_t)p->y_stride); \
}
SWV_PRODUCT(f32, SWA_F32)
SWV_PRODUCT(f16, SWA_F16)
SWV_PRODUCT(bf16, SWA_BF16)
#undef SWV_PRODUCT
/* pack: SWA__PRODUCT_TILE * SWA__PRODUCT floats, or anything if p->n is 1. */
static SWV_TARGET void SWA__FN(product)(const swa_gemm *p, float *pack) {
    if (p->w.type == SWA_F32) SWA__FN(product_f32)(p, pack);
    else if (p->w.type == SWA_F16) SWA__FN(product_f16)(p, pack);
    else SWA__FN(product_bf16)(p, pack);
    SWV_LEAVE();
}

/* ---- MLA's naive path: K and V of a head from the latents of 16 keys ---- */

#define TILES (SWV_N == 16 ? 2 : 1)      /* tiles at a time: 16 accumulators, or 8 of narrow vectors */
#define ROWS  (SWV_N == 1 ? 1 : SWV_N == 16 ? 8 : 4)

/* Dims d..d+ROWS-1 of which `rows` are stored, inputs [c, c1), w at the panel of 16 dims that holds them. */
SWV_INLINE SWV_TARGET void SWA__FN(expand_rows)(int rows, int c, int c1, const float *w, const float *const *latent,
                                                 float *const *dst, int d) {
    SWV acc[ROWS][TILES * GV], x[TILES * GV], y;
    int i, g;
    SWV_UNROLL for (i = 0; i < ROWS; i++)
        SWV_UNROLL for (g = 0; g < TILES * GV; g++)
            acc[i][g] = c > 0 && i < rows ? SWV_LOAD(dst[g / GV] + (d + i) * 16 + g % GV * SWV_N) : SWV_SET1(0.0f);
    for (; c < c1; c++) {
        SWV_UNROLL for (g = 0; g < TILES * GV; g++) x[g] = SWV_LOAD(latent[g / GV] + c * 16 + g % GV * SWV_N);
        SWV_UNROLL for (i = 0; i < ROWS; i++) {
            y = SWV_SET1(w[c * 16 + i]);
            SWV_UNROLL for (g = 0; g < TILES * GV; g++) acc[i][g] = SWV_FMA(y, x[g], acc[i][g]);
        }
    }
    SWV_UNROLL for (i = 0; i < ROWS; i++)
        SWV_UNROLL for (g = 0; g < TILES * GV; g++)
            if (i < rows) SWV_STORE(dst[g / GV] + (d + i) * 16 + g % GV * SWV_N, acc[i][g]);
}
/* dst[i] [dims][16] = w times latent[i] [n][16] for two tiles (which may be the same); w [dims/16][n][16]. One FMA
   chain a number, cut where the latents of a piece fill L1. */
static SWV_TARGET void SWA__FN(expand)(int dims, int n, const float *w, const float *const *latent, float *const *dst) {
    enum { PIECE = 128 };
    int i, c, d, c1;
    for (i = 0; i < 2; i += TILES)
        for (c = 0; c < n; c = c1) {
            c1 = n - c < PIECE ? n : c + PIECE;
            for (d = 0; d < dims; d += ROWS) {
                const float *panel = w + (size_t)(d / 16) * (size_t)n * 16 + d % 16;
                if (dims - d >= ROWS) SWA__FN(expand_rows)(ROWS, c, c1, panel, latent + i, dst + i, d);
                else SWA__FN(expand_rows)(dims - d, c, c1, panel, latent + i, dst + i, d);
            }
        }
    SWV_LEAVE();
}
#undef TILES
#undef ROWS
/* [dims][16] as 16 rows of dims, a multiple of 16. */
static SWV_TARGET void SWA__FN(turn)(int dims, const float *src, float *dst, size_t stride) {
    SWV x[SWV_N];
    int d, k, i;
    for (d = 0; d < dims; d += SWV_N)
        for (k = 0; k < 16; k += SWV_N) {
            SWV_UNROLL for (i = 0; i < SWV_N; i++) x[i] = SWV_LOAD(src + (d + i) * 16 + k);
            SWV_TRANSPOSE(x);
            SWV_UNROLL for (i = 0; i < SWV_N; i++) SWV_STORE(dst + (size_t)(k + i) * stride + d, x[i]);
        }
    SWV_LEAVE();
}
#undef GV
#undef PR
#undef PT
#undef PC
#undef SWV_BY_TYPE

#undef SWV_INLINE
#undef SWV_UNROLL
#undef MR
#undef NV
#undef NR
#undef SWV_FMA2
#undef SWV_ISA
#undef SWV_PLAIN
#undef SWV_TARGET
#undef SWV_NARROW
#undef SWV_HALF
#undef SWV_LEAVE
#undef SWV_FROM
#undef SWV_PAIR
#undef SWV_DOTS
#undef SWV
#undef SWV_N
#undef SWV_KEYS
#undef SWV_LANES
#undef SWV_FEW
#undef SWV_FEW_KEYS
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
#undef SWV_SCALE
#undef SWV_PICK
#undef SWV_TRANSPOSE
#undef SWV_LOAD_F16
#undef SWV_LOAD_BF16
#undef SWV_LOAD_Q8
#undef SWV_STORE_F16
#undef SWV_STORE_BF16
#undef SWV_STORE_Q8

#elif defined(SWA__IMPLEMENTING)
/* ==== [SECTION 11] KERNEL INSTANCES =============================================================================
   One block of vector operations per instruction set, in the words that [SECTION 9] lists; each includes the template
   above. */

#ifndef SWA_HEADER_FILENAME
#  define SWA_HEADER_FILENAME "swa.h"    /* not __FILE__: that fails when built from another folder                  */
#endif
#define SWA__CAT2(a, b) a##_##b
#define SWA__CAT(a, b)  SWA__CAT2(a, b)
#define SWA__FN(name)   SWA__CAT(swa__##name, SWV_ISA)
#define SWA__KERNEL_PASS

/* Scalar: the definition of the arithmetic, on any C99 compiler. */
static float swa__rint(float x) {        /* |x| < 2^22, to nearest even; through the bits, so that no flag folds it  */
    int32_t i;
#if defined(__GNUC__) || defined(__clang__)
    __asm__("" : "+m"(x));               /* and a product in x is not contracted into the sum                        */
#endif
    i = (int32_t)(swa__bits_of(x + 12582912.0f) - 0x4b400000u);
    return (float)i;
}
#if defined(_WIN32) || defined(__NEWLIB__) || (SWA__FAST_MATH && defined(__clang__))
/* Their fmaf rounds twice, as clang makes any under -ffast-math where the CPU has none. The product is exact in double;
   the sum is rounded to odd, then once to float. */
static float swa__fma(float a, float b, float c) {
    double p = (double)a * b, s = p + c, t = s - p, e = (p - (s - t)) + (c - t);
    uint64_t u;
    memcpy(&u, &s, 8);
    if (e != 0 && (u & 1) == 0 && (u >> 52 & 0x7ff) != 0x7ff) u += (e > 0) == (s > 0) ? 1u : (uint64_t)-1;
    memcpy(&s, &u, 8);
    return (float)s;
}
#else
#define swa__fma(a, b, c) fmaf((a), (b), (c))
#endif
static float swa__scale(float p, float n) { return swa__float_of(swa__bits_of(p) + ((uint32_t)(int32_t)n << 23)); }
static float swa__half(float x) {        /* to the nearest bf16                                                      */
    uint32_t u = swa__bits_of(x);
    return swa__float_of((u + 0x7fffu + (u >> 16 & 1)) & 0xffff0000u);
}
#define SWV_ISA                 scalar
#define SWV_PLAIN
#define SWV_TARGET
#define SWV                     float
#define SWV_N                   1
#define SWV_KEYS                4
#define SWV_LANES               4
#define SWV_FEW(r)              4
#define SWV_FEW_KEYS(r, type)   4
#define SWV_CONSTRAINT(x)       "+m"(x)
#define SWV_SET1(x)             ((float)(x))          /* casts: where floats are computed wider, round each one      */
#define SWV_LOAD(p)             (*(p))
#define SWV_STORE(p, v)         (*(p) = (v))
#define SWV_FMA(a, b, c)        swa__fma((a), (b), (c))
#define SWV_ADD(a, b)           ((float)((a) + (b)))
#define SWV_SUB(a, b)           ((float)((a) - (b)))
#define SWV_MUL(a, b)           ((float)((a) * (b)))
#define SWV_DIV(a, b)           ((float)((a) / (b)))
#define SWV_MAX(a, b)           ((a) > (b) ? (a) : (b))
#define SWV_MIN(a, b)           ((a) < (b) ? (a) : (b))
#define SWV_RINT(x)             swa__rint(x)
#define SWV_SCALE(p, n)         swa__scale((p), (n))
#define SWV_PICK(x, lo, hi, a, b) ((x) >= (lo) && (x) < (hi) ? (a) : (b))
#define SWV_TRANSPOSE(r)        ((void)(r))
#define SWV_LOAD_F16(p)         swa__f32_from_f16(*(p))
#define SWV_LOAD_BF16(p)        swa__f32_from_bf16(*(p))
#define SWV_LOAD_Q8(p)          ((float)*(p))
#define SWV_STORE_F16(p, v)     (*(p) = swa__f16_from_f32(v))
#define SWV_STORE_BF16(p, v)    (*(p) = swa__bf16_from_f32(v))
#define SWV_STORE_Q8(p, v)      (*(p) = (int8_t)(v))
#define SWV_HALF(x)             swa__half(x)
#define SWV_LEAVE()             ((void)0)
#include SWA_HEADER_FILENAME

#if SWA__NEON
SWA__INLINE void swa__transpose_neon(float32x4_t *r) {
    float32x4x2_t a = vtrnq_f32(r[0], r[1]), b = vtrnq_f32(r[2], r[3]);
    r[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    r[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    r[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    r[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}
SWA__INLINE float32x4_t swa__load_q8_neon(const int8_t *p) {
    int32_t w;
    memcpy(&w, p, 4);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8((uint64_t)(uint32_t)w)))));
}
SWA__INLINE void swa__store_q8_neon(int8_t *p, float32x4_t v) {
    int16x4_t h = vmovn_s32(vcvtq_s32_f32(v));
    int8x8_t b = vmovn_s16(vcombine_s16(h, h));
    int32_t w = vget_lane_s32(vreinterpret_s32_s8(b), 0);
    memcpy(p, &w, 4);
}
SWA__INLINE float32x4_t swa__half_neon(float32x4_t v) {
    uint32x4_t u = vreinterpretq_u32_f32(v);
    u = vaddq_u32(u, vaddq_u32(vdupq_n_u32(0x7fff), vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1))));
    return vreinterpretq_f32_u32(vandq_u32(u, vdupq_n_u32(0xffff0000u)));
}
#define SWV_ISA                 neon
#define SWV_TARGET
#define SWV                     float32x4_t
#define SWV_N                   4
#define SWV_KEYS                8
#define SWV_LANES               2
#define SWV_FEW(r)              ((r) == 1 ? 8 : 4)
#define SWV_FEW_KEYS(r, type)   SWV_FEW(r)
#define SWV_CONSTRAINT(x)       "+w"(x)
#define SWV_SET1(x)             vdupq_n_f32(x)
#define SWV_LOAD(p)             vld1q_f32(p)
#define SWV_STORE(p, v)         vst1q_f32((p), (v))
#define SWV_FMA(a, b, c)        vfmaq_f32((c), (a), (b))
#define SWV_ADD(a, b)           ((SWV)((a) + (b)))
#define SWV_SUB(a, b)           ((SWV)((a) - (b)))
#define SWV_MUL(a, b)           ((SWV)((a) * (b)))
#define SWV_DIV(a, b)           ((SWV)((a) / (b)))
#define SWV_MAX(a, b)           vmaxq_f32((a), (b))
#define SWV_MIN(a, b)           vminq_f32((a), (b))
#define SWV_RINT(x)             vrndnq_f32(x)
#define SWV_SCALE(p, n)         vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(p), \
                                    vshlq_n_s32(vcvtq_s32_f32(n), 23)))
#define SWV_PICK(x, lo, hi, a, b) vbslq_f32(vandq_u32(vcgeq_f32((x), (lo)), vcltq_f32((x), (hi))), (a), (b))
#define SWV_TRANSPOSE(r)        swa__transpose_neon(r)
#define SWV_LOAD_F16(p)         vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))
#define SWV_LOAD_BF16(p)        vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16))
#define SWV_LOAD_Q8(p)          swa__load_q8_neon(p)
#define SWV_STORE_F16(p, v)     vst1_u16((p), vreinterpret_u16_f16(vcvt_f16_f32(v)))
#define SWV_STORE_BF16(p, v)    vst1_u16((p), vshrn_n_u32(vreinterpretq_u32_f32(swa__half_neon(v)), 16))
#define SWV_STORE_Q8(p, v)      swa__store_q8_neon((p), (v))
#define SWV_HALF(x)             swa__half_neon(x)
#define SWV_LEAVE()             ((void)0)
#include SWA_HEADER_FILENAME
#endif

#if SWA__X86
#define SWA__AVX2_TARGET SWA__TARGET("avx2,fma,f16c")
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
SWA__INLINE SWA__AVX2_TARGET __m256 swa__half_avx2(__m256 v) {
    __m256i u = _mm256_castps_si256(v), one = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    u = _mm256_add_epi32(u, _mm256_add_epi32(one, _mm256_set1_epi32(0x7fff)));
    return _mm256_castsi256_ps(_mm256_and_si256(u, _mm256_set1_epi32(-65536)));
}
SWA__INLINE SWA__AVX2_TARGET void swa__store_bf16_avx2(uint16_t *p, __m256 v) {
    __m256i u = _mm256_srli_epi32(_mm256_castps_si256(swa__half_avx2(v)), 16);
    u = _mm256_permute4x64_epi64(_mm256_packus_epi32(u, u), 0x08);
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_castsi256_si128(u));
}
SWA__INLINE SWA__AVX2_TARGET void swa__store_q8_avx2(int8_t *p, __m256 v) {
    __m256i u = _mm256_cvtps_epi32(v);
    __m128i h = _mm_packs_epi32(_mm256_castsi256_si128(u), _mm256_extracti128_si256(u, 1));
    _mm_storel_epi64((__m128i *)(void *)p, _mm_packs_epi16(h, h));
}
#define SWV_ISA                 avx2
#define SWV_TARGET              SWA__AVX2_TARGET
#define SWV                     __m256
#define SWV_N                   8
#define SWV_KEYS                4
#define SWV_LANES               3
#define SWV_FEW(r)              ((r) == 1 ? 8 : (r) == 2 ? 4 : 2)
#define SWV_FEW_KEYS(r, type)   ((r) == 1 ? 4 : 2)
#define SWV_CONSTRAINT(x)       "+x"(x)
#define SWV_SET1(x)             _mm256_set1_ps(x)
#define SWV_LOAD(p)             _mm256_loadu_ps(p)
#define SWV_STORE(p, v)         _mm256_storeu_ps((p), (v))
#define SWV_FMA(a, b, c)        _mm256_fmadd_ps((a), (b), (c))
#define SWV_ADD(a, b)           ((SWV)((a) + (b)))
#define SWV_SUB(a, b)           ((SWV)((a) - (b)))
#define SWV_MUL(a, b)           ((SWV)((a) * (b)))
#define SWV_DIV(a, b)           ((SWV)((a) / (b)))
#define SWV_MAX(a, b)           _mm256_max_ps((a), (b))
#define SWV_MIN(a, b)           _mm256_min_ps((a), (b))
#define SWV_RINT(x)             _mm256_round_ps((x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define SWV_SCALE(p, n)         _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), \
                                    _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)))
#define SWV_PICK(x, lo, hi, a, b) _mm256_blendv_ps((b), (a), _mm256_and_ps(_mm256_cmp_ps((x), (lo), _CMP_GE_OQ), \
                                    _mm256_cmp_ps((x), (hi), _CMP_LT_OQ)))
#define SWV_TRANSPOSE(r)        swa__transpose_avx2(r)
#define SWV_LOAD_F16(p)         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define SWV_LOAD_BF16(p)        _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32( \
                                    _mm_loadu_si128((const __m128i *)(const void *)(p))), 16))
#define SWV_LOAD_Q8(p)          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32( \
                                    _mm_loadl_epi64((const __m128i *)(const void *)(p))))
#define SWV_STORE_F16(p, v)     _mm_storeu_si128((__m128i *)(void *)(p), \
                                    _mm256_cvtps_ph((v), _MM_FROUND_TO_NEAREST_INT))
#define SWV_STORE_BF16(p, v)    swa__store_bf16_avx2((p), (v))
#define SWV_STORE_Q8(p, v)      swa__store_q8_avx2((p), (v))
#define SWV_HALF(x)             swa__half_avx2(x)
#define SWV_LEAVE()             _mm256_zeroupper()   /* or the host's SSE code crawls; gcc adds it from -O2 on only */
#include SWA_HEADER_FILENAME
#endif

#if SWA__AVX512
#if defined(__GNUC__) && !defined(__clang__)   /* gcc 12 warns inside its own intrinsics (its bug 105593) */
#  pragma GCC diagnostic push
#  pragma GCC diagnostic ignored "-Wuninitialized"
#  pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#  pragma GCC diagnostic ignored "-Wsign-conversion"   /* at -O0 they are macros, with a mask of -1 */
#endif
#if SWA__AVX512_DOT                      /* bf16: for the kernels on pairs alone, which run where the CPU has them   */
#  define SWA__AVX512_TARGET SWA__TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
#else
#  define SWA__AVX512_TARGET SWA__TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")
#endif
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
SWA__INLINE SWA__AVX512_TARGET __m512 swa__half_avx512(__m512 v) {
    __m512i u = _mm512_castps_si512(v), one = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    u = _mm512_add_epi32(u, _mm512_add_epi32(one, _mm512_set1_epi32(0x7fff)));
    return _mm512_castsi512_ps(_mm512_and_si512(u, _mm512_set1_epi32(-65536)));
}
#define SWV_ISA                 avx512
#define SWV_TARGET              SWA__AVX512_TARGET
#define SWV                     __m512
#define SWV_N                   16
#define SWV_KEYS                8
#define SWV_LANES               2
#define SWV_FEW(r)              ((r) <= 2 ? 8 : 4)
#define SWV_FEW_KEYS(r, type)   ((r) <= 2 || (type) == SWA_F32 ? 1 : (type) == SWA_Q8 ? 4 : 2)
#define SWV_CONSTRAINT(x)       "+v"(x)
#define SWV_SET1(x)             _mm512_set1_ps(x)
#define SWV_LOAD(p)             _mm512_loadu_ps(p)
#define SWV_STORE(p, v)         _mm512_storeu_ps((p), (v))
#define SWV_FMA(a, b, c)        _mm512_fmadd_ps((a), (b), (c))
#define SWV_ADD(a, b)           ((SWV)((a) + (b)))
#define SWV_SUB(a, b)           ((SWV)((a) - (b)))
#define SWV_MUL(a, b)           ((SWV)((a) * (b)))
#define SWV_DIV(a, b)           ((SWV)((a) / (b)))
#define SWV_MAX(a, b)           _mm512_max_ps((a), (b))
#define SWV_MIN(a, b)           _mm512_min_ps((a), (b))
#define SWV_RINT(x)             _mm512_roundscale_ps((x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define SWV_SCALE(p, n)         _mm512_scalef_ps((p), (n))
#define SWV_PICK(x, lo, hi, a, b) _mm512_mask_blend_ps((__mmask16)(_mm512_cmp_ps_mask((x), (lo), _CMP_GE_OQ) & \
                                    _mm512_cmp_ps_mask((x), (hi), _CMP_LT_OQ)), (b), (a))
#define SWV_TRANSPOSE(r)        swa__transpose_avx512(r)
#define SWV_LOAD_F16(p)         _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define SWV_LOAD_BF16(p)        _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32( \
                                    _mm256_loadu_si256((const __m256i *)(const void *)(p))), 16))
#define SWV_LOAD_Q8(p)          _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32( \
                                    _mm_loadu_si128((const __m128i *)(const void *)(p))))
#define SWV_STORE_F16(p, v)     _mm256_storeu_si256((__m256i *)(void *)(p), \
                                    _mm512_cvtps_ph((v), _MM_FROUND_TO_NEAREST_INT))
#define SWV_STORE_BF16(p, v)    _mm256_storeu_si256((__m256i *)(void *)(p), _mm512_cvtepi32_epi16( \
                                    _mm512_srli_epi32(_mm512_castps_si512(swa__half_avx512(v)), 16)))
#define SWV_STORE_Q8(p, v)      _mm_storeu_si128((__m128i *)(void *)(p), \
                                    _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)))
#define SWV_HALF(x)             swa__half_avx512(x)
#define SWV_LEAVE()             _mm256_zeroupper()
#define SWV_FROM(x, lo, p)      _mm512_maskz_mov_ps(_mm512_cmp_ps_mask((x), (lo), _CMP_GE_OQ), (p))
#define SWV_PAIR(x0, x1)        _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(x1), \
                                    _mm512_srli_epi32(_mm512_castps_si512(x0), 16)))
#define SWV_NARROW                       /* half a panel: 16 keys, one vector of rows                                */
#if SWA__AVX512_DOT
#  define SWA__DOTS_TARGET SWA__TARGET("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vbmi")
/* q.k of R rows in q8, four numbers of 16 keys at once. The sums are exact, so that they equal the f32 chains of
   integers that other instances run. The instruction takes K unsigned: +128, and 128 times q's sum off the start. */
SWA__INLINE SWA__DOTS_TARGET void swa__dots(int R, const swa__geo *g, const swa__block *b, const int32_t *q,
                                            const int32_t *sum, float *s, int v) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i order = _mm512_or_si512(_mm512_mullo_epi32(lanes, _mm512_set1_epi32(0x01010101)),
                                          _mm512_set1_epi32(0x30201000));
    const __m512i sign = _mm512_set1_epi32(-0x7f7f7f80);
    const char *k = (const char *)b->tile[v].k, *pf = (const char *)b->tile[v].v;
    __m512i acc[4], x;
    int i, d, n;
    SWA__UNROLL for (i = 0; i < R; i++) acc[i] = _mm512_set1_epi32(-128 * sum[i]);
    for (d = 0; d < g->dk; d += 4, q += R, pf += 64) {
        n = g->dk - d;
        SWA__FETCH(pf, b->l1);
        x = n >= 4 ? _mm512_loadu_si512(k + d * 16)
                   : _mm512_maskz_loadu_epi8(((__mmask64)1 << n * 16) - 1, k + d * 16);
        x = _mm512_xor_si512(_mm512_permutexvar_epi8(order, x), sign);
        SWA__UNROLL for (i = 0; i < R; i++) acc[i] = _mm512_dpbusd_epi32(acc[i], x, _mm512_set1_epi32(q[i]));
    }
    SWA__UNROLL for (i = 0; i < R; i++)
        _mm512_storeu_ps(s + i * SWA_BLOCK + v * 16,
                         _mm512_mul_ps(_mm512_cvtepi32_ps(acc[i]), _mm512_loadu_ps(b->tile[v].k_scale)));
}
SWA__NOINLINE SWA__DOTS_TARGET void swa__few_dots(int rows, const swa__geo *g, const swa__block *b, const int32_t *q,
                                                  const int32_t *sum, float *s, int v, int end) {
    for (; v < end; v++) {               /* a tile at a time: one stream from memory */
        if (rows == 4) swa__dots(4, g, b, q, sum, s, v);
        else if (rows == 2) swa__dots(2, g, b, q, sum, s, v);
        else swa__dots(1, g, b, q, sum, s, v);
    }
}
#define SWV_DOTS                swa__few_dots
#define SWV_FMA2(a, b, c)       _mm512_dpbf16_ps((c), (__m512bh)(a), (__m512bh)(b))
#endif
#include SWA_HEADER_FILENAME
#if defined(__GNUC__) && !defined(__clang__)
#  pragma GCC diagnostic pop
#endif
#endif
#undef SWA__KERNEL_PASS

/* The instances, by SWA_ISA_*. A constant table: which one runs is a field of the object, never a global. */
#define SWA__KERNELS(isa, lanes, half_panel, pairs, pairs_half_panel) { #isa, lanes, swa__few_##isa, \
    { { swa__many_##isa, half_panel }, { swa__many_##isa, half_panel }, { pairs, pairs_half_panel } }, \
    swa__fold_##isa, swa__fold_panel_##isa, swa__finish_##isa, swa__unpack_##isa, swa__pack_##isa, swa__widen_##isa, \
    swa__narrow_##isa, swa__round_##isa, swa__pair_##isa, \
    swa__product_##isa, swa__expand_##isa, swa__turn_##isa }
#if SWA__AVX512_DOT
#  define SWA__PAIRS_MANY   swa__many_pairs_avx512
#  define SWA__PAIRS_NARROW swa__many_narrow_pairs_avx512
#else
#  define SWA__PAIRS_MANY   NULL
#  define SWA__PAIRS_NARROW NULL
#endif
#define SWA__NO_KERNELS(isa) { #isa, 0, NULL, { { NULL, NULL }, { NULL, NULL }, { NULL, NULL } }, NULL, NULL, NULL, \
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }
static const swa__kernels *swa__kernels_of(int isa) {
    static const swa__kernels table[] = {
        SWA__NO_KERNELS(best),
        SWA__KERNELS(scalar, 4, NULL, NULL, NULL),
#if SWA__NEON
        SWA__KERNELS(neon, 8, NULL, NULL, NULL),
#else
        SWA__NO_KERNELS(neon),
#endif
#if SWA__X86
        SWA__KERNELS(avx2, 24, NULL, NULL, NULL),
#else
        SWA__NO_KERNELS(avx2),
#endif
#if SWA__AVX512
        SWA__KERNELS(avx512, 32, swa__many_narrow_avx512, SWA__PAIRS_MANY, SWA__PAIRS_NARROW)
#else
        SWA__NO_KERNELS(avx512)
#endif
    };
    return &table[isa];
}
/* What an instance may use of its CPU beyond the base. */
static int swa__has_pairs(const swa__kernels *kr) {
#if SWA__AVX512_DOT
    return kr->many[SWA__PAIRS][0] != NULL && swa__likes_pairs();
#else
    (void)kr;
    return 0;
#endif
}
static int swa__has_dots(const swa__kernels *kr) {
#if SWA__AVX512_DOT
    return kr == swa__kernels_of(SWA_ISA_AVX512) && __builtin_cpu_supports("avx512vnni")
           && __builtin_cpu_supports("avx512vbmi");
#else
    (void)kr;
    return 0;
#endif
}
/* ==== [SECTION 12] ATTENTION ====================================================================================
   Keys are a list of segments (ring spans, sinks, the new rows, the caller's own rows). The stage brings one block of
   them into canonical tiles; a kernel consumes it. Work is a list of units: a KV head of a run, some of its rows, and
   all its blocks or, when there are fewer units than threads, one block (a split). Which units exist depends on the
   number of parts; what a row's arithmetic is does not. */

struct swa__expand;
typedef struct {                         /* one run of queries and the keys it may see                               */
    const swa__kernels *kr;
    swa_shape shape;
    swa_window window;                   /* with the run's prefix                                                    */
    swa_attn a;                          /* strides resolved                                                         */
    swa__geo geo;
    float qscale;                        /* folded into q: scale * log2 e, or scale / softcap                        */
    int64_t pos, row;                    /* first query's position and packed row                                    */
    int n, group;                        /* queries; query heads per KV head                                         */
    const swa_kv *kv;                    /* [n_kv] ascending                                                         */
    int n_kv;
    int few;                             /* few rows: which shape runs                                               */
    const struct swa__expand *expand;    /* MLA's naive path: kv are latents, the stage makes K and V of them        */
    int round_k, round_v, round_tail;    /* rows are rounded to these types first: what the ring will hold           */
} swa__job;

/* One part's scratch, carved from one piece of memory; also how its size is computed. */
typedef struct {
    float *q, *q_sink, *q_scale, *o, *ob, *m, *l, *mb, *lb, *s, *k, *v, *scale, *row, *inv, *present;
    int64_t *lo, *hi, *sink;             /* per token of a unit                                                      */
    size_t bytes;
} swa__scratch;

static void swa__take(swa__scratch *w, unsigned char *base, float **p, size_t floats) {
    *p = base != NULL ? (float *)(void *)(base + w->bytes) : NULL;
    w->bytes += (floats * sizeof(float) + 63) & ~(size_t)63;
}
static void swa__take64(swa__scratch *w, unsigned char *base, int64_t **p, size_t n) {
    *p = base != NULL ? (int64_t *)(void *)(base + w->bytes) : NULL;
    w->bytes += (n * sizeof(int64_t) + 63) & ~(size_t)63;
}
/* Rows that share one staged block: the more, the less staging; their q and o should be about 2 MiB. */
static int swa__tile_rows(const swa_shape *s) {
    int rows = 1 << 19, dims = s->head_dim + s->tail_dim + s->v_dim;
    return rows / dims >= 2048 ? 2048 : rows / dims <= 256 ? 256 : rows / dims / 32 * 32;
}
static swa__scratch swa__carve(const swa_shape *s, int sinks, unsigned char *base) {
    swa__scratch w;
    const size_t rows = (size_t)swa__tile_rows(s) + SWA__LANES, dkt = (size_t)s->head_dim + (size_t)s->tail_dim;
    const size_t dvp = ((size_t)s->v_dim + 15) / 16 * 16, dim = dkt > dvp ? dkt : dvp;
    memset(&w, 0, sizeof w);
    swa__take(&w, base, &w.q, rows * dkt);
    swa__take(&w, base, &w.q_sink, sinks ? rows * dkt : 0);
    swa__take(&w, base, &w.q_scale, 2 * rows);          /* of q, of the sinks' own q */
    swa__take(&w, base, &w.o, rows * dvp);
    swa__take(&w, base, &w.ob, SWA__FEW * dvp);
    swa__take(&w, base, &w.m, rows);
    swa__take(&w, base, &w.l, rows);
    swa__take(&w, base, &w.mb, SWA__LANES);
    swa__take(&w, base, &w.lb, SWA__LANES);
    swa__take(&w, base, &w.s, (size_t)SWA_BLOCK * SWA__LANES);
    swa__take(&w, base, &w.k, SWA_BLOCK * dkt);
    swa__take(&w, base, &w.v, SWA_BLOCK * dvp);
    swa__take(&w, base, &w.scale, 3 * SWA_BLOCK);
    swa__take(&w, base, &w.row, 16 * (dim + 16));
    swa__take(&w, base, &w.inv, SWA__LANES);
    swa__take(&w, base, &w.present, SWA_BLOCK);
    swa__take64(&w, base, &w.lo, rows);
    swa__take64(&w, base, &w.hi, rows);
    swa__take64(&w, base, &w.sink, rows);
    return w;
}
static size_t swa__part_bytes(const swa_shape *s, int sinks) {
    return swa__carve(s, sinks, NULL).bytes;
}
static size_t swa__partial_bytes(const swa_shape *s) {   /* o, m, l of one row and block */
    return (((size_t)s->v_dim + 15) / 16 * 16 + 16) * sizeof(float);
}

/* ---- the stage: one block of keys in canonical form ---- */

/* Lanes [a, b) of a tile from row i of a segment on. Keys come transposed into k, values as rows into v. */
typedef struct { float *k, *tail, *v, *k_scale, *tail_scale, *v_scale; int dvp; } swa__dst;

/* K or tail of a ring segment: the whole tile at once where lanes match, else through a copy, lanes moved. */
static void swa__stage_ring(const swa__kernels *kr, int type, const unsigned char *base, size_t slot, int dim, int a,
                            int b, int whole, float *row, float *dst) {
    const size_t tile = (size_t)dim * 16;
    int d, i, n;
    if (whole) {
        kr->widen(type, base + slot / 16 * tile * swa__type_size(type), dst, tile);
        return;
    }
    for (; a < b; a += n, slot += (size_t)n) {
        const float *from = row + slot % 16;
        n = b - a < 16 - (int)(slot % 16) ? b - a : 16 - (int)(slot % 16);
        kr->widen(type, base + slot / 16 * tile * swa__type_size(type), row, tile);
        for (d = 0; d < dim; d++)
            for (i = 0; i < n; i++) dst[d * 16 + a + i] = from[d * 16 + i];
    }
}
static void swa__scales(float *dst, const float *src, int a, int b) {
    int i;
    for (i = a; i < b; i++) dst[i] = src != NULL ? src[i - a] : 1.0f;
}
static void swa__stage_slots(const swa__job *j, const swa_kv *kv, int h, int64_t from, int a, int b, int first,
                             float *row, const swa__dst *to) {
    const swa_shape *s = &j->shape;
    const size_t slot = (size_t)(kv->layout_ - 1 + (from - kv->pos)), lane = (size_t)h * (size_t)kv->slots_ + slot;
    const int whole = first && (slot & 15) == (size_t)a;
    const unsigned char *k =
        (const unsigned char *)kv->k + (size_t)h * (size_t)kv->k_head * swa__type_size((int)kv->k_type);
    int i;
    swa__stage_ring(j->kr, (int)kv->k_type, k, slot, s->head_dim, a, b, whole, row, to->k);
    swa__scales(to->k_scale, kv->k_scale_ != NULL ? kv->k_scale_ + lane : NULL, a, b);
    if (s->tail_dim > 0) {
        k = (const unsigned char *)kv->tail + (size_t)h * (size_t)kv->tail_head * swa__type_size((int)kv->tail_type);
        swa__stage_ring(j->kr, (int)kv->tail_type, k, slot, s->tail_dim, a, b, whole, row, to->tail);
        swa__scales(to->tail_scale, kv->tail_scale_ != NULL ? kv->tail_scale_ + lane : NULL, a, b);
    }
    if (s->v_in_k) return;
    for (i = a; i < b; i++) {
        size_t at = (size_t)h * (size_t)kv->v_head + (slot + (size_t)(i - a)) * (size_t)kv->v_token;
        j->kr->widen((int)kv->v_type, (const unsigned char *)kv->v + at * swa__type_size((int)kv->v_type),
                     to->v + i * to->dvp, (size_t)to->dvp);
    }
    swa__scales(to->v_scale, kv->v_scale_ != NULL ? kv->v_scale_ + lane : NULL, a, b);
}
/* Strided rows defeat the hardware's prefetch: ask for them one tile early. */
static void swa__rows_ahead(const unsigned char *p, int rows, int64_t stride, int bytes) {
    int i, at;
    for (i = 0; i < rows; i++, p += stride)
        for (at = 0; at < bytes; at += 64) SWA__PREFETCH(p + at);
}
/* Lanes [a, b) of K or tail from caller's rows: rounded to the ring's type if need be, then transposed. */
static void swa__stage_keys(const swa__job *j, const void *p, int type, int round, int64_t token, int dim, int a, int b,
                            float *row, float *dst, float *scale) {
    const void *src[16];
    const size_t es = swa__type_size(type), ld = ((size_t)dim + 15) / 16 * 16;
    int i, d;
    for (i = a; i < b; i++) {
        src[i] = (const unsigned char *)p + (int64_t)(i - a) * token * (int64_t)es;
        scale[i] = 1.0f;
        if (round == SWA_F32) continue;
        j->kr->round(round, src[i], type, dim, row + (size_t)i * ld, &scale[i]);
        src[i] = row + (size_t)i * ld;
    }
    if (round != SWA_F32) type = SWA_F32;
    if (a == 0 && b == 16) {
        if (!j->few && token * (int64_t)es > 4 * (int64_t)dim)           /* rows of other heads lie between */
            swa__rows_ahead((const unsigned char *)p + 16 * token * (int64_t)es, 16, token * (int64_t)es,
                            dim * (int)es);
        j->kr->pack(src, type, 16, dim, 1.0f, dst);
        return;
    }
    for (i = a; i < b; i++) {
        const float *x = (const float *)src[i];
        if (type != SWA_F32) {
            j->kr->round(SWA_F32, src[i], type, dim, row, &scale[i]);
            scale[i] = 1.0f;
            x = row;
        }
        for (d = 0; d < dim; d++) dst[d * 16 + i] = x[d];
    }
}
static int64_t swa__stride(int64_t stride, int64_t packed) { return stride != 0 ? stride : packed; }
/* V of rows that need no rounding and no padding can stay where it is (in_place): then its first row is returned. */
static const unsigned char *swa__stage_rows(const swa__job *j, const swa_kv *kv, int h, int64_t from, int a, int b,
                                            int in_place, float *row, const swa__dst *to) {
    const swa_shape *s = &j->shape;
    const int64_t r = from - kv->pos;
    const int64_t kt = swa__stride(kv->k_token, s->n_kv_heads * s->head_dim), kh = swa__stride(kv->k_head, s->head_dim);
    const int64_t tt = swa__stride(kv->tail_token, s->n_kv_heads * s->tail_dim),
                  th = swa__stride(kv->tail_head, s->tail_dim);
    const int64_t vt = swa__stride(kv->v_token, s->n_kv_heads * s->v_dim), vh = swa__stride(kv->v_head, s->v_dim);
    const int es = (int)swa__type_size((int)kv->v_type);
    const unsigned char *p = (const unsigned char *)kv->k;
    int i;
    p += (r * kt + h * kh) * (int64_t)swa__type_size((int)kv->k_type);
    swa__stage_keys(j, p, (int)kv->k_type, j->round_k, kt, s->head_dim, a, b, row, to->k, to->k_scale);
    if (s->tail_dim > 0) {
        p = (const unsigned char *)kv->tail;
        p += (r * tt + h * th) * (int64_t)swa__type_size((int)kv->tail_type);
        swa__stage_keys(j, p, (int)kv->tail_type, j->round_tail, tt, s->tail_dim, a, b, row, to->tail, to->tail_scale);
    }
    if (s->v_in_k) return NULL;
    if (in_place && j->round_v == SWA_F32 && s->v_dim == to->dvp) {
        p = (const unsigned char *)kv->v + (r * vt + h * vh) * es;
        swa__scales(to->v_scale, NULL, a, b);
        return p;
    }
    p = (const unsigned char *)kv->v + ((r + b - a) * vt + h * vh) * es;
    swa__rows_ahead(p, b - a, vt * es, s->v_dim * es);
    for (i = a; i < b; i++) {
        p = (const unsigned char *)kv->v + ((r + i - a) * vt + h * vh) * es;
        to->v_scale[i] = 1.0f;
        j->kr->round(j->round_v, p, (int)kv->v_type, s->v_dim, to->v + i * to->dvp, &to->v_scale[i]);
    }
    return NULL;
}
/* The first segment that ends after position p. */
static int swa__find(const swa__job *j, int64_t p) {
    int lo = 0, hi = j->n_kv;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (j->kv[mid].pos + j->kv[mid].n > p) hi = mid;
        else lo = mid + 1;
    }
    return lo;
}
/* A tile that lies in one ring segment, lanes in step with positions, is read where it is, in the ring's type. */
static int swa__tile_direct(const swa__job *j, const swa_kv *kv, int h, int64_t pos, swa__tile *t) {
    const swa_shape *s = &j->shape;
    int64_t slot = kv->layout_ - 1 + (pos - kv->pos);
    size_t lane = (size_t)h * (size_t)kv->slots_ + (size_t)slot;
    if (kv->layout_ == 0 || (slot & 15) != 0) return 0;
    t->k = (const unsigned char *)kv->k
           + ((size_t)h * (size_t)kv->k_head + (size_t)(slot * s->head_dim)) * swa__type_size((int)kv->k_type);
    t->k_type = (int)kv->k_type;
    t->k_scale = kv->k_scale_ != NULL ? kv->k_scale_ + lane : NULL;
    t->tail = NULL;
    t->tail_scale = NULL;
    if (s->tail_dim > 0) {
        t->tail =
            (const unsigned char *)kv->tail
            + ((size_t)h * (size_t)kv->tail_head + (size_t)(slot * s->tail_dim)) * swa__type_size((int)kv->tail_type);
        t->tail_scale = kv->tail_scale_ != NULL ? kv->tail_scale_ + lane : NULL;
    }
    t->tail_type = (int)kv->tail_type;
    t->v = NULL;
    t->v_scale = NULL;
    t->v_type = (int)kv->v_type;
    t->v_token = kv->v_token;
    if (s->v_in_k) return 1;
    t->v = (const unsigned char *)kv->v
           + ((size_t)h * (size_t)kv->v_head + (size_t)(slot * kv->v_token)) * swa__type_size((int)kv->v_type);
    t->v_scale = kv->v_scale_ != NULL ? kv->v_scale_ + lane : NULL;
    return 1;
}
/* Typed arrays of a direct tile into f32, for the many-rows shape. */
static void swa__tile_widen(const swa__job *j, swa__tile *t, const swa__dst *to) {
    if (t->k_type != SWA_F32) {
        j->kr->widen(t->k_type, t->k, to->k, (size_t)j->shape.head_dim * 16);
        t->k = to->k;
    }
    if (t->tail != NULL && t->tail_type != SWA_F32) {
        j->kr->widen(t->tail_type, t->tail, to->tail, (size_t)j->shape.tail_dim * 16);
        t->tail = to->tail;
    }
    if (t->v != NULL && t->v_type != SWA_F32) {
        j->kr->widen(t->v_type, t->v, to->v, (size_t)to->dvp * 16);
        t->v = to->v;
    }
    t->k_type = t->tail_type = t->v_type = SWA_F32;
}
static void swa__tile_gather(const swa__job *j, int h, int64_t pos, int a, int b, int f32, float *row, float *present,
                             int *holes, const swa__dst *to, swa__tile *t) {
    const unsigned char *own = NULL;
    int i, at = a, first = 1;
    for (i = swa__find(j, pos + a); i < j->n_kv && j->kv[i].pos < pos + b; i++) {
        const swa_kv *kv = &j->kv[i];
        int c = kv->pos > pos + a ? (int)(kv->pos - pos) : a,
            e = kv->pos + kv->n < pos + b ? (int)(kv->pos + kv->n - pos) : b;
        for (; at < c; at++) present[at] = 0.0f;
        for (; at < e; at++) present[at] = 1.0f;
        if (kv->layout_ != 0) swa__stage_slots(j, kv, h, pos + c, c, e, first, row, to);
        else own = swa__stage_rows(j, kv, h, pos + c, c, e, !f32 && c == a && e == b, row, to);
        first = 0;
    }
    for (; at < b; at++) present[at] = 0.0f;
    for (i = a; i < b; i++) {
        if (present[i] > 0.5f) continue;
        *holes = 1;                      /* a key that does not exist: its score is hidden, its V must be finite */
        to->k_scale[i] = to->v_scale[i] = 1.0f;
        if (!j->shape.v_in_k) memset(to->v + i * to->dvp, 0, (size_t)to->dvp * sizeof(float));
        else for (at = 0; at < j->shape.head_dim; at++) to->k[at * 16 + i] = 0.0f;
    }
    t->k = to->k;
    t->tail = to->tail;
    t->v = j->shape.v_in_k ? NULL : to->v;
    t->k_type = t->tail_type = t->v_type = SWA_F32;
    t->k_scale = to->k_scale;
    t->tail_scale = j->shape.tail_dim > 0 ? to->tail_scale : NULL;
    t->v_scale = to->v_scale;
    t->v_token = to->dvp;
    if (own == NULL) return;             /* else V is read where the caller has it */
    i = swa__find(j, pos + a);
    t->v_token = swa__stride(j->kv[i].v_token, j->shape.n_kv_heads * j->shape.v_dim);
    t->v_type = (int)j->kv[i].v_type;
    t->v = own - a * t->v_token * (int64_t)swa__type_size(t->v_type);
}
/* Scales are applied where the storage type has them, and nowhere else: a multiplication by 1 more would be no other
   bit, but a chain interrupted for it would. */
static int swa__scaled(const swa__job *j, int which) {
    int i, round = which == 0 ? j->round_k : which == 1 ? j->round_tail : j->round_v;
    for (i = 0; i < j->n_kv && round != SWA_Q8; i++) {
        const swa_kv *kv = &j->kv[i];
        if ((which == 0 ? kv->k_scale_ : which == 1 ? kv->tail_scale_ : kv->v_scale_) != NULL) return 1;
    }
    return round == SWA_Q8;
}
/* tile[0] lies in a ring segment, and so do the n - 1 that follow it. */
static void swa__tiles_on(const swa__job *j, int n, swa__tile *tile) {
    const swa_shape *s = &j->shape;
    const swa__tile at = *tile;
    const int64_t k = (int64_t)s->head_dim * 16 * (int64_t)swa__type_size(at.k_type);
    const int64_t v = at.v_token * 16 * (int64_t)swa__type_size(at.v_type);
    const int64_t tail = (int64_t)s->tail_dim * 16 * (int64_t)swa__type_size(at.tail_type);
    int i;
    for (i = 1; i < n; i++) {
        tile[i].k = (const char *)at.k + i * k;
        tile[i].tail = at.tail != NULL ? (const char *)at.tail + i * tail : NULL;
        tile[i].v = at.v != NULL ? (const char *)at.v + i * v : NULL;
        tile[i].k_scale = at.k_scale != NULL ? at.k_scale + i * 16 : NULL;
        tile[i].tail_scale = at.tail_scale != NULL ? at.tail_scale + i * 16 : NULL;
        tile[i].v_scale = at.v_scale != NULL ? at.v_scale + i * 16 : NULL;
        tile[i].v_token = at.v_token;
        tile[i].k_type = at.k_type;
        tile[i].tail_type = at.tail_type;
        tile[i].v_type = at.v_type;
    }
}
/* Where tile t of a block is staged. */
static swa__dst swa__tile_room(const swa__job *j, const swa__scratch *w, int t) {
    swa__dst to;
    to.k = w->k + (size_t)t * 16 * (size_t)(j->shape.head_dim + j->shape.tail_dim);
    to.tail = to.k + 16 * j->shape.head_dim;
    to.v = j->shape.v_in_k ? NULL : w->v + (size_t)t * 16 * (size_t)j->geo.dvp;
    to.k_scale = w->scale + t * 16;
    to.tail_scale = to.k_scale + SWA_BLOCK;
    to.v_scale = to.tail_scale + SWA_BLOCK;
    to.dvp = j->geo.dvp;
    return to;
}
/* The keys [lo, hi) of the block, of head h; tiles are left undefined outside. */
static void swa__stage(const swa__job *j, int h, const int range[4], int f32, const swa__scratch *w, swa__block *b) {
    int i, r, t, a, e, n, in = 0, done = 0, holes = 0;
    unsigned direct = 0;
    b->present = NULL;
    for (r = 0; r < 4; r += 2)           /* both intervals may touch one tile */
        for (t = range[r] / 16 > done ? range[r] / 16 : done; t * 16 < range[r + 1]; t = done) {
            const int64_t pos = b->pos + t * 16;
            swa__tile *tile = &b->tile[t];
            swa__dst to;
            a = range[r] > t * 16 ? range[r] - t * 16 : 0;
            e = range[r + 1] < t * 16 + 16 ? range[r + 1] - t * 16 : 16;
            if (r == 0 && range[2] < t * 16 + 16 && range[3] > t * 16)
                e = range[3] < t * 16 + 16 ? range[3] - t * 16 : 16;
            while (in < j->n_kv && j->kv[in].pos + j->kv[in].n <= pos + a) in++;
            n = 1;
            if (in < j->n_kv && j->kv[in].pos <= pos + a && j->kv[in].pos + j->kv[in].n >= pos + e
                && swa__tile_direct(j, &j->kv[in], h, pos, tile)) {
                int64_t whole = swa__min64(range[r + 1] / 16 - t, (j->kv[in].pos + j->kv[in].n - pos) / 16);
                if (whole > 1) n = (int)whole;
                swa__tiles_on(j, n, tile);
                for (i = 0; i < n; i++) {
                    direct |= 1u << (t + i);
                    if (!f32) continue;
                    to = swa__tile_room(j, w, t + i);
                    swa__tile_widen(j, tile + i, &to);
                }
            } else {
                to = swa__tile_room(j, w, t);
                swa__tile_gather(j, h, pos, a, e, f32, w->row, w->present + t * 16, &holes, &to, tile);
                if (!swa__scaled(j, 0)) tile->k_scale = NULL;
                if (!swa__scaled(j, 1)) tile->tail_scale = NULL;
                if (!swa__scaled(j, 2)) tile->v_scale = NULL;
            }
            for (done = t + n; tile < b->tile + done; tile++) {
                tile->next = tile->next_tail = NULL;
                if (!j->shape.v_in_k) continue;
                tile->v = tile->k;
                tile->v_scale = tile->k_scale;
            }
        }
    if (!holes) return;
    b->present = w->present;
    for (i = 0; i < SWA_BLOCK; i++)
        if (direct >> i / 16 & 1) w->present[i] = 1.0f;
}
/* A tile's [dims][16] as 16 rows of V. */
static void swa__turn(const swa__job *j, const float *k, float *v) {
    const int whole = j->shape.v_dim / 16 * 16, dvp = j->geo.dvp;
    int i, d;
    j->kr->turn(whole, k, v, (size_t)dvp);
    for (i = 0; i < 16 && whole < dvp; i++)
        for (d = whole; d < dvp; d++) v[i * dvp + d] = d < j->shape.v_dim ? k[d * 16 + i] : 0.0f;
}
/* The staged tiles in the form that bf16 products take. Keys that nobody sees become zeros in V. */
static void swa__stage_half(const swa__job *j, const int range[4], const swa__scratch *w, swa__block *b) {
    const int dk = j->shape.head_dim, dt = j->shape.tail_dim, dvp = j->geo.dvp, form = j->geo.form;
    int r, t, i, done = -1;
    for (r = 0; r < 4; r += 2)
        for (t = range[r] / 16; t * 16 < range[r + 1]; t++) {
            swa__tile *tile = &b->tile[t];
            const int per = form == SWA__PAIRS ? 2 : 1;
            float *k = w->k + (size_t)t * 16 * (size_t)(dk + dt), *v = w->v + t * 16 / per * dvp;
            const float *rows = (const float *)tile->v;
            unsigned seen = 0;
            if (t <= done) continue;
            done = t;
            for (i = t * 16; i < t * 16 + 16; i++)
                if ((i >= range[0] && i < range[1]) || (i >= range[2] && i < range[3])) seen |= 1u << (i & 15);
            if (j->shape.v_in_k) {       /* V as rows: where the last tile's will be, so that they stay in L1 */
                float *last = w->v + (SWA_BLOCK - 16) * (size_t)dvp;
                swa__turn(j, (const float *)tile->k, last);
                rows = last;
            }
            j->kr->pair(form, 16, seen, dvp, SWA__TINY_V, rows, v);
            j->kr->pair(form, dk, 0xffffu, 16, SWA__TINY_QK, (const float *)tile->k, k);
            if (dt > 0) j->kr->pair(form, dt, 0xffffu, 16, SWA__TINY_QK, (const float *)tile->tail, k + 16 * dk);
            tile->k = k;
            tile->tail = k + 16 * dk;
            tile->v = v;
        }
}

/* ---- rows ---- */

/* Rows r0..r0+n-1 of a KV head: row r is token r / group, head h*group + r % group. */
typedef struct {
    int h, r0, n;                        /* KV head; rows                                                            */
    int b0, b1, list;                    /* blocks, of how many in the list                                          */
    int64_t at;                          /* number of block b0                                                       */
    size_t partial;                      /* first partial result of this unit's job and head, in rows*blocks         */
} swa__unit;

static const float *swa__q_row(const swa__job *j, const swa_in *in, int h, int r) {
    int64_t token = j->row + r / j->group, head = (int64_t)h * j->group + r % j->group;
    return in->p + token * in->token + head * in->head;
}
static float *swa__out_row(const swa__job *j, int h, int r) {
    int64_t token = j->row + r / j->group, head = (int64_t)h * j->group + r % j->group;
    return j->a.out.p + token * j->a.out.token + head * j->a.out.head;
}
/* Rows of the panel that takes `rows` rows: half a one for the last few, where there is one. */
static int swa__panel(const swa__job *j, int rows) {
    const int nr = j->kr->nr;
    return rows <= nr / 2 && j->kr->many[j->geo.form][1] != NULL ? nr / 2 : nr;
}
/* n rows as q8 will have them: integers into row [n][dim to 16], scales times the call's. */
static void swa__q_integers(const swa__job *j, const void **src, int n, float *row, float *scale) {
    const int ld = (j->shape.head_dim + 15) / 16 * 16;
    int i;
    for (i = 0; i < n; i++) {
        j->kr->round(SWA_Q8, src[i], SWA_F32, j->shape.head_dim, row + i * ld, &scale[i]);
        scale[i] *= j->qscale;
        src[i] = row + i * ld;
    }
}
/* Few rows at q, in groups, [dims][step]. */
static void swa__pack_few(const swa__job *j, const swa__unit *u, const swa_in *head, const swa_in *tail, float *row,
                          float *q, float *scale) {
    const int dk = j->shape.head_dim, dt = j->shape.tail_dim, q8 = j->a.compute == SWA_Q8;
    const float mul = q8 ? 1.0f : j->qscale;
    float *to = q;
    int i, r, d, step;
    for (r = 0; r < u->n; r += step, to += (dk + dt) * step) {
        int32_t *sum = swa__few_integers(&j->geo, q, r);
        const void *x[8];
        step = swa__few_step(u->n - r);
        for (i = 0; i < step; i++) x[i] = swa__q_row(j, head, u->h, u->r0 + r + i);
        if (q8) {
            swa__q_integers(j, x, step, row, scale + r);
            memset(sum, 0, (size_t)(step * ((dk + 3) / 4 + 1)) * sizeof *sum);
        }
        for (i = 0; i < step; i++) {
            const float *y = (const float *)x[i];
            int8_t *four = (int8_t *)(sum + step + i);
            for (d = 0; step != 4 && d < dk; d++) to[d * step + i] = y[d] * mul;
            for (d = 0; q8 && d < dk; d++) {
                four[d / 4 * step * 4 + d % 4] = (int8_t)y[d];
                sum[i] += (int32_t)y[d];
            }
            if (dt > 0) y = swa__q_row(j, tail, u->h, u->r0 + r + i);
            for (d = 0; d < dt; d++) to[(dk + d) * step + i] = y[d] * mul;
        }
        if (step == 4) {                 /* the commonest: no stride */
            const float *a = (const float *)x[0], *b = (const float *)x[1], *c = (const float *)x[2];
            const float *e = (const float *)x[3];
            for (d = 0; d < dk; d++) {
                to[4 * d] = a[d] * mul;
                to[4 * d + 1] = b[d] * mul;
                to[4 * d + 2] = c[d] * mul;
                to[4 * d + 3] = e[d] * mul;
            }
        }
        if (j->geo.form == SWA__PLAIN) continue;
        for (i = 0; i < 2; i++)          /* in columns of one: chains run over the dims */
            swa__pair_scalar(SWA__HALF, i == 0 ? dk : dt, 0xffffu, step, SWA__TINY_QK, to + (i == 0 ? 0 : dk * step),
                             to + (i == 0 ? 0 : dk * step));
    }
}
/* q of a unit, scaled and transposed: few rows in their groups, many as panels of lanes, where lanes past the end
   repeat the last row. */
static void swa__pack_q(const swa__job *j, const swa__unit *u, const swa_in *head, const swa_in *tail,
                        const swa__scratch *w, float *q, float *scale) {
    const int dk = j->shape.head_dim, dt = j->shape.tail_dim, form = j->geo.form, q8 = j->a.compute == SWA_Q8;
    float *row = dk <= 256 ? w->s : w->k;              /* both are free until the first block, one is large enough */
    const void *src[SWA__LANES];
    int i, r, nr;
    if (j->few) {
        swa__pack_few(j, u, head, tail, row, q, scale);
        return;
    }
    for (r = 0; r < u->n; r += nr, q += (dk + dt) * nr) {
        float *to;
        nr = swa__panel(j, u->n - r);
        to = q + dk * nr;
        for (i = 0; i < nr; i++) src[i] = swa__q_row(j, head, u->h, u->r0 + (r + i < u->n ? r + i : u->n - 1));
        if (q8) swa__q_integers(j, src, nr, row, scale + r);
        for (i = r + nr; i < r + 2 * nr && i < u->n; i++)                /* the next panel's, which lie far apart */
            swa__rows_ahead((const unsigned char *)swa__q_row(j, head, u->h, u->r0 + i), 1, 0, dk * 4);
        j->kr->pack(src, SWA_F32, nr, dk, q8 ? 1.0f : j->qscale, q);
        if (dt > 0) {
            for (i = 0; i < nr; i++) src[i] = swa__q_row(j, tail, u->h, u->r0 + (r + i < u->n ? r + i : u->n - 1));
            j->kr->pack(src, SWA_F32, nr, dt, j->qscale, to);
        }
        if (form == SWA__PLAIN) continue;
        j->kr->pair(form, dk, 0xffffu, nr, SWA__TINY_QK, q, q);
        if (form == SWA__PAIRS) to = q + (dk + 1) / 2 * nr;
        if (dt > 0) j->kr->pair(form, dt, 0xffffu, nr, SWA__TINY_QK, q + dk * nr, to);
    }
}
static int swa__clip(int64_t x) { return x < 0 ? 0 : x > SWA_BLOCK ? SWA_BLOCK : (int)x; }

/* What rows [r, r+n) of the unit see of the block at pos. Bounds rise with the token, so the ends of the range tell. */
static void swa__lanes_make(const swa__job *j, const swa__unit *u, const swa__scratch *w, int r, int n, int64_t pos,
                            swa__lanes *l) {
    const int t0 = u->r0 / j->group, first = (u->r0 + r) / j->group - t0, last = (u->r0 + r + n - 1) / j->group - t0;
    const int from = u->h * j->group;
    const size_t rows = (size_t)swa__tile_rows(&j->shape) + SWA__LANES;
    int i, t, head, full;    /* head: of the group */
    l->q_scale[0] = l->q_scale[1] = NULL;
    if (j->a.compute == SWA_Q8) {
        l->q_scale[1] = w->q_scale + r;
        l->q_scale[0] = l->q_scale[1] + (j->a.q_sink.p != NULL ? rows : 0);
    }
    l->lo[1] = swa__clip(w->lo[first] - pos);
    l->hi[1] = swa__clip(w->hi[last] - pos);
    l->lo[0] = 0;
    l->hi[0] = swa__clip(w->sink[last] - pos);
    if (l->hi[0] > 0) l->lo[0] = swa__clip(swa__max64(j->kv[0].pos - pos, 0));
    l->full_lo = swa__clip(w->lo[last] - pos);
    l->full_hi = swa__clip(w->hi[first] - pos);
    full = l->full_lo == 0 && l->full_hi == SWA_BLOCK && l->hi[0] == 0;
    if (full && !j->few && !j->geo.mods) {         /* the whole block is visible to all: no row is looked at */
        for (i = 0; i < SWA__LANES; i++) {         /* unless keys are missing */
            l->first[i] = l->sink[i] = 0.0f;
            l->last[i] = (float)SWA_BLOCK;
        }
        return;
    }
    for (i = 0, t = first, head = (u->r0 + r) % j->group; i < n; i++, head++) {
        if (head == j->group) {
            head = 0;
            t++;
        }
        l->first[i] = (float)swa__clip(w->lo[t] - pos);
        l->last[i] = (float)swa__clip(w->hi[t] - pos);
        l->sink[i] = (float)swa__clip(swa__min64(w->sink[t], w->lo[t]) - pos);
        if (!j->geo.mods) continue;
        l->q[i] = (float)(j->pos + t0 + t - pos);
        l->slope[i] = j->geo.alibi ? (float)(-(double)j->a.alibi[from + head] * SWA__LOG2E) : 0.0f;
        l->bias[i] =
            j->geo.bias ? j->a.bias + (j->row + t0 + t) * j->a.bias_token + (from + head) * j->a.bias_head : NULL;
    }
    for (; !j->few && i < j->kr->nr; i++) {        /* idle lanes do as the last row does */
        l->first[i] = l->first[n - 1];
        l->last[i] = l->last[n - 1];
        l->sink[i] = l->sink[n - 1];
        l->q[i] = l->q[n - 1];
        l->slope[i] = l->slope[n - 1];
        l->bias[i] = l->bias[n - 1];
    }
}
/* What token t of a job sees through the window, cut to the keys that are there. */
static int64_t swa__window_of(const swa__job *j, int t, int64_t *lo, int64_t *hi) {
    int64_t from = j->n_kv > 0 ? j->kv[0].pos : 0, to = j->n_kv > 0 ? j->kv[j->n_kv - 1].pos + j->kv[j->n_kv - 1].n : 0;
    swa__bounds(&j->window, j->pos + t, lo, hi);
    *lo = swa__min64(swa__max64(*lo, from), to);
    *hi = swa__max64(*lo, swa__min64(*hi, to));
    return to;
}
static int64_t swa__seen(const swa__job *j, int t) {
    int64_t lo, hi;
    swa__window_of(j, t, &lo, &hi);
    return hi - lo;
}
static void swa__tokens(const swa__job *j, int first, int last, const swa__scratch *w) {
    int t;
    for (t = first; t <= last; t++) {
        int64_t to = swa__window_of(j, t, &w->lo[t - first], &w->hi[t - first]);
        int64_t sink = swa__min64(swa__min64(j->window.n_sink, j->pos + t + 1), to);
        w->sink[t - first] = sink > (j->n_kv > 0 ? j->kv[0].pos : 0) ? sink : 0;
    }
}
/* The blocks that tokens [first, last] of a job touch, as a list: sinks' blocks, then the window's. Blocks without a
   key are not in it: between two segments any number of them may lie. */
typedef struct { int64_t sinks, lo, hi; int n; } swa__blocks;    /* n blocks with keys, of [0, sinks) and [lo, hi) */
static int64_t swa__block_end(int64_t pos) { return pos / SWA_BLOCK + (pos % SWA_BLOCK != 0); }
static int swa__blocks_filled(const swa__job *j, int64_t lo, int64_t hi) {
    int64_t n = 0;
    int i;
    for (i = swa__find(j, lo * SWA_BLOCK); i < j->n_kv && j->kv[i].pos / SWA_BLOCK < hi; i++) {
        int64_t end = swa__min64(swa__block_end(j->kv[i].pos + j->kv[i].n), hi);
        if (j->kv[i].n == 0) continue;
        lo = swa__max64(lo, j->kv[i].pos / SWA_BLOCK);
        if (lo < end) n += end - lo;
        lo = swa__max64(lo, end);
    }
    return (int)n;
}
static swa__blocks swa__blocks_of(const swa__job *j, int first, int last) {
    swa__blocks b;
    int64_t lo, hi, none, to = swa__window_of(j, last, &none, &hi);
    swa__window_of(j, first, &lo, &none);
    b.sinks = swa__block_end(swa__min64(swa__min64(j->window.n_sink, j->pos + last + 1), to));
    b.lo = lo / SWA_BLOCK;
    b.hi = hi > lo ? swa__block_end(hi) : b.lo;
    b.lo = swa__max64(b.lo, b.sinks);
    b.hi = swa__max64(b.hi, b.lo);
    b.n = swa__blocks_filled(j, 0, b.sinks) + swa__blocks_filled(j, b.lo, b.hi);
    return b;
}
/* The first block of the list from `at` on; hi after the last. */
static int64_t swa__block_from(const swa__job *j, const swa__blocks *b, int64_t at) {
    for (;;) {
        int64_t next = b->hi;
        int i;
        if (at >= b->sinks && at < b->lo) at = b->lo;
        if (at >= b->hi) return b->hi;
        for (i = swa__find(j, at * SWA_BLOCK); i < j->n_kv && j->kv[i].n == 0; i++) {}
        if (i < j->n_kv) next = swa__max64(at, j->kv[i].pos / SWA_BLOCK);
        if (next == at) return at;
        at = next;
    }
}

/* The block that is read after *at of head *h: the list's next one, or the first of the next head. 0: there is none. */
static int swa__block_after(const swa__job *j, const swa__blocks *list, int *h, int64_t *at) {
    *at = swa__block_from(j, list, *at + 1);
    if (*at < list->hi) return 1;
    *at = swa__block_from(j, list, 0);
    return ++*h < j->shape.n_kv_heads;
}

/* ---- one unit ---- */

static float *swa__partial(const swa__job *j, unsigned char *split, size_t index) {
    return (float *)(void *)(split + index * swa__partial_bytes(&j->shape));
}
static void swa__rows_clear(const swa__job *j, int rows, float *o, float *m, float *l) {
    int i;
    if (o != NULL) memset(o, 0, (size_t)rows * (size_t)j->geo.dvp * sizeof(float));
    for (i = 0; i < rows; i++) {
        m[i] = SWA__NONE;
        l[i] = 0.0f;
    }
}
/* The learned logit is one more block without values: maximum the logit, sum 1; none (sum 0) if it is -inf. */
static float swa__sink_logit(float logit, float *m) {
    *m = SWA__NONE;
    if ((swa__bits_of(logit) & 0xff800000u) == 0xff800000u) return 0.0f;
    *m = (float)((double)logit * SWA__LOG2E);
    return 1.0f;
}
static float swa__lse(float m, float l) {
    return l > 0.0f ? (float)((double)m * SWA__LN2 + log((double)l)) : swa__float_of(0xff800000u);
}
static void swa__row_stats(const swa__job *j, int h, int r, float m, float l) {
    int64_t at = (j->row + r / j->group) * j->shape.n_heads + (int64_t)h * j->group + r % j->group;
    if (j->a.lse != NULL) j->a.lse[at] = swa__lse(m, l);
    if (j->a.stat != NULL) {
        j->a.stat[2 * at] = m;
        j->a.stat[2 * at + 1] = l;
    }
}
/* Finished rows [rows][dvp], m, l (all in scratch) of KV head h from row r0 on go out. */
static void swa__rows_out(const swa__job *j, int h, int r0, int rows, float *o, float *m, float *l,
                          const swa__scratch *w) {
    float *out[SWA__FEW];
    int i;
    if (j->a.sink_logits != NULL) memset(w->row, 0, (size_t)j->geo.dvp * sizeof(float));
    for (i = 0; i < rows; i++) {
        out[i] = swa__out_row(j, h, r0 + i);
        swa__row_stats(j, h, r0 + i, m[i], l[i]);
        if (j->a.stat != NULL) l[i] = 1.0f;
        else if (j->a.sink_logits != NULL) {
            *w->lb = swa__sink_logit(j->a.sink_logits[h * j->group + (r0 + i) % j->group], w->mb);
            j->kr->fold(1, j->geo.dvp, o + (size_t)i * (size_t)j->geo.dvp, m + i, l + i, w->row, w->mb, w->lb);
        }
    }
    for (; i < SWA__LANES; i++) l[i] = 1.0f;
    j->kr->finish(rows, j->geo.dvp, j->shape.v_dim, o, l, w->inv, w->row, out);
}
/* A panel o [dvp][nr] as rows: unnormalised into `to`, which the row forms above finish. */
static void swa__panel_rows(const swa__job *j, int rows, const float *o, const swa__scratch *w, float *to,
                            size_t stride) {
    float *out[SWA__LANES];
    int i;
    for (i = 0; i < SWA__LANES; i++) w->lb[i] = 1.0f;
    for (i = 0; i < rows; i++) out[i] = to + (size_t)i * stride;
    j->kr->unpack(swa__panel(j, rows), rows, j->shape.v_dim, o, w->lb, w->inv, out);
}
/* No block has reached a panel yet, so its o is undefined. */
static int swa__panel_empty(int rows, const float *m) {
    while (rows > 0 && m[rows - 1] <= SWA__NONE) rows--;
    return rows == 0;
}
static void swa__panel_out(const swa__job *j, const swa__unit *u, int r, int rows, float *o, float *m, float *l,
                           const swa__scratch *w) {
    float *out[SWA__LANES];
    const int nr = swa__panel(j, rows);
    int i;
    if (swa__panel_empty(rows, m)) swa__rows_clear(j, nr, o, m, l);
    for (i = 0; i < nr; i++) {
        int head = u->h * j->group + (u->r0 + r + i) % j->group;
        w->mb[i] = SWA__NONE;
        w->lb[i] = 0.0f;
        if (i >= rows) { l[i] = 1.0f; continue; }
        out[i] = swa__out_row(j, u->h, u->r0 + r + i);
        swa__row_stats(j, u->h, u->r0 + r + i, m[i], l[i]);
        if (j->a.stat != NULL) l[i] = 1.0f;
        else if (j->a.sink_logits != NULL) w->lb[i] = swa__sink_logit(j->a.sink_logits[head], &w->mb[i]);
    }
    if (j->a.sink_logits != NULL && j->a.stat == NULL) j->kr->fold_panel(nr, j->shape.v_dim, o, m, l, w->mb, w->lb);
    for (i = 0; i < SWA__LANES; i++) w->lb[i] = i < rows ? l[i] : 1.0f;
    j->kr->unpack(nr, rows, j->shape.v_dim, o, w->lb, w->inv, out);
}
/* The tiles of the block at pos that a unit's rows see through the window. */
static void swa__unit_tiles(const swa__scratch *w, int last, int64_t pos, int *t0, int *t1) {
    *t0 = swa__clip(w->lo[0] - pos) / 16;
    *t1 = (swa__clip(w->hi[last] - pos) + 15) / 16;
}
/* Where K of the 16 keys from pos on lies, to be fetched: in the ring, with its tail, or (few rows) the caller's rows,
   next_gap bytes from the end of one to the next. step: bytes from tile to tile. next is left as it is if neither. */
static void swa__tile_source(const swa__job *j, const swa_kv *kv, int h, int64_t pos, swa__tile *to, int64_t *step,
                             int64_t *tail_step) {
    const int64_t dk = j->shape.head_dim, es = (int64_t)swa__type_size((int)kv->k_type);
    const int64_t token = swa__stride(kv->k_token, dk * j->shape.n_kv_heads);
    swa__tile t;
    to->next_gap = kv->layout_ != 0 ? 0 : (token - dk) * es;
    *step = (kv->layout_ != 0 ? dk : token) * 16 * es;
    *tail_step = (int64_t)j->shape.tail_dim * 16 * (int64_t)swa__type_size((int)kv->tail_type);
    if (kv->layout_ != 0 && swa__tile_direct(j, kv, h, pos, &t)) {
        to->next = (const char *)t.k;
        to->next_tail = (const char *)t.tail;
    }
    if (kv->layout_ == 0 && j->few)
        to->next = (const char *)kv->k + ((pos - kv->pos) * token + h * swa__stride(kv->k_head, dk)) * es;
}
/* Gives each of the block's tiles [t0, t1) one tile to fetch: in reading order, after the *fetched tiles that follow
   this block and were fetched before. NULL where K is not read in place. So a short block at the end of the window
   does not leave the next head's first block unfetched. last: the unit's last token, counted from its first. */
static void swa__look_ahead(const swa__job *j, const swa__blocks *list, const swa__scratch *w, int last, int h,
                            int64_t at, int *fetched, swa__block *b) {
    int skip = *fetched, t = b->t0, n = -1, i, a, e;
    int64_t step = 0, tail_step = 0;
    while (j->expand == NULL && t < b->t1 && swa__block_after(j, list, &h, &at)) {
        swa__tile from;
        int64_t pos = at * SWA_BLOCK, end = 0;
        from.next = from.next_tail = NULL;
        from.next_gap = 0;
        swa__unit_tiles(w, last, pos, &a, &e);
        if (n < 0) n = e - a;
        i = skip < e - a ? skip : e - a;
        skip -= i;
        for (a += i; a < e && t < b->t1; a++) {
            if (from.next != NULL) from.next += step;
            if (from.next_tail != NULL) from.next_tail += tail_step;
            if (from.next == NULL || pos + a * 16 >= end) {
                from.next = from.next_tail = NULL;
                i = swa__find(j, pos + a * 16);
                if (i < j->n_kv && j->kv[i].pos <= pos + a * 16) {
                    swa__tile_source(j, &j->kv[i], h, pos + a * 16, &from, &step, &tail_step);
                    end = j->kv[i].pos + j->kv[i].n;
                }
            }
            b->tile[t].next = from.next;
            b->tile[t].next_tail = from.next_tail;
            b->tile[t++].next_gap = from.next_gap;
        }
    }
    *fetched += b->t1 - b->t0 - (n > 0 ? n : 0);
    if (*fetched < 0) *fetched = 0;
}
static void swa__block_few(const swa__job *j, const swa__unit *u, const swa__scratch *w, swa__block *b,
                           const swa__lanes *l, float *part) {
    const float *qs = j->a.q_sink.p != NULL && j->window.n_sink > 0 ? w->q_sink : w->q;
    const size_t dvp = (size_t)j->geo.dvp, stride = swa__partial_bytes(&j->shape) / sizeof(float);
    int i;
    j->kr->few(&j->geo, b, l, u->n, w->q, qs, w->s, w->ob, w->mb, w->lb);
    if (part == NULL) {
        j->kr->fold(u->n, j->geo.dvp, w->o, w->m, w->l, w->ob, w->mb, w->lb);
        return;
    }
    for (i = 0; i < u->n; i++, part += stride * (size_t)u->list) {
        memcpy(part, w->ob + (size_t)i * dvp, dvp * sizeof(float));
        part[dvp] = w->mb[i];
        part[dvp + 1] = w->lb[i];
    }
}
static void swa__block_many(const swa__job *j, const swa__unit *u, const swa__scratch *w, swa__block *b,
                            swa__lanes *l, float *part) {
    const int dkt = j->shape.head_dim + j->shape.tail_dim;
    const size_t dvp = (size_t)j->geo.dvp, stride = swa__partial_bytes(&j->shape) / sizeof(float) * (size_t)u->list;
    int r, i, nr;
    for (r = 0; r < u->n; r += nr) {
        int n = u->n - r < j->kr->nr ? u->n - r : j->kr->nr;
        const float *q = w->q + (size_t)r * (size_t)dkt;
        const float *qs = j->a.q_sink.p != NULL && j->window.n_sink > 0 ? w->q_sink + (size_t)r * (size_t)dkt : q;
        float *o = w->o + (size_t)r * dvp;
        nr = swa__panel(j, n);
        swa__lanes_make(j, u, w, r, n, b->pos, l);
        if (part != NULL) swa__rows_clear(j, nr, NULL, w->m + r, w->l + r);
        l->first_block = swa__panel_empty(n, w->m + r);
        l->fetch = r == 0;
        if (l->lo[0] < l->hi[0] || l->lo[1] < l->hi[1])
            j->kr->many[j->geo.form][nr < j->kr->nr](&j->geo, b, l, q, qs, w->s, o, w->m + r, w->l + r);
        if (part == NULL) continue;
        if (swa__panel_empty(n, w->m + r)) swa__rows_clear(j, nr, o, w->m + r, w->l + r);
        swa__panel_rows(j, n, o, w, part + (size_t)r * stride, stride);
        for (i = 0; i < n; i++) {
            part[(size_t)(r + i) * stride + dvp] = w->m[r + i];
            part[(size_t)(r + i) * stride + dvp + 1] = w->l[r + i];
        }
    }
}
static void swa__stage_expanded(const swa__job *j, int h, const int range[4], const swa__scratch *w,
                                swa__block *b);   /* [SECTION 13] */
/* All blocks of a unit; folded here, or (split) stored one by one for phase 1. fetched: see swa__look_ahead. */
static void swa__unit_run(const swa__job *j, const swa__unit *u, const swa__blocks *list, const swa__scratch *w,
                          unsigned char *split, int *fetched) {
    const int few = j->few, nr = j->kr->nr, rows = few ? u->n : (u->n + nr - 1) / nr * nr;
    const int t0 = u->r0 / j->group, t1 = (u->r0 + u->n - 1) / j->group;
    swa__block b;
    swa__lanes l;
    int i, r, range[4];
    int64_t at = u->at;
    b.l1 = swa__fetch_l1();
    swa__tokens(j, t0, t1, w);
    swa__pack_q(j, u, &j->a.q, &j->a.q_tail, w, w->q, w->q_scale);
    if (j->a.q_sink.p != NULL && j->window.n_sink > 0)
        swa__pack_q(j, u, &j->a.q_sink, &j->a.q_sink_tail, w, w->q_sink,
                    w->q_scale + swa__tile_rows(&j->shape) + SWA__LANES);
    swa__rows_clear(j, rows, few ? w->o : NULL, w->m, w->l);
    for (i = u->b0; i < u->b1; i++) {
        float *part =
            split != NULL ? swa__partial(j, split, u->partial + (size_t)u->r0 * (size_t)u->list + (size_t)i) : NULL;
        b.pos = at * SWA_BLOCK;
        swa__lanes_make(j, u, w, 0, few ? u->n : 1, b.pos, &l);
        l.hi[1] = swa__clip(w->hi[t1 - t0] - b.pos);
        l.hi[0] = swa__clip(w->sink[t1 - t0] - b.pos);
        swa__ranges(&l, 1, range);
        if (j->expand != NULL) swa__stage_expanded(j, u->h, range, w, &b);
        else swa__stage(j, u->h, range, !few || j->geo.form != SWA__PLAIN, w, &b);
        if (j->geo.form != SWA__PLAIN) swa__stage_half(j, range, w, &b);
        swa__unit_tiles(w, t1 - t0, b.pos, &b.t0, &b.t1);
        swa__look_ahead(j, list, w, t1 - t0, u->h, at, fetched, &b);
        if (few) swa__block_few(j, u, w, &b, &l, part);
        else swa__block_many(j, u, w, &b, &l, part);
        at = swa__block_from(j, list, at + 1);
    }
    if (split != NULL) return;
    if (few) swa__rows_out(j, u->h, u->r0, u->n, w->o, w->m, w->l, w);
    for (r = 0; !few && r < u->n; r += nr)
        swa__panel_out(j, u, r, u->n - r < nr ? u->n - r : nr, w->o + (size_t)r * (size_t)j->geo.dvp, w->m + r,
                       w->l + r, w);
}

/* ---- a call: its jobs, its units, its parts ---- */

typedef struct {
    swa__job base;                       /* what all jobs share                                                      */
    const swa__cache *c;                 /* ring call, or ...                                                        */
    int layer;
    const swa_step *step;
    const swa_rows *rows;                /* ... stateless call                                                       */
    int n_jobs, sinks;
    unsigned char *scratch, *split;
    size_t part_bytes, split_rows;
    const swa_mla *mla;                  /* if not NULL, only the runs that take this path: [SECTION 13]             */
    swa_mla_path path;
    swa_kv kv[5];                        /* of the job last made                                                     */
} swa__call;

/* How a phase is cut: rows of a unit in each shape, and whether each block is a unit of its own. */
typedef struct { int few, many, split; } swa__cut;

static swa_in swa__in(swa_in in, int heads, int dim) {
    if (in.head == 0) in.head = dim;
    if (in.token == 0) in.token = (int64_t)heads * dim;
    return in;
}
static int swa__finite(float x) { return (swa__bits_of(x) & 0x7f800000u) != 0x7f800000u; }

static swa_status swa__attn_check(const swa_shape *s, const swa_attn *a, int stored_type) {
    if (a->q.p == NULL && a->k.p == NULL) return SWA_ERR_ARG;
    if (a->q.p != NULL) {
        if (a->out.p == NULL || (s->tail_dim > 0 && a->q_tail.p == NULL)) return SWA_ERR_ARG;
        if (a->q_sink.p != NULL && s->tail_dim > 0 && a->q_sink_tail.p == NULL) return SWA_ERR_ARG;
        if (!(a->scale != 0.0f) && (s->tail_dim > 0 || s->v_in_k)) return SWA_ERR_ARG;
        if (!swa__finite(a->scale) || !swa__finite(a->softcap) || a->softcap < 0.0f) return SWA_ERR_ARG;
        if (a->bias != NULL && (a->bias_n <= 0 || a->bias_first < 0 || a->bias_first > INT64_MAX - a->bias_n))
            return SWA_ERR_ARG;
    }
    if (a->k.p != NULL && ((!s->v_in_k && a->v.p == NULL) || (s->tail_dim > 0 && a->k_tail.p == NULL)))
        return SWA_ERR_ARG;
    if (a->compute == SWA_F32 || a->compute == SWA_BF16) return SWA_OK;
    if (a->compute != SWA_Q8) return SWA_ERR_ARG;
    /* up to here the sums of int8 products are exact in f32 too, and so the same on every instruction set */
    return stored_type == SWA_Q8 && s->tail_dim == 0 && s->head_dim <= 1040 ? SWA_OK : SWA_ERR_UNSUPPORTED;
}
static void swa__call_base(swa__call *call, const swa_shape *s, const swa_attn *attn, int isa) {
    swa__job *j = &call->base;
    swa_attn *a = &j->a;
    double scale = attn->scale != 0.0f ? (double)attn->scale : 1.0 / sqrt((double)s->head_dim);
    memset(call, 0, sizeof *call);
    j->kr = swa__kernels_of(isa);
    j->shape = *s;
    j->group = s->n_heads / s->n_kv_heads;
    *a = *attn;
    a->q = swa__in(a->q, s->n_heads, s->head_dim);
    a->q_tail = swa__in(a->q_tail, s->n_heads, s->tail_dim);
    a->q_sink = swa__in(a->q_sink, s->n_heads, s->head_dim);
    a->q_sink_tail = swa__in(a->q_sink_tail, s->n_heads, s->tail_dim);
    a->k = swa__in(a->k, s->n_kv_heads, s->head_dim);
    a->k_tail = swa__in(a->k_tail, s->n_kv_heads, s->tail_dim);
    a->v = swa__in(a->v, s->n_kv_heads, s->v_dim);
    if (a->out.head == 0) a->out.head = s->v_dim;
    if (a->out.token == 0) a->out.token = (int64_t)s->n_heads * s->v_dim;
    j->qscale = (float)(a->softcap > 0.0f ? scale / (double)a->softcap : scale * SWA__LOG2E);
    j->geo.dk = s->head_dim;
    j->geo.dt = s->tail_dim;
    j->geo.dv = s->v_dim;
    j->geo.dvp = (s->v_dim + 15) / 16 * 16;
    j->geo.v_in_k = s->v_in_k != 0;
    j->geo.cap2 = a->softcap > 0.0f ? (float)((double)a->softcap * SWA__LOG2E) : 0.0f;
    j->geo.alibi = a->alibi != NULL;
    j->geo.bias = a->bias != NULL;
    j->geo.bias_first = a->bias_first;
    j->geo.bias_n = a->bias_n;
    j->geo.mods = a->softcap > 0.0f || a->alibi != NULL || a->bias != NULL;
    if (a->compute == SWA_BF16) j->geo.form = swa__has_pairs(j->kr) ? SWA__PAIRS : SWA__HALF;
    j->geo.dots = a->compute == SWA_Q8 && swa__has_dots(j->kr);
}
/* This step's rows of one run as a segment. */
static swa_kv swa__new_rows(const swa__job *j, int64_t row, int64_t pos, int n) {
    swa_kv kv;
    memset(&kv, 0, sizeof kv);
    kv.k = j->a.k.p + row * j->a.k.token;
    kv.k_token = j->a.k.token;
    kv.k_head = j->a.k.head;
    if (j->shape.tail_dim > 0) {
        kv.tail = j->a.k_tail.p + row * j->a.k_tail.token;
        kv.tail_token = j->a.k_tail.token;
        kv.tail_head = j->a.k_tail.head;
    }
    if (!j->shape.v_in_k) {
        kv.v = j->a.v.p + row * j->a.v.token;
        kv.v_token = j->a.v.token;
        kv.v_head = j->a.v.head;
    }
    kv.pos = pos;
    kv.n = n;
    return kv;
}
static const swa__job *swa__expand_rows_of(const struct swa__expand *e);                           /* [SECTION 13] */
static swa_mla_path swa__mla_path_of(const swa_mla *m, const swa__cache *c, int layer, const swa_run *run);
/* Job i of a call; its segments lie in the call. */
static void swa__job_of(swa__call *call, int i, swa__job *j) {
    *j = call->base;
    if (call->rows != NULL) {
        j->pos = call->rows->pos;
        j->n = call->rows->n_tokens;
        j->window = call->rows->window;
        j->kv = call->rows->kv;
        j->n_kv = call->rows->n_kv;
    } else {
        const swa_run *run = &call->step->runs[i];
        int64_t to = j->a.k.p != NULL ? run->pos : run->pos + run->n;
        j->pos = run->pos;
        j->n = run->n;
        j->row = run->row;
        j->window = swa__layer_of(call->c, call->layer)->window;
        j->window.prefix = run->prefix;
        j->window.prefix_first = run->pos;
        j->kv = call->kv;
        if (run->n > 0)
            j->n_kv = swa__segments(call->c, call->layer, run->seq, swa__lowest(&j->window, run->pos), to, call->kv);
        if (run->n > 0 && j->a.k.p != NULL)
            call->kv[j->n_kv++] =
                swa__new_rows(j->expand != NULL ? swa__expand_rows_of(j->expand) : j, run->row, run->pos, run->n);
        if (run->n > 0 && call->mla != NULL && swa__mla_path_of(call->mla, call->c, call->layer, run) != call->path)
            j->n = 0;
    }
    j->few = j->n * j->group < SWA__FEW && !j->geo.v_in_k;
    if (j->few && j->geo.form != SWA__PLAIN) j->geo.form = SWA__HALF;
    j->geo.v_across = j->geo.v_in_k && j->geo.form == SWA__PLAIN ? 16 : 1;
    j->geo.v_along = j->geo.v_in_k && j->geo.form == SWA__PLAIN ? 1 : j->geo.dvp;
}
/* Units and partial results of a cut; what phase 0 walks and phase 1 folds. */
static void swa__count(swa__call *call, const swa__cut *cut, double *units, double *partials) {
    swa__job j;
    int i;
    *units = *partials = 0;
    for (i = 0; i < call->n_jobs; i++) {
        double tiles, nb;
        int64_t rows;
        swa__job_of(call, i, &j);
        rows = (int64_t)j.n * j.group;
        if (rows == 0) continue;
        tiles = (double)((rows + (j.few ? cut->few : cut->many) - 1) / (j.few ? cut->few : cut->many));
        nb = swa__blocks_of(&j, 0, j.n - 1).n;
        *units += tiles * j.shape.n_kv_heads * (cut->split ? nb : 1);
        *partials += (double)rows * j.shape.n_kv_heads * nb;
    }
}
/* Rows cut until every part has one share, all alike. 0 if they cannot be: several runs, or queries that see less. */
static int swa__cut_even(swa__call *call, swa__cut *cut, int parts) {
    const int nr = call->base.kr->nr;
    const swa__cut whole = *cut;
    double units, partials;
    swa__job j;
    if (call->n_jobs != 1) return 0;
    swa__job_of(call, 0, &j);
    if (j.n == 0 || j.few || j.geo.form != SWA__PLAIN) return 0;
    if ((double)swa__seen(&j, 0) < 0.9 * (double)swa__seen(&j, j.n - 1)) return 0;
    for (;; cut->many = (cut->many / nr + 1) / 2 * nr) {
        swa__count(call, cut, &units, &partials);
        if (units >= parts && (int64_t)units % parts == 0 && j.n * j.group % cut->many == 0) return 1;
        if (cut->many <= nr || units >= parts) break;
    }
    *cut = whole;
    return 0;
}
static swa__cut swa__cut_make(swa__call *call, int parts) {
    swa__cut cut;
    double units, partials;
    const int nr = call->base.kr->nr;
    cut.few = SWA__FEW;
    cut.many = swa__tile_rows(&call->base.shape) / nr * nr;
    cut.split = 0;
    if (parts == 1) return cut;
    swa__count(call, &cut, &units, &partials);
    if (units >= 4.0 * parts || swa__cut_even(call, &cut, parts)) return cut;
    cut.split = partials <= (double)call->split_rows;        /* by keys: nobody stages what another has staged */
    for (swa__count(call, &cut, &units, &partials); units < 4.0 * parts && cut.many > nr;
         swa__count(call, &cut, &units, &partials))
        cut.many = (cut.many / nr + 1) / 2 * nr;
    for (; units < parts && cut.few > 1; swa__count(call, &cut, &units, &partials)) cut.few /= 2;
    return cut;
}
/* Roughly the keys that the unit's rows see, times rows; few rows cost as much as some more, for their bandwidth. */
static double swa__cost(const swa__job *j, const swa__unit *u) {
    const int first = u->r0 / j->group, last = (u->r0 + u->n - 1) / j->group;
    double keys = ((double)swa__seen(j, first) + (double)swa__seen(j, last)) / 2 + 64.0;
    return 1.0 + (j->few ? u->n + 8.0 : (double)u->n) * keys * (u->b1 - u->b0) / (u->list > 0 ? u->list : 1);
}
/* Walks the units of a cut in a fixed order. Fills in *u and the blocks' list; 0 at the end. */
typedef struct {
    int i, h, r0, block, open;
    int64_t at;
    size_t partial;
    swa__job j;
    swa__blocks all;
} swa__walk;
static void swa__walk_begin(swa__walk *x) {
    x->i = x->open = 0;
    x->partial = 0;
}
static int swa__walk_next(swa__call *call, const swa__cut *cut, swa__walk *x, swa__unit *u, swa__blocks *list) {
    for (;;) {
        int rows, tile;
        if (!x->open) {
            if (x->i >= call->n_jobs) return 0;
            swa__job_of(call, x->i, &x->j);
            x->h = x->r0 = x->block = 0;
            x->open = 1;
            if (x->j.n > 0) {
                x->all = swa__blocks_of(&x->j, 0, x->j.n - 1);
                x->at = swa__block_from(&x->j, &x->all, 0);
            }
        }
        rows = x->j.n * x->j.group;
        tile = x->j.few ? cut->few : cut->many;
        if (rows == 0 || x->h == x->j.shape.n_kv_heads) {
            x->partial += rows > 0 ? (size_t)rows * (size_t)x->j.shape.n_kv_heads * (size_t)x->all.n : 0;
            x->open = 0;
            x->i++;
            continue;
        }
        u->h = x->h;
        u->r0 = x->r0;
        u->n = rows - x->r0 < tile ? rows - x->r0 : tile;
        *list = x->all;
        if (!cut->split) *list = swa__blocks_of(&x->j, u->r0 / x->j.group, (u->r0 + u->n - 1) / x->j.group);
        u->list = list->n;
        u->b0 = cut->split ? x->block : 0;
        u->b1 = cut->split ? x->block + 1 : list->n;
        u->at = cut->split ? x->at : swa__block_from(&x->j, list, 0);
        u->partial = x->partial + (size_t)x->h * (size_t)rows * (size_t)x->all.n;
        x->block = cut->split && x->block + 1 < x->all.n ? x->block + 1 : 0;
        if (cut->split) x->at = swa__block_from(&x->j, &x->all, x->block > 0 ? x->at + 1 : 0);
        if (x->block > 0) return 1;
        x->r0 += u->n;
        if (x->r0 == rows) {
            x->r0 = 0;
            x->h++;
        }
        if (!cut->split || x->all.n > 0) return 1;
    }
}
/* Units whose middle lies in this part's share of the total cost: each belongs to exactly one part. The last share has
   no end, for a unit so small beside the others that its middle rounds to the total. */
static void swa__attend_units(swa__call *call, const swa__cut *cut, int part, int parts) {
    const swa__scratch w = swa__carve(&call->base.shape, call->sinks, call->scratch + (size_t)part * call->part_bytes);
    swa__walk x;
    swa__unit u;
    swa__blocks list;
    double total = 0, at = 0, cost, middle;
    int fetched = 0;
    swa__walk_begin(&x);
    if (parts > 1)
        while (swa__walk_next(call, cut, &x, &u, &list)) total += swa__cost(&x.j, &u);
    swa__walk_begin(&x);
    while (swa__walk_next(call, cut, &x, &u, &list)) {
        cost = parts > 1 ? swa__cost(&x.j, &u) : 0;
        middle = (at + cost / 2) * parts;
        if (middle >= total * part && (part + 1 == parts || middle < total * (part + 1))) {
            if (u.h == 0 && u.r0 == 0) fetched = 0;
            swa__unit_run(&x.j, &u, &list, &w, cut->split ? call->split : NULL, &fetched);
        }
        at += cost;
    }
}
/* Folds the partial results of split rows, in order of position; rows are dealt out evenly. */
static void swa__fold_rows(swa__call *call, int part, int parts) {
    const swa__scratch w = swa__carve(&call->base.shape, call->sinks, call->scratch + (size_t)part * call->part_bytes);
    const size_t dvp = (size_t)call->base.geo.dvp;
    size_t base = 0;
    int i, h, r, b;
    for (i = 0; i < call->n_jobs; i++) {
        swa__job j;
        swa__blocks all;
        int rows;
        swa__job_of(call, i, &j);
        rows = j.n * j.group;
        if (rows == 0) continue;
        all = swa__blocks_of(&j, 0, j.n - 1);
        for (h = 0; h < j.shape.n_kv_heads; h++)
            for (r = 0; r < rows; r++) {
                if ((h * (int64_t)rows + r) % parts != part) continue;
                swa__rows_clear(&j, 1, w.o, w.m, w.l);
                for (b = 0; b < all.n; b++) {
                    float *p = swa__partial(&j, call->split,
                                            base + ((size_t)h * (size_t)rows + (size_t)r) * (size_t)all.n + (size_t)b);
                    j.kr->fold(1, j.geo.dvp, w.o, w.m, w.l, p, p + dvp, p + dvp + 1);
                }
                swa__rows_out(&j, h, r, 1, w.o, w.m, w.l, &w);
            }
        base += (size_t)rows * (size_t)j.shape.n_kv_heads * (size_t)all.n;
    }
}

/* ---- store: the new rows go into the ring ---- */

/* Lane i of an f32 tile [dim][16] into a tile of the ring; row holds it twice on the way, as f32 and narrowed. */
static void swa__store_lane(const swa__job *j, int type, const float *src, int dim, int i, float *row,
                            unsigned char *dst) {
    const size_t es = swa__type_size(type), pad = ((size_t)dim + 15) / 16 * 16;
    const unsigned char *x = (const unsigned char *)(row + pad);
    int d;
    for (d = 0; d < (int)pad; d++) row[d] = d < dim ? src[d * 16 + i] : 0.0f;
    j->kr->narrow(type, row, row + pad, pad);
    for (d = 0, dst += (size_t)i * es; d < dim; d++, x += es, dst += 16 * es) {   /* each copy is one move */
        if (es == 4) memcpy(dst, x, 4);
        else if (es == 2) memcpy(dst, x, 2);
        else *dst = *x;
    }
}
/* Positions p..p+n-1, which lie in one tile from slot on, of KV head h. */
static void swa__store_tile(const swa__job *j, const swa_kv *rows, const swa_kv *ring, int h, int64_t p, int64_t slot,
                            int n, const swa__scratch *w) {
    const swa_shape *s = &j->shape;
    const int a = (int)(slot & 15), dim[2] = { s->head_dim, s->tail_dim };
    const size_t lane = (size_t)h * (size_t)ring->slots_ + (size_t)(slot - a);
    swa__dst to;
    int i, x;
    to.k = w->k;
    to.tail = w->k + 16 * s->head_dim;
    to.v = w->v;
    to.k_scale = w->scale;
    to.tail_scale = w->scale + SWA_BLOCK;
    to.v_scale = w->scale + 2 * SWA_BLOCK;
    to.dvp = j->geo.dvp;
    swa__stage_rows(j, rows, h, p, a, a + n, 0, w->row, &to);
    for (x = 0; x < 2; x++) {
        const int type = (int)(x == 0 ? ring->k_type : ring->tail_type);
        unsigned char *dst = (unsigned char *)(uintptr_t)(x == 0 ? ring->k : ring->tail);
        const float *src = x == 0 ? to.k : to.tail;
        if (dim[x] == 0) continue;
        dst += ((size_t)h * (size_t)(x == 0 ? ring->k_head : ring->tail_head) + (size_t)(slot - a) * (size_t)dim[x])
               * swa__type_size(type);
        if (n == 16) {
            j->kr->narrow(type, src, dst, (size_t)dim[x] * 16);
            continue;
        }
        for (i = a; i < a + n; i++) swa__store_lane(j, type, src, dim[x], i, w->row, dst);
    }
    for (i = a; i < a + n; i++) {
        unsigned char *dst = (unsigned char *)(uintptr_t)ring->v;
        if (ring->k_scale_ != NULL) ((float *)(uintptr_t)ring->k_scale_)[lane + (size_t)i] = to.k_scale[i];
        if (ring->tail_scale_ != NULL) ((float *)(uintptr_t)ring->tail_scale_)[lane + (size_t)i] = to.tail_scale[i];
        if (s->v_in_k) continue;
        dst += ((size_t)h * (size_t)ring->v_head + (size_t)(slot - a + i) * (size_t)ring->v_token)
               * swa__type_size((int)ring->v_type);
        j->kr->narrow((int)ring->v_type, to.v + i * to.dvp, dst, (size_t)to.dvp);
        if (ring->v_scale_ != NULL) ((float *)(uintptr_t)ring->v_scale_)[lane + (size_t)i] = to.v_scale[i];
    }
}
static void swa__store_head(const swa__call *call, const swa__job *j, int seq, int h, const swa__scratch *w) {
    const swa__layer *l = swa__layer_of(call->c, call->layer);
    const swa__seq *s = swa__seq_of(call->c, seq);
    const swa_kv rows = swa__new_rows(j, j->row, j->pos, j->n);
    swa_kv ring = swa__segment(call->c, call->layer, seq, 0, 0);
    const int64_t end = j->pos + j->n;
    int64_t p = j->pos, n, slot;
    for (; p < end; p += n) {
        if (p >= l->window.n_sink && p < end - l->cap) p = end - l->cap;    /* older rows would not survive */
        slot = swa__slot(l, s, p);
        n = swa__min64(16 - (slot & 15), end - p);
        n = swa__min64(n, p < l->window.n_sink ? l->window.n_sink - p : l->cap - (slot - l->sink_slots));
        swa__store_tile(j, &rows, &ring, h, p, slot, (int)n, w);
    }
}
static void swa__store_rows(swa__call *call, int part, int parts) {
    const swa__scratch w = swa__carve(&call->base.shape, call->sinks, call->scratch + (size_t)part * call->part_bytes);
    int64_t unit = 0, *stored;
    int i, h;
    for (i = 0; i < call->n_jobs; i++) {
        swa__job j;
        if (call->step->runs[i].n == 0) continue;
        swa__job_of(call, i, &j);
        stored = swa__stored_of(call->c, call->step->runs[i].seq) + call->layer;
        if (part == 0 && *stored >= j.pos) *stored = j.pos + j.n;       /* the other parts do not look */
        for (h = 0; h < j.shape.n_kv_heads; h++, unit++)
            if (unit % parts == part) swa__store_head(call, &j, call->step->runs[i].seq, h, &w);
    }
}

/* ---- the public calls ---- */

static void swa__phase(swa__call *call, int phase, int part, int parts) {
    swa__cut cut;
    const int attends = call->base.a.q.p != NULL;
    if (phase == 0 && attends) {
        cut = swa__cut_make(call, parts);
        swa__attend_units(call, &cut, part, parts);
    }
    if (phase == 1 && attends && parts > 1) {
        cut = swa__cut_make(call, parts);
        if (cut.split) swa__fold_rows(call, part, parts);
    }
    if (phase == 1 && call->c != NULL && call->base.a.k.p != NULL && !call->base.a.no_store)
        swa__store_rows(call, part, parts);
}
/* Whether this layer has stored what a run needs, and what it stores has not pushed the run's own past out. */
static swa_status swa__past_check(const swa__cache *c, int layer, const swa_run *r, const swa_attn *a) {
    const swa__layer *l = swa__layer_of(c, layer);
    const int64_t stored = swa__stored_of(c, r->seq)[layer];
    if (stored < (a->k.p == NULL ? r->pos + r->n : r->pos)) return SWA_ERR_ORDER;
    if (a->q.p != NULL && stored > r->pos && !l->bounded && r->n > l->cap - (swa__reach(&l->window) - 1))
        return SWA_ERR_CAPACITY;
    return SWA_OK;
}
/* In phase 0 nothing of this call has been done. Only then stored is read: later another part may be writing it. */
static swa_status swa__ring_call(const swa_cache *cache, int layer, const swa_step *step, const swa_attn *attn,
                                 int phase, int part, int parts, swa__call *call) {
    swa__cache *c = swa__get(cache);
    swa_status status;
    int64_t rows = 0;
    int i;
    if (c == NULL || step == NULL || attn == NULL || step->n_runs < 0 || (step->n_runs > 0 && step->runs == NULL))
        return SWA_ERR_ARG;
    if (layer < 0 || layer >= c->d.n_layers) return SWA_ERR_ORDER;
    if (phase < 0 || phase >= SWA_PHASES || part < 0 || part >= parts || parts > c->d.max_parts) return SWA_ERR_ORDER;
    status = swa__attn_check(&c->d.shape, attn, (int)c->d.k_type);
    if (status != SWA_OK) return status;
    for (i = 0; i < step->n_runs; i++) {
        const swa_run *r = &step->runs[i];
        if (r->seq < 0 || r->seq >= c->d.n_seqs || r->n < 0 || r->row != rows) return SWA_ERR_ORDER;
        rows += r->n;
        if (r->n == 0) continue;
        if (swa__seq_of(c, r->seq)->end - r->n != r->pos || r->pos < swa__seq_of(c, r->seq)->start)
            return SWA_ERR_ORDER;
        if (phase == 0) status = swa__past_check(c, layer, r, attn);
        if (status != SWA_OK) return status;
    }
    swa__call_base(call, &c->d.shape, attn, c->d.isa);
    call->c = c;
    call->layer = layer;
    call->step = step;
    call->n_jobs = step->n_runs;
    call->sinks = c->sinks;
    call->base.round_k = (int)c->d.k_type;
    call->base.round_v = (int)c->d.v_type;
    call->base.round_tail = (int)c->d.tail_type;
    call->scratch = (unsigned char *)c + c->scratch;
    call->split = (unsigned char *)c + c->split;
    call->part_bytes = c->part_bytes;
    call->split_rows = c->split_rows;
    return SWA_OK;
}
SWA_API swa_status swa_attend_part(swa_cache *cache, int layer, const swa_step *step, const swa_attn *attn,
                                   int phase, int part, int parts) {
    swa__call call;
    swa_status status = swa__ring_call(cache, layer, step, attn, phase, part, parts, &call);
    if (status == SWA_OK) swa__phase(&call, phase, part, parts);
    return status;
}
/* Every part of every phase, on the threads of OpenMP or on this one. */
static void swa__phases(swa__call *call, int parts) {
    int phase;
    for (phase = 0; phase < SWA_PHASES; phase++) {
#if SWA__OPENMP
        int part;
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
        for (part = 0; part < parts; part++) {
            swa__call mine = *call;      /* the segments of a job lie in it */
            swa__phase(&mine, phase, part, parts);
        }
#else
        swa__phase(call, phase, 0, parts);
#endif
    }
}
SWA_API swa_status swa_attend(swa_cache *cache, int layer, const swa_step *step, const swa_attn *attn) {
    swa__call call;
    swa_status status = swa__ring_call(cache, layer, step, attn, 0, 0, 1, &call);
    if (status != SWA_OK) return status;
#if SWA__OPENMP
    swa__phases(&call, call.c->d.max_parts);
#else
    swa__phases(&call, 1);
#endif
    return SWA_OK;
}

/* Rows of a stateless call that may be split over keys; large ones have units enough. */
static size_t swa__rows_split(const swa_rows *r, const swa_shape *s) {
    swa__job j;
    double rows;
    memset(&j, 0, sizeof j);
    j.window = r->window;
    j.pos = r->pos;
    j.kv = r->kv;
    j.n_kv = r->n_kv;
    if (r->n_tokens == 0) return 0;
    rows = (double)r->n_tokens * s->n_heads * swa__blocks_of(&j, 0, r->n_tokens - 1).n;
    return rows * (double)swa__partial_bytes(s) <= (double)SWA__SPLIT_BYTES ? (size_t)rows : 0;
}
static swa_status swa__rows_check(const swa_rows *r, swa_shape *s) {
    int64_t end = 0, blocks = 0;
    int i;
    if (r == NULL) return SWA_ERR_ARG;
    *s = r->shape;
    if (!swa__shape_resolve(s) || !swa__window_ok(&r->window) || r->n_tokens < 0 || r->pos < 0 || r->n_kv < 0)
        return SWA_ERR_ARG;
    if ((r->n_kv > 0 && r->kv == NULL) || r->isa < 0 || r->isa > SWA_ISA_AVX512) return SWA_ERR_ARG;
    if (r->isa != 0 && !swa_isa_usable(r->isa)) return SWA_ERR_UNSUPPORTED;
    if (r->pos > INT64_MAX - 1 - r->n_tokens) return SWA_ERR_OVERFLOW;
    if ((int64_t)r->n_tokens * (s->n_heads / s->n_kv_heads) > INT32_MAX) return SWA_ERR_OVERFLOW;
    for (i = 0; i < r->n_kv; i++) {
        const swa_kv *kv = &r->kv[i];
        if (kv->n < 0 || kv->pos < end || kv->layout_ < 0) return SWA_ERR_ARG;
        if (kv->pos > INT64_MAX - 1 - kv->n) return SWA_ERR_OVERFLOW;
        end = kv->pos + kv->n;
        if (kv->n == 0) continue;
        blocks += swa__block_end(end) - kv->pos / SWA_BLOCK;
        if (blocks > INT32_MAX) return SWA_ERR_OVERFLOW;
        if (kv->k == NULL || (!s->v_in_k && kv->v == NULL) || (s->tail_dim > 0 && kv->tail == NULL)) return SWA_ERR_ARG;
        if (!swa__type_ok(kv->k_type) || !swa__type_ok(kv->v_type) || !swa__type_ok(kv->tail_type)) return SWA_ERR_ARG;
        if (kv->layout_ == 0 && (kv->k_type == SWA_Q8 || kv->v_type == SWA_Q8 || kv->tail_type == SWA_Q8))
            return SWA_ERR_UNSUPPORTED;
    }
    return SWA_OK;
}
static size_t swa__rows_bytes(const swa_rows *rows, const swa_shape *s, int parts, size_t split_rows) {
    size_t n = 0;
    if (!swa__region(&n, swa__part_bytes(s, rows->window.n_sink > 0), (size_t)parts, 1)) return 0;
    if (parts > 1 && !swa__region(&n, split_rows, swa__partial_bytes(s), 1)) return 0;
    return swa__add(n, 63, &n) ? n : 0;
}
SWA_API size_t swa_attention_bytes(const swa_rows *rows, int parts) {
    swa_shape s;
    if (parts < 1 || parts > 1 << 16 || swa__rows_check(rows, &s) != SWA_OK) return 0;
    return swa__rows_bytes(rows, &s, parts, rows->n_tokens > 0 ? swa__rows_split(rows, &s)
                                                               : SWA__SPLIT_BYTES / swa__partial_bytes(&s));
}
static swa_status swa__rows_call(const swa_rows *rows, const swa_attn *attn, int parts, swa__call *call) {
    swa_shape s;
    swa_attn a;
    swa_status status = swa__rows_check(rows, &s);
    int i = 0;
    if (status != SWA_OK) return status;
    if (attn == NULL || attn->q.p == NULL || rows->scratch == NULL) return SWA_ERR_ARG;
    a = *attn;
    a.k.p = NULL;                        /* keys come from rows->kv */
    while (i < rows->n_kv && (rows->kv[i].n == 0 || rows->kv[i].k_type == SWA_Q8)) i++;
    status = swa__attn_check(&s, &a, i == rows->n_kv ? SWA_Q8 : SWA_F32);
    if (status != SWA_OK) return status;
    if (parts < 1 || parts > 1 << 16) return SWA_ERR_ORDER;
    if (rows->scratch_bytes < swa__rows_bytes(rows, &s, parts, 0)) return SWA_ERR_MEMORY;
    swa__call_base(call, &s, &a, rows->isa != 0 ? rows->isa : swa_isa_best());
    call->rows = rows;
    call->n_jobs = 1;
    call->sinks = rows->window.n_sink > 0;
    call->scratch = swa__align64(rows->scratch);
    call->part_bytes = swa__part_bytes(&s, call->sinks);
    call->split = call->scratch + call->part_bytes * (size_t)parts;
    call->split_rows = swa__rows_split(rows, &s);
    if (rows->scratch_bytes < swa__rows_bytes(rows, &s, parts, call->split_rows)) call->split_rows = 0;
    return SWA_OK;
}
SWA_API swa_status swa_attention_part(const swa_rows *rows, const swa_attn *attn, int phase, int part, int parts) {
    swa__call call;
    swa_status status = swa__rows_call(rows, attn, parts, &call);
    if (status != SWA_OK) return status;
    if (phase < 0 || phase >= SWA_PHASES || part < 0 || part >= parts) return SWA_ERR_ORDER;
    swa__phase(&call, phase, part, parts);
    return SWA_OK;
}
SWA_API swa_status swa_attention(const swa_rows *rows, const swa_attn *attn) {
    swa__call call;
    swa_status status;
    int parts = 1;
#if SWA__OPENMP
    parts = omp_get_max_threads();
#endif
    status = swa__rows_call(rows, attn, parts, &call);
#if SWA__OPENMP
    while (status == SWA_ERR_MEMORY && parts > 1) status = swa__rows_call(rows, attn, --parts, &call);
#endif
    if (status == SWA_OK) swa__phases(&call, parts);
    return status;
}

/* Row by row, 64 numbers at a time; the scalar instance, whose bits are everyone's. */
SWA_API swa_status swa_merge(const float *const *outs, const float *const *stats, int n, int32_t rows, int v_dim,
                             const float *sink_logits, int n_heads, float *out, float *lse) {
    float o[64], zeros[64], ones[SWA__LANES], inv[SWA__LANES], m, l, mb, lb;
    int32_t r;
    int i, d, w, x;
    if (n < 0 || rows < 0 || v_dim <= 0 || n_heads <= 0 || (n > 0 && (outs == NULL || stats == NULL)))
        return SWA_ERR_ARG;
    for (i = 0; i < n; i++)
        if (outs[i] == NULL || stats[i] == NULL) return SWA_ERR_ARG;
    memset(zeros, 0, sizeof zeros);
    for (r = 0; r < rows; r++)
        for (d = 0; d < v_dim; d += w) {
            w = v_dim - d < 64 ? v_dim - d : 64;
            memset(o, 0, sizeof o);
            m = SWA__NONE;
            l = 0.0f;
            for (i = 0; i < n; i++) {
                const float *stat = stats[i] + 2 * (size_t)r;
                if (stat[1] > 0.0f)      /* an empty part is the identity */
                    swa__fold_scalar(1, w, o, &m, &l, outs[i] + (size_t)r * (size_t)v_dim + d, stat, stat + 1);
            }
            if (lse != NULL) lse[r] = swa__lse(m, l);
            if (sink_logits != NULL) {
                lb = swa__sink_logit(sink_logits[r % n_heads], &mb);
                swa__fold_scalar(1, w, o, &m, &l, zeros, &mb, &lb);
            }
            for (x = 0; x < SWA__LANES; x++) ones[x] = l;
            swa__inverse_scalar(ones, inv);
            for (x = 0; out != NULL && x < w; x++)
                out[(size_t)r * (size_t)v_dim + (size_t)(d + x)] = o[x] * inv[0] + 0.0f;
        }
    return SWA_OK;
}

/* ==== [SECTION 13] LATENT =======================================================================================
   DeepSeek's MLA (DeepSeek-V2 2024, 2.1; [MLA]). The core is the attention of [SECTION 12] on a ring of latents; this
   room holds what lies around it: the projections, and the naive path, where the stage makes K and V of a head from
   the latents of a block. Phases:
     0  c_q = W_DQ h, latent = W_DKV h, k_rope = W_KR h            1  norms, RoPE of k; the angles
     2  q = W_UQ c_q (merged: its nope part through W_UQK)         3  RoPE of q; q_nope W_UK, or expanded K and V
     4, 5  attention, and its fold and store                       6  W_UV         7  W_O (merged: W_UVO) */

enum { SWA__MLA_MAX = 1 << 20, SWA__PACK = SWA__PRODUCT_TILE * SWA__PRODUCT };

/* Sizes of a block, and a call's arrays in the scratch. */
typedef struct {
    const swa_mla *m;
    size_t n, heads, q_in, q_lora, latent, rope, nope, dv, dk;   /* tokens; dk = nope + rope                         */
    int    expanded;                     /* the cache holds expanded rows                                            */
    float *c_q, *c_kv, *k_rope;          /* [n][q_lora], [n][latent], [n][rope]                                      */
    float *q, *o;                        /* [n][heads][dk], [n][heads][dv]                                           */
    float *wide;                         /* [n][heads][latent] absorbed q, then its output; or k, v of expanded rows */
    double *angles;                      /* [n][rope/2] cos, then sin                                                */
    float *pack;                         /* of this part, for products; [parts] of them                              */
    unsigned char *parts;                /* [parts] scratch of the naive attention                                   */
    size_t part_bytes, bytes;
    const swa__cache *c;
    int layer;
    const swa_step *step;
    const swa__kernels *kr;
    const float *h;
    float *out;
    int part, of;
} swa__mla;


/* ---- checks and sizes ---- */

static swa_status swa__matrix_check(const swa_matrix *w, int64_t cols) {
    if (w->p == NULL || w->stride < 0 || (w->stride > 0 && w->stride < cols)) return SWA_ERR_ARG;
    if (w->type == SWA_Q8) return SWA_ERR_UNSUPPORTED;
    return w->type == SWA_F32 || w->type == SWA_F16 || w->type == SWA_BF16 ? SWA_OK : SWA_ERR_ARG;
}
static swa_status swa__mla_check(const swa_mla *m) {
    const swa_matrix *w[8];
    int64_t cols[8], q_in, heads;
    swa_status status;
    int i;
    if (m == NULL || m->hidden <= 0 || m->n_heads <= 0 || m->q_lora_rank < 0 || m->kv_lora_rank <= 0)
        return SWA_ERR_ARG;
    if (m->nope_dim <= 0 || m->rope_dim < 0 || m->rope_dim % 2 != 0 || m->v_dim <= 0) return SWA_ERR_ARG;
    if (m->hidden > SWA__MLA_MAX || m->n_heads > SWA__MLA_MAX || m->q_lora_rank > SWA__MLA_MAX) return SWA_ERR_OVERFLOW;
    if (m->kv_lora_rank > SWA__MLA_MAX || m->nope_dim > SWA__MLA_MAX || m->rope_dim > SWA__MLA_MAX)
        return SWA_ERR_OVERFLOW;
    heads = m->n_heads;
    if (m->v_dim > SWA__MLA_MAX || heads * (m->nope_dim + m->rope_dim) > INT32_MAX) return SWA_ERR_OVERFLOW;
    if (heads * m->v_dim > INT32_MAX || heads * m->kv_lora_rank > INT32_MAX) return SWA_ERR_OVERFLOW;
    if ((int)m->path < SWA_MLA_AUTO || (int)m->path > SWA_MLA_MERGED) return SWA_ERR_ARG;
    if (m->rope_dim > 0 && (m->freq == NULL || (int)m->pairs < 0 || (int)m->pairs > SWA_ROPE_HALF)) return SWA_ERR_ARG;
    if (!(m->eps >= 0.0f) || !swa__finite(m->eps) || (m->q_lora_rank == 0 && m->q_norm != NULL)) return SWA_ERR_ARG;
    if (m->scale != 0 && !swa__positive(m->scale)) return SWA_ERR_ARG;
    if ((m->mscale != 0 && !swa__positive(m->mscale)) || (m->rope_mscale != 0 && !swa__positive(m->rope_mscale)))
        return SWA_ERR_ARG;
    q_in = m->q_lora_rank > 0 ? m->q_lora_rank : m->hidden;
    w[0] = m->q_lora_rank > 0 ? &m->w_dq : NULL;            cols[0] = m->hidden;
    w[1] = &m->w_uq;                                        cols[1] = q_in;
    w[2] = m->w_qr.p != NULL ? &m->w_qr : NULL;             cols[2] = q_in;
    w[3] = &m->w_dkv;                                       cols[3] = m->hidden;
    w[4] = m->w_kr.p != NULL ? &m->w_kr : NULL;             cols[4] = m->hidden;
    w[5] = &m->w_uk;                                        cols[5] = m->kv_lora_rank;
    w[6] = m->w_uv.p != NULL ? &m->w_uv : NULL;             cols[6] = m->kv_lora_rank;
    w[7] = &m->w_o;                                         cols[7] = heads * m->v_dim;
    for (i = 0; i < 8; i++)
        if (w[i] != NULL && (status = swa__matrix_check(w[i], cols[i])) != SWA_OK) return status;
    return SWA_OK;
}
SWA_API double swa_mla_scale(int nope_dim, int rope_dim, double mscale) {
    if (nope_dim <= 0 || rope_dim < 0) return 0.0;          /* which swa_attend refuses */
    return (mscale != 0 ? mscale * mscale : 1.0) / sqrt((double)nope_dim + (double)rope_dim);
}
SWA_API swa_shape swa_mla_shape(const swa_mla *mla, int expanded) {
    swa_shape s;
    memset(&s, 0, sizeof s);
    if (mla == NULL) return s;
    s.n_heads = mla->n_heads;
    s.n_kv_heads = expanded ? mla->n_heads : 1;
    s.head_dim = expanded ? mla->nope_dim + mla->rope_dim : mla->kv_lora_rank;
    s.v_dim = expanded ? mla->v_dim : mla->kv_lora_rank;
    s.tail_dim = expanded ? 0 : mla->rope_dim;
    s.v_in_k = !expanded;
    return s;
}
static int swa__shape_is(const swa_shape *a, const swa_shape *b) {
    return a->n_heads == b->n_heads && a->n_kv_heads == b->n_kv_heads && a->head_dim == b->head_dim
           && a->v_dim == b->v_dim && a->tail_dim == b->tail_dim && (a->v_in_k != 0) == (b->v_in_k != 0);
}
static swa__mla swa__mla_sizes(const swa_mla *m) {
    swa__mla x;
    memset(&x, 0, sizeof x);
    x.m = m;
    x.heads = (size_t)m->n_heads;
    x.q_lora = (size_t)m->q_lora_rank;
    x.q_in = (size_t)(m->q_lora_rank > 0 ? m->q_lora_rank : m->hidden);
    x.latent = (size_t)m->kv_lora_rank;
    x.rope = (size_t)m->rope_dim;
    x.nope = (size_t)m->nope_dim;
    x.dv = (size_t)m->v_dim;
    x.dk = x.nope + x.rope;
    return x;
}
/* What the naive stage adds to a part: latents of a block, and the weights of one head as f32. */
typedef struct { float *k, *scale, *row, *turn, *w_uk, *w_uv; int32_t *head; size_t bytes; } swa__expand_scratch;

static swa__expand_scratch swa__expand_carve(const swa_mla *m, unsigned char *base) {
    const size_t row = (size_t)m->kv_lora_rank + (size_t)m->rope_dim, dvp = ((size_t)m->v_dim + 15) / 16 * 16;
    const swa_shape naive = swa_mla_shape(m, 1);
    swa__scratch w;
    swa__expand_scratch x;
    float *head;
    memset(&w, 0, sizeof w);
    w.bytes = swa__part_bytes(&naive, 0);
    swa__take(&w, base, &x.k, SWA_BLOCK * row);
    swa__take(&w, base, &x.scale, 3 * SWA_BLOCK);
    swa__take(&w, base, &x.row, 16 * (row + 16));
    swa__take(&w, base, &x.turn, 32 * dvp);
    swa__take(&w, base, &x.w_uk, ((size_t)m->nope_dim + 15) / 16 * 16 * (size_t)m->kv_lora_rank);
    swa__take(&w, base, &x.w_uv, dvp * (size_t)m->kv_lora_rank);
    swa__take(&w, base, &head, 16);
    x.head = (int32_t *)(void *)head;
    x.bytes = w.bytes;
    return x;
}
/* Arrays of a call, one after the other; at NULL only their size. 0 = overflow. */
static int swa__mla_carve(swa__mla *x, size_t n, int parts, unsigned char *base) {
    const swa_mla_path path = x->m->path;
    size_t wide = x->nope + x->rope + x->dv, at[9];
    x->n = n;
    x->bytes = 0;
    if (path == SWA_MLA_ABSORBED || path == SWA_MLA_MERGED || (path == SWA_MLA_AUTO && wide < x->latent))
        wide = x->latent;
    x->part_bytes = path == SWA_MLA_ABSORBED || path == SWA_MLA_MERGED ? 0 : swa__expand_carve(x->m, NULL).bytes;
    at[0] = x->bytes;
    if (!swa__region(&x->bytes, n, x->q_lora, sizeof(float))) return 0;
    at[1] = x->bytes;
    if (!swa__region(&x->bytes, n, x->latent, sizeof(float))) return 0;
    at[2] = x->bytes;
    if (!swa__region(&x->bytes, n, x->rope, sizeof(float))) return 0;
    at[3] = x->bytes;
    if (!swa__region(&x->bytes, n, x->heads * x->dk, sizeof(float))) return 0;
    at[4] = x->bytes;
    if (!swa__region(&x->bytes, n, x->heads * x->dv, sizeof(float))) return 0;
    at[5] = x->bytes;
    if (!swa__region(&x->bytes, n, x->heads * wide, sizeof(float))) return 0;
    at[6] = x->bytes;
    if (!swa__region(&x->bytes, n, x->rope, sizeof(double))) return 0;
    at[7] = x->bytes;
    if (!swa__region(&x->bytes, x->part_bytes, (size_t)parts, 1)) return 0;
    at[8] = x->bytes;
    if (!swa__region(&x->bytes, n > 1 ? SWA__PACK : 0, (size_t)parts, sizeof(float))) return 0;
    if (!swa__add(x->bytes, 63, &x->bytes)) return 0;
    if (base == NULL) return 1;
    x->c_q = (float *)(void *)(base + at[0]);
    x->c_kv = (float *)(void *)(base + at[1]);
    x->k_rope = (float *)(void *)(base + at[2]);
    x->q = (float *)(void *)(base + at[3]);
    x->o = (float *)(void *)(base + at[4]);
    x->wide = (float *)(void *)(base + at[5]);
    x->angles = (double *)(void *)(base + at[6]);
    x->parts = base + at[7];
    x->pack = (float *)(void *)(base + at[8]);
    return 1;
}
SWA_API size_t swa_mla_bytes(const swa_mla *mla, int32_t n_tokens, int parts) {
    swa__mla x;
    if (swa__mla_check(mla) != SWA_OK || n_tokens < 0 || parts < 1 || parts > 1 << 16) return 0;
    x = swa__mla_sizes(mla);
    return swa__mla_carve(&x, (size_t)n_tokens, parts, NULL) ? x.bytes : 0;
}

/* ---- the rule ---- */

SWA_API swa_status swa_mla_document_macs(const swa_mla *mla, int64_t n, double macs[4]) {
    double heads, q, l, out, uq, each;
    if (mla == NULL || macs == NULL || n < 0 || swa__mla_check(mla) != SWA_OK) return SWA_ERR_ARG;
    heads = mla->n_heads;
    l = mla->kv_lora_rank;
    q = mla->q_lora_rank > 0 ? mla->q_lora_rank : mla->hidden;
    uq = q * heads * mla->nope_dim;
    out = heads * mla->v_dim * mla->hidden;
    each = heads * l * ((double)mla->nope_dim + mla->v_dim);         /* W_UK and W_UV for one token */
    macs[0] = uq + out + (each + heads * ((double)mla->nope_dim + mla->v_dim)) * (double)n;
    macs[1] = uq + out + each + 2 * heads * l * (double)n;
    macs[2] = (q + mla->hidden) * heads * l + 2 * heads * l * (double)n;
    macs[3] = uq + out + each + heads * ((double)mla->nope_dim + mla->v_dim) * (double)n;
    return SWA_OK;
}
/* Bytes of `rows` rows of a matrix, or of both of a pair in whichever form. */
static double swa__weight(const swa_matrix *w, const swa_matrix *second, double rows, double rows2, double cols) {
    double first = (double)swa__type_size((int)w->type) * cols;
    return second->p == NULL ? first * (rows + rows2)
                             : first * rows + (double)swa__type_size((int)second->type) * cols * rows2;
}
static void swa__mla_costs(const swa_mla *m, double cached, double n, swa_mla_cost *cost) {
    const double h = m->n_heads, l = m->kv_lora_rank, r = m->rope_dim, dn = m->nope_dim, dv = m->v_dim, hid = m->hidden;
    const double ql = m->q_lora_rank, q = ql > 0 ? ql : hid, keys = cached + n, pairs = n * cached + n * (n + 1) / 2;
    const double in = n * (hid * (ql + l + r) + q * h * (dn + r)), up = l * h * (dn + dv), down = h * dv * hid;
    const swa_matrix none = { NULL, SWA_F32, 0 };
    double bytes = swa__weight(&m->w_dkv, &m->w_kr, l, r, hid), uq, uo;
    if (ql > 0) bytes += swa__weight(&m->w_dq, &none, ql, 0, hid);
    uq = swa__weight(&m->w_uq, &m->w_qr, h * dn, h * r, q);
    uo = swa__weight(&m->w_uk, &m->w_uv, h * dn, h * dv, l) + swa__weight(&m->w_o, &none, hid, 0, h * dv);
    cost[0].macs = in + keys * up + pairs * h * (dn + r + dv) + n * down;
    cost[1].macs = in + n * up + pairs * h * (2 * l + r) + n * down;
    cost[2].macs = n * (hid * (ql + l + r) + q * h * (l + r) + h * l * hid) + pairs * h * (2 * l + r);
    cost[3].macs = in + n * up + pairs * h * (dn + r + dv) + n * down;
    cost[0].weight_bytes = cost[1].weight_bytes = cost[3].weight_bytes = bytes + uq + uo;
    cost[2].weight_bytes = bytes + 4 * (q + hid) * h * l + swa__weight(&m->w_uq, &m->w_qr, 0, h * r, q);
    cost[0].cache_bytes = cost[1].cache_bytes = cost[2].cache_bytes = 4 * cached * (l + r);
    cost[3].cache_bytes = 4 * cached * h * (dn + r + dv);
}
static swa_mla_path swa__mla_rule(const swa_mla *m, int64_t n_cached, int32_t n_new) {
    const double a = (double)m->kv_lora_rank * ((double)m->nope_dim + m->v_dim);
    const double b = 2.0 * m->kv_lora_rank - m->nope_dim - m->v_dim, s = n_new, n = (double)n_cached + s;
    return (n > 16 ? n : 16) * a - s * n * b > s * a ? SWA_MLA_ABSORBED : SWA_MLA_NAIVE;
}
SWA_API swa_mla_path swa_mla_choose(const swa_mla *mla, int64_t n_cached, int32_t n_new, swa_mla_cost cost[4]) {
    if (swa__mla_check(mla) != SWA_OK || n_cached < 0 || n_new < 0) return SWA_MLA_AUTO;
    if (cost != NULL) swa__mla_costs(mla, (double)n_cached, n_new, cost);
    return swa__mla_rule(mla, n_cached, n_new);
}
/* The path of one run: its own length and the cached rows in its reach decide, not the batch it is in. */
static swa_mla_path swa__mla_path_of(const swa_mla *m, const swa__cache *c, int layer, const swa_run *run) {
    const swa__layer *l = swa__layer_of(c, layer);
    const swa__seq *s = swa__seq_of(c, run->seq);
    int64_t lo = swa__max64(swa__lowest(&l->window, run->pos), s->start);
    if (c->d.shape.n_kv_heads != 1 || !c->d.shape.v_in_k) return SWA_MLA_NAIVE;
    if (m->path != SWA_MLA_AUTO) return m->path;
    return swa__mla_rule(m, run->pos - lo + swa__min64(l->window.n_sink, lo), run->n);
}
/* The next packed rows [t0, t1) from run *i on that take one of the paths [lo, hi]; 0 at the end. */
static int swa__mla_rows(const swa__mla *x, swa_mla_path lo, swa_mla_path hi, int *i, size_t *t0, size_t *t1) {
    *t0 = *t1 = 0;
    for (; *i < x->step->n_runs; (*i)++) {
        const swa_run *run = &x->step->runs[*i];
        swa_mla_path path;
        if (run->n == 0) continue;
        path = swa__mla_path_of(x->m, x->c, x->layer, run);
        if (path >= lo && path <= hi) {
            if (*t1 == 0) *t0 = (size_t)run->row;
            *t1 = (size_t)run->row + (size_t)run->n;
        } else if (*t1 > 0) return 1;
    }
    return *t1 > 0;
}

/* ---- products ---- */

/* Rows [a, b) of one of the pair of matrices, of head h where there are heads. */
typedef struct { const swa_matrix *w; size_t stride, first; } swa__rows_at;

static swa__rows_at swa__rows_at_of(const swa_matrix *w, const swa_matrix *second, int which, size_t h, size_t n0,
                                    size_t n1, size_t cols) {
    swa__rows_at r;
    r.w = which == 1 && second->p != NULL ? second : w;
    r.stride = r.w->stride > 0 ? (size_t)r.w->stride : cols;
    if (second->p != NULL) r.first = h * (which == 0 ? n0 : n1);
    else r.first = h * (n0 + n1) + (which == 0 ? 0 : n0);
    return r;
}
static void swa__product(const swa__mla *x, const swa_gemm *p) {
    if (x->m->gemm != NULL) x->m->gemm(x->m->user, p);
    else x->kr->product(p, x->pack);
}
static const void *swa__element(const swa_matrix *w, size_t i) {
    return (const unsigned char *)w->p + i * swa__type_size((int)w->type);
}
/* Outputs [a, b) of a matrix: rows a.. of w from r on, into y + a. */
static void swa__project(const swa__mla *x, swa__rows_at r, size_t a, size_t b, size_t n_in, size_t n, const float *in,
                         size_t in_stride, float *y, size_t y_stride) {
    swa_gemm p;
    if (a >= b) return;
    p.n = (int32_t)n;
    p.n_in = (int32_t)n_in;
    p.n_out = (int32_t)(b - a);
    p.transposed = 0;
    p.x = in;
    p.x_stride = (int64_t)in_stride;
    p.w.p = swa__element(r.w, (r.first + a) * r.stride);
    p.w.type = r.w->type;
    p.w.stride = (int64_t)r.stride;
    p.y = y + a;
    p.y_stride = (int64_t)y_stride;
    swa__product(x, &p);
}
/* This part's share [a, b) of n things, cut at multiples of `step`. */
static void swa__share(const swa__mla *x, size_t n, size_t step, size_t *a, size_t *b) {
    size_t units = (n + step - 1) / step, part = (size_t)x->part, of = (size_t)x->of;
    *a = units / of * part + (units % of * part) / of;
    *b = units / of * (part + 1) + (units % of * (part + 1)) / of;
    *a = *a * step < n ? *a * step : n;
    *b = *b * step < n ? *b * step : n;
}
static size_t swa__within(size_t at, size_t from, size_t n) { return at <= from ? 0 : at - from < n ? at - from : n; }

/* Phase 0: outputs are c_q, c_kv and k_rope side by side. */
static void swa__mla_down(const swa__mla *x) {
    const size_t hidden = (size_t)x->m->hidden;
    const swa_matrix none = { NULL, SWA_F32, 0 };
    size_t a, b, at = 0;
    swa__share(x, x->q_lora + x->latent + x->rope, 16, &a, &b);
    if (x->q_lora > 0)
        swa__project(x, swa__rows_at_of(&x->m->w_dq, &none, 0, 0, x->q_lora, 0, hidden), swa__within(a, at, x->q_lora),
                     swa__within(b, at, x->q_lora), hidden, x->n, x->h, hidden, x->c_q, x->q_lora);
    at += x->q_lora;
    swa__project(x, swa__rows_at_of(&x->m->w_dkv, &x->m->w_kr, 0, 0, x->latent, x->rope, hidden),
                 swa__within(a, at, x->latent), swa__within(b, at, x->latent), hidden, x->n, x->h, hidden, x->c_kv,
                 x->latent);
    at += x->latent;
    swa__project(x, swa__rows_at_of(&x->m->w_dkv, &x->m->w_kr, 1, 0, x->latent, x->rope, hidden),
                 swa__within(a, at, x->rope), swa__within(b, at, x->rope), hidden, x->n, x->h, hidden, x->k_rope,
                 x->rope);
}
/* Rotates one head's rope part of token t. */
static void swa__mla_rotate(const swa__mla *x, size_t t, float *v) {
    const size_t half = x->rope / 2;
    const double *c = x->angles + t * x->rope;
    const int apart = x->m->pairs == SWA_ROPE_HALF;
    swa__rope_pairs(v, (int)half, apart ? 1 : 2, apart ? half : 1, c, c + half);
}
/* Phase 1: norms, angles, and RoPE of k, token by token. */
static void swa__mla_norms(const swa__mla *x) {
    const double mscale = x->m->rope_mscale != 0 ? x->m->rope_mscale : 1.0;
    const size_t half = x->rope / 2;
    int i;
    int32_t r;
    size_t t, d;
    for (i = 0; i < x->step->n_runs; i++) {
        const swa_run *run = &x->step->runs[i];
        for (r = 0; r < run->n; r++) {
            t = (size_t)run->row + (size_t)r;
            if (t % (size_t)x->of != (size_t)x->part) continue;
            for (d = 0; d < half; d++) {
                double *c = x->angles + t * x->rope + d;
                swa__rope_angle(run->pos + r, x->m->freq[d], c, c + half);
                c[0] *= mscale;
                c[half] *= mscale;
            }
            if (x->m->q_norm != NULL)
                swa_rmsnorm(x->c_q + t * x->q_lora, x->c_q + t * x->q_lora, x->m->q_norm, 1, (int)x->q_lora, x->m->eps);
            if (x->m->kv_norm != NULL)
                swa_rmsnorm(x->c_kv + t * x->latent, x->c_kv + t * x->latent, x->m->kv_norm, 1, (int)x->latent,
                            x->m->eps);
            swa__mla_rotate(x, t, x->k_rope + t * x->rope);
        }
    }
}
static const float *swa__mla_uqk(const swa_mla *m) { return (const float *)(const void *)swa__align64(m->merged); }
static size_t swa__round64(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* Phase 2: q [heads][nope | rope] from c_q. Merged: the nope part goes straight into latent space. */
static void swa__mla_queries(const swa__mla *x) {
    const float *in = x->q_lora > 0 ? x->c_q : x->h;
    const size_t row = x->heads * x->dk, dims[2] = { x->nope, x->rope };
    const int merged = x->m->path == SWA_MLA_MERGED;
    size_t a, b, h, at;
    int which;
    swa__share(x, row, 16, &a, &b);
    if (merged) {
        swa_matrix w = { NULL, SWA_F32, 0 }, none = { NULL, SWA_F32, 0 };
        size_t c, d;
        w.p = swa__mla_uqk(x->m);
        swa__share(x, x->heads * x->latent, 16, &c, &d);
        swa__project(x, swa__rows_at_of(&w, &none, 0, 0, 0, 0, x->q_in), c, d, x->q_in, x->n, in, x->q_in, x->wide,
                     x->heads * x->latent);
    } else if (x->m->w_qr.p == NULL) {   /* rows of W_UQ are outputs of q, one product */
        swa__project(x, swa__rows_at_of(&x->m->w_uq, &x->m->w_qr, 0, 0, 0, 0, x->q_in), a, b, x->q_in, x->n, in,
                     x->q_in, x->q, row);
        return;
    }
    for (h = 0; h < x->heads; h++)
        for (which = merged; which < 2; which++) {
            at = h * x->dk + (which == 1 ? x->nope : 0);
            swa__project(x, swa__rows_at_of(&x->m->w_uq, &x->m->w_qr, which, h, x->nope, x->rope, x->q_in),
                         swa__within(a, at, dims[which]), swa__within(b, at, dims[which]), x->q_in, x->n, in, x->q_in,
                         x->q + at, row);
        }
}
/* Phase 3 in latent space: q_nope of rows [t0, t1) through W_UK, head by head, some of the columns. */
static void swa__mla_absorb(const swa__mla *x, size_t t0, size_t t1) {
    const size_t row = x->heads * x->latent;
    size_t a, b, h;
    swa_gemm p;
    swa__share(x, row, 16, &a, &b);
    p.n = (int32_t)(t1 - t0);
    p.n_in = (int32_t)x->nope;
    p.transposed = 1;
    p.x_stride = (int64_t)(x->heads * x->dk);
    p.y_stride = (int64_t)row;
    for (h = 0; h < x->heads; h++) {
        const size_t c = swa__within(a, h * x->latent, x->latent), d = swa__within(b, h * x->latent, x->latent);
        const swa__rows_at r = swa__rows_at_of(&x->m->w_uk, &x->m->w_uv, 0, h, x->nope, x->dv, x->latent);
        if (c == d) continue;
        p.n_out = (int32_t)(d - c);
        p.x = x->q + t0 * x->heads * x->dk + h * x->dk;
        p.w.p = swa__element(r.w, r.first * r.stride + c);
        p.w.type = r.w->type;
        p.w.stride = (int64_t)r.stride;
        p.y = x->wide + t0 * row + h * x->latent + c;
        swa__product(x, &p);
    }
}
/* Phase 3 of an expanded cache: K [n][heads][nope | rope] and V [n][heads][v] of the new tokens. */
static void swa__mla_expand_new(const swa__mla *x) {
    const size_t row = x->heads * x->dk, per = x->nope + x->dv;
    float *k = x->wide, *v = x->wide + x->n * row;
    size_t a, b, h, t;
    swa__share(x, x->heads * per, 16, &a, &b);
    for (h = 0; h < x->heads; h++) {
        const swa__rows_at uk = swa__rows_at_of(&x->m->w_uk, &x->m->w_uv, 0, h, x->nope, x->dv, x->latent);
        const swa__rows_at uv = swa__rows_at_of(&x->m->w_uk, &x->m->w_uv, 1, h, x->nope, x->dv, x->latent);
        swa__project(x, uk, swa__within(a, h * per, x->nope), swa__within(b, h * per, x->nope), x->latent, x->n,
                     x->c_kv, x->latent, k + h * x->dk, row);
        swa__project(x, uv, swa__within(a, h * per + x->nope, x->dv), swa__within(b, h * per + x->nope, x->dv),
                     x->latent, x->n, x->c_kv, x->latent, v + h * x->dv, x->heads * x->dv);
        for (t = 0; x->rope > 0 && h * per >= a && h * per < b && t < x->n; t++)
            memcpy(k + t * row + h * x->dk + x->nope, x->k_rope + t * x->rope, x->rope * sizeof(float));
    }
}
static void swa__mla_turn_queries(const swa__mla *x) {
    size_t a, b, h, t;
    int i = 0;
    size_t t0, t1;
    swa__share(x, x->heads, 1, &a, &b);
    for (t = 0; x->rope > 0 && t < x->n; t++)
        for (h = a; h < b; h++) swa__mla_rotate(x, t, x->q + (t * x->heads + h) * x->dk + x->nope);
    if (x->expanded) swa__mla_expand_new(x);
    while (swa__mla_rows(x, SWA_MLA_ABSORBED, SWA_MLA_ABSORBED, &i, &t0, &t1)) swa__mla_absorb(x, t0, t1);
}
/* Phase 6: the output in latent space through W_UV, per head. */
static void swa__mla_values(const swa__mla *x) {
    const size_t row = x->heads * x->latent;
    size_t a, b, h, t0, t1;
    int i = 0;
    swa__share(x, x->heads * x->dv, 16, &a, &b);
    while (swa__mla_rows(x, SWA_MLA_ABSORBED, SWA_MLA_ABSORBED, &i, &t0, &t1))
        for (h = 0; h < x->heads; h++)
            swa__project(x, swa__rows_at_of(&x->m->w_uk, &x->m->w_uv, 1, h, x->nope, x->dv, x->latent),
                         swa__within(a, h * x->dv, x->dv), swa__within(b, h * x->dv, x->dv), x->latent, t1 - t0,
                         x->wide + t0 * row + h * x->latent, row, x->o + (t0 * x->heads + h) * x->dv, x->heads * x->dv);
}
/* Phase 7 */
static void swa__mla_output(const swa__mla *x) {
    const swa_matrix none = { NULL, SWA_F32, 0 };
    const size_t hidden = (size_t)x->m->hidden, heads = x->heads;
    swa_matrix uvo = { NULL, SWA_F32, 0 };
    size_t a, b;
    swa__share(x, hidden, 16, &a, &b);
    if (x->m->path == SWA_MLA_MERGED) {
        uvo.p = (const unsigned char *)(const void *)swa__mla_uqk(x->m)
                + swa__round64(heads * x->latent * x->q_in * sizeof(float));
        swa__project(x, swa__rows_at_of(&uvo, &none, 0, 0, 0, 0, heads * x->latent), a, b, heads * x->latent, x->n,
                     x->wide, heads * x->latent, x->out, hidden);
    } else
        swa__project(x, swa__rows_at_of(&x->m->w_o, &none, 0, 0, 0, 0, heads * x->dv), a, b, heads * x->dv, x->n, x->o,
                     heads * x->dv, x->out, hidden);
}

/* ---- attention ---- */

/* The naive path's stage: latents as the ring holds them, then K and V of one head as f32 tiles. */
struct swa__expand {
    const swa_mla *m;
    swa__job latent;                     /* how the rows are stored                                                  */
};
static const swa__job *swa__expand_rows_of(const struct swa__expand *e) { return &e->latent; }
/* W_UK and W_UV of head h, f32 in panels of 16 dims, [dims/16][latent][16]: packed once per head. */
static void swa__expand_weights(const swa_mla *m, const swa__kernels *kr, int h, const swa__expand_scratch *s) {
    const size_t latent = (size_t)m->kv_lora_rank;
    const void *src[16];
    int which, d, i;
    if (*s->head == h) return;
    *s->head = h;
    for (which = 0; which < 2; which++) {
        const swa__rows_at r =
            swa__rows_at_of(&m->w_uk, &m->w_uv, which, (size_t)h, (size_t)m->nope_dim, (size_t)m->v_dim, latent);
        const int dims = which == 0 ? m->nope_dim : m->v_dim;
        float *to = which == 0 ? s->w_uk : s->w_uv;
        for (d = 0; d < dims; d += 16, to += 16 * latent) {
            for (i = 0; i < 16; i++)
                src[i] = swa__element(r.w, (r.first + (size_t)(d + i < dims ? d + i : dims - 1)) * r.stride);
            kr->pack(src, (int)r.w->type, 16, m->kv_lora_rank, 1.0f, to);
        }
    }
}
/* K [nope | rope][16] and V rows [16][dvp] of one head for two tiles; the second may be the first again. */
static void swa__expand_tiles(const swa__job *j, const swa__expand_scratch *s, const swa__tile *const from[2],
                              swa__tile *const to[2], float *const k[2], float *const v[2]) {
    const swa_mla *m = j->expand->m;
    const int dvp = j->geo.dvp, nope = m->nope_dim * 16;
    const float *latent[2];
    float *turn[2];
    int x, d;
    for (x = 0; x < 2; x++) {
        latent[x] = (const float *)from[x]->k;
        turn[x] = from[0] == from[1] ? s->turn : s->turn + x * 16 * dvp;
        memset(turn[x], 0, 16 * (size_t)dvp * sizeof(float));
    }
    j->kr->expand(m->nope_dim, m->kv_lora_rank, s->w_uk, latent, k);
    j->kr->expand(m->v_dim, m->kv_lora_rank, s->w_uv, latent, turn);
    for (x = 0; x < (from[0] == from[1] ? 1 : 2); x++) {
        const float *ks = from[x]->k_scale, *ts = from[x]->tail_scale, *tail = (const float *)from[x]->tail;
        for (d = 0; ks != NULL && d < nope; d++) k[x][d] *= ks[d % 16];
        for (d = 0; ks != NULL && d < 16 * m->v_dim; d++) turn[x][d] *= ks[d % 16];
        for (d = 0; d < 16 * m->rope_dim; d++) k[x][nope + d] = ts != NULL ? tail[d] * ts[d % 16] : tail[d];
        j->kr->turn(dvp, turn[x], v[x], (size_t)dvp);
        memset(to[x], 0, sizeof *to[x]);
        to[x]->k = k[x];
        to[x]->v = v[x];
        to[x]->v_token = dvp;
        to[x]->k_type = to[x]->tail_type = to[x]->v_type = SWA_F32;
    }
}
static void swa__stage_expanded(const swa__job *j, int h, const int range[4], const swa__scratch *w, swa__block *b) {
    const swa__expand_scratch s = swa__expand_carve(j->expand->m, (unsigned char *)(void *)w->q);
    const swa__tile *from[2];
    swa__tile *to[2];
    float *k[2], *v[2];
    swa__job latent = j->expand->latent;
    swa__scratch rows;
    swa__block staged;
    int r, t, n = 0, done = -1;
    memset(&rows, 0, sizeof rows);
    rows.k = s.k;
    rows.scale = s.scale;
    rows.row = s.row;
    rows.present = w->present;
    latent.kv = j->kv;
    latent.n_kv = j->n_kv;
    latent.geo.form = SWA__PLAIN;
    staged.pos = b->pos;
    swa__stage(&latent, 0, range, 1, &rows, &staged);
    b->present = staged.present;
    swa__expand_weights(j->expand->m, j->kr, h, &s);
    for (r = 0; r < 4; r += 2)
        for (t = range[r] / 16; t * 16 < range[r + 1]; t++) {
            if (t <= done) continue;
            done = t;
            from[n] = &staged.tile[t];
            to[n] = &b->tile[t];
            k[n] = w->k + (size_t)t * 16 * (size_t)j->geo.dk;
            v[n] = w->v + (size_t)t * 16 * (size_t)j->geo.dvp;
            if (++n < 2) continue;
            swa__expand_tiles(j, &s, from, to, k, v);
            n = 0;
        }
    if (n == 0) return;
    from[1] = from[0];
    to[1] = to[0];
    k[1] = k[0];
    v[1] = v[0];
    swa__expand_tiles(j, &s, from, to, k, v);
}
static swa_attn swa__mla_attn(const swa__mla *x) {
    const swa_mla *m = x->m;
    swa_attn a;
    memset(&a, 0, sizeof a);
    a.scale = (float)(m->scale != 0 ? m->scale : swa_mla_scale(m->nope_dim, m->rope_dim, m->mscale));
    a.compute = m->compute;
    if (x->expanded) {
        a.q.p = x->q;
        a.k.p = x->wide;
        a.v.p = x->wide + x->n * x->heads * x->dk;
        a.out.p = x->o;
        return a;
    }
    a.q.p = a.out.p = x->wide;
    a.k.p = x->c_kv;
    if (x->rope > 0) {
        a.q_tail.p = x->q + x->nope;
        a.q_tail.head = (int64_t)x->dk;
        a.q_tail.token = (int64_t)(x->heads * x->dk);
        a.k_tail.p = x->k_rope;
    }
    return a;
}
/* The naive call over the same step: ordinary heads, whose keys the stage expands. */
static void swa__mla_naive(const swa__mla *x, const swa__call *latent, struct swa__expand *e, swa__call *call) {
    const swa_shape shape = swa_mla_shape(x->m, 1);
    swa_attn a = swa__mla_attn(x);
    memset(&a.q_tail, 0, sizeof a.q_tail);
    a.q.p = x->q;
    a.q.token = a.q.head = 0;
    a.out.p = x->o;
    swa__call_base(call, &shape, &a, x->c->d.isa);
    call->c = x->c;
    call->layer = x->layer;
    call->step = x->step;
    call->n_jobs = x->step->n_runs;
    call->scratch = x->parts;
    call->part_bytes = x->part_bytes;
    call->split = latent->split;
    if (x->m->path == SWA_MLA_NAIVE)     /* AUTO: the absorbed runs of this step may need it */
        call->split_rows = latent->split_rows * swa__partial_bytes(&latent->base.shape) / swa__partial_bytes(&shape);
    e->m = x->m;
    e->latent = latent->base;
    call->base.expand = e;
    call->mla = x->m;
    call->path = SWA_MLA_NAIVE;
}
/* Phases 4 and 5. Attention comes first, by path; then all new rows are stored. */
static void swa__mla_attend(const swa__mla *x, const swa__call *base, int phase) {
    swa__call call = *base, store = *base;
    struct swa__expand e;
    if (x->expanded) {
        swa__phase(&call, phase, x->part, x->of);
        return;
    }
    call.base.a.no_store = 1;
    if (x->m->path == SWA_MLA_AUTO || x->m->path == SWA_MLA_ABSORBED || x->m->path == SWA_MLA_MERGED) {
        call.mla = x->m;
        call.path = x->m->path == SWA_MLA_MERGED ? SWA_MLA_MERGED : SWA_MLA_ABSORBED;
        swa__phase(&call, phase, x->part, x->of);
    }
    if (x->m->path == SWA_MLA_AUTO || x->m->path == SWA_MLA_NAIVE) {
        swa__mla_naive(x, base, &e, &call);
        call.base.a.no_store = 1;
        *swa__expand_carve(x->m, call.scratch + (size_t)x->part * call.part_bytes).head = -1;
        swa__phase(&call, phase, x->part, x->of);
    }
    if (phase == 1) swa__store_rows(&store, x->part, x->of);
}

/* ---- merged weights ---- */

enum { SWA__MERGE_ROWS = 64 };           /* rows of W_O widened at a time                                            */

static int swa__merged_layout(const swa__mla *x, size_t *uvo, size_t *temp, size_t *total) {
    size_t n = 0, hidden = (size_t)x->m->hidden, row = x->latent * x->nope;
    if (!swa__region(&n, x->heads * x->latent, x->q_in, sizeof(float))) return 0;
    *uvo = n;
    if (!swa__region(&n, x->heads * x->latent, hidden, sizeof(float))) return 0;
    *temp = n;
    if (row < SWA__MERGE_ROWS * x->dv) row = SWA__MERGE_ROWS * x->dv;
    return swa__region(&n, row, sizeof(float), 1) && swa__add(n, 63, total);
}
SWA_API size_t swa_mla_merged_bytes(const swa_mla *mla) {
    size_t uvo, temp, total;
    swa__mla x;
    if (swa__mla_check(mla) != SWA_OK) return 0;
    x = swa__mla_sizes(mla);
    return swa__merged_layout(&x, &uvo, &temp, &total) ? total : 0;
}
static void swa__merge_head(const swa__mla *x, size_t h, float *uqk, float *uvo, float *temp) {
    const swa__rows_at uq = swa__rows_at_of(&x->m->w_uq, &x->m->w_qr, 0, h, x->nope, x->rope, x->q_in);
    const swa__rows_at uk = swa__rows_at_of(&x->m->w_uk, &x->m->w_uv, 0, h, x->nope, x->dv, x->latent);
    const swa__rows_at uv = swa__rows_at_of(&x->m->w_uk, &x->m->w_uv, 1, h, x->nope, x->dv, x->latent);
    const size_t hidden = (size_t)x->m->hidden,
                 o_stride = x->m->w_o.stride > 0 ? (size_t)x->m->w_o.stride : x->heads * x->dv;
    size_t c, d, r, n;
    swa_gemm p;
    p.transposed = 1;
    for (d = 0; d < x->nope; d++)
        for (c = 0; c < x->latent; c++)
            temp[c * x->nope + d] = swa__load1((int)uk.w->type, uk.w->p, (uk.first + d) * uk.stride + c);
    p.n = (int32_t)x->latent;
    p.n_in = (int32_t)x->nope;
    p.n_out = (int32_t)x->q_in;
    p.x = temp;
    p.x_stride = (int64_t)x->nope;
    p.w.p = swa__element(uq.w, uq.first * uq.stride);
    p.w.type = uq.w->type;
    p.w.stride = (int64_t)uq.stride;
    p.y = uqk + h * x->latent * x->q_in;
    p.y_stride = (int64_t)x->q_in;
    swa__product(x, &p);
    p.n_in = (int32_t)x->dv;
    p.n_out = (int32_t)x->latent;
    p.x_stride = (int64_t)x->dv;
    p.w.p = swa__element(uv.w, uv.first * uv.stride);
    p.w.type = uv.w->type;
    p.w.stride = (int64_t)uv.stride;
    p.y_stride = (int64_t)(x->heads * x->latent);
    for (r = 0; r < hidden; r += n) {
        n = hidden - r < SWA__MERGE_ROWS ? hidden - r : (size_t)SWA__MERGE_ROWS;
        for (c = 0; c < n; c++)
            for (d = 0; d < x->dv; d++)
                temp[c * x->dv + d] = swa__load1((int)x->m->w_o.type, x->m->w_o.p, (r + c) * o_stride + h * x->dv + d);
        p.n = (int32_t)n;
        p.y = uvo + r * x->heads * x->latent + h * x->latent;
        swa__product(x, &p);
    }
}
SWA_API swa_status swa_mla_precompute(const swa_mla *mla, void *merged, size_t bytes) {
    swa_status status = swa__mla_check(mla);
    size_t uvo, temp, total, h;
    unsigned char *base;
    swa__mla x;
    if (status != SWA_OK) return status;
    if (merged == NULL) return SWA_ERR_ARG;
    x = swa__mla_sizes(mla);
    if (!swa__merged_layout(&x, &uvo, &temp, &total)) return SWA_ERR_OVERFLOW;
    if (bytes < total) return SWA_ERR_MEMORY;
    x.kr = swa__kernels_of(swa_isa_best());
    base = swa__align64(merged);
    for (h = 0; h < x.heads; h++)
        swa__merge_head(&x, h, (float *)(void *)base, (float *)(void *)(base + uvo), (float *)(void *)(base + temp));
    return SWA_OK;
}

/* ---- the public calls ---- */

static swa_status swa__mla_call(const swa_cache *cache, int layer, const swa_step *step, const swa_mla *mla,
                                const float *h, float *out, int phase, int parts, swa__mla *x, swa__call *call) {
    const swa__cache *c = swa__get(cache);
    swa_status status = swa__mla_check(mla);
    swa_shape latent, expanded;
    swa_attn a;
    int64_t n = 0;
    int i;
    if (status != SWA_OK) return status;
    if (c == NULL || step == NULL || h == NULL || out == NULL || mla->scratch == NULL) return SWA_ERR_ARG;
    if (step->n_runs < 0 || (step->n_runs > 0 && step->runs == NULL)) return SWA_ERR_ARG;
    if (mla->path == SWA_MLA_MERGED && mla->merged == NULL) return SWA_ERR_ARG;
    latent = swa_mla_shape(mla, 0);
    expanded = swa_mla_shape(mla, 1);
    *x = swa__mla_sizes(mla);
    x->expanded = !swa__shape_is(&c->d.shape, &latent);
    if (x->expanded && !swa__shape_is(&c->d.shape, &expanded)) return SWA_ERR_ARG;
    if (x->expanded && (mla->path == SWA_MLA_ABSORBED || mla->path == SWA_MLA_MERGED)) return SWA_ERR_ARG;
    if (parts < 1 || parts > c->d.max_parts) return SWA_ERR_ORDER;
    for (i = 0; i < step->n_runs; i++) {
        if (step->runs[i].n < 0) return SWA_ERR_ORDER;
        n += step->runs[i].n;
    }
    if (n > INT32_MAX || !swa__mla_carve(x, (size_t)n, parts, swa__align64(mla->scratch))) return SWA_ERR_OVERFLOW;
    a = swa__mla_attn(x);
    status = swa__ring_call(cache, layer, step, &a, phase >= 5, 0, 1, call);        /* 5 is its second phase */
    if (status != SWA_OK) return status;
    if (mla->scratch_bytes < x->bytes) return SWA_ERR_MEMORY;
    x->c = c;
    x->layer = layer;
    x->step = step;
    x->kr = swa__kernels_of(c->d.isa);
    x->h = h;
    x->out = out;
    x->of = parts;
    return SWA_OK;
}
static void swa__mla_phase(const swa__mla *x, const swa__call *call, int phase) {
    if (x->n == 0) return;
    if (phase == 0) swa__mla_down(x);
    else if (phase == 1) swa__mla_norms(x);
    else if (phase == 2) swa__mla_queries(x);
    else if (phase == 3) swa__mla_turn_queries(x);
    else if (phase == 4 || phase == 5) swa__mla_attend(x, call, phase - 4);
    else if (phase == 6) swa__mla_values(x);
    else swa__mla_output(x);
}
SWA_API swa_status swa_mla_forward_part(swa_cache *cache, int layer, const swa_step *step, const swa_mla *mla,
                                        const float *h, float *out, int phase, int part, int parts) {
    swa__mla x;
    swa__call call;
    swa_status status = swa__mla_call(cache, layer, step, mla, h, out, phase, parts, &x, &call);
    if (status != SWA_OK && status != SWA_ERR_MEMORY) return status;
    if (phase < 0 || phase >= SWA_MLA_PHASES || part < 0 || part >= parts) return SWA_ERR_ORDER;
    if (status != SWA_OK) return status;
    x.part = part;
    x.pack += (size_t)part * SWA__PACK;
    swa__mla_phase(&x, &call, phase);
    return SWA_OK;
}
SWA_API swa_status swa_mla_forward(swa_cache *cache, int layer, const swa_step *step, const swa_mla *mla,
                                   const float *h, float *out) {
    swa__mla x;
    swa__call call;
    swa_status status;
    int parts = 1, phase, part;
#if SWA__OPENMP
    parts = swa__get(cache) != NULL ? swa__get(cache)->d.max_parts : 1;
#endif
    status = swa__mla_call(cache, layer, step, mla, h, out, 0, parts, &x, &call);
#if SWA__OPENMP
    while (status == SWA_ERR_MEMORY && parts > 1)
        status = swa__mla_call(cache, layer, step, mla, h, out, 0, --parts, &x, &call);
#endif
    if (status != SWA_OK) return status;
    for (phase = 0; phase < SWA_MLA_PHASES; phase++) {
#if SWA__OPENMP
#pragma omp parallel for schedule(static, 1) num_threads(parts) if (parts > 1)
#endif
        for (part = 0; part < parts; part++) {
            swa__mla mine = x;
            mine.part = part;
            mine.pack += (size_t)part * SWA__PACK;
            swa__mla_phase(&mine, &call, phase);
        }
    }
    return SWA_OK;
}

#ifdef __cplusplus
}
#endif
#if SWA__FAST_MATH && defined(__clang__)
#  pragma float_control(pop)
#elif SWA__FAST_MATH
#  pragma GCC pop_options
#endif
#undef SWA__IMPLEMENTING
#endif /* SWA__KERNEL_PASS, SWA__IMPLEMENTING */

/* ==== [SECTION 14] LICENSE ======================================================================================
   Choose whichever you prefer. SPDX-License-Identifier: MIT OR Unlicense

   Alternative A - MIT License. Copyright (c) 2026 the swa.h authors

   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
   documentation files (the "Software"), to deal in the Software without restriction, including without
   limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the
   Software, and to permit persons to whom the Software is furnished to do so, subject to the following
   conditions: The above copyright notice and this permission notice shall be included in all copies or
   substantial portions of the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS
   OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE
   AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR
   OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION
   WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

   Alternative B - Public Domain (www.unlicense.org)

   This is free and unencumbered software released into the public domain. Anyone is free to copy, modify,
   publish, use, compile, sell, or distribute this software, either in source code form or as a compiled binary,
   for any purpose, commercial or non-commercial, and by any means. In jurisdictions that recognize copyright
   laws, the author or authors of this software dedicate any and all copyright interest in the software to the
   public domain. We make this dedication for the benefit of the public at large and to the detriment of our
   heirs and successors. We intend this dedication to be an overt act of relinquishment in perpetuity of all
   present and future rights to this software under copyright law. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT
   WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
   FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS BE LIABLE FOR ANY CLAIM,
   DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN
   CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE. */
