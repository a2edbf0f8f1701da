// Compares the live table with a model of plain maps: the live allocations after any sequence of
// events.
#include "recorder/live_table.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <tuple>
#include <vector>

using namespace fragtrace;
using preload::LiveTable;

namespace {

using Kind = EventKind;
// Sequence number and kind, which identify the events of a checkpoint.
using Held = std::vector<std::pair<uint64_t, int>>;

// The live allocations in the simplest form: every allocation event, by its address or handle.
struct Model {
    struct Waiting {
        EventRecord free;
        std::map<uint64_t, EventRecord> events;
    };

    std::map<uint64_t, EventRecord> device, host, arrays, blocks, mappings, contexts;
    std::map<uint64_t, std::vector<EventRecord>> physical;  // with its retains
    std::map<uint64_t, Waiting> waiting;                    // by block
    std::map<uint64_t, uint64_t> labels;                    // by sequence number of the block
    std::map<uint32_t, std::vector<EventRecord>> ranges;    // by thread

    template <typename Map>
    static void drop(Map* map, uint16_t device) {
        std::erase_if(*map, [&](const auto& entry) { return entry.second.device == device; });
    }

    void reset(uint16_t of) {
        for (auto* map : {&device, &host, &arrays, &blocks, &mappings, &contexts}) {
            drop(map, of);
        }
        std::erase_if(physical, [&](const auto& entry) { return entry.second[0].device == of; });
        std::erase_if(waiting, [&](const auto& entry) { return !blocks.contains(entry.first); });
    }

    void complete(uint64_t handle) {
        for (auto& [block, wait] : waiting) {
            if (wait.events.erase(handle) != 0 && wait.events.empty()) {
                blocks.erase(block);
                waiting.erase(block);
                return;
            }
        }
    }

    void apply(const EventRecord& e) {
        switch (e.kind) {
            case Kind::kDeviceAlloc:
            case Kind::kManagedAlloc:
            case Kind::kAsyncAlloc:
                device[e.address] = e;
                break;
            case Kind::kDeviceFree:
            case Kind::kAsyncFree:
                device.erase(e.address);
                break;
            case Kind::kHostAlloc:
                host[e.address] = e;
                break;
            case Kind::kHostFree:
                host.erase(e.address);
                break;
            case Kind::kArrayAlloc:
                arrays[e.address] = e;
                break;
            case Kind::kArrayFree:
                arrays.erase(e.address);
                break;
            case Kind::kPhysicalCreate:
                physical[e.address] = {e};
                break;
            case Kind::kPhysicalRetain:
                if (physical.contains(e.address)) {
                    EventRecord retain = physical[e.address][0];
                    retain.kind = Kind::kPhysicalRetain;
                    physical[e.address].push_back(retain);
                }
                break;
            case Kind::kPhysicalRelease:
                if (physical.contains(e.address)) {
                    physical[e.address].pop_back();
                    std::erase_if(physical, [](const auto& entry) { return entry.second.empty(); });
                }
                break;
            case Kind::kMap:
                mappings[e.address] = e;
                break;
            case Kind::kUnmap:
                std::erase_if(mappings, [&](const auto& entry) {
                    return entry.first >= e.address && entry.first < e.address + e.size;
                });
                break;
            case Kind::kBlockAlloc:
                waiting.erase(e.address);
                blocks[e.address] = e;
                break;
            case Kind::kBlockLabel:
                if (blocks.contains(e.address)) {
                    labels[blocks[e.address].sequence] = e.size;
                }
                break;
            case Kind::kBlockFree:
                waiting.erase(e.address);
                if ((e.flags & kFlagPending) == 0) {
                    blocks.erase(e.address);
                } else if (blocks.contains(e.address)) {
                    waiting[e.address] = {e, {}};
                }
                break;
            case Kind::kPendingEvent:
                complete(e.extra);
                if (waiting.contains(e.address)) {
                    waiting[e.address].events[e.extra] = e;
                }
                break;
            case Kind::kEventComplete:
                complete(e.extra);
                break;
            case Kind::kPoolRewind:
                std::erase_if(blocks, [&](const auto& entry) {
                    return entry.second.pool == e.pool && entry.second.device == e.device;
                });
                std::erase_if(waiting,
                              [&](const auto& entry) { return !blocks.contains(entry.first); });
                break;
            case Kind::kContextCreate:
                contexts[e.address] = e;
                break;
            case Kind::kContextDestroy:
                contexts.erase(e.address);
                if (std::none_of(contexts.begin(), contexts.end(), [&](const auto& entry) {
                        return entry.second.device == e.device;
                    })) {
                    reset(e.device);
                }
                break;
            case Kind::kDeviceReset:
                reset(e.device);
                break;
            case Kind::kRangeBegin:
                ranges[e.thread].push_back(e);
                break;
            case Kind::kRangeEnd: {
                auto& open = ranges[e.thread];
                const auto found = std::find_if(open.rbegin(), open.rend(), [&](const auto& begun) {
                    return begun.size == e.size && begun.extra == e.extra;
                });
                if (found != open.rend()) {
                    open.erase(std::next(found).base());
                }
                break;
            }
            case Kind::kRecordingStopped:
                ranges.clear();
                break;
            default:
                break;
        }
    }

