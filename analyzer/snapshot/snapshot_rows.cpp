#include "analyzer/snapshot/snapshot_rows.h"

#include "analyzer/trace/possible_event.h"

#include <algorithm>

namespace fragtrace::analyzer {
namespace {

using Kind = PickleValue::Kind;

constexpr std::uint64_t kMostBytes = kMostDeviceBytes;
constexpr std::uint64_t kMostRequest = std::uint64_t{1} << 60;  // failed ones may be huge
constexpr std::uint64_t kMostTimeUs = std::uint64_t{1}
                                      << 53;  // times 1000 it still fits into 64 bits
constexpr std::size_t kMostEntries = std::size_t{1} << 28;
constexpr std::size_t kMostRows = std::size_t{1} << 26;

}  // namespace

PickleValue SnapshotRows::dict(PickleReader& reader, std::span<const PickleValue> items) {
    dict_.open(&reader, items);
    if (has(kAction)) {
        return entry();
    }
    if (has(kFilename)) {
        return frame();
    }
    if (has(kState) && has(kSize)) {
        return block();
    }
    if (has(kBlocks)) {
        return segment();
    }
    if (has(kRealSize)) {
        return former_use();
    }
    if (has(kStage)) {
        return annotation();
    }
    if (has(kSegments) || has(kDeviceTraces)) {
        return whole();
    }
    if (has(kMaxSplitSize) || has(kExpandableSegments) || has(kConf)) {
        return settings();
    }
    return divisions(items);
}

std::uint64_t SnapshotRows::stream() {
    // A raw handle may be any number.
    return dict_.has(kStream, Kind::kInteger) ? dict_[kStream].number : 0;
}

std::uint32_t SnapshotRows::pool(Word word) {
    if (!has(word) || dict_[word].kind != Kind::kPair) {
        return 0;
    }
    const auto& id = reader().pairs()[dict_[word].index];
    auto& pools = snapshot_.pools;
    if (id == pools.front()) {
        return 0;
    }
    const auto [found, is_new] =
        pool_numbers_.try_emplace(id, static_cast<std::uint32_t>(pools.size()));
    if (is_new) {
        pools.push_back(id);
    }
    return found->second;
}

std::uint32_t SnapshotRows::label() {
    if (!dict_.has(kUserMetadata, Kind::kText)) {
        return 0;
    }
    const std::uint32_t text = dict_[kUserMetadata].index;
    if (reader().texts().view(text).empty()) {
        return 0;
    }
    const auto [found, is_new] =
        labels_.try_emplace(text, static_cast<std::uint32_t>(snapshot_.labels.size()));
    if (is_new) {
        snapshot_.labels.emplace_back(reader().texts().view(text));
    }
    return found->second;
}

std::uint32_t SnapshotRows::device() {
    return dict_.has(kDevice, Kind::kInteger) && dict_[kDevice].negative
               ? ~0u
               : static_cast<std::uint32_t>(dict_.count(kDevice, ~0u));
}

std::uint32_t SnapshotRows::stack() {
    if (!has(kFrames)) {
        return 0;
    }
    const PickleValue& value = dict_[kFrames];
    if (value.kind == Kind::kRow && value.row_kind == kStackRow) {
        return value.index;
    }
    if (value.kind != Kind::kList) {
        return 0;
    }
    frames_.clear();
    for (const PickleValue& one : reader().list(value)) {
        if (one.kind == Kind::kRow && one.row_kind == kFrameRow) {
            frames_.push_back(one.index);
        }
    }
    const std::uint32_t node = stacks_.stack(frames_);
    if (node == SnapshotStacks::kFull) {
        fail("more different stacks than a snapshot has");
        return 0;
    }
    reader().close_list(value, PickleValue::row(kStackRow, node));
    return node;
}

PickleValue SnapshotRows::entry() {
    SnapshotEntry row;
    const PickleValue& action = dict_[kAction];
    if (action.kind != Kind::kText) {
        return fail("'action' is not a string");
    }
    const std::uint32_t word = action.index - kAllocWord;
    row.action = word <= kAnnotateWord - kAllocWord ? static_cast<SnapshotAction>(word)
                                                    : SnapshotAction::kOther;
    if (row.action == SnapshotAction::kOther) {
        constexpr std::size_t kMostActions = 4096;
        if (unknown_actions_.size() < kMostActions || unknown_actions_.contains(action.index)) {
            ++unknown_actions_[action.index];
        }
    }
    if (row.action == SnapshotAction::kAnnotate) {
        dict_.note_annotation();
    }
    const bool oom = row.action == SnapshotAction::kOutOfMemory;
    row.address = oom ? dict_.count(kDeviceFree, kMostBytes) : dict_.count(kAddr, kHighestAddress);
    row.size_bytes = dict_.count(kSize, oom ? kMostRequest : kMostBytes);
    row.time_us = dict_.count(kTimeUs, kMostTimeUs);
    row.stream = stream();
    row.stack = stack();
    row.pool = pool(kPoolId);
    row.label = label();
    snapshot_.internal_entries +=
        row.action == SnapshotAction::kAlloc && has(kInternalMetadata) ? 1 : 0;
    times_known_ = times_known_ && has(kTimeUs);
    dict_.note_keys();
    if (snapshot_.entries.size() == snapshot_.entries.capacity()) {
        touched_entries_.stop();  // the entries move to other memory
    }
    touched_entries_.use(snapshot_.entries.size() * sizeof(SnapshotEntry));
    return add(&snapshot_.entries, row, kEntryRow, kMostEntries);
}

PickleValue SnapshotRows::frame() {
    if (!has(kName) || dict_[kName].kind != Kind::kText || dict_[kFilename].kind != Kind::kText) {
        return fail("a frame without a name");
    }
    const std::uint32_t function = dict_[kName].index;
    const std::uint32_t file = dict_[kFilename].index;
    // C++ frames without line information may have any value here.
    const std::uint32_t line =
        has(kLine) && dict_[kLine].is_count()
            ? static_cast<std::uint32_t>(std::min<std::uint64_t>(dict_[kLine].number, ~0u))
            : 0;
    const std::uint32_t number = stacks_.frame({function, file, line, dict_.is_true(kNative)},
                                               reader().texts().view(function),
                                               reader().texts().view(file));
    if (number == SnapshotStacks::kFull) {
        return fail("more different lines than a snapshot has");
    }
    return PickleValue::row(kFrameRow, number);
}

PickleValue SnapshotRows::block() {
    SnapshotBlock row;
    row.address = dict_.count(kAddress, kHighestAddress - kMostBytes);
    row.size_bytes = dict_.count(kSize, kMostBytes);
    if (dict_[kState].kind != Kind::kText) {
        return fail("'state' is not a string");
    }
    row.live = !dict_.is_word(kState, kInactiveWord);
    row.pending = row.live && !dict_.is_word(kState, kActiveAllocatedWord);
    // A free block keeps the data of its last use, which is meaningless.
    row.requested_bytes = row.live ? dict_.count(kRequestedSize, kMostBytes) : 0;
    row.stack = stack();
    if (row.live && has(kHistory) && dict_[kHistory].kind == Kind::kList) {
        for (const PickleValue& one : reader().list(dict_[kHistory])) {
            if (one.kind == Kind::kRow && one.row_kind == kFormerUseRow) {
                const FormerUse& use = former_uses_[one.index];
                row.requested_bytes =
                    row.requested_bytes == 0 ? use.requested_bytes : row.requested_bytes;
                row.stack = row.stack == 0 ? use.stack : row.stack;
                break;  // the last use comes first
            }
        }
    }
    dict_.note_keys();
    return add(&snapshot_.blocks, row, kBlockRow, kMostRows);
}

PickleValue SnapshotRows::former_use() {
    return add(&former_uses_,
               {.requested_bytes = dict_.count(kRealSize, kMostBytes), .stack = stack()},
               kFormerUseRow,
               kMostRows);
}

PickleValue SnapshotRows::segment() {
    SnapshotSegment row;
    row.address = dict_.count(kAddress, kHighestAddress - kMostBytes);
    row.size_bytes = dict_.count(kTotalSize, kMostBytes);
    row.stream = stream();
    row.stack = stack();
    row.pool = pool(kSegmentPoolId);
    row.device = device();
    row.small = dict_.is_word(kSegmentType, kSmallWord);
    row.expandable = dict_.is_true(kIsExpandable);
    if (dict_[kBlocks].kind != Kind::kList) {
        return fail("'blocks' is not a list");
    }
    const auto blocks = reader().list(dict_[kBlocks]);
    row.block_count = static_cast<std::uint32_t>(blocks.size());
    row.first_block = blocks.empty() ? 0 : blocks.front().index;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (blocks[i].kind != Kind::kRow || blocks[i].row_kind != kBlockRow ||
            blocks[i].index != row.first_block + i) {
            return fail("'blocks' is not a list of blocks of this segment alone");
        }
    }
    dict_.note_keys();
    return add(&segments_, row, kSegmentRow, kMostRows);
}

PickleValue SnapshotRows::annotation() {
    SnapshotAnnotation row;
    row.begin = dict_.is_word(kStage, kStartWord);
    row.time_us = dict_.count(kTimeUs, kMostTimeUs);
    row.device = device();
    if (has(kName) && dict_[kName].kind == Kind::kText) {
        row.name = reader().texts().view(dict_[kName].index);
    }
    return add(&snapshot_.annotations, row, kAnnotationRow, kMostRows);
}

PickleValue SnapshotRows::settings() {
    settings_ = settings_of(dict_, divisions_);
    dict_.note_keys();
    return PickleValue::row(kSettingsRow, 0);
}

PickleValue SnapshotRows::divisions(std::span<const PickleValue> items) {
    constexpr std::size_t kMostDivisions = 64;
    SnapshotDivisions row = divisions_of(reader(), items);
    if (row.empty() || divisions_.size() >= kMostDivisions) {
        return {};
    }
    divisions_.push_back(std::move(row));
    return PickleValue::row(kDivisionsRow, static_cast<std::uint32_t>(divisions_.size() - 1));
}

}  // namespace fragtrace::analyzer
