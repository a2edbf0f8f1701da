// What a trace is of, in words and in JSON: the program, and how it ended.
#include "analyzer/report/text_source.h"

#include "analyzer/report/text_parts.h"

#include <algorithm>

namespace fragtrace::analyzer {

const char* ending_text(Ending ending) {
    switch (ending) {
        case Ending::kNormal:
            return "ended normally";
        case Ending::kQuickExit:
            return "ended by _exit";
        case Ending::kExec:
            return "became another program (exec)";
        case Ending::kKilled:
            return "died (killed or crashed)";
        case Ending::kRunning:
            return "still running";
        case Ending::kContinued:
            return "went on after this part of the recording";
    }
    return "died";
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

const char* ending_name(Ending ending) {
    switch (ending) {
        case Ending::kNormal:
            return "normal";
        case Ending::kQuickExit:
            return "quick_exit";
        case Ending::kExec:
            return "exec";
        case Ending::kKilled:
            return "killed";
        case Ending::kRunning:
            return "running";
        case Ending::kContinued:
            return "continued";
    }
    return "killed";
}
}  // namespace fragtrace::analyzer
