#include "segments.h"

void segments_total(Tree *tree, Code *code, const Lane *changes) {
    for (; changes; changes = changes->next) {
        CodeLane *lane = lane_of(&tree->arena, &code->lanes, changes->metric, sizeof(CodeLane));
        int64_t value = ((const Change *)changes)->value;
        if (lane) lane->total += widened(changes->metric == METRIC_CPU ? since(0, value) : value);
    }
}

void segments_move(Tree *tree, Frame *top, Frame *caller) {
    Arena *arena = &tree->arena;
    if (caller) {
        uint32_t place = bag_seek(arena, &caller->kids, top->slot->number);
        Lane **known = place < caller->kids.count ? bag_changes(arena, &caller->kids, place) : NULL;
        lane_merge(arena, &caller->segment_changes, top->segment_changes);
        if (known) lane_merge(arena, known, top->segment_changes);
    }
    lane_merge(arena, &top->changes, top->segment_changes);
    lane_clear(arena, &top->segment_changes);
}

