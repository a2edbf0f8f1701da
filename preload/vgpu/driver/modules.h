// Modules and functions: structures shared by modules.cpp and launches.cpp.
#pragma once

#include "driver/state.h"

namespace fragtrace::vgpu {

struct Symbol {
    char* name;
    void* function;    // a Function, or null
    uint64_t address;  // of a variable, or 0
    Symbol* next;
};

// CUmodule and CUlibrary alike.
struct Module {
    static constexpr Kind kKind = Kind::kModule;
    Object object;
    Symbol* symbols;
    Context* context;  // that its code is counted in, or null
    uint64_t bytes;    // of its code
};

// CUfunction and CUkernel alike.
struct Function {
    static constexpr Kind kKind = Kind::kFunction;
    Object object;
    Module* module;
    const char* name;
    int dynamic_shared_bytes;
    int carveout;
};

}  // namespace fragtrace::vgpu
