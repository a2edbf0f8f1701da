#include "analyzer/snapshot/snapshot_reader.h"

#include "analyzer/snapshot/pickle.h"
#include "analyzer/snapshot/snapshot_dict.h"
#include "analyzer/snapshot/snapshot_settings.h"
#include "analyzer/snapshot/snapshot_stacks.h"
#include "analyzer/snapshot/snapshot_words.h"
#include "analyzer/trace/possible_event.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using Kind = PickleValue::Kind;

constexpr std::uint64_t kMostBytes = kMostDeviceBytes;
constexpr std::uint64_t kMostRequest = std::uint64_t{1} << 60;  // failed ones may be huge
constexpr std::uint64_t kMostTimeUs = std::uint64_t{1}
                                      << 53;  // times 1000 it still fits into 64 bits
constexpr std::uint64_t kEntryBytes = 64;     // of an entry in a file: about the least
constexpr std::uint64_t kMostReserved = std::uint64_t{1} << 22;  // entries
constexpr std::size_t kMostEntries = std::size_t{1} << 28;
constexpr std::size_t kMostRows = std::size_t{1} << 26;
constexpr std::uint32_t kDevicesKept = kMaxDevices;

// The content of an entry in a block's list of former uses.
struct FormerUse {
    std::uint64_t requested_bytes = 0;
    std::uint32_t stack = 0;
};

// Turns the dicts of a snapshot into its columns.
class SnapshotRows final : public PickleSink {
  public:
    // Growing the entries would copy them.
    explicit SnapshotRows(std::size_t expected_entries) {
        auto& entries = snapshot_.entries;
        entries.reserve(expected_entries);
        touched_entries_.start(entries.data(), entries.capacity() * sizeof(SnapshotEntry));
    }

