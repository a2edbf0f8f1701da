// Names for addresses of this test program.
#include "analyzer/trace/symbols.h"

#include "analyzer/analysis/analysis.h"
#include "analyzer/trace/describe_event.h"
#include "analyzer/trace/elf_symbols.h"
#include "analyzer/trace/mixed_stack.h"
#include "analyzer/trace/stack_limit.h"
#include "analyzer/trace/user_frame.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <dlfcn.h>
#include <link.h>

using namespace fragtrace;
using namespace fragtrace::analyzer;

extern "C" std::uint64_t fragtrace_without_aranges();   // without_aranges.cpp
extern "C" unsigned long fragtrace_written_by_clang();  // written_by_clang.s

namespace symbols_test {

[[gnu::noinline]] std::uint64_t here() {
    return reinterpret_cast<std::uint64_t>(
        __builtin_extract_return_addr(__builtin_return_address(0)));
}

[[gnu::noinline]] std::uint64_t somewhere_known(int) {
    const std::uint64_t address = here();
    asm volatile("" ::: "memory");
    return address;
}

// Two functions. The first one ends with a call, as if its last call never returned.
asm(R"(
    .text
    .type fragtrace_ends_with_a_call, @function
fragtrace_ends_with_a_call:
    nop
    call fragtrace_behind_the_call
    .size fragtrace_ends_with_a_call, . - fragtrace_ends_with_a_call
    .globl fragtrace_behind_the_call
    .type fragtrace_behind_the_call, @function
fragtrace_behind_the_call:
    nop
    ret
    .size fragtrace_behind_the_call, . - fragtrace_behind_the_call
)");
extern "C" const char fragtrace_behind_the_call[];

}  // namespace symbols_test

namespace {

Module own_module() {
    Module module;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            auto* found = static_cast<Module*>(data);
            found->bias = info->dlpi_addr;
            for (int i = 0; i < info->dlpi_phnum; ++i) {
                const auto& header = info->dlpi_phdr[i];
                if (header.p_type == PT_LOAD && (header.p_flags & PF_X) != 0) {
                    found->begin = info->dlpi_addr + header.p_vaddr;
                    found->end = found->begin + header.p_memsz;
                }
            }
            return 1;  // the program itself is the first entry
        },
        &module);
    module.path = "/proc/self/exe";
    return module;
}

// The library that contains an address.
Module module_at(const void* address) {
    Dl_info info = {};
    REQUIRE(dladdr(address, &info) != 0);
    Module module;
    module.begin = reinterpret_cast<std::uint64_t>(info.dli_fbase);
    module.end = module.begin + (64 << 20);
    module.bias = module.begin;
    module.path = info.dli_fname;
    return module;
}

struct Stacks {
    Timeline timeline;

    Stacks() {
        timeline.nodes.push_back({});
        timeline.origins.push_back({});
    }

    std::uint32_t native(std::uint32_t parent, std::uint64_t address) {
        timeline.nodes.push_back({parent, 0, address});
        return static_cast<std::uint32_t>(timeline.nodes.size() - 1);
    }

    std::uint32_t python(std::uint32_t parent,
                         const std::string& function,
                         const std::string& file,
                         std::uint32_t line) {
        const std::uint64_t code = timeline.codes.size();
        timeline.codes.push_back({function, file, 1});
        timeline.nodes.push_back({parent, line, kPythonFrame | code << 32});
        return static_cast<std::uint32_t>(timeline.nodes.size() - 1);
    }

    OriginId origin(std::uint32_t native_node, std::uint32_t python_node) {
        timeline.origins.push_back({1, native_node, python_node});
        return static_cast<OriginId>(timeline.origins.size() - 1);
    }
};

Frame native_frame(const std::string& function, const std::string& module) {
    return {Frame::Kind::kNative, function, {}, 0, module};
}

}  // namespace

