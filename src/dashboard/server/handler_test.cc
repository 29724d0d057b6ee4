#include "dashboard/server/handler.h"

#include <gtest/gtest.h>

#include "base/testing/seeded_loop.h"
#include "base/text/text.h"

namespace drakkar::dashboard {
namespace {

class FakeWriter final : public net::ResponseWriter {
 public:
  void Send(int code, const net::Headers& fields, net::Body body) override {
    StartStream(code, fields);
    for (const net::Segment& segment : body) data += *segment;
  }
  void StartStream(int code, const net::Headers& fields) override {
    status = code;
    headers = fields;
  }
  void Write(net::Segment bytes) override {
    data += *bytes;
    if (stuck) pending += bytes->size();
  }
  void Finish() override {}
  void Abort() override {}
  std::size_t pending_bytes() const override { return pending; }
  bool is_closed() const override { return false; }
  void OnClosed(std::function<void(bool)> callback) override { closed = std::move(callback); }
  void OnDrained(std::function<void()> callback) override { drained = std::move(callback); }
  Result<std::unique_ptr<net::RawStream>> Upgrade(const net::Headers&) override {
    return Internal("not here");
  }

  int status = 0;
  net::Headers headers;
  std::string data;
  bool stuck = false;  // the client does not read
  std::size_t pending = 0;
  std::function<void(bool)> closed;
  std::function<void()> drained;
};

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(EventLoop& loop) : loop_(loop) {}
  void Full(std::function<void(Update)> done) override {
    ++fulls;
    loop_.Post([this, done] { done({version, net::MakeSegment(StrCat("full ", version, "\n"))}); });
  }
  void Ask(std::string path, std::string, std::function<void(Board::Reply)> done) override {
    asked.push_back(path);
    waiting.push_back(std::move(done));
  }
  void SetViewers(std::size_t count) override { viewers = count; }

  std::uint64_t version = 1;
  int fulls = 0;
  std::size_t viewers = 0;
  std::vector<std::string> asked;
  std::vector<std::function<void(Board::Reply)>> waiting;

 private:
  EventLoop& loop_;
};

class HandlerTest : public ::testing::Test {
 protected:
  std::shared_ptr<FakeWriter> Get(std::string path, bool with_token = true) {
    net::ServerRequest request;
    const std::size_t question = path.find('?');
    request.path = path.substr(0, question);
    if (question != std::string::npos) request.raw_query = path.substr(question + 1);
    request.headers.Add("Host", "localhost:8001");
    if (with_token) {
      request.headers.Add("Authorization", "Bearer secret");
      request.headers.Add("Cookie", "drakkar-dashboard-8001=biscuit");
    }
    auto writer = std::make_shared<FakeWriter>();
    handler_.Handle(std::move(request), writer);
    loop_.RunUntilIdle();
    return writer;
  }
  void Publish(std::uint64_t version, bool whole = false) {
    backend_.version = version;
    handler_.Publish(
        {version, whole ? nullptr : net::MakeSegment(StrCat("change ", version, "\n"))});
    loop_.RunUntilIdle();
  }

  SeededLoop loop_;
  Gate gate_{{.token = "secret", .cookie = "biscuit"}, 8001};
  FakeBackend backend_{loop_};
  Handler handler_{loop_, gate_, backend_};
};

TEST_F(HandlerTest, RefusesEverythingWithoutTheToken) {
  for (const char* path : {"/", "/app.js", "/api/stream", "/api/claims", "/../x"}) {
    EXPECT_EQ(Get(path, false)->status, 401) << path;
  }
  EXPECT_TRUE(backend_.asked.empty());
  EXPECT_EQ(backend_.viewers, 0u);
}

TEST_F(HandlerTest, RedirectsTheUrlWithTheTokenToThePage) {
  const auto writer = Get("/?token=secret", false);
  EXPECT_EQ(writer->status, 303);
  EXPECT_EQ(writer->headers.Get("Location"), "/#token=secret");
}

TEST_F(HandlerTest, ServesThePageWithAStrictPolicy) {
  const auto writer = Get("/");
  EXPECT_EQ(writer->status, 200);
  EXPECT_EQ(writer->headers.Get("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(writer->headers.Get("Cache-Control"), "no-store");
  const std::string_view policy = writer->headers.Get("Content-Security-Policy");
  EXPECT_TRUE(policy.starts_with("default-src 'none'"));
  EXPECT_EQ(policy.find("unsafe"), std::string_view::npos);
}

TEST_F(HandlerTest, ServesNoOtherFiles) {
  for (const char* path : {"/../../etc/passwd", "/etc/passwd", "/index.html", "//", "/app.js/.."}) {
    EXPECT_EQ(Get(path)->status, 404) << path;
  }
}

TEST_F(HandlerTest, AStreamBeginsWithTheWholeStateAndContinuesWithChanges) {
  const auto stream = Get("/api/stream");
  EXPECT_EQ(stream->headers.Get("Content-Type"), "text/event-stream");
  EXPECT_EQ(backend_.viewers, 1u);
  Publish(2);
  Publish(3);
  EXPECT_TRUE(stream->data.ends_with("full 1\nchange 2\nchange 3\n")) << stream->data;
}

TEST_F(HandlerTest, SendsTheWholeStateIfAChangeCannotExpressIt) {
  const auto stream = Get("/api/stream");
  Publish(2, /*whole=*/true);
  EXPECT_TRUE(stream->data.ends_with("full 1\nfull 2\n")) << stream->data;
}

TEST_F(HandlerTest, AStreamThatDoesNotKeepUpSkipsChanges) {
  const auto stream = Get("/api/stream");
  stream->stuck = true;
  for (std::uint64_t version = 2; version < 1000; ++version) Publish(version);
  EXPECT_TRUE(stream->data.ends_with("full 1\nchange 2\n")) << "nothing is queued";
  EXPECT_EQ(backend_.fulls, 1);
  stream->pending = 0;
  stream->stuck = false;
  stream->drained();
  loop_.RunUntilIdle();
  EXPECT_TRUE(stream->data.ends_with("change 2\nfull 999\n")) << stream->data;
}

TEST_F(HandlerTest, LimitsStreamsAndForgetsClosedOnes) {
  std::vector<std::shared_ptr<FakeWriter>> open;
  for (std::size_t i = 0; i < Handler::kMaxStreams; ++i) open.push_back(Get("/api/stream"));
  EXPECT_EQ(Get("/api/stream")->status, 503);
  open[0]->closed(false);
  loop_.RunUntilIdle();
  EXPECT_EQ(backend_.viewers, Handler::kMaxStreams - 1);
  EXPECT_EQ(Get("/api/stream")->status, 200);
}

TEST_F(HandlerTest, LimitsUnansweredQuestions) {
  for (std::size_t i = 0; i < Handler::kMaxQuestions; ++i) Get("/api/claims");
  EXPECT_EQ(Get("/api/claims")->status, 503);
  backend_.waiting[0]({200, "{}"});
  const auto writer = Get("/api/claims?state=Pending");
  backend_.waiting.back()({404, "{\"error\":\"x\"}"});
  EXPECT_EQ(writer->status, 404);
  EXPECT_EQ(writer->headers.Get("Content-Type"), "application/json");
}

TEST_F(HandlerTest, KeepsQuietStreamsAlive) {
  const auto stream = Get("/api/stream");
  const std::size_t before = stream->data.size();
  loop_.Advance(Handler::kKeepAlive);
  EXPECT_GT(stream->data.size(), before);
}

}  // namespace
}  // namespace drakkar::dashboard
