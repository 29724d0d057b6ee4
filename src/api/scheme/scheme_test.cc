#include "api/scheme/scheme.h"

#include <gtest/gtest.h>

#include <set>

#include "api/tree/key_table.h"

namespace drakkar::api {
namespace {

using testing::ElementsAre;

const StructSchema& Get(std::string_view name) {
  const StructSchema* found = FindStruct(name);
  EXPECT_NE(found, nullptr) << name;
  static const StructSchema kEmpty;
  return found == nullptr ? kEmpty : *found;
}

TEST(Keys, AreFoundByTheirTextAndHaveDistinctTexts) {
  std::set<std::string_view> texts;
  for (const Key& key : SchemaKeys().subspan(1)) {
    EXPECT_TRUE(texts.insert(key.view()).second) << key.view();
    EXPECT_EQ(FindKey(key.view()), &key) << key.view();
  }
  EXPECT_GT(texts.size(), 700u);
}

TEST(Keys, OtherNamesAreNotFound) {
  for (std::string_view text :
       {"", "z", "spe", "specs", "Spec", "nodename", "metadata.name", "app.kubernetes.io/name"}) {
    EXPECT_EQ(FindKey(text), nullptr) << text;
  }
  // Same ends and length as a schema name, different middle.
  EXPECT_NE(FindKey("terminationGracePeriodSeconds"), nullptr);
  EXPECT_EQ(FindKey("terminationGraceXeriodSeconds"), nullptr);
}

TEST(Keys, AreConstantsAtLinkTime) {
  static constexpr const Key* kConstant = &FieldName("nodeName").key();
  EXPECT_EQ(kConstant->view(), "nodeName");
  EXPECT_EQ(FindKey("nodeName"), kConstant);
  EXPECT_EQ(FieldName("port").view(), "port");
  EXPECT_EQ(FieldName("Port").view(), "Port");
}

TEST(Structs, EveryFieldIsFoundByKeyAndByName) {
  for (const KindSchema& kind : AllKinds()) {
    for (const FieldSchema& field : kind.schema->fields) {
      EXPECT_EQ(kind.schema->Find(*field.key), &field);
      EXPECT_EQ(kind.schema->Find(field.key->view()), &field);
    }
    EXPECT_EQ(kind.schema->Find(FieldName("tolerationSeconds").key()), nullptr);
    EXPECT_EQ(kind.schema->Find("noSuchField"), nullptr);
  }
}

TEST(Structs, KeysThatAreNoSchemaNamesAreNotFields) {
  const Key other{0, 4, "spec"};
  EXPECT_EQ(Get("io.k8s.api.core.v1.Pod").Find(other), nullptr);
}

TEST(Structs, ThatAreMadeByHandNeedNoIndex) {
  static constexpr FieldSchema kFields[] = {{.key = &FieldName("name").key()},
                                            {.key = &FieldName("spec").key()}};
  const StructSchema by_hand{.name = "x", .fields = kFields};
  EXPECT_EQ(by_hand.Find(FieldName("spec").key()), &kFields[1]);
  EXPECT_EQ(by_hand.Find("name"), &kFields[0]);
  EXPECT_EQ(by_hand.Find(FieldName("status").key()), nullptr);
  EXPECT_EQ(StructSchema().Find(FieldName("spec").key()), nullptr);
}

TEST(Structs, FieldsCarryTypesNumbersAndMergeRules) {
  const StructSchema& spec = Get("io.k8s.api.core.v1.PodSpec");
  const FieldSchema* containers = spec.Find(FieldName("containers").key());
  ASSERT_NE(containers, nullptr);
  EXPECT_EQ(containers->protobuf_number, 2);
  EXPECT_TRUE(containers->required);
  EXPECT_FALSE(containers->omit_empty);
  EXPECT_EQ(containers->type.kind, FieldKind::kList);
  EXPECT_EQ(containers->type.merge, MergeKind::kMapList);
  EXPECT_THAT(containers->type.list_keys, ElementsAre("name"));
  EXPECT_EQ(containers->type.patch_merge_key, "name");
  EXPECT_TRUE(containers->type.patch_merge);
  EXPECT_FALSE(containers->type.patch_retain_keys);
  ASSERT_NE(containers->type.element, nullptr);
  EXPECT_EQ(containers->type.element->structure, &Get("io.k8s.api.core.v1.Container"));

  EXPECT_TRUE(spec.Find(FieldName("volumes").key())->type.patch_retain_keys);
  EXPECT_TRUE(spec.Find(FieldName("priority").key())->pointer);
  EXPECT_FALSE(spec.Find(FieldName("hostNetwork").key())->pointer);
  EXPECT_EQ(spec.Find(FieldName("nodeSelector").key())->type.merge, MergeKind::kAtomic);
  EXPECT_EQ(spec.Find(FieldName("overhead").key())->type.merge, MergeKind::kGranular);
  EXPECT_EQ(spec.Find(FieldName("overhead").key())->type.element->kind, FieldKind::kQuantity);
  EXPECT_EQ(
      Get("io.k8s.api.core.v1.EnvVarSource").Find(FieldName("configMapKeyRef").key())->type.merge,
      MergeKind::kAtomic);
  EXPECT_TRUE(Get("io.k8s.api.policy.v1.PodDisruptionBudgetSpec")
                  .Find(FieldName("selector").key())
                  ->type.patch_replace);
}

TEST(Structs, InlinedGoStructsKeepTheirPlaceOnTheWire) {
  const FieldSchema* path = Get("io.k8s.api.core.v1.Volume").Find(FieldName("hostPath").key());
  ASSERT_NE(path, nullptr);
  EXPECT_EQ(path->protobuf_outer, 2);
  EXPECT_EQ(path->protobuf_number, 1);
}

TEST(Structs, SkipNodeOperationsHasATypeOfItsOwn) {
  for (std::string_view version : {"v1", "v1beta1", "v1beta2"}) {
    const std::string package = "io.k8s.api.resource." + std::string(version);
    const FieldSchema* slice =
        Get(package + ".ResourceSliceSpec").Find(FieldName("skipNodeOperations").key());
    const FieldSchema* result =
        Get(package + ".DeviceRequestAllocationResult").Find(FieldName("skipNodeOperations").key());
    ASSERT_NE(slice, nullptr) << version;
    ASSERT_NE(result, nullptr) << version;
    EXPECT_EQ(slice->type.kind, FieldKind::kSkipNodeOperations);
    EXPECT_EQ(slice->protobuf_number, 10);
    EXPECT_EQ(result->type.kind, FieldKind::kSkipNodeOperations);
    EXPECT_EQ(result->protobuf_number, 11);
  }
}

TEST(Structs, UnknownNamesAreNotFound) {
  EXPECT_EQ(FindStruct(""), nullptr);
  EXPECT_EQ(FindStruct("io.k8s.api.core.v1"), nullptr);
  EXPECT_EQ(FindStruct("zzz"), nullptr);
}

TEST(Kinds, EachIsFoundByEveryOfItsNames) {
  for (const KindSchema& kind : AllKinds()) {
    EXPECT_EQ(FindKind(kind.group, kind.version, kind.kind), &kind);
    EXPECT_EQ(FindResource(kind.group, kind.version, kind.plural), &kind);
    const GroupVersionKind gvk{std::string(kind.group), std::string(kind.version),
                               std::string(kind.kind)};
    EXPECT_EQ(FindKindByApiVersion(gvk.api_version(), kind.kind), &kind);
  }
  for (const KindSchema& kind : BodyKinds()) {
    EXPECT_EQ(FindKind(kind.group, kind.version, kind.kind), &kind);
    EXPECT_TRUE(kind.plural.empty());
    EXPECT_EQ(kind.storage, nullptr);
  }
}

TEST(Kinds, StoredKindsHaveMetadataAListAndColumns) {
  for (const KindSchema& kind : AllKinds()) {
    ASSERT_NE(kind.schema, nullptr);
    EXPECT_NE(kind.schema->Find(FieldName("metadata").key()), nullptr) << kind.kind;
    EXPECT_NE(kind.schema->Find(FieldName("apiVersion").key()), nullptr) << kind.kind;
    EXPECT_NE(kind.schema->Find(FieldName("kind").key()), nullptr) << kind.kind;
    EXPECT_FALSE(kind.singular.empty());
    EXPECT_FALSE(kind.verbs.empty());
    if (std::ranges::find(kind.verbs, "list") == kind.verbs.end()) continue;
    EXPECT_NE(FindKind(kind.group, kind.version, std::string(kind.kind) + "List"), nullptr);
    EXPECT_GE(std::ranges::count(kind.columns, "Name", &ColumnSchema::name), 1) << kind.kind;
  }
}

TEST(Kinds, OneVersionOfEachIsStored) {
  for (const KindSchema& kind : AllKinds()) {
    ASSERT_NE(kind.storage, nullptr) << kind.kind;
    EXPECT_TRUE(kind.storage->storage_version) << kind.kind;
    EXPECT_EQ(kind.storage->kind, kind.kind);
    EXPECT_EQ(kind.storage_version, kind.storage == &kind) << kind.kind;
  }
  EXPECT_EQ(FindKind("resource.k8s.io", "v1", "DeviceTaintRule")->storage->version, "v1beta2");
  EXPECT_EQ(FindKind("resource.k8s.io", "v1beta1", "ResourceSlice")->storage->version, "v1");
  EXPECT_EQ(FindKind("events.k8s.io", "v1", "Event")->storage, FindKind("", "v1", "Event"));
}

TEST(Kinds, OthersAreNotFound) {
  EXPECT_EQ(FindKind("", "v1", "Pods"), nullptr);
  EXPECT_EQ(FindKind("", "v2", "Pod"), nullptr);
  EXPECT_EQ(FindKind("resource.k8s.io", "v1beta1", "DeviceTaintRule"), nullptr);
  EXPECT_EQ(FindResource("", "v1", ""), nullptr);
  EXPECT_EQ(FindResource("policy", "v1", "evictions"), nullptr);
  EXPECT_EQ(FindKindByApiVersion("/v1", "Pod"), nullptr);
  EXPECT_EQ(FindKindByApiVersion("", "Pod"), nullptr);
  EXPECT_EQ(FindKindByApiVersion("resource.k8s.io/v1/x", "ResourceClaim"), nullptr);
}

TEST(Kinds, PodsAreDescribedInFull) {
  const KindSchema* pod = FindKindByApiVersion("v1", "Pod");
  ASSERT_NE(pod, nullptr);
  EXPECT_TRUE(pod->namespaced);
  EXPECT_THAT(pod->short_names, ElementsAre("po"));
  EXPECT_THAT(pod->categories, ElementsAre("all"));
  EXPECT_THAT(pod->subresources,
              testing::IsSupersetOf({"status", "binding", "log", "exec", "eviction", "resize"}));
  EXPECT_THAT(pod->field_selectors, testing::IsSupersetOf({"spec.nodeName", "status.phase"}));
  std::vector<std::string_view> names;
  std::vector<std::string_view> wide;
  for (const ColumnSchema& column : pod->columns) {
    (column.priority > 0 ? wide : names).push_back(column.name);
  }
  EXPECT_THAT(names, ElementsAre("Name", "Ready", "Status", "Restarts", "Age"));
  EXPECT_THAT(wide, ElementsAre("IP", "Node", "Nominated Node", "Readiness Gates"));
}

}  // namespace
}  // namespace drakkar::api
