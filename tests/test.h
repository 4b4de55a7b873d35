/* test.h - the frame around every tests/test_*.c. One binary per file:

       #define SWA_IMPLEMENTATION
       #include "../swa.h"
       #include "test.h"

       TEST(one_thing) { CHECK(1 + 1 == 2); }               // registers itself; nothing else to write
       TEST_EACH_ISA(other) { use(isa); }                   // runs once per usable instruction set, counted each

   A failed CHECK prints one line with file:line and the test goes on; REQUIRE leaves the function (void only).
   t_label("W=%d", W) names the case of a loop in those lines.
   Every test starts from its own fixed seed, and whatever t_alloc gave is freed (and its edges checked) after it.
   `build/test_x` runs all, `build/test_x words` those whose name holds one of them, -l lists, -v prints times, -x stops
   at the first test that fails.
   SWA_TEST_SEED=n in the environment changes all seeds; SWA_TEST_ALL=1 leaves nothing out (t_thin). The last line is
   always `N passed, N failed, N skipped`; the exit code is 0 only if something passed and nothing failed. */
#ifndef SWA_TEST_H
#define SWA_TEST_H
#include "../swa.h"
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- registration ---- */

typedef struct t_test {
    const char *name;
    void (*fn)(int isa);
    int each_isa;
    struct t_test *next;
} t_test;
typedef struct t_block {
    struct t_block *next;
    unsigned char *p;
    size_t bytes;
    const char *file;
    int line;
} t_block;

static struct {
    t_test *first, **last;
    t_block *blocks;
    const t_test *now;
    int isa;                       /* of the test that runs; 0 = it runs once */
    int failures, checks, skipped; /* of the test that runs */
    char label[120];               /* which case of a loop it is at: t_label() */
    int n_passed, n_failed, n_skipped;
    int stop; /* -x: at the first failure */
    uint64_t rng;
} t_;

static inline void t_register(t_test *test) {
    if (!t_.last) t_.last = &t_.first;
    *t_.last = test;
    t_.last = &test->next;
}
#define T_DEFINE(name, each)                                                                                           \
    static void t_fn_##name(int isa);                                                                                  \
    static t_test t_test_##name = { #name, t_fn_##name, each, NULL };                                                  \
    __attribute__((constructor)) static void t_reg_##name(void) { t_register(&t_test_##name); }                        \
    static void t_fn_##name(int isa)
#define TEST(name)                                                                                                     \
    static void t_body_##name(void);                                                                                   \
    T_DEFINE(name, 0) {                                                                                                \
        (void)isa;                                                                                                     \
        t_body_##name();                                                                                               \
    }                                                                                                                  \
    static void t_body_##name(void)
#define TEST_EACH_ISA(name) T_DEFINE(name, 1) /* { body } with an `int isa` to put into .isa fields */

/* make check sets SWA_TEST_ALL=1: every way of every case. Without it the scalar instruction set, whose products are
   calls of fmaf and take twenty times as long as vectors do, is taken through fewer ways of the dear cases. */
static inline int t_all(void) { return getenv("SWA_TEST_ALL") != NULL; }
static inline int t_thin(int isa) { return isa == SWA_ISA_SCALAR && !t_all(); }
/* Of the ways of a case a thin run goes each `every`th, other ones for the next case: 1 = way `way` of case i is left
   out. The ways are those of code that all instances share, so between the cases each way is still gone. */
static inline int t_leave(int isa, int i, int way, int every) { return t_thin(isa) && (i + way) % every != 0; }

/* for (int isa ...) over what this machine can run; FOR_ISA(isa) { ... } */
static inline int t_next_isa(int isa) {
    do { isa++; } while (isa <= SWA_ISA_AVX512 && !swa_isa_usable(isa));
    return isa;
}
#define FOR_ISA(isa) for (int isa = t_next_isa(0); isa <= SWA_ISA_AVX512; isa = t_next_isa(isa))
/* Another instruction set, for the bits of a case that every one runs from the same seed. The scalar one compares
   itself with a fast one, so that no fast one needs it. */
static inline int t_other(int isa) {
    int other = isa;
    FOR_ISA(x) if (x != isa && x != SWA_ISA_SCALAR) other = x;
    return other;
}

/* ---- checks ---- */

/* Names the case a loop is at; it stands in every failure line until the next call or the end of the test. */
static inline void t_label(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(t_.label, sizeof t_.label, format, args);
    va_end(args);
}

static inline const char *t_base(const char *file) {
    const char *s = strrchr(file, '/');
    return s ? s + 1 : file;
}

