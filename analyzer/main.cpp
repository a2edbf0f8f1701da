// fraganalyze: what it can do is the table in commands/registry.cpp.
#include "analyzer/commands/run.h"

int main(int argc, char** argv) {
    return fragtrace::analyzer::run_command_line(argc, argv);
}