    [[nodiscard]] Held held() const {
        Held all;
        const auto add = [&all](const EventRecord& e) {
            all.emplace_back(e.sequence, static_cast<int>(e.kind));
        };
        for (const auto* map : {&device, &host, &arrays, &blocks, &mappings, &contexts}) {
            for (const auto& entry : *map) {
                add(entry.second);
            }
        }
        for (const auto& [address, block] : blocks) {
            const auto label = labels.find(block.sequence);
            if (label != labels.end() && label->second != 0) {
                all.emplace_back(block.sequence, static_cast<int>(Kind::kBlockLabel));
            }
        }
        for (const auto& entry : physical) {
            std::for_each(entry.second.begin(), entry.second.end(), add);
        }
        for (const auto& entry : waiting) {
            add(entry.second.free);
            for (const auto& event : entry.second.events) {
                add(event.second);
            }
        }
        for (const auto& entry : ranges) {
            std::for_each(entry.second.begin(), entry.second.end(), add);
        }
        std::sort(all.begin(), all.end());
        return all;
    }
};

std::vector<EventRecord> copy_of(const LiveTable& table) {
    std::vector<EventRecord> events(table.event_count());
    table.copy_to(events.data());
    return events;
}

Held held_by(const LiveTable& table) {
    Held all;
    for (const EventRecord& event : copy_of(table)) {
        all.emplace_back(event.sequence, static_cast<int>(event.kind));
    }
    std::sort(all.begin(), all.end());
    return all;
}

// The driver's report of a card that nobody else uses.
constexpr uint64_t kCardBytes = uint64_t{1} << 40;

EventRecord report_of(const Model& model, uint16_t device, uint64_t sequence) {
    EventRecord report{};
    report.sequence = sequence;
    report.kind = Kind::kMemoryInfo;
    report.device = device;
    report.size = kCardBytes;
    report.extra = kCardBytes;
    const auto holds = [&](const EventRecord& event) {
        if (event.device == device && event.kind != Kind::kManagedAlloc) {
            report.size -= event.size;
        }
    };
    for (const auto* map : {&model.device, &model.arrays}) {
        for (const auto& entry : *map) {
            holds(entry.second);
        }
    }
    for (const auto& entry : model.physical) {
        holds(entry.second[0]);
    }
    return report;
}

class Source {
  public:
    explicit Source(uint32_t seed) : random_(seed) {}

    EventRecord next() {
        static constexpr Kind kKinds[] = {Kind::kDeviceAlloc,
                                          Kind::kManagedAlloc,
                                          Kind::kAsyncAlloc,
                                          Kind::kDeviceFree,
                                          Kind::kAsyncFree,
                                          Kind::kHostAlloc,
                                          Kind::kHostFree,
                                          Kind::kArrayAlloc,
                                          Kind::kArrayFree,
                                          Kind::kPhysicalCreate,
                                          Kind::kPhysicalRetain,
                                          Kind::kPhysicalRelease,
                                          Kind::kMap,
                                          Kind::kMap,
                                          Kind::kUnmap,
                                          Kind::kBlockAlloc,
                                          Kind::kBlockAlloc,
                                          Kind::kBlockAlloc,
                                          Kind::kBlockLabel,
                                          Kind::kBlockFree,
                                          Kind::kPendingEvent,
                                          Kind::kPendingEvent,
                                          Kind::kEventComplete,
                                          Kind::kRangeBegin,
                                          Kind::kRangeEnd,
                                          Kind::kContextCreate};
        static constexpr Kind kRare[] = {
            Kind::kPoolRewind, Kind::kContextDestroy, Kind::kDeviceReset, Kind::kRecordingStopped};
        EventRecord event{};
        event.sequence = ++sequence_;
        event.kind = below(200) == 0 ? kRare[below(4)] : kKinds[below(std::size(kKinds))];
        // Few addresses that are used again and again. Device, pool and thread follow from the
        // address.
        const uint32_t place = below(300);
        event.device = static_cast<uint16_t>(place % 2);
        event.pool = place % 3;
        event.thread = 1 + place % 4;
        event.address = (uint64_t{place} + 1) << 12;
        event.size = 1 << 12;
        switch (event.kind) {
            case Kind::kUnmap:
                event.size = uint64_t{1 + below(3)} << 12;
                break;
            case Kind::kBlockLabel:
                event.size = below(4);
                event.pool = 0;  // only labels of the program's pools name a pool
                break;
            case Kind::kBlockFree:
                event.flags = below(2) == 0 ? kFlagPending : 0;
                break;
            case Kind::kPendingEvent:
            case Kind::kEventComplete:
                event.extra = 1 + below(200);
                break;
            case Kind::kRangeBegin:
            case Kind::kRangeEnd:
                event.address = 0;
                event.size = 1 + below(3);
                event.extra = below(2);
                break;
            case Kind::kContextCreate:
            case Kind::kContextDestroy:
                event.address = 1 + event.device + 2 * below(2);
                break;
            default:
                break;
        }
        return event;
    }

