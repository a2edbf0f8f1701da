// Which kind of memory a block is, by who asked for it and how long such blocks live. The rules
// are two tables in categories.cpp and nowhere else; docs/metrics.md, Holders, prints them.
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

// "optimizer state"; with '_' in JSON.
std::string_view category_name(Category category);

// What the frames of a stack say, as bits.
enum StackMark : std::uint16_t {
    kMarkOptimizer = 1,
    kMarkBackward = 2,
    kMarkModuleMade = 4,    // a module is made, moved or loaded
    kMarkModuleCalled = 8,  // or its forward runs
    kMarkWorkspace = 16,
    kMarkLibrary = 32,
    kMarkCopied = 64,    // Tensor.cuda, Tensor.to
    kMarkClosure = 128,  // what an optimizer calls back
};

// The marks of stacks, looked up once per node of the stack tree.
class StackMarks {
  public:
    // Both must outlive this; the symbolizer's notes will tell of the addresses asked for here.
    StackMarks(const Timeline& timeline, Symbolizer* symbols);

    // StackMark bits of an origin's frames; 0 when it has none.
    std::uint16_t of(OriginId origin);

  private:
    std::uint16_t of_node(std::uint32_t node);
    std::uint16_t of_frame(const StackNode& node);

    const Timeline& timeline_;
    Symbolizer* symbols_;
    std::vector<std::uint16_t> marks_;  // per node, its callers included; kNotKnown = to be found
};

// How long blocks of a stack lived, as far as their fate is decided.
struct StackHistory {
    std::uint16_t marks = 0;
    std::uint64_t requests = 0;
    // A pass: requests of one kind (backward, optimizer, other) without one of another kind
    // between.
    std::uint64_t ended_in_pass = 0;
    std::uint64_t outlived_pass = 0;
    std::uint64_t ended_in_iteration = 0;
    std::uint64_t outlived_iteration = 0;
};

Category category_of(const StackHistory& stack);

}  // namespace fragtrace::analyzer
