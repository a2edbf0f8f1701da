#include "analyzer/commands/arguments.h"

#include <fragtrace/suggestion.h>

#include "analyzer/analysis/option_values.h"
#include "analyzer/analysis/windows.h"
#include "analyzer/commands/registry.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"
#include "analyzer/trace/event_stream.h"
#include "analyzer/trace/note_signal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kHelpWidth = 100;  // also in a pipe; a narrower terminal wraps further

}  // namespace

namespace {

// The long names of all options of a command, such as "--json".
std::vector<std::string> option_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) {
            names.push_back("--" + name);
        }
    }
    return names;
}

// The first argument that looks like an option and that the command does not have; empty = none.
std::string unknown_option(const CLI::App& app) {
    for (const std::string& argument : app.remaining()) {
        if (argument.starts_with("--") && argument.size() > 2) {
            return argument.substr(0, argument.find('='));
        }
    }
    return {};
}

// A hint about an option that the command does not have. Limits belong to `check`; users try them
// with other commands.
std::string advice_on(const std::string& unknown, const CLI::App& app) {
    constexpr std::array<std::string_view, 6> kOfCheck = {"--max-reserved",
                                                          "--max-allocated",
                                                          "--max-waste",
                                                          "--no-oom",
                                                          "--no-retries",
                                                          "--baseline"};
    return std::find(kOfCheck.begin(), kOfCheck.end(), unknown) != kOfCheck.end()
               ? " here; it belongs to 'fraganalyze check'"
               : did_you_mean(unknown, option_names(app));
}

}  // namespace

Status parse_arguments(CLI::App* app, int argc, char** argv) {
    try {
        app->parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        const Status written = write_text(wrapped(app->help(), kHelpWidth));
        if (!written) {
            return written;
        }
        throw HelpPrinted{};
    } catch (const CLI::ExtrasError& failure) {
        const std::string unknown = unknown_option(*app);
        const std::vector<std::string> extra = app->remaining();
        return Error{
            ErrorCode::kUsage,
            fmt::format("{} (see '{} --help')",
                        !unknown.empty() ? unknown + " is no option" + advice_on(unknown, *app)
                        : extra.empty()  ? std::string(failure.what())
                                         : extra.front() + ": one argument too many",
                        app->get_name())};
    } catch (const CLI::ParseError& failure) {
        // A mistyped option is the cause of other faults: a required option is missing, or its
        // value is taken for the trace.
        const std::string unknown = unknown_option(*app);
        return Error{ErrorCode::kUsage,
                     fmt::format("{}{} (see '{} --help')",
                                 unknown.empty() ? failure.what() : unknown + " is no option",
                                 advice_on(unknown, *app),
                                 app->get_name())};
    }
    return Ok{};
}

std::string output_fault(const std::string& path) {
    const Status checked = check_output(path);
    return checked ? std::string() : checked.error().message;
}

namespace {

// An option for a file that is written.
CLI::Option* add_file(CLI::App* app, const char* name, std::string* path, const char* help) {
    CLI::Option* const option =
        app->add_option(name, *path, help)->type_name("FILE")->check(output_fault);
    CommonOptions::add_force(app);
    return option;
}

}  // namespace

void CommonOptions::add_trace(CLI::App* app) {
    app->add_option("TRACE",
                    trace,
                    "a trace that fragtrace recorded, a memory snapshot of PyTorch (pickle), a log "
                    "of RMM (CSV), a profile with memory events of PyTorch (JSON), of TensorFlow "
                    "or JAX (.xplane.pb), or of Nsight Systems (.sqlite)")
        ->required();
}

void CommonOptions::add_json(CLI::App* app) {
    add_file(app, "--json", &json, "write JSON to FILE instead of text ('-': standard output)");
}

CLI::Option* CommonOptions::add_output(CLI::App* app, std::string* output) {
    return add_file(app, "-o,--output", output, "write to FILE ('-' is standard output)");
}

void CommonOptions::add_force(CLI::App* app) {
    app->add_flag_callback(
        "--force", replace_any_file, "replace a file that fraganalyze did not write");
}

void CommonOptions::add_color(CLI::App* app) {
    app->add_option("--color", color, "when to use colours")
        ->check(CLI::IsMember({"auto", "never", "always"}))
        ->capture_default_str();
}

void CommonOptions::add_capacity(CLI::App* app) {
    app->add_option("--capacity",
                    capacity,
                    "memory that the pool may use, such as 16GiB (default: as recorded)")
        ->type_name("SIZE");
}

void CommonOptions::add_torch_version(CLI::App* app) {
    app->add_option("--torch-version",
                    torch_version,
                    "release of PyTorch whose allocator rules are replayed, such as 2.6 (default: "
                    "as recorded)")
        ->type_name("VERSION")
        ->check([](const std::string& text) {
            return is_torch_release(text)
                       ? std::string()
                       : fmt::format("'{}' is no release of PyTorch; give one such as 2.6", text);
        });
}

void CommonOptions::add_assumptions(CLI::App* app) {
    app->add_option("--pending",
                    pending,
                    "when cross-stream frees complete in replays: as recorded, at once, or only "
                    "when the pool waits for the device")
        ->check(CLI::IsMember({"recorded", "at-once", "never"}))
        ->capture_default_str();
    app->add_option("--driver-page",
                    driver_page,
                    "page size of the driver; requests take whole pages, small ones share a page")
        ->type_name("SIZE")
        ->capture_default_str();
    app->add_option("--context",
                    context,
                    "memory of the card that the CUDA context, libraries and other processes take, "
                    "such as 500MiB (default: as "
                    "recorded)")
        ->type_name("SIZE");
}

