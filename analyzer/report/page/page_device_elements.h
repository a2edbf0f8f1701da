// The elements of one device: the choice of the rows that have room in the file.
#pragma once

#include "analyzer/report/page/page_device_columns.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

// What a device may use of the file.
struct DeviceRoom {
    std::size_t bytes = 0;
    std::size_t blocks = 0;
    std::size_t units = 0;
};

// Elements of the document, and what describes them in the header.
struct Elements {
    std::string html;
    nlohmann::json packs = nlohmann::json::array();
    nlohmann::json names = nlohmann::json::array();  // that its rows refer to

    [[nodiscard]] std::size_t size() const {
        std::size_t bytes = html.size();
        for (const nlohmann::json& name : names)
            bytes += json_bytes(name.get_ref<const std::string&>()) + 1;
        return bytes;
    }

    void add(Elements more) {
        html += more.html;
        packs.insert(packs.end(), more.packs.begin(), more.packs.end());
    }
};

class DeviceElements : protected DeviceColumns {
  protected:
    DeviceElements(const PageDevice& device,
                   std::size_t index,
                   const StackTables& stacks,
                   const DeviceRoom& room);

    // Elements that show the device before any block is read. They leave a fifth of the room to the
    // header and the blocks.
    Elements overview();
    // If there is no room for all blocks, the longest-lived blocks and those that cards name stay.
    // The blocks of a unit that is left out are left out, too.
    Elements chosen_blocks(std::size_t room);

    // The rows of a small table in the header.
    [[nodiscard]] std::size_t most_rows() const { return rows_of(room_); }

    // Memory beside the pool, as kSides names it.
    [[nodiscard]] const BytesOverTime& side(std::size_t which) const;

    static constexpr std::array<std::pair<const char*, const char*>, 3> kSides = {
        {{"others", "Memory outside the pool"},
         {"pinned", "Pinned memory"},
         {"managed", "Managed memory"}}};

    DeviceRoom room_;
    std::size_t map_columns_ = kMapColumns;
    std::size_t map_rows_ = kMapRows;
    nlohmann::json phase_names_ = nlohmann::json::array();
    std::uint64_t phases_merged_ = 0;  // phases without a range of their own
    std::size_t curves_ = 0;
    std::array<std::uint64_t, 3> part_ns_ = {};  // by side; 0 = every change is in the file

  private:
    static std::size_t rows_of(const DeviceRoom& room);
    [[nodiscard]] Elements element(const std::string& name, const ColumnPack& pack) const;
    void find_named();
    Elements small_map(std::size_t room);
    Elements chosen_units(std::size_t room);
    Elements chosen_phases(std::size_t room);
    Elements chosen_curves(std::size_t room);
    Elements chosen_side(std::size_t which, std::size_t room);

    std::string prefix_;
    std::vector<bool> named_blocks_;
    std::vector<bool> named_units_;
};

}  // namespace fragtrace::analyzer
