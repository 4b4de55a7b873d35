#!/usr/bin/env bash
# emulate.sh - the test suite on CPUs that this machine is not, under qemu: AArch64 with NEON, the int8 products of one
# with dot products, x86-64 without AVX, and x86-64 with AVX2 but no AVX-512. Each test that runs once per instruction set runs on those that the emulated CPU has,
# and compares them bit for bit. A program that takes more than LIMIT seconds of CPU (default 400) has failed. One line
# per test program; the last line is `N passed, N failed, N skipped`.
set -u
. tests/check/left.sh
dir=build/emulate
JOBS=${JOBS:-2} LIMIT=${LIMIT:-400}
tests=${*:-golden bits attention tile cache step window masks helpers misuse mla}
quick=${*:-golden bits window}          # for the x86-64s, whose instances run here natively too
passed=0 failed=0 skipped=0
mkdir -p "$dir"

build() {     # directory, compiler, tests: the library and the tests, linked statically so that qemu needs no libraries
    mkdir -p "$dir/$1"
    timeout "$(within 600)" $2 -std=c99 -O2 -DSWA_IMPLEMENTATION -x c -c swa.h -o "$dir/$1/swa.o" || return 1
    for name in $3; do
        echo "$2 -std=c99 -O1 -static -DSWA__IMPLEMENTED tests/test_$name.c $dir/$1/swa.o -o $dir/$1/$name" \
            "-lm -lpthread"
    done | xargs -P "$JOBS" -I{} sh -c {}
}
machine() {   # title, directory, command that runs a program of it, prefix of its logs, tests
    local name line log p f s tests=$5 words=
    for name in $tests; do
        [ "$4.$name" != nehalem.bits ] || words=" chunks"       # the whole is minutes where fma() is a function
        [ "$4.$name" != dot.bits ] || words=" bits_q8_products"
        rm -f "$dir/$4.$name.log"
        echo "[ \$(left) -ge 3 ] || exit 0; ulimit -t $LIMIT; timeout \$(within 2000) $3 $dir/$2/$name$words" \
            "> $dir/$4.$name.log 2>&1; [ \$? != 124 ] || echo cut by the budget >> $dir/$4.$name.log"
        words=
    done | xargs -P "$JOBS" -I{} bash -c '{} || true'
    for name in $tests; do
        log=$dir/$4.$name.log
        if [ ! -e "$log" ] || { [ "$(tail -n 1 "$log")" = "cut by the budget" ] && ! grep -qE '^[a-z_]+\.[ch]:' "$log"; }
        then missing "$1, $name: cut by the budget"; continue; fi
        line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
        [ -n "$line" ] || line="0 passed, 1 failed, 0 skipped"
        read -r p _ f _ s _ <<< "$line"
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        printf '%-34s %-10s %s\n' "$1" "$name" "$line"
        case $line in *" 0 failed"*) ;; *) echo "FAILED: $1, $name"; tail -n 5 "$log" ;; esac
    done
}
missing() { skipped=$((skipped + 1)); echo "SKIPPED: $1"; }
not_built() { # title: a build that the time stopped is a skip, any other a failure
    if [ "$(left)" -lt 3 ]; then missing "$1: cut by the budget"
    else failed=$((failed + 1)); echo "FAILED: $1: the library or a test does not compile"; fi
}

if command -v qemu-aarch64 > /dev/null && command -v aarch64-linux-gnu-gcc > /dev/null; then
    if build arm aarch64-linux-gnu-gcc "$tests"; then machine "AArch64, NEON" arm qemu-aarch64 neon "$tests"
    else not_built "AArch64"; fi
    if build dot "aarch64-linux-gnu-gcc -march=armv8.2-a+dotprod" "bits checksums"
    then machine "AArch64, dot products" dot qemu-aarch64 dot "bits checksums"
    else not_built "AArch64 with dot products"; fi
else missing "AArch64: no qemu-aarch64 or no cross compiler"; fi
if ! command -v qemu-x86_64 > /dev/null || [ "$(uname -m)" != x86_64 ]
then missing "x86-64 without AVX: no qemu-x86_64 here, or another machine"
elif ! build x86 "${CC:-cc}" "$quick"; then not_built "x86-64"
else
    machine "x86-64 without AVX (Nehalem)" x86 "qemu-x86_64 -cpu Nehalem" nehalem "$quick"
    if qemu-x86_64 -cpu Haswell "$dir/x86/window" > /dev/null 2>&1
    then machine "x86-64 with AVX2 (Haswell)" x86 "qemu-x86_64 -cpu Haswell" haswell "$quick"
    else missing "x86-64 with AVX2: this qemu cannot"; fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
