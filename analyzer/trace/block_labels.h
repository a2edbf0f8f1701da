// The program's labels of blocks, as part of the origin of their allocation.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <map>

namespace fragtrace::analyzer {

// Changes origins of events. Events with the same stacks, thread and label share an origin.
class BlockLabeler {
  public:
    // The timeline must outlive this object.
    explicit BlockLabeler(Timeline* timeline) : timeline_(*timeline) {}

    // `text`: the N of a fact "text.N".
    void label(EventIndex event, std::uint32_t text);

  private:
    Timeline& timeline_;
    std::map<Origin, OriginId> origins_;
};

// Applies all kBlockLabel events of a timeline: each one labels the live block at its address. The
// last label of a block counts, for its whole life.
void label_blocks(Timeline* timeline);

}  // namespace fragtrace::analyzer
