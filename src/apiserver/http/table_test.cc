#include "apiserver/http/table.h"

#include <gtest/gtest.h>

#include "api/json/reader.h"
#include "api/json/writer.h"
#include "api/meta/time.h"
#include "api/scheme/scheme.h"
#include "apiserver/http/table_cells.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

constexpr std::string_view kNow = "2026-03-01T12:00:00Z";

api::ObjectPtr Parse(std::string_view json) {
  Result<api::TreePtr> tree = api::ParseJson(json);
  if (!tree.ok()) ADD_FAILURE() << tree.error().message << "\n" << json;
  return std::make_shared<const api::Object>(*tree);
}

TableOptions Options() {
  TableOptions options;
  options.now = api::ParseTime(kNow).value();
  return options;
}

// The cells of one object as JSON.
std::string CellsOf(std::string_view group, std::string_view version, std::string_view kind,
                    std::string_view json, TableOptions options = Options()) {
  const api::KindSchema* schema = api::FindKind(group, version, kind);
  const api::ObjectPtr object = Parse(json);
  const api::TreePtr table = MakeTable(*schema, std::span(&object, 1), options);
  return api::WriteJson(table->root()["rows"].at(0)["cells"], {.escape_html = false});
}

// The cells of a pod with this status; two containers, an hour old.
std::string Pod(std::string_view status, std::string_view spec = "", std::string_view meta = "") {
  return CellsOf("", "v1", "Pod",
                 StrCat(R"({"metadata":{"name":"p","creationTimestamp":"2026-03-01T11:00:00Z")",
                        meta, R"(},"spec":{"containers":[{"name":"a"},{"name":"b"}])", spec,
                        R"(},"status":)", status, "}"));
}

TEST(TableTest, RunningPodsShowReadinessAndRestarts) {
  EXPECT_EQ(Pod(R"({"phase":"Running","podIPs":[{"ip":"10.0.0.7"}],"containerStatuses":[
                 {"name":"a","ready":true,"restartCount":2,"state":{"running":{}},
                  "lastState":{"terminated":{"finishedAt":"2026-03-01T11:55:00Z"}}},
                 {"name":"b","ready":false,"restartCount":0,"state":{"running":{}}}]})",
                R"(,"nodeName":"n1")"),
            R"x(["p","1/2","Running","2 (5m ago)","60m","10.0.0.7","n1","<none>","<none>"])x");
}

TEST(TableTest, PodStatusShowsTheReason) {
  EXPECT_EQ(Pod(R"({"phase":"Running","containerStatuses":[
                 {"name":"a","restartCount":3,"state":{"waiting":{"reason":"CrashLoopBackOff"}}},
                 {"name":"b","ready":true,"state":{"running":{}}}]})"),
            R"(["p","1/2","CrashLoopBackOff","3","60m","<none>","<none>","<none>","<none>"])");
  EXPECT_EQ(Pod(R"({"phase":"Succeeded","containerStatuses":[
                 {"name":"a","state":{"terminated":{"reason":"Completed","exitCode":0}}},
                 {"name":"b","state":{"terminated":{"reason":"Completed","exitCode":0}}}]})"),
            R"(["p","0/2","Completed","0","60m","<none>","<none>","<none>","<none>"])");
  EXPECT_EQ(Pod(R"({"phase":"Failed","containerStatuses":[
                 {"name":"a","state":{"terminated":{"signal":9,"exitCode":137}}}]})"),
            R"(["p","0/2","Signal:9","0","60m","<none>","<none>","<none>","<none>"])");
  EXPECT_EQ(Pod(R"({"phase":"Pending","conditions":[
                 {"type":"PodScheduled","status":"False","reason":"SchedulingGated"}]})"),
            R"(["p","0/2","SchedulingGated","0","60m","<none>","<none>","<none>","<none>"])");
  EXPECT_EQ(Pod(R"({"phase":"Failed","reason":"Evicted"})"),
            R"(["p","0/2","Evicted","0","60m","<none>","<none>","<none>","<none>"])");
  // One container is done, the other runs but the pod is not ready.
  EXPECT_EQ(Pod(R"({"phase":"Running","containerStatuses":[
                 {"name":"a","state":{"terminated":{"reason":"Completed","exitCode":0}}},
                 {"name":"b","ready":true,"state":{"running":{}}}]})"),
            R"(["p","1/2","NotReady","0","60m","<none>","<none>","<none>","<none>"])");
}

