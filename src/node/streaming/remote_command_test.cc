#include "node/streaming/remote_command.h"

#include <gtest/gtest.h>

#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "net/websocket/channels.h"

namespace drakkar::node {
namespace {

namespace ws = net::websocket;
using std::chrono::seconds;

// The other side of the connection: a client that reads what was written to it.
struct Wire {
  std::string written;
  std::size_t pending = 0;
  bool reading = true;
  bool destroyed = false;
  std::function<void(std::string_view)> on_data;
  std::function<void()> on_closed;
  std::function<void()> on_drained;
};

class FakeStream final : public net::RawStream {
 public:
  explicit FakeStream(Wire& wire) : wire_(wire) {}
  ~FakeStream() override { wire_.destroyed = true; }
  void Start(std::function<void(std::string_view)> on_data,
             std::function<void()> on_closed) override {
    wire_.on_data = std::move(on_data);
    wire_.on_closed = std::move(on_closed);
  }
  void Write(std::string_view bytes) override { wire_.written.append(bytes); }
  std::size_t pending_bytes() const override { return wire_.pending; }
  void SetReading(bool reading) override { wire_.reading = reading; }
  void OnDrained(std::function<void()> callback) override {
    wire_.on_drained = std::move(callback);
  }

 private:
  Wire& wire_;
};

// The process as the test sees it.
struct FakeProcess {
  std::string input;
  bool input_closed = false;
  std::size_t pending = 0;
  bool reading = true;
  std::string size;
  bool destroyed = false;
  ProcessStreams::Events* events = nullptr;
};

class FakeStreams final : public ProcessStreams {
 public:
  explicit FakeStreams(FakeProcess& process) : process_(process) {}
  ~FakeStreams() override { process_.destroyed = true; }
  void WriteInput(std::string_view bytes) override { process_.input.append(bytes); }
  std::size_t pending_input() const override { return process_.pending; }
  void CloseInput() override { process_.input_closed = true; }
  void Resize(std::uint16_t columns, std::uint16_t rows) override {
    process_.size = StrCat(columns, "x", rows);
  }
  void SetReading(bool reading) override { process_.reading = reading; }

 private:
  FakeProcess& process_;
};

class RemoteCommandTest : public ::testing::Test, private ws::Session::Events {
 protected:
  void Begin(StreamOptions streams, std::string_view protocol = ws::kChannelProtocolV5,
             std::optional<Error> failure = {}) {
    command_ = std::make_unique<RemoteCommand>(
        RemoteCommand::Options{.loop = loop_,
                               .streams = streams,
                               .protocol = std::string(protocol),
                               .what = "executing command",
                               .on_gone = [this] { command_.reset(); }},
        std::make_unique<FakeStream>(wire_));
    command_->Start([&](ProcessStreams::Events& events) -> Result<std::unique_ptr<ProcessStreams>> {
      if (failure) return *failure;
      process_.events = &events;
      return std::unique_ptr<ProcessStreams>(std::make_unique<FakeStreams>(process_));
    });
    ReadAll();
  }
  void Send(char channel, std::string_view bytes) {
    client_.Send(ws::MessageType::kBinary, std::string_view(&channel, 1), bytes);
    wire_.on_data(client_.TakeOutput());
    ReadAll();
  }
  void ReadAll() {
    client_.Receive(std::exchange(wire_.written, {}));
    loop_.RunUntilIdle();
  }

  SeededLoop loop_;
  Wire wire_;
  FakeProcess process_;
  std::vector<std::string> heard_;  // "1:text"
  SeededRandom random_{3};
  ws::Session client_{ws::Role::kClient, random_, *this};
  std::unique_ptr<RemoteCommand> command_;

