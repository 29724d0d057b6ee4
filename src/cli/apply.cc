#include "api/codec/yaml_writer.h"
#include "api/json/writer.h"
#include "api/meta/annotations.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "cli/apply_patch.h"
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/foreign_kinds.h"
#include "cli/manifest.h"
#include "cli/output.h"
#include "cli/resource_names.h"
#include "cli/session.h"

namespace drakkar::cli {
namespace {

using api::Draft;
using api::TreePtr;
using api::Value;

enum class DryRun { kNone, kClient, kServer };

// Attempts to rebuild a patch after a conflict.
constexpr int kMaxConflicts = 5;

Result<DryRun> ReadDryRun(const std::string& text) {
  if (text == "none" || text.empty()) return DryRun::kNone;
  if (text == "client") return DryRun::kClient;
  if (text == "server") return DryRun::kServer;
  return InvalidArgument(
      StrCat("invalid value ", Quote(text), " for --dry-run: must be none, client or server"));
}

Result<api::Strictness> ReadValidate(const std::string& text) {
  if (text == "strict" || text == "true") return api::Strictness::kStrict;
  if (text == "warn") return api::Strictness::kWarn;
  if (text == "ignore" || text == "false") return api::Strictness::kIgnore;
  return InvalidArgument(
      StrCat("invalid value ", Quote(text), " for --validate: must be strict, warn or ignore"));
}

// What apply and create share: reading manifests, choosing the namespace, printing results.
class ManifestRun {
 public:
  ManifestRun(const Arguments& arguments, Console& console)
      : arguments_(arguments), console_(console) {}
  virtual ~ManifestRun() = default;

  int Run() {
    if (Result<void> ready = Prepare(); !ready.ok()) {
      console_.Error(ready.error().message);
      return kExitUsage;
    }
    Manifests manifests =
        ReadManifests(console_, arguments_.List("filename"),
                      {arguments_.Bool("recursive"), /*foreign_kinds=*/true, strictness_});
    for (const std::string& warning : manifests.warnings) {
      console_.Err(StrCat("Warning: ", warning, "\n"));
    }
    for (const Error& problem : manifests.problems) Fail(problem);
    if (manifests.objects.empty()) return exit_code_;
    Result<std::unique_ptr<Session>> session = Session::Open(arguments_, console_);
    if (!session.ok()) {
      Report(console_, session.error());
      return kExitFailure;
    }
    session_ = std::move(*session);
    bool defines = false;
    for (ManifestObject& object : manifests.objects) {
      if (object.kind == nullptr) {
        const Value root = object.tree->root();
        Result<const api::KindSchema*> kind = FindForeignKind(
            *session_, root["apiVersion"].str(), root["kind"].str(), /*is_new=*/defines);
        if (!kind.ok()) {
          Fail(kind.error().Prefixed(object.source));
          continue;
        }
        object.kind = *kind;
      }
      defines = defines || object.kind->kind == "CustomResourceDefinition" ||
                object.kind->kind == "APIService";
      Result<TreePtr> placed = Place(object);
      if (!placed.ok()) {
        Fail(placed.error().Prefixed(object.source));
        continue;
      }
      Do(object, *placed);
    }
    if (!printed_.empty()) {
      std::vector<Value> values;
      for (const TreePtr& tree : printed_) values.push_back(tree->root());
      console_.Out(PrintObjects(format_, values, false));
    }
    return exit_code_;
  }

 protected:
  virtual void Do(const ManifestObject& object, TreePtr tree) = 0;

  void Fail(const Error& error) {
    Report(console_, error);
    exit_code_ = kExitFailure;
  }

  // Appends where the object is in the manifests. The server's message stays first.
  void FailFor(const ManifestObject& object, Error error) {
    error.message += StrCat(" (", object.source, ")");
    Fail(error);
  }

