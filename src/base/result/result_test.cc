#include "base/result/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>

namespace drakkar {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return InvalidArgument("odd");
  return n / 2;
}

Result<int> Quarter(int n) {
  ASSIGN_OR_RETURN(int half, Half(n));
  return Half(half);
}

Result<void> MustBeEven(int n) {
  RETURN_IF_ERROR(Half(n));
  return Ok();
}

TEST(Result, CarriesAValue) {
  EXPECT_EQ(*Quarter(8), 2);
}

TEST(Result, CarriesTheFirstErrorUpwards) {
  auto result = Quarter(6);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error(), InvalidArgument("odd"));
  EXPECT_FALSE(MustBeEven(3).ok());
  EXPECT_TRUE(MustBeEven(4).ok());
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  std::unique_ptr<int> moved = std::move(result).value();
  EXPECT_EQ(*moved, 7);
}

TEST(Error, TheCallerAddsWhatItWasDoing) {
  Error error = Unavailable("connection closed").Prefixed("prepare claim ns/a");
  EXPECT_EQ(error.message, "prepare claim ns/a: connection closed");
  EXPECT_EQ(error.code, ErrorCode::kUnavailable);
}

TEST(Error, ErrnoBecomesACodeCallersCanBranchOn) {
  EXPECT_EQ(ErrnoError(ENOENT, "open x").code, ErrorCode::kNotFound);
  EXPECT_EQ(ErrnoError(ENOENT, "open x").message, "open x: No such file or directory");
}

TEST(ResultDeathTest, ReadingTheWrongSideIsABug) {
  EXPECT_DEATH(static_cast<void>(Half(3).value()), "check failed");
}

}  // namespace
}  // namespace drakkar
