// Round trips objects of every kind through every format.
#include <gtest/gtest.h>

#include "api/codec/object_reader.h"
#include "api/codec/protobuf_reader.h"
#include "api/codec/protobuf_writer.h"
#include "api/codec/yaml_reader.h"
#include "api/codec/yaml_writer.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/testing/random_object.h"

namespace drakkar::api {
namespace {

constexpr int kObjectsPerKind = 20;

TreePtr Strictly(Value value, const StructSchema& schema) {
  Result<ObjectReadResult> read = ConvertObject(value, schema);
  EXPECT_TRUE(read.ok()) << read.error().message << "\n" << WriteJson(value);
  return read.ok() ? read->tree : nullptr;
}

// Normalizes what protobuf cannot distinguish: an empty list is an absent one, skipNodeOperations
// is a list, and nested objects do not state their kind.
void MakeLists(Draft& value) {
  if (value.is_array()) {
    for (Draft& element : value.MutableElements()) MakeLists(element);
    return;
  }
  if (!value.is_object()) return;
  Draft* skip = value.Find("skipNodeOperations");
  if (skip != nullptr && skip->kind() == ValueKind::kBool) {
    if (skip->boolean()) {
      *skip = Draft::Array({Draft("*")});
    } else {
      value.Remove("skipNodeOperations");
    }
  }
  for (auto& [key, member] : value.MutableMembers()) {
    if (key->view() == "volumeClaimTemplates" && member.is_array()) {
      for (Draft& claim : member.MutableElements()) {
        for (const char* name : {"apiVersion", "kind"}) claim.RemoveEntry(name);
      }
    }
    MakeLists(member);
    if (member.is_array() && member.size() == 0) member = Draft();
  }
}

TEST(Formats, ObjectsOfEveryKindComeBackFromJsonYamlAndProtobuf) {
  SeededRandom random(11);
  int objects = 0;
  for (const KindSchema& kind : AllKinds()) {
    for (int i = 0; i < kObjectsPerKind; ++i) {
      const StructSchema& schema = *kind.schema;
      const TreePtr object =
          Strictly(RandomTypedStruct(schema, random, 6).Freeze()->root(), schema);
      ASSERT_NE(object, nullptr);
      ++objects;
      const std::string json = WriteJson(object->root());

      Result<ObjectReadResult> from_json = ReadObject(json, schema);
      ASSERT_TRUE(from_json.ok()) << from_json.error().message << "\n" << json;
      EXPECT_EQ(WriteJson(from_json->tree->root()), json);

      Result<std::vector<TreePtr>> documents = ParseYaml(WriteYaml(object->root()));
      ASSERT_TRUE(documents.ok() && documents->size() == 1) << json;
      const TreePtr from_yaml = Strictly(documents->front()->root(), schema);
      ASSERT_NE(from_yaml, nullptr);
      EXPECT_EQ(WriteJson(from_yaml->root()), json);

      Result<TreePtr> message = ReadProtobuf(WriteProtobuf(object->root(), schema), schema);
      ASSERT_TRUE(message.ok()) << message.error().message << "\n" << json;
      Draft named(*message);  // carried by the envelope
      for (const char* field : {"kind", "apiVersion"}) {
        if (object->root().Entry(field).has_value())
          named.Entry(field) = object->root().Entry(field).str();
      }
      MakeLists(named);
      const TreePtr from_protobuf = Strictly(named.Freeze()->root(), schema);
      ASSERT_NE(from_protobuf, nullptr);
      Draft expected(object);
      MakeLists(expected);
      EXPECT_EQ(WriteJson(from_protobuf->root()),
                WriteJson(Strictly(expected.Freeze()->root(), schema)->root()))
          << kind.kind << "\n"
          << json;
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(objects, 900);
}

TEST(ParseYaml, RefusesDirectivesWhichCouldKeepItBusyForEver) {
  for (const char* text :
       {"%YAML 1.2\n---\na: b\n", "a: b\n%\n", "a: b\r%T", "\xef\xbb\xbf%T", "a:\xe2\x80\xa8%x"}) {
    const auto read = ParseYaml(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.error().message.find("directives"), std::string::npos) << read.error().message;
  }
  EXPECT_TRUE(ParseYaml("a: 50%\nb: '%'\n").ok());
}

}  // namespace
}  // namespace drakkar::api
