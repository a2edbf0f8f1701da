#include "analyzer/check/baseline.h"

#include "analyzer/trace/input_file.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;
constexpr std::uint64_t kSchema = 1;

Error bad(const std::string& path, std::string_view what) {
    return {ErrorCode::kInput,
            fmt::format(
                "{}: {}. Give what `fraganalyze summarize TRACE --json FILE` wrote.", path, what)};
}

bool read_count(const Json& object, const char* key, std::uint64_t* value) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_unsigned()) {
        return false;
    }
    *value = found->get<std::uint64_t>();
    return true;
}

}  // namespace

Result<Baseline> read_baseline(const std::string& path) {
    const auto file = InputFile::open(path);
    if (!file) {
        return file.error();
    }
    if (file->size() > kMostBytes) {
        return bad(path, "is larger than any report");
    }
    std::string text(file->size(), '\0');
    text.resize(file->read_at(0, text.data(), text.size()));
    Json json;
    try {
        json = Json::parse(text);
    } catch (const Json::parse_error& error) {
        return bad(path, fmt::format("is no JSON (byte {})", error.byte));
    }
    std::uint64_t schema = 0;
    if (!json.is_object() || !json.contains("devices") || !json["devices"].is_array() ||
        !read_count(json, "schema", &schema)) {
        return bad(path, "is no report");
    }
    if (schema != kSchema) {
        return bad(path, fmt::format("has schema {}, this program writes {}", schema, kSchema));
    }
    Baseline baseline;
    for (const Json& row : json["devices"]) {
        std::uint64_t index = 0;
        BaselineDevice device;
        if (!row.is_object() || !row.contains("peak") || !row["peak"].is_object() ||
            !read_count(row, "index", &index) ||
            !read_count(row["peak"], "reserved", &device.peak_reserved) ||
            !read_count(row["peak"], "allocated", &device.peak_allocated) ||
            !read_count(row, "retries", &device.retries) ||
            !read_count(row, "ooms", &device.ooms) ||
            !read_count(row, "segments_allocated", &device.segments_allocated)) {
            return bad(path, fmt::format("its device {} lacks a figure", baseline.size()));
        }
        baseline[index] = device;
    }
    return baseline;
}

}  // namespace fragtrace::analyzer
