// Exec and port-forward over SPDY, with a client in memory.
#include "base/testing/seeded_loop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/runtime/hollow/hollow_runtime.h"
#include "node/runtime/testing/memory_stream.h"
#include "node/streaming/port_forward.h"
#include "node/streaming/spdy_command.h"

namespace drakkar::node {
namespace {

using net::spdy::StreamId;
using ::testing::HasSubstr;

// What kubectl does: opens streams, collects what comes back.
class Client final : private net::spdy::Session::Events {
 public:
  explicit Client(std::unique_ptr<net::RawStream> stream)
      : session_(net::spdy::Role::kClient, *this), stream_(std::move(stream)) {
    stream_->Start([this](std::string_view bytes) { EXPECT_TRUE(session_.Receive(bytes).ok()); },
                   [this] { disconnected = true; });
  }
  StreamId Open(net::Headers headers) {
    const StreamId id = session_.Open(headers);
    Flush();
    return id;
  }
  void Send(StreamId id, std::string_view bytes) {
    session_.Send(id, bytes);
    Flush();
  }
  void Finish(StreamId id) {
    session_.Finish(id);
    Flush();
  }
  void Disconnect() { stream_.reset(); }

  std::map<StreamId, std::string> data;
  std::map<StreamId, std::string> state;  // "open", "finished", "reset"
  bool disconnected = false;

 private:
  void OnStream(StreamId, const net::Headers&) override { ADD_FAILURE(); }
  void OnReply(StreamId id) override { state[id] = "open"; }
  void OnData(StreamId id, std::string_view bytes) override { data[id] += bytes; }
  void OnFinish(StreamId id) override { state[id] = "finished"; }
  void OnReset(StreamId id) override { state[id] = "reset"; }
  void OnGoAway() override {}
  void Flush() {
    if (session_.has_output()) stream_->Write(session_.TakeOutput());
  }

  net::spdy::Session session_;
  std::unique_ptr<net::RawStream> stream_;
};

class SpdyStreamsTest : public ::testing::Test {
 protected:
  SpdyStreamsTest() {
    machine_.images.push_back({.id = "sha256:a", .names = {"docker.io/library/i:latest"}});
    machine_.program_of = [](const ContainerConfig&) {
      HollowProgram program;
      program.exec = [](const std::vector<std::string>&) {
        return ExecResult{5, "out\n", "err\n"};
      };
      return program;
    };
    runtime_ = MakeHollowRuntime(loop_, machine_);
    runtime_->OnExit([](const ContainerStatus&) {});
    runtime_->Open([](Result<void>) {});
    loop_.RunUntilIdle();
    runtime_->RunPodSandbox({}, [this](Result<std::string> id) { sandbox_ = *id; });
    loop_.RunUntilIdle();
    ContainerConfig config;
    config.name = "c";
    config.image = "i";
    runtime_->CreateContainer(sandbox_, config,
                              [this](Result<std::string> id) { container_ = *id; });
    loop_.RunUntilIdle();
    runtime_->StartContainer(container_, [](Result<void>) {});
    loop_.RunUntilIdle();
  }

  void StartCommand(const StreamOptions& streams) {
    auto [ours, theirs] = MemoryStream::Pair(loop_);
    command_ = std::make_unique<SpdyCommand>(
        SpdyCommand::Options{.loop = loop_,
                             .streams = streams,
                             .what = "executing command",
                             .starter =
                                 [this, streams](ProcessStreams::Events& events) {
                                   return runtime_->Exec(container_, {"x"}, streams, events);
                                 },
                             .on_gone = [this] { command_.reset(); }},
        std::move(ours));
    command_->Start();
    client_ = std::make_unique<Client>(std::move(theirs));
  }
  void StartForward() {
    auto [ours, theirs] = MemoryStream::Pair(loop_);
    forward_ = std::make_unique<PortForward>(
        PortForward::Options{.loop = loop_,
                             .pod = "p_default",
                             .connect =
                                 [this](std::uint16_t port, PortConnection::Events& events) {
                                   return runtime_->ConnectPort(sandbox_, port, events);
                                 },
                             .on_gone = [this] { forward_.reset(); }},
        std::move(ours));
    forward_->Start();
    client_ = std::make_unique<Client>(std::move(theirs));
  }
  StreamId Open(const std::string& type, int port, const std::string& request) {
    return client_->Open(
        {{"streamType", type}, {"port", std::to_string(port)}, {"requestID", request}});
  }

