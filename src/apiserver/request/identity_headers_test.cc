#include "apiserver/request/identity_headers.h"

#include <gtest/gtest.h>

namespace drakkar::apiserver {
namespace {

TEST(IdentityHeadersTest, AUserSurvivesTheWay) {
  const UserInfo user = {
      .name = "system:serviceaccount:a:b",
      .uid = "17",
      .groups = {"system:authenticated", "a group"},
      .extra = {{"authentication.kubernetes.io/pod-name", {"p", "q"}}, {"100%", {"x"}}}};
  net::Headers headers;
  AddIdentity(user, headers);
  EXPECT_EQ(headers.Get("x-remote-user"), user.name);
  EXPECT_EQ(headers.Count("X-Remote-Group"), 2u);
  EXPECT_EQ(headers.Count("X-Remote-Extra-authentication.kubernetes.io%2Fpod-name"), 2u);
  const UserInfo read = ReadIdentity(headers);
  EXPECT_EQ(read.name, user.name);
  EXPECT_EQ(read.uid, user.uid);
  EXPECT_EQ(read.groups, user.groups);
  EXPECT_EQ(read.extra, user.extra);
}

TEST(IdentityHeadersTest, ProxiesMayUseOtherHeaders) {
  const IdentityHeaders names = {.user = {"X-User", "X-Login"},
                                 .uid = {},
                                 .group = {"X-Team", "X-Role"},
                                 .extra_prefix = {"X-More-", "X-Also-"}};
  const net::Headers headers = {{"x-login", "jane"},     {"X-Role", "r"},       {"X-Team", "t"},
                                {"X-Team", ""},          {"X-Also-A", "2"},     {"X-More-A", "1"},
                                {"X-Remote-User", "no"}, {"X-Remote-Uid", "no"}};
  UserInfo user = ReadIdentity(headers, names);
  EXPECT_EQ(user.name, "jane");
  EXPECT_EQ(user.uid, "");
  EXPECT_EQ(user.groups, (std::vector<std::string>{"t", "r"}));
  EXPECT_EQ(user.extra.at("a"), (std::vector<std::string>{"1", "2"}));
  net::Headers both = headers;
  both.Add("X-User", "joe");
  EXPECT_EQ(ReadIdentity(both, names).name, "joe") << "the first of the names counts";
}

TEST(IdentityHeadersTest, ANameCannotAddAHeader) {
  net::Headers headers;
  AddIdentity({.name = "a\r\nX-Remote-Group: system:masters"}, headers);
  EXPECT_TRUE(net::IsHeaderValue(headers.Get("X-Remote-User")));
  EXPECT_EQ(headers.Count("X-Remote-Group"), 0u);
}

TEST(IdentityHeadersTest, RecognizesWhatClientsMustNotSend) {
  EXPECT_TRUE(IsIdentityHeader("x-remote-user"));
  EXPECT_TRUE(IsIdentityHeader("X-Remote-Extra-Scopes"));
  EXPECT_FALSE(IsIdentityHeader("X-Request-Id"));
  // As servers read it that pass headers in variables of the environment.
  EXPECT_TRUE(IsIdentityHeader("X_Remote_User"));
  EXPECT_TRUE(IsIdentityHeader("x-remote_group"));
  EXPECT_TRUE(IsIdentityHeader("Impersonate-User"));
  EXPECT_TRUE(IsIdentityHeader("Impersonate_Extra_x"));
}

TEST(IdentityHeadersTest, NamesThatWouldBecomeOthersDoNotFit) {
  EXPECT_TRUE(FitsIntoHeaders({.name = "jane doe", .groups = {"a", "b c"}}));
  EXPECT_FALSE(FitsIntoHeaders({.name = "admin "}));
  EXPECT_FALSE(FitsIntoHeaders({.name = "admin\t"}));
  EXPECT_FALSE(FitsIntoHeaders({.name = "admin\x01"}));
  EXPECT_FALSE(FitsIntoHeaders({.name = "jane", .uid = "\n1"}));
  EXPECT_FALSE(FitsIntoHeaders({.name = "jane", .groups = {"a", "system:masters "}}));
  EXPECT_FALSE(FitsIntoHeaders({.name = "jane", .groups = {" system:masters"}}));
  EXPECT_FALSE(FitsIntoHeaders({.name = "jane", .extra = {{"scope", {"x", "all "}}}}));
}

}  // namespace
}  // namespace drakkar::apiserver
