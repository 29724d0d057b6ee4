#include <stdlib.h>

#include "base/exec/uv_loop.h"
#include "base/hash/base64.h"
#include "base/hash/sha256.h"
#include "base/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/http/url.h"
#include "node/runtime/registry/credentials.h"
#include "node/runtime/registry/image_puller.h"
#include "node/runtime/registry/registries.h"
#include "node/runtime/testing/tar_writer.h"

namespace drakkar::node {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Answer {
  int status = 200;
  net::Headers headers;
  std::string body;
  bool breaks = false;    // the connection ends after the body
  std::size_t hangs = 0;  // nothing more after this many bytes, if not zero
};

struct Seen {
  std::string url;
  std::string authorization;
  std::string range;
};

// Servers that answer as the test says, by URL without the query.
class FakeWeb final : public RegistryHttp {
 public:
  explicit FakeWeb(UvLoop& loop) : loop_(loop) {}

  std::unique_ptr<net::RequestHandle> Stream(net::ClientRequest request,
                                             net::StreamSink& sink) override {
    seen.push_back({request.url, std::string(request.headers.Get("authorization")),
                    std::string(request.headers.Get("range"))});
    auto handle = std::make_unique<Handle>();
    const Lifetime::Observer wanted = handle->lifetime.Observe();
    Answer answer{.status = 404};
    const std::string path = request.url.substr(0, request.url.find('?'));
    if (auto found = pages.find(path); found != pages.end()) answer = found->second(seen.back());
    loop_.Post([wanted, &sink, answer] {
      if (!wanted.alive()) return;
      sink.OnResponse(answer.status, answer.headers);
      for (std::size_t at = 0; at < answer.body.size() && wanted.alive(); at += 1000) {
        if (answer.hangs > 0 && at >= answer.hangs) return;
        sink.OnData(std::string_view(answer.body).substr(at, 1000));
      }
      if (!wanted.alive()) return;
      sink.OnEnd(answer.breaks ? Result<void>(Unavailable("connection reset")) : Ok());
    });
    return handle;
  }
  std::vector<std::string> Urls() const {
    std::vector<std::string> urls;
    for (const Seen& each : seen) urls.push_back(each.url);
    return urls;
  }

  std::map<std::string, std::function<Answer(const Seen&)>> pages;
  std::vector<Seen> seen;

