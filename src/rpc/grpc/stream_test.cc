// Streams in both directions, and what a client may conclude when they fail.
#include <gtest/gtest.h>

#include "base/text/text.h"
#include "net/http2/server_session.h"
#include "rpc/grpc/client_session.h"
#include "rpc/grpc/server_session.h"

namespace drakkar::rpc::grpc {
namespace {

constexpr std::size_t kNoLimit = 1u << 30;
using EventType = ServerSession::EventType;

class GrpcStream : public ::testing::Test {
 protected:
  // Transfers bytes in both directions until neither side has any.
  void Run() {
    while (true) {
      std::string to_server, to_client;
      client->Send(to_server, kNoLimit);
      ASSERT_TRUE(server->Receive(to_server).ok());
      for (auto& event : server->TakeEvents()) calls.push_back(std::move(event));
      server->Send(to_client, kNoLimit);
      ASSERT_TRUE(client->Receive(to_client).ok());
      for (auto& event : client->TakeEvents()) events.push_back(std::move(event));
      if (to_server.empty() && to_client.empty()) return;
    }
  }
  StreamId Open(std::string_view method = "/t.T/Stream") {
    return client->Open({.method = method, .authority = "localhost", .timeout = {}}).value();
  }

  std::unique_ptr<ClientSession> client = NewClientSession();
  std::unique_ptr<ServerSession> server =
      NewServerSession([](std::string_view) { return Ok(); },
                       [](std::string_view method) { return method == "/t.T/Stream"; });
  std::vector<ServerSession::Event> calls;
  std::vector<ClientSession::Event> events;
};

TEST_F(GrpcStream, MessagesFlowBothWaysUntilEachSideEnds) {
  const StreamId id = Open();
  Run();
  EXPECT_TRUE(calls.empty()) << "a call starts with its first message";
  client->SendMessage(id, "one");
  client->SendMessage(id, "");
  Run();
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].type, EventType::kCall);
  EXPECT_EQ(calls[0].request, "one");
  EXPECT_EQ(calls[1].type, EventType::kMessage);
  EXPECT_EQ(calls[1].request, "");
  server->SendMessage(id, "answer");
  client->SendMessage(id, "three");
  client->FinishSending(id);
  client->SendMessage(id, "too late");
  Run();
  ASSERT_EQ(calls.size(), 4u);
  EXPECT_EQ(calls[2].request, "three");
  EXPECT_EQ(calls[3].type, EventType::kEnd);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].message, "answer");
  server->SendMessage(id, "the server may still send");
  server->Finish(id, {});
  Run();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].message, "the server may still send");
  EXPECT_EQ(events[2].status, Status());
  EXPECT_EQ(client->open_calls() + server->open_calls(), 0u);
}

TEST_F(GrpcStream, AMessageWaitsForTheWindowOfTheServer) {
  Run();
  const StreamId id = Open();
  const std::string large(3 << 20, 'x');  // three times the server's window for a stream
  client->SendMessage(id, large);
  std::string first;
  client->Send(first, kNoLimit);
  EXPECT_GE(first.size(), 1u << 20);
  EXPECT_LT(first.size(), (1u << 20) + 65'536);
  std::string nothing;
  client->Send(nothing, kNoLimit);
  EXPECT_EQ(nothing, "");
  ASSERT_TRUE(server->Receive(first).ok());
  Run();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].request, large);
}

TEST_F(GrpcStream, AServerTooFarBehindEndsTheStream) {
  Run();
  const StreamId id = Open();
  client->SendMessage(id, std::string(3 << 20, 'x'));
  std::string out;
  client->Send(out, kNoLimit);
  for (std::size_t i = 0; i < kMaxPendingMessages; ++i) client->SendMessage(id, "y");
  const auto ended = client->TakeEvents();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].status, (Status{kResourceExhausted, "the server is 1024 messages behind"}));
  ASSERT_TRUE(server->Receive(out).ok());
  Run();
  EXPECT_EQ(server->open_calls(), 0u) << "the server learns that the stream was reset";
}

TEST_F(GrpcStream, AMessageBeyondTheLimitEndsTheStream) {
  const StreamId id = Open();
  client->SendMessage(id, std::string(kMaxMessageBytes + 1, 'x'));
  Run();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].status.code, kResourceExhausted);
  EXPECT_TRUE(calls.empty());
}

TEST_F(GrpcStream, AClientChoosesTheLargestResponseItAccepts) {
  client = NewClientSession(/*max_message_bytes=*/100);
  const StreamId id = Open();
  client->SendMessage(id, "q");
  Run();
  server->SendMessage(id, std::string(100, 'x'));
  server->SendMessage(id, std::string(101, 'x'));
  Run();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].message->size(), 100u);
  EXPECT_EQ(events[1].status,
            (Status{kResourceExhausted, "received message larger than max (101 vs. 100)"}));
}

TEST_F(GrpcStream, AStreamThatTheServerEndsEarlyIsClosedOnBothSides) {
  const StreamId id = Open();
  client->SendMessage(id, "one");
  Run();
  server->Finish(id, {kUnavailable, "no leader"});
  Run();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].status, (Status{kUnavailable, "no leader"}));
  EXPECT_FALSE(events[0].unprocessed);
  client->SendMessage(id, "ignored");
  client->FinishSending(id);
  Run();
  EXPECT_EQ(server->open_calls(), 0u);
  EXPECT_EQ(calls.size(), 1u);
}

