#include "launcher/traces.h"

#include "launcher/refusal.h"
#include "recorder/output_pattern.h"
#include "recorder/safe_names.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/utsname.h>

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

// As names of traces have it.
std::string host() {
    utsname system = {};
    char name[128];
    fragtrace::preload::Text text(name, sizeof name);
    uname(&system);
    fragtrace::preload::add_host(&text, system.nodename);
    return name;
}

std::string host_name(const char* host) {
    char name[128];
    fragtrace::preload::Text text(name, sizeof name);
    fragtrace::preload::add_host(&text, host);
    return name;
}

}  // namespace

TEST_CASE("a host's name is safe in a file name and is never a number") {
    CHECK(host_name("node1") == "node1");
    CHECK(host_name("node1.cluster.org") == "node1");
    CHECK(host_name("Node-1_a") == "Node-1_a");
    CHECK(host_name("12") == "host12");
    CHECK(host_name("10.0.0.1") == "host10-0-0-1");
    CHECK(host_name("7.node") == "host7-node");
    CHECK(host_name("") == "unknown");
    CHECK(host_name("a/../b c\n%") == "a_");
    CHECK(host_name("../x") == "host--_x");
    CHECK(host_name("a b\n/\x7f\xc3") == "a_b____");
    CHECK(host_name(std::string(300, 'x').c_str()) == std::string(64, 'x'));
}

TEST_CASE("patterns of a folder are read, and malformed ones refused") {
    using fragtrace::preload::is_pattern;
    for (const char* good : {"", "a/b", "%h", "%h/%p/%r", "a%%b", "%q{USER}-%q{X_1}", "%%%%"}) {
        CAPTURE(good);
        CHECK(is_pattern(good));
    }
    for (const char* bad :
         {"%", "a%", "%x", "%H", "100% sure", "%q", "%q{", "%q{}", "%q{A", "%q{A/B}", "%%%"}) {
        CAPTURE(bad);
        CHECK_FALSE(is_pattern(bad));
    }
}

TEST_CASE("a folder with patterns is split at its first pattern") {
    const auto split = [](const std::string& text) {
        const Output output = split_output(text);
        return output.folder + " | " + output.pattern;
    };
    CHECK(split("traces") == "traces/ | ");
    CHECK(split("/a/b") == "/a/b/ | ");
    CHECK(split("a%%b/c") == "a%b/c/ | ");
    CHECK(split("%h") == ". | %h");
    CHECK(split("/a/run-%q{ID}/x/%h") == "/a/ | run-%q{ID}/x/%h");
    CHECK(split("a%%/%p") == "a%/ | %p");
    CHECK(Output{"/50%/x", ""}.setting() == "/50%%/x");
    CHECK(Output{"/50%/x", "%h%%"}.setting() == "/50%%/x/%h%%");
    CHECK(Output{"/x", "a b*/r%r"}.shell_glob() == "/a\\ b\\*/r*/*.ftrace");
}

