#include "stacks/stack_walk.h"

#include "stacks/stack_hash.h"
#include "stacks/thread_stacks.h"
#include "stacks/unwind_rules.h"

#include <dlfcn.h>
#include <initializer_list>

namespace fragtrace::preload {
namespace {

constexpr uint64_t kPage_bytes = 4096;
constexpr uint64_t kWord_bytes = 8;
// libunwind walks stacks that are larger than this. The kernel maps nothing else within this
// distance of the main thread's stack.
constexpr uint64_t kDeepest_bytes = 64u << 20;

constinit UnwindRules g_rules{};
uint64_t g_main_top;  // top of the main thread's stack

// Returns whether every page of [begin, end) is readable. Asks the kernel, because reading the
// pages here could fault.
bool is_readable(uint64_t begin, uint64_t end) {
    for (; begin < end; begin += kPage_bytes) {
        if (!can_read_word(begin)) {
            return false;
        }
    }
    return true;
}

// Called when the stack pointer is outside the known stack memory.
__attribute__((noinline)) bool look_at_stack(ThreadStack* stack, uint64_t stack_pointer) {
    const uint64_t page = stack_pointer & ~(kPage_bytes - 1);
    if (page == stack->refused_page) {
        return false;
    }
    if (stack->top != 0) {
        if (stack_pointer < stack->low && stack->top - page <= kDeepest_bytes &&
            is_readable(page, stack->low)) {
            stack->low = page;
            return true;
        }
    } else {
        // A thread's static TLS is at the upper end of its stack. That is not so for the main
        // thread.
        for (const uint64_t top :
             {reinterpret_cast<uint64_t>(&t_thread) & ~(kWord_bytes - 1), g_main_top}) {
            if (stack_pointer < top && top - page <= kDeepest_bytes && is_readable(page, top)) {
                stack->low = page;
                stack->top = top;
                return true;
            }
        }
    }
    // A signal handler with its own stack, or a coroutine.
    stack->refused_page = page;
    return false;
}

uint64_t read_word(uint64_t address) {
    return *reinterpret_cast<const uint64_t*>(address);
}

bool is_at(const RememberedFrame& frame, const Registers& at, uint32_t below_top) {
    return frame.below_top == below_top && frame.address == at.address &&
           frame.frame_pointer == at.frame_pointer;
}

// Returns true if all callers of the remembered frame `inner`, up to the outermost, have the same
// places and values as before. Otherwise *inner becomes the last frame for which that was true.
bool callers_unchanged(const ThreadStack& stack, uint32_t* inner) {
    uint32_t at = *inner;
    const RememberedFrame* frame = &stack.frames[at];
    for (; at > 0; --at) {
        const RememberedFrame* caller = frame - 1;
        if (read_word(stack.top - caller->below_top - kWord_bytes) != caller->address ||
            (frame->saved_below_top != 0 &&
             read_word(stack.top - frame->saved_below_top) != caller->frame_pointer)) {
            break;
        }
        frame = caller;
    }
    *inner = at;
    return at == 0;
}

// Steps to the caller. Returns false if the rule leads out of the stack. Sets where the caller's
// frame pointer was found, as in RememberedFrame::saved_below_top.
bool step(const ThreadStack& stack, UnwindRule rule, Registers* at, uint32_t* saved_below_top) {
    const uint64_t base =
        (rule & kRuleBaseIsFramePointer) != 0 ? at->frame_pointer : at->stack_pointer;
    const uint64_t frame_end = base + kWord_bytes * rule_distance_words(rule);
    if (frame_end <= at->stack_pointer || frame_end > stack.top || frame_end % kWord_bytes != 0) {
        return false;
    }
    *saved_below_top = 0;
    if (rule_saved_words(rule) != 0) {
        const uint64_t saved = frame_end - kWord_bytes * (rule_saved_words(rule) + 1);
        if (saved < stack.low) {
            return false;
        }
        at->frame_pointer = read_word(saved);
        *saved_below_top = static_cast<uint32_t>(stack.top - saved);
    }
    at->address = read_word(frame_end - kWord_bytes);
    at->stack_pointer = frame_end;
    return true;
}

}  // namespace

void start_walks() {
    if (g_main_top == 0) {
        const auto* end = static_cast<void**>(dlsym(RTLD_DEFAULT, "__libc_stack_end"));
        g_main_top = end == nullptr ? 0 : reinterpret_cast<uint64_t>(*end) & ~(kWord_bytes - 1);
    }
    if (g_rules.create()) {
        create_thread_stacks();
    }
}

bool walk_stack(
    ThreadStack* stack, const Registers& from, const TextRange& own, uint32_t limit, Walk* walk) {
    if ((from.stack_pointer < stack->low || from.stack_pointer >= stack->top) &&
        !look_at_stack(stack, from.stack_pointer)) {
        return false;
    }
    const uint32_t generation = g_rules.generation();
    if (stack->rules_generation != generation) {
        stack->rules_generation = generation;
        forget_stacks(stack);
    }
    Registers at = from;
    uint64_t hash = 0;
    uint32_t fresh = 0;
    uint32_t remembered = stack->count;  // those not passed yet
    const auto take_over = [&](const RememberedFrame& frame) {
        hash = add_frame_to_hash(hash, frame.address, fresh);
        copy_frame(&stack->fresh[fresh++], frame);
    };
    for (;;) {
        const auto below_top = static_cast<uint32_t>(stack->top - at.stack_pointer);
        if (fresh == 0 && at.address - own.begin < own.end - own.begin) {
            uint32_t ignored = 0;
            const UnwindRule rule = g_rules.rule_of(at.address);
            if (rule <= kOutermostFrame || !step(*stack, rule, &at, &ignored)) {
                return false;
            }
            continue;
        }
        while (remembered > 0 && stack->frames[remembered - 1].below_top > below_top) {
            --remembered;
        }
        if (remembered > 0 && is_at(stack->frames[remembered - 1], at, below_top)) {
            uint32_t inner = remembered - 1;
            if (callers_unchanged(*stack, &inner)) {
                // If the stack must be cut, remembered nodes are invalid: a node depends on the
                // outermost frame.
                const bool whole = fresh + remembered <= limit;
                for (; !whole && fresh < limit; --remembered) {
                    take_over(stack->frames[remembered - 1]);
                }
                *walk = {fresh, whole ? remembered : 0, whole, hash};
                return true;
            }
            for (; remembered - 1 > inner && fresh < limit; --remembered) {
                take_over(stack->frames[remembered - 1]);
            }
            const RememberedFrame& known = stack->frames[inner];
            at = {known.address, stack->top - known.below_top, known.frame_pointer};
            remembered = inner;
        }
        if (fresh == limit) {
            *walk = {fresh, 0, false, hash};
            return true;
        }
        RememberedFrame* frame = &stack->fresh[fresh];
        *frame = {at.address,
                  at.frame_pointer,
                  static_cast<uint32_t>(stack->top - at.stack_pointer),
                  0,
                  0};
        hash = add_frame_to_hash(hash, at.address, fresh);
        ++fresh;
        const UnwindRule rule = g_rules.rule_of(at.address);
        if (rule == kOutermostFrame) {
            *walk = {fresh, 0, true, hash};
            return true;
        }
        if (rule == kUnusualFrame || !step(*stack, rule, &at, &frame->saved_below_top)) {
            return false;
        }
    }
}

uint32_t recurring_stack(const ThreadStack& stack, const Registers& from) {
    return stack.recurring != nullptr && stack.rules_generation == g_rules.generation()
               ? stack.recurring->find(from)
               : 0;
}

void remember_recurring_stack(ThreadStack* stack,
                              const Registers& from,
                              const TextRange& own,
                              uint32_t frames,
                              uint32_t node) {
    constexpr uint32_t kMostSteps = RecurringStacks::kMostWords / 2;
    constexpr uint8_t kFoundByFramePointer = 1;
    constexpr uint8_t kSavesFramePointer = 2;
    RecurringStacks* known = recurring_stacks(stack);
    if (known == nullptr || from.stack_pointer % kWord_bytes != 0 || !known->wants_another()) {
        return;
    }
    const RecurringStacks::Draft draft = known->draft();
    uint8_t kinds[kMostSteps];
    uint32_t steps = 0;
    uint32_t kept = 0;
    const auto write = [&](uint32_t word, uint64_t address) {
        const uint64_t place = (address - from.stack_pointer) / kWord_bytes;
        draft.values[word] = read_word(address);
        draft.places[word] = static_cast<RecurringStacks::Place>(place);
        return address >= from.stack_pointer && place <= RecurringStacks::kFurthest_words;
    };
    for (Registers at = from;; ++steps) {
        kept += kept != 0 || at.address - own.begin >= own.end - own.begin ? 1 : 0;
        if (kept == frames) {
            break;
        }
        const UnwindRule rule = g_rules.rule_of(at.address);
        uint32_t saved_below_top = 0;
        if (steps == kMostSteps || rule <= kOutermostFrame ||
            !step(*stack, rule, &at, &saved_below_top) ||
            (saved_below_top != 0 && !write(2 * steps, stack->top - saved_below_top)) ||
            !write(2 * steps + 1, at.stack_pointer - kWord_bytes)) {
            return;
        }
        kinds[steps] = static_cast<uint8_t>(
            ((rule & kRuleBaseIsFramePointer) != 0 ? kFoundByFramePointer : 0) |
            (saved_below_top != 0 ? kSavesFramePointer : 0));
    }
    // From the outermost frame inwards: does a frame further out depend on the frame pointer?
    bool counts = false;
    for (uint32_t i = steps; i > 0; --i) {
        uint8_t* kind = &kinds[i - 1];
        const bool saves = (*kind & kSavesFramePointer) != 0;
        const bool saved_counts = saves && counts;
        counts = (*kind & kFoundByFramePointer) != 0 || (counts && !saves);
        *kind = saved_counts ? kSavesFramePointer : 0;
    }
    uint32_t words = 0;
    for (uint32_t i = 0; i < steps; ++i) {
        for (uint32_t word = 2 * i + (kinds[i] != 0 ? 0 : 1); word < 2 * i + 2; ++word) {
            draft.values[words] = draft.values[word];
            draft.places[words] = draft.places[word];
            ++words;
        }
    }
    known->add(from, counts, words, node);
}

void forget_unloaded_code() {
    g_rules.forget();
}

}  // namespace fragtrace::preload
