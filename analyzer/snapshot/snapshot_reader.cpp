#include "analyzer/snapshot/snapshot_reader.h"

#include "analyzer/snapshot/pickle.h"
#include "analyzer/snapshot/snapshot_settings.h"
#include "analyzer/snapshot/snapshot_stacks.h"
#include "analyzer/snapshot/snapshot_words.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fmt/format.h>
#include <optional>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using Kind = PickleValue::Kind;

// What a dict has become: PickleValue::row_kind.
enum RowKind : std::uint8_t {
    kEntryRow,
    kSegmentRow,
    kBlockRow,
    kFrameRow,
    kFormerUseRow,  // of a block, until 2.0
    kAnnotationRow,
    kSettingsRow,
    kDivisionsRow,
    kStackRow,       // a list of frames
    kBlockRangeRow,  // a list of blocks: index = the first, the count is looked up
    kSnapshotRow,    // the whole
};

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 60;
constexpr std::size_t kMostEntries = std::size_t{1} << 28;
constexpr std::size_t kMostRows = std::size_t{1} << 26;
constexpr std::uint32_t kDevicesKept = kMaxDevices;

// What became of a block's list of former uses: the last one is what it holds.
struct FormerUse {
    std::uint64_t requested_bytes = 0;
    std::uint32_t stack = 0;
};

