// The best-fit pool, which others are compared with: worked examples, and the rules of all pools
// under its settings.
#include "tests/unit/pools/conformance.h"
#include "tests/unit/pools/worked_example.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

TEST_CASE("best-fit: the smallest sufficient hole is taken, the end of the heap last") {
    WorkedExample pool("best-fit", "grow_by:4KiB");
    CHECK(pool.calls("a=1024 b=512 c=1024 d=512 e=1536 f=100") ==
          "a 0+0 grow, b 0+1024, c 0+1536, d 0+2560, e 0+3072 grow, f 0+4608");
    CHECK(pool.calls("-a -c -e g=600 h=512 i=1000") == "g 0+0, h 0+1536, i 0+3072");
}

TEST_CASE("best-fit keeps the rules of all pools under its settings") {
    check_conformance("best-fit", "round_to:256,grow_by:64KiB");
}

}  // namespace
}  // namespace fragtrace::analyzer
