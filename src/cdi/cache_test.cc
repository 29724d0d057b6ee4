#include "cdi/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "cdi/spec_reader.h"

namespace drakkar::cdi {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::StartsWith;

// A spec of kind v.com/c that sets one variable per device and one for the spec.
std::string SpecText(const std::vector<std::string>& devices, const std::string& mark) {
  std::string text = R"({"cdiVersion":"0.5.0","kind":"v.com/c","devices":[)";
  for (std::size_t i = 0; i < devices.size(); ++i) {
    text += (i > 0 ? "," : "");
    text += R"({"name":")" + devices[i] + R"(","containerEdits":{"env":[")" + devices[i] + "=" +
            mark + R"("]}})";
  }
  return text + R"(],"containerEdits":{"env":["SPEC=)" + mark + R"("]}})";
}

class CacheTest : public ::testing::Test {
 protected:
  CacheTest() : cache_(files_, {}) {
    EXPECT_TRUE(files_.MakeDirectories("/etc/cdi", 0755).ok());
    EXPECT_TRUE(files_.MakeDirectories("/var/run/cdi", 0755).ok());
  }
  void Write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(files_.WriteFile(path, text, 0644).ok());
  }
  std::vector<std::string> Env(const std::vector<std::string>& ids) {
    const Result<ContainerEdits> edits = cache_.Resolve(ids);
    EXPECT_TRUE(edits.ok()) << edits.error().message;
    return edits.ok() ? edits->env : std::vector<std::string>();
  }

  MemoryFileSystem files_;
  Cache cache_;
};

TEST_F(CacheTest, SpecEditsApplyOncePerFileAndDevicesInTheGivenOrder) {
  Write("/etc/cdi/one.json", SpecText({"a", "b"}, "1"));
  Write("/etc/cdi/two.json", SpecText({"c"}, "2"));
  EXPECT_THAT(Env({"v.com/c=b", "v.com/c=c", "v.com/c=a", "v.com/c=b"}),
              ElementsAre("SPEC=1", "b=1", "SPEC=2", "c=2", "a=1"));
  EXPECT_THAT(cache_.ListDevices(), ElementsAre("v.com/c=a", "v.com/c=b", "v.com/c=c"));
  EXPECT_THAT(cache_.errors(), IsEmpty());
}

TEST_F(CacheTest, LaterDirectoriesTakePrecedence) {
  Write("/etc/cdi/x.json", SpecText({"a", "b"}, "static"));
  Write("/var/run/cdi/x.json", SpecText({"a"}, "dynamic"));
  EXPECT_THAT(Env({"v.com/c=a"}), ElementsAre("SPEC=dynamic", "a=dynamic"));
  EXPECT_THAT(Env({"v.com/c=b"}), ElementsAre("SPEC=static", "b=static"));
  EXPECT_THAT(cache_.errors(), IsEmpty());
}

TEST_F(CacheTest, ADeviceDefinedTwiceAtOnePriorityIsDropped) {
  Write("/var/run/cdi/x.json", SpecText({"a", "b"}, "x"));
  Write("/var/run/cdi/y.json", SpecText({"a"}, "y"));
  EXPECT_EQ(cache_.Resolve({"v.com/c=b", "v.com/c=a"}).error(),
            NotFound("unresolvable CDI devices v.com/c=a"
                     "; /var/run/cdi/x.json: conflicting device v.com/c=a (specs "
                     "/var/run/cdi/x.json, /var/run/cdi/y.json)"
                     "; /var/run/cdi/y.json: conflicting device v.com/c=a (specs "
                     "/var/run/cdi/x.json, /var/run/cdi/y.json)"));
  EXPECT_THAT(Env({"v.com/c=b"}), ElementsAre("SPEC=x", "b=x"));
  EXPECT_THAT(cache_.errors(), ElementsAre(Key("/var/run/cdi/x.json"), Key("/var/run/cdi/y.json")));
}

TEST_F(CacheTest, AHigherPriorityResolvesAConflictBelowIt) {
  Write("/etc/cdi/x.json", SpecText({"a"}, "x"));
  Write("/etc/cdi/y.json", SpecText({"a"}, "y"));
  Write("/var/run/cdi/z.json", SpecText({"a"}, "z"));
  EXPECT_THAT(Env({"v.com/c=a"}), ElementsAre("SPEC=z", "a=z"));
}

TEST_F(CacheTest, AnInvalidFileDisablesOnlyItself) {
  Write("/etc/cdi/bad.json", "{");
  Write("/etc/cdi/empty-device.json",
        R"({"cdiVersion":"0.5.0","kind":"v.com/c","devices":[{"name":"z","containerEdits":{}}]})");
  Write("/etc/cdi/good.json", SpecText({"a"}, "1"));
  EXPECT_THAT(Env({"v.com/c=a"}), ElementsAre("SPEC=1", "a=1"));
  EXPECT_THAT(cache_.errors(),
              ElementsAre(Key("/etc/cdi/bad.json"), Key("/etc/cdi/empty-device.json")));
}

