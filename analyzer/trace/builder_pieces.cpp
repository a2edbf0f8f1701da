// Joins chunks that were packed independently of each other.
#include "analyzer/trace/builder.h"

#include <algorithm>

namespace fragtrace::analyzer {

void TimelineBuilder::add_piece(const EventPiece& piece) {
    const bool from_the_first = timeline_.events.empty();
    append(piece);
    // Pairing here, while the events are in the cache, is possible only if no later event can
    // change it. A late event can, and so can a checkpoint, because it depends on the gap before
    // it.
    if (!in_order_ || any_of({EventKind::kRecordingStopped,
                              EventKind::kRecordingStarted,
                              EventKind::kCheckpointBegin,
                              EventKind::kCheckpointEnd})) {
        forget_pairs();
        return;
    }
    if (!pairing_ && from_the_first) {
        pairing_.emplace(&timeline_);
    }
    if (pairing_) {
        pairing_->advance();
    }
}

void TimelineBuilder::append(const EventPiece& piece) {
    EventTable& events = timeline_.events;
    const std::size_t first = events.size();
    if (first + piece.size() > max_events_) {
        events_left_out_ += piece.size();
        return;
    }
    piece_origins_.clear();
    for (const Origin& origin : piece.origins()) {
        piece_origins_.push_back(origin_id(origin));
    }
    piece_streams_.clear();
    for (const std::uint64_t stream : piece.streams()) {
        piece_streams_.push_back(stream_id(stream));
    }
    const auto complete = [this](auto* event) {
        event->origin = piece_origins_[event->origin];
        if (event->stream != kNoStream) {
            event->stream = piece_streams_[event->stream];
        }
    };
    // Groups that were packed for this position are copied without unpacking.
    std::size_t unpacked = piece.head().size();
    if ((first + unpacked) % PackingBase::kEvents != 0) {
        unpacked = piece.size();
    }
    for (std::size_t i = 0; i < unpacked; ++i) {
        Event event = piece.event(i);
        complete(&event);
        events.push_back(event);
    }
    for (std::size_t at = 0; unpacked + at < piece.size(); at += PackingBase::kEvents) {
        events.append_group(piece.packed().data() + at,
                            std::min(PackingBase::kEvents, piece.size() - unpacked - at),
                            piece.bases()[at / PackingBase::kEvents],
                            piece.wide().data(),
                            complete);
    }
    if (piece.streams().size() > kNoStream) {
        Event last = events.back();
        last.stream = piece_streams_[kNoStream];
        events.set(events.size() - 1, last);
    }
    const auto index = [first](std::uint32_t at) { return static_cast<EventIndex>(first + at); };
    for (const EventPiece::Run& run : piece.runs()) {
        in_order_ = in_order_ && (sequences_.empty() || run.first > sequences_.back());
        sequences_.append(run.first, run.count);
    }
    kinds_ |= piece.kinds();
    for (const std::uint32_t at : piece.remarks()) {
        remarks_.push_back(index(at));
    }
    for (const auto& [at, duration_ns] : piece.durations()) {
        timeline_.durations.emplace_back(index(at), duration_ns);
    }
    for (const auto& [at, pool] : piece.pools()) {
        timeline_.event_pools.add(index(at), pool_number(pool));
    }
}

}  // namespace fragtrace::analyzer
