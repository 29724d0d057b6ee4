#include "net/server/server_group.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "net/client/http_client.h"
#include "net/testing/loopback.h"

namespace drakkar::net {
namespace {

// Responds with its own number and counts requests.
class NumberHandler final : public RequestHandler {
 public:
  NumberHandler(UvLoop& loop, int number) : loop_(loop), number_(number) {}
  void Handle(ServerRequest request, std::shared_ptr<ResponseWriter> writer) override {
    EXPECT_TRUE(loop_.IsInLoop());
    ++asked;
    if (request.path == "/hang") {
      held.push_back(std::move(writer));
    } else {
      writer->Send(200, {}, std::to_string(number_));
    }
  }
  std::atomic<int> asked{0};
  std::vector<std::shared_ptr<ResponseWriter>> held;

 private:
  UvLoop& loop_;
  const int number_;
};

// A group of two members with a thread each, and clients on a third thread that share no
// connection.
class ServerGroupTest : public ::testing::Test {
 protected:
  void Start(HttpServerOptions options) {
    options.address.host = "127.0.0.1";
    options.tls = testing::TestServerTls();
    main_.RunSync([&] {
      group_ = std::make_unique<ServerGroup>(
          main_.loop(), std::move(options),
          std::vector<ServerGroup::Member>{{first_.loop(), one_}, {second_.loop(), two_}});
      ASSERT_TRUE(group_->Start().ok());
      port_ = group_->port();
    });
  }
  ~ServerGroupTest() override {
    main_.RunSync([&] {
      clients_.clear();
      group_.reset();
    });
    first_.RunSync([&] { one_.held.clear(); });
    second_.RunSync([&] { two_.held.clear(); });
  }

  std::future<Result<Response>> Ask(const std::string& path) {
    auto promise = std::make_shared<std::promise<Result<Response>>>();
    main_.RunSync([&] {
      HttpClientOptions options;
      options.tls.ca_pem = testing::TestCertificates::Get().ca.certificate_pem;
      clients_.push_back(std::make_unique<HttpClient>(main_.loop(), options));
      ClientRequest request;
      request.url = StrCat("https://127.0.0.1:", port_, path);
      clients_.back()->Do(std::move(request), [promise](Result<Response> answer) {
        promise->set_value(std::move(answer));
      });
    });
    return promise->get_future();
  }

  LoopThread first_{"first"};
  LoopThread second_{"second"};
  LoopThread main_{"main"};
  NumberHandler one_{first_.loop(), 1};
  NumberHandler two_{second_.loop(), 2};
  std::unique_ptr<ServerGroup> group_;
  std::vector<std::unique_ptr<HttpClient>> clients_;
  std::uint16_t port_ = 0;
};

TEST_F(ServerGroupTest, ConnectionsAreSpreadEvenly) {
  Start({});
  for (int i = 0; i < 8; ++i) {
    const Result<Response> answer = testing::Await(Ask("/"));
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_TRUE(answer->body == "1" || answer->body == "2");
  }
  EXPECT_EQ(one_.asked, 4);
  EXPECT_EQ(two_.asked, 4);
}

TEST_F(ServerGroupTest, TheConnectionLimitAppliesToAllMembersTogether) {
  HttpServerOptions options;
  options.max_connections = 3;
  Start(options);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(testing::Await(Ask("/")).ok());
  EXPECT_FALSE(testing::Await(Ask("/")).ok());
  // Closing one makes room again.
  main_.RunSync([&] { clients_.erase(clients_.begin()); });
  bool served = false;
  for (int i = 0; i < 200 && !served; ++i) served = testing::Await(Ask("/")).ok();
  EXPECT_TRUE(served);
}

TEST_F(ServerGroupTest, StopWaitsForEveryMember) {
  HttpServerOptions options;
  options.drain_timeout = std::chrono::milliseconds(50);
  Start(options);
  std::vector<std::future<Result<Response>>> hanging;
  for (int i = 0; i < 4; ++i) hanging.push_back(Ask("/hang"));
  while (one_.asked + two_.asked < 4) std::this_thread::yield();
  std::promise<void> stopped;
  main_.RunSync([&] { group_->Stop([&] { stopped.set_value(); }); });
  stopped.get_future().get();
  for (auto& each : hanging) EXPECT_FALSE(testing::Await(std::move(each)).ok());
  EXPECT_FALSE(testing::Await(Ask("/")).ok()) << "nobody listens any more";
}

}  // namespace
}  // namespace drakkar::net
