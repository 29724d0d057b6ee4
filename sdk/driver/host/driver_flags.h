#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::driver {

// A flag, for help texts or other command line libraries.
struct DriverFlagInfo {
  std::string name;  // without dashes
  std::string help;  // one sentence
  std::string default_value;
  std::string placeholder;  // "DIR"; empty for a bool
};

// The flags that every driver has:
//
//   DriverFlags flags{.driver_name = "gpu.example.com"};
//   auto rest = flags.Parse({argv + 1, argv + argc});   // returns the driver's own arguments
//
// A driver with its own command line library registers Describe() there and passes the values to
// Set(). Fields that are set before parsing are the defaults.
struct DriverFlags {
  std::string driver_name;
  std::string kubeconfig;  // if empty, the service account of the driver's pod
  std::string node_name;
  std::string registry_directory = "/var/lib/kubelet/plugins_registry";
  std::string plugin_directory;  // if empty, plugins/<driver> next to the registry
  std::string cdi_directory = "/var/run/cdi";
  std::string pod_uid;                               // if not empty, enables rolling updates
  std::string nri_socket = "/var/run/nri/nri.sock";  // used by drivers with an NRI hook
  // "NoSchedule", "NoExecute" or "None": effect of the taint <driver>/unhealthy for unhealthy
  // devices; if empty, they are not tainted. For drivers with the health service.
  std::string unhealthy_taint;
  std::string http_endpoint;  // "127.0.0.1:8080"; not served if empty
  std::string logging_format = "text";
  std::string log_level = "info";
  bool enable_device_metadata = false;  // KEP-5304; nothing else enables it

  std::vector<DriverFlagInfo> Describe() const;
  // Sets one flag. Rejects unknown names and malformed values.
  Result<void> Set(std::string_view name, std::string_view value);
  // Removes `--flag value`, `--flag=value` and bool flags from `words` and returns the rest in
  // order. Leaves everything after `--`, and unknown flags, to the caller.
  Result<std::vector<std::string>> Parse(const std::vector<std::string>& words);
  // For a main function without flags of its own; also reads the environment. If anything else is
  // on the command line, prints the error and the help to standard error and returns false.
  bool ParseCommandLine(int argc, char** argv);
  // Fills empty fields from NODE_NAME, POD_UID and KUBECONFIG, as a DaemonSet passes them to its
  // pods.
  void ReadEnvironment(const std::function<const char*(const char*)>& get);

  std::string Help() const;
};

}  // namespace drakkar::driver
