// RMM's arenas: worked examples, one per line.
#include "tests/unit/pools/conformance.h"
#include "tests/unit/pools/worked_example.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

TEST_CASE("rmm-arena: up to 1 MiB a stream's own arena serves, above that the global one") {
    WorkedExample pool("rmm-arena", "arena_size:8MiB");
    // a: a superblock of 1 MiB of its own; b: global, from the rest; c: stream 1's next superblock.
    CHECK(pool.calls("a@1=1MiB b@1=1048832 c@1=256 d@2=256 e@1=256") ==
          "a 0+0 grow, b 0+1048576, c 0+2097408, d 0+3145984, e 0+2097664");
}

TEST_CASE("rmm-arena: a request of just 1 MiB is served by its stream's own arena") {
    WorkedExample pool("rmm-arena", "arena_size:8MiB");
    CHECK(pool.calls("a@1=1MiB -a b@2=1MiB") == "a 0+0 grow, b 0+1048576");
}

TEST_CASE("rmm-arena: freed small blocks do not bring superblocks back") {
    WorkedExample pool("rmm-arena", "arena_size:8MiB");
    // The first MiB stays stream 1's, so stream 2 and the global arena go on behind it.
    CHECK(pool.calls("a@1=256 -a b@2=256 c=2MiB d@1=512KiB") ==
          "a 0+0 grow, b 0+1048576, c 0+2097152, d 0+0");
}

TEST_CASE("rmm-arena: without room all superblocks come back, empty ones are joined") {
    WorkedExample pool("rmm-arena", "arena_size:4MiB");
    CHECK(pool.calls("a@1=1MiB b@2=1MiB -a -b x=4MiB") == "a 0+0 grow, b 0+1048576, x 0+0");
    // A superblock with one live block stays apart.
    WorkedExample held("rmm-arena", "arena_size:4MiB");
    CHECK(held.calls("a@1=1MiB b@2=256 -a x=4MiB y=2MiB z=1048832") ==
          "a 0+0 grow, b 0+1048576, x oom, y 0+2097152, z oom");
    // Partly used superblocks serve other streams after that.
    CHECK(held.calls("v@3=1MiB w@3=1048320") == "v 0+0, w 0+1048832");
}

TEST_CASE("rmm-arena: a superblock of the global arena is split only if 1 MiB is left") {
    WorkedExample pool("rmm-arena", "arena_size:4MiB");
    // 512 KiB are left behind a, in its superblock: a small request takes all of that superblock.
    CHECK(pool.calls("a=3584KiB b@1=256KiB c@2=256KiB") == "a 0+0 grow, b 0+3670016, c 0+3932160");
    CHECK(pool.calls("-a -b -c x=4MiB") == "x 0+0");
}

TEST_CASE("rmm-arena: large blocks are joined within the global arena at once, first fit") {
    WorkedExample pool("rmm-arena", "arena_size:16MiB");
    CHECK(pool.calls("a=4MiB b=2MiB c=3MiB d=2MiB -a -c x=3MiB") ==
          "a 0+0 grow, b 0+4194304, c 0+6291456, d 0+9437184, x 0+0");
    CHECK(pool.calls("-x -b y=9MiB") == "y 0+0");
}

TEST_CASE("rmm-arena: the arena never grows, half of the free memory is taken") {
    WorkedExample pool("rmm-arena", "", 64 * kMiB);
    CHECK(pool.calls("a=32MiB b=256") == "a 0+0 grow, b oom");
    CHECK(pool.segments() == "32");
}

TEST_CASE("rmm-arena conforms with its settings") {
    check_conformance("rmm-arena", "arena_size:100%");
    check_conformance("rmm-arena", "arena_size:40MiB");
}

}  // namespace
}  // namespace fragtrace::analyzer
