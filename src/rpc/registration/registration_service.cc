#include "rpc/registration/registration_service.h"

#include <utility>

#include "rpc/registration/registration_codec.h"

namespace drakkar::rpc {
namespace {

class RegistrationService final : public RpcService {
 public:
  explicit RegistrationService(RegistrationHandler& handler) : handler_(handler) {}

  std::vector<std::string> MethodPaths() const override {
    return {registration::kGetInfoMethod, registration::kNotifyMethod};
  }

  void Handle(std::string_view method, std::string request,
              std::unique_ptr<ServerCall> call) override {
    Result<std::string> answer = method == registration::kGetInfoMethod ? Info() : Notify(request);
    if (!answer.ok()) return call->Finish(std::move(answer).error());
    call->Send(*answer);
    call->Finish(Ok());
  }

 private:
  Result<std::string> Info() {
    ASSIGN_OR_RETURN(const PluginInfo info, handler_.GetInfo());
    return registration::EncodePluginInfo(info);
  }

  Result<std::string> Notify(const std::string& request) {
    ASSIGN_OR_RETURN(const RegistrationStatus status, registration::DecodeStatus(request));
    RETURN_IF_ERROR(AnswerNotification(handler_, status));
    return std::string();  // the response message has no fields
  }

  RegistrationHandler& handler_;
};

}  // namespace

Result<void> AnswerNotification(RegistrationHandler& handler, const RegistrationStatus& status) {
  RETURN_IF_ERROR(handler.NotifyRegistrationStatus(status));
  if (!status.plugin_registered) return Internal("failed registration process: " + status.error);
  return Ok();
}

std::unique_ptr<RpcService> MakeRegistrationService(RegistrationHandler& handler) {
  return std::make_unique<RegistrationService>(handler);
}

}  // namespace drakkar::rpc
