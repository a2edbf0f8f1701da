// Finds the phase of the program during which an event happened. Phases that a library marked are
// excluded (library_ranges.h). Read-only after construction; safe to share between threads.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

class PhaseIndex {
  public:
    static constexpr std::uint32_t kNone = 0xffffffffu;

    // The timeline must outlive the index.
    explicit PhaseIndex(const Timeline& timeline);

    // Index into Timeline::phases of the innermost phase that is open on the event's thread. If
    // that thread has none open (for example a worker thread), the open phase that began last on
    // any thread. kNone if there is none.
    [[nodiscard]] std::uint32_t phase_of(EventIndex event) const;
    // The name of that phase; empty if there is none.
    [[nodiscard]] std::string name_of(EventIndex event) const;

    // Whether a library marked this phase. phase_of() never returns such a phase.
    [[nodiscard]] bool is_library(std::uint32_t phase) const { return library_[phase]; }

  private:
    // Phases in the order in which they began, each with the phase that encloses it.
    struct Lane {
        std::vector<std::uint32_t> phases;
        std::vector<std::uint32_t> around;  // in `phases`, of the enclosing one; kNone = none
        std::vector<std::uint32_t> open;    // open phases; only used while the lane is filled

        void add(const Timeline& timeline, std::uint32_t phase);
        [[nodiscard]] std::uint32_t find(const Timeline& timeline, EventIndex event) const;
    };

    const Timeline* timeline_;
    std::vector<bool> library_;  // per phase: marked by a library
    std::map<std::uint32_t, Lane> threads_;
    Lane all_;
};

}  // namespace fragtrace::analyzer