 private:
  struct Handle final : net::RequestHandle {
    Lifetime lifetime;
  };
  UvLoop& loop_;
};

std::string DigestOf(std::string_view bytes) {
  return "sha256:" + Sha256Hex(bytes);
}

class PullTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/drakkar-pull-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    directory_ = pattern;
    store_ = std::make_unique<ImageStore>(RealFileSystem(), RealRandom(), directory_ + "/images");
    ASSERT_TRUE(store_->Open().ok());
    endpoints_ = {{.base = kRegistry, .http = &web_}};
    // Not compressible, so that it has many pieces.
    std::string noise;
    for (int i = 0; i < 500; ++i) noise += Sha256Hex(std::to_string(i));
    layers_ = {Gzip(TarWriter().File("etc/a", "one").Finish()),
               Gzip(TarWriter().File("etc/b", noise).Finish())};
    Publish();
  }
  void TearDown() override { EXPECT_TRUE(RealFileSystem().RemoveTree(directory_).ok()); }

  void Blob(const std::string& content) {
    web_.pages[StrCat(kRegistry, "/v2/team/app/blobs/", DigestOf(content))] =
        [content](const Seen&) { return Answer{.body = content}; };
  }
  void Publish() {
    std::string list;
    for (const std::string& layer : layers_) {
      list += StrCat(list.empty() ? "" : ",", R"({"digest":")", DigestOf(layer), R"(","size":)",
                     layer.size(), "}");
      Blob(layer);
    }
    Blob(config_);
    manifest_ = StrCat(R"({"schemaVersion":2,"config":{"digest":")", DigestOf(config_),
                       R"(","size":)", config_.size(), R"(},"layers":[)", list, "]}");
    Manifest("1", manifest_);
  }
  void Manifest(const std::string& reference, const std::string& text) {
    web_.pages[StrCat(kRegistry, "/v2/team/app/manifests/", reference)] = [text](const Seen&) {
      return Answer{.body = text};
    };
  }
  std::string BlobUrl(const std::string& content) {
    return StrCat(kRegistry, "/v2/team/app/blobs/", DigestOf(content));
  }

  Result<Image> Pull(std::vector<RegistryCredential> credentials = {},
                     const std::string& name = "registry.example.com/team/app:1") {
    web_.seen.clear();
    std::optional<Result<Image>> result;
    WorkerPool workers(1, 10);
    loop_.Post([&] {
      puller_ = std::make_unique<ImagePuller>(
          ImagePuller::Options{.loop = loop_,
                               .files = RealFileSystem(),
                               .workers = workers,
                               .images = *store_,
                               .directory = directory_ + "/downloads",
                               .endpoints = [this](const std::string&) { return endpoints_; },
                               .stall_timeout = stall_timeout_});
      puller_->Pull(
          {.image = name, .credentials = std::move(credentials)},
          [this](const ImagePuller::Progress& progress) { progress_ = progress; },
          [&](Result<Image> image) {
            result = std::move(image);
            loop_.Stop();
          });
    });
    loop_.Run();
    loop_.Post([&] {
      puller_.reset();
      loop_.Stop();
    });
    loop_.Run();
    workers.Stop();
    return *std::move(result);
  }

  static constexpr char kRegistry[] = "https://registry.example.com";
  UvLoop loop_;
  FakeWeb web_{loop_};
  std::string directory_;
  std::unique_ptr<ImageStore> store_;
  std::vector<RegistryEndpoint> endpoints_;
  std::vector<std::string> layers_;
  std::string config_ = R"({"config":{"Cmd":["/bin/a"]}})";
  std::string manifest_;
  ImagePuller::Progress progress_;
  Duration stall_timeout_ = std::chrono::seconds(30);
  std::unique_ptr<ImagePuller> puller_;
};

TEST_F(PullTest, AnImageIsStoredUnderItsNameWithAllLayers) {
  const auto image = Pull();
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_THAT(image->names, ElementsAre("registry.example.com/team/app:1"));
  EXPECT_EQ(image->id, DigestOf(config_));
  EXPECT_THAT(image->digests,
              ElementsAre(StrCat("registry.example.com/team/app@", DigestOf(manifest_))));
  const auto stored = store_->Find("registry.example.com/team/app:1");
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(*RealFileSystem().ReadFile(stored->rootfs + "/etc/a"), "one");
  EXPECT_FALSE(*store_->IsImported("registry.example.com/team/app:1"));
  EXPECT_EQ(progress_.received_bytes, progress_.total_bytes);
  EXPECT_THAT(*RealFileSystem().ListDirectory(directory_ + "/downloads"), IsEmpty());
}

TEST_F(PullTest, TheVariantOfThisMachineIsChosen) {
#if defined(__x86_64__)
  constexpr char kArchitecture[] = "amd64";
#else
  constexpr char kArchitecture[] = "arm64";
#endif
  const auto entry = [&](const char* architecture, const std::string& digest) {
    return StrCat(R"({"digest":")", digest,
                  R"(","size":1,"platform":{"os":"linux","architecture":")", architecture,
                  R"("}})");
  };
  const std::string index = StrCat(R"({"manifests":[)", entry("s390x", DigestOf("other")), ",",
                                   entry(kArchitecture, DigestOf(manifest_)), "]}");
  Manifest("1", index);
  Manifest(DigestOf(manifest_), manifest_);
  const auto image = Pull();
  ASSERT_TRUE(image.ok()) << image.error().message;
  // The name stands for all variants.
  EXPECT_THAT(image->digests,
              ElementsAre(StrCat("registry.example.com/team/app@", DigestOf(index))));
  Manifest("1", StrCat(R"({"manifests":[)", entry("s390x", DigestOf("other")), "]}"));
  EXPECT_THAT(Pull().error().message, HasSubstr("no variant for linux/"));
}

