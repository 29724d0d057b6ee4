#include "rpc/ttrpc/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/env/random.h"

namespace drakkar::rpc {
namespace {

TEST(TtrpcFrame, HasTheLayoutOfTheProtocol) {
  EXPECT_EQ(EncodeTtrpc({.stream = 3, .type = TtrpcType::kResponse, .flags = 1, .data = "ab"}),
            std::string("\0\0\0\x02\0\0\0\x03\x02\x01"
                        "ab",
                        12));
  EXPECT_EQ(EncodeMux(2, "xyz"), std::string("\0\0\0\x02\0\0\0\x03"
                                             "xyz",
                                             11));
}

TEST(TtrpcFrame, MessagesComeOutWhereverTheBytesAreCut) {
  SeededRandom random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<TtrpcMessage> messages;
    std::string bytes;
    for (std::uint64_t i = 0; i < 1 + random.Below(5); ++i) {
      messages.push_back({.stream = static_cast<std::uint32_t>(random.Next()),
                          .type = static_cast<TtrpcType>(1 + random.Below(3)),
                          .flags = static_cast<std::uint8_t>(random.Below(256)),
                          .data = std::string(random.Below(10'000), 'd')});
      bytes += EncodeTtrpc(messages.back());
    }
    // Also through the logical connection, with both split at random.
    const std::string muxed = EncodeMux(1, bytes);
    MuxDecoder pieces;
    TtrpcDecoder decoder;
    std::vector<TtrpcMessage> decoded;
    for (std::size_t at = 0; at < muxed.size();) {
      const std::size_t size = 1 + random.Below(5'000);
      auto frames = pieces.Feed(std::string_view(muxed).substr(at, size));
      at += size;
      ASSERT_TRUE(frames.ok());
      for (const MuxFrame& frame : *frames) {
        EXPECT_EQ(frame.connection, 1u);
        EXPECT_LE(frame.bytes.size(), kMaxSentPiece);
        auto some = decoder.Feed(frame.bytes);
        ASSERT_TRUE(some.ok());
        decoded.insert(decoded.end(), some->begin(), some->end());
      }
    }
    EXPECT_EQ(decoded, messages);
    EXPECT_EQ(decoder.pending_bytes(), 0u);
  }
}

TEST(TtrpcFrame, WhatIsTooLargeOrUnknownIsRefusedBeforeItIsRead) {
  EXPECT_FALSE(TtrpcDecoder().Feed(std::string("\0\x40\0\x01\0\0\0\x01\x01\0", 10)).ok());
  EXPECT_TRUE(TtrpcDecoder().Feed(std::string("\0\x40\0\0\0\0\0\x01\x01\0", 10)).ok());
  EXPECT_FALSE(TtrpcDecoder().Feed(std::string("\0\0\0\0\0\0\0\x01\x09\0", 10)).ok());
  EXPECT_FALSE(MuxDecoder().Feed(std::string("\0\0\0\x01\x01\0\0\0", 8)).ok());
}

}  // namespace
}  // namespace drakkar::rpc
