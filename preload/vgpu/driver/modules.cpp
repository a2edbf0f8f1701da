// Modules, libraries and functions. Every image loads and every name is found. A module takes as
// much memory as its image. A library takes none unless CUDA_MODULE_LOADING=EAGER: the real driver
// then loads code function by function, and images are not parsed for functions.
#include "driver/modules.h"

#include <sys/stat.h>

namespace fragtrace::vgpu {
namespace {

constexpr uint64_t kVariableBytes = 4096;  // an assumption: images are not parsed for the real size

uint64_t g_statics = kStaticsBase;

template <typename Value>
Value read_at(const void* image, size_t offset) {
    Value value;
    memcpy(static_cast<void*>(&value), static_cast<const char*>(image) + offset, sizeof value);
    return value;
}

// Returns the length of an image passed without one: ELF, a fat binary, its wrapper, or text.
uint64_t image_bytes(const void* image) {
    constexpr uint32_t kElf = 0x464c457f;
    constexpr uint32_t kWrapper = 0x466243b1;  // FATBINC_MAGIC
    constexpr uint32_t kFatBinary = 0xba55ed50;
    if (static_cast<const char*>(image)[0] == '\0') return 0;
    const size_t text = strnlen(static_cast<const char*>(image), 4);
    if (text < 4) return text;
    switch (read_at<uint32_t>(image, 0)) {
        case kElf: {
            const uint64_t sections = read_at<uint64_t>(image, 40);
            return sections + uint64_t(read_at<uint16_t>(image, 58)) * read_at<uint16_t>(image, 60);
        }
        case kWrapper:
            return image_bytes(read_at<const void*>(image, 8));
        case kFatBinary:
            return read_at<uint16_t>(image, 6) + read_at<uint64_t>(image, 8);
        default:
            return strlen(static_cast<const char*>(image));
    }
}

uint64_t file_bytes(const char* path) {
    struct stat status {};

    return path != nullptr && stat(path, &status) == 0 ? uint64_t(status.st_size) : 0;
}

bool loads_eagerly() {
    const char* mode = getenv("CUDA_MODULE_LOADING");
    return mode != nullptr && strcmp(mode, "EAGER") == 0;
}

// All modules of a context share pages, so only their sum is rounded up.
bool count_code(Context* context, uint64_t before, uint64_t after) {
    const uint64_t pages_before = round_up(before, kPageBytes);
    const uint64_t pages_after = round_up(after, kPageBytes);
    Device& device = g_devices[context->device];
    if (pages_after > pages_before && !take_bytes(device, pages_after - pages_before)) return false;
    if (pages_after < pages_before) give_bytes(device, pages_before - pages_after);
    context->code_bytes = after;
    return true;
}

CUresult new_module(void* out_handle, uint64_t bytes) {
    if (out_handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    (void)require_context(&context);  // a library can load without a context
    Module* module = make<Module>();
    if (module == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    if (context != nullptr && bytes > 0) {
        if (!count_code(context, context->code_bytes, context->code_bytes + bytes)) {
            destroy(module);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        module->context = context;
        module->bytes = bytes;
    }
    memcpy(out_handle, static_cast<void*>(&module), sizeof module);
    return CUDA_SUCCESS;
}

Symbol* symbol_in(Module* module, const char* name) {
    for (Symbol* at = module->symbols; at != nullptr; at = at->next) {
        if (strcmp(at->name, name) == 0) return at;
    }
    Symbol* symbol = static_cast<Symbol*>(calloc(1, sizeof(Symbol)));
    if (symbol == nullptr) return nullptr;
    symbol->name = strdup(name);
    if (symbol->name == nullptr) {
        free(symbol);
        return nullptr;
    }
    symbol->next = module->symbols;
    module->symbols = symbol;
    return symbol;
}

CUresult unload(Module* module) {
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    while (module->symbols != nullptr) {
        Symbol* symbol = module->symbols;
        module->symbols = symbol->next;
        if (symbol->function != nullptr) destroy(static_cast<Function*>(symbol->function));
        free(symbol->name);
        free(symbol);
    }
    // If the context was destroyed, its code was released with it.
    if (is_object(module->context, Kind::kContext) &&
        module->context->code_bytes >= module->bytes) {
        Context* context = module->context;
        count_code(context, context->code_bytes, context->code_bytes - module->bytes);
    }
    destroy(module);
    return CUDA_SUCCESS;
}

CUresult function_in(void* out_handle, Module* module, const char* name) {
    if (out_handle == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    Symbol* symbol = symbol_in(module, name);
    if (symbol == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    if (symbol->function == nullptr) {
        Function* function = make<Function>();
        if (function == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
        function->module = module;
        function->name = symbol->name;
        symbol->function = function;
    }
    memcpy(out_handle, static_cast<void*>(&symbol->function), sizeof(void*));
    return CUDA_SUCCESS;
}

CUresult variable_in(CUdeviceptr* address, size_t* bytes, Module* module, const char* name) {
    if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    Symbol* symbol = symbol_in(module, name);
    if (symbol == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    if (symbol->address == 0) {
        symbol->address = g_statics;
        g_statics += kVariableBytes;
    }
    if (address != nullptr) *address = symbol->address;
    if (bytes != nullptr) *bytes = kVariableBytes;
    return CUDA_SUCCESS;
}

CUresult attribute_of(int* value, CUfunction_attribute attribute, const Function* function) {
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const Card& card = config().card;
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            *value = 1024;
            break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS:
            *value = 32;
            break;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
            *value = card.compute_major * 10 + card.compute_minor;
            break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            *value = function->dynamic_shared_bytes > 0 ? function->dynamic_shared_bytes : 48 << 10;
            break;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            *value = function->carveout;
            break;
        default:
            *value = 0;
            break;
    }
    return CUDA_SUCCESS;
}

CUresult set_attribute(Function* function, CUfunction_attribute attribute, int value) {
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        function->dynamic_shared_bytes = value;
    } else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
        function->carveout = value;
    }
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace fragtrace::vgpu

using namespace fragtrace::vgpu;

CUresult cuModuleLoad(CUmodule* out, const char* path) {
    FT_ENTER();
    if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (file_bytes(path) == 0) return CUDA_ERROR_FILE_NOT_FOUND;
    return new_module(out, file_bytes(path));
}

CUresult cuModuleLoadData(CUmodule* out, const void* image) {
    FT_ENTER();
    Context* context = nullptr;
    FT_TRY(require_context(&context));
    return image != nullptr ? new_module(out, image_bytes(image)) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned, CUjit_option*, void**) {
    return cuModuleLoadData(out, image);
}

CUresult cuModuleLoadFatBinary(CUmodule* out, const void* image) {
    return cuModuleLoadData(out, image);
}

CUresult cuModuleUnload(CUmodule handle) {
    FT_ENTER();
    return unload(as<Module>(handle));
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *mode = loads_eagerly() ? CU_MODULE_EAGER_LOADING : CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
    FT_ENTER();
    return function_in(out, as<Module>(module), name);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address,
                              size_t* bytes,
                              CUmodule module,
                              const char* name) {
    FT_ENTER();
    return variable_in(address, bytes, as<Module>(module), name);
}

CUresult cuLibraryLoadData(CUlibrary* out,
                           const void* code,
                           CUjit_option*,
                           void**,
                           unsigned,
                           CUlibraryOption*,
                           void**,
                           unsigned) {
    FT_ENTER();
    if (code == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return new_module(out, loads_eagerly() ? image_bytes(code) : 0);
}

CUresult cuLibraryLoadFromFile(CUlibrary* out,
                               const char* path,
                               CUjit_option*,
                               void**,
                               unsigned,
                               CUlibraryOption*,
                               void**,
                               unsigned) {
    FT_ENTER();
    return new_module(out, loads_eagerly() ? file_bytes(path) : 0);
}

CUresult cuLibraryUnload(CUlibrary handle) {
    FT_ENTER();
    return unload(as<Module>(handle));
}

CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary library, const char* name) {
    FT_ENTER();
    return function_in(out, as<Module>(library), name);
}

CUresult cuLibraryGetModule(CUmodule* out, CUlibrary library) {
    FT_ENTER();
    if (out == nullptr || as<Module>(library) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *out = reinterpret_cast<CUmodule>(library);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address,
                            size_t* bytes,
                            CUlibrary library,
                            const char* name) {
    FT_ENTER();
    return variable_in(address, bytes, as<Module>(library), name);
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
    FT_ENTER();
    if (count == nullptr || as<Module>(library) == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = 0;  // images are not parsed
    return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction* out, CUkernel kernel) {
    FT_ENTER();
    if (out == nullptr || as<Function>(kernel) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *out = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
    FT_ENTER();
    if (name == nullptr || as<Function>(kernel) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *name = as<Function>(kernel)->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
    return cuKernelGetName(name, reinterpret_cast<CUkernel>(function));
}

CUresult cuFuncGetModule(CUmodule* out, CUfunction function) {
    FT_ENTER();
    if (out == nullptr || as<Function>(function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *out = reinterpret_cast<CUmodule>(as<Function>(function)->module);
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
    FT_ENTER();
    return attribute_of(value, attribute, as<Function>(function));
}

CUresult cuKernelGetAttribute(int* value,
                              CUfunction_attribute attribute,
                              CUkernel kernel,
                              CUdevice) {
    FT_ENTER();
    return attribute_of(value, attribute, as<Function>(kernel));
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
    FT_ENTER();
    return set_attribute(as<Function>(function), attribute, value);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute,
                              int value,
                              CUkernel kernel,
                              CUdevice) {
    FT_ENTER();
    return set_attribute(as<Function>(kernel), attribute, value);
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
    FT_ENTER();
    return as<Function>(function) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) {
    FT_ENTER();
    return as<Function>(kernel) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncLoad(CUfunction function) {
    FT_ENTER();
    return as<Function>(function) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
    FT_ENTER();
    if (state == nullptr || as<Function>(function) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}
