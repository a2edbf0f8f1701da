// Reads a trace and its ring into plain structures that the tests compare with. It uses only
// codec.h.
//
// It is deliberately not the analyzer's reader: the recorder's tests must not share its mistakes.
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

// The complete chunks of a file. Defects are listed, never thrown.
Dump read_trace(const std::string& path);

// Adds the events that only the ring has. Returns false if this trace has no ring.
bool absorb_ring(Dump* dump);

// A directory that is removed together with the object.
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

// Runs `body` in a forked child that records into `folder`, and waits for its end. The child calls
// exit(0) unless the body ends it in another way.
Child in_child(const std::string& folder,
               const std::function<void()>& body,
               const std::map<std::string, std::string>& environment = {});

EventRecord make_event(uint64_t address, uint64_t size_bytes);

}  // namespace fragtrace::test