  client::ResourceRef RefOf(const ManifestObject& object, Value tree, bool collection) const {
    client::ResourceRef ref;
    ref.kind = object.kind;
    ref.namespace_ = tree["metadata"]["namespace"].str();
    if (!collection) ref.name = tree["metadata"]["name"].str();
    return ref;
  }

  client::WriteOptions Options(std::string_view default_manager) const {
    client::WriteOptions options;
    options.field_manager = arguments_.Text("field-manager").empty()
                                ? std::string(default_manager)
                                : arguments_.Text("field-manager");
    options.dry_run = dry_run_ == DryRun::kServer;
    return options;
  }

  // "pod/x created (dry run)", or with -o the object.
  void Done(const ManifestObject& object, Value result, std::string_view what) {
    if (!arguments_.Text("output").empty()) {
      Draft draft(result);
      if (!result["kind"].exists()) draft["kind"] = object.kind->kind;
      printed_.push_back(draft.Freeze());
      return;
    }
    const std::string_view suffix = dry_run_ == DryRun::kClient   ? " (dry run)"
                                    : dry_run_ == DryRun::kServer ? " (server dry run)"
                                                                  : "";
    console_.Out(StrCat(ObjectName(*object.kind, result["metadata"]["name"].str()), " ", what,
                        suffix, "\n"));
  }

  const Arguments& arguments_;
  Console& console_;
  std::unique_ptr<Session> session_;
  DryRun dry_run_ = DryRun::kNone;
  OutputFormat format_;
  int exit_code_ = kExitOk;

 private:
  Result<void> Prepare() {
    if (arguments_.List("filename").empty()) {
      return InvalidArgument(
          "no manifest given; use -f with a file, a directory, or - for standard input");
    }
    ASSIGN_OR_RETURN(dry_run_, ReadDryRun(arguments_.Text("dry-run")));
    ASSIGN_OR_RETURN(strictness_, ReadValidate(arguments_.Text("validate")));
    ASSIGN_OR_RETURN(format_, ParseOutputFormat(arguments_.Text("output")));
    return Ok();
  }

  // Returns the manifest with its target namespace filled in.
  Result<TreePtr> Place(const ManifestObject& object) {
    const Value metadata = object.tree->root()["metadata"];
    Draft draft(object.tree);
    if (!object.kind->namespaced) {
      if (metadata["namespace"].exists()) draft["metadata"].Remove("namespace");
      return draft.Freeze();
    }
    const std::string_view own = metadata["namespace"].str();
    if (own.empty()) {
      draft["metadata"]["namespace"] = session_->namespace_();
    } else if (arguments_.Has("namespace") && own != session_->namespace_()) {
      return InvalidArgument(StrCat("the manifest's namespace ", Quote(own),
                                    " does not match --namespace ", Quote(session_->namespace_()),
                                    "; use --namespace=", own, " or omit --namespace"));
    }
    return draft.Freeze();
  }

  api::Strictness strictness_ = api::Strictness::kStrict;
  std::vector<TreePtr> printed_;
};

class ApplyRun final : public ManifestRun {
 public:
  using ManifestRun::ManifestRun;

 private:
  void Do(const ManifestObject& object, TreePtr tree) override {
    if (tree->root()["metadata"]["name"].str().empty()) {
      return Fail(InvalidArgument(StrCat(
          object.source, ": apply requires metadata.name; generateName works only with create")));
    }
    if (arguments_.Bool("server-side")) return ServerSide(object, tree);
    for (int attempt = 1;; ++attempt) {
      Error conflict;
      if (TryApply(object, tree, conflict)) return;
      if (attempt == kMaxConflicts) return FailFor(object, conflict);
    }
  }

  void ServerSide(const ManifestObject& object, const TreePtr& tree) {
    client::WriteOptions options = Options("kubectl");
    options.force = arguments_.Bool("force-conflicts");
    Result<api::ObjectPtr> result =
        session_->Patch(RefOf(object, tree->root(), false), client::PatchType::kApply,
                        api::WriteJson(tree->root()), options);
    if (!result.ok()) return FailFor(object, result.error());
    Done(object, (*result)->root(), "serverside-applied");
  }

