// The recorder's core as a library that a Python script calls: preloaded, so that its thread-local
// storage is laid out as in libfragtrace.so.
#include "recorder.h"

#include <cstdint>
#include <unistd.h>

extern "C" {

__attribute__((visibility("default"))) uint64_t client_record(uint64_t address) {
    fragtrace::EventRecord event{};
    event.kind = fragtrace::EventKind::kDeviceAlloc;
    event.address = address;
    const fragtrace::preload::Stacks stacks = fragtrace::preload::capture_stacks();
    event.native_stack = stacks.native;
    event.python_stack = stacks.python;
    return fragtrace::preload::record(event);
}

// Nanoseconds per event, stacks included.
__attribute__((visibility("default"))) uint64_t client_time(uint64_t events) {
    client_record(0);
    const uint64_t begin = fragtrace::preload::now_ns();
    for (uint64_t i = 0; i < events; ++i) {
        client_record(i);
    }
    return (fragtrace::preload::now_ns() - begin) / events;
}
}
