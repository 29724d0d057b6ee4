#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result/result.h"
#include "rpc/nri/nri.h"

namespace drakkar::node {

// The answers of several plugins to one event, in order: each plugin sees the result of the
// previous ones and may not change what another has set, unless it removes that explicitly. No I/O.
class AnswerCollector {
 public:
  // `container` is what the event is about. For kUpdateContainer, `resources` are its new ones.
  AnswerCollector(rpc::NriEvent event, rpc::NriContainer container,
                  rpc::NriResources resources = {})
      : event_(event), container_(std::move(container)), resources_(std::move(resources)) {}

  // Takes the plugin's answer, or refuses it with an error and changes nothing.
  Result<void> Add(const std::string& plugin, const rpc::NriAnswer& answer);

  // As the next plugin is to see them.
  const rpc::NriContainer& container() const { return container_; }
  const rpc::NriResources& resources() const { return resources_; }

  // All changes.
  const rpc::NriContainerAdjustment& adjustment() const { return adjustment_; }
  // kUpdateContainer only: changes of the container itself, which `updates` does not contain.
  const rpc::NriResources& own_changes() const { return own_changes_; }
  std::vector<rpc::NriContainerUpdate> updates() const;  // merged: one per container
  const std::vector<rpc::NriEviction>& evictions() const { return evictions_; }
  const std::map<std::string, rpc::NriFieldOwners>& owners() const { return owners_; }

 private:
  Result<void> Adjust(const std::string& plugin, const rpc::NriContainerAdjustment& adjustment);
  Result<void> Update(const std::string& plugin, const rpc::NriContainerUpdate& update);
  Result<void> ClaimResources(const std::string& plugin, const std::string& id,
                              const rpc::NriResources& resources);
  Result<void> Claim(const std::string& plugin, const std::string& id, rpc::NriField field,
                     std::string_view entry);

  const rpc::NriEvent event_;
  rpc::NriContainer container_;
  rpc::NriResources resources_;
  rpc::NriContainerAdjustment adjustment_;
  rpc::NriResources own_changes_;
  std::map<std::string, rpc::NriContainerUpdate> updates_;  // by container
  std::vector<rpc::NriEviction> evictions_;
  std::map<std::string, rpc::NriFieldOwners> owners_;
};

// "-NAME" removes NAME.
bool IsNriRemoval(std::string_view name);
std::string_view WithoutNriRemoval(std::string_view name);

}  // namespace drakkar::node
