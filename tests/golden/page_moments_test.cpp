// At any moment the page's memory, computed from its blocks, segments and pools, equals the
// recorded state: to the byte, after every event.
#include "analyzer/analysis/analyze.h"
#include "analyzer/model/recorded_state.h"
#include "analyzer/report/page/page_content.h"
#include "tests/support/made_up_traces.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::expandable_trace;
using fragtrace::testing::private_pools_trace;
using fragtrace::testing::TemporaryFolder;

namespace {

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

// Computed from the page's columns only, in the slow way.
Moment of_page(const PageDevice& page, std::uint64_t now_ns) {
    Moment moment;
    const BlockLives& blocks = page.blocks;
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
    for (const SegmentLife& segment : page.segments) {
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
            .other = sample.event == kNoEvent ? totals.other
                                              : sample.total_bytes - totals.own_pool() -
                                                    state.device_free_bytes(device)};
}

// Returns how many moments were compared.
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
            // A segment's stream and pool are recorded with its first block. The page knows them
            // from the start.
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

}  // namespace

TEST_CASE("at every moment the page equals the recorded state, with private pools and streams") {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        TemporaryFolder folder;
        const std::string path = folder.file("made-up.4711.ftrace");
        private_pools_trace(seed).save(path);
        CHECK(compare(path) > 500);
    }
}

TEST_CASE("at every moment the page equals the recorded state, with expandable segments") {
    for (unsigned seed = 1; seed <= 20; ++seed) {
        TemporaryFolder folder;
        const std::string path = folder.file("made-up.4711.ftrace");
        expandable_trace(seed).save(path);
        CHECK(compare(path) > 300);
    }
}
