#!/bin/sh
# lint.sh - what a reader of swa.h relies on. One line per finding; the last line counts the rules.
passed=0 failed=0 skipped=0
mkdir -p build
rule() {      # its findings are in build/lint.out
    if [ -s build/lint.out ]; then
        failed=$((failed + 1))
        echo "lint: $1"
        sed 's/^/    /' build/lint.out
    else passed=$((passed + 1)); fi
}
# What .editorconfig speaks of: all that people write, without what programs do.
text=$(find . \( -name .git -o -name build -o -name corpus -o -name golden -o -name expected -o -name results -o \
    -name __pycache__ \) -prune -o -type f ! -name '*.gguf' ! -name '*.ids' ! -name '*.svg' ! -name '*.o' -print |
    sed 's,^\./,,' | sort)
files=$(echo "$text" | grep -E '\.(c|h|cpp)$')

awk 'FNR == 1 { at = body = 0 }
     !body && /^[a-zA-Z_].*\(/ && !/^(typedef|extern)/ { at = FNR; name = $0 }
     at && !body && /\{$/ { body = 1 }
     !body && /;$/ { at = 0 }
     /^\}/ { n = FNR - at + 1; if (body && n > 70) print FILENAME ":" at ": " n " lines: " substr(name, 1, 80); at = body = 0 }
    ' $files > build/lint.out
rule "a function is longer than 70 lines"
awk 'length($0) > 120 { print FILENAME ":" FNR ": " length($0) " columns" }' $files > build/lint.out
rule "a line is longer than 120 columns"
grep -n "$(printf '\t')" $(echo "$text" | grep -v '^Makefile$') /dev/null | cut -c1-100 > build/lint.out
rule "a tab"
grep -nE '[[:space:]]+$' $text /dev/null | cut -c1-100 > build/lint.out
rule "blanks at the end of a line"
for file in $text; do [ -z "$(tail -c 1 "$file")" ] || echo "$file"; done > build/lint.out
rule "no newline at the end of a file"

# .clang-format is for every C and C++ file.
if command -v clang-format > /dev/null; then
    for file in $files; do
        clang-format "$file" | diff "$file" - | sed "s,^,$file: ,"
    done > build/lint.out
    rule "clang-format would change a file"
else
    echo "SKIPPED: .clang-format: no clang-format here"
    skipped=$((skipped + 1))
fi

# The table of contents and the banners: same numbers, same names, same order.
name='\[SECTION ([0-9]+)\] +([A-Z]+( [A-Z]+)*)( .*)?$'
sed -n '/TABLE OF CONTENTS/,/^   WORDS/p' swa.h | sed -nE "s,^ +$name,\1 \2,p" > build/toc
sed -nE "s,^/\* =+ $name,\1 \2,p" swa.h > build/banners
{ [ -s build/toc ] || echo "no table of contents found"; diff build/toc build/banners; } > build/lint.out
rule "contents (<) and banners (>) differ"

# The map in the implementation's first comment names functions that there are.
sed -n '/WHERE A CALL GOES/,/\*\//p' swa.h | grep -oE '[a-z0-9]+(_[a-z0-9]+)+' | sort -u > build/map
{ [ "$(wc -l < build/map)" -gt 20 ] || echo "no map found"
  while read -r name; do
      grep -qE "^[A-Za-z].*\b(swa__)?$name\(|SWA__FN\($name\)\(" swa.h || echo "no function $name"
  done < build/map; } > build/lint.out
rule "the map names a function that there is not"

for name in order parameters columns macros; do
    command -v python3 > /dev/null || { echo "SKIPPED: $name: no python3"; skipped=$((skipped + 1)); continue; }
    python3 tests/check/order.py $name > build/lint.out || echo "order.py fails" >> build/lint.out
    rule "$name, see order.py"
done

# Every public function stands in some test, by name.
sed -n '/\[SECTION 1\] PUBLIC API =/,/\[SECTION 2\].*=/p' swa.h | grep -E '^SWA_(API|CHECKED)' |
    grep -oE 'swa_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u > build/public
cat tests/*.c tests/*.h | grep -oE 'swa_[a-z0-9_]+' | sort -u > build/tested
{ [ -s build/public ] || echo "no public function found"; comm -23 build/public build/tested; } > build/lint.out
rule "a public function is in no test"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