TEST_F(PullTest, AnUnchangedImageIsNotFetchedAgain) {
  ASSERT_TRUE(Pull().ok());
  ASSERT_TRUE(Pull().ok());
  EXPECT_THAT(web_.Urls(), ElementsAre(StrCat(kRegistry, "/v2/team/app/manifests/1")));
}

TEST_F(PullTest, DigestsAreVerified) {
  // The manifest of a pinned image.
  const std::string pinned = "registry.example.com/team/app@" + DigestOf(manifest_);
  Manifest(DigestOf(manifest_), manifest_ + " ");
  EXPECT_THAT(Pull({}, pinned).error().message, HasSubstr("returned a manifest with digest"));
  Manifest(DigestOf(manifest_), manifest_);
  EXPECT_TRUE(Pull({}, pinned).ok());
  ASSERT_TRUE(store_->Remove(pinned).ok());
  // A layer with the right size and other content.
  std::string damaged = layers_[0];
  damaged.back() ^= 1;
  web_.pages[BlobUrl(layers_[0])] = [&](const Seen&) { return Answer{.body = damaged}; };
  EXPECT_FALSE(Pull().ok());
  EXPECT_FALSE(store_->Find("registry.example.com/team/app:1").ok());
  Blob(layers_[0]);
  EXPECT_TRUE(Pull().ok()) << "the damaged download is not used again";
}

TEST_F(PullTest, AnInterruptedDownloadIsResumed) {
  const std::string& layer = layers_[1];
  web_.pages[BlobUrl(layer)] = [&](const Seen& seen) {
    if (seen.range.empty()) return Answer{.body = layer.substr(0, 5000), .breaks = true};
    EXPECT_EQ(seen.range, "bytes=5000-");
    return Answer{
        .status = 206,
        .headers = {{"Content-Range", StrCat("bytes 5000-", layer.size() - 1, "/", layer.size())}},
        .body = layer.substr(5000)};
  };
  const auto image = Pull();
  EXPECT_TRUE(image.ok()) << image.error().message;
}

TEST_F(PullTest, AServerThatIgnoresTheRangeStartsAnew) {
  const std::string& layer = layers_[1];
  web_.pages[BlobUrl(layer)] = [&](const Seen& seen) {
    if (seen.range.empty()) return Answer{.body = layer.substr(0, 5000), .breaks = true};
    return Answer{.body = layer};
  };
  const auto image = Pull();
  EXPECT_TRUE(image.ok()) << image.error().message;
}

TEST_F(PullTest, ALayerLargerThanItsManifestSaysIsCutOff) {
  web_.pages[BlobUrl(layers_[0])] = [&](const Seen&) {
    return Answer{.body = layers_[0] + std::string(1 << 20, 'x')};
  };
  EXPECT_THAT(Pull().error().message, HasSubstr("more bytes than it announced"));
}

TEST_F(PullTest, HostileManifestsAreRefused) {
  const std::string config =
      StrCat(R"("config":{"digest":")", DigestOf(config_), R"(","size":10})");
  for (const std::string& text :
       {std::string(""), std::string("{"), std::string("[]"), std::string("{}"),
        std::string(R"({"schemaVersion":1,"fsLayers":[]})"), StrCat("{", config, "}"),
        StrCat("{", config, R"(,"layers":[{"digest":"sha256:../../etc","size":1}]})"),
        StrCat("{", config, R"(,"layers":[{"digest":")", DigestOf("x"), R"(","size":-1}]})"),
        StrCat("{", config, R"(,"layers":[{"digest":")", DigestOf("x"),
               R"(","size":999999999999999}]})"),
        StrCat("{", config, R"(,"layers":[{"digest":")", DigestOf("x"),
               R"(","size":1,"urls":["https://elsewhere"]}]})"),
        StrCat("{", R"("config":{"digest":")", DigestOf(config_),
               R"(","size":99999999},"layers":[]})"),
        std::string(5 << 20, ' ')}) {
    Manifest("1", text);
    EXPECT_FALSE(Pull().ok()) << text.substr(0, 100);
  }
  // An index that leads to itself.
  const std::string loop = R"({"manifests":[]})";
  Manifest("1", loop);
  EXPECT_FALSE(Pull().ok());
}

