// Output files are written completely or not at all, and replace only earlier results.
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

// While this object lives, no file of this process can grow beyond the limit.
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

// The file stays open so that no other file gets its number. write_output() identifies read files
// by it.
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

TEST_CASE("an output file appears complete or not at all") {
    const TemporaryFolder folder;
    REQUIRE(write_output(folder.file("report.json"), "whole"));
    CHECK(read_file(folder.file("report.json")) == "whole");
    CHECK(has(error_of(write_output(folder.file("no/report.json"), "whole")), "cannot create"));
    // If the target is a folder, the last step fails, and the temporary file must not stay.
    std::filesystem::create_directories(folder.file("taken/inside"));
    CHECK_FALSE(write_output(folder.file("taken"), "whole"));
    CHECK(entries(folder) == 2);
}

TEST_CASE("a write that fails in the middle leaves no partial and no temporary file") {
    const TemporaryFolder folder;
    make_file(folder.file("former.json"), kResult);
    const FileLimit limit(4096);
    const std::string content(10'000, 'x');
    CHECK(has(error_of(write_output(folder.file("new.json"), content)), "File too large"));
    CHECK_FALSE(write_output(folder.file("former.json"), content));
    CHECK(read_file(folder.file("former.json")) == kResult);
    CHECK(entries(folder) == 1);
}

TEST_CASE("a signal during a write leaves no temporary file") {
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

TEST_CASE("another's temporary file is not overwritten, and does not stand in the way") {
    const TemporaryFolder folder;
    const std::string temporary = folder.file(fmt::format("new.json.{}.tmp", getpid()));
    make_file(temporary, "another's");
    REQUIRE(write_output(folder.file("new.json"), "x"));
    CHECK(read_file(folder.file("new.json")) == "x");
    CHECK(read_file(temporary) == "another's");
    CHECK(entries(folder) == 2);
    make_file(folder.file(fmt::format("tables.{}.tmp", getpid())), "another's");
    REQUIRE(write_output_folder(folder.file("tables"), {{"a.csv", "1"}}));
    CHECK(read_file(folder.file("tables/a.csv")) == "1");
    CHECK(entries(folder) == 4);
    for (int number = 1; number <= 99; ++number) {
        write_file(folder.file(fmt::format("other.json.{}.{}.tmp", getpid(), number)), "");
    }
    write_file(folder.file(fmt::format("other.json.{}.tmp", getpid())), "");
    CHECK(has(error_of(write_output(folder.file("other.json"), "x")), "File exists"));
}

TEST_CASE("results replace only results and empty files, and keep the file mode") {
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

TEST_CASE("a result does not replace a file that the command read") {
    const TemporaryFolder folder;
    const std::string path = folder.file("former.json");
    make_file(path, kResult);
    REQUIRE(InputFile::open(path).ok());
    CHECK(has(error_of(write_output(path, "new")), "this command reads"));
    CHECK(read_file(path) == kResult);
}

TEST_CASE("another user's symbolic link is not followed in a shared folder, one's own is") {
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
        if (lchown(link.c_str(), 12345, 12345) == 0) {  // only root can do this
            CHECK(write_output(link, "newer").ok() == (mode == 0755));
        }
    }
}

TEST_CASE("writing to a pipe whose reader ends early is an error") {
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

TEST_CASE("a folder of results appears complete, and replaces only such a folder") {
    const TemporaryFolder folder;
    const std::string path = folder.file("tables");
    REQUIRE(write_output_folder(path + "/", {{"a.csv", "1"}, {"b.csv", "2"}}));
    CHECK(read_file(path + "/b.csv") == "2");
    REQUIRE(write_output_folder(path, {{"a.csv", "3"}, {"b.csv", "4"}, {"c.csv", "5"}}));
    CHECK(read_file(path + "/a.csv") == "3");
    CHECK(has(error_of(write_output_folder(path, {{"a.csv", "6"}})), "did not write"));
    CHECK(read_file(path + "/a.csv") == "3");
    std::filesystem::create_directory(path + "/d.csv");
    CHECK_FALSE(
        write_output_folder(path, {{"a.csv", ""}, {"b.csv", ""}, {"c.csv", ""}, {"d.csv", ""}}));
    CHECK(has(error_of(write_output_folder(path + "/a.csv", {})), "not a folder"));
    CHECK_FALSE(write_output_folder("-", {}));
    CHECK_FALSE(write_output_folder("/", {}));
    CHECK(entries(folder) == 1);
}

TEST_CASE("a folder of results keeps its mode and those of its files") {
    const TemporaryFolder folder;
    const std::string path = folder.file("tables");
    const auto mode = [](const std::string& name) {
        struct stat status = {};
        REQUIRE(stat(name.c_str(), &status) == 0);
        return status.st_mode & 07777;
    };
    const mode_t former = umask(027);
    REQUIRE(write_output_folder(path, {{"a.csv", "1"}}));
    CHECK(mode(path) == 0750);
    CHECK(mode(path + "/a.csv") == 0640);
    for (const mode_t kept : {0700u, 02775u}) {
        REQUIRE(chmod(path.c_str(), kept) == 0);
        REQUIRE(chmod((path + "/a.csv").c_str(), 0600) == 0);
        REQUIRE(write_output_folder(path, {{"a.csv", "2"}, {"b.csv", "3"}}));
        CHECK(mode(path) == kept);
        CHECK(mode(path + "/a.csv") == 0600);
        CHECK(mode(path + "/b.csv") == 0640);
    }
    umask(former);
    CHECK(read_file(path + "/a.csv") == "2");
    CHECK(entries(folder) == 1);
}

TEST_CASE("a folder that cannot be completed leaves nothing behind") {
    const TemporaryFolder folder;
    const FileLimit limit(4096);
    const std::vector<NamedOutput> files = {{"a.csv", "1"}, {"b.csv", std::string(10'000, 'x')}};
    CHECK(has(error_of(write_output_folder(folder.file("tables"), files)), "File too large"));
    CHECK(entries(folder) == 0);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, [](int) {
            remove_unfinished_output();
            _exit(7);
        });
        (void)write_output_folder(folder.file("tables"), files);
        _exit(1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 7);
    CHECK(entries(folder) == 0);
}

TEST_CASE("writing to a full device is an error, even if only the end of the stream shows it") {
    const auto written = write_output("/dev/full", [](std::FILE* stream) -> Status {
        std::fputs("result\n", stream);
        return Ok{};
    });
    REQUIRE_FALSE(written.ok());
    CHECK(written.error().message.find("/dev/full") != std::string::npos);
    CHECK(write_output("/dev/null", [](std::FILE*) -> Status { return Ok{}; }).ok());
}
