#include "analyzer/support/threads.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace fragtrace::analyzer {

std::size_t processors() {
    return std::max(1u, std::thread::hardware_concurrency());
}

void on_threads(std::size_t count, const std::function<void()>& work) {
    std::exception_ptr failure;
    std::mutex mutex;
    const auto guarded = [&] {
        try {
            work();
        } catch (...) {
            const std::lock_guard lock(mutex);
            failure = failure ? failure : std::current_exception();
        }
    };
    {
        std::vector<std::jthread> others;
        others.reserve(count);
        try {
            while (others.size() + 1 < count) {
                others.emplace_back(guarded);
            }
        } catch (const std::system_error&) {  // continue with fewer threads
        }
        guarded();
    }
    if (failure) {
        std::rethrow_exception(failure);
    }
}

}  // namespace fragtrace::analyzer
