#include "analyzer/trace/anonymize.h"

#include <fragtrace/codec.h>

#include "analyzer/support/input_file.h"
#include "analyzer/trace/anonymous_facts.h"
#include "analyzer/trace/base_name.h"
#include "analyzer/trace/builder.h"
#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/chunk_writer.h"
#include "analyzer/trace/code_files.h"
#include "analyzer/trace/event_decoder.h"
#include "analyzer/trace/ring_reader.h"
#include "analyzer/trace/trace_header.h"
#include "analyzer/trace/traced_process.h"

#include <cstring>
#include <fmt/format.h>
#include <map>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

class Anonymizer {
  public:
    explicit Anonymizer(bool (*is_setting)(std::string_view)) : is_setting_(is_setting) {}

    void add_chunk(const Chunk& chunk, std::string* out) {
        switch (chunk.header.type) {
            case ChunkType::kEvents:
                return add_events(chunk, out);
            case ChunkType::kStacks:
                return add_nodes(chunk, out);
            case ChunkType::kCode:
                return add_codes(chunk.payload, chunk.header.raw_bytes, chunk.header.count, out);
            case ChunkType::kModules:
                return add_modules(chunk, out);
            case ChunkType::kFacts:
                return add_facts(
                    {reinterpret_cast<const char*>(chunk.payload), chunk.header.raw_bytes}, out);
            case ChunkType::kEnd:
                return add_end(chunk, out);
            case ChunkType::kIndex:
                return;
        }
    }

    void add_codes(const std::uint8_t* data,
                   std::size_t size_bytes,
                   std::uint32_t count,
                   std::string* out) {
        ByteReader reader(data, size_bytes);
        std::string payload;
        std::uint32_t written = 0;
        for (CodeRecord code = {}; written < count && decode_code(&reader, &code); ++written) {
            const std::string function =
                names_.numbered("function_", {code.function, code.function_bytes});
            const std::string file = file_for({code.file, code.file_bytes});
            code.function = function.data();
            code.function_bytes = function.size();
            code.file = file.data();
            code.file_bytes = file.size();
            append(
                &payload,
                [&code](ByteWriter* writer) { encode_code(code, writer); },
                function.size() + file.size());
        }
        append_chunk(out, ChunkType::kCode, payload, written, 0);
    }

    // `lines` are fact lines as in a chunk or in the ring.
    void add_facts(std::string_view lines, std::string* out) {
        TimelineBuilder unescape(lines.size());
        unescape.add_facts(lines);
        std::map<std::string, std::string> kept;
        for (const auto& [key, value] : unescape.facts()) {
            const std::string known = anonymous_fact(key, value, is_setting_(value), &names_);
            if (!known.empty()) {
                kept[key] = known;
            }
        }
        if (!kept.empty()) {
            append_facts(out, kept);
        }
    }

    [[nodiscard]] std::uint64_t damaged() const { return damaged_; }

  private:
    template <typename Encode>
    static void append(std::string* payload, Encode encode, std::size_t text_bytes) {
        std::vector<std::uint8_t> bytes(text_bytes + 10 * kMaxVarintBytes);
        ByteWriter writer(bytes.data(), bytes.size());
        encode(&writer);
        payload->append(reinterpret_cast<const char*>(writer.data()), writer.size());
    }

    // The new name keeps the class of the file: library, program, native or generated.
    std::string file_for(std::string_view file) {
        if (file.empty() || file == "??") {
            return std::string(file);
        }
        if (is_native_source(file)) {
            return names_.numbered("source_", file) + ".cpp";
        }
        if (!generator_of(file).empty()) {
            return names_.numbered("<string> ", file);
        }
        return is_library_file(file) ? names_.numbered("/lib/python3/library_", file) + ".py"
                                     : names_.numbered("program_", file) + ".py";
    }

    void add_events(const Chunk& chunk, std::string* out) {
        EventRecords events;
        if (!events.decode(chunk, 0)) {
            ++damaged_;
            return;
        }
        append_events(out, events.all);
    }

