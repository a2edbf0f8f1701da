#include "analyzer/trace/reader.h"

#include "analyzer/support/input_file.h"
#include "analyzer/trace/absorb_ring.h"
#include "analyzer/trace/builder.h"
#include "analyzer/trace/chunk_pipeline.h"
#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/job_place.h"
#include "analyzer/trace/losses.h"
#include "analyzer/trace/reading_notes.h"
#include "analyzer/trace/ring_reader.h"
#include "analyzer/trace/trace_header.h"
#include "analyzer/trace/traced_process.h"

#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kWorthAThreadBytes = 256 << 10;

class TraceReading {
  public:
    TraceReading(const std::string& path, InputFile file, const TraceHeader& header)
        : path_(path), file_(std::move(file)), header_(header), builder_(file_.size()) {}

    Timeline run(const ReadOptions& options) {
        const ProcessState state = process_state(path_, file_, header_);
        const bool running = state == ProcessState::kRuns;
        const bool gone = state == ProcessState::kGone;
        RingContents ring;
        if (options.use_ring) {
            // Read the ring before the file: events that leave the ring in the meantime are then in
            // the file.
            ring = read_ring(path_, header_, !gone);
            if (!gone) {
                reopen();
            }
        }
        ChunkScanner scanner(file_, header_.header_bytes, running);
        read_chunks(&scanner);
        // A part may announce a next part that the process did not live to start. The ring then
        // still continues this part, or this part has absorbed it.
        bool ended = builder_.ended();
        if (ended && builder_.ending() == Ending::kContinued) {
            const bool in_ring = ring.state == RingContents::State::kRead;
            ended = !in_ring && !was_absorbed(builder_.facts());
            ring.state = in_ring ? ring.state : RingContents::State::kAbsent;
        }
        if (ring.state == RingContents::State::kRead) {
            use_ring(ring, options.absorb_ring && gone);
        }
        Timeline timeline = builder_.finish();
        merge_losses(ring.losses, &timeline.facts);
        if (!ended) {
            timeline.ending =
                ending_without_mark(path_, header_, state, timeline.facts, ring.lost());
        }
        describe_source(&timeline);
        TraceDamage& damage = timeline.damage;
        damage.bytes_unreadable = scanner.bytes_unreadable() + undecodable_bytes_;
        damage.chunks_unreadable = scanner.chunks_unreadable() + undecodable_chunks_;
        note_gaps_of_file(scanner, &timeline);
        note_ring(ring, is_known_gone(header_, state, timeline.facts), &timeline);
        note_losses(&timeline);
        return timeline;
    }

  private:
    void read_chunks(ChunkScanner* scanner) {
        if (file_.size() < kWorthAThreadBytes) {
            for (Chunk chunk; scanner->next(&chunk);) {
                count_undecodable(builder_.add_chunk(chunk), chunk);
            }
            return;
        }
        ChunkPipeline<EventPiece> pipeline(scanner);
        while (const auto* item = pipeline.next()) {
            if (item->chunk.header.type != ChunkType::kEvents) {
                count_undecodable(builder_.add_chunk(item->chunk), item->chunk);
                continue;
            }
            count_undecodable(item->decoded, item->chunk);
            if (item->decoded) {
                builder_.add_piece(item->events);
            }
        }
    }

    void count_undecodable(bool decoded, const Chunk& chunk) {
        undecodable_chunks_ += decoded ? 0 : 1;
        undecodable_bytes_ += decoded ? 0 : sizeof(ChunkHeader) + chunk.header.stored_bytes;
    }

    void reopen() {
        Result<InputFile> again = InputFile::open(path_);
        if (again.ok()) {
            file_ = std::move(again).value();
        }
    }

    void use_ring(const RingContents& ring, bool absorb) {
        const RingSurplus surplus = add_ring(ring, &builder_);
        if (absorb) {
            absorb_ring(path_, file_, ring, surplus);
        }
    }

    void describe_source(Timeline* timeline) const {
        timeline->path = path_;
        timeline->start_unix_ns = header_.start_unix_ns;
        timeline->pid = header_.pid;
        timeline->rank = job_place(header_, timeline->facts).rank;
    }

    const std::string& path_;
    InputFile file_;
    TraceHeader header_;
    TimelineBuilder builder_;
    std::uint64_t undecodable_bytes_ = 0;
    std::uint64_t undecodable_chunks_ = 0;
};

}  // namespace

Result<Timeline> read_trace(const std::string& path, const ReadOptions& options) {
    Result<OpenTrace> trace = open_trace(path);
    if (!trace.ok()) {
        return trace.error();
    }
    const TraceHeader header = trace->header;
    return TraceReading(path, std::move(trace->file), header).run(options);
}

}  // namespace fragtrace::analyzer
