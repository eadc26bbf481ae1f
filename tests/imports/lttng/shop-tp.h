/* Tracepoints of shop.c: a pair that is a call, and one that stands alone. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER shop
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./shop-tp.h"
#if !defined(SHOP_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SHOP_TP_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(shop, pay_begin, LTTNG_UST_TP_ARGS(int, items, double, euro, const char *, card),
                           LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, items, items) lttng_ust_field_float(double, euro, euro)
                                                   lttng_ust_field_string(card, card)))
LTTNG_UST_TRACEPOINT_EVENT(shop, pay_end, LTTNG_UST_TP_ARGS(int, code), LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, code, code)))
LTTNG_UST_TRACEPOINT_EVENT(shop, started, LTTNG_UST_TP_ARGS(int, n), LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, n, n)))
#endif
#include <lttng/tracepoint-event.h>
