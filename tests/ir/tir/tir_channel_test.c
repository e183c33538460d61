/* tir_channel_test.c: all orders in which a few blocks, groups and slots of a channel (ir/channel.h) can go on, as
 * codegen/lower_roles.c has them: words that count in phases, of which only the parity is asked, copies that come whenever they
 * like, and releases that the blocks of a cluster are told one after the other. In none of them may a copy come to a slot that a
 * group reads, a group read what is not all there, or all wait; with one thing wrong, some must.
 *
 * A step of the search is what a thread does at once: a wait that is over, an announcement and the copies behind it, one arrival. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/channel.h"

enum { BLOCKS = 2, GROUPS = 3, SLOTS = 3, FILLS = 8, MOST_STATES = 1 << 20 };

typedef enum { RIGHT, TELLS_ITSELF, COUNTS_ITSELF, WAITS_TOO_LATE, RELEASES_WHAT_IT_READS, ANNOUNCES_ITS_OWN } Wrong;

typedef struct {
	unsigned blocks, groups, slots, tiles, steps;
	bool turns;
	Wrong wrong;
} Setting;

/* As the hardware has it: a phase is over when all have arrived and all announced bytes have come, which may come before they
 * are announced. */
typedef struct {
	uint8_t parity, left;
	int8_t bytes;
} Word;

typedef struct {
	uint8_t fill, waited, released; /* of its own ones: the next; so many waited for, and released */
	uint8_t telling;                /* of the release under way: 1 + the next block; 0: there is none */
	uint8_t has_turn;
} Group;

typedef struct {
	uint8_t loaded[BLOCKS], acquired[BLOCKS]; /* fills that copies were begun of; whether the next one's slot was waited for */
	Group group[BLOCKS][GROUPS];
	Word full[BLOCKS][SLOTS], empty[BLOCKS][SLOTS];
	uint8_t content[BLOCKS][SLOTS], came[BLOCKS][SLOTS]; /* 1 + the fill that comes or is there, and its pieces */
	uint8_t turn[BLOCKS][GROUPS];                        /* turns that were given and not taken */
	uint32_t flying[BLOCKS];                             /* to the block: bits by fill and piece */
} State;

typedef struct {
	Setting of;
	TirChannel channel;
	State *state;
	uint32_t *table;
	uint32_t nstate;
	const char *error;
} Search;

/* A factor of rows, and one of columns that blocks have in common where there are two. */
static unsigned
pieces(const Setting *s)
{
	return 1 + s->blocks;
}

static unsigned
shares(const Setting *s)
{
	return s->turns ? 1 : s->groups;
}

/* The fill that is number n of the group's own. */
static unsigned
fill_of(const Setting *s, unsigned group, unsigned n)
{
	return s->turns ? (n / s->steps * s->groups + group) * s->steps + n % s->steps : n;
}

static unsigned
own_fills(const Setting *s, unsigned group)
{
	return s->turns ? (s->tiles + s->groups - 1 - group) / s->groups * s->steps : s->tiles * s->steps;
}

static unsigned
releases(const Search *x)
{
	return tir_releases(&x->channel, shares(&x->of), x->of.wrong == COUNTS_ITSELF ? 1 : x->of.blocks, false);
}

static void
settle_word(Word *w, unsigned again)
{
	if (w->left || w->bytes)
		return;
	w->parity ^= 1;
	w->left = (uint8_t)again;
}

/* Whether the phase with this parity is over. */
static bool
is_over(const Word *w, unsigned parity)
{
	return w->parity != parity;
}

static void
add_state(Search *x, const State *s)
{
	const uint8_t *byte = (const uint8_t *)s;
	uint64_t h = 14695981039346656037u;
	for (size_t n = 0; n < sizeof *s; n++)
		h = (h ^ byte[n]) * 1099511628211u;
	uint32_t at = (uint32_t)(h >> 20) % (2 * MOST_STATES);
	while (x->table[at]) {
		if (memcmp(&x->state[x->table[at] - 1], s, sizeof *s) == 0)
			return;
		at = (at + 1) % (2 * MOST_STATES);
	}
	if (x->nstate == MOST_STATES)
		fail_msg("more than %d states", MOST_STATES);
	x->state[x->nstate] = *s;
	x->table[at] = ++x->nstate;
}

