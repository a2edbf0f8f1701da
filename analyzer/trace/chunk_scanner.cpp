#include "analyzer/trace/chunk_scanner.h"

#include <fragtrace/codec.h>

#include "analyzer/support/units.h"

#include <algorithm>
#include <cstring>
#include <zlib.h>
#include <zstd.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::uint64_t kAlignment = 8;
constexpr std::size_t kScanBytes = 64 << 10;
// Compression makes incompressible payloads slightly larger.
constexpr std::uint64_t kMaxStoredBytes = kMaxChunkRawBytes + (kMaxChunkRawBytes >> 7) + 1024;
// Failed checksums cost time. This limit prevents a file of nothing but false headers from taking
// time quadratic in its size.
constexpr std::uint64_t kFailedWorkFactor = 8;
constexpr std::uint64_t kFailedWorkBase = 256 << 20;
// The most decompressed bytes per byte of the file. Decompressed, recorded events are 4 to 8 times
// as large as their file, tables up to 5 times. In memory, the records of a table take up to 30
// times its bytes.
constexpr std::uint64_t kEventFactor = 48;
constexpr std::uint64_t kEventBase = 4 << 20;
// The most events per file. A recorded event takes 4 bytes of the file, or a little more than 1 in
// a loop of identical calls. In memory, an event takes up to 500 bytes, and every replay visits all
// events.
constexpr std::uint64_t kSmallFileEvents = 1 << 20;
constexpr std::uint64_t kSmallFileBytes = 1 << 20;
constexpr std::uint64_t kEventsPerByte = 2;  // beyond kSmallFileBytes
constexpr std::uint64_t kTableFactor = 8;
constexpr std::uint64_t kTableBase = 2 << 20;

// Same as chunk_crc of codec.h. zlib uses the same polynomial and is several times faster.
std::uint32_t checksum(ChunkHeader header, const std::vector<std::uint8_t>& stored) {
    header.crc = 0;
    const uLong crc = ::crc32(0, reinterpret_cast<const Bytef*>(&header), sizeof header);
    return static_cast<std::uint32_t>(
        ::crc32(crc, stored.data(), static_cast<uInt>(stored.size())));
}

}  // namespace

ChunkScanner::ChunkScanner(const InputFile& file, std::uint64_t begin, bool still_written)
    : file_(file),
      offset_(begin),
      still_written_(still_written),
      event_budget_bytes_(kEventBase + kEventFactor * file.size()),
      event_budget_(kSmallFileEvents +
                    kEventsPerByte * (std::max(file.size(), kSmallFileBytes) - kSmallFileBytes)),
      table_budget_bytes_(table_budget(file.size())),
      zstd_(ZSTD_createDCtx()) {}

std::uint64_t ChunkScanner::table_budget(std::uint64_t file_bytes) {
    return kTableBase + kTableFactor * file_bytes;
}

ChunkScanner::~ChunkScanner() {
    ZSTD_freeDCtx(static_cast<ZSTD_DCtx*>(zstd_));
}

bool ChunkScanner::next(Chunk* chunk) {
    while (offset_ < file_.size()) {
        if (is_trailer(offset_)) {
            offset_ += sizeof(FileTrailer);
            continue;
        }
        const Verdict verdict = examine(offset_, chunk);
        if (verdict == Verdict::kIntact || verdict == Verdict::kBadPayload) {
            const std::uint64_t size = sizeof(ChunkHeader) + chunk->header.stored_bytes;
            offset_ = round_up(offset_ + size, kAlignment);
            if (verdict == Verdict::kIntact) {
                after_index_ = chunk->header.type == ChunkType::kIndex;
                return true;
            }
            ++chunks_unreadable_;
            bytes_unreadable_ += size;
            continue;
        }
        const std::uint64_t begin = offset_;
        const std::uint64_t chunks_before = chunks_unreadable_;
        offset_ = find_intact(begin + kAlignment);
        const bool at_end = offset_ >= file_.size();
        // A missing index is harmless. Space that was reserved for the file but never written
        // contains zeros.
        const bool only_index = chunk->header.type == ChunkType::kIndex ||
                                (after_index_ && file_.size() - begin < sizeof(FileTrailer));
        const bool harmless =
            at_end && ((verdict == Verdict::kCutOff && (still_written_ || only_index)) ||
                       is_zero(begin, offset_));
        if (harmless) {
            chunks_unreadable_ = chunks_before;
        } else {
            ++chunks_unreadable_;
            bytes_unreadable_ += offset_ - begin;
        }
    }
    return false;
}

