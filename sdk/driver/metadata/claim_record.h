#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::driver {

// What the driver remembers of a claim it wrote metadata for: which devices of which request are
// its own. It is what updates are checked against, also after a restart.
struct ClaimRecord {
  struct Device {
    std::string pool_name;
    std::string device_name;
    std::optional<std::string> share_id;
    bool operator==(const Device&) const = default;
  };
  struct Request {
    std::string reference;  // "request" or "request/subrequest", as in the allocation
    // Digest of the metadata that prepare gave last; empty: none, or not written yet.
    std::string prepared;
    std::vector<Device> devices;
    bool operator==(const Request&) const = default;
  };

  std::string namespace_name;
  std::string name;
  std::string uid;
  std::optional<std::string> pod_claim_name;
  std::vector<std::string> pods;  // UIDs of those it is reserved for; older records have none
  std::map<std::string, Request> requests;  // by base name

  bool operator==(const ClaimRecord&) const = default;
};

std::string WriteClaimRecord(const ClaimRecord& record);
// An error for anything that WriteClaimRecord would not have written.
Result<ClaimRecord> ReadClaimRecord(std::string_view text);

}  // namespace drakkar::driver
