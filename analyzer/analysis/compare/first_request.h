// Finds where the requests of two runs first differ.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/trace/symbols.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// The first request at which the two sequences of requests of a device differ.
struct FirstRequest {
    DeviceId device = 0;
    std::uint64_t number = 0;              // 0 = the first; all earlier requests are equal
    std::optional<std::uint64_t> a_bytes;  // nullopt: the run made no further request
    std::optional<std::uint64_t> b_bytes;
    std::string a_label;
    std::string b_label;
    std::optional<std::uint64_t> a_ns;  // since the start of the trace; nullopt as for the bytes
    std::optional<std::uint64_t> b_ns;
};

// Compares two traces. Devices whose requests are the same in both have no entry.
std::vector<FirstRequest> first_requests(const Timeline& a,
                                         Symbolizer* a_symbols,
                                         const Timeline& b,
                                         Symbolizer* b_symbols);

}  // namespace fragtrace::analyzer
