#include "api/apply/managed_fields.h"

#include <algorithm>
#include <list>
#include <map>
#include <memory>
#include <unordered_map>

#include "absl/hash/hash.h"
#include "api/apply/created_fields.h"
#include "api/apply/fields_writer.h"
#include "api/apply/typed_value.h"
#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/annotations.h"
#include "api/meta/shown_errors.h"
#include "api/meta/time.h"
#include "base/exec/work_budget.h"
#include "base/text/text.h"

namespace drakkar::api {
namespace {

constexpr std::string_view kStripped =
    R"({"f:apiVersion":{},"f:kind":{},"f:metadata":{".":{},"f:name":{},"f:namespace":{},)"
    R"("f:creationTimestamp":{},"f:selfLink":{},"f:uid":{},"f:clusterName":{},"f:generation":{},)"
    R"("f:managedFields":{},"f:resourceVersion":{}}})";

// Cache of parsed sets. Entries of objects made from one template are identical byte for byte, so
// parsing them once pays off. Texts that name a single object (by its uid, say) occur only a few
// times and would evict the others, so a text is cached only once it has been seen often enough.
// Bounded, oldest first. One per thread: an object is only changed on one thread.
class ParsedSets {
 public:
  struct Kept {
    std::size_t hash;
    std::string json;
    const FieldNode* set;
    bool as_written;  // writing the set gives `json` again
    Arena arena;
  };

  // Null if the text is not cached.
  std::shared_ptr<const Kept> Find(std::string_view json) {
    const std::size_t hash = absl::HashOf(json);
    if (auto found = index_.find({hash, json}); found != index_.end()) return *found->second;
    Seen& seen = seen_[hash % kSeen];
    if (seen.hash != hash) seen = {hash, 0};
    if (++seen.times < kTimes || json.size() > kMaxBytes) return nullptr;
    return Keep(hash, json);
  }

 private:
  static constexpr std::size_t kMaxSets = 256;
  static constexpr std::size_t kMaxBytes = 16384;
  static constexpr std::size_t kSeen = 1024;  // hashes of texts seen recently
  static constexpr int kTimes = 4;            // occurrences before a text is cached
  struct Seen {
    std::size_t hash = 0;
    int times = 0;
  };
  using Name = std::pair<std::size_t, std::string_view>;
  struct Hash {
    std::size_t operator()(const Name& name) const { return name.first; }
  };

  std::shared_ptr<const Kept> Keep(std::size_t hash, std::string_view json) {
    auto kept = std::make_shared<Kept>();
    Result<const FieldNode*> parsed = ParseFieldsV1(json, kept->arena);
    if (!parsed.ok() || *parsed == nullptr) return nullptr;
    FieldsWriter writer;
    WriteFieldsV1(writer, *parsed);
    kept->hash = hash;
    kept->json = json;
    kept->set = *parsed;
    kept->as_written = writer.view() == json;
    if (kept_.size() == kMaxSets) {
      index_.erase({kept_.front()->hash, kept_.front()->json});
      kept_.pop_front();
    }
    kept_.push_back(kept);
    index_.emplace(Name(hash, kept->json), std::prev(kept_.end()));
    return kept;
  }

  std::list<std::shared_ptr<const Kept>> kept_;
  std::unordered_map<Name, std::list<std::shared_ptr<const Kept>>::iterator, Hash> index_;
  std::vector<Seen> seen_ = std::vector<Seen>(kSeen);
};

// Nobody ever owns these.
const FieldNode* ServerFields() {
  static const struct Parsed {
    Arena arena;
    const FieldNode* set = *ParseFieldsV1(kStripped, arena);
  } parsed;
  return parsed.set;
}

struct Manager {
  std::string_view name;
  std::string_view operation;  // "Apply", "Update"
  std::string_view api_version;
  std::string_view subresource;
  std::string_view time;  // "" if there is none
  const FieldNode* set = nullptr;
  std::string_view written;  // the set's text, if known
  Value entry;               // as it was read, if at most its time changed

