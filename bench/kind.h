/* kind.h - which kind of CPU this is: names a folder of results, since figures of one kind say nothing of another.
   Include swa.h first. */
#ifndef BENCH_KIND_H
#define BENCH_KIND_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The first line of /proc/cpuinfo that begins with `key`, behind its colon; "" = none. */
static inline void cpuinfo_field(const char *key, char *value, size_t size)
{
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

/* "zen4", "sapphire-rapids", ...; of a CPU that is not in the list its vendor, family and model. */
static inline const char *cpu_kind(void)
{
    static const struct { const char *vendor; int family, from, to; const char *kind; } known[] = {
        { "AuthenticAMD", 25, 0x10, 0x1f, "zen4" }, { "AuthenticAMD", 25, 0x60, 0x7f, "zen4" },
        { "AuthenticAMD", 25, 0xa0, 0xaf, "zen4" }, { "AuthenticAMD", 25, 0x00, 0x5f, "zen3" },
        { "AuthenticAMD", 26, 0x00, 0xff, "zen5" }, { "GenuineIntel", 6, 143, 143, "sapphire-rapids" },
        { "GenuineIntel", 6, 207, 207, "emerald-rapids" }, { "GenuineIntel", 6, 173, 174, "granite-rapids" },
        { "GenuineIntel", 6, 106, 108, "ice-lake" }, { "GenuineIntel", 6, 85, 85, "skylake-sp" },
    };
    static char name[192];
    char vendor[64], text[64];
    int family, model;
    cpuinfo_field("vendor_id", vendor, sizeof vendor);
    cpuinfo_field("cpu family", text, sizeof text);
    family = atoi(text);
    cpuinfo_field("model\t", text, sizeof text);
    model = atoi(text);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(vendor, known[i].vendor) == 0 && family == known[i].family && model >= known[i].from &&
            model <= known[i].to) return known[i].kind;
    if (vendor[0]) snprintf(name, sizeof name, "%s-%d-%d", vendor, family, model);
    else {                                      /* Arm: implementer and part */
        cpuinfo_field("CPU implementer", vendor, sizeof vendor);
        cpuinfo_field("CPU part", text, sizeof text);
        snprintf(name, sizeof name, "arm-%s-%s", vendor[0] ? vendor : "unknown", text[0] ? text : "unknown");
    }
    return name;
}

/* Where results of this machine belong: bench/results/KIND/file. The folder is made. */
static inline const char *results_path(const char *file)
{
    static char path[256];
    mkdir("bench/results", 0777);
    snprintf(path, sizeof path, "bench/results/%s", cpu_kind());
    mkdir(path, 0777);
    snprintf(path, sizeof path, "bench/results/%s/%s", cpu_kind(), file);
    return path;
}

/* CPU, compiler and library, for the log and for the file beside the CSV. */
static inline void describe(FILE *f)
{
    char line[256];
    cpuinfo_field("model name", line, sizeof line);
#ifdef __clang__
    const char *cc = "";
#else
    const char *cc = "gcc ";
#endif
    fprintf(f, "%s (%s); %ld cores; best instruction set %s; %s%s -O2; swa.h %s\n",
            line, cpu_kind(), sysconf(_SC_NPROCESSORS_ONLN),
            swa_isa_name(swa_isa_best()), cc, __VERSION__, SWA_VERSION_STRING);
}

/* Beside a CSV of results the machine, in a .txt of the same name. */
static inline void note_machine(const char *csv)
{
    char note[512];
    FILE *f;
    snprintf(note, sizeof note, "%.*s.txt", (int)(strlen(csv) - (strstr(csv, ".csv") ? 4 : 0)), csv);
    f = fopen(note, "w");
    if (f == NULL) return;
    describe(f);
    fclose(f);
}
#endif
