#include "analyzer/report/text/job_rows.h"

#include "analyzer/report/text/job_names.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostFiles = 64;  // processes that only their file names
constexpr int kEveryGeneration = -1;

bool continues_word(char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
           (letter >= 'A' && letter <= 'Z') || letter == '_';
}

// Reads a number at `at` and moves `at` behind it.
std::optional<int> number_at(const std::string& text, std::size_t* at) {
    int number = 0;
    const char* const begin = text.data() + std::min(*at, text.size());
    const auto [end, failed] = std::from_chars(begin, text.data() + text.size(), number);
    if (failed != std::errc() || number < 0) {
        return std::nullopt;
    }
    *at += static_cast<std::size_t>(end - begin);
    return number;
}

bool skip(const std::string& text, std::string_view word, std::size_t* at) {
    if (text.compare(std::min(*at, text.size()), word.size(), word) != 0) {
        return false;
    }
    *at += word.size();
    return true;
}

// The generation that the text names at `at`, behind the name of a process.
std::optional<int> generation_at(const std::string& text, std::size_t* at) {
    std::size_t end = *at;
    if (!skip(text, " of generation ", &end)) {
        return std::nullopt;
    }
    const std::optional<int> generation = number_at(text, &end);
    *at = generation ? end : *at;
    return generation;
}

// Skips the end of a list that was cut: " and 12 more", "12 more processes".
bool skip_more(const std::string& text, std::size_t* at) {
    std::size_t end = *at;
    skip(text, " and ", &end);
    const std::size_t digits = end;
    while (end < text.size() && (text[end] == ',' || (text[end] >= '0' && text[end] <= '9'))) {
        ++end;
    }
    if (end == digits || !skip(text, " more", &end)) {
        return false;
    }
    if (!skip(text, " processes", &end)) {
        skip(text, " process", &end);
    }
    *at = end;
    return true;
}

// Reads "0-2, 4" at `at` and moves `at` behind it.
std::vector<std::pair<int, int>> ranges_at(const std::string& text, std::size_t* at) {
    std::vector<std::pair<int, int>> ranges;
    std::size_t next = *at;
    do {
        const std::optional<int> first = number_at(text, &next);
        const std::optional<int> last =
            first && skip(text, "-", &next) ? number_at(text, &next) : first;
        if (!last) {
            break;
        }
        ranges.emplace_back(*first, *last);
        *at = next;
    } while (skip(text, ", ", &next));
    return ranges;
}

}  // namespace

JobRows view_row(const char* label, const std::string& text, JobRowKind kind) {
    return text.empty() ? JobRows() : JobRows{{kind, label, text}};
}

