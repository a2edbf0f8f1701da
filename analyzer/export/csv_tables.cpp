#include "analyzer/export/csv_tables.h"

#include "analyzer/support/terminal.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kTables = {
    CsvTable{"run",
             "source",
             "",
             "schema=^schema path process command_line virtual ended ending_kind=ending/kind "
             "ending_code=ending/code ending_signal=ending/signal start_unix_ns events events_read "
             "events_lost "
             "events_unfinished unreadable_bytes=bytes_unreadable "
             "checkpoints=^recording/checkpoints "
             "events_after_gaps=^recording/events_after_gaps "
             "events_with_cut_stacks=^recording/events_with_cut_stacks "
             "stacks_without_order=^recording/stacks_without_order "
             "first_device_config=^config first_device_pool=^pool"},
    CsvTable{
        "devices",
        "devices",
        "",
        "device=index name total_bytes others_bytes capacity_bytes limit_bytes "
        "peak_requested_bytes=peak/requested peak_allocated_bytes=peak/allocated "
        "peak_active_bytes=peak/active peak_reserved_bytes=peak/reserved "
        "waste_rounding_bytes=waste_at_peak/rounding waste_slack_bytes=waste_at_peak/slack "
        "waste_pending_bytes=waste_at_peak/pending "
        "waste_releasable_bytes=waste_at_peak/releasable "
        "waste_inactive_split_bytes=waste_at_peak/inactive_split "
        "past_pool_peak_bytes=past_pool/peak "
        "past_pool_peak_with_reserved_bytes=past_pool/peak_with_reserved "
        "segments_allocated segments_freed retries ooms violations violations_after_gaps "
        "state_only context_bytes=context/bytes context_measured=context/measured "
        "fidelity_placements=fidelity/placements "
        "fidelity_placements_equal=fidelity/placements_equal "
        "fidelity_segments=fidelity/segments fidelity_segments_equal=fidelity/segments_equal "
        "fidelity_reason=fidelity/reason reported_oom=conclusion/event culprit=conclusion/culprit "
        "remedy=conclusion/remedy "
        "remedy_row=conclusion/row whatif_left_out"},
    CsvTable{"whatif",
             "whatif",
             "",
             "device table rank name config pool remedy capacity_bytes ooms retries "
             "peak_reserved_bytes least_peak_reserved_bytes saves_bytes peak_allocated_bytes "
             "class class_text class_reason bound_kind gets_past rest_fits usable usable_reason "
             "recorded valid_until_event segments_allocated segments_freed "
             "waste_rounding_bytes=waste_at_peak/rounding waste_slack_bytes=waste_at_peak/slack "
             "waste_pending_bytes=waste_at_peak/pending "
             "waste_releasable_bytes=waste_at_peak/releasable "
             "waste_inactive_split_bytes=waste_at_peak/inactive_split "
             "empty_cache_calls=empties_cache/calls cost_driver_allocs=cost/driver_allocs "
             "cost_driver_frees=cost/driver_frees cost_retries=cost/retries "
             "cost_synchronisations=cost/synchronisations cost_time_ns=cost/time_ns"},
    CsvTable{"whatif_empty_cache_events",
             "whatif/empties_cache/after_events",
             "",
             "device=^^device name=^^name after_event=."},
    CsvTable{"advice",
             "advice",
             "",
             "device name key effect row saved_bytes can_be_enough ooms retries ooms_left helped "
             "nothing worse "
             "class class_text bound_kind reason"},
    CsvTable{"failures",
             "out_of_memory:ooms retry:retries",
             "outcome",
             "device event time_ns requested_bytes rounded_bytes verdict requester phase "
             "despite_free_memory page_bytes largest_free_bytes largest_usable_bytes free_bytes "
             "device_free_bytes allocated_bytes reserved_bytes released_bytes driver_ns "
             "cheapest_set_kind=cheapest_set/kind cheapest_set_bytes=cheapest_set/bytes_to_free "
             "cheapest_set_segments=cheapest_set/segments cheapest_set_pages=cheapest_set/pages "
             "cheapest_set_blocks=cheapest_set/blocks "
             "cheapest_set_equally_cheap=cheapest_set/equally_cheap_sets "
             "cheapest_set_approximate=cheapest_set/approximate "
             "elsewhere_free_bytes=free_places/elsewhere_free_bytes "
             "elsewhere_largest_free_bytes=free_places/elsewhere_largest_free_bytes "
             "free_places_left_out=free_places/places_left_out"},
    CsvTable{"failure_stacks",
             "out_of_memory:ooms/stack retry:retries/stack",
             "outcome",
             "device=^device event=^event frame=# function file line module kind"},
    CsvTable{"failure_steps",
             "out_of_memory:ooms/steps retry:retries/steps",
             "outcome",
             "device=^device event=^event step=# id frees_bytes page_bytes serves"},
    CsvTable{"failure_also_served_by",
             "out_of_memory:ooms/also_served_by retry:retries/also_served_by",
             "outcome",
             "device=^device event=^event id=."},
    CsvTable{"failure_free_places",
             "own:ooms/free_places/own elsewhere:ooms/free_places/elsewhere "
             "own:retries/free_places/own elsewhere:retries/free_places/elsewhere",
             "place",
             "device=^^device event=^^event stream private_pool size_class free_bytes "
             "largest_free_bytes"},
    CsvTable{"culprits",
             "out_of_memory:ooms/culprits retry:retries/culprits",
             "outcome",
             "device=^device event=^event number=# label held_open_bytes live_bytes blocks phase "
             "phase_over phase_again phases_since iteration iterations_since"},
    CsvTable{"culprit_stacks",
             "out_of_memory:ooms/culprits/stack retry:retries/culprits/stack",
             "outcome",
             "device=^^device event=^^event culprit=^# frame=# function file line module kind"},
    CsvTable{"culprits_by_phase",
             "out_of_memory:ooms/culprits_by_phase retry:retries/culprits_by_phase",
             "outcome",
             "device=^device event=^event phase held_open_bytes live_bytes blocks"},
    CsvTable{"culprits_by_age",
             "out_of_memory:ooms/culprits_by_age retry:retries/culprits_by_age",
             "outcome",
             "device=^device event=^event age held_open_bytes live_bytes blocks"},
    CsvTable{"holders_by_kind",
             "peak:devices/holders/categories out_of_memory:ooms/holders/categories "
             "retry:retries/holders/categories",
             "at",
             "device=^^index|^^device event=^event class=^class category user_category bytes "
             "blocks "
             "earlier_bytes old_bytes"},
    CsvTable{"holders_by_kind_and_line",
             "peak:devices/holders/places out_of_memory:ooms/holders/places "
             "retry:retries/holders/places",
             "at",
             "device=^^index|^^device event=^event class=^class category user_category "
             "label bytes blocks"},
    CsvTable{"holders_sums",
             "peak:devices/holders out_of_memory:ooms/holders retry:retries/holders",
             "at",
             "device=^index|^device event class allocated_bytes lines_left_out=places_left_out "
             "outside_libraries_bytes=outside/libraries_bytes "
             "outside_past_pool_bytes=outside/past_pool_bytes "
             "outside_other_bytes=outside/other_bytes outside_context_bytes=outside/context_bytes "
             "outside_processes_bytes=outside/processes_bytes "
             "outside_not_known_bytes=outside/not_known_bytes"},
    CsvTable{"holders_by_line_at_peak",
             "devices/holders_at_peak",
             "",
             "device=^index label bytes blocks"},
    CsvTable{"differences_from_earlier_steps",
             "peak:devices/holders/difference out_of_memory:ooms/holders/difference "
             "retry:retries/holders/difference",
             "at",
             "device=^^index|^^device event=^event iteration against place_event bytes asked_bytes "
             "asked_then_bytes=asked_bytes_then"},
    CsvTable{"differences_by_line",
             "peak:devices/holders/difference/places out_of_memory:ooms/holders/difference/places "
             "retry:retries/holders/difference/places",
             "at",
             "device=^^^index|^^^device event=^^event category user_category label bytes "
             "blocks"},
    CsvTable{"steps",
             "devices/iterations",
             "",
             "device=^index source phase begins_with count match_rate size_match_rate "
             "warmup_peak_allocated_bytes=peaks/warmup_allocated "
             "warmup_peak_reserved_bytes=peaks/warmup_reserved "
             "steady_peak_allocated_bytes=peaks/steady_allocated "
             "steady_peak_reserved_bytes=peaks/steady_reserved "
             "growth_first_step=growth/first growth_last_step=growth/last "
             "growth_bytes=growth/bytes stacks_left_out"},
    CsvTable{"growth_by_line",
             "devices/iterations/growth/places",
             "",
             "device=^^^index category user_category label bytes blocks last_bytes=bytes_at_last "
             "times_grown "
             "slows"},
    CsvTable{"growth_by_part",
             "devices/iterations/growth/parts",
             "",
             "device=^^^index part first_step=first last_step=last first_bytes=bytes_at_first "
             "last_bytes=bytes_at_last times_grown grows"},
    CsvTable{"growth_forecasts",
             "devices/iterations/growth/forecast",
             "",
             "device=^^^index class bytes_per_iteration grown_bytes recorded_iterations left_bytes "
             "at_iteration matters"},
    CsvTable{"survivors",
             "devices/iterations/survivors",
             "",
             "device=^^index number=# of event phase until_event iteration bytes"},
    CsvTable{"survivors_by_line",
             "devices/iterations/survivors/places",
             "",
             "device=^^^index survivor=^# category user_category label bytes blocks"},
    CsvTable{"oom_forecasts",
             "devices/forecast",
             "",
             "device=^index known why_not class class_text class_reason event iteration "
             "basis_iteration scale requests peak_allocated_bytes peak_reserved_bytes "
             "in_use_fits least_capacity_bytes least_card_bytes shortfall_bytes fitting_part"},
    CsvTable{"near_misses",
             "near_misses",
             "",
             "device headroom_bytes true_headroom_bytes "
             "least_fitting_request_event=least_fitting_request/event "
             "least_fitting_request_bytes=least_fitting_request/bytes looked_at requests steps "
             "step_phase"},
    CsvTable{"largest_fitting_requests", "near_misses/over_time", "", "device=^device event bytes"},
    CsvTable{"other_processes",
             "devices/other_processes",
             "",
             "device=^index event used_bytes free_bytes other_bytes processes largest_pid "
             "largest_bytes largest_program"},
    CsvTable{"holes",
             "devices/holes",
             "",
             "device=^index address bytes largest_request_bytes stream private_pool size_class "
             "whole_segment"},
    CsvTable{"phases",
             "phases",
             "",
             "name kind library count time_ns peak_allocated_bytes peak_reserved_bytes left_bytes "
             "driver_allocs driver_ns retries ooms"},
    CsvTable{"driver_calls", "driver_calls", "", "kind count total_ns max_ns"},
    CsvTable{"memory_outside_devices",
             "pinned:memory/pinned managed:memory/managed",
             "memory",
             "peak_bytes allocations"},
    CsvTable{"memory_outside_devices_by_line",
             "pinned:memory/pinned/holders managed:memory/managed/holders",
             "memory",
             "label bytes"},
    CsvTable{"other_memory",
             "memory",
             "",
             "arrays arrays_of_unknown_size stream_ordered_allocations imports graph_peak_bytes "
             "modules"},
    CsvTable{"recording_gaps",
             "recording/gaps",
             "",
             "from_ns to_ns freed freed_bytes made made_bytes events_left_out"},
    CsvTable{"facts", "facts/*", "", "key=# value=."},
    CsvTable{"unnamed_addresses", "symbols/unnamed_addresses/*", "", "module=# addresses=."},
    CsvTable{"symbol_notes", "symbols/notes", "", "note=."},
    CsvTable{"assumptions", "assumptions", "", "assumption=."},
    CsvTable{"warnings", "warnings", "", "warning=."},
};