TEST(TableTest, PodsBeforeTheirContainersShowTheInitContainers) {
  constexpr std::string_view kInit = R"(,"initContainers":[{"name":"i"},{"name":"j"}])";
  EXPECT_EQ(Pod(R"({"phase":"Pending","initContainerStatuses":[
                 {"name":"i","state":{"terminated":{"exitCode":0}}},
                 {"name":"j","state":{"running":{}}}]})",
                kInit),
            R"(["p","0/2","Init:1/2","0","60m","<none>","<none>","<none>","<none>"])");
  EXPECT_EQ(Pod(R"({"phase":"Pending","initContainerStatuses":[
                 {"name":"i","restartCount":4,
                  "state":{"waiting":{"reason":"ImagePullBackOff"}}}]})",
                kInit),
            R"(["p","0/2","Init:ImagePullBackOff","4","60m","<none>","<none>","<none>","<none>"])");
  EXPECT_EQ(Pod(R"({"phase":"Pending","initContainerStatuses":[
                 {"name":"i","state":{"terminated":{"exitCode":3}}}]})",
                kInit),
            R"(["p","0/2","Init:ExitCode:3","0","60m","<none>","<none>","<none>","<none>"])");
}

TEST(TableTest, SidecarsCountAsContainers) {
  EXPECT_EQ(Pod(R"({"phase":"Running","conditions":[{"type":"Initialized","status":"True"}],
                 "initContainerStatuses":[{"name":"s","ready":true,"started":true,"restartCount":1,
                   "state":{"running":{}}}],
                 "containerStatuses":[{"name":"a","ready":true,"state":{"running":{}}},
                   {"name":"b","ready":true,"state":{"running":{}}}]})",
                R"(,"initContainers":[{"name":"s","restartPolicy":"Always"}])"),
            R"(["p","3/3","Running","1","60m","<none>","<none>","<none>","<none>"])");
}

TEST(TableTest, PodsThatAreBeingDeletedTerminate) {
  constexpr std::string_view kDeleted = R"(,"deletionTimestamp":"2026-03-01T12:00:00Z")";
  EXPECT_EQ(Pod(R"({"phase":"Running"})", "", kDeleted),
            R"(["p","0/2","Terminating","0","60m","<none>","<none>","<none>","<none>"])");
  EXPECT_EQ(Pod(R"({"phase":"Running","reason":"NodeLost"})", "", kDeleted),
            R"(["p","0/2","Unknown","0","60m","<none>","<none>","<none>","<none>"])");
}

TEST(TableTest, ReadinessGatesAreCounted) {
  EXPECT_EQ(Pod(R"({"phase":"Running","conditions":[{"type":"x","status":"True"}]})",
                R"(,"readinessGates":[{"conditionType":"x"},{"conditionType":"y"}])"),
            R"(["p","0/2","Running","0","60m","<none>","<none>","<none>","1/2"])");
}

TEST(TableTest, NodesShowStatusRolesAndAddresses) {
  EXPECT_EQ(CellsOf("", "v1", "Node",
                    R"({"metadata":{"name":"n","creationTimestamp":"2026-02-27T12:00:00Z",
                        "labels":{"node-role.kubernetes.io/worker":"","kubernetes.io/role":"gpu"}},
                        "spec":{"unschedulable":true},
                        "status":{"conditions":[{"type":"Ready","status":"True"}],
                        "addresses":[{"type":"InternalIP","address":"192.0.2.1"}],
                        "nodeInfo":{"kubeletVersion":"v1.37.0","osImage":"Debian"}}})"),
            R"(["n","Ready,SchedulingDisabled","gpu,worker","2d","v1.37.0","192.0.2.1","<none>",)"
            R"("Debian","<unknown>","<unknown>"])");
  EXPECT_EQ(CellsOf("", "v1", "Node", R"({"metadata":{"name":"n"}})"),
            R"(["n","Unknown","<none>","<unknown>","","<none>","<none>","<unknown>","<unknown>",)"
            R"("<unknown>"])");
}

