#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/http/headers.h"
#include "net/http/message.h"
#include "net/http/status.h"
#include "net/http/url.h"

namespace drakkar::net {
namespace {

TEST(Headers, NamesAreCaseInsensitive) {
  Headers headers{{"Content-Type", "a"}, {"X", "1"}, {"x", "2"}};
  EXPECT_EQ(headers.Get("content-TYPE"), "a");
  EXPECT_EQ(headers.Get("x"), "1");
  EXPECT_EQ(headers.Count("X"), 2u);
  EXPECT_EQ(headers.Find("y"), nullptr);
  headers.Set("X", "3");
  EXPECT_EQ(headers.Count("x"), 1u);
  EXPECT_EQ(headers.Get("x"), "3");
}

TEST(Headers, FindsTokensInLists) {
  const Headers headers{{"Connection", "keep-alive, Upgrade"}, {"connection", "close"}};
  EXPECT_TRUE(headers.HasToken("connection", "upgrade"));
  EXPECT_TRUE(headers.HasToken("connection", "CLOSE"));
  EXPECT_FALSE(headers.HasToken("connection", "up"));
}

TEST(Headers, CleansValuesThatWouldEndTheField) {
  EXPECT_TRUE(IsHeaderValue("a\tb \xc3\xa4"));
  EXPECT_FALSE(IsHeaderValue("a\r\nb"));
  EXPECT_EQ(CleanHeaderValue("a\r\nb"), "a  b");
  EXPECT_FALSE(IsToken("a b"));
  EXPECT_FALSE(IsToken(""));
}

TEST(Method, KnowsNamesAndIdempotence) {
  for (Method method : {Method::kGet, Method::kHead, Method::kPost, Method::kPut, Method::kPatch,
                        Method::kDelete, Method::kOptions, Method::kConnect, Method::kTrace}) {
    EXPECT_EQ(FindMethod(MethodName(method)), method);
  }
  EXPECT_FALSE(FindMethod("get").has_value());
  EXPECT_TRUE(IsIdempotent(Method::kPut));
  EXPECT_FALSE(IsIdempotent(Method::kPost));
}

TEST(Status, EveryErrorCodeHasAStatusAndMostRoundTrip) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_GE(HttpStatusOf(code), 400);
    if (code == ErrorCode::kAlreadyExists || code == ErrorCode::kDataLoss) continue;
    EXPECT_EQ(ErrorCodeOf(HttpStatusOf(code)), code) << ErrorCodeName(code);
  }
  EXPECT_EQ(ErrorCodeOf(418), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorCodeOf(599), ErrorCode::kInternal);
  EXPECT_EQ(StatusText(404), "Not Found");
}

TEST(Url, ParsesTheUsualForms) {
  const Url url = ParseUrl("https://example.com/a/b?c=d").value();
  EXPECT_EQ(url.scheme, "https");
  EXPECT_EQ(url.host, "example.com");
  EXPECT_EQ(url.port, 443);
  EXPECT_EQ(url.target, "/a/b?c=d");
  EXPECT_EQ(url.Authority(), "example.com");
  EXPECT_EQ(ParseUrl("http://10.0.0.1:8080")->Authority(), "10.0.0.1:8080");
  EXPECT_EQ(ParseUrl("http://10.0.0.1:8080")->target, "/");
  EXPECT_EQ(ParseUrl("http://h?x=1")->target, "/?x=1");
  const Url ip6 = ParseUrl("https://[::1]:6443/healthz").value();
  EXPECT_EQ(ip6.host, "::1");
  EXPECT_EQ(ip6.Authority(), "[::1]:6443");
}

TEST(Url, RejectsMalformedUrls) {
  for (const char* text :
       {"", "ftp://h/", "https://", "https://:443/", "https://h:0/", "https://h:65536/",
        "https://h:/", "https://h:+1/", "https://user@h/", "https://h/#f", "https://[::1/",
        "https://[::1]x/", "https://h/a b", "https://h/\xc3\xa4", "https://h h/", "https://[g]/"}) {
    EXPECT_FALSE(ParseUrl(text).ok()) << text;
  }
}

TEST(PercentDecode, IsStrict) {
  EXPECT_EQ(PercentDecode("a%20b%2Fc").value(), "a b/c");
  EXPECT_EQ(PercentDecode("a+b").value(), "a+b");
  EXPECT_EQ(PercentDecode("a+b", true).value(), "a b");
  EXPECT_EQ(PercentDecode("%41").value(), "A");
  for (const char* text : {"%", "%4", "%zz", "%4g", "a%", "%00"}) {
    EXPECT_FALSE(PercentDecode(text).ok()) << text;
  }
  std::string all;
  for (int i = 1; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(PercentDecode(PercentEncode(all)).value(), all);
}

TEST(Query, KeepsOrderAndRepeatedNames) {
  const Query query = Query::Parse("a=1&b=x%3Dy&a=2&flag&empty=&&c=a+b").value();
  EXPECT_EQ(query.size(), 6u);
  EXPECT_EQ(query.Get("a"), "1");
  EXPECT_EQ(query.Get("b"), "x=y");
  EXPECT_EQ(query.Get("c"), "a b");
  EXPECT_TRUE(query.Has("flag"));
  EXPECT_FALSE(query.Has("d"));
  EXPECT_FALSE(Query::Parse("a=%").ok());
  EXPECT_FALSE(Query::Parse("a=1;b=2").ok());
  std::string many;
  for (std::size_t i = 0; i <= Query::kMaxParameters; ++i) many += "a&";
  EXPECT_FALSE(Query::Parse(many).ok());
}

TEST(Target, SplitsAndDecodesThePath) {
  const Target target = ParseTarget("/a%2Fb/c?d=%20").value();
  EXPECT_EQ(target.path, "/a/b/c");
  EXPECT_EQ(target.raw_path, "/a%2Fb/c");
  EXPECT_EQ(target.raw_query, "d=%20");
  for (const char* text : {"", "a", "/a b", "/%", "/a#b", "http://h/"}) {
    EXPECT_FALSE(ParseTarget(text).ok()) << text;
  }
}

}  // namespace
}  // namespace drakkar::net
