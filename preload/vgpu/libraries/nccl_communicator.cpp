#include "libraries/nccl_communicator.h"

#include "common/stub.h"
#include "libraries/kernel_launch.h"
#include "libraries/nccl_contents.h"
#include "libraries/nccl_values.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Size of the largest result with contents, and number and bytes of the larger ones, which are
// zeros. The recorder reads them (recorder/trace_facts.cpp).
extern "C" FT_EXPORT uint64_t fragtrace_vgpu_nccl_zeros[3];

namespace fragtrace::vgpu {

// A call: of a group that has not ended, and then until its peers have come.
struct Work {
    Communicator* on;
    Call call;
    int device;               // whose default stream is meant
    unsigned char* contents;  // what the call sends, until it has posted; null: unknown
    uint64_t contents_bytes;  // until read_contents: of what it sends
    bool complete;            // all contents are known
    bool posted;
    uint64_t id;      // the driver's
    uint64_t number;  // of the collective, or of the message between the two ranks
    Work* next;
};

namespace {

constexpr uint64_t kCheckEveryNs = 50000000;

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
Communicator* g_communicators;

uint64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return uint64_t(now.tv_sec) * 1000000000 + uint64_t(now.tv_nsec);
}

bool is_collective(CallKind kind) {
    return kind != CallKind::kSend && kind != CallKind::kReceive;
}

const char* name_of(int kind) {
    constexpr const char* kNames[] = {"AllReduce",
                                      "Reduce",
                                      "ReduceScatter",
                                      "Broadcast",
                                      "AllGather",
                                      "AlltoAll",
                                      "Gather",
                                      "Scatter",
                                      "Send",
                                      "Recv",
                                      "CommSplit"};
    return kind >= 0 && kind <= int(CallKind::kSplit) ? kNames[kind] : "an unknown call";
}

void look_for_gone(Communicator* on) {
    const uint64_t now = now_ns();
    if (now - on->checked_ns < kCheckEveryNs) return;
    on->checked_ns = now;
    for (int rank = 0; rank < on->ranks; ++rank) {
        if (rank != on->rank) is_gone(on->segment, rank);
    }
}

// True if all ranks have completed the collective whose place the next post takes.
bool collective_has_room(const Communicator& on) {
    const uint64_t number = member(on.segment, on.rank).posted;
    for (int rank = 0; rank < on.ranks; ++rank) {
        if (load(member(on.segment, rank).consumed) + kPosts <= number && is_here(on, rank)) {
            return false;
        }
    }
    return true;
}

// True if there is room for the post and the contents, whose place is then `offset`.
bool has_room(const Work& work, uint64_t* offset) {
    Communicator* on = work.on;
    const Call& call = work.call;
    if (call.kind == CallKind::kReceive) return true;
    if (call.kind == CallKind::kSend) {
        const Pair& pair = pair_of(on->segment, on->rank, call.root);
        if (is_here(*on, call.root) && load(pair.received) + kMessages <= pair.sent) return false;
    } else if (!collective_has_room(*on)) {
        return false;
    }
    const int ring = ring_of(*on, call);
    return work.contents_bytes == 0 || find_place(on, ring, work.contents_bytes, offset);
}

// All ranks must make the same call with the same number of bytes. A real NCCL would hang, or mix
// up data.
bool calls_agree(Communicator* on, const Work& work) {
    const Post& mine = post_of(on->segment, on->rank, work.number);
    for (int rank = 0; rank < on->ranks; ++rank) {
        const Post& its = post_of(on->segment, rank, work.number);
        if (its.kind == mine.kind && its.bytes == mine.bytes && its.root == mine.root &&
            its.operation == mine.operation) {
            continue;
        }
        char text[256];
        snprintf(text,
                 sizeof text,
                 "collective %llu: rank %d calls %s of %llu bytes, rank %d calls %s of %llu bytes",
                 static_cast<unsigned long long>(work.number),
                 on->rank,
                 name_of(mine.kind),
                 static_cast<unsigned long long>(mine.bytes),
                 rank,
                 name_of(its.kind),
                 static_cast<unsigned long long>(its.bytes));
        fail(on, kInvalidUsage, text);
        return false;
    }
    return true;
}

bool message_fits(Communicator* on, const Work& work) {
    const Post& message =
        pair_of(on->segment, work.call.root, on->rank).messages[work.number % kMessages];
    if (message.bytes == part_bytes(work.call)) return true;
    char text[256];
    snprintf(text,
             sizeof text,
             "rank %d receives %zu bytes from rank %d, which sends %llu bytes",
             on->rank,
             part_bytes(work.call),
             work.call.root,
             static_cast<unsigned long long>(message.bytes));
    fail(on, kInvalidUsage, text);
    return false;
}

enum class State { kWaits, kReady, kFails };

// Presence is read before the counters: a rank that is gone may have posted before it went.
State state_of(Communicator* on, const Work& work) {
    const Call& call = work.call;
    if (is_collective(call.kind)) {
        for (int rank = 0; rank < on->ranks; ++rank) {
            const bool here = is_here(*on, rank);
            if (load(member(on->segment, rank).posted) > work.number) continue;
            if (here) return State::kWaits;
            char text[64];
            snprintf(text, sizeof text, "rank %d has ended or left", rank);
            fail(on, kRemoteError, text);
            return State::kFails;
        }
        return calls_agree(on, work) ? State::kReady : State::kFails;
    }
    const bool here = is_here(*on, call.root);
    const bool sends = call.kind == CallKind::kSend;
    const Pair& pair = sends ? pair_of(on->segment, on->rank, call.root)
                             : pair_of(on->segment, call.root, on->rank);
    if (load(sends ? pair.expected : pair.sent) > work.number) {
        return sends || message_fits(on, work) ? State::kReady : State::kFails;
    }
    if (here) return State::kWaits;
    char text[64];
    snprintf(text, sizeof text, "rank %d has ended or left", call.root);
    fail(on, kRemoteError, text);
    return State::kFails;
}

// Of a collective or an agreement, which other threads may complete in another order.
void mark_consumed(const Communicator& on, uint64_t number) {
    uint64_t& consumed = member(on.segment, on.rank).consumed;
    if (load(consumed) <= number) store(consumed, number + 1);
}

void end(Communicator* on, const Work& work, bool with_result) {
    const Call& call = work.call;
    const size_t bytes = bytes_received(*on, call);
    if (with_result && bytes > kMostContents) {
        __atomic_store_n(
            &fragtrace_vgpu_nccl_zeros[2], fragtrace_vgpu_nccl_zeros[2] + bytes, __ATOMIC_RELAXED);
        __atomic_store_n(
            &fragtrace_vgpu_nccl_zeros[1], fragtrace_vgpu_nccl_zeros[1] + 1, __ATOMIC_RELAXED);
    }
    unsigned char* result = nullptr;
    if (with_result && bytes > 0 && bytes <= kMostContents) {
        result = static_cast<unsigned char*>(calloc(1, bytes));
        if (result != nullptr && !compute(*on, call, work.number, result, bytes)) {
            free(result);
            result = nullptr;
        }
    }
    driver_interface()->end_work(work.id, result);
    free(result);
    if (!work.posted) {
        --on->unposted;
    } else if (call.kind == CallKind::kReceive) {
        store(pair_of(on->segment, call.root, on->rank).received, work.number + 1);
    } else if (call.kind != CallKind::kSend) {
        mark_consumed(*on, work.number);
    }
}

void free_work(Work* work) {
    free(work->contents);
    free(work);
}

void post(Work* work, uint64_t offset) {
    Communicator* on = work->on;
    const Call& call = work->call;
    Post entry{part_bytes(call),
               0,
               0,
               work->complete ? 1 : 0,
               int32_t(call.kind),
               call.root,
               call.operation,
               call.type};
    const auto put = [&] {
        put_contents(on,
                     ring_of(*on, call),
                     offset,
                     work->contents,
                     work->contents_bytes,
                     work->number,
                     &entry);
    };
    if (call.kind == CallKind::kReceive) {
        Pair& pair = pair_of(on->segment, call.root, on->rank);
        work->number = pair.expected;
        store(pair.expected, work->number + 1);
    } else if (call.kind == CallKind::kSend) {
        Pair& pair = pair_of(on->segment, on->rank, call.root);
        work->number = pair.sent;
        put();
        pair.messages[work->number % kMessages] = entry;
        store(pair.sent, work->number + 1);
    } else {
        Member& me = member(on->segment, on->rank);
        work->number = me.posted;
        put();
        post_of(on->segment, on->rank, work->number) = entry;
        store(me.posted, work->number + 1);
    }
    free(work->contents);
    work->contents = nullptr;
    work->posted = true;
    --on->unposted;
}

bool failed(const Communicator& on) {
    return on.aborted || on.error != kSuccess;
}

// What earlier works of a look found, by ring.
struct Look {
    bool full[kMostRanks + 1];   // no room to post
    bool waits[kMostRanks + 1];  // a receive from this peer, or a collective, has not ended
};

// Posts the work, unless it or an earlier one has no room in the ring. Returns whether it did.
bool try_to_post(Work* work, Look* look) {
    uint64_t offset = 0;
    if (work->posted || failed(*work->on)) return false;
    if (work->call.kind != CallKind::kReceive) {
        bool& full = look->full[ring_of(*work->on, work->call)];
        if (!full) full = !has_room(*work, &offset);
        if (full) return false;
    }
    post(work, offset);
    return true;
}

// Receives from one peer end in order, and so do collectives, because a counter stands for all of
// them: the peer may post two between the looks at the first and the second one.
State state_in_order(const Work& work, Look* look) {
    Communicator* on = work.on;
    bool& earlier_waits = look->waits[ring_of(*on, work.call)];
    const bool in_order = work.call.kind != CallKind::kSend;
    State state = State::kWaits;
    if (work.posted && !(in_order && earlier_waits)) state = state_of(on, work);
    if (state == State::kWaits && failed(*on)) return State::kFails;
    if (state == State::kWaits && in_order) earlier_waits = true;
    return state;
}

// Posts the works that have room, and ends those whose peers have come. Returns whether anything
// changed.
bool look_at_works(Communicator* on) {
    Look look{};
    bool changed = false;
    Work* before = nullptr;
    for (Work* work = on->first; work != nullptr;) {
        if (try_to_post(work, &look)) changed = true;
        const State state = state_in_order(*work, &look);
        Work* next = work->next;
        if (state == State::kWaits) {
            before = work;
        } else {
            end(on, *work, state == State::kReady);
            (before != nullptr ? before->next : on->first) = next;
            if (on->last == work) on->last = before;
            free_work(work);
            changed = true;
        }
        work = next;
    }
    return changed;
}

void progress(Communicator* on) {
    if (on->first == nullptr) return;
    look_for_gone(on);
    // Messages of a rank to itself make room for the next ones.
    while (look_at_works(on) && on->unposted != 0) {
    }
}

void progress_each() {
    for (Communicator* at = g_communicators; at != nullptr; at = at->next) {
        progress(at);
    }
}

bool all_posted_or_failed(Communicator* on) {
    if (!is_communicator(on) || failed(*on)) return true;
    look_for_gone(on);
    return on->unposted == 0;
}

bool works_may_begin(void* first) {
    for (const Work* work = static_cast<Work*>(first); work != nullptr; work = work->next) {
        // A receive keeps no contents and always has room.
        if (work->call.kind != CallKind::kReceive && !all_posted_or_failed(work->on)) return false;
    }
    return true;
}

// Reads what a call sends. Waits if that is the result of a collective that has not ended.
bool read_contents(Work* work) {
    Call& call = work->call;
    const size_t bytes = work->contents_bytes;
    Known known = Known::kNothing;
    if (bytes > 0 && bytes <= kMostContents) {
        work->contents = static_cast<unsigned char*>(malloc(bytes));
        if (work->contents == nullptr) return false;
        known =
            driver_interface()->read(reinterpret_cast<uint64_t>(call.from), work->contents, bytes);
    }
    if (reduces(call.kind) && call.operation >= kReductions) {
        const unsigned char* factor = factor_of(call.operation);
        if (factor == nullptr || !can_reduce(call.type)) known = Known::kNothing;
        if (known == Known::kAll) {
            multiply(work->contents, bytes / bytes_of(call.type), call.type, factor);
        }
        call.operation = kSum;
    }
    work->complete = known == Known::kAll;
    if (known != Known::kPart && known != Known::kAll) {
        free(work->contents);
        work->contents = nullptr;
        work->contents_bytes = 0;
    }
    return true;
}

// Adds a work to its stream and to those of its communicator.
int begin(Work* work) {
    Communicator* on = work->on;
    int error = kSuccess;
    if (!is_communicator(on)) {
        error = kInvalidArgument;
    } else if (on->error != kSuccess) {
        error = on->error;
    } else if (on->aborted) {
        error = kInvalidUsage;
    } else {
        work->id = begin_work_on_device(work->device,
                                        work->call.stream,
                                        reinterpret_cast<uint64_t>(work->call.to),
                                        bytes_received(*on, work->call));
    }
    if (work->id == 0) {  // an error, or captured
        free_work(work);
        return error;
    }
    append(&on->first, &on->last, work);
    ++on->unposted;
    return kSuccess;
}

}  // namespace

