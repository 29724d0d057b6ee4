#include "api/json/writer.h"
#include "api/scheme/scheme.h"
#include "apiserver/custom/definition.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr char kSpecSchema[] =
    R"({"type":"object","required":["size"],"properties":{"size":{"type":"integer","minimum":1},)"
    R"("color":{"type":"string","default":"red"},"parts":{"type":"array",)"
    R"("x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object",)"
    R"("required":["name"],"properties":{"name":{"type":"string"},"count":{"type":"integer"}}}}},)"
    R"("x-kubernetes-validations":[{"rule":"self.size < 100","message":"too big"},)"
    R"({"rule":"self.size >= oldSelf.size","message":"cannot shrink"}]})";

class CustomResourcesTest : public CoreFixture {
 protected:
  CustomResourcesTest() { StartCore(nullptr); }

  static std::string VersionJson(std::string_view name, bool storage,
                                 std::string_view spec = kSpecSchema,
                                 std::string_view selectable = ".spec.color") {
    return StrCat(R"({"name":")", name, R"(","served":true,"storage":)", storage ? "true" : "false",
                  R"(,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":)", spec,
                  R"(,"status":{"type":"object","properties":{"replicas":{"type":"integer"},)",
                  R"("selector":{"type":"string"}}}}}},"subresources":{"status":{},"scale":)",
                  R"({"specReplicasPath":".spec.size","statusReplicasPath":".status.replicas",)",
                  R"("labelSelectorPath":".status.selector"}},"selectableFields":[{"jsonPath":")",
                  selectable, R"("}],"additionalPrinterColumns":[{"name":"Size","type":"integer",)",
                  R"("jsonPath":".spec.size"}]})");
  }
  static std::string DefinitionJson(std::string_view versions, std::string_view plural = "widgets",
                                    std::string_view kind = "Widget",
                                    std::string_view short_name = "wd") {
    return StrCat(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",)",
                  R"("metadata":{"name":")", plural, R"(.example.com"},"spec":{"group":)",
                  R"("example.com","scope":"Namespaced","names":{"plural":")", plural,
                  R"(","kind":")", kind, R"(","shortNames":[")", short_name, R"("]},"versions":[)",
                  versions, "]}}");
  }
  static std::string WidgetJson(std::string_view name, std::string_view spec,
                                std::string_view version = "v1") {
    return StrCat(R"({"apiVersion":"example.com/)", version, R"(","kind":"Widget","metadata":)",
                  R"({"name":")", name, R"("},"spec":)", spec, "}");
  }
  static std::string Message(const Response& response) {
    return response.failure ? response.failure->message : "accepted";
  }
  Response Get(std::string_view name, std::string_view version = "example.com/v1",
               std::string subresource = "") {
    Request request;
    request.user = AdminUser();
    request.kind = core_->FindKind(version, "Widget");
    request.namespace_ = "default";
    request.name = name;
    request.subresource = std::move(subresource);
    return Handle(std::move(request));
  }
  Response Update(std::string_view json, std::string subresource = "") {
    Request request = RequestFor(Verb::kUpdate, json, AdminUser());
    request.subresource = std::move(subresource);
    api::Draft draft(request.object);
    const api::ObjectPtr now = core_->Find(
        request.kind->group, request.kind->plural,
        request.kind->namespaced ? StrCat(request.namespace_, "/", request.name) : request.name);
    if (now != nullptr) {
      draft["metadata"]["resourceVersion"] = std::to_string(now->resource_version());
    }
    request.object = draft.Freeze();
    return Handle(std::move(request));
  }
  static std::string Spec(const Response& response) {
    if (response.object == nullptr) return Message(response);
    return api::WriteJson(response.object->root()["spec"]);
  }
};

