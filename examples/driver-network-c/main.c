/* driver-network in C: devices whose addresses are known only after the pod's network is set up
 * (KEP-5304, deferred metadata). Prepare returns no metadata; the NRI hook for RunPodSandbox
 * writes it before the first container starts, and also sets the claim's status.
 *
 *   driver-network-c --enable-device-metadata --nri-socket=... --kubeconfig=... --node-name=n1
 *   ...
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <drakkar_driver.h>

enum { kInterfaces = 4, kTextBytes = 256 };

/* Gets all claims of a call; one that fails does not affect the others. */
static int prepare_all(void* user_data, drakkar_prepare_item* items, size_t count,
                       drakkar_error* error) {
  (void)user_data, (void)error;
  for (size_t i = 0; i < count; ++i) {
    const drakkar_claim* claim = items[i].claim;
    const size_t devices = drakkar_claim_device_count(claim);
    for (size_t d = 0; d < devices; ++d) {
      const drakkar_allocated_device device = drakkar_claim_device(claim, d);
      drakkar_prepare_result_add_device(items[i].result, &device, NULL, 0);
    }
    if (devices == 0) {
      items[i].failed = 1;
      snprintf(items[i].error.message, sizeof(items[i].error.message),
               "the claim has no device of this driver");
    }
  }
  return 0;
}

static int unprepare_all(void* user_data, drakkar_unprepare_item* items, size_t count,
                         drakkar_error* error) {
  /* The library knows what was prepared for which pod, also after a restart, so nothing is kept
   * here. */
  (void)user_data, (void)items, (void)count, (void)error;
  return 0;
}

/* What the hook looks for among the prepared requests, and the result. */
struct search {
  drakkar_driver* driver;
  const char* pod_uid;
  int only_missing; /* leave alone what containers were told already */
  drakkar_error* error;
  int failed;
};

static int is_for(const drakkar_prepared_request* request, const char* pod_uid) {
  for (size_t i = 0; i < request->pod_count; ++i) {
    if (strcmp(request->pod_uids[i], pod_uid) == 0) return 1;
  }
  return 0;
}

/* A real driver would move the interface into the pod's network namespace and request an
 * address. */
static void configure(const char* device, char* name, char* address, char* hardware) {
  const char index = device[strlen(device) - 1];
  snprintf(name, kTextBytes, "net%c", index);
  snprintf(address, kTextBytes, "192.0.2.1%c/24", index);
  snprintf(hardware, kTextBytes, "02:00:00:00:00:0%c", index);
}

/* Writes the metadata of one request's devices and sets the claim's status. */
static void tell(void* user_data, const drakkar_prepared_request* request) {
  struct search* search = user_data;
  if (search->failed || !is_for(request, search->pod_uid)) return;
  if (search->only_missing && request->has_metadata) return;
  drakkar_prepare_result* told = drakkar_prepare_result_new();
  drakkar_claim_status* status = drakkar_claim_status_new();
  for (size_t i = 0; i < request->device_count; ++i) {
    char name[kTextBytes], address[kTextBytes], hardware[kTextBytes];
    const char* addresses[] = {address};
    configure(request->devices[i].device, name, address, hardware);
    drakkar_prepare_result_add_device(told, &request->devices[i], NULL, 0);
    drakkar_prepare_result_set_network(told, name, addresses, 1, hardware);
    drakkar_claim_status_add_device(status, request->devices[i].pool, request->devices[i].device,
                                    request->devices[i].share_id);
    drakkar_claim_status_add_condition(status, "Ready", "True", "NetworkReady",
                                       "the interface is configured");
    drakkar_claim_status_set_network(status, name, addresses, 1, hardware);
    drakkar_claim_status_set_data(status, "{\"mtu\": 9000}", NULL);
  }
  search->failed =
      drakkar_driver_update_metadata(search->driver, request->claim_namespace, request->claim_name,
                                     request->claim_uid, request->request, told, search->error);
  if (!search->failed) {
    drakkar_driver_apply_claim_status(search->driver, request->claim_namespace, request->claim_name,
                                      request->claim_uid, status, NULL, NULL, NULL);
  }
  drakkar_claim_status_free(status);
  drakkar_prepare_result_free(told);
}

