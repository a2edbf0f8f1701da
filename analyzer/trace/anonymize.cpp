#include "analyzer/trace/anonymize.h"

#include <fragtrace/codec.h>

#include "analyzer/support/input_file.h"
#include "analyzer/trace/base_name.h"
#include "analyzer/trace/builder.h"
#include "analyzer/trace/chunk_scanner.h"
#include "analyzer/trace/chunk_writer.h"
#include "analyzer/trace/code_files.h"
#include "analyzer/trace/event_decoder.h"
#include "analyzer/trace/ring_reader.h"
#include "analyzer/trace/trace_header.h"
#include "analyzer/trace/traced_process.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

bool all_of(std::string_view text, std::string_view characters) {
    return text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_number(std::string_view text) {
    return !text.empty() && all_of(text, "0123456789");
}

// Words that the format itself defines.
bool is_known_word(std::string_view value) {
    constexpr std::array<std::string_view, 14> kWords = {"on",
                                                         "off",
                                                         "zstd",
                                                         "none",
                                                         "oom",
                                                         "signal",
                                                         "call",
                                                         "recorded",
                                                         "verified",
                                                         "unverified",
                                                         "native",
                                                         "cudaMallocAsync",
                                                         "off, at run time",
                                                         "on again, at run time"};
    return std::find(kWords.begin(), kWords.end(), value) != kWords.end();
}

// Whether the value is a list "key:value,key:value" of allocator settings, whose keys PyTorch
// defines.
bool is_setting(std::string_view value) {
    constexpr std::array<std::string_view, 17> kKeys = {"max_split_size_mb",
                                                        "max_non_split_rounding_mb",
                                                        "large_segment_size_mb",
                                                        "garbage_collection_threshold",
                                                        "roundup_power2_divisions",
                                                        "expandable_segments",
                                                        "per_process_memory_fraction",
                                                        "throw_on_cudamalloc_oom",
                                                        "expandable_segments_reserve",
                                                        "backend",
                                                        "preallocate",
                                                        "garbage_collection",
                                                        "fragmentation_fraction",
                                                        "native",
                                                        "cudaMallocAsync",
                                                        "True",
                                                        "False"};
    std::size_t at = 0;
    while (at < value.size()) {
        if (std::string_view(":,[]> .0123456789").find(value[at]) != std::string_view::npos) {
            ++at;
            continue;
        }
        const std::size_t end = std::min(value.find_first_of(":,[]> ", at), value.size());
        const std::string_view word = value.substr(at, end - at);
        if (std::find(kKeys.begin(), kKeys.end(), word) == kKeys.end()) {
            return false;
        }
        at = end;
    }
    return !value.empty();
}

// Only the release number, without a build's suffix: "2.6.0", "3.12.3".
std::string_view release_of(std::string_view value) {
    return value.substr(0, value.find_first_not_of("0123456789."));
}

class Anonymizer {
  public:
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
                numbered("function_", {code.function, code.function_bytes});
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
            const std::string known = value_for(key, value);
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

    // Returns the same number for the same name.
    std::string numbered(const char* prefix, std::string_view name) {
        std::map<std::string, std::size_t, std::less<>>& names = names_[prefix];
        auto found = names.find(name);
        if (found == names.end()) {
            found = names.emplace(std::string(name), names.size() + 1).first;
        }
        return fmt::format("{}{}", prefix, found->second);
    }

    // The new name keeps the class of the file: library, program, native or generated.
    std::string file_for(std::string_view file) {
        if (file.empty() || file == "??") {
            return std::string(file);
        }
        if (is_native_source(file)) {
            return numbered("source_", file) + ".cpp";
        }
        if (!generator_of(file).empty()) {
            return numbered("<string> ", file);
        }
        return is_library_file(file) ? numbered("/lib/python3/library_", file) + ".py"
                                     : numbered("program_", file) + ".py";
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
                                         : numbered("/module_", path) + ".so";
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

    // Which allocator is in use, and whether it is recorded; nullopt: another fact.
    static std::optional<std::string> framework_state(std::string_view key,
                                                      const std::string& value) {
        if (key == "allocator_backend") {
            return is_known_word(value) ? value : "pluggable";
        }
        if (key == "tensorflow.pool" || key == "jax.pool") {
            return value == "recorded" ? value : "off";
        }
        return std::nullopt;
    }

    // Returns an empty string if the fact must be left out.
    std::string value_for(std::string_view key, const std::string& value) {
        const auto in = [key](std::string_view prefix) { return key.starts_with(prefix); };
        if (in("text.") && is_number(key.substr(5))) {
            return is_setting(value) ? value : numbered("text_", value);
        }
        if (in("pool.")) {
            return pool_value(key.substr(5), value);
        }
        if (in("device.")) {
            return device_value(key.substr(7), value);
        }
        if (key == "allocator_conf" || key == "environment.PYTORCH_CUDA_ALLOC_CONF" ||
            key == "environment.PYTORCH_ALLOC_CONF") {
            return is_setting(value) ? value : "";
        }
        if (key == "torch_version" || key == "python.version" || key == "recorder.version") {
            return std::string(release_of(value));
        }
        if (key == "nccl.rank" || key == "ancestors") {
            return all_of(value, "0123456789 :of") ? value : "";
        }
        if (const auto state = framework_state(key, value)) {
            return *state;
        }
        if (key == "python.evaluator") {
            return all_of(value, "0123456789 ") ? value : "";
        }
        // Complete names only: an unknown key may itself contain a name.
        constexpr std::string_view kKeys[] = {"options.stack_depth",
                                              "options.ring_events",
                                              "options.min_bytes",
                                              "options.size_limit",
                                              "lost.ring_full",
                                              "lost.reentrant",
                                              "lost.unfinished",
                                              "lost.unfinished_in_ring",
                                              "lost.write_failed",
                                              "lost.removed",
                                              "lost.completions",
                                              "lost.before_start",
                                              "lost.facts",
                                              "stacks.native",
                                              "stacks.python",
                                              "stacks.without_room",
                                              "stacks.native_failures",
                                              "stacks.python_failures",
                                              "stacks.python_none",
                                              "held.without_room",
                                              "trace.compression",
                                              "trace.write_errors",
                                              "trace.anonymized",
                                              "torch.caching",
                                              "torch.vtable",
                                              "torch.captures",
                                              "torch.pools",
                                              "rank.inherited",
                                              "rank.process",
                                              "world_size",
                                              "generation",
                                              "end.code",
                                              "end.signal",
                                              "end.signal_seen_ns",
                                              "recorder.alive_ns",
                                              "control.signal",
                                              "copy.reason",
                                              "ring.absorbed",
                                              "cuda_driver_version",
                                              "cuda_runtime_version",
                                              "virtual",
                                              "environment.CUDA_MODULE_LOADING",
                                              "environment.PYTORCH_NO_CUDA_MEMORY_CACHING"};
        const bool known = std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
        return known && (is_number(value) || is_known_word(value)) ? value : "";
    }

    // Handles the keys "pool.3", "pool.3.allocator", "pool.3.no_split". `key` lacks the "pool.".
    std::string pool_value(std::string_view key, const std::string& value) {
        const std::size_t dot = key.find('.');
        if (!is_number(key.substr(0, dot))) {
            return {};
        }
        const std::string_view what =
            dot == std::string_view::npos ? std::string_view() : key.substr(dot + 1);
        if (what == "use_on_oom" || what == "no_split" || what == "graph") {
            return value == "1" || value == "0" ? value : "";
        }
        if (what == "limit") {
            return is_number(value) || value == "unknown" ? value : "";
        }
        if (what == "settings") {
            return is_setting(value) ? value : "";
        }
        const std::string_view text(value);
        if (what.empty() && text.starts_with("program ")) {
            return program_pool(text.substr(8));
        }
        const bool pytorch = text.starts_with("pytorch ") && all_of(text.substr(8), "0123456789,");
        const bool cuda = text.starts_with("cuda 0x") && all_of(text.substr(7), "0123456789abcdef");
        return what.empty() && (pytorch || cuda) ? value : "";
    }

    // "KIND NAME". A kind of the program's own could be a name, too.
    std::string program_pool(std::string_view text) {
        constexpr std::string_view kKinds[] = {
            "rmm-pool", "rmm-arena", "bfc", "cuda-async", "best-fit", "cupy", "other"};
        const std::size_t space = text.find(' ');
        const std::string_view kind = text.substr(0, space);
        const std::string_view name =
            space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
        const bool known =
            std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
        return "program " + std::string(known ? kind : "other") + " " + numbered("pool_", name);
    }

    static std::string device_value(std::string_view key, const std::string& value) {
        if (key == "count") {
            return is_number(value) ? value : "";
        }
        const std::size_t dot = key.find('.');
        if (!is_number(key.substr(0, dot)) || dot == std::string_view::npos) {
            return {};
        }
        const std::string_view what = key.substr(dot + 1);
        const bool number = what == "total_bytes" || what == "context_bytes" || what == "mig";
        return (number && is_number(value)) ||
                       (what == "compute_capability" && all_of(value, "0123456789."))
                   ? value
                   : "";
    }

    std::map<std::string, std::map<std::string, std::size_t, std::less<>>> names_;
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

Result<std::string> anonymize_trace(const std::string& path) {
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
    Anonymizer anonymizer;
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
