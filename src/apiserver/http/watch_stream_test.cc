#include "apiserver/http/watch_stream.h"

#include "apiserver/testing/core_fixture.h"
#include "base/text/text.h"
#include "telemetry/metrics/metrics.h"

namespace drakkar::apiserver {
namespace {

// A client that reads as much as the test says.
class FakeWriter final : public net::ResponseWriter {
 public:
  using ResponseWriter::Send;
  void Send(int status, const net::Headers&, net::Body) override { refused = status; }
  void StartStream(int status, const net::Headers&) override { started = status; }
  void Write(net::Segment bytes) override {
    pending += bytes->size();
    if (keep_text) text += *bytes;
    segments.push_back(std::move(bytes));
  }
  void Finish() override { finished = true; }
  void Abort() override { aborted = true; }
  std::size_t pending_bytes() const override { return pending; }
  bool is_closed() const override { return false; }
  void OnClosed(std::function<void(bool)> callback) override { on_closed = std::move(callback); }
  void OnDrained(std::function<void()> callback) override { on_drained = std::move(callback); }
  Result<std::unique_ptr<net::RawStream>> Upgrade(const net::Headers&) override {
    return Unavailable("no");
  }

  void Drain() {
    pending = 0;
    if (on_drained) on_drained();
  }

  int refused = 0;
  int started = 0;
  bool keep_text = true;
  std::string text;
  std::vector<net::Segment> segments;
  std::size_t pending = 0;
  bool finished = false;
  bool aborted = false;
  std::function<void(bool)> on_closed;
  std::function<void()> on_drained;
};

class WatchStreamTest : public CoreFixture {
 protected:
  WatchStreamTest() {
    StartCore(nullptr);
    Settle();
    feed_ = std::make_unique<ChangeFeed>(*core_, bridge_, [] { return nullptr; });
  }
  ~WatchStreamTest() override {
    for (const auto& writer : writers_) {
      if (auto closed = std::exchange(writer->on_closed, nullptr)) closed(true);
      writer->on_drained = nullptr;
    }
    loop_.RunUntilIdle();
  }

  std::shared_ptr<FakeWriter> Watch(Negotiated negotiated = {}, WatchStreamOptions options = {}) {
    options.request.user = AdminUser();
    options.request.verb = Verb::kWatch;
    options.request.kind = api::FindKind("", "v1", "ConfigMap");
    if (!options.send_initial_events) {
      options.request.resource_version = std::to_string(core_->revision());
    }
    options.negotiated = negotiated;
    auto writer = std::make_shared<FakeWriter>();
    writers_.push_back(writer);
    ServeWatch(loop_, *feed_, events_, std::move(options), writer);
    Settle();
    return writer;
  }

  void Make(const std::string& name, std::size_t bytes = 10) {
    Create(StrCat(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")", name,
                  R"(","namespace":"default"},"data":{"x":")", std::string(bytes, 'x'), R"("}})"));
    Settle();
  }

  // Runs until all writes are durable.
  void Settle() {
    loop_.RunUntilIdle();
    loop_.Advance(std::chrono::milliseconds(1));
    loop_.RunUntilIdle();
  }

