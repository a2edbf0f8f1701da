// Functions that programs and the Python module call to mark phases, to label memory and to report
// pools; <fragtrace/mark.h> declares them.
#include "recorder/labels.h"
#include "recorder/numbered_names.h"
#include "recorder/program_pools.h"
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

FT_CALLED_BY_PROGRAMS void fragtrace_mempool_name(uint64_t first,
                                                  uint64_t second,
                                                  const char* name) {
    name_pytorch_pool(first, second, name);
}

FT_CALLED_BY_PROGRAMS uint32_t fragtrace_pool_create(const char* name, const char* kind) {
    return create_program_pool(name, kind);
}

FT_CALLED_BY_PROGRAMS void fragtrace_pool_destroy(uint32_t pool) {
    destroy_program_pool(pool);
}

FT_CALLED_BY_PROGRAMS void fragtrace_pool_limit(uint32_t pool, uint64_t limit) {
    set_program_pool_limit(pool, limit);
}

FT_CALLED_BY_PROGRAMS void fragtrace_block_alloc(
    uint32_t pool, const void* pointer, uint64_t requested, uint64_t size, uint64_t stream) {
    record_program_block(pool, reinterpret_cast<uint64_t>(pointer), requested, size, stream);
}

FT_CALLED_BY_PROGRAMS void fragtrace_block_free(uint32_t pool, const void* pointer) {
    record_program_free(pool, reinterpret_cast<uint64_t>(pointer));
}

FT_CALLED_BY_PROGRAMS void fragtrace_block_failed(uint32_t pool,
                                                  uint64_t requested,
                                                  uint64_t stream) {
    record_program_failure(pool, requested, stream);
}

FT_CALLED_BY_PROGRAMS void fragtrace_block_label(uint32_t pool,
                                                 const void* pointer,
                                                 const char* label) {
    if (pool != 0) {
        label_block(reinterpret_cast<uint64_t>(pointer), label, pool);
    }
}

// For notebooks, which run one cell at a time.
FT_CALLED_BY_PROGRAMS void fragtrace_cell_begin(const char* name) {
    begin_range(RangeKind::kCell, 0, name);
}

FT_CALLED_BY_PROGRAMS void fragtrace_cell_end() {
    end_range(RangeKind::kCell, 0);
}
}
