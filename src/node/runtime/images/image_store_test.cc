#include "node/runtime/images/image_store.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <zstd.h>

#include <algorithm>

#include "base/env/file_system.h"
#include "base/hash/sha256.h"
#include "base/testing/faulty_file_system.h"
#include "base/text/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "node/runtime/images/byte_source.h"
#include "node/runtime/images/image_collector.h"
#include "node/runtime/images/image_name.h"
#include "node/runtime/images/tar_reader.h"
#include "node/runtime/images/unpack.h"
#include "node/runtime/testing/tar_writer.h"

namespace drakkar::node {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ImageName, IsCompletedWithRegistryAndTag) {
  EXPECT_EQ(*NormalizeImageName("busybox"), "docker.io/library/busybox:latest");
  EXPECT_EQ(*NormalizeImageName("library/busybox:1"), "docker.io/library/busybox:1");
  EXPECT_EQ(*NormalizeImageName("me/app"), "docker.io/me/app:latest");
  EXPECT_EQ(*NormalizeImageName("localhost/hello:1"), "localhost/hello:1");
  EXPECT_EQ(*NormalizeImageName("registry.example.com:5000/a/b"),
            "registry.example.com:5000/a/b:latest");
  EXPECT_EQ(*NormalizeImageName("index.docker.io/library/x"), "docker.io/library/x:latest");
  const std::string digest = "@sha256:" + std::string(64, '0');
  EXPECT_EQ(*NormalizeImageName("a:1" + digest), "docker.io/library/a" + digest);
  for (const char* bad : {"", "A", "a//b", "a:", "a:b:c", "-a", "a@sha256:12", "a b", "../x",
                          "a__-b", "bad_host.:x/y", "example.com/"}) {
    EXPECT_FALSE(NormalizeImageName(bad).ok()) << bad;
  }
}

TEST(ImageName, AnImageIsReferredToByTheManifestItWasPulledBy) {
  EXPECT_EQ(RepositoryOf("docker.io/library/a:1"), "docker.io/library/a");
  EXPECT_EQ(RepositoryOf("localhost:5000/a"), "localhost:5000/a");
  EXPECT_EQ(RepositoryOf("localhost:5000/a@sha256:12"), "localhost:5000/a");
  Image image{.id = "sha256:1"};
  EXPECT_EQ(ReferenceTo(image, "a:1"), "sha256:1");
  image.digests = {"docker.io/library/a@sha256:2", "example.com/b@sha256:3"};
  EXPECT_EQ(ReferenceTo(image, "a:1"), "docker.io/library/a@sha256:2");
  EXPECT_EQ(ReferenceTo(image, "example.com/b:7"), "example.com/b@sha256:3");
  EXPECT_EQ(ReferenceTo(image, "sha256:1"), "docker.io/library/a@sha256:2");
}

class ImageStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/drakkar-images-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    directory_ = pattern;
    store_ = std::make_unique<ImageStore>(files_, RealRandom(), directory_ + "/images");
    ASSERT_TRUE(store_->Open().ok());
  }
  void TearDown() override { EXPECT_TRUE(files_.RemoveTree(directory_).ok()); }

  std::string Put(const std::string& name, std::string_view content) {
    const std::string path = directory_ + "/" + name;
    EXPECT_TRUE(files_.MakeDirectories(DirectoryName(path), 0755).ok());
    EXPECT_TRUE(files_.WriteFile(path, content, 0644).ok());
    return path;
  }
  std::string Blob(std::string_view content) {
    const std::string hex = Sha256Hex(content);
    Put("layout/blobs/sha256/" + hex, content);
    return "sha256:" + hex;
  }
  // A layout with these layers; returns its directory.
  std::string Layout(const std::vector<std::string>& layers, const std::string& config = "{}") {
    std::string list;
    for (const std::string& layer : layers) {
      if (!list.empty()) list += ",";
      list += StrCat(R"({"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":")",
                     Blob(layer), R"(","size":)", layer.size(), "}");
    }
    const std::string manifest = StrCat(R"({"schemaVersion":2,"config":{"digest":")", Blob(config),
                                        R"("},"layers":[)", list, "]}");
    Put("layout/oci-layout", R"({"imageLayoutVersion":"1.0.0"})");
    Put("layout/index.json",
        StrCat(
            R"({"schemaVersion":2,"manifests":[{"digest":")", Blob(manifest),
            R"(","annotations":{"org.opencontainers.image.ref.name":"localhost/from-index:2"}}]})"));
    return directory_ + "/layout";
  }
  // The same layout as one file.
  std::string PackedLayout(const std::string& layout) {
    TarWriter tar;
    for (const char* name : {"oci-layout", "index.json"}) {
      tar.File(name, *files_.ReadFile(layout + "/" + name));
    }
    const auto blobs = files_.ListDirectory(layout + "/blobs/sha256");
    for (const std::string& blob : *blobs) {
      tar.File("blobs/sha256/" + blob, *files_.ReadFile(layout + "/blobs/sha256/" + blob));
    }
    return Put("layout.tar.gz", Gzip(tar.Finish()));
  }
  Result<Image> Import(const std::string& path, const std::string& name) {
    ImportOptions options;
    options.name = name;
    return store_->Import(path, options);
  }
  std::string Rooted(const std::string& image, const std::string& path) {
    auto stored = store_->Find(image);
    if (!stored.ok()) return stored.error().message;
    auto text = files_.ReadFile(stored->rootfs + "/" + path);
    return text.ok() ? *text : "(none)";
  }

  FileSystem& files_ = RealFileSystem();
  std::string directory_;
  std::unique_ptr<ImageStore> store_;
};

TEST_F(ImageStoreTest, ImportsARootFileSystemPlainOrCompressed) {
  const std::string tar = TarWriter().Directory("./bin/").File("./bin/x", "run", 0755).Finish();
  auto plain = Import(Put("a.tar", tar), "hello");
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plain->id, "sha256:" + Sha256Hex(tar));
  EXPECT_THAT(plain->names, ElementsAre("docker.io/library/hello:latest"));
  EXPECT_EQ(Rooted("hello", "bin/x"), "run");
  auto packed = Import(Put("a.tgz", Gzip(tar)), "localhost/hello:1");
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  EXPECT_EQ(Rooted("localhost/hello:1", "bin/x"), "run");
  EXPECT_EQ(store_->List()->size(), 2u);
  EXPECT_TRUE(store_->Find(plain->id).ok());
  EXPECT_TRUE(store_->Find(plain->id.substr(7, 12)).ok());
  EXPECT_FALSE(Import(directory_ + "/a.tar", "").ok())
      << "a root file system has no name of its own";
}

TEST_F(ImageStoreTest, ImportingAgainOnlyAddsTheNameAndANameMoves) {
  const std::string first = Put("1.tar", TarWriter().File("v", "1").Finish());
  const std::string second = Put("2.tar", TarWriter().File("v", "2").Finish());
  ASSERT_TRUE(Import(first, "a").ok());
  auto again = Import(first, "b");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->names.size(), 2u);
  ASSERT_TRUE(Import(second, "a").ok());
  EXPECT_EQ(Rooted("a", "v"), "2");
  EXPECT_EQ(Rooted("b", "v"), "1");
}

TEST_F(ImageStoreTest, AppliesLayersWithWhiteoutsAndOpaqueDirectories) {
  const std::string base = TarWriter()
                               .Directory("d/")
                               .File("d/old", "old")
                               .File("gone", "x")
                               .Directory("tree/")
                               .File("tree/deep", "x")
                               .File("kept", "1")
                               .Finish();
  const std::string top = TarWriter()
                              .File("d/new", "new")
                              .File("d/.wh..wh..opq", "")
                              .File(".wh.gone", "")
                              .File(".wh.tree", "")
                              .File("kept", "2")
                              .Finish();
  const std::string config =
      R"({"config":{"Env":["A=1"],"Entrypoint":["/e"],"Cmd":["c"],"WorkingDir":"/w","User":"guest","StopSignal":"SIGINT"}})";
  auto image = Import(Layout({Gzip(base), top}, config), "");
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_THAT(image->names, ElementsAre("localhost/from-index:2"));
  EXPECT_EQ(image->id, "sha256:" + Sha256Hex(config));
  const std::string name = "localhost/from-index:2";
  EXPECT_EQ(Rooted(name, "d/old"), "(none)");
  EXPECT_EQ(Rooted(name, "d/new"), "new");
  EXPECT_EQ(Rooted(name, "gone"), "(none)");
  EXPECT_EQ(Rooted(name, "tree/deep"), "(none)");
  EXPECT_EQ(Rooted(name, "kept"), "2");
  EXPECT_EQ(Rooted(name, ".wh.gone"), "(none)");
  auto stored = store_->Find(name);
  EXPECT_THAT(stored->config.environment, ElementsAre("A=1"));
  EXPECT_THAT(stored->config.entrypoint, ElementsAre("/e"));
  EXPECT_THAT(stored->config.command, ElementsAre("c"));
  EXPECT_EQ(stored->config.working_directory, "/w");
  EXPECT_EQ(stored->config.user, "guest");
  EXPECT_EQ(stored->config.stop_signal, "SIGINT");
}

