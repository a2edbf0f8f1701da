#include "libraries/nccl_communicator.h"

#include "common/stub.h"
#include "libraries/kernel_launch.h"
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

// A call that waits for its peers.
struct Work {
    uint64_t id;      // the driver's
    uint64_t number;  // of the collective, or of the message between the two ranks
    Call call;
    Work* next;
};

// Contents in this rank's data that a peer has still to read.
struct Sent {
    uint64_t offset;
    uint64_t bytes;
    uint64_t number;
    int peer;  // -1: all ranks
    Sent* next;
};

namespace {

constexpr size_t kMostContents = size_t{1} << 20;
constexpr uint64_t kCheckEveryNs = 50000000;

pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
Communicator* g_communicators;

uint64_t load(const uint64_t& counter) {
    return __atomic_load_n(&counter, __ATOMIC_ACQUIRE);
}

void store(uint64_t& counter, uint64_t value) {
    __atomic_store_n(&counter, value, __ATOMIC_RELEASE);
}

uint64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return uint64_t(now.tv_sec) * 1000000000 + uint64_t(now.tv_nsec);
}

bool is_collective(Kind kind) {
    return kind != Kind::kSend && kind != Kind::kReceive;
}

bool reduces(Kind kind) {
    return kind == Kind::kAllReduce || kind == Kind::kReduce || kind == Kind::kReduceScatter;
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
    return kind >= 0 && kind <= int(Kind::kSplit) ? kNames[kind] : "an unknown call";
}

size_t part_bytes(const Call& call) {
    return call.count * bytes_of(call.type);
}

size_t bytes_sent(const Communicator& on, const Call& call) {
    const size_t part = part_bytes(call);
    const bool root = call.root == on.rank;
    switch (call.kind) {
        case Kind::kReduceScatter:
        case Kind::kAlltoAll:
            return part * size_t(on.ranks);
        case Kind::kBroadcast:
            return root ? part : 0;
        case Kind::kScatter:
            return root ? part * size_t(on.ranks) : 0;
        case Kind::kReceive:
            return 0;
        default:
            return part;
    }
}

size_t bytes_received(const Communicator& on, const Call& call) {
    const size_t part = part_bytes(call);
    const bool root = call.root == on.rank;
    switch (call.kind) {
        case Kind::kAllGather:
        case Kind::kAlltoAll:
            return part * size_t(on.ranks);
        case Kind::kReduce:
            return root ? part : 0;
        case Kind::kGather:
            return root ? part * size_t(on.ranks) : 0;
        case Kind::kSend:
            return 0;
        default:
            return part;
    }
}

bool is_here(const Communicator& on, int rank) {
    return __atomic_load_n(&member(on.segment, rank).presence, __ATOMIC_ACQUIRE) != kGone;
}

void look_for_gone(Communicator* on) {
    const uint64_t now = now_ns();
    if (now - on->checked_ns < kCheckEveryNs) return;
    on->checked_ns = now;
    for (int rank = 0; rank < on->ranks; ++rank) {
        if (rank != on->rank) is_gone(on->segment, rank);
    }
}

// Frees the data that all its readers have read.
void release_sent(Communicator* on) {
    while (on->sent != nullptr) {
        Sent* sent = on->sent;
        const int first = sent->peer < 0 ? 0 : sent->peer;
        const int last = sent->peer < 0 ? on->ranks - 1 : sent->peer;
        for (int rank = first; rank <= last; ++rank) {
            const uint64_t read = sent->peer < 0
                                      ? load(member(on->segment, rank).consumed)
                                      : load(pair_of(on->segment, on->rank, rank).received);
            if (read <= sent->number && is_here(*on, rank)) return;
        }
        on->sent = sent->next;
        free(sent);
    }
    on->data_end = 0;
}

// Finds a place for contents in this rank's data. Returns false while peers have not read enough.
bool find_place(const Communicator& on, uint64_t bytes, uint64_t* offset) {
    *offset = on.data_end;
    if (on.sent == nullptr) return true;
    const uint64_t oldest = on.sent->offset;
    if (on.data_end < oldest) return on.data_end + bytes < oldest;
    if (on.data_end + bytes <= kDataBytes) return true;
    *offset = 0;
    return bytes < oldest;
}

struct Room {
    Communicator* on;
    const Call* call;
    uint64_t data_bytes;
    uint64_t offset;
};

// True when a call can post, or must fail. All ranks have completed the collective whose place the
// new post takes, and there is room for the contents.
bool has_room(void* data) {
    auto* room = static_cast<Room*>(data);
    Communicator* on = room->on;
    if (!is_communicator(on) || on->aborted || on->error != kSuccess) return true;
    look_for_gone(on);
    release_sent(on);
    if (room->call->kind == Kind::kReceive) return true;
    if (room->call->kind == Kind::kSend) {
        const Pair& pair = pair_of(on->segment, on->rank, room->call->root);
        if (!is_here(*on, room->call->root)) return true;
        if (load(pair.received) + kMessages <= pair.sent) return false;
    } else {
        const uint64_t number = member(on->segment, on->rank).posted;
        for (int rank = 0; rank < on->ranks; ++rank) {
            if (load(member(on->segment, rank).consumed) + kPosts <= number && is_here(*on, rank)) {
                return false;
            }
        }
    }
    return room->data_bytes == 0 || find_place(*on, room->data_bytes, &room->offset);
}