TEST_F(PullTest, ARegistryThatSaysNothingIsGivenUp) {
  stall_timeout_ = std::chrono::milliseconds(50);
  web_.pages[BlobUrl(layers_[1])] = [&](const Seen&) {
    return Answer{.body = layers_[1], .hangs = 2000};
  };
  const auto image = Pull();
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.error().code, ErrorCode::kDeadlineExceeded);
}

TEST_F(PullTest, AMissingImageIsNotFoundAndABusyRegistryIsNot) {
  web_.pages.erase(StrCat(kRegistry, "/v2/team/app/manifests/1"));
  EXPECT_EQ(Pull().error().code, ErrorCode::kNotFound);
  web_.pages[StrCat(kRegistry, "/v2/team/app/manifests/1")] = [](const Seen&) {
    return Answer{.status = 429,
                  .body = R"({"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]})"};
  };
  const auto image = Pull();
  EXPECT_EQ(image.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(image.error().message, "the registry answered 429: slow down");
}

TEST_F(PullTest, BasicCredentialsAreSentOnlyWhenAsked) {
  for (auto& [url, page] : web_.pages) {
    page = [page](const Seen& seen) {
      if (seen.authorization == "Basic " + Base64Encode("me:secret")) return page(seen);
      return Answer{.status = 401, .headers = {{"WWW-Authenticate", R"(Basic realm="r")"}}};
    };
  }
  EXPECT_EQ(Pull().error().code, ErrorCode::kForbidden);
  const auto image = Pull({{"other", "wrong"}, {"me", "secret"}});
  EXPECT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(web_.seen.front().authorization, "");
  EXPECT_EQ(Pull({{"me", "wrong"}}).error().message.find("wrong"), std::string::npos);
}

TEST_F(PullTest, ABearerTokenIsFetchedFromTheServerThatTheRegistryNames) {
  for (auto& [url, page] : web_.pages) {
    page = [page](const Seen& seen) {
      if (seen.authorization == "Bearer t1") return page(seen);
      return Answer{.status = 401,
                    .headers = {{"WWW-Authenticate",
                                 R"(Bearer realm="https://auth.example.com/token",)"
                                 R"(service="registry, inc",scope="repository:team/app:pull")"}}};
    };
  }
  web_.pages["https://auth.example.com/token"] = [](const Seen&) {
    return Answer{.body = R"({"token":"t1"})"};
  };
  ASSERT_TRUE(Pull({{"me", "secret"}}).ok());
  std::vector<std::string> token_urls;
  for (const Seen& seen : web_.seen) {
    if (!seen.url.starts_with("https://auth")) continue;
    token_urls.push_back(seen.url);
    EXPECT_EQ(seen.authorization, "Basic " + Base64Encode("me:secret"));
  }
  EXPECT_THAT(token_urls, ElementsAre("https://auth.example.com/token?service=registry%2C%20inc&"
                                      "scope=repository%3Ateam%2Fapp%3Apull"))
      << "once for all blobs";
}

