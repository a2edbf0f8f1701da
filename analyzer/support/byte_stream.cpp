#include "analyzer/support/byte_stream.h"

#include <cstring>
#include <fmt/format.h>
#include <zlib.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kPackedBytes = 64 << 10;
constexpr int kGzipOnly = 16 + MAX_WBITS;
// gzip shrinks snapshots to a tenth, very regular ones to a fortieth.
constexpr std::uint64_t kMostExpansion = 64;
constexpr std::uint64_t kFreeBytes = 4 << 20;

}  // namespace

ByteStream::ByteStream(const InputFile& file) : file_(file), buffer_(kMostAtOnce) {
    at_ = end_ = buffer_.data();
    std::uint8_t magic[2] = {};
    if (file.read_at(0, magic, sizeof magic) == sizeof magic && magic[0] == 0x1f &&
        magic[1] == 0x8b) {
        gzip_ = std::make_unique<z_stream_s>();
        packed_.resize(kPackedBytes);
        if (inflateInit2(gzip_.get(), kGzipOnly) != Z_OK) {
            failure_ = "no memory to decompress it";
        }
    }
}

ByteStream::~ByteStream() {
    if (gzip_ != nullptr) {
        inflateEnd(gzip_.get());
    }
}

bool ByteStream::refill(std::size_t count) {
    if (count > kMostAtOnce) {
        return false;
    }
    const auto kept = static_cast<std::size_t>(end_ - at_);
    buffer_offset_ += static_cast<std::uint64_t>(at_ - buffer_.data());
    std::memmove(buffer_.data(), at_, kept);
    at_ = buffer_.data();
    std::size_t filled = kept;
    while (filled < buffer_.size()) {
        const std::size_t more =
            gzip_ == nullptr ? read_some(buffer_.data() + filled, buffer_.size() - filled)
                             : inflate_some(buffer_.data() + filled, buffer_.size() - filled);
        if (more == 0) {
            break;
        }
        filled += more;
    }
    end_ = buffer_.data() + filled;
    return filled >= count;
}

std::size_t ByteStream::read_some(std::uint8_t* into, std::size_t room) {
    const std::size_t count = file_.read_at(file_offset_, into, room);
    file_offset_ += count;
    return count;
}

std::size_t ByteStream::inflate_some(std::uint8_t* into, std::size_t room) {
    gzip_->next_out = into;
    gzip_->avail_out = static_cast<unsigned>(room);
    if (inflated_bytes_ > kFreeBytes + kMostExpansion * file_.size()) {
        failure_ = fmt::format("its gzip data hold more than {} times their size", kMostExpansion);
        return 0;
    }
    while (failure_.empty() && gzip_->avail_out == room) {
        if (gzip_->avail_in == 0) {
            gzip_->next_in = packed_.data();
            gzip_->avail_in = static_cast<unsigned>(read_some(packed_.data(), packed_.size()));
            if (gzip_->avail_in == 0) {
                if (!between_members_) {
                    failure_ = "its gzip data end too early";
                }
                break;
            }
        }
        if (between_members_) {
            // Another member or padding may follow.
            if (*gzip_->next_in != 0x1f) {
                break;
            }
            between_members_ = false;
            inflateReset(gzip_.get());
        }
        const int state = inflate(gzip_.get(), Z_NO_FLUSH);
        if (state == Z_STREAM_END) {
            between_members_ = true;
        } else if (state != Z_OK && state != Z_BUF_ERROR) {
            failure_ = fmt::format("its gzip data are damaged near byte {}",
                                   file_offset_ - gzip_->avail_in);
        }
    }
    inflated_bytes_ += room - gzip_->avail_out;
    return room - gzip_->avail_out;
}

}  // namespace fragtrace::analyzer
