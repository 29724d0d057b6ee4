// What CustomResourceDefinitions say in their status.
#include "apiserver/registry/custom_strategies.h"

#include "api/json/writer.h"
#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

class DefinitionStrategyTest : public CoreFixture {
 protected:
  DefinitionStrategyTest() { StartCore(nullptr); }

  struct Names {
    std::string_view plural;
    std::string_view singular;
    std::string_view kind;
    std::string_view list_kind;
    std::string_view short_name;
    std::string_view group = "example.com";
  };
  static std::string Json(const Names& names) {
    return StrCat(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",)",
                  R"("metadata":{"name":")", names.plural, ".", names.group,
                  R"("},"spec":{"group":")", names.group,
                  R"(","scope":"Namespaced","names":{"plural":")", names.plural,
                  R"(","singular":")", names.singular, R"(","kind":")", names.kind,
                  R"(","listKind":")", names.list_kind, R"(","shortNames":[")", names.short_name,
                  R"("]},"versions":[{"name":"v1","served":true,"storage":true,)",
                  R"("schema":{"openAPIV3Schema":{"type":"object"}}}]}})");
  }
  // "TYPE=STATUS REASON MESSAGE; ..."
  static std::string Conditions(api::Value definition) {
    std::string text;
    for (const api::Value each : definition["status"]["conditions"].elements()) {
      text += StrCat(text.empty() ? "" : "; ", each["type"].str(), "=", each["status"].str(), " ",
                     each["reason"].str(), " ", each["message"].str());
    }
    return text;
  }
  std::string Made(const Names& names) { return Conditions(Create(Json(names))->root()); }
  Response Change(std::string_view name, const std::function<void(api::Draft&)>& change) {
    api::Draft draft(
        core_->Find("apiextensions.k8s.io", "customresourcedefinitions", std::string(name))
            ->tree());
    change(draft);
    return Handle(RequestFor(Verb::kUpdate, api::WriteJson(draft.Freeze()->root()), AdminUser()));
  }
};

constexpr std::string_view kAccepted =
    "NamesAccepted=True NoConflicts no conflicts found; Established=True InitialNamesAccepted the "
    "initial names have been accepted";

std::string Refused(std::string_view reason, std::string_view name) {
  return StrCat("NamesAccepted=False ", reason, " \"", name,
                "\" is already in use; Established=False NotAccepted not all names are accepted");
}

TEST_F(DefinitionStrategyTest, EveryKindOfNameIsTakenOnce) {
  EXPECT_EQ(Made({"cats", "cat", "Cat", "CatList", "ct"}), kAccepted);
  EXPECT_EQ(Made({"dogs", "cat", "Dog", "DogList", "dg"}), Refused("SingularConflict", "cat"));
  EXPECT_EQ(Made({"cat", "x", "X", "XList", "xx"}), Refused("PluralConflict", "cat"))
      << "a singular is in the way of a plural, too";
  EXPECT_EQ(Made({"ct", "y", "Y", "YList", "yy"}), Refused("PluralConflict", "ct"));
  EXPECT_EQ(Made({"birds", "bird", "Bird", "BirdList", "ct"}), Refused("ShortNamesConflict", "ct"));
  EXPECT_EQ(Made({"fish", "fi", "Cat", "FishList", "fs"}), Refused("KindConflict", "Cat"));
  EXPECT_EQ(Made({"ants", "ant", "Ant", "CatList", "an"}), Refused("ListKindConflict", "CatList"));
  EXPECT_EQ(Made({"bees", "bee", "CatList", "BeeList", "be"}), Refused("KindConflict", "CatList"));
}

TEST_F(DefinitionStrategyTest, TheFirstConflictIsReported) {
  EXPECT_EQ(Made({"cats", "cat", "Cat", "CatList", "ct"}), kAccepted);
  EXPECT_EQ(Made({"ct", "cat", "Cat", "CatList", "cats"}), Refused("PluralConflict", "ct"));
  EXPECT_EQ(Made({"a", "cats", "Cat", "CatList", "ct"}), Refused("SingularConflict", "cats"));
  EXPECT_EQ(Made({"b", "bb", "Cat", "CatList", "cats"}), Refused("ShortNamesConflict", "cats"));
  EXPECT_EQ(Made({"c", "cc", "Cat", "CatList", "cx"}), Refused("KindConflict", "Cat"));
}

