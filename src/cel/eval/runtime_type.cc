#include "cel/eval/runtime_type.h"

namespace drakkar::cel {
namespace {

bool Matches(const Type& type, const Value& value) {
  switch (type.kind()) {
    case TypeKind::kError:
    case TypeKind::kDyn:
    case TypeKind::kAny:
    case TypeKind::kTypeParam: return true;
    case TypeKind::kNull: return value.kind == Kind::kNull;
    case TypeKind::kBool: return value.kind == Kind::kBool;
    case TypeKind::kInt: return value.kind == Kind::kInt;
    case TypeKind::kUint: return value.kind == Kind::kUint;
    case TypeKind::kDouble: return value.kind == Kind::kDouble;
    case TypeKind::kString: return value.kind == Kind::kString;
    case TypeKind::kBytes: return value.kind == Kind::kBytes;
    case TypeKind::kDuration: return value.kind == Kind::kDuration;
    case TypeKind::kTimestamp: return value.kind == Kind::kTimestamp;
    case TypeKind::kList: return value.kind == Kind::kList;
    case TypeKind::kMap: return value.kind == Kind::kMap;
    case TypeKind::kType: return value.kind == Kind::kType;
    case TypeKind::kOpaque:
    case TypeKind::kStruct:
      if (value.kind == Kind::kOptional) return type.IsOptional();
      if (value.kind != Kind::kObject) return false;
      return value.object->type_id() == type.object_id() ||
             (type.object_id() == nullptr && value.object->type_name() == type.name());
  }
  return false;
}

}  // namespace

bool Accepts(const Overload& overload, std::span<const Value> args) {
  if (overload.args.size() != args.size()) return false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!Matches(*overload.args[i], args[i])) return false;
  }
  return true;
}

std::string_view GoTypeName(const Value& value) {
  switch (value.kind) {
    case Kind::kNull: return "types.Null";
    case Kind::kBool: return "types.Bool";
    case Kind::kInt: return "types.Int";
    case Kind::kUint: return "types.Uint";
    case Kind::kDouble: return "types.Double";
    case Kind::kString: return "types.String";
    case Kind::kBytes: return "types.Bytes";
    case Kind::kDuration: return "types.Duration";
    case Kind::kTimestamp: return "types.Timestamp";
    case Kind::kType: return "*types.Type";
    case Kind::kOptional: return "*types.Optional";
    default: return TypeName(value);
  }
}

}  // namespace drakkar::cel
