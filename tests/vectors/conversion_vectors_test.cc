#include <gtest/gtest.h>

#include "api/codec/object_reader.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
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

// One case with its input unread: repeated and unknown fields matter.
struct Schemas {
  Schemas() {
    const std::pair<std::string_view, api::FieldKind> kinds[] = {
        {"name", api::FieldKind::kString},     {"input", api::FieldKind::kRaw},
        {"output", api::FieldKind::kJson},     {"error", api::FieldKind::kString},
        {"strictError", api::FieldKind::kString}};
    keys.reserve(std::size(kinds) + 1);
    for (const auto& [name, kind] : kinds) fields.push_back(Make(name, kind));
    line.fields = fields;
    line.name = "case";
    element.kind = api::FieldKind::kStruct;
    element.structure = &line;
    list.push_back(Make("items", api::FieldKind::kList));
    list[0].type.element = &element;
    file.fields = list;
    file.name = "file";
  }
  api::FieldSchema Make(std::string_view name, api::FieldKind kind) {
    const api::Key* key = api::FindKey(name);
    if (key == nullptr) {
      keys.push_back({0, static_cast<std::uint32_t>(name.size()), name.data()});
      key = &keys.back();
    }
    api::FieldSchema field;
    field.key = key;
    field.type.kind = kind;
    return field;
  }

  std::vector<api::Key> keys;
  std::vector<api::FieldSchema> fields;
  std::vector<api::FieldSchema> list;
  api::StructSchema line;
  api::StructSchema file;
  api::TypeSchema element;
};

std::string RunCase(Value c) {
  const std::string text(c["input"].str());
  const Result<TreePtr> plain = api::ParseJson(text, {.refuse_duplicates = false});
  if (!plain.ok()) return plain.error().message;
  const std::string_view api_version = (*plain)->root()["apiVersion"].str();
  const api::KindSchema* kind =
      api::FindKindByApiVersion(api_version, (*plain)->root()["kind"].str());
  const std::string_view error = c["error"].str();
  // How an unknown kind is told is up to the part that looks it up.
  if (kind == nullptr) return error.starts_with("no kind ") ? "" : "the kind is not known";
  const auto read = api::ReadObject(text, *kind->schema, {.strictness = api::Strictness::kIgnore});
  if (!read.ok()) {
    return read.error().message == error ? "" : StrCat("refused: ", read.error().message);
  }
  if (!error.empty()) return StrCat("should be refused: ", error);
  std::string problem;
  const auto strict = api::ReadObject(text, *kind->schema);
  const std::string strict_error = strict.ok() ? "" : strict.error().message;
  if (strict_error != c["strictError"].str()) {
    problem += StrCat("\n    strictly: ", strict_error);
  }
  api::Draft draft(read->tree);
  SetResourceDefaults(draft, kind->version, *api::ParseTime("2025-06-07T08:09:10Z"));
  const TreePtr hub = ToHubVersion(draft.Freeze());
  for (const auto& [key, version, expected] : c["output"].members()) {
    std::string failure;
    const TreePtr wanted = vectors::ReadApiObject(api::WriteJson(expected), failure);
    const TreePtr got =
        vectors::ReadApiObject(api::WriteJson(FromHubVersion(hub, version)->root()), failure);
    if (wanted == nullptr || got == nullptr) {
      problem += StrCat("\n    ", version, ": ", failure);
    } else if (!api::Equal(wanted->root(), got->root())) {
      problem += StrCat("\n    ", version, " should be ", api::WriteJson(wanted->root()),
                        "\n    ", version, " is        ", api::WriteJson(got->root()));
    }
  }
  return problem;
}

TEST(ConversionVectors, ObjectsAreDefaultedAndConvertedAsInKubernetes) {
  if (!vectors::Available(kArea)) {
    GTEST_SKIP() << "no vectors in " << vectors::Root() << "/" << kArea;
  }
  const Schemas schemas;
  const auto cases = api::ReadObject(
      StrCat("{\"items\":", vectors::ReadText(kArea, StrCat(kFile, ".json")), "}"), schemas.file);
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  vectors::Tally tally(kArea);
  for (const Value c : cases->tree->root()["items"].elements()) {
    tally.Count(std::string(kFile), std::string(c["name"].str()), RunCase(c));
  }
  tally.Finish();
}

}  // namespace
}  // namespace drakkar::apiserver
