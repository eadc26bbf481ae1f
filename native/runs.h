/* Runs of a link: one invocation of the ancestor after another in which the descendant had as many calls and events as in
 * the one before, see Link. Ownership: the arena's. Threads: one at a time. Cost: what is here is seldom called. */
#ifndef PERFLAW_RUNS_H
#define PERFLAW_RUNS_H

#include "layout.h"

/* End the run, if there is one, and begin that of the touch; events: the ancestor's. */
void run_turn(Tree *tree, Node *node, Link *link, const Touch *touch, int64_t events);
/* The sums of products have become large: move them on before the next product makes them overflow. */
void run_move_on(Tree *tree, Node *node, Link *link);
/* Add products of times that are negative or of two seconds and more. */
void run_add_wide(Tree *tree, Node *node, const Link *link, int64_t time, int64_t x);

/* Add what Last knows to the runs of the links that took part: alike_settle does it. */
void runs_catch_up(Tree *tree, Node *node);
/* All that a link has, of a node that is settled: exported sums are settled ones. */
Settled runs_settled(const Node *node, uint32_t at);

#endif
