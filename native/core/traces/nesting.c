#include "nesting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/library/calltree.h"
#include "core/tree/reservoir.h"

enum { KEYS = 0x7FFFFFFF };

typedef struct Open {
    int64_t end, frame;
    int32_t code;
} Open;
typedef struct Track {
    EventSource source;
    Open *open; /* the calls that are open, the innermost one last */
    uint32_t height, room;
} Track;

/* A thread that is played. */
typedef struct Player {
    Tree *tree;
    const Meaning *meaning;
    Outcome *outcome;
    Track *tracks;
    uint32_t track_count;
    uint32_t *open_of; /* begins that are open on the first track, by code */
} Player;

static void note(Outcome *outcome, int64_t stamp) {
    if (stamp > outcome->last) outcome->last = stamp;
}

static int enter(Player *player, Track *track, const Mark *mark, const Number *numbers, int64_t end, int32_t code) {
    if (track->height == track->room) {
        uint32_t room = track->room ? track->room * 2 : 64;
        Open *larger = track->height < NESTING_MAX_DEPTH ? realloc(track->open, room * sizeof(Open)) : NULL;
        if (!larger) return track->height < NESTING_MAX_DEPTH ? ENOMEM : EOVERFLOW;
        track->open = larger;
        track->room = room;
    }
    const Meaning *meaning = player->meaning;
    int32_t caller = track->height ? track->open[track->height - 1].code : 0;
    int64_t frame = (int64_t)++player->outcome->frame;
    int32_t key = (int32_t)(scramble((uint64_t)frame) & KEYS) ^ meaning->key;
    const Event entered = {mark->start, frame, code, meaning->sites[caller], key, EVENT_ENTER};
    calltree_feed(player->tree, &track->source, &entered);
    for (uint32_t which = 0; which < mark->number_count; which++) {
        int32_t feature = meaning->features[numbers[which].name];
        Event told = {0, frame, feature, -1, -1, EVENT_FEATURE};
        memcpy(&told.value, &numbers[which].value, sizeof told.value);
        if (feature) calltree_feed(player->tree, &track->source, &told);
        else player->outcome->left_out++;
    }
    note(player->outcome, mark->start);
    track->open[track->height++] = (Open){end, frame, code};
    return 0;
}

/* The calls above the one at this height never end. */
static void leave(Player *player, Track *track, uint32_t height, int64_t stamp) {
    const Event left = {stamp, track->open[height].frame, 1, -1, -1, EVENT_EXIT};
    calltree_feed(player->tree, &track->source, &left);
    note(player->outcome, stamp);
    track->height = height;
}

static void leave_ended(Player *player, Track *track, int64_t stamp) {
    while (track->height && track->open[track->height - 1].end <= stamp)
        leave(player, track, track->height - 1, track->open[track->height - 1].end);
}

/* Place of the open call that an end ends: the innermost one of its code, of any if it has no name; -1 for none. */
static int64_t place_of(const Player *player, const Track *track, const Mark *mark) {
    int32_t code = mark->name ? player->meaning->codes[mark->name] : 0;
    if (mark->name && (!code || !player->open_of[code])) return -1;
    int64_t place = (int64_t)track->height - 1;
    while (place >= 0 && mark->name && track->open[place].code != code) place--;
    return place;
}

static int play_mark(Player *player, const Mark *mark, const Number *numbers) {
    Track *track = player->tracks;
    if (mark->kind == MARK_BEGIN) {
        int32_t code = player->meaning->codes[mark->name];
        player->open_of[code]++;
        return enter(player, track, mark, numbers, NEVER, code);
    }
    int64_t place = place_of(player, track, mark);
    if (place < 0) return player->outcome->begun_earlier++, 0;
    for (uint32_t at = (uint32_t)place; at < track->height; at++) player->open_of[track->open[at].code]--;
    leave(player, track, (uint32_t)place, mark->start);
    return 0;
}

