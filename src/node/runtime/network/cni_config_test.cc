#include "node/runtime/network/cni_config.h"

#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "base/text/text.h"
#include "node/runtime/json.h"
#include "node/runtime/network/cni_attachment.h"
#include "node/runtime/network/cni_result.h"

namespace drakkar::node {
namespace {

std::string List(std::string_view version, std::string_view plugins = R"([{"type":"bridge"}])") {
  return StrCat(R"({"cniVersion":")", version, R"(","name":"net","plugins":)", plugins, "}");
}

TEST(CniConfig, AListNamesItsPluginsInOrder) {
  const auto list = ParseCniList(List("1.0.0", R"([{"type":"bridge","mtu":9000},
                        {"type":"portmap","capabilities":{"portMappings":true,"dns":false}}])"),
                                 true);
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->name, "net");
  EXPECT_EQ(list->parsed_version, (CniVersion{1, 0, 0}));
  ASSERT_EQ(list->plugins.size(), 2u);
  EXPECT_EQ(list->plugins[0].type, "bridge");
  EXPECT_EQ(list->plugins[1].capabilities, (std::set<std::string>{"portMappings"}));
}

TEST(CniConfig, ASinglePluginBecomesAListOfOne) {
  const auto list = ParseCniList(R"({"cniVersion":"0.4.0","name":"net","type":"ptp"})", false);
  ASSERT_TRUE(list.ok()) << list.error().message;
  ASSERT_EQ(list->plugins.size(), 1u);
  EXPECT_EQ(list->plugins[0].type, "ptp");
  const auto again = ParseCniList(list->text, true);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->plugins[0].type, "ptp");
}

TEST(CniConfig, VersionsFrom03To11AreAccepted) {
  for (const char* version : {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}) {
    EXPECT_TRUE(ParseCniList(List(version), true).ok()) << version;
  }
  for (const char* version : {"0.1.0", "0.2.0", "1.2.0", "2.0.0", "1.0", "one", "1.0.-1"}) {
    EXPECT_FALSE(ParseCniList(List(version), true).ok()) << version;
  }
}

TEST(CniConfig, TheNewestSupportedOfSeveralVersionsIsUsed) {
  const auto list = ParseCniList(
      R"({"cniVersion":"0.4.0","cniVersions":["1.0.0","1.1.0","9.0.0"],"name":"net",
          "plugins":[{"type":"bridge"}]})",
      true);
  ASSERT_TRUE(list.ok()) << list.error().message;
  EXPECT_EQ(list->version, "1.1.0");
}

TEST(CniConfig, NamesThatWouldLeaveTheirDirectoryAreRefused) {
  for (const char* type : {"", "../sh", "/bin/sh", "a/b", ".hidden", "a b"}) {
    EXPECT_FALSE(ParseCniList(List("1.0.0", StrCat(R"([{"type":")", type, R"("}])")), true).ok())
        << type;
  }
  EXPECT_FALSE(ParseCniList(R"({"name":"../x","plugins":[{"type":"a"}]})", true).ok());
  EXPECT_FALSE(ParseCniList(R"({"name":"","plugins":[{"type":"a"}]})", true).ok());
}

TEST(CniConfig, HugeAndEmptyConfigurationsAreRefused) {
  EXPECT_FALSE(ParseCniList(List("1.0.0", "[]"), true).ok());
  EXPECT_FALSE(ParseCniList(std::string(kMaxCniFileBytes + 1, ' '), true).ok());
  std::string plugins = R"({"type":"a"})";
  for (std::size_t i = 0; i < kMaxCniPlugins; ++i) plugins += R"(,{"type":"a"})";
  const auto list = ParseCniList(List("1.0.0", StrCat("[", plugins, "]")), true);
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.error().message, "the network has more than 32 plugins");
}

TEST(CniConfig, TheFirstFileByNameIsUsedAndOthersAreNotAFallback) {
  MemoryFileSystem files;
  EXPECT_EQ(LoadCniList(files, "/net.d").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(files.MakeDirectories("/net.d", 0755).ok());
  EXPECT_EQ(LoadCniList(files, "/net.d").error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(files.WriteFile("/net.d/00-readme.txt", "no", 0644).ok());
  ASSERT_TRUE(files.WriteFile("/net.d/20-second.conflist", List("1.0.0"), 0644).ok());
  EXPECT_EQ(LoadCniList(files, "/net.d")->name, "net");
  ASSERT_TRUE(files
                  .WriteFile("/net.d/10-first.conf",
                             R"({"cniVersion":"1.0.0","name":"first","type":"ptp"})", 0644)
                  .ok());
  EXPECT_EQ(LoadCniList(files, "/net.d")->name, "first");
  ASSERT_TRUE(files.WriteFile("/net.d/05-broken.conflist", "{", 0644).ok());
  const auto broken = LoadCniList(files, "/net.d");
  ASSERT_FALSE(broken.ok());
  EXPECT_NE(broken.error().code, ErrorCode::kNotFound);
  EXPECT_NE(broken.error().message.find("/net.d/05-broken.conflist"), std::string::npos);
}

TEST(CniConfig, APluginGetsTheNetworkItsCapabilitiesAndThePreviousResult) {
  const auto list = ParseCniList(
      List("1.0.0", R"([{"type":"portmap","capabilities":{"portMappings":true},"snat":true}])"),
      true);
  ASSERT_TRUE(list.ok());
  const CapabilityArguments arguments = {{"portMappings", R"([{"hostPort":80}])"},
                                         {"bandwidth", R"({"ingressRate":1})"}};
  const auto text = MakePluginInput({.list = *list,
                                     .plugin = list->plugins[0],
                                     .arguments = arguments,
                                     .previous_result = R"({"ips":[]})",
                                     .valid_attachments = {}});
  ASSERT_TRUE(text.ok()) << text.error().message;
  const api::TreePtr tree = *ParseJson(*text);
  const api::Value json = tree->root();
  EXPECT_EQ(json["name"].str(), "net");
  EXPECT_EQ(json["cniVersion"].str(), "1.0.0");
  EXPECT_TRUE(json.Entry("snat").boolean());
  EXPECT_EQ(json["runtimeConfig"].members().size(), 1u) << *text;
  EXPECT_EQ(json["runtimeConfig"].Entry("portMappings").size(), 1u);
  EXPECT_TRUE(json["prevResult"].is_object());
}

TEST(CniConfig, APluginForCapabilitiesOnlyIsSkippedWithoutThem) {
  const auto list =
      ParseCniList(List("1.0.0", R"([{"type":"portmap","capabilities":{"portMappings":true},
                         "onlyWithCapabilities":true},{"type":"tuning"}])"),
                   true);
  ASSERT_TRUE(list.ok());
  EXPECT_FALSE(IsNeeded(list->plugins[0], {}));
  EXPECT_FALSE(IsNeeded(list->plugins[0], {{"bandwidth", "{}"}}));
  EXPECT_TRUE(IsNeeded(list->plugins[0], {{"portMappings", "[]"}}));
  EXPECT_TRUE(IsNeeded(list->plugins[1], {}));
}

