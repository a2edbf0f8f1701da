#include "analyzer/trace/reader.h"

#include <fragtrace/codec.h>

#include "analyzer/trace/builder.h"
#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/input_file.h"
#include "analyzer/trace/ring.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint32_t kMaxHeaderBytes = 64 << 10;
constexpr std::uint32_t kPlausibleVersion = 1000;

Error input_error(const std::string& path, std::string_view what) {
    return {ErrorCode::kInput, fmt::format("{}: {}", path, what)};
}

Result<TraceHeader> read_header(const std::string& path, const InputFile& file) {
    TraceHeader header = {};
    const std::size_t size = file.read_at(0, &header, sizeof header);
    if (size == 0) {
        return input_error(path, "is empty. The traced process wrote nothing to it; record again.");
    }
    if (size < sizeof header.magic ||
        std::memcmp(header.magic, kTraceMagic, sizeof kTraceMagic) != 0) {
        const std::string hint = foreign_file_hint({reinterpret_cast<const char*>(&header), size});
        return input_error(path,
                           hint.empty() ? "is not a trace (its first bytes are not a trace's). "
                                          "Name a .ftrace file."
                                        : fmt::format("is not a trace but looks like {}.", hint));
    }
    if (size < sizeof header) {
        return input_error(path,
                           fmt::format("is cut off in its header, at byte {} of {}. Nothing can "
                                       "be read from it; record or copy it again.",
                                       size,
                                       sizeof header));
    }
    if (header.byte_order != kByteOrderMark &&
        __builtin_bswap32(header.byte_order) == kByteOrderMark) {
        return input_error(path,
                           "was recorded on a machine of the other byte order; read it there.");
    }
    if (header.version > kFormatVersion && header.version < kPlausibleVersion) {
        return input_error(path,
                           fmt::format("has format version {}, this program reads up to {}. Use a "
                                       "newer fraganalyze.",
                                       header.version,
                                       kFormatVersion));
    }
    if (header_crc(header) != header.crc || header.byte_order != kByteOrderMark ||
        header.version == 0 || header.version > kFormatVersion ||
        header.header_bytes < sizeof header || header.header_bytes > kMaxHeaderBytes ||
        header.header_bytes % 8 != 0) {
        return input_error(path,
                           "has a damaged header (bytes 0 to 511, checksum wrong). Copy it again "
                           "from where it was recorded.");
    }
    return header;
}

std::uint64_t parse_count(const std::string& text) {
    std::uint64_t count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
}

// The recorder's counters are facts: lost events are summed, other losses are noted.
void report_losses(Timeline* timeline) {
    TraceDamage& damage = timeline->damage;
    constexpr std::string_view kPrefix = "lost.";
    for (auto fact = timeline->facts.lower_bound(std::string(kPrefix));
         fact != timeline->facts.end() && fact->first.starts_with(kPrefix);
         ++fact) {
        const std::string_view name = std::string_view(fact->first).substr(kPrefix.size());
        const std::uint64_t count = parse_count(fact->second);
        if (name == "unfinished" || name == "unfinished_in_ring") {
            damage.events_unfinished += count;
        } else if (name != "facts") {
            damage.events_lost += count;
        }
    }
    const auto note = [timeline, &damage](const char* key, const char* what) {
        const std::uint64_t count = parse_count(timeline->fact(key));
        if (count != 0) {
            damage.notes.push_back(fmt::format("{} {}", count, what));
        }
    };
    note("lost.facts", "facts about the process were lost");
    note("stacks.without_room", "events have no stack: the stack tree was full");
    note("stacks.native_failures", "native stacks could not be walked");
    note("stacks.python_failures", "Python stacks could not be walked");
    note("trace.write_errors", "writes to the trace file failed (disk full?)");
}

// Counters in the ring are newer than those in the file.
void merge_losses(const RingContents& ring, Timeline* timeline) {
    for (const auto& [key, value] : ring.losses) {
        std::string& fact = timeline->facts[key];
        if (parse_count(value) > parse_count(fact)) {
            fact = value;
        }
    }
}

