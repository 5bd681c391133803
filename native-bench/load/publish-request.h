/* What publishers of the broker send. */
#pragma once

#include "connection.h"

/* The request of each stream, which all of its publishers send over and over. */
void prepare_publish(void);

/* Contract 3.4: the same request, with the producer's count in its head. */
void renew_producer_request(struct connection *c);
