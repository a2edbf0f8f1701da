#include "libraries/nccl_buffers.h"

#include "common/config.h"
#include "libraries/kernel_launch.h"

#include <initializer_list>
#include <stdlib.h>

namespace fragtrace::vgpu {

// Allocated device memory of a communicator.
struct Buffer {
    void* memory;
    uint64_t bytes;
    Buffer* next;
};

namespace {

constexpr uint64_t kPage = uint64_t{2} << 20;
constexpr uint64_t kSimpleBytes = uint64_t{4} << 20;  // the documented default of NCCL_BUFFSIZE
// Steps x threads x what a thread sends per step, in NCCL's protocols LL and LL128.
constexpr uint64_t kLlBytes = uint64_t{8} * 512 * 8 * 16;
constexpr uint64_t kLl128Bytes = uint64_t{8} * 640 * 120 * 8;
constexpr uint64_t kChannels = 32;  // of eight H100s that are connected by NVLink

// Bits of Communicator::connected.
constexpr unsigned char kSends = 1;
constexpr unsigned char kReceives = 2;
constexpr unsigned char kRingSends = 4;
constexpr unsigned char kRingReceives = 8;

uint64_t setting(const char* variable, uint64_t least, uint64_t most, uint64_t otherwise) {
    const char* text = getenv(variable);
    if (text == nullptr || *text < '0' || *text > '9') return otherwise;
    const uint64_t value = strtoull(text, nullptr, 10);
    return value >= least && value <= most ? value : otherwise;
}

uint64_t channels() {
    return setting("NCCL_MAX_NCHANNELS", 1, kChannels, kChannels);
}

uint64_t receive_bytes() {
    constexpr uint64_t kMost = uint64_t{1} << 30;
    const uint64_t all = setting("NCCL_BUFFSIZE", 1, kMost, kSimpleBytes) +
                         setting("NCCL_LL_BUFFSIZE", 1, kMost, kLlBytes) +
                         setting("NCCL_LL128_BUFFSIZE", 1, kMost, kLl128Bytes);
    return (all + kPage - 1) / kPage * kPage;
}

bool add_buffer(Communicator* to, uint64_t bytes) {
    auto* buffer = static_cast<Buffer*>(calloc(1, sizeof(Buffer)));
    if (buffer == nullptr) return false;
    *buffer = {allocate_on_device(to->device, bytes), bytes, nullptr};
    if (buffer->memory == nullptr) {
        free(buffer);
        return false;
    }
    const CommunicatorLock lock;
    buffer->next = to->buffers;
    to->buffers = buffer;
    return true;
}

// The connections to a peer that a call needs.
unsigned char needed(const Communicator& on, const Call& call, int peer) {
    const bool root = call.root == on.rank;
    switch (call.kind) {
        case CallKind::kSend:
            return peer == call.root ? kSends : 0;
        case CallKind::kReceive:
            return peer == call.root ? kReceives : 0;
        case CallKind::kAlltoAll:
            return kSends | kReceives;
        case CallKind::kGather:
            return root ? kReceives : peer == call.root ? kSends : 0;
        case CallKind::kScatter:
            return root ? kSends : peer == call.root ? kReceives : 0;
        default:
            return (peer == (on.rank + 1) % on.ranks ? kRingSends : 0) |
                   (peer == (on.rank + on.ranks - 1) % on.ranks ? kRingReceives : 0);
    }
}

// Marks the connections as made, and returns those that are new.
unsigned char take_new(Communicator* on, const Call& call, int peer) {
    const CommunicatorLock lock;
    if (!is_communicator(on)) return 0;
    const auto wanted =
        static_cast<unsigned char>(needed(*on, call, peer) & ~unsigned{on->connected[peer]});
    on->connected[peer] = static_cast<unsigned char>(on->connected[peer] | wanted);
    return wanted;
}

}  // namespace

bool allocate_first_buffers(Communicator* communicator) {
    return config().nccl_bytes == 0 || add_buffer(communicator, config().nccl_bytes);
}

bool allocate_connections(Communicator* on, const Call& call) {
    if (!config().nccl_model) return true;
    for (int peer = 0; peer < on->ranks; ++peer) {
        if (peer == on->rank) continue;
        const unsigned char made = take_new(on, call, peer);
        for (const unsigned char sends : {kSends, kRingSends}) {
            if ((made & sends) != 0 && !add_buffer(on, channels() * kPage)) return false;
        }
        for (const unsigned char receives : {kReceives, kRingReceives}) {
            if ((made & receives) != 0 && !add_buffer(on, channels() * receive_bytes())) {
                return false;
            }
        }
    }
    return true;
}

void free_buffers(int device, Buffer* buffers) {
    while (buffers != nullptr) {
        Buffer* buffer = buffers;
        buffers = buffer->next;
        free_on_device(device, buffer->memory);
        free(buffer);
    }
}

uint64_t bytes_of_buffers(const Communicator& communicator) {
    uint64_t all = 0;
    for (const Buffer* buffer = communicator.buffers; buffer != nullptr; buffer = buffer->next) {
        all += buffer->bytes;
    }
    return all;
}

}  // namespace fragtrace::vgpu