CommunicatorLock::CommunicatorLock() {
    pthread_mutex_lock(&g_mutex);
}

CommunicatorLock::~CommunicatorLock() {
    pthread_mutex_unlock(&g_mutex);
}

bool wait_unlocked(bool (*ready)(void*), void* data, unsigned limit_s) {
    constexpr long kLongestNs = 1000000;
    const uint64_t start = now_ns();
    for (long sleep_ns = 20000; !ready(data);) {
        if (limit_s != 0 && now_ns() - start > uint64_t(limit_s) * 1000000000) return false;
        pthread_mutex_unlock(&g_mutex);
        const timespec moment{0, sleep_ns};
        nanosleep(&moment, nullptr);
        if (sleep_ns < kLongestNs) sleep_ns *= 2;
        pthread_mutex_lock(&g_mutex);
        progress_each();
    }
    return true;
}

Communicator* new_communicator(const char* key, int ranks, int rank, int* error) {
    *error = kSystemError;
    auto* made = static_cast<Communicator*>(calloc(1, sizeof(Communicator)));
    if (made == nullptr || driver_interface() == nullptr) {
        free(made);
        return nullptr;
    }
    made->ranks = ranks;
    made->rank = rank;
    made->device = current_device();
    memcpy(made->key, key, sizeof made->key);
    if (!join(&made->segment, key, ranks, rank, made->problem, sizeof made->problem)) {
        fprintf(stderr, "fragtrace: virtual NCCL: %s\n", made->problem);
        free(made);
        return nullptr;
    }
    made->next = g_communicators;
    g_communicators = made;
    driver_interface()->set_progress(progress_all);
    *error = kSuccess;
    return made;
}

