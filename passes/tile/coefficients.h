/* coefficients.h: printed by coefficients/fit.sollya; do not edit. Polynomials are in ascending
 * order; the numbers in comments are the errors of the fit, before any rounding of steps. */
#ifndef TEXO_PASSES_TILE_COEFFICIENTS_H
#define TEXO_PASSES_TILE_COEFFICIENTS_H

#include <stdint.h>

typedef struct {
	double c[2][3]; /* of f32, of f64: the sum of the three is the constant */
} ExSum;

typedef struct {
	unsigned n[2];
	double c[2][24];
} ExPoly;

static const ExSum ln2_sum = {{
	{0x1.62e43p-1, -0x1.05c61p-29, -0x1.950d88p-54},
	{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56, 0x1.7b57a079a1934p-111},
}};
static const ExSum ln2_short = {{
	{0x1.62e4p-1, 0x1.7f7d1cp-20, 0x1.ef357ap-45},
	{0x1.62e42fefa4p-1, -0x1.8432a1b0e2634p-43, 0x1.f97b57a079a19p-103},
}};
static const ExSum log2e_sum = {{
	{0x1.715476p0, 0x1.4ae0cp-26, -0x1.e8883p-52},
	{0x1.71547652b82fep0, 0x1.777d0ffda0d24p-56, -0x1.60bb8a5442ab9p-110},
}};
static const ExSum half_pi = {{
	{0x1.921fb6p0, -0x1.777a5cp-25, -0x1.ee59dap-50},
	{0x1.921fb54442d18p0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110},
}};
static const ExSum half_pi_62 = {{
	{0x1.921fb6p-62, -0x1.777a5cp-87, -0x1.ee59dap-112},
	{0x1.921fb54442d18p-62, 0x1.1a62633145c07p-116, -0x1.f1976b7ed8fbcp-172},
}};
static const ExSum third = {{
	{0x1.555556p-2, -0x1.555556p-27, 0x1.555556p-52},
	{0x1.5555555555555p-2, 0x1.5555555555555p-56, 0x1.5555555555555p-110},
}};
static const ExSum fifth = {{
	{0x1.99999ap-3, -0x1.99999ap-29, 0x1.99999ap-55},
	{0x1.999999999999ap-3, -0x1.999999999999ap-57, 0x1.999999999999ap-111},
}};

/* (exp(x) - 1 - x) / x^2 for |x| <= ln 2 / 2, relative to exp:
 * f32 2^-31.6484375, f64 2^-61.859375 */
static const ExPoly exp_poly = {
	{6, 11},
	{{
		0x1p-1,
		0x1.555556p-3,
		0x1.5554fep-5,
		0x1.110ff6p-7,
		0x1.6d3456p-10,
		0x1.a25dbap-13,
	}, {
		0x1p-1,
		0x1.5555555555557p-3,
		0x1.5555555555551p-5,
		0x1.111111110ffcep-7,
		0x1.6c16c16c191b3p-10,
		0x1.a01a01ac83a85p-13,
		0x1.a01a0194f3777p-16,
		0x1.71de0036c5415p-19,
		0x1.27e506806792p-22,
		0x1.af5216729c269p-26,
		0x1.1f2b651a52e9bp-29,
	}},
};

/* the same, where an ulp is allowed:
 * f32 2^-26.5390625, f64 2^-61.859375 */
static const ExPoly exp_near_poly = {
	{5, 11},
	{{
		0x1p-1,
		0x1.5554d8p-3,
		0x1.55556ap-5,
		0x1.121078p-7,
		0x1.6cb018p-10,
	}, {
		0x1p-1,
		0x1.5555555555557p-3,
		0x1.5555555555551p-5,
		0x1.111111110ffcep-7,
		0x1.6c16c16c191b3p-10,
		0x1.a01a01ac83a85p-13,
		0x1.a01a0194f3777p-16,
		0x1.71de0036c5415p-19,
		0x1.27e506806792p-22,
		0x1.af5216729c269p-26,
		0x1.1f2b651a52e9bp-29,
	}},
};

