// Touches the pages of a long table on a second thread, shortly before the first thread fills them.
//
// The first access to a page takes long, because the system clears it. A second thread does this
// while the first one works on other things. Without a second core, or on a Linux before 5.14,
// nothing happens.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace fragtrace::analyzer {

class TouchedAhead {
  public:
    // Memory that is touched before it is used, at most. Shorter tables are not touched.
    static constexpr std::size_t kAheadBytes = std::size_t{8} << 20;

    TouchedAhead() = default;
    ~TouchedAhead();
    TouchedAhead(const TouchedAhead&) = delete;
    TouchedAhead& operator=(const TouchedAhead&) = delete;

    // The memory, of which nothing is used yet, must stay until this object is destroyed or another
    // call.
    void start(void* memory, std::size_t size_bytes);

    // Ends the second thread.
    void stop();

    // The first `bytes` of the memory are in use. Cheap: can be called for each item of a table.
    void use(std::size_t bytes) {
        if (thread_.joinable() && bytes > used_.load(std::memory_order_relaxed) + kStepBytes) {
            used_ = bytes;
            used_.notify_all();
        }
    }

  private:
    void run(std::uint8_t* memory, std::size_t size_bytes);

    static constexpr std::size_t kStepBytes = std::size_t{1} << 19;
    static constexpr std::size_t kStop = ~std::size_t{0};
    std::atomic<std::size_t> used_{0};  // bytes; kStop: the thread ends
    std::thread thread_;
};

}  // namespace fragtrace::analyzer
