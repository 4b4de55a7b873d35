/* fuzz.h - a main for every fuzz target, for compilers without libFuzzer. A target has LLVMFuzzerTestOneInput, and
   says FUZZ_DIE("why") when it finds something. With -fsanitize=fuzzer -DFUZZ_LIBFUZZER this main is left out.

       fuzz_ring FILE...                          replays these inputs; directories are read whole
       fuzz_ring -n 10000 [-s SEED] [FILE...]     then 10000 inputs: random bytes, and the files with changes
       fuzz_ring -t 20                            the same for 20 seconds
       fuzz_ring -o 1000000                       until the target has counted as many operations

   What it dies of is left in fuzz-NAME.input. */
#ifndef SWA_FUZZ_H
#define SWA_FUZZ_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long fuzz_ops;            /* counted by the target: what one operation is, it knows */
static const uint8_t *fuzz_data; /* the input that runs */
static size_t fuzz_size;

#define FUZZ_DIE(...)                                                                                                  \
    do {                                                                                                               \
        printf("%s: ", FUZZ_NAME);                                                                                     \
        printf(__VA_ARGS__);                                                                                           \
        printf("\n");                                                                                                  \
        fuzz_die();                                                                                                    \
    } while (0)

static inline void fuzz_die(void) {
    FILE *f = fuzz_data ? fopen("fuzz-" FUZZ_NAME ".input", "wb") : NULL;
    if (f) {
        fwrite(fuzz_data, 1, fuzz_size, f);
        fclose(f);
        printf("the input is in fuzz-%s.input\n", FUZZ_NAME);
    }
    fflush(stdout);
    abort();
}

/* Bytes as a source of numbers: 0 when they are used up. */
typedef struct {
    const uint8_t *p;
    size_t left;
} fuzz_in;
static inline int fuzz_byte(fuzz_in *in) { return in->left > 0 ? (in->left--, *in->p++) : 0; }
static inline int fuzz_pick(fuzz_in *in, int lo, int hi) {
    int wide = hi - lo > 255 ? fuzz_byte(in) * 256 : 0;
    return lo + (wide + fuzz_byte(in)) % (hi - lo + 1);
}
static inline uint32_t fuzz_mix(uint32_t x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}
static inline float fuzz_unit(uint32_t *state) { /* [-1, 1) */
    *state += 0x9e3779b9u;
    return (float)((double)fuzz_mix(*state) * (2.0 / 4294967296.0) - 1.0);
}

#ifndef FUZZ_LIBFUZZER
#include <dirent.h>
#include <time.h>

enum { FUZZ_FILES = 512, FUZZ_LONGEST = 1 << 16 };
static struct {
    uint8_t *p;
    size_t n;
} fuzz_file[FUZZ_FILES];
static int fuzz_files;
static uint64_t fuzz_rng;

static inline uint32_t fuzz_u32(void) {
    fuzz_rng ^= fuzz_rng >> 12;
    fuzz_rng ^= fuzz_rng << 25;
    fuzz_rng ^= fuzz_rng >> 27;
    return (uint32_t)((fuzz_rng * 0x2545F4914F6CDD1Du) >> 32);
}
static inline void fuzz_run(const uint8_t *p, size_t n) {
    uint8_t *exact = (uint8_t *)malloc(n ? n : 1); /* so that a read past the end is seen */
    if (!exact) exit(2);
    memcpy(exact, p, n);
    fuzz_data = exact;
    fuzz_size = n;
    LLVMFuzzerTestOneInput(exact, n);
    fuzz_data = NULL;
    free(exact);
}
static inline int fuzz_read(const char *path) {
    DIR *dir = opendir(path);
    FILE *f;
    if (dir) {
        struct dirent *e;
        char name[1024];
        while ((e = readdir(dir)) != NULL)
            if (e->d_name[0] != '.' && snprintf(name, sizeof name, "%s/%s", path, e->d_name) < (int)sizeof name
                && !fuzz_read(name)) {
                closedir(dir);
                return 0;
            }
        closedir(dir);
        return 1;
    }
    f = fopen(path, "rb");
    if (!f || fuzz_files == FUZZ_FILES) {
        printf("%s: cannot read %s\n", FUZZ_NAME, path);
        if (f) fclose(f);
        return 0;
    }
    fuzz_file[fuzz_files].p = (uint8_t *)malloc(FUZZ_LONGEST);
    if (!fuzz_file[fuzz_files].p) exit(2);
    fuzz_file[fuzz_files].n = fread(fuzz_file[fuzz_files].p, 1, FUZZ_LONGEST, f);
    fuzz_files++;
    fclose(f);
    return 1;
}
/* One input into p: half of the time random bytes, else a file with a few bytes changed, cut, or grown. */
static inline size_t fuzz_make(uint8_t *p) {
    size_t n = fuzz_u32() % 512;
    int pick = fuzz_files > 0 && fuzz_u32() % 2 ? (int)(fuzz_u32() % (uint32_t)fuzz_files) : -1;
    if (pick < 0) {
        for (size_t i = 0; i < n; i++) p[i] = (uint8_t)fuzz_u32();
        return n;
    }
    n = fuzz_file[pick].n;
    memcpy(p, fuzz_file[pick].p, n);
    if (fuzz_u32() % 4 == 0 && n > 0) n = fuzz_u32() % n;
    if (fuzz_u32() % 4 == 0)
        for (uint32_t i = fuzz_u32() % 64; i > 0 && n < FUZZ_LONGEST; i--) p[n++] = (uint8_t)fuzz_u32();
    for (uint32_t i = fuzz_u32() % 8; i > 0 && n > 0; i--) {
        size_t at = fuzz_u32() % n;
        if (fuzz_u32() % 2) p[at] = (uint8_t)fuzz_u32();
        else p[at] ^= (uint8_t)(1u << fuzz_u32() % 8);
    }
    return n;
}
int main(int argc, char **argv) {
    long runs = 0, done = 0, ops = 0;
    double seconds = 0;
    uint64_t seed = 1;
    clock_t t0 = clock();
    uint8_t *p = (uint8_t *)malloc(FUZZ_LONGEST);
    if (!p) return 2;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' && strchr("nots", argv[i][1]) && i + 1 < argc) {
            char kind = argv[i][1];
            double value = strtod(argv[++i], NULL);
            if (kind == 'n') runs = (long)value;
            else if (kind == 'o') ops = (long)value;
            else if (kind == 't') seconds = value;
            else seed = (uint64_t)value;
        } else if (!fuzz_read(argv[i])) return 2;
    }
    for (int i = 0; i < fuzz_files; i++) fuzz_run(fuzz_file[i].p, fuzz_file[i].n);
    fuzz_rng = (seed + 1) * 0x9E3779B97F4A7C15u | 1u;
    while (done < runs || fuzz_ops < ops || (double)(clock() - t0) / CLOCKS_PER_SEC < seconds) {
        fuzz_run(p, fuzz_make(p));
        done++;
    }
    printf("%s: %d files and %ld made inputs, %ld operations, nothing found\n", FUZZ_NAME, fuzz_files, done, fuzz_ops);
    for (int i = 0; i < fuzz_files; i++) free(fuzz_file[i].p);
    free(p);
    return fuzz_files + done > 0 ? 0 : 2;
}
#endif
#endif /* SWA_FUZZ_H */
