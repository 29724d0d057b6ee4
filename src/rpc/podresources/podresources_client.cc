#include <utility>

#include "rpc/podresources/podresources.h"
#include "rpc/podresources/podresources_codec.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {
namespace {

class TransportPodResourcesClient final : public PodResourcesClient {
 public:
  explicit TransportPodResourcesClient(std::unique_ptr<Channel> channel)
      : channel_(std::move(channel)) {}

  void List(Duration timeout,
            absl::AnyInvocable<void(Result<std::vector<PodResources>>)> done) override {
    channel_->Call(podresources::kListMethod, std::string(), timeout,
                   [done = std::move(done)](Result<std::string> bytes) mutable {
                     if (!bytes.ok()) return done(std::move(bytes).error());
                     done(podresources::DecodeList(*bytes));
                   });
  }

  void GetAllocatable(Duration timeout,
                      absl::AnyInvocable<void(Result<AllocatableResources>)> done) override {
    channel_->Call(podresources::kAllocatableMethod, std::string(), timeout,
                   [done = std::move(done)](Result<std::string> bytes) mutable {
                     if (!bytes.ok()) return done(std::move(bytes).error());
                     done(podresources::DecodeAllocatable(*bytes));
                   });
  }

  void Get(const PodReference& pod, Duration timeout,
           absl::AnyInvocable<void(Result<PodResources>)> done) override {
    channel_->Call(podresources::kGetMethod, podresources::EncodeGetRequest(pod), timeout,
                   [done = std::move(done)](Result<std::string> bytes) mutable {
                     if (!bytes.ok()) return done(std::move(bytes).error());
                     done(podresources::DecodeGetResponse(*bytes));
                   });
  }

 private:
  const std::unique_ptr<Channel> channel_;
};

}  // namespace

std::unique_ptr<PodResourcesClient> MakePodResourcesClient(Transport& transport,
                                                           const std::string& socket_path) {
  ChannelOptions options;
  options.socket_path = socket_path;
  return std::make_unique<TransportPodResourcesClient>(transport.OpenChannel(std::move(options)));
}

}  // namespace drakkar::rpc
