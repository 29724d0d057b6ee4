#include "client/http_client.h"

#include <gtest/gtest.h>

#include "api/scheme/scheme.h"
#include "net/testing/loopback.h"

namespace drakkar::client {
namespace {

using net::testing::Await;
using net::testing::Loopback;

class HttpClientTest : public ::testing::Test {
 protected:
  HttpClientTest() {
    server_.handler.function = [this](net::ServerRequest request,
                                      std::shared_ptr<net::ResponseWriter> writer) {
      requests_.push_back(request.path);
      net::Headers headers;
      headers.Add("Content-Type", "application/json");
      if (busy_ > 0) {
        --busy_;
        if (says_when_) headers.Add("Retry-After", when_);
        writer->Send(429, headers,
                     std::string(R"({"kind":"Status","status":"Failure","reason":"TooManyRequests",
                       "code":429,"message":"too many requests"})"));
        return;
      }
      writer->Send(200, headers, std::string(R"({"kind":"Pod","metadata":{"name":"a"}})"));
    };
    server_.RunSync([&] {
      client_ = MakeHttpClient(server_.loop(), ClusterAccess{.server = server_.Url("")}, "test");
    });
  }
  ~HttpClientTest() override {
    server_.RunSync([&] { client_.reset(); });
  }

  Reply Get() {
    std::promise<Reply> promise;
    auto future = promise.get_future();
    server_.RunSync([&] {
      client_->Get({api::FindKind("", "v1", "Pod"), "default", "a", ""},
                   [&](Reply reply) { promise.set_value(std::move(reply)); });
    });
    return Await(std::move(future));
  }

  // Used on the loop only, while a request is under way.
  int busy_ = 0;
  bool says_when_ = true;
  std::string when_ = "0";
  std::vector<std::string> requests_;
  Loopback server_;
  std::unique_ptr<Client> client_;
};

TEST_F(HttpClientTest, ABusyServerIsAskedAgainWhenItSays) {
  busy_ = 3;
  const Reply reply = Get();
  EXPECT_TRUE(reply.ok());
  EXPECT_EQ(requests_.size(), 4u);
}

TEST_F(HttpClientTest, AServerThatStaysBusyIsGivenUp) {
  busy_ = 1'000;
  const Reply reply = Get();
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.http_status, 429);
  EXPECT_EQ(requests_.size(), 11u);
}

TEST_F(HttpClientTest, ARefusalThatDoesNotSayWhenIsFinal) {
  busy_ = 1;
  says_when_ = false;
  EXPECT_FALSE(Get().ok());
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(HttpClientTest, AClientDestroyedWhileItWaitsAsksNoMore) {
  busy_ = 1'000;
  when_ = "60";
  int answers = 0;
  server_.RunSync([&] {
    client_->Get({api::FindKind("", "v1", "Pod"), "default", "a", ""},
                 [&](Reply) { ++answers; });
  });
  server_.RunSync([&] { client_.reset(); });
  server_.RunSync([] {});
  EXPECT_LE(requests_.size(), 1u);
  EXPECT_LE(answers, 1) << "a call under way when the client goes fails, one that waits is forgotten";
}

}  // namespace
}  // namespace drakkar::client
