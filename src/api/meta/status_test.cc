#include "api/meta/status.h"

#include <gtest/gtest.h>

#include "api/json/writer.h"

namespace drakkar::api {
namespace {

constexpr GroupResource kPods{"", "pods"};
constexpr GroupResource kClaims{"resource.k8s.io", "resourceclaims"};

TEST(Status, MessagesAreThoseOfKubernetes) {
  EXPECT_EQ(StatusNotFound(kPods, "x").message, "pods \"x\" not found");
  EXPECT_EQ(StatusNotFound(kClaims, "x").message, "resourceclaims.resource.k8s.io \"x\" not found");
  EXPECT_EQ(StatusAlreadyExists(kPods, "x").message, "pods \"x\" already exists");
  EXPECT_EQ(
      StatusModified(kPods, "x").message,
      "Operation cannot be fulfilled on pods \"x\": the object has been modified; please apply "
      "your changes to the latest version and try again");
  EXPECT_EQ(StatusForbidden(kPods, "x", "no").message, "pods \"x\" is forbidden: no");
  EXPECT_EQ(StatusForbidden(kPods, "", "no").message, "pods is forbidden: no");
  EXPECT_EQ(StatusInternalError("oops").message, "Internal error occurred: oops");
}

TEST(Status, InvalidCarriesItsCauses) {
  const FieldErrors errors = {FieldError::Required(FieldPath("spec.x"), ""),
                              FieldError::Invalid(FieldPath("spec.y"), "v", "bad")};
  const Status status = StatusInvalid("resource.k8s.io", "ResourceClaim", "c", errors);
  EXPECT_EQ(
      status.message,
      "ResourceClaim.resource.k8s.io \"c\" is invalid: [spec.x: Required value, spec.y: Invalid "
      "value: \"v\": bad]");
  EXPECT_EQ(status.code, 422);
  ASSERT_EQ(status.causes.size(), 2u);
  EXPECT_EQ(status.causes[1],
            (StatusCause{"FieldValueInvalid", "Invalid value: \"v\": bad", "spec.y"}));
}

TEST(Status, IsWrittenAndReadBack) {
  Status status = StatusTooManyRequests("later", 5);
  status.causes.push_back({"r", "m", "f"});
  const TreePtr tree = status.ToTree();
  EXPECT_EQ(
      WriteJson(tree->root()),
      R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"later",)"
      R"("reason":"TooManyRequests","details":{"causes":[{"reason":"r","message":"m","field":"f"}],)"
      R"("retryAfterSeconds":5},"code":429})");
  const Status back = Status::FromTree(tree->root());
  EXPECT_EQ(back.code, 429);
  EXPECT_EQ(back.reason, "TooManyRequests");
  EXPECT_EQ(back.causes, status.causes);
  EXPECT_EQ(back.retry_after_seconds, 5);
  EXPECT_TRUE(Status::FromTree(StatusSuccess(kPods, "x", "u").ToTree()->root()).ok());
}

TEST(Status, ErrorsKeepTheirCodeOnTheWayThroughTheApi) {
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument, ErrorCode::kNotFound, ErrorCode::kAlreadyExists,
        ErrorCode::kConflict, ErrorCode::kExpired, ErrorCode::kForbidden,
        ErrorCode::kUnauthenticated, ErrorCode::kResourceExhausted, ErrorCode::kUnavailable,
        ErrorCode::kDeadlineExceeded, ErrorCode::kUnimplemented, ErrorCode::kInternal}) {
    EXPECT_EQ(ErrorFromStatus(StatusFromError({code, "m"})).code, code) << ErrorCodeName(code);
  }
  EXPECT_EQ(ErrorFromStatus(StatusInvalid("", "Pod", "p", {})).code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace drakkar::api
