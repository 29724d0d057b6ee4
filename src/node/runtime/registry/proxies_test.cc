#include "node/runtime/registry/proxies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Via(const ProxySettings& settings, const std::string& url) {
  const auto proxy = settings.ProxyFor(*net::ParseUrl(url));
  if (!proxy) return "direct";
  return StrCat(proxy->host, ":", proxy->port, proxy->authorization.empty() ? "" : " ",
                proxy->authorization);
}

TEST(Proxies, EachSchemeHasItsOwnAndLoopbackHasNone) {
  const auto settings = ProxySettings::Parse("proxy:3128", "http://me:p%40ss@[fd00::1]:8080/", "");
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(Via(*settings, "http://example.com/"), "proxy:3128");
  EXPECT_EQ(Via(*settings, "https://example.com/"), "fd00::1:8080 Basic bWU6cEBzcw==");
  for (const char* url : {"https://localhost:5000/", "https://127.0.0.9/", "http://[::1]:5000/"}) {
    EXPECT_EQ(Via(*settings, url), "direct") << url;
  }
  EXPECT_FALSE(settings->empty());
  EXPECT_EQ(Via(*ProxySettings::Parse("http://proxy", "", ""), "http://example.com/"), "proxy:80");
  EXPECT_EQ(Via(*ProxySettings::Parse("http://proxy", "", ""), "https://example.com/"), "direct");
  EXPECT_TRUE(ProxySettings::Parse("", "", "a,b")->empty());
}

TEST(Proxies, ExceptionsAreDomainsAddressesAndNetworksWithOrWithoutAPort) {
  const auto settings = ProxySettings::Parse(
      "", "proxy:1",
      "example.com, .below.com,*.star.com,ported.com:5000,10.1.0.0/20,192.0.2.7,"
      "fd00::/8,[2001:db8::1]:443,!!,300.1.1.1/99,:");
  ASSERT_TRUE(settings.ok());
  const std::pair<const char*, bool> cases[] = {
      {"https://example.com/", true},     {"https://a.b.EXAMPLE.com/", true},
      {"https://notexample.com/", false}, {"https://below.com/", false},
      {"https://a.below.com/", true},     {"https://star.com/", false},
      {"https://a.star.com/", true},      {"https://ported.com:5000/", true},
      {"https://ported.com/", false},     {"https://10.1.15.255/", true},
      {"https://10.1.16.0/", false},      {"https://192.0.2.7:99/", true},
      {"https://192.0.2.8/", false},      {"https://[fd12::9]/", true},
      {"https://[2001:db8::1]/", true},   {"https://[2001:db8::1]:444/", false},
      {"https://[2001:db8::2]/", false},
  };
  for (const auto& [url, direct] : cases) {
    EXPECT_EQ(Via(*settings, url) == "direct", direct) << url;
  }
  EXPECT_EQ(Via(*ProxySettings::Parse("", "proxy:1", "a, *"), "https://example.com/"), "direct");
}

TEST(Proxies, WhatIsNoProxyIsRefusedWithoutItsPassword) {
  for (const char* bad :
       {"https://proxy:1", "socks5://proxy:1", "http://me:secret@:1", "http://proxy:99999",
        "http://me:secret@proxy/path", "me:secret@proxy://x", "http://%zz@proxy", "http://a b"}) {
    const auto settings = ProxySettings::Parse("", bad, "");
    ASSERT_FALSE(settings.ok()) << bad;
    EXPECT_THAT(settings.error().message, HasSubstr("HTTPS_PROXY: ")) << bad;
    EXPECT_THAT(settings.error().message, Not(HasSubstr("secret"))) << bad;
  }
}

}  // namespace
}  // namespace drakkar::node
