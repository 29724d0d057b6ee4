#include "sdk/driver/registration/socket_names.h"

#include "base/env/file_system.h"
#include "base/hash/base64.h"
#include "base/hash/sha256.h"
#include "base/text/text.h"

namespace drakkar::driver {
namespace {

std::string ShortHash(std::string_view text, std::size_t bytes) {
  Sha256 hash;
  hash.Update(text);
  const Sha256::Digest digest = hash.Finish();
  return Base64UrlEncode(std::string_view(reinterpret_cast<const char*>(digest.data()), bytes));
}

}  // namespace

std::string RegistrarSocketName(std::string_view driver) {
  return StrCat(driver, "-reg.sock");
}

std::string RollingUpdateRegistrarSocketName(std::string_view directory, std::string_view driver,
                                             std::string_view pod_uid) {
  const auto fits = [&](const std::string& name) {
    return JoinPath(directory, name).size() <= kMaxSocketPathBytes;
  };
  std::string name = StrCat(driver, "-", pod_uid, "-reg.sock");
  if (fits(name)) return name;
  name = StrCat(driver, "-", ShortHash(pod_uid, 8), "-reg.sock");
  if (fits(name)) return name;
  std::string both(driver);
  both += '\0';
  both += pod_uid;
  return StrCat("dra-", ShortHash(both, 16), "-reg.sock");
}

std::string PluginSocketName(std::string_view pod_uid) {
  return pod_uid.empty() ? "dra.sock" : StrCat("dra-", pod_uid, ".sock");
}

}  // namespace drakkar::driver
