#include <chrono>

#include "base/env/absolute_path.h"
#include "base/env/clock.h"
#include "base/env/random.h"
#include "base/exec/uv_loop.h"
#include "base/exec/worker_pool.h"
#include "base/text/text.h"
#include "cli/table.h"
#include "cmd/drakkar/command_groups.h"
#include "cmd/drakkar/cri_commands.h"
#include "cmd/drakkar/node_part.h"
#include "cmd/drakkar/registry_flags.h"
#include "node/runtime/images/image_collector.h"
#include "node/runtime/images/image_store.h"
#include "node/runtime/registry/image_puller.h"

namespace drakkar::cmd {
namespace {

using cli::Arguments;
using cli::Command;
using cli::Console;
using cli::Flag;
using cli::FlagType;

const Flag kDataDirectoryFlag{"data-dir",
                              0,
                              FlagType::kString,
                              "Data directory of this machine's node agent.",
                              kDefaultDataDirectory,
                              "DIRECTORY"};

std::string SizeText(std::uint64_t bytes) {
  if (bytes < 10'000) return StrCat(bytes, "B");
  if (bytes < 10'000'000) return StrCat(bytes / 1000, "kB");
  if (bytes < 10'000'000'000) return StrCat(bytes / 1'000'000, "MB");
  return StrCat(bytes / 1'000'000'000, "GB");
}

node::ImageStore StoreOf(const Arguments& arguments, Console& console) {
  return node::ImageStore(console.files(), RealRandom(),
                          JoinPath(arguments.Text("data-dir"), "images"));
}

int Fail(Console& console, const Error& error) {
  console.Error(error.message);
  return cli::kExitFailure;
}

int RunImport(const Arguments& arguments, Console& console) {
  const std::string& path = arguments.positionals()[0];
  node::ImageStore store = StoreOf(arguments, console);
  if (Result<void> opened = store.Open(); !opened.ok()) return Fail(console, opened.error());
  node::ImportOptions options;
  options.name =
      arguments.positionals().size() > 1 ? arguments.positionals()[1] : arguments.Text("name");
  const bool shows_progress = console.err_is_terminal() || arguments.Bool("progress");
  MonotonicTime next = RealClock().Monotonic() + std::chrono::seconds(2);
  options.progress = [&](std::uint64_t bytes) {
    if (!shows_progress || RealClock().Monotonic() < next) return;
    next = RealClock().Monotonic() + std::chrono::seconds(2);
    console.Err(StrCat("importing ", path, ": ", SizeText(bytes), " unpacked\n"));
  };
  Result<node::Image> image = store.Import(path, options);
  if (!image.ok()) return Fail(console, image.error().Prefixed(StrCat("import ", path)));
  console.Out(StrCat(image->names.empty() ? image->id : Join(image->names, ", "), " imported (",
                     image->id, ", ", SizeText(image->size_bytes), ")\n"));
  return cli::kExitOk;
}

int Print(const std::vector<node::Image>& images, Console& console) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "ID", "SIZE"}};
  for (const node::Image& image : images) {
    // "sha256:" and twelve digits identify it.
    const std::string id = image.id.substr(0, 19);
    if (image.names.empty()) rows.push_back({"<none>", id, SizeText(image.size_bytes)});
    for (const std::string& name : image.names) {
      rows.push_back({name, id, SizeText(image.size_bytes)});
    }
  }
  if (rows.size() == 1) {
    console.Err("No images found\n");
    return cli::kExitOk;
  }
  std::vector<std::size_t> widths;
  console.Out(cli::LayOut(rows, widths));
  return cli::kExitOk;
}

int RunList(const Arguments& arguments, Console& console) {
  // The node's images are the runtime's, if it uses one.
  if (const std::string socket = RuntimeSocketOf(console.files(), arguments.Text("data-dir"));
      !socket.empty()) {
    const Result<std::vector<node::Image>> images = ListCriImages(socket);
    if (!images.ok()) return Fail(console, images.error());
    return Print(*images, console);
  }
  if (!console.files().Exists(JoinPath(arguments.Text("data-dir"), "images"))) {
    console.Err("No images found\n");
    return cli::kExitOk;
  }
  Result<std::vector<node::Image>> images = StoreOf(arguments, console).List();
  if (!images.ok()) return Fail(console, images.error());
  return Print(*images, console);
}

int RunRemove(const Arguments& arguments, Console& console) {
  node::ImageStore store = StoreOf(arguments, console);
  int code = cli::kExitOk;
  for (const std::string& name : arguments.positionals()) {
    if (Result<void> removed = store.Remove(name); !removed.ok()) {
      code = Fail(console, removed.error());
    } else {
      console.Out(StrCat(name, " removed\n"));
    }
  }
  return code;
}

// Pulls on a loop of its own, into the store of this machine.
class PullCommand {
 public:
  PullCommand(UvLoop& loop, node::RegistrySettings settings, const std::string& data_dir,
              Console& console, bool shows_progress)
      : loop_(loop),
        console_(console),
        shows_progress_(shows_progress),
        images_(RealFileSystem(), RealRandom(), ImageDirectory(data_dir)),
        workers_(1, 16),
        registries_(loop, std::move(settings)),
        puller_({.loop = loop,
                 .files = RealFileSystem(),
                 .workers = workers_,
                 .images = images_,
                 .directory = DownloadDirectory(data_dir) + "-by-hand",
                 .endpoints = [this](const std::string& host) {
                   return registries_.EndpointsOf(host);
                 }}) {}
  ~PullCommand() { workers_.Stop(); }