// Turns the dicts of a snapshot into its columns.
class SnapshotRows final : public PickleSink {
  public:
    PickleValue dict(PickleReader& reader, std::span<const PickleItem> items) override {
        reader_ = &reader;
        present_ = 0;
        for (const PickleItem& item : items) {
            if (item.key.kind == Kind::kText && item.key.index < kKeyCount) {
                present_ |= std::uint64_t{1} << item.key.index;
                values_[item.key.index] = item.value;
            }
        }
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

    // The whole is a dict, or, as memory_snapshot() gives it, the list of segments alone.
    bool finish(PickleReader& reader, const PickleValue& value) {
        reader_ = &reader;
        if (value.kind == Kind::kRow && value.row_kind == kSnapshotRow) {
            finish_columns();
            return true;
        }
        if (value.kind == Kind::kList) {
            present_ = 0;
            values_[kSegments] = value;
            present_ |= std::uint64_t{1} << kSegments;
            whole();
            finish_columns();
            return reader.failure().empty();
        }
        reader.fail("the pickle holds something else than a snapshot");
        return false;
    }

    Snapshot take() { return std::move(snapshot_); }

  private:
    [[nodiscard]] bool has(Word word) const { return (present_ >> word & 1) != 0; }

    PickleValue fail(std::string_view what) {
        reader_->fail(what);
        return {};
    }

    // A size or an address; 0 where the key is absent.
    std::uint64_t count(Word word, std::uint64_t most = ~std::uint64_t{0}) {
        if (!has(word)) {
            return 0;
        }
        const PickleValue& value = values_[word];
        if (!value.is_count() || value.number > most) {
            fail(fmt::format("'{}' is no sensible number", kWords[word]));
            return 0;
        }
        return value.number;
    }

    [[nodiscard]] bool is_word(Word key, Word word) const {
        return has(key) && values_[key].kind == Kind::kText && values_[key].index == word;
    }

    std::uint64_t stream() {
        // A raw handle: whatever number it is.
        return has(kStream) && values_[kStream].kind == Kind::kInteger ? values_[kStream].number
                                                                       : 0;
    }

    std::uint32_t pool(Word word) {
        if (!has(word) || values_[word].kind != Kind::kPair) {
            return 0;
        }
        const auto& id = reader_->pairs()[values_[word].index];
        auto& pools = snapshot_.pools;
        if (id == pools[last_pool_]) {
            return last_pool_;
        }
        const auto found = std::find(pools.begin(), pools.end(), id);
        last_pool_ = static_cast<std::uint32_t>(found - pools.begin());
        if (found == pools.end()) {
            pools.push_back(id);
        }
        return last_pool_;
    }

    std::uint32_t stack() {
        if (!has(kFrames)) {
            return 0;
        }
        const PickleValue& value = values_[kFrames];
        if (value.kind == Kind::kRow && value.row_kind == kStackRow) {
            return value.index;
        }
        if (value.kind != Kind::kList) {
            return 0;
        }
        frames_.clear();
        for (const PickleValue& one : reader_->list(value)) {
            if (one.kind == Kind::kRow && one.row_kind == kFrameRow) {
                frames_.push_back(one.index);
            }
        }
        const std::uint32_t node = stacks_.stack(frames_);
        if (node == SnapshotStacks::kFull) {
            fail("more different stacks than a snapshot has");
            return 0;
        }
        reader_->close_list(value, PickleValue::row(kStackRow, node));
        return node;
    }

    template <typename Row>
    PickleValue add(std::vector<Row>* rows, const Row& row, RowKind kind, std::size_t most) {
        if (rows->size() >= most) {
            return fail("more entries than a snapshot has");
        }
        rows->push_back(row);
        return PickleValue::row(kind, static_cast<std::uint32_t>(rows->size() - 1));
    }

    PickleValue entry() {
        SnapshotEntry row;
        const PickleValue& action = values_[kAction];
        if (action.kind != Kind::kText) {
            return fail("'action' is no text");
        }
        const std::uint32_t word = action.index - kAllocWord;
        row.action = word <= kSnapshotWord - kAllocWord ? static_cast<SnapshotAction>(word)
                                                        : SnapshotAction::kOther;
        const bool oom = row.action == SnapshotAction::kOutOfMemory;
        row.address = oom ? count(kDeviceFree, kMostBytes) : count(kAddr);
        row.size_bytes = count(kSize, kMostBytes);
        row.time_us = count(kTimeUs);
        row.stream = stream();
        row.stack = stack();
        row.pool = pool(kPoolId);
        times_known_ = times_known_ && has(kTimeUs);
        seen_ |= present_;
        return add(&snapshot_.entries, row, kEntryRow, kMostEntries);
    }

    PickleValue frame() {
        if (!has(kName) || values_[kName].kind != Kind::kText ||
            values_[kFilename].kind != Kind::kText) {
            return fail("a frame without a name");
        }
        const std::uint32_t function = values_[kName].index;
        const std::uint32_t file = values_[kFilename].index;
        // Of C++ frames without line information it may be anything.
        const std::uint32_t line =
            has(kLine) && values_[kLine].is_count()
                ? static_cast<std::uint32_t>(std::min<std::uint64_t>(values_[kLine].number, ~0u))
                : 0;
        const std::uint32_t number = stacks_.frame(
            function, file, line, reader_->texts().view(function), reader_->texts().view(file));
        if (number == SnapshotStacks::kFull) {
            return fail("more different lines than a snapshot has");
        }
        return PickleValue::row(kFrameRow, number);
    }

    PickleValue block() {
        SnapshotBlock row;
        row.address = count(kAddress);
        row.size_bytes = count(kSize, kMostBytes);
        if (values_[kState].kind != Kind::kText) {
            return fail("'state' is no text");
        }
        row.live = !is_word(kState, kInactiveWord);
        row.pending = row.live && !is_word(kState, kActiveAllocatedWord);
        // A free block keeps what it was used for last, which says nothing.
        row.requested_bytes = row.live ? count(kRequestedSize, kMostBytes) : 0;
        row.stack = stack();
        if (row.live && has(kHistory) && values_[kHistory].kind == Kind::kList) {
            for (const PickleValue& one : reader_->list(values_[kHistory])) {
                if (one.kind == Kind::kRow && one.row_kind == kFormerUseRow) {
                    const FormerUse& use = former_uses_[one.index];
                    row.requested_bytes =
                        row.requested_bytes == 0 ? use.requested_bytes : row.requested_bytes;
                    row.stack = row.stack == 0 ? use.stack : row.stack;
                    break;  // the last use comes first
                }
            }
        }
        seen_ |= present_;
        return add(&snapshot_.blocks, row, kBlockRow, kMostRows);
    }

    PickleValue former_use() {
        return add(&former_uses_,
                   {.requested_bytes = count(kRealSize, kMostBytes), .stack = stack()},
                   kFormerUseRow,
                   kMostRows);
    }

    PickleValue segment() {
        SnapshotSegment row;
        row.address = count(kAddress);
        row.size_bytes = count(kTotalSize, kMostBytes);
        row.stream = stream();
        row.stack = stack();
        row.pool = pool(kSegmentPoolId);
        row.device = static_cast<std::uint32_t>(count(kDevice, ~0u));
        row.small = is_word(kSegmentType, kSmallWord);
        row.expandable = has(kIsExpandable) && values_[kIsExpandable].kind == Kind::kBool &&
                         values_[kIsExpandable].number != 0;
        if (values_[kBlocks].kind != Kind::kList) {
            return fail("'blocks' is no list");
        }
        const auto blocks = reader_->list(values_[kBlocks]);
        row.block_count = static_cast<std::uint32_t>(blocks.size());
        row.first_block = blocks.empty() ? 0 : blocks.front().index;
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            if (blocks[i].kind != Kind::kRow || blocks[i].row_kind != kBlockRow ||
                blocks[i].index != row.first_block + i) {
                return fail("'blocks' is no list of blocks of its own");
            }
        }
        seen_ |= present_;
        return add(&segments_, row, kSegmentRow, kMostRows);
    }

    PickleValue annotation() {
        SnapshotAnnotation row;
        row.begin = is_word(kStage, kStartWord);
        row.time_us = count(kTimeUs);
        row.device = static_cast<std::uint32_t>(count(kDevice, ~0u));
        if (has(kName) && values_[kName].kind == Kind::kText) {
            row.name = reader_->texts().view(values_[kName].index);
        }
        return add(&snapshot_.annotations, row, kAnnotationRow, kMostRows);
    }

