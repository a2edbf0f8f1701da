// What became of the phase that a block was born in while the block lived on.
#pragma once

#include "analyzer/model/phase_index.h"

#include <cstdint>

namespace fragtrace::analyzer {

struct Outlived {
    std::uint32_t phase = PhaseIndex::kNone;  // that the block was born in
    bool over = false;                        // it had ended before
    std::uint64_t again = 0;                  // phases of its name and thread that began since
    std::uint64_t phases_since = 0;  // phases of its thread that began since, no deeper than it
};

// Of a block that event `born` allocated and that is there at event `until`. Linear in the number
// of phases.
Outlived outlived_phase(const Timeline& timeline,
                        const PhaseIndex& phases,
                        EventIndex born,
                        EventIndex until);

}  // namespace fragtrace::analyzer
