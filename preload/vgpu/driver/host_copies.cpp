// Contents of copies from the device. Kernels compute nothing, so a byte is known only if no kernel
// ran since the host wrote it. All other bytes read as zero. Only copies of up to 64 KiB return
// known bytes: enough for scalars, index lists and small tables.
#include "driver/state.h"

namespace fragtrace::vgpu {
namespace {

constexpr size_t kKnownBytes = size_t{64} << 10;
constexpr int kWrites = 256;

// One of the latest writes. They are kept in order in a ring: where two overlap, the later one
// counts.
struct Write {
    uint64_t start;
    uint64_t size;
    unsigned char* bytes;  // null: a fill, or zeros
    uint32_t pattern;
    int pattern_bytes;
};

Write g_writes[kWrites];
int g_first;
int g_count;

void forget(Write* write) {
    free(write->bytes);
    *write = Write{};
}

Write* push() {
    if (g_count == kWrites) {
        forget(&g_writes[g_first]);
        g_first = (g_first + 1) % kWrites;
        --g_count;
    }
    Write* write = &g_writes[(g_first + g_count) % kWrites];
    ++g_count;
    return write;
}

void read_one(const Write& write, uint64_t from, unsigned char* out, size_t size) {
    const uint64_t begin = write.start > from ? write.start : from;
    const uint64_t end_write = write.start + write.size;
    const uint64_t end = end_write < from + size ? end_write : from + size;
    if (begin >= end) return;
    if (write.bytes != nullptr) {
        memcpy(out + (begin - from), write.bytes + (begin - write.start), end - begin);
        return;
    }
    for (uint64_t at = begin; at < end; ++at) {
        const uint64_t byte =
            write.pattern_bytes > 0 ? (at - write.start) % uint64_t(write.pattern_bytes) : 0;
        out[at - from] = static_cast<unsigned char>(write.pattern >> (8 * byte));
    }
}

void read_known(uint64_t from, unsigned char* out, size_t size) {
    memset(out, 0, size);
    if (size > kKnownBytes) return;
    for (int i = 0; i < g_count; ++i) {
        read_one(g_writes[(g_first + i) % kWrites], from, out, size);
    }
}

}  // namespace

void note_kernel() {
    for (int i = 0; i < g_count; ++i)
        forget(&g_writes[(g_first + i) % kWrites]);
    g_count = 0;
}

void note_host_write(uint64_t address, const void* bytes, size_t size) {
    if (size == 0) return;
    unsigned char* copy = nullptr;
    if (size <= kKnownBytes) copy = static_cast<unsigned char*>(malloc(size));
    if (copy != nullptr) memcpy(copy, bytes, size);
    // a write above 64 KiB reads as zeros, and hides older writes
    *push() = {address, size, copy, 0, 1};
}

void note_fill(uint64_t address, size_t size, uint32_t pattern, int pattern_bytes) {
    if (size == 0) return;
    if (host_can_read(address)) {
        unsigned char* at = reinterpret_cast<unsigned char*>(address);
        for (size_t i = 0; i < size; ++i) {
            at[i] = static_cast<unsigned char>(pattern >> (8 * (i % size_t(pattern_bytes))));
        }
        return;
    }
    *push() = {address, size, nullptr, pattern, pattern_bytes};
}

void copy_memory(uint64_t to, uint64_t from, size_t size) {
    const bool to_host = host_can_read(to);
    const bool from_host = host_can_read(from);
    if (to_host && from_host) {
        memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
    } else if (from_host) {
        note_host_write(to, reinterpret_cast<const void*>(from), size);
    } else if (to_host) {
        read_known(from, reinterpret_cast<unsigned char*>(to), size);
    } else if (size <= kKnownBytes && g_count > 0) {
        unsigned char* bytes = static_cast<unsigned char*>(malloc(size + 1));
        if (bytes == nullptr) return;
        read_known(from, bytes, size);
        note_host_write(to, bytes, size);
        free(bytes);
    } else {
        note_fill(to, size, 0, 1);
    }
}

}  // namespace fragtrace::vgpu