void CommonOptions::add_categories(CLI::App* app) {
    app->add_option("--categories",
                    categories,
                    "give blocks your own categories, by the rules in FILE. fragtrace brings "
                    "some: " +
                        category_choices())
        ->type_name("FILE");
}

void CommonOptions::add_killed(CLI::App* app) {
    app->add_option("--killed",
                    killed,
                    "number of the signal that ended process PID, as its parent saw it, and when "
                    "(nanoseconds of CLOCK_MONOTONIC); stored in the trace of that process")
        ->type_name("PID=SIGNAL[@TIME]");
}

void CommonOptions::add_events(CLI::App* app) {
    app->add_option(
           "--events",
           events,
           fmt::format(
               "if the trace has more than N events, read only N: those around "
               "failures, peaks and the end; 'all': read all events, which needs about 75 bytes "
               "of memory for each (default: {})",
               kMostEvents))
        ->type_name("N");
}

Result<std::uint64_t> CommonOptions::most_events() const {
    if (events.empty()) {
        return kMostEvents;
    }
    if (events == "all") {
        return kAllEvents;
    }
    std::uint64_t number = 0;
    const char* const end = events.data() + events.size();
    const auto [at, failed] = std::from_chars(events.data(), end, number);
    if (failed != std::errc() || at != end || number < kLeastEvents) {
        return Error{ErrorCode::kUsage,
                     fmt::format("--events: '{}' is not 'all' or a number of events from {} on",
                                 events,
                                 kLeastEvents)};
    }
    return number;
}

Result<AnalyzeOptions> CommonOptions::analyze_options() const {
    const auto bytes = capacity_bytes();
    if (!bytes) {
        return bytes.error();
    }
    const auto assumed = assumptions();
    if (!assumed) {
        return assumed.error();
    }
    const auto rules = category_rules();
    if (!rules) {
        return rules.error();
    }
    const auto most = most_events();
    if (!most) {
        return most.error();
    }
    return AnalyzeOptions{.capacity_bytes = *bytes,
                          .torch_version = torch_version,
                          .assumptions = *assumed,
                          .categories = *rules,
                          .most_events = *most};
}

Terminal CommonOptions::terminal() const {
    const ColorChoice choice = color == "never"    ? ColorChoice::kNever
                               : color == "always" ? ColorChoice::kAlways
                                                   : ColorChoice::kAuto;
    return Terminal(STDOUT_FILENO, choice);
}

Result<std::shared_ptr<const CategoryRules>> CommonOptions::category_rules() const {
    return find_category_rules(categories);
}

Status CommonOptions::note_killed(const std::vector<std::string>& traces) const {
    if (killed.empty()) {
        return Ok{};
    }
    unsigned pid = 0;
    int signal = 0;
    int end = 0;
    int end_of_time = 0;
    unsigned long long seen_ns = 0;
    const int found = std::sscanf(
        killed.c_str(), "%9u=%2d%n@%19llu%n", &pid, &signal, &end, &seen_ns, &end_of_time);
    const auto length = static_cast<std::size_t>(found == 3 ? end_of_time : end);
    if (found < 2 || length != killed.size() || signal < 1 || signal > 64) {
        return Error{ErrorCode::kUsage,
                     fmt::format("--killed: '{}' is not PID=SIGNAL, such as 4711=9, or "
                                 "PID=SIGNAL@TIME",
                                 killed)};
    }
    for (const std::string& path : traces) {
        note_signal(
            path, pid, signal, found == 3 ? std::optional<std::uint64_t>(seen_ns) : std::nullopt);
    }
    return Ok{};
}

Result<std::optional<std::uint64_t>> CommonOptions::capacity_bytes() const {
    if (capacity.empty()) {
        return std::optional<std::uint64_t>{};
    }
    auto parsed = parse_card_bytes(capacity);
    if (!parsed) {
        return Error{parsed.error().code, "--capacity: " + parsed.error().message};
    }
    if (*parsed == 0) {
        return Error{ErrorCode::kUsage,
                     "--capacity: a card without memory serves nothing; give a "
                     "size such as 16GiB"};
    }
    if (capacity.ends_with("GB")) {
        const std::string number = capacity.substr(0, capacity.size() - 2);
        fmt::print(
            stderr,
            "fraganalyze: note: --capacity {} is {}; a card sold with {} GB has about {}GiB\n",
            capacity,
            format_bytes(*parsed),
            number,
            number);
    }
    return std::optional<std::uint64_t>{*parsed};
}

Result<ReplayAssumptions> CommonOptions::assumptions() const {
    ReplayAssumptions assumed;
    assumed.pending = pending == "at-once" ? PendingRule::kAtOnce
                      : pending == "never" ? PendingRule::kNever
                                           : PendingRule::kRecorded;
    const auto page = parse_bytes(driver_page);
    if (!page) {
        return Error{page.error().code, "--driver-page: " + page.error().message};
    }
    constexpr std::uint64_t kLargestPage = kGiB;
    if (*page == 0 || *page > kLargestPage) {
        return Error{ErrorCode::kUsage, "--driver-page: give 1B to 1GiB, such as 2MiB"};
    }
    assumed.driver_page_bytes = *page;
    if (!context.empty()) {
        const auto taken = parse_card_bytes(context);
        if (!taken) {
            return Error{taken.error().code, "--context: " + taken.error().message};
        }
        assumed.context_bytes = *taken;
    }
    return assumed;
}

}  // namespace fragtrace::analyzer
