#include "cel/eval/runtime_type.h"

namespace drakkar::cel {
namespace {

constexpr std::uint32_t kEverything = ~std::uint32_t{0};

constexpr std::uint32_t Only(Kind kind) {
  return std::uint32_t{1} << static_cast<unsigned>(kind);
}

}  // namespace

ArgumentGuard GuardFor(const Type& type) {
  switch (type.kind()) {
    case TypeKind::kError:
    case TypeKind::kDyn:
    case TypeKind::kAny:
    case TypeKind::kTypeParam:
      return {kEverything, nullptr, {}};
    case TypeKind::kNull:
      return {Only(Kind::kNull), nullptr, {}};
    case TypeKind::kBool:
      return {Only(Kind::kBool), nullptr, {}};
    case TypeKind::kInt:
      return {Only(Kind::kInt), nullptr, {}};
    case TypeKind::kUint:
      return {Only(Kind::kUint), nullptr, {}};
    case TypeKind::kDouble:
      return {Only(Kind::kDouble), nullptr, {}};
    case TypeKind::kString:
      return {Only(Kind::kString), nullptr, {}};
    case TypeKind::kBytes:
      return {Only(Kind::kBytes), nullptr, {}};
    case TypeKind::kDuration:
      return {Only(Kind::kDuration), nullptr, {}};
    case TypeKind::kTimestamp:
      return {Only(Kind::kTimestamp), nullptr, {}};
    case TypeKind::kList:
      return {Only(Kind::kList), nullptr, {}};
    case TypeKind::kMap:
      return {Only(Kind::kMap), nullptr, {}};
    case TypeKind::kType:
      return {Only(Kind::kType), nullptr, {}};
    case TypeKind::kOpaque:
    case TypeKind::kStruct:
      if (type.IsOptional()) return {Only(Kind::kOptional), nullptr, {}};
      return {Only(Kind::kObject), type.object_id(), type.name()};
  }
  return {};
}

std::string_view GoTypeName(const Value& value) {
  switch (value.kind) {
    case Kind::kNull:
      return "types.Null";
    case Kind::kBool:
      return "types.Bool";
    case Kind::kInt:
      return "types.Int";
    case Kind::kUint:
      return "types.Uint";
    case Kind::kDouble:
      return "types.Double";
    case Kind::kString:
      return "types.String";
    case Kind::kBytes:
      return "types.Bytes";
    case Kind::kDuration:
      return "types.Duration";
    case Kind::kTimestamp:
      return "types.Timestamp";
    case Kind::kType:
      return "*types.Type";
    case Kind::kOptional:
      return "*types.Optional";
    default:
      return TypeName(value);
  }
}

}  // namespace drakkar::cel