/* (log(1 + x) - x + x^2/2) / x^3 for m <= 1 + x <= 2 m, m = 0.68359375, relative to log(1 + x):
 * f32 2^-31.0625, f64 2^-57.390625 */
static const ExPoly log_poly = {
	{10, 20},
	{{
		0x1.555556p-2,
		-0x1.fffffap-3,
		0x1.999878p-3,
		-0x1.555838p-3,
		0x1.24d1d4p-3,
		-0x1.ff55c8p-4,
		0x1.bc1df8p-4,
		-0x1.9e67aep-4,
		0x1.db7e2p-4,
		-0x1.7318ccp-4,
	}, {
		0x1.5555555555555p-2,
		-0x1.000000000002cp-2,
		0x1.9999999999c72p-3,
		-0x1.5555555549308p-3,
		0x1.249249245ebe9p-3,
		-0x1.00000007d933p-3,
		0x1.c71c71fa3500fp-4,
		-0x1.999995027a423p-4,
		0x1.745d09d20007ep-4,
		-0x1.55560e03b1233p-4,
		0x1.3b15c181704ep-4,
		-0x1.24817b0aa07b9p-4,
		0x1.10dfc5f795d58p-4,
		-0x1.00e5dd9b48cd8p-4,
		0x1.e7844ce31a233p-5,
		-0x1.b9788d6d4e6c3p-5,
		0x1.7e64245d0e2bfp-5,
		-0x1.c6b90effc42e9p-5,
		0x1.326e182c9f742p-4,
		-0x1.8eb72b6f814dfp-5,
	}},
};

/* (atanh(s) / s - 1 - s^2/3 - s^4/5) / s^6 in x = s^2 for s <= 0.1717, relative to atanh:
 * f32 2^-39.125, f64 2^-76.4375 */
static const ExPoly atanh_poly = {
	{3, 8},
	{{
		0x1.249252p-3,
		0x1.c6f338p-4,
		0x1.82bd76p-4,
	}, {
		0x1.2492492492492p-3,
		0x1.c71c71c71caadp-4,
		0x1.745d174569705p-4,
		0x1.3b13b1905d8d7p-4,
		0x1.1110ebf6f6ba1p-4,
		0x1.e1f42d888ce2fp-5,
		0x1.ac98fab7359e5p-5,
		0x1.b641c5d9ee44p-5,
	}},
};

/* (tanh(r) - r) / r^3 in x = r^2 for r <= 0.56, relative to tanh:
 * f32 2^-31.234375, f64 2^-62.28125 */
static const ExPoly tanh_poly = {
	{6, 15},
	{{
		-0x1.555556p-2,
		0x1.11115ap-3,
		-0x1.ba2b38p-5,
		0x1.66bf74p-6,
		-0x1.1f4b1ap-7,
		0x1.6ec8cp-9,
	}, {
		-0x1.5555555555555p-2,
		0x1.1111111110feap-3,
		-0x1.ba1ba1b9f5ac6p-5,
		0x1.664f48707dbb7p-6,
		-0x1.226e3063e0d54p-7,
		0x1.d6d21c25adeep-9,
		-0x1.7d7162022b0fp-10,
		0x1.315f532ea21bbp-11,
		-0x1.832368ab009bfp-13,
		-0x1.7f82110321196p-13,
		0x1.00402a978563ep-10,
		-0x1.4d02eb5a397aep-9,
		0x1.14c0e5ec0e799p-8,
		-0x1.0f351549f4605p-8,
		0x1.dc4da122c2719p-10,
	}},
};

/* (sin(r) - r) / r^3 in x = r^2 for r <= 0.8, relative to sin:
 * f32 2^-31.03125, f64 2^-61.015625 */
static const ExPoly sin_poly = {
	{4, 7},
	{{
		-0x1.555556p-3,
		0x1.111192p-7,
		-0x1.a079eep-13,
		0x1.846ddep-19,
	}, {
		-0x1.5555555555555p-3,
		0x1.1111111111028p-7,
		-0x1.a01a019fec633p-13,
		0x1.71de3a17f7abp-19,
		-0x1.ae640582d0fe3p-26,
		0x1.60f06f0c4807bp-33,
		-0x1.9384341a335cfp-41,
	}},
};

