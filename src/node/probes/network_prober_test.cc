#include "node/probes/network_prober.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "base/testing/seeded_loop.h"
#include "net/testing/loopback.h"
#include "node/probes/loop_prober.h"
#include "node/testing/fake_network_prober.h"
#include "rpc/grpc/server_session.h"
#include "rpc/health_check/health_check.h"
#include "rpc/transport/transport.h"

namespace drakkar::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// gRPC's health service on its own connection.
class GrpcPeer final : public net::Socket::Handler {
 public:
  GrpcPeer(std::unique_ptr<net::Socket> socket, std::map<std::string, int> statuses)
      : socket_(std::move(socket)), statuses_(std::move(statuses)) {
    socket_->Start(*this);
    Flush();
  }
  void OnSocketData(std::string_view bytes) override {
    if (!session_->Receive(bytes).ok()) return;
    for (const auto& event : session_->TakeEvents()) {
      if (event.type != rpc::grpc::ServerSession::EventType::kCall) continue;
      const auto service = rpc::DecodeHealthCheckRequest(event.request);
      const auto found = statuses_.find(service.ok() ? *service : "");
      if (found == statuses_.end()) {
        session_->Finish(event.stream, {5, "unknown service"});
        continue;
      }
      session_->SendMessage(event.stream, rpc::EncodeHealthCheckResponse(found->second));
      session_->Finish(event.stream, {});
    }
    Flush();
  }
  void OnSocketClosed(const Error*) override {}
  void OnSocketDrained() override {}

 private:
  void Flush() {
    std::string out;
    session_->Send(out, 1 << 20);
    socket_->Write(out);
  }
  std::unique_ptr<net::Socket> socket_;
  const std::map<std::string, int> statuses_;
  const std::unique_ptr<rpc::grpc::ServerSession> session_ =
      rpc::grpc::NewServerSession([this](std::string_view) -> Result<void> {
        if (statuses_.empty()) return NotFound("unknown service grpc.health.v1.Health");
        return Ok();
      });
};

// The environment of the contract test: a network with a few servers, real or fake.
class World {
 public:
  virtual ~World() = default;
  virtual NetworkProber& prober() = 0;
  virtual void DestroyProber() = 0;
  virtual void Do(Task task) = 0;
  virtual bool WaitUntil(std::function<bool()> condition) = 0;
  virtual Duration short_timeout() const = 0;

  int http = 0, silent = 0, closed = 0, grpc = 0, no_health = 0;
};

