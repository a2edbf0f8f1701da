#include "launcher/traces.h"

#include "launcher/refusal.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

using namespace fragtrace::launcher;
namespace fs = std::filesystem;

namespace {

class Folder {
  public:
    Folder() {
        char name[] = "/tmp/fragtrace-test-XXXXXX";
        path_ = mkdtemp(name);
    }

    ~Folder() { fs::remove_all(path_); }

    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    [[nodiscard]] const fs::path& path() const { return path_; }

    // Adds a file of that size. Its age is relative to `since`.
    void add(const std::string& name,
             std::size_t bytes,
             const timespec& since,
             long later_ns) const {
        const fs::path file = path_ / name;
        std::ofstream(file) << std::string(bytes, 'x');
        timespec time = since;
        time.tv_nsec += later_ns;
        const timespec times[2] = {time, time};
        utimensat(AT_FDCWD, file.c_str(), times, 0);
    }

  private:
    fs::path path_;
};

}  // namespace

TEST_CASE("a trace's file name gives its process id") {
    unsigned long part = 0;
    CHECK(owner_of("train.4711.ftrace", 4711, &part) == TraceOwner::kProcess);
    CHECK(owner_of("train.py.4711.2.ftrace", 4711, &part) == TraceOwner::kProcess);
    CHECK(owner_of("train.4711.part12.ftrace", 4711, &part) == TraceOwner::kPartOfProcess);
    CHECK(part == 12);
    for (const char* name : {"train.14711.ftrace",
                             "train.4711.x.ftrace",
                             "train.4711.part.ftrace",
                             "train.4711.partx.ftrace",
                             "train.4711",
                             "4711.ftrace",
                             ".ftrace",
                             "train.4711.ftrace.tmp"}) {
        CAPTURE(name);
        CHECK(owner_of(name, 4711, &part) == TraceOwner::kOther);
    }
}

TEST_CASE("a run's own traces come first, the latest part before older ones, then by size") {
    const Folder folder;
    const timespec since = {1'700'000'000, 500};
    folder.add("small.2.ftrace", 10, since, 1);
    folder.add("large.3.ftrace", 20, since, 1);
    folder.add("mine.1.part2.ftrace", 5, since, 1);
    folder.add("mine.1.part10.ftrace", 5, since, 1);
    folder.add("mine.1.ftrace", 1, since, 0);  // the file system's clock is coarse
    folder.add("earlier.4.ftrace", 5, since, 0);
    folder.add("older.1.ftrace", 5, since, -1);
    folder.add("other.5.txt", 5, since, 1);
    fs::create_directory(folder.path() / "folder.1.ftrace");
    std::vector<std::string> names;
    for (const fs::path path : find_traces(folder.path(), since, 1)) {
        names.push_back(path.filename());
    }
    CHECK(names == std::vector<std::string>{"mine.1.ftrace",
                                            "mine.1.part10.ftrace",
                                            "mine.1.part2.ftrace",
                                            "large.3.ftrace",
                                            "small.2.ftrace"});
    CHECK(find_traces(folder.path() / "missing", since, 1).empty());
}

TEST_CASE("a folder's time comes from the same clock as its files' times") {
    const Folder folder;
    const timespec time = folder_time(folder.path());
    std::ofstream(folder.path() / "later") << 'x';
    struct stat status = {};
    REQUIRE(stat((folder.path() / "later").c_str(), &status) == 0);
    CHECK(std::pair(status.st_mtim.tv_sec, status.st_mtim.tv_nsec) >=
          std::pair(time.tv_sec, time.tv_nsec));
    CHECK(status.st_mtim.tv_sec - time.tv_sec < 60);
    CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a folder is made and its path is absolute") {
    const Folder folder;
    const std::string base = folder.path();
    CHECK(prepare_folder(base + "/a/b c:d") == base + "/a/b c:d");
    CHECK(prepare_folder(base + "//a///b c:d/") == base + "/a/b c:d");
    CHECK(prepare_folder(base + "/a/./x/..") == base + "/a");
    CHECK(prepare_folder(".") == fs::current_path());
    fs::create_directory_symlink(base + "/a/b c:d", base + "/link");
    CHECK(prepare_folder(base + "/link") == base + "/link");
    CHECK(prepare_folder(base + "/link/..") == base + "/a");
    std::ofstream(base + "/file") << 'x';
    CHECK_THROWS_AS(prepare_folder(base + "/file"), Refusal);
    CHECK_THROWS_AS(prepare_folder(base + "/file/below"), Refusal);
    CHECK_THROWS_AS(prepare_folder("/proc/none"), Refusal);
}

TEST_CASE("a path is short and safe to paste into a shell") {
    CHECK(shell_path("/here/out/a.1.ftrace", "/here") == "out/a.1.ftrace");
    CHECK(shell_path("/hereafter/a.1.ftrace", "/here") == "/hereafter/a.1.ftrace");
    CHECK(shell_path("/here/-a.1.ftrace", "/here") == "./-a.1.ftrace");
    CHECK(shell_path("/here/a b.1.ftrace", "/here") == "'a b.1.ftrace'");
    CHECK(shell_path("/here/it's", "/here") == "'it'\\''s'");
    CHECK(shell_path("/here/a\n'\\b", "/here") == "$'a\\012\\'\\\\b'");
}
