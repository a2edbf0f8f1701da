#include "analyzer/trace/pairing.h"

#include "analyzer/model/contexts.h"
#include "analyzer/model/pair_map.h"
#include "analyzer/model/physical_memory.h"
#include "analyzer/trace/gap_balance.h"
#include "analyzer/trace/pairing_defects.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

class EventPairing::State {
  public:
    explicit State(Timeline* timeline) : timeline_(*timeline), defects_(timeline), gaps_(timeline) {
        timeline_.partner = {};
    }

    void advance() {
        const std::size_t first = timeline_.partner.size();
        const std::size_t end = timeline_.events.size();
        while (timeline_.partner.size() < end) {
            const std::size_t count =
                std::min(end - timeline_.partner.size(), timeline_.partner.room());
            std::fill_n(timeline_.partner.grow(count), count, kNoEvent);
        }
        timeline_.events.for_each_address(
            first, end, [this](std::size_t at, EventKind kind, DeviceAddress address, DeviceId on) {
                const auto index = static_cast<EventIndex>(at);
                if (kind == EventKind::kBlockAlloc) {
                    block_alloc(index, address, on);
                } else if (kind != EventKind::kBlockFree || !block_free(index, address, on)) {
                    visit(index);
                }
            });
    }

    void undo() {
        for (const EventIndex event : device_from_partner_) {
            timeline_.events.set_device(event, kUnknownDevice);
        }
        timeline_.partner = {};
    }

    void finish() {
        gaps_.settle_times();
        defects_.finish();
    }

  private:
    void visit(EventIndex index) {
        const EventTable& events = timeline_.events;
        switch (events.kind(index)) {
            case EventKind::kImport:
                physical_.import(events.address(index));
                break;
            case EventKind::kImportEnd:
                physical_.import_end(events.address(index));
                break;
            case EventKind::kContextCreate:
                contexts_.created(events.device(index), events.address(index));
                break;
            case EventKind::kContextDestroy:
                return context_destroy(index);
            case EventKind::kGraphMemory:
                return graph_memory(index);
            case EventKind::kPhysicalCreate:
                return physical_create(index);
            case EventKind::kPhysicalRetain:
                return physical_retain(index);
            case EventKind::kPhysicalRelease:
                return physical_release(index);
            case EventKind::kMap:
                return map(index);
            case EventKind::kUnmap:
                return unmap(index);
            case EventKind::kDeviceReset:
                contexts_.reset(events.device(index));
                return reset(events.device(index), index);
            case EventKind::kRecordingStarted:
                defects_.set_after_gap(true);
                return;
            case EventKind::kCheckpointBegin:
                return begin_checkpoint(index);
            case EventKind::kCheckpointEnd:
                return end_checkpoint(index);
            case EventKind::kPoolRewind:
                return rewind(index);
            case EventKind::kProgramBlockAlloc:
                return program_block_alloc(index);
            case EventKind::kProgramBlockFree:
                return program_block_free(index);
            case EventKind::kProgramPoolEnd:
                return program_pool_end(index);
            default:
                break;
        }
        const EventEffect effect = info_of(events.kind(index)).effect;
        if (effect.begins != Thing::kNone) {
            begin(effect.begins, index);
        } else if (effect.ends != Thing::kNone) {
            end(effect.ends, index);
        }
    }

    PairMap& live(Thing thing) { return live_[static_cast<std::size_t>(thing)]; }

    void begin(Thing thing, EventIndex index) {
        begin(thing, index, timeline_.events.address(index), timeline_.events.device(index));
    }

