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

// What a node may do: itself, its lease, its slices, its pods and what those pods name (secrets,
// config maps, claims), and what every node needs. Says nothing about users that are no nodes.
// What a node may write into these objects is checked by NodeRestriction.
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
