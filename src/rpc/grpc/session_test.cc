#include <gtest/gtest.h>

#include <algorithm>

#include "base/text/text.h"
#include "rpc/grpc/client_session.h"
#include "rpc/grpc/server_session.h"

namespace drakkar::rpc::grpc {
namespace {

constexpr std::size_t kNoLimit = 1u << 30;
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum FrameType : char {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoaway = 7
};
enum Flag : char { kEndStream = 1, kAck = 1, kEndHeaders = 4 };

// Hand-made frames, for cases that our own client and server never produce.
std::string Number(std::uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}
std::string Frame(char type, int flags, StreamId stream, std::string_view payload) {
  return StrCat(Number(static_cast<std::uint32_t>(payload.size())).substr(1), type,
                static_cast<char>(flags), Number(static_cast<std::uint32_t>(stream)), payload);
}
// Literals without indexing, with lengths below 127.
std::string Fields(const std::vector<std::pair<std::string, std::string>>& fields) {
  std::string block;
  for (const auto& [name, value] : fields) {
    block += '\0';
    block += static_cast<char>(name.size());
    block += name;
    block += static_cast<char>(value.size());
    block += value;
  }
  return block;
}
std::string Head(StreamId stream, std::string method, std::string content_type,
                 std::vector<std::pair<std::string, std::string>> more = {}, int flags = 0) {
  std::vector<std::pair<std::string, std::string>> fields = {
      {":method", "POST"},         {":scheme", "http"}, {":path", std::move(method)},
      {":authority", "localhost"}, {"te", "trailers"},  {"content-type", std::move(content_type)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return Frame(kHeaders, kEndHeaders | flags, stream, Fields(fields));
}
std::string Hello() {
  return StrCat(kPreface, Frame(kSettings, 0, 0, ""));
}

// The types of the frames in `bytes`, and whether one of them is a reset with this code.
struct Seen {
  std::vector<char> types;
  std::vector<std::uint32_t> resets;
};
Seen FramesOf(std::string_view bytes) {
  Seen seen;
  if (bytes.starts_with(kPreface)) bytes.remove_prefix(kPreface.size());
  while (bytes.size() >= 9) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const std::size_t length = at(0) << 16 | at(1) << 8 | at(2);
    seen.types.push_back(bytes[3]);
    if (bytes[3] == kReset) seen.resets.push_back(at(11) << 8 | at(12));
    bytes.remove_prefix(std::min(bytes.size(), 9 + length));
  }
  return seen;
}

Result<void> CheckMethod(std::string_view method) {
  if (method == "/t.T/M") return Ok();
  return Error{ErrorCode::kUnimplemented, StrCat("unknown method ", method)};
}

class GrpcSession : public ::testing::Test {
 protected:
  // Transfers bytes in both directions, `step` at a time, until neither side has any.
  void Run(std::size_t step = kNoLimit) {
    while (true) {
      std::string to_server, to_client;
      client->Send(to_server, kNoLimit);
      Feed(*server, to_server, step);
      for (auto& event : server->TakeEvents()) calls.push_back(std::move(event));
      server->Send(to_client, kNoLimit);
      Feed(*client, to_client, step);
      for (auto& event : client->TakeEvents()) {
        if (event.message) {
          messages.push_back(std::move(*event.message));
        } else {
          ends.emplace_back(event.stream, std::move(event.status));
        }
      }
      if (to_server.empty() && to_client.empty()) return;
    }
  }
  template <typename Session>
  void Feed(Session& session, std::string_view bytes, std::size_t step) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(step, bytes.size()))) {
      const Result<void> received = session.Receive(bytes.substr(0, step));
      ASSERT_TRUE(received.ok()) << received.error().message;
    }
  }
  // The response of a server session to hand-made bytes.
  std::string Answer(std::string_view bytes) {
    static_cast<void>(server->Receive(bytes));
    for (auto& event : server->TakeEvents()) calls.push_back(std::move(event));
    std::string out;
    server->Send(out, kNoLimit);
    return out;
  }
  // The status of a hand-made call on stream 1 of a new connection.
  Status StatusOf(std::string_view bytes) {
    server = NewServerSession(&CheckMethod);
    client = NewClientSession();
    ends.clear();
    Start();
    answered = Answer(StrCat(Hello(), bytes));
    EXPECT_EQ(server->open_calls(), 0u);
    Hear(answered);
    EXPECT_EQ(ends.size(), 1u);
    return ends.empty() ? Status() : ends[0].second;
  }
  // Feeds hand-made bytes to the client on its stream 1.
  void Hear(std::string_view bytes) {
    std::string out;
    client->Send(out, kNoLimit);
    heard = client->Receive(Frame(kSettings, 0, 0, "") + std::string(bytes));
    for (auto& event : client->TakeEvents()) {
      if (event.message) {
        messages.push_back(std::move(*event.message));
      } else {
        ends.emplace_back(event.stream, std::move(event.status));
      }
    }
  }
  StreamId Start(std::string_view method = "/t.T/M", std::string_view request = "q") {
    return client->Start({method, "localhost", std::chrono::seconds(10)}, request).value();
  }
  std::string AnswerHead(int flags, std::vector<std::pair<std::string, std::string>> more = {}) {
    std::vector<std::pair<std::string, std::string>> fields = {
        {":status", "200"}, {"content-type", "application/grpc"}};
    fields.insert(fields.end(), more.begin(), more.end());
    return Frame(kHeaders, kEndHeaders | flags, 1, Fields(fields));
  }

