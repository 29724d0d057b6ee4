#include "apiserver/http/frontend.h"

#include <gtest/gtest.h>

#include "api/codec/protobuf_reader.h"
#include "api/json/reader.h"
#include "api/scheme/scheme.h"
#include "api/tree/draft.h"
#include "apiserver/testing/https_fixture.h"
#include "net/compress/gzip.h"

namespace drakkar::apiserver {
namespace {

class FrontendTest : public HttpsTest {
 protected:
  FrontendTest() {
    Serve();
    client_ = client::MakeHttpClient(loop_, access_, "test");
  }
  ~FrontendTest() override {
    watch_.reset();
    client_.reset();
    http_.reset();
    server_.reset();
  }

  net::Response PostPod(const std::string& name) {
    return Post("/api/v1/namespaces/default/pods",
                R"({"metadata":{"name":")" + name +
                    R"("},"spec":{"containers":[{"name":"c","image":"i:1"}]}})");
  }
  api::TreePtr Parse(const net::Response& response) {
    Result<api::TreePtr> tree = api::ParseJson(response.body);
    EXPECT_TRUE(tree.ok()) << response.body;
    return tree.ok() ? *tree : api::Draft::Object().Freeze();
  }

  std::unique_ptr<client::Client> client_;
  std::unique_ptr<client::WatchHandle> watch_;
};

TEST_F(FrontendTest, CreatesReadsAndDeletesOverHttps) {
  net::Response created = PostPod("a");
  EXPECT_EQ(created.status, 201) << created.body;
  net::Response read = Do(net::Method::kGet, "/api/v1/namespaces/default/pods/a");
  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(Parse(read)->root()["metadata"]["name"].str(), "a");
  net::Response list = Do(net::Method::kGet, "/api/v1/pods");
  EXPECT_EQ(Parse(list)->root()["kind"].str(), "PodList");
  EXPECT_EQ(Parse(list)->root()["items"].size(), 1u);
  EXPECT_EQ(Do(net::Method::kDelete, "/api/v1/namespaces/default/pods/a").status, 200);
  net::Response gone = Do(net::Method::kGet, "/api/v1/namespaces/default/pods/a");
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(Parse(gone)->root()["reason"].str(), "NotFound");
}

