// Copies lines of source files into the page, around the lines of its stacks (--sources).
#pragma once

#include "analyzer/report/page/page_data.h"

#include <cstdint>

namespace fragtrace::analyzer {

struct SourceLimits {
    std::uint32_t lines_around = 3;                      // before and after each line
    std::uint64_t file_bytes = std::uint64_t{4} << 20;   // larger files are not read
    std::uint64_t read_bytes = std::uint64_t{64} << 20;  // of all files together
    std::uint64_t all_bytes = std::uint64_t{1} << 20;    // of copied text
};

// Fills data->sources, and adds to the notes of each process how many files were copied, and how
// many could not be read or found no room. Lines that name stacks come first, then the program's
// own lines, then those of libraries. Reads only regular files whose names (after symbolic links)
// end like those of source files, since a trace of unknown origin chooses the names, and the page
// may be sent to somebody else.
//
// `recorded_unix_ns`: a file that changed later is marked, since its lines may be others. 0: not
// known.
void add_sources(std::uint64_t recorded_unix_ns, const SourceLimits& limits, PageData* data);

}  // namespace fragtrace::analyzer
