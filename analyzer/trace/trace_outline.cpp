#include "analyzer/trace/trace_outline.h"

#include "analyzer/support/input_file.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/absorb_ring.h"
#include "analyzer/trace/builder.h"
#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/job_place.h"
#include "analyzer/trace/losses.h"
#include "analyzer/trace/ring_reader.h"
#include "analyzer/trace/trace_header.h"
#include "analyzer/trace/traced_process.h"

#include <algorithm>
#include <cstring>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kAlignment = 8;

// Walks from chunk to chunk by their headers. Only the payloads of facts and the end are read and
// checked.
class Walk {
  public:
    Walk(const InputFile& file, std::uint64_t begin)
        : file_(file),
          builder_(file.size()),
          table_budget_bytes_(ChunkScanner::table_budget(file.size())) {
        for (std::uint64_t at = begin; at != 0;) {
            at = step(at);
        }
    }

    [[nodiscard]] std::uint64_t events() const { return events_; }

    [[nodiscard]] std::uint64_t last_sequence() const { return last_sequence_; }

    [[nodiscard]] bool damaged() const { return damaged_; }

    // Whether the file ends within a chunk other than an index, which is not needed.
    [[nodiscard]] bool cut_off() const { return cut_off_; }

    TimelineBuilder& builder() { return builder_; }

  private:
    // Returns where the next chunk begins; 0 at the end.
    std::uint64_t step(std::uint64_t at) {
        ChunkHeader header = {};
        const std::size_t got = file_.read_at(at, &header, sizeof header);
        if (got >= sizeof(FileTrailer) &&
            std::memcmp(reinterpret_cast<const char*>(&header) + offsetof(FileTrailer, magic),
                        kTraceMagic,
                        sizeof kTraceMagic) == 0) {
            return at + sizeof(FileTrailer);  // a ring's events may follow
        }
        if (got != sizeof header) {
            cut_off_ = got != 0 && header.magic != 0 && !after_index_;
            return 0;
        }
        if (header.magic != kChunkMagic) {
            damaged_ = header.magic != 0;  // reserved space that was never written contains zeros
            return 0;
        }
        const std::uint64_t end = at + sizeof header + header.stored_bytes;
        if (end > file_.size()) {
            cut_off_ = header.type != ChunkType::kIndex;
            return 0;
        }
        after_index_ = header.type == ChunkType::kIndex;
        take(at, header);
        return round_up(end, kAlignment);
    }

    void take(std::uint64_t at, const ChunkHeader& header) {
        if (header.type == ChunkType::kEvents && header.count <= kMaxChunkEvents) {
            events_ += header.count;
            last_sequence_ = std::max(last_sequence_, header.first + header.count - 1);
        } else if (header.type == ChunkType::kFacts || header.type == ChunkType::kEnd) {
            if (header.raw_bytes > table_budget_bytes_) {
                damaged_ = true;
                return;
            }
            table_budget_bytes_ -= header.raw_bytes;
            ChunkScanner scanner(file_, at, false);
            Chunk chunk;
            damaged_ |= !scanner.next(&chunk) || chunk.offset != at || !builder_.add_chunk(chunk);
        }
    }

    const InputFile& file_;
    TimelineBuilder builder_;
    std::uint64_t table_budget_bytes_;
    std::uint64_t events_ = 0;
    std::uint64_t last_sequence_ = 0;
    bool damaged_ = false;
    bool cut_off_ = false;
    bool after_index_ = false;
};

}  // namespace

Result<TraceOutline> read_outline(const std::string& path) {
    Result<OpenTrace> trace = open_trace(path);
    if (!trace.ok()) {
        return trace.error();
    }
    const TraceHeader& header = trace->header;
    const ProcessState state = process_state(path, trace->file, header);
    const bool gone = state == ProcessState::kGone;
    // Read the ring before the file: events that leave the ring in the meantime are then in the
    // file.
    RingContents ring = read_ring(path, header, !gone);
    if (!gone) {
        Result<InputFile> again = InputFile::open(path);
        if (again.ok()) {
            trace->file = std::move(again).value();
        }
    }
    Walk walk(trace->file, header.header_bytes);
    TimelineBuilder& builder = walk.builder();
    const bool in_ring = ring.state == RingContents::State::kRead &&
                         (!builder.ended() || builder.ending() == Ending::kContinued);
    if (in_ring) {
        builder.add_facts(ring.facts);
    }
    TraceOutline outline;
    outline.path = path;
    outline.pid = header.pid;
    outline.start_unix_ns = header.start_unix_ns;
    outline.events = walk.events();
    // The last chunk of a running or killed process may be incomplete: its ring has these events.
    outline.damaged =
        walk.damaged() || (walk.cut_off() && !in_ring && state != ProcessState::kRuns);
    if (in_ring) {
        outline.events += static_cast<std::uint64_t>(std::count_if(
            ring.events.begin(), ring.events.end(), [&walk](const EventRecord& event) {
                return event.sequence > walk.last_sequence();
            }));
    }
    const bool continues = builder.ending() == Ending::kContinued;
    const bool ended = builder.ended() && !in_ring && !(continues && was_absorbed(builder.facts()));
    std::map<std::string, std::string> facts = builder.facts();
    if (in_ring) {
        merge_losses(ring.losses, &facts);
    }
    const Ending ending =
        ended ? builder.ending() : ending_without_mark(path, header, state, facts, ring.lost());
    outline.end = process_end(ending, facts);
    outline.end_ns = ended ? builder.end_ns() : std::nullopt;
    if (ending == Ending::kKilled || ending == Ending::kExec) {
        outline.killed = killed_between(facts, header.start_monotonic_ns);
    }
    outline.events_lost = losses_of(facts).events_lost;
    outline.place = job_place(header, facts);
    outline.command_line = facts["command_line"];
    outline.job = facts["environment.FRAGTRACE_JOB"];
    return outline;
}

}  // namespace fragtrace::analyzer
