#!/usr/bin/env bash
# matrix.sh [-q] [word] - tests/check/matrix.c compiled, warnings as errors, and run under every language, compiler,
# switch and machine that is to be had here; then what the object exports, needs, and keeps on the stack. Configurations
# whose name holds `word`, or all; with -q without those that differ little from another. One line each, with the
# seconds of CPU that it took; the last line is `N passed, N failed, N skipped`.
#
# expect `same`: every output bit equals the first configuration's, on all instruction sets the build has and for any
# number of parts. `right`: within 1e-5 of attention in double; for builds that let the compiler change IEEE arithmetic.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/check/left.sh
quick=
if [ "${1:-}" = -q ]; then quick=1; shift; fi
word=${1:-} dir=$PWD/build/matrix jobs=${JOBS:-2}
src=tests/check/matrix.c
warn="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Wcast-qual -Wwrite-strings -Werror"
rm -rf "$dir"
mkdir -p "$dir"
export OMP_NUM_THREADS=3 WINEDEBUG=-all WINEPREFIX=$dir/wine
list=$dir/list
: > "$list"

# add NAME EXPECT NEEDS BUILD [RUNNER]: BUILD is a shell command with @ for the program's path; NEEDS are commands.
add() {
    case $1 in *"$word"*) ;; *) return ;; esac
    printf '%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$(tr '\n' ' ' <<< "$4")" "${5:-@}" >> "$list"
}

also() { [ -n "$quick" ] || add "$@"; }      # left out with -q

one() {       # line number: builds and runs one configuration into $dir/N.row
    local n=$1 name expect needs build run tool limit code out="$dir/$1.log" exe="$dir/$1.exe"
    IFS=$'\t' read -r name expect needs build run < <(sed -n "${n}p" "$list")
    for tool in $needs; do
        command -v "$tool" > /dev/null || { printf 'skip\t%s\tno %s here\n' "$name" "$tool" > "$dir/$n.row"; return; }
    done
    limit=$(within 300)
    [ "$limit" -ge 5 ] || { printf 'skip\t%s\tcut by the budget\n' "$name" > "$dir/$n.row"; return; }
    timeout "$limit" bash -c "${build//@/$exe}" > "$out" 2>&1
    code=$?
    if [ $code = 124 ] && [ "$limit" -lt 300 ]; then
        printf 'skip\t%s\tcut by the budget\n' "$name" > "$dir/$n.row"
        return
    fi
    if [ $code != 0 ]; then
        printf 'fail\t%s\tdoes not compile: %s\n' "$name" "$(grep -m 1 -E 'error|warning|undefined' "$out")" \
            > "$dir/$n.row"
        return
    fi
    limit=$(within 300)
    timeout "$limit" bash -c "${run//@/$exe}" > "$out" 2> "$out.err"
    code=$?
    if [ $code = 124 ] && [ "$limit" -lt 300 ]; then
        printf 'skip\t%s\tcut by the budget\n' "$name" > "$dir/$n.row"
        return
    fi
    printf '%s\t%s\t%s\t%s\n' "$code" "$name" "$expect" "$(tr -d '\r' < "$out" | tail -n 1)" > "$dir/$n.row"
    rm -f "$exe"
    times > "$dir/$n.cpu"
}
spent() {     # line number: the seconds of CPU that it took
    awk -F '[ms ]+' 'NR == 2 { printf "%.0f s, ", 60 * ($1 + $3) + $2 + $4 }' "$dir/$1.cpu"
}

# ---- the configurations ----

