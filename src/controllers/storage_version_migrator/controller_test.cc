#include "controllers/storage_version_migrator/controller.h"

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "controllers/testing/controllers_fixture.h"
#include "controllers/workload/pod_facts.h"

namespace drakkar::controllers {
namespace {

constexpr std::string_view kWidgets = R"({"group":"example.com","resource":"widgets"})";

class StorageVersionMigratorTest : public ControllersFixture {
 protected:
  static std::string Version(std::string_view name, bool is_stored) {
    return StrCat(R"({"name":")", name, R"(","served":true,"storage":)",
                  is_stored ? "true" : "false", R"(,"schema":{"openAPIV3Schema":{"type":"object",)",
                  R"("x-kubernetes-preserve-unknown-fields":true}}})");
  }
  static std::string Versions(std::string_view stored) {
    return StrCat("[", Version("v1", stored == "v1"), ",", Version("v2", stored == "v2"), "]");
  }
  // Widgets are stored in v1, then v2 becomes the stored version.
  void MakeWidgets(int count) {
    Create(StrCat(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",)",
                  R"("metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com",)",
                  R"("scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},)",
                  R"("versions":)", Versions("v1"), "}}"));
    const api::KindSchema* kind = server_.core().FindKind("example.com/v1", "Widget");
    ASSERT_NE(kind, nullptr);
    for (int i = 0; i < count; ++i) {
      const auto widget = api::ParseJson(StrCat(
          R"({"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w)", i, R"("}})"));
      server_.client().Create({kind, "default", "", ""}, *widget, {}, [](client::Reply reply) {
        EXPECT_TRUE(reply.ok()) << reply.error->message;
      });
    }
    Settle();
    Change("CustomResourceDefinition", "widgets.example.com", "", [](api::Draft& definition) {
      const auto versions = api::ParseJson(Versions("v2"));
      definition["spec"]["versions"] = api::Draft(*versions);
    });
  }
  std::size_t StoredIn(std::string_view version) {
    std::size_t count = 0;
    for (const api::ObjectPtr& each : All("example.com", "widgets")) {
      if (each->api_version() == version) ++count;
    }
    return count;
  }
  static std::string Migration(std::string_view name, std::string_view resource) {
    return StrCat(R"({"apiVersion":"storagemigration.k8s.io/v1","kind":"StorageVersionMigration",)",
                  R"("metadata":{"name":")", name, R"("},"spec":{"resource":)", resource, "}}");
  }
  void Migrate(std::string_view name, std::string_view resource) {
    Create(Migration(name, resource));
  }
  // "True: message" of a condition.
  std::string Condition(const std::string& name, std::string_view type) {
    const api::ObjectPtr migration = server_.Get("StorageVersionMigration", name);
    const api::Value condition = FindCondition((*migration)["status"], type);
    return StrCat(condition["status"].str(), ": ", condition["message"].str());
  }
  std::string Of(const api::ObjectPtr& object, api::FieldName field) {
    return api::WriteJson((*object)["status"][field]);
  }
};

TEST_F(StorageVersionMigratorTest, EveryObjectIsStoredInTheNewVersion) {
  MakeWidgets(250);
  ASSERT_EQ(StoredIn("example.com/v1"), 250u);
  Migrate("m", kWidgets);
  Settle(std::chrono::seconds(5));
  EXPECT_EQ(StoredIn("example.com/v2"), 250u);
  EXPECT_EQ(Condition("m", "Succeeded"), "True: Migration completed");
  EXPECT_EQ(Condition("m", "Running"), "False: Migration completed");
  const api::ObjectPtr migration = server_.Get("StorageVersionMigration", "m");
  EXPECT_TRUE(ParseInt64((*migration)["status"]["resourceVersion"].str()));
}

TEST_F(StorageVersionMigratorTest, TheDefinitionThenListsOnlyTheNewVersion) {
  MakeWidgets(1);
  EXPECT_EQ(Of(server_.Get("CustomResourceDefinition", "widgets.example.com"), "storedVersions"),
            R"(["v1","v2"])");
  Migrate("m", kWidgets);
  Settle(std::chrono::seconds(5));
  const api::ObjectPtr definition = server_.Get("CustomResourceDefinition", "widgets.example.com");
  EXPECT_EQ(Of(definition, "storedVersions"), R"(["v2"])");
  const api::Value condition = FindCondition((*definition)["status"], "StorageMigrating");
  EXPECT_EQ(condition["status"].str(), "False");
  EXPECT_EQ(condition["reason"].str(), "MigrationSucceeded");
  EXPECT_EQ(FindCondition((*definition)["status"], "Established")["status"].str(), "True");
}

