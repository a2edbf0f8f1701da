// Finds the intact chunks of a trace file, even if other parts of it are damaged.
//
// Every returned chunk has passed its checksum and is decompressed. After damage the scanner
// continues at the next intact chunk and counts what it skipped. The file's size limits work and
// memory: a compressed chunk that would exceed its budget is not returned. Not thread-safe.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/support/input_file.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct Chunk {
    std::uint64_t offset = 0;  // of the chunk's header in the file
    ChunkHeader header = {};
    const std::uint8_t* payload = nullptr;  // header.raw_bytes long; valid until the next call
};

class ChunkScanner {
  public:
    // If `still_written` is true, an unfinished chunk at the end is a write in progress, not
    // damage.
    ChunkScanner(const InputFile& file, std::uint64_t begin, bool still_written);
    ~ChunkScanner();
    ChunkScanner(const ChunkScanner&) = delete;
    ChunkScanner& operator=(const ChunkScanner&) = delete;

    // Decompressed bytes that the tables in a file of this size may have.
    static std::uint64_t table_budget(std::uint64_t file_bytes);

    // Finds the next intact chunk; returns false at the end of the file.
    bool next(Chunk* chunk);

    // Moves the payload of the last returned chunk into `buffer` without changing its address. The
    // scanner reuses the buffer's former memory for the next chunk.
    void keep_payload(std::vector<std::uint8_t>* buffer);

    [[nodiscard]] std::uint64_t bytes_unreadable() const { return bytes_unreadable_; }

    [[nodiscard]] std::uint64_t chunks_unreadable() const { return chunks_unreadable_; }

    [[nodiscard]] bool gave_up() const { return gave_up_; }

    // Whether chunks were left out because they contain more than a file of this size plausibly
    // does.
    [[nodiscard]] bool over_budget() const { return over_budget_; }

  private:
    enum class Verdict { kIntact, kBadPayload, kDamaged, kCutOff };

    Verdict examine(std::uint64_t offset, Chunk* chunk);
    bool decompress(Chunk* chunk);
    bool take_budget(const ChunkHeader& header);
    [[nodiscard]] bool is_trailer(std::uint64_t offset) const;
    [[nodiscard]] bool is_zero(std::uint64_t begin, std::uint64_t end) const;
    // The offset of the first intact chunk or trailer at or after `offset`; the end of the file if
    // there is none.
    std::uint64_t find_intact(std::uint64_t offset);

    const InputFile& file_;
    std::uint64_t offset_;
    bool after_index_ = false;  // the last intact chunk was the index
    bool still_written_;
    bool gave_up_ = false;
    bool over_budget_ = false;
    std::uint64_t event_budget_bytes_;
    std::uint64_t event_budget_;
    std::uint64_t table_budget_bytes_;
    std::uint64_t bytes_unreadable_ = 0;
    std::uint64_t chunks_unreadable_ = 0;
    std::uint64_t failed_work_bytes_ = 0;
    std::vector<std::uint8_t> stored_;
    std::vector<std::uint8_t> raw_;
    bool payload_is_stored_ = false;  // the last payload is stored_, not raw_
    void* zstd_ = nullptr;
};

}  // namespace fragtrace::analyzer
