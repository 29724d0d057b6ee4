#include "client/http_client.h"

#include <gtest/gtest.h>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/testing/memory_file_system.h"
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
      if (!expected_token_.empty() &&
          request.headers.Get("authorization") != "Bearer " + expected_token_) {
        writer->Send(401, headers,
                     std::string(R"({"kind":"Status","status":"Failure","reason":"Unauthorized",
                       "code":401,"message":"Unauthorized"})"));
        return;
      }
      if (busy_ > 0) {
        --busy_;
        if (says_when_) headers.Add("Retry-After", when_);
        writer->Send(429, headers,
                     std::string(R"({"kind":"Status","status":"Failure","reason":"TooManyRequests",
                       "code":429,"message":"too many requests"})"));
        return;
      }
      writer->Send(200, headers, body_);
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

  // Uses the token in a file.
  void UseTokenFile(const std::string& token) {
    ASSERT_TRUE(files_.WriteFile("/token", token, 0600).ok());
    server_.RunSync([&] {
      client_ = MakeHttpClient(
          server_.loop(),
          ClusterAccess{.server = server_.Url(""), .token = token, .token_file = "/token"}, "test",
          files_);
    });
  }

  MemoryFileSystem files_;
  // Used only on the loop while a request is in flight.
  int busy_ = 0;
  std::string expected_token_;  // empty: no authentication
  std::string body_ = R"({"kind":"Pod","metadata":{"name":"a"}})";
  bool says_when_ = true;
  std::string when_ = "0";
  std::vector<std::string> requests_;
  Loopback server_;
  std::unique_ptr<Client> client_;
};

TEST_F(HttpClientTest, RetriesABusyServerAfterTheTimeItGives) {
  busy_ = 3;
  const Reply reply = Get();
  EXPECT_TRUE(reply.ok());
  EXPECT_EQ(requests_.size(), 4u);
}

TEST_F(HttpClientTest, GivesUpOnAServerThatStaysBusy) {
  busy_ = 1'000;
  const Reply reply = Get();
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.http_status, 429);
  EXPECT_EQ(requests_.size(), 11u);
}

TEST_F(HttpClientTest, DoesNotRetryWithoutARetryAfterHeader) {
  busy_ = 1;
  says_when_ = false;
  EXPECT_FALSE(Get().ok());
  EXPECT_EQ(requests_.size(), 1u);
}

// The token file of a service account is replaced before the token expires.
TEST_F(HttpClientTest, ReadsARejectedTokenAgainAndRetriesTheRequest) {
  UseTokenFile("old");
  server_.RunSync([&] { expected_token_ = "new"; });
  EXPECT_EQ(Get().http_status, 401) << "the file has no newer one";
  EXPECT_EQ(requests_.size(), 1u);
  server_.RunSync([&] { ASSERT_TRUE(files_.WriteFile("/token", "new\n", 0600).ok()); });
  EXPECT_TRUE(Get().ok());
  EXPECT_TRUE(Get().ok());
  EXPECT_EQ(requests_.size(), 4u);
}

TEST_F(HttpClientTest, ARejectedWatchReadsTheNextToken) {
  UseTokenFile("old");
  server_.RunSync([&] {
    static_cast<void>(files_.ReadFile("/token"));
    expected_token_ = "new";
  });
  EXPECT_EQ(Get().http_status, 401);  // has read the file a moment ago
  server_.RunSync([&] { ASSERT_TRUE(files_.WriteFile("/token", "new", 0600).ok()); });
  std::promise<Error> promise;
  auto closed = promise.get_future();
  std::unique_ptr<WatchHandle> watch;
  server_.RunSync([&] {
    watch =
        client_->Watch({api::FindKind("", "v1", "Pod"), "", "", ""}, {},
                       {.on_events = [](std::vector<WatchEvent>) {},
                        .on_closed = [&](Error error) { promise.set_value(std::move(error)); }});
  });
  EXPECT_EQ(Await(std::move(closed)).code, ErrorCode::kUnauthenticated);
  server_.RunSync([&] { watch.reset(); });
  const std::size_t before = requests_.size();
  EXPECT_TRUE(Get().ok());
  EXPECT_EQ(requests_.size(), before + 1);
}

TEST_F(HttpClientTest, AWatchMayBeDestroyedWhileItsEventsAreDelivered) {
  // An event and the end of the watch, in one piece.
  server_.RunSync([&] {
    body_ = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\nno event\n";
  });
  std::promise<std::size_t> promise;
  auto events = promise.get_future();
  std::unique_ptr<WatchHandle> watch;
  bool closed = false;
  server_.RunSync([&] {
    watch = client_->Watch({api::FindKind("", "v1", "Pod"), "", "", ""}, {},
                           {.on_events =
                                [&](std::vector<WatchEvent> got) {
                                  watch.reset();
                                  promise.set_value(got.size());
                                },
                            .on_closed = [&](Error) { closed = true; }});
  });
  EXPECT_EQ(Await(std::move(events)), 1u);
  EXPECT_TRUE(Get().http_status == 200);
  server_.RunSync([&] { EXPECT_FALSE(closed); });
}

TEST_F(HttpClientTest, AClientDestroyedWhileWaitingDoesNotRetry) {
  busy_ = 1'000;
  when_ = "60";
  int answers = 0;
  server_.RunSync([&] {
    client_->Get({api::FindKind("", "v1", "Pod"), "default", "a", ""}, [&](Reply) { ++answers; });
  });
  server_.RunSync([&] { client_.reset(); });
  server_.RunSync([] {});
  EXPECT_LE(requests_.size(), 1u);
  EXPECT_LE(answers, 1)
      << "a call under way when the client goes fails, one that waits is forgotten";
}

