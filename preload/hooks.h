// What every hook body uses: the table's ids, the typed real functions, and the recording of the
// few shapes of calls there are (an allocation, a free, a sample of the card).
//
// Rules of a body: find the real function; if there is none, give an ordinary error code; record
// after an allocation succeeded and before a free is passed on; read out-parameters only after
// success; change neither arguments, results, errno nor order.
#pragma once

#include "cuda_abi.h"
#include "recorder.h"

#include <stddef.h>
#include <stdint.h>

// Exported, and bound inside this library: an earlier interposer must not capture our own
// references.
#define FT_PUBLIC __attribute__((visibility("protected"), used))

namespace fragtrace::preload {

// One id per function of hooks.def, interposed ones first.
enum class Hook : uint16_t {
#define FT_DRIVER(symbol, base, since, stream, family, parameters) k_##symbol,
#define FT_RUNTIME(symbol, since, family, parameters)              k_##symbol,
#define FT_FRAMEWORK(symbol, object, family, result, parameters)   k_##symbol,
#include "hooks.def"
    kInterposedCount,
    kLastInterposed = kInterposedCount - 1,
#define FT_CALLED_DRIVER(symbol, parameters)  k_##symbol,
#define FT_CALLED_RUNTIME(symbol, parameters) k_##symbol,
#include "hooks.def"
    kCount,
    kNone = 0xffff
};

template <Hook>
struct Signature;
#define FT_DRIVER(symbol, base, since, stream, family, parameters) \
    template <>                                                    \
    struct Signature<Hook::k_##symbol> {                           \
        using Function = CUresult parameters;                      \
    };
#define FT_RUNTIME(symbol, since, family, parameters) \
    template <>                                       \
    struct Signature<Hook::k_##symbol> {              \
        using Function = cudaError_t parameters;      \
    };
#define FT_FRAMEWORK(symbol, object, family, result, parameters) \
    template <>                                                  \
    struct Signature<Hook::k_##symbol> {                         \
        using Function = result parameters;                      \
    };
#define FT_CALLED_DRIVER(symbol, parameters)  FT_DRIVER(symbol, "", 0, , , parameters)
#define FT_CALLED_RUNTIME(symbol, parameters) FT_RUNTIME(symbol, 0, , parameters)
#include "hooks.def"

// The function that `caller` (a return address) would have reached without us; nullptr if none.
void* resolve(Hook hook, const void* caller);

template <Hook kHook>
typename Signature<kHook>::Function* real(const void* caller) {
    return reinterpret_cast<typename Signature<kHook>::Function*>(resolve(kHook, caller));
}

// Where the call came in: through libcudart or directly at libcuda.
enum class Layer : uint8_t { kDriver, kRuntime };

// One hooked call in progress: a HookScope and the time spent in the real function.
class Call {
  public:
    Call(Layer layer, const void* caller);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    // True for the call that is to be recorded.
    [[nodiscard]] bool records() const { return records_; }

    // False when hooks call each other without end (a loop between interposers).
    [[nodiscard]] bool sane() const { return sane_; }

    void start() { start_ns_ = records_ ? now_ns() : 0; }

    void stop() { duration_ns_ = records_ ? now_ns() - start_ns_ : 0; }

    // The results of recorded calls. They keep errno.
    void allocated(EventKind kind, uint64_t address, uint64_t bytes, uint16_t device) const;
    void refused(uint64_t bytes, int error, uint16_t device) const;
    void freeing(EventKind kind, uint64_t address, uint64_t bytes, uint16_t device) const;
    void mapped(uint64_t address, uint64_t bytes, uint64_t handle, uint16_t device) const;
    void memory_info(uint64_t free_bytes, uint64_t total_bytes) const;
    void reset(uint16_t device) const;

    // Ordinal of the calling thread's device, kDeviceUnknown if there is none.
    [[nodiscard]] uint16_t current_device() const;
    // Ordinal of the device that holds `address`; the current one where the driver cannot tell.
    [[nodiscard]] uint16_t device_of(uint64_t address) const;

  private:
    [[nodiscard]] EventRecord event(EventKind kind, uint16_t device) const;
    void sample_memory(uint16_t device) const;
    void record_first_use(uint16_t device) const;

    HookScope scope_;
    const void* caller_;
    uint64_t start_ns_ = 0;
    uint64_t duration_ns_ = 0;
    Layer layer_;
    bool records_;
    bool sane_;
    bool refused_;  // the outermost call of a signal handler that interrupted the recorder
};

}  // namespace fragtrace::preload