  std::unique_ptr<ClientSession> client = NewClientSession();
  std::unique_ptr<ServerSession> server = NewServerSession(&CheckMethod);
  std::vector<ServerSession::Event> calls;
  std::vector<std::string> messages;
  std::vector<std::pair<StreamId, Status>> ends;
  Result<void> heard = Ok();
  std::string answered;
};

TEST_F(GrpcSession, AUnaryCallIsOneWriteEachWay) {
  EXPECT_FALSE(client->IsReady());
  Run();
  EXPECT_TRUE(client->IsReady());
  const StreamId id = Start("/t.T/M", "request");
  std::string out;
  client->Send(out, kNoLimit);
  EXPECT_EQ(FramesOf(out).types, (std::vector<char>{kHeaders, kData}));
  ASSERT_TRUE(server->Receive(out).ok());
  calls = server->TakeEvents();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].method, "/t.T/M");
  EXPECT_EQ(calls[0].request, "request");
  EXPECT_EQ(calls[0].timeout, std::chrono::seconds(10));
  server->SendMessage(calls[0].stream, "answer");
  server->Finish(calls[0].stream, {});
  out.clear();
  server->Send(out, kNoLimit);
  EXPECT_EQ(FramesOf(out).types, (std::vector<char>{kHeaders, kData, kHeaders}));
  ASSERT_TRUE(client->Receive(out).ok());
  const auto events = client->TakeEvents();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].message, "answer");
  EXPECT_EQ(events[1].stream, id);
  EXPECT_EQ(events[1].status, Status());
  EXPECT_EQ(client->open_calls() + server->open_calls(), 0u);
}

