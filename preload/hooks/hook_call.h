// Common parts of all hooks: the table's ids, the typed real functions, and templates for the kinds
// of calls. recorded() and ending() are for calls with an event. launched() is for hot calls for
// which only a failure matters. One FT_HOOK line exports one wrapper; its types come from the
// table.
//
// Rules for a hook: record after an allocation has succeeded, and before a free is passed on. Read
// out-parameters only after success. Do not change arguments, results, errno or the order of calls.
#pragma once

#include "hooks/cuda_abi.h"
#include "recorder/recorder.h"
#include "system/sys.h"

#include <stddef.h>
#include <stdint.h>

// Exported, but bound inside this library: an earlier interposer must not capture our own
// references.
#define FT_PUBLIC __attribute__((visibility("protected"), used))

namespace fragtrace::preload {

// One id per function of hooks.def; interposed functions come first.
enum class Hook : uint16_t {
#define FT_DRIVER(symbol, base, since, stream, family, parameters) k_##symbol,
#define FT_RUNTIME(symbol, since, family, parameters)              k_##symbol,
#define FT_FRAMEWORK(symbol, object, family, result, parameters)   k_##symbol,
#define FT_NCCL(symbol, parameters)                                k_##symbol,
#include "hooks/hooks.def"
    kInterposedCount,
    kLastInterposed = kInterposedCount - 1,
#define FT_CALLED_DRIVER(symbol, parameters)  k_##symbol,
#define FT_CALLED_RUNTIME(symbol, parameters) k_##symbol,
#include "hooks/hooks.def"
    kCount,
    kNone = 0xffff
};

// How the program called: through libcudart, or libcuda directly.
enum class Layer : uint8_t { kDriver, kRuntime };

// For functions named X_ptsz, stream 0 is the thread's own default stream.
constexpr bool is_per_thread(const char* name) {
    const char* end = name;
    while (*end != '\0') {
        ++end;
    }
    return end - name > 5 && end[-5] == '_' && end[-4] == 'p' && end[-3] == 't' && end[-1] == 'z';
}

template <Hook>
struct Signature;
#define FT_DRIVER(symbol, base, since, stream, family, parameters) \
    template <>                                                    \
    struct Signature<Hook::k_##symbol> {                           \
        using Function = CUresult parameters;                      \
        static constexpr Layer kLayer = Layer::kDriver;            \
        static constexpr bool kPerThread = is_per_thread(#symbol); \
    };
#define FT_RUNTIME(symbol, since, family, parameters)              \
    template <>                                                    \
    struct Signature<Hook::k_##symbol> {                           \
        using Function = cudaError_t parameters;                   \
        static constexpr Layer kLayer = Layer::kRuntime;           \
        static constexpr bool kPerThread = is_per_thread(#symbol); \
    };
#define FT_FRAMEWORK(symbol, object, family, result, parameters) \
    template <>                                                  \
    struct Signature<Hook::k_##symbol> {                         \
        using Function = result parameters;                      \
    };
#define FT_NCCL(symbol, parameters)               \
    template <>                                   \
    struct Signature<Hook::k_##symbol> {          \
        using Function = ncclResult_t parameters; \
    };
#define FT_CALLED_DRIVER(symbol, parameters)  FT_DRIVER(symbol, "", 0, , , parameters)
#define FT_CALLED_RUNTIME(symbol, parameters) FT_RUNTIME(symbol, 0, , parameters)
#include "hooks/hooks.def"

// Returns the function that `caller` (a return address) would have called without us; nullptr if
// none.
void* resolve(Hook hook, const void* caller);

// The object that calls a hook most often. One cache line has all that is needed to find the
// function for its calls. known_callers.cpp maintains it. `begin` is stored last, and is 0 while
// the other members change.
struct alignas(32) FrequentCaller {
    uintptr_t begin;
    uintptr_t size_bytes;
    void* function;
    uint32_t others;  // calls from other objects since the last change
};

extern constinit FrequentCaller g_frequent_callers[static_cast<size_t>(Hook::kCount)];

