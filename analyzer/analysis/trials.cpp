#include "analyzer/analysis/trials.h"

#include "analyzer/support/input_file.h"

#include <nlohmann/json.hpp>

#include <fmt/format.h>
#include <sys/stat.h>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostBytes = 1 << 18;
constexpr std::size_t kMostTrials = 16;

std::string text(const Json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

// "peak reserved 3.4 GiB as predicted", "retries 2, NOT 1 as predicted".
std::string words(const Json& line) {
    const auto held = line.find("held");
    const std::string what = fmt::format("{} {}", text(line, "what"), text(line, "outcome"));
    if (held == line.end() || !held->is_boolean()) {
        return fmt::format("{} (predicted: {})", what, text(line, "predicted"));
    }
    return held->get<bool>()
               ? what + " as predicted"
               : fmt::format("{}, NOT {} as predicted", what, text(line, "predicted"));
}

std::optional<Trial> trial_of(const Json& json) {
    if (!json.is_object() || !json.contains("device") || !json["device"].is_number_unsigned() ||
        !json.contains("lines") || !json["lines"].is_array() || text(json, "change").empty()) {
        return std::nullopt;
    }
    Trial trial;
    trial.device = json["device"].get<DeviceId>();
    trial.change = text(json, "change");
    trial.outcome = text(json, "note");
    bool certain = false;
    bool held = true;
    for (const Json& line : json["lines"]) {
        if (!line.is_object()) {
            return std::nullopt;
        }
        trial.outcome += (trial.outcome.empty() ? "" : ", ") + words(line);
        const auto one = line.find("held");
        if (one != line.end() && one->is_boolean()) {
            certain = true;
            held = held && one->get<bool>();
        }
    }
    if (certain) {
        trial.held = held;
    }
    return trial;
}

}  // namespace

std::vector<Trial> read_trials(const std::string& trace_path,
                               std::uint64_t start_unix_ns,
                               std::string* problem) {
    const std::string path = trace_path + ".tried.json";

    struct stat found {};

    if (lstat(path.c_str(), &found) != 0) {
        return {};
    }
    const auto refuse = [&](const char* why) {
        *problem = fmt::format(
            "{}: {}; outcomes of fragtrace try are left out (remove this file)", path, why);
        return std::vector<Trial>();
    };
    const auto file = InputFile::open(path);
    if (!file || !S_ISREG(found.st_mode)) {
        return refuse("cannot be read");
    }
    if (file->size() > kMostBytes) {
        return refuse("is too large");
    }
    std::string content(file->size(), '\0');
    content.resize(file->read_at(0, content.data(), content.size()));
    const Json json = Json::parse(content, nullptr, false);
    const auto trials = json.is_object() ? json.find("trials") : json.end();
    if (!json.is_object() || trials == json.end() || !trials->is_array() ||
        !json.contains("start_unix_ns") || !json["start_unix_ns"].is_number_unsigned()) {
        return refuse("is damaged");
    }
    if (json["start_unix_ns"].get<std::uint64_t>() != start_unix_ns) {
        return {};
    }
    std::vector<Trial> all;
    for (auto one = trials->rbegin(); one != trials->rend() && all.size() < kMostTrials; ++one) {
        if (auto trial = trial_of(*one)) {
            all.push_back(*std::move(trial));
        }
    }
    return all;
}

}  // namespace fragtrace::analyzer