TEST_CASE("traces are found in all folders that a pattern can name") {
    const Folder folder;
    const timespec since = {1'700'000'000, 500};
    for (const char* name : {"run-a", "run-b/deep", "other", "run-[1]"}) {
        fs::create_directories(folder.path() / name / "x");
    }
    folder.add("run-a/x/one.1.ftrace", 10, since, 1);
    folder.add("run-[1]/x/two.2.ftrace", 9, since, 1);
    folder.add("other/x/three.3.ftrace", 8, since, 1);
    folder.add("run-b/four.4.ftrace", 8, since, 1);
    folder.add("five.5.ftrace", 8, since, 1);
    const auto found = [&](const std::string& pattern) {
        std::string names;
        for (const fs::path path : find_traces({folder.path(), pattern}, since, 1)) {
            names += path.filename().stem().stem().string() + ' ';
        }
        return names;
    };
    CHECK(found("run-%h/x") == "one two ");
    CHECK(found("run-%h/x/") == "one two ");
    CHECK(found("%q{A}/x") == "one two three ");
    CHECK(found("run-[%p]/x") == "two ");
    CHECK(found("%h") == "four ");
    CHECK(found("none/%h").empty());
}

TEST_CASE("a trace's file name gives its process id") {
    unsigned long part = 0;
    CHECK(owner_of("train.n1.4711.ftrace", "n1", 4711, &part) == TraceOwner::kProcess);
    CHECK(owner_of("train.n1.rank12.4711.ftrace", "n1", 4711, &part) == TraceOwner::kProcess);
    CHECK(owner_of("train.py.n1.4711.2.ftrace", "n1", 4711, &part) == TraceOwner::kProcess);
    CHECK(owner_of("train.n1.4711.part12.ftrace", "n1", 4711, &part) == TraceOwner::kPartOfProcess);
    CHECK(part == 12);
    CHECK(owner_of("train.n1.rank0.4711.part3.ftrace", "n1", 4711, &part) ==
          TraceOwner::kPartOfProcess);
    CHECK(part == 3);
    for (const char* name : {"train.n1.14711.ftrace",
                             "train.n1.4711.x.ftrace",
                             "train.n1.4711.part.ftrace",
                             "train.n1.4711.partx.ftrace",
                             "train.n1.rankx.4711.ftrace",
                             "train.n1.4711.oom1.ftrace",
                             "train.n1.4711",
                             "n1.4711.ftrace",
                             "4711.ftrace",
                             ".ftrace",
                             "train.n1.4711.ftrace.tmp"}) {
        CAPTURE(name);
        CHECK(owner_of(name, "n1", 4711, &part) == TraceOwner::kOther);
    }
}

TEST_CASE("a trace of another host is not the process's own, although the process ids are equal") {
    unsigned long part = 0;
    for (const char* host : {"n", "n2", "1", "train"}) {
        CAPTURE(host);
        CHECK(owner_of("train.n1.4711.ftrace", host, 4711, &part) == TraceOwner::kOther);
        CHECK(owner_of("train.n1.rank3.4711.ftrace", host, 4711, &part) == TraceOwner::kOther);
    }
}

TEST_CASE("a run's own traces come first, the latest part before older ones, then by size") {
    const Folder folder;
    const timespec since = {1'700'000'000, 500};
    folder.add("small.2.ftrace", 10, since, 1);
    folder.add("large.3.ftrace", 20, since, 1);
    const std::string mine = "mine." + host() + ".rank7.1.";
    folder.add(mine + "part2.ftrace", 5, since, 1);
    folder.add(mine + "part10.ftrace", 5, since, 1);
    folder.add(mine + "ftrace", 1, since, 0);  // the file system's clock is coarse
    folder.add("earlier.4.ftrace", 5, since, 0);
    folder.add("older.1.ftrace", 5, since, -1);
    folder.add("other.5.txt", 5, since, 1);
    fs::create_directory(folder.path() / "folder.1.ftrace");
    std::vector<std::string> names;
    for (const fs::path path : find_traces({folder.path(), ""}, since, 1)) {
        names.push_back(path.filename());
    }
    CHECK(names == std::vector<std::string>{mine + "ftrace",
                                            mine + "part10.ftrace",
                                            mine + "part2.ftrace",
                                            "large.3.ftrace",
                                            "small.2.ftrace"});
    CHECK(find_traces({folder.path() / "missing", ""}, since, 1).empty());
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

TEST_CASE("a malformed pattern is refused before anything is created") {
    const Folder folder;
    CHECK_THROWS_AS(prepare_output(folder.path().string() + "/new/%x"), Refusal);
    CHECK(fs::is_empty(folder.path()));
    const Output output = prepare_output(folder.path().string() + "/new/%h/x");
    CHECK(output.folder == folder.path().string() + "/new");
    CHECK(output.pattern == "%h/x");
    CHECK(fs::is_empty(output.folder));
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

TEST_CASE("a trace of an earlier process with the same number is not of this run") {
    const Folder folder;
    const timespec since = {1'700'000'000, 500'000'000};
    const std::string mine = "python." + host() + ".1.";
    folder.add(mine + "part1.ftrace", 5, since, -1);
    folder.add(mine + "part2.ftrace", 5, since, 1);
    const std::vector<std::string> found = find_traces({folder.path(), ""}, since, 1);
    REQUIRE(found.size() == 1);
    CHECK(found[0].ends_with("part2.ftrace"));
}
