// Keeps an exception in the work on one file from ending the work on other files.
#pragma once

#include "analyzer/support/result.h"

#include <exception>
#include <new>
#include <string>

namespace fragtrace::analyzer {

// Calls `make()`, which returns a Result. An exception becomes an Error about the file at `path`.
template <typename Make>
auto guarded(const std::string& path, Make make) -> decltype(make()) {
    try {
        return make();
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::kInput, path + ": not enough memory to read it"};
    } catch (const std::exception& failure) {
        return Error{ErrorCode::kInput, path + ": internal error: " + failure.what()};
    }
}

}  // namespace fragtrace::analyzer
