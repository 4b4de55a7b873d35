#!/usr/bin/env bash
# fuzz.sh [seconds] [word] - every target of tests/fuzz whose name holds `word`, or all: its corpus first, then new
# inputs for so many seconds of CPU (default 60; 0 = the corpus alone), under ASan and UBSan. With clang the inputs are
# libFuzzer's, which looks for new coverage and keeps what it finds in build/fuzz/corpus.NAME; else tests/fuzz/fuzz.h
# makes them. What a target dies of is left in build/fuzz. The last line is `N passed, N failed, N skipped`.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/check/left.sh
seconds=${1:-60} word=${2:-} top=$PWD dir=$PWD/build/fuzz jobs=${JOBS:-2}
mkdir -p "$dir"
rm -f "$dir"/*.row "$dir"/*.log
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

cat > "$dir/probe.c" << 'END'
#include <stddef.h>
#include <stdint.h>
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) { return n > 0 && p[0] == 1 ? 0 : 0; }
#ifdef ALONE
int main(void) { return LLVMFuzzerTestOneInput((const uint8_t *)"", 0); }
#endif
END
works() { "$@" "$dir/probe.c" -o "$dir/probe" > /dev/null 2>&1; }
checks=address,undefined,float-cast-overflow
san="-fno-sanitize-recover=all -fsanitize=$checks"
cc=${CC:-cc} how=own flags=$san
if works clang $san -fsanitize=fuzzer; then
    cc=clang how=libFuzzer flags="$san -fsanitize=fuzzer -DFUZZ_LIBFUZZER"
elif ! works $cc $san -DALONE; then
    echo "SKIPPED: $cc has no sanitizers: the targets run without"
    flags=
fi
unit=${flags/=fuzzer /=fuzzer-no-link }
timeout "$(within 1000)" $cc -std=c99 -O1 -g1 $unit -DSWA_IMPLEMENTATION -x c -c swa.h -o "$dir/swa.o"
code=$?
if [ $code = 124 ]; then
    echo "SKIPPED: the library with sanitizers was not compiled, cut by the budget"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
[ $code = 0 ] || exit 1
# What is left, shared by the targets, of which each also has to be compiled.
skipped=0 targets=$(ls tests/fuzz/fuzz_*"$word"*.c | wc -l)
share=$((($(left) - 30) * jobs / targets - 10))
if [ $share -lt "$seconds" ]; then
    [ $share -ge 0 ] || share=0
    echo "SKIPPED: $share seconds a target instead of $seconds, cut by the budget"
    seconds=$share skipped=1
fi

one() {       # target: a row
    local name=$1 exe=$dir/$1 log=$dir/$1.log object=$dir/swa.o alone=-DSWA__IMPLEMENTED code kept
    # One that looks inside the library brings its own copy; it is not there for the kernels.
    if grep -q '\<swa__' "tests/fuzz/fuzz_$name.c"; then object= alone=-DSWA_NO_SIMD; fi
    if ! $cc -std=c99 -O1 -g1 $flags $alone "tests/fuzz/fuzz_$name.c" $object -o "$exe" -lm > "$log" 2>&1; then
        printf 'fail\t%s\tdoes not compile: %s\n' "$name" "$(grep -m 1 -E 'error|undefined' "$log")" > "$exe.row"
        return
    fi
    kept=$dir/corpus.$name
    mkdir -p "$kept"
    cd "$dir" || exit 1
    if [ "$how" = own ]; then "$exe" -t "$seconds" -s "$RANDOM" "$top/tests/fuzz/corpus/$name" > "$log" 2>&1
    elif [ "$seconds" = 0 ]; then "$exe" -runs=0 "$top/tests/fuzz/corpus/$name" > "$log" 2>&1
    else "$exe" -max_total_time="$seconds" -timeout=30 -max_len=4096 -print_final_stats=1 -artifact_prefix="$name." \
        "$kept" "$top/tests/fuzz/corpus/$name" > "$log" 2>&1; fi
    code=$?
    if [ "$how" = own ]; then printf '%s\t%s\t%s\n' $code "$name" "$(tail -n 1 "$log")" > "$exe.row"
    else printf '%s\t%s\t%s\n' $code "$name" "$(sed -nE 's/^#([0-9]+).*(DONE|INITED) +(cov: [0-9]+).*/\1 inputs, \3/p' \
        "$log" | tail -n 1)" > "$exe.row"; fi
}
export -f one
export dir top seconds how flags cc
for f in tests/fuzz/fuzz_*$word*.c; do
    f=${f#tests/fuzz/fuzz_}
    echo "${f%.c}"
done | xargs -P "$jobs" -I N bash -c 'one N'

passed=0 failed=0
for f in tests/fuzz/fuzz_*$word*.c; do
    name=${f#tests/fuzz/fuzz_} name=${name%.c}
    # a child that was killed ends xargs: what it left undone was not told
    IFS=$'\t' read -r code name text 2> /dev/null < "$dir/$name.row" || code="no result:" text="killed?"
    if [ "$code" = 0 ]; then
        passed=$((passed + 1))
        printf '%-12s %s, %s\n' "$name" "$how" "$text"
    else
        failed=$((failed + 1))
        printf '%-12s FAILED: %s %s; inputs are left in build/fuzz\n' "$name" "$code" "$text"
        grep -E "^$name: |ERROR|runtime error|Test unit written|is in fuzz-|    #[0-4] " "$dir/$name.log" | head -n 12
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
