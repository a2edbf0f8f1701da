// Checks plans in MiniMalloc's format.
#include "analyzer/replay/validation/plan_check.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

constexpr std::string_view kHeading = "id,lower,upper,size,offset\n";

PlanCheck checked(const std::string& lines, std::optional<std::uint64_t> capacity = {}) {
    const auto plan = check_plan(std::string(kHeading) + lines, "plan.csv", capacity);
    REQUIRE(plan.ok());
    return *plan;
}

TEST_CASE("a plan without overlaps is reported with its height and its load") {
    // b takes a's bytes at the time at which a ends, because lifetimes are half-open.
    const PlanCheck plan = checked("a,0,5,10,0\nb,5,9,10,0\r\nc,4,6,5,10\n\n");
    CHECK(plan.violation.empty());
    CHECK(plan.buffers == 3);
    CHECK(plan.height_bytes == 15);
    CHECK(plan.load_bytes == 15);
}

TEST_CASE("the overlap that comes first in time is named") {
    CHECK(checked("a,0,5,10,0\nb,4,9,10,9\nc,2,3,1,3\n").violation ==
          "buffer c (bytes 3 to 4) overlaps buffer a (bytes 0 to 10) at time 2");
    CHECK(checked("a,0,5,10,5\nb,4,9,6,0\n").violation ==
          "buffer b (bytes 0 to 6) overlaps buffer a (bytes 5 to 15) at time 4");
}

TEST_CASE("a plan above the capacity is a violation") {
    CHECK(checked("a,0,5,10,0\n", 10).violation.empty());
    CHECK(checked("a,0,5,10,1\n", 10).violation ==
          "the highest buffer ends at 11, the capacity is 10");
}

TEST_CASE("columns may be in any order, and extra columns are allowed") {
    const auto plan = check_plan("offset,size,note,id,upper,lower\n3,4,x,a,2,1\n", "p", {});
    REQUIRE(plan.ok());
    CHECK(plan->height_bytes == 7);
}

TEST_CASE("an invalid plan is refused with its line") {
    const auto message = [](std::string_view text) {
        const auto plan = check_plan(text, "plan.csv", {});
        REQUIRE_FALSE(plan.ok());
        CHECK(plan.error().code == ErrorCode::kInput);
        return plan.error().message;
    };
    CHECK(message("id,lower,upper,size\n") ==
          "plan.csv: line 1 must name the columns id,lower,upper,size,offset");
    const std::string why =
        " is no buffer: four whole numbers are needed, lower below upper, size above 0";
    for (const char* bad : {"a,0,5,10",
                            "a,0,5,10,x",
                            "a,0,5,-1,0",
                            "a,5,5,10,0",
                            "a,0,5,0,0",
                            "a,0,5,10,18446744073709551615",
                            "a,0,5,99999999999999999999,0"}) {
        CHECK(message(std::string(kHeading) + "b,0,1,1,0\n" + bad + "\n") ==
              "plan.csv: line 3" + why);
    }
}

}  // namespace
}  // namespace fragtrace::analyzer
