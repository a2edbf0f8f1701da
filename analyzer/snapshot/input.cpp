#include "analyzer/snapshot/input.h"

#include "analyzer/replay/block_sizes.h"
#include "analyzer/snapshot/snapshot_reader.h"
#include "analyzer/snapshot/snapshot_timeline.h"
#include "analyzer/support/input_file.h"
#include "analyzer/trace/reader.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <utility>

namespace fragtrace::analyzer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEndings[] = {
    ".ftrace", ".pickle", ".pkl", ".pickle.gz", ".pkl.gz"};  // PyTorch prescribes no ending

}  // namespace

Result<Timeline> read_input(const std::string& path,
                            const std::string& torch_version,
                            bool absorb_ring) {
    const Result<InputFile> file = InputFile::open(path);
    if (!file.ok()) {
        return file.error();
    }
    if (!looks_like_snapshot(*file)) {
        return read_trace(path, {.absorb_ring = absorb_ring});
    }
    Result<Snapshot> snapshot = read_snapshot(path, *file);
    if (!snapshot.ok()) {
        return snapshot.error();
    }
    Timeline timeline = make_timeline(std::move(snapshot).value(), path, torch_version);
    take_replayed_sizes(&timeline);
    return timeline;
}

bool is_snapshot(const std::string& path) {
    const Result<InputFile> file = InputFile::open(path);
    return file.ok() && looks_like_snapshot(*file);
}

std::vector<std::string> recordings_in(const std::string& folder, std::error_code* error) {
    std::vector<std::string> paths;
    for (fs::directory_iterator at(folder, *error), end; !*error && at != end;
         at.increment(*error)) {
        const std::string name = at->path().filename().string();
        if (std::any_of(std::begin(kEndings), std::end(kEndings), [&name](std::string_view ending) {
                return name.ends_with(ending);
            })) {
            paths.push_back(at->path().string());
        }
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

}  // namespace fragtrace::analyzer