TEST_F(GrpcSession, EveryCutGivesTheSame) {
  const std::string request(70'000, 'r');
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{4'096}}) {
    messages.clear();
    calls.clear();
    ends.clear();
    Start("/t.T/M", request);
    Run(step);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(calls[0].request, request);
    for (int i = 0; i < 3; ++i) server->SendMessage(calls[0].stream, StrCat("m", i));
    Run(step);
    server->Finish(calls[0].stream, {5, "gone: 100%\n"});
    Run(step);
    EXPECT_EQ(messages, (std::vector<std::string>{"m0", "m1", "m2"}));
    ASSERT_EQ(ends.size(), 1u);
    EXPECT_EQ(ends[0].second, (Status{5, "gone: 100%\n"}));
  }
}

TEST_F(GrpcSession, AnUnknownMethodIsRefusedBeforeItsRequest) {
  EXPECT_EQ(StatusOf(Head(1, "/t.T/None", "application/grpc")),
            (Status{kUnimplemented, "unknown method /t.T/None"}));
  // The peer need not send the rest.
  EXPECT_EQ(FramesOf(answered).resets, std::vector<std::uint32_t>{0});
  EXPECT_TRUE(calls.empty());
}

TEST_F(GrpcSession, WhatIsNoGrpcGetsAnHttpStatus) {
  EXPECT_EQ(StatusOf(Head(1, "/t.T/M", "application/json")).message,
            "unexpected HTTP status code received from server: 415");
  EXPECT_EQ(StatusOf(Frame(kHeaders, kEndHeaders | kEndStream, 1,
                           Fields({{":method", "GET"},
                                   {":scheme", "http"},
                                   {":path", "/"},
                                   {":authority", "a"}})))
                .message,
            "unexpected HTTP status code received from server: 405");
  EXPECT_TRUE(calls.empty());
  EXPECT_EQ(server->open_calls(), 0u);
}

TEST_F(GrpcSession, TheServerRefusesMalformedCalls) {
  const std::string type = "application/grpc";
  const std::string head = Head(1, "/t.T/M", type);
  EXPECT_EQ(StatusOf(Head(1, "/t.T/M", type, {{"grpc-timeout", "soon"}})),
            (Status{kInternal, "malformed grpc-timeout: \"soon\""}));
  const Status no_message{kInternal, "the call has no request message"};
  EXPECT_EQ(StatusOf(Head(1, "/t.T/M", type, {}, kEndStream)), no_message);
  EXPECT_EQ(StatusOf(head + Frame(kData, kEndStream, 1, FrameMessage("cut").substr(0, 6))),
            no_message);
  EXPECT_EQ(StatusOf(head + Frame(kData, 0, 1, std::string_view("\1\0\0\0\1x", 6))).code,
            kUnimplemented);
  EXPECT_EQ(StatusOf(head + Frame(kData, 0, 1, std::string_view("\0\xff\0\0\0", 5))).code,
            kResourceExhausted);
  std::vector<std::pair<std::string, std::string>> many;
  for (int i = 0; i < 120; ++i) many.emplace_back(StrCat("k", i), std::string(100, 'v'));
  EXPECT_EQ(StatusOf(Head(1, "/t.T/M", type, many)).code, kResourceExhausted);
  EXPECT_TRUE(calls.empty());
  EXPECT_FALSE(server->IsFinished());
  // The connection still works.
  Answer(Head(3, "/t.T/M", "application/grpc+proto") +
         Frame(kData, kEndStream, 3, FrameMessage("x")));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_FALSE(calls[0].timeout);
}

TEST_F(GrpcSession, BytesThatAreNoHttp2EndTheConnection) {
  EXPECT_FALSE(server->Receive("GET / HTTP/1.1\r\nHost: x\r\n\r\n").ok());
  static_cast<void>(client->Receive("HTTP/1.1 400 Bad Request\r\n\r\n"));
  std::string last;
  client->Send(last, kNoLimit);
  EXPECT_TRUE(client->IsFinished());
  EXPECT_FALSE(client->IsReady());
  server = NewServerSession(&CheckMethod);
  // Data on a stream that was never opened; a frame longer than allowed.
  Answer(Hello() + Frame(kData, 0, 5, "x"));
  EXPECT_TRUE(server->IsFinished());
  server = NewServerSession(&CheckMethod);
  Answer(Hello() + std::string("\xff\xff\xff\0\0\0\0\0\1", 9));
  EXPECT_TRUE(server->IsFinished());
}

TEST_F(GrpcSession, TheClientRefusesMalformedAnswers) {
  const std::string compressed("\1\0\0\0\1x", 6), oversized("\0\x7f\0\0\0", 5);
  const std::string good = FrameMessage("m");
  const std::string ok_trailers =
      Frame(kHeaders, kEndHeaders | kEndStream, 1, Fields({{"grpc-status", "0"}}));
  struct Case {
    std::string bytes;
    int code;
    std::size_t messages;
  };
  const Case cases[] = {
      {AnswerHead(0) + Frame(kData, 0, 1, compressed), kUnimplemented, 0},
      {AnswerHead(0) + Frame(kData, 0, 1, good + oversized), kResourceExhausted, 1},
      {AnswerHead(0) + Frame(kData, kEndStream, 1, good), kInternal, 1},
      {AnswerHead(0) + Frame(kData, 0, 1, good.substr(0, 4)) + ok_trailers, kInternal, 0},
      {AnswerHead(kEndStream), kInternal, 0},
      {AnswerHead(kEndStream, {{"grpc-status", "zero"}}), kUnknown, 0},
      {Frame(kHeaders, kEndHeaders, 1, Fields({{":status", "503"}})), kUnavailable, 0},
      {Frame(kHeaders, kEndHeaders, 1, Fields({{":status", "200"}, {"content-type", "text/html"}})),
       kUnknown, 0},
      {Frame(kReset, 0, 1, Number(8)), kCancelled, 0},
      {AnswerHead(0) + Frame(kReset, 0, 1, Number(2)), kInternal, 0},
      {Frame(kReset, 0, 1, Number(7)), kUnavailable, 0},
  };
  for (const Case& each : cases) {
    client = NewClientSession();
    ends.clear();
    messages.clear();
    Start();
    Hear(each.bytes);
    EXPECT_TRUE(heard.ok());
    ASSERT_EQ(ends.size(), 1u) << each.code;
    EXPECT_EQ(ends[0].second.code, each.code) << ends[0].second.message;
    EXPECT_EQ(messages.size(), each.messages);
    EXPECT_EQ(client->open_calls(), 0u);
  }
}

TEST_F(GrpcSession, AnInterimAnswerIsNotTheAnswer) {
  Start();
  Hear(Frame(kHeaders, kEndHeaders, 1, Fields({{":status", "100"}})) +
       AnswerHead(kEndStream, {{"grpc-status", "5"}, {"grpc-message", "none"}}));
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].second, (Status{5, "none"}));
}