/* Counts a failure; returns 1 if its line should be printed (a test prints at most 12, so that a broken loop over a
   million cases stays readable). */
static inline int t_fail(const char *file, int line) {
    t_.failures++;
    if (t_.failures == 13) printf("... %s: further failures of this test are only counted\n", t_.now->name);
    if (t_.failures > 12) return 0;
    printf("%s:%d: %s%s%s%s%s: ", t_base(file), line, t_.now->name, t_.isa ? "/" : "",
           t_.isa ? swa_isa_name(t_.isa) : "", t_.label[0] ? ", " : "", t_.label);
    return 1;
}
static inline int t_check(int ok, const char *text, const char *file, int line) {
    t_.checks++;
    if (!ok && t_fail(file, line)) printf("CHECK(%s)\n", text);
    return ok;
}
static inline int t_check_int(long long got, long long want, const char *text, const char *file, int line) {
    t_.checks++;
    if (got == want) return 1;
    if (t_fail(file, line)) printf("%s is %lld, expected %lld\n", text, got, want);
    return 0;
}
static inline int t_check_status(swa_status got, swa_status want, const char *text, const char *file, int line) {
    t_.checks++;
    if (got == want) return 1;
    if (t_fail(file, line))
        printf("%s gave \"%s\" (%d), expected \"%s\" (%d)\n", text, swa_status_str(got), (int)got, swa_status_str(want),
               (int)want);
    return 0;
}
/* |got - want| <= tol; a NaN on one side only is a failure, so is an infinity that the other side lacks. */
static inline int t_near(double got, double want, double tol) {
    if (got != got || want != want) return got != got && want != want;
    if (got - want != got - want) return got > want ? 0 : !(got < want);
    return fabs(got - want) <= tol;
}
static inline int t_check_near(double got, double want, double tol, const char *text, const char *file, int line) {
    t_.checks++;
    if (t_near(got, want, tol)) return 1;
    if (t_fail(file, line))
        printf("%s is %.9g, expected %.9g (off by %.3g, allowed %.3g)\n", text, got, want, fabs(got - want), tol);
    return 0;
}
/* n floats against n doubles; the tolerance is rel times the largest finite |want|. */
static inline int t_check_close(const float *got, const double *want, size_t n, double rel, const char *text,
                                const char *file, int line) {
    double top = 0, worst = -1;
    size_t at = 0;
    t_.checks++;
    for (size_t i = 0; i < n; i++)
        if (fabs(want[i]) > top && want[i] - want[i] == 0.0) top = fabs(want[i]);
    for (size_t i = 0; i < n; i++) {
        double off = t_near((double)got[i], want[i], rel * top) ? -1 : fabs((double)got[i] - want[i]);
        if (off != off) off = HUGE_VAL;
        if (off > worst) {
            worst = off;
            at = i;
        }
    }
    if (worst < 0) return 1;
    if (t_fail(file, line))
        printf("%s[%llu of %llu] is %.9g, expected %.9g (off by %.3g, allowed %.3g)\n", text, (unsigned long long)at,
               (unsigned long long)n, (double)got[at], want[at], fabs((double)got[at] - want[at]), rel * top);
    return 0;
}
/* n floats, bit for bit. */
static inline int t_check_bits(const float *a, const float *b, size_t n, const char *text, const char *file, int line) {
    size_t i = 0;
    t_.checks++;
    if (n == 0 || memcmp(a, b, n * sizeof *a) == 0) return 1;
    while (memcmp(a + i, b + i, sizeof *a) == 0) i++;
    if (t_fail(file, line))
        printf("%s differ first at [%llu of %llu]: %.9g and %.9g\n", text, (unsigned long long)i, (unsigned long long)n,
               (double)a[i], (double)b[i]);
    return 0;
}
#define CHECK(cond)                    t_check(!!(cond), #cond, __FILE__, __LINE__)
#define CHECK_INT(got, want)           t_check_int((long long)(got), (long long)(want), #got, __FILE__, __LINE__)
#define CHECK_STATUS(call, want)       t_check_status(call, want, #call, __FILE__, __LINE__)
#define CHECK_OK(call)                 t_check_status(call, SWA_OK, #call, __FILE__, __LINE__)
#define CHECK_NEAR(got, want, tol)     t_check_near((double)(got), (double)(want), tol, #got, __FILE__, __LINE__)
#define CHECK_CLOSE(got, want, n, rel) t_check_close(got, want, (size_t)(n), rel, #got, __FILE__, __LINE__)
#define CHECK_BITS(a, b, n)            t_check_bits(a, b, (size_t)(n), #a " and " #b, __FILE__, __LINE__)
#define REQUIRE(cond)                                                                                                  \
    do {                                                                                                               \
        if (!CHECK(cond)) return;                                                                                      \
    } while (0)
