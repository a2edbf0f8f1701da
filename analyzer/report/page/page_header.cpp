#include "analyzer/report/page/page_header.h"

#include "analyzer/analysis/metrics/known_figures.h"
#include "analyzer/report/page/page_compare_json.h"
#include "analyzer/report/page/page_report_json.h"
#include "analyzer/support/terminal.h"

#include <fmt/format.h>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

using nlohmann::json;

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

// Two columns, because there can be many thousand stacks.
json stack_categories_json(const PageDevice& device) {
    json stacks = json::array();
    json categories = json::array();
    for (const PageStackCategory& of : device.stack_categories) {
        stacks.push_back(of.stack);
        categories.push_back(of.category);
    }
    return {{"stack", stacks}, {"category", categories}};
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

// All strings with control and direction characters as escapes.
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

class StringTable {
  public:
    std::size_t id(const std::string& text) {
        const auto [found, added] = ids_.try_emplace(text, texts_.size());
        if (added) texts_.push_back(text);
        return found->second;
    }

    json take() { return std::move(texts_); }

  private:
    std::unordered_map<std::string, std::size_t> ids_;
    std::vector<std::string> texts_;
};

}  // namespace

json page_header(const PageData& data) {
    StringTable strings;
    json functions = json::array();
    json files = json::array();
    json lines = json::array();
    json python = json::array();
    json labels = json::array();
    json libraries = json::array();
    for (const PageFrame& frame : data.frames) {
        functions.push_back(strings.id(frame.function));
        files.push_back(strings.id(frame.file));
        lines.push_back(frame.line);
        python.push_back(frame.python ? 1 : 0);
        labels.push_back(strings.id(frame.label));
        libraries.push_back(strings.id(frame.library));
    }
    json parents = json::array();
    json frames = json::array();
    json telling = json::array();
    for (const PageStackNode& node : data.stacks) {
        parents.push_back(node.parent);
        frames.push_back(node.frame);
        telling.push_back(node.telling);
    }
    json sources = json::array();
    for (const PageSource& source : data.sources) {
        sources.push_back({{"file", strings.id(source.file)},
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
    json ranks = json::array();
    for (const PageRank& row : data.ranks)
        ranks.push_back(rank_json(row));
    json job = json::array();
    for (const PageJobRow& row : data.job)
        job.push_back(job_row_json(row));
    json unreadable = json::array();
    for (const PageUnreadable& trace : data.unreadable)
        unreadable.push_back({{"file", trace.file}, {"reason", trace.reason}});
    json class_words = json::array();
    for (const PageWord& one : data.class_words)
        class_words.push_back({{"word", one.word}, {"meaning", one.meaning}});
    return {{"format", "fragtrace-page"},
            {"version", kPageFormatVersion},
            {"title", data.title},
            {"processes", processes},
            {"ranks", ranks},
            {"job", job},
            {"heat",
             {{"columns", data.heat.columns},
              {"column_ns", data.heat.column_ns},
              {"full_bytes", data.heat.full_bytes}}},
            {"unreadable", unreadable},
            {"comparison", data.comparison ? comparison_json(*data.comparison) : json(nullptr)},
            {"class_words", class_words},
            {"strings", strings.take()},
            {"frames",
             {{"function", functions},
              {"file", files},
              {"line", lines},
              {"python", python},
              {"label", labels},
              {"library", libraries}}},
            {"stacks", {{"parent", parents}, {"frame", frames}, {"telling", telling}}},
            {"sources", sources},
            {"devices", json::array()}};
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
            {"stack_categories", stack_categories_json(device)},
            {"axis", ranges},
            {"axis_bytes", axis.size_bytes()},
            {"markers", markers},
            {"phase_lanes", device.phase_lanes},
            {"phases_merged", device.phases_merged},
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

std::string script_safe(json value) {
    const std::string text = with_escapes_everywhere(std::move(value))
                                 .dump(-1, ' ', true, json::error_handler_t::replace);
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
