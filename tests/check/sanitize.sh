#!/usr/bin/env bash
# sanitize.sh [word] - the test binaries, the matrix program, the threads and the soak under ASan and UBSan (gcc and
# clang), MSan, TSan and valgrind; runs whose name holds `word`, or all. test.h allocates to the exact byte under ASan,
# and matrix.c leaves what it allocates undefined, which is what MSan and valgrind look at. A run that takes longer than
# LIMIT seconds (default 240) is a named skip. The last line is `N passed, N failed, N skipped`.
set -u
cd "$(dirname "$0")/../.." || exit 1
word=${1:-} dir=$PWD/build/sanitize jobs=${JOBS:-2} limit=${LIMIT:-240}
mkdir -p "$dir"
rm -f "$dir"/*.row "$dir"/*.ready
list=$dir/list
: > "$list"
tests=$(cd tests && ls test_*.c | sed 's/\.c$//')
export OMP_NUM_THREADS=2
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 ASAN_OPTIONS=detect_leaks=1

# A kind: name, compiler, flags, command that runs a program (@). Its swa.o is compiled once, the programs link it.
kind() {
    name=$1 cc=$2 flags=$3 run=$4
    case $name in *"$word"*) ;; *) return 1 ;; esac
    if ! command -v "$cc" > /dev/null || ! echo 'int main(void){return 0;}' |
        $cc $flags -x c - -o "$dir/probe" 2> /dev/null || ! eval "${run//@/$dir/probe}" > /dev/null 2>&1; then
        printf 'skip\t%s\tno %s with %s here\n' "$name" "$cc" "$flags" > "$dir/0.$name.row"
        return 1
    fi
    slug=${name//[^A-Za-z0-9]/_}
    printf 'object\t%s\t%s\n' "$name" "$cc -std=c99 -g1 $flags -DSWA_IMPLEMENTATION -x c -c swa.h -o $dir/$slug.o" \
        >> "$list"
    return 0
}
program() {   # name, source, arguments: of the kind last named
    local exe=$dir/$slug.$1 library="-DSWA__IMPLEMENTED -DMATRIX_API_ONLY $dir/$slug.o"
    # One that looks inside the library brings its own copy; without SIMD, which the others have.
    case $1 in test_*) if grep -q '\<swa__' "$2"; then library=-DSWA_NO_SIMD; fi ;; esac
    printf 'run\t%s\t%s\t%s\n' "$name, $1" "$cc -std=c99 -g1 $flags $2 $library -o $exe -lm -lpthread" \
        "${run//@/$exe} ${3:-}" >> "$list"
}
own() {
    program matrix tests/check/matrix.c
    program threads tests/check/threads.c
    [ ! -e tests/check/soak.c ] || program soak tests/check/soak.c "${1:-4}"
}
suite() { for t in $tests; do program "$t" "tests/$t.c"; done; }
bounds=address,undefined,float-cast-overflow
if kind "ASan+UBSan gcc" gcc "-O1 -fsanitize=$bounds -fno-sanitize-recover=all" @; then own; suite; fi
# clang takes minutes for the kernels with UBSan's checks, and gives up on some of AVX-512: without optimisation there,
# and without AVX-512 elsewhere. gcc has both.
# Stack use after return is clang's alone: gcc before 13.3 misaligns 64-byte locals then (its bug 110027).
after="ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1"
if kind "ASan+UBSan clang" clang "-O0 -fsanitize=$bounds -fno-sanitize-recover=all" "$after @"; then own; fi
small="-O1 -DSWA_NO_AVX512"
if kind "MSan clang" clang "$small -fsanitize=memory -fno-sanitize-recover=all" @; then own; suite; fi
if kind "TSan clang" clang "$small -fsanitize=thread" "TSAN_OPTIONS=halt_on_error=1 @"; then own; fi
if kind "TSan gcc" gcc "$small -fsanitize=thread" "TSAN_OPTIONS=halt_on_error=1 @"; then own; fi
valgrind="valgrind -q --error-exitcode=9 --leak-check=full @"
if kind "valgrind" gcc "$small -DTEST_EXACT" "$valgrind"; then
    own 10
    for t in test_masks test_window test_step; do [ ! -e tests/$t.c ] || program $t tests/$t.c; done
fi

one() {       # line number: a row for a run
    local n=$1 what name build run out="$dir/$1.log" code
    IFS=$'\t' read -r what name build run < <(sed -n "${n}p" "$list")
    if ! bash -c "$build" > "$out" 2>&1; then
        printf 'fail\t%s\tdoes not compile: %s\n' "$name" "$(grep -m 1 -E 'error|undefined' "$out")" > "$dir/$n.row"
        return
    fi
    [ "$what" = run ] || return
    timeout "$limit" bash -c "$run" > "$out" 2>&1
    code=$?
    printf '%s\t%s\t%s\n' "$code" "$name" "$(grep -E ' passed, |^isa ' "$out" | tail -n 1)" > "$dir/$n.row"
    [ $code = 0 ] || cp "$out" "$dir/failed.${name//[^A-Za-z0-9]/_}.log"
}
export -f one
export list dir limit
numbers() { awk -F '\t' -v w="$1" '$1 == w { print NR }' "$list"; }
numbers object | xargs -P "$jobs" -I N bash -c 'one N'
numbers run | xargs -P "$jobs" -I N bash -c 'one N'

passed=0 failed=0 skipped=0
for row in $(ls "$dir"/*.row 2> /dev/null | sort -V | tr ' ' '?'); do
    IFS=$'\t' read -r code name text < "$(ls $row)"
    case $code in
    0) passed=$((passed + 1)); printf '%-36s %s\n' "$name" "$text" ;;
    skip) skipped=$((skipped + 1)); printf '%-36s SKIPPED: %s\n' "$name" "$text" ;;
    124) skipped=$((skipped + 1)); printf '%-36s SKIPPED: not done in %s s\n' "$name" "$limit" ;;
    *) failed=$((failed + 1)); printf '%-36s FAILED: %s %s\n' "$name" "$code" "$text"
       log=$dir/failed.${name//[^A-Za-z0-9]/_}.log
       [ ! -e "$log" ] || grep -E 'ERROR|WARNING|runtime error|FAILED|CHECK|expected|    #[0-4] ' "$log" |
           head -n 12 | cut -c1-160 ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
