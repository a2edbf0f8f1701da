// Opens a file to see what it is.
#pragma once

#include "analyzer/support/input_file.h"

#include <string>

namespace fragtrace::analyzer {

// Like InputFile::open(), but the file does not count as one that this command reads: a result may
// replace it. For the files of a folder of which only some are inputs, and for files that a trace
// names.
Result<InputFile> look_at(const std::string& path);

}  // namespace fragtrace::analyzer
