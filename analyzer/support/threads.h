// Runs the same work on several threads at once.
#pragma once

#include <cstddef>
#include <functional>

namespace fragtrace::analyzer {

// The number of threads that can run at the same time; at least 1.
std::size_t processors();

// Calls `work` on this thread and on up to `count` - 1 other threads, fewer if the system cannot
// start more. Returns when all calls have returned, and then rethrows the first exception. The
// calls must share out the work themselves: each takes the next part.
void on_threads(std::size_t count, const std::function<void()>& work);

}  // namespace fragtrace::analyzer
