#include "recorder/python_code.h"

#include <fragtrace/codec.h>

#include "recorder/session.h"

namespace fragtrace::preload {
namespace {

// Entry of a code object, found by address. A free clears `number_plus_one` but keeps `code`, so
// that no probe chain of the table ends early. The entry can then be reused for another address.
struct KnownCode {
    const void* code;          // nullptr = never used
    uint64_t number_plus_one;  // stored last; 0 = unknown, or freed
};

struct KnownContents {
    uint64_t hash;
    uint64_t number_plus_one;  // stored last; 0 = free
};

constexpr uint32_t kBuckets = 131072;
constexpr uint32_t kMostUsed = kBuckets / 4 * 3;
constexpr size_t kMaxFunction_bytes = 512;
constexpr size_t kMaxFile_bytes = 1024;

struct Codes {
    KnownCode by_address[kBuckets];
    KnownContents by_contents[kBuckets];
    uint32_t addresses_used;  // changed with the lock held, like everything except frees
};

Codes* g_codes;
Lock g_lock;

// PyTypeObject::tp_dealloc, and tp_itemsize before it. Every Python 3 has them at these offsets.
constexpr uint32_t kTypeItemSize = 40;
constexpr uint32_t kTypeDealloc = 48;
using Dealloc = void (*)(void*);

Dealloc* g_slot;  // in the type of code objects; nullptr = frees are not seen
Dealloc g_dealloc;
uint64_t g_era = 1;

uint32_t bucket_of(const void* code) {
    const uint64_t hash = reinterpret_cast<uint64_t>(code) * 0x9e3779b97f4a7c15u;
    return static_cast<uint32_t>(hash >> 40);
}

// Returns the entry of an address, or nullptr.
KnownCode* find_address(Codes* codes, const void* code) {
    for (uint32_t at = bucket_of(code);; ++at) {
        KnownCode* entry = &codes->by_address[at % kBuckets];
        const void* found = load_acquire(&entry->code);
        if (found == code || found == nullptr) {
            return found == code ? entry : nullptr;
        }
    }
}

uint32_t number_at(Codes* codes, const void* code) {
    const KnownCode* entry = find_address(codes, code);
    if (entry == nullptr) {
        return kUnknownCode;
    }
    const uint64_t number_plus_one = load_acquire(&entry->number_plus_one);
    // Meanwhile, the entry of a freed address may have been reused for another one.
    return load_relaxed(&entry->code) == code ? static_cast<uint32_t>(number_plus_one - 1)
                                              : kUnknownCode;
}

// Needs the lock. The address is not stored if the table is full: then the code object is always
// found by its contents.
void keep_address(Codes* codes, const void* code, uint32_t number) {
    KnownCode* place = find_address(codes, code);
    for (uint32_t at = bucket_of(code); place == nullptr; ++at) {
        KnownCode* entry = &codes->by_address[at % kBuckets];
        if (entry->code == nullptr) {
            if (codes->addresses_used == kMostUsed) {
                return;
            }
            store_release(&codes->addresses_used, codes->addresses_used + 1);
            place = entry;
        } else if (load_acquire(&entry->number_plus_one) == 0) {
            place = entry;
        }
    }
    store_release(&place->code, code);
    store_release(&place->number_plus_one, uint64_t{number} + 1);
}

KnownContents* find_contents(Codes* codes, uint64_t hash) {
    for (auto at = static_cast<uint32_t>(hash);; ++at) {
        KnownContents* entry = &codes->by_contents[at % kBuckets];
        if (load_acquire(&entry->number_plus_one) == 0 || entry->hash == hash) {
            return entry;
        }
    }
}

// Replaces the type's tp_dealloc. Called at any time by any code that frees a code object.
void on_code_freed(void* code) {
    Codes* codes = load_acquire(&g_codes);
    KnownCode* entry = codes == nullptr ? nullptr : find_address(codes, code);
    if (entry != nullptr && load_acquire(&entry->number_plus_one) != 0) {
        store_release(&entry->number_plus_one, uint64_t{0});
        __atomic_fetch_add(&g_era, 1, __ATOMIC_ACQ_REL);
    } else if (codes != nullptr && load_acquire(&codes->addresses_used) == kMostUsed) {
        __atomic_fetch_add(&g_era, 1, __ATOMIC_ACQ_REL);  // this may be one whose address was not
                                                          // stored
    }
    g_dealloc(code);
}

// Copies the names into the ring. Returns kUnknownCode without room.
uint32_t append_code(Session* session,
                     const PythonLayout& layout,
                     const PythonTypes& types,
                     const void* code) {
    constexpr uint64_t kLongestRecord_bytes = kMaxFunction_bytes + kMaxFile_bytes + 64;
    Ring* ring = &session->ring;
    RingHeader* header = ring->header;
    if (header->code_count >= kMostUsed ||
        !ring->reaches(&ring->code_room, header->code_bytes + kLongestRecord_bytes)) {
        return kUnknownCode;
    }
    const auto copy = [&](uint32_t field, char* to, size_t capacity) {
        const auto* text = python_field<const void*>(code, field);
        return python_field<const void*>(text, kObjectType) == types.text
                   ? copy_python_text(layout, text, to, capacity)
                   : 0;
    };
    char function[kMaxFunction_bytes];
    char file[kMaxFile_bytes];
    const auto first_line = python_field<int32_t>(code, layout.code_first_line);
    CodeRecord record{};
    record.id = header->code_count;
    record.first_line = first_line < 0 ? 0 : static_cast<uint32_t>(first_line);
    record.function = function;
    record.file = file;
    record.function_bytes = copy(layout.code_name, function, sizeof function);
    record.file_bytes = copy(layout.code_file, file, sizeof file);
    ByteWriter out(ring->code + header->code_bytes, kLongestRecord_bytes);
    if (!encode_code(record, &out)) {
        return kUnknownCode;
    }
    ++header->code_count;
    store_release(&header->code_bytes, header->code_bytes + static_cast<uint32_t>(out.size()));
    return record.id;
}

}  // namespace

bool map_python_codes() {
    store_release(&g_codes, static_cast<Codes*>(map_private(sizeof *g_codes)));
    return g_codes != nullptr;
}

bool python_codes_mapped() {
    return load_relaxed(&g_codes) != nullptr;
}

void forget_python_codes() {
    unmap(g_codes, sizeof *g_codes);
    g_codes = nullptr;
    g_lock.reset();
}

void watch_code_frees(const PythonTypes& types) {
    if (g_dealloc != nullptr) {
        return;
    }
    char* type = const_cast<char*>(static_cast<const char*>(types.code));
    auto* slot = reinterpret_cast<Dealloc*>(type + kTypeDealloc);
    // The kernel rewrites the same bytes: this shows whether our own store would fault.
    if (load_acquire(slot) == nullptr || !can_be_written(type + kTypeItemSize)) {
        return;
    }
    g_dealloc = load_acquire(slot);
    store_release(slot, on_code_freed);
    store_release(&g_slot, slot);
}

uint64_t python_code_era() {
    Dealloc* slot = load_acquire(&g_slot);
    if (slot == nullptr) {
        return 0;
    }
    if (load_relaxed(slot) != on_code_freed) [[unlikely]] {
        store_release(&g_slot, static_cast<Dealloc*>(nullptr));  // never watch again
        return 0;
    }
    return load_acquire(&g_era);
}

void* python_code_dealloc() {
    return reinterpret_cast<void*>(g_dealloc);
}

uint32_t python_code_number(Session* session,
                            const PythonLayout& layout,
                            const PythonTypes& types,
                            const void* code) {
    Codes* codes = g_codes;
    const bool frees_are_told = load_acquire(&g_slot) != nullptr;
    uint32_t number = frees_are_told ? number_at(codes, code) : kUnknownCode;
    if (number != kUnknownCode) [[likely]] {
        return number;
    }
    const uint64_t hash = hash_of_code(layout, types, code);
    const KnownContents* known = find_contents(codes, hash);
    const bool keeps = frees_are_told && load_acquire(&codes->addresses_used) != kMostUsed;
    if (!keeps && load_acquire(&known->number_plus_one) != 0) {
        return static_cast<uint32_t>(known->number_plus_one - 1);
    }
    // A new code object. These are rare, so other threads with new ones can wait a moment.
    if (!g_lock.lock_within(10 * kMillisecond_ns)) {
        return kUnknownCode;
    }
    KnownContents* contents = find_contents(codes, hash);  // another thread may have added it
                                                           // meanwhile
    number = static_cast<uint32_t>(contents->number_plus_one - 1);
    if (number == kUnknownCode) {
        number = append_code(session, layout, types, code);
        if (number != kUnknownCode) {
            contents->hash = hash;
            store_release(&contents->number_plus_one, uint64_t{number} + 1);
        }
    }
    if (number != kUnknownCode && frees_are_told) {
        keep_address(codes, code, number);
    }
    g_lock.unlock();
    return number;
}

}  // namespace fragtrace::preload
