// Events that should have a partner but have none. All are counted, the first ones described.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

class PairingDefects {
  public:
    explicit PairingDefects(Timeline* timeline) : timeline_(*timeline) {}

    // After a gap in recording, a missing partner may be due to the gap, until the next checkpoint.
    // Such defects are counted separately.
    void set_after_gap(bool after_gap) { after_gap_ = after_gap; }

    void over_live(EventIndex index, EventIndex former);
    void without_alloc(EventIndex index);

    // Call after the last event: adds the defects to the damage.
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
