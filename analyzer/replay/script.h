// A timeline reduced to what a pool needs to know: one device, one list of steps.
//
// Built once, read-only afterwards, replayed many times from many threads.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/pools/pool.h"
#include "analyzer/pools/pytorch/pytorch_rules.h"
#include "analyzer/replay/step_table.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Step::value of kPoolOptions.
inline constexpr std::uint64_t kPoolFreeable = 1;
inline constexpr std::uint64_t kPoolOfGraph = 2;
inline constexpr std::uint64_t kPoolNoSplit = 4;
inline constexpr std::uint64_t kPoolUseOnOom = 8;

// A segment that the recorded pool obtained to serve a request. Releases before 2.13 go by its
// address.
struct ObtainedSegment {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    EventIndex request = kNoEvent;
};

// A request of the recorded allocator that the driver refused.
struct RefusedTake {
    std::uint64_t size_bytes = 0;
    // What the driver had granted to the same step before: segments, and pages of completed maps.
    // A map that is refused keeps no page, however many of them were created.
    std::uint32_t granted_before = 0;
};

// What the steps are made of.
enum class ScriptSource {
    kBlocks,       // the blocks of a framework's caching pool
    kDeviceLayer,  // the program's own device allocations: there was no caching pool
};

// What a library asked of the driver beside the pool, in vain in the record.
struct LibraryRequest {
    EventIndex event = kNoEvent;
    std::uint64_t asked_bytes = 0;
    std::uint64_t device_free_bytes = 0;  // then; less than asked
    std::uint64_t pool_bytes = 0;         // that the pool held, then
    // Of the pool's capacity: neither free nor the pool's then. Negative: more was free. At most
    // 2^62 either way.
    std::int64_t beside_bytes = 0;
    std::uint64_t past_pool_bytes = 0;  // held by requests past the pool, then
};

struct ReplayScript {
    ScriptSource source = ScriptSource::kBlocks;
    DeviceId device = 0;
    StepTable steps;
    std::vector<Pool::PendingOn> pending;
    std::vector<RefusedTake> refusals;      // ascending by step
    std::vector<ObtainedSegment> obtained;  // kBlocks, ascending by request
    std::vector<std::uint64_t> streams;     // raw handle per StreamId
    std::vector<HeapSnapshot> checkpoints;  // segments in the order in which they were obtained
    // Settings told before the first request: those in force from the begin.
    std::optional<std::string> first_settings;
    std::vector<std::string> settings;      // what the program changed the allocator's settings to
    std::vector<LibraryRequest> libraries;  // kBlocks, ascending; set by who knows the capacity
    PytorchRules rules;                     // of the release of PyTorch that was recorded
    // What had to be assumed, counted; 0 = nothing assumed.
    std::uint64_t requested_unknown = 0;  // block size taken instead
    std::uint64_t stream_unknown = 0;     // default stream taken instead
    std::uint64_t rewinds = 0;            // private pools set back to a checkpoint
    std::uint64_t stream_ordered = 0;     // kDeviceLayer: requests served in a stream's order
    bool records_empty_cache = false;     // the recorder could see empty_cache calls
};

// The program itself, no pool and no recorder, asked the driver how much memory is free.
bool asks_for_free_memory(const Event& event);

// Devices that have anything to replay, ascending.
std::vector<DeviceId> replayable_devices(const Timeline& timeline);

ReplayScript make_script(const Timeline& timeline, DeviceId device);

// The most that a checkpoint tells was held: a replay takes it over where the record had it,
// whatever its settings. 0: the record begins with the first segment, and has no gaps.
std::uint64_t adopted_bytes(const ReplayScript& script);

// The least part of the card to which the program ever limited its pool by a call; 1 = never.
double least_memory_fraction(const ReplayScript& script);

}  // namespace fragtrace::analyzer
