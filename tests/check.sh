#!/bin/sh
# check.sh MAKE CC JOBS - everything that proves the library, one table at the end, and the sum as the last line. It
# grows with the library: a part is a name and a command whose last line is `N passed, N failed, N skipped`.
MAKE=$1 CC=$2 JOBS=$3
mkdir -p build
rm -f build/check.*.part
other=clang
case $CC in *clang*) other=gcc ;; esac
n=10

part() {      # name, command...
    name=$1
    shift
    log=build/check.$n.part
    echo "== $name"
    "$@" > "$log" 2>&1
    code=$?
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)
    [ -n "$line" ] || line="0 passed, 1 failed, 0 skipped"
    case $line in *" 0 failed"*) [ $code -eq 0 ] || line="0 passed, 1 failed, 0 skipped" ;; *) code=1 ;; esac
    [ $code -eq 0 ] || tail -n 30 "$log"
    grep '^SKIPPED' "$log"
    printf '%s\t%s\n' "$name" "$line" >> build/check.table.part
    n=$((n + 1))
}
missing() {   # what is not there counts as one skipped test
    echo "SKIPPED: $1"
    printf '%s\t0 passed, 0 failed, 1 skipped\n' "$1" >> build/check.table.part
}

part "lint" sh tests/lint.sh
part "tests, $CC" $MAKE test CC="$CC" JOBS="$JOBS"
if echo 'int main(void){return 0;}' > build/probe.c && $CC -fsanitize=address,undefined build/probe.c -o build/probe \
   2> /dev/null && ./build/probe; then part "ASan and UBSan, $CC" $MAKE asan CC="$CC" JOBS="$JOBS"
else missing "ASan and UBSan: $CC has none"; fi
if command -v $other > /dev/null; then part "tests, $other" $MAKE test CC=$other JOBS="$JOBS"
else missing "tests, $other: not installed"; fi

echo
awk -F '\t' '{ printf "%-32s %s\n", $1, $2; split($2, w, " "); p += w[1]; f += w[3]; s += w[5] }
             END { printf "%d passed, %d failed, %d skipped\n", p, f, s; exit f > 0 || p == 0 }' build/check.table.part
