// Compares the recorder's own walk of native stacks with libunwind: the same frames, whatever the
// program does between two walks.
#include "stacks/stack_walk.h"
#include "stacks/thread_stacks.h"
#include "stacks/unwind_rules.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <alloca.h>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <random>
#include <signal.h>
#include <stdexcept>
#include <thread>
#include <ucontext.h>
#include <vector>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

using namespace fragtrace::preload;

// A function whose unwind table says that it ends where it begins.
extern "C" void frame_without_extent(void (*callee)());
asm(R"(
    .text
    .type frame_without_extent, @function
frame_without_extent:
    .cfi_startproc
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    lea -16(%rsp), %rbp
    .cfi_def_cfa %rbp, 16
    call *%rdi
    pop %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size frame_without_extent, . - frame_without_extent
)");

namespace {

struct Tally {
    uint64_t walked = 0;
    uint64_t refused = 0;  // walks left to libunwind
    uint64_t wrong = 0;
    uint64_t kept = 0;      // frames reused from the previous walk
    uint64_t recurred = 0;  // known without a walk
};

void begin_walks() {
    start_walks();
    REQUIRE(can_read_unwind_rules());
    REQUIRE(thread_stack() != nullptr);
}

thread_local Tally t_tally;
thread_local std::mt19937 t_random(1);
thread_local uint32_t t_limit = kMaxStackDepth;
// The remembered stacks. The index is the node number minus 1.
thread_local std::vector<std::vector<uint64_t>> t_remembered;

uint32_t random_below(uint32_t limit) {
    return static_cast<uint32_t>(t_random() % limit);
}

// Walks the stack from the caller of this function in both ways and compares.
__attribute__((noinline)) void compare() {
    void* expected[kMaxStackDepth + 1];
    const int count = unw_backtrace(expected, static_cast<int>(t_limit + 1));
    const auto* frame = static_cast<const uint64_t*>(__builtin_frame_address(0));
    const Registers caller{frame[1], reinterpret_cast<uint64_t>(frame + 2), frame[0]};
    std::vector<uint64_t> wanted;
    for (int i = 1; i < count; ++i) {
        wanted.push_back(reinterpret_cast<uint64_t>(expected[i]));
    }
    ThreadStack* stack = thread_stack();
    const uint32_t known = stack == nullptr ? 0 : recurring_stack(*stack, caller);
    if (known != 0) {
        ++t_tally.recurred;
        t_tally.wrong += known > t_remembered.size() || t_remembered[known - 1] != wanted ? 1 : 0;
    }
    Walk walk{};
    if (stack == nullptr || !walk_stack(stack, caller, {0, 0}, t_limit, &walk)) {
        ++t_tally.refused;
        return;
    }
    std::vector<uint64_t> found;
    for (uint32_t i = 0; i < walk.fresh; ++i) {
        found.push_back(stack->fresh[i].address);
    }
    for (uint32_t i = walk.kept; i > 0; --i) {
        found.push_back(stack->frames[i - 1].address);
    }
    ++t_tally.walked;
    t_tally.kept += walk.kept;
    t_tally.wrong += found != wanted ? 1 : 0;
    // Interning keeps a walk's frames for the next walk in the same way.
    stack->count = walk.whole ? walk.kept + walk.fresh : 0;
    for (uint32_t i = 0; walk.whole && i < walk.fresh; ++i) {
        stack->frames[stack->count - 1 - i] = stack->fresh[i];
    }
    if (known == 0) {
        t_remembered.push_back(found);
        remember_recurring_stack(stack,
                                 caller,
                                 {0, 0},
                                 static_cast<uint32_t>(found.size()),
                                 static_cast<uint32_t>(t_remembered.size()));
    }
}

void wander(int depth);

__attribute__((noinline)) void with_large_frame(int depth) {
    volatile char large[3000];
    large[random_below(sizeof large)] = 1;
    wander(depth);
    large[0] = 2;
}

// A frame whose size differs from call to call, so that it is found by rbp.
__attribute__((noinline)) void with_variable_frame(int depth) {
    auto* memory = static_cast<volatile char*>(alloca(16 + random_below(4) * 64));
    memory[0] = 1;
    wander(depth);
    memory[0] = 2;
}

__attribute__((noinline)) void with_aligned_frame(int depth) {
    alignas(64) char aligned[64];
    asm volatile("" : : "r"(aligned) : "memory");
    wander(depth);
    asm volatile("" : : "r"(aligned) : "memory");
}

int order(const void* a, const void* b) {
    const int first = *static_cast<const int*>(a);
    const int second = *static_cast<const int*>(b);
    if (first == 1) {
        wander(first + second - 1);  // the other one holds the depth
    }
    return first - second;
}

// A walk from inside the C library.
__attribute__((noinline)) void through_qsort(int depth) {
    int values[] = {1, depth};
    qsort(values, 2, sizeof values[0], order);
    asm volatile("" ::: "memory");
}

struct WalksInDestructor {
    ~WalksInDestructor() { compare(); }
};

__attribute__((noinline)) void with_exception(int depth) {
    try {
        const WalksInDestructor guard;
        wander(depth);
        throw std::runtime_error("expected");
    } catch (const std::exception&) {
        compare();
        wander(depth - 1);
    }
}

__attribute__((noinline)) void through_function_object(int depth) {
    const std::function<void(int)> call = [](int further) { wander(further); };
    call(depth);
    asm volatile("" ::: "memory");
}

void wander(int depth) {
    const uint32_t calls = 1 + random_below(2);
    for (uint32_t i = 0; i < calls; ++i) {
        if (random_below(2) == 0) {
            compare();
        }
        if (depth <= 0) {
            break;
        }
        switch (random_below(7)) {
            case 0:
                with_large_frame(depth - 1);
                break;
            case 1:
                with_variable_frame(depth - 1);
                break;
            case 2:
                with_aligned_frame(depth - 1);
                break;
            case 3:
                through_qsort(depth - 1);
                break;
            case 4:
                with_exception(depth - 1);
                break;
            case 5:
                through_function_object(depth - 1);
                break;
            default:
                wander(depth - 1);
                break;
        }
    }
    compare();
}

Tally wander_a_while(uint64_t walks) {
    t_tally = {};
    if (thread_stack() != nullptr) {
        forget_stacks(thread_stack());  // remembered with another limit
    }
    while (t_tally.walked + t_tally.refused < walks) {
        wander(static_cast<int>(2 + random_below(10)));
    }
    return t_tally;
}

}  // namespace