TEST_F(ImageStoreTest, ImportsALayoutPackedAsTar) {
  const std::string layout = Layout({TarWriter().File("x", "1").Finish()});
  auto image = Import(PackedLayout(layout), "packed");
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_EQ(Rooted("packed", "x"), "1");
}

// `docker save` writes one entry of the index per name.
TEST_F(ImageStoreTest, AnImageUnderSeveralNamesInTheIndexIsOneImage) {
  const std::string layout = Layout({TarWriter().File("x", "1").Finish()});
  const std::string index = *files_.ReadFile(layout + "/index.json");
  const std::string entry =
      index.substr(index.find('[') + 1, index.rfind(']') - index.find('[') - 1);
  std::string second = entry;
  second.replace(second.find("from-index:2"), 12, "from-index:3");
  Put("layout/index.json", StrCat(R"({"manifests":[)", entry, ",", second, "]}"));
  const auto image = Import(layout, "");
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_THAT(image->names, ElementsAre("localhost/from-index:2", "localhost/from-index:3"));
  // A name chooses among different images, and is an error without one.
  const std::string digest = StrCat("sha256:", std::string(64, '0'));
  second.replace(second.find("sha256:"), digest.size(), digest);
  Put("layout/index.json", StrCat(R"({"manifests":[)", entry, ",", second, "]}"));
  EXPECT_THAT(Import(layout, "").error().message, HasSubstr("several images"));
  EXPECT_THAT(Import(layout, "localhost/from-index:2")->names,
              ElementsAre("localhost/from-index:2", "localhost/from-index:3"));
}

TEST_F(ImageStoreTest, RefusesDamagedBlobsAndLeavesNothingBehind) {
  const std::string layer = TarWriter().File("x", "1").Finish();
  const std::string layout = Layout({layer});
  std::string damaged = layer;
  damaged[512] = '2';
  Put("layout/blobs/sha256/" + Sha256Hex(layer), damaged);
  auto image = Import(layout, "x");
  ASSERT_FALSE(image.ok());
  EXPECT_THAT(image.error().message, HasSubstr("is damaged"));
  EXPECT_THAT(*store_->List(), IsEmpty());
  EXPECT_THAT(*files_.ListDirectory(directory_ + "/images"), ElementsAre("lock"));
}

TEST_F(ImageStoreTest, NothingIsWrittenOutsideTheRoot) {
  Put("outside/victim", "safe");
  const std::string up = "../../../../../../../.." + directory_ + "/outside";
  // Links resolve inside the root, where the target does not exist.
  for (const std::string& target : {directory_ + "/outside", up}) {
    auto image = Import(
        Put("l.tar", TarWriter().Symlink("out", target).File("out/victim", "overwritten").Finish()),
        "links");
    EXPECT_FALSE(image.ok());
    EXPECT_EQ(*files_.ReadFile(directory_ + "/outside/victim"), "safe");
  }
  auto inside = Import(
      Put("i.tar",
          TarWriter().Directory("usr/lib").Symlink("lib", "/usr/lib").File("lib/x", "1").Finish()),
      "inside");
  ASSERT_TRUE(inside.ok()) << inside.error().message;
  EXPECT_EQ(Rooted("inside", "usr/lib/x"), "1");
  auto dots = Import(Put("d.tar", TarWriter().File("../victim", "x").Finish()), "dots");
  ASSERT_FALSE(dots.ok());
  EXPECT_THAT(dots.error().message, HasSubstr("leads out"));
  auto hard = Import(Put("h.tar", TarWriter().HardLink("x", "../outside/victim").Finish()), "hard");
  EXPECT_FALSE(hard.ok());
}

