# A header alone, from the checkout that this folder lies in:
#     vcpkg install swa --overlay-ports=examples/packaging/vcpkg
# A port in a registry fetches the tag instead:
#     vcpkg_from_github(OUT_SOURCE_PATH SOURCE_PATH REPO owner/swa REF "v${VERSION}" SHA512 ...)
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(VCPKG_BUILD_TYPE release)

file(INSTALL "${SOURCE_PATH}/swa.h" DESTINATION "${CURRENT_PACKAGES_DIR}/include")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
