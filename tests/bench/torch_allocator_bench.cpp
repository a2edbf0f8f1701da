// Nanoseconds per request of PyTorch's own caching allocator, compared with a replay of the same
// requests. analysis_cost.py compiles it against an installed CUDA build of PyTorch and runs it on
// the virtual GPU, where a cudaMalloc costs almost nothing.
//
//   torch_allocator_bench REQUESTS    a file of replay_bench (FRAGTRACE_BENCH_REQUESTS): per
//   request
//                                     64 bits: bytes to allocate, or 2^63 + the block to free
//                                     (blocks are numbered in the order of their requests)
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <vector>

int main(int count, char** words) {
    std::ifstream file(count == 2 ? words[1] : "", std::ios::binary | std::ios::ate);
    if (!file) {
        std::fprintf(stderr, "torch_allocator_bench: the file of requests cannot be read\n");
        return 2;
    }
    std::vector<std::uint64_t> requests(static_cast<std::size_t>(file.tellg()) / 8);
    file.seekg(0);
    file.read(reinterpret_cast<char*>(requests.data()),
              static_cast<std::streamsize>(requests.size() * 8));
    constexpr std::uint64_t kGiveBack = std::uint64_t{1} << 63;
    namespace allocator = c10::cuda::CUDACachingAllocator;
    allocator::init(c10::cuda::device_count());
    std::vector<void*> blocks;
    blocks.reserve(requests.size());
    timespec begin{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    for (const std::uint64_t request : requests) {
        if (request < kGiveBack) {
            blocks.push_back(allocator::raw_alloc(request));
        } else {
            allocator::raw_delete(blocks[request - kGiveBack]);
        }
    }
    timespec end{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    const double spent = static_cast<double>(end.tv_sec - begin.tv_sec) * 1e9 +
                         static_cast<double>(end.tv_nsec - begin.tv_nsec);
    std::printf("%.2f\n", spent / static_cast<double>(requests.size()));
    return 0;
}
