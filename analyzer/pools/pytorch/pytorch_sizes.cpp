#include "analyzer/pools/pytorch/pytorch_sizes.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fragtrace::analyzer::pytorch {

std::uint64_t round_to_division(std::uint64_t size_bytes, std::uint64_t divisions) {
    if (std::has_single_bit(size_bytes)) {
        return size_bytes;
    }
    const std::uint64_t floor = std::bit_floor(size_bytes);
    const auto shift = static_cast<int>(std::bit_width(divisions)) - 1;
    const std::uint64_t granule = shift < 64 ? floor >> shift : 0;
    return granule == 0 ? floor * 2 : round_up(size_bytes, granule);
}

std::uint64_t segment_bytes(const PytorchConfig& config, std::uint64_t rounded_bytes) {
    if (rounded_bytes <= kSmallSizeBytes) {
        return kSmallSegmentBytes;
    }
    if (rounded_bytes < kMinLargeAllocBytes) {
        return config.large_segment_size_bytes;
    }
    return round_up(rounded_bytes, kRoundLargeBytes);
}

std::uint64_t reservation_bytes(const PytorchConfig& config,
                                std::uint64_t total_bytes,
                                std::uint64_t page_bytes) {
    const std::uint64_t most = total_bytes + total_bytes / 8;
    std::uint64_t wanted = most;
    const PytorchReserve& reserve = config.expandable_segments_reserve;
    if (reserve.kind == PytorchReserve::Kind::kFraction) {
        const double size_bytes = reserve.fraction * static_cast<double>(total_bytes);
        wanted =
            size_bytes < static_cast<double>(most) ? static_cast<std::uint64_t>(size_bytes) : most;
    } else if (reserve.kind == PytorchReserve::Kind::kBytes) {
        wanted = std::min(most, reserve.size_bytes);
    }
    return std::max(page_bytes, round_up(wanted, page_bytes));
}

std::uint64_t limit_bytes(const PytorchRules& rules, double fraction, std::uint64_t total_bytes) {
    const double part = fraction * static_cast<double>(total_bytes);
    return static_cast<std::uint64_t>(rules.fraction_rounds_down ? part : std::round(part));
}

std::uint64_t rejection_bytes(const PytorchConfig& config, std::uint64_t total_bytes) {
    return static_cast<std::uint64_t>(config.per_process_memory_fraction *
                                      static_cast<double>(total_bytes));
}

}  // namespace fragtrace::analyzer::pytorch
