#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "base/testing/memory_file_system.h"
#include "base/testing/seeded_loop.h"
#include "rpc/dra/dra_client.h"
#include "rpc/testing/memory_transport.h"
#include "sdk/driver/driver.h"

namespace drakkar::driver {

// A driver without a process: a simulated loop, files and sockets in memory, an API server that has
// claims, and the node that calls it.
template <typename Claims, typename PluginType>
class DriverFixture : public ::testing::Test {
 protected:
  DriverFixture() : transport_(loop_), client_(loop_) {}
  ~DriverFixture() override { driver_.reset(); }

  DriverOptions Options() {
    return {.loop = loop_,
            .random = loop_.random(),
            .files = files_,
            .client = client_,
            .transport = transport_,
            .plugin = plugin_,
            .driver_name = "d.example.com",
            .node_name = "n",
            .registry_directory = "/kubelet/plugins_registry",
            .cdi_directory = "/cdi"};
  }
  // Replaces the previous driver, if there is one.
  void StartDriver(DriverOptions options) {
    driver_.reset();
    auto driver = Driver::Start(std::move(options));
    ASSERT_TRUE(driver.ok()) << driver.error().message;
    driver_ = *std::move(driver);
    node_ = rpc::DialDraPlugin(transport_, {.endpoint = driver_->plugin_socket_path()});
    loop_.RunUntilIdle();
  }

  SeededLoop loop_;
  rpc::MemoryTransport transport_;
  MemoryFileSystem files_;
  Claims client_;
  PluginType plugin_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<rpc::DraPluginClient> node_;
};

}  // namespace drakkar::driver