TEST_F(FrontendTest, ConflictingOptionsAreRejected) {
  auto message = [&](const std::string& query) {
    const net::Response answer = Do(net::Method::kGet, "/api/v1/pods?" + query);
    EXPECT_GE(answer.status, 400) << query;
    return std::string(Parse(answer)->root()["message"].str());
  };
  EXPECT_EQ(message("resourceVersionMatch=Exact"),
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
            "resourceVersionMatch is forbidden unless resourceVersion is provided");
  EXPECT_EQ(message("resourceVersionMatch=Exact&resourceVersion=0"),
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
  EXPECT_EQ(message("watch=1&sendInitialEvents=true"),
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  EXPECT_EQ(message("continue=x&resourceVersion=7"),
            "specifying resource version is not allowed when using continue");
}

TEST_F(FrontendTest, OptionsOfWritesAreCheckedAsKubernetesDoes) {
  PostPod("kept");
  auto refusal = [&](net::Method method, const std::string& path, const std::string& body = "") {
    const net::Response answer = Do(method, path, body, {{"Content-Type", "application/json"}});
    return StrCat(answer.status, " ", Parse(answer)->root()["message"].str());
  };
  const std::string pods = "/api/v1/namespaces/default/pods";
  EXPECT_EQ(refusal(net::Method::kPost, pods + "?dryRun=x", "{}"),
            "422 CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"x\"]: "
            "supported "
            "values: \"All\"");
  EXPECT_EQ(
      refusal(net::Method::kPut, pods + "/kept?fieldValidation=x", "{}"),
      "422 UpdateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"x\": "
      "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
  EXPECT_EQ(
      refusal(net::Method::kDelete, pods + "/kept?propagationPolicy=x"),
      "422 DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"x\": "
      "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
  EXPECT_EQ(refusal(net::Method::kDelete, pods + "/kept",
                    R"({"orphanDependents":true,"propagationPolicy":"Orphan"})"),
            "422 DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: "
            "\"Orphan\": "
            "orphanDependents and deletionPropagation cannot be both set");
  EXPECT_EQ(
      refusal(net::Method::kDelete, pods + "/kept", R"({"dryRun":["x","All"]})"),
      "422 DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"x\",\"All\"]: "
      "supported values: \"All\"");
  const std::string uid(
      Parse(Do(net::Method::kGet, pods + "/kept"))->root()["metadata"]["uid"].str());
  const std::string version(
      Parse(Do(net::Method::kGet, pods + "/kept"))->root()["metadata"]["resourceVersion"].str());
  EXPECT_EQ(
      refusal(net::Method::kDelete, pods + "/kept", R"({"preconditions":{"uid":"other"}})"),
      StrCat("409 Operation cannot be fulfilled on pods \"kept\": Precondition failed: UID in "
             "precondition: other, UID in object meta: ",
             uid));
  EXPECT_EQ(
      refusal(net::Method::kDelete, pods + "/kept", R"({"preconditions":{"resourceVersion":"1"}})"),
      StrCat("409 Operation cannot be fulfilled on pods \"kept\": Precondition failed: "
             "ResourceVersion "
             "in precondition: 1, ResourceVersion in object meta: ",
             version));
  const net::Response tried = Do(net::Method::kDelete, pods + "/kept?dryRun=All");
  EXPECT_EQ(tried.status, 200);
  EXPECT_EQ(Do(net::Method::kGet, pods + "/kept").status, 200) << "nothing happened";
  const net::Response all = Do(net::Method::kDelete, pods + "?labelSelector=none%3Dsuch");
  EXPECT_EQ(Parse(all)->root()["kind"].str(), "PodList");
  EXPECT_EQ(Parse(all)->root()["items"].size(), 0u);
  EXPECT_EQ(Parse(Do(net::Method::kDelete, pods))->root()["items"].size(), 1u)
      << "what was deleted";
  EXPECT_EQ(Do(net::Method::kGet, pods + "/kept").status, 404);
}

TEST_F(FrontendTest, TheBodyOfADeleteIsReadByItsSchema) {
  PostPod("kept");
  const std::string pod = "/api/v1/namespaces/default/pods/kept";
  auto status = [&](const std::string& body, const std::string& type = "application/json") {
    return Do(net::Method::kDelete, pod, body, {{"Content-Type", type}}).status;
  };
  EXPECT_EQ(status(R"({"gracePeriodSeconds":"abc"})"), 400);
  EXPECT_EQ(status(R"({"kind":"Pod","gracePeriodSeconds":0})"), 400);
  EXPECT_EQ(status(R"([])"), 400);
  EXPECT_EQ(status(R"({"preconditions":{"uid":7}})"), 400);
  EXPECT_EQ(status("gracePeriodSeconds: abc\n", "application/yaml"), 400);
  EXPECT_EQ(status("{}", "text/plain"), 415);
  EXPECT_EQ(status("preconditions:\n  uid: other\n", "application/yaml"), 409)
      << "read and understood";
  EXPECT_EQ(Do(net::Method::kGet, pod).status, 200);
  EXPECT_EQ(status(R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,"foo":1})"),
            200);
  EXPECT_EQ(Do(net::Method::kGet, pod).status, 404);
}

TEST_F(FrontendTest, DuplicateFieldsAreReportedRejectedOrIgnored) {
  const std::string maps = "/api/v1/namespaces/default/configmaps";
  Post(maps, R"({"metadata":{"name":"m"}})");
  const auto patch = [&](const std::string& query, const std::string& type,
                         const std::string& body) {
    return Do(net::Method::kPatch, StrCat(maps, "/m", query), body, {{"Content-Type", type}});
  };
  constexpr char kMerge[] = "application/merge-patch+json";
  const std::string twice = R"({"data":{"a":"1","a":"2"}})";
  const net::Response strict = patch("?fieldValidation=Strict", kMerge, twice);
  EXPECT_EQ(strict.status, 422) << strict.body;
  EXPECT_NE(strict.body.find("strict decoding error: duplicate field"), std::string::npos)
      << strict.body;
  const net::Response warned = patch("", kMerge, twice);
  EXPECT_EQ(warned.status, 200);
  EXPECT_NE(warned.headers.Get("warning").find("duplicate field"), std::string::npos);
  EXPECT_NE(warned.body.find(R"("a":"2")"), std::string::npos) << "the last one counts";
  EXPECT_EQ(patch("?fieldValidation=Ignore", kMerge, twice).headers.Get("warning"), "");

  const std::string yaml =
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: doubled}\ndata:\n  a: one\n  a: two\n";
  const auto post = [&](const std::string& query) {
    return Do(net::Method::kPost, maps + query, yaml, {{"Content-Type", "application/yaml"}});
  };
  EXPECT_EQ(post("?fieldValidation=Strict").status, 400);
  const net::Response made = post("");
  EXPECT_EQ(made.status, 201) << made.body;
  EXPECT_NE(made.headers.Get("warning").find("already set in map"), std::string::npos);
  EXPECT_NE(made.body.find(R"("a":"two")"), std::string::npos) << made.body;

  const auto apply = [&](const std::string& name, const std::string& query) {
    return Do(net::Method::kPatch, StrCat(maps, "/", name, "?fieldManager=t", query),
              "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name +
                  "}\ndata:\n  b: one\n  b: two\n",
              {{"Content-Type", "application/apply-patch+yaml"}});
  };
  EXPECT_EQ(apply("z", "&fieldValidation=Strict").status, 400);
  for (int i = 0; i < 2; ++i) {  // creates, then updates
    const net::Response applied = apply("z", "");
    EXPECT_EQ(applied.status, i == 0 ? 201 : 200) << applied.body;
    EXPECT_NE(applied.headers.Get("warning").find("already set in map"), std::string::npos);
    EXPECT_NE(applied.body.find(R"("b":"two")"), std::string::npos) << applied.body;
  }
}

TEST_F(FrontendTest, RejectsPatchesThatAreInvalidTooLongOrOfAnotherKind) {
  PostPod("p");
  const std::string pod = "/api/v1/namespaces/default/pods/p";
  const auto patch = [&](const std::string& type, const std::string& body) {
    return Do(net::Method::kPatch, pod, body, {{"Content-Type", "application/" + type}});
  };
  EXPECT_EQ(patch("json-patch+json", R"({"op":"add"})").status, 400);
  std::string many = "[";
  for (int i = 0; i < 10'001; ++i) {
    many += StrCat(i == 0 ? "" : ",", R"({"op":"test","path":"/kind","value":"Pod"})");
  }
  const net::Response long_one = patch("json-patch+json", many + "]");
  EXPECT_EQ(long_one.status, 413) << long_one.body.substr(0, 200);
  EXPECT_EQ(Parse(long_one)->root()["message"].str(),
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, "
            "got 10001");
  for (const char* type : {"merge-patch+json", "strategic-merge-patch+json"}) {
    const net::Response other = patch(type, R"({"kind":"Secret"})");
    EXPECT_EQ(other.status, 422) << other.body;
    EXPECT_EQ(patch(type, R"({"apiVersion":"v2"})").status, 422);
    EXPECT_EQ(patch(type, R"({"kind":"Pod","metadata":{"labels":{"l":"v"}}})").status, 200);
  }
  EXPECT_EQ(
      patch("json-patch+json", R"([{"op":"replace","path":"/kind","value":"Secret"}])").status,
      422);
}

TEST_F(FrontendTest, APatchThatIsNotJsonIsAnsweredInKubernetesWords) {
  Post("/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"m"}})");
  const auto message = [&](const char* type, const std::string& body) {
    const net::Response answer = Do(net::Method::kPatch, "/api/v1/namespaces/default/configmaps/m",
                                    body, {{"Content-Type", StrCat("application/", type)}});
    EXPECT_EQ(answer.status, 400) << answer.body;
    return std::string(Parse(answer)->root()["message"].str());
  };
  EXPECT_EQ(message("strategic-merge-patch+json", "data: x"),
            "invalid character 'd' looking for beginning of value");
  EXPECT_EQ(message("strategic-merge-patch+json", "[1]"),
            "json: cannot unmarshal array into Go value of type map[string]interface {}");
  EXPECT_EQ(message("merge-patch+json", "data: x"),
            "error decoding patch: invalid character 'd' looking for beginning of value");
}

TEST_F(FrontendTest, TheNameOfAFieldManagerIsLimited) {
  const std::string maps = "/api/v1/namespaces/default/configmaps?fieldManager=";
  const net::Response answer = Post(maps + std::string(129, 'm'), R"({"metadata":{"name":"m"}})");
  EXPECT_EQ(answer.status, 422);
  EXPECT_EQ(
      Parse(answer)->root()["message"].str(),
      "CreateOptions.meta.k8s.io \"\" is invalid: fieldManager: Too long: may not be more than 128 "
      "bytes");
  EXPECT_EQ(Post(maps + "a%07b", R"({"metadata":{"name":"m"}})").status, 422);
  EXPECT_EQ(Post(maps + std::string(128, 'm'), R"({"metadata":{"name":"m"}})").status, 201);
}

TEST_F(FrontendTest, WritesOverAllNamespacesAreRejected) {
  Post("/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"kept"}})");
  const net::Response all = Do(net::Method::kDelete, "/api/v1/configmaps");
  EXPECT_EQ(all.status, 405) << all.body;
  EXPECT_EQ(Parse(all)->root()["reason"].str(), "MethodNotAllowed");
  EXPECT_EQ(Post("/api/v1/configmaps", R"({"metadata":{"name":"m","namespace":"default"}})").status,
            405);
  EXPECT_EQ(Do(net::Method::kGet, "/api/v1/namespaces/default/configmaps/kept").status, 200);
  EXPECT_EQ(Do(net::Method::kGet, "/api/v1/configmaps").status, 200);
}

TEST_F(FrontendTest, WatchIsABooleanParameter) {
  PostPod("a");
  // Ends by itself after a second; a list has no events.
  for (const char* query : {"watch", "watch=", "watch=1", "watch=true", "watch=yes"}) {
    const net::Response answer =
        Do(net::Method::kGet, StrCat("/api/v1/pods?", query, "&timeoutSeconds=1"));
    EXPECT_EQ(answer.body.find(R"({"type":"ADDED")"), 0u) << query << answer.body.substr(0, 100);
  }
  for (const char* query : {"watch=0", "watch=false", ""}) {
    const net::Response answer = Do(net::Method::kGet, StrCat("/api/v1/pods?", query));
    EXPECT_EQ(Parse(answer)->root()["kind"].str(), "PodList") << query;
  }
}

TEST_F(FrontendTest, AWatchEndsByItselfWithinTheHour) {
  for (int i = 0; i < 100; ++i) {
    const Duration lifetime = Frontend::RandomWatchLifetime();
    EXPECT_GE(lifetime, std::chrono::minutes(30));
    EXPECT_LT(lifetime, std::chrono::minutes(60));
  }
}

TEST_F(FrontendTest, SelectorErrorsAreReportedOnce) {
  const net::Response answer = Do(net::Method::kGet, "/api/v1/pods?labelSelector=a%20in%20(");
  EXPECT_EQ(answer.status, 400);
  const std::string message(Parse(answer)->root()["message"].str());
  EXPECT_EQ(message.find("unable to parse requirement"), 0u) << message;
  EXPECT_EQ(message.find("unable to parse requirement", 1), std::string::npos) << message;
}

TEST_F(FrontendTest, ImpersonationActsAsAnotherUser) {
  const net::Response answer = Do(
      net::Method::kPost, "/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"m"}})",
      {{"Content-Type", "application/json"}, {"Impersonate-User", "jane"}});
  EXPECT_EQ(answer.status, 201) << answer.body;
}

TEST_F(FrontendTest, MetricsCountRequestsUnderTheUsualNames) {
  PostPod("counted");
  const std::string text = Do(net::Method::kGet, "/metrics").body;
  EXPECT_NE(text.find("apiserver_request_total{"), std::string::npos) << text;
  EXPECT_NE(text.find("apiserver_storage_objects{resource=\"pods\"} 1"), std::string::npos);
  EXPECT_NE(text.find("apiserver_request_duration_seconds_bucket"), std::string::npos);
}

TEST_F(FrontendTest, InvalidInputIsAnsweredWithAStatus) {
  EXPECT_EQ(Post("/api/v1/namespaces/default/pods", "{").status, 400);
  EXPECT_EQ(Do(net::Method::kPost, "/api/v1/namespaces/default/pods", "x",
               {{"Content-Type", "text/plain"}})
                .status,
            415);
  EXPECT_EQ(Do(net::Method::kGet, "/apis/no.such/v1/things").status, 404);
  EXPECT_EQ(Do(net::Method::kGet, "/api/v1/pods?limit=x").status, 400);
  EXPECT_EQ(Do(net::Method::kGet, "/api/v1/pods", "", {{"Accept", "image/png"}}).status, 406);
  EXPECT_EQ(Do(net::Method::kPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "{}",
               {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}})
                .status,
            406)
      << "a review has no columns";
  EXPECT_EQ(Do(net::Method::kPatch, "/api/v1/namespaces/default/pods/a", "{}",
               {{"Content-Type", "application/json"}})
                .status,
            415);
  EXPECT_EQ(Do(net::Method::kGet, "/api/v1/pods", "", {{"Impersonate-Group", "g"}}).status, 500)
      << "a group without a user is nobody";
  EXPECT_EQ(Do(net::Method::kPatch, "/api/v1/namespaces/default/pods/a", "{}",
               {{"Content-Type", "application/apply-patch+yaml"}})
                .status,
            422)
      << "apply needs a field manager";
  net::Response unknown = Post(
      "/api/v1/namespaces/default/pods?fieldValidation=Strict",
      R"({"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}],"colour":"red"}})");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_NE(unknown.body.find("unknown field \\\"spec.colour\\\""), std::string::npos)
      << unknown.body;
}

