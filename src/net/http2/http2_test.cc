#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "net/http2/client_session.h"
#include "net/http2/server_session.h"

namespace drakkar::net::http2 {
namespace {

class Server final : public ServerSession::Events {
 public:
  explicit Server(SessionLimits limits = {}) : session(NewServerSession(limits, *this)) {}
  void OnRequest(StreamId stream, Request request) override {
    log += StrCat("[", MethodName(request.method), " ", request.target, " ",
                  request.headers.Get("host"), " ", request.body, "]");
    streams.push_back(stream);
    if (answer)
      session->Respond(stream, 200, {}, Body{MakeSegment("<" + request.body + ">")}, true);
  }
  void OnStreamClosed(StreamId stream, bool completed) override {
    closed += StrCat(completed ? "+" : "-", stream);
  }
  void OnRawData(std::string_view) override {}
  bool OnLargeBody(StreamId stream, const Request& head) override {
    asked.push_back(stream);
    log += StrCat("[large ", head.target, " ", head.body.size(), "]");
    return approve;
  }
  bool IsStranger() const override { return stranger; }

  bool approve = true;
  bool stranger = false;
  std::vector<StreamId> asked;
  bool answer = true;
  std::unique_ptr<ServerSession> session;
  std::string log;
  std::string closed;
  std::vector<StreamId> streams;
};

class Client final : public ClientSession::Events {
 public:
  Client() : session(NewClientSession(SessionLimits(), *this)) {}
  void OnResponse(StreamId stream, int status, Headers) override {
    log += StrCat("[", stream, " ", status, "]");
  }
  void OnData(StreamId, std::string_view bytes) override { data.append(bytes); }
  void OnStreamEnd(StreamId stream, const Error* error, bool unprocessed) override {
    log += StrCat("[", stream, error ? (unprocessed ? " refused]" : " failed]") : " end]");
  }
  void OnRawData(std::string_view) override {}

  StreamId Submit(std::string target, std::string body = "", Method method = Method::kGet) {
    Request request;
    request.method = method;
    request.target = std::move(target);
    request.headers.Add("Host", "h");
    request.body = std::move(body);
    return session->Submit(request, "https").value();
  }

