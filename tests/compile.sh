#!/bin/sh
# compile.sh CC CXX OBJECT - the header as C and as C++, in two units, and what the library as an object exports and
# needs. check/matrix.sh has the other standards, switches, compilers and machines, and runs them. One line per failure;
# the last line is `N passed, N failed, N skipped`.
CC=${1:-cc} CXX=${2:-c++} object=${3:-build/swa.o}
warn="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wundef -Werror"
dir=build/compile
passed=0 failed=0 skipped=0
mkdir -p $dir

pass() { passed=$((passed + 1)); }
fail() { failed=$((failed + 1)); echo "compile.sh: $1 FAILED"; [ -s $dir/out ] && head -n 8 $dir/out; }
skip() { skipped=$((skipped + 1)); echo "SKIPPED compile.sh: $1"; }
check() { name=$1; shift; if "$@" > $dir/out 2>&1; then pass; else fail "$name"; fi; }

cat > $dir/impl.c << 'END'
#define SWA_IMPLEMENTATION
#include "../../swa.h"
END
cat > $dir/api.c << 'END'
#include "../../swa.h"
#include "../../swa.h"
int twice(void);
int twice(void) { swa_window w = swa_window_sliding(4); return swa_visible(&w, 5, 2); }
END
# The top comment's lines as a program; prints ok if the second token's output lies between the two values.
cat > $dir/use.c << 'END'
#include "use.h"
#include <stdio.h>
#include <stdlib.h>
#ifdef __cplusplus
#  define ZERO {}
#else
#  define ZERO {0}
#endif
int other(void);
int main(void) {
    swa_window win = swa_window_sliding(4);
    swa_cache_desc d = ZERO;
    swa_cache kv;
    float q[4] = { 1, 0, 0, 1 }, k[2] = { 1, 2 }, v[2] = { 3, 4 }, out[4] = { 0, 0, 0, 0 };
    size_t bytes, room;
    unsigned char *mem;
    int pos;
    d.shape.n_heads = 2; d.shape.n_kv_heads = 1; d.shape.head_dim = 2;
    d.n_layers = 1; d.windows = &win; d.n_windows = 1;
    bytes = swa_cache_bytes(&d);
    room = swa_cache_scratch_bytes(&d, 1);
    mem = (unsigned char *)malloc(bytes + room);
    if (swa_cache_init(&kv, &d, mem, bytes) != SWA_OK) return 1;
    if (swa_cache_set_scratch(&kv, mem + bytes, room) != SWA_OK) return 1;
    for (pos = 0; pos < 10; pos++) {
        swa_attn a = ZERO;
        v[0] = (float)pos;
        if (swa_step_one(&kv, 0, pos, 1) != SWA_OK) return 2;
        a.q.p = q; a.k.p = k; a.v.p = v; a.out.p = out;
        if (swa_attend(&kv, 0, &a) != SWA_OK) return 3;
    }
    free(mem);
    if (!(out[0] > 7.49f && out[0] < 7.51f && out[1] > 3.99f && out[1] < 4.01f)) return 4;
    return other() == 1 ? printf("ok\n") != 3 : 5;
}
END
cat > $dir/other.c << 'END'
#include "use.h"
int other(void);
int other(void) { swa_window w = swa_window_sliding(4); return swa_visible(&w, 5, 2); }
END

# Languages: declarations alone in all, with the implementation in one of each.
for std in c99 c11 c17; do
    check "$CC -std=$std, API twice" $CC -std=$std $warn -fsyntax-only $dir/api.c
done
check "$CC -std=c99, implementation" $CC -std=c99 $warn -fsyntax-only $dir/impl.c
if echo 'int main(){return 0;}' > $dir/probe.cpp && $CXX $dir/probe.cpp -o $dir/probe 2> /dev/null; then
    for std in c++98 c++11 c++17 c++20; do
        check "$CXX -std=$std, API twice" $CXX -std=$std $warn -x c++ -fsyntax-only $dir/api.c
    done
    check "$CXX -std=c++17, implementation" $CXX -std=c++17 $warn -x c++ -fsyntax-only $dir/impl.c
else
    skip "no C++ compiler ($CXX): nothing was compiled as C++"
    CXX=
fi