void append(JobRows rows, JobRows* to) {
    to->insert(
        to->end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
}

struct ProcessNames::Found {
    std::size_t end = 0;                 // of the name in the text
    std::optional<int> generation = {};  // as the text says behind the name
    std::vector<std::size_t> processes = {};
};

ProcessNames::ProcessNames(const Job& job) : job_(job), generations_(has_generations(job)) {
    for (std::size_t i = 0; i < job.with_outside(); ++i) {
        const ProcessSummary& process = job.at(i);
        if (process.place.rank >= 0) {
            by_rank_[process.place.rank].push_back(i);
        } else if (process.pid != 0) {
            by_pid_[process.pid].push_back(i);
        } else if (by_file_.size() < kMostFiles) {
            by_file_.push_back(i);
        }
    }
}

bool ProcessNames::is_of(const ProcessSummary& process, int generation) const {
    return !generations_ || generation == kEveryGeneration || generation == generation_of(process);
}

// The generation of a list of names, which the text says behind the last one.
std::optional<int> ProcessNames::generation_of_list(const std::string& text, std::size_t at) const {
    for (;;) {
        skip_more(text, &at);
        if (const std::optional<int> generation = generation_at(text, &at)) {
            return generation;
        }
        if (!skip(text, ", ", &at)) {
            return std::nullopt;
        }
        const Found next = name_at(text, at, kEveryGeneration);
        if (next.generation) {
            return next.generation;
        }
        if (next.processes.empty() && !skip_more(text, &at)) {
            return std::nullopt;
        }
        at = std::max(at, next.end);
    }
}

// The candidates with the longest name at this place.
ProcessNames::Found ProcessNames::one_of(const std::vector<std::size_t>& candidates,
                                         const std::string& text,
                                         std::size_t at,
                                         int generation) const {
    Found found;
    for (const std::size_t i : candidates) {
        const ProcessSummary& process = job_.at(i);
        const bool outside = i >= job_.processes.size();  // its name is no name of the job
        std::size_t end = at;
        if (!skip(text, name_of(process), &end) || end == at ||
            (end < text.size() && continues_word(text[end]) && continues_word(text[end - 1]))) {
            continue;
        }
        const std::optional<int> named = generation_at(text, &end);
        if (!is_of(process, named.value_or(generation))) {
            continue;
        }
        if (end > found.end) {
            found = {.end = end, .generation = named};
        }
        if (end == found.end && !outside) {
            found.processes.push_back(i);
        }
    }
    return found;
}

ProcessNames::Found ProcessNames::name_at(const std::string& text,
                                          std::size_t at,
                                          int generation) const {
    std::size_t end = at;
    if (skip(text, "pid ", &end)) {
        const std::optional<int> pid = number_at(text, &end);
        const auto of_pid = by_pid_.find(static_cast<std::uint32_t>(pid.value_or(0)));
        return pid && of_pid != by_pid_.end() ? one_of(of_pid->second, text, at, generation)
                                              : Found();
    }
    if (skip(text, "rank ", &end)) {
        const std::optional<int> rank = number_at(text, &end);
        const auto of_rank = rank ? by_rank_.find(*rank) : by_rank_.end();
        return of_rank != by_rank_.end() ? one_of(of_rank->second, text, at, generation) : Found();
    }
    return skip(text, "ranks ", &end) ? several_at(text, end, generation)
                                      : one_of(by_file_, text, at, generation);
}

// The ranks in the ranges at this place. Those that share their rank are not among them.
ProcessNames::Found ProcessNames::several_at(const std::string& text,
                                             std::size_t at,
                                             int generation) const {
    const std::vector<std::pair<int, int>> ranges = ranges_at(text, &at);
    Found found{.end = at};
    found.generation = generation_at(text, &found.end);
    const int named = found.generation.value_or(generation);
    for (const auto& [first, last] : ranges) {
        for (auto of_rank = by_rank_.lower_bound(first);
             of_rank != by_rank_.end() && of_rank->first <= last;
             ++of_rank) {
            for (const std::size_t i : of_rank->second) {
                const ProcessSummary& process = job_.at(i);
                if (process.told_apart_by.empty() && is_of(process, named)) {
                    found.processes.push_back(i);
                }
            }
        }
    }
    return found;
}

std::vector<NamedPart> ProcessNames::parts_of(const JobRow& row) const {
    const std::string& text = row.text;
    if (row.kind == JobRowKind::kOfReport) {
        return {{text}};
    }
    // A heading of a job with several generations begins with its generation.
    int generation = kEveryGeneration;
    std::size_t at = 0;
    if (row.kind == JobRowKind::kFailure && skip(text, "generation ", &at)) {
        generation = number_at(text, &at).value_or(kEveryGeneration);
    }
    std::vector<NamedPart> parts;
    std::size_t from = 0;
    for (at = 0; at < text.size(); ++at) {
        if (at > 0 && continues_word(text[at - 1])) {
            continue;
        }
        Found found = name_at(text, at, generation);
        if (generations_ && !found.processes.empty() && !found.generation) {
            found = name_at(text, at, generation_of_list(text, found.end).value_or(generation));
        }
        if (found.processes.empty()) {
            continue;
        }
        if (at > from) {
            parts.push_back({text.substr(from, at - from)});
        }
        parts.push_back({text.substr(at, found.end - at), std::move(found.processes)});
        from = found.end;
        at = from - 1;
    }
    if (from < text.size()) {
        parts.push_back({text.substr(from)});
    }
    return parts;
}

}  // namespace fragtrace::analyzer
