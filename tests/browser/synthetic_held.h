// The stacks that block memory on made-up pages, by the analyzer's own rule. The page's own shares
// are compared with them.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::page_test {

// Fills the card's culprits with the device's blocks that are live just before `before_ns` and
// whose stack is named. Several stacks with one name are one row. Rows are sorted by bytes, largest
// first.
void add_culprits(const analyzer::PageDevice& device,
                  std::uint64_t before_ns,
                  const std::vector<std::pair<std::uint32_t, std::string>>& names,
                  analyzer::PageCard* card);

// Eight moments of random heaps, each with a card: segments, expandable ones made by several maps
// with blocks over several pages, pending blocks, and a private pool without a block.
analyzer::PageData shares_page();

}  // namespace fragtrace::page_test
