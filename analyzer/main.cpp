// fraganalyze. The table of its commands is in commands/registry.cpp.
#include "analyzer/commands/run.h"

int main(int argc, char** argv) {
    return fragtrace::analyzer::run_command_line(argc, argv);
}