  std::unique_ptr<ClientSession> session;
  std::string log;
  std::string data;
};

// Moves bytes in both directions in pieces of `step` until neither side has any.
void Pump(Client& client, Server& server, std::size_t step = 1 << 20) {
  for (bool moved = true; moved;) {
    moved = false;
    std::string to_server;
    client.session->Send(to_server, 1 << 20);
    std::string to_client;
    server.session->Send(to_client, 1 << 20);
    for (std::size_t at = 0; at < to_server.size(); at += step) {
      moved = true;
      (void)server.session->Receive(std::string_view(to_server).substr(at, step));
    }
    for (std::size_t at = 0; at < to_client.size(); at += step) {
      moved = true;
      (void)client.session->Receive(std::string_view(to_client).substr(at, step));
    }
  }
}

TEST(Http2, ExchangesHoweverTheBytesAreSplit) {
  for (std::size_t step : {1, 2, 3, 5, 8, 13, 1000}) {
    Server server;
    Client client;
    client.Submit("/a?b=c");
    client.Submit("/b", "body", Method::kPost);
    Pump(client, server, step);
    EXPECT_EQ(server.log, "[GET /a?b=c h ][POST /b h body]");
    EXPECT_EQ(client.log, "[1 200][3 200][1 end][3 end]");
    EXPECT_EQ(client.data, "<><body>");
    EXPECT_EQ(server.closed, "+1+3");
    EXPECT_EQ(server.session->open_streams(), 0u);
    EXPECT_EQ(client.session->open_streams(), 0u);
  }
}

TEST(Http2, StreamsAndReportsPendingBytes) {
  Server server;
  server.answer = false;
  Client client;
  client.Submit("/watch");
  Pump(client, server);
  const StreamId stream = server.streams.at(0);
  server.session->Respond(stream, 200, {}, {}, false);
  server.session->Write(stream, MakeSegment("one"));
  EXPECT_EQ(server.session->PendingBytes(stream), 3u);
  Pump(client, server);
  EXPECT_EQ(server.session->PendingBytes(stream), 0u);
  EXPECT_EQ(client.data, "one");
  server.session->Write(stream, MakeSegment("two"));
  server.session->Finish(stream);
  Pump(client, server);
  EXPECT_EQ(client.data, "onetwo");
  EXPECT_EQ(client.log, "[1 200][1 end]");
}

TEST(Http2, AClientThatDoesNotReadLeavesBytesPending) {
  Server server;
  server.answer = false;
  Client client;
  client.Submit("/watch");
  Pump(client, server);
  const StreamId stream = server.streams.at(0);
  server.session->Respond(stream, 200, {}, {}, false);
  server.session->Write(stream, MakeSegment(std::string(8 << 20, 'w')));
  std::string out;
  server.session->Send(out, 1 << 30);
  // The client's window limits what is sent; the rest is pending.
  EXPECT_LT(out.size(), 2u << 20);
  EXPECT_GT(server.session->PendingBytes(stream), 6u << 20);
}

TEST(Http2, SendStopsNearItsLimit) {
  Server server;
  Client client;
  client.Submit("/a", std::string(500'000, 'b'), Method::kPost);
  std::string out;
  client.session->Send(out, 20'000);
  EXPECT_LT(out.size(), 40'000u);
}

TEST(Http2, ACancelledStreamIsClosedOnBothSides) {
  Server server;
  server.answer = false;
  Client client;
  const StreamId stream = client.Submit("/watch");
  Pump(client, server);
  server.session->Respond(server.streams.at(0), 200, {}, {}, false);
  Pump(client, server);
  client.session->Cancel(stream);
  Pump(client, server);
  EXPECT_EQ(server.closed, "-1");
  EXPECT_EQ(client.log, "[1 200]");
  EXPECT_EQ(client.session->open_streams(), 0u);
}

TEST(Http2, ARequestCancelledBeforeItWasSentLeavesNoTrace) {
  Server server;
  Client client;
  const StreamId stream = client.Submit("/a");
  client.session->Cancel(stream);
  Pump(client, server);
  EXPECT_EQ(client.log, "");
  EXPECT_EQ(client.session->open_streams(), 0u);
  client.Submit("/b");
  Pump(client, server);
  EXPECT_EQ(server.log, "[GET /b h ]");
}

TEST(Http2, AResetByTheServerIsAnError) {
  Server server;
  server.answer = false;
  Client client;
  client.Submit("/watch");
  Pump(client, server);
  server.session->Respond(server.streams.at(0), 200, {}, {}, false);
  server.session->Reset(server.streams.at(0));
  Pump(client, server);
  EXPECT_THAT(client.log, ::testing::HasSubstr("failed]"));
}

TEST(Http2, RespectsTheServersStreamLimit) {
  SessionLimits limits;
  limits.max_concurrent_streams = 3;
  Server server(limits);
  server.answer = false;
  Client client;
  Pump(client, server);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(client.session->CanSubmit());
    client.Submit("/");
  }
  EXPECT_FALSE(client.session->CanSubmit());
  Pump(client, server);
  server.session->Respond(server.streams.at(0), 200, {}, {}, true);
  Pump(client, server);
  EXPECT_TRUE(client.session->CanSubmit());
}

TEST(Http2, RejectsBodiesOverTheLimitWith413) {
  SessionLimits limits;
  limits.max_body_bytes = 1000;
  Server server(limits);
  Client client;
  client.Submit("/", std::string(1001, 'x'), Method::kPost);
  Pump(client, server);
  EXPECT_EQ(client.log, "[1 413][1 end]");
  EXPECT_EQ(server.log, "");
  EXPECT_EQ(server.session->open_streams(), 0u);
  EXPECT_EQ(server.session->ReceivingStream(), 0);
}

TEST(Http2, RejectsHeadsOverTheLimitWith431) {
  SessionLimits limits;
  limits.max_header_bytes = 1000;
  Server server(limits);
  Client client;
  client.Submit("/" + std::string(2000, 'x'));
  Pump(client, server);
  EXPECT_EQ(client.log, "[1 431][1 end]");
}

TEST(Http2, ShutdownServesOpenRequestsAndAcceptsNoNewOnes) {
  Server server;
  server.answer = false;
  Client client;
  client.Submit("/a");
  Pump(client, server);
  server.session->Shutdown();
  Pump(client, server);
  EXPECT_FALSE(client.session->CanSubmit());
  EXPECT_FALSE(server.session->IsFinished());
  server.session->Respond(server.streams.at(0), 200, {}, Body{MakeSegment("bye")}, true);
  Pump(client, server);
  EXPECT_EQ(client.data, "bye");
  EXPECT_TRUE(server.session->IsFinished());
  EXPECT_TRUE(client.session->IsFinished());
}

TEST(Http2, ARequestInFlightDuringShutdownIsReportedAsUnprocessed) {
  Server server;
  server.answer = false;
  Client client;
  client.Submit("/a");
  Pump(client, server);
  server.session->Shutdown();
  std::string goaway;
  server.session->Send(goaway, 1 << 20);
  client.Submit("/b");
  std::string request;
  client.session->Send(request, 1 << 20);
  (void)client.session->Receive(goaway);
  EXPECT_EQ(client.log, "[3 refused]");
}

TEST(Http2, ClosesAConnectionThatResetsTooManyStreamsEarly) {
  SessionLimits limits;
  limits.max_early_resets = 10;
  Server server(limits);
  server.answer = false;
  Client client;
  Pump(client, server);
  bool broken = false;
  for (int i = 0; i < 20 && !broken; ++i) {
    const StreamId stream = client.Submit("/");
    std::string bytes;
    client.session->Send(bytes, 1 << 20);
    client.session->Cancel(stream);
    client.session->Send(bytes, 1 << 20);
    broken = !server.session->Receive(bytes).ok();
    EXPECT_EQ(broken, i == 10) << i;
  }
  EXPECT_TRUE(broken);
  std::string last;
  server.session->Send(last, 1 << 20);
  EXPECT_TRUE(server.session->IsFinished());
}

TEST(Http2, ALargeBodyIsReadOnlyOnceItIsApproved) {
  Server server;
  server.approve = false;
  Client client;
  client.Submit("/a", std::string(1 << 20, 'x'), Method::kPost);
  Pump(client, server);
  EXPECT_EQ(server.log, "[large /a 0]");
  // The client is stopped after its first window.
  std::string more;
  client.session->Send(more, 1 << 20);
  EXPECT_EQ(more, "");
  server.session->ApproveBody(server.asked.at(0));
  Pump(client, server);
  ASSERT_EQ(server.streams.size(), 1u);
  EXPECT_EQ(client.data.size(), (1u << 20) + 2);
  EXPECT_EQ(client.log, "[1 200][1 end]");
}

TEST(Http2, ARejectedBodyIsNotReadToItsEnd) {
  const auto memory = std::make_shared<BodyMemory>(1 << 20, 1 << 20);
  Server server({.body_memory = memory});
  server.approve = false;
  Client client;
  client.Submit("/a", std::string(3 << 20, 'x'), Method::kPost);
  Pump(client, server);
  EXPECT_GT(memory->used(), 0u);
  server.session->RejectBody(server.asked.at(0), 403, {}, Body{MakeSegment("no")});
  EXPECT_EQ(memory->used(), 0u);
  Pump(client, server);
  EXPECT_TRUE(server.streams.empty());
  EXPECT_EQ(client.log.substr(0, 7), "[1 403]");
  // The connection goes on.
  client.Submit("/b");
  Pump(client, server);
  EXPECT_EQ(server.streams.size(), 1u);
}

TEST(Http2, BodiesShareTheirMemoryAndGiveItBack) {
  const auto memory = std::make_shared<BodyMemory>(200'000, 50'000);
  Server server({.body_memory = memory});
  server.answer = false;
  Client client;
  client.Submit("/a", std::string(60'000, 'x'), Method::kPost);
  Pump(client, server);
  EXPECT_EQ(memory->used(), 60'000u);
  Server other({.body_memory = memory});
  Client late;
  late.Submit("/b", std::string(150'000, 'x'), Method::kPost);
  Pump(late, other);
  EXPECT_EQ(late.log.substr(0, 7), "[1 429]");
  EXPECT_EQ(memory->used(), 60'000u);
  server.session->Respond(server.streams.at(0), 200, {}, {}, true);
  Pump(client, server);
  EXPECT_EQ(memory->used(), 0u);
}

TEST(Http2, StrangersGetOnlyAPartOfTheMemory) {
  const auto memory = std::make_shared<BodyMemory>(200'000, 50'000);
  Server server({.body_memory = memory});
  server.answer = false;
  server.stranger = true;
  Client client;
  client.Submit("/a", std::string(40'000, 'x'), Method::kPost);
  client.Submit("/b", std::string(40'000, 'x'), Method::kPost);
  Pump(client, server);
  EXPECT_EQ(server.streams.size(), 1u);
  EXPECT_EQ(client.log.substr(0, 7), "[3 429]");
  Server known({.body_memory = memory});
  Client other;
  other.Submit("/c", std::string(60'000, 'x'), Method::kPost);
  Pump(other, known);
  EXPECT_EQ(known.streams.size(), 1u);
}

// A frame without content.
std::string Frame(char type, char flags, char stream, std::string_view payload = {}) {
  std::string frame = {0, 0, static_cast<char>(payload.size()), type, flags, 0, 0, 0, stream};
  return frame.append(payload);
}

TEST(Http2, ClosesAConnectionThatSendsFramesWithoutContent) {
  const std::string ping = Frame(6, 0, 0, "12345678");
  const std::string settings = Frame(4, 0, 0);
  const std::string empty_data = Frame(0, 0, 1);
  const std::string priority = Frame(2, 0, 1, std::string_view("\0\0\0\0\1", 5));
  const std::string window_update = Frame(8, 0, 0, std::string_view("\0\0\0\1", 4));
  for (const std::string& frame : {ping, settings, empty_data, priority, window_update}) {
    Server server({.max_idle_frames = 500});
    Client client;
    client.Submit("/a", "xy", Method::kPost);
    // The head of the request and a part of its body.
    std::string start;
    client.session->Send(start, 1 << 20);
    const std::size_t last = start.rfind(std::string_view("\0\0\2\0\1", 5));
    ASSERT_NE(last, std::string::npos);
    ASSERT_TRUE(server.session->Receive(std::string_view(start).substr(0, last)).ok());
    std::size_t sent = 0;
    std::string answered;
    for (; sent < 2'000 && server.session->Receive(frame).ok(); ++sent) {
      server.session->Send(answered, 1 << 20);
      answered.clear();
    }
    EXPECT_GT(sent, 300u) << static_cast<int>(frame[3]);
    EXPECT_LT(sent, 2'000u) << static_cast<int>(frame[3]);
  }
}

TEST(Http2, FramesWithoutContentAreForgivenWithTime) {
  Server server({.max_idle_frames = 500});
  Client client;
  client.Submit("/a");
  Pump(client, server);
  const std::string ping = Frame(6, 0, 0, "12345678");
  for (int i = 0; i < 3'000; ++i) {
    if (i % 100 == 0) server.session->Forgive();
    ASSERT_TRUE(server.session->Receive(ping).ok()) << i;
    std::string answered;
    server.session->Send(answered, 1 << 20);
  }
}

TEST(Http2, GarbageEndsTheConnection) {
  Server server;
  EXPECT_FALSE(server.session->Receive("GET / HTTP/1.1\r\nHost: h\r\n\r\n").ok());
  Client client;
  std::string ignored;
  client.session->Send(ignored, 1 << 20);
  Result<void> received = client.session->Receive(std::string(100, '\xff'));
  std::string out;
  client.session->Send(out, 1 << 20);
  EXPECT_TRUE(!received.ok() || client.session->IsFinished());
}

}  // namespace
}  // namespace drakkar::net::http2
