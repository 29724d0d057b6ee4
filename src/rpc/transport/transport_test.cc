#include "rpc/transport/transport.h"

#include <gtest/gtest.h>

#include "base/env/file_system.h"
#include "base/exec/uv_loop.h"
#include "net/socket/socket.h"
#include "rpc/testing/contract_test.h"
#include "rpc/transport/status.h"

namespace drakkar::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// "/t.T/Echo" returns its request, "/t.T/Count" streams as many messages as requested, "/t.T/Keep"
// keeps its call for the test, "/t.T/Huge" returns more than is allowed, and "/t.T/Stop" stops the
// server before it answers.
class EchoService final : public RpcService {
 public:
  std::vector<std::string> MethodPaths() const override {
    return {"/t.T/Echo", "/t.T/Count", "/t.T/Keep", "/t.T/Huge", "/t.T/Stop"};
  }
  void Handle(std::string_view method, std::string request,
              std::unique_ptr<ServerCall> call) override {
    if (method == "/t.T/Keep") {
      kept.push_back(std::move(call));
      return;
    }
    if (method == "/t.T/Huge") request.assign(kMaxMessageBytes + 1, 'x');
    if (method == "/t.T/Stop") stop();
    if (method == "/t.T/Count") {
      for (int i = 0; i < std::stoi(request); ++i) call->Send(std::to_string(i));
    } else {
      call->Send(request);
    }
    call->Finish(Ok());
  }

  std::vector<std::unique_ptr<ServerCall>> kept;
  std::function<void()> stop;
};

class TransportTest : public ContractTest {
 protected:
  TransportTest() : path_(SocketPath("t.sock")) {
    Do([this] {
      std::vector<std::unique_ptr<RpcService>> services;
      services.push_back(std::make_unique<EchoService>());
      service_ = static_cast<EchoService*>(services.back().get());
      server_ = transport().CreateServer(path_, std::move(services));
      channel_ = transport().OpenChannel({.socket_path = path_});
    });
  }
  ~TransportTest() override {
    Do([this] {
      stream_.reset();
      channel_.reset();
      server_.reset();
    });
  }

  void Start() {
    Do([this] {
      const Result<void> started = server_->Start();
      ASSERT_TRUE(started.ok()) << started.error().message;
    });
  }
  Result<std::string> Call(const std::string& method, const std::string& request) {
    return Await<std::string>(
        [&](auto done) { channel_->Call(method, request, seconds(10), std::move(done)); });
  }

  std::string path_;
  EchoService* service_ = nullptr;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<ClientStream> stream_;
};

TEST_P(TransportTest, CarriesAnyBytes) {
  Start();
  const std::string bytes("\0\xff\x80", 3);
  EXPECT_EQ(Call("/t.T/Echo", bytes).value(), bytes);
  EXPECT_EQ(Call("/t.T/Echo", "").value(), "");
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(Call("/t.T/Echo", large).value(), large);
}

TEST_P(TransportTest, TellsAnUnknownMethodFromAnUnknownService) {
  Start();
  EXPECT_EQ(Call("/t.T/None", "").error().message,
            "rpc error: code = Unimplemented desc = unknown method None for service t.T");
  EXPECT_EQ(Call("/t.U/Echo", "").error().message,
            "rpc error: code = Unimplemented desc = unknown service t.U");
}

TEST_P(TransportTest, StartAndStopAreIdempotentAndRepeatable) {
  for (int round = 0; round < 3; ++round) {
    Start();
    Start();
    EXPECT_TRUE(Await<std::string>([&](auto done) {
                  channel_ = transport().OpenChannel({.socket_path = path_});
                  channel_->Call("/t.T/Echo", "x", seconds(10), std::move(done));
                }).ok());
    Do([this] {
      server_->Stop();
      server_->Stop();
    });
    Do([this] { channel_ = transport().OpenChannel({.socket_path = path_}); });
    EXPECT_EQ(Call("/t.T/Echo", "x").error().code, ErrorCode::kUnavailable);
  }
}

