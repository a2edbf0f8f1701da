// Rule files for the user's own categories: the format, its errors, and which rule a block gets.
#include "analyzer/analysis/holders/category_rules.h"

#include "analyzer/analysis/holders/holders.h"
#include "analyzer/support/units.h"
#include "tests/unit/iterations/made_up_run.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace fragtrace;
using namespace fragtrace::analyzer;
using fragtrace::testing::MadeUpRun;

namespace {

CategoryRules parsed(const std::string& text) {
    auto rules = parse_category_rules(text, "my.rules");
    INFO((rules ? "" : rules.error().message));
    REQUIRE(rules);
    return std::move(rules).value();
}

std::string error_of(const std::string& text) {
    const auto rules = parse_category_rules(text, "my.rules");
    REQUIRE_FALSE(rules);
    CHECK(rules.error().code == ErrorCode::kInput);
    CHECK(rules.error().message.find('\n') == std::string::npos);
    return rules.error().message;
}

// The fact "text.N" of a label.
OriginId labelled(MadeUpRun* run, OriginId origin, std::uint32_t number, const std::string& label) {
    run->timeline.facts["text." + std::to_string(number)] = label;
    Origin with = run->timeline.origins[origin];
    with.label = number;
    run->timeline.origins.push_back(with);
    return static_cast<OriginId>(run->timeline.origins.size() - 1);
}

std::string category(const MadeUpRun& run, const CategoryRules& rules, OriginId origin) {
    Symbolizer symbols(run.timeline);
    RuleFinder finder(run.timeline, &symbols, &rules);
    return std::string(finder.name_of(finder.rule_of(origin, Category::kOther)));
}

}  // namespace

TEST_CASE("a rule file has one rule per line, with blank lines and comments between them") {
    const CategoryRules rules = parsed(
        "\xef\xbb\xbf# my rules\r\n"
        "\n"
        "  kv cache :  label   ^kv \r\n"
        "\t# indented comment\n"
        "attention: stack #\\d: x\n"
        "w\xc3\xa4rme: kind ^gradients$");
    REQUIRE(rules.rules.size() == 3);
    CHECK(rules.file == "my.rules");
    CHECK_FALSE(rules.starter);
    CHECK(rules.rules[0].name == "kv cache");
    CHECK(rules.rules[0].line == 3);
    CHECK(rules.rules[0].subject == RuleSubject::kLabel);
    CHECK(rules.rules[0].matches("kv 3"));
    CHECK_FALSE(rules.rules[0].matches("my kv"));
    CHECK(rules.rules[1].subject == RuleSubject::kStack);
    CHECK(rules.rules[1].matches("a #7: x b"));
    CHECK(rules.rules[2].name == "w\xc3\xa4rme");
    CHECK(rules.rules[2].subject == RuleSubject::kKind);
}

TEST_CASE("an error in a rule file names file, line and column, and says what to do") {
    CHECK(error_of("a: label x\nkv cache label x") ==
          "my.rules: line 2, column 1: a rule is NAME: stack|label|kind PATTERN");
    CHECK(error_of(" : label x") ==
          "my.rules: line 1, column 2: the category has no name before the colon");
    CHECK(
        error_of("kv cache: stak x") ==
        "my.rules: line 1, column 11: after the colon comes stack, label or kind, not 'stak', then "
        "the pattern");
    CHECK(
        error_of("kv cache:") ==
        "my.rules: line 1, column 9: after the colon comes stack, label or kind, then the pattern");
    CHECK(error_of("kv cache: label ") ==
          "my.rules: line 1, column 11: the pattern is missing; '.' matches everything");
    CHECK(
        error_of("kv: label ab[cd") ==
        "my.rules: line 1, column 13: the pattern is not valid: missing ]: [cd; write \\ before a "
        "character that stands for itself");
    CHECK(error_of("kv: label a(?=b)") ==
          "my.rules: line 1, column 12: the pattern is not valid: invalid perl operator: (?=; "
          "patterns have RE2's syntax, without look-ahead and back-references");
    CHECK(error_of("kv: label (a)\\1").find("without look-ahead and back-references") !=
          std::string::npos);
    CHECK(error_of("kv: label ((a{1000}){1000}){1000}").find("use smaller repetitions") !=
          std::string::npos);
    CHECK(error_of("kv: label \xff\xfe").find("column 11: the pattern is not valid") !=
          std::string::npos);
    CHECK(error_of(std::string("kv: label x\nPK\x03\x04\0\0", 18)) ==
          "my.rules: line 2, column 3: not text (byte 0x03); give a text file with one rule per "
          "line");
    CHECK(error_of("# only a comment\n") ==
          "my.rules: no rules; a rule is a line such as 'kv cache: label ^kv'");
    CHECK(error_of(std::string(61, 'n') + ": label x").find("longer than 60 bytes") !=
          std::string::npos);
}

TEST_CASE("a rule file has at most 500 rules") {
    std::string text;
    for (std::size_t i = 0; i < kMostRules; ++i) {
        text += "a: label x\n";
    }
    CHECK(parsed(text).rules.size() == kMostRules);
    CHECK(error_of(text + "a: label x\n") ==
          "my.rules: line 501: more than 500 rules; join patterns with |");
}

