#include <algorithm>

#include "api/json/reader.h"
#include "api/meta/quantity.h"
#include "api/meta/status.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "cli/age.h"
#include "cli/commands.h"
#include "cli/foreign_kinds.h"
#include "cli/get_devices.h"
#include "cli/output.h"
#include "cli/resource_names.h"
#include "cli/session.h"
#include "cli/sorting.h"
#include "cli/table.h"
#include "client/http_client.h"

namespace drakkar::cli {
namespace {

using api::Draft;
using api::KindSchema;
using api::TreePtr;
using api::Value;

constexpr std::string_view kAcceptTable =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

// A table with the columns that every kind has, for servers that do not render tables.
TreePtr MakeTable(Value answer, WallTime now) {
  Draft table = {{"kind", "Table"}, {"rows", Draft::Array()}};
  table["columnDefinitions"] =
      Draft::Array({Draft({{"name", "Name"}, {"format", "name"}}), Draft({{"name", "Age"}})});
  auto add = [&](Value object) {
    Draft row;
    row["cells"] = Draft::Array({Draft(object["metadata"]["name"].str()),
                                 Draft(AgeOf(object["metadata"]["creationTimestamp"].str(), now))});
    row["object"] = Draft(object);
    table["rows"].Append(std::move(row));
  };
  if (answer["items"].is_array()) {
    for (Value item : answer["items"].elements()) add(item);
  } else {
    add(answer);
  }
  table["metadata"] = Draft(answer["metadata"]);
  return table.Freeze();
}

class GetRun {
 public:
  GetRun(const Arguments& arguments, Console& console, Session& session, OutputFormat format)
      : arguments_(arguments), console_(console), session_(session), format_(std::move(format)) {}

  int Run(const ResourceSelection& selection) {
    const bool watches = arguments_.Bool("watch") || arguments_.Bool("watch-only");
    if (watches && (selection.kinds.size() > 1 || selection.items.size() > 1)) {
      console_.Error("--watch supports only one resource type or object");
      return kExitUsage;
    }
    if (watches)
      return Watch(*selection.kinds[0], selection.names_given ? selection.items[0].name : "");
    if (!format_.is_table()) return PrintAll(selection);
    bool any = false;
    for (const KindSchema* kind : selection.kinds) {
      Result<TreePtr> table = Table(*kind, selection);
      if (!table.ok()) {
        Fail(table.error());
        continue;
      }
      if ((*table)->root()["rows"].empty()) continue;
      if (any) console_.Out("\n");
      any = true;
      PrintTable(*kind, (*table)->root(), selection.kinds.size() > 1);
    }
    if (!any && exit_code_ == kExitOk) NothingFound(selection);
    return exit_code_;
  }

 private:
  void Fail(const Error& error) {
    if (error.code == ErrorCode::kNotFound && arguments_.Bool("ignore-not-found")) return;
    Report(console_, error);
    exit_code_ = kExitFailure;
  }

  void NothingFound(const ResourceSelection& selection) {
    if (arguments_.Bool("ignore-not-found")) return;
    const bool in_namespace = !arguments_.Bool("all-namespaces") &&
                              std::ranges::any_of(selection.kinds, [](const KindSchema* kind) {
                                return kind->namespaced;
                              });
    console_.Err(in_namespace
                     ? StrCat("No resources found in ", session_.namespace_(), " namespace.\n")
                     : "No resources found\n");
  }

  bool all_namespaces() const { return arguments_.Bool("all-namespaces"); }
  client::ResourceRef Ref(const KindSchema& kind, const std::string& name = {}) const {
    return session_.Ref(kind, name, all_namespaces() && name.empty());
  }
  bool NeedsObject() const { return !arguments_.Text("sort-by").empty(); }

  Result<TreePtr> AsTable(Result<TreePtr> answer) {
    if (!answer.ok() || (*answer)->root()["kind"].str() == "Table") return answer;
    return MakeTable((*answer)->root(), session_.clock().Now());
  }

  Result<TreePtr> TableOf(const client::ResourceRef& ref) {
    return AsTable(session_.List(ref, arguments_.Text("selector"),
                                 arguments_.Text("field-selector"), kAcceptTable,
                                 NeedsObject() ? "Object" : ""));
  }

  // The rows of a kind: the whole collection, or the named objects.
  Result<TreePtr> Table(const KindSchema& kind, const ResourceSelection& selection) {
    if (!selection.names_given) return TableOf(Ref(kind));
    Draft merged = {{"kind", "Table"}, {"rows", Draft::Array()}};
    for (const NamedResource& item : selection.items) {
      if (item.kind != &kind) continue;
      Result<TreePtr> table = AsTable(
          session_.GetPath(client::PathOf(Ref(kind, item.name)) +
                               QueryText({{"includeObject", NeedsObject() ? "Object" : ""}}),
                           kAcceptTable));
      if (!table.ok()) {
        Fail(table.error());
        continue;
      }
      if (!merged.Has("columnDefinitions")) {
        merged["columnDefinitions"] = Draft((*table)->root()["columnDefinitions"]);
      }
      for (Value row : (*table)->root()["rows"].elements()) merged["rows"].Append(Draft(row));
      merged.KeepAlive(*table);
      kept_.push_back(*table);
    }
    return merged.Freeze();
  }