  private:
    uint32_t below(size_t end) { return static_cast<uint32_t>(random_() % end); }

    std::mt19937 random_;
    uint64_t sequence_ = 0;
};

}  // namespace

TEST_CASE("after any events the live table equals a model of plain maps") {
    for (uint32_t seed = 1; seed <= 20; ++seed) {
        LiveTable table;
        REQUIRE(table.create());
        Model model;
        Source source(seed);
        for (int i = 0; i < 4000; ++i) {
            const EventRecord event = source.next();
            table.fetch(event, event);
            table.apply(event);
            model.apply(event);
            if (i % 50 == 0 || event.kind == Kind::kDeviceReset ||
                event.kind == Kind::kPoolRewind) {
                INFO("seed " << seed << ", event " << event.sequence << ", kind "
                             << static_cast<int>(event.kind));
                const Held held = held_by(table);
                const Held expected = model.held();
                Held too_much, missing;
                std::set_difference(held.begin(),
                                    held.end(),
                                    expected.begin(),
                                    expected.end(),
                                    std::back_inserter(too_much));
                std::set_difference(expected.begin(),
                                    expected.end(),
                                    held.begin(),
                                    held.end(),
                                    std::back_inserter(missing));
                REQUIRE(too_much == Held{});
                REQUIRE(missing == Held{});
            }
        }
        CHECK(table.lost() == 0);
        table.abandon();
    }
}

TEST_CASE("a label directly follows its block, and a later label replaces it") {
    LiveTable table;
    REQUIRE(table.create());
    EventRecord block{};
    block.kind = Kind::kBlockAlloc;
    block.sequence = 1;
    block.address = 4096;
    block.size = block.extra = 512;
    block.native_stack = 7;
    block.thread = 3;
    table.apply(block);
    block.sequence = 2;
    block.address = 8192;
    table.apply(block);
    EventRecord label{};
    label.kind = Kind::kBlockLabel;
    label.address = 4096;
    label.device = kDeviceUnknown;
    for (label.sequence = 3; label.sequence <= 4; ++label.sequence) {
        label.size = label.sequence;
        table.apply(label);
    }
    label.address = 1 << 20;  // no block
    table.apply(label);
    const std::vector<EventRecord> copy = copy_of(table);
    REQUIRE(copy.size() == 3);
    CHECK(copy[0].kind == Kind::kBlockAlloc);
    CHECK(copy[1].kind == Kind::kBlockLabel);
    CHECK(copy[1].address == 4096);
    CHECK(copy[1].size == 4);
    CHECK(copy[1].extra == 0);
    CHECK(copy[1].native_stack == 0);
    CHECK(copy[1].device == 0);
    CHECK(copy[2].address == 8192);
    block.address = 4096;  // another block at the same place has no label
    block.sequence = 9;
    table.apply(block);
    CHECK(copy_of(table).size() == 2);
    table.abandon();
}

TEST_CASE("the report of free memory is updated and follows all live allocations") {
    for (uint32_t seed = 1; seed <= 10; ++seed) {
        LiveTable table;
        REQUIRE(table.create());
        Model model;
        Source source(seed);
        for (int i = 0; i < 2000; ++i) {
            EventRecord event = source.next();
            if (i == 0 || i % 97 == 0) {
                event = report_of(model, static_cast<uint16_t>(i % 2), event.sequence);
            }
            table.apply(event);
            model.apply(event);
            if (i % 20 != 0) {
                continue;
            }
            std::vector<EventRecord> copy = copy_of(table);
            const size_t reports = i < 97 ? 1 : 2;  // of both devices
            REQUIRE(copy.size() >= reports);
            for (const EventRecord& report : std::vector<EventRecord>(
                     copy.end() - static_cast<std::ptrdiff_t>(reports), copy.end())) {
                INFO("seed " << seed << ", event " << event.sequence);
                REQUIRE(report.kind == Kind::kMemoryInfo);
                REQUIRE(report.address == 0);
                REQUIRE(report.flags == kFlagByPool);
                REQUIRE(report.extra == kCardBytes);
                REQUIRE(report.size == report_of(model, report.device, 0).size);
            }
        }
        table.abandon();
    }
}

