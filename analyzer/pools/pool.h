// A simulated pool: the one concept behind replay, verdicts and what-if.
//
// A pool serves requests from memory that it obtains from a Device. It knows nothing of traces,
// time or reports; whoever drives it owns the ids. Deterministic: the same calls give the same
// answers. Not thread-safe; clone() gives an independent copy, device included.
#pragma once

#include "analyzer/model/event.h"
#include "analyzer/model/heap_snapshot.h"
#include "analyzer/pools/device.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// Chosen by the driver of the pool: the index of the allocating event serves well.
using BlockId = std::uint32_t;
// A cross-stream event that a freed block waits for; chosen by the driver of the pool.
using PendingId = std::uint64_t;

struct Request {
    BlockId block = 0;
    std::uint64_t requested_bytes = 0;  // > 0
    StreamId stream = 0;
    std::uint32_t private_pool = 0;  // 0 = the default pool
    bool in_capture = false;         // of a stream: no event is looked at, no cache released
};

// What a program can ask of a private pool (torch.cuda.MemPool, CUDA graphs).
struct PrivatePoolOptions {
    bool freeable = false;    // nobody uses it any more: its cached segments may go
    bool no_split = false;    // a request takes a whole block
    bool use_on_oom = false;  // its free blocks serve others before an OOM
    bool graph = false;       // of a CUDA graph: its memory is in use whatever its blocks say
};

// Where a block lies. Segments are numbered from 0 in the order they were obtained from the
// driver; an expandable segment (an address range that is mapped bit by bit) is one segment, and
// offsets count from the start of its range.
struct Placement {
    std::uint32_t segment = 0;
    std::uint64_t offset_bytes = 0;
    std::uint64_t block_bytes = 0;
};

// How a request went (specs: hit, grow, retry_ok, oom).
enum class Outcome : std::uint8_t {
    kHit,      // a cached block served it
    kGrow,     // a segment was obtained, or more of one was mapped
    kRetryOk,  // the driver refused first, and it was served after all
    kOutOfMemory,
    kRejected,  // refused by the pool's own rule before any release (throw_on_cudamalloc_oom)
};

struct AllocateResult {
    Outcome outcome = Outcome::kOutOfMemory;
    Placement placement;  // valid unless kOutOfMemory or kRejected
};

// A driver call that the pool made, for the comparison with a record and for counting.
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

// docs/metrics.md has the definitions. Peaks are each quantity's own maximum.
struct PoolStatistics {
    Gauge requested;  // live blocks only
    Gauge allocated;
    Gauge active;  // allocated + pending
    Gauge reserved;
    std::uint64_t segments_allocated = 0;  // successful cudaMalloc or map calls
    std::uint64_t segments_freed = 0;      // cudaFree or unmap calls
    std::uint64_t retries = 0;
    std::uint64_t ooms = 0;
    // PyTorch has dropped a private pool of which memory is still mapped, or fails a check of its
    // own: its count of a pool's segments is one for each request that maps, and one less for each
    // unmap. What it does with that memory from then on is undefined.
    bool pool_lost = false;
    // Of the live blocks: allocated = requested + rounding + slack.
    std::uint64_t rounding_bytes = 0;
    std::uint64_t slack_bytes = 0;
};

// Relaxations of docs/metrics.md that a pool itself can be asked to make.
enum class Relaxation : std::uint8_t {
    kPendingComplete,   // all cross-stream events complete
    kReleaseFree,       // wholly free segments go back to the driver
    kExactSegmentSize,  // the driver is asked for exactly the rounded request
    kNoLimit,           // the process's own limit is lifted
    kOneStream,         // free blocks of all streams serve any stream
    kOnePool,           // small and large and private pools (not graph pools) are one
};

class Pool {
  public:
    virtual ~Pool() = default;

    // A stable id: "pytorch", "none", ...
    [[nodiscard]] virtual std::string_view name() const = 0;
    // The settings as the allocator itself would print them; empty = defaults.
    [[nodiscard]] virtual std::string config() const = 0;

