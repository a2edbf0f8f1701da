#include "analyzer/snapshot/input.h"

#include "analyzer/snapshot/snapshot_reader.h"
#include "analyzer/snapshot/snapshot_timeline.h"
#include "analyzer/trace/input_file.h"
#include "analyzer/trace/reader.h"

#include <utility>

namespace fragtrace::analyzer {

Result<Timeline> read_input(const std::string& path, const std::string& torch_version) {
    const Result<InputFile> file = InputFile::open(path);
    if (!file.ok()) {
        return file.error();
    }
    if (!looks_like_snapshot(*file)) {
        return read_trace(path);
    }
    Result<Snapshot> snapshot = read_snapshot(path, *file);
    if (!snapshot.ok()) {
        return snapshot.error();
    }
    return make_timeline(std::move(snapshot).value(), path, torch_version);
}

}  // namespace fragtrace::analyzer
