// Snapshots from other people's programs on real GPUs: every placement and every cudaMalloc is
// replayed equal. The snapshots are optional.
#include "analyzer/analysis/analyze.h"
#include "skip.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <string>

using namespace fragtrace::analyzer;

namespace {

struct Stranger {
    const char* name;
    std::uint64_t placements;
    std::uint64_t segments;
};

constexpr const char* kNames[] = {"decomfl",
                                  "cs336_sil_mem_snapshot",
                                  "cs336_sil_forward_bf16_128",
                                  "cs336_bcr_snapshot",
                                  "flexgen_oom",
                                  "verl_mem"};

std::string path_of(const std::string& name) {
    return FRAGTRACE_SHARED_TRACES "/pytorch/" + name + ".pickle.gz";
}

// Looks for all snapshots first: a skip after a failure would hide the failure.
void look_for_all() {
    for (const char* name : kNames) {
        if (!std::filesystem::exists(path_of(name))) {
            fragtrace::test::skip("a snapshot made by others: " + path_of(name) + " is not here");
        }
    }
}

std::unique_ptr<Analysis> analysis_of(const std::string& name) {
    look_for_all();
    const std::string path = path_of(name);
    auto analysis = analyze(path, {});
    if (!analysis.ok()) {
        FAIL(analysis.error().message);
    }
    return std::move(analysis).value();
}

}  // namespace

TEST_CASE("other people's histories replay with every placement and cudaMalloc equal",
          "[strangers]") {
    for (const Stranger& stranger : {Stranger{"decomfl", 7946, 61},
                                     Stranger{"cs336_sil_mem_snapshot", 36, 9},
                                     Stranger{"cs336_sil_forward_bf16_128", 937, 0},
                                     Stranger{"cs336_bcr_snapshot", 2162, 0}}) {
        INFO(stranger.name);
        const auto analysis = analysis_of(stranger.name);
        REQUIRE(analysis->devices.size() == 1);
        CHECK(analysis->timeline.damage.notes.empty());
        const Fidelity& fidelity = *analysis->devices[0].fidelity;
        INFO(fidelity.reason);
        CHECK(fidelity.placements == stranger.placements);
        CHECK(fidelity.placements_equal == stranger.placements);
        CHECK(fidelity.segments == stranger.segments);
        CHECK(fidelity.exact());
    }
}

TEST_CASE("other people's snapshots name lines of their programs", "[strangers]") {
    for (const char* name : kNames) {
        INFO(name);
        const auto analysis = analysis_of(name);
        const auto& places = analysis->devices.at(0).held.holders.at(0).places;
        for (const HoldingLine& place : places) {
            INFO(place.held.label);
            CHECK(place.held.label.find("??") == std::string::npos);
            CHECK(place.held.label.find("malloc") == std::string::npos);
            CHECK(place.held.label.find("unwind") == std::string::npos);
        }
        // Blocks from before the history have no stack.
        const auto first = std::find_if(places.begin(), places.end(), [](const auto& place) {
            return place.held.label != "unknown";
        });
        if (first != places.end()) {
            INFO(first->held.label);
            // A thread of the backward pass has no Python frames, so its autograd node is named.
            CHECK((first->held.label.find(".py:") != std::string::npos ||
                   first->held.label.find(" (backward pass)") != std::string::npos));
        }
    }
}

TEST_CASE("other people's states list the live memory", "[strangers]") {
    const auto verl = analysis_of("verl_mem");
    const RunFigures& of_verl = verl->devices.at(0).recorded;
    CHECK(of_verl.peak_reserved == std::uint64_t{24976} << 20);
    CHECK(of_verl.peak_active - of_verl.peak_allocated > std::uint64_t{569} << 20);
    CHECK(verl->timeline.pools.size() == 2);
    CHECK_FALSE(verl->devices[0].fidelity->not_judged.empty());
    CHECK(verl->devices[0].state_only);
    CHECK_FALSE(verl->devices[0].holes.empty());
    const auto flexgen = analysis_of("flexgen_oom");
    const RunFigures& of_flexgen = flexgen->devices.at(0).recorded;
    CHECK(of_flexgen.peak_reserved == std::uint64_t{11296} << 20);
    CHECK(of_flexgen.peak_allocated == 11'840'159'744);
    CHECK(flexgen->devices[0].state_only);
    CHECK(flexgen->devices[0].held.holders.at(0).allocated_bytes == 11'840'159'744);
}
