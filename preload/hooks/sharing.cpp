// Hooks of memory that is shared with other processes (IPC) or other interfaces (external memory).
// It counts for its owner; here it has 0 bytes. Each open is a separate event, because each needs
// its own close: the driver counts references.
#include "hooks/hook_call.h"
#include "system/hash.h"

namespace fragtrace::preload {
namespace {

template <typename Shared>
uint64_t hash(const Shared& shared) {
    return hash_bytes(shared.bytes, sizeof shared.bytes);
}

// For IPC handles and for memory of a pool.
template <Hook kHook, typename Shared, typename Pointer>
int export_address(const void* caller, Shared* shared, Pointer address) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            call.record({.kind = EventKind::kExport,
                         .device = call.device_of(number(address)),
                         .address = number(address),
                         .extra = hash(*shared)});
        },
        shared,
        address);
}

void imported(Call& call, uint64_t address, uint64_t bytes, uint64_t what) {
    call.record({.kind = EventKind::kImport,
                 .device = call.device_of(address),
                 .address = address,
                 .size = bytes,
                 .extra = what});
}

template <Hook kHook, typename Pointer>
int open_ipc(const void* caller, Pointer* address, IpcMemoryHandle shared, unsigned flags) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) { imported(call, number(*address), kUnknown64, hash(shared)); },
        address,
        shared,
        flags);
}

template <Hook kHook, typename Handle>
int end_import(const void* caller, Handle imported_before) {
    return ending<kHook>(
        caller,
        [&](Call& call) {
            return call.record({.kind = EventKind::kImportEnd,
                                .device = call.current_device(),
                                .address = number(imported_before)});
        },
        imported_before);
}

template <Hook kHook>
int import_external(const void* caller, void** memory, const ExternalMemoryDescriptor* descriptor) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            call.record({.kind = EventKind::kImport,
                         .device = call.current_device(),
                         .address = number(*memory),
                         .size = descriptor->bytes});
        },
        memory,
        descriptor);
}

// Memory mapped from external memory is freed like device memory; the trace knows its address as an
// import. `extra` is the external memory.
template <Hook kHook, typename Pointer>
int map_external_buffer(const void* caller,
                        Pointer* address,
                        void* memory,
                        const ExternalBufferDescriptor* descriptor) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) { imported(call, number(*address), descriptor->bytes, number(memory)); },
        address,
        memory,
        descriptor);
}

template <Hook kHook>
int map_external_array(const void* caller, void** array, void* memory, const void* descriptor) {
    return recorded_success<kHook>(
        caller,
        [&](Call& call) {
            call.record({.kind = EventKind::kImport,
                         .device = call.current_device(),
                         .address = number(*array),
                         .size = kUnknown64,
                         .extra = number(memory)});
        },
        array,
        memory,
        descriptor);
}

}  // namespace

FT_HOOK_2(cuIpcGetMemHandle, export_address)
FT_HOOK_2(cudaIpcGetMemHandle, export_address)
FT_HOOK_2(cuMemPoolExportPointer, export_address)
FT_HOOK_2(cudaMemPoolExportPointer, export_address)
FT_HOOK_3(cuIpcOpenMemHandle, open_ipc)
FT_HOOK_3(cuIpcOpenMemHandle_v2, open_ipc)
FT_HOOK_3(cudaIpcOpenMemHandle, open_ipc)
FT_HOOK_1(cuIpcCloseMemHandle, end_import)
FT_HOOK_1(cudaIpcCloseMemHandle, end_import)
FT_HOOK_2(cuImportExternalMemory, import_external)
FT_HOOK_2(cudaImportExternalMemory, import_external)
FT_HOOK_1(cuDestroyExternalMemory, end_import)
FT_HOOK_1(cudaDestroyExternalMemory, end_import)
FT_HOOK_3(cuExternalMemoryGetMappedBuffer, map_external_buffer)
FT_HOOK_3(cudaExternalMemoryGetMappedBuffer, map_external_buffer)
FT_HOOK_3(cuExternalMemoryGetMappedMipmappedArray, map_external_array)
FT_HOOK_3(cudaExternalMemoryGetMappedMipmappedArray, map_external_array)

}  // namespace fragtrace::preload
