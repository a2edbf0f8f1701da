#include "analyzer/report/page/page_header.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/page/page_compare_json.h"
#include "analyzer/report/page/page_report_json.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using nlohmann::json;

constexpr std::size_t kMostJobRows = 1000;  // of sentences, and of traces that cannot be read

const char* marker_name(PageMarkerKind kind) {
    switch (kind) {
        case PageMarkerKind::kOom:
            return "oom";
        case PageMarkerKind::kRetry:
            return "retry";
        case PageMarkerKind::kDriverBurst:
            return "burst";
        case PageMarkerKind::kEmptyCache:
            return "empty_cache";
        case PageMarkerKind::kOther:
            break;
    }
    return "other";
}

json whatif_json(const PageWhatIf& row) {
    return {{"name", row.name},
            {"class", row.row_class},
            {"ooms", row.run.ooms},
            {"peak_reserved", row.run.peak_reserved},
            {"held_open", row.run.waste_at_peak.inactive_split},
            {"releasable", row.run.waste_at_peak.releasable},
            {"segments", row.run.segments_allocated},
            {"retries", row.run.retries},
            {"difference", row.difference},
            {"differs", row.differs},
            {"usable", row.usable},
            {"note", row.note},
            {"as_run", row.as_run},
            {"bound", row.bound},
            {"gets_past", row.gets_past},
            {"rest_fails", row.rest_fails},
            {"cost", row.cost},
            {"set", row.commands.set},
            {"run", row.commands.run},
            {"curve", !row.reserved_curve.empty()}};
}

// Bytes as base64; null if there are none.
json bytes_json(const std::vector<std::uint8_t>& bytes) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (bytes.empty()) {
        return nullptr;
    }
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t three = 0;
        for (std::size_t k = 0; k < 3; ++k) {
            three = three << 8 | (i + k < bytes.size() ? bytes[i + k] : 0u);
        }
        for (std::size_t k = 0; k < 4; ++k) {
            text += i + k > bytes.size() ? '=' : kDigits[three >> (18 - 6 * k) & 63];
        }
    }
    return text;
}

json rank_json(const PageRank& row) {
    return {{"rank", row.rank < 0 ? json(nullptr) : json(row.rank)},
            {"pid", row.pid},
            {"gpu", row.gpu < 0 ? json(nullptr) : json(row.gpu)},
            {"host", row.host},
            {"generation", row.generation < 0 ? json(nullptr) : json(row.generation)},
            {"helper", row.helper},
            {"trace", row.trace},
            {"capacity", known_json(row.capacity_bytes)},
            {"peak_allocated", row.run.peak_allocated},
            {"peak_reserved", known_json(row.run.peak_reserved)},
            {"retries", segments_known(row.run) ? json(row.run.retries) : json(nullptr)},
            {"ooms", known_json(row.run.ooms)},
            {"first_oom_ns", known_json(row.first_oom_ns)},
            {"first_failure", row.first_failure < 0 ? json(nullptr) : json(row.first_failure)},
            {"start_after_ns", known_json(row.start_after_ns)},
            {"ended", row.ended},
            {"program", row.program},
            {"file", row.file},
            {"command", row.command},
            {"device", row.device == kPageNoDevice ? json(nullptr) : json(row.device)},
            {"reserved_heat", bytes_json(row.reserved_heat)},
            {"allocated_heat", bytes_json(row.allocated_heat)}};
}

const char* job_row_name(PageJobRowKind kind) {
    switch (kind) {
        case PageJobRowKind::kFailure:
            return "failure";
        case PageJobRowKind::kHeading:
            return "heading";
        case PageJobRowKind::kReport:
            return "report";
        case PageJobRowKind::kUnreadable:
            return "unreadable";
        case PageJobRowKind::kRow:
            break;
    }
    return "row";
}

json job_row_json(const PageJobRow& row) {
    json parts = json::array();
    for (const PageNamed& part : row.parts) {
        parts.push_back({{"text", part.text}, {"ranks", part.ranks}});
    }
    return {{"kind", job_row_name(row.kind)}, {"label", row.label}, {"parts", std::move(parts)}};
}

// The rows of a job that are in the file: those with a device in it, those that failed, then the
// others in their order. The value is the number of each, in the file.
std::vector<std::size_t> places_of_ranks(const std::vector<PageRank>& ranks) {
    std::vector<std::size_t> order(ranks.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_partition(order.begin(), order.end(), [&](std::size_t i) {
        return ranks[i].device != kPageNoDevice || ranks[i].first_failure >= 0;
    });
    std::vector<std::size_t> places(ranks.size(), kPageNoDevice);
    for (std::size_t i = 0; i < std::min(order.size(), kMostPageRanks); ++i)
        places[order[i]] = 0;
    std::size_t next = 0;
    for (std::size_t& place : places) {
        if (place == 0) place = next++;
    }
    return places;
}

// Adds the processes of a job and what the report says about it.
void add_job(const PageData& data, json& header) {
    const std::vector<std::size_t> places = places_of_ranks(data.ranks);
    json ranks = json::array();
    for (std::size_t i = 0; i < data.ranks.size(); ++i) {
        if (places[i] != kPageNoDevice) ranks.push_back(rank_json(data.ranks[i]));
    }
    const std::size_t left = data.ranks.size() - ranks.size();
    std::size_t named = 100 * kMostPageRanks;  // numbers of rows that sentences may contain in all
    json job = json::array();
    for (const PageJobRow& row : data.job) {
        if (job.size() == kMostJobRows) break;
        PageJobRow shown = row;
        for (PageNamed& part : shown.parts) {
            std::vector<std::size_t> kept;
            for (const std::size_t rank : part.ranks) {
                if (places[rank] != kPageNoDevice && kept.size() < named) {
                    kept.push_back(places[rank]);
                }
            }
            named -= kept.size();
            part.ranks = std::move(kept);
        }
        job.push_back(job_row_json(shown));
    }
    const auto add_note = [&job](std::size_t count, const char* one, const char* many) {
        if (count == 0) return;
        const std::string text = "this file leaves out " + format_counted(count, one, many);
        job.push_back(job_row_json({PageJobRowKind::kRow, "left out", {{text}}}));
    };
    add_note(left, "row of processes", "rows of processes");
    add_note(data.job.size() - std::min(data.job.size(), kMostJobRows),
             "sentence about the job",
             "sentences about the job");
    json unreadable = json::array();
    for (const PageUnreadable& trace : data.unreadable) {
        if (unreadable.size() < kMostJobRows) {
            unreadable.push_back({{"file", trace.file}, {"reason", trace.reason}});
        }
    }
    add_note(data.unreadable.size() - unreadable.size(),
             "trace that cannot be read",
             "traces that cannot be read");
    header["ranks"] = std::move(ranks);
    header["job"] = std::move(job);
    header["unreadable"] = std::move(unreadable);
}

}  // namespace

