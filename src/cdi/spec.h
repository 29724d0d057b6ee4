#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace drakkar::cdi {

// A CDI specification (Container Device Interface 1.1.0) in plain types: the changes that a runtime
// makes to a container so that it can use a device. Fields are named as in the file.

struct DeviceNode {
  std::string path;       // in the container
  std::string host_path;  // if empty, the same as `path`
  std::string type;       // b, c, u, p; if empty, as on the host
  std::int64_t major = 0;
  std::int64_t minor = 0;
  std::optional<std::uint32_t> file_mode;
  std::string permissions;  // subset of "rwm", or "none"; if empty, rwm
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;

  bool operator==(const DeviceNode&) const = default;
};

struct NetDevice {
  std::string host_interface_name;
  std::string name;  // in the container

  bool operator==(const NetDevice&) const = default;
};

struct Hook {
  std::string hook_name;  // prestart, createRuntime, createContainer, startContainer, ...
  std::string path;
  std::vector<std::string> args;
  std::vector<std::string> env;
  std::optional<std::int64_t> timeout_seconds;

  bool operator==(const Hook&) const = default;
};

struct Mount {
  std::string host_path;
  std::string container_path;
  std::vector<std::string> options;
  std::string type;

  bool operator==(const Mount&) const = default;
};

struct IntelRdt {
  std::string clos_id;
  std::string l3_cache_schema;
  std::string mem_bw_schema;
  bool enable_cmt = false;
  bool enable_mbm = false;
  std::vector<std::string> schemata;
  bool enable_monitoring = false;

  bool operator==(const IntelRdt&) const = default;
};

struct ContainerEdits {
  std::vector<std::string> env;  // "K=V"
  std::vector<DeviceNode> device_nodes;
  std::vector<NetDevice> net_devices;
  std::vector<Hook> hooks;
  std::vector<Mount> mounts;
  std::optional<IntelRdt> intel_rdt;
  std::vector<std::uint32_t> additional_gids;

  bool IsEmpty() const { return *this == ContainerEdits(); }
  bool operator==(const ContainerEdits&) const = default;
};

struct Device {
  std::string name;
  std::map<std::string, std::string> annotations;
  ContainerEdits container_edits;

  bool operator==(const Device&) const = default;
};

struct Spec {
  std::string cdi_version;
  std::string kind;  // "<vendor>/<class>"
  std::map<std::string, std::string> annotations;
  std::vector<Device> devices;
  ContainerEdits container_edits;  // applied once to a container that gets any of the devices

  bool operator==(const Spec&) const = default;
};

}  // namespace drakkar::cdi