add "gcc C99 -O2" same gcc "gcc -std=c99 -O2 $warn $src -o @ -lm"
for cc in gcc clang; do
    cxx=${cc/gcc/g++}; cxx=${cxx/clang/clang++}
    for o in -O0 -O1 -O2 -O3; do
        case $cc$o in gcc-O2) continue ;; clang-O2) how=add ;; *) how=also ;; esac
        $how "$cc C99 $o" same $cc "$cc -std=c99 $o $warn $src -o @ -lm"
    done
    for std in c11 c17 c2x gnu17; do
        also "$cc ${std^^} -O1 no SIMD" same $cc "$cc -std=$std -O1 -DSWA_NO_SIMD $warn $src -o @ -lm"
        add "$cc ${std^^} -O0" same $cc "$cc -std=$std -O0 $warn $src -o @ -lm"
    done
    for std in c++98 c++11 c++14 c++17 c++20; do
        add "$cxx ${std^^} -O0" same $cxx "$cxx -std=$std -O0 $warn -x c++ $src -o @ -lm"
    done
    also "$cxx C++20 -O2" same $cxx "$cxx -std=c++20 -O2 $warn -x c++ $src -o @ -lm"
    also "$cc GNU17 -O2" same $cc "$cc -O2 $warn $src -o @ -lm"
    also "$cc C99 -O2 -march=native" same $cc "$cc -std=c99 -O2 -march=native $warn $src -o @ -lm"
    add "$cc GNU17 -O3 -march=native" same $cc "$cc -O3 -march=native $warn $src -o @ -lm"
    how=also; [ $cc = gcc ] || how=add               # gcc does it in its GNU dialects
    $how "$cc -O2 -march=native contract" same $cc "$cc -O2 -march=native -ffp-contract=fast $warn $src -o @ -lm"
    also "$cc -O3 -ffast-math" same $cc "$cc -O3 -ffast-math $warn $src -o @ -lm"
    add "$cc -Ofast -march=native" same $cc "$cc -Ofast -march=native $warn $src -o @ -lm"
    also "$cxx -Ofast -march=native" same $cxx "$cxx -Ofast -march=native $warn -x c++ $src -o @ -lm"
    also "$cc -Ofast SWA_NO_SIMD" same $cc "$cc -Ofast -DSWA_NO_SIMD $warn $src -o @ -lm"
    also "$cc -Os" same $cc "$cc -Os $warn $src -o @ -lm"
    add "$cc SWA_NO_SIMD -O3" same $cc "$cc -O3 -DSWA_NO_SIMD $warn $src -o @ -lm"
    if [ "$(uname -m)" = x86_64 ]; then
        also "$cc SWA_NO_SIMD -mfma" same $cc "$cc -O2 -mfma -DSWA_NO_SIMD $warn $src -o @ -lm"
        add "$cc -masm=intel" same $cc "$cc -O1 -masm=intel $warn $src -o @ -lm"
        add "$cc SWA_NO_AMX" same $cc "$cc -O1 -DSWA_NO_AMX $warn $src -o @ -lm"
    fi
    also "$cc SWA_NO_AVX512" same $cc "$cc -O2 -DSWA_NO_AVX512 $warn $src -o @ -lm"
    also "$cc -flto -fPIE" same $cc "$cc -O1 -flto -fPIE -DSWA_NO_AVX512 $warn $src -o @ -lm"
    if echo 'int main(void){return 0;}' | $cc -fopenmp -x c - -o "$dir/probe" 2> /dev/null; then
        add "$cc OpenMP" same $cc "$cc -O1 -fopenmp $warn $src -o @ -lm"
        add "$cc OpenMP, SWA_NO_OPENMP" same $cc "$cc -O1 -fopenmp -DSWA_NO_SIMD -DSWA_NO_OPENMP $warn $src -o @ -lm"
    else add "$cc OpenMP" same "libomp-of-$cc" true; fi
done

# Two copies in one program: both private; one private and one exported; one in a shared library.
second="-DMATRIX_RUN=matrix_second -DMATRIX_NO_MAIN"
fast="-std=c99 -O1 -DSWA_NO_AVX512 $warn"
add "SWA_STATIC in two units" same gcc "gcc $fast -DSWA_STATIC $second -c $src -o @.o &&
    gcc $fast -DSWA_STATIC -DMATRIX_TWO $src @.o -o @ -lm"
add "one private copy, one exported" same "gcc clang" "clang $fast -DSWA_STATIC $second -c $src -o @.o &&
    gcc $fast -DMATRIX_TWO $src @.o -o @ -lm"
add "a copy in a shared library" same gcc "gcc $fast -fPIC -shared $second $src -o $dir/libcopy.so -lm &&
    gcc $fast -DMATRIX_TWO $src -o @ -L$dir -lcopy -Wl,-rpath,$dir -lm"
