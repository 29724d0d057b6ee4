#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/env/file_system.h"
#include "node/runtime/network/cni_config.h"

namespace drakkar::node {

// A sandbox's connection to a network, kept on disk from before ADD until after DEL, together with
// the configuration it was made with. It can therefore be removed even if the configuration has
// changed, the agent was killed or the sandbox is lost.
struct CniAttachment {
  std::string sandbox_id;
  std::string interface;
  std::string cni_arguments;
  CapabilityArguments capabilities;
  std::string list_text;
  std::string result;  // of the last plugin; empty until ADD has finished

  bool operator==(const CniAttachment&) const = default;
};

std::string WriteAttachment(const CniAttachment& attachment);
Result<CniAttachment> ParseAttachment(std::string_view text);

// The attachments of a node, one file each.
class CniAttachments {
 public:
  CniAttachments(FileSystem& files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}

  Result<void> Save(const CniAttachment& attachment);
  // kNotFound: there is none. kDataLoss: it cannot be used.
  Result<CniAttachment> Load(const std::string& sandbox_id) const;
  Result<void> Remove(const std::string& sandbox_id);
  Result<std::vector<std::string>> List() const;  // ids of sandboxes

 private:
  std::string PathOf(const std::string& sandbox_id) const;

  FileSystem& files_;
  const std::string directory_;
};

}  // namespace drakkar::node
