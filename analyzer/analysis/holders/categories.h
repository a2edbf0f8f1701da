// The kind of memory that a block is, from the code that requested it and from how long such blocks
// live. The rules are two tables in categories.cpp and nowhere else; docs/metrics.md, Holders,
// prints them.
#pragma once

#include "analyzer/analysis/iterations/requests.h"
#include "analyzer/trace/symbols.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fragtrace::analyzer {

enum class Category : std::uint8_t {
    kParameters,
    kGradients,
    kOptimizerState,
    kActivations,
    kInputs,
    kWorkspaces,
    kTemporaries,
    kLibraries,
    kOther,
};

inline constexpr std::size_t kCategories = 9;

// The name for people, such as "optimizer state". JSON has '_' instead of the blank.
std::string_view category_name(Category category);

// Facts about a stack that follow from its frames, as bits.
enum StackMark : std::uint16_t {
    kMarkOptimizer = 1,
    kMarkBackward = 2,
    kMarkModuleMade = 4,    // a module is created, moved or loaded
    kMarkModuleCalled = 8,  // a module's forward runs
    kMarkWorkspace = 16,
    kMarkLibrary = 32,
    kMarkCopied = 64,    // Tensor.cuda, Tensor.to
    kMarkClosure = 128,  // a function that an optimizer calls back
};

// Computes the marks of stacks, once per node of the stack tree.
class StackMarks {
  public:
    // Both must outlive this object. The symbolizer's notes will include the addresses looked up
    // here.
    StackMarks(const Timeline& timeline, Symbolizer* symbols);

    // StackMark bits of all frames of an origin; 0 if it has no stack.
    std::uint16_t of(OriginId origin);

  private:
    std::uint16_t of_node(std::uint32_t node);
    std::uint16_t of_frame(const StackNode& node);

    const Timeline& timeline_;
    Symbolizer* symbols_;
    std::vector<std::uint16_t> marks_;  // per node, callers included; kNotKnown = not computed yet
};

// How long the blocks of a stack lived. Counts only blocks whose fate is known.
struct StackHistory {
    std::uint16_t marks = 0;
    bool frames_read = true;  // false: `marks` is not known
    std::uint64_t requests = 0;
    // A pass is a sequence of requests of one kind (backward, optimizer, other).
    std::uint64_t ended_in_pass = 0;
    std::uint64_t outlived_pass = 0;
    std::uint64_t ended_in_iteration = 0;
    std::uint64_t outlived_iteration = 0;
};

Category category_of(const StackHistory& stack);

}  // namespace fragtrace::analyzer
