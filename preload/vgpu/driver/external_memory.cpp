// Memory imported from other interfaces (Vulkan, OpenGL). Any open file is accepted, because its
// contents are never read. The exporter owns the memory, so an import takes nothing from the card.
#include "driver/state.h"

#include <sys/stat.h>
#include <unistd.h>

namespace fragtrace::vgpu {
namespace {

struct ExternalMemory {
    static constexpr Kind kKind = Kind::kExternalMemory;
    Object object;
    uint64_t size;
    int device;
};

}  // namespace
}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuImportExternalMemory(CUexternalMemory* out,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    constexpr unsigned kKnownFlags = CUDA_EXTERNAL_MEMORY_DEDICATED;
    if (out == nullptr || description == nullptr || description->size == 0 ||
        (description->flags & ~kKnownFlags) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (description->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }

    struct stat status {};

    if (fstat(description->handle.fd, &status) != 0) return CUDA_ERROR_INVALID_HANDLE;
    ExternalMemory* memory = make<ExternalMemory>();
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    close(description->handle.fd);  // a successful import owns the descriptor
    memory->size = description->size;
    memory->device = context->device;
    *out = reinterpret_cast<CUexternalMemory>(memory);
    return CUDA_SUCCESS;
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* address,
                                         CUexternalMemory handle,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* description) {
    FT_ENTER();
    const ExternalMemory* memory = as<ExternalMemory>(handle);
    if (memory == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (address == nullptr || description == nullptr || description->flags != 0 ||
        description->size == 0 || description->size > memory->size ||
        description->offset > memory->size - description->size) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return map_imported(memory->device, description->size, nullptr, 0, address);
}

CUresult cuDestroyExternalMemory(CUexternalMemory handle) {
    FT_ENTER();
    ExternalMemory* memory = as<ExternalMemory>(handle);
    if (memory == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    destroy(memory);
    return CUDA_SUCCESS;
}
