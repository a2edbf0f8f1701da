// Compares the recorder's clock with the kernel's.
#include "system/clock.h"

#include "recorder/recorder.h"
#include "skip.h"
#include "system/sys.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <thread>
#include <time.h>
#include <vector>

using namespace fragtrace::preload;

namespace {

// Measures like the drain: in a different thread than the readers.
class Measuring {
  public:
    Measuring() {
        start_clock();
        thread_ = std::thread([this] {
            while (!done_) {
                measure_clock();
                std::this_thread::sleep_for(std::chrono::milliseconds(100));
            }
        });
    }

    ~Measuring() {
        stop();
        start_clock();  // so that the next test begins without a scale
    }

    void stop() {
        done_ = true;
        if (thread_.joinable()) {
            thread_.join();
        }
    }

    Measuring(const Measuring&) = delete;
    Measuring& operator=(const Measuring&) = delete;

  private:
    std::atomic<bool> done_{false};
    std::thread thread_;
};

struct Seen {
    uint64_t readings = 0;
    uint64_t from_counter = 0;
    uint64_t too_early = 0;  // earlier than a previous reading of the kernel's clock
    uint64_t too_late = 0;
    uint64_t backwards = 0;
};

Seen read_for(std::chrono::milliseconds time) {
    Seen seen;
    uint64_t last = 0;
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
        for (int i = 0; i < 100; ++i) {
            const uint64_t before = clock_ns(CLOCK_MONOTONIC);
            const uint64_t ours = monotonic_ns();
            const uint64_t after = clock_ns(CLOCK_MONOTONIC);
            const uint64_t ordered = now_ns();
            ++seen.readings;
            seen.from_counter += clock_is_counter() ? 1 : 0;
            seen.too_early += ours + kClockError_ns < before ? 1 : 0;
            seen.too_late += ours > after + kClockError_ns ? 1 : 0;
            seen.backwards += ordered < last ? 1 : 0;
            last = ordered;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // maybe on another processor
    }
    return seen;
}

}  // namespace

TEST_CASE("the clock differs from the kernel's by at most its stated error in every thread",
          "[processors-counter]") {
    const Measuring measuring;
    std::vector<Seen> seen(3);
    std::vector<std::thread> threads;
    for (Seen& one : seen) {
        threads.emplace_back([&one] { one = read_for(std::chrono::milliseconds(2500)); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    uint64_t from_counter = 0;
    for (const Seen& one : seen) {
        REQUIRE(one.readings > 0);
        REQUIRE(one.too_early == 0);
        REQUIRE(one.too_late == 0);
        REQUIRE(one.backwards == 0);
        from_counter += one.from_counter;
    }
    if (from_counter == 0) {
        fragtrace::test::skip(
            "the kernel's clock does not come from the processor's counter: right, but not ours");
    }
}

TEST_CASE("without further measurements the clock returns the kernel's time", "[clock]") {
    Measuring measuring;
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    measuring.stop();
    std::this_thread::sleep_for(std::chrono::nanoseconds(kMostTrusted_ns));
    uint64_t outside = 0;
    for (int i = 0; i < 10'000; ++i) {
        const uint64_t before = clock_ns(CLOCK_MONOTONIC);
        const uint64_t ours = monotonic_ns();
        outside += ours < before || ours > clock_ns(CLOCK_MONOTONIC) ? 1 : 0;
    }
    CHECK(outside == 0);
}
