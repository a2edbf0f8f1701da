#include "launcher/try.h"

#include <fragtrace/printable.h>

#include "launcher/command_line.h"
#include "launcher/libraries.h"
#include "launcher/probe.h"
#include "launcher/program.h"
#include "launcher/refusal.h"
#include "launcher/report.h"
#include "launcher/run.h"
#include "launcher/scratch.h"
#include "launcher/sizes_text.h"
#include "launcher/try_command.h"
#include "launcher/try_outcome.h"
#include "launcher/try_report.h"
#include "vgpu/common/config.h"

#include <nlohmann/json.hpp>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

namespace fragtrace::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kText =
    R"(Runs the recorded command again with a change that fraganalyze recommends, records it, and shows the
prediction and the outcome side by side. It changes settings of the allocator only. The report of fraganalyze
also has changes of the program, which you make yourself. The command, its folder and its allocator settings
come from TRACE if you recorded it on this machine. For any other trace, give the command after --.

Examples
  fragtrace try train.myhost.4711.ftrace             the recommended change, on the same kind of card
  fragtrace try train.myhost.4711.ftrace --list      all changes that can be tried, with their numbers
  fragtrace try train.myhost.4711.ftrace --remedy 3
  fragtrace try train.myhost.4711.ftrace -- python train.py --steps 100

Exit code: 0 if the prediction held, 1 if not, 2 for bad usage or if nothing was recorded.
)";

constexpr int kAnalysisLimit_s = 3600;

struct TryRequest {
    std::string trace;
    int remedy = 0;  // 0 = the recommended one
    bool list = false;
    std::string virtual_gpu;  // empty = as recorded
    std::string output = ".";
    std::vector<std::string> command;  // empty = as recorded
};

TryRequest parse(int argc, char** argv, bool* help) {
    CLI::App app(kText, "fragtrace try");
    TryRequest request;
    app.prefix_command();
    app.add_option("TRACE", request.trace, "a trace that fragtrace recorded (.ftrace)")->required();
    app.add_option("--remedy", request.remedy, "number of the change, as --list shows it")
        ->check(CLI::Range(1, 100000))
        ->type_name("N");
    app.add_flag("--list", request.list, "list the changes that can be tried, and run nothing");
    app.add_option(
           "--virtual-gpu",
           request.virtual_gpu,
           "run on this virtual GPU; without it, as recorded: on the same virtual GPU, or on "
           "the card of this machine")
        ->type_name("CARD");
    app.add_option("-o,--output", request.output, "folder for the new trace")
        ->type_name("DIR")
        ->capture_default_str();
    if (!read_options(&app, argc, argv)) {
        *help = true;
        print_help(app, "[-- COMMAND]");
        return request;
    }
    bool marked = false;
    request.command = words_after_options(app, &marked);
    if (!marked && !request.command.empty()) {
        throw Refusal{kBadUsage,
                      printable(request.command.front()) +
                          ": give one TRACE; a command comes after -- (fragtrace try --help)"};
    }
    if (marked && request.command.empty()) {
        throw Refusal{kBadUsage, "no command after -- (fragtrace try --help)"};
    }
    if (!request.virtual_gpu.empty() &&
        vgpu::parse_config(request.virtual_gpu.c_str(), nullptr).status == vgpu::Config::kInvalid) {
        throw Refusal{kBadUsage,
                      "--virtual-gpu cannot be '" + printable(request.virtual_gpu) +
                          "': give a card such as 24GiB or A100-80GB"};
    }
    return request;
}

// Returns the JSON that fraganalyze writes for these arguments. Throws its error as a Refusal.
Json analyze(std::vector<std::string> words, const std::string& trace, const std::string& file) {
    words.insert(words.begin(), find_analyzer(find_installation()));
    words.insert(words.end(), {"--json", file, "--", trace});
    const Probe done = probe_command(words, {}, kAnalysisLimit_s);
    if (!done.succeeded()) {
        const std::string said = printable(done.errors.substr(0, done.errors.find('\n')));
        throw Refusal{kBadUsage, said.empty() ? printable(trace) + ": cannot be analysed" : said};
    }
    std::ifstream from(file);
    Json json = Json::parse(from, nullptr, false);
    if (json.is_discarded()) {
        throw Refusal{kBadUsage, printable(trace) + ": fraganalyze wrote no result"};
    }
    return json;
}