// A value on the way from the document to a row. The key of a list's element is its number.
struct Level {
    const Json* value = nullptr;
    Json key;
};

using Levels = std::vector<Level>;

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) {
            return parts;
        }
        text.remove_prefix(end + 1);
    }
}

// Cuts the text before the first separator off, and returns it; empty if there is no separator.
std::string_view cut(std::string_view* text, char separator) {
    const std::size_t end = text->find(separator);
    if (end == std::string_view::npos) {
        return {};
    }
    const std::string_view first = text->substr(0, end);
    text->remove_prefix(end + 1);
    return first;
}

// nullptr: there is no such key.
const Json* member(const Json& object, std::string_view key) {
    const auto found = object.is_object() ? object.find(std::string(key)) : object.end();
    return found == object.end() ? nullptr : &*found;
}

template <typename Visit>
void visit_rows(std::span<const std::string_view> path, Levels* levels, Visit visit) {
    const auto enter = [&](const Json& value, Json key, std::span<const std::string_view> rest) {
        levels->push_back({&value, std::move(key)});
        visit_rows(rest, levels, visit);
        levels->pop_back();
    };
    const Json& value = *levels->back().value;
    if (value.is_array()) {
        // The element takes the place of its list.
        const Level list = levels->back();
        levels->pop_back();
        for (std::size_t i = 0; i < value.size(); ++i) {
            enter(value[i], i, path);
        }
        levels->push_back(list);
    } else if (value.is_null()) {
        return;
    } else if (path.empty()) {
        visit(*levels);
    } else if (path.front() == "*") {
        for (const auto& [key, one] : value.items()) {
            enter(one, key, path.subspan(1));
        }
    } else if (const Json* const found = member(value, path.front())) {
        enter(*found, std::string(path.front()), path.subspan(1));
    }
}

