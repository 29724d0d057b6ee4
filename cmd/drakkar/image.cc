#include <chrono>

#include "base/env/clock.h"
#include "base/env/random.h"
#include "base/text/text.h"
#include "cli/table.h"
#include "cmd/drakkar/command_groups.h"
#include "node/runtime/images/image_store.h"

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

int RunList(const Arguments& arguments, Console& console) {
  if (!console.files().Exists(JoinPath(arguments.Text("data-dir"), "images"))) {
    console.Err("No images found\n");
    return cli::kExitOk;
  }
  Result<std::vector<node::Image>> images = StoreOf(arguments, console).List();
  if (!images.ok()) return Fail(console, images.error());
  std::vector<std::vector<std::string>> rows = {{"NAME", "ID", "SIZE"}};
  for (const node::Image& image : *images) {
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

}  // namespace

void AddImageCommands(cli::App& app) {
  Command import;
  import.name = "image import";
  import.arguments = "PATH [NAME]";
  import.summary = "Import an image for the pods of this machine";
  import.help =
      "PATH is an OCI image layout (a directory, .tar or .tar.gz) or a root file system (.tar or "
      ".tar.gz). Pods refer to it by NAME; an image layout may contain names of its own. The node "
      "agent may be running.";
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
