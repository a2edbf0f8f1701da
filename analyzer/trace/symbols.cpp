#include "analyzer/trace/symbols.h"

#include "analyzer/support/terminal.h"
#include "analyzer/trace/base_name.h"
#include "analyzer/trace/code_files.h"
#include "analyzer/trace/elf_symbols.h"
#include "analyzer/trace/mixed_stack.h"
#include "analyzer/trace/stack_limit.h"
#include "analyzer/trace/user_frame.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <iterator>
#include <string_view>

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kStacksKept = 16384;
constexpr std::size_t kMaxNotes = 20;
// Limits on native and Python frames per stack; the recorder keeps at most 128 of each. The lower
// limit applies once very many frames are stored.
constexpr std::size_t kMostFrames = 512;
constexpr std::size_t kFewFrames = 32;
constexpr std::size_t kFramesUntilFew = 1 << 19;

std::uint64_t number_of(const std::string& text, std::uint64_t otherwise) {
    std::uint64_t number = otherwise;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size() ? number : otherwise;
}

bool is_recorder(const Frame& frame) {
    return base_name(frame.module).starts_with("libfragtrace");
}

// Returns a native frame that was recorded by name. Its line is an offset if no source file is
// known.
Frame named_native_frame(const PythonCode& code, std::uint32_t line) {
    Frame frame;
    frame.function = code.function;
    if (is_native_source(code.file)) {
        frame.file = code.file;
        frame.line = line;
    } else if (!code.file.empty() && code.file != "??") {
        frame.module = code.file;
        if (code.function == "??") {
            frame.function = fmt::format("{}+{:#x}", base_name(code.file), line);
        }
    }
    return frame;
}

std::uint64_t key_of(const Origin& origin) {
    return std::uint64_t{origin.native_stack} << 32 | origin.python_stack;
}

}  // namespace

Symbolizer::Symbolizer(const Timeline& timeline)
    : timeline_(timeline), stack_depth_(stack_depth_limit(timeline)) {
    // The fact has the form "BEGIN BYTES".
    const std::string evaluator = timeline.fact("python.evaluator");
    const std::size_t blank = evaluator.find(' ');
    if (blank != std::string::npos) {
        evaluator_begin_ = number_of(evaluator.substr(0, blank), 0);
        evaluator_end_ = evaluator_begin_ + number_of(evaluator.substr(blank + 1), 0);
    }
}

Symbolizer::~Symbolizer() = default;

const std::vector<Frame>& Symbolizer::frames(OriginId id) {
    const Origin origin = id < timeline_.origins.size() ? timeline_.origins[id] : Origin{};
    std::unique_ptr<std::vector<Frame>>& entry = stacks_[key_of(origin)];
    if (entry == nullptr) {
        entry = std::make_unique<std::vector<Frame>>(symbolize(origin));
        stack_order_.push_back(key_of(origin));
        const std::vector<Frame>& result = *entry;
        frames_made_ += result.size();
        if (stack_order_.size() > kStacksKept) {
            stacks_.erase(stack_order_.front());
            stack_order_.pop_front();
        }
        return result;
    }
    return *entry;
}

std::string Symbolizer::describe(OriginId id) {
    const Origin origin = id < timeline_.origins.size() ? timeline_.origins[id] : Origin{};
    const auto [entry, is_new] = descriptions_.try_emplace({key_of(origin), origin.label});
    if (is_new) {
        const Frame* frame = pick_user_frame(frames(id));
        entry->second =
            printable((frame == nullptr ? "unknown" : describe_frame(*frame)) + label_of(id));
    }
    return entry->second;
}

std::string Symbolizer::describe_without_label(OriginId id) {
    const Frame* frame = pick_user_frame(frames(id));
    return printable(frame == nullptr ? "unknown" : describe_frame(*frame));
}

std::string Symbolizer::label_of(OriginId id) const {
    constexpr std::size_t kMostBytes = 60;
    const std::uint32_t label = id < timeline_.origins.size() ? timeline_.origins[id].label : 0;
    if (label == 0) {
        return "";
    }
    const std::string text = timeline_.fact(fmt::format("text.{}", label));
    return fmt::format(
        " \"{}{}\"", text.substr(0, kMostBytes), text.size() > kMostBytes ? "..." : "");
}

std::vector<Frame> Symbolizer::symbolize(const Origin& origin) {
    const std::vector<StackNode>& nodes = timeline_.nodes;
    std::vector<NativeCall> native;
    std::uint32_t native_depth = 0;
    std::size_t native_nodes = 0;
    const std::size_t most_frames = frames_made_ < kFramesUntilFew ? kMostFrames : kFewFrames;
    // Parents have smaller numbers than their children, so both walks end.
    for (std::uint32_t node = origin.native_stack; node != 0 && node < nodes.size();
         node = nodes[node].parent) {
        if (++native_nodes > most_frames) {
            break;
        }
        if (is_python_frame(nodes[node].frame)) {
            continue;
        }
        ++native_depth;
        const std::vector<Frame>& found = native_frames(nodes[node].frame);
        if (!native.empty() || !is_recorder(found.front())) {
            const std::uint64_t call = nodes[node].frame - 1;
            native.push_back({&found,
                              (call >= evaluator_begin_ && call < evaluator_end_) ||
                                  is_evaluator(found.back())});
        }
    }
    std::vector<PythonCall> python;
    bool order_known = false;
    std::size_t python_nodes = 0;
    for (std::uint32_t node = origin.python_stack;
         node != 0 && node < nodes.size() && ++python_nodes <= most_frames;
         node = nodes[node].parent) {
        if (is_python_frame(nodes[node].frame)) {
            python.push_back({python_frame(nodes[node]), is_python_entry(nodes[node].frame)});
            order_known = order_known || python.back().entry;
        }
    }
    if (order_known && !native.empty()) {
        auto mixed =
            mix_stacks(native, native_depth >= stack_depth_, python, python.size() >= stack_depth_);
        if (mixed.has_value()) {
            return *std::move(mixed);
        }
        ++stacks_without_order_;
    }
    return native_then_python(native, python);
}

