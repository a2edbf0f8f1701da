#include "tests/support/made_up_traces.h"

#include <fragtrace/sizes.h>

#include <iterator>
#include <map>
#include <random>
#include <vector>

namespace fragtrace::testing {
namespace {

constexpr std::uint64_t kBase = 0x200000000000;
constexpr std::uint64_t kTotal = 4096 * kMiB;

}  // namespace

TraceWriter private_pools_trace(unsigned seed) {
    std::mt19937 random(seed);
    const auto one_in = [&random](unsigned n) { return random() % n == 0; };
    TraceWriter trace;
    trace.fact("pool.1", "pytorch 1,0");
    trace.fact("pool.2", "pytorch 0,1");

    struct Segment {
        std::uint32_t pool;
        std::uint64_t stream;
        std::map<std::uint64_t, std::uint64_t> blocks;  // offset, bytes
    };

    std::map<std::uint64_t, Segment> segments;
    std::vector<std::uint64_t> waiting;
    std::uint64_t next = kBase;
    const auto pool_event = [&trace](EventKind kind, std::uint32_t pool, std::uint64_t size) {
        EventRecord event = trace.next();
        event.kind = kind;
        event.pool = pool;
        event.size = size;
        trace.event(event);
    };
    std::uint64_t begun = 0;  // a segment exists because of a block
    for (int step = 0; step < 600; ++step) {
        if (begun == 0 && (segments.size() < 4 || (segments.size() < 12 && one_in(12)))) {
            begun = next;
            trace.device_alloc(next, 20 * kMiB, true);
            segments[next] = {one_in(2) ? 0 : 1 + static_cast<std::uint32_t>(random() % 2),
                              one_in(3) ? 0x70u : 0u,
                              {}};
            next += 64 * kMiB;
            if (step == 0) {
                EventRecord sample = {};
                sample.kind = EventKind::kMemoryInfo;
                sample.size = kTotal - 100 * kMiB;
                sample.extra = kTotal;
                trace.event(sample);
            }
            continue;
        }
        auto at = begun != 0 ? segments.find(begun) : segments.begin();
        std::advance(at, begun != 0 ? 0 : random() % segments.size());
        auto& [address, segment] = *at;
        const std::uint64_t offset = (random() % 20) * kMiB;
        if (segment.blocks.empty() && segment.pool == 0 && begun == 0 && one_in(4)) {
            trace.device_free(address, true);
            segments.erase(at);
        } else if (segment.blocks.contains(offset)) {
            const bool waits = one_in(3);
            trace.block_free(address + offset, segment.blocks[offset], waits);
            segment.blocks.erase(offset);
            if (waits) {  // pending: its reuse implies completion
                waiting.push_back(1000 + static_cast<std::uint64_t>(step));
                trace.simple(EventKind::kPendingEvent, address + offset, 0, waiting.back());
            }
        } else {
            segment.blocks[offset] = kMiB;
            EventRecord request = trace.next();
            request.kind = EventKind::kBlockAlloc;
            request.address = address + offset;
            request.size = kMiB - 512 * (random() % 4);
            request.extra = kMiB;
            request.stream = segment.stream;
            request.pool = segment.pool;
            trace.event(request);
        }
        begun = 0;
        if (one_in(10) && !waiting.empty()) {
            trace.simple(EventKind::kEventComplete, 0, 0, waiting.front());
            waiting.erase(waiting.begin());
        }
        if (one_in(20)) {
            pool_event(one_in(2) ? EventKind::kPoolRelease : EventKind::kPoolUse,
                       1 + static_cast<std::uint32_t>(random() % 2),
                       1);
        }
        if (one_in(40)) {
            trace.device_alloc(next, 3 * kMiB, false);
            next += 64 * kMiB;
        }
    }
    trace.end(EndReason::kNormal);
    trace.footer();
    return trace;
}

TraceWriter expandable_trace(unsigned seed) {
    std::mt19937 random(seed);
    TraceWriter trace;
    trace.fact("pool.1", "pytorch 1,0");
    constexpr std::uint64_t kPage = 20 * kMiB;
    constexpr int kPages = 16;

    struct Reservation {
        std::uint64_t address = 0;
        std::uint32_t pool = 0;
        std::map<int, std::uint64_t> pages;             // handles
        std::map<std::uint64_t, std::uint64_t> blocks;  // offset, bytes
    };

    std::vector<Reservation> all;
    for (const std::uint32_t pool : {0u, 1u}) {
        all.push_back({kBase + pool * 1024 * kPage, pool, {}, {}});
        EventRecord reserve = trace.next();
        reserve.kind = EventKind::kAddressReserve;
        reserve.flags = kFlagFromAllocator;
        reserve.address = all.back().address;
        reserve.size = kPages * kPage;
        trace.event(reserve);
    }
    std::uint64_t handle = 1;
    for (int step = 0; step < 500; ++step) {
        Reservation& in = all[random() % 2];
        const int page = static_cast<int>(random() % kPages);
        const std::uint64_t address = in.address + static_cast<std::uint64_t>(page) * kPage;
        const std::uint64_t offset = static_cast<std::uint64_t>(page) * kPage;
        const std::uint64_t bytes = (1 + random() % 45) * kMiB;
        const auto mapped = [&in](std::uint64_t begin, std::uint64_t end) {
            for (std::uint64_t at = begin / kPage; at * kPage < end; ++at) {
                if (!in.pages.contains(static_cast<int>(at))) {
                    return false;
                }
            }
            return true;
        };
        const auto taken = [&in](std::uint64_t begin, std::uint64_t end) {
            for (const auto& [from, size] : in.blocks) {
                if (from < end && from + size > begin) {
                    return true;
                }
            }
            return false;
        };
        if (!in.pages.contains(page)) {
            trace.simple(EventKind::kPhysicalCreate, handle, kPage, 0, true);
            trace.simple(EventKind::kMap, address, kPage, handle, true);
            in.pages[page] = handle++;
        } else if (!taken(offset, offset + kPage) && random() % 3 == 0) {
            trace.simple(EventKind::kUnmap, address, kPage, 0, true);
            trace.simple(EventKind::kPhysicalRelease, in.pages[page], 0, 0, true);
            in.pages.erase(page);
        } else if (in.blocks.contains(offset)) {
            trace.block_free(in.address + offset, in.blocks[offset]);
            in.blocks.erase(offset);
        } else if (mapped(offset, offset + bytes) && !taken(offset, offset + bytes)) {
            EventRecord request = trace.next();
            request.kind = EventKind::kBlockAlloc;
            request.address = in.address + offset;
            request.size = request.extra = bytes;
            request.pool = in.pool;
            trace.event(request);
            in.blocks[offset] = bytes;
        }
    }
    trace.end(EndReason::kNormal);
    trace.footer();
    return trace;
}

}  // namespace fragtrace::testing
