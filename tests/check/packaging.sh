#!/usr/bin/env bash
# packaging.sh - the library reached in every way it is offered, each from local files in a folder of its own: make
# install with pkg-config, make dist and its hash, CMake's FetchContent, the vcpkg port and the Conan recipe. vcpkg (with
# VCPKG_ROOT) and Conan run where they are in PATH, offline, with caches of their own. Neither is in Debian: without them the
# recipes run as they are, on stand-ins of the few commands of those tools that they call.
# What could not run is named with the word SKIPPED. The last line is `N passed, N failed, N skipped`.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD dir=$PWD/build/packaging passed=0 failed=0 skipped=0
use=$root/examples/packaging/cmake/use.c
rm -rf "$dir"
mkdir -p "$dir"

report() {    # NAME CODE LOG
    if [ "$2" -eq 0 ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "FAILED: $1"
        tail -n 20 "$3"
    fi
}
skip() {
    echo "SKIPPED: $1"
    skipped=$((skipped + 1))
}
# A program against the header in INCLUDE alone, with whatever FLAGS a tool says.
builds() {    # INCLUDE FLAGS...
    local include=$1
    shift
    printf '#define SWA_IMPLEMENTATION\n#include "swa.h"\n' > "$dir/impl.c"
    cc -O0 -DSWA_NO_SIMD -I"$include" "$dir/impl.c" "$use" -o "$dir/use" "$@" && "$dir/use"
}
version=$(sed -n 's/^#define SWA_VERSION_STRING *"\(.*\)".*/\1/p' swa.h)
same_version() {    # every recipe names the header's version
    [ -n "$version" ] && grep -q "\"version\": \"$version\"" examples/packaging/vcpkg/vcpkg.json &&
        grep -q "version = \"$version\"" examples/packaging/conan/conanfile.py && grep -q "^   $version " swa.h
}
installed() {
    make -s install PREFIX="$dir/prefix" && cmp swa.h "$dir/prefix/include/swa.h" &&
        builds "$(PKG_CONFIG_PATH=$dir/prefix/share/pkgconfig pkg-config --variable=includedir swa)" \
               $(PKG_CONFIG_PATH=$dir/prefix/share/pkgconfig pkg-config --libs swa)
}
distributed() {
    make -s dist && cd build/dist && sha256sum -c swa.h.sha256 && cmp swa.h "$root/swa.h"
}
fetched() {
    cmake -S "$root/examples/packaging/cmake" -B "$dir/cmake" -DCMAKE_C_FLAGS=-DSWA_NO_SIMD &&
        cmake --build "$dir/cmake" && "$dir/cmake/use"
}
stand_in_vcpkg() {
    cat > "$dir/vcpkg.cmake" << 'EOF'
function(vcpkg_install_copyright)
    cmake_parse_arguments(arg "" "" "FILE_LIST" ${ARGN})
    file(INSTALL ${arg_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}" RENAME copyright)
endfunction()
include("${PORTFILE}")
EOF
    cmake -DPORT=swa -DCURRENT_PACKAGES_DIR="$dir/vcpkg" \
        -DPORTFILE="$root/examples/packaging/vcpkg/portfile.cmake" -P "$dir/vcpkg.cmake" &&
        [ -s "$dir/vcpkg/share/swa/copyright" ] && [ -s "$dir/vcpkg/share/swa/usage" ] && builds "$dir/vcpkg/include" -lm
}
stand_in_conan() {
    mkdir -p "$dir/stand-in/conan/tools"
    echo 'class ConanFile: pass' > "$dir/stand-in/conan/__init__.py"
    : > "$dir/stand-in/conan/tools/__init__.py"
    cat > "$dir/stand-in/conan/tools/files.py" << 'EOF'
import os, shutil
def copy(conanfile, pattern, src, dst):
    os.makedirs(dst, exist_ok=True)
    shutil.copy(os.path.join(src, pattern), dst)
EOF
    cat > "$dir/create.py" << 'EOF'
import sys, types
sys.path[:0] = [sys.argv[1] + "/stand-in", sys.argv[2] + "/examples/packaging/conan"]
import conanfile
recipe = conanfile.Swa()
recipe.recipe_folder = sys.argv[2] + "/examples/packaging/conan"
recipe.export_sources_folder = recipe.source_folder = sys.argv[1] + "/conan/source"
recipe.package_folder = sys.argv[1] + "/conan/package"
recipe.settings = types.SimpleNamespace(get_safe=lambda name: "Linux")
recipe.cpp_info = types.SimpleNamespace(system_libs=[])
recipe.export_sources()
recipe.package()
recipe.package_info()
print(" ".join("-l" + lib for lib in recipe.cpp_info.system_libs))
EOF
    local flags
    flags=$(python3 "$dir/create.py" "$dir" "$root") && [ -s "$dir/conan/package/licenses/LICENSE" ] &&
        builds "$dir/conan/package/include" $flags
}
# Conan's test_package builds and runs use.c with what the package says; what pkg-config would say is looked at too.
real_conan() {
    export CONAN_HOME=$dir/conan-home
    local package=$root/examples/packaging/conan
    local to=("-c" "tools.cmake.cmake_layout:test_folder=$dir/conan-test"
        "-c" 'tools.build:cflags=["-DSWA_NO_SIMD", "-O0"]')
    conan profile detect && conan remote disable '*' && conan create "$package" "${to[@]}" &&
        conan test "$package/test_package" "swa/$version" "${to[@]}" &&
        conan install --requires="swa/$version" -g PkgConfigDeps -of "$dir/conan-pc" &&
        builds "$(PKG_CONFIG_PATH=$dir/conan-pc pkg-config --variable=includedir swa)" \
               $(PKG_CONFIG_PATH=$dir/conan-pc pkg-config --libs swa)
}
# Installed from the overlay, then used by a project whose CMakeLists.txt ends as the port's `usage` says.
real_vcpkg() {
    export VCPKG_FORCE_SYSTEM_BINARIES=1 VCPKG_DISABLE_METRICS=1 VCPKG_DEFAULT_BINARY_CACHE=$dir/vcpkg-archives
    mkdir -p "$dir/vcpkg-archives" "$dir/vcpkg-use"
    cat > "$dir/vcpkg-use/CMakeLists.txt" << EOF
cmake_minimum_required(VERSION 3.14)
project(uses_swa C)
file(WRITE "\${CMAKE_CURRENT_BINARY_DIR}/swa.c" "#define SWA_IMPLEMENTATION\n#include <swa.h>\n")
add_executable(main "$use" "\${CMAKE_CURRENT_BINARY_DIR}/swa.c")
EOF
    sed -n '/find_path/,$s/^    //p' examples/packaging/vcpkg/usage >> "$dir/vcpkg-use/CMakeLists.txt"
    (cd "$dir" && vcpkg install swa --overlay-ports="$root/examples/packaging/vcpkg" --no-print-usage \
        --x-install-root="$dir/vcpkg-installed" --x-buildtrees-root="$dir/vcpkg-build" \
        --x-packages-root="$dir/vcpkg-packages" --downloads-root="$dir/vcpkg-downloads") &&
        cmake -S "$dir/vcpkg-use" -B "$dir/vcpkg-use/build" -DCMAKE_C_FLAGS="-DSWA_NO_SIMD -O0" \
            -DVCPKG_INSTALLED_DIR="$dir/vcpkg-installed" -DVCPKG_MANIFEST_MODE=OFF \
            -DCMAKE_TOOLCHAIN_FILE="$VCPKG_ROOT/scripts/buildsystems/vcpkg.cmake" &&
        cmake --build "$dir/vcpkg-use/build" && "$dir/vcpkg-use/build/main"
}
step() {      # NAME FUNCTION TOOL...
    local name=$1 function=$2 tool
    shift 2
    for tool; do
        command -v "$tool" > /dev/null || { skip "$name: no $tool here"; return; }
    done
    ("$function") > "$dir/$function.log" 2>&1
    report "$name" $? "$dir/$function.log"
}
step "one version everywhere" same_version
step "make install, pkg-config" installed pkg-config
step "make dist" distributed sha256sum
step "CMake FetchContent" fetched cmake
if [ -n "${VCPKG_ROOT:-}" ] && command -v vcpkg > /dev/null; then step "vcpkg port" real_vcpkg cmake; else
    skip "real vcpkg: not in PATH, or no VCPKG_ROOT; its port runs on a stand-in"
    step "vcpkg port (stand-in)" stand_in_vcpkg cmake
fi
if command -v conan > /dev/null; then step "Conan recipe" real_conan cmake pkg-config; else
    skip "real conan: not in PATH; its recipe runs on a stand-in"
    step "Conan recipe (stand-in)" stand_in_conan python3
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
