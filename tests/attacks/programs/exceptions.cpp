// Exceptions and longjmp leave hooked calls. They come from an interposer after the recorder
// (thrower.cpp). Later calls are recorded as before.
#include "client.h"

#include <csetjmp>
#include <new>
#include <stdexcept>

jmp_buf g_back;

// Remains of frames skipped by a jump may be mistaken for live frames (preload/README.md).
__attribute__((noinline)) static void overwrite_stack() {
    volatile char memory[4096];
    for (size_t i = 0; i < sizeof memory; ++i)
        memory[i] = 1;
}

int main(int argc, char**) {
    device_work(2);
    for (int i = 0; i < 100; ++i) {
        bool thrown = false;
        try {
            void* address = nullptr;
            cudaMalloc(&address, 13);
        } catch (const std::runtime_error& error) {
            thrown = true;
            if (i == 0) std::puts(error.what());
        }
        CHECK(thrown);
        device_free(device_alloc(512));
    }
    volatile int jumps = 0;
    if (setjmp(g_back) == 0 || jumps < 100) {
        jumps = jumps + 1;
        void* address = nullptr;
        overwrite_stack();
        device_free(device_alloc(256));
        cudaMalloc(&address, 14);  // this call ends with a longjmp
        CHECK(argc < 0);
    }
    overwrite_stack();
    device_work(2);
    try {
        throw std::bad_alloc();
    } catch (const std::bad_alloc&) {
        std::puts("caught");
    }
    return 0;
}
