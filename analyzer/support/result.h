// Result<T>: a value or an Error. The tools report errors in no other way. One place
// (analyzer/commands/run.cpp) turns an Error into text and an exit code.
#pragma once

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace fragtrace::analyzer {

// A closed set of error kinds with their exit codes.
enum class ErrorCode {
    kUsage,       // the command line is wrong: exit 2
    kInput,       // a file is missing, foreign or damaged beyond use: exit 2
    kOutput,      // a result could not be written: exit 2
    kCheckFailed  // a check or threshold failed: exit 1
};

// `message` is one line that says what is wrong, where (file, byte or line) and what to do.
struct [[nodiscard]] Error {
    ErrorCode code = ErrorCode::kInput;
    std::string message;
};

template <typename T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}

    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    [[nodiscard]] bool ok() const { return state_.index() == 0; }

    explicit operator bool() const { return ok(); }

    [[nodiscard]] T& value() & { return std::get<0>(state_); }

    [[nodiscard]] const T& value() const& { return std::get<0>(state_); }

    [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }

    T& operator*() & { return value(); }

    const T& operator*() const& { return value(); }

    T* operator->() { return &value(); }

    const T* operator->() const { return &value(); }

    [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

  private:
    std::variant<T, Error> state_;
};

// The value type of operations that return only success or an error.
struct Ok {};

using Status = Result<Ok>;

}  // namespace fragtrace::analyzer
