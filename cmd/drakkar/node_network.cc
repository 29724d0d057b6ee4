#include "cmd/drakkar/node_network.h"

#include "telemetry/log/log.h"

namespace drakkar::cmd {
namespace {

constexpr Logger kLog("node.network");

}  // namespace

NodeNetwork::NodeNetwork(UvLoop& loop, FileWatcher& watcher, const PodNetworkOptions& options,
                         const std::string& data_dir) {
  if (options.shares_host) return;
  auto log = [](const std::string& line) { kLog.Info(line); };
  spawner_ = MakeSpawner(loop);
  plugins_ = node::MakeCniExecutor({.loop = loop,
                                    .files = RealFileSystem(),
                                    .spawner = *spawner_,
                                    .directories = options.plugin_directories});
  node::CniNetwork::Options cni{
      .loop = loop,
      .files = RealFileSystem(),
      .watcher = watcher,
      .executor = *plugins_,
      .config_directory = options.config_directory,
      .state_directory = JoinPath(PodNetworkDirectory(data_dir), "attachments"),
      .shared_because = options.shared_because,
      .log = log};
  if (options.built_in) {
    built_in_ = std::make_unique<node::BuiltInNetwork>(loop, *spawner_, *options.built_in, log);
    cni.built_in = options.built_in->list;
    cni.prepare_built_in = [this](node::RuntimeCallback<void> done) {
      built_in_->Prepare(std::move(done));
    };
  }
  network_ = std::make_unique<node::CniNetwork>(std::move(cni));
}

void NodeNetwork::Start() {
  if (network_ != nullptr) network_->Start();
}

}  // namespace drakkar::cmd
