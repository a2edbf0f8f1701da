// Modules, libraries and functions. Any image loads and any name is found.
#include "driver/modules.h"

namespace fragtrace::vgpu {
namespace {

constexpr uint64_t kVariableBytes = 4096;  // per variable: images are not parsed for the size

uint64_t g_statics = kStaticsBase;

CUresult new_module(void* out_handle) {
    if (out_handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Module* module = make<Module>();
    memcpy(out_handle, static_cast<void*>(&module), sizeof module);
    return module != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
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

CUresult cuModuleLoad(CUmodule* out, const char*) {
    FT_ENTER();
    return new_module(out);
}

CUresult cuModuleLoadData(CUmodule* out, const void* image) {
    FT_ENTER();
    return image != nullptr ? new_module(out) : CUDA_ERROR_INVALID_VALUE;
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
    *mode = CU_MODULE_LAZY_LOADING;
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
    return code != nullptr ? new_module(out) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLibraryLoadFromFile(CUlibrary* out,
                               const char*,
                               CUjit_option*,
                               void**,
                               unsigned,
                               CUlibraryOption*,
                               void**,
                               unsigned) {
    FT_ENTER();
    return new_module(out);
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
