#include "analyzer/trace/event_piece.h"

#include "analyzer/trace/possible_event.h"

#include <algorithm>
#include <array>
#include <limits>

namespace fragtrace::analyzer {
namespace {

static_assert(kMaxChunkEvents - 1 == kNoStream &&
              kNoStream == std::numeric_limits<StreamId>::max());

constexpr std::array<bool, 256> kStreamKinds = [] {
    std::array<bool, 256> has = {};
    for (std::size_t kind = 0; kind < has.size(); ++kind) {
        has[kind] = has_trait(static_cast<EventKind>(kind), kHasStream);
    }
    return has;
}();

}  // namespace

bool EventPiece::decode(const Chunk& chunk, std::uint64_t first_event) {
    clear();
    if (!columns_.open(chunk)) {
        return false;
    }
    constexpr std::uint32_t kGroup = PackingBase::kEvents;
    static_assert(kGroup <= NumberColumn::kBlock);
    const auto head = static_cast<std::uint32_t>((kGroup - first_event % kGroup) % kGroup);
    for (std::uint32_t done = 0; columns_.left() != 0; done += block_.count) {
        const bool in_head = done < head;
        if (!columns_.read(std::min(columns_.left(), in_head ? head : kGroup), &block_)) {
            return false;
        }
        for (std::uint32_t i = 0; i < block_.count; ++i) {
            if (!is_possible(block_.kind[i], block_.address[i], block_.size[i], block_.extra[i])) {
                block_.kind[i] = EventKind::kNone;
            }
        }
        add_columns(block_, done);
        number(block_);
        if (in_head) {
            add_head(block_);
        } else {
            add_group(block_);
        }
    }
    return true;
}

Event EventPiece::event(std::size_t at) const {
    if (at < head_.size()) {
        return head_[at];
    }
    at -= head_.size();
    return bases_[at / PackingBase::kEvents].unpack(
        packed_[at], [this](std::uint32_t code) { return wide_[code & ~PackedEvent::kWide]; });
}

void EventPiece::clear() {
    head_.clear();
    packed_.clear();
    bases_.clear();
    wide_.clear();
    origins_.clear();
    streams_.clear();
    runs_.clear();
    durations_.clear();
    pools_.clear();
    remarks_.clear();
    kinds_.reset();
    origin_ids_.clear();
    stream_ids_.clear();
    known_origins_.fill({0, 0, PairMap::kAbsent});
    last_stream_ = kStreamUnknown;
    last_stream_id_ = kNoStream;
}

// Call after number().
inline Event EventPiece::event_of(const EventBlock& block, std::uint32_t i) const {
    return {.time_ns = block.time_ns[i],
            .address = block.address[i],
            .size_bytes = block.size[i],
            .extra = block.extra[i],
            .origin = block_origins_[i],
            .stream = block_streams_[i],
            .device = static_cast<std::uint8_t>(
                (block.device[i] < kMaxDevices ? block.device[i] : kUnknownDevice) & 31u),
            .flags = static_cast<std::uint8_t>(block.flags[i] & 7u),
            .kind = block.kind[i]};
}

void EventPiece::add_head(const EventBlock& block) {
    for (std::uint32_t i = 0; i < block.count; ++i) {
        head_.push_back(event_of(block, i));
    }
}

void EventPiece::add_group(const EventBlock& block) {
    PackingBase base = PackingBase::at(block.time_ns[0]);
    const std::size_t first = packed_.size();
    packed_.resize(first + block.count);
    PackedEvent* to = packed_.data() + first;
    const auto wide_code = [this](std::uint64_t value) {
        wide_.push_back(value);
        return static_cast<std::uint32_t>(wide_.size() - 1) | PackedEvent::kWide;
    };
    for (std::uint32_t i = 0; i < block.count; ++i) {
        to[i] = base.pack(event_of(block, i), wide_code);
    }
    bases_.push_back(base);
}

// Adds the columns that are stored separately from the events.
void EventPiece::add_columns(const EventBlock& block, std::uint32_t first) {
    std::uint64_t jumps = runs_.empty() ? 1 : runs_.back().first + runs_.back().count;
    jumps ^= block.sequence[0];
    std::uint32_t any_duration = 0;
    std::uint32_t any_pool = 0;
    for (std::uint32_t i = 0; i < block.count; ++i) {
        jumps |= block.sequence[i] ^ (block.sequence[0] + i);
        any_duration |= block.duration_ns[i];
        any_pool |= block.pool[i];
    }
    if (jumps == 0 && !runs_.empty()) {
        runs_.back().count += block.count;
    } else {
        for (std::uint32_t i = 0; i < block.count; ++i) {
            if (runs_.empty() || block.sequence[i] != runs_.back().first + runs_.back().count) {
                runs_.push_back({block.sequence[i], 0});
            }
            ++runs_.back().count;
        }
    }
    const auto add = [first, &block](const auto& column, Sparse* to) {
        for (std::uint32_t i = 0; i < block.count; ++i) {
            if (column[i] != 0) {
                to->emplace_back(first + i, column[i]);
            }
        }
    };
    if (any_duration != 0) {
        add(block.duration_ns, &durations_);
    }
    if (any_pool != 0) {
        add(block.pool, &pools_);
    }
    for (std::uint32_t i = 0; i < block.count; ++i) {
        kinds_.set(static_cast<std::size_t>(block.kind[i]));
        if (has_trait(block.kind[i], kRemark)) {
            remarks_.push_back(first + i);
        }
    }
}

// Gives origins and streams of a block's events their numbers within this piece.
void EventPiece::number(const EventBlock& block) {
    for (std::uint32_t i = 0; i < block.count; ++i) {
        const Origin origin = {block.thread[i], block.native_stack[i], block.python_stack[i]};
        const std::uint64_t stacks = std::uint64_t{origin.native_stack} << 32 | origin.python_stack;
        KnownOrigin& known =
            known_origins_[(stacks * 0x9e3779b97f4a7c15) >> (64 - kKnownOriginBits)];
        if (known.stacks != stacks || known.thread != origin.thread ||
            known.id == PairMap::kAbsent) {
            known = {stacks, origin.thread, new_origin_id(origin, stacks)};
        }
        block_origins_[i] = known.id;
    }
    for (std::uint32_t i = 0; i < block.count; ++i) {
        const std::uint64_t raw = kStreamKinds[static_cast<std::size_t>(block.kind[i])]
                                      ? block.stream[i]
                                      : kStreamUnknown;
        if (raw != kStreamUnknown && raw != last_stream_) {
            last_stream_id_ = new_stream_id(raw);
            last_stream_ = raw;
        }
        block_streams_[i] = raw == kStreamUnknown ? kNoStream : last_stream_id_;
    }
}

OriginId EventPiece::new_origin_id(const Origin& origin, std::uint64_t stacks) {
    OriginId id = origin_ids_.find(stacks, origin.thread);
    if (id == PairMap::kAbsent) {
        id = static_cast<OriginId>(origins_.size());
        origins_.push_back(origin);
        origin_ids_.set(stacks, origin.thread, id);
    }
    return id;
}

// A piece has at most kMaxChunkEvents streams, one more than a StreamId can represent.
StreamId EventPiece::new_stream_id(std::uint64_t raw) {
    std::uint32_t id = stream_ids_.find(raw, 0);
    if (id == PairMap::kAbsent) {
        id = static_cast<std::uint32_t>(streams_.size());
        streams_.push_back(raw);
        stream_ids_.set(raw, 0, id);
    }
    return static_cast<StreamId>(id);
}

}  // namespace fragtrace::analyzer
