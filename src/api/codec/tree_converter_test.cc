#include "api/codec/tree_converter.h"

#include <gtest/gtest.h>

#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/testing/random_object.h"

namespace drakkar::api {
namespace {

std::string Show(const Result<ObjectReadResult>& read) {
  if (!read.ok()) return "refused: " + read.error().message;
  std::string text = WriteJson(read->tree->root(), {.escape_html = false});
  for (const std::string& warning : read->warnings) text += " | " + warning;
  return text;
}

Result<ObjectReadResult> ThroughJson(Value value, const StructSchema& schema,
                                     const ObjectReadOptions& options) {
  return ReadObject(WriteJson(value, {.escape_html = false}), schema, options);
}

// Something that does not belong in the object.
Draft Oddity(Random& random) {
  switch (random.Next() % 20) {
    case 0:
      return nullptr;
    case 1:
      return Draft(true);
    case 2:
      return Draft(false);
    case 3:
      return Draft(0);
    case 4:
      return Draft(std::int64_t{1} << 40);
    case 5:
      return Draft(2.0);
    case 6:
      return Draft(2.5);
    case 7:
      return Draft("");
    case 8:
      return Draft("1.0Gi");
    case 9:
      return Draft("caf\xC3\xA9");
    case 10:
      return Draft("bad\xFFtext \xE2\x80\xA8");
    case 11:
      return Draft("2025-06-07T10:09:10+02:00");
    case 12:
      return Draft("90s");
    case 13:
      return Draft::Array();
    case 14:
      return Draft::Array({nullptr, Draft("x")});
    case 15:
      return Draft::Object();
    case 16:
      return Draft::Raw(" {\"a\": 1} ");
    case 17:
      return Draft::Raw("{\"a\":");
    case 18:
      return Draft::Raw("null");
    default:
      return Draft::Map({{"zeta", "z"}, {"name", "n"}, {"alpha", nullptr}});
  }
}

// Changes one place somewhere in the object.
void Disturb(Draft& draft, Random& random) {
  const bool here = random.Next() % 5 == 0;
  if (draft.is_object() && !here && draft.size() > 0) {
    auto& members = draft.MutableMembers();
    return Disturb(members[random.Next() % members.size()].second, random);
  }
  if (draft.is_array() && !here && draft.size() > 0) {
    return Disturb(draft.at(random.Next() % draft.size()), random);
  }
  if (draft.is_object() && draft.size() > 1 && random.Next() % 2 == 0) {
    auto& members = draft.MutableMembers();
    switch (random.Next() % 3) {
      case 0:
        std::swap(members.front(), members.back());
        return;
      case 1:
        members.push_back(members.front());
        return;  // the same name twice
      default:
        members.emplace_back(KeyRef("noSuchField"), Draft(1));
        return;
    }
  }
  draft = Oddity(random);
}

TEST(ConvertWellTyped, GivesWhatReadingItsJsonGives) {
  SeededRandom random(7);
  int short_ways = 0;
  for (int round = 0; round < 4000; ++round) {
    const auto kinds = AllKinds();
    const KindSchema& kind = kinds[random.Next() % kinds.size()];
    Draft draft = RandomTypedStruct(*kind.schema, random, 5);
    for (std::uint64_t i = random.Next() % 3; i > 0; --i) Disturb(draft, random);
    const TreePtr tree = draft.Freeze();
    const ObjectReadOptions options{.strictness = static_cast<Strictness>(random.Next() % 3),
                                    .max_depth = random.Next() % 8 == 0 ? 4 : 100};
    const std::string expected = Show(ThroughJson(tree->root(), *kind.schema, options));
    ASSERT_EQ(Show(ConvertObject(tree, *kind.schema, options)), expected) << kind.kind;
    ASSERT_EQ(Show(ConvertObject(tree->root(), *kind.schema, options)), expected) << kind.kind;
    Arena arena;
    Node out;
    short_ways +=
        ConvertWellTyped(tree->root(), *kind.schema, options, arena, out) != Conversion::kUnsure;
  }
  EXPECT_GT(short_ways, 400);  // otherwise nothing was tested
}

TEST(ConvertWellTyped, GivesATreeInCanonicalFormBack) {
  const StructSchema& schema = *FindKind("", "v1", "Pod")->schema;
  const TreePtr first =
      ReadObject(
          R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"b":"1","a":"2"},
                     "managedFields":[{"manager":"m","fieldsV1":{"f:spec":{}}}]},
                     "spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1"}}}]}})",
          schema)
          ->tree;
  EXPECT_EQ(ConvertObject(first, schema)->tree, first);
  Draft draft(first);
  draft["metadata"]["generateName"] = "p-";  // belongs before other members
  const TreePtr changed = ConvertObject(draft.Freeze(), schema)->tree;
  EXPECT_EQ(ConvertObject(changed, schema)->tree, changed);
}

}  // namespace
}  // namespace drakkar::api
