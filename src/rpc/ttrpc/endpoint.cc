#include "rpc/ttrpc/endpoint.h"

#include <rpc_proto/nri.pb.h>

#include <utility>

#include "base/text/text.h"
#include "rpc/internal/codec.h"
#include "rpc/transport/status.h"

namespace drakkar::rpc {
namespace {

namespace wire = nri_wire;

constexpr std::uint8_t kRemoteOpen = 2;

// The parts of "/package.Service/Method".
std::pair<std::string, std::string> SplitMethod(const std::string& method) {
  const std::size_t slash = method.rfind('/');
  if (slash == std::string::npos || slash == 0) return {method, ""};
  return {method.substr(1, slash - 1), method.substr(slash + 1)};
}

}  // namespace

// A call of the peer that is being served. Answers once, with an error if it is dropped; not at
// all if the endpoint is destroyed first.
class TtrpcEndpoint::ServedCall {
 public:
  ServedCall(TtrpcEndpoint& endpoint, std::uint32_t stream)
      : endpoint_(endpoint), endpoint_lifetime_(endpoint.lifetime_.Observe()), stream_(stream) {
    ++endpoint_.serving_;
  }
  ~ServedCall() {
    if (!endpoint_lifetime_.alive()) return;
    --endpoint_.serving_;
    if (!answered_) endpoint_.Answer(stream_, Internal("the call was dropped"));
  }
  ServedCall(const ServedCall&) = delete;
  ServedCall& operator=(const ServedCall&) = delete;

  void Answer(Result<std::string> result) {
    if (!endpoint_lifetime_.alive() || std::exchange(answered_, true)) return;
    endpoint_.Answer(stream_, std::move(result));
  }

 private:
  TtrpcEndpoint& endpoint_;
  const Lifetime::Observer endpoint_lifetime_;
  const std::uint32_t stream_;
  bool answered_ = false;
};

void TtrpcEndpoint::Call(const std::string& method, const std::string& payload, Duration timeout,
                         TtrpcDone done) {
  options_.loop.AssertInLoop();
  const std::uint32_t stream = next_stream_;
  next_stream_ += 2;
  const auto fail = [&](Error error) {
    options_.loop.Post(lifetime_.Guard(
        [error = std::move(error), done = std::move(done)]() mutable { done(std::move(error)); }));
  };
  if (closed_) return fail(*closed_);
  if (pending_.size() >= kMaxCalls) {
    return fail(
        {ErrorCode::kResourceExhausted, StrCat("more than ", kMaxCalls, " calls are in flight")});
  }
  wire::Request request;
  const auto [service, name] = SplitMethod(method);
  request.set_service(service);
  request.set_method(name);
  request.set_payload(payload);
  request.set_timeout_nano(timeout.count());
  TtrpcMessage message{
      .stream = stream, .type = TtrpcType::kRequest, .data = request.SerializeAsString()};
  if (message.data.size() > kMaxTtrpcData) {
    return fail({ErrorCode::kResourceExhausted, StrCat("a message of ", message.data.size(),
                                                       " bytes, the limit is ", kMaxTtrpcData)});
  }
  Pending& pending = pending_[stream];
  pending.done = std::move(done);
  pending.timer = options_.loop.RunAfter(timeout, [this, stream, method] {
    Finish(stream, Error{ErrorCode::kDeadlineExceeded, "no answer to " + method + " in time"});
  });
  options_.send(EncodeMux(options_.calling_connection, EncodeTtrpc(message)));
}

Result<void> TtrpcEndpoint::Receive(std::string_view bytes) {
  options_.loop.AssertInLoop();
  if (closed_) return *closed_;
  ASSIGN_OR_RETURN(const std::vector<MuxFrame> frames, pieces_.Feed(bytes));
  // Handling a message may destroy this object.
  const Lifetime::Observer self = lifetime_.Observe();
  for (const MuxFrame& frame : frames) {
    const bool serving = frame.connection == options_.serving_connection;
    // Data for unknown logical connections is dropped, as other implementations do.
    if (!serving && frame.connection != options_.calling_connection) continue;
    ASSIGN_OR_RETURN(const std::vector<TtrpcMessage> messages,
                     (serving ? requests_ : responses_).Feed(frame.bytes));
    for (const TtrpcMessage& message : messages) {
      RETURN_IF_ERROR(serving ? OnRequest(message) : OnResponse(message));
      if (!self.alive()) return Ok();
      if (closed_) return Ok();
    }
  }
  return Ok();
}

Result<void> TtrpcEndpoint::OnRequest(const TtrpcMessage& message) {
  if (message.type != TtrpcType::kRequest || message.stream % 2 == 0) {
    return InvalidArgument("a ttRPC client sent a message that is not a request");
  }
  if ((message.flags & kRemoteOpen) != 0) {
    Answer(message.stream, Error{ErrorCode::kUnimplemented, "streams are not supported"});
    return Ok();
  }
  auto request = internal::Parse<wire::Request>(message.data, "ttrpc.Request");
  if (!request.ok()) {
    Answer(message.stream, std::move(request).error());
    return Ok();
  }
  if (serving_ >= kMaxCalls) {
    Answer(message.stream, Error{ErrorCode::kResourceExhausted,
                                 StrCat("more than ", kMaxCalls, " calls are in flight")});
    return Ok();
  }
  auto call = std::make_shared<ServedCall>(*this, message.stream);
  options_.serve(
      StrCat("/", request->service(), "/", request->method()), request->payload(),
      [call = std::move(call)](Result<std::string> result) { call->Answer(std::move(result)); });
  return Ok();
}

void TtrpcEndpoint::Answer(std::uint32_t stream, Result<std::string> result) {
  if (closed_) return;
  wire::Response response;
  if (result.ok()) {
    response.set_payload(*std::move(result));
  } else {
    response.mutable_status()->set_code(GrpcCodeFromError(result.error().code));
    response.mutable_status()->set_message(internal::ValidUtf8(result.error().message));
  }
  TtrpcMessage message{
      .stream = stream, .type = TtrpcType::kResponse, .data = response.SerializeAsString()};
  options_.send(EncodeMux(options_.serving_connection, EncodeTtrpc(message)));
}

Result<void> TtrpcEndpoint::OnResponse(const TtrpcMessage& message) {
  if (message.type != TtrpcType::kResponse) {
    return InvalidArgument("a ttRPC server sent a message that is not a response");
  }
  auto response = internal::Parse<wire::Response>(message.data, "ttrpc.Response");
  if (!response.ok()) {
    Finish(message.stream, std::move(response).error());
  } else if (response->status().code() != 0) {
    Finish(message.stream,
           ErrorFromGrpcStatus(response->status().code(), response->status().message()));
  } else {
    Finish(message.stream, response->payload());
  }
  return Ok();
}

void TtrpcEndpoint::Finish(std::uint32_t stream, Result<std::string> result) {
  // An answer after the deadline is ignored.
  const auto found = pending_.find(stream);
  if (found == pending_.end()) return;
  Pending pending = std::move(found->second);
  pending_.erase(found);
  pending.done(std::move(result));
}

void TtrpcEndpoint::Close(const Error& error) {
  if (closed_) return;
  closed_ = error;
  const Lifetime::Observer self = lifetime_.Observe();
  std::map<std::uint32_t, Pending> pending = std::exchange(pending_, {});
  for (auto& [stream, call] : pending) {
    call.timer.reset();
    call.done(error);
    if (!self.alive()) return;
  }
}

}  // namespace drakkar::rpc