TEST_CASE("a memory report that overlaps another thread's call replaces no better report") {
    LiveTable table;
    REQUIRE(table.create());
    EventRecord report{};
    report.kind = Kind::kMemoryInfo;
    for (const auto& [size, flags, kept] : {std::tuple{1, kFlagUnsettled, 1},
                                            std::tuple{2, kFlagUnsettled, 2},
                                            std::tuple{3, kFlagByPool, 3},
                                            std::tuple{4, kFlagUnsettled, 3},
                                            std::tuple{5, kFlagByPool, 5}}) {
        report.size = static_cast<uint64_t>(size);
        report.flags = static_cast<uint8_t>(flags);
        table.apply(report);
        REQUIRE(copy_of(table).size() == 1);
        CHECK(copy_of(table)[0].size == static_cast<uint64_t>(kept));
    }
    table.abandon();
}

TEST_CASE("a million blocks are listed in order and disappear once they are freed") {
    constexpr uint64_t kBlocks = 1'000'000;
    LiveTable table;
    REQUIRE(table.create());
    EventRecord event{};
    for (event.sequence = 1; event.sequence <= kBlocks; ++event.sequence) {
        event.kind = Kind::kBlockAlloc;
        event.address = event.sequence * 512;
        table.apply(event);
    }
    const std::vector<EventRecord> events = copy_of(table);
    REQUIRE(events.size() == kBlocks);
    CHECK(std::is_sorted(events.begin(), events.end(), [](const auto& a, const auto& b) {
        return a.sequence < b.sequence;
    }));
    CHECK(table.size_bytes() <= kBlocks * 110);
    for (uint64_t number = 1; number <= kBlocks; ++number) {
        event.kind = Kind::kBlockFree;
        event.address = number * 512;
        table.apply(event);
    }
    CHECK(table.event_count() == 0);
    CHECK(table.size_bytes() <= 1 << 20);
    table.abandon();
}

TEST_CASE("imported memory is retained and released like own memory") {
    LiveTable table;
    REQUIRE(table.create());
    EventRecord event{};
    for (const Kind kind : {Kind::kImport, Kind::kPhysicalRetain, Kind::kPhysicalRelease}) {
        ++event.sequence;
        event.kind = kind;
        event.address = 7;
        table.apply(event);
        CHECK(table.event_count() == (kind == Kind::kPhysicalRetain ? 2 : 1));
    }
    table.apply(event);
    CHECK(table.event_count() == 0);
    table.abandon();
}

TEST_CASE("a segment's stream comes from its own first block") {
    LiveTable table;
    REQUIRE(table.create());
    EventRecord event{};
    event.flags = kFlagFromAllocator;
    event.stream = kStreamUnknown;
    event.kind = Kind::kDeviceAlloc;
    event.size = 0x1000;
    for (const uint64_t address : {0x1000u, 0x5000u, 0x9000u}) {
        ++event.sequence;
        event.address = address;
        table.apply(event);
    }
    ++event.sequence;
    event.flags = 0;
    event.kind = Kind::kBlockAlloc;
    event.address = 0x5800;
    event.size = event.extra = 0x200;
    event.stream = 7;
    table.apply(event);
    const std::vector<EventRecord> copy = copy_of(table);
    REQUIRE(copy.size() == 4);
    CHECK(copy[0].stream == kStreamUnknown);
    CHECK(copy[1].stream == 7);
    CHECK(copy[2].stream == kStreamUnknown);
    table.abandon();
}