  void Start(node::PullRequest request) {
    if (auto opened = images_.Open(); !opened.ok()) {
      result = std::move(opened).error();
      return loop_.Stop();
    }
    if (auto reference = node::ParseImageReference(request.image);
        reference.ok() && request.credentials.empty()) {
      request.credentials = registries_.CredentialsOf(reference->host);
    }
    const std::string name = request.image;
    puller_.Pull(
        std::move(request),
        [this, name](const node::ImagePuller::Progress& progress) { Show(name, progress); },
        [this](Result<node::Image> image) {
          result = std::move(image);
          loop_.Stop();
        });
  }

  Result<node::Image> result = Internal("not pulled");

 private:
  void Show(const std::string& name, const node::ImagePuller::Progress& progress) {
    if (!shows_progress_ || loop_.clock().Monotonic() < next_) return;
    next_ = loop_.clock().Monotonic() + std::chrono::seconds(2);
    console_.Err(StrCat("pulling ", name, ": ", SizeText(progress.received_bytes), " of ",
                        SizeText(progress.total_bytes), "\n"));
  }

  UvLoop& loop_;
  Console& console_;
  const bool shows_progress_;
  MonotonicTime next_{};
  node::ImageStore images_;
  WorkerPool workers_;
  node::Registries registries_;
  node::ImagePuller puller_;
};

int RunPull(const Arguments& arguments, Console& console) {
  Result<node::RegistrySettings> settings = ReadRegistrySettings(arguments, console.files());
  if (!settings.ok()) return Fail(console, settings.error());
  node::PullRequest request{.image = arguments.positionals()[0], .credentials = {}};
  if (const std::string& user = arguments.Text("username"); !user.empty()) {
    Result<std::string> password = console.ReadInput();
    if (!password.ok()) return Fail(console, password.error());
    request.credentials.push_back({user, std::string(Trim(*password))});
  }
  UvLoop loop;
  std::unique_ptr<PullCommand> command;
  loop.Post([&] {
    command = std::make_unique<PullCommand>(
        loop, std::move(*settings), AbsolutePath(arguments.Text("data-dir")), console,
        console.err_is_terminal() || arguments.Bool("progress"));
    command->Start(std::move(request));
  });
  loop.Run();
  const Result<node::Image> image = std::move(command->result);
  loop.Post([&] {
    command.reset();
    loop.Stop();
  });
  loop.Run();
  if (!image.ok()) {
    return Fail(console, image.error().Prefixed(StrCat("pull ", arguments.positionals()[0])));
  }
  console.Out(StrCat(Join(image->names, ", "), " pulled (", image->id, ", ",
                     SizeText(image->size_bytes), ")\n"));
  return cli::kExitOk;
}

int RunPrune(const Arguments& arguments, Console& console) {
  node::ImageStore store = StoreOf(arguments, console);
  if (!console.files().Exists(JoinPath(arguments.Text("data-dir"), "images"))) {
    console.Out("removed no image\n");
    return cli::kExitOk;
  }
  Result<node::RemovedImages> removed = node::PruneImages(store, arguments.Bool("all"));
  if (!removed.ok()) return Fail(console, removed.error());
  for (const std::string& name : removed->names) console.Out(StrCat(name, " removed\n"));
  console.Out(StrCat("removed ", removed->names.size(),
                     removed->names.size() == 1 ? " image, " : " images, ",
                     SizeText(removed->freed_bytes), "\n"));
  return cli::kExitOk;
}

}  // namespace

void AddImageCommands(cli::App& app) {
  Command import;
  import.name = "image import";
  import.arguments = "PATH [NAME]";
  import.summary = "Import an image for the pods of this machine";
  import.help =
      "PATH is an OCI image layout (a directory or an archive), an archive of `docker save`, or a "
      "root file system. Archives are tar files, plain or compressed with gzip or zstd. Pods refer "
      "to it by NAME; without NAME, by every name that the layout or archive gives the image. The "
      "node agent may be running.";
  import.examples =
      "  drakkar image import busybox.tar localhost/busybox:1\n"
      "  drakkar image import ./oci-layout\n";
  import.section = "This machine";
  import.min_arguments = 1;
  import.max_arguments = 2;
  import.flags = {
      {"name", 0, FlagType::kString, "Name of the image.", "", "NAME"},
      kDataDirectoryFlag,
      {"progress", 0, FlagType::kBool, "Show progress even if standard error is not a terminal.",
       "false"},
  };
  import.run = RunImport;
  app.Add(std::move(import));

  Command pull;
  pull.name = "image pull";
  pull.arguments = "NAME";
  pull.summary = "Pull an image from its registry for the pods of this machine";
  pull.help =
      "Pods pull their own images; use this command to have an image on the node beforehand. An "
      "interrupted pull resumes where it stopped. The node agent may be running.";
  pull.examples =
      "  drakkar image pull busybox:1.36\n"
      "  drakkar image pull --username me registry.example.com/team/app:1 < password\n";
  pull.section = "This machine";
  pull.min_arguments = 1;
  pull.max_arguments = 1;
  pull.flags = {
      kDataDirectoryFlag,
      {"username", 0, FlagType::kString, "User name; the password is read from standard input.", "",
       "NAME"},
      {"progress", 0, FlagType::kBool, "Show progress even if standard error is not a terminal.",
       "false"},
  };
  for (Flag& flag : RegistryFlags()) pull.flags.push_back(std::move(flag));
  pull.run = RunPull;
  app.Add(std::move(pull));

  Command prune;
  prune.name = "image prune";
  prune.summary = "Remove images that no container of this machine uses";
  prune.help =
      "Imported images are kept unless --all is given, because they cannot be pulled "
      "again.";
  prune.examples = "  drakkar image prune\n";
  prune.section = "This machine";
  prune.max_arguments = 0;
  prune.flags = {kDataDirectoryFlag,
                 {"all", 0, FlagType::kBool, "Also remove imported images.", "false"}};
  prune.run = RunPrune;
  app.Add(std::move(prune));

  Command list;
  list.name = "image list";
  list.summary = "List the images of this machine";
  list.examples = "  drakkar image list\n";
  list.section = "This machine";
  list.max_arguments = 0;
  list.flags = {kDataDirectoryFlag};
  list.run = RunList;
  app.Add(std::move(list));

  Command remove;
  remove.name = "image remove";
  remove.arguments = "NAME...";
  remove.summary = "Remove images from this machine";
  remove.help = "Images that a container uses are kept.";
  remove.examples = "  drakkar image remove localhost/busybox:1\n";
  remove.section = "This machine";
  remove.min_arguments = 1;
  remove.flags = {kDataDirectoryFlag};
  remove.run = RunRemove;
  app.Add(std::move(remove));
}

}  // namespace drakkar::cmd
