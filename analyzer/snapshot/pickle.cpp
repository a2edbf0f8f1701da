#include "analyzer/snapshot/pickle.h"

#include "analyzer/snapshot/pickle_opcodes.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kMostTextBytes = ByteStream::kMostAtOnce;
constexpr std::size_t kLongBytes = 9;  // an unsigned 64-bit number and its sign

// Opcodes that push a number or a truth value.
bool is_number(std::uint8_t opcode) {
    constexpr std::string_view kNumbers = "KMJ\x8a\x8bG\x88\x89";
    return kNumbers.find(static_cast<char>(opcode)) != std::string_view::npos;
}

// Opcodes that call a function or load code.
bool is_code(std::uint8_t opcode) {
    constexpr std::string_view kCode = "cRbio\x81\x82\x83\x84\x92\x93PQ";
    return kCode.find(static_cast<char>(opcode)) != std::string_view::npos;
}

}  // namespace

PickleReader::PickleReader(ByteStream* stream,
                           PickleSink* sink,
                           std::span<const std::string_view> words,
                           std::size_t expected_items)
    : stream_(*stream), sink_(*sink) {
    items_.reserve(std::min(expected_items, kMostItems));
    touched_items_.start(items_.data(), items_.capacity() * sizeof(PickleValue));
    for (const std::string_view word : words) {
        texts_.number(word);
    }
}

void PickleReader::fail(std::string_view what) {
    if (failure_.empty()) {
        failure_ = fmt::format("byte {}: {}", opcode_offset_, what);
    }
}

bool PickleReader::read(PickleValue* result) {
    if (!need(2)) {
        return false;
    }
    if (stream_.data()[0] != kProto || stream_.data()[1] < 2 || stream_.data()[1] > 5) {
        fail("not the start of a pickle of protocol 2 to 5");
        return false;
    }
    while (!done_) {
        bool taken = take_frequent_opcodes();
        if (taken) {
            opcode_offset_ = stream_.offset();
            taken = step();
        }
        if (!taken || !failure_.empty()) {
            if (failure_.empty()) {
                fail("damaged");
            }
            return false;
        }
    }
    if (stack_.size() != 1 || !marks_.empty()) {
        fail("the pickle ends in the middle of a list or dict");
        return false;
    }
    *result = resolved(stack_.back());
    return true;
}

std::span<const PickleValue> PickleReader::list(const PickleValue& value) const {
    const PickleValue now = resolved(value);
    if (now.kind != Kind::kList) {
        return {};
    }
    const List& list = lists_[objects_[now.index].index];
    return std::span(items_).subspan(list.first, list.count);
}

void PickleReader::close_list(const PickleValue& list, const PickleValue& meaning) {
    if (list.kind == Kind::kList) {
        objects_[list.index] = {meaning.kind, meaning.row_kind, meaning.index};
    }
}

bool PickleReader::fail_at_end() {
    fail(!stream_.failure().empty() ? std::string_view(stream_.failure())
                                    : "the file ends here, in the middle of the pickle");
    return false;
}

bool PickleReader::fail_full_stack() {
    fail("more values in one list or dict than a snapshot has");
    return false;
}

// Reads an operand of fixed size.
bool PickleReader::take_operand(std::size_t size_bytes, std::uint64_t* value) {
    if (!need(size_bytes)) {
        return false;
    }
    *value = little_endian(stream_.data(), size_bytes);
    stream_.skip(size_bytes);
    return true;
}

bool PickleReader::step() {
    if (!need(1)) {
        return false;
    }
    const std::uint8_t opcode = *stream_.data();
    stream_.skip(1);
    std::size_t begin = 0;
    switch (opcode) {
        case kMark:
            return push_mark();
        case kEmptyDict:
            return new_object(Kind::kDict);
        case kEmptyList:
            return new_object(Kind::kList);
        case kSetItems:
            return pop_mark(&begin) && fill_dict(begin);
        case kAppends:
            return pop_mark(&begin) && append(begin);
        case kSetItem:
            return stack_.size() >= 3 && fill_dict(stack_.size() - 2);
        case kAppend:
            return stack_.size() >= 2 && append(stack_.size() - 1);
        case kEmptyTuple:
            return tuple(stack_.size());
        case kTuple1:
        case kTuple2:
        case kTuple3: {
            const std::size_t count = opcode - kTuple1 + 1u;
            return stack_.size() >= count && tuple(stack_.size() - count);
        }
        case kTuple:
            return pop_mark(&begin) && tuple(begin);
        case kStop:
            done_ = true;
            return true;
        default:
            return is_number(opcode) ? push_number(opcode) : take_other(opcode);
    }
}

