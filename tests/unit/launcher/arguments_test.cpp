#include "launcher/arguments.h"

#include "launcher/help.h"
#include "launcher/option_texts.h"
#include "launcher/refusal.h"
#include "recorder/options.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <string>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::launcher;

namespace {

using Words = std::vector<std::string>;
using Settings = std::vector<std::pair<std::string, std::string>>;

Request parse(const Words& words) {
    std::vector<const char*> argv = {"run"};
    for (const std::string& word : words) {
        argv.push_back(word.c_str());
    }
    return parse_run(static_cast<int>(argv.size()), argv.data());
}

// The text of the refusal. Empty if the words are accepted.
std::string refusal_of(const Words& words) {
    try {
        parse(words);
    } catch (const Refusal& refusal) {
        CHECK(refusal.exit_code == kBadUsage);
        CHECK(refusal.text.find('\n') == std::string::npos);
        return refusal.text;
    }
    return "";
}

class Variable {
  public:
    Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }

    ~Variable() { unsetenv(name_); }

    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

  private:
    const char* name_;
};

}  // namespace

TEST_CASE("the command begins after the options or after the \"--\"") {
    CHECK(parse({"true"}).command == Words{"true"});
    CHECK(parse({"--", "true"}).command == Words{"true"});
    CHECK(parse({"true", "--quiet", "--", "-x"}).command == Words{"true", "--quiet", "--", "-x"});
    CHECK(parse({"--", "--", "x"}).command == Words{"--", "x"});
    CHECK(parse({"--", "-x", "y"}).command == Words{"-x", "y"});
    CHECK(parse({"--quiet", "a", "", "[1,2]", "{}", "b c"}).command ==
          Words{"a", "", "[1,2]", "{}", "b c"});
    CHECK(parse({"--quiet", "true", "--no-record"}).record);
    CHECK(parse({"--help"}).help);
    CHECK_FALSE(parse({"true", "--help"}).help);
}

TEST_CASE("options set the recorder's variables") {
    const Request request = parse({"-o",
                                   "a b",
                                   "--stacks=native",
                                   "--stack-depth",
                                   "7",
                                   "--min-bytes",
                                   "1MB",
                                   "--start",
                                   "off",
                                   "--start-after",
                                   "3",
                                   "--signal=SIGUSR1",
                                   "--size-limit",
                                   "1GB",
                                   "--flight-recorder=2GiB",
                                   "--virtual-gpu",
                                   "24GB,count=2",
                                   "--quiet",
                                   "--no-record",
                                   "true"});
    CHECK(request.settings == Settings{{"FRAGTRACE_OUTPUT", "a b"},
                                       {"FRAGTRACE_FLIGHT", "2GiB"},
                                       {"FRAGTRACE_SIZE_LIMIT", "1GB"},
                                       {"FRAGTRACE_STACKS", "native"},
                                       {"FRAGTRACE_STACK_DEPTH", "7"},
                                       {"FRAGTRACE_MIN_BYTES", "1MB"},
                                       {"FRAGTRACE_START", "off"},
                                       {"FRAGTRACE_START_AFTER", "3"},
                                       {"FRAGTRACE_SIGNAL", "SIGUSR1"}});
    CHECK(request.virtual_gpu == "24GB,count=2");
    CHECK(request.quiet);
    CHECK_FALSE(request.record);
    CHECK(request.command == Words{"true"});
}

TEST_CASE("the flight recorder's size must follow an equals sign") {
    const Request request = parse({"--flight-recorder", "64MiB"});
    CHECK(request.settings == Settings{{"FRAGTRACE_FLIGHT", "1"}});
    CHECK(request.command == Words{"64MiB"});
}

TEST_CASE("if an option is given twice, the last one counts") {
    CHECK(parse({"--stacks", "none", "--stacks", "all", "true"}).settings ==
          Settings{{"FRAGTRACE_STACKS", "all"}});
}

TEST_CASE("bad usage prints one line with the option, its value and the allowed values") {
    CHECK(refusal_of({"--stacks", "some", "true"}) ==
          "--stacks cannot be 'some': give all, native, python or none (fragtrace --help)");
    CHECK(refusal_of({"--size-limit", "1KiB", "true"}).find("at least 1MiB") != std::string::npos);
    CHECK(refusal_of({"--stacks", "", "true"}).find("--stacks needs") == 0);
    CHECK(refusal_of({"--stacks"}).find("--stacks") != std::string::npos);
    CHECK(refusal_of({"--signal", "a\nb", "true"}).find("'a\\nb'") != std::string::npos);
    CHECK(refusal_of({"--virtual-gpu", "24XiB", "true"}).find("24XiB") != std::string::npos);
    CHECK(refusal_of({"--virtual-gpu", "", "true"}).find("needs a card") != std::string::npos);
    CHECK(refusal_of({"--quiet=much", "true"}) != "");
    for (const char* option : {"--bogus", "--bogus=1", "-x", "-xyz"}) {
        CAPTURE(option);
        CHECK(refusal_of({option, "true"}) ==
              "unknown option " + std::string(option) + " (fragtrace --help)");
    }
    for (const Words& words :
         {Words{}, Words{"--"}, Words{"--quiet"}, Words{""}, Words{"--", ""}}) {
        CHECK(refusal_of(words).find("no command given") == 0);
    }
}

