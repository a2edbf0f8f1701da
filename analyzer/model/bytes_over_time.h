// An amount of memory that changes over time.
#pragma once

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// Columns of equal length, ascending time. A value is valid until the next one; before the first
// one it is 0. The owner gives the unit of the times.
struct BytesOverTime {
    std::vector<std::uint64_t> time_ns;
    std::vector<std::uint64_t> bytes;

    // Adds the value from this time on. Times must ascend; an unchanged value is not added again.
    void set(std::uint64_t now_ns, std::uint64_t now_bytes) {
        if (now_bytes != (bytes.empty() ? 0 : bytes.back())) {
            time_ns.push_back(now_ns);
            bytes.push_back(now_bytes);
        }
    }
};

}  // namespace fragtrace::analyzer