TEST(CniResult, OnlyAddressesOfThePodsInterfaceCount) {
  const auto result = ParseCniResult(
      R"({"interfaces":[{"name":"br0"},{"name":"eth0","sandbox":"/ns"}],
          "ips":[{"interface":0,"address":"10.0.0.1/24"},{"interface":1,"address":"10.0.0.5/24"},
                 {"address":"fd00::5/64"}]})",
      "eth0");
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->addresses, (std::vector<std::string>{"10.0.0.5", "fd00::5"}));
}

TEST(CniResult, ResultsThatMakeNoSenseAreRefused) {
  for (const char* text :
       {"", "  ", "[]", "null", "{", R"({"ips":[{"address":"ten"}]})",
        R"({"ips":[{"address":""}]})", R"({"ips":[{"address":"1.2.3/24"}]})",
        R"({"ips":[{"interface":0,"address":"10.0.0.1/24"}]})",
        R"({"interfaces":[{}],"ips":[{"interface":-1,"address":"1.1.1.1/8"}]})"}) {
    EXPECT_FALSE(ParseCniResult(text, "eth0").ok()) << text;
  }
  EXPECT_FALSE(ParseCniResult(std::string(kMaxCniResultBytes + 1, ' '), "eth0").ok());
  std::string ips = R"({"address":"10.0.0.1/24"})";
  for (std::size_t i = 0; i < kMaxCniAddresses; ++i) ips += R"(,{"address":"10.0.0.1/24"})";
  EXPECT_FALSE(ParseCniResult(StrCat(R"({"ips":[)", ips, "]}"), "eth0").ok());
}

TEST(CniResult, AFailureIsToldInOneSentence) {
  EXPECT_EQ(DescribeCniFailure(R"({"code":11,"msg":"no addresses","details":"range full"})", "", 1),
            "no addresses: range full");
  EXPECT_EQ(DescribeCniFailure("panic\nat line 3", "", 2), "exit code 2: panic at line 3");
  EXPECT_EQ(DescribeCniFailure("", "\x1b[31mred", 2), "exit code 2:  [31mred");
  EXPECT_EQ(DescribeCniFailure("", "", 2), "exit code 2 without an explanation");
  EXPECT_LT(DescribeCniFailure("", std::string(1 << 20, 'x'), 1).size(), 1100u);
  EXPECT_TRUE(
      IsValidUtf8(DescribeCniFailure("", std::string(kMaxCniMessageBytes - 1, 'x') + "é", 1)));
}

TEST(CniResult, APodHasOneAddressPerFamilyAndTheNodesFamilyFirst) {
  using Addresses = std::vector<std::string>;
  EXPECT_EQ(ChoosePodAddresses({"10.0.0.1", "fd00::1", "10.0.0.2"}, "192.0.2.1"),
            (Addresses{"10.0.0.1", "fd00::1"}));
  EXPECT_EQ(ChoosePodAddresses({"10.0.0.1", "fd00::1"}, "2001:db8::1"),
            (Addresses{"fd00::1", "10.0.0.1"}));
  EXPECT_EQ(ChoosePodAddresses({"fd00::1", "10.0.0.1"}, "192.0.2.1"),
            (Addresses{"10.0.0.1", "fd00::1"}));
  EXPECT_EQ(ChoosePodAddresses({"fd00::1"}, "192.0.2.1"), (Addresses{"fd00::1"}));
  EXPECT_EQ(ChoosePodAddresses({}, "192.0.2.1"), Addresses{});
}

TEST(CniAttachment, IsReadAsItWasWritten) {
  const CniAttachment attachment{.sandbox_id = "s1",
                                 .interface = "eth0",
                                 .cni_arguments = "IgnoreUnknown=1",
                                 .capabilities = {{"portMappings", R"([{"hostPort":80}])"}},
                                 .list_text = List("1.0.0"),
                                 .result = R"({"ips":[]})"};
  const auto read = ParseAttachment(WriteAttachment(attachment));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, attachment);
  EXPECT_EQ(ParseAttachment("{}").error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(ParseAttachment("").error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(ParseAttachment(R"({"version":1,"sandbox":"a"})").error().code, ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace drakkar::node
