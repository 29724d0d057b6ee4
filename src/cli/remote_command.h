#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/exec/uv_loop.h"
#include "base/result/result.h"
#include "cli/console.h"
#include "net/client/http_client.h"

namespace drakkar::cli {

struct RemoteCommandOptions {
  bool standard_input = false;
  bool terminal = false;
};

// A command in a container, over a WebSocket: the console's streams are its streams. Made, used and
// destroyed on its loop; `done` is called there once, with the command's exit code or what
// prevented one. A refusal of the server is handed to `refused` as it came.
class RemoteCommand {
 public:
  using Done = std::function<void(Result<int>)>;
  using Refused = std::function<Error(int status, const std::string& body)>;

  // `request` has the address and who asks; the handshake is added.
  static std::unique_ptr<RemoteCommand> Start(UvLoop& loop, net::HttpClient& http, Console& console,
                                              net::ClientRequest request,
                                              const RemoteCommandOptions& options, Refused refused,
                                              Done done);
  virtual ~RemoteCommand() = default;
};

// The exit code in the Status that ends a command, or the error it tells of.
Result<int> ExitCodeOf(std::string_view status_json);

}  // namespace drakkar::cli
