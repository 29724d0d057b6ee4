#include "apiserver/watch/layout_change.h"

#include <utility>

#include "api/codec/protobuf_reader.h"
#include "api/tree/draft.h"
#include "apiserver/watch/stored_object.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

// What API servers on a shared store keep beside the objects.
constexpr std::string_view kRecords = "drakkar.io/";
// Which claim holds a device: derived from the claims.
constexpr std::string_view kDerived = "drakkar.io/allocated/";

// The key below another root.
std::string Moved(const std::string& key, const StoreLayout& from, const StoreLayout& to) {
  return RootPrefix(to) + key.substr(RootPrefix(from).size());
}

// Objects of unknown kinds are opaque: kube-apiserver may have more kinds than this server.
bool IsOpaque(std::string_view below_root, const std::string& value) {
  return below_root.starts_with(kRecords) || api::HasProtobufMagic(value) ||
         !value.starts_with('{');
}

}  // namespace

LayoutChange::LayoutChange(StoreLayout layout)
    : layout_(std::move(layout)), prefixes_(PrefixesOf(layout_)), own_prefixes_(PrefixesOf(own_)) {}

LayoutChange::ByPrefix LayoutChange::PrefixesOf(const StoreLayout& layout) {
  ByPrefix prefixes;
  for (const api::KindSchema& kind : api::AllKinds()) {
    if (kind.storage_version) prefixes.emplace(KeyPrefix(layout, kind), &kind);
  }
  return prefixes;
}

LayoutChange::ByPrefix::const_iterator LayoutChange::FindKind(const ByPrefix& prefixes,
                                                              const std::string& key) {
  auto found = prefixes.upper_bound(key);
  if (found == prefixes.begin()) return prefixes.end();
  --found;
  return key.starts_with(found->first) ? found : prefixes.end();
}

Result<std::optional<storage::Entry>> LayoutChange::ToOwn(const storage::Entry& entry) const {
  const std::string root = RootPrefix(layout_);
  if (!entry.key.starts_with(root)) {
    return InvalidArgument(StrCat("the key ", Quote(entry.key), " is not below ", root));
  }
  const std::string_view below = std::string_view(entry.key).substr(root.size());
  if (below.starts_with(kDerived)) return std::optional<storage::Entry>();
  storage::Entry own = entry;
  const auto kind = FindKind(prefixes_, entry.key);
  if (kind != prefixes_.end()) {
    own.key = KeyPrefix(own_, *kind->second) + entry.key.substr(kind->first.size());
  } else {
    own.key = Moved(entry.key, layout_, own_);
    if (IsOpaque(below, *entry.value)) return own;
  }
  ASSIGN_OR_RETURN(const api::ObjectPtr object,
                   ReadStored(*entry.value, entry.mod_revision, Writer::kAnyServer));
  own.value = object->json();
  return own;
}

Result<storage::Operation> LayoutChange::FromOwn(const storage::Entry& entry,
                                                 Duration event_ttl) const {
  const std::string root = RootPrefix(own_);
  if (!entry.key.starts_with(root)) {
    return InvalidArgument(StrCat("the key ", Quote(entry.key), " is not below ", root));
  }
  storage::Operation write;
  const auto kind = FindKind(own_prefixes_, entry.key);
  if (kind != own_prefixes_.end()) {
    write.key = KeyPrefix(layout_, *kind->second) + entry.key.substr(kind->first.size());
    if (kind->second->group.empty() && kind->second->kind == "Event") {
      write.time_to_live = event_ttl;
    }
  } else {
    write.key = Moved(entry.key, own_, layout_);
    if (IsOpaque(std::string_view(entry.key).substr(root.size()), *entry.value)) {
      write.value = entry.value;
      return write;
    }
  }
  ASSIGN_OR_RETURN(const api::ObjectPtr object, ReadStored(*entry.value, entry.mod_revision));
  // The store assigns another version to it.
  api::Draft draft(object->tree());
  draft["metadata"].Remove("resourceVersion");
  write.value = EncodeStored(layout_, api::Object(draft.Freeze()));
  return write;
}

}  // namespace drakkar::apiserver
