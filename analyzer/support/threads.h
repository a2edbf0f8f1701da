// The same work on several threads at once.
#pragma once

#include <cstddef>
#include <functional>

namespace fragtrace::analyzer {

// Threads that run at the same time, 1 at least.
std::size_t processors();

// Calls `work` on this thread and on up to `count` - 1 others, fewer where the system gives no
// more, and returns when all have returned. An exception of one of them, the first, is thrown then.
// The work is shared by the calls themselves: whoever comes first takes the next part.
void on_threads(std::size_t count, const std::function<void()>& work);

}  // namespace fragtrace::analyzer
