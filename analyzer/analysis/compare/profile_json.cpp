#include "analyzer/analysis/compare/profile_json.h"

#include "analyzer/analysis/check/report_file.h"
#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/support/input_file.h"
#include "analyzer/trace/describe_event.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostLeft = std::numeric_limits<std::int64_t>::max();

std::string text_of(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Reads the peaks and the split at the peak. The JSON has no requested bytes there: they are
// reserved minus the other parts.
bool read_memory(const Json& row, RunFigures* run) {
    if (!row.contains("peak") || !row["peak"].is_object() || !row.contains("waste_at_peak") ||
        !row["waste_at_peak"].is_object()) {
        return false;
    }
    const Json& peak = row["peak"];
    const Json& parts = row["waste_at_peak"];
    if (row.contains("segments_allocated") && row["segments_allocated"].is_null()) {
        forget_segments(run);
        if (!read_count(peak, "requested", &run->peak_requested)) {
            run->peak_requested = kUnknown64;
        }
        if (row.contains("ooms") && row["ooms"].is_null()) {
            run->ooms = kUnknown64;  // the input did not show failed requests
        } else if (!read_count(row, "ooms", &run->ooms)) {
            return false;
        }
        return read_count(peak, "allocated", &run->peak_allocated);
    }
    WasteSplit& waste = run->waste_at_peak;
    if (!read_count(peak, "requested", &run->peak_requested) ||
        !read_count(peak, "allocated", &run->peak_allocated) ||
        !read_count(peak, "active", &run->peak_active) ||
        !read_count(peak, "reserved", &run->peak_reserved) ||
        !read_count(parts, "rounding", &waste.rounding) ||
        !read_count(parts, "slack", &waste.slack) ||
        !read_count(parts, "pending", &waste.pending) ||
        !read_count(parts, "releasable", &waste.releasable) ||
        !read_count(parts, "inactive_split", &waste.inactive_split)) {
        return false;
    }
    std::uint64_t left = waste.reserved = run->peak_reserved;
    for (const std::uint64_t part :
         {waste.rounding, waste.slack, waste.pending, waste.releasable, waste.inactive_split}) {
        if (part > left) {
            return false;
        }
        left -= part;
    }
    waste.requested = left;
    return read_count(row, "segments_allocated", &run->segments_allocated) &&
           read_count(row, "segments_freed", &run->segments_freed) &&
           read_count(row, "retries", &run->retries) && read_count(row, "ooms", &run->ooms);
}

bool read_device(const Json& row, DeviceProfile* device) {
    std::uint64_t index = 0;
    if (!row.is_object() || !read_count(row, "index", &index) || index >= kMaxDevices ||
        !read_memory(row, &device->run)) {
        return false;
    }
    device->device = static_cast<DeviceId>(index);
    device->name = text_of(row, "name");
    const auto state_only = row.find("state_only");
    device->state_only =
        state_only != row.end() && state_only->is_boolean() && state_only->get<bool>();
    const auto holders = row.find("holders_at_peak");
    if (holders == row.end() || !holders->is_array()) {
        return true;  // the source lists no holders
    }
    for (const Json& holder : *holders) {
        HeldByLine line;
        std::uint64_t bytes = 0;
        std::uint64_t blocks = 0;
        if (!holder.is_object() || !read_count(holder, "bytes", &bytes) ||
            !read_count(holder, "blocks", &blocks)) {
            return false;
        }
        line.held.label = text_of(holder, "label");
        line.held.add(bytes, blocks);
        device->holders.push_back(std::move(line));
    }
    return true;
}

bool read_phase(const Json& row, PhaseProfile* phase) {
    if (!row.is_object() || !row.contains("left_bytes") || !row["left_bytes"].is_number_integer() ||
        !read_count(row, "count", &phase->count) ||
        !read_count(row, "peak_allocated_bytes", &phase->figures.peak_allocated)) {
        return false;
    }
    const auto reserved = row.find("peak_reserved_bytes");
    const bool unknown = reserved != row.end() && reserved->is_null();  // as in read_memory()
    if (!unknown && !read_count(row, "peak_reserved_bytes", &phase->figures.peak_reserved)) {
        return false;
    }
    phase->name = text_of(row, "name");
    const Json& left = row["left_bytes"];
    if (left.is_number_unsigned() && left.get<std::uint64_t>() > kMostLeft) {
        return false;
    }
    phase->figures.left_bytes = left.get<std::int64_t>();
    const std::string kind = text_of(row, "kind");
    for (const RangeKind known : {RangeKind::kApi, RangeKind::kNvtx, RangeKind::kCell}) {
        if (range_kind_name(known) == kind) {
            phase->kind = known;
            return true;
        }
    }
    return false;
}

}  // namespace

bool looks_like_json(const std::string& path) {
    const auto file = InputFile::open(path);
    char first[64] = {};
    if (!file || file->size() == 0) {
        return false;
    }
    const std::string_view text(first,
                                file->read_at(0, first, std::min(sizeof first, file->size())));
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    return begin != std::string_view::npos && text[begin] == '{';
}

Result<RunProfile> read_profile_json(const std::string& path) {
    const auto json = read_report_file(path);
    if (!json) {
        return json.error();
    }
    RunProfile profile;
    profile.source = RunProfile::Source::kJson;
    profile.path = path;
    // A report has these fields under "source".
    const Json& head = json->contains("source") && (*json)["source"].is_object()
                           ? (*json)["source"]
                           : static_cast<const Json&>(*json);
    profile.command_line = text_of(head, "command_line");
    read_count(head, "events", &profile.events);
    profile.events_read = profile.events;  // summarize reads everything
    read_count(head, "events_read", &profile.events_read);
    read_count(head, "events_lost", &profile.events_lost);
    for (const Json& row : (*json)["devices"]) {
        DeviceProfile device;
        if (!read_device(row, &device)) {
            return bad_report_file(
                path, fmt::format("its device {} lacks a figure", profile.devices.size()));
        }
        profile.has_holders = profile.has_holders || (row.contains("holders_at_peak") &&
                                                      row["holders_at_peak"].is_array());
        profile.devices.push_back(std::move(device));
    }
    std::sort(profile.devices.begin(),
              profile.devices.end(),
              [](const DeviceProfile& a, const DeviceProfile& b) { return a.device < b.device; });
    const auto twice = std::adjacent_find(
        profile.devices.begin(), profile.devices.end(), [](const auto& a, const auto& b) {
            return a.device == b.device;
        });
    if (twice != profile.devices.end()) {
        return bad_report_file(path, fmt::format("it lists gpu{} twice", twice->device));
    }
    if (json->contains("phases") && (*json)["phases"].is_array() && !profile.is_part()) {
        profile.has_phases = true;
        for (const Json& row : (*json)["phases"]) {
            PhaseProfile phase;
            if (!read_phase(row, &phase)) {
                return bad_report_file(
                    path, fmt::format("its phase {} lacks a figure", profile.phases.size()));
            }
            profile.phases.push_back(std::move(phase));
        }
    }
    if (json->contains("facts") && (*json)["facts"].is_object()) {
        profile.has_facts = true;
        for (const auto& [key, value] : (*json)["facts"].items()) {
            if (value.is_string()) {
                profile.facts[key] = value.get<std::string>();
            }
        }
    }
    return profile;
}

}  // namespace fragtrace::analyzer