ChunkScanner::Verdict ChunkScanner::examine(std::uint64_t offset, Chunk* chunk) {
    ChunkHeader header = {};
    chunk->header = header;
    if (file_.read_at(offset, &header, sizeof header) != sizeof header) {
        return Verdict::kCutOff;
    }
    chunk->header = header;
    if (header.magic != kChunkMagic || header.raw_bytes > kMaxChunkRawBytes ||
        header.stored_bytes > kMaxStoredBytes) {
        return Verdict::kDamaged;
    }
    const std::uint64_t payload = offset + sizeof header;
    if (header.stored_bytes > file_.size() - std::min(payload, file_.size())) {
        return Verdict::kCutOff;
    }
    stored_.resize(header.stored_bytes);
    if (file_.read_at(payload, stored_.data(), stored_.size()) != stored_.size()) {
        return Verdict::kCutOff;
    }
    if (checksum(header, stored_) != header.crc) {
        failed_work_bytes_ += sizeof header + stored_.size();
        return Verdict::kDamaged;
    }
    chunk->offset = offset;
    return decompress(chunk) ? Verdict::kIntact : Verdict::kBadPayload;
}

bool ChunkScanner::decompress(Chunk* chunk) {
    const ChunkHeader& header = chunk->header;
    payload_is_stored_ = header.compression == Compression::kNone;
    switch (header.compression) {
        case Compression::kNone:
            chunk->payload = stored_.data();
            return header.raw_bytes == header.stored_bytes;
        case Compression::kZstd: {
            if (!take_budget(header)) {
                return false;
            }
            raw_.resize(header.raw_bytes);
            chunk->payload = raw_.data();
            const std::size_t size = ZSTD_decompressDCtx(static_cast<ZSTD_DCtx*>(zstd_),
                                                         raw_.data(),
                                                         raw_.size(),
                                                         stored_.data(),
                                                         stored_.size());
            return ZSTD_isError(size) == 0 && size == header.raw_bytes;
        }
    }
    return false;
}

bool ChunkScanner::take_budget(const ChunkHeader& header) {
    const bool events = header.type == ChunkType::kEvents;
    std::uint64_t* budget = events ? &event_budget_bytes_ : &table_budget_bytes_;
    if (header.raw_bytes > *budget || (events && header.count > event_budget_)) {
        over_budget_ = true;
        return false;
    }
    *budget -= header.raw_bytes;
    event_budget_ -= events ? header.count : 0;
    return true;
}

void ChunkScanner::keep_payload(std::vector<std::uint8_t>* buffer) {
    buffer->swap(payload_is_stored_ ? stored_ : raw_);
}

bool ChunkScanner::is_trailer(std::uint64_t offset) const {
    FileTrailer trailer = {};
    return file_.read_at(offset, &trailer, sizeof trailer) == sizeof trailer &&
           std::memcmp(trailer.magic, kTraceMagic, sizeof kTraceMagic) == 0 &&
           trailer.index_offset < offset;
}

bool ChunkScanner::is_zero(std::uint64_t begin, std::uint64_t end) const {
    std::vector<char> window(kScanBytes);
    while (begin < end) {
        const std::size_t wanted = std::min<std::uint64_t>(window.size(), end - begin);
        const std::size_t count = file_.read_at(begin, window.data(), wanted);
        if (count == 0) {
            return true;
        }
        const auto data_end = window.begin() + static_cast<std::ptrdiff_t>(count);
        if (std::any_of(window.begin(), data_end, [](char byte) { return byte != 0; })) {
            return false;
        }
        begin += count;
    }
    return true;
}

std::uint64_t ChunkScanner::find_intact(std::uint64_t offset) {
    const std::uint64_t size = file_.size();
    const std::uint64_t allowance = kFailedWorkBase + kFailedWorkFactor * size;
    std::vector<std::uint8_t> window(kScanBytes);
    while (offset < size) {
        const std::size_t count = file_.read_at(offset, window.data(), window.size());
        if (count < kAlignment) {
            return size;
        }
        for (std::size_t at = 0; at + kAlignment <= count; at += kAlignment) {
            std::uint32_t magic = 0;
            std::memcpy(&magic, &window[at], sizeof magic);
            if (magic == kChunkMagic) {
                Chunk chunk;
                const Verdict verdict = examine(offset + at, &chunk);
                if (verdict == Verdict::kIntact || verdict == Verdict::kBadPayload) {
                    return offset + at;
                }
                ++chunks_unreadable_;
                if (failed_work_bytes_ > allowance) {
                    gave_up_ = true;
                    return size;
                }
            } else if (std::memcmp(&window[at], kTraceMagic, sizeof kTraceMagic) == 0 &&
                       is_trailer(offset + at - sizeof(FileTrailer::index_offset))) {
                return offset + at - sizeof(FileTrailer::index_offset);
            }
        }
        offset += count / kAlignment * kAlignment;
    }
    return size;
}

}  // namespace fragtrace::analyzer
