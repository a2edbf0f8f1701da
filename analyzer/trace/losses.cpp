#include "analyzer/trace/losses.h"

#include <charconv>
#include <string_view>

namespace fragtrace::analyzer {

std::uint64_t parse_count(const std::string& text) {
    std::uint64_t count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
}

Losses losses_of(const std::map<std::string, std::string>& facts) {
    constexpr std::string_view kPrefix = "lost.";
    Losses losses;
    for (auto fact = facts.lower_bound(std::string(kPrefix));
         fact != facts.end() && fact->first.starts_with(kPrefix);
         ++fact) {
        const std::string_view name = std::string_view(fact->first).substr(kPrefix.size());
        const std::uint64_t count = parse_count(fact->second);
        if (name == "unfinished" || name == "unfinished_in_ring") {
            losses.events_unfinished += count;
        } else if (name != "facts") {
            losses.events_lost += count;
        }
    }
    return losses;
}

void merge_losses(const std::map<std::string, std::string>& ring,
                  std::map<std::string, std::string>* facts) {
    for (const auto& [key, value] : ring) {
        std::string& fact = (*facts)[key];
        if (parse_count(value) > parse_count(fact)) {
            fact = value;
        }
    }
}

}  // namespace fragtrace::analyzer
