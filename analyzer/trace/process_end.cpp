#include "analyzer/trace/process_end.h"

#include <charconv>
#include <csignal>
#include <fmt/format.h>
#include <iterator>

namespace fragtrace::analyzer {
namespace {

constexpr const char* kCodeFact = "end.code";
constexpr int kMostCode = 255;
constexpr int kMostSignal = 64;

template <typename Number>
std::optional<Number> number_of(const std::map<std::string, std::string>& facts,
                                const char* key,
                                Number least,
                                Number most) {
    const auto fact = facts.find(key);
    if (fact == facts.end()) {
        return std::nullopt;
    }
    const char* const end = fact->second.data() + fact->second.size();
    Number number = 0;
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

ProcessEnd process_end(const Timeline& trace) {
    const ProcessEnd end = process_end(trace.ending, trace.facts);
    const bool damaged = trace.damage.bytes_unreadable != 0 || trace.damage.chunks_unreadable != 0;
    return damaged ? end_despite_damage(end, killed_between(trace.facts, 0)) : end;
}

KilledBetween killed_between(const std::map<std::string, std::string>& facts,
                             std::uint64_t start_monotonic_ns) {
    const auto since_start = [&](const char* key) {
        auto time_ns = number_of<std::uint64_t>(facts, key, start_monotonic_ns, kMostTime_ns);
        return time_ns ? std::optional(*time_ns - start_monotonic_ns) : std::nullopt;
    };
    KilledBetween made{.alive_ns = since_start(kAliveFact),
                       .seen_ns = since_start(facts.contains(kNextProgramFact) ? kNextProgramFact
                                                                               : kSignalSeenFact)};
    if (made.seen_ns && made.alive_ns && *made.seen_ns < *made.alive_ns) {
        made.seen_ns = std::nullopt;  // the parent has another clock, or the trace is wrong
    }
    return made;
}

ProcessEnd end_despite_damage(const ProcessEnd& end, const KilledBetween& killed) {
    const bool lost = end.ending == Ending::kKilled && !end.signal && !killed.alive_ns;
    return lost ? ProcessEnd{.ending = Ending::kNotRecorded} : end;
}

std::string signal_name(int signal) {
    // The C library names signals only since glibc 2.32.
    static constexpr const char* kNames[] = {
        nullptr,  "HUP",  "INT",    "QUIT", "ILL",   "TRAP", "ABRT", "BUS",
        "FPE",    "KILL", "USR1",   "SEGV", "USR2",  "PIPE", "ALRM", "TERM",
        "STKFLT", "CHLD", "CONT",   "STOP", "TSTP",  "TTIN", "TTOU", "URG",
        "XCPU",   "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR",  "SYS"};
    static_assert(std::size(kNames) == SIGSYS + 1);
    return signal > 0 && signal <= SIGSYS ? fmt::format("SIG{}", kNames[signal])
                                          : fmt::format("signal {}", signal);
}

}  // namespace fragtrace::analyzer
