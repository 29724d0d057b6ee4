// Channels over TLS. The server side is a proxy that terminates TLS in front of our server's unix
// socket; tests/interop and the etcd engine have real peers.
#include <gtest/gtest.h>

#include "base/exec/uv_loop.h"
#include "net/testing/loopback.h"
#include "net/transport/transport.h"
#include "rpc/testing/transport_harness.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {
namespace {

using net::testing::TestCertificates;
using std::chrono::seconds;

class EchoService final : public RpcService {
 public:
  std::vector<std::string> MethodPaths() const override { return {"/t.T/Echo"}; }
  std::vector<std::string> StreamingPaths() const override { return {"/t.T/Echo"}; }
  void Handle(std::string_view, std::string request, std::unique_ptr<ServerCall> call) override {
    ServerCall* raw = call.get();
    calls.push_back(std::move(call));
    raw->OnMessage([raw](const std::string& message) { raw->Send(message); },
                   [raw] { raw->Finish(Ok()); });
    raw->Send(request);
  }
  std::vector<std::unique_ptr<ServerCall>> calls;
};

// One connection of the proxy: TLS on one side, the unix socket on the other.
class Relay final : public net::Transport::Handler, public net::Socket::Handler {
 public:
  Relay(UvLoop& loop, std::unique_ptr<net::Socket> outside,
        const std::shared_ptr<const net::TlsContext>& tls, const std::string& path)
      : loop_(loop),
        path_(path),
        outside_(std::make_unique<net::Transport>(std::move(outside), net::TlsFilter::Accept(tls),
                                                  static_cast<net::Transport::Handler&>(*this))) {
    outside_->Start();
  }
  void OnTransportReady() override {
    if (outside_->tls()->peer()) peer_name = outside_->tls()->peer()->common_name;
    connector_ = net::Connector::Start(loop_, {.host = "", .port = 0, .unix_path = path_},
                                       [this](Result<std::unique_ptr<net::Socket>> socket) {
                                         if (!socket.ok()) return;
                                         inside_ = *std::move(socket);
                                         inside_->Start(*this);
                                         inside_->Write(early_);
                                       });
  }
  void OnTransportData(std::string_view bytes) override {
    early_ += bytes;
    if (inside_ != nullptr) inside_->Write(early_);
  }
  void OnTransportClosed(const Error*) override { inside_.reset(); }
  void OnTransportDrained() override {}
  void OnSocketData(std::string_view bytes) override {
    std::string copy(bytes);
    outside_->Write(copy);
  }
  void OnSocketClosed(const Error*) override { outside_->Shutdown(); }
  void OnSocketDrained() override {}

  std::string peer_name;

 private:
  UvLoop& loop_;
  const std::string path_;
  std::unique_ptr<net::Transport> outside_;
  std::unique_ptr<net::Connector> connector_;
  std::unique_ptr<net::Socket> inside_;
  std::string early_;
};

class TlsChannelTest : public ::testing::Test {
 protected:
  void Start(bool http2 = true) {
    harness_->Do([&] {
      auto& loop = static_cast<UvLoop&>(harness_->loop());
      std::vector<std::unique_ptr<RpcService>> services;
      services.push_back(std::make_unique<EchoService>());
      const std::string path = harness_->SocketPath("t.sock");
      server_ = harness_->transport().CreateServer(path, std::move(services));
      ASSERT_TRUE(server_->Start().ok());
      listener_ =
          net::Listener::Create(
              loop, {.address = {.host = "127.0.0.1", .port = 0, .unix_path = ""}},
              [this, &loop, path,
               tls = net::testing::TestServerTls(http2)](std::unique_ptr<net::Socket> socket) {
                relays_.push_back(std::make_unique<Relay>(loop, std::move(socket), tls, path));
              })
              .value();
    });
  }
  ~TlsChannelTest() override {
    harness_->Do([this] {
      stream_.reset();
      channel_.reset();
      listener_.reset();
      relays_.clear();
      server_.reset();
    });
  }
  // A channel to the proxy, by the name `host`.
  void Open(net::TlsClientOptions tls, const std::string& host = "127.0.0.1") {
    harness_->Do([&] {
      channel_ = harness_->transport().OpenChannel(
          {.host = host, .port = listener_->port(), .tls = net::TlsContext::Client(tls).value()});
    });
  }
  net::TlsClientOptions Trusting() {
    return {.ca_pem = TestCertificates::Get().ca.certificate_pem};
  }
  Result<std::string> Call(const std::string& message) {
    std::optional<Result<std::string>> result;
    harness_->Do([&] {
      StreamCallbacks callbacks;
      auto answer = std::make_shared<std::string>();
      callbacks.on_message = [answer](std::string text) { *answer = std::move(text); };
      callbacks.on_end = [&result, answer](Result<void> end) {
        result = end.ok() ? Result<std::string>(*answer) : Result<std::string>(end.error());
      };
      stream_ = channel_->Watch("/t.T/Echo", message, std::move(callbacks));
    });
    EXPECT_TRUE(harness_->WaitUntil([&] { return result.has_value(); }));
    return std::move(*result);
  }

  std::unique_ptr<TransportHarness> harness_ = MakeGrpcHarness();
  std::unique_ptr<Server> server_;
  std::unique_ptr<net::Listener> listener_;
  std::vector<std::unique_ptr<Relay>> relays_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<ClientStream> stream_;
};

TEST_F(TlsChannelTest, CarriesCallsAndProvesWhoTheClientIs) {
  Start();
  net::TlsClientOptions tls = Trusting();
  tls.certificate_pem = TestCertificates::Get().client.certificate_pem;
  tls.key_pem = TestCertificates::Get().client.key_pem;
  Open(tls);
  const Result<std::string> hello = Call("hello");
  ASSERT_TRUE(hello.ok()) << hello.error().message;
  EXPECT_EQ(*hello, "hello");
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(Call(large).value(), large);
  harness_->Do([&] { EXPECT_EQ(relays_.at(0)->peer_name, "jane"); });
}

TEST_F(TlsChannelTest, AServerThatIsNotTrustedIsRefusedWithTheReason) {
  Start();
  Open({.ca_pem = TestCertificates::Get().other_ca.certificate_pem});
  const Result<std::string> result = Call("secret");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(result.error().message.find("TLS: certificate: "), std::string::npos)
      << result.error().message;
}

TEST_F(TlsChannelTest, AServerWithAnotherNameIsRefused) {
  Start();
  net::TlsClientOptions tls = Trusting();
  tls.server_name = "somebody.else";
  Open(tls);
  const Result<std::string> result = Call("secret");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("hostname mismatch"), std::string::npos)
      << result.error().message;
}

TEST_F(TlsChannelTest, AServerWithoutHttp2IsRefused) {
  Start(/*http2=*/false);
  Open(Trusting());
  const Result<std::string> result = Call("x");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("did not negotiate HTTP/2"), std::string::npos)
      << result.error().message;
}

}  // namespace
}  // namespace drakkar::rpc