/* From a wait on until the release begins; of who releases too early the last one until the next wait. */
static bool
is_read(const Search *x, const State *s, unsigned block, unsigned slot)
{
	for (unsigned g = 0; g < x->of.groups; g++) {
		const Group *group = &s->group[block][g];
		unsigned first = group->released + (group->telling ? 1u : 0u);
		if (x->of.wrong == RELEASES_WHAT_IT_READS && group->waited)
			first = group->waited - 1u;
		for (unsigned n = first; n < group->waited; n++)
			if (fill_of(&x->of, g, n) % x->of.slots == slot)
				return true;
	}
	return false;
}

/* The loading thread of a block. False: it waits, or has ended. */
static bool
load(Search *x, const State *from, unsigned b)
{
	State s = *from;
	unsigned n = s.loaded[b], slot = n % x->of.slots, parity = n / x->of.slots & 1;
	if (n == x->of.tiles * x->of.steps)
		return false;
	if (!s.acquired[b]) {
		if (!is_over(&s.empty[b][slot], x->of.wrong == WAITS_TOO_LATE ? parity : parity ^ 1))
			return false;
		s.acquired[b] = 1;
		add_state(x, &s);
		return true;
	}
	s.full[b][slot].bytes = (int8_t)(s.full[b][slot].bytes + (x->of.wrong == ANNOUNCES_ITS_OWN ? 2 : (int)pieces(&x->of)));
	s.full[b][slot].left--;
	settle_word(&s.full[b][slot], 1);
	s.flying[b] |= 1u << (n * 4);
	for (unsigned d = 0; d < x->of.blocks; d++)
		s.flying[d] |= 1u << (n * 4 + 1 + b);
	s.loaded[b]++;
	s.acquired[b] = 0;
	add_state(x, &s);
	return true;
}

static void
bring(Search *x, const State *from, unsigned block, unsigned bit)
{
	State s = *from;
	unsigned n = bit / 4, slot = n % x->of.slots;
	s.flying[block] &= ~(1u << bit);
	if (is_read(x, &s, block, slot))
		x->error = "a copy comes to a slot that a group reads";
	if (s.content[block][slot] != n + 1) {
		s.content[block][slot] = (uint8_t)(n + 1);
		s.came[block][slot] = 0;
	}
	s.came[block][slot]++;
	s.full[block][slot].bytes--;
	settle_word(&s.full[block][slot], 1);
	add_state(x, &s);
}

/* The next block is told of the release. */
static void
tell(Search *x, State *s, unsigned b, Group *group, unsigned number)
{
	unsigned slot = fill_of(&x->of, number, group->released) % x->of.slots, to = x->of.wrong == TELLS_ITSELF ? b : group->telling - 1u;
	s->empty[to][slot].left--;
	settle_word(&s->empty[to][slot], releases(x));
	group->telling++;
	if (group->telling > (x->of.wrong == TELLS_ITSELF ? 1 : x->of.blocks)) {
		group->telling = 0;
		group->released++;
	}
	add_state(x, s);
}

static bool
multiply(Search *x, const State *from, unsigned b, unsigned g)
{
	State s = *from;
	Group *group = &s.group[b][g];
	const Setting *of = &x->of;
	unsigned n = group->waited, last = own_fills(of, g), held = n - group->released;
	bool between = n % of->steps == 0; /* tiles */
	if (group->telling) {
		tell(x, &s, b, group, g);
		return true;
	}
	if (of->turns && between && held && group->has_turn) { /* it gives it before the last products have ended */
		unsigned next = (g + 1) % of->groups;
		if (++s.turn[b][next] > 1)
			x->error = "a turn is given twice";
		group->has_turn = 0;
		add_state(x, &s);
		return true;
	}
	/* one product may go on while the next fill is waited for */
	if (held > (between || x->of.wrong == RELEASES_WHAT_IT_READS ? 0u : 1u)) {
		group->telling = 1;
		add_state(x, &s);
		return true;
	}
	if (n == last)
		return false;
	if (of->turns && !group->has_turn) {
		if (!s.turn[b][g])
			return false;
		s.turn[b][g]--;
		group->has_turn = 1;
		add_state(x, &s);
		return true;
	}
	unsigned fill = fill_of(of, g, n), slot = fill % of->slots;
	if (!is_over(&s.full[b][slot], fill / of->slots & 1))
		return false;
	if (s.content[b][slot] != fill + 1 || s.came[b][slot] != pieces(of))
		x->error = "a group reads what is not all there";
	group->waited++;
	add_state(x, &s);
	return true;
}

