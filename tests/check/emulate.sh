#!/usr/bin/env bash
# emulate.sh - the test suite on CPUs that this machine is not. Under qemu: AArch64 with NEON, the int8 products of one
# with SDOT, x86-64 without AVX, x86-64 with AVX2 but no AVX-512, and i686, where a size_t has 32 bits: what is refused
# there. By avx512_model.h, which wants AVX2: AMD's and Intel's CPUs with AVX-512, bf16 pairs, int8 products and tiles;
# where the machine has those itself, one test keeps the model right. Each test that runs once per instruction set runs
# on those that the emulated CPU has, and compares them bit for bit. A program that takes more than LIMIT seconds of CPU
# (default 1200) has failed. One line per test program; the last line is `N passed, N failed, N skipped`.
set -u
. tests/check/left.sh
dir=build/emulate
JOBS=${JOBS:-2} LIMIT=${LIMIT:-1200}
# What takes longest is begun first: short ones fill the end.
tests=${*:-bits mla attention golden tile cache step masks misuse helpers window}
quick=${*:-bits golden window}          # for the x86-64s, whose instances run here natively too
products=${*:-bits checksums}           # for the AArch64 with SDOT
narrow=${*:-misuse cache step masks}    # for the i686
model=${*:-bits lists mla tile attention trees index golden}    # for AMD with AVX-512
intel=${*:-bits golden}                 # and Intel, where other kernels take some of it
passed=0 failed=0 skipped=0
mkdir -p "$dir"
rm -rf "$dir/arm" "$dir/dot" "$dir/x86" "$dir/i686" "$dir/model" "$dir"/*.log
export dir

# Linked statically, so that qemu needs no libraries.
library() {   # directory, header, level, compiler
    local to=$dir/$1 from=$2 level=$3
    shift 3
    mkdir -p "$to"
    timeout "$(within 600)" "$@" -std=c99 $level -DSWA_IMPLEMENTATION -x c -c "$from" -o "$to/swa.o"
}
# The header for avx512_model.h: no function asks for AVX-512, no vector of it has to be in a register.
modelled() {
    sed '
/^# *define SWA__\(AVX512\|DOTS\|VNNI\)_TARGET SWA__TARGET("/s/(.*/("avx2,fma,f16c")/
/^#  define SWV_LOADED(x)  *__asm__/s/__asm__.*/((void)(x))/
s/"+v"(x)$/"+m"(x)/
/^#  define SWV_FMA2_AT(/{
N
N
s/.*/#  define SWV_FMA2_AT(p, b, c) ((c) = SWV_FMA2(_mm512_set1_ps(*(p)), (b), (c)))/
}'
}
program() {   # directory, test, compiler
    local to=$dir/$1 name=$2
    shift 2
    timeout "$(within 600)" "$@" -std=c99 -O1 -static -DSWA__IMPLEMENTED "tests/test_$name.c" "$to/swa.o" \
        -o "$to/$name" -lm -lpthread
}
run() {       # its log, a program and its words, after the command that runs it
    local log=$1
    shift
    [ "$(left)" -ge 3 ] || return
    ulimit -t "$LIMIT"
    timeout "$(within 2000)" "$@" > "$log" 2>&1
    [ $? != 124 ] || echo cut by the budget >> "$log"
}
export -f library program run
export LIMIT
each() { xargs -P "$JOBS" -L 1 bash -c "$1 \"\$@\" || true" _; }      # a line of its input: the function's arguments
runs() {      # directory, prefix of its logs, tests, command that runs a program
    local to=$1 prefix=$2 name words
    for name in $3; do
        words=
        case $prefix.$name in
            haswell.bits | nehalem.bits) words=" chunks" ;;      # the whole is minutes
            dot.bits) words=" bits_q8_products" ;;
            narrow.cache) words=" more_ blob" ;;
        esac
        echo "$dir/$prefix.$name.log $4 $dir/$to/$name$words"
    done
}
missing() { skipped=$((skipped + 1)); echo "SKIPPED: $1"; }
built() {     # title, directory, tests: a build that the time stopped is a skip, any other a failure
    local name all=1
    for name in $3; do [ -x "$dir/$2/$name" ] || all=; done
    [ -z "$all" ] || return 0
    if [ "$(left)" -lt 3 ]; then missing "$1: cut by the budget"
    else failed=$((failed + 1)); echo "FAILED: $1: the library or a test does not compile"; fi
    return 1
}
said() {      # title, prefix of its logs, tests
    local name log line p f s
    for name in $3; do
        log=$dir/$2.$name.log
        if { [ ! -e "$log" ] && [ "$(left)" -lt 3 ]; } ||
            { [ "$(tail -n 1 "$log" 2>&1)" = "cut by the budget" ] && ! grep -qE '^[a-z_]+\.[ch]:' "$log"; }
        then missing "$1, $name: cut by the budget"; continue; fi
        line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
        [ -n "$line" ] || line="0 passed, 1 failed, 0 skipped"
        read -r p _ f _ s _ <<< "$line"
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        printf '%-34s %-10s %s\n' "$1" "$name" "$line"
        case $line in *" 0 failed"*) ;; *) echo "FAILED: $1, $name"; tail -n 5 "$log" ;; esac
    done
}

