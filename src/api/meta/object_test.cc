#include "api/meta/object.h"

#include <gtest/gtest.h>

#include "api/tree/draft.h"

namespace drakkar::api {
namespace {

TEST(Object, ReadsItsMetadata) {
  Draft draft{{"apiVersion", "v1"}, {"kind", "Pod"}};
  draft["metadata"] =
      Draft{{"name", "p"}, {"namespace", "n"}, {"uid", "u"}, {"resourceVersion", "42"}};
  const Object pod(draft.Freeze());
  EXPECT_EQ(pod.api_version(), "v1");
  EXPECT_EQ(pod.kind(), "Pod");
  EXPECT_EQ(pod.qualified_name(), "n/p");
  EXPECT_EQ(pod.uid(), "u");
  EXPECT_EQ(pod.resource_version(), 42);
  EXPECT_FALSE(pod.is_being_deleted());
  draft["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z";
  draft["metadata"]["resourceVersion"] = "x1";
  draft["metadata"].Remove("namespace");
  const Object deleted(draft.Freeze());
  EXPECT_TRUE(deleted.is_being_deleted());
  EXPECT_EQ(deleted.resource_version(), 0);
  EXPECT_EQ(deleted.qualified_name(), "p");
}

TEST(Object, EncodesItsJsonOnce) {
  const Object object(Draft{{"kind", "Pod"}}.Freeze());
  EXPECT_EQ(*object.json(), "{\"kind\":\"Pod\"}");
  EXPECT_EQ(object.json(), object.json());
}

}  // namespace
}  // namespace drakkar::api
