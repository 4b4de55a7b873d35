#!/usr/bin/env bash
# sanitize.sh [word] - the test binaries, the matrix program, the threads and the soak under ASan and UBSan (gcc and
# clang), MSan, TSan and valgrind; runs whose name holds `word`, or all. test.h allocates to the exact byte under ASan,
# and fills what it gives with NaN. A run that takes longer than LIMIT seconds (default 400) is a named skip. A line
# names the seconds of CPU that building and running took; the last line is `N passed, N failed, N skipped`.
#
# Keys outside the window lie in the same vectors as those inside: what the ring's memory holds there is computed with,
# and then hidden. MSan and valgrind cannot tell, and report branches on it. So memory from malloc, given back before or
# not, counts as written for them where the program does not fill it, and "garbage" shows that it does not matter: the
# same bits, whatever it is.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/check/left.sh
word=${1:-} dir=$PWD/build/sanitize jobs=${JOBS:-2} limit=${LIMIT:-400}
mkdir -p "$dir"
rm -f "$dir"/*.row "$dir"/*.cpu "$dir"/*.tried
list=$dir/list
: > "$list"
# What takes longest is begun first: short ones fill the end.
long="test_bits test_mla test_attention test_lists test_model test_cache test_families test_trees test_index"
tests="$long $(cd tests && ls test_*.c | sed 's/\.c$//' | grep -vxF "${long// /$'\n'}")"
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 ASAN_OPTIONS=detect_leaks=1

same_bits() { # program: its output with five contents of fresh memory
    local fill first= now
    for fill in 255 128 85 3 1; do
        now=$(MALLOC_PERTURB_=$fill "$1") || return 1
        [ -n "$first" ] || first=$now
        [ "$now" = "$first" ] || { echo "MALLOC_PERTURB_=$fill: $now"; return 1; }
    done
    echo "$first"
}

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
    printf 'object\t%s\t%s\t%s\n' "$name" "$dir/$slug.tried" \
        "$cc -std=c99 -g1 $flags -DSWA_IMPLEMENTATION -x c -c tests/library.h -o $dir/$slug.o" >> "$list"
    return 0
}
program() {   # name, source, arguments: of the kind last named
    local exe=$dir/$slug.$1 library="-DSWA__IMPLEMENTED -DMATRIX_API_ONLY $dir/$slug.o"
    # One that looks inside the library brings its own copy; without SIMD, which the others have.
    case $1 in test_*) if grep -q '\<swa__' "$2"; then library=-DSWA_NO_SIMD; fi ;; esac
    printf 'run\t%s\t%s\t%s\t%s\n' "$name, $1" "$dir/$slug.tried" \
        "$cc -std=c99 -g1 $flags $2 $library -o $exe -lm -lpthread" "${run//@/$exe} ${3:-}" >> "$list"
}
own() {
    program matrix tests/check/matrix.c
    program threads tests/check/threads.c
    [ ! -e tests/check/soak.c ] || program soak tests/check/soak.c "${1:-4}"
}
# All tests, but of test_model those that are not the example's matrix products by the minute; these words name them.
model="chunks warm text vocabulary gguf refuse"
suite() {
    for t in $tests; do
        case $t in test_model) program $t tests/$t.c "$model" ;; *) program "$t" "tests/$t.c" ;; esac
    done
}
bounds=address,undefined,float-cast-overflow
if kind "ASan+UBSan gcc" gcc "-O1 -fsanitize=$bounds -fno-sanitize-recover=all" @; then suite; own; fi
# Stack use after return is clang's alone: gcc before 13.3 misaligns 64-byte locals then (its bug 110027).
after="ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1"
if kind "ASan+UBSan clang" clang "-O1 -fsanitize=$bounds -fno-sanitize-recover=all" "$after @"; then own; fi
small="-O1 -DSWA_NO_AVX512"
heap="MSAN_OPTIONS=poison_in_malloc=0:poison_in_free=0"
if kind "MSan clang" clang "$small -fsanitize=memory -fno-sanitize-recover=all" "$heap @"; then suite; own; fi
if kind "TSan clang" clang "$small -fsanitize=thread" "TSAN_OPTIONS=halt_on_error=1 @"; then own; fi
if kind "TSan gcc" gcc "$small -fsanitize=thread" "TSAN_OPTIONS=halt_on_error=1 @"; then own; fi
# valgrind takes a minute for every two seconds of a test, so it gets the quick ones, and its long double is a double,
# which test_helpers needs wider.
valgrind="valgrind -q --error-exitcode=9 --leak-check=full"
if kind "valgrind" gcc "$small -DTEST_EXACT" "$valgrind @"; then
    program test_bits tests/test_bits.c "chunks"
    program test_attention tests/test_attention.c \
        "types features latent look pinned gaps sees huge sink poison few infinite"
    program test_golden tests/test_golden.c "patent gqa ring"
    for t in test_masks test_misuse test_step test_window; do program $t tests/$t.c; done
    program threads tests/check/threads.c
fi
if kind "valgrind, addresses" gcc "$small" "$valgrind --undef-value-errors=no @"; then
    program matrix tests/check/matrix.c
    program soak tests/check/soak.c 5
fi
if kind "garbage" gcc -O2 "same_bits @"; then program matrix tests/check/matrix.c; fi

spent() {     # file of `times`: the seconds of CPU that the shell's children took
    awk -F '[ms ]+' 'NR == 2 { printf "%4.0f s", 60 * ($1 + $3) + $2 + $4 }' "$1"
}
one() {       # line number: a row for a run
    local n=$1 what name tried build run out="$dir/$1.log" code allowed
    IFS=$'\t' read -r what name tried build run < <(sed -n "${n}p" "$list")
    [ "$what" = object ] || while [ ! -e "$tried" ]; do sleep 0.2; done
    allowed=$(within 1000)
    timeout "$allowed" bash -c "$build" > "$out" 2>&1
    code=$?
    [ "$what" = run ] || : > "$tried"
    if [ "$(left)" -lt 3 ] || [ $code = 124 ]; then          # an object that was not done stops the runs with it
        printf 'skip\t%s\tnot run\n' "$name" > "$dir/$n.row"
        return
    fi
    if [ $code != 0 ]; then
        printf 'fail\t%s\tdoes not compile: %s\n' "$name" "$(grep -m 1 -E 'error|undefined' "$out")" > "$dir/$n.row"
        return
    fi
    times > "$dir/$n.cpu"
    [ "$what" = run ] || { printf 'object\t%s\t%s\n' "$name" "$(spent "$dir/$n.cpu")" > "$dir/$n.row"; return; }
    allowed=$(within "$limit")
    timeout "$allowed" bash -c "$run" > "$out" 2>&1
    code=$?
    times > "$dir/$n.cpu"
    # cut by the budget, or it hangs
    [ $code != 124 ] || [ "$allowed" = "$limit" ] || code=skip
    printf '%s\t%s\t%s  %s\n' "$code" "$name" "$(spent "$dir/$n.cpu")" \
        "$(grep -E ' passed, |^isa ' "$out" | tail -n 1)" > "$dir/$n.row"
    case $code in 0 | skip) ;; *) cp "$out" "$dir/failed.${name//[^A-Za-z0-9]/_}.log" ;; esac
}
export -f one spent same_bits
export list dir limit
# Kind by kind, so that those done are done if time runs out; the next kind's object comes before a kind's programs,
# which wait for their own.
awk -F '\t' '$1 == "object" { kind++ } { print kind - ($1 == "object"), $1 != "object", NR }' "$list" |
    sort -n -k 1,1 -k 2,2 -k 3,3 | cut -d ' ' -f 3 | xargs -P "$jobs" -I N bash -c 'one N'

passed=0 failed=0 skipped=0
for n in $(seq "$(wc -l < "$list")"); do
    # a child that was killed ends xargs: what it left undone was not told
    IFS=$'\t' read -r code name text 2> /dev/null < "$dir/$n.row" || { code="no result" name="run $n" text="killed?"; }
    case $code in
    object) printf '%-36s %s of CPU for the library\n' "$name" "$text" ;;
    0) passed=$((passed + 1)); printf '%-36s %s\n' "$name" "$text" ;;
    skip) skipped=$((skipped + 1)); printf '%-36s SKIPPED: cut by the budget: %s\n' "$name" "$text" ;;
    *) failed=$((failed + 1)); printf '%-36s FAILED: %s %s\n' "$name" "$code" "$text"
       log=$dir/failed.${name//[^A-Za-z0-9]/_}.log
       [ ! -e "$log" ] || grep -E 'ERROR|WARNING|runtime error|FAILED|CHECK|expected|    #[0-4] ' "$log" |
           head -n 12 | cut -c1-160 ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
