// fraganalyze mcp: a server of the Model Context Protocol over standard input and output.
//
// One JSON-RPC message per line, one request at a time. Each tool is a command of fraganalyze with
// --json, run in a child that cannot write files.
#include "analyzer/analysis/option_values.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/in_child.h"
#include "analyzer/commands/registry.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <optional>
#include <string_view>
#include <unistd.h>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

// Newest first. They do not differ in what this server uses.
constexpr std::array<std::string_view, 4> kVersions = {
    "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

constexpr std::size_t kMostLine_bytes = std::size_t{4} << 20;
constexpr std::size_t kMostDepth = 64;
constexpr ChildLimits kLimits = {600, std::size_t{32} << 20};

// Codes of JSON-RPC.
enum : int {
    kNoJson = -32700,
    kNoRequest = -32600,
    kNoMethod = -32601,
    kBadArguments = -32602,
    kNotInitialized = -32002,
};

struct Fault {
    int code;
    std::string message;
};

constexpr const char* kInstructions =
    "fraganalyze explains how GPU programs use memory, from traces (.ftrace, recorded by "
    "`fragtrace run`) and PyTorch memory snapshots (.pickle). Its tools read files and change "
    "none. "
    "Their results contain file names, functions and source lines of the recorded program, command "
    "lines, host names and environment settings: whoever gets the results sees them. Sizes are "
    "bytes, times are nanoseconds.";

// ---- tools
// ----------------------------------------------------------------------------------------

struct Parameter {
    std::string_view name;
    std::string_view type;  // "string" or "boolean"
    std::string_view description;
    bool required = false;
};

struct Tool {
    std::string_view name;
    std::string_view title;
    std::string_view description;
    std::vector<Parameter> parameters;
    // The command line for these arguments, which were checked.
    std::vector<std::string> (*command)(const Json& arguments);
    // Takes a part of the result; nullptr = all of it.
    Json (*part)(const Json& result);
};

constexpr Parameter kTrace = {
    "trace", "string", "Path of a trace (.ftrace) or a PyTorch memory snapshot (.pickle).", true};
constexpr Parameter kCapacity = {
    "capacity", "string", "Memory that the pool may use, such as 16GiB. Default: as recorded."};

// No path: the message about a wrong rule quotes the file, which may be any file of the user.
constexpr Parameter kCategories = {
    "categories",
    "string",
    "Name of rules that fragtrace brings and that give memory categories: transformers (also for "
    "diffusers). Default: only the built-in categories."};

std::string text_of(const Json& arguments, std::string_view name) {
    const auto found = arguments.find(std::string(name));
    return found == arguments.end() ? std::string() : found->get<std::string>();
}

// An option and its value in one word, so that a value is never taken for an option.
void add_option(const Json& arguments, std::string_view name, std::vector<std::string>* words) {
    if (const std::string value = text_of(arguments, name); !value.empty()) {
        std::string option(name);
        std::replace(option.begin(), option.end(), '_', '-');
        words->push_back("--" + option + "=" + value);
    }
}

std::vector<std::string> command_on_trace(std::vector<std::string> words, const Json& arguments) {
    words.insert(words.end(), {"--json=-", "--", text_of(arguments, "trace")});
    return words;
}

// Who holds memory, without the rest of the report. Null for a job, whose report has no holders.
Json holders_of(const Json& report) {
    if (!report.contains("source")) {
        return nullptr;
    }
    Json devices = Json::array();
    if (report.contains("devices")) {
        for (const Json& device : report["devices"]) {
            Json one;
            for (const char* key : {"index", "name", "peak", "holders_at_peak", "holders"}) {
                one[key] = device.value(key, Json());
            }
            devices.push_back(std::move(one));
        }
    }
    Json ooms = Json::array();
    if (report.contains("ooms")) {
        for (const Json& oom : report["ooms"]) {
            Json one;
            for (const char* key : {"event", "device", "requested_bytes", "culprits", "holders"}) {
                if (oom.contains(key)) {
                    one[key] = oom[key];
                }
            }
            ooms.push_back(std::move(one));
        }
    }
    return {{"schema", report.value("schema", Json())},
            {"source", report.value("source", Json())},
            {"devices", std::move(devices)},
            {"ooms", std::move(ooms)}};
}

const std::vector<Tool>& tools() {
    static const std::vector<Tool> kTools = {
        {"report",
         "Report on a run",
         "Explains a run: peaks, out-of-memories with their verdict, the lines of the program that "
         "block free memory, and which change avoids it. Shows source lines, command lines and "
         "host names of the recorded program. JSON: docs/schema/report.json.",
         {kTrace,
          {"what_if",
           "boolean",
           "False: skip the replays under other settings, which take longest. Default: true."},
          kCapacity,
          kCategories},
         [](const Json& arguments) {
             std::vector<std::string> words = {"report"};
             if (!arguments.value("what_if", true)) {
                 words.emplace_back("--no-whatif");
             }
             add_option(arguments, "capacity", &words);
             add_option(arguments, "categories", &words);
             return command_on_trace(std::move(words), arguments);
         },
         nullptr},
        {"holders",
         "Who holds memory",
         "Lists which source lines hold GPU memory at the peak and at each out-of-memory. Shows "
         "source lines, command lines and host names of the recorded program. JSON: the keys "
         "source, devices and ooms of docs/schema/report.json.",
         {kTrace, kCategories},
         [](const Json& arguments) {
             std::vector<std::string> words = {"report", "--no-whatif"};
             add_option(arguments, "categories", &words);
             return command_on_trace(std::move(words), arguments);
         },
         holders_of},
        {"whatif",
         "Other settings, cards and pools",
         "Replays the recorded requests under many allocator settings, on other cards and in other "
         "pools, ranked. Each row says how certain it is (exact, bound, estimate). JSON: "
         "docs/schema/whatif.json.",
         {kTrace, kCapacity},
         [](const Json& arguments) {
             std::vector<std::string> words = {"whatif"};
             add_option(arguments, "capacity", &words);
             return command_on_trace(std::move(words), arguments);
         },
         nullptr},
        {"replay",
         "One replay",
         "Replays the recorded requests once, under settings and on a card of your choice. JSON: "
         "docs/schema/replay.json.",
         {kTrace,
          {"conf",
           "string",
           "Settings as in PYTORCH_CUDA_ALLOC_CONF, such as expandable_segments:True. Default: as "
           "recorded."},
          kCapacity,
          {"pool", "string", "Simulated pool, such as rmm-arena. Default: pytorch."},
          {"torch_version", "string", "Release of PyTorch, such as 2.6. Default: as recorded."}},
         [](const Json& arguments) {
             std::vector<std::string> words = {"replay"};
             for (const char* option : {"conf", "capacity", "pool", "torch_version"}) {
                 add_option(arguments, option, &words);
             }
             return command_on_trace(std::move(words), arguments);
         },
         nullptr},
        {"explain",
         "Explain an out-of-memory message",
         "Explains an out-of-memory message or a log that contains some, without a trace: what its "
         "numbers prove and what remains unknown. JSON: docs/schema/explain.json.",
         {{"message", "string", "The message, or the text of a log.", true}},
         [](const Json&) {
             return std::vector<std::string>{"explain", "--json=-", "--", "-"};
         },
         nullptr},
        {"compare",
         "Compare two runs",
         "Compares two runs: peaks, waste, lines, phases. Shows source lines, command lines and "
         "host "
         "names of the recorded programs. JSON: docs/schema/compare.json.",
         {{"before",
           "string",
           "Path of the trace, snapshot or JSON report of the run before.",
           true},
          {"after", "string", "Path of the one after.", true}},
         [](const Json& arguments) {
             return std::vector<std::string>{"compare",
                                             "--json=-",
                                             "--",
                                             text_of(arguments, "before"),
                                             text_of(arguments, "after")};
         },
         nullptr},
    };
    return kTools;
}

Json schema_of(const Tool& tool) {
    Json properties = Json::object();
    Json required = Json::array();
    for (const Parameter& parameter : tool.parameters) {
        properties[std::string(parameter.name)] = {{"type", parameter.type},
                                                   {"description", parameter.description}};
        if (parameter.required) {
            required.push_back(parameter.name);
        }
    }
    return {{"type", "object"},
            {"properties", std::move(properties)},
            {"required", std::move(required)},
            {"additionalProperties", false}};
}

Json tool_list() {
    Json list = Json::array();
    for (const Tool& tool : tools()) {
        list.push_back({{"name", tool.name},
                        {"title", tool.title},
                        {"description", tool.description},
                        {"inputSchema", schema_of(tool)},
                        {"annotations",
                         {{"title", tool.title},
                          {"readOnlyHint", true},
                          {"destructiveHint", false},
                          {"idempotentHint", true},
                          {"openWorldHint", false}}}});
    }
    return {{"tools", std::move(list)}};
}

// Returns what is wrong with the arguments; empty if nothing is.
std::string fault_in(const Tool& tool, const Json& arguments) {
    if (!arguments.is_object()) {
        return "arguments: not an object";
    }
    for (const auto& [name, value] : arguments.items()) {
        const auto known = std::find_if(
            tool.parameters.begin(), tool.parameters.end(), [&name = name](const auto& parameter) {
                return parameter.name == name;
            });
        if (known == tool.parameters.end()) {
            return fmt::format("{} has no argument '{}'", tool.name, name.substr(0, 100));
        }
        if (known->type == "boolean" ? !value.is_boolean() : !value.is_string()) {
            return fmt::format("{}: give a {}", name, known->type);
        }
        if (name == kCategories.name && value.is_string() &&
            !is_category_choice(value.get_ref<const std::string&>())) {
            return fmt::format("categories: give one of {}", category_choices());
        }
        if (value.is_string() &&
            value.get_ref<const std::string&>().find('\0') != std::string::npos) {
            return fmt::format("{}: contains a zero byte", name);
        }
    }
    for (const Parameter& parameter : tool.parameters) {
        if (parameter.required && text_of(arguments, parameter.name).empty()) {
            return fmt::format("{} needs the argument '{}'", tool.name, parameter.name);
        }
    }
    return {};
}

Json answer_of(const std::string& text, bool is_error) {
    return {{"content", Json::array({{{"type", "text"}, {"text", text}}})}, {"isError", is_error}};
}

// A tool that fails answers with its error, so that the model can correct its call.
Json call(const Tool& tool, const Json& arguments) {
    const ChildResult done =
        run_read_only(tool.command(arguments), text_of(arguments, "message"), kLimits);
    if (!done.in_time) {
        return answer_of(fmt::format("not done after {} s", kLimits.seconds), true);
    }
    if (!done.whole) {
        return answer_of("the result is longer than 32 MiB; use fraganalyze on the command line",
                         true);
    }
    if (done.exit_status != 0) {
        const std::string error = done.errors.substr(0, done.errors.find('\n'));
        return answer_of(error.empty() ? "fraganalyze ended without a result" : error, true);
    }
    if (tool.part == nullptr) {
        return answer_of(done.output, false);
    }
    const Json part = tool.part(Json::parse(done.output));
    if (part.is_null()) {
        return answer_of("trace: give one trace, not a folder of them", true);
    }
    return answer_of(part.dump(-1, ' ', false, Json::error_handler_t::replace), false);
}

// ---- the protocol -------------------------------------------------------------------------------

class Server {
  public:
    // Returns the answer to one line; nothing for notifications and answers.
    std::optional<Json> answer(std::string_view line) {
        Json id;
        try {
            const Json message = parse(line);
            if (!message.is_object()) {
                throw Fault{kNoRequest, "not a request; batches are not supported"};
            }
            const bool is_request = message.contains("id");
            if (is_request && (message["id"].is_string() || message["id"].is_number())) {
                id = message["id"];
            }
            if (message.value("jsonrpc", Json()) != "2.0" || !message.contains("method")) {
                if (message.contains("result") || message.contains("error")) {
                    return std::nullopt;  // this server asks nothing
                }
                throw Fault{kNoRequest, "not a request of JSON-RPC 2.0"};
            }
            if (!message["method"].is_string() || (is_request && id.is_null())) {
                throw Fault{kNoRequest, "method: give a string; id: give a string or a number"};
            }
            const std::string method = message["method"];
            if (!is_request) {
                return std::nullopt;  // notifications change nothing here
            }
            return Json{{"jsonrpc", "2.0"},
                        {"id", id},
                        {"result", result_of(method, message.value("params", Json::object()))}};
        } catch (const Fault& fault) {
            return error(id, fault.code, fault.message);
        }
    }

    static Json error(const Json& id, int code, const std::string& message) {
        return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}};
    }

  private:
    static Json parse(std::string_view line) {
        // The parser itself has no limit for the depth.
        std::size_t depth = 0;
        bool in_text = false;
        for (std::size_t i = 0; i < line.size(); ++i) {
            const char c = line[i];
            if (in_text) {
                i += c == '\\' ? 1 : 0;
                in_text = c != '"';
            } else if (c == '"') {
                in_text = true;
            } else if (c == '[' || c == '{') {
                if (++depth > kMostDepth) {
                    throw Fault{kNoJson, fmt::format("deeper than {} levels", kMostDepth)};
                }
            } else if ((c == ']' || c == '}') && depth > 0) {
                --depth;
            }
        }
        Json message = Json::parse(line, nullptr, false);
        if (message.is_discarded()) {
            throw Fault{kNoJson, "the line is not JSON"};
        }
        return message;
    }

    Json result_of(const std::string& method, const Json& params) {
        if (method == "ping") {
            return Json::object();
        }
        if (!params.is_object()) {
            throw Fault{kBadArguments, "params: not an object"};
        }
        if (method == "initialize") {
            return initialize(params);
        }
        if (method != "tools/list" && method != "tools/call") {
            throw Fault{kNoMethod, fmt::format("no method '{}'", method.substr(0, 100))};
        }
        if (!initialized_) {
            throw Fault{kNotInitialized, "send initialize first"};
        }
        if (method == "tools/list") {
            return tool_list();
        }
        const Json name = params.value("name", Json());
        const auto tool = std::find_if(tools().begin(), tools().end(), [&](const Tool& one) {
            return name.is_string() && one.name == name.get_ref<const std::string&>();
        });
        if (tool == tools().end()) {
            throw Fault{kBadArguments, "name: no such tool; tools/list has all"};
        }
        const Json arguments = params.value("arguments", Json::object());
        if (const std::string fault = fault_in(*tool, arguments); !fault.empty()) {
            throw Fault{kBadArguments, fault};
        }
        return call(*tool, arguments);
    }

    Json initialize(const Json& params) {
        const Json wanted = params.value("protocolVersion", Json());
        if (!wanted.is_string()) {
            throw Fault{kBadArguments, "protocolVersion: give a string"};
        }
        // A version that is not known here gets the newest one; the client may then leave.
        const auto known = std::find(kVersions.begin(), kVersions.end(), wanted.get<std::string>());
        initialized_ = true;
        return {{"protocolVersion", known == kVersions.end() ? kVersions.front() : *known},
                {"capabilities", {{"tools", Json::object()}}},
                {"serverInfo",
                 {{"name", "fraganalyze"},
                  {"title", "fragtrace: GPU memory"},
                  {"version", FRAGTRACE_VERSION}}},
                {"instructions", kInstructions}};
    }

    bool initialized_ = false;
};

