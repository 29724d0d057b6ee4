#include "answers/cluster/snapshot_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "api/json/reader.h"
#include "base/text/text.h"

namespace drakkar::answers {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

api::TreePtr List(std::string_view item, std::string_view version = "7") {
  const std::string items = item.empty() ? "" : StrCat(R"({"metadata":{"name":")", item, R"("}})");
  return api::ParseJson(
             StrCat(R"({"metadata":{"resourceVersion":")", version, R"("},"items":[)", items, "]}"))
      .value();
}

// Answers every list with one item named after its collection, unless the test says otherwise.
class SnapshotReaderTest : public ::testing::Test {
 protected:
  Result<Snapshot> Read(std::uint32_t kinds = kEveryKind) {
    return ReadSnapshot(
        [this](const std::vector<std::string>& paths) {
          std::vector<Result<api::TreePtr>> answers;
          for (const std::string& path : paths) {
            asked_.push_back(path);
            answers.push_back(answer_(path));
          }
          return answers;
        },
        {.kinds = kinds, .namespace_ = "team", .now = {}});
  }
  static Result<api::TreePtr> Default(const std::string& path) {
    const std::string plain = path.substr(0, path.find('?'));
    return List(plain.substr(plain.rfind('/') + 1));
  }

  std::function<Result<api::TreePtr>(const std::string&)> answer_ = Default;
  std::vector<std::string> asked_;
};

TEST_F(SnapshotReaderTest, EveryListIsOfTheVersionThatTheFirstOneNames) {
  const Snapshot snapshot = Read().value();
  EXPECT_TRUE(snapshot.consistent);
  EXPECT_EQ(asked_[0], "/apis/resource.k8s.io/v1/deviceclasses?limit=1");
  asked_.erase(asked_.begin());
  EXPECT_THAT(asked_, Each(HasSubstr("?resourceVersion=7&resourceVersionMatch=Exact")));
  ASSERT_EQ(snapshot.pods.size(), 1u);
  EXPECT_EQ(snapshot.pods[0]->name(), "pods");
  EXPECT_EQ(snapshot.slices[0]->name(), "resourceslices");
  EXPECT_EQ(snapshot.taint_rules[0]->name(), "devicetaintrules");
  EXPECT_THAT(snapshot.notes, IsEmpty());
}

TEST_F(SnapshotReaderTest, OnlyTheKindsThatAreAskedForAreRead) {
  const Snapshot snapshot = Read(Mask(SnapshotKind::kSlices) | Mask(SnapshotKind::kClaims)).value();
  EXPECT_THAT(asked_, Not(Contains(HasSubstr("pods"))));
  EXPECT_EQ(snapshot.claims.size(), 1u);
  EXPECT_THAT(snapshot.pods, IsEmpty());
}

TEST_F(SnapshotReaderTest, AVersionThatHasExpiredIsAskedForAnew) {
  int expired = 0;
  answer_ = [&](const std::string& path) -> Result<api::TreePtr> {
    if (path.find("Exact") != std::string::npos && path.find("/pods") != std::string::npos &&
        ++expired == 1) {
      return Error{ErrorCode::kExpired, "too old"};
    }
    return Default(path);
  };
  EXPECT_TRUE(Read()->consistent);
}

TEST_F(SnapshotReaderTest, AServerThatCannotListAtAVersionIsListedAsItIs) {
  answer_ = [](const std::string& path) -> Result<api::TreePtr> {
    if (path.find("Exact") != std::string::npos) return Error{ErrorCode::kInternal, "no"};
    return Default(path);
  };
  const Snapshot snapshot = Read().value();
  EXPECT_FALSE(snapshot.consistent);
  EXPECT_EQ(snapshot.pods.size(), 1u);
  EXPECT_THAT(snapshot.notes, ElementsAre(HasSubstr("at one resource version")));
}

TEST_F(SnapshotReaderTest, PodsAndClaimsAreReadInTheNamespaceIfTheOthersAreForbidden) {
  answer_ = [](const std::string& path) -> Result<api::TreePtr> {
    const std::string plain = path.substr(0, path.find('?'));
    if (plain == "/api/v1/pods" || plain == "/api/v1/nodes") {
      return Error{ErrorCode::kForbidden, "forbidden"};
    }
    return Default(path);
  };
  const Snapshot snapshot = Read().value();
  EXPECT_TRUE(snapshot.consistent);
  EXPECT_EQ(snapshot.only_namespace, "team");
  EXPECT_FALSE(snapshot.has_nodes);
  EXPECT_EQ(snapshot.unreadable, Mask(SnapshotKind::kNodes));
  EXPECT_EQ(snapshot.pods.size(), 1u);
  EXPECT_THAT(asked_, Contains("/api/v1/namespaces/team/pods?resourceVersion=7&"
                               "resourceVersionMatch=Exact"));
  EXPECT_THAT(snapshot.notes,
              ElementsAre("you may not list nodes, so they are left out",
                          "you may list pods in namespace team only; others are left out"));
}

TEST_F(SnapshotReaderTest, WithoutSlicesThereIsNoAnswer) {
  answer_ = [](const std::string& path) -> Result<api::TreePtr> {
    if (path.find("resourceslices") != std::string::npos) {
      return Error{ErrorCode::kForbidden, "may not list slices"};
    }
    return Default(path);
  };
  EXPECT_EQ(Read().error().message, "may not list slices");
}

TEST_F(SnapshotReaderTest, AServerMayServeAnOlderVersionOfTaintRulesOrNone) {
  answer_ = [](const std::string& path) -> Result<api::TreePtr> {
    if (path.find("v1/devicetaintrules") != std::string::npos) return NotFound("no such kind");
    return Default(path);
  };
  EXPECT_EQ(Read()->taint_rules.size(), 1u);
  EXPECT_EQ(Read()->taint_rule_version, "v1beta2");
  answer_ = [](const std::string& path) -> Result<api::TreePtr> {
    if (path.find("devicetaintrules") != std::string::npos) return NotFound("no such kind");
    return Default(path);
  };
  const Snapshot snapshot = Read().value();
  EXPECT_THAT(snapshot.taint_rules, IsEmpty());
  EXPECT_THAT(snapshot.notes, IsEmpty());
}

TEST(AskNodes, ReadsWhatAnswersAndNamesWhatDoesNotInOneSentence) {
  const NodeAnswers answers = AskNodes(
      [](const std::vector<std::string>& paths) {
        std::vector<Result<api::TreePtr>> trees;
        for (const std::string& path : paths) {
          if (path == "/api/v1/nodes/n1/proxy/devices") {
            trees.push_back(api::ParseJson(
                R"({"items":[{"driver":"d","pool":"p","device":"x","health":"Unhealthy",)"
                R"("since":"2026-01-01T00:00:00Z","message":"hot"}]})"));
          } else {
            trees.push_back(Unavailable("connection refused"));
          }
        }
        return trees;
      },
      {"n1", "n2", "n3", "n4", "n5"});
  const DeviceHealth expected{"Unhealthy", "2026-01-01T00:00:00Z", "hot"};
  EXPECT_EQ(answers.health.at("n1").at({"d", "p", "x"}), expected);
  EXPECT_EQ(DescribeSilentNodes(answers, 5),
            "4 of 5 nodes did not report device health (n2, n3, n4, ...): connection refused");
  EXPECT_EQ(DescribeSilentNodes({}, 5), "");
}

}  // namespace
}  // namespace drakkar::answers