add "C library, C++98 caller" same "gcc g++" "gcc $fast -DSWA_IMPLEMENTATION -x c -c swa.h -o @.o &&
    g++ -std=c++98 $warn -DMATRIX_API_ONLY -x c++ -c $src -o @.2.o && g++ @.2.o @.o -o @ -lm"
mkdir -p "$dir/renamed"
cp swa.h "$dir/renamed/attention.h"
sed 's,"../../swa.h","attention.h",' $src > "$dir/renamed/matrix.c"
add "the header under another name" same gcc \
    "gcc $fast -DSWA_HEADER_FILENAME='\"attention.h\"' -I$dir/renamed $dir/renamed/matrix.c -o @ -lm"

# Other machines.
also_cross() { [ -n "$quick" ] || cross "$@"; }
cross() {     # name, expect, target of gcc, emulator, flags
    add "$1" "$2" "$3-gcc $4" "$3-gcc $5 $warn $src -o @ -lm -static" "$4 @"
}
cross "AArch64 C99 -O2" same aarch64-linux-gnu qemu-aarch64 "-std=c99 -O2"
also_cross "AArch64 GNU17 -O3" same aarch64-linux-gnu qemu-aarch64 "-O3"
also_cross "AArch64 no SIMD" same aarch64-linux-gnu qemu-aarch64 "-O2 -DSWA_NO_SIMD"
also_cross "AArch64 -Ofast" same aarch64-linux-gnu qemu-aarch64 "-Ofast"
cross "ARM 32-bit C99" same arm-linux-gnueabihf qemu-arm "-std=c99 -O2"
also_cross "ARM 32-bit GNU17 vfpv4" same arm-linux-gnueabihf qemu-arm "-O2 -mfpu=neon-vfpv4"
cross "RISC-V 64 C99" same riscv64-linux-gnu qemu-riscv64 "-std=c99 -O2"
also_cross "RISC-V 64 GNU17" same riscv64-linux-gnu qemu-riscv64 "-O2"
cross "s390x big-endian C99" same s390x-linux-gnu qemu-s390x "-std=c99 -O2"
also_cross "s390x big-endian GNU17" same s390x-linux-gnu qemu-s390x "-O2"
cross "i686 SSE2" same i686-linux-gnu qemu-i386 "-std=c99 -O2 -msse2 -mfpmath=sse"
also_cross "i686 SSE2 GNU17" same i686-linux-gnu qemu-i386 "-O2 -msse2 -mfpmath=sse"
cross "i686 x87 C99" same i686-linux-gnu qemu-i386 "-std=c99 -O2"
cross "i686 x87 GNU17 (excess precision)" right i686-linux-gnu qemu-i386 "-O2"
for cpu in qemu64 Haswell; do      # emulate.sh has the tests on such CPUs
    also "x86-64, CPU $cpu" same "gcc qemu-x86_64" "gcc -std=c99 -O2 $src -o @ -lm -static" \
        "qemu-x86_64 -cpu $cpu @ 2> /dev/null"
done
add "musl" same musl-gcc "musl-gcc -std=c99 -O2 $warn $src -o @ -lm -static"
add "tcc" same tcc "tcc -std=c99 -Wall -Werror $src -o @ -lm"
for avx2 in "" " -D__AVX2__"; do  # a compiler that is not GNU's, with a model of the intrinsics
    add "tcc, as MSVC$avx2" same tcc "tcc -std=c99 -Wall -Werror -D_M_X64$avx2 -Itests/check/msvc $src -o @ -lm"
done
wine=$(command -v wine64 || command -v wine || ls /usr/lib/wine/wine64 2> /dev/null || echo wine64)
mingw=x86_64-w64-mingw32-gcc
add "MinGW-w64 -O2" same "$mingw $wine" "$mingw -std=c99 -O2 $warn $src -o @ -lm" "$wine @"
cl=$(command -v clang-cl || command -v clang-cl-14 || echo clang-cl)
add "clang-cl -O2" same "$cl lld-link $mingw $wine" "sh tests/check/clang_cl/build.sh $src @" "$wine @"
add "clang-cl, as MSVC /arch:AVX2" same "$cl lld-link $mingw $wine" \
    "sh tests/check/clang_cl/build.sh tests/check/msvc/matrix.c @ /arch:AVX2 -Wno-unknown-pragmas" "$wine @"
