// Memory over time in kPageBins bins, from the series of an analysis and from the page's own sweep
// where the series has nothing to say.
#pragma once

#include "analyzer/report/page_data.h"
#include "analyzer/report/page_overview.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

// What the sweep knows at a moment.
struct MemoryState {
    std::uint64_t requested = 0;
    std::uint64_t active = 0;
    std::uint64_t pending = 0;
    std::uint64_t reserved = 0;
    std::uint64_t releasable = 0;
};

class BinFiller {
  public:
    BinFiller(const PageSeries& series, std::uint64_t end_ns);

    // `state` held from the last call's time until `time_ns`.
    void advance(std::uint64_t time_ns, const MemoryState& state);
    std::vector<PageBin> take();

  private:
    struct Sample {
        double requested, allocated, pending, reserved, releasable, other;
    };

    void hold(std::uint64_t until_ns, const MemoryState& state);
    [[nodiscard]] Sample sample(const MemoryState& state) const;
    void fill(double begin, double end, const Sample& sample);

    const PageSeries& series_;
    std::uint64_t end_ns_;
    std::uint64_t now_ns_ = 0;
    std::size_t next_sample_ = 0;  // first of the series after now_ns_
    std::vector<PageBin> bins_;
};

}  // namespace fragtrace::analyzer
