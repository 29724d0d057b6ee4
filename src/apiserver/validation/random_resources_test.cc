// Random valid objects survive a round trip through every version and format.
#include <gtest/gtest.h>

#include <set>

#include "api/codec/object_reader.h"
#include "api/codec/protobuf_reader.h"
#include "api/codec/protobuf_writer.h"
#include "api/codec/yaml_reader.h"
#include "api/codec/yaml_writer.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "apiserver/conversion/skip_operations_form.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/testing/random_resources.h"
#include "apiserver/validation/claim_template.h"
#include "apiserver/validation/declared_rules.h"
#include "apiserver/validation/device_class.h"
#include "apiserver/validation/device_taint_rule.h"
#include "apiserver/validation/resource_claim.h"
#include "apiserver/validation/resource_slice.h"
#include "base/text/text.h"
#include "features/gates/feature_gates.h"

namespace drakkar::apiserver {
namespace {

constexpr int kObjectsPerKind = 300;
constexpr std::string_view kKinds[] = {"ResourceSlice", "ResourceClaim", "ResourceClaimTemplate",
                                       "DeviceClass", "DeviceTaintRule"};

const FeatureGates& AllGates() {
  static const FeatureGates gates = [] {
    FeatureGates all;
    for (int i = 0; i < static_cast<int>(Gate::kCount); ++i) {
      all = all.With(static_cast<Gate>(i), true);
    }
    return all;
  }();
  return gates;
}

// The errors of both passes as text; "" for a valid object.
std::string Problems(api::Value object) {
  const std::string_view kind = object["kind"].str();
  Findings found, declared;
  const api::Value none;
  if (kind == "ResourceSlice") {
    found = CheckResourceSlice(object, none, AllGates());
    declared = DeclaredForResourceSlice(object, none, AllGates());
  } else if (kind == "ResourceClaim") {
    found = CheckResourceClaim(object, AllGates());
    api::Draft before(object);
    before.Remove("status");
    const api::TreePtr pending = before.Freeze();
    found.Append(CheckResourceClaimStatus(object, pending->root(), AllGates()));
    declared = DeclaredForResourceClaim(object, none);
  } else if (kind == "ResourceClaimTemplate") {
    found = CheckClaimTemplate(object, AllGates());
    declared = DeclaredForClaimTemplate(object, none);
  } else if (kind == "DeviceClass") {
    found = CheckDeviceClass(object, none, AllGates());
    declared = DeclaredForDeviceClass(object, none);
  } else {
    found = CheckDeviceTaintRule(object, none);
    found.Append(CheckDeviceTaintRuleStatus(object));
    declared = DeclaredForDeviceTaintRule(object, none);
  }
  std::string text;
  for (const api::FieldError& error : MergeFindings(found, declared, true)) {
    text += error.ToString() + "\n";
  }
  return text;
}

api::TreePtr Strictly(api::Value value, const api::KindSchema& kind) {
  Result<api::ObjectReadResult> read = api::ConvertObject(value, *kind.schema);
  EXPECT_TRUE(read.ok()) << read.error().message << "\n" << api::WriteJson(value);
  return read.ok() ? read->tree : nullptr;
}

enum class Format { kJson, kYaml, kProtobuf };

// Encodes and decodes the object.
api::TreePtr Through(Format format, const api::TreePtr& object, const api::KindSchema& kind) {
  switch (format) {
    case Format::kJson: {
      Result<api::ObjectReadResult> read =
          api::ReadObject(api::WriteJson(object->root()), *kind.schema);
      EXPECT_TRUE(read.ok()) << read.error().message;
      return read.ok() ? read->tree : nullptr;
    }
    case Format::kYaml: {
      Result<std::vector<api::TreePtr>> read = api::ParseYaml(api::WriteYaml(object->root()));
      EXPECT_TRUE(read.ok() && read->size() == 1);
      return read.ok() ? Strictly(read->front()->root(), kind) : nullptr;
    }
    case Format::kProtobuf:
      break;
  }
  Result<api::TreePtr> read =
      api::ReadProtobuf(api::WriteProtobuf(object->root(), *kind.schema), *kind.schema);
  EXPECT_TRUE(read.ok());
  if (!read.ok()) return nullptr;
  api::Draft named(*read);
  named["apiVersion"] = object->root()["apiVersion"].str();
  named["kind"] = kind.kind;
  return Strictly(named.Freeze()->root(), kind);
}

TEST(RandomResources, SurviveARoundTripThroughEveryVersionAndFormat) {
  SeededRandom random(5945);
  RandomResources resources(random);
  for (std::string_view name : kKinds) {
    const api::KindSchema& hub = *api::FindKind("resource.k8s.io", "v1", name);
    for (int i = 0; i < kObjectsPerKind; ++i) {
      const api::TreePtr object = Strictly(resources.Make(name).Freeze()->root(), hub);
      ASSERT_NE(object, nullptr);
      ASSERT_EQ(Problems(object->root()), "") << api::WriteJson(object->root());
      for (std::string_view version : {"v1", "v1beta2", "v1beta1", "v1alpha3"}) {
        const api::KindSchema* kind = api::FindKind("resource.k8s.io", version, name);
        if (kind == nullptr) continue;
        const api::TreePtr converted = Strictly(ConvertTree(object, *kind)->root(), *kind);
        ASSERT_NE(converted, nullptr);
        for (Format format : {Format::kJson, Format::kYaml, Format::kProtobuf}) {
          const api::TreePtr read = Through(format, converted, *kind);
          ASSERT_NE(read, nullptr);
          const api::TreePtr back = Strictly(ConvertTree(read, hub)->root(), hub);
          ASSERT_NE(back, nullptr);
          api::ObjectPtr expected = std::make_shared<const api::Object>(object);
          // Protobuf cannot express the boolean form.
          if (format == Format::kProtobuf) expected = WithSkipOperationsAsList(expected);
          ASSERT_TRUE(api::Equal(back->root(), expected->root()))
              << version << " format " << static_cast<int>(format) << "\n"
              << *expected->json() << "\n"
              << api::WriteJson(back->root());
        }
      }
    }
  }
}

void CollectFields(const api::StructSchema& schema, std::set<std::string>& all);
void CollectType(const api::TypeSchema& type, std::set<std::string>& all) {
  if (type.element != nullptr) CollectType(*type.element, all);
  if (type.structure != nullptr && type.structure->name.find("resource.v1") != std::string::npos) {
    CollectFields(*type.structure, all);
  }
}
void CollectFields(const api::StructSchema& schema, std::set<std::string>& all) {
  for (const api::FieldSchema& field : schema.fields) {
    all.insert(StrCat(schema.name.substr(schema.name.rfind('.') + 1), ".", field.key->view()));
    CollectType(field.type, all);
  }
}
void CollectUsed(api::Value value, const api::TypeSchema& type, std::set<std::string>& used) {
  for (api::Value element : value.elements()) {
    if (type.element != nullptr) CollectUsed(element, *type.element, used);
  }
  for (const auto& [key, name, member] : value.members()) {
    if (type.structure == nullptr) {
      if (type.element != nullptr) CollectUsed(member, *type.element, used);
    } else if (const api::FieldSchema* field = type.structure->Find(*key)) {
      const std::string_view owner = type.structure->name;
      used.insert(StrCat(owner.substr(owner.rfind('.') + 1), ".", name));
      CollectUsed(member, field->type, used);
    }
  }
}

TEST(RandomResources, UseEveryFieldOfTheSchema) {
  SeededRandom random(5945);
  RandomResources resources(random);
  std::set<std::string> all, used;
  for (std::string_view name : kKinds) {
    const api::KindSchema& kind = *api::FindKind("resource.k8s.io", "v1", name);
    CollectFields(*kind.schema, all);
    const api::TypeSchema type{.kind = api::FieldKind::kStruct, .structure = kind.schema};
    for (int i = 0; i < kObjectsPerKind; ++i) {
      CollectUsed(resources.Make(name).Freeze()->root(), type, used);
    }
  }
  for (const std::string& field : all) EXPECT_TRUE(used.contains(field)) << field;
  EXPECT_GT(all.size(), 100u);
}

}  // namespace
}  // namespace drakkar::apiserver
