// Kubernetes' named formats: names, labels, URIs and the like.
#include "base/text/text.h"
#include "cel/library/library.h"
#include "cel/library/name_formats.h"
#include "cel/library/objects.h"

namespace drakkar::cel {
namespace {

class FormatValue final : public ObjectValue {
 public:
  static constexpr std::string_view kTypeName = "kubernetes.NamedFormat";
  explicit FormatValue(const NameFormat& value) : ObjectValue(&kTypeName), format(value) {}
  bool Equals(const ObjectValue& other) const override {
    return &format == &static_cast<const FormatValue&>(other).format;
  }
  std::uint64_t PatternSize() const override { return format.pattern_size; }
  const NameFormat& format;
};

}  // namespace

namespace types {
const TypeRef& NamedFormat() {
  static const TypeRef type = Object(TypeKind::kStruct, FormatValue::kTypeName);
  return type;
}
}  // namespace types

namespace library {
namespace {

using types::List, types::Optional, types::String;

Value Validate(CallContext& c, Args args) {
  const std::vector<std::string> problems =
      static_cast<const FormatValue*>(args[0].object)->format.validate(args[1].text());
  if (problems.empty()) return MakeOptional(nullptr);
  std::vector<Value> texts;
  for (const std::string& problem : problems) texts.push_back(NewString(c.arena, problem));
  return NewOptional(c.arena, NewList(c.arena, texts.data(), texts.size()));
}

Value Named(CallContext& c, Args args) {
  for (const NameFormat& format : NameFormats()) {
    if (format.name == args[0].text())
      return NewOptional(c.arena, MakeObject(c.arena.New<FormatValue>(format)));
  }
  return MakeOptional(nullptr);
}

template <std::size_t index>
Value Constant(CallContext& c, Args) {
  return MakeObject(c.arena.New<FormatValue>(NameFormats()[index]));
}

template <std::size_t... index>
void AddConstants(Declarations& d, std::index_sequence<index...>) {
  (Global(d, StrCat("format.", NameFormats()[index].name),
          StrCat("format.", NameFormats()[index].name), {}, types::NamedFormat(), Constant<index>),
   ...);
}

}  // namespace

void AddFormats(Declarations& d) {
  const TypeRef& f = types::NamedFormat();
  d.AddTypeName(f);
  Member(d, "validate", "format-validate", {f, String()}, Optional(List(String())), Validate);
  Global(d, "format.named", "format-named", {String()}, Optional(f), Named);
  AddConstants(d, std::make_index_sequence<kNameFormatCount>());
}

}  // namespace library
}  // namespace drakkar::cel
