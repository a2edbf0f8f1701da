// The formats of other tools in which a recording can be written (fraganalyze export).
// docs/interoperability.md says what each format keeps and loses.
#pragma once

#include "analyzer/analysis/analysis.h"
#include "analyzer/support/result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// The quantity that formats of weighted stacks show.
enum class StackQuantity : std::uint8_t {
    kHolders,      // bytes of live blocks at one moment
    kWaste,        // free bytes that live blocks prevent from being reused, at the same moment
    kAllocations,  // bytes of all blocks ever allocated
};

struct ExportOptions {
    std::string output;  // a file, or "-" for standard output; csv: a folder
    // The moment for formats that show one. kNoEvent: the reported out-of-memory, else the peak of
    // allocated memory.
    EventIndex moment = kNoEvent;
    StackQuantity quantity = StackQuantity::kHolders;
    bool blocks = false;       // perfetto: each block as a slice
    std::string profile = {};  // perfetto: a trace of PyTorch's profiler to add; empty = none
};

struct ExportFormat {
    std::string_view name;
    std::string_view synopsis;  // what it is, and what reads it
    // Options beside -o that the format uses, as words of the command line, e.g. "--at --of".
    std::string_view uses;
    Status (*write)(const Analysis& analysis, const ExportOptions& options);
    // The format shows what-if replays, so that the analysis must have those of a report.
    bool shows_replays = false;
    bool writes_folder = false;  // the output is a folder
};

std::span<const ExportFormat> export_formats();

// nullptr: there is no such format.
const ExportFormat* find_export_format(std::string_view name);

// ---- the formats, one file each -----------------------------------------------------------------

// One line per stack: frames from the outermost on, separated by ";", and bytes (flamegraph.pl,
// speedscope, inferno).
Status export_folded(const Analysis& analysis, const ExportOptions& options);
// https://www.speedscope.app/file-format-schema.json: holders, waste and allocations in one file.
Status export_speedscope(const Analysis& analysis, const ExportOptions& options);
// https://perfetto.dev: memory over time, phases, failed requests; blocks and a profile on request.
Status export_perfetto(const Analysis& analysis, const ExportOptions& options);
// The tables of the report in a folder, one file each (csv_tables.h).
Status export_csv(const Analysis& analysis, const ExportOptions& options);
// An SQLite database; docs/sqlite.md has its tables.
Status export_sqlite(const Analysis& analysis, const ExportOptions& options);
// A pickle like that of torch.cuda.memory._dump_snapshot(): the state at the end of the recording,
// and the history before it.
Status export_snapshot(const Analysis& analysis, const ExportOptions& options);

}  // namespace fragtrace::analyzer
