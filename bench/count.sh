#!/bin/sh
# count.sh - instructions per FMA of whole calls on AArch64, counted under qemu-aarch64; argument: a word of the names, and
# SWA_H another header to be counted. Needs aarch64-linux-gnu-gcc and qemu-user. Run from the top of the repository.
# CC=riscv64-linux-gnu-gcc QEMU=qemu-riscv64 counts there, where the scalar instance runs; s390x alike.
set -eu
dir=build/count
mkdir -p $dir
cc=${CC:-aarch64-linux-gnu-gcc}
qemu=${QEMU:-qemu-aarch64}
cc -O1 -shared -fPIC -DCOUNT_PLUGIN bench/count.c -o $dir/count.so
source=bench/count.c
if [ -n "${SWA_H:-}" ]; then sed "s|\"../swa.h\"|\"$SWA_H\"|" bench/count.c > $dir/cases.c; source=$dir/cases.c; fi
$cc -std=gnu99 -O2 -static $source -o $dir/cases -DSWA_HEADER_FILENAME="\"${SWA_H:-swa.h}\"" -lm
counted() { $qemu -plugin $dir/count.so $dir/cases "$1" "$2" 2>&1 > $dir/fmas | tail -n 1; }
i=0
$qemu $dir/cases | while read -r name; do
    case $name in *"${1:-}"*)
        once=$(counted $i 1)
        thrice=$(counted $i 3)
        echo "$name|$once|$thrice|$(cat $dir/fmas)" |
            awk -F '|' '{ n = ($3 - $2) / 2; printf "%-52s %12.0f instructions, %12.0f FMAs of four: %.3f\n", $1, n, $4, n / $4 }' ;;
    esac
    i=$((i + 1))
done
