// A file of the user's rules, which give blocks categories of the user's own: one rule per line,
// with a regular expression. docs/categories.md describes the format.
#pragma once

#include "analyzer/analysis/holders/categories.h"
#include "analyzer/model/pair_map.h"
#include "analyzer/support/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace fragtrace::analyzer {

// What a rule's pattern is searched in.
enum class RuleSubject : std::uint8_t {
    kStack,  // each frame of the stack, as text_of_frame() writes it
    kLabel,  // the program's label for the block
    kKind,   // the name of the built-in category
};

struct CategoryRule {
    std::string name;      // the category
    std::size_t line = 0;  // in the file, from 1
    RuleSubject subject = RuleSubject::kStack;
    std::shared_ptr<const re2::RE2> pattern;

    // Takes time linear in the text, whatever the pattern.
    [[nodiscard]] bool matches(std::string_view text) const;
};

struct CategoryRules {
    std::string file;  // as the user gave it
    // One of the rule files that fragtrace brings. It has rules for more than one program uses.
    bool starter = false;
    std::vector<CategoryRule> rules;
};

inline constexpr std::uint16_t kNoRule = 0xffff;
inline constexpr std::size_t kMostRules = 500;

// `file`: the name of a starter, such as "transformers", or a path. Errors (kInput) name the file,
// the line and the column.
Result<CategoryRules> read_category_rules(const std::string& file);

// `text`: the content of the file.
Result<CategoryRules> parse_category_rules(std::string_view text, const std::string& file);

// The names of the rule files that fragtrace brings.
std::vector<std::string> starter_names();

// "/home/me/model/net.py:42 forward"; a native frame without source file: "/lib/libx.so function".
// Long texts lose their beginning.
std::string text_of_frame(const Frame& frame);

// How often a rule of the file was used on one device.
struct RuleUse {
    bool matched = false;        // it matches a block, which an earlier rule may have taken
    std::uint64_t requests = 0;  // allocations in its category because of it
};

// Finds the rules for blocks. Each node of the stack tree, each frame and each label is matched
// once.
class RuleFinder {
  public:
    // All arguments must outlive this object. `rules` = nullptr: no rule applies to any block.
    RuleFinder(const Timeline& timeline, Symbolizer* symbols, const CategoryRules* rules);

    // The first rule that matches a block with this origin and built-in category; kNoRule if none
    // does. `with_stack` = false ignores the stack.
    std::uint16_t rule_of(OriginId origin, Category kind, bool with_stack = true);

    // The category of a rule; empty for kNoRule.
    [[nodiscard]] std::string_view name_of(std::uint16_t rule) const;

    // One entry per rule. RuleUse::requests is 0.
    [[nodiscard]] std::vector<RuleUse> uses() const;

    // Frames beyond a limit, which only a made-up trace reaches: no rule was tried on them.
    [[nodiscard]] std::uint64_t frames_left_out() const { return frames_left_out_; }

  private:
    std::uint16_t of_node(std::uint32_t node);
    std::uint16_t of_frame(const StackNode& node);
    std::uint16_t of_text(RuleSubject subject, std::string_view text);

    const Timeline& timeline_;
    Symbolizer* symbols_;
    const CategoryRules* rules_;
    std::vector<std::uint16_t> nodes_;               // per node, callers included
    PairMap frames_;                                 // frame and line to rule
    std::map<std::uint32_t, std::uint16_t> labels_;  // by text number
    std::array<std::uint16_t, kCategories> kinds_ = {};
    std::vector<bool> matched_;  // per rule
    std::uint64_t frames_left_out_ = 0;
};

}  // namespace fragtrace::analyzer
