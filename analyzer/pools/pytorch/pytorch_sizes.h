// Sizes as PyTorch's caching allocator rounds them. Pure functions.
#pragma once

#include "analyzer/pools/pytorch/pytorch_config.h"

#include <cstdint>

namespace fragtrace::analyzer::pytorch {

inline constexpr std::uint64_t kMinBlockBytes = 512;
inline constexpr std::uint64_t kSmallSizeBytes = kMiB;         // up to this: small pool
inline constexpr std::uint64_t kSmallSegmentBytes = 2 * kMiB;  // also the page of small segments
inline constexpr std::uint64_t kMinLargeAllocBytes = 10 * kMiB;
inline constexpr std::uint64_t kRoundLargeBytes = 2 * kMiB;
inline constexpr std::uint64_t kAbsurdBytes = std::uint64_t{1} << 60;  // refused at once

// The block size for a request.
std::uint64_t round_request(const PytorchConfig& config,
                            const PytorchRules& rules,
                            std::uint64_t requested_bytes);

// What the driver is asked for when no block serves.
std::uint64_t segment_bytes(const PytorchConfig& config, std::uint64_t rounded_bytes);

// Address space of one expandable segment, in whole pages.
std::uint64_t reservation_bytes(const PytorchConfig& config,
                                std::uint64_t total_bytes,
                                std::uint64_t page_bytes);

// What a process may have of a card at a memory fraction: per_process_memory_fraction, or
// set_per_process_memory_fraction.
std::uint64_t limit_bytes(const PytorchRules& rules, double fraction, std::uint64_t total_bytes);

// What throw_on_cudamalloc_oom lets a process have: by the fraction in the settings, whatever the
// program has set since, and without rounding in any release (seen on 2.12.0 to 2.15.0).
std::uint64_t rejection_bytes(const PytorchConfig& config, std::uint64_t total_bytes);

}  // namespace fragtrace::analyzer::pytorch
