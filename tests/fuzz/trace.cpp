// A trace, byte by byte. Its checksums are corrected so that the bytes they cover are read.
#include <fragtrace/codec.h>

#include "tests/fuzz/harness.h"

#include <cstring>

namespace {

using namespace fragtrace;

// A chunk with this checksum keeps it and is read as damaged.
constexpr std::uint32_t kStaysDamaged = 0xffffffff;

void mend_header(std::string* file) {
    TraceHeader header = {};
    if (file->size() >= sizeof header) {
        std::memcpy(&header, file->data(), sizeof header);
        header.crc = header_crc(header);
        std::memcpy(file->data(), &header, sizeof header);
    }
}

void mend_chunks(std::string* file) {
    ChunkHeader chunk = {};
    for (std::size_t at = sizeof(TraceHeader); at + sizeof chunk <= file->size(); at += 8) {
        std::memcpy(&chunk, file->data() + at, sizeof chunk);
        if (chunk.magic != kChunkMagic || chunk.crc == kStaysDamaged ||
            chunk.stored_bytes > file->size() - at - sizeof chunk) {
            continue;
        }
        chunk.crc = chunk_crc(chunk, file->data() + at + sizeof chunk);
        std::memcpy(file->data() + at, &chunk, sizeof chunk);
        at += (sizeof chunk + chunk.stored_bytes - 1) / 8 * 8;
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    const std::uint8_t choice = input.byte();
    std::string file(input.rest());
    mend_header(&file);
    mend_chunks(&file);
    fuzz::run_on_recording(choice, fuzz::save("trace", file));
    return 0;
}
