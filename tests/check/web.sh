#!/usr/bin/env bash
# web.sh - the page of examples/web in headless Chromium: it loads from a file, writes the text that build/generate
# writes for the same seed, keeps its memory, refuses bad input in words, and names every control. And SIMD128: its FMA
# against the definition, bit for bit. Screenshots, light and dark, stay in build/web. One line per case; the last line
# is `N passed, N failed, N skipped`.
set -u
dir=build/web LIMIT=${LIMIT:-120}
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
open() {      # options of the browser, then what the page is asked: its document goes to standard output
    timeout -k 5 "$LIMIT" "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
        --user-data-dir="$dir/profile" --virtual-time-budget=60000 "${@:1:$#-1}" \
        "file://$PWD/$dir/index.html?${!#}" 2> "$dir/browser.log"
}
text() {      # what the page has written, without its tags
    python3 -c '
import html, re, sys
page = sys.stdin.read()
inside = re.search(r"<div id=\"text\"[^>]*>(.*?)</div>", page, re.S)
sys.stdout.write(html.unescape(re.sub(r"<[^>]*>", "", inside.group(1))) if inside else "no text\n")'
}

if ! have clang || ! have wasm-ld || ! have python3; then
    skip "no clang, wasm-ld or python3 here"
    result
fi
sh examples/web/build.sh "$dir" > "$dir/build.log" 2>&1
ok $? "make web: one page of $(($(wc -c < $dir/index.html) / 1000)) kB"
[ "$failed" = 0 ] || { cat "$dir/build.log"; result; }

# SIMD128's FMA on numbers chosen for trouble, against the definition here and against this machine's.
clang --target=wasm32-wasi --sysroot=/usr -msimd128 -std=c99 -O2 tests/check/simd128.c -o "$dir/simd128.wasm" -lm &&
    ${CC:-cc} -std=c99 -O2 tests/check/simd128.c -o "$dir/simd128" -lm && "$dir/simd128" > "$dir/native.fma"
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
same() {      # prompt, window, chunk, temperature, seed, tokens: page and program write the same
    local ask="go=1&pace=fast&prompt=${1// /%20}&window=$2&chunk=$3&temperature=$4&seed=$5&tokens=$6"
    ./build/generate -p "$1" -w "$2" -c "$3" -t "$4" -s "$5" -n "$6" 2> /dev/null > "$dir/native.txt"
    open --dump-dom "$ask" > "$dir/dom.html"
    { text < "$dir/dom.html"; echo; } > "$dir/page.txt"
    [ "$(wc -c < "$dir/page.txt")" -gt 100 ] && cmp -s "$dir/native.txt" "$dir/page.txt"
    ok $? "window $2, chunk $3, temperature $4, seed $5: $6 tokens, as the native program"
}
same "Elizabeth was" 64 128 0.8 1 200
same "It is a truth universally acknowledged, that a single man" 64 5 1.0 7 300
same "My dear Emma" 20 16 0 1 100

shown() { sed -n "s/.*id=\"$1\"[^>]*>\([^<]*\)<.*/\1/p" "$dir/dom.html"; }
bytes=$(shown n-ring)
open --dump-dom "go=1&pace=fast&tokens=900" > "$dir/dom.html"
memory=$(shown n-memory)
grep -q 'data-state="done"' "$dir/dom.html" && [ "$(shown n-position)" = 929 ] && [ "$(shown n-ring)" = "131,072 bytes" ]
ok $? "900 tokens: position $(shown n-position) in slot $(shown n-slot), keys and values $(shown n-ring)"
open --dump-dom "go=1&pace=fast&tokens=50" > "$dir/dom.html"
[ -n "$memory" ] && [ "$(shown n-memory)" = "$memory" ] && [ "$(shown isa)" = simd128 ]
ok $? "the page's memory is the same for 50 and for 900 tokens: $memory; instructions: $(shown isa)"
for bad in "window=0" "window=x" "chunk=0" "temperature=-1" "tokens=1e9" "seed=-2" "prompt=%20" "tokens=20000&window=64&prompt=a"; do
    open --dump-dom "go=1&pace=fast&$bad" > "$dir/dom.html"
    case $bad in
    *20000*) grep -q 'data-state="done"' "$dir/dom.html"; ok $? "$bad: the most that the form allows" ;;
    *) grep -q 'data-state="refused"' "$dir/dom.html" && grep -q 'aria-invalid="true"' "$dir/dom.html" &&
           [ -n "$(shown error)" ]; ok $? "$bad: $(shown error)" ;;
    esac
done
python3 - examples/web/page.html << 'END'
import html.parser, sys
class Page(html.parser.HTMLParser):
    controls, named, images, live, lang = [], set(), [], 0, None
    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        if tag == "html": self.lang = a.get("lang")
        if tag in ("input", "textarea", "select"): self.controls.append(a.get("id"))
        if tag == "label": self.named.add(a.get("for"))
        if tag == "canvas": self.images.append(a.get("role") == "img" and bool(a.get("aria-label")))
        self.live += "aria-live" in a or a.get("role") in ("status", "alert")
        if "tabindex" in a and int(a["tabindex"]) > 0: sys.exit("focus order is not the order of the page")
page = Page()
page.feed(open(sys.argv[1]).read())
sys.exit(not (page.lang and set(page.controls) <= page.named and all(page.images) and len(page.images) == 3 and page.live >= 3))
END
ok $? "every control has a label, every picture words, focus goes in the order of the page"
for theme in light dark; do
    rm -f "$dir/$theme.png"
    open --window-size=1220,980 --screenshot="$PWD/$dir/$theme.png" "go=1&pace=fast&theme=$theme" > /dev/null
    [ "$(wc -c < "$dir/$theme.png")" -gt 20000 ]
    ok $? "screenshot: $dir/$theme.png"
done
result
