#include "api/meta/names.h"
#include "base/text/text.h"
#include "sanity/driver_under_test.h"

namespace drakkar::sanity {
namespace {

constexpr std::size_t kMaxDriverNameBytes = 63;

Result<void> CheckInfo(const rpc::PluginInfo& info) {
  if (info.type != rpc::kDraPluginType)
    return FailedPrecondition(StrCat("the type is ", Quote(info.type), ", not \"DRAPlugin\""));
  if (info.name.empty() || info.name.size() > kMaxDriverNameBytes) {
    return FailedPrecondition(StrCat("the name ", Quote(info.name), " must have 1 to 63 bytes"));
  }
  if (const auto problems = api::CheckDnsSubdomain(ToLower(info.name)); !problems.empty()) {
    return FailedPrecondition(StrCat("the name ", Quote(info.name), ": ", problems.front()));
  }
  if (!info.endpoint.empty() && !info.endpoint.starts_with('/')) {
    return FailedPrecondition(
        StrCat("the endpoint ", Quote(info.endpoint), " is not an absolute path"));
  }
  return Ok();
}

Result<void> CheckVersions(const rpc::PluginInfo& info) {
  bool dra = false;
  for (const std::string& service : info.supported_versions) {
    dra = dra || rpc::FindDraVersion(service).has_value();
    if (service.find('.') == std::string::npos) {
      return FailedPrecondition(
          StrCat(Quote(service), " is not a service; entries look like \"v1.DRAPlugin\""));
    }
  }
  if (dra) return Ok();
  return FailedPrecondition(StrCat("neither v1.DRAPlugin nor v1beta1.DRAPlugin is in ",
                                   Join(info.supported_versions, ", ")));
}

}  // namespace

void CheckRegistration(DriverUnderTest& driver) {
  auto info = driver.AwaitInfo();
  if (!info.ok() && info.error().code == ErrorCode::kUnimplemented) {
    driver.Skip("registration.info", "the driver identifies itself",
                "the socket does not serve registration; assuming it is the DRA service");
    driver.report().driver = driver.driver_name;
    return;
  }
  driver.Check("registration.info", "the driver identifies itself", [&]() -> Result<void> {
    if (!info.ok()) return info.error();
    driver.info = *info;
    driver.driver_name = info->name;
    driver.report().driver = info->name;
    if (const std::string& expected = driver.options().driver_name;
        !expected.empty() && expected != info->name) {
      return FailedPrecondition(
          StrCat("its name is ", Quote(info->name), ", but must be ", Quote(expected)));
    }
    return CheckInfo(*info);
  });
  if (!info.ok()) return;
  driver.Check("registration.versions", "it advertises services that a node can use",
               [&] { return CheckVersions(*info); });
  driver.Check("registration.repeat", "asked again, it gives the same response",
               [&]() -> Result<void> {
                 const auto again = driver.GetInfo();
                 if (!again.ok()) return again.error();
                 if (!(*again == *info))
                   return FailedPrecondition("the second response differs from the first");
                 return Ok();
               });
  driver.Check(
      "registration.refused", "it survives a rejected registration", [&]() -> Result<void> {
        // The driver may respond to the notification with an error.
        static_cast<void>(
            driver.Notify({.plugin_registered = false, .error = "drakkar sanity: only a test"}));
        const auto again = driver.GetInfo();
        if (!again.ok()) return again.error().Prefixed("afterwards");
        return Ok();
      });
  driver.Check("registration.status", "it accepts the notification that it is registered",
               [&]() -> Result<void> {
                 const auto told = driver.Notify({.plugin_registered = true});
                 if (!told.ok()) return told.error();
                 return Ok();
               });
}

}  // namespace drakkar::sanity
