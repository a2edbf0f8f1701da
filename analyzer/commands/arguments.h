// Parses command lines with CLI11. In this project an error is one line and exit code 2.
#pragma once

#include "analyzer/analysis/analyze_options.h"
#include "analyzer/support/result.h"
#include "analyzer/support/terminal.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::analyzer {

// Parses the arguments. Throws HelpPrinted (registry.h) if help was requested.
Status parse_arguments(CLI::App* app, int argc, char** argv);

// For CLI::Option::check() of an option that names an output file: check_output() before the work
// begins. Empty = nothing is wrong.
std::string output_fault(const std::string& path);

// Options that several commands share.
struct CommonOptions {
    std::string trace;
    std::string json;  // empty = text
    std::string color = "auto";
    std::string capacity;       // empty = as recorded
    std::string torch_version;  // empty = as recorded
    std::string pending = "recorded";
    std::string driver_page = "2MiB";
    std::string context;     // empty = as recorded
    std::string categories;  // empty = only the built-in categories
    std::string killed;      // PID=SIGNAL[@TIME]; empty = not known
    std::string events;      // empty = kMostEvents

    void add_trace(CLI::App* app);
    void add_json(CLI::App* app);
    // Sets `*output`; "-" is standard output.
    static CLI::Option* add_output(CLI::App* app, std::string* output);
    static void add_force(CLI::App* app);
    void add_color(CLI::App* app);
    void add_capacity(CLI::App* app);
    void add_torch_version(CLI::App* app);
    void add_assumptions(CLI::App* app);
    void add_categories(CLI::App* app);
    void add_killed(CLI::App* app);
    void add_events(CLI::App* app);

    [[nodiscard]] Terminal terminal() const;
    // Returns nullopt if --capacity was not given.
    [[nodiscard]] Result<std::optional<std::uint64_t>> capacity_bytes() const;
    [[nodiscard]] Result<ReplayAssumptions> assumptions() const;
    // AnalyzeOptions::most_events.
    [[nodiscard]] Result<std::uint64_t> most_events() const;
    // What all these options say together.
    [[nodiscard]] Result<AnalyzeOptions> analyze_options() const;
    // Writes what --killed says into the traces of that process. Does nothing without the option.
    [[nodiscard]] Status note_killed(const std::vector<std::string>& traces) const;
    // Reads the file of --categories. Null if the option was not given.
    [[nodiscard]] Result<std::shared_ptr<const CategoryRules>> category_rules() const;
};

}  // namespace fragtrace::analyzer
