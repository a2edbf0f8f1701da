// Measures how much two threads must slow each other down under any recorder. The loop does some
// work of the thread's own and then the minimum that an event needs. One thread is compared with
// two at once.
//
//   threads_floor    prints one JSON object: the ratio of the rates, two threads to one, for each
//   of
//     work        only the work
//     add         and increments a shared number, which orders the events
//     own_slots   the same, and writes an event of 72 bytes to the thread's own memory
//     ring        the same, and writes the event to a shared ring, as the recorder does
//
// Rounds are short, so that two of them fit between other work of the processors. The kinds of work
// take turns. "best" is the tenth quickest of a hundred rounds. On a virtual machine the figures
// change from second to second: two processors may share a core, a cache or neither.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <sched.h>
#include <thread>
#include <time.h>
#include <vector>

namespace {

constexpr int kEvents = 500;  // per thread in a round
constexpr int kWork = 80;     // steps of about 1 ns
constexpr uint64_t kSlots = 65536;
constexpr size_t kWords = 9;  // per slot

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

// Spins, but yields the processor from time to time.
template <typename Condition>
void wait_until(Condition condition) {
    for (int spin = 1; !condition(); ++spin) {
        if (spin % 20000 == 0) {
            std::this_thread::yield();
        }
    }
}

// Binds the thread to the index-th processor that the process may use: two threads on one processor
// show nothing.
void stay_on(int index, const cpu_set_t& allowed) {
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
        if (CPU_ISSET(processor, &allowed) && index-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(processor, &one);
            sched_setaffinity(0, sizeof one, &one);
            return;
        }
    }
}

double quantile(std::vector<uint64_t>* times, double share) {
    std::sort(times->begin(), times->end());
    return static_cast<double>(
        (*times)[static_cast<size_t>(static_cast<double>(times->size()) * share)]);
}

}  // namespace

int main() {
    constexpr int kRounds = 1500;
    constexpr int kKinds = 4;
    constexpr const char* kNames[kKinds] = {"work", "add", "own_slots", "ring"};
    std::vector<uint64_t> alone[kKinds];
    std::vector<uint64_t> together[kKinds];
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    stay_on(0, allowed);
    std::thread other([allowed] {
        stay_on(1, allowed);
        for (int round = 1; round <= kRounds * kKinds; ++round) {
            g_ready = round;
            wait_until([round] { return g_turn >= round; });
            events(static_cast<Kind>(round % kKinds), 1);
            g_done = round;
        }
    });
    for (int round = 1; round <= kRounds * kKinds; ++round) {
        const int kind = round % kKinds;
        uint64_t begin = now_ns();
        events(static_cast<Kind>(kind), 0);
        alone[kind].push_back(now_ns() - begin);
        wait_until([round] { return g_ready >= round; });
        begin = now_ns();
        g_turn = round;
        events(static_cast<Kind>(kind), 0);
        wait_until([round] { return g_done >= round; });
        together[kind].push_back(now_ns() - begin);
    }
    other.join();
    for (int kind = 0; kind < kKinds; ++kind) {
        const double one = quantile(&alone[kind], 0.1);
        printf("%s\"%s\": {\"best\": %.2f, \"median\": %.2f}",
               kind == 0 ? "{" : ", ",
               kNames[kind],
               2 * one / quantile(&together[kind], 0.1),
               2 * one / quantile(&together[kind], 0.5));
    }
    printf("}\n");
    return 0;
}
