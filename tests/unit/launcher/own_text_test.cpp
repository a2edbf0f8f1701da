// What `fragtrace doctor --bundle` leaves out of its texts.
#include "launcher/own_text.h"

#include <catch2/catch.hpp>

#include <string>

namespace fragtrace::launcher {
namespace {

TEST_CASE("a text is hidden as a whole if one of its words is not known") {
    for (const char* text : {"bob",
                             "/home/bob",
                             "/data/acme corp/cuda-12",
                             "%h/home/bob",
                             "~bob/cache",
                             "4bob",
                             "GPU-01234567-89ab-cdef-0123-456789abcdef",
                             "expandable_segments:True,acme:1",
                             "5.15.0-1053-acme",
                             "on\x02 bob",
                             "\x01"}) {
        CHECK(hidden("It is " + own(text) + ".") == "It is <hidden>.");
    }
    CHECK(plain("It is " + own("bob") + '.') == "It is bob.");
    CHECK(plain(own("a\nb\x01\x02")) == "a\\nb\\u0001\\u0002");
}

TEST_CASE("numbers, units and words that many machines have stay") {
    for (const char* text : {"",
                             ".",
                             "0,1",
                             "20GiB",
                             "10%",
                             "/dev/shm",
                             "/usr/bin/python3",
                             "expandable_segments:True",
                             "roundup_power2_divisions:[256:1,512:2,>:4]",
                             "2.6.0+cu124",
                             "6.1.0-18-amd64"}) {
        CHECK(hidden(own(text)) == text);
    }
}

TEST_CASE("each marked text of a sentence is hidden by itself") {
    CHECK(hidden(own("bob") + " and " + own("eve") + own("x")) == "<hidden> and <hidden><hidden>");
    CHECK(hidden("") == "");  // NOLINT(readability-container-size-empty)
}

}  // namespace
}  // namespace fragtrace::launcher
