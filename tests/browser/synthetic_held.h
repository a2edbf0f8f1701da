// Who holds holes open on made-up pages, by the analyzer's own rule: what the page shares out
// itself is held against it.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::page_test {

// Fills the card's culprits with the blocks of a device that are live just before `before_ns` and
// whose stack is named; several stacks of one name are one row. Most bytes first.
void add_culprits(const analyzer::PageDevice& device,
                  std::uint64_t before_ns,
                  const std::vector<std::pair<std::uint32_t, std::string>>& names,
                  analyzer::PageCard* card);

// Eight moments of random heaps, each with a card: segments, expandable ones of several maps with
// blocks over several pages, pending blocks, a private pool without a block.
analyzer::PageData shares_page();

}  // namespace fragtrace::page_test
