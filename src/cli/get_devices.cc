#include "cli/get_devices.h"

#include <map>
#include <set>
#include <utility>

#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/text/text.h"
#include "cli/age.h"
#include "cli/table.h"

namespace drakkar::cli {
namespace {

using api::Draft;
using api::TreePtr;
using api::Value;

struct DeviceId {
  std::string driver, pool, device;
  auto operator<=>(const DeviceId&) const = default;
};

struct DeviceRow {
  std::string node;  // empty: not of one node
  std::set<std::string> claims;
  std::set<std::string> pods;
  std::string health = "Unknown";
  std::string since;
  std::string message;
  bool operator==(const DeviceRow&) const = default;
};

using DeviceRows = std::map<DeviceId, DeviceRow>;

// Health is in no object of the API, so a watch of devices asks the nodes again and again.
constexpr Duration kLookAgain = std::chrono::seconds(1);

DeviceId IdOf(Value result) {
  return {std::string(result["driver"].str()), std::string(result["pool"].str()),
          std::string(result["device"].str())};
}

class Devices {
 public:
  Devices(Console& console, Session& session) : console_(console), session_(session) {}

  Result<void> Read() {
    ASSIGN_OR_RETURN(const TreePtr slices, List("resource.k8s.io", "v1", "resourceslices"));
    ASSIGN_OR_RETURN(const TreePtr claims, List("resource.k8s.io", "v1", "resourceclaims"));
    ASSIGN_OR_RETURN(const TreePtr pods, List("", "v1", "pods"));
    AddSlices(slices->root());
    std::map<std::string, std::string> node_of_pod;  // by uid
    for (Value pod : pods->root()["items"].elements()) {
      node_of_pod[std::string(pod["metadata"]["uid"].str())] = pod["spec"]["nodeName"].str();
    }
    AddClaims(claims->root(), node_of_pod);
    AskNodes();
    return Ok();
  }

  const DeviceRows& rows() const { return rows_; }

 private:
  Result<TreePtr> List(std::string_view group, std::string_view version,
                       std::string_view resource) {
    return session_.List(session_.Ref(*api::FindResource(group, version, resource), "", true));
  }

  // Of a pool only the newest generation counts.
  void AddSlices(Value list) {
    std::map<std::pair<std::string, std::string>, std::int64_t> newest;
    auto pool_of = [](Value slice) {
      return std::pair(std::string(slice["spec"]["driver"].str()),
                       std::string(slice["spec"]["pool"]["name"].str()));
    };
    for (Value slice : list["items"].elements()) {
      std::int64_t& generation = newest.try_emplace(pool_of(slice), -1).first->second;
      generation = std::max(generation, slice["spec"]["pool"]["generation"].integer());
    }
    for (Value slice : list["items"].elements()) {
      const auto [driver, pool] = pool_of(slice);
      if (slice["spec"]["pool"]["generation"].integer() < newest[{driver, pool}]) continue;
      for (Value device : slice["spec"]["devices"].elements()) {
        DeviceRow& row = rows_[{driver, pool, std::string(device["name"].str())}];
        row.node = slice["spec"]["nodeName"].str();
        if (row.node.empty()) row.node = device["nodeName"].str();
      }
    }
  }

  void AddClaims(Value list, const std::map<std::string, std::string>& node_of_pod) {
    for (Value claim : list["items"].elements()) {
      const std::string home(claim["metadata"]["namespace"].str());
      for (Value result : claim["status"]["allocation"]["devices"]["results"].elements()) {
        DeviceRow& row = rows_[IdOf(result)];
        row.claims.insert(StrCat(home, "/", claim["metadata"]["name"].str()));
        for (Value consumer : claim["status"]["reservedFor"].elements()) {
          if (consumer["resource"].str() != "pods") continue;
          row.pods.insert(StrCat(home, "/", consumer["name"].str()));
          auto node = node_of_pod.find(std::string(consumer["uid"].str()));
          if (node == node_of_pod.end() || node->second.empty()) continue;
          users_[node->second].insert(IdOf(result));
        }
      }
    }
  }

  // The nodes know the health: each of its own devices, and of those its pods hold.
  void AskNodes() {
    std::map<std::string, std::set<DeviceId>> nodes = users_;
    for (const auto& [id, row] : rows_) {
      if (!row.node.empty()) nodes[row.node].insert(id);
    }
    for (const auto& [node, ids] : nodes) {
      Result<TreePtr> answer = session_.GetPath(StrCat("/api/v1/nodes/", node, "/proxy/devices"));
      if (!answer.ok()) {
        console_.Err(StrCat("warning: node ", node,
                            " does not say how its devices are: ", answer.error().message, "\n"));
        continue;
      }
      for (Value device : (*answer)->root()["items"].elements()) {
        auto found = rows_.find(IdOf(device));
        if (found == rows_.end() || !ids.contains(found->first)) continue;
        found->second.health = device["health"].str("Unknown");
        found->second.since = device["since"].str();
        found->second.message = device["message"].str();
      }
    }
  }

