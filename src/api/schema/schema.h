#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "api/tree/value.h"

namespace drakkar::api {

enum class FieldKind : std::uint8_t {
  kString,
  kBool,
  kInt32,
  kInt64,
  kDouble,
  kQuantity,   // string in the tree, canonical form; numbers are accepted on input
  kTime,       // RFC 3339, seconds
  kMicroTime,  // RFC 3339, microseconds
  kDuration,   // Go duration text
  kIntOrString,
  kBytes,  // base64 text
  kRaw,    // any JSON, kept byte for byte (RawExtension, FieldsV1)
  kJson,   // any JSON, as a tree
  kStruct,
  kList,
  kMap,                 // object with free keys, sorted
  kSkipNodeOperations,  // true, false, or a list of operations: kept as written
};

// How apply and strategic merge patch treat a list or a map.
enum class MergeKind : std::uint8_t { kAtomic, kSet, kMapList, kGranular };

struct StructSchema;

struct TypeSchema {
  FieldKind kind = FieldKind::kString;
  const StructSchema* structure = nullptr;  // kStruct
  const TypeSchema* element = nullptr;      // kList, kMap
  MergeKind merge = MergeKind::kAtomic;     // server-side apply: x-kubernetes-list-type and friends
  std::span<const std::string_view> list_keys;  // kMapList: the keys of an element
  // Strategic merge patch: the key elements are merged by; empty: the list is replaced.
  std::string_view patch_merge_key;
  bool patch_merge = false;        // patchStrategy has "merge"
  bool patch_retain_keys = false;  // patchStrategy has "retainKeys"
  bool patch_replace = false;      // patchStrategy is "replace": also of objects and maps
};

// What a field becomes when it is missing, and what it may be; checked by the API server. Static
// data, made from the marks in schema/.
struct FieldRules {
  enum class Default : std::uint8_t { kNone, kText, kInteger, kBool, kEmptyObject };
  enum class Format : std::uint8_t {
    kAny,
    kDnsLabel,
    kDnsSubdomain,
    kDns1035Label,
    kLabelKey,
    kLabelValue,
    kIntOrPercent,   // not negative
    kLabelSelector,  // the struct
  };

  Default default_form = Default::kNone;
  std::string_view default_text;
  std::int64_t default_number = 0;  // also 0 or 1 for kBool
  // The default holds only if this sibling has this text; null: always.
  const Key* when_key = nullptr;
  std::string_view when_value;

  bool needed = false;     // neither absent nor empty
  bool immutable = false;  // once the object exists
  std::optional<std::int64_t> minimum;
  std::optional<std::int64_t> maximum;
  std::span<const std::string_view> values;  // one of these; empty: any
  Format format = Format::kAny;
  std::size_t max_items = 0;  // 0: any number
};

struct FieldSchema {
  const Key* key = nullptr;
  TypeSchema type;
  std::uint16_t protobuf_number = 0;
  // On the wire the field lies in a message of its own with this number (Go's inlined structs, such
  // as the sources of a Volume); 0: it does not. Two levels deep, the inner number is in the upper
  // byte.
  std::uint16_t protobuf_outer = 0;
  bool required = false;         // must be in OpenAPI's "required"
  bool omit_empty = true;        // Go leaves it out when it is the zero value
  bool pointer = false;          // Go tells absent from zero, and no list from an empty one
  std::string_view description;  // ours; empty where we have none
  bool has_defaults = false;     // it, or something below it, has a default
  bool has_checks = false;       // likewise for rules that refuse
  const FieldRules* rules = nullptr;
};

struct StructSchema {
  std::string_view name;                // "io.k8s.api.core.v1.PodSpec"
  std::span<const FieldSchema> fields;  // in declaration order
  // What Find looks into, made without collisions at build time: the place in `fields` of the key
  // with a given id is index[(id * index_multiplier) >> index_shift]; 255 is no field.
  // Schemas made by hand leave it out.
  const std::uint8_t* index = nullptr;
  std::uint32_t index_multiplier = 0;
  std::uint32_t index_shift = 0;
  bool preserve_unknown = false;
  // For schemas made at run time, whose names need not be known to the compiler: the place of each
  // name in `fields`. Null for all others.
  const std::unordered_map<std::string_view, std::size_t>* names = nullptr;

  // Null if the struct has no such field.
  const FieldSchema* Find(const Key& key) const;
  const FieldSchema* Find(std::string_view name) const;
};

// By full name, "io.k8s.api.core.v1.PodSpec"; null if there is none.
const StructSchema* FindStruct(std::string_view name);

}  // namespace drakkar::api
