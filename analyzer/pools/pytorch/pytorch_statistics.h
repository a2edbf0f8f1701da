// Every statistic of torch.cuda.memory_stats(), computed as PyTorch computes it. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fragtrace::analyzer {

// As in PyTorch, a change of settings can bring `current` below zero, and it wraps around. This
// happens when an allocation counts as oversize when it is made but not when it is freed, or the
// reverse.
struct PytorchStatistic {
    std::uint64_t current = 0;
    std::uint64_t peak = 0;
    std::uint64_t allocated = 0;  // sum of all increases

    // Sum of all decreases.
    [[nodiscard]] std::uint64_t freed() const { return allocated - current; }

    void increase(std::uint64_t amount) {
        current += amount;
        allocated += amount;
        peak =
            static_cast<std::int64_t>(current) > static_cast<std::int64_t>(peak) ? current : peak;
    }

    void decrease(std::uint64_t amount) { current -= amount; }

    bool operator==(const PytorchStatistic&) const = default;
};

// One statistic in three versions: total, small pool and large pool.
struct PytorchStatisticByClass {
    enum : std::size_t { kSmall = 0, kLarge = 1 };

    PytorchStatistic all;
    PytorchStatistic by_class[2];

    void increase(std::size_t size_class, std::uint64_t amount) {
        all.increase(amount);
        by_class[size_class].increase(amount);
    }

    void decrease(std::size_t size_class, std::uint64_t amount) {
        all.decrease(amount);
        by_class[size_class].decrease(amount);
    }

    bool operator==(const PytorchStatisticByClass&) const = default;
};

struct PytorchStatistics {
    PytorchStatisticByClass allocation;
    PytorchStatisticByClass segment;
    PytorchStatisticByClass active;
    PytorchStatisticByClass inactive_split;
    PytorchStatisticByClass allocated_bytes;
    PytorchStatisticByClass reserved_bytes;
    PytorchStatisticByClass active_bytes;
    PytorchStatisticByClass inactive_split_bytes;
    PytorchStatisticByClass requested_bytes;  // of live and pending blocks
    PytorchStatistic oversize_allocations;
    PytorchStatistic oversize_segments;
    std::uint64_t num_alloc_retries = 0;
    std::uint64_t num_ooms = 0;
    std::uint64_t num_sync_all_streams = 0;
    std::uint64_t num_device_alloc = 0;
    std::uint64_t num_device_free = 0;
    std::uint64_t num_oom_rejections = 0;

    bool operator==(const PytorchStatistics&) const = default;
};

}  // namespace fragtrace::analyzer
