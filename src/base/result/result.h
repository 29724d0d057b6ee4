#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "base/result/check.h"
#include "base/result/error.h"

namespace drakkar {

// The value of an operation, or why it failed. Like std::expected<T, Error>; accessing the wrong
// side aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit
  // Lets a `return unique_ptr<Derived>` or a `return "literal"` convert in one step.
  template <typename U>
    requires(std::is_constructible_v<T, U> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
             !std::is_same_v<std::remove_cvref_t<U>, Result<T>> &&
             !std::is_same_v<std::remove_cvref_t<U>, Error> && std::is_convertible_v<U, T>)
  Result(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}  // NOLINT

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    CHECK(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    CHECK(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    CHECK(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    CHECK(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& {
    CHECK(!ok());
    return *error_;
  }
  Error&& error() && {
    CHECK(!ok());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

inline Result<void> Ok() {
  return Result<void>();
}

}  // namespace drakkar

#define DRAKKAR_CONCAT_INNER(a, b) a##b
#define DRAKKAR_CONCAT(a, b) DRAKKAR_CONCAT_INNER(a, b)

// Returns from the enclosing function if `expression` is an error.
#define RETURN_IF_ERROR(expression)                                     \
  do {                                                                  \
    auto drakkar_result = (expression);                                 \
    if (!drakkar_result.ok()) return std::move(drakkar_result).error(); \
  } while (false)

// ASSIGN_OR_RETURN(auto x, F()) sets x to the value of F(), or returns its error.
#define ASSIGN_OR_RETURN(declaration, expression) \
  ASSIGN_OR_RETURN_INNER(DRAKKAR_CONCAT(drakkar_result_, __LINE__), declaration, expression)
#define ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                   \
  if (!result.ok()) return std::move(result).error();           \
  declaration = std::move(result).value()
