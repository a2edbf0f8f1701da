#include "analyzer/trace/builder.h"

#include <fragtrace/codec.h>

#include "analyzer/trace/possible_event.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kMaxNodes = std::uint64_t{1} << 27;
constexpr std::uint32_t kMaxCodes = 1u << 24;
constexpr std::size_t kMostPools = 4096;
// Numbers that a table may skip because chunks were lost. The limit grows with the file, because
// each entry takes at least one byte of it.
constexpr std::uint64_t kMaxGap = 1u << 16;

std::string unescape(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        char character = text[i];
        if (character == '\\' && i + 1 < text.size()) {
            character = text[++i];
            character = character == 't' ? '\t' : character == 'n' ? '\n' : character;
        }
        result += character;
    }
    return result;
}

std::string hexadecimal(const std::uint8_t* data, std::size_t size_bytes) {
    std::string text;
    for (std::size_t i = 0; i < size_bytes; ++i) {
        text += fmt::format("{:02x}", data[i]);
    }
    return text;
}

}  // namespace

TimelineBuilder::TimelineBuilder(std::uint64_t file_bytes, std::uint64_t max_events)
    : file_bytes_(file_bytes), max_events_(max_events) {
    timeline_.origins.emplace_back();
    timeline_.nodes.push_back(StackNode{});
    node_known_.push_back(1);
    origin_ids_.set(0, 0, 0);
}

bool TimelineBuilder::add_chunk(const Chunk& chunk) {
    const ChunkHeader& header = chunk.header;
    switch (header.type) {
        case ChunkType::kEvents:
            if (!piece_.decode(chunk, timeline_.events.size())) {
                return false;
            }
            add_piece(piece_);
            return true;
        case ChunkType::kStacks: {
            // The decoder uses 32-bit numbers; a node takes at least three bytes.
            if (header.first >= kMaxNodes || header.count > header.raw_bytes / 3) {
                return false;
            }
            std::vector<StackNode> nodes(header.count);
            return decode_nodes(chunk.payload,
                                header.raw_bytes,
                                static_cast<std::uint32_t>(header.first),
                                header.count,
                                nodes.data()) &&
                   add_nodes(header.first, nodes);
        }
        case ChunkType::kCode:
            return add_codes(chunk.payload, header.raw_bytes, header.count);
        case ChunkType::kModules:
            return add_modules(chunk);
        case ChunkType::kFacts:
            add_facts({reinterpret_cast<const char*>(chunk.payload), header.raw_bytes});
            return true;
        case ChunkType::kEnd:
            return add_end(chunk);
        case ChunkType::kIndex:
            return true;
    }
    return true;  // a chunk type of a later minor version: skipped
}

void TimelineBuilder::forget_pairs() {
    if (pairing_) {
        pairing_->undo();
        pairing_.reset();
    }
}

bool TimelineBuilder::any_of(std::initializer_list<EventKind> kinds) const {
    return std::any_of(kinds.begin(), kinds.end(), [this](EventKind kind) {
        return kinds_[static_cast<std::size_t>(kind)];
    });
}

void TimelineBuilder::add_event(const EventRecord& told) {
    if (timeline_.events.size() >= max_events_) {
        ++events_left_out_;
        return;
    }
    EventRecord record = told;
    blank_if_impossible(&record);
    Event event = {};
    event.time_ns = record.time_ns;
    event.address = record.address;
    event.size_bytes = record.size;
    event.extra = record.extra;
    event.origin = origin_id({record.thread, record.native_stack, record.python_stack});
    event.stream = has_trait(record.kind, kHasStream) ? stream_id(record.stream) : kNoStream;
    event.device = (record.device < kMaxDevices ? record.device : kUnknownDevice) & 31u;
    event.flags = record.flags & 7u;
    event.kind = record.kind;
    in_order_ = in_order_ && (sequences_.empty() || record.sequence > sequences_.back());
    const auto index = static_cast<EventIndex>(timeline_.events.size());
    timeline_.events.push_back(event);
    sequences_.push_back(record.sequence);
    kinds_.set(static_cast<std::size_t>(record.kind));
    if (has_trait(record.kind, kRemark)) {
        remarks_.push_back(index);
    }
    if (record.duration_ns != 0) {
        timeline_.durations.emplace_back(index, record.duration_ns);
    }
    timeline_.event_pools.add(index, pool_number(record.pool));
}

bool TimelineBuilder::add_nodes(std::uint64_t first, const std::vector<StackNode>& nodes) {
    auto& table = timeline_.nodes;
    const std::uint64_t end = first + nodes.size();
    const std::uint64_t missing = first > table.size() ? first - table.size() : 0;
    if (end > kMaxNodes || nodes_missing_ + missing > kMaxGap + file_bytes_) {
        return false;
    }
    nodes_missing_ += missing;
    if (end > table.size()) {
        table.resize(end);
        node_known_.resize(end, 0);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        // Parents must come before their children. Otherwise the walk to the root would not end.
        if (node_known_[first + i] == 0 && nodes[i].parent < first + i) {
            table[first + i] = nodes[i];
            node_known_[first + i] = 1;
        }
    }
    return true;
}