#define REQUIRE_OK(call)                                                                                               \
    do {                                                                                                               \
        if (!CHECK_OK(call)) return;                                                                                   \
    } while (0)
/* Leaves the test (void functions only); loud, and counted. */
#define SKIP(reason)                                                                                                   \
    do {                                                                                                               \
        t_skip(reason, __FILE__, __LINE__);                                                                            \
        return;                                                                                                        \
    } while (0)
static inline void t_skip(const char *reason, const char *file, int line) {
    printf("SKIPPED %s:%d: %s: %s\n", t_base(file), line, t_.now->name, reason);
    t_.skipped = 1;
}

/* ---- memory: exactly as large as asked, full of NaN, freed after the test ---- */

/* Under ASan, or with -DTEST_EXACT for valgrind, a block has exactly the bytes asked for, so those tools see one
   float too far. Without them 64 guard bytes on either side are compared when the test ends. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define T_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(T_ASAN) || defined(TEST_EXACT)
static size_t t_guard = 0;
#else
static size_t t_guard = 64;
#endif

static inline void *t_alloc_at(size_t bytes, const char *file, int line) {
    t_block *b = (t_block *)malloc(sizeof *b);
    size_t whole = bytes + 2 * t_guard;
    unsigned char *p = (unsigned char *)malloc(whole ? whole : 1);
    if (!b || !p) {
        printf("%s:%d: out of memory\n", t_base(file), line);
        exit(2);
    }
    memset(p, 0xA5, t_guard);
    memset(p + t_guard, 0xFF, bytes); /* all ones is a NaN as f32, f16 and bf16 */
    memset(p + t_guard + bytes, 0xA5, t_guard);
    b->p = p;
    b->bytes = bytes;
    b->file = file;
    b->line = line;
    b->next = t_.blocks;
    t_.blocks = b;
    return p + t_guard;
}
/* Frees what was allocated since `mark` (= t_.blocks then): for loops over many large cases. */
static inline void t_free_to(const t_block *mark) {
    while (t_.blocks != mark) {
        t_block *b = t_.blocks;
        int bad = 0;
        for (size_t i = 0; i < t_guard; i++) bad |= b->p[i] != 0xA5 || b->p[t_guard + b->bytes + i] != 0xA5;
        if (bad && t_fail(b->file, b->line))
            printf("bytes outside this block of %llu were written\n", (unsigned long long)b->bytes);
        t_.blocks = b->next;
        free(b->p);
        free(b);
    }
}
#define t_alloc(bytes) t_alloc_at((size_t)(bytes), __FILE__, __LINE__)
#define t_floats(n)    ((float *)t_alloc_at((size_t)(n) * sizeof(float), __FILE__, __LINE__))
#define t_doubles(n)   ((double *)t_alloc_at((size_t)(n) * sizeof(double), __FILE__, __LINE__))

/* A cache and its scratch for so many parts, both of exactly the size asked for. parts 0 = one, or three with OpenMP,
   which takes as many threads as the scratch holds. 0 = refused, and counted. */
static inline int t_cache_new(swa_cache *kv, const swa_cache_desc *desc, int parts) {
#ifdef _OPENMP
    const int least = 3;
#else
    const int least = 1;
#endif
    size_t bytes = swa_cache_bytes(desc), room = swa_cache_scratch_bytes(desc, parts > 0 ? parts : least);
    return CHECK(bytes > 0 && room > 0) && CHECK_OK(swa_cache_init(kv, desc, t_alloc(bytes), bytes))
        && CHECK_OK(swa_cache_set_scratch(kv, t_alloc(room), room));
}
/* What audit asks for where a window pins sinks: q again, since they keep their places. */
static inline void t_say_sinks(swa_attn *a, int audit, const swa_window *w) {
    if (!audit || w->n_sink == 0) return;
    a->q_sink = a->q;
    a->q_sink_tail = a->q_tail;
}
/* A type of K and V, for labels. */
static inline const char *t_type(swa_type type) {
    static const char *const names[] = { "", "f32", "f16", "bf16", "q8", "", "", "", "", "q8_32", "e4m3", "e5m2" };
    return names[type];
}
/* n tokens of one sequence from pos on. */
static inline swa_run t_run(int seq, int64_t pos, int32_t n) {
    swa_run r;
    memset(&r, 0, sizeof r);
    r.seq = seq;
    r.pos = pos;
    r.n = n;
    return r;
}

