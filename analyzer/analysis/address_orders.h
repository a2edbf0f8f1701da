// How much a replay depends on the addresses that the driver returns. Only releases before 2.13
// depend on them.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <cstdint>
#include <optional>

namespace fragtrace::analyzer {

struct AddressOrders {
    unsigned orders = 0;  // number of address orders tried
    std::uint64_t least_reserved_bytes = 0;
    std::uint64_t most_reserved_bytes = 0;  // peak over the tried orders
    std::uint64_t least_ooms = 0;
    std::uint64_t most_ooms = 0;

    [[nodiscard]] bool differ() const {
        return least_reserved_bytes != most_reserved_bytes || least_ooms != most_ooms;
    }
};

// Replays the recorded settings on the recorded card with ascending, descending and scattered
// addresses. nullopt if the pool does not choose blocks by address.
std::optional<AddressOrders> try_address_orders(const DeviceAnalysis& device);

}  // namespace fragtrace::analyzer
