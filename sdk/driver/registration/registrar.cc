#include "sdk/driver/registration/registrar.h"

namespace drakkar::driver {

Result<rpc::PluginInfo> Registrar::GetInfo() {
  return rpc::PluginInfo{.type = rpc::kDraPluginType,
                         .name = options_.driver_name,
                         .endpoint = options_.endpoint,
                         .supported_versions = options_.services};
}

Result<void> Registrar::NotifyRegistrationStatus(const rpc::RegistrationStatus& status) {
  status_ = status;
  if (status.plugin_registered) {
    options_.on_registered();
  } else {
    options_.on_refused(FailedPrecondition("the node rejected the registration: " + status.error));
  }
  return Ok();
}

}  // namespace drakkar::driver