 private:
  void OnMessage(ws::MessageType, std::string_view payload) override {
    heard_.push_back(StrCat(static_cast<int>(payload[0]), ":", payload.substr(1)));
  }
  void OnClose(std::uint16_t code, std::string_view) override {
    heard_.push_back(StrCat("close ", code));
  }
};

const StreamOptions kAll{.standard_input = true, .standard_output = true, .error_output = true};

TEST_F(RemoteCommandTest, PassesInputAndOutputAndTheExitCode) {
  Begin(kAll);
  Send(ws::kChannelInput, "in");
  EXPECT_EQ(process_.input, "in");
  process_.events->OnOutput(OutputStream::kStandard, "out");
  process_.events->OnOutput(OutputStream::kError, "err");
  Send(ws::kChannelClose, std::string(1, ws::kChannelInput));
  EXPECT_TRUE(process_.input_closed);
  process_.events->OnEnd(3);
  ReadAll();
  EXPECT_EQ(
      heard_,
      (std::vector<std::string>{
          "1:", "1:out", "2:err",
          "3:{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command terminated with "
          "non-zero exit "
          "code: "
          "3\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":\"ExitCode\","
          "\"message\":\"3\"}]}}",
          "close 1000"}));
  EXPECT_TRUE(process_.destroyed);
  EXPECT_FALSE(wire_.destroyed) << "until the client has closed too";
  wire_.on_data(client_.TakeOutput());
  loop_.RunUntilIdle();
  EXPECT_TRUE(wire_.destroyed);
}

TEST_F(RemoteCommandTest, ReportsSuccessAndDoesNotWaitForeverForTheClient) {
  Begin({.standard_output = true});
  process_.events->OnEnd(0);
  ReadAll();
  EXPECT_EQ(heard_, (std::vector<std::string>{"1:", "3:{\"metadata\":{},\"status\":\"Success\"}",
                                              "close 1000"}));
  loop_.Advance(RemoteCommand::kCloseTimeout);
  EXPECT_TRUE(wire_.destroyed);
}

TEST_F(RemoteCommandTest, TheFirstProtocolHasNoStatusAndAFailureAsText) {
  Begin({.standard_output = true}, kFirstChannelProtocol);
  process_.events->OnOutput(OutputStream::kStandard, "out");
  process_.events->OnEnd(0);
  ReadAll();
  EXPECT_EQ(heard_, (std::vector<std::string>{"1:", "1:out", "close 1000"}));
}

TEST_F(RemoteCommandTest, TheFirstProtocolTellsAnExitCodeAsText) {
  Begin({.standard_output = true}, kFirstChannelProtocol);
  process_.events->OnEnd(3);
  ReadAll();
  EXPECT_EQ(heard_, (std::vector<std::string>{
                        "1:", "3:command terminated with non-zero exit code: 3", "close 1000"}));
}

TEST_F(RemoteCommandTest, ReportsACommandThatDidNotStart) {
  Begin(kAll, ws::kChannelProtocolV4, FailedPrecondition("no such file"));
  ASSERT_EQ(heard_.size(), 3u);
  EXPECT_NE(
      heard_[1].find("Internal error occurred: error executing command in container: no such file"),
      std::string::npos);
  EXPECT_EQ(heard_[2], "close 1000");
}

TEST_F(RemoteCommandTest, OnlyTheNewestProtocolClosesItsInput) {
  Begin(kAll, ws::kChannelProtocolV4);
  Send(ws::kChannelClose, std::string(1, ws::kChannelInput));
  EXPECT_FALSE(process_.input_closed);
}

TEST_F(RemoteCommandTest, ResizesOnlyTerminals) {
  Begin({.standard_input = true, .standard_output = true, .terminal = true});
  Send(ws::kChannelResize, R"({"Width":80,"Height":24})");
  EXPECT_EQ(process_.size, "80x24");
  for (std::string_view nonsense :
       {R"({"Width":0,"Height":24})", R"({"Width":80,"Height":70000})", "x", ""}) {
    Send(ws::kChannelResize, nonsense);
  }
  EXPECT_EQ(process_.size, "80x24");
}

TEST_F(RemoteCommandTest, WaitsForASlowClientAndForASlowProcess) {
  Begin(kAll);
  wire_.pending = RemoteCommand::kMaxPending + 1;
  process_.events->OnOutput(OutputStream::kStandard, "out");
  EXPECT_FALSE(process_.reading);
  wire_.pending = 0;
  wire_.on_drained();
  EXPECT_TRUE(process_.reading);
  process_.pending = RemoteCommand::kMaxPending + 1;
  Send(ws::kChannelInput, "in");
  EXPECT_FALSE(wire_.reading);
  process_.events->OnInputDrained();
  EXPECT_TRUE(wire_.reading);
}

TEST_F(RemoteCommandTest, EndsTheProcessWhenTheClientDisconnects) {
  Begin(kAll);
  wire_.on_closed();
  loop_.RunUntilIdle();
  EXPECT_TRUE(process_.destroyed);
  EXPECT_TRUE(wire_.destroyed);
}

TEST_F(RemoteCommandTest, EndsTheProcessOnAProtocolErrorOrClose) {
  Begin(kAll);
  wire_.on_data("\x01\x02garbage");
  ReadAll();
  EXPECT_EQ(heard_.back(), "close 1002");
  EXPECT_TRUE(process_.destroyed);
}

TEST_F(RemoteCommandTest, PingsAnIdleClientAndGivesUpAfterHoursOfSilence) {
  Begin(kAll);
  loop_.Advance(RemoteCommand::kPingEvery);
  EXPECT_EQ(wire_.written, std::string("\x89\x00", 2));
  for (Duration passed{}; passed < RemoteCommand::kIdleTimeout - seconds(60);
       passed += seconds(30)) {
    loop_.Advance(seconds(30));
    ReadAll();
    wire_.on_data(client_.TakeOutput());  // the answers to the pings
  }
  EXPECT_FALSE(process_.destroyed);
  loop_.Advance(seconds(120));
  EXPECT_TRUE(process_.destroyed);
}

}  // namespace
}  // namespace drakkar::node
