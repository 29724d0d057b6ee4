#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/codec/object_reader.h"
#include "api/tree/value.h"
#include "base/result/result.h"
#include "cli/console.h"

namespace drakkar::api {
struct KindSchema;
}

namespace drakkar::cli {

// One object of a manifest, unmodified.
struct ManifestObject {
  std::string source;                     // "pod.yaml: document 2, line 7"
  const api::KindSchema* kind = nullptr;  // null: our schema does not have it
  api::TreePtr tree;
};

// The objects that could be read, and an error for each that could not.
struct Manifests {
  std::vector<ManifestObject> objects;
  std::vector<Error> problems;
  std::vector<std::string> warnings;
};

struct ManifestOptions {
  bool recursive = false;
  // Whether objects of groups that our schema does not have are accepted; the server may know them.
  bool foreign_kinds = false;
  // How to treat unknown fields.
  api::Strictness strictness = api::Strictness::kStrict;
};

// Reads files, directories (*.yaml, *.yml and *.json) and "-" for standard input.
Manifests ReadManifests(Console& console, const std::vector<std::string>& paths,
                        const ManifestOptions& options);

// Reads a stream of YAML or JSON documents and flattens lists. Errors start with `name`.
Manifests ParseManifests(std::string_view text, std::string_view name, api::Strictness strictness,
                         bool foreign_kinds = false);

// The line, counted from 1, of a field such as `spec.containers[0].image` in a YAML or JSON
// document, or of its deepest parent that can be found. Best effort, for error messages.
std::size_t FindFieldLine(std::string_view document, std::string_view path);

}  // namespace drakkar::cli