  void PrintTable(const KindSchema& kind, Value table, bool several) {
    TablePrinter printer(TableOptionsFor(kind, several));
    console_.Out(printer.Print(table, SortedRows(table)));
  }

  TableOptions TableOptionsFor(const KindSchema& kind, bool several) const {
    TableOptions options;
    options.wide = format_.kind == OutputFormat::Kind::kWide;
    options.no_headers = arguments_.Bool("no-headers");
    options.with_namespace = all_namespaces() && kind.namespaced;
    options.show_labels = arguments_.Bool("show-labels");
    if (several || arguments_.Bool("show-kind")) options.name_prefix = SingularName(kind) + "/";
    return options;
  }

  // The row order for --sort-by; empty if it is not given.
  std::vector<std::size_t> SortedRows(Value table) {
    if (!NeedsObject()) return {};
    std::vector<Value> objects;
    for (Value row : table["rows"].elements()) objects.push_back(row["object"]);
    return SortedBy(arguments_.Text("sort-by"), objects);
  }

  int PrintAll(const ResourceSelection& selection) {
    std::vector<TreePtr> keep;
    std::vector<Value> objects;
    auto add_item = [&](Value item, const KindSchema& kind) {
      Draft draft(item);
      if (!item["kind"].exists()) {
        draft["kind"] = kind.kind;
        draft["apiVersion"] =
            api::GroupVersionKind{std::string(kind.group), std::string(kind.version),
                                  std::string(kind.kind)}
                .api_version();
      }
      keep.push_back(draft.Freeze());
      objects.push_back(keep.back()->root());
    };
    if (selection.names_given) {
      for (const NamedResource& item : selection.items) {
        Result<api::ObjectPtr> object = session_.Get(Ref(*item.kind, item.name));
        if (!object.ok()) {
          Fail(object.error());
        } else {
          add_item((*object)->root(), *item.kind);
        }
      }
      if (objects.empty()) return exit_code_;
    } else {
      for (const KindSchema* kind : selection.kinds) {
        Result<TreePtr> list = session_.List(Ref(*kind), arguments_.Text("selector"),
                                             arguments_.Text("field-selector"));
        if (!list.ok()) {
          Fail(list.error());
          continue;
        }
        for (Value item : (*list)->root()["items"].elements()) add_item(item, *kind);
      }
      if (exit_code_ != kExitOk && objects.empty()) return exit_code_;
    }
    PrintOptions options;
    options.no_headers = arguments_.Bool("no-headers");
    options.show_managed_fields = arguments_.Bool("show-managed-fields");
    console_.Out(PrintObjects(format_, objects,
                              !selection.names_given || selection.items.size() > 1, options));
    return exit_code_;
  }

  int Watch(const KindSchema& kind, const std::string& name) {
    const std::string fields =
        name.empty() ? arguments_.Text("field-selector") : StrCat("metadata.name=", name);
    const std::string_view accept = format_.is_table() ? kAcceptTable : std::string_view();
    Result<TreePtr> first = session_.List(Ref(kind), arguments_.Text("selector"), fields, accept);
    if (!first.ok()) {
      Fail(first.error());
      return exit_code_;
    }
    TablePrinter printer(TableOptionsFor(kind, false));
    if (!arguments_.Bool("watch-only")) {
      if (!name.empty() && RowsOrItems((*first)->root()).empty()) {
        Fail(NotFound(StrCat("Error from server (NotFound): ", PluralName(kind), " ", Quote(name),
                             " not found")));
        return exit_code_;
      }
      PrintWatched(printer, (*first)->root());
    }
    std::optional<Error> failure;
    const Result<void> ended = session_.StreamLines(
        client::PathOf(Ref(kind)) +
            QueryText({{"watch", "true"},
                       {"labelSelector", arguments_.Text("selector")},
                       {"fieldSelector", fields},
                       {"resourceVersion",
                        std::string((*first)->root()["metadata"]["resourceVersion"].str("0"))}}),
        accept, [&](std::string_view line) {
          Result<TreePtr> event = api::ParseJson(line);
          if (!event.ok()) {
            failure = event.error().Prefixed("watch event");
            return false;
          }
          const Value root = (*event)->root();
          if (root["type"].str() == "BOOKMARK") return true;
          if (root["type"].str() == "ERROR") {
            failure = api::ErrorFromStatus(api::Status::FromTree(root["object"]));
            return false;
          }
          PrintWatched(printer, root["object"]);
          return true;
        });
    if (failure) {
      Fail(*failure);
    } else if (!ended.ok()) {
      Fail(ended.error());
    }
    return exit_code_;
  }

  static Value RowsOrItems(Value answer) {
    return answer["rows"].is_array() ? answer["rows"] : answer["items"];
  }

