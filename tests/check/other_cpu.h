/* other_cpu.h - swa.h chooses some x86 kernels by the CPU's maker. With `-include` of this, and SWA_OTHER_CPU in the
   environment, it takes AMD's CPU for one of Intel's, and any other for AMD's Zen 4, so that tests reach both ways.
   That wants instructions on bf16 pairs, which Intel's CPUs have since Sapphire Rapids, also where a hypervisor hides
   them from CPUID: `cc -DSWA_OTHER_CPU -x c other_cpu.h` is a program that returns 0 where they run. */
#ifdef SWA_OTHER_CPU
int main(void) {
    __asm__ volatile("vdpbf16ps %%zmm0, %%zmm0, %%zmm0" : : : "xmm0");
    return 0;
}
#elif defined(__x86_64__)
extern char *getenv(const char *);
/* clang-format off */
#  define __builtin_cpu_is(x) \
       ((x)[0] == 'a' ? !getenv("SWA_OTHER_CPU") == !!__builtin_cpu_is("amd") \
                      : !getenv("SWA_OTHER_CPU") ? !!__builtin_cpu_is(x) : __builtin_cpu_is("amd"))
#  define __builtin_cpu_supports(x) \
       (sizeof(x) == 11 && (x)[6] == 'b' && getenv("SWA_OTHER_CPU") ? __builtin_cpu_is("amd") \
                                                                     : __builtin_cpu_supports(x))
#endif
