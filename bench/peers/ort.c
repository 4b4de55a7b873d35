/* ort.c - onnxruntime's GroupQueryAttention, f32. The npm package has no C header, so node runs ort.js in a process
   of its own: a pipe asks it for a sample at a time; between samples it is stopped, because its threads spin. */
#define _GNU_SOURCE
#include "peer.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static problem p;
static pid_t child;
static FILE *to, *from;
static float *answer;
static char data_path[1024];

static int ask(const char *line, char *reply, int size) {
    kill(child, SIGCONT);
    if (line) {
        fputs(line, to);
        fflush(to);
    }
    if (fgets(reply, size, from) == NULL) return 0;
    kill(child, SIGSTOP);
    return 1;
}

static int write_inputs(void) {
    int64_t keys = p.pos + p.n - p.pos0;
    size_t nq = (size_t)p.n * (size_t)(p.heads * p.dk), nk = (size_t)keys * (size_t)(p.kv_heads * p.dk);
    FILE *f;
    snprintf(data_path, sizeof data_path, "%s/onnxruntime.data", peer_dir());
    f = fopen(data_path, "wb");
    if (f == NULL) return 0;
    nq = nq - fwrite(p.q, 4, nq, f);
    nk = 2 * nk - fwrite(p.k, 4, nk, f) - fwrite(p.v, 4, nk, f);
    return fclose(f) == 0 && nq == 0 && nk == 0;
}

static void start(int in, int out) {
    char arg[8][24], script[1024], *path;
    int64_t values[8] = { p.n, p.heads, p.kv_heads, p.dk, p.window, p.pos + p.n - p.pos0, p.threads, p.layers };
    for (int i = 0; i < 8; i++) snprintf(arg[i], sizeof arg[i], "%lld", (long long)values[i]);
    dup2(in, 0);
    dup2(out, 1);
    snprintf(script, sizeof script, "%s/ort.js", getenv("PEERS_SOURCE") ? getenv("PEERS_SOURCE") : "bench/peers");
    path = realpath(script, NULL);
    if (path == NULL || chdir(peer_dir()) != 0) _exit(127);
    execlp("node", "node", path, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5], arg[6], arg[7], "onnxruntime.data",
           (char *)NULL);
    _exit(127);
}

static const char *setup(const problem *q) {
    static char why[256];
    char path[1024];
    int down[2], up[2];
    p = *q;
    if (p.type != PEER_F32 || p.mla) return "f32 only";
    snprintf(path, sizeof path, "%s/node_modules/onnxruntime-node/package.json", peer_dir());
    if (access(path, R_OK) != 0) return "package onnxruntime-node not found: run bench/peers.sh";
    if (!write_inputs() || pipe(down) != 0 || pipe(up) != 0) return "cannot start";
    signal(SIGPIPE, SIG_IGN);
    child = fork();
    if (child < 0) return "cannot start";
    if (child == 0) {
        close(down[1]);
        close(up[0]);
        start(down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    to = fdopen(down[1], "w");
    from = fdopen(up[0], "r");
    if (to == NULL || from == NULL || !ask(NULL, why, sizeof why)) return "node did not start";
    why[strcspn(why, "\n")] = 0;
    return strcmp(why, "ready") == 0 ? NULL : why;
}

static double sample(void) {
    char reply[256];
    return ask("s\n", reply, sizeof reply) && atof(reply) > 0 ? atof(reply) : -1;
}

static const float *result(int64_t *first) {
    size_t n = (size_t)p.n * (size_t)(p.heads * p.dv);
    char reply[256], path[1040];
    FILE *f;
    *first = 0;
    answer = (float *)peer_alloc(n * 4);
    memset(answer, 0xff, n * 4);
    if (!ask("o\n", reply, sizeof reply)) return answer;
    snprintf(path, sizeof path, "%s.out", data_path);
    f = fopen(path, "rb");
    if (f == NULL) return answer;
    if (fread(answer, 4, n, f) != n) memset(answer, 0xff, n * 4);
    fclose(f);
    return answer;
}

static void done(void) {
    if (child > 0) {
        kill(child, SIGCONT);
        kill(child, SIGTERM);
        waitpid(child, NULL, 0);
    }
    if (to) fclose(to);
    if (from) fclose(from);
    free(answer);
    answer = NULL;
    to = from = NULL;
    child = 0;
}

peer peer_onnxruntime = { "onnxruntime-gqa", "npm 1.30.0", setup, sample, result, done };