json page_header(const PageData& data, StackTables stacks) {
    json sources = json::array();
    for (const PageSource& source : data.sources) {
        sources.push_back({{"file", stacks.string(source.file)},
                           {"first_line", source.first_line},
                           {"lines", source.lines},
                           {"changed", source.changed}});
    }
    json processes = json::array();
    for (const PageProcess& process : data.processes) {
        processes.push_back({{"title", process.title},
                             {"process", process.process},
                             {"command", process.command},
                             {"notes", process.notes},
                             {"program_pools", process.program_pools},
                             {"lines", lines_json(process.lines)},
                             {"phases", phase_totals_json(process)}});
    }
    json class_words = json::array();
    for (const PageWord& one : data.class_words)
        class_words.push_back({{"word", one.word}, {"meaning", one.meaning}});
    json header = {
        {"format", "fragtrace-page"},
        {"version", kPageFormatVersion},
        {"title", data.title},
        {"processes", processes},
        {"heat",
         {{"columns", data.heat.columns},
          {"column_ns", data.heat.column_ns},
          {"full_bytes", data.heat.full_bytes}}},
        {"comparison", data.comparison ? comparison_json(*data.comparison) : json(nullptr)},
        {"class_words", class_words},
        {"sources", sources},
        {"devices", json::array()}};
    add_job(data, header);
    stacks.write(header);
    return header;
}

json device_header(const PageDevice& device, const AddressAxis& axis) {
    json ranges = json::array();
    for (const AxisRange& range : axis.ranges()) {
        // Addresses may exceed 2^53, so they are written as text.
        ranges.push_back(
            {fmt::format("{:#x}", range.address), range.size_bytes, range.offset_bytes});
    }
    json markers = json::array();
    for (const PageMarker& marker : device.markers) {
        markers.push_back({{"time_ns", marker.time_ns},
                           {"kind", marker_name(marker.kind)},
                           {"text", marker.text}});
    }
    json cards = json::array();
    for (const PageCard& card : device.cards)
        cards.push_back(card_json(card));
    json whatif = json::array();
    for (const PageWhatIf& row : device.whatif)
        whatif.push_back(whatif_json(row));
    json totals = json::array();
    for (const PageTotal& total : device.totals) {
        totals.push_back(
            {{"label", total.label}, {"value", known_json(total.value)}, {"bytes", total.bytes}});
    }
    return {{"process", device.process},
            {"name", device.name},
            {"index", device.index},
            {"virtual", device.virtual_gpu},
            {"capacity", known_json(device.capacity_bytes)},
            {"total", known_json(device.total_bytes)},
            {"limit", known_json(device.limit_bytes)},
            {"streams", device.streams},
            {"categories", device.categories},
            {"axis", ranges},
            {"axis_bytes", axis.size_bytes()},
            {"markers", markers},
            {"phase_lanes", device.phase_lanes},
            {"cards", cards},
            {"whatif", whatif},
            {"no_whatif", device.no_whatif},
            {"whatif_remarks", device.whatif_remarks},
            {"whatif_classes", lines_json(device.whatif_classes)},
            {"totals", totals},
            {"advice", advice_json(device)},
            {"advice_heading", device.advice_heading},
            {"growth", growth_json(device)},
            {"near_miss", lines_json(device.near_miss)},
            {"holes", holes_json(device)},
            {"lines", lines_json(device.lines)}};
}

json with_escapes_everywhere(json value) {
    if (value.is_string()) {
        return with_escapes(value.get_ref<const std::string&>());
    }
    if (value.is_structured()) {
        for (json& part : value) {
            part = with_escapes_everywhere(std::move(part));
        }
    }
    return value;
}

std::string script_safe(const json& value) {
    const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    std::string safe;
    safe.reserve(text.size());
    for (const char c : text) {
        if (c == '<') {
            safe += "\\u003c";
        } else {
            safe += c;
        }
    }
    return safe;
}

std::string html_escaped(const std::string& text) {
    std::string safe;
    for (const char c : text) {
        switch (c) {
            case '&':
                safe += "&amp;";
                break;
            case '<':
                safe += "&lt;";
                break;
            case '>':
                safe += "&gt;";
                break;
            case '"':
                safe += "&quot;";
                break;
            case '\'':
                safe += "&#39;";
                break;
            default:
                safe += c;
        }
    }
    return safe;
}

}  // namespace fragtrace::analyzer
