// Memory over time in kPageBins bins, from the page's own sweep and what others have of the device.
#pragma once

#include "analyzer/report/page/page_data.h"
#include "analyzer/report/page/page_overview.h"

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
    BinFiller(const PageOthers& others, std::uint64_t end_ns);

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

    const PageOthers& others_;
    std::uint64_t end_ns_;
    std::uint64_t now_ns_ = 0;
    std::size_t next_other_ = 0;  // first of others_ after now_ns_
    std::vector<PageBin> bins_;
};

}  // namespace fragtrace::analyzer
