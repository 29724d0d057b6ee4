#include "rpc/transport/status.h"

#include <gtest/gtest.h>

namespace drakkar::rpc {
namespace {

TEST(Status, EveryErrorCodeSurvivesTheRoundTrip) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_EQ(ErrorFromGrpcStatus(GrpcCodeFromError(code), "x").code, code) << ErrorCodeName(code);
  }
}

TEST(Status, TextsReadLikeThoseOfGo) {
  EXPECT_EQ(ErrorFromGrpcStatus(14, "gone").message, "rpc error: code = Unavailable desc = gone");
  EXPECT_EQ(ErrorFromGrpcStatus(1, "").message, "rpc error: code = Canceled desc = ");
  EXPECT_EQ(ErrorFromGrpcStatus(4, "Deadline Exceeded").message,
            "rpc error: code = DeadlineExceeded desc = context deadline exceeded");
  EXPECT_EQ(ErrorFromGrpcStatus(4, "too slow").message,
            "rpc error: code = DeadlineExceeded desc = too slow");
}

TEST(Status, UnknownCodesAreInternal) {
  EXPECT_EQ(ErrorFromGrpcStatus(99, "x"), Internal("rpc error: code = Code(99) desc = x"));
}

}  // namespace
}  // namespace drakkar::rpc
