// A timeline reduced to what a pool needs to know: one device, one list of steps.
//
// Built once, read-only afterwards, replayed many times from many threads.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/pools/pool.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct Step {
    enum class Kind : std::uint8_t {
        kAllocate,
        kRelease,
        kComplete,  // a cross-stream event completed
        kEmptyCache,
        kMemoryFraction,
    };
    Kind kind = Kind::kAllocate;
    bool recorded_oom = false;  // kAllocate: the recorded run could not serve it
    StreamId stream = 0;
    EventIndex event = kNoEvent;      // the event in the timeline
    BlockId block = 0;                // kAllocate, kRelease: index of the allocating event
    std::uint64_t value = 0;          // requested bytes; pending id; bits of the fraction
    std::uint32_t first_pending = 0;  // kRelease: range in ReplayScript::pending
    std::uint32_t pending_count = 0;
    std::uint32_t first_refusal = 0;  // kAllocate: range in ReplayScript::refusals
    std::uint32_t refusal_count = 0;
};

// What the steps are made of.
enum class ScriptSource {
    kBlocks,       // the blocks of a framework's caching pool
    kDeviceLayer,  // the program's own device allocations: there was no caching pool
};

struct ReplayScript {
    ScriptSource source = ScriptSource::kBlocks;
    DeviceId device = 0;
    std::vector<Step> steps;
    std::vector<Pool::PendingOn> pending;
    // Sizes that the driver refused while the recorded allocator served a step.
    std::vector<std::uint64_t> refusals;
    std::vector<std::uint64_t> streams;  // raw handle per StreamId
    // What had to be assumed, counted; 0 = nothing assumed.
    std::uint64_t requested_unknown = 0;  // block size taken instead
    std::uint64_t stream_unknown = 0;     // default stream taken instead
    bool records_empty_cache = false;     // the recorder could see empty_cache calls
};

// Devices that have anything to replay, ascending.
std::vector<DeviceId> replayable_devices(const Timeline& timeline);

ReplayScript make_script(const Timeline& timeline, DeviceId device);

}  // namespace fragtrace::analyzer
