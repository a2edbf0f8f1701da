// The conclusion of a device's report: where to look first, and the one change to make. It follows
// from measured figures; report/text/conclusion_text.h puts it into words.
#pragma once

#include "analyzer/analysis/culprit.h"

#include <cstdint>
#include <optional>

namespace fragtrace::analyzer {

// A change of the program that would have served the request. No replay can show it, since the
// requests themselves would change.
enum class ProgramChange : std::uint8_t { kOneStream, kOnePool };

struct Recommendation {
    enum class Kind : std::uint8_t {
        kNone,
        kRow,               // `row`
        kEmptyCacheBefore,  // call torch.cuda.empty_cache() just before the request
        kNothingHelps,      // no usable row serves the request
        // For retries:
        kTooDear,         // rows with fewer retries cost more than the retries
        kNoFewerRetries,  // no usable row has fewer retries
        // For runs without a failure:
        kFreeWhatGrows,
        kFreeEarlierModel,
        kNothingSaves,  // no usable row saves enough
        // The remedy is unknown, since the replay of the recorded settings differs from the
        // recorded run:
        kReplayServes,      // the replay serves the failed request
        kReplayHasNoRetry,  // the replay needs no retry
        kReplayFails,       // the replay runs out of memory
    };

    Kind kind = Kind::kNone;
    const WhatIfRow* row = nullptr;  // the recommended what-if row; nullptr = none
    bool free_what_grows = false;    // do this before anything else
    std::optional<ProgramChange> program = {};
    bool forecast = false;  // the forecast of the rest of the step belongs to the recommendation
    const WhatIfRow* card = nullptr;  // kNothingHelps: a card on which the request succeeds
    bool without_others = false;      // kNothingHelps: without the holders outside the pool it fits
    // kNothingHelps: how much more the request needed than was free.
    std::uint64_t missing_bytes = 0;
    std::uint64_t blocking_bytes = 0;    // kNothingHelps: live bytes whose release would make room
    std::uint64_t releasable_bytes = 0;  // kFreeEarlierModel: bytes that this releases
};

struct Conclusion {
    Culprit culprit;
    Recommendation remedy;
};

// The conclusion about the reported out-of-memory; without one, about retries and peaks.
Conclusion conclusion_of(const Analysis& analysis, const DeviceAnalysis& device);

// The conclusion about one failed request or retry.
Conclusion conclusion_at(const Analysis& analysis,
                         const DeviceAnalysis& device,
                         const Diagnosis& diagnosis);

// Among the cards that were replayed under the recorded settings; nullptr: none. A larger card can
// fail where a smaller one fits, so the second may be the larger card. A card on which the rest of
// the failed step is forecast to fail is the first only if there is no other.
const WhatIfRow* smallest_fitting(const DeviceAnalysis& device);
const WhatIfRow* largest_failing(const DeviceAnalysis& device);

// True if the replay with the recorded settings runs out of memory exactly if the recorded run did.
// Also true if these settings were not replayed. If false, the assumed capacity is wrong and no
// replay can say what would help.
bool replay_ends_as_recorded(const DeviceAnalysis& device);

// Whether a run without an out-of-memory came near to one: it needed a retry, or less than 10 % of
// the pool's capacity was left at peak reserved memory.
bool is_near_miss(const DeviceAnalysis& device);

// The class of statements about one moment of the recorded run.
RowClass class_of_moment(const DeviceAnalysis& device);

// The row that the device's conclusion recommends; nullptr = none. If the run had retries but no
// failure, a row with fewer retries. Otherwise the first usable row worth its price, among all
// settings and remedies in the one order (whatif/ranking.h).
const WhatIfRow* best_remedy(const DeviceAnalysis& device);

}  // namespace fragtrace::analyzer