/* (cos(r) - 1 + r^2/2) / r^4 in x = r^2 for r <= 0.8, relative to cos:
 * f32 2^-33.671875, f64 2^-63.609375 */
static const ExPoly cos_poly = {
	{4, 7},
	{{
		0x1.555556p-5,
		-0x1.6c17cap-10,
		0x1.a0e5b4p-16,
		-0x1.537aa2p-22,
	}, {
		0x1.5555555555555p-5,
		-0x1.6c16c16c16a45p-10,
		0x1.a01a019fbf1d5p-16,
		-0x1.27e4fafdc65e1p-22,
		0x1.1eecf02769c8ap-29,
		-0x1.92cfb0523295fp-37,
		0x1.4ccdf0f56ac01p-45,
	}},
};

/* erf(r) / r - 1 in x = r^2 for r <= 7/8, relative to erf:
 * f32 2^-30.1171875, f64 2^-56.328125 */
static const ExPoly erf_poly = {
	{8, 16},
	{{
		0x1.06eba8p-3,
		-0x1.812744p-2,
		0x1.ce2e94p-4,
		-0x1.b81f74p-6,
		0x1.55aed4p-8,
		-0x1.b67fd6p-11,
		0x1.ade3f6p-14,
		-0x1.9fe4eep-18,
	}, {
		0x1.06eba8214db69p-3,
		-0x1.812746b037a16p-2,
		0x1.ce2f21a0459fap-4,
		-0x1.b82ce313d8f83p-6,
		0x1.565bcd657a87ep-8,
		-0x1.c02dd0762335ap-11,
		0x1.f9a969974157ap-14,
		-0x1.f5c937c04be02p-17,
		0x1.d52debaa3d97bp-20,
		-0x1.c7de76981af86p-22,
		0x1.0d65c452a9603p-21,
		-0x1.5fb1d49f0a411p-21,
		0x1.4a40194c32712p-21,
		-0x1.9cf2ec3bd9bc4p-22,
		0x1.34431b8a5bbc9p-23,
		-0x1.9fafc9ecccef8p-26,
	}},
};

/* log(erfc(r)) + r^2 in x = r - 1 for 7/8 <= r <= 4 (f32) or 6 (f64), error in erfc absolute:
 * f32 2^-28.84375, f64 2^-58.953125 */
static const ExPoly erfcx_poly = {
	{8, 20},
	{{
		-0x1.b2ff7ep-1,
		-0x1.4726cp-1,
		0x1.4150eap-3,
		-0x1.5477fap-5,
		0x1.48fb5p-7,
		-0x1.06917ap-9,
		0x1.2a291ep-12,
		-0x1.58d78cp-16,
	}, {
		-0x1.b2ff7e4f54542p-1,
		-0x1.4726c001b08f4p-1,
		0x1.4150fb975c2e5p-3,
		-0x1.5477f09ca8ec4p-5,
		0x1.48c9d40c22688p-7,
		-0x1.033f6997fa6f7p-9,
		0x1.f1b4bb653f22fp-13,
		0x1.b8be99165436p-16,
		-0x1.c75b3ec53b10ap-16,
		0x1.41628c77f2e0fp-17,
		-0x1.0f18fc46392eep-19,
		0x1.beed5a96b4e21p-24,
		0x1.0ea8166bd8181p-23,
		-0x1.233113340c5e2p-24,
		0x1.7022967fe0b2p-26,
		-0x1.4cc079385bb43p-28,
		0x1.b525029b7de3ap-31,
		-0x1.8eeb7a0ebcefdp-34,
		0x1.c4a4b6daa9a8ep-38,
		-0x1.e00eea2c77febp-43,
	}},
};

/* erf(r) / r - 1 in x = r^2 for r <= 1, relative to erf:
 * f32 2^-29.2890625, f64 2^-56.328125 */
