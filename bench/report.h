/* report.h - what a benchmark prints: the machine, its limits, a line per case; and the same as CSV. Include limits.h
   and what it needs first. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "kind.h"

static double smallest(const double *x, int n) {
    double m = x[0];
    for (int i = 1; i < n; i++)
        if (x[i] < m) m = x[i];
    return m;
}

typedef struct {
    const char *name, *unit, *limit;
    int isa, threads;
    swa_type type;                  /* of K and V                                                     */
    double med, min, rate, percent; /* seconds, seconds, in units, of the limit                       */
    double percent_fma;             /* of the FMA loop in registers, where a product binds; else 0          */
} result;

/* Which limit binds. The scalar product is the loop in registers. */
static const char *limit_name(int isa, int dram) { return dram ? "dram" : isa == SWA_ISA_SCALAR ? "fma" : "product"; }

/* more: what the log says behind it; csv may be NULL. */
static void report(FILE *csv, const result *r, const char *more) {
    char fma[16] = "";
    if (r->percent_fma > 0) snprintf(fma, sizeof fma, "%.2f", r->percent_fma);
    printf("%-46s %-7s %-5s %d %12.2f %12.2f %9.2f %-8s %7.1f %% of %-8s %6s %s\n", r->name, swa_isa_name(r->isa),
           type_name(r->type), r->threads, r->med * 1e6, r->min * 1e6, r->rate, r->unit, r->percent, r->limit, fma,
           more);
    fflush(stdout);
    if (csv)
        fprintf(csv, "%s,%s,%s,%s,%d,%.3f,%.3f,%.3f,%s,%s,%.2f,%s\n", r->name, swa_isa_name(r->isa), type_name(r->type),
                type_name(r->type), r->threads, r->med * 1e6, r->min * 1e6, r->rate, r->unit, r->limit, r->percent,
                fma);
}

/* The limits themselves, as rows of their own. */
static void limit_row(FILE *csv, const char *name, int isa, int threads, double rate, const char *unit) {
    printf("%-46s %-7s %-5s %d %47.2f %s\n", name, swa_isa_name(isa), "-", threads, rate, unit);
    if (csv) fprintf(csv, "%s,%s,-,-,%d,0,0,%.3f,%s,%s,100,\n", name, swa_isa_name(isa), threads, rate, unit, name);
}

/* The best of five FMA loops; of product loops the median, and longer: the clock takes its time to fall. */
static double fma_limit(pool *p, int isa, int product) {
    double rate[5], best = 0;
    for (int r = 0; r < 5; r++) {
        rate[r] = fma_sample(p, isa, product, product ? 0.1 : 0.005);
        if (rate[r] > best) best = rate[r];
    }
    return product ? median(rate, 5) : best;
}

static void limit_rows(FILE *csv, const int *threads, int n) {
    for (int i = 0; i < n; i++) {
        pool p;
        pool_start(&p, threads[i]);
        double dram = machine_calibrate(&p), l2 = l2_rate(&p);
        for (int product = 0; product < 2; product++)
            for (int isa = product ? SWA_ISA_SCALAR + 1 : SWA_ISA_SCALAR; isa <= SWA_ISA_AVX512; isa++)
                if (swa_isa_usable(isa))
                    limit_row(csv, product ? "limit-fma-product" : "limit-fma", isa, p.n,
                              fma_limit(&p, isa, product) * 1e-9, "GFLOP/s");
        limit_row(csv, "limit-dram-read", swa_isa_best(), p.n, dram * 1e-9, "GB/s");
        limit_row(csv, "limit-l2-read", swa_isa_best(), p.n, l2 * 1e-9, "GB/s");
        printf("%-46s %d streams, prefetch %d bytes ahead\n", "  best read loop", mach.streams[p.n],
               (int)mach.ahead[p.n]);
        pool_stop(&p);
    }
}

/* What stands before the first case; errors: what its last column is. Returns the CSV, NULL if there is to be none. */
static FILE *report_begin(const char *path, int quick, const int *threads, int n, const char *errors) {
    FILE *csv = NULL;
    if (path)
        csv = csv_open(path, "case,isa,k_type,v_type,threads,median_us,min_us,rate,unit,limit,percent,percent_fma");
    if (path && csv == NULL) die("cannot write the CSV");
    describe(stdout);
    machine_init();
    if (!quick) limit_rows(csv, threads, n);
    printf("%-46s %-7s %-5s T %12s %12s %9s %8s %7s %% %13s rms%s\n", "case", "isa", "k,v", "median us", "min us",
           "rate", "", "", "% of fma", errors);
    return csv;
}

#endif