// Works that still wait end without a result. Peers can still read what this rank posted.
void delete_communicator(Communicator* communicator) {
    communicator->aborted = true;
    progress(communicator);
    for (Communicator** at = &g_communicators; *at != nullptr; at = &(*at)->next) {
        if (*at != communicator) continue;
        *at = communicator->next;
        break;
    }
    forget_contents(communicator);
    leave(&communicator->segment, communicator->rank);
    free(communicator);
}

bool is_communicator(const Communicator* communicator) {
    for (const Communicator* at = g_communicators; at != nullptr; at = at->next) {
        if (at == communicator) return true;
    }
    return false;
}

int fail(Communicator* communicator, int error, const char* problem) {
    if (communicator->error == kSuccess) {
        communicator->error = error;
        snprintf(communicator->problem, sizeof communicator->problem, "%s", problem);
    }
    return error;
}

bool is_here(const Communicator& on, int rank) {
    return !is_marked_gone(on.segment, rank);
}

Work* new_work(Communicator* on, const Call& call) {
    auto* work = static_cast<Work*>(calloc(1, sizeof(Work)));
    if (work == nullptr) return nullptr;
    work->on = on;
    work->call = call;
    work->device = current_device();
    work->contents_bytes = bytes_sent(*on, call);  // another thread may destroy the communicator
    return work;
}