TEST_F(CacheTest, ReadsOnlySpecFilesDirectlyInTheDirectory) {
  ASSERT_TRUE(files_.MakeDirectories("/etc/cdi/below", 0755).ok());
  Write("/etc/cdi/below/a.json", SpecText({"a"}, "1"));
  Write("/etc/cdi/.hidden.json", SpecText({"b"}, "1"));
  Write("/etc/cdi/readme.txt", "hello");
  cache_.Refresh();
  EXPECT_THAT(cache_.ListDevices(), IsEmpty());
  EXPECT_THAT(cache_.errors(), IsEmpty());
}

TEST_F(CacheTest, ScansAgainForAnUnknownDeviceAndNamesAllThatStayUnknown) {
  EXPECT_EQ(cache_.Resolve({"v.com/c=a", "v.com/c=b"}).error().message,
            "unresolvable CDI devices v.com/c=a, v.com/c=b");
  Write("/var/run/cdi/x.json", SpecText({"a"}, "1"));
  EXPECT_EQ(cache_.Resolve({"v.com/c=a", "v.com/c=b"}).error().message,
            "unresolvable CDI devices v.com/c=b");
  EXPECT_THAT(Env({"v.com/c=a"}), ElementsAre("SPEC=1", "a=1"));
}

TEST_F(CacheTest, NeverReturnsStaleDevices) {
  Write("/var/run/cdi/x.json", SpecText({"a"}, "1"));
  EXPECT_THAT(Env({"v.com/c=a"}), ElementsAre("SPEC=1", "a=1"));
  Write("/var/run/cdi/x.json", SpecText({"a"}, "2"));
  EXPECT_THAT(Env({"v.com/c=a"}), ElementsAre("SPEC=2", "a=2"));
  ASSERT_TRUE(files_.Remove("/var/run/cdi/x.json").ok());
  EXPECT_FALSE(cache_.Resolve({"v.com/c=a"}).ok());
}

TEST_F(CacheTest, MissingDirectoriesAreAllowedAndNoIdsGiveNoEdits) {
  Cache cache(files_, {.directories = {"/none"}});
  const Result<ContainerEdits> edits = cache.Resolve({});
  ASSERT_TRUE(edits.ok());
  EXPECT_TRUE(edits->IsEmpty());
  EXPECT_THAT(cache.errors(), IsEmpty());
}

TEST_F(CacheTest, ReadsYamlBesideJson) {
  Write("/etc/cdi/x.json", SpecText({"a"}, "1"));
  Write("/var/run/cdi/v.com-c.yaml",
        "---\ncdiVersion: 0.5.0\ndevices:\n- containerEdits:\n    env:\n    - Y=2\n"
        "  name: \"0\"\nkind: v.com/c\n");
  EXPECT_THAT(Env({"v.com/c=0", "v.com/c=a"}), ElementsAre("Y=2", "SPEC=1", "a=1"));
  EXPECT_THAT(cache_.errors(), IsEmpty());
}

TEST_F(CacheTest, TheErrorForAnUnresolvableDeviceNamesInvalidFilesAndReasons) {
  Write("/etc/cdi/v.com-c.yaml", "kind: v.com/c\ndevices: {\n");
  Write("/var/run/cdi/x.json", SpecText({"a"}, "1"));
  const std::string message = cache_.Resolve({"v.com/c=a", "v.com/c=0"}).error().message;
  EXPECT_THAT(message, StartsWith("unresolvable CDI devices v.com/c=0; /etc/cdi/v.com-c.yaml: "));
  EXPECT_THAT(message, HasSubstr("line "));
  EXPECT_THAT(Env({"v.com/c=a"}), ElementsAre("SPEC=1", "a=1"));
}

TEST_F(CacheTest, InvalidFilesOfTheMissingVendorAreNamedFirst) {
  for (const char* name : {"a", "b", "c", "d"}) {
    Write(StrCat("/etc/cdi/", name, ".json"), "{");
  }
  Write("/var/run/cdi/v.com-c_uid.yaml", "knid: v.com/c\n");
  EXPECT_THAT(cache_.Resolve({"v.com/c=0"}).error().message,
              AllOf(StartsWith("unresolvable CDI devices v.com/c=0; /var/run/cdi/v.com-c_uid.yaml: "
                               "unknown field \"knid\"; /etc/cdi/a.json: "),
                    EndsWith("; and 2 more invalid spec files")));
}

TEST_F(CacheTest, AFileThatCannotBeReadIsRecorded) {
  Write("/etc/cdi/x.json", SpecText({"a"}, "1"));
  files_.FailCall(1);  // after listing the first directory
  cache_.Refresh();
  EXPECT_THAT(cache_.errors(), ElementsAre(Key("/etc/cdi/x.json")));
  EXPECT_THAT(Env({"v.com/c=a"}), ElementsAre("SPEC=1", "a=1"));
}

TEST_F(CacheTest, AFileBeyondTheSizeLimitIsNotRead) {
  Write("/etc/cdi/large.json", std::string(kMaxSpecBytes + 1, ' '));
  Write("/etc/cdi/x.json", SpecText({"a"}, "1"));
  files_.MakeSocket("/etc/cdi/socket.json");
  cache_.Refresh();
  EXPECT_THAT(cache_.errors(),
              ElementsAre(Key("/etc/cdi/large.json"), Key("/etc/cdi/socket.json")));
  EXPECT_THAT(Env({"v.com/c=a"}), ElementsAre("SPEC=1", "a=1"));
}

}  // namespace
}  // namespace drakkar::cdi
