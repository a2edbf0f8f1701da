#include "frameworks/torch_slots.h"

#include "frameworks/torch_state.h"
#include "system/loaded_objects.h"
#include "system/sys.h"

#include <string.h>

namespace fragtrace::preload {
namespace {

constexpr char kClass[] = "N5torch4cuda22CUDAPluggableAllocator22CUDAPluggableAllocator";
constexpr size_t kTableHead = 2;  // words before the first slot: offset to top, type information

// Returns a definition of the second class's library; its name is composed of the parts.
void* twin_symbol(const char* prefix, const char* member) {
    char name[256];
    Text text(name, sizeof name);
    text.add(prefix).add(kClass).add(member);
    return text.full() ? nullptr : find_definition(first_object(), "libtorch_", name);
}

// The virtual table of the second class.
struct Twin {
    void* const* slots = nullptr;
    int count = 0;

    // Returns the slot of a member function, given the part of its mangled name after the class.
    [[nodiscard]] int slot_of(const char* member) const {
        const void* function = twin_symbol("_Z", member);
        for (int slot = 0; function != nullptr && slot < count; ++slot) {
            if (slots[slot] == function) {
                return slot;
            }
        }
        return kNoSlot;
    }

    // In `member`, '@' is the type of a device ordinal: char in newer releases, int in older ones.
    [[nodiscard]] int slot_with_device(const char* member) const {
        constexpr char kTypes[] = {'a', 'i'};
        for (const char type : kTypes) {
            char spelled[160];
            Text text(spelled, sizeof spelled);
            for (const char* letter = member; *letter != '\0'; ++letter) {
                text.add(*letter == '@' ? &type : letter, 1);
            }
            const int slot = slot_of(spelled);
            if (slot != kNoSlot) {
                return slot;
            }
        }
        return kNoSlot;
    }
};

bool find_twin(Twin* twin) {
    auto* table = static_cast<void**>(twin_symbol("_ZTV", "E"));
    if (table == nullptr) {
        return false;
    }
    char name[128];
    Text(name, sizeof name).add("_ZTV").add(kClass).add("E");
    const size_t words = defined_symbol_bytes(object_at(table), name) / sizeof(void*);
    if (words <= kTableHead) {
        return false;
    }
    twin->slots = table + kTableHead;
    twin->count = static_cast<int>(words - kTableHead);
    return true;
}

// The newest release whose headers were read for the following rules.
constexpr int kNewestReadMinor = 15;  // 2.15

// Returns false for a later release, and if the release is unknown.
bool is_release_read() {
    const char* release = torch_release();
    int minor = 0;
    if (release[0] != '2' || release[1] != '.') {
        return false;
    }
    for (const char* at = release + 2; *at >= '0' && *at <= '9' && minor < 1000; ++at) {
        minor = minor * 10 + (*at - '0');
    }
    return minor <= kNewestReadMinor;
}

// Functions that the second class inherits have no symbol of its own. Their slots follow from the
// functions around them: the number of slots between two known functions shows which functions were
// added there, because the order of their addition is known (from the headers of 2.1 to 2.15). A
// later release may have another function there, which must not be called with wrong parameters.
void place_inherited(const Twin& twin, PoolSlots* found) {
    if (!is_release_read()) {
        return;
    }
    if (found->end_to_pool != kNoSlot && found->release_pool == found->end_to_pool + 3) {
        found->mark_capture_begin = found->end_to_pool + 1;
        found->mark_capture_end = found->end_to_pool + 2;
    }
    const int next = twin.slot_of("14shareIpcHandleEPv");
    const int between = found->release_pool == kNoSlot ? 0 : next - found->release_pool;
    if (between >= 4 && between <= 6) {  // getPoolUseCount, add_user, ..., live allocations, next
        found->add_user = found->release_pool + 2;
        found->add_user_has_allocator = between >= 5;
        found->use_on_oom = between >= 5 ? found->release_pool + 3 : kNoSlot;
        found->no_split = between >= 6 ? found->release_pool + 4 : kNoSlot;
    }
    // In 2.15: shareIpcHandle, seven functions, supportsUserMetadata, setUserMetadata,
    // getUserMetadata, annotateMemory, attachOutOfMemoryObserver.
    const int attach = twin.slot_of("25attachOutOfMemoryObserverESt8functionIFvlmmmEE");
    if (next != kNoSlot && attach == next + 12) {
        found->set_user_metadata = attach - 3;
        found->annotate_memory = attach - 1;
    }
    const int cache_info = twin.slot_with_device("9cacheInfoE@Pm");
    const int before = twin.slot_with_device("25getExpandableSegmentSizesE@");
    const int fraction = found->set_memory_fraction;
    const int empty_cache = found->empty_cache;
    if (cache_info > 3 && (cache_info - 3 == before || cache_info - 3 == fraction ||
                           cache_info - 3 == empty_cache)) {  // enable, isEnabled, cacheInfo
        found->enable = cache_info - 2;
    }
}

}  // namespace

bool find_pool_slots(void* const* slots, int slot_count, PoolSlots* found) {
    Twin twin;
    if (!find_twin(&twin) || twin.count != slot_count) {
        return false;
    }
    found->raw_alloc = twin.slot_of("9raw_allocEm");
    found->raw_alloc_with_stream = twin.slot_of("21raw_alloc_with_streamEmP11CUstream_st");
    found->empty_cache = twin.slot_of("10emptyCacheESt4pairIyyE");
    found->empty_cache_has_pool = found->empty_cache != kNoSlot;
    if (!found->empty_cache_has_pool) {
        found->empty_cache = twin.slot_of("10emptyCacheEv");
    }
    found->set_memory_fraction = twin.slot_with_device("17setMemoryFractionEd@");
    found->begin_to_pool =
        twin.slot_with_device("19beginAllocateToPoolE@St4pairIyyESt8functionIFbP11CUstream_stEE");
    found->end_to_pool = twin.slot_with_device("17endAllocateToPoolE@St4pairIyyE");
    found->begin_stream_to_pool =
        twin.slot_with_device("25beginAllocateStreamToPoolE@P11CUstream_stSt4pairIyyE");
    found->end_stream_to_pool = twin.slot_with_device("23endAllocateStreamToPoolE@P11CUstream_st");
    found->capture_begin = twin.slot_with_device("18notifyCaptureBeginE@ySt4pairIyyE");
    found->capture_about_to_end = twin.slot_with_device("23notifyCaptureAboutToEndE@y");
    found->release_pool = twin.slot_with_device("11releasePoolE@St4pairIyyE");
    if (found->release_pool == kNoSlot) {  // the name until 2.0
        found->release_pool = twin.slot_with_device("20notifyCaptureDestroyE@St4pairIyyE");
    }
    found->record_stream = twin.slot_of("12recordStreamERKN3c107DataPtrENS3_4cuda10CUDAStreamE");
    found->set_checkpoint = twin.slot_with_device(
        "22setCheckpointPoolStateE@St10shared_"
        "ptrIN3c104cuda20CUDACachingAllocator14AllocatorStateEE");
    place_inherited(twin, found);

    // A function that neither class overrides is the same in both tables. If PyTorch defines such a
    // function (since 2.2), it proves that the tables are aligned.
    const void* inherited = find_definition(
        first_object(), "libc10.so", "_ZNK3c109Allocator18is_simple_data_ptrERKNS_7DataPtrE");
    bool aligned = inherited == nullptr;
    for (int slot = 0; slot < slot_count; ++slot) {
        aligned = aligned || (slots[slot] == inherited && twin.slots[slot] == inherited);
    }
    return aligned && found->raw_alloc != kNoSlot && found->empty_cache != kNoSlot;
}

}  // namespace fragtrace::preload
