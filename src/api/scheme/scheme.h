#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/schema.h"

namespace drakkar::api {

struct GroupVersionKind {
  std::string group;  // "" for core
  std::string version;
  std::string kind;
  bool operator==(const GroupVersionKind&) const = default;
  // "v1" or "resource.k8s.io/v1"
  std::string api_version() const;
};

struct ColumnSchema {
  std::string_view name;
  std::string_view type;    // "string", "integer", "date"
  std::string_view format;  // "name" for the first column
  int priority = 0;         // above 0 only in wide output
  std::string_view description;
};

struct KindSchema;

// What the versions of a custom resource have in common. The API server, which makes such kinds at
// run time, derives from it.
struct KindFamily {
  virtual ~KindFamily() = default;
  std::vector<const KindSchema*> versions;  // all of them, also those that are not served
};

// One kind in one served version: everything generic code needs to serve it. Static data generated
// from schema/, or made at run time from a CustomResourceDefinition; behavior (validation,
// strategy, column values) is registered by the API server.
struct KindSchema {
  std::string_view group;
  std::string_view version;
  std::string_view kind;      // "Pod"
  std::string_view plural;    // "pods"
  std::string_view singular;  // "pod"
  std::span<const std::string_view> short_names;
  std::span<const std::string_view> categories;  // "all"
  bool namespaced = false;
  bool storage_version = true;                     // the version objects of this kind are stored in
  std::span<const std::string_view> subresources;  // "status", "binding" ...
  std::span<const std::string_view> verbs;
  const StructSchema* schema = nullptr;
  std::span<const ColumnSchema> columns;
  std::span<const std::string_view> field_selectors;  // besides metadata.name and .namespace
  // The kind that objects are stored as: this one, another version, or (events) another group. Null
  // for bodies.
  const KindSchema* storage = nullptr;
  bool has_generation = false;  // metadata.generation counts changes outside metadata and status
  FieldRules::Format name_format = FieldRules::Format::kDnsSubdomain;
  const KindFamily* family = nullptr;  // of a custom resource; null for our own kinds

  // "v1" or "resource.k8s.io/v1"
  std::string api_version() const;
  bool is_api_version(std::string_view text) const;  // without making one
};

// All kinds that are resources, in a fixed order.
std::span<const KindSchema> AllKinds();
// Kinds that are only request or response bodies and have no plural, such as lists, Status,
// Eviction, Scale and Table.
std::span<const KindSchema> BodyKinds();

// Resources and bodies; null if there is none.
const KindSchema* FindKind(std::string_view group, std::string_view version, std::string_view kind);
// Resources only.
const KindSchema* FindResource(std::string_view group, std::string_view version,
                               std::string_view plural);
// By "v1" or "group/version", as in an object's apiVersion.
const KindSchema* FindKindByApiVersion(std::string_view api_version, std::string_view kind);

}  // namespace drakkar::api
