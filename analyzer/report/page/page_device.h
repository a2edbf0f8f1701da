// One device of the page: its columns as document elements, everything else as JSON.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace fragtrace::analyzer {

// The part of the document for one device.
struct WrittenDevice {
    nlohmann::json header;
    std::string overview;  // elements that show it before any block is read
    std::string blocks;    // elements with its blocks
};

// Requires consistent data (render_page checks it). Compresses packs on all processors.
WrittenDevice write_device(const PageDevice& device, std::size_t index, std::size_t block_budget);

}  // namespace fragtrace::analyzer