  void PrintWatched(TablePrinter& printer, Value answer) {
    if (format_.is_table()) {
      if (answer["kind"].str() == "Table") {
        console_.Out(printer.Print(answer));
      } else {
        console_.Out(printer.Print(MakeTable(answer, session_.clock().Now())->root()));
      }
      return;
    }
    auto print = [&](Value object) {
      if (format_.kind == OutputFormat::Kind::kYaml && std::exchange(printed_one_, true)) {
        console_.Out("---\n");
      }
      console_.Out(PrintObjects(format_, {object}, false));
    };
    if (answer["items"].is_array()) {
      for (Value item : answer["items"].elements()) print(item);
    } else {
      print(answer);
    }
  }

  const Arguments& arguments_;
  Console& console_;
  Session& session_;
  const OutputFormat format_;
  std::vector<TreePtr> kept_;
  bool printed_one_ = false;
  int exit_code_ = kExitOk;
};

int RunGet(const Arguments& arguments, Console& console) {
  Result<OutputFormat> format = ParseOutputFormat(arguments.Text("output"));
  if (!format.ok()) {
    console.Error(format.error().message);
    return kExitUsage;
  }
  if (const std::string& type = arguments.positionals()[0]; type == "devices" || type == "device") {
    if (const std::string& path = arguments.Text("sort-by"); !path.empty()) {
      if (Result<JsonPath> parsed = JsonPath::ParsePath(path); !parsed.ok()) {
        console.Error(parsed.error().message);
        return kExitUsage;
      }
    }
    Result<std::unique_ptr<Session>> session = Session::Open(arguments, console);
    if (!session.ok()) {
      Report(console, session.error());
      return kExitFailure;
    }
    return GetDevices(arguments, console, **session, *format);
  }
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
  if (selection->names_given && arguments.Bool("all-namespaces")) {
    console.Error("a resource cannot be retrieved by name across all namespaces");
    return kExitUsage;
  }
  if (const std::string& path = arguments.Text("sort-by"); !path.empty()) {
    if (Result<JsonPath> parsed = JsonPath::ParsePath(path); !parsed.ok()) {
      console.Error(parsed.error().message);
      return kExitUsage;
    }
  }
  if (session == nullptr) {
    Result<std::unique_ptr<Session>> opened = Session::Open(arguments, console);
    if (!opened.ok()) {
      Report(console, opened.error());
      return kExitFailure;
    }
    session = std::move(*opened);
  }
  return GetRun(arguments, console, *session, std::move(*format)).Run(*selection);
}

}  // namespace

Command GetCommand() {
  Command command;
  command.name = "get";
  command.arguments = "TYPE[,TYPE...] [NAME...] | TYPE/NAME...";
  command.summary = "Show objects as a table, YAML or JSON";
  command.help =
      "TYPE is a plural, singular or short name: pods, pod, po. `all` selects the most common "
      "types. The server chooses the columns; -o wide shows more of them.";
  command.examples =
      "  # pods in the current namespace, in all namespaces, and their changes\n"
      "  drakkar get pods\n"
      "  drakkar get pods -A\n"
      "  drakkar get pods -w\n"
      "\n"
      "  # everything about devices\n"
      "  drakkar get nodes,resourceslices,resourceclaims,pods\n"
      "\n"
      "  # the state and health of devices and their holders; labels of a device are its "
      "attributes\n"
      "  drakkar get devices -o wide\n"
      "  drakkar get devices -l model=A100 --field-selector state=Free\n"
      "\n"
      "  # a whole object, one of its fields, a field of many objects\n"
      "  drakkar get resourceclaim/gpu -o yaml\n"
      "  drakkar get pod web -o jsonpath='{.status.phase}'\n"
      "  drakkar get pods -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'\n";
  command.section = "Objects";
  command.min_arguments = 1;
  command.group = FlagGroup::kCluster;
  command.flags = {
      {"output", 'o', FlagType::kString,
       "Format: wide, yaml, json, name, jsonpath=TEMPLATE, custom-columns=HEADER:PATH,...", "",
       "FORMAT"},
      {"all-namespaces", 'A', FlagType::kBool, "Use all namespaces.", "false"},
      {"selector", 'l', FlagType::kString, "Select objects by label: a=b,c!=d,e in (f,g).", "",
       "SELECTOR"},
      {"field-selector", 0, FlagType::kString,
       "Select objects by field: status.phase=Running,metadata.name!=x.", "", "SELECTOR"},
      {"watch", 'w', FlagType::kBool, "Show the objects, then each change until interrupted.",
       "false"},
      {"watch-only", 0, FlagType::kBool, "Show only changes.", "false"},
      {"show-labels", 0, FlagType::kBool, "Add a column with all labels.", "false"},
      {"show-kind", 0, FlagType::kBool, "Prefix names with their type, as in pod/web.", "false"},
      {"no-headers", 0, FlagType::kBool, "Omit the column headers.", "false"},
      {"sort-by", 0, FlagType::kString,
       "Sort by this field, for example .metadata.creationTimestamp.", "", "PATH"},
      {"ignore-not-found", 0, FlagType::kBool, "Succeed even if a named object does not exist.",
       "false"},
      {"show-managed-fields", 0, FlagType::kBool, "Keep metadata.managedFields in YAML and JSON.",
       "false"},
  };
  command.run = RunGet;
  return command;
}

}  // namespace drakkar::cli