TEST(TableTest, EventsShowWhenWhatAndWhy) {
  EXPECT_EQ(CellsOf("", "v1", "Event",
                    R"({"metadata":{"name":"e"},"type":"Warning","reason":"FailedScheduling",
                        "message":"no\n","count":3,"firstTimestamp":"2026-03-01T11:00:00Z",
                        "lastTimestamp":"2026-03-01T11:59:30Z","source":{"component":"scheduler"},
                        "involvedObject":{"kind":"Pod","name":"p","fieldPath":"spec"}})"),
            R"(["30s","Warning","FailedScheduling","pod/p","spec","scheduler","no","60m",3,"e"])");
  EXPECT_EQ(CellsOf("", "v1", "Event",
                    R"({"metadata":{"name":"e"},"eventTime":"2026-03-01T11:58:00.000000Z",
                        "reportingComponent":"c","reportingInstance":"i","lastTimestamp":null,
                        "series":{"count":7,"lastObservedTime":"2026-03-01T11:59:00.000000Z"},
                        "involvedObject":{"kind":"Node"}})"),
            R"(["60s","","","node","","c, i","","2m",7,"e"])");
  EXPECT_EQ(CellsOf("events.k8s.io", "v1", "Event",
                    R"({"metadata":{"name":"e"},"eventTime":"2026-03-01T11:58:00.000000Z",
                        "reportingController":"c","note":"n",
                        "regarding":{"kind":"Pod","name":"p"}})"),
            R"(["2m","","","pod/p","","c","n","2m",1,"e"])");
}

TEST(TableTest, ClaimsShowTheirStateDevicesNodeAndPods) {
  EXPECT_EQ(CellsOf("resource.k8s.io", "v1", "ResourceClaim", R"({"metadata":{"name":"c"}})"),
            R"(["c","pending","<unknown>","<none>","<none>","<none>"])");
  EXPECT_EQ(CellsOf("resource.k8s.io", "v1", "ResourceClaim",
                    R"({"metadata":{"name":"c"},"status":{"allocation":{"devices":{"results":[
                  {"driver":"d","pool":"n1","device":"g0"},
                  {"driver":"d","pool":"n1","device":"g1"}]},
                  "nodeSelector":{"nodeSelectorTerms":[{"matchFields":[
                    {"key":"metadata.name","operator":"In","values":["n1"]}]}]}},
                  "reservedFor":[{"resource":"pods","name":"p","uid":"1"}]}})"),
            R"(["c","allocated,reserved","<unknown>","d/n1/g0,d/n1/g1","n1","p"])");
  EXPECT_EQ(CellsOf("resource.k8s.io", "v1", "ResourceClaim",
                    R"({"metadata":{"name":"c","deletionTimestamp":"2026-03-01T12:00:00Z"}})"),
            R"(["c","deleted","<unknown>","<none>","<none>","<none>"])");
}

TEST(TableTest, SlicesCountTheirDevices) {
  constexpr std::string_view kSlice =
      R"({"metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"n","pool":{"name":"n"},
          "devices":[{"name":"a"},{"name":"b"},{"name":"c"}]}})";
  EXPECT_EQ(CellsOf("resource.k8s.io", "v1", "ResourceSlice", kSlice),
            R"(["s","n","d","n","<unknown>",3,"<unknown>","<unknown>"])");
  TableOptions options = Options();
  options.allocated_devices = [](const api::Object&) { return 1; };
  EXPECT_EQ(CellsOf("resource.k8s.io", "v1", "ResourceSlice", kSlice, options),
            R"(["s","n","d","n","<unknown>",3,"2","1"])");
}

TEST(TableTest, OtherKindsReadAsKubectlShowsThem) {
  EXPECT_EQ(CellsOf("resource.k8s.io", "v1beta2", "DeviceTaintRule",
                    R"({"metadata":{"name":"r"},"spec":{"taint":{"key":"k","effect":"NoExecute",
                        "timeAdded":"2026-03-01T11:59:00Z"}}})"),
            R"(["r","k","","NoExecute","60s","<unknown>"])");
  EXPECT_EQ(CellsOf("", "v1", "ConfigMap",
                    R"({"metadata":{"name":"m"},"data":{"a":"1"},"binaryData":{"b":"AA=="}})"),
            R"(["m",2,"<unknown>"])");
  EXPECT_EQ(CellsOf("rbac.authorization.k8s.io", "v1", "RoleBinding",
                    R"({"metadata":{"name":"b"},"roleRef":{"kind":"Role","name":"r"},"subjects":[
                        {"kind":"User","name":"u"},{"kind":"User","name":"v"},
                        {"kind":"ServiceAccount","namespace":"ns","name":"sa"}]})"),
            R"(["b","Role/r","<unknown>","u, v","","ns/sa"])");
  EXPECT_EQ(CellsOf("apps", "v1", "Deployment",
                    R"({"metadata":{"name":"d"},"spec":{"replicas":3,"selector":
                        {"matchLabels":{"a":"b"}},"template":{"spec":{"containers":[
                        {"name":"c","image":"i"}]}}},"status":{"readyReplicas":2}})"),
            R"(["d","2/3",0,0,"<unknown>","c","i","a=b"])");
  EXPECT_EQ(CellsOf("", "v1", "Service",
                    R"({"metadata":{"name":"s"},"spec":{"type":"NodePort","clusterIP":"10.0.0.1",
                        "ports":[{"port":80,"nodePort":30080,"protocol":"TCP"}]}})"),
            R"(["s","NodePort","10.0.0.1","<none>","80:30080/TCP","<unknown>","<none>"])");
  EXPECT_EQ(CellsOf("scheduling.k8s.io", "v1", "PriorityClass",
                    R"({"metadata":{"name":"p"},"value":10})"),
            R"(["p",10,false,"<unknown>","PreemptLowerPriority"])");
}

