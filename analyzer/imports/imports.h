// Recordings of other tools as inputs: the table of formats.
//
// Each format becomes a Timeline with the same events as a trace, as far as the format has them. A
// list of sentences says what is missing. All files are untrusted.
#pragma once

#include "analyzer/model/timeline.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/result.h"

#include <string>
#include <string_view>

namespace fragtrace::analyzer {

struct ImportFormat {
    std::string_view name;  // in a sentence: "RMM log"
    // Whether the file is of this format, judged by its first bytes.
    bool (*recognises)(const InputFile& file);
    // Errors (kInput): damaged, or nothing in it that a report could use.
    Result<Timeline> (*read)(const std::string& path, const InputFile& file);
};

// nullptr: the file is of no imported format.
const ImportFormat* import_format(const InputFile& file);

// ---- the formats, one file each -----------------------------------------------------------------

// The CSV log of RAPIDS RMM (rmm::mr::logging_resource_adaptor, RMM_LOG_FILE).
bool is_rmm_log(const InputFile& file);
Result<Timeline> read_rmm_log(const std::string& path, const InputFile& file);

// A trace of PyTorch's profiler in Chrome's JSON format, with memory events.
bool is_kineto_trace(const InputFile& file);
Result<Timeline> read_kineto_trace(const std::string& path, const InputFile& file);

// The database that `nsys export --type sqlite` writes, with CUDA memory events.
bool is_nsight_export(const InputFile& file);
Result<Timeline> read_nsight_export(const std::string& path, const InputFile& file);

// A profile of TensorFlow or JAX (*.xplane.pb), with events of the BFC allocator.
bool is_xla_profile(const InputFile& file);
Result<Timeline> read_xla_profile(const std::string& path, const InputFile& file);

}  // namespace fragtrace::analyzer
