/* Uses the interface from C, as a vendor would. The argument is an empty directory. */
#include "sdk/driver/c/drakkar_driver.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failures = 0;

#define EXPECT(condition)                                     \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      ++failures;                                             \
    }                                                         \
  } while (0)

static void flags_are_taken_out_of_the_command_line(void) {
  char program[] = "driver", node[] = "--node-name=n1", name[] = "--driver-name",
       value[] = "c.example.com";
  char metadata[] = "--enable-device-metadata", own[] = "--own", rest[] = "--",
       after[] = "--node-name=x";
  char* argv[] = {program, node, name, value, metadata, own, rest, after, NULL};
  int argc = 8;
  drakkar_driver_options options = {.size = sizeof(options)};
  drakkar_error error = {""};
  unsetenv("KUBECONFIG");
  setenv("POD_UID", "pod-1", 1);
  EXPECT(drakkar_driver_parse_flags(&options, &argc, argv, &error) == 0);
  EXPECT(argc == 4 && strcmp(argv[1], "--own") == 0 && strcmp(argv[3], "--node-name=x") == 0 &&
         argv[4] == NULL);
  EXPECT(strcmp(options.node_name, "n1") == 0 && strcmp(options.driver_name, "c.example.com") == 0);
  EXPECT(options.enable_device_metadata == 1 && options.kubeconfig == NULL);
  EXPECT(strcmp(options.pod_uid, "pod-1") == 0);

  char level[] = "--log-level=loud", last[] = "--cdi-dir";
  char* bad[] = {program, level, NULL};
  argc = 2;
  EXPECT(drakkar_driver_parse_flags(&options, &argc, bad, &error) != 0);
  EXPECT(strstr(error.message, "--log-level must be") != NULL);
  char* cut_off[] = {program, last, NULL};
  argc = 2;
  EXPECT(drakkar_driver_parse_flags(&options, &argc, cut_off, &error) != 0);
  EXPECT(strcmp(error.message, "--cdi-dir needs a value") == 0);
  EXPECT(strstr(drakkar_driver_flags_help(), "--enable-device-metadata") != NULL);
}

static void devices_have_attributes_of_every_type(void) {
  const char* texts[] = {"a", "b"};
  const char* holes[] = {"a", NULL};
  const int64_t numbers[] = {1, 2};
  const int truths[] = {0, 1};
  const drakkar_allocated_device device = {.request = "gpu", .pool = "p", .device = "d"};
  drakkar_prepare_result* result = drakkar_prepare_result_new();
  EXPECT(drakkar_prepare_result_set_string(result, "model", "x") != 0); /* of no device */
  EXPECT(drakkar_prepare_result_add_device(result, &device, holes, 2) != 0);
  EXPECT(drakkar_prepare_result_add_device(result, &device, NULL, 0) == 0);
  EXPECT(drakkar_prepare_result_set_nothing(result) == 0);
  EXPECT(drakkar_prepare_result_set_string(result, "model", "x") == 0);
  EXPECT(drakkar_prepare_result_set_string(result, "model", NULL) != 0);
  EXPECT(drakkar_prepare_result_set_version(result, "v", "1.2.3") == 0);
  EXPECT(drakkar_prepare_result_set_int(result, "i", 7) == 0);
  EXPECT(drakkar_prepare_result_set_bool(result, "b", 1) == 0);
  EXPECT(drakkar_prepare_result_set_strings(result, "ss", texts, 2) == 0);
  EXPECT(drakkar_prepare_result_set_strings(result, "ss", holes, 2) != 0);
  EXPECT(drakkar_prepare_result_set_versions(result, "vs", texts, 2) == 0);
  EXPECT(drakkar_prepare_result_set_ints(result, "is", numbers, 2) == 0);
  EXPECT(drakkar_prepare_result_set_ints(result, "is", NULL, 2) != 0);
  EXPECT(drakkar_prepare_result_set_bools(result, "bs", truths, 2) == 0);
  EXPECT(drakkar_prepare_result_set_network(result, "eth0", texts, 2, NULL) == 0);
  drakkar_prepare_result_free(result);

  drakkar_error error = {""};
  drakkar_resources* resources = drakkar_resources_new();
  EXPECT(drakkar_resources_add_device(resources, "p", "d") == 0);
  EXPECT(drakkar_resources_set_strings(resources, "p", "d", "ss", texts, 2) == 0);
  EXPECT(drakkar_resources_set_versions(resources, "p", "d", "vs", texts, 2) == 0);
  EXPECT(drakkar_resources_set_ints(resources, "p", "d", "is", numbers, 2) == 0);
  EXPECT(drakkar_resources_set_bools(resources, "p", "d", "bs", truths, 2) == 0);
  EXPECT(drakkar_resources_set_bools(resources, "p", "other", "bs", truths, 2) != 0);
  EXPECT(drakkar_resources_add_taint(resources, "p", "d", "c.example.com/x", NULL, "NoSchedule") ==
         0);
  EXPECT(drakkar_resources_set_binding(resources, "p", "d", 1, texts, 1, texts + 1, 1) == 0);
  EXPECT(drakkar_resources_set_json(resources, "p", "d", "{\"allNodes\":true}", &error) == 0);
  EXPECT(drakkar_resources_set_json(resources, "p", "d", "[]", &error) != 0);
  EXPECT(strcmp(error.message, "json must be an object") == 0);
  EXPECT(drakkar_resources_set_all_nodes(resources, "p") == 0);
  EXPECT(drakkar_resources_set_node_selector(resources, "q", "{\"nodeSelectorTerms\":[]}",
                                             &error) == 0);
  EXPECT(drakkar_resources_skip_node_operations(resources, "p", texts, 2) == 0);
  drakkar_resources_free(resources);
}