  bool applies() const { return operation == "Apply"; }
  // An applier is the same manager in every version.
  bool Is(const Manager& other) const {
    return name == other.name && operation == other.operation && subresource == other.subresource &&
           (applies() || api_version == other.api_version);
  }
  // As shown to users in conflicts.
  std::string Text() const {
    std::string text = Quote(name);
    if (!subresource.empty()) text += StrCat(" with subresource ", Quote(subresource));
    if (!applies()) text += StrCat(" using ", api_version);
    return text;
  }
};

// The managers of one object during one request.
struct Managers {
  std::vector<Manager> all;
  std::vector<std::shared_ptr<const void>> kept;
  Arena arena;

  // Parses a FieldsV1 document; the result is valid while this object and `json` exist. Null for an
  // invalid document and for the empty set: an entry that owns nothing is dropped.
  const FieldNode* Parse(std::string_view json, std::string_view* written = nullptr) {
    thread_local ParsedSets sets;
    if (std::shared_ptr<const ParsedSets::Kept> known = sets.Find(json)) {
      if (written != nullptr && known->as_written) *written = known->json;
      kept.push_back(known);
      return known->set;
    }
    Result<const FieldNode*> parsed = ParseBorrowedFieldsV1(json, arena);
    return parsed.ok() ? *parsed : nullptr;
  }

  // Returns false if something in the list is not an entry.
  bool Read(Value entries) {
    all.reserve(entries.size() + 1);
    kept.reserve(entries.size() + 1);
    for (Value entry : entries.elements()) {
      Manager manager;
      manager.name = entry["manager"].str();
      manager.operation = entry["operation"].str();
      manager.api_version = entry["apiVersion"].str();
      manager.subresource = entry["subresource"].str();
      manager.time = entry["time"].str();
      manager.entry = entry;
      if (manager.operation != "Apply" && manager.operation != "Update") return false;
      if (entry["fieldsType"].str() != "FieldsV1" || manager.api_version.empty()) return false;
      const Value fields = entry["fieldsV1"];
      manager.set = Parse(
          fields.kind() == ValueKind::kObject ? arena.CopyText(WriteJson(fields)) : fields.str(),
          &manager.written);
      if (manager.set == nullptr) continue;
      all.push_back(manager);
    }
    return true;
  }

  Manager* Find(const Manager& wanted) {
    for (Manager& each : all) {
      if (each.Is(wanted)) return &each;
    }
    return nullptr;
  }
  void Set(Manager& manager, const FieldNode* set) {
    if (manager.set == set) return;
    manager.set = set;
    manager.written = {};
    manager.entry = Value();
  }
  void DropEmpty() {
    std::erase_if(all, [](const Manager& each) { return each.set == nullptr; });
  }

  Draft Write() {
    auto before = [](const Manager& a, const Manager& b) {
      if (a.operation != b.operation) return a.operation < b.operation;
      if (a.time != b.time) return a.time < b.time;
      if (a.name != b.name) return a.name < b.name;
      if (a.api_version != b.api_version) return a.api_version < b.api_version;
      return a.subresource < b.subresource;
    };
    if (!std::is_sorted(all.begin(), all.end(), before)) std::sort(all.begin(), all.end(), before);
    if (all.empty()) return Draft();
    Node* nodes = arena.AllocateArray<Node>(all.size() + 1);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Manager& each = all[i];
      nodes[i + 1] = each.entry.exists() && each.entry["time"].str() == each.time
                         ? *each.entry.node()
                         : MakeEntry(each);
    }
    nodes[0] = ArrayNode(nodes + 1, all.size());
    return Draft(Value(nodes));
  }

