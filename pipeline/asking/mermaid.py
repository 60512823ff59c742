"""Lineage as Mermaid text. Whatever a name holds, it reads as itself and never as syntax."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeline.asking.lineage import place

if TYPE_CHECKING:
    from pipeline.asking.lineage import Lineage

# Mermaid reads more than its grammar tells: `%%{...}%%` anywhere is a directive, a backtick starts
# Markdown, `\n` breaks the line, `fa:` draws an icon, `$$` starts a formula, "1. x" makes a list.
# So all but letters, digits, blanks and a mark between two of them is written as a character code.
_PLAIN = re.compile(r"(?<=[^\W_])[._/-](?=[^\W_])|[^\W_]| (?=\S)")


def mermaid(found: Lineage) -> str:
    """The graph as Mermaid text, from the sources to the products."""
    names = {key: f"n{index}" for index, key in enumerate(found.records)}
    lines = ["graph LR"]
    for key, record in found.records.items():
        label = f"{quoted(record.title)}<br/>{record.content_digest[:12]}"
        lines.append(f'  {names[key]}["{label}"]')
        for index, source in enumerate(record.sources):
            label = f"{quoted(source.role)}: {source.num_files} files"
            lines.append(f'  {names[key]}s{index}[("{label}")] --> {names[key]}')
        for index, item in enumerate(found.missing.get(key, ())):
            label = f"{quoted(item.title)}<br/>{item.content_digest[:12]}"
            lines.append(f'  {names[key]}m{index}["{label}"]')
            role = quoted(place(item.role, item.index))
            lines.append(f'  {names[key]}m{index} -->|"{role}"| {names[key]}')
    for edge in found.to_edges():
        above, below = names[edge["from"]], names[edge["to"]]
        arrow = "-.->" if edge["equal_bytes"] else "-->"
        lines.append(f'  {above} {arrow}|"{quoted(edge["role"])}"| {below}')
    return "\n".join(lines)


def quoted(text: str) -> str:
    """Text that may stand between Mermaid's quotation marks.

    >>> quoted('pack-4096 "x"')
    'pack-4096 #34;x#34;'
    """
    found, end = [], 0
    for match in _PLAIN.finditer(text):
        found += [f"#{ord(c)};" for c in text[end : match.start()]]
        found.append(match[0])
        end = match.end()
    return "".join([*found, *(f"#{ord(c)};" for c in text[end:])])
