#include "node/node_server.h"

#include <gtest/gtest.h>

#include "base/text/text.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Takes the answer of a handler; a test says how much waits for a slow reader.
class FakeWriter final : public net::ResponseWriter {
 public:
  using net::ResponseWriter::Send;
  void Send(int status, const net::Headers&, net::Body body) override {
    code = status;
    for (const auto& segment : body) text += *segment;
    finished = true;
  }
  void StartStream(int status, const net::Headers&) override { code = status; }
  void Write(net::Segment bytes) override { text += *bytes; }
  void Finish() override { finished = true; }
  void Abort() override { aborted = true; }
  std::size_t pending_bytes() const override { return pending; }
  bool is_closed() const override { return finished || aborted; }
  void OnClosed(std::function<void(bool)> callback) override { on_closed = std::move(callback); }
  void OnDrained(std::function<void()> callback) override { on_drained = std::move(callback); }
  Result<std::unique_ptr<net::RawStream>> Upgrade(const net::Headers&) override {
    return FailedPrecondition("not here");
  }

  int code = 0;
  std::string text;
  bool finished = false;
  bool aborted = false;
  std::size_t pending = 0;
  std::function<void(bool)> on_closed;
  std::function<void()> on_drained;
};

class NodeServerTest : public ::testing::Test {
 protected:
  NodeServerTest() {
    node_.StartAgent();
    node_.CreatePod("p", R"("restartPolicy":"Never","containers":[{"name":"a","image":"busybox:1"}])");
    server_ = std::make_unique<NodeServer>(NodeServer::Options{
        .loop = node_.loop,
        .files = node_.files,
        .agent = *node_.agent,
        .runtime = *node_.runtime,
        .metrics = &node_.metrics,
        .is_allowed = [](const net::ConnectionInfo& connection) { return connection.is_tls; }});
    log_ = node_.Containers("p", "a").at(0)->status.log_path;
    EXPECT_TRUE(node_.files.MakeDirectories(DirectoryName(log_), 0755).ok());
    EXPECT_TRUE(node_.files.WriteFile(log_, "2027-01-15T08:00:01Z stdout F one\n", 0644).ok());
  }

  std::shared_ptr<FakeWriter> Get(const std::string& path, const std::string& query = "", bool trusted = true) {
    auto writer = std::make_shared<FakeWriter>();
    net::ServerRequest request;
    request.path = path;
    request.raw_query = query;
    auto connection = std::make_shared<net::ConnectionInfo>();
    connection->is_tls = trusted;
    request.connection = connection;
    server_->Handle(std::move(request), writer);
    return writer;
  }

  NodeHarness node_;
  std::unique_ptr<NodeServer> server_;
  std::string log_;
};

TEST_F(NodeServerTest, ServesLogsPodsMetricsAndHealth) {
  auto logs = Get("/containerLogs/default/p/a");
  EXPECT_EQ(logs->code, 200);
  EXPECT_EQ(logs->text, "one\n");
  EXPECT_TRUE(logs->finished);
  EXPECT_EQ(Get("/healthz", "", false)->text, "ok");
  EXPECT_NE(Get("/pods")->text.find("\"name\":\"p\""), std::string::npos);
  EXPECT_EQ(Get("/metrics")->code, 200);
  EXPECT_EQ(Get("/nothing")->code, 404);
}

TEST_F(NodeServerTest, TellsStrangersNothing) {
  EXPECT_EQ(Get("/containerLogs/default/p/a", "", false)->code, 401);
  EXPECT_EQ(Get("/pods", "", false)->code, 401);
}

TEST_F(NodeServerTest, SaysWhatIsWrongWithARequest) {
  EXPECT_EQ(Get("/containerLogs/default/none/a")->code, 404);
  EXPECT_EQ(Get("/containerLogs/default/p/b")->text, "container b is not valid for pod p");
  EXPECT_EQ(Get("/containerLogs/default/p/a", "previous=true")->text,
            "previous terminated container \"a\" in pod \"p\" not found");
  EXPECT_EQ(Get("/containerLogs/default/p/a", "tailLines=x")->code, 400);
}

TEST_F(NodeServerTest, FollowsUntilTheContainerEnds) {
  auto logs = Get("/containerLogs/default/p/a", "follow=true&tailLines=0");
  EXPECT_EQ(logs->text, "");
  EXPECT_TRUE(node_.files.AppendFile(log_, "2027-01-15T08:00:02Z stdout F two\n", 0644).ok());
  node_.Advance(milliseconds(250));
  EXPECT_EQ(logs->text, "two\n");
  EXPECT_FALSE(logs->finished);
  node_.runtime->StopContainer(node_.Containers("p", "a").at(0)->status.id, seconds(1), [](Result<void>) {});
  node_.Advance(seconds(1));
  EXPECT_TRUE(logs->finished);
}

TEST_F(NodeServerTest, WaitsForASlowReaderAndStopsWhenItLeaves) {
  auto logs = Get("/containerLogs/default/p/a", "follow=true");
  logs->pending = NodeServer::kMaxPending;
  EXPECT_TRUE(node_.files.AppendFile(log_, "2027-01-15T08:00:02Z stdout F two\n", 0644).ok());
  node_.Advance(seconds(1));
  EXPECT_EQ(logs->text, "one\n");
  logs->pending = 0;
  logs->on_drained();
  EXPECT_EQ(logs->text, "one\ntwo\n");
  logs->on_closed(false);
  EXPECT_TRUE(node_.files.AppendFile(log_, "2027-01-15T08:00:03Z stdout F three\n", 0644).ok());
  node_.Advance(seconds(1));
  EXPECT_EQ(logs->text, "one\ntwo\n");
}

}  // namespace
}  // namespace drakkar::node
