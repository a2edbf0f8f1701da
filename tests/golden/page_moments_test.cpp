// What the page has at any moment, out of its blocks, segments and pools, is what the recorded
// state has there: to the byte, after every event.
#include "analyzer/commands/analyze.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/report/page_content.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <random>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::TraceWriter;

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kBase = 0x200000000000;
constexpr std::uint64_t kTotal = 4096 * kMiB;

struct Moment {
    std::uint64_t requested = 0;
    std::uint64_t allocated = 0;
    std::uint64_t pending = 0;
    std::uint64_t reserved = 0;
    std::uint64_t releasable = 0;
    std::uint64_t other = 0;

    bool operator==(const Moment&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Moment& m) {
    return out << "requested " << m.requested << " allocated " << m.allocated << " pending "
               << m.pending << " reserved " << m.reserved << " releasable " << m.releasable
               << " other " << m.other;
}

bool pool_keeps(const PageDevice& page, std::uint32_t pool, std::uint64_t now_ns) {
    bool keeps = pool != 0;
    for (const std::uint64_t change : page.pools[pool].changes_ns) {
        keeps = change <= now_ns ? !keeps : keeps;
    }
    return keeps;
}

// From nothing but the page's columns, the slow way.
Moment of_page(const PageDevice& page, std::uint64_t now_ns) {
    Moment moment;
    const PageBlocks& blocks = page.blocks;
    std::vector<std::uint32_t> live;
    for (std::uint32_t i = 0; i < blocks.size(); ++i) {
        if (blocks.start_ns[i] > now_ns || blocks.end_ns[i] <= now_ns) {
            continue;
        }
        live.push_back(i);
        if (blocks.freed_ns[i] <= now_ns) {
            moment.pending += blocks.size_bytes[i];
        } else {
            moment.allocated += blocks.size_bytes[i];
            moment.requested += std::min(blocks.requested_bytes[i], blocks.size_bytes[i]);
        }
    }
    for (const PageSegment& segment : page.segments) {
        if (segment.start_ns > now_ns || segment.end_ns <= now_ns) {
            continue;
        }
        moment.reserved += segment.size_bytes;
        const bool used = std::any_of(live.begin(), live.end(), [&](std::uint32_t i) {
            return blocks.address[i] < segment.address + segment.size_bytes &&
                   blocks.address[i] + blocks.size_bytes[i] > segment.address;
        });
        if (!used && !pool_keeps(page, segment.pool, now_ns)) {
            moment.releasable += segment.size_bytes;
        }
    }
    for (std::size_t i = 0; i < page.others.time_ns.size(); ++i) {
        if (page.others.time_ns[i] <= now_ns) {
            moment.other = page.others.bytes[i];
        }
    }
    return moment;
}

Moment of_record(const RecordedState& state, DeviceId device) {
    const MemoryTotals& totals = state.totals(device);
    const MemorySample& sample = state.sample(device);
    return {.requested = totals.requested,
            .allocated = totals.allocated,
            .pending = totals.pending,
            .reserved = totals.reserved,
            .releasable = state.releasable_bytes(device),
            .other = sample.event == kNoEvent
                         ? totals.own - totals.reserved
                         : sample.total_bytes - totals.reserved - state.device_free_bytes(device)};
}

// How many moments were compared.
std::size_t compare(const std::string& path) {
    const auto analysis = analyze(path, {});
    REQUIRE(analysis.ok());
    const PageData data = page_content(**analysis);
    const Timeline& timeline = (*analysis)->timeline;
    std::size_t compared = 0;
    for (const PageDevice& page : data.devices) {
        const auto device = static_cast<DeviceId>(page.index);
        RecordedState state(timeline);
        const std::size_t apart = std::max<std::size_t>(1, timeline.events.size() / 2000);
        for (EventIndex i = 0; i < timeline.events.size(); ++i) {
            state.advance();
            const std::uint64_t now_ns = timeline.events[i].time_ns;
            const bool last_of_its_time =
                i + 1 == timeline.events.size() || timeline.events[i + 1].time_ns > now_ns;
            // Whose a segment is shows with its first block; the page knows from the start.
            const auto& segments = state.segments(device);
            const bool known = std::none_of(segments.begin(), segments.end(), [](const auto& one) {
                return one.stream == kNoStream;
            });
            if (last_of_its_time && known && i % apart == 0) {
                INFO(path << " event " << i);
                REQUIRE(of_page(page, now_ns) == of_record(state, device));
                ++compared;
            }
        }
    }
    return compared;
}

// Blocks of two private pools, the default one and another stream in segments of 20 MiB, some
// pending; users of the pools come and go; memory is obtained beside the pool.
TraceWriter private_pools(unsigned seed) {
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
    std::uint64_t begun = 0;  // a segment is there for a block
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
            if (waits) {  // its place may be taken before that is seen: then it was complete
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

// Pages of two reservations are mapped and unmapped; blocks reach over several; one reservation
// serves a graph's pool.
TraceWriter expandable(unsigned seed) {
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

}  // namespace

TEST_CASE("at every moment the page has what the record has, with private pools and streams") {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        TemporaryFolder folder;
        const std::string path = folder.file("made-up.4711.ftrace");
        private_pools(seed).save(path);
        CHECK(compare(path) > 500);
    }
}

TEST_CASE("at every moment the page has what the record has, with expandable segments") {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        TemporaryFolder folder;
        const std::string path = folder.file("made-up.4711.ftrace");
        expandable(seed).save(path);
        CHECK(compare(path) > 300);
    }
}
