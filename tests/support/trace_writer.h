// Writes synthetic traces and rings, byte for byte like the recorder.
//
// Only for tests. It keeps everything in memory and writes on request. Not thread-safe.
#pragma once

#include <fragtrace/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fragtrace::testing {

// A folder that is removed with everything in it.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    [[nodiscard]] std::string file(std::string_view name) const;

  private:
    std::string path_;
};

std::string read_file(const std::string& path);
void write_file(const std::string& path, std::string_view content);

// Writes a report as JSON to the folder in which the test json_schema finds and validates it.
void keep_report(const std::string& name, std::string_view json);

class TraceWriter {
  public:
    // Header fields may be changed until bytes() is called; magic, sizes and crc are set then.
    TraceHeader header = {};

    TraceWriter();

    // ---- events: each gets the next sequence number and a time of 1 us later -------------------
    // Gives the sequence number. Fields of `event` that matter are kept, also the sequence number
    // if it is not 0.
    std::uint64_t event(EventRecord event);
    std::uint64_t device_alloc(std::uint64_t address,
                               std::uint64_t size_bytes,
                               bool from_allocator);
    std::uint64_t device_free(std::uint64_t address, bool from_allocator);
    std::uint64_t block_alloc(std::uint64_t address,
                              std::uint64_t requested_bytes,
                              std::uint64_t block_bytes,
                              std::uint64_t stream = 0);
    std::uint64_t block_free(std::uint64_t address,
                             std::uint64_t block_bytes,
                             bool pending = false);
    std::uint64_t simple(EventKind kind,
                         std::uint64_t address,
                         std::uint64_t size_bytes,
                         std::uint64_t extra,
                         bool from_allocator = false);

    // The stacks and the device of the events that follow.
    void set_native_stack(std::uint32_t node) { next_.native_stack = node; }

    void set_python_stack(std::uint32_t node) { next_.python_stack = node; }

    void set_device(std::uint16_t device) { next_.device = device; }

    // An event with these fields, for events made by hand.
    [[nodiscard]] const EventRecord& next() const { return next_; }

    // ---- tables ---------------------------------------------------------------------------------
    // Gives the node's number.
    std::uint32_t native_node(std::uint32_t parent, std::uint64_t return_address);
    std::uint32_t python_node(std::uint32_t parent, std::uint32_t code, std::uint32_t line);
    std::uint32_t code(std::string_view function, std::string_view file, std::uint32_t first_line);
    void module(std::uint64_t begin,
                std::uint64_t end,
                std::uint64_t bias,
                std::string_view path,
                std::string_view build_id = {});

    void fact(const std::string& key, const std::string& value) { facts_[key] = value; }

    // ---- the file -------------------------------------------------------------------------------
    // Writes what was added since the last flush as chunks.
    void flush();
    // An end chunk; events may follow.
    void end(EndReason reason);
    // Writes the index and the trailer.
    void footer();
    // The complete file so far, after a flush.
    std::string bytes();

    // The begin of each chunk, and the end of the file.
    [[nodiscard]] const std::vector<std::uint64_t>& boundaries() const { return boundaries_; }

    void save(const std::string& path) { write_file(path, bytes()); }

    // ---- the ring -------------------------------------------------------------------------------
    // A ring of this session that holds the events (tail, end], the whole stack tree and all code
    // records. Events whose sequence number is in `unfinished` were claimed but never completed.
    [[nodiscard]] std::string ring(std::uint64_t tail,
                                   std::uint32_t slot_count,
                                   const std::vector<std::uint64_t>& unfinished = {}) const;

    // Fact lines of that ring. The file also has the first `written_bytes` of them.
    void set_ring_facts(std::string lines, std::uint32_t written_bytes) {
        ring_facts_ = std::move(lines);
        ring_facts_written_ = written_bytes;
    }

    [[nodiscard]] const std::vector<EventRecord>& events() const { return events_; }

  private:
    void chunk_done();

    EventRecord next_ = {};
    std::vector<EventRecord> events_;
    std::vector<StackNode> nodes_;
    std::string codes_;
    std::string modules_;
    std::map<std::string, std::string> facts_;
    std::string body_;
    std::vector<std::uint64_t> boundaries_;
    std::size_t events_written_ = 0;
    std::uint32_t nodes_written_ = 1;
    std::size_t codes_written_ = 0;
    std::uint32_t code_count_ = 0;
    std::uint32_t codes_written_count_ = 0;
    std::uint32_t module_count_ = 0;
    std::string ring_facts_;
    std::uint32_t ring_facts_written_ = 0;
};

}  // namespace fragtrace::testing
