#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result/result.h"

namespace drakkar::cdi {

// A parsed file before it means anything: what JSON and YAML have in common.
struct Document {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  // A YAML scalar without quotes: where a string is expected, a number or boolean stands for its
  // text (`name: 0`), as in Go.
  bool is_plain = false;
  std::string text;  // of a string, or the literal of a number
  std::vector<Document> items;
  std::vector<std::pair<std::string, Document>> members;  // keys are unique

  bool operator==(const Document&) const = default;
};

// Bounds of a spec file; anything beyond is refused.
constexpr std::size_t kMaxSpecBytes = 4u << 20;
constexpr int kMaxDocumentDepth = 32;

// One JSON value and nothing else: strict grammar, valid UTF-8, no duplicate keys. Errors say the
// line and column.
Result<Document> ParseJsonDocument(std::string_view text);

// The first document of a YAML stream, in the dialect of Kubernetes' tools (api/codec): what Go's
// CDI library writes by default. No duplicate keys. Errors say the line and column.
Result<Document> ParseYamlDocument(std::string_view text);

}  // namespace drakkar::cdi
