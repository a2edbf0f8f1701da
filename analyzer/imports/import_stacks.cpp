#include "analyzer/imports/import_stacks.h"

#include "analyzer/support/terminal.h"

namespace fragtrace::analyzer {
namespace {

constexpr std::size_t kMostNodes = std::size_t{1} << 22;
constexpr std::size_t kMostTextBytes = std::size_t{64} << 20;

}  // namespace

std::optional<std::uint32_t> ImportStacks::text_number(std::string_view text) {
    std::string name = printable(text.substr(0, kMostNameBytes));
    const auto found = text_numbers_.find(name);
    if (found != text_numbers_.end()) {
        return found->second;
    }
    text_bytes_ += name.size() + sizeof(std::string);
    if (text_bytes_ > kMostTextBytes) {
        return std::nullopt;
    }
    const auto next = static_cast<std::uint32_t>(texts_.size());
    texts_.push_back(name);
    text_numbers_.emplace(std::move(name), next);
    return next;
}

std::uint32_t ImportStacks::frame_number(const PythonCode& code, std::uint32_t line) {
    const auto [found_code, is_new_code] = code_numbers_.try_emplace(
        {code.function, code.file}, static_cast<std::uint32_t>(codes_.size()));
    if (is_new_code) {
        codes_.push_back(code);
    }
    const std::pair frame = {found_code->second, line};
    const auto [found, is_new] =
        frame_numbers_.try_emplace(frame, static_cast<std::uint32_t>(frames_.size()));
    if (is_new) {
        frames_.push_back(frame);
    }
    return found->second;
}

std::uint32_t ImportStacks::stack(std::uint32_t caller, std::uint32_t frame) {
    const auto next = static_cast<std::uint32_t>(nodes_.size() + 1);
    if (nodes_.size() >= kMostNodes) {
        return caller;
    }
    const auto [found, is_new] = children_.try_emplace(std::uint64_t{caller} << 32 | frame, next);
    if (is_new) {
        const auto& [code, line] = frames_[frame];
        nodes_.push_back(
            {.parent = caller, .line = line, .frame = kPythonFrame | std::uint64_t{code} << 32});
    }
    return found->second;
}

}  // namespace fragtrace::analyzer