// Like resolve(), but also nullptr if resolve() has to be called.
inline void* known_to_frequent_caller(Hook hook, const void* caller) {
    const FrequentCaller& frequent = g_frequent_callers[static_cast<size_t>(hook)];
    const uintptr_t begin = load_acquire(&frequent.begin);
    const uintptr_t distance = reinterpret_cast<uintptr_t>(caller) - begin;
    if (begin == 0 || distance >= load_acquire(&frequent.size_bytes)) {
        return nullptr;
    }
    void* function = load_acquire(&frequent.function);
    return load_relaxed(&frequent.begin) == begin ? function : nullptr;
}

template <Hook kHook>
typename Signature<kHook>::Function* real(const void* caller) {
    void* function = known_to_frequent_caller(kHook, caller);
    if (function == nullptr) [[unlikely]] {
        function = resolve(kHook, caller);
    }
    return reinterpret_cast<typename Signature<kHook>::Function*>(function);
}

// The part of an event that a hook supplies; Call::record adds the rest.
struct Event {
    EventKind kind;
    uint16_t device = kDeviceUnknown;
    uint64_t address = 0;
    uint64_t size = 0;
    uint64_t extra = 0;
    uint64_t stream = kStreamUnknown;
    uint32_t pool = 0;
};

// Whether a call is recorded although another hooked call makes it. That is so for contexts and
// code, because they are created inside calls that are recorded for another reason.
enum class Nested : uint8_t { kNotRecorded, kRecorded };

// A query of the driver's free memory, which begins with the construction. The answer is settled
// unless another thread's call that may change memory overlapped. If it did, the answer may not
// match the events before it.
class Look {
  public:
    // `own_calls`: running calls of the querying thread that may change memory, 0 or 1.
    explicit Look(uint32_t own_calls);

    [[nodiscard]] bool settled() const;

  private:
    uint32_t begun_;
    bool alone_;
};

// A hooked call in progress: a HookScope and the time spent in the real function.
class Call {
  public:
    Call(Hook hook, Layer layer, const void* caller, Nested nested);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // True if this call must be recorded.
    [[nodiscard]] bool records() const { return records_; }

    // True inside another hooked call.
    [[nodiscard]] bool nested() const { return !scope_.outermost(); }

    // False if hooks call each other endlessly (a loop between interposers).
    [[nodiscard]] bool sane() const { return sane_; }

    // The real function runs between start() and stop(). The time that the recorder spent
    // meanwhile, in hooks of nested calls, is subtracted.
    void start();
    void stop();

    // Records an event with the stacks of this call. Returns its sequence number, 0 if it was lost.
    uint64_t record(const Event& event) const;

    // Called when an allocating call has returned. On success, records the event with the returned
    // address, or nothing if the call returned no memory. On failure, records a refusal of that
    // many bytes on that device.
    void allocation(int result, const Event& event);

    // Records the duration of a call whose event was recorded before it.
    void took(uint64_t sequence) const;

    // Records that the call failed for lack of memory, unless a refusal was already recorded for it
    // or inside it.
    void note_out_of_memory(int result);

    // Records the free and total bytes that the program received.
    void memory_info(const Look& look, uint64_t free_bytes, uint64_t total_bytes) const;

    // Returns the ordinal of the calling thread's device, kDeviceUnknown if there is none.
    [[nodiscard]] uint16_t current_device() const;
    // Returns the ordinal of the device of `address`, or the current device if the driver does not
    // know.
    [[nodiscard]] uint16_t device_of(uint64_t address) const;

    [[nodiscard]] const void* caller() const { return caller_; }

  private:
    [[nodiscard]] uint64_t sample_memory(uint16_t device) const;
    void record_first_use(uint16_t device) const;

    HookScope scope_;
    const void* caller_;
    uint64_t start_ns_ = 0;
    uint64_t own_before_ns_ = 0;
    uint64_t duration_ns_ = 0;
    uint32_t refusals_before_;
    Hook hook_;
    Layer layer_;
    bool records_;
    bool counted_;  // counted among the running calls that may change memory
    bool sane_;
    bool refused_;  // this is the outermost call of a signal handler that interrupted the recorder
};

