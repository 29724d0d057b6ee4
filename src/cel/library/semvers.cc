#include "cel/library/library.h"
#include "cel/library/objects.h"

namespace drakkar::cel::library {
namespace {

using types::Bool, types::Int, types::String;

const api::Semver& Get(const Value& value) {
  return static_cast<const SemverValue*>(value.object)->version;
}

Result<api::Semver> ParseArgs(Args args) {
  const bool normalize = args.size() == 2 && args[1].boolean;
  return normalize ? api::Semver::ParseNormalized(args[0].text())
                   : api::Semver::Parse(args[0].text());
}

Value FromText(CallContext& c, Args args) {
  Result<api::Semver> parsed = ParseArgs(args);
  if (!parsed.ok()) return NewError(c.arena, parsed.error().message);
  return MakeObject(c.arena.New<SemverValue>(*std::move(parsed)));
}
Value IsText(CallContext&, Args args) {
  return MakeBool(ParseArgs(args).ok());
}
Value Major(CallContext&, Args args) {
  return MakeInt(static_cast<std::int64_t>(Get(args[0]).major));
}
Value Minor(CallContext&, Args args) {
  return MakeInt(static_cast<std::int64_t>(Get(args[0]).minor));
}
Value Patch(CallContext&, Args args) {
  return MakeInt(static_cast<std::int64_t>(Get(args[0]).patch));
}
Value Greater(CallContext&, Args args) {
  return MakeBool(Get(args[0]).Compare(Get(args[1])) > 0);
}
Value Less(CallContext&, Args args) {
  return MakeBool(Get(args[0]).Compare(Get(args[1])) < 0);
}
Value CompareTo(CallContext&, Args args) {
  return MakeInt(Get(args[0]).Compare(Get(args[1])));
}

}  // namespace

void AddSemvers(Declarations& d) {
  const TypeRef& v = types::Semver();
  d.AddTypeName(v);
  Global(d, "semver", "string_to_semver", {String()}, v, FromText);
  Global(d, "semver", "string_bool_to_semver", {String(), Bool()}, v, FromText);
  Global(d, "isSemver", "is_semver_string", {String()}, Bool(), IsText);
  Global(d, "isSemver", "is_semver_string_bool", {String(), Bool()}, Bool(), IsText);
  Member(d, "isGreaterThan", "semver_is_greater_than", {v, v}, Bool(), Greater);
  Member(d, "isLessThan", "semver_is_less_than", {v, v}, Bool(), Less);
  Member(d, "compareTo", "semver_compare_to", {v, v}, Int(), CompareTo);
  Member(d, "major", "semver_major", {v}, Int(), Major);
  Member(d, "minor", "semver_minor", {v}, Int(), Minor);
  Member(d, "patch", "semver_patch", {v}, Int(), Patch);
}

}  // namespace drakkar::cel::library
