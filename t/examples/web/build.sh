#!/bin/sh
# build.sh OUT - one page, OUT/index.html, that holds everything: the engine as WebAssembly, the model, the script.
# Needs clang, wasm-ld, wasi-libc and the wasm32 builtins (Debian: clang lld wasi-libc libclang-rt-dev-wasm32), base64.
set -eu
out=${1:-build/web}
here=examples/web
mkdir -p "$out"
"${WASM_CC:-clang}" --target=wasm32-wasi --sysroot="${WASI_SYSROOT:-/usr}" -mexec-model=reactor -msimd128 -std=c99 -O3 \
    -ffp-contract=off $here/engine.c -o "$out/engine.wasm" -lm \
    -fvisibility=hidden -Wl,--export-dynamic,--strip-all -Wl,-z,stack-size=262144
base64 "$out/engine.wasm" > "$out/wasm.b64"
base64 examples/austen-w64.gguf > "$out/model.b64"
sed -e "/^@@wasm@@\$/{
r $out/wasm.b64
d
}" -e "/^@@model@@\$/{
r $out/model.b64
d
}" -e "/^@@script@@\$/{
r $here/page.js
d
}" $here/page.html > "$out/index.html"
rm "$out/wasm.b64" "$out/model.b64"
