// The table of commands: name, one-line description, function. Each command has a file in this
// folder.
#pragma once

#include "analyzer/support/result.h"

#include <span>
#include <string>
#include <string_view>

namespace fragtrace::analyzer {

// Thrown by a command after it printed its help: nothing is left to do, and nothing is wrong.
struct HelpPrinted {};

struct Command {
    std::string_view name;
    std::string_view synopsis;
    // argv[0] is the command's name. The function prints its own help for --help.
    Status (*run)(int argc, char** argv);
};

std::span<const Command> commands();
const Command* find_command(std::string_view name);
// The text of `fraganalyze --help`.
std::string overview();

Status run_anonymize(int argc, char** argv);
Status run_report(int argc, char** argv);
Status run_check(int argc, char** argv);
Status run_compare(int argc, char** argv);
Status run_dump(int argc, char** argv);
Status run_explain(int argc, char** argv);
Status run_export(int argc, char** argv);
Status run_list(int argc, char** argv);
Status run_merge(int argc, char** argv);
Status run_mcp(int argc, char** argv);
Status run_plan(int argc, char** argv);
Status run_replay(int argc, char** argv);
Status run_summarize(int argc, char** argv);
Status run_top(int argc, char** argv);
Status run_validate(int argc, char** argv);
Status run_whatif(int argc, char** argv);

}  // namespace fragtrace::analyzer
