#include "node/node_server.h"

#include <gtest/gtest.h>

#include "base/text/text.h"
#include "net/websocket/handshake.h"
#include "node/pods/log_rotation.h"
#include "node/testing/node_harness.h"

namespace drakkar::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Records a handler's response; the test sets how much a slow reader leaves pending.
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
  Result<std::unique_ptr<net::RawStream>> Upgrade(const net::Headers& headers) override {
    code = 101;
    protocol = headers.Get("sec-websocket-protocol");
    return std::unique_ptr<net::RawStream>(std::make_unique<FakeStream>(text));
  }
  // Keeps what is written to it.
  class FakeStream final : public net::RawStream {
   public:
    explicit FakeStream(std::string& written) : written_(written) {}
    void Start(std::function<void(std::string_view)>, std::function<void()>) override {}
    void Write(std::string_view bytes) override { written_.append(bytes); }
    std::size_t pending_bytes() const override { return 0; }
    void OnDrained(std::function<void()>) override {}
    void SetReading(bool) override {}

   private:
    std::string& written_;
  };

  int code = 0;
  std::string protocol;
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
    node_.CreatePod("p",
                    R"("restartPolicy":"Never","containers":[{"name":"a","image":"busybox:1"}])");
    server_ = std::make_unique<NodeServer>(NodeServer::Options{
        .loop = node_.loop,
        .files = node_.files,
        .agent = *node_.agent,
        .runtime = *node_.runtime,
        .metrics = &node_.metrics,
        .node_name = "n1",
        .authorize = [this](const net::ServerRequest& request,
                            std::vector<client::AccessReviewer::Access> any_of,
                            client::AccessReviewer::Done done) {
          asked_.clear();
          for (const auto& each : any_of) asked_ += StrCat(each.verb, " ", each.subresource, ";");
          if (holds_answers_) {
            answers_.push_back(std::move(done));
          } else {
            done(request.connection->is_tls
                     ? std::nullopt
                     : std::optional<client::AccessReviewer::Refusal>({403, "Forbidden"}));
          }
        }});
    log_ = node_.Containers("p", "a").at(0)->status.log_path;
    EXPECT_TRUE(node_.files.MakeDirectories(DirectoryName(log_), 0755).ok());
    EXPECT_TRUE(node_.files.WriteFile(log_, "2027-01-15T08:00:01Z stdout F one\n", 0644).ok());
  }

  std::shared_ptr<FakeWriter> Get(const std::string& path, const std::string& query = "",
                                  bool trusted = true, net::Headers headers = {}) {
    auto writer = std::make_shared<FakeWriter>();
    net::ServerRequest request;
    request.path = path;
    request.raw_query = query;
    auto connection = std::make_shared<net::ConnectionInfo>();
    connection->is_tls = trusted;
    request.connection = connection;
    request.headers = std::move(headers);
    server_->Handle(std::move(request), writer);
    return writer;
  }

  static std::string BaseOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

  NodeHarness node_;
  std::unique_ptr<NodeServer> server_;
  std::string log_;
  std::string asked_;  // of the last request
  bool holds_answers_ = false;
  std::vector<client::AccessReviewer::Done> answers_;
};

TEST_F(NodeServerTest, ServesLogsPodsMetricsAndHealth) {
  auto logs = Get("/containerLogs/default/p/a");
  EXPECT_EQ(logs->code, 200);
  EXPECT_EQ(logs->text, "one\n");
  EXPECT_TRUE(logs->finished);
  EXPECT_EQ(Get("/healthz")->text, "ok");
  EXPECT_NE(Get("/pods")->text.find("\"name\":\"p\""), std::string::npos);
  EXPECT_EQ(Get("/metrics")->code, 200);
  EXPECT_EQ(Get("/nothing")->code, 404);
}

TEST_F(NodeServerTest, ServesStatisticsToThoseWhoMayReadThem) {
  auto summary = Get("/stats/summary");
  node_.Run();
  EXPECT_EQ(summary->code, 200);
  EXPECT_EQ(asked_, "get stats;");
  EXPECT_NE(summary->text.find("\"nodeName\":\"n1\""), std::string::npos);
  EXPECT_NE(summary->text.find("\"name\":\"p\""), std::string::npos);
  auto resource = Get("/metrics/resource");
  node_.Run();
  EXPECT_EQ(asked_, "get metrics;");
  EXPECT_NE(resource->text.find("container_cpu_usage_seconds_total{container=\"a\""),
            std::string::npos);
  auto cadvisor = Get("/metrics/cadvisor");
  node_.Run();
  EXPECT_EQ(asked_, "get metrics;");
  EXPECT_NE(cadvisor->text.find("machine_cpu_cores{"), std::string::npos);
}

