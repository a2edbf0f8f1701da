// An input of the JSON parser that is read byte by byte, so that a file is never in memory as a
// whole.
#pragma once

#include <cstddef>
#include <iterator>

namespace fragtrace::analyzer {

// Source: at_end(), now() and advance(). A default JsonInput is the end.
template <typename Source>
class JsonInput {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = char;

    JsonInput() = default;

    explicit JsonInput(Source* source) : source_(source) {}

    char operator*() const { return source_->now(); }

    JsonInput& operator++() {
        source_->advance();
        return *this;
    }

    JsonInput operator++(int) {
        const JsonInput before = *this;
        ++*this;
        return before;
    }

    // The parser compares only with the end.
    bool operator==(const JsonInput& /*end*/) const {
        return source_ == nullptr || source_->at_end();
    }

  private:
    Source* source_ = nullptr;
};

}  // namespace fragtrace::analyzer
