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

// One object of a manifest, as written.
struct ManifestObject {
  std::string source;  // "pod.yaml: document 2, line 7"
  const api::KindSchema* kind = nullptr;
  api::TreePtr tree;
};

// What could be read, and a sentence for each thing that could not.
struct Manifests {
  std::vector<ManifestObject> objects;
  std::vector<Error> problems;
  std::vector<std::string> warnings;
};

struct ManifestOptions {
  bool recursive = false;
  // What happens to fields that the kind does not have.
  api::Strictness strictness = api::Strictness::kStrict;
};

// Files, directories (their *.yaml, *.yml and *.json) and "-" for standard input.
Manifests ReadManifests(Console& console, const std::vector<std::string>& paths,
                        const ManifestOptions& options);

// One stream of YAML or JSON documents; lists are taken apart. `name` is what errors start with.
Manifests ParseManifests(std::string_view text, std::string_view name, api::Strictness strictness);

// The line, from 1, of a field such as `spec.containers[0].image` in one YAML or JSON document:
// that of the deepest part of the path which is found. For people, not for machines.
std::size_t FindFieldLine(std::string_view document, std::string_view path);

}  // namespace drakkar::cli
