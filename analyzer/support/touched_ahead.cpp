#include "analyzer/support/touched_ahead.h"

#include "analyzer/support/threads.h"

#include <algorithm>
#include <sys/mman.h>
#include <system_error>

namespace fragtrace::analyzer {
namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE; older headers lack it
constexpr std::size_t kPageBytes = std::size_t{2} << 20;  // a huge page; one call touches one

}  // namespace

TouchedAhead::~TouchedAhead() {
    stop();
}

void TouchedAhead::start(void* memory, std::size_t size_bytes) {
    stop();
    if (size_bytes <= kAheadBytes || processors() < 2) {
        return;
    }
    used_ = 0;
    try {
        thread_ = std::thread(
            [this, memory, size_bytes] { run(static_cast<std::uint8_t*>(memory), size_bytes); });
    } catch (const std::system_error&) {  // the first thread touches the pages itself
    }
}

void TouchedAhead::stop() {
    if (thread_.joinable()) {
        used_ = kStop;
        used_.notify_all();
        thread_.join();
    }
}

void TouchedAhead::run(std::uint8_t* memory, std::size_t size_bytes) {
    // The allocator's own data may lie before the first whole page.
    const auto address = reinterpret_cast<std::uintptr_t>(memory);
    std::size_t touched = (kPageBytes - address % kPageBytes) % kPageBytes;
    while (touched < size_bytes) {
        const std::size_t used = used_;
        if (used == kStop) {
            return;
        }
        if (touched >= kAheadBytes && used < touched - kAheadBytes) {
            used_.wait(used);
            continue;
        }
        const std::size_t bytes = std::min(kPageBytes, size_bytes - touched);
        if (madvise(memory + touched, bytes, kPopulateWrite) != 0) {
            return;
        }
        touched += bytes;
    }
}

}  // namespace fragtrace::analyzer