TEST_F(FrontendTest, UnknownFieldsAreWarnedAboutByDefault) {
  net::Response response =
      Post("/api/v1/namespaces/default/configmaps", R"({"metadata":{"name":"a"},"colour":"red"})");
  EXPECT_EQ(response.status, 201);
  EXPECT_EQ(response.headers.Get("warning"), "299 - \"unknown field \\\"colour\\\"\"");
}

TEST_F(FrontendTest, ACertificateOfAnotherAuthorityIsRejected) {
  access_.client_certificate_pem = net::testing::TestCertificates::Get().stranger.certificate_pem;
  access_.client_key_pem = net::testing::TestCertificates::Get().stranger.key_pem;
  http_ = std::make_unique<net::HttpClient>(loop_, client::HttpOptionsFor(access_));
  EXPECT_EQ(Do(net::Method::kGet, "/api/v1/pods").status, 401);
}

TEST_F(FrontendTest, PatchesOfThreeKinds) {
  PostPod("a");
  const std::string path = "/api/v1/namespaces/default/pods/a";
  EXPECT_EQ(Do(net::Method::kPatch, path, R"({"metadata":{"labels":{"x":"1"}}})",
               {{"Content-Type", "application/merge-patch+json"}})
                .status,
            200);
  EXPECT_EQ(
      Do(net::Method::kPatch, path, R"([{"op":"add","path":"/metadata/labels/y","value":"2"}])",
         {{"Content-Type", "application/json-patch+json"}})
          .status,
      200);
  net::Response last =
      Do(net::Method::kPatch, path, R"({"spec":{"containers":[{"name":"c","image":"i:2"}]}})",
         {{"Content-Type", "application/strategic-merge-patch+json"}});
  EXPECT_EQ(last.status, 200) << last.body;
  const api::TreePtr pod = Parse(last);
  EXPECT_EQ(pod->root()["metadata"]["labels"].Entry("x").str(), "1");
  EXPECT_EQ(pod->root()["metadata"]["labels"].Entry("y").str(), "2");
  EXPECT_EQ(pod->root()["spec"]["containers"].at(0)["image"].str(), "i:2");
  EXPECT_EQ(pod->root()["spec"]["containers"].at(0)["imagePullPolicy"].str(), "IfNotPresent")
      << "merged, not replaced";
}

