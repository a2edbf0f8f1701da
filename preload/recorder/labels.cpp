#include "recorder/labels.h"

#include "recorder/numbered_names.h"
#include "recorder/recorder.h"
#include "recorder/session.h"
#include "system/sys.h"
#include "system/thread_state.h"

namespace fragtrace::preload {
namespace {

constexpr uint32_t kMostNested = 32;

struct ThreadLabels {
    uint32_t depth;                 // counts on beyond the limit, so that ends match begins
    uint32_t outer;                 // outside of all labels; 0 = none
    uint32_t numbers[kMostNested];  // N of the facts "text.N"
};

constinit thread_local ThreadLabels t_labels __attribute__((tls_model("initial-exec"))){};

uint32_t label_number(const char* text) {
    return text == nullptr || *text == '\0' ? 0 : text_number(text);
}

// The report of a block reads only t_thread.
void show_innermost() {
    const uint32_t depth = t_labels.depth < kMostNested ? t_labels.depth : kMostNested;
    t_thread.label = depth == 0 ? t_labels.outer : t_labels.numbers[depth - 1];
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
    if (t_labels.depth < kMostNested) {
        t_labels.numbers[t_labels.depth] = label_number(text);
    }
    ++t_labels.depth;
    show_innermost();
}

void end_label() {
    if (t_labels.depth != 0) {
        --t_labels.depth;
        show_innermost();
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
