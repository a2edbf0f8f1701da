// fraganalyze explain MESSAGE: what an out-of-memory message proves, without a trace.
#include "analyzer/analysis/explain/explanation.h"
#include "analyzer/analysis/explain/message_scanner.h"
#include "analyzer/commands/arguments.h"
#include "analyzer/commands/registry.h"
#include "analyzer/support/input_file.h"
#include "analyzer/support/output_file.h"
#include "analyzer/support/units.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

namespace fragtrace::analyzer {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::string_view kNext =
    "To find the lines that hold the memory, record a run: fragtrace run -- python train.py";

// Splits its input into lines. A line longer than the buffer is passed on in pieces.
class LineFeeder {
  public:
    explicit LineFeeder(MessageScanner* scanner) : scanner_(*scanner) {}

    void add(std::string_view data) {
        while (!data.empty()) {
            const std::size_t end = data.find('\n');
            rest_ += data.substr(0, end);
            if (end == std::string_view::npos) {
                break;
            }
            flush();
            data.remove_prefix(end + 1);
        }
        if (rest_.size() > kBufferBytes) {
            flush();
        }
    }

    void finish() {
        if (!rest_.empty()) {
            flush();
        }
        scanner_.finish();
    }

  private:
    void flush() {
        scanner_.add_line(rest_);
        rest_.clear();
    }

    MessageScanner& scanner_;
    std::string rest_;
};

Status scan_file(const std::string& path, LineFeeder* feeder) {
    const auto file = InputFile::open(path);
    if (!file) {
        return file.error();
    }
    std::string buffer(kBufferBytes, '\0');
    std::uint64_t offset = 0;
    while (const std::size_t size = file->read_at(offset, buffer.data(), buffer.size())) {
        feeder->add({buffer.data(), size});
        offset += size;
    }
    return Ok{};
}

void scan_standard_input(LineFeeder* feeder) {
    std::string buffer(kBufferBytes, '\0');
    while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), stdin)) {
        feeder->add({buffer.data(), size});
    }
}

std::vector<std::string> other_lines(const MessageScanner& scanner) {
    const OtherSigns& signs = scanner.other_signs();
    const bool dumped = std::any_of(
        scanner.messages().begin(), scanner.messages().end(), [](const FoundMessage& found) {
            return std::holds_alternative<BfcDump>(found.message);
        });
    std::vector<std::string> lines;
    const auto add = [&](std::uint64_t count, std::string_view what) {
        if (count != 0) {
            lines.push_back(
                fmt::format("{} {}", format_counted(count, "line says", "lines say"), what));
        }
    };
    add(signs.plain_cuda_errors,
        "\"CUDA error: out of memory\", without figures: an allocation outside of PyTorch's pool "
        "failed (a library, a context, caching switched off) while the pool may have kept cache");
    add(signs.nccl,
        "that NCCL ran out of memory: it asks the driver itself, and PyTorch's pool releases "
        "nothing for it");
    add(signs.preemptive,
        "that the process's memory fraction refused the request before the driver was asked: a "
        "limit, not a full card");
    add(dumped ? 0 : signs.xla,
        "that XLA could not allocate a buffer, without figures of its pool: set "
        "TF_CPP_MIN_LOG_LEVEL=0 before jax is imported, and its BFC allocator prints them; with "
        "XLA_PYTHON_CLIENT_ALLOCATOR=platform there is no pool: the driver itself refused");
    add(signs.address_space,
        "that no address space could be reserved for an expandable segment: addresses ran out, not "
        "memory");
    return lines;
}

std::string origin(const FoundMessage& found) {
    if (const auto* pytorch = std::get_if<PytorchMessage>(&found.message)) {
        return fmt::format("PyTorch {}{}{}",
                           pytorch->releases,
                           pytorch->platform == "CUDA" ? "" : " on " + pytorch->platform,
                           pytorch->device ? fmt::format(", GPU {}", *pytorch->device) : "");
    }
    const std::string& name = std::get<BfcDump>(found.message).allocator;
    return fmt::format("BFC allocator {} (TensorFlow, JAX)", name);
}

Explanation explanation_of(const FoundMessage& found) {
    return std::visit([](const auto& message) { return explain(message); }, found.message);
}

void add_list(std::string_view title, const std::vector<std::string>& lines, std::string* text) {
    if (lines.empty()) {
        return;
    }
    *text += fmt::format("  {}\n", title);
    for (const std::string& line : lines) {
        *text += fmt::format("    - {}\n", line);
    }
}

std::string explanation_text(const MessageScanner& scanner, bool of_log) {
    std::string text;
    for (const FoundMessage& found : scanner.messages()) {
        const Explanation explanation = explanation_of(found);
        text += explanation.sentence + "\n";
        text += fmt::format("  message    {}", origin(found));
        text += of_log ? fmt::format("; line {}", found.line) : "";
        text += found.times > 1 ? fmt::format(", {} times alike\n", found.times) : "\n";
        add_list("contradictions", explanation.contradictions, &text);
        add_list("certain", explanation.certain, &text);
        add_list("not in the message", explanation.unknown, &text);
        text += "\n";
    }
    for (const std::string& line : other_lines(scanner)) {
        text += line + "\n";
    }
    if (scanner.left_out() != 0) {
        text += fmt::format("{} more messages are unreadable, or come after the first {}\n",
                            format_counted(scanner.left_out(), "message", "messages"),
                            MessageScanner::kMostMessages);
    }
    return text + std::string(kNext) + "\n";
}

