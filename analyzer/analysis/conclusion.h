// What to take home from a device's report: whom to look at and the one change to make. Chosen from
// what was measured; report/text/conclusion_text.h has the words.
#pragma once

#include "analyzer/analysis/culprit.h"

#include <cstdint>
#include <optional>

namespace fragtrace::analyzer {

// A change of the program that would have served the request, which no replay of the same requests
// shows.
enum class ProgramChange : std::uint8_t { kOneStream, kOnePool };

struct Recommendation {
    enum class Kind : std::uint8_t {
        kNone,
        kRow,               // `row`
        kEmptyCacheBefore,  // torch.cuda.empty_cache() just before the request
        kNothingHelps,      // no usable row serves the request
        // Of retries.
        kTooDear,         // rows with fewer retries cost more than the retries
        kNoFewerRetries,  // no usable row has fewer
        // Without a failure.
        kFreeWhatGrows,
        kFreeEarlierModel,
        kNothingSaves,  // no usable row saves enough
        // Not known, since the replay of the recorded settings differs from the record:
        kReplayServes,      // it serves the request
        kReplayHasNoRetry,  // it needs no retry
        kReplayFails,       // it runs out of memory
    };

    Kind kind = Kind::kNone;
    const WhatIfRow* row = nullptr;  // what-if row that is recommended; nullptr = none
    bool free_what_grows = false;    // before anything else
    std::optional<ProgramChange> program = {};
    bool forecast = false;               // the forecast of the rest of the step belongs to it
    const WhatIfRow* card = nullptr;     // kNothingHelps: a card on which the request succeeds
    std::uint64_t missing_bytes = 0;     // kNothingHelps: the request's size beyond what was free
    std::uint64_t blocking_bytes = 0;    // kNothingHelps: live blocks whose absence makes room
    std::uint64_t releasable_bytes = 0;  // kFreeEarlierModel
};

struct Conclusion {
    Culprit culprit;
    Recommendation remedy;
};

// Of the first out-of-memory; without one, of the peaks.
Conclusion conclusion_of(const Analysis& analysis, const DeviceAnalysis& device);

// Of one failed request or retry.
Conclusion conclusion_at(const Analysis& analysis,
                         const DeviceAnalysis& device,
                         const Diagnosis& diagnosis);

// Of the cards that were replayed under the recorded settings; nullptr: none. Feasibility is not
// monotone in capacity: the second may be the larger card.
const WhatIfRow* smallest_fitting(const DeviceAnalysis& device);
const WhatIfRow* largest_failing(const DeviceAnalysis& device);

// Whether the replay of the recorded settings, on the capacity that is taken, runs out where the
// record did. If not, the capacity is another than is known, and no replay tells what would help.
bool replay_ends_as_recorded(const DeviceAnalysis& device);

// Of what follows from the state of one moment of the recorded run.
RowClass class_of_moment(const DeviceAnalysis& device);

// The row that the device's conclusion recommends: of all settings and remedies the first, in the
// one order (whatif/ranking.h), that can be used and is worth its price. nullptr: none.
const WhatIfRow* best_remedy(const DeviceAnalysis& device);

}  // namespace fragtrace::analyzer
