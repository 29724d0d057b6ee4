/* The driver SDK for C (C11) and for every language that can call C.
 *
 * Ownership: a handle that a function returns belongs to the caller, who frees it with the function
 * named beside it. Handles and texts that a callback gets are lent: they are valid until it returns.
 * Texts that go in are copied.
 *
 * Threads: a driver runs on a thread of its own. Callbacks are called there, one at a time, and should
 * not take longer than a few seconds. All functions may be called from any thread, and from callbacks;
 * only drakkar_driver_stop must not be called from a callback. A drakkar_resources handle must not be
 * used from two threads at once.
 *
 * Errors: functions that can fail return 0 or a handle on success and nonzero or NULL on failure; `error`
 * may be NULL, else it then holds one sentence. No exception leaves this library.
 */
#ifndef DRAKKAR_DRIVER_H_
#define DRAKKAR_DRIVER_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DRAKKAR_ERROR_BYTES 512

typedef struct drakkar_error {
  char message[DRAKKAR_ERROR_BYTES]; /* zero-terminated, cut off where it is too long */
} drakkar_error;

typedef struct drakkar_driver drakkar_driver;
typedef struct drakkar_resources drakkar_resources;
typedef struct drakkar_claim drakkar_claim;                   /* lent to callbacks */
typedef struct drakkar_prepare_result drakkar_prepare_result; /* lent to callbacks */

/* ---- claims, as callbacks see them ---- */

typedef struct drakkar_allocated_device {
  const char* request;  /* "gpu", or "gpu/small" for a subrequest */
  const char* pool;
  const char* device;
  const char* share_id; /* NULL if the device is not shared */
} drakkar_allocated_device;

const char* drakkar_claim_namespace(const drakkar_claim* claim);
const char* drakkar_claim_name(const drakkar_claim* claim);
const char* drakkar_claim_uid(const drakkar_claim* claim);
/* The whole ResourceClaim as JSON. */
const char* drakkar_claim_json(const drakkar_claim* claim);
/* The devices of this driver that the claim was given. */
size_t drakkar_claim_device_count(const drakkar_claim* claim);
drakkar_allocated_device drakkar_claim_device(const drakkar_claim* claim, size_t index);

/* Adds a device that is ready, with the CDI ids containers need for it. */
int drakkar_prepare_result_add_device(drakkar_prepare_result* result,
                                      const drakkar_allocated_device* device,
                                      const char* const* cdi_ids, size_t cdi_id_count);

/* What containers are told about the device added last (KEP-5304); looked at only with
 * enable_device_metadata. Without any of these its metadata is deferred. */
int drakkar_prepare_result_set_string(drakkar_prepare_result* result, const char* attribute,
                                      const char* value);
int drakkar_prepare_result_set_int(drakkar_prepare_result* result, const char* attribute, int64_t value);
int drakkar_prepare_result_set_bool(drakkar_prepare_result* result, const char* attribute, int value);

/* ---- the driver ---- */

typedef struct drakkar_driver_options {
  size_t size; /* sizeof(drakkar_driver_options): lets the struct grow */
  const char* driver_name;
  const char* node_name;
  const char* kubeconfig;    /* NULL: the service account of the pod */
  const char* registry_dir;  /* NULL: /var/lib/kubelet/plugins_registry */
  const char* plugin_dir;    /* NULL: plugins/<driver> beside the registry */
  const char* pod_uid;       /* NULL: no rolling updates */
  const char* http_endpoint; /* NULL: no /healthz, /readyz, /metrics */
  const char* log_level;     /* NULL: info */
  int health_service;        /* nonzero: drakkar_driver_report_health may be called */
  const char* cdi_dir;       /* NULL: /var/run/cdi; for enable_device_metadata */
  int enable_device_metadata; /* the value of the driver's flag of that name */
  int taint_unhealthy;       /* nonzero: unhealthy devices get the taint <driver>/unhealthy */

  void* user_data; /* handed to every callback */
  /* Makes the devices of a claim ready; called again for the same claim, it must give the same answer.
   * Nonzero fails the claim with the sentence in `error`. */
  int (*prepare)(void* user_data, const drakkar_claim* claim, drakkar_prepare_result* result,
                 drakkar_error* error);
  /* Undoes it. A claim that is not known has succeeded. */
  int (*unprepare)(void* user_data, const char* claim_namespace, const char* claim_name,
                   const char* claim_uid, drakkar_error* error);
  /* Something failed in the background; may be NULL. If it is not recoverable the process should end. */
  void (*handle_error)(void* user_data, const char* message, int recoverable);
} drakkar_driver_options;

