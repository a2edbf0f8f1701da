#include "launcher/command_line.h"

#include <fragtrace/printable.h>
#include <fragtrace/suggestion.h>

#include "launcher/refusal.h"

#include <cstdio>
#include <string_view>

namespace fragtrace::launcher {
namespace {

[[noreturn]] void refuse(const CLI::App& app, const std::string& text) {
    throw Refusal{kBadUsage, printable(text) + " (" + app.get_name() + " --help)"};
}

std::vector<std::string> long_names(const CLI::App& app) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) {
            names.push_back("--" + name);
        }
    }
    return names;
}

bool looks_like_option(std::string_view word) {
    return word.size() > 1 && word.front() == '-' && word != "--";
}

// The first option that the app does not have; empty = none. After the first word that is no
// option, an app with prefix_command() has the command.
std::string unknown_option(const CLI::App& app) {
    for (const std::string& word : app.remaining()) {
        if (looks_like_option(word)) {
            return word;
        }
        if (app.get_prefix_command()) {
            break;
        }
    }
    return "";
}

void refuse_unknown_option(const CLI::App& app) {
    if (const std::string option = unknown_option(app); !option.empty()) {
        const std::string name = option.substr(0, option.find('='));
        refuse(app, "unknown option " + option + did_you_mean(name, long_names(app)));
    }
}

}  // namespace

bool read_options(CLI::App* app, int argc, const char* const* argv) {
    try {
        app->parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        return false;
    } catch (const CLI::ParseError& error) {
        // A value after an unknown option may be what the error is about: the option is the cause.
        refuse_unknown_option(*app);
        refuse(*app, error.what());
    }
    refuse_unknown_option(*app);
    return true;
}

std::vector<std::string> words_after_options(const CLI::App& app, bool* marked) {
    std::vector<std::string> words = app.remaining();
    const bool has_mark = !words.empty() && words.front() == "--";
    if (has_mark) {
        words.erase(words.begin());
    }
    if (marked != nullptr) {
        *marked = has_mark;
    }
    return words;
}

void print_help(const CLI::App& app, const std::string& command) {
    std::string text = app.help();
    if (const std::size_t usage = text.find("\nUsage: "); usage != std::string::npos) {
        text.insert(text.find('\n', usage + 1), command.empty() ? "" : ' ' + command);
    }
    print_output(text);
}

}  // namespace fragtrace::launcher
