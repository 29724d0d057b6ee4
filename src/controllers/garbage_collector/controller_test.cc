#include "controllers/garbage_collector/controller.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "base/exec/work_budget.h"
#include "controllers/testing/controllers_fixture.h"

namespace drakkar::controllers {
namespace {

class GarbageCollectorTest : public ControllersFixture {
 protected:
  // A reference to an owner with this number; none of them exists.
  static std::string Owner(std::size_t number) {
    return StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","name":"gone-)", number, R"(","uid":"u)",
                  number, R"("})");
  }
  static std::string ConfigMap(std::string_view name, std::string_view owners) {
    return StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")", name,
                  R"(","namespace":"default","ownerReferences":[)", owners, "]}}");
  }
  // The owner named `name`, as a reference to it.
  std::string Reference(const std::string& name, bool blocks = true) {
    const api::ObjectPtr owner = server_.Get("ConfigMap", StrCat("default/", name));
    return StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","name":")", name,
                  R"(","blockOwnerDeletion":)", blocks ? "true" : "false", R"(,"uid":")",
                  owner->uid(), R"("})");
  }
  void Own(const std::string& name, const std::string& owners) {
    server_.Create(ConfigMap(name, owners));
  }
  bool Exists(const std::string& name) {
    return server_.Get("ConfigMap", StrCat("default/", name)) != nullptr;
  }
  void DeleteInForeground(const std::string& name) {
    ASSERT_TRUE(
        server_.Delete("ConfigMap", StrCat("default/", name), {.propagation_policy = "Foreground"})
            .ok());
    Settle(std::chrono::seconds(30));
  }
  void KeepAlive(const std::string& name, bool keep) {
    Change("ConfigMap", StrCat("default/", name), "", [&](api::Draft& object) {
      if (keep) {
        object["metadata"]["finalizers"].Append("example.com/x");
      } else {
        // Those of the garbage collector stay.
        std::erase_if(object["metadata"]["finalizers"].MutableElements(),
                      [](const api::Draft& each) { return each.str() == "example.com/x"; });
      }
    });
    Settle(std::chrono::seconds(30));
  }

  // Steps that decisions take until nothing happens any more.
  std::int64_t StepsUntilSettled() {
    const WorkBudget budget(WorkBudget::kUnlimited);
    Settle(std::chrono::seconds(30));
    return budget.used();
  }
};

TEST_F(GarbageCollectorTest, DeletesAnObjectWhoseManyOwnersAreGoneInLinearTime) {
  constexpr std::size_t kOwners = 1'000;
  std::string owners;
  for (std::size_t i = 0; i < kOwners; ++i) owners += StrCat(i == 0 ? "" : ",", Owner(i));
  server_.Create(ConfigMap("dependent", owners));
  EXPECT_LT(StepsUntilSettled(), static_cast<std::int64_t>(100 * kOwners));
  EXPECT_EQ(server_.Get("ConfigMap", "default/dependent"), nullptr);
}

TEST_F(GarbageCollectorTest, DropsTheOwnersThatAreGoneAndKeepsTheObject) {
  const api::ObjectPtr owner = Create(ConfigMap("owner", ""));
  std::string owners = StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":")",
                              owner->uid(), R"("})");
  for (std::size_t i = 0; i < 200; ++i) owners += StrCat(",", Owner(i));
  server_.Create(ConfigMap("dependent", owners));
  Settle(std::chrono::seconds(30));
  const api::ObjectPtr kept = server_.Get("ConfigMap", "default/dependent");
  ASSERT_NE(kept, nullptr);
  ASSERT_EQ(OwnersOf(*kept).size(), 1u);
  EXPECT_EQ(OwnersOf(*kept).at(0)["uid"].str(), owner->uid());
}

TEST_F(GarbageCollectorTest, AnOwnerOfAKindThatIsNotServedKeepsItsDependents) {
  server_.Create(ConfigMap(
      "dependent",
      StrCat(Owner(1), R"(,{"apiVersion":"example.com/v1","kind":"Foo","name":"foo","uid":"f"})")));
  Settle(std::chrono::seconds(30));
  EXPECT_NE(server_.Get("ConfigMap", "default/dependent"), nullptr);
}

TEST_F(GarbageCollectorTest, ForegroundDeletionOfManyDependentsTakesLinearTime) {
  constexpr std::size_t kDependents = 400;
  const api::ObjectPtr owner = Create(ConfigMap("owner", ""));
  const std::string reference = StrCat(
      R"({"apiVersion":"v1","kind":"ConfigMap","name":"owner","blockOwnerDeletion":true,"uid":")",
      owner->uid(), R"("})");
  for (std::size_t i = 0; i < kDependents; ++i) {
    server_.Create(ConfigMap(StrCat("d", i), reference));
  }
  Settle();
  ASSERT_TRUE(
      server_.Delete("ConfigMap", "default/owner", {.propagation_policy = "Foreground"}).ok());
  EXPECT_LT(StepsUntilSettled(), static_cast<std::int64_t>(40 * kDependents));
  EXPECT_EQ(server_.Get("ConfigMap", "default/owner"), nullptr);
  EXPECT_EQ(server_.Get("ConfigMap", "default/d0"), nullptr);
}

