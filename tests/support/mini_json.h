#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A small JSON reader for tests that read cases from files. It accepts valid JSON, keeps the order
// of members and the text of numbers, and is not for production: no limits, no positions.
namespace drakkar::testing {

struct JsonMember;

struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;  // a string's value, or a number as written
  std::vector<Json> items;
  std::vector<JsonMember> members;

  bool IsNull() const { return kind == Kind::kNull; }
  const Json* Find(std::string_view key) const;  // null if this is no object or has no such member
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  // The member, or a null value.
  const Json& operator[](std::string_view key) const;
  std::int64_t AsInt() const;
  double AsDouble() const;
};

struct JsonMember {
  std::string first;
  Json second;
};

std::optional<Json> ParseJson(std::string_view text);

// The directory of the conformance cases ($DRAKKAR_VECTORS, default ../shared/vectors), or nothing
// if it does not exist: the test then skips.
std::optional<std::string> VectorsDirectory();

// Reads and parses a file; aborts the test binary with a message if that fails.
Json ReadJsonFile(const std::string& path);
std::string ReadTextFile(const std::string& path);

}  // namespace drakkar::testing

// Skips the test where there are no vectors.
#define SKIP_WITHOUT_VECTORS(directory)                                                     \
  const std::optional<std::string> directory##_or = ::drakkar::testing::VectorsDirectory(); \
  if (!directory##_or) GTEST_SKIP() << "no conformance vectors: set DRAKKAR_VECTORS";       \
  const std::string& directory = *directory##_or
