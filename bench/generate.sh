#!/bin/sh
# generate.sh [-d DIM] [TYPE...] - tokens per second of examples/generate.c beside what reading the weights allows, by one
# and two threads, on models in the shapes of Mistral 7B (or a smaller DIM): a gigabyte of random weights of each type,
# made here and thrown away.
set -u
dir=build/bench_generate dim=4096
mkdir -p "$dir"
if [ "${1:-}" = -d ]; then
    dim=$2
    shift 2
fi
[ $# -gt 0 ] || set -- q8_0 q4_k f16
for type; do
    case $type in f32) layers=1 ;; f16 | bf16) layers=2 ;; q8_0) layers=4 ;; *) layers=8 ;; esac
    python3 bench/make_model.py "$dir/model.gguf" "$type" "$layers" "$dim" || exit 1
    for threads in 1 2; do
        echo "$type, threads: $threads"
        ./build/generate -m "$dir/model.gguf" --bench --context 5000 --threads $threads || exit 1
    done
    rm -f "$dir/model.gguf"
done
