#!/bin/sh
# peers.sh - fetches what the registries have, builds the comparison and runs it; arguments go to the program.
# Run from the top of the repository. Nothing is installed: everything lands in build/peers. A peer that cannot be
# fetched is reported and skipped; the others still run.
set -u
dir=build/peers
src=bench/peers
ggml=@node-llama-cpp/linux-x64@3.22.1
ort=onnxruntime-node@1.30.0
warnings="-Wall -Wextra -Wpedantic"
mkdir -p "$dir" bench/results

missing() { echo "PEER SKIPPED: $1" >&2; }

fetch_npm() {   # package@version, file that proves it is there; no package's scripts are run
    [ -e "$dir/node_modules/$2" ] && return
    command -v npm > /dev/null || { missing "$1: npm is not installed"; return; }
    [ -e "$dir/package.json" ] || echo '{"private":true}' > "$dir/package.json"
    (cd "$dir" && npm install --ignore-scripts --no-audit --no-fund "$1" > npm.log 2>&1) ||
        missing "$1: $(tail -n 1 "$dir/npm.log")"
}

fetch_openblas() {   # the Debian package, unpacked here unless the system has it
    [ -e "$dir/openblas/libopenblas.so.0" ] && return
    ldconfig -p 2> /dev/null | grep -q 'libopenblas\.so\.0' && return
    command -v apt-get > /dev/null || { missing "OpenBLAS: no apt-get here, install libopenblas.so.0"; return; }
    mkdir -p "$dir/openblas"
    (cd "$dir/openblas" && apt-get download libopenblas0-pthread > apt.log 2>&1 &&
        dpkg-deb -x libopenblas0-pthread_*.deb . &&
        cp "$(find . -name 'libopenblasp*.so' | head -n 1)" libopenblas.so.0) ||
        missing "OpenBLAS: $(tail -n 1 "$dir/openblas/apt.log")"
}

fetch_onednn() {   # likewise, with its headers, and the OpenCL loader that it is linked with
    [ -e "$dir/onednn/libdnnl.so.2" ] && return
    command -v apt-get > /dev/null || { missing "oneDNN: no apt-get here"; return; }
    mkdir -p "$dir/onednn"
    (cd "$dir/onednn" && apt-get download libdnnl2 libdnnl-dev ocl-icd-libopencl1 > apt.log 2>&1 || exit 1
        for package in *.deb; do dpkg-deb -x "$package" . || exit 1; done
        cp "$(find . -name 'libOpenCL.so.1.*' | head -n 1)" libOpenCL.so.1
        cp "$(find . -name 'libdnnl.so.2.*' | head -n 1)" libdnnl.so.2) ||
        missing "oneDNN: $(tail -n 1 "$dir/onednn/apt.log")"
}

fetch_npm "$ggml" @node-llama-cpp/linux-x64/package.json
fetch_npm "$ort" onnxruntime-node/package.json
command -v node > /dev/null || missing "onnxruntime: node is not installed"
fetch_openblas
fetch_onednn

# ours as everybody builds it; the code that stands for other people's as they would build it
cc=${CC:-cc}
best="-O3 -march=native"
$cc -std=c99 -O2 $warnings -c $src/peers.c -o $dir/peers.o &&
$cc -std=gnu99 $best -ffast-math $warnings -c $src/naive.c -o $dir/naive.o &&
$cc -std=gnu99 $best $warnings -c $src/blas.c -o $dir/blas.o &&
$cc -std=gnu99 -O2 $warnings -c $src/ggml.c -o $dir/ggml.o &&
$cc -std=gnu99 -O2 $warnings -c $src/ort.c -o $dir/ort.o &&
$cc -std=gnu99 -O2 $warnings -I$dir/onednn/usr/include -c $src/onednn.c -o $dir/onednn.o &&
$cc -o $dir/peers $dir/peers.o $dir/naive.o $dir/blas.o $dir/ggml.o $dir/ort.o $dir/onednn.o -ldl -lm -lpthread || exit 1

# a core type or cache size in the environment would tie OpenBLAS to the kernels of another machine: let it choose
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
# huge pages for the peers' own allocations: the caches of ours have them too
GLIBC_TUNABLES=glibc.malloc.hugetlb=1 PEERS_DIR=$dir $dir/peers "$@"
