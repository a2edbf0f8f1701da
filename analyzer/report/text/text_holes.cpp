// Lines of the text report about the free blocks of a snapshot, and the requests each could serve.
#include "analyzer/analysis/verdict/verdict.h"
#include "analyzer/analysis/verdict/verdict_text.h"
#include "analyzer/report/text/text_parts.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <tuple>

namespace fragtrace::analyzer {
namespace {

// Free blocks that can serve the same requests.
struct HoleRow {
    FreePlace place;  // stream and pool they belong to
    std::uint64_t largest_request_bytes = 0;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
};

std::vector<HoleRow> rows_of(const std::vector<Hole>& holes,
                             const std::vector<std::uint64_t>& streams) {
    std::map<std::tuple<std::uint64_t, StreamId, std::uint32_t, SizeClass>, HoleRow> rows;
    for (const Hole& hole : holes) {
        HoleRow& row =
            rows[{hole.largest_request_bytes, hole.stream, hole.private_pool, hole.size_class}];
        row.place.stream = hole.stream;
        row.place.stream_handle = hole.stream < streams.size() ? streams[hole.stream] : kUnknown64;
        row.place.private_pool = hole.private_pool;
        row.place.size_class = hole.size_class;
        row.largest_request_bytes = hole.largest_request_bytes;
        row.bytes += hole.size_bytes;
        ++row.count;
    }
    std::vector<HoleRow> sorted;
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
        sorted.push_back(row->second);
    }
    return sorted;
}

}  // namespace

std::string hole_lines(const Analysis& analysis,
                       const DeviceAnalysis& device,
                       std::size_t limit,
                       const Terminal& terminal) {
    if (device.holes.empty() || limit == 0) {
        return "";
    }
    std::uint64_t bytes = 0;
    std::uint64_t whole_bytes = 0;
    for (const Hole& hole : device.holes) {
        bytes += hole.size_bytes;
        whole_bytes += hole.whole_segment ? hole.size_bytes : 0;
    }
    std::string text =
        terminal.styled(Style::kBold,
                        fmt::format("Holes: {} in {}, {} of it in whole segments",
                                    format_bytes(bytes),
                                    format_counted(device.holes.size(), "hole", "holes"),
                                    format_bytes(whole_bytes))) +
        "\n";
    const std::vector<HoleRow> rows = rows_of(device.holes, analysis.timeline.streams);
    for (std::size_t i = 0; i < std::min(limit, rows.size()); ++i) {
        const HoleRow& row = rows[i];
        text += fmt::format("  {:>9} in {:>11}  {} {}, {}\n",
                            format_bytes(row.bytes),
                            format_counted(row.count, "hole", "holes"),
                            row.largest_request_bytes == 0
                                ? std::string("too small for any request in")
                                : fmt::format("each serves one request of up to {} in",
                                              format_bytes(row.largest_request_bytes)),
                            pool_text(row.place),
                            stream_text(row.place));
    }
    if (rows.size() > limit) {
        text += fmt::format("  and {} more sizes (--json has all holes)\n", rows.size() - limit);
    }
    return text;
}

}  // namespace fragtrace::analyzer
