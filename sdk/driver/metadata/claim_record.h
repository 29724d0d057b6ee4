#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"

namespace drakkar::driver {

// What the driver remembers about a claim that it wrote metadata for: which devices of which
// request belong to it. Updates are checked against it, including after a restart.
struct ClaimRecord {
  struct Device {
    std::string pool_name;
    std::string device_name;
    std::optional<std::string> share_id;
    bool operator==(const Device&) const = default;
  };
  struct Request {
    std::string reference;  // "request" or "request/subrequest", as in the allocation
    // Digest of the metadata that prepare last returned; empty if there was none or it is not
    // written yet.
    std::string prepared;
    std::vector<Device> devices;
    bool operator==(const Request&) const = default;
  };

  std::string namespace_name;
  std::string name;
  std::string uid;
  std::optional<std::string> pod_claim_name;
  std::vector<std::string> pods;  // UIDs of the pods it is reserved for; absent in older records
  std::map<std::string, Request> requests;  // by base name

  bool operator==(const ClaimRecord&) const = default;
};

std::string WriteClaimRecord(const ClaimRecord& record);
// Fails for anything that WriteClaimRecord would not have written.
Result<ClaimRecord> ReadClaimRecord(std::string_view text);

}  // namespace drakkar::driver
