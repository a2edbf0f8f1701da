// Devices without a caching pool: recorded state, replay and pairing agree on the memory that the
// driver holds for the process, for every kind of allocation.
#include "analyzer/model/device_layer.h"

#include "analyzer/model/recorded_state.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/replay/replayer.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/pairing.h"
#include "tests/unit/model/events.h"

#include <catch2/catch.hpp>

#include <random>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::Events;

namespace {

constexpr std::uint64_t kBase = 0x7f0000000000;

// A simple model of the driver: the live memory after each event.
struct Driver {
    struct Piece {
        std::uint64_t bytes = 0;
        int handles = 0;
        int mappings = 0;
    };

    struct Mapping {
        std::uint64_t address = 0;
        std::size_t piece = 0;
    };

    std::vector<Piece> pieces;
    std::vector<std::pair<std::uint64_t, std::size_t>> handles;  // and the piece that it maps
    std::vector<Mapping> mappings;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> linear;  // address, bytes
    std::vector<std::pair<std::uint64_t, std::uint64_t>> arrays;
    std::uint64_t graphs = 0;

    [[nodiscard]] std::uint64_t held() const {
        std::uint64_t sum = graphs;
        for (const Piece& piece : pieces) {
            sum += piece.handles + piece.mappings != 0 ? piece.bytes : 0;
        }
        for (const auto& [address, bytes] : linear) {
            sum += bytes;
        }
        for (const auto& [handle, bytes] : arrays) {
            sum += bytes;
        }
        return sum;
    }
};

class RandomProgram {
  public:
    explicit RandomProgram(unsigned seed) : random_(seed) {}

    void step() {
        switch (random_() % 24) {
            case 0:
                reset();
                break;
            case 1:
            case 2:
                driver_.graphs = random_() % 4 * kMiB;
                add(EventKind::kGraphMemory, 0, driver_.graphs / 2, driver_.graphs);
                break;
            default:
                random_() % 2 == 0 ? allocate() : give_back();
        }
    }

    Events events;
    std::vector<std::uint64_t> held;  // after each event

  private:
    void add(EventKind kind,
             std::uint64_t address,
             std::uint64_t size = 0,
             std::uint64_t extra = 0) {
        events.add(kind, address, size, extra);
        held.push_back(driver_.held());
    }

    // A new handle. It may equal the handle of released memory that is still mapped.
    std::uint64_t fresh_handle() {
        for (std::uint64_t handle = 0x40;; handle += 0x40) {
            bool used = false;
            for (const auto& [other, piece] : driver_.handles) {
                used = used || other == handle;
            }
            if (!used) {
                return handle;
            }
        }
    }

    void allocate() {
        const std::uint64_t bytes = (1 + random_() % 8) * 2 * kMiB;
        next_ += 64 * kMiB;
        switch (random_() % 4) {
            case 0:
                driver_.linear.emplace_back(next_, bytes);
                return add(EventKind::kDeviceAlloc, next_, bytes);
            case 1:
                driver_.arrays.emplace_back(next_ + 1, bytes);
                return add(EventKind::kArrayAlloc, next_ + 1, bytes);
            case 2: {
                const std::uint64_t handle = fresh_handle();
                driver_.handles.emplace_back(handle, driver_.pieces.size());
                driver_.pieces.push_back({bytes, 1, 0});
                return add(EventKind::kPhysicalCreate, handle, bytes);
            }
            default:
                if (!driver_.handles.empty()) {
                    const auto& [handle, piece] =
                        driver_.handles[random_() % driver_.handles.size()];
                    driver_.mappings.push_back({next_, piece});
                    ++driver_.pieces[piece].mappings;
                    add(EventKind::kMap, next_, driver_.pieces[piece].bytes, handle);
                }
        }
    }

    template <typename List>
    auto take(List* list) {
        const std::size_t at = random_() % list->size();
        const auto taken = (*list)[at];
        list->erase(list->begin() + static_cast<std::ptrdiff_t>(at));
        return taken;
    }

    void give_back() {
        switch (random_() % 4) {
            case 0:
                if (!driver_.linear.empty()) {
                    add(EventKind::kDeviceFree, take(&driver_.linear).first);
                }
                return;
            case 1:
                if (!driver_.arrays.empty()) {
                    add(EventKind::kArrayFree, take(&driver_.arrays).first);
                }
                return;
            case 2:
                if (!driver_.handles.empty()) {
                    const auto [handle, piece] = take(&driver_.handles);
                    --driver_.pieces[piece].handles;
                    add(EventKind::kPhysicalRelease, handle);
                }
                return;
            default:
                if (!driver_.mappings.empty()) {
                    const Driver::Mapping mapping = take(&driver_.mappings);
                    --driver_.pieces[mapping.piece].mappings;
                    add(EventKind::kUnmap, mapping.address, driver_.pieces[mapping.piece].bytes);
                }
        }
    }

    void reset() {
        driver_ = {};
        add(EventKind::kDeviceReset, 0);
    }

    std::mt19937 random_;
    Driver driver_;
    std::uint64_t next_ = kBase;
};

}  // namespace

TEST_CASE("without a pool, state, replay and pairing agree on the live memory", "[replay]") {
    for (unsigned seed = 0; seed < 50; ++seed) {
        RandomProgram program(seed);
        for (int i = 0; i < 200; ++i) {
            program.step();
        }
        Timeline& timeline = program.events.timeline;
        pair_events(&timeline);
        REQUIRE(timeline.damage.notes.empty());
        const auto count = static_cast<EventIndex>(timeline.events.size());

        // Computed from the pairs.
        std::vector<std::uint64_t> by_ends(count, 0);
        for (EventIndex i = 0; i < count; ++i) {
            if (is_device_allocation(timeline.events.kind(i))) {
                for (EventIndex at = i; at < std::min(count, timeline.partner[i]); ++at) {
                    by_ends[at] += device_bytes(timeline.events[i]);
                }
            }
        }
        CHECK(by_ends == program.held);

        // Computed from the recorded state.
        RecordedState state(timeline);
        std::vector<std::uint64_t> recorded;
        std::uint64_t peak = 0;
        for (EventIndex i = 0; i < count; ++i) {
            state.advance();
            const MemoryTotals& totals = state.totals(0);
            recorded.push_back(totals.own);
            peak = std::max(peak, totals.allocated);
            CHECK((totals.reserved == totals.own && totals.allocated == totals.own &&
                   totals.other == 0));
        }
        CHECK(recorded == program.held);
        CHECK(state.violations().count == 0);

        // Computed by a replay.
        const ReplayScript script = make_script(timeline, 0);
        REQUIRE(script.source == ScriptSource::kDeviceLayer);
        const auto pool = make_pool(
            "none",
            "",
            std::make_unique<FixedDevice>(1024 * 1024 * kMiB, 1024 * 1024 * kMiB, 2 * kMiB));
        REQUIRE(pool.ok());
        const ReplayResult result = replay(script, **pool);
        CHECK(result.statistics.allocated.peak == peak);
        CHECK(result.statistics.allocated.current == program.held.back());
    }
}
