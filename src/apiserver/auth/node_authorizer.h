#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/auth/pod_references.h"
#include "apiserver/auth/rule.h"
#include "apiserver/request/node_identity.h"
#include "apiserver/rest/core.h"

namespace drakkar::apiserver {

// Authorizes nodes: for their own Node, lease and slices, their pods and what those pods reference
// (secrets, config maps, claims), and for what every node needs. Has no opinion on other users.
// NodeRestriction checks what a node may write into these objects.
//
// Loop-bound. Follows the pods from the first check on.
class NodeAuthorizer final : public Authorizer {
 public:
  NodeAuthorizer();
  ~NodeAuthorizer() override;

  // `core` must outlive this, or Detach must come first.
  void Attach(Core& core);
  void Detach();

  Decision Check(const Attributes& attributes) override;

 private:
  bool FollowPods();
  Decision CheckReferenced(std::string_view node, const Attributes& attributes, bool only_get);
  Decision CheckToken(std::string_view node, const Attributes& attributes);
  Decision CheckLease(std::string_view node, const Attributes& attributes) const;
  Decision CheckCsiNode(std::string_view node, const Attributes& attributes) const;
  Decision CheckPodCertificate(std::string_view node, const Attributes& attributes) const;
  Decision CheckSlice(std::string_view node, const Attributes& attributes) const;
  Decision CheckNode(std::string_view node, const Attributes& attributes) const;
  Decision CheckPod(std::string_view node, const Attributes& attributes);
  Decision CheckCommon(const Attributes& attributes) const;

  Core* core_ = nullptr;
  PodReferences references_;
  std::unique_ptr<WatchCache::Watcher> pods_;
  std::vector<PolicyRule> rules_;
};

}  // namespace drakkar::apiserver
