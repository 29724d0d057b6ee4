#include "node/runtime/network/cni_attachment.h"

#include "api/json/json_writer.h"
#include "base/text/text.h"
#include "node/runtime/json.h"

namespace drakkar::node {
namespace {

constexpr int kVersion = 1;
constexpr std::string_view kSuffix = ".json";

}  // namespace

std::string WriteAttachment(const CniAttachment& attachment) {
  api::JsonWriter json;
  json.BeginObject();
  json.Key("version").Integer(kVersion);
  json.Member("sandbox", attachment.sandbox_id);
  json.Member("interface", attachment.interface);
  json.Member("arguments", attachment.cni_arguments);
  json.StringMap("capabilities", attachment.capabilities);
  json.Member("configuration", attachment.list_text);
  json.Member("result", attachment.result);
  json.EndObject();
  return json.Take();
}

Result<CniAttachment> ParseAttachment(std::string_view text) {
  auto tree = ParseJson(text);
  if (!tree.ok()) return Error{ErrorCode::kDataLoss, tree.error().message};
  const api::Value root = (*tree)->root();
  if (root["version"].integer() != kVersion) {
    return Error{ErrorCode::kDataLoss, "unknown version"};
  }
  CniAttachment attachment;
  attachment.sandbox_id = root["sandbox"].str();
  attachment.interface = root["interface"].str();
  attachment.cni_arguments = root["arguments"].str();
  attachment.capabilities = StringMap(root["capabilities"]);
  attachment.list_text = root["configuration"].str();
  attachment.result = root["result"].str();
  if (attachment.sandbox_id.empty() || attachment.interface.empty()) {
    return Error{ErrorCode::kDataLoss, "it names no sandbox or no interface"};
  }
  return attachment;
}

Result<void> CniAttachments::Save(const CniAttachment& attachment) {
  RETURN_IF_ERROR(files_.MakeDirectories(directory_, 0700));
  // Not synced: a power failure also ends the interfaces that a lost record describes. Addresses
  // that a plugin has reserved on disk are released by GC or by the plugin itself.
  return files_.WriteFileAtomically(PathOf(attachment.sandbox_id), WriteAttachment(attachment),
                                    0600, /*sync=*/false);
}

Result<CniAttachment> CniAttachments::Load(const std::string& sandbox_id) const {
  ASSIGN_OR_RETURN(const std::string text, files_.ReadFile(PathOf(sandbox_id)));
  auto attachment = ParseAttachment(text);
  if (attachment.ok() && attachment->sandbox_id != sandbox_id) {
    return Error{ErrorCode::kDataLoss, "it belongs to another sandbox"};
  }
  return attachment;
}

Result<void> CniAttachments::Remove(const std::string& sandbox_id) {
  auto removed = files_.Remove(PathOf(sandbox_id));
  if (!removed.ok() && removed.error().code == ErrorCode::kNotFound) return Ok();
  return removed;
}

Result<std::vector<std::string>> CniAttachments::List() const {
  auto names = files_.ListDirectory(directory_);
  if (!names.ok()) {
    if (names.error().code == ErrorCode::kNotFound) return std::vector<std::string>();
    return std::move(names).error();
  }
  std::vector<std::string> ids;
  for (const std::string& name : *names) {
    if (name.starts_with('.') || !name.ends_with(kSuffix)) continue;
    ids.push_back(name.substr(0, name.size() - kSuffix.size()));
  }
  return ids;
}

std::string CniAttachments::PathOf(const std::string& sandbox_id) const {
  return JoinPath(directory_, StrCat(sandbox_id, kSuffix));
}

}  // namespace drakkar::node
