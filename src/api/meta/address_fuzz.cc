// Addresses and networks as clients write them. What is valid means the same to every program.
#include <arpa/inet.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "api/meta/interface_address.h"
#include "base/result/check.h"

namespace {

bool SystemReads(const std::string& address) {
  unsigned char bytes[16];
  return address.find('\0') == std::string::npos &&
         (::inet_pton(AF_INET, address.c_str(), bytes) == 1 ||
          ::inet_pton(AF_INET6, address.c_str(), bytes) == 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::api;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = text.find('\n');
  const std::string first = text.substr(0, line);
  const std::string second = line == std::string::npos ? std::string() : text.substr(line + 1);
  if (CheckIpAddress(first).empty()) {
    CHECK(SystemReads(first));
    CHECK(CheckNetwork(first + (first.find(':') == std::string::npos ? "/32" : "/128")).empty());
  }
  if (CheckNetwork(first).empty()) {
    CHECK(SystemReads(first.substr(0, first.find('/'))));
    CHECK(IsStrictSubnet(first, first) == false);
  }
  if (CheckInterfaceAddress(first).ok()) CHECK(SystemReads(first.substr(0, first.find('/'))));
  // If one is inside the other, the other is not inside the first.
  if (IsStrictSubnet(first, second) == true) CHECK(IsStrictSubnet(second, first) == false);
  return 0;
}
