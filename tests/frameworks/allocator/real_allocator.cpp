// Plays scripts (script.h) with the caching allocator of an installed PyTorch, on stub_cuda.cpp.
//
// Compiled against the headers of any release from 2.0 on: what a release has or lacks is asked
// by `requires`. Every script runs in a forked process, so one that crashes the library leaves the
// rest alone; it ends with "crashed" and what came before.
#include "script.h"
#include "stub_cuda.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#if __has_include(<c10/cuda/CUDAAllocatorConfig.h>)
#    include <c10/cuda/CUDAAllocatorConfig.h>
#endif

#include <cstdarg>
#include <cstdio>
#include <iostream>
#include <map>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

// Missing in the headers of some releases. Newer releases need the declaration.
namespace c10::cuda {
namespace _internal {
__attribute__((weak)) void setHasPrimaryContext(bool (*answer)(c10::DeviceIndex));
}

namespace detail {
__attribute__((weak)) void init_p2p_access_cache(std::int64_t devices);
}
}  // namespace c10::cuda

namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

// Text in memory shared with the parent, so that it survives a crash.
struct Output {
    static constexpr std::size_t kBytes = std::size_t{32} << 20;
    std::size_t used;
    char text[kBytes];
};

Output* output = nullptr;

__attribute__((format(printf, 1, 2))) void print(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length = std::vsnprintf(
        output->text + output->used, Output::kBytes - output->used, format, arguments);
    va_end(arguments);
    output->used += static_cast<std::size_t>(length);
    if (output->used >= Output::kBytes) {
        _exit(3);
    }
}

// The zero value of any type that a parameter has in a release.
struct Zero {
    template <typename T>
    operator T() const {
        return T{};
    }
};

template <typename Entry>
void print_event(const Entry& entry) {
    static constexpr const char* kNames[] = {"alloc",
                                             "free_requested",
                                             "free_completed",
                                             "segment_alloc",
                                             "segment_free",
                                             "segment_map",
                                             "segment_unmap"};
    const auto action = static_cast<std::size_t>(entry.action_);
    const auto size_bytes = static_cast<unsigned long long>(entry.size_);
    if (entry.action_ == Entry::OOM) {
        print("ev oom 0 %llu\n", size_bytes);
    } else if (action < std::size(kNames) && entry.action_ != Entry::SNAPSHOT) {
        print("ev %s %llx %llu\n",
              kNames[action],
              static_cast<unsigned long long>(entry.addr_),
              size_bytes);
    }
}

constexpr c10::DeviceIndex kDevice = 0;

template <typename Allocator>
class Player {
  public:
    Player(Allocator* one, const ScriptHead& head) : allocator_(one), head_(head) {
        stub_set_card(head.total_bytes,
                      head.capacity_bytes,
                      head.address_order,
                      head.seed,
                      [](std::size_t size_bytes) { print("refused %zu\n", size_bytes); });
        if (!head.config.empty()) {
            allocator::setAllocatorSettings(head.config);
        }
        allocator_->init(1);
        if constexpr (requires { allocator_->attachAllocatorTraceTracker(Zero{}); }) {
            allocator_->attachAllocatorTraceTracker([](const auto& entry) { print_event(entry); });
        } else {
            constexpr std::size_t kEntries = 1000000;
            allocator_->recordHistory(true, nullptr, kEntries, Zero{});
        }
    }

    void play(const Call& call) {
        try {
            perform(call);
        } catch (const c10::OutOfMemoryError&) {
            print("failed %c %llu out of memory\n",
                  call.kind,
                  static_cast<unsigned long long>(call.first));
        }
    }

    void finish() {
        const auto snapshot = allocator_->snapshot();
        if constexpr (!requires { allocator_->attachAllocatorTraceTracker(Zero{}); }) {
            for (const auto& entry : snapshot.device_traces.at(0)) {
                print_event(entry);
            }
        }
        for (const auto& segment : snapshot.segments) {
            print_segment(segment);
        }
        print_statistics(allocator_->getDeviceStats(kDevice));
    }

  private:
    using PoolId = std::pair<unsigned long long, unsigned long long>;

