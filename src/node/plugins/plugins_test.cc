#include <gtest/gtest.h>

#include "base/testing/memory_file_system.h"
#include "base/testing/memory_file_watcher.h"
#include "base/testing/seeded_loop.h"
#include "base/text/text.h"
#include "node/plugins/plugin_registrar.h"
#include "node/testing/logged_lines.h"
#include "rpc/testing/fake_dra_plugin.h"
#include "rpc/testing/memory_transport.h"

namespace drakkar::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRegistry[] = "/registry";

// The registry with a registrar on it; sockets of the transport appear as files.
class PluginsTest : public ::testing::Test {
 protected:
  PluginsTest()
      : watcher_(loop_),
        transport_(loop_),
        store_(transport_, {.on_usable = [this](const std::string& driver, bool usable) {
                 usable_.push_back(StrCat(driver, usable ? " up" : " down"));
               }}) {
    EXPECT_TRUE(files_.MakeDirectories(kRegistry, 0750).ok());
    transport_.OnSocketChange([this](const std::string& path, bool listening) {
      if (listening) {
        files_.MakeSocket(path);
      } else {
        (void)files_.Remove(path);
      }
      watcher_.Emit(DirectoryName(path), listening ? FileChange::kCreated : FileChange::kRemoved,
                    std::string(BaseName(path)));
    });
  }

  void StartRegistrar() {
    registrar_ = std::make_unique<PluginRegistrar>(PluginRegistrar::Options{.loop = loop_,
                                                                            .files = files_,
                                                                            .watcher = watcher_,
                                                                            .transport = transport_,
                                                                            .directory = kRegistry},
                                                   store_);
    ASSERT_TRUE(registrar_->Start().ok());
    loop_.RunUntilIdle();
  }
  std::unique_ptr<rpc::Server> Serve(rpc::FakeDraPlugin& plugin, const std::string& path) {
    auto server = rpc::CreateServer(transport_, path, plugin.Services());
    EXPECT_TRUE(server->Start().ok());
    loop_.Advance(milliseconds(1));  // connections are made by a timer
    return server;
  }

  SeededLoop loop_;
  MemoryFileSystem files_;
  MemoryFileWatcher watcher_;
  rpc::MemoryTransport transport_;
  std::vector<std::string> usable_;
  PluginStore store_;
  std::unique_ptr<PluginRegistrar> registrar_;
};

TEST_F(PluginsTest, RegistersExistingAndNewSockets) {
  rpc::FakeDraPlugin early("early.example.com"), late("late.example.com");
  auto first = Serve(early, "/registry/early.sock");
  StartRegistrar();
  auto second = Serve(late, "/registry/late.sock");
  EXPECT_THAT(store_.Drivers(), ElementsAre("early.example.com", "late.example.com"));
  ASSERT_EQ(late.notifications.size(), 1u);
  EXPECT_TRUE(late.notifications[0].plugin_registered);
  EXPECT_TRUE(store_.IsUsable("late.example.com"));
}

TEST_F(PluginsTest, FindsSocketsInSubdirectoriesAndIgnoresDotsAndFiles) {
  ASSERT_TRUE(files_.MakeDirectories("/registry/sub", 0750).ok());
  StartRegistrar();
  rpc::FakeDraPlugin plugin("a.example.com"), hidden("hidden.example.com");
  auto server = Serve(plugin, "/registry/sub/a.sock");
  auto other = Serve(hidden, "/registry/.hidden.sock");
  ASSERT_TRUE(files_.WriteFile("/registry/file", "", 0600).ok());
  watcher_.Emit(kRegistry, FileChange::kCreated, "file");
  loop_.RunUntilIdle();
  EXPECT_THAT(store_.Drivers(), ElementsAre("a.example.com"));
}

