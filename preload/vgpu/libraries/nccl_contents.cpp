#include "libraries/nccl_contents.h"

#include "libraries/nccl_values.h"

#include <stdlib.h>
#include <string.h>

namespace fragtrace::vgpu {

// Contents in a ring that a peer has still to read.
struct Sent {
    uint64_t offset;  // in the ring
    uint64_t bytes;
    uint64_t number;  // of the collective, or of the message to the peer
    Sent* next;
};

namespace {

bool was_read(const Communicator& on, int ring, uint64_t number) {
    if (ring < on.ranks) {
        return load(pair_of(on.segment, on.rank, ring).received) > number || !is_here(on, ring);
    }
    for (int rank = 0; rank < on.ranks; ++rank) {
        if (load(member(on.segment, rank).consumed) <= number && is_here(on, rank)) return false;
    }
    return true;
}

const unsigned char* contents_of(const Communicator& on, int rank, const Post& post) {
    const uint64_t all = kRingBytes * uint64_t(on.ranks + 1);
    if (post.data_bytes == 0 || post.data > all || post.data_bytes > all - post.data) {
        return nullptr;
    }
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

bool reduce_all(const Communicator& on,
                const Call& call,
                uint64_t number,
                unsigned char* result,
                size_t bytes) {
    if (!can_reduce(call.type)) return false;
    const size_t from = call.kind == CallKind::kReduceScatter ? size_t(on.rank) * bytes : 0;
    auto* other = static_cast<unsigned char*>(malloc(bytes));
    bool known = other != nullptr;
    for (int rank = 0; rank < on.ranks && known; ++rank) {
        const Post& post = post_of(on.segment, rank, number);
        known = post.complete != 0 &&
                copy_part(on, rank, post, from, bytes, rank == 0 ? result : other);
        if (known && rank > 0) reduce(result, other, call.count, call.type, call.operation);
    }
    free(other);
    if (known && call.operation == kAvg) divide(result, call.count, call.type, on.ranks);
    return known;
}

}  // namespace

bool reduces(CallKind kind) {
    return kind == CallKind::kAllReduce || kind == CallKind::kReduce ||
           kind == CallKind::kReduceScatter;
}

size_t part_bytes(const Call& call) {
    return call.count * bytes_of(call.type);
}

size_t bytes_sent(const Communicator& on, const Call& call) {
    const size_t part = part_bytes(call);
    const bool root = call.root == on.rank;
    switch (call.kind) {
        case CallKind::kReduceScatter:
        case CallKind::kAlltoAll:
            return part * size_t(on.ranks);
        case CallKind::kBroadcast:
            return root ? part : 0;
        case CallKind::kScatter:
            return root ? part * size_t(on.ranks) : 0;
        case CallKind::kReceive:
            return 0;
        default:
            return part;
    }
}

size_t bytes_received(const Communicator& on, const Call& call) {
    const size_t part = part_bytes(call);
    const bool root = call.root == on.rank;
    switch (call.kind) {
        case CallKind::kAllGather:
        case CallKind::kAlltoAll:
            return part * size_t(on.ranks);
        case CallKind::kReduce:
            return root ? part : 0;
        case CallKind::kGather:
            return root ? part * size_t(on.ranks) : 0;
        case CallKind::kSend:
            return 0;
        default:
            return part;
    }
}

int ring_of(const Communicator& on, const Call& call) {
    return call.kind == CallKind::kSend || call.kind == CallKind::kReceive ? call.root : on.ranks;
}

bool find_place(Communicator* on, int ring, uint64_t bytes, uint64_t* offset) {
    Ring& at = on->rings[ring];
    while (at.oldest != nullptr && was_read(*on, ring, at.oldest->number)) {
        Sent* sent = at.oldest;
        at.oldest = sent->next;
        free(sent);
    }
    if (at.oldest == nullptr) at.end = 0;
    *offset = at.end;
    if (at.oldest == nullptr) return true;
    const uint64_t oldest = at.oldest->offset;
    if (at.end < oldest) return at.end + bytes < oldest;
    if (at.end + bytes <= kRingBytes) return true;
    *offset = 0;
    return bytes < oldest;
}

void put_contents(Communicator* on,
                  int ring,
                  uint64_t offset,
                  const void* contents,
                  uint64_t bytes,
                  uint64_t number,
                  Post* post) {
    const uint64_t start = kRingBytes * uint64_t(ring);
    Ring& at = on->rings[ring];
    auto* sent =
        contents != nullptr && bytes != 0 ? static_cast<Sent*>(calloc(1, sizeof(Sent))) : nullptr;
    if (sent == nullptr || !back_data(on->segment, on->rank, start, offset + bytes, &at.backed)) {
        free(sent);
        post->complete = 0;
        return;
    }
    *sent = {offset, bytes, number, nullptr};
    Sent** last = &at.oldest;
    while (*last != nullptr) {
        last = &(*last)->next;
    }
    *last = sent;
    at.end = offset + bytes;
    memcpy(data_of(on->segment, on->rank) + start + offset, contents, bytes);
    post->data = start + offset;
    post->data_bytes = uint32_t(bytes);
}

void forget_contents(Communicator* on) {
    for (int ring = 0; ring <= on->ranks; ++ring) {
        while (on->rings[ring].oldest != nullptr) {
            Sent* sent = on->rings[ring].oldest;
            on->rings[ring].oldest = sent->next;
            free(sent);
        }
    }
}

bool compute(const Communicator& on,
             const Call& call,
             uint64_t number,
             unsigned char* result,
             size_t bytes) {
    const size_t part = part_bytes(call);
    if (call.kind == CallKind::kReceive) {
        const Pair& pair = pair_of(on.segment, call.root, on.rank);
        return copy_part(on, call.root, pair.messages[number % kMessages], 0, part, result);
    }
    if (reduces(call.kind)) return reduce_all(on, call, number, result, bytes);
    if (call.kind == CallKind::kBroadcast || call.kind == CallKind::kScatter) {
        const size_t from = call.kind == CallKind::kScatter ? size_t(on.rank) * part : 0;
        return copy_part(on, call.root, post_of(on.segment, call.root, number), from, part, result);
    }
    bool known = false;
    for (int rank = 0; rank < on.ranks; ++rank) {
        const size_t from = call.kind == CallKind::kAlltoAll ? size_t(on.rank) * part : 0;
        const Post& post = post_of(on.segment, rank, number);
        if (copy_part(on, rank, post, from, part, result + size_t(rank) * part)) known = true;
    }
    return known;
}

}  // namespace fragtrace::vgpu
