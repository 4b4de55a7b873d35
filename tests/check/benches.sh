#!/usr/bin/env bash
# benches.sh [word] - every program of bench/ compiled (with -O1 and SWA_SMALL: it is whether they run that counts) and
# run on its smallest case, those whose name holds `word`, or all: calls that the library has come to refuse end them.
# bench/peers is README's, see tests/readme.sh. The last line is `N passed, N failed, N skipped`.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/check/left.sh
word=${1:-} cc=${CC:-cc} dir=build/benches jobs=${JOBS:-2}
mkdir -p "$dir"
rm -f "$dir"/*.row

try() {       # NAME ARGUMENTS...
    local name=$1 log=$dir/$1.log code
    shift
    timeout "$(within 300)" $cc -O1 -DSWA_SMALL "bench/$name.c" -o "$dir/$name" -pthread -ldl -lm > "$log" 2>&1 &&
        timeout "$(within 200)" "$dir/$name" "$@" >> "$log" 2>&1 && grep -q '[0-9]' "$log"
    code=$?
    if [ $code = 124 ] && [ "$(left)" -lt 5 ]; then echo "SKIPPED: bench/$name.c, cut by the budget"
    elif [ $code = 0 ]; then echo "ok: bench/$name.c"   # a wrong row is in the program's exit code
    else echo "FAILED: bench/$name.c"; tail -n 5 "$log"; fi > "$dir/$name.row"
}
one() {
    case $1 in
    bench) try bench --quick --case decode-w1024-d128 --type f16 --threads 1 ;;
    mla) try mla --quick --case mla-step-n4096-absorbed-bf16 --threads 1 ;;
    lists) try lists -q h64 ;;
    trees) try trees -q ;;
    *) try "$1" ;;
    esac
}
export -f try one
export cc dir

# side.c is a library for beside.py, count.c a program for AArch64 that count.sh compiles
for source in bench/*.c; do
    name=$(basename "$source" .c)
    case $name in side | count) continue ;; *"$word"*) echo "$name" ;; esac
done | xargs -P "$jobs" -I {} bash -c 'one {}'
cat "$dir"/*.row | tee "$dir/all"
count() { grep -c "^$1" "$dir/all"; }
passed=$(count ok) failed=$(count FAILED) skipped=$(count SKIPPED)
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
