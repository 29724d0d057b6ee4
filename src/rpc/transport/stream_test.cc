// Streams in both directions and failed calls, over real sockets and in memory.
#include <gtest/gtest.h>

#include "base/exec/uv_loop.h"
#include "net/socket/socket.h"
#include "rpc/testing/contract_test.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// "/t.T/Chat" answers every message with "re: ..." and ends when the client does; "quit" makes it
// end with an error. "/t.T/Keep" keeps its calls.
class ChatService final : public RpcService {
 public:
  std::vector<std::string> MethodPaths() const override { return {"/t.T/Chat", "/t.T/Keep"}; }
  std::vector<std::string> StreamingPaths() const override { return {"/t.T/Chat"}; }
  void Handle(std::string_view method, std::string request,
              std::unique_ptr<ServerCall> call) override {
    std::shared_ptr<ServerCall> shared = std::move(call);
    kept.push_back(shared);
    if (method == "/t.T/Keep") return;
    ServerCall* raw = shared.get();
    const auto answer = [raw](const std::string& message) {
      if (message == "quit") return raw->Finish(FailedPrecondition("you asked for it"));
      raw->Send("re: " + message);
    };
    raw->OnCancelled([this] { ++cancelled; });
    raw->OnMessage(answer, [raw] { raw->Finish(Ok()); });
    answer(request);
  }

  std::vector<std::shared_ptr<ServerCall>> kept;
  int cancelled = 0;
};

class StreamTest : public ContractTest {
 protected:
  StreamTest() : path_(SocketPath("t.sock")) {
    Do([this] {
      std::vector<std::unique_ptr<RpcService>> services;
      services.push_back(std::make_unique<ChatService>());
      service_ = static_cast<ChatService*>(services.back().get());
      server_ = transport().CreateServer(path_, std::move(services));
      channel_ = transport().OpenChannel({.socket_path = path_});
      ASSERT_TRUE(server_->Start().ok());
    });
  }
  ~StreamTest() override {
    Do([this] {
      stream_.reset();
      channel_.reset();
      service_->kept.clear();
      server_.reset();
    });
  }

  // Only on the loop.
  void Open(StreamRequest request) {
    StreamCallbacks callbacks;
    callbacks.on_message = [this](std::string text) { messages_.push_back(std::move(text)); };
    callbacks.on_end = [this](Result<void> result) { end_ = std::move(result); };
    stream_ = channel_->Open(std::move(request), std::move(callbacks));
  }
  std::optional<CallResult> Call(const std::string& method, Duration timeout) {
    std::optional<CallResult> result;
    Do([&] {
      channel_->Start({.method = method, .message = "", .timeout = timeout},
                      [&](CallResult given) { result.emplace(std::move(given)); });
    });
    EXPECT_TRUE(WaitUntil([&] { return result.has_value(); }));
    return result;
  }

  std::string path_;
  ChatService* service_ = nullptr;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<ClientStream> stream_;
  std::vector<std::string> messages_;
  std::optional<Result<void>> end_;
};

TEST_P(StreamTest, EverySideSendsWhenItLikes) {
  Do([&] {
    Open({.method = "/t.T/Chat"});
    stream_->Send("one");
    stream_->Send("two");
  });
  ASSERT_TRUE(WaitUntil([&] { return messages_.size() == 2; }));
  Do([&] { stream_->Send("three"); });
  ASSERT_TRUE(WaitUntil([&] { return messages_.size() == 3; }));
  EXPECT_EQ(messages_, (std::vector<std::string>{"re: one", "re: two", "re: three"}));
  EXPECT_FALSE(end_.has_value());
  Do([&] { stream_->FinishSending(); });
  ASSERT_TRUE(WaitUntil([&] { return end_.has_value(); }));
  EXPECT_TRUE(end_->ok());
}

TEST_P(StreamTest, ManyMessagesArriveInOrder) {
  Do([&] {
    Open({.method = "/t.T/Chat"});
    for (int i = 0; i < 500; ++i) stream_->Send(std::to_string(i));
    stream_->FinishSending();
  });
  ASSERT_TRUE(WaitUntil([&] { return end_.has_value(); }));
  ASSERT_EQ(messages_.size(), 500u);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(messages_[i], "re: " + std::to_string(i));
}