static int play_call(Player *player, const Mark *mark, const Number *numbers) {
    const Meaning *meaning = player->meaning;
    for (uint32_t which = 0;; which++) {
        if (which == player->track_count) {
            if (which == NESTING_MAX_TRACKS) return EOVERFLOW;
            player->track_count++;
        }
        Track *track = &player->tracks[which];
        int64_t end = mark->end;
        leave_ended(player, track, mark->start);
        if (track->height && end > track->open[track->height - 1].end) {
            int64_t limit = track->open[track->height - 1].end;
            if (end == NEVER || end - limit > meaning->tick) {
                player->outcome->overlaps += !which;
                continue;
            }
            end = limit;
            player->outcome->cut++;
        }
        return enter(player, track, mark, numbers, end, meaning->codes[mark->name]);
    }
}

int nesting_play(Tree *tree, MarkReader *reader, const Mark **next, const Number **numbers, const Meaning *meaning,
                 int are_paired, Outcome *outcome) {
    Player player = {tree, meaning, outcome, calloc(NESTING_MAX_TRACKS, sizeof(Track)), 1, NULL};
    player.open_of = calloc(meaning->code_count + 1, sizeof(uint32_t));
    int error = player.tracks && player.open_of ? 0 : ENOMEM;
    for (uint32_t thread = (*next)->thread; *next && (*next)->thread == thread && !error; *next = marks_next(reader, numbers)) {
        if ((*next)->kind == MARK_CALL) error = play_call(&player, *next, *numbers);
        else if (!are_paired) error = play_mark(&player, *next, *numbers);
    }
    for (uint32_t which = 0; player.tracks && which < player.track_count; which++) {
        Track *track = &player.tracks[which];
        leave_ended(&player, track, NEVER - 1);
        calltree_end(tree, &track->source);
        free(track->open);
    }
    free(player.tracks);
    free(player.open_of);
    return error;
}

/* A begin that waits for its end. */
typedef struct Begun {
    Mark mark;
    const Number *numbers;
} Begun;

int nesting_pair(Marks *to, MarkReader *reader, const int32_t *codes, uint32_t code_count, Outcome *outcome) {
    Begun *begun = NULL;
    uint32_t height = 0, room = 0, *open_of = calloc(code_count + 1, sizeof(uint32_t));
    int error = open_of ? 0 : ENOMEM;
    const Number *numbers;
    for (const Mark *mark; !error && (mark = marks_next(reader, &numbers));) {
        int32_t code = mark->name ? codes[mark->name] : 0;
        if (mark->kind == MARK_BEGIN) {
            if (height == room) {
                room = room ? room * 2 : 64;
                Begun *larger = height < NESTING_MAX_DEPTH ? realloc(begun, room * sizeof(Begun)) : NULL;
                if (!larger) {
                    error = height < NESTING_MAX_DEPTH ? ENOMEM : EOVERFLOW;
                    break;
                }
                begun = larger;
            }
            open_of[code]++;
            begun[height++] = (Begun){*mark, numbers};
        } else if (mark->kind == MARK_END) {
            if (mark->name ? !open_of[code] || !code : !height) {
                outcome->begun_earlier++;
                continue;
            }
            for (int is_found = 0; !is_found && !error;) { /* what lies within the call that ends never ends */
                Begun *top = &begun[--height];
                is_found = !mark->name || codes[top->mark.name] == code;
                open_of[codes[top->mark.name]]--;
                top->mark.kind = MARK_CALL;
                top->mark.place |= (uint64_t)1 << 62; /* after the complete events */
                if (is_found) top->mark.end = mark->start;
                error = marks_add(to, top->mark, top->numbers, top->mark.number_count);
            }
        }
    }
    while (height && !error) {
        Begun *top = &begun[--height];
        top->mark.kind = MARK_CALL;
        top->mark.place |= (uint64_t)1 << 62;
        error = marks_add(to, top->mark, top->numbers, top->mark.number_count);
    }
    free(begun);
    free(open_of);
    return error;
}