    PickleValue dict(PickleReader& reader, std::span<const PickleValue> items) override {
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

    // A snapshot is a dict, or, from memory_snapshot(), only the list of segments.
    bool finish(PickleReader& reader, const PickleValue& value) {
        if (value.kind == Kind::kRow && value.row_kind == kSnapshotRow) {
            finish_columns();
            return true;
        }
        if (value.kind == Kind::kList) {
            dict_.open(&reader, kSegments, value);
            whole();
            finish_columns();
            return reader.failure().empty();
        }
        reader.fail("the pickle holds something else than a snapshot");
        return false;
    }

    Snapshot take() {
        touched_entries_.stop();
        return std::move(snapshot_);
    }

  private:
    [[nodiscard]] bool has(Word word) const { return dict_.has(word); }

    PickleReader& reader() { return dict_.reader(); }

    PickleValue fail(std::string_view what) {
        reader().fail(what);
        return {};
    }

    std::uint64_t stream() {
        // A raw handle may be any number.
        return dict_.has(kStream, Kind::kInteger) ? dict_[kStream].number : 0;
    }

    std::uint32_t pool(Word word) {
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

    // The label that the thread, or an annotation, gives the block.
    std::uint32_t label() {
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

    // Pinned memory has no device: the value is -1.
    std::uint32_t device() {
        return dict_.has(kDevice, Kind::kInteger) && dict_[kDevice].negative
                   ? ~0u
                   : static_cast<std::uint32_t>(dict_.count(kDevice, ~0u));
    }

    std::uint32_t stack() {
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

    template <typename Rows>
    PickleValue add(Rows* rows,
                    const typename Rows::value_type& row,
                    SnapshotRowKind kind,
                    std::size_t most) {
        if (rows->size() >= most) {
            return fail("more entries than a snapshot has");
        }
        rows->push_back(row);
        return PickleValue::row(kind, static_cast<std::uint32_t>(rows->size() - 1));
    }

    PickleValue entry() {
        SnapshotEntry row;
        const PickleValue& action = dict_[kAction];
        if (action.kind != Kind::kText) {
            return fail("'action' is no text");
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
        row.address =
            oom ? dict_.count(kDeviceFree, kMostBytes) : dict_.count(kAddr, kHighestAddress);
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

    PickleValue frame() {
        if (!has(kName) || dict_[kName].kind != Kind::kText ||
            dict_[kFilename].kind != Kind::kText) {
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

    PickleValue block() {
        SnapshotBlock row;
        row.address = dict_.count(kAddress, kHighestAddress - kMostBytes);
        row.size_bytes = dict_.count(kSize, kMostBytes);
        if (dict_[kState].kind != Kind::kText) {
            return fail("'state' is no text");
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

    PickleValue former_use() {
        return add(&former_uses_,
                   {.requested_bytes = dict_.count(kRealSize, kMostBytes), .stack = stack()},
                   kFormerUseRow,
                   kMostRows);
    }

    PickleValue segment() {
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
            return fail("'blocks' is no list");
        }
        const auto blocks = reader().list(dict_[kBlocks]);
        row.block_count = static_cast<std::uint32_t>(blocks.size());
        row.first_block = blocks.empty() ? 0 : blocks.front().index;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            if (blocks[i].kind != Kind::kRow || blocks[i].row_kind != kBlockRow ||
                blocks[i].index != row.first_block + i) {
                return fail("'blocks' is no list of blocks of its own");
            }
        }
        dict_.note_keys();
        return add(&segments_, row, kSegmentRow, kMostRows);
    }

    PickleValue annotation() {
        SnapshotAnnotation row;
        row.begin = dict_.is_word(kStage, kStartWord);
        row.time_us = dict_.count(kTimeUs, kMostTimeUs);
        row.device = device();
        if (has(kName) && dict_[kName].kind == Kind::kText) {
            row.name = reader().texts().view(dict_[kName].index);
        }
        return add(&snapshot_.annotations, row, kAnnotationRow, kMostRows);
    }

    PickleValue settings() {
        settings_ = settings_of(dict_, divisions_);
        dict_.note_keys();
        return PickleValue::row(kSettingsRow, 0);
    }

    // Handles all remaining dicts: divisions are kept, others are ignored.
    PickleValue divisions(std::span<const PickleValue> items) {
        constexpr std::size_t kMostDivisions = 64;
        SnapshotDivisions row = divisions_of(reader(), items);
        if (row.empty() || divisions_.size() >= kMostDivisions) {
            return {};
        }
        divisions_.push_back(std::move(row));
        return PickleValue::row(kDivisionsRow, static_cast<std::uint32_t>(divisions_.size() - 1));
    }

    PickleValue whole() {
        if (found_) {
            return fail("a second snapshot");
        }
        found_ = true;
        dict_.note_keys();
        if (dict_.has(kTorchVersion, Kind::kText)) {
            release_ = reader().texts().view(dict_[kTorchVersion].index);
        }
        if (dict_.has(kWithoutPool, Kind::kList)) {
            for (const PickleValue& device : reader().list(dict_[kWithoutPool])) {
                if (device.is_count() && device.number < kDevicesKept) {
                    snapshot_.without_pool.insert(static_cast<std::uint32_t>(device.number));
                }
            }
        }
        if (has(kSegments) && !take_segments(kSegments, &snapshot_.segments)) {
            return {};
        }
        if (has(kHostSegments) && !take_segments(kHostSegments, &snapshot_.host_segments)) {
            return {};
        }
        std::erase_if(snapshot_.segments, [](const SnapshotSegment& segment) {
            return segment.device >= kDevicesKept;
        });
        if (has(kDeviceTraces)) {
            if (dict_[kDeviceTraces].kind != Kind::kList) {
                return fail("'device_traces' is no list");
            }
            for (const PickleValue& one : reader().list(dict_[kDeviceTraces])) {
                std::pair<std::uint32_t, std::uint32_t> range;
                if (!history(kDeviceTraces, one, &range)) {
                    return {};
                }
                if (snapshot_.histories.size() < kDevicesKept) {
                    snapshot_.histories.push_back(range);
                }
            }
        }
        if (has(kHostTraces) &&
            !history(kHostTraces, dict_[kHostTraces], &snapshot_.host_history)) {
            return {};
        }
        return PickleValue::row(kSnapshotRow, 0);
    }

    bool take_segments(Word key, std::vector<SnapshotSegment>* segments) {
        if (dict_[key].kind != Kind::kList) {
            fail(fmt::format("'{}' is no list", kWords[key]));
            return false;
        }
        for (const PickleValue& one : reader().list(dict_[key])) {
            if (one.kind != Kind::kRow || one.row_kind != kSegmentRow) {
                fail(fmt::format("'{}' is no list of segments", kWords[key]));
                return false;
            }
            segments->push_back(segments_[one.index]);
        }
        return true;
    }

    bool history(Word key,
                 const PickleValue& list,
                 std::pair<std::uint32_t, std::uint32_t>* range) {
        if (list.kind != Kind::kList) {
            fail(fmt::format("'{}' holds something else than lists of entries", kWords[key]));
            return false;
        }
        const auto entries = reader().list(list);
        const std::uint32_t first = entries.empty() ? 0 : entries.front().index;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if (entries[i].kind != Kind::kRow || entries[i].row_kind != kEntryRow ||
                entries[i].index != first + i) {
                fail(fmt::format("'{}' holds something else than entries of its own", kWords[key]));
                return false;
            }
        }
        *range = {first, static_cast<std::uint32_t>(entries.size())};
        return true;
    }

    void finish_columns() {
        snapshot_.nodes = stacks_.take_nodes();
        snapshot_.codes = stacks_.take_codes();
        snapshot_.times_known = times_known_ && !snapshot_.entries.empty();
        snapshot_.settings_known = settings_.has_value();
        if (settings_) {
            snapshot_.settings = settings_text(*settings_);
        } else if (std::any_of(snapshot_.segments.begin(),
                               snapshot_.segments.end(),
                               [](const SnapshotSegment& segment) { return segment.expandable; })) {
            // In 2.1 only the segments show that expandable segments are on.
            SnapshotSettings concluded;
            concluded.expandable_segments = true;
            snapshot_.settings = settings_text(concluded);
        }
        snapshot_.oldest_release = dict_.oldest_release();
        if (const std::string_view end = " or later"; release_.ends_with(end)) {
            snapshot_.oldest_release = release_.substr(0, release_.size() - end.size());
        } else {
            snapshot_.release = release_;
        }
        snapshot_.unknown_actions = by_name(unknown_actions_);
        snapshot_.unknown_keys = by_name(dict_.unknown_keys());
    }

    std::map<std::string, std::uint64_t> by_name(
        const std::map<std::uint32_t, std::uint64_t>& counts) {
        std::map<std::string, std::uint64_t> named;
        for (const auto& [text, count] : counts) {
            named[std::string(reader().texts().view(text))] = count;
        }
        return named;
    }

    SnapshotDict dict_;
    Snapshot snapshot_;
    TouchedAhead touched_entries_;
    SnapshotStacks stacks_;
    std::vector<SnapshotSegment> segments_;  // includes the host's segments
    std::vector<FormerUse> former_uses_;
    std::vector<SnapshotDivisions> divisions_;
    std::optional<SnapshotSettings> settings_;
    std::string release_;
    std::vector<std::uint32_t> frames_;
    std::map<std::uint32_t, std::uint32_t> labels_;  // key: text number
    std::map<std::uint32_t, std::uint64_t> unknown_actions_;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> pool_numbers_;
    bool times_known_ = true;
    bool found_ = false;
};

}  // namespace

bool looks_like_snapshot(const InputFile& file) {
    ByteStream stream(file);
    if (!stream.require(2)) {
        return stream.compressed();
    }
    return stream.data()[0] == 0x80 && stream.data()[1] >= 2 && stream.data()[1] <= 5;
}

Result<Snapshot> read_snapshot(const std::string& path, const InputFile& file) {
    ByteStream stream(file);
    const auto expected_entries =
        static_cast<std::size_t>(std::min(file.size() / kEntryBytes, kMostReserved));
    SnapshotRows rows(expected_entries);
    PickleReader reader(&stream, &rows, kWords, expected_entries);
    PickleValue value;
    if (!reader.read(&value) || !rows.finish(reader, value)) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: cannot be read as a PyTorch memory snapshot: {}{}. Give the "
                                 "file that torch.cuda.memory._dump_snapshot() wrote, copied in "
                                 "binary mode.",
                                 path,
                                 reader.failure(),
                                 stream.compressed() ? " (of the decompressed data)" : "")};
    }
    return rows.take();
}

}  // namespace fragtrace::analyzer