/* ---- random numbers: xorshift, one stream, reseeded for every test ---- */

static inline void t_seed(uint64_t seed) { t_.rng = (seed ^ 0x9E3779B97F4A7C15u) | 1u; }
static inline uint32_t t_u32(void) {
    t_.rng ^= t_.rng >> 12;
    t_.rng ^= t_.rng << 25;
    t_.rng ^= t_.rng >> 27;
    return (uint32_t)((t_.rng * 0x2545F4914F6CDD1Du) >> 32);
}
static inline int t_int(int lo, int hi) { /* lo..hi, both included */
    return lo + (int)(t_u32() % (uint32_t)(hi - lo + 1));
}
static inline float t_unit(void) { return (float)((double)t_u32() * (2.0 / 4294967296.0) - 1.0); } /* [-1, 1) */
static inline float t_normal(void) { /* mean 0, variance 1 */
    double s = 0;
    for (int i = 0; i < 12; i++) s += (double)t_u32() * (1.0 / 4294967296.0);
    return (float)(s - 6.0);
}
static inline float *t_fill(float *x, size_t n, float scale) {
    for (size_t i = 0; i < n; i++) x[i] = scale * t_unit();
    return x;
}
/* A new block of n uniforms in [-scale, scale). */
#define t_random(n, scale) t_fill(t_floats(n), (size_t)(n), scale)
/* What a call finds on the stack must not matter: it is full of numbers that are no pointers. */
__attribute__((noinline, unused)) static void t_dirty_stack(void) {
    static void *(*volatile fill)(void *, int, size_t) = memset; /* a compiler drops stores that nobody reads */
    unsigned char x[60000];
    fill(x, 0x41, sizeof x);
}

/* ---- main ---- */

static inline void t_run_one(const t_test *test, int isa, int verbose) {
    clock_t t0 = clock();
    uint64_t seed = 1469598103934665603u;
    const char *extra = getenv("SWA_TEST_SEED");
    if (t_.stop && t_.n_failed) return;
    for (const char *s = test->name; *s; s++) seed = (seed ^ (unsigned char)*s) * 1099511628211u;
    if (extra) seed += strtoull(extra, NULL, 10) * 0x9E3779B97F4A7C15u;
    t_seed(seed);
    t_.now = test;
    t_.isa = isa;
    t_.failures = t_.checks = t_.skipped = 0;
    t_.label[0] = 0;
    test->fn(isa);
    t_free_to(NULL);
    if (!t_.checks && !t_.skipped && t_fail("test", 0)) printf("checked nothing\n");
    if (t_.failures) t_.n_failed++;
    else if (t_.skipped) t_.n_skipped++;
    else t_.n_passed++;
    if (verbose)
        printf("%-40s %-8s %9d checks %8.3f s  %s\n", test->name, isa ? swa_isa_name(isa) : "", t_.checks,
               (double)(clock() - t0) / CLOCKS_PER_SEC,
               t_.failures  ? "FAILED"
               : t_.skipped ? "skipped"
                            : "ok");
    fflush(stdout);
}
static inline int t_wanted(const char *name, char **words, int n) {
    for (int i = 0; i < n; i++)
        if (strstr(name, words[i])) return 1;
    return n == 0;
}
int main(int argc, char **argv) {
    int verbose = 0, list = 0, words = 0; /* the words are moved to the front of argv */
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-v")) verbose = 1;
        else if (!strcmp(argv[i], "-l")) list = 1;
        else if (!strcmp(argv[i], "-x")) t_.stop = 1;
        else argv[words++] = argv[i];
    }
    for (const t_test *t = t_.first; t; t = t->next) {
        if (!t_wanted(t->name, argv, words)) continue;
        if (list) printf("%s\n", t->name);
        else if (t->each_isa) {
            FOR_ISA(isa) t_run_one(t, isa, verbose);
        } else t_run_one(t, 0, verbose);
    }
    if (list) return 0;
    if (!t_.n_passed && !t_.n_failed && !t_.n_skipped) {
        printf("no test ran\n");
        t_.n_failed = 1;
    }
    printf("%d passed, %d failed, %d skipped\n", t_.n_passed, t_.n_failed, t_.n_skipped);
    return t_.n_failed || !t_.n_passed;
}
#endif /* SWA_TEST_H */
