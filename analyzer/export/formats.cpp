#include "analyzer/export/formats.h"

#include <algorithm>
#include <array>

namespace fragtrace::analyzer {
namespace {

constexpr std::array kFormats = {
    ExportFormat{"folded",
                 "stacks with bytes, one per line: flamegraph.pl, inferno, speedscope",
                 "--of --at",
                 export_folded},
    ExportFormat{"speedscope",
                 "stacks of holders, waste and allocations: speedscope.app",
                 "--at",
                 export_speedscope},
    ExportFormat{"perfetto",
                 "memory over time, phases, failed requests: ui.perfetto.dev, trace processor",
                 "--blocks --with",
                 export_perfetto},
    ExportFormat{"csv",
                 "the tables of the report in a folder: spreadsheets, pandas, SQLite",
                 "--categories",
                 export_csv,
                 true,
                 true},
    ExportFormat{"sqlite",
                 "a database of events, blocks, stacks and failures: sqlite3, Python, pandas",
                 "--at --categories",
                 export_sqlite},
    ExportFormat{"snapshot",
                 "PyTorch memory snapshot: torch.cuda._memory_viz, pytorch.org/memory_viz, Mosaic",
                 "",
                 export_snapshot},
};

}  // namespace

std::span<const ExportFormat> export_formats() {
    return kFormats;
}

const ExportFormat* find_export_format(std::string_view name) {
    const auto* const found =
        std::find_if(kFormats.begin(), kFormats.end(), [name](const ExportFormat& format) {
            return format.name == name;
        });
    return found == kFormats.end() ? nullptr : found;
}

}  // namespace fragtrace::analyzer