TEST_P(StreamTest, TheServerMayEndAStreamThatTheClientKeepsOpen) {
  Do([&] {
    Open({.method = "/t.T/Chat"});
    stream_->Send("one");
    stream_->Send("quit");
    stream_->Send("ignored");
  });
  ASSERT_TRUE(WaitUntil([&] { return end_.has_value(); }));
  EXPECT_EQ(end_->error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(messages_, std::vector<std::string>{"re: one"});
}

TEST_P(StreamTest, AStreamEndsAtItsDeadlineAndTheServerLearnsOfIt) {
  Do([&] {
    Open({.method = "/t.T/Chat", .timeout = milliseconds(50)});
    stream_->Send("one");
  });
  ASSERT_TRUE(WaitUntil([&] { return end_.has_value(); }));
  EXPECT_EQ(end_->error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_TRUE(WaitUntil([&] { return service_->cancelled == 1; }));
}

TEST_P(StreamTest, DestroyingAStreamCancelsItAtTheServer) {
  Do([&] {
    Open({.method = "/t.T/Chat"});
    stream_->Send("one");
  });
  ASSERT_TRUE(WaitUntil([&] { return messages_.size() == 1; }));
  Do([&] { stream_.reset(); });
  EXPECT_TRUE(WaitUntil([&] { return service_->cancelled == 1; }));
  Do([&] { EXPECT_FALSE(end_.has_value()); });
}

TEST_P(StreamTest, AStreamLearnsThatThereIsNoServerBeforeItSends) {
  Do([&] {
    server_->Stop();
    channel_ = transport().OpenChannel({.socket_path = path_});
    Open({.method = "/t.T/Chat"});
  });
  ASSERT_TRUE(WaitUntil([&] { return end_.has_value(); }));
  EXPECT_EQ(end_->error().code, ErrorCode::kUnavailable);
}

TEST_P(StreamTest, ACallToAnAbsentServerWasCertainlyNotProcessed) {
  Do([&] {
    server_->Stop();
    channel_ = transport().OpenChannel({.socket_path = path_});
  });
  const std::optional<CallResult> result = Call("/t.T/Keep", seconds(10));
  EXPECT_EQ(result->response.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(result->unprocessed);
}

TEST_P(StreamTest, ACallInFlightWhenTheServerStopsMayHaveBeenProcessed) {
  std::optional<CallResult> result;
  Do([&] {
    channel_->Start({.method = "/t.T/Keep", .message = ""},
                    [&](CallResult given) { result.emplace(std::move(given)); });
  });
  ASSERT_TRUE(WaitUntil([&] { return service_->kept.size() == 1; }));
  Do([&] { server_->Stop(); });
  ASSERT_TRUE(WaitUntil([&] { return result.has_value(); }));
  EXPECT_EQ(result->response.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(result->unprocessed);
}

TEST_P(StreamTest, ACallThatTimedOutAtTheServerMayHaveBeenProcessed) {
  Do([&] { channel_->Call("/t.T/Keep", "", seconds(10), [](auto) {}); });  // connects
  ASSERT_TRUE(WaitUntil([&] { return service_->kept.size() == 1; }));
  const std::optional<CallResult> result = Call("/t.T/Keep", milliseconds(50));
  EXPECT_EQ(result->response.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_FALSE(result->unprocessed);
}

INSTANTIATE_CONTRACT_TEST(StreamTest);

// A server that sends its SETTINGS and then falls silent.
class SilentServer final : public net::Socket::Handler {
 public:
  SilentServer(UvLoop& loop, const std::string& path) {
    listener_ = net::Listener::Create(loop, {.address = {.host = "", .port = 0, .unix_path = path}},
                                      [this](std::unique_ptr<net::Socket> socket) {
                                        sockets_.push_back(std::move(socket));
                                        sockets_.back()->Start(*this);
                                        std::string settings("\0\0\0\4\0\0\0\0\0", 9);
                                        sockets_.back()->Write(settings);
                                      })
                    .value();
  }
  void OnSocketData(std::string_view) override {}
  void OnSocketClosed(const Error*) override {}
  void OnSocketDrained() override {}

 private:
  std::unique_ptr<net::Listener> listener_;
  std::vector<std::unique_ptr<net::Socket>> sockets_;
};

TEST(Keepalive, AConnectionWhoseServerIsSilentIsClosed) {
  const std::unique_ptr<TransportHarness> harness = MakeGrpcHarness();
  const std::string path = harness->SocketPath("silent.sock");
  std::unique_ptr<SilentServer> server;
  std::unique_ptr<Channel> channel;
  std::optional<CallResult> result;
  harness->Do([&] {
    server = std::make_unique<SilentServer>(static_cast<UvLoop&>(harness->loop()), path);
    channel = harness->transport().OpenChannel({.socket_path = path,
                                                .keepalive_interval = milliseconds(10),
                                                .keepalive_timeout = milliseconds(10)});
    channel->Start({.method = "/t.T/Keep", .message = "", .timeout = std::chrono::minutes(10)},
                   [&](CallResult given) { result.emplace(std::move(given)); });
  });
  ASSERT_TRUE(harness->WaitUntil([&] { return result.has_value(); }));
  EXPECT_EQ(result->response.error().message,
            "rpc error: code = Unavailable desc = the server does not answer pings");
  EXPECT_FALSE(result->unprocessed);
  harness->Do([&] {
    channel.reset();
    server.reset();
  });
}

}  // namespace
}  // namespace drakkar::rpc
