#include "analyzer/analysis/check/report_file.h"

#include "analyzer/support/input_file.h"

#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{32} << 20;
constexpr std::uint64_t kSchema = 1;

}  // namespace

Error bad_report_file(const std::string& path, std::string_view what) {
    return {ErrorCode::kInput,
            fmt::format(
                "{}: {}. Give what `fraganalyze summarize TRACE --json FILE` wrote.", path, what)};
}

bool read_count(const nlohmann::json& object, const char* key, std::uint64_t* value) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_unsigned()) {
        return false;
    }
    *value = found->get<std::uint64_t>();
    return true;
}

Result<nlohmann::json> read_report_file(const std::string& path) {
    const auto file = InputFile::open(path);
    if (!file) {
        return file.error();
    }
    if (file->size() > kMostBytes) {
        return bad_report_file(path, "is larger than any report");
    }
    std::string text(file->size(), '\0');
    text.resize(file->read_at(0, text.data(), text.size()));
    nlohmann::json json;
    try {
        json = nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
        return bad_report_file(path, fmt::format("is no JSON (byte {})", error.byte));
    } catch (const nlohmann::json::exception&) {
        return bad_report_file(path, "holds a number that is too large");
    }
    std::uint64_t schema = 0;
    if (!json.is_object() || !json.contains("devices") || !json["devices"].is_array() ||
        !read_count(json, "schema", &schema)) {
        return bad_report_file(path, "is no report");
    }
    if (schema != kSchema) {
        return bad_report_file(
            path, fmt::format("has schema {}, this program writes {}", schema, kSchema));
    }
    return json;
}

}  // namespace fragtrace::analyzer
