#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cmd/drakkar/daemon.h"

namespace drakkar::cmd {

// The web page as a part of `up`, on 127.0.0.1 whatever address the API server has. It reads the
// cluster with the administrator's kubeconfig, so its URL, which contains a token, is as secret as
// that file: it is written next to it, with mode 0600, and not to the log.
struct DashboardPartOptions {
  UvLoop& main_loop;
  cli::Console& console;
  std::string kubeconfig;  // exists when the part starts
  std::uint16_t port = 0;  // 0 chooses a free one
  std::string url_file;
};
std::unique_ptr<Part> MakeDashboardPart(DashboardPartOptions options);

}  // namespace drakkar::cmd
