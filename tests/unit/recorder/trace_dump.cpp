#include "trace_dump.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

namespace fragtrace::test {
namespace {

std::string read_whole(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void add_facts(Dump* dump, const std::string& text) {
    size_t begin = 0;
    while (begin < text.size()) {
        const size_t end = text.find('\n', begin);
        const std::string line = text.substr(begin, end - begin);
        const size_t tab = line.find('\t');
        if (end == std::string::npos || tab == std::string::npos) {
            dump->defects.push_back("fact line: " + line);
            return;
        }
        dump->facts[line.substr(0, tab)] = line.substr(tab + 1);
        begin = end + 1;
    }
}

void add_codes(Dump* dump, const uint8_t* data, size_t size_bytes) {
    ByteReader reader(data, size_bytes);
    while (reader.left() != 0) {
        CodeRecord code{};
        if (!decode_code(&reader, &code)) {
            dump->defects.emplace_back("code record");
            return;
        }
        dump->codes[code.id] = {std::string(code.function, code.function_bytes),
                                std::string(code.file, code.file_bytes),
                                code.first_line};
    }
}

void add_chunk(Dump* dump, const ChunkHeader& chunk, const std::string& raw) {
    const auto* data = reinterpret_cast<const uint8_t*>(raw.data());
    switch (chunk.type) {
        case ChunkType::kEvents:
            if (dump->end) {
                dump->events_after_end += chunk.count;
            }
            if (!decode_events(
                    data, raw.size(), chunk.first, chunk.count, [&](const EventRecord& event) {
                        dump->events.push_back(event);
                    })) {
                dump->defects.emplace_back("events");
            }
            break;
        case ChunkType::kStacks:
            if (chunk.first != dump->nodes.size()) {
                dump->defects.emplace_back("stacks not contiguous");
                break;
            }
            dump->nodes.resize(chunk.first + chunk.count);
            if (!decode_nodes(data,
                              raw.size(),
                              static_cast<uint32_t>(chunk.first),
                              chunk.count,
                              dump->nodes.data() + chunk.first)) {
                dump->defects.emplace_back("stacks");
            }
            break;
        case ChunkType::kCode:
            add_codes(dump, data, raw.size());
            break;
        case ChunkType::kModules: {
            ByteReader reader(data, raw.size());
            dump->modules.clear();
            while (reader.left() != 0) {
                ModuleRecord module{};
                if (!decode_module(&reader, &module)) {
                    dump->defects.emplace_back("module");
                    break;
                }
                dump->modules.emplace_back(module.path, module.path_bytes);
            }
            break;
        }
        case ChunkType::kFacts:
            if (std::count(raw.begin(), raw.end(), '\n') !=
                static_cast<std::ptrdiff_t>(chunk.count)) {
                dump->defects.emplace_back("facts are not as many as the chunk says");
            }
            add_facts(dump, raw);
            break;
        case ChunkType::kEnd: {
            EndRecord end{};
            memcpy(&end, raw.data(), std::min(raw.size(), sizeof end));
            dump->end = end.reason;
            break;
        }
        case ChunkType::kIndex:
            break;
    }
}

}  // namespace

Dump read_trace(const std::string& path) {
    Dump dump;
    const std::string bytes = read_whole(path);
    if (bytes.size() < sizeof dump.header) {
        dump.defects.emplace_back("header is cut");
        return dump;
    }
    memcpy(&dump.header, bytes.data(), sizeof dump.header);
    if (header_crc(dump.header) != dump.header.crc) {
        dump.defects.emplace_back("header checksum");
    }
    size_t offset = sizeof dump.header;
    while (bytes.size() - offset >= sizeof(ChunkHeader)) {
        ChunkHeader chunk{};
        memcpy(&chunk, bytes.data() + offset, sizeof chunk);
        const char* payload = bytes.data() + offset + sizeof chunk;
        if (chunk.magic == kChunkMagic && chunk.type == ChunkType::kIndex &&
            chunk.stored_bytes > bytes.size() - offset - sizeof chunk) {
            break;  // the process died while it wrote the index: nothing is missing
        }
        if (chunk.magic != kChunkMagic ||
            chunk.stored_bytes > bytes.size() - offset - sizeof chunk ||
            chunk_crc(chunk, payload) != chunk.crc) {
            dump.defects.push_back("chunk at " + std::to_string(offset));
            return dump;
        }
        std::string raw(payload, chunk.stored_bytes);
        if (chunk.compression == Compression::kZstd) {
            raw.resize(chunk.raw_bytes);
            const size_t got = ZSTD_decompress(raw.data(), raw.size(), payload, chunk.stored_bytes);
            if (got != chunk.raw_bytes) {
                dump.defects.emplace_back("zstd");
                return dump;
            }
        }
        add_chunk(&dump, chunk, raw);
        const size_t next = offset + sizeof chunk + (chunk.stored_bytes + 7) / 8 * 8;
        if (chunk.type == ChunkType::kIndex) {
            FileTrailer trailer{};
            if (bytes.size() - next >= sizeof trailer) {
                memcpy(&trailer, bytes.data() + next, sizeof trailer);
                dump.has_trailer = trailer.index_offset == offset &&
                                   memcmp(trailer.magic, kTraceMagic, 8) == 0 &&
                                   next + sizeof trailer == bytes.size();
            }
            return dump;
        }
        offset = next;
    }
    return dump;
}

bool absorb_ring(Dump* dump) {
    const std::string bytes = read_whole(dump->header.ring_path);
    RingHeader ring{};
    if (bytes.size() < sizeof ring) {
        return false;
    }
    memcpy(&ring, bytes.data(), sizeof ring);
    if (memcmp(ring.magic, kRingMagic, 8) != 0 || ring.session[0] != dump->header.session[0]) {
        return false;
    }
    for (size_t i = dump->nodes.size(); i < ring.node_count; ++i) {
        StackNode node{};
        memcpy(&node, bytes.data() + ring.nodes_offset + i * sizeof node, sizeof node);
        dump->nodes.push_back(node);
    }
    add_codes(
        dump,
        reinterpret_cast<const uint8_t*>(bytes.data()) + ring.code_offset + ring.code_bytes_written,
        ring.code_bytes - ring.code_bytes_written);
    add_facts(dump,
              bytes.substr(ring.facts_offset + ring.facts_bytes_written,
                           ring.facts_bytes - ring.facts_bytes_written));
    for (unsigned i = 0; i < kRingLossCount; ++i) {
        if (ring.losses[i] != 0) {
            dump->facts[kRingLosses[i]] = std::to_string(ring.losses[i]);
        }
    }
    for (uint64_t sequence = ring.tail + 1; sequence <= ring.head; ++sequence) {
        EventRecord event{};
        memcpy(&event,
               bytes.data() + ring.slots_offset + (sequence - 1) % ring.slot_count * sizeof event,
               sizeof event);
        if (event.sequence == sequence &&
            (dump->events.empty() || dump->events.back().sequence < sequence)) {
            dump->events.push_back(event);
        }
    }
    unlink(dump->header.ring_path);
    return true;
}

Folder::Folder() {
    char name[] = "/tmp/fragtrace-test-XXXXXX";
    path_ = mkdtemp(name);
}

Folder::~Folder() {
    const std::string command = "rm -rf '" + path_ + "'";
    if (std::system(command.c_str()) != 0) {
        path_.clear();
    }
}

std::vector<std::string> Folder::traces() const {
    std::vector<std::string> found;
    if (DIR* folder = opendir(path_.c_str())) {
        while (const dirent* entry = readdir(folder)) {
            const std::string name = entry->d_name;
            if (name.size() > 7 && name.compare(name.size() - 7, 7, ".ftrace") == 0) {
                found.push_back(path_ + "/" + name);
            }
        }
        closedir(folder);
    }
    std::sort(found.begin(), found.end());
    return found;
}

Child in_child(const std::string& folder,
               const std::function<void()>& body,
               const std::map<std::string, std::string>& environment) {
    int channel[2];
    if (pipe(channel) != 0) {
        std::abort();
    }
    std::fflush(nullptr);  // otherwise the child would also write the parent's buffered output
    std::cout.flush();
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(channel[1], STDERR_FILENO);
        close(channel[0]);
        close(channel[1]);
        setenv("FRAGTRACE_OUTPUT", folder.c_str(), 1);
        for (const auto& [name, value] : environment) {
            setenv(name.c_str(), value.c_str(), 1);
        }
        body();
        std::exit(0);
    }
    close(channel[1]);
    Child child{0, pid, ""};
    char buffer[512];
    for (ssize_t got = 0; (got = read(channel[0], buffer, sizeof buffer)) > 0;) {
        child.errors.append(buffer, static_cast<size_t>(got));
    }
    close(channel[0]);
    waitpid(pid, &child.status, 0);
    return child;
}

EventRecord make_event(uint64_t address, uint64_t size_bytes) {
    EventRecord event{};
    event.kind = EventKind::kDeviceAlloc;
    event.address = address;
    event.size = size_bytes;
    event.stream = kStreamUnknown;
    return event;
}

}  // namespace fragtrace::test
