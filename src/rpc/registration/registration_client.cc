#include <cstdint>
#include <map>
#include <utility>

#include "rpc/registration/registration.h"
#include "rpc/registration/registration_codec.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {
namespace {

class TransportRegistrationClient final : public RegistrationClient {
 public:
  explicit TransportRegistrationClient(Transport& transport) : transport_(transport) {}

  void GetInfo(const std::string& socket_path, Duration timeout,
               absl::AnyInvocable<void(Result<PluginInfo>)> done) override {
    Call(socket_path, registration::kGetInfoMethod, std::string(), timeout,
         [done = std::move(done)](Result<std::string> bytes) mutable {
           if (!bytes.ok()) return done(std::move(bytes).error());
           done(registration::DecodePluginInfo(*bytes));
         });
  }

  void NotifyRegistrationStatus(const std::string& socket_path, const RegistrationStatus& status,
                                Duration timeout,
                                absl::AnyInvocable<void(Result<void>)> done) override {
    Call(socket_path, registration::kNotifyMethod, registration::EncodeStatus(status), timeout,
         [done = std::move(done)](Result<std::string> bytes) mutable {
           if (!bytes.ok()) return done(std::move(bytes).error());
           done(Ok());
         });
  }

 private:
  void Call(const std::string& socket_path, const std::string& method, const std::string& request,
            Duration timeout, absl::AnyInvocable<void(Result<std::string>)> done) {
    const std::uint64_t id = next_id_++;
    ChannelOptions options;
    options.socket_path = socket_path;
    options.max_message_bytes = kMaxDriverMessageBytes;
    Channel& channel =
        *channels_.emplace(id, transport_.OpenChannel(std::move(options))).first->second;
    channel.Call(method, request, timeout,
                 [this, id, done = std::move(done)](Result<std::string> result) mutable {
                   // The callback may destroy the channel, so it owns itself.
                   channels_.erase(id);
                   done(std::move(result));
                 });
  }

  Transport& transport_;
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Channel>> channels_;  // one per call in flight
};

}  // namespace

std::unique_ptr<RegistrationClient> MakeRegistrationClient(Transport& transport) {
  return std::make_unique<TransportRegistrationClient>(transport);
}

}  // namespace drakkar::rpc
