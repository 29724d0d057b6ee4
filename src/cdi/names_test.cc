#include "cdi/names.h"

#include <gtest/gtest.h>

namespace drakkar::cdi {
namespace {

TEST(Names, ParsesQualifiedNames) {
  const Result<QualifiedName> name = ParseQualifiedName("gpu.example.com/metadata=0a1b-c_req:1.x");
  ASSERT_TRUE(name.ok()) << name.error().message;
  EXPECT_EQ(*name, (QualifiedName{.vendor = "gpu.example.com",
                                  .device_class = "metadata",
                                  .device = "0a1b-c_req:1.x"}));
  EXPECT_EQ(name->ToString(), "gpu.example.com/metadata=0a1b-c_req:1.x");
  EXPECT_TRUE(ParseQualifiedName("v/c=d").ok());
}

TEST(Names, RejectsUnqualifiedAndInvalidNames) {
  for (const char* bad :
       {"", "v", "v/c", "v=d", "/c=d", "v/=d", "v/c=", "1v/c=d", "v/1c=d", "v-/c=d", "v/c=-d",
        "v/c=d-", "v/c=a b", "v/c=a/b", "v/c=a=b", "v:x/c=d", "=d/c", "v/c=\xc3\xa9"}) {
    EXPECT_FALSE(ParseQualifiedName(bad).ok()) << bad;
  }
}

TEST(Names, ErrorsSayWhatIsWrong) {
  EXPECT_EQ(ParseQualifiedName("1v/c=d").error().message,
            "CDI device \"1v/c=d\": vendor name \"1v\" must start with a letter");
  EXPECT_EQ(ParseQualifiedName("gpu").error().message,
            "CDI device \"gpu\" is not of the form <vendor>/<class>=<device>");
}

}  // namespace
}  // namespace drakkar::cdi
