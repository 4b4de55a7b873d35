#!/bin/sh
# build.sh SOURCE PROGRAM [FLAGS] - by clang-cl, which takes itself for MSVC, against declarations of our own (string.h) and
# the libraries of MinGW.
set -e
here=$(dirname "$0") lib=/usr/x86_64-w64-mingw32/lib source=$1 program=$2
shift 2
gcc=$(dirname "$(x86_64-w64-mingw32-gcc -print-libgcc-file-name)")
cl=$(command -v clang-cl || command -v clang-cl-14)
include=$("$cl" --target=x86_64-pc-windows-msvc /clang:-print-resource-dir)/include
for one in "$source" "$here/start.c"; do
    "$cl" --target=x86_64-pc-windows-msvc /c /O2 /W3 /WX "$@" /GS- /Gs10000000 /clang:-ffreestanding /X -imsvc "$here" \
        -imsvc "$include" "$one" "/Fo$program.$(basename "$one").obj"
done
lld-link /subsystem:console /entry:start /nodefaultlib "/out:$program" "$program".*.obj $lib/libmsvcrt.a \
    $lib/libmingwex.a $lib/libmingw32.a "$gcc/libgcc.a" $lib/libkernel32.a
