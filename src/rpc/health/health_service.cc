#include "rpc/health/health_service.h"

#include <utility>

#include "rpc/health/health_codec.h"

namespace drakkar::rpc {
namespace {

class CallHealthSink final : public HealthSink {
 public:
  CallHealthSink(HealthService service, std::unique_ptr<ServerCall> call)
      : service_(service), call_(std::move(call)) {}

  void Send(const HealthReport& report) override {
    call_->Send(health::EncodeReport(report, service_));
  }
  void Finish(Result<void> result) override { call_->Finish(std::move(result)); }
  bool IsCancelled() const override { return call_->IsCancelled(); }
  void OnCancelled(std::function<void()> callback) override {
    call_->OnCancelled(std::move(callback));
  }

 private:
  const HealthService service_;
  const std::unique_ptr<ServerCall> call_;
};

class HealthRpcService final : public RpcService {
 public:
  HealthRpcService(HealthSource& source, std::vector<HealthService> services)
      : source_(source), services_(std::move(services)) {}

  std::vector<std::string> MethodPaths() const override {
    std::vector<std::string> paths;
    for (const HealthService service : services_) paths.push_back(health::WatchMethod(service));
    return paths;
  }

  void Handle(std::string_view method, std::string, std::unique_ptr<ServerCall> call) override {
    for (const HealthService service : services_) {
      if (method != health::WatchMethod(service)) continue;
      return source_.Watch(std::make_unique<CallHealthSink>(service, std::move(call)));
    }
  }

 private:
  HealthSource& source_;
  const std::vector<HealthService> services_;
};

}  // namespace

std::unique_ptr<RpcService> MakeHealthService(HealthSource& source,
                                              std::vector<HealthService> services) {
  return std::make_unique<HealthRpcService>(source, std::move(services));
}

}  // namespace drakkar::rpc