TEST_F(FrontendTest, KubectlGetsATable) {
  PostPod("a");
  net::Response table =
      Do(net::Method::kGet, "/api/v1/namespaces/default/pods", "",
         {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}});
  const api::TreePtr tree = Parse(table);
  EXPECT_EQ(tree->root()["kind"].str(), "Table");
  EXPECT_EQ(tree->root()["rows"].at(0)["cells"].at(0).str(), "a");
  EXPECT_EQ(tree->root()["rows"].at(0)["cells"].at(1).str(), "0/1");
}

TEST_F(FrontendTest, SpeaksYaml) {
  net::Response created =
      Do(net::Method::kPost, "/api/v1/namespaces/default/configmaps",
         "metadata:\n  name: a\ndata:\n  k: v\n",
         {{"Content-Type", "application/yaml"}, {"Accept", "application/yaml"}});
  EXPECT_EQ(created.status, 201) << created.body;
  EXPECT_NE(created.body.find("data:\n  k: v\n"), std::string::npos) << created.body;
}

TEST_F(FrontendTest, AcceptsProtobufBodiesAsTypedGoClientsSendThem) {
  // Envelope{typeMeta{v1, ConfigMap}, raw: ConfigMap{metadata{name: "p"}, data{"a": "b"}}}
  const std::string type = std::string(
      "\x0a\x02v1\x12\x09"
      "ConfigMap");
  const std::string body = std::string("\x0a\x03\x0a\x01p") +
                           "\x12\x06\x0a\x01"
                           "a\x12\x01"
                           "b";
  auto field = [](char tag, const std::string& content) {
    return std::string(1, tag) + static_cast<char>(content.size()) + content;
  };
  const std::string bytes = std::string("k8s\0", 4) + field('\x0a', type) + field('\x12', body);
  net::Response created =
      Do(net::Method::kPost, "/api/v1/namespaces/default/configmaps", bytes,
         {{"Content-Type", "application/vnd.kubernetes.protobuf"}, {"Accept", "application/json"}});
  EXPECT_EQ(created.status, 201) << created.body;
  EXPECT_EQ(Parse(created)->root()["data"].Entry("a").str(), "b");
  // DeleteOptions{gracePeriodSeconds: 0, preconditions{uid: "x"}}
  const std::string options = std::string("\x08\x00\x12\x03\x0a\x01x", 7);
  const std::string delete_type = std::string(
      "\x0a\x02v1\x12\x0d"
      "DeleteOptions");
  net::Response refused =
      Do(net::Method::kDelete, "/api/v1/namespaces/default/configmaps/p",
         std::string("k8s\0", 4) + field('\x0a', delete_type) + field('\x12', options),
         {{"Content-Type", "application/vnd.kubernetes.protobuf"}});
  EXPECT_EQ(refused.status, 409) << "the uid precondition was read: " << refused.body;
  EXPECT_EQ(Do(net::Method::kPost, "/api/v1/namespaces/default/configmaps", "k8s",
               {{"Content-Type", "application/vnd.kubernetes.protobuf"}})
                .status,
            400);
}

