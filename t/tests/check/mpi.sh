#!/usr/bin/env bash
# mpi.sh - examples/mpi_split.c on 1 to 4 ranks: every row of prefill and decode has the bits of a single process, with
# keys split and with heads split, GQA and latent rows; and a run that cannot go on ends by itself and says why: ranks
# of different geometry, a rank that is killed, that stands still, that never begins. Ranks share cores here and may be
# root's, which Open MPI has to be told. One line per case; the last line is `N passed, N failed, N skipped`.
set -u
dir=build/mpi LIMIT=${LIMIT:-120}
program=$dir/mpi_split
passed=0 failed=0 skipped=0
mkdir -p "$dir"
mpi() { timeout -k 5 "$LIMIT" mpirun --allow-run-as-root --oversubscribe "$@" > "$dir/log" 2>&1 < /dev/null; }
judge() {     # 0 = as expected, what it was
    if [ "$1" = 0 ]; then passed=$((passed + 1)); printf '%-78s ok\n' "$2"; return; fi
    failed=$((failed + 1))
    echo "FAILED: $2"
    tail -n 5 "$dir/log"
}
same() {      # options: no row differs, on 1 to 4 ranks
    local n ok
    for n in 1 2 3 4; do
        mpi -n $n "$program" --context 1500 --chunk 200 --decode 40 "$@" &&
            grep -q '^0 rows of 1540 differ' "$dir/log"
        judge $? "$n ranks, $*"
    done
}
ends() {      # the line it ends with, what, then mpirun's arguments: an error within the limit, and no hang
    local line=$1 what=$2 code began=$SECONDS
    shift 2
    mpi "$@"
    code=$?
    [ $code != 0 ] && [ $code != 124 ] && [ $code != 137 -o "$what" = killed ] && grep -q "$line" "$dir/log"
    judge $? "$what: an error in $((SECONDS - began)) s: $(grep -m 1 -o "$line" "$dir/log")"
}
result() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}
if ! command -v mpicc > /dev/null || ! command -v mpirun > /dev/null; then
    echo "SKIPPED: no MPI here (Debian: openmpi-bin libopenmpi-dev)"
    skipped=1
    result
fi
mpicc -std=c99 -O2 -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Werror \
    examples/mpi_split.c -o "$program" -lm > "$dir/log" 2>&1
judge $? "mpi_split.c compiles without warnings"
[ "$failed" = 0 ] || result

gqa="--heads 8 --kv-heads 2 --dim 64" mla="--heads 6 --kv-heads 1 --dim 64 --tail 16"
for split in 0 1; do
    same $gqa --split $split
    same $gqa --split $split --window 300
    same $mla --split $split
    same $mla --split $split --window 700
done
# More ranks than blocks in reach, a chunk longer than the window, heads that no number of ranks divides.
same --heads 5 --kv-heads 5 --dim 40 --window 70
same --heads 5 --kv-heads 5 --dim 40 --split 1

mpi -n 1 "$program" --paper 1 && grep -q '^| 1024 |' "$dir/log"
judge $? "the cost model on paper"
long="--context 200000 --chunk 16 --check 0 --wait 5"
ends "rank 1 has --dim 64, rank 0 has 128" "ranks disagree" -n 1 "$program" : -n 1 "$program" --dim 64 : -n 1 "$program"
ends "no such option, or no such value" "a bad option" -n 1 "$program" $long : -n 1 "$program" --dim none
ends "exited on signal 9" killed -n 1 "$program" $long : -n 1 timeout -s KILL 3 "$program" $long
ends "no answer in time from rank 1" stopped -n 1 "$program" $long : -n 1 timeout -s STOP 3 "$program" $long
ends "a rank did not come to begin" "never begun" -n 1 "$program" $long : -n 1 sleep 100
result
