// The functions of <fragtrace/analyze.h>.
#include "analyzer/analysis/analyze.h"

#include <fragtrace/analyze.h>

#include "analyzer/analysis/one_replay.h"
#include "analyzer/analysis/option_values.h"
#include "analyzer/api/arrow.h"
#include "analyzer/export/columns.h"
#include "analyzer/report/json/json.h"
#include "analyzer/report/page/page.h"
#include "analyzer/report/page/page_content.h"
#include "analyzer/report/text/first_lines.h"
#include "analyzer/report/text/text.h"
#include "analyzer/support/guarded.h"
#include "analyzer/support/in_program.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/terminal.h"
#include "analyzer/support/units.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

using fragtrace::analyzer::Analysis;
using fragtrace::analyzer::AnalyzeOptions;
using fragtrace::analyzer::Error;
using fragtrace::analyzer::ErrorCode;
using fragtrace::analyzer::Ok;
using fragtrace::analyzer::Result;
using fragtrace::analyzer::Status;

struct fraganalyze_report {
    std::string path;
    AnalyzeOptions options;
    std::unique_ptr<Analysis> analysis;
    std::mutex mutex;  // results look up symbols, which is not thread-safe
};

namespace {

char* copy_of(std::string_view text) {
    auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
    if (copy != nullptr) {
        std::memcpy(copy, text.data(), text.size());
        copy[text.size()] = '\0';
    }
    return copy;
}

void store_error(std::string_view message, char** error) {
    if (error != nullptr) {
        *error = copy_of(message);
    }
}

// Calls `make()`, which returns a Result. Returns its value, or nullopt after storing the error.
template <typename Make>
auto attempt(const std::string& about, char** error, Make make)
    -> std::optional<std::decay_t<decltype(*make())>> {
    try {
        auto made = fragtrace::analyzer::guarded(about, make);
        if (made) {
            return std::move(made).value();
        }
        store_error(fragtrace::printable(made.error().message), error);
    } catch (...) {  // not even the message had room
        store_error("not enough memory", error);
    }
    return std::nullopt;
}

// The same for texts of a report, which go to the caller.
template <typename Make>
char* text_of_report(fraganalyze_report* report, char** error, Make make) {
    const auto text = attempt(report->path, error, [&]() -> Result<std::string> {
        const std::lock_guard lock(report->mutex);
        return make();
    });
    char* const copy = text ? copy_of(*text) : nullptr;
    if (text && copy == nullptr) {
        store_error("not enough memory for the result", error);
    }
    return copy;
}

Result<std::optional<std::uint64_t>> capacity_of(const char* text) {
    if (text == nullptr) {
        return std::optional<std::uint64_t>{};
    }
    const auto bytes = fragtrace::analyzer::parse_bytes(text);
    if (!bytes) {
        return Error{ErrorCode::kUsage, "capacity: " + bytes.error().message};
    }
    if (*bytes == 0) {
        return Error{ErrorCode::kUsage,
                     "capacity: a card without memory serves nothing; give a size such as 16GiB"};
    }
    return std::optional<std::uint64_t>{*bytes};
}

// A message about an output, without the option of the command line.
Error without_option(Error error) {
    constexpr std::string_view kOption = ", or add --force to replace it.";
    if (error.message.ends_with(kOption)) {
        error.message.replace(error.message.size() - kOption.size(), kOption.size(), ".");
    }
    return error;
}

fragtrace::analyzer::Terminal plain() {
    return {-1, fragtrace::analyzer::ColorChoice::kNever};
}

}  // namespace

