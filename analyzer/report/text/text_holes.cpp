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
struct HoleGroup {
    FreePlace place;  // stream and pool they belong to
    std::uint64_t largest_request_bytes = 0;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;
};

std::vector<HoleGroup> groups_of(const std::vector<Hole>& holes,
                                 const std::vector<std::uint64_t>& streams) {
    std::map<std::tuple<std::uint64_t, StreamId, std::uint32_t, SizeClass>, HoleGroup> rows;
    for (const Hole& hole : holes) {
        HoleGroup& row =
            rows[{hole.largest_request_bytes, hole.stream, hole.private_pool, hole.size_class}];
        row.place.stream = hole.stream;
        row.place.stream_handle = hole.stream < streams.size() ? streams[hole.stream] : kUnknown64;
        row.place.private_pool = hole.private_pool;
        row.place.size_class = hole.size_class;
        row.largest_request_bytes = hole.largest_request_bytes;
        row.bytes += hole.size_bytes;
        ++row.count;
    }
    std::vector<HoleGroup> sorted;
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
        sorted.push_back(row->second);
    }
    return sorted;
}

}  // namespace

std::string holes_heading(const DeviceAnalysis& device) {
    if (device.holes.empty()) {
        return "";
    }
    std::uint64_t bytes = 0;
    std::uint64_t whole_bytes = 0;
    for (const Hole& hole : device.holes) {
        bytes += hole.size_bytes;
        whole_bytes += hole.whole_segment ? hole.size_bytes : 0;
    }
    return fmt::format("Holes: {} in {}, {} of it in whole segments",
                       format_bytes(bytes),
                       format_counted(device.holes.size(), "hole", "holes"),
                       format_bytes(whole_bytes));
}

std::vector<HoleRow> hole_rows(const Analysis& analysis, const DeviceAnalysis& device) {
    std::vector<HoleRow> rows;
    for (const HoleGroup& group : groups_of(device.holes, analysis.timeline.streams)) {
        rows.push_back(
            {.bytes = group.bytes,
             .count = group.count,
             .serves = fmt::format("{} {}, {}",
                                   group.largest_request_bytes == 0
                                       ? std::string("too small for any request in")
                                       : fmt::format("each serves one request of up to {} in",
                                                     format_bytes(group.largest_request_bytes)),
                                   pool_text(group.place),
                                   stream_text(group.place))});
    }
    return rows;
}

std::string hole_lines(const Analysis& analysis,
                       const DeviceAnalysis& device,
                       std::size_t limit,
                       const Terminal& terminal) {
    if (device.holes.empty() || limit == 0) {
        return "";
    }
    std::string text = terminal.styled(Style::kBold, holes_heading(device)) + "\n";
    const std::vector<HoleRow> rows = hole_rows(analysis, device);
    for (std::size_t i = 0; i < std::min(limit, rows.size()); ++i) {
        text += fmt::format("  {:>9} in {:>11}  {}\n",
                            format_bytes(rows[i].bytes),
                            format_counted(rows[i].count, "hole", "holes"),
                            rows[i].serves);
    }
    if (rows.size() > limit) {
        text += fmt::format("  and {} more sizes (--json has all holes)\n", rows.size() - limit);
    }
    return text;
}

}  // namespace fragtrace::analyzer