  // Returns false if someone else changed the object in the meantime.
  bool TryApply(const ManifestObject& object, const TreePtr& tree, Error& conflict) {
    const client::ResourceRef ref = RefOf(object, tree->root(), false);
    const TreePtr modified = WithLastApplied(tree->root());
    Result<api::ObjectPtr> current = session_->Get(ref);
    if (!current.ok() && current.error().code == ErrorCode::kNotFound) {
      return CreateIt(object, modified, conflict);
    }
    if (!current.ok()) {
      FailFor(object, current.error());
      return true;
    }
    if (!(*current)
             ->root()["metadata"]["annotations"]
             .Entry(api::kLastAppliedAnnotation)
             .exists()) {
      console_.Err(StrCat("Warning: ", ObjectName(*object.kind, ref.name),
                          " was not created by apply; fields that are not in the manifest are left "
                          "unchanged\n"));
    }
    const api::StructSchema* schema = object.kind->schema;
    Result<std::string> patch =
        schema == nullptr ? CreateMergePatch((*current)->root(), modified->root())
                          : CreateApplyPatch((*current)->root(), modified->root(), *schema);
    if (!patch.ok()) {
      FailFor(object, patch.error());
      return true;
    }
    if (*patch == "{}") {
      Done(object, (*current)->root(), "unchanged");
      return true;
    }
    if (dry_run_ == DryRun::kClient) {
      Done(object, (*current)->root(), "configured");
      return true;
    }
    const client::PatchType type =
        schema == nullptr ? client::PatchType::kMerge : client::PatchType::kStrategicMerge;
    Result<api::ObjectPtr> result =
        session_->Patch(ref, type, *patch, Options("kubectl-client-side-apply"));
    if (!result.ok()) return Recover(object, ref, modified, result.error(), conflict);
    const bool same = dry_run_ == DryRun::kNone &&
                      (*result)->resource_version() == (*current)->resource_version();
    Done(object, (*result)->root(), same ? "unchanged" : "configured");
    return true;
  }

  bool CreateIt(const ManifestObject& object, const TreePtr& modified, Error& conflict) {
    if (dry_run_ == DryRun::kClient) {
      Done(object, modified->root(), "created");
      return true;
    }
    Result<api::ObjectPtr> created = session_->Create(
        RefOf(object, modified->root(), true), modified, Options("kubectl-client-side-apply"));
    if (!created.ok() && created.error().code == ErrorCode::kAlreadyExists) {
      conflict = created.error();
      return false;
    }
    if (!created.ok()) {
      FailFor(object, created.error());
    } else {
      Done(object, (*created)->root(), "created");
    }
    return true;
  }

  bool Recover(const ManifestObject& object, const client::ResourceRef& ref,
               const TreePtr& modified, const Error& error, Error& conflict) {
    if (error.code == ErrorCode::kConflict && !arguments_.Bool("force")) {
      conflict = error;
      return false;
    }
    if (!arguments_.Bool("force")) {
      FailFor(object, error);
      return true;
    }
    // --force: delete and recreate an object that cannot be changed.
    client::DeleteOptions options;
    options.propagation_policy = "Background";
    Result<api::ObjectPtr> deleted = session_->Delete(ref, options);
    if (!deleted.ok() && deleted.error().code != ErrorCode::kNotFound) {
      FailFor(object, deleted.error());
      return true;
    }
    Result<bool> gone = Follow(*session_, ref, std::nullopt,
                               StrCat(ObjectName(*object.kind, ref.name), " to be deleted"),
                               [](Value found) { return !found.exists(); });
    if (!gone.ok()) {
      FailFor(object, gone.error());
      return true;
    }
    return CreateIt(object, modified, conflict);
  }
};

class CreateRun final : public ManifestRun {
 public:
  using ManifestRun::ManifestRun;