    virtual AllocateResult allocate(const Request& request) = 0;

    // The program gives a block back. With `pending` the block becomes reusable only when all of
    // these have completed and the pool has had an occasion to notice. `streams[i]` is the stream
    // whose queue pending[i] waits in. Unknown blocks are ignored (return false).
    struct PendingOn {
        PendingId id;
        StreamId stream;
    };

    virtual bool release(BlockId block, const std::vector<PendingOn>& pending) = 0;
    // Takes over what another pool holds, in place of all that this one has: segments in the order
    // of the snapshot, and their blocks, under the ids `allocated_by`; pending ones as live. An
    // expandable segment is one per reservation. False: the device has not so much memory; the
    // pool is then of no use any more.
    virtual bool adopt(const HeapSnapshot& heap) = 0;

    // ---- for pools that know of such things; the others ignore what they are told ----

    // A cross-stream event completed on the device (the pool notices when it next looks).
    virtual void complete(PendingId id) { (void)id; }

    virtual void empty_cache() {}

    // The share of the card that this process may use, [0, 1].
    virtual void set_memory_fraction(double fraction) { (void)fraction; }

    // Serves a request at a given place, which must lie in one free block of the request's pool
    // (a pool set back to a checkpoint). False: it does not; nothing has changed then.
    virtual bool allocate_at(const Request& request, const Placement& place) {
        (void)request;
        (void)place;
        return false;
    }

    virtual void set_private_pool(std::uint32_t private_pool, const PrivatePoolOptions& options) {
        (void)private_pool;
        (void)options;
    }

    // empty_cache() for one private pool; PyTorch calls it when a MemPool object dies.
    virtual void empty_private_pool(std::uint32_t private_pool) { (void)private_pool; }

    // Settings that the program changes at run time, in the pool's own language. False: they are
    // not valid and nothing has changed.
    virtual bool change_settings(std::string_view config) {
        (void)config;
        return false;
    }

    // One reference for the life of the pool: what it refers to changes with every call.
    [[nodiscard]] virtual const PoolStatistics& statistics() const = 0;
    // Where a live or pending block lies; nullopt when there is none.
    [[nodiscard]] virtual std::optional<Placement> find(BlockId block) const = 0;
    [[nodiscard]] virtual HeapSnapshot snapshot() const = 0;

    // Largest free block that `request` could use right now, without asking the driver.
    [[nodiscard]] virtual std::uint64_t largest_free_bytes(const Request& request) const {
        (void)request;
        return 0;
    }

    // Bytes that would go back to the driver if everything releasable were released now.
    [[nodiscard]] virtual std::uint64_t releasable_bytes() const { return 0; }

    // What the pool would allocate for a request: its rounded size.
    [[nodiscard]] virtual std::uint64_t rounded_bytes(std::uint64_t requested_bytes) const = 0;

    // What the pool would map at a time for a block of this size if it stitched pages; the driver's
    // 2 MiB for pools that never do.
    [[nodiscard]] virtual std::uint64_t page_bytes(std::uint64_t rounded_bytes) const {
        (void)rounded_bytes;
        return std::uint64_t{2} << 20;
    }

    // What the pool would ask the driver for to serve a block of this size.
    [[nodiscard]] virtual std::uint64_t driver_bytes(std::uint64_t rounded_bytes) const {
        return rounded_bytes;
    }

    // False: it keeps nothing between requests, so that those past a pool are like all others.
    [[nodiscard]] virtual bool caches() const { return true; }

    // Driver calls since the last call of this function, in order. A clone begins with none.
    virtual std::vector<DriverCall> take_driver_calls() = 0;

    [[nodiscard]] virtual Device& device() = 0;
    [[nodiscard]] virtual std::unique_ptr<Pool> clone() const = 0;

    // Applies a relaxation to this pool for good (use it on a clone). False: it has no meaning
    // here.
    virtual bool relax(Relaxation relaxation) {
        (void)relaxation;
        return false;
    }
};

}  // namespace fragtrace::analyzer