TEST_F(ImageStoreTest, AnArchivedLayoutLeadsToNoOtherFileOfTheMachine) {
  // Everything that the archive leaves out is here, and would be found if its links were followed.
  const std::string layer = TarWriter().File("x", "secret").Finish();
  const std::string outside = Layout({layer});
  const std::vector<std::string> blobs = *files_.ListDirectory(outside + "/blobs/sha256");
  const auto archive = [&](const std::vector<std::string>& links, char type) {
    TarWriter tar;
    const auto add = [&](const std::string& name) {
      const bool is_link = std::ranges::find(links, name) != links.end();
      if (is_link) {
        tar.Raw(type, name, type == '2' ? StrCat(outside, "/", name) : "", 0644, "");
      } else {
        tar.File(name, *files_.ReadFile(StrCat(outside, "/", name)));
      }
    };
    add("oci-layout");
    add("index.json");
    if (std::ranges::find(links, "blobs") != links.end()) {
      tar.Symlink("blobs", outside + "/blobs");
    } else {
      for (const std::string& name : blobs) add("blobs/sha256/" + name);
    }
    return Put("archive.tar", tar.Finish());
  };
  ASSERT_TRUE(Import(archive({}, '2'), "whole").ok());
  ASSERT_TRUE(store_->Remove("whole").ok());
  std::vector<std::string> names = {"oci-layout", "index.json", "blobs"};
  for (const std::string& name : blobs) names.push_back("blobs/sha256/" + name);
  for (const std::string& name : names) {
    for (const char type : {'2', '6'}) {  // links and fifos, whose opening would block
      const auto image = Import(archive({name}, type), "x");
      ASSERT_FALSE(image.ok()) << name << " of type " << type;
      EXPECT_THAT(image.error().message, HasSubstr("is not a regular file")) << name;
    }
  }
  EXPECT_THAT(*store_->List(), IsEmpty());
}

