#include "answers/cluster/snapshot_reader.h"

#include <algorithm>

#include "base/text/text.h"

namespace drakkar::answers {
namespace {

struct KindPath {
  SnapshotKind kind;
  std::string_view name;
  std::vector<std::string_view> paths;  // newest version first
  Objects Snapshot::*into;
  bool required;
  bool namespaced;
};

// The smallest collections come first, because the first readable one fixes the resource version.
const std::vector<KindPath>& KindPaths() {
  using enum SnapshotKind;
  static const std::vector<KindPath> kPaths = {
      {kClasses,
       "deviceclasses",
       {"/apis/resource.k8s.io/v1/deviceclasses"},
       &Snapshot::classes,
       false,
       false},
      {kTaintRules,
       "devicetaintrules",
       {"/apis/resource.k8s.io/v1/devicetaintrules",
        "/apis/resource.k8s.io/v1beta2/devicetaintrules",
        "/apis/resource.k8s.io/v1alpha3/devicetaintrules"},
       &Snapshot::taint_rules,
       false,
       false},
      {kNodes, "nodes", {"/api/v1/nodes"}, &Snapshot::nodes, false, false},
      {kLeases,
       "leases",
       {"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"},
       &Snapshot::leases,
       false,
       false},
      {kNamespaces, "namespaces", {"/api/v1/namespaces"}, &Snapshot::namespaces, false, false},
      {kSlices,
       "resourceslices",
       {"/apis/resource.k8s.io/v1/resourceslices"},
       &Snapshot::slices,
       true,
       false},
      {kClaims,
       "resourceclaims",
       {"/apis/resource.k8s.io/v1/resourceclaims"},
       &Snapshot::claims,
       true,
       true},
      {kPods, "pods", {"/api/v1/pods"}, &Snapshot::pods, false, true},
  };
  return kPaths;
}

std::string InNamespace(std::string_view path, std::string_view ns) {
  const std::size_t slash = path.rfind('/');
  return StrCat(path.substr(0, slash), "/namespaces/", ns, path.substr(slash));
}

bool IsRefused(const Error& error) {
  return error.code == ErrorCode::kForbidden || error.code == ErrorCode::kUnauthenticated;
}

// A part of a tree that keeps the whole tree alive.
struct Part {
  Part(api::TreePtr the_whole, api::Value root)
      : whole(std::move(the_whole)), tree(nullptr, 0, *root.node()) {}
  const api::TreePtr whole;
  const api::Tree tree;
};

// One pass over the kinds, at the version `exact` or, if that is empty, as they are now.
class Pass {
 public:
  Pass(const GetPaths& get, const SnapshotOptions& options, std::string exact)
      : get_(get), options_(options), exact_(std::move(exact)) {
    snapshot.now = options.now;
    snapshot.consistent = !exact_.empty();
  }

  Result<void> Read() {
    std::vector<const KindPath*> kinds;
    std::vector<std::string> paths;
    for (const KindPath& each : KindPaths()) {
      if ((options_.kinds & Mask(each.kind)) == 0) continue;
      for (const std::string_view path : each.paths) {
        kinds.push_back(&each);
        paths.push_back(StrCat(path, exact_));
      }
    }
    const std::vector<Result<api::TreePtr>> answers = get_(paths);
    for (std::size_t i = 0; i < answers.size();) {
      std::size_t end = i + 1;
      while (end < answers.size() && kinds[end] == kinds[i]) ++end;
      RETURN_IF_ERROR(Take(*kinds[i], answers, i, end));
      i = end;
    }
    return Ok();
  }

  Snapshot snapshot;

 private:
  Result<void> Take(const KindPath& kind, const std::vector<Result<api::TreePtr>>& answers,
                    std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (!answers[i].ok()) continue;
      snapshot.*kind.into = ItemsOf(*answers[i]);
      if (kind.kind == SnapshotKind::kTaintRules) {
        snapshot.taint_rule_version = Split(kind.paths[i - begin], '/')[3];
      }
      return Ok();
    }
    Error error = answers[begin].error();
    for (std::size_t i = begin; i < end; ++i) {
      // If one API version is missing, that says nothing about the other.
      if (answers[i].error().code != ErrorCode::kNotFound) error = answers[i].error();
    }
    if (kind.namespaced && IsRefused(error)) return ReadNamespace(kind, std::move(error));
    if (error.code == ErrorCode::kExpired || kind.required) return error;
    if (error.code == ErrorCode::kNotFound) return Ok();  // the server has no such kind
    if (!IsRefused(error)) return error;
    snapshot.unreadable |= Mask(kind.kind);
    if (kind.kind == SnapshotKind::kNodes) snapshot.has_nodes = false;
    // Leases only show earlier that a node has failed, and namespaces matter to few pods.
    if (kind.kind != SnapshotKind::kLeases && kind.kind != SnapshotKind::kNamespaces) {
      snapshot.notes.push_back(StrCat("you may not list ", kind.name, ", so they are left out"));
    }
    return Ok();
  }

