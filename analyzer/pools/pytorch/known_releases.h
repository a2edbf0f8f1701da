// The releases of PyTorch whose allocator was compared with its replay (docs/compatibility.md).
#pragma once

#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// For another release: a sentence that says which rules its replay follows. Empty for the known
// releases, 2.0 to 2.15, and for a text that names no release.
std::string doubt_about_release(std::string_view release);

}  // namespace fragtrace::analyzer
