// Cards that several processes of a job used, and what each process held at the moment that counts:
// at the first out-of-memory on the card, or when most was reserved.
#pragma once

#include "analyzer/analysis/job/job.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// What a process held at one moment, from its trace.
struct UserMoment {
    std::uint64_t bytes = 0;  // all driver memory of the process on the card, without its context
    std::uint64_t allocated_bytes = 0;
    std::vector<LineHolds> lines = {};  // most bytes first, at most three
    std::string phase = {};             // empty = none was open
    bool has_phases = false;            // false: the program had marked none by then
    std::uint64_t idle_ns = 0;          // since its last event
    bool recording_stopped = false;     // it may have allocated and freed meanwhile
    bool complete = true;               // false: events of the trace are missing
};

// One process on a shared card, at the moment when all together held most.
struct CardUser {
    std::size_t process = 0;
    std::size_t device = 0;  // index into its devices
    // Without `moment`: the most that its pool reserved in the bin of that moment.
    std::uint64_t bytes = 0;
    // Its last event was this long before: it may have ended since. 0 = it was alive.
    std::uint64_t after_last_event_ns = 0;
    std::optional<UserMoment> moment = {};  // add_moments()
};

// One context on a shared card.
struct CardContext {
    std::size_t process = 0;
    std::size_t context = 0;                // index into its contexts
    std::uint64_t after_last_event_ns = 0;  // as in CardUser
    // The process is known to have held nothing else of the card. False: nothing in its pool.
    bool nothing_else = false;
};

struct SharedCard {
    std::string host = {};
    std::string uuid = {};
    std::uint64_t total_bytes = 0;  // 0 = not known
    // That moment; if only contexts are known, when the last one began.
    std::uint64_t at_unix_ns = 0;
    bool at_failure = false;           // it is an out-of-memory: see shared_cards()
    std::uint64_t sum_bytes = 0;       // without contexts
    bool exact = false;                // false: the sum is that of maxima of parts of the time
    bool at_most = false;              // the pools of the processes had no more; false: events are
                                       // missing
    CardUser failed = {};              // with at_failure: the process that ran out of memory then
    std::vector<CardUser> users = {};  // most bytes first
    std::vector<CardContext> contexts = {};  // of all processes that had one then

    // The contexts of processes that are not among the users.
    [[nodiscard]] std::vector<CardContext> only_contexts() const;
};

// One card: the machine (by its boot, or by the name of the host), the UUID, and the set of virtual
// cards, since virtual cards of different sets have equal UUIDs.
using CardKey = std::array<std::string, 3>;
CardKey card_key(const ProcessSummary& process, const std::string& uuid);

// Whether the context counts on its card. A virtual card may have contexts without memory.
bool takes_card(const ProcessSummary& process, const ProcessContext& context);

// Whether the cards of a process and the time at which it used them are known, and others can use
// them.
bool may_share(const ProcessSummary& process);

// The cards of a process: those of which it requested memory, and those on which it had a context.
std::set<CardKey> cards_of(const ProcessSummary& process);

// Whether two processes used one card at the same time.
bool has_shared_card(const Job& job);

// The moment is that of the first out-of-memory that a program did not get past, otherwise of the
// first one, otherwise when most was reserved. Sorted by host and card. Only cards on which at
// least two processes held something at that moment or, at an out-of-memory, another one than that
// which ran out of memory.
std::vector<SharedCard> shared_cards(const Job& job);

}  // namespace fragtrace::analyzer