TEST_F(CustomResourcesTest, ADefinitionIsEstablishedAndItsKindServedAtOnce) {
  EXPECT_EQ(core_->FindKind("example.com/v1", "Widget"), nullptr);
  const api::ObjectPtr definition = Create(DefinitionJson(VersionJson("v1", true)));
  const api::Value status = definition->root()["status"];
  EXPECT_EQ(status["conditions"].at(0)["type"].str(), "NamesAccepted");
  EXPECT_EQ(status["conditions"].at(0)["status"].str(), "True");
  EXPECT_EQ(status["conditions"].at(1)["type"].str(), "Established");
  EXPECT_EQ(status["conditions"].at(1)["status"].str(), "True");
  EXPECT_EQ(api::WriteJson(status["storedVersions"]), R"(["v1"])");
  EXPECT_EQ(status["acceptedNames"]["listKind"].str(), "WidgetList");
  EXPECT_EQ(status["acceptedNames"]["singular"].str(), "widget");
  const api::KindSchema* kind = core_->FindKind("example.com/v1", "Widget");
  ASSERT_NE(kind, nullptr);
  EXPECT_EQ(core_->custom_kinds().current()->FindResource("example.com", "v1", "widgets"), kind);
  const api::ObjectPtr widget = Create(WidgetJson("w", R"({"size":3})"));
  EXPECT_EQ(api::WriteJson(widget->root()["spec"]), R"({"size":3,"color":"red"})");
  EXPECT_EQ(widget->root()["metadata"]["generation"].integer(), 1);
  EXPECT_FALSE(widget->uid().empty());
  EXPECT_EQ(Spec(Get("w")), R"({"size":3,"color":"red"})");
}

TEST_F(CustomResourcesTest, ObjectsAreValidatedPrunedAndDefaulted) {
  Create(DefinitionJson(VersionJson("v1", true)));
  EXPECT_NE(Message(TryCreate(WidgetJson("a", "{}"))).find("spec.size: Required value"),
            std::string::npos);
  const Response typed = TryCreate(WidgetJson("a", R"({"size":"3"})"));
  EXPECT_EQ(typed.failure->code, 422);
  EXPECT_NE(Message(typed).find("spec.size in body must be of type integer"), std::string::npos);
  const Response shaped = TryCreate(WidgetJson("a", R"({"size":1,"parts":{}})"));
  EXPECT_EQ(shaped.failure->code, 422);
  EXPECT_NE(Message(shaped).find("spec.parts in body must be of type array"), std::string::npos);
  EXPECT_NE(Message(TryCreate(WidgetJson("a", R"({"size":100})"))).find("too big"),
            std::string::npos);
  const Response pruned = TryCreate(WidgetJson("a", R"({"size":1,"unknown":true})"));
  EXPECT_EQ(Spec(pruned), R"({"size":1,"color":"red"})");
  ASSERT_EQ(pruned.warnings.size(), 1u);
  EXPECT_EQ(pruned.warnings[0], R"(unknown field "spec.unknown")");
  Request strict = RequestFor(Verb::kCreate, WidgetJson("b", R"({"size":1,"x":1})"), AdminUser());
  strict.field_validation = FieldValidation::kStrict;
  const Response refused = Handle(std::move(strict));
  EXPECT_EQ(refused.failure->code, 400);
  EXPECT_NE(Message(refused).find(R"(strict decoding error: unknown field "spec.x")"),
            std::string::npos);
}

TEST_F(CustomResourcesTest, UpdatesSeeTransitionRulesAndCountGenerations) {
  Create(DefinitionJson(VersionJson("v1", true)));
  Create(WidgetJson("w", R"({"size":3})"));
  EXPECT_NE(Message(Update(WidgetJson("w", R"({"size":2})"))).find("cannot shrink"),
            std::string::npos);
  const Response grown = Update(WidgetJson("w", R"({"size":4})"));
  ASSERT_EQ(Message(grown), "accepted");
  EXPECT_EQ(grown.object->root()["metadata"]["generation"].integer(), 2);
  Request blind = RequestFor(Verb::kUpdate, WidgetJson("w", R"({"size":5})"), AdminUser());
  EXPECT_NE(Message(Handle(std::move(blind))).find("metadata.resourceVersion"), std::string::npos);
}

TEST_F(CustomResourcesTest, StatusAndScaleAreSubresources) {
  Create(DefinitionJson(VersionJson("v1", true)));
  Create(WidgetJson("w", R"({"size":3})"));
  const Response status = Update(
      R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},
          "spec":{"size":50},"status":{"replicas":2,"selector":"a=b"}})",
      "status");
  ASSERT_EQ(Message(status), "accepted");
  EXPECT_EQ(status.object->root()["spec"]["size"].integer(), 3) << "only the status changes";
  EXPECT_EQ(status.object->root()["metadata"]["generation"].integer(), 1);
  const Response scale = Get("w", "example.com/v1", "scale");
  ASSERT_EQ(Message(scale), "accepted");
  EXPECT_EQ(scale.object->root()["spec"]["replicas"].integer(), 3);
  EXPECT_EQ(scale.object->root()["status"]["replicas"].integer(), 2);
  EXPECT_EQ(scale.object->root()["status"]["selector"].str(), "a=b");
  Request rescale;
  rescale.user = AdminUser();
  rescale.verb = Verb::kPatch;
  rescale.patch = PatchKind::kMerge;
  rescale.kind = core_->FindKind("example.com/v1", "Widget");
  rescale.namespace_ = "default";
  rescale.name = "w";
  rescale.subresource = "scale";
  rescale.text = R"({"spec":{"replicas":7}})";
  EXPECT_EQ(Message(Handle(std::move(rescale))), "accepted");
  EXPECT_EQ(Get("w").object->root()["spec"]["size"].integer(), 7);
}

