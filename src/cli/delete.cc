#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/foreign_kinds.h"
#include "cli/manifest.h"
#include "cli/resource_names.h"
#include "cli/session.h"

namespace drakkar::cli {
namespace {

using api::Value;

struct Target {
  client::ResourceRef ref;
  std::string uid;  // the deleted object's; a new object with the same name has another one
};

Result<std::string> PropagationOf(const std::string& cascade) {
  if (cascade == "background" || cascade == "true") return std::string("Background");
  if (cascade == "foreground") return std::string("Foreground");
  if (cascade == "orphan" || cascade == "false") return std::string("Orphan");
  return InvalidArgument(StrCat("invalid value ", Quote(cascade),
                                " for --cascade: must be background, foreground or orphan"));
}

class DeleteRun {
 public:
  DeleteRun(const Arguments& arguments, Console& console)
      : arguments_(arguments), console_(console) {}

  int Run() {
    if (Result<void> ready = Prepare(); !ready.ok()) {
      console_.Error(ready.error().message);
      return kExitUsage;
    }
    if (session_ == nullptr) {
      Result<std::unique_ptr<Session>> session = Session::Open(arguments_, console_);
      if (!session.ok()) {
        Fail(session.error());
        return exit_code_;
      }
      session_ = std::move(*session);
    }
    for (client::ResourceRef& ref : FindTargets()) DeleteOne(std::move(ref));
    if (arguments_.Bool("wait") && !is_dry_run_) {
      for (const Target& target : deleted_) WaitFor(target);
    }
    if (deleted_.empty() && exit_code_ == kExitOk && !arguments_.Bool("ignore-not-found")) {
      console_.Out("No resources found\n");
    }
    return exit_code_;
  }

 private:
  Result<void> Prepare() {
    const bool has_files = !arguments_.List("filename").empty();
    const bool has_selector = !arguments_.Text("selector").empty() ||
                              !arguments_.Text("field-selector").empty() || arguments_.Bool("all");
    if (has_files && (!arguments_.positionals().empty() || has_selector)) {
      return InvalidArgument("-f and a resource type cannot be combined");
    }
    if (!has_files) {
      ASSIGN_OR_RETURN(selection_, ResolveSelection(arguments_, console_, session_));
      if (selection_.names_given && has_selector) {
        return InvalidArgument(
            "names cannot be combined with --selector, --field-selector or --all");
      }
      if (!selection_.names_given && !has_selector) {
        return InvalidArgument("nothing to delete; give names, --selector or --all");
      }
    }
    if (arguments_.Bool("now") && arguments_.Has("grace-period")) {
      return InvalidArgument("--now and --grace-period cannot be combined");
    }
    const std::string& dry_run = arguments_.Text("dry-run");
    if (dry_run != "none" && dry_run != "client") {
      return InvalidArgument(
          StrCat("invalid value ", Quote(dry_run), " for --dry-run: must be none or client"));
    }
    is_dry_run_ = dry_run == "client";
    ASSIGN_OR_RETURN(options_.propagation_policy, PropagationOf(arguments_.Text("cascade")));
    std::int64_t grace = arguments_.Int("grace-period");
    if (arguments_.Bool("now")) grace = 1;
    if (arguments_.Bool("force")) {
      if (grace > 0)
        return InvalidArgument("--force cannot be combined with a --grace-period above 0");
      grace = 0;
      console_.Err(
          "Warning: Immediate deletion does not wait for confirmation that the running "
          "resource has been terminated. The resource may continue to run on the cluster "
          "indefinitely.\n");
    } else if (grace == 0) {
      // Like kubectl: without --force, the minimum is one second.
      grace = 1;
    }
    if (grace >= 0) options_.grace_period_seconds = grace;
    return Ok();
  }

  void Fail(const Error& error) {
    if (error.code == ErrorCode::kNotFound && arguments_.Bool("ignore-not-found")) return;
    Report(console_, error);
    exit_code_ = kExitFailure;
  }

  std::vector<client::ResourceRef> FindTargets() {
    std::vector<client::ResourceRef> targets;
    if (!arguments_.List("filename").empty()) {
      Manifests manifests = ReadManifests(
          console_, arguments_.List("filename"),
          {arguments_.Bool("recursive"), /*foreign_kinds=*/true, api::Strictness::kIgnore});
      for (const Error& problem : manifests.problems) Fail(problem);
      for (ManifestObject& object : manifests.objects) {
        if (object.kind == nullptr) {
          const Value root = object.tree->root();
          Result<const api::KindSchema*> kind = FindForeignKind(
              *session_, root["apiVersion"].str(), root["kind"].str(), /*is_new=*/false);
          if (!kind.ok()) {
            Fail(kind.error().Prefixed(object.source));
            continue;
          }
          object.kind = *kind;
        }
        const Value metadata = object.tree->root()["metadata"];
        client::ResourceRef ref = session_->Ref(*object.kind, std::string(metadata["name"].str()));
        if (object.kind->namespaced && !metadata["namespace"].str().empty()) {
          ref.namespace_ = metadata["namespace"].str();
        }
        targets.push_back(std::move(ref));
      }
      return targets;
    }
    if (selection_.names_given) {
      for (const NamedResource& item : selection_.items) {
        targets.push_back(session_->Ref(*item.kind, item.name));
      }
      return targets;
    }
    for (const api::KindSchema* kind : selection_.kinds) {
      Result<api::TreePtr> list =
          session_->List(session_->Ref(*kind, "", arguments_.Bool("all-namespaces")),
                         arguments_.Text("selector"), arguments_.Text("field-selector"));
      if (!list.ok()) {
        Fail(list.error());
        continue;
      }
      for (Value item : (*list)->root()["items"].elements()) {
        client::ResourceRef ref;
        ref.kind = kind;
        ref.namespace_ = item["metadata"]["namespace"].str();
        ref.name = item["metadata"]["name"].str();
        targets.push_back(std::move(ref));
      }
    }
    return targets;
  }