static const ExPoly erf_near_poly = {
	{7, 15},
	{{
		0x1.06eba8p-3,
		-0x1.81274p-2,
		0x1.ce2d52p-4,
		-0x1.b7fec4p-6,
		0x1.542fecp-8,
		-0x1.a5197ap-11,
		0x1.4c5cb4p-14,
	}, {
		0x1.06eba8214db69p-3,
		-0x1.812746b037a06p-2,
		0x1.ce2f21a04402bp-4,
		-0x1.b82ce312eb30fp-6,
		0x1.565bcd1f56624p-8,
		-0x1.c02db7a76aec9p-11,
		0x1.f9a3add6d4dc1p-14,
		-0x1.f4dfd876f231ap-17,
		0x1.badb17ec91f64p-20,
		-0x1.6bc688bd9e003p-23,
		0x1.6f08c1a1b07c2p-26,
		-0x1.b8a225846c76fp-28,
		0x1.7f5341caaba5dp-29,
		-0x1.cb6b98748448ep-31,
		0x1.f86c6a0f7b887p-34,
	}},
};

/* log2(erfc(r)) in x = r - 1 for 1 <= r <= 4 (f32) or 6 (f64), error in erfc absolute:
 * f32 2^-27.7109375, f64 2^-57.1875 */
static const ExPoly erfc_near_poly = {
	{7, 20},
	{{
		-0x1.558eaep1,
		-0x1.e7532p1,
		-0x1.37638ap0,
		-0x1.ea7a7p-5,
		0x1.d39596p-7,
		-0x1.595264p-9,
		0x1.18bb54p-12,
	}, {
		-0x1.558eada6637f3p1,
		-0x1.e75328fe78c5cp1,
		-0x1.37627e9b5c274p0,
		-0x1.eb313689e90d1p-5,
		0x1.da5764ce25bcep-7,
		-0x1.7603eed1203a1p-9,
		0x1.6704b2ab27204p-12,
		0x1.3df27035dbbf9p-15,
		-0x1.4882d88d91bap-15,
		0x1.cff1e9b075abep-17,
		-0x1.88937c8a827cep-19,
		0x1.58fec4f50ada2p-23,
		0x1.760d28e00813ap-23,
		-0x1.9223a76d3ead2p-24,
		0x1.f5c723820932fp-26,
		-0x1.bcee8f3480cffp-28,
		0x1.1d6fa74f3c137p-30,
		-0x1.fb2d0c17cf184p-34,
		0x1.17905dea8b704p-37,
		-0x1.1fc759a6a6d6p-42,
	}},
};

/* 2^x for |x| <= 1/2, relative, where only a sixth of the error counts:
 * f32 2^-22.96875, f64 2^-51.765625 */
static const ExPoly exp2_low_poly = {
	{6, 11},
	{{
		0x1.000002p0,
		0x1.62e42ap-1,
		0x1.ebf8a8p-3,
		0x1.c6b57p-5,
		0x1.3d243ap-7,
		0x1.5cabbap-10,
	}, {
		0x1p0,
		0x1.62e42fefa3a19p-1,
		0x1.ebfbdff82c468p-3,
		0x1.c6b08d703ce1fp-5,
		0x1.3b2ab6fbcf5p-7,
		0x1.5d87fe9da0598p-10,
		0x1.43091281e235fp-13,
		0x1.ffcb5348b7866p-17,
		0x1.62c113aea4819p-20,
		0x1.b676b2c675ea5p-24,
		0x1.e3ff919ba9ea7p-28,
	}},
};

/* 1 / (2 pi) = sum of turn_word[k] * 2^-(32 (k + 1)) */
static const uint32_t turn_word[] = {
	683565275u,
	2475754826u,
	2131351028u,
	2102212464u,
	920167782u,
	1326507024u,
	2140428522u,
	4155437400u,
	1841896334u,
	2425582776u,
	26364858u,
	2188665991u,
	1065843399u,
	743074255u,
	3122695549u,
	1269748001u,
	979835913u,
	2904022928u,
	1315206542u,
	1624559229u,
	656480226u,
	4018031118u,
	3355321855u,
	4152452611u,
	4224435298u,
	3598883655u,
	3679297459u,
	3388129901u,
	3553726425u,
	2811755147u,
	1565126321u,
	4210654302u,
	3477196413u,
	3801392314u,
	2600392684u,
	1206081346u,
	360762385u,
	3206470378u,
	4231261960u,
	649923975u,
};

#endif
