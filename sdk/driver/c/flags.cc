// The standard flags of a driver, for C.
#include <cstdlib>
#include <cstring>

#include "base/text/text.h"
#include "sdk/driver/c/handles.h"
#include "sdk/driver/host/driver_flags.h"

using namespace drakkar;
using namespace drakkar::driver::c;

namespace {

using Options = drakkar_driver_options;

struct Field {
  std::string_view name;
  const char* Options::*field;
};
constexpr Field kFields[] = {
    {"driver-name", &Options::driver_name},
    {"kubeconfig", &Options::kubeconfig},
    {"node-name", &Options::node_name},
    {"registry-dir", &Options::registry_dir},
    {"plugin-dir", &Options::plugin_dir},
    {"cdi-dir", &Options::cdi_dir},
    {"pod-uid", &Options::pod_uid},
    {"nri-socket", &Options::nri_socket},
    {"http-endpoint", &Options::http_endpoint},
    {"logging-format", &Options::logging_format},
    {"log-level", &Options::log_level},
};
constexpr std::string_view kMetadataFlag = "enable-device-metadata";
constexpr std::string_view kTaintFlag = "unhealthy-taint";

const Field* Find(std::string_view name) {
  for (const Field& field : kFields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

// `value` must outlive the use of the options.
Result<void> Set(Options& options, std::string_view name, const char* value) {
  driver::DriverFlags checked;
  RETURN_IF_ERROR(checked.Set(name, value));
  if (name == kMetadataFlag) {
    options.enable_device_metadata = checked.enable_device_metadata ? 1 : 0;
  } else if (name == kTaintFlag) {
    options.taint_unhealthy = *value != 0 ? 1 : 0;
    options.taint_effect = value;
  } else {
    options.*(Find(name)->field) = value;
  }
  return Ok();
}

Result<void> Parse(Options& options, int& argc, char** argv) {
  int kept = argc > 0 ? 1 : 0;  // the program's name stays
  for (int i = 1; i < argc; ++i) {
    const char* word = argv[i];
    if (std::strcmp(word, "--") == 0) {
      while (i < argc) argv[kept++] = argv[i++];
      break;
    }
    const char* equals = std::strchr(word, '=');
    const std::string_view whole(word);
    const std::string_view name =
        whole.starts_with("--")
            ? whole.substr(2, equals == nullptr ? std::string_view::npos
                                                : static_cast<std::size_t>(equals - word) - 2)
            : std::string_view();
    if (name != kMetadataFlag && name != kTaintFlag && Find(name) == nullptr) {
      argv[kept++] = argv[i];
    } else if (equals != nullptr) {
      RETURN_IF_ERROR(Set(options, name, equals + 1));
    } else if (name == kMetadataFlag) {
      options.enable_device_metadata = 1;
    } else if (i + 1 < argc) {
      RETURN_IF_ERROR(Set(options, name, argv[++i]));
    } else {
      return InvalidArgument(StrCat("--", name, " needs a value"));
    }
  }
  argc = kept;
  argv[argc] = nullptr;
  const auto fill = [](const char*& field, const char* variable) {
    const char* value = field == nullptr ? std::getenv(variable) : nullptr;
    if (value != nullptr && *value != 0) field = value;
  };
  fill(options.node_name, "NODE_NAME");
  fill(options.pod_uid, "POD_UID");
  fill(options.kubeconfig, "KUBECONFIG");
  return Ok();
}

}  // namespace

extern "C" {

int drakkar_driver_parse_flags(drakkar_driver_options* options, int* argc, char** argv,
                               drakkar_error* error) {
  return Guarded(error, [&] {
    if (options == nullptr || argc == nullptr || argv == nullptr) {
      return Fail(error, "options, argc and argv must not be null");
    }
    return Answer(Parse(*options, *argc, argv), error);
  });
}

const char* drakkar_driver_flags_help(void) {
  static const std::string help = driver::DriverFlags{}.Help();
  return help.c_str();
}

}  // extern "C"