TEST_F(CustomResourcesTest, VersionsConvertByName) {
  Create(DefinitionJson(StrCat(
      VersionJson("v1", true), ",",
      VersionJson("v1beta1", false, R"({"type":"object","properties":{"size":{"type":"integer"}}})",
                  ".spec.size"))));
  Create(WidgetJson("w", R"({"size":3,"color":"blue"})"));
  const Response old = Get("w", "example.com/v1beta1");
  ASSERT_EQ(Message(old), "accepted");
  EXPECT_EQ(old.object->api_version(), "example.com/v1beta1");
  EXPECT_EQ(Spec(old), R"({"size":3})");
  Create(WidgetJson("x", R"({"size":1})", "v1beta1"));
  EXPECT_EQ(Get("x").object->api_version(), "example.com/v1");
}

TEST_F(CustomResourcesTest, ServerSideApplyMergesKeyedLists) {
  Create(DefinitionJson(VersionJson("v1", true)));
  const api::KindSchema& kind = *core_->FindKind("example.com/v1", "Widget");
  const auto config = [](std::string_view part) {
    return StrCat(R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},)",
                  R"("spec":{"size":1,"parts":[{"name":")", part, R"(","count":1}]}})");
  };
  ASSERT_EQ(Message(Apply(kind, "w", "", "one", config("a"))), "accepted");
  ASSERT_EQ(Message(Apply(kind, "w", "", "two", config("b"))), "accepted");
  EXPECT_EQ(api::WriteJson(Get("w").object->root()["spec"].Entry("parts")),
            R"([{"name":"a","count":1},{"name":"b","count":1}])");
}

TEST_F(CustomResourcesTest, PatchesWorkExceptStrategicOnes) {
  Create(DefinitionJson(VersionJson("v1", true)));
  Create(WidgetJson("w", R"({"size":3})"));
  Request patch;
  patch.user = AdminUser();
  patch.verb = Verb::kPatch;
  patch.kind = core_->FindKind("example.com/v1", "Widget");
  patch.namespace_ = "default";
  patch.name = "w";
  patch.text = R"({"spec":{"color":"green","gone":1}})";
  patch.patch = PatchKind::kStrategicMerge;
  EXPECT_EQ(Handle(patch).failure->code, 415);
  patch.patch = PatchKind::kMerge;
  EXPECT_EQ(Spec(Handle(patch)), R"({"size":3,"color":"green"})");
  patch.patch = PatchKind::kJson;
  patch.text = R"([{"op":"replace","path":"/spec/size","value":"x"}])";
  EXPECT_EQ(Handle(patch).failure->code, 422);
}

TEST_F(CustomResourcesTest, SelectableFieldsSelect) {
  Create(DefinitionJson(VersionJson("v1", true)));
  Create(WidgetJson("a", R"({"size":1,"color":"blue"})"));
  Create(WidgetJson("b", R"({"size":1})"));
  Request list;
  list.user = AdminUser();
  list.verb = Verb::kList;
  list.kind = core_->FindKind("example.com/v1", "Widget");
  list.field_selector = "spec.color=blue";
  const Response found = Handle(list);
  ASSERT_EQ(found.items.size(), 1u);
  EXPECT_EQ(found.items[0]->name(), "a");
  list.field_selector = "spec.size=1";
  EXPECT_EQ(Handle(list).failure->code, 400);
}

