/* kind.h - which kind of CPU this is: names a folder of results, since figures of one kind say nothing of another.
   Include swa.h first. */
#ifndef BENCH_KIND_H
#define BENCH_KIND_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#ifdef __APPLE__
#include <ctype.h>
#include <sys/sysctl.h>
#endif

/* The first line of /proc/cpuinfo that begins with `key`, behind its colon; "" = none. */
static inline void cpuinfo_field(const char *key, char *value, size_t size) {
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "r");
    value[0] = 0;
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, key, strlen(key)) != 0 || colon == NULL) continue;
        snprintf(value, size, "%s", colon + (colon[1] == ' ' ? 2 : 1));
        value[strcspn(value, "\n")] = 0;
        break;
    }
    if (f) fclose(f);
}

#if defined(__APPLE__)
/* "apple-m1", "apple-m2-pro", ...: the brand in small letters. */
static inline const char *cpu_kind(void) {
    static char name[192];
    size_t size = sizeof name - 1;
    if (sysctlbyname("machdep.cpu.brand_string", name, &size, NULL, 0) != 0) return "apple-unknown";
    for (char *c = name; *c; c++) *c = (char)(isalnum((unsigned char)*c) ? tolower((unsigned char)*c) : '-');
    return name;
}
#elif defined(__aarch64__)
/* "neoverse-v1", ...; of a core that is not in the list its implementer and part. Where cores differ, the first. */
static inline const char *cpu_kind(void) {
    static const struct {
        int maker, part;
        const char *kind;
    } known[] = {
        { 0x41, 0xd03, "cortex-a53" },  { 0x41, 0xd08, "cortex-a72" },    { 0x41, 0xd0b, "cortex-a76" },
        { 0x41, 0xd0c, "neoverse-n1" }, { 0x41, 0xd40, "neoverse-v1" },   { 0x41, 0xd49, "neoverse-n2" },
        { 0x41, 0xd4f, "neoverse-v2" }, { 0x41, 0xd83, "neoverse-v3ae" }, { 0x41, 0xd84, "neoverse-v3" },
        { 0x41, 0xd8e, "neoverse-n3" }, { 0x61, 0x022, "apple-m1" },      { 0x61, 0x023, "apple-m1" },
        { 0x61, 0x032, "apple-m2" },    { 0x61, 0x033, "apple-m2" },      { 0xc0, 0xac3, "ampere-1" },
    };
    static char name[192];
    char maker[64], part[64];
    cpuinfo_field("CPU implementer", maker, sizeof maker);
    cpuinfo_field("CPU part", part, sizeof part);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strtol(maker, NULL, 0) == known[i].maker && strtol(part, NULL, 0) == known[i].part) return known[i].kind;
    snprintf(name, sizeof name, "arm-%s-%s", maker[0] ? maker : "unknown", part[0] ? part : "unknown");
    return name;
}
#else
#ifdef __x86_64__
static inline int has_prefetchi(void) {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (d >> 14 & 1);
}
#endif
/* "zen4", "sapphire-rapids", ...; of a CPU that is not in the list its vendor, family and model. */
static inline const char *cpu_kind(void) {
    static const struct {
        const char *vendor;
        int family, from, to;
        const char *kind;
    } known[] = {
        { "AuthenticAMD", 25, 0x10, 0x1f, "zen4" },        { "AuthenticAMD", 25, 0x60, 0x7f, "zen4" },
        { "AuthenticAMD", 25, 0xa0, 0xaf, "zen4" },        { "AuthenticAMD", 25, 0x00, 0x5f, "zen3" },
        { "AuthenticAMD", 26, 0x00, 0xff, "zen5" },        { "GenuineIntel", 6, 143, 143, "sapphire-rapids" },
        { "GenuineIntel", 6, 207, 207, "emerald-rapids" }, { "GenuineIntel", 6, 173, 174, "granite-rapids" },
        { "GenuineIntel", 6, 106, 108, "ice-lake" },       { "GenuineIntel", 6, 85, 85, "skylake-sp" },
    };
    static char name[192];
    char vendor[64], text[64];
    int family, model;
    cpuinfo_field("vendor_id", vendor, sizeof vendor);
    cpuinfo_field("cpu family", text, sizeof text);
    family = atoi(text);
    cpuinfo_field("model\t", text, sizeof text);
    model = atoi(text);
#ifdef __x86_64__
    /* 167 is Rocket Lake's, which has no bf16: the number that a hypervisor gives Xeons. PREFETCHI came with Granite
       Rapids; of the ones without, 105 MB of L3 and 32 KB of L1i is Sapphire Rapids (Emerald Rapids has told 207) */
    if (family == 6 && model == 167 && __builtin_cpu_supports("avx512bf16")) model = has_prefetchi() ? 173 : 143;
#endif
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(vendor, known[i].vendor) == 0 && family == known[i].family && model >= known[i].from
            && model <= known[i].to)
            return known[i].kind;
    snprintf(name, sizeof name, "%s-%d-%d", vendor[0] ? vendor : "unknown", family, model);
    return name;
}
#endif

/* Where results of this machine belong: bench/results/KIND/file. The folder is made. */
static inline const char *results_path(const char *file) {
    static char path[256];
    mkdir("bench/results", 0777);
    snprintf(path, sizeof path, "bench/results/%s", cpu_kind());
    mkdir(path, 0777);
    snprintf(path, sizeof path, "bench/results/%s/%s", cpu_kind(), file);
    return path;
}

/* CPU, compiler and library, for the log and for the file beside the CSV. */
static inline void describe(FILE *f) {
    char line[256];
    cpuinfo_field("model name", line, sizeof line);
    if (line[0] == 0) snprintf(line, sizeof line, "CPU"); /* Arm's kernels tell no name */
#ifdef __clang__
    const char *cc = "";
#else
    const char *cc = "gcc ";
#endif
    fprintf(f, "%s (%s); %ld cores; best instruction set %s; %s%s -O2; swa.h %s\n", line, cpu_kind(),
            sysconf(_SC_NPROCESSORS_ONLN), swa_isa_name(swa_isa_best()), cc, __VERSION__, SWA_VERSION_STRING);
}

/* Beside a CSV of results the machine, in a .txt of the same name. */
static inline void note_machine(const char *csv) {
    char note[512];
    FILE *f;
    snprintf(note, sizeof note, "%.*s.txt", (int)(strlen(csv) - (strstr(csv, ".csv") ? 4 : 0)), csv);
    f = fopen(note, "w");
    if (f == NULL) return;
    describe(f);
    fclose(f);
}

/* Rows go to PATH.part, which takes PATH's name when all are there: a run that was cut short leaves the last results as
   they were. NULL and 0 if a file could not be written. */
static inline void csv_part(char name[512], const char *path) { snprintf(name, 512, "%s.part", path); }
static inline FILE *csv_open(const char *path, const char *columns) {
    char part[512];
    FILE *csv;
    csv_part(part, path);
    csv = fopen(part, "w");
    if (csv) fprintf(csv, "%s\n", columns);
    return csv;
}
static inline int csv_close(FILE *csv, const char *path) {
    char part[512];
    csv_part(part, path);
    if (fclose(csv) != 0 || rename(part, path) != 0) return 0;
    note_machine(path);
    return 1;
}
#endif