HttpAnswer AnswerOf(const std::string& path) {
  if (path == "/ok") return {200, "fine"};
  if (path == "/large") return {200, std::string(100'000, 'x')};
  return {500, "broken"};
}

class FakeWorld final : public World {
 public:
  FakeWorld() : prober_(std::make_unique<FakeNetworkProber>(loop_)) {
    http = 1, silent = 2, closed = 3, grpc = 4, no_health = 5;
    prober_->endpoints[http].http = [](const HttpProbe& probe) { return AnswerOf(probe.path); };
    prober_->endpoints[silent].silent = true;
    prober_->endpoints[grpc].grpc = {{"", "SERVING"}, {"sick", "NOT_SERVING"}};
    prober_->endpoints[no_health];
  }
  NetworkProber& prober() override { return *prober_; }
  void DestroyProber() override { prober_.reset(); }
  void Do(Task task) override { task(); }
  bool WaitUntil(std::function<bool()> condition) override {
    loop_.RunUntilIdle();
    if (!condition()) loop_.Advance(seconds(5));
    return condition();
  }
  Duration short_timeout() const override { return seconds(1); }

 private:
  SeededLoop loop_;
  std::unique_ptr<FakeNetworkProber> prober_;
};

class RealWorld final : public World {
 public:
  RealWorld() {
    net_.handler.function = [this](net::ServerRequest request,
                                   std::shared_ptr<net::ResponseWriter> writer) {
      Answer(std::move(request), std::move(writer));
    };
    http = net_.port;
    Do([this] {
      transport_ = rpc::MakeGrpcTransport(net_.loop());
      prober_ = std::make_unique<LoopProber>(net_.loop(), *transport_, "1.37");
      silent = Listen([this](auto socket) { idle_.push_back(std::move(socket)); });
      grpc = Listen([this](auto socket) {
        peers_.push_back(std::make_unique<GrpcPeer>(
            std::move(socket), std::map<std::string, int>{{"", 1}, {"sick", 2}}));
      });
      no_health = Listen([this](auto socket) {
        peers_.push_back(
            std::make_unique<GrpcPeer>(std::move(socket), std::map<std::string, int>{}));
      });
      closed = Listen([](auto) {});
      listeners_.pop_back();
    });
  }
  ~RealWorld() override {
    Do([this] {
      prober_.reset();
      transport_.reset();
      peers_.clear();
      idle_.clear();
      listeners_.clear();
    });
  }
  NetworkProber& prober() override { return *prober_; }
  void DestroyProber() override { prober_.reset(); }
  void Do(Task task) override { net_.RunSync(std::move(task)); }
  bool WaitUntil(std::function<bool()> condition) override {
    // Each round trip through the loop makes progress; the limit only matters on failure.
    const auto limit = std::chrono::steady_clock::now() + seconds(20);
    while (std::chrono::steady_clock::now() < limit) {
      bool met = false;
      Do([&] { met = condition(); });
      if (met) return true;
    }
    return false;
  }
  Duration short_timeout() const override { return milliseconds(20); }

  LoopProber& loop_prober() { return *prober_; }
  std::vector<net::Headers> requests;
  std::string elsewhere;  // where /elsewhere redirects to

 private:
  int Listen(net::Listener::AcceptCallback accept) {
    auto listener = net::Listener::Create(
        net_.loop(), {.address = {.host = "127.0.0.1", .port = 0, .unix_path = ""}},
        std::move(accept));
    EXPECT_TRUE(listener.ok());
    const int port = (*listener)->port();
    listeners_.push_back(std::move(*listener));
    return port;
  }

  void Answer(net::ServerRequest request, std::shared_ptr<net::ResponseWriter> writer) {
    const std::string target = request.path;
    requests.push_back(request.headers);
    if (target == "/redirect") {
      return writer->Send(302, {{"Location", "ok"}}, std::string("moved"));
    }
    if (target == "/elsewhere") {
      return writer->Send(302, {{"Location", elsewhere}}, std::string("moved"));
    }
    if (target == "/loop") return writer->Send(302, {{"Location", "/loop"}}, std::string());
    const HttpAnswer answer = AnswerOf(target);
    writer->Send(answer.status, {}, answer.body);
  }

  net::testing::Loopback net_;
  std::unique_ptr<rpc::Transport> transport_;
  std::unique_ptr<LoopProber> prober_;
  std::vector<std::unique_ptr<net::Listener>> listeners_;
  std::vector<std::unique_ptr<net::Socket>> idle_;
  std::vector<std::unique_ptr<GrpcPeer>> peers_;
};

template <typename T, typename Start>
Result<T> Await(World& world, Start start) {
  auto result = std::make_shared<std::optional<Result<T>>>();
  bool inside = false;
  world.Do([&] {
    start([result](Result<T> given) { result->emplace(std::move(given)); });
    inside = result->has_value();
  });
  EXPECT_FALSE(inside) << "answered inside the call";
  if (!world.WaitUntil([&] { return result->has_value(); })) return Internal("no answer");
  return std::move(**result);
}

Result<HttpAnswer> Get(World& world, int port, const std::string& path,
                       std::optional<Duration> timeout = {}) {
  return Await<HttpAnswer>(world, [&](auto done) {
    HttpProbe probe;
    probe.host = "127.0.0.1";
    probe.port = port;
    probe.path = path;
    world.prober().Get(std::move(probe), timeout.value_or(seconds(30)), std::move(done));
  });
}

Result<void> Connect(World& world, int port) {
  return Await<void>(world, [&](auto done) {
    world.prober().Connect("127.0.0.1", port, seconds(30), std::move(done));
  });
}

Result<std::string> CheckGrpc(World& world, int port, const std::string& service,
                              std::optional<Duration> timeout = {}) {
  return Await<std::string>(world, [&](auto done) {
    world.prober().CheckGrpc("127.0.0.1", port, service, timeout.value_or(seconds(30)),
                             std::move(done));
  });
}

class NetworkProberContract : public ::testing::TestWithParam<bool> {
 protected:
  NetworkProberContract() {
    if (GetParam()) {
      world_ = std::make_unique<RealWorld>();
    } else {
      world_ = std::make_unique<FakeWorld>();
    }
  }
  World& world() { return *world_; }

 private:
  std::unique_ptr<World> world_;
};

TEST_P(NetworkProberContract, ReportsTheStatusAndTheStartOfTheBody) {
  const auto fine = Get(world(), world().http, "/ok");
  ASSERT_TRUE(fine.ok()) << fine.error().message;
  EXPECT_EQ(fine->status, 200);
  EXPECT_EQ(fine->body, "fine");
  EXPECT_EQ(Get(world(), world().http, "/other").value().status, 500);
  EXPECT_EQ(Get(world(), world().http, "/large").value().body.size(), NetworkProber::kMaxProbeBody);
}

TEST_P(NetworkProberContract, ReportsARefusedConnection) {
  EXPECT_THAT(Get(world(), world().closed, "/ok").error().message, HasSubstr("connection refused"));
  EXPECT_THAT(Connect(world(), world().closed).error().message, HasSubstr("connection refused"));
  EXPECT_THAT(CheckGrpc(world(), world().closed, "").error().message,
              HasSubstr("connection refused"));
  EXPECT_TRUE(Connect(world(), world().http).ok());
}

TEST_P(NetworkProberContract, ReportsTheGrpcStatusOfAService) {
  EXPECT_EQ(CheckGrpc(world(), world().grpc, "").value(), "SERVING");
  EXPECT_EQ(CheckGrpc(world(), world().grpc, "sick").value(), "NOT_SERVING");
  EXPECT_EQ(CheckGrpc(world(), world().grpc, "none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(CheckGrpc(world(), world().no_health, "").error().code, ErrorCode::kUnimplemented);
}

TEST_P(NetworkProberContract, GivesUpOnASilentServer) {
  EXPECT_EQ(Get(world(), world().silent, "/", world().short_timeout()).error().code,
            ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(CheckGrpc(world(), world().silent, "", world().short_timeout()).error().code,
            ErrorCode::kDeadlineExceeded);
}

TEST_P(NetworkProberContract, AnswersNothingOnceDestroyed) {
  bool answered = false;
  world().Do([&] {
    HttpProbe probe;
    probe.host = "127.0.0.1";
    probe.port = world().http;
    probe.path = "/ok";
    world().prober().Get(probe, seconds(30), [&](const auto&) { answered = true; });
    world().prober().Connect("127.0.0.1", world().http, seconds(30),
                             [&](const auto&) { answered = true; });
    world().prober().CheckGrpc("127.0.0.1", world().grpc, "", seconds(30),
                               [&](const auto&) { answered = true; });
    world().DestroyProber();
  });
  for (int i = 0; i < 20; ++i) world().Do([] {});
  EXPECT_FALSE(answered);
}

INSTANTIATE_TEST_SUITE_P(Probers, NetworkProberContract, ::testing::Values(false, true),
                         [](const auto& kind) { return kind.param ? "Real" : "Fake"; });

TEST(LoopProber, FollowsRedirectsWithinTheHost) {
  RealWorld world;
  EXPECT_EQ(Get(world, world.http, "/redirect").value().body, "fine");
  world.elsewhere = "http://127.0.0.2:1/";
  const auto left = Get(world, world.http, "/elsewhere");
  EXPECT_EQ(left.value().status, 302);
  EXPECT_EQ(left.value().body, "moved");
  EXPECT_THAT(Get(world, world.http, "/loop").error().message,
              HasSubstr("stopped after 10 redirects"));
}

TEST(LoopProber, IntroducesItselfAsAKubeletDoes) {
  RealWorld world;
  ASSERT_TRUE(Get(world, world.http, "/ok").ok());
  world.Do([&] {
    ASSERT_EQ(world.requests.size(), 1u);
    EXPECT_EQ(world.requests[0].Get("User-Agent"), "kube-probe/1.37");
    EXPECT_THAT(std::string(world.requests[0].Get("Host")), StartsWith("127.0.0.1:"));
  });
}

TEST(LoopProber, AcceptsAnyCertificate) {
  net::HttpServerOptions options;
  options.tls = net::testing::TestServerTls();
  net::testing::Loopback server(std::move(options));
  server.handler.function = [](net::ServerRequest, std::shared_ptr<net::ResponseWriter> writer) {
    writer->Send(204, {}, std::string());
  };
  RealWorld world;
  const auto answer = Await<HttpAnswer>(world, [&](auto done) {
    HttpProbe probe;
    probe.scheme = "HTTPS";
    probe.host = "127.0.0.1";
    probe.port = server.port;
    world.prober().Get(std::move(probe), seconds(30), std::move(done));
  });
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 204);
}

TEST(LoopProber, BoundsTheNumberOfProbesInFlight) {
  RealWorld world;
  int answers = 0;
  std::string refusal;
  world.Do([&] {
    for (std::size_t i = 0; i <= LoopProber::kMaxRunning; ++i) {
      world.prober().Connect("127.0.0.1", world.closed, seconds(30), [&](Result<void> result) {
        ++answers;
        if (!result.ok() && result.error().code == ErrorCode::kResourceExhausted) {
          refusal = result.error().message;
        }
      });
    }
  });
  const int all = static_cast<int>(LoopProber::kMaxRunning) + 1;
  EXPECT_TRUE(world.WaitUntil([&] { return answers == all; }));
  world.Do([&] { EXPECT_EQ(refusal, "4096 probes are running on this node; try again later"); });
  EXPECT_TRUE(world.WaitUntil([&] { return world.loop_prober().running() == 0; }));
}

}  // namespace
}  // namespace drakkar::node
