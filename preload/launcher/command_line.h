// How every command of the launcher reads its options, and how it refuses an option that it does
// not have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace fragtrace::launcher {

// Returns false if --help was given; nothing is printed then. Throws a Refusal (kBadUsage) for bad
// usage: one line that ends with the command whose --help explains it, which is the app's name. An
// unknown option is refused before anything else, with the nearest option that the app has.
bool read_options(CLI::App* app, int argc, const char* const* argv);

// Returns what follows the options of an app with prefix_command(), without a "--" that marks it.
// `marked`, if not null, becomes true if the "--" was there.
std::vector<std::string> words_after_options(const CLI::App& app, bool* marked = nullptr);

// Prints the app's help. `command` is how its usage names what follows the options; empty: nothing
// does. Throws a Refusal if standard output cannot be written.
void print_help(const CLI::App& app, const std::string& command = "");

}  // namespace fragtrace::launcher
