// Reads a pickle of plain data: numbers, texts, tuples, lists, dicts. Protocols 2 to 5.
//
// The reader is made for untrusted bytes. It knows no globals and calls nothing: an opcode that
// would do so is an error. Everything that a pickler does not write is an error, too. The reader
// builds no tree. Each dict goes to a PickleSink as soon as it is filled. The sink stores what it
// needs in its own columns and returns a value that replaces the dict. Lists are kept until their
// dict has gone to the sink. The limits below bound the memory. Not thread-safe.
#pragma once

#include "analyzer/model/chunked_vector.h"
#include "analyzer/snapshot/text_table.h"
#include "analyzer/support/byte_stream.h"
#include "analyzer/support/touched_ahead.h"

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
        kFloat,    // number: the bits of the double
        kText,     // index: into PickleReader::texts()
        kPair,     // index: into PickleReader::pairs(); two integers
        kList,     // index: of the reader's object
        kDict,     // index: of the reader's object; not filled yet
        kRow,      // made by the sink: row_kind, index
        kOpaque,   // anything else; ignored
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

class PickleReader;

class PickleSink {
  public:
    virtual ~PickleSink() = default;

    // Receives a dict that was filled, completely or in part: key, value, key, value, and so on.
    // The returned value replaces the dict from now on. Lists among the values become invalid,
    // unless close_list() gave them a meaning.
    virtual PickleValue dict(PickleReader& reader, std::span<const PickleValue> items) = 0;
};

class PickleReader {
  public:
    static constexpr std::size_t kMostStack = std::size_t{1} << 23;  // values
    static constexpr std::size_t kMostMemo = std::size_t{1} << 26;
    static constexpr std::size_t kMostItems = std::size_t{1} << 24;  // in all open lists
    static constexpr std::size_t kMostDepth = 64;
    static constexpr std::size_t kMostPairs = 1 << 16;

    // `words[i]` becomes text number i. The stream and the sink must outlive the reader. Memory for
    // `expected_items` in open lists is reserved, but not used.
    PickleReader(ByteStream* stream,
                 PickleSink* sink,
                 std::span<const std::string_view> words,
                 std::size_t expected_items = 0);

    // Reads up to the end of the pickle and sets `result` to its value. Returns false on errors:
    // see failure().
    bool read(PickleValue* result);

    // The error message, with the byte offset. The sink sets it with fail(), too.
    [[nodiscard]] const std::string& failure() const { return failure_; }

    void fail(std::string_view what);

    [[nodiscard]] const TextTable& texts() const { return texts_; }

    [[nodiscard]] const std::vector<std::pair<std::uint64_t, std::uint64_t>>& pairs() const {
        return pairs_;
    }

    // The items of a list that is still open; valid until the reader continues.
    [[nodiscard]] std::span<const PickleValue> list(const PickleValue& value) const;
    // Sets the value that replaces a list from now on, wherever it is referred to.
    void close_list(const PickleValue& list, const PickleValue& meaning);

  private:
    // An open list: a range of items_.
    struct List {
        std::uint32_t object = 0;
        std::uint32_t first = 0;
        std::uint32_t count = 0;
    };

    // The target of a memo entry: kText and kPair, or kOpaque for an object. Small, because a
    // snapshot has three per entry. One number, which is written at once: bit-fields would be
    // written one after the other, and the second write would wait for the first.
    class Memo {
      public:
        Memo(PickleValue::Kind kind, std::uint32_t index)
            : bits_(index << kKindBits | static_cast<std::uint32_t>(kind)) {}

        [[nodiscard]] PickleValue::Kind kind() const {
            return static_cast<PickleValue::Kind>(bits_ & ((1u << kKindBits) - 1));
        }

        [[nodiscard]] std::uint32_t index() const { return bits_ >> kKindBits; }

      private:
        static constexpr unsigned kKindBits = 4;

        std::uint32_t bits_;
    };

    static constexpr std::uint32_t kMostIndex = (1u << 28) - 1;  // of a memo entry
    static_assert(kMostMemo <= kMostIndex && TextTable::kMostTexts <= kMostIndex);

