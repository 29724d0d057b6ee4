/* A driver in C that keeps every call and answers it when the test says so, on its own thread. */
#ifndef DRAKKAR_LATE_DRIVER_H_
#define DRAKKAR_LATE_DRIVER_H_

#include "sdk/driver/c/drakkar_driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct late_driver late_driver;

/* Runs in `directory`, where the socket of the driver is plugins/dra.sock. NULL on failure. */
late_driver* late_driver_start(const char* directory, drakkar_error* error);
drakkar_driver* late_driver_handle(late_driver* driver);
/* Stops the driver but keeps the calls that were not answered. */
void late_driver_stop(late_driver* driver);
void late_driver_free(late_driver* driver); /* also frees those calls */

/* Waits until a call for the claim has arrived. */
void late_driver_wait_for(late_driver* driver, const char* claim_uid);

typedef enum late_answer { LATE_SUCCEED, LATE_FAIL, LATE_DROP } late_answer;
/* Answers the oldest call for the claim from another thread. The call is kept unless dropped, so
 * it can be answered again. Returns what the interface returned, -2 if there is no such call. */
int late_driver_answer(late_driver* driver, const char* claim_uid, late_answer answer,
                       drakkar_error* error);
/* The message of the last handle_error, or "". */
void late_driver_last_error(late_driver* driver, drakkar_error* error);

#ifdef __cplusplus
}
#endif

#endif /* DRAKKAR_LATE_DRIVER_H_ */
