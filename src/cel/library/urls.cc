#include "base/text/text.h"
#include "cel/library/library.h"
#include "cel/library/objects.h"
#include "cel/library/url.h"

namespace drakkar::cel {
namespace {

class UrlValue final : public ObjectValue {
 public:
  static constexpr std::string_view kTypeName = "kubernetes.URL";
  explicit UrlValue(Url value) : ObjectValue(&kTypeName), url(std::move(value)) {}
  bool Equals(const ObjectValue& other) const override {
    return url.text == static_cast<const UrlValue&>(other).url.text;
  }
  Url url;
};

}  // namespace

namespace types {
const TypeRef& Url() {
  static const TypeRef type = Object(TypeKind::kStruct, UrlValue::kTypeName);
  return type;
}
}  // namespace types

namespace library {
namespace {

using types::Bool, types::List, types::Map, types::String;

const Url& Get(const Value& value) {
  return static_cast<const UrlValue*>(value.object)->url;
}

Value FromText(CallContext& c, Args args) {
  Result<Url> url = ParseUrl(args[0].text());
  if (!url.ok()) {
    return NewError(c.arena,
                    StrCat("URL parse error during conversion from string: ", url.error().message));
  }
  return MakeObject(c.arena.New<UrlValue>(*std::move(url)));
}
Value IsText(CallContext&, Args args) {
  return MakeBool(ParseUrl(args[0].text()).ok());
}
Value Scheme(CallContext&, Args args) {
  return MakeString(Get(args[0]).scheme);
}
Value Host(CallContext&, Args args) {
  return MakeString(Get(args[0]).host);
}
Value Hostname(CallContext&, Args args) {
  return MakeString(Get(args[0]).Hostname());
}
Value Port(CallContext&, Args args) {
  return MakeString(Get(args[0]).Port());
}
Value Path(CallContext&, Args args) {
  return MakeString(Get(args[0]).escaped_path);
}
Value Query(CallContext& c, Args args) {
  Value map = NewMap(c.arena, 4);
  for (const auto& [key, value] : Get(args[0]).QueryValues()) {
    const Value name = NewString(c.arena, key);
    const Value text = NewString(c.arena, value);
    Value list;
    if (map.map->Find(name, map.size, &list)) {
      list = Append(c.arena, list, &text, 1);
    } else {
      list = NewList(c.arena, &text, 1);
    }
    map = MapInsert(c.arena, map, name, list);
  }
  return map;
}

}  // namespace

void AddUrls(Declarations& d) {
  const TypeRef& u = types::Url();
  d.AddTypeName(u);
  Global(d, "url", "string_to_url", {String()}, u, FromText);
  Global(d, "isURL", "is_url_string", {String()}, Bool(), IsText);
  Member(d, "getScheme", "url_get_scheme", {u}, String(), Scheme);
  Member(d, "getHost", "url_get_host", {u}, String(), Host);
  Member(d, "getHostname", "url_get_hostname", {u}, String(), Hostname);
  Member(d, "getPort", "url_get_port", {u}, String(), Port);
  Member(d, "getEscapedPath", "url_get_escaped_path", {u}, String(), Path);
  Member(d, "getQuery", "url_get_query", {u}, Map(String(), List(String())), Query);
}

}  // namespace library
}  // namespace drakkar::cel
