#include "rpc/dra/dra_client.h"

#include <utility>

#include "rpc/dra/dra_codec.h"
#include "rpc/health/health_codec.h"
#include "rpc/transport/transport.h"

namespace drakkar::rpc {
namespace {

class TransportHealthStream final : public HealthStream {
 public:
  explicit TransportHealthStream(std::unique_ptr<ClientStream> stream)
      : stream_(std::move(stream)) {}

 private:
  std::unique_ptr<ClientStream> stream_;
};

class TransportDraPluginClient final : public DraPluginClient {
 public:
  TransportDraPluginClient(Transport& transport, DraPluginOptions options)
      : version_(options.version),
        on_connection_change_(std::move(options.on_connection_change)),
        channel_(transport.OpenChannel(MakeOptions(options))) {}

  bool IsConnected() const override { return connected_; }

  void Prepare(const std::vector<ClaimReference>& claims, Duration timeout,
               PrepareDone done) override {
    channel_->Call(dra::PrepareMethod(version_), dra::EncodeClaims(claims), timeout,
                   [version = version_, done = std::move(done)](Result<std::string> bytes) mutable {
                     if (!bytes.ok()) return done(std::move(bytes).error());
                     done(dra::DecodePrepareResults(*bytes, version));
                   });
  }

  void AnnouncePrepare(const std::vector<AnnouncedClaim>& claims, Duration timeout) override {
    channel_->Call(dra::AnnounceMethod(), dra::EncodeAnnouncement(claims), timeout,
                   [](const Result<std::string>&) {});
  }

  void Unprepare(const std::vector<ClaimReference>& claims, Duration timeout,
                 UnprepareDone done) override {
    channel_->Call(dra::UnprepareMethod(version_), dra::EncodeClaims(claims), timeout,
                   [done = std::move(done)](Result<std::string> bytes) mutable {
                     if (!bytes.ok()) return done(std::move(bytes).error());
                     done(dra::DecodeUnprepareResults(*bytes));
                   });
  }

  std::unique_ptr<HealthStream> WatchHealth(HealthService service,
                                            HealthStreamCallbacks callbacks) override {
    StreamCallbacks raw;
    raw.on_message = [service, on_report = std::move(callbacks.on_report),
                      on_malformed = std::move(callbacks.on_malformed)](const std::string& bytes) {
      Result<HealthReport> report = health::DecodeReport(bytes, service);
      if (report.ok()) {
        on_report(std::move(report).value());
      } else if (on_malformed) {
        on_malformed(report.error());
      }
    };
    raw.on_end = std::move(callbacks.on_end);
    return std::make_unique<TransportHealthStream>(
        channel_->Watch(health::WatchMethod(service), std::string(), std::move(raw)));
  }

 private:
  ChannelOptions MakeOptions(const DraPluginOptions& options) {
    ChannelOptions made;
    made.socket_path = options.endpoint;
    made.max_message_bytes = kMaxDriverMessageBytes;
    made.initial_backoff = options.initial_backoff;
    made.max_backoff = options.max_backoff;
    made.on_connection_change = [this](bool connected) {
      connected_ = connected;
      // A copy, because the callback may destroy this client.
      const std::function<void(bool)> run = on_connection_change_;
      if (run) run(connected);
    };
    return made;
  }

  const DraVersion version_;
  const std::function<void(bool)> on_connection_change_;
  bool connected_ = false;
  std::unique_ptr<Channel>
      channel_;  // last: its destructor ends every callback into the members above
};

}  // namespace

std::unique_ptr<DraPluginClient> DialDraPlugin(Transport& transport, DraPluginOptions options) {
  return std::make_unique<TransportDraPluginClient>(transport, std::move(options));
}

}  // namespace drakkar::rpc
