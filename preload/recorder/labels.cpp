#include "recorder/labels.h"

#include "recorder/numbered_names.h"
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "system/address_table.h"
#include "system/sys.h"
#include "system/thread_state.h"

namespace fragtrace::preload {
namespace {

constexpr uint32_t kNear = 32;     // labels that need no memory of their own
constexpr uint32_t kDeep = 65536;  // further ones; their pages cost nothing until they are used
constexpr size_t kDeep_bytes = kDeep * sizeof(uint32_t);

// Numbers are N of the facts "text.N".
struct ThreadLabels {
    uint32_t depth;  // counts on beyond all limits, so that ends match begins
    uint32_t outer;  // outside of all labels; 0 = none
    uint32_t near[kNear];
    uint32_t* deep;  // of labels nested deeper; from the first of them until all labels ended
};

constinit thread_local ThreadLabels t_labels __attribute__((tls_model("initial-exec"))){};

uint32_t label_number(const char* text) {
    return text == nullptr || *text == '\0' ? 0 : text_number(text);
}

// The place of the label at this depth, from 1. Returns nullptr if there is none.
uint32_t* place_at(uint32_t depth) {
    if (depth <= kNear) {
        return &t_labels.near[depth - 1];
    }
    const uint32_t deep = depth - kNear - 1;
    return t_labels.deep != nullptr && deep < kDeep ? &t_labels.deep[deep] : nullptr;
}

// The report of a block reads only t_thread. A label without a place gives its blocks none: the
// name of an outer label would be wrong.
void show_innermost() {
    const uint32_t* place = t_labels.depth == 0 ? &t_labels.outer : place_at(t_labels.depth);
    t_thread.label = place == nullptr ? 0 : *place;
}

void record_label(uint64_t address, uint16_t device, uint32_t pool, uint32_t number) {
    EventRecord event{};
    event.kind = EventKind::kBlockLabel;
    event.device = device;
    event.address = address;
    event.size = number;
    event.pool = pool;
    event.stream = kStreamUnknown;
    record(event);
}

}  // namespace

void begin_label(const char* text) {
    const SlowPath slow_path;
    const uint32_t depth = t_labels.depth + 1;
    if (depth > kNear && t_labels.deep == nullptr) {
        t_labels.deep = static_cast<uint32_t*>(map_private(kDeep_bytes));
    }
    if (uint32_t* place = place_at(depth); place != nullptr) {
        *place = label_number(text);
    } else {
        count_up(&g_entries_without_room);
    }
    t_labels.depth = depth;
    show_innermost();
}

void end_label() {
    if (t_labels.depth == 0) {
        return;
    }
    --t_labels.depth;
    show_innermost();
    if (t_labels.depth == 0 && t_labels.deep != nullptr) [[unlikely]] {
        const SlowPath slow_path;
        uint32_t* none = nullptr;
        // In one step: a signal handler may begin and end labels, too.
        unmap(__atomic_exchange_n(&t_labels.deep, none, __ATOMIC_RELAXED), kDeep_bytes);
    }
}

void set_outer_label(const char* text) {
    const SlowPath slow_path;
    t_labels.outer = label_number(text);
    show_innermost();
}

void label_block(uint64_t address, const char* text, uint32_t pool) {
    const SlowPath slow_path;
    // While recording is stopped, the table of live allocations still gets the label.
    const uint32_t number = running_session() == nullptr || address == 0 ? 0 : label_number(text);
    if (number != 0) {
        record_label(address, kDeviceUnknown, pool, number);
    }
}

void label_new_block(uint64_t address, uint16_t device, uint32_t pool) {
    if (t_thread.label != 0) [[unlikely]] {
        record_label(address, device, pool, t_thread.label);
    }
}

}  // namespace fragtrace::preload
