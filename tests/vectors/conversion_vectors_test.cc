#include <gtest/gtest.h>

#include "api/codec/object_reader.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/conversion/resource_defaults.h"
#include "apiserver/conversion/resource_versions.h"
#include "base/text/text.h"
#include "tests/vectors/vector_case.h"

namespace drakkar::apiserver {
namespace {

using api::TreePtr;
using api::Value;

constexpr std::string_view kArea = "conversion";
constexpr std::string_view kFile = "defaulting_and_versions";

// The inputs of all cases, unparsed, because repeated and unknown fields matter. The object reader
// keeps the bytes of known opaque fields, so the inputs get such a field's name.
struct InputSchema {
  InputSchema() {
    fields[0].key = api::FindKey("object");
    fields[0].type.kind = api::FieldKind::kRaw;
    line.fields = fields;
    element.kind = api::FieldKind::kStruct;
    element.structure = &line;
    list[0].key = api::FindKey("items");
    list[0].type.kind = api::FieldKind::kList;
    list[0].type.element = &element;
    file.fields = list;
  }
  api::FieldSchema fields[1];
  api::FieldSchema list[1];
  api::StructSchema line;
  api::StructSchema file;
  api::TypeSchema element;
};

std::string WithName(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// Opaque values without the formatting of their file.
void Compact(api::Draft& draft) {
  if (draft.kind() == api::ValueKind::kRaw) {
    draft = api::Draft::Raw(api::WriteJson((*api::ParseJson(draft.str()))->root()));
  } else if (draft.is_object()) {
    for (auto& [key, member] : draft.MutableMembers()) Compact(member);
  } else if (draft.is_array()) {
    for (api::Draft& element : draft.MutableElements()) Compact(element);
  }
}

std::string RunCase(Value c, std::string text) {
  // This input has a field twice, which the vector cannot represent.
  if (c["name"].str() == "duplicate-key") {
    text = WithName(std::move(text), "\"name\": \"y\"", "\"name\": \"x\", \"name\": \"y\"");
  }
  const Result<TreePtr> plain = api::ParseJson(text, {.refuse_duplicates = false});
  if (!plain.ok()) return plain.error().message;
  const std::string_view api_version = (*plain)->root()["apiVersion"].str();
  const api::KindSchema* kind =
      api::FindKindByApiVersion(api_version, (*plain)->root()["kind"].str());
  const std::string_view error = c["error"].str();
  // How an unknown kind is reported depends on the component that looks it up.
  if (kind == nullptr) return error.starts_with("no kind ") ? "" : "the kind is not known";
  const auto read = api::ReadObject(text, *kind->schema, {.strictness = api::Strictness::kIgnore});
  if (!read.ok()) {
    return read.error().message == error ? "" : StrCat("refused: ", read.error().message);
  }
  if (!error.empty()) return StrCat("should be rejected: ", error);
  std::string problem;
  const auto strict = api::ReadObject(text, *kind->schema);
  const std::string strict_error = strict.ok() ? "" : strict.error().message;
  if (strict_error != c["strictError"].str()) {
    problem += StrCat("\n    strictly: ", strict_error);
  }
  api::Draft draft(read->tree);
  Compact(draft);
  SetResourceDefaults(draft, kind->version, *api::ParseTime("2025-06-07T08:09:10Z"));
  const TreePtr hub = ToHubVersion(draft.Freeze());
  for (const auto& [key, version, expected] : c["output"].members()) {
    std::string failure;
    const TreePtr wanted = vectors::ReadApiObject(api::WriteJson(expected), failure, true);
    const TreePtr got =
        vectors::ReadApiObject(api::WriteJson(FromHubVersion(hub, version)->root()), failure, true);
    if (wanted == nullptr || got == nullptr) {
      problem += StrCat("\n    ", version, ": ", failure);
    } else if (!api::Equal(wanted->root(), got->root())) {
      problem += StrCat("\n    ", version, " should be ", api::WriteJson(wanted->root()), "\n    ",
                        version, " is        ", api::WriteJson(got->root()));
    }
  }
  return problem;
}

TEST(ConversionVectors, ObjectsAreDefaultedAndConvertedAsInKubernetes) {
  if (!vectors::Available(kArea)) {
    GTEST_SKIP() << "no vectors in " << vectors::Root() << "/" << kArea;
  }
  const std::string text = vectors::ReadText(kArea, StrCat(kFile, ".json"));
  const auto cases = api::ParseJson(text, {.refuse_duplicates = false});
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  const InputSchema schema;
  const auto inputs =
      api::ReadObject(StrCat("{\"items\":", WithName(text, "\"input\":", "\"object\":"), "}"),
                      schema.file, {.strictness = api::Strictness::kIgnore});
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  vectors::Tally tally(kArea);
  std::size_t index = 0;
  for (const Value c : (*cases)->root().elements()) {
    const Value input = inputs->tree->root()["items"].at(index++)["object"];
    tally.Count(std::string(kFile), std::string(c["name"].str()),
                RunCase(c, std::string(input.str())));
  }
  tally.Finish();
}

}  // namespace
}  // namespace drakkar::apiserver