TEST_P(TransportTest, StreamsArriveWholeAndInOrder) {
  Start();
  std::vector<std::string> messages;
  std::optional<Result<void>> end;
  Do([&] {
    StreamCallbacks callbacks;
    callbacks.on_message = [&](std::string message) { messages.push_back(std::move(message)); };
    callbacks.on_end = [&](Result<void> result) { end = std::move(result); };
    stream_ = channel_->Watch("/t.T/Count", "1000", std::move(callbacks));
  });
  ASSERT_TRUE(WaitUntil([&] { return end.has_value(); }));
  EXPECT_TRUE(end->ok());
  ASSERT_EQ(messages.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(messages[i], std::to_string(i));
}

TEST_P(TransportTest, TheServerHearsWhenAClientGivesUp) {
  Start();
  Do([&] { channel_->Call("/t.T/Keep", "", seconds(10), [](auto) { FAIL(); }); });
  ASSERT_TRUE(WaitUntil([&] { return service_->kept.size() == 1; }));
  bool told = false;
  Do([&] {
    service_->kept[0]->OnCancelled([&] { told = true; });
    EXPECT_FALSE(service_->kept[0]->IsCancelled());
    channel_.reset();
  });
  EXPECT_TRUE(WaitUntil([&] { return told; }));
  Do([&] {
    EXPECT_TRUE(service_->kept[0]->IsCancelled());
    service_->kept[0]->Send("late");
    service_->kept[0]->Finish(Ok());
    service_->kept.clear();
  });
}

TEST_P(TransportTest, NobodyIsToldOfACancellationAfterTheServerStopped) {
  Start();
  Do([&] { channel_->Call("/t.T/Keep", "", seconds(10), [](auto) {}); });
  ASSERT_TRUE(WaitUntil([&] { return service_->kept.size() == 1; }));
  bool told = false;
  Do([&] {
    service_->kept[0]->OnCancelled([&] { told = true; });
    channel_.reset();
    server_->Stop();
    EXPECT_TRUE(service_->kept[0]->IsCancelled());
  });
  Do([&] {
    service_->kept.clear();
    channel_ = transport().OpenChannel({.socket_path = path_});
  });
  Start();
  EXPECT_TRUE(Call("/t.T/Echo", "").ok());
  Do([&] { EXPECT_FALSE(told); });
}

TEST_P(TransportTest, ACallerWhoseTimeIsUpIsToldAndSoIsTheServer) {
  Start();
  Do([&] { channel_->Call("/t.T/Echo", "", seconds(10), [](auto) {}); });  // connects
  std::optional<Result<std::string>> result;
  Do([&] {
    channel_->Call("/t.T/Keep", "", milliseconds(50),
                   [&](auto given) { result = std::move(given); });
  });
  ASSERT_TRUE(WaitUntil([&] { return service_->kept.size() == 1; }));
  bool told = false;
  Do([&] { service_->kept[0]->OnCancelled([&] { told = true; }); });
  ASSERT_TRUE(WaitUntil([&] { return result.has_value() && told; }));
  EXPECT_EQ(result->error().message,
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded");
  Do([&] { service_->kept.clear(); });
}

TEST_P(TransportTest, AServerThatStopsAnswersWhatIsInFlight) {
  Start();
  std::optional<Result<std::string>> result;
  std::optional<Result<void>> end;
  Do([&] {
    channel_->Call("/t.T/Keep", "", seconds(10), [&](auto given) { result = std::move(given); });
    StreamCallbacks callbacks;
    callbacks.on_end = [&](Result<void> given) { end = std::move(given); };
    stream_ = channel_->Watch("/t.T/Keep", "", std::move(callbacks));
  });
  ASSERT_TRUE(WaitUntil([&] { return service_->kept.size() == 2; }));
  Do([&] { server_->Stop(); });
  ASSERT_TRUE(WaitUntil([&] { return result.has_value() && end.has_value(); }));
  EXPECT_EQ(result->error().message, "rpc error: code = Unavailable desc = the server is stopping");
  EXPECT_EQ(end->error().message, result->error().message);
  Do([&] { service_->kept.clear(); });
}

TEST_P(TransportTest, AnyCallbackMayDestroyTheChannel) {
  Start();
  const auto gone = [this] { return WaitUntil([this] { return channel_ == nullptr; }); };
  const auto open = [this](std::function<void(bool)> on_change = nullptr) {
    channel_ = transport().OpenChannel({.socket_path = path_, .on_connection_change = on_change});
  };
  Do([&] {
    channel_->Call("/t.T/Echo", "", seconds(10), [&](auto) { channel_.reset(); });
    channel_->Call("/t.T/Echo", "", seconds(10), [&](auto) { FAIL(); });
  });
  EXPECT_TRUE(gone());
  for (const bool at_end : {false, true}) {
    Do([&] {
      open();
      StreamCallbacks callbacks;
      callbacks.on_message = [&, at_end](auto) {
        ASSERT_NE(channel_, nullptr);
        if (!at_end) channel_.reset();
      };
      callbacks.on_end = [&](auto) { channel_.reset(); };
      stream_ = channel_->Watch("/t.T/Count", "10", std::move(callbacks));
    });
    EXPECT_TRUE(gone());
    Do([&] { stream_.reset(); });
  }
  Do([&] { open([&](bool) { channel_.reset(); }); });
  EXPECT_TRUE(gone());
  // The loss of the connection, and the failure to make one.
  bool connected = false;
  Do([&] {
    open([&](bool now) {
      connected = now;
      if (!now) channel_.reset();
    });
  });
  ASSERT_TRUE(WaitUntil([&] { return connected; }));
  Do([&] { channel_->Call("/t.T/Keep", "", seconds(10), [](auto) {}); });
  ASSERT_TRUE(WaitUntil([&] { return service_->kept.size() == 1; }));
  Do([&] { server_->Stop(); });
  EXPECT_TRUE(gone());
  Do([&] {
    service_->kept.clear();
    open();
    for (int i = 0; i < 3; ++i) {
      channel_->Call("/t.T/Echo", "", seconds(10), [&](auto) {
        ASSERT_NE(channel_, nullptr);
        channel_.reset();
      });
    }
  });
  EXPECT_TRUE(gone());
}

TEST_P(TransportTest, AStreamMayBeDestroyedByItsOwnMessage) {
  Start();
  int messages = 0;
  Do([&] {
    StreamCallbacks callbacks;
    callbacks.on_message = [&](auto) {
      ++messages;
      stream_.reset();
    };
    callbacks.on_end = [](auto) { FAIL(); };
    stream_ = channel_->Watch("/t.T/Count", "10", std::move(callbacks));
  });
  ASSERT_TRUE(WaitUntil([&] { return messages > 0; }));
  EXPECT_TRUE(Call("/t.T/Echo", "").ok());
  Do([&] { EXPECT_EQ(messages, 1); });
}

TEST_P(TransportTest, AKeptChannelTellsOfEachChangeAndComesBack) {
  std::vector<bool> changes;
  Do([&] {
    channel_ = transport().OpenChannel(
        {.socket_path = path_,
         .initial_backoff = milliseconds(5),
         .max_backoff = milliseconds(20),
         .on_connection_change = [&](bool connected) { changes.push_back(connected); }});
  });
  EXPECT_EQ(Call("/t.T/Echo", "").error().code, ErrorCode::kUnavailable);
  Start();
  ASSERT_TRUE(WaitUntil([&] { return changes == std::vector<bool>{true}; }));
  EXPECT_TRUE(Call("/t.T/Echo", "").ok());
  Do([&] { server_->Stop(); });
  ASSERT_TRUE(WaitUntil([&] { return changes.size() == 2; }));
  Start();
  ASSERT_TRUE(WaitUntil([&] { return changes.size() == 3; }));
  EXPECT_EQ(changes, (std::vector<bool>{true, false, true}));
  EXPECT_TRUE(Call("/t.T/Echo", "").ok());
}

INSTANTIATE_CONTRACT_TEST(TransportTest);

class GrpcSocketTest : public ::testing::Test {
 protected:
  Result<void> Start(const std::string& path) {
    Result<void> started = Ok();
    harness_->Do([&] {
      server_ = harness_->transport().CreateServer(path, {});
      started = server_->Start();
    });
    return started;
  }
  ~GrpcSocketTest() override {
    harness_->Do([this] { server_.reset(); });
  }

  // A server of EchoService and a channel to it.
  std::unique_ptr<Channel> StartEcho() {
    path_ = harness_->SocketPath("s.sock");
    std::unique_ptr<Channel> channel;
    harness_->Do([&] {
      auto service = std::make_unique<EchoService>();
      echo_ = service.get();
      echo_->stop = [this] { server_->Stop(); };
      std::vector<std::unique_ptr<RpcService>> services;
      services.push_back(std::move(service));
      server_ = harness_->transport().CreateServer(path_, std::move(services));
      ASSERT_TRUE(server_->Start().ok());
      channel = harness_->transport().OpenChannel({.socket_path = path_});
    });
    return channel;
  }

  std::unique_ptr<TransportHarness> harness_ = MakeGrpcHarness();
  std::unique_ptr<Server> server_;
  std::string path_;
  EchoService* echo_ = nullptr;
};

TEST_F(GrpcSocketTest, TheSocketIsPrivateAndGoneAfterStop) {
  const std::string path = harness_->SocketPath("s.sock");
  ASSERT_TRUE(Start(path).ok());
  const Result<FileInfo> info = RealFileSystem().LinkStat(path);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->type, FileType::kSocket);
  EXPECT_EQ(info->mode & 0777u, 0600u);
  harness_->Do([&] { server_->Stop(); });
  EXPECT_FALSE(RealFileSystem().Exists(path));
}

TEST_F(GrpcSocketTest, AStaleSocketIsReplaced) {
  // A second server takes over the path from one that did not clean up.
  const std::string path = harness_->SocketPath("s.sock");
  ASSERT_TRUE(Start(path).ok());
  std::unique_ptr<Server> successor;
  harness_->Do([&] {
    successor = harness_->transport().CreateServer(path, {});
    EXPECT_TRUE(successor->Start().ok());
  });
  EXPECT_TRUE(RealFileSystem().Exists(path));
  harness_->Do([&] { successor.reset(); });
}

TEST_F(GrpcSocketTest, SaysWhyItCannotListen) {
  const std::string missing = harness_->SocketPath("none/s.sock");
  EXPECT_EQ(Start(missing).error().message.rfind("listen on " + missing + ": ", 0), 0u);
  EXPECT_EQ(Start(missing).error().code, ErrorCode::kNotFound);

  const std::string file = harness_->SocketPath("file");
  ASSERT_TRUE(RealFileSystem().WriteFile(file, "precious", 0600).ok());
  EXPECT_EQ(Start(file).error(),
            FailedPrecondition("listen on " + file + ": " + file + " exists and is not a socket"));
  EXPECT_EQ(RealFileSystem().ReadFile(file).value(), "precious");

  const std::string below_a_file = file + "/s.sock";
  EXPECT_FALSE(Start(below_a_file).ok());
  EXPECT_EQ(Start("").error().message, "listen on : the socket path is empty");
  const std::string too_long = harness_->SocketPath(std::string(120, 'x'));
  EXPECT_EQ(Start(too_long).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(GrpcSocketTest, AReaderThatFallsTooFarBehindIsCutOff) {
  auto channel = StartEcho();
  EchoService* const echo = echo_;
  std::unique_ptr<ClientStream> stream;
  std::optional<Result<void>> end;
  harness_->Do([&] {
    StreamCallbacks callbacks;
    callbacks.on_message = [](auto) {};
    callbacks.on_end = [&](Result<void> result) { end = std::move(result); };
    stream = channel->Watch("/t.T/Keep", "", std::move(callbacks));
  });
  ASSERT_TRUE(harness_->WaitUntil([&] { return echo->kept.size() == 1; }));
  harness_->Do([&] {
    // Reader and writer share the loop, so nothing is read during these sends.
    for (std::size_t i = 0; i < 4 * kMaxPendingMessages; ++i) {
      echo->kept[0]->Send(std::string(10'000, 'x'));
    }
  });
  ASSERT_TRUE(harness_->WaitUntil([&] { return end.has_value(); }));
  EXPECT_EQ(end->error().code, ErrorCode::kResourceExhausted) << end->error().message;
  harness_->Do([&] {
    echo->kept.clear();
    stream.reset();
    channel.reset();
  });
}

TEST_F(GrpcSocketTest, MessagesBeyondTheBoundAreRefusedOnBothSides) {
  auto channel = StartEcho();
  const auto call = [&](const std::string& method, const std::string& request) {
    std::optional<Result<std::string>> result;
    harness_->Do([&] {
      channel->Call(method, request, seconds(10), [&](auto given) { result = std::move(given); });
    });
    EXPECT_TRUE(harness_->WaitUntil([&] { return result.has_value(); }));
    return std::move(*result);
  };
  EXPECT_EQ(call("/t.T/Echo", std::string(kMaxMessageBytes, 'x'))->size(),
            static_cast<std::size_t>(kMaxMessageBytes));
  EXPECT_EQ(call("/t.T/Echo", std::string(kMaxMessageBytes + 1, 'x')).error().message,
            "rpc error: code = ResourceExhausted desc = trying to send message larger than max "
            "(16777217 vs. 16777216)");
  EXPECT_EQ(call("/t.T/Huge", "").error().code, ErrorCode::kResourceExhausted);
  EXPECT_TRUE(call("/t.T/Echo", "still there").ok());
  harness_->Do([&] { channel.reset(); });
}

TEST_F(GrpcSocketTest, AServerMayBeStoppedByItsOwnService) {
  auto channel = StartEcho();
  std::vector<Result<std::string>> results;
  harness_->Do([&] {
    for (const char* method : {"/t.T/Stop", "/t.T/Echo"}) {
      channel->Call(method, "", seconds(10),
                    [&](auto given) { results.push_back(std::move(given)); });
    }
  });
  ASSERT_TRUE(harness_->WaitUntil([&] { return results.size() == 2; }));
  for (const auto& result : results) EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
  harness_->Do([&] { channel.reset(); });
}

TEST_F(GrpcSocketTest, APeerThatIsBehindStillGetsItsAnswerFromAServerThatStops) {
  auto channel = StartEcho();
  std::optional<Result<std::string>> result;
  harness_->Do([&] {
    channel->Call("/t.T/Keep", "", seconds(10), [&](auto given) { result = std::move(given); });
  });
  ASSERT_TRUE(harness_->WaitUntil([&] { return echo_->kept.size() == 1; }));
  harness_->Do([&] {
    // More than the kernel accepts at once, on a loop that does not read in the meantime.
    echo_->kept[0]->Send(std::string(3'000'000, 'x'));
    echo_->kept[0]->Finish(Ok());
    server_->Stop();
  });
  ASSERT_TRUE(harness_->WaitUntil([&] { return result.has_value(); }));
  EXPECT_TRUE(result->ok()) << result->error().message;
  harness_->Do([&] { channel.reset(); });
}

// A peer that sends given bytes, or nothing.
class OddPeer final : public net::Socket::Handler {
 public:
  OddPeer(UvLoop& loop, const std::string& path, std::string says) : says_(std::move(says)) {
    listener_ = net::Listener::Create(loop, {.address = {.host = "", .port = 0, .unix_path = path}},
                                      [this](std::unique_ptr<net::Socket> socket) {
                                        ++accepted;
                                        sockets_.push_back(std::move(socket));
                                        sockets_.back()->Start(*this);
                                        std::string words = says_;
                                        sockets_.back()->Write(words);
                                      })
                    .value();
  }
  void OnSocketData(std::string_view) override {}
  void OnSocketClosed(const Error*) override {}
  void OnSocketDrained() override {}

  int accepted = 0;

 private:
  std::string says_;
  std::unique_ptr<net::Listener> listener_;
  std::vector<std::unique_ptr<net::Socket>> sockets_;
};

TEST_F(GrpcSocketTest, APeerThatSpeaksSomethingElseIsUnavailableAndOneThatIsSilentIsLate) {
  const std::string path = harness_->SocketPath("odd.sock");
  for (const std::string says : {"HTTP/1.1 400 Bad Request\r\n\r\n", ""}) {
    std::unique_ptr<OddPeer> peer;
    std::unique_ptr<Channel> channel;
    std::optional<Result<std::string>> result;
    harness_->Do([&] {
      peer = std::make_unique<OddPeer>(static_cast<UvLoop&>(harness_->loop()), path, says);
      channel = harness_->transport().OpenChannel({.socket_path = path});
      channel->Call("/t.T/Echo", "", says.empty() ? Duration(milliseconds(30)) : seconds(10),
                    [&](auto given) { result = std::move(given); });
    });
    ASSERT_TRUE(harness_->WaitUntil([&] { return result.has_value(); }));
    EXPECT_EQ(result->error().code,
              says.empty() ? ErrorCode::kDeadlineExceeded : ErrorCode::kUnavailable);
    harness_->Do([&] {
      channel.reset();
      peer.reset();
    });
  }
}

TEST_F(GrpcSocketTest, APeerThatDropsEveryConnectionIsNotTriedWithoutAPause) {
  // Sends its SETTINGS, immediately followed by a GOAWAY.
  const std::string path = harness_->SocketPath("odd.sock");
  const std::string says(
      "\0\0\0\4\0\0\0\0\0"
      "\0\0\x08\7\0\0\0\0\0\0\0\0\0\0\0\0\0",
      26);
  std::unique_ptr<OddPeer> peer;
  std::unique_ptr<Channel> channel;
  int lost = 0;
  harness_->Do([&] {
    peer = std::make_unique<OddPeer>(static_cast<UvLoop&>(harness_->loop()), path, says);
    channel = harness_->transport().OpenChannel(
        {.socket_path = path,
         .initial_backoff = seconds(60),
         .on_connection_change = [&](bool connected) { lost += connected ? 0 : 1; }});
  });
  ASSERT_TRUE(harness_->WaitUntil([&] { return lost == 4; }));
  for (int i = 0; i < 50; ++i) harness_->Do([] {});
  harness_->Do([&] {
    EXPECT_EQ(peer->accepted, 4);
    channel.reset();
    peer.reset();
  });
}

TEST_F(GrpcSocketTest, ConnectionsAreBounded) {
  auto first = StartEcho();
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<int> state;  // changes seen, per channel
  harness_->Do([&] {
    state.resize(300);
    for (std::size_t i = 0; i < state.size(); ++i) {
      channels.push_back(harness_->transport().OpenChannel(
          {.socket_path = path_,
           .initial_backoff = seconds(60),
           .on_connection_change = [&state, i](bool connected) { state[i] = connected ? 1 : 0; }}));
    }
  });
  const auto connected = [&] { return std::count(state.begin(), state.end(), 1); };
  ASSERT_TRUE(harness_->WaitUntil([&] { return connected() == 256; }));
  std::optional<Result<std::string>> result;
  harness_->Do([&] {
    channels.front()->Call("/t.T/Echo", "x", seconds(10),
                           [&](auto given) { result = std::move(given); });
  });
  ASSERT_TRUE(harness_->WaitUntil([&] { return result.has_value(); }));
  EXPECT_TRUE(result->ok());
  harness_->Do([&] {
    EXPECT_EQ(connected(), 256);
    channels.clear();
    first.reset();
  });
}

TEST_F(GrpcSocketTest, ATransportMayGoWhileALoopStillHasItsTasks) {
  const std::string path = harness_->SocketPath("s.sock");
  ASSERT_TRUE(Start(path).ok());
  for (int round = 0; round < 50; ++round) {
    harness_->Do([&] {
      std::unique_ptr<Channel> channel = harness_->transport().OpenChannel(
          {.socket_path = path, .on_connection_change = [](bool) {}});
      for (int i = 0; i < 5; ++i) channel->Call("/t.T/None", "", seconds(1), [](auto) { FAIL(); });
    });
  }
}

}  // namespace
}  // namespace drakkar::rpc
