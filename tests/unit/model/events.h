// Events made by hand, for tests of the model.
#pragma once

#include "analyzer/model/timeline.h"

namespace fragtrace::testing {

// The event added last, so that tests can set more of its fields.
struct AddedEvent {
    analyzer::EventTable* events;

    void device(unsigned device) const {
        events->set_device(events->size() - 1, static_cast<analyzer::DeviceId>(device));
    }

    void stream(analyzer::StreamId stream) const {
        analyzer::Event event = events->back();
        event.stream = stream;
        events->set(events->size() - 1, event);
    }

    void origin(analyzer::OriginId origin) const {
        analyzer::Event event = events->back();
        event.origin = origin;
        events->set(events->size() - 1, event);
    }
};

struct Events {
    analyzer::Timeline timeline;

    AddedEvent add(EventKind kind,
                   std::uint64_t address = 0,
                   std::uint64_t size_bytes = 0,
                   std::uint64_t extra = 0,
                   unsigned flags = 0) {
        analyzer::Event event = {};
        event.kind = kind;
        event.address = address;
        event.size_bytes = size_bytes;
        event.extra = extra;
        event.flags = flags & 7u;
        event.stream = analyzer::kNoStream;
        event.time_ns = timeline.events.size() * 1000;
        timeline.partner.push_back(analyzer::kNoEvent);
        timeline.events.push_back(event);
        return {&timeline.events};
    }

    void segment(std::uint64_t address, std::uint64_t size_bytes) {
        add(EventKind::kDeviceAlloc, address, size_bytes, 0, kFlagFromAllocator);
    }

    void segment_free(std::uint64_t address) {
        add(EventKind::kDeviceFree, address, 0, 0, kFlagFromAllocator);
    }

    void block(std::uint64_t address,
               std::uint64_t requested_bytes,
               std::uint64_t block_bytes,
               analyzer::StreamId stream = 0) {
        add(EventKind::kBlockAlloc, address, requested_bytes, block_bytes).stream(stream);
    }

    void free(std::uint64_t address, bool pending = false) {
        add(EventKind::kBlockFree, address, 0, 0, pending ? kFlagPending : 0);
    }

    // Creates physical memory and maps it, as PyTorch's allocator does.
    void page(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t handle) {
        add(EventKind::kPhysicalCreate, handle, size_bytes, 0, kFlagFromAllocator);
        add(EventKind::kMap, address, size_bytes, handle, kFlagFromAllocator).device(31);
    }

    void unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint64_t handle) {
        add(EventKind::kUnmap, address, size_bytes, 0, kFlagFromAllocator).device(31);
        add(EventKind::kPhysicalRelease, handle, 0, 0, kFlagFromAllocator);
    }
};

}  // namespace fragtrace::testing
