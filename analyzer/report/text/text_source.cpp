// The program of a trace and how it ended, as text and as JSON.
#include "analyzer/report/text/text_source.h"

#include "analyzer/report/text/text_parts.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <fmt/format.h>

namespace fragtrace::analyzer {

std::string ending_text(const ProcessEnd& end) {
    switch (end.ending) {
        case Ending::kNormal:
        case Ending::kQuickExit:
            return !end.code        ? "ended, exit code unknown"
                   : *end.code == 0 ? "ended normally"
                                    : fmt::format("exit code {}", *end.code);
        case Ending::kExec:
            return "became another program (exec)";
        case Ending::kKilled:
            return !end.signal              ? "died or became a program that is not recorded"
                   : *end.signal == SIGKILL ? "killed (SIGKILL)"
                                            : signal_name(*end.signal);
        case Ending::kRunning:
            return "still running";
        case Ending::kContinued:
            return "continued after this part of the recording";
        case Ending::kNotRecorded:
            return "end not recorded";
    }
    return "";
}

std::string ending_text(const Timeline& timeline) {
    return ending_text(process_end(timeline));
}

std::vector<std::string> missing_in_import(const Timeline& timeline) {
    constexpr std::string_view kKey = "import.lacks.";
    std::vector<std::string> sentences;
    for (auto fact = timeline.facts.lower_bound(std::string(kKey));
         fact != timeline.facts.end() && fact->first.starts_with(kKey);
         ++fact) {
        sentences.push_back(fact->second);
    }
    return sentences;
}

std::string command_text(std::string_view line) {
    std::string text;
    std::size_t begin = 0;
    for (int word = 0; begin < line.size(); ++word) {
        const std::size_t end = std::min(line.find(' ', begin), line.size());
        std::string_view part = line.substr(begin, end - begin);
        if (word < 2 && part.find('/') != std::string_view::npos) {
            part = part.substr(part.find_last_of('/') + 1);
        }
        text += text.empty() ? "" : " ";
        text += part;
        begin = end + 1;
    }
    return printable(shorten(text, 60));
}

nlohmann::ordered_json ending_json(const ProcessEnd& end) {
    using Json = nlohmann::ordered_json;
    const auto kind = [&end] {
        switch (end.ending) {
            case Ending::kNormal:
            case Ending::kQuickExit:
                return "exit";
            case Ending::kExec:
                return "exec";
            case Ending::kKilled:
                return end.signal ? "signal" : "unknown";
            case Ending::kRunning:
                return "running";
            case Ending::kContinued:
                return "continued";
            case Ending::kNotRecorded:
                return "not_recorded";
        }
        return "unknown";
    };
    return {{"kind", kind()},
            {"code", end.code ? Json(*end.code) : Json()},
            {"signal", end.signal ? Json(signal_name(*end.signal)) : Json()}};
}

}  // namespace fragtrace::analyzer
