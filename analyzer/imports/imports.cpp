#include "analyzer/imports/imports.h"

#include <algorithm>
#include <array>

namespace fragtrace::analyzer {
namespace {

constexpr std::array kFormats = {
    ImportFormat{"RMM log", is_rmm_log, read_rmm_log},
    ImportFormat{"PyTorch profile", is_kineto_trace, read_kineto_trace},
    ImportFormat{"Nsight Systems export", is_nsight_export, read_nsight_export},
    ImportFormat{"XLA profile", is_xla_profile, read_xla_profile},
};

}  // namespace

const ImportFormat* import_format(const InputFile& file) {
    const auto* const found =
        std::find_if(kFormats.begin(), kFormats.end(), [&file](const ImportFormat& format) {
            return format.recognises(file);
        });
    return found == kFormats.end() ? nullptr : found;
}

}  // namespace fragtrace::analyzer
