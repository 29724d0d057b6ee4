#include "sdk/driver/c/testing/late_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxCalls = 16 };

typedef struct kept_call {
  char uid[64];
  drakkar_prepare_call* prepare;     /* or NULL */
  drakkar_unprepare_call* unprepare; /* or NULL */
} kept_call;

struct late_driver {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  drakkar_driver* driver;
  kept_call calls[kMaxCalls];
  size_t call_count;
  drakkar_error last_error;
};

static void keep(late_driver* driver, const char* uid, drakkar_prepare_call* prepare,
                 drakkar_unprepare_call* unprepare) {
  pthread_mutex_lock(&driver->mutex);
  if (driver->call_count == kMaxCalls) abort();
  kept_call* call = &driver->calls[driver->call_count++];
  snprintf(call->uid, sizeof(call->uid), "%s", uid);
  call->prepare = prepare;
  call->unprepare = unprepare;
  pthread_cond_broadcast(&driver->changed);
  pthread_mutex_unlock(&driver->mutex);
}

static void start_prepare(void* user_data, drakkar_prepare_call* call) {
  keep(user_data, drakkar_claim_uid(drakkar_prepare_call_claim(call)), call, NULL);
}

static void start_unprepare(void* user_data, drakkar_unprepare_call* call) {
  keep(user_data, drakkar_unprepare_call_uid(call), NULL, call);
}

static void handle_error(void* user_data, const char* message, int recoverable) {
  late_driver* driver = user_data;
  (void)recoverable;
  pthread_mutex_lock(&driver->mutex);
  snprintf(driver->last_error.message, sizeof(driver->last_error.message), "%s", message);
  pthread_mutex_unlock(&driver->mutex);
}

late_driver* late_driver_start(const char* directory, drakkar_error* error) {
  char kubeconfig[512], registry[512], plugins[512], cdi[512];
  snprintf(kubeconfig, sizeof(kubeconfig), "%s/kubeconfig", directory);
  snprintf(registry, sizeof(registry), "%s/registry", directory);
  snprintf(plugins, sizeof(plugins), "%s/plugins", directory);
  snprintf(cdi, sizeof(cdi), "%s/cdi", directory);
  FILE* file = fopen(kubeconfig, "w");
  if (file == NULL) return NULL;
  fputs(
      "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
      "clusters: [{name: x, cluster: {server: \"https://127.0.0.1:1\"}}]\n"
      "users: [{name: x, user: {token: t}}]\n"
      "contexts: [{name: x, context: {cluster: x, user: x}}]\n",
      file);
  fclose(file);
  late_driver* driver = calloc(1, sizeof(late_driver));
  if (driver == NULL) return NULL;
  pthread_mutex_init(&driver->mutex, NULL);
  pthread_cond_init(&driver->changed, NULL);
  const drakkar_driver_options options = {.size = sizeof(options),
                                          .driver_name = "late.example.com",
                                          .node_name = "n1",
                                          .kubeconfig = kubeconfig,
                                          .registry_dir = registry,
                                          .plugin_dir = plugins,
                                          .cdi_dir = cdi,
                                          .log_level = "error",
                                          .health_service = 1,
                                          .user_data = driver,
                                          .handle_error = handle_error,
                                          .start_prepare = start_prepare,
                                          .start_unprepare = start_unprepare};
  driver->driver = drakkar_driver_start(&options, error);
  if (driver->driver != NULL) return driver;
  late_driver_free(driver);
  return NULL;
}

drakkar_driver* late_driver_handle(late_driver* driver) {
  return driver->driver;
}

void late_driver_stop(late_driver* driver) {
  drakkar_driver_stop(driver->driver);
  driver->driver = NULL;
}

void late_driver_free(late_driver* driver) {
  if (driver->driver != NULL) late_driver_stop(driver);
  for (size_t i = 0; i < driver->call_count; ++i) {
    drakkar_prepare_call_free(driver->calls[i].prepare);
    drakkar_unprepare_call_free(driver->calls[i].unprepare);
  }
  pthread_cond_destroy(&driver->changed);
  pthread_mutex_destroy(&driver->mutex);
  free(driver);
}

/* The oldest call for the claim, or NULL. */
static kept_call* find(late_driver* driver, const char* uid) {
  for (size_t i = 0; i < driver->call_count; ++i) {
    if (strcmp(driver->calls[i].uid, uid) == 0) return &driver->calls[i];
  }
  return NULL;
}

void late_driver_wait_for(late_driver* driver, const char* claim_uid) {
  pthread_mutex_lock(&driver->mutex);
  while (find(driver, claim_uid) == NULL) pthread_cond_wait(&driver->changed, &driver->mutex);
  pthread_mutex_unlock(&driver->mutex);
}

typedef struct answer_task {
  kept_call call;
  late_answer answer;
  drakkar_error* error;
  int outcome;
} answer_task;

static void* run_answer(void* data) {
  answer_task* task = data;
  if (task->answer == LATE_DROP) {
    drakkar_prepare_call_free(task->call.prepare);
    drakkar_unprepare_call_free(task->call.unprepare);
  } else if (task->call.unprepare != NULL) {
    task->outcome = task->answer == LATE_SUCCEED
                        ? drakkar_unprepare_call_succeed(task->call.unprepare, task->error)
                        : drakkar_unprepare_call_fail(task->call.unprepare, "stuck", task->error);
  } else if (task->answer == LATE_FAIL) {
    task->outcome = drakkar_prepare_call_fail(task->call.prepare, "no link", task->error);
  } else {
    const drakkar_claim* claim = drakkar_prepare_call_claim(task->call.prepare);
    for (size_t i = 0; i < drakkar_claim_device_count(claim); ++i) {
      const drakkar_allocated_device device = drakkar_claim_device(claim, i);
      drakkar_prepare_result_add_device(drakkar_prepare_call_result(task->call.prepare), &device,
                                        NULL, 0);
    }
    task->outcome = drakkar_prepare_call_succeed(task->call.prepare, task->error);
  }
  return NULL;
}

int late_driver_answer(late_driver* driver, const char* claim_uid, late_answer answer,
                       drakkar_error* error) {
  answer_task task = {.answer = answer, .error = error};
  pthread_t thread;
  pthread_mutex_lock(&driver->mutex);
  kept_call* call = find(driver, claim_uid);
  if (call != NULL) task.call = *call;
  if (call != NULL && answer == LATE_DROP) *call = driver->calls[--driver->call_count];
  pthread_mutex_unlock(&driver->mutex);
  if (call == NULL) return -2;
  if (pthread_create(&thread, NULL, run_answer, &task) != 0) abort();
  pthread_join(thread, NULL);
  return task.outcome;
}

void late_driver_last_error(late_driver* driver, drakkar_error* error) {
  pthread_mutex_lock(&driver->mutex);
  *error = driver->last_error;
  pthread_mutex_unlock(&driver->mutex);
}
