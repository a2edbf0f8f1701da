#include "recorder/trace_file.h"

#include <fragtrace/codec.h>

#include "recorder/file_systems.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#define ZSTD_STATIC_LINKING_ONLY  // compression contexts in our own memory
#include <zstd.h>

namespace fragtrace::preload {
namespace {

constexpr uint64_t kEndChunk_bytes = 128;  // at most

// Like mkdir -p. Returns false only if the directory does not exist afterwards.
bool make_directory(const char* path) {
    char partial[4096];
    const size_t size = strlen(path);
    if (size >= sizeof partial) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (size_t i = 1; i <= size; ++i) {
        if (path[i] == '/' || path[i] == '\0') {
            memcpy(partial, path, i);
            partial[i] = '\0';
            if (mkdir(partial, 0777) != 0 && errno != EEXIST && i == size) {
                return false;
            }
        }
    }
    return true;
}

}  // namespace

bool TraceFile::create(const char* directory,
                       const char* name,
                       int compression_level,
                       bool in_parts) {
    fd_ = -1;
    last_error_ = 0;
    end_ = 0;
    entry_count_ = 0;
    has_index_ = false;
    if (!map_buffers()) {
        errno = ENOMEM;
        return false;
    }
    open_compressor(compression_level);
    return (directory[0] == '\0' || make_directory(directory)) &&
           open_new(directory, name, in_parts);
}

bool TraceFile::map_buffers() {
    scratch_ = static_cast<uint8_t*>(map_private(kScratch_bytes));
    columns_ = static_cast<uint8_t*>(map_private(kColumnScratch_bytes));
    out_ = static_cast<uint8_t*>(map_private(kOut_bytes));
    entries_ = static_cast<IndexEntry*>(map_private(kMaxEntries * sizeof(IndexEntry)));
    return scratch_ != nullptr && columns_ != nullptr && out_ != nullptr && entries_ != nullptr;
}

// The compressor's state is in our own memory, because nothing of ours may use the host's heap.
// Without it, chunks are stored uncompressed.
void TraceFile::open_compressor(int level) {
    compressor_ = nullptr;
    level_ = level;
    const size_t size_bytes = level == 0 ? 0 : ZSTD_estimateCCtxSize(level);
    if (size_bytes == 0 || ZSTD_isError(size_bytes) != 0) {
        return;
    }
    compressor_memory_ = map_private(size_bytes);
    compressor_bytes_ = size_bytes;
    if (compressor_memory_ != nullptr) {
        compressor_ = ZSTD_initStaticCCtx(compressor_memory_, size_bytes);
    }
}

void TraceFile::abandon(bool remove) {
    if (fd_ >= 0 && is_open()) {
        close(fd_);
        if (remove) {
            unlink(path_);
        }
    }
    fd_ = -1;
    unmap(scratch_, kScratch_bytes);
    unmap(columns_, kColumnScratch_bytes);
    unmap(out_, kOut_bytes);
    unmap(entries_, kMaxEntries * sizeof(IndexEntry));
    unmap(compressor_memory_, compressor_bytes_);
    compressor_memory_ = nullptr;
    compressor_ = nullptr;
    scratch_ = columns_ = out_ = nullptr;
    entries_ = nullptr;
}

bool TraceFile::write_header(TraceHeader* header) {
    header->crc = header_crc(*header);
    if (!is_open() || !write_at(0, reinterpret_cast<const uint8_t*>(header), sizeof *header)) {
        return false;
    }
    if (path_[0] == '\0' && !name_file()) {
        close(fd_);
        if (!take_name(nullptr)) {
            last_error_ = errno;
            return false;
        }
        return write_header(header);
    }
    end_ = sizeof *header;
    return true;
}

bool TraceFile::write_chunk(ChunkType type,
                            uint32_t count,
                            uint64_t first,
                            uint64_t time_ns,
                            const void* raw,
                            size_t raw_bytes) {
    ChunkHeader header{};
    header.magic = kChunkMagic;
    header.type = type;
    header.raw_bytes = static_cast<uint32_t>(raw_bytes);
    header.count = count;
    header.first = first;
    uint8_t* payload = out_ + sizeof header;
    size_t stored = 0;
    // Tiny payloads gain nothing, and kEnd stays readable without zstd.
    if (compressor_ != nullptr && raw_bytes >= 64) {
        stored = ZSTD_compressCCtx(
            compressor_, payload, kOut_bytes - sizeof header - 8, raw, raw_bytes, level_);
        header.compression = Compression::kZstd;
    }
    if (stored == 0 || ZSTD_isError(stored) != 0 || stored >= raw_bytes) {
        if (raw_bytes > kOut_bytes - sizeof header - 8) {
            last_error_ = EFBIG;
            return false;
        }
        memcpy(payload, raw, raw_bytes);
        stored = raw_bytes;
        header.compression = Compression::kNone;
    }
    header.stored_bytes = static_cast<uint32_t>(stored);
    header.crc = chunk_crc(header, payload);
    memcpy(out_, &header, sizeof header);
    size_t total = sizeof header + stored;
    while (total % 8 != 0) {
        out_[total++] = 0;
    }
    if (!is_open()) {
        return false;
    }
    // A process that dies between this chunk and the next index must not leave parts of the old
    // index.
    if (has_index_ && ftruncate(fd_, static_cast<off_t>(end_)) == 0) {
        has_index_ = false;
    }
    // Chunks that end a trace may use the reserve, except for the space of the index and the end
    // itself. All other chunks must leave the whole reserve free.
    const uint64_t reserve = type == ChunkType::kEnd     ? index_bytes(1)
                             : type == ChunkType::kFacts ? index_bytes(2) + kEndChunk_bytes
                                                         : reserve_bytes();
    const bool ends = type == ChunkType::kEnd || type == ChunkType::kFacts;
    if (!ends && !leaves_enough_free(fd_, total)) {
        last_error_ = errno;
        return false;
    }
    if (!has_space(end_, total + reserve) || !write_at(end_, out_, total)) {
        return false;
    }
    if (entry_count_ < kMaxEntries) {
        entries_[entry_count_++] = IndexEntry{end_, first, time_ns, count, type, 0};
    }
    end_ += total;
    return true;
}

bool TraceFile::write_index() {
    if (entry_count_ == kMaxEntries || !is_open()) {
        return false;  // an incomplete index would hide chunks; without one, readers scan
    }
    ChunkHeader header{};
    header.magic = kChunkMagic;
    header.type = ChunkType::kIndex;
    header.stored_bytes = header.raw_bytes =
        static_cast<uint32_t>(entry_count_ * sizeof(IndexEntry));
    header.count = entry_count_;
    header.crc = chunk_crc(header, entries_);
    FileTrailer trailer{};
    trailer.index_offset = end_;
    memcpy(trailer.magic, kTraceMagic, sizeof trailer.magic);
    const uint64_t behind = end_ + sizeof header;
    const uint64_t last = behind + header.stored_bytes;
    if (!has_space(end_, last + sizeof trailer - end_)) {
        return false;
    }
    has_index_ = true;
    // One call: a process that dies between two writes would leave half an index.
    const iovec parts[] = {
        {&header, sizeof header}, {entries_, header.stored_bytes}, {&trailer, sizeof trailer}};
    const auto whole = static_cast<ssize_t>(last + sizeof trailer - end_);
    if (pwritev(fd_, parts, 3, static_cast<off_t>(end_)) != whole &&
        (!write_at(end_, reinterpret_cast<const uint8_t*>(&header), sizeof header) ||
         !write_at(behind, reinterpret_cast<const uint8_t*>(entries_), header.stored_bytes) ||
         !write_at(last, reinterpret_cast<const uint8_t*>(&trailer), sizeof trailer))) {
        return false;
    }
    // Returns the space that was reserved after the end of the file.
    const int given_back = ftruncate(fd_, static_cast<off_t>(last + sizeof trailer));
    (void)given_back;
    return true;
}

// The host needs room for its own files; on a shared file system, other users need it too.
bool TraceFile::leaves_enough_free(int fd, uint64_t size_bytes) const {
    struct statvfs place {};

    if ((keep_free_percent_ == 0 && keep_free_bytes_ == 0) || fstatvfs(fd, &place) != 0) {
        return true;
    }
    const uint64_t least_bytes = kept_free_bytes(place, keep_free_percent_, keep_free_bytes_);
    if (place.f_blocks != 0 &&
        uint64_t{place.f_bavail} * place.f_frsize < least_bytes + size_bytes) {
        errno = kSpaceKeptFree;
        return false;
    }
    return true;
}

// Allocates the blocks before they are written. With KEEP_SIZE, the file does not grow. If the file
// system does not support this, the write itself will show a lack of space.
bool TraceFile::has_space(uint64_t offset, uint64_t size_bytes) {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        offset + size_bytes > limit.rlim_cur) {
        last_error_ = EFBIG;
        return false;
    }
    if (fallocate(
            fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size_bytes)) !=
            0 &&
        (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
        last_error_ = errno;
        return false;
    }
    return true;
}

