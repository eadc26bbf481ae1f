/* No probes: -DPERFLAW_PROBES_OFF asks for that, or the area does not support this system. */
#ifndef PERFLAW_OFF_H
#define PERFLAW_OFF_H

#define PERFLAW_NOTHING \
    do {                \
    } while (0)

#define PERFLAW_PROBE(id, name, unit) struct perflaw_semicolon
#define PERFLAW_FIELDS(id, fields) struct perflaw_semicolon
#define CNT_PROBE_BEGIN(id, sc) PERFLAW_NOTHING
#define CNT_PROBE_END(id) PERFLAW_NOTHING
#define LAT_PROBE_BEGIN(id, sc) PERFLAW_NOTHING
#define LAT_PROBE_END(id) PERFLAW_NOTHING
#define TPT_PROBE_BEGIN(id, sc) PERFLAW_NOTHING
#define TPT_PROBE_END(id) PERFLAW_NOTHING
#define LLC_PROBE_BEGIN(id, sc) PERFLAW_NOTHING
#define LLC_PROBE_END(id) PERFLAW_NOTHING
#define FLT_PROBE_BEGIN(id, sc) PERFLAW_NOTHING
#define FLT_PROBE_END(id) PERFLAW_NOTHING
#define CTXSW_PROBE_BEGIN(id, sc) PERFLAW_NOTHING
#define CTXSW_PROBE_END(id) PERFLAW_NOTHING
#define PERFCNTR_PROBE_BEGIN(id, sc, pcid) PERFLAW_NOTHING
#define PERFCNTR_PROBE_END(id) PERFLAW_NOTHING
#define SET_PERFCNTR(pcid, event, mask) PERFLAW_NOTHING
#define SNAPSHOT_PROBE(...) PERFLAW_NOTHING

#endif
