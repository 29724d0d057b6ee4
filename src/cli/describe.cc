#include "api/scheme/scheme.h"
#include "base/text/text.h"
#include "cli/commands.h"
#include "cli/describe_kinds.h"
#include "cli/description.h"
#include "cli/foreign_kinds.h"
#include "cli/resource_names.h"
#include "cli/session.h"

namespace drakkar::cli {
namespace {

using api::KindSchema;
using api::Value;

using Describer = void (*)(Description&, Value, const RelatedObjects&);

Describer FindDescriber(const KindSchema& kind) {
  if (kind.group.empty() && kind.kind == "Pod") return DescribePod;
  if (kind.group.empty() && kind.kind == "Node") return DescribeNode;
  if (kind.group == "resource.k8s.io" && kind.kind == "ResourceClaim") return DescribeResourceClaim;
  if (kind.group == "resource.k8s.io" && kind.kind == "ResourceSlice") return DescribeResourceSlice;
  return nullptr;
}

class DescribeRun {
 public:
  DescribeRun(const Arguments& arguments, Console& console, Session& session)
      : arguments_(arguments), console_(console), session_(session) {}

  int Run(const ResourceSelection& selection) {
    if (selection.names_given) {
      for (const NamedResource& item : selection.items) {
        Result<api::ObjectPtr> object = session_.Get(session_.Ref(*item.kind, item.name));
        if (!object.ok()) {
          Fail(object.error());
        } else {
          Show(*item.kind, (*object)->root());
        }
      }
      return exit_code_;
    }
    for (const KindSchema* kind : selection.kinds) {
      Result<api::TreePtr> list = session_.List(
          session_.Ref(*kind, "", arguments_.Bool("all-namespaces")), arguments_.Text("selector"));
      if (!list.ok()) {
        Fail(list.error());
        continue;
      }
      for (Value item : (*list)->root()["items"].elements()) Show(*kind, item);
    }
    if (!shown_any_ && exit_code_ == kExitOk) {
      console_.Err(StrCat("No resources found in ", session_.namespace_(), " namespace.\n"));
    }
    return exit_code_;
  }

 private:
  void Fail(const Error& error) {
    Report(console_, error);
    exit_code_ = kExitFailure;
  }

  void Show(const KindSchema& kind, Value object) {
    std::vector<api::TreePtr> kept;
    RelatedObjects related;
    related.now = session_.clock().Now();
    auto fetch = [&](std::string_view type, std::string_view namespace_, std::string_view name,
                     std::string_view fields) {
      const Result<const KindSchema*> found = FindType(type);
      if (!found.ok()) return Value();
      client::ResourceRef ref{*found, std::string(namespace_), std::string(name), ""};
      if (!name.empty()) {
        Result<api::ObjectPtr> answer = session_.Get(ref);
        if (!answer.ok()) return Value();
        kept.push_back((*answer)->tree());
      } else {
        Result<api::TreePtr> answer = session_.List(ref, {}, fields);
        if (!answer.ok()) return Value();
        kept.push_back(*answer);
      }
      return kept.back()->root();
    };
    related.get = [&](std::string_view type, std::string_view namespace_, std::string_view name) {
      return fetch(type, namespace_, name, "");
    };
    related.list = [&](std::string_view type, std::string_view namespace_,
                       std::string_view fields) { return fetch(type, namespace_, "", fields); };

    Description description;
    DescribeMetadata(description, object);
    if (Describer describer = FindDescriber(kind)) {
      describer(description, object, related);
    } else {
      for (const auto& member : object.members()) {
        if (member.name == "apiVersion" || member.name == "kind" || member.name == "metadata") {
          continue;
        }
        // Secrets show their size only.
        if (kind.kind == "Secret" && (member.name == "data" || member.name == "stringData")) {
          Entry& data = description.Add("Data");
          for (const auto& secret : member.value.members()) {
            data.entries.push_back(
                {std::string(secret.name), StrCat(secret.value.str().size() * 3 / 4, " bytes")});
          }
          continue;
        }
        DescribeAny(description, member.name, member.value);
      }
    }
    if (arguments_.Bool("show-events") && kind.kind != "Event") {
      AddEvents(description, kind, object, fetch);
    }
    if (shown_any_) console_.Out("\n\n");
    shown_any_ = true;
    console_.Out(PrintDescription(description));
  }

  template <typename Fetch>
  void AddEvents(Description& description, const KindSchema& kind, Value object, Fetch& fetch) {
    const Value metadata = object["metadata"];
    std::string fields =
        StrCat("involvedObject.kind=", kind.kind, ",involvedObject.name=", metadata["name"].str());
    // The node agent's events reference nodes by name, others by UID.
    if (kind.kind != "Node" && !metadata["uid"].str().empty()) {
      fields += StrCat(",involvedObject.uid=", metadata["uid"].str());
    }
    const Value events = fetch("events", metadata["namespace"].str(), "", fields);
    description.entries.push_back(EventsEntry(events["items"], session_.clock().Now()));
  }

  const Arguments& arguments_;
  Console& console_;
  Session& session_;
  bool shown_any_ = false;
  int exit_code_ = kExitOk;
};

int RunDescribe(const Arguments& arguments, Console& console) {
  std::unique_ptr<Session> session;
  Result<ResourceSelection> selection = ResolveSelection(arguments, console, session);
  if (!selection.ok()) {
    console.Error(selection.error().message);
    return kExitFailure;
  }
  if (selection->names_given && !arguments.Text("selector").empty()) {
    console.Error("a selector and names cannot be combined");
    return kExitUsage;
  }
  if (session == nullptr) {
    Result<std::unique_ptr<Session>> opened = Session::Open(arguments, console);
    if (!opened.ok()) {
      Report(console, opened.error());
      return kExitFailure;
    }
    session = std::move(*opened);
  }
  return DescribeRun(arguments, console, *session).Run(*selection);
}

}  // namespace

Command DescribeCommand() {
  Command command;
  command.name = "describe";
  command.arguments = "TYPE [NAME...] | TYPE/NAME...";
  command.summary = "Show details of objects: state, devices, conditions, events";
  command.help =
      "For a pod: its containers, claims and allocated devices. For a claim: its requests, "
      "devices and reservations. For a node: its devices and pods. Events are listed last, oldest "
      "first.";
  command.examples =
      "  drakkar describe pod web\n"
      "  drakkar describe resourceclaim/gpu\n"
      "  drakkar describe nodes\n";
  command.section = "Objects";
  command.min_arguments = 1;
  command.group = FlagGroup::kCluster;
  command.flags = {
      {"selector", 'l', FlagType::kString, "Select objects by label.", "", "SELECTOR"},
      {"all-namespaces", 'A', FlagType::kBool, "Use all namespaces.", "false"},
      {"show-events", 0, FlagType::kBool, "Show the object's events.", "true"},
  };
  command.run = RunDescribe;
  return command;
}

}  // namespace drakkar::cli