  void DeleteOne(client::ResourceRef ref) {
    Target target{ref, ""};
    if (!is_dry_run_) {
      Result<api::ObjectPtr> answer = session_->Delete(ref, options_);
      if (!answer.ok()) return Fail(answer.error());
      const Value root = (*answer)->root();
      target.uid = (*answer)->kind() == "Status" ? root["details"]["uid"].str() : (*answer)->uid();
    } else if (Result<api::ObjectPtr> found = session_->Get(ref); !found.ok()) {
      return Fail(found.error());
    }
    if (arguments_.Text("output") == "name") {
      console_.Out(ObjectName(*ref.kind, ref.name) + "\n");
    } else {
      console_.Out(
          StrCat(SingularName(*ref.kind), " ", Quote(ref.name),
                 arguments_.Bool("force") ? " force deleted" : " deleted",
                 ref.namespace_.empty() ? "" : StrCat(" from ", ref.namespace_, " namespace"),
                 is_dry_run_ ? " (dry run)" : "", "\n"));
    }
    deleted_.push_back(std::move(target));
  }

  void WaitFor(const Target& target) {
    std::optional<Duration> timeout;
    if (arguments_.Time("timeout") > Duration{0}) timeout = arguments_.Time("timeout");
    const std::string name = ObjectName(*target.ref.kind, target.ref.name);
    Result<bool> gone =
        Follow(*session_, target.ref, timeout, StrCat(name, " to be deleted"), [&](Value object) {
          return !object.exists() ||
                 (!target.uid.empty() && object["metadata"]["uid"].str() != target.uid);
        });
    if (!gone.ok()) return Fail(gone.error());
    if (!*gone) {
      Fail(Error{ErrorCode::kDeadlineExceeded,
                 StrCat("timed out waiting for ", name, " to be deleted")});
    }
  }

  const Arguments& arguments_;
  Console& console_;
  std::unique_ptr<Session> session_;
  ResourceSelection selection_;
  client::DeleteOptions options_;
  bool is_dry_run_ = false;
  std::vector<Target> deleted_;
  int exit_code_ = kExitOk;
};

}  // namespace

Command DeleteCommand() {
  Command command;
  command.name = "delete";
  command.arguments = "TYPE NAME... | TYPE/NAME... | -f FILE";
  command.summary = "Delete objects and wait until they are deleted";
  command.help =
      "Pods terminate within their grace period. The command returns when the objects are "
      "deleted; with --wait=false it returns immediately.";
  command.examples =
      "  drakkar delete pod web\n"
      "  drakkar delete -f examples/hello-device/\n"
      "  drakkar delete pods -l app=web --wait=false\n"
      "  drakkar delete pod stuck --grace-period=0 --force\n";
  command.section = "Objects";
  command.group = FlagGroup::kCluster;
  command.flags = {
      {"filename", 'f', FlagType::kRepeated, "Delete the objects in these manifests.", "", "FILE"},
      {"recursive", 'R', FlagType::kBool, "Process subdirectories as well.", "false"},
      {"selector", 'l', FlagType::kString, "Select objects by label.", "", "SELECTOR"},
      {"field-selector", 0, FlagType::kString, "Select objects by field.", "", "SELECTOR"},
      {"all", 0, FlagType::kBool, "Delete all objects of the type in the namespace.", "false"},
      {"all-namespaces", 'A', FlagType::kBool, "With a selector or --all: use all namespaces.",
       "false"},
      {"grace-period", 0, FlagType::kInt,
       "Seconds to terminate gracefully; -1 uses the pod's own setting.", "-1", "SECONDS"},
      {"now", 0, FlagType::kBool, "The same as --grace-period=1.", "false"},
      {"force", 0, FlagType::kBool,
       "With --grace-period=0: delete the object without waiting for the node.", "false"},
      {"wait", 0, FlagType::kBool, "Wait until the objects are deleted.", "true"},
      {"timeout", 0, FlagType::kDuration, "How long to wait; 0 waits indefinitely.", "0s",
       "DURATION"},
      {"cascade", 0, FlagType::kString,
       "How to delete dependents: background, foreground or orphan.", "background", "MODE",
       "background"},
      {"ignore-not-found", 0, FlagType::kBool, "Succeed even if an object does not exist.",
       "false"},
      {"dry-run", 0, FlagType::kString, "client: only print what would be deleted.", "none", "MODE",
       "client"},
      {"output", 'o', FlagType::kString, "name: print only the names.", "", "FORMAT"},
  };
  command.run = [](const Arguments& arguments, Console& console) {
    return DeleteRun(arguments, console).Run();
  };
  return command;
}

}  // namespace drakkar::cli
