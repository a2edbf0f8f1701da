// Reads, line by line, the dump that the BFC allocator (TensorFlow, JAX) prints when it runs out of
// memory.
//
// Releases print figures as plain bytes ("InUse: 15203450880") or rounded ("InUse: 14.16GiB").
// Chunks in use are called "InUse at" or, up to TensorFlow 1.13, "Chunk at".
#pragma once

#include "analyzer/analysis/explain/printed_size.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

struct BfcDump {
    struct Chunks {
        std::uint64_t count = 0;
        std::uint64_t bytes = 0;
        std::uint64_t largest_bytes = 0;

        void add(std::uint64_t size_bytes);
    };

    std::string allocator;  // "GPU_0_bfc"
    std::optional<PrintedSize> asked;
    std::optional<std::uint64_t> rounded_bytes;  // size of the chunk that the request needs

    Chunks in_use;  // from the list of chunks; count 0 = the dump has no list
    Chunks free;
    Chunks regions;
    // From the table of sizes: number of chunks by size.
    std::map<std::uint64_t, std::uint64_t> sizes_in_use;

    // From the summary and the block of statistics.
    std::optional<PrintedSize> pool;
    std::optional<PrintedSize> limit;
    std::optional<PrintedSize> in_use_sum;
    std::optional<PrintedSize> largest_free;
    // The largest chunk that this request could use, if the pool serves requests from two ends.
    std::optional<PrintedSize> largest_usable;

    // A single line without a dump: the caller continued without the memory.
    bool tolerated = false;
    std::uint64_t conflicts = 0;  // lines that repeat a figure with a different value
    std::uint64_t negative = 0;   // figures below 0
};

// Parses the lines of one dump and skips all other lines.
class BfcDumpReader {
  public:
    // True if the line is the first of a dump.
    static bool begins(std::string_view line);

    // False if the line does not belong to a dump.
    bool add(std::string_view line);

    [[nodiscard]] const BfcDump& dump() const { return dump_; }

  private:
    void set(std::optional<PrintedSize>* figure, const PrintedSize& value);
    bool add_figures(std::string_view line);

    BfcDump dump_;
};

}  // namespace fragtrace::analyzer
