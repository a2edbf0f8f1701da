// A simulated pool (memory allocator). Replays, verdicts and what-if rows all use this interface.
//
// A pool serves requests from memory that it allocates from a Device. It knows nothing about
// traces, time or reports, and its caller chooses the ids. Deterministic: the same calls give the
// same answers. Not thread-safe. clone() returns an independent copy, including the device.
#pragma once

#include "analyzer/model/event.h"
#include "analyzer/model/heap_snapshot.h"
#include "analyzer/pools/device.h"
#include "analyzer/support/units.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// Chosen by the pool's caller, for example the index of the allocating event.
using BlockId = std::uint32_t;
// A cross-stream event that a freed block waits for. Chosen by the pool's caller.
using PendingId = std::uint64_t;

struct Request {
    BlockId block = 0;
    std::uint64_t requested_bytes = 0;  // > 0
    StreamId stream = 0;
    std::uint32_t private_pool = 0;  // 0 = the default pool
    bool in_capture = false;  // during a stream capture: no event is checked, no cache released
    bool upper_end = false;   // for pools that serve requests from both ends of their memory
};

// Properties of a private pool (torch.cuda.MemPool, CUDA graphs).
struct PrivatePoolOptions {
    bool freeable = false;    // the pool has no users any more: its cached segments may be released
    bool no_split = false;    // a request gets a whole block
    bool use_on_oom = false;  // its free blocks serve other pools' requests before an OOM
    // Belongs to a CUDA graph: its memory stays in use, even where blocks are free.
    bool graph = false;
};

// The position of a block. Segments are numbered from 0 in the order in which the driver allocated
// them. An expandable segment (an address range that is mapped step by step) counts as one segment,
// and offsets count from the start of its range.
struct Placement {
    std::uint32_t segment = 0;
    std::uint64_t offset_bytes = 0;
    std::uint64_t block_bytes = 0;
};

// Outcome of a request (called hit, grow, retry_ok and oom in the specs).
enum class Outcome : std::uint8_t {
    kHit,      // a cached block served it
    kGrow,     // the driver allocated a segment, or mapped more of one
    kRetryOk,  // the driver first refused, but a retry served the request
    kOutOfMemory,
    kRejected,  // refused by the pool's own rule, before any release (throw_on_cudamalloc_oom)
};

struct AllocateResult {
    Outcome outcome = Outcome::kOutOfMemory;
    Placement placement;  // valid unless kOutOfMemory or kRejected
};

// A driver call that the pool made. Used for counting and for the comparison with the recording.
struct DriverCall {
    enum class Kind : std::uint8_t { kSegmentAlloc, kSegmentFree, kMap, kUnmap };
    Kind kind = Kind::kSegmentAlloc;
    bool refused = false;
    std::uint64_t size_bytes = 0;
};

struct Gauge {
    std::uint64_t current = 0;
    std::uint64_t peak = 0;

    void add(std::uint64_t amount) {
        current += amount;
        peak = current > peak ? current : peak;
    }

    void subtract(std::uint64_t amount) { current -= amount; }
};

// Definitions: docs/metrics.md. Each peak is that quantity's own maximum.
struct PoolStatistics {
    Gauge requested;  // live blocks only
    Gauge allocated;
    Gauge active;  // allocated + pending
    Gauge reserved;
    std::uint64_t segments_allocated = 0;  // successful cudaMalloc or map calls
    std::uint64_t segments_freed = 0;      // cudaFree or unmap calls
    std::uint64_t retries = 0;
    std::uint64_t ooms = 0;
    // True if PyTorch dropped a private pool while some of its memory was still mapped, or failed
    // one of its own checks. PyTorch counts one segment per request that maps memory but subtracts
    // one per unmap, so its count can be wrong. Its behaviour with that memory is undefined
    // afterwards.
    bool pool_lost = false;
    // Both cover live blocks: allocated = requested + rounding + slack.
    std::uint64_t rounding_bytes = 0;
    std::uint64_t slack_bytes = 0;

    // The pool holds nothing any more. Peaks and counts stay.
    void forget_held() {
        for (Gauge* gauge : {&requested, &allocated, &active, &reserved}) {
            gauge->current = 0;
        }
        rounding_bytes = 0;
        slack_bytes = 0;
    }
};

// The relaxations of docs/metrics.md that a pool can apply to itself.
enum class Relaxation : std::uint8_t {
    kPendingComplete,   // all cross-stream events complete
    kReleaseFree,       // completely free segments return to the driver
    kExactSegmentSize,  // the pool requests exactly the rounded request from the driver
    kNoLimit,           // the process's own limit is lifted
    kOneStream,         // free blocks of all streams serve any stream
    kOnePool,  // the small, the large and the private pools (except graph pools) are merged
};

