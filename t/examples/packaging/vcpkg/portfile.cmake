# A header alone. SWA_SOURCE names a local checkout; a port in a registry fetches the tag instead:
#     vcpkg_from_github(OUT_SOURCE_PATH SOURCE_PATH REPO owner/swa REF "v${VERSION}" SHA512 ...)
set(SOURCE_PATH "$ENV{SWA_SOURCE}")
if(NOT EXISTS "${SOURCE_PATH}/swa.h")
    message(FATAL_ERROR "SWA_SOURCE must name a checkout of swa.h")
endif()
set(VCPKG_BUILD_TYPE release)

file(INSTALL "${SOURCE_PATH}/swa.h" DESTINATION "${CURRENT_PACKAGES_DIR}/include")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
