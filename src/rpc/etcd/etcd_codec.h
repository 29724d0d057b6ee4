#pragma once

#include <string>

#include "base/result/result.h"
#include "rpc/etcd/etcd.h"

namespace drakkar::rpc::etcd {

// Encodes and decodes in both directions, because tests have their own server. Decoding bytes that
// are not such a message returns kInvalidArgument. Unknown fields are skipped; a comparison or
// operation of another kind than those in etcd.h is an error.

std::string Encode(const RangeRequest& request);
std::string Encode(const RangeResponse& response);
std::string Encode(const TxnRequest& request);
std::string Encode(const TxnResponse& response);
std::string Encode(const CompactRequest& request);
std::string Encode(const WatchRequest& request);
std::string Encode(const WatchResponse& response);
std::string Encode(const LeaseGrantRequest& request);
std::string Encode(const LeaseGrantResponse& response);
std::string Encode(const StatusResponse& response);
std::string EncodeLeaseRevoke(std::int64_t lease);
// The response of Compact and LeaseRevoke, which consists of a header only.
std::string EncodeHeaderOnly(const Header& header);

Result<RangeRequest> DecodeRangeRequest(const std::string& bytes);
Result<RangeResponse> DecodeRangeResponse(const std::string& bytes);
Result<TxnRequest> DecodeTxnRequest(const std::string& bytes);
Result<TxnResponse> DecodeTxnResponse(const std::string& bytes);
Result<CompactRequest> DecodeCompactRequest(const std::string& bytes);
Result<WatchRequest> DecodeWatchRequest(const std::string& bytes);
Result<WatchResponse> DecodeWatchResponse(const std::string& bytes);
Result<LeaseGrantRequest> DecodeLeaseGrantRequest(const std::string& bytes);
Result<LeaseGrantResponse> DecodeLeaseGrantResponse(const std::string& bytes);
Result<StatusResponse> DecodeStatusResponse(const std::string& bytes);
Result<std::int64_t> DecodeLeaseRevoke(const std::string& bytes);
Result<Header> DecodeHeaderOnly(const std::string& bytes);

}  // namespace drakkar::rpc::etcd
