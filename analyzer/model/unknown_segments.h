// Inputs that list the blocks of a pool, but not the memory that the pool reserved
// (analyzer/imports): no segments, and with them no holes and no driver calls.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/model/event.h"

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>

namespace fragtrace::analyzer {

// On kBlockAlloc, kBlockFree and kBlockOutOfMemory: the segment of the block is not known. No
// recorder writes it. RecordedState then gives each block a stand-in segment of the block's size,
// so that reserved memory means nothing.
inline constexpr std::uint8_t kFlagSegmentUnknown = 1;

inline bool is_without_segment(const Event& event) {
    return (event.flags & kFlagSegmentUnknown) != 0 &&
           (event.kind == EventKind::kBlockAlloc || event.kind == EventKind::kBlockFree ||
            event.kind == EventKind::kBlockOutOfMemory);
}

// The fact of such an input.
inline constexpr const char* kReservedFact = "import.reserved";

inline bool shows_reserved(const std::map<std::string, std::string>& facts) {
    return !facts.contains(kReservedFact);
}

// The fact of an input that does not show all failed requests: a count of 0 means nothing.
inline constexpr const char* kFailuresFact = "import.failed_requests";

inline bool shows_failures(const std::map<std::string, std::string>& facts) {
    return !facts.contains(kFailuresFact);
}

// The key of the fact with the peak of reserved memory on a device, if such an input reports it.
inline std::string reported_reserved_fact(unsigned device) {
    return "import.peak_reserved." + std::to_string(device);
}

// kUnknown64 = not reported.
inline std::uint64_t reported_reserved(const std::map<std::string, std::string>& facts,
                                       unsigned device) {
    const auto found = facts.find(reported_reserved_fact(device));
    return found == facts.end() ? kUnknown64 : std::strtoull(found->second.c_str(), nullptr, 10);
}

}  // namespace fragtrace::analyzer
