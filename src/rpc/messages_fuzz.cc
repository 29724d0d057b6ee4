#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result/check.h"
#include "rpc/dra/dra_codec.h"
#include "rpc/etcd/etcd_codec.h"
#include "rpc/health/health_codec.h"
#include "rpc/nri/nri_codec.h"
#include "rpc/podresources/podresources_codec.h"
#include "rpc/registration/registration_codec.h"

namespace {

// A message that can be decoded survives a round trip.
template <typename Decode, typename Encode>
void RoundTrip(const std::string& bytes, Decode decode, Encode encode) {
  const auto first = decode(bytes);
  if (!first.ok()) return;
  const auto again = decode(encode(*first));
  CHECK(again.ok() && *again == *first);
}

// For messages whose strings are sanitized on encoding: checks only that the result can be decoded.
template <typename Decode, typename Encode>
void ThereAndBack(const std::string& bytes, Decode decode, Encode encode) {
  const auto first = decode(bytes);
  if (first.ok()) CHECK(decode(encode(*first)).ok());
}

template <typename Decode>
void EtcdRoundTrip(const std::string& bytes, Decode decode) {
  RoundTrip(bytes, decode, [](const auto& message) { return drakkar::rpc::etcd::Encode(message); });
}

}  // namespace

// Every message type that peers send us, chosen by the first byte.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drakkar::rpc;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 14) {
    case 0:
      RoundTrip(bytes, dra::DecodeClaims, dra::EncodeClaims);
      RoundTrip(bytes, dra::DecodeAnnouncement, dra::EncodeAnnouncement);
      break;
    case 1:
    case 2: {
      const DraVersion version = data[0] % 14 == 1 ? DraVersion::kV1 : DraVersion::kV1beta1;
      ThereAndBack(
          bytes, [&](const std::string& text) { return dra::DecodePrepareResults(text, version); },
          [&](const PrepareResults& results) {
            return dra::EncodePrepareResults(results, version);
          });
      break;
    }
    case 3:
      ThereAndBack(bytes, dra::DecodeUnprepareResults, dra::EncodeUnprepareResults);
      break;
    case 4:
    case 5:
    case 6: {
      const auto service = static_cast<HealthService>(data[0] % 14 - 4);
      ThereAndBack(
          bytes, [&](const std::string& text) { return health::DecodeReport(text, service); },
          [&](const HealthReport& report) { return health::EncodeReport(report, service); });
      break;
    }
    case 7:
      RoundTrip(bytes, registration::DecodePluginInfo, registration::EncodePluginInfo);
      ThereAndBack(bytes, registration::DecodeStatus, registration::EncodeStatus);
      break;
    case 8:
      ThereAndBack(bytes, podresources::DecodeList, podresources::EncodeList);
      ThereAndBack(bytes, podresources::DecodeGetRequest, podresources::EncodeGetRequest);
      break;
    case 9:
      ThereAndBack(bytes, podresources::DecodeAllocatable, podresources::EncodeAllocatable);
      break;
    case 10:
      ThereAndBack(bytes, nri::DecodeStateChange, nri::EncodeStateChange);
      ThereAndBack(bytes, nri::DecodeContainerEvent, nri::EncodeContainerEvent);
      break;
    case 11:
      ThereAndBack(
          bytes,
          [](const std::string& text) {
            return nri::DecodeAnswer(NriEvent::kCreateContainer, text);
          },
          [](const NriAnswer& answer) {
            return nri::EncodeAnswer(NriEvent::kCreateContainer, answer);
          });
      ThereAndBack(bytes, nri::DecodeValidation, nri::EncodeValidation);
      ThereAndBack(bytes, nri::DecodeSynchronization, nri::EncodeSynchronization);
      break;
    case 12:
      EtcdRoundTrip(bytes, etcd::DecodeRangeRequest);
      EtcdRoundTrip(bytes, etcd::DecodeTxnRequest);
      EtcdRoundTrip(bytes, etcd::DecodeCompactRequest);
      EtcdRoundTrip(bytes, etcd::DecodeWatchRequest);
      EtcdRoundTrip(bytes, etcd::DecodeLeaseGrantRequest);
      RoundTrip(bytes, etcd::DecodeLeaseRevoke, etcd::EncodeLeaseRevoke);
      break;
    case 13:
      EtcdRoundTrip(bytes, etcd::DecodeRangeResponse);
      EtcdRoundTrip(bytes, etcd::DecodeTxnResponse);
      EtcdRoundTrip(bytes, etcd::DecodeWatchResponse);
      EtcdRoundTrip(bytes, etcd::DecodeLeaseGrantResponse);
      EtcdRoundTrip(bytes, etcd::DecodeStatusResponse);
      RoundTrip(bytes, etcd::DecodeHeaderOnly, etcd::EncodeHeaderOnly);
      break;
  }
  return 0;
}
