// Loads libraries with an arena, as Python loads ONNX Runtime's, and uses arenas:
//
//     client PROVIDER LIBRARY
//
// Prints what a program without the recorder sees, too.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <exception>

namespace {

template <typename Function>
Function* find(void* library, const char* name) {
    return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

int main(int count, char** words) {
    void* provider = count > 2 ? dlopen(words[1], RTLD_NOW | RTLD_GLOBAL) : nullptr;
    void* library = provider != nullptr ? dlopen(words[2], RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (library == nullptr) {
        std::puts(dlerror());
        return 1;
    }
    auto* create = find<void*(const char*, std::size_t, int)>(library, "create");
    auto* allocate = find<void*(void*, std::size_t, std::uint64_t)>(library, "allocate");
    auto* reserve = find<void*(void*, std::size_t)>(library, "reserve");
    auto* release = find<void(void*, void*)>(library, "release");
    auto* end_stream = find<void(void*, std::uint64_t)>(library, "end_stream");
    auto* shrink = find<int(void*)>(library, "shrink");
    auto* destroy = find<void(void*)>(library, "destroy");
    find<void()>(provider, "prepare_device")();
    errno = 7;
    void* arena = create("Cuda", std::size_t{64} << 20, 1);
    void* plain = create("CudaPinned", ~std::size_t{0}, 0);
    void* of_host = create("Cpu", ~std::size_t{0}, 0);
    void* first = allocate(arena, 1000, 0);
    void* second = allocate(arena, 300 << 10, 77);
    int failures = 0;
    for (int turn = 0; turn < 2; ++turn) {  // the lock is free again after the first
        try {
            allocate(arena, 900 << 10, 77);
        } catch (const std::exception&) {
            ++failures;
        }
    }
    release(arena, first);
    release(arena, nullptr);
    end_stream(arena, 77);
    release(arena, reserve(arena, 4 << 20));
    const int shrunk = shrink(arena);
    void* third = allocate(plain, 256, 0);
    void* fourth = allocate(of_host, 256, 0);
    release(of_host, fourth);
    std::printf("%d %d %d %d\n", failures, shrunk, second != nullptr && third != nullptr, errno);
    destroy(plain);
    destroy(of_host);
    destroy(arena);
    return 0;
}