// The value that a column's path names for this row; null if there is none.
Json value_at(std::string_view path, const Levels& levels) {
    const std::size_t out = std::min(path.find_first_not_of('^'), path.size());
    if (out >= levels.size()) {
        return nullptr;
    }
    const Level& level = levels[levels.size() - 1 - out];
    path.remove_prefix(out);
    if (path == "#") {
        return level.key;
    }
    const Json* value = level.value;
    if (path != ".") {
        for (const std::string_view key : split(path, '/')) {
            value = value == nullptr ? nullptr : member(*value, key);
        }
    }
    return value == nullptr ? Json() : *value;
}

std::string quoted(const std::string& text) {
    std::string result = "\"";
    if (!text.empty() && std::string_view("=+-@").find(text.front()) != std::string_view::npos) {
        result += '\'';
    }
    for (const char c : printable(text)) {
        result += c;
        if (c == '"') {
            result += c;
        }
    }
    return result + '"';
}

std::string cell(const Json& value) {
    return value.is_null()     ? ""
           : value.is_string() ? quoted(value.get<std::string>())
                               : value.dump();
}

}  // namespace

std::span<const CsvTable> csv_tables() {
    return kTables;
}

std::string csv_text(const CsvTable& table, const Json& document) {
    const std::string_view kind = table.kind;
    std::string text(kind);
    std::vector<std::vector<std::string_view>> columns;
    for (std::string_view column : split(table.columns, ' ')) {
        const std::string_view name = cut(&column, '=');
        text += text.empty() ? "" : ",";
        text += name.empty() ? column : name;
        columns.push_back(split(column, '|'));
    }
    text += '\n';
    for (std::string_view rows : split(table.rows, ' ')) {
        const std::string_view word = cut(&rows, ':');
        const std::vector<std::string_view> path = split(rows, '/');
        Levels levels = {{&document, nullptr}};
        visit_rows(std::span(path), &levels, [&](const Levels& row) {
            std::string line = kind.empty() ? "" : quoted(std::string(word)) + ",";
            for (const std::vector<std::string_view>& places : columns) {
                Json value;
                for (std::size_t i = 0; i < places.size() && value.is_null(); ++i) {
                    value = value_at(places[i], row);
                }
                line += cell(value) + ",";
            }
            line.back() = '\n';
            text += line;
        });
    }
    return text;
}

}  // namespace fragtrace::analyzer
