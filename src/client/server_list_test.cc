#include "client/server_list.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"

namespace drakkar::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr MonotonicTime kStart = MonotonicTime(seconds(100));

TEST(ServerList, GoesRoundTheServersThatGiveNoAnswer) {
  ServerList list({"a", "b", "c"});
  EXPECT_EQ(list.current(), "a");
  EXPECT_TRUE(list.OnNoAnswer("a", kStart));
  EXPECT_EQ(list.current(), "b");
  EXPECT_TRUE(list.OnNoAnswer("b", kStart));
  EXPECT_TRUE(list.OnNoAnswer("c", kStart));
  EXPECT_EQ(list.current(), "a");
}

// Many requests to one server fail at the same time.
TEST(ServerList, MovesOnceForAllRequestsToOneServer) {
  ServerList list({"a", "b", "c"});
  EXPECT_TRUE(list.OnNoAnswer("a", kStart));
  EXPECT_FALSE(list.OnNoAnswer("a", kStart));
  EXPECT_FALSE(list.OnUnable("a", kStart + seconds(10)));
  EXPECT_EQ(list.current(), "b");
}

TEST(ServerList, StaysWithTheOnlyServer) {
  ServerList list({"a"});
  EXPECT_FALSE(list.OnNoAnswer("a", kStart));
  EXPECT_FALSE(list.OnUnable("a", kStart));
  EXPECT_EQ(list.current(), "a");
}

TEST(ServerList, LeavesAServerThatCannotServeButNotInATightCircle) {
  ServerList list({"a", "b"});
  EXPECT_TRUE(list.OnUnable("a", kStart)) << "it was in use all the time";
  EXPECT_FALSE(list.OnUnable("b", kStart + milliseconds(100)));
  EXPECT_TRUE(list.OnUnable("b", kStart + ServerList::kMinStay));
  EXPECT_EQ(list.current(), "a");
}

TEST(ServerList, KeepsTheServerInUseWhenTheListChanges) {
  ServerList list({"a", "b"});
  list.OnNoAnswer("a", kStart);
  list.Replace({"c", "b"});
  EXPECT_EQ(list.current(), "b");
  list.Replace({"c", "d"});
  EXPECT_EQ(list.current(), "c");
  list.Replace({});
  EXPECT_EQ(list.current(), "c");
  EXPECT_EQ(list.size(), 2u);
}

std::vector<std::string> Merge(const std::vector<std::string>& known, std::string_view endpoints) {
  return MergeServers(known, api::ParseJson(endpoints).value()->root());
}

TEST(MergeServers, KeepsTheFirstAndTakesTheOthersThatLive) {
  EXPECT_EQ(Merge({"https://api.example.com:6443", "https://10.0.0.9:6443"},
                  R"({"subsets":[
                    {"addresses":[{"ip":"10.0.0.2"},{"ip":"10.0.0.1"}],
                     "ports":[{"name":"https","port":6443},{"name":"other","port":1}]},
                    {"addresses":[{"ip":"fd00::1"}],"ports":[{"name":"https","port":7443}]}]})"),
            (std::vector<std::string>{"https://api.example.com:6443", "https://10.0.0.1:6443",
                                      "https://10.0.0.2:6443", "https://[fd00::1]:7443"}));
}

TEST(MergeServers, NamesNoServerTwice) {
  EXPECT_EQ(Merge({"https://10.0.0.2:6443"},
                  R"({"subsets":[{"addresses":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}],
                     "ports":[{"name":"https","port":6443}]}]})"),
            (std::vector<std::string>{"https://10.0.0.2:6443", "https://10.0.0.1:6443"}));
}

TEST(MergeServers, ChangesNothingWithoutEndpoints) {
  const std::vector<std::string> known{"https://a:6443", "https://b:6443"};
  EXPECT_EQ(Merge(known, R"({})"), known);
  EXPECT_EQ(Merge(known, R"({"subsets":[]})"), known);
}

}  // namespace
}  // namespace drakkar::client
