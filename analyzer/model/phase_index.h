// Finds the phase that an event happened in, of those that the program marked (library_ranges.h
// tells the others). Read-only after construction; safe to share.
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

    // Index into Timeline::phases of the innermost phase of the event's thread; where that thread
    // has none open (a worker of the program's), of the phase that began last on any thread.
    [[nodiscard]] std::uint32_t phase_of(EventIndex event) const;
    // Its name; empty when there is none.
    [[nodiscard]] std::string name_of(EventIndex event) const;

    // Whether a library marked it: such phases are never found.
    [[nodiscard]] bool is_library(std::uint32_t phase) const { return library_[phase]; }

  private:
    // Phases in the order in which they began, each with the one that was open around it.
    struct Lane {
        std::vector<std::uint32_t> phases;
        std::vector<std::uint32_t> around;  // position in `phases`, kNone = none
        std::vector<std::uint32_t> open;    // while it is filled

        void add(const Timeline& timeline, std::uint32_t phase);
        [[nodiscard]] std::uint32_t find(const Timeline& timeline, EventIndex event) const;
    };

    const Timeline* timeline_;
    std::vector<bool> library_;  // per phase
    std::map<std::uint32_t, Lane> threads_;
    Lane all_;
};

}  // namespace fragtrace::analyzer
