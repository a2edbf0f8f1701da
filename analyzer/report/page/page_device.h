// One device of the page: its columns as elements of the document, the rest as JSON.
#pragma once

#include "analyzer/report/page/page_data.h"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace fragtrace::analyzer {

// A device's part of the document.
struct WrittenDevice {
    nlohmann::json header;
    std::string overview;  // elements that draw it before a single block is read
    std::string blocks;    // elements with its blocks
};

// The data is consistent (render_page has checked it). Packs are compressed by all processors.
WrittenDevice write_device(const PageDevice& device, std::size_t index, std::size_t block_budget);

}  // namespace fragtrace::analyzer
