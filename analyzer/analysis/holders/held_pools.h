// What the private pools of PyTorch's allocator hold at one instant: pools of CUDA graphs and of
// torch.cuda.MemPool. Plain data.
#pragma once

#include "analyzer/model/heap_snapshot.h"
#include "analyzer/model/timeline.h"
#include "analyzer/trace/symbols.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

struct PrivatePool {
    std::uint32_t number = 0;  // N of the fact "pool.N"
    bool of_graph = false;     // a CUDA graph uses it; otherwise a MemPool, as far as is known
    std::string name = {};     // as the program says (fragtrace.name_mempool); empty = it does not
    std::uint64_t reserved_bytes = 0;
    std::uint64_t allocated_bytes = 0;  // live blocks and those that wait for streams
    // Part of reserved_bytes: segments whose memory the program unmapped for now (sleep modes).
    std::uint64_t unmapped_bytes = 0;
    std::string line;  // of the request for its oldest segment that is reserved; empty = not known
};

// Most reserved bytes first.
std::vector<PrivatePool> private_pools_of(const Timeline& timeline,
                                          const HeapSnapshot& heap,
                                          Symbolizer* symbols);

}  // namespace fragtrace::analyzer
