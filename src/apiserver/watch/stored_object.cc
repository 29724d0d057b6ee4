#include "apiserver/watch/stored_object.h"

#include <string>

#include "api/codec/object_reader.h"
#include "api/codec/protobuf_reader.h"
#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/conversion/versions.h"
#include "apiserver/registry/schema_defaults.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// The prefix of a value that kube-apiserver encrypted.
constexpr std::string_view kEncrypted = "k8s:enc:";

Result<api::TreePtr> ReadEnveloped(std::string_view bytes) {
  ASSIGN_OR_RETURN(const api::ProtobufEnvelope envelope, api::OpenProtobufEnvelope(bytes));
  const api::KindSchema* kind = api::FindKindByApiVersion(envelope.api_version, envelope.kind);
  if (kind == nullptr) {
    return InvalidArgument(
        StrCat("it has the unknown type ", envelope.kind, " in ", envelope.api_version));
  }
  ASSIGN_OR_RETURN(const api::TreePtr message, api::ReadProtobuf(envelope.message, *kind->schema));
  api::Draft draft(message);
  draft["apiVersion"] = envelope.api_version;
  draft["kind"] = envelope.kind;
  return draft.Freeze();
}

// The form that this server writes, in its version. Like kube-apiserver, which does not store all
// defaults, it sets them when an object is read.
Result<api::TreePtr> Normalized(const api::TreePtr& tree) {
  const api::Value root = tree->root();
  const api::KindSchema* kind =
      api::FindKindByApiVersion(root["apiVersion"].str(), root["kind"].str());
  if (kind == nullptr) return tree;  // of a custom resource
  ASSIGN_OR_RETURN(
      const api::ObjectReadResult read,
      api::ConvertObject(tree, *kind->schema, {.strictness = api::Strictness::kIgnore}));
  api::Draft draft(read.tree);
  ApplySchemaDefaults(draft, *kind->schema);
  const api::TreePtr complete = draft.Freeze();
  if (kind->storage == nullptr || kind->storage == kind) return complete;
  return ConvertTree(complete, *kind->storage);
}

}  // namespace

api::ObjectPtr Numbered(const api::TreePtr& tree, storage::Revision revision) {
  api::Draft draft(tree);
  draft["metadata"]["resourceVersion"] = std::to_string(revision);
  return std::make_shared<const api::Object>(draft.Freeze());
}

Result<api::ObjectPtr> ReadStored(std::string_view bytes, storage::Revision revision,
                                  Writer writer) {
  if (api::HasProtobufMagic(bytes)) {
    ASSIGN_OR_RETURN(const api::TreePtr tree, ReadEnveloped(bytes));
    ASSIGN_OR_RETURN(const api::TreePtr normalized, Normalized(tree));
    return Numbered(normalized, revision);
  }
  if (bytes.starts_with(kEncrypted)) {
    return Error{ErrorCode::kFailedPrecondition,
                 "it is encrypted by kube-apiserver, which this server does not support"};
  }
  ASSIGN_OR_RETURN(api::TreePtr tree, api::ParseJson(bytes));
  if (writer == Writer::kAnyServer) {
    ASSIGN_OR_RETURN(tree, Normalized(tree));
  }
  return Numbered(tree, revision);
}

}  // namespace drakkar::apiserver
