"""swa.h as a Conan 2 package: a header alone. `conan create .` in this folder packages the checkout it lies in, and
builds test_package with what a user of the package gets. Last run with Conan 2.9.0-dev (814cbf12), 2026-11-22."""
import os

from conan import ConanFile
from conan.tools.files import copy


class Swa(ConanFile):
    name = "swa"
    version = "0.9.0"
    license = "MIT OR Unlicense"
    description = "Sliding-window attention on CPU: ring KV cache, chunked prefill, decode and MLA in one C99 header"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"    # package_info asks for the first
    no_copy_source = True

    def export_sources(self):
        for name in ("swa.h", "LICENSE"):
            copy(self, name, os.path.join(self.recipe_folder, "..", "..", ".."), self.export_sources_folder)

    def package(self):
        copy(self, "swa.h", self.source_folder, os.path.join(self.package_folder, "include"))
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_id(self):
        self.info.clear()    # one package for all settings

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        if self.settings.get_safe("os") in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["m"]
