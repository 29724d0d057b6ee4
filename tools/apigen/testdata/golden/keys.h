// Made by tools/apigen from schema/.
#pragma once

#include "api/tree/value.h"

namespace drakkar::api {
namespace generated {
// Entry 0 is no name.
extern const Key kKeys[28];
}  // namespace generated

namespace key {
inline constexpr const Key& kCapitalPort = generated::kKeys[1];
inline constexpr const Key& kApiVersion = generated::kKeys[2];
inline constexpr const Key& kArrivals = generated::kKeys[3];
inline constexpr const Key& kAt = generated::kKeys[4];
inline constexpr const Key& kBerth = generated::kKeys[5];
inline constexpr const Key& kCounts = generated::kKeys[6];
inline constexpr const Key& kCrew = generated::kKeys[7];
inline constexpr const Key& kHome = generated::kKeys[8];
inline constexpr const Key& kItems = generated::kKeys[9];
inline constexpr const Key& kKind = generated::kKeys[10];
inline constexpr const Key& kLabels = generated::kKeys[11];
inline constexpr const Key& kMastCount = generated::kKeys[12];
inline constexpr const Key& kMetadata = generated::kKeys[13];
inline constexpr const Key& kName = generated::kKeys[14];
inline constexpr const Key& kNamespace = generated::kKeys[15];
inline constexpr const Key& kOars = generated::kKeys[16];
inline constexpr const Key& kOptions = generated::kKeys[17];
inline constexpr const Key& kPodIPs = generated::kKeys[18];
inline constexpr const Key& kPort = generated::kKeys[19];
inline constexpr const Key& kPorts = generated::kKeys[20];
inline constexpr const Key& kRank = generated::kKeys[21];
inline constexpr const Key& kSail = generated::kKeys[22];
inline constexpr const Key& kSelector = generated::kKeys[23];
inline constexpr const Key& kSpec = generated::kKeys[24];
inline constexpr const Key& kStatus = generated::kKeys[25];
inline constexpr const Key& kStores = generated::kKeys[26];
inline constexpr const Key& kValue = generated::kKeys[27];
}  // namespace key
}  // namespace drakkar::api