TEST_F(FrontendTest, AnswersAndWatchesInProtobuf) {
  PostPod("a");
  const std::string protobuf = "application/vnd.kubernetes.protobuf";
  net::Response list = Do(net::Method::kGet, "/api/v1/pods", "", {{"Accept", protobuf + ", */*"}});
  EXPECT_EQ(list.headers.Get("content-type"), protobuf);
  EXPECT_TRUE(api::HasProtobufMagic(list.body));
  net::Response gone =
      Do(net::Method::kGet, "/api/v1/namespaces/default/pods/none", "", {{"Accept", protobuf}});
  EXPECT_EQ(gone.status, 404);
  ASSERT_TRUE(api::OpenProtobufEnvelope(gone.body).ok());
  EXPECT_EQ(api::OpenProtobufEnvelope(gone.body)->kind, "Status");
  net::Response watch = Do(net::Method::kGet, "/api/v1/pods?watch=1&timeoutSeconds=1", "",
                           {{"Accept", protobuf + ";stream=watch"}});
  EXPECT_EQ(watch.headers.Get("content-type"), protobuf + ";stream=watch");
  ASSERT_GT(watch.body.size(), 4u);
  EXPECT_EQ(
      static_cast<unsigned char>(watch.body[2]) << 8 | static_cast<unsigned char>(watch.body[3]),
      watch.body.size() - 4);
  EXPECT_EQ(
      Do(net::Method::kGet, "/api/v1/pods?watch=1", "", {{"Accept", "application/yaml"}}).status,
      406);
  net::Response resources = Do(net::Method::kGet, "/api/v1", "", {{"Accept", protobuf}});
  EXPECT_EQ(resources.headers.Get("content-type"), "application/json");
  EXPECT_EQ(Parse(resources)->root()["kind"].str(), "APIResourceList");
}

