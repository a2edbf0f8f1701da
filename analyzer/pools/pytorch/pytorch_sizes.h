// Size rounding of PyTorch's caching allocator. Pure functions.
#pragma once

#include "analyzer/pools/pytorch/pytorch_config.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace fragtrace::analyzer::pytorch {

inline constexpr std::uint64_t kMinBlockBytes = 512;
inline constexpr std::uint64_t kSmallSizeBytes = kMiB;  // requests up to this use the small pool
inline constexpr std::uint64_t kSmallSegmentBytes = 2 * kMiB;  // also the page of small segments
inline constexpr std::uint64_t kMinLargeAllocBytes = 10 * kMiB;
inline constexpr std::uint64_t kRoundLargeBytes = 2 * kMiB;
// Requests from this size on are refused.
inline constexpr std::uint64_t kAbsurdBytes = std::uint64_t{1} << 60;

// Rounds up to a multiple of P / divisions, where P is the next lower power of two.
std::uint64_t round_to_division(std::uint64_t size_bytes, std::uint64_t divisions);

// The block size for a request.
inline std::uint64_t round_request(const PytorchConfig& config,
                                   const PytorchRules& rules,
                                   std::uint64_t requested_bytes) {
    if (requested_bytes < kMinBlockBytes) {
        return kMinBlockBytes;
    }
    const int slot = std::clamp(static_cast<int>(std::bit_width(requested_bytes)) - 21,
                                0,
                                static_cast<int>(PytorchConfig::kRoundupSlots) - 1);
    const std::uint64_t divisions = config.roundup_divisions[static_cast<std::size_t>(slot)];
    if (divisions == 1 && rules.one_division_rounds_nothing && requested_bytes > kMinBlockBytes) {
        return requested_bytes;
    }
    if (divisions > 1 && requested_bytes / kMinBlockBytes >= divisions &&
        requested_bytes > kMinBlockBytes * divisions) {
        return round_to_division(requested_bytes, divisions);
    }
    return round_up(requested_bytes, kMinBlockBytes);
}

// Bytes to request from the driver if no cached block fits.
std::uint64_t segment_bytes(const PytorchConfig& config, std::uint64_t rounded_bytes);

// Bytes of address space of one expandable segment, a multiple of the page size.
std::uint64_t reservation_bytes(const PytorchConfig& config,
                                std::uint64_t total_bytes,
                                std::uint64_t page_bytes);

// Memory limit in bytes of a process with a memory fraction (per_process_memory_fraction or
// set_per_process_memory_fraction).
std::uint64_t limit_bytes(const PytorchRules& rules, double fraction, std::uint64_t total_bytes);

// Memory limit in bytes for throw_on_cudamalloc_oom. It uses the fraction in the settings, even if
// the program changed the fraction by a call. No release rounds it (seen on 2.12.0 to 2.15.0).
std::uint64_t rejection_bytes(const PytorchConfig& config, std::uint64_t total_bytes);

}  // namespace fragtrace::analyzer::pytorch
