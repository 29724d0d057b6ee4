#include "rpc/registration/registration.h"

#include <gtest/gtest.h>

#include "rpc/registration/registration_codec.h"
#include "rpc/testing/contract_test.h"
#include "rpc/testing/fake_dra_plugin.h"

namespace drakkar::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RegistrationTest : public ContractTest {
 protected:
  RegistrationTest() : plugin_("gpu.example.com"), path_(SocketPath("gpu-reg.sock")) {
    plugin_.info.endpoint = "/plugins/gpu/dra.sock";
    Do([this] {
      client_ = MakeRegistrationClient(transport());
      server_ = CreateServer(transport(), path_, plugin_.Services());
      const Result<void> started = server_->Start();
      EXPECT_TRUE(started.ok()) << started.error().message;
    });
  }
  ~RegistrationTest() override {
    Do([this] {
      client_.reset();
      server_.reset();
    });
  }

  Result<PluginInfo> GetInfo(const std::string& path, Duration timeout = seconds(10)) {
    return Await<PluginInfo>([&](auto done) { client_->GetInfo(path, timeout, std::move(done)); });
  }
  Result<void> Notify(const RegistrationStatus& status) {
    return Await<void>([&](auto done) {
      client_->NotifyRegistrationStatus(path_, status, seconds(10), std::move(done));
    });
  }

  FakeDraPlugin plugin_;
  std::string path_;
  std::unique_ptr<RegistrationClient> client_;
  std::unique_ptr<Server> server_;
};

TEST_P(RegistrationTest, GetInfoTellsWhatThePluginIs) {
  const Result<PluginInfo> info = GetInfo(path_);
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(*info, plugin_.info);
}

TEST_P(RegistrationTest, GetInfoFailureReachesTheNode) {
  Do([this] { plugin_.get_info_error = Unavailable("not yet"); });
  const Result<PluginInfo> info = GetInfo(path_);
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.error(), Unavailable("rpc error: code = Unavailable desc = not yet"));
}

TEST_P(RegistrationTest, GetInfoFromAMissingSocketIsUnavailable) {
  const Result<PluginInfo> info = GetInfo(SocketPath("nobody.sock"));
  ASSERT_FALSE(info.ok());
  EXPECT_EQ(info.error().code, ErrorCode::kUnavailable) << info.error().message;
  EXPECT_EQ(info.error().message.rfind("rpc error: code = Unavailable desc = ", 0), 0u);
  EXPECT_NE(info.error().message.find("nobody.sock"), std::string::npos) << info.error().message;
}

TEST_P(RegistrationTest, SuccessIsNotifiedAndAccepted) {
  const Result<void> answer = Notify({.plugin_registered = true});
  EXPECT_TRUE(answer.ok());
  Do([this] {
    ASSERT_EQ(plugin_.notifications.size(), 1u);
    EXPECT_TRUE(plugin_.notifications[0].plugin_registered);
  });
}

TEST_P(RegistrationTest, FailureIsNotifiedAndAnsweredWithAnError) {
  const Result<void> answer = Notify({.plugin_registered = false, .error = "no such type"});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().message,
            "rpc error: code = Internal desc = failed registration process: no such type");
  Do([this] {
    ASSERT_EQ(plugin_.notifications.size(), 1u);
    EXPECT_EQ(plugin_.notifications[0].error, "no such type");
  });
}

TEST_P(RegistrationTest, DestroyingTheClientDropsItsCallbacks) {
  bool ran = false;
  Do([&] {
    client_->GetInfo(path_, seconds(10), [&](Result<PluginInfo>) { ran = true; });
    client_.reset();
  });
  Do([&] { client_ = MakeRegistrationClient(transport()); });
  EXPECT_TRUE(GetInfo(path_).ok());  // one round trip later
  Do([&] { EXPECT_FALSE(ran); });
}

INSTANTIATE_CONTRACT_TEST(RegistrationTest);

TEST(RegistrationCodec, MatchesTheWireFormat) {
  // Field 1 type, 2 name, 3 endpoint, 4 supported_versions, all length-delimited.
  EXPECT_EQ(registration::EncodePluginInfo(
                {.type = "T", .name = "N", .endpoint = "E", .supported_versions = {"a", "b"}}),
            "\x0a\x01T\x12\x01N\x1a\x01"
            "E\x22\x01"
            "a\x22\x01"
            "b");
  EXPECT_EQ(registration::EncodeStatus({.plugin_registered = true, .error = "x"}),
            "\x08\x01\x12\x01x");
}

TEST(RegistrationCodec, ReplacesWhatIsNotUtf8InErrors) {
  const auto status = registration::DecodeStatus(
      registration::EncodeStatus({.plugin_registered = false, .error = "a\xff\xc3\xa9z"}));
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->error, "a\xEF\xBF\xBD\xc3\xa9z");
}

TEST(RegistrationCodec, RefusesMalformedBytes) {
  EXPECT_FALSE(registration::DecodePluginInfo("\x0a\x7f").ok());
}

}  // namespace
}  // namespace drakkar::rpc
