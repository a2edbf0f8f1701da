#include "analyzer/imports/import_timeline.h"

#include "analyzer/model/unknown_segments.h"
#include "analyzer/support/units.h"

#include <fmt/format.h>
#include <utility>

namespace fragtrace::analyzer {

ImportTimeline::ImportTimeline(std::string path, const std::string& source)
    : path_(std::move(path)), builder_(0) {
    builder_.add_fact("source", source);
    builder_.add_fact("import", source);
}

void ImportTimeline::add(EventRecord event) {
    event.sequence = ++sequence_;
    builder_.add_event(event);
}

std::uint64_t ImportTimeline::text_number(const std::string& text) {
    const auto [found, is_new] = texts_.try_emplace(text, texts_.size() + 1);
    if (is_new) {
        builder_.add_fact(fmt::format("text.{}", found->second), text);
    }
    return found->second;
}

void ImportTimeline::warn_left_out(std::uint64_t count,
                                   std::string_view what,
                                   std::string_view which) {
    if (count != 0) {
        warn(fmt::format("{} {}{} {} {} left out",
                         format_count(count),
                         what,
                         count == 1 ? "" : "s",
                         which,
                         count == 1 ? "is" : "are"));
    }
}

void ImportTimeline::lacks(const std::string& sentence) {
    builder_.add_fact(fmt::format("import.lacks.{:02}", ++sentences_), sentence);
}

void ImportTimeline::lacks_reserved(const std::string& sentence) {
    builder_.add_fact(kReservedFact, "unknown");
    lacks(sentence);
}

void ImportTimeline::lacks_failures(const std::string& sentence) {
    builder_.add_fact(kFailuresFact, "unknown");
    lacks(sentence);
}

Timeline ImportTimeline::finish(std::uint64_t start_unix_ns) {
    Timeline timeline = builder_.finish();
    timeline.path = std::move(path_);
    timeline.start_unix_ns = start_unix_ns;
    timeline.ending = Ending::kContinued;
    std::vector<std::string>& notes = timeline.damage.notes;
    notes.insert(notes.begin(), warnings_.begin(), warnings_.end());
    return timeline;
}

}  // namespace fragtrace::analyzer
