#!/usr/bin/env bash
# coverage.sh - which lines and branches of swa.h the tests run, by clang's source coverage. The kernels are one text
# that is compiled once per instruction set; their instances are added up by place, in coverage.py, which also knows
# the places that may stay unreached (uncovered.txt). The last line is `N passed, N failed, N skipped`.
set -u
export SWA_TEST_ALL=1                            # what make test leaves out is reached by this
cd "$(dirname "$0")/../.." || exit 1
dir=$PWD/build/coverage jobs=${JOBS:-2}
flags="-std=c99 -O1 -w -fprofile-instr-generate -fcoverage-mapping"
missing="no bf16 pairs here, which have kernels of their own"
rm -rf "$dir"
mkdir -p "$dir"
cp swa.h "$dir/swa.h.before"

echo 'int main(void){return 0;}' > "$dir/probe.c"
for tool in clang llvm-profdata llvm-cov python3; do
    command -v $tool > /dev/null && continue
    echo "SKIPPED: coverage needs $tool, which is not here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
done

# The tests of kernels run again on what swa.h takes for CPUs of other kinds. Where that cannot be, lines are not judged,
# as other CPUs run more of them.
others=
if clang -DSWA_OTHER_CPU -x c tests/check/other_cpu.h -o "$dir/probe" 2> /dev/null && others=$("$dir/probe" 2> /dev/null)
then flags="$flags -include tests/check/other_cpu.h" missing=; fi

if [ -z "$missing" ] && ! grep -qw avx_vnni /proc/cpuinfo
then missing="no AVX-VNNI here, which has kernels of its own (Zen 4)"; fi

# The scalar instruction set has every way of every case here: fmaf as an instruction, where there is one.
if grep -qw fma /proc/cpuinfo 2> /dev/null && clang -mfma "$dir/probe.c" -o "$dir/probe" 2> /dev/null
then flags="$flags -mfma -fno-math-errno -ffp-contract=off"; fi
# The library twice: alone, and with OpenMP, which only the test of the bits takes. What looks inside (it names swa__
# functions) compiles the implementation itself; of the fuzz targets, which replay their corpus, without SIMD.
build() {     # program, source, flags
    local alone=
    case $2 in */fuzz_*) alone=-DSWA_NO_SIMD ;; esac
    if grep -q '\<swa__' "$2"; then clang $flags $alone "$2" -o "$dir/$1" -lm -lpthread
    else
        clang -std=c99 -O1 -w $3 -DSWA__IMPLEMENTED -c "$2" -o "$dir/$1.o" &&
            clang -fprofile-instr-generate $3 "$dir/$1.o" "$dir/swa$3.o" -o "$dir/$1" -lm -lpthread
    fi
}
one() {       # source, [flags]: builds and runs it
    local name corpus=
    name=$(basename "$1" .c)${2:-}
    case $name in fuzz_*) corpus=tests/fuzz/corpus/${name#fuzz_} ;; esac
    if ! build "$name" "$1" "${2:-}" > "$dir/$name.log" 2>&1; then echo "$name FAILED: does not compile" | tee "$dir/$name.bad"
    elif ! LLVM_PROFILE_FILE=$dir/$name.profraw "$dir/$name" $corpus > "$dir/$name.log" 2>&1
    then echo "$name FAILED: $(tail -n 1 "$dir/$name.log")" | tee "$dir/$name.bad"
    elif [ -z "$missing" ] && [[ " $kernels " == *" $name "* ]]; then
        for cpu in $others; do
            SWA_OTHER_CPU=$cpu LLVM_PROFILE_FILE=$dir/$name.$cpu.other "$dir/$name" $corpus > "$dir/$name.log" 2>&1 ||
                echo "$name FAILED on $cpu: $(tail -n 1 "$dir/$name.log")" | tee "$dir/$name.bad"
        done
    fi
}
export -f one build
kernels="test_bits test_checksums test_attention test_mla test_lists test_trees test_index test_tile test_product"
export dir flags missing kernels others
# What takes longest is begun first: short ones fill the end.
list="tests/test_model.c tests/test_bits.c tests/test_mla.c tests/test_attention.c tests/test_cache.c tests/test_lists.c"
list="$list $(ls tests/test_*.c tests/fuzz/fuzz_*.c | grep -vxF "${list// /$'\n'}")" libraries=swa
if clang -fopenmp "$dir/probe.c" -o "$dir/probe" 2> /dev/null
then list="tests/test_bits.c,-fopenmp $list" libraries="swa swa-fopenmp"
else echo "clang has no OpenMP here: its lines are not measured"; fi
library() {   # its name, and flag
    clang $flags ${1#swa} -DSWA_IMPLEMENTATION -x c -c tests/library.h -o "$dir/$1.o"
}
export -f library
printf '%s\n' $libraries | xargs -P "$jobs" -I N bash -c 'library N' || exit 1
printf '%s\n' $list | tr ',' ' ' | xargs -P "$jobs" -I N bash -c 'one N'

llvm-profdata merge -sparse "$dir"/*.profraw $(ls "$dir"/*.other 2> /dev/null) -o "$dir/all.profdata" || exit 1
objects=
for f in "$dir"/*.profraw; do objects="$objects -object ${f%.profraw}"; done
llvm-cov export $objects -instr-profile "$dir/all.profdata" > "$dir/functions.json" &&
    llvm-cov export -format=lcov $objects -instr-profile "$dir/all.profdata" > "$dir/lines.txt" || exit 1
cmp -s swa.h "$dir/swa.h.before" || echo "swa.h changed while this ran" | tee "$dir/header.bad"
python3 tests/check/coverage.py "$dir" swa.h "$missing" $(ls "$dir"/*.bad 2> /dev/null)