// ---- the change
// -----------------------------------------------------------------------------------

bool can_be_run(const Json& row) {
    const std::string remedy = text(row, "remedy");
    return row.value("usable", false) && row["rank"].is_number() && !row.value("recorded", false) &&
           ((remedy == "settings" && text(row, "pool") == "pytorch") || remedy == "caching_off");
}

std::vector<Json> rows_of(const Json& report) {
    std::vector<Json> rows;
    for (const Json& row : report["whatif"]) {
        if (row["device"] == device_of(report)["index"] && can_be_run(row)) {
            rows.push_back(row);
        }
    }
    std::sort(rows.begin(), rows.end(), [](const Json& left, const Json& right) {
        return number(left, "rank") < number(right, "rank");
    });
    return rows;
}

std::string prediction_text(const Json& row) {
    const bool past = row.value("gets_past", false);
    return fmt::format("{}, {} reserved ({})",
                       past                       ? "past the out-of-memory"
                       : number(row, "ooms") != 0 ? "out of memory"
                                                  : "no out-of-memory",
                       size_text(number(row, "peak_reserved_bytes")),
                       text(row, "class_text"));
}

void print_list(const std::vector<Json>& rows, const std::string& recommended) {
    for (const Json& row : rows) {
        fmt::print("{:>4}  {}: {}{}\n",
                   number(row, "rank"),
                   printable(text(row, "name")),
                   prediction_text(row),
                   text(row, "name") == recommended ? ", recommended" : "");
    }
    if (rows.empty()) {
        fmt::print("No change of settings can be tried.\n");
    }
}

Json choose_row(const TryRequest& request, const Json& report, const std::vector<Json>& rows) {
    const Json& conclusion = device_of(report)["conclusion"];
    const std::string recommended = text(conclusion, "row");
    for (const Json& row : rows) {
        if (request.remedy != 0 ? number(row, "rank") == static_cast<unsigned>(request.remedy)
                                : text(row, "name") == recommended && !recommended.empty()) {
            return row;
        }
    }
    const std::string how = " (fragtrace try TRACE --list shows what can be tried)";
    if (request.remedy != 0) {
        throw Refusal{
            kBadUsage,
            fmt::format(
                "--remedy {}: no change with this number can be tried{}", request.remedy, how)};
    }
    const std::string sentence = printable(text(conclusion, "remedy"));
    throw Refusal{
        kBadUsage,
        (sentence.empty() ? "no change is recommended"
                          : "the recommended change is not one of settings: " + sentence) +
            how};
}

// ---- the outcome
// ----------------------------------------------------------------------------------

// The trace of the run that belongs to the recorded process: of the same rank in a job, otherwise
// the command's own, otherwise the largest. Empty if there is none.
std::string new_trace(const FinishedRun& run,
                      const HeldSignals& signals,
                      int rank,
                      const Scratch& scratch) {
    std::size_t others = 0;
    const std::vector<std::string> traces = traces_of_run(run, signals, &others);
    for (const std::string& trace : traces) {
        if (rank < 0) {
            break;
        }
        const Json list = analyze({"list"}, trace, scratch.file("list.json"));
        if (!list["traces"].empty() && list["traces"][0].value("rank", Json()) == rank) {
            return trace;
        }
    }
    return traces.empty() ? "" : traces[0];
}