arm=aarch64-linux-gnu-gcc x86=${CC:-cc}
dot="$arm -march=armv8.2-a+dotprod"
if ! command -v qemu-aarch64 > /dev/null || ! command -v $arm > /dev/null; then
    missing "AArch64: no qemu-aarch64 or no cross compiler"
    arm= dot=
fi
if ! command -v qemu-x86_64 > /dev/null || [ "$(uname -m)" != x86_64 ]; then
    missing "x86-64 without AVX: no qemu-x86_64 here, or another machine"
    x86=
fi
i686="i686-linux-gnu-gcc -msse2 -mfpmath=sse -DSWA_NO_SIMD"
if ! command -v qemu-i386 > /dev/null || ! command -v i686-linux-gnu-gcc > /dev/null; then
    missing "32 bits: no qemu-i386 or no cross compiler"
    i686=
fi
avx512=
if ! grep -qw avx2 /proc/cpuinfo 2> /dev/null || [ "$(uname -m)" != x86_64 ]; then
    missing "AVX-512 by its model: no AVX2 here"
elif ! echo '#include <immintrin.h>
    __m512bh x;' | "${CC:-cc}" -mavx512bf16 -x c -fsyntax-only - 2> /dev/null; then
    missing "AVX-512 by its model: ${CC:-cc} does not know bf16 pairs"
else
    avx512="${CC:-cc} -Wno-psabi -include tests/check/avx512_model.h"
    mkdir -p "$dir/model"
    modelled < swa.h > "$dir/model/swa.h"
    ! grep -qw avx512_bf16 /proc/cpuinfo || model=golden intel=golden
fi
{
    [ -z "$avx512" ] || echo "model $dir/model/swa.h -O1 $avx512"
    [ -z "$arm" ] || echo "arm swa.h -O2 $arm"
    [ -z "$dot" ] || echo "dot swa.h -O2 $dot"
    [ -z "$x86" ] || echo "x86 swa.h -O2 $x86"
    [ -z "$i686" ] || echo "i686 swa.h -O1 $i686"
} | each library
{
    [ -z "$avx512" ] || for name in $model $intel; do echo "model $name $avx512"; done | sort -u
    [ -z "$arm" ] || for name in $tests; do echo "arm $name $arm"; done
    [ -z "$dot" ] || for name in $products; do echo "dot $name $dot"; done
    [ -z "$x86" ] || for name in $quick; do echo "x86 $name $x86"; done
    [ -z "$i686" ] || for name in $narrow; do echo "i686 $name $i686"; done
} | each program
[ -z "$avx512" ] || built "AVX-512 by its model" model "$model $intel" || avx512=
[ -z "$arm" ] || built AArch64 arm "$tests" || arm=
[ -z "$dot" ] || built "AArch64, SDOT" dot "$products" || dot=
[ -z "$x86" ] || built x86-64 x86 "$quick" || x86=
[ -z "$i686" ] || built "32 bits" i686 "$narrow" || i686=
avx2=$x86
if [ -n "$x86" ] && ! qemu-x86_64 -cpu Haswell "$dir/x86/${quick%% *}" -l > /dev/null 2>&1; then
    missing "x86-64 with AVX2: this qemu cannot"
    avx2=
fi
{
    [ -z "$avx512" ] || runs model avx512 "$model" env
    [ -z "$avx512" ] || runs model intel "$intel" "env SWA_OTHER_CPU=intel"
    [ -z "$arm" ] || runs arm neon "$tests" qemu-aarch64
    [ -z "$dot" ] || runs dot dot "$products" qemu-aarch64
    [ -z "$avx2" ] || runs x86 haswell "$quick" "qemu-x86_64 -cpu Haswell"
    [ -z "$x86" ] || runs x86 nehalem "$quick" "qemu-x86_64 -cpu Nehalem"
    [ -z "$i686" ] || runs i686 narrow "$narrow" qemu-i386
} | each run
[ -z "$avx512" ] || said "AMD with AVX-512, a model" avx512 "$model"
[ -z "$avx512" ] || said "Intel with AVX-512, a model" intel "$intel"
[ -z "$arm" ] || said "AArch64, NEON" neon "$tests"
[ -z "$dot" ] || said "AArch64, SDOT" dot "$products"
[ -z "$x86" ] || said "x86-64 without AVX (Nehalem)" nehalem "$quick"
[ -z "$avx2" ] || said "x86-64 with AVX2 (Haswell)" haswell "$quick"
[ -z "$i686" ] || said "32 bits, i686" narrow "$narrow"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
