// Reads a trace and its ring into plain structures, by codec.h alone: what the tests compare with.
//
// Deliberately not the analyzer's reader: the recorder's tests must not share its mistakes.
#pragma once

#include <fragtrace/codec.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fragtrace::test {

struct Code {
    std::string function;
    std::string file;
    uint32_t first_line;
};

struct Dump {
    TraceHeader header{};
    std::vector<EventRecord> events;
    std::vector<StackNode> nodes{StackNode{}};
    std::map<uint32_t, Code> codes;
    std::map<std::string, std::string> facts;
    std::vector<std::string> modules;
    std::optional<EndReason> end;
    bool has_trailer = false;
    uint32_t events_after_end = 0;
    std::vector<std::string> defects;
};

// Whole chunks of a file; defects are listed, never thrown.
Dump read_trace(const std::string& path);

// Adds what only the ring has. False when there is no ring of this trace.
bool absorb_ring(Dump* dump);

// A directory of its own that goes away with the object.
class Folder {
  public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    [[nodiscard]] const std::string& path() const { return path_; }

    [[nodiscard]] std::vector<std::string> traces() const;

  private:
    std::string path_;
};

struct Child {
    int status;
    int pid;
    std::string errors;  // its stderr
};

// Runs `body` in a forked child that records into `folder`, and waits for its end. The child leaves
// by exit(0) unless the body ends it otherwise.
Child in_child(const std::string& folder,
               const std::function<void()>& body,
               const std::map<std::string, std::string>& environment = {});

EventRecord make_event(uint64_t address, uint64_t size_bytes);

}  // namespace fragtrace::test
