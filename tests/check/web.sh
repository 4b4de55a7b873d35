#!/usr/bin/env bash
# web.sh - the page of examples/web in headless Chromium, driven by web.py: it loads from a file, writes the text that
# build/generate writes for the same seed, keeps its memory, refuses bad input in words, obeys the keyboard and tells a
# screen reader what it draws. And SIMD128: its FMA against the definition, bit for bit. Screenshots, light and dark,
# stay in build/web. One line per case; the last line is `N passed, N failed, N skipped`.
set -u
dir=build/web LIMIT=${LIMIT:-240}
passed=0 failed=0 skipped=0
mkdir -p "$dir"
ok() {        # 0 = as expected, what it was
    if [ "$1" = 0 ]; then passed=$((passed + 1)); printf '%-78s ok\n' "$2"; return; fi
    failed=$((failed + 1))
    echo "FAILED: $2"
}
skip() { skipped=$((skipped + 1)); echo "SKIPPED: $1"; }
result() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
    exit
}
have() { command -v "$1" > /dev/null; }
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if ! have clang || ! have wasm-ld || ! have python3; then
    skip "no clang, wasm-ld or python3 here"
    result
fi
sh examples/web/build.sh "$dir" > "$dir/build.log" 2>&1
ok $? "make web: one page of $(($(wc -c < $dir/index.html) / 1000)) kB"
[ "$failed" = 0 ] || { cat "$dir/build.log"; result; }

# SIMD128's FMA on numbers chosen for trouble, against the definition here and against this machine's.
clang --target=wasm32-wasi --sysroot=/usr -msimd128 -std=c99 -O2 tests/check/simd128.c -o "$dir/simd128.wasm" -lm &&
    ${CC:-cc} -std=c99 -O2 -DSWA_NO_SIMD tests/check/simd128.c -o "$dir/simd128" -lm &&
    "$dir/simd128" > "$dir/native.fma"
ok $? "simd128.c compiles for both"
if have node; then
    cat > "$dir/wasi.mjs" << 'END'
import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';
const wasi = new WASI({ version: 'preview1', args: ['simd128'], returnOnExit: true });
const module = await WebAssembly.compile(await readFile(process.argv[2]));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi.wasiImport }));
END
    timeout "$LIMIT" node --no-warnings "$dir/wasi.mjs" "$dir/simd128.wasm" > "$dir/wasm.fma" &&
        cmp -s "$dir/native.fma" "$dir/wasm.fma"
    ok $? "FMA of SIMD128: $(tail -n 1 "$dir/wasm.fma")"
else skip "the FMA of SIMD128: no node here"; fi

if [ -z "$browser" ]; then
    skip "the page: no Chromium here (Debian: chromium)"
    result
fi
make -s build/generate CC="${CC:-cc}" > "$dir/generate.log" 2>&1
ok $? "the native program"
timeout -k 5 "$LIMIT" python3 tests/check/web.py \
    "$browser" "$PWD/$dir/index.html" "$dir" build/generate > "$dir/page.log"
code=$?
while read -r word what; do
    case $word in
    ok) ok 0 "$what" ;;
    *) ok 1 "$word $what" ;;
    esac
done < "$dir/page.log"
[ $code = 0 ] || [ "$failed" -gt 0 ] || ok 1 "web.py ended with $code"
grep -q 'screenshot: .*dark' "$dir/page.log"
ok $? "every case has run"
result
