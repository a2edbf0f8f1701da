// Placement problems as CSV: they are read, errors name the line, and plans are written with
// offsets.
#include "analyzer/plan/csv.h"

#include <catch2/catch.hpp>

namespace fragtrace::analyzer {
namespace {

std::string message(std::string_view text) {
    const auto problem = read_problem(text, "x.csv");
    REQUIRE_FALSE(problem.ok());
    CHECK(problem.error().code == ErrorCode::kInput);
    return problem.error().message;
}

TEST_CASE("a problem is read with columns in any order and written with offsets") {
    const auto problem =
        read_problem("size,id,note,upper,lower\r\n4,b1,x,3,0\r\n\r\n5,b2,,9,3", "x.csv");
    REQUIRE(problem.ok());
    REQUIRE(problem->lifetimes.size() == 2);
    CHECK(problem->lifetimes[1].begin == 3);
    CHECK(problem->lifetimes[1].end == 9);
    CHECK(problem->lifetimes[1].size_bytes == 5);
    CHECK(plan_csv(*problem, {0, 7}) == "id,lower,upper,size,offset\nb1,0,3,4,0\nb2,3,9,5,7\n");
}

TEST_CASE("an error in a problem is reported with its line") {
    CHECK(message("") ==
          "x.csv: line 1: no column 'id' in the heading, which needs id,lower,upper,size");
    CHECK(message("id,lower,upper\n") ==
          "x.csv: line 1: no column 'size' in the heading, which needs id,lower,upper,size");
    const std::string heading = "id,lower,upper,size\na,0,1,1\n";
    CHECK(message(heading + "b,1,2\n") == "x.csv: line 3: 3 fields, the heading has 4");
    CHECK(message(heading + "b,1,2,-3\n") ==
          "x.csv: line 3: size is '-3', not a whole number from 0 to 2^64-1");
    CHECK(message(heading + "b,1,99999999999999999999,3\n") ==
          "x.csv: line 3: upper is '99999999999999999999', not a whole number from 0 to 2^64-1");
    CHECK(message(heading + "b,2,2,3\n") == "x.csv: line 3: lower (2) is not below upper (2)");
    CHECK(message(heading + "b,2,3,0\n") == "x.csv: line 3: size is 0");
    CHECK(message(heading + "\033[31mb,2,3,1\n") ==
          "x.csv: line 3: the id has a control character");
    CHECK(message(heading + "\nb,2,3,4611686018427387904\n") ==
          "x.csv: line 4: the sizes add up to more than 2^62 bytes");
}

}  // namespace
}  // namespace fragtrace::analyzer
