// What a replay of a release before 2.13 owes to the addresses that a driver happens to give.
#pragma once

#include "analyzer/analysis/analysis.h"

#include <cstdint>
#include <optional>

namespace fragtrace::analyzer {

struct AddressOrders {
    unsigned orders = 0;  // tried
    std::uint64_t least_reserved_bytes = 0;
    std::uint64_t most_reserved_bytes = 0;  // peaks
    std::uint64_t least_ooms = 0;
    std::uint64_t most_ooms = 0;

    [[nodiscard]] bool differ() const {
        return least_reserved_bytes != most_reserved_bytes || least_ooms != most_ooms;
    }
};

// The recorded settings on the recorded card under ascending, descending and scattered addresses.
// Nothing where addresses decide nothing.
std::optional<AddressOrders> try_address_orders(const DeviceAnalysis& device);

}  // namespace fragtrace::analyzer
