// drakkar image: the node's image store, without the node agent.
#include "base/text/text.h"
#include "commands.h"
#include "node/runtime/images/image_store.h"
#include "node_part.h"

namespace drakkar::cmd {
namespace {

Result<node::ImageStore> OpenStore(const cli::Arguments& arguments) {
  node::ImageStore store(RealFileSystem(), RealRandom(), ImageDirectory(arguments.Text("data-dir")));
  RETURN_IF_ERROR(store.Open());
  return store;
}

int Import(const cli::Arguments& arguments, cli::Console& console) {
  Result<node::ImageStore> store = OpenStore(arguments);
  if (!store.ok()) {
    console.Error(store.error().message);
    return cli::kExitFailure;
  }
  const std::string& path = arguments.positionals()[0];
  Result<node::Image> image = store->Import(path, {.name = arguments.Text("name")});
  if (!image.ok()) {
    console.Error(StrCat("import ", path, ": ", image.error().message));
    return cli::kExitFailure;
  }
  console.Out(StrCat("imported ", image->names.empty() ? image->id : image->names.front(), "\n"));
  return cli::kExitOk;
}

int List(const cli::Arguments& arguments, cli::Console& console) {
  Result<node::ImageStore> store = OpenStore(arguments);
  Result<std::vector<node::Image>> images =
      store.ok() ? store->List() : Result<std::vector<node::Image>>(store.error());
  if (!images.ok()) {
    console.Error(images.error().message);
    return cli::kExitFailure;
  }
  for (const node::Image& image : *images) {
    console.Out(StrCat(Join(image.names, ","), "  ", image.id.substr(0, 19), "\n"));
  }
  return cli::kExitOk;
}

cli::Flag DataDirectoryFlag() {
  return {.name = "data-dir",
          .help = "The node's data directory.",
          .default_value = kDefaultDataDirectory,
          .placeholder = "DIR"};
}

}  // namespace

void AddImageCommands(cli::App& app) {
  app.Add({.name = "image import",
           .arguments = "PATH",
           .summary = "Give an image to the node",
           .help = "Imports an OCI image layout (a directory, tar or tar.gz) or a root file system "
                   "as tar or tar.gz. Nothing is fetched from anywhere.",
           .examples = "  drakkar image import --name localhost/hello:1 hello.tar.gz\n",
           .flags = {DataDirectoryFlag(),
                     {.name = "name",
                      .help = "What pods call the image; needed for a root file system.",
                      .placeholder = "NAME"}},
           .min_arguments = 1,
           .max_arguments = 1,
           .section = "Node",
           .run = Import});
  app.Add({.name = "image list",
           .summary = "Show the images a node has",
           .flags = {DataDirectoryFlag()},
           .max_arguments = 0,
           .section = "Node",
           .run = List});
}

}  // namespace drakkar::cmd
