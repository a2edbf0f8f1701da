// Blocks and segments of one device with their lives, for the page.
#pragma once

#include "analyzer/replay/script.h"
#include "analyzer/report/page_stacks.h"

#include <cstdint>
#include <unordered_map>

namespace fragtrace::analyzer {

// Allocating event -> index into PageDevice::blocks.
using BlockIndex = std::unordered_map<EventIndex, std::uint32_t>;

// Fills blocks, segments, streams and the markers that the events themselves give.
BlockIndex add_memory(const Timeline& timeline,
                      const ReplayScript& script,
                      PageStacks* stacks,
                      PageDevice* page);

}  // namespace fragtrace::analyzer
