#!/usr/bin/env bash
# install.sh - the compilers, emulators and checkers that tests/check uses, by apt-get, if this is root or sudo asks no
# password, and the packages can be reached. Nothing here is required: what stays missing is named by the script that
# wanted it. One line per package that was not there; the last line is `N passed, N failed, N skipped`.
set -u
. "$(dirname "$0")/left.sh"
# gcc-multilib is absent on purpose: Debian has it conflict with the cross compilers, and i686-linux-gnu-gcc does more.
packages="gcc g++ make python3 clang llvm libclang-rt-dev libomp-dev valgrind
    gcc-i686-linux-gnu libc6-dev-i386-cross gcc-aarch64-linux-gnu libc6-dev-arm64-cross
    gcc-arm-linux-gnueabihf libc6-dev-armhf-cross gcc-riscv64-linux-gnu libc6-dev-riscv64-cross
    gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user musl-tools gcc-mingw-w64-x86-64 wine64 tcc
    cmake pkg-config wasi-libc lld libclang-rt-dev-wasm32 nodejs
    openmpi-bin libopenmpi-dev chromium"
passed=0 skipped=0 wanted= as_root=
export DEBIAN_FRONTEND=noninteractive
[ "$(id -u)" = 0 ] || as_root="sudo -n DEBIAN_FRONTEND=noninteractive"

have() { dpkg-query -W -f '${Status}' "$1" 2> /dev/null | grep -q 'ok installed'; }
get() { timeout "$(within 900)" $as_root apt-get install -y -qq --no-install-recommends "$@" > /dev/null 2>&1; }

for name in $packages; do
    if have "$name"; then passed=$((passed + 1)); else wanted="$wanted $name"; fi
done
# All at once, which is quick; one by one if some cannot be had.
if [ -n "$wanted" ] && command -v apt-get > /dev/null; then
    timeout "$(within 180)" $as_root apt-get update -qq > /dev/null 2>&1
    get $wanted || for name in $wanted; do have "$name" || [ "$(left)" -lt 3 ] || get "$name"; done
fi
for name in $wanted; do
    if have "$name"; then
        printf '%-28s installed\n' "$name"
        passed=$((passed + 1))
    else
        printf '%-28s SKIPPED: not here, and it could not be installed\n' "$name"
        skipped=$((skipped + 1))
    fi
done
echo "$passed passed, 0 failed, $skipped skipped"