 private:
  // The draft keeps this object alive, and with it everything in the arena.
  Node MakeEntry(const Manager& manager) {
    std::string_view fields = manager.written;
    FieldsWriter writer;
    if (fields.empty()) {
      WriteFieldsV1(writer, manager.set);
      fields = arena.CopyText(writer.view());
    }
    Member* members = arena.AllocateArray<Member>(7);
    std::size_t count = 0;
    auto add = [&](FieldName name, std::string_view text, ValueKind kind = ValueKind::kString) {
      members[count].key = &name.key();
      members[count++].value = TextNode(text, kind);
    };
    add("manager", arena.CopyText(manager.name));
    add("operation", manager.applies() ? "Apply" : "Update");
    add("apiVersion", arena.CopyText(manager.api_version));
    if (!manager.time.empty()) add("time", arena.CopyText(manager.time));
    add("fieldsType", "FieldsV1");
    add("fieldsV1", fields, ValueKind::kRaw);
    if (!manager.subresource.empty()) {
      add("subresource", arena.CopyText(manager.subresource));
    }
    return ObjectNode(members, count);
  }
};

struct Conflict {
  Manager manager;
  const FieldNode* fields = nullptr;
};

// What the request changed, in the version of each manager that needs it.
class Changes {
 public:
  Changes(Value before, Value after, const FieldManager& by, Managers& managers)
      : before_(before), after_(after), by_(by), arena_(managers.arena), managers_(managers) {
    all_ = CompareTyped(before, after, *by.schema, arena_);
    reset_ = managers.Parse(by.reset_fields);
    own_ = SubtractBelow(all_, reset_, arena_);
  }

  const FieldNode* all() const { return all_; }
  const FieldNode* own() const { return own_; }
  const FieldNode* reset() const { return reset_; }

  // Returns false if that version no longer exists.
  bool In(std::string_view api_version, const FieldNode*& changes) {
    changes = own_;
    if (api_version == by_.api_version || all_ == nullptr) return true;
    for (const auto& [version, known] : others_) {
      if (version == api_version) {
        changes = known;
        return true;
      }
    }
    if (!by_.convert) return false;
    auto [old_tree, schema] =
        by_.convert(before_.exists() ? before_ : Value(&kNothing), api_version);
    auto [new_tree, new_schema] = by_.convert(after_, api_version);
    if (schema == nullptr || new_schema == nullptr) return false;
    changes = SubtractBelow(CompareTyped(before_.exists() ? old_tree->root() : Value(),
                                         new_tree->root(), *schema, arena_),
                            reset_, arena_);
    managers_.kept.push_back(old_tree);  // the sets borrow their texts
    managers_.kept.push_back(new_tree);
    others_.emplace_back(api_version, changes);
    return true;
  }