static void claim_status_is_about_the_device_added_last(void) {
  const char* ips[] = {"10.0.0.5/24"};
  drakkar_error error = {""};
  drakkar_claim_status* status = drakkar_claim_status_new();
  EXPECT(drakkar_claim_status_add_condition(status, "Ready", "True", "Up", NULL) != 0);
  EXPECT(drakkar_claim_status_add_device(status, "p", "d", NULL) == 0);
  EXPECT(drakkar_claim_status_add_condition(status, "Ready", "True", "Up", NULL) == 0);
  EXPECT(drakkar_claim_status_set_network(status, "eth0", ips, 1, "02:00:00:00:00:01") == 0);
  EXPECT(drakkar_claim_status_set_data(status, "{\"mtu\":9000}", &error) == 0);
  EXPECT(drakkar_claim_status_set_data(status, "{", &error) != 0 && error.message[0] != 0);
  drakkar_claim_status_free(status);
}

static int prepare_all(void* user_data, drakkar_prepare_item* items, size_t count,
                       drakkar_error* error) {
  (void)user_data, (void)items, (void)count, (void)error;
  return 0;
}
static int unprepare_all(void* user_data, drakkar_unprepare_item* items, size_t count,
                         drakkar_error* error) {
  (void)user_data, (void)items, (void)count, (void)error;
  return 0;
}
static int run_pod_sandbox(void* user_data, drakkar_driver* driver, const drakkar_pod* pod,
                           drakkar_error* error) {
  (void)user_data, (void)driver, (void)pod, (void)error;
  return 0;
}
static void applied(void* user_data, const char* failure) {
  snprintf(user_data, 512, "%s", failure == NULL ? "" : failure);
}