TEST_F(CustomResourcesTest, ADefinitionCanChange) {
  Create(DefinitionJson(VersionJson("v1", true)));
  Create(WidgetJson("w", R"({"size":3})"));
  const api::KindSchema* before = core_->FindKind("example.com/v1", "Widget");
  const Response changed = Update(
      DefinitionJson(VersionJson("v2", true,
                                 R"({"type":"object","properties":{"size":{"type":"integer"},)"
                                 R"("shape":{"type":"string","default":"round"}}})") +
                     "," + VersionJson("v1", false)));
  EXPECT_NE(Message(changed).find("spec.versions[0].selectableFields"), std::string::npos)
      << "v2 has no color";
  const std::string with_color =
      R"({"type":"object","properties":{"size":{"type":"integer"},"color":{"type":"string"},)"
      R"("shape":{"type":"string","default":"round"}}})";
  ASSERT_EQ(Message(Update(DefinitionJson(
                StrCat(VersionJson("v2", true, with_color), ",", VersionJson("v1", false))))),
            "accepted");
  EXPECT_NE(core_->FindKind("example.com/v1", "Widget"), before);
  ASSERT_NE(core_->FindKind("example.com/v2", "Widget"), nullptr);
  EXPECT_EQ(Get("w", "example.com/v2").object->api_version(), "example.com/v2");
  Create(WidgetJson("x", R"({"size":1})", "v2"));
  EXPECT_EQ(core_->Find("example.com", "widgets", "default/x")->root()["spec"].Entry("shape").str(),
            "round");
  const api::ObjectPtr definition =
      core_->Find("apiextensions.k8s.io", "customresourcedefinitions", "widgets.example.com");
  EXPECT_EQ(api::WriteJson(definition->root()["status"]["storedVersions"]), R"(["v1","v2"])");
  EXPECT_NE(Message(Update(DefinitionJson(VersionJson("v2", true, with_color))))
                .find("must remain in spec.versions until a storage migration"),
            std::string::npos);
}

TEST_F(CustomResourcesTest, StoredObjectsHaveTheDefaultsOfAChangedDefinition) {
  Create(DefinitionJson(VersionJson("v1", true)));
  Create(WidgetJson("w", R"({"size":3})"));
  const storage::Revision stored = Get("w").object->resource_version();
  ASSERT_EQ(Message(Update(DefinitionJson(VersionJson(
                "v1", true,
                R"({"type":"object","properties":{"size":{"type":"integer"},)"
                R"("color":{"type":"string"},"shape":{"type":"string","default":"round"}}})")))),
            "accepted");
  EXPECT_EQ(Spec(Get("w")), R"({"size":3,"color":"red","shape":"round"})");
  EXPECT_EQ(Get("w").object->resource_version(), stored) << "nothing was written";
  loop_.Advance(std::chrono::seconds(1));  // until everything is durable
  core_.reset();
  store_.reset();
  StartCore(nullptr);
  EXPECT_EQ(Spec(Get("w")), R"({"size":3,"color":"red","shape":"round"})");
}

TEST_F(CustomResourcesTest, NamesBelongToOneDefinitionOfAGroup) {
  Create(DefinitionJson(VersionJson("v1", true)));
  const api::ObjectPtr other =
      Create(DefinitionJson(VersionJson("v1", true), "wheels", "Wheel", "wd"));
  const api::Value names = other->root()["status"]["conditions"].at(0);
  EXPECT_EQ(names["status"].str(), "False");
  EXPECT_EQ(names["reason"].str(), "ShortNamesConflict");
  EXPECT_EQ(names["message"].str(), "\"wd\" is already in use");
  EXPECT_EQ(core_->FindKind("example.com/v1", "Wheel"), nullptr) << "not established";
}

TEST_F(CustomResourcesTest, NamesThatAreGivenUpGoToWhoeverWaitsForThem) {
  Create(DefinitionJson(VersionJson("v1", true)));
  for (const std::string_view plural : {"wheels", "wings"}) {
    Create(DefinitionJson(VersionJson("v1", true), plural, plural == "wings" ? "Wing" : "Wheel"));
  }
  EXPECT_EQ(core_->FindKind("example.com/v1", "Wheel"), nullptr);
  EXPECT_FALSE(
      Delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com")
          .failure);
  loop_.RunUntilIdle();
  const auto reason = [&](const std::string& name) {
    const api::ObjectPtr definition =
        core_->Find("apiextensions.k8s.io", "customresourcedefinitions", name + ".example.com");
    return std::string(definition->root()["status"]["conditions"].at(0)["reason"].str());
  };
  EXPECT_EQ(reason("wheels"), "NoConflicts");
  EXPECT_EQ(reason("wings"), "ShortNamesConflict") << "the other one was first";
  EXPECT_NE(core_->FindKind("example.com/v1", "Wheel"), nullptr);
  EXPECT_EQ(core_->FindKind("example.com/v1", "Wing"), nullptr);
  // A definition can also take another name.
  ASSERT_EQ(Message(Update(DefinitionJson(VersionJson("v1", true), "wheels", "Wheel", "whl"))),
            "accepted");
  loop_.RunUntilIdle();
  EXPECT_EQ(reason("wings"), "NoConflicts");
  EXPECT_NE(core_->FindKind("example.com/v1", "Wing"), nullptr);
}

