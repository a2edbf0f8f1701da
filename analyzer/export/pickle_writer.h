// Writes a pickle of plain data to a stream: protocol 4, which every reader of memory snapshots
// knows. Objects are written as they come, so that a pickle may be longer than the memory.
//
// The caller keeps the order of a pickle: key() before each value of a dict, item() before each
// item of a list. Not thread-safe.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

class PickleWriter {
  public:
    // The number of an object that can be written again by recall().
    using Memo = std::uint32_t;

    // Errors of the stream are not handled here.
    explicit PickleWriter(std::FILE* stream);

    void begin_dict();

    void end_dict() { end('u'); }

    void begin_list();

    void end_list() { end('e'); }

    // Also before each value of a dict; the key follows, then the value.
    void item();

    // The text becomes valid UTF-8 without control characters.
    void text(std::string_view text);
    void number(std::uint64_t value);
    void minus_one();
    void real(double value);

    void truth(bool value) { put(value ? '\x88' : '\x89'); }

    void pair(std::uint64_t first, std::uint64_t second);

    // Gives a number to the text that was just written, or to the list or dict that was just begun.
    // Call it before the first item().
    Memo memoize();
    void recall(Memo memo);

    // Ends the pickle.
    void finish();

  private:
    void put(char byte) { buffer_ += byte; }

    void little(std::uint64_t value, unsigned bytes);
    void end(char opcode);
    void flush();

    std::FILE* stream_;
    std::string buffer_;
    std::vector<std::uint64_t> items_;  // of each open dict or list
    std::string opcodes_;               // of each open dict or list: how items are added
    Memo memos_ = 0;
};

}  // namespace fragtrace::analyzer