// Measures the time that the recorder itself spends inside a recorded call, in hooks of nested
// calls.
class OwnTime {
  public:
    explicit OwnTime(bool counts) : begin_ns_(counts ? now_ns() : 0) {}

    ~OwnTime();
    OwnTime(const OwnTime&) = delete;
    OwnTime& operator=(const OwnTime&) = delete;

  private:
    uint64_t begin_ns_;
};

// Calls the real function. `before(call)` may record an event and returns its sequence number or 0.
// `after(call, result)` records the outcome.
template <Hook kHook,
          Nested kNested = Nested::kNotRecorded,
          typename Before,
          typename After,
          typename... Arguments>
int around(const void* caller, const Before& before, const After& after, Arguments... arguments) {
    auto* function = real<kHook>(caller);
    Call call(kHook, Signature<kHook>::kLayer, caller, kNested);
    if (function == nullptr || !call.sane()) {
        return kNotInitialized;
    }
    uint64_t sequence = 0;
    if (call.records()) {
        const SlowPath slow_path;
        const OwnTime own_time(call.nested());
        sequence = before(call);
    }
    call.start();
    const int result = function(arguments...);
    call.stop();
    if (call.records()) {
        const SlowPath slow_path;
        const OwnTime own_time(call.nested());
        call.took(sequence);
        after(call, result);
        call.note_out_of_memory(result);
    }
    return result;
}

// For calls whose event is recorded after them.
template <Hook kHook, Nested kNested = Nested::kNotRecorded, typename After, typename... Arguments>
int recorded(const void* caller, const After& after, Arguments... arguments) {
    return around<kHook, kNested>(
        caller, [](const Call&) { return uint64_t{0}; }, after, arguments...);
}

// The same for calls that only have an event on success: `after(call)`.
template <Hook kHook, typename After, typename... Arguments>
int recorded_success(const void* caller, const After& after, Arguments... arguments) {
    return recorded<kHook>(
        caller,
        [&after](Call& call, int result) {
            if (result == kSuccess) {
                after(call);
            }
        },
        arguments...);
}

// For frees and other calls whose event must be recorded before them.
template <Hook kHook, typename Before, typename... Arguments>
int ending(const void* caller, const Before& before, Arguments... arguments) {
    return around<kHook>(
        caller, before, [](const Call&, int) {}, arguments...);
}

// For calls without an event of their own: only a failure for lack of memory is recorded.
template <Hook kHook, typename... Arguments>
int watched(const void* caller, Arguments... arguments) {
    return recorded<kHook>(
        caller, [](const Call&, int) {}, arguments...);
}

// Number of refused allocations that this thread has recorded.
extern constinit thread_local uint32_t t_refusals __attribute__((tls_model("initial-exec")));

// Called when a launch returned "out of memory".
void note_launch_out_of_memory(Hook hook,
                               Layer layer,
                               const void* caller,
                               uint32_t refusals_before);

// For launches. These are hot, so only the result is checked.
template <Hook kHook, typename... Arguments>
int launched(const void* caller, Arguments... arguments) {
    auto* function = real<kHook>(caller);
    if (function == nullptr) {
        return kNotInitialized;
    }
    const uint32_t refusals_before = t_refusals;
    const int result = function(arguments...);
    if (result == kOutOfMemory) [[unlikely]] {
        note_launch_out_of_memory(kHook, Signature<kHook>::kLayer, caller, refusals_before);
    }
    return result;
}

// The runtime API and the driver API have different types for addresses and handles.
inline uint64_t number(uint64_t value) {
    return value;
}

inline uint64_t number(const void* pointer) {
    return reinterpret_cast<uint64_t>(pointer);
}

// The value of an out-parameter, which is valid only after success; otherwise 0.
template <typename Value>
uint64_t given(int result, const Value* out) {
    return result == kSuccess && out != nullptr ? number(*out) : 0;
}

