#include "tests/support/trace_writer.h"

#include <fragtrace/codec.h>

#include "analyzer/trace/chunk_writer.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <unistd.h>

namespace fragtrace::testing {
namespace {

constexpr std::uint64_t kStepNs = 1000;

template <typename Encode>
std::string encoded(std::size_t capacity_bytes, Encode encode) {
    std::vector<std::uint8_t> buffer(capacity_bytes + 128);
    ByteWriter writer(buffer.data(), buffer.size());
    encode(&writer);
    return {reinterpret_cast<const char*>(writer.data()), writer.size()};
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fragtrace-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
        throw std::runtime_error("cannot make a temporary folder");
    }
    path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::file(std::string_view name) const {
    return path_ + "/" + std::string(name);
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const std::string& path, std::string_view content) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!file.flush()) {
        throw std::runtime_error("cannot write " + path);
    }
}

void keep_report(const std::string& name, std::string_view json) {
    write_file(FRAGTRACE_REPORTS "/" + name + ".json", json);
}

TraceWriter::TraceWriter() {
    gethostname(header.host, sizeof header.host - 1);  // its process has ended
    header.session[0] = 0x1122334455667788;
    header.session[1] = 0x99aabbccddeeff00;
    header.start_unix_ns = 1'700'000'000'000'000'000;
    header.pid = 4711;
    header.rank = -1;
    header.local_rank = -1;
    header.process_start_ticks = 1;  // no process has this start time and the pid
    next_.thread = 4711;
    nodes_.push_back(StackNode{});
}

std::uint64_t TraceWriter::event(EventRecord event) {
    if (event.sequence == 0) {
        event.sequence = events_.empty() ? 1 : events_.back().sequence + 1;
    }
    if (event.time_ns == 0) {
        event.time_ns = event.sequence * kStepNs;
    }
    events_.push_back(event);
    return event.sequence;
}

std::uint64_t TraceWriter::simple(EventKind kind,
                                  std::uint64_t address,
                                  std::uint64_t size_bytes,
                                  std::uint64_t extra,
                                  bool from_allocator) {
    EventRecord record = next_;
    record.kind = kind;
    record.address = address;
    record.size = size_bytes;
    record.extra = extra;
    record.stream = kStreamUnknown;
    record.flags = from_allocator ? std::uint8_t{kFlagFromAllocator} : std::uint8_t{0};
    return event(record);
}

std::uint64_t TraceWriter::device_alloc(std::uint64_t address,
                                        std::uint64_t size_bytes,
                                        bool from_allocator) {
    return simple(EventKind::kDeviceAlloc, address, size_bytes, 0, from_allocator);
}

std::uint64_t TraceWriter::device_free(std::uint64_t address, bool from_allocator) {
    return simple(EventKind::kDeviceFree, address, 0, 0, from_allocator);
}

std::uint64_t TraceWriter::block_alloc(std::uint64_t address,
                                       std::uint64_t requested_bytes,
                                       std::uint64_t block_bytes,
                                       std::uint64_t stream) {
    EventRecord record = next_;
    record.kind = EventKind::kBlockAlloc;
    record.address = address;
    record.size = requested_bytes;
    record.extra = block_bytes;
    record.stream = stream;
    return event(record);
}

std::uint64_t TraceWriter::block_free(std::uint64_t address,
                                      std::uint64_t block_bytes,
                                      bool pending) {
    EventRecord record = next_;
    record.kind = EventKind::kBlockFree;
    record.address = address;
    record.extra = block_bytes;
    record.stream = kStreamUnknown;
    record.flags = pending ? std::uint8_t{kFlagPending} : std::uint8_t{0};
    return event(record);
}

