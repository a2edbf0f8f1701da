#include "analyzer/support/protobuf.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

enum WireType : std::uint8_t { kVarint = 0, kEightBytes = 1, kLengthDelimited = 2, kFourBytes = 5 };

}  // namespace

bool ProtoReader::available(std::uint64_t count, std::uint64_t end) {
    if (problem_.empty() && (end - offset() < count || !stream_.require(count))) {
        problem_ = !stream_.failure().empty()
                       ? stream_.failure()
                       : fmt::format("is cut off or damaged near byte {}", offset());
    }
    return problem_.empty();
}

std::optional<std::uint64_t> ProtoReader::varint(std::uint64_t end) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (!available(1, end)) {
            return std::nullopt;
        }
        const std::uint8_t byte = *stream_.data();
        stream_.skip(1);
        value |= std::uint64_t{byte & 0x7fU} << shift;
        if (byte < 0x80) {
            return value;
        }
    }
    problem_ = fmt::format("has an invalid number near byte {}", offset());
    return std::nullopt;
}

std::optional<ProtoField> ProtoReader::next(std::uint64_t end) {
    if (!problem_.empty() || offset() >= end) {
        return std::nullopt;
    }
    if (end == kEndOfFile && !stream_.require(1)) {
        problem_ = stream_.failure();
        return std::nullopt;
    }
    const auto tag = varint(end);
    if (!tag) {
        return std::nullopt;
    }
    ProtoField field = {.number = static_cast<std::uint32_t>(*tag >> 3)};
    const unsigned type = *tag & 7;
    if (*tag >> 32 != 0 || field.number == 0) {
        problem_ = fmt::format("has an invalid field near byte {}", offset());
    } else if (type == kVarint || type == kLengthDelimited) {
        field.value = varint(end).value_or(0);
        field.is_bytes = type == kLengthDelimited;
        if (problem_.empty() && field.is_bytes && field.value > end - offset()) {
            problem_ = fmt::format("is cut off or damaged near byte {}", offset());
        }
    } else if (type == kEightBytes || type == kFourBytes) {
        const unsigned size = type == kEightBytes ? 8 : 4;
        if (available(size, end)) {
            for (unsigned i = 0; i < size; ++i) {
                field.value |= std::uint64_t{stream_.data()[i]} << (8 * i);
            }
            stream_.skip(size);
        }
    } else {
        problem_ = fmt::format("has an invalid field near byte {}", offset());
    }
    return problem_.empty() ? std::optional(field) : std::nullopt;
}

std::string ProtoReader::text(const ProtoField& field, std::size_t most) {
    if (field.value > std::min(most, ByteStream::kMostAtOnce)) {
        if (problem_.empty()) {
            problem_ = fmt::format("has a text longer than {} bytes near byte {}", most, offset());
        }
        return {};
    }
    if (!available(field.value, kEndOfFile)) {
        return {};
    }
    std::string text(reinterpret_cast<const char*>(stream_.data()), field.value);
    stream_.skip(field.value);
    return text;
}

void ProtoReader::skip(const ProtoField& field) {
    for (std::uint64_t left = field.is_bytes ? field.value : 0; left != 0;) {
        const std::uint64_t step = std::min<std::uint64_t>(left, ByteStream::kMostAtOnce);
        if (!available(step, kEndOfFile)) {
            return;
        }
        stream_.skip(step);
        left -= step;
    }
}

}  // namespace fragtrace::analyzer
