/* pick_coefficients.h: printed by coefficients/fit_pick.sollya; do not edit. Polynomials are in ascending order, of f32. */
#ifndef TEXO_PASSES_TILE_PICK_COEFFICIENTS_H
#define TEXO_PASSES_TILE_PICK_COEFFICIENTS_H

enum { PICKS = 8 };

/* 2^(k/8) times 0x1.feb052p-1, nearest */
static const double power_pick[PICKS] = {
	0x1.feb052p-1,
	0x1.16747cp0,
	0x1.2fa848p0,
	0x1.4b2404p0,
	0x1.691c8ap0,
	0x1.89cb7cp0,
	0x1.ad6fb4p0,
	0x1.d44dbcp0,
};

/* e^x / 0x1.feb052p-1 - 1 for |x| <= ln 2 / 16, within 2^-25.6171875 of e^x */
static const double exp_pick_poly[4] = {
		0x1.508ap-9,
		0x1.00a846p0,
		0x1.00b2c2p-1,
		0x1.562ff8p-3,
};

/* 2^x / 0x1.feb052p-1 - 1 for |x| <= 1/16, within 2^-25.6484375 of 2^x */
static const double exp2_pick_poly[4] = {
		0x1.508a08p-9,
		0x1.63cd76p-1,
		0x1.ed52fep-3,
		0x1.c7e128p-5,
};

/* erf(17/32 k + x) for |x| <= 17/64, as far as 3.96, for k = 0 less x */
static const double erf_pick_poly[PICKS][8] = {
	{
		0,
		0x1.06eba8p-3,
		0,
		-0x1.812728p-2,
		0,
		0x1.ce0d58p-4,
		0,
		-0x1.ac3a0ep-6,
	},
	{
		0x1.1855a6p-1,
		0x1.b3aafcp-1,
		-0x1.cee586p-2,
		-0x1.fa00dep-4,
		0x1.77b2dcp-3,
		-0x1.00e342p-9,
		-0x1.83cd6p-5,
		0x1.fe4b92p-8,
	},
	{
		0x1.bbef1p-1,
		0x1.75a91ap-2,
		-0x1.8d03fep-2,
		0x1.3954bcp-3,
		0x1.895406p-5,
		-0x1.0f839cp-4,
		0x1.3f2f5p-7,
		0x1.98f422p-7,
	},
	{
		0x1.f39bc2p-1,
		0x1.6c7e64p-4,
		-0x1.22744ap-3,
		0x1.efb91cp-4,
		-0x1.92f0f4p-5,
		-0x1.46a3acp-8,
		0x1.031eecp-6,
		-0x1.746c14p-8,
	},
	{
		0x1.fea422p-1,
		0x1.94625p-7,
		-0x1.adae6cp-6,
		0x1.0ea44p-5,
		-0x1.af5178p-6,
		0x1.99946ap-7,
		-0x1.03d41ep-9,
		-0x1.f90574p-10,
	},
	{
		0x1.ffe96ap-1,
		0x1.fe41d2p-11,
		-0x1.52d7bp-9,
		0x1.16c128p-8,
		-0x1.39c014p-8,
		0x1.f39f6p-9,
		-0x1.12e13ap-9,
		0x1.5b67aap-11,
	},
	{
		0x1.ffff24p-1,
		0x1.6e22dcp-15,
		-0x1.224484p-13,
		0x1.26c732p-12,
		-0x1.b9fc52p-12,
		0x1.bf8024p-12,
		-0x1.98fbc4p-13,
		0x1.d73056p-13,
	},
	{
		0x1.fffffcp-1,
		0x1.2accd8p-20,
		-0x1.15da82p-18,
		0x1.4c102p-17,
		-0x1.1c5432p-16,
		0x1.738d3p-16,
		-0x1.a003d4p-16,
		0x1.6d5384p-16,
	},
}; /* within 2^-25.21875 of erf */

#endif