    // A list or a dict, or the value that replaced it.
    struct Object {
        PickleValue::Kind kind;
        std::uint8_t row_kind;
        // kList: into lists_. kDict: the number of lists that are older than the dict. kRow: the
        // row.
        std::uint32_t index;
    };

    static constexpr std::uint32_t kNoList = 0xffffffffu;

    std::size_t known_object(const std::uint8_t* at, PickleValue* value) const;
    std::size_t plain_value(const std::uint8_t* at, PickleValue* value) const;
    std::size_t push_short_text(const std::uint8_t* at, const std::uint8_t* end);
    std::size_t push_item_value(const std::uint8_t* at, const std::uint8_t* end);
    const std::uint8_t* take_items(const std::uint8_t* at, const std::uint8_t* end);
    bool take_frequent_opcodes();
    bool step();
    bool take_operand(std::size_t size_bytes, std::uint64_t* value);
    bool push_number(std::uint8_t opcode);
    bool take_other(std::uint8_t opcode);

    bool need(std::size_t count) { return stream_.require(count) || fail_at_end(); }

    bool fail_at_end();

    bool push(const PickleValue& value) {
        if (stack_.size() >= kMostStack) {
            return fail_full_stack();
        }
        stack_.push_back(value);
        return true;
    }

    bool fail_full_stack();
    bool push_mark();
    bool push_text(std::size_t size_bytes);
    bool push_long(std::size_t size_bytes);
    bool push_integer(std::int64_t value);
    bool new_object(PickleValue::Kind kind);
    bool memoize(std::uint64_t index);

    bool recall(std::uint64_t index) {
        return index < memo_.size()
                   ? push(resolved({.kind = memo_[index].kind(), .index = memo_[index].index()}))
                   : fail_absent(index);
    }

    bool fail_absent(std::uint64_t index);
    bool pop_mark(std::size_t* begin);
    bool fill_dict(std::size_t begin);
    bool append(std::size_t begin);
    bool move_to_tail(List* list);
    bool make_room(std::size_t count);
    void close_lists(std::size_t first);
    bool tuple(std::size_t begin);

    // Sets `value`, which has no content yet, to the object of a memo entry.
    void recall(const Memo& memo, PickleValue* value) const {
        value->kind = memo.kind();
        value->index = memo.index();
        if (value->kind == PickleValue::Kind::kList || value->kind == PickleValue::Kind::kDict) {
            const Object& object = objects_[value->index];
            if (object.kind != PickleValue::Kind::kList &&
                object.kind != PickleValue::Kind::kDict) {
                value->kind = object.kind;
                value->row_kind = object.row_kind;
                value->index = object.index;
            }
        }
    }

    // Returns the value that has replaced a list or dict, if there is one.
    [[nodiscard]] PickleValue resolved(const PickleValue& value) const {
        if (value.kind != PickleValue::Kind::kList && value.kind != PickleValue::Kind::kDict) {
            return value;
        }
        const Object& object = objects_[value.index];
        if (object.kind == PickleValue::Kind::kList || object.kind == PickleValue::Kind::kDict) {
            return value;
        }
        return {.kind = object.kind, .row_kind = object.row_kind, .index = object.index};
    }

    ByteStream& stream_;
    PickleSink& sink_;
    TextTable texts_;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> pairs_;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint32_t> pair_numbers_;
    std::vector<PickleValue> stack_;
    std::vector<std::size_t> marks_;
    ChunkedVector<Memo> memo_;
    ChunkedVector<Object> objects_;
    std::vector<List> lists_;
    std::vector<PickleValue, HugePageAllocator<PickleValue>> items_;  // items of all open lists
    TouchedAhead touched_items_;
    // Items before this one must stay: they may belong to a list that grew while newer lists were
    // open.
    std::size_t floor_ = 0;
    std::uint32_t floor_list_ = kNoList;  // the oldest of these lists
    std::uint64_t moved_items_ = 0;
    std::string failure_;
    std::uint64_t opcode_offset_ = 0;
    bool done_ = false;
};

}  // namespace fragtrace::analyzer
