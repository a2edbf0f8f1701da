// A model of the live table: the live allocations as plain maps. Also random events for both.
#pragma once

#include "live/live_table.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <tuple>
#include <vector>

namespace fragtrace::preload {

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

inline std::vector<EventRecord> copy_of(const LiveTable& table) {
    std::vector<EventRecord> events(table.event_count());
    table.copy_to(events.data());
    return events;
}

inline Held held_by(const LiveTable& table) {
    Held all;
    for (const EventRecord& event : copy_of(table)) {
        all.emplace_back(event.sequence, static_cast<int>(event.kind));
    }
    std::sort(all.begin(), all.end());
    return all;
}

// The driver's report of a card that nobody else uses.
inline constexpr uint64_t kCardBytes = uint64_t{1} << 40;

inline EventRecord report_of(const Model& model, uint16_t device, uint64_t sequence) {
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

}  // namespace fragtrace::preload
