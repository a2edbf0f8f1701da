#include "analyzer/analysis/whatif/reserved_curve.h"

#include <catch2/catch.hpp>

#include <map>
#include <random>

using namespace fragtrace::analyzer;

TEST_CASE("a curve has the maximum of each stretch and continues without requests") {
    for (const std::uint64_t last : {0u, 1u, 700u, 1023u, 1024u, 5000u, 123'456u}) {
        std::mt19937_64 random(last);
        std::map<std::uint64_t, std::uint64_t> requests;  // event, reserved bytes
        for (int i = 0; i < 300; ++i) {
            requests[random() % (last + 1)] = random() % 1000;
        }
        ReservedCurve curve(last);
        for (const auto& [event, reserved] : requests) {
            curve.note(event, reserved);
        }
        const std::vector<std::uint64_t> points = curve.take();
        REQUIRE(points.size() == kCurvePoints);
        for (std::size_t point = 0; point < kCurvePoints; ++point) {
            const std::uint64_t begin = ReservedCurve::begin_of(point, last);
            const std::uint64_t end = ReservedCurve::begin_of(point + 1, last);
            // The bytes reserved at the beginning of the stretch count too.
            const auto first = requests.lower_bound(begin);
            std::uint64_t highest = first == requests.begin() ? 0 : std::prev(first)->second;
            for (auto at = first; at != requests.end() && at->first < end; ++at) {
                highest = std::max(highest, at->second);
            }
            INFO("last " << last << ", point " << point);
            REQUIRE(points[point] == highest);
        }
    }
}
