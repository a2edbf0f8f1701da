// Functions that programs and the Python module call to mark phases and to label
// memory; <fragtrace/mark.h> declares them.
#include "recorder/labels.h"
#include "recorder/ranges.h"

using namespace fragtrace;
using namespace fragtrace::preload;

#define FT_CALLED_BY_PROGRAMS __attribute__((visibility("default"), used))

extern "C" {

FT_CALLED_BY_PROGRAMS void fragtrace_range_begin(const char* name) {
    begin_range(RangeKind::kApi, 0, name);
}

FT_CALLED_BY_PROGRAMS void fragtrace_range_end() {
    end_range(RangeKind::kApi, 0);
}

FT_CALLED_BY_PROGRAMS uint64_t fragtrace_range_start(const char* name) {
    return start_range(RangeKind::kApi, name);
}

FT_CALLED_BY_PROGRAMS void fragtrace_range_stop(uint64_t range) {
    stop_range(RangeKind::kApi, range);
}

FT_CALLED_BY_PROGRAMS void fragtrace_mark(const char* name) {
    record_mark(RangeKind::kApi, name);
}

FT_CALLED_BY_PROGRAMS void fragtrace_label_begin(const char* label) {
    begin_label(label);
}

FT_CALLED_BY_PROGRAMS void fragtrace_label_end() {
    end_label();
}

FT_CALLED_BY_PROGRAMS void fragtrace_label_memory(const void* address, const char* label) {
    label_block(reinterpret_cast<uint64_t>(address), label);
}

// For notebooks, which run one cell at a time.
FT_CALLED_BY_PROGRAMS void fragtrace_cell_begin(const char* name) {
    begin_range(RangeKind::kCell, 0, name);
}

FT_CALLED_BY_PROGRAMS void fragtrace_cell_end() {
    end_range(RangeKind::kCell, 0);
}
}