TEST_F(FrontendTest, LargeResponsesAreCompressedOnRequest) {
  const std::string value(200'000, 'x');
  Post("/api/v1/namespaces/default/configmaps",
       R"({"metadata":{"name":"big"},"data":{"k":")" + value + R"("}})");
  const std::string path = "/api/v1/namespaces/default/configmaps/big";
  net::Response plain = Do(net::Method::kGet, path);
  EXPECT_EQ(plain.headers.Get("content-encoding"), "");
  net::Response packed = Do(net::Method::kGet, path, "", {{"Accept-Encoding", "gzip"}});
  EXPECT_EQ(packed.headers.Get("content-encoding"), "gzip");
  EXPECT_LT(packed.body.size(), plain.body.size() / 10);
  EXPECT_EQ(net::Gunzip(packed.body, 1 << 20), plain.body);
  PostPod("a");
  EXPECT_EQ(
      Do(net::Method::kGet, "/api/v1/namespaces/default/pods/a", "", {{"Accept-Encoding", "gzip"}})
          .headers.Get("content-encoding"),
      "")
      << "small answers are sent as they are";
}

TEST_F(FrontendTest, SlicesShowHowManyOfTheirDevicesAreFree) {
  Post(
      "/apis/resource.k8s.io/v1/resourceslices",
      R"({"metadata":{"name":"s"},"spec":{"driver":"d.example.com","nodeName":"n","pool":{)"
      R"("name":"p","generation":1,"resourceSliceCount":1},"devices":[{"name":"a"},{"name":"b"}]}})");
  Post("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
       R"({"metadata":{"name":"c"},"spec":{"devices":{"requests":[{"name":"r","exactly":{)"
       R"("deviceClassName":"x"}}]}}})");
  net::Response allocated =
      Do(net::Method::kPatch, "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c/status",
         R"({"status":{"allocation":{"devices":{"results":[{"request":"r",)"
         R"("driver":"d.example.com","pool":"p","device":"a"}]}}}})",
         {{"Content-Type", "application/merge-patch+json"}});
  ASSERT_EQ(allocated.status, 200) << allocated.body;
  net::Response table = Do(net::Method::kGet, "/apis/resource.k8s.io/v1beta1/resourceslices", "",
                           {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
  const api::TreePtr tree = Parse(table);
  const api::Value cells = tree->root()["rows"].at(0)["cells"];
  ASSERT_EQ(cells.size(), 8u) << table.body;
  EXPECT_EQ(cells.at(5).integer(), 2);
  EXPECT_EQ(cells.at(6).str(), "1");
  EXPECT_EQ(cells.at(7).str(), "1");
}

TEST_F(FrontendTest, OurOwnClientListsWatchesAndWrites) {
  const api::KindSchema* pods = api::FindKind("", "v1", "Pod");
  PostPod("a");
  std::optional<client::ListReply> list;
  client_->List({pods, "", "", ""}, {}, [&](client::ListReply reply) { list = std::move(reply); });
  RunUntil([&] { return list.has_value(); });
  ASSERT_TRUE(list->ok());
  ASSERT_EQ(list->items.size(), 1u);
  EXPECT_EQ(list->items[0]->kind(), "Pod");
  std::vector<std::pair<client::EventType, std::string>> events;
  watch_ = client_->Watch({pods, "", "", ""}, {.resource_version = list->resource_version},
                          {.on_events =
                               [&](std::vector<client::WatchEvent> batch) {
                                 for (const auto& event : batch) {
                                   events.emplace_back(event.type, event.object->name());
                                 }
                               },
                           .on_closed = [](Error error) { FAIL() << error.message; }});
  PostPod("b");
  std::optional<client::Reply> deleted;
  client_->Delete({pods, "default", "a", ""}, {},
                  [&](client::Reply reply) { deleted = std::move(reply); });
  RunUntil([&] { return events.size() == 2; });
  EXPECT_EQ(events[0], std::pair(client::EventType::kAdded, std::string("b")));
  EXPECT_EQ(events[1], std::pair(client::EventType::kDeleted, std::string("a")));
}

TEST_F(FrontendTest, AWatchFromACompactedVersionTellsTheClientToListAgain) {
  const api::KindSchema* pods = api::FindKind("", "v1", "Pod");
  std::optional<Error> closed;
  client::WatchOptions future;
  future.resource_version = 1'000'000;
  watch_ = client_->Watch({pods, "", "", ""}, future,
                          {.on_events = [](std::vector<client::WatchEvent>) {},
                           .on_closed = [&](Error error) { closed = std::move(error); }});
  RunUntil([&] { return closed.has_value(); });
  EXPECT_NE(closed->message.find("Too large resource version"), std::string::npos)
      << closed->message;
}

TEST_F(FrontendTest, ServesHealthAndDiscovery) {
  EXPECT_EQ(Do(net::Method::kGet, "/readyz").body, "ok");
  EXPECT_EQ(Do(net::Method::kGet, "/version").status, 200);
  EXPECT_EQ(Parse(Do(net::Method::kGet, "/apis/resource.k8s.io/v1"))->root()["kind"].str(),
            "APIResourceList");
}

}  // namespace
}  // namespace drakkar::apiserver
