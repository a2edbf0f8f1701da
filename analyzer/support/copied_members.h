// Member types for classes with compiler-generated copy operations.
#pragma once

#include <memory>
#include <utility>

namespace fragtrace::analyzer {

// Owns an object. A copy owns a clone() of the object. Never empty, unless it was moved from.
template <typename T>
class ClonePtr {
  public:
    explicit ClonePtr(std::unique_ptr<T> object) : object_(std::move(object)) {}

    ClonePtr(const ClonePtr& other) : object_(other.object_->clone()) {}

    ClonePtr(ClonePtr&&) noexcept = default;

    ClonePtr& operator=(ClonePtr other) noexcept {
        object_ = std::move(other.object_);
        return *this;
    }

    ~ClonePtr() = default;

    T& operator*() const { return *object_; }

    T* operator->() const { return object_.get(); }

  private:
    std::unique_ptr<T> object_;
};

// A value that is not copied: a copy has a new, default value.
template <typename T>
class NotCopied {
  public:
    NotCopied() = default;

    NotCopied(const NotCopied& /*other*/) {}

    NotCopied& operator=(const NotCopied& /*other*/) { return *this; }

    ~NotCopied() = default;

    T& operator*() { return value_; }

    T* operator->() { return &value_; }

  private:
    T value_{};
};

}  // namespace fragtrace::analyzer
