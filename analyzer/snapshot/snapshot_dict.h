// The current dict of a snapshot: which of the known keys it has, and their values.
//
// Values are checked when they are requested; errors go to the reader.
#pragma once

#include "analyzer/snapshot/pickle.h"
#include "analyzer/snapshot/snapshot_words.h"

#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// The types of rows that dicts and lists become: PickleValue::row_kind.
enum SnapshotRowKind : std::uint8_t {
    kEntryRow,
    kSegmentRow,
    kBlockRow,
    kFrameRow,
    kFormerUseRow,  // former use of a block, until 2.0
    kAnnotationRow,
    kSettingsRow,
    kDivisionsRow,
    kStackRow,       // a list of frames
    kBlockRangeRow,  // a list of blocks; index: its first block
    kSnapshotRow,    // the whole snapshot
};

class SnapshotDict {
  public:
    // The items must outlive the use of this dict.
    void open(PickleReader* reader, std::span<const PickleValue> items) {
        reader_ = reader;
        present_ = 0;
        unknown_.clear();
        for (std::size_t i = 0; i < items.size(); i += 2) {
            const PickleValue& key = items[i];
            if (key.kind != PickleValue::Kind::kText) {
                continue;
            }
            if (key.index < kKeyCount) {
                present_ |= std::uint64_t{1} << key.index;
                values_[key.index] = &items[i + 1];
            } else {
                unknown_.push_back(key.index);
            }
        }
    }

    // Opens a dict that has only this key. The value must outlive the use of this dict.
    void open(PickleReader* reader, Word word, const PickleValue& value) {
        reader_ = reader;
        present_ = std::uint64_t{1} << word;
        unknown_.clear();
        values_[word] = &value;
    }

    [[nodiscard]] PickleReader& reader() const { return *reader_; }

    [[nodiscard]] bool has(Word word) const { return (present_ >> word & 1) != 0; }

    [[nodiscard]] bool has(Word word, PickleValue::Kind kind) const {
        return has(word) && values_[word]->kind == kind;
    }

    // The key must be present.
    [[nodiscard]] const PickleValue& operator[](Word word) const { return *values_[word]; }

    // A size or an address; 0 if the key is absent.
    [[nodiscard]] std::uint64_t count(Word word, std::uint64_t most = ~std::uint64_t{0}) const {
        if (!has(word)) {
            return 0;
        }
        const PickleValue& value = *values_[word];
        if (!value.is_count() || value.number > most) {
            reader_->fail(fmt::format("'{}' is not a possible number", kWords[word]));
            return 0;
        }
        return value.number;
    }

    [[nodiscard]] bool is_word(Word key, Word word) const {
        return has(key, PickleValue::Kind::kText) && values_[key]->index == word;
    }

    [[nodiscard]] bool is_true(Word key) const {
        return has(key, PickleValue::Kind::kBool) && values_[key]->number != 0;
    }

    // Marks the keys of this dict as seen.
    void note_keys() {
        seen_ |= present_;
        constexpr std::size_t kMostKeys = 4096;
        for (const std::uint32_t key : unknown_) {
            if (unknown_seen_.size() < kMostKeys || unknown_seen_.contains(key)) {
                ++unknown_seen_[key];
            }
        }
    }

    // Marks an entry of the kind "annotate" as seen.
    void note_annotation() { annotation_seen_ = true; }

    // Counts of noted keys that are not in kWords, by text number.
    [[nodiscard]] const std::map<std::uint32_t, std::uint64_t>& unknown_keys() const {
        return unknown_seen_;
    }

    // Derives the release from what was seen, newest first, because a snapshot does not name its
    // release.
    [[nodiscard]] std::string oldest_release() const {
        const auto seen = [this](Word word) { return (seen_ >> word & 1) != 0; };
        return seen(kInternalMetadata)      ? "2.15"
               : annotation_seen_           ? "2.14"
               : seen(kMaxCachedSize)       ? "2.14"
               : seen(kHostSegments)        ? "2.14"
               : seen(kHostTraces)          ? "2.14"
               : seen(kPoolId)              ? "2.12"
               : seen(kUserMetadata)        ? "2.10"
               : seen(kRecordStreamReuse)   ? "2.9"
               : seen(kCompileContext)      ? "2.8"
               : seen(kExternalAnnotations) ? "2.6"
               : seen(kAllocatorSettings)   ? "2.2"
               : seen(kIsExpandable)        ? "2.1"
               : seen(kDeviceTraces)        ? "2.0"
                                            : "1.13";
    }

  private:
    static_assert(kKeyCount <= 64);

    PickleReader* reader_ = nullptr;
    std::uint64_t present_ = 0;  // one bit per key of this dict
    std::uint64_t seen_ = 0;     // one bit per key of all dicts
    bool annotation_seen_ = false;
    std::vector<std::uint32_t> unknown_;  // of this dict
    std::map<std::uint32_t, std::uint64_t> unknown_seen_;
    std::array<const PickleValue*, kKeyCount> values_ = {};  // valid for the keys in present_
};

}  // namespace fragtrace::analyzer
