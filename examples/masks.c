/* masks.c - draws any window: in the terminal, or as SVG with --svg (the figure of the Mistral paper: rows are queries,
   columns keys; past chunks, the cache's part and the current chunk have their own colours).
     masks [--svg] [sliding W | causal | flash L R | chunked C | symmetric N | sinks W N] [first query] [queries] */
#define SWA_IMPLEMENTATION
#include "../swa.h"
#include "example.h"

static int usage(void) {
    fprintf(stderr, "masks [--svg] [causal | sliding W | flash L R | chunked C | symmetric N | sinks W N] "
                    "[first query [queries]]\n");
    return 2;
}

/* What is no number, or more than any window or picture has, ends the program. */
static long integer(const char *word) {
    char *end;
    const long n = strtol(word, &end, 10);
    if (end == word || *end != 0 || n < -1000000000 || n > 1000000000) exit(usage());
    return n;
}

/* Reads the window's words; how many were read, 0 = not understood. */
static int window_of(int n, char **word, swa_window *w) {
    long a, b;
    if (n > 0 && strcmp(word[0], "causal") == 0) {
        *w = swa_window_causal();
        return 1;
    }
    a = n > 1 ? integer(word[1]) : 0;
    b = n > 2 ? integer(word[2]) : 0;
    if (n > 1 && strcmp(word[0], "sliding") == 0) {
        *w = swa_window_sliding(a);
        return 2;
    }
    if (n > 1 && strcmp(word[0], "chunked") == 0) {
        *w = swa_window_chunked(a);
        return 2;
    }
    if (n > 1 && strcmp(word[0], "symmetric") == 0) {
        *w = swa_window_symmetric(a);
        return 2;
    }
    if (n > 2 && strcmp(word[0], "flash") == 0) {
        *w = swa_window_flash(a, b);
        return 3;
    }
    if (n > 2 && strcmp(word[0], "sinks") == 0) {
        *w = swa_window_sinks(a, (int32_t)b);
        return 3;
    }
    return 0;
}

static void terminal(const swa_window *w, int64_t first, int n) {
    for (int64_t q = first; q < first + n; q++) {
        printf("%4lld  ", (long long)q);
        for (int64_t k = 0; k < first + n; k++) printf("%s", swa_visible(w, q, k) ? (k < first ? "o " : "# ") : ". ");
        printf("\n");
    }
    printf("      # current chunk   o in the cache   . hidden      %s\n", swa_explain(w, first + n - 1, 0));
}

static void svg(const swa_window *w, int64_t first, int n) {
    const int cell = 18, left = 40, top = 34, columns = (int)first + n;
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" ", left + columns * cell + 10,
           top + n * cell + 28);
    printf("font-family=\"sans-serif\" font-size=\"11\">\n");
    printf("<title>who sees whom: rows are queries, columns keys</title>\n");
    for (int q = 0; q < n; q++) {
        printf("<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#888\">%d</text>\n", left - 6, top + q * cell + 13,
               (int)first + q);
        for (int k = 0; k < columns; k++) {
            int seen = swa_visible(w, first + q, k);
            const char *fill = !seen ? (k < first ? "#8884" : "#8882") : k < first ? "#e8a33d" : "#3d7be8";
            printf("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"2\" fill=\"%s\"/>\n", left + k * cell,
                   top + q * cell, cell - 2, cell - 2, fill);
        }
    }
    if (first > 0) printf("<text x=\"%d\" y=\"%d\" fill=\"#e8a33d\">past, from the cache</text>\n", left, top - 12);
    printf("<text x=\"%d\" y=\"%d\" fill=\"#3d7be8\">current</text>\n", left + (int)first * cell, top - 12);
    printf("<text x=\"%d\" y=\"%d\" fill=\"#888\">keys</text>\n</svg>\n", left, top + n * cell + 16);
}

int main(int argc, char **argv) {
    swa_window w = swa_window_sliding(4);
    int at = 1, drawn = 0, used, n;
    int64_t first;
    if (at < argc && strcmp(argv[at], "--svg") == 0) {
        drawn = 1;
        at++;
    }
    used = window_of(argc - at, argv + at, &w);
    if (at < argc && used == 0) return usage();
    at += used;
    first = at < argc ? integer(argv[at++]) : 6;
    n = at < argc ? (int)integer(argv[at++]) : 6;
    if (at < argc) return usage();
    if (!swa_visible(&w, 0, 0) || first < 0 || first > 200 || n < 1 || n > 200) return usage();
    if (drawn) svg(&w, first, n);
    else terminal(&w, first, n);
    return 0;
}
