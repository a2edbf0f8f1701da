// "Did you mean": what is near to a mistyped word, and what is not.
#include <fragtrace/suggestion.h>

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace fragtrace {
namespace {

const std::vector<std::string> kWords = {
    "report", "replay", "compare", "--json", "--html", "whatif"};

TEST_CASE("the edit distance counts insertions, removals, replacements and swaps") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("abc", "abc") == 0);
    CHECK(edit_distance("abc", "acb") == 1);
    CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("a mistyped word gets the nearest known one") {
    CHECK(did_you_mean("reprot", kWords) == "; did you mean 'report'?");
    CHECK(did_you_mean("--hmtl", kWords) == "; did you mean '--html'?");
    CHECK(did_you_mean("comapre", kWords) == "; did you mean 'compare'?");
    CHECK(did_you_mean("wha", kWords) == "; did you mean 'whatif'?");
}

TEST_CASE("a word that is near to nothing gets no suggestion") {
    CHECK(did_you_mean("", kWords).empty());
    CHECK(did_you_mean("x", kWords).empty());
    CHECK(did_you_mean("train.ftrace", kWords).empty());
    CHECK(did_you_mean("re", kWords).empty());
    CHECK(did_you_mean(std::string(5000, 'x'), kWords).empty());
}

}  // namespace
}  // namespace fragtrace
