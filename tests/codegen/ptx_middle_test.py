"""What ptx_examples.py takes for a quotient that may do without a whole one: of a sum with a power that the text shows to be
at most 1, and of no other."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import ptx_examples  # noqa: E402

LESS = "setp.lt.f32 %p1, %r1, 0f00000000;"
QUOTIENT = """
	ex2.approx.ftz.f32 	%r9, %r8;
	mul.rn.f32 	%r10, %r9, %r9;
	add.rn.f32 	%r11, %r10, 0f3F800000;
	rcp.approx.ftz.f32 	%r12, %r11;
	fma.rn.f32 	%r13, %r11, %r12, 0f3F800000;
}
"""


def text(*lines):
    """Of x = %r1 and the exponent %r8, a quotient of 1 by 1 and its power of 2."""
    return "k()\n{\n\tld.global.b32 \t%r1, [%rd1];\n" + "".join(f"\t{line}\n" for line in lines) + QUOTIENT


AT_MOST_1 = {
    "a number's magnitude negated, by a condition": (LESS, "neg.f32 %r2, %r1;", "selp.f32 %r3, %r1, %r2, %p1;",
                                                      "mul.rn.f32 %r8, %r3, 0f3F38AA3B;"),
    "the other way round": ("setp.gt.f32 %p1, %r1, 0f00000000;", "neg.f32 %r2, %r1;", "selp.f32 %r3, %r2, %r1, %p1;",
                            "mul.rn.f32 %r8, %r3, 0f3F38AA3B;"),
    "negated": ("abs.f32 %r2, %r1;", "neg.f32 %r3, %r2;", "mul.rn.f32 %r8, %r3, 0f3F38AA3B;"),
    "times what is below 0": ("abs.f32 %r2, %r1;", "mul.rn.f32 %r8, %r2, 0fBF38AA3B;"),
    "a square": ("mul.rn.f32 %r2, %r1, %r1;", "neg.f32 %r8, %r2;"),
    "no more than 0": ("min.NaN.f32 %r2, %r1, 0f00000000;", "mul.rn.f32 %r8, %r2, 0f3F38AA3B;"),
    "kept above a number below 0": ("abs.f32 %r2, %r1;", "neg.f32 %r3, %r2;", "max.NaN.f32 %r8, %r3, 0fC2D00000;"),
}
OTHERS = {
    "any number": ("mul.rn.f32 %r8, %r1, 0f3F38AA3B;",),
    "read": ("ld.global.b32 %r8, [%rd2];",),
    "a magnitude": (LESS, "neg.f32 %r2, %r1;", "selp.f32 %r3, %r2, %r1, %p1;", "mul.rn.f32 %r8, %r3, 0f3F38AA3B;"),
    "times what is below 0": (LESS, "neg.f32 %r2, %r1;", "selp.f32 %r3, %r1, %r2, %p1;", "mul.rn.f32 %r8, %r3, 0fBF38AA3B;"),
    "by a condition on another number": ("ld.global.b32 %r4, [%rd2];", "setp.lt.f32 %p1, %r4, 0f00000000;", "neg.f32 %r2, %r1;",
                                        "selp.f32 %r8, %r1, %r2, %p1;"),
    "below another number": ("setp.lt.f32 %p1, %r1, 0f3F800000;", "neg.f32 %r2, %r1;", "selp.f32 %r8, %r1, %r2, %p1;"),
    "no more than 1": ("min.NaN.f32 %r8, %r1, 0f3F800000;",),
    "less a number": ("abs.f32 %r2, %r1;", "neg.f32 %r3, %r2;", "add.rn.f32 %r8, %r3, 0f3F800000;"),
    "one of two": ("abs.f32 %r2, %r1;", "neg.f32 %r8, %r2;", "mov.b32 %r8, %r1;"),
    "one of several": ("abs.f32 %r2, %r1;", "neg.f32 %r8, %r2;", "ld.global.v2.b32 {%r8, %r7}, [%rd2];"),
    "one that a condition replaces": ("abs.f32 %r2, %r1;", "neg.f32 %r8, %r2;", "@%p2 mov.b32 %r8, %r1;"),
    "no number": ("abs.f32 %r2, %r1;", "mul.rn.f32 %r8, %r2, 0fFFC00000;"),
}


class Middle(unittest.TestCase):
    def test_at_most_1(self):
        for name, lines in AT_MOST_1.items():
            with self.subTest(name):
                self.assertEqual(ptx_examples.middle_ones(text(*lines)), {"%r12"})
                ptx_examples.check("f", "sm_90a", ".entry" + text(*lines))

    def test_others(self):
        for name, lines in OTHERS.items():
            with self.subTest(name):
                self.assertEqual(ptx_examples.middle_ones(text(*lines)), set())
                with self.assertRaisesRegex(RuntimeError, "has more of rcp.approx"):
                    ptx_examples.check("f", "sm_90a", ".entry" + text(*lines))

    def test_whole(self):
        """Of any power where the text has a whole quotient as well."""
        whole = text(*OTHERS["any number"]).replace("\n}", "\n\tdiv.rn.f32 \t%r14, %r1, %r11;\n}")
        ptx_examples.check("f", "sm_90a", ".entry" + whole)


if __name__ == "__main__":
    unittest.main()
