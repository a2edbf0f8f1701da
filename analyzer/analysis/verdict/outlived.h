// Finds whether a block outlived the phase in which it was allocated, and by how many phases.
#pragma once

#include "analyzer/model/phase_index.h"

#include <cstdint>

namespace fragtrace::analyzer {

struct Outlived {
    std::uint32_t phase = PhaseIndex::kNone;  // the phase in which the block was allocated
    bool over = false;                        // the phase had ended
    std::uint64_t again = 0;         // phases of the same name, kind and thread that began since
    std::uint64_t phases_since = 0;  // phases of its thread, no deeper, that began since
};

// For a block that event `born` allocated and that is live at event `until`. Linear in the number
// of phases.
Outlived outlived_phase(const Timeline& timeline,
                        const PhaseIndex& phases,
                        EventIndex born,
                        EventIndex until);

}  // namespace fragtrace::analyzer