TEST_F(GrpcSession, CancellationsReachTheServerOnce) {
  const StreamId id = Start();
  Run();
  ASSERT_EQ(calls.size(), 1u);
  client->Cancel(id);
  client->Cancel(id);
  Run();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[1].type, ServerSession::EventType::kCancelled);
  EXPECT_EQ(calls[1].stream, calls[0].stream);
  server->SendMessage(calls[0].stream, "late");
  server->Finish(calls[0].stream, {});
  Run();
  EXPECT_TRUE(messages.empty() && ends.empty());
}

TEST_F(GrpcSession, CallsBeyondTheServersLimitWait) {
  Run();
  const std::size_t count = kMaxConcurrentCalls + 10;
  for (std::size_t i = 0; i < count; ++i) Start("/t.T/M", std::to_string(i));
  Run();
  EXPECT_EQ(calls.size(), kMaxConcurrentCalls);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    server->SendMessage(calls[i].stream, calls[i].request);
    server->Finish(calls[i].stream, {});
    if (i % 16 == 0) Run();
  }
  Run();
  for (std::size_t i = kMaxConcurrentCalls; i < calls.size(); ++i)
    server->Finish(calls[i].stream, {});
  Run();
  EXPECT_EQ(calls.size(), count);
  EXPECT_EQ(ends.size(), count);
}

TEST_F(GrpcSession, OneThatWaitsCanBeCancelled) {
  Run();
  for (std::size_t i = 0; i < kMaxConcurrentCalls; ++i) Start();
  const StreamId waiting = Start();
  Run();
  client->Cancel(waiting);
  Run();
  EXPECT_EQ(calls.size(), kMaxConcurrentCalls);
  server->Finish(calls[0].stream, {});
  Run();
  EXPECT_EQ(calls.size(), kMaxConcurrentCalls);
  EXPECT_EQ(ends.size(), 1u);
}

TEST_F(GrpcSession, AfterGoawayWhatTheServerSawGoesOn) {
  const StreamId first = Start();
  const StreamId second = Start();
  Hear(Frame(kGoaway, 0, 0, Number(1) + Number(0)));
  EXPECT_TRUE(client->IsGoingAway());
  EXPECT_FALSE(client->IsFinished());
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].first, second);
  EXPECT_EQ(ends[0].second.code, kUnavailable);
  Hear(AnswerHead(kEndStream, {{"grpc-status", "0"}}));
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[1], std::make_pair(first, Status()));
  std::string out;
  client->Send(out, kNoLimit);
  EXPECT_TRUE(client->IsFinished());
}