/* Registers with the node and serves its calls. Freed by drakkar_driver_stop. */
drakkar_driver* drakkar_driver_start(const drakkar_driver_options* options, drakkar_error* error);
/* Closes the sockets and waits for the thread; published devices stay. NULL is fine. */
void drakkar_driver_stop(drakkar_driver* driver);
/* Nonzero once a node has taken the driver in. */
int drakkar_driver_is_registered(drakkar_driver* driver);

/* ---- devices ---- */

drakkar_resources* drakkar_resources_new(void); /* freed by drakkar_resources_free */
void drakkar_resources_free(drakkar_resources* resources);
/* A device of a pool, added if it is new. The setters below name one that is there. */
int drakkar_resources_add_device(drakkar_resources* resources, const char* pool, const char* device);
int drakkar_resources_set_string(drakkar_resources* resources, const char* pool, const char* device,
                                 const char* attribute, const char* value);
int drakkar_resources_set_version(drakkar_resources* resources, const char* pool, const char* device,
                                  const char* attribute, const char* value);
int drakkar_resources_set_int(drakkar_resources* resources, const char* pool, const char* device,
                              const char* attribute, int64_t value);
int drakkar_resources_set_bool(drakkar_resources* resources, const char* pool, const char* device,
                               const char* attribute, int value);
int drakkar_resources_set_capacity(drakkar_resources* resources, const char* pool, const char* device,
                                   const char* name, const char* quantity);
/* pciBusID, pcieRoot and numaNode of a PCI device of this machine. */
int drakkar_resources_set_pci(drakkar_resources* resources, const char* pool, const char* device,
                              const char* bus_id, drakkar_error* error);

/* Makes `resources` the complete published state; the handle stays the caller's. Returns once it is
 * accepted: later failures reach handle_error. */
int drakkar_driver_publish(drakkar_driver* driver, const drakkar_resources* resources,
                           drakkar_error* error);

/* ---- health ---- */

typedef enum drakkar_health {
  DRAKKAR_HEALTH_UNKNOWN = 0,
  DRAKKAR_HEALTH_HEALTHY = 1,
  DRAKKAR_HEALTH_UNHEALTHY = 2
} drakkar_health;

/* News about one device; repeated to the node before they expire. `message` may be NULL. */
int drakkar_driver_report_health(drakkar_driver* driver, const char* pool, const char* device,
                                 drakkar_health health, const char* message, drakkar_error* error);

/* ---- claim status ---- */

/* Sets a condition of an allocated device in the claim's status.devices, in the background; failures reach
 * handle_error. `status` is "True", "False" or "Unknown". Other conditions and devices of this driver in
 * the claim are dropped from the status. */
int drakkar_driver_set_condition(drakkar_driver* driver, const char* claim_namespace,
                                 const char* claim_name, const char* claim_uid, const char* pool,
                                 const char* device, const char* type, const char* status,
                                 const char* reason, const char* message, drakkar_error* error);

/* ---- CDI ---- */

/* Checks a CDI spec (JSON) and puts it at `path` so that readers see the old or the new file. */
int drakkar_cdi_write_spec(const char* path, const char* json, drakkar_error* error);

#ifdef __cplusplus
}
#endif

#endif /* DRAKKAR_DRIVER_H_ */