bool TimelineBuilder::add_codes(const std::uint8_t* payload,
                                std::size_t size_bytes,
                                std::uint32_t count) {
    ByteReader reader(payload, size_bytes);
    for (std::uint32_t i = 0; i < count; ++i) {
        CodeRecord code = {};
        if (!decode_code(&reader, &code) || code.id >= kMaxCodes ||
            codes_missing_ + code.id > timeline_.codes.size() + kMaxGap + file_bytes_ / 8) {
            return false;
        }
        codes_missing_ += code.id - std::min<std::uint64_t>(code.id, timeline_.codes.size());
        if (code.id >= timeline_.codes.size()) {
            timeline_.codes.resize(code.id + 1);
            code_known_.resize(code.id + 1, 0);
        }
        timeline_.codes[code.id] = {std::string(code.function, code.function_bytes),
                                    std::string(code.file, code.file_bytes),
                                    code.first_line};
        code_known_[code.id] = 1;
    }
    return true;
}

bool TimelineBuilder::add_modules(const Chunk& chunk) {
    ByteReader reader(chunk.payload, chunk.header.raw_bytes);
    for (std::uint32_t i = 0; i < chunk.header.count; ++i) {
        ModuleRecord module = {};
        if (!decode_module(&reader, &module)) {
            return false;
        }
        timeline_.modules.push_back({module.begin,
                                     module.end,
                                     module.bias,
                                     std::string(module.path, module.path_bytes),
                                     hexadecimal(module.build_id, module.build_id_bytes)});
    }
    return true;
}

void TimelineBuilder::add_facts(std::string_view text) {
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        const std::size_t tab = line.find('\t');
        if (tab != std::string_view::npos) {
            timeline_.facts[unescape(line.substr(0, tab))] = unescape(line.substr(tab + 1));
        }
    }
}

bool TimelineBuilder::add_end(const Chunk& chunk) {
    if (chunk.header.raw_bytes < sizeof(EndRecord)) {
        return false;
    }
    EndRecord end = {};
    std::memcpy(&end, chunk.payload, sizeof end);
    timeline_.ending = end.reason == EndReason::kQuickExit   ? Ending::kQuickExit
                       : end.reason == EndReason::kContinued ? Ending::kContinued
                                                             : Ending::kNormal;
    const bool exited = end.reason != EndReason::kContinued && end.time_ns != 0;
    end_ns_ = exited ? std::optional(end.time_ns) : std::nullopt;
    ended_ = true;
    return true;
}

StreamId TimelineBuilder::stream_id(std::uint64_t raw) {
    if (raw == kStreamUnknown) {
        return kNoStream;
    }
    std::uint32_t id = stream_ids_.find(raw, 0);
    if (id == PairMap::kAbsent) {
        if (timeline_.streams.size() >= kNoStream) {
            too_many_streams_ = true;
            return kNoStream;
        }
        id = static_cast<std::uint32_t>(timeline_.streams.size());
        timeline_.streams.push_back(raw);
        stream_ids_.set(raw, 0, id);
    }
    return static_cast<StreamId>(id);
}

// Simulated pools search all private pools, so their number is limited.
std::uint32_t TimelineBuilder::pool_number(std::uint32_t raw) {
    if (raw == 0 || raw == last_pool_) {
        return raw;
    }
    if (!known_pools_.contains(raw)) {
        if (known_pools_.size() >= kMostPools) {
            too_many_pools_ = true;
            return 0;
        }
        known_pools_.insert(raw);
    }
    last_pool_ = raw;
    return raw;
}

OriginId TimelineBuilder::origin_id(const Origin& origin) {
    if (origin == last_origin_) {
        return last_origin_id_;
    }
    const std::uint64_t stacks = std::uint64_t{origin.native_stack} << 32 | origin.python_stack;
    std::uint32_t id = origin_ids_.find(stacks, origin.thread);
    if (id == PairMap::kAbsent) {
        id = static_cast<std::uint32_t>(timeline_.origins.size());
        timeline_.origins.push_back(origin);
        origin_ids_.set(stacks, origin.thread, id);
    }
    last_origin_ = origin;
    last_origin_id_ = id;
    return id;
}

bool TimelineBuilder::recording_is_stopped() const {
    for (std::size_t i = remarks_.size(); i-- != 0;) {
        const EventKind kind = timeline_.events.kind(remarks_[i]);
        if (kind == EventKind::kRecordingStopped || kind == EventKind::kRecordingStarted) {
            return kind == EventKind::kRecordingStopped;
        }
    }
    return false;
}

bool TimelineBuilder::has_event(std::uint64_t sequence) const {
    return sequences_.find(sequence) != kNoEvent;
}

std::uint32_t TimelineBuilder::whole_nodes() const {
    const auto gap = std::find(node_known_.begin(), node_known_.end(), 0);
    return static_cast<std::uint32_t>(gap - node_known_.begin());
}

bool TimelineBuilder::has_code(std::uint32_t id) const {
    return id < code_known_.size() && code_known_[id] != 0;
}

}  // namespace fragtrace::analyzer
