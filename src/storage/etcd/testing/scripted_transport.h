#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rpc/transport/transport.h"

namespace drakkar::storage {

// A transport whose servers are the test: it records what is sent to them and answers when told to.
// Connections change by ChannelOptions::on_connection_change of `channels`. Outlives its channels.
class ScriptedTransport final : public rpc::Transport {
 public:
  struct Call {
    std::size_t member = 0;
    rpc::CallRequest request;
    absl::AnyInvocable<void(rpc::CallResult)> done;
  };
  struct Stream {
    std::size_t member = 0;
    rpc::StreamRequest request;
    rpc::StreamCallbacks callbacks;
    std::vector<std::string> sent;
    bool open = true;  // until the client destroys it
  };

  std::unique_ptr<rpc::Channel> OpenChannel(rpc::ChannelOptions options) override {
    channels.push_back(std::move(options));
    ++open_channels;
    return std::make_unique<OneChannel>(*this, channels.size() - 1);
  }
  std::unique_ptr<rpc::Server> CreateServer(
      std::string, std::vector<std::unique_ptr<rpc::RpcService>>) override {
    return nullptr;
  }

  // Answers the oldest call.
  void Answer(std::string response) { Finish({.response = std::move(response)}); }
  void Fail(Error error, bool unprocessed = false) {
    Finish({.response = std::move(error), .unprocessed = unprocessed});
  }

  std::vector<rpc::ChannelOptions> channels;  // by member
  std::size_t open_channels = 0;
  std::deque<Call> calls;                        // not answered yet
  std::vector<std::shared_ptr<Stream>> streams;  // all there ever were

 private:
  class OneStream final : public rpc::ClientStream {
   public:
    explicit OneStream(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
    ~OneStream() override { stream_->open = false; }
    void Send(const std::string& message) override { stream_->sent.push_back(message); }
    void FinishSending() override {}

   private:
    const std::shared_ptr<Stream> stream_;
  };

  class OneChannel final : public rpc::Channel {
   public:
    OneChannel(ScriptedTransport& transport, std::size_t member)
        : transport_(transport), member_(member) {}
    ~OneChannel() override {
      --transport_.open_channels;
      std::erase_if(transport_.calls, [this](const auto& call) { return call.member == member_; });
    }
    void Start(rpc::CallRequest request, absl::AnyInvocable<void(rpc::CallResult)> done) override {
      transport_.calls.push_back({member_, std::move(request), std::move(done)});
    }
    std::unique_ptr<rpc::ClientStream> Open(rpc::StreamRequest request,
                                            rpc::StreamCallbacks callbacks) override {
      transport_.streams.push_back(
          std::make_shared<Stream>(Stream{member_, std::move(request), std::move(callbacks), {}}));
      return std::make_unique<OneStream>(transport_.streams.back());
    }

   private:
    ScriptedTransport& transport_;
    const std::size_t member_;
  };

  void Finish(rpc::CallResult result) {
    Call call = std::move(calls.at(0));
    calls.pop_front();
    call.done(std::move(result));
  }
};

}  // namespace drakkar::storage