void add_size(std::string_view name, const std::optional<PrintedSize>& size, Json* figures) {
    if (size) {
        (*figures)[std::string(name)] = {{"bytes", size->bytes},
                                         {"error_bytes", size->error_bytes}};
    }
}

Json figures_of(const PytorchMessage& message) {
    Json figures = Json::object();
    add_size("tried", message.tried, &figures);
    add_size("capacity", message.capacity, &figures);
    add_size("device_free", message.device_free, &figures);
    add_size("allowed", message.allowed, &figures);
    add_size("allocated", message.allocated, &figures);
    add_size("private_cached", message.private_cached, &figures);
    add_size("reserved", message.reserved, &figures);
    add_size("unallocated", message.unallocated, &figures);
    add_size("own_process", message.own_process, &figures);
    for (const auto& process : message.processes) {
        add_size(fmt::format("process_{}", process.pid), process.in_use, &figures);
    }
    return figures;
}

Json figures_of(const BfcDump& dump) {
    Json figures = Json::object();
    add_size("tried", dump.asked, &figures);
    if (dump.rounded_bytes) {
        add_size("rounded", PrintedSize{.bytes = *dump.rounded_bytes}, &figures);
    }
    add_size("pool", dump.pool, &figures);
    add_size("limit", dump.limit, &figures);
    add_size("in_use", dump.in_use_sum, &figures);
    add_size("largest_free",
             dump.free.count != 0 ? std::optional(PrintedSize{.bytes = dump.free.largest_bytes})
                                  : dump.largest_free,
             &figures);
    add_size("largest_usable", dump.largest_usable, &figures);
    return figures;
}

std::string explanation_json(const MessageScanner& scanner) {
    Json messages = Json::array();
    for (const FoundMessage& found : scanner.messages()) {
        const Explanation explanation = explanation_of(found);
        messages.push_back(
            {{"origin", origin(found)},
             {"line", found.line},
             {"times", found.times},
             {"text", found.text},
             {"figures",
              std::visit([](const auto& message) { return figures_of(message); }, found.message)},
             {"verdict", explanation.verdict},
             {"sentence", explanation.sentence},
             {"contradictions", explanation.contradictions},
             {"certain", explanation.certain},
             {"unknown", explanation.unknown}});
    }
    const OtherSigns& other = scanner.other_signs();
    return Json{{"schema", 1},
                {"messages", messages},
                {"messages_left_out", scanner.left_out()},
                {"other_signs",
                 {{"plain_cuda_errors", other.plain_cuda_errors},
                  {"preemptive", other.preemptive},
                  {"address_space", other.address_space},
                  {"nccl", other.nccl},
                  {"xla", other.xla}}}}
               .dump(2, ' ', false, Json::error_handler_t::replace) +
           "\n";
}

bool is_message(const std::string& argument) {
    std::error_code too_long_for_a_path;
    return argument.find("memory") != std::string::npos &&
           argument.find(' ') != std::string::npos &&
           !std::filesystem::exists(argument, too_long_for_a_path);
}

}  // namespace

Status run_explain(int argc, char** argv) {
    CLI::App app(
        "Explains an out-of-memory message: what its numbers prove, what remains unknown, "
        "and where they contradict each other. Knows PyTorch's messages of every release "
        "(CUDA and HIP) and the dump of the BFC allocator (TensorFlow, JAX), alone or "
        "anywhere in a log.\n\n"
        "Examples\n"
        "  fraganalyze explain \"CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; ...)\"\n"
        "  fraganalyze explain train.log\n"
        "  python train.py 2>&1 | fraganalyze explain -\n",
        "fraganalyze explain");
    std::string input = "-";
    CommonOptions common;
    app.add_option("MESSAGE", input, "the message, a log file, or '-' for standard input")
        ->capture_default_str();
    common.add_json(&app);
    if (const Status parsed = parse_arguments(&app, argc, argv); !parsed) {
        return parsed;
    }
    MessageScanner scanner;
    LineFeeder feeder(&scanner);
    const bool given = is_message(input);
    if (given) {
        feeder.add(input);
    } else if (input == "-") {
        scan_standard_input(&feeder);
    } else if (std::error_code ignored; !std::filesystem::exists(input, ignored)) {
        return Error{
            ErrorCode::kInput,
            fmt::format("{}: neither a file nor an out-of-memory message. Give a log file, the "
                        "whole message in quotation marks, or '-' for standard input.",
                        input)};
    } else if (const Status scanned = scan_file(input, &feeder); !scanned) {
        return scanned.error();
    }
    feeder.finish();
    if (scanner.messages().empty() && other_lines(scanner).empty()) {
        return Error{
            ErrorCode::kInput,
            fmt::format("{}: no out-of-memory message in {}. Give the whole line that says "
                        "\"out of memory. Tried to allocate\", or BFC's dump.",
                        given          ? "the text given"
                        : input == "-" ? "standard input"
                                       : input,
                        format_counted(scanner.lines(), "line", "lines"))};
    }
    return common.json.empty() ? write_text(explanation_text(scanner, !given))
                               : write_output(common.json, explanation_json(scanner));
}

}  // namespace fragtrace::analyzer