TEST_CASE("random walks find libunwind's frames and reuse most frames of the previous walk",
          "[native-stacks]") {
    begin_walks();
    const Tally tally = wander_a_while(100'000);
    CHECK(tally.wrong == 0);
    CHECK(tally.walked > 90'000);
    CHECK(tally.kept > tally.walked);
    CHECK(tally.recurred > 0);
}

TEST_CASE("walks among few different stacks recognise most of them", "[native-stacks]") {
    begin_walks();
    t_tally = {};
    forget_stacks(thread_stack());
    for (uint32_t i = 0; i < 50'000; ++i) {
        wander(static_cast<int>(random_below(3)));
    }
    CHECK(t_tally.wrong == 0);
    CHECK(t_tally.recurred > t_tally.walked / 2);
}

TEST_CASE("a stack that is cut keeps its innermost frames", "[native-stacks]") {
    begin_walks();
    for (const uint32_t limit : {1u, 2u, 7u, 13u}) {
        t_limit = limit;
        const Tally tally = wander_a_while(5'000);
        CHECK(tally.wrong == 0);
        CHECK(tally.walked > 4'000);
    }
    t_limit = kMaxStackDepth;
}

namespace {

__attribute__((noinline)) void through_more_calls(int depth) {
    if (depth > 0) {
        through_more_calls(depth - 1);
    } else {
        compare();
    }
    asm volatile("" ::: "memory");
}

__attribute__((noinline)) void from_one_of_two(bool first) {
    if (first) {
        through_more_calls(10);
        asm volatile("# the first" ::: "memory");
    } else {
        through_more_calls(10);
        asm volatile("# the other" ::: "memory");
    }
}

}  // namespace

TEST_CASE("stacks that differ in one outer return address are distinguished", "[native-stacks]") {
    begin_walks();
    t_tally = {};
    forget_stacks(thread_stack());
    for (uint32_t i = 0; i < 1'000; ++i) {
        from_one_of_two(i / 2 % 2 == 0);
    }
    CHECK(t_tally.wrong == 0);
    CHECK(t_tally.walked == 1'000);
    CHECK(t_tally.recurred == 998);
}

namespace {

// 2^depth different stacks, all of which begin at the same place with the same address.
__attribute__((noinline)) void along_path(uint32_t path, int depth) {
    if (depth == 0) {
        compare();
    } else if (path % 2 == 0) {
        along_path(path / 2, depth - 1);
        asm volatile("# the first" ::: "memory");
    } else {
        along_path(path / 2, depth - 1);
        asm volatile("# the other" ::: "memory");
    }
    asm volatile("" ::: "memory");
}

}  // namespace

TEST_CASE("stacks that begin alike are distinguished by their callers", "[native-stacks]") {
    begin_walks();
    for (const int depth : {1, 4, 6, 8}) {
        t_tally = {};
        forget_stacks(thread_stack());
        const uint32_t paths = 1u << depth;
        for (uint32_t i = 0; i < 20 * paths; ++i) {
            along_path(i < paths ? i : random_below(paths), depth);
        }
        CHECK(t_tally.wrong == 0);
        CHECK(t_tally.walked == 20 * paths);
        if (paths <= 64) {                          // else some are given up
            CHECK(t_tally.recurred >= 18 * paths);  // the compiler may have two calls
        }
        CHECK(t_tally.recurred > 0);
    }
}

TEST_CASE("more stacks than can be remembered are still distinguished", "[native-stacks]") {
    begin_walks();
    t_tally = {};
    forget_stacks(thread_stack());
    for (uint32_t round = 0; round < 4; ++round) {
        t_random.seed(1);
        for (uint32_t i = 0; i < 300; ++i) {
            wander(8);
        }
    }
    CHECK(t_tally.wrong == 0);
    CHECK(t_tally.recurred > 0);
    CHECK(t_tally.recurred < t_tally.walked);
}

TEST_CASE("remembered stacks are forgotten when their code is unloaded or their thread ends",
          "[native-stacks]") {
    begin_walks();
    forget_stacks(thread_stack());
    std::vector<uint64_t> before;
    for (const bool forget : {false, false, true, false}) {
        t_tally = {};
        if (forget) {
            forget_unloaded_code();
        }
        from_one_of_two(true);
        before.push_back(t_tally.recurred);
    }
    CHECK(before == std::vector<uint64_t>{0, 1, 0, 1});
    // A later thread, which may reuse the earlier thread's stack and our data for it.
    uint64_t recurred = 0;
    for (int i = 0; i < 200; ++i) {
        std::thread([&recurred] {
            compare();
            through_more_calls(3);
            recurred += t_tally.recurred;
        }).join();
    }
    CHECK(recurred == 0);
}

TEST_CASE("each thread walks its own stack", "[native-stacks]") {
    begin_walks();
    std::vector<std::thread> threads;
    std::vector<Tally> tallies(4);
    for (size_t i = 0; i < tallies.size(); ++i) {
        threads.emplace_back([&tallies, i] {
            t_random.seed(static_cast<uint32_t>(i));
            tallies[i] = wander_a_while(10'000);
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    for (const Tally& tally : tallies) {
        CHECK(tally.wrong == 0);
        CHECK(tally.walked > 9'000);
    }
}

TEST_CASE("walks in signal handlers match libunwind or are left to it", "[native-stacks]") {
    begin_walks();
    static char alternate[1 << 16];
    stack_t other{};
    other.ss_sp = alternate;
    other.ss_size = sizeof alternate;
    REQUIRE(sigaltstack(&other, nullptr) == 0);
    for (const int flags : {0, SA_ONSTACK}) {
        struct sigaction action {};

        action.sa_handler = [](int) { compare(); };
        action.sa_flags = flags;
        REQUIRE(sigaction(SIGUSR1, &action, nullptr) == 0);
        t_tally = {};
        for (int i = 0; i < 200; ++i) {
            raise(SIGUSR1);
            wander(2);
        }
        CHECK(t_tally.wrong == 0);
        CHECK(t_tally.refused != 0);  // the signal's frame is not one of ours
    }
    signal(SIGUSR1, SIG_DFL);
    other.ss_flags = SS_DISABLE;
    sigaltstack(&other, nullptr);
}

TEST_CASE("coroutines with their own stacks do not confuse their thread's walks",
          "[native-stacks]") {
    begin_walks();
    static ucontext_t back;
    static ucontext_t coroutine;
    std::vector<char> memory(1 << 18);
    t_tally = {};
    for (int i = 0; i < 100; ++i) {
        getcontext(&coroutine);
        coroutine.uc_stack.ss_sp = memory.data();
        coroutine.uc_stack.ss_size = memory.size();
        coroutine.uc_link = &back;
        makecontext(
            &coroutine, [] { wander(4); }, 0);
        swapcontext(&back, &coroutine);
        wander(3);
    }
    CHECK(t_tally.wrong == 0);
    CHECK(t_tally.walked != 0);
}

TEST_CASE("a frame that would end where it begins is left to libunwind", "[native-stacks]") {
    begin_walks();
    t_tally = {};
    frame_without_extent(compare);
    CHECK(t_tally.refused == 1);
    CHECK(t_tally.walked == 0);
}

TEST_CASE("an address outside of code has no unwind rule") {
    start_walks();
    static const char data[64] = {};
    CHECK(read_unwind_rule(reinterpret_cast<uint64_t>(&data[8])) == kUnusualFrame);
    CHECK(read_unwind_rule(1) == kUnusualFrame);
    CHECK(read_unwind_rule(~uint64_t{0}) == kUnusualFrame);
}

TEST_CASE("after a module was unloaded the unwind rules are read again", "[native-stacks]") {
    UnwindRules rules{};
    if (!rules.create()) {
        FAIL("this C library was said to find unwind tables");
    }
    const auto here = reinterpret_cast<uint64_t>(__builtin_return_address(0));
    const UnwindRule rule = rules.rule_of(here);
    CHECK(rule == read_unwind_rule(here));
    const uint32_t generation = rules.generation();
    rules.forget();
    CHECK(rules.generation() != generation);
    CHECK(rules.rule_of(here) == rule);
}

extern "C" int fragtrace_can_read_stack(unsigned long address);

TEST_CASE("libunwind may read only what is mapped, from a thread's first walk on",
          "[native-stacks]") {
    std::thread([] {
        CHECK(fragtrace_can_read_stack(0x40) == 0);  // in page 0
        const uint64_t word = 0;
        CHECK(fragtrace_can_read_stack(reinterpret_cast<unsigned long>(&word)) == 1);
        CHECK(fragtrace_can_read_stack(0x40) == 0);
        CHECK(fragtrace_can_read_stack(0x7fffffffffffff00) == 0);
        errno = EDOM;
        CHECK(fragtrace_can_read_stack(0x40) == 0);
        CHECK(errno == EDOM);
    }).join();
}
