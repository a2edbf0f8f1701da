#include "analyzer/trace/job_place.h"

#include "analyzer/trace/traced_process.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostAncestors = 64;

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
    Number number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = failed == std::errc() && end == text.data() + text.size();
    return whole && number >= 0 ? std::optional(number) : std::nullopt;
}

// Splits "A SEPARATOR B". Both are empty without the separator.
std::pair<std::string_view, std::string_view> split(std::string_view text,
                                                    std::string_view separator) {
    const std::size_t at = text.find(separator);
    if (at == std::string_view::npos) {
        return {};
    }
    return {text.substr(0, at), text.substr(at + separator.size())};
}

std::vector<ProcessId> ancestors_of(std::string_view list) {
    std::vector<ProcessId> ancestors;
    while (!list.empty() && ancestors.size() < kMostAncestors) {
        const std::string_view entry = list.substr(0, list.find(' '));
        list.remove_prefix(std::min(entry.size() + 1, list.size()));
        const auto [pid, start_ticks] = split(entry, ":");
        const auto number = number_of<std::uint32_t>(pid);
        const auto ticks = number_of<std::uint64_t>(start_ticks);
        if (!number || !ticks) {
            return {};
        }
        ancestors.push_back({*number, *ticks});
    }
    return ancestors;
}

// The fact "RANK of SIZE".
void use_communicator(std::string_view text, JobPlace* place) {
    const auto [first, second] = split(text, " of ");
    const auto rank = number_of<int>(first);
    const auto size = number_of<int>(second);
    if (!rank || !size || *rank >= *size || *size < place->world_size) {
        return;
    }
    place->world_size = *size;
    if (place->rank != *rank) {
        place->rank = *rank;
        place->rank_source = kRankFromNccl;
        place->local_rank = -1;
    }
    place->inherited_rank = -1;
}

}  // namespace

JobPlace job_place(const TraceHeader& header, const std::map<std::string, std::string>& facts) {
    const auto fact = [&facts](const char* key) {
        const auto found = facts.find(key);
        return found == facts.end() ? std::string() : found->second;
    };
    const auto number = [&fact](const char* key) { return number_of<int>(fact(key)).value_or(-1); };
    JobPlace place;
    place.rank = header.rank < 0 ? -1 : header.rank;
    place.local_rank = header.local_rank < 0 ? -1 : header.local_rank;
    place.world_size = number("world_size");
    place.generation = number("generation");
    place.rank_source = fact("rank.source");
    place.inherited_rank = place.rank < 0 ? number("rank.inherited") : -1;
    place.host.assign(header.host, strnlen(header.host, sizeof header.host));
    if (place.host.empty()) {
        place.host = fact("host");
    }
    place.boot_id = fact(kBootFact);
    place.pid_namespace = fact(kPidNamespaceFact);
    place.job_id = fact("job.id");
    place.process = {header.pid, header.process_start_ticks};
    place.ancestors = ancestors_of(fact("ancestors"));
    place.session = {header.session[0], header.session[1]};
    place.part = header.part;
    place.copy_reason = fact("copy.reason");
    use_communicator(fact("nccl.rank"), &place);
    return place;
}

}  // namespace fragtrace::analyzer
