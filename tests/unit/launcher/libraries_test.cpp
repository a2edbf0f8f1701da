#include "launcher/libraries.h"

#include <catch2/catch.hpp>

using namespace fragtrace::launcher;

TEST_CASE("our libraries come before the user's in LD_PRELOAD") {
    CHECK(preload_list({"/p/libfragtrace.so", "/p/libcudart.so"}, "") ==
          "/p/libfragtrace.so:/p/libcudart.so");
    CHECK(preload_list({"/p/libfragtrace.so"}, "/u/a.so:b.so /u/c.so") ==
          "/p/libfragtrace.so:/u/a.so:b.so:/u/c.so");
    CHECK(preload_list({"/p/libfragtrace.so"}, " : ") == "/p/libfragtrace.so");
}

TEST_CASE("an address sanitizer's runtime and torch_memory_saver stay first in LD_PRELOAD") {
    CHECK(preload_list({"/p/libfragtrace.so"}, "/u/a.so:/usr/lib/libasan.so.8") ==
          "/usr/lib/libasan.so.8:/p/libfragtrace.so:/u/a.so");
    CHECK(preload_list({"/p/libfragtrace.so"}, "libclang_rt.asan-x86_64.so") ==
          "libclang_rt.asan-x86_64.so:/p/libfragtrace.so");
    CHECK(preload_list({"/p/libfragtrace.so"},
                       "/u/a.so:/s/torch_memory_saver_hook_mode_preload.so") ==
          "/s/torch_memory_saver_hook_mode_preload.so:/p/libfragtrace.so:/u/a.so");
    CHECK(preload_list({"/p/libfragtrace.so"}, "/libasan.so.8/other.so") ==
          "/p/libfragtrace.so:/libasan.so.8/other.so");
}

TEST_CASE("the user's sanitizer options come last, so they win") {
    CHECK(sanitizer_options("") == "verify_asan_link_order=0");
    CHECK(sanitizer_options("detect_leaks=0") == "verify_asan_link_order=0:detect_leaks=0");
}
