#pragma once

#include <cstdint>
#include <string>

#include "api/schema/schema.h"
#include "api/tree/draft.h"
#include "base/env/random.h"
#include "base/hash/base64.h"
#include "base/text/text.h"

namespace drakkar::api {

Draft RandomTyped(const TypeSchema& type, Random& random, int depth);

// An object whose fields have the types of the schema, each present or not; its content is
// meaningless. `depth` limits the nesting.
inline Draft RandomTypedStruct(const StructSchema& structure, Random& random, int depth) {
  Draft object = Draft::Object();
  for (const FieldSchema& field : structure.fields) {
    const bool skip = depth <= 0 && field.type.kind == FieldKind::kStruct;
    if (skip || random.Next() % 3 == 0) continue;
    // A JSON schema has fields of its own in protobuf.
    object.Entry(field.key->view()) = field.key->view() == "openAPIV3Schema"
                                          ? Draft::Raw(R"({"type":"object"})")
                                          : RandomTyped(field.type, random, depth - 1);
  }
  return object;
}

inline Draft RandomTyped(const TypeSchema& type, Random& random, int depth) {
  const auto number = static_cast<std::int64_t>(random.Next() % 9 + 1);
  switch (type.kind) {
    case FieldKind::kBool:
      return Draft(random.Next() % 2 == 0);
    case FieldKind::kInt32:
      return Draft(number > 7 ? -number : number);
    case FieldKind::kInt64:
      return Draft(number > 7 ? number << 40 : number);
    case FieldKind::kDouble:
      return Draft(static_cast<double>(number) + 0.5);
    case FieldKind::kQuantity:
      return Draft(StrCat(number, "Gi"));
    case FieldKind::kTime:
      return Draft("2025-06-07T08:09:10Z");
    case FieldKind::kMicroTime:
      return Draft("2025-06-07T08:09:10.000012Z");
    case FieldKind::kDuration:
      return Draft(StrCat(number, "m0s"));
    case FieldKind::kIntOrString:
      return number > 4 ? Draft(number) : Draft(StrCat(number, "0%"));
    case FieldKind::kBytes:
      return Draft(Base64Encode(StrCat("bytes", number)));
    case FieldKind::kRaw:
    case FieldKind::kJson:
      return Draft::Raw(StrCat("{\"k\":", number, "}"));
    case FieldKind::kSkipNodeOperations:
      if (number > 6) return Draft(true);
      return number > 3 ? Draft(false) : Draft::Array({Draft("*")});
    case FieldKind::kStruct:
      return RandomTypedStruct(*type.structure, random, depth);
    case FieldKind::kList: {
      Draft list = Draft::Array();
      for (std::int64_t i = 0; i < number % 3 && depth > -4; ++i) {
        list.Append(RandomTyped(*type.element, random, depth - 1));
      }
      return list;
    }
    case FieldKind::kMap: {
      Draft map = Draft::Object();
      for (std::int64_t i = 0; i < number % 3 && depth > -4; ++i) {
        map.Entry(StrCat("key", i)) = RandomTyped(*type.element, random, depth - 1);
      }
      return map;
    }
    default:
      return Draft(StrCat("text", number));
  }
}

}  // namespace drakkar::api