TEST_CASE("the first rule that matches counts, whatever it looks at") {
    MadeUpRun run;
    const std::uint32_t outer = run.frame(0, "/home/me/model.py", "Block.forward");
    const OriginId attention =
        run.origin(run.frame(outer, "/home/me/model.py", "Attention.forward"));
    const OriginId other = run.line("load");
    const OriginId named = labelled(&run, attention, 7, "kv cache 3");
    const CategoryRules rules = parsed(
        "kv cache: label ^kv cache\n"
        "attention: stack model\\.py:1 Attention\\.\n"
        "blocks: stack Block\\.forward$\n"
        "rest: kind ^other$\n");
    CHECK(category(run, rules, named) == "kv cache");
    CHECK(category(run, rules, attention) == "attention");
    CHECK(category(run, rules, run.origin(outer)) == "blocks");
    CHECK(category(run, rules, other) == "rest");
    CHECK(category(run, parsed("blocks: stack Block\nkv cache: label kv"), named) == "blocks");
    CHECK(category(run, parsed("kv cache: label ^kv$"), named).empty());
    // A made-up origin, and one that the trace does not have.
    CHECK(category(run, rules, 0) == "rest");
    CHECK(category(run, rules, 4711) == "rest");
}

TEST_CASE("stacks are matched frame by frame, as file, line and function") {
    CHECK(text_of_frame({.kind = Frame::Kind::kPython,
                         .function = "Net.forward",
                         .file = "C:\\me\\net.py",
                         .line = 42,
                         .module = {}}) == "C:/me/net.py:42 Net.forward");
    CHECK(text_of_frame({.kind = Frame::Kind::kNative,
                         .function = "cublasCreate",
                         .file = {},
                         .line = 0,
                         .module = "/lib/libcublas.so"}) == "/lib/libcublas.so cublasCreate");
    const std::string text = text_of_frame({.kind = Frame::Kind::kNative,
                                            .function = std::string(100'000, 'f') + "end",
                                            .file = {},
                                            .line = 0,
                                            .module = "/lib/libx.so"});
    CHECK(text.size() == 1024);
    CHECK(text.ends_with("ffend"));
}

TEST_CASE("a pattern that other engines take for ever with ends at once") {
    MadeUpRun run;
    const OriginId origin = run.line(std::string(1000, 'a') + "!");
    CHECK(category(
              run, parsed("bad: stack (a+)+$\nbad: stack (a|aa)+$\nbad: stack (.*a){20}$"), origin)
              .empty());
}

TEST_CASE("rules say whether they matched and how many allocations they took") {
    MadeUpRun run;
    const OriginId cache = run.line("grow_cache");
    const OriginId batch = run.line("load");
    for (int i = 0; i < 3; ++i) {
        run.alloc(cache, kMiB);
    }
    run.alloc(batch, kMiB);
    const CategoryRules rules = parsed(
        "cache: stack cache\n"
        "cache again: stack grow\n"
        "typo: stack kash\n");
    Symbolizer symbols(run.timeline);
    StackMarks marks(run.timeline, &symbols);
    RuleFinder finder(run.timeline, &symbols, &rules);
    RunHistory history = run_history(run.timeline, 0, true, &marks);
    add_user_categories(&finder, &history);
    REQUIRE(history.rule_uses.size() == 3);
    CHECK(history.rule_uses[0].matched);
    CHECK(history.rule_uses[0].requests == 3);
    CHECK(history.rule_uses[1].matched);
    CHECK(history.rule_uses[1].requests == 0);
    CHECK_FALSE(history.rule_uses[2].matched);
    CHECK(finder.frames_left_out() == 0);
}

TEST_CASE("bytes of the user's categories and of the kinds add up to the allocated bytes") {
    MadeUpRun run;
    const OriginId cache = run.line("grow_cache");
    const OriginId named = labelled(&run, cache, 9, "prefix");
    const OriginId batch = run.line("load");
    HeapSnapshot heap;
    const auto hold = [&](EventIndex request, std::uint64_t bytes) {
        HeapBlock block;
        block.size_bytes = bytes;
        block.state = BlockState::kLive;
        block.allocated_by = request;
        heap.blocks.push_back(block);
    };
    hold(run.alloc(cache, 3 * kMiB), 3 * kMiB);
    hold(run.alloc(named, 5 * kMiB), 5 * kMiB);
    hold(run.alloc(batch, 7 * kMiB), 7 * kMiB);
    hold(kNoEvent, 11 * kMiB);
    const CategoryRules rules = parsed("prefix: label prefix\ncache: stack cache");
    Symbolizer symbols(run.timeline);
    StackMarks marks(run.timeline, &symbols);
    RuleFinder finder(run.timeline, &symbols, &rules);
    RunHistory history = run_history(run.timeline, 0, true, &marks);
    add_user_categories(&finder, &history);
    const Holders holders = holders_of(run.timeline, heap, 3, history, &marks, &finder, &symbols);
    REQUIRE(holders.categories.size() == 3);
    CHECK(holders.allocated_bytes == 26 * kMiB);
    CHECK(holders.categories[0].user_category.empty());
    CHECK(holders.categories[0].bytes == 18 * kMiB);
    CHECK(holders.categories[1].user_category == "prefix");
    CHECK(holders.categories[1].bytes == 5 * kMiB);
    CHECK(holders.categories[2].user_category == "cache");
    CHECK(holders.categories[2].bytes == 3 * kMiB);
    REQUIRE(holders.places.size() == 4);
    CHECK(shown_category(holders.places[2]) == "prefix");
}

TEST_CASE("the rule files that fragtrace brings can be read") {
    REQUIRE_FALSE(starter_names().empty());
    for (const std::string& name : starter_names()) {
        const auto rules = read_category_rules(name);
        INFO(name << (rules ? "" : ": " + rules.error().message));
        REQUIRE(rules);
        CHECK(rules->starter);
        CHECK(rules->rules.size() > 5);
    }
    const auto missing = read_category_rules("transformer");
    REQUIRE_FALSE(missing);
    CHECK(missing.error().message ==
          "transformer: no such file; give a file of rules, or the name of rules that fragtrace "
          "brings: transformers");
}
