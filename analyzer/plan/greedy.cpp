#include "analyzer/plan/greedy.h"

#include <algorithm>
#include <numeric>

namespace fragtrace::analyzer {

std::vector<std::uint32_t> order_by(std::span<const Lifetime> lifetimes, BufferOrder order) {
    std::vector<std::uint32_t> indices(lifetimes.size());
    std::iota(indices.begin(), indices.end(), 0u);
    const auto key = [&](std::uint32_t i) {
        const Lifetime& buffer = lifetimes[i];
        const auto length = static_cast<double>(buffer.end - buffer.begin);
        switch (order) {
            case BufferOrder::kSize:
                return static_cast<double>(buffer.size_bytes);
            case BufferOrder::kArea:
                return static_cast<double>(buffer.size_bytes) * length;
            case BufferOrder::kLifetime:
                return length;
        }
        return 0.0;
    };
    std::stable_sort(indices.begin(), indices.end(), [&](std::uint32_t a, std::uint32_t b) {
        if (key(a) != key(b)) {
            return key(a) > key(b);
        }
        switch (order) {
            case BufferOrder::kSize:
                return lifetimes[a].begin < lifetimes[b].begin;
            case BufferOrder::kArea:
                return false;
            case BufferOrder::kLifetime:
                return lifetimes[a].size_bytes > lifetimes[b].size_bytes;
        }
        return false;
    });
    return indices;
}

std::uint64_t GreedyPlacer::place(const std::vector<std::uint32_t>& order,
                                  Fit fit,
                                  std::vector<std::uint64_t>* offsets) {
    std::fill(placed_.begin(), placed_.end(), 0);
    offsets->assign(lifetimes_.size(), 0);
    std::uint64_t height = 0;
    for (const std::uint32_t buffer : order) {
        const std::uint64_t size = lifetimes_[buffer].size_bytes;
        if (size == 0 || lifetimes_[buffer].begin >= lifetimes_[buffer].end) {
            continue;
        }
        taken_.clear();
        for (const std::uint32_t other : overlaps_.of(buffer)) {
            if (placed_[other] != 0) {
                const std::uint64_t begin = (*offsets)[other];
                taken_.push_back({begin, begin + lifetimes_[other].size_bytes});
            }
        }
        std::sort(taken_.begin(), taken_.end(), [](const Range& a, const Range& b) {
            return a.begin < b.begin;
        });
        std::uint64_t top = 0;
        std::uint64_t best_gap = ~std::uint64_t{0};
        std::uint64_t best = 0;
        for (const Range& range : taken_) {
            const std::uint64_t gap = range.begin > top ? range.begin - top : 0;
            if (gap >= size && gap < best_gap) {
                best_gap = gap;
                best = top;
                if (fit == Fit::kLowest) {
                    break;
                }
            }
            top = std::max(top, range.end);
        }
        (*offsets)[buffer] = best_gap == ~std::uint64_t{0} ? top : best;
        placed_[buffer] = 1;
        height = std::max(height, (*offsets)[buffer] + size);
    }
    return height;
}

}  // namespace fragtrace::analyzer
