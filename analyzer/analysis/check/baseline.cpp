#include "analyzer/analysis/check/baseline.h"

#include "analyzer/analysis/check/report_file.h"
#include "analyzer/model/event.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {

Result<Baseline> read_baseline(const std::string& path) {
    const auto json = read_report_file(path);
    if (!json) {
        return json.error();
    }
    Baseline baseline;
    for (const nlohmann::json& row : (*json)["devices"]) {
        std::uint64_t index = 0;
        RunFigures device;
        if (!row.is_object() || !row.contains("peak") || !row["peak"].is_object() ||
            !read_count(row, "index", &index) ||
            !read_count(row["peak"], "reserved", &device.peak_reserved) ||
            !read_count(row["peak"], "allocated", &device.peak_allocated) ||
            !read_count(row, "retries", &device.retries) ||
            !read_count(row, "ooms", &device.ooms) ||
            !read_count(row, "segments_allocated", &device.segments_allocated)) {
            return bad_report_file(path,
                                   fmt::format("its device {} lacks a figure", baseline.size()));
        }
        if (index > kUnknownDevice || !baseline.emplace(index, device).second) {
            return bad_report_file(path,
                                   fmt::format("has device {} twice, or no such device", index));
        }
    }
    return baseline;
}

}  // namespace fragtrace::analyzer
