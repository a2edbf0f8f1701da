#include "analyzer/trace/live_trace.h"

#include <fragtrace/codec.h>

#include "analyzer/support/input_file.h"
#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/event_stream.h"
#include "analyzer/trace/losses.h"
#include "analyzer/trace/ring_reader.h"
#include "analyzer/trace/traced_process.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".ftrace";

// Returns the path of the trace that a process has open; empty if there is none or /proc is not
// accessible.
std::string open_trace_of(std::uint32_t pid) {
    std::error_code error;
    for (fs::directory_iterator at(fmt::format("/proc/{}/fd", pid), error), end; at != end;
         at.increment(error)) {
        std::string target = fs::read_symlink(at->path(), error).string();
        // The suffix is enough: a part that is just being started has a temporary name.
        if (!error && target.ends_with(kSuffix)) {
            return target;
        }
    }
    return {};
}

// Calls `use` with the key and the value of each line.
template <typename Use>
void for_each_fact(std::string_view text, const Use& use) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        const std::size_t tab = std::min(line.find('\t'), line.size());
        use(line.substr(0, tab), line.substr(std::min(tab + 1, line.size())));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

// The lines about devices. The others, such as texts of labels, can be many.
std::string device_facts(std::string_view text) {
    std::string lines;
    for_each_fact(text, [&lines](std::string_view key, std::string_view value) {
        if (key.starts_with("device.")) {
            lines.append(key).append("\t").append(value).append("\n");
        }
    });
    return lines;
}

// Lost events according to the ring's counters and facts. Events that are not written yet are not
// lost.
std::uint64_t lost_events(const RingContents& ring) {
    std::map<std::string, std::string> facts;
    for_each_fact(ring.facts, [&facts](std::string_view key, std::string_view value) {
        if (key.starts_with("lost.")) {
            facts[std::string(key)] = value;
        }
    });
    merge_losses(ring.losses, &facts);
    return losses_of(facts).events_lost;
}

}  // namespace

std::vector<RecordedProcess> recorded_processes() {
    std::vector<RecordedProcess> found;
    std::error_code error;
    for (fs::directory_iterator at("/proc", error), end; at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        std::uint32_t pid = 0;
        const auto [rest, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
        struct stat status = {};
        if (failure != std::errc{} || rest != name.data() + name.size() ||
            stat(at->path().c_str(), &status) != 0 || status.st_uid != geteuid()) {
            continue;
        }
        std::string trace = open_trace_of(pid);
        if (!trace.empty()) {
            found.push_back({pid, std::move(trace)});
        }
    }
    std::sort(
        found.begin(), found.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; });
    return found;
}

Result<LiveTrace> LiveTrace::open(std::uint32_t pid) {
    LiveTrace live;
    live.pid_ = pid;
    struct stat status = {};
    if (stat(fmt::format("/proc/{}", pid).c_str(), &status) != 0) {
        return Error{ErrorCode::kInput, fmt::format("there is no process {}", pid)};
    }
    const std::string path = open_trace_of(pid);
    if (path.empty() || !live.open_file(path)) {
        return Error{ErrorCode::kInput,
                     fmt::format("process {} has no readable trace: it belongs to another user, is "
                                 "not recorded, or has made no CUDA call yet",
                                 pid)};
    }
    return live;
}

bool LiveTrace::open_file(const std::string& path) {
    const Result<InputFile> file = InputFile::open(path);
    TraceHeader header = {};
    if (!file.ok() || file->read_at(0, &header, sizeof header) != sizeof header ||
        std::memcmp(header.magic, kTraceMagic, sizeof kTraceMagic) != 0 ||
        header_crc(header) != header.crc || header.version != kFormatVersion ||
        header.header_bytes < sizeof header) {
        return false;
    }
    header_ = header;
    offset_ = header.header_bytes;
    last_sequence_ = 0;
    any_event_ = false;
    path_ = path;
    return true;
}

bool LiveTrace::update(RecordedState* state, const std::function<void(const Event&)>& seen) {
    const std::string path = open_trace_of(pid_);
    // A process of another PID namespace, which has the trace open, runs.
    const Result<InputFile> file = InputFile::open(path_);
    const bool runs = !path.empty() &&
                      (!file.ok() || process_state(path_, *file, header_) != ProcessState::kGone);
    if (runs && path != path_ && open_file(path)) {
        *state = RecordedState();
    }
    // Read the ring before the file: events that leave the ring in the meantime are then in the
    // file.
    const RingContents ring = runs ? read_ring(path, header_, true) : RingContents{};
    read_file(state, seen);
    if (ring.state == RingContents::State::kRead) {
        for (const EventRecord& event : ring.events) {
            // Stop at an unfinished event: it will be in the file, before all later events.
            if (event.sequence > last_sequence_ + 1) {
                break;
            }
            add(event, state, seen);
        }
        events_lost_ = lost_events(ring);
        facts_ = device_facts(ring.facts);
    }
    return runs;
}

std::string LiveTrace::device_fact(DeviceId device, std::string_view key) const {
    const std::string wanted = fmt::format("device.{}.{}", device, key);
    std::string found;
    for_each_fact(facts_, [&](std::string_view fact, std::string_view value) {
        if (fact == wanted) {
            found = value;
        }
    });
    return found;
}

void LiveTrace::read_file(RecordedState* state, const std::function<void(const Event&)>& seen) {
    const Result<InputFile> file = InputFile::open(path_);
    if (!file.ok()) {
        return;
    }
    ChunkScanner scanner(*file, offset_, true);
    for (Chunk chunk; scanner.next(&chunk);) {
        if (chunk.header.type == ChunkType::kIndex) {
            continue;  // the next chunk will overwrite the index
        }
        offset_ = chunk.offset + (sizeof(ChunkHeader) + chunk.header.stored_bytes + 7) / 8 * 8;
        if (chunk.header.type == ChunkType::kEvents && chunk.header.count <= kMaxChunkEvents) {
            decode_events(chunk.payload,
                          chunk.header.raw_bytes,
                          chunk.header.first,
                          chunk.header.count,
                          [&](const EventRecord& event) { add(event, state, seen); });
        }
    }
}

void LiveTrace::add(const EventRecord& record,
                    RecordedState* state,
                    const std::function<void(const Event&)>& seen) {
    if (!any_event_ || record.sequence > last_sequence_) {
        const Event event = event_of(record);
        state->apply(event, record.pool);
        if (seen) {
            seen(event);
        }
        last_sequence_ = record.sequence;
        any_event_ = true;
    }
}

}  // namespace fragtrace::analyzer