TEST_CASE("a return address gets its function, file and line", "[symbols]") {
    Stacks stacks;
    stacks.timeline.modules.push_back(own_module());
    const std::uint64_t address = symbols_test::somewhere_known(0);
    const OriginId origin = stacks.origin(stacks.native(0, address), 0);
    Symbolizer symbols(stacks.timeline);
    const auto& frames = symbols.frames(origin);
    REQUIRE(frames.size() == 1);
    CHECK(frames[0].function == "symbols_test::somewhere_known(int)");
    CHECK(frames[0].file.find("symbols_test.cpp") != std::string::npos);
    CHECK(frames[0].line > 20);
    CHECK(frames[0].line < 35);
    CHECK(symbols.describe(origin).find("symbols_test::somewhere_known") != std::string::npos);
}

TEST_CASE("lines are found without .debug_aranges, as in files written by clang", "[symbols]") {
    const std::uint64_t address = fragtrace_without_aranges();
    Stacks stacks;
    stacks.timeline.modules.push_back(module_at(reinterpret_cast<void*>(address)));
    const OriginId origin = stacks.origin(stacks.native(0, address), 0);
    Symbolizer symbols(stacks.timeline);
    const auto& frames = symbols.frames(origin);
    REQUIRE(frames.size() == 1);
    CHECK(frames[0].function == "fragtrace_without_aranges");
    CHECK(frames[0].file.find("without_aranges.cpp") != std::string::npos);
    CHECK(frames[0].line == 12);
}

TEST_CASE("lines and inlined functions are found within clang's namespaces", "[symbols]") {
    const std::uint64_t address = fragtrace_written_by_clang();
    Stacks stacks;
    stacks.timeline.modules.push_back(module_at(reinterpret_cast<void*>(address)));
    const OriginId origin = stacks.origin(stacks.native(0, address), 0);
    Symbolizer symbols(stacks.timeline);
    const auto& frames = symbols.frames(origin);
    REQUIRE(frames.size() == 3);
    CHECK(frames[0].function == "written_by_clang::through()");
    CHECK(frames[1].function == "written_by_clang::where()");
    CHECK(frames[2].function == "fragtrace_written_by_clang");
    for (const Frame& frame : frames) {
        CHECK(frame.file.find("in_namespace.cpp") != std::string::npos);
    }
    CHECK(frames[0].line == 3);
    CHECK(frames[1].line == 4);
    CHECK(frames[2].line == 6);
}

TEST_CASE("a call at the end of a function does not belong to the next", "[symbols]") {
    Stacks stacks;
    stacks.timeline.modules.push_back(own_module());
    const auto address = reinterpret_cast<std::uint64_t>(symbols_test::fragtrace_behind_the_call);
    const OriginId origin = stacks.origin(stacks.native(0, address), 0);
    Symbolizer symbols(stacks.timeline);
    REQUIRE(symbols.frames(origin).size() == 1);
    CHECK(symbols.frames(origin)[0].function == "fragtrace_ends_with_a_call");
}

TEST_CASE("a library function is found in the dynamic symbols", "[symbols]") {
    Stacks stacks;
    void* function = dlsym(RTLD_DEFAULT, "hsearch_r");  // a function that no sanitizer replaces
    stacks.timeline.modules.push_back(module_at(function));
    const auto address = reinterpret_cast<std::uint64_t>(function) + 1;
    const OriginId origin = stacks.origin(stacks.native(0, address), 0);
    Symbolizer symbols(stacks.timeline);
    REQUIRE(symbols.frames(origin).size() == 1);
    CHECK(symbols.frames(origin)[0].function.find("hsearch_r") != std::string::npos);
}

