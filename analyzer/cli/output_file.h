// Results that go to a file: written whole or not at all.
#pragma once

#include "analyzer/support/result.h"

#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// Writes `content` to `path` by way of a temporary file beside it that is renamed at the end;
// "-" is standard output. An existing file is replaced. Errors are kOutput.
Status write_output(const std::string& path, std::string_view content);

}  // namespace fragtrace::analyzer