 private:
  static inline const Node kNothing = ObjectNode(nullptr, 0);
  Value before_, after_;
  const FieldManager& by_;
  Arena& arena_;
  Managers& managers_;
  const FieldNode* all_ = nullptr;
  const FieldNode* own_ = nullptr;
  const FieldNode* reset_ = nullptr;
  std::vector<std::pair<std::string_view, const FieldNode*>> others_;
};

// Takes ownership of the changes from all other managers. Without force a loss is a conflict and
// nothing changes.
std::vector<Conflict> TakeFromOthers(Changes& changes, Managers& managers, const Manager* self,
                                     bool force) {
  std::vector<Conflict> conflicts;
  for (Manager& each : managers.all) {
    if (self != nullptr && each.Is(*self)) continue;
    const FieldNode* changed = nullptr;
    if (!changes.In(each.api_version, changed)) {
      managers.Set(each, nullptr);
      continue;
    }
    if (force) continue;
    if (const FieldNode* lost = Intersect(each.set, changed, kOwned, managers.arena)) {
      conflicts.push_back({each, lost});
    }
  }
  if (!force && !conflicts.empty()) return conflicts;
  for (Manager& each : managers.all) {
    if (self != nullptr && each.Is(*self)) continue;
    const FieldNode* changed = nullptr;
    if (!changes.In(each.api_version, changed)) continue;
    managers.Set(each, Subtract(each.set, changed, kOwned | kRemoved, managers.arena));
  }
  managers.DropEmpty();
  return {};
}

const FieldNode* WithoutServerFields(const FieldNode* set, Managers& managers) {
  return Subtract(set, ServerFields(), kOwned, managers.arena);
}

// Old updates share one entry per version, so that many controllers do not bloat an object.
void CapUpdateManagers(Managers& managers, const FieldManager& by) {
  std::vector<Manager*> updaters;
  for (Manager& each : managers.all) {
    if (!each.applies()) updaters.push_back(&each);
  }
  if (updaters.size() <= kMaxUpdateManagers) return;
  std::stable_sort(updaters.begin(), updaters.end(), [](const Manager* a, const Manager* b) {
    return a->time != b->time ? a->time < b->time : a->name < b->name;
  });
  (void)by;
  std::size_t left = updaters.size();
  std::map<std::string_view, Manager*> first;
  for (Manager* each : updaters) {
    if (left <= kMaxUpdateManagers) break;
    Manager*& bucket = first[each->api_version];
    if (bucket == nullptr) {
      bucket = each;
      continue;
    }
    bucket->name = "ancient-changes";
    bucket->subresource = {};
    bucket->time = each->time;
    bucket->entry = Value();
    bucket->written = {};
    bucket->set = Union(bucket->set, each->set, kOwned, managers.arena);
    each->set = nullptr;
    --left;
  }
  managers.DropEmpty();
}

Manager Updater(const FieldManager& by, std::string_view name) {
  Manager self;
  self.name = name.empty() ? "unknown" : name;
  self.operation = "Update";
  self.api_version = by.api_version;
  self.subresource = by.subresource;
  return self;
}

void Track(Value before, Value after, const FieldManager& by, std::string_view name,
           Managers& managers) {
  Changes changes(before, after, by, managers);
  if (changes.all() == nullptr) return;
  TakeFromOthers(changes, managers, nullptr, /*force=*/true);
  const FieldNode* taken =
      WithoutServerFields(Union(nullptr, changes.own(), kOwned, managers.arena), managers);
  if (taken != nullptr) {
    Manager self = Updater(by, name);
    Manager* known = managers.Find(self);
    if (known == nullptr) {
      managers.all.push_back(self);
      known = &managers.all.back();
    }
    known->time = by.now;
    if (!Includes(known->set, taken)) {
      managers.Set(*known, Union(known->set, taken, kOwned, managers.arena));
    }
  }
  CapUpdateManagers(managers, by);
}

// Writes the single entry of a new object directly. Returns false if the general path must be used.
bool TrackCreation(Value created, const FieldManager& by, Managers& managers) {
  FieldsWriter fields;
  if (!WriteCreatedFields(fields, created, *by.schema, managers.Parse(by.reset_fields),
                          ServerFields(), managers.arena)) {
    return false;
  }
  if (fields.size() == 0) return true;
  Manager self = Updater(by, by.manager);
  self.time = by.now;
  self.written = managers.arena.CopyText(fields.view());
  managers.all.push_back(self);
  return true;
}

Status ConflictStatus(const std::vector<Conflict>& conflicts) {
  Status status;
  status.code = 409;
  status.reason = "Conflict";
  std::map<std::string, std::vector<std::string>> by_manager;
  std::size_t count = 0;
  for (const Conflict& each : conflicts) {
    const std::string manager = each.manager.Text();
    ForEachPath(each.fields, [&](const std::string& path) {
      WorkBudget::Charge(path.size());
      if (++count > kMaxShownErrors || WorkBudget::IsExceeded()) return;
      status.causes.push_back({"FieldManagerConflict", StrCat("conflict with ", manager), path});
      by_manager[manager].push_back(path);
    });
  }
  if (count == 1 && !status.causes.empty()) {
    status.message = StrCat("Apply failed with 1 conflict: ", status.causes[0].message, ": ",
                            status.causes[0].field);
    return status;
  }
  status.message = StrCat("Apply failed with ", count, " conflicts: ");
  bool first = true;
  for (const auto& [manager, paths] : by_manager) {
    status.message += StrCat(first ? "" : "\n", "conflicts with ", manager, ":");
    first = false;
    for (const std::string& path : paths) status.message += StrCat("\n- ", path);
  }
  if (count > kMaxShownErrors) {
    status.message += StrCat("\nand ", count - kMaxShownErrors, " more conflicts");
  }
  return status;
}

Status PlainFailure(int code, std::string_view reason, std::string message) {
  Status status;
  status.code = code;
  status.reason = std::string(reason);
  status.message = std::move(message);
  return status;
}

// Removes what the manager applied earlier and no longer applies, unless somebody else owns it.
// Works in the version of the earlier apply.
TreePtr Prune(const TreePtr& merged, const Manager& last, Managers& managers,
              const FieldManager& by) {
  TreePtr whole = merged;
  const StructSchema* schema = by.schema;
  const bool other_version = last.api_version != by.api_version;
  if (other_version) {
    if (!by.convert) return merged;
    std::tie(whole, schema) = by.convert(merged->root(), last.api_version);
    if (schema == nullptr) return merged;
  }
  Arena& arena = managers.arena;
  auto named = [&](const FieldNode* set) { return WithNamedFields(set, *schema, arena); };
  auto set_of = [&](const TreePtr& tree) {
    managers.kept.push_back(tree);
    return named(FieldSetOf(tree->root(), *schema, arena));
  };
  const FieldNode* last_set = named(last.set);
  const FieldNode* all = set_of(whole);
  auto without = [&](const FieldNode* gone) {
    Draft draft = RemovePaths(whole->root(), gone, *schema, arena);
    if (!draft.is_object()) draft = Draft::Object();
    return draft.Freeze();
  };
  TreePtr pruned = without(last_set);
  // Whatever anybody owns comes back...
  const FieldNode* owned = nullptr;
  for (const Manager& each : managers.all) owned = Union(owned, each.set, kOwned, arena);
  pruned =
      without(Subtract(Subtract(all, set_of(pruned), kOwned, arena), named(owned), kOwned, arena));
  // ... and what nobody ever owned stays.
  pruned =
      without(Intersect(Subtract(all, set_of(pruned), kOwned, arena), last_set, kOwned, arena));
  if (!other_version) return pruned;
  auto [back, back_schema] = by.convert(pruned->root(), by.api_version);
  return back_schema == nullptr ? merged : back;
}

// kubectl's server-side apply may take over what its client-side apply recorded as its own.
const FieldNode* ClientSideFields(Value live, const FieldManager& by, Managers& managers) {
  const Value annotation = live["metadata"]["annotations"].Entry(kLastAppliedAnnotation);
  if (!annotation.is_string()) return nullptr;
  Result<TreePtr> last = ParseJson(annotation.str(), {.refuse_duplicates = false});
  if (!last.ok() || (*last)->root()["apiVersion"].str() != by.api_version) return nullptr;
  managers.kept.push_back(*last);
  const FieldNode* set = FieldSetOf((*last)->root(), *by.schema, managers.arena);
  const FieldNode* annotation_path = managers.Parse(managers.arena.CopyText(
      StrCat(R"({"f:metadata":{"f:annotations":{"f:)", kLastAppliedAnnotation, R"(":{}}}})")));
  return Union(set, annotation_path, kOwned, managers.arena);
}

}  // namespace