TEST_F(StorageVersionMigratorTest, StoredVersionsStayIfTheDefinitionChangedMeanwhile) {
  MakeWidgets(1);
  faulty_.loses = [](std::string_view verb, const client::ResourceRef& ref, const api::TreePtr&) {
    return verb == "patch" && ref.kind->kind == "Widget";
  };
  Migrate("m", kWidgets);
  Settle(std::chrono::seconds(1));
  Change("CustomResourceDefinition", "widgets.example.com", "",
         [](api::Draft& definition) { definition["spec"]["names"]["singular"] = "widgety"; });
  faulty_.loses = nullptr;
  Settle(std::chrono::minutes(1));
  EXPECT_EQ(Condition("m", "Succeeded"), "True: Migration completed");
  EXPECT_EQ(Of(server_.Get("CustomResourceDefinition", "widgets.example.com"), "storedVersions"),
            R"(["v1","v2"])");
}

TEST_F(StorageVersionMigratorTest, WhatFailsForNowIsTriedAgain) {
  MakeWidgets(3);
  faulty_.loses = [](std::string_view verb, const client::ResourceRef& ref, const api::TreePtr&) {
    return verb == "patch" && ref.name == "w1";
  };
  Migrate("m", kWidgets);
  Settle(std::chrono::seconds(5));
  EXPECT_EQ(Condition("m", "Running"),
            "True: The migration is running, 1/3 objects not yet migrated; transient error: "
            "connection closed");
  EXPECT_EQ(Condition("m", "Succeeded"), ": ");
  faulty_.loses = nullptr;
  Settle(std::chrono::minutes(1));
  EXPECT_EQ(Condition("m", "Succeeded"), "True: Migration completed");
  EXPECT_EQ(StoredIn("example.com/v2"), 3u);
}

TEST_F(StorageVersionMigratorTest, AResourceThatNobodyServesFailsAfterAMinute) {
  Migrate("m", R"({"group":"example.com","resource":"widgets"})");
  Settle(std::chrono::seconds(50));
  EXPECT_EQ(Condition("m", "Failed"), ": ");
  Settle(std::chrono::minutes(1));
  EXPECT_EQ(Condition("m", "Failed"),
            "True: migration encountered unhandled error: resource does not exist in discovery");
}

TEST_F(StorageVersionMigratorTest, AResourceThatCannotBeWrittenFailsAtOnce) {
  Migrate("m", R"({"group":"","resource":"componentstatuses"})");
  Settle(std::chrono::seconds(1));
  EXPECT_EQ(Condition("m", "Failed"),
            "True: migration encountered unhandled error: resource \"/v1, "
            "Resource=componentstatuses\" does not support discovery operations: [update patch "
            "list]");
}

TEST_F(StorageVersionMigratorTest, OneMigrationOfAResourceRunsAtATime) {
  MakeWidgets(1);
  faulty_.loses = [](std::string_view verb, const client::ResourceRef& ref, const api::TreePtr&) {
    return verb == "patch" && ref.kind->kind == "Widget";
  };
  Migrate("b", kWidgets);
  Settle(std::chrono::seconds(2));
  Migrate("a", kWidgets);
  Settle(std::chrono::seconds(2));
  EXPECT_TRUE(Condition("b", "Running").starts_with("True"));
  EXPECT_EQ(Condition("a", "Running"), ": ");
  faulty_.loses = nullptr;
  Settle(std::chrono::minutes(1));
  EXPECT_EQ(Condition("b", "Succeeded"), "True: Migration completed");
  EXPECT_EQ(Condition("a", "Succeeded"), "True: Migration completed");
}

TEST_F(StorageVersionMigratorTest, FewWritesAreInFlight) {
  MakeWidgets(50);
  std::size_t sent = 0;
  // Counts the patches that are sent before the first of them is answered.
  faulty_.loses = [&](std::string_view verb, const client::ResourceRef& ref, const api::TreePtr&) {
    if (verb == "patch" && ref.kind->kind == "Widget") ++sent;
    return false;
  };
  server_.Create(Migration("m", kWidgets));  // and does not wait
  while (StoredIn("example.com/v2") == 0 && loop_.RunOne()) {
  }
  EXPECT_EQ(sent, StorageVersionMigrator::kInFlight);
  Settle(std::chrono::seconds(5));
  EXPECT_EQ(sent, 50u);
}

}  // namespace
}  // namespace drakkar::controllers