also "MinGW-w64 -O0" same "$mingw $wine" "$mingw -O0 $warn $src -o @ -lm" "$wine @"
cat > "$dir/wasi.mjs" << 'END'
import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';
const wasi = new WASI({ version: 'preview1', args: ['matrix'], returnOnExit: true });
const module = await WebAssembly.compile(await readFile(process.argv[2]));
process.exitCode = wasi.start(await WebAssembly.instantiate(module, { wasi_snapshot_preview1: wasi.wasiImport }));
END
add "WebAssembly" same "clang wasm-ld node" \
    "clang --target=wasm32-wasi --sysroot=/usr -std=c99 -O2 $warn $src -o @ -lm" \
    "node --no-warnings $dir/wasi.mjs @"
add "WebAssembly SIMD128" same "clang wasm-ld node" \
    "clang --target=wasm32-wasi --sysroot=/usr -msimd128 -std=c99 -O2 $warn $src -o @ -lm" \
    "node --no-warnings $dir/wasi.mjs @"

# ---- run them, judge them ----

export -f one
export list dir
# Other machines right after the reference: if time runs out, they say more than the next level of optimisation.
awk -F '\t' '{ print NR == 1 ? 0 : $3 ~ /qemu|wine|node|musl/ ? 1 : 2, NR }' "$list" | sort -n | cut -d ' ' -f 2 |
    xargs -P "$jobs" -I N bash -c 'one N'

passed=0 failed=0 skipped=0 reference= reference_libm=
say() { printf '%-34s %s\n' "$1" "$2"; }
pass() { passed=$((passed + 1)); say "$1" "$2"; }
fail() { failed=$((failed + 1)); say "$1" "FAILED: $2"; }
skip() { skipped=$((skipped + 1)); say "$1" "SKIPPED: $2"; }
field() { sed -nE "s/.*$1 ([^ ]+).*/\1/p" <<< "$2"; }
judge() {     # exit code, name, expect, last line
    local bits libm note=
    bits=$(field bits "$4") libm=$(field libm "$4")
    [ -n "$bits" ] || { fail "$2" "no result, exit code $1: $4"; return; }
    [ -n "$reference" ] || { reference=$bits; reference_libm=$libm; }
    [ "$libm" = "$reference_libm" ] || note=", libm's last bits differ"
    [ "$bits" = "$reference" ] || note="$note, bits differ"
    case $4 in
    *"ISAS DIFFER") note="$note, instruction sets differ" ;;
    *"PARTS DIFFER") note="$note, parts differ" ;;
    esac
    note="$(spent $n)isa $(field isa "$4"), error $(field error "$4")$note"
    if [ "$1" != 0 ]; then fail "$2" "$4"
    elif [ "$3" = same ] && { [ "$bits" != "$reference" ] || [ "${4##* }" != ok ]; }; then fail "$2" "$note"
    else pass "$2" "$note"; fi
}
n=0
while n=$((n + 1)); [ $n -le "$(wc -l < "$list")" ]; do
    # a child that was killed ends xargs: what it left undone was not told
    IFS=$'\t' read -r code name expect line 2> /dev/null < "$dir/$n.row" ||
        { code=fail name="configuration $n" expect="no result: killed?"; }
    case $code in
    skip) skip "$name" "$expect" ;;
    fail) fail "$name" "$expect" ;;
    *) judge "$code" "$name" "$expect" "$line" ;;
    esac
done

# ---- the object ----

