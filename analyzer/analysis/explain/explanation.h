// What an out-of-memory message proves, what it leaves open, and where its numbers cannot be.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

struct BfcDump;
struct PytorchMessage;

struct Explanation {
    // A word for the whole:
    //   "contradictory"  the numbers cannot all be true: nothing follows from them
    //   "genuine"        more was needed than could have been had, however the pool was kept
    //   "limit"          the process's own limit refused
    //   "private_pools"  it would have fitted only with what private pools keep to themselves
    //   "fragmented"     enough was free, in pieces or places that could not serve the request
    //   "unclear"        the message does not tell
    std::string_view verdict;
    std::string sentence;
    std::vector<std::string> certain;         // follows from the numbers, beyond their rounding
    std::vector<std::string> unknown;         // cannot be told from the message
    std::vector<std::string> contradictions;  // of the numbers
};

Explanation explain(const PytorchMessage& message);
Explanation explain(const BfcDump& dump);

}  // namespace fragtrace::analyzer