extern "C" {

const char* fraganalyze_version(void) {
    return FRAGTRACE_VERSION;
}

void fraganalyze_free(char* text) {
    std::free(text);
}

int fraganalyze_parse_size(const char* text, uint64_t* bytes, char** error) {
    const auto parsed =
        attempt("size", error, [&] { return fragtrace::analyzer::parse_bytes(text); });
    if (parsed) {
        *bytes = *parsed;
    }
    return parsed ? 0 : -1;
}

fraganalyze_report* fraganalyze_load(
    const char* path, const char* capacity, const char* torch_version, int whatif, char** error) {
    return fraganalyze_load_with(path, capacity, torch_version, nullptr, whatif, error);
}

fraganalyze_report* fraganalyze_load_with(const char* path,
                                          const char* capacity,
                                          const char* torch_version,
                                          const char* categories,
                                          int whatif,
                                          char** error) {
    return fraganalyze_load_events(
        path, capacity, torch_version, categories, whatif, FRAGANALYZE_USUAL_EVENTS, error);
}

fraganalyze_report* fraganalyze_load_events(const char* path,
                                            const char* capacity,
                                            const char* torch_version,
                                            const char* categories,
                                            int whatif,
                                            uint64_t most_events,
                                            char** error) {
    auto loaded = attempt(path, error, [&]() -> Result<std::unique_ptr<fraganalyze_report>> {
        fragtrace::analyzer::show_no_progress();
        auto report = std::make_unique<fraganalyze_report>();
        report->path = path;
        const auto bytes = capacity_of(capacity);
        if (!bytes) {
            return bytes.error();
        }
        const std::string release = torch_version == nullptr ? "" : torch_version;
        if (!release.empty() && !fragtrace::analyzer::is_torch_release(release)) {
            return Error{
                ErrorCode::kUsage,
                fmt::format("'{}' is no release of PyTorch; give one such as 2.6", release)};
        }
        auto rules =
            fragtrace::analyzer::find_category_rules(categories == nullptr ? "" : categories);
        if (!rules) {
            return rules.error();
        }
        report->options.categories = std::move(rules).value();
        report->options.capacity_bytes = *bytes;
        report->options.torch_version = release;
        if (most_events != FRAGANALYZE_USUAL_EVENTS) {
            if (most_events < fragtrace::analyzer::kLeastEvents) {
                return Error{ErrorCode::kUsage,
                             fmt::format("events: {} is too few; give at least {}",
                                         most_events,
                                         fragtrace::analyzer::kLeastEvents)};
            }
            report->options.most_events = most_events;
        }
        AnalyzeOptions options = report->options;
        options.absorb_ring = true;
        if (whatif != 0) {
            fragtrace::analyzer::add_report_replays(&options);
        }
        auto analysis = fragtrace::analyzer::analyze(report->path, options);
        if (!analysis) {
            return analysis.error();
        }
        report->analysis = std::move(analysis).value();
        return report;
    });
    return loaded ? loaded->release() : nullptr;
}

void fraganalyze_close(fraganalyze_report* report) {
    delete report;
}

char* fraganalyze_json(fraganalyze_report* report, char** error) {
    return text_of_report(
        report, error, [&] { return fragtrace::analyzer::report_json(*report->analysis); });
}

char* fraganalyze_verdict(fraganalyze_report* report, char** error) {
    return text_of_report(report, error, [&] {
        return fragtrace::analyzer::shown_text(
            fragtrace::analyzer::first_lines(*report->analysis, plain()));
    });
}

char* fraganalyze_text(fraganalyze_report* report, char** error) {
    return text_of_report(report, error, [&] {
        return fragtrace::analyzer::shown_text(
            fragtrace::analyzer::report_text(*report->analysis, plain()));
    });
}

char* fraganalyze_whatif(fraganalyze_report* report, char** error) {
    return text_of_report(report, error, [&]() -> Result<std::string> {
        AnalyzeOptions options = report->options;
        fragtrace::analyzer::add_report_replays(&options);
        options.remedies_and_plans_up_to = AnalyzeOptions{}.remedies_and_plans_up_to;
        options.scans = true;
        const auto analysis = fragtrace::analyzer::analyze(report->path, options);
        if (!analysis) {
            return analysis.error();
        }
        return fragtrace::analyzer::whatif_json(**analysis);
    });
}

char* fraganalyze_replay(fraganalyze_report* report,
                         unsigned device,
                         const char* conf,
                         const char* capacity,
                         const char* pool,
                         char** error) {
    return text_of_report(report, error, [&]() -> Result<std::string> {
        const auto bytes = capacity_of(capacity);
        if (!bytes) {
            return bytes.error();
        }
        fragtrace::analyzer::ReplayChoice choice;
        choice.device = device;
        choice.config = conf == nullptr ? "" : conf;
        choice.config_given = conf != nullptr;
        if (pool != nullptr) {
            choice.choose_pool(pool);
        }
        const Analysis& analysis = *report->analysis;
        const auto found = choice.find_device(analysis);
        if (!found) {
            return found.error();
        }
        const auto done =
            fragtrace::analyzer::replay_once(**found, choice.candidate(**found, *bytes));
        if (!done) {
            return done.error();
        }
        return fragtrace::analyzer::replay_json(analysis, **found, done->row, done->diagnoses);
    });
}

char* fraganalyze_page(fraganalyze_report* report, uint64_t* bytes, char** error) {
    char* const page = text_of_report(report, error, [&] {
        return fragtrace::analyzer::render_page(
            fragtrace::analyzer::page_content(*report->analysis));
    });
    if (page != nullptr && bytes != nullptr) {
        *bytes = std::strlen(page);
    }
    return page;
}

int fraganalyze_write_page(fraganalyze_report* report, const char* path, char** error) {
    const auto written = attempt(report->path, error, [&]() -> Status {
        const std::lock_guard lock(report->mutex);
        std::error_code missing;
        if (std::filesystem::equivalent(path, report->path, missing)) {
            return Error{ErrorCode::kOutput,
                         fmt::format("{}: is the file of this report. Name another file.", path)};
        }
        const auto page =
            fragtrace::analyzer::render_page(fragtrace::analyzer::page_content(*report->analysis));
        if (!page) {
            return page.error();
        }
        static std::mutex one_file_at_a_time;  // write_output() serves one command
        const std::lock_guard writing(one_file_at_a_time);
        fragtrace::analyzer::forget_files_read();
        const Status done = fragtrace::analyzer::write_output(path, *page);
        return done ? done : Status(without_option(done.error()));
    });
    return written ? 0 : -1;
}

int fraganalyze_table(fraganalyze_report* report,
                      const char* table,
                      struct ArrowSchema* schema,
                      struct ArrowArray* array,
                      char** error) {
    const auto made = attempt(report->path, error, [&]() -> Status {
        const std::string_view name = table;
        if (name != "blocks" && name != "events") {
            return Error{ErrorCode::kUsage,
                         fmt::format("'{}' is no table; there are blocks and events", name)};
        }
        const std::lock_guard lock(report->mutex);
        fragtrace::analyzer::export_columns(
            name == "blocks" ? fragtrace::analyzer::block_columns(*report->analysis)
                             : fragtrace::analyzer::event_columns(*report->analysis),
            schema,
            array);
        return Ok{};
    });
    return made ? 0 : -1;
}

}  // extern "C"