std::uint32_t TraceWriter::native_node(std::uint32_t parent, std::uint64_t return_address) {
    nodes_.push_back({parent, 0, return_address});
    return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t TraceWriter::python_node(std::uint32_t parent,
                                       std::uint32_t code,
                                       std::uint32_t line) {
    nodes_.push_back({parent, line, kPythonFrame | std::uint64_t{code} << 32});
    return static_cast<std::uint32_t>(nodes_.size() - 1);
}

std::uint32_t TraceWriter::code(std::string_view function,
                                std::string_view file,
                                std::uint32_t first_line) {
    const CodeRecord record = {
        code_count_++, first_line, function.data(), function.size(), file.data(), file.size()};
    codes_ += encoded(function.size() + file.size(),
                      [&](ByteWriter* writer) { encode_code(record, writer); });
    return record.id;
}

void TraceWriter::module(std::uint64_t begin,
                         std::uint64_t end,
                         std::uint64_t bias,
                         std::string_view path,
                         std::string_view build_id) {
    const ModuleRecord record = {begin,
                                 end,
                                 bias,
                                 path.data(),
                                 path.size(),
                                 reinterpret_cast<const std::uint8_t*>(build_id.data()),
                                 build_id.size()};
    modules_ += encoded(path.size() + build_id.size(),
                        [&](ByteWriter* writer) { encode_module(record, writer); });
    ++module_count_;
}

void TraceWriter::chunk_done() {
    const std::uint64_t end = sizeof(TraceHeader) + body_.size();
    if (boundaries_.empty()) {
        boundaries_.push_back(sizeof(TraceHeader));
    }
    if (boundaries_.back() != end) {
        boundaries_.push_back(end);
    }
}

void TraceWriter::flush() {
    if (nodes_written_ < nodes_.size()) {
        const auto end = static_cast<std::uint32_t>(nodes_.size());
        analyzer::append_nodes(&body_, nodes_, nodes_written_, end);
        nodes_written_ = end;
        chunk_done();
    }
    if (codes_written_ < codes_.size()) {
        analyzer::append_chunk(&body_,
                               ChunkType::kCode,
                               std::string_view(codes_).substr(codes_written_),
                               code_count_ - codes_written_count_,
                               0);
        codes_written_ = codes_.size();
        codes_written_count_ = code_count_;
        chunk_done();
    }
    if (!modules_.empty()) {
        analyzer::append_chunk(&body_, ChunkType::kModules, modules_, module_count_, 0);
        modules_.clear();
        module_count_ = 0;
        chunk_done();
    }
    if (!facts_.empty()) {
        analyzer::append_facts(&body_, facts_);
        facts_.clear();
        chunk_done();
    }
    std::vector<EventRecord> fresh(events_.begin() + static_cast<std::ptrdiff_t>(events_written_),
                                   events_.end());
    events_written_ = events_.size();
    if (!fresh.empty()) {
        analyzer::append_events(&body_, fresh);
        chunk_done();
    }
}

void TraceWriter::end(EndReason reason) {
    flush();
    EndRecord record = {};
    record.time_ns = events_.empty() ? 0 : events_.back().time_ns;
    record.reason = reason;
    analyzer::append_chunk(
        &body_, ChunkType::kEnd, {reinterpret_cast<const char*>(&record), sizeof record}, 1, 0);
    chunk_done();
}

void TraceWriter::footer() {
    flush();
    std::vector<IndexEntry> index;
    for (std::size_t i = 0; i + 1 < boundaries_.size(); ++i) {
        ChunkHeader chunk = {};
        std::memcpy(&chunk, body_.data() + boundaries_[i] - sizeof(TraceHeader), sizeof chunk);
        index.push_back({boundaries_[i], chunk.first, 0, chunk.count, chunk.type, 0});
    }
    FileTrailer trailer = {};
    trailer.index_offset = sizeof(TraceHeader) + body_.size();
    std::memcpy(trailer.magic, kTraceMagic, sizeof trailer.magic);
    analyzer::append_chunk(
        &body_,
        ChunkType::kIndex,
        {reinterpret_cast<const char*>(index.data()), index.size() * sizeof(IndexEntry)},
        static_cast<std::uint32_t>(index.size()),
        0);
    body_.append(reinterpret_cast<const char*>(&trailer), sizeof trailer);
    chunk_done();
}

std::string TraceWriter::bytes() {
    flush();
    std::memcpy(header.magic, kTraceMagic, sizeof header.magic);
    header.version = kFormatVersion;
    header.byte_order = kByteOrderMark;
    header.header_bytes = sizeof header;
    header.crc = header_crc(header);
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + body_;
}

std::string TraceWriter::ring(std::uint64_t tail,
                              std::uint32_t slot_count,
                              const std::vector<std::uint64_t>& unfinished) const {
    RingHeader ring = {};
    std::memcpy(ring.magic, kRingMagic, sizeof ring.magic);
    ring.version = kFormatVersion;
    ring.header_bytes = sizeof ring;
    ring.session[0] = header.session[0];
    ring.session[1] = header.session[1];
    ring.slot_count = slot_count;
    ring.slot_bytes = sizeof(EventRecord);
    ring.slots_offset = sizeof ring;
    ring.nodes_offset = ring.slots_offset + std::uint64_t{slot_count} * sizeof(EventRecord);
    ring.node_capacity = static_cast<std::uint32_t>(nodes_.size()) + 16;
    ring.code_offset = ring.nodes_offset + std::uint64_t{ring.node_capacity} * sizeof(StackNode);
    ring.code_capacity_bytes = static_cast<std::uint32_t>(codes_.size()) + 64;
    ring.head = events_.empty() ? 0 : events_.back().sequence;
    ring.tail = tail;
    ring.node_count = static_cast<std::uint32_t>(nodes_.size());
    ring.nodes_written = nodes_written_;
    ring.code_bytes = static_cast<std::uint32_t>(codes_.size());
    ring.code_bytes_written = static_cast<std::uint32_t>(codes_written_);
    ring.code_count = code_count_;
    ring.facts_offset = ring.code_offset + ring.code_capacity_bytes;
    ring.facts_capacity_bytes = static_cast<std::uint32_t>(ring_facts_.size()) + 16;
    ring.facts_bytes = static_cast<std::uint32_t>(ring_facts_.size());
    ring.facts_bytes_written = ring_facts_written_;
    std::string file(ring.facts_offset + ring.facts_capacity_bytes, '\0');
    std::memcpy(file.data(), &ring, sizeof ring);
    for (const EventRecord& record : events_) {
        if (record.sequence + slot_count <= ring.head) {
            continue;  // overwritten in the meantime
        }
        EventRecord slot = record;
        if (std::find(unfinished.begin(), unfinished.end(), slot.sequence) != unfinished.end()) {
            slot.sequence = slot.sequence > slot_count ? slot.sequence - slot_count : 0;
        }
        const std::uint64_t place = (record.sequence - 1) % slot_count;
        std::memcpy(file.data() + ring.slots_offset + place * sizeof slot, &slot, sizeof slot);
    }
    std::memcpy(file.data() + ring.nodes_offset, nodes_.data(), nodes_.size() * sizeof(StackNode));
    std::memcpy(file.data() + ring.code_offset, codes_.data(), codes_.size());
    std::memcpy(file.data() + ring.facts_offset, ring_facts_.data(), ring_facts_.size());
    return file;
}

}  // namespace fragtrace::testing