    void perform(const Call& call) {
        switch (call.kind) {
            case 'a': {
                c10::cuda::setCurrentCUDAStream(stream(call.third));
                blocks_[call.first] = allocator_->allocate(call.second);
                break;
            }
            case 'r':
                if (const auto at = blocks_.find(call.first); at != blocks_.end()) {
                    allocator_->recordStream(at->second, stream(call.second));
                }
                break;
            case 'f':
                blocks_.erase(call.first);
                break;
            case 'w':
                stub_complete(handle(call.first), call.second);
                break;
            case 'e':
                allocator_->emptyCache();
                break;
            case 'E':
                if constexpr (requires { allocator_->emptyCache(PoolId{}); }) {
                    allocator_->emptyCache(pool(call.first));
                }
                break;
            case 'm':
                allocator_->setMemoryFraction(std::stod(call.text), kDevice);
                break;
            case 's':
                allocator::setAllocatorSettings(call.text);
                break;
            case 'p':
                create_pool(call.first, call.second);
                break;
            case 'b':
                begin(call.first);
                break;
            case 'n':
                end(call.first);
                release(call.first);
                break;
            case 'd':
                release(call.first);
                break;
            case 'c':
                capture(call.first != 0);
                break;
            default:
                break;
        }
    }

    void create_pool(std::uint64_t number, std::uint64_t flags) {
        const PoolId id = pool(number);
        if constexpr (requires { allocator_->createOrIncrefPool(kDevice, id); }) {
            allocator_->createOrIncrefPool(kDevice, id);
        } else if constexpr (requires { allocator_->ensureExistsAndIncrefPool(kDevice, id); }) {
            allocator_->ensureExistsAndIncrefPool(kDevice, id);
        } else {
            begin(number);  // its first user stays until command 'd'
            end(number);
        }
        if ((flags & 1) != 0) {
            if constexpr (requires { allocator_->setNoSplit(kDevice, id); }) {
                allocator_->setNoSplit(kDevice, id);
            }
        }
        if ((flags & 2) != 0) {
            if constexpr (requires { allocator_->setUseOnOOM(kDevice, id, true); }) {
                allocator_->setUseOnOOM(kDevice, id, true);
            } else if constexpr (requires { allocator_->setUseOnOOM(kDevice, id); }) {
                allocator_->setUseOnOOM(kDevice, id);
            }
        }
    }

    // 2.1 routes each stream, 2.0 routes captured requests.
    void begin(std::uint64_t number) {
        const PoolId id = pool(number);
        if constexpr (requires { allocator_->beginAllocateToPool(kDevice, id, Zero{}); }) {
            allocator_->beginAllocateToPool(kDevice, id, [](cudaStream_t) { return true; });
        } else if constexpr (requires {
                                 allocator_->beginAllocateStreamToPool(kDevice, nullptr, id);
                             }) {
            for (std::size_t i = 0; i < head_.streams.size(); ++i) {
                allocator_->beginAllocateStreamToPool(
                    kDevice, static_cast<cudaStream_t>(handle(i)), id);
            }
        } else {
            stub_set_capture(++graph_);
            allocator_->notifyCaptureBegin(kDevice, graph_, id);
        }
    }

    void end(std::uint64_t number) {
        if constexpr (requires { allocator_->endAllocateToPool(kDevice, pool(number)); }) {
            allocator_->endAllocateToPool(kDevice, pool(number));
        } else if constexpr (requires { allocator_->endAllocateStreamToPool(kDevice, nullptr); }) {
            for (std::size_t i = 0; i < head_.streams.size(); ++i) {
                allocator_->endAllocateStreamToPool(kDevice, static_cast<cudaStream_t>(handle(i)));
                if (i > 0) {
                    release(number);
                }
            }
        } else {
            allocator_->notifyCaptureAboutToEnd(kDevice, graph_);
            stub_set_capture(0);
            allocator_->notifyCaptureEnded(kDevice, graph_);
        }
    }

    void release(std::uint64_t number) {
        if constexpr (requires { allocator_->releasePool(kDevice, pool(number)); }) {
            allocator_->releasePool(kDevice, pool(number));
        } else {
            allocator_->notifyCaptureDestroy(kDevice, pool(number));
        }
    }

    void capture(bool on) {
        stub_set_capture(on ? ++graph_ : 0);
        if constexpr (requires { allocator_->markCaptureBegin(kDevice); }) {
            on ? allocator_->markCaptureBegin(kDevice) : allocator_->markCaptureEnd(kDevice);
        }
    }

    static PoolId pool(std::uint64_t number) { return {0, number}; }

    [[nodiscard]] void* handle(std::uint64_t index) const {
        return reinterpret_cast<void*>(head_.streams.at(index));
    }

    [[nodiscard]] c10::cuda::CUDAStream stream(std::uint64_t index) const {
        return handle(index) == nullptr ? c10::cuda::getDefaultCUDAStream(kDevice)
                                        : c10::cuda::getStreamFromExternal(
                                              static_cast<cudaStream_t>(handle(index)), kDevice);
    }

