// The recorder's core as a library that a Python script calls. It is preloaded, so that its
// thread-local storage is laid out as in libfragtrace.so.
#include "recorder/python_code.h"
#include "recorder/recorder.h"
#include "stacks/python_layout.h"

#include <cstdint>
#include <cstring>
#include <dlfcn.h>
#include <unistd.h>

namespace {

// PyTypeObject::tp_dealloc of the type of code objects.
void** code_dealloc() {
    return reinterpret_cast<void**>(static_cast<char*>(dlsym(RTLD_DEFAULT, "PyCode_Type")) + 48);
}

}  // namespace

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

// Result of the start-up check of this interpreter when field number `field` of its layout is moved
// by `delta` bytes: 0 right, 1 wrong, 2 no frames, -1 no such field.
__attribute__((visibility("default"))) int client_check_layout(int field, int delta) {
    using namespace fragtrace::preload;
    const auto symbol = [](const char* name) { return dlsym(RTLD_DEFAULT, name); };
    PythonLayout layout;
    const char* reason = nullptr;
    const auto version = reinterpret_cast<const char* (*)()>(symbol("Py_GetVersion"));
    if (!python_layout(version(), symbol("_PyRuntime"), &layout, &reason) || field < 0 ||
        static_cast<size_t>(field) >= sizeof layout / sizeof(uint32_t)) {
        return -1;
    }
    uint32_t words[sizeof layout / sizeof(uint32_t)];
    std::memcpy(words, &layout, sizeof layout);
    words[field] += static_cast<uint32_t>(delta);
    std::memcpy(&layout, words, sizeof layout);
    const PythonTypes types = {
        symbol("PyCode_Type"), symbol("PyUnicode_Type"), symbol("PyBytes_Type")};
    const auto thread = reinterpret_cast<void* (*)()>(symbol("PyGILState_GetThisThreadState"));
    return static_cast<int>(check_layout(layout, types, thread()));
}

__attribute__((visibility("default"))) int client_frees_are_told() {
    return fragtrace::preload::python_code_era() != 0 ? 1 : 0;
}

// Acts like a tool that had installed its own function before us and removes it.
__attribute__((visibility("default"))) void client_take_our_function_out() {
    *code_dealloc() = fragtrace::preload::python_code_dealloc();
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
