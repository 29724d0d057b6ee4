#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::driver {

// One flag as a help text or another command line library wants it.
struct DriverFlagInfo {
  std::string name;  // without dashes
  std::string help;  // one sentence
  std::string default_value;
  std::string placeholder;  // "DIR"; empty for a switch
};

// The flags every driver has, added to its command line in one call:
//
//   DriverFlags flags{.driver_name = "gpu.example.com"};
//   auto rest = flags.Parse({argv + 1, argv + argc});   // the driver's own words are left over
//
// A driver with a command line library of its own registers Describe() there and hands the values
// to Set(). Fields that are set before parsing are the defaults.
struct DriverFlags {
  std::string driver_name;
  std::string kubeconfig;  // empty: the service account of the pod the driver runs in
  std::string node_name;
  std::string registry_directory = "/var/lib/kubelet/plugins_registry";
  std::string plugin_directory;  // empty: plugins/<driver> beside the registry
  std::string cdi_directory = "/var/run/cdi";
  std::string pod_uid;                               // not empty: rolling updates
  std::string nri_socket = "/var/run/nri/nri.sock";  // used by drivers with an NRI hook
  // "NoSchedule", "NoExecute" or "None": the taint <driver>/unhealthy for devices that are reported
  // unhealthy; empty: none. For drivers with the health service.
  std::string unhealthy_taint;
  std::string http_endpoint;  // "127.0.0.1:8080"; empty: none
  std::string logging_format = "text";
  std::string log_level = "info";
  bool enable_device_metadata = false;  // KEP-5304: this flag alone decides

  std::vector<DriverFlagInfo> Describe() const;
  // One flag; unknown names and values of a wrong form are refused with one sentence.
  Result<void> Set(std::string_view name, std::string_view value);
  // Takes `--flag value`, `--flag=value` and switches out of `words` and returns the others in
  // order. Everything after `--` is left alone. A word that looks like a flag but is not one of
  // these is left to the caller too.
  Result<std::vector<std::string>> Parse(const std::vector<std::string>& words);
  // For a main function without flags of its own, the environment included: false, with what is
  // wrong and the help on standard error, if there is anything else on the command line.
  bool ParseCommandLine(int argc, char** argv);
  // NODE_NAME, POD_UID and KUBECONFIG fill what is still empty: what a DaemonSet hands to its pods.
  void ReadEnvironment(const std::function<const char*(const char*)>& get);

  std::string Help() const;
};

}  // namespace drakkar::driver
