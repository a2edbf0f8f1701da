#include "analyzer/trace/note_signal.h"

#include "analyzer/support/input_file.h"
#include "analyzer/trace/chunk_writer.h"
#include "analyzer/trace/process_end.h"
#include "analyzer/trace/trace_outline.h"

#include <unistd.h>

namespace fragtrace::analyzer {

void note_signal(const std::string& trace_path,
                 std::uint32_t pid,
                 int signal,
                 std::optional<std::uint64_t> seen_monotonic_ns) {
    const Result<TraceOutline> outline = read_outline(trace_path);
    // The caller saw the end of a process whose host's name may have changed since.
    const bool has_mark = outline.ok() && outline->end.ending != Ending::kKilled &&
                          outline->end.ending != Ending::kNotRecorded;
    if (!outline.ok() || outline->pid != pid || has_mark || outline->end.signal) {
        return;
    }
    const Result<InputFile> trace = InputFile::open(trace_path);
    if (!trace.ok() || trace->owner() != geteuid()) {
        return;
    }
    std::string chunk((8 - trace->size() % 8) % 8, '\0');
    std::map<std::string, std::string> facts = {{kSignalFact, std::to_string(signal)}};
    if (seen_monotonic_ns) {
        facts[kSignalSeenFact] = std::to_string(*seen_monotonic_ns);
    }
    append_facts(&chunk, facts);
    const int descriptor = trace->open_to_append(trace_path);
    if (descriptor >= 0) {
        // Readers skip the half chunk that an incomplete write leaves.
        [[maybe_unused]] const ssize_t written = write(descriptor, chunk.data(), chunk.size());
        close(descriptor);
    }
}

}  // namespace fragtrace::analyzer
