#include "apiserver/http/discovery.h"

#include <gtest/gtest.h>

#include <set>

#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "base/env/file_system.h"
#include "base/text/text.h"

namespace drakkar::apiserver {
namespace {

api::TreePtr Read(std::string_view path, bool aggregated = false) {
  auto text = FindDiscovery(path, aggregated);
  if (text == nullptr) {
    ADD_FAILURE() << path << " is not there";
    return api::Draft().Freeze();
  }
  return api::ParseJson(*text).value();
}

std::vector<std::string> Texts(api::Value list) {
  std::vector<std::string> texts;
  for (api::Value each : list.elements()) texts.emplace_back(each.str());
  return texts;
}

api::Value Named(api::Value list, std::string_view member, std::string_view name) {
  for (api::Value each : list.elements()) {
    if (each.Entry(member).str() == name) return each;
  }
  return api::Value();
}

TEST(DiscoveryTest, PodsAreListedWithTheirSubresources) {
  api::TreePtr list = Read("/api/v1");
  EXPECT_EQ(list->root()["kind"].str(), "APIResourceList");
  EXPECT_EQ(list->root()["groupVersion"].str(), "v1");
  api::Value resources = list->root()["resources"];
  api::Value pods = Named(resources, "name", "pods");
  EXPECT_EQ(pods["kind"].str(), "Pod");
  EXPECT_EQ(pods["singularName"].str(), "pod");
  EXPECT_TRUE(pods["namespaced"].boolean());
  EXPECT_EQ(Texts(pods["shortNames"]), std::vector<std::string>{"po"});
  EXPECT_EQ(Texts(pods["categories"]), std::vector<std::string>{"all"});
  EXPECT_EQ(Texts(pods["verbs"]),
            (std::vector<std::string>{"create", "delete", "deletecollection", "get", "list",
                                      "patch", "update", "watch"}));
  EXPECT_EQ(Named(resources, "name", "pods/binding")["kind"].str(), "Binding");
  EXPECT_EQ(Texts(Named(resources, "name", "pods/log")["verbs"]), std::vector<std::string>{"get"});
  EXPECT_EQ(Texts(Named(resources, "name", "pods/status")["verbs"]),
            (std::vector<std::string>{"get", "patch", "update"}));
  EXPECT_EQ(Texts(Named(resources, "name", "pods/exec")["verbs"]),
            (std::vector<std::string>{"create", "get"}));
  EXPECT_EQ(Texts(Named(resources, "name", "pods/portforward")["verbs"]),
            (std::vector<std::string>{"create", "get"}));
  EXPECT_FALSE(Named(resources, "name", "bindings").exists()) << "nothing to get";
  for (const auto& [name, kind] : {std::pair("pods/proxy", "PodProxyOptions"),
                                   std::pair("services/proxy", "ServiceProxyOptions"),
                                   std::pair("nodes/proxy", "NodeProxyOptions")}) {
    EXPECT_EQ(Named(resources, "name", name)["kind"].str(), kind);
    EXPECT_EQ(Texts(Named(resources, "name", name)["verbs"]),
              (std::vector<std::string>{"create", "delete", "get", "patch", "update"}));
  }
  list = Read("/apis/certificates.k8s.io/v1");
  EXPECT_EQ(Texts(Named(list->root()["resources"], "name",
                        "certificatesigningrequests/approval")["verbs"]),
            (std::vector<std::string>{"get", "patch", "update"}));
}

TEST(DiscoveryTest, SubresourcesOfOtherGroupsNameTheirGroup) {
  constexpr std::string_view kServed[] = {"eviction", "token", "scale", "exec"};
  const Discovery discovery({.subresources = kServed});
  api::TreePtr core = api::ParseJson(*discovery.Find("/api/v1", false)).value();
  api::Value eviction = Named(core->root()["resources"], "name", "pods/eviction");
  EXPECT_EQ(eviction["group"].str(), "policy");
  EXPECT_EQ(eviction["version"].str(), "v1");
  EXPECT_EQ(eviction["kind"].str(), "Eviction");
  api::Value token = Named(core->root()["resources"], "name", "serviceaccounts/token");
  EXPECT_EQ(token["group"].str(), "authentication.k8s.io");
  EXPECT_EQ(token["kind"].str(), "TokenRequest");
  api::Value exec = Named(core->root()["resources"], "name", "pods/exec");
  EXPECT_FALSE(exec["group"].exists());
  EXPECT_EQ(exec["kind"].str(), "PodExecOptions");
}

TEST(DiscoveryTest, GroupsPreferTheMostStableVersion) {
  api::TreePtr groups = Read("/apis");
  api::Value resource = Named(groups->root()["groups"], "name", "resource.k8s.io");
  EXPECT_EQ(resource["preferredVersion"]["groupVersion"].str(), "resource.k8s.io/v1");
  std::vector<std::string> versions;
  for (api::Value each : resource["versions"].elements()) {
    versions.emplace_back(each["version"].str());
  }
  EXPECT_EQ(versions, (std::vector<std::string>{"v1", "v1beta2", "v1beta1", "v1alpha3"}));
  EXPECT_EQ(Read("/apis/resource.k8s.io")->root()["kind"].str(), "APIGroup");
  EXPECT_EQ(Read("/apis/resource.k8s.io/")->root()["name"].str(), "resource.k8s.io");
  EXPECT_FALSE(Named(groups->root()["groups"], "name", "").exists()) << "core is at /api";
  EXPECT_TRUE(VersionBefore("v2", "v1"));
  EXPECT_TRUE(VersionBefore("v1", "v2beta1"));
  EXPECT_TRUE(VersionBefore("v1beta10", "v1beta2"));
  EXPECT_TRUE(VersionBefore("v1beta1", "v1alpha3"));
  EXPECT_TRUE(VersionBefore("v1alpha1", "foo"));
}

TEST(DiscoveryTest, AggregatedDiscoveryMatchesTheSingleLists) {
  std::set<std::string> single;
  std::set<std::string> aggregated;
  for (std::string_view root : {"/api", "/apis"}) {
    api::TreePtr tree = Read(root, true);
    EXPECT_EQ(tree->root()["apiVersion"].str(), "apidiscovery.k8s.io/v2");
    EXPECT_EQ(tree->root()["kind"].str(), "APIGroupDiscoveryList");
    for (api::Value group : tree->root()["items"].elements()) {
      const std::string name(group["metadata"]["name"].str());
      for (api::Value version : group["versions"].elements()) {
        const std::string path = name.empty()
                                     ? StrCat("/api/", version["version"].str())
                                     : StrCat("/apis/", name, "/", version["version"].str());
        const api::TreePtr list = Read(path);
        for (api::Value each : list->root()["resources"].elements()) {
          single.insert(StrCat(path, " ", each["name"].str(), " ", each["kind"].str(), " ",
                               Join(Texts(each["verbs"]), ",")));
        }
        for (api::Value each : version["resources"].elements()) {
          aggregated.insert(StrCat(path, " ", each["resource"].str(), " ",
                                   each["responseKind"]["kind"].str(), " ",
                                   Join(Texts(each["verbs"]), ",")));
          for (api::Value sub : each["subresources"].elements()) {
            aggregated.insert(
                StrCat(path, " ", each["resource"].str(), "/", sub["subresource"].str(), " ",
                       sub["responseKind"]["kind"].str(), " ", Join(Texts(sub["verbs"]), ",")));
          }
        }
      }
    }
  }
  EXPECT_GT(single.size(), 50u);
  EXPECT_EQ(single, aggregated);
}

TEST(DiscoveryTest, VersionAndRootAnswer) {
  EXPECT_EQ(Read("/version")->root()["gitVersion"].str(), "v1.37.0+drakkar");
  const std::vector<std::string> paths = Texts(Read("/")->root()["paths"]);
  EXPECT_NE(std::ranges::find(paths, "/apis/resource.k8s.io/v1"), paths.end());
  EXPECT_EQ(FindDiscovery("/api/v2", false), nullptr);
  EXPECT_EQ(FindDiscovery("/api/v1/pods", false), nullptr);
  EXPECT_EQ(FindDiscovery("/api", false), FindDiscovery("/api/", false)) << "shared";
  EXPECT_NE(FindDiscovery("/api", false), FindDiscovery("/api", true));
  const std::string tag = EntityTag(*FindDiscovery("/apis", true));
  EXPECT_TRUE(tag.starts_with('"') && tag.ends_with('"'));
  EXPECT_NE(tag, EntityTag(*FindDiscovery("/api", true)));
}

// Every resource and subresource we list exists in Kubernetes with the same kind and verbs.
TEST(DiscoveryTest, EveryListedResourceIsAPathOfKubernetes) {
  const char* set = std::getenv("DRAKKAR_VECTORS");
  const std::string data =
      set != nullptr ? StrCat(set, "/../data/openapi") : "../shared/data/openapi";
  const std::string families[][2] = {{"/api/v1", "core.v1"},
                                     {"/apis/resource.k8s.io/v1", "resource.v1"},
                                     {"/apis/resource.k8s.io/v1beta2", "resource.v1beta2"},
                                     {"/apis/apps/v1", "apps.v1"},
                                     {"/apis/rbac.authorization.k8s.io/v1", "rbac.v1"},
                                     {"/apis/coordination.k8s.io/v1", "coordination.v1"}};
  for (const auto& [path, family] : families) {
    Result<std::string> text = RealFileSystem().ReadFile(StrCat(data, "/", family, ".json"));
    if (!text.ok()) GTEST_SKIP() << "no OpenAPI data: " << text.error().message;
    api::TreePtr theirs = api::ParseJson(*text).value();
    api::TreePtr ours = Read(path);
    for (api::Value each : ours->root()["resources"].elements()) {
      const std::vector<std::string_view> parts = Split(each["name"].str(), '/');
      const bool namespaced = each["namespaced"].boolean();
      std::string item =
          StrCat(path, namespaced ? "/namespaces/{namespace}/" : "/", parts[0], "/{name}");
      if (parts.size() > 1) item += StrCat("/", parts[1]);
      api::Value verbs = theirs->root()["paths"].Entry(item)["verbs"];
      EXPECT_TRUE(verbs.exists()) << item;
      for (const std::string& verb : Texts(each["verbs"])) {
        const std::string method = verb == "update"                       ? "put"
                                   : verb == "create" && parts.size() > 1 ? "post"
                                                                          : verb;
        if (method == "create" || method == "list" || method == "watch" ||
            method == "deletecollection") {
          continue;  // of the collection
        }
        EXPECT_TRUE(verbs.Entry(method).exists()) << item << " " << verb;
        if (parts.size() > 1 && verbs.Entry(method)["kind"]["kind"].exists()) {
          EXPECT_EQ(verbs.Entry(method)["kind"]["kind"].str(), each["kind"].str()) << item;
        }
      }
    }
  }
}

}  // namespace
}  // namespace drakkar::apiserver