TEST_CASE("an address without a name is shown as module and offset", "[symbols]") {
    Stacks stacks;
    Module module;
    module.begin = 0x10000;
    module.end = 0x20000;
    module.bias = 0x10000;
    SECTION("the file does not exist") {
        module.path = "/nowhere/libgone.so.1";
    }
    SECTION("the file is of another build") {
        module = own_module();
        module.begin = module.bias = 0x10000;
        module.end = 0x20000;
        module.build_id = "00112233";
    }
    stacks.timeline.modules.push_back(module);
    const OriginId known = stacks.origin(stacks.native(0, 0x10124), 0);
    const OriginId outside = stacks.origin(stacks.native(0, 0x90001), 0);
    Symbolizer symbols(stacks.timeline);
    const std::string name = module.path.substr(module.path.rfind('/') + 1);
    CHECK(symbols.frames(known).at(0).function == name + "+0x123");
    CHECK(symbols.frames(outside).at(0).function == "0x90000");
    CHECK(symbols.notes().size() == 1);
    CHECK(symbols.notes_left_out() == 0);
    CHECK(symbols.unnamed_addresses() == std::map<std::string, std::uint64_t>{{"", 1}, {name, 1}});
    CHECK(symbols.frames(0).empty());
    CHECK(symbols.describe(0) == "unknown");
}

TEST_CASE("modules without symbols are counted, the first few are named", "[symbols]") {
    Stacks stacks;
    std::uint32_t node = 0;
    for (std::uint64_t i = 1; i <= 23; ++i) {
        Module module;
        module.begin = module.bias = i * 0x10000;
        module.end = module.begin + 0x1000;
        module.path = "/nowhere/lib" + std::to_string(i) + ".so";
        stacks.timeline.modules.push_back(module);
        node = stacks.native(node, module.begin + 1);
    }
    const OriginId origin = stacks.origin(node, 0);
    Symbolizer symbols(stacks.timeline);
    CHECK(symbols.frames(origin).size() == 23);
    CHECK(symbols.notes().size() == 20);
    CHECK(symbols.notes_left_out() == 3);
    CHECK(symbols.unnamed_addresses().size() == 23);
    CHECK(symbols.unnamed_addresses().at("lib7.so") == 1);
}

TEST_CASE("events whose stacks reach the frame limit are counted", "[symbols]") {
    Stacks stacks;
    stacks.timeline.facts["options.stack_depth"] = "3";
    std::uint32_t native = stacks.native(0, 0x1001);
    native = stacks.native(native, 0x1002);
    const OriginId whole = stacks.origin(native, stacks.python(0, "main", "main.py", 1));
    const OriginId native_cut = stacks.origin(stacks.native(native, 0x1003), 0);
    std::uint32_t python = stacks.python(0, "a", "main.py", 1);
    python = stacks.python(python, "b", "main.py", 2);
    const OriginId python_cut = stacks.origin(native, stacks.python(python, "c", "main.py", 3));
    CHECK(stack_depth_limit(stacks.timeline) == 3);
    const CutStacks at_most_3(stacks.timeline);
    CHECK_FALSE(at_most_3.contains(whole));
    CHECK(at_most_3.contains(native_cut));
    CHECK(at_most_3.contains(python_cut));
    stacks.timeline.facts["options.stack_depth"] = "4";
    const CutStacks at_most_4(stacks.timeline);
    CHECK_FALSE(at_most_4.contains(native_cut));
    CHECK_FALSE(at_most_4.contains(python_cut));
}