TEST_F(NodeServerTest, MetricsCountDevicesByTheirHealthNow) {
  FakeDriver driver(node_, "gpu.example.com", "gpu.sock");
  driver.Start();
  driver.plugin.PushHealth(
      {{.pool_name = "pool", .device_name = "d", .health = rpc::DeviceHealthState::kHealthy}});
  node_.Run();
  EXPECT_NE(Get("/metrics")
                ->text.find(
                    "drakkar_node_devices{driver_name=\"gpu.example.com\",health=\"Healthy\"} 1\n"),
            std::string::npos);
}

TEST_F(NodeServerTest, UnauthorizedRequestsAreRefused) {
  for (const char* path : {"/containerLogs/default/p/a", "/pods", "/metrics", "/devices",
                           "/healthz", "/exec/default/p/a", "/nothing"}) {
    auto refused = Get(path, "", false);
    EXPECT_EQ(refused->code, 403) << path;
    EXPECT_EQ(refused->text, "Forbidden\n") << path;
  }
  Get("/exec/default/p/a");
  EXPECT_EQ(asked_, "create proxy;");
  Get("/pods");
  EXPECT_EQ(asked_, "get pods;get proxy;");
}

TEST_F(NodeServerTest, ALateAuthorizationDoesNotTouchAFinishedRequest) {
  holds_answers_ = true;
  auto waiting = Get("/pods");
  auto gone = Get("/pods");
  auto left = Get("/pods");
  EXPECT_EQ(waiting->code, 0) << "nothing before the answer";
  gone->aborted = true;
  answers_[0](std::nullopt);
  answers_[1](std::nullopt);
  EXPECT_EQ(waiting->code, 200);
  EXPECT_EQ(gone->code, 0);
  server_.reset();
  answers_[2](std::nullopt);
  EXPECT_EQ(left->code, 0);
}

TEST_F(NodeServerTest, SaysWhatIsWrongWithARequest) {
  EXPECT_EQ(Get("/containerLogs/default/none/a")->code, 404);
  EXPECT_EQ(Get("/containerLogs/default/p/b")->text, "container b is not valid for pod p");
  EXPECT_EQ(Get("/containerLogs/default/p/a", "previous=true")->text,
            "previous terminated container \"a\" in pod \"p\" not found");
  EXPECT_EQ(Get("/containerLogs/default/p/a", "tailLines=x")->code, 400);
}

TEST_F(NodeServerTest, RunsCommandsOverAWebSocket) {
  node_.machine.containers.begin()->second.program.exec =
      [](const std::vector<std::string>& command) {
        return ExecResult{.exit_code = 3, .output = Join(command, " ")};
      };
  const net::Headers handshake =
      net::websocket::RequestHeaders("dGhlIHNhbXBsZSBub25jZQ==", "v4.channel.k8s.io");
  auto exec =
      Get("/exec/default/p/a", "command=say&command=a%20b&output=1&error=1", true, handshake);
  EXPECT_EQ(exec->code, 101) << exec->text;
  EXPECT_EQ(exec->protocol, "v4.channel.k8s.io");
  node_.Run();
  EXPECT_NE(exec->text.find("\x01say a b"), std::string::npos);
  EXPECT_NE(exec->text.find(R"({"reason":"ExitCode","message":"3"})"), std::string::npos);
  auto refusal = [&](const std::string& path, const std::string& query, net::Headers headers) {
    auto answer = Get(path, query, true, std::move(headers));
    return StrCat(answer->code, " ", answer->text);
  };
  EXPECT_EQ(refusal("/exec/default/none/a", "command=x&output=1", handshake),
            "404 pod does not exist");
  EXPECT_EQ(refusal("/exec/default/p/b", "command=x&output=1", handshake),
            "500 container not found (\"b\")");
  EXPECT_EQ(refusal("/exec/default/p/a", "output=1", handshake),
            "400 you must specify at least 1 command");
  EXPECT_EQ(refusal("/exec/default/p/a", "command=x", handshake),
            "400 you must specify at least 1 of stdin, stdout, stderr");
  EXPECT_EQ(refusal("/exec/default/p/a", "command=x&output=1", {}),
            "400 Upgrade request required: WebSocket or SPDY/3.1");
  EXPECT_EQ(Get("/exec/default/p/a", "command=x&output=1", false, handshake)->code, 403);
}

