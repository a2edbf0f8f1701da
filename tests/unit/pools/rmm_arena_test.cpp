// RMM's arenas: worked examples, one per line.
#include "tests/unit/pools/conformance.h"
#include "tests/unit/pools/worked_example.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

TEST_CASE("rmm-arena: requests up to 1 MiB use the stream's arena, larger ones the global one") {
    WorkedExample pool("rmm-arena", "arena_size:8MiB");
    // a: a superblock of 1 MiB for its stream. b: from the global arena. c: stream 1's next
    // superblock.
    CHECK(pool.calls("a@1=1MiB b@1=1048832 c@1=256 d@2=256 e@1=256") ==
          "a 0+0 grow, b 0+1048576, c 0+2097408, d 0+3145984, e 0+2097664");
}

TEST_CASE("rmm-arena: a request of exactly 1 MiB is served by its stream's arena") {
    WorkedExample pool("rmm-arena", "arena_size:8MiB");
    CHECK(pool.calls("a@1=1MiB -a b@2=1MiB") == "a 0+0 grow, b 0+1048576");
}

TEST_CASE("rmm-arena: freeing small blocks does not return their superblock") {
    WorkedExample pool("rmm-arena", "arena_size:8MiB");
    // The first MiB stays with stream 1, so stream 2 and the global arena continue after it.
    CHECK(pool.calls("a@1=256 -a b@2=256 c=2MiB d@1=512KiB") ==
          "a 0+0 grow, b 0+1048576, c 0+2097152, d 0+0");
}

TEST_CASE("rmm-arena: without room all superblocks are returned and empty ones joined") {
    WorkedExample pool("rmm-arena", "arena_size:4MiB");
    CHECK(pool.calls("a@1=1MiB b@2=1MiB -a -b x=4MiB") == "a 0+0 grow, b 0+1048576, x 0+0");
    // A superblock with a live block is not joined with others.
    WorkedExample held("rmm-arena", "arena_size:4MiB");
    CHECK(held.calls("a@1=1MiB b@2=256 -a x=4MiB y=2MiB z=1048832") ==
          "a 0+0 grow, b 0+1048576, x oom, y 0+2097152, z oom");
    // After that, partly used superblocks serve other streams.
    CHECK(held.calls("v@3=1MiB w@3=1048320") == "v 0+0, w 0+1048832");
}

TEST_CASE("rmm-arena: the global arena splits a superblock only if 1 MiB remains") {
    WorkedExample pool("rmm-arena", "arena_size:4MiB");
    // Block a leaves 512 KiB of its superblock, so a small request gets the whole superblock.
    CHECK(pool.calls("a=3584KiB b@1=256KiB c@2=256KiB") == "a 0+0 grow, b 0+3670016, c 0+3932160");
    CHECK(pool.calls("-a -b -c x=4MiB") == "x 0+0");
}

TEST_CASE("rmm-arena: large blocks merge in the global arena at once and are first fit") {
    WorkedExample pool("rmm-arena", "arena_size:16MiB");
    CHECK(pool.calls("a=4MiB b=2MiB c=3MiB d=2MiB -a -c x=3MiB") ==
          "a 0+0 grow, b 0+4194304, c 0+6291456, d 0+9437184, x 0+0");
    CHECK(pool.calls("-x -b y=9MiB") == "y 0+0");
}

TEST_CASE("rmm-arena: the arena reserves half of the free memory and never grows") {
    WorkedExample pool("rmm-arena", "", 64 * kMiB);
    CHECK(pool.calls("a=32MiB b=256") == "a 0+0 grow, b oom");
    CHECK(pool.segments() == "32");
}

TEST_CASE("rmm-arena keeps the rules of all pools under its settings") {
    check_conformance("rmm-arena", "arena_size:100%");
    check_conformance("rmm-arena", "arena_size:40MiB");
}

}  // namespace
}  // namespace fragtrace::analyzer