void report_ring(const RingContents& ring, const std::string& ring_path, Timeline* timeline) {
    if (ring.state == RingContents::State::kIgnored) {
        timeline->damage.notes.push_back(
            fmt::format("the ring {} is ignored: {}", ring_path, ring.reason));
    } else if (ring.state == RingContents::State::kAbsent && !ring_path.empty() &&
               timeline->ending == Ending::kKilled && !timeline->facts.contains("ring.absorbed")) {
        timeline->damage.notes.push_back(
            fmt::format("the process was killed and its ring {} is gone: the last events before "
                        "the end may be missing",
                        ring_path));
    }
}

class TraceReading {
  public:
    TraceReading(const std::string& path, InputFile file, const TraceHeader& header)
        : path_(path),
          file_(std::move(file)),
          header_(header),
          ring_path_(header.ring_path, strnlen(header.ring_path, sizeof header.ring_path)),
          builder_(file_.size()) {}

    Timeline run(const ReadOptions& options) {
        const bool running = process_runs(header_);
        RingContents ring;
        if (options.use_ring) {
            // Before the file: what leaves the ring while we read is then found in the file.
            ring = read_ring(header_, running);
            if (running) {
                reopen();
            }
        }
        ChunkScanner scanner(file_, header_.header_bytes, running);
        std::uint64_t undecodable_bytes = 0;
        std::uint64_t undecodable_chunks = 0;
        for (Chunk chunk; scanner.next(&chunk);) {
            if (!builder_.add_chunk(chunk)) {
                ++undecodable_chunks;
                undecodable_bytes += sizeof(ChunkHeader) + chunk.header.stored_bytes;
            }
        }
        // A part may say that another one follows, which the process did not live to begin: the
        // ring then continues this one still.
        bool ended = builder_.ended();
        if (ended && builder_.ending() == Ending::kContinued) {
            ended = ring.state != RingContents::State::kRead;
            ring.state = ended ? RingContents::State::kAbsent : ring.state;
        }
        if (ring.state == RingContents::State::kRead) {
            use_ring(ring, options.absorb_ring && !running);
        }
        Timeline timeline = builder_.finish();
        if (!ended) {
            timeline.ending = running                       ? Ending::kRunning
                              : called_exec(path_, header_) ? Ending::kExec
                                                            : Ending::kKilled;
        }
        describe_source(&timeline);
        TraceDamage& damage = timeline.damage;
        damage.bytes_unreadable = scanner.bytes_unreadable() + undecodable_bytes;
        damage.chunks_unreadable = scanner.chunks_unreadable() + undecodable_chunks;
        if (scanner.gave_up()) {
            damage.notes.push_back("the search for intact parts was given up: too many false ones");
        }
        merge_losses(ring, &timeline);
        report_ring(ring, ring_path_, &timeline);
        report_losses(&timeline);
        return timeline;
    }

  private:
    void reopen() {
        Result<InputFile> again = InputFile::open(path_);
        if (again.ok()) {
            file_ = std::move(again).value();
        }
    }

    void use_ring(const RingContents& ring, bool absorb) {
        const RingSurplus surplus = add_ring(ring, &builder_);
        if (absorb) {
            absorb_ring(path_, file_.size(), ring_path_, ring, surplus);
        }
    }

    void describe_source(Timeline* timeline) const {
        timeline->path = path_;
        timeline->start_unix_ns = header_.start_unix_ns;
        timeline->pid = header_.pid;
        timeline->rank = header_.rank;
    }

    const std::string& path_;
    InputFile file_;
    TraceHeader header_;
    std::string ring_path_;
    TimelineBuilder builder_;
};

}  // namespace

Result<Timeline> read_trace(const std::string& path, const ReadOptions& options) {
    Result<InputFile> file = InputFile::open(path);
    if (!file.ok()) {
        return file.error();
    }
    const Result<TraceHeader> header = read_header(path, *file);
    if (!header.ok()) {
        return header.error();
    }
    return TraceReading(path, std::move(file).value(), *header).run(options);
}

}  // namespace fragtrace::analyzer