TEST_F(NodeServerTest, FollowsUntilTheContainerEnds) {
  auto logs = Get("/containerLogs/default/p/a", "follow=true&tailLines=0");
  EXPECT_EQ(logs->text, "");
  EXPECT_TRUE(node_.files.AppendFile(log_, "2027-01-15T08:00:02Z stdout F two\n", 0644).ok());
  node_.Advance(milliseconds(250));
  EXPECT_EQ(logs->text, "two\n");
  EXPECT_FALSE(logs->finished);
  node_.runtime->StopContainer(node_.Containers("p", "a").at(0)->status.id, seconds(1),
                               [](Result<void>) {});
  node_.Advance(seconds(1));
  EXPECT_TRUE(logs->finished);
}

TEST_F(NodeServerTest, FollowsWritesWithAFileWatcher) {
  MemoryFileWatcher watcher(node_.loop);
  NodeServer server(
      {.loop = node_.loop,
       .files = node_.files,
       .agent = *node_.agent,
       .runtime = *node_.runtime,
       .log_watcher = &watcher,
       .node_name = "n1",
       .authorize = [](const net::ServerRequest&, std::vector<client::AccessReviewer::Access>,
                       client::AccessReviewer::Done done) { done(std::nullopt); }});
  auto writer = std::make_shared<FakeWriter>();
  net::ServerRequest request;
  request.path = "/containerLogs/default/p/a";
  request.raw_query = "follow=true&tailLines=0";
  request.connection = std::make_shared<net::ConnectionInfo>();
  server.Handle(std::move(request), writer);
  EXPECT_TRUE(watcher.IsWatched(std::string(DirectoryName(log_))));
  EXPECT_TRUE(node_.files.AppendFile(log_, "2027-01-15T08:00:02Z stdout F two\n", 0644).ok());
  watcher.Emit(std::string(DirectoryName(log_)), FileChange::kModified, "other.log");
  node_.Run();
  EXPECT_EQ(writer->text, "");
  for (int i = 0; i < 3; ++i)
    watcher.Emit(std::string(DirectoryName(log_)), FileChange::kModified, BaseOf(log_));
  node_.Run();
  EXPECT_EQ(writer->text, "two\n") << "without time passing";
  writer->on_closed(false);
  node_.Run();
  EXPECT_FALSE(watcher.IsWatched(std::string(DirectoryName(log_))));
}

TEST_F(NodeServerTest, AFastGrowingLogIsCheckedMoreOften) {
  const std::string piece(LogLimits().max_bytes / 2 + 1, 'x');
  EXPECT_TRUE(node_.files.WriteFile(log_, piece + piece, 0644).ok());
  node_.Advance(LogLimits().check_every);
  ASSERT_EQ(RotatedLogs(node_.files, log_).size(), 1u);
  // Half the limit each second from now on: the next checks come after about a second, not ten.
  EXPECT_TRUE(node_.files.WriteFile(log_, "", 0644).ok());
  for (int second = 0; second < 12; ++second) {
    EXPECT_TRUE(node_.files.AppendFile(log_, piece, 0644).ok());
    node_.Advance(seconds(1));
  }
  std::uint64_t largest = 0;
  for (const std::string& path : RotatedLogs(node_.files, log_)) {
    largest = std::max(largest, node_.files.Stat(path)->size_bytes);
  }
  EXPECT_GE(RotatedLogs(node_.files, log_).size(), 2u);
  EXPECT_LE(largest, 11 * piece.size());
  for (int second = 0; second < 20; ++second) {
    EXPECT_TRUE(node_.files.AppendFile(log_, piece, 0644).ok());
    node_.Advance(seconds(1));
    EXPECT_LE(node_.files.Stat(log_).ok() ? node_.files.Stat(log_)->size_bytes : 0,
              4 * piece.size());
  }
}

TEST_F(NodeServerTest, LogsAreRotatedAndFollowedAcross) {
  auto logs = Get("/containerLogs/default/p/a", "follow=true&tailLines=0");
  const std::string line = "2027-01-15T08:00:02Z stdout F " + std::string(1000, 'x') + "\n";
  std::string much;
  while (much.size() <= LogLimits().max_bytes) much += line;
  for (std::size_t i = 0; i < 2 * LogLimits().max_files; ++i) {
    EXPECT_TRUE(node_.files.WriteFile(log_, much, 0644).ok());
    node_.Advance(LogLimits().check_every);
    EXPECT_FALSE(node_.files.Exists(log_)) << "set aside";
    EXPECT_LT(RotatedLogs(node_.files, log_).size(), LogLimits().max_files);
  }
  EXPECT_EQ(RotatedLogs(node_.files, log_).size(), LogLimits().max_files - 1);
  logs->text.clear();
  EXPECT_TRUE(node_.files.WriteFile(log_, "2027-01-15T08:00:03Z stdout F restarted\n", 0644).ok());
  node_.Advance(seconds(2));
  EXPECT_EQ(logs->text, "restarted\n");
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
