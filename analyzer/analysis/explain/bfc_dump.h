// The dump of the BFC allocator (TensorFlow, JAX) when it runs out of memory, read line by line.
//
// Releases print figures as plain bytes ("InUse: 15203450880") or rounded ("InUse: 14.16GiB"), and
// chunks in use as "InUse at" or, up to TensorFlow 1.13, "Chunk at".
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
    std::optional<std::uint64_t> rounded_bytes;  // the chunk that was looked for

    Chunks in_use;  // of the chunk list; count 0 = the dump has none
    Chunks free;
    Chunks regions;
    std::map<std::uint64_t, std::uint64_t> sizes_in_use;  // of the size table: count by size

    // Of the summary and the block of statistics.
    std::optional<PrintedSize> pool;
    std::optional<PrintedSize> limit;
    std::optional<PrintedSize> in_use_sum;
    std::optional<PrintedSize> largest_free;
    // Where the pool serves requests from two ends: the largest chunk that this one could take.
    std::optional<PrintedSize> largest_usable;

    bool tolerated = false;       // one line without a dump: the caller did without the memory
    std::uint64_t conflicts = 0;  // lines that name a figure again with another value
    std::uint64_t negative = 0;   // figures below 0
};

// Feeds a dump; lines of other origin are skipped.
class BfcDumpReader {
  public:
    // Whether the line begins a dump: a new one, if this one has begun already.
    static bool begins(std::string_view line);

    // False: the line is none of a dump's.
    bool add(std::string_view line);

    [[nodiscard]] const BfcDump& dump() const { return dump_; }

  private:
    void set(std::optional<PrintedSize>* figure, const PrintedSize& value);
    bool add_figures(std::string_view line);

    BfcDump dump_;
};

}  // namespace fragtrace::analyzer
