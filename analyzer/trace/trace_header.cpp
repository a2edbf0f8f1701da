#include "analyzer/trace/trace_header.h"

#include <fragtrace/codec.h>

#include <algorithm>
#include <array>
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

// What a file with this name is, if it is not a trace: each file of an unknown format is read as
// one.
struct Expected {
    std::string_view is = "not a trace";
    std::string_view give = "Name a .ftrace file.";
};

Expected expected_at(std::string_view path) {
    constexpr Expected kSnapshot = {"neither a trace nor a memory snapshot of PyTorch",
                                    "Give what torch.cuda.memory._dump_snapshot() wrote."};
    constexpr Expected kLog = {
        "neither a trace nor a log of RMM",
        "Give what RMM's logging_resource_adaptor wrote, or a trace (.ftrace). `fraganalyze "
        "explain` reads the log of a program that ran out of memory."};
    constexpr std::array<std::pair<std::string_view, Expected>, 8> kEndings = {
        {{".pickle", kSnapshot},
         {".pkl", kSnapshot},
         {".csv", kLog},
         {".log", kLog},
         {".txt", kLog},
         {".json",
          {"neither a trace nor a profile of PyTorch",
           "Give what PyTorch's profiler wrote with profile_memory=True, or what `fraganalyze "
           "summarize -o` wrote."}},
         {".sqlite",
          {"neither a trace nor an export of Nsight Systems",
           "Give what `nsys export --type sqlite` wrote."}},
         {".pb",
          {"neither a trace nor a profile of TensorFlow or JAX",
           "Give the .xplane.pb file that its profiler wrote."}}}};
    const std::string_view name = path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path;
    const auto* const found =
        std::find_if(kEndings.begin(), kEndings.end(), [name](const auto& one) {
            return name.ends_with(one.first);
        });
    return found == kEndings.end() ? Expected{} : found->second;
}

Error is_no_trace(const std::string& path, std::string_view first_bytes) {
    if (path.ends_with(".nsys-rep") || path.ends_with(".qdrep")) {
        return input_error(path,
                           "is not a trace but looks like a report of Nsight Systems; export it "
                           "with `nsys export --type sqlite` and name the .sqlite file.");
    }
    const Expected expected = expected_at(path);
    // The formats of other tools may be gzipped.
    const bool gzipped = path.ends_with(".gz") && first_bytes.starts_with("\x1f\x8b");
    const std::string hint = gzipped ? std::string() : foreign_file_hint(first_bytes);
    return input_error(
        path,
        hint.empty()
            ? fmt::format(
                  "is {} (its first bytes are not those of one). {}", expected.is, expected.give)
            : fmt::format("is {} but looks like {}. {}", expected.is, hint, expected.give));
}

Result<TraceHeader> read_trace_header(const std::string& path, const InputFile& file) {
    TraceHeader header = {};
    const std::size_t size = file.read_at(0, &header, sizeof header);
    if (size == 0) {
        const Expected expected = expected_at(path);
        return input_error(path,
                           expected.is == Expected{}.is
                               ? "is empty. The traced process wrote nothing to it; record again."
                               : fmt::format("is empty. {}", expected.give));
    }
    if (size < sizeof header.magic ||
        std::memcmp(header.magic, kTraceMagic, sizeof kTraceMagic) != 0) {
        return is_no_trace(path, {reinterpret_cast<const char*>(&header), size});
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
