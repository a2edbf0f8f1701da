// Reports of earlier runs: baselines for check, and both sides of compare. Summaries of processes:
// parts of a job.
#include "analyzer/analysis/job/read_summaries.h"
#include "tests/fuzz/harness.h"
#include "tests/support/made_up_traces.h"

using namespace fragtrace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const std::string trace = fuzz::save("trace", testing::private_pools_trace(1).bytes());
    const std::string path = fuzz::save("report.json", fuzz::Input(data, size).rest());
    if (analyzer::is_summaries_file(path)) {
        fuzz::run({path});
        fuzz::run({path, "--json", "-"});
        fuzz::run({"merge", path, path, "-o", "-"});
        return 0;
    }
    fuzz::run({"check", trace, "--baseline", path, "--json", "-"});
    fuzz::run({"compare", trace, path});
    fuzz::run({"compare", path, trace, "--json", "-"});
    fuzz::run({"compare", path, path});
    return 0;
}