command -v nm > /dev/null && command -v objdump > /dev/null && object=1 || object=
library() {   # compiler, level: swa.o and swa.su in a folder of their own
    mkdir -p "$dir/$1.$2"
    cd "$dir/$1.$2" && timeout "$(within 600)" \
        "$1" -std=c99 "-$2" -fstack-usage -DSWA_IMPLEMENTATION -x c -c ../../../swa.h -o swa.o 2> /dev/null
}
export -f library
[ -n "$word" ] && [ "$word" != object ] ||
    printf '%s\n' "clang O2" "gcc O2" "gcc O1" "clang O1" | xargs -P "$jobs" -I O bash -c 'library O'
for cc in gcc clang; do
    [ -z "$word" ] || [ "$word" = object ] || break
    [ "$(left)" -ge 5 ] || { skip "object of $cc" "cut by the budget"; continue; }
    command -v $cc > /dev/null && [ -n "$object" ] || { skip "object of $cc" "no $cc, nm or objdump"; continue; }
    for o in O1 O2; do          # the promise about the stack begins at -O1
        [ -e "$dir/$cc.$o/swa.o" ] || { fail "object of $cc -$o" "does not compile"; continue; }
        largest=$(sort -t "$(printf '\t')" -k2,2nr "$dir/$cc.$o/swa.su" | head -n 1 |
            awk -F '\t' '{ sub(/.*:/, "", $1); print $2, $1 }')
        if [ "${largest%% *}" -le 8192 ]; then pass "stack, $cc -$o" "at most 8192 bytes; largest: $largest"
        else fail "stack, $cc -$o" "over 8192 bytes: $largest"; fi
    done
    obj=$dir/$cc.O2/swa.o
    bad=$(nm -g --defined-only "$obj" | awk '$3 !~ /^swa_[a-z0-9]/' | head -n 3)
    if [ -z "$bad" ]; then pass "exports, $cc" "$(nm -g --defined-only "$obj" | wc -l) names, all swa_"
    else fail "exports, $cc" "$bad"; fi
    allowed='^(__stack_chk_fail|_GLOBAL_OFFSET_TABLE_|__cpu_(model|features2|indicator_init)|mem(cpy|move|set|cmp))$'
    needs=$(nm -u "$obj" | awk '{ print $NF }' | grep -vE "$allowed" | sort | tr '\n' ' ')
    bad=$(tr ' ' '\n' <<< "$needs" | grep -vE '^(|fmaf|log|pow|sqrt|sin|cos|sincos|floor|ceil)$' | tr '\n' ' ')
    if [ -z "$bad" ]; then pass "imports, $cc" "mem*, and of libm: $needs"
    else fail "imports, $cc" "$bad"; fi
    bad=$(objdump -h "$obj" |
        awk '$2 ~ /^[.](data|bss|tdata|tbss)$/ && $3 !~ /^0+$/ { print $2, "holds 0x" $3, "bytes" }')
    if [ -z "$bad" ]; then pass "variables, $cc" "none can be written"
    else fail "variables, $cc" "$bad"; fi
    # A function, and the instruction sets that its attribute allows, from the preprocessed header.
    $cc -std=c99 -E -P -DSWA_IMPLEMENTATION -x c swa.h | tr '\n' ' ' | awk -v RS='target[(]"' 'NR > 1 {
        set = $0; sub(/".*/, "", set); sub(/^[^"]*"[)][)][)]/, "")
        if (match($0, /swa_[a-z0-9_]+[(]/)) print substr($0, RSTART, RLENGTH - 1), set }' > "$dir/$cc.targets"
    bad=$(objdump -d --no-show-raw-insn "$obj" | awk '
        FILENAME != "-" { may[$1] = $2; next }
        /^[0-9a-f]+ </ { f = $2; sub(/[.].*/, "", f); gsub(/[<>:]/, "", f) }
        /%zmm|%k[0-7]/ && may[f] !~ /avx512f/ { print f " uses AVX-512" }
        /%ymm|[ \t]v[a-z]+[0-9a-z]* .*%xmm/ && may[f] !~ /avx/ { print f " uses AVX" }' "$dir/$cc.targets" - |
        sort | uniq | head -n 3)
    [ -s "$dir/$cc.targets" ] || bad="no function with the attribute was found"
    if [ -z "$bad" ]; then pass "AVX registers, $cc" "only in functions that have the attribute"
    else fail "AVX registers, $cc" "$bad"; fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