  // Creates large objects until the writer exceeds its limit.
  void Overrun(FakeWriter& writer) {
    writer.keep_text = false;
    for (int i = 0; writer.pending <= kMaxPendingBytes && i < 20; ++i) {
      Make(StrCat("large-", i), 900'000);
    }
    writer.keep_text = true;
  }

  Metrics metrics_;
  LoopBridge bridge_{loop_, loop_};
  WatchEvents events_{loop_.clock(), metrics_};
  std::unique_ptr<ChangeFeed> feed_;
  std::vector<std::shared_ptr<FakeWriter>> writers_;
};

TEST_F(WatchStreamTest, AWatcherThatFallsBehindGetsTheExpiredEventAsItsLast) {
  auto writer = Watch();
  Overrun(*writer);
  ASSERT_GT(writer->pending, kMaxPendingBytes);
  const std::string& last = *writer->segments.at(writer->segments.size() - 2);
  EXPECT_TRUE(writer->segments.at(writer->segments.size() - 3)->find("\"ERROR\"") !=
              std::string::npos);
  EXPECT_NE(last.find("\"code\":410"), std::string::npos) << last.substr(0, 300);
  EXPECT_NE(last.find("\"reason\":\"Expired\""), std::string::npos);
  EXPECT_FALSE(writer->finished);

  const std::size_t before = writer->segments.size();
  Make("after");
  EXPECT_EQ(writer->segments.size(), before) << "nothing is queued behind the end";
  writer->Drain();
  EXPECT_TRUE(writer->finished);
  EXPECT_FALSE(writer->aborted);
}

TEST_F(WatchStreamTest, AWatcherThatDoesNotReadItsLastEventIsDisconnected) {
  auto writer = Watch();
  Overrun(*writer);
  ASSERT_GT(writer->pending, kMaxPendingBytes);
  EXPECT_FALSE(writer->aborted);
  loop_.Advance(kExpiredGrace + std::chrono::seconds(1));
  loop_.RunUntilIdle();
  EXPECT_TRUE(writer->aborted);
  EXPECT_FALSE(writer->finished);
}

TEST_F(WatchStreamTest, TablesAreEncodedOnceForAllWatchers) {
  const Negotiated table{.shape = Shape::kTable};
  auto first = Watch(table);
  auto second = Watch(table);
  Make("a");
  ASSERT_EQ(first->segments.size(), 3u);
  ASSERT_EQ(second->segments.size(), 3u);
  EXPECT_NE(first->text.find("columnDefinitions"), std::string::npos);
  EXPECT_EQ(first->segments[1].get(), second->segments[1].get())
      << "the same bytes, not equal ones";
  Make("b");
  EXPECT_EQ(first->segments[4].get(), second->segments[4].get());
  // A watch that joins later still gets the column definitions.
  auto third = Watch(table);
  Make("c");
  EXPECT_NE(third->text.find("\"name\":\"Data\""), std::string::npos) << third->text;
  EXPECT_EQ(first->text.find("\"name\":\"Data\"", first->text.find("\"b\"")), std::string::npos);
}

TEST_F(WatchStreamTest, AnObjectThatLeavesTheSelectionIsSentAsADeletionWithSharedBytes) {
  Create(R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"default",)"
         R"("labels":{"color":"red"}}})");
  Settle();
  WatchStreamOptions red;
  red.request.label_selector = "color=red";
  auto first = Watch({}, red);
  auto second = Watch({}, red);
  Handle(RequestFor(Verb::kUpdate,
                    R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","labels":{)"
                    R"("color":"blue"}}})",
                    AdminUser()));
  Settle();
  ASSERT_EQ(first->segments.size(), 1u);
  EXPECT_NE(first->text.find(R"("type":"DELETED")"), std::string::npos) << first->text;
  EXPECT_NE(first->text.find(R"("color":"red")"), std::string::npos);
  EXPECT_NE(first->text.find(StrCat("\"resourceVersion\":\"", core_->revision(), "\"")),
            std::string::npos);
  EXPECT_EQ(first->segments[0].get(), second->segments.at(0).get()) << "encoded once";
}

TEST_F(WatchStreamTest, WithoutInitialEventsAWatchWithoutAVersionStartsNow) {
  Make("there");
  WatchStreamOptions options;
  options.send_initial_events = false;
  auto writer = Watch({}, options);
  EXPECT_EQ(writer->started, 200);
  EXPECT_TRUE(writer->segments.empty()) << writer->text;
  Make("new");
  EXPECT_NE(writer->text.find("\"new\""), std::string::npos);
  EXPECT_EQ(writer->text.find("\"there\""), std::string::npos);
}

TEST_F(WatchStreamTest, ABookmarkOfATableIsATable) {
  WatchStreamOptions options;
  options.bookmarks = true;
  auto writer = Watch({.shape = Shape::kTable}, options);
  loop_.Advance(std::chrono::seconds(61));
  Settle();
  EXPECT_NE(writer->text.find(R"("type":"BOOKMARK")"), std::string::npos) << writer->text;
  EXPECT_NE(writer->text.find(R"("kind":"Table")"), std::string::npos) << writer->text;
  EXPECT_NE(writer->text.find(StrCat("\"resourceVersion\":\"", core_->revision(), "\"")),
            std::string::npos);
}

TEST_F(WatchStreamTest, EventsAreCounted) {
  auto first = Watch();
  auto second = Watch();
  Make("a");
  EXPECT_NE(metrics_.Text().find("apiserver_watch_events_total{group=\"\",resource=\"configmaps\","
                                 "version=\"v1\"} 2"),
            std::string::npos)
      << metrics_.Text();
}

}  // namespace
}  // namespace drakkar::apiserver
