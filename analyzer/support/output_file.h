// Writes results to a file: completely or not at all, and never over a file that matters.
#pragma once

#include "analyzer/support/result.h"

#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

// Writes `content` to a temporary file in the folder of `path` and renames it at the end. "-" is
// standard output. An existing report, page or plan of fraganalyze is replaced and keeps its mode.
// A new file follows the umask. Refused (kOutput):
// - a file that this command reads
// - a file that fraganalyze did not write (unless allowed below)
// - a symbolic link that another user may have put into a shared folder
Status write_output(const std::string& path, std::string_view content);

// The same for results that may be too long for memory: `write` gets a stream. Its errors need no
// handling there; they are found when the stream is closed.
Status write_output(const std::string& path, const std::function<Status(std::FILE*)>& write);

// The same for libraries that open their file by name. The named file exists and is empty. Pipes
// and standard output are refused.
Status write_output_by_name(const std::string& path,
                            const std::function<Status(const std::string& name)>& write);

// Errors that are known before anything is written: the folder of `path` is missing or cannot be
// written, or `path` is a folder. For long computations. Writing may still fail later.
Status check_output(const std::string& path);

struct NamedOutput {
    std::string name;  // without a folder
    std::string content;
};

// Writes these files into a new folder that appears when it is complete. An empty folder is
// replaced, and so is one that has no other files than these. The folder and its files keep their
// modes, new ones follow the umask. Files that fraganalyze did not write are never removed.
Status write_output_folder(const std::string& path, const std::vector<NamedOutput>& files);

// Writes everything, or returns false with errno set. Goes on after a signal.
bool write_all(int descriptor, std::string_view content);

// Writes text for people to standard output. Of all control characters, only line ends and the
// colours of Terminal pass, whatever the trace contains.
Status write_text(std::string_view text);

// After this call, write_output() also replaces files that fraganalyze did not write.
void replace_any_file();

// Makes sure that the output of fmt::print() was written. Errors are kOutput.
Status flush_standard_output();

// Removes the temporary file or folder that is currently being written, if there is one. For signal
// handlers.
void remove_unfinished_output();

}  // namespace fragtrace::analyzer