// Two servers of one cluster. Requests and answers are recorded on the loop of the server that got
// them; the client lives on that of the first.
class ServersTest : public ::testing::Test {
 protected:
  struct OneServer {
    OneServer() {
      server.handler.function = [this](const net::ServerRequest& request,
                                       std::shared_ptr<net::ResponseWriter> writer) {
        requests.push_back(request.path);
        if (hangs) return held.push_back(std::move(writer));
        net::Headers headers;
        headers.Add("Content-Type", "application/json");
        writer->Send(status, headers, std::string(R"({"kind":"Pod","metadata":{"name":"a"}})"));
      };
    }
    ~OneServer() {
      server.RunSync([&] { held.clear(); });
    }
    std::size_t count() {
      std::size_t result = 0;
      server.RunSync([&] { result = requests.size(); });
      return result;
    }
    int status = 200;
    bool hangs = false;
    std::vector<std::string> requests;
    std::vector<std::shared_ptr<net::ResponseWriter>> held;
    Loopback server;
  };
  ~ServersTest() override {
    first_.server.RunSync([&] {
      watch_.reset();
      client_.reset();
    });
  }
  void Use(const std::string& server, std::vector<std::string> others,
           std::function<std::vector<std::string>()> read_servers = nullptr) {
    first_.server.RunSync([&] {
      client_ = MakeHttpClient(first_.server.loop(),
                               ClusterAccess{.server = server,
                                             .other_servers = std::move(others),
                                             .read_servers = std::move(read_servers)},
                               "test", RealFileSystem(), FieldSets::kOpaque, nullptr,
                               [this](const std::string& now) { used_.push_back(now); });
    });
  }
  template <typename Start>
  Reply Call(Start start) {
    std::promise<Reply> promise;
    auto future = promise.get_future();
    first_.server.RunSync(
        [&] { start([&promise](Reply reply) { promise.set_value(std::move(reply)); }); });
    return Await(std::move(future));
  }
  Reply Get() {
    return Call([this](ReplyCallback done) { client_->Get(kPod, std::move(done)); });
  }
  Reply Update() {
    return Call([this](ReplyCallback done) {
      client_->Update(kPod, api::Draft{{"kind", "Pod"}, {"apiVersion", "v1"}}.Freeze(), {},
                      std::move(done));
    });
  }

  const ResourceRef kPod{api::FindKind("", "v1", "Pod"), "default", "a", ""};
  // Nobody listens on this port.
  const std::string kNobody = "http://127.0.0.1:1";
  OneServer first_, second_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<WatchHandle> watch_;
  std::vector<std::string> used_;  // after the first one
};

TEST_F(ServersTest, AReadGoesToTheNextServerIfOneCannotBeReached) {
  Use(kNobody, {first_.server.Url("")});
  EXPECT_TRUE(Get().ok());
  EXPECT_TRUE(Get().ok());
  EXPECT_EQ(first_.count(), 2u);
  EXPECT_EQ(used_, std::vector{first_.server.Url("")});
}

TEST_F(ServersTest, AReadFailsWhenNoServerIsLeft) {
  Use(kNobody, {"http://127.0.0.1:2"});
  EXPECT_FALSE(Get().ok());
}

TEST_F(ServersTest, AWriteIsNotRepeatedButTheNextOneGoesElsewhere) {
  Use(kNobody, {first_.server.Url("")});
  EXPECT_FALSE(Update().ok());
  EXPECT_TRUE(Update().ok());
  EXPECT_EQ(first_.count(), 1u);
}

TEST_F(ServersTest, TheFirstServerIsUsedWhileItAnswers) {
  Use(first_.server.Url(""), {second_.server.Url("")});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Get().ok());
  first_.server.RunSync([&] { first_.status = 500; });
  EXPECT_FALSE(Get().ok()) << "that says nothing about the server";
  EXPECT_EQ(second_.count(), 0u);
}

TEST_F(ServersTest, AServerThatCannotServeIsLeftWithItsWatches) {
  Use(first_.server.Url(""), {second_.server.Url("")});
  first_.server.RunSync([&] { first_.hangs = true; });
  std::promise<Error> closed;
  auto future = closed.get_future();
  first_.server.RunSync([&] {
    watch_ =
        client_->Watch({kPod.kind, "", "", ""}, {},
                       {.on_events = [](const std::vector<WatchEvent>&) {},
                        .on_closed = [&](Error error) { closed.set_value(std::move(error)); }});
  });
  while (first_.count() == 0) {
  }
  first_.server.RunSync([&] {
    first_.hangs = false;
    first_.status = 503;
  });
  EXPECT_TRUE(Get().ok());
  EXPECT_EQ(second_.count(), 1u);
  EXPECT_EQ(Await(std::move(future)).code, ErrorCode::kUnavailable);
}

TEST_F(ServersTest, TheAddressesAreReadAgainWhenAServerFails) {
  Use(kNobody, {}, [this] { return std::vector{kNobody, first_.server.Url("")}; });
  EXPECT_FALSE(Update().ok());
  EXPECT_TRUE(Update().ok());
}

}  // namespace
}  // namespace drakkar::client