TEST_CASE("a bad variable is refused, unless it is empty or an option replaces it") {
    const Variable variable("FRAGTRACE_SIZE_LIMIT", "1XB");
    CHECK(refusal_of({"true"}) ==
          "FRAGTRACE_SIZE_LIMIT cannot be '1XB': give a size of at least 1MiB, such as 64MiB or "
          "1GB, or 0 for no limit (fragtrace --help)");
    CHECK(refusal_of({"--size-limit", "2MB", "true"}).empty());
    const Variable empty("FRAGTRACE_SIZE_LIMIT", "");
    CHECK(refusal_of({"true"}).empty());
}

TEST_CASE("a setting comes from the option, then from the environment") {
    const Variable variable("FRAGTRACE_OUTPUT", "from the environment");
    CHECK(parse({"true"}).setting_of("FRAGTRACE_OUTPUT") == "from the environment");
    CHECK(parse({"-o", "mine", "true"}).setting_of("FRAGTRACE_OUTPUT") == "mine");
    CHECK(parse({"true"}).setting_of("FRAGTRACE_STACKS").empty());
}

TEST_CASE("the recorder accepts exactly the values that the table allows") {
    struct Row {
        const char* variable;
        std::vector<const char*> good;
        std::vector<const char*> bad;
    };

    const std::string longest(4095, 'x');
    const std::string too_long(4096, 'x');
    const Row rows[] = {
        {"FRAGTRACE_OUTPUT", {"/a b:c", longest.c_str()}, {too_long.c_str()}},
        {"FRAGTRACE_FLIGHT", {"on", "off", "1", "0", "1MiB", "2MB"}, {"1MB", "much", "1KiB"}},
        {"FRAGTRACE_SIZE_LIMIT", {"0", "1MiB", "1GB"}, {"12", "1MB", "-1"}},
        {"FRAGTRACE_KEEP_FREE", {"0", "0%", "99%", "5GiB"}, {"100%", "%", "10%%", "-1", "1 000%"}},
        {"FRAGTRACE_STACKS", {"all", "native", "python", "none"}, {"All", "both"}},
        {"FRAGTRACE_STACK_DEPTH", {"1", "128"}, {"0", "129", "1x"}},
        {"FRAGTRACE_MIN_BYTES", {"0", "1", "512KiB"}, {"much"}},
        {"FRAGTRACE_START", {"on", "off"}, {"later"}},
        {"FRAGTRACE_START_AFTER", {"0", "100000000"}, {"100000001", "1s"}},
        {"FRAGTRACE_SIGNAL",
         {"HUP", "USR1", "USR2", "URG", "WINCH", "IO", "PWR", "SIGHUP"},
         {"KILL", "10", "usr1"}},
        {"FRAGTRACE_OFF", {"1", "yes", "true", "no"}, {"maybe"}},
        {"FRAGTRACE_RING_EVENTS", {"64", "16777216"}, {"63", "16777217"}},
        {"FRAGTRACE_RING_DIRECTORY", {"/dev/shm"}, {too_long.c_str()}},
        {"FRAGTRACE_COMPRESSION", {"0", "19"}, {"20", "-1"}},
        {"FRAGTRACE_NVTX", {"off"}, {"never"}},
        {"FRAGTRACE_FOLLOW_FORK", {"0"}, {"2"}},
        {"FRAGTRACE_STOPPED_STACKS", {"1"}, {"x"}},
    };
    CHECK(std::size(rows) == std::size(kOptionTexts));
    for (const Row& row : rows) {
        CAPTURE(row.variable);
        CHECK(preload::option_accepts(row.variable, ""));
        for (const char* value : row.good) {
            CAPTURE(value);
            CHECK(preload::option_accepts(row.variable, value));
        }
        for (const char* value : row.bad) {
            CAPTURE(value);
            CHECK_FALSE(preload::option_accepts(row.variable, value));
        }
    }
}

TEST_CASE("the help has a line for each variable and option, none longer than 100 columns") {
    const std::string text = help_text();
    for (const OptionText& row : kOptionTexts) {
        CAPTURE(row.variable);
        CHECK(text.find("\n  " + std::string(row.variable) + " ") != std::string::npos);
    }
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
        CAPTURE(text.substr(begin, end - begin));
        CHECK(end - begin <= 100);
    }
    CHECK(begin == text.size());
}

TEST_CASE("a card of the environment is checked unless an option replaces it") {
    const Variable card("FRAGTRACE_VIRTUAL_GPU", "24XiB");
    CHECK(refusal_of({"true"}).find("24XiB") != std::string::npos);
    CHECK(refusal_of({"--virtual-gpu", "24GiB", "true"}).empty());
}
