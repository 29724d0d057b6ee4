#include "dashboard/gate/gate.h"

#include <gtest/gtest.h>

#include "base/text/text.h"

namespace drakkar::dashboard {
namespace {

class GateTest : public ::testing::Test {
 protected:
  net::ServerRequest Request(std::string path, net::Headers headers = {}) {
    net::ServerRequest request;
    const std::size_t question = path.find('?');
    request.path = path.substr(0, question);
    if (question != std::string::npos) request.raw_query = path.substr(question + 1);
    request.headers = std::move(headers);
    if (request.headers.Find("Host") == nullptr) request.headers.Add("Host", "127.0.0.1:8001");
    return request;
  }
  net::Headers WithToken(net::Headers headers = {}) {
    headers.Add("Authorization", "Bearer secret");
    return headers;
  }
  int Status(std::string path, net::Headers headers = {}) {
    return gate_.Check(Request(std::move(path), std::move(headers))).status;
  }

  Gate gate_{{.token = "secret", .cookie = "biscuit"}, 8001};
};

TEST_F(GateTest, RefusesWithoutAToken) {
  for (const char* path : {"/", "/app.js", "/api/stream", "/?token=", "/?token=wrong", "/api/"}) {
    EXPECT_EQ(Status(path), 401) << path;
  }
  EXPECT_EQ(Status("/api/stream", {{"Authorization", "Bearer wrong!"}}), 401);
  EXPECT_EQ(Status("/api/stream", {{"Authorization", "secret"}}), 401);
  EXPECT_EQ(Status("/app.js?token=secret"), 401);
}

TEST_F(GateTest, TheTokenOpensThePageAndTheData) {
  EXPECT_EQ(Status("/?token=secret"), 0);
  EXPECT_TRUE(gate_.IsArrival(Request("/?token=secret")));
  EXPECT_FALSE(gate_.IsArrival(Request("/")));
  EXPECT_EQ(Status("/api/stream", WithToken()), 0);
}

TEST_F(GateTest, TheCookieLoadsThePagesFilesButNoData) {
  const net::Headers cookie = {{"Cookie", "other=1; drakkar-dashboard-8001=biscuit"}};
  EXPECT_EQ(Status("/", cookie), 0);
  EXPECT_EQ(Status("/app.js", cookie), 0);
  EXPECT_EQ(Status("/api/stream", cookie), 401);
  EXPECT_EQ(Status("/", {{"Cookie", "drakkar-dashboard-8001=wrong"}}), 401);
  EXPECT_EQ(Status("/", {{"Cookie", "drakkar-dashboard-8002=biscuit"}}), 401);
}

TEST_F(GateTest, TheWelcomeMovesTheTokenToTheFragmentAndSetsTheCookie) {
  const net::Headers headers = gate_.Welcome();
  EXPECT_EQ(headers.Get("Location"), "/#token=secret");
  EXPECT_EQ(headers.Get("Set-Cookie"),
            "drakkar-dashboard-8001=biscuit; Path=/; HttpOnly; SameSite=Lax");
}

TEST_F(GateTest, RefusesHostsThatAreNotThisMachine) {
  for (const char* host :
       {"example.com", "example.com:8001", "127.0.0.1.example.com", "localhost.example.com:8001",
        "127.0.0.1:", "127.0.0.1:80x", "127.0.0.1:8001:1", "10.0.0.1:8001", "", "[::2]:8001"}) {
    EXPECT_EQ(Status("/api/stream", WithToken({{"Host", host}})), 403) << host;
  }
  for (const char* host : {"127.0.0.1:8001", "localhost:8001", "LOCALHOST", "[::1]:9"}) {
    EXPECT_EQ(Status("/api/stream", WithToken({{"Host", host}})), 0) << host;
  }
  EXPECT_EQ(Status("/api/stream", WithToken({{"Host", "localhost"}, {"Host", "localhost"}})), 403);
}

TEST_F(GateTest, RefusesOtherOrigins) {
  for (const char* origin : {"http://example.com", "https://127.0.0.1:8001", "null",
                             "http://127.0.0.1:8002", "http://localhost:8001"}) {
    EXPECT_EQ(Status("/api/stream", WithToken({{"Origin", origin}})), 403) << origin;
  }
  EXPECT_EQ(Status("/api/stream", WithToken({{"Origin", "http://127.0.0.1:8001"}})), 0);
}

TEST_F(GateTest, RefusesOtherSitesExceptToOpenThePage) {
  for (const char* site : {"cross-site", "same-site"}) {
    EXPECT_EQ(Status("/api/stream", WithToken({{"Sec-Fetch-Site", site}})), 403);
    EXPECT_EQ(Status("/?token=secret", {{"Sec-Fetch-Site", site}}), 403);
    EXPECT_EQ(Status("/?token=secret", {{"Sec-Fetch-Site", site},
                                        {"Sec-Fetch-Mode", "navigate"},
                                        {"Sec-Fetch-Dest", "iframe"}}),
              403);
    EXPECT_EQ(Status("/?token=secret", {{"Sec-Fetch-Site", site},
                                        {"Sec-Fetch-Mode", "navigate"},
                                        {"Sec-Fetch-Dest", "document"}}),
              0);
    EXPECT_EQ(Status("/api/stream", WithToken({{"Sec-Fetch-Site", site},
                                               {"Sec-Fetch-Mode", "navigate"},
                                               {"Sec-Fetch-Dest", "document"}})),
              403);
  }
  EXPECT_EQ(Status("/api/stream", WithToken({{"Sec-Fetch-Site", "same-origin"}})), 0);
}

TEST_F(GateTest, AnswersOnlyGet) {
  net::ServerRequest request = Request("/api/stream", WithToken());
  for (const net::Method method : {net::Method::kPost, net::Method::kPut, net::Method::kDelete,
                                   net::Method::kOptions, net::Method::kPatch}) {
    request.method = method;
    EXPECT_EQ(gate_.Check(request).status, 405);
  }
}

TEST_F(GateTest, SecretsDifferAndHave256Bits) {
  const Secrets a = Secrets::Make(RealRandom());
  const Secrets b = Secrets::Make(RealRandom());
  EXPECT_EQ(a.token.size(), 64u);
  EXPECT_NE(a.token, b.token);
  EXPECT_NE(a.token, a.cookie);
}

}  // namespace
}  // namespace drakkar::dashboard