bool PickleReader::push_number(std::uint8_t opcode) {
    std::uint64_t value = 0;
    switch (opcode) {
        case kInt1:
            return take_operand(1, &value) && push_integer(static_cast<std::int64_t>(value));
        case kInt2:
            return take_operand(2, &value) && push_integer(static_cast<std::int64_t>(value));
        case kInt4:
            return take_operand(4, &value) &&
                   push_integer(static_cast<std::int32_t>(static_cast<std::uint32_t>(value)));
        case kLong1:
            return take_operand(1, &value) && push_long(value);
        case kLong4:
            return take_operand(4, &value) && push_long(value);
        case kFloat: {
            if (!need(8)) {
                return false;
            }
            std::uint64_t bits = 0;
            for (std::size_t i = 0; i < 8; ++i) {
                bits = bits << 8 | stream_.data()[i];
            }
            stream_.skip(8);
            return push({.kind = Kind::kFloat, .number = bits});
        }
        default:  // kTrue, kFalse
            return push({.kind = Kind::kBool, .number = opcode == kTrue ? 1u : 0u});
    }
}

// Handles texts, the memo, and opcodes without a value.
bool PickleReader::take_other(std::uint8_t opcode) {
    std::uint64_t value = 0;
    switch (opcode) {
        case kBinGet:
            return take_operand(1, &value) && recall(value);
        case kLongBinGet:
            return take_operand(4, &value) && recall(value);
        case kMemoize:
            return memoize(memo_.size());
        case kBinPut:
            return take_operand(1, &value) && memoize(value);
        case kLongBinPut:
            return take_operand(4, &value) && memoize(value);
        case kShortText:
            return take_operand(1, &value) && push_text(value);
        case kText:
            return take_operand(4, &value) && push_text(value);
        case kLongText:
            return take_operand(8, &value) && push_text(value);
        case kFrame:
            return take_operand(8, &value);
        case kProto:
            return take_operand(1, &value) && opcode_offset_ == 0;
        case kNone:
            return push({.kind = Kind::kNone});
        default:
            fail(
                is_code(opcode)
                    ? fmt::format("opcode {:#04x} would load or call code, which no snapshot needs",
                                  opcode)
                    : fmt::format("opcode {:#04x}, which no snapshot has", opcode));
            return false;
    }
}

bool PickleReader::push_mark() {
    if (marks_.size() >= kMostDepth) {
        fail("nested deeper than a snapshot is");
        return false;
    }
    marks_.push_back(stack_.size());
    return true;
}

bool PickleReader::push_integer(std::int64_t value) {
    return push({.kind = Kind::kInteger,
                 .negative = value < 0,
                 .number = static_cast<std::uint64_t>(value)});
}

bool PickleReader::push_long(std::size_t size_bytes) {
    if (size_bytes > kLongBytes) {
        fail(fmt::format("a number of {} bytes", size_bytes));
        return false;
    }
    if (!need(size_bytes)) {
        return false;
    }
    const std::uint8_t* data = stream_.data();
    std::uint64_t value = little_endian(data, std::min<std::size_t>(size_bytes, 8));
    const bool negative = size_bytes != 0 && (data[size_bytes - 1] & 0x80) != 0;
    if (negative && size_bytes < 8) {
        value |= ~std::uint64_t{0} << (8 * size_bytes);
    }
    if (size_bytes == kLongBytes && data[8] != 0) {
        fail("a number of more than 64 bits");
        return false;
    }
    stream_.skip(size_bytes);
    return push({.kind = Kind::kInteger, .negative = negative, .number = value});
}

bool PickleReader::push_text(std::size_t size_bytes) {
    if (size_bytes > kMostTextBytes) {
        fail(fmt::format("a text of {} bytes", size_bytes));
        return false;
    }
    if (!need(size_bytes)) {
        return false;
    }
    const std::uint32_t number =
        texts_.number({reinterpret_cast<const char*>(stream_.data()), size_bytes});
    if (number == TextTable::kFull) {
        fail("more different texts than a snapshot has");
        return false;
    }
    stream_.skip(size_bytes);
    return push({.kind = Kind::kText, .index = number});
}

}  // namespace fragtrace::analyzer
