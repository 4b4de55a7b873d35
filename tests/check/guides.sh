#!/bin/sh
# guides.sh CC [CXX] - the code that examples/hosts/*.md show, compiled as C99 and, where there is a C++ compiler, as C++20:
# half of the engines are C++. What a reader's engine would have around it stands in each page as a comment that is not
# rendered: <!-- compile ... -->. And examples/binding.py, a binding that checks itself. The last line counts.
cc=${1:-cc} cxx=${2:-c++} passed=0 failed=0 skipped=0
dir=build/guides
mkdir -p $dir
for page in examples/hosts/*.md; do
    name=$(basename "$page" .md)
    awk '/^<!-- compile$/ || /^```c$/ { on = 1; next }
         /^-->$/ || /^```$/ { on = 0 }
         on { print }' "$page" > "$dir/$name.c"
    if grep -q swa_ "$dir/$name.c" && $cc -std=c99 -Wall -Wextra -Wconversion -Werror -I. -c "$dir/$name.c" \
            -o "$dir/$name.o"; then passed=$((passed + 1))
    else
        echo "FAILED: the code in $page"
        failed=$((failed + 1))
    fi
    if ! command -v "$cxx" > /dev/null 2>&1; then
        echo "SKIPPED: the code in $page, as C++: no compiler"
        skipped=$((skipped + 1))
    elif $cxx -std=c++20 -x c++ -Wall -Wno-missing-braces -Werror -I. -fsyntax-only "$dir/$name.c"; then
        passed=$((passed + 1))
    else
        echo "FAILED: the code in $page, as C++"
        failed=$((failed + 1))
    fi
done
if ! command -v python3 > /dev/null 2>&1; then
    echo "SKIPPED: examples/binding.py: no python3"
    skipped=$((skipped + 1))
elif CC=$cc CFLAGS='-O1 -DSWA_NO_SIMD' python3 examples/binding.py; then # a tenth of the time of all of it
    passed=$((passed + 1))
else
    echo "FAILED: examples/binding.py"
    failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
