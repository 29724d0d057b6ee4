#include "rpc/grpc/framing.h"

#include <gtest/gtest.h>

#include "rpc/transport/transport.h"

namespace drakkar::rpc::grpc {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(GrpcFraming, MessagesSurviveAnyCut) {
  std::string bytes;
  const std::vector<std::string> sent = {"", "a", std::string(300, 'x'), std::string("\0\1", 2)};
  for (const std::string& message : sent) bytes += FrameMessage(message);
  EXPECT_EQ(bytes.substr(0, 11), std::string("\0\0\0\0\0"
                                             "\0\0\0\0\1a",
                                             11));
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    MessageReader reader;
    std::vector<std::string> received;
    EXPECT_FALSE(reader.Read(std::string_view(bytes).substr(0, cut), received));
    EXPECT_FALSE(reader.Read(std::string_view(bytes).substr(cut), received));
    EXPECT_EQ(received, sent);
    EXPECT_FALSE(reader.IsWithinMessage());
  }
  MessageReader reader;
  std::vector<std::string> received;
  for (const char byte : bytes) EXPECT_FALSE(reader.Read(std::string_view(&byte, 1), received));
  EXPECT_EQ(received, sent);
}

TEST(GrpcFraming, KnowsWhenAMessageIsCutOff) {
  MessageReader reader;
  std::vector<std::string> received;
  EXPECT_FALSE(reader.Read(FrameMessage("abc").substr(0, 3), received));
  EXPECT_TRUE(reader.IsWithinMessage());
}

TEST(GrpcFraming, RefusesCompressedUnknownAndOversizedMessages) {
  std::vector<std::string> received;
  EXPECT_EQ(MessageReader().Read(std::string_view("\1\0\0\0\1a", 6), received)->code,
            kUnimplemented);
  EXPECT_EQ(MessageReader().Read(std::string_view("\x80\0\0\0\1a", 6), received),
            (Status{kInternal, "received unexpected payload format 128"}));
  EXPECT_EQ(
      MessageReader().Read(std::string_view("\0\1\0\0\1", 5), received),
      (Status{kResourceExhausted, "received message larger than max (16777217 vs. 16777216)"}));
  EXPECT_FALSE(MessageReader().Read(std::string_view("\0\1\0\0\0", 5), received));
  EXPECT_TRUE(received.empty());
  EXPECT_FALSE(CheckMessageSize(kMaxMessageBytes));
  EXPECT_EQ(CheckMessageSize(kMaxMessageBytes + 1)->code, kResourceExhausted);
}

TEST(GrpcFraming, TextsTravelAsPrintableAscii) {
  EXPECT_EQ(EncodeText("a b~"), "a b~");
  EXPECT_EQ(EncodeText("100%\n\xc3\xa4"), "100%25%0A%C3%A4");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(DecodeText(EncodeText(all)), all);
  EXPECT_EQ(DecodeText("%c3%A4"), "\xc3\xa4");
  for (const char* malformed : {"%", "%4", "%zz", "a%4g", "%%%"}) {
    EXPECT_EQ(DecodeText(malformed), malformed);
  }
}

TEST(GrpcFraming, TimeoutsAreRoundedUpAndBounded) {
  EXPECT_EQ(EncodeTimeout(seconds(10)), "10000000u");
  EXPECT_EQ(EncodeTimeout(nanoseconds(1)), "1n");
  EXPECT_EQ(EncodeTimeout(nanoseconds(100'000'001)), "100001u");
  EXPECT_EQ(EncodeTimeout(seconds(100)), "100000m");
  EXPECT_EQ(EncodeTimeout(hours(28)), "100800S");
  EXPECT_EQ(EncodeTimeout(-seconds(1)), "1n");
  EXPECT_EQ(ParseTimeout("10S"), seconds(10));
  EXPECT_EQ(ParseTimeout("99999999m"), milliseconds(99'999'999));
  EXPECT_EQ(ParseTimeout("1M"), seconds(60));
  EXPECT_EQ(ParseTimeout("0n"), nanoseconds(0));
  EXPECT_EQ(ParseTimeout("99999999H"), Duration::max());
  for (const char* malformed : {"", "S", "1", "-1S", "1s", "123456789S", "1 S", "1.5S"}) {
    EXPECT_FALSE(ParseTimeout(malformed)) << malformed;
  }
  for (const std::int64_t n : {1, 99'999'999, 100'000'000, 123'456'789}) {
    for (const std::int64_t unit : {1, 1'000, 1'000'000}) {
      const nanoseconds timeout(n * unit);
      const nanoseconds parsed = ParseTimeout(EncodeTimeout(timeout)).value();
      EXPECT_GE(parsed, timeout);
      EXPECT_LE(parsed - timeout, timeout / 1'000);
    }
  }
}

TEST(GrpcFraming, OnlyProtobufIsGrpcForUs) {
  for (const char* good : {"application/grpc", "application/grpc+proto", "Application/GRPC",
                           "application/grpc;charset=utf-8", "application/grpc+proto ; x=y"}) {
    EXPECT_TRUE(IsGrpcContentType(good)) << good;
  }
  for (const char* bad : {"", "application/json", "application/grpc+json", "application/grpc-web",
                          "application/grpcx", "text/html"}) {
    EXPECT_FALSE(IsGrpcContentType(bad)) << bad;
  }
}

TEST(GrpcFraming, WhatIsNoGrpcStatusIsMappedToOne) {
  EXPECT_EQ(StatusFromTrailers("0", ""), Status());
  EXPECT_EQ(StatusFromTrailers("5", "no%20pod"), (Status{5, "no pod"}));
  EXPECT_EQ(StatusFromTrailers("x", "").code, kUnknown);
  EXPECT_EQ(StatusFromTrailers("-1", "").code, kUnknown);
  EXPECT_EQ(StatusFromTrailers("99", "").code, 99);
  const std::pair<int, int> mapped[] = {
      {400, kInternal},    {401, kUnauthenticated}, {403, kPermissionDenied}, {404, kUnimplemented},
      {429, kUnavailable}, {502, kUnavailable},     {503, kUnavailable},      {504, kUnavailable},
      {500, kUnknown},     {302, kUnknown}};
  for (const auto& [http, code] : mapped) EXPECT_EQ(StatusFromHttp(http, "").code, code) << http;
  EXPECT_EQ(StatusFromHttp(200, "text/html").message,
            "received unexpected content-type \"text/html\"");
  EXPECT_EQ(StatusFromHttp(200, "application/grpc").code, kInternal);
  EXPECT_EQ(StatusFromReset(7).code, kUnavailable);
  EXPECT_EQ(StatusFromReset(8),
            (Status{kCancelled, "stream terminated by RST_STREAM with error code: CANCEL"}));
  EXPECT_EQ(StatusFromReset(0).code, kInternal);
  EXPECT_EQ(StatusFromReset(99).message, "stream terminated by RST_STREAM with error code: 99");
}

}  // namespace
}  // namespace drakkar::rpc::grpc
