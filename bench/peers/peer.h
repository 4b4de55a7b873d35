/* peer.h - what a peer has to do so that it can be timed beside swa.h on the same work. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H
#include <stdint.h>

enum { PEER_F32 = 1, PEER_F16, PEER_BF16, PEER_Q8 };

/* n queries at positions pos..pos+n-1; keys from position pos0 to the last query; token-major f32 inputs. */
typedef struct {
    int n, heads, kv_heads, dk, dv, mla; /* mla: V is the first dv numbers of K                             */
    int64_t window, pos, pos0;           /* 0 = causal                                                      */
    int type, threads, layers;           /* K/V type; layers of equal K/V to rotate over, to be cold        */
    double scale;
    const float *q, *k, *v; /* [n][heads][dk], [keys][kv_heads][dk], [keys][kv_heads][dv]      */
} problem;

typedef struct {
    const char *name;
    const char *version;                    /* valid once setup has succeeded                                  */
    const char *(*setup)(const problem *p); /* NULL, or why not                                                */
    double (*sample)(void);                 /* seconds per layer                                               */
    const float *(*out)(int64_t *first);    /* [token][heads][dv] of the last sample, from token *first on     */
    void (*done)(void);
} peer;

extern peer peer_ggml_flash, peer_ggml_flash_512, peer_ggml_matmul, peer_openblas, peer_naive, peer_onnxruntime;

/* oneDNN's product of bf16 matrices, [m][k] times [k][n]: not attention, but the limit of what is made of products. */
extern const char *onednn_setup(int m, int k, int n, int threads); /* NULL, or why not                          */
extern const char *onednn_version(void);
extern double onednn_sample(void); /* seconds per product                                             */
extern double onednn_error(void);  /* of some entries, relative to the root of k                      */
extern void onednn_done(void);

/* From peers.c: runs fn(arg, part, parts) on `threads` pinned threads, returns seconds. */
extern double peer_parallel(int threads, void (*fn)(void *arg, int part, int parts), void *arg);
extern void *peer_alloc(unsigned long bytes);
extern void peer_convert(void *dst, int type, const float *src, unsigned long n);
extern const char *peer_dir(void); /* where peers.sh has put the packages                             */

#endif
