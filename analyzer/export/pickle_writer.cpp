#include "analyzer/export/pickle_writer.h"

#include "analyzer/support/terminal.h"

#include <bit>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kPickleBufferBytes = std::size_t{1} << 16;
// As many as Python's pickler adds at once. A reader keeps these items on its stack.
constexpr std::uint64_t kItemsAtOnce = 1000;

}  // namespace

PickleWriter::PickleWriter(std::FILE* stream) : stream_(stream), buffer_("\x80\x04") {}

void PickleWriter::begin_dict() {
    put('}');
    items_.push_back(0);
    opcodes_ += 'u';
}

void PickleWriter::begin_list() {
    put(']');
    items_.push_back(0);
    opcodes_ += 'e';
}

void PickleWriter::item() {
    if (items_.back() % kItemsAtOnce == 0) {
        if (items_.back() != 0) {
            put(opcodes_.back());
        }
        put('(');
    }
    ++items_.back();
    if (buffer_.size() > kPickleBufferBytes) {
        flush();
    }
}

void PickleWriter::end(char opcode) {
    if (items_.back() != 0) {
        put(opcode);
    }
    items_.pop_back();
    opcodes_.pop_back();
}

void PickleWriter::little(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) {
        put(static_cast<char>(value >> (8 * i) & 0xff));
    }
}

void PickleWriter::text(std::string_view text) {
    const std::string clean = printable(text);
    if (clean.size() < 256) {
        put('\x8c');
        little(clean.size(), 1);
    } else {
        put('X');
        little(clean.size(), 4);
    }
    buffer_ += clean;
}

// The shortest form, as Python's pickler writes it. The highest bit of the longer forms is a sign.
void PickleWriter::number(std::uint64_t value) {
    if (value < 0x100) {
        put('K');
        little(value, 1);
    } else if (value < 0x10000) {
        put('M');
        little(value, 2);
    } else if (value < 0x80000000) {
        put('J');
        little(value, 4);
    } else {
        const auto bytes = static_cast<unsigned>(std::bit_width(value)) / 8 + 1;
        put('\x8a');
        put(static_cast<char>(bytes));
        little(value, bytes < 8 ? bytes : 8);
        if (bytes > 8) {
            put('\0');
        }
    }
}

void PickleWriter::minus_one() {
    put('J');
    little(0xffffffff, 4);
}

void PickleWriter::real(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    put('G');
    for (unsigned i = 8; i-- > 0;) {
        put(static_cast<char>(bits >> (8 * i) & 0xff));
    }
}

void PickleWriter::pair(std::uint64_t first, std::uint64_t second) {
    number(first);
    number(second);
    put('\x86');
}

PickleWriter::Memo PickleWriter::memoize() {
    put('\x94');
    return memos_++;
}

void PickleWriter::recall(Memo memo) {
    if (memo < 0x100) {
        put('h');
        little(memo, 1);
    } else {
        put('j');
        little(memo, 4);
    }
}

void PickleWriter::flush() {
    std::fwrite(buffer_.data(), 1, buffer_.size(), stream_);
    buffer_.clear();
}

void PickleWriter::finish() {
    put('.');
    flush();
}

}  // namespace fragtrace::analyzer
