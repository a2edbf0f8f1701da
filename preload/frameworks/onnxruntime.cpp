// ONNX Runtime's arena (onnxruntime::BFCArena and StreamAwareBFCArena) for memory of CUDA: each
// arena is recorded as a pool of the program (recorder/program_pools.h).
//
// The packages have no symbols. The arena's table of virtual functions is found by its run-time
// type information. It has no function that names its slots, so both classes must have the shape of
// a known release: the number of slots, and which of them both classes share. The first request
// must then change the arena's statistics as a request does. Otherwise nothing is recorded, and the
// fact "onnxruntime.pool" has the reason.
//
// The arena does not say how large a block is; its statistics do, before and after a request. So a
// lock of the recorder is held during each call that changes them. It is held where the arena holds
// its own mutex, and each arena has its own, so no thread waits longer than it would. Events are in
// the order of the arena.
//
// A request fails by an exception. The recorder has no C++ runtime to catch it. Instead, the frame
// of the call names a function that the unwinder calls when an exception leaves the frame.
#include "frameworks/allocator_pools.h"
#include "frameworks/onnxruntime_object.h"
#include "hooks/framework.h"
#include "recorder/program_pools.h"
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "system/class_tables.h"
#include "system/loaded_objects.h"
#include "system/sys.h"

#include <string.h>
#include <sys/mman.h>