    void add_nodes(const Chunk& chunk, std::string* out) {
        const ChunkHeader& header = chunk.header;
        constexpr std::uint64_t kMostNodes = 1u << 27;
        if (header.first + header.count > kMostNodes || header.count > header.raw_bytes / 3) {
            ++damaged_;
            return;
        }
        const auto first = static_cast<std::uint32_t>(header.first);
        std::vector<StackNode> nodes(header.count);
        if (!decode_nodes(chunk.payload, header.raw_bytes, first, header.count, nodes.data())) {
            ++damaged_;
            return;
        }
        // Encodes the nodes directly, because append_nodes() needs the complete tree.
        std::string payload;
        for (std::uint32_t i = 0; i < header.count; ++i) {
            append(
                &payload,
                [&](ByteWriter* writer) { writer->varint(first + i - nodes[i].parent); },
                0);
        }
        for (const StackNode& node : nodes) {
            append(
                &payload, [&node](ByteWriter* writer) { writer->varint(node.line); }, 0);
        }
        std::uint64_t previous = 0;
        for (const StackNode& node : nodes) {
            append(
                &payload,
                [&](ByteWriter* writer) {
                    writer->varint(zigzag(static_cast<std::int64_t>(node.frame - previous)));
                },
                0);
            previous = node.frame;
        }
        append_chunk(out, ChunkType::kStacks, payload, header.count, header.first);
    }

    void add_modules(const Chunk& chunk, std::string* out) {
        ByteReader reader(chunk.payload, chunk.header.raw_bytes);
        std::string payload;
        std::uint32_t written = 0;
        ModuleRecord module = {};
        for (; written < chunk.header.count && decode_module(&reader, &module); ++written) {
            const std::string_view path(module.path, module.path_bytes);
            // This name stays, because the recorder's own frames are left out of stacks by it.
            const std::string name = base_name(path).starts_with("libfragtrace")
                                         ? "/libfragtrace.so"
                                         : names_.numbered("/module_", path) + ".so";
            module.path = name.data();
            module.path_bytes = name.size();
            module.build_id_bytes = 0;
            append(
                &payload,
                [&module](ByteWriter* writer) { encode_module(module, writer); },
                name.size());
        }
        damaged_ += written < chunk.header.count ? 1 : 0;
        append_chunk(out, ChunkType::kModules, payload, written, 0);
    }

    void add_end(const Chunk& chunk, std::string* out) {
        EndRecord end = {};
        if (chunk.header.raw_bytes < sizeof end) {
            ++damaged_;
            return;
        }
        std::memcpy(&end, chunk.payload, sizeof end);
        std::memset(end.reserved, 0, sizeof end.reserved);
        append_chunk(out,
                     ChunkType::kEnd,
                     {reinterpret_cast<const char*>(&end), sizeof end},
                     1,
                     0,
                     Compression::kNone);
    }

    bool (*is_setting_)(std::string_view);
    AnonymousNames names_;
    std::uint64_t damaged_ = 0;
};

std::string header_bytes(TraceHeader header) {
    std::memset(header.ring_path, 0, sizeof header.ring_path);
    std::memset(header.host, 0, sizeof header.host);
    std::memset(header.reserved, 0, sizeof header.reserved);
    header.header_bytes = sizeof header;
    header.crc = header_crc(header);
    return {reinterpret_cast<const char*>(&header), sizeof header};
}

void add_surplus(const RingContents& ring,
                 const RingSurplus& surplus,
                 Anonymizer* anonymizer,
                 std::string* out) {
    append_nodes(
        out, ring.nodes, surplus.first_node, static_cast<std::uint32_t>(ring.nodes.size()));
    if (surplus.code_count != 0) {
        anonymizer->add_codes(surplus.codes.data(), surplus.codes.size(), surplus.code_count, out);
    }
    append_events(out, surplus.events);
    anonymizer->add_facts(surplus.facts, out);
    append_facts(out, ring.losses);
}

}  // namespace

Result<std::string> anonymize_trace(const std::string& path, bool (*is_setting)(std::string_view)) {
    Result<OpenTrace> trace = open_trace(path);
    if (!trace.ok()) {
        return trace.error();
    }
    const TraceHeader& header = trace->header;
    const ProcessState state = process_state(path, trace->file, header);
    if (state == ProcessState::kRuns) {
        return Error{ErrorCode::kInput,
                     fmt::format("{}: process {} still records into it. Anonymize the trace when "
                                 "it has ended.",
                                 path,
                                 header.pid)};
    }
    const RingContents ring = read_ring(path, header, state != ProcessState::kGone);
    std::string out = header_bytes(header);
    append_facts(&out, {{"trace.anonymized", "1"}});
    Anonymizer anonymizer(is_setting);
    TimelineBuilder builder(trace->file.size());
    ChunkScanner scanner(trace->file, header.header_bytes, false);
    for (Chunk chunk; scanner.next(&chunk);) {
        anonymizer.add_chunk(chunk, &out);
        if (ring.state == RingContents::State::kRead) {
            builder.add_chunk(chunk);
        }
    }
    if (ring.state == RingContents::State::kRead &&
        (!builder.ended() || builder.ending() == Ending::kContinued)) {
        add_surplus(ring, add_ring(ring, &builder), &anonymizer, &out);
    }
    return out;
}

}  // namespace fragtrace::analyzer