    void begin(Thing thing, EventIndex index, DeviceAddress address, DeviceId device) {
        if (gaps_.telling() && (thing == Thing::kDevice || thing == Thing::kBlock)) {
            gaps_.told(thing == Thing::kBlock ? GapBalance::kPool : GapBalance::kDriver, index);
        }
        const std::uint32_t former = live(thing).set(address, device, index);
        if (former == PairMap::kAbsent || !is_strict(thing)) {
            return;
        }
        // Allocations do not name their context. If an address is allocated again, the former
        // allocation must have been in a context that was destroyed in the meantime.
        if (const EventIndex destroyed = contexts_.last_destroyed(device);
            thing == Thing::kDevice && destroyed != kNoEvent && former < destroyed) {
            timeline_.partner[former] = destroyed;
            return;
        }
        defects_.over_live(index, former);
    }

    void end(Thing thing, EventIndex index) {
        const DeviceAddress address = timeline_.events.address(index);
        EventIndex alloc = live(thing).take(address, timeline_.events.device(index));
        if (alloc == PairMap::kAbsent) {
            alloc = take_of_other_device(thing, timeline_.events[index]);
        }
        if (alloc == PairMap::kAbsent) {
            if (address != 0 && is_strict(thing)) {
                defects_.without_alloc(index);
            }
            return;
        }
        join(alloc, index);
    }

    // Addresses are unique in a process, so an event without a device can still be paired.
    EventIndex take_of_other_device(Thing thing, const Event& event) {
        if (event.device != kUnknownDevice) {
            return live(thing).take(event.address, kUnknownDevice);
        }
        for (std::uint32_t device = 0; device < kMaxDevices; ++device) {
            const EventIndex alloc = live(thing).take(event.address, device);
            if (alloc != PairMap::kAbsent) {
                return alloc;
            }
        }
        return PairMap::kAbsent;
    }

    void join(EventIndex alloc, EventIndex free) {
        timeline_.partner[alloc] = free;
        timeline_.partner[free] = alloc;
        tell_device(alloc, free);
    }

    void tell_device(EventIndex alloc, EventIndex free) {
        const DeviceId first = timeline_.events.device(alloc);
        const DeviceId second = timeline_.events.device(free);
        if (first == second) {
            return;
        }
        if (second == kUnknownDevice) {
            timeline_.events.set_device(free, first);
            device_from_partner_.push_back(free);
        } else if (first == kUnknownDevice) {
            timeline_.events.set_device(alloc, second);
            device_from_partner_.push_back(alloc);
        }
    }

    // Returns a callback that pairs physical memory with the event that ends it: its last release
    // or its last unmap. If only a mapping of it was recorded, the mapping has its unmap as partner
    // already.
    auto ends_here(EventIndex index) {
        return [this, index](const PhysicalPiece& piece) {
            timeline_.partner[piece.created_by] = index;
        };
    }

    void map(EventIndex index) {
        physical_.map(
            timeline_.events[index],
            index,
            [&](const PhysicalMemory::Mapping& former) {
                defects_.over_live(index, former.mapped_by);
            },
            ends_here(index));
    }

    // One unmap may end several maps. It becomes the partner of each; its own partner is the first.
    void unmap(EventIndex index) {
        const Event event = timeline_.events[index];
        bool found = false;
        physical_.unmap(
            event.address,
            event.size_bytes,
            [&](DeviceAddress, const PhysicalMemory::Mapping& mapping) {
                if (found) {
                    timeline_.partner[mapping.mapped_by] = index;
                } else {
                    join(mapping.mapped_by, index);
                }
                found = true;
            },
            ends_here(index));
        if (!found) {
            defects_.without_alloc(index);
        }
    }

    // Ends everything on the device. `index` becomes the partner of each allocation, but has no
    // partner itself.
    void reset(DeviceId device, EventIndex index) {
        const auto end_here = [&](EventIndex alloc) {
            if (timeline_.events.device(alloc) == device) {
                timeline_.partner[alloc] = index;
            }
        };
        for (PairMap& table : live_) {
            table.for_each(end_here);
            table.remove_minor(device);
        }
        physical_.reset(
            device,
            [&](DeviceAddress, const PhysicalMemory::Mapping& mapping) {
                timeline_.partner[mapping.mapped_by] = index;
            },
            ends_here(index));
        end_graphs(device, index);
    }

