#include "rpc/testing/memory_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/seeded_loop.h"
#include "rpc/dra/dra_client.h"
#include "rpc/testing/fake_dra_plugin.h"

namespace drakkar::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MemoryTransportTest : public ::testing::Test {
 protected:
  MemoryTransportTest() : transport_(loop_), plugin_("gpu.example.com") {
    server_ = CreateServer(transport_, "/dra.sock", plugin_.Services());
  }

  void Dial() {
    DraPluginOptions options;
    options.endpoint = "/dra.sock";
    options.on_connection_change = [this](bool connected) { changes_.push_back(connected); };
    client_ = DialDraPlugin(transport_, options);
  }

  SeededLoop loop_;
  MemoryTransport transport_;
  FakeDraPlugin plugin_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<DraPluginClient> client_;
  std::vector<bool> changes_;
};

TEST_F(MemoryTransportTest, TellsWhichSocketsComeAndGo) {
  std::vector<std::string> seen;
  transport_.OnSocketChange([&](const std::string& path, bool listening) {
    seen.push_back((listening ? "+" : "-") + path);
  });
  ASSERT_TRUE(server_->Start().ok());
  EXPECT_EQ(transport_.ListeningPaths(), std::vector<std::string>{"/dra.sock"});
  server_->Stop();
  EXPECT_FALSE(transport_.IsListening("/dra.sock"));
  EXPECT_THAT(seen, ::testing::ElementsAre("+/dra.sock", "-/dra.sock"));
}

TEST_F(MemoryTransportTest, ASuccessorOnTheSamePathSurvivesTheEndOfItsPredecessor) {
  ASSERT_TRUE(server_->Start().ok());
  std::unique_ptr<Server> successor = CreateServer(transport_, "/dra.sock", plugin_.Services());
  ASSERT_TRUE(successor->Start().ok());
  server_.reset();
  EXPECT_TRUE(transport_.IsListening("/dra.sock"));
}

TEST_F(MemoryTransportTest, ReconnectsWithBackoffOnTheLoopsClock) {
  Dial();
  loop_.Advance(milliseconds(500));
  ASSERT_TRUE(server_->Start().ok());
  loop_.Advance(milliseconds(499));
  EXPECT_TRUE(changes_.empty());
  loop_.Advance(milliseconds(1));
  EXPECT_EQ(changes_, std::vector<bool>{true});
}

TEST_F(MemoryTransportTest, ABrokenConnectionFailsCallsAndComesBack) {
  ASSERT_TRUE(server_->Start().ok());
  Dial();
  loop_.Advance(milliseconds(1));
  plugin_.hold_calls = true;
  std::optional<Result<PrepareResults>> result;
  client_->Prepare({{.uid = "u"}}, seconds(45), [&](auto given) { result = std::move(given); });
  loop_.RunUntilIdle();
  transport_.BreakConnections("/dra.sock");
  loop_.Advance(milliseconds(1));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(changes_, (std::vector<bool>{true, false, true}));
}

TEST_F(MemoryTransportTest, CallsFailOnRequest) {
  ASSERT_TRUE(server_->Start().ok());
  Dial();
  loop_.Advance(milliseconds(1));
  int asked = 0;
  transport_.SetCallFault([&](const std::string& path, std::string_view) -> std::optional<Error> {
    EXPECT_EQ(path, "/dra.sock");
    if (asked++ == 0) return Internal("dropped on the way");
    return std::nullopt;
  });
  std::vector<bool> outcomes;
  for (int i = 0; i < 2; ++i) {
    client_->Prepare({{.uid = "u"}}, seconds(45), [&](auto r) { outcomes.push_back(r.ok()); });
  }
  loop_.RunUntilIdle();
  EXPECT_EQ(outcomes, (std::vector<bool>{false, true}));
}

TEST_F(MemoryTransportTest, DeadlinesRunOnTheLoopsClock) {
  ASSERT_TRUE(server_->Start().ok());
  Dial();
  loop_.Advance(milliseconds(1));
  plugin_.hold_calls = true;
  std::optional<Result<PrepareResults>> result;
  client_->Prepare({{.uid = "u"}}, seconds(45), [&](auto given) { result = std::move(given); });
  loop_.Advance(milliseconds(44'999));
  EXPECT_FALSE(result.has_value());
  loop_.Advance(milliseconds(1));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->error().code, ErrorCode::kDeadlineExceeded);
  plugin_.ReleaseCalls();
  loop_.RunUntilIdle();
}

}  // namespace
}  // namespace drakkar::rpc