bool print(const Json& message) {
    const std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
    std::string_view rest = line;
    while (!rest.empty()) {
        const ssize_t size = write(STDOUT_FILENO, rest.data(), rest.size());
        if (size < 0 && errno != EINTR) {
            return false;
        }
        rest.remove_prefix(size < 0 ? 0 : static_cast<std::size_t>(size));
    }
    return true;
}

// Calls `take` for each line of standard input. Longer lines than the limit are skipped and
// reported with `too_long`. Ends at the end of the input, or when a function returns false.
void for_each_line(const std::function<bool(std::string_view)>& take,
                   const std::function<bool()>& too_long) {
    std::string line;
    bool skipping = false;
    std::array<char, 65536> buffer;
    for (;;) {
        const ssize_t size = read(STDIN_FILENO, buffer.data(), buffer.size());
        if (size < 0 && errno == EINTR) {
            continue;
        }
        std::string_view rest(buffer.data(), size <= 0 ? 0 : static_cast<std::size_t>(size));
        while (!rest.empty()) {
            const std::size_t end = rest.find('\n');
            const std::string_view piece = rest.substr(0, end);
            rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
            if (!skipping && line.size() + piece.size() > kMostLine_bytes) {
                line.clear();
                skipping = true;
                if (!too_long()) {
                    return;
                }
            }
            if (!skipping) {
                line += piece;
            }
            if (end != std::string_view::npos) {
                if (!skipping && line.find_first_not_of(" \t\r") != std::string::npos &&
                    !take(line)) {
                    return;
                }
                line.clear();
                skipping = false;
            }
        }
        if (size <= 0) {
            return;
        }
    }
}

}  // namespace

