#include "rpc/etcd/etcd_codec.h"

#include <rpc_proto/etcd.pb.h>

#include <utility>

#include "rpc/internal/codec.h"

namespace drakkar::rpc::etcd {
namespace {

namespace wire = etcd_wire;

// Write fills a message, Read takes one apart; values are moved out of it.

void Write(const Header& header, wire::ResponseHeader* out) {
  out->set_cluster_id(header.cluster_id);
  out->set_member_id(header.member_id);
  out->set_revision(header.revision);
  out->set_raft_term(header.raft_term);
}

Header Read(const wire::ResponseHeader& in) {
  return {in.cluster_id(), in.member_id(), in.revision(), in.raft_term()};
}

void Write(const KeyValue& kv, wire::KeyValue* out) {
  out->set_key(kv.key);
  out->set_value(kv.value);
  out->set_create_revision(kv.create_revision);
  out->set_mod_revision(kv.mod_revision);
  out->set_version(kv.version);
  out->set_lease(kv.lease);
}

KeyValue Read(wire::KeyValue& in) {
  KeyValue kv;
  kv.key = std::move(*in.mutable_key());
  kv.value = std::move(*in.mutable_value());
  kv.create_revision = in.create_revision();
  kv.mod_revision = in.mod_revision();
  kv.version = in.version();
  kv.lease = in.lease();
  return kv;
}

void Write(const RangeRequest& request, wire::RangeRequest* out) {
  out->set_key(request.key);
  out->set_range_end(request.range_end);
  out->set_limit(request.limit);
  out->set_revision(request.revision);
  out->set_serializable(request.serializable);
  out->set_keys_only(request.keys_only);
  out->set_count_only(request.count_only);
}

RangeRequest Read(const wire::RangeRequest& in) {
  return {.key = in.key(),
          .range_end = in.range_end(),
          .limit = in.limit(),
          .revision = in.revision(),
          .serializable = in.serializable(),
          .keys_only = in.keys_only(),
          .count_only = in.count_only()};
}

void Write(const RangeResponse& response, wire::RangeResponse* out) {
  Write(response.header, out->mutable_header());
  for (const KeyValue& kv : response.kvs) Write(kv, out->add_kvs());
  out->set_more(response.more);
  out->set_count(response.count);
}

RangeResponse Read(wire::RangeResponse& in) {
  RangeResponse response;
  response.header = Read(in.header());
  response.kvs.reserve(static_cast<std::size_t>(in.kvs_size()));
  for (wire::KeyValue& kv : *in.mutable_kvs()) response.kvs.push_back(Read(kv));
  response.more = in.more();
  response.count = in.count();
  return response;
}

void Write(const RequestOp& operation, wire::RequestOp* out) {
  if (const auto* range = std::get_if<RangeRequest>(&operation)) {
    Write(*range, out->mutable_request_range());
  } else if (const auto* put = std::get_if<PutRequest>(&operation)) {
    wire::PutRequest* message = out->mutable_request_put();
    message->set_key(put->key);
    message->set_value(put->value);
    message->set_lease(put->lease);
  } else {
    const auto& deletion = std::get<DeleteRequest>(operation);
    wire::DeleteRangeRequest* message = out->mutable_request_delete_range();
    message->set_key(deletion.key);
    message->set_range_end(deletion.range_end);
  }
}

Result<RequestOp> Read(wire::RequestOp& in) {
  switch (in.request_case()) {
    case wire::RequestOp::kRequestRange:
      return RequestOp(Read(in.request_range()));
    case wire::RequestOp::kRequestPut: {
      wire::PutRequest& put = *in.mutable_request_put();
      return RequestOp(
          PutRequest{std::move(*put.mutable_key()), std::move(*put.mutable_value()), put.lease()});
    }
    case wire::RequestOp::kRequestDeleteRange:
      return RequestOp(
          DeleteRequest{in.request_delete_range().key(), in.request_delete_range().range_end()});
    case wire::RequestOp::REQUEST_NOT_SET:
      break;
  }
  return InvalidArgument("unsupported operation in a transaction");
}

void Write(const ResponseOp& operation, wire::ResponseOp* out) {
  if (const auto* range = std::get_if<RangeResponse>(&operation)) {
    Write(*range, out->mutable_response_range());
  } else if (std::holds_alternative<PutResponse>(operation)) {
    out->mutable_response_put();
  } else {
    out->mutable_response_delete_range()->set_deleted(std::get<DeleteResponse>(operation).deleted);
  }
}

Result<ResponseOp> Read(wire::ResponseOp& in) {
  switch (in.response_case()) {
    case wire::ResponseOp::kResponseRange:
      return ResponseOp(Read(*in.mutable_response_range()));
    case wire::ResponseOp::kResponsePut:
      return ResponseOp(PutResponse{});
    case wire::ResponseOp::kResponseDeleteRange:
      return ResponseOp(DeleteResponse{in.response_delete_range().deleted()});
    case wire::ResponseOp::RESPONSE_NOT_SET:
      break;
  }
  return InvalidArgument("unsupported response in a transaction");
}

void Write(const Compare& compare, wire::Compare* out) {
  out->set_key(compare.key);
  out->set_result(wire::Compare::EQUAL);
  switch (compare.target) {
    case Compare::Target::kVersion:
      out->set_target(wire::Compare::VERSION);
      out->set_version(compare.number);
      break;
    case Compare::Target::kCreateRevision:
      out->set_target(wire::Compare::CREATE);
      out->set_create_revision(compare.number);
      break;
    case Compare::Target::kModRevision:
      out->set_target(wire::Compare::MOD);
      out->set_mod_revision(compare.number);
      break;
  }
}

Result<Compare> Read(const wire::Compare& in) {
  if (in.result() != wire::Compare::EQUAL) return InvalidArgument("unsupported comparison");
  switch (in.target()) {
    case wire::Compare::VERSION:
      return Compare{in.key(), Compare::Target::kVersion, in.version()};
    case wire::Compare::CREATE:
      return Compare{in.key(), Compare::Target::kCreateRevision, in.create_revision()};
    case wire::Compare::MOD:
      return Compare{in.key(), Compare::Target::kModRevision, in.mod_revision()};
    default:
      return InvalidArgument("unsupported comparison");
  }
}

}  // namespace

std::string PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (end.empty()) return std::string(1, '\0');
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

std::string Encode(const RangeRequest& request) {
  wire::RangeRequest message;
  Write(request, &message);
  return message.SerializeAsString();
}

Result<RangeRequest> DecodeRangeRequest(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::RangeRequest>(bytes, "RangeRequest"));
  return Read(message);
}

