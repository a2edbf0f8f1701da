#include "analyzer/trace/process_end.h"

#include <charconv>
#include <csignal>
#include <cstring>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr const char* kCodeFact = "end.code";
constexpr int kMostCode = 255;
constexpr int kMostSignal = 64;

std::optional<int> number_of(const std::map<std::string, std::string>& facts,
                             const char* key,
                             int least,
                             int most) {
    const auto fact = facts.find(key);
    if (fact == facts.end()) {
        return std::nullopt;
    }
    const char* const end = fact->second.data() + fact->second.size();
    int number = -1;
    const auto [at, error] = std::from_chars(fact->second.data(), end, number);
    return error == std::errc() && at == end && number >= least && number <= most
               ? std::optional(number)
               : std::nullopt;
}

}  // namespace

ProcessEnd process_end(Ending ending, const std::map<std::string, std::string>& facts) {
    ProcessEnd end{.ending = ending};
    if (ending == Ending::kNormal || ending == Ending::kQuickExit) {
        end.code = number_of(facts, kCodeFact, 0, kMostCode);
    } else if (ending == Ending::kKilled) {
        end.signal = number_of(facts, kSignalFact, 1, kMostSignal);
    }
    return end;
}

std::string signal_name(int signal) {
    const char* const name = sigabbrev_np(signal);
    return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

}  // namespace fragtrace::analyzer