int compare(const std::string& recorded_trace,
            const Json& recorded_report,
            const Json& row,
            const std::string& trace,
            const Scratch& scratch) {
    const Json& recorded = device_of(recorded_report);
    const Json report = analyze({"report", "--no-whatif"}, trace, scratch.file("outcome.json"));
    const Json* outcome = nullptr;
    for (const Json& device : report["devices"]) {
        outcome = device["index"] == recorded["index"] ? &device : outcome;
    }
    if (outcome == nullptr) {
        throw Refusal{
            kBadUsage,
            fmt::format("{}: the new run did not use GPU {}, which the recorded run used; make it "
                        "visible (CUDA_VISIBLE_DEVICES)",
                        printable(trace),
                        recorded["index"].dump())};
    }
    std::vector<OutcomeLine> lines = outcome_lines(recorded, row, *outcome);
    const std::string set = text(report["facts"], "allocator_conf");
    const bool own_settings = text(row, "remedy") == "settings" && set != text(row, "config");
    const bool other_card = (*outcome)["total_bytes"] != recorded["total_bytes"];
    if (own_settings || other_card) {
        for (OutcomeLine& line : lines) {
            line.held = std::nullopt;
        }
    }
    print_lines(lines);
    const std::string note =
        own_settings ? fmt::format(
                           "the program replaced the setting by its own, '{}': the "
                           "prediction does not apply",
                           set)
        : other_card
            ? fmt::format("the card has {}; {} was recorded: the prediction does not apply",
                          size_text(number(*outcome, "total_bytes")),
                          size_text(number(recorded, "total_bytes")))
            : std::string();
    if (!note.empty()) {
        say(note);
    }
    if (!keep_outcome(recorded_trace, recorded_report, row, lines, note)) {
        say("the outcome cannot be kept beside the recorded trace, so its report does not show it");
    }
    const bool wrong = std::any_of(
        lines.begin(), lines.end(), [](const OutcomeLine& line) { return line.held == false; });
    say("the new trace: " + shell_quoted(trace));
    return wrong || own_settings || other_card ? 1 : 0;
}

int rank_of(const std::string& trace, const Scratch& scratch) {
    const Json list = analyze({"list"}, trace, scratch.file("list.json"));
    const Json rank = list["traces"].empty() ? Json() : list["traces"][0].value("rank", Json());
    return rank.is_number() ? rank.get<int>() : -1;
}

std::string command_text(const std::vector<std::string>& command) {
    std::string line;
    for (const std::string& word : command) {
        line += (line.empty() ? "" : " ") + shell_quoted(word);
    }
    return line;
}

}  // namespace

int try_remedy(int argc, char** argv) {
    bool help = false;
    TryRequest request = parse(argc, argv, &help);
    if (help) {
        return 0;
    }
    const Scratch scratch("try");
    std::error_code failed;
    const std::string trace = fs::absolute(request.trace, failed).native();
    const Json report = analyze({"report"}, trace, scratch.file("report.json"));
    if (!report.contains("whatif") || !report.contains("facts") || report["devices"].empty()) {
        throw Refusal{kBadUsage,
                      printable(request.trace) +
                          ": give one trace of a process that used a card, recorded by fragtrace"};
    }
    const std::vector<Json> rows = rows_of(report);
    if (request.list) {
        print_list(rows, text(device_of(report)["conclusion"], "row"));
        print_output("");  // all of the list
        return 0;
    }
    const Json row = choose_row(request, report, rows);
    Request run;
    run.settings.emplace_back("FRAGTRACE_OUTPUT", request.output);
    run.virtual_gpu = request.virtual_gpu.empty() ? recorded_card(report) : request.virtual_gpu;
    run.quiet = true;
    const int rank = rank_of(trace, scratch);
    run.command =
        !request.command.empty() ? request.command : recorded_command(trace, report["facts"], rank);
    for (const auto& [name, value] : environment_of(report["facts"], row)) {
        run.settings.emplace_back(name, value);
    }
    say(fmt::format("running with {} on {}:",
                    text(row, "remedy") == "caching_off"
                        ? std::string("PYTORCH_NO_CUDA_MEMORY_CACHING=1")
                        : fmt::format("{}={}", kSettings, text(row, "config")),
                    run.virtual_gpu.empty() ? "the card of this machine"
                                            : "the virtual GPU " + run.virtual_gpu));
    write_error(fmt::format("  cd {}\n  {}\n",
                            shell_quoted(fs::current_path(failed).native()),
                            command_text(run.command)));
    HeldSignals signals;
    const FinishedRun finished = run_command(run, &signals);
    const int exit_code = exit_code_of(finished.status);
    say(fmt::format("the program ended with exit code {}", exit_code));
    const std::string recorded = new_trace(finished, signals, rank, scratch);
    if (recorded.empty()) {
        throw Refusal{kBadUsage,
                      "no process of this command made a CUDA call that is recorded: nothing to "
                      "compare"};
    }
    return compare(trace, report, row, recorded, scratch);
}

}  // namespace fragtrace::launcher