std::string Encode(const RangeResponse& response) {
  wire::RangeResponse message;
  Write(response, &message);
  return message.SerializeAsString();
}

Result<RangeResponse> DecodeRangeResponse(const std::string& bytes) {
  ASSIGN_OR_RETURN(auto message, internal::Parse<wire::RangeResponse>(bytes, "RangeResponse"));
  return Read(message);
}

std::string Encode(const TxnRequest& request) {
  wire::TxnRequest message;
  for (const Compare& compare : request.compare) Write(compare, message.add_compare());
  for (const RequestOp& operation : request.success) Write(operation, message.add_success());
  for (const RequestOp& operation : request.failure) Write(operation, message.add_failure());
  return message.SerializeAsString();
}

Result<TxnRequest> DecodeTxnRequest(const std::string& bytes) {
  ASSIGN_OR_RETURN(auto message, internal::Parse<wire::TxnRequest>(bytes, "TxnRequest"));
  TxnRequest request;
  for (const wire::Compare& each : message.compare()) {
    ASSIGN_OR_RETURN(Compare compare, Read(each));
    request.compare.push_back(std::move(compare));
  }
  for (wire::RequestOp& each : *message.mutable_success()) {
    ASSIGN_OR_RETURN(RequestOp operation, Read(each));
    request.success.push_back(std::move(operation));
  }
  for (wire::RequestOp& each : *message.mutable_failure()) {
    ASSIGN_OR_RETURN(RequestOp operation, Read(each));
    request.failure.push_back(std::move(operation));
  }
  return request;
}

std::string Encode(const TxnResponse& response) {
  wire::TxnResponse message;
  Write(response.header, message.mutable_header());
  message.set_succeeded(response.succeeded);
  for (const ResponseOp& operation : response.responses) Write(operation, message.add_responses());
  return message.SerializeAsString();
}

Result<TxnResponse> DecodeTxnResponse(const std::string& bytes) {
  ASSIGN_OR_RETURN(auto message, internal::Parse<wire::TxnResponse>(bytes, "TxnResponse"));
  TxnResponse response;
  response.header = Read(message.header());
  response.succeeded = message.succeeded();
  for (wire::ResponseOp& each : *message.mutable_responses()) {
    ASSIGN_OR_RETURN(ResponseOp operation, Read(each));
    response.responses.push_back(std::move(operation));
  }
  return response;
}

std::string Encode(const CompactRequest& request) {
  wire::CompactionRequest message;
  message.set_revision(request.revision);
  message.set_physical(request.physical);
  return message.SerializeAsString();
}

Result<CompactRequest> DecodeCompactRequest(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::CompactionRequest>(bytes, "CompactionRequest"));
  return CompactRequest{message.revision(), message.physical()};
}

std::string Encode(const WatchRequest& request) {
  wire::WatchRequest message;
  if (const auto* create = std::get_if<WatchCreate>(&request)) {
    wire::WatchCreateRequest* out = message.mutable_create_request();
    out->set_key(create->key);
    out->set_range_end(create->range_end);
    out->set_start_revision(create->start_revision);
    out->set_progress_notify(create->progress_notify);
    out->set_prev_kv(create->prev_kv);
    out->set_fragment(create->fragment);
  } else if (const auto* cancel = std::get_if<WatchCancel>(&request)) {
    message.mutable_cancel_request()->set_watch_id(cancel->watch_id);
  } else {
    message.mutable_progress_request();
  }
  return message.SerializeAsString();
}

