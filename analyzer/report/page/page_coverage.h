// Adds up rectangles to a share of covered area per cell. Each rectangle takes constant time,
// whatever its size: only second differences at its edges are stored, and they are summed at the
// end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

class CoverageGrid {
  public:
    CoverageGrid(std::size_t columns, std::size_t rows);

    // Adds a rectangle. Edges are in cells and may be fractional. Parts outside the grid are cut
    // off.
    void add(double left, double right, double bottom, double top);
    // Shares as 0..255, row by row.
    [[nodiscard]] std::vector<std::uint8_t> shares() const;

  private:
    std::size_t columns_;
    std::size_t rows_;
    std::size_t stride_;
    std::vector<double> differences_;
};

}  // namespace fragtrace::analyzer
