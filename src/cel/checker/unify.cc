#include "cel/checker/unify.h"

namespace drakkar::cel {
namespace {

bool IsEqualOrLessSpecific(const Type& a, const Type& b) {
  if (a.IsDyn() || a.kind() == TypeKind::kTypeParam) return true;
  if (b.IsDyn() || b.kind() == TypeKind::kTypeParam) return false;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case TypeKind::kOpaque:
      if (a.name() != b.name() || a.parameters().size() != b.parameters().size()) return false;
      [[fallthrough]];
    case TypeKind::kList:
    case TypeKind::kMap:
      for (std::size_t i = 0; i < a.parameters().size(); ++i) {
        if (!IsEqualOrLessSpecific(*a.parameter(i), *b.parameter(i))) return false;
      }
      return true;
    case TypeKind::kType:
      return true;
    default:
      return Type::Same(a, b);
  }
}

bool AcceptsNull(const Type& type) {
  switch (type.kind()) {
    case TypeKind::kOpaque:
    case TypeKind::kStruct:
    case TypeKind::kAny:
    case TypeKind::kDuration:
    case TypeKind::kTimestamp:
    case TypeKind::kNull:
      return true;
    default:
      return type.nullable();
  }
}

}  // namespace

TypeRef MoreGeneral(const TypeRef& a, const TypeRef& b) {
  // Null is only assignable to types that admit it.
  if (b->kind() == TypeKind::kNull && AcceptsNull(*a)) return a;
  return IsEqualOrLessSpecific(*a, *b) ? a : b;
}

bool Substitution::Assignable(const TypeRef& to, const TypeRef& from) {
  Map attempt = map_;
  if (!Unify(attempt, to, from)) return false;
  map_ = std::move(attempt);
  return true;
}

bool Substitution::AssignableLists(std::span<const TypeRef> to, std::span<const TypeRef> from) {
  Map attempt = map_;
  if (!UnifyLists(attempt, to, from)) return false;
  map_ = std::move(attempt);
  return true;
}

bool Substitution::UnifyLists(Map& map, std::span<const TypeRef> a, std::span<const TypeRef> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!Unify(map, a[i], b[i])) return false;
  }
  return true;
}

bool Substitution::Unify(Map& map, const TypeRef& a, const TypeRef& b) {
  if (b->kind() == TypeKind::kTypeParam) {
    bool known = false;
    if (UnifyVariable(map, a, b, &known)) return true;
    if (known) return false;
  }
  if (a->kind() == TypeKind::kTypeParam) {
    bool known = false;
    return UnifyVariable(map, b, a, &known);
  }
  if (a->IsDynOrError() || b->IsDynOrError()) return true;
  if (a->kind() == TypeKind::kNull) return AcceptsNull(*b);
  if (b->kind() == TypeKind::kNull) return AcceptsNull(*a);
  if (a->kind() != b->kind()) return false;
  switch (a->kind()) {
    case TypeKind::kType:
      return true;
    case TypeKind::kOpaque:
    case TypeKind::kList:
    case TypeKind::kMap:
      return a->name() == b->name() && UnifyLists(map, a->parameters(), b->parameters());
    default:
      return a->name() == b->name();
  }
}

bool Substitution::UnifyVariable(Map& map, const TypeRef& type, const TypeRef& variable,
                                 bool* known) {
  *known = true;
  if (Type::Same(*type, *variable)) return true;
  if (const auto found = map.find(variable->name()); found != map.end()) {
    const TypeRef current = found->second;
    if (Type::Same(*type, *current)) return true;
    if (!Unify(map, type, current)) return false;
    TypeRef general = MoreGeneral(type, current);
    if (!OccursIn(map, variable, general)) map[variable->name()] = std::move(general);
    return true;
  }
  *known = false;
  if (OccursIn(map, variable, type)) return false;
  map[variable->name()] = type;
  return true;
}

bool Substitution::OccursIn(const Map& map, const TypeRef& variable, const TypeRef& type) {
  if (Type::Same(*variable, *type)) return true;
  if (type->kind() == TypeKind::kTypeParam) {
    const auto found = map.find(type->name());
    return found != map.end() && OccursIn(map, variable, found->second);
  }
  for (const TypeRef& parameter : type->parameters()) {
    if (OccursIn(map, variable, parameter)) return true;
  }
  return false;
}

TypeRef Substitution::Apply(const TypeRef& type, bool free_to_dyn) const {
  if (type->kind() == TypeKind::kTypeParam) {
    if (const auto found = map_.find(type->name()); found != map_.end())
      return Apply(found->second, free_to_dyn);
    return free_to_dyn ? types::Dyn() : type;
  }
  if (type->parameters().empty()) return type;
  std::vector<TypeRef> parameters;
  for (const TypeRef& parameter : type->parameters())
    parameters.push_back(Apply(parameter, free_to_dyn));
  return std::make_shared<const Type>(type->kind(), type->name(), std::move(parameters),
                                      type->nullable());
}

}  // namespace drakkar::cel