 private:
  void Do(const ManifestObject& object, TreePtr tree) override {
    if (arguments_.Bool("save-config")) tree = WithLastApplied(tree->root());
    if (dry_run_ == DryRun::kClient) return Done(object, tree->root(), "created");
    Result<api::ObjectPtr> created =
        session_->Create(RefOf(object, tree->root(), true), tree, Options("kubectl-create"));
    if (!created.ok()) return FailFor(object, created.error());
    Done(object, (*created)->root(), "created");
  }
};

std::vector<Flag> ManifestFlags() {
  return {
      {"filename", 'f', FlagType::kRepeated,
       "A file, a directory, or - for standard input. May be repeated.", "", "FILE"},
      {"recursive", 'R', FlagType::kBool, "Process subdirectories as well.", "false"},
      {"dry-run", 0, FlagType::kString,
       "client: only print what would be done; server: validate on the server without saving.",
       "none", "MODE", "client"},
      {"output", 'o', FlagType::kString, "Print the objects as yaml, json, name or jsonpath=...",
       "", "FORMAT"},
      {"validate", 0, FlagType::kString,
       "Unknown fields: strict rejects them, warn warns, ignore accepts them silently.", "strict",
       "MODE", "strict"},
      {"field-manager", 0, FlagType::kString,
       "Name under which the server records field ownership.", "", "NAME"},
  };
}

}  // namespace

Command ApplyCommand() {
  Command command;
  command.name = "apply";
  command.arguments = "-f FILE|DIRECTORY|-";
  command.summary = "Create or update objects from manifests";
  command.help =
      "Manifests are YAML or JSON, with several documents per file. Fields that were in the last "
      "applied manifest and are missing now are removed; fields that were never in a manifest are "
      "left alone. If an object cannot be applied, an error gives its file and line, and the "
      "other objects are still applied.";
  command.examples =
      "  # everything in a directory\n"
      "  drakkar apply -f examples/hello-device/\n"
      "\n"
      "  # what would happen\n"
      "  drakkar apply -f pod.yaml --dry-run=server\n"
      "\n"
      "  # from another program\n"
      "  generate | drakkar apply -f -\n";
  command.section = "Objects";
  command.max_arguments = 0;
  command.group = FlagGroup::kCluster;
  command.flags = ManifestFlags();
  command.flags.push_back({"server-side", 0, FlagType::kBool,
                           "Let the server merge, based on field ownership.", "false"});
  command.flags.push_back({"force-conflicts", 0, FlagType::kBool,
                           "With --server-side: take over fields that others own.", "false"});
  command.flags.push_back({"force", 0, FlagType::kBool,
                           "Delete and recreate objects that cannot be updated.", "false"});
  command.run = [](const Arguments& arguments, Console& console) {
    return ApplyRun(arguments, console).Run();
  };
  return command;
}

Command CreateCommand() {
  Command command;
  command.name = "create";
  command.arguments = "-f FILE|DIRECTORY|-";
  command.summary = "Create objects from manifests; fail if they exist";
  command.help =
      "Manifests are YAML or JSON, with several documents per file. Unlike apply, create supports "
      "metadata.generateName and fails if an object already exists.";
  command.examples =
      "  drakkar create -f claim.yaml\n"
      "  drakkar create -f job-pod.yaml -o name\n";
  command.section = "Objects";
  command.max_arguments = 0;
  command.group = FlagGroup::kCluster;
  command.flags = ManifestFlags();
  command.flags.push_back(
      {"save-config", 0, FlagType::kBool,
       "Store the manifest in an annotation so that apply can update the object later.", "false"});
  command.run = [](const Arguments& arguments, Console& console) {
    return CreateRun(arguments, console).Run();
  };
  return command;
}

}  // namespace drakkar::cli