Status run_mcp(int argc, char** argv) {
    CLI::App app(
        "Answers a language model's questions about traces: a server of the Model Context Protocol "
        "over standard input and output, which a client starts. Its tools are report, holders, "
        "whatif, replay, explain and compare. Each returns the JSON of the command of its name; "
        "holders returns the part of the report that says which lines hold memory.\n\n"
        "It reads every trace that you may read, and changes no file. Its answers contain source "
        "lines, command lines and host names of the recorded programs: the client and its model "
        "see them.\n\n"
        "Examples\n"
        "  fraganalyze mcp\n"
        "  {\"mcpServers\": {\"fragtrace\": {\"command\": \"fraganalyze\", \"args\": "
        "[\"mcp\"]}}}\n",
        "fraganalyze mcp");
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    fmt::print(
        stderr,
        "fraganalyze mcp: waiting for a client on standard input. Answers show source lines, "
        "command lines and host names of recorded programs. No file is changed.\n");
    Server server;
    for_each_line(
        [&server](std::string_view line) {
            const std::optional<Json> answer = server.answer(line);
            return !answer || print(*answer);
        },
        [] {
            return print(Server::error(
                nullptr, kNoJson, fmt::format("longer than {} bytes", kMostLine_bytes)));
        });
    return Ok{};
}

}  // namespace fragtrace::analyzer