void append(Work** first, Work** last, Work* work) {
    work->next = nullptr;
    (*first == nullptr ? *first : (*last)->next) = work;
    *last = work;
}

void free_works(Work* first) {
    while (first != nullptr) {
        Work* work = first;
        first = work->next;
        free_work(work);
    }
}

// All contents are read before the first result can come, as one kernel of NCCL would.
int issue(Work* first) {
    for (Work* work = first; work != nullptr; work = work->next) {
        if (read_contents(work)) continue;
        free_works(first);
        return kSystemError;
    }
    const CommunicatorLock lock;
    wait_unlocked(works_may_begin, first, 0);
    int first_error = kSuccess;
    while (first != nullptr) {
        Work* work = first;
        first = work->next;
        const int error = begin(work);
        if (first_error == kSuccess) first_error = error;
    }
    progress_each();
    return first_error;
}

bool wait_until_ended(Communicator* communicator, unsigned limit_s) {
    const auto ready = [](void* data) {
        const auto* on = static_cast<Communicator*>(data);
        return !is_communicator(on) || on->first == nullptr;
    };
    return wait_unlocked(ready, communicator, limit_s);
}

int post_agreement(Communicator* communicator, int colour, int key, uint64_t* number) {
    // The post must come after those of earlier calls. It must not take the place of one that a
    // peer has still to read.
    const auto ready = [](void* data) {
        auto* on = static_cast<Communicator*>(data);
        if (!is_communicator(on) || failed(*on)) return true;
        return all_posted_or_failed(on) && collective_has_room(*on);
    };
    wait_unlocked(ready, communicator, 0);
    if (!is_communicator(communicator)) return kInvalidArgument;
    if (communicator->error != kSuccess) return communicator->error;
    if (communicator->aborted) return kInvalidUsage;
    Member& me = member(communicator->segment, communicator->rank);
    *number = me.posted;
    Post& post = post_of(communicator->segment, communicator->rank, *number);
    post = {};
    post.kind = int32_t(CallKind::kSplit);
    post.operation = colour;
    post.root = key;
    store(me.posted, *number + 1);
    return kSuccess;
}

bool all_posted(Communicator* communicator, uint64_t number) {
    look_for_gone(communicator);
    for (int rank = 0; rank < communicator->ranks; ++rank) {
        const bool here = is_here(*communicator, rank);
        if (load(member(communicator->segment, rank).posted) > number) continue;
        if (!here) fail(communicator, kRemoteError, "a rank has ended or left before a split");
        return false;
    }
    // The agreement also tells the peers that this rank has read all earlier collectives. Peers may
    // have posted those since the last look, but before they posted their part of the agreement.
    progress(communicator);
    return true;
}

void consumed_agreement(Communicator* communicator, uint64_t number) {
    mark_consumed(*communicator, number);
}

bool a_member_is_gone(Communicator* communicator) {
    look_for_gone(communicator);
    for (int rank = 0; rank < communicator->ranks; ++rank) {
        if (!is_here(*communicator, rank)) return true;
    }
    return false;
}

void progress_all() {
    const CommunicatorLock lock;
    progress_each();
}

}  // namespace fragtrace::vgpu

uint64_t fragtrace_vgpu_nccl_zeros[3] = {fragtrace::vgpu::kMostContents, 0, 0};
