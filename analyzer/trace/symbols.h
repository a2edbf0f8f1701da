// Turns the origins of a timeline into stacks with names, on demand.
//
// Names are looked up on the first request and cached. A module that is not on this machine, or has
// another build id, gives "module+0xoffset". Not thread-safe.
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

    // The stack, innermost frame first, with native and Python frames in call order. If the call
    // order is not known, the native frames up to the interpreter come first, then the Python
    // frames. That happens with an older recorder or an interpreter that cannot be recognised.
    // Frames of the recorder and the interpreter are left out. The reference stays valid for
    // thousands of further look-ups.
    const std::vector<Frame>& frames(OriginId origin);

    // The line that the user most likely wants to see. The first of these frames that exists:
    // - the innermost Python frame outside of libraries and generated code
    // - the innermost Python frame outside of libraries
    // - the innermost Python frame
    // - the backward node of an autograd thread
    // - the innermost native frame that is not plumbing
    // Format: "model/net.py:42 forward"; "unknown" without a stack. The program's label for the
    // block follows in quotation marks.
    std::string describe(OriginId origin);
    // The same without the label.
    std::string describe_without_label(OriginId origin);

    // The program's label for a block: ` "kv cache"`, shortened; empty if there is none.
    [[nodiscard]] std::string label_of(OriginId origin) const;

    // The functions at a return address, inlined ones first; never empty.
    const std::vector<Frame>& native_frames(std::uint64_t return_address);
    // The frame of a Python node.
    [[nodiscard]] Frame python_frame(const StackNode& node) const;

    // How many stacks so far had native and Python frames that did not match. Their native frames
    // come first.
    [[nodiscard]] std::uint64_t stacks_without_order() const { return stacks_without_order_; }

    // How many code addresses so far had no known function, per module name (empty without a
    // module). They are shown as module and offset.
    [[nodiscard]] const std::map<std::string, std::uint64_t>& unnamed_addresses() const {
        return unnamed_addresses_;
    }

    // One line for each module whose symbols could not be used so far, up to a limit.
    [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

    // The number of such modules beyond that limit.
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
    std::uint64_t stack_depth_;          // limit on frames per stack and kind
    std::uint64_t evaluator_begin_ = 0;  // address of the interpreter's evaluator; 0 = not known
    std::uint64_t evaluator_end_ = 0;
    std::uint64_t stacks_without_order_ = 0;
    std::map<std::string, std::uint64_t> unnamed_addresses_;
    std::uint64_t notes_left_out_ = 0;
    std::unordered_map<std::uint64_t, std::vector<Frame>> native_;  // by return address
    std::map<std::string, std::unique_ptr<ElfSymbols>> elves_;      // by path; null = unusable
    // Stacks by (native, Python) node; the oldest are removed.
    std::unordered_map<std::uint64_t, std::unique_ptr<std::vector<Frame>>> stacks_;
    std::deque<std::uint64_t> stack_order_;
    // Results of describe(); the key is (stacks, label).
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::string> descriptions_;
    std::vector<std::string> notes_;
    // Which module is valid where: each entry maps a first address to its end and its module.
    std::map<std::uint64_t, std::pair<std::uint64_t, const Module*>> module_parts_;
    bool modules_mapped_ = false;
    std::size_t frames_made_ = 0;  // in all stacks so far
};

}  // namespace fragtrace::analyzer
