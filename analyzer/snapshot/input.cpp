#include "analyzer/snapshot/input.h"

#include "analyzer/imports/imports.h"
#include "analyzer/replay/block_sizes.h"
#include "analyzer/snapshot/snapshot_reader.h"
#include "analyzer/snapshot/snapshot_timeline.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/look_at.h"
#include "analyzer/trace/reader.h"
#include "analyzer/trace/trace_outline.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEndingsOfRecordings[] = {
    ".ftrace", ".pickle", ".pkl", ".pickle.gz", ".pkl.gz"};  // PyTorch prescribes no ending
// Other files with such a name are common, so their content decides.
constexpr std::string_view kEndingsOfImports[] = {
    ".csv", ".csv.gz", ".log", ".txt", ".json", ".json.gz", ".sqlite", ".pb", ".pb.gz"};

template <typename Endings>
bool ends_with_any(const std::string& name, const Endings& endings) {
    return std::any_of(std::begin(endings), std::end(endings), [&name](std::string_view ending) {
        return name.ends_with(ending);
    });
}

}  // namespace

Result<Timeline> read_input(const std::string& path, const InputOptions& options) {
    const Result<InputFile> file = InputFile::open(path);
    if (!file.ok()) {
        return file.error();
    }
    if (const ImportFormat* format = import_format(*file)) {
        return format->read(path, *file);
    }
    if (!looks_like_snapshot(*file)) {
        return read_trace(path, {.absorb_ring = options.absorb_ring});
    }
    Result<Snapshot> snapshot = read_snapshot(path, *file);
    if (!snapshot.ok()) {
        return snapshot.error();
    }
    Timeline timeline = make_timeline(std::move(snapshot).value(), path, options.torch_version);
    if (options.replay_sizes) {
        take_replayed_sizes(&timeline);
    }
    return timeline;
}

bool is_longer_than(std::uint64_t events, const std::string& path) {
    if (is_snapshot(path) || !import_name(path).empty()) {
        return false;
    }
    const Result<TraceOutline> outline = read_outline(path);
    return outline && outline->events > events;
}

bool is_snapshot(const std::string& path) {
    const Result<InputFile> file = look_at(path);
    return file.ok() && import_format(*file) == nullptr && looks_like_snapshot(*file);
}

std::string import_name(const std::string& path) {
    const Result<InputFile> file = look_at(path);
    const ImportFormat* format = file.ok() ? import_format(*file) : nullptr;
    return format == nullptr ? std::string() : std::string(format->name);
}

std::vector<std::string> recordings_in(const std::string& folder, std::error_code* error) {
    std::vector<std::string> paths;
    for (fs::directory_iterator at(folder, *error), end; !*error && at != end;
         at.increment(*error)) {
        const std::string name = at->path().filename().string();
        if (ends_with_any(name, kEndingsOfRecordings) ||
            (ends_with_any(name, kEndingsOfImports) && !import_name(at->path().string()).empty())) {
            paths.push_back(at->path().string());
        }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

}  // namespace fragtrace::analyzer
