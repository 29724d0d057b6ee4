#include "rpc/podresources/podresources_service.h"

#include <utility>

#include "rpc/podresources/podresources_codec.h"

namespace drakkar::rpc {
namespace {

class PodResourcesService final : public RpcService {
 public:
  explicit PodResourcesService(PodResourcesProvider& provider) : provider_(provider) {}

  std::vector<std::string> MethodPaths() const override {
    return {podresources::kListMethod, podresources::kAllocatableMethod, podresources::kGetMethod};
  }

  void Handle(std::string_view method, std::string request,
              std::unique_ptr<ServerCall> call) override {
    Result<std::string> answer = Answer(method, request);
    if (!answer.ok()) return call->Finish(std::move(answer).error());
    call->Send(*answer);
    call->Finish(Ok());
  }

 private:
  Result<std::string> Answer(std::string_view method, const std::string& request) {
    if (method == podresources::kListMethod) {
      ASSIGN_OR_RETURN(const std::vector<PodResources> pods, provider_.ListPodResources());
      return podresources::EncodeList(pods);
    }
    if (method == podresources::kAllocatableMethod) {
      ASSIGN_OR_RETURN(const AllocatableResources resources, provider_.GetAllocatableResources());
      return podresources::EncodeAllocatable(resources);
    }
    ASSIGN_OR_RETURN(const PodReference reference, podresources::DecodeGetRequest(request));
    ASSIGN_OR_RETURN(const PodResources pod, provider_.GetPodResources(reference));
    return podresources::EncodeGetResponse(pod);
  }

  PodResourcesProvider& provider_;
};

}  // namespace

std::unique_ptr<RpcService> MakePodResourcesService(PodResourcesProvider& provider) {
  return std::make_unique<PodResourcesService>(provider);
}

}  // namespace drakkar::rpc
