// Turns the origins of a timeline into stacks with names, on demand.
//
// Nothing is symbolised before it is asked for; what was looked up is kept. A module that is not
// on this machine, or is another build, gives "module+0xoffset". Not thread-safe.
#pragma once

#include "analyzer/model/timeline.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fragtrace::analyzer {

class ElfSymbols;
struct NativeCall;
struct PythonCall;

class Symbolizer {
  public:
    // The timeline must outlive the symbolizer.
    explicit Symbolizer(const Timeline& timeline);
    ~Symbolizer();
    Symbolizer(const Symbolizer&) = delete;
    Symbolizer& operator=(const Symbolizer&) = delete;

    // The stack, innermost first: native and Python frames as they called each other. Where that is
    // not known (an older recorder, an interpreter that cannot be recognised), native frames up to
    // the interpreter and then the Python frames. The recorder's own frames and the interpreter's
    // are left out. The reference stays valid for thousands of further look-ups.
    const std::vector<Frame>& frames(OriginId origin);

    // The line that the user most likely wants to see: the innermost Python frame outside of
    // libraries and of generated code, else outside of libraries, else the innermost Python frame,
    // else the backward node of an autograd thread, else the innermost native frame that is not
    // plumbing. As "model/net.py:42 forward"; "unknown" without a stack. What the program said of
    // the block follows in quotation marks.
    std::string describe(OriginId origin);

    // What the program said of a block: ` "kv cache"`, shortened; empty if it said nothing.
    [[nodiscard]] std::string label_of(OriginId origin) const;

    // The functions that a return address lies in, inlined ones first; never empty.
    const std::vector<Frame>& native_frames(std::uint64_t return_address);
    // The frame of a Python node.
    [[nodiscard]] Frame python_frame(const StackNode& node) const;

    // Stacks whose native and Python frames did not match, so far: the native ones come first.
    [[nodiscard]] std::uint64_t stacks_without_order() const { return stacks_without_order_; }

    // Code addresses whose function is not known, so far: shown as module and offset.
    // By the name of the module, empty where there is none.
    [[nodiscard]] const std::map<std::string, std::uint64_t>& unnamed_addresses() const {
        return unnamed_addresses_;
    }

    // Modules whose symbols could not be used, so far: one line each, the first few.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

    // How many more such modules there are.
    [[nodiscard]] std::uint64_t notes_left_out() const { return notes_left_out_; }

  private:
    std::vector<Frame> symbolize(const Origin& origin);
    static std::vector<Frame> native_then_python(const std::vector<NativeCall>& native,
                                                 const std::vector<PythonCall>& python);
    std::vector<Frame> look_up(std::uint64_t address);
    [[nodiscard]] const Module* module_at(std::uint64_t address);
    void map_modules();
    ElfSymbols* elf_of(const Module& module);

    const Timeline& timeline_;
    std::uint64_t stack_depth_;          // frames of each kind that the recorder kept
    std::uint64_t evaluator_begin_ = 0;  // of the interpreter, where the recorder found it
    std::uint64_t evaluator_end_ = 0;
    std::uint64_t stacks_without_order_ = 0;
    std::map<std::string, std::uint64_t> unnamed_addresses_;
    std::uint64_t notes_left_out_ = 0;
    std::unordered_map<std::uint64_t, std::vector<Frame>> native_;  // by return address
    std::map<std::string, std::unique_ptr<ElfSymbols>> elves_;      // by path; null = unusable
    // Stacks by (native, Python) node; the oldest are forgotten.
    std::unordered_map<std::uint64_t, std::unique_ptr<std::vector<Frame>>> stacks_;
    std::deque<std::uint64_t> stack_order_;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::string> descriptions_;  // and label
    std::vector<std::string> notes_;
    // Where which module holds: from the key to the first number.
    std::map<std::uint64_t, std::pair<std::uint64_t, const Module*>> module_parts_;
    bool modules_mapped_ = false;
    std::size_t frames_made_ = 0;  // of all stacks so far
};

}  // namespace fragtrace::analyzer