// The recorded program may close our descriptor, and its next file may get the same number. A write
// would damage that file. So device and inode are compared, and the trace is opened again if they
// differ.
bool TraceFile::is_open() {
    struct stat file {};

    const auto same = [&] { return file.st_dev == device_ && file.st_ino == inode_; };
    if (fd_ >= 0 && fstat(fd_, &file) == 0 && same()) {
        return true;
    }
    fd_ = open(path_, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd_ >= 0 && fstat(fd_, &file) == 0 && same()) {
        move_out_of_the_way(&fd_);
        return true;
    }
    if (fd_ >= 0) {
        close(fd_);
        fd_ = -1;
    }
    last_error_ = ENOENT;
    return false;
}

bool TraceFile::is_whole() {
    struct stat file {};

    if (!is_open()) {
        return false;
    }
    // A program that closes all descriptors may have closed this one just now. The next write opens
    // it again.
    return fstat(fd_, &file) != 0 ||
           (file.st_nlink != 0 && static_cast<uint64_t>(file.st_size) >= end_);
}

bool TraceFile::write_at(uint64_t offset, const uint8_t* data, size_t size_bytes) {
    while (size_bytes != 0) {
        const ssize_t written = pwrite(fd_, data, size_bytes, static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            last_error_ = written < 0 ? errno : ENOSPC;
            return false;
        }
        data += written;
        offset += static_cast<uint64_t>(written);
        size_bytes -= static_cast<size_t>(written);
    }
    return true;
}

}  // namespace fragtrace::preload