TEST_F(CustomResourcesTest, DeletingADefinitionDeletesItsObjects) {
  Create(DefinitionJson(VersionJson("v1", true)));
  Create(WidgetJson("w", R"({"size":3})"));
  EXPECT_EQ(Message(Delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "",
                           "widgets.example.com")),
            "accepted");
  loop_.RunUntilIdle();
  EXPECT_EQ(core_->Find("apiextensions.k8s.io", "customresourcedefinitions", "widgets.example.com"),
            nullptr);
  EXPECT_EQ(core_->Find("example.com", "widgets", "default/w"), nullptr);
  EXPECT_EQ(core_->FindKind("example.com/v1", "Widget"), nullptr);
  Create(DefinitionJson(VersionJson("v1", true)));
  EXPECT_EQ(core_->FindCache("example.com", "widgets")->size(), 0u);
  Create(WidgetJson("w", R"({"size":3})"));
}

TEST_F(CustomResourcesTest, ObjectsWithFinalizersHoldUpTheDeletion) {
  Create(DefinitionJson(VersionJson("v1", true)));
  Create(R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w",
      "finalizers":["example.com/wait"]},"spec":{"size":1}})");
  Delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com");
  loop_.Advance(std::chrono::seconds(3));
  ASSERT_NE(core_->Find("example.com", "widgets", "default/w"), nullptr);
  EXPECT_EQ(TryCreate(WidgetJson("x", R"({"size":1})")).failure->code, 405);
  Request release;
  release.user = AdminUser();
  release.verb = Verb::kPatch;
  release.patch = PatchKind::kMerge;
  release.kind = core_->FindKind("example.com/v1", "Widget");
  release.namespace_ = "default";
  release.name = "w";
  release.text = R"({"metadata":{"finalizers":null}})";
  EXPECT_EQ(Message(Handle(std::move(release))), "accepted");
  loop_.Advance(std::chrono::seconds(3));
  EXPECT_EQ(core_->Find("apiextensions.k8s.io", "customresourcedefinitions", "widgets.example.com"),
            nullptr);
}

TEST_F(CustomResourcesTest, KindsAndObjectsSurviveARestart) {
  Create(DefinitionJson(VersionJson("v1", true)));
  Create(WidgetJson("w", R"({"size":3})"));
  loop_.Advance(std::chrono::seconds(1));  // until everything is durable
  core_.reset();
  store_.reset();
  StartCore(nullptr);
  ASSERT_NE(core_->FindKind("example.com/v1", "Widget"), nullptr);
  EXPECT_EQ(Spec(Get("w")), R"({"size":3,"color":"red"})");
}

TEST_F(CustomResourcesTest, DefinitionsAreValidated) {
  EXPECT_NE(Message(TryCreate(DefinitionJson(VersionJson("v1", false))))
                .find("must have exactly one version marked as storage version"),
            std::string::npos);
  EXPECT_NE(Message(TryCreate(DefinitionJson(VersionJson("v1", true), "Widgets")))
                .find("spec.names.plural"),
            std::string::npos);
  EXPECT_NE(Message(TryCreate(DefinitionJson(VersionJson("v1", true, R"({"properties":{}})"))))
                .find("must not be empty for specified object fields"),
            std::string::npos);
  const Response costly = TryCreate(DefinitionJson(VersionJson(
      "v1", true,
      R"({"type":"object","properties":{"color":{"type":"string"},"l":{"type":"array","items":)"
      R"({"type":"string"}}},"x-kubernetes-validations":[{"rule":)"
      R"~("self.l.all(a, self.l.all(b, a == b))"}]})~")));
  EXPECT_NE(Message(costly).find("estimated rule cost exceeds budget"), std::string::npos);
}

TEST_F(CustomResourcesTest, HundredsOfDefinitionsAreServed) {
  const std::string version = VersionJson(
      "v1", true,
      R"({"type":"object","properties":{"size":{"type":"integer"},"color":{"type":"string"}}})");
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(Message(TryCreate(DefinitionJson(version, StrCat("things", i), StrCat("Thing", i),
                                               StrCat("t", i)))),
              "accepted")
        << i;
  }
  EXPECT_EQ(core_->custom_kinds().current()->served().size(), 200u);
  EXPECT_NE(core_->FindKind("example.com/v1", "Thing199"), nullptr);
}

}  // namespace
}  // namespace drakkar::apiserver
