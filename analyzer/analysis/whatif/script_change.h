// The script of a changed program: the cache is emptied at given places, or some blocks are
// allocated first or in a pool of their own.
//
// Pure: the recorded script is not changed. Safe to call from many threads.
#pragma once

#include "analyzer/replay/script.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct ScriptChange {
    enum class Kind : std::uint8_t {
        kNone,
        kEmptyCache,  // call empty_cache() right after each of `events`
        kFirst,       // allocate the blocks of `events` before all others
        kOwnPool,     // allocate the blocks of `events` in a private pool of their own
    };
    Kind kind = Kind::kNone;
    std::vector<EventIndex> events;  // ascending
};

// False if a checkpoint replaces the live memory after the first request. Then kFirst and kOwnPool
// have no meaning.
bool can_move_blocks(const ReplayScript& script);

ReplayScript changed_script(const ReplayScript& script, const ScriptChange& change);

// The script without the requests that failed. On a card of unknown size every replay would serve
// them, whatever their size.
ReplayScript without_failures(const ReplayScript& script);

}  // namespace fragtrace::analyzer