TEST_F(ImageStoreTest, ALayerOfPathsAloneDoesNotFillTheMemory) {
  TarWriter tar;
  for (int i = 0; i < 100; ++i) tar.File(StrCat("d/", i), "");
  const std::string text = tar.Finish();
  const auto unpack = [&](std::uint64_t max_path_bytes) {
    const std::string root = StrCat(directory_, "/root", max_path_bytes);
    EXPECT_TRUE(files_.MakeDirectories(root, 0755).ok());
    const auto source = MakeStringSource(text);
    TarReader reader(*source);
    return UnpackTar(reader, root, {.whiteouts = true, .max_path_bytes = max_path_bytes});
  };
  EXPECT_TRUE(unpack(10'000).ok());
  const auto refused = unpack(3'000);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kResourceExhausted);
}

TEST_F(ImageStoreTest, AnImageInUseIsNotRemoved) {
  auto image = Import(Put("1.tar", TarWriter().File("v", "1").Finish()), "a");
  ASSERT_TRUE(image.ok());
  ASSERT_TRUE(store_->AddUse(image->id, "container1").ok());
  auto refused = store_->Remove("a");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
  ASSERT_TRUE(store_->DropUse(image->id, "container1").ok());
  ASSERT_TRUE(store_->DropUse(image->id, "container1").ok());
  ASSERT_TRUE(store_->Remove("a").ok());
  EXPECT_FALSE(store_->Find("a").ok());
  EXPECT_THAT(*store_->List(), IsEmpty());
}

TEST_F(ImageStoreTest, OpeningRemovesWhatAnInterruptedImportLeft) {
  Put("images/tmp-abc/rootfs/x", "1");
  ASSERT_TRUE(store_->Open().ok());
  EXPECT_FALSE(files_.Exists(directory_ + "/images/tmp-abc"));
}

TEST_F(ImageStoreTest, AnImageIsNotRemovedWhenItsUsersCannotBeRead) {
  FaultyFileSystem faulty(files_);
  ImageStore store(faulty, RealRandom(), directory_ + "/images");
  auto image = Import(Put("1.tar", TarWriter().File("v", "1").Finish()), "a");
  ASSERT_TRUE(image.ok());
  ASSERT_TRUE(store.AddUse(image->id, "container1").ok());
  faulty.FailNext("list", "/uses");
  EXPECT_FALSE(store.Remove("a").ok());
  EXPECT_EQ(Rooted("a", "v"), "1");
}

TEST_F(ImageStoreTest, AFailedRemovalCanBeRepeatedByNameAndById) {
  FaultyFileSystem faulty(files_);
  ImageStore store(faulty, RealRandom(), directory_ + "/images");
  for (const char* what : {"rename", "remove tree", "write"}) {
    for (const bool by_id : {false, true}) {
      SCOPED_TRACE(StrCat(what, by_id ? " by id" : " by name"));
      auto image = Import(Put("1.tar", TarWriter().File("v", "1").Finish()), "a");
      ASSERT_TRUE(image.ok());
      const std::string name = by_id ? image->id : "a";
      faulty.FailNext(what, directory_ + "/images/");
      EXPECT_FALSE(store.Remove(name).ok());
      EXPECT_NE(faulty.failed(), "");
      if (auto found = store.Find("a"); !found.ok()) {
        EXPECT_THAT(found.error().message, HasSubstr("is not present on this node"));
      }
      auto removed = store.Remove(name);
      EXPECT_TRUE(removed.ok()) << removed.error().message;
      EXPECT_THAT(*files_.ListDirectory(directory_ + "/images"), ElementsAre("lock", "names.json"));
    }
  }
}

TEST_F(ImageStoreTest, DropsAUserFromAllImages) {
  auto image = Import(Put("1.tar", TarWriter().File("v", "1").Finish()), "a");
  ASSERT_TRUE(image.ok());
  ASSERT_TRUE(Import(Put("2.tar", TarWriter().File("v", "2").Finish()), "b").ok());
  ASSERT_TRUE(store_->AddUse(image->id, "container1").ok());
  ASSERT_TRUE(store_->DropUse("", "container1").ok());
  EXPECT_TRUE(store_->Remove("a").ok());
}

// Operations that go through FileSystem; unpacking a layer counts as one.
TEST_F(ImageStoreTest, RecoversFromEachFailingFileOperation) {
  const std::string tar = Put("a.tar", TarWriter().File("v", "tar").Finish());
  const std::string first =
      Layout({TarWriter().File("v", "packed").Finish()}, R"({"config":{"User":"1"}})");
  const std::string packed = PackedLayout(first);
  ASSERT_TRUE(files_.RemoveTree(first).ok());
  const std::string layout = Layout({TarWriter().File("v", "layout").Finish()});
  const std::string directory = directory_ + "/faulty";
  std::size_t call = 0;
  for (;; ++call) {
    SCOPED_TRACE(call);
    FaultyFileSystem faulty(files_);
    ImageStore store(faulty, RealRandom(), directory);
    faulty.FailCall(call);
    // Only one call fails, so the second attempt must succeed.
    auto twice = [&](const char* what, auto step) {
      auto done = step();
      if (!done.ok()) {
        EXPECT_NE(faulty.failed(), "") << what << ": " << done.error().message;
        done = step();
      }
      EXPECT_TRUE(done.ok()) << what << " after " << faulty.failed() << ": "
                             << done.error().message;
      if constexpr (!std::is_same_v<decltype(done), Result<void>>) return done;
    };
    auto import = [&](const std::string& path, const char* name) {
      static_cast<void>(twice("import", [&] {
        return store.Import(path, ImportOptions{.name = name, .progress = {}});
      }));
    };
    twice("open", [&] { return store.Open(); });
    import(tar, "tar");
    import(layout, "layout");
    import(packed, "packed");
    EXPECT_EQ(files_.ListDirectory(directory)->size(), 5u)
        << "more than three images after " << faulty.failed();
    const auto listed = twice("list", [&] { return store.List(); });
    ASSERT_TRUE(listed.ok());
    EXPECT_EQ(listed->size(), 3u);
    for (const std::string name : {"tar", "layout", "packed"}) {
      const auto stored = twice("find", [&] { return store.Find(name); });
      ASSERT_TRUE(stored.ok());
      EXPECT_EQ(*files_.ReadFile(stored->rootfs + "/v"), name);
      const std::string id = stored->image.id;
      twice("use", [&] { return store.AddUse(id, "container1"); });
      auto refused = store.Remove(name);
      if (!refused.ok() && refused.error().code != ErrorCode::kFailedPrecondition)
        refused = store.Remove(name);
      ASSERT_FALSE(refused.ok()) << "removed an image in use after " << faulty.failed();
      EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition) << refused.error().message;
      twice("drop", [&] { return store.DropUse(id, "container1"); });
      twice("remove", [&]() -> Result<void> {
        const bool is_repeated = !faulty.failed().empty();
        auto removed = store.Remove(name);
        // Only the last step failed: the name is already gone.
        if (is_repeated && !removed.ok() && removed.error().code == ErrorCode::kNotFound)
          return Ok();
        return removed;
      });
    }
    EXPECT_THAT(*files_.ListDirectory(directory), ElementsAre("lock", "names.json"))
        << "after " << faulty.failed();
    ASSERT_TRUE(files_.RemoveTree(directory).ok());
    if (HasFailure() || faulty.failed().empty()) break;
    ASSERT_LT(call, 1'000u);
  }
  EXPECT_GT(call, 100u) << "too few calls for what is done";
}

TEST_F(ImageStoreTest, SaysWhatIsWrongWithTheInput) {
  EXPECT_THAT(Import(directory_ + "/none", "x").error().message, HasSubstr("none"));
  EXPECT_THAT(Import(directory_, "x").error().message, HasSubstr("oci-layout"));
  EXPECT_THAT(Import(Put("t", "not a tar, but longer than a block" + std::string(600, '.')), "x")
                  .error()
                  .message,
              HasSubstr("is this a tar archive?"));
  EXPECT_THAT(store_->Find("nowhere").error().message,
              HasSubstr("drakkar image import FILE --name nowhere"));
}

TEST_F(ImageStoreTest, CopiesATreeWithModesAndLinks) {
  Put("from/d/file", "content");
  ASSERT_TRUE(files_.SetMode(directory_ + "/from/d/file", 0750).ok());
  ASSERT_EQ(::symlink("d/file", (directory_ + "/from/link").c_str()), 0);
  ASSERT_TRUE(files_.MakeDirectories(directory_ + "/to", 0755).ok());
  ASSERT_TRUE(CopyTree(directory_ + "/from", directory_ + "/to").ok());
  EXPECT_EQ(*files_.ReadFile(directory_ + "/to/link"), "content");
  EXPECT_EQ(files_.Stat(directory_ + "/to/d/file")->mode, 0750u);
}

TEST_F(ImageStoreTest, ReadsFilesInsideARootWithoutFollowingLinksOut) {
  Put("secret", "host");
  Put("root/secret", "container");
  ASSERT_EQ(::symlink("/secret", (directory_ + "/root/passwd").c_str()), 0);
  EXPECT_EQ(*ReadFileInRoot(directory_ + "/root", "passwd", 100), "container");
  EXPECT_EQ(*ReadFileInRoot(directory_ + "/root", "../secret", 100), "container");
  ASSERT_EQ(::mkfifo((directory_ + "/root/fifo").c_str(), 0600), 0);
  EXPECT_FALSE(ReadFileInRoot(directory_ + "/root", "fifo", 100).ok());
}

// What `docker save` wrote before version 25.
class DockerArchiveTest : public ImageStoreTest {
 protected:
  std::string Archive(const std::string& layer, const std::string& diff_of,
                      const std::string& layer_path = "l1/layer.tar",
                      const std::string& tags = R"("app:1")") {
    const std::string config =
        StrCat(R"({"config":{"Cmd":["/bin/x"]},"rootfs":{"diff_ids":["sha256:)", Sha256Hex(diff_of),
               R"("]}})");
    const std::string name = Sha256Hex(config) + ".json";
    TarWriter tar;
    tar.File("l1/layer.tar", layer);
    tar.Symlink("l2/layer.tar", "../l1/layer.tar");
    tar.Symlink("l3/layer.tar", "../../../../etc/passwd");
    tar.File(name, config);
    tar.File("manifest.json", StrCat(R"([{"Config":")", name, R"(","RepoTags":[)", tags,
                                     R"(],"Layers":[")", layer_path, R"("]}])"));
    return Put("docker.tar", tar.Finish());
  }
  const std::string layer_ = TarWriter().File("etc/motd", "hello").Finish();
};