// The product of two sizes; kUnknown64 on overflow, because a refused call may have absurd sizes.
inline uint64_t product(uint64_t first, uint64_t second) {
    uint64_t result = 0;
    return __builtin_mul_overflow(first, second, &result) ? kUnknown64 : result;
}

inline uint16_t ordinal(int device) {
    return device < 0 || device >= kDeviceUnknown ? kDeviceUnknown : static_cast<uint16_t>(device);
}

// Host memory belongs to no device.
inline uint16_t device_of_location(const MemoryLocation& location) {
    return location.type == kLocationDevice ? ordinal(location.id) : kDeviceUnknown;
}

// ---- one line per exported wrapper
// ---------------------------------------------------------------

template <unsigned kIndex, typename Function>
struct ParameterOf;

template <typename Result, typename First, typename... Rest>
struct ParameterOf<0, Result(First, Rest...)> {
    using Type = First;
};

template <unsigned kIndex, typename Result, typename First, typename... Rest>
struct ParameterOf<kIndex, Result(First, Rest...)> : ParameterOf<kIndex - 1, Result(Rest...)> {};

// FT_HOOK_N(symbol, body): exports the row `symbol`, which has N parameters, as
// body<Hook::k_symbol>(caller, parameters...).
#define FT_P(symbol, index) \
    typename ParameterOf<index, typename Signature<Hook::k_##symbol>::Function>::Type p##index
#define FT_HOOK(symbol, body, parameters, ...)                                     \
    extern "C" FT_PUBLIC int symbol parameters {                                   \
        return body<Hook::k_##symbol>(__builtin_return_address(0), ##__VA_ARGS__); \
    }
#define FT_P1(s)  FT_P(s, 0)
#define FT_P2(s)  FT_P1(s), FT_P(s, 1)
#define FT_P3(s)  FT_P2(s), FT_P(s, 2)
#define FT_P4(s)  FT_P3(s), FT_P(s, 3)
#define FT_P5(s)  FT_P4(s), FT_P(s, 4)
#define FT_P6(s)  FT_P5(s), FT_P(s, 5)
#define FT_P7(s)  FT_P6(s), FT_P(s, 6)
#define FT_P8(s)  FT_P7(s), FT_P(s, 7)
#define FT_P9(s)  FT_P8(s), FT_P(s, 8)
#define FT_P10(s) FT_P9(s), FT_P(s, 9)
#define FT_P11(s) FT_P10(s), FT_P(s, 10)

#define FT_HOOK_0(symbol, body) FT_HOOK(symbol, body, ())
#define FT_HOOK_1(symbol, body) FT_HOOK(symbol, body, (FT_P1(symbol)), p0)
#define FT_HOOK_2(symbol, body) FT_HOOK(symbol, body, (FT_P2(symbol)), p0, p1)
#define FT_HOOK_3(symbol, body) FT_HOOK(symbol, body, (FT_P3(symbol)), p0, p1, p2)
#define FT_HOOK_4(symbol, body) FT_HOOK(symbol, body, (FT_P4(symbol)), p0, p1, p2, p3)
#define FT_HOOK_5(symbol, body) FT_HOOK(symbol, body, (FT_P5(symbol)), p0, p1, p2, p3, p4)
#define FT_HOOK_6(symbol, body) FT_HOOK(symbol, body, (FT_P6(symbol)), p0, p1, p2, p3, p4, p5)
#define FT_HOOK_8(symbol, body) \
    FT_HOOK(symbol, body, (FT_P8(symbol)), p0, p1, p2, p3, p4, p5, p6, p7)
#define FT_HOOK_10(symbol, body) \
    FT_HOOK(symbol, body, (FT_P10(symbol)), p0, p1, p2, p3, p4, p5, p6, p7, p8, p9)
#define FT_HOOK_11(symbol, body) \
    FT_HOOK(symbol, body, (FT_P11(symbol)), p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10)

}  // namespace fragtrace::preload
