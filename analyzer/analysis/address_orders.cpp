#include "analyzer/analysis/address_orders.h"

#include "analyzer/analysis/replay_setups.h"
#include "analyzer/pools/pytorch/pytorch_pool.h"
#include "analyzer/replay/replayer.h"

#include <algorithm>

namespace fragtrace::analyzer {

std::optional<AddressOrders> try_address_orders(const DeviceAnalysis& device) {
    if (device.pool != "pytorch" ||
        device.script.rules.tie_break != PytorchRules::TieBreak::kAddress) {
        return std::nullopt;
    }
    constexpr std::pair<AddressOrder, std::uint64_t> kOrders[] = {{AddressOrder::kAscending, 0},
                                                                  {AddressOrder::kDescending, 0},
                                                                  {AddressOrder::kScattered, 1},
                                                                  {AddressOrder::kScattered, 2},
                                                                  {AddressOrder::kScattered, 3}};
    Candidate candidate;
    candidate.config = device.config;
    candidate.capacity_bytes = device.capacity_bytes;
    candidate.total_bytes = device.total_bytes;
    AddressOrders found;
    for (const auto& [order, seed] : kOrders) {
        const auto setup = candidate_setup(device, candidate);
        auto* const pool = setup ? dynamic_cast<PytorchPool*>(setup->pool.get()) : nullptr;
        if (pool == nullptr) {
            return std::nullopt;
        }
        pool->set_address_order(order, seed);
        const ReplayResult result = replay(device.script, *pool);
        const std::uint64_t reserved = result.statistics.reserved.peak;
        if (found.orders++ == 0) {
            found.least_reserved_bytes = found.most_reserved_bytes = reserved;
            found.least_ooms = found.most_ooms = result.ooms();
        }
        found.least_reserved_bytes = std::min(found.least_reserved_bytes, reserved);
        found.most_reserved_bytes = std::max(found.most_reserved_bytes, reserved);
        found.least_ooms = std::min(found.least_ooms, result.ooms());
        found.most_ooms = std::max(found.most_ooms, result.ooms());
    }
    return found;
}

}  // namespace fragtrace::analyzer