namespace fragtrace::preload {
namespace {

constexpr char kProvider[] = "libonnxruntime_providers_cuda";
constexpr char kPythonModule[] = "onnxruntime_pybind11_state";
constexpr char kLibrary[] = "libonnxruntime.so";
constexpr char kArenaName[] = "N11onnxruntime8BFCArenaE";
constexpr char kStreamArenaName[] = "N11onnxruntime19StreamAwareBFCArenaE";

// Virtual functions of release 1.31.
enum Slot : uint8_t {
    kDestroy,
    kDelete,
    kAlloc,
    kIsStreamAware,
    kAllocOnStream,
    kFree,
    kReserve,
    kGetStats,
    kAsArena,
    kAsConstArena,
    kShrink,
    kReleaseStream,
    kSlots,
};

constexpr uint64_t kQuantumBytes = 256;  // sizes of blocks are multiples

using Alloc = void*(void* self, size_t bytes);
using AllocOnStream = void*(void* self, size_t bytes, void* stream);
using Free = void(void* self, void* address);
using GetStats = void(void* self, void* stats);
using ReleaseStream = void(void* self, void* stream);
using Destroy = void(void* self);

enum State : uint32_t { kUnchecked, kOn, kOff };

uint32_t g_state;
uint32_t g_noted;           // 1: the provider was seen
void* g_functions[kSlots];  // of the arena with streams
void* g_plain_destroy[2];   // of the arena without streams
AllocatorPools g_pools;
Lock g_locks[64];  // lock_of()

// A call of the arena on this thread.
struct Call {
    Call* outer = nullptr;
    uint32_t pool = 0;
    uint64_t requested_bytes = 0;  // 0: the call is no request
    uint64_t stream = kStreamUnknown;
};

constinit thread_local Call* t_call __attribute__((tls_model("initial-exec"))) = nullptr;

template <typename Function>
Function* function_of(Slot slot) {
    return reinterpret_cast<Function*>(g_functions[slot]);
}

void switch_off(const char* reason) {
    char text[160];
    __atomic_store_n(&g_state, kOff, __ATOMIC_RELEASE);
    record_fact("onnxruntime.pool", Text(text, sizeof text).add("off: ").add(reason).c_str());
    g_pools.end_all();
}

// ---- pools -------------------------------------------------------------------------------------

uint32_t create_pool(void* arena, const char* name) {
    ArenaStats stats{};
    function_of<GetStats>(kGetStats)(arena, &stats);
    const uint32_t pool = create_program_pool(name, "bfc");
    if (pool != 0) {
        record_arena_settings(pool, arena, stats);
    }
    return pool;
}

// 0 = not recorded.
uint32_t pool_of(void* arena) {
    if (load_acquire(&g_state) != kOn || !recording_enabled()) {
        return 0;
    }
    const char* name = name_of_cuda_arena(arena);
    return name == nullptr
               ? 0
               : g_pools.find_or_create(arena, [arena, name] { return create_pool(arena, name); });
}

// ---- calls -------------------------------------------------------------------------------------

Lock& lock_of(const Call& call) {
    return g_locks[call.pool % (sizeof g_locks / sizeof g_locks[0])];
}

// Takes the lock of the arena. Returns false if the call is not recorded.
bool begin(void* arena, Call* call) {
    call->pool = pool_of(arena);
    if (call->pool == 0) {
        return false;
    }
    for (const Call* outer = t_call; outer != nullptr; outer = outer->outer) {
        if (&lock_of(*outer) == &lock_of(*call)) {
            return false;  // this thread has the lock
        }
    }
    constexpr uint64_t kLongest_ns = 30'000 * kMillisecond_ns;  // the driver may take its time
    if (!lock_of(*call).lock_within(kLongest_ns)) {
        switch_off("a call of the arena took too long");
        return false;
    }
    call->outer = t_call;
    t_call = call;
    return true;
}

void end(Call* call) {
    t_call = call->outer;
    lock_of(*call).unlock();
}

// onnxruntime::Stream has the handle behind the pointer to its table.
uint64_t handle_of(const void* stream) {
    return stream == nullptr ? kStreamUnknown : static_cast<const uint64_t*>(stream)[1];
}

}  // namespace

// The unwinder's personality function of the frames of passing_exceptions(). Nothing is caught.
extern "C" __attribute__((visibility("hidden"), used)) int fragtrace_arena_left(
    int version, int actions, uint64_t, void*, void*) {
    constexpr int kCleanup = 2;   // _UA_CLEANUP_PHASE
    constexpr int kContinue = 8;  // _URC_CONTINUE_UNWIND
    Call* const call = t_call;
    if (version == 1 && (actions & kCleanup) != 0 && call != nullptr) {
        if (call->requested_bytes != 0) {
            record_program_failure(call->pool, call->requested_bytes, call->stream);
        }
        end(call);
    }
    return kContinue;
}

namespace {

// Calls a function of the arena. Each call of it is one frame, with `t_call` as its call.
template <typename Function>
__attribute__((noinline)) void* passing_exceptions(Function function) {
    asm volatile(".cfi_personality 0x1b, fragtrace_arena_left");
    void* result = function();
    asm volatile("" : "+r"(result));  // no tail call: the frame must be there
    return result;
}

void record_block(const Call& call,
                  const ArenaStats& before,
                  const ArenaStats& after,
                  void* address) {
    const auto size = static_cast<uint64_t>(after.bytes_in_use - before.bytes_in_use);
    if (after.requests - before.requests != 1 || size % kQuantumBytes != 0 ||
        size < call.requested_bytes) {
        switch_off("the arena's statistics do not change as those of a known release");
        return;
    }
    record_program_block(
        call.pool, reinterpret_cast<uint64_t>(address), call.requested_bytes, size, call.stream);
}

template <typename Function>
void* request(void* self, size_t bytes, uint64_t stream, Function function) {
    Call call{.requested_bytes = bytes, .stream = stream};
    if (bytes == 0 || !begin(self, &call)) {
        return function();
    }
    ArenaStats before{};
    function_of<GetStats>(kGetStats)(self, &before);
    void* address = passing_exceptions(function);
    if (address != nullptr) {
        ArenaStats after{};
        function_of<GetStats>(kGetStats)(self, &after);
        record_block(call, before, after, address);
    } else {
        record_program_failure(call.pool, bytes, stream);
    }
    end(&call);
    return address;
}

void* alloc(void* self, size_t bytes) {
    return request(
        self, bytes, kStreamUnknown, [=] { return function_of<Alloc>(kAlloc)(self, bytes); });
}

void* alloc_on_stream(void* self, size_t bytes, void* stream) {
    return request(self, bytes, handle_of(stream), [=] {
        return function_of<AllocOnStream>(kAllocOnStream)(self, bytes, stream);
    });
}

// Memory beside the arena: a request to the driver, which is recorded as such. Its free is a free
// of the arena, too, and changes the total.
void* reserve(void* self, size_t bytes) {
    Call call;
    const auto function = [=] { return function_of<Alloc>(kReserve)(self, bytes); };
    if (!begin(self, &call)) {
        return function();
    }
    void* address = passing_exceptions(function);
    end(&call);
    return address;
}

void free_block(void* self, void* address) {
    Call call;
    if (address == nullptr || !begin(self, &call)) {
        function_of<Free>(kFree)(self, address);
        return;
    }
    ArenaStats before{};
    ArenaStats after{};
    function_of<GetStats>(kGetStats)(self, &before);
    (void)passing_exceptions([=]() -> void* {
        function_of<Free>(kFree)(self, address);
        return nullptr;
    });
    function_of<GetStats>(kGetStats)(self, &after);
    // Another thread may shrink the arena at the same time.
    if (before.total_bytes == after.total_bytes || before.shrinkages != after.shrinkages) {
        record_program_free(call.pool, reinterpret_cast<uint64_t>(address));
    }
    end(&call);
}

void release_stream(void* self, void* stream) {
    Call call;
    if (!begin(self, &call)) {
        function_of<ReleaseStream>(kReleaseStream)(self, stream);
        return;
    }
    record_program_stream_end(call.pool, handle_of(stream));
    (void)passing_exceptions([=]() -> void* {
        function_of<ReleaseStream>(kReleaseStream)(self, stream);
        return nullptr;
    });
    end(&call);
}

void destroy(void* self) {
    g_pools.end(self);
    function_of<Destroy>(kDestroy)(self);
}

void destroy_and_delete(void* self) {
    g_pools.end(self);
    function_of<Destroy>(kDelete)(self);
}

void destroy_plain(void* self) {
    g_pools.end(self);
    reinterpret_cast<Destroy*>(g_plain_destroy[kDestroy])(self);
}

void destroy_and_delete_plain(void* self) {
    g_pools.end(self);
    reinterpret_cast<Destroy*>(g_plain_destroy[kDelete])(self);
}

// ---- patching ----------------------------------------------------------------------------------

// Whether both tables have the shape of a known release.
bool are_known(const ClassTable& plain, const ClassTable& streams) {
    if (plain.slots == nullptr || streams.slots == nullptr || plain.count != kSlots ||
        streams.count != kSlots || streams.base_type_info != plain.type_info) {
        return false;
    }
    for (size_t slot = 0; slot < kSlots; ++slot) {
        if (slot == kDestroy || slot == kDelete) {
            continue;  // clang gives both classes the same destructor, GCC each its own
        }
        const bool differs =
            slot == kIsStreamAware || slot == kAllocOnStream || slot == kReleaseStream;
        if ((plain.slots[slot] != streams.slots[slot]) != differs) {
            return false;
        }
    }
    return true;
}

struct Replacement {
    Slot slot;
    void* function;
};

template <size_t kCount>
bool replace(const link_map* object,
             const ClassTable& table,
             const Replacement (&replacements)[kCount]) {
    const AddressRange read_only = read_only_after_load(object);
    if (!protect_table(table.slots, table.count, read_only, PROT_READ | PROT_WRITE)) {
        return false;
    }
    for (const Replacement& one : replacements) {
        store_release(&table.slots[one.slot], one.function);
    }
    return protect_table(table.slots, table.count, read_only, PROT_READ);
}

// Returns nullptr, or why the arena is not recorded.
const char* replace_functions(const link_map* object) {
    const ClassTable plain = find_class_table(object, kArenaName);
    const ClassTable streams = find_class_table(object, kStreamArenaName);
    if (!are_known(plain, streams)) {
        return "the arena of this release has other functions than those that are known";
    }
    memcpy(g_functions, streams.slots, sizeof g_functions);
    memcpy(g_plain_destroy, plain.slots, sizeof g_plain_destroy);
    const Replacement both[] = {{kAlloc, reinterpret_cast<void*>(alloc)},
                                {kFree, reinterpret_cast<void*>(free_block)},
                                {kReserve, reinterpret_cast<void*>(reserve)}};
    const Replacement of_plain[] = {{kDestroy, reinterpret_cast<void*>(destroy_plain)},
                                    {kDelete, reinterpret_cast<void*>(destroy_and_delete_plain)}};
    const Replacement of_streams[] = {{kDestroy, reinterpret_cast<void*>(destroy)},
                                      {kDelete, reinterpret_cast<void*>(destroy_and_delete)},
                                      {kAllocOnStream, reinterpret_cast<void*>(alloc_on_stream)},
                                      {kReleaseStream, reinterpret_cast<void*>(release_stream)}};
    const bool done = replace(object, plain, both) && replace(object, plain, of_plain) &&
                      replace(object, streams, both) && replace(object, streams, of_streams);
    return done ? nullptr : "the arena's table cannot be written";
}

}  // namespace

void onnxruntime_note_object(const link_map* object) {
    if (load_relaxed(&g_noted) != 0 ||
        strncmp(base_name(object), kProvider, sizeof kProvider - 1) != 0 ||
        __atomic_exchange_n(&g_noted, 1, __ATOMIC_RELAXED) != 0) {
        return;
    }
    const link_map* host = find_object(kPythonModule);
    if (host == nullptr) {
        host = find_object(kLibrary);
    }
    const char* why =
        host == nullptr ? "the library with the arena was not found" : replace_functions(host);
    if (why != nullptr) {
        switch_off(why);
        return;
    }
    __atomic_store_n(&g_state, kOn, __ATOMIC_RELEASE);
    record_fact("onnxruntime.pool", "recorded");
}

}  // namespace fragtrace::preload