TEST_F(DefinitionStrategyTest, TheFirstConflictCountsWhoeverHasTheName) {
  EXPECT_EQ(Made({"aa", "a", "Same", "AList", "s1"}), kAccepted);
  EXPECT_EQ(Made({"zz", "taken", "Z", "ZList", "s2"}), kAccepted);
  EXPECT_EQ(Made({"new", "taken", "Same", "NewList", "s3"}), Refused("SingularConflict", "taken"))
      << "although the kind's owner comes first";
}

TEST_F(DefinitionStrategyTest, NamesOfAnotherGroupAreNotInTheWay) {
  EXPECT_EQ(Made({"cats", "cat", "Cat", "CatList", "ct"}), kAccepted);
  EXPECT_EQ(Made({"cats", "cat", "Cat", "CatList", "ct", "other.example.com"}), kAccepted);
}

TEST_F(DefinitionStrategyTest, AnEstablishedOneStaysSoWithoutItsNewName) {
  EXPECT_EQ(Made({"cats", "cat", "Cat", "CatList", "ct"}), kAccepted);
  EXPECT_EQ(Made({"dogs", "dog", "Dog", "DogList", "dg"}), kAccepted);
  loop_.Advance(std::chrono::seconds(10));
  const auto name = [](std::string_view short_name) {
    return [short_name](api::Draft& definition) {
      api::Draft& names = definition["spec"]["names"]["shortNames"];
      names = api::Draft::Array();
      names.Append(std::string(short_name));
    };
  };
  const api::ObjectPtr before =
      core_->Find("apiextensions.k8s.io", "customresourcedefinitions", "dogs.example.com");
  const std::string since((*before)["status"]["conditions"].at(1)["lastTransitionTime"].str());
  Response changed = Change("dogs.example.com", name("ct"));
  ASSERT_FALSE(changed.failure) << changed.failure->message;
  api::Value status = (*changed.object)["status"];
  EXPECT_EQ(Conditions(changed.object->root()),
            "NamesAccepted=False ShortNamesConflict \"ct\" is already in use; Established=True "
            "InitialNamesAccepted the initial names have been accepted");
  EXPECT_EQ(status["acceptedNames"]["shortNames"].at(0).str(), "dg") << "the old one is in force";
  EXPECT_NE(status["conditions"].at(0)["lastTransitionTime"].str(), since);
  EXPECT_EQ(status["conditions"].at(1)["lastTransitionTime"].str(), since) << "did not change";
  changed = Change("dogs.example.com", name("dd"));
  ASSERT_FALSE(changed.failure);
  EXPECT_EQ(Conditions(changed.object->root()), kAccepted);
  EXPECT_EQ((*changed.object)["status"]["acceptedNames"]["shortNames"].at(0).str(), "dd");
}

TEST_F(DefinitionStrategyTest, StoredVersionsAreCollected) {
  Create(Json({"cats", "cat", "Cat", "CatList", "ct"}));
  const Response changed = Change("cats.example.com", [](api::Draft& definition) {
    api::Draft& versions = definition["spec"]["versions"];
    versions.at(0)["storage"] = false;
    versions.Append(
        api::Draft(*api::ParseJson(R"({"name":"v2","served":true,"storage":true,)"
                                   R"("schema":{"openAPIV3Schema":{"type":"object"}}})")));
  });
  ASSERT_FALSE(changed.failure) << changed.failure->message;
  EXPECT_EQ(api::WriteJson((*changed.object)["status"]["storedVersions"]), R"(["v1","v2"])");
  const Response again = Change("cats.example.com", [](api::Draft& definition) {
    definition["metadata"]["labels"].Entry("a") = "b";
  });
  EXPECT_EQ(api::WriteJson((*again.object)["status"]["storedVersions"]), R"(["v1","v2"])");
  EXPECT_EQ((*again.object)["metadata"]["finalizers"].size(), 1u);
}

TEST_F(DefinitionStrategyTest, NamesAreFilledIn) {
  const api::ObjectPtr made = Create(Json({"cats", "", "BigCat", "", "ct"}));
  EXPECT_EQ((*made)["spec"]["names"]["singular"].str(), "bigcat");
  EXPECT_EQ((*made)["spec"]["names"]["listKind"].str(), "BigCatList");
  EXPECT_EQ((*made)["status"]["acceptedNames"]["singular"].str(), "bigcat");
}

}  // namespace
}  // namespace drakkar::apiserver
