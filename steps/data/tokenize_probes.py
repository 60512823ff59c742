r"""Short texts on which encoders that are almost right tend to differ.

Collected by kind of trouble: white space, line ends, digits, contractions, scripts, marks that
combine, characters outside the BMP, what looks like a control token, bytes that editors hide.
"""

from __future__ import annotations

PROBES: tuple[str, ...] = (
    "",
    " ",
    "\n",
    "\r\n",
    "\t\t x \t",
    "a  b   c    d",
    "trailing   ",
    "\n\n\n  \n text \n\n",
    "line\r\nline\rline\n\u2028line\u2029line\x85line\x0b\x0c",
    "\u00a0nbsp\u2003em\u200bzero\ufeffbom\u3000wide\u180e",
    "1 12 123 1234 12345 1234567890123 3.14e-10 0xFF \u0661\u0662\u0663 \u00bd \u2167 \u1369",
    "it's IT'S we'll You'Re i\u2019m 'S 'tis rock'n'roll d'Artagnan",
    "\u017fs 's '\u017f \u212a",  # characters that fold to s and k
    "na\u00efve nai\u0308ve e\u0301e\u0301 \u1e9e\u00df \u0130i\u0131",
    "q\u0323\u0307 q\u0307\u0323 \u0e01\u0e33 \u0915\u094d\u0937\u093f \u1100\u1161\u11a8",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002\u3053\u3093\u306b\u3061\u306f",
    "\uc548\ub155 \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e9\U0001f1ea \U0001f3f3\ufe0f\u200d\U0001f308 \U00020000 \U0010ffff",
    "<|endoftext|>",
    "a<|endoftext|>b <|endoftext|> <|endoftext |> <s></s>[PAD]<unk><|im_start|>",
    "\x00nul\x00 \x01\x1b[31m \x7f \x80 \ufffd \ufffe \ud7ff \ue000",
    "$100,000.00 50% a/b\\c {x:[1,2]} --option=value // /* */ <!-- --> #!@^&*()_+",
    "snake_case camelCase PascalCase SCREAMING_CASE kebab-case x1y2z3 __init__",
    "def f(x):\n    return x\n\n\n        # deep\n\tmixed \t tabs\n",
    "==========----------__________..........!!!!!!!!!!??????????",
    "a" * 300,
    " " * 300,
    "\n" * 300,
    "ab" * 200 + "\u00e9" * 100 + "\u4e00" * 100,
    "http://user:pass@host.example:8080/path?q=1&r=%20#frag me@example.org",
)
