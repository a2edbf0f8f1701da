// The opcodes of which nearly all of a snapshot consists. pickle.cpp reads all others.
#include "analyzer/snapshot/pickle.h"
#include "analyzer/snapshot/pickle_opcodes.h"

namespace fragtrace::analyzer {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kMostPlainBytes = 2 + 8;  // opcode, size, number
constexpr std::size_t kMostKeyBytes = 1 + 4;    // opcode, number of a known text

}  // namespace

// Reads an opcode that pushes a known object, and returns its size in bytes. 0: another opcode, or
// an error. kMostKeyBytes must be available.
//
// Writes field by field into the value's place on the stack: a copy of a value that was just
// written would wait until all its fields are in the cache.
inline std::size_t PickleReader::known_object(const std::uint8_t* at, PickleValue* value) const {
    std::size_t size_bytes = 0;
    std::uint64_t index = 0;
    if (*at == kLongBinGet) {
        index = little_endian(at + 1, 4);
        size_bytes = 5;
    } else if (*at == kBinGet) {
        index = at[1];
        size_bytes = 2;
    } else {
        return 0;
    }
    if (index >= memo_.size()) {
        return 0;
    }
    recall(memo_[index], value);
    return size_bytes;
}

// The same for an opcode that pushes a number or a known object. kMostPlainBytes must be available.
inline std::size_t PickleReader::plain_value(const std::uint8_t* at, PickleValue* value) const {
    const auto number = [value](std::uint64_t count, std::size_t size_bytes) {
        value->kind = Kind::kInteger;
        value->number = count;
        return size_bytes;
    };
    switch (*at) {
        case kInt1:
            return number(at[1], 2);
        case kInt2:
            return number(little_endian(at + 1, 2), 3);
        case kInt4:
            return at[4] >= 0x80 ? 0 : number(little_endian(at + 1, 4), 5);
        case kLong1: {
            const std::size_t bytes = at[1];  // addresses and times have 6 or 7
            return bytes == 0 || bytes >= 8 || at[1 + bytes] >= 0x80
                       ? 0
                       : number(little_endian(at + 2, 8) & (~std::uint64_t{0} >> (64 - 8 * bytes)),
                                2 + bytes);
        }
        default:
            return known_object(at, value);
    }
}

// Pushes a text of at most 255 bytes and returns the size of its opcode in bytes. 0: it is not
// completely in the buffer, or there is no room for another text.
inline std::size_t PickleReader::push_short_text(const std::uint8_t* at, const std::uint8_t* end) {
    const std::size_t text_bytes = at[1];
    if (static_cast<std::size_t>(end - at) < 2 + text_bytes) {
        return 0;
    }
    const std::uint32_t text = texts_.number({reinterpret_cast<const char*>(at + 2), text_bytes});
    if (text == TextTable::kFull) {
        return 0;
    }
    PickleValue& value = stack_.emplace_back();
    value.kind = Kind::kText;
    value.index = text;
    return 2 + text_bytes;
}

// Pushes the value of an item of a dict, and returns the size of its opcodes in bytes. 0: other
// opcodes, or an error. 2 * kMostPlainBytes must be available.
inline std::size_t PickleReader::push_item_value(const std::uint8_t* at, const std::uint8_t* end) {
    constexpr std::size_t kPairBytes =
        5;  // two numbers of one byte, and the opcode that joins them
    const std::uint64_t offset = opcode_offset_;
    std::size_t size_bytes = 0;
    if (*at == kInt1 && at[2] == kInt1 && at[4] == kTuple2) {
        opcode_offset_ = offset + kPairBytes - 1;
        size_bytes =
            push_integer(at[1]) && push_integer(at[3]) && tuple(stack_.size() - 2) ? kPairBytes : 0;
    } else if (*at == kShortText) {
        size_bytes = push_short_text(at, end);
    } else if (*at == kEmptyList) {
        size_bytes = new_object(Kind::kList) ? 1 : 0;
    } else {
        size_bytes = plain_value(at, &stack_.emplace_back());
        if (size_bytes == 0) {
            stack_.pop_back();
        }
        return size_bytes;
    }
    if (size_bytes != 0 && at + size_bytes < end && at[size_bytes] == kMemoize) {
        opcode_offset_ = offset + size_bytes;
        size_bytes = memoize(memo_.size()) ? size_bytes + 1 : 0;
    }
    return size_bytes;
}

// Reads items of a dict, each a known text as the key and a frequent kind of value. Nearly all
// opcodes of a snapshot belong to such items, and pairs of opcodes are easier to predict for the
// processor than single ones. Returns the place of the first opcode that it did not read.
const std::uint8_t* PickleReader::take_items(const std::uint8_t* at, const std::uint8_t* end) {
    constexpr std::size_t kMostItemBytes = kMostKeyBytes + 2 * kMostPlainBytes;
    constexpr std::size_t kMostItemValues = 3;
    const std::uint64_t begin_offset = stream_.offset();
    while (static_cast<std::size_t>(end - at) >= kMostItemBytes &&
           stack_.size() + kMostItemValues <= kMostStack) {
        const std::size_t key_bytes = known_object(at, &stack_.emplace_back());
        if (key_bytes == 0) {
            stack_.pop_back();
            break;
        }
        at += key_bytes;
        opcode_offset_ = begin_offset + static_cast<std::uint64_t>(at - stream_.data());
        const std::size_t value_bytes = push_item_value(at, end);
        if (value_bytes == 0) {
            break;
        }
        at += value_bytes;
    }
    return at;
}

// Handles the most frequent opcodes, without a call for each of them. step() continues at any other
// one, and near the end of the buffer. Returns false on errors.
bool PickleReader::take_frequent_opcodes() {
    const std::uint8_t* const begin = stream_.data();
    const std::uint8_t* const end = begin + stream_.available();
    const std::uint64_t begin_offset = stream_.offset();
    const std::uint8_t* at = begin;
    while (static_cast<std::size_t>(end - at) >= kMostPlainBytes && stack_.size() < kMostStack) {
        opcode_offset_ = begin_offset + static_cast<std::uint64_t>(at - begin);
        std::size_t size_bytes = 1;  // 0: left to step()
        std::size_t first = 0;
        bool taken = true;
        switch (*at) {
            case kMemoize:
                taken = memoize(memo_.size());
                break;
            case kMark:
                taken = push_mark();
                at = taken ? take_items(at + 1, end) - 1 : at;
                break;
            case kTuple2:
                taken = stack_.size() >= 2 && tuple(stack_.size() - 2);
                break;
            case kEmptyDict:
                taken = new_object(Kind::kDict);
                break;
            case kEmptyList:
                taken = new_object(Kind::kList);
                break;
            case kSetItems:
                taken = pop_mark(&first) && fill_dict(first);
                break;
            case kAppends:
                taken = pop_mark(&first) && append(first);
                break;
            case kShortText:
                size_bytes = push_short_text(at, end);
                break;
            default:
                size_bytes = plain_value(at, &stack_.emplace_back());
                if (size_bytes == 0) {
                    stack_.pop_back();
                }
                break;
        }
        if (!taken || !failure_.empty()) {
            return false;
        }
        if (size_bytes == 0) {
            break;
        }
        at += size_bytes;
    }
    stream_.skip(static_cast<std::size_t>(at - begin));
    return true;
}

}  // namespace fragtrace::analyzer
