#pragma once

#include <memory>
#include <string>

#include "cmd/drakkar/daemon.h"
#include "net/tls/certificates.h"
#include "node/admission/node_features.h"

namespace drakkar::cmd {

struct NodeOptions {
  UvLoop& main_loop;
  ClientFactory clients;
  FeatureGates gates;
  node::NodeFeatureOptions features;  // what decides about declared features
  std::string node_name;
  std::string address;  // the node's own, and its port's
  std::uint16_t port = 10250;
  std::string data_dir;  // images, containers
  std::string root_dir;  // what a kubelet calls so: plugins, their registry, the checkpoint
  std::string runtime;   // "runc", "crun" or empty
  std::int64_t pod_pids_limit = 0;  // of each pod; 0: none
  bool seccomp_default = false;     // RuntimeDefault for who names no profile
  bool beside_api_server = false;   // which goes on when the node cannot
  std::string api_host;             // what containers are told
  std::string api_port;
  std::string client_ca_pem;  // who may ask the node's port
  net::CertificateAndKey serving;
  bool low_latency = false;  // idle processors stay awake while claims are prepared
};

// Directories of a node under its data directory, and under its root directory.
std::string ImageDirectory(const std::string& data_dir);
std::string DefaultRootDirectory(const std::string& data_dir);
std::string RegistryDirectory(const std::string& root_dir);
std::string CdiDirectory(const std::string& data_dir);
std::string NriSocketPath(const std::string& data_dir);

// The node agent with the embedded runtime, on a loop of its own. Stopping leaves containers
// running; the next start adopts them.
std::unique_ptr<Part> MakeNodePart(NodeOptions options);

struct DriverOptions {
  std::string node_name;
  std::string kubeconfig;
  std::string data_dir;
  std::string root_dir;
  std::string devices;  // a file; empty: the built-in four
  bool device_metadata = false;
};
// The reference driver as a process of its own, started again when it dies.
std::unique_ptr<Part> MakeDriverPart(UvLoop& main_loop, DriverOptions options);

}  // namespace drakkar::cmd
