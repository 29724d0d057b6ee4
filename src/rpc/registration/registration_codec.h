#pragma once

#include <string>

#include "rpc/registration/registration.h"

namespace drakkar::rpc::registration {

inline constexpr char kGetInfoMethod[] = "/pluginregistration.Registration/GetInfo";
inline constexpr char kNotifyMethod[] = "/pluginregistration.Registration/NotifyRegistrationStatus";

std::string EncodePluginInfo(const PluginInfo& info);
Result<PluginInfo> DecodePluginInfo(const std::string& bytes);
std::string EncodeStatus(const RegistrationStatus& status);
Result<RegistrationStatus> DecodeStatus(const std::string& bytes);

}  // namespace drakkar::rpc::registration
