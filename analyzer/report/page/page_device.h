// One device of the page: its columns as document elements, everything else as JSON.
#pragma once

#include "analyzer/report/page/page_data.h"
#include "analyzer/report/page/page_device_elements.h"
#include "analyzer/report/page/page_stack_tables.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace fragtrace::analyzer {

// The part of the document for one device.
struct WrittenDevice {
    nlohmann::json header;
    std::string overview;          // elements that show it before any block is read
    std::string blocks;            // elements with its blocks
    std::size_t header_bytes = 0;  // as text
};

// Requires consistent data (render_page checks it), and its stacks in `stacks`. Compresses packs on
// all processors. The columns fit into the room, if it is not tiny. Notes in the header say what
// was left out for this.
WrittenDevice write_device(const PageDevice& device,
                           std::size_t index,
                           const StackTables& stacks,
                           const DeviceRoom& room);

}  // namespace fragtrace::analyzer
