// Python stacks in each installed interpreter, compared frame by frame with sys._getframe.
//
// FT_PYTHONS is a colon-separated list of interpreters from the build.
#include "skip.h"
#include "trace_dump.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

using namespace fragtrace;
using namespace fragtrace::test;

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) {
        parts.push_back(part);
    }
    return parts;
}

int run(const std::string& command) {
    return std::system(command.c_str());
}

std::string row_of(const Dump& dump, const StackNode& node) {
    const Code& code = dump.codes.at(python_code_id(node.frame));
    return code.function + "|" + code.file + "|" + std::to_string(node.line);
}

// Whether C code called this frame, if python_client.py makes that certain.
std::optional<bool> is_entry(const Dump& dump, uint32_t node, bool one_evaluator_each) {
    const StackNode& frame = dump.nodes.at(node);
    const std::string function = dump.codes.at(python_code_id(frame.frame)).function;
    if (one_evaluator_each || function == "key" || function == "generator" ||
        (frame.parent == 0 && function == "<module>")) {
        return true;
    }
    const bool called_by_python = frame.parent != 0 && function == "both";
    return called_by_python ? std::optional<bool>(false) : std::nullopt;
}

void check_interpreter(const std::string& python, const std::string& mode) {
    INFO(python << " " << mode);
    const Folder folder;
    const std::string expected_path = folder.path() + "/expected";
    REQUIRE(run("FRAGTRACE_OUTPUT='" + folder.path() + "' LD_PRELOAD=" FT_CLIENT_LIBRARY " '" +
                python + "' " FT_CLIENT_SCRIPT " '" + expected_path + "' " + mode) == 0);
    REQUIRE(folder.traces().size() == 1);
    CHECK(folder.traces()[0].find("/python_client.") != std::string::npos);
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.defects.empty());
    REQUIRE(dump.facts.at("stacks.python") == "on");
    std::map<uint64_t, EventRecord> by_number;
    for (const EventRecord& event : dump.events) {
        by_number[event.address] = event;
    }
    const bool one_evaluator_each = std::stoi(dump.facts.at("python.version").substr(2)) <= 10;
    std::ifstream expected(expected_path);
    size_t events = 0;
    size_t entries_known = 0;
    for (std::string line; std::getline(expected, line);) {
        std::vector<std::string> rows = split(line, '\t');
        const EventRecord& event = by_number.at(std::stoull(rows[0]));
        uint32_t node = event.python_stack;
        std::string found;
        std::string wanted;
        for (size_t i = 1; i < rows.size(); ++i) {
            wanted += rows[i] + "\n";
        }
        for (; node != 0; node = dump.nodes.at(node).parent) {
            REQUIRE(is_python_frame(dump.nodes[node].frame));
            found += row_of(dump, dump.nodes[node]) + "\n";
            const std::optional<bool> entry = is_entry(dump, node, one_evaluator_each);
            REQUIRE(is_python_entry(dump.nodes[node].frame) ==
                    entry.value_or(is_python_entry(dump.nodes[node].frame)));
            entries_known += entry.has_value() ? 1 : 0;
        }
        REQUIRE(found == wanted);
        ++events;
    }
    CHECK(events > 5500);
    CHECK(entries_known > events);
    CHECK(events == dump.events.size());
    size_t again = 0;
    for (const auto& code : dump.codes) {
        again += code.second.file == "again.py" ? 1 : 0;
    }
    CHECK(again == 2);  // the module and its function
}

size_t check_interpreters(const std::string& mode) {
    size_t checked = 0;
    for (const std::string& python : split(FT_PYTHONS, ':')) {
        if (run("'" + python + "' -c 'import ctypes' 2>/dev/null") == 0) {
            check_interpreter(python, mode);
            ++checked;
        }
    }
    return checked;
}

}  // namespace

TEST_CASE("a wrong frame layout is noticed", "[own-table]") {
    size_t changed = 0;
    for (const std::string& python : split(FT_PYTHONS, ':')) {
        if (run("'" + python + "' -c 'import ctypes' 2>/dev/null") != 0) {
            continue;
        }
        INFO(python);
        const Folder folder;
        const std::string found = folder.path() + "/found";
        REQUIRE(run("FRAGTRACE_OUTPUT='" + folder.path() + "' LD_PRELOAD=" FT_CLIENT_LIBRARY " '" +
                    python + "' " FT_LAYOUT_SCRIPT " change >'" + found + "'") == 0);
        std::ifstream file(found);
        const std::string believed((std::istreambuf_iterator<char>(file)), {});
        REQUIRE(believed.empty());
        if (folder.traces().empty()) {
            continue;  // this interpreter has no table that can be changed
        }
        const Dump dump = read_trace(folder.traces()[0]);
        REQUIRE(dump.events.size() == 1);
        CHECK(dump.events[0].python_stack == 0);
        CHECK(dump.facts.at("stacks.python") ==
              "off: the interpreter's frames are not where they should be");
        ++changed;
    }
    if (changed == 0) {
        skip("no interpreter here has a table of its own that could be changed (Python 3.13)");
    }
}

TEST_CASE("Python stacks equal the interpreter's own") {
    REQUIRE(check_interpreters("") > 0);
}

TEST_CASE("Python stacks are right without reports of freed code") {
    REQUIRE(check_interpreters("untold") > 0);
}

TEST_CASE("events of functions beyond the capacity have no Python stack and are counted") {
    constexpr uint64_t kFunctions = 100000;
    const std::string python = split(FT_PYTHONS, ':').at(0);
    const Folder folder;
    REQUIRE(run("FRAGTRACE_OUTPUT='" + folder.path() + "' LD_PRELOAD=" FT_CLIENT_LIBRARY " '" +
                python + "' " FT_FUNCTIONS_SCRIPT " " + std::to_string(kFunctions)) == 0);
    const Dump dump = read_trace(folder.traces()[0]);
    CHECK(dump.defects == std::vector<std::string>{});
    REQUIRE(dump.events.size() == kFunctions);
    uint64_t without = 0;
    for (const EventRecord& event : dump.events) {
        REQUIRE((event.python_stack == 0 || without == 0));
        without += event.python_stack == 0;
    }
    CHECK(without > 0);
    CHECK(kFunctions - without > 98000);
    CHECK(dump.facts.at("stacks.without_room") == std::to_string(without));
}