// Puts contents into this rank's data. Without room in the file system the peers see zeros.
void put_contents(Communicator* on,
                  const Room& room,
                  const void* contents,
                  uint64_t number,
                  int peer,
                  Post* post) {
    if (contents == nullptr || room.data_bytes == 0 ||
        !back_data(&on->segment, on->rank, room.offset + room.data_bytes)) {
        post->complete = 0;
        return;
    }
    auto* sent = static_cast<Sent*>(calloc(1, sizeof(Sent)));
    if (sent == nullptr) return;
    *sent = {room.offset, room.data_bytes, number, peer, nullptr};
    Sent** last = &on->sent;
    while (*last != nullptr) {
        last = &(*last)->next;
    }
    *last = sent;
    on->data_end = room.offset + room.data_bytes;
    memcpy(data_of(on->segment, on->rank) + room.offset, contents, room.data_bytes);
    post->data = room.offset;
    post->data_bytes = uint32_t(room.data_bytes);
}

const unsigned char* contents_of(const Communicator& on, int rank, const Post& post) {
    if (post.data_bytes == 0 || post.data + post.data_bytes > kDataBytes) return nullptr;
    return data_of(on.segment, rank) + post.data;
}

// Copies the part of the contents that starts at `from` and has the result's size. Returns false if
// nothing is known of it.
bool copy_part(
    const Communicator& on, int rank, const Post& post, size_t from, size_t bytes, void* to) {
    const unsigned char* contents = contents_of(on, rank, post);
    if (contents == nullptr || from + bytes > post.data_bytes) return false;
    memcpy(to, contents + from, bytes);
    return true;
}

bool reduce_all(const Communicator& on, const Work& work, unsigned char* result, size_t bytes) {
    const Call& call = work.call;
    if (!can_reduce(call.type)) return false;
    const size_t from = call.kind == Kind::kReduceScatter ? size_t(on.rank) * bytes : 0;
    auto* other = static_cast<unsigned char*>(malloc(bytes));
    bool known = other != nullptr;
    for (int rank = 0; rank < on.ranks && known; ++rank) {
        const Post& post = post_of(on.segment, rank, work.number);
        known = post.complete != 0 &&
                copy_part(on, rank, post, from, bytes, rank == 0 ? result : other);
        if (known && rank > 0) reduce(result, other, call.count, call.type, call.operation);
    }
    free(other);
    if (known && call.operation == kAvg) divide(result, call.count, call.type, on.ranks);
    return known;
}

// Fills the zeroed result. Returns false if all of it is unknown.
bool compute(const Communicator& on, const Work& work, unsigned char* result, size_t bytes) {
    const Call& call = work.call;
    const size_t part = part_bytes(call);
    if (call.kind == Kind::kReceive) {
        const Pair& pair = pair_of(on.segment, call.root, on.rank);
        return copy_part(on, call.root, pair.messages[work.number % kMessages], 0, part, result);
    }
    if (reduces(call.kind)) return reduce_all(on, work, result, bytes);
    if (call.kind == Kind::kBroadcast || call.kind == Kind::kScatter) {
        const size_t from = call.kind == Kind::kScatter ? size_t(on.rank) * part : 0;
        return copy_part(
            on, call.root, post_of(on.segment, call.root, work.number), from, part, result);
    }
    bool known = false;
    for (int rank = 0; rank < on.ranks; ++rank) {
        const size_t from = call.kind == Kind::kAlltoAll ? size_t(on.rank) * part : 0;
        const Post& post = post_of(on.segment, rank, work.number);
        if (copy_part(on, rank, post, from, part, result + size_t(rank) * part)) known = true;
    }
    return known;
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
    const bool sends = call.kind == Kind::kSend;
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
        if (result != nullptr && !compute(*on, work, result, bytes)) {
            free(result);
            result = nullptr;
        }
    }
    driver_interface()->end_work(work.id, result);
    free(result);
    if (call.kind == Kind::kReceive) {
        store(pair_of(on->segment, call.root, on->rank).received, work.number + 1);
    } else if (call.kind != Kind::kSend) {
        store(member(on->segment, on->rank).consumed, work.number + 1);
    }
}

void progress(Communicator* on) {
    if (on->first == nullptr) return;
    look_for_gone(on);
    for (Work** at = &on->first; *at != nullptr;) {
        Work* work = *at;
        State state = state_of(on, *work);
        if (state == State::kWaits && (on->aborted || on->error != kSuccess)) state = State::kFails;
        if (state == State::kWaits) {
            at = &work->next;
            continue;
        }
        end(on, *work, state == State::kReady);
        *at = work->next;
        free(work);
    }
    release_sent(on);
}

