#include "node/probes/http_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace drakkar::node {
namespace {

std::string UrlOf(const std::string& path, const std::string& host = "10.0.0.7",
                  const std::string& scheme = "HTTP") {
  HttpProbe probe;
  probe.scheme = scheme;
  probe.host = host;
  probe.port = 8080;
  probe.path = path;
  return MakeProbeRequest(probe, "1.37").url;
}

TEST(HttpProbe, BuildsAUrlFromAnyPath) {
  EXPECT_EQ(UrlOf("/healthz"), "http://10.0.0.7:8080/healthz");
  EXPECT_EQ(UrlOf(""), "http://10.0.0.7:8080/");
  EXPECT_EQ(UrlOf("healthz"), "http://10.0.0.7:8080/healthz");
  EXPECT_EQ(UrlOf("/a?b=c&d#fragment"), "http://10.0.0.7:8080/a?b=c&d");
  EXPECT_EQ(UrlOf("/a b\xc3\xa9"), "http://10.0.0.7:8080/a%20b%C3%A9");
  EXPECT_EQ(UrlOf("/100%?x"), "http://10.0.0.7:8080/100%25%3Fx");
  EXPECT_EQ(UrlOf("/a\r\nHost: evil"), "http://10.0.0.7:8080/a%0D%0AHost:%20evil");
  EXPECT_EQ(UrlOf("/", "fd00::7", "HTTPS"), "https://[fd00::7]:8080/");
}

TEST(HttpProbe, SendsTheHeadersOfAKubelet) {
  HttpProbe probe;
  probe.host = "h";
  probe.port = 80;
  net::Headers headers = MakeProbeRequest(probe, "1.37").headers;
  EXPECT_EQ(headers.Get("User-Agent"), "kube-probe/1.37");
  EXPECT_EQ(headers.Get("Accept"), "*/*");
  EXPECT_EQ(headers.Get("Connection"), "close");
  EXPECT_EQ(headers.Find("Host"), nullptr);
  probe.headers = {
      {"Host", "example.com"}, {"user-agent", "mine"}, {"Accept", ""}, {"X", "1"}, {"X", "2"}};
  headers = MakeProbeRequest(probe, "1.37").headers;
  EXPECT_EQ(headers.Get("Host"), "example.com");
  EXPECT_EQ(headers.Get("User-Agent"), "mine");
  EXPECT_EQ(headers.Find("Accept"), nullptr);
  EXPECT_EQ(headers.Count("X"), 2u);
}

// The URL that follows, "final" or "bad".
std::string Next(int status, const std::string& location) {
  net::ClientRequest sent;
  sent.url = "http://10.0.0.7:8080/a/b?c";
  sent.headers.Add("Host", "example.com");
  net::Headers headers;
  if (!location.empty()) headers.Add("Location", location);
  auto next = FollowRedirect(sent, "10.0.0.7", status, headers);
  if (!next.ok()) return "bad";
  if (!*next) return "final";
  return (*next)->url + ((*next)->headers.Find("Host") == nullptr ? " without Host" : "");
}

TEST(HttpProbe, FollowsRedirectsToTheSameHostOnly) {
  EXPECT_EQ(Next(302, "/x"), "http://10.0.0.7:8080/x");
  EXPECT_EQ(Next(301, "x?y#z"), "http://10.0.0.7:8080/a/x?y");
  EXPECT_EQ(Next(303, "../x/./y"), "http://10.0.0.7:8080/x/y");
  EXPECT_EQ(Next(307, "../../../.."), "http://10.0.0.7:8080/");
  EXPECT_EQ(Next(308, "?q"), "http://10.0.0.7:8080/a/b?q");
  EXPECT_EQ(Next(302, "https://10.0.0.7:8443/x"), "https://10.0.0.7:8443/x without Host");
  EXPECT_EQ(Next(302, "//10.0.0.7/x"), "http://10.0.0.7/x without Host");
  EXPECT_EQ(Next(302, "http://169.254.169.254/latest"), "final");
  EXPECT_EQ(Next(302, ""), "final");
  EXPECT_EQ(Next(304, "/x"), "final");
  EXPECT_EQ(Next(200, "/x"), "final");
  EXPECT_EQ(Next(302, "ftp://10.0.0.7/x"), "bad");
  EXPECT_EQ(Next(302, "http://user@10.0.0.7/x"), "bad");
}

}  // namespace
}  // namespace drakkar::node