    void graph_memory(EventIndex index) {
        const Event& event = timeline_.events[index];
        if (event.extra != kUnknown64) {
            end_graphs(event.device, index);
            graphs_[event.device] = index;
        }
    }

    void end_graphs(DeviceId device, EventIndex index) {
        if (const auto former = graphs_.find(device); former != graphs_.end()) {
            timeline_.partner[former->second] = index;
            graphs_.erase(former);
        }
    }

    // A fast path, because nearly all events of most traces are block_alloc or block_free.
    void block_alloc(EventIndex index, DeviceAddress address, DeviceId device) {
        begin(Thing::kBlock, index, address, device);
        if (timeline_.event_pools.empty()) {
            return;
        }
        if (const std::uint32_t pool = timeline_.event_pools.at(index, &pool_cursor_)) {
            of_pool_[pool].push_back(index);
        }
    }

    // Returns false if no block at the address is live on this device.
    bool block_free(EventIndex index, DeviceAddress address, DeviceId device) {
        const EventIndex alloc = live(Thing::kBlock).take(address, device);
        if (alloc == PairMap::kAbsent) {
            return false;
        }
        timeline_.partner[alloc] = index;
        timeline_.partner[index] = alloc;
        return true;
    }

    // A rewind sets a pool to a checkpoint: its blocks end here without a free call of the program.
    void rewind(EventIndex index) {
        const auto blocks = of_pool_.find(timeline_.event_pools.at(index, &pool_cursor_));
        if (blocks == of_pool_.end()) {
            return;
        }
        const std::uint32_t device = timeline_.events[index].device;
        std::vector<EventIndex> elsewhere;
        for (const EventIndex block : blocks->second) {
            const Event& event = timeline_.events[block];
            if (device != kUnknownDevice && device != event.device) {
                elsewhere.push_back(block);
            } else if (live(Thing::kBlock).find(event.address, event.device) == block) {
                live(Thing::kBlock).take(event.address, event.device);
                timeline_.partner[block] = index;
            }
        }
        blocks->second = std::move(elsewhere);
    }

    void program_block_alloc(EventIndex index) {
        auto& blocks = program_blocks_[timeline_.event_pools.at(index, &pool_cursor_)];
        const auto [block, is_new] = blocks.try_emplace(timeline_.events.address(index), index);
        if (!is_new) {
            defects_.over_live(index, block->second);
            block->second = index;
        }
    }

    void program_block_free(EventIndex index) {
        const auto pool = program_blocks_.find(timeline_.event_pools.at(index, &pool_cursor_));
        if (pool == program_blocks_.end()) {
            return defects_.without_alloc(index);
        }
        const auto block = pool->second.find(timeline_.events.address(index));
        if (block == pool->second.end()) {
            return defects_.without_alloc(index);
        }
        timeline_.partner[block->second] = index;
        timeline_.partner[index] = block->second;
        pool->second.erase(block);
    }

    void program_pool_end(EventIndex index) {
        const auto pool = program_blocks_.find(timeline_.event_pools.at(index, &pool_cursor_));
        if (pool == program_blocks_.end()) {
            return;
        }
        for (const auto& [address, alloc] : pool->second) {
            timeline_.partner[alloc] = index;
        }
        program_blocks_.erase(pool);
    }

    void physical_create(EventIndex index) {
        const Event& event = timeline_.events[index];
        if (const auto former = physical_.of_handle(event.address);
            former != PhysicalMemory::kNone) {
            defects_.over_live(index, physical_.piece(former).created_by);
        }
        physical_.create(event, index, ends_here(index));
    }

    void physical_retain(EventIndex index) {
        const DeviceAddress handle = timeline_.events.address(index);
        if (!physical_.retain(handle)) {
            ++retains_[handle];
        }
    }

