#include "analyzer/report/page/page_bins.h"

#include <algorithm>
#include <utility>

namespace fragtrace::analyzer {

BinFiller::BinFiller(const BytesOverTime& others, std::uint64_t end_ns)
    : others_(others), end_ns_(end_ns), bins_(kPageBins) {
    for (PageBin& bin : bins_)
        bin.allocated_min = kPageUnknown;
}

void BinFiller::advance(std::uint64_t time_ns, const MemoryState& state) {
    time_ns = std::min(time_ns, end_ns_);
    // The memory of other users may change between two events of the sweep.
    while (next_other_ < others_.time_ns.size() && others_.time_ns[next_other_] <= time_ns) {
        hold(others_.time_ns[next_other_], state);
        ++next_other_;
    }
    hold(time_ns, state);
}

void BinFiller::hold(std::uint64_t until_ns, const MemoryState& state) {
    if (until_ns <= now_ns_) return;
    const double scale = static_cast<double>(kPageBins) / static_cast<double>(end_ns_);
    fill(
        static_cast<double>(now_ns_) * scale, static_cast<double>(until_ns) * scale, sample(state));
    now_ns_ = until_ns;
}

BinFiller::Sample BinFiller::sample(const MemoryState& state) const {
    Sample now{static_cast<double>(state.requested),
               static_cast<double>(state.active - state.pending),
               static_cast<double>(state.pending),
               static_cast<double>(state.reserved),
               static_cast<double>(state.releasable),
               next_other_ > 0 ? static_cast<double>(others_.bytes[next_other_ - 1]) : 0};
    const double free_bytes = std::max(0.0, now.reserved - now.allocated - now.pending);
    now.releasable = std::min(now.releasable, free_bytes);
    now.requested = std::min(now.requested, now.allocated);
    return now;
}

void BinFiller::fill(double begin, double end, const Sample& now) {
    const auto last =
        static_cast<std::size_t>(std::min(end, static_cast<double>(kPageBins) - 1e-9));
    for (auto i = static_cast<std::size_t>(begin); i <= last && i < bins_.size(); ++i) {
        const double left = std::max(begin, static_cast<double>(i));
        const double right = std::min(end, static_cast<double>(i + 1));
        if (right <= left) continue;
        const double weight = right - left;
        PageBin& bin = bins_[i];
        bin.requested += weight * now.requested;
        bin.internal += weight * (now.allocated - now.requested);
        bin.pending += weight * now.pending;
        bin.held +=
            weight * std::max(0.0, now.reserved - now.allocated - now.pending - now.releasable);
        bin.releasable += weight * now.releasable;
        bin.other += weight * now.other;
        const std::uint64_t allocated = to_count(now.allocated);
        bin.allocated_max = std::max(bin.allocated_max, allocated);
        bin.allocated_min = std::min(bin.allocated_min, allocated);
        bin.reserved_max = std::max(bin.reserved_max, to_count(now.reserved));
    }
}

std::vector<PageBin> BinFiller::take() {
    for (PageBin& bin : bins_) {
        if (bin.allocated_min == kPageUnknown) bin.allocated_min = 0;
    }
    return std::move(bins_);
}

}  // namespace fragtrace::analyzer
