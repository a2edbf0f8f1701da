// Finds the intact chunks of a trace file, whatever happened to the rest of it.
//
// Every chunk given out has passed its checksum and is decompressed. After damage the scanner goes
// on at the next intact chunk and counts what it skipped. Work and memory are bounded by the size
// of the file: of a compressed chunk that would exceed its budget nothing is given out. Not
// thread-safe.
#pragma once

#include <fragtrace/format.h>

#include "analyzer/support/input_file.h"

#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

struct Chunk {
    std::uint64_t offset = 0;  // of its header in the file
    ChunkHeader header = {};
    const std::uint8_t* payload = nullptr;  // header.raw_bytes; valid until the next call
};

class ChunkScanner {
  public:
    // `still_written`: an unfinished chunk at the end is a write in progress, not damage.
    ChunkScanner(const InputFile& file, std::uint64_t begin, bool still_written);
    ~ChunkScanner();
    ChunkScanner(const ChunkScanner&) = delete;
    ChunkScanner& operator=(const ChunkScanner&) = delete;

    // Bytes that the tables in a file of this size may hold, decompressed.
    static std::uint64_t table_budget(std::uint64_t file_bytes);

    // The next intact chunk; false at the end of the file.
    bool next(Chunk* chunk);

    // Moves the payload of the chunk given out last into `buffer`; it stays where it is, and the
    // buffer's former memory is used for the next one.
    void keep_payload(std::vector<std::uint8_t>* buffer);

    [[nodiscard]] std::uint64_t bytes_unreadable() const { return bytes_unreadable_; }

    [[nodiscard]] std::uint64_t chunks_unreadable() const { return chunks_unreadable_; }

    [[nodiscard]] bool gave_up() const { return gave_up_; }

    // Chunks were left out because they hold more than a file of this size plausibly does.
    [[nodiscard]] bool over_budget() const { return over_budget_; }

  private:
    enum class Verdict { kIntact, kBadPayload, kDamaged, kCutOff };

    Verdict examine(std::uint64_t offset, Chunk* chunk);
    bool decompress(Chunk* chunk);
    bool take_budget(const ChunkHeader& header);
    [[nodiscard]] bool is_trailer(std::uint64_t offset) const;
    [[nodiscard]] bool is_zero(std::uint64_t begin, std::uint64_t end) const;
    // The first intact chunk or trailer at or after `offset`; the end of the file if there is none.
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