Result<WatchRequest> DecodeWatchRequest(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message, internal::Parse<wire::WatchRequest>(bytes, "WatchRequest"));
  switch (message.request_union_case()) {
    case wire::WatchRequest::kCreateRequest: {
      const wire::WatchCreateRequest& in = message.create_request();
      return WatchRequest(WatchCreate{.key = in.key(),
                                      .range_end = in.range_end(),
                                      .start_revision = in.start_revision(),
                                      .progress_notify = in.progress_notify(),
                                      .prev_kv = in.prev_kv(),
                                      .fragment = in.fragment()});
    }
    case wire::WatchRequest::kCancelRequest:
      return WatchRequest(WatchCancel{message.cancel_request().watch_id()});
    case wire::WatchRequest::kProgressRequest:
      return WatchRequest(WatchProgress{});
    case wire::WatchRequest::REQUEST_UNION_NOT_SET:
      break;
  }
  return InvalidArgument("unsupported watch request");
}

std::string Encode(const WatchResponse& response) {
  wire::WatchResponse message;
  Write(response.header, message.mutable_header());
  message.set_watch_id(response.watch_id);
  message.set_created(response.created);
  message.set_canceled(response.canceled);
  message.set_compact_revision(response.compact_revision);
  message.set_cancel_reason(internal::ValidUtf8(response.cancel_reason));
  message.set_fragment(response.fragment);
  for (const Event& event : response.events) {
    wire::Event* out = message.add_events();
    out->set_type(event.is_delete ? wire::Event::DELETE : wire::Event::PUT);
    Write(event.kv, out->mutable_kv());
    if (event.prev_kv) Write(*event.prev_kv, out->mutable_prev_kv());
  }
  return message.SerializeAsString();
}

Result<WatchResponse> DecodeWatchResponse(const std::string& bytes) {
  ASSIGN_OR_RETURN(auto message, internal::Parse<wire::WatchResponse>(bytes, "WatchResponse"));
  WatchResponse response;
  response.header = Read(message.header());
  response.watch_id = message.watch_id();
  response.created = message.created();
  response.canceled = message.canceled();
  response.compact_revision = message.compact_revision();
  response.cancel_reason = message.cancel_reason();
  response.fragment = message.fragment();
  response.events.reserve(static_cast<std::size_t>(message.events_size()));
  for (wire::Event& in : *message.mutable_events()) {
    Event& event = response.events.emplace_back();
    event.is_delete = in.type() == wire::Event::DELETE;
    event.kv = Read(*in.mutable_kv());
    if (in.has_prev_kv()) event.prev_kv = Read(*in.mutable_prev_kv());
  }
  return response;
}

std::string Encode(const LeaseGrantRequest& request) {
  wire::LeaseGrantRequest message;
  message.set_ttl(request.ttl_seconds);
  message.set_id(request.id);
  return message.SerializeAsString();
}

Result<LeaseGrantRequest> DecodeLeaseGrantRequest(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::LeaseGrantRequest>(bytes, "LeaseGrantRequest"));
  return LeaseGrantRequest{message.ttl(), message.id()};
}

std::string Encode(const LeaseGrantResponse& response) {
  wire::LeaseGrantResponse message;
  Write(response.header, message.mutable_header());
  message.set_id(response.id);
  message.set_ttl(response.ttl_seconds);
  return message.SerializeAsString();
}

Result<LeaseGrantResponse> DecodeLeaseGrantResponse(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::LeaseGrantResponse>(bytes, "LeaseGrantResponse"));
  return LeaseGrantResponse{Read(message.header()), message.id(), message.ttl()};
}

std::string EncodeLeaseRevoke(std::int64_t lease) {
  wire::LeaseRevokeRequest message;
  message.set_id(lease);
  return message.SerializeAsString();
}

Result<std::int64_t> DecodeLeaseRevoke(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::LeaseRevokeRequest>(bytes, "LeaseRevokeRequest"));
  return message.id();
}

std::string Encode(const StatusResponse& response) {
  wire::StatusResponse message;
  Write(response.header, message.mutable_header());
  message.set_version(internal::ValidUtf8(response.version));
  message.set_dbsize(response.db_size_bytes);
  message.set_leader(response.leader);
  message.set_islearner(response.is_learner);
  return message.SerializeAsString();
}

Result<StatusResponse> DecodeStatusResponse(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::StatusResponse>(bytes, "StatusResponse"));
  return StatusResponse{.header = Read(message.header()),
                        .version = message.version(),
                        .db_size_bytes = message.dbsize(),
                        .leader = message.leader(),
                        .is_learner = message.islearner()};
}

std::string EncodeHeaderOnly(const Header& header) {
  wire::CompactionResponse message;
  Write(header, message.mutable_header());
  return message.SerializeAsString();
}

Result<Header> DecodeHeaderOnly(const std::string& bytes) {
  ASSIGN_OR_RETURN(const auto message,
                   internal::Parse<wire::CompactionResponse>(bytes, "CompactionResponse"));
  return Read(message.header());
}

}  // namespace drakkar::rpc::etcd
