// Work on one of several files, so that the others go on whatever happens.
#pragma once

#include "analyzer/support/result.h"

#include <exception>
#include <new>
#include <string>

namespace fragtrace::analyzer {

// `make()`, which gives a Result; what it throws is an Error of the file at `path`.
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