TEST_CASE("blocks of the program's pools are kept by address and pool, with their labels") {
    LiveTable table;
    REQUIRE(table.create());
    uint64_t sequence = 0;
    const auto apply = [&](Kind kind, uint64_t address, uint32_t pool, uint64_t size = 0) {
        EventRecord event{};
        event.sequence = ++sequence;
        event.kind = kind;
        event.address = address;
        event.size = size;
        event.extra = 512;
        event.pool = pool;
        event.device = kDeviceUnknown;
        table.apply(event);
    };
    apply(Kind::kProgramBlockAlloc, 0x1000, 2);
    apply(Kind::kProgramBlockAlloc, 0x1000, 3);  // a pool inside the other one
    apply(Kind::kProgramBlockAlloc, 0x2000, 3);
    apply(Kind::kBlockLabel, 0x1000, 3, 7);
    apply(Kind::kBlockLabel, 0x1000, 0, 8);  // a block of the framework: there is none
    EventRecord reset{};
    reset.kind = Kind::kDeviceReset;
    table.apply(reset);  // the pools free their blocks later
    std::vector<EventRecord> events = copy_of(table);
    REQUIRE(events.size() == 4);
    CHECK(events[0].pool == 2);
    CHECK(events[1].pool == 3);
    CHECK(events[2].kind == Kind::kBlockLabel);
    CHECK(events[2].pool == 3);
    CHECK(events[2].size == 7);
    apply(Kind::kProgramBlockFree, 0x1000, 2);
    apply(Kind::kProgramBlockFree, 0x2000, 2);  // not a block of this pool
    CHECK(copy_of(table).size() == 3);
    apply(Kind::kProgramPoolEnd, 0, 3);
    CHECK(copy_of(table).empty());
    table.abandon();
}

namespace {

EventRecord program_event(Kind kind, uint64_t sequence, uint32_t pool, uint64_t address = 0) {
    EventRecord event{};
    event.sequence = sequence;
    event.kind = kind;
    event.address = address;
    event.extra = 512;
    event.pool = pool;
    event.device = kDeviceUnknown;
    return event;
}

}  // namespace

TEST_CASE("after any blocks and ends of pools the live table equals a plain map") {
    LiveTable table;
    REQUIRE(table.create());
    std::map<std::pair<uint32_t, uint64_t>, uint64_t> model;  // sequence by pool and address
    std::mt19937 random(7);
    const auto below = [&random](uint32_t end) { return static_cast<uint32_t>(random() % end); };
    for (uint64_t sequence = 1; sequence <= 60000; ++sequence) {
        const uint32_t pool = 1 + below(4);
        const uint64_t address = uint64_t{1 + below(3000)} << 12;
        const uint32_t what = below(2000);
        if (what == 0) {
            table.apply(program_event(Kind::kProgramPoolEnd, sequence, pool));
            std::erase_if(model, [pool](const auto& entry) { return entry.first.first == pool; });
        } else if (what < 500) {
            table.apply(program_event(Kind::kProgramBlockFree, sequence, pool, address));
            model.erase({pool, address});
        } else {
            table.apply(program_event(Kind::kProgramBlockAlloc, sequence, pool, address));
            model[{pool, address}] = sequence;
        }
        if (sequence % 1000 == 0 || what == 0) {
            const std::vector<EventRecord> events = copy_of(table);
            REQUIRE(events.size() == model.size());
            for (const EventRecord& event : events) {
                const auto known = model.find({event.pool, event.address});
                REQUIRE(known != model.end());
                REQUIRE(known->second == event.sequence);
            }
        }
    }
    table.abandon();
}

TEST_CASE("the blocks of ended pools do not let the live table grow") {
    LiveTable table;
    REQUIRE(table.create());
    uint64_t sequence = 0;
    for (uint64_t block = 0; block < 1000; ++block) {
        table.apply(program_event(Kind::kProgramBlockAlloc, ++sequence, 2, (block + 1) << 12));
    }
    for (uint64_t round = 0; round < 1000; ++round) {
        for (uint64_t block = 0; block < 100; ++block) {
            const uint64_t address = (uint64_t{1} << 40) + ((round * 100 + block) << 12);
            table.apply(program_event(Kind::kProgramBlockAlloc, ++sequence, 3, address));
        }
        table.apply(program_event(Kind::kProgramPoolEnd, ++sequence, 3));
    }
    CHECK(copy_of(table).size() == 1000);
    CHECK(table.size_bytes() < 1 << 20);
    CHECK(table.lost() == 0);
    table.abandon();
}

TEST_CASE("a label does not reach a block whose pool has ended") {
    LiveTable table;
    REQUIRE(table.create());
    table.apply(program_event(Kind::kProgramBlockAlloc, 1, 2, 4096));
    table.apply(program_event(Kind::kProgramPoolEnd, 2, 2));
    EventRecord label = program_event(Kind::kBlockLabel, 3, 2, 4096);
    label.size = 7;
    table.apply(label);
    table.apply(program_event(Kind::kProgramBlockAlloc, 4, 2, 4096));  // without a label
    CHECK(copy_of(table).size() == 1);
    table.abandon();
}
