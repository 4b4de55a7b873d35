/* other_cpu.h - swa.h chooses some x86 kernels by the kind of CPU. With `-include` of this, and SWA_OTHER_CPU=intel or
   zen4 in the environment, it takes this CPU for one of that kind, so that tests reach every way. That wants
   instructions on bf16 pairs, which Intel's CPUs have since Sapphire Rapids, also where a hypervisor hides them from
   CPUID: `cc -DSWA_OTHER_CPU -x c other_cpu.h` is a program that names the kinds that this CPU is not, and returns 0
   where these instructions run. */
#ifdef SWA_OTHER_CPU
#include <stdio.h>
int main(void) {
    const int amd = __builtin_cpu_is("amd") != 0, five = amd && __builtin_cpu_supports("avx512vp2intersect");
    puts(five ? "zen4 intel" : amd ? "intel" : "zen4");
    fflush(stdout);
    __asm__ volatile("vdpbf16ps %%zmm0, %%zmm0, %%zmm0" : : : "xmm0");
    return 0;
}
#elif defined(__x86_64__)
/* Intel's tiles run on their model then: on any CPU, and where the compiler counts lines */
#define SWA_TILE_MODEL
extern char *getenv(const char *);
/* clang-format off */
#  define SWA_OTHER(intel, zen4, own) \
       (!getenv("SWA_OTHER_CPU") ? (own) : *getenv("SWA_OTHER_CPU") == 'i' ? (intel) : (zen4))
#  define __builtin_cpu_is(x)       SWA_OTHER((x)[0] == 'i', (x)[0] == 'a', __builtin_cpu_is(x) != 0)
/* of avx512bf16 and avx512vp2intersect; what else is asked for is this CPU's */
#  define SWA_OTHER_BF16(x)         (sizeof(x) == 11 && (x)[6] == 'b')
#  define SWA_OTHER_V(x)            (sizeof(x) == 19 && (x)[6] == 'v')
#  define __builtin_cpu_supports(x) \
       SWA_OTHER(!SWA_OTHER_BF16(x) && __builtin_cpu_supports(x), \
                 SWA_OTHER_BF16(x) || (!SWA_OTHER_V(x) && __builtin_cpu_supports(x)), __builtin_cpu_supports(x))
#endif