  SeededLoop loop_;
  HollowMachine machine_;
  std::unique_ptr<Runtime> runtime_;
  std::string sandbox_, container_;
  std::unique_ptr<SpdyCommand> command_;
  std::unique_ptr<PortForward> forward_;
  std::unique_ptr<Client> client_;
};

TEST_F(SpdyStreamsTest, RunsACommandOnceAllStreamsAreOpen) {
  StartCommand({.standard_input = true, .standard_output = true, .error_output = true});
  const StreamId error = client_->Open({{"streamType", "error"}});
  const StreamId input = client_->Open({{"streamType", "stdin"}});
  const StreamId output = client_->Open({{"streamType", "stdout"}});
  loop_.RunUntilIdle();
  EXPECT_EQ(client_->state[output], "open");
  EXPECT_EQ(client_->data[output], "") << "one stream is missing";
  const StreamId error_output = client_->Open({{"streamType", "stderr"}});
  client_->Send(input, "in ");
  client_->Finish(input);
  loop_.RunUntilIdle();
  EXPECT_EQ(client_->data[output], "in out\n");
  EXPECT_EQ(client_->data[error_output], "err\n");
  EXPECT_THAT(client_->data[error], HasSubstr(R"("reason":"ExitCode","message":"5")"));
  EXPECT_EQ(client_->state[error], "finished");
  client_->Disconnect();
  loop_.RunUntilIdle();
  EXPECT_EQ(command_, nullptr);
}

TEST_F(SpdyStreamsTest, RefusesStreamsThatWereNotAskedFor) {
  StartCommand({.standard_output = true});
  const StreamId input = client_->Open({{"streamType", "stdin"}});
  const StreamId first = client_->Open({{"streamType", "error"}});
  const StreamId second = client_->Open({{"streamType", "error"}});
  loop_.RunUntilIdle();
  EXPECT_EQ(client_->state[input], "reset");
  EXPECT_EQ(client_->state[first], "open");
  EXPECT_EQ(client_->state[second], "reset");
  // A client that never opens the rest is dropped.
  loop_.Advance(SpdyCommand::kStreamsWithin);
  EXPECT_EQ(command_, nullptr);
  EXPECT_TRUE(client_->disconnected);
}

TEST_F(SpdyStreamsTest, ForwardsSeveralConnectionsAtOnce) {
  StartForward();
  const StreamId error_a = Open("error", 80, "0");
  const StreamId data_a = Open("data", 80, "0");
  const StreamId error_b = Open("error", 90, "1");
  const StreamId data_b = Open("data", 90, "1");
  client_->Send(data_a, "to a");
  client_->Send(data_b, "to b");
  loop_.RunUntilIdle();
  EXPECT_EQ(client_->data[data_a], "to a");
  EXPECT_EQ(client_->data[data_b], "to b");
  client_->Finish(data_a);
  loop_.RunUntilIdle();
  EXPECT_EQ(client_->state[data_a], "finished");
  EXPECT_EQ(client_->state[error_a], "finished");
  EXPECT_EQ(client_->data[error_a], "") << "no error";
  EXPECT_EQ(client_->state[data_b], "open");
  EXPECT_EQ(client_->state[error_b], "open");
  client_->Disconnect();
  loop_.RunUntilIdle();
  EXPECT_EQ(forward_, nullptr);
}

TEST_F(SpdyStreamsTest, SaysWhyAPortCannotBeReached) {
  machine_.closed_port = 81;
  StartForward();
  const StreamId error = Open("error", 81, "0");
  const StreamId data = Open("data", 81, "0");
  loop_.RunUntilIdle();
  EXPECT_EQ(client_->data[error], "error forwarding port 81 to pod p_default: connection refused");
  EXPECT_EQ(client_->state[error], "finished");
  EXPECT_EQ(client_->state[data], "finished");
  // The session goes on.
  Open("error", 82, "1");
  const StreamId other = Open("data", 82, "1");
  client_->Send(other, "hello");
  loop_.RunUntilIdle();
  EXPECT_EQ(client_->data[other], "hello");
}

TEST_F(SpdyStreamsTest, RefusesPortsAndPairsThatMakeNoSense) {
  StartForward();
  EXPECT_EQ((Open("data", 0, "0"), loop_.RunUntilIdle(), client_->state[1]), "reset");
  EXPECT_EQ((Open("data", 65536, "0"), loop_.RunUntilIdle(), client_->state[3]), "reset");
  EXPECT_EQ((Open("stdin", 80, "0"), loop_.RunUntilIdle(), client_->state[5]), "reset");
  const StreamId data = Open("data", 80, "1");
  const StreamId again = Open("data", 80, "1");
  const StreamId other_port = Open("error", 81, "1");
  loop_.RunUntilIdle();
  EXPECT_EQ(client_->state[data], "open");
  EXPECT_EQ(client_->state[again], "reset");
  EXPECT_EQ(client_->state[other_port], "reset");
  loop_.Advance(PortForward::kPairWithin);
  EXPECT_EQ(client_->state[data], "finished") << "the other stream never came";
}

}  // namespace
}  // namespace drakkar::node
