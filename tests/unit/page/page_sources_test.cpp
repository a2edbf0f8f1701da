// Lines of source files in the page: which files are read, and which lines are copied.
#include "analyzer/report/page/page_sources.h"

#include "analyzer/report/page/page.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <sys/stat.h>
#include <vector>

using namespace fragtrace::analyzer;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::write_file;

namespace {

// Lines "line 1" ... "line N".
std::string numbered(int count) {
    std::string text;
    for (int i = 1; i <= count; ++i) {
        text += fmt::format("line {}\n", i);
    }
    return text;
}

// A page with one stack for each frame. The innermost frame names the stack.
PageData page_of(const std::vector<PageFrame>& frames) {
    PageData data;
    data.processes = {{}, {}};
    data.frames.push_back({});
    data.stacks.push_back({});
    for (const PageFrame& frame : frames) {
        data.stacks.push_back(
            {.parent = 0, .frame = static_cast<std::uint32_t>(data.frames.size())});
        data.frames.push_back(frame);
    }
    return data;
}

PageFrame frame_at(const std::string& file, std::uint32_t line, const std::string& library = "") {
    return {.function = "f", .file = file, .line = line, .python = true, .library = library};
}

// As "first-last" of each source.
std::vector<std::string> spans(const PageData& data) {
    std::vector<std::string> all;
    for (const PageSource& source : data.sources) {
        all.push_back(
            fmt::format("{}-{}", source.first_line, source.first_line + source.lines.size() - 1));
    }
    return all;
}

}  // namespace

TEST_CASE("sources: the lines around each line, joined where they touch") {
    const TemporaryFolder folder;
    const std::string file = folder.file("a.py");
    write_file(file, numbered(40));
    PageData data =
        page_of({frame_at(file, 1), frame_at(file, 20), frame_at(file, 27), frame_at(file, 40)});
    add_sources(0, {}, &data);
    CHECK(spans(data) == std::vector<std::string>{"1-4", "17-30", "37-40"});
    CHECK(data.sources[1].file == file);
    CHECK(data.sources[1].lines[3] == "line 20");
    CHECK_FALSE(data.sources[1].changed);
    for (const PageProcess& process : data.processes) {
        CHECK(process.notes == std::vector<std::string>{"this page has source lines of 1 file"});
    }
}

TEST_CASE("sources: only source files are read, whatever a trace calls them") {
    const TemporaryFolder folder;
    write_file(folder.file("secret"), numbered(9));
    std::filesystem::create_symlink(folder.file("secret"), folder.file("link.py"));
    write_file(folder.file("real.py"), numbered(9));
    std::filesystem::create_symlink(folder.file("real.py"), folder.file("good.py"));
    std::filesystem::create_directory(folder.file("folder.py"));
    write_file(folder.file("binary.py"), std::string("a\0b\n", 4));
    write_file(folder.file("lines.py"), std::string(300'000, '\n'));
    REQUIRE(mkfifo(folder.file("pipe.py").c_str(), 0600) == 0);
    const std::vector<std::string> refused = {folder.file("secret"),
                                              folder.file("link.py"),
                                              folder.file("folder.py"),
                                              folder.file("binary.py"),
                                              folder.file("lines.py"),
                                              folder.file("pipe.py"),
                                              folder.file("missing.py"),
                                              "relative.py",
                                              "<string>"};
    std::vector<PageFrame> frames = {frame_at(folder.file("good.py"), 5)};
    for (const std::string& file : refused) {
        frames.push_back(frame_at(file, 1));
    }
    frames.push_back(frame_at(folder.file("real.py"), 10));  // it has nine lines
    PageData data = page_of(frames);
    add_sources(0, {}, &data);
    REQUIRE(data.sources.size() == 1);
    CHECK(data.sources[0].file == folder.file("good.py"));
    CHECK_THAT(data.processes[0].notes.at(1),
               Catch::StartsWith("10 files could not be read as source code here, such as "));
}

TEST_CASE("sources: a file that changed after the recording began is marked") {
    const TemporaryFolder folder;
    write_file(folder.file("a.py"), numbered(3));
    const timespec times[] = {{.tv_sec = 1000, .tv_nsec = 0}, {.tv_sec = 1000, .tv_nsec = 0}};
    REQUIRE(utimensat(AT_FDCWD, folder.file("a.py").c_str(), times, 0) == 0);
    for (const auto& [recorded_ns, changed] : {std::pair(1'000'000'000'001ull, false),
                                               std::pair(999'999'999'999ull, true),
                                               std::pair(0ull, false)}) {
        PageData data = page_of({frame_at(folder.file("a.py"), 2)});
        add_sources(recorded_ns, {}, &data);
        REQUIRE(data.sources.size() == 1);
        CHECK(data.sources[0].changed == changed);
    }
}

TEST_CASE("sources: lines that name stacks come first where there is little room") {
    const TemporaryFolder folder;
    write_file(folder.file("own.py"), numbered(9));
    write_file(folder.file("library.py"), numbered(9));
    PageData data = page_of({frame_at(folder.file("library.py"), 5, "torch")});
    // own.py:5 called the library, and names the stack.
    data.frames.push_back(frame_at(folder.file("own.py"), 5));
    data.stacks = {{}, {.parent = 0, .frame = 2}, {.parent = 1, .frame = 1, .telling = 1}};
    SECTION("room for one") {
        add_sources(0, {.lines_around = 1, .all_bytes = 21}, &data);
        REQUIRE(data.sources.size() == 1);
        CHECK(data.sources[0].file == folder.file("own.py"));
        CHECK(spans(data) == std::vector<std::string>{"4-6"});
        CHECK(data.processes[0].notes.at(1) ==
              "1 line of the stacks has no source lines: at most 21 B are copied");
    }
    SECTION("files too large to read") {
        add_sources(0, {.read_bytes = 70}, &data);  // each has 63 bytes
        REQUIRE(data.sources.size() == 1);
        CHECK(data.sources[0].file == folder.file("own.py"));
    }
}

TEST_CASE("sources: text is shown as it is, tabs as spaces, long lines cut") {
    const TemporaryFolder folder;
    const std::string evil = "</script><script>alert(1)</script>";
    write_file(folder.file("a.cu"), "\tx\r\n" + evil + "\n" + std::string(5000, 'y') + "\nlast");
    PageData data = page_of({frame_at(folder.file("a.cu"), 2)});
    add_sources(0, {}, &data);
    REQUIRE(data.sources.size() == 1);
    const std::vector<std::string>& lines = data.sources[0].lines;
    REQUIRE(lines.size() == 4);
    CHECK(lines[0] == "    x");
    CHECK(lines[1] == evil);
    CHECK(lines[2].size() < 400);
    CHECK(lines[3] == "last");
}
