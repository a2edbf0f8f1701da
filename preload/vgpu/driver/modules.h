// Modules and functions: structures shared by modules.cpp and launches.cpp.
#pragma once

#include "driver/state.h"

namespace fragtrace::vgpu {

struct Symbol {
    char* name;
    void* function;    // a Function, or null
    uint64_t address;  // address of a variable, or 0
    Symbol* next;
};

// Stands for a CUmodule or a CUlibrary.
struct Module {
    static constexpr Kind kKind = Kind::kModule;
    Object object;
    Symbol* symbols;
    Context* context;  // the context whose code_bytes include it, or null
    uint64_t bytes;    // size of the code
};

// Stands for a CUfunction or a CUkernel.
struct Function {
    static constexpr Kind kKind = Kind::kFunction;
    Object object;
    Module* module;
    const char* name;
    int dynamic_shared_bytes;
    int carveout;
};

}  // namespace fragtrace::vgpu