TEST_F(DockerArchiveTest, IsImportedAsAnImage) {
  const auto image = store_->Import(Archive(layer_, layer_), {.name = ""});
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_THAT(image->names, ElementsAre("docker.io/library/app:1"));
  const auto stored = store_->Find("app:1");
  ASSERT_TRUE(stored.ok());
  EXPECT_THAT(stored->config.command, ElementsAre("/bin/x"));
  EXPECT_EQ(*files_.ReadFile(stored->rootfs + "/etc/motd"), "hello");
  EXPECT_TRUE(*store_->IsImported("app:1"));
}

TEST_F(DockerArchiveTest, AnImageKeepsAllItsNamesUnlessOneIsGiven) {
  const std::string archive =
      Archive(layer_, layer_, "l1/layer.tar", R"("app:1","app:latest","example.com/team/app:1")");
  const auto image = store_->Import(archive, {.name = ""});
  ASSERT_TRUE(image.ok()) << image.error().message;
  EXPECT_THAT(image->names, ElementsAre("docker.io/library/app:1", "docker.io/library/app:latest",
                                        "example.com/team/app:1"));
  ASSERT_TRUE(store_->Remove("app").ok());
  EXPECT_THAT(store_->List()->front().names,
              ElementsAre("docker.io/library/app:1", "example.com/team/app:1"));
  EXPECT_EQ(Rooted("example.com/team/app:1", "etc/motd"), "hello");
  ASSERT_TRUE(store_->Remove("app:1").ok());
  ASSERT_TRUE(store_->Remove("example.com/team/app:1").ok());
  EXPECT_THAT(*store_->List(), IsEmpty());
  EXPECT_THAT(store_->Import(archive, {.name = "other:2"})->names,
              ElementsAre("docker.io/library/other:2"));
}

