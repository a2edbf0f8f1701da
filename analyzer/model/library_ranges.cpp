#include "analyzer/model/library_ranges.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace fragtrace::analyzer {
namespace {

// Names of NVTX domains, as the libraries register them.
constexpr std::array<std::string_view, 15> kDomains = {"CCCL",
                                                       "NCCL",
                                                       "NVSHMEM",
                                                       "TSL",
                                                       "TensorRT",
                                                       "cuBLAS",
                                                       "cuBLASLt",
                                                       "cuDNN",
                                                       "cuFFT",
                                                       "cuSOLVER",
                                                       "cuSPARSE",
                                                       "cuTENSOR",
                                                       "libcudf",
                                                       "libkvikio",
                                                       "librmm"};

// CCCL headers from before its NVTX domain existed use these prefixes.
constexpr std::array<std::string_view, 2> kNamespaces = {"cub::", "thrust::"};

}  // namespace

std::string_view library_of_range(std::string_view name) {
    const std::size_t colon = name.find(": ");
    if (colon != std::string_view::npos) {
        const auto domain = std::find(kDomains.begin(), kDomains.end(), name.substr(0, colon));
        if (domain != kDomains.end()) {
            return *domain;
        }
    }
    for (const std::string_view prefix : kNamespaces) {
        if (name.starts_with(prefix)) {
            return "CCCL";
        }
    }
    return "";
}

std::vector<bool> library_phases(const Timeline& timeline) {
    std::unordered_map<std::uint32_t, bool> known;
    std::vector<bool> result(timeline.phases.size());
    for (std::size_t i = 0; i < timeline.phases.size(); ++i) {
        const Phase& phase = timeline.phases[i];
        if (phase.kind != RangeKind::kNvtx) {
            continue;
        }
        const auto [name, is_new] = known.try_emplace(phase.name, false);
        if (is_new) {
            name->second = !library_of_range(text_of(timeline, phase.name)).empty();
        }
        result[i] = name->second;
    }
    return result;
}

}  // namespace fragtrace::analyzer
