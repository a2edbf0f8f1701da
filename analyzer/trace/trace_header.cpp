#include "analyzer/trace/trace_header.h"

#include <fragtrace/codec.h>

#include <cstring>
#include <fmt/format.h>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint32_t kMaxHeaderBytes = 64 << 10;
constexpr std::uint32_t kPlausibleVersion = 1000;

Error input_error(const std::string& path, std::string_view what) {
    return {ErrorCode::kInput, fmt::format("{}: {}", path, what)};
}

Result<TraceHeader> read_trace_header(const std::string& path, const InputFile& file) {
    TraceHeader header = {};
    const std::size_t size = file.read_at(0, &header, sizeof header);
    if (size == 0) {
        return input_error(path, "is empty. The traced process wrote nothing to it; record again.");
    }
    if (size < sizeof header.magic ||
        std::memcmp(header.magic, kTraceMagic, sizeof kTraceMagic) != 0) {
        const std::string hint =
            path.ends_with(".nsys-rep") || path.ends_with(".qdrep")
                ? "a report of Nsight Systems; export it with `nsys export --type sqlite` and name "
                  "the .sqlite file"
                : foreign_file_hint({reinterpret_cast<const char*>(&header), size});
        return input_error(path,
                           hint.empty() ? "is not a trace (its first bytes are not a trace's). "
                                          "Name a .ftrace file."
                                        : fmt::format("is not a trace but looks like {}.", hint));
    }
    if (size < sizeof header) {
        return input_error(path,
                           fmt::format("is cut off in its header, at byte {} of {}. Nothing can "
                                       "be read from it; record or copy it again.",
                                       size,
                                       sizeof header));
    }
    if (header.byte_order != kByteOrderMark &&
        __builtin_bswap32(header.byte_order) == kByteOrderMark) {
        return input_error(
            path, "was recorded on a machine with another byte order. Read it on such a machine.");
    }
    if (header.version > kFormatVersion && header.version < kPlausibleVersion) {
        return input_error(path,
                           fmt::format("has format version {}, this program reads up to {}. Use a "
                                       "newer fraganalyze.",
                                       header.version,
                                       kFormatVersion));
    }
    if (header_crc(header) != header.crc || header.byte_order != kByteOrderMark ||
        header.version == 0 || header.version > kFormatVersion ||
        header.header_bytes < sizeof header || header.header_bytes > kMaxHeaderBytes ||
        header.header_bytes % 8 != 0) {
        return input_error(path,
                           "has a damaged header (bytes 0 to 511, checksum wrong). Copy it again "
                           "from where it was recorded.");
    }
    return header;
}

}  // namespace

Result<OpenTrace> open_trace(const std::string& path) {
    Result<InputFile> file = InputFile::open(path);
    if (!file.ok()) {
        return file.error();
    }
    const Result<TraceHeader> header = read_trace_header(path, *file);
    if (!header.ok()) {
        return header.error();
    }
    return OpenTrace{std::move(file).value(), *header};
}

}  // namespace fragtrace::analyzer
