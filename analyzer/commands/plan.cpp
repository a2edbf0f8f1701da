// fraganalyze plan PROBLEM.csv: places buffers with known lifetimes.
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/plan/csv.h"
#include "analyzer/plan/planner.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <cstdio>
#include <fmt/format.h>

namespace fragtrace::analyzer {

Status run_plan(int argc, char** argv) {
    CLI::App app(
        "Places buffers with known lifetimes in as little memory as possible, and prints the "
        "distance from the lower bound. Reads and writes CSV like MiniMalloc: "
        "id,lower,upper,size in, and additionally offset out.\n\n"
        "Examples\n"
        "  fraganalyze plan problem.csv > plan.csv\n"
        "  fraganalyze plan problem.csv --output plan.csv && fraganalyze validate plan.csv\n",
        "fraganalyze plan");
    std::string input;
    std::string output = "-";
    app.add_option("PROBLEM", input, "a CSV file with the columns id,lower,upper,size")->required();
    CommonOptions::add_output(&app, &output)->capture_default_str();
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    const auto file = InputFile::open(input);
    if (!file) {
        return file.error();
    }
    std::string text(file->size(), '\0');
    text.resize(file->read_at(0, text.data(), text.size()));
    const auto problem = read_problem(text, input);
    if (!problem) {
        return problem.error();
    }
    const Plan plan = plan_placement(problem->lifetimes);
    const Status written = write_output(output, plan_csv(*problem, plan.offsets));
    if (!written) {
        return written;
    }
    const double above = plan.load_bytes == 0
                             ? 0
                             : 100.0 * static_cast<double>(plan.height_bytes - plan.load_bytes) /
                                   static_cast<double>(plan.load_bytes);
    const std::string summary =
        fmt::format("{} in {}, {:.2f} % above the lower bound of {} ({})\n",
                    format_counted(problem->lifetimes.size(), "buffer", "buffers"),
                    format_counted(plan.height_bytes, "byte", "bytes"),
                    above,
                    plan.load_bytes,
                    plan.method);
    if (output != "-") {
        return write_text(summary);
    }
    print_to_stderr(summary);
    return Ok{};
}

}  // namespace fragtrace::analyzer
