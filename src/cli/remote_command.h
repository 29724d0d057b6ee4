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

// Runs a command in a container over a WebSocket, connected to the console's streams. Created, used
// and destroyed on its loop. Calls `done` there once, with the exit code or an error; if the server
// rejects the request, passes its response to `refused`.
class RemoteCommand {
 public:
  using Done = std::function<void(Result<int>)>;
  using Refused = std::function<Error(int status, const std::string& body)>;

  // `request` has the address and credentials; the handshake headers are added.
  static std::unique_ptr<RemoteCommand> Start(UvLoop& loop, net::HttpClient& http, Console& console,
                                              net::ClientRequest request,
                                              const RemoteCommandOptions& options, Refused refused,
                                              Done done);
  virtual ~RemoteCommand() = default;
};

// The exit code from the Status that ends a command, or its error.
Result<int> ExitCodeOf(std::string_view status_json);

}  // namespace drakkar::cli