TEST_F(GrpcStream, TheClientResetsAStreamThatItsServerHasEnded) {
  Run();
  const StreamId id = Open();
  std::string out;
  client->Send(out, kNoLimit);
  // A trailers-only response from a server that leaves resetting the stream to the client.
  std::string fields;
  for (const auto& [name, value] : {std::pair<std::string, std::string>(":status", "200"),
                                    {"content-type", "application/grpc"},
                                    {"grpc-status", "0"}}) {
    fields += '\0';
    fields += static_cast<char>(name.size()) + name;
    fields += static_cast<char>(value.size()) + value;
  }
  std::string frame("\0\0", 2);
  frame += static_cast<char>(fields.size());
  frame += std::string("\1\5\0\0\0", 5);
  frame += static_cast<char>(id);
  ASSERT_TRUE(client->Receive(frame + fields).ok());
  ASSERT_EQ(client->TakeEvents().size(), 1u);
  out.clear();
  client->Send(out, kNoLimit);
  ASSERT_EQ(out.size(), 13u);
  EXPECT_EQ(out[3], '\3') << "RST_STREAM";
}

TEST_F(GrpcStream, ABrokenMessageCancelsACallThatHasStarted) {
  const StreamId id = Open();
  client->SendMessage(id, "one");
  Run();
  // A DATA frame with a compressed message, which no session of ours sends.
  const std::string frame("\0\0\x06\0\0\0\0\0\x01\1\0\0\0\1x", 15);
  ASSERT_TRUE(server->Receive(frame).ok());
  calls = server->TakeEvents();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].type, EventType::kCancelled);
  Run();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].status.code, kUnimplemented);
}

TEST_F(GrpcStream, AReaderThatIsCutOffCancelsItsCall) {
  const StreamId id = Open();
  client->SendMessage(id, "one");
  Run();
  calls.clear();
  server->SendMessage(id, std::string(3 << 20, 'x'));
  std::string out;
  server->Send(out, kNoLimit);
  for (std::size_t i = 0; i <= kMaxPendingMessages; ++i) server->SendMessage(id, "y");
  calls = server->TakeEvents();
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].type, EventType::kCancelled);
}

TEST_F(GrpcStream, MetadataIsSentAsHeaderFields) {
  struct HttpEvents final : net::ServerSession::Events {
    void OnRequest(net::StreamId, net::Request given) override { request = std::move(given); }
    void OnStreamClosed(net::StreamId, bool) override {}
    void OnRawData(std::string_view) override {}
    net::Request request;
  } seen;
  const auto http = net::http2::NewServerSession({}, seen);
  const Metadata metadata = {{"hasleader", "true"}};
  ASSERT_TRUE(client
                  ->Start({.method = "/t.T/Stream",
                           .authority = "etcd:2379",
                           .timeout = {},
                           .metadata = &metadata},
                          "q")
                  .ok());
  std::string out;
  client->Send(out, kNoLimit);
  ASSERT_TRUE(http->Receive(out).ok());
  EXPECT_EQ(seen.request.headers.Get("hasleader"), "true");
  EXPECT_EQ(seen.request.headers.Get("host"), "etcd:2379");
}

TEST_F(GrpcStream, WhatWasNeverSentWasNotProcessed) {
  Run();
  const StreamId sent = Open();
  std::string out;
  client->Send(out, kNoLimit);
  const StreamId unsent = Open();
  EXPECT_TRUE(client->WasSent(sent));
  EXPECT_FALSE(client->WasSent(unsent));
}

TEST_F(GrpcStream, CallsBehindAGoawayWereNotProcessed) {
  Run();
  const StreamId first = Open();
  const StreamId second = Open();
  std::string out;
  client->Send(out, kNoLimit);
  // GOAWAY with the first stream as the last one processed.
  std::string goaway("\0\0\x08\7\0\0\0\0\0\0\0\0", 12);
  goaway += static_cast<char>(first);
  goaway += std::string(4, '\0');
  ASSERT_TRUE(client->Receive(goaway).ok());
  const auto ended = client->TakeEvents();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].stream, second);
  EXPECT_TRUE(ended[0].unprocessed);
}

TEST_F(GrpcStream, ARefusedStreamWasNotProcessedAndACancelledOneMayHaveBeen) {
  Run();
  for (const auto& [code, unprocessed] : {std::pair('\7', true), std::pair('\2', false)}) {
    const StreamId id = Open();
    std::string out;
    client->Send(out, kNoLimit);
    std::string reset("\0\0\4\3\0\0\0\0", 8);
    reset += static_cast<char>(id);
    reset += std::string(3, '\0');
    reset += code;
    ASSERT_TRUE(client->Receive(reset).ok());
    const auto ended = client->TakeEvents();
    ASSERT_EQ(ended.size(), 1u);
    EXPECT_EQ(ended[0].unprocessed, unprocessed);
  }
}

TEST_F(GrpcStream, APingGetsAnAnswer) {
  Run();
  client->Ping();
  std::string ping, answer;
  client->Send(ping, kNoLimit);
  ASSERT_EQ(ping.size(), 17u);
  ASSERT_TRUE(server->Receive(ping).ok());
  server->Send(answer, kNoLimit);
  EXPECT_EQ(answer.size(), 17u);
}

}  // namespace
}  // namespace drakkar::rpc::grpc
