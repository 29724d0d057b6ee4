#include "controllers/garbage_collector/controller.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace drakkar::controllers
