// What is known of the device's contents. Kernels compute nothing, so bytes are known only if the
// host wrote them, or if a collective brings them from a rank whose host wrote them. Everything
// else reads as zero. Buffers of up to 1 MiB are kept, up to 64 MiB and 4096 pieces in all; the
// oldest are forgotten first. A kernel makes the buffers unknown whose addresses it gets.
#include "driver/state.h"

#include <pthread.h>

namespace fragtrace::vgpu {
namespace {

constexpr size_t kMostKeptBytes = size_t{64} << 20;
constexpr int kMostPieces = 4096;
// How much a kernel is taken to write behind each address that it gets: 16 bytes per thread, and at
// least what PyTorch's smallest block has.
constexpr uint64_t kBytesPerThread = 16;
constexpr uint64_t kLeastWritten = 512;
constexpr uint64_t kMostWritten = kMiB;

// Known bytes without a gap. Pieces do not overlap. The byte at `address` is
// bytes[address - origin], or that byte of the fill, or that byte of what a pending collective
// will deliver.
struct Piece {
    uint64_t start;
    uint64_t size;
    uint64_t origin;
    unsigned char* bytes;  // null: a fill or pending
    uint64_t room;         // of `bytes`
    uint64_t work;         // the pending work that will deliver it; 0: known
    uint64_t age;
    uint64_t kernels;  // number of kernels before it was written
    uint32_t pattern;
    int pattern_bytes;
};

SortedArray<Piece> g_pieces;
uint64_t g_kept_bytes;
uint64_t g_age;
uint64_t g_kernels;

uint64_t end_of(const Piece& piece) {
    return piece.start + piece.size;
}

void drop(Piece* piece) {
    g_kept_bytes -= piece->room;
    free(piece->bytes);
    g_pieces.erase(piece);
}

// Gives the piece its own copy of the bytes that it shows. Returns false without memory.
bool own_bytes(Piece* piece) {
    if (piece->bytes == nullptr) return true;
    auto* copy = static_cast<unsigned char*>(malloc(piece->size));
    if (copy == nullptr) return false;
    memcpy(copy, piece->bytes + (piece->start - piece->origin), piece->size);
    piece->bytes = copy;
    piece->room = piece->size;
    piece->origin = piece->start;
    return true;
}

void make_room(uint64_t bytes) {
    while (g_pieces.count() > 0 &&
           (g_pieces.count() >= kMostPieces || g_kept_bytes + bytes > kMostKeptBytes)) {
        Piece* oldest = g_pieces.begin();
        for (Piece& piece : g_pieces) {
            if (piece.age < oldest->age) oldest = &piece;
        }
        drop(oldest);
    }
}

// Takes over the piece's bytes. Nothing may be known in its place.
void put(Piece piece) {
    make_room(piece.room);
    piece.age = ++g_age;
    if (g_pieces.insert(piece) == nullptr) {
        free(piece.bytes);
        return;
    }
    g_kept_bytes += piece.room;
}

// Index of the first piece that ends above `address`.
int first_above(uint64_t address) {
    const int index = g_pieces.upper_bound(address) - 1;
    return index >= 0 && end_of(g_pieces[index]) > address ? index : index + 1;
}

void forget(uint64_t start, uint64_t end) {
    for (int i = first_above(start); i < g_pieces.count() && g_pieces[i].start < end;) {
        Piece& piece = g_pieces[i];
        const uint64_t piece_end = end_of(piece);
        if (piece.start >= start && piece_end <= end) {
            drop(&piece);
            continue;
        }
        if (piece.start >= start) {
            piece.size = piece_end - end;
            piece.start = end;
            return;
        }
        Piece right = piece;
        piece.size = start - piece.start;
        ++i;
        if (piece_end <= end) continue;
        right.start = end;
        right.size = piece_end - end;
        if (own_bytes(&right)) put(right);
        return;
    }
}

void read_piece(const Piece& piece, uint64_t from, unsigned char* out, size_t size) {
    const uint64_t begin = piece.start > from ? piece.start : from;
    const uint64_t end = end_of(piece) < from + size ? end_of(piece) : from + size;
    if (piece.bytes != nullptr) {
        memcpy(out + (begin - from), piece.bytes + (begin - piece.origin), end - begin);
        return;
    }
    if (piece.pattern == 0) return;  // `out` is zero already
    for (uint64_t at = begin; at < end; ++at) {
        const uint64_t byte = (at - piece.origin) % uint64_t(piece.pattern_bytes);
        out[at - from] = static_cast<unsigned char>(piece.pattern >> (8 * byte));
    }
}

// A host's copy gets bytes from a partly known range only if no kernel ran since they were written:
// the kernel may have got the address of the range's unknown part.
void read_for_host(uint64_t from, unsigned char* out, size_t size) {
    if (read_contents(from, out, size) != Known::kPart) return;
    for (int i = first_above(from); i < g_pieces.count() && g_pieces[i].start < from + size; ++i) {
        if (g_pieces[i].kernels == g_kernels) continue;
        memset(out, 0, size);
        return;
    }
}

// Copies what is known, and what pending work will deliver.
void copy_on_device(uint64_t to, uint64_t from, size_t size) {
    SortedArray<Piece> copies;
    if (size <= kKnownBytes) {
        for (int i = first_above(from); i < g_pieces.count() && g_pieces[i].start < from + size;
             ++i) {
            Piece piece = g_pieces[i];
            const uint64_t end = end_of(piece) < from + size ? end_of(piece) : from + size;
            piece.start = piece.start > from ? piece.start : from;
            piece.size = end - piece.start;
            piece.room = 0;
            if (!own_bytes(&piece)) continue;
            piece.start += to - from;
            piece.origin += to - from;
            if (copies.insert(piece) == nullptr) free(piece.bytes);
        }
    }
    forget(to, to + size);
    for (const Piece& piece : copies) {
        put(piece);
    }
    copies.release();
}

// The end of the calling thread's stack, or 0 if it is not known.
uint64_t end_of_stack() {
    static __thread uint64_t t_end;
    if (t_end == 0) {
        pthread_attr_t attributes;
        void* lowest = nullptr;
        size_t size = 0;
        if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
        if (pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
            t_end = reinterpret_cast<uint64_t>(lowest) + size;
        }
        pthread_attr_destroy(&attributes);
    }
    return t_end;
}

}  // namespace

void note_kernel() {
    ++g_kernels;
    while (g_pieces.count() > 0) {
        drop(&g_pieces[g_pieces.count() - 1]);
    }
}

// The number and the sizes of a kernel's parameters are not known. Callers keep them on their stack
// (nvcc's stubs, Triton and the stand-ins of libraries do), so all words there count, from the
// lowest parameter to the largest size of parameters above the highest one.
void note_kernel_with(void** parameters, uint64_t threads) {
    constexpr uint64_t kParameterBytes = 4096;
    constexpr int kMostParameters = 256;
    if (g_pieces.count() == 0) return;
    const uint64_t low = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
    const uint64_t high = end_of_stack();
    const uint64_t array = reinterpret_cast<uint64_t>(parameters);
    if (parameters == nullptr || array <= low || array >= high) return note_kernel();
    ++g_kernels;
    uint64_t first = high;
    uint64_t last = low;
    for (int i = 0; i < kMostParameters && array + uint64_t(i + 1) * 8 <= high; ++i) {
        const uint64_t at = reinterpret_cast<uint64_t>(parameters[i]);
        if (at <= low || at >= high) {
            if (i == 0) return note_kernel();
            break;
        }
        // further words of the array's neighbourhood may point anywhere
        if (i > 0 && (at + kMiB < first || at > last + kMiB)) break;
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    const uint64_t end = last + kParameterBytes < high ? last + kParameterBytes : high;
    uint64_t written = threads < kMostWritten ? threads * kBytesPerThread : kMostWritten;
    written = written < kLeastWritten ? kLeastWritten : written;
    written = written < kMostWritten ? written : kMostWritten;
    for (uint64_t at = round_up(first, 8); at + 8 <= end; at += 8) {
        uint64_t address = 0;
        memcpy(&address, reinterpret_cast<const void*>(at), sizeof address);
        if (!host_can_read(address)) forget(address, address + written);
    }
}

Known read_contents(uint64_t from, void* out, size_t size) {
    memset(out, 0, size);
    if (size > kKnownBytes) return Known::kNothing;
    uint64_t known = 0;
    for (int i = first_above(from); i < g_pieces.count() && g_pieces[i].start < from + size; ++i) {
        const Piece& piece = g_pieces[i];
        if (piece.work != 0) return Known::kPending;
        read_piece(piece, from, static_cast<unsigned char*>(out), size);
        const uint64_t begin = piece.start > from ? piece.start : from;
        known += (end_of(piece) < from + size ? end_of(piece) : from + size) - begin;
    }
    return known == 0 ? Known::kNothing : known < size ? Known::kPart : Known::kAll;
}

bool is_pending(uint64_t address, size_t size) {
    for (int i = first_above(address); i < g_pieces.count() && g_pieces[i].start < address + size;
         ++i) {
        if (g_pieces[i].work != 0) return true;
    }
    return false;
}

void note_host_write(uint64_t address, const void* bytes, size_t size) {
    if (size == 0) return;
    forget(address, address + size);
    if (size > kKnownBytes) return;
    auto* copy = static_cast<unsigned char*>(malloc(size));
    if (copy == nullptr) return;
    memcpy(copy, bytes, size);
    put({address, size, address, copy, size, 0, 0, g_kernels, 0, 1});
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
    forget(address, address + size);
    put({address, size, address, nullptr, 0, 0, 0, g_kernels, pattern, pattern_bytes});
}

void note_unknown(uint64_t address, size_t size) {
    forget(address, address + size);
}

void note_pending(uint64_t address, size_t size, uint64_t work) {
    forget(address, address + size);
    if (size > 0 && size <= kKnownBytes) {
        put({address, size, address, nullptr, 0, work, 0, g_kernels, 0, 1});
    }
}

void note_delivered(uint64_t work, const void* result) {
    for (int i = g_pieces.count() - 1; i >= 0; --i) {
        Piece& piece = g_pieces[i];
        if (piece.work != work) continue;
        unsigned char* bytes =
            result != nullptr ? static_cast<unsigned char*>(malloc(piece.size)) : nullptr;
        if (bytes == nullptr) {
            drop(&piece);
            continue;
        }
        memcpy(bytes,
               static_cast<const unsigned char*>(result) + (piece.start - piece.origin),
               piece.size);
        piece.bytes = bytes;
        piece.room = piece.size;
        piece.origin = piece.start;
        piece.work = 0;
        g_kept_bytes += piece.size;
    }
}

void copy_memory(uint64_t to, uint64_t from, size_t size) {
    const bool to_host = host_can_read(to);
    const bool from_host = host_can_read(from);
    if (to_host && from_host) {
        memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
    } else if (from_host) {
        note_host_write(to, reinterpret_cast<const void*>(from), size);
    } else if (to_host) {
        read_for_host(from, reinterpret_cast<unsigned char*>(to), size);
    } else {
        copy_on_device(to, from, size);
    }
}

}  // namespace fragtrace::vgpu
