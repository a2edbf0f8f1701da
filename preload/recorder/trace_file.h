// The trace file: chunks are appended, the index and the trailer are rewritten behind them.
//
// One user at a time (the holder of the session's flush lock). All memory is taken at start-up. A
// chunk that cannot be written whole leaves the file as if it had never been tried, and space for
// the last chunks is kept allocated, so that a full disk does not cost the trace its proper end.
#pragma once

#include <fragtrace/codec.h>

#include "system/sys.h"

struct ZSTD_CCtx_s;

namespace fragtrace::preload {

// Renames a file; false, with EEXIST, where the new name is taken.
bool rename_to_new(const char* from, const char* to);

class TraceFile {
  public:
    // Creates PROGRAM.PID.ftrace (or .2, .3 ... if that, or a file of parts, exists) in
    // `directory`, which is made if missing; with `in_parts` PROGRAM.PID.part1.ftrace. Where the
    // file system can hold a file without a name, it gets its name with its header. On failure
    // errno tells why.
    bool create(const char* directory, const char* program, int compression_level, bool in_parts);

    // What is left of the file system when events are written; a share and a size.
    void keep_free(uint32_t percent, uint64_t size_bytes) {
        keep_free_percent_ = percent;
        keep_free_bytes_ = size_bytes;
    }

    // That a write failed because of this space.
    [[nodiscard]] bool kept_free() const { return kept_free_; }

    // Refuses a write that the file could take.
    bool refuse(int error) {
        last_error_ = error;
        return false;
    }

    // For a forked child, and for a start that failed.
    void abandon(bool remove);

    bool write_header(TraceHeader* header);
    // `raw` may be the memory of scratch().
    bool write_chunk(ChunkType type,
                     uint32_t count,
                     uint64_t first,
                     uint64_t time_ns,
                     const void* raw,
                     size_t raw_bytes);
    // Index and trailer behind the last chunk; later chunks overwrite them.
    bool write_index();

    // No chunk was written since the last index.
    [[nodiscard]] bool has_index() const { return has_index_; }

    // The next part, under a temporary name: what is written goes there until keep_part() gives it
    // its own name and closes the part before, or drop_part() removes it and goes back. A part that
    // could not be begun or kept is to be dropped, too.
    bool begin_part(uint32_t part);
    bool keep_part();
    void drop_part();

    // PROGRAM.PID.WHAT.ftrace, "" for PROGRAM.PID.ftrace: another file of this recording.
    void name_of(const char* what, Text* path) const;
    // Goes on in a file that somebody else has written up to `end`, and has opened.
    void adopt(int fd, const char* path, uint64_t end);

    bool rename_to(const char* path);

    // A trace that had no parts becomes the first one, header and name.
    bool become_part(const TraceHeader& header);

    // Whether the file still has a name, and all that was written.
    [[nodiscard]] bool is_whole();

    // Bytes of the chunks so far, the header included.
    [[nodiscard]] uint64_t size_bytes() const { return end_; }

    [[nodiscard]] uint8_t* scratch() const { return scratch_; }

    [[nodiscard]] uint8_t* column_scratch() const { return columns_; }

    [[nodiscard]] const char* path() const { return path_; }

    [[nodiscard]] int last_error() const { return last_error_; }

    static constexpr uint32_t kBatchEvents = 16384;
    static constexpr size_t kScratch_bytes = 5u << 20;
    static constexpr size_t kColumnScratch_bytes = event_scratch_bytes(kBatchEvents);

  private:
    bool open_new(const char* directory, const char* program, bool in_parts);
    bool open_file(const char* path, int flags);
    bool open_path();
    bool take_name(const char* unnamed);
    bool name_file();
    void close_before();
    void open_compressor(int level);
    bool map_buffers();
    bool has_space(uint64_t offset, uint64_t size_bytes);
    bool leaves_enough_free(uint64_t size_bytes);
    bool is_open();
    bool write_at(uint64_t offset, const uint8_t* data, size_t size_bytes);

    // Index and trailer, with `more` chunks.
    [[nodiscard]] uint64_t index_bytes(uint32_t more) const {
        return sizeof(ChunkHeader) + (uint64_t{entry_count_} + more) * sizeof(IndexEntry) +
               sizeof(FileTrailer);
    }

    [[nodiscard]] uint64_t reserve_bytes() const {
        constexpr uint64_t kLastChunks_bytes = 65536;
        return kLastChunks_bytes + index_bytes(3);
    }

    static constexpr uint32_t kMaxEntries = 1u << 20;
    static constexpr size_t kOut_bytes = kScratch_bytes + (1u << 20);

    struct OpenFile {
        int fd;
        uint64_t device;
        uint64_t inode;
        uint64_t end;
        char path[4096];
    };

    int fd_;
    uint64_t device_;  // of the file, to tell whether fd_ still is it
    uint64_t inode_;
    int last_error_;
    uint64_t end_;     // where the next chunk goes
    bool has_index_;   // behind end_
    OpenFile before_;  // between begin_part() and its end
    uint8_t* scratch_;
    uint8_t* columns_;
    uint8_t* out_;
    IndexEntry* entries_;
    uint32_t entry_count_;
    int level_;
    uint32_t keep_free_percent_;
    uint64_t keep_free_bytes_;
    bool kept_free_;
    ZSTD_CCtx_s* compressor_;
    void* compressor_memory_;
    size_t compressor_bytes_;
    char path_[4096];    // empty while the file has no name
    char base_[4096];    // the path without what tells the files of a recording apart
    size_t base_bytes_;  // of it, up to the process's number
    bool in_parts_;
};

}  // namespace fragtrace::preload
