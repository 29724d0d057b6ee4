#include "node/nri/adjustment.h"

#include <algorithm>
#include <utility>

#include "base/text/text.h"

namespace drakkar::node {
namespace {

std::int64_t Nanoseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// "-NAME" removes NAME.
bool IsRemoval(std::string_view name) {
  return name.starts_with('-');
}
std::string_view Bare(std::string_view name) {
  return IsRemoval(name) ? name.substr(1) : name;
}

struct PropagationName {
  std::string_view recursive, plain;
  MountPropagation propagation;
};
constexpr PropagationName kPropagations[] = {
    {"rprivate", "private", MountPropagation::kPrivate},
    {"rslave", "slave", MountPropagation::kHostToContainer},
    {"rshared", "shared", MountPropagation::kBidirectional},
};

rpc::NriMount ForPlugin(const Mount& mount) {
  rpc::NriMount out{mount.container_path, mount.type, mount.host_path, {}};
  if (mount.type == "bind") out.options.emplace_back("rbind");
  for (const PropagationName& each : kPropagations) {
    if (each.propagation == mount.propagation) out.options.emplace_back(each.recursive);
  }
  out.options.emplace_back(mount.readonly ? "ro" : "rw");
  out.options.insert(out.options.end(), mount.options.begin(), mount.options.end());
  return out;
}

Mount FromPlugin(const rpc::NriMount& mount) {
  Mount out;
  out.host_path = mount.source;
  out.container_path = mount.destination;
  bool bind = mount.type == "bind" || mount.type.empty();
  for (const std::string& option : mount.options) {
    if (option == "bind" || option == "rbind") {
      bind = true;
      continue;
    }
    if (option == "ro" || option == "rw") {
      out.readonly = option == "ro";
      continue;
    }
    const auto named = std::ranges::find_if(kPropagations, [&](const PropagationName& each) {
      return option == each.recursive || option == each.plain;
    });
    if (named != std::end(kPropagations)) {
      out.propagation = named->propagation;
    } else {
      out.options.push_back(option);
    }
  }
  out.type = bind ? "bind" : mount.type;
  return out;
}

Result<void> CheckMount(const rpc::NriMount& mount) {
  if (!Bare(mount.destination).starts_with('/')) {
    return InvalidArgument(
        StrCat("mounts at ", Quote(mount.destination), ", which is not an absolute path"));
  }
  return Ok();
}

}  // namespace

rpc::NriContainer DescribeContainer(const std::string& sandbox_id, const ContainerConfig& config) {
  rpc::NriContainer container{.id = config.id,
                              .pod_sandbox_id = sandbox_id,
                              .name = config.name,
                              .state = rpc::NriContainerState::kCreated,
                              .labels = config.labels,
                              .annotations = config.annotations,
                              .args = config.command};
  container.args.insert(container.args.end(), config.arguments.begin(), config.arguments.end());
  for (const EnvironmentVariable& each : config.environment) {
    container.env.push_back(StrCat(each.name, "=", each.value));
  }
  for (const Mount& mount : config.mounts) container.mounts.push_back(ForPlugin(mount));
  return container;
}

void UpdateDescription(const ContainerStatus& status, rpc::NriContainer& container) {
  using State = rpc::NriContainerState;
  container.state = status.state == ContainerState::kCreated   ? State::kCreated
                    : status.state == ContainerState::kRunning ? State::kRunning
                    : status.state == ContainerState::kExited  ? State::kStopped
                                                               : State::kUnknown;
  container.pid = static_cast<std::uint32_t>(std::max(status.pid, 0));
  container.created_at = Nanoseconds(status.created_at);
  container.started_at = Nanoseconds(status.started_at);
  container.finished_at = Nanoseconds(status.finished_at);
  container.exit_code = status.exit_code;
}

rpc::NriContainer DescribeContainer(const ContainerStatus& status) {
  rpc::NriContainer container{.id = status.id,
                              .pod_sandbox_id = status.sandbox_id,
                              .name = status.name,
                              .labels = status.labels,
                              .annotations = status.annotations};
  UpdateDescription(status, container);
  return container;
}

Result<void> AdjustmentCollector::Add(const std::string& plugin,
                                      const rpc::NriContainerAdjustment& adjustment) {
  std::map<std::string, std::string> owners = owners_;
  const auto own = [&](std::string_view what, std::string_view name) -> Result<void> {
    const auto [owner, fresh] = owners.emplace(StrCat(what, " ", Bare(name)), plugin);
    if (fresh || owner->second == plugin) return Ok();
    return FailedPrecondition(StrCat("NRI plugins ", owner->second, " and ", plugin,
                                     " both change ", owner->first, " of container ",
                                     container_.name));
  };
  for (const auto& [name, value] : adjustment.env)
    RETURN_IF_ERROR(own("environment variable", name));
  for (const auto& [name, value] : adjustment.annotations) RETURN_IF_ERROR(own("annotation", name));
  for (const rpc::NriMount& mount : adjustment.mounts) {
    if (auto good = CheckMount(mount); !good.ok()) {
      return std::move(good).error().Prefixed(StrCat("NRI plugin ", plugin));
    }
    RETURN_IF_ERROR(own("mount", mount.destination));
  }
  owners_ = std::move(owners);
  for (const auto& [name, value] : adjustment.env) {
    std::erase_if(container_.env, [bare = Bare(name)](const std::string& entry) {
      return entry.size() > bare.size() && entry.starts_with(bare) && entry[bare.size()] == '=';
    });
    if (!IsRemoval(name)) container_.env.push_back(StrCat(name, "=", value));
    adjustment_.env.emplace_back(name, value);
  }
  for (const auto& [name, value] : adjustment.annotations) {
    container_.annotations.erase(std::string(Bare(name)));
    if (!IsRemoval(name)) container_.annotations[name] = value;
    adjustment_.annotations[name] = value;
  }
  for (const rpc::NriMount& mount : adjustment.mounts) {
    std::erase_if(container_.mounts, [bare = Bare(mount.destination)](const rpc::NriMount& entry) {
      return entry.destination == bare;
    });
    if (!IsRemoval(mount.destination)) container_.mounts.push_back(mount);
    adjustment_.mounts.push_back(mount);
  }
  return Ok();
}

void ApplyAdjustment(const rpc::NriContainerAdjustment& adjustment, ContainerConfig& config) {
  for (const auto& [name, value] : adjustment.env) {
    std::erase_if(config.environment, [bare = Bare(name)](const EnvironmentVariable& entry) {
      return entry.name == bare;
    });
    if (!IsRemoval(name)) config.environment.push_back({name, value});
  }
  for (const auto& [name, value] : adjustment.annotations) {
    config.annotations.erase(std::string(Bare(name)));
    if (!IsRemoval(name)) config.annotations[name] = value;
  }
  for (const rpc::NriMount& mount : adjustment.mounts) {
    std::erase_if(config.mounts, [bare = Bare(mount.destination)](const Mount& entry) {
      return entry.container_path == bare;
    });
    if (!IsRemoval(mount.destination)) config.mounts.push_back(FromPlugin(mount));
  }
}

}  // namespace drakkar::node