TEST_F(DockerArchiveTest, TooManyOrInvalidNamesAreRefused) {
  std::string tags = "\"a:0\"";
  for (std::size_t i = 1; i <= kMaxImageNames; ++i) tags += StrCat(",\"a:", i, "\"");
  const auto many = store_->Import(Archive(layer_, layer_, "l1/layer.tar", tags), {.name = ""});
  ASSERT_FALSE(many.ok());
  EXPECT_THAT(many.error().message, HasSubstr("more than 128 names"));
  const auto bad =
      store_->Import(Archive(layer_, layer_, "l1/layer.tar", R"("a:1","B")"), {.name = ""});
  EXPECT_FALSE(bad.ok());
  EXPECT_THAT(*store_->List(), IsEmpty());
}

TEST_F(DockerArchiveTest, LayersMayBeLinksToEachOther) {
  EXPECT_TRUE(store_->Import(Archive(layer_, layer_, "l2/layer.tar"), {.name = ""}).ok());
}

TEST_F(DockerArchiveTest, DamagedLayersAndLinksOutOfItAreRefused) {
  const auto damaged = store_->Import(Archive(layer_, "other"), {.name = ""});
  ASSERT_FALSE(damaged.ok());
  EXPECT_THAT(damaged.error().message, HasSubstr("is damaged"));
  EXPECT_FALSE(store_->Import(Archive(layer_, layer_, "l3/layer.tar"), {.name = ""}).ok());
  EXPECT_FALSE(store_->Import(Archive(layer_, layer_, "../../etc/passwd"), {.name = ""}).ok());
  EXPECT_THAT(*store_->List(), IsEmpty());
}