    PickleValue settings() {
        SnapshotSettings& kept = settings_.emplace();
        const auto number = [this](Word word) {
            return has(word) && values_[word].kind == Kind::kInteger ? values_[word].number
                                                                     : kUnknown64;
        };
        kept.max_split_bytes = number(kMaxSplitSize);
        if (has(kConf) && values_[kConf].kind == Kind::kText) {
            kept.text = reader_->texts().view(values_[kConf].index);
        }
        if (has(kGcThreshold) && values_[kGcThreshold].kind == Kind::kFloat) {
            kept.garbage_collection_threshold = std::bit_cast<double>(values_[kGcThreshold].number);
        }
        kept.expandable_segments = has(kExpandableSegments) &&
                                   values_[kExpandableSegments].kind == Kind::kBool &&
                                   values_[kExpandableSegments].number != 0;
        if (has(kRoundup) && values_[kRoundup].kind == Kind::kRow &&
            values_[kRoundup].row_kind == kDivisionsRow) {
            kept.divisions = divisions_[values_[kRoundup].index];
        }
        seen_ |= present_;
        return PickleValue::row(kSettingsRow, 0);
    }

    // {"1": 0, "2": 4, ...}: megabytes and divisions. Other dicts are of no interest.
    PickleValue divisions(std::span<const PickleItem> items) {
        constexpr std::size_t kMostDivisions = 64;
        std::vector<std::pair<std::string, std::uint64_t>> row;
        for (const PickleItem& item : items) {
            if (items.size() > kMostDivisions || item.key.kind != Kind::kText ||
                !item.value.is_count()) {
                return {};
            }
            const std::string_view key = reader_->texts().view(item.key.index);
            if (key.empty() || key.find_first_not_of("0123456789") != std::string_view::npos) {
                return {};
            }
            row.emplace_back(key, item.value.number);
        }
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
        seen_ |= present_;
        if (has(kSegments)) {
            if (values_[kSegments].kind != Kind::kList) {
                return fail("'segments' is no list");
            }
            for (const PickleValue& one : reader_->list(values_[kSegments])) {
                if (one.kind != Kind::kRow || one.row_kind != kSegmentRow) {
                    return fail("'segments' is no list of segments");
                }
                if (segments_[one.index].device < kDevicesKept) {
                    snapshot_.segments.push_back(segments_[one.index]);
                }
            }
        }
        if (has(kDeviceTraces)) {
            if (values_[kDeviceTraces].kind != Kind::kList) {
                return fail("'device_traces' is no list");
            }
            for (const PickleValue& one : reader_->list(values_[kDeviceTraces])) {
                if (!history(one)) {
                    return {};
                }
            }
        }
        return PickleValue::row(kSnapshotRow, 0);
    }

    bool history(const PickleValue& device) {
        if (device.kind != Kind::kList) {
            fail("'device_traces' is no list of lists");
            return false;
        }
        const auto entries = reader_->list(device);
        const std::uint32_t first = entries.empty() ? 0 : entries.front().index;
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if (entries[i].kind != Kind::kRow || entries[i].row_kind != kEntryRow ||
                entries[i].index != first + i) {
                fail("'device_traces' holds something else than entries of its own");
                return false;
            }
        }
        if (snapshot_.histories.size() < kDevicesKept) {
            snapshot_.histories.emplace_back(first, static_cast<std::uint32_t>(entries.size()));
        }
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
            // 2.1 says it of its segments alone.
            SnapshotSettings concluded;
            concluded.expandable_segments = true;
            snapshot_.settings = settings_text(concluded);
        }
        snapshot_.oldest_release = oldest_release();
        snapshot_.other_actions = static_cast<std::uint64_t>(std::count_if(
            snapshot_.entries.begin(), snapshot_.entries.end(), [](const SnapshotEntry& entry) {
                return entry.action == SnapshotAction::kOther;
            }));
    }

    // The keys tell, from the newest: a snapshot names no release.
    [[nodiscard]] std::string oldest_release() const {
        const auto seen = [this](Word word) { return (seen_ >> word & 1) != 0; };
        return seen(kMaxCachedSize)         ? "2.14"
               : seen(kHostSegments)        ? "2.13"
               : seen(kPoolId)              ? "2.12"
               : seen(kUserMetadata)        ? "2.10"
               : seen(kCompileContext)      ? "2.9"
               : seen(kRecordStreamReuse)   ? "2.9"
               : seen(kExternalAnnotations) ? "2.6"
               : seen(kAllocatorSettings)   ? "2.2"
               : seen(kIsExpandable)        ? "2.1"
               : seen(kDeviceTraces)        ? "2.0"
                                            : "1.13";
    }

    PickleReader* reader_ = nullptr;
    std::uint64_t present_ = 0;  // bit per key of the dict that is looked at
    std::uint64_t seen_ = 0;     // of all
    std::array<PickleValue, kKeyCount> values_ = {};
    Snapshot snapshot_;
    SnapshotStacks stacks_;
    std::vector<SnapshotSegment> segments_;  // the host's among them
    std::vector<FormerUse> former_uses_;
    std::vector<std::vector<std::pair<std::string, std::uint64_t>>> divisions_;
    std::optional<SnapshotSettings> settings_;
    std::vector<std::uint32_t> frames_;
    std::uint32_t last_pool_ = 0;
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
    SnapshotRows rows;
    PickleReader reader(&stream, &rows, kWords);
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
