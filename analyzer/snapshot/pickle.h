// Reads a pickle of plain data: numbers, texts, tuples, lists, dicts. Protocols 2 to 5.
//
// A reader for untrusted bytes. It knows no globals and calls nothing: an opcode that would is an
// error, and so is everything that a pickler does not write. Nothing is kept as a tree: each dict
// is shown to a PickleSink as soon as it is filled, which keeps what it needs in its own columns
// and says what stands for the dict from then on. Lists are kept until the dict that holds them has
// been shown. Memory is bounded by the limits below. Not thread-safe.
#pragma once

#include "analyzer/snapshot/byte_stream.h"
#include "analyzer/snapshot/text_table.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

struct PickleValue {
    enum class Kind : std::uint8_t {
        kNone,
        kBool,
        kInteger,  // number; negative: two's complement
        kFloat,    // number: its bits
        kText,     // index: its number in PickleReader::texts()
        kPair,     // index: in PickleReader::pairs(): a tuple of two integers
        kList,     // index: an object of the reader
        kDict,     // likewise, not filled yet
        kRow,      // of the sink: row_kind, index
        kOpaque,   // of no interest
    };
    Kind kind = Kind::kOpaque;
    bool negative = false;
    std::uint8_t row_kind = 0;
    std::uint32_t index = 0;
    std::uint64_t number = 0;

    static PickleValue row(std::uint8_t kind, std::uint32_t index) {
        return {.kind = Kind::kRow, .row_kind = kind, .index = index};
    }

    // An integer that is not negative.
    [[nodiscard]] bool is_count() const { return kind == Kind::kInteger && !negative; }
};

static_assert(sizeof(PickleValue) == 16);

struct PickleItem {
    PickleValue key;
    PickleValue value;
};

static_assert(sizeof(PickleItem) == 32);

class PickleReader;

class PickleSink {
  public:
    virtual ~PickleSink() = default;

    // A dict that was filled, at once or in part. What it gives stands for the dict from now on.
    // The lists among the values are gone afterwards, unless close_list() said what they became.
    virtual PickleValue dict(PickleReader& reader, std::span<const PickleItem> items) = 0;
};

class PickleReader {
  public:
    static constexpr std::size_t kMostStack = std::size_t{1} << 23;  // values
    static constexpr std::size_t kMostMemo = std::size_t{1} << 26;
    static constexpr std::size_t kMostItems = std::size_t{1} << 24;  // of open lists
    static constexpr std::size_t kMostDepth = 64;
    static constexpr std::size_t kMostPairs = 1 << 16;

    // `words[i]` is text number i. The stream and the sink must outlive the reader.
    PickleReader(ByteStream* stream, PickleSink* sink, std::span<const std::string_view> words);

    // Reads up to the end of the pickle and gives its value. False: see failure().
    bool read(PickleValue* result);

    // What is wrong, with the byte where; for the sink to set as well.
    [[nodiscard]] const std::string& failure() const { return failure_; }

    void fail(std::string_view what);

    [[nodiscard]] const TextTable& texts() const { return texts_; }

    [[nodiscard]] const std::vector<std::pair<std::uint64_t, std::uint64_t>>& pairs() const {
        return pairs_;
    }

    // Of a list that is still open; valid until the reader goes on.
    [[nodiscard]] std::span<const PickleValue> list(const PickleValue& value) const;
    // What a list stands for from now on, wherever it is referred to.
    void close_list(const PickleValue& list, const PickleValue& meaning);

  private:
    // An open list: a range of items_.
    struct List {
        std::uint32_t object = 0;
        std::uint32_t first = 0;
        std::uint32_t count = 0;
    };

    // What a memo entry refers to: kText and kPair, or kOpaque for an object.
    struct Memo {
        PickleValue::Kind kind;
        std::uint32_t index;
    };

    // A list or a dict, and what it means by now.
    struct Object {
        PickleValue::Kind kind;
        std::uint8_t row_kind;
        std::uint32_t index;  // kList: into lists_; kDict: lists older than it; kRow: the row
    };

    static constexpr std::uint32_t kNoList = 0xffffffffu;

    bool step();
    bool need(std::size_t count);
    bool push(const PickleValue& value);
    bool push_text(std::size_t size_bytes);
    bool push_long(std::size_t size_bytes);
    bool push_integer(std::int64_t value);
    bool new_object(PickleValue::Kind kind);
    bool memoize(std::uint64_t index);
    bool recall(std::uint64_t index);
    bool pop_mark(std::size_t* begin);
    bool fill_dict(std::size_t begin);
    bool append(std::size_t begin);
    bool move_to_tail(List* list);
    void close_lists(std::size_t first);
    bool tuple(std::size_t begin);
    [[nodiscard]] PickleValue resolved(const PickleValue& value) const;

    ByteStream& stream_;
    PickleSink& sink_;
    TextTable texts_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs_;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> pair_numbers_;
    std::vector<PickleValue> stack_;
    std::vector<std::size_t> marks_;
    std::vector<Memo> memo_;
    std::vector<Object> objects_;
    std::vector<List> lists_;
    std::vector<PickleValue> items_;  // of the open lists
    // No list that was appended to while another lay behind it ends after this item.
    std::size_t floor_ = 0;
    std::uint32_t floor_list_ = kNoList;  // the first of these lists
    std::vector<PickleItem> dict_;
    std::uint64_t moved_items_ = 0;
    std::string failure_;
    std::uint64_t opcode_offset_ = 0;
    bool done_ = false;
};

}  // namespace fragtrace::analyzer
