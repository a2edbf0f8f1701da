// Reads the bytes of a file in order, and decompresses gzip data.
//
// Uses one buffer, whatever the file's size. Not thread-safe.
#pragma once

#include "analyzer/support/input_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct z_stream_s;

namespace fragtrace::analyzer {

class ByteStream {
  public:
    // The largest count that require() accepts.
    static constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;

    // The file must outlive the stream.
    explicit ByteStream(const InputFile& file);
    ~ByteStream();
    ByteStream(const ByteStream&) = delete;
    ByteStream& operator=(const ByteStream&) = delete;

    // Makes the next `count` bytes available at data(). Returns false if the stream ends before, or
    // failed.
    bool require(std::size_t count) {
        return static_cast<std::size_t>(end_ - at_) >= count || refill(count);
    }

    [[nodiscard]] const std::uint8_t* data() const { return at_; }

    // The number of bytes at data(): at least what was required, unless the stream ends before.
    [[nodiscard]] std::size_t available() const { return static_cast<std::size_t>(end_ - at_); }

    // `count` must not exceed what was required.
    void skip(std::size_t count) { at_ += count; }

    // The offset of data() in the (decompressed) stream.
    [[nodiscard]] std::uint64_t offset() const {
        return buffer_offset_ + static_cast<std::uint64_t>(at_ - buffer_.data());
    }

    [[nodiscard]] bool compressed() const { return gzip_ != nullptr; }

    // Why the compressed data cannot be read any further; empty if they can, or at their end.
    [[nodiscard]] const std::string& failure() const { return failure_; }

  private:
    bool refill(std::size_t count);
    std::size_t read_some(std::uint8_t* into, std::size_t room);
    std::size_t inflate_some(std::uint8_t* into, std::size_t room);

    const InputFile& file_;
    std::uint64_t file_offset_ = 0;
    std::uint64_t inflated_bytes_ = 0;
    std::vector<std::uint8_t> buffer_;
    const std::uint8_t* at_ = nullptr;
    const std::uint8_t* end_ = nullptr;
    std::uint64_t buffer_offset_ = 0;
    std::unique_ptr<z_stream_s> gzip_;
    std::vector<std::uint8_t> packed_;
    bool between_members_ = false;
    std::string failure_;
};

}  // namespace fragtrace::analyzer
