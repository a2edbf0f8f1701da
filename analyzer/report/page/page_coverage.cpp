#include "analyzer/report/page/page_coverage.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace fragtrace::analyzer {
namespace {

// The differences of one edge at `position`. A cell that the edge divides is partly covered.
struct Edge {
    std::size_t cell;
    double first;   // added at `cell`
    double second;  // added at `cell` + 1
};

Edge edge_at(double position) {
    const double cell = std::floor(position);
    const double covered = cell + 1 - position;
    return {static_cast<std::size_t>(cell), covered, 1 - covered};
}

}  // namespace

CoverageGrid::CoverageGrid(std::size_t columns, std::size_t rows)
    : columns_(columns), rows_(rows), stride_(columns + 2), differences_(stride_ * (rows + 2)) {}

void CoverageGrid::add(double left, double right, double bottom, double top) {
    left = std::clamp(left, 0.0, static_cast<double>(columns_));
    right = std::clamp(right, 0.0, static_cast<double>(columns_));
    bottom = std::clamp(bottom, 0.0, static_cast<double>(rows_));
    top = std::clamp(top, 0.0, static_cast<double>(rows_));
    if (!(left < right) || !(bottom < top)) return;
    const std::array<Edge, 2> across = {edge_at(left), edge_at(right)};
    const std::array<Edge, 2> up = {edge_at(bottom), edge_at(top)};
    for (int v = 0; v < 2; ++v) {
        for (int h = 0; h < 2; ++h) {
            const double sign = v == h ? 1.0 : -1.0;
            double* cell = &differences_[up[v].cell * stride_ + across[h].cell];
            cell[0] += sign * up[v].first * across[h].first;
            cell[1] += sign * up[v].first * across[h].second;
            cell[stride_] += sign * up[v].second * across[h].first;
            cell[stride_ + 1] += sign * up[v].second * across[h].second;
        }
    }
}

std::vector<std::uint8_t> CoverageGrid::shares() const {
    std::vector<std::uint8_t> result(columns_ * rows_);
    std::vector<double> above(stride_);
    for (std::size_t row = 0; row < rows_; ++row) {
        double sum = 0;
        for (std::size_t column = 0; column < columns_; ++column) {
            sum += differences_[row * stride_ + column];
            above[column] += sum;
            const double share = std::clamp(above[column], 0.0, 1.0);
            result[row * columns_ + column] = static_cast<std::uint8_t>(share * 255 + 0.5);
        }
    }
    return result;
}

}  // namespace fragtrace::analyzer