  Console& console_;
  Session& session_;
  DeviceRows rows_;
  std::map<std::string, std::set<DeviceId>> users_;  // by node: devices its pods have
};

std::string TextOf(const std::set<std::string>& names) {
  if (names.empty()) return "<none>";
  return Join(std::vector<std::string>(names.begin(), names.end()), ",");
}

std::vector<std::vector<std::string>> MakeLines(const DeviceRows& rows, bool wide, WallTime now) {
  std::map<std::string, std::vector<std::vector<std::string>>> by_node;
  for (const auto& [id, row] : rows) {
    std::vector<std::string> cells = {row.node.empty() ? "<any>" : row.node,
                                      id.driver,
                                      id.pool,
                                      id.device,
                                      row.health,
                                      row.since.empty() ? "<none>" : AgeOf(row.since, now),
                                      TextOf(row.claims),
                                      TextOf(row.pods)};
    if (wide) cells.push_back(row.message.empty() ? "<none>" : row.message);
    by_node[cells[0]].push_back(std::move(cells));
  }
  std::vector<std::vector<std::string>> lines;
  for (auto& [node, list] : by_node) {
    for (auto& cells : list) lines.push_back(std::move(cells));
  }
  return lines;
}

// Prints rows, aligned with those before them.
class Printer {
 public:
  Printer(const Arguments& arguments, Console& console, Session& session,
          const OutputFormat& format)
      : console_(console),
        session_(session),
        format_(format),
        headers_(!arguments.Bool("no-headers")) {}

  void Print(const DeviceRows& rows, bool is_list) {
    if (rows.empty() && !is_list) return;
    if (!format_.is_table()) return PrintAsObjects(rows, is_list);
    const bool wide = format_.kind == OutputFormat::Kind::kWide;
    auto lines = MakeLines(rows, wide, session_.clock().Now());
    if (std::exchange(headers_, false)) {
      std::vector<std::string> header = {"NODE",   "DRIVER", "POOL",  "DEVICE",
                                         "HEALTH", "SINCE",  "CLAIM", "POD"};
      if (wide) header.emplace_back("MESSAGE");
      lines.insert(lines.begin(), std::move(header));
    }
    console_.Out(LayOut(lines, widths_));
  }

 private:
  void PrintAsObjects(const DeviceRows& rows, bool is_list) {
    std::vector<TreePtr> kept;
    std::vector<Value> objects;
    for (const auto& [id, row] : rows) {
      kept.push_back(ObjectOf(id, row));
      objects.push_back(kept.back()->root());
    }
    if (is_list) return console_.Out(PrintObjects(format_, objects, true));
    for (Value object : objects) {
      if (format_.kind == OutputFormat::Kind::kYaml && std::exchange(printed_one_, true)) {
        console_.Out("---\n");
      }
      console_.Out(PrintObjects(format_, {object}, false));
    }
  }

  static TreePtr ObjectOf(const DeviceId& id, const DeviceRow& row) {
    Draft item = {
        {"kind", Draft("Device")},
        {"metadata", Draft({{"name", Draft(StrCat(id.driver, "/", id.pool, "/", id.device))}})},
        {"node", Draft(row.node)},
        {"driver", Draft(id.driver)},
        {"pool", Draft(id.pool)},
        {"device", Draft(id.device)},
        {"health", Draft(row.health)}};
    if (!row.since.empty()) item["since"] = row.since;
    if (!row.message.empty()) item["message"] = row.message;
    for (const std::string& claim : row.claims) item["claims"].Append(Draft(claim));
    for (const std::string& pod : row.pods) item["pods"].Append(Draft(pod));
    return item.Freeze();
  }

  Console& console_;
  Session& session_;
  const OutputFormat& format_;
  bool headers_;
  bool printed_one_ = false;
  std::vector<std::size_t> widths_;
};

}  // namespace

int GetDevices(const Arguments& arguments, Console& console, Session& session,
               const OutputFormat& format) {
  const bool watches = arguments.Bool("watch") || arguments.Bool("watch-only");
  Printer printer(arguments, console, session, format);
  DeviceRows before;
  for (bool first = true;; first = false) {
    Devices devices(console, session);
    if (Result<void> read = devices.Read(); !read.ok()) {
      Report(console, read.error());
      return kExitFailure;
    }
    if (!watches) {
      if (format.is_table() && devices.rows().empty()) {
        console.Err("No devices found.\n");
        return kExitOk;
      }
      printer.Print(devices.rows(), true);
      return kExitOk;
    }
    DeviceRows changed;
    for (const auto& [id, row] : devices.rows()) {
      auto known = before.find(id);
      if (known == before.end() || !(known->second == row)) changed.emplace(id, row);
    }
    if (!first || !arguments.Bool("watch-only")) printer.Print(changed, false);
    before = devices.rows();
    session.Pause(kLookAgain);
  }
}

}  // namespace drakkar::cli
