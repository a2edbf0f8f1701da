#include "analyzer/analysis/metrics/memory_curve.h"

#include <algorithm>
#include <bit>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kFirstBinNs = 1024;
constexpr std::uint64_t kWidestBinNs = std::uint64_t{1} << 62;

void join_pairs(std::vector<std::uint64_t>* bins) {
    const std::size_t joined = (bins->size() + 1) / 2;
    for (std::size_t i = 0; i < joined; ++i) {
        const std::uint64_t first = (*bins)[2 * i];
        (*bins)[i] = 2 * i + 1 < bins->size() ? std::max(first, (*bins)[2 * i + 1]) : first;
    }
    bins->resize(joined);
}

}  // namespace

void MemoryCurveBuilder::add(std::uint64_t time_ns,
                             std::uint64_t reserved,
                             std::uint64_t allocated) {
    if (curve_.bin_ns == 0) {
        curve_.bin_ns = kFirstBinNs;
        curve_.reserved.push_back(0);
        curve_.allocated.push_back(0);
    }
    if (time_ns >= bin_begin_ns_ + curve_.bin_ns) {
        while (time_ns / curve_.bin_ns >= kMostBins && curve_.bin_ns < kWidestBinNs) {
            widen();
        }
        const std::size_t bin = std::min<std::uint64_t>(time_ns / curve_.bin_ns, kMostBins - 1);
        curve_.reserved.resize(std::max(curve_.reserved.size(), bin + 1), reserved_);
        curve_.allocated.resize(curve_.reserved.size(), allocated_);
        bin_begin_ns_ = (curve_.reserved.size() - 1) * curve_.bin_ns;
    }
    reserved_ = reserved;
    allocated_ = allocated;
    curve_.reserved.back() = std::max(curve_.reserved.back(), reserved);
    curve_.allocated.back() = std::max(curve_.allocated.back(), allocated);
}

void MemoryCurveBuilder::widen() {
    join_pairs(&curve_.reserved);
    join_pairs(&curve_.allocated);
    curve_.bin_ns *= 2;
}

MemoryCurve MemoryCurveBuilder::finished() const {
    MemoryCurve curve = curve_;
    if (curve.bin_ns != 0 &&
        (reserved_ < curve.reserved.back() || allocated_ < curve.allocated.back())) {
        coarsen(&curve, kMostBins - 1);
        curve.reserved.push_back(reserved_);
        curve.allocated.push_back(allocated_);
    }
    return curve;
}

void coarsen(MemoryCurve* curve, std::size_t bins) {
    while (curve->reserved.size() > bins) {
        join_pairs(&curve->reserved);
        join_pairs(&curve->allocated);
        curve->bin_ns *= 2;
    }
}

}  // namespace fragtrace::analyzer
