#!/usr/bin/env bash
# soak.sh [seconds] [seed] - tests/check/soak.c for so many seconds of CPU (default 600): random histories of 64
# sequences over 4 layers, in five caches, each row that comes out compared with attention written out in double. The
# seed is the day's unless given, and printed. The last line is `N passed, N failed, N skipped`.
set -u
cd "$(dirname "$0")/../.." || exit 1
seconds=${1:-600} seed=${2:-$(date +%j)} cc=${CC:-cc} dir=build/soak
. tests/check/left.sh
mkdir -p $dir
$cc -std=c99 -O2 tests/check/soak.c -o $dir/soak -lm -lpthread || exit 1
if [ "$(left)" -lt $((seconds + 5)) ]; then
    less=$(($(left) - 5))
    echo "SKIPPED: $less instead of $seconds seconds, cut by the budget"
    if [ $less -lt 5 ]; then echo "0 passed, 0 failed, 1 skipped"; exit 0; fi
    seconds=$less
fi
echo "soak: $seconds seconds, seed $seed"
exec $dir/soak "$seconds" "$seed"