std::vector<Frame> Symbolizer::native_then_python(const std::vector<NativeCall>& native,
                                                  const std::vector<PythonCall>& python) {
    std::vector<Frame> result;
    for (const NativeCall& call : native) {
        if (!python.empty() && is_interpreter(call.frames->back())) {
            break;
        }
        result.insert(result.end(), call.frames->begin(), call.frames->end());
    }
    for (const PythonCall& call : python) {
        result.push_back(call.frame);
    }
    return result;
}

Frame Symbolizer::python_frame(const StackNode& node) const {
    Frame frame;
    frame.kind = Frame::Kind::kPython;
    const std::uint32_t id = python_code_id(node.frame);
    if (id >= timeline_.codes.size()) {
        frame.function = fmt::format("code {}", id);
        return frame;
    }
    const PythonCode& code = timeline_.codes[id];
    if (code.native) {
        return named_native_frame(code, node.line);
    }
    frame.function = code.function;
    frame.file = code.file;
    frame.line = node.line != 0 ? node.line : code.first_line;
    return frame;
}

const std::vector<Frame>& Symbolizer::native_frames(std::uint64_t return_address) {
    const auto [entry, is_new] = native_.try_emplace(return_address);
    if (is_new) {
        // The call instruction precedes the return address, which may already belong to another
        // function.
        entry->second = look_up(return_address - 1);
    }
    return entry->second;
}

std::vector<Frame> Symbolizer::look_up(std::uint64_t address) {
    const Module* module = module_at(address);
    if (module == nullptr) {
        ++unnamed_addresses_[""];
        return {{Frame::Kind::kNative, fmt::format("{:#x}", address), {}, 0, {}}};
    }
    const std::uint64_t in_file = address - module->bias;
    ElfSymbols* elf = elf_of(*module);
    std::vector<Frame> result = elf == nullptr ? std::vector<Frame>() : elf->frames(in_file);
    if (result.empty()) {
        ++unnamed_addresses_[std::string(base_name(module->path))];
        result.push_back({Frame::Kind::kNative,
                          fmt::format("{}+{:#x}", base_name(module->path), in_file),
                          {},
                          0,
                          {}});
    }
    for (Frame& frame : result) {
        frame.module = module->path;
    }
    return result;
}

const Module* Symbolizer::module_at(std::uint64_t address) {
    if (!modules_mapped_) {
        map_modules();
    }
    auto part = module_parts_.upper_bound(address);
    if (part == module_parts_.begin()) {
        return nullptr;
    }
    --part;
    return address < part->second.first ? part->second.second : nullptr;
}

// Later modules replace earlier ones where they overlap. The remaining parts of each earlier module
// are stored.
void Symbolizer::map_modules() {
    modules_mapped_ = true;
    std::map<std::uint64_t, std::uint64_t> covered;  // begin -> end of each range; no two touch
    for (auto module = timeline_.modules.rbegin(); module != timeline_.modules.rend(); ++module) {
        std::uint64_t from = module->begin;
        std::uint64_t begin = module->begin;
        std::uint64_t end = module->end;
        if (begin >= end) {
            continue;
        }
        auto next = covered.upper_bound(begin);
        if (next != covered.begin() && std::prev(next)->second >= begin) {
            --next;
            begin = next->first;
        }
        while (next != covered.end() && next->first <= module->end) {
            if (from < next->first) {
                module_parts_.emplace(from, std::pair(next->first, &*module));
            }
            from = std::max(from, next->second);
            end = std::max(end, next->second);
            next = covered.erase(next);
        }
        if (from < module->end) {
            module_parts_.emplace(from, std::pair(module->end, &*module));
        }
        covered.emplace(begin, end);
    }
}

ElfSymbols* Symbolizer::elf_of(const Module& module) {
    const auto [entry, is_new] = elves_.try_emplace(module.path + '\0' + module.build_id);
    if (!is_new) {
        return entry->second.get();
    }
    auto elf = std::make_unique<ElfSymbols>(module.path);
    const auto note = [this](std::string text) {
        if (notes_.size() < kMaxNotes) {
            notes_.push_back(std::move(text));
        } else {
            ++notes_left_out_;
        }
    };
    if (!elf->readable()) {
        if (module.path.starts_with('/')) {
            note(fmt::format("{}: {}; its functions are shown as offsets",
                             module.path,
                             elf->refusal().empty() ? "not found here" : elf->refusal()));
        }
        return nullptr;
    }
    if (!module.build_id.empty() && !elf->build_id().empty() &&
        module.build_id != elf->build_id()) {
        note(
            fmt::format("{}: another build than the recorded one (build id {}, recorded {}); its "
                        "functions are shown as offsets",
                        module.path,
                        elf->build_id(),
                        module.build_id));
        return nullptr;
    }
    entry->second = std::move(elf);
    return entry->second.get();
}

}  // namespace fragtrace::analyzer
