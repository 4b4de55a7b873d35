#!/usr/bin/env bash
# check.sh MAKE CC JOBS - everything that proves the library, one table at the end, and the sum as the last line. A part
# is a name, how many seconds it may take, and a command whose last line is `N passed, N failed, N skipped`. On two
# cores the whole takes half an hour: what has no end by itself (fuzzing, mutation, soak) gets a slice here, and has a
# make target of its own for more. SWA_CHECK_ONLY="lint soak" takes the parts of these names alone. What was skipped is
# named above the table, in a line with the word SKIPPED.
#
# With SWA_CHECK_SECONDS the whole ends by then. The parts stand in the order of their worth; each gets what it may
# take and all that the parts before it left over, or, if that is not there, half of what is left, or its share if that is
# more. What a part could not do is named, counted as skipped, and never as passed; what it found until then counts.
set -u
make=$1 cc=$2 jobs=$3
mkdir -p build/check
rm -f build/check/*
other=clang
case $cc in *clang*) other=gcc ;; esac
export JOBS=$jobs CC=$cc
export -n MAKEFLAGS MAKELEVEL 2> /dev/null
n=10 whole=$SECONDS

parts="test-$cc 600
    test-$other 300
    lint 60
    benches 120
    registers 400
    switches 300
    matrix 900
    sanitize 900
    emulate 900
    mpi 300
    web 300
    packaging 120
    readme 900
    fuzz 400
    mutate 900
    coverage 400
    soak 300"
wanted() { case " ${SWA_CHECK_ONLY:-$1} " in *" $1 "*) ;; *) return 1 ;; esac; }
for name in ${SWA_CHECK_ONLY:-}; do
    grep -q "^ *$name [0-9]" <<< "$parts" || { echo "FAILED: no part is called $name"; exit 1; }
done
seconds_of() { awk -v n="$1" '$1 == n { print $2 }' <<< "$parts"; }
asked=0       # what this part and those behind it may take
while read -r name limit; do if wanted "$name"; then asked=$((asked + limit)); fi; done <<< "$parts"

row() {       # name, seconds, of which so many of CPU, on all cores, result
    printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >> build/check/table
}
cpu() {       # `spent` becomes the seconds of CPU that what this shell began has used
    times > build/check/times
    spent=$(awk -F '[ms ]+' 'NR == 2 { printf "%d", 60 * ($1 + $3) + $2 + $4 }' build/check/times)
}
missing() {   # name, why: a part that cannot run counts as one skipped test
    wanted "$1" || return
    echo "SKIPPED: $1: $2"
    row "$1" 0 0 "0 passed, 0 failed, 1 skipped"
    asked=$((asked - $(seconds_of "$1")))
}
# How long the part of this name may take.
limit_of() {
    local want left limit
    want=$(seconds_of "$1")
    if [ -z "${SWA_CHECK_SECONDS:-}" ]; then echo "$want"; return; fi
    left=$((SWA_CHECK_SECONDS - (SECONDS - whole) - 10))
    limit=$((left / 2))
    [ $((left * want / asked)) -le $limit ] || limit=$((left * want / asked))
    [ $left -lt $asked ] || want=$((want + left - asked))
    [ $limit -le $want ] || limit=$want
    echo $limit
}
part() {      # name, command...
    local name=$1 log=build/check/$n.log began=$SECONDS used code line limit
    shift
    wanted "$name" || return
    limit=$(limit_of "$name")
    if [ "$limit" -lt 3 ]; then missing "$name" "cut by the budget"; return; fi
    asked=$((asked - $(seconds_of "$name")))
    n=$((n + 1))
    echo "== $name"
    cpu
    used=$spent
    if [ -n "${SWA_CHECK_SECONDS:-}" ]; then
        export SWA_UNTIL=$(($(date +%s) + limit))
        timeout $((limit + limit / 20 + 10)) "$@" > "$log" 2>&1 < /dev/null
    else timeout "$limit" "$@" > "$log" 2>&1 < /dev/null; fi
    code=$?
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    if [ $code = 124 ]; then
        echo "$name: not done in $limit seconds"
        line="0 passed, 1 failed, 0 skipped"
        if [ -n "${SWA_CHECK_SECONDS:-}" ] && ! grep -qE 'FAILED|WRONG|^lint: |not run$' "$log"; then
            echo "SKIPPED: $name: cut by the budget after $limit seconds" >> "$log"
            line="0 passed, 0 failed, 1 skipped" code=0
        fi
    fi
    [ -n "$line" ] || line="0 passed, 1 failed, 0 skipped"
    case $line in *" 0 failed"*) [ $code = 0 ] || line="0 passed, 1 failed, 0 skipped" ;; *) code=1 ;; esac
    if [ $code = 0 ]; then grep -E 'SKIPPED|nothing to explain any more' "$log"
    else grep -E 'SKIPPED|FAILED' "$log" | head -n 40; tail -n 15 "$log"; fi
    cpu
    row "$name" $((SECONDS - began)) $((spent - used)) "$line"
}

part "test-$cc" bash tests/check/tests.sh "$make" "$cc" "$jobs"
if command -v $other > /dev/null; then part "test-$other" bash tests/check/tests.sh "$make" "$other" "$jobs"
else missing "test-$other" "$other is not installed"; fi
part lint sh tests/lint.sh
part benches bash tests/check/benches.sh
if command -v python3 > /dev/null; then part registers python3 tests/check/registers.py
else missing registers "python3 is not installed"; fi
if command -v python3 > /dev/null; then part switches python3 tests/check/switches.py
else missing switches "python3 is not installed"; fi
part matrix bash tests/check/matrix.sh -q
part sanitize bash tests/check/sanitize.sh
part emulate bash tests/check/emulate.sh
part mpi bash tests/check/mpi.sh
part web bash tests/check/web.sh
part packaging bash tests/check/packaging.sh
part readme sh tests/readme.sh "$cc" all
part fuzz bash tests/check/fuzz.sh "${SWA_FUZZ_SECONDS:-30}"
if command -v python3 > /dev/null
then part mutate python3 tests/check/mutate.py -j "$jobs" -n 205 -t "${SWA_MUTATE_SECONDS:-540}"
else missing mutate "python3 is not installed"; fi
part coverage bash tests/check/coverage.sh
part soak bash tests/check/soak.sh "${SWA_SOAK_SECONDS:-60}" 1

echo
awk -F '\t' -v all=$((SECONDS - whole)) '
    { printf "%-14s %5d s %6d s of CPU   %s\n", $1, $2, $3, $4
      split($4, w, " "); cpu += $3; p += w[1]; f += w[3]; s += w[5] }
    END { printf "%-14s %5d s %6d s of CPU\n", "all", all, cpu
          printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p + s == 0 }' build/check/table
