// <fragtrace/mark.h> in C++: ranges of several threads, and of a forked child.
#include <fragtrace/mark.h>

#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

void allocate(std::size_t bytes) {
    void* cuda = dlopen("libcudart.so.13", RTLD_NOW);
    const auto function = reinterpret_cast<int (*)(void**, std::size_t)>(
        cuda == nullptr ? nullptr : dlsym(cuda, "cudaMalloc"));
    void* address = nullptr;
    if (function == nullptr || function(&address, bytes) != 0) {
        std::exit(1);
    }
}

}  // namespace

int main() {
    const fragtrace::Range outer("outer");
    std::uint64_t handed_over = 0;
    std::thread([&] {
        const fragtrace::Range of_thread("of a thread");
        handed_over = fragtrace_range_start("across threads");
    }).join();
    if (const pid_t child = fork(); child == 0) {
        allocate(512);
        { const fragtrace::Range of_child("of the child"); }
        std::exit(0);
    } else if (int status = 0; waitpid(child, &status, 0) != child || status != 0) {
        return 1;
    }
    allocate(1024);
    {
        const fragtrace::Range inner("inner");
        fragtrace_stop();
        fragtrace_start();
        allocate(2048);
    }
    fragtrace_range_stop(handed_over);
    fragtrace_range_end();  // ends "outer", so its object finds no open range
    return 0;
}
