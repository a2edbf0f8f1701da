#include "analyzer/report/page/page_sources.h"

#include "analyzer/support/input_file.h"
#include "analyzer/support/units.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 17> kEndings = {".py",
                                                       ".pyx",
                                                       ".pyi",
                                                       ".c",
                                                       ".cc",
                                                       ".cpp",
                                                       ".cxx",
                                                       ".cu",
                                                       ".cuh",
                                                       ".h",
                                                       ".hh",
                                                       ".hpp",
                                                       ".hxx",
                                                       ".inl",
                                                       ".f90",
                                                       ".jl",
                                                       ".rs"};
constexpr std::size_t kLongestLine = 300;  // bytes; longer lines are cut
constexpr std::ptrdiff_t kMostLines = 200'000;

struct SourceFile {
    std::vector<std::string> lines;
    bool changed = false;
};

std::string_view ending_of(std::string_view path) {
    const std::size_t dot = path.find_last_of('.');
    return dot == std::string_view::npos ? std::string_view() : path.substr(dot);
}

bool is_source_name(std::string_view path) {
    return std::find(kEndings.begin(), kEndings.end(), ending_of(path)) != kEndings.end();
}

std::string shown(std::string_view line) {
    std::string text;
    for (const char c : line.substr(0, kLongestLine)) {
        if (c == '\t') {
            text += "    ";
        } else if (c != '\r') {
            text += c;
        }
    }
    return line.size() > kLongestLine ? text + " …" : text;
}

bool is_newer(const fs::path& path, std::uint64_t recorded_unix_ns) {
    std::error_code failed;
    const auto written = fs::last_write_time(path, failed);
    if (failed || recorded_unix_ns == 0) {
        return false;
    }
    const auto since_epoch = std::chrono::file_clock::to_sys(written).time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch).count() >
           static_cast<std::int64_t>(recorded_unix_ns);
}

std::optional<SourceFile> read_source(const std::string& name,
                                      std::uint64_t recorded_unix_ns,
                                      std::uint64_t most_bytes,
                                      std::uint64_t* read_bytes) {
    const fs::path path(name);
    std::error_code failed;
    if (!path.is_absolute() || !is_source_name(name)) {
        return std::nullopt;
    }
    const fs::path real = fs::canonical(path, failed);
    if (failed || !is_source_name(real.native())) {
        return std::nullopt;
    }
    const auto file = InputFile::open(real.native());
    if (!file || !file->is_at(real.native()) || file->size() > most_bytes) {
        return std::nullopt;
    }
    *read_bytes += file->size();
    std::string text(file->size(), '\0');
    text.resize(file->read_at(0, text.data(), text.size()));
    if (text.find('\0') != std::string::npos ||
        std::count(text.begin(), text.end(), '\n') > kMostLines) {
        return std::nullopt;
    }
    SourceFile source = {.lines = {}, .changed = is_newer(real, recorded_unix_ns)};
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        source.lines.push_back(shown(std::string_view(text).substr(at, end - at)));
        at = end + 1;
    }
    return source;
}

// The frames of the page that have a line, most important first, each once.
std::vector<std::uint32_t> frames_to_show(const PageData& data) {
    constexpr int kLeast = 3;
    std::vector<int> order(data.frames.size(), kLeast);
    for (std::size_t i = 0; i < data.frames.size(); ++i) {
        order[i] = data.frames[i].library.empty() ? 1 : 2;
    }
    for (std::uint32_t node = 1; node < data.stacks.size(); ++node) {
        std::uint32_t at = node;
        for (std::uint32_t up = data.stacks[node].telling; up != 0 && at != 0; --up) {
            at = data.stacks[at].parent;
        }
        order[data.stacks[at].frame] = 0;
    }
    std::vector<std::uint32_t> frames;
    for (std::uint32_t i = 0; i < data.frames.size(); ++i) {
        if (data.frames[i].line != 0 && !data.frames[i].file.empty()) {
            frames.push_back(i);
        }
    }
    std::stable_sort(frames.begin(), frames.end(), [&](std::uint32_t a, std::uint32_t b) {
        return order[a] < order[b];
    });
    return frames;
}

