#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/foreign_kinds.h"
#include "cli/jsonpath.h"
#include "cli/resource_names.h"
#include "cli/session.h"

namespace drakkar::cli {
namespace {

using api::Value;

// The condition to wait for.
struct Goal {
  enum class Kind { kCondition, kDelete, kCreate, kJsonPath };
  Kind kind = Kind::kDelete;
  std::string condition;
  std::optional<JsonPath> path;
  std::optional<std::string> value;  // if unset, the path must exist

  bool IsMet(Value object) const {
    switch (kind) {
      case Kind::kDelete:
        return !object.exists();
      case Kind::kCreate:
        return object.exists();
      case Kind::kCondition:
        for (Value entry : object["status"]["conditions"].elements()) {
          if (ToLower(entry["type"].str()) != condition) continue;
          // Ignore a condition that describes an older generation of the object.
          const std::optional<std::int64_t> seen = entry["observedGeneration"].optional_integer();
          if (seen && *seen < object["metadata"]["generation"].integer()) return false;
          return ToLower(entry["status"].str()) == *value;
        }
        return false;
      case Kind::kJsonPath: {
        const std::vector<Value> found = path->Find(object);
        if (!value) return !found.empty();
        return found.size() == 1 && PlainText(found.front()) == *value;
      }
    }
    return false;
  }
};

Result<Goal> ParseGoal(const std::string& text) {
  Goal goal;
  if (text == "delete") return goal;
  if (text == "create") {
    goal.kind = Goal::Kind::kCreate;
    return goal;
  }
  if (text.starts_with("condition=")) {
    goal.kind = Goal::Kind::kCondition;
    const std::string rest = text.substr(10);
    const std::size_t equals = rest.find('=');
    goal.condition = ToLower(rest.substr(0, equals));
    goal.value = equals == std::string::npos ? "true" : ToLower(rest.substr(equals + 1));
    if (goal.condition.empty())
      return InvalidArgument("--for=condition= needs the condition's type");
    return goal;
  }
  if (text.starts_with("jsonpath=")) {
    goal.kind = Goal::Kind::kJsonPath;
    std::string rest = text.substr(9);
    // "{.a[?(@.b==1)].c}=x": the value follows the closing brace.
    std::size_t equals = rest.starts_with('{') ? rest.rfind('}') : std::string::npos;
    equals = equals == std::string::npos ? rest.rfind('=') : rest.find('=', equals);
    if (equals != std::string::npos) {
      goal.value = rest.substr(equals + 1);
      rest = rest.substr(0, equals);
      if (goal.value->empty())
        return InvalidArgument("--for=jsonpath=PATH= needs a value after the =");
    }
    ASSIGN_OR_RETURN(goal.path, JsonPath::ParsePath(rest));
    return goal;
  }
  return InvalidArgument(StrCat("invalid value ", Quote(text),
                                " for --for: must be delete, create, condition=TYPE[=VALUE] or "
                                "jsonpath=PATH[=VALUE]"));
}

int RunWait(const Arguments& arguments, Console& console) {
  auto usage = [&](const std::string& message) {
    console.Error(message);
    return kExitUsage;
  };
  if (!arguments.Has("for")) {
    return usage("--for is required, for example --for=condition=Ready");
  }
  Result<Goal> goal = ParseGoal(arguments.Text("for"));
  if (!goal.ok()) return usage(goal.error().message);
  std::unique_ptr<Session> opened;
  Result<ResourceSelection> selection = ResolveSelection(arguments, console, opened);
  if (!selection.ok()) return usage(selection.error().message);
  const bool selects = !arguments.Text("selector").empty() || arguments.Bool("all");
  if (!selection->names_given && !selects) {
    return usage("nothing to wait for; give names, --selector or --all");
  }
  if (opened == nullptr) {
    Result<std::unique_ptr<Session>> connected = Session::Open(arguments, console);
    if (!connected.ok()) {
      Report(console, connected.error());
      return kExitFailure;
    }
    opened = std::move(*connected);
  }
  Session& session = *opened;

  std::vector<client::ResourceRef> targets;
  for (const NamedResource& item : selection->items) {
    targets.push_back(session.Ref(*item.kind, item.name));
  }
  if (!selection->names_given) {
    for (const api::KindSchema* kind : selection->kinds) {
      Result<api::TreePtr> list =
          session.List(session.Ref(*kind, "", arguments.Bool("all-namespaces")),
                       arguments.Text("selector"), arguments.Text("field-selector"));
      if (!list.ok()) {
        Report(console, list.error());
        return kExitFailure;
      }
      for (Value item : (*list)->root()["items"].elements()) {
        client::ResourceRef ref;
        ref.kind = kind;
        ref.namespace_ = item["metadata"]["namespace"].str();
        ref.name = item["metadata"]["name"].str();
        targets.push_back(std::move(ref));
      }
    }
    if (targets.empty() && goal->kind != Goal::Kind::kDelete) {
      console.Error("no matching resources found");
      return kExitFailure;
    }
  }

  // One deadline for all objects. A negative timeout waits indefinitely.
  const MonotonicTime start = session.clock().Monotonic();
  const Duration timeout = arguments.Time("timeout");
  int exit_code = kExitOk;
  for (const client::ResourceRef& ref : targets) {
    std::optional<Duration> left;
    if (timeout >= Duration{0}) {
      left = std::max(Duration{0}, timeout - (session.clock().Monotonic() - start));
    }
    const std::string name = ObjectName(*ref.kind, ref.name);
    // Wait for a missing object only if the goal is create or delete.
    bool missing = false;
    Result<bool> met =
        Follow(session, ref, left, StrCat(name, ": ", arguments.Text("for")), [&](Value object) {
          missing = !object.exists() && goal->kind != Goal::Kind::kCreate &&
                    goal->kind != Goal::Kind::kDelete;
          return missing || goal->IsMet(object);
        });
    if (!met.ok()) {
      Report(console, met.error());
      exit_code = kExitFailure;
    } else if (missing) {
      Report(console, NotFound(StrCat("Error from server (NotFound): ", PluralName(*ref.kind), " ",
                                      Quote(ref.name), " not found")));
      exit_code = kExitFailure;
    } else if (!*met) {
      console.Error(
          StrCat("timed out waiting for the condition on ", ref.kind->plural, "/", ref.name));
      exit_code = kExitFailure;
    } else {
      console.Out(StrCat(name, " condition met\n"));
    }
  }
  return exit_code;
}

}  // namespace

Command WaitCommand() {
  Command command;
  command.name = "wait";
  command.arguments = "TYPE/NAME... | TYPE NAME... | TYPE -l SELECTOR";
  command.summary = "Wait until objects have a condition or value, exist, or are deleted";
  command.help =
      "Returns as soon as the condition is met, without polling. Exits with 1 on timeout.";
  command.examples =
      "  drakkar wait --for=condition=Ready pod/web --timeout=60s\n"
      "  drakkar wait --for=jsonpath='{.status.phase}'=Succeeded pod/hello\n"
      "  drakkar wait --for=delete pod/web\n"
      "  drakkar wait --for=create resourceclaim/gpu\n";
  command.section = "Objects";
  command.min_arguments = 1;
  command.group = FlagGroup::kCluster;
  command.flags = {
      {"for", 0, FlagType::kString,
       "delete, create, condition=TYPE[=VALUE] (VALUE is true if not given), or "
       "jsonpath=PATH[=VALUE].",
       "", "GOAL"},
      {"timeout", 0, FlagType::kDuration,
       "How long to wait; 0 checks once, a negative value waits indefinitely.", "30s", "DURATION"},
      {"selector", 'l', FlagType::kString, "Select objects by label.", "", "SELECTOR"},
      {"field-selector", 0, FlagType::kString, "Select objects by field.", "", "SELECTOR"},
      {"all", 0, FlagType::kBool, "Wait for all objects of the type in the namespace.", "false"},
      {"all-namespaces", 'A', FlagType::kBool, "With a selector or --all: use all namespaces.",
       "false"},
  };
  command.run = RunWait;
  return command;
}

}  // namespace drakkar::cli