Draft TrackUpdate(Value before, Value after, const FieldManager& by) {
  const Value current = before["metadata"]["managedFields"];
  const Value sent = after["metadata"]["managedFields"];
  if (by.subresource.empty() && sent.size() == 1 && sent.at(0).is_object() &&
      sent.at(0)["manager"].str().empty() && sent.at(0)["operation"].str().empty() &&
      sent.at(0)["apiVersion"].str().empty() && !sent.at(0)["fieldsV1"].has_value()) {
    // A reset: nothing is tracked until the next apply.
    return Draft();
  }
  auto managers = std::make_shared<Managers>();
  bool read = false;
  if (by.subresource.empty() && !sent.empty() && !Equal(sent, current)) {
    read = managers->Read(sent) && !managers->all.empty();
    if (!read) managers->all.clear();
  }
  if (!read && !managers->Read(current)) managers->all.clear();
  if (managers->all.empty() && before.exists()) return Draft();
  if (!managers->all.empty() || !TrackCreation(after, by, *managers)) {
    Track(before, after, by, by.manager, *managers);
  }
  Draft out = managers->Write();
  out.KeepAlive(managers);
  return out;
}

std::variant<Applied, Status> ApplyConfiguration(Value live, Value applied, bool force,
                                                 const FieldManager& by) {
  const std::string_view version = applied["apiVersion"].str();
  if (version != by.api_version) {
    return PlainFailure(
        400, "BadRequest",
        StrCat("Incorrect version specified in apply patch. Specified patch version: ", version,
               ", expected: ", by.api_version));
  }
  if (applied["metadata"]["managedFields"].exists()) {
    return PlainFailure(400, "BadRequest", "metadata.managedFields must be nil");
  }
  if (std::vector<std::string> errors = CheckTyped(applied, *by.schema); !errors.empty()) {
    const std::string_view home = applied["metadata"]["namespace"].str();
    std::string text = errors.size() == 1 ? errors[0] : StrCat("errors:\n  ", Join(errors, "\n  "));
    return PlainFailure(500, "",
                        StrCat("failed to create typed patch object (", home,
                               home.empty() ? "" : "/", applied["metadata"]["name"].str(), "; ",
                               version, ", Kind=", applied["kind"].str(), "): ", text));
  }
  auto managers = std::make_shared<Managers>();
  if (!managers->Read(live["metadata"]["managedFields"])) {
    return PlainFailure(500, "", "failed to decode managed fields: an entry is not valid");
  }
  if (managers->all.empty() && live.exists()) {
    // Fields set before the first apply get an entry of their own.
    Track(Value(), live, by, "before-first-apply", *managers);
  }
  Manager self;
  self.name = by.manager;
  self.operation = "Apply";
  self.api_version = by.api_version;
  self.subresource = by.subresource;

  // The entries themselves are not merged.
  Draft bare = live.exists() ? Draft(live) : Draft::Object();
  if (Draft* metadata = bare.Find("metadata")) metadata->Remove("managedFields");
  const TreePtr base = bare.Freeze();
  managers->kept.push_back(base);
  TreePtr merged = MergeTyped(base->root(), applied, *by.schema).Freeze();
  const FieldNode* claimed = SubtractBelow(FieldSetOf(applied, *by.schema, managers->arena),
                                           managers->Parse(by.reset_fields), managers->arena);
  Manager* known = managers->Find(self);
  const std::optional<Manager> last = known == nullptr ? std::nullopt : std::optional(*known);
  if (known == nullptr) {
    managers->all.push_back(self);
    known = &managers->all.back();
  }
  known->api_version = by.api_version;
  if (!last || last->api_version != by.api_version || !SameSet(claimed, last->set)) {
    known->entry = Value();
    known->written = {};
    known->set = claimed;
  }
  if (last && last->set != nullptr) merged = Prune(merged, *last, *managers, by);
  managers->kept.push_back(merged);

  Changes changes(base->root(), merged->root(), by, *managers);
  std::vector<Conflict> conflicts = TakeFromOthers(changes, *managers, &self, force);
  if (!conflicts.empty() && by.manager == "kubectl") {
    // Migration from client-side apply: what it recorded belongs to the user.
    const FieldNode* allowed = ClientSideFields(live, by, *managers);
    for (Conflict& each : conflicts) {
      each.fields = Subtract(each.fields, allowed, kOwned, managers->arena);
    }
    std::erase_if(conflicts, [](const Conflict& each) { return each.fields == nullptr; });
    if (conflicts.empty()) TakeFromOthers(changes, *managers, &self, /*force=*/true);
  }
  if (!conflicts.empty()) return ConflictStatus(conflicts);

  Applied out;
  // A new order of elements is a change too, although no field records it.
  out.changed = !live.exists() || !Equal(base->root(), merged->root());
  if (Manager* mine = managers->Find(self)) {
    managers->Set(*mine, WithoutServerFields(mine->set, *managers));
    if (out.changed) mine->time = by.now;
  }
  managers->DropEmpty();
  Draft object(merged);
  if (by.manager == "kubectl" &&
      merged->root()["metadata"]["annotations"].Entry(kLastAppliedAnnotation).has_value()) {
    object["metadata"]["annotations"].Entry(kLastAppliedAnnotation) =
        WriteJson(applied, {.sort_members = true, .final_newline = true});
  }
  Draft entries = managers->Write();
  if (entries.exists()) object["metadata"]["managedFields"] = std::move(entries);
  out.object = object.Freeze();
  return out;
}

}  // namespace drakkar::api