    // A retained handle needs one more release per retain; this also applies to imported handles.
    // The partner of a release is the creation, even if mappings keep the memory alive.
    void physical_release(EventIndex index) {
        const Event event = timeline_.events[index];
        if (const auto number = physical_.of_handle(event.address);
            number != PhysicalMemory::kNone) {
            const EventIndex created = physical_.piece(number).created_by;
            if (physical_.piece(number).releases == 1) {
                timeline_.partner[index] = created;
                tell_device(created, index);
            }
            physical_.release(event.address, ends_here(index));
            return;
        }
        const auto retained = retains_.find(event.address);
        if (retained != retains_.end()) {
            if (--retained->second == 0) {
                retains_.erase(retained);
            }
            return;
        }
        physical_.import_end(event.address);
        if (live(Thing::kImport).find(event.address, event.device) != PairMap::kAbsent) {
            end(Thing::kImport, index);
        } else if (event.address != 0) {
            defects_.without_alloc(index);
        }
    }

    void context_destroy(EventIndex index) {
        const Event event = timeline_.events[index];
        end(Thing::kContext, index);
        if (contexts_.destroyed(event.device, event.address, index)) {
            reset(event.device, index);
        }
    }

    // A checkpoint lists the whole state again. Earlier allocations end here, and continue as the
    // allocations that the checkpoint lists.
    void begin_checkpoint(EventIndex index) {
        const auto end_here = [this, index](EventIndex alloc) { timeline_.partner[alloc] = index; };
        for (const PairMap& table : live_) {
            table.for_each(end_here);
        }
        for (const auto& [pool, blocks] : program_blocks_) {
            for (const auto& [address, alloc] : blocks) {
                end_here(alloc);
            }
        }
        for (const auto& [device, event] : graphs_) {
            end_here(event);
        }
        physical_.for_each_mapping(
            [&](const PhysicalMemory::Mapping& mapping) { end_here(mapping.mapped_by); });
        physical_.for_each([&](const PhysicalPiece& piece) { end_here(piece.created_by); });
        gaps_.begin(index, std::move(live(Thing::kDevice)), std::move(live(Thing::kBlock)));
        for (PairMap& table : live_) {
            table = PairMap();
        }
        program_blocks_.clear();
        physical_.clear();
        graphs_.clear();
        of_pool_.clear();
        retains_.clear();
        contexts_ = {};
        defects_.set_after_gap(false);
    }

    void end_checkpoint(EventIndex index) { gaps_.end(index, live(Thing::kBlock).size() != 0); }

    Timeline& timeline_;
    std::vector<EventIndex> device_from_partner_;  // events with the device of their partner
    PairingDefects defects_;
    GapBalance gaps_;
    PairMap live_[static_cast<std::size_t>(Thing::kPairs)];
    // By pool, then by address: pools of the program may lie inside each other.
    std::map<std::uint32_t, std::map<DeviceAddress, EventIndex>> program_blocks_;
    Contexts contexts_;
    std::unordered_map<DeviceAddress, std::uint64_t> retains_;  // by imported handle
    PhysicalMemory physical_;
    std::unordered_map<DeviceId, EventIndex> graphs_;  // latest kGraphMemory of each device
    // Blocks allocated from each private pool since its last rewind.
    std::unordered_map<std::uint32_t, std::vector<EventIndex>> of_pool_;
    std::size_t pool_cursor_ = 0;
};

EventPairing::EventPairing(Timeline* timeline) : state_(std::make_unique<State>(timeline)) {}

EventPairing::~EventPairing() = default;

void EventPairing::advance() {
    state_->advance();
}

void EventPairing::undo() {
    state_->undo();
}

void EventPairing::finish() {
    state_->finish();
}

void pair_events(Timeline* timeline) {
    EventPairing pairing(timeline);
    pairing.advance();
    pairing.finish();
}

}  // namespace fragtrace::analyzer