static bool
has_ended(const Search *x, const State *s)
{
	for (unsigned b = 0; b < x->of.blocks; b++) {
		if (s->loaded[b] < x->of.tiles * x->of.steps || s->flying[b])
			return false;
		for (unsigned g = 0; g < x->of.groups; g++)
			if (s->group[b][g].released < own_fills(&x->of, g))
				return false;
	}
	return true;
}

static void
go_on(Search *x, const State *s)
{
	bool moved = false;
	for (unsigned b = 0; b < x->of.blocks && !x->error; b++) {
		moved |= load(x, s, b);
		for (unsigned g = 0; g < x->of.groups && !x->error; g++)
			moved |= multiply(x, s, b, g);
		for (unsigned bit = 0; bit < 4 * FILLS && !x->error; bit++)
			if (s->flying[b] >> bit & 1) {
				bring(x, s, b, bit);
				moved = true;
			}
	}
	if (!x->error && !moved && !has_ended(x, s))
		x->error = "all wait for one another";
}

/* What goes wrong in some order; NULL: nothing in any. */
static const char *
search(const Setting *of)
{
	Search x = {.of = *of, .channel = {.slots = (uint16_t)of->slots, .nparts = 2}};
	State first = {0};
	x.channel.part[1].joint = of->blocks > 1;
	x.state = malloc((size_t)MOST_STATES * sizeof *x.state);
	x.table = calloc(2 * (size_t)MOST_STATES, sizeof *x.table);
	assert_true(x.state && x.table && of->tiles * of->steps <= FILLS && of->slots <= SLOTS && of->groups <= GROUPS);
	for (unsigned b = 0; b < of->blocks; b++) {
		first.turn[b][0] = of->turns;
		for (unsigned n = 0; n < of->slots; n++) {
			first.full[b][n].left = 1;
			first.empty[b][n].left = (uint8_t)releases(&x);
		}
	}
	add_state(&x, &first);
	for (uint32_t n = 0; n < x.nstate && !x.error; n++) {
		State now = x.state[n];
		go_on(&x, &now);
	}
	if (!x.error)
		print_message("%u blocks, %u groups, %u slots: %u states\n", of->blocks, of->groups, of->slots, x.nstate);
	free(x.state);
	free(x.table);
	return x.error;
}

static void
nothing_goes_wrong_in_any_order(void **state)
{
	static const Setting all[] = {
		{1, 1, 2, 3, 2, false, RIGHT}, {1, 2, 2, 3, 2, false, RIGHT}, {1, 3, 3, 4, 2, false, RIGHT}, {1, 2, 3, 4, 2, true, RIGHT},
		{1, 2, 2, 7, 1, true, RIGHT},  {2, 1, 2, 3, 2, false, RIGHT}, {2, 1, 3, 2, 2, false, RIGHT}, {2, 2, 2, 2, 2, false, RIGHT},
		{2, 2, 2, 3, 2, true, RIGHT},  {2, 2, 2, 5, 1, true, RIGHT},
	};
	(void)state;
	for (unsigned n = 0; n < sizeof all / sizeof *all; n++) {
		const char *error = search(&all[n]);
		if (error)
			fail_msg("setting %u: %s", n, error);
	}
}

static void
something_goes_wrong(void **state)
{
	static const struct {
		Setting of;
		const char *error;
	} all[] = {
		{{1, 1, 1, 3, 2, false, RIGHT}, "all wait for one another"}, /* a fill is there before the one before it is released */
		{{2, 1, 2, 3, 2, false, TELLS_ITSELF}, "all wait for one another"},
		{{2, 1, 2, 3, 2, false, COUNTS_ITSELF}, "a group reads what is not all there"},
		{{1, 1, 2, 3, 2, false, WAITS_TOO_LATE}, "all wait for one another"},
		{{1, 1, 2, 3, 2, false, RELEASES_WHAT_IT_READS}, "a copy comes to a slot that a group reads"},
		{{2, 1, 2, 3, 2, false, ANNOUNCES_ITS_OWN}, "a group reads what is not all there"},
	};
	(void)state;
	for (unsigned n = 0; n < sizeof all / sizeof *all; n++) {
		const char *error = search(&all[n].of);
		if (!error || strcmp(error, all[n].error) != 0)
			fail_msg("setting %u gives: %s\n wants: %s", n, error ? error : "nothing", all[n].error);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_goes_wrong_in_any_order),
		cmocka_unit_test(something_goes_wrong),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
