#include "rpc/transport/transport.h"

#include <gtest/gtest.h>

#include "base/env/file_system.h"
#include "rpc/testing/contract_test.h"
#include "rpc/transport/status.h"

namespace drakkar::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// "/t.T/Echo" answers its request, "/t.T/Count" streams as many messages as it is asked for,
// "/t.T/Keep" keeps its call for the test.
class EchoService final : public RpcService {
 public:
  std::vector<std::string> MethodPaths() const override {
    return {"/t.T/Echo", "/t.T/Count", "/t.T/Keep"};
  }
  void Handle(std::string_view method, std::string request,
              std::unique_ptr<ServerCall> call) override {
    if (method == "/t.T/Keep") {
      kept.push_back(std::move(call));
      return;
    }
    if (method == "/t.T/Count") {
      for (int i = 0; i < std::stoi(request); ++i) call->Send(std::to_string(i));
    } else {
      call->Send(request);
    }
    call->Finish(Ok());
  }

  std::vector<std::unique_ptr<ServerCall>> kept;
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

INSTANTIATE_CONTRACT_TEST(TransportTest);

#ifndef __SANITIZE_THREAD__  // see contract_test.h

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

  std::unique_ptr<TransportHarness> harness_ = MakeGrpcHarness();
  std::unique_ptr<Server> server_;
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
  // A second server takes the path over from one that never cleaned up.
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
  const std::string path = harness_->SocketPath("s.sock");
  auto service = std::make_unique<EchoService>();
  EchoService* echo = service.get();
  std::unique_ptr<Channel> channel;
  std::unique_ptr<ClientStream> stream;
  std::optional<Result<void>> end;
  harness_->Do([&] {
    std::vector<std::unique_ptr<RpcService>> services;
    services.push_back(std::move(service));
    server_ = harness_->transport().CreateServer(path, std::move(services));
    ASSERT_TRUE(server_->Start().ok());
    channel = harness_->transport().OpenChannel({.socket_path = path});
    StreamCallbacks callbacks;
    callbacks.on_message = [](auto) {};
    callbacks.on_end = [&](Result<void> result) { end = std::move(result); };
    stream = channel->Watch("/t.T/Keep", "", std::move(callbacks));
  });
  ASSERT_TRUE(harness_->WaitUntil([&] { return echo->kept.size() == 1; }));
  harness_->Do([&] {
    // Reader and writer share the loop, so nothing is read while this sends.
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

#endif  // __SANITIZE_THREAD__

}  // namespace
}  // namespace drakkar::rpc