static int tell_pod(drakkar_driver* driver, const drakkar_pod* pod, int only_missing,
                    drakkar_error* error) {
  struct search search = {driver, drakkar_pod_uid(pod), only_missing, error, 0};
  if (drakkar_driver_prepared_requests(driver, tell, &search, error) != 0) return -1;
  return search.failed;
}

static int run_pod_sandbox(void* user_data, drakkar_driver* driver, const drakkar_pod* pod,
                           drakkar_error* error) {
  (void)user_data;
  return tell_pod(driver, pod, 0, error);
}

/* A pod that started before this process may still lack its metadata. */
static int running_pod_sandbox(void* user_data, drakkar_driver* driver, const drakkar_pod* pod,
                               drakkar_error* error) {
  (void)user_data;
  return tell_pod(driver, pod, 1, error);
}

static void handle_error(void* user_data, const char* message, int recoverable) {
  (void)user_data;
  fprintf(stderr, "driver-network-c: %s%s\n", message, recoverable ? "" : " (fatal)");
}

int main(int argc, char** argv) {
  drakkar_error error;
  drakkar_driver_options options = {.size = sizeof(options),
                                    .driver_name = "cnet.example.com",
                                    .health_service = 1,
                                    .taint_unhealthy = 1,
                                    .taint_key = "cnet.example.com/no-link",
                                    .taint_effect = "NoSchedule",
                                    .prepare_all = prepare_all,
                                    .unprepare_all = unprepare_all,
                                    .handle_error = handle_error,
                                    .run_pod_sandbox = run_pod_sandbox,
                                    .running_pod_sandbox = running_pod_sandbox};
  const int refused = drakkar_driver_parse_flags(&options, &argc, argv, &error);
  if (refused || argc != 1) {
    fprintf(stderr, "%s\n%s", refused ? error.message : "unknown argument",
            drakkar_driver_flags_help());
    return 2;
  }
  /* Block the signals before the driver's thread starts, so that it inherits the mask. */
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGUSR1);
  sigprocmask(SIG_BLOCK, &signals, NULL);

  drakkar_driver* driver = drakkar_driver_start(&options, &error);
  if (driver == NULL) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  const char* pool = options.node_name;
  drakkar_resources* resources = drakkar_resources_new();
  char names[kInterfaces][16];
  drakkar_device_health health[kInterfaces] = {{0}};
  for (int i = 0; i < kInterfaces; ++i) {
    snprintf(names[i], sizeof(names[i]), "net-%d", i);
    drakkar_resources_add_device(resources, pool, names[i]);
    drakkar_resources_set_int(resources, pool, names[i], "speedGbps", 25);
    health[i] = (drakkar_device_health){
        .pool = pool, .device = names[i], .health = DRAKKAR_HEALTH_HEALTHY, .timeout_seconds = 20};
  }
  int failed = drakkar_driver_report(driver, health, kInterfaces, &error) != 0 ||
               drakkar_driver_publish(driver, resources, &error) != 0;
  if (failed) fprintf(stderr, "%s\n", error.message);
  drakkar_resources_free(resources);
  /* SIGUSR1 unplugs the cable of the last interface, and plugs it back in. */
  for (int signal_number = 0;
       !failed && sigwait(&signals, &signal_number) == 0 && signal_number == SIGUSR1;) {
    drakkar_device_health* last = &health[kInterfaces - 1];
    const int had_link = last->health == DRAKKAR_HEALTH_HEALTHY;
    last->health = had_link ? DRAKKAR_HEALTH_UNHEALTHY : DRAKKAR_HEALTH_HEALTHY;
    last->message = had_link ? "no link" : NULL;
    failed = drakkar_driver_report(driver, last, 1, &error) != 0;
  }
  drakkar_driver_stop(driver);
  return failed ? 1 : 0;
}
