// Events that cannot be paired though they should: counted, the first ones told.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

class PairingDefects {
  public:
    explicit PairingDefects(Timeline* timeline) : timeline_(*timeline) {}

    // Behind a gap in recording something was not seen: no more can be said, until a checkpoint.
    void set_after_gap(bool after_gap) { after_gap_ = after_gap; }

    void over_live(EventIndex index, EventIndex former);
    void without_alloc(EventIndex index);

    // After the last event: adds them to the damage.
    void finish();

  private:
    Timeline& timeline_;
    bool after_gap_ = false;
    std::uint64_t frees_without_alloc_ = 0;
    std::uint64_t allocs_over_live_ = 0;
    std::uint64_t after_gap_count_ = 0;
    std::vector<std::string> notes_;
};

}  // namespace fragtrace::analyzer
