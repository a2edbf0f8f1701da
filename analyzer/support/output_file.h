// Results that go to a file: written whole or not at all, and never over something that matters.
#pragma once

#include "analyzer/support/result.h"

#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// Writes `content` to `path` by way of a temporary file beside it that is renamed at the end;
// "-" is standard output. A report, page or plan of fraganalyze is replaced and keeps its mode; a
// new file follows the umask. Refused (kOutput) are a file that this command reads, a file of
// anybody else's making (unless allowed below), and a symbolic link that another user may have put
// into a shared folder.
Status write_output(const std::string& path, std::string_view content);

// Text for people, to standard output: only line ends and the colours of Terminal pass, whatever
// the trace holds.
Status write_text(std::string_view text);

// From now on write_output() also replaces files that fraganalyze did not write.
void replace_any_file();

// What was printed with fmt::print() has arrived. Errors are kOutput.
Status flush_standard_output();

// Removes the temporary file that is being written, if there is one. For signal handlers.
void remove_unfinished_output();

}  // namespace fragtrace::analyzer
