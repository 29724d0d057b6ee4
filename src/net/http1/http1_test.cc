#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "net/http1/client_session.h"
#include "net/http1/server_session.h"

namespace drakkar::net::http1 {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Echoes each request, or holds it.
class EchoServer final : public ServerSession::Events {
 public:
  explicit EchoServer(SessionLimits limits = {}) : session(NewServerSession(limits, *this)) {}

  void OnRequest(StreamId stream, Request request) override {
    log += StrCat("[", MethodName(request.method), " ", request.target, " ", request.body, "]");
    last = stream;
    if (answer) {
      session->Respond(stream, 200, {}, Body{MakeSegment(StrCat("<", request.body, ">"))}, true);
    }
  }
  void OnStreamClosed(StreamId, bool completed) override { closed += completed ? "+" : "-"; }
  void OnRawData(std::string_view bytes) override { raw.append(bytes); }
  bool OnLargeBody(StreamId stream, const Request& head) override {
    log += StrCat("[large ", head.target, " ", head.body.size(), "]");
    asked = stream;
    return approve;
  }
  bool IsStranger() const override { return stranger; }

  bool approve = true;
  bool stranger = false;
  StreamId asked = 0;

  // Feeds bytes in pieces of `step` and collects the output.
  std::string Exchange(std::string_view input, std::size_t step = 1 << 20) {
    std::string out;
    for (std::size_t at = 0; at < input.size(); at += step) {
      (void)session->Receive(input.substr(at, step));
      session->Send(out, 1 << 30);
    }
    return out;
  }
  std::string Drain() {
    std::string out;
    session->Send(out, 1 << 30);
    return out;
  }

