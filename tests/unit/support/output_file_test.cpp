// Files that results are written to: whole or not at all, and only over results.
#include "analyzer/support/output_file.h"

#include "analyzer/support/input_file.h"
#include "tests/support/trace_writer.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace fragtrace::analyzer;
using fragtrace::testing::read_file;
using fragtrace::testing::TemporaryFolder;
using fragtrace::testing::write_file;

namespace {

// No file of this process grows beyond this while it lives.
class FileLimit {
  public:
    explicit FileLimit(rlim_t most_bytes) : former_handler_(signal(SIGXFSZ, SIG_IGN)) {
        getrlimit(RLIMIT_FSIZE, &former_);
        const rlimit now = {most_bytes, former_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &now);
    }

    ~FileLimit() {
        setrlimit(RLIMIT_FSIZE, &former_);
        signal(SIGXFSZ, former_handler_);
    }

    FileLimit(const FileLimit&) = delete;
    FileLimit& operator=(const FileLimit&) = delete;

  private:
    rlimit former_ = {};
    sighandler_t former_handler_;
};

std::size_t entries(const TemporaryFolder& folder) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator(folder.file(""))) {
        ++count;
    }
    return count;
}

// Stays open: its number is given to no other file, and write_output() knows by it which files were
// read.
void make_file(const std::string& path, std::string_view content) {
    write_file(path, content);
    REQUIRE(open(path.c_str(), O_RDONLY | O_CLOEXEC) >= 0);
}

std::string error_of(const Status& status) {
    REQUIRE_FALSE(status);
    return status.error().message;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

constexpr const char* kResult = R"({"schema": 1})";

}  // namespace

TEST_CASE("an output file appears whole or not at all") {
    const TemporaryFolder folder;
    REQUIRE(write_output(folder.file("report.json"), "whole"));
    CHECK(read_file(folder.file("report.json")) == "whole");
    CHECK(has(error_of(write_output(folder.file("no/report.json"), "whole")), "cannot create"));
    // Over a folder the last step fails: the temporary file must not stay.
    std::filesystem::create_directories(folder.file("taken/inside"));
    CHECK_FALSE(write_output(folder.file("taken"), "whole"));
    CHECK(entries(folder) == 2);
}

TEST_CASE("a write that comes to an end in the middle leaves neither a part nor a temporary file") {
    const TemporaryFolder folder;
    make_file(folder.file("former.json"), kResult);
    const FileLimit limit(4096);
    const std::string content(10'000, 'x');
    CHECK(has(error_of(write_output(folder.file("new.json"), content)), "File too large"));
    CHECK_FALSE(write_output(folder.file("former.json"), content));
    CHECK(read_file(folder.file("former.json")) == kResult);
    CHECK(entries(folder) == 1);
}

TEST_CASE("a signal in the middle of a write leaves no temporary file") {
    const TemporaryFolder folder;
    const pid_t child = fork();
    if (child == 0) {
        const FileLimit limit(4096);
        signal(SIGXFSZ, [](int) {
            remove_unfinished_output();
            _exit(7);
        });
        (void)write_output(folder.file("new.json"), std::string(10'000, 'x'));
        _exit(1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 7);
    CHECK(entries(folder) == 0);
}

TEST_CASE("the temporary file of another is not written over") {
    const TemporaryFolder folder;
    const std::string temporary = folder.file(fmt::format("new.json.{}.tmp", getpid()));
    make_file(temporary, "another's");
    CHECK(has(error_of(write_output(folder.file("new.json"), "x")), "File exists"));
    CHECK(read_file(temporary) == "another's");
}

TEST_CASE("results replace results and empty files alone, and keep their mode") {
    const TemporaryFolder folder;
    const std::string path = folder.file("file");
    for (const std::string former : {"", kResult, "<title>a - fragtrace</title>"}) {
        make_file(path, former);
        REQUIRE(chmod(path.c_str(), 02640) == 0);
        CHECK(write_output(path, "new"));
        CHECK(read_file(path) == "new");
        struct stat status = {};
        REQUIRE(stat(path.c_str(), &status) == 0);
        CHECK((status.st_mode & 07777) == 02640);
    }
    for (const std::string former : {"my thesis", R"({"thesis": 1})"}) {
        std::filesystem::remove(path);
        make_file(path, former);
        CHECK(has(error_of(write_output(path, "new")), "did not write it"));
        CHECK(read_file(path) == former);
    }
}

TEST_CASE("a result does not replace a file that was read") {
    const TemporaryFolder folder;
    const std::string path = folder.file("former.json");
    make_file(path, kResult);
    REQUIRE(InputFile::open(path).ok());
    CHECK(has(error_of(write_output(path, "new")), "this command reads"));
    CHECK(read_file(path) == kResult);
}

TEST_CASE("one's own symbolic link is followed, in a shared folder too; another's only elsewhere") {
    const TemporaryFolder folder;
    const std::string shared = folder.file("shared");
    const std::string link = shared + "/link";
    std::filesystem::create_directories(shared);
    for (const mode_t mode : {0755u, 0777u}) {
        REQUIRE(chmod(shared.c_str(), mode) == 0);
        std::filesystem::remove(link);
        std::filesystem::create_symlink(folder.file("target"), link);
        make_file(folder.file("target"), kResult);
        CHECK(write_output(link, "new"));
        CHECK(read_file(folder.file("target")) == "new");
        make_file(folder.file("target"), kResult);
        if (lchown(link.c_str(), 12345, 12345) == 0) {  // only root may
            CHECK(write_output(link, "newer").ok() == (mode == 0755));
        }
    }
}

TEST_CASE("a pipe whose reader ends early has not taken the result") {
    const TemporaryFolder folder;
    const std::string pipe = folder.file("pipe");
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    const auto handler = signal(SIGPIPE, SIG_IGN);
    std::thread reader([&pipe] {
        char some[100];
        const int end = open(pipe.c_str(), O_RDONLY | O_CLOEXEC);
        [[maybe_unused]] const ssize_t count = read(end, some, sizeof some);
        close(end);
    });
    const Status written = write_output(pipe, std::string(1 << 20, 'x'));
    reader.join();
    signal(SIGPIPE, handler);
    CHECK(has(error_of(written), "cannot write"));
}