class Pool {
  public:
    virtual ~Pool() = default;

    // A stable id: "pytorch", "none", ...
    [[nodiscard]] virtual std::string_view name() const = 0;
    // The settings in the allocator's own syntax; empty = defaults.
    [[nodiscard]] virtual std::string config() const = 0;

    virtual AllocateResult allocate(const Request& request) = 0;

    // The program frees a block. With `pending`, the block becomes reusable only after all of these
    // events have completed and the pool has checked them. `PendingOn::stream` is the stream whose
    // queue the event is in. Returns false and does nothing for unknown blocks.
    struct PendingOn {
        PendingId id;
        StreamId stream;
    };

    virtual bool release(BlockId block, const std::vector<PendingOn>& pending) = 0;
    // Replaces this pool's state with that of another pool: its segments in the order of the
    // snapshot, and their blocks with the ids `allocated_by`. Pending blocks become live blocks.
    // The ranges of one reservation become one expandable segment. Returns false if the device has
    // too little memory. The pool must not be used after that.
    virtual bool adopt(const HeapSnapshot& heap) = 0;

    // ---- for pools with such features; other pools ignore these calls ----

    // A cross-stream event completed on the device. The pool notices it at its next check.
    virtual void complete(PendingId id) { (void)id; }

    virtual void empty_cache() {}

    // Work of this stream ended: its blocks belong to no stream from now on.
    virtual void end_stream(StreamId stream) { (void)stream; }

    // Limits this process to a share of the card, in [0, 1].
    virtual void set_memory_fraction(double fraction) { (void)fraction; }

    // Serves a request at a given place, for example in a pool that was reset to a checkpoint. The
    // place must lie within one free block of the request's pool. Otherwise returns false and
    // changes nothing.
    virtual bool allocate_at(const Request& request, const Placement& place) {
        (void)request;
        (void)place;
        return false;
    }

    virtual void set_private_pool(std::uint32_t private_pool, const PrivatePoolOptions& options) {
        (void)private_pool;
        (void)options;
    }

    // Empties the cache of one private pool. PyTorch calls it when a MemPool object is destroyed.
    virtual void empty_private_pool(std::uint32_t private_pool) { (void)private_pool; }

    // Applies settings that the program changed at run time, in the pool's own syntax. Returns
    // false and changes nothing if they are invalid.
    virtual bool change_settings(std::string_view config) {
        (void)config;
        return false;
    }

    // The reference stays valid for the life of the pool. Its content changes with every call.
    [[nodiscard]] virtual const PoolStatistics& statistics() const = 0;
    // Position of a live or pending block; nullopt if there is no such block.
    [[nodiscard]] virtual std::optional<Placement> find(BlockId block) const = 0;
    [[nodiscard]] virtual HeapSnapshot snapshot() const = 0;

    // Largest free block in bytes that `request` could use now without a driver call.
    [[nodiscard]] virtual std::uint64_t largest_free_bytes(const Request& request) const {
        (void)request;
        return 0;
    }

    // Bytes that would return to the driver if the pool released everything it can release now.
    [[nodiscard]] virtual std::uint64_t releasable_bytes() const { return 0; }

    // The block size in bytes that the pool rounds a request to.
    [[nodiscard]] virtual std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const = 0;

    // Page size in bytes with which this pool would map a block of this size. 2 MiB (the driver's
    // page) for pools without expandable segments.
    [[nodiscard]] virtual std::uint64_t page_bytes(std::uint64_t rounded_bytes) const {
        (void)rounded_bytes;
        return kDriverPageBytes;
    }

    // Bytes that the pool would request from the driver for a block of this size.
    [[nodiscard]] virtual std::uint64_t driver_bytes(std::uint64_t rounded_bytes) const {
        return rounded_bytes;
    }

    // False: the pool caches nothing, so requests that bypass it are like all other requests.
    [[nodiscard]] virtual bool caches() const { return true; }

    // Driver calls since the last call of this function, in order. A clone starts with none.
    virtual std::vector<DriverCall> take_driver_calls() = 0;

    [[nodiscard]] virtual Device& device() = 0;
    [[nodiscard]] virtual std::unique_ptr<Pool> clone() const = 0;

    // Applies a relaxation to this pool permanently (use it on a clone). Returns false if the
    // relaxation has no meaning for this pool.
    virtual bool relax(Relaxation relaxation) {
        (void)relaxation;
        return false;
    }
};

}  // namespace fragtrace::analyzer
