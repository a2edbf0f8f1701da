#include "analyzer/trace/process_end.h"

#include "analyzer/support/input_file.h"
#include "analyzer/trace/chunk_writer.h"
#include "analyzer/trace/trace_outline.h"

#include <charconv>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

constexpr const char* kCodeFact = "end.code";
constexpr const char* kSignalFact = "end.signal";
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

void note_signal(const std::string& trace_path, std::uint32_t pid, int signal) {
    const Result<TraceOutline> outline = read_outline(trace_path);
    if (!outline.ok() || outline->pid != pid || outline->end.ending != Ending::kKilled ||
        outline->end.signal) {
        return;
    }
    const Result<InputFile> trace = InputFile::open(trace_path);
    if (!trace.ok() || trace->owner() != geteuid()) {
        return;
    }
    std::string chunk((8 - trace->size() % 8) % 8, '\0');
    append_facts(&chunk, {{kSignalFact, std::to_string(signal)}});
    const int descriptor = trace->open_to_append(trace_path);
    if (descriptor >= 0) {
        // A write that is cut short leaves half a chunk, which readers skip.
        [[maybe_unused]] const ssize_t written = write(descriptor, chunk.data(), chunk.size());
        close(descriptor);
    }
}

std::string signal_name(int signal) {
    const char* const name = sigabbrev_np(signal);
    return name == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", name);
}

}  // namespace fragtrace::analyzer
