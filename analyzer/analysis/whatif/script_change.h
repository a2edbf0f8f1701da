// A script as it would be had the program been changed: the cache emptied at given places, some
// blocks asked for first, or from a pool of their own.
//
// Pure: the recorded script is not touched. Safe to call from many threads.
#pragma once

#include "analyzer/replay/script.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct ScriptChange {
    enum class Kind : std::uint8_t {
        kNone,
        kEmptyCache,  // empty_cache() right after each of `events`
        kFirst,       // the blocks allocated by `events` are asked for before all others
        kOwnPool,     // they are served by a private pool of their own
    };
    Kind kind = Kind::kNone;
    std::vector<EventIndex> events;  // ascending
};

// kFirst and kOwnPool have no meaning where a checkpoint replaces what is held in mid-life.
bool can_move_blocks(const ReplayScript& script);

ReplayScript changed_script(const ReplayScript& script, const ScriptChange& change);

}  // namespace fragtrace::analyzer
