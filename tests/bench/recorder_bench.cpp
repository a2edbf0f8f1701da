// Drives the recorder's core in-process and prints one JSON object; tests/bench/recorder_cost.py
// runs it in all its modes and compares. FRAGTRACE_OUTPUT says where the trace goes.
//
//   recorder_bench loop THREADS PAIRS RECORD
//       malloc and free, ten calls deep, recorded if RECORD is 1
//   recorder_bench crowd THREADS PAIRS RECORD
//       the same with about 12 us of other work for each pair, as in a training; events lost
//   recorder_bench burst THREADS BURSTS RECORD
//       the same by THREADS at once, in bursts so short that the drain sleeps
//   recorder_bench latency PAIRS
//       the cost of single recorded calls
//   recorder_bench paced SECONDS
//       200,000 events a second: the drain's share of a core
//   recorder_bench pools PAIRS
//       allocations and frees of a program's pool, by the functions of mark.h, against the same
//       number of block events, in turns; FRAGTRACE_STACKS=0 leaves out the stacks
//   recorder_bench memory EVENTS
//       the recorder's memory during the run, time to end the trace
#include "recorder/program_pools.h"
#include "recorder/recorder.h"
#include "recorder/session.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <string>
#include <thread>
#include <time.h>
#include <vector>

using namespace fragtrace;
namespace preload = fragtrace::preload;