TEST_F(PluginsTest, TellsThePluginWhyItIsRefused) {
  StartRegistrar();
  rpc::FakeDraPlugin plugin("a.example.com");
  plugin.info.type = "DevicePlugin";
  auto server = Serve(plugin, "/registry/a.sock");
  ASSERT_GE(plugin.notifications.size(), 1u);
  EXPECT_FALSE(plugin.notifications[0].plugin_registered);
  EXPECT_EQ(plugin.notifications[0].error,
            "RegisterPlugin error -- no handler registered for plugin type: DevicePlugin at socket "
            "/registry/a.sock");
  plugin.info.type = rpc::kDraPluginType;
  plugin.info.supported_versions = {"v7.DRAPlugin", "x"};
  loop_.Advance(milliseconds(600));
  EXPECT_EQ(
      plugin.notifications.back().error,
      "RegisterPlugin error -- plugin validation failed with err: invalid supported gRPC versions "
      "of DRA driver plugin a.example.com at endpoint /registry/a.sock: none of services supported "
      "by the plugin ([\"v7.DRAPlugin\" \"x\"]) are supported by the kubelet ([\"v1.DRAPlugin\" "
      "\"v1beta1.DRAPlugin\"])");
  plugin.info.supported_versions = {};
  loop_.Advance(milliseconds(1100));
  EXPECT_THAT(plugin.notifications.back().error,
              HasSubstr("empty list of supported gRPC services (aka supported versions)"));
  plugin.info.supported_versions = {"v1beta1.DRAPlugin", "v1.DRAPlugin"};
  loop_.Advance(milliseconds(2100));
  EXPECT_TRUE(plugin.notifications.back().plugin_registered);
  EXPECT_EQ((*store_.GetPlugin("a.example.com"))->version, rpc::DraVersion::kV1beta1)
      << "the plugin's order decides";
}

