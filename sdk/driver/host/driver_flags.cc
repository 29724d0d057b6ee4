#include "sdk/driver/host/driver_flags.h"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/text/text.h"

namespace drakkar::driver {
namespace {

struct TextFlag {
  std::string_view name;
  std::string DriverFlags::*field;
  std::string_view placeholder;
  std::string_view help;
};

constexpr std::array<TextFlag, 12> kTextFlags = {{
    {"driver-name", &DriverFlags::driver_name, "NAME", "Name of the driver."},
    {"kubeconfig", &DriverFlags::kubeconfig, "FILE",
     "Address of the API server and credentials. Defaults to the pod's service account."},
    {"node-name", &DriverFlags::node_name, "NAME", "Name of the node this driver runs on."},
    {"registry-dir", &DriverFlags::registry_directory, "DIR",
     "Directory in which the node agent looks for registration sockets."},
    {"plugin-dir", &DriverFlags::plugin_directory, "DIR",
     "The driver's own directory. Defaults to plugins/<driver> next to the registry."},
    {"cdi-dir", &DriverFlags::cdi_directory, "DIR", "Directory for CDI specs."},
    {"pod-uid", &DriverFlags::pod_uid, "UID", "UID of the driver's pod; enables rolling updates."},
    {"nri-socket", &DriverFlags::nri_socket, "FILE",
     "NRI socket of the container runtime, for drivers with an NRI hook."},
    {"unhealthy-taint", &DriverFlags::unhealthy_taint, "EFFECT",
     "Taint effect for unhealthy devices: NoSchedule, NoExecute or None. If empty, they are not "
     "tainted."},
    {"http-endpoint", &DriverFlags::http_endpoint, "ADDRESS",
     "Address for /healthz, /readyz and /metrics, for example 127.0.0.1:8080. If empty, they are "
     "not served."},
    {"logging-format", &DriverFlags::logging_format, "FORMAT", "Log format: text or json."},
    {"log-level", &DriverFlags::log_level, "LEVEL",
     "Minimum log level: debug, info, warning or error."},
}};

constexpr std::string_view kMetadataFlag = "enable-device-metadata";

const TextFlag* FindTextFlag(std::string_view name) {
  for (const TextFlag& flag : kTextFlags) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
}

}  // namespace

std::vector<DriverFlagInfo> DriverFlags::Describe() const {
  std::vector<DriverFlagInfo> flags;
  for (const TextFlag& flag : kTextFlags) {
    flags.push_back({std::string(flag.name), std::string(flag.help), this->*flag.field,
                     std::string(flag.placeholder)});
  }
  flags.push_back({std::string(kMetadataFlag),
                   "Write device metadata to files that containers can read (KEP-5304).",
                   enable_device_metadata ? "true" : "false", ""});
  return flags;
}

Result<void> DriverFlags::Set(std::string_view name, std::string_view value) {
  if (name == kMetadataFlag) {
    if (value != "true" && value != "false") {
      return InvalidArgument(StrCat("--", name, " must be true or false, not ", Quote(value)));
    }
    enable_device_metadata = value == "true";
    return Ok();
  }
  const TextFlag* flag = FindTextFlag(name);
  if (flag == nullptr) return InvalidArgument(StrCat("unknown flag --", name));
  if (name == "logging-format" && value != "text" && value != "json") {
    return InvalidArgument(StrCat("--logging-format must be text or json, not ", Quote(value)));
  }
  if (name == "log-level" && value != "debug" && value != "info" && value != "warning" &&
      value != "error") {
    return InvalidArgument(
        StrCat("--log-level must be debug, info, warning or error, not ", Quote(value)));
  }
  if (name == "unhealthy-taint" && !value.empty() && value != "NoSchedule" &&
      value != "NoExecute" && value != "None") {
    return InvalidArgument(
        StrCat("--unhealthy-taint must be NoSchedule, NoExecute or None, not ", Quote(value)));
  }
  this->*flag->field = std::string(value);
  return Ok();
}

Result<std::vector<std::string>> DriverFlags::Parse(const std::vector<std::string>& words) {
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      rest.insert(rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    if (!word.starts_with("--")) {
      rest.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const bool is_switch = name == kMetadataFlag;
    if (!is_switch && FindTextFlag(name) == nullptr) {
      rest.push_back(word);
      continue;
    }
    if (equals != std::string::npos) {
      RETURN_IF_ERROR(Set(name, std::string_view(word).substr(equals + 1)));
    } else if (is_switch) {
      enable_device_metadata = true;
    } else if (i + 1 < words.size()) {
      RETURN_IF_ERROR(Set(name, words[++i]));
    } else {
      return InvalidArgument(StrCat("--", name, " needs a value"));
    }
  }
  return rest;
}

bool DriverFlags::ParseCommandLine(int argc, char** argv) {
  const auto rest = Parse({argv + 1, argv + argc});
  if (rest.ok() && rest->empty()) {
    ReadEnvironment([](const char* name) -> const char* { return std::getenv(name); });
    return true;
  }
  const std::string why = rest.ok() ? "unknown argument " + rest->front() : rest.error().message;
  std::fprintf(stderr, "%s\n%s", why.c_str(), Help().c_str());
  return false;
}

void DriverFlags::ReadEnvironment(const std::function<const char*(const char*)>& get) {
  const auto fill = [&](std::string& field, const char* variable) {
    if (!field.empty()) return;
    if (const char* value = get(variable); value != nullptr) field = value;
  };
  fill(node_name, "NODE_NAME");
  fill(pod_uid, "POD_UID");
  fill(kubeconfig, "KUBECONFIG");
}

std::string DriverFlags::Help() const {
  std::string text;
  for (const DriverFlagInfo& flag : Describe()) {
    std::string left = "  --" + flag.name;
    if (!flag.placeholder.empty()) left += " " + flag.placeholder;
    if (left.size() < 32) left.resize(32, ' ');
    text += StrCat(left, " ", flag.help);
    if (!flag.default_value.empty() && flag.default_value != "false") {
      text += StrCat(" Default: ", flag.default_value, ".");
    }
    text += "\n";
  }
  return text;
}

}  // namespace drakkar::driver