TEST_F(GarbageCollectorTest, ADependentWithAnotherOwnerOutlivesAForegroundDeletion) {
  Create(ConfigMap("first", ""));
  Create(ConfigMap("second", ""));
  Own("shared", StrCat(Reference("first"), ",", Reference("second")));
  Own("own", Reference("first"));
  Settle();
  DeleteInForeground("first");
  EXPECT_FALSE(Exists("first"));
  EXPECT_FALSE(Exists("own"));
  ASSERT_TRUE(Exists("shared"));
  const api::ObjectPtr shared = server_.Get("ConfigMap", "default/shared");
  EXPECT_FALSE(shared->is_being_deleted());
  ASSERT_EQ(OwnersOf(*shared).size(), 1u);
  EXPECT_EQ(OwnersOf(*shared).at(0)["name"].str(), "second");
  // Both owners at once.
  Create(ConfigMap("third", ""));
  Own("both", StrCat(Reference("second"), ",", Reference("third")));
  Settle();
  for (const char* name : {"default/second", "default/third"}) {
    server_.Delete("ConfigMap", name, {.propagation_policy = "Foreground"});
  }
  Settle(std::chrono::seconds(30));
  for (const char* name : {"second", "third", "both", "shared"}) EXPECT_FALSE(Exists(name)) << name;
}

TEST_F(GarbageCollectorTest, OnlyBlockingDependentsHoldUpAForegroundDeletion) {
  Create(ConfigMap("owner", ""));
  Own("blocking", Reference("owner"));
  Own("loose", Reference("owner", /*blocks=*/false));
  Settle();
  KeepAlive("blocking", true);
  KeepAlive("loose", true);
  DeleteInForeground("owner");
  EXPECT_TRUE(Exists("owner"));
  for (const char* name : {"default/blocking", "default/loose"}) {
    EXPECT_TRUE(server_.Get("ConfigMap", name)->is_being_deleted()) << name;
  }
  KeepAlive("blocking", false);
  EXPECT_FALSE(Exists("blocking"));
  EXPECT_FALSE(Exists("owner")) << "the other one does not block";
  EXPECT_TRUE(Exists("loose"));
  KeepAlive("loose", false);
  EXPECT_FALSE(Exists("loose"));
}

TEST_F(GarbageCollectorTest, AForegroundDeletionWaitsForTheDependentsOfItsDependents) {
  Create(ConfigMap("top", ""));
  Create(ConfigMap("middle", Reference("top")));
  Own("bottom", Reference("middle"));
  Settle();
  KeepAlive("bottom", true);
  DeleteInForeground("top");
  for (const char* name : {"top", "middle", "bottom"}) EXPECT_TRUE(Exists(name)) << name;
  KeepAlive("bottom", false);
  for (const char* name : {"top", "middle", "bottom"}) EXPECT_FALSE(Exists(name)) << name;
}

TEST_F(GarbageCollectorTest, ObjectsThatOwnEachOtherCanBeDeletedInForeground) {
  Create(ConfigMap("a", ""));
  Create(ConfigMap("b", Reference("a")));
  Change("ConfigMap", "default/a", "", [&](api::Draft& object) {
    object["metadata"]["ownerReferences"].Append(
        api::Draft(api::ParseJson(Reference("b")).value()));
  });
  Settle();
  DeleteInForeground("a");
  EXPECT_FALSE(Exists("a"));
  EXPECT_FALSE(Exists("b"));
}

TEST_F(GarbageCollectorTest, OrphansKeepTheirOtherOwners) {
  Create(ConfigMap("first", ""));
  Create(ConfigMap("second", ""));
  Own("shared", StrCat(Reference("first"), ",", Reference("second")));
  Own("own", Reference("first"));
  Settle();
  ASSERT_TRUE(server_.Delete("ConfigMap", "default/first", {.propagation_policy = "Orphan"}).ok());
  Settle(std::chrono::seconds(30));
  EXPECT_FALSE(Exists("first"));
  ASSERT_TRUE(Exists("shared") && Exists("own"));
  EXPECT_EQ(OwnersOf(*server_.Get("ConfigMap", "default/shared")).size(), 1u);
  EXPECT_TRUE(OwnersOf(*server_.Get("ConfigMap", "default/own")).empty());
}

}  // namespace
}  // namespace drakkar::controllers
