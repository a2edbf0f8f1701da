// Moving a ring's surplus into the trace file, and telling whether the process still runs.
#include "analyzer/support/input_file.h"
#include "analyzer/trace/chunk_writer.h"
#include "analyzer/trace/ring.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

constexpr const char* kAbsorbed = "ring.absorbed";  // a fact: how many events

bool write_all(int descriptor, std::string_view data) {
    while (!data.empty()) {
        const ssize_t count = write(descriptor, data.data(), data.size());
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        data.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

// Closes the file, and with it the lock.
class Descriptor {
  public:
    explicit Descriptor(int value) : value_(value) {}

    ~Descriptor() {
        if (value_ >= 0) {
            close(value_);
        }
    }

    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    [[nodiscard]] int get() const { return value_; }

  private:
    int value_;
};

// Does a process with this pid and this start time exist?
bool same_process(std::uint32_t pid, std::uint64_t start_ticks) {
    std::ifstream stat(fmt::format("/proc/{}/stat", pid));
    const std::string text{std::istreambuf_iterator<char>(stat), {}};
    const std::size_t name_end = text.rfind(')');  // the name may hold anything
    if (name_end == std::string::npos) {
        return false;
    }
    std::istringstream fields(text.substr(name_end + 1));
    std::string field;
    constexpr int kState = 3;
    constexpr int kStartTime = 22;
    for (int number = kState; number <= kStartTime && fields >> field; ++number) {
        if (number == kState && (field == "Z" || field == "X")) {
            return false;
        }
    }
    return field == std::to_string(start_ticks);
}

}  // namespace

bool absorb_ring(const std::string& trace_path,
                 const InputFile& trace,
                 const std::string& ring_path,
                 const RingContents& ring,
                 const RingSurplus& surplus) {
    // Whoever owns one of them could make a more powerful user write to files of that one's.
    if (!ring.file || trace.owner() != geteuid() || ring.file->owner() != geteuid()) {
        return false;
    }
    const Descriptor file(trace.open_to_append(trace_path));
    const std::uint64_t expected_bytes = trace.size();
    struct stat status = {};
    // The lock keeps two analyzers from appending the same events.
    if (file.get() < 0 || flock(file.get(), LOCK_EX | LOCK_NB) != 0 ||
        fstat(file.get(), &status) != 0 ||
        static_cast<std::uint64_t>(status.st_size) != expected_bytes) {
        return false;
    }
    std::string chunks;
    const std::uint64_t padding = (8 - expected_bytes % 8) % 8;
    const auto node_count = static_cast<std::uint32_t>(ring.nodes.size());
    append_nodes(&chunks, ring.nodes, surplus.first_node, node_count);
    if (surplus.code_count != 0) {
        append_chunk(&chunks,
                     ChunkType::kCode,
                     {reinterpret_cast<const char*>(surplus.codes.data()), surplus.codes.size()},
                     surplus.code_count,
                     0);
    }
    append_events(&chunks, surplus.events);
    if (!surplus.facts.empty()) {
        const auto lines = std::count(surplus.facts.begin(), surplus.facts.end(), '\n');
        append_chunk(
            &chunks, ChunkType::kFacts, surplus.facts, static_cast<std::uint32_t>(lines), 0);
    }
    std::map<std::string, std::string> facts = ring.losses;
    facts[kAbsorbed] = std::to_string(surplus.events.size());
    append_facts(&chunks, facts);
    if (!write_all(file.get(), std::string(padding, '\0') + chunks) || fsync(file.get()) != 0) {
        // A half-written end is skipped by readers, but is better not left behind.
        [[maybe_unused]] const int result = ftruncate(file.get(), status.st_size);
        return false;
    }
    ring.file->remove(ring_path);
    return true;
}

bool was_absorbed(const std::map<std::string, std::string>& facts) {
    return facts.contains(kAbsorbed);
}

bool process_runs(const TraceHeader& trace) {
    if (trace.pid == 0 || !same_process(trace.pid, trace.process_start_ticks)) {
        return false;
    }
    const std::string ring(trace.ring_path, strnlen(trace.ring_path, sizeof trace.ring_path));
    const Result<InputFile> file = InputFile::open(ring.empty() ? "/dev/null" : ring);
    std::ifstream maps(fmt::format("/proc/{}/maps", trace.pid));
    if (!file.ok() || !maps) {
        return true;
    }
    std::string line;
    bool any = false;
    while (std::getline(maps, line)) {
        std::istringstream fields(line);
        std::string skipped;
        std::uint64_t inode = 0;
        fields >> skipped >> skipped >> skipped >> skipped >> inode;
        any = true;
        if (inode == file->inode()) {
            return true;
        }
    }
    return !any;  // an unreadable map tells nothing
}

}  // namespace fragtrace::analyzer
