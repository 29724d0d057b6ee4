#include "rpc/registration/registration_codec.h"

#include <rpc_proto/registration.pb.h>

#include "rpc/internal/codec.h"

namespace drakkar::rpc::registration {

namespace wire = registration_wire;

std::string EncodePluginInfo(const PluginInfo& info) {
  wire::PluginInfo message;
  message.set_type(info.type);
  message.set_name(info.name);
  message.set_endpoint(info.endpoint);
  internal::AddStrings(info.supported_versions, message.mutable_supported_versions());
  return message.SerializeAsString();
}

Result<PluginInfo> DecodePluginInfo(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::PluginInfo>(bytes, "PluginInfo"));
  return PluginInfo{.type = message.type(),
                    .name = message.name(),
                    .endpoint = message.endpoint(),
                    .supported_versions = internal::Strings(message.supported_versions())};
}

std::string EncodeStatus(const RegistrationStatus& status) {
  wire::RegistrationStatus message;
  message.set_plugin_registered(status.plugin_registered);
  message.set_error(internal::ValidUtf8(status.error));
  return message.SerializeAsString();
}

Result<RegistrationStatus> DecodeStatus(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::RegistrationStatus>(bytes, "RegistrationStatus"));
  return RegistrationStatus{.plugin_registered = message.plugin_registered(),
                            .error = message.error()};
}

}  // namespace drakkar::rpc::registration
