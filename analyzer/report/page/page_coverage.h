// Adds rectangles up to shares of covered area per cell, in constant time per rectangle however
// large it is: only the second differences at its edges are stored, and summed up at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fragtrace::analyzer {

class CoverageGrid {
  public:
    CoverageGrid(std::size_t columns, std::size_t rows);

    // Edges in cells, fractions included; what lies outside is cut off.
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
