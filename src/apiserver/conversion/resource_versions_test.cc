#include "apiserver/conversion/resource_versions.h"

#include <gtest/gtest.h>

#include "api/codec/object_reader.h"
#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "api/testing/random_object.h"
#include "api/tree/draft.h"
#include "base/env/random.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

using api::Draft;

api::TreePtr Normalized(const api::TreePtr& tree, const api::KindSchema& kind) {
  const auto read = api::ReadObject(api::WriteJson(tree->root()), *kind.schema);
  EXPECT_TRUE(read.ok()) << read.error().message << api::WriteJson(tree->root());
  return read.ok() ? read->tree : nullptr;
}

TEST(ResourceVersions, RandomObjectsSurviveARoundTripThroughEveryVersion) {
  SeededRandom random(7);
  for (const std::string_view name :
       {"ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"}) {
    const api::KindSchema* hub = api::FindKind("resource.k8s.io", "v1", name);
    for (int i = 0; i < 200; ++i) {
      Draft draft = Draft::Object();
      draft["apiVersion"] = "resource.k8s.io/v1";
      draft["kind"] = name;
      draft["metadata"] = Draft({{"name", "x"}});
      draft["spec"] = api::RandomTypedStruct(*hub->schema->Find("spec")->type.structure, random, 8);
      if (const api::FieldSchema* status = hub->schema->Find("status")) {
        draft["status"] = api::RandomTypedStruct(*status->type.structure, random, 8);
      }
      const api::TreePtr object = Normalized(draft.Freeze(), *hub);
      ASSERT_NE(object, nullptr);
      for (const std::string_view version : {"v1beta2", "v1beta1"}) {
        const api::KindSchema* kind = api::FindKind("resource.k8s.io", version, name);
        // The schema of the other version has every field of the converted object.
        const api::TreePtr converted = Normalized(FromHubVersion(object, version), *kind);
        ASSERT_NE(converted, nullptr);
        const api::TreePtr back = Normalized(ToHubVersion(converted), *hub);
        ASSERT_NE(back, nullptr);
        // v1beta1 cannot distinguish an empty "exactly" from an absent one.
        if (version == "v1beta1" &&
            api::WriteJson(object->root()).find("\"exactly\":{}") != std::string::npos) {
          continue;
        }
        const bool false_all_nodes = object->root()["spec"]["allNodes"].has_value() &&
                                     !object->root()["spec"]["allNodes"].boolean();
        if (version == "v1beta1" && name == "ResourceSlice" && false_all_nodes) continue;
        EXPECT_TRUE(api::Equal(back->root(), object->root()))
            << version << "\n"
            << api::WriteJson(object->root()) << "\n"
            << api::WriteJson(back->root());
      }
    }
  }
}

TEST(ResourceVersions, ObjectsOfOtherGroupsAreUnchanged) {
  Draft draft = Draft::Object();
  draft["apiVersion"] = "v1";
  draft["kind"] = "Pod";
  const api::TreePtr pod = draft.Freeze();
  EXPECT_EQ(ToHubVersion(pod), pod);
  EXPECT_EQ(FromHubVersion(pod, "v1beta1"), pod);
}

}  // namespace
}  // namespace drakkar::apiserver
