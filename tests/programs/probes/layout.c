/* Says where the parts of the area lie. */
#include <perflaw.h>
#include <stdio.h>

#define SAY(type, part) printf(#type " " #part " %d %d\n", (int)offsetof(perflaw_##type, part), (int)sizeof(((perflaw_##type *)0)->part))

int main(void) {
    SAY(head, magic), SAY(head, version), SAY(head, pid), SAY(head, rings), SAY(head, ring_records), SAY(head, probes);
    SAY(head, clock), SAY(head, tsc0), SAY(head, ns0), SAY(head, lost_no_ring), SAY(head, conflicts), SAY(head, enable_all);
    SAY(head, language), SAY(head, image), SAY(head, copies), SAY(head, serial), SAY(head, used), SAY(head, refusal);
    SAY(entry, name), SAY(entry, unit), SAY(entry, fields), SAY(entry, every), SAY(entry, refused);
    SAY(ring, state), SAY(ring, thread), SAY(ring, lost_nested), SAY(ring, head);
    SAY(record, timestamp), SAY(record, what), SAY(record, fields);
    printf("size head %d 0\nsize entry %d 0\nsize record %d 0\n", (int)sizeof(perflaw_head), (int)sizeof(perflaw_entry),
           (int)sizeof(perflaw_record));
    printf("size ring %d 0\n", (int)offsetof(perflaw_ring, records));
    return 0;
}
