// What two threads must cost each other, whatever else a recorder does: a loop of some work of the
// thread's own, then the least that an event needs. One thread alone against two at once.
//
//   threads_floor    prints one JSON object: the ratio of the rates, two threads to one, for
//     work        nothing but the work
//     add         a number counted up by both, which orders the events
//     own_slots   the same, and an event of 72 bytes to memory of the thread's own
//     ring        the same, and an event to the next slot of one ring, as the recorder does
//
// Rounds are short, so that two of them fit between what else the processors do, and the tenth
// quickest of a hundred is taken. Two processors that share a core or its cache give other figures
// than two that do not.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <time.h>
#include <vector>

namespace {

constexpr int kEvents = 500;  // of a thread in a round
constexpr int kWork = 80;     // steps of about 1 ns
constexpr uint64_t kSlots = 65536;
constexpr size_t kWords = 9;  // of a slot

enum class Kind { kOnlyWork, kAdd, kOwnSlots, kRing };

alignas(64) std::atomic<uint64_t> g_head{0};
alignas(64) std::atomic<int> g_turn{0};
alignas(64) std::atomic<int> g_ready{0};
alignas(64) std::atomic<int> g_done{0};
std::vector<uint64_t> g_slots(kSlots* kWords);

uint64_t now_ns() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

void events(Kind kind, uint64_t thread) {
    static thread_local uint64_t own = 0;
    uint64_t value = thread;
    for (int i = 0; i < kEvents; ++i) {
        for (int step = 0; step < kWork; ++step) {
            value = value * 0x9e3779b97f4a7c15u + 1;
            asm volatile("" : "+r"(value));
        }
        if (kind == Kind::kOnlyWork) {
            continue;
        }
        const uint64_t number = g_head.fetch_add(1, std::memory_order_relaxed);
        if (kind == Kind::kAdd) {
            continue;
        }
        const uint64_t slot =
            kind == Kind::kRing ? number % kSlots : thread * (kSlots / 2) + own++ % (kSlots / 2);
        uint64_t* words = &g_slots[slot * kWords];
        for (size_t word = 1; word < kWords; ++word) {
            __atomic_store_n(&words[word], value, __ATOMIC_RELAXED);
        }
        __atomic_store_n(&words[0], number, __ATOMIC_RELEASE);
    }
}

// Spins, but gives its processor away now and then.
template <typename Condition>
void wait_until(Condition condition) {
    for (int spin = 1; !condition(); ++spin) {
        if (spin % 20000 == 0) {
            std::this_thread::yield();
        }
    }
}

uint64_t tenth(std::vector<uint64_t> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 10];
}

double ratio(Kind kind) {
    constexpr int kRounds = 1500;
    std::vector<uint64_t> alone;
    std::vector<uint64_t> together;
    for (int round = 0; round < kRounds; ++round) {
        const uint64_t begin = now_ns();
        events(kind, 0);
        alone.push_back(now_ns() - begin);
    }
    g_turn = g_ready = g_done = 0;
    std::thread other([kind] {
        for (int round = 1; round <= kRounds; ++round) {
            g_ready = round;
            wait_until([round] { return g_turn >= round; });
            events(kind, 1);
            g_done = round;
        }
    });
    for (int round = 1; round <= kRounds; ++round) {
        wait_until([round] { return g_ready >= round; });
        const uint64_t begin = now_ns();
        g_turn = round;
        events(kind, 0);
        wait_until([round] { return g_done >= round; });
        together.push_back(now_ns() - begin);
    }
    other.join();
    return 2 * static_cast<double>(tenth(alone)) / static_cast<double>(tenth(together));
}

}  // namespace

int main() {
    printf("{\"work\": %.2f, \"add\": %.2f, \"own_slots\": %.2f, \"ring\": %.2f}\n",
           ratio(Kind::kOnlyWork),
           ratio(Kind::kAdd),
           ratio(Kind::kOwnSlots),
           ratio(Kind::kRing));
    return 0;
}
