// The steps of one device that a pool needs for a replay, extracted from a timeline.
//
// Built once, then read-only. Many threads can replay it at the same time.
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

// Bits of Step::value for kPoolOptions.
inline constexpr std::uint64_t kPoolFreeable = 1;
inline constexpr std::uint64_t kPoolOfGraph = 2;
inline constexpr std::uint64_t kPoolNoSplit = 4;
inline constexpr std::uint64_t kPoolUseOnOom = 8;

// A segment that the recorded pool allocated to serve a request. PyTorch before 2.13 uses its
// address to choose blocks.
struct ObtainedSegment {
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
    EventIndex request = kNoEvent;
};

// A request of the recorded allocator that the driver refused.
struct RefusedTake {
    std::uint64_t size_bytes = 0;
    // Grants of the driver earlier in the same step: segments, and pages of completed maps. A
    // refused map keeps no page, even if some of its pages were already created.
    std::uint32_t granted_before = 0;
};

// The recorded events from which the steps were made.
enum class ScriptSource {
    kBlocks,       // the blocks of a framework's caching pool
    kDeviceLayer,  // the program's own device allocations: there was no caching pool
};

// A failed recorded request of a library to the driver, outside the pool.
struct LibraryRequest {
    EventIndex event = kNoEvent;
    std::uint64_t asked_bytes = 0;
    std::uint64_t device_free_bytes = 0;  // free at that time; less than requested
    std::uint64_t pool_bytes = 0;         // reserved by the pool at that time
    // The part of the pool's capacity that was neither free nor reserved by the pool at that time.
    // Negative if more was free. Limited to 2^62 in both directions.
    std::int64_t beside_bytes = 0;
    std::uint64_t past_pool_bytes = 0;  // allocated by requests that bypass the pool, at that time
};

struct ReplayScript {
    ScriptSource source = ScriptSource::kBlocks;
    DeviceId device = 0;
    StepTable steps;
    std::vector<Pool::PendingOn> pending;
    std::vector<RefusedTake> refusals;      // ascending by step
    std::vector<ObtainedSegment> obtained;  // kBlocks, ascending by request
    std::vector<std::uint64_t> streams;     // raw handle per StreamId
    std::vector<HeapSnapshot> checkpoints;  // their segments are in the order of allocation
    // Settings recorded before the first request. They were in force from the start.
    std::optional<std::string> first_settings;
    std::vector<std::string> settings;  // settings that the program applied at run time
    // kBlocks, ascending; filled by the caller that knows the capacity.
    std::vector<LibraryRequest> libraries;
    PytorchRules rules;  // of the recorded PyTorch release
    // Number of assumptions made; 0 = none.
    std::uint64_t requested_unknown = 0;  // requests with unknown size: the block size is used
    std::uint64_t stream_unknown = 0;  // requests with unknown stream: the default stream is used
    std::uint64_t rewinds = 0;         // private pools that were reset to a checkpoint
    std::uint64_t stream_ordered = 0;  // kDeviceLayer: requests served in stream order
    bool records_empty_cache = false;  // the recorder was able to see empty_cache calls
};

// True if the program itself (not a pool or the recorder) queried the driver's free memory.
bool asks_for_free_memory(const Event& event);

// Devices with anything to replay, in ascending order.
std::vector<DeviceId> replayable_devices(const Timeline& timeline);

ReplayScript make_script(const Timeline& timeline, DeviceId device);

// Maximum of reserved bytes in a checkpoint. A replay adopts this memory at its recorded place,
// whatever its settings. 0: the recording starts with the first segment and has no gaps.
std::uint64_t adopted_bytes(const ReplayScript& script);

// The smallest memory fraction that the program set for its pool by a call; 1 = it never set one.
double least_memory_fraction(const ReplayScript& script);

}  // namespace fragtrace::analyzer