void post_call(Communicator* on,
               const Call& call,
               const Room& room,
               const void* contents,
               bool complete,
               uint64_t* number) {
    Post post{part_bytes(call),
              0,
              0,
              complete ? 1 : 0,
              int32_t(call.kind),
              call.root,
              call.operation,
              call.type};
    if (call.kind == Kind::kReceive) {
        Pair& pair = pair_of(on->segment, call.root, on->rank);
        *number = pair.expected;
        store(pair.expected, *number + 1);
    } else if (call.kind == Kind::kSend) {
        Pair& pair = pair_of(on->segment, on->rank, call.root);
        *number = pair.sent;
        put_contents(on, room, contents, *number, call.root, &post);
        pair.messages[*number % kMessages] = post;
        store(pair.sent, *number + 1);
    } else {
        Member& me = member(on->segment, on->rank);
        *number = me.posted;
        put_contents(on, room, contents, *number, -1, &post);
        post_of(on->segment, on->rank, *number) = post;
        store(me.posted, *number + 1);
    }
}

int issue_with(
    Communicator* on, const Call& call, const void* contents, size_t bytes, bool complete) {
    const CommunicatorLock lock;
    if (!is_communicator(on)) return kInvalidArgument;
    Room room{on, &call, bytes, 0};
    wait_unlocked(has_room, &room, 0);
    if (!is_communicator(on)) return kInvalidArgument;
    if (on->error != kSuccess) return on->error;
    if (on->aborted) return kInvalidUsage;
    auto* work = static_cast<Work*>(calloc(1, sizeof(Work)));
    if (work == nullptr) return kSystemError;
    work->call = call;
    work->id = driver_interface()->begin_work(
        call.stream, reinterpret_cast<uint64_t>(call.to), bytes_received(*on, call));
    if (work->id == 0) {  // captured
        free(work);
        return kSuccess;
    }
    post_call(on, call, room, contents, complete, &work->number);
    Work** last = &on->first;
    while (*last != nullptr) {
        last = &(*last)->next;
    }
    *last = work;
    progress(on);
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
        for (Communicator* at = g_communicators; at != nullptr; at = at->next) {
            progress(at);
        }
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
    while (communicator->sent != nullptr) {
        Sent* sent = communicator->sent;
        communicator->sent = sent->next;
        free(sent);
    }
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

int issue(Communicator* on, const Call& call) {
    const size_t bytes = bytes_sent(*on, call);
    unsigned char* contents = nullptr;
    Known known = Known::kNothing;
    if (bytes > 0 && bytes <= kMostContents) {
        contents = static_cast<unsigned char*>(malloc(bytes));
        if (contents == nullptr) return kSystemError;
        known = driver_interface()->read(reinterpret_cast<uint64_t>(call.from), contents, bytes);
    }
    Call posted = call;
    if (reduces(call.kind) && call.operation >= kReductions) {
        const unsigned char* factor = factor_of(call.operation);
        if (factor == nullptr || !can_reduce(call.type)) known = Known::kNothing;
        if (known == Known::kAll) {
            multiply(contents, bytes / bytes_of(call.type), call.type, factor);
        }
        posted.operation = kSum;
    }
    const bool any = known == Known::kPart || known == Known::kAll;
    const int result = issue_with(on, posted, contents, any ? bytes : 0, known == Known::kAll);
    free(contents);
    return result;
}

int post_agreement(Communicator* communicator, int colour, int key, uint64_t* number) {
    // A post must not take the place of one that a peer has still to read.
    const Call call{Kind::kSplit, nullptr, nullptr, 0, 0, 0, 0, nullptr};
    Room room{communicator, &call, 0, 0};
    wait_unlocked(has_room, &room, 0);
    if (!is_communicator(communicator)) return kInvalidArgument;
    if (communicator->error != kSuccess) return communicator->error;
    if (communicator->aborted) return kInvalidUsage;
    Member& me = member(communicator->segment, communicator->rank);
    *number = me.posted;
    Post& post = post_of(communicator->segment, communicator->rank, *number);
    post = {};
    post.kind = int32_t(Kind::kSplit);
    post.operation = colour;
    post.root = key;
    store(me.posted, *number + 1);
    return kSuccess;
}

bool all_posted(Communicator* communicator, uint64_t number) {
    progress(communicator);
    look_for_gone(communicator);
    for (int rank = 0; rank < communicator->ranks; ++rank) {
        const bool here = is_here(*communicator, rank);
        if (load(member(communicator->segment, rank).posted) > number) continue;
        if (!here) fail(communicator, kRemoteError, "a rank has ended or left before a split");
        return false;
    }
    return true;
}

void consumed_agreement(Communicator* communicator, uint64_t number) {
    store(member(communicator->segment, communicator->rank).consumed, number + 1);
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
    for (Communicator* at = g_communicators; at != nullptr; at = at->next) {
        progress(at);
    }
}

}  // namespace fragtrace::vgpu

uint64_t fragtrace_vgpu_nccl_zeros[3] = {fragtrace::vgpu::kMostContents, 0, 0};
