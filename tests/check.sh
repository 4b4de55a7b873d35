#!/usr/bin/env bash
# check.sh MAKE CC JOBS - everything that proves the library, one table at the end, and the sum as the last line. A part
# is a name, how many seconds it may take, and a command whose last line is `N passed, N failed, N skipped`. On two
# cores the whole takes under half an hour: what has no end by itself (fuzzing, mutation, soak) gets a slice here, and
# has a make target of its own for more. SWA_CHECK_ONLY="lint soak" takes the parts of these names alone. What was
# skipped is named above the table, in a line with the word SKIPPED.
set -u
make=$1 cc=$2 jobs=$3
mkdir -p build/check
rm -f build/check/*
other=clang
case $cc in *clang*) other=gcc ;; esac
export JOBS=$jobs CC=$cc
export -n MAKEFLAGS MAKELEVEL 2> /dev/null
n=10 whole=$SECONDS

row() {       # name, seconds, result
    printf '%s\t%s\t%s\n' "$1" "$2" "$3" >> build/check/table
}
part() {      # name, seconds it may take, command...
    local name=$1 limit=$2 log=build/check/$n.log began=$SECONDS code line
    shift 2
    case " ${SWA_CHECK_ONLY:-$name} " in *" $name "*) ;; *) return ;; esac
    n=$((n + 1))
    echo "== $name"
    timeout "$limit" "$@" > "$log" 2>&1 < /dev/null
    code=$?
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    [ $code != 124 ] || echo "$name: not done in $limit seconds"
    [ -n "$line" ] && [ $code != 124 ] || line="0 passed, 1 failed, 0 skipped"
    case $line in *" 0 failed"*) [ $code = 0 ] || line="0 passed, 1 failed, 0 skipped" ;; *) code=1 ;; esac
    if [ $code = 0 ]; then grep -E 'SKIPPED|nothing to explain any more' "$log"
    else grep -E 'SKIPPED|FAILED' "$log" | head -n 40; tail -n 15 "$log"; fi
    row "$name" $((SECONDS - began)) "$line"
}
missing() {   # name, why: a part that cannot run counts as one skipped test
    case " ${SWA_CHECK_ONLY:-$1} " in *" $1 "*) ;; *) return ;; esac
    echo "SKIPPED: $1: $2"
    row "$1" 0 "0 passed, 0 failed, 1 skipped"
}

part lint 60 sh tests/lint.sh
part "test-$cc" 300 "$make" test CC="$cc" JOBS="$jobs"
if command -v $other > /dev/null; then part "test-$other" 300 "$make" test CC=$other JOBS="$jobs"
else missing "test-$other" "$other is not installed"; fi
part matrix 900 bash tests/check/matrix.sh -q
part emulate 600 bash tests/check/emulate.sh
part sanitize 900 bash tests/check/sanitize.sh
part fuzz 400 bash tests/check/fuzz.sh "${SWA_FUZZ_SECONDS:-30}"
part soak 300 bash tests/check/soak.sh "${SWA_SOAK_SECONDS:-60}" 1
part coverage 300 bash tests/check/coverage.sh
if command -v python3 > /dev/null
then part mutate 900 python3 tests/check/mutate.py -j "$jobs" -n 205 -t "${SWA_MUTATE_SECONDS:-540}"
else missing mutate "python3 is not installed"; fi

echo
awk -F '\t' -v all=$((SECONDS - whole)) '
    { printf "%-14s %5d s   %s\n", $1, $2, $3; split($3, w, " "); p += w[1]; f += w[3]; s += w[5] }
    END { printf "%-14s %5d s\n", "all", all
          printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p == 0 }' build/check/table
