#include "frameworks/torch_labels.h"

#include "recorder/labels.h"
#include "recorder/recorder.h"

namespace fragtrace::preload {
namespace {

// A std::string begins with the address of its characters, which end with a zero.
using String = const char* const*;
using SetUserMetadata = void(void* self, String text);
using AnnotateMemory = void(void* self, const void* address, String text);

struct Originals {
    SetUserMetadata* set_user_metadata;
    AnnotateMemory* annotate_memory;
};

Originals g_original;

void set_user_metadata(void* self, String text) {
    if (recording_enabled()) {
        set_outer_label(*text);
    }
    g_original.set_user_metadata(self, text);
}

void annotate_memory(void* self, const void* address, String text) {
    if (recording_enabled()) {
        label_block(reinterpret_cast<uint64_t>(address), *text);
    }
    g_original.annotate_memory(self, address, text);
}

}  // namespace

void watch_labels(void** slots, const PoolSlots& layout) {
    replace_slot(
        slots, layout.set_user_metadata, &g_original.set_user_metadata, &set_user_metadata);
    replace_slot(slots, layout.annotate_memory, &g_original.annotate_memory, &annotate_memory);
}

}  // namespace fragtrace::preload
