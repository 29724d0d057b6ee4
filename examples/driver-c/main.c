/* driver-minimal in C: two devices, injected into containers as an environment variable through
 * CDI.
 *
 *   driver-c --kubeconfig=... --node-name=n1 --registry-dir=... --cdi-dir=...
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <drakkar_driver.h>

static const char kDriver[] = "c.example.com";

static void spec_path(char* path, size_t size, const char* cdi_dir, const char* uid) {
  snprintf(path, size, "%s/%s_%s.json", cdi_dir, kDriver, uid);
}

static int prepare(void* user_data, const drakkar_claim* claim, drakkar_prepare_result* result,
                   drakkar_error* error) {
  const char* cdi_dir = ((const drakkar_driver_options*)user_data)->cdi_dir;
  const char* uid = drakkar_claim_uid(claim);
  char names[256] = "", path[512], spec[1024], id[256];
  for (size_t i = 0; i < drakkar_claim_device_count(claim); ++i) {
    if (i > 0) strncat(names, ",", sizeof(names) - strlen(names) - 1);
    strncat(names, drakkar_claim_device(claim, i).device, sizeof(names) - strlen(names) - 1);
  }
  snprintf(spec, sizeof(spec),
           "{\"cdiVersion\":\"0.5.0\",\"kind\":\"%s/claim\",\"devices\":[{\"name\":\"%s\","
           "\"containerEdits\":{\"env\":[\"C_DEVICES=%s\"]}}]}",
           kDriver, uid, names);
  spec_path(path, sizeof(path), cdi_dir, uid);
  if (drakkar_cdi_write_spec(path, spec, error) != 0) return -1;
  snprintf(id, sizeof(id), "%s/claim=%s", kDriver, uid);
  const char* ids[] = {id};
  for (size_t i = 0; i < drakkar_claim_device_count(claim); ++i) {
    const drakkar_allocated_device device = drakkar_claim_device(claim, i);
    drakkar_prepare_result_add_device(result, &device, ids, 1);
    drakkar_prepare_result_set_string(result, "model", "C");
  }
  return 0;
}

static int unprepare(void* user_data, const char* claim_namespace, const char* claim_name,
                     const char* claim_uid, drakkar_error* error) {
  char path[512];
  (void)claim_namespace, (void)claim_name, (void)error;
  spec_path(path, sizeof(path), ((const drakkar_driver_options*)user_data)->cdi_dir, claim_uid);
  unlink(path); /* not there: never prepared, which is fine */
  return 0;
}

int main(int argc, char** argv) {
  drakkar_error error;
  drakkar_driver_options options = {.size = sizeof(options),
                                    .driver_name = kDriver,
                                    .cdi_dir = "/var/run/cdi",
                                    .health_service = 1,
                                    .taint_unhealthy = 1,
                                    .user_data = &options,
                                    .prepare = prepare,
                                    .unprepare = unprepare};
  const int refused = drakkar_driver_parse_flags(&options, &argc, argv, &error);
  if (refused || argc != 1) {
    fprintf(stderr, "%s\n%s", refused ? error.message : "unknown argument",
            drakkar_driver_flags_help());
    return 2;
  }
  /* Block the signals before the driver's thread starts, so that it inherits the mask. */
  sigset_t signals;
  int signal_number = 0;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, NULL);

  drakkar_driver* driver = drakkar_driver_start(&options, &error);
  if (driver == NULL) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  drakkar_resources* resources = drakkar_resources_new();
  for (int i = 0; i < 2; ++i) {
    char name[16];
    snprintf(name, sizeof(name), "c-%d", i);
    drakkar_resources_add_device(resources, options.node_name, name);
    drakkar_resources_set_string(resources, options.node_name, name, "model", "C");
    drakkar_resources_set_int(resources, options.node_name, name, "index", i);
    drakkar_resources_set_capacity(resources, options.node_name, name, "memory", "1Gi");
    drakkar_driver_report_health(driver, options.node_name, name, DRAKKAR_HEALTH_HEALTHY, NULL,
                                 NULL);
  }
  const int published = drakkar_driver_publish(driver, resources, &error);
  drakkar_resources_free(resources);
  if (published == 0) {
    sigwait(&signals, &signal_number);
  } else {
    fprintf(stderr, "%s\n", error.message);
  }
  drakkar_driver_stop(driver);
  return published == 0 ? 0 : 1;
}
