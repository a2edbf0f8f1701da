#include "analyzer/snapshot/snapshot_reader.h"

#include "analyzer/snapshot/pickle.h"
#include "analyzer/snapshot/snapshot_rows.h"
#include "analyzer/snapshot/snapshot_words.h"

#include <algorithm>
#include <fmt/format.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kEntryBytes = 64;  // of an entry in a file: about the least
constexpr std::uint64_t kMostReserved = std::uint64_t{1} << 22;  // entries

}  // namespace

bool looks_like_snapshot(const InputFile& file) {
    ByteStream stream(file);
    if (!stream.require(2)) {
        return stream.compressed();
    }
    return stream.data()[0] == 0x80 && stream.data()[1] >= 2 && stream.data()[1] <= 5;
}

Result<Snapshot> read_snapshot(const std::string& path, const InputFile& file) {
    ByteStream stream(file);
    const auto expected_entries =
        static_cast<std::size_t>(std::min(file.size() / kEntryBytes, kMostReserved));
    SnapshotRows rows(expected_entries);
    PickleReader reader(&stream, &rows, kWords, expected_entries);
    PickleValue value;
    if (!reader.read(&value) || !rows.finish(reader, value)) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: cannot be read as a PyTorch memory snapshot: {}{}. Give the "
                                 "file that torch.cuda.memory._dump_snapshot() wrote, copied in "
                                 "binary mode.",
                                 path,
                                 reader.failure(),
                                 stream.compressed() ? " (of the decompressed data)" : "")};
    }
    return rows.take();
}

}  // namespace fragtrace::analyzer