  bool answer = true;
  std::unique_ptr<ServerSession> session;
  std::string log;
  std::string closed;
  std::string raw;
  StreamId last = 0;
};

constexpr std::string_view kPipelined =
    "GET /a?x=1 HTTP/1.1\r\nHost: h\r\n\r\n"
    "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
    "PUT /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3;ext=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
    "\r\nDELETE /d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

TEST(Http1Server, GivesTheSameEventsHoweverTheBytesAreSplit) {
  EchoServer whole;
  const std::string expected = whole.Exchange(kPipelined);
  EXPECT_EQ(whole.log, "[GET /a?x=1 ][POST /b hello][PUT /c abc0123456789][DELETE /d ]");
  EXPECT_EQ(whole.closed, "++++");
  EXPECT_TRUE(whole.session->IsFinished());
  for (std::size_t step = 1; step < kPipelined.size(); ++step) {
    EchoServer split;
    EXPECT_EQ(split.Exchange(kPipelined, step), expected) << step;
    EXPECT_EQ(split.log, whole.log) << step;
  }
  for (std::size_t cut = 1; cut < kPipelined.size(); ++cut) {
    EchoServer split;
    std::string out = split.Exchange(kPipelined.substr(0, cut));
    out += split.Exchange(kPipelined.substr(cut));
    EXPECT_EQ(out, expected) << cut;
  }
}

TEST(Http1Server, HandlesPipelinedRequestsOneAtATime) {
  EchoServer server;
  server.answer = false;
  server.Exchange("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(server.log, "[GET /1 ]");
  server.session->Respond(server.last, 204, {}, {}, true);
  EXPECT_THAT(server.Drain(), StartsWith("HTTP/1.1 204 No Content\r\n"));
  EXPECT_EQ(server.log, "[GET /1 ][GET /2 ]");
  EXPECT_TRUE(server.session->WantsRead());
  server.Exchange(std::string(200'000, 'x'));
  EXPECT_FALSE(server.session->WantsRead());
  EXPECT_FALSE(server.session->Receive(std::string(100'000, 'x')).ok());
}

TEST(Http1Server, StreamsInChunks) {
  EchoServer server;
  server.answer = false;
  server.Exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  server.session->Respond(server.last, 200, {}, {}, false);
  server.session->Write(server.last, MakeSegment("hello world, 26 bytes long"));
  EXPECT_GT(server.session->PendingBytes(server.last), 26u);
  EXPECT_EQ(server.Drain(),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            "1a\r\nhello world, 26 bytes long\r\n");
  EXPECT_EQ(server.session->PendingBytes(server.last), 0u);
  server.session->Finish(server.last);
  EXPECT_EQ(server.Drain(), "0\r\n\r\n");
  EXPECT_EQ(server.closed, "+");
}

TEST(Http1Server, StreamsToHttp10UntilTheEndOfTheConnection) {
  EchoServer server;
  server.answer = false;
  server.Exchange("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  server.session->Respond(server.last, 200, {}, {}, false);
  server.session->Write(server.last, MakeSegment("x"));
  server.session->Finish(server.last);
  EXPECT_EQ(server.Drain(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nx");
  EXPECT_TRUE(server.session->IsFinished());
}

TEST(Http1Server, SendsContinueBeforeAnExpectedBody) {
  EchoServer server;
  EXPECT_EQ(server.Exchange("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
                            "Content-Length: 2\r\n\r\n"),
            "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_THAT(server.Exchange("ok"), HasSubstr("<ok>"));
}

TEST(Http1Server, NeverLetsAHeaderValueEndTheField) {
  EchoServer server;
  server.answer = false;
  server.Exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  server.session->Respond(server.last, 200, Headers{{"Warning", "a\r\nEvil: 1"}, {"b\r\n", "x"}},
                          {}, true);
  const std::string out = server.Drain();
  EXPECT_THAT(out, HasSubstr("Warning: a  Evil: 1\r\n"));
  EXPECT_EQ(out.find("\nEvil"), std::string::npos);
}

struct Refusal {
  std::string_view input;
  int status;
};

class Http1Refusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(Http1Refusal, GetsAnErrorAndEndsTheConnection) {
  for (const std::size_t step : {std::size_t{1}, std::size_t{1} << 20}) {
    EchoServer server;
    const std::string out = server.Exchange(GetParam().input, step);
    EXPECT_THAT(out, StartsWith(StrCat("HTTP/1.1 ", GetParam().status, " ")));
    EXPECT_THAT(out, HasSubstr("Connection: close\r\n"));
    EXPECT_TRUE(server.session->IsFinished());
    EXPECT_EQ(server.log, "");
    EXPECT_EQ(server.Exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Http1Refusal,
    ::testing::Values(
        Refusal{"\x16\x03\x01\x02", 400}, Refusal{"GARBAGE\r\n\r\n", 400},
        Refusal{"GET / HTTP/1.1\nHost: h\n\n", 400}, Refusal{"GET / HTTP/1.1\r\n\r\n", 400},
        Refusal{"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
        Refusal{"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        Refusal{"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505},
        Refusal{"BREW / HTTP/1.1\r\nHost: h\r\n\r\n", 501},
        Refusal{"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 501},
        Refusal{"GET relative HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        Refusal{"GET / HTTP/1.1\r\nHost : h\r\n\r\n", 400},
        Refusal{"GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n", 400},
        Refusal{"GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", 400},
        Refusal{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n"
                "Transfer-Encoding: chunked\r\n\r\n",
                400},
        Refusal{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
                400},
        Refusal{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\n", 400},
        Refusal{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\n", 400},
        Refusal{"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
        Refusal{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        Refusal{"POST / HTTP/1.1\r\nHost: h\r\nExpect: magic\r\nContent-Length: 1\r\n\r\n", 417},
        Refusal{"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400},
        Refusal{"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400},
        Refusal{"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\nab\r\n", 400},
        Refusal{"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFF\r\n",
                400},
        Refusal{"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999\r\n\r\n", 413}));

TEST(Http1Server, BoundsTheHeadAndChunkedBodies) {
  SessionLimits limits;
  limits.max_header_bytes = 1000;
  limits.max_body_bytes = 1000;
  EchoServer server(limits);
  EXPECT_THAT(server.Exchange("GET /" + std::string(2000, 'a')), StartsWith("HTTP/1.1 431 "));
  EchoServer second(limits);
  std::string body = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 11; ++i) body += "64\r\n" + std::string(100, 'b') + "\r\n";
  EXPECT_THAT(second.Exchange(body), StartsWith("HTTP/1.1 413 "));
}

// A request with `size` bytes of body, of which `sent` follow.
std::string Post(std::size_t size, std::size_t sent) {
  return StrCat("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: ", size, "\r\n\r\n",
                std::string(sent, 'x'));
}

TEST(Http1Server, ALargeBodyIsReadOnlyOnceItIsApproved) {
  EchoServer server;
  server.approve = false;
  EXPECT_EQ(server.Exchange(Post(300'000, 1'000)), "");
  EXPECT_EQ(server.log, "[large /a 0]");
  EXPECT_FALSE(server.session->WantsRead());
  server.session->ApproveBody(server.asked);
  EXPECT_TRUE(server.session->WantsRead());
  EXPECT_THAT(server.Exchange(std::string(299'000, 'x'), 64 * 1024), StartsWith("HTTP/1.1 200 "));
  // The same if the length is not known beforehand.
  EchoServer chunked;
  chunked.approve = false;
  std::string body = "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 10; ++i) body += "4000\r\n" + std::string(16'384, 'b') + "\r\n";
  EXPECT_EQ(chunked.Exchange(body + "0\r\n\r\n"), "");
  EXPECT_EQ(chunked.log, "[large /c 0]");
  chunked.session->ApproveBody(chunked.asked);
  EXPECT_THAT(chunked.Drain(), StartsWith("HTTP/1.1 200 "));
}

TEST(Http1Server, ARejectedBodyEndsTheConnection) {
  const auto memory = std::make_shared<BodyMemory>(1 << 20, 1 << 20);
  EchoServer server({.body_memory = memory});
  server.approve = false;
  EXPECT_EQ(server.Exchange(Post(300'000, 1'000)), "");
  server.session->RejectBody(server.asked, 403, {{"X", "y"}}, Body{MakeSegment("no")});
  const std::string answer = server.Drain();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\nno"));
  EXPECT_TRUE(server.session->IsFinished());
  EXPECT_EQ(memory->used(), 0u);
}

TEST(Http1Server, BodiesShareTheirMemoryAndGiveItBack) {
  const auto memory = std::make_shared<BodyMemory>(100'000, 30'000);
  EchoServer server({.body_memory = memory});
  server.answer = false;
  EXPECT_EQ(server.Exchange(Post(60'000, 60'000)), "");
  EXPECT_EQ(memory->used(), 60'000u);
  EchoServer second({.body_memory = memory});
  const std::string refused = second.Exchange(Post(50'000, 50'000));
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 429 "));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
  server.session->Respond(server.last, 200, {}, {}, true);
  (void)server.Drain();
  EXPECT_EQ(memory->used(), 0u);
  EchoServer stranger({.body_memory = memory});
  stranger.stranger = true;
  EXPECT_THAT(stranger.Exchange(Post(40'000, 40'000)), StartsWith("HTTP/1.1 429 "));
  {
    EchoServer gone({.body_memory = memory});
    EXPECT_EQ(gone.Exchange(Post(60'000, 50'000)), "");
    EXPECT_EQ(memory->used(), 50'000u);
  }
  EXPECT_EQ(memory->used(), 0u);
}

TEST(Http1Server, PassesRawBytesAfterAnUpgrade) {
  EchoServer server;
  server.answer = false;
  server.Exchange(
      "GET /exec HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly");
  ASSERT_TRUE(server.session->Upgrade(server.last, Headers{{"Upgrade", "websocket"}}));
  EXPECT_EQ(server.raw, "early");
  (void)server.session->Receive(" more");
  EXPECT_EQ(server.raw, "early more");
  server.session->WriteRaw("back");
  EXPECT_EQ(
      server.Drain(),
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nback");
}

// As Go sends it.
TEST(Http1Server, UpgradesAPostWithAnEmptyBodyOnly) {
  EchoServer empty;
  empty.answer = false;
  const std::string head =
      "POST /exec HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n";
  empty.Exchange(head + "Content-Length: 0\r\n\r\n");
  EXPECT_TRUE(empty.session->Upgrade(empty.last, {}));
  EchoServer full;
  full.answer = false;
  full.Exchange(head + "Content-Length: 1\r\n\r\nb");
  EXPECT_FALSE(full.session->Upgrade(full.last, {}));
}

TEST(Http1Server, RejectsAnUnrequestedUpgrade) {
  EchoServer server;
  server.answer = false;
  server.Exchange("GET /exec HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_FALSE(server.session->Upgrade(server.last, {}));
}

TEST(Http1Server, ShutdownLetsTheOpenRequestFinish) {
  EchoServer server;
  server.answer = false;
  server.Exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  server.session->Shutdown();
  EXPECT_FALSE(server.session->IsFinished());
  server.session->Respond(server.last, 200, {}, Body{MakeSegment("x")}, true);
  EXPECT_THAT(server.Drain(), HasSubstr("Connection: close"));
  EXPECT_TRUE(server.session->IsFinished());
  EchoServer idle;
  idle.session->Shutdown();
  EXPECT_TRUE(idle.session->IsFinished());
}

class RecordingClient final : public ClientSession::Events {
 public:
  RecordingClient() : session(NewClientSession(SessionLimits(), *this)) {}
  void OnResponse(StreamId, int status, Headers) override { log += StrCat(status, ":"); }
  void OnData(StreamId, std::string_view bytes) override { log.append(bytes); }
  void OnStreamEnd(StreamId, const Error*, bool) override { log += "."; }
  void OnRawData(std::string_view bytes) override { log += StrCat("raw(", bytes, ")"); }

  std::string Submit(Method method = Method::kGet, std::string body = "") {
    Request request;
    request.method = method;
    request.headers.Add("Host", "h");
    request.body = std::move(body);
    EXPECT_TRUE(session->Submit(request, "http").ok());
    std::string out;
    session->Send(out, 1 << 20);
    return out;
  }

  std::unique_ptr<ClientSession> session;
  std::string log;
};

TEST(Http1Client, WritesRequests) {
  RecordingClient client;
  EXPECT_EQ(client.Submit(), "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_FALSE(client.session->CanSubmit());
  RecordingClient other;
  EXPECT_EQ(other.Submit(Method::kPost, "abc"),
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
  RecordingClient third;
  Request request;
  request.headers.Add("X", "a\r\nb");
  EXPECT_FALSE(third.session->Submit(request, "http").ok());
}

TEST(Http1Client, ReadsResponsesHoweverTheBytesAreSplit) {
  const std::string_view answers[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
      "HTTP/1.1 204 No Content\r\n\r\n"};
  const std::string_view expected[] = {"200:hello.", "201:hello.", "204:."};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t step = 1; step <= answers[i].size(); ++step) {
      RecordingClient client;
      client.Submit();
      for (std::size_t at = 0; at < answers[i].size(); at += step) {
        ASSERT_TRUE(client.session->Receive(answers[i].substr(at, step)).ok());
      }
      EXPECT_EQ(client.log, expected[i]);
      EXPECT_TRUE(client.session->CanSubmit());
    }
  }
}

TEST(Http1Client, ReadsABodyUntilTheConnectionEnds) {
  RecordingClient client;
  client.Submit();
  ASSERT_TRUE(client.session->Receive("HTTP/1.0 200 OK\r\n\r\nabc").ok());
  EXPECT_EQ(client.log, "200:abc");
  client.session->ReceiveEnd();
  EXPECT_EQ(client.log, "200:abc.");
  EXPECT_TRUE(client.session->IsFinished());
}

TEST(Http1Client, RejectsMalformedResponses) {
  for (std::string_view bad :
       {"garbage\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/3 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n"}) {
    RecordingClient client;
    client.Submit();
    EXPECT_FALSE(client.session->Receive(bad).ok()) << bad;
    EXPECT_TRUE(client.session->IsFinished());
  }
  RecordingClient unasked;
  EXPECT_FALSE(unasked.session->Receive("HTTP/1.1 200 OK\r\n\r\n").ok());
}

}  // namespace
}  // namespace drakkar::net::http1