    template <typename Segment>
    void print_segment(const Segment& segment) {
        print("segment %llx %llu %s stream %llu",
              address(segment.address),
              static_cast<unsigned long long>(segment.total_size),
              segment.is_large ? "large" : "small",
              index_of(segment.stream));
        if constexpr (requires { segment.owner_private_pool_id; }) {
            print(" pool %llu", address(segment.owner_private_pool_id.second));
        }
        for (const auto& block : segment.blocks) {
            unsigned long long requested = 0;
            if constexpr (requires { block.requested_size; }) {
                requested = block.active ? block.requested_size : 0;
            }
            print(" %c%llu:%llu",
                  block.allocated ? 'A'
                  : block.active  ? 'P'
                                  : '.',
                  static_cast<unsigned long long>(block.size),
                  requested);
        }
        print("\n");
    }

    static unsigned long long address(std::uint64_t value) { return value; }

    [[nodiscard]] unsigned long long index_of(const void* stream) const {
        unsigned long long index = 0;
        while (handle(index) != stream) {
            ++index;
        }
        return index;
    }

    template <typename Stat>
    static void print_one(const char* name, const char* kind, const Stat& one) {
        print("%s.%s %lld %lld %lld %lld\n",
              name,
              kind,
              static_cast<long long>(one.current),
              static_cast<long long>(one.peak),
              static_cast<long long>(one.allocated),
              static_cast<long long>(one.freed));
    }

    template <typename Stats>
    static void print_statistics(const Stats& all) {
#define FRAGTRACE_BY_CLASS(name)                       \
    if constexpr (requires { all.name[0].current; }) { \
        print_one(#name, "all", all.name[0]);          \
        print_one(#name, "small_pool", all.name[1]);   \
        print_one(#name, "large_pool", all.name[2]);   \
    }
        FRAGTRACE_BY_CLASS(allocation)
        FRAGTRACE_BY_CLASS(segment)
        FRAGTRACE_BY_CLASS(active)
        FRAGTRACE_BY_CLASS(inactive_split)
        FRAGTRACE_BY_CLASS(allocated_bytes)
        FRAGTRACE_BY_CLASS(reserved_bytes)
        FRAGTRACE_BY_CLASS(active_bytes)
        FRAGTRACE_BY_CLASS(inactive_split_bytes)
        FRAGTRACE_BY_CLASS(requested_bytes)
        print_one("oversize_allocations", "all", all.oversize_allocations);
        print_one("oversize_segments", "all", all.oversize_segments);
#define FRAGTRACE_COUNT(name)                                     \
    if constexpr (requires { all.name; }) {                       \
        print(#name " %lld\n", static_cast<long long>(all.name)); \
    }
        FRAGTRACE_COUNT(num_alloc_retries)
        FRAGTRACE_COUNT(num_ooms)
        FRAGTRACE_COUNT(num_sync_all_streams)
        FRAGTRACE_COUNT(num_device_alloc)
        FRAGTRACE_COUNT(num_device_free)
        FRAGTRACE_COUNT(num_oom_rejections)
        if constexpr (requires { all.reserved_bytes_by_private_pools; }) {
            std::map<unsigned long long, std::string> sorted;
            for (const auto& [id, statistic] : all.reserved_bytes_by_private_pools) {
                if (id.second != 0) {
                    print_one("private_pool", std::to_string(id.second).c_str(), statistic[0]);
                }
            }
        }
    }

    Allocator* allocator_;
    const ScriptHead& head_;
    std::map<std::uint64_t, c10::DataPtr> blocks_;
    unsigned long long graph_ = 0;
};

[[noreturn]] void run(const AllocatorScript& script) {
    try {
        // Never destroyed: its memory is not freed during an exception.
        auto* const player = new Player(allocator::get(), script.head);
        for (const Call& call : script.calls) {
            player->play(call);
        }
        player->finish();
        _exit(0);
    } catch (const std::exception& error) {
        const std::string text = error.what();
        print("crashed %s\n", text.substr(0, text.find('\n')).c_str());
    }
    _exit(1);
}

}  // namespace

int main() {
    output = static_cast<Output*>(
        mmap(nullptr, sizeof(Output), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (&c10::cuda::_internal::setHasPrimaryContext != nullptr) {
        c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    }
    if (&c10::cuda::detail::init_p2p_access_cache != nullptr) {
        c10::cuda::detail::init_p2p_access_cache(1);
    }
    for (const AllocatorScript& script : read_scripts(std::cin)) {
        output->used = 0;
        const pid_t child = fork();
        if (child == 0) {
            run(script);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (WIFSIGNALED(status)) {
            print("crashed signal %d\n", WTERMSIG(status));
        }
        std::cout << "script " << script.head.name << "\n";
        std::cout.write(output->text, static_cast<std::streamsize>(output->used));
        std::cout.flush();  // otherwise the next child, which writes warnings, would write it again
    }
    return 0;
}
