// Symbols of loaded objects: the same as the dynamic linker finds.
#include "system/loaded_objects.h"

#include <catch2/catch.hpp>

#include <dlfcn.h>
#include <sstream>
#include <string>

using namespace fragtrace::preload;

TEST_CASE("of several versions of a function the one that dlsym() finds") {
    std::istringstream paths(FT_VERSIONED_LIBRARIES);
    int libraries = 0;
    for (std::string path; std::getline(paths, path, ':'); ++libraries) {
        CAPTURE(path);
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        REQUIRE(library != nullptr);
        link_map* map = nullptr;
        REQUIRE(dlinfo(library, RTLD_DI_LINKMAP, &map) == 0);
        bool indirect = true;
        void* const newest = defined_symbol(map, "versioned_answer", &indirect);
        CHECK(newest == dlsym(library, "versioned_answer"));
        CHECK(newest == dlvsym(library, "versioned_answer", "V2"));
        CHECK_FALSE(indirect);
        void* const only = defined_symbol(map, "only_old_answer", &indirect);
        CHECK(only == dlvsym(library, "only_old_answer", "V1"));
        REQUIRE(only != nullptr);
        CHECK(newest != dlvsym(library, "versioned_answer", "V1"));
        dlclose(library);
    }
    CHECK(libraries == 2);
}