TEST_F(ImageStoreTest, ARootFileSystemWithAManifestFileIsStillOne) {
  const std::string path = Put("rootfs.tar", TarWriter().File("manifest.json", "{}").Finish());
  EXPECT_TRUE(store_->Import(path, {.name = "localhost/r:1"}).ok());
}

TEST_F(ImageStoreTest, ZstdIsUnpackedAndDamagedZstdIsRefused) {
  const std::string tar = TarWriter().File("etc/motd", std::string(100'000, 'x')).Finish();
  std::string packed(::ZSTD_compressBound(tar.size()), '\0');
  packed.resize(::ZSTD_compress(packed.data(), packed.size(), tar.data(), tar.size(), 1));
  ASSERT_TRUE(store_->Import(Put("r.tar.zst", packed), {.name = "localhost/z:1"}).ok());
  const auto stored = store_->Find("localhost/z:1");
  EXPECT_EQ(files_.ReadFile(stored->rootfs + "/etc/motd")->size(), 100'000u);
  EXPECT_FALSE(store_
                   ->Import(Put("cut.tar.zst", packed.substr(0, packed.size() / 2)),
                            {.name = "localhost/y:1"})
                   .ok());
  packed[packed.size() / 2] ^= 0x55;
  EXPECT_FALSE(store_->Import(Put("bad.tar.zst", packed), {.name = "localhost/y:1"}).ok());
}

TEST_F(ImageStoreTest, UnusedImagesAreCollectedOldestFirstUntilTheDiskHasSpace) {
  const auto add = [&](const std::string& name, const std::string& pulled) {
    const std::string tar = TarWriter().File(name, std::string(1000, 'x')).Finish();
    auto image = store_->Import(Put(name + ".tar", tar),
                                {.name = "example.com/" + name + ":1", .pulled_digest = pulled});
    EXPECT_TRUE(image.ok());
    return image->id;
  };
  const std::string digest = "sha256:" + std::string(64, '0');
  const std::string used = add("used", digest);
  add("kept", "");  // imported
  add("one", digest);
  add("two", digest);
  ASSERT_TRUE(store_->AddUse(used, "container").ok());
  const auto names = [&] {
    std::vector<std::string> list;
    const auto images = store_->List();
    for (const Image& image : *images) list.push_back(image.names.front());
    std::sort(list.begin(), list.end());
    return list;
  };
  const ImageCollection settings;
  const WallTime later = RealClock().Now() + std::chrono::hours(1);
  const DiskUsage full{.used_bytes = 8'500, .total_bytes = 10'000};
  auto removed =
      CollectImages(*store_, {.used_bytes = 8'400, .total_bytes = 10'000}, settings, later);
  ASSERT_TRUE(removed.ok());
  EXPECT_THAT(removed->names, IsEmpty()) << "below the threshold";
  EXPECT_THAT(CollectImages(*store_, full, settings, RealClock().Now())->names, IsEmpty())
      << "too young";
  removed = CollectImages(*store_, full, settings, later);
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(removed->names.size(), 1u) << "one is enough";
  removed = CollectImages(*store_, {.used_bytes = 10'000, .total_bytes = 10'000}, settings, later);
  EXPECT_EQ(removed->names.size(), 1u);
  EXPECT_LT(removed->freed_bytes, removed->wanted_bytes);
  EXPECT_THAT(names(), ElementsAre("example.com/kept:1", "example.com/used:1"));
  const ImageCollection aging{.high_percent = 100, .max_age = std::chrono::minutes(50)};
  add("old", digest);
  EXPECT_THAT(CollectImages(*store_, {}, aging, RealClock().Now())->names, IsEmpty());
  EXPECT_THAT(CollectImages(*store_, {}, aging, later)->names, ElementsAre("example.com/old:1"));
  EXPECT_THAT(names(), ElementsAre("example.com/kept:1", "example.com/used:1"));
  ASSERT_TRUE(store_->DropUse(used, "container").ok());
  EXPECT_EQ(PruneImages(*store_, false)->names.size(), 1u);
  EXPECT_THAT(names(), ElementsAre("example.com/kept:1"));
  EXPECT_EQ(PruneImages(*store_, true)->names.size(), 1u);
}

}  // namespace
}  // namespace drakkar::node