TEST_F(PullTest, TokensAreNotFetchedOverPlainHttp) {
  web_.pages[StrCat(kRegistry, "/v2/team/app/manifests/1")] = [](const Seen&) {
    return Answer{.status = 401,
                  .headers = {{"WWW-Authenticate", R"(Bearer realm="http://auth.example.com/t")"}}};
  };
  EXPECT_EQ(Pull({{"me", "secret"}}).error().code, ErrorCode::kForbidden);
  EXPECT_THAT(web_.Urls(), Each(Not(HasSubstr("http://"))));
}

TEST_F(PullTest, CredentialsDoNotFollowARedirectToAnotherHost) {
  for (auto& [url, page] : web_.pages) {
    page = [page](const Seen& seen) {
      if (seen.authorization.empty()) {
        return Answer{.status = 401, .headers = {{"WWW-Authenticate", "Basic"}}};
      }
      return page(seen);
    };
  }
  web_.pages[BlobUrl(layers_[0])] = [](const Seen&) {
    return Answer{.status = 307, .headers = {{"Location", "https://cdn.example.net/blob"}}};
  };
  web_.pages["https://cdn.example.net/blob"] = [&](const Seen& seen) {
    EXPECT_EQ(seen.authorization, "");
    return Answer{.body = layers_[0]};
  };
  // Within the registry they do.
  web_.pages[BlobUrl(layers_[1])] = [](const Seen&) {
    return Answer{.status = 302, .headers = {{"Location", "/elsewhere"}}};
  };
  web_.pages[StrCat(kRegistry, "/elsewhere")] = [&](const Seen& seen) {
    EXPECT_NE(seen.authorization, "");
    return Answer{.body = layers_[1]};
  };
  const auto image = Pull({{"me", "secret"}});
  EXPECT_TRUE(image.ok()) << image.error().message;
}

TEST_F(PullTest, RedirectsAreBoundedAndNeverLeadToPlainHttp) {
  web_.pages[BlobUrl(layers_[0])] = [this](const Seen&) {
    return Answer{.status = 307, .headers = {{"Location", BlobUrl(layers_[0])}}};
  };
  EXPECT_THAT(Pull().error().message, HasSubstr("redirects too often"));
  for (const char* location : {"http://cdn.example.net/b", "ftp://x/y", "", "//", "javascript:x"}) {
    web_.pages[BlobUrl(layers_[0])] = [location](const Seen&) {
      return Answer{.status = 307, .headers = {{"Location", location}}};
    };
    EXPECT_FALSE(Pull().ok()) << location;
    EXPECT_THAT(web_.Urls(), Each(Not(HasSubstr("http://")))) << location;
  }
}

// A tenant chooses the registry, and the node is who asks.
TEST_F(PullTest, ARegistryDoesNotLeadToWhatOnlyThisMachineReaches) {
  const char* const kHosts[] = {"127.0.0.1:10250",
                                "localhost:8080",
                                "LOCALHOST",
                                "[::1]:2379",
                                "169.254.169.254",
                                "[::ffff:169.254.169.254]",
                                "[fe80::1]",
                                "[fd00:ec2::254]",
                                "100.100.100.200",
                                "0.0.0.0",
                                "[::]"};
  for (const char* host : kHosts) {
    web_.seen.clear();
    web_.pages[BlobUrl(layers_[0])] = [host](const Seen&) {
      return Answer{.status = 307, .headers = {{"Location", StrCat("https://", host, "/x")}}};
    };
    EXPECT_THAT(Pull().error().message, HasSubstr("which only this machine can reach")) << host;
    EXPECT_THAT(web_.Urls(), Each(Not(HasSubstr(host))));
  }
  for (const char* host : kHosts) {
    web_.seen.clear();
    web_.pages[StrCat(kRegistry, "/v2/team/app/manifests/1")] = [host](const Seen&) {
      return Answer{
          .status = 401,
          .headers = {{"WWW-Authenticate", StrCat(R"(Bearer realm="https://)", host, R"(/t")")}}};
    };
    EXPECT_THAT(Pull({{"me", "secret"}}).error().message,
                HasSubstr("which only this machine can reach"))
        << host;
    EXPECT_THAT(web_.Urls(), Each(Not(HasSubstr(host))));
  }
}

TEST_F(PullTest, MirrorsAreAskedFirstWithoutTheCredentialsOfTheRegistry) {
  endpoints_.insert(endpoints_.begin(),
                    {.base = "https://mirror.example.net", .http = &web_, .is_own = false});
  web_.pages["https://mirror.example.net/v2/team/app/manifests/1"] = [](const Seen& seen) {
    EXPECT_EQ(seen.authorization, "");
    return Answer{.status = 401, .headers = {{"WWW-Authenticate", "Basic"}}};
  };
  const auto image = Pull({{"me", "secret"}});
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(web_.seen.front().url, "https://mirror.example.net/v2/team/app/manifests/1");
}

TEST(RegistryCredentials, AreReadFromBothKindsOfSecrets) {
  const auto logins = ParseDockerConfig(
      StrCat(
          R"({"auths":{"https://index.docker.io/v1/":{"auth":")", Base64Encode("a:b:c"),
          R"("},"registry.example.com":{"username":"u","password":"p"},"empty.example.com":{}}})"),
      false);
  ASSERT_TRUE(logins.ok()) << logins.error().message;
  ASSERT_EQ(logins->size(), 2u);
  EXPECT_EQ((*logins)[0].scope, "docker.io");
  EXPECT_EQ((*logins)[0].credential, (RegistryCredential{"a", "b:c"}));
  const auto old = ParseDockerConfig(R"({"r.example.com":{"username":"u","password":"p"}})", true);
  ASSERT_TRUE(old.ok());
  EXPECT_EQ(old->size(), 1u);
  const auto bad = ParseDockerConfig(R"({"auths":{"x":{"auth":"c2VjcmV0"}}})", false);
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().message.find("secret"), std::string::npos);
}

TEST(RegistryCredentials, TheMostSpecificScopeWins) {
  const std::vector<RegistryLogin> logins = {{"example.com", {"host", ""}},
                                             {"example.com/team", {"team", ""}},
                                             {"*.example.com", {"wild", ""}},
                                             {"other.com", {"other", ""}}};
  const auto users = [&](std::string_view image) {
    std::vector<std::string> names;
    for (const auto& each : ChooseLogins(logins, image)) names.push_back(each.username);
    return names;
  };
  EXPECT_THAT(users("example.com/team/app:1"), ElementsAre("team", "host"));
  EXPECT_THAT(users("example.com/app:1"), ElementsAre("host"));
  EXPECT_THAT(users("a.example.com/app:1"), ElementsAre("wild"));
  EXPECT_THAT(users("a.b.example.com/app:1"), IsEmpty());
  EXPECT_THAT(users("example.com.evil.org/app:1"), IsEmpty());
}

TEST(RegistryCredentials, BearerIsPreferredAndUnknownSchemesAreRefused) {
  auto challenge = ParseChallenge(
      {"Negotiate", "Basic realm=\"x\"", R"(Bearer realm="https://a/t",service=s,scope="a,b")"});
  ASSERT_TRUE(challenge.ok());
  EXPECT_TRUE(challenge->is_bearer);
  EXPECT_EQ(challenge->realm, "https://a/t");
  EXPECT_EQ(challenge->service, "s");
  EXPECT_EQ(challenge->scope, "a,b");
  EXPECT_FALSE(ParseChallenge({"Negotiate"}).ok());
  EXPECT_FALSE(ParseChallenge({R"(Bearer realm="unterminated)"})->realm.empty());
  EXPECT_FALSE(ParseChallenge({"Bearer"}).ok());
}

TEST(Registries, OnlyLoopbackAndInsecureOnesMayUsePlainHttp) {
  UvLoop loop;
  loop.Post([&] {
    Registries registries(loop, {.mirrors = {{"docker.io", {"https://m.example.com/"}}},
                                 .hosts = {},
                                 .insecure = {"10.0.0.1:5000"}});
    const auto bases = [&](const std::string& host) {
      std::vector<std::string> list;
      for (const auto& each : registries.EndpointsOf(host)) list.push_back(each.base);
      return list;
    };
    EXPECT_THAT(bases("docker.io"),
                ElementsAre("https://m.example.com", "https://registry-1.docker.io"));
    EXPECT_THAT(bases("example.com"), ElementsAre("https://example.com"));
    EXPECT_THAT(bases("localhost:5000"),
                ElementsAre("https://localhost:5000", "http://localhost:5000"));
    EXPECT_THAT(bases("10.0.0.1:5000"), Contains("http://10.0.0.1:5000"));
    EXPECT_THAT(bases("127.evil.com"), Not(Contains("http://127.evil.com")));
    loop.Stop();
  });
  loop.Run();
}

}  // namespace
}  // namespace drakkar::node