TEST_F(PluginsTest, NamesThatNoClaimCanHaveAreRefusedInAShortMessage) {
  StartRegistrar();
  const LoggedLines lines;
  int number = 0;
  for (const std::string& name :
       {std::string("../../etc"), std::string("A.example.com"), std::string("a/b"),
        std::string("a\nb"), std::string("."), std::string(64, 'a'), std::string(1 << 20, 'a')}) {
    rpc::FakeDraPlugin plugin(name);
    auto server = Serve(plugin, StrCat("/registry/", ++number, ".sock"));
    ASSERT_GE(plugin.notifications.size(), 1u) << name;
    EXPECT_FALSE(plugin.notifications[0].plugin_registered) << name;
    EXPECT_THAT(plugin.notifications[0].error,
                HasSubstr("is not a DNS subdomain of at most 63 characters"));
    EXPECT_LT(plugin.notifications[0].error.size(), 400u);
  }
  rpc::FakeDraPlugin longest(std::string(63, 'a'));
  auto server = Serve(longest, "/registry/longest.sock");
  EXPECT_THAT(store_.Drivers(), ElementsAre(std::string(63, 'a')));
  EXPECT_LT(lines.text().size(), 10'000u);
}

TEST_F(PluginsTest, WhatARefusedPluginSentDoesNotFillItsRefusal) {
  StartRegistrar();
  rpc::FakeDraPlugin plugin("a.example.com");
  plugin.info.type = std::string(1 << 20, 't');
  auto server = Serve(plugin, "/registry/a.sock");
  EXPECT_LT(plugin.notifications.back().error.size(), 400u);
  plugin.info.type = rpc::kDraPluginType;
  plugin.info.supported_versions.assign(50'000, "v7.DRAPlugin");
  loop_.Advance(milliseconds(600));
  EXPECT_THAT(plugin.notifications.back().error, HasSubstr("none of services supported"));
  EXPECT_LT(plugin.notifications.back().error.size(), 2'000u);
  plugin.info.supported_versions = {"v1.DRAPlugin"};
  plugin.info.endpoint = "/" + std::string(1 << 20, 'e');
  loop_.Advance(milliseconds(1100));
  EXPECT_EQ(plugin.notifications.back().error,
            "RegisterPlugin error -- plugin validation failed with err: endpoint of DRA driver "
            "plugin a.example.com is not a path of at most 1024 bytes");
  EXPECT_TRUE(store_.Drivers().empty());
}

TEST_F(PluginsTest, RetriesAfterGetInfoAndAfterNotifyFailed) {
  StartRegistrar();
  rpc::FakeDraPlugin plugin("a.example.com");
  plugin.get_info_error = Internal("starting");
  auto server = Serve(plugin, "/registry/a.sock");
  EXPECT_TRUE(store_.Drivers().empty());
  plugin.get_info_error.reset();
  plugin.notify_error = Unavailable("not now");
  loop_.Advance(milliseconds(510));
  EXPECT_EQ(plugin.notifications.size(), 1u);
  EXPECT_TRUE(store_.Drivers().empty()) << "deregistered when it cannot be told";
  plugin.notify_error.reset();
  loop_.Advance(milliseconds(1010));
  EXPECT_THAT(store_.Drivers(), ElementsAre("a.example.com"));
}

TEST_F(PluginsTest, CallsTheNewestConnectedInstance) {
  StartRegistrar();
  rpc::FakeDraPlugin old_one("a.example.com"), new_one("a.example.com");
  auto first = Serve(old_one, "/registry/a-1.sock");
  auto second = Serve(new_one, "/registry/a-2.sock");
  EXPECT_EQ((*store_.GetPlugin("a.example.com"))->endpoint, "/registry/a-2.sock");
  usable_.clear();
  second->Stop();
  loop_.RunUntilIdle();
  EXPECT_EQ((*store_.GetPlugin("a.example.com"))->endpoint, "/registry/a-1.sock");
  EXPECT_EQ(usable_.back(), "a.example.com up") << "the other instance keeps the driver alive";
  first->Stop();
  loop_.RunUntilIdle();
  EXPECT_EQ(usable_.back(), "a.example.com down");
  EXPECT_EQ(store_.GetPlugin("a.example.com").error().message,
            "DRA driver a.example.com is not registered");
}

TEST_F(PluginsTest, RefusesAnEndpointThatIsInUse) {
  StartRegistrar();
  rpc::FakeDraPlugin plugin("a.example.com"), copy("a.example.com");
  auto first = Serve(plugin, "/registry/a.sock");
  copy.info.endpoint = "/registry/a.sock";
  auto second = Serve(copy, "/registry/b.sock");
  EXPECT_THAT(
      copy.notifications.at(0).error,
      HasSubstr(
          "endpoint /registry/a.sock already registered for DRA driver plugin a.example.com"));
}

TEST_F(PluginsTest, ASocketThatDoesNotAcceptYetIsRetriedWithoutLogging) {
  StartRegistrar();
  LoggedLines log;
  files_.MakeSocket("/registry/a.sock");
  watcher_.Emit(kRegistry, FileChange::kCreated, "a.sock");
  loop_.Advance(milliseconds(5));
  transport_.OnSocketChange(nullptr);  // the file has been seen
  rpc::FakeDraPlugin plugin("a.example.com");
  auto server = Serve(plugin, "/registry/a.sock");
  loop_.Advance(milliseconds(20));
  EXPECT_THAT(store_.Drivers(), ElementsAre("a.example.com"));
  EXPECT_THAT(log.text(), Not(HasSubstr("plugin not registered")));
}

TEST_F(PluginsTest, ASocketThatNobodyListensOnIsReported) {
  StartRegistrar();
  LoggedLines log;
  files_.MakeSocket("/registry/a.sock");
  watcher_.Emit(kRegistry, FileChange::kCreated, "a.sock");
  loop_.Advance(milliseconds(500));
  EXPECT_THAT(log.text(), HasSubstr("plugin not registered"));
}

TEST_F(PluginsTest, SettlesOnceEveryInitialSocketHasAnsweredOrFailed) {
  std::vector<bool> settled;
  auto start = [&] {
    registrar_ = std::make_unique<PluginRegistrar>(
        PluginRegistrar::Options{
            .loop = loop_,
            .files = files_,
            .watcher = watcher_,
            .transport = transport_,
            .directory = kRegistry,
            .on_settled = [&](bool all_answered) { settled.push_back(all_answered); }},
        store_);
    ASSERT_TRUE(registrar_->Start().ok());
  };
  start();
  loop_.RunUntilIdle();
  EXPECT_THAT(settled, ElementsAre(true)) << "there are none";

  rpc::FakeDraPlugin a("a.example.com"), b("b.example.com");
  a.get_info_error = Unavailable("starting");
  auto first = Serve(a, "/registry/a.sock");
  auto second = Serve(b, "/registry/b.sock");
  settled.clear();
  store_.Deregister("b.example.com", "/registry/b.sock");
  start();
  loop_.RunUntilIdle();
  EXPECT_TRUE(settled.empty()) << "one of them has not answered";
  a.get_info_error.reset();
  loop_.Advance(milliseconds(400));
  EXPECT_THAT(settled, ElementsAre(true));

  settled.clear();
  registrar_.reset();
  store_.Deregister("a.example.com", "/registry/a.sock");
  store_.Deregister("b.example.com", "/registry/b.sock");
  transport_.Kill("/registry/a.sock");
  start();
  loop_.Advance(seconds(60));
  EXPECT_THAT(settled, ElementsAre(false)) << "once, although it is retried";
}

TEST_F(PluginsTest, RegistersAgainWhenTheSocketIsRecreated) {
  StartRegistrar();
  rpc::FakeDraPlugin plugin("a.example.com");
  auto server = Serve(plugin, "/registry/a.sock");
  server->Stop();
  server = Serve(plugin, "/registry/a.sock");
  EXPECT_EQ(plugin.notifications.size(), 2u);
  EXPECT_TRUE(store_.IsUsable("a.example.com"));
}

TEST_F(PluginsTest, AServiceThatRestartsBehindItsRegistrationReconnectsWithinASecond) {
  StartRegistrar();
  rpc::FakeDraPlugin plugin("a.example.com");
  plugin.info.endpoint = "/service.sock";
  rpc::ServiceSet registration, service;
  registration.registration = &plugin;
  service.dra = &plugin;
  auto registrar = rpc::CreateServer(transport_, "/registry/a-reg.sock", registration);
  auto server = rpc::CreateServer(transport_, "/service.sock", service);
  ASSERT_TRUE(server->Start().ok());
  ASSERT_TRUE(registrar->Start().ok());
  loop_.Advance(milliseconds(1));
  ASSERT_TRUE(store_.IsUsable("a.example.com"));
  server->Stop();
  loop_.Advance(seconds(600));
  EXPECT_FALSE(store_.IsUsable("a.example.com"));
  ASSERT_TRUE(server->Start().ok());
  loop_.Advance(milliseconds(1010));
  EXPECT_TRUE(store_.IsUsable("a.example.com"));
  EXPECT_EQ(plugin.notifications.size(), 1u) << "without another registration";
}

TEST_F(PluginsTest, AWatchThatFailsIsSetUpAgain) {
  watcher_.FailNextWatch(Unavailable("no inotify"));
  StartRegistrar();
  rpc::FakeDraPlugin plugin("a.example.com");
  auto server = Serve(plugin, "/registry/a.sock");
  loop_.Advance(seconds(2));
  EXPECT_THAT(store_.Drivers(), ElementsAre("a.example.com"));
}

TEST_F(PluginsTest, LostEventsCauseARescan) {
  StartRegistrar();
  rpc::FakeDraPlugin plugin("a.example.com");
  transport_.OnSocketChange([this](const std::string& path, bool) { files_.MakeSocket(path); });
  auto server = Serve(plugin, "/registry/a.sock");
  EXPECT_TRUE(store_.Drivers().empty());
  watcher_.Emit(kRegistry, FileChange::kEventsLost, "");
  loop_.Advance(seconds(2));
  EXPECT_THAT(store_.Drivers(), ElementsAre("a.example.com"));
}

}  // namespace
}  // namespace drakkar::node
