// The columns of one device, from the rows of it that are in the file.
#pragma once

#include "analyzer/report/page/page_columns.h"
#include "analyzer/report/page/page_data.h"
#include "analyzer/report/page/page_limits.h"
#include "analyzer/report/page/page_overview.h"
#include "analyzer/report/page/page_stack_tables.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

inline constexpr std::uint32_t kNeverTick = 0xffffffffu;

class DeviceColumns {
  protected:
    DeviceColumns(const PageDevice& device, const StackTables& stacks, std::size_t most_ranges)
        : device_(device), stacks_(stacks), axis_(device, most_ranges) {}

    [[nodiscard]] std::uint64_t tick(std::uint64_t time_ns) const {
        return time_ns == kNeverNs ? kNeverTick : time_ns / tick_ns_;
    }

    [[nodiscard]] ColumnPack bins() const;
    [[nodiscard]] ColumnPack map() const;
    [[nodiscard]] ColumnPack units() const;
    [[nodiscard]] ColumnPack over_time(const BytesOverTime& memory) const;
    [[nodiscard]] ColumnPack spans() const;
    [[nodiscard]] ColumnPack phases(const std::vector<PagePhase>& phases,
                                    const std::vector<std::uint32_t>& names) const;
    [[nodiscard]] ColumnPack curve_times() const;
    [[nodiscard]] ColumnPack curves(std::size_t most) const;
    [[nodiscard]] ColumnPack blocks(std::size_t begin, std::size_t end) const;

    const PageDevice& device_;
    const StackTables& stacks_;
    AddressAxis axis_;
    std::uint64_t end_ns_ = 1;
    std::uint64_t tick_ns_ = 1;
    PageOverview overview_;
    KeptRows units_;
    KeptRows blocks_;
};

}  // namespace fragtrace::analyzer