// Even an empty object has a cell for every column, and each kind with its own columns has a cell
// writer.
TEST(TableTest, PairsOfAddressesAndPortsAreCountedAndNotListed) {
  // Listing 900 million of them would need more memory than there is.
  constexpr int kMany = 30'000;
  std::string addresses, ports;
  for (int i = 0; i < kMany; ++i) {
    addresses += StrCat(i == 0 ? "" : ",", R"({"ip":"10.0.0.)", i % 250, "\"}");
    ports += StrCat(i == 0 ? "" : ",", R"({"port":)", i + 1, "}");
  }
  const auto cells = [](std::string_view subset) {
    return CellsOf("", "v1", "Endpoints",
                   StrCat(R"({"metadata":{"name":"e"},"subsets":[)", subset, "]}"));
  };
  EXPECT_EQ(cells(StrCat(R"({"addresses":[)", addresses, R"(],"ports":[)", ports, "]}")),
            R"(["e","10.0.0.0:1,10.0.0.0:2,10.0.0.0:3 + 899999997 more...","<unknown>"])");
  EXPECT_EQ(cells(R"({"addresses":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}],"ports":[{"port":80}]})"),
            R"(["e","10.0.0.1:80,[fd00::1]:80","<unknown>"])");
  EXPECT_EQ(cells(R"({"addresses":[{"ip":"10.0.0.1"}]})"), R"(["e","10.0.0.1","<unknown>"])");
  EXPECT_EQ(cells(R"({"notReadyAddresses":[{"ip":"10.0.0.1"}]})"), R"(["e","<none>","<unknown>"])");
}

TEST(TableTest, EveryKindFillsItsColumns) {
  for (const api::KindSchema& kind : api::AllKinds()) {
    if (!kind.columns.empty()) {
      EXPECT_NE(FindCellWriter(kind.group, kind.kind), nullptr) << kind.group << " " << kind.kind;
    }
    const api::ObjectPtr object = Parse(R"({"metadata":{"name":"x"}})");
    const api::TreePtr table = MakeTable(kind, std::span(&object, 1), Options());
    const std::size_t columns = kind.columns.empty() ? 2 : kind.columns.size();
    EXPECT_EQ(table->root()["columnDefinitions"].size(), columns) << kind.kind;
    EXPECT_EQ(table->root()["rows"].at(0)["cells"].size(), columns) << kind.kind;
  }
}

TEST(TableTest, RowsIncludeTheRequestedObject) {
  const api::KindSchema& kind = *api::FindKind("", "v1", "ServiceAccount");
  const api::ObjectPtr object =
      Parse(R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"x"},"secrets":[]})");
  TableOptions options = Options();
  options.resource_version = "12";
  options.continue_token = "next";
  options.remaining_items = 3;
  api::TreePtr table = MakeTable(kind, std::span(&object, 1), options);
  EXPECT_EQ(api::WriteJson(table->root()["metadata"]),
            R"({"resourceVersion":"12","continue":"next","remainingItemCount":3})");
  EXPECT_EQ(api::WriteJson(table->root()["rows"].at(0)["object"]),
            R"({"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",)"
            R"("metadata":{"name":"x"}})");
  options.include_object = *ParseIncludeObject("Object");
  table = MakeTable(kind, std::span(&object, 1), options);
  EXPECT_TRUE(api::Equal(table->root()["rows"].at(0)["object"], object->root()));
  options.include_object = *ParseIncludeObject("None");
  options.omit_columns = true;
  table = MakeTable(kind, std::span(&object, 1), options);
  EXPECT_FALSE(table->root()["rows"].at(0)["object"].has_value());
  EXPECT_FALSE(table->root()["columnDefinitions"].has_value());
  EXPECT_FALSE(ParseIncludeObject("All").has_value());
  EXPECT_TRUE(MakeTable(kind, {}, options)->root()["rows"].is_array()) << "empty, not missing";
}

}  // namespace
}  // namespace drakkar::apiserver