/* What can be called without an API server and a node, and the errors. */
static void a_driver_starts_and_stops(const char* directory) {
  char kubeconfig[512], registry[512], plugins[512], cdi[512];
  snprintf(kubeconfig, sizeof(kubeconfig), "%s/kubeconfig", directory);
  snprintf(registry, sizeof(registry), "%s/r", directory);
  snprintf(plugins, sizeof(plugins), "%s/p", directory);
  snprintf(cdi, sizeof(cdi), "%s/cdi", directory);
  mkdir(directory, 0755);
  static const char kKubeconfig[] =
      "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
      "clusters: [{name: x, cluster: {server: \"https://127.0.0.1:1\"}}]\n"
      "users: [{name: x, user: {token: t}}]\ncontexts: [{name: x, context: {cluster: x, user: "
      "x}}]\n";
  const int file = open(kubeconfig, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (file < 0 || write(file, kKubeconfig, strlen(kKubeconfig)) < 0 || close(file) != 0) exit(2);
  drakkar_driver_options options = {.size = sizeof(options),
                                    .driver_name = "c.example.com",
                                    .node_name = "n1",
                                    .kubeconfig = kubeconfig,
                                    .registry_dir = registry,
                                    .plugin_dir = plugins,
                                    .cdi_dir = cdi,
                                    .log_level = "error",
                                    .health_service = 1,
                                    .taint_unhealthy = 1,
                                    .taint_key = "c.example.com/broken",
                                    .enable_device_metadata = 1,
                                    .nri_socket = "/nowhere/nri.sock",
                                    .prepare_all = prepare_all,
                                    .unprepare_all = unprepare_all,
                                    .run_pod_sandbox = run_pod_sandbox};
  drakkar_error error = {""};
  drakkar_driver* driver = drakkar_driver_start(&options, &error);
  if (driver == NULL) {
    fprintf(stderr, "%s\n", error.message);
    exit(1);
  }
  EXPECT(drakkar_driver_is_registered(driver) == 0 &&
         drakkar_driver_is_nri_registered(driver) == 0);
  const drakkar_device_health news[] = {
      {.pool = "p",
       .device = "d",
       .health = DRAKKAR_HEALTH_UNHEALTHY,
       .message = "hot",
       .timeout_seconds = 60},
      {.pool = "p", .device = "e", .health = DRAKKAR_HEALTH_HEALTHY}};
  EXPECT(drakkar_driver_report(driver, news, 2, &error) == 0);
  EXPECT(drakkar_driver_report_health(driver, "", "d", DRAKKAR_HEALTH_HEALTHY, NULL, &error) != 0);
  EXPECT(drakkar_driver_forget_health(driver, "p", "d") == 0);

  const drakkar_allocated_device device = {.request = "gpu", .pool = "p", .device = "d"};
  drakkar_prepare_result* devices = drakkar_prepare_result_new();
  drakkar_prepare_result_add_device(devices, &device, NULL, 0);
  EXPECT(drakkar_driver_update_metadata(driver, "ns", "claim", NULL, "gpu", devices, &error) != 0);
  EXPECT(strstr(error.message, "request \"gpu\" not found in prepared claim ns/claim") != NULL);
  drakkar_prepare_result_free(devices);

  char failure[512] = "none yet";
  drakkar_claim_status* status = drakkar_claim_status_new();
  drakkar_claim_status_add_device(status, "p", "d", NULL);
  EXPECT(drakkar_driver_apply_claim_status(driver, "ns", "claim", "uid", status, applied, failure,
                                           &error) == 0);
  drakkar_claim_status_free(status);
  drakkar_driver_stop(driver);

  options.enable_device_metadata = 0;
  options.run_pod_sandbox = NULL;
  driver = drakkar_driver_start(&options, &error);
  devices = drakkar_prepare_result_new();
  EXPECT(drakkar_driver_update_metadata(driver, "ns", "claim", NULL, "gpu", devices, &error) != 0);
  EXPECT(strcmp(error.message, "device metadata is not enabled") == 0);
  drakkar_prepare_result_free(devices);
  drakkar_driver_stop(driver);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  flags_are_taken_out_of_the_command_line();
  devices_have_attributes_of_every_type();
  claim_status_is_about_the_device_added_last();
  a_driver_starts_and_stops(argv[1]);
  if (failures == 0) puts("ok");
  return failures != 0;
}
