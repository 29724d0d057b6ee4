#pragma once

#include <map>
#include <span>
#include <string>

#include "cel/types/type.h"

namespace drakkar::cel {

// Bindings of an expression's type variables. Grows by unification; a failed attempt leaves it
// unchanged.
class Substitution {
 public:
  bool Assignable(const TypeRef& to, const TypeRef& from);
  bool AssignableLists(std::span<const TypeRef> to, std::span<const TypeRef> from);
  // `type` with its variables substituted; unbound ones become dyn on request.
  TypeRef Apply(const TypeRef& type, bool free_to_dyn) const;
  void Set(const TypeRef& variable, TypeRef type) { map_[variable->name()] = std::move(type); }

 private:
  using Map = std::map<std::string, TypeRef>;

  static bool Unify(Map& map, const TypeRef& a, const TypeRef& b);
  static bool UnifyLists(Map& map, std::span<const TypeRef> a, std::span<const TypeRef> b);
  // Sets `*known` to false if the variable was unbound.
  static bool UnifyVariable(Map& map, const TypeRef& type, const TypeRef& variable, bool* known);
  static bool OccursIn(const Map& map, const TypeRef& variable, const TypeRef& type);

  Map map_;
};

// Of two types that unify, the one that admits more.
TypeRef MoreGeneral(const TypeRef& a, const TypeRef& b);

}  // namespace drakkar::cel
