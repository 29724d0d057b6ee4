#include "rpc/dra/dra_service.h"

#include <utility>

#include "rpc/dra/dra_codec.h"

namespace drakkar::rpc {
namespace {

class DraService final : public RpcService {
 public:
  DraService(DraPluginService& plugin, std::vector<DraVersion> versions)
      : plugin_(plugin), versions_(std::move(versions)) {}

  std::vector<std::string> MethodPaths() const override {
    std::vector<std::string> paths;
    for (const DraVersion version : versions_) {
      paths.push_back(dra::PrepareMethod(version));
      paths.push_back(dra::UnprepareMethod(version));
    }
    paths.push_back(dra::AnnounceMethod());
    return paths;
  }

  void Handle(std::string_view method, std::string request,
              std::unique_ptr<ServerCall> call) override {
    if (method == dra::AnnounceMethod()) return Announce(request, std::move(call));
    Result<std::vector<ClaimReference>> claims = dra::DecodeClaims(request);
    if (!claims.ok()) return call->Finish(std::move(claims).error());
    for (const DraVersion version : versions_) {
      if (method == dra::PrepareMethod(version)) {
        return Prepare(version, std::move(claims).value(), std::move(call));
      }
    }
    plugin_.NodeUnprepareResources(std::move(claims).value(),
                                   [call = std::move(call)](Result<UnprepareResults> results) {
                                     if (!results.ok())
                                       return call->Finish(std::move(results).error());
                                     call->Send(dra::EncodeUnprepareResults(*results));
                                     call->Finish(Ok());
                                   });
  }

 private:
  void Announce(const std::string& request, std::unique_ptr<ServerCall> call) {
    Result<std::vector<AnnouncedClaim>> claims = dra::DecodeAnnouncement(request);
    if (!claims.ok()) return call->Finish(std::move(claims).error());
    plugin_.AnnouncePrepare(std::move(claims).value(), [call = std::move(call)] {
      call->Send(std::string());
      call->Finish(Ok());
    });
  }

  void Prepare(DraVersion version, std::vector<ClaimReference> claims,
               std::unique_ptr<ServerCall> call) {
    plugin_.NodePrepareResources(std::move(claims),
                                 [version, call = std::move(call)](Result<PrepareResults> results) {
                                   if (!results.ok())
                                     return call->Finish(std::move(results).error());
                                   call->Send(dra::EncodePrepareResults(*results, version));
                                   call->Finish(Ok());
                                 });
  }

  DraPluginService& plugin_;
  const std::vector<DraVersion> versions_;
};

}  // namespace

std::unique_ptr<RpcService> MakeDraService(DraPluginService& plugin,
                                           std::vector<DraVersion> versions) {
  return std::make_unique<DraService>(plugin, std::move(versions));
}

}  // namespace drakkar::rpc
