// What else limits the card that is enough for a job: contexts of other processes on it, and traces
// that do not have everything.
#pragma once

#include "analyzer/analysis/job/shared_cards.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace fragtrace::analyzer {

// Whether each rank has a trace, and no trace lacks parts, events or its end. If not, peaks are
// lower bounds. Processes may still run. With a generation, only of its processes.
bool all_recorded(const Job& job, std::optional<int> generation = {});

// The contexts on each card, of all processes that may have had one at the same time.
class CardContexts {
  public:
    explicit CardContexts(const Job& job);

    // The bytes of all contexts on the card while the process ran, at most. 0 = only the process
    // itself had one. nullopt: a context of another process has an unknown size.
    [[nodiscard]] std::optional<std::uint64_t> while_ran(const Job& job,
                                                         std::size_t process,
                                                         const ProcessDevice& device) const;

  private:
    struct Context {
        std::size_t process = 0;
        std::uint64_t bytes = 0;  // 0 = not known
        std::uint64_t begin_unix_ns = 0;
        std::uint64_t end_unix_ns = 0;  // the largest number: not known
    };

    std::map<CardKey, std::vector<Context>> cards_;
};

}  // namespace fragtrace::analyzer
