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
    std::uint64_t reserved_bytes = 0;
    std::uint64_t allocated_bytes = 0;  // live blocks and those that wait for streams
    std::string line;  // of the request for its oldest segment that is reserved; empty = not known
};

// Most reserved bytes first.
std::vector<PrivatePool> private_pools_of(const Timeline& timeline,
                                          const HeapSnapshot& heap,
                                          Symbolizer* symbols);

}  // namespace fragtrace::analyzer
