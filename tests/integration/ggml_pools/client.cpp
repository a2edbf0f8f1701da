// Loads libraries with pools, as programs load ggml's CUDA backend, and uses both kinds of pools:
//
//     client LIBRARY...
//
// Prints what a program without the recorder sees, too.
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <dlfcn.h>

namespace {

struct Block {
    void* address;
    std::size_t size;
};

class Library {
  public:
    explicit Library(void* handle) : handle_(handle) {}

    template <typename Result, typename... Arguments>
    Result call(const char* name, Arguments... arguments) const {
        return reinterpret_cast<Result (*)(Arguments...)>(dlsym(handle_, name))(arguments...);
    }

    [[nodiscard]] Block allocate(void* pool, std::size_t bytes) const {
        Block block{};
        block.address = call<void*>("allocate", pool, bytes, &block.size);
        return block;
    }

    void release(void* pool, const Block& block) const {
        call<void>("release", pool, block.address, block.size);
    }

  private:
    void* handle_;
};

// Two pools of one kind, which live at the same time. Prints the sizes of blocks.
void use_pools(const Library& library, int maps) {
    errno = 7;
    void* pool = library.call<void*>("create", maps);
    void* other = library.call<void*>("create", maps);
    const Block first = library.allocate(pool, 1000);
    const Block second = library.allocate(pool, 300 << 10);
    const Block third = library.allocate(other, 5000);
    const Block empty = library.allocate(other, 0);
    library.release(pool, second);
    const Block again = library.allocate(pool, 200 << 10);
    library.release(other, empty);
    library.release(other, third);
    std::printf("%zu %zu %zu %zu %d %d\n",
                first.size,
                second.size,
                third.size,
                again.size,
                second.address == again.address ? 1 : 0,
                errno);
    library.release(pool, again);
    library.release(pool, first);
    library.call<void>("destroy", other);
    library.call<void>("destroy", pool);
}

}  // namespace

int main(int count, char** words) {
    for (int at = 1; at < count; ++at) {
        void* handle = dlopen(words[at], RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) {
            std::puts(dlerror());
            return 1;
        }
        const Library library(handle);
        library.call<void>("ggml_backend_cuda_init");
        use_pools(library, 0);
        use_pools(library, 1);
    }
    return 0;
}
