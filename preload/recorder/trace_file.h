// The trace file: chunks are appended; the index and the trailer are rewritten after them.
//
// Not thread-safe: the owner of the session's flush lock uses it. All memory is allocated at
// start-up. If a chunk cannot be written completely, the file stays as it was before. Space for the
// last chunks stays allocated, so that a full disk does not prevent a proper end of the trace.
#pragma once

#include <fragtrace/codec.h>

#include "system/sys.h"

struct ZSTD_CCtx_s;

namespace fragtrace::preload {

// Renames a file. Returns false with EEXIST if the new name exists.
bool rename_to_new(const char* from, const char* to);

class TraceFile {
  public:
    // Creates NAME.PID.ftrace in `directory`, which is created if missing. With `in_parts`:
    // NAME.PID.part1.ftrace. If that name, or a file of parts, exists, adds .2, .3 and so on. If
    // the file system supports files without a name, the file gets its name together with its
    // header. On failure, errno has the reason.
    bool create(const char* directory, const char* name, int compression_level, bool in_parts);

    // Sets the space of the file system that writes must leave free, as a share and a size.
    void keep_free(uint32_t percent, uint64_t size_bytes) {
        keep_free_percent_ = percent;
        keep_free_bytes_ = size_bytes;
    }

    // Returns whether that space stays free if `fd`, a file in the trace's folder, grows by
    // `size_bytes`. Otherwise errno is kSpaceKeptFree.
    [[nodiscard]] bool leaves_enough_free(int fd, uint64_t size_bytes) const;

    // Fails a write with `error`, although the file could take it.
    bool refuse(int error) {
        last_error_ = error;
        return false;
    }

    // For a forked child, and for a start that failed: closes the file.
    void abandon(bool remove);

    bool write_header(TraceHeader* header);
    // `raw` may be in scratch().
    bool write_chunk(ChunkType type,
                     uint32_t count,
                     uint64_t first,
                     uint64_t time_ns,
                     const void* raw,
                     size_t raw_bytes);
    // Writes the index and the trailer after the last chunk. Later chunks overwrite them.
    bool write_index();

    // True if no chunk was written since the last index.
    [[nodiscard]] bool has_index() const { return has_index_; }

    // The next part starts under a temporary name, and writes go to it. keep_part() then gives it
    // its own name and closes the previous part. drop_part() removes it and returns to the previous
    // part; it must also be called if begin_part() or keep_part() failed.
    bool begin_part(uint32_t part);
    bool keep_part();
    void drop_part();

    // Returns the path of another file of this recording: NAME.PID.WHAT.ftrace, or
    // NAME.PID.ftrace if `what` is "".
    void name_of(const char* what, Text* path) const;
    // Continues in a file that the caller has opened and written up to `end`.
    void adopt(int fd, const char* path, uint64_t end);

    bool rename_to(const char* path);

    // Changes the header and the name of a trace without parts, so that it becomes the first part.
    bool become_part(const TraceHeader& header);

    // Returns whether the file still has a name and all bytes that were written.
    [[nodiscard]] bool is_whole();

    // Returns the size of the header and all chunks so far.
    [[nodiscard]] uint64_t size_bytes() const { return end_; }

    [[nodiscard]] uint8_t* scratch() const { return scratch_; }

    [[nodiscard]] uint8_t* column_scratch() const { return columns_; }

    [[nodiscard]] const char* path() const { return path_; }

    [[nodiscard]] int last_error() const { return last_error_; }

    static constexpr uint32_t kBatchEvents = 16384;
    static constexpr size_t kScratch_bytes = 5u << 20;
    static constexpr size_t kColumnScratch_bytes = event_scratch_bytes(kBatchEvents);

  private:
    bool open_new(const char* directory, const char* name, bool in_parts);
    bool open_file(const char* path, int flags);
    bool open_path();
    bool take_name(const char* unnamed);
    bool name_file();
    void close_before();
    void open_compressor(int level);
    bool map_buffers();
    bool has_space(uint64_t offset, uint64_t size_bytes);
    bool is_open();
    bool write_at(uint64_t offset, const uint8_t* data, size_t size_bytes);

    // Size of index and trailer after `more` further chunks.
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
    uint64_t device_;  // of the file, to check that fd_ still refers to it
    uint64_t inode_;
    int last_error_;
    uint64_t end_;     // offset of the next chunk
    bool has_index_;   // an index is at end_
    OpenFile before_;  // the previous part, from begin_part() until keep_part() or drop_part()
    uint8_t* scratch_;
    uint8_t* columns_;
    uint8_t* out_;
    IndexEntry* entries_;
    uint32_t entry_count_;
    int level_;
    uint32_t keep_free_percent_;
    uint64_t keep_free_bytes_;
    ZSTD_CCtx_s* compressor_;
    void* compressor_memory_;
    size_t compressor_bytes_;
    char path_[4096];    // empty while the file has no name
    char base_[4096];    // the path without the suffixes of the recording's files
    size_t base_bytes_;  // length of base_, which ends with the process id
    bool in_parts_;
};

}  // namespace fragtrace::preload
