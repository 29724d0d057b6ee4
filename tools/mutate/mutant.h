// Included into every mutated translation unit: selects one of the mutants compiled into the
// program. DRAKKAR_MUTANT is its number; DRAKKAR_MUTANT_COVERAGE names a file with one byte per
// mutant, set to 1 when the mutated code is reached.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <type_traits>
#include <utility>

namespace drakkar_mutant {

inline int ActiveNumber() {
  const char* text = std::getenv("DRAKKAR_MUTANT");
  return text == nullptr ? -1 : std::atoi(text);
}

inline unsigned char* MapCoverage() {
  const char* path = std::getenv("DRAKKAR_MUTANT_COVERAGE");
  if (path == nullptr) return nullptr;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || ::fstat(file, &status) != 0) std::abort();
  const auto size = static_cast<unsigned long>(status.st_size);
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<unsigned char*>(memory);
}

inline bool Reached(int number) {
  static unsigned char* const coverage = MapCoverage();
  static const int active = ActiveNumber();
  if (coverage != nullptr) coverage[number] = 1;
  return active == number;
}

// Whether mutant `number` is active. Never in constant evaluation.
constexpr bool On(int number) {
  if (std::is_constant_evaluated()) return false;
  return Reached(number);
}

template <typename T>
constexpr bool Negate(int number, const T& condition) {
  const bool value = static_cast<bool>(condition);
  return On(number) ? !value : value;
}

#define DRAKKAR_MUTANT_COMPARISON(name, original, mutated)          \
  template <typename A, typename B>                                 \
  constexpr auto name(int number, const A& a, const B& b) {         \
    using Answer = decltype(a original b);                          \
    return On(number) ? Answer(a mutated b) : Answer(a original b); \
  }
DRAKKAR_MUTANT_COMPARISON(Less, <, <=)
DRAKKAR_MUTANT_COMPARISON(LessEqual, <=, <)
DRAKKAR_MUTANT_COMPARISON(Greater, >, >=)
DRAKKAR_MUTANT_COMPARISON(GreaterEqual, >=, >)
DRAKKAR_MUTANT_COMPARISON(Equal, ==, !=)
DRAKKAR_MUTANT_COMPARISON(NotEqual, !=, ==)
#undef DRAKKAR_MUTANT_COMPARISON

// Handles std::all_of and std::ranges::all_of, distinguished by their arguments.
#define DRAKKAR_MUTANT_QUANTIFIER(name, original, mutated)                           \
  template <typename First, typename... Rest>                                        \
  constexpr bool name(int number, First&& first, Rest&&... rest) {                   \
    if constexpr (requires { std::begin(first); }) {                                 \
      return On(number) ? std::ranges::mutated(first, std::forward<Rest>(rest)...)   \
                        : std::ranges::original(first, std::forward<Rest>(rest)...); \
    } else {                                                                         \
      return On(number) ? std::mutated(first, std::forward<Rest>(rest)...)           \
                        : std::original(first, std::forward<Rest>(rest)...);         \
    }                                                                                \
  }
DRAKKAR_MUTANT_QUANTIFIER(AllOf, all_of, any_of)
DRAKKAR_MUTANT_QUANTIFIER(AnyOf, any_of, all_of)
DRAKKAR_MUTANT_QUANTIFIER(NoneOf, none_of, any_of)
#undef DRAKKAR_MUTANT_QUANTIFIER

}  // namespace drakkar_mutant
