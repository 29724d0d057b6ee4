#pragma once

#include <map>
#include <span>
#include <string>

#include "cel/types/type.h"

namespace drakkar::cel {

// What the type variables of an expression are known to stand for. Grows by unification; an
// attempt that fails leaves it as it was.
class Substitution {
 public:
  bool Assignable(const TypeRef& to, const TypeRef& from);
  bool AssignableLists(std::span<const TypeRef> to, std::span<const TypeRef> from);
  // `type` with variables replaced; those that stand for nothing become dyn on request.
  TypeRef Apply(const TypeRef& type, bool free_to_dyn) const;
  void Set(const TypeRef& variable, TypeRef type) { map_[variable->name()] = std::move(type); }

 private:
  using Map = std::map<std::string, TypeRef>;

  static bool Unify(Map& map, const TypeRef& a, const TypeRef& b);
  static bool UnifyLists(Map& map, std::span<const TypeRef> a, std::span<const TypeRef> b);
  // False in `*known` if the variable stood for nothing before.
  static bool UnifyVariable(Map& map, const TypeRef& type, const TypeRef& variable, bool* known);
  static bool OccursIn(const Map& map, const TypeRef& variable, const TypeRef& type);

  Map map_;
};

// Of two types that unify, the one that admits more.
TypeRef MoreGeneral(const TypeRef& a, const TypeRef& b);

}  // namespace drakkar::cel
