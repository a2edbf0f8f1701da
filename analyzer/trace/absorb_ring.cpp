#include "analyzer/trace/absorb_ring.h"

#include "analyzer/support/input_file.h"
#include "analyzer/support/output_file.h"
#include "analyzer/trace/chunk_writer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

constexpr const char* kAbsorbed = "ring.absorbed";  // fact: number of events

bool g_keep_rings = false;

// Closes the file and thereby releases its lock.
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

}  // namespace

void keep_rings() {
    g_keep_rings = true;
}

bool absorb_ring(const std::string& trace_path,
                 const InputFile& trace,
                 const RingContents& ring,
                 const RingSurplus& surplus) {
    if (g_keep_rings) {
        return false;
    }
    // Without this check, the owner of a trace could make a more privileged user write to that
    // user's files.
    if (!ring.file || trace.owner() != geteuid() || ring.file->owner() != geteuid()) {
        return false;
    }
    const Descriptor file(trace.open_to_append(trace_path));
    const std::uint64_t expected_bytes = trace.size();
    struct stat status = {};
    // The lock prevents two analyzers from appending the same events.
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
        // Readers would skip a half-written end, but it is better to remove it.
        [[maybe_unused]] const int result = ftruncate(file.get(), status.st_size);
        return false;
    }
    ring.file->remove(ring.path);
    return true;
}

bool was_absorbed(const std::map<std::string, std::string>& facts) {
    return facts.contains(kAbsorbed);
}

}  // namespace fragtrace::analyzer
