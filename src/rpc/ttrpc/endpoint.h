#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "base/exec/event_loop.h"
#include "base/exec/lifetime.h"
#include "base/result/result.h"
#include "rpc/ttrpc/frame.h"

namespace drakkar::rpc {

using TtrpcDone = absl::AnyInvocable<void(Result<std::string> payload)>;

// One end of a socket over which both sides call each other: each side serves on one logical
// connection and calls on the other. Unary calls only; bytes in, bytes out, no I/O.
//
// Loop-bound. Callbacks never run inside Call; none runs after the endpoint is destroyed.
class TtrpcEndpoint {
 public:
  // Calls in flight in each direction; beyond it calls fail with kResourceExhausted.
  static constexpr std::size_t kMaxCalls = 1'024;

  struct Options {
    EventLoop& loop;
    std::uint32_t serving_connection = 0;
    std::uint32_t calling_connection = 0;
    // Writes bytes to the socket.
    std::function<void(std::string bytes)> send;
    // A call from the peer, "/package.Service/Method". `done` is called once, immediately or later;
    // dropping it answers Internal. Answer kUnimplemented for an unknown method.
    std::function<void(const std::string& method, const std::string& payload, TtrpcDone done)>
        serve;
  };
  explicit TtrpcEndpoint(Options options) : options_(std::move(options)) {}
  TtrpcEndpoint(const TtrpcEndpoint&) = delete;
  TtrpcEndpoint& operator=(const TtrpcEndpoint&) = delete;

  // `method` is "/package.Service/Method". If there is no answer in time: kDeadlineExceeded.
  void Call(const std::string& method, const std::string& payload, Duration timeout,
            TtrpcDone done);

  // Bytes from the socket. An error is final: close the socket.
  Result<void> Receive(std::string_view bytes);

  // The socket is closed: calls in flight fail with `error`, and so do all later ones.
  void Close(const Error& error);

 private:
  struct Pending {
    TtrpcDone done;
    TimerHandle timer;
  };

  class ServedCall;

  Result<void> OnRequest(const TtrpcMessage& message);
  Result<void> OnResponse(const TtrpcMessage& message);
  void Answer(std::uint32_t stream, Result<std::string> result);
  void Finish(std::uint32_t stream, Result<std::string> result);

  const Options options_;
  MuxDecoder pieces_;
  TtrpcDecoder requests_;
  TtrpcDecoder responses_;
  std::uint32_t next_stream_ = 1;  // odd, because we are the caller
  std::map<std::uint32_t, Pending> pending_;
  std::size_t serving_ = 0;
  std::optional<Error> closed_;
  Lifetime lifetime_;
};

}  // namespace drakkar::rpc
