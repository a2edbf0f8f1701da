#include "launcher/arguments.h"

#include <fragtrace/printable.h>

#include "launcher/command_line.h"
#include "launcher/option_texts.h"
#include "launcher/refusal.h"
#include "recorder/options.h"
#include "vgpu/common/config.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace fragtrace::launcher {
namespace {

constexpr const char* kVirtualGpuVariable = "FRAGTRACE_VIRTUAL_GPU";

// Returns "--output" for "-o,--output".
std::string_view long_name(std::string_view option) {
    return option.substr(option.rfind(',') + 1);
}

std::string in_quotes(std::string_view value) {
    return '\'' + printable(value) + '\'';
}

// `given`: where the user wrote the value, up to the value.
void check_virtual_gpu(const char* value, std::string_view given) {
    const vgpu::Config config = vgpu::parse_config(value, nullptr);
    if (config.status == vgpu::Config::kInvalid) {
        std::string_view problem = config.problem;  // "fragtrace: VARIABLE=value: ...\n"
        problem.remove_prefix(problem.find('=') + 1);
        throw Refusal{kBadUsage,
                      std::string(given) + std::string(problem.substr(0, problem.rfind('\n')))};
    }
}

CLI::Option* add_setting(CLI::App* app, const OptionText& row) {
    if (row.value[0] == '[') {
        return app->add_flag(std::string(row.option) + "{1}");
    }
    return app->add_option(row.option)->type_name(row.value)->take_last();
}

void take_setting(const OptionText& row, const CLI::Option& option, Request* request) {
    const std::string name(long_name(row.option));
    const std::string value = option.results().back();
    if (value.empty()) {
        refuse_usage(name + " needs " + row.allowed);
    }
    if (!preload::option_accepts(row.variable, value.c_str())) {
        refuse_usage(name + " cannot be " + in_quotes(value) + ": give " + row.allowed);
    }
    request->settings.emplace_back(row.variable, value);
}

// The recorder would replace an invalid value by its default, and report that only in the trace.
void check_environment(const Request& request) {
    for (const OptionText& row : kOptionTexts) {
        const char* value = getenv(row.variable);
        const bool replaced = std::any_of(
            request.settings.begin(), request.settings.end(), [&row](const auto& setting) {
                return setting.first == row.variable;
            });
        if (value != nullptr && !replaced && !preload::option_accepts(row.variable, value)) {
            refuse_usage(std::string(row.variable) + " cannot be " + in_quotes(value) + ": give " +
                         row.allowed);
        }
    }
    const char* card = getenv(kVirtualGpuVariable);
    if (card != nullptr && *card != '\0' && request.virtual_gpu.empty()) {
        check_virtual_gpu(card, std::string(kVirtualGpuVariable) + "=");
    }
    for (const vgpu::Variable& variable : vgpu::kVariables) {
        const char* value = getenv(variable.name);
        if (value != nullptr && *value != '\0' && !variable.accepts(value)) {
            refuse_usage(std::string(variable.name) + " cannot be " + in_quotes(value) + ": give " +
                         variable.allowed);
        }
    }
}

std::vector<std::string> command_of(const CLI::App& app) {
    std::vector<std::string> command = words_after_options(app);
    if (command.empty() || command.front().empty()) {
        refuse_usage("no command given: fragtrace run [OPTIONS] -- COMMAND [ARGUMENT...]");
    }
    return command;
}

}  // namespace

std::string Request::setting_of(const char* variable) const {
    for (const auto& [name, value] : settings) {
        if (name == variable) {
            return value;
        }
    }
    const char* value = getenv(variable);
    return value == nullptr ? "" : value;
}

Request parse_run(int argc, const char* const* argv) {
    Request request;
    CLI::App app;
    app.name("fragtrace");  // whose --help lists the options of `fragtrace run`
    app.prefix_command();
    CLI::Option* virtual_gpu =
        app.add_option("--virtual-gpu", request.virtual_gpu)->type_name("CARD")->take_last();
    CLI::Option* no_record = app.add_flag("--no-record")->disable_flag_override();
    CLI::Option* quiet = app.add_flag("--quiet")->disable_flag_override();
    std::vector<std::pair<const OptionText*, CLI::Option*>> settings;
    for (const OptionText& row : kOptionTexts) {
        if (row.option[0] != '\0') {
            settings.emplace_back(&row, add_setting(&app, row));
        }
    }
    if (!read_options(&app, argc, argv)) {
        request.help = true;
        return request;
    }
    request.record = no_record->count() == 0;
    request.quiet = quiet->count() != 0;
    for (const auto& [row, option] : settings) {
        if (option->count() != 0) {
            take_setting(*row, *option, &request);
        }
    }
    if (virtual_gpu->count() != 0) {
        if (request.virtual_gpu.empty()) {
            refuse_usage("--virtual-gpu needs a card, such as 24GiB or A100-80GB");
        }
        check_virtual_gpu(request.virtual_gpu.c_str(), "--virtual-gpu ");
    }
    check_environment(request);
    request.command = command_of(app);
    return request;
}

}  // namespace fragtrace::launcher