TEST_CASE("Python frames replace the interpreter's native frames", "[symbols]") {
    Stacks stacks;
    const auto add_module = [&](std::uint64_t begin, const std::string& path) {
        Module module;
        module.begin = module.bias = begin;
        module.end = begin + 0x1000;
        module.path = path;
        stacks.timeline.modules.push_back(module);
    };
    add_module(0x1000, "/nowhere/python3.11");
    add_module(0x2000, "/nowhere/libtorch_python.so");
    add_module(0x3000, "/nowhere/libfragtrace.so");
    add_module(0x4000, "/nowhere/libc10_cuda.so");
    std::uint32_t native = stacks.native(0, 0x1101);
    native = stacks.native(native, 0x1201);
    native = stacks.native(native, 0x2101);
    native = stacks.native(native, 0x4101);
    native = stacks.native(native, 0x3101);
    native = stacks.native(native, 0x3201);
    std::uint32_t python = stacks.python(0, "main", "/home/user/train.py", 90);
    python = stacks.python(python, "forward", "/home/user/model/net.py", 42);
    python = stacks.python(
        python, "forward", "/usr/lib/python3/site-packages/torch/nn/modules/linear.py", 114);
    const OriginId origin = stacks.origin(native, python);
    Symbolizer symbols(stacks.timeline);
    std::vector<std::string> names;
    for (const Frame& frame : symbols.frames(origin)) {
        names.push_back(frame.function);
    }
    CHECK(names ==
          std::vector<std::string>{
              "libc10_cuda.so+0x100", "libtorch_python.so+0x100", "forward", "forward", "main"});
    CHECK(symbols.describe(origin) == "model/net.py:42 forward");
    CHECK(pick_user_frame(symbols.frames(origin))->line == 42);
}

TEST_CASE("native and Python frames are in the order of their calls", "[symbols]") {
    const auto named = [](const std::string& function, const std::string& module) {
        return std::vector<Frame>{native_frame(function, module)};
    };
    const auto alloc = named("cudaMalloc", "/x/libcudart.so.12");
    const auto evaluator = named("_PyEval_EvalFrameDefault.cold", "/usr/bin/python3.12");
    const auto call = named("PyObject_Call", "/usr/bin/python3.12");
    const auto extension = named("solve", "/x/solver.so");
    const auto start = named("__libc_start_main", "/x/libc.so.6");
    const std::vector<NativeCall> native = {{&alloc, false},
                                            {&call, false},
                                            {&evaluator, true},
                                            {&extension, false},
                                            {&call, false},
                                            {&evaluator, true},
                                            {&call, false},
                                            {&start, false}};
    const auto python = [](const std::string& function, bool entry) {
        return PythonCall{{Frame::Kind::kPython, function, "a.py", 1, {}}, entry};
    };
    const std::vector<PythonCall> calls = {python("callback", true),
                                           python("step", false),
                                           python("main", false),
                                           python("<module>", true)};
    const auto names = [](const std::optional<std::vector<Frame>>& frames) {
        std::string text;
        for (const Frame& frame : frames.value()) {
            text += (text.empty() ? "" : " ") + frame.function;
        }
        return text;
    };
    CHECK(names(mix_stacks(native, false, calls, false)) ==
          "cudaMalloc callback solve step main <module>");
    // Either stack is cut: the remaining frames are in order.
    const std::vector<NativeCall> innermost(native.begin(), native.begin() + 4);
    CHECK(names(mix_stacks(innermost, true, calls, false)) ==
          "cudaMalloc callback solve step main <module>");
    const std::vector<PythonCall> one(calls.begin(), calls.begin() + 1);
    CHECK(names(mix_stacks(native, false, one, true)) == "cudaMalloc callback solve");
    // Neither stack is cut, and they do not match.
    CHECK_FALSE(mix_stacks(innermost, false, calls, false).has_value());
    CHECK_FALSE(mix_stacks(native, false, one, false).has_value());
    CHECK(is_evaluator(evaluator[0]));
    CHECK_FALSE(is_evaluator(named("_PyEval_EvalFrameDefaulted", "/x/python3")[0]));
}

