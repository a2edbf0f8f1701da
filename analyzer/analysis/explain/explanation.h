// Explains an out-of-memory message: what it proves, what it leaves open, and which numbers are
// impossible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

struct BfcDump;
struct PytorchMessage;

struct Explanation {
    // One word for the whole message:
    //   "contradictory"  the numbers cannot all be true: nothing follows from them
    //   "genuine"        not enough memory, even without fragmentation
    //   "limit"          the process's own limit refused the request
    //   "private_pools"  it would have fitted only with the memory cached by private pools
    //   "fragmented"     enough was free, but in pieces or places that could not serve the request
    //   "unclear"        the message does not say
    std::string_view verdict;
    std::string sentence;
    std::vector<std::string> certain;         // follows from the numbers, despite their rounding
    std::vector<std::string> unknown;         // cannot be known from the message
    std::vector<std::string> contradictions;  // between the numbers
};

Explanation explain(const PytorchMessage& message);
Explanation explain(const BfcDump& dump);

}  // namespace fragtrace::analyzer
