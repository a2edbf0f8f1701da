// fraganalyze anonymize IN OUT: writes a trace that can be shared with others.
#include "analyzer/trace/anonymize.h"

#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/pools/registry/pool_registry.h"
#include "analyzer/snapshot/input.h"
#include "analyzer/support/output_file.h"

#include <fmt/format.h>
#include <string>
#include <sys/stat.h>

namespace fragtrace::analyzer {

Status run_anonymize(int argc, char** argv) {
    CLI::App app(
        "Writes a trace without paths, names, host, command line and environment. Sizes, "
        "times, events and the shape of stacks stay: reports on it give the same figures.\n\n"
        "Examples\n"
        "  fraganalyze anonymize train.myhost.4711.ftrace to-send.ftrace\n"
        "  fraganalyze to-send.ftrace                             # look at what others will see\n",
        "fraganalyze anonymize");
    std::string input;
    std::string output;
    app.add_option("TRACE", input, "a trace that fragtrace recorded (.ftrace)")->required();
    app.add_option("OUT", output, "the file to write; only you may read it (mode 0600)")
        ->required();
    CommonOptions::add_force(&app);
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    if (const std::string import = import_name(input); !import.empty()) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: is no trace but an {}. Only traces of fragtrace (.ftrace) "
                                 "can be anonymized.",
                                 input,
                                 import)};
    }
    if (is_snapshot(input)) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: is a memory snapshot of PyTorch. Only traces of fragtrace "
                                 "(.ftrace) can be anonymized.",
                                 input)};
    }
    const Result<std::string> trace = anonymize_trace(input, is_pool_setting);
    if (!trace) {
        return trace.error();
    }
    umask(S_IRWXG | S_IRWXO);
    return write_output(output, *trace);
}

}  // namespace fragtrace::analyzer