# A status that nobody looks at is a warning, in each language and compiler that is here, with no flag but -Werror; one
# that is looked at is none, nor any where the host defined SWA_NODISCARD empty; C++'s own attribute is a definition, too.
# And a wrapper's header can name a struct that it does not include.
cat > $dir/ignored.c << 'END'
struct swa_cache;
void use(struct swa_cache *kv);
#include "../../swa.h"
void use(swa_cache *kv) { STATUS swa_step_one(kv, 0, 0, 1) END_OF_IT; }
END
ignored() {   # compiler, language
    if echo 'int main(void){return 0;}' | $1 -x $2 -fsyntax-only - > /dev/null 2>&1; then
        check "$1 -x $2: a status that is looked at" $1 -x $2 -Werror -c -o /dev/null \
            -DSTATUS='if (' -DEND_OF_IT='!= SWA_OK) return' $dir/ignored.c
        check "$1 -x $2: SWA_NODISCARD empty" $1 -x $2 -Werror -c -o /dev/null \
            -DSWA_NODISCARD= -DSTATUS= -DEND_OF_IT= $dir/ignored.c
        [ "$2" = c ] || check "$1 -x $2: [[nodiscard]]" $1 -x $2 -std=c++17 -Werror -c -o /dev/null \
            '-DSWA_NODISCARD=[[nodiscard]]' -DSTATUS='if (' -DEND_OF_IT='!= SWA_OK) return' $dir/ignored.c
        if $1 -x $2 -Werror -c -o /dev/null -DSTATUS= -DEND_OF_IT= $dir/ignored.c > $dir/out 2>&1
        then fail "$1 -x $2: an ignored status does not warn"
        elif grep -q 'unused-result' $dir/out; then pass
        else fail "$1 -x $2: an ignored status fails otherwise"; fi
    else skip "no $1 for $2: whether an ignored status warns"; fi
}
for cc in gcc clang; do for language in c c++; do ignored $cc $language; done; done
# Every call that returns a status has it.
sed -n '/PUBLIC API =/,/SWA_H_INCLUDED \*\//p' swa.h | grep -nE '^SWA_API +swa_status ' > $dir/out
if [ -s $dir/out ]; then fail "a status that may be ignored: SWA_API instead of SWA_CHECKED"; else pass; fi

# A renamed copy that does not say its name, beside a file of the old one: its kernels are not taken from there.
mkdir -p $dir/mixed
cp swa.h $dir/mixed/mine.h
sed 's/SWA_VERSION 900/SWA_VERSION 899/; s/SWA_VERSION != 900/SWA_VERSION != 899/' swa.h > $dir/mixed/swa.h
printf '#define SWA_IMPLEMENTATION\n#include "mine.h"\n' > $dir/mixed/impl.c
if cmp -s swa.h $dir/mixed/swa.h || $CC -std=c99 -fsyntax-only $dir/mixed/impl.c > $dir/out 2>&1
then fail "kernels of another version's file were taken"
elif grep -q 'error.*SWA_HEADER_FILENAME' $dir/out; then pass
else fail "kernels of another version's file"; fi

# Programs, without SIMD, which compile in a tenth of the time: one unit with the implementation, one without; static
# in both; and as C++, with no more of it than the program uses.
program() {   # name, compiler, flags, use.h for main's unit, use.h for the other
    name=$1 cc=$2 flags=$3
    mkdir -p $dir/a $dir/b
    printf '%s\n#include "../../../swa.h"\n' "$4" > $dir/a/use.h
    printf '%s\n#include "../../../swa.h"\n' "$5" > $dir/b/use.h
    if $cc $flags -I$dir/a -c $dir/use.c -o $dir/a.o > $dir/out 2>&1 &&
       $cc $flags -I$dir/b -c $dir/other.c -o $dir/b.o > $dir/out 2>&1 &&
       $cc $dir/a.o $dir/b.o -o $dir/program -lm > $dir/out 2>&1 && $dir/program > $dir/out 2>&1
    then pass; else fail "program: $name"; fi
}
impl='#define SWA_IMPLEMENTATION'
both='#define SWA_STATIC
#define SWA_IMPLEMENTATION'
program "two units" "$CC" "-std=c99 $warn -DSWA_NO_SIMD" "$impl" ""
program "SWA_STATIC in two units" "$CC" "-std=c99 $warn -DSWA_NO_SIMD" "$both" "$both"
less="-DSWA_NO_SIMD -DSWA_NO_MLA -DSWA_NO_INDEX -DSWA_NO_LISTS -DSWA_NO_MASKS -DSWA_NO_BLOB"
[ -z "$CXX" ] || program "C++" "$CXX" "-std=c++17 $warn $less -x c++" "$impl" ""

# The object: swa_ alone is exported (and the door of library.h); nothing of malloc, stdio or threads is needed, but for
# OpenMP's, with which the tests' library is compiled; no variable that can change.
if command -v nm > /dev/null && [ -e "$object" ]; then
    nm -g --defined-only "$object" | awk '{ sub(/^_/, "", $3) } $3 !~ /^(swa_[a-z0-9]|t_(product|fma))/ || $3 ~ /^swa__/' > $dir/out
    if [ -s $dir/out ]; then fail "an export that is not swa_*"; else pass; fi
    needs='^(_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__cpu_model|__cpu_features2|__cpu_indicator_init|mem(cpy|move|set|cmp)|strlen'
    needs="$needs|fmaf?|expf?|exp2f?|logf?|log2f?|powf?|sqrtf?|sin|cos|sincos|tan|tanhf?|floorf?|ceilf?|fmodf?|rintf?"
    needs="$needs|nearbyintf?|ldexpf?|frexpf?|l?lrint|GOMP_parallel|__kmpc_[a-z0-9_]+|omp_get_[a-z_]+)\$"
    nm -u "$object" | awk '{ print $NF }' | grep -vE "$needs" > $dir/out
    if [ -s $dir/out ]; then fail "a function that the library must not need"; else pass; fi
    # Constant tables of pointers lie in .data.rel.ro: the loader writes them once, nobody after it.
    nm -f sysv "$object" | awk -F '|' '$7 ~ /^ *(\.data|\.bss|\.tdata|\.tbss|\*COM)/ && $7 !~ /rel\.ro/' > $dir/out
    if [ -s $dir/out ]; then fail "a variable that can be written"; else pass; fi
else
    skip "no nm: exports and imports were not looked at"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