TEST_CASE("the recorder's marks give the frame order, a mismatch is counted", "[symbols]") {
    Stacks stacks;
    stacks.timeline.facts["python.evaluator"] = "4096 256";  // 0x1000
    const auto add_module = [&](std::uint64_t begin, const std::string& path) {
        Module module;
        module.begin = module.bias = begin;
        module.end = begin + 0x1000;
        module.path = path;
        stacks.timeline.modules.push_back(module);
    };
    add_module(0x1000, "/nowhere/python3.12");
    add_module(0x2000, "/nowhere/solver.so");
    std::uint32_t native = stacks.native(0, 0x1010);
    native = stacks.native(native, 0x2101);
    const std::uint32_t half = native;
    native = stacks.native(native, 0x1100);  // after a call that ends the evaluator
    native = stacks.native(native, 0x2201);
    std::uint32_t python = stacks.python(0, "main", "train.py", 90);
    stacks.timeline.nodes.back().frame |= kPythonEntry;
    python = stacks.python(python, "callback", "train.py", 7);
    stacks.timeline.nodes.back().frame |= kPythonEntry;
    const OriginId whole = stacks.origin(native, python);
    const OriginId mismatch = stacks.origin(half, python);
    Symbolizer symbols(stacks.timeline);
    const auto names = [&](OriginId origin) {
        std::string text;
        for (const Frame& frame : symbols.frames(origin)) {
            text += (text.empty() ? "" : " ") + frame.function;
        }
        return text;
    };
    CHECK(names(whole) == "solver.so+0x200 callback solver.so+0x100 main");
    CHECK(symbols.stacks_without_order() == 0);
    CHECK(names(mismatch) == "solver.so+0x100 callback main");
    CHECK(symbols.stacks_without_order() == 1);

    Analysis analysis;
    analysis.timeline = stacks.timeline;
    analysis.symbols = std::make_unique<Symbolizer>(analysis.timeline);
    CHECK_FALSE(analysis.symbols->frames(whole).empty());
    const auto says_order_is_unknown = [&analysis] {
        const std::vector<std::string> lines = warnings_with_stacks(analysis);
        return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
            return line.starts_with("1 stack: the order of native");
        });
    };
    CHECK_FALSE(says_order_is_unknown());
    CHECK_FALSE(analysis.symbols->frames(mismatch).empty());
    CHECK(says_order_is_unknown());
    // The report names the modules that are not on this machine and the number of functions without
    // a name.
    const std::vector<std::string> lines = warnings_with_stacks(analysis);
    REQUIRE(lines.size() >= 3);
    CHECK(lines[1].ends_with("not found here; its functions are shown as offsets"));
    CHECK(lines.back().ends_with("have no function name: 2 in python3.12, 2 in solver.so"));
}

TEST_CASE("an event is printed as one line that can be searched", "[symbols]") {
    Stacks stacks;
    stacks.timeline.streams = {0xab};
    stacks.timeline.facts["text.3"] = "epoch 1";
    Event event = {};
    event.time_ns = 1'500'000'000;
    event.kind = EventKind::kBlockAlloc;
    event.address = 0x7f00;
    event.size_bytes = kUnknown64;
    event.extra = 512;
    event.device = 1;
    event.origin = stacks.origin(0, stacks.python(0, "f", "a.py", 3));
    stacks.timeline.events.push_back(event);
    event = {};
    event.kind = EventKind::kRangeBegin;
    event.size_bytes = 3;
    event.extra = static_cast<std::uint64_t>(RangeKind::kNvtx);
    event.stream = kNoStream;
    event.device = kMaxDevices;
    stacks.timeline.events.push_back(event);
    event.address = 7;
    event.extra = 99;
    stacks.timeline.events.push_back(event);
    Symbolizer symbols(stacks.timeline);
    CHECK(describe_event(stacks.timeline, 0, &symbols) ==
          "0 1.500000000 gpu1 block_alloc address=0x7f00 requested=unknown bytes=512 stream=0xab "
          "thread=1 | a.py:3 f");
    CHECK(describe_event(stacks.timeline, 1, nullptr) ==
          "1 0.000000000 gpu? range_begin text=\"epoch 1\" kind=nvtx");
    CHECK(describe_event(stacks.timeline, 2, nullptr) ==
          "2 0.000000000 gpu? range_begin text=\"epoch 1\" kind=other range=7");
}
