# A header alone, from the checkout that this folder lies in:
#     vcpkg install swa --overlay-ports=examples/packaging/vcpkg
# vcpkg hashes this folder and not the header: after a change of it, `vcpkg remove swa` and --binarysource=clear.
# Last run with vcpkg-tool f9eb9c63d and the scripts of vcpkg 127402f1c7 (August 2026), 2026-11-22.
# A port in a registry fetches the tag instead:
#     vcpkg_from_github(OUT_SOURCE_PATH SOURCE_PATH REPO owner/swa REF "v${VERSION}" SHA512 ...)
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(VCPKG_BUILD_TYPE release)
set(VCPKG_FIXUP_ELF_RPATH OFF) # no ELF here: else vcpkg fetches patchelf to ask it about `usage`

file(INSTALL "${SOURCE_PATH}/swa.h" DESTINATION "${CURRENT_PACKAGES_DIR}/include")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