  Result<void> ReadNamespace(const KindPath& kind, Error refused) {
    if (options_.namespace_.empty()) return refused;
    const std::vector<Result<api::TreePtr>> answers =
        get_({StrCat(InNamespace(kind.paths[0], options_.namespace_), exact_)});
    if (!answers[0].ok()) return answers[0].error();
    snapshot.*kind.into = ItemsOf(*answers[0]);
    snapshot.only_namespace = options_.namespace_;
    snapshot.notes.push_back(StrCat("you may list ", kind.name, " in namespace ",
                                    options_.namespace_, " only; others are left out"));
    return Ok();
  }

  const GetPaths& get_;
  const SnapshotOptions& options_;
  const std::string exact_;
};

// The resource version at which to read everything; empty if no list can be read.
std::string FindVersion(const GetPaths& get, const SnapshotOptions& options) {
  for (const KindPath& each : KindPaths()) {
    if ((options.kinds & Mask(each.kind)) == 0) continue;
    if (each.kind == SnapshotKind::kTaintRules) continue;  // not every server has it
    const Result<api::TreePtr> answer = std::move(get({StrCat(each.paths[0], "?limit=1")})[0]);
    if (answer.ok()) return std::string((*answer)->root()["metadata"]["resourceVersion"].str());
    if (!IsRefused(answer.error())) return {};
  }
  return {};
}

}  // namespace

Objects ItemsOf(const api::TreePtr& list) {
  Objects objects;
  const api::Value items = list->root()["items"];
  objects.reserve(items.size());
  for (api::Value item : items.elements()) {
    auto part = std::make_shared<Part>(list, item);
    const api::Tree* tree = &part->tree;
    objects.push_back(std::make_shared<const api::Object>(api::TreePtr(std::move(part), tree)));
  }
  return objects;
}

Result<Snapshot> ReadSnapshot(const GetPaths& get, const SnapshotOptions& options) {
  // Writes in the meantime may have pushed the version out of the server's history.
  constexpr int kAttempts = 3;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string version = FindVersion(get, options);
    if (version.empty()) break;
    Pass pass(get, options, StrCat("?resourceVersion=", version, "&resourceVersionMatch=Exact"));
    const Result<void> read = pass.Read();
    if (read.ok()) return std::move(pass.snapshot);
    if (read.error().code != ErrorCode::kExpired) break;
  }
  Pass pass(get, options, "");
  RETURN_IF_ERROR(pass.Read());
  pass.snapshot.notes.emplace_back(
      "the server cannot list all kinds at one resource version; what changed meanwhile may "
      "contradict itself");
  return std::move(pass.snapshot);
}

std::string NodeHealthPath(std::string_view node) {
  return StrCat("/api/v1/nodes/", node, "/proxy/devices");
}

NodeHealth ReadNodeHealth(api::Value answer) {
  NodeHealth of_node;
  for (api::Value item : answer["items"].elements()) {
    DeviceHealth& health =
        of_node[{std::string(item["driver"].str()), std::string(item["pool"].str()),
                 std::string(item["device"].str())}];
    health.health = item["health"].str("Unknown");
    health.since = item["since"].str();
    health.message = item["message"].str();
  }
  return of_node;
}

NodeAnswers AskNodes(const GetPaths& get, const std::vector<std::string>& nodes) {
  std::vector<std::string> paths;
  paths.reserve(nodes.size());
  for (const std::string& node : nodes) paths.push_back(NodeHealthPath(node));
  const std::vector<Result<api::TreePtr>> trees = get(paths);
  NodeAnswers answers;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    if (!trees[i].ok()) {
      if (answers.silent.empty()) answers.example = trees[i].error().message;
      answers.silent.push_back(nodes[i]);
      continue;
    }
    answers.health[nodes[i]] = ReadNodeHealth((*trees[i])->root());
  }
  return answers;
}

std::string DescribeSilentNodes(const NodeAnswers& answers, std::size_t asked) {
  if (answers.silent.empty()) return {};
  constexpr std::size_t kShown = 3;
  const std::size_t shown = std::min(kShown, answers.silent.size());
  std::string names =
      Join(std::vector<std::string>(answers.silent.begin(),
                                    answers.silent.begin() + static_cast<std::ptrdiff_t>(shown)),
           ", ");
  if (shown < answers.silent.size()) names += ", ...";
  return StrCat(answers.silent.size(), " of ", asked, asked == 1 ? " node" : " nodes",
                " did not report device health (", names, "): ", answers.example);
}

}  // namespace drakkar::answers