namespace {

constexpr int kDepth = 10;
bool g_record = false;
std::vector<uint32_t>* g_latencies = nullptr;  // in ns, only with one thread

void allocated(void* memory) {
    EventRecord event{};
    event.kind = EventKind::kBlockAlloc;
    event.address = reinterpret_cast<uint64_t>(memory);
    event.size = 64;
    event.extra = 64;
    event.stream = kStreamUnknown;
    const preload::Stacks stacks = preload::capture_stacks();
    event.native_stack = stacks.native;
    event.python_stack = stacks.python;
    preload::record(event);
}

void freeing(void* memory) {
    EventRecord event{};
    event.kind = EventKind::kBlockFree;
    event.address = reinterpret_cast<uint64_t>(memory);
    event.extra = 64;
    event.stream = kStreamUnknown;
    preload::record(event);
}

__attribute__((noinline)) void pair() {
    const uint64_t begin = g_latencies != nullptr ? preload::now_ns() : 0;
    auto* memory = static_cast<volatile char*>(malloc(64));
    memory[0] = 1;
    if (g_record) {
        allocated(const_cast<char*>(memory));
        freeing(const_cast<char*>(memory));
    }
    free(const_cast<char*>(memory));
    if (g_latencies != nullptr) {
        g_latencies->push_back(static_cast<uint32_t>(preload::now_ns() - begin));
    }
}

// Two functions, so that consecutive stacks differ from some depth on, like those of a real
// program.
void left(int depth, uint32_t path);

__attribute__((noinline)) void right(int depth, uint32_t path) {
    if (depth == 0) {
        pair();
    } else {
        (path & 1) != 0 ? left(depth - 1, path >> 1) : right(depth - 1, path >> 1);
    }
    asm volatile("" ::: "memory");
}

__attribute__((noinline)) void left(int depth, uint32_t path) {
    if (depth == 0) {
        pair();
    } else {
        (path & 1) != 0 ? left(depth - 1, path >> 1) : right(depth - 1, path >> 1);
    }
    asm volatile("" ::: "memory");
}

int g_work = 0;  // multiplications between the calls of each pair

void work() {
    volatile uint64_t result = 1;
    uint64_t value = result;
    for (int i = 0; i < g_work; ++i) {
        value = value * 6364136223846793005u + 1442695040888963407u;
    }
    result = value;
}

void loop(uint64_t pairs) {
    uint32_t random = 1;
    for (uint64_t i = 0; i < pairs; ++i) {
        work();
        random = random * 1664525u + 1013904223u;
        right(kDepth - 2, random >> 28 << 4);  // 16 stacks
    }
}

uint64_t processor_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

struct Spent {
    uint64_t wall_ns;
    uint64_t processor_ns;  // sum of the looping threads
};

Spent time_loop(int threads, uint64_t pairs) {
    loop(1000);
    if (g_record) {  // until the recorder has calibrated the processor's counter
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    std::atomic<uint64_t> processor{0};
    const auto timed = [&] {
        const uint64_t begin = processor_ns();
        loop(pairs);
        processor += processor_ns() - begin;
    };
    const uint64_t begin = preload::now_ns();
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) {
        others.emplace_back(timed);
    }
    timed();
    for (std::thread& other : others) {
        other.join();
    }
    return {preload::now_ns() - begin, processor};
}

// The median time of a burst: kBurstPairs pairs on all threads together, from the first start to
// the last end.
uint64_t time_bursts(int threads, int bursts) {
    constexpr uint64_t kBurstPairs = 4000;  // half of what wakes the drain
    loop(1000);
    std::atomic<int> turn{0};
    std::atomic<int> finished{0};
    std::vector<std::thread> others;
    const uint64_t share = kBurstPairs / static_cast<uint64_t>(threads);
    for (int i = 1; i < threads; ++i) {
        others.emplace_back([&] {
            for (int burst = 1; burst <= bursts; ++burst) {
                while (turn < burst) {
                    std::this_thread::yield();  // other threads may need this processor
                }
                loop(share);
                ++finished;
            }
        });
    }
    std::vector<uint64_t> times;
    for (int burst = 1; burst <= bursts; ++burst) {
        if (g_record) {  // makes the drain write the ring's events, so that it sleeps afterwards
            preload::record_fact("bench.burst", std::to_string(burst).c_str());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        finished = 0;
        const uint64_t begin = preload::now_ns();
        turn = burst;
        loop(share);
        while (finished < threads - 1) {
            std::this_thread::yield();
        }
        times.push_back(preload::now_ns() - begin);
    }
    for (std::thread& other : others) {
        other.join();
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2] / kBurstPairs;
}

// Processor time of the recorder's thread.
uint64_t drain_ns() {
    uint64_t total = 0;
    DIR* tasks = opendir("/proc/self/task");
    while (const dirent* task = readdir(tasks)) {
        const std::string folder = std::string("/proc/self/task/") + task->d_name;
        std::string name;
        std::getline(std::ifstream(folder + "/comm"), name);
        if (name == "fragtrace") {
            std::ifstream(folder + "/schedstat") >> total;
        }
    }
    closedir(tasks);
    return total;
}

uint64_t resident_kib() {
    std::ifstream file("/proc/self/smaps_rollup");
    std::string word;
    uint64_t kib = 0;
    while (file >> word) {
        if (word == "Pss:") {
            file >> kib;
        }
    }
    return kib;
}

int crowd(int threads, uint64_t pairs, bool record) {
    g_record = record;
    g_work = 9000;  // four cycles each
    const Spent spent = time_loop(threads, pairs);
    const preload::Session* session = preload::running_session();
    printf("{\"ns_per_pair\": %.1f, \"lost\": %lu}\n",
           static_cast<double>(spent.wall_ns) / static_cast<double>(pairs) / threads,
           session == nullptr ? 0 : session->ring.header->lost_ring_full);
    return 0;
}

int latency(uint64_t pairs) {
    g_record = true;
    std::vector<uint32_t> latencies;
    latencies.reserve(pairs + 1000);
    loop(1000);
    g_latencies = &latencies;
    loop(pairs);
    g_latencies = nullptr;
    std::sort(latencies.begin(), latencies.end());
    const auto at = [&](double share) {
        return latencies[static_cast<size_t>(static_cast<double>(latencies.size() - 1) * share)];
    };
    printf("{\"median_ns\": %u, \"p99_ns\": %u, \"p999_ns\": %u, \"most_ns\": %u}\n",
           at(0.5),
           at(0.99),
           at(0.999),
           at(1));
    return 0;
}

int paced(uint64_t seconds) {
    constexpr uint64_t kEventsPerSecond = 200'000;
    constexpr uint64_t kMillisecond = 1'000'000;
    g_record = true;
    loop(1000);
    const uint64_t begin = preload::now_ns();
    const uint64_t drain_begin = drain_ns();
    uint64_t pairs = 0;
    while (preload::now_ns() - begin < seconds * 1000 * kMillisecond) {
        loop(kEventsPerSecond / 2 / 1000);
        pairs += kEventsPerSecond / 2 / 1000;
        const uint64_t next = begin + pairs * 2 * 1000 * kMillisecond / kEventsPerSecond;
        const uint64_t now = preload::now_ns();
        if (next > now) {
            std::this_thread::sleep_for(std::chrono::nanoseconds(next - now));
        }
    }
    const uint64_t passed = preload::now_ns() - begin;
    printf("{\"events_per_s\": %.0f, \"drain_share\": %.4f}\n",
           static_cast<double>(pairs) * 2e9 / static_cast<double>(passed),
           static_cast<double>(drain_ns() - drain_begin) / static_cast<double>(passed));
    return 0;
}

// Short turns, with the drain's work between them, so that both find the same ring and caches. The
// least of all turns is compared: what the code costs without the other threads of the machine.
int pools(uint64_t pairs) {
    constexpr uint64_t kTurn = 1000;
    g_record = true;
    loop(1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const uint32_t pool = preload::create_program_pool("bench", "other");
    static char memory[64];
    const auto least = [](double* best, auto turn) {
        const uint64_t begin = processor_ns();
        for (uint64_t i = 0; i < kTurn; ++i) {
            turn();
        }
        const double ns = static_cast<double>(processor_ns() - begin) / kTurn / 2;
        *best = *best == 0 ? ns : std::min(*best, ns);
    };
    double block_ns = 0;
    double program_ns = 0;
    for (uint64_t done = 0; done < pairs; done += kTurn) {
        least(&block_ns, [] {
            allocated(memory);
            freeing(memory);
        });
        least(&program_ns, [pool] {
            const auto address = reinterpret_cast<uint64_t>(memory);
            preload::record_program_block(pool, address, 64, 64, 0);
            preload::record_program_free(pool, address);
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    printf("{\"block_event_ns\": %.1f, \"program_event_ns\": %.1f, \"ratio\": %.2f}\n",
           block_ns,
           program_ns,
           program_ns / block_ns);
    return 0;
}

int memory(uint64_t events) {
    const uint64_t before = resident_kib();
    g_record = true;
    std::string samples;
    for (int tenth = 0; tenth < 10; ++tenth) {
        loop(events / 20);
        samples += (tenth == 0 ? "" : ", ") + std::to_string(resident_kib() - before);
    }
    const uint64_t begin = preload::now_ns();
    preload::finish(EndReason::kNormal, true);
    printf("{\"resident_kib\": [%s], \"end_ms\": %.2f}\n",
           samples.c_str(),
           static_cast<double>(preload::now_ns() - begin) / 1e6);
    return 0;
}

}  // namespace

int main(int count, char** words) {
    const auto number = [&](int i) { return i < count ? strtoull(words[i], nullptr, 10) : 0; };
    const std::string mode = count > 1 ? words[1] : "";
    if (mode == "loop" && count == 5) {
        g_record = number(4) != 0;
        const auto threads = static_cast<int>(number(2));
        const uint64_t pairs = number(3);
        const Spent spent = time_loop(threads, pairs);
        const auto all = static_cast<double>(pairs) * threads;
        printf("{\"ns_per_pair\": %.1f, \"processor_ns_per_pair\": %.1f}\n",
               static_cast<double>(spent.wall_ns) / all,
               static_cast<double>(spent.processor_ns) / all);
        return 0;
    }
    if (mode == "crowd" && count == 5) {
        return crowd(static_cast<int>(number(2)), number(3), number(4) != 0);
    }
    if (mode == "burst" && count == 5) {
        g_record = number(4) != 0;
        const auto bursts = static_cast<int>(number(3));
        printf("{\"ns_per_pair\": %lu}\n", time_bursts(static_cast<int>(number(2)), bursts));
        return 0;
    }
    if (mode == "latency" && count == 3) {
        return latency(number(2));
    }
    if (mode == "paced" && count == 3) {
        return paced(number(2));
    }
    if (mode == "pools" && count == 3) {
        return pools(number(2));
    }
    if (mode == "memory" && count == 3) {
        return memory(number(2));
    }
    fprintf(stderr, "recorder_bench: see the head of recorder_bench.cpp for its modes\n");
    return 2;
}