TEST_F(GrpcSession, AServerThatStopsAnswersWhatIsOpen) {
  Start();
  Start();
  Run();
  ASSERT_EQ(calls.size(), 2u);
  server->SendMessage(calls[0].stream, "whole");
  server->Finish(calls[0].stream, {});
  server->Shutdown({kUnavailable, "the server is stopping"});
  Run();
  EXPECT_EQ(messages, std::vector<std::string>{"whole"});
  ASSERT_EQ(ends.size(), 2u);
  std::sort(ends.begin(), ends.end(), [](auto& a, auto& b) { return a.first < b.first; });
  EXPECT_EQ(ends[0].second, Status());
  EXPECT_EQ(ends[1].second, (Status{kUnavailable, "the server is stopping"}));
  EXPECT_TRUE(server->IsFinished());
  EXPECT_TRUE(client->IsFinished());
}

TEST_F(GrpcSession, AReaderTooFarBehindKeepsWholeMessages) {
  const StreamId id = Start();
  Run();
  server->SendMessage(calls[0].stream, std::string(3'000'000, 'a'));  // more than the window
  std::string out;
  server->Send(out, kNoLimit);
  for (std::size_t i = 0; i < kMaxPendingMessages + 5; ++i)
    server->SendMessage(calls[0].stream, "b");
  ASSERT_TRUE(client->Receive(out).ok());
  EXPECT_TRUE(client->TakeEvents().empty());
  Run();
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0].size(), 3'000'000u);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0],
            std::make_pair(id, Status{kResourceExhausted, "the peer is 1024 messages behind"}));
}

TEST_F(GrpcSession, AnswersOfOneConnectionAreBounded) {
  Start();
  Start();
  Run();
  const std::string large(15 << 20, 'x');
  for (int i = 0; i < 4; ++i) server->SendMessage(calls[0].stream, large);
  server->SendMessage(calls[1].stream, large);
  server->SendMessage(calls[1].stream, large);
  Run();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].first, calls[1].stream);
  EXPECT_EQ(ends[0].second.code, kResourceExhausted);
  EXPECT_EQ(messages.size(), 4u);
}

TEST_F(GrpcSession, ACrowdOfEarlyResetsEndsTheConnection) {
  Answer(Hello());
  bool ended = false;
  StreamId id = 1;
  for (int i = 0; i < 1'100 && !ended; ++i, id += 2) {
    const Result<void> received =
        server->Receive(Head(id, "/t.T/M", "application/grpc") + Frame(kReset, 0, id, Number(8)));
    ended = !received.ok();
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(id, 1 + 2 * 1'001);
}

TEST_F(GrpcSession, ATextThatIsTooLongForTrailersIsCutBetweenCharacters) {
  Start();
  Run();
  server->Finish(calls[0].stream, {kInternal, "x" + [] {
                                     std::string text;
                                     for (int i = 0; i < 5'000; ++i) text += "\xc3\xa4";
                                     return text;
                                   }()});
  Run();
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].second.message.size(), 4'095u);
  EXPECT_TRUE(IsValidUtf8(ends[0].second.message));
}

TEST_F(GrpcSession, PingsAreAnswered) {
  Answer(Hello());
  EXPECT_EQ(FramesOf(Answer(Frame(kPing, 0, 0, "12345678"))).types, std::vector<char>{kPing});
}

TEST_F(GrpcSession, MoreThanOneRequestMessageIsIgnoredWithinBounds) {
  Answer(Hello() + Head(1, "/t.T/M", "application/grpc") +
         Frame(kData, 0, 1, FrameMessage("first") + FrameMessage("second")));
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].request, "first");
  std::string resets;
  for (int i = 0; i < 80 && FramesOf(resets).resets.empty(); ++i) {
    resets += Answer(Frame(kData, 0, 1, std::string(16'384, 'x')));
  }
  EXPECT_EQ(FramesOf(resets).resets, std::vector<std::uint32_t>{0});
}

TEST_F(GrpcSession, AMethodThatIsNoPathIsNotSent) {
  EXPECT_EQ(client->Start({"t.T/M", "localhost", {}}, "").error().code,
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(client->Start({"/t\n", "localhost", {}}, "").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(client->open_calls(), 0u);
}

}  // namespace
}  // namespace drakkar::rpc::grpc
