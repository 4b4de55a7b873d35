#!/bin/sh
# examples.sh CC CXX OBJECT [FLAG] - builds every small example against the library's object, which takes FLAG to link,
# runs it and compares what it prints with examples/expected/NAME.txt. The text is the same on every machine: so are the
# bits. The code in examples/hosts is compiled. The last line counts.
cc=$1 cxx=$2 object=$3 openmp=${4:-} passed=0 failed=0 skipped=0
warn='-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror'
rm -rf build/examples      # what was built before must not speak for what no longer compiles
mkdir -p build/examples

run() {       # NAME EXPECTED WORDS...: of a program that is built
    name=$1 expected=$2
    shift 2
    if "build/examples/$name" "$@" > "build/examples/$expected.out" 2>&1 &&
            diff "examples/expected/$expected.txt" "build/examples/$expected.out"; then passed=$((passed + 1))
    else
        echo "FAILED: examples/$name $*"
        failed=$((failed + 1))
    fi
}
for expected in examples/expected/*.txt; do
    name=$(basename "$expected" .txt)
    [ "$name" = masks_svg ] && continue                  # the same program once more, below
    if [ -f "examples/$name.cpp" ]; then
        if ! command -v "$cxx" > /dev/null; then
            echo "SKIPPED: examples/$name.cpp: no C++ compiler"
            skipped=$((skipped + 1))
            continue
        fi
        $cxx -std=c++11 -O1 $warn -DSWA__IMPLEMENTED "examples/$name.cpp" "$object" -o "build/examples/$name" -lm $openmp
    else
        $cc -std=c99 -O1 $warn -DSWA__IMPLEMENTED "examples/$name.c" "$object" -o "build/examples/$name" -lm -lpthread $openmp
    fi || {
        echo "FAILED: examples/$name does not compile"
        failed=$((failed + 1))
        continue
    }
    run "$name" "$name"
done
run masks masks_svg --svg sliding 4 6 6
if cmp examples/expected/masks_svg.txt examples/window.svg; then passed=$((passed + 1))    # the picture of README
else failed=$((failed + 1)); fi
if sh tests/check/guides.sh "$cc" "$cxx" > build/examples/guides.out 2>&1; then passed=$((passed + 1))
else
    cat build/examples/guides.out
    failed=$((failed + 1))
fi
grep SKIPPED build/examples/guides.out && skipped=$((skipped + 1))
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
