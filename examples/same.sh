#!/bin/sh
# same.sh - one text, written in every way there is here: prompt in one chunk or token by token, from an empty cache or
# from one that was saved and loaded, by 1 or 16 threads, with every vector instruction of this CPU or with none, and by
# an AArch64 program under qemu. The sums must be equal: a cut of the prompt, a cache, a thread or another machine changes
# not one bit. What cannot run is named. `make same` runs it.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p build/same
cc=${CC:-cc} prompt='It is a truth universally acknowledged, that' first= failed=0 ways=0 skipped=0

skip() { echo "SKIPPED: $1"; skipped=$((skipped + 1)); }
build() {     # NAME COMPILER FLAGS...
    name=$1 compiler=$2
    shift 2
    command -v "${compiler%% *}" > /dev/null || { skip "$name: no $compiler here"; return 1; }
    $compiler -O1 -ffp-contract=off "$@" examples/generate.c -o "build/same/$name" -lm && return
    echo "FAILED: $name does not compile"
    ways=$((ways + 1)) failed=$((failed + 1))
    return 1
}
way() {       # WORDS FOR PEOPLE, COMMAND...
    what=$1
    shift
    ways=$((ways + 1))
    if ! "$@" -n 60 -p "$prompt" > build/same/text 2> build/same/errors || [ ! -s build/same/text ]; then
        printf '%-60s %10s  FAILED: %s\n' "$what" - "$(head -n 1 build/same/errors)"
        failed=$((failed + 1))
        return
    fi
    sum=$(cksum < build/same/text | cut -d' ' -f1)
    [ -n "$first" ] || first=$sum
    if [ "$sum" = "$first" ]; then word=same; else word=OTHER failed=$((failed + 1)); fi
    printf '%-60s %10s  %s\n' "$what" "$sum" "$word"
}
build native "$cc" -fopenmp && {
    ./build/same/native -n 24 -p "$prompt" 2> /dev/null
    echo
    way "this CPU, cold cache, prompt in chunks of 128, 1 thread" ./build/same/native -c 128
    way "the same, token by token" ./build/same/native -c 1
    way "chunks of 7, 16 threads" ./build/same/native -c 7 --threads 16
    way "warm cache: half of the prompt saved and loaded" ./build/same/native --warm
    way "warm cache, chunks of 3, 16 threads" ./build/same/native --warm -c 3 --threads 16
}
build scalar "$cc" -DSWA_NO_SIMD && {
    way "attention in plain C, no vector instruction" ./build/same/scalar -c 128
    way "the same, warm cache" ./build/same/scalar --warm
}
build aarch64 aarch64-linux-gnu-gcc -static && {
    if command -v qemu-aarch64 > /dev/null; then
        way "AArch64 under qemu, NEON" qemu-aarch64 ./build/same/aarch64 -c 32
        way "the same, warm cache" qemu-aarch64 ./build/same/aarch64 --warm
    else skip "no qemu-aarch64 here"; fi
}
echo "$((ways - failed)) passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$ways" -gt 0 ]