struct ChosenLines {
    std::map<std::string, std::optional<SourceFile>> files;
    std::map<std::string, std::set<std::uint32_t>> lines;  // by file, from 1 on
    std::set<std::string> unreadable;
    std::uint64_t without_room = 0;
};

ChosenLines choose_lines(const PageData& data,
                         std::uint64_t recorded_unix_ns,
                         const SourceLimits& limits) {
    ChosenLines chosen;
    std::uint64_t read_bytes = 0;
    std::uint64_t bytes = 0;  // copied
    for (const std::uint32_t frame : frames_to_show(data)) {
        const std::string& name = data.frames[frame].file;
        const auto [file, fresh] = chosen.files.try_emplace(name);
        if (fresh) {
            const std::uint64_t left = limits.read_bytes - std::min(limits.read_bytes, read_bytes);
            file->second =
                read_source(name, recorded_unix_ns, std::min(limits.file_bytes, left), &read_bytes);
        }
        const std::uint32_t line = data.frames[frame].line;
        if (!file->second || line > file->second->lines.size()) {
            chosen.unreadable.insert(name);
            continue;
        }
        const auto& lines = file->second->lines;
        const std::uint32_t begin = line - std::min(line - 1, limits.lines_around);
        const auto end = static_cast<std::uint32_t>(
            std::min<std::size_t>(lines.size(), line + std::uint64_t{limits.lines_around}));
        std::set<std::uint32_t>& kept = chosen.lines[name];
        std::uint64_t more = 0;
        for (std::uint32_t i = begin; i <= end; ++i) {
            more += kept.contains(i) ? 0 : lines[i - 1].size() + 1;
        }
        if (bytes + more > limits.all_bytes) {
            ++chosen.without_room;
            continue;
        }
        bytes += more;
        for (std::uint32_t i = begin; i <= end; ++i) {
            kept.insert(i);
        }
    }
    std::erase_if(chosen.lines, [](const auto& of_file) { return of_file.second.empty(); });
    return chosen;
}

std::vector<std::string> notes_on(const ChosenLines& chosen, const SourceLimits& limits) {
    std::vector<std::string> notes = {fmt::format(
        "this page has source lines of {}", format_counted(chosen.lines.size(), "file", "files"))};
    if (!chosen.unreadable.empty()) {
        notes.push_back(fmt::format("{} could not be read as source code here, such as {}",
                                    format_counted(chosen.unreadable.size(), "file", "files"),
                                    *chosen.unreadable.begin()));
    }
    if (chosen.without_room != 0) {
        notes.push_back(fmt::format(
            "{} no source lines: at most {} are copied",
            format_counted(
                chosen.without_room, "line of the stacks has", "lines of the stacks have"),
            format_bytes(limits.all_bytes)));
    }
    return notes;
}

}  // namespace

void add_sources(std::uint64_t recorded_unix_ns, const SourceLimits& limits, PageData* data) {
    const ChosenLines chosen = choose_lines(*data, recorded_unix_ns, limits);
    for (const auto& [name, lines] : chosen.lines) {
        const SourceFile& file = *chosen.files.at(name);
        std::uint32_t before = 0;
        for (const std::uint32_t line : lines) {
            if (before == 0 || line != before + 1) {
                data->sources.push_back(
                    {.file = name, .first_line = line, .lines = {}, .changed = file.changed});
            }
            data->sources.back().lines.push_back(file.lines[line - 1]);
            before = line;
        }
    }
    const std::vector<std::string> notes = notes_on(chosen, limits);
    for (PageProcess& process : data->processes) {
        process.notes.insert(process.notes.end(), notes.begin(), notes.end());
    }
}

}  // namespace fragtrace::analyzer
