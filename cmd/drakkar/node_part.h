#pragma once

#include <map>
#include <memory>
#include <string>

#include "cmd/drakkar/agent_settings.h"
#include "cmd/drakkar/daemon.h"
#include "cmd/drakkar/nri_flags.h"
#include "cmd/drakkar/pod_network_flags.h"
#include "cmd/drakkar/resource_settings.h"
#include "net/tls/certificate_source.h"
#include "node/admission/node_features.h"
#include "node/admission/pod_fit.h"
#include "node/eviction/thresholds.h"
#include "node/runtime/images/image_collector.h"
#include "node/runtime/registry/registries.h"
#include "node/shutdown/shutdown_manager.h"
#include "node/status/node_facts.h"

namespace drakkar::cmd {

struct NodeOptions {
  UvLoop& main_loop;
  ClientFactory clients;
  FeatureGates gates;
  node::NodeFeatureOptions features;  // what decides which features are declared
  std::string node_name;
  std::string address;  // of the node and its port
  std::uint16_t port = 10250;
  std::string data_dir;  // images, containers
  std::string root_dir;  // the kubelet's root directory: plugins, their registry, the checkpoint
  std::string runtime;   // "runc", "crun" or empty
  std::map<std::string, std::string> runtime_handlers;  // more programs, by handler
  std::string runtime_endpoint;     // socket of a CRI runtime; empty: the embedded one
  NriOptions nri;                   // of the embedded runtime
  std::int64_t pod_pids_limit = 0;  // per pod; 0 means no limit
  bool seccomp_default = false;     // RuntimeDefault for containers without a profile
  bool beside_api_server = false;  // the API server in this process keeps running if the node fails
  std::string api_host;            // passed to containers
  std::string api_port;
  // The node's client calls this with the server's address when it uses another one; null: it has
  // only one.
  std::shared_ptr<std::function<void(const std::string&)>> on_server;
  PodNetworkOptions network;
  node::RegistrySettings registries;
  node::ImageCollection image_collection;
  node::EvictionSettings eviction;
  ResourceSettings resources;
  std::vector<node::ShutdownPeriod> shutdown_periods;
  node::AllowedSysctls sysctls;
  std::int64_t max_pods = 0;  // 0: the default
  AgentSettings agent;
  std::string pod_api_host;   // the same for pods with a network of their own; empty: api_host
  std::string client_ca_pem;  // CA for clients of the node's port
  std::shared_ptr<net::CertificateSource> serving;
  bool low_latency = false;  // keep idle processors awake while claims are prepared
};

// Directories of a node below its data directory and its root directory.
std::string ImageDirectory(const std::string& data_dir);
std::string DownloadDirectory(const std::string& data_dir);
std::string DefaultRootDirectory(const std::string& data_dir);
std::string RegistryDirectory(const std::string& root_dir);
std::string CdiDirectory(const std::string& data_dir);
// Locked while a node agent runs, so that no other one and no `down` touches its pods.
std::string NodeLockPath(const std::string& data_dir);

// The node agent with its runtime, on its own loop. Stopping it leaves containers running;
// the next start adopts them.
std::unique_ptr<Part> MakeNodePart(NodeOptions options);

struct DriverOptions {
  std::string node_name;
  std::string kubeconfig;
  std::string data_dir;
  std::string root_dir;
  std::string devices;  // file; if empty, the built-in four
  bool device_metadata = false;
};
// The reference driver as a child process, restarted when it exits.
std::unique_ptr<Part> MakeDriverPart(UvLoop& main_loop, DriverOptions options);

}  // namespace drakkar::cmd
